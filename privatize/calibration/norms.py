"""Measure how far apart two outputs are: with any norm, for one pair or for many at once."""

import math
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.mechanisms import Bernstein, Exponential, Gaussian, Laplace
from privatize.mechanisms.base import l1, l2, sizes, sup
from privatize.mechanisms.matrix import MatrixWeighted
from privatize.mechanisms.weighted import Weighted

Vector = NDArray[np.float64]
SLACK = 2.0**-47
"""By how much sums in another order may differ, relative to the outputs."""

NORMS: dict[str, Callable[[Vector], float]] = {"l1": l1, "l2": l2, "sup": sup}
# Their own classes only: a subclass may measure in another way.
_OURS = (Laplace, Gaussian, Exponential, Bernstein, Weighted, MatrixWeighted)


class Norm:
    """The norm of a difference; infinity where it is not a number.

    Attributes
    ----------
    function : callable
        The norm of one vector.
    name : str
        Which of the library's own norms it is, or an empty string.
    label : str
        Its name in messages.
    many : bool
        Whether many differences are measured at once, with the same results as one after the other.
    absolute : bool
        Whether it is the absolute value on one number, as all of the library's own norms are.

    Examples
    --------
    >>> Norm(l1).gap(np.array([1.0, 2.0]), np.array([0.0, 4.0]))
    3.0
    >>> Norm(Laplace().norm).gaps(np.array([[3.0, -4.0], [np.nan, 1.0]]))
    array([ 7., inf])
    """

    def __init__(self, function: Callable[[Vector], float]) -> None:
        self.function = function
        owner: Any = function.__self__ if isinstance(function, MethodType) else None
        named = [name for name, known in NORMS.items() if known is function]
        self._weighted = owner if isinstance(owner, Weighted | MatrixWeighted) else None
        self._measure = function if self._weighted is None else self._weighted.measure
        self.absolute = bool(named) or type(owner) in _OURS
        self.name = named[0] if named else owner.norm_name if self.absolute else ""
        inside: Any = owner if self._weighted is None else self._weighted.mechanism
        self.many = bool(named) or (type(inside) in _OURS and inside.norm_name in NORMS)
        declared = getattr(owner, "norm_name", "")  # by the user's own mechanism
        self.label = str(self.name or declared or getattr(function, "__qualname__", repr(function)))

    def gap(self, a: Any, b: Any) -> float:
        """Return the norm of the difference of two outputs: vectors, or two floats where it is absolute."""
        if type(a) is float:
            return float(abs(a - b))
        with np.errstate(all="ignore"):
            gap = float(self._measure(a - b))
        return gap if gap >= 0 else math.inf

    def gaps(self, steps: Vector) -> Vector:
        """Return the norms of many differences, one in each row."""
        with np.errstate(all="ignore"):
            if not self.many:
                found: Any = np.array([float(self.function(step)) for step in steps])
            elif self._weighted is not None:
                found = self._weighted.measures(steps)
            else:  # the absolute value of one number is the same, faster
                found = np.abs(steps[:, 0]) if steps.shape[1] == 1 else sizes(self.name, steps)
            return np.where(found >= 0, found, math.inf)

    def bound(self, errors: Vector) -> float:
        """Return a bound on the norm of any difference whose numbers are at most these.

        Norms grow with the size of every number, or are half the range of differences: they are largest for
        errors with equal signs, or with different ones. A matrix has a bound of its own.
        """
        owner = self.function.__self__ if isinstance(self.function, MethodType) else None
        if isinstance(owner, MatrixWeighted):
            return owner.bound(errors)
        signs = np.where(np.arange(errors.size) % 2, -1.0, 1.0)
        return float(self.gaps(np.stack([errors, signs * errors])).sum())

    def slack(self, a: Any, b: Any) -> float:
        """Return by how much rounding may change the gap of two outputs."""
        plain = slack_of(a, b)
        owner = self.function.__self__ if isinstance(self.function, MethodType) else None
        if not isinstance(owner, Weighted | MatrixWeighted):
            return plain
        with np.errstate(all="ignore"):
            return max(plain, self.bound(SLACK * (np.abs(a) + np.abs(b))))


def slack_of(a: Any, b: Any) -> float:
    """Return by how much rounding may change the difference of two outputs."""
    with np.errstate(over="ignore"):
        return SLACK * float(np.abs(a).sum() + np.abs(b).sum())
