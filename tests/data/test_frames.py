"""Frames are converted to P's dtypes and support row by row, and errors name only their schema."""

import contextlib
import copy
import datetime as dt
import decimal

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

from privatize import audit, estimate_sensitivity, plan, privatize, samplers  # noqa: E402
from privatize.data import clipping, columns, frames, pandas_frames, records  # noqa: E402
from privatize.data.support import Maybe, OneOf  # noqa: E402
from privatize.errors import DataError, PrivatizeError, SettingsError  # noqa: E402
from privatize.function.question import Question  # noqa: E402
from privatize.identity.fingerprint import token  # noqa: E402
from privatize.identity.reachable import is_private  # noqa: E402
from tests.cases import for_each  # noqa: E402

nan, inf = np.nan, np.inf
NUMBER = 918273.6450912
TEXT = "SENTINEL-TEXT"
ZONE = "Europe/Berlin"
LIBRARIES = ["pandas", "polars", "pyarrow"]

DAYS = samplers.dates("2020-01-01", "2024-12-31")
COLUMNS = {
    "age": samplers.integers(0, 120),
    "pay": samplers.uniform(0, 1e5),
    "rate": samplers.choice([0.5, 1.5]),
    "size": samplers.choice([4, 7], unknown=7),
    "kg": samplers.with_missing(samplers.uniform(40, 120), 0.3),
    "kids": samplers.with_missing(samplers.integers(0, 9), 0.3),
    "sex": samplers.categorical(["F", "M"]),
    "city": samplers.choice(["a", "long"]),
    "pet": samplers.with_missing(samplers.choice(["cat", "dogs"]), 0.3),
    "blood": samplers.with_missing(samplers.categorical(["A", "B"], ordered=True), 0.3),
    "day": DAYS,
    "left": samplers.with_missing(DAYS, 0.3),
    "seen": samplers.dates("2020-01-01", "2024-12-31", tz=ZONE),
    "ok": samplers.boolean(),
    "maybe": samplers.with_missing(samplers.boolean(), 0.3),
}
KINDS = {
    "number": ["age", "pay", "rate", "size", "kg", "kids"],
    "text": ["sex", "city", "pet", "blood"],
    "day": ["day", "left"],
    "moment": ["seen"],
    "boolean": ["ok", "maybe"],
}
POOLS = {
    "number": [0, 1, 4, 7, 50, 120, None],
    "text": ["F", "M", "a", "long", "cat", "dogs", "A", "B", TEXT, "", None],
    "day": [dt.datetime(2021, 1, 1), dt.datetime(1999, 1, 1), dt.datetime(2040, 6, 7), None],
    "moment": [dt.datetime(2021, 1, 1), dt.datetime(1999, 1, 1), dt.datetime(2040, 6, 7), None],
    "boolean": [True, False, None],
}
FLOATS = [0.5, 1.5, -3.0, NUMBER, 1e300, inf, -inf, nan]
# The dtypes that a private column may have; `column` makes one of each from values with None in them.
DTYPES = {
    ("pandas", "number"): ["int64", "float64", "Int64", "Float64", "bool", "uint8", "int64[pyarrow]"],
    ("pandas", "text"): ["object", "str", "string", "category", "string[pyarrow]"],
    ("pandas", "day"): ["datetime64[ns]", "datetime64[us]", "datetime64[s]", "timestamp[us][pyarrow]"],
    ("pandas", "moment"): [f"datetime64[ns, {ZONE}]", f"datetime64[us, {ZONE}]"],
    ("pandas", "boolean"): ["bool", "boolean", "bool[pyarrow]"],
    ("polars", "number"): [pl.Int64, pl.Float64, pl.UInt8, pl.Boolean],
    ("polars", "text"): [pl.String, pl.Categorical, pl.Enum([v for v in POOLS["text"] if v is not None])],
    ("polars", "day"): [pl.Date, pl.Datetime("us"), pl.Datetime("ns"), pl.Datetime("ms")],
    ("polars", "moment"): [pl.Datetime("us", ZONE), pl.Datetime("ns", ZONE)],
    ("polars", "boolean"): [pl.Boolean],
}
CASES = [
    (library, name, dtype)
    for library in LIBRARIES
    for kind, called in KINDS.items()
    for name in called
    for dtype in DTYPES["polars" if library == "pyarrow" else library, kind]
]


def kind_of(name):
    """Return the kind of a column of the table."""
    return next(kind for kind, called in KINDS.items() if name in called)


def pool(library, name, dtype):
    """Return values that a private column of a dtype may have."""
    kind, text = kind_of(name), str(dtype).lower()
    values = POOLS[kind]
    if "float" in text:
        values = values + FLOATS
    if library == "pandas" and text in ("int64", "uint8", "bool"):
        values = [v for v in values if v is not None]
    if "bool" in text:
        values = [v if v is None else bool(v) for v in values if v in (0, 1, None)]
    return values


def column(library, values, dtype):
    """Return a frame of one private column."""
    if library == "pandas":
        zone = ZONE if ZONE in dtype else None
        if dtype.startswith("datetime64"):
            series = pd.Series(pd.to_datetime(pd.Series(values, dtype=object)).astype("datetime64[us]"))
            return (series if zone is None else series.dt.tz_localize(zone)).astype(dtype)
        if dtype == "timestamp[us][pyarrow]":
            series = pd.to_datetime(pd.Series(values, dtype=object)).astype("datetime64[us]")
            return series.astype(pd.ArrowDtype(pa.timestamp("us")))
        if dtype == "object":
            return pd.Series(values, dtype=object)
        return pd.Series(pd.array(values, dtype=dtype))
    if isinstance(dtype, pl.Datetime) and dtype.time_zone:
        return pl.Series(values, dtype=pl.Datetime("us")).dt.replace_time_zone(ZONE).cast(dtype)
    if dtype == pl.Date or isinstance(dtype, pl.Datetime):
        return pl.Series(values, dtype=pl.Datetime("us")).cast(dtype)
    return pl.Series([float(v) if dtype == pl.Float64 and v is not None else v for v in values], dtype=dtype)


def framed(library, name, series):
    """Return a column as a frame of a library."""
    if library == "pandas":
        return pd.DataFrame({name: series})
    frame = pl.DataFrame({name: series})
    return frame if library == "polars" else frame.to_arrow()


def values_of(frame, at=0):
    """Return a column of a frame as Python's values."""
    return columns.narwhals(frames.columns(frame)[at]).to_list()


def dtype_of(frame, at=0):
    """Return the native dtype of a column."""
    own = frames.columns(frame)[at]
    return own.dtype if hasattr(own, "dtype") else own.type


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
        moment = pd.Timestamp(value)
        moment = moment if moment.tz is None else moment.tz_convert("UTC").tz_localize(None)
        return pd.Timestamp(low) <= moment <= pd.Timestamp(high)
    return low <= value <= high


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


def converted(data, sampler, seed=0):
    """Convert data to a sampler's dtypes and support."""
    return records.convert(data, drawn_by(sampler, seed), sampler.support)


def private(sampler, function=len, **more):
    """Return a private function that remembers nothing."""
    more = {"min_sensitivity": 1.0} | more
    return privatize(epsilon=1, gamma=0.2, sampler=sampler, store=None, **more)(function)


# --- row by row -------------------------------------------------------------------------------


@for_each(("library", "name", "dtype"), CASES, ids=str)
def test_every_row_is_converted_as_it_would_be_alone(library, name, dtype):
    """A row that changed another would make neighbours differ in more than one record."""
    P = samplers.table({name: COLUMNS[name]}, frame=library)
    drawn = drawn_by(P)
    data = framed(library, name, column(library, pool(library, name, dtype), dtype))
    records.match(drawn, records.describe(data), P.support)
    with np.errstate(all="ignore"):
        made = records.convert(data, drawn, P.support)
        each = [
            records.convert(records.take(data, np.array([at])), drawn, P.support)
            for at in range(records.count(data))
        ]
    assert {str(dtype_of(one)) for one in [made, *each]} == {str(dtype_of(drawn))}
    assert all(dtype_of(one) == dtype_of(drawn) for one in [made, *each])
    assert records.describe(made) == records.describe(drawn)
    assert repr(values_of(made)) == repr([value for one in each for value in values_of(one)])
    assert all(fine(value, P.support[name]) for value in values_of(made))


