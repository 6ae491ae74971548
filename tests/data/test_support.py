"""Supports say what P can draw, and a mixture lies in all of its parts' supports."""

import copy
import pickle

import numpy as np

from privatize.data.support import Maybe, OneOf, bounded, join
from tests.cases import for_each
from tests.data.conversions import inf

FIRST, LAST = np.datetime64("2020-01-01"), np.datetime64("2024-12-31")


@for_each(
    ("support", "expected"),
    [
        (None, False),
        ((-inf, inf), False),
        ((0, inf), True),
        ((np.array([-inf, 0.0]), np.array([inf, inf])), True),
        ((np.full(2, -inf), np.full(2, inf)), False),
        (OneOf(("a",), "a"), True),
        (Maybe(None), False),
        (Maybe((0, 1)), True),
        ({"a": None, "b": (0, 1)}, True),
        ({"a": None, "b": Maybe()}, False),
        ((None, None), False),
        ((None, (0, 1)), True),
        ((FIRST, LAST), True),
        ((np.datetime64("NaT", "D"), np.datetime64("NaT", "D")), False),
    ],
)
def test_bounded(support, expected):
    """domain="clip" is the default only where there is something to clip to."""
    assert bounded(support) is expected


def test_supports_can_be_pickled_and_compared():
    """Supports are a part of keys and are sent to workers."""
    for support in (OneOf(("F", "M"), unknown="F"), Maybe((0, 1)), Maybe(OneOf((1, 2), 1))):
        assert pickle.loads(pickle.dumps(support)) == support
        assert hash(support) == hash(copy.deepcopy(support))
        assert eval(repr(support), {"OneOf": OneOf, "Maybe": Maybe}) == support


def test_a_mixture_lies_in_all_of_its_supports():
    """A support that is too small would move private records that P does draw."""
    assert join([(0, 1), (5, 9)]) == (0, 9)
    assert join([(0, 1), None]) is None
    assert join([(0, 1), Maybe((5, 9))]) == Maybe((0, 9))
    assert join([OneOf((1, 2), 1), OneOf((2, 3), 3)]) == OneOf((1, 2, 3), 1)
    assert join([{"a": (0, 1)}, {"a": (2, 3)}]) == {"a": (0, 3)}
    assert join([((0, 1), OneOf((1,), 1)), ((2, 3), OneOf((2,), 2))]) == ((0, 3), OneOf((1, 2), 1))
    assert join([(0, 1), OneOf((1,), 1)]) is None
