"""The order statistic that becomes the noise, and when it is refused."""

import numpy as np
import pytest

from privatize import plan
from privatize.calibration.order_statistic import floor_of, order_statistic, smallest, widened
from privatize.errors import InfiniteSensitivityError, NotReproducibleError, ZeroSensitivityError
from privatize.mechanisms.shapes import Shape
from tests.cases import for_each

PLAN = plan(0.1)


def test_the_kth_smallest():
    """Another gap than the k-th would be another promise."""
    gaps = np.random.default_rng(0).permutation(np.arange(1.0, PLAN.m + 1))
    assert order_statistic(gaps, PLAN, None) == PLAN.k
    assert order_statistic(gaps, PLAN, 1e6) == 1e6


@for_each(
    "law",
    [
        lambda rng, m: rng.exponential(size=m),
        lambda rng, m: rng.integers(0, 3, size=m) * 1.0,  # ties
        lambda rng, m: np.sort(rng.random(m)),  # not independent of the index, so all are partitioned
        lambda rng, m: np.where(rng.random(m) < 0.1, np.inf, rng.pareto(1, size=m)),
    ],
    ids=["exponential", "ties", "sorted", "failures"],
)
def test_the_kth_smallest_of_very_many(law):
    """A selection that saves memory could take another one."""
    gaps = law(np.random.default_rng(2), 2**20 + 12_345)
    ordered = np.sort(gaps)
    for k in (1, 2, len(gaps) // 3, len(gaps) * 19 // 20, len(gaps) - 1, len(gaps)):
        assert smallest(gaps, k) == ordered[k - 1]


def test_zero_and_infinity():
    """Zero would be no noise, unless it is the estimate of one member of a family among others."""
    gaps = np.zeros(PLAN.m)
    with pytest.raises(ZeroSensitivityError, match=r"no privacy.* or does P never draw what .* learn P"):
        order_statistic(gaps, PLAN, None)
    assert order_statistic(gaps, PLAN, None, zero=True) == 0
    gaps[: PLAN.m - PLAN.k + 1] = np.inf
    with pytest.raises(InfiniteSensitivityError):
        order_statistic(gaps, PLAN, 1.0, zero=True)


def test_floors_and_rounding():
    """A floor for one number must hold for numbers of every weight, and rounding noise must be covered."""
    assert floor_of(1.0, Shape("total", (0, -3))) == 8
    assert widened(1.0, 1e-9) > 1.0 == widened(1.0, 0.0)
    with pytest.raises(NotReproducibleError, match="rounds differently"):
        widened(1.0, 0.1)
