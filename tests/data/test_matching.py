"""Private data of another kind than P's draws is refused by its schema, without showing a value."""

import datetime as dt

import numpy as np
import pytest

from privatize import samplers
from privatize.data import records
from privatize.errors import DataError, SettingsError
from tests.cases import for_each
from tests.data.datasets import NAMES, NESTED, PAIR, make, objects, sampled, structured
from tests.data.drawn_frames import COLUMNS, framed, pd, pl, private


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_another_time_zone_is_refused(library, zone):
    """Local times are different in another zone, so the function would compute something else."""
    P = samplers.table(d=COLUMNS["seen"], frame=library)
    series = pl.Series([dt.datetime(2021, 1, 1)], dtype=pl.Datetime("us")).dt.replace_time_zone(zone)
    with pytest.raises(DataError, match="time zone"):
        records.match(drawn_by(P), records.describe(framed(library, "d", series)), P.support)


TWO = samplers.table(a=samplers.uniform(0, 1), b=samplers.uniform(0, 1))
GOOD = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.5, 0.5, 0.5]})


class Subclass(pd.DataFrame):
    """A subclass of DataFrame, which may behave differently."""


@for_each(
    ("data", "message"),
    [
        (GOOD.head(0), "empty"),
        (GOOD[[]], "lacks the columns"),
        (pd.DataFrame(np.zeros((3, 2)), columns=["a", "a"]), "two columns of the same name"),
        (pd.DataFrame(np.zeros((3, 2)), columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])), "lacks"),
        (pd.DataFrame(np.zeros((3, 2))), "lacks"),
        (GOOD.rename(columns={"a": 1.5}), "name is a float"),
        (GOOD[["b", "a"]], "order"),
        (GOOD.assign(z=1), "does not draw"),
        (GOOD.set_index("a", drop=False), "reset_index"),
        (GOOD.assign(a="x"), "sampler draws float64"),
        (pl.LazyFrame({"a": [1.0]}), "collect"),
        (GOOD.groupby("a"), "not supported"),
        (Subclass(GOOD), "not supported"),
        (GOOD["a"], "pandas Series"),
        (pl.DataFrame({"a": [0.5], "b": [0.5]}), "frame='polars'"),
        (GOOD.to_numpy(), "array of float64"),
        (GOOD.to_dict("records"), "a list"),
        (np.ma.array([1.0, 2.0]), "not supported"),
        (None, "not supported"),
        (GOOD.to_dict(), "not all"),
    ],
)
def test_wrong_data_is_refused_by_its_schema(data, message):
    """The message must say what to do, and nothing about a value."""
    with pytest.raises(DataError, match=message):
        private(TWO, lambda d: d["a"].mean())(data)


@for_each(
    ("like", "message"),
    [
        (GOOD, "has 3"),
        (pl.LazyFrame({"a": [1.0]}), "LazyFrame"),
        (3, "without records"),
        (GOOD[["a"]].head(0), "lacks"),
        (pl.DataFrame({"a": [0.5], "b": [0.5]}).head(0), "frame='polars'"),
        (GOOD[[]].head(0), "lacks"),
    ],
)
def test_wrong_likes_are_refused(like, message):
    """like= is public: it takes a schema, never records."""
    with pytest.raises((DataError, SettingsError), match=message):
        private(TWO, lambda d: d["a"].mean()).estimate(3, like=like)


def test_unusual_columns_must_have_the_same_dtype():
    """Two long dtypes with the same short name would let data through that was not calibrated on."""
    kinds = [
        pl.Struct({f"a_long_name_of_a_field_{i}": kind for i in range(3)}) for kind in (pl.Int64, pl.String)
    ]
    one, other = (pl.DataFrame({"x": pl.Series([None, None], dtype=kind)}) for kind in kinds)
    assert records.describe(one) == records.describe(other)
    assert records.convert(one, one, None)["x"].dtype == kinds[0]
    with pytest.raises(DataError, match="not the dtype that the sampler draws"):
        records.convert(one, other, None)


