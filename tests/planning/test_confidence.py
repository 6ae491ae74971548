"""Binomial confidence is exact: intervals cover as often as they say."""

import numpy as np
import pytest
from scipy import stats

from privatize import plan
from privatize.planning.confidence import above, clopper_pearson, high_share, low_share
from tests.cases import for_each


@for_each("alpha", [0.5, 0.05, 0.005, 1e-6])
@for_each(("count", "total"), [(0, 1), (1, 1), (0, 100), (3, 100), (100, 100), (57, 1000), (4, 10**6)])
def test_intervals_are_those_of_scipy(count, total, alpha):
    """A user would read an interval that is not the one it is named after."""
    known = stats.binomtest(count, total).proportion_ci(1 - alpha, method="exact")
    assert np.allclose(clopper_pearson(count, total, alpha), known, rtol=1e-9)
    greater = stats.binomtest(count, total, alternative="greater").proportion_ci(1 - alpha, method="exact")
    less = stats.binomtest(count, total, alternative="less").proportion_ci(1 - alpha, method="exact")
    assert low_share(count, total, alpha) == pytest.approx(greater.low, rel=1e-9)
    assert high_share(count, total, alpha) == pytest.approx(less.high, rel=1e-9)


@for_each("share", [0.0, 1e-4, 0.05, 0.5, 0.99, 1.0])
@for_each("total", [1, 7, 60, 500])
def test_intervals_cover_exactly(share, total):
    """A user's interval would miss the truth more often than its confidence allows, summed exactly."""
    alpha = 0.05
    weights = stats.binom.pmf(np.arange(total + 1), total, share)
    found = [clopper_pearson(count, total, alpha) for count in range(total + 1)]
    missed = sum(w for w, (low, high) in zip(weights, found, strict=True) if not low <= share <= high)
    too_low = sum(
        w for w, c in zip(weights, range(total + 1), strict=True) if low_share(c, total, alpha) > share
    )
    assert missed <= alpha and too_low <= alpha


@pytest.mark.parametrize(("m", "k"), [(9, 9), (79, 72), (200, 150)])
def test_above_is_what_a_calibration_and_fresh_gaps_do(m, k):
    """With bound='marginal', audits would fail too often, or never (false alarm 1e-6)."""
    rng = np.random.default_rng(4)
    estimate = np.partition(rng.random((20_000, m)), k - 1, axis=1)[:, k - 1]
    beyond = rng.binomial(100, 1 - estimate)
    for count in (1, 5, 20, 40):
        expected = above(count, 100, m - k + 1, k)
        seen = int((beyond >= count).sum())
        assert stats.binom.cdf(seen, 20_000, expected) > 1e-6
        assert stats.binom.sf(seen - 1, 20_000, expected) > 1e-6
    assert above(0, 100, 1, 9) == 1


def test_the_marginal_test_has_its_false_alarm_rate():
    """With bound='marginal', kept promises would fail more often than alpha (summed over all counts)."""
    p = plan(0.1, 219, bound="marginal")
    a, b, count = p.m - p.k + 1, p.k, 500
    weights = stats.betabinom.pmf(np.arange(count + 1), count, a, b)
    failed = sum(w for c, w in enumerate(weights) if above(c, count, a, b) <= 0.005)
    assert 0.0005 < failed <= 0.005
