"""Tables and their columns: they must draw what they say, in the container that they say, or refuse."""

import datetime as dt
import math
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

from privatize import privatize, samplers
from privatize.data import records
from privatize.errors import SamplerError
from privatize.identity.fingerprint import fingerprint
from privatize.samplers import (
    Distribution,
    Maybe,
    as_sampler,
    boolean,
    categorical,
    choice,
    dates,
    dependent,
    from_function,
    integers,
    table,
    uniform,
    with_missing,
)
from privatize.samplers.base import origin_of
from tests.cases import for_each
from tests.samplers.columns import (
    EVERYTHING,
    FRAMES,
    NAMES,
    columns_of,
    comparable,
    doubled,
    earned,
    is_missing,
    lies_in,
)


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def made_by_a_user() -> Distribution:
    """Make a sampler, as the library's own functions do."""
    return uniform(0, 1)


class Dice:
    """A sampler of a user's own, with no more than it needs."""

    def draw(self, n, generator):
        return generator.integers(1, 7, n)


def make(code):
    """Make a sampler from its code."""
    return eval(code, dict(NAMES))


# --- whether values lie in a support ---


DIFFERENT = [
    ("choice([1, 2])", "choice([1.0, 2.0])"),
    ("choice([0, 1])", "choice([False, True])"),
    ("choice([0.0, 1.0])", "choice([False, True])"),
    ("choice(['1', '2'])", "choice([1, 2])"),
    ("categorical([0, 1])", "categorical([False, True])"),
    ("categorical([0, 1])", "categorical([0.0, 1.0])"),
    ("categorical(['a', 'b'])", "choice(['a', 'b'])"),
    ("categorical(['a', 'b'])", "categorical(['b', 'a'])"),
    ("categorical(['a', 'b'])", "categorical(['a', 'b'], ordered=True)"),
    ("categorical(['a', 'b'])", "categorical(['a', 'b'], unknown='b')"),
    ("categorical(['a', 'b'], p=[1, 2])", "categorical(['a', 'b'], p=[2, 1])"),
    ("boolean(0.5)", "choice([False, True], p=[0.5, 0.5], unknown=True)"),
    ("dates('2020-01-01', '2020-01-02')", "dates('2020-01-01', '2020-01-02', times=True)"),
    ("dates('2020-01-01', '2020-01-02', times=True)", "dates('2020-01-01', '2020-01-02', tz='UTC')"),
    (
        "dates('2020-01-01 00:00', '2020-01-02 00:00', tz='Europe/Berlin')",
        "dates('2020-01-01 00:00', '2020-01-02 00:00', tz='Europe/Paris')",
    ),
    ("with_missing(uniform(0, 1), 0.1)", "with_missing(uniform(0, 1), 0.2)"),
    ("with_missing(uniform(0, 1), 0.1)", "uniform(0, 1)"),
    ("table(a=uniform(0, 1))", "table(b=uniform(0, 1))"),
    ("table(a=uniform(0, 1))", "table(a=uniform(0, 1), frame='dict')"),
    ("table(a=uniform(0, 1), b=boolean())", "table(b=boolean(), a=uniform(0, 1))"),
    ("table(a=choice([0, 1]))", "table(a=choice([False, True]))"),
    ("table(a=uniform(0, 1))['a']", "table(a=uniform(0, 1))[['a']]"),
    ("table(a=uniform(0, 1))['a']", "uniform(0, 1)"),
    ("table(a=uniform(0, 1))['a']", "table(a=uniform(0, 1), b=boolean())['a']"),
    ("table(age=boolean(), b=dependent(doubled))", "table(age=boolean(), b=dependent(earned))"),
    (
        "table(age=boolean(), b=dependent(doubled, support=[0, 2]))",
        "table(age=boolean(), b=dependent(doubled, support=[0.0, 2.0]))",
    ),
    (
        "table(x=from_function(dice, support=[0, 1]))",
        "table(x=from_function(dice, support=[False, True]))",
    ),
]


@for_each(("one", "other"), DIFFERENT)
def test_different_samplers_are_not_equal(one, other):
    """A guarantee for one P would be taken for a guarantee for another."""
    assert make(one) != make(other)
    assert make(other) != make(one)
    assert fingerprint(make(one)) != fingerprint(make(other))


