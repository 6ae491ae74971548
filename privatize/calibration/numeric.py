"""Records, and what functions return for them, as arrays of numbers.

What becomes of a record never depends on the others in the same dataset, except that a dataset may be refused
because of one of its records.
"""

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames
from privatize.data.columns import values_of
from privatize.errors import DataError, OutputError

Array = NDArray[Any]
Keys = tuple[Any, ...] | None


class NoRowsError(OutputError):
    """A function returned one number, where it must return one number or row for each record."""


def numeric(data: Any, keys: Keys = None) -> Array:
    """Return a frame, aligned columns, or anything like an array, with one entry or row for each record.

    Objects become floats, with NaN where one is missing, if all are numbers. `keys` are the names of the
    columns that are used; by default all are.

    Examples
    --------
    >>> numeric({"age": [30, None], "height": [1.7, 1.8], "name": ["a", "b"]}, ("height", "age"))
    array([[ 1.7, 30. ],
           [ 1.8,  nan]])
    """
    form = frames.kind(data)
    framed = form is not None and form[0] == "frame"
    if not framed and not isinstance(data, dict):
        return _real(np.asarray(data))
    if keys is None:
        # Without the index of a pandas frame.
        parts = frames.contents(data)[: len(frames.columns(data))] if framed else list(data.values())
    else:
        missing = [key for key in keys if key not in (frames.names(data) if framed else data)]
        if missing:
            raise DataError(f"There is no column {missing[0]!r}, which bounds= names.")
        parts = [data[key] for key in keys]
    return _real(np.column_stack([np.asarray(part) for part in parts]))


def _real(values: Array) -> Array:
    """Return objects as floats; as they are, if one of them is no number."""
    if values.dtype.kind != "O":
        return values
    try:
        return np.array([*map(as_real, values.ravel().tolist())], dtype=np.float64).reshape(values.shape)
    except Exception:  # an object may do anything if it is asked for its number
        return values


def unmixed(data: Any) -> tuple[Array, Array]:
    """Return an entry for each record that the others have not changed, and which of them are missing.

    One array of a list, or of a column in which something is missing, may be of floats: then 2**53 + 1 beside
    0.5, or beside None, is another number than alone.

    Examples
    --------
    >>> unmixed([2**53 + 1, 0.5])[0]
    array([9007199254740993, 0.5], dtype=object)
    """
    form, missing = frames.kind(data), None
    if form is not None and form[0] == "series":
        values, missing = values_of(data)
    elif isinstance(data, list):
        values = np.fromiter(data, dtype=object, count=len(data))
    else:
        values = np.asarray(data)
    return values, np.zeros(len(values) if values.ndim else 0, dtype=np.bool_) if missing is None else missing


def as_real(value: Any) -> float:
    """Return a number as a float, and NaN for a missing one; or raise, if it is something else."""
    if value is None or type(value).__name__ == "NAType":
        return math.nan
    if not isinstance(value, Real | Decimal | np.bool_):
        raise TypeError
    return float(value)


def numbers(data: Any, what: str, keys: Keys = None) -> Array:
    """Return numeric records as floats: of shape (n,), or (n, d)."""
    values = numeric(data, keys)
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2):
        raise DataError(f"""{what} takes numbers: an array of shape (n,) or (n, d), a series, a list, or a
            frame whose columns are all numbers.""")
    return values.astype(np.float64, copy=False)
