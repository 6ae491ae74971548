"""Functions count by their content, wherever they are defined, and installed ones by their version."""

import importlib
import sys

import numpy as np

from privatize import privatize, samplers
from privatize.identity import origin as origins
from privatize.identity.fingerprint import fingerprint
from tests.identity.projects import write


def test_two_modules_of_one_name(tmp_path, monkeypatch):
    """After a module was imported again, a function may use the old and the new one: both count."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write(tmp_path, box="DEPTH = 1")
    old = importlib.import_module("box")
    sys.modules.pop("box")
    new = importlib.import_module("box")

    def f(x):
        return old.DEPTH * new.DEPTH * x

    before = fingerprint(f)
    new.DEPTH = 2
    between = fingerprint(f)
    old.DEPTH = 2
    assert len({before, between, fingerprint(f)}) == 3


def test_installed_decorators_count_by_their_version(tmp_path, monkeypatch):
    """functools.wraps puts the user's name on a library's wrapper; the library's version still counts."""
    site = tmp_path / "site-packages"
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    library = """
        import functools
        def twice(f):
            @functools.wraps(f)
            def run(x):
                return helper(f(x))
            return run
        def helper(x):
            return x * FACTOR
    """
    found = []
    for version in ("1.0", "2.0"):
        write(site, wraplib=library)
        info = site / "wraplib-1.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: wraplib\nVersion: {version}\n")
        origins._version.cache_clear()
        twice = importlib.import_module("wraplib").twice
        found.append(fingerprint(twice(lambda x: x + 1)))
    assert found[0] != found[1]
    # A package without a version counts by its content.
    found = []
    for factor in (1, 50):
        write(site, looselib=f"K = {factor}\ndef f(x):\n    return K * x")
        found.append(fingerprint(importlib.import_module("looselib").f))
    assert found[0] != found[1]


def test_moving_a_function_within_its_file_does_not_change_it(project, tmp_path):
    """Another place in the file would cost a needless calibration; another module is another name."""
    before = fingerprint(project().f)
    (tmp_path / "elsewhere.py").write_text((tmp_path / "main.py").read_text())
    try:
        assert fingerprint(importlib.import_module("elsewhere").f) != before
    finally:
        sys.modules.pop("elsewhere")
    assert fingerprint(project(("main", "import functools", "# moved\n\n\nimport functools")).f) == before


def test_a_function_that_is_defined_again_is_the_same():
    """In a notebook a cell is run again and again; what did not change must not be calibrated each time."""
    found = set()
    for before in ("", "\n\n", "x = 1\n"):
        scope = {"__name__": "__main__"}
        text = 'class C:\n    "c"\n    n: int = 1\ndef g(x: C):\n    "g"\n    return x\n'
        text += "def f(x):\n    return g(x) * C.n"
        exec(before + text, scope)
        found.add(fingerprint(scope["f"]))
    assert len(found) == 1


def test_two_functions_behind_one_wrapper_have_estimates_of_their_own():
    """A wrapper with a table of limits by name gave both functions the noise of the first."""
    limits = {"low": 10.0, "high": 100.0}

    def metric(fn):
        def run(x):
            return float(np.minimum(50 * fn(x), limits[fn.__name__]).mean())

        return run

    def low(x):
        return x

    def high(x):
        return x

    promise = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), seed=1)
    small, large = promise(metric(low)), promise(metric(high))
    assert large.estimate(20).value > 4 * small.estimate(20).value


def test_private_functions_count_with_their_names():
    """A function can read the name and docstring of a helper, also if that is a private function."""
    promise = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1))
    inner = promise(lambda x: float(x.mean()))

    def f(x):
        return float(x.mean()) * int(inner.__doc__ or 1)

    before = fingerprint(f)
    inner.__doc__ = "100"
    assert fingerprint(f) != before
