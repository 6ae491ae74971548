"""Datasets of n records in any container: count, copy, replace one, describe.

A dataset is a numpy array (its first axis counts the records), a list, or a tuple of such
containers that are aligned record by record, as in ``(X, y)``.
"""

from __future__ import annotations

import copy as _copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privatize.errors import DataError

__all__ = [
    "adopt",
    "bring_into",
    "clippable",
    "concat",
    "copy",
    "count",
    "describe",
    "equal",
    "head",
    "match",
    "replace",
    "take",
]

# Values that nobody can change in place: a list of these needs no deep copy.
_ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None), np.float64, np.int64})

Support = tuple[Any, Any]


def count(data: Any) -> int:
    """Return the number of records.

    Examples
    --------
    >>> count([3, 1, 2]), count(np.zeros((5, 2))), count((np.zeros((4, 2)), [0, 1, 1, 0]))
    (3, 5, 4)
    """
    _check(data)
    if isinstance(data, tuple):
        sizes = [count(part) for part in data]
        if len(set(sizes)) > 1:
            raise DataError(
                f"The parts of the dataset have {sizes} records: aligned containers must have "
                f"one entry per record each."
            )
        return sizes[0]
    return len(data)


def _check(data: Any) -> None:
    if type(data) is np.ndarray:
        if data.ndim == 0:
            raise DataError(
                "The dataset is a 0-dimensional array: it needs a first axis that counts records."
            )
    elif isinstance(data, tuple) and not hasattr(data, "_fields"):
        if not data or not all(type(p) is np.ndarray or isinstance(p, list | tuple) for p in data):
            raise DataError(
                "The dataset is a tuple, which stands for aligned containers such as (X, y), but "
                "not all of its parts are arrays or lists. Pass a list or an array of records."
            )
    elif type(data) is not list:
        raise DataError(
            f"The dataset is a {_name(type(data))}, which is not supported. Pass a numpy array, a "
            f"list, or a tuple of aligned arrays (to_numpy() of a data frame, for example)."
        )


def _name(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def head(data: Any, n: int) -> Any:
    """Return the first n records, without copying arrays."""
    if isinstance(data, tuple):
        return tuple(head(part, n) for part in data)
    return data[:n]


def take(data: Any, positions: np.ndarray[Any, np.dtype[np.intp]]) -> Any:
    """Return the records at the positions, in that order.

    Examples
    --------
    >>> take([5, 6, 7], np.array([2, 0]))
    [7, 5]
    """
    if isinstance(data, tuple):
        return tuple(take(part, positions) for part in data)
    if isinstance(data, list):
        return [data[i] for i in positions]
    return data[positions]


def concat(parts: Sequence[Any]) -> Any:
    """Join datasets of the same container, one after the other."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(concat(column) for column in zip(*parts, strict=True))
    if isinstance(first, list):
        return [record for part in parts for record in part]
    return np.concatenate(parts)


def copy(data: Any) -> Any:
    """Return a copy that shares nothing that could be changed in place."""
    if isinstance(data, tuple):
        return tuple(copy(part) for part in data)
    if isinstance(data, list):
        return data[:] if {type(r) for r in data} <= _ATOMS else _copy.deepcopy(data)
    return _copy.deepcopy(data) if data.dtype.hasobject else data.copy()


def replace(data: Any, position: int, source: Any, at: int) -> None:
    """Put record `at` of `source` at `position` of `data`, in place."""
    if isinstance(data, tuple):
        for part, origin in zip(data, source, strict=True):
            replace(part, position, origin, at)
    else:
        data[position] = source[at]


def equal(one: Any, other: Any) -> bool:
    """Tell whether two datasets are the same, bit by bit (NaN equals NaN)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype.hasobject:
            return all(map(equal, one.ravel().tolist(), other.ravel().tolist()))
        if one.dtype.names:  # field by field, since the bytes between fields are no one's
            return all(equal(one[name], other[name]) for name in one.dtype.names)
        return bool(one.tobytes() == other.tobytes())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other) or bool(one != one and other != other)


