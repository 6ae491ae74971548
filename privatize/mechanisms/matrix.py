"""Normal noise that is correlated between the numbers of an answer, as the gaps are (T8 in docs/noise.md).

With an invertible public A the transformed answer h = A⁻¹f is measured and gets the same noise for each
number, and A(h + Z) is published. A float A⁻¹f would have an error that grows with f, not with the gap, and
that differs between machines. So f is rounded to a public grid, and A⁻¹ has integer entries: every product
and sum is exact.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.mechanisms.base import Mask, Vector, l2, sizes
from privatize.mechanisms.shapes import Shape
from privatize.noise import grid

_MOST = float(np.finfo(np.float64).max)
_LIMB = 21  # bits of the parts that an integer is split into


@dataclass(frozen=True)
class MatrixWeighted:
    """The Gaussian mechanism on an answer that is multiplied by a matrix, and goes back afterwards.

    Examples
    --------
    >>> from privatize.mechanisms import Gaussian
    >>> shape = Shape.matrix(np.array([[4.0, 1.0], [1.0, 1.0]]))
    >>> MatrixWeighted(Gaussian(), shape).scale(1.0, 1.0, 1e-6).round(2).tolist()
    [4.22, 2.11]
    """

    mechanism: Any
    shape: Shape

    @property
    def norm_name(self) -> str:
        """The norm's name."""
        return f"transformed {self.mechanism.norm_name}"

    def norm(self, gap: Vector, /) -> float:
        """Return the norm of the transformed gap."""
        with np.errstate(all="ignore"):
            return self.measure(gap)

    def measure(self, gap: Vector) -> float:
        """Return the same for a caller that ignores floating-point errors itself: for many gaps."""
        return math.ldexp(l2(self.shape.forward @ gap), -self.shape.bits)

    def measures(self, gaps: NDArray[np.float64]) -> Vector:
        """Return what `measure` returns, for each row."""
        moved = np.matmul(self.shape.forward, gaps[:, :, None])  # one after the other, to round as it does
        return np.asarray(np.ldexp(np.asarray(sizes("l2", moved[:, :, 0])), -self.shape.bits))

    def bound(self, errors: Vector) -> float:
        """Return the largest norm of a gap whose numbers are at most these."""
        with np.errstate(all="ignore"):
            moved = np.abs(self.shape.forward) @ np.abs(errors)
        return math.ldexp(l2(moved), -self.shape.bits)

    def transformed(self, vector: Vector) -> Vector:
        """Return an answer, or a released one, in units in which all numbers have the same noise."""
        return np.asarray(np.ldexp(self.shape.forward @ vector, -self.shape.bits))

    def scale(self, sensitivity: float, epsilon: float, delta: float, /) -> Vector:
        """Return the standard deviation of each number's noise."""
        return np.asarray(float(self.mechanism.scale(sensitivity, epsilon, delta)) * self.shape.scales)

    def release(
        self, vector: Vector, /, *, sensitivity: float, epsilon: float, delta: float, whole: Mask
    ) -> Vector:
        """Return the vector with noise added."""
        shape, (exponent, enlarged) = self.shape, _rounding(self.shape, sensitivity)
        numbers = _exact_product(vector, shape, exponent)
        moved = grid.gaussian_exact(
            numbers, exponent - shape.bits, enlarged, epsilon, delta, self.mechanism.sigma_of
        )
        with np.errstate(all="ignore"):  # a warning would reveal something about a private number
            found = np.clip(np.ldexp(shape.back @ moved, shape.exponents), -_MOST, _MOST)
        return np.asarray(np.where(whole, np.rint(found), found))


def _rounding(shape: Shape, sensitivity: float) -> tuple[int, float]:
    """Return the grid that answers are rounded to, and the sensitivity with what rounding adds to it.

    Rounding moves each number of both outputs by half a step, so the transformed gap by at most `stretch`
    steps: less than 2^-20 of the sensitivity. The gap was measured in floats, which `looseness` allows for.
    """
    exponent = math.floor(math.log2(sensitivity)) - 20 - math.ceil(math.log2(shape.stretch))
    enlarged = sensitivity * (1 + shape.looseness) + math.ldexp(shape.stretch, max(exponent, -1070))
    return exponent, math.nextafter(enlarged * (1 + 2.0**-50), math.inf)


def _exact_product(vector: Vector, shape: Shape, exponent: int) -> list[int]:
    """Return B times the vector, which is divided by the weights and rounded to multiples of 2^exponent.

    An integer of up to 61 bits is split into three. A sum of up to 128 products of an entry below 2^22 and
    a part below 2^21 is below 2^51: it is exact in float64, in whatever order it is computed.

    Examples
    --------
    >>> shape = Shape.matrix(np.array([[4.0, 1.0], [1.0, 1.0]]))
    >>> found = _exact_product(np.array([1.0, 2.0]), shape, -60)
    >>> found == _exact_in_python(np.array([1.0, 2.0]), shape, -60)
    True
    """
    powers = shape.exponents + exponent
    with np.errstate(all="ignore"):
        units = np.ldexp(vector, -powers)
    # Near the subnormal numbers ldexp would round.
    if not (np.abs(units) < 2.0**61).all() or int(powers.max()) > 900 or int(powers.min()) < -900:
        return _exact_in_python(vector, shape, exponent)
    numbers, mask = np.rint(units).astype(np.int64), (1 << _LIMB) - 1
    parts = np.stack([numbers & mask, (numbers >> _LIMB) & mask, numbers >> (2 * _LIMB)], axis=1)
    low, middle, high = (shape.entries @ parts.astype(np.float64)).astype(np.int64).T.tolist()
    split = zip(low, middle, high, strict=True)
    return [a + (b << _LIMB) + (c << (2 * _LIMB)) for a, b, c in split]


def _exact_in_python(vector: Vector, shape: Shape, exponent: int) -> list[int]:
    """Return the same in Python's integers, for answers of any size."""
    powers = (shape.exponents + exponent).tolist()
    numbers = [grid.nearest(x, power) for x, power in zip(vector.tolist(), powers, strict=True)]
    rows: NDArray[np.int64] = shape.entries.astype(np.int64)
    return [sum(a * b for a, b in zip(row, numbers, strict=True)) for row in rows.tolist()]
