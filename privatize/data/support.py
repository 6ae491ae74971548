"""P's support, and how a private record is brought into it.

A support is a pair ``(low, high)`` of bounds, a `OneOf` of fixed values, a `Maybe` of either
where P draws missing values too, a dict of these by column, a tuple of them for aligned containers, or None
where nothing is known. Every value is changed by itself, whatever the others are, so neighbouring datasets
stay neighbours.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Maybe",
    "OneOf",
    "bounded",
    "bring",
    "bring_moments",
    "bring_numbers",
    "bring_texts",
    "cast",
    "codes",
    "is_pair",
    "join",
    "missing",
]

Array = NDArray[Any]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class OneOf:
    """A support of fixed values.

    Attributes
    ----------
    values : tuple
        What P draws.
    unknown : object
        What stands for everything else, missing values included.

    Examples
    --------
    >>> OneOf(("F", "M"), unknown="F")
    OneOf(('F', 'M'), unknown='F')
    """

    values: tuple[Any, ...]
    unknown: Any

    def __repr__(self) -> str:
        return f"OneOf({self.values!r}, unknown={self.unknown!r})"


@dataclass(frozen=True)
class Maybe:
    """A support of which missing values are a part.

    Attributes
    ----------
    inner : pair, OneOf or None
        The support of what is not missing.

    Examples
    --------
    >>> Maybe((0, 100))
    Maybe((0, 100))
    """

    inner: Any = None

    def __repr__(self) -> str:
        return f"Maybe({self.inner!r})"


def bounded(support: Any) -> bool:
    """Tell whether a support bounds anything.

    Examples
    --------
    >>> bounded((0.0, np.inf)), bounded({"age": None}), bounded((None, OneOf((0, 1), 0)))
    (True, False, True)
    """
    if support is None:
        return False
    if isinstance(support, OneOf):
        return True
    if isinstance(support, Maybe):
        return bounded(support.inner)
    if isinstance(support, dict):
        return any(map(bounded, support.values()))
    if is_pair(support):
        return any(bool((~_endless(end)).any()) for end in support)
    return any(map(bounded, support))


def is_fixed(support: Any) -> bool:
    """Tell whether a support, or that of what is not missing, is one of fixed values."""
    return isinstance(support.inner if isinstance(support, Maybe) else support, OneOf)


def split(support: Any, keys: Iterable[Any]) -> list[Any]:
    """Return the supports of a dataset's parts: by their names, or one after the other.

    Examples
    --------
    >>> split({"age": (0, 120)}, ["age", "sex"]), split(None, range(2)), split((None, (0, 1)), range(2))
    ([(0, 120), None], [None, None], [None, (0, 1)])
    """
    wanted = list(keys)
    if isinstance(support, dict):
        return [support.get(key) for key in wanted]
    aligned = isinstance(support, tuple) and not is_pair(support) and len(support) == len(wanted)
    return list(support) if aligned else [None] * len(wanted)


def is_pair(support: Any) -> bool:
    """Tell whether a support is a pair of bounds, and not a tuple of supports."""
    return (
        isinstance(support, tuple)
        and len(support) == 2
        and all(isinstance(end, int | float | np.ndarray | np.generic) for end in support)
    )


def _endless(end: Any) -> Any:
    values = np.asarray(end)
    return (
        np.isinf(values)
        if values.dtype.kind == "f"
        else np.isnat(values)
        if _dated(values)
        else values != values
    )


def _dated(values: Array) -> bool:
    return values.dtype.kind in "mM"


def join(supports: Iterable[Any]) -> Any:
    """Return a support that holds all of several, as a mixture's does.

    Examples
    --------
    >>> join([(0.0, 1.0), (0.5, 3.0)])
    (0.0, 3.0)
    """
    every = list(supports)
    if any(support is None for support in every):
        return None
    if any(isinstance(support, Maybe) for support in every):
        return Maybe(join(s.inner if isinstance(s, Maybe) else s for s in every))
    first = every[0]
    if all(isinstance(support, OneOf) for support in every):
        values = tuple(dict.fromkeys(value for support in every for value in support.values))
        return OneOf(values, first.unknown)
    if all(map(is_pair, every)):
        low, high = np.minimum.reduce([s[0] for s in every]), np.maximum.reduce([s[1] for s in every])
        return tuple(end.item() if np.ndim(end) == 0 and not _dated(end) else end for end in (low, high))
    if all(isinstance(support, dict) for support in every):
        return {key: join(support.get(key) for support in every) for key in first}
    if all(isinstance(s, tuple) and not is_pair(s) and len(s) == len(first) for s in every):
        return tuple(map(join, zip(*every, strict=True)))
    return None


# --- bringing values in -----------------------------------------------------------------------


def bring(values: Array, dtype: np.dtype[Any], support: Any, gone: Mask | None = None) -> Any:
    """Return an array of anything in P's dtype and, if a support is given, inside it.

    Parameters
    ----------
    values : array
        The private values.
    dtype : dtype
        What P draws.
    support : object
        What P's values lie in, or None.
    gone : array of bool, optional
        Which of the values are missing, beyond those that are NaN, NaT or None.
    """
    if dtype.kind in "biuf" and values.dtype.kind in "biuf":
        return bring_numbers(values, dtype, support, gone)
    if _dated(values) and values.dtype.kind == dtype.kind:
        return bring_moments(values, dtype, support, gone)
    if dtype.kind not in "USTO":
        return values.astype(dtype)
    listed = values.ravel().tolist()
    if gone is not None:
        listed = [None if lost else value for value, lost in zip(listed, gone.ravel().tolist(), strict=True)]
    if support is not None:
        listed = bring_texts(listed, support)
    elif gone is None:
        return values.astype(dtype)
    if dtype.kind == "O":
        made = np.empty(len(listed), dtype=object)
        made[:] = listed
        return made.reshape(values.shape)
    inner = support.inner if isinstance(support, Maybe) else support
    if dtype.kind == "U" and isinstance(inner, OneOf):  # as wide as the values, whatever few draws were
        dtype = np.result_type(dtype, np.array(inner.values).dtype)
    return np.array(listed, dtype=dtype).reshape(values.shape)


def bring_numbers(values: Array, dtype: np.dtype[Any], support: Any, gone: Mask | None = None) -> Any:
    """Return numbers in another dtype and, if a support is given, inside it.

    Numbers are clipped; missing ones, which P's support does not contain, become the middle of a bounded
    support or the one finite end of a half-bounded one. Where P draws missing values too, they are NaN in
    floats, and for the caller to mark in other dtypes.

    Examples
    --------
    >>> bring_numbers(np.array([-1, 50, 200]), np.dtype(float), (0.0, 100.0))
    array([  0.,  50., 100.])
    >>> bring_numbers(np.array([0.0, 1.0, 7.0]), np.dtype(int), OneOf((0, 1), unknown=0))
    array([0, 1, 0])
    """
    kept = isinstance(support, Maybe)
    inner = support.inner if kept else support
    lost = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    lost = lost if gone is None else lost | gone
    if isinstance(inner, OneOf):
        inside = np.isin(values, np.array(inner.values)) & ~lost
        found = np.where(inside, cast(values, dtype), np.array(inner.unknown, dtype=dtype))
    elif inner is None:
        found, kept = cast(values, dtype), True
    else:
        found = _clipped(values, dtype, inner, lost)
    if dtype.kind != "f":
        return found
    if inner is not None:
        found = found + 0.0  # P's support has one zero, not two
    # There are many NaNs, which code can tell apart: here there is one.
    return np.where(lost, np.array(np.nan, dtype=dtype), found) if kept and lost.any() else found


def bring_usual(values: Any, drawn: Any, support: Any) -> Array | None:
    """Return the same as `bring_numbers`, without warnings, in the usual case, or None.

    That is: arrays of float64, and a support with two ends. It takes a third of the time. What the usual case
    is depends on no value: whether a record is missing must not change how others are brought in, not even
    the sign of a zero. What is returned is laid out as drawn records are, whatever the private array is like.

    Examples
    --------
    >>> bring_usual(np.array([-1.0, 50.0, 200.0]), np.zeros(2), (0.0, 100.0))
    array([  0.,  50., 100.])
    >>> bring_usual(np.array([-1.0, np.nan]), np.zeros(2), (0.0, 100.0))
    array([ 0., 50.])
    """
    if type(values) is not np.ndarray or type(drawn) is not np.ndarray or type(support) is not tuple:
        return None
    if not drawn.dtype == values.dtype == np.float64 or len(support) != 2:
        return None
    low, high = support
    if type(low) is not float or type(high) is not float:
        return None
    found: Array = np.empty(values.shape, drawn.dtype)
    np.maximum(values, low, out=found)
    np.minimum(found, high, out=found)
    np.add(found, 0.0, out=found)  # there is one zero, not two
    lost = found != found
    if np.count_nonzero(lost):
        found[lost] = home(low, high)
    return found


def _clipped(values: Array, dtype: np.dtype[Any], ends: Any, lost: Mask) -> Array:
    low, high = (np.asarray(end, dtype=np.float64) for end in ends)
    if dtype.kind in "iu":  # whole numbers inside the support, so that rounding does not leave it
        low, high = np.ceil(low), np.floor(high)
    some = bool(lost.any())
    if dtype.kind in "iu" and values.dtype.kind in "iu":
        # In integers: as floats, those beyond 2^53 would not be told apart.
        first, last = ends
        plain = type(first) in (int, float) and type(last) in (int, float)
        edges = _known_edges(first, last, dtype) if plain else _edges(first, last, dtype)
        found = np.clip(values if values.dtype == dtype else cast(values, dtype), *edges)
    else:
        numbers = values if values.dtype.kind == "f" else values.astype(np.float64)
        found = cast(np.clip(np.where(lost, 0, numbers) if some else numbers, low, high), dtype)
    return np.where(lost, cast(np.asarray(home(low, high)), dtype), found) if some else found


def _edges(low: Any, high: Any, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return bounds as integers inside them."""
    near = np.ceil(np.asarray(low, dtype=np.float64)), np.floor(np.asarray(high, dtype=np.float64))
    found = [
        cast(np.asarray(end), dtype) if np.asarray(end).dtype.kind in "iu" else _whole(inside, dtype)
        for end, inside in zip((low, high), near, strict=True)
    ]
    return found[0], found[1]


