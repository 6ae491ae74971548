"""Simulated calibrations: does each bound's estimate cover the share of pairs that it claims?

A calibration draws m gaps from a known law and takes the k-th smallest; the true CDF Phi of that
law, atoms included, says which share of all pairs the estimate covers.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy import special

from privatize.planning import Plan, plan
from tests.statistical.thresholds import FALSE_ALARM, mean_margin, most_successes

TRIALS = 20_000
CHUNK = 2_000_000  # gaps in memory at a time


class Gaps(NamedTuple):
    """A law of gaps: how to draw from it, and its CDF (continuous from the right)."""

    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
    cdf: Callable[[np.ndarray], np.ndarray]


def bernoulli(share: float) -> Gaps:
    """Return gaps of 1 with probability share, else 0."""
    return Gaps(
        lambda rng, size: (rng.random(size) < share).astype(float),
        lambda g: np.where(g >= 1, 1.0, np.where(g >= 0, 1 - share, 0.0)),
    )


LAWS = {
    "exponential": Gaps(lambda rng, size: rng.standard_exponential(size), lambda g: -np.expm1(-g)),
    "pareto": Gaps(lambda rng, size: rng.pareto(2, size) + 1, lambda g: 1 - g**-2.0),
    "lognormal": Gaps(lambda rng, size: rng.lognormal(0, 2, size), lambda g: special.ndtr(np.log(g) / 2)),
    "bernoulli": bernoulli(0.3),
    "90%-zero": Gaps(
        lambda rng, size: np.where(rng.random(size) < 0.9, 0.0, rng.standard_exponential(size)),
        lambda g: 0.9 - 0.1 * np.expm1(-g),
    ),
    "constant": Gaps(lambda rng, size: np.full(size, 3.0), lambda g: np.where(g >= 3, 1.0, 0.0)),
}

REQUESTS = {
    "marginal": [(0.05, "least"), (0.1, 219), (0.3, 4)],
    "tolerance": [(0.05, "least"), (0.1, "balanced"), (0.2, "balanced"), (0.3, "least"), (0.9, 600)],
    "dkw": [(0.1, "least"), (0.2, 100), (0.5, "balanced")],
}
PLANS = [
    pytest.param(bound, *request, id=f"{bound}-{request[0]}-{request[1]}")
    for bound, requests in REQUESTS.items()
    for request in requests
]


def coverage(law: Gaps, m: int, k: int, seed: int, trials: int = TRIALS) -> np.ndarray:
    """Return Phi(G_(k)) for each of many calibrations."""
    rng = np.random.default_rng(seed)
    rows = max(1, CHUNK // m)
    estimates = [
        np.partition(law.draw(rng, (min(rows, trials - done), m)), k - 1, axis=1)[:, k - 1]
        for done in range(0, trials, rows)
    ]
    return law.cdf(np.concatenate(estimates))


def seed_of(*case: object) -> int:
    """Return a fixed seed for a test case, the same in every process."""
    return zlib.crc32(repr(case).encode())


def covers_on_average(covered: np.ndarray, m: int, k: int, gamma: float) -> bool:
    """Tell whether the average coverage is 1 - gamma or more, up to a z-margin.

    Phi(G_(k)) is at least the k-th smallest of m uniforms, Beta(k, m - k + 1), whatever the law:
    the mean of the simulated values is at least a mean of Beta variables, whose deviation is known.
    """
    deviation = math.sqrt(k * (m - k + 1) / ((m + 1) ** 2 * (m + 2)))
    return covered.mean() >= 1 - gamma - mean_margin(len(covered), deviation)


def covers_with_confidence(covered: np.ndarray, gamma: float, rho: float) -> bool:
    """Tell whether at most a share rho of the calibrations cover less than 1 - gamma + rho."""
    failures = np.count_nonzero(covered < 1 - gamma + rho)
    return failures <= most_successes(len(covered), rho)


def holds(covered: np.ndarray, p: Plan) -> bool:
    """Tell whether simulated calibrations show all that a plan claims."""
    on_average = covers_on_average(covered, p.m, p.k, p.gamma)
    return on_average and (p.rho is None or covers_with_confidence(covered, p.gamma, p.rho))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("bound", "gamma", "m"), PLANS)
def test_average_coverage(bound, gamma, m, name):
    """A user's fresh calibrations would cover less than 1 - gamma of pairs on average (false alarm 1e-6)."""
    p = plan(gamma, m, bound=bound)
    covered = coverage(LAWS[name], p.m, p.k, seed_of(bound, gamma, m, name))
    assert FALSE_ALARM == 1e-6
    assert covers_on_average(covered, p.m, p.k, gamma)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("bound", "gamma", "m"), [p for p in PLANS if p.values[0] != "marginal"])
def test_confident_coverage(bound, gamma, m, name):
    """A user's remembered calibration would fail more often than rho (exact test, false alarm 1e-6)."""
    p = plan(gamma, m, bound=bound)
    covered = coverage(LAWS[name], p.m, p.k, seed_of(bound, gamma, m, name, "confident"))
    assert FALSE_ALARM == 1e-6
    assert covers_with_confidence(covered, gamma, p.rho)


@pytest.mark.parametrize(("bound", "gamma", "m"), PLANS)
def test_coverage_of_the_worst_atom(bound, gamma, m):
    """A user whose gaps are zero on just too few pairs would get zero too often (false alarm 2e-6).

    An atom that carries barely less than what must be covered is the law on which the tail of the
    bound is attained: the estimate fails whenever it is that atom.
    """
    p = plan(gamma, m, bound=bound)
    share = gamma - (p.rho or 0.0) + 1e-9
    covered = coverage(bernoulli(share), p.m, p.k, seed_of(bound, gamma, m, "atom"))
    assert FALSE_ALARM == 1e-6
    assert holds(covered, p)


@pytest.mark.parametrize("name", ["exponential", "pareto", "lognormal", "90%-zero"])
@pytest.mark.parametrize(
    ("bound", "gamma", "m", "lower"),
    [
        ("marginal", 0.05, "least", 1),
        ("marginal", 0.1, 219, 1),
        ("tolerance", 0.05, "least", 2),
        ("tolerance", 0.1, "balanced", 2),
        ("dkw", 0.1, "least", 20),
        ("dkw", 0.2, 100, 9),
    ],
)
def test_a_lower_rank_is_noticed(bound, gamma, m, lower, name):
    """A user could not rely on the tests above: they would pass for a rank that breaks the claim.

    The rate at which this one fails by chance is below 1e-6 as well: the claims are broken by far.
    """
    p = plan(gamma, m, bound=bound)
    law = LAWS[name]
    seed = seed_of(bound, gamma, m, name, "lower")
    covered = coverage(law, p.m, p.k - lower, seed)
    if p.rho is None:
        assert not covers_on_average(covered, p.m, p.k - lower, gamma)
    else:
        assert not covers_with_confidence(covered, gamma, p.rho)
