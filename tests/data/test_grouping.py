"""Persons made of private rows: nobody else's rows, and no order of the frame, may matter."""

import datetime as dt
import math
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privatize.data import records
from privatize.data.grouping import check_rows, group, number_of_persons
from privatize.data.persons import names_of
from privatize.data.units import Unit
from privatize.errors import DataError
from tests.cases import for_each

KEY = bytes(range(32))


def visits(n=40, seed=0):
    """Return rows of some persons."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 6, n)
    ids = np.repeat([f"p{at:03}" for at in range(n)], rows)
    size = len(ids)
    cost, day = rng.uniform(0, 9, size), rng.integers(0, 5, size)
    sex, kind = np.repeat(rng.choice(["F", "M"], n), rows), rng.choice(["a", "b", None], size)
    return pd.DataFrame({"id": ids, "cost": cost, "day": day, "sex": sex, "kind": kind})


UNITS = [
    Unit("id"),
    Unit("id", most=2),
    Unit("id", most=3, order="day"),
    Unit("id", order="kind"),
    Unit("id", most=2, once=("sex",)),
]


def as_lists(persons):
    """Return the rows of each person."""
    frame = persons.frame
    names = [name for name in ("cost", "day", "sex") if name in names_of(frame)]
    columns = {name: np.asarray(frame[name]).tolist() for name in names}
    slots = np.asarray(frame["id"]).tolist()
    found = [[] for _ in range(len(persons))]
    for at, slot in enumerate(slots):
        found[slot].append(tuple(columns[name][at] for name in names))
    return found


@for_each("unit", UNITS)
def test_the_order_of_rows_does_not_matter(unit):
    """A file that its owner sorts again would have other answers, and its order would be private data."""
    data = visits()
    first = group(data, unit, KEY)
    assert len(first) == number_of_persons(data, unit) == 40
    for seed in range(3):
        other = data.sample(frac=1, random_state=seed)
        other.index = range(100, 100 + len(other))
        assert records.equal(group(other, unit, KEY), first)


@for_each("unit", UNITS)
def test_all_containers_give_the_same(unit):
    """The same people would have another order in another library."""
    data = visits()
    first = as_lists(group(data, unit, KEY))
    columns = {name: column.to_numpy() for name, column in data.items()}
    others = [pl.from_pandas(data), pa.Table.from_pandas(data, preserve_index=False), columns]
    others += [{name: column.tolist() for name, column in data.items()}]
    for other in others:
        assert as_lists(group(other, unit, KEY)) == first


@for_each("unit", UNITS)
def test_replacing_a_person_changes_the_rows_of_one_person(unit):
    """The cut, or the order, of others would depend on somebody."""
    data, other = visits(), visits(3, 5)
    before = as_lists(group(data, unit, KEY))
    for who, name in (("p007", "p007"), ("p011", "new"), ("p031", "zzz")):
        rest, rows = data[data["id"] != who], other[other["id"] == "p001"].assign(id=name)
        after = as_lists(group(pd.concat([rows, rest]), unit, KEY))
        gone = [one for one in before if one not in after]
        assert len(after) == len(before) and len(gone) == 1
        # All others are in the same order.
        kept = [one for one in after if one in before]
        assert kept == [one for one in before if one not in gone]


def test_a_missing_value_changes_no_other_row():
    """One person without an answer would change the dtype, and so the rows, of everybody."""
    data = visits()
    unit = Unit("id", most=2)
    before = as_lists(group(data, unit, KEY))
    data["day"] = data["day"].astype(float)
    data["cost"] = data["cost"].astype(object)
    assert as_lists(group(data, unit, KEY)) == before
    data.loc[data["id"] == "p003", "day"] = math.nan
    changed = [one != other for one, other in zip(as_lists(group(data, unit, KEY)), before, strict=True)]
    assert sum(changed) == 1


@pytest.mark.parametrize("odd", [None, 7, 0.5, b"a", ("a",), dt.date(2020, 1, 1)], ids=repr)
def test_a_value_of_another_type_changes_no_other_row(odd):
    """One person with a number among strings would change the rows, or the identifier, of everybody."""
    unit, texts = Unit("id", most=2), visits().assign(kind="a").astype({"id": object, "kind": object})
    before = as_lists(group(texts, unit, KEY))
    mixed = texts.copy()
    mixed.at[5, "kind"] = odd
    changed = [one != other for one, other in zip(as_lists(group(mixed, unit, KEY)), before, strict=True)]
    assert sum(changed) <= 1
    more = pd.concat([texts, texts[:1].assign(id=pd.Series([odd], dtype=object))], ignore_index=True)
    found = as_lists(group(more, unit, KEY, persons=sorted(set(texts["id"]))))
    assert found == before


def test_dtypes_of_a_column_do_not_matter():
    """Integers beyond 2**53 become other floats as soon as one of them is missing."""
    n = 60
    stamps = 1_700_000_000_000_000_000 + np.arange(4 * n) * 60_000_000_000
    data = pd.DataFrame({"id": np.repeat(np.arange(n), 4), "stamp": stamps, "cost": np.arange(4.0 * n)})
    days = data.assign(stamp=pd.to_datetime(stamps))
    for unit in (Unit("id", most=1), Unit("id", most=2, order="stamp")):
        before, dated = (as_lists(group(each, unit, KEY)) for each in (data, days))
        others = [data["stamp"].astype(dtype) for dtype in ("float64", "uint64", "object", "Int64")]
        for other in (*others, data["stamp"].astype("Int64").mask(data.index == 0)):
            after = as_lists(group(data.assign(stamp=other), unit, KEY))
            assert sum(one != two for one, two in zip(before, after, strict=True)) <= 1
        objects = days.assign(stamp=days["stamp"].astype(object))
        assert as_lists(group(objects, unit, KEY)) == dated


def test_nothing_in_a_row_makes_it_raise():
    """Whether somebody has such a value would be a free answer."""

    class Loud:
        def __repr__(self):
            raise ValueError("loud")

    values = [10**5000, Loud(), object(), "a", b"a", math.inf, -(10**400), None, dt.date.max, 5 + 1j]
    frame = pd.DataFrame(
        {"id": pd.Series([1] * len(values), dtype=object), "x": pd.Series(values, dtype=object)}
    )
    frame.loc[0, "id"] = 10**5000
    for order in (None, "x"):
        made = group(frame, Unit("id", most=20, order=order), KEY)
        assert sorted(made.counts.tolist()) == [1, len(values) - 1]


def test_identifiers_of_any_type_are_told_apart():
    """Two persons would be one, or one person two."""
    ids = [1, "1", b"1", uuid.UUID(int=1), 2**60, 2**60 + 1, 7, 7.0, np.int8(7)]
    none = [None, math.nan, True, 2.5, [1], math.inf, object()]
    data = {"id": [*ids, *none], "cost": np.arange(16.0)}
    made = group(data, Unit("id"), KEY)
    assert len(made) == 7 and made.counts.sum() == 9
    floats = {"id": np.array([1.0, np.nan, 2.0, 1.0]), "cost": np.arange(4.0)}
    integers = {"id": np.array([1, 2, 1]), "cost": np.array([0.0, 2.0, 3.0])}
    assert records.equal(group(floats, Unit("id"), KEY), group(integers, Unit("id"), KEY))


def test_another_key_is_another_order():
    """Whoever knows the identifiers would know the slots."""
    data, unit = visits(200), Unit("id")
    one, other = (group(data, unit, key) for key in (KEY, bytes(32)))
    assert one.counts.tolist() != other.counts.tolist()
    assert sorted(map(sorted, as_lists(one))) == sorted(map(sorted, as_lists(other)))


def test_rows_are_ordered_and_cut():
    """A person with too many rows would move answers further than P says."""
    data = visits()
    ordered = group(data, Unit("id", most=3, order="day"), KEY)
    assert ordered.counts.max() == 3
    days = data.groupby("id")["day"].apply(lambda own: sorted(own)[:3])
    assert sorted([row[1] for row in one] for one in as_lists(ordered)) == sorted(days.tolist())
    cut = group(data, Unit("id", most=1), KEY)
    assert cut.counts.tolist() == [1] * 40
    missing = pd.DataFrame({"id": [1, 1, 1], "day": [2.0, None, 1.0], "cost": [0.0, 1.0, 2.0]})
    assert group(missing, Unit("id", order="day"), KEY).frame["cost"].tolist() == [2.0, 0.0, 1.0]


def test_what_a_person_has_once_is_the_same_in_all_rows():
    """The function would see something that P never draws."""
    data = pd.DataFrame({"id": [1, 1, 2], "sex": ["F", "M", "F"], "cost": [1.0, 2.0, 3.0]})
    for given in (data, {name: column.to_numpy() for name, column in data.items()}):
        frame = pd.DataFrame(group(given, Unit("id", once=("sex",)), KEY).frame)
        assert frame.groupby("id")["sex"].nunique().tolist() == [1, 1]


def test_listed_persons_may_have_no_rows():
    """The number of people would depend on who has rows."""
    data = visits()
    made = group(data, Unit("id"), KEY, ["p001", "p002", "nobody", "p002"])
    assert len(made) == number_of_persons(data, Unit("id"), ["p001", "p002", "nobody"]) == 3
    assert sorted(made.counts.tolist())[0] == 0
    assert made.counts.sum() == data["id"].isin(["p001", "p002"]).sum()


def test_columns_are_put_in_the_order_of_p():
    """Whoever has the columns in another order would be refused."""
    made = group(visits(), Unit("id"), KEY, columns=["sex", "kind", "day", "cost"])
    assert list(made.frame) == ["id", "sex", "kind", "day", "cost"]
    assert list(group(visits(), Unit("id"), KEY, columns=["sex"]).frame)[1:] == ["cost", "day", "sex", "kind"]


@for_each(
    ("data", "unit", "message"),
    [
        (np.zeros(3), Unit("id"), "the dataset is no table"),
        (pd.Series([1, 2]), Unit("id"), "the dataset is no table"),
        ([{"id": 1}], Unit("id"), "the dataset is no table"),
        (pd.DataFrame({"a": [1]}), Unit("id"), "has no column 'id'"),
        (pd.DataFrame({"id": [1]}), Unit("id", order="day"), "has no column 'day'"),
        (pd.DataFrame({"id": [1]}), Unit("id", once=("sex",)), "has no column 'sex'"),
        (pd.DataFrame({"id": pd.to_datetime(["2020-01-01"])}), Unit("id"), "has no identifiers"),
        ({"id": 5}, Unit("id"), "no array or list"),
    ],
)
def test_what_is_no_table_of_persons_is_refused(data, unit, message):
    """The error must name what is wrong, and no value."""
    with pytest.raises(DataError, match=message):
        check_rows(data, unit)


def test_only_identifiers_are_no_data():
    """There is nothing to answer about."""
    with pytest.raises(DataError, match="no column beside"):
        group(pd.DataFrame({"id": [1, 2]}), Unit("id"), KEY)
    with pytest.raises(DataError, match="several numbers in a row"):
        group({"id": np.zeros((2, 2)), "cost": np.zeros(2)}, Unit("id"), KEY)


def test_an_empty_table_has_nobody():
    """Schemas are read from tables without rows."""
    data = visits().head(0)
    for unit in UNITS:
        for empty in (data, pl.from_pandas(data), pa.Table.from_pandas(data, preserve_index=False)):
            assert len(group(empty, unit, KEY)) == 0