@for_each(("library", "name", "dtype"), CASES, ids=str)
def test_without_a_support_rows_are_converted_alone_too(library, name, dtype):
    """domain="as-is" casts to P's dtypes, and a cast may not depend on the other rows either."""
    P = samplers.table({name: COLUMNS[name]}, frame=library)
    drawn = drawn_by(P)
    data = framed(library, name, column(library, pool(library, name, dtype), dtype))
    with np.errstate(all="ignore"):
        made = records.convert(data, drawn, None)
        each = [
            values_of(records.convert(records.take(data, np.array([at])), drawn, None))
            for at in range(records.count(data))
        ]
    assert dtype_of(made) == dtype_of(drawn)
    assert repr(values_of(made)) == repr([value for one in each for value in one])


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data(), n=st.integers(1, 5), position=st.integers(0, 4))
# Without shrinking: a smaller example of frames this wide takes minutes to find.
@settings(max_examples=12, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
def test_neighbours_stay_neighbours(library, data, n, position):
    """Two frames that differ in one row differ in that row alone afterwards, whatever is in it."""
    P = samplers.table(COLUMNS, frame=library)
    made = {}
    for name in COLUMNS:
        dtype = data.draw(
            st.sampled_from(DTYPES["polars" if library == "pyarrow" else library, kind_of(name)])
        )
        values = data.draw(
            st.lists(st.sampled_from(pool(library, name, dtype)), min_size=n + 1, max_size=n + 1)
        )
        made[name] = column(library, values, dtype)
    if library == "pandas":
        frame = pd.DataFrame(made)
    else:
        frame = pl.DataFrame(made) if library == "polars" else pl.DataFrame(made).to_arrow()
    drawn = drawn_by(P)
    position %= n
    with np.errstate(all="ignore"):
        one = records.convert(records.head(frame, n), drawn, P.support)
        other = records.convert(records.neighbour(frame, position, n), drawn, P.support)
    assert records.describe(one) == records.describe(other) == records.describe(drawn)
    for at, name in enumerate(COLUMNS):
        assert dtype_of(one, at) == dtype_of(other, at) == dtype_of(drawn, at)
        for row, (a, b) in enumerate(zip(values_of(one, at), values_of(other, at), strict=True)):
            assert repr(a) == repr(b) or row == position
            assert fine(a, P.support[name]) and fine(b, P.support[name])


@pytest.mark.parametrize("other", [1, None, 2.5, "x", True], ids=repr)
def test_categories_that_are_taken_from_the_data_do_not_affect_other_rows(other):
    """One odd number makes floats of all categories: every other row would become unknown."""
    P = samplers.table(c=samplers.categorical([1, 2, 3]))
    for dtype in ("category", object):
        made = converted(pd.DataFrame({"c": pd.Series([2, 3, other], dtype=dtype)}), P)
        assert made["c"].tolist()[:2] == [2, 3]


@pytest.mark.parametrize("other", [1.5, 7, None], ids=repr)
def test_integers_among_categories_match_floats(other):
    """If no category has a fraction, pandas makes integers of all: 2 must still be P's 2.0."""
    P = samplers.table(c=samplers.categorical([1.5, 2.0]))
    made = converted(pd.DataFrame({"c": pd.Series([2, 2, other], dtype="category")}), P)
    assert made["c"].tolist()[:2] == [2.0, 2.0]


@for_each("library", LIBRARIES)
@for_each("other", [5, None])
def test_a_large_integer_does_not_depend_on_a_missing_one(library, other):
    """A null makes floats of integers, which would round every other row."""
    P = samplers.table(
        x=samplers.from_function(lambda n, rng: rng.integers(0, 2**60, n)),
        y=samplers.uniform(0, 1),
        frame=library,
    )
    series = (
        pd.array([2**53 + 1, other], dtype="Int64") if library == "pandas" else pl.Series([2**53 + 1, other])
    )
    frame = {"x": series, "y": [0.5, 0.5]}
    data = pd.DataFrame(frame) if library == "pandas" else pl.DataFrame(frame)
    data = data.to_arrow() if library == "pyarrow" else data
    for support in (P.support, {"x": (0, 2.0**62)}):
        assert values_of(records.convert(data, drawn_by(P), support))[0] == 2**53 + 1


def test_one_missing_value_changes_no_integer():
    """pandas turns integers to floats at the first missing value; the function must not notice."""
    P = samplers.table(age=samplers.integers(0, 120))
    full, partial = (pd.DataFrame({"age": [30, 40, other]}) for other in (50, None))
    assert full["age"].dtype != partial["age"].dtype
    assert converted(full, P).equals(converted(partial.fillna(50), P))
    assert converted(partial, P)["age"].tolist() == [30, 40, 60]


ODD = [
    "F",
    TEXT,
    None,
    pd.NA,
    pd.NaT,
    nan,
    1,
    True,
    np.str_("M"),
    decimal.Decimal("1"),
    decimal.Decimal("sNaN"),
    [1],
    {},
    {2},
    b"F",
    10**400,
    1j,
    dt.date(2020, 1, 1),
    pd.Timestamp("2020-01-01", tz="UTC"),
    np.array([1, 2]),
    pd.Series([1]),
]


@for_each("clip", [True, False])
@for_each(
    "sampler",
    [
        samplers.categorical(["F", "M"]),
        samplers.choice(["F", "M"]),
        samplers.with_missing(samplers.choice(["F", "M"]), 0.5),
    ],
    ids=str,
)
def test_any_object_in_a_column_is_mapped(sampler, clip):
    """An odd object in one row must neither raise an error, which reveals it, nor change another row."""
    P = samplers.table(c=sampler)
    drawn = drawn_by(P)
    for odd in ODD:
        cells = np.empty(2, dtype=object)
        cells[:] = ["M", None]
        cells[1] = odd
        data = pd.DataFrame({"c": pd.Series(cells, dtype=object)})
        made = records.convert(data, drawn, P.support if clip else None)
        assert made["c"].dtype == drawn["c"].dtype
        assert made["c"][0] == "M"


# --- supports and dtypes ----------------------------------------------------------------------


@pytest.mark.parametrize(("start", "end"), [("2020-01-01", "9999-12-31"), ("0001-01-01", "9999-12-31")])
def test_dates_beyond_nanoseconds(start, end):
    """Bounds that overflow nanoseconds would turn every private date into the same wrong day."""
    P = samplers.table(d=samplers.dates(start, end))
    days = pd.to_datetime(["2021-01-01", "2022-03-04"])
    made = converted(pd.DataFrame({"d": days.astype("datetime64[ns]")}), P)
    assert made["d"].tolist() == days.tolist()


def test_far_private_dates_are_clipped():
    """A date that nanoseconds cannot hold must not wrap around."""
    data = pd.DataFrame({"d": np.array(["9999-01-01", "0001-01-01", "NaT"], dtype="M8[s]")})
    made = converted(data, samplers.table(d=DAYS))["d"].dt.date.tolist()
    assert made == [dt.date(2024, 12, 31), dt.date(2020, 1, 1), dt.date(2022, 7, 2)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_boolean_becomes_unknown(library):
    """unknown= is a public promise about what happens to a missing value."""
    P = samplers.table(b=samplers.choice([False, True], unknown=True), frame=library)
    series = pd.array([None, False], dtype="boolean") if library == "pandas" else pl.Series([None, False])
    assert values_of(converted(framed(library, "b", series), P)) == [True, False]


def test_a_boolean_that_p_does_not_draw_is_mapped():
    """A record outside the support is one that calibration has never seen."""
    P = samplers.table(b=samplers.choice([True]))
    assert converted(pd.DataFrame({"b": [False, True]}), P)["b"].tolist() == [True, True]


@pytest.mark.parametrize("library", LIBRARIES)
def test_ordered_categories_stay_ordered(library):
    """A function that compares categories would run on another dtype than in calibration."""
    P = samplers.table(c=samplers.categorical(["low", "high"], ordered=True), frame=library)
    made = converted(
        framed(library, "c", pd.Series(["high", TEXT]) if library == "pandas" else ["high", TEXT]), P
    )
    assert dtype_of(made) == dtype_of(drawn_by(P))
    assert values_of(made) == ["high", "low"]


@for_each("seed", range(6))
@for_each("container", [list, lambda v: np.array(v, dtype=object), np.array], ids=["list", "O", "U"])
def test_a_drawn_series_does_not_truncate_the_strings_of_an_array(seed, container):
    """Two drawn strings may happen to be short: private strings must not be cut to their width."""
    P = samplers.table(c=samplers.choice(["aa", "b", "longest"]))["c"]
    made = converted(container(["aa", "longest", "zz", "b"]), P, seed)
    assert list(made) == ["aa", "longest", "aa", "b"]


@for_each("seed", range(6))
def test_a_missing_string_does_not_become_a_string(seed):
    """None would become "None", or "N", if two drawn strings happen not to be missing."""
    P = samplers.table(c=samplers.with_missing(samplers.choice(["aa", "b"]), 0.3))["c"]
    assert list(converted(np.array(["aa", None, "zz"], dtype=object), P, seed)) == ["aa", None, "aa"]


def test_takes_lists_with_missing_strings():
    """A drawn 1-D array becomes a list where the private data is one, with missing values too."""
    P = samplers.with_missing(samplers.choice(["a", "b"]), 0.5)
    data = ["a", None, "zz"]
    records.match(drawn_by(P), records.describe(data), P.support)
    assert converted(data, P) == ["a", None, "a"]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_another_time_zone_is_refused(library, zone):
    """Local times are different in another zone, so the function would compute something else."""
    P = samplers.table(d=COLUMNS["seen"], frame=library)
    series = pl.Series([dt.datetime(2021, 1, 1)], dtype=pl.Datetime("us")).dt.replace_time_zone(zone)
    with pytest.raises(DataError, match="time zone"):
        records.match(drawn_by(P), records.describe(framed(library, "d", series)), P.support)


def test_arrow_days_in_pandas():
    """What is accepted by its schema must not fail on the private values."""
    P = samplers.table(d=DAYS)
    days = pd.Series([dt.date(2021, 1, 1), None], dtype=pd.ArrowDtype(pa.date32()))
    data = pd.DataFrame({"d": days})
    records.match(drawn_by(P), records.describe(data), P.support)
    assert converted(data, P)["d"].dt.date.tolist() == [dt.date(2021, 1, 1), dt.date(2022, 7, 2)]


def test_arrow_moments_with_a_zone_in_pandas():
    """The same instants in the same zone fit, whichever library stores them."""
    P = samplers.table(d=COLUMNS["seen"])
    moments = pd.Series(pd.to_datetime(["2021-01-01"]).tz_localize(ZONE))
    data = pd.DataFrame({"d": moments.astype(pd.ArrowDtype(pa.timestamp("us", tz=ZONE)))})
    records.match(drawn_by(P), records.describe(data), P.support)
    assert converted(data, P)["d"].tolist() == moments.tolist()


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="polars has it from 1.18 on")
def test_integers_of_128_bits_are_clipped_or_refused_by_their_schema():
    """What is accepted by its schema must not fail on the private values."""
    P = samplers.table(x=samplers.integers(0, 9), frame="polars")
    data = pl.DataFrame({"x": pl.Series([1, 2**70, None], dtype=pl.Int128)})
    try:
        records.match(drawn_by(P), records.describe(data), P.support)
    except DataError:
        return
    assert converted(data, P)["x"].to_list() == [1, 9, 4]


FULL = pd.DataFrame(
    {
        "i": [1, 2, 3],
        "f": [0.5, nan, 1.0],
        "s": ["a", "b", None],
        "b": [True, False, True],
        "d": pd.to_datetime(["2020-01-01", "2021-01-01", "NaT"]),
        "z": pd.to_datetime(["2020-01-01", "2021-01-01", "NaT"]).tz_localize("Asia/Tokyo"),
        "t": pd.to_timedelta([1, 2, None], unit="D"),
        "c": pd.Categorical(["x", "y", None]),
        "I": pd.array([1, None, 3], dtype="Int64"),
        "B": pd.array([True, None, False], dtype="boolean"),
        "S": pd.array(["q", None, "r"], dtype="string"),
    }
)
CONVERT = {"pandas": lambda d: d, "polars": pl.from_pandas, "pyarrow": lambda d: pa.table(d)}


@for_each("clip", [True, False])
@for_each("name", FULL.columns)
@for_each("library", LIBRARIES)
def test_data_of_ps_own_kind_is_not_changed(library, name, clip):
    """Dtypes, categories, time zones and missing values survive."""
    data = CONVERT[library](FULL[[name]])
    P = samplers.bootstrap(data)
    made = records.convert(data, drawn_by(P), P.support if clip else None)
    assert records.equal(made, data)
    assert dtype_of(made) == dtype_of(data)
    assert made.equals(data)


# --- neighbours, indexes ----------------------------------------------------------------------


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_neighbour_differs_in_one_row(library):
    """Neighbours must differ in one record and nothing else: not in index, dtypes or categories."""
    frame = samplers.table(COLUMNS, frame=library).draw(6, np.random.default_rng(3))
    other = records.neighbour(frame, 2, 5)
    first = records.head(frame, 5)
    assert records.describe(other) == records.describe(first) == records.describe(frame)
    for at in range(5):
        same = records.equal(records.record(other, at), records.record(first, at))
        assert same == (at != 2)
    assert records.equal(records.record(other, 2), records.record(frame, 5))
    if library == "pandas":
        assert other.index.identical(first.index)


@pytest.mark.parametrize("index", [[5, 3, 9], [0, 0, 0], range(7, 10)])
def test_row_numbers_are_not_part_of_the_records(index):
    """Row numbers that are left after a filter would reveal how many rows were dropped."""
    P = samplers.table(x=samplers.uniform(0, 1))
    data = pd.DataFrame({"x": [0.1, 0.2, 0.3]}, index=index)
    for support in (P.support, None):
        made = records.convert(data, drawn_by(P), support)
        assert made.index.identical(pd.RangeIndex(3))
        assert made["x"].tolist() == [0.1, 0.2, 0.3]


def test_only_the_labels_of_an_index_are_taken():
    """A frequency, and labels of rows that were dropped, are not part of any record."""
    P = samplers.table(d=DAYS, x=samplers.uniform(0, 1)).map(lambda frame: frame.set_index("d"))
    days = pd.date_range("2021-01-01", periods=4, name="d").astype(drawn_by(P).index.dtype)
    made = records.convert(pd.DataFrame({"x": 0.5}, index=days), drawn_by(P), None)
    assert made.index.tolist() == days.tolist()
    assert made.index.freq is None
    Q = samplers.table(a=samplers.choice(["u", "v"]), b=samplers.integers(0, 9), x=samplers.uniform(0, 1))
    Q = Q.map(lambda frame: frame.set_index(["a", "b"]))
    data = pd.DataFrame({"a": ["u", "v", TEXT], "b": [1, 2, 3], "x": 0.5}).set_index(["a", "b"]).iloc[:2]
    made = records.convert(data, drawn_by(Q), None)
    assert TEXT not in made.index.levels[0]


def test_attrs_of_a_frame_are_left_out():
    """attrs is not part of any record: the function would see what it was not calibrated on."""
    data = pd.DataFrame({"x": [1.0, 2.0]})
    data.attrs["mean"] = NUMBER
    for support in ({"x": (0, 1)}, None):
        made = records.convert(data, pd.DataFrame({"x": [0.5, 0.5]}), support)
        assert made.attrs == {} and made["x"].attrs == {}


def test_missing_strings_can_be_compared():
    """Calibration compares datasets to see whether a function changes them; pandas' NA must not stop it."""
    one = pd.DataFrame({"s": pd.array(["q", None], dtype="string")})
    other = pd.DataFrame({"s": pd.array([None, "q"], dtype="string")})
    assert records.equal(one, one.copy())
    assert not records.equal(one, other)


# --- the caller's data ------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [True, False])
def test_the_callers_frame_is_neither_changed_nor_shared(clip):
    """A function that fills missing values in place would change the caller's data."""
    P = samplers.table(COLUMNS)
    data = P.draw(5, np.random.default_rng(2))
    before = copy.deepcopy(data)
    made = records.convert(data, drawn_by(P), P.support if clip else None)
    for name in made.columns:
        values = made[name].iloc[::-1].tolist()
        for at in range(len(made)):
            made.iat[at, made.columns.get_loc(name)] = values[at]
        raw = made[name].array
        raw[0] = raw[1]
    made.index = made.index[::-1]
    made.columns = [f"{name}!" for name in made.columns]
    assert data.equals(before)
    assert data.index.identical(before.index)


@pytest.mark.parametrize("series", [True, False])
def test_objects_in_a_column_are_copied_too(series):
    """A list in a cell can be changed in place like everything else."""
    data = pd.DataFrame({"o": pd.Series([[0], [1]], dtype=object)})
    drawn = copy.deepcopy(data)
    made = records.convert(data["o"], drawn["o"], None) if series else records.convert(data, drawn, None)
    (made if series else made["o"])[0].append(9)
    assert data["o"].tolist() == [[0], [1]]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_series_that_is_converted_by_an_array_shares_nothing(library):
    """A function that changes its series would change the private one."""
    data = pd.Series([0.1, 0.2]) if library == "pandas" else pl.Series([0.1, 0.2])
    made = records.convert(data, np.zeros(2), None)
    made[0] = 5.0
    assert data.to_list() == [0.1, 0.2]


# --- what leaks -------------------------------------------------------------------------------

BAD = {
    "strings for numbers": lambda: pd.DataFrame({"age": [TEXT, "1"], "sex": ["F", "M"]}),
    "object for numbers": lambda: pd.DataFrame({"age": pd.Series([NUMBER, TEXT], dtype=object), "sex": "F"}),
    "categories": lambda: pd.DataFrame({"age": pd.Categorical([NUMBER, 1.0]), "sex": "F"}),
    "numbers for strings": lambda: pd.DataFrame({"age": [1, 2], "sex": [NUMBER, 1.0]}),
    "index": lambda: pd.DataFrame({"age": [1, 2], "sex": "F"}, index=[TEXT, "b"]),
    "category index": lambda: pd.DataFrame(
        {"age": [1, 2], "sex": "F"}, index=pd.CategoricalIndex([TEXT, "b"])
    ),
    "interval": lambda: pd.DataFrame({"age": pd.interval_range(NUMBER, periods=2), "sex": "F"}),
    "structs": lambda: pl.DataFrame({"age": [{"v": TEXT}], "sex": "F"}),
    "enum": lambda: pl.DataFrame({"age": pl.Series([TEXT], dtype=pl.Enum([TEXT])), "sex": "F"}),
    "dictionary": lambda: pa.table({"age": pa.array([TEXT]).dictionary_encode(), "sex": ["F"]}),
    "fewer": lambda: pd.DataFrame({"age": [NUMBER]}),
    "unhashable": lambda: pd.DataFrame({"age": [1, 2], "sex": pd.Series([[TEXT], {TEXT}], dtype=object)}),
    "huge": lambda: pd.DataFrame({"age": [NUMBER, 1e300], "sex": [TEXT, "M"]}),
}


@for_each("library", LIBRARIES)
@for_each("name", BAD)
@for_each("domain", ["clip", "as-is"])
def test_no_error_shows_a_cell(name, library, domain):
    """Conversions quote what they cannot convert: a person's value would appear in a log."""
    P = samplers.table(age=samplers.integers(0, 120), sex=samplers.categorical(["F", "M"]), frame=library)
    f = private(P, lambda d: float(len(d)), domain=domain)
    error = None
    try:
        f(BAD[name]())
    except PrivatizeError as found:
        error = found
    if error is not None:
        shown = f"{error!s} {error!r} {vars(error)!r}"
        assert TEXT not in shown and "918273" not in shown
        assert error.__cause__ is None and error.__context__ is None


def test_schemas_hold_no_category():
    """Categories are taken from the data, and schemas are stored."""
    for data in (
        pd.DataFrame({"c": pd.Categorical([TEXT])}),
        pl.DataFrame({"c": pl.Series([TEXT], dtype=pl.Enum([TEXT]))}),
        pl.DataFrame({"c": [{"v": 1}]}),
        pa.table({"c": pa.array([TEXT]).dictionary_encode()}),
        pd.DataFrame({"x": [1]}, index=pd.CategoricalIndex([TEXT])),
        pd.DataFrame({"x": [1]}, index=pd.MultiIndex.from_arrays([pd.Categorical([TEXT]), [1]])),
    ):
        assert TEXT not in repr(records.describe(data))


# --- keys -------------------------------------------------------------------------------------

PAIRS = samplers.uniform(0, 1, size=2)
X = np.random.default_rng(1).random((6, 2))


def mean(data):
    return float(np.asarray(data).mean())


def key(f, data):
    """Return an estimate's key for data of a kind."""
    made = f.definition
    call, template = made.binding.bind_public((), {}), f.calibrator.template(made)
    return token(Question(made, template, call, 9, template.match(records.describe(data))).facts(), "f")


EMPTY = {
    "Series": (samplers.uniform(0, 1), pd.Series(X[:, 0], name="a")),
    "integer Series": (samplers.uniform(0, 1), pd.Series([1, 2], name="a")),
    "shuffled Series": (samplers.uniform(0, 1), pd.Series(X[:, 0], index=[3, 1, 2, 5, 4, 0])),
    "polars Series": (samplers.uniform(0, 1), pl.Series("a", X[:, 0])),
    "list": (samplers.uniform(0, 1), X[:, 0].tolist()),
    "array": (samplers.uniform(0, 1), X[:, 0]),
    "DataFrame": (PAIRS, pd.DataFrame(X, columns=["a", "b"])),
    "integer names": (PAIRS, pd.DataFrame(X)),
    "two levels of names": (PAIRS, pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))),
    "polars DataFrame": (PAIRS, pl.DataFrame(X, schema=["a", "b"])),
    "Table": (PAIRS, pa.table({"a": X[:, 0], "b": X[:, 1]})),
    "list of lists": (PAIRS, X.tolist()),
    "own frame": (samplers.table(COLUMNS), samplers.table(COLUMNS).draw(3, np.random.default_rng(0))),
}


