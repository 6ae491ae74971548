"""Columns of data frames: what they hold, their values as arrays, and drawn ones before a frame is made.

Columns of all libraries go through narwhals, which supports them all.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data.clipping import is_missing, objects, with_none

Array = NDArray[Any]
# Dtypes of numpy's numbers and what they hold: several columns of a pandas frame can share one array of them.
NUMPY_KINDS = {np.dtype("?"): "bool", np.dtype("f4"): "float", np.dtype("f8"): "float"}
NUMPY_KINDS |= dict.fromkeys(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")), "int")
DAYS = np.dtype("M8[D]")
_SPELLED = {dtype: str(dtype) for dtype in NUMPY_KINDS}
# What columns of narwhals' dtypes hold; a dtype that is not listed is "other", which is never converted.
_KINDS = {"Boolean": "bool", "String": "text", "Categorical": "category", "Enum": "category"}
_KINDS |= {"Datetime": "date", "Date": "date", "Duration": "duration", "Float32": "float", "Float64": "float"}
_KINDS |= {f"{sign}Int{bits}": "int" for sign in ("", "U") for bits in (8, 16, 32, 64)}
_CATEGORIES = ("CategoricalDtype", "Categorical", "Enum", "DictionaryType")
# Caches by native dtype, without those that have categories or a fill value, which may be private.
_known_kinds: dict[Any, str] = {}
_known_dtypes: dict[Any, np.dtype[Any]] = {}


def narwhals(column: Any) -> Any:
    """Return a column of any library as a narwhals series."""
    import narwhals as nw

    return nw.from_native(column, series_only=True)


def arrays(data: Any) -> list[Any]:
    """Return the arrays of a pandas frame's columns, or of a series: faster than series, without copies."""
    if data.ndim == 1:
        bare = isinstance(data.dtype, np.dtype) and data.dtype.kind not in "mM"
        return [data.to_numpy() if bare else data.array]
    each = getattr(data, "_iter_column_arrays", None)
    return [arrays(own)[0] for _, own in data.items()] if each is None else list(each())


def levels(index: Any) -> list[Any]:
    """Return the levels of a pandas index, or the index itself as the only one."""
    return list(index.levels) if hasattr(index, "levels") else [index]


def dtype_of(column: Any) -> Any:
    """Return a column's dtype, as its library has it."""
    return column.dtype if hasattr(column, "dtype") else column.type


def is_numpy_number(dtype: Any) -> bool:
    """Tell whether a dtype is one of numpy's numbers or booleans."""
    return isinstance(dtype, np.dtype) and dtype in NUMPY_KINDS


def kind_of(column: Any) -> str:
    """Return what a column holds, by its dtype alone, never by its values."""
    dtype = dtype_of(column)
    found = known_kind(dtype)
    if found is None:
        native = narwhals(column).dtype
        name = native.__name__ if isinstance(native, type) else type(native).__name__
        found = "object" if str(dtype) == "object" else _KINDS.get(name, "other")
        _known_kinds[dtype] = found
    return found


def known_kind(dtype: Any) -> str | None:
    """Return what columns of a dtype hold, if that is known without a column."""
    if is_numpy_number(dtype):
        return NUMPY_KINDS[dtype]
    name = type(dtype).__name__
    if name in _CATEGORIES:
        return "category"
    return "other" if name == "SparseDtype" else _known_kinds.get(dtype)


def code_of(dtype: Any, kind: str) -> str:
    """Return a dtype as a string, without any values: categories may be taken from the data."""
    if is_numpy_number(dtype):
        return _SPELLED[dtype]
    if kind == "category":
        return f"category of {'numbers' if _has_numbers(dtype) else 'texts'}"
    text = str(dtype)
    if text.startswith("Sparse"):  # the full name has the fill value in it
        return "Sparse"
    return text if kind != "other" or len(text) < 40 else type(dtype).__name__


def _has_numbers(dtype: Any) -> bool:
    """Tell whether the categories of a dtype are numbers."""
    if hasattr(dtype, "value_type"):
        return str(dtype.value_type) not in ("string", "large_string", "string_view")
    inside: Any = getattr(dtype, "categories", ())
    kind = getattr(getattr(inside, "dtype", None), "kind", "O")
    return kind in "iufb" and len(inside) > 0


def zone_of(column: Any) -> str | None:
    """Return the time zone of a column."""
    found: str | None = getattr(narwhals(column).dtype, "time_zone", None)
    return found


def numpy_dtype(column: Any) -> np.dtype[Any]:
    """Return numpy's dtype for a column of numbers or booleans."""
    dtype = dtype_of(column)
    found = _known_dtypes.get(dtype)
    if found is None:
        name = str(narwhals(column).dtype).lower()
        found = _known_dtypes[dtype] = np.dtype("bool" if name == "boolean" else name)
    return found


