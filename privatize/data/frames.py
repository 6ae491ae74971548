"""Data frames and series of pandas, polars and pyarrow: rows, columns, schema.

Columns go through narwhals, which knows all three. Rows are taken with each library's own words: they are
taken for every sampled pair, and a detour would cost more than the work itself.
"""

from __future__ import annotations

import contextlib
import copy as _copy
import datetime as dt
import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import support as domains
from privatize.data.schema import ColumnSchema, FrameSchema, IndexSchema, label
from privatize.errors import DataError, SamplerError

__all__ = [
    "LIBRARIES",
    "Column",
    "adopt",
    "alike",
    "array_of",
    "bring",
    "columns",
    "concat",
    "contents",
    "copy",
    "describe",
    "digest",
    "fresh",
    "head",
    "index_names",
    "is_float",
    "kind",
    "kinds",
    "labels",
    "make",
    "names",
    "plain",
    "replaced",
    "same",
    "select",
    "take",
    "with_numbers",
]

LIBRARIES = ("pandas", "polars", "pyarrow")
_KINDS = {
    ("pandas", "DataFrame"): "frame",
    ("pandas", "Series"): "series",
    ("polars", "DataFrame"): "frame",
    ("polars", "Series"): "series",
    ("pyarrow", "Table"): "frame",
}
# Dtypes of numpy's numbers and what they hold: several columns of a pandas frame can share one array of them.
_PLAIN = {np.dtype("?"): "bool", np.dtype("f4"): "float", np.dtype("f8"): "float"}
_PLAIN |= dict.fromkeys(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")), "int")
_SPELLED = {dtype: str(dtype) for dtype in _PLAIN}
# Values that nobody can change in place.
_ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None), np.float64, np.int64})
Array = NDArray[Any]


@functools.cache
def _of_type(cls: type) -> tuple[str, str] | None:
    library = cls.__module__.partition(".")[0]
    form = _KINDS.get((library, cls.__name__))
    return None if form is None else (form, library)


def kind(data: Any) -> tuple[str, str] | None:
    """Return ("frame" or "series", library) of a frame or a series, and None of everything else.

    Examples
    --------
    >>> kind([1, 2])
    """
    cls: Any = type(data)
    return _of_type(cls)


def _nw(series: Any) -> Any:
    import narwhals as nw

    return nw.from_native(series, series_only=True)


# --- rows -------------------------------------------------------------------------------------


def take(data: Any, positions: Array) -> Any:
    """Return the rows at the positions, in that order."""
    library = type(data).__module__.partition(".")[0]
    if library != "pandas":
        return data.take(positions) if library == "pyarrow" else data[positions]
    whole = _whole(data)
    bare = not data.attrs and data.flags.allows_duplicate_labels and _index(data.index) is None
    if whole is None or not bare:
        return _settled(_apart(data.take(positions)), data)
    import pandas as pd

    # The same, sooner, and in the same order in memory: sums round as they do in pandas' own rows.
    rows = whole[positions] if whole.flags.c_contiguous else whole.T.take(positions, axis=1).T
    return pd.DataFrame(rows, columns=_labels_of(data), copy=False)


def _whole(data: Any) -> Array | None:
    """Return the array that a pandas frame is, where it is one of numbers, without copying; or else None."""
    blocks: Any = getattr(getattr(data, "_mgr", None), "blocks", ())
    if len(blocks) != 1 or data.ndim != 2 or not _is_plain(blocks[0].dtype):
        return None
    found: Array = data.to_numpy()
    return found