_known_edges = functools.lru_cache(maxsize=256, typed=True)(_edges)  # 2 and 2.0 are not the same


def _whole(end: Array, dtype: np.dtype[Any]) -> Array:
    """Return a bound as an integer; an infinite one as the last that there is."""
    ends = np.iinfo(dtype)
    found = cast(np.where(np.isinf(end), 0.0, end), dtype)
    least, most = (np.array(edge, dtype=dtype) for edge in (ends.min, ends.max))
    last: Array = np.where(end == np.inf, most, np.where(end == -np.inf, least, found))
    return last


def home(low: Any, high: Any) -> Any:
    """Return the value that stands for a missing one: inside the support, public."""
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2
    end = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    return np.where(np.isfinite(low) & np.isfinite(high), middle, end)


def bring_moments(values: Array, dtype: np.dtype[Any], support: Any, gone: Mask | None = None) -> Array:
    """Return dates, times or durations in another unit and, if a support is given, inside it.

    Examples
    --------
    >>> ends = tuple(np.array(["2020-01-01", "2020-12-31"], dtype="M8[D]"))
    >>> bring_moments(np.array(["2021-03-01", "NaT"], dtype="M8[s]"), np.dtype("M8[D]"), ends)
    array(['2020-12-31', '2020-07-01'], dtype='datetime64[D]')
    """
    kept = isinstance(support, Maybe)
    inner = support.inner if kept else support
    if gone is not None:
        values = np.where(gone, np.array("NaT", dtype=values.dtype), values)
    if isinstance(inner, OneOf):
        found = values.astype(dtype)
        inside = np.isin(found, np.array(inner.values, dtype=dtype)) | (np.isnat(found) & kept)
        return np.where(inside, found, np.array(inner.unknown, dtype=dtype))
    if inner is None:
        return values.astype(dtype)
    # In the support's own unit, days say: what is below it P does not draw.
    low, high = map(np.asarray, inner)
    clipped = np.clip(values.astype(low.dtype), low, high)
    if not kept:
        clipped = np.where(np.isnat(clipped), low + (high - low) // 2, clipped)
    made: Array = clipped.astype(dtype)
    return made


def bring_texts(values: list[Any], support: Any) -> list[Any]:
    """Return texts, or values of any kind, with those that P does not draw replaced.

    None and NaN are missing values.

    Examples
    --------
    >>> bring_texts(["F", "x", None], OneOf(("F", "M"), unknown="M"))
    ['F', 'M', 'M']
    >>> bring_texts(["F", "x", None], Maybe(OneOf(("F", "M"), unknown="M")))
    ['F', 'M', None]
    """
    kept = isinstance(support, Maybe)
    if kept:
        support = support.inner
    if not isinstance(support, OneOf):
        return [None if missing(value) else value for value in values]
    allowed = {_key(value): value for value in support.values}
    if {type(value) for value in support.values} == {
        bool
    }:  # 0 and 1 are booleans too, where there are no others
        allowed |= {_key(int(value)): value for value in support.values}
    unknown = support.unknown
    made: list[Any] = []
    for value in values:
        if isinstance(value, np.generic):
            value = value.item()
        if kept and missing(value):
            made.append(None)
            continue
        try:
            made.append(allowed.get(_key(value), unknown))
        except TypeError:  # not hashable: nothing that P draws
            made.append(unknown)
    return made


def _key(value: Any) -> tuple[str, Any]:
    """Return a value such that 1 and 1.0 are the same, and True is another."""
    kind = type(value)
    return ("number" if kind in (int, float) else kind.__name__, value)


def codes(values: list[Any], known: list[Any]) -> list[int]:
    """Return the place of each value among known ones, -1 where it is none of them.

    Examples
    --------
    >>> codes(["M", "x", None], ["F", "M"])
    [1, -1, -1]
    """
    places = {_key(value): at for at, value in enumerate(known)}
    found = []
    for value in values:
        try:
            found.append(places.get(_key(value), -1))
        except TypeError:  # not hashable
            found.append(-1)
    return found


def missing(value: Any) -> bool:
    """Tell whether a value stands for a missing one, as None, NaN, NaT and pandas' NA do."""
    if value is None:
        return True
    kind = type(value)
    if kind is str:
        return False
    if kind.__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(value != value)


def cast(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers in another dtype; integers saturate, they never wrap."""
    if dtype.kind not in "iu" or values.dtype.kind == "b":
        with np.errstate(over="ignore"):  # a warning would tell that a private number is huge
            return values.astype(dtype)
    ends = np.iinfo(dtype)
    if values.dtype.kind in "iu":
        own = np.iinfo(values.dtype)
        found: Array = np.clip(values, max(own.min, ends.min), min(own.max, ends.max)).astype(dtype)
        return found
    # In float64, since float32 has no 2^31 - 1; the nearest floats inside the integer range.
    high = np.nextafter(float(ends.max), 0) if ends.bits > 52 else float(ends.max)
    whole = np.nan_to_num(np.rint(values.astype(np.float64)), nan=0.0)
    with np.errstate(invalid="ignore"):
        inside: Array = np.clip(whole, float(ends.min), high).astype(dtype)
    return inside
