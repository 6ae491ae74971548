"""How often fresh neighbours stay within the estimate, under P and under distributions at some distance."""

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privatize.calibration.refuting import AnyBound
from privatize.errors import SettingsError
from privatize.function.settings import Settings
from privatize.mechanisms.base import Vector
from privatize.planning.confidence import above, clopper_pearson, low_share
from privatize.samplers.base import traits_of
from privatize.samplers.distribution import moments_of

_DIGITS = 2.0**-50  # a bound on a few rounding errors


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
        One-sided lower limit for that share; `holds` is decided by it.
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
    sampler: str, gaps: Vector, sensitivity: AnyBound, settings: Settings, alpha: float, *, claimed: bool
) -> Coverage:
    """Return how many fresh gaps are beyond the estimate, and whether that is more than is claimed."""
    count, beyond = len(gaps), int((gaps > sensitivity.value).sum())
    low, high = clopper_pearson(beyond, count, alpha)
    least = low_share(beyond, count, alpha)
    holds = not claimed or least <= sensitivity.gamma
    if claimed and sensitivity.bound == "marginal":
        # This bound holds on average over calibrations: the share beyond has a beta distribution.
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
    """Return the epsilon that each pair gets: that for which its gap would need exactly the noise in use.

    For Laplace noise that is ε·G/Δ̂. In general, the epsilon at which the mechanism's scale for the
    gap is the scale that is used.
    """
    mechanism, epsilon, delta = settings.mechanism, settings.epsilon, settings.delta
    if not delta:  # scales are in proportion to sensitivity / epsilon
        return np.asarray(epsilon * gaps / sensitivity)
    scale = mechanism.scale(sensitivity, epsilon, delta)
    knots, reach = [], []
    for knot in np.geomspace(1e-6, 1e3, 91).tolist():
        with contextlib.suppress(SettingsError):  # the mechanism may have no proof for some epsilons
            # The gap that would get this epsilon from this noise.
            reach.append(math.log(scale / mechanism.scale(1.0, knot, delta)))
            knots.append(math.log(knot))
    with np.errstate(divide="ignore"):
        found = np.interp(np.log(gaps), reach, knots, left=-np.inf, right=np.inf)
    return np.exp(found)


def divergence(p: Any, q: Any) -> float | None:
    """Return KL(P‖Q) in nats where it has a closed form: for equal, for uniform, and for normal ones.

    In all other cases return None: an estimate from draws would not be exact enough for
    `privatize.transfer`.

    Examples
    --------
    >>> from privatize import samplers
    >>> divergence(samplers.normal(0, 1), samplers.normal(1, 1))
    0.5
    >>> divergence(samplers.uniform(0, 1), samplers.uniform(0, 2)) == math.log(2)
    True
    """
    if not (traits_of(p).independent and traits_of(q).independent):
        return None
    if p == q:
        return 0.0
    one, other = moments_of(p), moments_of(q)
    if one is None or other is None or np.shape(one[0]) != np.shape(other[0]):
        return None
    (mean, std), (center, spread) = one, other
    with np.errstate(all="ignore"):
        if q.support is not None:
            low, high = (np.asarray(end) for end in q.support)
            own = (-math.inf, math.inf) if p.support is None else tuple(map(np.asarray, p.support))
            if np.any(own[0] < low) or np.any(own[1] > high):
                return math.inf
            # The logarithm of a ratio near 1 would lose digits; log1p of the difference does not.
            found = np.log1p(((high - own[1]) + (own[0] - low)) / (own[1] - own[0]))
        elif p.support is None:
            more = (std - spread) / spread
            log = np.log1p(more)
            # Cancellation is made up for by rounding up: a divergence of 0 would promise the same gamma.
            found = (more - log) + more**2 / 2 + _DIGITS * (np.abs(more) + np.abs(log))
            found = found + ((mean - center) / spread) ** 2 / 2
        else:
            entropy = np.log(p.support[1] - p.support[0])
            cross = 0.5 * np.log(2 * math.pi) + np.log(spread)
            found = cross - entropy + _DIGITS * (np.abs(cross) + np.abs(entropy))
            found = found + ((std / spread) ** 2 + ((mean - center) / spread) ** 2) / 2
        total = float(np.sum(found))
    return math.inf if math.isnan(total) else max(0.0, total)
