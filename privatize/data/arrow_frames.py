"""Tables of pyarrow."""

# ruff: noqa: D102 - the base class says what a method does

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from privatize.data.clipping import codes
from privatize.data.columns import DAYS, Array, Column
from privatize.data.tabular import Tabular


class ArrowTables(Tabular):
    """Tables of pyarrow, which cannot be changed in place."""

    library = "pyarrow"

    def names(self, data: Any) -> list[Any]:
        return list(data.column_names)

    def columns(self, data: Any) -> list[Any]:
        return list(data.columns)

    def take(self, data: Any, positions: Any) -> Any:
        return data.take(positions)

    def concat(self, parts: Sequence[Any]) -> Any:
        return pa.concat_tables(list(parts))

    def copy(self, data: Any) -> Any:
        return data

    def rows(self, data: Any, *positions: Any) -> list[Any]:
        batches = data.to_batches()
        if len(batches) == 1:  # the same, faster: its columns are no chunks, which have to be combined
            data = batches[0]
        taken = [data.take(pa.array(self.places(data, at))).columns for at in positions]
        names = data.schema.names
        if len(batches) == 1:
            return [self.assemble(parts, names) for parts in taken]
        return [self.assemble([one.combine_chunks() for one in parts], names) for parts in taken]

    def isolated(self, data: Any) -> Any:
        return self.assemble([_isolated(column) for column in data.columns], data.column_names)

    def assemble(self, parts: list[Any], names: Any) -> Any:
        return pa.Table.from_arrays(parts, list(names))

    def native(self, values: Any, missing: Array | None, drawn: Any) -> Any:
        if pa.types.is_dictionary(drawn.type):
            known = drawn.combine_chunks().dictionary.to_pylist()
            places = [None if code < 0 else code for code in codes(values, known)]
            inside = pa.array(known, type=drawn.type.value_type)
            indices = pa.array(places, type=drawn.type.index_type)
            return pa.DictionaryArray.from_arrays(indices, inside, ordered=drawn.type.ordered)
        return pa.array(values, mask=missing, from_pandas=False).cast(drawn.type)

    def from_column(self, column: Column) -> Any:
        values, missing = column.values, column.missing
        if column.categories is not None:
            found = pa.array(values.astype(np.int32), mask=missing)
            texts = all(type(value) is str for value in column.categories)
            inside = _texts(column.categories) if texts else pa.array(list(column.categories))
            if column.plain:
                return inside.take(found)
            return pa.DictionaryArray.from_arrays(found, inside, ordered=column.ordered)
        if values.dtype.kind == "M" and values.dtype != DAYS:
            moments = pa.array(values.astype("M8[us]"), mask=missing)
            return moments.cast(pa.timestamp("us", tz=column.zone))
        return pa.array(values.astype(object) if values.dtype.kind == "U" else values, mask=missing)

    def with_column(self, data: Any, at: int, column: Any) -> Any:
        return data.set_column(at, data.column_names[at], column)


@functools.lru_cache(maxsize=256)
def _texts(values: tuple[str, ...]) -> Any:
    return pa.array(list(values))


def _isolated(column: Any) -> Any:
    """Return a column made of Python's values: one that was taken has memory and categories of others."""
    kind = column.type
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):  # Python has no nanoseconds
        inside = pa.int64() if kind.bit_width == 64 else pa.int32()
        return pa.array(column.cast(inside).to_pylist(), inside).cast(kind)
    return pa.array(column.to_pylist(), kind)


ADAPTERS = {"Table": ArrowTables("frame")}
