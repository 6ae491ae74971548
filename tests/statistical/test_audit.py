"""The audit flags broken cases with a stated power, and passes correct ones at its stated rate.

Everything is seeded: calibrations, fresh pairs, our own noise by `insecure_noise`, and broken noise by a
generator of its own. Each broken case is audited with SEEDS seeds. `power` in its row is what is
claimed for the settings of that row: the test fails if the audit flags so few that a case of that
power would be flagged so seldom with probability below FALSE_ALARM (exact binomial).

With 40 other seeds every case was flagged 40 times, but for "discrete noise too small by 20%" (38),
"one bin without noise" (31) and "half the noise, exponential" (18).

The default is a few seeds. PRIVATIZE_AUDIT_SEEDS=200 in the environment takes more, and then fails at
every case whose power is below the claim by more than chance allows.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from privatize import Exponential, Gaussian, Laplace, audit, plan, privatize, samplers
from privatize.mechanisms.base import l1, l2
from privatize.mechanisms.bernstein import Bernstein
from privatize.planning.gaussian import least_sigma
from privatize.storage.estimates import open_store
from privatize.testing import insecure_noise
from tests.statistical.thresholds import FALSE_ALARM, fewest_successes, most_successes

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("PRIVATIZE_AUDIT_SEEDS", "6"))
UNIT = samplers.uniform(0, 1)
_source = {"rng": np.random.default_rng(0)}  # for the broken mechanisms; replaced before every audit
_seeded = np.random.default_rng(7).laplace(size=50)
_sigma = functools.lru_cache(least_sigma)


# --- mechanisms, most of them broken ---------------------------------------------------------------


@dataclass(frozen=True)
class Noisy:
    """Laplace noise from numpy: correct except for its last digits. Subclasses change one thing each."""

    def norm(self, gap):
        return l1(gap)

    def scale(self, sensitivity, epsilon, delta=0.0):
        return sensitivity / epsilon

    def release(self, vector, *, sensitivity, epsilon, delta, whole):
        return self.noised(vector, self.scale(sensitivity, epsilon, delta), _source["rng"])

    def noised(self, vector, scale, rng):
        return vector + rng.laplace(0, scale, len(vector))


@dataclass(frozen=True)
class Narrow(Noisy):
    factor: float = 0.9

    def noised(self, vector, scale, rng):
        return vector + rng.laplace(0, self.factor * scale, len(vector))


class WrongNorm(Noisy):
    def norm(self, gap):
        return l2(gap)


class Seeded(Noisy):
    def noised(self, vector, scale, rng):
        return vector + scale * _seeded[: len(vector)]


class Bare(Noisy):
    def noised(self, vector, scale, rng):
        return vector


@dataclass(frozen=True)
class Seldom(Noisy):
    share: float = 0.2

    def noised(self, vector, scale, rng):
        return vector if rng.random() < self.share else vector + rng.laplace(0, scale, len(vector))


class OneBare(Noisy):
    def noised(self, vector, scale, rng):
        found = vector + rng.laplace(0, scale, len(vector))
        found[0] = vector[0]
        return found


class Proportional(Noisy):
    def noised(self, vector, scale, rng):
        return vector + rng.laplace(0, scale * np.abs(vector), len(vector))


@dataclass(frozen=True)
class Geometric(Noisy):
    factor: float = 1.0

    def noised(self, vector, scale, rng):
        p = -math.expm1(-1 / (self.factor * scale))
        return vector + rng.geometric(p, len(vector)) - rng.geometric(p, len(vector))


@dataclass(frozen=True)
class Normal(Noisy):
    factor: float = 0.85

    def check(self, epsilon, delta):
        assert delta > 0

    def norm(self, gap):
        return l2(gap)

    def scale(self, sensitivity, epsilon, delta):
        return self.factor * sensitivity * _sigma(float(epsilon), delta)

    def noised(self, vector, scale, rng):
        return vector + rng.normal(0, scale, len(vector))


class Classic(Normal):
    """The textbook's sigma, which is proven for epsilon < 1."""

    def scale(self, sensitivity, epsilon, delta):
        return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


@dataclass(frozen=True)
class Stretched(Noisy):
    """Correct, from another library: noise of different scales, which the audit does not know."""

    def norm(self, gap):
        return l1(gap / np.array([1.0, 2.0]))

    def noised(self, vector, scale, rng):
        return vector + np.array([1.0, 2.0]) * rng.laplace(0, scale, 2)


