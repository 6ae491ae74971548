"""Releases on two neighbours are told apart as well as they can be, and never better than is true."""

import contextlib
import math

import numpy as np
import pytest
from scipy import stats

from privatize import Exponential, Laplace, audit, privatize, samplers
from privatize.auditing.distinguishing import Units, tell_apart
from privatize.errors import SettingsError
from tests.auditing.audited import distinguish, private, quick

UNIT = samplers.uniform(0, 1)


def test_the_largest_gaps_within_the_estimate_are_told_apart():
    """A user's mechanism would be tested on neighbours that differ less than it must hide."""
    found = quick(private(), releases=400)
    within = found.coverage.losses[found.coverage.losses <= found.epsilon]
    assert [t.gap / found.sensitivity * found.epsilon for t in found.told] == pytest.approx(
        within[-2:].tolist()
    )


@pytest.mark.parametrize("releases", [1, 2, 3, 10, 39])
def test_few_releases_pass_or_are_refused(releases):
    """A user who asks for few releases would get numpy's error about quantiles."""
    with contextlib.suppress(SettingsError):
        assert quick(private(), releases=releases).holds


def test_bounds_are_below_the_truth_and_near_it():
    """A user's bound would be wrong, or so far below that nothing is ever found."""
    rng = np.random.default_rng(1)
    found = distinguish(lambda v: v + rng.laplace(0, 1, 1), releases=20_000)
    assert 0.8 < found.low < 1 and found.shape == "Laplace" and 0.92 < found.shape_low < 1 and found.holds
    found = distinguish(lambda v: v + rng.laplace(0, 0.25, 1), releases=20_000)
    assert 3 < found.low < 4 and 3.7 < found.shape_low < 4 and not found.holds
    found = distinguish(lambda v: v + rng.normal(0, 1, 1), delta=0.01, releases=20_000)
    delta = stats.norm.cdf(-0.5) - math.e * stats.norm.cdf(-1.5)
    assert found.shape == "normal" and 0.8 * delta < found.shape_low < delta and not found.holds


def test_other_noise_has_no_shape():
    """A user's integers, choices or heavy tails would be judged by a distribution that is not theirs."""
    rng = np.random.default_rng(2)
    for release in (
        lambda v: v + rng.integers(-50, 50, 1),
        lambda v: v + rng.standard_cauchy(1),
        lambda v: v + rng.uniform(-5, 5, 1),
        lambda v: np.zeros(3),
    ):
        found = distinguish(release, releases=2000)
        assert found.shape is None and found.shape_low is None
    assert distinguish(lambda v: v + rng.laplace(0, 1, 1), releases=150).shape is None


def test_equal_neighbours_are_not_told_apart():
    """A user would be warned about neighbours that have one and the same answer."""
    rng = np.random.default_rng(3)
    for draw in (rng.laplace, rng.normal):
        for delta in (0.0, 1e-6):
            found = distinguish(
                lambda v, draw=draw: v + draw(0, 1, 1), 0.0, 0.0, gap=0.0, delta=delta, releases=1000
            )
            assert found.holds and found.low <= 0.5


def test_no_noise_at_all_is_flagged_for_a_large_epsilon():
    """A user with epsilon=10 would be told that answers without any noise are private."""
    assert not distinguish(lambda v: v, epsilon=10.0).holds


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_releases_that_are_not_finite(value):
    """A user whose mechanism overflows would get a warning about a cast, and no verdict."""
    rng = np.random.default_rng(5)
    found = distinguish(lambda v: v + (value if rng.random() < 0.1 else rng.laplace(0, 1, 1)))
    assert found.releases == 4000


def test_one_response_is_not_an_answer_without_noise():
    """A user of the exponential mechanism, whose answers repeat by design, would be told it is broken."""
    f = privatize(
        mechanism=Exponential(responses=["only"]),
        epsilon=1,
        gamma=0.2,
        sampler=UNIT,
        seed=1,
        store=None,
        min_sensitivity=0.1,
    )(lambda x: np.array([x.mean()]))
    assert audit(f, 20, pairs=50, releases=200, seed=1, workers="inline").holds


def test_a_mechanism_that_returns_one_array_again_and_again():
    """All releases would seem to be the last one, so a private mechanism would be refuted."""
    out, discrete = np.empty(1), np.array([False])

    def release(v):
        out[:] = Laplace().release(v, sensitivity=1.0, epsilon=1.0, delta=0.0, whole=discrete)
        return out

    a, b = np.zeros(1), np.ones(1)
    for shown in (None, Units.of(1.0, a, b)):
        told = tell_apart(
            release, a, b, gap=1.0, epsilon=1.0, delta=0.0, releases=500, alpha=1e-9, shown=shown
        )
        assert told.holds and told.shape
