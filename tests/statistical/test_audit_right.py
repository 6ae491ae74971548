"""The audit passes correct cases at its stated rate."""

import dataclasses

import numpy as np
import pytest

from privatize import Exponential, Gaussian, Laplace, plan, samplers
from privatize.mechanisms.bernstein import Bernstein
from tests.statistical.audited import (
    FUNCTIONS,
    SEEDS,
    Case,
    Correlated,
    Geometric,
    Staircase,
    Stretched,
    above_half,
    bins,
    counts,
    crowd,
    groups,
    how_many,
    newest_first,
    powers,
    records,
)
from tests.statistical.thresholds import FALSE_ALARM, most_successes

pytestmark = pytest.mark.slow

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
        sampler=records,
    ),
    "min_sensitivity": Case(min_sensitivity=0.5),
    "min_sensitivity, scaled": Case(
        function=groups, sampler=records, mechanism=Laplace(scaled="relative"), min_sensitivity=0.01
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
        mechanism=Stretched(), function=lambda t: np.array(list(groups(t).values())), sampler=records
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
                mechanism=_made, function=_function, sampler=records, delta=_delta, gamma=0.2, pairs=100
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
        sampler=records,
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
