"""Datasets in every container: what a function is given, and what must not be shown to anybody.

In calibration and on the private data a function gets the same kind of data, down to categories and time
zones; neighbours differ in one record; the caller's data is not changed; and no error shows any of it.
"""

import copy
import datetime as dt
import functools
import gc
import itertools
import logging
import traceback
import types
import zoneinfo
from pathlib import Path

import numpy as np
import pytest

import privatize as package
from privatize import privatize, samplers
from privatize.errors import DataError, PrivateRunError, PrivatizeError
from tests.cases import for_each

pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
pl = pytest.importorskip("polars", reason="polars is not installed (extra test)")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra test)")
sparse = pytest.importorskip("scipy.sparse")

ZONE = "Europe/Berlin"
GRADES = ["low", "mid", "high"]  # not in the order of the alphabet
PLACES = ["a", "b"]
N = 12
COLUMNS = {
    "x": samplers.uniform(0, 1),
    "k": samplers.integers(0, 9),
    "grade": samplers.categorical(GRADES, ordered=True),
    "place": samplers.categorical(PLACES),
    "text": samplers.choice(["red", "green"]),
    "at": samplers.dates("2020-01-01", "2020-12-31", tz=ZONE),
    "day": samplers.dates("2020-01-01", "2020-12-31"),
    "flag": samplers.boolean(),
    "gap": samplers.with_missing(samplers.uniform(0, 1), 0.3),
}


def private(sampler, **more):
    """Decorate with few pairs, a fixed seed and no store."""
    settings = {"epsilon": 1, "gamma": 0.2, "samples": "least", "seed": 5, "store": None}
    return privatize(**(settings | {"sampler": sampler, "workers": "inline"} | more))


# --- datasets of N records, one of every kind -------------------------------------------------


def pandas_frame():
    rng = np.random.default_rng(11)
    days = pd.Series(pd.to_datetime("2020-03-01") + pd.to_timedelta(rng.integers(0, 200, N), unit="D"))
    return pd.DataFrame(
        {
            "x": rng.random(N),
            "k": rng.integers(0, 9, N),
            "grade": pd.Categorical(rng.choice(GRADES, N), categories=GRADES, ordered=True),
            "place": pd.Categorical(rng.choice(PLACES, N), categories=PLACES),
            "text": rng.choice(["red", "green"], N).tolist(),
            "at": days.dt.tz_localize(ZONE),
            "day": days,
            "flag": rng.random(N) < 0.5,
            "gap": np.where(rng.random(N) < 0.3, np.nan, rng.random(N)),
        }
    )


def looser(frame):
    """Return the same data in dtypes that users often have, and that are not P's."""
    return frame.assign(
        k=frame["k"].astype(float),
        x=frame["x"].astype("float32"),
        grade=frame["grade"].astype(str),
        place=frame["place"].astype(str).astype("category").cat.add_categories(["elsewhere"]),
        text=frame["text"].astype("category"),
        day=frame["day"].astype("datetime64[ns]"),
    )


def columns_of(frame):
    return {name: frame[name].to_list() for name in frame}


def polars_frame():
    kinds = {"grade": pl.Enum(GRADES), "place": pl.Enum(PLACES), "day": pl.Date}
    made = pl.DataFrame(columns_of(pandas_frame())).with_columns(pl.col("gap").fill_nan(None))
    return made.with_columns(pl.col(name).cast(kind) for name, kind in kinds.items()).with_columns(
        pl.col("at").dt.convert_time_zone(ZONE).dt.cast_time_unit("us")
    )


def arrow_table():
    made = pa.Table.from_pandas(pandas_frame(), preserve_index=False)
    made = made.set_column(5, "at", made["at"].cast(pa.timestamp("us", ZONE)))  # pandas 2 has nanoseconds
    return made.set_column(6, "day", made["day"].cast(pa.date32()))


def dict_of_arrays():
    frame = pandas_frame()
    strings = {name: np.array(frame[name].tolist()) for name in ("grade", "place", "text")}
    at = frame["at"].dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    return {name: frame[name].to_numpy() for name in frame} | strings | {"at": at}


def list_of_dicts():
    columns = dict_of_arrays()
    columns["at"] = columns["at"].astype("M8[us]")
    columns["day"] = columns["day"].astype("M8[D]")
    found = [
        dict(zip(columns, row, strict=True))
        for row in zip(*(c.tolist() for c in columns.values()), strict=True)
    ]
    zone = zoneinfo.ZoneInfo(ZONE)
    return [
        one
        | {"gap": None if one["gap"] != one["gap"] else one["gap"]}
        | {"at": one["at"].replace(tzinfo=dt.UTC).astimezone(zone)}
        for one in found
    ]


def by_time(frame):
    return frame.set_index("at")


def table(frame):
    return samplers.table(COLUMNS, frame=frame)


def tensor():
    torch = pytest.importorskip("torch", reason="torch is not installed (extra test-all)")
    return torch.from_numpy(np.random.default_rng(2).random((N, 3)))


def as_tensor(x):
    import torch

    return torch.from_numpy(x)


