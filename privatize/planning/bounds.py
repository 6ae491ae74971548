"""What a bound is: an inequality that ties gamma, m, k and rho together, and how it is solved."""

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, Protocol

LEAST_GAMMA = 1e-15  # a smaller one needs more pairs than anybody can run, and more digits than floats have


class Point(NamedTuple):
    """An operating point: the numbers of a plan."""

    gamma: float
    m: int
    k: int
    rho: float | None


class Bounding(Protocol):
    """One of the inequalities. If rho is None, the best rho is found."""

    def holds(self, point: Point) -> bool:
        """Tell whether an operating point satisfies the inequality."""

    def least(self, gamma: float, rho: float | None) -> int:
        """Return the least m that supports gamma."""

    def balanced(self, gamma: float, rho: float | None) -> int:
        """Return the least m that leaves at least half of gamma to the data."""

    def of_both(self, gamma: float, m: int, rho: float | None) -> Point | None:
        """Return the operating point with the least k, or None if m does not support gamma."""

    def of_m(self, m: int, rho: float | None) -> Point:
        """Return the operating point with the least gamma, which k = m has."""

    def largest_rho(self, gamma: float) -> float:
        """Return the number that rho must be below, or 0 for a bound without rho."""
        return gamma


@functools.lru_cache(maxsize=1024)
def exact(value: float) -> Fraction:
    """Return a number as its user wrote it: 0.01 is a hundredth, so that a hundred of them are 1.

    The floating-point number is off by a relative 2⁻⁵³ at most, like everything computed from it.

    Examples
    --------
    >>> sum([exact(0.01)] * 100) == exact(1.0)
    True
    """
    return Fraction(repr(float(value)))


def bisect(low: float, high: float, holds: Callable[[float], bool], tolerance: float = 0.0) -> float:
    """Return the least number at which a monotone condition holds, rounded up by a relative tolerance.

    It holds at `high`, not at `low`. Without a tolerance they are bisected until no float lies between them.
    """
    while high - low > tolerance * high and low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def first(start: int, feasible: Callable[[int], bool]) -> int:
    """Return the least integer >= 1 at which a monotone condition holds; the search begins at `start`."""
    high, step = max(1, start), 1
    if feasible(high):
        low = high
        while low > 0 and feasible(low):
            high, low, step = low, max(0, low - step), 2 * step
    else:
        low = high
        while not feasible(high):
            low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (high + low) // 2
        low, high = (low, middle) if feasible(middle) else (middle, high)
    return high
