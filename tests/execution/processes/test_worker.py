"""A worker is started safely, and runs exactly this library's code."""

import contextlib
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import privatize as package
from privatize import plan
from privatize.execution.processes import pool as processes
from tests.execution.processes.programs import ENVIRONMENT, estimate, mean, until, workers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")


class TestNoHarm:
    """Side effects that a function may have."""

    @pytest.mark.parametrize("chosen", ["forks", "forks_a_child_that_ends", "threads", "prints", "moves"])
    def test_no_pair_fails(self, chosen, tmp_path):
        """Pairs would fail because of a side effect of the function."""
        folder = str(tmp_path)

        def forks(x):
            if x[0] > 0.9:
                me = os.getpid()
                child = os.fork()  # both return into the worker
                if child and os.getpid() == me and x[1] > 0.5:
                    os.waitpid(child, 0)
            return float(x.mean())

        def forks_a_child_that_ends(x):
            if x[0] > 0.9:
                child = os.fork()
                if child == 0:
                    os._exit(3)
                os.waitpid(child, 0)
            return float(x.mean())

        def threads(x):
            if x[0] > 0.9:
                threading.Thread(target=time.sleep, args=(1000,)).start()
            return float(x.mean())

        def prints(x):
            if x[0] > 0.9:
                print("x" * 100_000)
                print("y" * 100_000, file=sys.stderr, flush=True)
            return float(x.mean())

        def moves(x):
            if x[0] > 0.5:
                os.chdir(folder)
            return float(x.mean())

        # Forks and threads only in workers: at the end one or two pairs are evaluated here again.
        function = guarded(locals()[chosen])
        found = estimate(function)
        assert np.array_equal(found.gaps, estimate(mean, "inline").gaps) and found.failed == 0

    def test_the_folder_is_reset_for_the_next_job(self, tmp_path, monkeypatch):
        """A function that changes the working folder of its worker would change it for later functions."""
        (tmp_path / "here").mkdir()
        (tmp_path / "here" / "factor.txt").write_text("2")
        (tmp_path / "there").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        processes.pool().close()
        there = str(tmp_path / "there")

        def moves(x):
            os.chdir(there)
            return float(x.mean())

        def scaled(x):
            return float(x.mean() * float(Path("factor.txt").read_text()))

        estimate(guarded(moves))
        assert np.array_equal(estimate(scaled).gaps, estimate(scaled, "inline").gaps)

    def test_large_outputs(self):
        """Outputs of 12.5 MB would be sent to this process, where only the gaps are needed."""

        def large(x):
            return np.full(1_562_500, x.mean())

        chosen = plan(0.5)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = estimate(large, norm="sup", plan=chosen)
        assert np.array_equal(found.gaps, estimate(mean, "inline", plan=chosen).gaps)
        # In KB: a few outputs for the checks at the end, not all of them.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000

    def test_a_worker_that_leaks_is_replaced(self, monkeypatch):
        """A worker that leaks memory would grow until the machine has none left."""
        monkeypatch.setattr(processes, "_GROWN", 2**24)
        monkeypatch.setattr(processes, "machine_memory", lambda: 0)
        estimate(mean)
        before = workers()

        def leaks(x):
            leaked = getattr(np, "_of_a_test", [])
            leaked.append(np.ones(200_000))
            np._of_a_test = leaked if len(leaked) < 2000 else []
            time.sleep(0.002)
            return float(x.mean())

        try:
            found = estimate(guarded(leaks))
        finally:
            processes.pool().close()
        assert np.array_equal(found.gaps, estimate(mean, "inline").gaps) and found.failed == 0
        assert not before <= workers()

    def test_programs_that_a_function_has_started(self, hung):
        """A program that a function has started would run on after the function's timeout."""
        command = ["sleep", f"661.{os.getpid()}"]  # not that of another run of the tests

        def waits(x):
            if x[0] > 0.98:
                with subprocess.Popen(command) as program:
                    Path(hung, str(os.getpid())).touch()
                    program.wait()
            return float(x.mean())

        def left():
            found = []
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    if process.cmdline() == command:
                        found.append(process)
            return found

        try:
            estimate(waits, timeout=1)
            assert until(lambda: not left())
        finally:
            for process in left():
                process.kill()


def guarded(function):
    """Return a function that has its side effects in workers only."""
    here = os.getpid()

    def in_workers(x):
        return function(x) if os.getpid() != here else float(x.mean())

    return in_workers


TRAPS = ("numpy", "scipy", "threadpoolctl", "cloudpickle", "multiprocess", "privatize", "dill", "random")
ELSEWHERE = """
import sys
import numpy as np
from privatize import estimate_sensitivity, plan, samplers

def spread(x):
    return float(np.quantile(x, 0.9) - np.quantile(x, 0.1))

for workers in ("inline", 2):
    found = estimate_sensitivity(
        spread, n=30, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.2), seed=1, workers=workers
    )
    print(found.value)
"""


def test_nothing_is_imported_from_the_working_folder(tmp_path):
    """A numpy.py in a folder of data would run in workers, with the rights of the caller."""
    (tmp_path / "script").mkdir()
    (tmp_path / "data").mkdir()
    script = tmp_path / "script" / "script.py"
    script.write_text(ELSEWHERE)
    for name in TRAPS:
        trap = f"open({str(tmp_path / 'trapped')!r}, 'a').write({name!r})\nraise SystemExit(3)\n"
        (tmp_path / "data" / f"{name}.py").write_text(trap)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path / "data",
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not (tmp_path / "trapped").exists(), (tmp_path / "trapped").read_text()
    assert done.returncode == 0, done.stderr
    here, there = done.stdout.split()
    assert here == there


@pytest.mark.parametrize("name", ["PYTHONSAFEPATH", "PYTHONHASHSEED"])
def test_functions_do_not_see_what_is_set_for_the_server(name):
    """What is set for our fork server would change programs that a function starts."""
    if name in os.environ:
        pytest.skip(f"{name} is set for these tests")

    def shows_setting(x):
        return float(x.mean()) + 10 * (name in os.environ)

    assert estimate(shows_setting).value == estimate(shows_setting, workers="inline").value < 1
    assert name not in os.environ


CHANGED = """
import os, sys
sys.path.insert(0, sys.argv[1])
import privatize
assert privatize.__file__.startswith(sys.argv[1])
import numpy as np
from privatize import estimate_sensitivity, plan, samplers
from privatize.errors import ExecutionError

def middle(x):
    return float(np.median(x))

made = dict(n=30, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.2), seed=1)
print(estimate_sensitivity(middle, **made, workers="inline").value)
from multiprocess import spawn
theirs = spawn.get_preparation_data  # so that the server does not have our folders
spawn.get_preparation_data = lambda name: {k: v for k, v in theirs(name).items() if k != "sys_path"}
try:
    print(estimate_sensitivity(middle, **made, workers=2).value)
except ExecutionError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("changed", [True, False])
def test_a_worker_with_other_code_of_this_library_refuses(changed, tmp_path):
    """Some gaps would be measured by one version of this library, and some by another."""
    copy = tmp_path / "other" / "privatize"
    shutil.copytree(Path(package.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    if changed:
        with (copy / "progress.py").open("a") as file:
            file.write("\n# another version\n")
    script = tmp_path / "script.py"
    script.write_text(CHANGED)
    done = subprocess.run(
        [sys.executable, str(script), str(copy.parent)],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.strip().split("\n")
    if changed:
        assert second.startswith("refused:") and "version of numpy or of this library" in second
    else:
        assert second == first
