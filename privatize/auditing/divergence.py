"""How far one public distribution is from another (Kullback-Leibler), where that has a closed form."""

import math
from typing import Any

import numpy as np

from privatize.samplers.base import traits_of
from privatize.samplers.distribution import moments_of

_DIGITS = 2.0**-50  # a few roundings


def divergence(p: Any, q: Any) -> float | None:
    """Return KL(P‖Q) in nats where it has a closed form: for equal ones, and for uniform and normal ones.

    Elsewhere it is not known, and None is returned: an estimate from draws would be off by more than what
    `privatize.transfer` can bear.

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
            # Of what is nearly 1 the logarithm has few digits, of the difference it has all of them.
            found = np.log1p(((high - own[1]) + (own[0] - low)) / (own[1] - own[0]))
        elif p.support is None:
            more = (std - spread) / spread
            log = np.log1p(more)
            # What cancels here is rounded up: a divergence of 0 would promise that nothing is lost.
            found = (more - log) + more**2 / 2 + _DIGITS * (np.abs(more) + np.abs(log))
            found = found + ((mean - center) / spread) ** 2 / 2
        else:
            entropy = np.log(p.support[1] - p.support[0])
            cross = 0.5 * np.log(2 * math.pi) + np.log(spread)
            found = cross - entropy + _DIGITS * (np.abs(cross) + np.abs(entropy))
            found = found + ((std / spread) ** 2 + ((mean - center) / spread) ** 2) / 2
        total = float(np.sum(found))
    return math.inf if math.isnan(total) else max(0.0, total)
