"""An answer must come back with its own types, from a structure that comes from calibration alone."""

import collections
import dataclasses
import decimal
import math
import typing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize.outputs.describe import describe, from_json
from privatize.outputs.structure import StructureChanged
from tests.cases import for_each
from tests.outputs.shapes import Derived, Fit, Old, roundtrip, same

inf, nan = math.inf, math.nan


class Point(typing.NamedTuple):
    x: float
    y: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    mean: float
    inner: Point


# --- round trips ---


@for_each(
    "value",
    [
        1.5,
        -0.0,
        1e-320,
        7,
        -(2**53),
        int(2.0**300),
        np.float64(1.5),
        np.float32(0.1),
        np.float16(0.1),
        np.longdouble(1.5),
        np.int8(-128),
        np.uint8(255),
        np.int64(2**53),
        np.uint64(2**53),
        np.array(1.5),
        np.array([1.5, 2.5]),
        np.arange(6).reshape(2, 3),
        np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0)[::-2],
        np.arange(3, dtype=">f4"),
        np.arange(3, dtype=">i2"),
        [1.0, 2, np.float32(3)],
        (1.0, [2, (3.0,)]),
        {"mean": 1.5, "n": 7},
        {"b": 1.0, "a": {"d": [1], "c": (2.0,)}},
        {1: 1.0, True + 1: 2.0, None: 3.0, 0.5: 4.0, ("a", 1, (None, 2.5)): 5.0, "": 6.0, "ü": 7.0},
        {True: 1.0, False: 2.0},
        {np.int64(3): 1.0, np.str_("a"): 2.0, np.float32(0.1): 3.0, np.bool_(True): 4.0},
        {2**80: 1.0, 1e300: 2.0, -0.1: 3.0, inf: 4.0},
        collections.OrderedDict(b=1.0, a=2),
        collections.Counter(b=1, a=2),
        Point(1.0, 2),
        Old([1.0], {"a": 2}),
        Fit(0.5, 3, np.array([1.0, 2.0])),
        Frozen(mean=1.5, inner=Point(2.0, 3)),
        Derived(3.0),
        [Point(1.0, 2), Fit(1.0, 2, np.zeros((0, 3))), Point(3.0, 4)],
        [1.0, [], {}, (), np.zeros((0, 2))],
    ],
    ids=lambda value: repr(value)[:40],
)
def test_round_trip(value):
    """An answer would come back as another type: a float count, a list for an array, a dict for a Counter."""
    assert same(roundtrip(value), value)


def test_the_vector_is_a_copy():
    """The answer of a function that returns a view of its data would change later."""
    value = np.array([1.0, 2.0])
    vector = describe(value).flatten(value)
    value[0] = 99
    assert vector.tolist() == [1, 2]
    back = describe(value).rebuild(vector)
    vector[1] = 77
    assert back.tolist() == [1, 2]


def test_small_dtypes_are_widened_before_anything_else():
    """uint8(3) - uint8(5) would be 254 in the gap."""
    value = np.array([3, 5], dtype=np.uint8)
    vector = describe(value).flatten(value)
    assert (vector - vector[::-1]).tolist() == [-2, 2]
    scalar = describe(np.uint8(0))
    assert scalar.numbers(np.uint8(3)) - scalar.numbers(np.uint8(5)) == -2
    assert describe([np.int8(0)]).flatten([np.int8(-128)]).tolist() == [-128]


# --- the structure ---


def test_the_structure_holds_no_values():
    """The structure is public: it must not depend on the numbers."""
    assert describe({"a": 1.0, "b": [2, np.zeros(2)]}) == describe({"a": 9.0, "b": [-7, np.ones(2)]})


def test_integers_are_known_by_coordinate():
    """Integers would get continuous noise, or floats discrete noise."""
    tree = describe({"n": 3, "mean": 1.5, "counts": np.zeros(2, "u1"), "x": [np.float32(1), np.int8(1)]})
    assert tree.integers().tolist() == [True, False, True, True, False, True]
    assert tree.size == 6


