"""What data frames and series of all libraries have in common: columns with names, dtypes and values.

Columns go through narwhals. Rows are taken with each library's own functions: that happens for every sampled
pair, and narwhals would take longer than the work itself.
"""

# ruff: noqa: ARG002, D102 - the base class says what a method takes and does

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import clipping, columns
from privatize.data.columns import Array, Column
from privatize.data.container import Container, of_schema
from privatize.data.schema import ColumnSchema, FrameSchema, IndexSchema, Schema, label
from privatize.data.support import Maybe, coordinate, split
from privatize.errors import DataError


class Columnar(Container):
    """The frames, or the series, of a library: the methods in which libraries differ."""

    library: str

    def __init__(self, form: str) -> None:
        self.form = form  # "frame" or "series"

    def names(self, data: Any) -> list[Any]:
        """Return the names of a frame's columns, or a series' own."""
        return [data.name] if self.form == "series" else list(data.columns)

    @abstractmethod
    def columns(self, data: Any) -> list[Any]:
        """Return the columns of a frame, or a series as the only one."""

    @abstractmethod
    def assemble(self, parts: list[Any], names: Any) -> Any:
        """Return columns of this library as a frame, or the only one as a series."""

    @abstractmethod
    def native(self, values: Any, missing: Array | None, drawn: Any) -> Any:
        """Return values, in UTC if they are times, as a column with the dtype of a drawn one."""

    @abstractmethod
    def from_column(self, column: Column) -> Any:
        """Return a drawn column as one of this library."""

    def make(self, table: Mapping[Any, Column]) -> Any:
        """Return drawn columns as a frame."""
        return self.assemble([self.from_column(column) for column in table.values()], list(table))

    def with_column(self, data: Any, at: int, column: Any) -> Any:
        """Return a frame or a series with another column at a place."""
        parts = self.columns(data)
        parts[at] = column
        return self.assemble(parts, self.names(data))

    def with_first(self, data: Any, name: str, values: Array) -> Any:
        """Return a copy of a frame with one more column of integers, in first place."""
        parts = [self.from_column(Column(values)), *self.columns(data)]
        return self.assemble(parts, [name, *self.names(data)])

    @abstractmethod
    def rows(self, data: Any, *positions: Any) -> list[Any]:
        """Return rows at positions, or slices, as new frames without the chunks and attributes of `data`."""

    def places(self, data: Any, at: Any) -> Any:
        """Return positions, or a slice, as positions."""
        return np.arange(len(data))[at] if type(at) is slice else at

    def dtypes(self, data: Any) -> list[Any]:
        """Return the dtypes of the columns."""
        return [columns.dtype_of(column) for column in self.columns(data)]

    def index(self, data: Any) -> IndexSchema | None:
        """Return what the index is, or None if it only numbers the rows."""
        return None

    def heading(self, data: Any) -> tuple[Any, ...] | None:
        """Return the names of the levels of the columns, if they have any."""
        return None

    def contents(self, data: Any) -> list[Any]:
        """Return the columns as arrays, and an index that is a part of the records as one more."""
        return [columns.array_of_column(column) for column in self.columns(data)]