def torch_sampler():
    pytest.importorskip("torch", reason="torch is not installed (extra test-all)")
    return samplers.uniform(0, 1, size=3).map(as_tensor, support=(0, 1))


def numbers():
    return np.random.default_rng(2).random((N, 3))


NUMBERS = samplers.uniform(0, 1, size=3)
CONTAINERS = {
    "array": (lambda: NUMBERS, numbers),
    "list": (lambda: samplers.uniform(0, 1), lambda: numbers()[:, 0].tolist()),
    "pandas": (lambda: table("pandas"), pandas_frame),
    "pandas, loose": (lambda: table("pandas"), lambda: looser(pandas_frame())),
    "pandas, indexed": (lambda: table("pandas").map(by_time), lambda: by_time(pandas_frame())),
    "pandas from numbers": (lambda: NUMBERS, lambda: pd.DataFrame(numbers(), columns=["p", "q", "r"])),
    "pandas series": (lambda: table("pandas")["x"], lambda: pandas_frame()["x"]),
    "pandas series of times": (lambda: table("pandas")["at"], lambda: pandas_frame()["at"]),
    "pandas series of grades": (
        lambda: table("pandas")[["grade", "x"]],
        lambda: pandas_frame()[["grade", "x"]],
    ),
    "pandas series from numbers": (lambda: samplers.uniform(0, 1), lambda: pandas_frame()["x"]),
    "polars": (lambda: table("polars"), polars_frame),
    "polars, loose": (
        lambda: table("polars"),
        lambda: polars_frame().with_columns(
            pl.col("k").cast(pl.Float32),
            pl.col("grade", "place").cast(pl.String),
            pl.col("text").cast(pl.Categorical),
            pl.col("at").dt.cast_time_unit("ns"),
        ),
    ),
    "polars from numbers": (lambda: NUMBERS, lambda: pl.DataFrame(numbers(), schema=["p", "q", "r"])),
    "polars series": (lambda: table("polars")["x"], lambda: polars_frame()["x"]),
    "polars series from numbers": (lambda: samplers.uniform(0, 1), lambda: polars_frame()["x"]),
    "pyarrow": (lambda: table("pyarrow"), arrow_table),
    "pyarrow, loose": (
        lambda: table("pyarrow"),
        lambda: pa.Table.from_pandas(looser(pandas_frame()), preserve_index=False).set_column(
            6, "day", arrow_table()["day"]
        ),
    ),
    "pyarrow from numbers": (
        lambda: NUMBERS,
        lambda: pa.table(dict(zip("pqr", numbers().T.copy(), strict=True))),
    ),
    "csr": (
        lambda: NUMBERS.map(sparse.csr_array, support=(0, 1)),
        lambda: sparse.csr_array(np.where(numbers() < 0.5, 0, numbers())),
    ),
    "csc matrix": (lambda: NUMBERS.map(sparse.csc_matrix), lambda: sparse.csc_matrix(numbers())),
    "torch": (torch_sampler, tensor),
    "torch from numbers": (lambda: NUMBERS, tensor),
    "dict": (lambda: table("dict"), dict_of_arrays),
    "records": (lambda: table("records"), list_of_dicts),
    "frame and series": (
        lambda: samplers.labelled(table("pandas"), samplers.uniform(0, 1)),
        lambda: (pandas_frame(), pandas_frame()["x"].rename("y")),
    ),
    "frame and array": (
        lambda: samplers.labelled(table("polars"), samplers.integers(0, 1)),
        lambda: (polars_frame(), np.arange(N) % 2),
    ),
}


def rows(data):
    """Return the records as strings, with everything that is in them."""
    if isinstance(data, tuple | dict):
        return list(
            map(repr, zip(*map(rows, data.values() if isinstance(data, dict) else data), strict=True))
        )
    if isinstance(data, pd.DataFrame):
        parts = [data.index.tolist(), *(data.iloc[:, at].tolist() for at in range(data.shape[1]))]
        return list(map(repr, zip(*parts, strict=True)))
    if isinstance(data, pd.Series):
        return list(map(repr, data.items()))
    if isinstance(data, pl.DataFrame):
        return list(map(repr, data.rows()))
    if isinstance(data, pa.Table):
        return list(map(repr, data.to_pylist()))
    if sparse.issparse(data):
        data = data.toarray()
    return list(
        map(
            repr,
            data if isinstance(data, list) else data.to_list() if hasattr(data, "to_list") else data.tolist(),
        )
    )


