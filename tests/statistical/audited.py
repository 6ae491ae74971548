"""Cases for the tests of the audit: private functions with their promises, right and broken.

Everything is seeded: calibrations, fresh pairs, our own noise by `insecure_noise`, and broken noise by a
generator of its own.
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

from privatize import Exponential, Gaussian, Laplace, audit, privatize, samplers
from privatize.mechanisms.base import l1, l2
from privatize.mechanisms.bernstein import Bernstein
from privatize.planning.gaussian import least_sigma
from privatize.storage.estimates import open_store
from privatize.testing import insecure_noise

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


records = samplers.uniform([0, 0], [1, 1])


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
