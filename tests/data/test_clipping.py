"""Private records are converted to P's support one by one, and nothing shows any of them."""

import copy
import datetime as dt
import decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from privatize import samplers
from privatize.data import clipping, records
from privatize.data.support import Maybe, OneOf
from privatize.errors import PrivatizeError
from tests.cases import for_each
from tests.data.conversions import (
    ENDS,
    ODD,
    SUPPORTS,
    TEXT,
    Loud,
    alone,
    inf,
    inside,
    nan,
    objects,
    private,
)

NUMBER = 918273.6450912
FIRST, LAST = np.datetime64("2020-01-01"), np.datetime64("2024-12-31")


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


def converted(data, sampler, seed=0):
    """Convert data to a sampler's dtypes and support."""
    return records.convert(data, drawn_by(sampler, seed), sampler.support)


# --- supports ---------------------------------------------------------------------------------


@for_each(
    ("value", "expected"),
    [
        (None, True),
        (nan, True),
        (np.float32("nan"), True),
        (np.datetime64("NaT", "D"), True),
        (np.timedelta64("NaT", "D"), True),
        ("nan", False),
        ("", False),
        (0, False),
        (inf, False),
        ([], False),
        (decimal.Decimal("1"), False),
    ],
)
def test_missing(value, expected):
    """A missing value that is not recognized would become an unknown category, or stay."""
    assert clipping.is_missing(value) is expected


# --- numbers ----------------------------------------------------------------------------------


REALS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([nan, inf, -inf, 0.0, -0.0, 1.0, 7.0, 0.4, 1e300, NUMBER]),
)
INTEGERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 1, 7, 2**53 + 1, -(2**53) - 1]))


@pytest.mark.parametrize("target", ["f8", "f4", "i8", "i1", "u8"])
@given(values=st.lists(REALS, min_size=1, max_size=6), support=SUPPORTS)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_every_float_is_converted_as_it_would_be_alone(target, values, support):
    """If one record changed another, neighbours would no longer be neighbours."""
    with np.errstate(all="ignore"):
        made = alone(np.array(values), np.zeros(2, target), support)
    assert made.dtype == target
    assert inside(made, support, target)


@pytest.mark.parametrize("target", ["f8", "i8", "i2", "u1"])
@given(values=st.lists(INTEGERS, min_size=1, max_size=6), support=SUPPORTS)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_every_integer_is_converted_as_it_would_be_alone(target, values, support):
    """If one record changed another, neighbours would no longer be neighbours."""
    made = alone(np.array(values, dtype=np.int64), np.zeros(2, target), support)
    assert made.dtype == target
    assert inside(made, support, target)


def test_rounding_does_not_let_an_integer_leave_the_support():
    """A record outside the support is one that calibration has never seen."""
    made = records.convert(np.array([2**53 + 1]), np.zeros(2, np.int64), (0, 2**53))
    assert made.tolist() == [2**53]


def test_bounds_by_coordinate_in_lists_and_arrays():
    """A bound for the wrong coordinate would move records that P draws."""
    ends = (np.array([0.0, 10.0]), np.array([1.0, 20.0]))
    data = np.array([[5.0, 5.0], [nan, nan], [-inf, inf]])
    expected = [[1.0, 10.0], [0.5, 15.0], [0.0, 20.0]]
    drawn = np.zeros((2, 2))
    assert alone(data, drawn, ends).tolist() == expected
    assert records.convert(data.tolist(), drawn, ends) == expected


# --- dates ------------------------------------------------------------------------------------


MOMENTS = st.sampled_from(
    ["NaT", "0001-01-01", "1970-01-01", "2019-12-31", "2020-01-01", "2022-02-02", "2024-12-31", "9999-12-31"]
)


@pytest.mark.parametrize("unit", ["D", "s", "us"])
@pytest.mark.parametrize("target", ["D", "s", "us", "ns"])
@given(values=st.lists(MOMENTS, min_size=1, max_size=5), optional=st.booleans())
@settings(max_examples=15, deadline=None, derandomize=True)
def test_every_date_is_converted_as_it_would_be_alone(unit, target, values, optional):
    """A date out of range must not wrap around, nor one record change another."""
    support = Maybe((FIRST, LAST)) if optional else (FIRST, LAST)
    made = alone(np.array(values, dtype=f"M8[{unit}]"), np.zeros(2, f"M8[{target}]"), support)
    assert made.dtype == f"M8[{target}]"
    missing = np.isnat(made)
    assert optional or not missing.any()
    assert ((made[~missing] >= FIRST) & (made[~missing] <= LAST)).all()


