"""How well releases on two neighbours can be told apart: a lower bound on epsilon.

An event is learned on one half of the releases, where nothing is claimed, and bounded on the other
half with exact binomial confidence. If the noise cannot be distinguished from Laplace or normal
noise with so many releases, its scale gives a sharper bound as well.
"""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privatize.planning.confidence import high_share, low_share

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Statistic = Callable[[Matrix], Vector]
NUMBERS = 10_000  # numbers of an answer that are compared; a longer release is cut, which is post-processing
_TOGETHER = 2**16  # numbers of releases that are compared at once


@dataclass(frozen=True, kw_only=True)
class Told:
    """How well releases on one pair of neighbours could be told apart.

    Attributes
    ----------
    gap : float
        The pair's gap; the largest that is within the estimate, or nearly.
    releases : int
        Releases on each neighbour.
    epsilon : float
        What is claimed.
    delta : float
        What is claimed.
    low : float
        Lower bound on the true epsilon at delta, at the audit's confidence, from the held-out half.
    event : str
        What told them apart.
    seen : float
        The largest epsilon that so many releases could show.
    bare : bool
        Whether a number that should have continuous noise was the same in every release.
    shape : str or None
        The distribution that the noise looks like, if it looks like one.
    shape_low : float or None
        Lower bound on epsilon (for delta = 0), or on delta, if the noise has that shape.
    """

    gap: float
    releases: int
    epsilon: float
    delta: float
    low: float
    event: str
    seen: float
    bare: bool
    shape: str | None
    shape_low: float | None

    @property
    def holds(self) -> bool:
        """Whether neither bound is above the claim."""
        narrow = self.shape_low is not None and self.shape_low > (self.delta or self.epsilon)
        return not self.bare and self.low <= self.epsilon and not narrow

    @property
    def verdict(self) -> str:
        """The result, in one sentence."""
        if self.bare:
            return "a number that should be noisy was the same in every release"
        if self.low > self.epsilon:
            return (
                f"releases on neighbours are told apart by {self.event}: epsilon is at least {self.low:.3g}, "
                f"and {self.epsilon:.3g} is claimed"
            )
        if not self.holds:
            what, claim = ("delta", self.delta) if self.delta else ("epsilon", self.epsilon)
            return (
                f"the noise looks {self.shape}, and so narrow that {what} is at least {self.shape_low:.3g}, "
                f"where {claim:.3g} is claimed"
            )
        low = max(0.0, self.low)
        few = "" if self.seen > self.epsilon else f" (so few cannot show more than {self.seen:.3g})"
        return f"releases on neighbours show epsilon >= {low:.3g}, and {self.epsilon:.3g} is claimed{few}"


def tell_apart(
    release: Callable[[Vector], Vector],
    a: Vector,
    b: Vector,
    *,
    gap: float,
    epsilon: float,
    delta: float,
    releases: int,
    alpha: float,
    discrete: NDArray[np.bool_] | bool = False,
    shown: "Units | None" = None,
) -> Told:
    """Release on both of two neighbours many times, and bound epsilon from below.

    An (epsilon, delta)-private release fails with probability at most `alpha`, as long as numbers that are
    not marked as `discrete` get continuous noise: if one of these is always the same, it got no noise.
    `shown` is applied to releases and to the answers a and b before they are compared: to divide numbers by
    the scales of their noises, which differ, or to leave some out. `discrete` then describes what it returns.

    Examples
    --------
    >>> from privatize import Laplace
    >>> def release(v):
    ...     return Laplace().release(v, sensitivity=1.0, epsilon=1.0, delta=0.0, whole=np.array([False]))
    >>> told = tell_apart(release, np.zeros(1), np.ones(1), gap=1.0, epsilon=1.0, delta=0.0,
    ...                   releases=2000, alpha=1e-9)
    >>> told.holds, told.shape
    (True, 'Laplace')
    """
    x, y = (_released(functools.partial(release, v), releases, len(v), shown) for v in (a, b))
    a, b = (a, b) if shown is None else shown.rows([a, b])
    half = releases // 2
    tried = [
        (*_learn(statistic, sign, one[:half], other[:half], delta, alpha / 2), name, one, other)
        for name, statistic in _statistics(x[:half], y[:half], a, b)
        for sign, one, other in ((1.0, x, y), (-1.0, y, x))
    ]
    low, name = 0.0, "nothing"
    if tried:
        _, event, name, one, other = max(tried, key=lambda each: each[0])
        low = _bound(event(one[half:]), event(other[half:]), delta, alpha / 2)
    shape, shape_low = _shape(x, y, a, b, epsilon, delta, alpha / 2)
    noisy = ~np.broadcast_to(discrete, len(a))
    fits = x.shape[1] == len(a)
    everything = np.ones(half, dtype=bool)
    return Told(
        gap=gap,
        releases=releases,
        epsilon=epsilon,
        delta=delta,
        low=low,
        event=name,
        seen=_bound(everything, ~everything, delta, alpha / 2),
        bare=bool(fits and ((x == x[0]).all(axis=0) & (y == y[0]).all(axis=0) & noisy).any()),
        shape=shape,
        shape_low=shape_low,
    )


