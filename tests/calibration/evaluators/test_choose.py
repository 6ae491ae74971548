"""Pairs are evaluated in the way that the settings ask for, and ways that do not go together are refused."""

import numpy as np
import pytest

from privatize import Exponential, privatize
from privatize.errors import SettingsError
from tests.calibration.batches import UNIT, estimate


def mean(x):
    return float(x.mean())


def test_settings_that_do_not_go_with_a_batch_are_refused():
    """A setting would be ignored, or refused only after the function was decorated."""
    made = {"epsilon": 1, "gamma": 0.1, "sampler": UNIT, "batch": True}
    for name, value in (("pair", lambda d, i, r: (0, 0)), ("coins", ("rng",)), ("timeout", 3.0)):
        with pytest.raises(SettingsError, match=f"batch= and {name}= do not go together"):
            privatize(**made, **{name: value})(lambda x, rng=None: x.mean())
    with pytest.raises(SettingsError, match="batch=True is for mechanisms that add noise"):
        privatize(**made, mechanism=Exponential(responses=[0, 1]))(lambda x, r: -abs(x.mean() - r))
    for value in (3, "yes", None, [np.mean]):
        with pytest.raises(SettingsError, match="is not True, False, or a function"):
            privatize(**{**made, "batch": value})(np.mean)


def test_settings_are_refused_without_a_decorator():
    """timeout= and pair=, which are for single pairs, would be ignored with a batch."""
    for name, value in (("pair", lambda d, i, r: (0.0, 0.0)), ("timeout", 3.0)):
        with pytest.raises(SettingsError, match=f"batch= and {name}= do not go together"):
            estimate(mean, batch=True, workers=1, **{name: value})
    with pytest.raises(SettingsError, match="is not True, False, or a function"):
        estimate(mean, batch=7)


def test_a_batch_of_scores():
    """The exponential mechanism could not use a batch that returns all scores of every dataset."""
    responses = [0.25, 0.5, 0.75]

    def score(x, r):
        return -abs(float(np.median(x)) - r)

    def scores(stack):
        return -np.abs(np.median(stack, axis=1)[:, None] - responses)

    made = {
        "epsilon": 1,
        "gamma": 0.1,
        "sampler": UNIT,
        "mechanism": Exponential(responses=responses),
        "seed": 1,
    }
    plain, stacked = privatize(**made)(score), privatize(**made, batch=scores)(score)
    assert np.array_equal(plain.estimate(40).gaps, stacked.estimate(40).gaps)
    assert stacked(np.full(40, 0.5)) in responses