@for_each("name", EMPTY)
def test_an_empty_dataset_has_the_key_of_the_full_one(name):
    """What was calibrated ahead of time must be what the call finds."""
    sampler, data = EMPTY[name]
    f = private(sampler, mean)
    empty = data[:0] if isinstance(data, list | np.ndarray) else records.head(data, 0)
    assert key(f, data) == key(f, empty)


@pytest.mark.parametrize("name", ["Series", "polars DataFrame", "list", "two levels of names"])
def test_a_call_uses_what_was_calibrated_ahead(name):
    """Calibrating twice would cost twice, and give two estimates."""
    sampler, data = EMPTY[name]
    f = private(sampler, mean)
    empty = data[:0] if isinstance(data, list) else records.head(data, 0)
    ahead = f.estimate(records.count(data), like=empty)
    assert f.release(data).sensitivity == ahead.value
    assert f.forget(records.count(data), like=empty) == 1


def test_other_dtypes_have_the_same_key():
    """The private data is cast to what P draws, so integers need no estimate of their own."""
    f = private(PAIRS, mean)
    keys = {
        key(f, pd.DataFrame({"a": pd.array([1], dtype=dtype), "b": [2.0]}))
        for dtype in ("int64", "float64", "Int64", "Float32", "bool")
    }
    assert len(keys) == 1


