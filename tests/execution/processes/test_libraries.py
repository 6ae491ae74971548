"""Libraries are loaded once for all workers, and never in a way that could change or hang a worker."""

import gc
import json
import os
import subprocess
import sys
import threading

import pytest

from privatize.execution.processes import libraries
from tests.execution.processes.programs import ENVIRONMENT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")


def test_only_what_is_installed_is_named():
    """The server would run the user's own modules, or libraries that the job does not need."""
    found = libraries.variables(["zipapp"], {"numpy", "tests", "python"})
    path, own, modules, _ = json.loads(found[libraries.VARIABLE])
    assert path == sys.path and own == ["zipapp"]
    assert modules[0] == "numpy" and "numpy.linalg" in modules
    assert all(name.partition(".")[0] == "numpy" for name in modules)


def test_workers_collect_garbage():
    """Their memory would grow with every pair: the server collects nothing while it imports."""

    def loads():
        libraries.load(json.dumps([sys.path, ["numpy"], [], []]))
        return gc.isenabled() and gc.get_freeze_count() > 0

    assert _in_a_child(loads)


def test_a_thread_is_noticed():
    """A process with threads would be forked, and its children might wait for a lock forever."""
    assert not _in_a_child(libraries.has_threads)

    def starts_one():
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return libraries.has_threads()

    assert _in_a_child(starts_one)


def _in_a_child(ask):
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(int(ask()))
        finally:  # after an error, too: else the child would go on with the tests
            os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
import special
from privatize import estimate_sensitivity, plan, samplers

def mean(x):
    return float(x.mean()) * special.ONE

made = dict(n=30, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.2), seed=1, progress=False)
print(estimate_sensitivity(mean, **made, workers="inline").value)
print(estimate_sensitivity(mean, **made, workers=2).value)
"""


THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
IN_SERVER = "import os, sys\nif sys.argv[0] == '-c':\n    "


@pytest.mark.parametrize(
    ("body", "extra"),
    [("", 0), (THREAD, 1), (IN_SERVER + "os._exit(9)\n", 0), (IN_SERVER + "raise RuntimeError('no')\n", 0)],
    ids=["harmless", "threads", "ends the server", "raises"],
)
def test_a_library_is_loaded_by_the_server(body, extra, tmp_path):
    """Each worker would import it again; or one that starts threads would be forked with them."""
    folder = tmp_path / "site-packages"
    (folder / "special-1.0.dist-info").mkdir(parents=True)
    (folder / "special-1.0.dist-info" / "METADATA").write_text("Name: special\nVersion: 1.0\n")
    log = tmp_path / "imports"
    (folder / "special.py").write_text(f"{body}open({str(log)!r}, 'a').write('x')\nONE = 1.0\n")
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split()
    assert first == second
    assert not done.stderr
    # Once here, and once in the server; or in each worker, of which one may do all before the other is ready.
    assert len(log.read_text()) - extra in ({2, 3} if body else {2})
