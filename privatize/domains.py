"""P's support, and how a private record is brought into it.

A support is a pair ``(low, high)`` of bounds, a :class:`OneOf` of fixed values, a :class:`Maybe` of either
where P draws missing values too, a dict of these by column, a tuple of them for aligned containers, or None
where nothing is known. Every value is changed by itself, whatever the others are, so neighbouring datasets
stay neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Maybe", "OneOf", "bounded", "bring", "bring_moments", "bring_numbers", "bring_texts", "join"]

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
    (np.float64(0.0), np.float64(3.0))
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
        return np.minimum.reduce([s[0] for s in every]), np.maximum.reduce([s[1] for s in every])
    if all(isinstance(support, dict) for support in every):
        return {key: join(support.get(key) for support in every) for key in first}
    if all(isinstance(s, tuple) and not is_pair(s) and len(s) == len(first) for s in every):
        return tuple(map(join, zip(*every, strict=True)))
    return None


# --- bringing values in -----------------------------------------------------------------------


def bring(values: Array, dtype: np.dtype[Any], support: Any) -> Any:
    """Return an array of anything in P's dtype and, if a support is given, inside it."""
    if dtype.kind in "biuf" and values.dtype.kind in "biuf":
        return bring_numbers(values, dtype, support)
    if _dated(values) and values.dtype.kind == dtype.kind:
        return bring_moments(values, dtype, support)
    if dtype.kind in "USTO" and support is not None:
        found = bring_texts(values.ravel().tolist(), support)
        if dtype.kind == "O":
            made = np.empty(len(found), dtype=object)
            made[:] = found
            return made.reshape(values.shape)
        return np.array(found, dtype=dtype).reshape(values.shape)
    return values.astype(dtype)


def bring_numbers(values: Array, dtype: np.dtype[Any], support: Any) -> Any:
    """Return numbers in another dtype and, if a support is given, inside it.

    Numbers are clipped; NaN, which P's support does not contain, becomes the middle of a bounded support or
    the one finite end of a half-bounded one.

    Examples
    --------
    >>> bring_numbers(np.array([-1, 50, 200]), np.dtype(float), (0.0, 100.0))
    array([  0.,  50., 100.])
    >>> bring_numbers(np.array([0.0, 1.0, 7.0]), np.dtype(int), OneOf((0, 1), unknown=0))
    array([0, 1, 0])
    """
    kept = isinstance(support, Maybe)
    if kept:
        support = support.inner
    if isinstance(support, OneOf):
        found = cast(values, dtype)
        inside = np.isin(found, np.array(support.values, dtype=dtype))
        if values.dtype.kind == "f":  # what rounding made of a missing value, or of 0.4, is not known
            exact = np.isin(values, np.array(support.values, dtype=np.float64))
            inside &= exact | (np.isnan(values) if kept else False)
        if kept and dtype.kind == "f":
            inside |= np.isnan(found)
        return np.where(inside, found, np.array(support.unknown, dtype=dtype))
    if support is None:
        return cast(values, dtype)
    low, high = (np.asarray(end, dtype=np.float64) for end in support)
    if dtype.kind in "iu":  # whole numbers inside the support, so that rounding does not leave it
        low, high = np.ceil(low), np.floor(high)
        if values.dtype.kind in "iu":
            inside = cast(values, dtype)
            below, above = inside < low, inside > high
            return np.where(below, cast(low, dtype), np.where(above, cast(high, dtype), inside))
    if values.dtype.kind == "f":
        clipped = np.clip(values, low, high)
        missing = np.isnan(clipped)
        if missing.any() and not (kept and dtype.kind == "f"):
            clipped = np.where(missing, home(low, high), clipped)
    else:
        clipped = np.clip(values.astype(np.float64), low, high)
    return cast(clipped, dtype)


def home(low: Any, high: Any) -> Any:
    """Return the value that stands for a missing one: inside the support, public."""
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2
    end = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    return np.where(np.isfinite(low) & np.isfinite(high), middle, end)


def bring_moments(values: Array, dtype: np.dtype[Any], support: Any) -> Array:
    """Return dates, times or durations in another unit and, if a support is given, inside it.

    Examples
    --------
    >>> ends = tuple(np.array(["2020-01-01", "2020-12-31"], dtype="M8[D]"))
    >>> bring_moments(np.array(["2021-03-01", "NaT"], dtype="M8[s]"), np.dtype("M8[D]"), ends)
    array(['2020-12-31', '2020-07-01'], dtype='datetime64[D]')
    """
    kept = isinstance(support, Maybe)
    if kept:
        support = support.inner
    if isinstance(support, OneOf):
        allowed = np.array(support.values, dtype=dtype)
        found = values.astype(dtype)
        inside = np.isin(found, allowed) | (np.isnat(found) & kept)
        return np.where(inside, found, np.array(support.unknown, dtype=dtype))
    if support is not None:
        # In the values' own unit: casting first could overflow.
        ends = [np.asarray(end).astype(values.dtype) for end in support]
        values = np.clip(values, *ends)
    found = values.astype(dtype)
    if support is None or kept:
        return found
    low, high = (np.asarray(end).astype(dtype) for end in support)
    return np.where(np.isnat(found), low + (high - low) // 2, found)


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
    allowed = {(type(value), value): value for value in support.values}
    unknown = support.unknown
    made: list[Any] = []
    for value in values:
        if isinstance(value, np.generic):
            value = value.item()
        if kept and missing(value):
            made.append(None)
            continue
        try:
            made.append(allowed.get((type(value), value), unknown))
        except TypeError:  # not hashable: nothing that P draws
            made.append(unknown)
    return made


def missing(value: Any) -> bool:
    """Tell whether a value stands for a missing one, as None, NaN, NaT and pandas' NA do."""
    if value is None:
        return True
    kind = type(value)
    if kind is str:
        return False
    if kind.__name__ in ("NAType", "NaTType"):
        return True
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
    inside: Array = np.clip(whole, float(ends.min), high).astype(dtype)
    return inside
