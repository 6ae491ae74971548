"""Recognizing private data wherever else it can be reached: by identity, by memory, by content.

A function that can reach the data it is called with takes a part of it into its calibration. Whatever its
fingerprint meets is compared with the private data of the call: the same object; an object that shares memory
with it (a view, a column, a tensor over the same numbers); and a copy, which is a column with the values of a
private one, in the same or another order, or with some of them.
"""

from __future__ import annotations

import contextlib
import contextvars
import datetime as dt
import enum
import functools
import gc
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames
from privatize.data.clipping import is_missing

__all__ = ["FEW", "Declared", "Private", "Sized", "bounds", "columns_of", "comparable"]

Array = NDArray[Any]
Range = tuple[int, int]

FEW = 8
"""Fewer values than this are not compared by content: constants would resemble them by accident."""

_SOME = 20  # values that parts of columns must share; FEW are enough of measured ones in a row
_MOST = 10_000  # objects that one which cannot be taken apart may refer to
_DENSE = 10_000_000  # values of a sparse matrix that are compared with dense ones
_WIDE = 32  # columns of one array that are looked for as parts; all of them as a whole
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)
_LISTED = (list, tuple, set, frozenset, dict)
_ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None)})


class Private:
    """The private data of one call.

    Parameters
    ----------
    *data : dataset
        The data.
    memory : bool
        Whether what shares memory with it counts: other rows of one array are of other people.
    lists : bool
        Whether a list that private values may have been chosen from is public; records are no such list.
    """

    # Everything is made when it is first needed: most functions reach nothing that could be data.
    def __init__(self, *data: Any, memory: bool = True, lists: bool = True) -> None:
        self._data = data
        self._lists = lists
        self._ids: frozenset[int] | None = None
        self._rows = False
        self._ranges: list[Range] | None = None if memory else []
        self._content: _Content | None = None

    def __repr__(self) -> str:
        return "<private>"

    def holds(self, value: Any) -> bool:
        """Tell whether an object is the private data, shares memory with it, or is a copy of some of it.

        Only the object itself is looked at, with the values directly in it; not the objects in it.
        """
        if isinstance(value, _CODE):
            return False
        if isinstance(value, Declared):
            return self._declared(value.values)
        if self._ids is None:
            self._ids = frozenset(_identities(self._data))
            # Tuples have no state, so nobody asks about them one by one.
            lists = (part for part in _aligned(self._data) if isinstance(part, list))
            self._rows = any(tuple in set(map(type, part)) for part in lists)
        if id(value) in self._ids:
            return True
        if isinstance(value, _LISTED):
            if self._rows:
                items = value.values() if isinstance(value, dict) else value
                if any(type(item) is tuple and id(item) in self._ids for item in items):
                    return True
            return len(value) >= FEW and any(map(self._copied, _listed(value)))
        if any(map(self._shared, _ranges(value))) or any(map(self._copied, _arrays(value))):
            return True
        return isinstance(value, bytes | bytearray | memoryview) and self._dumped(bytes(value))

    def reaches(self, value: Any, depth: int = 4) -> bool:
        """Tell the same about a dataset and whatever is in it."""
        if self.holds(value):
            return True
        if not depth or isinstance(value, _CODE):
            return False
        return any(self.reaches(part, depth - 1) for part in _inside(value))

    def inside(self, value: Any) -> bool:
        """Tell the same about an object that cannot be taken apart, and whatever it refers to."""
        seen, waiting = {id(value)}, [value]
        while waiting and len(seen) < _MOST:
            holder = waiting.pop()
            known = [holder.get(None)] if isinstance(holder, contextvars.ContextVar) else []
            for item in (*gc.get_referents(holder), *known):
                scope = type(item) is dict and "__builtins__" in item  # which may have anything in it
                if id(item) not in seen and not scope and not isinstance(item, _CODE):
                    if self.holds(item):
                        return True
                    seen.add(id(item))
                    waiting.append(item)
        return False

    def _shared(self, span: Range) -> bool:
        if self._ranges is None:
            self._ranges = [
                found
                for part in _all_parts(self._data)
                for owner in _owners(part)
                for found in _ranges(owner)
            ]
        return any(span[0] < end and start < span[1] for start, end in self._ranges)

    def _copied(self, array: Array) -> bool:
        if array.size < FEW:
            return False
        with contextlib.suppress(Exception), np.errstate(all="ignore"):  # what cannot be compared is no copy
            return self._columns().has(array)
        return False

    def _declared(self, values: Any) -> bool:
        if any(map(self._shared, _ranges(values))):
            return True
        arrays = _listed(values) if isinstance(values, _LISTED) else _arrays(values)
        with contextlib.suppress(Exception), np.errstate(all="ignore"):
            return any(self._columns().declares(array) for array in arrays)
        return False

    def _dumped(self, raw: bytes) -> bool:
        with np.errstate(all="ignore"):
            return len(raw) >= FEW and self._columns().dumped(raw)

    def _columns(self) -> _Content:
        if self._content is None:
            self._content = _Content(self._data, self._lists)
        return self._content


