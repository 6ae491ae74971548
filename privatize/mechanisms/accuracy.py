"""How far noise moves an answer: half-widths that hold with a given probability."""

import math
from typing import Any

import numpy as np

from privatize.errors import SettingsError
from privatize.mechanisms.base import Mask, Noise, Vector

# Scales are rounded up by up to 2^-21 (see privatize.noise.grid): this margin covers that.
_MARGIN = 1 + 2.0**-18


def check_confidence(confidence: Any) -> float:
    """Return a probability strictly between 0 and 1, or refuse it."""
    number = isinstance(confidence, int | float | np.integer | np.floating)
    value = float(confidence) if number and not isinstance(confidence, bool) else math.nan
    if not 0 < value < 1:
        raise SettingsError(f"""confidence={confidence!r} is not a probability strictly between 0 and 1, 0.95
            say.""")
    return value


def half_widths(noise: Noise, scale: Any, confidence: float, whole: Mask, *, rounded: bool = False) -> Vector:
    """Return how far noise moves each number at most, with this probability for each number by itself.

    Parameters
    ----------
    noise : {"laplace", "normal"}
        The distribution.
    scale : float or array
        The scale b of Laplace noise, or the standard deviation.
    confidence : float
        The probability.
    whole : array of bool
        Which numbers are integers: with noise they are integers too.
    rounded : bool
        Whether integers get fine noise that is rounded afterwards, as normal and weighted noise is.

    Examples
    --------
    >>> half_widths("laplace", 2.0, 0.95, np.array([False, True])).round(2)
    array([5.99, 6.  ])
    >>> half_widths("normal", 1.0, 0.95, np.array([False, True])).round(2)
    array([1.96, 2.  ])
    """
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), whole.shape)
    tail = 1 - confidence
    times = -math.log(tail) if noise == "laplace" else _normal(tail / 2)
    wide = scales * times * _MARGIN
    if not whole.any():
        return wide
    if noise == "laplace" and not rounded:
        # P(|X| > t) = 2 p^(t+1) / (1+p) on the integers, p = exp(-1/b).
        p = np.exp(-1 / np.maximum(scales, 1e-300))
        integers = np.ceil(scales * np.log(2 / ((1 + p) * tail)) * _MARGIN - 1)
    else:
        integers = np.ceil(wide - 0.5)
    return np.where(whole, np.maximum(integers, 0.0), wide)


def _normal(tail: float) -> float:
    """Return the number that a standard normal variable exceeds with this probability."""
    from statistics import NormalDist  # imported here, since it takes a while to load

    return -NormalDist().inv_cdf(tail)


def mean_error(noise: Noise, scale: Any, whole: Mask, *, rounded: bool = False) -> Vector:
    """Return the mean absolute value of each number's noise. The arguments are those of `half_widths`.

    Examples
    --------
    >>> mean_error("laplace", 0.5, np.array([False, True])).round(3)
    array([0.5  , 0.276])
    """
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), whole.shape)
    means = scales if noise == "laplace" else scales * math.sqrt(2 / math.pi)
    if not whole.any():
        return means
    # On the integers E|X| is the sum of P(|X| > t) over t = 0, 1, ...
    per = 1 / np.maximum(scales, 1e-300)
    if noise == "normal":
        integers = _mean_rounded(scales)
    elif rounded:
        integers = np.exp(-per / 2) / -np.expm1(-per)
    else:
        integers = 2 * np.exp(-per) / -np.expm1(-2 * per)
    return np.where(whole, integers, means)


def _mean_rounded(scales: Vector) -> Vector:
    """Return the mean absolute values of normal numbers that are rounded."""
    means = scales * math.sqrt(2 / math.pi)
    for scale in np.unique(scales[scales < 50]).tolist():  # at 50 or more, rounding changes less than 1e-4
        tails = (math.erfc((t + 0.5) / (scale * math.sqrt(2))) for t in range(math.ceil(10 * scale) + 1))
        means[scales == scale] = math.fsum(tails) if scale else 0.0
    return means
