"""Persons with several rows as a dataset: every operation takes all rows of a person along."""

import numpy as np
import pandas as pd
import pytest

from privatize import samplers
from privatize.data import records
from privatize.data.persons import Persons, as_passed, expanded, names_of, table_of
from privatize.data.units import Unit
from privatize.errors import DataError
from tests.cases import for_each

FRAMES = ("pandas", "polars", "pyarrow", "dict")
s = samplers


def people(frame, **more):
    """Return a P of persons."""
    visit = s.table(
        cost=s.uniform(0, 50),
        day=s.dates("2025-01-01", "2025-12-31"),
        kind=s.categorical(["a", "b"]),
        frame=frame,
    )
    person = s.table(sex=s.categorical(["F", "M"]))
    return s.people(visit, unit="id", rows=s.integers(1, 4), person=person, **more)


def drawn(frame, n=7, seed=1, **more):
    """Draw persons."""
    return people(frame, **more).draw(n, np.random.default_rng(seed))


def column(data, name):
    """Return a column of what a function gets, as a list."""
    return list(map(str, np.asarray(as_passed(data)[name]).tolist()))


def rows_of(data, at):
    """Return the costs of one person."""
    slots, costs = np.asarray(as_passed(data)["id"]), np.asarray(as_passed(data)["cost"])
    return costs[slots == at].tolist()


@for_each("frame", FRAMES)
def test_persons_are_taken_with_all_their_rows(frame):
    """A neighbour that replaces a row, and not a person, would need too little noise."""
    data = drawn(frame)
    at = np.array([3, 0, 3])
    taken = records.take(data, at)
    assert records.count(data) == 7 and records.count(taken) == 3
    assert [rows_of(taken, place) for place in range(3)] == [rows_of(data, who) for who in at]
    assert records.equal(records.head(data, 2), records.take(data, np.arange(2)))
    assert records.equal(records.record(data, 4), records.take(data, np.array([4])))
    both = records.concat([records.head(data, 3), records.take(data, np.arange(3, 7))])
    assert column(both, "cost") == column(data, "cost") and column(both, "id") == column(data, "id")


@for_each("frame", FRAMES)
def test_neighbours_differ_in_one_person(frame):
    """The gap of such a pair would say nothing about replacing a person."""
    data = drawn(frame, 6)
    for position in range(5):
        one, other = records.pair(data, position, 5)
        assert len(one) == len(other) == 5
        for slot in range(5):
            source = 5 if slot == position else slot
            assert rows_of(one, slot) == rows_of(data, slot)
            assert rows_of(other, slot) == rows_of(data, source)
        assert records.equal(records.neighbour(data, position, 5), other)


@for_each("frame", FRAMES)
def test_a_function_gets_slots_and_a_copy(frame):
    """Identifiers would reach the function, or what it writes would reach the next one."""
    data = drawn(frame)
    passed = as_passed(data)
    assert names_of(passed) == ["id", "sex", "cost", "day", "kind"]
    assert column(data, "id") == list(map(str, data.slots.tolist()))
    if frame == "pandas":
        passed.loc[:, ["id", "cost"]] = 9
    elif frame == "dict":
        passed["cost"][:] = passed["id"][:] = 9
    if frame in ("pandas", "dict"):
        assert max(rows_of(passed, 9)) == 9
        assert records.equal(data, drawn(frame))
    assert as_passed([1, 2]) == [1, 2]


@for_each("frame", FRAMES)
def test_schema_copy_and_isolation(frame):
    """What is calibrated would have another form than what is released."""
    data = drawn(frame)
    schema = records.describe(data)
    assert schema.to_json()[:2] == ["people", ["id", 4, None, ["sex"], False]]
    assert "several rows each by 'id'" in str(schema) and schema.libraries >= {"numpy"}
    for made in (records.copy(data), records.fresh(data), records.convert(data, records.head(data, 2))):
        assert records.equal(made, data)
    alone = records.isolated(records.take(data, np.array([0])))
    assert rows_of(alone, 0) == rows_of(data, 0)
    assert records.alike(data, drawn(frame, 3, 9))
    assert not records.alike(data, drawn(frame, 3, 9, order="day"))


def test_conversion_clips_rows_and_keeps_persons():
    """Private values outside P's support would reach the function."""
    P = people("pandas")
    data = Persons(P.draw(1, np.random.default_rng(0)).unit, np.array([2, 1]), drawn("pandas").rows.head(3))
    data.rows.loc[0, "cost"] = 999.0
    made = records.convert(data, P.draw(2, np.random.default_rng(0)), P.support)
    assert made.rows["cost"].max() <= 50 and made.counts.tolist() == [2, 1]


def test_an_index_is_refused():
    """The order of private rows would reach the function."""
    rows = pd.DataFrame({"cost": [1.0, 2.0]}, index=["x", "y"])
    with pytest.raises(DataError, match="index that is not row numbers"):
        records.describe(Persons(Unit("id"), np.array([2]), rows))


def test_other_containers_do_not_fit_persons():
    """Rows would be compared with persons."""
    P = people("pandas")
    with pytest.raises(DataError, match="Have it draw the same"):
        records.match(P.draw(2, np.random.default_rng(0)), records.describe(drawn("polars")))
    with pytest.raises(DataError, match="people have several rows each by 'id'"):
        records.match(np.zeros(2), records.describe(drawn("pandas")))
    with pytest.raises(DataError):
        records.convert(drawn("pandas"), np.zeros(2))


def test_small_helpers():
    """Values of one column would be taken for rows of several."""
    one = Persons(Unit("id"), np.array([1, 2]), {"cost": np.array([1.0, 2.0, 3.0])})
    assert one.values.tolist() == table_of(one).tolist() == [1.0, 2.0, 3.0]
    two = drawn("pandas")
    assert table_of(two) is two.rows and table_of(5) == 5
    with pytest.raises(DataError, match="4 columns beside 'id'"):
        _ = two.values
    assert expanded(np.array([4, 0, 9]), np.array([2, 3, 0])).tolist() == [4, 5, 0, 1, 2]
    assert names_of(two.rows) == ["sex", "cost", "day", "kind"] and names_of([1]) == []
    assert repr(two) == "<7 persons by 'id', see .frame>"
