"""The Laplace mechanism."""

from dataclasses import dataclass
from typing import ClassVar

from privatize.mechanisms.base import BaseMechanism, Mask, Noise, Scaled, Vector, inflate, l1
from privatize.mechanisms.choosing import check_scaled
from privatize.noise import grid


@dataclass(frozen=True)
class Laplace(BaseMechanism):
    """Add Laplace noise of scale Δ/ε to every number; gaps are measured in L1.

    Private with δ = 0 on every pair of datasets whose outputs differ by at most Δ in L1.

    Parameters
    ----------
    scaled : {"auto", "none", "total", "relative"}
        How noise is divided among the numbers of an answer that has several. ``"none"`` gives all of them the
        same. ``"total"`` minimizes the sum of all scales. ``"relative"`` gives each number noise in
        proportion to how far it moves, for numbers in different units. ``"auto"`` takes the one of these
        whose noise is least beside the spread of each number over datasets from P. It is decided by pairs
        that are drawn from P for this purpose alone, before anything is calibrated.

    References
    ----------
    Dwork, McSherry, Nissim & Smith, "Calibrating noise to sensitivity in private data
    analysis", TCC 2006; Rubinstein & Aldà, ICML 2017, Corollary 10.

    Examples
    --------
    >>> import numpy as np
    >>> Laplace().norm(np.array([3.0, -4.0]))
    7.0
    >>> Laplace().scale(2.0, 0.5, 0.0)
    4.0
    """

    scaled: Scaled = "auto"

    def __post_init__(self) -> None:
        check_scaled(self.scaled)

    def __repr__(self) -> str:
        return "Laplace()" if self.scaled == "auto" else f"Laplace(scaled={self.scaled!r})"

    gap_version: ClassVar[int] = 2
    immutable: ClassVar[bool] = True
    tag: ClassVar[str] = "laplace"
    noise_name: ClassVar[Noise] = "laplace"
    norm_name: ClassVar[str] = "l1"

    def norm(self, gap: Vector, /) -> float:
        """Return the L1 norm."""
        return l1(gap)

    def scale(self, sensitivity: float, epsilon: float, delta: float = 0.0, /) -> float:
        """Return Δ/ε."""
        return sensitivity / epsilon

    def release(
        self, vector: Vector, /, *, sensitivity: float, epsilon: float, delta: float = 0.0, whole: Mask
    ) -> Vector:
        """Return the vector with noise added."""
        return grid.laplace(vector, inflate(sensitivity, len(vector)), epsilon, whole)