class Declared:
    """Values that P was declared with, such as its categories: those of honest data are among them.

    They are no copy of the data, unless each of many measured numbers is one of them, and no other is.
    """

    def __init__(self, values: Any) -> None:
        self.values = values


class Sized:
    """Takes the place of `Private`, and notes every value that could be a copy of private data."""

    def __init__(self) -> None:
        self.met: list[Any] = []

    def holds(self, value: Any) -> bool:
        """Note a value that is long enough; it is not private."""
        if isinstance(value, Declared):
            self.met.append(value)
        elif isinstance(value, _LISTED):
            if len(value) >= FEW and len(set(map(type, value))) <= 3:  # settings are of many types
                self.met.append(value)
        elif _is_data(value) and not isinstance(value, _CODE) and np.size(value) >= FEW:
            self.met.append(value)
        return False

    def inside(self, value: Any) -> bool:
        """Note nothing."""
        del value
        return False


# --- identities -------------------------------------------------------------------------------


def _identities(data: Any, depth: int = 3) -> Iterator[int]:
    """Yield the ids of the containers in a dataset, and of its records where those are objects."""
    if set(map(type, data)) <= _ATOMS:  # which most records have nothing else than
        return
    for part in data:
        if not _is_record(part):
            continue
        for owner in _owners(part):
            yield id(owner)
        if depth and type(part) in (list, tuple, dict):
            yield from _identities(part.values() if type(part) is dict else part, depth - 1)
        elif depth and isinstance(part, np.ndarray) and part.dtype == object:
            yield from _identities(part.ravel().tolist(), depth - 1)


def _is_record(value: Any) -> bool:
    """Tell whether an object belongs to one dataset alone: numbers, strings and enums are everybody's."""
    kind = type(value)
    if kind in _ATOMS:
        return False
    if kind is tuple:
        return len(value) > 1
    if isinstance(value, (*_CODE, enum.Enum, np.generic)):
        return False
    return isinstance(value, list | dict | set | bytearray) or hasattr(value, "__dict__") or _is_data(value)


def _is_data(value: Any) -> bool:
    return isinstance(value, np.ndarray) or hasattr(type(value), "__len__")


def _inside(value: Any) -> Iterator[Any]:
    """Yield the objects in a container."""
    if isinstance(value, _LISTED):
        yield from filter(_is_record, value.values() if isinstance(value, dict) else value)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from filter(_is_record, value.ravel().tolist())
    elif _library(value) == "pandas":
        yield from _pandas(value)


def _all_parts(data: Any) -> Iterator[Any]:
    """Yield a dataset's parts, those of the parts, and so on."""
    for part in data:
        yield part
        if isinstance(part, _LISTED):
            items = part.values() if isinstance(part, dict) else part
            if not set(map(type, items)) <= _ATOMS:
                yield from _all_parts(filter(_is_record, items))
        elif _library(part) == "pandas":
            yield from _all_parts(_pandas(part))


# --- memory -----------------------------------------------------------------------------------


