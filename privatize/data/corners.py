"""Corners of a support: the extreme values at each place of a record, and records that have them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from privatize.data import container, frames
from privatize.data.clipping import value_in
from privatize.data.parts import as_array, parts_of
from privatize.data.support import OneOf, coordinate, is_pair, split, unwrap

FAR = 1e6
"""What stands for an infinite bound: far from most numbers, and small enough for an array of that length."""

Path = tuple[Any, ...]  # keys of aligned containers, then the number of a column or of a coordinate


class Place(NamedTuple):
    """A place that every record has, such as a column.

    Attributes
    ----------
    path : tuple
        Where it is.
    values : tuple
        Its corners: both bounds, zero, each category, and None for a missing value.
    """

    path: Path
    values: tuple[Any, ...]


def places(drawn: Any, support: Any, *, beyond: bool = False) -> list[Place]:
    """Return the places of drawn records, with their corners; with `beyond`, numbers beyond the bounds too.

    Examples
    --------
    >>> places(([1.5, 2.0], ["F", "M"]), ((0.0, 9.0), OneOf(("F", "M"), unknown="F")))
    [Place(path=(0, 0), values=(0.0, 9.0)), Place(path=(1, 0), values=('F', 'M'))]
    """
    if isinstance(drawn, tuple | dict):
        keys = range(len(drawn)) if isinstance(drawn, tuple) else list(drawn)
        parts = zip(keys, split(support, keys), strict=True)
        inner = [(key, place) for key, end in parts for place in places(drawn[key], end, beyond=beyond)]
        return [Place((key, *place.path), place.values) for key, place in inner]
    named = parts_of(drawn)  # of a frame, or of a list of dicts
    if named is not None:
        by_name = support if isinstance(support, dict) else {named[0][0]: support}  # of a series
        columns = [(column, by_name.get(name)) for name, column in named]
    elif isinstance(drawn, list):
        columns = [(drawn, support)]
    else:
        values = as_array(drawn[:1])
        flat: Any = [] if values.dtype.names else values.reshape(1, -1).T
        columns = [(column, coordinate(support, values.shape[1:], at)) for at, column in enumerate(flat)]
    return [Place((at,), _corners(*column, beyond)) for at, column in enumerate(columns)]


def _corners(column: Any, support: Any, beyond: bool) -> tuple[Any, ...]:
    inner, optional = unwrap(support)
    known = [value for value in column if value is not None] if isinstance(column, list) else column
    kind = as_array(known).dtype.kind
    found: list[Any] = [False, True] if kind == "b" else []
    if isinstance(inner, OneOf):
        found = list(inner.values)
    elif is_pair(inner) and np.asarray(inner[0]).dtype.kind in "mM":
        # Only conversion makes Python's dates of them, and with `beyond` nothing is converted.
        found = [] if beyond and isinstance(column, list) else list(inner)
    elif is_pair(inner) or kind in "iuf":
        low, high = inner or (-np.inf, np.inf)
        low = low if np.isfinite(low) else min(-FAR, high - FAR)
        high = high if np.isfinite(high) else max(FAR, low + FAR)
        found = [low, high, 0.0] if low < 0 < high else [low, high]
    return (*found, *([-FAR, FAR] if beyond and kind in "iuf" else []), *([None] if optional else []))


def put(data: Any, cells: Mapping[tuple[int, Path], Any]) -> Any:
    """Return a copy of records with other values, None for a missing one, by row and place.

    Examples
    --------
    >>> put(np.zeros((2, 2)), {(0, (1,)): 5.0})
    array([[0., 5.],
           [0., 0.]])
    """
    if not cells:
        return data
    if isinstance(data, tuple | dict):
        made = dict(enumerate(data) if isinstance(data, tuple) else data)
        for key, part in list(made.items()):
            made[key] = put(part, {(row, path[1:]): v for (row, path), v in cells.items() if path[0] == key})
        return tuple(made.values()) if isinstance(data, tuple) else made
    if frames.kind(data) is not None:
        for at in {path[0] for _, path in cells}:
            data = frames.put(data, at, {row: value for (row, path), value in cells.items() if path[0] == at})
        return data
    if isinstance(data, list):
        return _put_listed(data, cells)
    if hasattr(data, "tocsr"):
        return type(data)(put(data.toarray(), cells))
    dtype = as_array(data[:1]).dtype
    if dtype.kind == "U":  # as wide as the widest of the new values
        data = data.astype(np.result_type(dtype, *(np.asarray(value) for value in cells.values())))
    made = container.of(data).fresh(data)
    flat = made.reshape(len(made), -1)
    for (row, (at,)), value in cells.items():
        flat[row, at] = value_in(value, dtype)
    return made


def _put_listed(data: list[Any], cells: Mapping[tuple[int, Path], Any]) -> list[Any]:
    made = [dict(one) if isinstance(one, dict) else one for one in data]
    for (row, (at,)), value in cells.items():
        owner, key = (made[row], list(made[row])[at]) if isinstance(made[row], dict) else (made, row)
        integer = type(owner[key]) is int and isinstance(value, float)
        owner[key] = round(value) if integer else value
    return made
