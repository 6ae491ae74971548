"""Recognize private data that a function can reach besides its argument: by identity, memory or content.

A function that can reach the data that it is called with could use it during calibration, which must use
public data only. Whatever its fingerprint meets is compared with the private data of the call. Refused are
the same object, an object that shares memory with it (a view, a column, a tensor over the same numbers), and
a copy: a column with all or some of the values of a private column, in any order. The public records that P
draws from are compared in the same way, and record by record.
"""

import contextlib
import contextvars
import enum
import functools
import gc
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from privatize.data import frames
from privatize.data.clipping import Array
from privatize.data.parts import columns_of, comparable
from privatize.identity import memory
from privatize.identity.copies import FEW, Copies
from privatize.identity.graph import ATOMS
from privatize.identity.memory import CODE, LISTED
from privatize.samplers.public import bootstraps

_MOST = 10_000  # objects that are searched, starting from one that cannot be encoded


class Private:
    """The private data of one call.

    Parameters
    ----------
    *data : dataset
        The data.
    memory : bool
        Whether sharing memory with it counts; it does not where other rows of an array are other people.
    lists : bool
        Whether a list that private values may have been chosen from is public; records are no such list.
    copies : bool
        Whether copies count. They do not where no error may depend on values.
    """

    # Everything is computed when it is first needed: most functions reach nothing that could be data.
    def __init__(self, *data: Any, memory: bool = True, lists: bool = True, copies: bool = True) -> None:
        self._data, self._memory, self._lists, self._compares = data, memory, lists, copies

    def __repr__(self) -> str:
        return "<private>"

    def holds(self, value: Any) -> bool:
        """Tell whether an object is the private data, shares memory with it, or is a copy of some of it.

        Only the object itself and the values directly in it are compared, not the objects in it.
        """
        if isinstance(value, CODE):
            return False
        if isinstance(value, DeclaredValues):
            return self._shared(value.values) or self._compared(memory.arrays(value.values), Copies.declares)
        if id(value) in self._ids:
            return True
        if isinstance(value, LISTED):
            rows = _items(value) if self._has_rows else ()
            seen = any(type(row) is tuple and id(row) in self._ids for row in rows)
            return seen or (len(value) >= FEW and self._compared(memory.arrays(value), Copies.has))
        return self._shared(value) or self._compared(memory.arrays(value), Copies.has) or self._pickled(value)

    def reaches(self, value: Any) -> bool:
        """Tell the same as `holds` about a dataset and everything in it."""
        return any(map(self.holds, itertools.chain([value], _parts(value))))

    def inside(self, value: Any) -> bool:
        """Tell the same as `holds` about an object that cannot be encoded, and all that it refers to."""
        seen, waiting = {id(value)}, [value]
        while waiting and len(seen) < _MOST:
            holder = waiting.pop()
            known = [holder.get(None)] if isinstance(holder, contextvars.ContextVar) else []
            for item in (*gc.get_referents(holder), *known):
                scope = type(item) is dict and "__builtins__" in item  # globals may have anything in them
                if id(item) not in seen and not scope and not isinstance(item, CODE):
                    if self.holds(item):
                        return True
                    seen.add(id(item))
                    waiting.append(item)
        return False

    @functools.cached_property
    def _ids(self) -> frozenset[int]:
        found = (each for part in _parts(self._data, pandas=False) for each in memory.owners(part))
        return frozenset(map(id, found))

    @functools.cached_property
    def _has_rows(self) -> bool:
        """Whether records are tuples. Short tuples are not compared by themselves, only in containers."""
        lists = (part for part in _aligned(self._data) if isinstance(part, list))
        return any(tuple in set(map(type, part)) for part in lists)

    @functools.cached_property
    def _ranges(self) -> list[memory.Range]:
        parts = _parts(self._data, objects=False) if self._memory else ()
        return [found for part in parts for owner in memory.owners(part) for found in memory.ranges(owner)]

    @functools.cached_property
    def _copies(self) -> Copies:
        parts = _aligned(self._data) if self._compares else ()
        found = [column for part in parts for column in _contents(part)]
        return Copies(found, lists=self._lists)

    def _shared(self, value: Any) -> bool:
        return any(
            first < end and start < last
            for first, last in memory.ranges(value)
            for start, end in self._ranges
        )

    def _pickled(self, value: Any) -> bool:
        raw = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else b""
        with np.errstate(all="ignore"):
            return len(raw) >= FEW and self._copies.in_bytes(raw)

    def _compared(self, found: Iterable[Array], ask: Any) -> bool:
        for array in found:
            # What cannot be compared is no copy.
            with contextlib.suppress(Exception), np.errstate(all="ignore"):
                if array.size >= FEW and ask(self._copies, array):
                    return True
        return False


class DeclaredValues:
    """Values that P was declared with, such as its categories. Honest data consists of such values.

    They are a copy of the data only if they are exactly the values of a column of many measured numbers.
    """

    def __init__(self, values: Any) -> None:
        self.values = values


def could_be_data(value: Any) -> bool:
    """Tell whether a value that a fingerprint met is long enough to be a copy of private data."""
    if isinstance(value, LISTED):
        return len(value) >= FEW and len(set(map(type, value))) <= 3  # settings are of many types
    sized = _is_data(value) and not isinstance(value, CODE) and np.size(value) >= FEW
    return sized or isinstance(value, DeclaredValues)


