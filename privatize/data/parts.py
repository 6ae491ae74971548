"""Split datasets into named parts and columns, and make columns of different types comparable."""

import contextlib
import datetime as dt
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames
from privatize.data.clipping import is_missing, objects

Array = NDArray[Any]


def parts_of(data: Any) -> list[tuple[Any, Any]] | None:
    """Return the parts that a dataset is made of, by name or by place; None for one array or list of values.

    Examples
    --------
    >>> parts_of([{"age": 31, "sex": "F"}, {"age": 62, "sex": "M"}])
    [('age', [31, 62]), ('sex', ['F', 'M'])]
    """
    if isinstance(data, dict):
        return list(data.items())
    if isinstance(data, tuple):
        return list(enumerate(data))
    if frames.kind(data) is not None:
        return list(zip(frames.names(data), frames.contents(data), strict=False))  # without an index
    if isinstance(data, list) and data and all(isinstance(record, dict) for record in data):
        return [(name, [record.get(name) for record in data]) for name in data[0]]
    return None


def as_array(data: Any) -> Array:
    """Return an array, a tensor, a sparse matrix or a list as an array; a ragged list as one of objects."""
    if isinstance(data, list):
        try:
            return np.array(data)
        except ValueError:
            return objects(data)
    if hasattr(data, "detach"):
        data = data.detach().cpu().numpy()
    found: Array = data.toarray() if hasattr(data, "tocsr") else data
    return found


def columns_of(data: Any) -> Iterator[Array]:
    """Yield everything in a dataset as flat arrays, one for each coordinate of a record."""
    if frames.kind(data) is not None:
        yield from frames.contents(data)
        return
    inner = parts_of(data)
    if inner is not None:
        for _, part in inner:
            yield from columns_of(part)
        return
    values = as_array(data)
    if values.dtype.names:
        yield from (values[name] for name in values.dtype.names)
    else:
        yield from values.reshape(len(values), -1).T


def comparable(values: Array) -> Array:
    """Return a column in which equal values compare equal, whatever their types were."""
    if values.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    if values.dtype.kind in "mM":
        return (values.astype("M8[us]") if values.dtype.kind == "M" else values).astype(np.int64)
    return _comparable_objects([None if is_missing(value) else value for value in values.tolist()])


def _comparable_objects(items: list[Any]) -> Array:
    kinds = tuple({type(value) for value in items if value is not None})
    if all(issubclass(kind, bool | int | float) for kind in kinds):
        with np.errstate(over="ignore"), contextlib.suppress(OverflowError):
            return np.array([np.nan if value is None else value for value in items], dtype=np.float32)
    if all(issubclass(kind, dt.date) for kind in kinds):
        bare = [value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value for value in items]
        return np.array(bare, dtype="M8[us]").astype(np.int64)
    return np.array(["" if value is None else str(value) for value in items])