@dataclass(frozen=True)
class Correlated(Normal):
    """Correct, from another library: normal noise whose two numbers depend on each other."""

    factor: float = 1.0
    mix = np.array([[1.0, 0.0], [0.9, 0.5]])

    def norm(self, gap):
        return l2(np.linalg.solve(self.mix, gap))

    def noised(self, vector, scale, rng):
        return vector + self.mix @ rng.normal(0, scale, 2)


class HalfLaplace(Laplace):
    """Half the noise, with any options."""

    def release(self, vector, *, sensitivity, epsilon, delta, whole):
        return super().release(vector, sensitivity=sensitivity / 2, epsilon=epsilon, delta=delta, whole=whole)


class HalfGaussian(Gaussian):
    def release(self, vector, *, sensitivity, epsilon, delta, whole):
        return super().release(vector, sensitivity=sensitivity / 2, epsilon=epsilon, delta=delta, whole=whole)


class HalfExponential(Exponential):
    def release(self, vector, *, sensitivity, epsilon, delta=0.0, whole):
        return super().release(vector, sensitivity=sensitivity / 2, epsilon=epsilon, delta=delta, whole=whole)


class HalfBernstein(Bernstein):
    def release(self, vector, *, sensitivity, epsilon, delta=0.0, whole):
        return super().release(vector, sensitivity=sensitivity / 2, epsilon=epsilon, delta=delta, whole=whole)


class Unexponential(Exponential):
    """Chooses in proportion to the score itself."""

    def release(self, vector, *, sensitivity, epsilon, delta=0.0, whole):
        shares = np.cumsum(vector) / vector.sum()
        return np.array([np.searchsorted(shares, _source["rng"].random(), side="right")], dtype=float)


class Staircase(Noisy):
    """Correct, and narrower than Laplace: Geng & Viswanath's optimal noise for epsilon alone."""

    def release(self, vector, *, sensitivity, epsilon, delta, whole):
        rng, b, split = _source["rng"], math.exp(-epsilon), 1 / (1 + math.exp(epsilon / 2))
        inside, upper, sign = rng.random((3, len(vector)))
        step = rng.geometric(1 - b, len(vector)) - 1
        high = upper >= split / (split + (1 - split) * b)
        size = step + np.where(high, split + (1 - split) * inside, split * inside)
        return vector + sensitivity * np.where(sign < 0.5, -size, size)


# --- functions -------------------------------------------------------------------------------------

_weights = 0.8 ** np.arange(50)


def newest_first(x):
    """Return a mean in which the records at the front weigh most."""
    return float(x @ _weights[: len(x)])


def powers(x):
    return np.array([np.mean(x**j) for j in range(1, 6)])


def counts(x):
    return np.bincount((3 * x).astype(int), minlength=3).astype(float)


def bins(x):
    return np.histogram(x, 4, (0, 1))[0]


def above_half(x):
    return float(x.mean() > 0.5)


def how_many(x):
    return int((x > 0.5).sum())


_records = samplers.uniform([0, 0], [1, 1])


def groups(t):
    """Return two sums; a record is in one of them. The second moves twice as far, and has wider noise."""
    first = t[:, 1] < 0.3
    return {"first": float(t[first, 0].sum()), "second": float(2 * t[~first, 0].sum())}


def crowd(t):
    """Return three sums: nearly all records move the last one, whose noise is the widest."""
    group = np.minimum((50 * t[:, 1]).astype(int), 2)
    return np.bincount(group, t[:, 0], 3) * np.array([1.0, 1.0, 2.0])


def mixed(t):
    """Return integers and floats whose noises differ a lot."""
    inside = t[:, 1] < 0.5
    return {
        "inside": int(inside.sum()),
        "sum": 1000 * float(t[inside, 0].sum()),
        "means": t.mean(axis=0),
        "records": 1e17 * len(t),  # floats of this size round the noise away
    }


def framed(t):
    import pandas as pd

    data = pd.DataFrame({"x": t[:, 0], "group": np.where(t[:, 1] < 0.3, "a", "b")})
    return data.groupby("group")["x"].agg(["sum", "count"]).reindex(["a", "b"], fill_value=0)


def fitted(t):
    from sklearn.linear_model import Ridge

    return Ridge().fit(t[:, :1], t[:, 1])


FUNCTIONS = [groups, crowd, mixed]
if find_spec("pandas") is not None:
    FUNCTIONS.append(framed)