@for_each(
    ("one", "other"),
    [
        (choice([1, 2.5]), choice([1.0, 2.5])),
        (categorical(np.array(["a", "b"])), categorical(("a", "b"))),
        (categorical(["a", "b"], p=[1, 3]), categorical(["a", "b"], p=np.array([0.25, 0.75]))),
        (categorical(["a", "b"], unknown="a"), categorical(["a", "b"])),
        (boolean(0.3), boolean(np.float64(0.3))),
        (dates("2020-01-01", "2020-12-31"), dates(dt.date(2020, 1, 1), dt.datetime(2020, 12, 31))),
        (dates("2020-01-01", "2020-12-31"), dates(np.datetime64("2020-01-01"), pd.Timestamp("2020-12-31"))),
        (table(a=boolean(), frame="dict"), table({"a": boolean()}, frame="dict")),
        (table(a=stats.norm(0, 1)), table(a=as_sampler(stats.norm()))),
        (table(age=boolean(), b=doubled), table(age=boolean(), b=dependent(doubled))),
    ],
    ids=repr,
)
def test_the_same_sampler_written_in_another_way_is_equal(one, other):
    """The same P, written in another way, would be calibrated twice."""
    assert one == other
    assert hash(one) == hash(other)
    assert fingerprint(one) == fingerprint(other)


# --- containers and dtypes ---


def test_a_pandas_frame():
    """A function for the private frame would meet another dtype in calibration."""
    drawn = table(EVERYTHING).draw(20, rng(7))
    assert isinstance(drawn, pd.DataFrame)
    assert list(drawn.columns) == list(EVERYTHING)
    assert isinstance(drawn.index, pd.RangeIndex)
    assert drawn["i"].dtype == np.int64
    assert drawn["f"].dtype == np.float64
    assert drawn["b"].dtype == bool
    assert drawn["s"].dtype == pd.Series(["x"]).dtype
    assert drawn["c"].dtype == pd.CategoricalDtype(["lo", "hi"], ordered=True)
    assert drawn["k"].dtype == pd.CategoricalDtype([10, 20])
    assert drawn["d"].dtype == drawn["t"].dtype == pd.to_datetime(["2020-01-01"]).dtype
    assert str(drawn["z"].dtype.tz) == "Europe/Berlin"
    assert isinstance(table(EVERYTHING)["c"].draw(3, rng()), pd.Series)
    assert table(EVERYTHING)["c"].draw(3, rng()).name == "c"


def test_a_polars_frame():
    """A function for the private frame would meet another dtype in calibration."""
    drawn = table(EVERYTHING, frame="polars").draw(20, rng(7))
    assert dict(drawn.schema) == {
        "i": pl.Int64,
        "f": pl.Float64,
        "b": pl.Boolean,
        "s": pl.String,
        "c": pl.Enum(["lo", "hi"]),
        "k": pl.Int64,
        "d": pl.Date,
        "t": pl.Datetime("us"),
        "z": pl.Datetime("us", "Europe/Berlin"),
    }
    assert list(drawn.columns) == list(EVERYTHING)
    one = table(EVERYTHING, frame="polars")["c"].draw(3, rng())
    assert isinstance(one, pl.Series) and one.name == "c"


def test_a_pyarrow_table():
    """A function for the private table would meet another type in calibration."""
    drawn = table(EVERYTHING, frame="pyarrow").draw(20, rng(7))
    assert drawn.column_names == list(EVERYTHING)
    types = dict(zip(drawn.column_names, drawn.schema.types, strict=True))
    assert types["i"] == pa.int64()
    assert types["f"] == pa.float64()
    assert types["b"] == pa.bool_()
    assert types["s"] in (pa.string(), pa.large_string())
    assert types["c"] == pa.dictionary(pa.int32(), pa.string(), ordered=True)
    assert types["d"] == pa.date32()
    assert types["t"] == pa.timestamp("us")
    assert types["z"] == pa.timestamp("us", tz="Europe/Berlin")


def test_a_dict_of_arrays():
    """A function for the private dict would meet another dtype in calibration."""
    drawn = table(EVERYTHING, frame="dict").draw(20, rng(7))
    assert list(drawn) == list(EVERYTHING)
    assert [drawn[name].dtype.kind for name in EVERYTHING] == list("ifbUUiMMM")
    assert all(values.shape == (20,) for values in drawn.values())


