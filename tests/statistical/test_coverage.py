"""Each bound's estimate covers the share of pairs that it claims, over simulated calibrations.

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
from scipy import special, stats

from privatize import estimate_sensitivity, samplers
from privatize.planning.plan import Plan, plan
from tests.statistical.thresholds import mean_margin, most_successes

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
    "tolerance": [(0.05, "least"), (0.1, "balanced"), (0.2, "balanced"), (0.3, "least"), (0.9, 520)],
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


def assert_covers(covered: np.ndarray, p: Plan) -> None:
    """Check all that a plan claims: the average and, if there is a rho, the confidence."""
    assert covers_on_average(covered, p.m, p.k, p.gamma)
    if p.rho is not None:
        assert covers_with_confidence(covered, p.gamma, p.rho)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("bound", "gamma", "m"), PLANS)
def test_coverage(bound, gamma, m, name):
    """A user's estimate would cover fewer pairs, or be wrong more often, than promised (false alarm 2e-6)."""
    p = plan(gamma, m, bound=bound)
    assert_covers(coverage(LAWS[name], p.m, p.k, seed_of(bound, gamma, m, name)), p)


@pytest.mark.parametrize(("bound", "gamma", "m"), PLANS)
def test_coverage_at_the_worst_atom(bound, gamma, m):
    """A user whose gaps are zero on slightly too few pairs would get zero too often (false alarm 2e-6)."""
    # An atom that holds barely less than what must be covered attains the binomial tail: the
    # estimate fails whenever it is that atom.
    p = plan(gamma, m, bound=bound)
    law = bernoulli(gamma - (p.rho or 0.0) + 1e-9)
    assert_covers(coverage(law, p.m, p.k, seed_of(bound, gamma, m, "atom")), p)


# Here chance alone fails a test with probability below 1e-6 as well: the expected number of
# failures (or the mean) is further beyond the threshold than the threshold is beyond the claim.


@pytest.mark.parametrize("name", ["exponential", "pareto", "lognormal"])
@pytest.mark.parametrize(("gamma", "m"), [(0.05, "least"), (0.1, 219), (0.3, 4)])
def test_a_rank_too_low_breaks_the_average(gamma, m, name):
    """A user could not trust the tests above, if they passed one rank below marginal's (false alarm 1e-6)."""
    p = plan(gamma, m, bound="marginal")
    k = p.k - 1
    covered = coverage(LAWS[name], p.m, k, seed_of("low", gamma, m, name))
    assert not covers_on_average(covered, p.m, k, gamma)


@pytest.mark.parametrize("name", ["exponential", "pareto", "lognormal", "worst atom"])
@pytest.mark.parametrize(
    ("bound", "gamma", "m", "lower"),
    [
        ("tolerance", 0.05, "least", 1),
        ("tolerance", 0.1, "balanced", 1),
        ("tolerance", 0.2, "balanced", 1),
        # DKW leaves slack, so it takes more.
        ("dkw", 0.1, "least", 20),
        ("dkw", 0.2, 100, 9),
    ],
)
def test_a_rank_too_low_breaks_the_confidence(bound, gamma, m, lower, name):
    """A user could not trust the tests above, if they passed far below the plan's rank (false alarm 1e-6)."""
    p = plan(gamma, m, bound=bound)
    law = bernoulli(gamma - p.rho + 1e-9) if name == "worst atom" else LAWS[name]
    covered = coverage(law, p.m, p.k - lower, seed_of("low", bound, gamma, m, name))
    assert not covers_with_confidence(covered, gamma, p.rho)


def test_the_average_share_beyond_the_estimate():
    """A user would read a wrong average over calibrations (false alarm 1e-6).

    One record of uniform(0, 1) moves itself by more than d with probability (1 - d)². Over calibrations the
    share beyond the estimate is Beta(m-k+1, k) distributed, so its mean over 400 of them is known.
    """
    chosen, repeats = plan(0.2), 400
    shares, average = [], 0.0
    for seed in range(repeats):
        found = estimate_sensitivity(
            float_of, n=1, sampler=samplers.uniform(0, 1), norm="l1", plan=chosen, seed=seed, workers="inline"
        )
        shares.append((1 - found.value) ** 2)
        average = found.average_gamma
    spread = float(stats.beta(chosen.m - chosen.k + 1, chosen.k).std()) / math.sqrt(repeats)
    assert abs(np.mean(shares) - average) <= 4.9 * spread


def float_of(x):
    return float(x[0])
