"""An estimate is made once for all threads and methods, and never for another function."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from privatize import (
    Sensitivity,
    estimate_sensitivity,
    plan,
    privatize,
    samplers,
)
from privatize.errors import (
    InfiniteSensitivityError,
    NotRememberedWarning,
    NotReproducibleError,
    ZeroSensitivityError,
)
from privatize.function import calibrator
from tests.function.privatized import PROMISE, UNIT, Scaler, counted, importable
from tests.identity.sets import two_orders


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
class TestReplacedSettings:
    """What `replace` returns finds the estimate at once, if nothing changed that it depends on."""

    @staticmethod
    def warm():
        f = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(lambda x: float(x.mean()))
        for _ in range(4):
            f(np.linspace(0, 1, 20))
        return f

    def test_another_epsilon_needs_no_fingerprint(self, monkeypatch):
        """Somebody who asks with another epsilon each time would wait for two fingerprints each time."""
        f, taken = self.warm(), []
        monkeypatch.setattr(calibrator, "token", lambda *args, **_: taken.append(args))
        monkeypatch.setattr(calibrator, "identity_of", lambda *args, **_: taken.append(args))
        for epsilon in (0.5, 2, 0.5):
            assert f.replace(epsilon=epsilon, budget=None).release(np.linspace(0, 1, 20)).epsilon == epsilon
        assert not taken

    @pytest.mark.parametrize(
        "change",
        [
            {"sampler": samplers.uniform(0, 2)},
            {"sampler": samplers.uniform(0, 1)},
            {"mechanism": "gaussian", "delta": 1e-6},
            {"gamma": 0.25},
            {"gamma": None, "sensitivity": 7.0},
            {"seed": 2},
            {"seed": None},
            {"min_sensitivity": 50.0},
            {"version": "2"},
            {"domain": "as-is"},
            {"timeout": 60.0},
            {"store": "memory"},
        ],
        ids=str,
    )
    def test_another_setting_has_another_quick_key(self, change):
        """An answer would get the noise of another promise, P, plan or floor."""
        f = self.warm()
        g = f.replace(**change)
        assert f.settings.short == f.replace(epsilon=2).settings.short != g.settings.short
        found = g.release(np.linspace(0, 1, 20))
        expected = privatize(
            **{"epsilon": 1, "gamma": 0.3, "sampler": samplers.uniform(0, 1), "seed": 1} | change
        )
        if change != {"seed": None}:
            assert found.sensitivity == expected(f.__wrapped__).release(np.linspace(0, 1, 20)).sensitivity

    def test_a_bound_that_a_function_returns_is_asked_for_each_time(self):
        """A user who corrects a bound that was too small would still get the small one."""
        wide = {"bound": 1.0}
        bound = lambda n: wide["bound"]  # noqa: E731
        f = privatize(epsilon=1, sensitivity=bound, sampler=samplers.uniform(0, 1))(lambda x: float(x.mean()))
        for _ in range(4):
            assert f.release(np.linspace(0, 1, 20)).sensitivity == pytest.approx(1)
        wide["bound"] = 3.0
        assert f.release(np.linspace(0, 1, 20)).sensitivity == pytest.approx(3)

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
    def test_copies_make_their_own(self, copied):
        """The ids in it are those of the original's objects: for a copy they may be those of anything."""
        settings = self.warm().settings
        made = copied(settings)
        assert "short" in vars(settings) and "short" not in vars(made)
        assert made.key == settings.key


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


HASHES = """
import sys
import numpy as np
from privatize import estimate_sensitivity, privatize, samplers

COEFFICIENTS, RUNS = {"age": 1.0, "income": 10.0}, []
COLUMNS = {"age", "income"}

def first(x):
    column, *others = COLUMNS
    return COEFFICIENTS[column] * x.sum()

def sum_of_all(x):
    return sum(COEFFICIENTS[column] * x.sum() for column in sorted(COLUMNS))

def by_hash(x):
    return (1 + hash("income") % 1000) * x.sum()

def views(d):
    return d.keys()

def by_views(x):
    return COEFFICIENTS[[*views(COEFFICIENTS) & views(COEFFICIENTS)][0]] * x.sum()

def by_type(x):
    return COEFFICIENTS[[*type(EMPTY)(COEFFICIENTS)][0]] * x.sum()

EMPTY = frozenset()
function = globals()[sys.argv[2]]
options = dict(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), store=sys.argv[1])
try:
    print(privatize(**options)(function).estimate(50).value)
except Exception as error:
    print(type(error).__name__)
"""


class TestOrdersOfSets:
    """The order of a set of strings is another one in the next process."""

    def seeds(self):
        """Return two hash seeds under which a set has other orders."""
        script, found = "print(*{'age', 'income'})", {}
        for seed in range(50):
            environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
            done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True)
            found[done.stdout] = seed
            if len(found) == 2:
                return list(found.values())
        raise AssertionError("50 hash seeds gave one order.")

    def in_processes(self, path, name):
        """Return what is estimated under one hash seed, another one, and the first once more."""
        found, seeds = [], self.seeds()
        for seed in (*seeds, seeds[0]):
            environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
            command = [sys.executable, "-c", HASHES, str(path), name]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            found.append(done.stdout.strip())
        return found

    @pytest.mark.parametrize("name", ["first", "by_hash", "by_views", "by_type"])
    def test_another_process(self, name, tmp_path):
        """The noise would be for another column, ten times too small. The first process stays right."""
        first, second, third = self.in_processes(tmp_path / f"{name}.db", name)
        assert float(first) == float(third) > 0 and second == "NotReproducibleError"

    def test_a_function_that_sorts(self, tmp_path):
        """What does not depend on the order is remembered for all processes."""
        first, second, third = self.in_processes(tmp_path / "store.db", "sum_of_all")
        assert float(first) == float(second) == float(third) > 0

    def test_this_process(self):
        """A set with the same strings may have another order here, too."""
        one, other = two_orders()
        factors = dict(zip(one, (1.0, 10.0), strict=True))

        def made(names):
            return privatize(**PROMISE)(lambda x: factors[next(iter(names))] * float(x.mean()))

        assert made(one).estimate(30).value > 0
        with pytest.raises(NotReproducibleError):
            made(other).estimate(30)

    def test_gaps_that_came_later(self):
        """What was measured here says nothing about gaps that another process has stored since then."""
        one, other = two_orders()
        factors = dict(zip(one, (1000.0, 1.0), strict=True))

        def made(names, gamma):
            options = PROMISE | {"gamma": gamma, "seed": 5}
            return privatize(**options)(lambda x: factors[next(iter(names))] * float(x.mean()))

        assert made(one, 0.5).estimate(30).value > 1
        made(other, 0.2).forget()
        assert made(other, 0.2).estimate(30).value < 1
        with pytest.raises(NotReproducibleError):
            made(one, 0.2).estimate(30)

    def test_measured_again_once(self):
        """Each function object, and each call, would cost evaluations."""
        names = {"a", "b"}
        raw = counted(lambda x: float(len(names) * x.mean()))
        privatize(**PROMISE)(raw).estimate(30)
        runs = len(raw.notes.list)
        privatize(**PROMISE)(raw).estimate(30)
        assert len(raw.notes.list) == runs
