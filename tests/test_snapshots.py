"""Estimates are for what a function was: what changes while it runs is seen, its own doing aside."""

import types

import numpy as np
import pytest

from privatize import Budget, privatize, samplers
from privatize.decorator import PrivateFunction
from privatize.errors import CalibrationError, NotRememberedWarning, PrivateRunError
from privatize.snapshots import changed, snapshot

PROMISE = {"epsilon": 1, "gamma": 0.3, "workers": "inline", "store": None, "seed": 1}
P = samplers.uniform(0, 1)
DATA = np.linspace(0, 1, 20) ** 2

SOURCE = """
FACTOR = 1
table = {"factor": 1, "names": []}
calls = 0
log = []
cache = {}
tickets = (i for i in range(3))

class Config:
    factor = 1
    calls = 0

class Service:
    def __init__(self):
        self.factor, self.calls = 1, 0

    def mean(self, x):
        return self.factor * x.mean()

    def counting(self, x):
        self.calls += 1
        return self.factor * x.mean()

service = Service()

def by_global(x):
    return FACTOR * x.mean()

def by_helper(x):
    return by_global(x) if table else 0

def by_table(x):
    return table["factor"] * x.mean()

def by_class(x):
    return Config.factor * x.mean()

def by_instance(x):
    return service.mean(x)

def by_default(x, factors=[1]):
    return factors[0] * x.mean()

def unencodable(x):
    return FACTOR * x.mean() if tickets else 0

def counting(x):
    global calls
    calls += 1
    return FACTOR * x.mean()

def counting_in_class(x):
    Config.calls += 1
    return Config.factor * x.mean()

def logging(x):
    log.append(len(log))
    return FACTOR * x.mean()

def caching(x):
    cache[float(x.sum())] = {"n": [len(x)]}
    return FACTOR * x.mean()

def filling(x):
    cache[len(x)] = 1
    return FACTOR * x.mean()
"""


@pytest.fixture
def program():
    """Return a small program of the user's."""
    module = types.ModuleType("changing_program")
    exec(SOURCE, vars(module))
    return module


@pytest.fixture
def meanwhile(monkeypatch):
    """Return what has something happen right before, or after, a function runs on the private data."""

    def happen(before=lambda: None, after=lambda: None):
        def evaluate(self, *args, **kwargs):
            before()
            result = original(self, *args, **kwargs)
            after()
            return result

        original = PrivateFunction._evaluate
        monkeypatch.setattr(PrivateFunction, "_evaluate", evaluate)

    return happen


CHANGES = {
    "by_global": lambda m: setattr(m, "FACTOR", 100),
    "by_helper": lambda m: setattr(m, "FACTOR", 100),
    "by_table": lambda m: m.table.update(factor=100),
    "by_class": lambda m: setattr(m.Config, "factor", 100),
    "by_instance": lambda m: setattr(m.service, "factor", 100),
    "by_default": lambda m: m.by_default.__defaults__[0].__setitem__(0, 100),
    "unencodable": lambda m: setattr(m, "FACTOR", 100),
    "counting": lambda m: setattr(m, "FACTOR", 100),
    "counting_in_class": lambda m: setattr(m.Config, "factor", 100),
    "logging": lambda m: setattr(m, "FACTOR", 100),
    "caching": lambda m: setattr(m, "FACTOR", 100),
}
OWN = ("counting", "counting_in_class", "logging", "caching")


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
class TestChanges:
    """The noise is for what was calibrated."""

    @pytest.mark.parametrize("warm", [False, True])
    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("name", CHANGES)
    def test_a_change_during_the_private_run_is_refused(self, name, when, warm, program, meanwhile):
        """A value for a factor of 100 would go out with the noise for 1."""
        budget = Budget(f"changes {name} {when} {warm}", epsilon=10, gamma=1.0)
        f = privatize(sampler=P, budget=budget, **PROMISE)(getattr(program, name))
        for _ in range(2 if warm else 0):
            f(DATA)
        before = budget.spent.epsilon
        meanwhile(**{when: lambda: CHANGES[name](program)})
        with pytest.raises(PrivateRunError, match="changed while it ran"):
            f(DATA)
        assert budget.spent.epsilon == before + 1

    def test_a_method_that_is_patched_meanwhile_is_seen(self, program, meanwhile, monkeypatch):
        """The function is still the same; what it calls is not."""
        pd = pytest.importorskip("pandas")
        exec('def by_method(d):\n    return d["a"].mean()', vars(program))
        f = privatize(sampler=samplers.table(a=P), **PROMISE)(program.by_method)
        data = pd.DataFrame({"a": DATA})
        for _ in range(3):
            f(data)
        known = pd.Series.mean
        meanwhile(before=lambda: monkeypatch.setattr(pd.Series, "mean", lambda self: 100 * known(self)))
        with pytest.raises(PrivateRunError, match="changed while it ran"):
            f(data)

    @pytest.mark.parametrize("name", OWN)
    def test_its_own_doing_is_no_reason_to_refuse(self, name, program):
        """Functions that count or log their calls would be of no use."""
        f = privatize(sampler=P, **PROMISE)(getattr(program, name))
        for _ in range(2):
            assert abs(f(DATA) - DATA.mean()) < 10
        g = privatize(sampler=P, **PROMISE)(program.service.counting)
        assert abs(g(DATA) - DATA.mean()) < 10

    def test_a_cache_that_is_filled_once_is_remembered(self, program):
        """What is stable after the first runs is as good as what never changes."""
        f = privatize(sampler=P, **PROMISE)(program.filling)
        f(DATA)
        assert f.remembers(20)

    def test_a_change_during_calibration_is_calibrated_again(self, program, monkeypatch):
        """The estimate would be for what the function used to be."""
        original = PrivateFunction._calibrate

        def calibrate(self, *args, **kwargs):
            found = original(self, *args, **kwargs)
            program.FACTOR = 100
            return found

        small = privatize(sampler=P, **PROMISE)(program.by_global).estimate(21).value
        monkeypatch.setattr(PrivateFunction, "_calibrate", calibrate)
        for name in ("by_global", "unencodable", "counting", "logging"):
            program.FACTOR = 1
            large = privatize(sampler=P, **PROMISE)(getattr(program, name)).release(DATA)
            assert large.sensitivity > 50 * small

    def test_what_keeps_changing_is_refused(self, program, monkeypatch):
        """There is no telling which of its states the estimate would be for."""
        original = PrivateFunction._calibrate

        def calibrate(self, *args, **kwargs):
            program.FACTOR += 1
            return original(self, *args, **kwargs)

        monkeypatch.setattr(PrivateFunction, "_calibrate", calibrate)
        for name in ("by_global", "unencodable", "counting"):
            with pytest.raises(CalibrationError, match="changed while it was calibrated"):
                privatize(sampler=P, **PROMISE)(getattr(program, name))(DATA)


def test_places_are_told_apart(program):
    """One counter must not hide that something else has changed as well."""
    for name, act in CHANGES.items():
        exec(SOURCE, vars(program))
        before = snapshot([getattr(program, name)])
        assert before == snapshot([getattr(program, name)])
        program.calls += 1
        act(program)
        assert changed(before, snapshot([getattr(program, name)]))


def test_counting_warns_that_nothing_is_remembered(program):
    """Every call calibrates: whoever wonders why it is slow is told."""
    with pytest.warns(NotRememberedWarning, match="changed while it ran"):
        privatize(sampler=P, **PROMISE)(program.counting)(DATA)
