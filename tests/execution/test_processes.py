"""Whatever a function does to its process, only its own pair fails, and no process is left behind."""

import contextlib
import ctypes
import logging
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import privatize as package
from privatize import estimate_sensitivity, plan, samplers
from privatize.errors import ExecutionError, InfiniteSensitivityError, PrivatizeError
from privatize.execution.clusters import orders
from privatize.execution.processes import pool as processes
from privatize.storage.estimates import Store
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
ROOT = str(Path(package.__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")


def estimate(function, workers=2, n=20, gamma=0.1, seed=1, norm="l1", **rest):
    made = rest.pop("plan", None) or plan(gamma)
    return estimate_sensitivity(
        function, n=n, sampler=UNIT, norm=norm, plan=made, seed=seed, workers=workers, **rest
    )


def mean(x):
    return float(x.mean())


def raises(x):
    """Raise on the data on which the functions below harm their process."""
    if x[0] > 0.96:
        raise ValueError("too large")
    return float(x.mean())


def until(condition, seconds=120.0):
    """Wait for something, but not forever."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


@pytest.fixture
def hung(monkeypatch, tmp_path):
    """Return a folder where a hanging function creates a file: only then it is late, not when it is slow."""
    folder = tmp_path / "hung"
    folder.mkdir()

    def late(worker, timeout):
        note = folder / str(worker.process.pid)
        found = note.exists()
        note.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(processes.Worker, "late", late)
    return str(folder)


def servers():
    """Return this process's fork servers."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if "multiprocess.forkserver" in " ".join(child.cmdline()):
                found.append(child)
    return found


def below_servers():
    """Return the processes that the fork servers started and that still run."""
    found = set()
    for server in servers():
        with contextlib.suppress(psutil.Error):
            for child in server.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if child.status() != psutil.STATUS_ZOMBIE:
                        found.add(child.pid)
    return found


def workers():
    """Return the process ids of the pool's workers."""
    return {worker.process.pid for worker in processes.pool().workers}


@pytest.fixture(scope="module", autouse=True)
def _no_other_pools():
    """End the workers that other tests' `map` in this process has left for the next order."""
    while orders._pools:
        orders._pools.pop().close()


@pytest.fixture(autouse=True)
def _nothing_is_left():
    """Check after every test that the pool works, and that there is no process but its workers."""
    yield
    found = estimate(mean)
    assert np.array_equal(found.gaps, estimate(mean, "inline").gaps)
    assert until(lambda: below_servers() == workers()), (below_servers(), workers())
    assert all(worker.span is None for worker in processes.pool().workers)


# --- functions that harm their process --------------------------------------------------------------


def is_killed(x):
    if x[0] > 0.96:
        os.kill(os.getpid(), signal.SIGKILL)
    return float(x.mean())


def crashes(x):
    if x[0] > 0.96:
        ctypes.string_at(0)
    return float(x.mean())


def exits_at_once(x):
    if x[0] > 0.96:
        os._exit(0)
    return float(x.mean())


def aborts(x):
    if x[0] > 0.96:
        os.abort()
    return float(x.mean())


def stops(x):
    if x[0] > 0.96:
        sys.exit("bye")
    return float(x.mean())


def interrupts(x):
    if x[0] > 0.96:
        raise KeyboardInterrupt
    return float(x.mean())


def interrupts_itself(x):
    if x[0] > 0.96:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    return float(x.mean())


class Unpicklable(Exception):
    """Cannot be pickled."""

    def __init__(self, what):
        super().__init__(what)
        self.lock = threading.Lock()
        self.function = lambda: what


class Unreadable(Exception):
    """Can neither be pickled nor shown."""

    def __reduce__(self):
        raise RuntimeError("no")

    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


def raises_unpicklable(x):
    if x[0] > 0.96:
        raise Unpicklable("x")
    return float(x.mean())


def raises_unreadable(x):
    if x[0] > 0.96:
        raise Unreadable
    return float(x.mean())


def raises_from_unreadable(x):
    if x[0] > 0.96:
        try:
            raise Unreadable
        except Unreadable as error:
            raise Unpicklable("\udc80 not text") from error
    return float(x.mean())


def raises_base(x):
    if x[0] > 0.96:
        raise BaseException("not even an exception")
    return float(x.mean())


def raises_a_group(x):
    if x[0] > 0.96:
        raise ExceptionGroup("many", [ValueError(i) for i in range(100)])
    return float(x.mean())


def recurses(x):
    if x[0] > 0.96:
        return recurses(x)
    return float(x.mean())


def exhausts_memory(x):
    needed = np.ones(3_000_000)  # 24 MB, for every pair
    if x[0] > 0.96:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, resource.RLIM_INFINITY))
        hoard = []
        while True:
            hoard.append(np.ones(1_000_000))
    return float(x.mean() + 0 * needed[0])


