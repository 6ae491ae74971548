"""How far off `Blocks` is: the figures that docs/blocks.md and the choice of b rest on."""

import warnings

import numpy as np
import pytest

from privatize import Blocks
from privatize.errors import InsecureNoiseWarning
from privatize.testing import insecure_noise
from tests.cases import for_each
from tests.choice_of_b import CASES, error


def measured(*args, **kwargs):
    """Return an error with seeded noise, so that it is the same at every run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        with insecure_noise(1):
            return error(*args, **kwargs)


@pytest.mark.slow
@for_each(
    ("name", "n", "raw", "median", "mean"),
    [
        ("slope, ±10", 2000, 0.029, 0.045, 0.35),
        ("slope, ±10", 20_000, 0.0092, 0.013, 0.35),
        ("correlation, ±1", 20_000, 0.0068, 0.0095, 0.035),
    ],
)
def test_errors_by_default(name, n, raw, median, mean):
    """The docs' figures at ε = 1 would not be what a user gets.

    Each is the root of a mean of 300 squares, so it deviates by 4%, or by 13% for Laplace noise, whose
    squares vary more; half as much again as the figure, or two thirds of it, is beyond five deviations.
    """
    b = Blocks(0.0, 1.0).number(n, 1.0)
    found = [
        measured(CASES[name], n, 1, 0.0, 300, 1, "median"),
        measured(CASES[name], n, b, 1.0, 300, 2, "median"),
        measured(CASES[name], n, b, 1.0, 300, 3, "mean"),
    ]
    for ours, documented in zip(found, (raw, median, mean), strict=True):
        assert documented / 1.6 < ours < documented * 1.6


def test_a_grid_is_no_finer_than_odds_can_tell():
    """If all blocks agree, their answer would drown in the points of a grid that is too fine."""
    values = np.full((80, 1), 1 / 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        with insecure_noise(2):
            found = [Blocks(0.0, 1.0).release_blocks(values, 1.0).item() for _ in range(200)]
    assert np.abs(np.array(found) - 1 / 3).max() < 2.0**-12
