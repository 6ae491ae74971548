"""Find the memory that the values of an object are in, and return the values as arrays."""

import contextlib
import datetime as dt
import itertools
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from privatize.data.clipping import Array, is_missing, objects
from privatize.data.parts import as_array, columns_of
from privatize.identity.graph import ATOMS

Range = tuple[int, int]

CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)
LISTED = (list, tuple, set, frozenset, dict)
"""Python's own containers, whose items may be anywhere in memory."""

_DENSE = 10_000_000  # values of a sparse matrix that are compared with dense ones


def library(value: Any) -> str:
    """Return the name of the package that an object's class is from."""
    module = type(value).__module__
    return module.partition(".")[0] if isinstance(module, str) else ""


def bounds(array: Any) -> Range:
    """Return where an array's memory begins and ends; numpy's function for it moved between versions."""
    first = last = array.__array_interface__["data"][0]
    if not array.size:
        return first, first
    for size, stride in zip(array.shape, array.strides, strict=True):
        first += min(0, (size - 1) * stride)
        last += max(0, (size - 1) * stride)
    return first, last + array.itemsize


def owners(value: Any) -> Iterator[Any]:
    """Yield an object, and what it is a view of, whose other numbers are about the same people."""
    yield value
    for _ in range(100):
        value = value.base if isinstance(value, np.ndarray) else None
        if value is None:
            return
        yield value


def ranges(value: Any) -> Iterator[Range]:
    """Yield the memory that an object's values are in; if it is not known, content must be compared."""
    with contextlib.suppress(Exception):
        if library(value) == "torch" and hasattr(value, "untyped_storage"):
            storage = value.untyped_storage()
            yield storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        else:
            yield from map(bounds, _views(value))


def _views(value: Any) -> Iterator[Array]:
    """Yield arrays over the memory of an object."""
    where = library(value)
    if isinstance(value, np.ndarray | np.flatiter):
        yield value if isinstance(value, np.ndarray) else value.base
    elif isinstance(value, np.nditer):
        yield from value.operands
    elif where == "scipy" and hasattr(value, "tocsr"):
        yield from _sparse(value)
    elif where == "pyarrow":
        yield from (np.frombuffer(buffer, np.uint8) for buffer in _buffers(value))
    elif where == "polars":
        # The conversions below would copy anything but numbers.
        for chunk in (each.to_physical() for each in _chunks(value) if each.to_physical().dtype.is_numeric()):
            yield from [] if chunk.null_count() else [chunk.to_numpy()]
            yield from _views(chunk.to_arrow()) if "pyarrow" in sys.modules else ()
    elif not hasattr(value, "__dict__"):
        yield np.frombuffer(value, np.uint8)  # bytes, array.array, mmap, memoryview, ctypes


def arrays(value: Any) -> Iterator[Array]:
    """Yield the values of an object as arrays; nothing for pandas objects, since their parts are arrays."""
    where = library(value)
    with contextlib.suppress(Exception):
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, LISTED):
            yield from _listed(value)
        elif where == "torch" and hasattr(value, "detach"):
            yield as_array(value)
        elif where == "scipy" and hasattr(value, "tocsr"):
            yield from _sparse(value)
            if np.prod(value.shape) <= _DENSE:
                yield value.toarray()
        elif where == "polars":
            yield from (chunk.to_numpy() for chunk in _chunks(value))
        elif where in ("array", "pyarrow") and not hasattr(value, "address"):
            yield from map(np.asarray, value.columns if hasattr(value, "columns") else [value])


def is_scalar(value: Any) -> bool:
    """Tell whether a value is one number, string or date; comparing other objects would run their code."""
    return type(value) in ATOMS or isinstance(value, np.generic | dt.date) or is_missing(value)


def _listed(value: Any) -> Iterator[Array]:
    """Yield the values directly in a list, tuple, set or dict, or in the records in it, as arrays."""
    sides = (list(value.values()), list(value)) if isinstance(value, dict) else (list(value),)
    for items in sides:
        first = items[0]
        if isinstance(first, dict):
            yield from columns_of([item for item in items if isinstance(item, dict)])
        elif isinstance(first, list | tuple):
            for column in itertools.zip_longest(*items):
                yield objects(list(column))
        elif isinstance(first, np.ndarray):
            yield np.array(items)
        elif is_scalar(first):
            yield objects(items)
        elif hasattr(first, "__dict__") and not isinstance(first, CODE):
            yield from columns_of([vars(item) for item in items])


def _sparse(value: Any) -> Iterator[Array]:
    """Yield the arrays that a sparse matrix is made of."""
    yield from (part for part in vars(value).values() if isinstance(part, np.ndarray))


def _buffers(value: Any) -> Iterator[Any]:
    """Yield the memory of a pyarrow object."""
    if hasattr(value, "address"):
        yield value
    elif hasattr(value, "buffers"):
        yield from filter(None, value.buffers())
    else:
        for part in value.chunks if hasattr(value, "chunks") else value.columns:
            yield from _buffers(part)


def _chunks(value: Any) -> Iterator[Any]:
    """Yield the pieces of a polars frame or series."""
    if hasattr(value, "collect") and "SCAN" not in value.explain():  # a lazy frame over data in memory
        value = value.collect()
    for column in value.get_columns() if hasattr(value, "get_columns") else [value]:
        yield from column.get_chunks()


_PANDAS = ("_ndarray", "_data", "_mask", "_codes", "_pa_array", "_left", "_right", "_sparse_values")


def pandas_parts(value: Any) -> Iterator[Any]:
    """Yield the parts of a pandas object that contain its values."""
    if hasattr(value, "items") and hasattr(value, "columns"):
        yield from (value.iloc[:, at].array for at in range(value.shape[1]))
        yield value.index
    elif hasattr(value, "codes") and hasattr(value, "levels"):  # an index of several levels
        yield from value.codes
        yield from value.levels
    elif hasattr(value, "array"):
        if type(value).__name__ != "RangeIndex":
            yield value.array
        if hasattr(value, "index"):
            yield value.index
    else:
        found = (getattr(value, name, None) for name in _PANDAS)
        yield from (each for each in found if each is not None and each is not value)
