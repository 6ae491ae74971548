"""A weight for every number of an answer, so that each gets noise of its own scale.

With weights w the gap is measured as the norm of (f(D) - f(D'))/w, and number j gets noise of scale w_j
Δ̂/ε: that is the unweighted mechanism on f/w, so it is private for any w that does not come from private
data. Weights are powers of two, so that dividing and multiplying by them is exact.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.errors import SettingsError
from privatize.mechanisms.base import Mask, Scaled, Vector

_LARGEST = 1e300
_MOST = float(np.finfo(np.float64).max)
_LEAST = -200  # no weight is below 2^-200 of the largest


def check_scaled(scaled: Any) -> None:
    """Refuse an unknown way to choose weights."""
    if not isinstance(scaled, str | None) or scaled not in (None, "total", "relative"):
        raise SettingsError(f"scaled={scaled!r} is not 'total', 'relative' or None.")


def moving(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each column over the rows in which it is not zero; zero if there are none.

    A number that rarely moves must get enough noise for when it does. In the mean over all pairs its step
    would nearly vanish, and noise in proportion to that would protect nobody.

    Examples
    --------
    >>> moving(np.array([[1.0, 0.0, 0.0], [3.0, 5.0, 0.0]]))
    array([2., 5., 0.])
    """
    return np.asarray(sizes.sum(axis=0) / np.maximum((sizes != 0).sum(axis=0), 1))


def exponents(sizes: NDArray[np.float64], scaled: Scaled) -> list[int]:
    """Return the weight of each number as a power of two, from how far it typically moves.

    Parameters
    ----------
    sizes : array of shape (d,)
        The mean absolute gap of each number (Laplace), or the root of its mean square (Gaussian), over the
        pairs in which it moves.
    scaled : {"total", "relative"}
        ``"relative"`` takes the sizes themselves, so that every number gets noise in proportion to its own
        gap. ``"total"`` takes their square roots, which make the total noise least: with d numbers,
        the L1 norm and E|g_j| = a_j, the noises w_j E Σ a_i/w_i sum to Σ w_j Σ a_i/w_i ≥ (Σ √a_j)²,
        with equality at w_j = √a_j. The same holds in squares for the L2 norm.

    Examples
    --------
    >>> exponents(np.array([64.0, 1.0, 0.0]), "relative")
    [0, -6, 0]
    >>> exponents(np.array([64.0, 1.0, 0.0]), "total")
    [0, -3, 0]
    """
    moved = np.isfinite(sizes) & (sizes > 0)
    if not moved.any():
        return [0] * len(sizes)
    # It is not known how far a number moves that did not move here, so it gets the largest weight, and noise.
    filled = np.where(moved, sizes, sizes[moved].max())
    powers = np.log2(filled) * (0.5 if scaled == "total" else 1.0)
    rounded = np.rint(powers - powers.max()).astype(int)
    return list(np.maximum(rounded, _LEAST).tolist())


@dataclass(frozen=True)
class Weighted:
    """A mechanism on an answer whose numbers are divided by weights, and multiplied again.

    Examples
    --------
    >>> from privatize.mechanisms import Laplace
    >>> weighted = Weighted(Laplace(), (0, -3))
    >>> weighted.norm(np.array([8.0, 1.0]))
    16.0
    >>> weighted.scale(16.0, 1.0, 0.0)
    array([16.,  2.])
    """

    mechanism: Any
    exponents: tuple[int, ...]

    @property
    def norm_name(self) -> str:
        """The norm's name."""
        return f"weighted {self.mechanism.norm_name}"

    @functools.cached_property
    def _powers(self) -> NDArray[np.int64]:
        return np.array(self.exponents, dtype=np.int64)

    def norm(self, gap: Vector, /) -> float:
        """Return the norm of the gap, each number divided by its weight."""
        with np.errstate(all="ignore"):
            return float(self.mechanism.norm(np.ldexp(gap, -self._powers)))

    def scale(self, sensitivity: float, epsilon: float, delta: float, /) -> Vector:
        """Return the scale of the noise of each number."""
        return np.asarray(np.ldexp(float(self.mechanism.scale(sensitivity, epsilon, delta)), self._powers))

    def release(
        self, vector: Vector, /, *, sensitivity: float, epsilon: float, delta: float, whole: Mask
    ) -> Vector:
        """Return the vector with noise added, of another scale for each number."""
        # Work in units in which the sensitivity is about 1, so that no number as small or large as the noise
        # under- or overflows. Clamping cannot move two vectors apart, nor can rounding integers afterwards.
        unit, power = math.frexp(sensitivity)
        powers = self._powers + power
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


def weighted(mechanism: Any, exponents: tuple[int, ...]) -> Any:
    """Return a mechanism with these weights, if there are any."""
    return Weighted(mechanism, exponents) if exponents else mechanism
