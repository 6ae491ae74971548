"""An audit measures what it says, on public data, and finds broken promises without false alarms."""

import dataclasses
import math

import numpy as np
import pytest

from privatize import Bernstein, Exponential, Gaussian, audit, privatize, samplers
from privatize.errors import ArgumentError, PrivatizeError, SettingsError
from tests.auditing.audited import forged, private, quick
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)


# --- fresh pairs -----------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_audit():
    """A user could not reproduce a verdict, or would get the same one whatever the seed."""
    mean = private()
    one, again, other = (quick(mean, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.coverage.losses, again.coverage.losses)
    assert str(one) == str(again) and one.told == again.told
    assert not np.array_equal(one.coverage.losses, other.coverage.losses)
    fresh = audit(mean, 20, pairs=50, releases=0)
    assert fresh.seed != audit(mean, 20, pairs=50, releases=0).seed
    assert np.array_equal(
        audit(mean, 20, pairs=50, releases=0, seed=fresh.seed).coverage.losses, fresh.coverage.losses
    )


def test_workers_measure_the_same():
    """A user's verdict would depend on where the pairs were evaluated."""
    mean = private()
    inline, processes = (quick(mean, releases=0, workers=w, progress=False) for w in ("inline", 2))
    assert np.array_equal(inline.coverage.losses, processes.coverage.losses)


# --- what can be audited ---------------------------------------------------------------------------


@dataclasses.dataclass
class Summary:
    total: float
    count: int


OUTPUTS = {
    "int": lambda x: int((x > 0.5).sum()),
    "dict": lambda x: {"mean": x.mean(), "count": int((x > 0.5).sum())},
    "dataclass": lambda x: Summary(float(x.sum()), int((x > 0.5).sum())),
    "array": lambda x: np.histogram(x, 3, (0, 1))[0],
    "list": lambda x: [float(x.mean()), (float(x.max()),)],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_of_every_kind(name):
    """A user whose function returns this could not audit it."""
    found = quick(private(OUTPUTS[name]))
    assert found.holds and len(found.told) == 2 and found.n == 20


MECHANISMS = {
    "gaussian": (np.mean, {"mechanism": "gaussian", "delta": 1e-6}),
    "exponential": (lambda x, r: -abs(float((x > 0.5).sum()) - r), {"mechanism": Exponential(range(20))}),
    "bernstein": (lambda x, at: np.mean(x[:, None] <= at, axis=0), {"mechanism": Bernstein(3)}),
    "bernstein in two dimensions": (
        lambda x: np.outer(np.arange(3) / 2, np.arange(3) / 2) * x.mean(),
        {"mechanism": Bernstein(2, dimension=2)},
    ),
    "coins": (lambda x, rng: float(x[rng.integers(len(x), size=5)].mean()), {"coins": "rng"}),
    "a global generator": (lambda x: float(np.random.choice(x, 5).mean()), {}),
    "marginal": (np.mean, {"bound": "marginal"}),
    "dkw": (np.mean, {"bound": "dkw"}),
    "min_sensitivity": (np.mean, {"min_sensitivity": 3.0}),
}


@for_each("name", MECHANISMS)
def test_mechanisms_and_settings_of_every_kind(name):
    """A user with these settings could not audit."""
    function, settings = MECHANISMS[name]
    found = quick(private(function, **settings))
    assert found.holds and len(found.told) == 2 and "contradicts" in str(found)


def test_the_classic_gaussian():
    """A user of the paper's own sigma could not audit."""
    assert quick(private(mechanism=Gaussian("classic"), epsilon=0.5, delta=1e-6)).holds


def test_other_arguments():
    """A user whose function has other arguments would audit another function, or none."""

    def quantile(x, q, *, factor=1.0):
        return factor * np.quantile(x, q)

    made = private(quantile)
    median, large = quick(made, 20, 0.5), quick(made, 20, 0.5, factor=10.0)
    assert large.sensitivity == pytest.approx(10 * median.sensitivity)
    assert large.coverage.beyond == median.coverage.beyond
    with pytest.raises(ArgumentError):
        quick(made)
    with pytest.raises(ArgumentError):
        quick(made, 20, 0.5, scale=1)


def test_methods_and_several_datasets():
    """A user whose function is a method, or takes aligned arrays, could not audit it."""

    class Model:
        @privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1, store=None, version="1")
        def mean(self, x):
            return x.mean()

    assert quick(Model().mean).function == "mean"

    def two(n, rng):
        return rng.random(n), rng.random(n)

    slope = private(lambda x, y: float(x @ y / (1 + x @ x)), data=("x", "y"), sampler=two)
    assert quick(slope).holds


def test_without_releases_only_coverage_is_measured():
    """A user in a hurry would wait for releases that they did not ask for."""
    mean = private()
    found = quick(mean, releases=0)
    assert found.told == () and found.holds and "telling" not in str(found)
    assert not quick(forged(mean, 1e-6), releases=0).holds


# --- refusals --------------------------------------------------------------------------------------


@for_each(
    ("bad", "text"),
    [
        ({"n": 0}, "n"),
        ({"n": -1}, "n"),
        ({"n": 2.5}, "n"),
        ({"n": True}, "n"),
        ({"n": "20"}, "n"),
        ({"pairs": 0}, "pairs=0"),
        ({"pairs": 1.5}, "pairs=1.5"),
        ({"pairs": True}, "pairs=True"),
        ({"releases": -1}, "releases=-1"),
        ({"releases": 10.0}, "releases=10.0"),
        ({"confidence": 2}, "confidence=2"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"confidence": 0.4}, "confidence=0.4"),
        ({"confidence": math.nan}, "confidence=nan"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"sampler": 3}, "sampler"),
        ({"under": [3]}, "3"),
        ({"workers": -1}, "workers"),
    ],
)
def test_bad_settings_are_refused(bad, text):
    """A user would get an audit of something else than they asked for, or an obscure error."""
    with pytest.raises(SettingsError, match=text):
        audit(private(), **({"n": 20, "pairs": 20, "releases": 0} | bad))


@pytest.mark.parametrize("raw", [np.mean, None, 3, "mean"])
def test_raw_functions_are_refused(raw):
    """A user would audit a function that promises nothing."""
    with pytest.raises(SettingsError, match="privatize"):
        audit(raw, 20)


def test_private_data_in_place_of_n_is_refused_and_not_shown():
    """A user who passes the dataset by habit would see it in the error."""
    with pytest.raises(SettingsError) as caught:
        audit(private(), np.array([123456.0]))
    assert "123456" not in str(caught.value)
    with pytest.raises(PrivatizeError) as caught:
        audit(private(), 20, np.array([123456.0]), pairs=20, releases=0)
    assert "123456" not in str(caught.value)


# --- verdicts --------------------------------------------------------------------------------------


def test_an_audit_neither_spends_nor_changes_the_estimate():
    """A user who audits often would pay for it in gamma, or get another estimate."""
    mean = private()
    before = mean.estimate(20)
    for seed in range(3):
        quick(mean, seed=seed, releases=0)
    after = mean.estimate(20)
    assert after.value == before.value and after.gamma == before.gamma == 0.1


def test_a_proven_bound_is_audited():
    """Somebody who proved a bound could not check that the noise fits it."""
    proven = privatize(epsilon=1, sensitivity=lambda n: 1 / n, sampler=UNIT, seed=1, store=None)(np.mean)
    found = audit(proven, 50, pairs=200, releases=500, seed=2, workers="inline")
    assert found.holds and found.gamma == 0 and found.coverage.beyond == 0 and found.rho == 0
    assert found.told and "gamma=0" in str(found) and found._repr_html_()