@pytest.mark.parametrize(
    ("start", "end"),
    [("2020-01-01", "9999-12-31"), ("0001-01-01", "2024-12-31"), ("0001-01-01", "9999-12-31")],
)
def test_bounds_beyond_nanoseconds(start, end):
    """Bounds that overflow the private data's unit would turn every record into the same wrong day."""
    data = np.array(["2021-01-01", "2022-03-04"], dtype="M8[ns]")
    made = converted(data, samplers.dates(start, end))
    assert made.tolist() == [dt.date(2021, 1, 1), dt.date(2022, 3, 4)]


def test_a_bound_within_a_day_holds_for_days_too():
    """A record outside the support is one that calibration has never seen."""
    P = samplers.dates("2020-01-01T12:00", "2024-12-31T12:00", times=True)
    made = converted(np.array(["2019-01-01", "2020-01-01", "2025-01-01"], dtype="M8[D]"), P)
    low, high = P.support
    assert ((made >= low) & (made <= high)).all()


# --- strings and objects ----------------------------------------------------------------------


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("container", [objects, list])
@given(values=st.lists(st.sampled_from(range(len(ODD))), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_every_odd_value_is_converted_as_it_would_be_alone(optional, container, values):
    """Any object among strings is mapped by itself: it raises no error and changes no other record."""
    support = OneOf(("F", "M"), unknown="F")
    drawn = objects(["F", "M"]) if optional else np.array(["F", "M"])
    made = alone(container([ODD[at] for at in values]), drawn, Maybe(support) if optional else support)
    assert all(one in ("F", "M") or (optional and one is None) for one in made)


def test_numpys_strings_are_strings():
    """A string from a numpy array would not be recognized as one of P's categories."""
    assert clipping.convert_choices([np.str_("M"), "M"], OneOf(("F", "M"), "F")) == ["M", "M"]


def test_true_is_not_one():
    """Booleans and numbers that compare equal are different categories."""
    assert clipping.convert_choices([True, 1, 0], OneOf((1, 2), unknown=2)) == [2, 1, 2]


def test_equal_numbers_are_the_same_category():
    """One float among the categories makes floats of all of them: 2.0 must still be the category 2."""
    assert clipping.convert_choices([2.0, 3, 2.5], OneOf((1, 2, 3), unknown=1)) == [2, 3, 1]
    assert clipping.convert_choices([2, 7], OneOf((1.5, 2.0), unknown=1.5)) == [2.0, 1.5]
    assert [type(one) for one in clipping.convert_choices([2.0, 3], OneOf((1, 2, 3), unknown=1))] == [
        int,
        int,
    ]


@pytest.mark.parametrize("width", ["U1", "U5", "U99"])
def test_strings_of_any_width_get_the_width_of_ps(width):
    """The dtype of an array of strings reveals the length of the longest one: it must be P's."""
    P = samplers.choice(["a", "longer"])
    made = converted(np.array(["a", "longer", "x" * 99], dtype=width), P)
    assert made.dtype == drawn_by(P).dtype
    assert set(made.tolist()) <= {"a", "longer"}


CSR = sparse.csr_array(np.zeros((2, 2)))


# --- the caller's data ------------------------------------------------------------------------


def overwrite(data):
    """Change everything in a dataset in place."""
    if isinstance(data, tuple | dict):
        for part in data.values() if isinstance(data, dict) else data:
            overwrite(part)
    elif isinstance(data, list):
        for at, one in enumerate(data):
            if isinstance(one, list | dict):
                one.clear()
            data[at] = None
    elif sparse.issparse(data):
        data.data[:] = -1
        data.indices[:] = 0
    elif data.dtype.hasobject:
        for one in data.tolist():
            if isinstance(one, list | dict):
                one.clear()
        data[:] = None
    else:
        data[:] = data[::-1].copy() if len(data) else data


DATASETS = {
    "floats": (np.array([0.5, 2.0, nan]), np.zeros(2), (0.0, 1.0)),
    "same dtype, no support": (np.array([0.5, 2.0, nan]), np.zeros(2), None),
    "integers": (np.array([1, 2, 3]), np.zeros(2), None),
    "list": ([0.5, 2.0, nan], np.zeros(2), (0.0, 1.0)),
    "drawn list": ([0.5, 2.0, nan], [0.0, 0.0], (0.0, 1.0)),
    "list of lists": ([[0.5], [2.0], [nan]], np.zeros((2, 1)), None),
    "list of objects": ([{"a": [1]}, {"a": [2]}], [{"a": [1]}], None),
    "dicts": ([{"a": 0.5, "b": [1]}, {"a": 3, "b": [2]}], [{"a": 0.5, "b": [1]}], {"a": (0.0, 1.0)}),
    "strings": (np.array(["a", "b"]), np.array(["a", "b"]), OneOf(("a", "b"), "a")),
    "objects": (objects([[1], [2]]), objects([[1], [2]]), None),
    "objects or missing": (objects([[1], [2]]), objects([[1], [2]]), Maybe(None)),
    "dates": (np.array(["2021-01-01", "NaT"], "M8[D]"), np.zeros(2, "M8[D]"), (FIRST, LAST)),
    "tuple": ((np.array([0.5, 2.0]), [1, 2]), (np.zeros(2), [1, 2]), None),
    "dict": ({"a": np.array([0.5, 2.0])}, {"a": np.zeros(2)}, {"a": (0.0, 1.0)}),
    "sparse": (sparse.csr_array(np.array([[1.0, 0], [2.0, 5.0]])), CSR, (0, 1)),
    "sparse, no support": (sparse.csr_array(np.array([[1.0, 0], [2.0, 5.0]])), CSR, None),
}


@for_each("name", DATASETS)
def test_the_callers_data_is_neither_changed_nor_shared(name):
    """A function that sorts in place would change the caller's data."""
    data, drawn, support = copy.deepcopy(DATASETS[name])
    before = copy.deepcopy(data)
    made = records.convert(data, drawn, support)
    assert records.equal(data, before)
    overwrite(made)
    assert records.equal(data, before)


# --- what leaks -------------------------------------------------------------------------------


SECRETS = [
    TEXT,
    NUMBER,
    [NUMBER],
    [TEXT, NUMBER],
    {TEXT: NUMBER},
    decimal.Decimal(str(NUMBER)),
    Loud(),
    10**400,
]
SAMPLERS = {
    "floats": (samplers.uniform(0, 1), 0.5),
    "pairs": (samplers.uniform(0, 1, size=2), [0.5, 0.5]),
    "strings": (samplers.choice(["a", "b"]), "a"),
    "integers": (samplers.choice([1, 2]), 1),
    "dates": (samplers.dates("2020-01-01", "2024-12-31"), dt.date(2021, 1, 1)),
    "list": (samplers.from_function(lambda n, rng: rng.random(n).tolist(), support=(0, 1)), 0.5),
    "as-is": (samplers.from_function(lambda n, rng: rng.random(n)), 0.5),
    "dicts": (samplers.table(a=samplers.uniform(0, 1), frame="records"), {"a": 0.5}),
    "dated": (samplers.table(a=samplers.dates("2020-01-01", "2021-01-01"), frame="records"), {"a": None}),
}


@for_each("secret", SECRETS, ids=lambda one: type(one).__name__)
@for_each("name", SAMPLERS)
def test_no_error_shows_a_record(name, secret):
    """Conversions quote what they cannot convert: a person's record would appear in a log."""
    sampler, good = SAMPLERS[name]
    for bad in (secret, {"a": secret}) if isinstance(good, dict) else (secret,):
        error = None
        try:
            private(sampler)([good, bad, good])
        except PrivatizeError as found:
            error = found
        chain = [error]
        while chain:
            one = chain.pop()
            if one is not None:
                shown = f"{one!s} {one!r} {vars(one)!r} {one.args!r}"
                assert TEXT not in shown and "918273" not in shown
                chain += [one.__cause__, one.__context__]


def test_no_error_names_the_class_of_a_record():
    """Which type one of the private records is of is as private as its value."""
    secret = type("Diagnosis", (), {})
    with pytest.raises(PrivatizeError) as caught:
        private(SAMPLERS["list"][0])([0.5, secret()])
    assert "Diagnosis" not in str(caught.value)


# --- a fixed number of records ----------------------------------------------------------------


@given(size=st.integers(1, 30), more=st.integers(0, 40), position=st.integers(0, 69))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_fixed_size_keeps_neighbours(size, more, position):
    """Which records are used depends on their number alone, so neighbours stay neighbours."""
    P = samplers.uniform(0, 1).fixed(size=size)
    n = size + more
    chosen = P.positions(n)
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert len(chosen) == size and chosen[-1] < n
    data = np.arange(float(n))
    other = data.copy()
    other[position % n] = -1
    assert (records.take(data, chosen) != records.take(other, chosen)).sum() <= 1


def test_a_growing_dataset_exchanges_one_record_at_a_time():
    """The selection follows one public order of the positions, whatever the data."""
    P = samplers.uniform(0, 1).fixed(size=20)
    seen = set(P.positions(20).tolist())
    for n in range(21, 60):
        now = set(P.positions(n).tolist())
        assert len(now - seen) <= 1 and now - seen <= {n - 1}
        seen = now


# --- the usual case ---


VALUES = st.one_of(st.floats(), st.sampled_from([nan, inf, -inf, -0.0, 5e-324, 1.7e308]))


@settings(max_examples=300, deadline=None)
@given(st.lists(VALUES, max_size=12), ENDS, ENDS, st.booleans())
def test_the_usual_case_gives_what_the_general_one_gives(values, low, high, flat):
    """A record would depend on whether the faster conversion was used."""
    data = np.array(values, dtype=np.float64)
    data = data if flat else data.reshape(-1, 1)
    low, high = min(low, high), max(low, high)
    before = data.copy()
    found = clipping.convert_floats(data, data[:0], (low, high))
    with np.errstate(all="ignore"):
        expected = clipping.convert_numbers(data, data.dtype, (low, high))
    assert np.array_equal(data, before, equal_nan=True)
    assert found is not None and found.dtype == expected.dtype and np.array_equal(found, expected)
    assert not np.shares_memory(found, data)


@settings(max_examples=300, deadline=None)
@given(st.lists(VALUES, min_size=2, max_size=12), VALUES, st.integers(0, 11), ENDS, ENDS)
def test_no_record_has_an_effect_on_how_others_are_converted(values, other, at, low, high):
    """Neighbours must stay neighbours, to the sign of a zero: a function may divide by it."""
    one = np.array(values, dtype=np.float64)
    two, at = one.copy(), at % len(values)
    two[at] = other
    low, high = min(low, high), max(low, high)
    for convert in (
        lambda data: clipping.convert_floats(data, data[:0], (low, high)),
        lambda data: records.convert(data, np.zeros(2), (low, high)),
    ):
        with np.errstate(all="ignore"):
            found, neighbour = (np.delete(convert(data), at) for data in (one, two))
        assert found.tobytes() == neighbour.tobytes()


@for_each(
    ("data", "drawn", "support"),
    [
        (np.zeros(3, dtype=">f8"), np.zeros(2), (0.0, 1.0)),
        (np.zeros(3, dtype=np.float32), np.zeros(2), (0.0, 1.0)),
        (np.zeros(3), np.zeros(2, dtype=np.float32), (0.0, 1.0)),
        (np.zeros(3, dtype=int), np.zeros(2), (0.0, 1.0)),
        (np.zeros(3), np.zeros(2), None),
        (np.zeros(3), np.zeros(2), OneOf((0.0, 1.0), unknown=0.0)),
        (np.zeros(3), np.zeros(2), Maybe((0.0, 1.0))),
        (np.zeros((3, 2)), np.zeros((2, 2)), (np.zeros(2), np.ones(2))),
        ([0.0], np.zeros(2), (0.0, 1.0)),
        (np.ma.masked_array(np.zeros(3)), np.zeros(2), (0.0, 1.0)),
    ],
)
def test_every_other_case_is_left_to_the_general_conversion(data, drawn, support):
    """Other data would be converted by code that is right for float64 only."""
    assert clipping.convert_floats(data, drawn, support) is None


class Text(str):
    """A string of another class, which P does not draw."""


@pytest.mark.parametrize("others", [[], [1], [Text("F")], [["F"]], [float("nan")], [True]], ids=repr)
def test_strings_are_looked_up_alone_as_they_are_beside_values_of_other_types(others):
    """One private record of another type would change how all others are converted."""
    values = ["F", None, "x", "M", "", *others]
    support = OneOf(("F", "M"), unknown="M")
    assert clipping.convert_choices(values, support) == ["F", "M", "M", "M", "M", *["M" for _ in others]]
    assert clipping.convert_choices(values, Maybe(support))[:5] == ["F", None, "M", "M", "M"]
    assert clipping.codes(values, ["F", "M"])[:5] == [0, -1, -1, 1, -1]
    assert clipping.absent_in(clipping.objects(values))[:5].tolist() == [False, True, False, False, False]


@for_each("dtype", ["f8", "f4", "i8", "u1", "i2", "?"])
@for_each("known", [(0, 1), (0.5, 1.0), (True, False), (300, -1), (2**60, 7), (nan, 2.0), tuple(range(20))])
def test_known_numbers_are_found(dtype, known):
    """A label that P draws would be replaced by another one."""
    values = np.array([0, 1, 2, 7, 255], dtype=np.float64).astype(dtype)
    values = np.append(values, np.array([0.5, nan], dtype=dtype)) if values.dtype.kind == "f" else values
    found = clipping.convert_numbers(values, np.dtype(dtype), OneOf(known, unknown=0))
    assert np.array_equal(found, np.where(np.isin(values, np.array(known)), values, np.array(0, dtype=dtype)))


@for_each("dtype", ["i8", "i2", "u1"])
@for_each("ends", [(0, 100), (0.5, 99.5), (-inf, 5), (3, inf), (0.2, 0.8), (-1e30, 1e30)])
def test_integers_are_the_same_without_the_fast_path(dtype, ends):
    """Private integers would be clipped to other values than P's."""
    values = np.array([0, 1, 3, 5, 99, 100, 101, 127], dtype=dtype)
    slow = clipping.convert_numbers(values, values.dtype, ends, np.zeros(len(values), dtype=bool))
    fast = clipping.convert_numbers(values, values.dtype, ends)
    assert np.array_equal(fast, slow) and fast.dtype == slow.dtype and fast is not values
