"""A support that a user states is the support, and draws outside it are refused."""

import numpy as np

from privatize.samplers import (
    Maybe,
    OneOf,
    from_function,
)
from tests.cases import for_each
from tests.samplers.combinations import NAMES, dice


def make(code):
    """Make a sampler from its code."""
    return eval(code, dict(NAMES))


@for_each(
    ("given", "support"),
    [
        (None, None),
        ((0, 1), (0.0, 1.0)),
        ([0, 1], OneOf((0, 1), 0)),
        (["b", "a"], OneOf(("b", "a"), "b")),
        (OneOf((0, 1), 1), OneOf((0, 1), 1)),
        (Maybe((0, 1)), Maybe((0.0, 1.0))),
        (Maybe(), Maybe()),
        ({"a": (0, 1), "b": None}, {"a": (0.0, 1.0), "b": None}),
        (((0, 1), ["x"]), ((0.0, 1.0), OneOf(("x",), "x"))),
        ((None, (0, 1)), (None, (0.0, 1.0))),
        (({"a": (0, 1)}, (0, 1)), ({"a": (0.0, 1.0)}, (0.0, 1.0))),
        (((0, 1), Maybe((0, 1))), ((0.0, 1.0), Maybe((0.0, 1.0)))),
        ((Maybe(["x"]), None), (Maybe(OneOf(("x",), "x")), None)),
    ],
)
def test_a_stated_support_is_the_support(given, support):
    """Private records would be converted to another support than the one that was stated."""
    assert from_function(dice, support=given).support == support


def test_a_stated_support_of_dates():
    """Dates that a function draws could not have bounds."""
    ends = np.datetime64("2020-01-01"), np.datetime64("2020-12-31")
    sampler = from_function(dice, support=ends)
    assert sampler.support == ends
    assert make(repr(sampler)) == sampler
