"""Find, with differential privacy, by which factor the gaps of real people are beyond P's estimate.

Everything here is about b blocks of people, and a number r for each: its gap, as a multiple of P's own
estimate at the block's size. Block sizes and thresholds follow from public numbers alone, and the noise is
exact. Proofs: ``docs/fit.md``.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatize.errors import SettingsError
from privatize.noise import grid

CONFIDENCE = 0.95
"""The confidence of every bound, each by itself."""
STEP = math.sqrt(2)
FACTORS = tuple(2.0 ** (i // 2) * (STEP if i % 2 else 1.0) for i in range(17))
"""The factors that are tried, from 1 to 256."""

_PEOPLE = 10  # of a block, at least: fewer say little about more
_ENOUGH = 5.0  # gamma * epsilon * b: with fewer blocks the noise hides a share of gamma
_MOST = 20.0  # more people make larger blocks, and more of them up to this
_COUNTING = 0.25  # of epsilon, for the share beyond P's own estimate; the scan has the rest
_ALPHA = 1 - CONFIDENCE - 1e-12  # less what is left out of the noise's tails below

Law = tuple[int, NDArray[np.float64]]  # the least value of a random integer, and the probabilities from there


@dataclass(frozen=True)
class Cut:
    """How people are cut into blocks, each of one pair: `people` in it are one more than a dataset has.

    Attributes
    ----------
    number : int
        How many blocks.
    people : int
        People of a block.
    """

    number: int
    people: int

    @property
    def size(self) -> int:
        """How many records a dataset has."""
        return self.people - 1


@dataclass(frozen=True)
class Sizes:
    """The blocks of a check, and smaller ones of other people if there are enough of them."""

    main: Cut
    smaller: Cut | None


def sizes(n: int, gamma: float, epsilon: float) -> Sizes:
    """Return how n people are cut, from public numbers alone, or refuse too few people.

    Examples
    --------
    >>> sizes(4000, 0.05, 0.5)
    Sizes(main=Cut(number=200, people=20), smaller=None)
    >>> sizes(100_000, 0.05, 0.2)
    Sizes(main=Cut(number=1582, people=58), smaller=Cut(number=500, people=14))
    """
    rate = gamma * min(epsilon, 1.0)  # beyond epsilon=1 sampling error counts more than noise
    least = math.ceil(_ENOUGH / rate)
    if n < _PEOPLE * least:
        raise SettingsError(f"""n={n:,} people are too few to check P with gamma={gamma:g} and
            epsilon={epsilon:g}: it takes {least:,} blocks of {_PEOPLE} people, {_PEOPLE * least:,} in all.
            {_remedy(n, gamma)}""")
    wanted = _ENOUGH * max(1.0, math.sqrt(n * rate / (20 * _ENOUGH)))
    number = math.ceil(min(wanted, _MOST) / rate)
    # Blocks of a quarter of the size take a quarter of the people.
    people = math.floor(n / (number + least / 4))
    if people // 4 >= _PEOPLE:
        return Sizes(Cut(number, people), Cut(least, people // 4))
    return Sizes(Cut(number, n // number), None)


def _remedy(n: int, gamma: float) -> str:
    needed = _PEOPLE * _ENOUGH / (n * gamma)
    if needed <= 1:
        return f"With these people it takes epsilon={math.ceil(needed * 1000) / 1000:g}, or a larger gamma."
    people = math.ceil(_PEOPLE * math.ceil(_ENOUGH / gamma))
    return f"No epsilon is enough for fewer than {people:,} people at this gamma; a larger gamma needs fewer."


def counting(epsilon: float) -> float:
    """Return what the share beyond P's own estimate costs, of epsilon."""
    return epsilon * _COUNTING


def scanning(epsilon: float) -> float:
    """Return what the scan costs: the rest, rounded down."""
    return epsilon * (1 - _COUNTING) * (1 - 2.0**-50)


# --- the noise --------------------------------------------------------------------------------


def _scale(epsilon: float) -> float:
    """Return the exact scale of the noise on a count."""
    _, _, t, shift = grid.laplace_grid(1.0, epsilon, 0)
    return float(math.ldexp(t, -shift))


def _noise(epsilon: float) -> int:
    """Draw discrete Laplace noise for a count that one person moves by one."""
    return int(grid.laplace(np.zeros(1), 1.0, epsilon, np.ones(1, dtype=bool))[0])


def _positive(epsilon: float) -> int:
    """Draw the same noise on condition that it is not negative: a geometric distribution, exactly."""
    while (drawn := _noise(epsilon)) < 0:
        pass
    return drawn


def _geometric(epsilon: float) -> NDArray[np.float64]:
    """Return the probabilities of `_positive`, up to exp(-45) of them."""
    q = math.exp(-1 / _scale(epsilon))
    powers = q ** np.arange(math.ceil(45 * _scale(epsilon)), dtype=np.float64)
    return np.asarray(powers * (1 - q))