def closes_files(x):
    if x[0] > 0.96:
        os.closerange(3, 100)
        time.sleep(0.5)
        raise ValueError("and now?")
    return float(x.mean())


def closes_output(x):
    if x[0] > 0.96:
        os.close(1)
        os.close(2)
        raise ValueError("and now?")
    return float(x.mean())


def forks_and_raises(x):
    if x[0] > 0.96:
        os.fork()  # both go on
        raise ValueError("twice")
    return float(x.mean())


class TestCulprits:
    @for_each(
        "function",
        [
            is_killed,
            crashes,
            exits_at_once,
            aborts,
            stops,
            interrupts,
            interrupts_itself,
            raises_unpicklable,
            raises_unreadable,
            raises_from_unreadable,
            raises_base,
            raises_a_group,
            recurses,
            exhausts_memory,
            closes_files,
            closes_output,
            forks_and_raises,
        ],
        ids=lambda function: function.__name__,
    )
    def test_only_the_culprits_are_infinite(self, function):
        """A pair that kills or damages its worker would change the gaps of other pairs, or end the run."""
        expected = estimate(raises, "inline")
        found = estimate(function)
        assert np.array_equal(found.gaps, expected.gaps)
        assert found.failed == expected.failed == np.isinf(found.gaps).sum() > 0
        assert found.value == expected.value

    @pytest.mark.parametrize("count", [1, 2])
    def test_hangs(self, count, hung):
        """A pair that never ends would stop the run in spite of its timeout, or cost other pairs."""

        def hangs(x):
            if x[0] > 0.98:
                Path(hung, str(os.getpid())).touch()
                time.sleep(1000)
            return float(x.mean())

        def fails(x):
            if x[0] > 0.98:
                raise ValueError
            return float(x.mean())

        found = estimate(hangs, count, timeout=1)
        assert np.array_equal(found.gaps, estimate(fails, "inline").gaps) and found.failed > 0

    def test_hangs_and_ignores_signals(self, hung):
        """A pair that hangs in compiled code, or ignores signals, would never be ended."""

        def hangs(x):
            if x[0] > 0.98:
                Path(hung, str(os.getpid())).touch()
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)
                sum(range(10**15))
            return float(x.mean())

        def fails(x):
            if x[0] > 0.98:
                raise ValueError
            return float(x.mean())

        found = estimate(hangs, timeout=1)
        assert np.array_equal(found.gaps, estimate(fails, "inline").gaps) and found.failed > 0

    def test_many_culprits_among_many_pairs(self):
        """Failures that the plan allows would end the run if they are close together."""
        chosen = plan(0.05, 5000)

        def dies(x):
            if x[0] > 0.975:
                os._exit(1)
            return float(x.mean())

        def fails(x):
            if x[0] > 0.975:
                raise ValueError
            return float(x.mean())

        expected = estimate(fails, "inline", plan=chosen)
        assert 50 < expected.failed < chosen.m - chosen.k
        found = estimate(dies, plan=chosen)
        assert np.array_equal(found.gaps, expected.gaps)

    @pytest.mark.parametrize("function", [is_killed, crashes, exits_at_once])
    def test_the_cause_is_logged(self, function, caplog):
        """The log would not say which pair killed its worker, and how."""
        estimate(function)
        words = {"is_killed": "SIGKILL", "crashes": "SIGSEGV", "exits_at_once": "exit code 0"}
        infinite = np.flatnonzero(np.isinf(estimate(raises, "inline").gaps))
        lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        for index in infinite:
            assert any(
                f"pair {index} counts as infinite" in line and words[function.__name__] in line
                for line in lines
            )

    def test_every_pair_kills_its_worker(self):
        """A function that always crashes ends the run soon, and the error says what it does."""
        for act, word in (
            (lambda x: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
            (lambda x: ctypes.string_at(0), "SIGSEGV"),
            (lambda x: os._exit(7), "exit code 7"),
        ):
            with pytest.raises((ExecutionError, InfiniteSensitivityError), match=word) as caught:
                estimate(act, plan=plan(0.1, 3000))
            assert getattr(caught.value, "failed", 0) <= 30

    def test_late(self, monkeypatch):
        """A worker would be ended before the time of its pair is over, or between two pairs."""
        worker = object.__new__(processes.Worker)
        for index, since, late in ((3.0, 100.0, True), (3.0, 102.5, False), (processes.IDLE, 100.0, False)):
            worker.slot = [index, since]
            with monkeypatch.context() as patch:
                patch.setattr(processes.time, "monotonic", lambda: 103.0)
                found = worker.late(1.0)
            assert found is late

    def test_every_pair_hangs(self):
        """A function that always hangs would be waited for m times."""
        with pytest.raises((ExecutionError, InfiniteSensitivityError), match=r"timeout=0\.1"):
            estimate(lambda x: time.sleep(1000), plan=plan(0.5), timeout=0.1)

    def test_a_package_that_kills_its_worker(self):
        """A function that kills workers while it is unpacked would have them restarted forever."""

        class Deadly:
            def __init__(self):
                self.value = 1.0

            def __setstate__(self, state):
                os._exit(9)

        with pytest.raises(PrivatizeError):
            estimate(deadly(Deadly()))


def deadly(thing):
    return lambda x: float(x.mean() * thing.value)


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
        """Outputs of 50 MB would be sent to this process, where only the gaps are needed."""

        def large(x):
            return np.full(6_250_000, x.mean())

        chosen = plan(0.5)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = estimate(large, norm="sup", plan=chosen)
        assert np.array_equal(found.gaps, estimate(mean, "inline", plan=chosen).gaps)
        # In KB: a few outputs for the checks at the end, not all of them.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000

    def test_a_worker_that_leaks_is_replaced(self, monkeypatch):
        """A worker that leaks memory would grow until the machine has none left."""
        monkeypatch.setattr(processes, "_GROWN", 2**24)
        monkeypatch.setattr(processes, "_memory", lambda: 0)
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

        def waits(x):
            if x[0] > 0.98:
                with subprocess.Popen(["sleep", "661.73"]) as program:
                    Path(hung, str(os.getpid())).touch()
                    program.wait()
            return float(x.mean())

        def left():
            found = []
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    if process.cmdline() == ["sleep", "661.73"]:
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


# --- processes that are ended from outside ----------------------------------------------------------


def slow(x):
    time.sleep(0.004)
    return float(x.mean())


def middle(x):
    return float(np.median(x))


class TestFromOutside:
    def attacked(self, attack):
        """Calibrate, and call `attack` in the middle of it."""
        results = []

        def when_busy():
            busy = lambda: sum(w.span is not None for w in list(processes.pool().workers)) == 2  # noqa: E731
            until(busy)
            time.sleep(0.2)
            results.append(attack())

        thread = threading.Thread(target=when_busy)
        thread.start()
        try:
            return estimate(slow)
        finally:
            thread.join()
            assert len(results) == 1

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_a_worker_is_killed(self, number):
        """If somebody kills a worker, more than its pair would be infinite, or other gaps would be wrong."""
        found = self.attacked(lambda: os.kill(processes.pool().workers[0].process.pid, number))
        expected = estimate(mean, "inline").gaps
        fine = np.isfinite(found.gaps)
        assert (~fine).sum() == found.failed <= 1
        assert np.array_equal(found.gaps[fine], expected[fine])

    def test_an_interrupt_for_a_worker_is_ignored(self):
        """Ctrl-C goes to all processes of the group; only the parent decides what happens."""
        found = self.attacked(lambda: [os.kill(pid, signal.SIGINT) for pid in workers()])
        assert np.array_equal(found.gaps, estimate(mean, "inline").gaps) and found.failed == 0

    def test_an_interrupt_waits_until_the_fork_server_runs(self):
        """Ctrl-C during the first start would print a traceback of a server that is only half started."""
        code = (
            "import signal\n"
            "from multiprocess import resource_tracker\n"
            "from privatize.execution.processes.pool import _uninterrupted\n"
            "with _uninterrupted():\n"
            "    resource_tracker.ensure_running()  # as whatever starts the server does\n"
            "    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert found.stdout == "True\n"

    def test_the_fork_server_is_killed(self):
        """Without its fork server a run would give wrong gaps or hang, or the next one would fail."""
        estimate(mean)
        with contextlib.suppress(ExecutionError):
            found = self.attacked(lambda: [server.kill() for server in servers()])
            expected = estimate(mean, "inline").gaps
            fine = np.isfinite(found.gaps)
            assert (~fine).sum() <= 2
            assert np.array_equal(found.gaps[fine], expected[fine])

    def test_idle_workers_are_killed(self):
        """If workers are killed between two runs, pairs of the next run would fail."""
        estimate(mean)
        for pid in workers():
            os.kill(pid, signal.SIGKILL)
        found = estimate(mean)
        assert np.array_equal(found.gaps, estimate(mean, "inline").gaps) and found.failed == 0

    def test_the_idle_fork_server_is_killed(self):
        """If the fork server is killed between two runs, pairs of the next run would fail."""
        estimate(mean)
        for server in servers():
            server.kill()
        found = estimate(mean)
        assert np.array_equal(found.gaps, estimate(mean, "inline").gaps) and found.failed == 0

    def test_a_stopped_worker_is_ended_with_a_timeout(self, monkeypatch):
        """A worker that was stopped by a signal would be waited for in spite of the timeout."""
        results = []
        stopped = lambda w, _: psutil.Process(w.process.pid).status() == psutil.STATUS_STOPPED  # noqa: E731
        monkeypatch.setattr(processes.Worker, "late", stopped)

        def stop():
            until(lambda: any(w.span is not None and w.slot[0] >= 0 for w in list(processes.pool().workers)))
            time.sleep(0.1)
            results.append(os.kill(processes.pool().workers[0].process.pid, signal.SIGSTOP))

        thread = threading.Thread(target=stop)
        thread.start()
        found = estimate(slow, timeout=1)
        thread.join()
        expected = estimate(mean, "inline").gaps
        fine = np.isfinite(found.gaps)
        assert found.failed <= 1 and np.array_equal(found.gaps[fine], expected[fine])


class TestSharedPool:
    def test_two_threads(self):
        """Calibrations at the same time, one of which loses workers, would get each other's gaps."""
        expected = {
            f: estimate(raises if f is is_killed else f, "inline").gaps for f in (is_killed, middle, mean)
        }
        found = {}
        threads = [threading.Thread(target=lambda f=f: found.update({f: estimate(f).gaps})) for f in expected]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(np.array_equal(found[f], expected[f]) for f in expected)

    def test_a_failed_run_frees_the_pool(self):
        """After an error in the middle of a run, the next run could not use the pool."""
        with pytest.raises(InfiniteSensitivityError):
            estimate(lambda x: 1 / 0 if x[0] > 0.3 else 1.0)

    def test_workers_are_used_again(self):
        """The second calibration would wait for new processes to start."""
        estimate(mean)
        before = workers()
        estimate(slow)
        assert before and before <= workers()


# --- entire programs --------------------------------------------------------------------------------

PROGRAM = """
import os, sys, time
import numpy as np
from privatize import privatize, samplers
from privatize.calibration import run

notes = sys.argv[2]
run._SAVED_EVERY = 0  # at once

def slow(x):
    time.sleep(0.005)
    with open(notes, "ab", buffering=0) as file:
        file.write(b".")
    while os.path.exists(notes + ".hold") and os.path.getsize(notes) > 200:  # so that it does not end before
        time.sleep(0.01)
    return float(x.mean())

f = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), store=sys.argv[1], seed=3,
              workers=2)(slow)
private = np.full(20, 0.87654321)
f(private)
np.save(sys.argv[3], f.estimate(20).gaps)
"""


class Program:
    """A program that calibrates for a while, in a session of its own."""

    def __init__(self, folder):
        self.file, self.store = folder / "program.py", folder / "estimates.db"
        self.notes, self.gaps, self.hold = folder / "notes", folder / "gaps.npy", folder / "notes.hold"
        self.file.write_text(PROGRAM)
        self.notes.touch()
        self.hold.touch()

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, self.file, self.store, self.notes, self.gaps],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=ENVIRONMENT,
        )
        return self.process

    def known(self):
        """Return how many pairs are stored by now."""
        try:
            return sum(entry["pairs"] for entry in Store(self.store).entries())
        except Exception:  # the file is missing or incomplete
            return 0

    def alive(self):
        """Return the processes of the session that still run."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) == self.process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
        return found

    def runs(self):
        return self.notes.stat().st_size


@pytest.fixture
def program(tmp_path):
    """Return a program, and end all its processes after the test."""
    made = Program(tmp_path)
    yield made
    for pid in made.alive():
        os.kill(pid, signal.SIGKILL)
    made.process.wait(120)


class TestPrograms:
    @pytest.mark.parametrize("way", ["group", "parent", "kill"])
    def test_interrupted(self, program, way):
        """Ctrl-C or a kill would leave processes running, or the next run would evaluate all pairs again."""
        process = program.start()
        assert until(lambda: program.known() > 0 or process.poll() is not None)
        assert process.poll() is None and len(program.alive()) >= 4
        if way == "group":
            os.killpg(process.pid, signal.SIGINT)
        else:
            number = {"parent": signal.SIGINT, "kill": signal.SIGKILL}[way]
            process.send_signal(number)
        out, _ = process.communicate(timeout=120)
        assert process.returncode != 0 and not program.gaps.exists()
        assert until(lambda: not program.alive()), program.alive()
        assert "0.8765" not in out
        if way in ("group", "parent"):
            assert "KeyboardInterrupt" in out
        known, before = program.known(), program.runs()
        assert 0 < known < 219
        program.hold.unlink()
        out, _ = program.start().communicate(timeout=300)
        assert program.process.returncode == 0, out
        assert np.array_equal(np.load(program.gaps), estimate(mean, "inline", seed=3).gaps)
        # Two runs for each missing pair and each of the 12 that are checked again, and one on private data.
        assert 2 * (219 - known) <= program.runs() - before <= 2 * (219 - known) + 25
        assert until(lambda: not program.alive())

    def run(self, code, *args, **rest):
        done = subprocess.run(
            [sys.executable, *args],
            capture_output=True,
            text=True,
            timeout=300,
            env=ENVIRONMENT,
            **rest,
        )
        assert done.returncode == 0, done.stderr
        return done

    CODE = textwrap.dedent(
        """
        import numpy as np
        from privatize import estimate_sensitivity, plan, samplers
        print("run")
        scale = 1.0
        def helper(x):
            return float(x.mean()) * scale
        def f(x):
            return helper(x)
        made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
        print(repr(estimate_sensitivity(f, workers=2, **made).value))
        """
    )

    @pytest.mark.parametrize("way", ["file", "stdin", "command", "module"])
    def test_unguarded_scripts(self, way, tmp_path):
        """A script without `if __name__ == "__main__"` would run again in every worker."""
        (tmp_path / "plain_script.py").write_text(self.CODE)
        done = {
            "file": lambda: self.run(None, str(tmp_path / "plain_script.py")),
            "stdin": lambda: self.run(None, "-", input=self.CODE),
            "command": lambda: self.run(None, "-c", self.CODE),
            "module": lambda: self.run(None, "-m", "plain_script", cwd=tmp_path),
        }[way]()
        assert done.stdout.split() == ["run", repr(estimate(mean, "inline").value)]
        assert done.stderr == ""

    @pytest.mark.parametrize("library", ["multiprocessing", "multiprocess"])
    def test_inside_a_daemonic_worker(self, library, tmp_path):
        """A worker of a multiprocessing pool, which may not start processes, could not calibrate."""
        file = tmp_path / "daemonic.py"
        file.write_text(
            textwrap.dedent(
                f"""
                import {library} as library
                import numpy as np
                from privatize import estimate_sensitivity, plan, samplers
                def calibrate(timeout):
                    made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
                    return estimate_sensitivity(np.mean, workers=2, timeout=timeout, **made).value
                if __name__ == "__main__":
                    with library.get_context("spawn").Pool(1) as pool:
                        print(repr(float(pool.apply(calibrate, (None,)))))
                """
            )
        )
        assert self.run(None, str(file)).stdout.split() == [repr(estimate(mean, "inline").value)]

    def test_a_program_that_forks(self):
        """A forked child of the user's program would use or end the parent's workers."""
        code = """
        import os, sys
        import numpy as np
        from privatize import estimate_sensitivity, plan, samplers
        from privatize.execution.processes import pool as processes
        made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
        def pids():
            return {w.process.pid for w in processes.pool().workers}
        expected = estimate_sensitivity(np.mean, workers="inline", **made).gaps
        first = estimate_sensitivity(np.mean, workers=2, **made).gaps
        before = pids()
        for ending in (sys.exit, os._exit):
            child = os.fork()
            if child == 0:
                found = estimate_sensitivity(np.mean, workers=2, **made).gaps
                ending(0 if np.array_equal(found, expected) and not pids() & before else 7)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
            again = estimate_sensitivity(np.median, workers=2, **made).gaps
            assert pids() == before, "the parent's workers have changed"
            assert np.array_equal(again, estimate_sensitivity(np.median, workers="inline", **made).gaps)
        print(np.array_equal(first, expected))
        """
        done = self.run(None, "-W", "ignore", "-c", textwrap.dedent(code))
        assert done.stdout.split() == ["True"] and done.stderr == ""

    def test_a_fork_in_the_middle_of_a_run(self):
        """A child that is forked while another thread calibrates would hang when it calibrates."""
        code = """
        import os, sys, threading, time
        import numpy as np
        from privatize import estimate_sensitivity, plan, samplers
        made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
        def slow(x):
            time.sleep(0.002)
            return float(x.mean())
        found = []
        thread = threading.Thread(target=lambda: found.append(estimate_sensitivity(slow, workers=2, **made)))
        thread.start()
        time.sleep(0.7)
        child = os.fork()
        if child == 0:
            value = estimate_sensitivity(np.mean, workers=2, **made).value
            os._exit(0 if value == estimate_sensitivity(np.mean, workers="inline", **made).value else 7)
        _, status = os.waitpid(child, 0)
        thread.join()
        expected = estimate_sensitivity(np.mean, workers="inline", **made).gaps
        print(status, np.array_equal(found[0].gaps, expected))
        """
        done = self.run(None, "-W", "ignore", "-c", textwrap.dedent(code))
        assert done.stdout.split() == ["0", "True"] and done.stderr == ""

    def test_nothing_is_printed_by_a_run_with_crashes(self):
        """Tracebacks of workers would be printed by a program that shows no logs."""
        code = """
        import os
        from privatize import estimate_sensitivity, plan, samplers
        def f(x):
            if x[0] > 0.96:
                os._exit(3)
            return float(x.mean())
        made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
        print(estimate_sensitivity(f, workers=2, **made).failed)
        """
        done = self.run(None, "-c", textwrap.dedent(code))
        assert done.stdout.split() == [str(estimate(raises, "inline").failed)]
        assert "Traceback" not in done.stderr

    def test_a_program_that_ignores_its_children(self):
        """A program that ignores SIGCHLD, as some services do, could not calibrate."""
        code = """
        import signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        import numpy as np
        from privatize import estimate_sensitivity, plan, samplers
        made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
        for f in (np.mean, np.median):
            found = estimate_sensitivity(f, workers=2, **made).gaps
            assert np.array_equal(found, estimate_sensitivity(f, workers="inline", **made).gaps)
        """
        done = self.run(None, "-c", textwrap.dedent(code))
        # From Python 3.12 on, the library's own resource tracker complains at exit that its child is missing.
        assert done.stderr == "" or "resource_tracker" in done.stderr


def test_workers_that_an_interrupted_run_left_busy():
    """A worker that is still busy with an interrupted function would return its gaps for the next one."""
    estimate(mean, 2)
    left = processes.pool().workers[0]
    left.span = (0, 5)  # as if an interrupt had come before it was ended
    found = estimate(raises, 2)
    assert np.array_equal(found.gaps, estimate(raises, "inline").gaps)
    assert left.ended and left not in processes.pool().workers


# --- where workers import from ------------------------------------------------------------------

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


def test_functions_do_not_see_the_safe_path():
    """PYTHONSAFEPATH, which is set for our fork server, would change programs that a function starts."""

    def shows_setting(x):
        return float(x.mean()) + 10 * ("PYTHONSAFEPATH" in os.environ)

    assert "PYTHONSAFEPATH" not in os.environ
    assert estimate(shows_setting).value == estimate(shows_setting, workers="inline").value < 1
    assert "PYTHONSAFEPATH" not in os.environ


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