if find_spec("sklearn") is not None:
    FUNCTIONS.append(fitted)


def cumulative(x, at):
    return np.mean(x[:, None] <= at, axis=0)


# --- estimates, broken -----------------------------------------------------------------------------


def stale(found):
    """Return an estimate that was right when records moved the answer by a fifth less."""
    return 0.8 * found.value


def optimistic(found):
    """Return what is right for a gamma ten times as large as claimed."""
    return float(np.sort(found.gaps)[found.m - 10 * (found.m - found.k) - 1])


def last_only(found):
    """Return what replacing the last record alone shows, as the paper's algorithm is written."""
    rng = np.random.default_rng(found.seed)
    gaps = _weights[found.n - 1] * np.abs(rng.random(found.m) - rng.random(found.m))
    return float(np.sort(gaps)[found.k - 1])


def as_finished(found):
    """Return the k-th smallest of the first m of 1.25 m gaps to finish, if large gaps take longer."""
    rng = np.random.default_rng(found.seed)
    extra = rng.choice(found.gaps, found.m // 4)
    gaps = np.concatenate([found.gaps, extra])
    first = np.argsort(gaps * rng.uniform(0.9, 1.1, len(gaps)))[: found.m]
    return float(np.sort(gaps[first])[found.k - 1])


# --- the catalogue ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case:
    """A private function, how its estimate is forged, if at all, and the power that is claimed."""

    function: Any = np.mean
    mechanism: Any = "laplace"
    forge: Any = None
    power: float = 0.99
    n: int = 50
    epsilon: float = 1.0
    delta: float = 0.0
    gamma: float = 0.05
    bound: str = "tolerance"
    sampler: Any = UNIT
    pairs: int | None = 300
    releases: int = 4000
    min_sensitivity: float | None = None
    first: float | None = None  # a gamma that was asked for before, from the same gaps

    def audit(self, seed):
        """Audit it, with everything seeded and nothing remembered from other cases."""
        open_store("memory").forget()
        private = privatize(
            epsilon=self.epsilon,
            delta=self.delta,
            gamma=self.gamma,
            bound=self.bound,
            sampler=self.sampler,
            mechanism=self.mechanism,
            min_sensitivity=self.min_sensitivity,
            seed=10_000 + seed,
            version="a broken mechanism's generator is not part of the estimate",
            store=None,
        )(self.function)
        if self.first is not None:
            private.replace(gamma=self.first).estimate(self.n)
        if self.forge is not None:
            made = private.calibrator.recall

            def forged(asked):
                found = made(asked)
                value = self.forge(found.sensitivity)
                return dataclasses.replace(
                    found, sensitivity=dataclasses.replace(found.sensitivity, value=value)
                )

            private.calibrator.recall = forged
        _source["rng"] = np.random.default_rng([seed, 1])
        with warnings.catch_warnings(action="ignore"), insecure_noise(seed):
            return audit(private, self.n, pairs=self.pairs, releases=self.releases, seed=seed)


BROKEN = {
    "Laplace noise too small by 10%": Case(mechanism=Narrow(0.9)),
    "L2 norm for Laplace noise": Case(function=powers, mechanism=WrongNorm()),
    "exponential mechanism without exp": Case(
        function=counts, mechanism=Unexponential([0, 1, 2]), n=3, epsilon=0.5
    ),
    "stale estimate": Case(forge=stale, pairs=None, releases=0),
    "gamma ten times too optimistic": Case(forge=optimistic, gamma=0.01, pairs=None, releases=0),
    "the same noise every time": Case(mechanism=Seeded()),
    "no noise": Case(mechanism=Bare()),
    "classic sigma at epsilon=20": Case(mechanism=Classic(), epsilon=20, delta=0.01),
    "floating-point noise on 0 and 1": Case(function=above_half, mechanism=Noisy(), n=3),
    "only the last record replaced": Case(function=newest_first, forge=last_only, pairs=None, releases=0),
    "pairs taken as they finish": Case(forge=as_finished, pairs=None, releases=0),
    "discrete noise too small by 20%": Case(
        function=how_many, mechanism=Geometric(0.8), power=0.9, releases=8000
    ),
    "normal noise too small by 15%": Case(mechanism=Normal(0.85), delta=1e-6),
    "normal noise too small by 15%, large delta": Case(mechanism=Normal(0.85), delta=1e-2),
    "noise left out one time in five": Case(mechanism=Seldom(0.2)),
    "noise left out one time in five, of a vector": Case(function=powers, mechanism=Seldom(0.2)),
    "one coordinate without noise": Case(function=powers, mechanism=OneBare()),
    # Half of the pairs do not change the bin without noise, and two pairs are tested.
    "one bin without noise": Case(function=bins, mechanism=OneBare(), power=0.6, releases=2000),
    "noise in proportion to the answer": Case(
        mechanism=Proportional(), sampler=samplers.normal(0, 1), n=10, power=0.95
    ),
}


for _kind in ("none", "total", "relative"):
    for _made, _delta in ((HalfLaplace(scaled=_kind), 0.0), (HalfGaussian(scaled=_kind), 1e-4)):
        for _function in (groups, *FUNCTIONS[3:]) if _kind != "total" else (groups,):
            BROKEN[f"half the noise, {_made!r}, {_function.__name__}"] = Case(
                mechanism=_made, function=_function, sampler=_records, delta=_delta, power=0.95,
                gamma=0.2, pairs=50, releases=2000,
            )  # fmt: skip
BROKEN |= {
    "half the noise, Bernstein": Case(mechanism=HalfBernstein(4), function=cumulative),
    "half the noise, integers": Case(mechanism=HalfLaplace(), function=how_many),
    "half the noise, after a further look": Case(mechanism=HalfLaplace(), first=0.2),
}
if SEEDS >= 100:  # with fewer, no outcome would contradict the claim
    # This mechanism is not tight: with half its noise it loses hardly more than is claimed. Flagged by 33 of
    # 80 audits, so that the power is above 0.28 at a confidence of 0.99.
    BROKEN["half the noise, exponential"] = Case(
        mechanism=HalfExponential([0, 1, 2]), function=counts, power=0.28
    )


@pytest.mark.parametrize("name", BROKEN)
def test_broken_cases_are_flagged(name):
    """A user whose mechanism or estimate is broken in this way would be told that all is well."""
    case = BROKEN[name]
    flagged = sum(not case.audit(seed).holds for seed in range(SEEDS))
    assert flagged >= fewest_successes(SEEDS, case.power), f"{flagged} of {SEEDS}"


RIGHT = {
    "Laplace": Case(),
    "Laplace, few records": Case(n=2),
    "Laplace, median": Case(function=np.median, sampler=samplers.normal(0, 1)),
    "Laplace, heavy tails": Case(sampler=samplers.from_function(lambda n, rng: rng.pareto(1.5, n))),
    "Laplace, a vector": Case(function=powers),
    "Laplace, 0 and 1": Case(function=above_half, n=3),
    "Laplace, integers": Case(function=how_many),
    "Laplace, a histogram": Case(function=bins, epsilon=0.5),
    "Laplace, epsilon=5": Case(epsilon=5),
    "Laplace, marginal": Case(bound="marginal"),
    "Laplace, dkw": Case(bound="dkw", gamma=0.2),
    "Laplace, order": Case(function=newest_first),
    "Gaussian": Case(mechanism="gaussian", delta=1e-6),
    "Gaussian, large delta": Case(mechanism="gaussian", delta=0.05, function=powers),
    "Gaussian, epsilon=20": Case(mechanism="gaussian", delta=0.01, epsilon=20),
    "Gaussian, integers": Case(mechanism="gaussian", delta=1e-3, function=bins),
    "exponential": Case(mechanism=Exponential([0, 1, 2]), function=counts, n=5),
    "exponential, sup and prior": Case(
        mechanism=Exponential([0, 1, 2], prior=[0.2, 1, 3], norm="sup"), function=counts
    ),
    "Bernstein": Case(mechanism=Bernstein(4), function=lambda x, at: np.mean(x[:, None] <= at, axis=0)),
    "Bernstein, sup": Case(
        mechanism=Bernstein(4, norm="sup"), function=lambda x, at: np.mean(x[:, None] <= at, axis=0)
    ),
    "Bernstein, two dimensions": Case(
        mechanism=Bernstein(2, dimension=2),
        function=lambda t, at: np.mean((t[:, None] <= at).all(axis=2), axis=0),
        sampler=_records,
    ),
    "min_sensitivity": Case(min_sensitivity=0.5),
    "min_sensitivity, scaled": Case(
        function=groups, sampler=_records, mechanism=Laplace(scaled="relative"), min_sensitivity=0.01
    ),
    "a further look": Case(first=0.2),
    "a further look, smaller": Case(gamma=0.2, first=0.05),
    "a further look, dkw": Case(first=0.3, gamma=0.2, bound="dkw"),
    "one record": Case(n=1),
    "1,000 records": Case(n=1000),
    "tiny answers": Case(function=lambda x: 1e-290 * x.mean()),
    "huge answers": Case(function=lambda x: 1e290 * x.mean()),
    "huge answers, normal": Case(function=lambda x: 1e290 * powers(x), mechanism="gaussian", delta=1e-6),
    "answers that float32 rounds": Case(function=lambda x: np.float32(x.mean())),
    # Correct mechanisms of other libraries, of different scales and in shapes that are almost Laplace's.
    "Laplace noise of two scales": Case(
        mechanism=Stretched(), function=lambda t: np.array(list(groups(t).values())), sampler=_records
    ),
    "normal noises that depend on each other": Case(
        mechanism=Correlated(), function=lambda x: powers(x)[:2], delta=1e-4
    ),
    "staircase": Case(mechanism=Staircase()),
    "staircase, floats a gap of 1 apart": Case(mechanism=Staircase(), function=lambda x: float(how_many(x))),
    "staircase, epsilon=2": Case(mechanism=Staircase(), epsilon=2),
    "geometric": Case(mechanism=Geometric(), function=how_many),
}


for _kind in ("none", "total", "relative"):
    for _made, _delta in ((Laplace(scaled=_kind), 0.0), (Gaussian(scaled=_kind), 1e-4)):
        for _function in FUNCTIONS:
            RIGHT[f"{_made!r}, {_function.__name__}"] = Case(
                mechanism=_made, function=_function, sampler=_records, delta=_delta, gamma=0.2, pairs=100
            )


def test_correct_cases_pass():
    """A user whose promise is kept would be told, more often than 1 time in 100, that it is broken.

    Each audit's rate is 0.01, and a calibration is unlucky with rho < 0.01 (the test for
    marginal includes it); audits are independent, so the count is at most binomial (false alarm 1e-6).
    """
    seeds = max(3, SEEDS // 8)
    alarms = [
        (name, seed, found.verdict)
        for name, case in RIGHT.items()
        for seed in range(seeds)
        if not (found := dataclasses.replace(case, releases=500).audit(seed)).holds
    ]
    assert len(alarms) <= most_successes(seeds * len(RIGHT), 0.02), alarms
    # Nor is one case responsible for all of them.
    names = [name for name, _, _ in alarms]
    limit = most_successes(seeds, 0.02, FALSE_ALARM / len(RIGHT))
    assert all(names.count(name) <= limit for name in names), alarms


def test_weights_cause_no_false_alarms():
    """A user of `scaled=` would see most audits with few releases fail (false alarm 1e-6).

    Noises of different scales, if pooled, look like one narrow noise, and the answers differ in the number
    with the widest noise.
    """
    case = Case(
        function=crowd,
        sampler=_records,
        mechanism=Laplace(scaled="relative"),
        gamma=0.2,
        pairs=100,
        releases=500,
    )
    alarms = [found.verdict for seed in range(24) if not (found := case.audit(seed)).holds]
    assert len(alarms) <= most_successes(24, 0.02), alarms


def test_coverage_alone_passes_correct_estimates():
    """A user's estimate would be called too small more often than promised (false alarm 1e-6)."""
    repeats = 12 * SEEDS
    for bound, gamma in (("tolerance", 0.1), ("tolerance", 0.3), ("marginal", 0.1), ("dkw", 0.3)):
        case = Case(n=5, gamma=gamma, bound=bound, releases=0, pairs=200)
        alarms = sum(not case.audit(seed).holds for seed in range(repeats))
        # alpha = 0.005 is coverage's, and a calibration is unlucky with rho.
        limit = most_successes(repeats, 0.005 + (plan(gamma, bound=bound).rho or 0.0))
        assert alarms <= limit, (bound, gamma, alarms)


def test_noise_that_is_almost_laplace_is_not_judged_as_laplace():
    """A user of the optimal noise for epsilon alone, which is right, would be told that it is broken."""
    case = Case(
        mechanism=Staircase(), function=lambda x: float(how_many(x)), epsilon=0.7, releases=20_000, pairs=50
    )
    alarms = [found.verdict for seed in (3003, 3004) if not (found := case.audit(seed)).holds]
    assert not any("looks Laplace" in verdict for verdict in alarms), alarms
