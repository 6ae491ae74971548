"""Corners of a support: the extreme values at each place of a record, and records that have them."""

import copy
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from privatize.data.clipping import value_in
from privatize.data.columns import Column
from privatize.data.container import of
from privatize.data.parts import as_array, edited, leaves_of, numbers_of
from privatize.data.persons import Persons
from privatize.data.support import OneOf, is_pair, unwrap

FAR = 1e6
"""What stands for an infinite bound: far from most numbers, and small enough for an array of that length."""

Path = tuple[int, int]  # the number of a column, and of a coordinate of its records
COUNT: Path = (-1, 0)
"""The place of a person's number of rows."""


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
    found = []
    if type(drawn) is Persons:
        most = drawn.unit.most or int(drawn.counts.max())
        found = [Place(COUNT, tuple(dict.fromkeys((0 if drawn.unit.empty else 1, most))))]
    for leaf, (_, column, inside) in enumerate(leaves_of(drawn, support, every=True)):
        numbers = () if column.values.dtype.names else numbers_of("", column, inside)
        corners = [_corners(values, own, beyond) for _, values, own in numbers]
        found += [Place((leaf, at), each) for at, each in enumerate(corners)]
    return found


def _corners(values: Any, support: Any, beyond: bool) -> tuple[Any, ...]:
    inner, optional = unwrap(support)
    listed = values.dtype.kind == "O"
    kind = as_array([value for value in values if value is not None] if listed else values).dtype.kind
    found: list[Any] = [False, True] if kind == "b" else []
    if isinstance(inner, OneOf):
        found = list(inner.values)
    elif is_pair(inner) and np.asarray(inner[0]).dtype.kind in "mM":
        # Only conversion makes Python's dates of them, and with `beyond` nothing is converted.
        found = [] if beyond and listed else list(inner)
    elif is_pair(inner) or kind in "iuf":
        found = _ends(inner)
    return (*found, *([-FAR, FAR] if beyond and kind in "iuf" else []), *([None] if optional else []))


def _ends(bounds: Any) -> list[Any]:
    """Return both bounds, or what stands for those that are infinite, and zero if it is between them."""
    low, high = bounds or (-np.inf, np.inf)
    low = low if np.isfinite(low) else min(-FAR, high - FAR)
    high = high if np.isfinite(high) else max(FAR, low + FAR)
    return [low, high, 0.0] if low < 0 < high else [low, high]


def put(data: Any, cells: Mapping[tuple[int, Path], Any]) -> Any:
    """Return a copy of records with other values, None for a missing one, by row and place.

    Examples
    --------
    >>> put(np.zeros((2, 2)), {(0, (0, 1)): 5.0})
    array([[0., 5.],
           [0., 0.]])
    """
    if type(data) is Persons:
        data = _resized(data, {row: value for (row, path), value in cells.items() if path == COUNT})
        starts = np.cumsum(data.counts) - data.counts
        every = ((row, path, range(starts[row], starts[row] + data.counts[row])) for row, path in cells)
        of_rows = {(at, path): cells[row, path] for row, path, own in every for at in own if path != COUNT}
        return replace(data, rows=put(data.rows, of_rows))
    leaf = itertools.count()

    def edit(_: str, column: Column, __: Any) -> Column:
        at = next(leaf)
        own = {(row, path[1]): value for (row, path), value in cells.items() if path[0] == at}
        return _put(column, own) if own else column

    return edited(data, edit, every=True)


def _resized(data: Persons, counts: Mapping[int, int]) -> Persons:
    """Return persons of whom some have another number of rows: their rows are repeated, or left out."""
    before, starts = data.counts, np.cumsum(data.counts) - data.counts
    after = before.copy()
    for row, count in counts.items():
        after[row] = count
    # Somebody without rows gets those of the first person who has some.
    own = np.where(before > 0, np.arange(len(before)), int(np.argmax(before > 0)))
    after = after if before.any() else before
    places = [
        starts[one] + np.arange(count) % max(before[one], 1) for one, count in zip(own, after, strict=True)
    ]
    rows = of(data.rows).take(data.rows, np.concatenate(places).astype(np.intp))
    return replace(data, counts=after, rows=rows)


def _put(column: Column, cells: Mapping[tuple[int, int], Any]) -> Column:
    dtype = column.values.dtype
    if dtype.kind == "U":  # as wide as the widest of the new values
        dtype = np.result_type(dtype, *(np.asarray(value) for value in cells.values()))
    values = column.values.astype(dtype)
    flat, missing = values.reshape(len(values), -1), copy.copy(column.missing)
    for (row, at), value in cells.items():
        integer = type(flat[row, at]) is int and isinstance(value, float)
        flat[row, at] = round(value) if integer else value_in(value, dtype)
        if missing is not None:
            missing[row] = value is None
    return Column(values, missing)
