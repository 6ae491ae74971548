"""How often fresh neighbours stay within the estimate, and which epsilon each of them gets."""

import contextlib
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.sensitivity import Sensitivity
from privatize.errors import SettingsError
from privatize.function.settings import Settings
from privatize.planning.confidence import above, clopper_pearson, low_share

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How often fresh neighbours stay within the estimate, under one distribution.

    Attributes
    ----------
    sampler : str
        The distribution.
    pairs, beyond : int
        Fresh pairs, and how many of them have a gap beyond the estimate (failed ones included).
    low, high : float
        Exact (Clopper-Pearson) interval for the share of all pairs that is beyond.
    least : float
        One-sided lower limit for it, which decides.
    gamma : float
        The share that is claimed.
    holds : bool
        False if the share is larger than claimed, at the audit's confidence.
    losses : array
        For each pair the epsilon that it gets, in increasing order.
    divergence : float or None
        Of this distribution from the function's own P (Kullback-Leibler, in nats), where it is known.
    transferred : float or None
        The gamma that is certain for this distribution (`privatize.transfer`), where the divergence is known.
    """

    sampler: str
    pairs: int
    beyond: int
    low: float
    high: float
    least: float
    gamma: float
    holds: bool
    losses: Vector = field(repr=False)
    divergence: float | None = None
    transferred: float | None = None

    @property
    def share(self) -> float:
        """The share of fresh pairs beyond the estimate."""
        return self.beyond / self.pairs

    def at(self, epsilon: float) -> float:
        """Return the share of fresh pairs whose loss is more than this epsilon."""
        return float(np.mean(self.losses > epsilon))


def cover(
    sampler: str, gaps: Vector, sensitivity: Sensitivity, settings: Settings, alpha: float, *, claimed: bool
) -> Coverage:
    """Return how many fresh gaps are beyond the estimate, and whether that is more than is claimed."""
    count, beyond = len(gaps), int((gaps > sensitivity.value).sum())
    low, high = clopper_pearson(beyond, count, alpha)
    least = low_share(beyond, count, alpha)
    holds = not claimed or least <= sensitivity.gamma
    if claimed and sensitivity.bound == "marginal":
        # It holds on average over calibrations: the share of one is spread like a beta distribution.
        holds = above(beyond, count, sensitivity.m - sensitivity.k + 1, sensitivity.k) > alpha
    return Coverage(
        sampler=sampler,
        pairs=count,
        beyond=beyond,
        low=low,
        high=high,
        least=least,
        gamma=sensitivity.gamma,
        holds=holds,
        losses=np.sort(losses(gaps, sensitivity.value, settings)),
    )


def losses(gaps: Vector, sensitivity: float, settings: Settings) -> Vector:
    """Return the epsilon that each pair gets: the one for which its gap would need the noise that there is.

    For Laplace noise that is ε·G/Δ̂. In general, the epsilon at which the mechanism's scale for the
    gap is the scale that is used.
    """
    mechanism, epsilon, delta = settings.mechanism, settings.epsilon, settings.delta
    if not delta:  # scales are in proportion to sensitivity / epsilon
        return np.asarray(epsilon * gaps / sensitivity)
    scale = mechanism.scale(sensitivity, epsilon, delta)
    knots, reach = [], []
    for knot in np.geomspace(1e-6, 1e3, 91).tolist():
        with contextlib.suppress(SettingsError):  # the mechanism may not be proven for all
            # The gap that would get this epsilon from this noise.
            reach.append(math.log(scale / mechanism.scale(1.0, knot, delta)))
            knots.append(math.log(knot))
    with np.errstate(divide="ignore"):
        found = np.interp(np.log(gaps), reach, knots, left=-np.inf, right=np.inf)
    return np.exp(found)
