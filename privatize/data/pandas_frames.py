"""Data frames and series of pandas."""

# ruff: noqa: D102 - the base class says what a method does

from __future__ import annotations

import contextlib
import copy
import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data.clipping import codes, convert_numbers
from privatize.data.columns import NUMPY_KINDS, Array, Column, array_of, is_numpy_number
from privatize.data.container import IMMUTABLE
from privatize.data.schema import FrameSchema, IndexSchema, label
from privatize.data.support import Maybe, split
from privatize.data.tabular import Tabular


class PandasFrames(Tabular):
    """Data frames, or series, of pandas."""

    library = "pandas"

    def names(self, data: Any) -> list[Any]:
        return [data.name] if self.form == "series" else list(data.columns)

    def columns(self, data: Any) -> list[Any]:
        return [data] if self.form == "series" else [column for _, column in data.items()]

    def dtypes(self, data: Any) -> list[Any]:
        if self.form == "series":
            return [data.dtype]
        known = getattr(getattr(data, "_mgr", None), "get_dtypes", None)  # `dtypes` makes a series of them
        return list(data.dtypes if known is None else known())

    def index(self, data: Any) -> IndexSchema | None:
        index = data.index
        kind = type(index).__name__
        if kind == "RangeIndex":  # pandas 3 makes one of any evenly spaced integers: that must not decide
            kind = "Index"
        if kind == "Index" and index.name is None and index.dtype.kind in "iu":
            return None
        dtypes = tuple(_without_unit(str(level.dtype)) for level in levels(index))
        return IndexSchema(kind, dtypes, tuple(map(str, index.names)))

    def heading(self, data: Any) -> tuple[Any, ...] | None:
        if self.form == "series" or data.columns.names == [None]:
            return None
        return tuple(label(name) for name in data.columns.names)

    def contents(self, data: Any) -> list[Any]:
        found = super().contents(data)
        if self.index(data) is not None:
            made = np.empty(len(data), dtype=object)
            made[:] = data.index.tolist()
            found.append(made)
        return found

    # -- rows

    def take(self, data: Any, positions: Any) -> Any:
        values = _one_array(data)
        bare = not data.attrs and data.flags.allows_duplicate_labels and self.index(data) is None
        if values is None or not bare:
            return self._numbered(_with_own_cells(data.take(positions)), data)
        import pandas as pd

        # The same, faster, and in the same order in memory: sums round as they do in pandas' own rows.
        rows = values[positions] if values.flags.c_contiguous else values.T.take(positions, axis=1).T
        return pd.DataFrame(rows, columns=_own_labels(data.columns), copy=False)

    def head(self, data: Any, n: int) -> Any:
        rows = data.iloc[:n] if copies_on_write() else data.iloc[:n].copy()
        return self._numbered(_with_own_cells(rows), data)

    first = head

    def _numbered(self, rows: Any, data: Any) -> Any:
        """Return rows that are numbered from 0 on, unless their index is a part of the records."""
        index = rows.index
        if (
            type(index).__name__ == "RangeIndex"
            and index.start == 0
            and index.step == 1
            and index.name is None
        ):
            return rows
        if self.index(data) is None:
            import pandas as pd

            rows.index = pd.RangeIndex(len(rows))
        return rows

    def concat(self, parts: Sequence[Any]) -> Any:
        import pandas as pd

        # Without those that are empty, whose dtypes pandas would otherwise let have a say.
        filled = [part for part in parts if len(part)] or [parts[0]]
        return filled[0] if len(filled) == 1 else pd.concat(filled, ignore_index=self.index(parts[0]) is None)

    def copy(self, data: Any) -> Any:
        return _with_own_cells(data.copy())

    def laid_out(self, rows: Any) -> Any:
        return self._bare(rows.copy())  # which joins the blocks of one dtype, and puts them in C order

    def _bare(self, made: Any) -> Any:
        """Return rows in blocks of their own without flags, attributes, frequencies and unused levels."""
        import pandas as pd

        for at, column in enumerate(self.columns(made) if any(map(_is_arrow, self.dtypes(made))) else ()):
            inside = column.array.__arrow_array__() if _is_arrow(column.dtype) else None
            if inside is None or (inside.num_chunks == 1 and not inside.chunk(0).offset):
                continue
            made = self.with_column(made, at, pd.Series(pd.array(column.tolist(), dtype=column.dtype)))
        if made.attrs:
            made.attrs = {}
        if not made.flags.allows_duplicate_labels:
            made.flags.allows_duplicate_labels = True
        if self.index(made) is not None:
            labels = [pd.Series(made.index.get_level_values(at)) for at in range(made.index.nlevels)]
            made.index = _joined(labels, made.index.names)
        elif type(made.index) is not pd.RangeIndex:
            made.index = pd.RangeIndex(len(made))
        return made

    # -- columns

    def assemble(self, parts: list[Any], names: Any) -> Any:
        import pandas as pd

        if self.form == "series":
            return pd.Series(parts[0], name=names[0])
        heads = _heads(tuple(names)) if isinstance(names, list) else names
        if all(type(part) is np.ndarray for part in parts):
            dtypes = {part.dtype for part in parts}
            if len(dtypes) == 1 and dtypes <= NUMPY_KINDS.keys():  # in one array: quicker to make, and to use
                return pd.DataFrame(np.array(parts).T, columns=heads, copy=False)
        frame = pd.DataFrame(dict(enumerate(parts)), copy=False)
        frame.columns = heads
        return frame

    def native(self, values: Any, missing: Array | None, drawn: Any) -> Any:
        import pandas as pd

        dtype = drawn.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            places = codes(values, dtype.categories.tolist())
            return pd.Series(pd.Categorical.from_codes(places, dtype=dtype))
        if isinstance(values, list):
            if isinstance(dtype, np.dtype):  # whose strings are missing as NaN, as pandas reads them
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
        import pandas as pd

        values, missing = column.values, column.missing
        if column.categories is not None:
            places = values if missing is None else np.where(missing, -1, values)
            if column.plain and column.categories and isinstance(column.categories[0], str):
                return _strings(column.categories).take(places, allow_fill=missing is not None)
            if column.plain:
                return self.from_column(Column(array_of(column.categories)[values], missing))
            typed = tuple((type(value), value) for value in column.categories)  # 1 and True are not the same
            return pd.Categorical.from_codes(places, dtype=_category_dtype(typed, column.ordered))
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
        import pandas as pd

        if self.form == "series":
            return pd.Series(column.array, index=data.index, name=data.name)
        made = data.copy(deep=False)
        made.isetitem(at, column.array)
        return made

    def from_array(self, values: NDArray[Any], schema: FrameSchema) -> Any:
        if self.form == "series" or values.shape[1:] != (len(schema.columns),):
            return super().from_array(values, schema)
        import pandas as pd

        names, levels = [column.name for column in schema.columns], schema.heading or (None,)
        if len(levels) > 1:
            return pd.DataFrame(values, columns=pd.MultiIndex.from_tuples(names, names=levels))
        return pd.DataFrame(values, columns=pd.Index(names, tupleize_cols=False, name=levels[0]))

    # -- private data

    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        indexed = list(drawn.index.names) if self.index(drawn) is not None else []
        if self.form == "series":
            ends = [None] * len(indexed)
            made = self.assemble([self.convert_column(data, drawn, support)], [drawn.name])
        else:
            width = len(drawn.columns)
            ends = split(support, [*self.names(drawn), *indexed])
            made = self.assemble(self._converted(data, drawn, ends[:width]), _own_labels(drawn.columns))
            made, ends = made if width else made.reindex(range(len(data))), ends[width:]
        if indexed:
            import pandas as pd

            # From the labels alone: frequencies and unused levels tell of other records.
            own, template = (
                [pd.Series(index.get_level_values(at)) for at in range(index.nlevels)]
                for index in (data.index, drawn.index)
            )
            parts = zip(own, template, ends, strict=True)
            made.index = _joined([self.convert_column(*part) for part in parts], indexed)
        return self._bare(made if _is_laid_out(made) else made.copy())

    def _converted(self, data: Any, drawn: Any, ends: list[Any]) -> list[Any]:
        """Return the columns of a private frame as P would draw them: of numpy's numbers quickly."""
        parts = list(zip(arrays(data), self.dtypes(drawn), ends, strict=True))
        made = [convert_numbers(*part) if is_quick(part[0].dtype, *part[1:]) else None for part in parts]
        if all(part is not None for part in made):
            return made
        others = zip(made, self.columns(data), self.columns(drawn), ends, strict=True)
        return [self.convert_column(*rest) if part is None else part for part, *rest in others]

    def convert_column(self, own: Any, drawn: Any, support: Any) -> Any:
        made = super().convert_column(own, drawn, support)
        if made is not own:
            return made
        made = _with_own_cells(own.reset_index(drop=True).copy())
        made.attrs = {}
        return made


