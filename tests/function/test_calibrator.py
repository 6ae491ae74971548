"""An estimate is made once for all threads and methods, and never for another function."""

import os
import threading
import warnings

import numpy as np
import pytest

from privatize import (
    Sensitivity,
    estimate_sensitivity,
    plan,
    privatize,
)
from privatize.errors import (
    InfiniteSensitivityError,
    NotRememberedWarning,
    ZeroSensitivityError,
)
from tests.function.privatized import PROMISE, UNIT, Scaler, counted, importable


class TestMemory:
    def test_recalled_and_not_shared(self):
        """The same question is calibrated once; another n, argument or setting never shares it."""
        raw = counted(lambda x, q=0.5: float(np.quantile(x, q)))
        f = privatize(**PROMISE)(raw)
        first = f.estimate(30)
        assert isinstance(first, Sensitivity)
        runs = len(raw.notes.list)
        assert f.estimate(30) is first and f.estimate(n=30, q=0.5) is first and f.estimate(30, 0.5) is first
        f(np.ones(30) / 2)
        assert len(raw.notes.list) == runs + 1
        different = [f.estimate(31), f.estimate(30, q=0.9), f.replace(gamma=0.3).estimate(30)]
        assert len({id(e) for e in (first, *different)}) == 4

    def test_lists_and_arrays_do_not_share(self):
        """The container is part of an estimate's key."""
        f = privatize(**PROMISE)(lambda x: float(np.mean(x)))
        f(np.ones(10) / 2)
        f([0.5] * 10)
        assert len(f.calibrator.memory) == 2

    def test_changed_globals_closures_and_instances_are_misses(self):
        """A stale estimate would be too little noise, so whatever changes calibrates again."""
        state = {"factor": 1.0}
        closed = privatize(**PROMISE, seed=1)(lambda x: state["factor"] * x.mean())
        small = closed.estimate(20).value
        state["factor"] = 10.0
        assert closed.estimate(20).value == pytest.approx(10 * small)

        module = {"FACTOR": 1.0, "__name__": "__main__"}
        exec("def f(x):\n    return FACTOR * x.mean()", module)
        named = privatize(**PROMISE, seed=1)(module["f"])
        assert named.estimate(20).value == pytest.approx(small)
        module["FACTOR"] = 10.0
        assert named.estimate(20).value == pytest.approx(10 * small)

        scaler = Scaler(1.0)
        assert scaler.mean.estimate(20).value == pytest.approx(small)
        scaler.factor = 10.0
        assert scaler.mean.estimate(20).value == pytest.approx(10 * small)

    def test_what_cannot_be_encoded_is_not_remembered(self):
        """A generator in the closure cannot be encoded, so every call calibrates again, with a warning."""
        numbers = (i for i in range(3))
        raw = counted(lambda x: x.mean() if numbers else 0)
        f = privatize(**PROMISE)(raw)
        for _ in range(2):
            before = len(raw.notes.list)
            with pytest.warns(NotRememberedWarning, match="not be remembered"):
                f(np.ones(10) / 2)
            assert len(raw.notes.list) > before + 79
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(NotRememberedWarning):
                f(np.ones(10) / 2)

    def test_threads_get_one_estimate(self):
        """Concurrent first calls agree on one estimate."""
        f = privatize(**PROMISE)(np.mean)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(f(np.ones(100) / 2))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == len(set(answers)) == 8 and len(f.calibrator.memory) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # forking is what is tested
def test_a_child_forked_during_a_calibration_is_not_stuck():
    """The child's lock is its own: the thread that holds the parent's does not exist there."""
    ready, go = threading.Event(), threading.Event()

    def slow(x):
        ready.set()
        go.wait(120)
        return float(x.mean())

    notes = threading.Thread(
        target=lambda: estimate_sensitivity(slow, n=5, sampler=UNIT, norm="l1", plan=plan(0.5, "least"))
    )
    notes.start()
    ready.wait(120)
    child = os.fork()
    if child == 0:
        importable(np.full(7, 0.5))
        os._exit(17)
    go.set()
    notes.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17


def test_zero_sensitivity_releases_nothing():
    """A constant function is refused: zero noise is no privacy."""
    f = privatize(**PROMISE)(lambda x: 1.0)
    with pytest.raises(ZeroSensitivityError):
        f(np.ones(10) / 2)
    assert f.replace(min_sensitivity=0.1)(np.ones(10) / 2) != 1.0


def test_failed_calibration_is_remembered():
    """Trying again is not a way to a luckier estimate."""
    raw = counted(lambda x: 1 / 0)
    f = privatize(**PROMISE)(raw)
    messages = set()
    for _ in range(3):
        with pytest.raises(InfiniteSensitivityError, match="ZeroDivisionError") as caught:
            f(np.ones(10) / 2)
        messages.add(str(caught.value))
    assert len(messages) == 1 and len(raw.notes.list) == 12  # four of a pilot
