"""Bounds must fit the records that a sampler draws, and records between them must be drawn, not invented."""

import numpy as np
import pytest

from privatize.errors import SamplerError
from privatize.samplers import choice, uniform
from privatize.samplers.boxes import accepted, ends_for
from privatize.samplers.parameters import Frozen
from tests.cases import for_each


@for_each(
    ("sampler", "ends", "message"),
    [
        (uniform(0, 1), (None, None), "needs a bound"),
        (choice(["a", "b"]), (0, 1), "is for numbers"),
        (uniform(0, 1, size=2), ([0, 0, 0], 1), "do not fit records of shape"),
        (uniform(0, 1), (1, 0), "must be below"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(sampler, ends, message):
    """P would be restricted to something else than its user wrote."""
    with pytest.raises(SamplerError, match=message):
        ends_for(sampler, "clip", *ends)


def test_records_between_bounds_are_those_that_were_drawn():
    """A restricted P would have another law than P given its bounds."""
    rng, again = np.random.default_rng(1), np.random.default_rng(1)
    found = accepted(rng.random, (Frozen(0.2), Frozen(0.6)), 50, "P")
    drawn = again.random(100_000)
    assert np.array_equal(found, drawn[(drawn >= 0.2) & (drawn <= 0.6)][:50])


def test_bounds_that_hardly_any_record_meets_are_refused():
    """A draw would never end."""
    with pytest.raises(SamplerError, match="fewer than one draw in a thousand"):
        accepted(np.random.default_rng(1).random, (Frozen(2), Frozen(3)), 5, "P")
