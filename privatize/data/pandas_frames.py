"""Data frames and series of pandas."""

# ruff: noqa: D102 - the base class says what a method does

import copy
import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privatize.data import columns
from privatize.data.clipping import codes, convert_floats, convert_numbers, objects
from privatize.data.columns import NUMPY_KINDS, Array, Column, array_of, arrays, is_numpy_number
from privatize.data.container import IMMUTABLE
from privatize.data.pandas_blocks import (
    build_frame,
    heads,
    inside_blocks,
    is_laid_out,
    names_for,
    own_labels,
)
from privatize.data.schema import FrameSchema, IndexSchema, label
from privatize.data.support import Maybe, split, unwrap
from privatize.data.tabular import Tabular


def labels_of(index: Any) -> list[Any]:
    """Return the labels of an index, level by level, as series."""
    return [pd.Series(index.get_level_values(at)) for at in range(index.nlevels)]


def joined(labels: list[Any], names: Any) -> Any:
    """Return labels, level by level, as an index."""
    if len(labels) > 1:
        return pd.MultiIndex.from_arrays(labels, names=names)
    return pd.Index(labels[0], name=names[0], copy=True)


def taken(array: Any, at: Any) -> Any:
    """Return rows of a column's array: numpy's may be a view, others share nothing that can be changed."""
    made = array[at] if type(at) is slice else array.take(at)
    if type(made) is np.ndarray:
        return own_cells(made) if made.dtype.kind == "O" else made
    if not isinstance(made.dtype, pd.ArrowDtype) and getattr(made.dtype, "storage", None) != "pyarrow":
        return made.copy()
    inside = made.__arrow_array__()  # cannot be changed, but its chunks can be seen
    one_chunk = inside.num_chunks == 1 and not inside.chunk(0).offset
    return made if one_chunk else pd.array(made.tolist(), dtype=made.dtype)


def own_cells(cells: Any) -> Any:
    """Return an array of objects, with copies of them if any can be changed in place."""
    immutable = {type(cell) for cell in cells} <= IMMUTABLE
    return cells if immutable else objects([copy.deepcopy(cell) for cell in cells])


def with_own_cells(data: Any) -> Any:
    """Return a frame or a series, with copies of the objects in its cells if any can be changed in place."""
    for at, array in enumerate(arrays(data)):
        if array.dtype != object or (made := own_cells(array)) is array:
            continue
        if data.ndim == 1:
            data[:] = made
        else:
            data.isetitem(at, made)
    return data