def test_other_names_and_containers_have_other_keys():
    """A function may depend on the names of the columns, and on the library."""
    f = private(PAIRS, mean)
    row = np.zeros((1, 2))
    kinds = [
        pd.DataFrame(row, columns=["a", "b"]),
        pd.DataFrame(row, columns=["b", "a"]),
        pd.DataFrame(row, columns=["a", "c"]),
        pd.DataFrame(row),
        pd.DataFrame(row, columns=["0", "1"]),
        pl.DataFrame(row, schema=["a", "b"]),
        pa.table({"a": [0.0], "b": [0.0]}),
        row,
        row.tolist(),
    ]
    assert len({key(f, data) for data in kinds}) == len(kinds)


def test_a_frame_made_of_an_array_is_what_the_private_one_becomes():
    """Calibration and release must run on the same kind of data."""
    for data in (EMPTY[name][1] for name in ("DataFrame", "integer names", "two levels of names", "Table")):
        drawn = np.zeros((2, 2))
        matched = records.match(drawn, records.describe(data), PAIRS.support)
        made = records.convert(data, drawn, PAIRS.support)
        assert records.describe(matched) == records.describe(made)
        if hasattr(made, "iloc"):
            assert made.columns.identical(matched.columns)


# --- bootstrap(private) -----------------------------------------------------------------------

RNG = np.random.default_rng(11)
OWN = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, 60),
        "pay": RNG.normal(3e4, 1e4, 60),
        "sex": RNG.choice(["F", "M"], 60),
        "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, 60), unit="D"),
    }
)
OWNED = {
    "itself": OWN,
    "copy": OWN.copy(),
    "one row less": OWN.iloc[:-1],
    "another order": OWN.sample(frac=1, random_state=1),
    "other columns' order": OWN[["day", "sex", "pay", "age"]],
    "one more column": OWN.assign(z=1),
    "floats": OWN.astype({"age": float}),
    "nullable": OWN.convert_dtypes(),
    "category": OWN.astype({"sex": "category"}),
    "nanoseconds": OWN.astype({"day": "datetime64[ns]"}),
    "polars": pl.from_pandas(OWN),
    "pyarrow": pa.table(OWN),
    "dict": {name: OWN[name].to_numpy() for name in OWN},
    "tuple": tuple(OWN[name] for name in OWN),
    "records": OWN.to_dict("records"),
    "records of dates": OWN.assign(day=OWN["day"].dt.date.astype(object)).to_dict("records"),
    "single precision": OWN.astype({"pay": "float32"}),
    "other names": OWN.set_axis(["a", "b", "c", "d"], axis=1),
}