def describe(data: Any) -> Any:
    """Return the public schema of a dataset as JSON: containers, dtypes, shapes, never n or values.

    Examples
    --------
    >>> describe((np.zeros((4, 2)), [0, 1, 1, 0]))
    ['tuple', ['array', '<f8', [2]], ['list']]
    """
    _check(data)
    if isinstance(data, tuple):
        return ["tuple", *map(describe, data)]
    if isinstance(data, list):
        return ["list"]
    dtype = data.dtype
    return ["array", _code(dtype), list(data.shape[1:])]


def _code(dtype: np.dtype[Any]) -> Any:
    """Return a dtype as JSON: a string, or names, kinds, offsets and size of a structured one."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return {"base": _code(base), "shape": list(shape)}
    if dtype.names is None:
        return "StringDType" if dtype.kind == "T" else dtype.str
    known: Any = dtype.fields
    fields = [known[name] for name in dtype.names]
    return {
        "names": list(dtype.names),
        "formats": [_code(field[0]) for field in fields],
        "offsets": [field[1] for field in fields],
        "itemsize": dtype.itemsize,
    }


def _show(schema: Any) -> str:
    if schema[0] == "tuple":
        return f"a tuple of ({', '.join(map(_show, schema[1:]))})"
    if schema[0] == "list":
        return "a list"
    shape = "" if not schema[2] else f" with records of shape {tuple(schema[2])}"
    dtype = _dtype(schema[1])
    # How long the longest text is tells about the data.
    return f"an array of {'text' if dtype.kind in 'SUT' else dtype.name}{shape}"


def _dtype(code: Any) -> np.dtype[Any]:
    if code == "StringDType":
        return np.dtype(np.dtypes.StringDType())
    if isinstance(code, str):
        return np.dtype(code)
    if "base" in code:
        return np.dtype((_dtype(code["base"]), tuple(code["shape"])))
    made: np.dtype[Any] = np.dtype(code | {"formats": [_dtype(inner) for inner in code["formats"]]})
    return made


def adopt(drawn: Any, schema: Any) -> Any:
    """Bring drawn records into the container of the private data, where that is safe.

    A drawn array becomes a list when the private data is one; what the library does to the
    private data in turn is :func:`bring_into`. Everything else is an error.
    """
    if schema is None:
        return drawn
    if schema[0] == "tuple" and isinstance(drawn, tuple) and len(drawn) == len(schema) - 1:
        return tuple(map(adopt, drawn, schema[1:]))
    if schema[0] == "list" and type(drawn) is np.ndarray:
        return drawn.tolist()
    return drawn


def match(schema: Any, drawn: Any) -> None:
    """Refuse private data whose schema P could not have drawn. Names public facts only."""
    if not _matches(schema, drawn):
        if _show(schema) == _show(drawn):
            raise DataError(
                f"The dataset is {_show(schema)} with longer texts than the sampler can draw. Have the "
                f"sampler draw texts of the longest width that may occur."
            )
        raise DataError(
            f"The dataset is {_show(schema)}, but the sampler draws {_show(drawn)}. Calibration "
            f"and release must run on the same kind of data: convert the dataset, or have the "
            f"sampler draw what the dataset is."
        )


def _matches(schema: Any, drawn: Any) -> bool:
    if schema[0] == "tuple" and drawn[0] == "tuple":
        return len(schema) == len(drawn) and all(map(_matches, schema[1:], drawn[1:]))
    if schema[0] == "list":
        return drawn[0] == "list" or (drawn[0] == "array" and _dtype(drawn[1]).kind in "biuf")
    if schema[0] != "array" or drawn[0] != "array" or schema[2] != drawn[2]:
        return False
    if schema[1] == drawn[1]:
        return True
    kinds = {_dtype(s[1]).kind for s in (schema, drawn)}
    if kinds in ({"U"}, {"S"}):  # shorter texts fit where P draws longer ones
        return bool(_dtype(schema[1]).itemsize <= _dtype(drawn[1]).itemsize)
    # Numbers may differ in kind: the private data is cast to what P draws.
    return all(_dtype(s[1]).kind in kinds for s, kinds in ((schema, "biuf"), (drawn, "iuf")))


def clippable(drawn: Any) -> bool:
    """Tell whether records like these can be clipped into a support: arrays and lists of numbers."""
    if isinstance(drawn, list):
        return all(isinstance(record, int | float) for record in drawn)
    return isinstance(drawn, np.ndarray) and drawn.dtype.kind in "biuf"


def bring_into(data: Any, drawn: Any, support: Support | None) -> Any:
    """Return a copy of private records in P's dtype and, if given, inside P's support.

    Each record is changed by itself, so neighbouring datasets stay neighbours. Numbers are
    clipped; NaN, which P's support does not contain, becomes the middle of a bounded support
    or the one finite end of a half-bounded one.

    Examples
    --------
    >>> bring_into(np.array([-1, 50, 200]), ["array", "<f8", []], (0.0, 100.0))
    array([  0.,  50., 100.])
    """
    if drawn[0] == "tuple":
        return tuple(bring_into(part, schema, None) for part, schema in zip(data, drawn[1:], strict=True))
    if isinstance(data, list):
        if drawn[0] != "array":
            copied = copy(data)
            return copied if support is None else [_clip_one(record, support) for record in copied]
        values = bring_into(_numbers(data), drawn, support)
        if list(values.shape[1:]) != drawn[2]:
            raise DataError(f"The records of the list are not of the shape {tuple(drawn[2])} that P draws.")
        return values.tolist()
    dtype = _dtype(drawn[1])
    if support is None or data.dtype.kind not in "biuf":
        return _cast(data, dtype) if data.dtype != dtype else copy(data)
    low, high = (np.asarray(end, dtype=np.float64) for end in support)
    if dtype.kind in "iu":  # whole numbers inside the support, so that rounding does not leave it
        low, high = np.ceil(low), np.floor(high)
        if data.dtype.kind in "iu":
            inside = _cast(data, dtype)
            below, above = inside < low, inside > high
            return np.where(below, _cast(low, dtype), np.where(above, _cast(high, dtype), inside))
    if data.dtype.kind == "f":
        values = np.clip(data, low, high)
        missing = np.isnan(values)
        if missing.any():
            values = np.where(missing, _home(low, high), values)
    else:
        values = np.clip(data.astype(np.float64), low, high)
    return _cast(values, dtype)


def _home(low: Any, high: Any) -> Any:
    """Return the value that stands for a missing one: inside the support, public."""
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2
    home = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    return np.where(np.isfinite(low) & np.isfinite(high), middle, home)


def _numbers(data: list[Any]) -> Any:
    """Return a list of numbers as an array, in a dtype that holds them; integers of any size."""
    try:
        values = np.array(data)
    except ValueError:  # ragged
        values = np.array([None])
    if values.dtype.kind == "O" and all(isinstance(v, int | float) for v in values.ravel().tolist()):
        # Integers beyond 64 bits, or beyond every float.
        values = np.array([_float(v) for v in values.ravel().tolist()]).reshape(values.shape)
    if values.dtype.kind not in "biuf":
        raise DataError(
            "The records of the list are not all numbers, as those that P draws are. Convert them, leave out "
            "what is missing, or have the sampler draw lists of what they are."
        )
    return values


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _clip_one(record: Any, support: Support) -> Any:
    """Clip a record of a list, if it is a number."""
    if isinstance(record, np.generic):
        record = record.item()
    if isinstance(record, bool):
        return record
    if not isinstance(record, int | float):
        raise DataError(
            f"Records of the list are of type {type(record).__name__}, which cannot be brought into P's "
            f"support. Convert them to int or float, or use domain='as-is'."
        )
    schema: list[Any] = ["array", "<i8" if isinstance(record, int) else "<f8", []]
    return bring_into([record], schema, support)[0]


def _cast(values: Any, dtype: np.dtype[Any]) -> Any:
    """Return the values in another dtype; integers saturate, they never wrap."""
    if dtype.kind not in "iu" or values.dtype.kind == "b":
        with np.errstate(over="ignore"):  # a warning would tell that a private number is huge
            return values.astype(dtype)
    ends = np.iinfo(dtype)
    if values.dtype.kind in "iu":
        own = np.iinfo(values.dtype)
        return np.clip(values, max(own.min, ends.min), min(own.max, ends.max)).astype(dtype)
    # In float64, since float32 has no 2^31 - 1; the nearest floats inside the integer range.
    high = np.nextafter(float(ends.max), 0) if ends.bits > 52 else float(ends.max)
    whole = np.nan_to_num(np.rint(values.astype(np.float64)), nan=0.0)
    return np.clip(whole, float(ends.min), high).astype(dtype)
