"""Neighbours must differ in one record and nothing else, and P's own kind of records must not change."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize.data import records
from privatize.data.schema import AlignedSchema, ArraySchema, ListSchema
from tests.cases import for_each
from tests.data.datasets import NAMES, PAIR, inf, make, nan, sampled


def convert(data, schema, support=None):
    """Convert private records, given the schema of what P draws."""
    return records.convert(data, sampled(schema), support)


every_container = pytest.mark.parametrize("name", NAMES)


def record(data, i):
    """Return a dataset of the one record at i."""
    return records.take(data, np.array([i]))


# --- count, take, head, concat ---


@every_container
def test_count(name):
    """n is public and sets the sensitivity: a wrong one would calibrate another function."""
    assert records.count(make(name)) == 5


@pytest.mark.parametrize(
    "empty", [[], np.zeros(0), np.zeros((0, 3)), ([], np.zeros(0)), np.zeros(0, dtype=PAIR)], ids=repr
)
def test_an_empty_dataset_has_no_records(empty):
    """An empty dataset would fail somewhere else, with another message."""
    assert records.count(empty) == 0
    assert records.equal(records.copy(empty), empty)
    assert records.count(records.take(empty, np.array([], dtype=np.intp))) == 0


@every_container
def test_take(name):
    """A mixture's records would come from the wrong people."""
    data = make(name)
    taken = records.take(data, np.array([4, 0, 0, 2]))
    assert records.count(taken) == 4
    assert records.describe(taken) == records.describe(data)
    for i, source in enumerate([4, 0, 0, 2]):
        assert records.equal(record(taken, i), record(data, source))
    assert records.equal(records.take(data, np.arange(5)), data)


@every_container
def test_head(name):
    """The dataset of a pair would not be its first n records."""
    data = make(name)
    assert records.equal(records.head(data, 3), records.take(data, np.arange(3)))
    assert records.equal(records.head(data, 5), data)


@every_container
def test_concat(name):
    """Parts of a mixture would be joined in the wrong order."""
    data = make(name)
    joined = records.concat([records.head(data, 2), records.take(data, np.array([2, 3, 4]))])
    if name == "big-endian":  # numpy joins in the machine's own byte order
        joined = joined.astype(data.dtype)
    assert records.equal(joined, data)


# --- copy and replace ---


@every_container
def test_a_copy_is_equal(name):
    """A function would be given other data than was drawn."""
    data = make(name)
    copied = records.copy(data)
    assert records.equal(copied, data)
    assert records.describe(copied) == records.describe(data)


@every_container
def test_a_copy_shares_nothing_that_can_change(name):
    """A function that works in place would change the neighbour, or the user's private data."""

    def spoil(value):
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                for item in value.ravel().tolist():
                    spoil(item)
            value[...] = np.zeros((), dtype=value.dtype)
        elif isinstance(value, dict):
            for item in value.values():
                spoil(item)
            value.clear()
        elif isinstance(value, list | tuple):
            for item in value:
                spoil(item)
            if isinstance(value, list):
                value.append("spoiled")

    data = make(name)
    spoil(records.copy(data))
    assert records.equal(data, make(name))


@every_container
@pytest.mark.parametrize("position", [0, 2, 3])
def test_replace_changes_one_record(name, position):
    """Neighbours would differ in more than one person, or in none."""
    drawn = make(name)
    data = records.neighbour(drawn, position, 4)
    assert records.count(data) == 4
    assert records.describe(data) == records.describe(drawn)
    for i in range(4):
        assert records.equal(record(data, i), record(drawn, 4 if i == position else i))
    assert records.equal(drawn, make(name))


# --- describe and match ---


@every_container
def test_a_dataset_of_ps_own_kind_is_not_changed(name):
    """Private data of exactly the kind that P draws would be changed, shared, or refused."""
    data = make(name)
    schema = records.describe(data)
    converted = convert(data, schema, None)
    assert records.equal(converted, data)
    assert records.describe(converted) == schema
    if isinstance(data, np.ndarray):
        assert not np.shares_memory(converted, data)


F8, F4, I8, I4, I2, U1, U8, B1 = (
    ["array", kind, []] for kind in ("<f8", "<f4", "<i8", "<i4", "<i2", "|u1", "<u8", "|b1")
)


# --- cast ---


