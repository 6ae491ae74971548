"""Recognize columns of private data by their content: copies, parts, and numbers computed from them."""

import functools
from collections.abc import Callable, Iterator

import numpy as np

from privatize.data.clipping import Array, is_missing
from privatize.data.parts import comparable
from privatize.identity.memory import is_scalar

FEW = 8
"""Fewer values than this are not compared by content: constants could equal them by accident."""

_SOME = 20  # values that parts of columns must share; FEW are enough if they are measured, and in a row
_WIDE = 32  # columns of one array that may be parts of others; all of its columns may be copies
_BITS = 20  # one coincidence in a million


class Copies:
    """The columns of private data, for finding copies of them.

    Parameters
    ----------
    arrays : list of arrays
        The arrays with the columns.
    lists : bool
        Whether a list that private values may have been chosen from is public.
    """

    def __init__(self, arrays: list[Array], *, lists: bool) -> None:
        self._arrays, self._lists = arrays, lists

    def has(self, array: Array) -> bool:
        """Tell whether a column of an array is a private column, or a part of one, or has one as a part."""
        if any(map(self._equal, _flat(array, rows=True))):
            return True
        return any(one.overlaps(own, self._lists) for one in _candidates(array) for own in self._columns)

    def declares(self, array: Array) -> bool:
        """Tell whether an array consists of exactly the measured numbers of a private column."""
        return any(one.permutes(own) for one in _candidates(array) for own in self._columns)

    def in_bytes(self, raw: bytes) -> bool:
        """Tell whether bytes, such as a pickle, have a private column in them."""
        columns = (column for array in self._arrays if not array.dtype.hasobject for column in _flat(array))
        found = (each for each in columns if len(raw) >= each.nbytes and each.tobytes() in raw)
        return any(_distinctive(_numbered(each)) for each in found)

    @functools.cached_property
    def _columns(self) -> "list[_Column]":
        return [_Column(column) for each in self._arrays for column in _flat(each, _WIDE)]

    @functools.cached_property
    def _lengths(self) -> set[int]:
        return {len(column) for array in self._arrays for column in _flat(array)}

    @functools.cached_property
    def _heads(self) -> dict[bytes, list[tuple[Array, Callable[[Array], Array]]]]:
        """The columns, and what casting makes of them, by their first values."""
        found: dict[bytes, list[tuple[Array, Callable[[Array], Array]]]] = {}
        for own in (own for array in self._arrays for own in _flat(array)):
            head = _numbered(own[:FEW])
            for cast in _CASTS if head.dtype == np.float32 else _CASTS[:1]:
                found.setdefault(cast(head).tobytes(), []).append((own, cast))
        return found

    def _equal(self, column: Array) -> bool:
        """Tell whether a column is a private one, or a cast of one; the first values are compared first."""
        if len(column) not in self._lengths:
            return False
        for own, cast in self._heads.get(_numbered(column[:FEW]).tobytes(), ()):
            values = _numbered(own)
            made = cast(values) if values.dtype == np.float32 else values
            if made.tobytes() == _numbered(column).tobytes() and _distinctive(made):
                return True
        return False


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

    def overlaps(self, private: "_Column", lists: bool) -> bool:
        """Tell whether this column or a private one has the other's values.

        They may be in any order, or some in a row, or some measured ones. Numbers that rise and fall with the
        other's, such as logarithms, count too. With `lists`, a list that values were chosen from is no copy.
        """
        if self.text != private.text or self.values.dtype != private.values.dtype:
            return False
        short, long = sorted((self.values, private.values), key=len)
        if len(short) < _SOME:
            # The cheap checks come first: there are many short lists, and long columns.
            found = _measured(short) and short.tobytes() in long.tobytes()
            return found and _measured(long, 0.5) and _distinctive(short)
        if len(short) == len(long) and not self.text and _same_order(short, long):
            return _distinctive(short, bits=3 * _BITS)
        way = _shared(short, long)
        if not way or not lists or way == "permuted":
            return bool(way)
        repeated = len(np.unique(private.values)) < len(private.values) / 2
        return not (way == "measured" and repeated) and not _code_book(self.values, private.values)

    def permutes(self, private: "_Column") -> bool:
        """Tell whether this has every measured number of a private column once, and no other."""
        one, own = self.values, private.values
        if len(one) != len(own) or len(one) < _SOME or one.dtype != own.dtype or not _measured(one):
            return False
        return bool((np.sort(one) == np.sort(own)).all()) and _distinctive(np.sort(one), _SOME)