def convert(data, schema, support=None):
    """Convert private records, given the schema of what P draws."""
    return records.convert(data, sampled(schema), support)


def match(schema, drawn):
    """Refuse private data that P could not have drawn, given the schema of what P draws."""
    records.match(sampled(drawn), schema)


every_container = pytest.mark.parametrize("name", NAMES)


@every_container
def test_a_dataset_matches_itself(name):
    """Private data of exactly the kind that P draws would be refused."""
    schema = records.describe(make(name))
    match(schema, schema)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy has it from 2.0 on")
def test_strings_of_any_length():
    """A dataset of numpy's variable-width strings could not be converted."""
    data = np.array(["a", "bcd"], dtype=np.dtypes.StringDType())
    schema = records.describe(data)
    assert convert(data, schema, None).tolist() == ["a", "bcd"]


F8, F4, I8, I4, I2, U1, U8, B1 = (
    ["array", kind, []] for kind in ("<f8", "<f4", "<i8", "<i4", "<i2", "|u1", "<u8", "|b1")
)


@for_each(
    ("data", "drawn"),
    [
        (np.arange(3), F8),
        (np.arange(3.0), I8),
        (np.arange(3, dtype=np.uint8), F8),
        (np.array([True, False]), F8),
        (np.array([True, False]), I8),
        (np.arange(3, dtype=">f4"), F8),
        ([1, 2, 3], F8),
        ([1, 2, 3], I8),
        ([True, False], B1),
        ([[1, 2], [3, 4]], ["array", "<f8", [2]]),
        ([{"a": 1}], ["list"]),
        ((np.arange(3), [1, 2, 3]), ["tuple", F8, I8]),
        (np.zeros((3, 2)), ["array", "<f4", [2]]),
    ],
)
def test_what_matches(data, drawn):
    """A user would have to convert data that the library can convert."""
    match(records.describe(data), drawn)


@for_each(
    ("data", "drawn", "message"),
    [
        (
            np.zeros((3, 2)),
            F8,
            r"an array of float64 with records of shape \(2,\), but .* an array of float64\.",
        ),
        (np.zeros(3), ["array", "<f8", [2]], "shape"),
        (np.zeros(3), ["list"], "an array of float64, but the sampler draws a list"),
        (np.zeros(3), B1, "bool"),
        (np.arange(3), B1, "bool"),
        (np.array(["a"]), F8, "an array of text, but"),
        (np.array([1j]), F8, "complex128"),
        (objects([1, 2]), F8, "object"),
        (np.array(["2020-01-01"], "M8[D]"), F8, "datetime64"),
        (structured(PAIR), F8, "an array of "),
        (np.zeros(3), records.describe(structured(PAIR)), "float64, but"),
        (structured(PAIR), records.describe(structured(NESTED)), "an array of "),
        ([(1, 2.0)], records.describe(structured(PAIR)), "a list"),
        ((np.zeros(3), [1, 2, 3]), F8, r"a tuple of \(an array of float64, a list\)"),
        (np.zeros(3), ["tuple", F8, F8], "draws a tuple of"),
        ((np.zeros(3),), ["tuple", F8, F8], "tuple"),
        ((np.zeros(3), np.zeros((3, 2))), ["tuple", F8, F8], "tuple"),
    ],
)
def test_what_does_not_match(data, drawn, message):
    """Calibration would run on another kind of data than the release."""
    with pytest.raises(DataError, match=message) as caught:
        match(records.describe(data), drawn)
    assert "convert the dataset" in str(caught.value)


def test_a_mismatch_shows_no_private_value():
    """The refusal would print what it refuses."""
    secret = 8675309.25
    for data in ([secret], np.array([secret]), ([secret], np.array([secret])), objects([secret])):
        with pytest.raises(DataError) as caught:
            match(records.describe(data), ["tuple", ["list"], ["list"], ["list"]])
        assert "8675309" not in str(caught.value) + repr(vars(caught.value))