def test_a_list_of_dicts():
    """A function for private records would meet numpy's types, or times without a zone, in calibration."""
    drawn = table(EVERYTHING, frame="records").draw(20, rng(7))
    assert all(list(record) == list(EVERYTHING) for record in drawn)
    kinds = [int, float, bool, str, str, int, dt.date, dt.datetime, dt.datetime]
    assert all([type(value) for value in record.values()] == kinds for record in drawn)


def test_times_have_their_zone_in_every_container_that_can_have_one():
    """The clock would show UTC where the private records show the local time."""
    for frame in ("pandas", "polars", "pyarrow", "records"):
        zoned = table(z=dates("2024-07-01", "2024-07-02", tz="Asia/Tokyo"), frame=frame)
        for moment in columns_of(zoned.draw(5, rng(8)))["z"]:
            assert moment.utcoffset() == dt.timedelta(hours=9)


@pytest.mark.parametrize("frame", FRAMES)
def test_the_same_values_in_every_container(frame):
    """The estimate of a function would change with the library that holds the frame."""
    parts = {name: with_missing(part, 0.3) for name, part in EVERYTHING.items()}
    drawn = columns_of(table(parts, frame=frame).draw(60, rng(9)))
    wanted = columns_of(table(parts, frame="dict").draw(60, rng(9)))
    assert list(drawn) == list(wanted)
    for name, values in wanted.items():
        for one, other in zip(drawn[name], values, strict=True):
            assert is_missing(one) == is_missing(other)
            assert is_missing(one) or comparable(one) == comparable(other)


@pytest.mark.parametrize("frame", FRAMES)
def test_names_that_are_no_identifiers(frame):
    """A column called "income (€)" or "class" could not be drawn."""
    names = ["income (€)", "", " ", "class", "frame", "self", "columns", "0", "a.b", "x\ny"]
    drawn = table({name: integers(0, 9) for name in names}, frame=frame).draw(5, rng(12))
    assert list(columns_of(drawn)) == names


# --- columns that depend on others ---


@pytest.mark.parametrize("frame", FRAMES)
def test_a_dependent_column_sees_those_before_it(frame):
    """Columns that belong together would be drawn as if they did not."""
    seen = []

    def total(columns):
        seen.append({name: type(values) for name, values in columns.items()})
        return columns["a"] + columns["b"]

    drawn = table(a=integers(0, 9), b=uniform(0, 1), c=total, d=boolean(), frame=frame).draw(30, rng(13))
    found = columns_of(drawn)
    assert list(found) == ["a", "b", "c", "d"]
    assert all(c == a + b for a, b, c in zip(found["a"], found["b"], found["c"], strict=True))
    assert all(each == {"a": np.ndarray, "b": np.ndarray} for each in seen)


def test_a_dependent_column_may_depend_on_a_dependent_one():
    """A column could not be made from a column that is itself made from another one."""
    sampler = table(
        a=integers(0, 9), b=lambda columns: columns["a"] + 1, c=lambda columns: columns["b"] * 2, frame="dict"
    )
    drawn = sampler.draw(20, rng(14))
    assert (drawn["c"] == 2 * (drawn["a"] + 1)).all()
    assert ((sampler["c"].draw(50, rng(14)) >= 2) & (sampler["c"].draw(50, rng(14)) <= 20)).all()


def test_a_dependent_column_uses_the_tables_generator():
    """Its random numbers would not come from the estimate's seed, or be the same for every column."""

    def uniform_column(columns, generator):
        return generator.random(len(columns["a"]))

    def named(columns, *, rng=None):
        return columns["a"]

    sampler = table(a=uniform(0, 1), b=uniform_column, c=uniform_column, frame="dict")
    drawn = sampler.draw(20, rng(15))
    assert len(np.unique(np.concatenate(list(drawn.values())))) == 60
    assert records.equal(drawn, sampler.draw(20, rng(15)))


