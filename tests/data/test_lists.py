"""Lists are converted record by record, whatever else they hold."""

import contextlib
import datetime as dt
import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize import privatize, samplers
from privatize.data import records
from privatize.errors import DataError, PrivateRunError
from tests.cases import for_each
from tests.data.conversions import COLUMNS, ODD, SUPPORTS, TEXT, alone, fine, inf, inside, nan, private
from tests.data.datasets import sampled
from tests.data.layouts import UNIT, check, layouts

NUMBER = 918273.6450912


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


def converted(data, sampler, seed=0):
    """Convert data to a sampler's dtypes and support."""
    return records.convert(data, drawn_by(sampler, seed), sampler.support)


REALS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([nan, inf, -inf, 0.0, -0.0, 1.0, 7.0, 0.4, 1e300, NUMBER]),
)
INTEGERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 1, 7, 2**53 + 1, -(2**53) - 1]))


@given(
    values=st.lists(st.one_of(REALS, INTEGERS, st.booleans(), st.integers()), min_size=1, max_size=6),
    support=SUPPORTS,
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


N = 12
with contextlib.suppress(ImportError):
    pass
with contextlib.suppress(ImportError):
    pass
with contextlib.suppress(ImportError):
    pass


class TestLists:
    def test_types(self, tmp_path):
        """Numbers of a list are Python's own, whatever the private ones are."""
        data = [np.float64(0.5), 1, True, np.float32(0.25)] * (N // 4)
        check(UNIT, data, lambda x: (type(x), sorted({type(v).__name__ for v in x})), tmp_path)

    def test_subclasses_are_refused(self, tmp_path):
        """A subclass of list may behave in ways that lists do not."""

        class Odd(list):
            pass

        with pytest.raises(Exception, match="not supported"):
            layouts(UNIT, Odd([0.5] * N), type, tmp_path)

    def test_dates(self, tmp_path):
        """Dates of a list are of P's own type."""
        sampler = samplers.table({"t": samplers.dates("2020-01-01", "2021-01-01")}, frame="records")
        data = [{"t": dt.datetime(2020, 5, 1)}] * N
        check(sampler, data, lambda x: sorted({type(v["t"]).__name__ for v in x}), tmp_path)


def convert(data, schema, support=None):
    """Convert private records, given the schema of what P draws."""
    return records.convert(data, sampled(schema), support)


F8, F4, I8, I4, I2, U1, U8, B1 = (
    ["array", kind, []] for kind in ("<f8", "<f4", "<i8", "<i4", "<i2", "|u1", "<u8", "|b1")
)


def test_lists_are_clipped_too():
    """With a sampler that draws lists, domain="clip" would silently clip nothing."""
    assert convert([5.0, 0.5, -1.0], ["list"], (0.0, 1.0)) == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("data", [[[1, 2], [3, 4]], [[[1]], [[2]]], []])
def test_records_of_a_list_must_have_ps_shape(data):
    """A list of pairs would be taken for a list of triples."""
    with pytest.raises(DataError, match=r"not of the shape \(3,\)"):
        convert(data, ["array", "<f8", [3]], None)


@for_each(
    ("values", "drawn"),
    [
        ([300, -1, 7], U1),
        ([2**40, 7], I4),
        ([-1, 7], U8),
        ([1e300, -1e300, 7.0], I8),
        ([1.7, 2.2], I8),
        ([nan, 1.0], I8),
        ([inf, 1.0], I4),
    ],
)
@for_each("support", [None, (0, 100)], ids=["as-is", "clip"])
def test_a_list_is_converted_as_the_same_array_is(values, drawn, support):
    """The answer for a list would differ from the answer for an array of the same numbers, or fail."""
    as_array = convert(np.array(values), drawn, support)
    as_list = convert(values, drawn, support)
    assert as_list == as_array.tolist()
    assert type(as_list) is list


def test_records_of_a_list_are_copied_whatever_is_in_them():
    """A function that changes its records would change the private ones, or those of the neighbour."""
    once, shared = {"x": [1]}, {"x": 1}
    for data in (
        [{"x": 1, "day": dt.date(2020, 1, 1)}, {"x": 2.5, "day": None}],
        [once, {"x": [2]}],
        [shared, shared],
        [{("a", 1): 1}, {("b", 2): 2}],
    ):
        found = records.copy(data)
        assert found == data
        assert [id(record) for record in found] != [id(record) for record in data]
        assert (found[0] is found[1]) == (data[0] is data[1])
        assert all(
            one["x"] is not other["x"] for one, other in zip(found, data, strict=True) if data[0] is once
        )
        found[0]["new"] = 1
        assert "new" not in data[0]