def bounds(array: Any) -> Range:
    """Return where an array's memory begins and ends; numpy's own function for it has moved about."""
    first = last = array.__array_interface__["data"][0]
    if not array.size:
        return first, first
    for size, stride in zip(array.shape, array.strides, strict=True):
        first += min(0, (size - 1) * stride)
        last += max(0, (size - 1) * stride)
    return first, last + array.itemsize


def _library(value: Any) -> str:
    module = type(value).__module__
    return module.partition(".")[0] if isinstance(module, str) else ""


def _owners(value: Any) -> Iterator[Any]:
    """Yield an object, and what it is a view of: the other numbers there are of the same people."""
    seen = 0
    while value is not None and seen < 100:
        yield value
        value, seen = getattr(value, "base", None) if isinstance(value, np.ndarray) else None, seen + 1


def _ranges(value: Any) -> Iterator[Range]:
    """Yield the memory that an object's values are in."""
    if isinstance(value, _LISTED):
        return
    library = _library(value)
    with contextlib.suppress(Exception):  # whatever cannot be looked at is compared by content
        if isinstance(value, np.ndarray):
            yield bounds(value)
        elif isinstance(value, np.flatiter | np.nditer):
            yield from map(bounds, value.operands if isinstance(value, np.nditer) else [value.base])
        elif library == "torch" and hasattr(value, "untyped_storage"):
            storage = value.untyped_storage()
            yield storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        elif library == "scipy" and hasattr(value, "tocsr"):
            for part in vars(value).values():
                if isinstance(part, np.ndarray):
                    yield bounds(part)
        elif library == "pyarrow":
            for buffer in _buffers(value):
                yield buffer.address, buffer.address + buffer.size
        elif library == "polars":
            for chunk in (each.to_physical() for each in _chunks(value)):
                if chunk.dtype.is_numeric():  # anything else is copied by what follows
                    yield from map(bounds, [chunk.to_numpy()] if not chunk.null_count() else [])
                    yield from _ranges(chunk.to_arrow()) if "pyarrow" in sys.modules else ()
        elif library not in ("pandas", "privatize") and not hasattr(value, "__dict__"):
            with memoryview(value) as view:  # bytes, array.array, mmap, memoryview, ctypes
                yield bounds(np.frombuffer(view, dtype=np.uint8))


def _buffers(value: Any) -> Iterator[Any]:
    """Yield the memory of a pyarrow object."""
    if hasattr(value, "address"):
        yield value
    elif hasattr(value, "chunks"):
        for chunk in value.chunks:
            yield from _buffers(chunk)
    elif hasattr(value, "columns"):
        for column in value.columns:
            yield from _buffers(column)
    elif hasattr(value, "buffers"):
        yield from filter(None, value.buffers())


def _chunks(value: Any) -> Iterator[Any]:
    """Yield the pieces of a polars frame or series."""
    if hasattr(value, "collect") and "SCAN" not in value.explain():  # a lazy one, of what is in memory
        value = value.collect()
    if hasattr(value, "get_columns"):
        for column in value.get_columns():
            yield from column.get_chunks()
    elif hasattr(value, "get_chunks"):
        yield from value.get_chunks()


_PANDAS = ("_ndarray", "_data", "_mask", "_codes", "_pa_array", "_left", "_right", "_sparse_values")


def _pandas(value: Any) -> Iterator[Any]:
    """Yield what a pandas object keeps its values in."""
    if hasattr(value, "items") and hasattr(value, "columns"):
        for at in range(value.shape[1]):
            yield value.iloc[:, at].array
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
        for name in _PANDAS:
            found = getattr(value, name, None)
            if found is not None and found is not value:
                yield found


# --- content ----------------------------------------------------------------------------------


def _arrays(value: Any) -> Iterator[Array]:
    """Yield the values of an object as arrays; nothing for those of pandas, which have arrays in them."""
    library = _library(value)
    with contextlib.suppress(Exception):
        if isinstance(value, np.ndarray):
            yield value
        elif library == "torch" and hasattr(value, "detach"):
            made = value.detach().cpu()
            yield (made.float() if made.is_floating_point() and made.element_size() == 2 else made).numpy()
        elif library == "scipy" and hasattr(value, "tocsr"):
            for part in vars(value).values():
                if isinstance(part, np.ndarray):
                    yield part
            if np.prod(value.shape) <= _DENSE:
                yield value.toarray()
        elif library == "polars":
            for chunk in _chunks(value):
                yield chunk.to_numpy()
        elif library == "pyarrow" and not hasattr(value, "address"):
            for column in value.columns if hasattr(value, "columns") else [value]:
                yield np.asarray(column)
        elif type(value).__module__ == "array":
            yield np.asarray(value)