def test_a_dependent_column_gets_missing_values_and_strings_as_arrays():
    """A function of a column with missing values would meet something that numpy cannot compute with."""
    sampler = table(
        a=with_missing(integers(0, 9), 0.5),
        s=categorical(["x", "yy"]),
        c=lambda columns: np.where(np.isnan(columns["a"]), -1.0, columns["a"]),
        d=lambda columns: np.char.str_len(columns["s"]),
        frame="dict",
    )
    drawn = sampler.draw(50, rng(16))
    assert ((drawn["c"] == -1) == np.isnan(drawn["a"])).all()
    assert set(drawn["d"]) == {1, 2}


def test_a_dependent_column_cannot_change_the_others():
    """P["a"] would be another distribution than the column a of P, outside of its own support."""

    def careless(columns):
        columns["a"] -= 5
        return columns.pop("a")

    try:
        sampler = table(a=uniform(0, 1), b=dependent(careless), frame="dict")
    except SamplerError:
        return  # refused is right too
    drawn = sampler.draw(30, rng(17))
    assert lies_in(drawn["a"].tolist(), sampler.support["a"])


@for_each(
    ("function", "support"),
    [
        (lambda columns: 100 * columns["a"] - 50, (0, 10)),
        (lambda columns: np.rint(20 * columns["a"]).astype(int), (2, 9)),
        (lambda columns: np.rint(20 * columns["a"]).astype(int) - 10, (-2.5, 2.5)),
        (lambda columns: np.rint(20 * columns["a"]).astype(int), (2.5, 7.5)),
        (lambda columns: np.where(columns["a"] < 0.5, np.nan, 9 * columns["a"]), Maybe((5, 6))),
        (lambda columns: columns["a"].astype(np.float32), (0.1, 0.9)),
    ],
)
def test_a_dependent_column_stays_in_its_support(function, support):
    """Values would be drawn outside the support that is promised."""
    sampler = table(a=uniform(0, 1), b=dependent(function, support=support), frame="dict")
    drawn = sampler.draw(300, rng(18))["b"].tolist()
    assert lies_in(drawn, sampler.support["b"])
    assert len(set(map(str, drawn))) > 2


def test_a_dependent_column_may_be_a_series():
    """A function that returns a series would be refused though its values are clear."""
    sampler = table(a=integers(0, 9), b=lambda columns: pd.Series(columns["a"]) * 2)
    drawn = sampler.draw(10, rng(19))
    assert (drawn["b"] == 2 * drawn["a"]).all()


def test_a_users_sampler_as_a_column():
    """A class with a draw method could not be a column."""
    drawn = table(x=Dice(), y=with_missing(Dice(), 0.5), frame="dict").draw(60, rng(20))
    assert set(drawn["x"]) == {1, 2, 3, 4, 5, 6}
    assert np.isnan(drawn["y"]).any()


# --- what is refused ---