def _items(value: Any) -> Iterable[Any]:
    """Return the items of one of Python's own containers; of a dict, its values."""
    return value.values() if isinstance(value, dict) else value


def _is_record(value: Any) -> bool:
    """Tell whether an object belongs to one dataset alone; numbers, strings and enums may be in many."""
    kind = type(value)
    if kind in ATOMS or isinstance(value, (*CODE, enum.Enum, np.generic)):
        return False
    if kind is tuple:
        return len(value) > 1
    return isinstance(value, list | dict | set | bytearray) or hasattr(value, "__dict__") or _is_data(value)


def _is_data(value: Any) -> bool:
    return isinstance(value, np.ndarray) or hasattr(type(value), "__len__")


def _inside(value: Any, objects: bool = True, pandas: bool = True) -> Iterator[Any]:
    """Yield the containers and records in a container, also in arrays of objects and in pandas objects."""
    items: Iterable[Any] = ()
    if isinstance(value, LISTED):
        items = _items(value)
    elif objects and isinstance(value, np.ndarray) and value.dtype == object:
        items = value.ravel().tolist()
    elif pandas and memory.library(value) == "pandas" and not isinstance(value, CODE):
        yield from memory.pandas_parts(value)
    if not set(map(type, items)) <= ATOMS:  # most records have nothing else in them
        yield from filter(_is_record, items)


def _parts(value: Any, objects: bool = True, pandas: bool = True, depth: int = 8) -> Iterator[Any]:
    """Yield what is in a container, what is in that, and so on."""
    for part in _inside(value, objects, pandas):
        yield part
        if depth:
            yield from _parts(part, objects, pandas, depth - 1)


def _aligned(data: Any) -> Iterator[Any]:
    """Yield the containers that a dataset is made of."""
    for part in data:
        if type(part) in (tuple, dict):  # names of columns are public
            yield from _aligned(_items(part))
        else:
            yield part


def _contents(part: Any) -> Iterator[Array]:
    """Yield a container's values as arrays, also in the form that a conversion to objects gives."""
    inner = () if isinstance(part, LISTED) else _parts(part, objects=False)
    for each in (part, *inner):
        yield from memory.arrays(each)
        coded = not hasattr(each, "_ndarray") or hasattr(each, "categories")
        if coded and hasattr(each, "_from_sequence"):  # strings, categories, numbers that may be missing
            with contextlib.suppress(Exception):
                yield np.asarray(each, dtype=object)


# --- whether P draws from private data -------------------------------------------------------


def is_private(sampler: Any, data: Any) -> bool:
    """Tell whether a sampler draws from the private data itself, or from some of it.

    It does if the public records are recognized as above. Content is also compared column by column, in
    single precision, without constant columns. It is equal if all public columns (or those of the projection
    that is drawn) are found among the private ones, or the other way round. They are compared record by
    record; and, if most values of a column are different, once more with records matched by that column, up
    to a tenth of the records.
    """
    public = list(bootstraps(sampler))
    if not public:
        return False
    found = Private(data, memory=False, lists=False)  # P has its own copy of the records
    if any(found.reaches(each.origin) or found.reaches(each.public) for each, _ in public):
        return True
    private = _informative(data)
    for each, wanted in public:
        own = _informative(each.public if wanted is None else frames.select(each.public, wanted))
        if own and private and (_found_in(own, private) or _found_in(private, own)):
            return True
    return False


def _informative(data: Any) -> list[Array]:
    """Return the columns that are not constant, in a form that does not depend on their container."""
    found = [comparable(values) for values in columns_of(data)]
    return [values for values in found if len(values) and (values != values[0]).any()]


def _found_in(some: list[Array], others: list[Array]) -> bool:
    """Tell whether all of some columns are found among others, record by record."""
    n, size = len(some[0]), len(others[0])
    enough = n == size and (n >= _FEW_RECORDS or any(_distinct(values) for values in some))
    if enough and all(any(_agree(own, other) == 1 for other in others) for own in some):
        return True
    if min(n, size) < max(20, 0.8 * max(n, size)):
        return False
    return any(
        _ordered_alike(own, other, some, others)
        for own in filter(_distinct, some)
        for other in others
        if own.dtype.kind == other.dtype.kind and np.isin(own, other).mean() >= 0.9
    )


def _ordered_alike(own: Array, other: Array, some: list[Array], others: list[Array]) -> bool:
    """Tell whether all of some columns are found among others, with records matched by one column."""
    order = np.argsort(other, kind="stable")
    places = order[np.clip(np.searchsorted(other[order], own), 0, len(other) - 1)]
    return all(any(_agree(one, each[places]) >= 0.8 for each in others) for one in some)


_FEW_RECORDS = 5  # with fewer records, equal content may well be chance


def _distinct(values: Array) -> bool:
    return len(np.unique(values)) >= 0.9 * len(values)


def _agree(one: Array, other: Array) -> float:
    """Return the share of records in which two columns are equal; missing values are equal."""
    if one.dtype.kind != other.dtype.kind:
        return 0.0
    same = (one == other) | ((one != one) & (other != other))
    return float(same.mean())