def _listed(value: Any) -> Iterator[Array]:
    """Yield the values directly in a list, tuple, set or dict, or in the records in it, as arrays."""
    with contextlib.suppress(Exception):
        sides = (list(value.values()), list(value)) if isinstance(value, dict) else (list(value),)
        for items in sides:
            first = items[0]
            if isinstance(first, dict):
                yield from columns_of([item for item in items if isinstance(item, dict)])
            elif isinstance(first, list | tuple):
                for column in itertools.zip_longest(*items):
                    yield _array(list(column))
            elif isinstance(first, np.ndarray):
                yield np.array(items)
            elif type(first) in _ATOMS or isinstance(first, np.generic | dt.date) or is_missing(first):
                yield _array(items)
            elif hasattr(first, "__dict__") and not isinstance(first, _CODE):
                yield from columns_of([vars(item) for item in items])


def _array(values: list[Any]) -> Array:
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
            yield _array(data)
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
        return (
            values.astype("M8[us]").astype(np.int64) if values.dtype.kind == "M" else values.astype(np.int64)
        )
    listed = values.tolist()
    if all(is_missing(value) or isinstance(value, bool | int | float) for value in listed):
        with np.errstate(over="ignore"), contextlib.suppress(OverflowError):
            return np.array([np.nan if is_missing(value) else value for value in listed], dtype=np.float32)
    if all(is_missing(value) or isinstance(value, dt.date) for value in listed):
        plain = [
            None if is_missing(v) else v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for v in listed
        ]
        return np.array(plain, dtype="M8[us]").astype(np.int64)
    return np.array(["" if is_missing(value) else str(value) for value in listed])


class _Content:
    """The columns of private data, for finding copies of them."""

    def __init__(self, data: Any, lists: bool) -> None:
        self._lists = lists
        self._arrays = [column for part in _aligned(data) for column in _contents(part)]
        self._lengths = {len(column) for array in self._arrays for column in _flat(array)}
        self._heads: dict[bytes, list[tuple[Array, Callable[[Array], Array]]]] | None = None
        self._parts: list[_Column] | None = None

    def has(self, array: Array) -> bool:
        """Tell whether a column of an array is one of these, or a part of one, or the other way round."""
        for column in _flat(array, rows=True):
            if len(column) in self._lengths and self._begun(column):
                return True
        return any(one.overlaps(own, self._lists) for one in _wholes(array) for own in self._columns())

    def declares(self, array: Array) -> bool:
        """Tell whether a list of values is made of the measured numbers of one of these, all of them."""
        return any(one.permutes(own) for one in _wholes(array) for own in self._columns())

    def _columns(self) -> list[_Column]:
        if self._parts is None:
            self._parts = [_Column(column) for each in self._arrays for column in _flat(each, _WIDE)]
        return self._parts

    def _begun(self, column: Array) -> bool:
        """Tell whether a column is one of these, or what casting makes of it; by its first values first."""
        if self._heads is None:
            self._heads = {}
            for own in (own for array in self._arrays for own in _flat(array)):
                head = _numbered(own[:FEW])
                for cast in _CASTS if head.dtype == np.float32 else _CASTS[:1]:
                    self._heads.setdefault(cast(head).tobytes(), []).append((own, cast))
        for own, cast in self._heads.get(_numbered(column[:FEW]).tobytes(), ()):
            values = _numbered(own)
            made = cast(values) if values.dtype == np.float32 else values
            if made.tobytes() == _numbered(column).tobytes() and _tells(made):
                return True
        return False

    def dumped(self, raw: bytes) -> bool:
        """Tell whether bytes have one of these in them, as a pickle has."""
        columns = (column for array in self._arrays if not array.dtype.hasobject for column in _flat(array))
        return any(
            len(raw) >= each.nbytes and each.tobytes() in raw and _tells(_numbered(each)) for each in columns
        )