def levels(index: Any) -> list[Any]:
    """Return the levels of an index, or the index itself as the only one."""
    return list(index.levels) if hasattr(index, "levels") else [index]


def _joined(labels: list[Any], names: Any) -> Any:
    import pandas as pd

    if len(labels) > 1:
        return pd.MultiIndex.from_arrays(labels, names=names)
    return pd.Index(labels[0], name=names[0])


def _without_unit(code: str) -> str:
    """Return what a dtype is, without the unit of dates, which P's is cast to."""
    if code.startswith("category"):
        return "category"
    return re.sub(r"^datetime64\[(ns|us|ms|s)", "datetime64[", code)


def _one_array(data: Any) -> Array | None:
    """Return the array that a frame is, where it is one of numbers, without copying; or else None."""
    blocks: Any = getattr(getattr(data, "_mgr", None), "blocks", ())
    if len(blocks) != 1 or data.ndim != 2 or not is_numpy_number(blocks[0].dtype):
        return None
    found: Array = data.to_numpy()
    return found


def arrays(data: Any) -> list[Any]:
    """Return what the columns of a frame are in, without copying: faster than series of them."""
    each = getattr(data, "_iter_column_arrays", None)
    if each is not None:
        return list(each())
    return [own.to_numpy() if is_numpy_number(own.dtype) else own.array for _, own in data.items()]