def _is_plain(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype in _PLAIN


def head(data: Any, n: int) -> Any:
    """Return the first n rows."""
    if type(data).__module__.partition(".")[0] != "pandas":
        return data.slice(0, n)
    rows = data.iloc[:n] if _copies_on_write() else data.iloc[:n].copy()
    return _settled(_apart(rows), data)


@functools.cache
def _copies_on_write() -> bool:
    """Tell whether what is written into a part of a pandas object stays out of the whole one."""
    import pandas as pd

    return int(pd.__version__.partition(".")[0]) >= 3


def _settled(rows: Any, data: Any) -> Any:
    """Return a pandas object with its rows numbered anew, unless its index is a part of the records."""
    index = rows.index
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None:
        return rows
    if _index(data.index) is None:
        import pandas as pd

        rows.index = pd.RangeIndex(len(rows))
    return rows


def concat(parts: Sequence[Any]) -> Any:
    """Join frames or series, one after the other."""
    first = parts[0]
    library = type(first).__module__.partition(".")[0]
    if library == "pandas":
        import pandas as pd

        # Without those that are empty, whose dtypes pandas would otherwise let have a say.
        filled = [part for part in parts if len(part)] or [first]
        return filled[0] if len(filled) == 1 else pd.concat(filled, ignore_index=_index(first.index) is None)
    if library == "polars":
        import polars as pl

        return pl.concat(list(parts))
    import pyarrow as pa

    return pa.concat_tables(list(parts))


def copy(data: Any) -> Any:
    """Return a copy that shares nothing that could be changed in place."""
    library = type(data).__module__.partition(".")[0]
    if library == "pandas":
        return _apart(data.copy())
    return data.clone() if library == "polars" else data


def _apart(data: Any) -> Any:
    """Return a pandas object whose cells are its own too, if they can be changed in place."""
    blocks = getattr(getattr(data, "_mgr", None), "blocks", None)  # columns of one dtype: quicker to look at
    if blocks is not None and not any(block.dtype == object for block in blocks):
        return data
    for at, column in enumerate(columns(data)):
        if column.dtype != object or {type(cell) for cell in column} <= _ATOMS:
            continue
        made = np.empty(len(column), dtype=object)
        made[:] = [_copy.deepcopy(cell) for cell in column]
        if getattr(data, "ndim", 1) == 1:
            data[:] = made
        else:
            data.isetitem(at, made)
    return data


def fresh(data: Any, n: int, position: int | None = None) -> Any:
    """Return the first n rows, one of them replaced by row n, with nothing else left of what they were in.

    That is: blocks and their order in memory, chunks, flags, frequencies, unused levels, attributes.
    """
    library = type(data).__module__.partition(".")[0]
    places = np.arange(n)
    if position is not None:
        places[position] = n
    if library == "pandas":
        return _fresh_pandas(head(data, n) if position is None else take(data, places))
    rows = take(data, places)
    if library == "polars":
        import polars as pl

        if kind(data) == ("series", "polars"):
            return rows.cast(pl.String).cast(rows.dtype) if rows.dtype == pl.Categorical else rows
        # Codes by order of appearance, whatever the strings were read before.
        known = [name for name, dtype in rows.schema.items() if dtype == pl.Categorical]
        again = [pl.col(name).cast(pl.String).cast(rows.schema[name]) for name in known]
        return rows.with_columns(again) if known else rows
    import pyarrow as pa

    return pa.table(dict(zip(rows.column_names, (own.combine_chunks() for own in rows.columns), strict=True)))


def _fresh_pandas(rows: Any, *, owned: bool = False) -> Any:
    """Return the same; if the rows are nobody else's, they are copied only where a copy would differ."""
    import pandas as pd

    # A copy joins the blocks of one dtype, and puts them in C order.
    made = rows if owned and _joined(rows) else rows.copy()
    for at, column in enumerate(columns(made) if any(map(_is_arrow, _dtypes(made))) else ()):
        inside = column.array.__arrow_array__() if _is_arrow(column.dtype) else None
        if inside is None or (inside.num_chunks == 1 and not inside.chunk(0).offset):
            continue
        own = pd.array(column.tolist(), dtype=column.dtype)
        if made.ndim == 1:
            made = pd.Series(own, index=made.index, name=made.name)
        else:
            made.isetitem(at, own)
    if made.attrs:
        made.attrs = {}
    if not made.flags.allows_duplicate_labels:
        made.flags.allows_duplicate_labels = True
    if _index(made.index) is None:
        if type(made.index) is not pd.RangeIndex:
            made.index = pd.RangeIndex(len(made))
    elif made.index.nlevels > 1:
        labels = [made.index.get_level_values(at) for at in range(made.index.nlevels)]
        made.index = pd.MultiIndex.from_arrays(labels, names=made.index.names)
    else:
        made.index = pd.Index(pd.Series(made.index), name=made.index.name)
    return made


def _joined(rows: Any) -> bool:
    """Tell whether a pandas object has one block for each of numpy's dtypes, in C order."""
    blocks = [block for block in getattr(rows._mgr, "blocks", ()) if isinstance(block.dtype, np.dtype)]
    flags = [np.asarray(block.values).flags for block in blocks]
    return len({block.dtype for block in blocks}) == len(blocks) and all(
        flag.c_contiguous and flag.writeable for flag in flags
    )


def _is_arrow(dtype: Any) -> bool:
    return type(dtype).__name__ == "ArrowDtype" or getattr(dtype, "storage", None) == "pyarrow"


# --- columns ----------------------------------------------------------------------------------


def columns(data: Any) -> list[Any]:
    """Return the columns of a frame, or a series as the only one."""
    form, library = kind(data) or ("", "")
    if form == "series":
        return [data]
    if library == "pandas":
        return [column for _, column in data.items()]
    return list(data.get_columns() if library == "polars" else data.columns)


def _dtypes(data: Any) -> list[Any]:
    """Return the dtypes of the columns."""
    if kind(data) != ("frame", "pandas"):
        return [_dtype(column) for column in columns(data)]
    known = getattr(getattr(data, "_mgr", None), "get_dtypes", None)  # `dtypes` makes a series of them
    return list(data.dtypes if known is None else known())


def _arrays(data: Any) -> list[Any]:
    """Return what the columns of a pandas frame are kept in, without copying: sooner than series of them."""
    each = getattr(data, "_iter_column_arrays", None)
    if each is not None:
        return list(each())
    return [own.to_numpy() if _is_plain(own.dtype) else own.array for own in columns(data)]


def names(data: Any) -> list[Any]:
    """Return the names of a frame's columns, or a series' own."""
    form, library = kind(data) or ("", "")
    if form == "series":
        return [data.name]
    return list(data.column_names if library == "pyarrow" else data.columns)


def index_names(data: Any) -> list[Any]:
    """Return the names of a pandas index that is a part of the records."""
    if (kind(data) or ("", ""))[1] != "pandas" or _index(data.index) is None:
        return []
    return list(data.index.names)


def select(data: Any, wanted: Any) -> Any:
    """Return some columns of a frame or a dict of arrays, or one of them.

    Examples
    --------
    >>> select({"age": np.array([30, 40]), "sex": np.array(["F", "M"])}, "age")
    array([30, 40])
    """
    several = isinstance(wanted, list)
    if isinstance(data, dict):
        return {name: data[name] for name in wanted} if several else data[wanted]
    if isinstance(data, list):
        if several:
            return [{name: record[name] for name in wanted} for record in data]
        return [record[wanted] for record in data]
    if (kind(data) or ("", ""))[1] == "pyarrow":
        return data.select(wanted if several else [wanted])
    return data[wanted]


def _dtype(column: Any) -> Any:
    return column.dtype if hasattr(column, "dtype") else column.type


_KNOWN: dict[Any, str] = {}


def _kind_of(column: Any) -> str:
    """Return what a column holds, by its type alone: values are not looked at."""
    return _kind_by(_dtype(column), column, 0)


def _kind_by(dtype: Any, data: Any, at: int) -> str:
    """Return what the column at a place holds, by its dtype, which costs less to have than the column."""
    if _is_plain(dtype):
        return _PLAIN[dtype]
    # Not kept: these dtypes hold categories, or a fill value, which may be private.
    if type(dtype).__name__ in _CATEGORIES:
        return "category"
    if type(dtype).__name__ == "SparseDtype":
        return "other"
    found = _KNOWN.get(dtype)
    if found is None:
        found = _KNOWN[dtype] = _of_column(columns(data)[at] if kind(data) else data, dtype)
    return found


_CATEGORIES = ("CategoricalDtype", "Categorical", "Enum", "DictionaryType")


def _of_column(column: Any, native: Any) -> str:
    if str(native) == "object":
        return "object"
    dtype = _nw(column).dtype
    name = type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__
    if name in ("Int128", "UInt128"):  # numpy has none
        return "other"
    if dtype.is_integer():
        return "int"
    if dtype.is_float():
        return "float"
    return {
        "Boolean": "bool",
        "String": "text",
        "Categorical": "category",
        "Enum": "category",
        "Datetime": "date",
        "Date": "date",
        "Duration": "duration",
    }.get(name, "other")


def _code(dtype: Any, what: str) -> str:
    """Return a dtype as a text, without any values: categories may be taken from the data."""
    if what == "category":
        return f"category of {_categories(dtype)}"
    if _is_plain(dtype):
        return _SPELLED[dtype]
    text = str(dtype)
    if text.startswith("Sparse"):  # which names its fill value
        return "Sparse"
    return text if what != "other" or len(text) < 40 else type(dtype).__name__


def _categories(dtype: Any) -> str:
    """Return what the categories of a dtype are, without saying which."""
    if hasattr(dtype, "value_type"):
        return "texts" if str(dtype.value_type) in ("string", "large_string", "string_view") else "numbers"
    inside: Any = getattr(dtype, "categories", ())
    kind = getattr(getattr(inside, "dtype", None), "kind", "O")
    return "numbers" if kind in "iufb" and len(inside) else "texts"


def _index(index: Any) -> Any:
    """Return what the index of a pandas object is, or None if it only numbers the rows."""
    name = type(index).__name__
    if name == "RangeIndex":  # pandas 3 makes one of any evenly spaced integers: that must not decide
        name = "Index"
    if name == "Index" and index.name is None and index.dtype.kind in "iu":
        return None
    dtypes = tuple(_settle(str(level.dtype)) for level in _levels(index))
    return IndexSchema(name, dtypes, tuple(map(str, index.names)))


def _settle(code: str) -> str:
    """Return what a dtype is, without the unit of dates, which P's is cast to."""
    if code.startswith("category"):
        return "category"
    return re.sub(r"^datetime64\[(ns|us|ms|s)", "datetime64[", code)


def describe(data: Any) -> FrameSchema:
    """Return the schema of a frame or a series."""
    form, library = kind(data) or ("", "")
    labels = [label(name) for name in names(data)]
    whats = kinds(data)
    zones: list[Any] = [None] * len(whats)
    if "date" in whats:
        zones = [
            _zone_of(_nw(own)) if w == "date" else None for own, w in zip(columns(data), whats, strict=True)
        ]
    if len({repr(name) for name in labels}) < len(labels):
        raise DataError("The dataset has two columns of the same name. Rename one.")
    codes = map(_code, _dtypes(data), whats)
    found = tuple(map(ColumnSchema, labels, codes, whats, zones))
    index = _index(data.index) if library == "pandas" else None
    several = library == "pandas" and form == "frame" and data.columns.names != [None]
    heading = tuple(label(name) for name in data.columns.names) if several else None
    return FrameSchema(form, library, found, index, heading)


# --- making -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A drawn column on its way into a frame.

    Attributes
    ----------
    values : array
        The values; of a categorical one their codes.
    missing : array or None
        Which of them are missing.
    categories : tuple or None
        What the codes stand for, if the values are codes.
    plain : bool
        Whether these are plain values, and not categories.
    ordered : bool
        Whether these have an order.
    zone : str or None
        Time zone of instants, which are in UTC.
    wide : bool
        Whether dates are beyond the years that nanoseconds can count.
    """

    values: Array
    missing: Array | None = None
    categories: tuple[Any, ...] | None = None
    plain: bool = False
    ordered: bool = False
    zone: str | None = None
    wide: bool = False

    def array(self) -> Array:
        """Return it as an array: NaN, NaT or None where a value is missing."""
        values = self.values
        if self.categories is not None:
            values = array_of(self.categories)[values]
        if self.missing is None:
            return values
        if values.dtype.kind in "iuf":
            return np.where(self.missing, np.nan, values)
        if values.dtype.kind in "mM":
            return np.where(self.missing, np.array("NaT", dtype=values.dtype), values)
        found = values.astype(object)
        found[self.missing] = None
        return found

    def take(self, positions: Array) -> Column:
        """Return the column at the positions."""
        missing = None if self.missing is None else self.missing[positions]
        return replace(self, values=self.values[positions], missing=missing)


def array_of(values: Sequence[Any]) -> Array:
    """Return values as an array: of numbers, of texts, or of objects if they are mixed."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {int, float, bool, str}:
        return np.array(values)
    if kinds == {int, float}:
        return np.array(values, dtype=np.float64)
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def make(library: str, table: Mapping[Any, Column]) -> Any:
    """Return columns as a frame of a library, a dict of arrays ("dict") or a list of dicts ("records")."""
    if library == "dict":
        return {name: column.array() for name, column in table.items()}
    if library == "records":
        found = [_values(column) for column in table.values()]
        return [dict(zip(table, record, strict=True)) for record in zip(*found, strict=True)]
    try:
        if library == "pandas":
            return _assembled([_pandas(column) for column in table.values()], _heads(tuple(table)))
        if library == "polars":
            import polars as pl

            return pl.DataFrame({name: _polars(column) for name, column in table.items()})
        import pyarrow as pa

        return pa.table({name: _pyarrow(column) for name, column in table.items()})
    except ImportError:
        raise SamplerError(
            f"frame={library!r} needs {library}, which is not installed. Install it, or use frame='dict'."
        ) from None


def _values(column: Column) -> list[Any]:
    """Return a column as Python's own values."""
    if column.zone is not None:
        from zoneinfo import ZoneInfo

        moments = column.array().astype("M8[us]").tolist()
        zone = ZoneInfo(column.zone)
        return [moment and moment.replace(tzinfo=dt.UTC).astimezone(zone) for moment in moments]
    if column.categories is not None:
        gone = np.zeros(len(column.values), dtype=bool) if column.missing is None else column.missing
        codes = zip(column.values.tolist(), gone.tolist(), strict=True)
        return [None if lost else column.categories[code] for code, lost in codes]
    if column.missing is not None and column.values.dtype.kind in "iub":  # whole, though some are missing
        pairs = zip(column.values.tolist(), column.missing.tolist(), strict=True)
        return [None if lost else value for value, lost in pairs]
    array = column.array()
    if array.dtype.kind in "mM":
        found = array.astype("M8[us]" if array.dtype.kind == "M" and array.dtype != "M8[D]" else array.dtype)
        return list(found.tolist())
    return [None if domains.missing(value) else value for value in array.tolist()]


def _pandas(column: Column) -> Any:
    import pandas as pd

    values, missing = column.values, column.missing
    if column.categories is not None:
        codes = values if missing is None else np.where(missing, -1, values)
        if column.plain and column.categories and isinstance(column.categories[0], str):
            return _looked_up(column.categories).take(codes, allow_fill=missing is not None)
        if column.plain:
            return _pandas(Column(array_of(column.categories)[values], missing))
        told = tuple((type(value), value) for value in column.categories)  # 1 and True are not the same
        return pd.Categorical.from_codes(codes, dtype=_category_dtype(told, column.ordered))
    if values.dtype.kind == "b" and missing is not None:
        return pd.arrays.BooleanArray(values, missing.copy())
    if values.dtype.kind == "M":
        found = column.array().astype("M8[us]" if column.wide else _moments())
        if column.zone is None:
            return found
        return pd.Series(found).dt.tz_localize("UTC").dt.tz_convert(column.zone)
    if values.dtype.kind == "U":
        return pd.Series(column.array().astype(object), dtype=_text())
    return column.array()


def _assembled(parts: list[Any], heads: Any) -> Any:
    """Return columns, which are arrays of numpy's or pandas', or series, as a pandas frame."""
    import pandas as pd

    if all(type(part) is np.ndarray for part in parts):
        dtypes = {part.dtype for part in parts}
        if len(dtypes) == 1 and dtypes <= _PLAIN.keys():  # in one array: quicker to make, and to work with
            return pd.DataFrame(np.array(parts).T, columns=heads, copy=False)
    frame = pd.DataFrame(dict(enumerate(parts)), copy=False)
    frame.columns = heads
    return frame


def _labels_of(data: Any) -> Any:
    """Return the names of a frame's columns for another frame: what is written into one stays there."""
    return _apart_from(data.columns)


def _apart_from(labels: Any) -> Any:
    return labels.view() if _sealed(labels.dtype) else labels.copy(deep=True)


@functools.cache
def _sealed(dtype: Any) -> bool:
    """Tell whether pandas keeps everybody from writing into an index: from 3.1 on, of some texts."""
    import pandas as pd

    if not isinstance(dtype, pd.StringDtype):
        return False
    made = pd.Index(["a"], dtype=dtype)
    for own in (made.array, made.values, made.to_numpy(), np.asarray(made)):
        with contextlib.suppress(ValueError):
            own[0] = "b"
    return bool(made[0] == "a")


def _heads(called: tuple[Any, ...]) -> Any:
    """Return the names of drawn columns as an index: making one costs as much as all else in a frame."""
    import pandas as pd

    if not all(type(name) is str for name in called):
        return pd.Index(called, tupleize_cols=False)
    return _apart_from(_known_heads(called))


@functools.lru_cache(maxsize=256)
def _known_heads(called: tuple[str, ...]) -> Any:
    import pandas as pd

    made = pd.Index(called)
    made.get_indexer(made)  # where each is, now and not in one of several threads
    return made


@functools.cache
def _moments() -> Any:
    """Return the dtype of dates that were read from texts, which pandas 3 has changed."""
    import pandas as pd

    return pd.to_datetime(["2020-01-01"]).dtype


@functools.lru_cache(maxsize=256)
def _category_dtype(told: tuple[tuple[type, Any], ...], ordered: bool) -> Any:
    import pandas as pd

    return pd.CategoricalDtype([value for _, value in told], ordered=ordered)


@functools.lru_cache(maxsize=256)
def _looked_up(texts: tuple[str, ...]) -> Any:
    """Return texts as an array of pandas', from which they are taken by code."""
    import pandas as pd

    return pd.Series(list(texts), dtype=_text()).array


@functools.cache
def _text() -> Any:
    """Return the dtype of texts: that of a series of texts, which pandas 3 has changed."""
    import pandas as pd

    return pd.Series(["text"]).dtype


def _polars(column: Column) -> Any:
    import polars as pl

    values, missing = column.values, column.missing
    if column.categories is not None:
        if all(isinstance(value, str) for value in column.categories):
            codes = values if missing is None else np.where(missing, len(column.categories), values)
            dtype: Any = pl.String if column.plain else pl.Enum(list(column.categories))
            return pl.Series([*column.categories, None], dtype=dtype).gather(codes)
        values = array_of(column.categories)[values]
    if values.dtype.kind == "M" and values.dtype != np.dtype("M8[D]"):
        values = values.astype("M8[us]")
    if values.dtype.kind in "UO":
        found = pl.Series(values.tolist(), dtype=pl.String if values.dtype.kind == "U" else None)
    else:
        found = pl.Series(values)
    if missing is not None:
        found = found.zip_with(pl.Series(~missing), pl.Series([None], dtype=found.dtype))
    if column.zone is not None:
        found = found.dt.replace_time_zone("UTC").dt.convert_time_zone(column.zone)
    return found


def _pyarrow(column: Column) -> Any:
    import pyarrow as pa

    values, missing = column.values, column.missing
    if column.categories is not None:
        codes = pa.array(values, mask=missing, type=pa.int32())
        if column.plain:
            return pa.array(list(column.categories)).take(codes)
        return pa.DictionaryArray.from_arrays(
            codes, pa.array(list(column.categories)), ordered=column.ordered
        )
    if values.dtype.kind == "M" and values.dtype != np.dtype("M8[D]"):
        kept = pa.timestamp("us", tz=column.zone)
        return pa.array(values.astype("M8[us]"), mask=missing).cast(kept)
    if values.dtype.kind == "U":
        values = values.astype(object)
    return pa.array(values, mask=missing)


def adopt(array: Array, schema: FrameSchema) -> Any:
    """Return a drawn array as a series, or as a frame with the private data's column names."""
    form, library = schema.form, schema.library
    called = [column.name for column in schema.columns]
    if form == "series":
        column = _settled_column(array, schema.columns[0].kind)
        if library == "pandas":
            import pandas as pd

            return pd.Series(_pandas(column), name=called[0])
        return _polars(column).rename(called[0])
    if library == "pandas":
        import pandas as pd

        above = schema.heading or (None,)
        if len(above) > 1:
            heads: Any = pd.MultiIndex.from_tuples(called, names=above)
        else:
            name = above[0]
            heads = pd.Index(called, tupleize_cols=False, name=name)
        return pd.DataFrame(array, columns=heads)
    return make(library, {name: Column(array[:, at]) for at, name in enumerate(called)})


def _settled_column(array: Array, what: str) -> Column:
    """Return a drawn array as a column whose dtype follows from what the private data is, not from values."""
    if array.dtype.kind != "O":
        return Column(array)
    gone = np.array([domains.missing(value) for value in array.tolist()], dtype=bool)
    if what == "bool":
        return Column(np.where(gone, False, array).astype(bool), gone)
    if what in ("text", "object", "category"):
        return Column(np.where(gone, "", array).astype(str), gone)
    return Column(array)


def contents(data: Any) -> list[Array]:
    """Return the columns as arrays, and a pandas index that is a part of the records as one more."""
    found = [_numbers(column) for column in columns(data)]
    if (kind(data) or ("", ""))[1] == "pandas" and _index(data.index) is not None:
        made = np.empty(len(data), dtype=object)
        made[:] = data.index.tolist()
        found.append(made)
    return found


def numbers(data: Any) -> list[Array]:
    """Return the columns that hold numbers, as arrays."""
    arrays = _arrays(data) if kind(data) == ("frame", "pandas") else []
    if arrays and all(_is_plain(array.dtype) for array in arrays):
        return [array for array in arrays if array.dtype.kind != "b"]
    return [_numbers(column) for column in columns(data) if _kind_of(column) in ("int", "float")]


def is_float(data: Any, at: int) -> bool:
    """Tell whether a column holds floating-point numbers."""
    return _kind_of(columns(data)[at]) == "float"


def replaced(data: Any, at: int, values: Array) -> Any:
    """Return a frame or a series with other numbers in one of its columns."""
    form, library = kind(data) or ("", "")
    own = columns(data)[at]
    made = _native(values, np.isnan(values) if values.dtype.kind == "f" else None, own)
    if form == "series":
        if library == "pandas":
            made.index, made.name = data.index, data.name
            return made
        return made.rename(data.name)
    if library == "pandas":
        made.index = data.index
        parts = columns(data)
        parts[at] = made
        import pandas as pd

        frame = pd.concat(parts, axis=1)
        frame.columns = data.columns
        return frame
    if library == "polars":
        return data.with_columns(made.rename(data.columns[at]))
    return data.set_column(at, data.column_names[at], made)


# --- as answers -------------------------------------------------------------------------------


def kinds(data: Any) -> list[str]:
    """Return what the columns hold."""
    return [_kind_by(dtype, data, at) for at, dtype in enumerate(_dtypes(data))]


def labels(data: Any) -> list[list[str]]:
    """Return the names of columns and the labels of rows, the first of them, as texts."""
    rows: list[Any] = []
    if (kind(data) or ("", ""))[1] == "pandas":
        rows = data.index[:100].tolist()
    else:
        texts = [_nw(c).to_list()[:100] for c in columns(data) if _kind_of(c) not in ("int", "float")]
        rows = list(zip(*texts, strict=True)) if len(texts) != 1 else texts[0]
    return [[repr(name) for name in names(data)], [repr(row) for row in rows]]


def digest(data: Any) -> str:
    """Return everything in a frame that is not a number, as 64 hexadecimal digits."""
    found: list[Any] = [kind(data), names(data)]
    for column in columns(data):
        what = _kind_of(column)
        found.append((what, _code(_dtype(column), what)))
        if what not in ("int", "float"):
            found.append(_nw(column).to_list())
            found.append(repr(getattr(column, "dtype", None)))
    if (kind(data) or ("", ""))[1] == "pandas":
        found += [type(data.index).__name__, repr(data.index.names), data.index.tolist()]
        found += [str(level.dtype) for level in _levels(data.index)]
        if kind(data) == ("frame", "pandas"):
            found += [type(data.columns).__name__, repr(data.columns.names)]
    found.append(len(data))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _levels(index: Any) -> list[Any]:
    return list(index.levels) if hasattr(index, "levels") else [index]


def alike(data: Any, seen: Any) -> bool:
    """Tell whether two frames differ in numbers only."""
    form = kind(data)
    if form != kind(seen):
        return False
    if form is not None and form[1] == "pandas" and not data.index.identical(seen.index):
        return False
    # Not by asking for `columns`: a series would look for it among its labels.
    if form == ("frame", "pandas") and not data.columns.identical(seen.columns):
        return False
    if names(data) != names(seen) or len(data) != len(seen):
        return False
    ours, theirs = ([what if what not in ("int", "float") else "" for what in kinds(d)] for d in (data, seen))
    if ours != theirs:
        return False
    if not any(ours):
        return True
    return all(
        not what or (_same(own, other, categories=True) and own.equals(other))
        for what, own, other in zip(ours, columns(data), columns(seen), strict=True)
    )


def with_numbers(seen: Any, values: list[Array]) -> Any:
    """Return a frame like another one, with other numbers."""
    places = [at for at, what in enumerate(kinds(seen)) if what in ("int", "float")]
    for at, numbers in zip(places, values, strict=True):
        seen = replaced(seen, at, numbers)
    return seen


# --- the private data -------------------------------------------------------------------------


def plain(data: Any, dtype: np.dtype[Any], support: Any) -> Any:
    """Return private values as the array that P would draw, in its dtype and inside its support."""
    found = columns(data)
    if (kind(data) or ("", ""))[0] == "series":
        values, gone = _split(found[0])
        return domains.bring(values, dtype, support, gone)
    ends: Any = [None] * len(found) if support is None else _per_column(support, len(found))
    made = []
    for column, end in zip(found, ends, strict=True):
        values, gone = _split(column)
        made.append(domains.bring(values, dtype, end, gone))
    return np.column_stack(made) if made else np.empty((len(data), 0), dtype)


def _per_column(support: Any, width: int) -> list[Any]:
    """Return the support of each coordinate of a record."""
    if isinstance(support, domains.Maybe):
        return [domains.Maybe(inner) for inner in _per_column(support.inner, width)]
    if not domains.is_pair(support):
        return [support] * width
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (width,)) for end in support)
    return list(zip(low, high, strict=True))


