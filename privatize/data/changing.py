"""Tell which records conversion changes, and how: clipped, filled or recoded, column by column.

A record is in at most one kind in each column, by its own values alone, whatever the other records are.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from privatize.data import frames
from privatize.data.clipping import Array, absent_in, codes, objects
from privatize.data.columns import values_of
from privatize.data.lists import to_array
from privatize.data.parts import as_array
from privatize.data.support import OneOf, coordinate, is_pair, split, unwrap

MOST_COLUMNS = 32  # an array with more numbers in a record counts as one column


class Column(NamedTuple):
    """A column of private data, and which of its records conversion changes.

    Attributes
    ----------
    name : str
        Its name; "value" for the only one.
    kinds : tuple of str
        The ways in which P's support lets a value be changed.
    codes : array of int
        For each record 0, or the number of its kind, from 1.
    """

    name: str
    kinds: tuple[str, ...]
    codes: Array


def changes(given: Any, support: Any) -> list[Column]:
    """Return the columns whose values P's support may change, with what happened to each record.

    Casting is no change: rounding to integers, say, or leaving the time of day out of dates.

    Parameters
    ----------
    given : dataset
        The private records.
    support : object
        P's support.

    Examples
    --------
    >>> sexes = OneOf(("F", "M"), unknown="F")
    >>> data = {"age": np.array([31.0, np.nan, 430.0]), "sex": ["M", "F", "f "]}
    >>> for column in changes(data, {"age": (0, 120), "sex": sexes}):
    ...     print(column.name, column.kinds, column.codes)
    age ('clipped', 'filled') [0 2 1]
    sex ('recoded', 'filled') [0 0 1]
    """
    parts = [part for part in _walk(given, support, ()) if kinds_of(part[2])]
    return [Column(", ".join(path) or "value", kinds_of(end), found) for path, found, end in parts]


def kinds_of(support: Any) -> tuple[str, ...]:
    """Return the ways in which the support of a column lets values be changed.

    Examples
    --------
    >>> kinds_of((0, 1)), kinds_of(None)
    (('clipped', 'filled'), ())
    """
    inner, optional = unwrap(support)
    if inner is None:
        return ()
    return ("recoded" if isinstance(inner, OneOf) else "clipped", *(() if optional else ("filled",)))


_Part = tuple[tuple[str, ...], Array, Any]  # names, codes, and the support


def _walk(given: Any, support: Any, path: tuple[str, ...]) -> Iterator[_Part]:
    """Yield the columns of a dataset, in the order of its parts."""
    if isinstance(given, tuple | dict):
        keys: Any = range(len(given)) if isinstance(given, tuple) else tuple(given)
        for key, end in zip(keys, split(support, keys), strict=True):
            name = f"part {key + 1}" if isinstance(key, int) else key
            yield from _walk(given[key], end, (*path, name))
    elif frames.kind(given) is not None:
        yield from _of_frame(given, support, path)
    elif isinstance(given, list) and isinstance(support, dict):
        yield from _walk({name: [record.get(name) for record in given] for name in support}, support, path)
    elif support is not None:
        yield from _of_array(given, support, path)


def _of_frame(given: Any, support: Any, path: tuple[str, ...]) -> Iterator[_Part]:
    if frames.kind(given) == ("frame", "pandas") and frames.index_names(given):
        given = given.reset_index()  # an index that P draws may have a support, like a column
    names, one = frames.names(given), (frames.kind(given) or ("",))[0] == "series"
    for at, (name, column) in enumerate(zip(names, frames.columns(given), strict=True)):
        end = support.get(name) if isinstance(support, dict) else coordinate(support, (len(names),), at)
        own = path if one else (*path, str(name))
        yield own, _codes(*values_of(column), end), end


def _of_array(given: Any, support: Any, path: tuple[str, ...]) -> Iterator[_Part]:
    """Yield each number of a record as a column, or all of them as one."""
    if hasattr(given, "tocsr"):
        yield path, _of_sparse(given, support), support
        return
    values, missing = _of_list(given, support) if isinstance(given, list) else (as_array(given), None)
    found = _codes(values, missing, support)
    if found.ndim == 2 and 1 < found.shape[1] <= MOST_COLUMNS:
        yield from (((*path, f"column {at}"), each, support) for at, each in enumerate(found.T))
    else:
        yield path, found.reshape(len(found), -1).max(axis=1, initial=0), support


def _of_sparse(given: Any, support: Any) -> Array:
    rows = given.tocsr(copy=True)
    rows.sum_duplicates()
    cells, found = rows.tocoo(), np.zeros(given.shape[0], dtype=np.int8)
    low, high = (np.broadcast_to(end, given.shape[1:])[cells.col] for end in support)
    np.maximum.at(found, cells.row, _codes(cells.data, None, (low, high)))
    return found


def _of_list(given: list[Any], support: Any) -> tuple[Array, Any]:
    """Return a list as an array, and which values are missing."""
    inner, _ = unwrap(support)
    if not is_pair(inner):
        return objects(given), None
    dated = np.asarray(inner[0]).dtype.kind == "M"
    return to_array(given, np.dtype("M8[us]" if dated else "f8"))


def _codes(values: Array, missing: Any, support: Any) -> Array:
    """Return, for each value, 0 or the number of its kind."""
    inner, optional = unwrap(support)
    if inner is None:
        return np.zeros(values.shape, dtype=np.int8)
    changed = ~(_known(values, inner) if isinstance(inner, OneOf) else _inside(values, *inner))
    return np.where(absent_in(values, missing), 0 if optional else 2, changed).astype(np.int8)


def _inside(values: Array, low: Any, high: Any) -> Array:
    if values.dtype.kind in "mM":  # in the support's own unit, as they are converted
        values = values.astype(np.asarray(low).dtype)
    return np.asarray((values >= low) & (values <= high))


def _known(values: Array, inner: OneOf) -> Array:
    """Tell which values are among fixed ones, as `privatize.data.clipping` does."""
    if values.dtype.kind in "biufmM":
        dated = values.dtype.kind in "mM"
        fixed = np.array(inner.values, dtype=f"{values.dtype.kind}8" if dated else None)
        return np.isin(values.astype(fixed.dtype) if dated else values, fixed)
    flags = {type(value) for value in inner.values} == {bool}  # P draws booleans only: 0 and 1 mean them
    known = [*inner.values, *(map(int, inner.values) if flags else ())]
    return np.reshape([code >= 0 for code in codes(values.ravel().tolist(), known)], values.shape)
