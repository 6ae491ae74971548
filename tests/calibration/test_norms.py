"""Gaps are measured in the mechanism's norm, for one pair as for many, without underflow."""

import math

import numpy as np
import pytest

from privatize.calibration.norms import NORMS as OURS
from privatize.calibration.norms import Norm
from privatize.mechanisms import Gaussian, Laplace
from privatize.mechanisms.base import l2
from privatize.mechanisms.shapes import Shape
from privatize.mechanisms.weighted import weighted
from tests.calibration.estimates import estimate


def test_norms_of_many_gaps_at_once():
    """Tiny, huge and infinite gaps would be measured differently one by one and all at once."""
    steps = np.array(
        [[0, 0], [1e-200, 1e-200], [-3, 4], [1e200, 1e200], [np.inf, 1], [np.nan, 1], [5e-324, 0]]
    )
    for norm in ("l1", "l2", "sup"):
        measured = Norm(OURS[norm])
        for some in (steps, steps[:, :1], -steps[:, :1]):
            each = [measured.gap(step, np.zeros(some.shape[1])) for step in some]
            assert measured.gaps(some).tolist() == each, norm


@pytest.mark.parametrize("norm", ["l1", "l2", "sup"])
def test_norms_of_vectors(norm):
    """The gap of a vector is measured in the norm that was asked for."""

    def f(x):
        return np.array([x.mean(), 2 * x[0], -x.max()])

    found = estimate(f, norm=norm)
    same = estimate(lambda x: {"a": [x.mean(), 2 * x[0]], "b": (-x.max(),)}, norm=norm)
    assert np.allclose(found.gaps, same.gaps, rtol=1e-14)
    order = {"l1": 1, "l2": 2, "sup": math.inf}[norm]
    reference = estimate(f, norm=lambda gap: float(np.linalg.norm(gap, order)))
    assert np.allclose(found.gaps, reference.gaps, rtol=1e-12)


def test_tiny_gaps_do_not_underflow():
    """An L2 gap of 1e-200 is not taken for zero, which would mean no noise at all."""
    assert l2(np.array([3e-200, 4e-200])) == pytest.approx(5e-200)
    found = estimate(lambda x: np.array([3e-200, 4e-200]) * x.sum(), norm="l2")
    assert found.gaps.min() > 0 and found.value > 1e-201
    assert l2(np.array([5e-324, 0.0])) == 5e-324
    assert l2(np.array([1e300, 1e300])) == pytest.approx(math.sqrt(2) * 1e300)


def test_a_norm_of_fixed_dimension():
    """A user's norm with one weight per coordinate would be called on vectors of another length."""
    weights = np.array([1.0, 2.0])
    found = estimate(
        lambda x: np.array([x.mean(), x.mean()]), norm=lambda gap: float(np.abs(weights * gap).sum())
    )
    assert np.allclose(found.gaps, 3 * estimate(np.mean).gaps)


@pytest.mark.parametrize("d", [2, 3, 9, 20, 128, 1000])
def test_many_differences_are_measured_as_one_is(d):
    """A pair that is measured again would have another gap, and the estimate would be widened, or refused."""
    rng = np.random.default_rng(d)
    units = 10.0 ** rng.uniform(-8, 8, d)
    shapes = [Shape.diagonal("total", units)]
    if d <= 128:
        mixed = rng.normal(size=(d, 3))
        shapes.append(Shape.matrix((mixed @ mixed.T + np.eye(d)) * np.outer(units, units)))
    norms = [*OURS.values(), Gaussian().norm, Laplace().norm, *(weighted(Gaussian(), s).norm for s in shapes)]
    norms.append(weighted(Laplace(), shapes[0]).norm)
    zero = np.zeros(d)
    for norm in map(Norm, norms):
        assert norm.many
        for size in (5e-324, 1e-250, 1.0, 1e290, 1e308, np.inf, np.nan):
            with np.errstate(all="ignore"):
                steps = rng.normal(size=(7, d)) * units * size
            steps[3] = 0.0
            np.testing.assert_array_equal(norm.gaps(steps), [norm.gap(step.copy(), zero) for step in steps])
    assert not Norm(weighted(Louder(), shapes[0]).norm).many


class Louder(Laplace):
    """A mechanism of the user's own, with a norm of its own."""

    def norm(self, gap):
        return 2 * super().norm(gap)
