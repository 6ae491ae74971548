"""Data frames and series of polars."""

# ruff: noqa: D102 - the base class says what a method does

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from privatize.data.columns import DAYS, NUMPY_KINDS, Array, Column, array_of, kind_of
from privatize.data.tabular import Tabular


class PolarsFrames(Tabular):
    """Data frames, or series, of polars."""

    library = "polars"

    def columns(self, data: Any) -> list[Any]:
        return [data] if self.form == "series" else list(data.get_columns())

    def concat(self, parts: Sequence[Any]) -> Any:
        return pl.concat(list(parts))

    def copy(self, data: Any) -> Any:
        return data.clone()

    def rows(self, data: Any, *positions: Any) -> list[Any]:
        found = [data[self.places(data, at)] for at in positions]
        for at, column in enumerate(self.columns(data)):
            if column.dtype == pl.Categorical:  # so that codes do not depend on earlier data
                texts = [self.columns(rows)[at].cast(pl.String).cast(column.dtype) for rows in found]
                found = [
                    self.with_column(*part) for part in zip(found, [at] * len(found), texts, strict=True)
                ]
        return found

    def isolated(self, data: Any) -> Any:
        return self.assemble([_isolated(column) for column in self.columns(data)], self.names(data))

    def assemble(self, parts: list[Any], names: Any) -> Any:
        if self.form == "series":
            return parts[0].rename(names[0])
        if "" in names:  # in a list it would stand for no name
            return pl.DataFrame(dict(zip(names, parts, strict=True)))
        both = zip(names, parts, strict=True)
        return pl.DataFrame([part if part.name == name else part.alias(name) for name, part in both])

    def make(self, table: Mapping[Any, Column]) -> Any:
        # With names from the start: series get others in as much time as they are made in.
        return self.assemble([self.from_column(column, name) for name, column in table.items()], list(table))

    def native(self, values: Any, missing: Array | None, drawn: Any) -> Any:
        if isinstance(values, list):
            dtype = pl.String if kind_of(drawn) != "object" else None
            return pl.Series(values, dtype=dtype).cast(drawn.dtype, strict=False)
        made = _series(values, missing, getattr(drawn.dtype, "time_zone", None))
        return made if made.dtype == drawn.dtype else made.cast(drawn.dtype)

    def from_column(self, column: Column, name: str = "") -> Any:
        values, missing = column.values, column.missing
        if missing is None and column.categories is None and values.dtype in NUMPY_KINDS:
            return _numbers(values, name)
        if column.categories is not None:
            if all(type(value) is str for value in column.categories):
                codes = values if missing is None else np.where(missing, len(column.categories), values)
                known = _categories(column.categories, column.plain, name)
                return known[_numbers(codes.astype(np.uint32))]
            values = array_of(column.categories)[values]
        if values.dtype.kind == "M" and values.dtype != DAYS:
            values = values.astype("M8[us]")
        return _series(values, missing, column.zone, name)


@functools.lru_cache(maxsize=256)
def _categories(values: tuple[str, ...], plain: bool, name: str) -> Any:
    """Return strings, and a missing one, as a column from which values are taken by their codes."""
    return pl.Series(name, [*values, None], dtype=pl.String if plain else pl.Enum(values))


def _isolated(column: Any) -> Any:
    """Return a column made of Python's values: one that was taken has memory and categories of others."""
    if column.dtype.is_temporal():  # by its integers, since Python has no nanoseconds
        inside = column.to_physical()
        return pl.Series(column.name, inside.to_list(), inside.dtype).cast(column.dtype)
    dtype, values = column.dtype, column.to_list()
    if isinstance(dtype, pl.Enum):
        own = set(values)
        dtype = pl.Enum([value for value in dtype.categories if value in own])
    return pl.Series(column.name, values, _without_enums(dtype) if dtype.is_nested() else dtype)


def _without_enums(dtype: Any) -> Any:
    """Return a dtype inside a list or a struct with strings in place of enums, which show all categories."""
    if isinstance(dtype, pl.Struct):
        return pl.Struct({each.name: _without_enums(each.dtype) for each in dtype.fields})
    if isinstance(dtype, pl.List):
        return pl.List(_without_enums(dtype.inner))
    if isinstance(dtype, pl.Array):
        return pl.Array(_without_enums(dtype.inner), dtype.size)
    return pl.String() if isinstance(dtype, pl.Enum) else dtype


def _series(values: Array, missing: Array | None, zone: str | None, name: str = "") -> Any:
    if values.dtype.kind in "UO":
        made = pl.Series(name, values.tolist(), dtype=pl.String if values.dtype.kind == "U" else None)
    elif values.dtype == DAYS:  # the same, faster: NaT is beyond all days, so it becomes missing
        made = _numbers(values.view(np.int64), name).cast(pl.Date, strict=False)
    else:
        made = _numbers(values, name)
    if missing is not None and missing.any():
        made = made.zip_with(pl.Series(~missing), pl.Series([None], dtype=made.dtype))
    return made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else made


def _numbers(values: Array, name: str = "") -> Any:
    """Return an array as `pl.Series` does, but without its checks, which take most of the time."""
    usual = values.dtype in NUMPY_KINDS and values.ndim == 1 and values.flags.carray
    build = _constructor(values.dtype) if usual else None
    return pl.Series(name, values) if build is None else build(name, values)


@functools.cache
def _constructor(dtype: np.dtype[Any]) -> Callable[[str, Array], Any] | None:
    """Return what `pl.Series` does with numbers of a dtype in the end, if this version of polars has it."""
    own = getattr(type(getattr(pl.Series(), "_s", None)), f"new_{dtype.kind}{8 * dtype.itemsize}", None)
    wrap = getattr(pl.Series, "_from_pyseries", None)
    if own is None or wrap is None:
        return None

    def build(name: str, values: Array) -> Any:
        return wrap(own(name, values, False))

    some = np.arange(3).astype(dtype)
    try:
        return build if build("", some).equals(pl.Series(some), check_dtypes=True) else None
    except TypeError:
        return None


ADAPTERS = {"DataFrame": PolarsFrames("frame"), "Series": PolarsFrames("series")}
