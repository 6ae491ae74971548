"""Categories, strings, booleans, dates and missing values keep their types in every container."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from privatize.samplers import (
    categorical,
    choice,
    dates,
    table,
    with_missing,
)
from tests.cases import for_each
from tests.samplers.columns import EVERYTHING, FRAMES, columns_of, is_missing, schema_of


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def test_missing_values_in_pandas():
    """A missing value would be a value, or change the dtype to one that pandas does not use for it."""
    parts = {name: with_missing(part, 0.5) for name, part in EVERYTHING.items()}
    drawn = table(parts).draw(50, rng(10))
    assert all(5 < drawn[name].isna().sum() < 45 for name in EVERYTHING)
    assert drawn["i"].dtype == drawn["f"].dtype == np.float64
    assert drawn["b"].dtype == "boolean"
    assert isinstance(drawn["c"].dtype, pd.CategoricalDtype)
    assert isinstance(drawn["z"].dtype, pd.DatetimeTZDtype)


@pytest.mark.parametrize("frame", ["polars", "pyarrow"])
def test_missing_values_where_every_type_has_them(frame):
    """A missing value would be NaN where the library has null, or change the type of its column."""
    parts = {name: with_missing(part, 0.5) for name, part in EVERYTHING.items()}
    drawn = table(parts, frame=frame).draw(50, rng(10))
    assert drawn.schema == table(EVERYTHING, frame=frame).draw(1, rng()).schema
    for name in EVERYTHING:
        column = drawn[name]
        assert 5 < (column.null_count() if frame == "polars" else column.null_count) < 45


@pytest.mark.parametrize("frame", ["dict", "records"])
def test_missing_values_without_a_library(frame):
    """A missing value would be a value."""
    parts = {name: with_missing(part, 0.5) for name, part in EVERYTHING.items()}
    drawn = table(parts, frame=frame).draw(50, rng(10))
    for values in columns_of(drawn).values():
        assert 5 < sum(map(is_missing, values)) < 45
        if frame == "records":
            assert all(value is None for value in values if is_missing(value))


@for_each("frame", FRAMES[:3])
@for_each("name", list(EVERYTHING))
def test_a_column_of_nothing_but_missing_values_keeps_its_type(frame, name):
    """The schema of a small draw would depend on chance, and the private data would not fit it."""
    sampler = table(x=with_missing(EVERYTHING[name], 1 - 1e-9), frame=frame)
    other = table(x=with_missing(EVERYTHING[name], 1e-9), frame=frame)
    missing, present = sampler.draw(3, rng()), other.draw(3, rng())
    assert all(map(is_missing, columns_of(missing)["x"]))
    assert not any(map(is_missing, columns_of(present)["x"]))
    assert schema_of(missing) == schema_of(present)


@for_each("values", [["a", "b"], [1, 2], [0.5, 1.5], [True, False]])
@for_each("frame", FRAMES)
@for_each("make_it", [categorical, choice])
@for_each("rate", [None, 0.5])
def test_values_of_every_kind_in_every_container(values, frame, make_it, rate):
    """A kind of category that a container has trouble with would come out as another value."""
    sampler = make_it(values) if rate is None else with_missing(make_it(values), rate)
    drawn = columns_of(table(x=sampler, frame=frame).draw(40, rng(11)))["x"]
    assert {value for value in drawn if not is_missing(value)} == set(values)
    assert any(map(is_missing, drawn)) == (rate is not None)


@pytest.mark.parametrize(
    ("start", "end", "tz", "seconds"),
    [
        ("2024-03-31", "2024-03-31", "Europe/Berlin", 23 * 3600),  # the clock jumps ahead
        ("2024-10-27", "2024-10-27", "Europe/Berlin", 25 * 3600),  # and back
        ("2024-07-01", "2024-07-01", "UTC", 24 * 3600),
        ("2024-07-01 10:00", "2024-07-01 10:01", "Asia/Kolkata", 61),
    ],
)
def test_a_day_in_a_time_zone(start, end, tz, seconds):
    """Times of the days before or after would be drawn, or never the hours at which the clock changes."""
    low, high = dates(start, end, tz=tz).support
    assert (high - low) / np.timedelta64(1, "s") + 1 == seconds
    drawn = table(z=dates(start, end, tz=tz)).draw(3000, rng(24))["z"]
    assert set(drawn.dt.date) == {dt.date.fromisoformat(start[:10])}


def test_the_last_day_is_included():
    """The last day would be drawn at midnight only."""
    low, high = dates("2024-01-01", "2024-01-02", times=True).support
    assert str(low) == "2024-01-01T00:00:00"
    assert str(high) == "2024-01-02T23:59:59"
    sampler = dates("2024-01-01", "2024-01-02")
    assert {str(day) for day in sampler.draw(50, rng(25))} == {"2024-01-01", "2024-01-02"}
    moments = dates("2024-01-01T05", "2024-01-01T05:00:01", times=True).draw(50, rng(25))
    assert len(set(moments.tolist())) == 2