def without_others(column: Any) -> Any:
    """Return a series without categories, and without memory, of rows that it was taken from."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        own = column.cat.remove_unused_categories()
        if own.cat.ordered:
            return own
        # The order of the others may be that in which they turned up.
        categories = sorted(own.cat.categories, key=lambda value: (type(value).__name__, repr(value)))
        return own.cat.set_categories(pd.Index(categories, dtype=own.cat.categories.dtype))
    if isinstance(column.dtype, pd.ArrowDtype) or getattr(column.dtype, "storage", None) == "pyarrow":
        return pd.Series(pd.array(column.tolist(), dtype=column.dtype), column.index, name=column.name)
    return column


def is_final(parts: list[Any], kinds: set[Any]) -> bool:
    """Tell whether pandas puts drawn columns into a frame as they are, by their dtypes or classes."""
    return kinds <= _final_kinds() and len({len(part) for part in parts}) == 1


@functools.cache
def _final_kinds() -> frozenset[Any]:
    """Return dtypes of arrays, and the class of others, that pandas puts into a frame as they are."""
    return frozenset({*NUMPY_KINDS, _usual_dtypes()[0], pd.Categorical})


class PandasFrames(Tabular):
    """Data frames, or series, of pandas."""

    library = "pandas"

    def columns(self, data: Any) -> list[Any]:
        return [data] if self.form == "series" else [column for _, column in data.items()]

    def dtypes(self, data: Any) -> list[Any]:
        return [array.dtype for array in arrays(data)]  # `dtypes` makes a series, which takes longer

    def index(self, data: Any) -> IndexSchema | None:
        index = data.index
        kind = type(index).__name__
        if kind == "RangeIndex":  # pandas 3 makes one of any evenly spaced integers: ignore that
            kind = "Index"
        if kind == "Index" and index.name is None and index.dtype.kind in "iu":
            return None
        dtypes = tuple(_without_unit(str(level.dtype)) for level in columns.levels(index))
        return IndexSchema(kind, dtypes, tuple(map(str, index.names)))

    def heading(self, data: Any) -> tuple[Any, ...] | None:
        if self.form == "series" or data.columns.names == [None]:
            return None
        return tuple(label(name) for name in data.columns.names)

    def is_same_kind(self, data: Any, drawn: Any) -> bool:
        if self.form == "series" or data.shape[1] != drawn.shape[1]:
            return False
        own, wanted = data.columns, drawn.columns
        # Only names that are strings: 1, 1.0 and True would be equal.
        strings = isinstance(own.dtype, pd.StringDtype) and own.dtype == wanted.dtype and own.is_unique
        if not strings or not own.equals(wanted) or self.heading(data) != self.heading(drawn):
            return False
        # A column's schema depends on its dtype alone.
        return self.dtypes(data) == self.dtypes(drawn) and self.index(data) == self.index(drawn)

    def contents(self, data: Any) -> list[Any]:
        found = super().contents(data)
        if self.index(data) is not None:
            found.append(objects(data.index.tolist()))
        return found

    # -- rows

    def take(self, data: Any, positions: Any) -> Any:
        rows = with_own_cells(data.take(positions))
        if self.index(data) is None:
            rows.index = pd.RangeIndex(len(rows))
        return rows

    def head(self, data: Any, n: int) -> Any:
        return self.take(data, np.arange(len(data))[:n])

    def concat(self, parts: Sequence[Any]) -> Any:
        # Without empty parts, because pandas would let their dtypes change the result's.
        filled = [part for part in parts if len(part)] or [parts[0]]
        return filled[0] if len(filled) == 1 else pd.concat(filled, ignore_index=self.index(parts[0]) is None)

    def copy(self, data: Any) -> Any:
        return with_own_cells(data.copy())

    def rows(self, data: Any, *positions: Any) -> list[Any]:
        parts, indexed = columns.arrays(data), self.index(data) is not None
        found = []
        for at in positions:
            index: Any = pd.RangeIndex(len(self.places(data, at)))
            if indexed:  # from the labels alone: frequencies and unused levels reveal other records
                index = joined(labels_of(data.index[at]), data.index.names)
            cells = [taken(part, at) for part in parts]
            found.append(self.assemble(cells, names_for(data), index))
        return found

    def pair(self, drawn: Any, position: int, n: int) -> tuple[Any, Any]:
        if not is_laid_out(drawn):
            return super().pair(drawn, position, n)
        # The same, faster: block by block, and not column by column.
        one = drawn.iloc[:n].copy()
        other = one.copy()
        for old, new in zip(inside_blocks(drawn), inside_blocks(other), strict=True):
            new[..., position] = old[..., n]
        for made in (one, other):
            made.index, made.columns = pd.RangeIndex(n), own_labels(drawn.columns)
        return one, other

    def with_first(self, data: Any, name: str, values: Array) -> Any:
        cells = [taken(part, slice(None)) for part in columns.arrays(data)]
        return self.assemble([values, *cells], [name, *self.names(data)], pd.RangeIndex(len(values)))

    def isolated(self, data: Any) -> Any:
        made = self.fresh(data)
        parts = [columns.arrays(without_others(column))[0] for column in self.columns(made)]
        index = made.index
        if self.index(made) is not None:
            labels = map(without_others, labels_of(index))
            index = joined(list(labels), index.names)
        return self.assemble(parts, names_for(made), index)

    # -- columns

    def assemble(self, parts: list[Any], names: Any, index: Any = None) -> Any:
        if self.form == "series":
            # pandas infers the dtype of drawn columns; rows that are taken keep their dtype.
            return pd.Series(parts[0], index, None if index is None else parts[0].dtype, names[0], copy=True)
        head = heads(tuple(names)) if isinstance(names, list) else names
        kinds = {part.dtype if type(part) is np.ndarray else type(part) for part in parts}
        if len(kinds) == 1 and kinds <= NUMPY_KINDS.keys():  # in one array: faster to make and to use
            return pd.DataFrame(np.array(parts).T, index, head, copy=False)
        if index is None and is_final(parts, kinds):
            index = pd.RangeIndex(len(parts[0]))
        return build_frame(parts, head, index, numbers=kinds <= NUMPY_KINDS.keys())

    def native(self, values: Any, missing: Array | None, drawn: Any) -> Any:
        dtype = drawn.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            places = codes(values, dtype.categories.tolist())
            return pd.Series(pd.Categorical.from_codes(places, dtype=dtype))
        if isinstance(values, list):
            if isinstance(dtype, np.dtype):  # where pandas marks a missing string by NaN
                values = [np.nan if value is None else value for value in values]
            return pd.Series(values, dtype=dtype)
        series = pd.Series(values)
        if isinstance(dtype, pd.DatetimeTZDtype):
            series = series.dt.tz_localize("UTC").dt.tz_convert(dtype.tz)
        if missing is None or not missing.any() or values.dtype.kind in "mM":
            return series.astype(dtype)
        if values.dtype.kind == "f" and isinstance(dtype, np.dtype):
            return pd.Series(np.where(missing, np.nan, values)).astype(dtype)
        return series.astype(dtype).mask(missing)

    def from_column(self, column: Column) -> Any:
        values, missing = column.values, column.missing
        if column.categories is not None:
            places = values if missing is None else np.where(missing, -1, values)
            if column.plain and column.categories and isinstance(column.categories[0], str):
                return _strings(column.categories).take(places, allow_fill=missing is not None)
            if column.plain:
                return self.from_column(Column(array_of(column.categories)[values], missing))
            typed = tuple((type(value), value) for value in column.categories)  # 1 is not the category True
            return _categories(typed, column.ordered).take(places, allow_fill=missing is not None)
        if values.dtype.kind == "b" and missing is not None:
            return pd.arrays.BooleanArray(values, missing.copy())
        if values.dtype.kind == "M":
            found = column.array().astype("M8[us]" if column.wide else _usual_dtypes()[0])
            if column.zone is None:
                return found
            return pd.Series(found).dt.tz_localize("UTC").dt.tz_convert(column.zone)
        if values.dtype.kind == "U":
            return pd.Series(column.array().astype(object), dtype=_usual_dtypes()[1])
        return column.array()

    def with_column(self, data: Any, at: int, column: Any) -> Any:
        if self.form == "series":
            return pd.Series(column.array, index=data.index, name=data.name)
        made = data.copy()  # a released frame must share nothing with the one from calibration
        made.isetitem(at, column.array)
        return made

    def from_array(self, values: NDArray[Any], schema: FrameSchema) -> Any:
        if self.form == "series" or values.shape[1:] != (len(schema.columns),):
            return super().from_array(values, schema)
        names, levels = [column.name for column in schema.columns], schema.heading or (None,)
        if len(levels) > 1:
            return pd.DataFrame(values, columns=pd.MultiIndex.from_tuples(names, names=levels))
        return pd.DataFrame(values, columns=pd.Index(names, tupleize_cols=False, name=levels[0]))

    # -- private data

    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        index: Any = pd.RangeIndex(len(data))
        indexed = list(drawn.index.names) if self.index(drawn) is not None else []
        ends, width = [support, *[None for _ in indexed]], 1
        if self.form == "frame":
            names = self.names(drawn)
            ends, width = split(support, [*names, *indexed]), len(names)
        if indexed:
            labels = map(labels_of, (data.index, drawn.index))
            made = [self.convert_column(*part) for part in zip(*labels, ends[width:], strict=True)]
            index = joined(made, indexed)
        return self.assemble(_converted(self, data, drawn, ends[:width]), names_for(drawn), index)


def _converted(own: Tabular, data: Any, drawn: Any, ends: list[Any]) -> list[Any]:
    """Return the columns of private data as P would draw them, with a fast path for numpy's numbers."""
    made: list[Any] = []
    for values, wanted, end in zip(columns.arrays(data), columns.arrays(drawn), ends, strict=True):
        numbers = convert_floats(values, wanted, end)
        if numbers is None and is_quick(values.dtype, wanted.dtype, end):
            numbers = convert_numbers(values, wanted.dtype, end)
        made.append(numbers)
    if all(part is not None for part in made):
        return made
    for at, part in enumerate(zip(own.columns(data), own.columns(drawn), ends, strict=True)):
        if made[at] is not None:
            continue
        found = distinct(*part)
        if found is None:
            made[at] = taken(columns.arrays(own.convert_column(*part))[0], slice(None))
        else:
            places, known = found
            made[at] = taken(columns.arrays(own.convert_listed([*known, None], *part[1:]))[0], places)
    return made