def test_cast_gives_the_private_datas_container():
    """A function of lists would be calibrated on arrays, where + and len mean something else."""
    drawn = np.arange(3.0)
    assert records.cast(drawn, ListSchema()) == [0.0, 1.0, 2.0]
    assert {type(value) for value in records.cast(drawn, ListSchema())} == {float}
    assert records.cast(np.arange(4).reshape(2, 2), ListSchema()) == [[0, 1], [2, 3]]
    assert records.cast(drawn, ArraySchema(np.dtype("<f8"), ())) is drawn
    assert records.cast(drawn, None) is drawn
    listed = [1, 2]
    assert records.cast(listed, ListSchema()) is listed
    one, two = records.cast(
        (drawn, np.arange(3)), AlignedSchema((ListSchema(), ArraySchema(np.dtype("<i8"), ())))
    )
    assert one == [0.0, 1.0, 2.0]
    assert isinstance(two, np.ndarray)


# --- convert: kinds ---


def test_clipping():
    """Private records outside P's support would reach a function that was not calibrated on such records."""
    converted = convert(np.array([-1, 50, 200]), F8, (0.0, 100.0))
    assert converted.tolist() == [0, 50, 100]
    assert converted.dtype == np.float64
    assert convert(np.array([-inf, inf]), F8, (0, 1)).tolist() == [0, 1]
    assert convert([-1.0, 0.5, 7], F8, (0, 1)) == [0.0, 0.5, 1.0]
    assert convert(np.array([True, False]), F8, (0.25, 0.5)).tolist() == [0.5, 0.25]
    assert convert(np.array([-1, 1e9]), F8, (0, inf)).tolist() == [0, 1e9]


def test_clipping_by_coordinate():
    """One column would be clipped to another's bounds."""
    support = np.array([0.0, -inf]), np.array([1.0, 5.0])
    converted = convert(np.array([[2, 2], [-1, -9], [0.5, 9]]), ["array", "<f8", [2]], support)
    assert converted.tolist() == [[1, 2], [0, -9], [0.5, 5]]


@pytest.mark.parametrize(
    ("support", "fill"),
    [
        ((0.0, 10.0), 5.0),
        ((3.0, inf), 3.0),
        ((-inf, 3.0), 3.0),
        ((-inf, inf), 0.0),
        ((-1.7e308, 1.7e308), 0.0),
    ],
)
def test_a_missing_value_becomes_a_public_value_in_the_support(support, fill):
    """A NaN would make the entire answer NaN, and so reveal that a value was missing."""
    assert convert(np.array([nan, 4.0]), F8, support).tolist()[0] == fill
    assert convert([nan, 4.0], F8, support)[0] == fill


def test_missing_values_by_coordinate():
    """A NaN in one column would become the fill value of another column."""
    support = np.array([0.0, -inf, 7.0]), np.array([10.0, 5.0, inf])
    assert convert(np.full((1, 3), nan), ["array", "<f8", [3]], support).tolist() == [[5, 5, 7]]


def test_without_a_support_nothing_is_clipped():
    """domain="as-is" would change the data all the same."""
    data = np.array([nan, inf, -1e300])
    assert records.equal(convert(data, F8, None), data)


def test_the_private_data_is_not_changed():
    """The user's own array would be clipped in place, or changed by the function."""
    for data in (np.array([nan, -5.0, 5.0]), np.array([-5, 5]), [nan, -5.0], [[1.0, 2.0]]):
        before = records.copy(data)
        drawn = ["array", "<f8", [2]] if isinstance(data[0], list) else F8
        for support in (None, (0.0, 1.0)):
            converted = convert(data, drawn, support)
            converted[0] = 99
            assert records.equal(data, before)


def test_objects_and_structures_are_copied_not_clipped():
    """A support for numbers would be applied to values that have no order."""
    for name in ("objects", "strings", "structured"):
        data = make(name)
        converted = convert(data, records.describe(data), None)
        assert records.equal(converted, data)
        assert not np.shares_memory(converted, data)
        assert "support" in records.misfit(data, (0.0, 1.0))


@pytest.mark.parametrize(
    ("data", "drawn"), [(np.array([1.5, 2.5, -1.5, 0.4]), I8), ([1.5, 2.5, -1.5, 0.4], I8)]
)
def test_floats_are_rounded_to_the_integers_that_p_draws(data, drawn):
    """0.9 would become 0: rounding is to the nearest, for lists as for arrays."""
    assert list(convert(data, drawn, None)) == [2, 2, -2, 0]


# --- convert: no cast may wrap ---


