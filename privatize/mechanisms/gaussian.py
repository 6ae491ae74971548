"""The Gaussian mechanism."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from privatize.errors import SettingsError
from privatize.mechanisms.base import BaseMechanism, Mask, Noise, Scaled, Vector, inflate, l2
from privatize.mechanisms.choosing import check_metric, check_scaled
from privatize.noise import grid
from privatize.planning.gaussian import discretization, least_sigma


@dataclass(frozen=True)
class Gaussian(BaseMechanism):
    """Add normal noise to every number; gaps are measured in L2.

    Parameters
    ----------
    calibration : {"analytic", "classic"}
        ``"analytic"`` is the least σ that is (ε, δ)-private, for any ε. ``"classic"`` is the
        paper's σ = Δ √(2 log(1.25/δ)) / ε, larger, and proven for ε < 1 only.
    scaled : {"auto", "none", "total", "relative", "matrix"}
        How noise is divided among the numbers of an answer, as for `Laplace`; ``"total"`` minimizes the sum
        of all variances. ``"matrix"`` gives the numbers noise that is correlated as their gaps are, which
        makes the sum of variances least of all, and never much larger (T8 in docs/noise.md).
    error : matrix of shape (d, d), optional
        What error is, for ``"matrix"`` and ``"auto"``: noise of covariance Σ costs tr(error Σ). For the error
        of a linear model's predictions it is the mean of x xᵀ, which models of scikit-learn get by default.
        It must not come from private data.

    References
    ----------
    Balle & Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018;
    Dwork & Roth 2014, Theorem A.1; Rubinstein & Aldà, ICML 2017, Corollary 12.

    Examples
    --------
    >>> round(Gaussian().scale(1.0, 1.0, 1e-6), 3)
    4.225
    >>> import numpy as np
    >>> Gaussian().norm(np.array([3.0, -4.0]))
    5.0
    """

    calibration: Literal["analytic", "classic"] = "analytic"
    scaled: Scaled = "auto"
    error: Any = None  # not a method, as other mechanisms have: the errors of normal noise are known

    def __post_init__(self) -> None:
        if self.calibration not in ("analytic", "classic"):
            raise SettingsError(f"calibration={self.calibration!r} is not 'analytic' or 'classic'.")
        check_scaled(self.scaled, "matrix")
        if self.scaled == "matrix" and type(self) is not Gaussian:  # its noise is added in another way
            raise SettingsError(f"""scaled='matrix' is for Gaussian itself, and {type(self).__name__} may add
                other noise. Use scaled='total'.""")
        if self.error is not None:
            object.__setattr__(self, "error", check_metric(self.error, self.scaled))

    def __repr__(self) -> str:
        scaled = "" if self.scaled == "auto" else f", scaled={self.scaled!r}"
        return f"Gaussian(calibration={self.calibration!r}{scaled}{', error=...' if self.error else ''})"

    @property
    def sigma_of(self) -> Callable[[float, float, float], float]:
        """The standard deviation as a function that is the same object for equal mechanisms."""
        return _scale_of(self)

    def check(self, epsilon: float, delta: float, /) -> None:
        """Refuse an (ε, δ) for which this calibration is not proven."""
        if not _LEAST_DELTA <= delta < 1:
            raise SettingsError(f"""delta={delta!r} does not fit the Gaussian mechanism: it needs 0 < delta <
                1 (1e-300 at least), 1e-6 say. For delta=0 use mechanism='laplace'.""")
        if self.calibration == "classic" and not epsilon < 1:
            raise SettingsError(f"""epsilon={epsilon!r} is out of range: the classic Gaussian is proven for
                epsilon < 1 only. Use the default calibration='analytic', which is proven for all.""")

    gap_version: ClassVar[int] = 2
    immutable: ClassVar[bool] = True
    tag: ClassVar[str] = "gaussian"
    noise_name: ClassVar[Noise] = "normal"
    norm_name: ClassVar[str] = "l2"

    def norm(self, gap: Vector, /) -> float:
        """Return the L2 norm."""
        return l2(gap)

    def scale(self, sensitivity: float, epsilon: float, delta: float, /) -> float:
        """Return the standard deviation σ."""
        # Noise is calibrated for a little less than δ, which must work for the least δ that is allowed.
        self.check(epsilon, max(delta, _LEAST_DELTA) if delta > _LEAST_DELTA / 2 else delta)
        if self.calibration == "classic":
            return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon * (1 + 1e-12)
        return sensitivity * least_sigma(epsilon, delta)

    def release(
        self, vector: Vector, /, *, sensitivity: float, epsilon: float, delta: float, whole: Mask
    ) -> Vector:
        """Return the vector with noise added."""
        enlarged = inflate(sensitivity, len(vector))
        return grid.gaussian(vector, enlarged, epsilon, delta, whole, _scale_of(self))

    def composition_kind(self, epsilon: float, delta: float) -> str:
        """Return σ/Δ, and how far the discrete noise is from the continuous one in total variation at most.

        Examples
        --------
        >>> Gaussian().composition_kind(1.0, 1e-6)
        'gaussian 4.224678889...'
        """
        if type(self) is not Gaussian:  # a subclass may add other noise
            return super().composition_kind(epsilon, delta)
        return f"gaussian {self.scale(1.0, epsilon, delta)!r} {discretization(epsilon, delta)!r}"


_LEAST_DELTA = 1e-300  # smaller floats have fewer digits


@functools.lru_cache(maxsize=8)
def _scale_of(mechanism: Gaussian) -> Callable[[float, float, float], float]:
    """Return the same function object for equal mechanisms, so that a cache with this argument finds it."""
    return mechanism.scale
