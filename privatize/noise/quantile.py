"""A private quantile: a point of a public grid, drawn by how evenly it splits the values.

A point y has the score u(y) = -max(0, #{z < y} - q p, #{z > y} - (1 - q) p), where p of the values z are
present, and is drawn with probability proportional to exp(ε u(y) / 2). Replacing one value, which may be
missing before or after, changes u by at most 1, so the draw is ε-differentially private. Every point of the
grid is scored, also those that values are equal to, so ties do no harm. Proof: ``docs/blocks.md``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from privatize.noise.exact import Integers, Stream, Vector
from privatize.noise.grid import _exact, _floor_log2, choose

# Quantiles are rounded to multiples of 2^-20. With fewer than 2^33 values all scores are then exact floats.
_UNIT = 2.0**-20
_COARSEST, _FINEST = 12, 44


@dataclass(frozen=True)
class Grid:
    """Public points: `low`, `high`, and all multiples of 2^exponent between them, which are all floats.

    Examples
    --------
    >>> grid = Grid.of(0.5, 3.0, integer=True)
    >>> [grid.value(at) for at in range(grid.points)]
    [0.5, 1.0, 2.0, 3.0]
    >>> grid.indices(np.array([-np.inf, 0.7, 1.4, 1.6, 99.0]))
    array([0, 1, 1, 2, 3])
    """

    low: float
    high: float
    exponent: int
    first: int  # the largest multiple that is not above low
    points: int

    @classmethod
    def of(cls, low: float, high: float, *, integer: bool, bits: int = _FINEST) -> Self:
        """Return the grid of the integers, or of 2^bits steps or up to twice as many, from low to high.

        Steps are at least as large as the distance of floats at the ends: beyond 2^53 there is no float for
        every integer.
        """
        bottom, top = Fraction(low), Fraction(high)
        exponent = 0 if integer or low == high else _floor_log2(top - bottom) - bits
        largest = math.nextafter(max(abs(low), abs(high)), 0.0)  # all multiples up to 2^53 units are floats
        exponent = max(exponent, math.frexp(math.ulp(largest))[1] - 1)
        step = Fraction(2) ** exponent
        first = math.floor(bottom / step)
        return cls(low, high, exponent, first, math.ceil(top / step) - first + 1)

    def indices(self, values: Vector) -> Integers:
        """Return the nearest point of each value; values outside are clamped, NaN is not allowed."""
        with np.errstate(over="ignore", under="ignore"):
            units = np.rint(np.ldexp(np.clip(values, self.low, self.high), -self.exponent))
        found = np.clip(units.astype(np.int64) - self.first, 0, self.points - 1)
        found[values <= self.low] = 0  # the ends may be no multiples, and then another one may be nearer
        found[values >= self.high] = self.points - 1
        return found

    def value(self, index: int) -> float:
        """Return a point."""
        if index == 0:
            return self.low
        return self.high if index == self.points - 1 else math.ldexp(self.first + index, self.exponent)


def dyadic(q: float) -> float:
    """Return a quantile, which is between 0 and 1, as a multiple of 2^-20 that is between 0 and 1 too."""
    return min(max(round(q / _UNIT) * _UNIT, _UNIT), 1 - _UNIT)


def fineness(count: int, q: float, epsilon: float) -> int:
    """Return how fine a grid should be, from public numbers alone: about 2^bits steps.

    If all values are the same number, its score is above those of all other points by count * min(q, 1 - q)
    or more. So it is drawn nearly always if there are far fewer than exp(ε count min(q, 1 - q) / 2) points,
    and nearly never if there are far more. If values differ a little, a fine grid is wanted. The square root
    of that number is between the two.

    Examples
    --------
    >>> fineness(80, 0.5, 1.0), fineness(30_000, 0.5, 1.0), fineness(10, 0.5, 1.0)
    (14, 44, 12)
    """
    bits = epsilon * count * min(q, 1 - q) / 4 / math.log(2)
    return int(min(max(bits, _COARSEST), _FINEST))


class Segments(NamedTuple):
    """Runs of grid points that have the same score: where each begins, how many points, their score."""

    starts: Integers
    points: Integers
    scores: Vector


def segments(indices: Integers, points: int, q: float) -> Segments:
    """Return the scores of all points of a grid, given the points that values are at, and a dyadic q.

    Examples
    --------
    >>> segments(np.array([7, 7, 7, 7]), 10, 0.5)
    Segments(starts=array([0, 7, 8]), points=array([7, 1, 2]), scores=array([-2.,  0., -2.]))
    """
    at, counts = np.unique(indices, return_counts=True)
    starts = np.zeros(2 * len(at) + 1, dtype=np.int64)  # before the first value, at it, after it, ...
    starts[1::2], starts[2::2] = at, at + 1
    sizes = np.diff(starts, append=points)
    reached = np.repeat(np.concatenate([[0], np.cumsum(counts)]), 2)
    total = len(indices)
    below, above = reached[:-1], total - reached[1:]
    scores = -np.maximum(0.0, np.maximum(below - q * total, above - (1 - q) * total))
    kept = sizes > 0
    return Segments(starts[kept], sizes[kept], scores[kept] + 0.0)  # and no negative zeros


def quantile(values: Vector, grid: Grid, q: float, epsilon: float) -> float:
    """Draw a point of the grid near the q-quantile of the values, ε-differentially private.

    Parameters
    ----------
    values : array of float
        NaN is a missing value and does not count. Values outside the grid are clamped.
    grid : Grid
        Public points.
    q : float
        A dyadic quantile, made by `dyadic`.
    epsilon : float
        The privacy loss.

    Examples
    --------
    >>> quantile(np.full(100, 7.0), Grid.of(0, 120, integer=True), 0.5, 1.0)
    7.0
    """
    found = segments(grid.indices(values[~np.isnan(values)]), grid.points, q)
    chosen = choose(found.scores, 1.0, epsilon, found.points.tolist())  # Python's integers, so it is exact
    return grid.value(int(found.starts[chosen]) + Stream().below(int(found.points[chosen])))


def shares(epsilon: float, weights: Sequence[float]) -> list[float]:
    """Divide ε in proportion to weights, rounded down so that the sum is never more than ε.

    Examples
    --------
    >>> shares(1.0, [1, 1, 2])
    [0.25, 0.25, 0.5]
    """
    total, loss = sum(map(Fraction, weights)), _exact(epsilon)
    exact = [Fraction(weight) / total * loss for weight in weights]
    return [float(x) if Fraction(float(x)) <= x else math.nextafter(float(x), 0.0) for x in exact]