def schema(data):
    """Return everything public about a dataset."""
    if isinstance(data, tuple):
        return tuple(map(schema, data))
    if isinstance(data, dict):
        return {name: schema(part) for name, part in data.items()}.items()
    if isinstance(data, list):
        keys = [list(one) if isinstance(one, dict) else None for one in data]
        kinds = [
            {n: type(v) for n, v in one.items() if v is not None} if isinstance(one, dict) else type(one)
            for one in data
        ]
        known = {}
        for one in kinds:
            known |= one if isinstance(one, dict) else {"": one}
        return keys[0], all(key == keys[0] for key in keys), sorted(map(str, known.items()))
    if isinstance(data, pd.DataFrame | pd.Series):
        parts = [data] if isinstance(data, pd.Series) else [data.iloc[:, at] for at in range(data.shape[1])]
        index = type(data.index), data.index.dtype, list(data.index.names)
        heads = (
            [] if isinstance(data, pd.Series) else [type(data.columns), data.columns.dtype, data.columns.name]
        )
        return type(data), [(part.name, _pandas_kind(part.dtype)) for part in parts], index, heads
    if isinstance(data, pl.DataFrame):
        return type(data), list(data.schema.items())
    if isinstance(data, pl.Series):
        return type(data), data.name, data.dtype
    if isinstance(data, pa.Table):
        categories = [
            column.chunk(0).dictionary.to_pylist() if pa.types.is_dictionary(column.type) else None
            for column in data.columns
        ]
        return data.schema, categories
    shape = tuple(data.shape[1:])
    return type(data), data.dtype, shape, getattr(data, "format", None)


def _pandas_kind(dtype):
    if isinstance(dtype, pd.CategoricalDtype):
        return "category", dtype.categories.tolist(), dtype.categories.dtype, dtype.ordered
    return dtype


# --- what a function is given -----------------------------------------------------------------


def given(sampler, data, look, **more):
    """Return what `look` sees of each dataset that a function is given; the last one is the private one."""
    seen = logging.getLogger("what a function was given")  # invisible to the function's fingerprint
    seen.list = []

    def noting(data):
        seen.list.append(look(data))
        return 1.0

    private(sampler, min_sensitivity=1.0, **more)(noting)(data)
    return seen.list


@functools.cache
def observed(name):
    """Return the schemas and records that a function was given, and the data before and after."""
    make_sampler, make = CONTAINERS[name]
    sampler, data = make_sampler(), make()
    before = schema(data), rows(data)
    seen = given(sampler, data, lambda d: (schema(d), rows(d)))
    return [kind for kind, _ in seen], [found for _, found in seen], before, (schema(data), rows(data))


@for_each("name", CONTAINERS)
def test_the_same_kind_of_data(name):
    """Noise that was calibrated on another kind of data than it is released on may be too small."""
    seen = observed(name)[0]
    assert len(seen) > 38
    for one in seen[:-1]:
        assert one == seen[-1]


@for_each("name", [name for name in CONTAINERS if "loose" not in name])
def test_the_callers_schema_survives(name):
    """Dtypes, names and their order, categories, index and time zones are those of the caller's data."""
    data = CONTAINERS[name][1]()
    seen = observed(name)[0][-1]
    if isinstance(data, pa.Table):
        wanted = data.replace_schema_metadata()
        kinds = [str(kind).replace("int8", "int32").replace("large_", "") for kind in wanted.schema.types]
        assert [str(kind) for kind in seen[0].types] == kinds and seen[0].names == wanted.column_names
        assert seen[1][2:4] == [GRADES, PLACES] if "grade" in wanted.column_names else True
    elif isinstance(data, dict):
        assert [key for key, _ in seen] == list(data)
    else:
        assert seen == schema(data)


@for_each("name", CONTAINERS)
def test_values_inside_p_survive(name):
    """What P draws is left as it is: records inside its support come through unchanged."""
    data = CONTAINERS[name][1]()
    seen = observed(name)[1][-1]
    if "loose" in name:
        data = CONTAINERS[name.partition(",")[0]][1]()
        narrow = {"pandas, loose": "x", "pyarrow, loose": "x"}.get(name)
        if narrow:  # it was cast to 32 bits
            loose = data[narrow] if isinstance(data, pd.DataFrame) else data[narrow].to_pandas()
            values = loose.astype("float32").astype(float)
            data = (
                data.assign(x=values)
                if isinstance(data, pd.DataFrame)
                else data.set_column(0, narrow, pa.array(values))
            )
    if name in ("dict", "pyarrow", "pyarrow, loose"):
        data = _same_units(data)
    assert seen == rows(data)


def _same_units(data):
    """Return the data with times in the units that P draws, which are coarser."""
    if isinstance(data, dict):
        return data | {"at": data["at"].astype("M8[s]"), "day": data["day"].astype("M8[D]")}
    return data


