"""Frames of every library and dtype."""

import datetime as dt

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.data import frames

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
nan, inf = np.nan, np.inf
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


def dtype_of(frame, at=0):
    """Return the native dtype of a column."""
    own = frames.columns(frame)[at]
    return own.dtype if hasattr(own, "dtype") else own.type


def private(sampler, function=len, **more):
    """Return a private function that remembers nothing."""
    more = {"min_sensitivity": 1.0} | more
    return privatize(epsilon=1, gamma=0.2, sampler=sampler, store=None, **more)(function)


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
PAIRS = samplers.uniform(0, 1, size=2)
X = np.random.default_rng(1).random((6, 2))
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
PEOPLE = samplers.table(
    frame="pandas",
    age=samplers.uniform(18, 90),
    sex=samplers.categorical(["f", "m"]),
    n=samplers.integers(0, 9),
)
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