def _numbers(column: Any) -> Any:
    """Return a column of anything as an array: NaN, NaT or None where a value is missing."""
    values, gone = _split(column)
    if gone is None or not gone.any() or values.dtype.kind in "mM":
        return values
    if values.dtype.kind == "b":
        return np.where(gone, None, values.astype(object))
    return np.where(gone, np.nan, values.astype(np.float64))


def _split(column: Any) -> tuple[Any, Array | None]:
    """Return a column's values, and which are missing beyond NaN, NaT and None.

    What dtype the values have follows from the column's dtype alone, not from what is missing.
    """
    dtype, what = _dtype(column), _kind_of(column)
    if isinstance(dtype, np.dtype) and dtype.kind in "biufmM":
        return column.to_numpy(), None
    if what in ("int", "float", "bool") and kind(column) == ("series", "polars") and not column.null_count():
        return np.array(column.to_numpy()), np.zeros(len(column), dtype=bool)
    series = _nw(column)
    if what in ("text", "object", "category", "other"):
        found = np.empty(len(column), dtype=object)
        found[:] = [_own(value) for value in series.to_list()]
        return found, None
    if isinstance(_zone_of(series), str):
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if what in ("date", "duration"):
        values = series.to_numpy()
        if values.dtype.kind == "O":  # days of arrow's in pandas
            values = np.array([None if domains.missing(day) else day for day in values], dtype="M8[us]")
        return values, None
    gone = series.is_null().to_numpy()
    filled = series.fill_null(False if what == "bool" else 0) if gone.any() else series
    return filled.to_numpy().astype(_plain_dtype(column)), gone


