"""A weight for every number of an answer, so that each gets noise of its own scale.

With weights w the gap is measured as the norm of (f(D) - f(D'))/w, and number j gets noise of scale w_j
Δ̂/ε: that is the unweighted mechanism on f/w, so it is private for any w that does not come from private
data. Weights are powers of two, so that dividing and multiplying by them is exact.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.mechanisms.base import Mask, Vector, sizes
from privatize.mechanisms.matrix import MatrixWeighted
from privatize.mechanisms.shapes import Shape

_LARGEST = 1e300
_MOST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Weighted:
    """A mechanism on an answer whose numbers are divided by weights, and multiplied again.

    Examples
    --------
    >>> from privatize.mechanisms import Laplace
    >>> weighted = Weighted(Laplace(), Shape("total", (0, -3)))
    >>> weighted.norm(np.array([8.0, 1.0]))
    16.0
    >>> weighted.scale(16.0, 1.0, 0.0)
    array([16.,  2.])
    """

    mechanism: Any
    shape: Shape

    @property
    def norm_name(self) -> str:
        """The norm's name."""
        return f"weighted {self.mechanism.norm_name}"

    def norm(self, gap: Vector, /) -> float:
        """Return the norm of the gap, each number divided by its weight."""
        with np.errstate(all="ignore"):
            return self.measure(gap)

    def measure(self, gap: Vector) -> float:
        """Return the same for a caller that ignores floating-point errors itself: for many gaps."""
        return float(self.mechanism.norm(gap * self.shape.reciprocals))

    def measures(self, gaps: NDArray[np.float64]) -> Vector | None:
        """Return what `measure` returns, for each row, if the mechanism's norm is known by its name."""
        return sizes(self.mechanism.norm_name, gaps * self.shape.reciprocals)

    def scale(self, sensitivity: float, epsilon: float, delta: float, /) -> Vector:
        """Return the scale of the noise of each number."""
        return np.asarray(
            np.ldexp(float(self.mechanism.scale(sensitivity, epsilon, delta)), self.shape.exponents)
        )

    def release(
        self, vector: Vector, /, *, sensitivity: float, epsilon: float, delta: float, whole: Mask
    ) -> Vector:
        """Return the vector with noise added, of another scale for each number."""
        # Work in units in which the sensitivity is about 1, so that no number as small or large as the noise
        # under- or overflows. Clamping cannot move two vectors apart, nor can rounding integers afterwards.
        unit, power = math.frexp(sensitivity)
        powers = self.shape.exponents + power
        with np.errstate(all="ignore"):  # a warning would reveal something about a private number
            divided = np.clip(np.ldexp(vector, -powers), -_LARGEST, _LARGEST)
        none = np.zeros(len(vector), dtype=np.bool_)
        noised = self.mechanism.release(divided, sensitivity=unit, epsilon=epsilon, delta=delta, whole=none)
        with np.errstate(all="ignore"):
            found = np.clip(np.ldexp(noised, powers), -_MOST, _MOST)
        # If a number is 1e300 times its noise, it is the same float in both outputs of a pair: otherwise the
        # gap would be above the estimate. So it is released as it is, not clamped.
        found = np.where(np.abs(divided) < _LARGEST, found, vector)
        return np.asarray(np.where(whole, np.rint(found), found))


def weighted(mechanism: Any, shape: Shape) -> Any:
    """Return a mechanism whose noise has this shape."""
    if shape.kind == "none":
        return mechanism
    return MatrixWeighted(mechanism, shape) if shape.kind == "matrix" else Weighted(mechanism, shape)
