"""Parameters of samplers: numbers, bounds, shapes and shares, checked, comparable by content, and applied."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize.errors import SamplerError
from privatize.planning.numbers import as_integer
from privatize.samplers.base import Rng, Sampler, some


class Frozen:
    """A read-only array that compares by content and prints as the code that makes it."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(np.array(array, dtype=np.float64, order="C") + 0.0)  # -0.0 becomes 0.0
        self.array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, (self.array + 0.0).tobytes()))

    def __repr__(self) -> str:
        return as_code(self.array.tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.array.shape

    @property
    def end(self) -> Any:
        """The array as a bound: a number if it is one."""
        return self.array if self.array.shape else self.array.item()

    @property
    def is_same(self) -> bool:
        """Whether there is one value for all coordinates."""
        array = self.array
        return not array.shape or bool(array.size and (array == array.flat[0]).all())

    @property
    def short(self) -> "Frozen":
        """The array as one number, if all coordinates have the same."""
        return Frozen(self.array.flat[0]) if self.is_same else self


Box = tuple[Frozen, Frozen]


def as_code(value: Any) -> str:
    """Return a number, or a list of them, as code; integers without a point."""
    if isinstance(value, list):
        return f"[{', '.join(map(as_code, value))}]"
    return repr(int(value)) if abs(value) < 1e16 and value == int(value) else repr(value)


def number(value: Any) -> float:
    """Return a value as a float, or NaN if it is no number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def numbers(name: str, value: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return finite numbers as an array, or refuse."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise SamplerError(f"{name}={value!r} is not a number or an array of numbers.") from None
    if not np.isfinite(array).all():
        raise SamplerError(f"{name}={value!r} is not finite.")
    return array


def scalars(values: Any) -> tuple[tuple[Any, ...], set[type]]:
    """Return values as Python's own scalars, and the set of their types."""
    found = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    return found, set(map(type, found))


def shape_of(size: Any) -> tuple[int, ...]:
    """Return the shape of a record as a tuple, with -1 for anything that is no integer."""
    return tuple(map(as_integer, size if np.iterable(size) else (size,)))


def box(name: str, low: Any, high: Any, size: Any) -> tuple[Any, Any]:
    """Return two bounds as arrays of the same shape, or refuse."""
    try:
        ends = [np.array(end, dtype=np.float64) for end in (low, high)]
        shape = np.broadcast_shapes(ends[0].shape, ends[1].shape)
        if size is not None:
            wanted = shape_of(size)
            if min(wanted, default=1) < 1 or np.broadcast_shapes(shape, wanted) != wanted:
                raise ValueError
            shape = wanted
    except (TypeError, ValueError):
        raise SamplerError(f"""{name}: the bounds {low!r} and {high!r} do not fit each other or
            size={size!r}.""") from None
    lows, highs = (np.broadcast_to(end, shape) for end in ends)
    if not (lows < highs).all():
        raise SamplerError(f"{name}: the lower bound {low!r} must be below the upper bound {high!r}.")
    return lows, highs


def bounds(name: str, low: Any, high: Any, shape: Any = None) -> Box | None:
    """Return two bounds, each of which may be left out, or None if all are infinite."""
    lows, highs = box(name, -math.inf if low is None else low, math.inf if high is None else high, shape)
    return None if np.isinf(lows).all() and np.isinf(highs).all() else (Frozen(lows), Frozen(highs))


def show(ends: Box | None, *, named: bool = True) -> list[str]:
    """Return two bounds as arguments in code, by name or where possible by position."""
    shown: list[str] = []
    for name, end in zip(("low", "high"), ends or (), strict=False):
        if not np.isinf(end.array).all():
            text = as_code(end.array.flat[0].item()) if end.is_same else repr(end)
            shown.append(text if not named and len(shown) == (name == "high") else f"{name}={text}")
    return shown


def shares(name: str, given: Any, count: int, what: str) -> Frozen | None:
    """Return weights divided by their sum, so that they sum to 1; None stays None."""
    if given is None:
        return None
    share = numbers(name, given)
    if share.shape != (count,) or (share < 0).any() or not share.sum() > 0:
        raise SamplerError(f"""{name}={given!r} do not fit {count} {what}: one number >= 0 for each, not all
            zero.""")
    # Weights that sum to 1 stay as they are, so that the code in a repr makes an equal sampler.
    total = share.sum()
    return Frozen(share if abs(total - 1) < 1e-12 else share / total)


def even(count: int) -> Frozen:
    """Return equal shares that sum to 1."""
    return Frozen([1 / count] * count)


def chosen(share: Frozen | None, count: int, n: int, rng: Rng) -> Any:
    """Draw n indices below `count`, with the given probabilities or equal ones."""
    if share is None:
        return rng.integers(count, size=n)
    if count == 2:  # the same, faster
        return (rng.random(n) >= share.array[0]).astype(np.intp)
    return share.array.cumsum()[:-1].searchsorted(rng.random(n), side="right")


def ends_for(inner: Sampler, name: str, low: Any, high: Any) -> Box:
    """Return bounds for the numbers that a sampler draws, or refuse."""
    ends = bounds(name, low, high)
    if ends is None:
        raise SamplerError(f"{name}() needs a bound: {name}(low, high).")
    drawn = some(inner)
    if not isinstance(drawn, np.ndarray) or drawn.dtype.kind not in "iuf":
        raise SamplerError(f"""{name}() is for numbers, and {inner!r} draws something else. Call it on the
            columns of a table.""")
    try:
        np.broadcast_to(ends[0].array, drawn.shape[1:])
    except ValueError:
        raise SamplerError(f"""{name}(): bounds of shape {ends[0].shape} do not fit records of shape
            {drawn.shape[1:]}.""") from None
    return ends


def accepted(draw_some: Callable[[int], Any], ends: Box, n: int, sampler: Any) -> Any:
    """Draw until n records lie between two bounds, or refuse bounds that hardly any record lies between."""
    low, high = (end.array for end in ends)
    found: list[Any] = []
    count = drawn = 0
    size = max(2 * n, 64)
    while count < n or not found:
        x = draw_some(size)
        x = x[((low <= x) & (x <= high)).reshape(len(x), -1).all(axis=1)]
        found.append(x)
        count, drawn = count + len(x), drawn + size
        if count < n and drawn > 2000 * size and count * 1000 < drawn:
            raise SamplerError(f"""{sampler!r}: fewer than one draw in a thousand lies between the bounds.
                Widen them.""")
    return np.concatenate(found)[:n]
