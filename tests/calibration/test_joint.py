"""Weights come from the tail of a pilot's gaps, and each function gets its share of a joint estimate."""

import dataclasses

import numpy as np
import pytest

from privatize import Gaussian, Laplace, samplers
from privatize.calibration.evaluators.joint import Joint, weight_of
from privatize.calibration.joint import learned_weights, shares
from privatize.calibration.sensitivity import estimate_sensitivity
from privatize.errors import InfiniteSensitivityError, PlanError, ZeroSensitivityError
from privatize.mechanisms.base import l1
from privatize.mechanisms.choosing import PilotPairs
from privatize.mechanisms.shapes import Shape
from privatize.planning.plan import plan


def test_a_share_is_the_joint_estimate_in_the_unit_of_the_function():
    """A share that is too small would break the promise of its function."""
    joint = Joint((np.mean, np.sum), (l1, l1), ("mean", "sum"), (-16, 80))
    options = {"n": 50, "sampler": samplers.uniform(0, 1), "norm": l1, "plan": plan(0.1), "seed": 1}
    found = estimate_sensitivity(joint, **options)
    own = shares(found, ((-16,), (80,)), [Laplace(), Laplace()], [None, 1000.0])
    assert own[0].value == pytest.approx(found.value * weight_of(-16))
    assert own[0].value > found.value * weight_of(-16)
    assert own[1].value == 1000.0
    assert (own[0].gamma, own[0].average_gamma, own[0].plan) == (0.1, found.average_gamma, found.plan)
    with pytest.raises(PlanError, match="Declare them again"):
        own[0].at(0.2)
    large = dataclasses.replace(found, value=1e299)
    with pytest.raises(InfiniteSensitivityError, match="beyond every float"):
        shares(large, ((-16,), (8000,)), [Laplace(), Laplace()], [None, None])
    with pytest.raises(ZeroSensitivityError):
        shares(dataclasses.replace(found, value=0.0), ((0,), (0,)), [Laplace(), Laplace()], [None, None])


def test_a_function_that_never_moves_needs_a_floor():
    """A weight of nothing would be no noise for when it does move."""
    still = [PilotPairs(np.zeros((10, 1)), np.zeros((10, 1)))]
    assert learned_weights(Laplace(), still, None) is None
    assert weight_of((learned_weights(Laplace(), still, 1.0) or (9,))[0]) == 1.0


def test_a_weight_covers_the_pooled_gaps_of_a_family():
    """A member would stand out under one P, and all others would get its noise."""
    small, large = (PilotPairs(np.full((9, 1), step), np.zeros((9, 1))) for step in (0.25, -2.0))
    assert learned_weights(Laplace(), [small, large], None) == (16,)
    assert learned_weights(Laplace(), [small, large], 4.0) == (32,)


def test_a_scaled_mechanism_has_weights_for_its_numbers():
    """Without them, an answer's small numbers would get the noise of its large ones."""
    steps, rng = np.tile([[64.0, 1.0], [64.0, -1.0]], (10, 1)), np.random.default_rng(0)
    seen = [PilotPairs(steps, 10 * rng.normal(size=steps.shape) * [64.0, 1.0])]
    found = learned_weights(Gaussian(scaled="relative"), seen, None)
    assert found is not None
    assert Shape.of(found[1:]) == Shape("relative", (0, -6))