_CASTS: tuple[Callable[[Array], Array], ...] = (
    lambda values: values,
    np.trunc,
    np.rint,
    lambda values: values.astype(np.float16).astype(np.float32),
    lambda values: (values.view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32),  # bfloat16
)


class _Column:
    """One column that may be a part of another one."""

    def __init__(self, column: Array) -> None:
        self._column, self.size = column, len(column)
        first = next((value for value in column[:100].tolist() if not is_missing(value)), None)
        self.text = isinstance(first, str | bytes)

    @functools.cached_property
    def values(self) -> Array:
        """Its values, as numbers."""
        return _numbered(self._column)

    def overlaps(self, private: _Column, lists: bool) -> bool:
        """Tell whether this or a private column has the other's values.

        In any order, or some in a row, or some measured ones; or numbers that are larger where the other's
        are, such as their logarithms. A list that private values were chosen from is no copy, if `lists`.
        """
        if self.text != private.text or self.values.dtype != private.values.dtype:
            return False
        short, long = self.values, private.values
        if len(short) > len(long):
            short, long = long, short
        if len(short) < _SOME:
            # The cheap questions first: there are many short lists, and long columns.
            if not _measured(short) or short.tobytes() not in long.tobytes():
                return False
            return _measured(long, 0.5) and _tells(short)
        if len(short) == len(long) and not self.text and _same_order(short, long):
            return _tells(short, bits=3 * _BITS)
        probes = short[:: max(1, len(short) // 8)]
        hits = (long == probes[:, None]).any(axis=1)
        hits[0] |= probes[0] != probes[0]  # missing values are alike
        if not hits[0] and hits.sum() < 2:  # most other columns are done with here
            return False
        if hits[0] and short.tobytes() in long.tobytes():
            return _tells(short, bits=3 * _BITS) and not (lists and _code_book(self.values, private.values))
        if len(short) == len(long) and hits.all() and (np.sort(short) == np.sort(long)).all():
            return _tells(np.sort(short), _SOME)
        if short.dtype != np.float32:
            return False
        values = np.unique(short[np.isfinite(short)])
        # Not codes and counts: a public table of codes has those of everybody.
        if len(values) < max(_SOME, len(short) // 2) or np.mean(values == np.rint(values)) > 0.5:
            return False
        known = np.unique(long[np.isfinite(long)])
        gap = float(np.diff(known).min(initial=np.inf))
        taken = len(known) * gap / max(float(known[-1]) - float(known[0]), gap)  # near 1 for a grid
        if np.isin(values, known).mean() < max(0.5, 3 * taken) or not _tells(short, bits=3 * _BITS):
            return False
        repeated = len(np.unique(private.values)) < len(private.values) / 2
        return not (lists and (repeated or _code_book(self.values, private.values)))

    def permutes(self, private: _Column) -> bool:
        """Tell whether this has every measured number of a private column once, and no other."""
        one, own = self.values, private.values
        if len(one) != len(own) or len(one) < _SOME or one.dtype != own.dtype or not _measured(one):
            return False
        return bool((np.sort(one) == np.sort(own)).all()) and _tells(np.sort(one), _SOME)


def _wholes(array: Array) -> list[_Column]:
    """Return the columns of an array that could be parts of others; most short lists could not."""
    found = [_Column(column) for column in _flat(array, _WIDE, rows=True)]
    return [one for one in found if one.size >= _SOME or (not one.text and _measured(one.values))]


def _measured(values: Array, different: float = 0.9) -> bool:
    """Tell whether a column is of measured numbers: most are no integers, and they hardly ever repeat."""
    if values.dtype != np.float32 or np.mean(values == np.rint(values)) > 0.5:
        return False
    return len(np.unique(values)) >= different * len(values)


def _code_book(public: Array, private: Array) -> bool:
    """Tell whether private values were chosen from a public list: prices, the places of shops, codes.

    Such a list has most values once, and nearly all of the private ones, of which some were chosen more often
    than they are in it. A copy of some records that had nearly all values would have many of them repeatedly.
    Nor were all values of a list chosen when most of the private ones are different: these are the list.
    """
    listed, times = np.unique(public, return_counts=True)
    chosen, often = np.unique(private, return_counts=True)
    if len(listed) < 0.6 * len(public):
        return False
    if len(chosen) > len(private) / 2 and np.isin(listed, chosen).mean() > 0.95:
        return False
    places = np.minimum(np.searchsorted(listed, chosen), len(listed) - 1)
    there = listed[places] == chosen
    more = np.maximum(often - times[places], 0)[there].sum()
    return bool(there.mean() >= 0.8 and more > 0.02 * len(private))


def _same_order(one: Array, other: Array) -> bool:
    """Tell whether two columns are in the same order, or the opposite one, and not just sorted."""
    for some in (slice(64), slice(None)):  # most are done with after a few
        order = np.argsort(one[some], kind="stable")
        if (np.diff(order) == 1).all() or (np.diff(order) == -1).all():
            return False
        orders = (np.argsort(side * other[some].astype(float), kind="stable") for side in (1, -1))
        if not any((order == each).all() for each in orders):
            return False
    return True


def _aligned(data: Any) -> Iterator[Any]:
    """Yield the containers that a dataset is made of."""
    for part in data:
        if type(part) in (tuple, dict):  # whose names are everybody's
            yield from _aligned(part.values() if type(part) is dict else part)
        else:
            yield part


def _contents(part: Any) -> Iterator[Array]:
    """Yield the arrays that a container's values are in, and what others would make of them."""
    if isinstance(part, _LISTED):
        yield from _listed(part)
    elif _library(part) == "pandas":
        for each in _all_parts([part]):
            yield from _arrays(each)
            coded = not hasattr(each, "_ndarray") or hasattr(each, "categories")
            if coded and hasattr(each, "_from_sequence"):  # strings, categories, numbers that may be missing
                with contextlib.suppress(Exception):
                    yield np.asarray(each, dtype=object)
    else:
        yield from _arrays(part)


def _flat(array: Array, most: int | None = None, *, rows: bool = False) -> Iterator[Array]:
    """Yield the columns of an array that could be compared, and all of it as one.

    Parameters
    ----------
    array : array
        Any.
    most : int, optional
        The largest number of columns; others are left out.
    rows : bool
        Whether its rows count as columns too: pandas keeps columns in them.
    """
    if array.dtype.names:
        for name in array.dtype.names:
            yield from _flat(array[name], most, rows=rows)
        return
    if array.size < FEW:
        return
    yield array.ravel()
    if array.ndim > 1:
        table = array.reshape(len(array), -1)
        for side in (table.T, table) if rows else (table.T,):
            if side.shape[1] >= FEW:
                yield from side[:: 1 if most is None else -(-len(side) // most)]


def _numbered(column: Array) -> Array:
    """Return a column as numbers: strings by their hash, every missing value and every zero alike."""
    if column.dtype == object and not all(_plain(value) for value in column.tolist()):
        return np.zeros(len(column), np.float32)  # objects: comparing those would run anybody's code
    made = comparable(column)
    if made.dtype.kind in "US":
        return np.array([hash(value) for value in made.tolist()], dtype=np.int64)
    if made.dtype == np.float32:
        made = made + np.float32(0)
        made[made != made] = np.nan
    return made


def _plain(value: Any) -> bool:
    return type(value) in _ATOMS or isinstance(value, np.generic | dt.date) or is_missing(value)


_BITS = 20  # one coincidence in a million


def _tells(column: Array, distinct: int = 2, bits: float = _BITS) -> bool:
    """Tell whether a column is not equal to another one by accident, nor a range of numbers.

    What it tells is its length times the entropy of its values.
    """
    _, counts = np.unique(column[:1000], return_counts=True)
    share = counts / counts.sum()
    if len(counts) < distinct or -(share * np.log2(share)).sum() * len(column) < bits:
        return False
    steps = np.diff(column.astype(float))
    room = 1e-6 * np.abs(column).max() if column.dtype == np.float32 else 0
    return not np.ptp(steps) <= room  # also if some are missing