def test_a_vector_of_the_wrong_length():
    """A mistake of a mechanism would be released as a shorter answer."""
    with pytest.raises(ValueError, match="1 numbers do not fill a structure of 2"):
        describe([1.0, 2.0]).rebuild(np.zeros(1))


class Listed(list):
    """A user's subclass of list."""


# --- structures that change ---


@for_each(
    ("calibrated", "private"),
    [
        (1, 1.5),
        (1, np.float64(1)),
        (np.int8(1), 1.0),
        (1.0, True),
        (1, True),
        (1.0, np.True_),
        (1.0, None),
        (1.0, "1.0"),
        (1.0, 1j),
        (1.0, [1.0]),
        (1.0, np.array([1.0])),
        (1.0, decimal.Decimal(1)),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), [0.0, 0.0]),
        (np.zeros(2), 0.0),
        (np.zeros(2), np.zeros(2, dtype=bool)),
        (np.zeros(2), np.zeros(2, dtype=complex)),
        (np.zeros(2), np.array([0.0, 0.0], dtype=object)),
        (np.zeros(2), np.ma.array([0.0, 0.0], mask=[0, 1])),
        (np.zeros(2, dtype=int), np.zeros(2)),
        (np.zeros(()), np.zeros(1)),
        ([1.0], [1.0, 2.0]),
        ([1.0, 2.0], [1.0]),
        ([1.0], (1.0,)),
        ((1.0,), [1.0]),
        ([1.0], Listed([1.0])),
        ([1.0], np.array([1.0])),
        ([1.0], {"a": 1.0}),
        ([1.0], None),
        ([1.0, [2.0]], [1.0, [2.0, 3.0]]),
        ([1.0], ["x"]),
        ({"a": 1.0}, {"b": 1.0}),
        ({"a": 1.0}, {"a": 1.0, "b": 1.0}),
        ({"a": 1.0, "b": 1.0}, {"a": 1.0}),
        ({"a": 1.0}, {}),
        ({"a": 1.0}, [1.0]),
        ({"a": 1.0}, {"a": [1.0]}),
        ({1: 1.0}, {"1": 1.0}),
        ({"a": 1}, {"a": 1.5}),
        (Point(1.0, 2), (1.0, 2)),
        (Point(1.0, 2), Old(1.0, 2)),
        (Point(1.0, 2), Point(1.0, 2.5)),
        (Old([1.0], 1), Old([1.0, 2.0], 1)),
        (Fit(1.0, 2, np.zeros(2)), Fit(1.0, 2, np.zeros(3))),
        (Fit(1.0, 2, np.zeros(2)), Derived(1.0)),
        (Fit(1.0, 2, np.zeros(2)), {"slope": 1.0, "count": 2, "residuals": np.zeros(2)}),
    ],
    ids=repr,
)
def test_a_changed_structure_is_noticed(calibrated, private):
    """A shape, a key or a type that depends on the private data would be released with it."""
    with pytest.raises(StructureChanged):
        describe(calibrated).flatten(private)


def test_a_structure_change_carries_nothing():
    """The exception would carry the private output that caused it."""
    with pytest.raises(StructureChanged) as caught:
        describe({"a": 1.0}).flatten({"secret": 8675309})
    assert caught.value.args == ()
    assert caught.value.__cause__ is None


@for_each(
    ("calibrated", "private", "vector"),
    [
        (1.5, 3, [3]),
        (1.5, np.int8(3), [3]),
        (1.5, np.float32(3), [3]),
        (1.5, np.array(3.0), [3]),
        (np.float64(1), 3, [3]),
        (np.float32(1), 2.5, [2.5]),
        (1, np.int64(3), [3]),
        (np.uint8(1), 300, [300]),
        (np.zeros(2), np.array([1, 2]), [1, 2]),
        (np.zeros(2), np.array([1, 2], dtype=np.float32), [1, 2]),
        (np.zeros(2, dtype=int), np.array([1, 2], dtype=np.uint8), [1, 2]),
        ([1.0], [2], [2]),
        ({"a": 1.0}, collections.OrderedDict(a=2), [2]),
        (collections.Counter(a=1), {"a": 2}, [2]),
        ({1: 1.0}, {np.int64(1): 2.0}, [2]),
    ],
    ids=repr,
)
def test_what_is_the_same_structure(calibrated, private, vector):
    """sum([]) is an int and sum of floats a float: such an answer would be refused at random."""
    tree = describe(calibrated)
    assert tree.flatten(private).tolist() == vector
    assert type(tree.rebuild(tree.flatten(private))) is type(calibrated)