@for_each(
    ("call", "message"),
    [
        (lambda: categorical([]), r"\[\].*at least one"),
        (lambda: categorical("abc"), "'abc'.*must be a list"),
        (lambda: categorical(b"abc"), "must be a list"),
        (lambda: categorical(3), r"categorical\(3\).*must be a list"),
        (lambda: categorical(None), "must be a list"),
        (lambda: categorical({"a", "b"}), "list"),
        (lambda: categorical(["a", 1]), "all strings, all numbers"),
        (lambda: categorical(["a", None]), "with_missing"),
        (lambda: categorical([True, 2]), "all strings, all numbers or all booleans"),
        (lambda: categorical([["a"], ["b"]]), "all strings, all numbers"),
        (lambda: categorical(["a", "b", "a"]), "'a', 'b', 'a'.*different from each other"),
        (lambda: categorical([1, 1.0]), "different from each other"),
        (lambda: categorical([0.5, math.nan]), "different from each other"),
        (lambda: categorical(["a", "b"], p=[1]), r"p=\[1\] do not fit 2 values"),
        (lambda: categorical(["a", "b"], p=0.5), "do not fit 2 values"),
        (lambda: categorical(["a", "b"], p=[1, -1]), ">= 0"),
        (lambda: categorical(["a", "b"], p=[0, 0]), "not all zero"),
        (lambda: categorical(["a", "b"], p=[1, math.nan]), "not finite"),
        (lambda: categorical(["a", "b"], p=[1, math.inf]), "not finite"),
        (lambda: categorical(["a", "b"], p="ab"), "not a number"),
        (lambda: categorical(["a", "b"], unknown="c"), r"unknown='c'.*one of the values \['a', 'b'\]"),
        (lambda: categorical([1, 2], unknown=True), "one of the values"),
        (lambda: categorical([1, 2], unknown=1.0), "one of the values"),
        (lambda: categorical(["a", "b"], unknown=["a"]), "one of the values"),
        (lambda: choice([]), "at least one"),
        (lambda: choice(["a", "a"]), r"choice\(.*different"),
        (lambda: choice(["a"], unknown="b"), "one of the values"),
        (lambda: choice([1j]), "all strings, all numbers"),
        (lambda: choice(["a", "b"], p=[0.5, 0.25, 0.25]), "do not fit 2 values"),
        (lambda: boolean(1.5), r"boolean\(1.5\).*between 0 and 1"),
        (lambda: boolean(-0.1), "between 0 and 1"),
        (lambda: boolean(math.nan), "between 0 and 1"),
        (lambda: boolean("x"), "between 0 and 1"),
        (lambda: boolean(None), "between 0 and 1"),
        (lambda: dates("2020-02-30", "2020-03-01"), "start='2020-02-30' is not a date such as"),
        (lambda: dates("2020-01-01", "01.02.2020"), "end='01.02.2020' is not a date such as"),
        (lambda: dates("2020-01-01", None), "end=None is not a date"),
        (lambda: dates("NaT", "2020-01-01"), "start='NaT' is not a date"),
        (lambda: dates("", "2020-01-01"), "is not a date"),
        (lambda: dates(1.5, "2020-01-01"), "is not a date"),
        (lambda: dates("2020-01-01", "123456-01-01"), "is not a date"),
        (lambda: dates("2021-01-01", "2020-01-01"), "the start must be before the end"),
        (lambda: dates("2020-01-01", "2020-01-01"), "the start must be before the end"),
        (
            lambda: dates("2020-01-01", "2020-02-01", tz="Mars/Olympus"),
            "tz='Mars/Olympus' is not a time zone",
        ),
        (lambda: dates("2020-01-01", "2020-02-01", tz=""), "time zone"),
        (lambda: dates("2020-01-01", "2020-02-01", tz=3), "tz=3 is not a time zone"),
        (lambda: dates("2020-01-01", "2020-02-01", tz="../../etc/passwd"), "time zone"),
        (lambda: dates("0001-01-01", "0002-01-01", tz="Asia/Tokyo"), "not a date"),
        (lambda: dates("2000-01-01", "9999-12-31", tz="America/New_York"), "not a date"),
        (lambda: dates("2020-01-01T00:00Z", "2021-01-01", tz="Europe/Berlin"), "date|tz"),
        (lambda: dates(dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "2021-01-01", times=True), "date|tz"),
        (lambda: with_missing(uniform(0, 1), 0), "0.*share between 0 and 1"),
        (lambda: with_missing(uniform(0, 1), 1), "share between 0 and 1"),
        (lambda: with_missing(uniform(0, 1), -0.1), "share between 0 and 1"),
        (lambda: with_missing(uniform(0, 1), 20), "20.*share between 0 and 1"),
        (lambda: with_missing(uniform(0, 1), math.nan), "share between 0 and 1"),
        (lambda: with_missing(uniform(0, 1), "x"), "share between 0 and 1"),
        (lambda: with_missing(3, 0.1), "sampler=3 is not a public distribution"),
        (lambda: table(), r"has no columns: table\(age="),
        (lambda: table({}), "has no columns"),
        (lambda: table([uniform(0, 1)]), "columns by name"),
        (lambda: table(uniform(0, 1)), "columns by name"),
        (lambda: table({1: uniform(0, 1)}), "column name 1 is not a string"),
        (lambda: table(a=uniform(0, 1), frame="spark"), "frame='spark' is not one of 'pandas', 'polars'"),
        (lambda: table(a=uniform(0, 1), frame=None), "frame=None"),
        (lambda: table(a=3), "not a public distribution"),
        (lambda: table(a="normal"), "not a public distribution"),
        (lambda: table(a=None), "not a public distribution"),
        (lambda: table(a=[1, 2, 3]), "not a public distribution"),
        (lambda: table(a=Dice), "not a public distribution"),
        (lambda: table(a=stats.gamma), "shape parameters"),
        (lambda: table(a=integers), "integers is not called"),
        (lambda: table(a=uniform), "uniform is not called"),
        (lambda: table(a=made_by_a_user), "made_by_a_user is not called"),
        (lambda: table(a=uniform(0, 1, size=2)), "draws records of several numbers.*no column"),
        (lambda: table(a=with_missing(uniform(0, 1, size=2), 0.1)), "no column"),
        (lambda: table(a=table(b=uniform(0, 1))), "column"),
        (lambda: table(a=stats.multivariate_normal([0, 0])), "no column"),
        (lambda: table(a=from_function(lambda n, generator: generator.random(n + 1))), "drew 3"),
        (lambda: table(a=lambda columns: np.zeros(7)), r"shape \(7,\) for 2 records"),
        (lambda: table(a=lambda columns: 3.0), r"shape \(\) for 2 records"),
        (lambda: table(a=lambda columns: None), "shape"),
        (lambda: table(a=boolean(), b=lambda columns: np.zeros((2, 2))), "shape"),
        (lambda: table(b=lambda columns: columns["a"], a=boolean()), "KeyError"),
        (lambda: table(a=boolean(), b=lambda columns: 1 / 0), "ZeroDivisionError"),
        (lambda: table({"a": uniform(0, 1)}, a=boolean()), "'a'"),
        (lambda: dependent(3), r"dependent\(3\) needs a function"),
        (lambda: dependent(doubled, support=3), "support=3"),
        (lambda: dependent(doubled, support=(1, 0)), "must be below"),
        (lambda: dependent(doubled, support=[]), "no values"),
        (lambda: table(a=boolean())["b"], r"P\['b'\]: the columns are \['a'\]"),
        (lambda: table(a=boolean())[["a", "b"]], r"the columns are \['a'\]"),
        (lambda: table(a=boolean())[[]], "Name one"),
        (lambda: table(a=boolean())[["a", "a"]], "different ones"),
        (lambda: table(a=boolean())["a", "a"], "a list of different ones"),
        (lambda: table(a=boolean())[0], "the columns are"),
        (lambda: table(a=boolean())[:3], "the columns are"),
        (lambda: table(a=boolean())[None], "the columns are"),
        (lambda: uniform(0, 1)["a"], r"uniform\(0, 1\) draws no table, so it has no column 'a'"),
        (lambda: boolean()[["a"]], "draws no table"),
        (lambda: table(a=boolean())["a"]["a"], "draws no table"),
        (lambda: table(a=integers(0, 9)).truncated(0, 5), "Call it on the columns of a table"),
        (lambda: table(a=integers(0, 9)).clip(0, 5), "Call it on the columns of a table"),
        (lambda: choice(["a", "b"]).clip(0, 5), "is for numbers"),
        (lambda: boolean().truncated(0, 5), "is for numbers"),
        (lambda: dates("2020-01-01", "2020-02-01").clip(0, 1), "is for numbers"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    """A slip would surface in the middle of calibration, or as an error about something else."""
    with pytest.raises(SamplerError, match=message):
        call()


def test_a_frame_whose_library_is_missing(monkeypatch):
    """The error would be an ImportError from the middle of a draw, without a remedy."""
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.delitem(sys.modules, "privatize.data.polars_frames", raising=False)
    with pytest.raises(SamplerError, match=r"needs polars, which is not installed.*frame='dict'"):
        table(a=boolean(), frame="polars")


# --- private answers ---


ROWS = 60


def private_rows():
    """Return private records that are partly outside of P."""
    generator = rng(26)
    return pd.DataFrame(
        {
            "age": generator.integers(-5, 150, ROWS).astype(float),
            "sex": generator.choice(["F", "M", "?"], ROWS),
            "joined": pd.to_datetime("2019-12-01") + pd.to_timedelta(generator.integers(0, 90, ROWS), "D"),
            "member": generator.random(ROWS) < 0.5,
        }
    )


COLUMNS = {
    "age": integers(0, 120),
    "sex": categorical(["F", "M"]),
    "joined": dates("2020-01-01", "2020-12-31"),
    "member": boolean(0.3),
}


def spring(days):
    """Return the share of days that come early in the year."""
    return (days < np.datetime64("2020-07-01")).mean()


def mean_age(data):
    """Return a mean, whatever the container."""
    if isinstance(data, list):
        return sum(record["age"] for record in data) / len(data)
    if isinstance(data, pa.Table):
        return sum(data["age"].to_pylist()) / data.num_rows
    return data["age"].mean()


@pytest.mark.parametrize("frame", FRAMES)
def test_a_private_mean_of_every_container(frame):
    """The function would get other dtypes in the private run, or values that P never draws."""
    sampler = table(COLUMNS, frame=frame)
    support = sampler.support

    def checked(data):
        found = columns_of(data)
        assert list(found) == list(support)
        assert all(lies_in(found[name], support[name]) for name in found)
        assert all(type(value) is int for value in found["age"])
        return mean_age(data)

    data = private_rows()
    if frame == "polars":
        data = pl.from_pandas(data).with_columns(pl.col("joined").cast(pl.Date))
    elif frame == "pyarrow":
        data = pa.Table.from_pandas(data, preserve_index=False)
    elif frame == "dict":
        data = {name: data[name].to_numpy(object if name == "sex" else None) for name in data}
    elif frame == "records":
        data = [record | {"joined": record["joined"].date()} for record in data.to_dict("records")]
    private = privatize(epsilon=1, gamma=0.2, sampler=sampler, store=None, seed=1, version="1")(checked)
    assert math.isfinite(private(data))


@for_each(
    ("sampler", "data", "function"),
    [
        (table(COLUMNS)["age"], private_rows()["age"], lambda x: x.mean()),
        (table(COLUMNS, frame="polars")["age"], pl.Series("age", list(range(40))), lambda x: x.mean()),
        (
            table(COLUMNS)[["sex", "age"]],
            private_rows()[["sex", "age"]],
            lambda x: x.groupby("sex", observed=False)["age"].sum(),
        ),
        (boolean(0.3), np.arange(40) % 2 == 0, np.mean),
        (choice([1, 2, 3]), np.arange(40), np.mean),
        (choice(["a", "b"]), np.array(["a", "b", "c"] * 20), lambda x: (x == "a").mean()),
        (
            dates("2020-01-01", "2020-12-31"),
            np.array(["2020-05-05"] * 30, "M8[D]"),
            spring,
        ),
        (with_missing(uniform(0, 1), 0.2), np.r_[np.nan, np.arange(40.0)], np.nanmean),
        (
            table(age=integers(18, 70), income=dependent(earned, support=(0, 1e5))),
            pd.DataFrame({"age": np.arange(40), "income": np.arange(40) * 1e4}),
            lambda x: x["income"].mean(),
        ),
    ],
)
def test_a_private_answer_with_each_sampler(sampler, data, function):
    """A sampler could be made, but not used for a private answer."""
    private = privatize(epsilon=1, gamma=0.2, sampler=sampler, store=None, seed=1, version="1")(function)
    answer = private(data)
    assert np.isfinite(np.asarray(answer, dtype=float)).all()


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "dict", "records"])
def test_a_column_of_a_table_as_labels(frame):
    """Pairs (X, y) must have the dependence and the bounds that the table has."""
    pytest.importorskip(frame if frame in ("pandas", "polars", "pyarrow") else "numpy")
    P = samplers.table(
        age=samplers.uniform(18, 90),
        height=samplers.uniform(1, 2),
        old=samplers.dependent(lambda c: (c["age"] > 60).astype(int), support=[0, 1]),
        frame=frame,
    )
    pairs = samplers.labelled(P, "old")
    X, y = pairs.draw(50, np.random.default_rng(1))
    ages = [record["age"] for record in X] if frame == "records" else np.asarray(X["age"])
    assert ((np.asarray(ages) > 60) == np.asarray(y)).all()
    assert pairs.support == (P[["age", "height"]].support, P["old"].support)
    assert pairs == samplers.labelled(P, "old") != samplers.labelled(P, "age")
    assert repr(pairs).startswith("labelled(table(age=uniform(18, 90)")
    assert origin_of(pairs) == P  # one budget for the table and its pairs
    for wrong, message in (("weight", "the columns are"), ("age", "no other column")):
        with pytest.raises(SamplerError, match=message):
            samplers.labelled(P if wrong == "weight" else samplers.table(age=samplers.uniform(0, 1)), wrong)
    with pytest.raises(SamplerError, match="support of its columns"):
        samplers.labelled(P, "old", support=[0, 1])
