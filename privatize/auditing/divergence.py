"""How far one public distribution is from another: Kullback-Leibler, known or estimated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privatize.samplers import draw
from privatize.samplers.base import traits_of
from privatize.samplers.distribution import moments_of

__all__ = ["exact", "kl"]

_DRAWS = 4000
_DIGITS = 2.0**-50  # a few roundings


def _outside(p: Any, drawn: Any, support: Any) -> bool:
    """Tell whether P draws what Q, of this support, never does."""
    low, high = (np.asarray(end) for end in support)
    own = getattr(p, "support", None)
    if own is not None and (np.any(np.asarray(own[0]) < low) or np.any(np.asarray(own[1]) > high)):
        return True
    return bool((drawn < low).any() or (drawn > high).any())


def exact(p: Any, q: Any) -> float | None:
    """Return KL(P‖Q) in nats where it has a closed form: for equal ones, and for uniform and normal ones.

    Examples
    --------
    >>> from privatize import samplers
    >>> exact(samplers.normal(0, 1), samplers.normal(1, 1))
    0.5
    >>> exact(samplers.uniform(0, 1), samplers.uniform(0, 2)) == math.log(2)
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


def kl(p: Any, q: Any, rng: np.random.Generator) -> float | None:
    """Return KL(P‖Q) in nats: exact where it has a closed form, else estimated from draws, or None.

    The estimate is off by some thousandths, which is too much for `privatize.transfer`.

    It compares distances to nearest neighbours among draws of either (Wang, Kulkarni &
    Verdú 2009). It needs records of numbers without atoms.

    Examples
    --------
    >>> from privatize import samplers
    >>> kl(samplers.normal(0, 1), samplers.normal(0, 1), np.random.default_rng(1))
    0.0
    >>> kl(samplers.normal(0, 1), samplers.normal(1, 1), np.random.default_rng(1))
    0.5
    """
    known = exact(p, q)
    if known is not None:
        return known
    if not (traits_of(p).independent and traits_of(q).independent):
        return None
    one, other = (draw(sampler, _DRAWS, rng) for sampler in (p, q))
    if not all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in (one, other)):
        return None
    support = getattr(q, "support", None)
    if support is not None and one.shape == other.shape and _outside(p, one, support):
        return math.inf
    one, other = one.reshape(_DRAWS, -1), other.reshape(_DRAWS, -1)
    if one.shape != other.shape or one.shape[1] > 10:
        return None
    if any(len(np.unique(x, axis=0)) < _DRAWS // 2 for x in (one, other)):  # atoms
        return None
    from scipy.spatial import cKDTree

    # The fifth neighbour: less noisy than the first.
    near = np.asarray(cKDTree(one).query(one, 6)[0])[:, 5]
    far = np.asarray(cKDTree(other).query(one, 5)[0])[:, 4]
    if (near == 0).any() or (far == 0).any():  # atoms
        return None
    dimension = int(one.shape[1])
    return max(0.0, dimension * float(np.mean(np.log(far / near))) + float(np.log(_DRAWS / (_DRAWS - 1))))