@for_each("name", CONTAINERS)
def test_neighbours_differ_in_one_record(name):
    """The estimate is of neighbours: two datasets of n records of which n-1 are the same."""
    seen = observed(name)[1][:-1]
    assert all(len(one) == N for one in seen)
    gaps = [sum(a != b for a, b in zip(one, other, strict=True)) for one, other in itertools.pairwise(seen)]
    assert all(gap <= 1 or gap > N // 2 for gap in gaps)
    assert gaps.count(1) >= 19  # m
    for before, after in zip([None, *gaps], [*gaps, None], strict=True):
        assert before in (0, 1) or after in (0, 1)


@for_each("name", CONTAINERS)
def test_the_callers_data_is_not_changed(name):
    """Clipping and casting happen to a copy."""
    before, after = observed(name)[2:]
    assert after == before


# --- functions that change what they are given ------------------------------------------------


def spoil(data):
    """Change everything in a dataset, in place, as far as its container allows."""
    if isinstance(data, tuple | list | dict) and not all(isinstance(one, float) for one in data):
        for part in data.values() if isinstance(data, dict) else data:
            spoil(part)
        if isinstance(data, dict):
            data.clear()
        return
    if isinstance(data, pd.DataFrame):
        first = data.columns[0]
        data.loc[:, first] = data[first].iloc[0]
        data.iloc[1:] = data.iloc[:-1].to_numpy()
        data["new"] = 1
        data.index.name = "spoiled"
        data.columns.name = "spoiled"
        del data[first]
    elif isinstance(data, pd.Series):
        data.iloc[1:] = data.iloc[0]
        data.index.name = data.name = "spoiled"
    elif isinstance(data, pl.DataFrame):
        data[0, data.columns[0]] = data[1, data.columns[0]]
        data.insert_column(0, pl.Series("new", [1] * len(data)))
        data.columns = [f"{name}!" for name in data.columns]
    elif isinstance(data, pl.Series):
        data[0] = data[1]
    elif sparse.issparse(data):
        data.data[:] = 0.5
    elif isinstance(data, list):
        data[:] = data[:1] * len(data)
    elif isinstance(data, np.ndarray):
        data[1:] = data[0]
    elif hasattr(data, "fill_"):
        data.fill_(0.5)


def total(data):
    """Return a number that every record has a part in."""
    if isinstance(data, tuple):
        return sum(map(total, data))
    if isinstance(data, dict):
        return float(np.sum(data["x"]))
    if isinstance(data, list):
        return float(np.sum([one["x"] if isinstance(one, dict) else one for one in data]))
    if isinstance(data, pd.DataFrame | pl.DataFrame):
        return float(data["x" if "x" in data.columns else "p"].sum())
    if isinstance(data, pa.Table):
        return float(np.sum(data["x" if "x" in data.column_names else "p"].to_numpy()))
    if isinstance(data, pd.Series) and data.dtype.kind == "M":
        return float(data.dt.day_of_year.sum())
    return float(data.sum())


def spoiling(data):
    found = total(data)
    spoil(data)
    return found


@for_each("name", [name for name in CONTAINERS if "loose" not in name])
def test_a_function_that_changes_its_data(name):
    """It changes neither the caller's data nor the neighbours that it is calibrated on."""
    make_sampler, make = CONTAINERS[name]
    data = make()
    before, kind = rows(data), schema(data)
    f = private(make_sampler())(spoiling)
    release = f.release(data)
    assert rows(data) == before and schema(data) == kind
    assert release.sensitivity == private(make_sampler())(total).release(data).sensitivity


def test_the_name_of_an_index_is_the_callers():
    """A function that names its index does not name the caller's."""
    data = by_time(pandas_frame())

    def names(d):
        d.index.name = "spoiled"
        return float(d["x"].sum())

    private(table("pandas").map(by_time))(names)(data)
    assert data.index.name == "at"


def nested(n, rng):
    return pd.DataFrame(
        {"visits": pd.Series([sorted(one) for one in rng.random((n, 3)).tolist()], dtype=object)}
    )


def test_objects_inside_a_column():
    """Lists inside a column are the caller's as well."""
    data = pd.DataFrame({"visits": pd.Series([[3.0, 1.0, 2.0] for _ in range(N)], dtype=object)})

    def longest(d):
        for one in d["visits"]:
            one.sort()
        return float(sum(one[-1] for one in d["visits"]))

    private(samplers.from_function(nested))(longest)(data)
    assert data["visits"].tolist() == [[3.0, 1.0, 2.0]] * N


def test_names_of_several_levels():
    """Columns that have names of two levels, or a name of their own, have them inside the function too."""
    heads = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")], names=["where", "what"])
    for columns in (heads, pd.Index([1, 2, 3], name="what")):
        data = pd.DataFrame(numbers(), columns=columns)
        seen = given(NUMBERS, data, lambda d: d.columns)
        assert all(one.identical(columns) for one in seen)


# --- converting to P's support ----------------------------------------------------------------


def listed(data, name):
    """Return one column as a list."""
    if isinstance(data, list):
        return [one[name] for one in data]
    return data[name].to_pylist() if isinstance(data, pa.Table) else list(data[name])


def tables(columns):
    """Return the same columns in every container of tables."""
    return {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "pyarrow": pa.table(columns),
        "dict": {name: np.array(values) for name, values in columns.items()},
        "records": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    }


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "dict", "records"])
def test_integers_that_are_stored_as_floats(frame):
    """A code 2.0, as pandas makes of 2 next to a missing value, is P's 2 and not an unknown value."""
    P = samplers.table(code=samplers.choice([1, 2, 3]), frame=frame)
    data = tables({"code": [1.0, 2.0, 3.0, 7.0, float("nan")]})[frame]
    assert listed(given(P, data, lambda d: d)[-1], "code") == [1, 2, 3, 1, 1]


