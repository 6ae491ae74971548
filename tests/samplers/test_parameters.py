"""Parameters of samplers are checked, compared by content, and cannot be changed afterwards."""

import numpy as np
import pytest

from privatize import samplers
from privatize.errors import SamplerError
from privatize.samplers import (
    boolean,
    categorical,
    choice,
    normal,
    table,
    uniform,
)
from privatize.samplers.parameters import Frozen, accepted, ends_for
from tests.cases import for_each
from tests.samplers.drawn import within


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_box_may_have_more_coordinates_than_the_mean(n):
    """One mean for all coordinates: with n = 2 each record would get the other's bounds."""
    try:
        sampler = normal(0, 1, low=[0, 5], high=[1, 6])
    except SamplerError:
        return  # refused is right too
    drawn = sampler.draw(n, rng(27))
    assert drawn.shape == (n, 2)
    assert within(sampler, drawn)


def test_the_size_may_be_a_numpy_integer():
    """``size=columns.max()`` would be refused, though it is an integer."""
    assert uniform(0, 1, size=np.int64(3)) == uniform(0, 1, size=3)


def test_shares_in_a_dict_are_refused_with_the_right_way():
    """A user who writes shares as a dict would not learn where they go."""
    with pytest.raises(SamplerError, match=r"For shares: categorical\(\['a', 'b'\], p="):
        samplers.categorical({"a": 0.6, "b": 0.4})


def test_changing_the_arguments_later_changes_no_sampler():
    """P would change with a list that the caller goes on using."""
    values, p, columns = ["a", "b"], [1.0, 3.0], {"x": boolean()}
    one, other = categorical(values, p), table(columns, frame="dict")
    before = repr(one), repr(other)
    values.append("c")
    p[0] = 7.0
    columns["y"] = boolean()
    assert (repr(one), repr(other)) == before


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
