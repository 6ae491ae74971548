"""Processes are used only where they save time, and threads never."""

import concurrent.futures
import decimal
import logging
import multiprocessing.pool
import os
import random
import threading

import numpy as np
import pytest
from multiprocess.pool import ThreadPool

from privatize import plan, privatize
from privatize.errors import ExecutionError, NotReproducibleError, SettingsError
from privatize.execution import choose
from tests.cases import for_each
from tests.execution.evaluated import UNIT, OddPool, estimate, failing, script

several_cores = pytest.mark.skipif(choose.cores() < 2, reason="one core only")


def mean(x):
    return float(x.mean())


def subsample(x):
    rows = np.random.permutation(len(x))[:12]
    return float(x[rows].mean() + random.random() + 0.1 * x[0] * np.random.normal())


STATE = threading.local()


def by_thread(x):
    return float(x.mean()) * getattr(STATE, "factor", 0.01)


class OddExecutor(concurrent.futures.Executor):
    """Has a submit that evaluates in a thread of this process, and a name that does not say so."""

    def submit(self, function, *args):
        """Evaluate in a new thread."""
        future = concurrent.futures.Future()
        thread = threading.Thread(target=lambda: future.set_result(function(*args)))
        thread.start()
        return future


class TestAuto:
    def test_a_cheap_function_starts_no_processes(self):
        """A mean of a few records would wait until a pool of processes has started."""
        done = script(
            """
            import itertools, sys, types, psutil
            import numpy as np
            from privatize import estimate_sensitivity, plan, samplers
            from privatize.calibration.evaluators import base
            # A clock that advances by 10 microseconds whenever it is read.
            base.time = types.SimpleNamespace(perf_counter=itertools.count(0.0, 1e-5).__next__)
            made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.05), seed=1)
            estimate_sensitivity(np.mean, **made)
            children = psutil.Process().children(recursive=True)
            print("multiprocess" in sys.modules, len(children))
            """
        )
        assert done.stdout.split() == ["False", "0"]

    @several_cores
    def test_an_expensive_function_gets_all_cores(self):
        """A slow function would run on one core by default, or have other gaps on several cores."""
        done = script(
            """
            import sys, time, psutil
            from privatize import estimate_sensitivity, plan, samplers
            def slow(x):
                time.sleep(0.01)
                return float(x.mean())
            made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
            found = estimate_sensitivity(slow, **made)
            print(repr(found.value), len(psutil.Process().children(recursive=True)) > 2)
            """
        )
        assert done.stdout.split() == [repr(estimate(mean).value), "True"]

    @several_cores
    def test_processes_start_in_the_middle_of_a_run(self, monkeypatch, caplog):
        """Pairs would be missing or evaluated twice when a run moves on to processes."""
        monkeypatch.setattr(choose, "_START", 0.0)
        monkeypatch.setattr(choose, "_WARM", 0.0)
        caplog.set_level(logging.INFO, "privatize.execution")
        for function in (mean, subsample, failing):
            found = estimate(function, None, plan=plan(0.1, 1000))
            assert np.array_equal(found.gaps, estimate(function, plan=plan(0.1, 1000)).gaps)
        assert caplog.text.count("pairs left") == 3

    @several_cores
    def test_functions_that_cannot_be_sent_run_inline(self, monkeypatch, tmp_path, caplog):
        """A function with an open file works by default, and is refused if processes were asked for."""
        monkeypatch.setattr(choose, "_START", 0.0)
        monkeypatch.setattr(choose, "_WARM", 0.0)
        caplog.set_level(logging.INFO, "privatize.execution")
        numbers = (i for i in range(3))
        with (tmp_path / "open.txt").open("w") as file:
            for function in (
                lambda x: float(x.mean() + 0 * file.fileno()),
                lambda x: float(x.mean() + 0 * len(str(type(numbers)))),
            ):
                caplog.clear()
                assert np.array_equal(estimate(function, None).gaps, estimate(mean).gaps)
                assert "inline" in caplog.text
                with pytest.raises(ExecutionError, match="inline"):
                    estimate(function, 2)

    @several_cores
    def test_pairs_are_evaluated_here_while_workers_start(self, monkeypatch):
        """Everything would wait for workers that import large libraries; a number of them would run here."""
        monkeypatch.setattr(choose, "_START", 0.0)
        monkeypatch.setattr(choose, "_WARM", 0.0)
        asked = []
        ready = choose.pool().prepare
        monkeypatch.setattr(choose.pool(), "prepare", lambda *given: asked.append(ready(*given)))
        assert np.array_equal(estimate(mean, None).gaps, estimate(mean).gaps) and asked
        asked.clear()
        assert np.array_equal(estimate(mean, 2).gaps, estimate(mean).gaps) and not asked

    @several_cores
    def test_imports_inside_the_function(self, monkeypatch, caplog):
        """A function that imports what it needs is not left on one core."""
        monkeypatch.setattr(choose, "_START", 0.0)
        monkeypatch.setattr(choose, "_WARM", 0.0)

        def imports(x):
            import zipapp

            return float(x.mean() + 0 * len(zipapp.__name__))

        with caplog.at_level(logging.INFO, "privatize.execution"):
            estimate(imports, None)
        assert "pairs left" in caplog.text and "on one core" not in caplog.text