# --- numbers at the edges ---


def test_ints_stay_ints():
    """A count of people would come back as 41.99."""
    back = describe([1, 1, 1, 1]).rebuild(np.array([41.99, -0.4, 1e300, 2.5]))
    assert back == [42, 0, int(1e300), 2]
    assert {type(value) for value in back} == {int}


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_an_int_beyond_every_float_is_not_finite(value):
    """It would be an OverflowError inside the library that shows the private number."""
    assert math.isinf(describe(1).numbers(value))
    assert np.isinf(describe([1, 1.0]).flatten([value, 1.0]))[0]
    assert np.isinf(describe({"a": 1.5}).flatten({"a": value}))[0]


@given(
    values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=4),
    kind=st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8"]),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_noised_integers_saturate_and_never_wrap(values, kind):
    """A count with noise below zero would be released as 255."""
    ends = np.iinfo(kind)
    expected = [
        (ends.max if v > 0 else ends.min) if math.isinf(v) else min(max(round(v), ends.min), ends.max)
        for v in values
    ]
    tree = describe(np.zeros(len(values), dtype=kind))
    back = tree.rebuild(np.array(values))
    assert back.dtype == np.dtype(kind)
    assert back.tolist() == expected
    scalar = describe(np.zeros(1, dtype=kind)[0]).rebuild(np.array(values[:1]))
    assert isinstance(scalar, np.integer)
    assert int(scalar) == expected[0]


@for_each(
    ("kind", "value", "expected"),
    [
        ("u1", -1.0, 0),
        ("u1", 256.0, 255),
        ("i1", 200.0, 127),
        ("i8", 2.0**63, 2**63 - 1),
        ("i8", np.nextafter(2.0**63, 0), 2**63 - 1024),
        ("i8", -(2.0**63), -(2**63)),
        ("i8", -1e300, -(2**63)),
        ("u8", 2.0**64, 2**64 - 1),
        ("u8", np.nextafter(2.0**64, 0), 2**64 - 2048),
        ("u8", -5.0, 0),
    ],
)
def test_the_ends_of_the_integers(kind, value, expected):
    """2^63 is the first float that is no int64: it would come back as its opposite."""
    assert from_json(["array", np.dtype(kind).str, [1]]).rebuild(np.array([value])).tolist() == [expected]


def test_values_that_are_not_finite_are_passed_on():
    """Whether to refuse NaN is decided later, in one place: here it must not turn into a number."""
    vector = describe([1.0, 1.0, 1.0]).flatten([nan, inf, -inf])
    assert np.array_equal(vector, [nan, inf, -inf], equal_nan=True)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wider float here")
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v, 1.0]], ids=["bare", "nested"])
def test_a_long_double_beyond_every_float_gives_no_warning(wrap):
    """A warning about an overflow would show in a public log that the answer is huge."""
    huge = np.array([np.longdouble("1e4000")])
    assert np.isinf(describe(wrap(huge)).flatten(wrap(huge))[0])
    assert np.isinf(describe(wrap(huge[0])).flatten(wrap(huge[0]))[0])


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: {"a": x}, lambda x: (x, 1.0)])
def test_the_vector_of_a_nested_array_is_a_copy(wrap):
    """A function may return one array again and again: the first answer must not become the second."""
    value = np.array([1.0, 2.0])
    flat = describe(wrap(value)).flatten(wrap(value))
    value[:] = 9.0
    assert flat[:2].tolist() == [1.0, 2.0]
    assert flat.dtype == np.float64
    assert flat.shape == (describe(wrap(value)).size,)
