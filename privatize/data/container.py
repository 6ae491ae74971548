"""The base class of the adapters of containers, and the registry that finds the adapter of a dataset."""

import datetime as dt
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data.clipping import is_missing
from privatize.data.schema import Schema
from privatize.errors import DataError

Positions = NDArray[np.intp]
# Types whose values cannot be changed in place: a container of only these needs no deep copy.
IMMUTABLE = frozenset({int, float, complex, bool, str, bytes, type(None), dt.date, np.float64, np.int64})

_COMPARED = 2**20  # bytes of arrays that are compared at once


class Container(ABC):
    """The base class of adapters. Its defaults suit arrays whose first axis counts the records."""

    def count(self, data: Any) -> int:
        """Return the number of records, or refuse what is not a dataset."""
        return len(data)

    @abstractmethod
    def describe(self, data: Any) -> Schema:
        """Return the schema, or refuse what is not a dataset."""

    def head(self, data: Any, n: int) -> Any:
        """Return the first n records."""
        return data[:n]

    def take(self, data: Any, positions: Positions) -> Any:
        """Return the records at the positions, in that order."""
        return data[positions]

    def record(self, data: Any, at: int) -> Any:
        """Return one record."""
        return data[at]

    @abstractmethod
    def concat(self, parts: Sequence[Any]) -> Any:
        """Join datasets of this container, one after the other."""

    def copy(self, data: Any) -> Any:
        """Return a copy that shares nothing that could be changed in place."""
        return data.copy()

    def fresh(self, data: Any) -> Any:
        """Return the same records in a new container that shows nothing else of the given one."""
        return data

    def isolated(self, data: Any) -> Any:
        """Return the same records in a new container that shows nothing of other records."""
        return self.fresh(data)

    def neighbour(self, data: Any, position: int, n: int) -> Any:
        """Return the first n records with the one at `position` replaced by the one at n, as a copy."""
        positions = np.arange(n)
        positions[position] = n
        return self.take(data, positions)

    def pair(self, drawn: Any, position: int, n: int) -> tuple[Any, Any]:
        """Return the first n records, and their neighbour, laid out as `convert` lays private data out."""
        return self.fresh(self.head(drawn, n)), self.fresh(self.neighbour(drawn, position, n))

    def comparable(self, data: Any) -> Any:
        """Return everything that must be the same in equal datasets, as arrays and Python values."""
        return data

    def alike(self, one: Any, other: Any) -> bool:
        """Tell whether two drawn datasets are of the same kind; arrays of numbers may differ in dtype."""
        return self.describe(one) == self.describe(other)

    def is_same_kind(self, data: Any, drawn: Any) -> bool:  # noqa: ARG002
        """Tell quickly whether two datasets of the same class surely have equal schemas."""
        return False

    def cast(self, drawn: Any, schema: Schema) -> Any:  # noqa: ARG002
        """Return drawn records in the container of the private data where that is easy, or unchanged."""
        return drawn

    def to_array(self, drawn: Any) -> Any:
        """Return drawn records as an array, from which they can be cast to another container."""
        raise NotImplementedError

    def from_array(self, values: NDArray[Any], schema: Any) -> Any:  # noqa: ARG002
        """Return an array as a dataset of this container with a schema, or unchanged if it does not fit."""
        return values

    @abstractmethod
    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        """Return a copy of private records as P would draw them, if P draws the same container."""

    def convert_by_array(self, data: Any, drawn: NDArray[Any], support: Any) -> Any:
        """Return a copy of private records as P would draw them, if P draws arrays."""
        return self.convert(data, self.from_array(drawn, self.describe(data)), support)


_LIBRARIES: dict[str, Callable[[str], Container | None]] = {}


def register(library: str, get: Callable[[str], Container | None]) -> None:
    """Register a library with a function that returns the adapter of a class, given the class's name."""
    _LIBRARIES[library] = get