# --- the event -------------------------------------------------------------------------------------


def _released(release: Callable[[], Vector], count: int, size: int, shown: "Units | None") -> Matrix:
    """Return releases as rows of finite numbers: infinities and NaN are answers, too."""
    rows, together = [], max(1, _TOGETHER // max(1, size))
    for start in range(0, count, together):
        # Copies: a mechanism may return the same array each time.
        made = [np.array(release(), ndmin=1) for _ in range(min(together, count - start))]
        rows.append(np.array(made, dtype=np.float64) if shown is None else shown.rows(made))
    return np.nan_to_num(np.concatenate(rows), nan=-1e150, posinf=1e150, neginf=-2e150)


def _statistics(x: Matrix, y: Matrix, a: Vector, b: Vector) -> Iterator[tuple[str, Statistic]]:
    """Yield functions of a release that may be larger on the first neighbour than on the other."""
    values, counts = _values(x), _values(y)
    if len(values | counts) <= len(x) // 5:  # few answers: count each
        weight = {v: math.log((values.get(v, 0) + 0.5) / (counts.get(v, 0) + 0.5)) for v in values | counts}
        yield "the answer itself", lambda z: np.array([weight.get(row.tobytes(), 0.0) for row in z])
    if x.shape[1] != len(a):
        for i in range(min(10, x.shape[1])):
            yield f"its number {i}", functools.partial(lambda i, z: z[:, i], i)
        return
    yield "an answer without noise", lambda z: (z == a).mean(axis=1) - (z == b).mean(axis=1)
    for i in range(len(a) if 1 < len(a) <= 10 else 0):
        nearer = functools.partial(lambda i, z: np.abs(z[:, i] - b[i]) - np.abs(z[:, i] - a[i]), i)
        yield f"its number {i}", nearer
    yield "its distance from either answer", lambda z: (np.abs(z - b) - np.abs(z - a)).sum(axis=1)
    yield "its direction", lambda z: z @ (a - b)
    yield "its last digits", lambda z: -_lowest_bit(z).min(axis=1)


def _values(x: Matrix) -> dict[bytes, int]:
    rows, counts = np.unique(x, axis=0, return_counts=True)
    return {row.tobytes(): int(count) for row, count in zip(rows, counts, strict=True)}


def _lowest_bit(x: Matrix) -> Vector:
    """Return the exponent of the lowest bit that is set: naive noise can be recognized by it."""
    mantissa, exponent = np.frexp(x)
    integer = np.ldexp(np.abs(mantissa), 53).astype(np.int64)
    lowest = np.log2(np.where(integer == 0, 1, integer & -integer))
    return np.where(integer == 0, 0.0, exponent - 53 + lowest)


def _learn(
    statistic: Statistic, sign: float, one: Matrix, other: Matrix, delta: float, alpha: float
) -> tuple[float, Callable[[Matrix], NDArray[np.bool_]]]:
    """Return a statistic's bound on the half that it is learned on, and the event of its best threshold."""
    s, t = sign * statistic(one), sign * statistic(other)
    # Candidates: quantiles, dense in the tail where ratios are largest.
    shares = np.unique(np.concatenate([np.geomspace(20 / len(s), 0.5, 60), np.linspace(0.5, 0.99, 20)]))
    candidates = np.unique(np.quantile(s, 1 - shares, method="higher"))
    scores = [_bound(s >= each, t >= each, delta, alpha) for each in candidates]
    best = int(np.argmax(scores))
    threshold = math.inf if scores[best] == -math.inf else float(candidates[best])
    return scores[best], lambda z: sign * statistic(z) >= threshold


def _bound(one: NDArray[np.bool_], other: NDArray[np.bool_], delta: float, alpha: float) -> float:
    """Return a lower bound on epsilon from how often an event happened on either side."""
    p = low_share(int(one.sum()), len(one), alpha / 2) - delta
    q = high_share(int(other.sum()), len(other), alpha / 2)
    return math.log(p / q) if p > 0 else -math.inf


# --- the shape -------------------------------------------------------------------------------------


# Noise of another shape, which the test cannot distinguish from these, may be narrower by this factor.
_MARGIN = 1.05


def _shape(
    x: Matrix, y: Matrix, a: Vector, b: Vector, epsilon: float, delta: float, alpha: float
) -> tuple[str | None, float | None]:
    """Return the shape of the noise, if it has one, and the bound that its scale gives.

    Numbers may have noise of different scales, so each number's scale is bounded separately: a pooled one is
    too small for the numbers with the widest noise, and these may be the ones that differ.
    """
    if x.shape[1] != len(a) or len(x) < 200:
        return None, None
    import scipy.stats

    noise = np.concatenate([x - a, y - b])
    count = len(noise)
    # Integers, seeded noise, and numbers so large that floats round the noise away have no shape. Looking
    # at the other numbers alone is post-processing, so the promise holds for them.
    shaped = np.array([len(np.unique(column)) >= count // 2 for column in noise.T], dtype=np.bool_)
    if not shaped.any():
        return None, None
    noise, gap = noise[:, shaped], (a - b)[shaped]
    widths = np.abs(noise).mean(axis=0)
    deviations = np.sqrt(np.mean(noise**2, axis=0))
    fits: dict[str, Any] = {
        "Laplace": scipy.stats.kstest((noise / widths).ravel(), scipy.stats.laplace.cdf).pvalue,
        "normal": scipy.stats.kstest((noise / deviations).ravel(), scipy.stats.norm.cdf).pvalue,
    }
    name = max(fits, key=fits.__getitem__)
    if fits[name] < 0.01:
        return None, None
    if name == "Laplace":
        if delta:
            return name, None
        # 2 sum|noise| / scale is chi-squared with 2 count degrees of freedom, for each number.
        most = _MARGIN * 2 * count * widths / float(scipy.stats.chi2.ppf(alpha / len(gap), 2 * count))
        return name, float(np.sum(np.abs(gap) / most))
    # Normal noise is normal in the direction in which the answers differ, even if the noises of different
    # numbers depend on each other.
    distance = float(np.sqrt(np.sum(gap**2)))
    if not delta or not distance:
        return name, None
    along = noise @ (gap / distance)
    deviation = _MARGIN * math.sqrt(float(np.sum(along**2)) / float(scipy.stats.chi2.ppf(alpha, count)))
    return name, _normal_delta(deviation / distance, epsilon)


def _normal_delta(sigma: float, epsilon: float) -> float:
    """Return the delta of normal noise at distance 1: Balle & Wang 2018, Theorem 8, in logarithms."""
    from scipy.special import log_ndtr

    first = float(log_ndtr(1 / (2 * sigma) - epsilon * sigma))
    second = epsilon + float(log_ndtr(-1 / (2 * sigma) - epsilon * sigma))
    return math.exp(first) * -math.expm1(second - first) if second < first else 0.0


# --- the units --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Units:
    """Which numbers of releases are compared, and in which units: the scale of each number's noise.

    Where the noise of numbers is correlated, releases are transformed first, so that it is not.
    """

    powers: NDArray[np.int64]
    compared: NDArray[np.int64]
    transform: Callable[[Vector], Vector] = np.asarray

    @classmethod
    def of(cls, scale: Any, a: Vector, b: Vector, transform: Callable[[Vector], Vector] = np.asarray) -> Self:
        """Return the units for these scales; of many numbers, those that differ most are compared."""
        a, b = transform(a), transform(b)
        known = np.asarray(scale, dtype=np.float64)
        # A user's own mechanism may have a scale of another shape.
        finite = np.nan_to_num(np.broadcast_to(known if known.shape in ((), a.shape) else 1.0, a.shape))
        powers = np.frexp(finite)[1].astype(np.int64)
        differ = np.abs(_divided(a, powers) - _divided(b, powers))
        return cls(powers, np.sort(np.argsort(-differ, kind="stable")[:NUMBERS]), transform)

    def rows(self, vectors: list[Vector]) -> Matrix:
        """Return the numbers that are compared, in units of their noise: a row for each vector."""
        if len(vectors[0]) != len(self.powers):  # a mechanism may release fewer numbers, or more
            return np.array(vectors, dtype=np.float64)
        return _divided(np.array([*map(self.transform, vectors)]), self.powers)[:, self.compared]

    def hidden(self, a: Vector, b: Vector) -> NDArray[np.bool_]:
        """Tell which numbers are so large that floats are too far apart there to show the noise."""
        a, b = (_divided(self.transform(each), self.powers) for each in (a, b))
        largest = np.maximum(np.abs(a), np.abs(b))
        return np.asarray(np.spacing(largest) > 0.5)


def _divided(vector: Vector, powers: NDArray[np.int64]) -> Vector:
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(np.ldexp(vector, -powers), -1e300, 1e300)
