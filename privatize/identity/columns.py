"""Datasets, and lists that may be ones, as flat columns whose equal values are equal."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames
from privatize.data.support import missing

__all__ = ["ATOMS", "CODE", "columns_of", "comparable", "is_plain", "listed"]

Array = NDArray[Any]

CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)
ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None)})


def is_plain(value: Any) -> bool:
    """Tell whether a value is one number, string or date: comparing others would run anybody's code."""
    return type(value) in ATOMS or isinstance(value, np.generic | dt.date) or missing(value)


def listed(value: Any) -> Iterator[Array]:
    """Yield the values directly in a list, tuple, set or dict, or in the records in it, as arrays."""
    with contextlib.suppress(Exception):
        sides = (list(value.values()), list(value)) if isinstance(value, dict) else (list(value),)
        for items in sides:
            first = items[0]
            if isinstance(first, dict):
                yield from columns_of([item for item in items if isinstance(item, dict)])
            elif isinstance(first, list | tuple):
                for column in itertools.zip_longest(*items):
                    yield _objects(list(column))
            elif isinstance(first, np.ndarray):
                yield np.array(items)
            elif is_plain(first):
                yield _objects(items)
            elif hasattr(first, "__dict__") and not isinstance(first, CODE):
                yield from columns_of([vars(item) for item in items])


def _objects(values: list[Any]) -> Array:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def columns_of(data: Any) -> Iterator[Array]:
    """Yield everything in a dataset as flat arrays, one for each coordinate of a record."""
    if hasattr(data, "tocsr"):
        data = data.toarray()
    if isinstance(data, tuple | dict):
        for part in data.values() if isinstance(data, dict) else data:
            yield from columns_of(part)
    elif frames.kind(data) is not None:
        yield from frames.contents(data)
    elif isinstance(data, list):
        if data and all(isinstance(record, dict) for record in data):
            for name in data[0]:
                yield from columns_of([record.get(name) for record in data])
            return
        try:
            yield from columns_of(np.array(data))
        except ValueError:  # ragged
            yield _objects(data)
    else:
        if hasattr(data, "detach"):
            data = data.detach().cpu().numpy()
        if data.dtype.names:
            yield from (data[name] for name in data.dtype.names)
        else:
            yield from data.reshape(len(data), -1).T


def comparable(values: Array) -> Array:
    """Return a column such that equal values are equal whatever type they came in."""
    if values.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    if values.dtype.kind in "mM":
        return (values.astype("M8[us]") if values.dtype.kind == "M" else values).astype(np.int64)
    items = values.tolist()
    if all(missing(value) or isinstance(value, bool | int | float) for value in items):
        with np.errstate(over="ignore"), contextlib.suppress(OverflowError):
            return np.array([np.nan if missing(value) else value for value in items], dtype=np.float32)
    if all(missing(value) or isinstance(value, dt.date) for value in items):
        plain = [None if missing(v) else v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for v in items]
        return np.array(plain, dtype="M8[us]").astype(np.int64)
    return np.array(["" if missing(value) else str(value) for value in items])