def distinct(own: Any, drawn: Any, support: Any) -> tuple[Any, list[Any]] | None:
    """Return the distinct values of categories or strings, and the place of each record's among them.

    A missing value is one after the last. None where values have to be converted one by one.
    """
    if columns.kind_of(drawn) not in ("text", "category", "object") or unwrap(support)[0] is None:
        return None
    array, dtype = columns.arrays(own)[0], own.dtype
    if isinstance(dtype, pd.CategoricalDtype) and len(dtype.categories) < len(own):
        places, known = array.codes, dtype.categories.tolist()
    elif isinstance(dtype, pd.StringDtype):
        places, values = array.factorize()
        known = values.tolist()
    else:
        return None
    return np.where(places < 0, len(known), places), known


def is_quick(own: Any, drawn: Any, support: Any) -> bool:
    """Tell whether numpy's numbers become numpy's numbers, and none has to be marked as missing."""
    inner, _ = unwrap(support)
    arrays = type(inner) is tuple and np.ndarray in map(type, inner)  # their shapes must be checked
    if arrays or not is_numpy_number(own) or not is_numpy_number(drawn):
        return False
    return drawn.kind == "f" or not isinstance(support, Maybe)


@functools.lru_cache(maxsize=256)
def _categories(typed: tuple[tuple[type, Any], ...], ordered: bool) -> Any:
    """Return each category once, in a pandas array from which values are taken by their codes."""
    dtype = pd.CategoricalDtype([value for _, value in typed], ordered=ordered)
    return pd.Categorical.from_codes(np.arange(len(typed)), dtype=dtype)


@functools.lru_cache(maxsize=256)
def _strings(values: tuple[str, ...]) -> Any:
    """Return strings as a pandas array, from which values are taken by their codes."""
    return pd.Series(list(values), dtype=_usual_dtypes()[1]).array


@functools.cache
def _usual_dtypes() -> tuple[Any, Any]:
    """Return the dtypes of dates that were read from strings, and of strings: pandas 3 has changed both."""
    return pd.to_datetime(["2020-01-01"]).dtype, pd.Series(["text"]).dtype


def _without_unit(code: str) -> str:
    """Return the name of a dtype without the unit of dates, since private dates are cast to P's unit."""
    if code.startswith("category"):
        return "category"
    return re.sub(r"^datetime64\[(ns|us|ms|s)", "datetime64[", code)


ADAPTERS = {"DataFrame": PandasFrames("frame"), "Series": PandasFrames("series")}