def _candidates(array: Array) -> list[_Column]:
    """Return the columns of an array that could be parts of others; most short lists could not."""
    found = [_Column(column) for column in _flat(array, _WIDE, rows=True)]
    return [one for one in found if one.size >= _SOME or (not one.text and _measured(one.values))]


def _measured(values: Array, different: float = 0.9) -> bool:
    """Tell whether a column has measured numbers: most are not integers, and they hardly ever repeat."""
    if values.dtype != np.float32 or np.mean(values == np.rint(values)) > 0.5:
        return False
    return len(np.unique(values)) >= different * len(values)


def _shared(short: Array, long: Array) -> str:
    """Return how a column has the values of a shorter one: "in a row", "permuted", "measured", or ""."""
    probes = short[:: max(1, len(short) // 8)]
    hits = (long == probes[:, None]).any(axis=1)
    hits[0] |= probes[0] != probes[0]  # missing values are equal
    if not hits[0] and hits.sum() < 2:  # this rules out most columns
        return ""
    if hits[0] and short.tobytes() in long.tobytes():
        return "in a row" if _distinctive(short, bits=3 * _BITS) else ""
    if len(short) == len(long) and hits.all() and (np.sort(short) == np.sort(long)).all():
        return "permuted" if _distinctive(np.sort(short), _SOME) else ""
    return "measured" if _shares_measured(short, long) else ""


def _shares_measured(short: Array, long: Array) -> bool:
    """Tell whether most numbers of a column are measured ones of another, and those are not on a grid."""
    if short.dtype != np.float32:
        return False
    values = np.unique(short[np.isfinite(short)])
    # Codes and counts prove nothing: a public table of codes has everybody's.
    if len(values) < max(_SOME, len(short) // 2) or np.mean(values == np.rint(values)) > 0.5:
        return False
    known = np.unique(long[np.isfinite(long)])
    gap = float(np.diff(known).min(initial=np.inf))
    taken = len(known) * gap / max(float(known[-1]) - float(known[0]), gap)  # near 1 for a grid
    return bool(np.isin(values, known).mean() >= max(0.5, 3 * taken)) and _distinctive(short, bits=3 * _BITS)


def _code_book(public: Array, private: Array) -> bool:
    """Tell whether private values were chosen from a public list: prices, the places of shops, codes.

    Such a list has most of its values once, and has nearly all private values, some of which occur more often
    in the data than in the list. A copy of records with nearly all values would have many of them repeatedly.
    If most private values are different and nearly all of the list are among them, the list is the data.
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
    """Tell whether two columns rise and fall together, or the opposite, and are not just sorted."""
    for some in (slice(64), slice(None)):  # a few values rule out most columns
        order = np.argsort(one[some], kind="stable")
        if (np.diff(order) == 1).all() or (np.diff(order) == -1).all():
            return False
        orders = (np.argsort(side * other[some].astype(float), kind="stable") for side in (1, -1))
        if not any((order == each).all() for each in orders):
            return False
    return True


def _flat(array: Array, most: int | None = None, *, rows: bool = False) -> Iterator[Array]:
    """Yield the columns of an array that could be compared, and the entire array as one column.

    Parameters
    ----------
    array : array
        Any array.
    most : int, optional
        The largest number of columns; others are left out.
    rows : bool
        Whether its rows count as columns too: pandas stores columns as rows.
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
    """Return a column as numbers: strings by their hash, all missing values equal, and both zeros."""
    if column.dtype == object and not all(map(is_scalar, column.tolist())):
        return np.zeros(len(column), np.float32)  # comparing other objects would run their own code
    made = comparable(column)
    if made.dtype.kind in "US":
        return np.array([hash(value) for value in made.tolist()], dtype=np.int64)
    if made.dtype == np.float32:
        made = made + np.float32(0)
        made[made != made] = np.nan
    return made


def _distinctive(column: Array, distinct: int = 2, bits: float = _BITS) -> bool:
    """Tell whether a column is unlikely to equal another one by accident, and is no range of numbers.

    Its information, in bits, is its length times the entropy of its values.
    """
    _, counts = np.unique(column[:1000], return_counts=True)
    share = counts / counts.sum()
    if len(counts) < distinct or -(share * np.log2(share)).sum() * len(column) < bits:
        return False
    steps = np.diff(column.astype(float))
    tolerance = 1e-6 * np.abs(column).max() if column.dtype == np.float32 else 0
    return not np.ptp(steps) <= tolerance  # this is true if values are missing
