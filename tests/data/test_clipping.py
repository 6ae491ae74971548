"""Private records are converted to P's support one by one, and nothing shows any of them."""

import copy
import datetime as dt
import decimal
import logging
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from privatize import privatize, samplers
from privatize.data import clipping, records
from privatize.data.support import Maybe, OneOf, bounded, join
from privatize.errors import DataError, PrivateRunError, PrivatizeError, SettingsError
from privatize.identity.reachable import is_private
from tests.cases import for_each

inf, nan = math.inf, math.nan
NUMBER = 918273.6450912
TEXT = "SENTINEL-TEXT"
FIRST, LAST = np.datetime64("2020-01-01"), np.datetime64("2024-12-31")


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


def converted(data, sampler, seed=0):
    """Convert data to a sampler's dtypes and support."""
    return records.convert(data, drawn_by(sampler, seed), sampler.support)


def objects(values):
    """Return a one-dimensional array of any objects."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def private(sampler, function=len, **more):
    """Return a private function that remembers nothing."""
    more = {"min_sensitivity": 1.0} | more
    return privatize(epsilon=1, gamma=0.2, sampler=sampler, store=None, **more)(function)


def alone(data, drawn, support):
    """Check that every record is converted as it would be alone, and return them all."""
    made = records.convert(data, drawn, support)
    assert records.count(made) == records.count(data)
    for at in range(records.count(data)):
        one = records.convert(records.take(data, np.array([at])), drawn, support)
        assert records.equal(records.record(made, at), records.record(one, 0))
        assert records.describe(one) == records.describe(made)
    return made


# --- supports ---------------------------------------------------------------------------------


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
        ((np.datetime64("NaT"), np.datetime64("NaT")), False),
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


@for_each(
    ("value", "expected"),
    [
        (None, True),
        (nan, True),
        (np.float32("nan"), True),
        (np.datetime64("NaT"), True),
        (np.timedelta64("NaT"), True),
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

ENDS = st.sampled_from(
    [
        None,
        (0.0, 1.0),
        (-3, 100),
        (0.0, inf),
        (-inf, 5.0),
        OneOf((0, 1, 7), unknown=7),
        Maybe((0.0, 10.0)),
        Maybe(OneOf((0, 1), unknown=1)),
    ]
)
REALS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([nan, inf, -inf, 0.0, -0.0, 1.0, 7.0, 0.4, 1e300, NUMBER]),
)
INTEGERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 1, 7, 2**53 + 1, -(2**53) - 1]))


@pytest.mark.parametrize("target", ["f8", "f4", "i8", "i1", "u8"])
@given(values=st.lists(REALS, min_size=1, max_size=6), support=ENDS)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_every_float_is_converted_as_it_would_be_alone(target, values, support):
    """If one record changed another, neighbours would no longer be neighbours."""
    with np.errstate(all="ignore"):
        made = alone(np.array(values), np.zeros(2, target), support)
    assert made.dtype == target
    assert inside(made, support, target)


@pytest.mark.parametrize("target", ["f8", "i8", "i2", "u1"])
@given(values=st.lists(INTEGERS, min_size=1, max_size=6), support=ENDS)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_every_integer_is_converted_as_it_would_be_alone(target, values, support):
    """If one record changed another, neighbours would no longer be neighbours."""
    made = alone(np.array(values, dtype=np.int64), np.zeros(2, target), support)
    assert made.dtype == target
    assert inside(made, support, target)


def inside(made, support, target):
    """Tell whether numbers lie in a support."""
    optional = isinstance(support, Maybe)
    inner = support.inner if optional else support
    if inner is None:
        return True
    missing = np.isnan(made) if made.dtype.kind == "f" else np.zeros(len(made), bool)
    if missing.any() and not optional:
        return False
    rest = made[~missing].astype(float)
    if isinstance(inner, OneOf):
        return set(rest.tolist()) <= set(map(float, inner.values))
    low, high = inner
    if np.dtype(target).kind == "u":
        low = max(low, 0)
    return bool(((rest >= low) & (rest <= high)).all())


@given(
    values=st.lists(st.one_of(REALS, INTEGERS, st.booleans(), st.integers()), min_size=1, max_size=6),
    support=ENDS,
    target=st.sampled_from(["f8", "i8"]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_every_number_of_a_list_is_converted_as_it_would_be_alone(values, support, target):
    """A list of mixed numbers has no dtype of its own that one record could decide for the others."""
    with np.errstate(all="ignore"):
        made = alone(values, np.zeros(2, target), support)
    assert {type(one) for one in made} == {int if target == "i8" else float}
    assert inside(np.array(made), support, target)


@pytest.mark.parametrize("other", [5, 5.0, 2**70, nan, True])
def test_a_large_integer_in_a_list_does_not_depend_on_the_others(other):
    """One float among integers would round all of them, so one record would change every other."""
    assert records.convert([2**53 + 1, other], np.zeros(2, np.int64), None)[0] == 2**53 + 1


def test_a_missing_record_of_a_list_is_mapped():
    """None in a list would raise an error, where NaN in an array does not."""
    assert converted([0.25, None], samplers.uniform(0, 1)) == [0.25, 0.5]
    assert converted([2, None], samplers.choice([1, 2])) == [2, 1]


def test_rounding_does_not_let_an_integer_leave_the_support():
    """A record outside the support is one that calibration has never seen."""
    made = records.convert(np.array([2**53 + 1]), np.zeros(2, np.int64), (0, 2**53))
    assert made.tolist() == [2**53]


def test_booleans_in_a_drawn_list_are_clipped_too():
    """A record outside the support is one that calibration has never seen."""
    assert records.convert([True, 6.0], [7.0, 8.0], (5, 10)) == [5, 6.0]


def test_integers_become_the_floats_that_p_draws_in_a_list():
    """The function would run on integers where calibration ran on floats."""
    assert [type(one) for one in records.convert([1, 6.0], [7.0, 8.0], (0, 10))] == [float, float]


def test_records_of_a_drawn_list_are_converted_together():
    """A numpy call for every record would take minutes for a million of them."""
    made = records.convert([0.5, 2.0, nan] * 10_000, [0.1, 0.2], (0.0, 1.0))
    assert made[:3] == [0.5, 1.0, 0.5]


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


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_a_list_of_moments_does_not_depend_on_one_units_range(unit):
    """numpy gives a list of datetimes one unit: a record in nanoseconds would make a far one wrap."""
    P = samplers.dates("2020-01-01", "2024-12-31")
    made = converted([np.datetime64("9999-01-01", "D"), np.datetime64("2021-01-01", unit)], P)
    assert made == [dt.date(2024, 12, 31), dt.date(2021, 1, 1)]


@pytest.mark.parametrize(
    "other", [dt.date(2021, 1, 1), dt.datetime(2021, 1, 1), None, dt.date(1, 1, 1), dt.datetime.max]
)
def test_a_list_of_dates_is_converted_record_by_record(other):
    """One date out of range, or missing, must not change the others."""
    made = converted([dt.date(2022, 2, 2), other], samplers.dates("2020-01-01", "2024-12-31"))
    assert made[0] == dt.date(2022, 2, 2)
    assert dt.date(2020, 1, 1) <= made[1] <= dt.date(2024, 12, 31)


def test_an_aware_moment_in_a_list_makes_no_warning():
    """A warning would reveal that one of the private records has a time zone."""
    moment = dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
    P = samplers.dates("2020-01-01", "2024-12-31")
    assert converted([moment, dt.date(2022, 2, 2)], P)[1] == dt.date(2022, 2, 2)
    R = samplers.table(d=P, frame="records")
    assert converted([{"d": moment}, {"d": dt.date(2022, 2, 2)}], R)[1] == {"d": dt.date(2022, 2, 2)}


# --- strings and objects ----------------------------------------------------------------------

ODD = [
    "F",
    "M",
    TEXT,
    "",
    None,
    nan,
    1,
    True,
    1.0,
    np.str_("M"),
    np.float64(nan),
    np.datetime64("NaT"),
    np.bool_(True),
    decimal.Decimal("1"),
    decimal.Decimal("sNaN"),
    [1],
    {},
    {2},
    b"F",
    10**400,
    1j,
    dt.date(2020, 1, 1),
    np.array([1, 2]),
]


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


# --- containers -------------------------------------------------------------------------------

COLUMNS = {
    "age": samplers.integers(0, 120),
    "pay": samplers.uniform(0, 1e5),
    "sex": samplers.categorical(["F", "M"]),
    "day": samplers.dates("2020-01-01", "2024-12-31"),
    "kg": samplers.with_missing(samplers.uniform(40, 120), 0.3),
    "kids": samplers.with_missing(samplers.integers(0, 9), 0.3),
    "pet": samplers.with_missing(samplers.choice(["cat", "dogs"]), 0.3),
    "ok": samplers.boolean(),
}
RECORD = st.fixed_dictionaries(
    {},
    optional={
        "age": st.one_of(st.none(), st.integers(), REALS),
        "pay": st.one_of(st.none(), st.integers(), REALS),
        "sex": st.sampled_from(range(len(ODD))).map(ODD.__getitem__),
        "day": st.one_of(st.none(), st.dates(), st.datetimes()),
        "kg": st.one_of(st.none(), st.integers(), REALS),
        "kids": st.one_of(st.none(), st.integers(), REALS),
        "pet": st.sampled_from(["cat", "dogs", TEXT, None, nan]),
        "ok": st.sampled_from([True, False, None, 1, np.bool_(True)]),
        "more": st.integers(),
    },
)


def fine(value, support):
    """Tell whether one value lies in a support."""
    if isinstance(support, Maybe):
        return clipping.is_missing(value) or fine(value, support.inner)
    if clipping.is_missing(value):
        return False
    if isinstance(support, OneOf):
        return value in support.values
    low, high = support
    if isinstance(low, np.datetime64):
        return bool(low <= np.datetime64(value) <= high)
    return bool(low <= value <= high)


@pytest.mark.parametrize("seed", [0, 1, 3])
@given(data=st.lists(RECORD, min_size=1, max_size=4))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_every_dict_of_a_list_is_converted_as_it_would_be_alone(seed, data):
    """Keys that a record lacks are missing values, more keys are left out, and no record changes another."""
    P = samplers.table(COLUMNS, frame="records")
    with np.errstate(all="ignore"):
        made = alone(data, drawn_by(P, seed), P.support)
    for one in made:
        assert list(one) == list(COLUMNS)
        assert all(fine(value, P.support[name]) for name, value in one.items())


@pytest.mark.parametrize("seed", range(4))
def test_the_type_in_a_dict_does_not_depend_on_which_examples_were_drawn(seed):
    """If the first drawn record lacks an integer, private integers must not become floats."""
    P = samplers.table(a=samplers.with_missing(samplers.integers(0, 9), 0.5), frame="records")
    types = {type(one["a"]) for one in P.draw(50, np.random.default_rng(0))} - {type(None)}
    made = converted([{"a": 3}, {"a": None}], P, seed)
    assert made[1] == {"a": None}
    assert {type(made[0]["a"])} == types


def test_dicts_of_arrays_are_converted_column_by_column():
    """A dict of columns is a table like any other."""
    P = samplers.table(COLUMNS, frame="dict")
    drawn = drawn_by(P)
    data = {
        "age": np.array([nan, 200.0, -inf, 30.4]),
        "pay": np.array([-1, 2**60, 0, 5]),
        "sex": objects(["M", TEXT, None, [1]]),
        "day": np.array(["NaT", "1999-01-01", "9999-01-01", "2022-01-01"], dtype="M8[s]"),
        "kg": np.array([nan, 200.0, -inf, 50.5]),
        "kids": np.array([nan, 200.0, -inf, 3.0]),
        "pet": objects(["cat", TEXT, None, "dogs"]),
        "ok": np.array([True, False, True, False]),
    }
    records.match(drawn, records.describe(data), P.support)
    with np.errstate(all="ignore"):
        made = alone(data, drawn, P.support)
    assert records.describe(made) == records.describe(drawn)
    for name, values in made.items():
        assert all(fine(value, P.support[name]) for value in values.tolist())


def test_tuples_are_converted_part_by_part():
    """Features and labels have supports of their own."""
    drawn = (np.zeros((2, 2)), np.array(["no", "yes"]))
    support = ((0.0, 1.0), OneOf(("no", "yes"), unknown="no"))
    made = alone((np.array([[nan, 2], [0.5, -inf]]), objects([None, "yes"])), drawn, support)
    assert made[0].tolist() == [[0.5, 1.0], [0.5, 0.0]]
    assert made[1].tolist() == ["no", "yes"]


# --- sparse matrices --------------------------------------------------------------------------

CSR = sparse.csr_array(np.zeros((2, 2)))


@pytest.mark.parametrize("support", [(0, 100), (np.zeros(2), np.array([100.0, 50.0]))])
def test_entries_of_a_sparse_matrix_that_are_stored_twice_are_one_number(support):
    """Stored in parts, a number could be any multiple of what the support allows."""
    data = sparse.csr_array(
        (np.array([60.0, 60.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2)
    )
    made = records.convert(data, CSR, support)
    assert made.toarray().tolist() == [[100.0, 0.0], [0.0, 5.0]]
    assert data.nnz == 3  # the caller's matrix is not changed


def test_a_sparse_matrix_saturates():
    """A number beyond the integers must be clipped to the upper bound, not wrap to the lower one."""
    data = sparse.csr_array(np.array([[1e30, nan], [0.0, 3.6]]))
    with np.errstate(all="ignore"):
        made = records.convert(data, CSR.astype(np.int64), (0, 100))
    assert made.toarray().tolist() == [[100, 50], [0, 4]]


def test_a_sparse_support_with_missing_values():
    """A support that was accepted must not fail on the private data."""
    if records.misfit(CSR, Maybe((0, 1))) is None:
        data = sparse.csr_array(np.array([[nan, 5.0], [0.0, 0.5]]))
        assert np.array_equal(
            records.convert(data, CSR, Maybe((0, 1))).toarray(), [[nan, 1.0], [0.0, 0.5]], equal_nan=True
        )


@for_each("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@for_each("support", [(0, 100), (np.zeros(2), np.full(2, 100.0))])
def test_sparse_matrices_of_every_form(form, support):
    """A form that P may draw and that is accepted must not fail on the private data."""
    drawn, data = CSR.asformat(form), sparse.csr_array(np.array([[150.0, 0.0], [-3.0, 7.0]])).asformat(form)
    assert records.misfit(drawn, support) is None
    made = records.convert(data, drawn, support)
    assert made.format == form
    assert made.toarray().tolist() == [[100.0, 0.0], [0.0, 7.0]]


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


class Loud:
    """A record that shows its text whenever it is converted, hashed or printed."""

    def __float__(self):
        raise RuntimeError(TEXT)

    def __hash__(self):
        raise RuntimeError(TEXT)

    def __repr__(self):
        return TEXT


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


def test_a_fixed_size_is_what_the_function_gets():
    """One calibration serves only if the number of records is the same every time."""

    def mean(data):
        return data.mean() if len(data) == 10 else 1 / 0

    f = private(samplers.uniform(0, 1).fixed(size=10), mean)
    rng = np.random.default_rng(0)
    assert f.release(rng.random(10)).n == f.release(rng.random(35)).n == 10
    with pytest.raises(DataError, match="9 records"):
        f(rng.random(9))


# --- bootstrap(private) -----------------------------------------------------------------------

RNG = np.random.default_rng(7)
PUBLIC = RNG.normal(size=(40, 2))


@for_each(
    ("public", "data"),
    [
        (PUBLIC, PUBLIC),
        (PUBLIC, PUBLIC.copy()),
        (PUBLIC, PUBLIC.tolist()),
        (PUBLIC, PUBLIC[::-1]),
        (PUBLIC, PUBLIC[:39]),
        (PUBLIC, RNG.permutation(PUBLIC)),
        (PUBLIC, {"a": PUBLIC[:, 0], "b": PUBLIC[:, 1]}),
        (PUBLIC, (PUBLIC[:, 0], PUBLIC[:, 1].tolist())),
        (PUBLIC, np.column_stack([PUBLIC, np.ones(40)])),
        (PUBLIC[:, 0], PUBLIC),
        (PUBLIC, sparse.csr_array(PUBLIC)),
        (PUBLIC.astype("f4"), PUBLIC.astype("f4").astype("f8")),
        (np.arange(40), np.arange(40.0)),
        (PUBLIC, PUBLIC * 1.1),
    ],
)
def test_bootstrapping_the_private_data_is_refused(public, data):
    """P would be made of the very records that the answer is to hide."""
    assert is_private(samplers.bootstrap(public), data)


def test_bootstrapping_a_rounded_copy_is_refused():
    """The same records in single precision are the same records."""
    assert is_private(samplers.bootstrap(PUBLIC[:, 0]), PUBLIC[:, 0].astype("f4"))


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.bootstrap(PUBLIC).fixed(size=5),
        samplers.bootstrap(PUBLIC).map(np.abs),
        samplers.bootstrap(PUBLIC, smooth=0.1),
        samplers.bootstrap(PUBLIC).clip(-1, 1),
    ],
)
def test_a_bootstrap_inside_another_sampler_is_found(sampler):
    """Private records stay private, whatever a sampler does to them afterwards."""
    with pytest.raises(DataError, match="bootstraps"):
        private(sampler)(PUBLIC.copy())


@pytest.mark.parametrize(
    ("public", "data"),
    [
        (RNG.integers(0, 2, 50), RNG.integers(0, 2, 50)),
        (np.repeat([0, 1], 25), RNG.permutation(np.repeat([0, 1], 25))),
        (PUBLIC, RNG.normal(size=(40, 2))),
        (np.array(["a", "b"] * 20), RNG.permutation(["a", "b"] * 20)),
    ],
)
def test_other_data_is_not_refused(public, data):
    """Data with few different values resembles public data of the same kind by accident."""
    assert not is_private(samplers.bootstrap(public), data)


def test_a_constant_column_is_no_evidence():
    """A constant column, such as an intercept, is in many datasets: none of them may be refused for it."""
    data = np.column_stack([np.ones(40), RNG.normal(size=40)])
    assert not is_private(samplers.bootstrap(np.ones(40)), data)


@pytest.mark.parametrize("data", [[10**400, 1.5, 2], [[1], [2, 3], 4], [None, TEXT, 1.0], [Loud(), 1.0, 2.0]])
def test_odd_private_lists_are_compared_without_an_error(data):
    """The comparison must not fail on a private record."""
    assert not is_private(samplers.bootstrap([1.0, 2.0, 3.0]), data)


# --- supports that do not fit -----------------------------------------------------------------


@for_each(
    ("make", "support"),
    [
        (lambda n, rng: (rng.random(n), rng.random(n)), (0, 1)),
        (lambda n, rng: {"a": rng.random(n)}, (0, 1)),
        (lambda n, rng: {"a": rng.random(n)}, {"b": (0, 1)}),
        (lambda n, rng: rng.random(n), {"a": (0, 1)}),
        (lambda n, rng: rng.random((n, 2)), (np.zeros(3), np.ones(3))),
        (lambda n, rng: np.full(n, "a"), (0, 1)),
        (lambda n, rng: ["a"] * n, (0, 1)),
        (lambda n, rng: sparse.csr_array(rng.random((n, 2))), (1, 2)),
        (lambda n, rng: FIRST + rng.integers(0, 99, n), (0, 1)),
        (lambda n, rng: rng.random(n), (FIRST, LAST)),
        (lambda n, rng: {"a": FIRST + rng.integers(0, 99, n)}, {"a": (0, 1)}),
        (lambda n, rng: {"a": rng.random((n, 2))}, {"a": (np.zeros(3), np.ones(3))}),
    ],
)
def test_a_support_that_does_not_fit_is_refused_before_the_private_data_is_seen(make, support):
    """If it were found on the private data, the error could not explain it."""
    f = private(samplers.from_function(make, support=support), lambda d: 1.0, domain="clip")
    with pytest.raises(SettingsError):
        f(make(5, np.random.default_rng(0)))


def test_a_wrong_list_is_refused_with_a_fixed_message():
    """Nothing in the message may depend on which record it was."""
    messages = set()
    for data in ([0.5, TEXT], [TEXT, TEXT], [0.5, [1]]):
        with pytest.raises((DataError, PrivateRunError)) as caught:
            private(samplers.uniform(0, 1))(data)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_a_column_of_dicts_that_begins_with_missing_values():
    """P's type would be guessed from a missing value: dates would be refused, integers become floats."""
    parts = {"n": samplers.integers(0, 9), "d": samplers.dates("2020-01-01", "2020-12-31")}
    P = samplers.table(
        {name: samplers.with_missing(part, 0.9) for name, part in parts.items()}, frame="records"
    )
    data = [{"n": 3, "d": dt.date(2020, 5, 5)}, {"n": 12, "d": None}]
    seen = []
    logging.getLogger("begins with missing").seen = seen

    def total(rows):
        logging.getLogger("begins with missing").seen.append(rows)
        return float(sum(row["n"] or 0 for row in rows))

    promise = {"epsilon": 1, "gamma": 0.3, "min_sensitivity": 1.0, "store": None, "workers": "inline"}
    privatize(**promise, sampler=P)(total)(data)
    assert seen[-1] == [{"n": 3, "d": dt.date(2020, 5, 5)}, {"n": 9, "d": None}]
    assert type(seen[-1][0]["n"]) is int


# --- the usual case ---


ENDS = st.sampled_from([-inf, -1e300, -5.0, -0.0, 0.0, 1.0, 3.5, 1e300, inf])
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


@for_each("dtype", ["f8", ">f8", "f4", "i8", "i4", "u1", "?", "U3", "O", "M8[D]", "i4,f8"])
@for_each("shape", [(3,), (3, 2), (3, 0)])
def test_arrays_of_the_same_kind_as_ps_have_its_schema(dtype, shape):
    """Data that does not fit would be let through, since schemas are not compared then."""
    drawn = [np.zeros(size, dtype=d) for size in ((2,), (2, 2)) for d in ("f8", "i8", "O", "i4,f8", "?")]
    data = np.zeros(shape, dtype=dtype)
    for each in drawn:
        if records.is_same_kind(data, each):
            assert records.describe(data) == records.describe(each)
            assert records.match(each, records.describe(data), None) is each
