"""Data frames and series as other packages see them: names, columns, labels, numbers.

The functions call the adapter of the frame's library.
"""

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from privatize.data import columns as _columns
from privatize.data.clipping import with_none
from privatize.data.columns import Column, array_of_column, kind_of, narwhals
from privatize.data.container import Container, adapter, find, register
from privatize.data.schema import FrameSchema
from privatize.data.tabular import Tabular
from privatize.errors import SamplerError


def _pandas(name: str) -> Container | None:
    from privatize.data.pandas_frames import ADAPTERS

    return ADAPTERS.get(name)


def _polars(name: str) -> Container | None:
    from privatize.data.polars_frames import ADAPTERS

    return ADAPTERS.get(name)


def _pyarrow(name: str) -> Container | None:
    from privatize.data.arrow_frames import ADAPTERS

    return ADAPTERS.get(name)


register("pandas", _pandas)
register("polars", _polars)
register("pyarrow", _pyarrow)


def kind(data: Any) -> tuple[str, str] | None:
    """Return ("frame" or "series", library) for a frame or a series, and None for everything else.

    Examples
    --------
    >>> kind([1, 2])
    """
    found = find(data)
    return (found.form, found.library) if isinstance(found, Tabular) else None


def _of(data: Any) -> Tabular:
    found = find(data)
    assert isinstance(found, Tabular)  # noqa: S101 - callers check `kind` first
    return found


def describe(data: Any) -> FrameSchema:
    """Return the schema of a frame or a series."""
    return _of(data).describe(data)


def names(data: Any) -> list[Any]:
    """Return the names of a frame's columns, or a series' own."""
    return _of(data).names(data)


def columns(data: Any) -> list[Any]:
    """Return the columns of a frame, or a series as the only one."""
    return _of(data).columns(data)


def contents(data: Any) -> list[Any]:
    """Return the columns as arrays, and a pandas index that is a part of the records as one more."""
    return _of(data).contents(data)


def kinds(data: Any) -> list[str]:
    """Return what the columns hold: "int", "float", "bool", "text", "category", "date", ..."""
    return _of(data).kinds(data)


def index_names(data: Any) -> list[Any]:
    """Return the names of a pandas index that is a part of the records."""
    return [] if _of(data).index(data) is None else list(data.index.names)


def select(data: Any, wanted: Any) -> Any:
    """Return some columns of a frame, a dict of arrays or a list of dicts, or one of them.

    Examples
    --------
    >>> import numpy as np
    >>> select({"age": np.array([30, 40]), "sex": np.array(["F", "M"])}, "age")
    array([30, 40])
    """
    several = isinstance(wanted, list)
    if isinstance(data, list):
        return [select(record, wanted) for record in data]
    if isinstance(data, dict) and several:
        return {name: data[name] for name in wanted}
    if kind(data) == ("frame", "pyarrow"):
        return data.select(wanted if several else [wanted])
    return data[wanted]


def make(library: str, table: Mapping[Any, Column]) -> Any:
    """Return columns as a frame of a library, a dict of arrays ("dict") or a list of dicts ("records")."""
    if library == "dict":
        return {name: column.array() for name, column in table.items()}
    if library == "records":
        found = [column.listed() for column in table.values()]
        return [dict(zip(table, record, strict=True)) for record in zip(*found, strict=True)]
    try:
        return adapter(library, "Table" if library == "pyarrow" else "DataFrame").make(table)
    except ImportError:
        raise SamplerError(f"""frame={library!r} needs {library}, which is not installed. Install it, or use
            frame='dict'.""") from None


def with_values(data: Any, at: int, values: Any, missing: Any = None) -> Any:
    """Return a frame or a series with other values, of which some may be missing, in one of its columns."""
    own = _of(data)
    column = own.columns(data)[at]
    if values.dtype.kind == "O":
        return own.with_column(data, at, own.native(with_none(values.tolist(), missing), None, column))
    absent = values != values if missing is None else missing | (values != values)
    return own.with_column(data, at, own.native(values, absent, column))


# --- as outputs -------------------------------------------------------------------------------


def numbers(data: Any) -> list[Any]:
    """Return the columns that hold numbers, as arrays."""
    found = _columns.arrays(data) if _of(data).library == "pandas" else []
    if found and all(_columns.is_numpy_number(array.dtype) for array in found):
        return [array for array in found if array.dtype.kind != "b"]
    return [array_of_column(column) for column in columns(data) if kind_of(column) in ("int", "float")]


def with_numbers(seen: Any, values: list[Any]) -> Any:
    """Return a frame like another one, with other numbers."""
    places = [at for at, each in enumerate(kinds(seen)) if each in ("int", "float")]
    for at, column in zip(places, values, strict=True):
        seen = with_values(seen, at, column)
    return seen


def with_floats(seen: Any, values: list[Any]) -> Any:
    """Return a frame like another one, with floats in place of its numbers, integers too."""
    own = _of(seen)
    places = [at for at, each in enumerate(kinds(seen)) if each in ("int", "float")]
    for at, column in zip(places, values, strict=True):
        (floats,) = own.columns(own.assemble([own.from_column(Column(column))], ["x"]))
        seen = own.with_column(seen, at, floats)
    return seen


def labels(data: Any) -> list[list[str]]:
    """Return the names of the columns and the labels of the first 100 rows, as strings."""
    if _of(data).library == "pandas":
        rows = data.index[:100].tolist()
    else:
        rest = [column for column in columns(data) if kind_of(column) not in ("int", "float")]
        listed = [narwhals(column).to_list()[:100] for column in rest]
        rows = listed[0] if len(listed) == 1 else list(zip(*listed, strict=True))
    return [[repr(name) for name in names(data)], [repr(row) for row in rows]]


def digest(data: Any) -> str:
    """Return everything in a frame that is not a number, as 64 hexadecimal digits."""
    return hashlib.sha256(_fixed_parts(data).encode()).hexdigest()


def _fixed_parts(data: Any) -> str:
    form, library = kind(data) or ("", "")
    found: list[Any] = [(form, library), names(data)]
    for column in columns(data):
        holds = kind_of(column)
        found.append((holds, _columns.code_of(_columns.dtype_of(column), holds)))
        if holds not in ("int", "float"):
            found.append(narwhals(column).to_list())
            found.append(repr(getattr(column, "dtype", None)))
    if library == "pandas":
        index, own = data.index, data.index.names
        found += [type(index).__name__, _no_names() if list(own) == [None] else repr(own), index.tolist()]
        found += [str(level.dtype) for level in _columns.levels(index)]
        if form == "frame":
            found += [type(data.columns).__name__, repr(data.columns.names)]
    found.append(len(data))
    return repr(found)


@functools.cache
def _no_names() -> str:
    """Return what pandas shows for the names of an index without any, which takes it a while."""
    import pandas as pd

    return repr(pd.RangeIndex(0).names)