def test_categories_that_are_numbers():
    """A categorical of 1.0 and 2.0 is converted to the categories 1 and 2, as a column of floats is."""
    P = samplers.table(code=samplers.categorical([1, 2, 3]))
    data = pd.DataFrame({"code": pd.Categorical([1.0, 2.0, 3.0, 7.0])})
    assert listed(given(P, data, lambda d: d)[-1], "code") == [1, 2, 3, 1]


def test_booleans_of_records():
    """A flag that was 1 must not become False without an error."""
    P = samplers.table(flag=samplers.boolean(), frame="records")
    try:
        seen = listed(given(P, [{"flag": 1}, {"flag": 0}, {"flag": True}], lambda d: d)[-1], "flag")
    except DataError:
        return  # refused, as the column of a frame is
    assert seen == [True, False, True]


@pytest.mark.parametrize("values", [["0.5"] * N, [*["0.5"] * (N - 1), "many"]], ids=["like numbers", "not"])
def test_strings_in_place_of_numbers_in_records(values):
    """Whether a call is refused depends on the types in the records, not on what is in the strings."""
    P = samplers.table(x=samplers.uniform(0, 1), frame="records")
    assert type(failure(P, [{"x": value} for value in values])) is DataError


def test_instants_of_records():
    """An instant with its time zone is that instant inside the function, and no warning is made of it."""
    P = samplers.table(at=samplers.dates("2020-01-01", "2020-12-31", tz=ZONE), frame="records")
    at = dt.datetime(2020, 5, 5, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    seen = listed(given(P, [{"at": at}] * N, lambda d: d)[-1], "at")
    assert {one if one.tzinfo else one.replace(tzinfo=dt.UTC) for one in seen} == {at}


def test_an_index_is_converted_to_ps_support():
    """The index is a part of the records: with a support, none of it is outside when the function runs."""
    ends = tuple(np.array(["2020-01-01", "2020-12-31"], dtype="M8[D]"))
    drawn = samplers.table(x=samplers.uniform(0, 1), day=samplers.dates("2020-01-01", "2020-12-31"))
    P = drawn.map(lambda d: d.set_index("day"), support={"x": (0, 1), "day": ends})
    data = pandas_frame()[["x", "day"]].assign(day=pd.Timestamp("2031-05-05")).set_index("day")
    seen = given(P, data, lambda d: (d.index.min(), d.index.max()))
    assert all(pd.Timestamp("2020-01-01") <= low and high <= pd.Timestamp("2020-12-31") for low, high in seen)


def test_missing_and_unknown_values():
    """What P does not draw becomes, record by record, the same public value in every container."""
    P = {"x": samplers.uniform(0, 1), "g": samplers.categorical(PLACES, unknown="b")}
    columns = {"x": [0.25, None, 7.0, -1.0], "g": ["a", "q", None, "b"]}
    wanted = [(0.25, "a"), (0.5, "b"), (1.0, "b"), (0.0, "b")]
    made = {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "pyarrow": pa.table(columns),
        "dict": {"x": np.array(columns["x"], dtype=float), "g": np.array(columns["g"], dtype=object)},
        "records": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    }

    def pairs(data):
        if isinstance(data, list):
            return [(one["x"], one["g"]) for one in data]
        if isinstance(data, pa.Table):
            data = data.to_pydict()
        return list(zip(map(float, data["x"]), map(str, data["g"]), strict=True))

    for frame, data in made.items():
        assert given(samplers.table(P, frame=frame), data, pairs)[-1] == wanted, frame


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
def test_sparse_entries_that_add_up(form):
    """Entries that are stored in parts are clipped as the one number that they are."""
    cls = getattr(sparse, f"{form}_array")
    twice = sparse.coo_array(([0.75, 0.75], ([0, 0], [0, 0])), shape=(N, 3))
    if form == "csr":
        indptr = np.array([0] + [2] * N)
        twice = sparse.csr_array((np.array([0.75, 0.75]), np.array([0, 0]), indptr), shape=(N, 3))
    elif form != "coo":
        twice = cls(twice)
    seen = given(NUMBERS.map(cls, support=(0, 1)), twice, lambda x: float(x.toarray().max()))
    assert seen[-1] == 1.0


# --- errors -----------------------------------------------------------------------------------

SENTINEL = 31415926.5358979
TEXT = "SENTINEL-NAME"
WHEN = dt.datetime(1987, 6, 5, 4, 3, 21)
SHOWN = ("31415926", "3.1415", "3.14e", "3.1e+07", TEXT, "1987-06-05", "1987, 6, 5", "05.06.1987")
OURS = str(Path(package.__file__).parent)


def shows(text):
    return any(part in text for part in SHOWN)


def holds(value, depth=7, seen=None):
    """Tell whether a value is, shows or refers to a sentinel, in any container."""
    seen = {} if seen is None else seen
    if id(value) in seen or depth < 0:
        return False
    seen[id(value)] = value
    if isinstance(value, str | bytes | int | float | np.generic | dt.date):
        return shows(repr(value)) or (not isinstance(value, bytes) and shows(str(value)))
    if isinstance(value, pd.DataFrame | pd.Series | pl.DataFrame | pl.Series | pa.Table) or sparse.issparse(
        value
    ):
        return shows(" ".join(rows(value)))
    if isinstance(value, np.ndarray | pd.Index | pa.ChunkedArray | pa.Array) or hasattr(value, "detach"):
        return shows(repr(value.tolist()))
    if isinstance(value, types.ModuleType | types.CodeType | types.FrameType | types.FunctionType | type):
        return False
    if isinstance(value, dict):
        inside = [*value, *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = list(value)
    else:
        inside = [one for one in gc.get_referents(value) if not isinstance(one, types.ModuleType | type)]
    return any(holds(one, depth - 1, seen) for one in inside)


def assert_clean(error):
    """Fail if an error shows a private value, or anything of ours that it leads to holds one."""
    chain = [error]
    for one in chain:
        chain += [e for e in (one.__cause__, one.__context__) if e is not None and e not in chain]
    for one in chain:
        assert not holds([str(one), repr(one), one.args, vars(one), getattr(one, "__notes__", [])])
        shown = traceback.TracebackException.from_exception(one, capture_locals=True)
        for line in shown.stack:
            if line.filename.startswith(OURS):
                assert not shows(repr(line.locals)), f"{line.name} shows the data"
        step = one.__traceback__
        while step is not None:
            frame = step.tb_frame
            if frame.f_code.co_filename.startswith(OURS):
                for name, value in frame.f_locals.items():
                    assert not holds(value), f"{frame.f_code.co_qualname} holds the data in {name!r}"
            step = step.tb_next


def failure(sampler, data, function=total, **more):
    """Return the error that a private call ends in."""
    try:
        private(sampler, **more)(function)(data)
    except Exception as error:
        return error
    raise AssertionError("the call did not fail")


def planted():
    """Return a frame with a sentinel in every column that can hold one."""
    frame = pandas_frame().astype({"text": object, "place": object})
    frame.loc[0, ["x", "gap"]] = SENTINEL
    frame.loc[0, ["text", "place"]] = TEXT
    frame.loc[0, "day"] = WHEN
    frame.loc[0, "at"] = pd.Timestamp(WHEN, tz=ZONE)
    return frame.astype({"place": "category"})


def planted_polars():
    made = pl.from_pandas(planted().astype({"text": str}))
    return made.with_columns(pl.col("day").cast(pl.Date))


def planted_arrow():
    made = pa.Table.from_pandas(planted().astype({"text": str}), preserve_index=False)
    return made.set_column(6, "day", made["day"].cast(pa.date32()))


def planted_dict():
    frame = planted()
    columns = {name: frame[name].to_numpy() for name in frame} | {
        "place": frame["place"].to_numpy(dtype=object)
    }
    return columns | {
        "grade": frame["grade"].to_numpy(dtype=object),
        "at": frame["at"].dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(),
    }


def planted_records():
    return planted().to_dict("records")


def planted_numbers():
    made = numbers()
    made[0, 0] = SENTINEL
    return made


def backwards(d):
    return d[d.columns[::-1]]


def arrow_with(name, values):
    made = planted_arrow()
    return made.set_column(made.column_names.index(name), name, pa.array(values))


TEXTS = [TEXT] * N
WRONG = {
    "pandas": [
        lambda: planted().drop(columns="k"),
        lambda: planted().assign(more=TEXT),
        lambda: backwards(planted()),
        lambda: planted().assign(x=TEXT),
        lambda: planted().assign(x=pd.Series(TEXTS, dtype="category")),
        lambda: planted().assign(x=[[SENTINEL]] * N),
        lambda: planted().assign(x=planted()["day"]),
        lambda: planted().assign(flag=SENTINEL),
        lambda: planted().assign(text=SENTINEL),
        lambda: planted().assign(grade=SENTINEL),
        lambda: planted().assign(at=planted()["at"].dt.tz_localize(None)),
        lambda: planted().assign(at=planted()["at"].dt.tz_convert("UTC")),
        lambda: planted().assign(day=planted()["at"]),
        lambda: planted().assign(day=TEXT),
        lambda: planted().assign(day=SENTINEL),
        lambda: planted().assign(x=pd.arrays.SparseArray([SENTINEL] * N, fill_value=SENTINEL)),
        lambda: planted().assign(x=pd.Series([complex(SENTINEL)] * N)),
        lambda: planted().assign(x=pd.Categorical([SENTINEL] * N)),
        lambda: planted().assign(x=pd.IntervalIndex.from_breaks(SENTINEL + np.arange(N + 1.0))),
        lambda: planted().set_index("text"),
        lambda: planted().set_index("x", drop=False),
        lambda: planted().set_index(["day", "text"], drop=False),
        lambda: planted().set_axis(pd.CategoricalIndex(TEXTS)),
        lambda: planted()["x"],
        planted_polars,
        planted_arrow,
        planted_dict,
        planted_records,
        planted_numbers,
        lambda: planted().to_numpy(),
        lambda: planted_polars().lazy(),
        lambda: planted().groupby("text"),
        lambda: planted().set_axis([*range(8), SENTINEL], axis=1),
    ],
    "pandas from numbers": [
        lambda: pd.DataFrame(planted_numbers()[:, :2], columns=["p", "q"]),
        lambda: pd.DataFrame({"p": TEXTS, "q": SENTINEL, "r": SENTINEL}),
        lambda: pd.DataFrame(planted_numbers(), index=pd.Index(TEXTS)),
        lambda: planted_numbers()[:, :2],
        lambda: planted_numbers()[:, :2].tolist(),
        lambda: [*planted_numbers().tolist()[:-1], [TEXT, 1.0, 2.0]],
        lambda: pl.DataFrame(planted_numbers()[:, :2]),
        lambda: sparse.csr_array(planted_numbers()),
    ],
    "pandas series": [
        lambda: planted()["text"],
        lambda: planted()["at"],
        lambda: planted()["x"].set_axis(TEXTS),
        lambda: planted()[["x"]],
        lambda: planted_dict(),
    ],
    "pandas, indexed": [
        planted,
        lambda: planted().set_index("text"),
        lambda: planted().set_index("day"),
        lambda: planted().assign(at=planted()["at"].dt.tz_convert("UTC")).set_index("at"),
    ],
    "polars": [
        lambda: planted_polars().drop("k"),
        lambda: planted_polars().with_columns(more=pl.lit(TEXT)),
        lambda: backwards(planted_polars()),
        lambda: planted_polars().with_columns(x=pl.lit(TEXT)),
        lambda: planted_polars().with_columns(x=pl.Series(TEXTS, dtype=pl.Enum([TEXT]))),
        lambda: planted_polars().with_columns(x=pl.Series(TEXTS, dtype=pl.Categorical)),
        lambda: planted_polars().with_columns(x=pl.Series([[SENTINEL]] * N)),
        lambda: planted_polars().with_columns(x=pl.Series([{"a": SENTINEL}] * N)),
        lambda: planted_polars().with_columns(flag=pl.lit(SENTINEL)),
        lambda: planted_polars().with_columns(at=pl.col("at").dt.replace_time_zone(None)),
        lambda: planted_polars().with_columns(at=pl.col("at").dt.convert_time_zone("UTC")),
        lambda: planted_polars().with_columns(day=pl.col("at")),
        lambda: planted_polars().with_columns(day=pl.lit(TEXT)),
        lambda: planted_polars()["x"],
        lambda: planted_polars().lazy(),
        planted,
        planted_arrow,
        planted_records,
    ],
    "pyarrow": [
        lambda: planted_arrow().drop_columns(["k"]),
        lambda: planted_arrow().append_column("more", pa.array(TEXTS)),
        lambda: planted_arrow().select(planted_arrow().column_names[::-1]),
        lambda: arrow_with("x", TEXTS),
        lambda: arrow_with("x", pd.Categorical(TEXTS)),
        lambda: arrow_with("x", [[SENTINEL]] * N),
        lambda: arrow_with("x", [{TEXT.lower(): SENTINEL}] * N),
        lambda: arrow_with("flag", [SENTINEL] * N),
        lambda: arrow_with("at", [WHEN] * N),
        lambda: arrow_with("at", planted()["at"].dt.tz_convert("UTC")),
        lambda: arrow_with("day", TEXTS),
        lambda: planted_arrow()["x"],
        planted,
        planted_polars,
        planted_records,
    ],
    "csr": [
        lambda: sparse.csr_array(planted_numbers()[:, :2]),
        lambda: sparse.csc_array(planted_numbers()),
        lambda: sparse.csr_matrix(planted_numbers()),
        lambda: sparse.csr_array(planted_numbers().astype(complex)),
        planted_numbers,
        lambda: planted_numbers().tolist(),
    ],
    "torch": [
        lambda: as_tensor(planted_numbers()[:, :2]),
        lambda: as_tensor(planted_numbers().astype(complex)),
        planted_numbers,
    ],
    "dict": [
        lambda: {name: part for name, part in planted_dict().items() if name != "k"},
        lambda: planted_dict() | {"more": np.array(TEXTS)},
        lambda: dict(reversed(planted_dict().items())),
        lambda: planted_dict() | {"x": np.array(TEXTS)},
        lambda: planted_dict() | {"x": TEXTS},
        lambda: planted_dict() | {"x": planted_numbers()},
        lambda: planted_dict() | {"x": SENTINEL},
        lambda: planted_dict() | {"x": planted_dict()["x"][:5]},
        lambda: planted_dict() | {"at": np.array(TEXTS)},
        lambda: planted_dict() | {"flag": np.full(N, SENTINEL)},
        lambda: planted_dict() | {SENTINEL: np.zeros(N)},
        planted,
        planted_records,
    ],
    "records": [
        lambda: [one | {"x": TEXT} for one in planted_records()],
        lambda: [one | {"x": [SENTINEL]} for one in planted_records()],
        lambda: [one | {"x": {TEXT: SENTINEL}} for one in planted_records()],
        lambda: [one | {"at": TEXT} for one in planted_records()],
        lambda: [one | {"at": SENTINEL} for one in planted_records()],
        lambda: [*planted_records(), SENTINEL],
        lambda: [*planted_records(), [TEXT]],
        lambda: TEXTS,
        planted,
        planted_dict,
    ],
    "frame and series": [
        lambda: (planted().drop(columns="k"), planted()["x"]),
        lambda: (planted(), planted()["text"]),
        lambda: (planted(), planted()["x"].set_axis(TEXTS)),
        lambda: (planted(), planted()["x"][:5]),
        lambda: (planted(), planted()),
        lambda: (planted(),),
        lambda: (planted(), TEXT),
        planted,
    ],
}


@for_each(("name", "at"), [(name, at) for name, wrong in WRONG.items() for at in range(len(wrong))])
def test_a_wrong_schema_shows_no_value(name, at):
    """An error about the data's schema names parts of the schema, and no value."""
    sampler = CONTAINERS[name][0]()
    error = failure(sampler, WRONG[name][at]())
    assert isinstance(error, PrivatizeError)
    assert_clean(error)
    assert type(error) is DataError, "the error does not say what is wrong with the data"


@pytest.mark.parametrize("at", range(5))
def test_what_a_mismatch_says(at):
    """The error names the column, or says what to do."""
    wrong, message = [
        (planted().drop(columns="k"), r"lacks the columns \['k'\]"),
        (planted().assign(more=TEXT), r"has the columns \['more'\]"),
        (backwards(planted()), "in the order"),
        (planted().assign(x=TEXT), "'x' is .* draws float64"),
        (planted().set_index("text", drop=False), "reset_index"),
    ][at]
    with pytest.raises(DataError, match=message):
        private(table("pandas"))(total)(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: by_time(pandas_frame().assign(at=pandas_frame()["at"].dt.tz_convert("UTC"))), "UTC"),
        (lambda: by_time(pandas_frame()).rename_axis("when"), "when"),
    ],
    ids=["zone", "name"],
)
def test_what_a_mismatched_index_says(wrong, message):
    """The error shows how two indexes of one class differ, in time zone or name."""
    with pytest.raises(DataError, match=message):
        private(table("pandas").map(by_time))(total)(wrong())


