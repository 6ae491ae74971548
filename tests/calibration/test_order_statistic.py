"""The order statistic that becomes the noise, and when it is refused."""

import numpy as np
import pytest

from privatize import plan
from privatize.calibration.order_statistic import floor_of, order_statistic, widened
from privatize.errors import InfiniteSensitivityError, NotReproducibleError, ZeroSensitivityError
from privatize.mechanisms.shapes import Shape

PLAN = plan(0.1)


def test_the_kth_smallest():
    """Another gap than the k-th would be another promise."""
    gaps = np.random.default_rng(0).permutation(np.arange(1.0, PLAN.m + 1))
    assert order_statistic(gaps, PLAN, None) == PLAN.k
    assert order_statistic(gaps, PLAN, 1e6) == 1e6


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