def same_dtype(one: Any, other: Any, *, categories: bool = True) -> bool:
    """Tell whether two columns have the same dtype; without `categories`, never for categorical ones."""
    return bool(dtype_of(one) == dtype_of(other)) and (categories or kind_of(one) != "category")


def moments_of(column: Any) -> Array:
    """Return dates, times in UTC, or durations as an array."""
    series = narwhals(column)
    if isinstance(getattr(series.dtype, "time_zone", None), str):
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    values: Array = series.to_numpy()
    if values.dtype.kind == "O":  # pyarrow's dates in pandas
        values = np.array([None if is_missing(day) else day for day in values], dtype="M8[us]")
    return values


def values_of(column: Any) -> tuple[Array, Array | None]:
    """Return a column's values, and which are missing beyond NaN, NaT and None.

    The dtype of the values depends on the column's dtype alone, not on what is missing.
    """
    dtype, kind = dtype_of(column), kind_of(column)
    if isinstance(dtype, np.dtype) and dtype.kind in "biufmM":
        return column.to_numpy(), None
    if kind in ("date", "duration"):
        return moments_of(column), None
    numeric = kind in ("int", "float", "bool")
    if numeric and type(column).__module__.startswith("polars") and not column.null_count():
        return np.array(column.to_numpy()), np.zeros(len(column), dtype=bool)  # much faster
    if kind == "category" and hasattr(dtype, "value_type"):  # pyarrow lists categories one by one
        column = column.cast(dtype.value_type)
    series = narwhals(column)
    if not numeric:
        return objects(_without_scalars(series.to_list())), None
    missing = series.is_null().to_numpy()
    filled = series.fill_null(False if kind == "bool" else 0) if missing.any() else series
    return filled.to_numpy().astype(numpy_dtype(column)), missing


def _without_scalars(listed: list[Any]) -> list[Any]:
    """Return a list with Python's values in place of numpy's."""
    if any(issubclass(kind, np.generic) for kind in set(map(type, listed))):
        return [value.item() if isinstance(value, np.generic) else value for value in listed]
    return listed


def array_of_column(column: Any) -> Any:
    """Return a column of anything as an array: NaN, NaT or None where a value is missing."""
    values, missing = values_of(column)
    return Column(values, missing if missing is not None and missing.any() else None).array()


@dataclass(slots=True)  # not frozen, since many are made for every dataset, and that takes twice as long
class Column:
    """A drawn column before it becomes part of a frame.

    Attributes
    ----------
    values : array
        The values, or their codes if there are categories.
    missing : array or None
        Which of them are missing.
    categories : tuple or None
        What the codes stand for, if the values are codes.
    plain : bool
        Whether the frame gets the values themselves, not a column of a categorical dtype.
    ordered : bool
        Whether the categories have an order.
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

    def having(self, values: Array, missing: Array | None) -> "Column":
        """Return the same column with other values, or codes; faster than `dataclasses.replace`."""
        return Column(values, missing, self.categories, self.plain, self.ordered, self.zone, self.wide)

    def array(self) -> Array:
        """Return the column as an array: NaN, NaT or None where a value is missing."""
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

    def listed(self) -> list[Any]:
        """Return the column as a list of Python values."""
        if self.categories is not None:
            return with_none([*map(self.categories.__getitem__, self.values.tolist())], self.missing)
        if self.values.dtype.kind in "iub":  # they stay integers even if some are missing
            return with_none(self.values.tolist(), self.missing)
        array = self.array()
        if array.dtype.kind == "M" and (array.dtype != DAYS or self.zone is not None):
            array = array.astype("M8[us]")
        found: list[Any] = array.tolist()
        if self.zone is not None:
            from zoneinfo import ZoneInfo

            zone = ZoneInfo(self.zone)
            return [moment and moment.replace(tzinfo=dt.UTC).astimezone(zone) for moment in found]
        if array.dtype.kind == "f":
            return with_none(found, np.isnan(array))
        return [None if is_missing(value) else value for value in found] if array.dtype.kind == "O" else found


def array_of(values: Sequence[Any]) -> Array:
    """Return values as an array: of numbers, of strings, or of objects if they are mixed."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {int, float, bool, str}:
        return np.array(values)
    if kinds == {int, float}:
        return np.array(values, dtype=np.float64)
    return objects(values)


def stable_column(array: Array, kind: str) -> Column:
    """Return a drawn array as a column whose dtype depends on the private column's kind, not on values."""
    if array.dtype.kind != "O" or kind not in ("bool", "text", "object", "category"):
        return Column(array)
    missing = np.array([is_missing(value) for value in array.tolist()], dtype=bool)
    filled = np.where(missing, False, array).astype(bool) if kind == "bool" else None
    return Column(np.where(missing, "", array).astype(str) if filled is None else filled, missing)