_NUMPYS: dict[Any, np.dtype[Any]] = {}


def _plain_dtype(column: Any) -> np.dtype[Any]:
    """Return numpy's dtype for a column of numbers or booleans."""
    dtype = _dtype(column)
    found = _NUMPYS.get(dtype)
    if found is None:
        name = str(_nw(column).dtype).lower()
        found = _NUMPYS[dtype] = np.dtype("bool" if name == "boolean" else name)
    return found


def _zone_of(series: Any) -> Any:
    return getattr(series.dtype, "time_zone", None)


def _own(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def bring(data: Any, template: Any, support: Any) -> Any:
    """Return a copy of a private frame or series in P's dtypes and, if a support is given, inside it.

    Nothing but the values is left of the private one, see `fresh`.

    Parameters
    ----------
    data : frame or series
        The private data, whose schema fits.
    template : frame or series
        Some rows that P has drawn.
    support : dict, or a series' support
        P's support, by column; None leaves values as they are.
    """
    made = _brought(data, template, support)
    pandas = (kind(data) or ("", ""))[1] == "pandas"
    return _fresh_pandas(made, owned=True) if pandas else fresh(made, len(made))


def _brought(data: Any, template: Any, support: Any) -> Any:
    form, library = kind(data) or ("", "")
    if form == "series":
        (made,) = [_bring_column(data, template, support)]
        if library != "pandas":
            return made.rename(template.name)
        made.name = template.name  # P's, like all that the function sees
        return _reindexed(made, data, template, {})
    ends = {} if support is None else support
    if library == "pandas":
        return _reindexed(_bring_pandas(data, template, ends), data, template, ends)
    called = names(template)
    made = [
        _bring_column(own, drawn, ends.get(name))
        for name, own, drawn in zip(called, columns(data), columns(template), strict=True)
    ]
    if library == "polars":
        import polars as pl

        return pl.DataFrame([column.rename(name) for name, column in zip(called, made, strict=True)])
    import pyarrow as pa

    return pa.table(dict(zip(called, made, strict=True)))


def _bring_pandas(data: Any, template: Any, ends: Mapping[Any, Any]) -> Any:
    """Return a private frame of pandas' as P would draw it, but for its index."""
    supports = [ends.get(name) for name in names(template)]
    together = zip(_arrays(data), _dtypes(template), supports, strict=True)
    parts: list[Any] = [
        domains.bring_numbers(own, dtype, end) if _straight(own.dtype, dtype, end) else None
        for own, dtype, end in together
    ]
    if any(part is None for part in parts):
        others = zip(parts, columns(data), columns(template), supports, strict=True)
        parts = [_bring_column(*rest) if part is None else part for part, *rest in others]
    if parts:
        return _assembled(parts, _labels_of(template))
    import pandas as pd

    return pd.DataFrame(index=range(len(data)), columns=_labels_of(template))


def _straight(own: Any, drawn: Any, support: Any) -> bool:
    """Tell whether numpy's numbers are brought to numpy's numbers, without a mark for missing ones."""
    if not _is_plain(own) or not _is_plain(drawn):
        return False
    return drawn.kind == "f" or not isinstance(support, domains.Maybe)


def _reindexed(made: Any, data: Any, template: Any, support: dict[Any, Any]) -> Any:
    """Give a pandas object the private data's index where it is a part of the records, inside its support."""
    if _index(template.index) is not None:
        import pandas as pd

        # From the labels alone: frequencies and unused levels tell of other records.
        own, drawn = (
            [pd.Series(index.get_level_values(at)) for at in range(index.nlevels)]
            for index in (data.index, template.index)
        )
        names = template.index.names
        parts = zip(own, drawn, names, strict=True)
        levels = [_bring_column(level, other, support.get(name)) for level, other, name in parts]
        if len(levels) > 1:
            made.index = pd.MultiIndex.from_arrays(levels, names=names)
        else:
            made.index = pd.Index(levels[0], name=names[0])
    made.attrs = {}
    return made


def _bring_column(own: Any, drawn: Any, support: Any) -> Any:
    """Return one private column as P would draw it."""
    target = _kind_of(drawn)
    kept = isinstance(support, domains.Maybe)
    if target == "other" and not _same(own, drawn, categories=True):
        raise DataError(
            "A column of an unusual dtype is not of the very dtype that the sampler draws. Convert it, or "
            "have the sampler draw what it is."
        )
    if target == "other" or (support is None and _same(own, drawn)):
        if not hasattr(own, "reset_index"):
            return copy(own)
        made = copy(own.reset_index(drop=True))
        made.attrs = {}
        return made
    values, gone = _split(own)
    if target in ("text", "category", "object"):
        listed = values.tolist()
        if gone is not None:  # codes that are numbers: what fills a gap is no code
            listed = [None if lost else value for value, lost in zip(listed, gone, strict=True)]
        texts = domains.bring_texts(listed, support)
        if target == "text":
            texts = [value if isinstance(value, str) else None for value in texts]
        return _native(texts, None, drawn)
    if target in ("date", "duration"):
        found = domains.bring_moments(values, _moment(drawn), support, gone)
        return _native(found, np.isnat(found), drawn)
    dtype = _plain_dtype(drawn)
    found = domains.bring_numbers(values, dtype, support, gone)
    # Where P draws missing values they stay, and where nothing is known too, if the column can have them.
    if not (kept or (support is None and _nullable(drawn))):
        return _native(found, None, drawn)
    lost = np.zeros(len(found), dtype=bool) if gone is None else gone
    if dtype.kind != "f" and values.dtype.kind == "f":
        lost = lost | np.isnan(values)
    return _native(found, lost, drawn)


def same(one: Any, other: Any) -> bool:
    """Tell whether two columns are of the very same dtype, categories included."""
    return _same(one, other, categories=True)


def _same(own: Any, drawn: Any, *, categories: bool = False) -> bool:
    """Tell whether two columns are of the very same dtype; whether categories are is another matter."""
    name = "dtype" if hasattr(own, "dtype") else "type"
    return bool(getattr(own, name) == getattr(drawn, name)) and (categories or _kind_of(own) != "category")


def _nullable(drawn: Any) -> bool:
    library = (kind(drawn) or ("", "pyarrow"))[1]
    return library != "pandas" or not isinstance(drawn.dtype, np.dtype)


def _moment(drawn: Any) -> np.dtype[Any]:
    series = _nw(drawn)
    if isinstance(_zone_of(series), str):
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    found: np.dtype[Any] = series.to_numpy().dtype
    return found if found.kind in "mM" else np.dtype("M8[us]")


def _native(values: Any, gone: Array | None, drawn: Any) -> Any:
    """Return values as a column of P's own kind."""
    gone = None if gone is None or not gone.any() else gone
    found = kind(drawn)
    if found is not None and found[1] == "pandas":
        import pandas as pd

        if isinstance(drawn.dtype, pd.CategoricalDtype):
            codes = domains.codes(values, drawn.dtype.categories.tolist())
            return pd.Series(pd.Categorical.from_codes(codes, dtype=drawn.dtype))
        if isinstance(values, list):
            if drawn.dtype == object:  # whose texts are missing as NaN, as pandas reads them
                values = [np.nan if value is None else value for value in values]
            return pd.Series(values, dtype=drawn.dtype)
        series = pd.Series(values)
        if isinstance(drawn.dtype, pd.DatetimeTZDtype):
            series = series.dt.tz_localize("UTC").dt.tz_convert(drawn.dtype.tz)
        if gone is not None and values.dtype.kind not in "mM":
            if values.dtype.kind == "f" and isinstance(drawn.dtype, np.dtype):
                return pd.Series(np.where(gone, np.nan, values)).astype(drawn.dtype)
            return series.astype(drawn.dtype).mask(gone)
        return series.astype(drawn.dtype)
    if found is not None and found[1] == "polars":
        import polars as pl

        if isinstance(values, list):
            return pl.Series(values, dtype=pl.String if _kind_of(drawn) != "object" else None).cast(
                drawn.dtype, strict=False
            )
        series = pl.Series(values)
        if gone is not None:
            series = series.zip_with(pl.Series(~gone), pl.Series([None], dtype=series.dtype))
        zone = getattr(drawn.dtype, "time_zone", None)
        if zone:
            series = series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        return series if series.dtype == drawn.dtype else series.cast(drawn.dtype)
    import pyarrow as pa

    if pa.types.is_dictionary(drawn.type):
        known = drawn.combine_chunks().dictionary.to_pylist()
        codes = domains.codes(values, known)
        places = pa.array([None if code < 0 else code for code in codes], type=drawn.type.index_type)
        inside = pa.array(known, type=drawn.type.value_type)
        return pa.DictionaryArray.from_arrays(places, inside, ordered=drawn.type.ordered)
    return pa.array(values, mask=gone, from_pandas=False).cast(drawn.type)
