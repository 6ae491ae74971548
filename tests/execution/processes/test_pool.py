"""Whatever a function does to its process, only its own pair fails, and no process is left behind."""

import contextlib
import ctypes
import hashlib
import logging
import os
import pickle
import resource
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

from privatize import plan
from privatize.errors import ExecutionError, InfiniteSensitivityError, PrivatizeError
from privatize.execution.processes import pool as processes
from tests.cases import for_each
from tests.execution.processes.programs import (
    ENVIRONMENT,
    estimate,
    mean,
    servers,
    until,
    workers,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")


def raises(x):
    """Raise on the data on which the functions below harm their process."""
    if x[0] > 0.96:
        raise ValueError("too large")
    return float(x.mean())


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

    @pytest.mark.slow
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
        # Two runs for each missing pair, and for each of at most 13 that are checked: at first those that the
        # first program left, and at the end; and one on private data.
        missing, checked = 2 * (219 - known), 2 * 13
        assert missing + 2 <= program.runs() - before <= missing + 2 * checked + 1
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


def test_workers_that_have_not_begun():
    """Ctrl-C while workers start would wait for them, leave them behind, or kill another process."""
    made = processes.Pool()
    package = processes.Package("0" * 64, b"", processes.__name__)
    assert not made.prepare(package, 2)  # the server needs longer to start
    assert [worker.process.pid for worker in made.workers] == [None, None]
    server = made.method.server._forkserver_pid
    made.close()
    assert not made.workers
    children = lambda: [each for each in psutil.Process(server).children() if each.is_running()]  # noqa: E731
    time.sleep(2)  # they begin, and see that nobody waits for them
    assert until(lambda: not children())
    made.method.server._stop()


class EndsItsProcess:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (3,)


@pytest.mark.parametrize(
    ("payload", "error", "words"),
    [(b"", processes.Refused, "not what was sent"), (EndsItsProcess(), ExecutionError, "exit code 3")],
    ids=["refused", "lost"],
)
def test_a_job_that_cannot_be_loaded(payload, error, words):
    """It would be tried forever, or a pair that was never evaluated would count as infinite."""
    sent = pickle.dumps(payload)
    name = hashlib.sha256(sent).hexdigest() if payload else "0" * 64
    package, queue = (
        processes.Package(name, sent, processes.__name__),
        processes.SpanQueue([(0, 5)], 256, None),
    )
    with pytest.raises(error, match=words):
        list(processes.pool().run(package, queue, workers=2, timeout=None))
    assert queue.left == 5
