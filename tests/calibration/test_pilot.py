"""Weights come from a pilot of their own, or are those of all members of a family."""

import numpy as np

from privatize import Laplace, estimate_sensitivity, plan, samplers
from privatize.calibration.pilot import Member
from privatize.mechanisms.shapes import NONE, Shape

P = samplers.uniform(0, 1)


def both(x):
    """Return two numbers of different size."""
    return [x.mean(), 1000 * x.mean()]


def estimate(**more):
    """Estimate the sensitivity of both numbers."""
    options = {"n": 20, "sampler": P, "norm": "l1", "plan": plan(0.2), "scaled": Laplace(scaled="total")}
    return estimate_sensitivity(both, **options | {"seed": 1} | more)


def test_learned_or_given():
    """A member with weights of its own would be measured in another norm than the others."""
    assert len(set(estimate().shape.powers)) == 2
    given = estimate(member=Member(7, Shape("total", (0, 0)), ""))
    assert given.shape == Shape("total", (0, 0)) and given.coin_seed == 7
    assert np.allclose(given.gaps, estimate(scaled=None).gaps)
    assert estimate(scaled=None, member=Member(7, None, "")).shape == NONE