@for_each(
    ("data", "drawn", "expected"),
    [
        (np.array([300, -1, 7]), U1, [255, 0, 7]),
        (np.array([2**40, -(2**40), 7]), I4, [2**31 - 1, -(2**31), 7]),
        (np.array([2**63, 7], dtype=np.uint64), I8, [2**63 - 1, 7]),
        (np.array([-1, 7]), U8, [0, 7]),
        (np.array([300, -300], dtype=np.int16), ["array", "|i1", []], [127, -128]),
        (np.array([1e300, -1e300, inf, -inf, 7.0]), I4, [2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 7]),
        (np.array([300.0, -0.6, nan]), U1, [255, 0, 0]),
        (np.array([3e9, -3e9, 7], dtype=np.float32), I4, [2**31 - 1, -(2**31), 7]),
        (np.array([6e4, -6e4, inf, 7], dtype=np.float16), I2, [32767, -32768, 32767, 7]),
        (np.array([True, False]), U1, [1, 0]),
    ],
)
@for_each("support", [None, (-inf, inf)], ids=["as-is", "unbounded"])
def test_integers_saturate(data, drawn, expected, support):
    """A large salary would become a negative one."""
    converted = convert(data, drawn, support)
    assert converted.dtype == np.dtype(drawn[1])
    # float32 and float16 cannot represent 2^31 - 1 or 32767: the float below is accepted.
    slack = 0 if data.dtype != np.float32 and data.dtype != np.float16 else 2**8
    assert all(abs(a - b) <= slack for a, b in zip(converted.tolist(), expected, strict=True))


@given(
    value=st.floats(allow_nan=False),
    source=st.sampled_from(["f8", "f4", "f2"]),
    target=st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_float_becomes_the_nearest_integer_of_the_dtype(value, source, target):
    """A float that is out of range would become an arbitrary integer."""
    with np.errstate(over="ignore"):
        data = np.array([value]).astype(source)
    ends = np.iinfo(target)
    found = int(convert(data, ["array", np.dtype(target).str, []], None)[0])
    exact = float(data[0])
    if math.isinf(exact):
        nearest = ends.max if exact > 0 else ends.min
    else:
        nearest = min(max(round(exact), ends.min), ends.max)
    # At the top of the range, the nearest float below it is accepted.
    assert abs(found - nearest) <= (abs(ends.max) // 2**10 if nearest == ends.max else 0)


@given(
    value=st.integers(-(2**63), 2**64 - 1),
    target=st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_an_integer_becomes_the_nearest_integer_of_the_dtype(value, target):
    """An integer that is out of range would become an arbitrary one."""
    data = np.array([value], dtype=np.uint64 if value >= 2**63 else np.int64)
    ends = np.iinfo(target)
    found = int(convert(data, ["array", np.dtype(target).str, []], None)[0])
    assert found == min(max(value, ends.min), ends.max)


@pytest.mark.parametrize("value", [2**60 + 1, 2**53 + 1, -(2**60) - 1])
def test_large_integers_inside_the_support_are_not_changed(value):
    """A record that P could have drawn would be changed by rounding."""
    support = (-(2.0**62), 2.0**62)
    assert convert(np.array([value]), I8, support).tolist() == [value]


def test_rounding_does_not_leave_the_support():
    """A record would be clipped to the bound, and then rounded to the integer beyond it."""
    converted = convert(np.array([0, 2, 9]), I8, (0.5, 3.4))
    assert converted.tolist() == [1, 2, 3]
    assert convert(np.array([0, 2, 9]), I8, (0.5, 3.5)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("support", [None, (-1e300, 1e300)])
def test_a_float_beyond_the_range_gives_no_warning(support):
    """A warning about an overflow would reveal in the public log that a private number is huge."""
    converted = convert(np.array([1e300, -1e300]), F4, support)
    assert converted.dtype == np.float32
    assert converted[0] >= np.finfo(np.float32).max
    assert converted[1] <= np.finfo(np.float32).min


# --- convert: neighbours stay neighbours ---


@given(
    values=st.lists(st.floats(width=32), min_size=2, max_size=6),
    other=st.floats(width=32),
    position=st.integers(0, 5),
    drawn=st.sampled_from([F8, F4, I8, U1]),
    support=st.sampled_from([None, (0.0, 1.0), (-inf, 3.0), (2.0, inf)]),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_each_record_is_changed_by_itself(values, other, position, drawn, support):
    """One person's record would change what happens to another's: no longer neighbours."""
    position %= len(values)
    one = np.array(values)
    two = one.copy()
    two[position] = other
    a, b = (convert(data, drawn, support) for data in (one, two))
    assert records.equal(np.delete(a, position), np.delete(b, position))
    assert len(a) == len(b) == len(values)
    if support is not None and drawn in (F8, F4):
        assert ((support[0] <= a) & (a <= support[1])).all()
