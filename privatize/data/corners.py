"""Corners of a support: the extreme values at each place of a record, and records that have them."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from privatize.data import container, frames
from privatize.data.clipping import is_missing, value_in
from privatize.data.parts import as_array
from privatize.data.support import OneOf, is_pair, split, unwrap

FAR = 1e6
"""What stands for an infinite bound: far from most numbers, and small enough for an array of that length."""
_MOST = 64  # corners of one place
_NUMBERS = ("int", "float", "bool")

Path = tuple[Any, ...]  # names of parts and columns, and the number of a coordinate in an array


class Place(NamedTuple):
    """A place of every record, such as a column.

    Attributes
    ----------
    path : tuple
        Where it is in a record.
    ends : tuple of float, or None
        The least and the largest number there, if it has numbers or dates and both are finite.
    dtype : str
        The dtype of its floats, or an empty string.
    values : tuple
        Its corners: both bounds, zero, each category, and None for a missing value.
    """

    path: Path
    ends: tuple[float, float] | None
    dtype: str
    values: tuple[Any, ...]


def places(drawn: Any, support: Any, *, beyond: bool = False) -> list[Place]:
    """Return the places of drawn records, with their corners; with `beyond`, numbers beyond the bounds too.

    Examples
    --------
    >>> support = (0.0, 9.0), OneOf(("F", "M"), unknown="F")
    >>> [place.values for place in places(([1.5, 2.0], ["F", "M"]), support)]
    [(0.0, 9.0), ('F', 'M')]
    """
    if frames.kind(drawn) is not None:
        names, kinds = frames.names(drawn), frames.kinds(drawn)
        single = frames.kind(drawn)[0] == "series"  # type: ignore[index]
        ends = [support] if single else [support.get(name) if support else None for name in names]
        dtypes = [as_array(column).dtype for column in frames.contents(drawn)]
        return [
            _place((at,), end, dtype if kind in _NUMBERS else np.dtype(object), beyond=beyond)
            for at, (end, dtype, kind) in enumerate(zip(ends, dtypes, kinds, strict=False))
        ]
    if isinstance(drawn, list):
        if not isinstance(drawn[0], dict):
            return [_place((), support, _type_of(drawn), beyond=beyond)]
        named = zip(drawn[0], split(support, list(drawn[0])), strict=True)
        return [_place((k,), end, _type_of([one[k] for one in drawn]), beyond=beyond) for k, end in named]
    if isinstance(drawn, tuple | dict):
        keys = range(len(drawn)) if isinstance(drawn, tuple) else list(drawn)
        parts = zip(keys, split(support, keys), strict=True)
        inner = [(key, place) for key, end in parts for place in places(drawn[key], end, beyond=beyond)]
        return [place._replace(path=(key, *place.path)) for key, place in inner]
    values = as_array(drawn[:1])
    if values.dtype.names:
        return []
    ends = [_at(support, values.shape[1:], at) for at in range(math.prod(values.shape[1:]))]
    found = [_place((at,), end, values.dtype, beyond=beyond) for at, end in enumerate(ends)]
    if values.dtype.kind in "biu":  # an array of integers has no missing ones, whatever the support says
        found = [each._replace(values=tuple(v for v in each.values if v is not None)) for each in found]
    return found


def _at(support: Any, shape: tuple[int, ...], at: int) -> Any:
    """Return the support of one number of a record."""
    inner, optional = unwrap(support)
    if is_pair(inner):
        inner = tuple(np.broadcast_to(end, shape).reshape(-1)[at] for end in inner)
    return type(support)(inner) if optional else inner


def _type_of(values: list[Any]) -> np.dtype[Any]:
    known = {type(value) for value in values if not is_missing(value)}
    return np.array([kind() for kind in known]).dtype if known <= {bool, int, float} else np.dtype(object)


def _place(path: Path, support: Any, dtype: np.dtype[Any], *, beyond: bool) -> Place:
    inner, optional = unwrap(support)
    found: list[Any] = []
    numeric = dtype.kind in "iuf"
    if isinstance(inner, OneOf):
        found = list(inner.values[:: -(-len(inner.values) // _MOST)])
    elif is_pair(inner):
        found = _bounds(*inner)
    elif numeric or dtype.kind == "b":
        found = [-FAR, FAR, 0.0] if numeric else [False, True]
    if beyond and numeric:
        found += [-FAR, FAR]
    if optional:
        found.append(None)
    ends = _ends(inner.values if isinstance(inner, OneOf) else inner or ())
    return Place(path, ends, dtype.name if dtype.kind == "f" else "", tuple(found))


def _bounds(low: Any, high: Any) -> list[Any]:
    if np.asarray(low).dtype.kind in "mM":
        return [low, high]
    low = low if np.isfinite(low) else min(-FAR, high - FAR)
    high = high if np.isfinite(high) else max(FAR, low + FAR)
    return [low, high, *([0.0] if low < 0 < high else [])]


def _ends(values: Any) -> tuple[float, float] | None:
    """Return the least and the largest of finite numbers, or of dates as numbers; None for other values."""
    found = np.asarray(values)
    numbers = found.astype(np.int64) if found.dtype.kind in "mM" else found
    if not found.size or numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all():
        return None
    return float(numbers.min()), float(numbers.max())


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
        keys = list(range(len(data)) if isinstance(data, tuple) else data)
        parts = [
            put(data[key], {(row, path[1:]): v for (row, path), v in cells.items() if path[0] == key})
            for key in keys
        ]
        return tuple(parts) if isinstance(data, tuple) else dict(zip(keys, parts, strict=True))
    if frames.kind(data) is not None:
        for at in sorted({path[0] for _, path in cells}):
            data = frames.put(data, at, {row: value for (row, path), value in cells.items() if path == (at,)})
        return data
    if isinstance(data, list):
        made = [dict(one) if isinstance(one, dict) else one for one in data]
        for (row, path), value in cells.items():
            owner, key = (made[row], path[0]) if path else (made, row)
            owner[key] = _of_type(value, owner[key])
        return made
    dtype = as_array(data[:1]).dtype
    if dtype.kind == "U":  # as wide as the widest of the new values
        data = data.astype(np.result_type(dtype, *(np.asarray(value) for value in cells.values())))
    made = data.tolil(copy=True) if hasattr(data, "tolil") else container.of(data).fresh(data)
    flat = made if hasattr(data, "tolil") else made.reshape(len(made), -1)
    for (row, (at,)), value in cells.items():
        flat[row, at] = value_in(value, dtype)
    return made.asformat(data.format) if hasattr(data, "tolil") else made


def _of_type(value: Any, before: Any) -> Any:
    """Return a number as an int where P draws these."""
    return round(float(value)) if type(before) is int and isinstance(value, float) else value