def adapter(library: str, name: str) -> Any:
    """Return the adapter of a class of a library, or None if there is none."""
    return _LIBRARIES[library](name) if library in _LIBRARIES else None


@functools.cache
def _of_type(cls: type) -> Container | None:
    found: Container | None = adapter(cls.__module__.partition(".")[0], cls.__name__)
    return found


def find(data: Any) -> Container | None:
    """Return the adapter of a dataset, or None if the object is not a dataset."""
    cls: Any = type(data)
    return _of_type(cls)


def of(data: Any) -> Container:
    """Return the adapter of a dataset, or refuse it."""
    cls: Any = type(data)
    found = _of_type(cls)
    if found is None:
        name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
        raise DataError(f"""The dataset is a {name}, which is not supported. Pass a numpy array, a list, a
            data frame or series of pandas or polars, a pyarrow Table, a sparse matrix, a torch tensor, or a
            tuple or dict of aligned ones{_hint(cls)}.""")
    return found


def isolated(value: Any) -> Any:
    """Return a record, or a part of a dataset, that shows nothing of others if it is a container itself."""
    own = find(value)
    return value if own is None else own.isolated(value)


def _hint(cls: type) -> str:
    if "GroupBy" in cls.__name__:
        return " (pass the frame, and group inside the function)"
    if cls.__module__.partition(".")[0] == "networkx":
        return " (for a graph pass its edges, np.array(graph.edges))"
    if cls.__name__ == "LazyFrame":
        return " (collect() a lazy frame)"
    return " (to_numpy(), perhaps)" if hasattr(cls, "to_numpy") else ""


def of_schema(schema: Schema) -> Any:
    """Return the adapter of the container that a schema describes."""
    return adapter(*schema.container)


def convert(data: Any, drawn: Any, support: Any = None) -> Any:
    """Return a copy of private records as P would draw them: in its dtypes and, if given, inside its support.

    Each record is changed by itself, so neighbouring datasets stay neighbours. Numbers are clipped; missing
    values and values that P does not draw become one that it does (see `privatize.data.clipping`). Only the
    values are taken from the given container (see `Container.fresh`).

    Parameters
    ----------
    data : dataset
        The private records, whose schema fits.
    drawn : dataset
        Some records that P has drawn, as it drew them.
    support : object
        P's support, or None to leave values as they are.

    Examples
    --------
    >>> from privatize.data.records import convert
    >>> convert(np.array([-1, 50, 200]), np.zeros(2), (0.0, 100.0))
    array([  0.,  50., 100.])
    >>> convert([-1, 50, 200], np.zeros(2), (0.0, 100.0))
    [0.0, 50.0, 100.0]
    """
    own, wanted = of(data), of(drawn)
    if own is wanted:
        return own.convert(data, drawn, support)
    # Otherwise P's records are cast to the container of the private data, by way of an array.
    return own.convert_by_array(data, wanted.to_array(drawn), support)


def equal(one: Any, other: Any) -> bool:
    """Tell whether two datasets, or two values of any kind, are the same, bit by bit (NaN equals NaN)."""
    if type(one) is not type(other) or is_missing(one):
        return is_missing(one) and is_missing(other)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and _equal_arrays(one, other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if type(one) is dict:
        return one.keys() == other.keys() and equal(list(one.values()), [other[key] for key in one])
    own = find(one)
    if own is not None:
        return equal(own.comparable(one), own.comparable(other))
    return bool(one == other or (one != one and other != other))


def _equal_arrays(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.dtype.hasobject:
        return all(map(equal, one.ravel().tolist(), other.ravel().tolist()))
    if one.dtype.names:  # field by field, since the bytes between fields belong to no record
        return all(equal(one[name], other[name]) for name in one.dtype.names)
    one, other = np.atleast_1d(one, other)
    rows = max(1, _COMPARED * len(one) // max(1, one.nbytes))  # piece by piece, to save memory
    pieces = range(0, len(one), rows)
    return all(one[at : at + rows].tobytes() == other[at : at + rows].tobytes() for at in pieces)
