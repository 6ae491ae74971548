"""Compiled code of users counts by its file."""

import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from privatize.identity.fingerprint import Unencodable, fingerprint
from tests.identity.mutations import run

EXTENSION = """
#include <Python.h>
static PyObject *scale(PyObject *self, PyObject *x) {
    return PyFloat_FromDouble(KNOB * PyFloat_AsDouble(x));
}
static PyMethodDef methods[] = {{"scale", scale, METH_O, "Scale."}, {NULL}};
static PyObject *times(PyObject *self, PyObject *x) { return scale(NULL, x); }
static PyMethodDef of_thing[] = {{"times", times, METH_O, "Scale."}, {NULL}};
static PyTypeObject Thing = {
    PyVarObject_HEAD_INIT(NULL, 0) .tp_name = "compiled.Thing", .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = PyType_GenericNew, .tp_methods = of_thing,
};
typedef struct { PyObject_HEAD double k; } Held;
static int held_init(Held *self, PyObject *args, PyObject *kwargs) {
    return PyArg_ParseTuple(args, "d", &self->k) ? 0 : -1;
}
static PyObject *held_times(Held *self, PyObject *x) {
    return PyFloat_FromDouble(self->k * KNOB * PyFloat_AsDouble(x));
}
static PyMethodDef of_held[] = {{"times", (PyCFunction)held_times, METH_O, "Scale."}, {NULL}};
static PyTypeObject Holder = {
    PyVarObject_HEAD_INIT(NULL, 0) .tp_name = "compiled.Holder", .tp_basicsize = sizeof(Held),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .tp_new = PyType_GenericNew,
    .tp_methods = of_held, .tp_init = (initproc)held_init,
};
static PyType_Slot slots[] = {{Py_tp_methods, of_thing}, {0, NULL}};
static PyType_Spec spec = {"compiled.Heap", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, slots};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "compiled", NULL, -1, methods};
PyMODINIT_FUNC PyInit_compiled(void) {
    PyObject *made = PyModule_Create(&module);
    PyType_Ready(&Thing);
    PyType_Ready(&Holder);
    PyModule_AddObject(made, "Holder", (PyObject *)&Holder);
    PyModule_AddObject(made, "Thing", (PyObject *)&Thing);
    PyModule_AddObject(made, "Heap", PyType_FromSpec(&spec));
    return made;
}
"""
LIBRARY = "double scale(double x) { return KNOB * x; }\n"
USES = {
    "function": "import compiled\ndef f(x):\n    return compiled.scale(x)",
    "imported function": "from compiled import scale\ndef f(x):\n    return scale(x)",
    "imported late": "def f(x):\n    import compiled\n    return compiled.scale(x)",
    "type": "from compiled import Thing\ndef f(x):\n    return Thing().times(x)",
    "method of a type": "from compiled import Thing\nthing = Thing()\nTIMES = Thing.times\n"
    "def f(x):\n    return TIMES(Thing(), x)",
    "bound method": "from compiled import Thing\nTIMES = Thing().times\ndef f(x):\n    return TIMES(x)",
    "heap type": "from compiled import Heap\ndef f(x):\n    return Heap().times(x)",
    "instance in a class": "import compiled\nclass Mine:\n    inner = compiled.Thing()\n"
    "def f(x):\n    return Mine.inner.times(x)",
    "state of an instance": "import compiled\nheld = compiled.Holder(2.0)\n"
    "def f(x):\n    return held.times(x)",
    "state of a subclass": "import compiled\nclass Mine(compiled.Holder):\n    pass\nheld = Mine(2.0)\n"
    "def f(x):\n    return held.times(x)",
    "ctypes": "import ctypes, pathlib\nLIB = ctypes.CDLL(str(pathlib.Path(__file__).with_name('plain.so')))\n"
    "LIB.scale.restype, LIB.scale.argtypes = ctypes.c_double, [ctypes.c_double]\n"
    "def f(x):\n    return LIB.scale(x)",
    "function of ctypes": "import ctypes, pathlib\n"
    "scale = ctypes.CDLL(str(pathlib.Path(__file__).with_name('plain.so'))).scale\n"
    "scale.restype, scale.argtypes = ctypes.c_double, [ctypes.c_double]\ndef f(x):\n    return scale(x)",
}


def compiler():
    """Return the compiler's command for a shared library, or None if there is none, or no headers."""
    command = shutil.which("cc")
    headers = Path(sysconfig.get_paths()["include"])
    if command is None or not (headers / "Python.h").is_file() or not sys.platform.startswith("linux"):
        return None
    return [command, "-shared", "-fPIC", "-O0", f"-I{headers}"]


def compile_into(folder, knob):
    """Build the extension and the library with a constant."""
    for name, text in (("compiled", EXTENSION), ("plain", LIBRARY)):
        source = folder / f"{name}.c"
        source.write_text(text.replace("KNOB", str(knob)))
        subprocess.run([*compiler(), str(source), "-o", str(folder / f"{name}.so")], check=True)


@pytest.mark.skipif(compiler() is None, reason="no C compiler or no Python headers here")
def test_compiled_modules_of_the_users_count_by_their_files(tmp_path):
    """A module that was built again with another constant would be answered with the noise of the old one."""
    found = []
    for knob, seed in ((1, "1"), (1, "2"), (100, "3")):
        folder = tmp_path / "built"
        shutil.rmtree(folder, ignore_errors=True)
        for at, text in enumerate(USES.values()):
            (folder / f"{at:03d}").mkdir(parents=True)
            (folder / f"{at:03d}" / "main.py").write_text(text)
            if not at:
                compile_into(folder / "000", knob)
                continue
            for name in ("compiled.so", "plain.so"):
                shutil.copy(folder / "000" / name, folder / f"{at:03d}" / name)
        time.sleep(0.02)  # so that they are older than the process that loads them
        found.append(run(folder, seed))
    for at, name in enumerate(USES):
        first, same, other = (process[f"{at:03d}"] for process in found)
        assert "Traceback" not in first[0], first[0]
        assert first[0] == same[0] and first[2] != other[2], name
        assert first[0] != other[0] or first[0].startswith("doubt: "), name
        hidden = ("function of ctypes", "state of an instance", "state of a subclass")
        assert first[0].startswith("doubt: ") == (name in hidden), (name, first)


@pytest.mark.skipif(compiler() is None, reason="no C compiler or no Python headers here")
def test_a_library_that_was_built_while_the_program_runs_is_a_doubt(tmp_path, monkeypatch):
    """The file may be newer than the loaded code, whose estimate would be stored for the new code."""
    compile_into(tmp_path, 3)
    monkeypatch.syspath_prepend(str(tmp_path))
    import compiled

    try:
        with pytest.raises(Unencodable, match=r"compiled\.so, .* built after this program started"):
            fingerprint(compiled.scale)
        assert fingerprint(compiled.scale, version="3")
    finally:
        del sys.modules["compiled"]