def test_the_unit_of_an_index_is_ps():
    """An index in seconds, or in nanoseconds as pandas 2 reads it, is converted to P's unit."""
    data = by_time(pandas_frame().assign(at=pandas_frame()["at"].dt.as_unit("s")))
    seen = given(table("pandas").map(by_time), data, lambda d: d.index.dtype)
    assert len(set(map(str, seen))) == 1


class Loud(Exception):
    """An exception with the data in its message, in an attribute and in a note."""

    def __init__(self, data):
        super().__init__(f"bad data {data}")
        self.data = data
        self.add_note(" ".join(rows(data)))


def raising(data):
    if shows(" ".join(rows(data))):
        copied = copy.copy(data)
        raise Loud(copied)
    return total(data)


def unfit(data):
    return total(data) if not shows(" ".join(rows(data))) else data


PLANTED = {
    "array": planted_numbers,
    "list": lambda: planted_numbers()[:, 0].tolist(),
    "pandas": lambda: planted().assign(place=pandas_frame()["place"]),
    "pandas, indexed": lambda: by_time(planted().assign(place=pandas_frame()["place"])),
    "pandas from numbers": lambda: pd.DataFrame(planted_numbers(), columns=["p", "q", "r"]),
    "pandas series": lambda: planted()["x"],
    "polars": planted_polars,
    "polars series": lambda: planted_polars()["x"],
    "pyarrow": planted_arrow,
    "csr": lambda: sparse.csr_array(planted_numbers()),
    "torch": lambda: as_tensor(planted_numbers()),
    "dict": lambda: dict_of_arrays() | {"x": planted_dict()["x"], "day": planted_dict()["day"]},
    "records": planted_records,
    "frame and series": lambda: (planted(), planted()["x"].rename("y")),
}


@for_each("function", [raising, unfit])
@for_each("name", PLANTED)
def test_a_function_that_fails_on_the_private_data(name, function):
    """However it fails, the error says that it failed and nothing else."""
    sampler = CONTAINERS[name][0]()
    error = failure(sampler, PLANTED[name](), function, domain="as-is")
    assert type(error) is PrivateRunError
    assert error.__cause__ is None and error.__context__ is None and vars(error) == {}
    assert_clean(error)


@for_each("name", PLANTED)
def test_clipping_hides_the_sentinel(name):
    """With the support that P has, a value beyond it does not even reach the function."""
    sampler = CONTAINERS[name][0]()
    if sampler.support is None:
        sampler = table("pandas")
        data = PLANTED[name]().reset_index()[list(COLUMNS)]
    else:
        data = PLANTED[name]()
    seen = given(sampler, data, lambda d: shows(" ".join(rows(d))))
    assert not any(seen)


def test_the_search_can_find():
    """The search used above finds a sentinel in every container."""
    for make in PLANTED.values():
        try:
            data = make()
        except ImportError:
            continue
        assert holds({"a": [data]}) and holds(Loud(data))
    assert not holds([pandas_frame(), polars_frame(), arrow_table(), list_of_dicts(), numbers()])