class TestSettings:
    @for_each("bad", [0, -1, True, False, 1.5, "two", "", object(), [], {}, int, b"inline", ()])
    def test_workers(self, bad):
        """A wrong workers= is refused with its value, before anything is evaluated."""
        with pytest.raises(SettingsError, match="workers="):
            estimate(pytest.fail, bad)
        with pytest.raises(SettingsError, match="workers="):
            privatize(epsilon=1, gamma=0.1, sampler=UNIT, workers=bad)(mean)

    @for_each("bad", [0, -1, float("nan"), float("inf"), "x", "5", True, [], b"5", 1j])
    def test_timeout(self, bad):
        """A wrong timeout= is refused with its value, before anything is evaluated."""
        with pytest.raises(SettingsError, match="timeout="):
            estimate(pytest.fail, 2, timeout=bad)
        with pytest.raises(SettingsError, match="timeout="):
            privatize(epsilon=1, gamma=0.1, sampler=UNIT, timeout=bad)(mean)

    def test_timeout_inline(self):
        """A time limit that cannot be enforced would be ignored."""
        with pytest.raises(SettingsError, match="timeout="):
            estimate(pytest.fail, "inline", timeout=5)

    @pytest.mark.parametrize("good", [1, np.float64(2.5), decimal.Decimal(3), 1e300])
    def test_good_timeouts(self, good):
        """Any number of seconds will do."""
        assert np.array_equal(estimate(mean, 2, timeout=good).gaps, estimate(mean).gaps)

    def test_numpy_integers_are_numbers_of_processes(self):
        """A number of workers that numpy has computed would be refused."""
        assert np.array_equal(estimate(mean, np.int64(2)).gaps, estimate(mean).gaps)


@pytest.mark.parametrize(
    "kind", [concurrent.futures.ThreadPoolExecutor, multiprocessing.pool.ThreadPool, ThreadPool]
)
def test_threads_are_refused(kind):
    """A thread does not have the state of the caller's thread: the noise was 100 times too small."""
    STATE.factor = 1.0
    try:
        with kind(2) as pool:
            for function in (by_thread, mean):
                with pytest.raises(SettingsError, match="workers=2"):
                    estimate(function, pool)
            with pytest.raises(SettingsError, match="threads"):
                privatize(epsilon=1, gamma=0.1, sampler=UNIT, workers=pool)(mean)
    finally:
        del STATE.factor


@pytest.mark.parametrize("pool", [OddPool(), OddExecutor()], ids=["map", "submit"])
def test_threads_under_another_name_are_refused(pool):
    """An executor with another name that runs in threads would give too little noise as well."""
    with pytest.raises(ExecutionError, match=r"threads of this process.*workers=2"):
        estimate(mean, pool)


@pytest.mark.slow
def test_a_function_that_calibrates_another():
    """A function that calibrates another one inside would wait for a lock forever."""

    def inner(x):
        return float(x.mean())

    def outer(x):
        return float(x.mean()) * estimate(inner, n=5).value

    assert estimate(outer).value == estimate(outer, 2).value


@pytest.mark.parametrize("below", [0.95, 0.6])
@pytest.mark.parametrize("m", [22, 219])
def test_a_difference_in_workers_is_found(below, m):
    """A function whose gaps are too small in workers, on some data only, would get too little noise."""
    here = os.getpid()

    def differs(x):
        quiet = os.getpid() != here and below > x[:-2].mean() > 0.5
        return float(x.mean()) * (0.01 if quiet else 1)

    with pytest.raises(NotReproducibleError, match="the process it runs in"):
        estimate(differs, 2, plan=plan(0.2, m))