@for_each("name", OWNED)
def test_the_private_frame_is_recognized(name):
    """P would be made of the very records that the answer is to hide."""
    assert is_private(samplers.bootstrap(OWN), OWNED[name])


@pytest.mark.parametrize("columns", ["pay", ["pay"], ["sex", "pay"], ["age", "pay"]], ids=str)
def test_a_projection_of_the_private_frame_is_recognized(columns):
    """P["pay"] of a bootstrap draws the private incomes if the frame was private."""
    P = samplers.bootstrap(OWN)[columns]
    assert is_private(P, OWN[columns].copy())
    with pytest.raises(DataError, match="bootstraps"):
        private(P)(OWN[columns].copy())


def test_a_column_of_the_private_frame_is_recognized():
    """One private column is as private as all of them."""
    P = samplers.bootstrap(OWN["pay"])
    assert is_private(P, OWN["pay"].tolist())
    assert is_private(P, OWN)
    assert is_private(P, OWN["pay"].sample(frac=1, random_state=1).to_numpy())
    assert is_private(samplers.table(pay=P, z=samplers.uniform(0, 1)), OWN[["pay"]].assign(z=0.5))


@pytest.mark.parametrize(
    "data",
    [
        OWN.assign(pay=OWN["pay"] + 1),
        OWN.assign(pay=RNG.normal(3e4, 1e4, 60)),
        OWN.assign(age=RNG.permutation(OWN["age"].to_numpy()), pay=0.0),
    ],
)
def test_a_frame_of_the_same_people_is_recognized(data):
    """Whoever has the same age, sex and day, record by record, is the same person with another income."""
    assert is_private(samplers.bootstrap(OWN), data)


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"age": RNG.integers(18, 90, 60), "pay": RNG.normal(3e4, 1e4, 60)}),
        OWN[["sex"]].sample(frac=1, random_state=1).assign(pay=RNG.normal(3e4, 1e4, 60)),
        OWN[["age"]] // 10 * 10,
    ],
)
def test_other_frames_are_not_refused(data):
    """Public data of the same kind is what bootstrap is for."""
    assert not is_private(samplers.bootstrap(OWN), data)


def test_few_categories_are_no_evidence():
    """Two binary columns have the same counts by accident."""
    public = pd.DataFrame({"a": [True, False] * 30, "b": ["x", "y", "y"] * 20})
    assert not is_private(samplers.bootstrap(public), public.sample(frac=1, random_state=5))
    assert not is_private(samplers.bootstrap(public)["a"], pd.Series(RNG.permutation([True, False] * 30)))


def test_row_numbers_are_no_evidence():
    """Everybody's rows are numbered, and the values of few categories all occur in other data."""
    public = pd.DataFrame({"id": range(60), "sex": RNG.choice(["F", "M"], 60), "ok": RNG.random(60) < 0.5})
    other = pd.DataFrame({"id": range(60), "sex": RNG.choice(["F", "M"], 60), "ok": RNG.random(60) < 0.5})
    assert not is_private(samplers.bootstrap(public), other)


# --- wrong usage ------------------------------------------------------------------------------

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


def test_one_record_is_enough():
    """A dataset of one record is a dataset."""
    assert private(TWO, lambda d: d["a"].mean()).release(GOOD.head(1)).n == 1


@for_each(
    ("make", "support"),
    [
        (lambda n, rng: pd.DataFrame({"x": rng.random(n)}), (0, 1)),
        (lambda n, rng: pd.DataFrame({"x": rng.random(n)}), {"y": (0, 1)}),
        (lambda n, rng: pd.Series(rng.random(n)), {"x": (0, 1)}),
        (
            lambda n, rng: pd.DataFrame({"x": pd.to_datetime(rng.integers(0, 10**9, n), unit="s")}),
            {"x": (0, 1)},
        ),
        (lambda n, rng: pd.DataFrame({"x": rng.random(n)}), {"x": DAYS.support}),
        (lambda n, rng: pd.DataFrame({"x": rng.choice(["a", "b"], n)}), {"x": (0, 1)}),
        (lambda n, rng: pl.DataFrame({"x": rng.random(n)}), {"x": OneOf(("a", "b"), "a")}),
        (lambda n, rng: pl.Series(rng.random(n)), DAYS.support),
        (lambda n, rng: pd.Series(rng.random(n)), (np.zeros(3), np.ones(3))),
    ],
)
def test_a_support_that_does_not_fit_is_refused_before_the_private_data_is_seen(make, support):
    """If it were found on the private data, the error could not explain it."""
    f = private(samplers.from_function(make, support=support), lambda d: 1.0, domain="clip")
    with pytest.raises(SettingsError, match="support"):
        f(make(5, np.random.default_rng(0)))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_fixed_size_of_a_frame(library):
    """The same rows are used whatever is in them."""
    P = samplers.table(COLUMNS, frame=library).fixed(size=4)
    data = P.draw(9, np.random.default_rng(4))
    taken = records.take(data, P.positions(9))
    assert records.count(taken) == 4
    assert records.equal(records.record(taken, 0), records.record(data, int(P.positions(9)[0])))
    with pytest.raises(DataError, match="3 records"):
        private(P, lambda d: 1.0)(records.head(data, 3))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_large_frame_is_converted(library):
    """Python code for each row, except for one lookup per string, would take minutes for a million."""
    P = samplers.table(COLUMNS, frame=library)
    data = P.draw(100_000, np.random.default_rng(0))
    made = converted(data, P)
    assert records.equal(records.head(made, 50), records.head(data, 50))


def test_an_audit_of_a_function_of_frames():
    """A function of frames that are made from P's arrays could be calibrated, but not audited."""
    frame = pd.DataFrame(RNG.random((30, 2)), columns=["a", "b"])
    means = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1, size=2), seed=1, store=None)(
        lambda d: d["a"].mean()
    )
    found = audit(means, 30, like=frame.head(0), pairs=100, releases=100, seed=1)
    assert found.sensitivity == means.release(frame).sensitivity
    with pytest.raises(SettingsError, match="without records"):
        audit(means, 30, like=frame)


def test_a_missing_code_is_not_the_code_zero():
    """What fills the gap of a nullable column would be taken for a person's answer."""
    P = samplers.table(code=samplers.categorical([0, 1], unknown=1))
    data = pd.DataFrame({"code": pd.array([0, None, 1], dtype="Int64")})
    assert records.convert(data, P.draw(3, np.random.default_rng(0)), P.support)["code"].tolist() == [0, 1, 1]


def test_a_fill_value_is_not_cached():
    """A private number would stay in a cache of the library, as a part of a dtype."""
    frame = pd.DataFrame({"x": pd.arrays.SparseArray([31415926.5] * 4, fill_value=31415926.5)})
    records.describe(frame)
    assert not any("31415926" in repr(dtype) for dtype in columns._known_kinds)


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


@pytest.mark.parametrize(
    "function",
    [
        lambda d: pd.crosstab(d["a"], d["b"], dropna=False),
        lambda d: pd.cut(d["x"], [0, 0.3, 0.6, 1.0]).value_counts(sort=False),
        lambda d: np.polyfit(d["x"], d["y"], 1),
        lambda d: d[["x", "y"]].corr(),
        lambda d: d["x"].quantile([0.25, 0.5]),
    ],
    ids=["crosstab", "cut", "polyfit", "corr", "quantile"],
)
def test_what_the_docs_say_works_as_it_is(function):
    """A recipe of the docs would be refused, or give something else back."""
    ab = samplers.categorical(["u", "v"])
    P = samplers.table(x=samplers.uniform(0, 1), y=samplers.uniform(0, 1), a=ab, b=ab)
    data = P.draw(60, np.random.default_rng(5))
    found = privatize(epsilon=1e5, gamma=0.2, sampler=P, store=None, seed=1)(function)(data)
    raw = function(data)
    assert type(found) is type(raw) and np.allclose(
        np.asarray(found, float), np.asarray(raw, float), atol=1.5
    )
    if hasattr(raw, "index"):
        assert found.index.equals(raw.index)


# --- functions that change their frame --------------------------------------------------------------


def assigns(people):
    found = float(people["age"].mean())
    people["age"] = 0
    people["more"] = 1
    return found


def drops(people):
    found = float(people["age"].mean())
    del people["age"]
    people.pop("sex")
    return found


