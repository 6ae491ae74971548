"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privatize import noise
from privatize.mechanisms.base import Vector, inflate, l1

__all__ = ["Laplace"]


@dataclass(frozen=True)
class Laplace:
    """Add Laplace noise of scale Δ/ε to every number; gaps are measured in L1.

    Private with δ = 0 on every pair of datasets whose outputs differ by at most Δ in L1.

    References
    ----------
    Dwork, McSherry, Nissim & Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006; Rubinstein & Aldà, ICML 2017, Corollary 8.

    Examples
    --------
    >>> Laplace().norm(np.array([3.0, -4.0]))
    7.0
    >>> Laplace().scale(2.0, 0.5, 0.0)
    4.0
    """

    immutable: ClassVar[bool] = True
    norm_name: ClassVar[str] = "l1"

    def norm(self, gap: Vector, /) -> float:
        """Return the L1 norm."""
        return l1(gap)

    def scale(self, sensitivity: float, epsilon: float, delta: float = 0.0, /) -> float:
        """Return Δ/ε."""
        return sensitivity / epsilon

    def release(
        self,
        vector: Vector,
        /,
        *,
        sensitivity: float,
        epsilon: float,
        delta: float = 0.0,
        whole: NDArray[np.bool_],
    ) -> Vector:
        """Return the vector with noise added."""
        return noise.laplace(vector, inflate(sensitivity, len(vector)), epsilon, whole)