@functools.cache
def copies_on_write() -> bool:
    """Tell whether what is written into a part of a pandas object stays out of the whole one."""
    import pandas as pd

    return int(pd.__version__.partition(".")[0]) >= 3


def _with_own_cells(data: Any) -> Any:
    """Return a frame or a series whose cells are its own too, if they can be changed in place."""
    blocks = getattr(getattr(data, "_mgr", None), "blocks", None)  # columns of one dtype: quicker to look at
    if blocks is not None and not any(block.dtype == object for block in blocks):
        return data
    for at, column in enumerate([data] if data.ndim == 1 else [column for _, column in data.items()]):
        if column.dtype != object or {type(cell) for cell in column} <= IMMUTABLE:
            continue
        made = np.empty(len(column), dtype=object)
        made[:] = [copy.deepcopy(cell) for cell in column]
        if data.ndim == 1:
            data[:] = made
        else:
            data.isetitem(at, made)
    return data


def _is_laid_out(rows: Any) -> bool:
    """Tell whether an object has one block for each of numpy's dtypes, in C order."""
    blocks = [block for block in getattr(rows._mgr, "blocks", ()) if isinstance(block.dtype, np.dtype)]
    flags = [np.asarray(block.values).flags for block in blocks]
    return len({block.dtype for block in blocks}) == len(blocks) and all(
        flag.c_contiguous and flag.writeable for flag in flags
    )


def _is_arrow(dtype: Any) -> bool:
    return type(dtype).__name__ == "ArrowDtype" or getattr(dtype, "storage", None) == "pyarrow"


def is_quick(own: Any, drawn: Any, support: Any) -> bool:
    """Tell whether numpy's numbers become numpy's numbers, without a mark for missing ones."""
    if not is_numpy_number(own) or not is_numpy_number(drawn):
        return False
    return drawn.kind == "f" or not isinstance(support, Maybe)


def _own_labels(labels: Any) -> Any:
    """Return the names of columns for another frame: what is written into one stays there."""
    return labels.view() if _is_read_only(labels.dtype) else labels.copy(deep=True)


@functools.cache
def _is_read_only(dtype: Any) -> bool:
    """Tell whether pandas keeps everybody from writing into an index: from 3.1 on, of some strings."""
    import pandas as pd

    if not isinstance(dtype, pd.StringDtype):
        return False
    made = pd.Index(["a"], dtype=dtype)
    for own in (made.array, made.values, made.to_numpy(), np.asarray(made)):
        with contextlib.suppress(ValueError):
            own[0] = "b"
    return bool(made[0] == "a")


def _heads(names: tuple[Any, ...]) -> Any:
    """Return the names of drawn columns as an index: making one costs as much as all else in a frame."""
    import pandas as pd

    if not all(type(name) is str for name in names):
        return pd.Index(names, tupleize_cols=False)
    return _own_labels(_known_heads(names))


@functools.lru_cache(maxsize=256)
def _known_heads(names: tuple[str, ...]) -> Any:
    import pandas as pd

    made = pd.Index(names)
    made.get_indexer(made)  # where each is, now and not in one of several threads
    return made


@functools.lru_cache(maxsize=256)
def _category_dtype(typed: tuple[tuple[type, Any], ...], ordered: bool) -> Any:
    import pandas as pd

    return pd.CategoricalDtype([value for _, value in typed], ordered=ordered)


@functools.lru_cache(maxsize=256)
def _strings(values: tuple[str, ...]) -> Any:
    """Return strings as an array of pandas', from which they are taken by code."""
    import pandas as pd

    return pd.Series(list(values), dtype=_usual_dtypes()[1]).array


@functools.cache
def _usual_dtypes() -> tuple[Any, Any]:
    """Return the dtypes of dates that were read from strings, and of strings: pandas 3 has changed both."""
    import pandas as pd

    return pd.to_datetime(["2020-01-01"]).dtype, pd.Series(["text"]).dtype