def locates(people):
    found = float(people["age"].mean())
    people.loc[:, "age"] = -1
    people.iloc[0, 0] = -5
    return found


def renumbers(people):
    found = float(people["age"].mean())
    people.index = range(100, 100 + len(people))
    people.columns = [f"{name}!" for name in people.columns]
    return found


def inserts(people):
    found = float(people["age"].mean())
    people.insert(0, "first", 1)
    people.loc[len(people)] = people.loc[0]
    return found


def writes_through(people):
    found = float(people["age"].mean())
    for values in (people["age"].to_numpy(), people.to_numpy(), people["age"].values):
        with contextlib.suppress(ValueError, TypeError):
            values.flags.writeable = True
        with contextlib.suppress(ValueError, TypeError, IndexError):
            values[:] = 0
    return found


PEOPLE = samplers.table(
    frame="pandas",
    age=samplers.uniform(18, 90),
    sex=samplers.categorical(["f", "m"]),
    n=samplers.integers(0, 9),
)


@for_each("function", [assigns, drops, locates, renumbers, inserts, writes_through])
def test_what_a_function_does_to_its_frame_stays_there(function):
    """The neighbour is made of the same drawn rows, and must not see what was done to the first."""
    made = {"n": 30, "sampler": PEOPLE, "norm": "l1", "plan": plan(0.2), "seed": 1, "workers": "inline"}
    expected = estimate_sensitivity(lambda people: float(people["age"].mean()), **made)
    assert np.array_equal(estimate_sensitivity(function, **made).gaps, expected.gaps)


def test_the_head_of_a_frame_shares_nothing_that_can_be_written():
    """Without a copy there must be copying on write, also of series, strings and cells."""
    frame = PEOPLE.draw(10, np.random.default_rng(1))
    before = frame.copy()
    for change in (
        lambda f: f.__setitem__("age", 0.0),
        lambda f: f.isetitem(0, 1.0),
        lambda f: f.loc.__setitem__((0, "age"), 7.0),
        lambda f: f.pop("age"),
        lambda f: f.insert(0, "first", 1),
    ):
        change(records.head(frame, 5))
        pd.testing.assert_frame_equal(frame, before)
    series = frame["age"]
    head = records.head(series, 5)
    head.iloc[0] = -1.0
    assert series.equals(before["age"])
    lists = pd.DataFrame({"a": [[1], [2], [3]]})
    records.head(lists, 2)["a"].iloc[0].append(9)
    assert lists["a"].tolist() == [[1], [2], [3]]
    one = pd.Series([[1], [2]])
    records.head(one, 1).iloc[0].append(9)
    assert one.tolist() == [[1], [2]]


def test_cells_of_mixed_columns_are_copied():
    """One column of lists among columns of numbers is found, whichever block it is in."""
    mixed = pd.DataFrame({"x": [1.0, 2.0], "cells": [{"a": 1}, {"a": 2}], "t": ["a", "b"]})
    for made in (records.head(mixed, 2), records.copy(mixed), records.take(mixed, np.array([0, 1]))):
        made["cells"].iloc[0]["a"] = 99
        assert mixed["cells"].tolist() == [{"a": 1}, {"a": 2}]


def test_categories_of_equal_values_and_other_types_are_not_the_same():
    """1, 1.0 and True are equal, and a dtype that is cached for one must not be used for another."""
    for values in ([1, 2], [1.0, 2.0], [True, False], ["1", "2"], [2, 1]):
        drawn = samplers.table(frame="pandas", c=samplers.categorical(values)).draw(
            50, np.random.default_rng(1)
        )
        assert drawn["c"].cat.categories.tolist() == values
        assert {type(value) for value in drawn["c"].cat.categories.tolist()} == {type(values[0])}


def test_frames_that_differ_in_more_than_numbers_are_not_alike():
    """What is published as it is must be what calibration saw."""
    seen = pd.DataFrame({"a": [1.0, 2.0], "t": ["x", "y"]}, index=pd.Index(["p", "q"], name="who"))
    numbers = seen.copy()
    numbers["a"] = [5.0, 6.0]
    assert frames.alike(numbers, seen)
    assert [values.tolist() for values in frames.numbers(numbers)] == [[5.0, 6.0]]
    others = [
        seen.rename(columns={"a": "b"}),
        seen.rename(index={"p": "z"}),
        seen.rename_axis("whom"),
        seen.assign(t=["x", "z"]),
        seen.assign(t=pd.Categorical(["x", "y"])),
        seen.iloc[:1],
        seen[["t", "a"]],
        seen["a"],
        seen.assign(a=["1", "2"]),
        seen.reset_index(drop=True),
        seen.rename_axis("columns", axis="columns"),
    ]
    for other in others:
        assert not frames.alike(other, seen), other


# --- shortcuts --------------------------------------------------------------------------------------

NUMBERS = np.array([[1.5, nan, 0.1], [inf, -0.0, 0.2], [-inf, 1e300, 0.3], [2.0, -3.0, 0.7], [7.0, 1.0, 0.9]])
WIDE = pd.DataFrame(np.vstack([NUMBERS, NUMBERS]), columns=list("abc"))
LAYOUTS = {
    "by rows": lambda: pd.DataFrame(NUMBERS.copy(), columns=list("abc"), copy=False),
    "by columns": lambda: pd.DataFrame(np.asfortranarray(NUMBERS), columns=list("abc"), copy=False),
    "one by one": lambda: pd.DataFrame({c: NUMBERS[:, i].copy() for i, c in enumerate("abc")}, copy=False),
    "a part": lambda: WIDE.iloc[:5],
    "every other": lambda: WIDE.iloc[::2],
    "read-only": lambda: pd.DataFrame(np.broadcast_to(NUMBERS[:1], (5, 3)), columns=list("abc"), copy=False),
    "integers": lambda: pd.DataFrame(np.arange(15, dtype=np.int32).reshape(5, 3), columns=list("abc")),
    "booleans": lambda: pd.DataFrame(NUMBERS > 0, columns=list("abc")),
    "half": lambda: pd.DataFrame(NUMBERS[:, ::2].astype(np.float32), columns=list("ab")),
    "mixed": lambda: pd.DataFrame({"a": NUMBERS[:, 0], "b": np.arange(5), "c": NUMBERS[:, 2] > 0.2}),
    "strings": lambda: pd.DataFrame(
        {"a": NUMBERS[:, 0], "b": list("FMFMx"), "c": pd.Categorical(list("uvuvu"))}
    ),
    "nullable": lambda: pd.DataFrame({"a": pd.array([1, None, 3, 4, 5], dtype="Int64"), "b": 1.0, "c": 2}),
    "one column": lambda: pd.DataFrame({"a": NUMBERS[:, 0]}),
    "one row": lambda: pd.DataFrame(NUMBERS[:1], columns=list("abc")),
    "no rows": lambda: pd.DataFrame(NUMBERS[:0], columns=list("abc")),
    "numbered": lambda: pd.DataFrame(NUMBERS),
    "levels": lambda: pd.DataFrame(NUMBERS, columns=pd.MultiIndex.from_product([["x"], list("abc")])),
    "headed": lambda: pd.DataFrame(NUMBERS, columns=pd.Index(list("abc"), name="heads")),
    "twice": lambda: pd.DataFrame(NUMBERS, columns=list("aab")),
}
INDEXES = {
    "numbers": lambda n: pd.RangeIndex(n),
    "other numbers": lambda n: pd.Index(np.arange(n) * 3 + 5),
    "named": lambda n: pd.Index(np.arange(n), name="id"),
    "strings": lambda n: pd.Index(list("pqrst")[:n]),
}


@for_each("index", INDEXES)
@for_each("layout", LAYOUTS)
def test_rows_are_those_that_pandas_takes(layout, index):
    """A neighbour whose rows, dtypes or rounding differ from pandas' own would be another dataset."""
    data = LAYOUTS[layout]()
    data.index = INDEXES[index](len(data))
    data.attrs = {"source": "here"}
    for attrs in ({"source": "here"}, {}):
        data.attrs = attrs
        for positions in ([], [0], [4, 0, 0, 3], [-1, 1], [4, 3, 2, 1, 0]):
            at = np.array(positions, dtype=np.intp)
            if at.size and not (-len(data) <= at.min() and at.max() < len(data)):
                with pytest.raises(IndexError):
                    records.take(data, at)
                continue
            expected = data.take(at)
            if index in ("numbers", "other numbers"):
                expected = expected.reset_index(drop=True)
            found = records.take(data, at)
            pd.testing.assert_frame_equal(found, expected, check_exact=True)
            assert found.attrs == expected.attrs == attrs
            with np.errstate(invalid="ignore"):
                ours, theirs = (d.sum(numeric_only=True).tolist() for d in (found, expected))
            assert np.array_equal(ours, theirs, equal_nan=True)