class Tabular(Columnar):
    """The frames, or the series, of a library: the methods that are the same for all."""

    def record(self, data: Any, at: int) -> Any:
        return self.take(data, np.array([at])) if self.form == "frame" else data[at]

    def fresh(self, data: Any) -> Any:
        return self.rows(data, slice(None))[0]

    def pair(self, drawn: Any, position: int, n: int) -> tuple[Any, Any]:
        positions = np.arange(n)
        positions[position] = n
        one, other = self.rows(drawn, slice(n), positions)
        return one, other

    def kinds(self, data: Any, dtypes: list[Any] | None = None) -> list[str]:
        """Return what the columns hold; `dtypes` are theirs, if they are known."""
        found = [columns.known_kind(dtype) for dtype in (self.dtypes(data) if dtypes is None else dtypes)]
        if None in found:  # columns take longer to get than dtypes
            return [columns.kind_of(column) for column in self.columns(data)]
        return found  # type: ignore[return-value]

    def describe(self, data: Any) -> FrameSchema:
        labels, dtypes = [label(name) for name in self.names(data)], self.dtypes(data)
        kinds = self.kinds(data, dtypes)
        zones: list[str | None] = [None] * len(kinds)
        if "date" in kinds:
            parts = zip(self.columns(data), kinds, strict=True)
            zones = [columns.zone_of(column) if kind == "date" else None for column, kind in parts]
        if len(set(map(repr, labels))) < len(labels):
            raise DataError("The dataset has two columns of the same name. Rename one.")
        found = tuple(map(ColumnSchema, labels, map(columns.code_of, dtypes, kinds), kinds, zones))
        return FrameSchema(self.form, self.library, found, self.index(data), self.heading(data))

    def comparable(self, data: Any) -> Any:
        return [self.describe(data), *self.contents(data)]

    def alike(self, one: Any, other: Any) -> bool:
        both = zip(self.columns(one), self.columns(other), strict=False)
        return self.describe(one) == self.describe(other) and all(columns.same_dtype(*each) for each in both)

    # -- to and from arrays

    def cast(self, drawn: Any, schema: Schema) -> Any:
        """Cast a series to whatever an array can be cast to; a frame stays what it is."""
        same = isinstance(schema, FrameSchema) and schema.library == self.library
        if self.form == "frame" or same or schema.container[1] in ("DataFrame", "Table"):
            return drawn
        return of_schema(schema).from_array(self.to_array(drawn), schema)

    def to_array(self, drawn: Any) -> Any:
        return self.contents(drawn)[0]

    def from_array(self, values: NDArray[Any], schema: FrameSchema) -> Any:
        if values.shape[1:] != (() if self.form == "series" else (len(schema.columns),)):
            return values
        if self.form == "series":
            made = [self.from_column(columns.stable_column(values, schema.columns[0].kind))]
        else:
            made = [self.from_column(Column(values[:, at])) for at in range(values.shape[1])]
        return self.assemble(made, [column.name for column in schema.columns])

    def convert_by_array(self, data: Any, drawn: NDArray[Any], support: Any) -> Any:
        # As arrays, because P's arrays cannot mark values as missing, and a column might.
        found = [columns.values_of(column) for column in self.columns(data)]
        width = len(found)
        ends = (
            [support] if self.form == "series" else [coordinate(support, (width,), at) for at in range(width)]
        )
        parts = zip(found, ends, strict=True)
        made = [clipping.convert_values(own[0], drawn.dtype, end, own[1]) for own, end in parts]
        if self.form == "series":
            values = made[0]
        else:
            values = np.column_stack(made) if made else np.empty((len(data), 0), drawn.dtype)
        return self.fresh(self.from_array(values, self.describe(data)))

    # -- private data

    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        names = self.names(drawn)
        ends = [support] if self.form == "series" else split(support, names)
        parts = zip(self.columns(data), self.columns(drawn), ends, strict=True)
        return self.fresh(self.assemble([self.convert_column(*part) for part in parts], names))

    def convert_column(self, own: Any, drawn: Any, support: Any) -> Any:
        """Return one private column as P would draw it."""
        kind = columns.kind_of(drawn)
        if kind == "other" and not columns.same_dtype(own, drawn):
            raise DataError("""A column has an unusual dtype, which is not the dtype that the sampler draws.
                Convert it, or have the sampler draw what it is.""")
        if kind == "other" or (support is None and columns.same_dtype(own, drawn, categories=False)):
            return own
        values, missing = columns.values_of(own)
        if kind not in ("text", "category", "object"):
            return self._convert_ordered(values, missing, drawn, support)
        # With None for missing values: the number that fills a gap in `values` may be a category.
        return self.convert_listed(clipping.with_none(values.tolist(), missing), drawn, support)

    def convert_listed(self, values: list[Any], drawn: Any, support: Any) -> Any:
        """Return strings, or values of any kind, as a column that P would draw."""
        listed = clipping.convert_choices(values, support)
        if columns.kind_of(drawn) == "text":
            listed = [value if isinstance(value, str) else None for value in listed]
        return self.native(listed, None, drawn)

    def _convert_ordered(self, values: Array, missing: Array | None, drawn: Any, support: Any) -> Any:
        """Return numbers, dates or durations as a column that P would draw."""
        moments = columns.kind_of(drawn) in ("date", "duration")
        dtype = columns.moments_of(drawn).dtype if moments else columns.numpy_dtype(drawn)
        found = clipping.convert_values(values, dtype, support, missing)
        if moments:
            return self.native(found, np.isnat(found), drawn)
        # Missing values stay if P draws them, or if the support is unknown and the column can mark them.
        nullable = not isinstance(columns.dtype_of(drawn), np.dtype)
        if not (isinstance(support, Maybe) or (support is None and nullable)):
            return self.native(found, None, drawn)
        absent = np.zeros(len(found), dtype=bool) if missing is None else missing
        if dtype.kind != "f" and values.dtype.kind == "f":
            absent = absent | np.isnan(values)
        return self.native(found, absent, drawn)
