"""P's support: the range or the set that its values are in.

A support is a pair ``(low, high)`` of bounds, a `OneOf` of fixed values, a `Maybe` of either where P draws
missing values too, a dict of these by column, a tuple of them for aligned containers, or None where nothing
is known.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class OneOf:
    """A support of fixed values.

    Attributes
    ----------
    values : tuple
        What P draws.
    unknown : object
        What replaces every other value, including missing ones.

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
    """A support that includes missing values.

    Attributes
    ----------
    inner : pair, OneOf or None
        The support of the values that are not missing.

    Examples
    --------
    >>> Maybe((0, 100))
    Maybe((0, 100))
    """

    inner: Any = None

    def __repr__(self) -> str:
        return f"Maybe({self.inner!r})"


def unwrap(support: Any) -> tuple[Any, bool]:
    """Return the support of values that are not missing, and whether missing values are allowed too.

    Examples
    --------
    >>> unwrap(Maybe((0, 1))), unwrap((0, 1))
    (((0, 1), True), ((0, 1), False))
    """
    return (support.inner, True) if isinstance(support, Maybe) else (support, False)


def is_fixed(support: Any) -> bool:
    """Tell whether a support is a `OneOf`, or a `Maybe` of one."""
    return isinstance(unwrap(support)[0], OneOf)


_NUMBERS = (int, float, np.ndarray, np.generic)


def is_pair(support: Any) -> bool:
    """Tell whether a support is a pair of bounds, and not a tuple of supports."""
    return (
        isinstance(support, tuple)
        and len(support) == 2
        and isinstance(support[0], _NUMBERS)
        and isinstance(support[1], _NUMBERS)
    )


def copied(support: Any) -> Any:
    """Return a copy of a support, which the caller may change."""
    if isinstance(support, dict):
        return {name: copied(inner) for name, inner in support.items()}
    if isinstance(support, tuple) and not is_pair(support):
        return tuple(map(copied, support))
    return support


def bounded(support: Any) -> bool:
    """Tell whether a support bounds anything.

    Examples
    --------
    >>> bounded((0.0, np.inf)), bounded({"age": None}), bounded((None, OneOf((0, 1), 0)))
    (True, False, True)
    """
    inner, _ = unwrap(support)
    if is_pair(inner):
        return any(bool(np.isfinite(end).any()) for end in inner)
    parts = inner.values() if isinstance(inner, dict) else inner
    return isinstance(inner, OneOf) or (inner is not None and any(map(bounded, parts)))


def split(support: Any, keys: Sequence[Any]) -> list[Any]:
    """Return the supports of a dataset's parts, by name or in order, or refuse a support that does not fit.

    Examples
    --------
    >>> split({"age": (0, 120)}, ["age", "sex"]), split(None, range(2)), split((None, (0, 1)), range(2))
    ([(0, 120), None], [None, None], [None, (0, 1)])
    """
    if support is None:
        return [None] * len(keys)
    if isinstance(keys, range):
        if not isinstance(support, tuple) or is_pair(support) or len(support) != len(keys):
            raise ValueError(f"its support must be a tuple of {len(keys)}, one for each part")
        return list(support)
    if not isinstance(support, dict):
        raise ValueError("its support must be given by column: {'age': (0, 120), ...}")
    unknown = [name for name in support if name not in keys]
    if unknown:
        raise ValueError(f"its support names {unknown!r}, which it does not draw")
    return [support.get(key) for key in keys]


def coordinate(support: Any, shape: tuple[int, ...], at: int) -> Any:
    """Return the support of one number of a record of some shape, counted from 0.

    Examples
    --------
    >>> coordinate((np.zeros(2), np.array([1.0, 5.0])), (2,), 1)
    (0.0, 5.0)
    """
    inner, optional = unwrap(support)
    if is_pair(inner):
        inner = tuple(_scalar(np.broadcast_to(end, shape).ravel()[at]) for end in inner)
    return Maybe(inner) if optional else inner


def bounds(support: Any, *, dated: bool) -> tuple[Any, Any]:
    """Return the two ends of a support, or refuse one that is not bounds of numbers, or of dates."""
    if not is_pair(support) or (np.asarray(support[0]).dtype.kind in "mM") != dated:
        what = "dates or durations" if dated else "numbers"
        raise ValueError(f"its support is neither a pair of bounds nor fixed values for {what}")
    low, high = support
    return low, high


def join(supports: Iterable[Any], *, strict: bool = False) -> Any:
    """Return a support that contains several others, as a mixture's does.

    Parameters
    ----------
    supports : iterable
        The supports.
    strict : bool
        Whether only bounds may differ: then a ValueError says which do not fit together, in place of None.

    Examples
    --------
    >>> join([(0.0, 1.0), (0.5, 3.0)])
    (0.0, 3.0)
    >>> join([{"age": (0, 80)}, {"age": (18, 99)}], strict=True)
    {'age': (0, 99)}
    """
    every = list(supports)
    if any(isinstance(each, Maybe) for each in every) and (strict or None not in every):
        return Maybe(join((unwrap(support)[0] for support in every), strict=strict))
    first, form = every[0], _form(every[0], strict)
    others = [support for support in every if _form(support, strict) != form]
    if strict and others:
        raise ValueError(f"{first!r} and {others[0]!r}")
    return None if first is None or others else _joined(every, strict)


def _joined(every: list[Any], strict: bool) -> Any:
    """Return a support that contains several others of the same form."""
    first = every[0]
    if isinstance(first, OneOf):
        values = tuple(dict.fromkeys(value for support in every for value in support.values))
        return OneOf(values, first.unknown)
    if isinstance(first, dict):
        return {key: join((support.get(key) for support in every), strict=strict) for key in first}
    if not is_pair(first):
        return tuple(join(parts, strict=strict) for parts in zip(*every, strict=True))
    lows, highs = zip(*every, strict=True)
    return tuple(map(_scalar, (np.minimum.reduce(lows), np.maximum.reduce(highs))))


def _scalar(end: Any) -> Any:
    return end.item() if np.ndim(end) == 0 and end.dtype.kind not in "mM" else end


def _form(support: Any, strict: bool) -> Any:
    """Return what two supports must have in common to be joined."""
    if is_pair(support):
        return "bounds", np.shape(support[0]) if strict else ()
    if strict and isinstance(support, dict | OneOf):
        return repr(support) if isinstance(support, OneOf) else list(support)
    return len(support) if type(support) is tuple else type(support)