def test_rows_share_nothing():
    """What the function writes into one neighbour must not show in the other, nor in the private data."""
    for layout in ("by rows", "by columns", "a part", "one by one", "mixed"):
        data = LAYOUTS[layout]()
        before = data.copy()
        rows = records.take(data, np.arange(5))
        rows.iloc[:, 0] = 99.0
        rows.loc[1, "b"] = 77
        rows.index.name = "mine"
        if (
            int(pd.__version__.partition(".")[0]) >= 3
        ):  # before, names of columns are shared among all that is taken
            rows.columns.name = "mine"
        pd.testing.assert_frame_equal(data, before)


def test_the_flag_against_duplicate_labels_stays():
    """A flag that the user has set holds for the rows that are taken, too."""
    data = LAYOUTS["by rows"]().set_flags(allows_duplicate_labels=False)
    assert not records.take(data, np.array([0, 1])).flags.allows_duplicate_labels


SUPPORTS = {
    "none": None,
    "bounds": (-1.0, 2.5),
    "integer bounds": (0, 3),
    "from below": (0.0, inf),
    "or missing": Maybe((-1.0, 2.5)),
    "anything or missing": Maybe(None),
    "some": OneOf((0, 1, 7), unknown=7),
    "some or missing": Maybe(OneOf((0, 1, 7), unknown=7)),
}
VALUES = {
    "float64": [1.5, nan, inf, -inf, -0.0],
    "float32": [1.5, nan, 3e38, -inf, -0.0],
    "int64": [0, 1, -5, 2**62, -(2**63)],
    "int8": [0, 1, -5, 127, -128],
    "uint64": [0, 1, 7, 2**63, 2**64 - 1],
    "bool": [True, False, True, True, False],
    ">f8": [1.5, nan, inf, 0.0, 1.0],
    "float16": [1.5, nan, inf, 0.0, 1.0],
    "Int64": [0, 1, None, 7, -5],
    "Float64": [0.5, 1, None, 7, -5],
    "int64[pyarrow]": [0, 1, None, 7, -5],
}


def column_as(dtype):
    """Return a column of numbers of a dtype."""
    if dtype[0] in ">" or dtype == "float16":
        return pd.Series(np.array(VALUES[dtype], dtype=dtype))
    return pd.Series(pd.array(VALUES[dtype], dtype=dtype))


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("drawn", VALUES)
def test_numbers_are_the_same_without_the_fast_path(drawn, support, monkeypatch):
    """The answer must not depend on whether pandas stores the private numbers in numpy arrays."""
    every = [name for name in VALUES if drawn != "bool" or "bool" in name]
    ends = {"x": SUPPORTS[support], "y": SUPPORTS[support]}
    template = pd.DataFrame({"x": column_as(drawn), "y": column_as(drawn)}).iloc[:2]

    def converted(own):
        data = pd.DataFrame({"x": column_as(own), "y": column_as(own)}).set_axis([5, 3, 1, 0, 2])
        try:
            return records.convert(data, template, ends)
        except DataError as error:  # an unusual dtype
            return str(error)

    with np.errstate(all="ignore"):
        fast = [converted(own) for own in every]
        monkeypatch.setattr(pandas_frames, "is_quick", lambda *_: False)
        slow = [converted(own) for own in every]
    for one, other in zip(fast, slow, strict=True):
        if isinstance(other, str):
            assert one == other
            continue
        pd.testing.assert_frame_equal(one, other, check_exact=True)
        for name in ("x", "y"):
            if isinstance(one[name].dtype, np.dtype):
                assert one[name].to_numpy().tobytes() == other[name].to_numpy().tobytes()


@for_each("support", ["none", "bounds"])
@for_each("layout", [name for name in LAYOUTS if name not in ("twice", "strings")])
def test_what_the_function_sees_is_not_the_private_data_itself(layout, support):
    """A function that writes into its data must not change what the user passes to the next one."""
    data = LAYOUTS[layout]()
    before = data.copy()
    ends = None if support == "none" else dict.fromkeys(frames.names(data), (-1.0, 2.5))
    made = records.convert(data, records.head(data, 2), ends)
    for at in range(made.shape[1]):
        own, private = made.iloc[:, at], data.iloc[:, at]
        if isinstance(own.dtype, np.dtype):
            assert not np.shares_memory(own.to_numpy(), private.to_numpy())
    made.columns.name = "mine"
    if len(made):
        made.iloc[0, 0] = made.iloc[-1, 0]
    pd.testing.assert_frame_equal(data, before)


@pytest.mark.parametrize("domain", ["clip", "as-is"])
def test_a_column_may_be_called_name(domain):
    """A column called "name" is the private one, and not what P drew for it."""
    P = samplers.table(name=samplers.uniform(0, 1), age=samplers.uniform(0, 100))
    data = P.draw(6, np.random.default_rng(2))
    made = records.convert(data, P.draw(2, np.random.default_rng(3)), P.support if domain == "clip" else None)
    pd.testing.assert_frame_equal(made, data)

    @privatize(epsilon=1e5, gamma=0.2, sampler=P, domain=domain, store=None, seed=1)
    def mean(d):
        return float(d["name"].mean())

    assert mean(data) == pytest.approx(data["name"].mean(), abs=1e-4)  # 60 times the scale of the noise


def test_names_that_a_function_gives_stay_its_own():
    """Drawn frames share the names of their columns: one that is renamed must not rename the next."""
    P = samplers.table(a=samplers.uniform(0, 1), b=samplers.uniform(0, 1), c=samplers.integers(0, 9))
    for part in (P, P[["a", "b"]]):
        first = part.draw(3, np.random.default_rng(1))
        first.columns.name = "renamed"
        with contextlib.suppress(ValueError):  # pandas 3 refuses
            first.columns.values[0] = "z"
        again = part.draw(3, np.random.default_rng(1))
        assert again.columns.name is None
        assert list(again.columns) == (["a", "b", "c"] if part is P else ["a", "b"])
        assert again.columns.identical(pd.DataFrame({name: [0] for name in again.columns}).columns)


@for_each("called", [["age", "pay"], ["pay"], ["pay", "kg"], ["pay", "ok"], ["age", "size"], list(COLUMNS)])
def test_a_drawn_frame_is_its_columns_side_by_side(called):
    """Columns that share an array have the values and the dtypes that they have alone."""
    P = samplers.table({name: COLUMNS[name] for name in called})
    for n in (0, 1, 50):
        drawn = frames.make("pandas", table := P.drawn(n, np.random.default_rng(4)))
        pd.testing.assert_frame_equal(
            drawn,
            pd.DataFrame(
                {
                    name: pandas_frames.PandasFrames("frame").from_column(column)
                    for name, column in table.items()
                }
            ),
        )


def test_drawn_frames_share_nothing_with_the_sampler():
    """A sampler that keeps what it drew must not find it changed by the function."""
    values = np.array([1.0, 2.0, 3.0])
    drawn = frames.make("pandas", {"a": columns.Column(values), "b": columns.Column(values)})
    drawn.iloc[0, 0] = 99.0
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert drawn["b"].tolist() == [1.0, 2.0, 3.0]


@for_each("dtype", ["Int8", "Int64", "UInt64", "Float32", "Float64", "Boolean"])
def test_polars_numbers_are_the_same_with_and_without_missing_ones(dtype):
    """What becomes of a number must not depend on whether another one is missing."""
    values = [True, False, True] if dtype == "Boolean" else [0, 1, 100]
    full = pl.Series("x", values, dtype=getattr(pl, dtype))
    three, missing = columns.values_of(full)
    four, one_missing = columns.values_of(full.extend_constant(None, 1))
    assert three.dtype == four.dtype
    assert three.tolist() == four[:3].tolist()
    assert missing.tolist() == [False] * 3
    assert one_missing.tolist() == [False] * 3 + [True]
    three[:] = 0  # a copy
    assert full.to_list()[:3] == [type(full[0])(value) for value in values]


def test_numbers_of_frames_leave_out_other_columns():
    """Booleans and labels must not be released as numbers, whatever arrays pandas stores them in."""
    for data in (LAYOUTS["mixed"](), LAYOUTS["strings"](), LAYOUTS["nullable"](), LAYOUTS["one by one"]()):
        wanted = [column for _, column in data.items() if columns.kind_of(column) in ("int", "float")]
        found = frames.numbers(data)
        assert len(found) == len(wanted)
        for values, column in zip(found, wanted, strict=True):
            assert np.array_equal(values, column.to_numpy(dtype=np.float64, na_value=nan), equal_nan=True)
    assert frames.numbers(LAYOUTS["booleans"]()) == []