# --- what is found ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """The share of blocks that are beyond P's own estimate, with noise, and bounds on the true share.

    Attributes
    ----------
    share : float
        The noisy share, from 0 to 1.
    low, high : float
        Bounds on the share of pairs under the people's own distribution, each with 95% confidence.
    """

    share: float
    low: float
    high: float


def count(beyond: int, b: int, epsilon: float) -> Counted:
    """Return how many of b blocks are beyond, with exact discrete Laplace noise of scale 1/epsilon."""
    found = beyond + _noise(epsilon)
    half = _geometric(epsilon)
    law = np.concatenate([half[:0:-1], half])
    law, least = law / law.sum(), found - len(half) + 1  # where the count may be: the noise is symmetric
    return Counted(min(max(found / b, 0.0), 1.0), at_least(b, (least - 1, law)), at_most(b, (least, law)))


@dataclass(frozen=True)
class Scan:
    """A scan of rising factors, which stops where few enough of b blocks are beyond.

    It stops at the first factor for which ``count - A <= threshold - B``: B is drawn once, A for each
    factor, both geometric (`_positive`) with half of epsilon. Thresholds rise, so that a large B does not
    make it run away.

    Attributes
    ----------
    b : int
        Number of blocks.
    gamma : float
        The share that may be beyond.
    epsilon : float
        What the scan costs.
    """

    b: int
    gamma: float
    epsilon: float

    @property
    def half(self) -> float:
        """What each of the two kinds of noise costs."""
        return self.epsilon * 0.5

    @functools.cached_property
    def thresholds(self) -> tuple[int, ...]:
        """How many blocks may be beyond each factor.

        Where a stop at the first factor certifies a share below gamma, it is as many as certify gamma.
        """
        low, high = math.floor(self.gamma * self.b / 4), math.ceil(self.gamma * self.b)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._certified([middle]) <= self.gamma else (low, middle)
        most = math.floor(self.b * min(4 * self.gamma, (1 + self.gamma) / 2))
        rising = (low + math.floor(i * i / (12 * self.epsilon)) for i in range(len(FACTORS)))
        return tuple(min(each, most) for each in rising)

    def first(self, counts: list[int]) -> int | None:
        """Return the index of the factor at which the scan stops, with noise; None if it is none of them."""
        once = _positive(self.half)
        for i, (found, threshold) in enumerate(zip(counts, self.thresholds, strict=True)):
            if found - _positive(self.half) <= threshold - once:
                return i
        return None

    def probabilities(self, counts: list[int]) -> NDArray[np.float64]:
        """Return the probability of every outcome of `first` for given counts, the last one for None."""
        once, scale = _geometric(self.half), _scale(self.half)
        going, found = once.copy(), []
        for count, threshold in zip(counts, self.thresholds, strict=True):
            missing = np.maximum(count - threshold + np.arange(len(once)), 0)  # what A must be, at least
            stops = np.exp(-missing / scale)
            found.append(float((going * stops).sum()))
            going = going * (1 - stops)
        return np.array([*found, float(going.sum())])

    @functools.lru_cache(maxsize=64)  # noqa: B019 - a value, of which there are few
    def high(self, i: int) -> float:
        """Return what share is beyond factor i at most, if the scan has stopped there; 95% confidence."""
        return self._certified(self.thresholds[: i + 1])

    def _certified(self, thresholds: Sequence[int]) -> float:
        scale, reach = _scale(self.half), len(_geometric(self.half))
        largest = thresholds[-1]
        most = np.arange(largest, largest + reach)
        # How large threshold + A is at most, over all these factors.
        below = np.ones(reach)
        for threshold in thresholds:
            below = below * -np.expm1(-(most - threshold + 1) / scale)
        return at_most(self.b, _less(largest, np.diff(below, prepend=0.0), self.half))

    def excess(self, share: float) -> float:
        """Return by which factor the scan may go too far: beyond one that leaves at most this share.

        It goes no further in 9 of 10 scans.
        """
        from scipy.special import bdtrc  # scipy.stats takes longer to load than all of this

        beyond = bdtrc(np.arange(self.b), self.b, share)
        likely = np.append(beyond[beyond > 1e-9], 0.0)
        found = np.zeros(len(FACTORS) + 1)
        for count, probability in enumerate((-np.diff(likely, prepend=1.0)).tolist()):
            found += probability * self.probabilities([count] * len(FACTORS))
        steps = int(np.searchsorted(np.cumsum(found), 0.9))
        return FACTORS[min(steps, len(FACTORS) - 1)]


def _less(least: int, law: NDArray[np.float64], epsilon: float) -> Law:
    """Return the law of a random integer less independent geometric noise."""
    once = _geometric(epsilon)
    return least - len(once) + 1, np.convolve(law, once[::-1])


def at_most(b: int, law: Law) -> float:
    """Return an upper bound on a share, after seeing that the count of b trials is at most a random integer.

    This is Clopper and Pearson's: the largest share at which that has a probability above 5%.
    """
    return _solved(b, law, lambda seen: seen > _ALPHA, rounded=1)


def at_least(b: int, law: Law) -> float:
    """Return a lower bound on a share, after seeing that the count of b trials is above a random integer."""
    return _solved(b, law, lambda seen: 1 - seen <= _ALPHA, rounded=0)


def _solved(b: int, law: Law, holds: Callable[[float], bool], *, rounded: int) -> float:
    """Return the share up to which something holds of the probability that the count is at most the integer.

    That probability falls as the share grows. The share is rounded down (0) or up (1).
    """
    from scipy.special import bdtr

    least, weights = law
    values = np.arange(least, least + len(weights))
    certain, inside = float(weights[values >= b].sum()), (values >= 0) & (values < b)
    values, weights = values[inside], weights[inside]

    def seen(share: float) -> float:
        return certain + float((weights * bdtr(values, b, share)).sum())

    ends = [0.0, 1.0]
    for _ in range(40):
        middle = (ends[0] + ends[1]) / 2
        ends[0 if holds(seen(middle)) else 1] = middle
    return ends[rounded]