def test_wide_frames_are_described_column_by_column():
    """The schema of a wide frame names every column's own dtype and time zone."""
    data = pd.DataFrame(
        {
            "a": [1.0],
            "day": pd.to_datetime(["2020-01-01"]),
            "b": [1],
            "seen": pd.to_datetime(["2020-01-01"]).tz_localize(ZONE),
            "c": [True],
            "sex": pd.Categorical(["F"]),
        }
    )
    found = frames.describe(data).columns
    assert [entry[0] for entry in found] == list(data.columns)
    assert [entry[2] for entry in found] == ["float", "date", "int", "date", "bool", "category"]
    assert [entry[3] for entry in found] == [None, None, None, ZONE, None, None]
    for entry, (_, column) in zip(found, data.items(), strict=True):
        assert entry[1:] == frames.describe(column).columns[0][1:]


def test_metadata_of_a_dtype_is_not_cached():
    """The metadata of a numpy dtype can be anything: the private data's must not stay in the process."""
    dtype = np.dtype("f8", metadata={"note": TEXT})
    data = pd.DataFrame({"a": np.array([1.0, 2.0]).astype(dtype)}, copy=False)
    frames.describe(data)
    records.convert(data, pd.DataFrame({"a": [0.0]}), None)
    cached = [
        each
        for known in (columns._known_kinds, columns._known_dtypes, columns.NUMPY_KINDS, columns._SPELLED)
        for each in known
    ]
    assert not any(getattr(each, "metadata", None) for each in cached)


# --- frames made without pandas' private constructor ---

PARTS = {
    "floats": FULL[["f"]].assign(g=0.5),
    "floats of two sizes": FULL[["f"]].assign(g=np.float32(0.5), h=FULL["f"]),
    "mixed": FULL[["i", "f", "b"]].assign(j=7, g=0.5, a=pd.Series([[1], [2], [3]], dtype=object)),
    "dates": FULL[["d", "z", "t"]].assign(e=FULL["d"], y=FULL["z"].dt.tz_convert(ZONE)),
    "categories": FULL[["c"]].assign(o=pd.Categorical([2, None, 1], ordered=True)),
    "strings": FULL[["s", "S"]].assign(
        o=FULL["s"].astype(object), p=pd.array(["q", None, "r"], dtype="string[pyarrow]")
    ),
    "missing values": FULL[["I", "B"]].assign(a=pd.array([1, None, 3], dtype="int64[pyarrow]")),
    "all": FULL,
    "no columns": FULL[[]],
    "an index of dates": FULL.set_index("z"),
    "an index of two levels": FULL.set_index(["i", "S"]),
    "integers as names": FULL.set_axis(range(FULL.shape[1]), axis=1),
    "names of two levels": FULL.set_axis(
        pd.MultiIndex.from_product([["x"], FULL.columns], names=["where", "what"]), axis=1
    ),
    "a name of the names": FULL.rename_axis("heads", axis=1),
}


def visible(frame):
    """Return what public attributes show of a frame besides its values."""
    arrays = [frame.to_numpy(), *(own.to_numpy() for _, own in frame.items())]
    memory = [(a.dtype, a.strides, str(a.flags), getattr(a.base, "shape", None)) for a in arrays]
    labels = [(type(own), own.dtype, own.names, own.tolist()) for own in (frame.index, frame.columns)]
    return repr([list(frame.dtypes), memory, labels, frame.attrs, frame.flags.allows_duplicate_labels])


def assert_the_same_without_it(make, monkeypatch):
    """Check that frames are the same if pandas has no `_from_arrays`, and return those."""
    usual = make()
    with monkeypatch.context() as without:
        without.delattr(pd.DataFrame, "_from_arrays", raising=False)
        found = make()
    for one, other in zip(usual, found, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
        assert visible(one) == visible(other)
    return found


@pytest.mark.parametrize("name", PARTS)
def test_frames_are_the_same_without_pandas_private_constructor(name, monkeypatch):
    """With a pandas that drops it, a function would get other frames than estimates were measured on."""
    data = PARTS[name]
    before, drawn = copy.deepcopy(data), records.head(data, 2)

    def make():
        taken = [records.fresh(data), records.fresh(records.head(data, 0)), *records.pair(data, 0, 2)]
        return [*taken, records.convert(data, drawn)]

    for made in assert_the_same_without_it(make, monkeypatch):
        made.columns.names = ["renamed"] * made.columns.nlevels
        for _, own in made.items() if len(made) else ():
            with contextlib.suppress(ValueError):  # some arrays are read-only
                own.array[0] = own.array[1]
    pd.testing.assert_frame_equal(data, before)


@pytest.mark.parametrize("called", [["pay", "kg"], *([name] for name in COLUMNS), list(COLUMNS)], ids=str)
def test_drawn_frames_are_the_same_without_pandas_private_constructor(called, monkeypatch):
    """With a pandas that drops it, the same seed would draw another dataset."""
    P = samplers.table({name: COLUMNS[name] for name in called})

    def make():
        drawn = [P.draw(n, np.random.default_rng(4)) for n in (0, 1, 6)]
        return [*drawn, *records.pair(drawn[2], 0, 5), records.convert(drawn[2], drawn[1], P.support)]

    assert_the_same_without_it(make, monkeypatch)


# --- names of columns that are written into ---


def write_labels(labels, value):
    """Write into an index in every way that pandas allows."""
    for take in (
        lambda: labels.array,
        lambda: labels.values,
        lambda: labels.to_numpy(),
        lambda: np.asarray(labels),
    ):
        with contextlib.suppress(ValueError, TypeError):
            take()[0] = value


@pytest.mark.filterwarnings("ignore:.*infer_string.*")  # the option goes away, and such names with it
@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_what_a_function_writes_into_the_names_of_columns_stays_there(infer, several):
    """A private value would show in the names of every frame that is drawn later in the process."""
    first = f"height{infer}{several}"  # names that no other test has drawn, because they are cached
    parts = {first: samplers.uniform(0, 1)} | ({"weight": samplers.uniform(0, 1)} if several else {})

    def function(frame):
        value = float(frame.iloc[:, 0].mean())
        write_labels(frame.columns, f"{frame.iloc[0, 0]:.3f}")
        write_labels(frame.mean().index, f"{frame.iloc[0, 0]:.3f}")
        return value

    with pd.option_context("future.infer_string", infer):
        P = samplers.table(parts)
        data = P.draw(20, np.random.default_rng(0))
        private = privatize(epsilon=1, gamma=0.3, sampler=P, seed=1, store=None)(function)
        for _ in range(2):
            with contextlib.suppress(PrivatizeError):  # it may well be refused
                private(data)
            assert list(P.draw(2, np.random.default_rng(1)).columns) == list(parts)
            assert list(data.columns) == list(parts)
            assert list(private.calibrator.template(private.definition).records().columns) == list(parts)


def test_strings_in_objects_stay_objects():
    """If pandas read objects that are all strings as strings, the dtype would depend on one record."""
    data = pd.Series(["a", "b", "c"], dtype=object, name="x")
    frame = data.to_frame()
    for own, drawn in ((data, data), (frame, frame)):
        for made in (records.fresh(own), *records.pair(own, 0, 2), records.convert(own, drawn)):
            assert {str(dtype) for dtype in ([made.dtype] if made.ndim == 1 else made.dtypes)} == {"object"}


def test_bounds_of_several_numbers_are_not_for_a_column():
    """Two bounds for two records would clip each to its own, so a value would depend on its position."""
    ends = (np.array([0.0, 1.0]), np.array([2.0, 3.0]))
    data = pd.Series([5.0, 6.0], name="x")
    for own, support in ((data, ends), (data.to_frame(), {"x": ends})):
        with pytest.raises(ValueError, match="one bound for all"):
            records.convert(own, own, support)


@pytest.mark.parametrize("missing", [0.5, np.nan])
def test_a_missing_number_does_not_show_where_integers_are_drawn(missing):
    """An array of integers has no missing ones, so neither has the series that private numbers become."""
    drawn = np.array([1, 2, 3])
    for data in (pd.Series([1.5, missing]), pl.Series([1.5, missing])):
        made = records.convert(data, drawn, Maybe((0, 3)))
        assert str(made.dtype).lower() == "int64"
        assert columns.narwhals(made).null_count() == 0
