"""The stress test: tell whether an estimate is still large enough if P is a little different.

A few pairs are drawn from each of a few changed P. Then fresh pairs are drawn from the one with the most gaps
beyond the estimate, and these alone are tested. If the changed P gave the same gaps as P, their number beyond
the k-th smallest of m gaps would have a distribution that is known exactly, whatever the gaps are like
(docs/choosing.md), so the choice costs no certainty and at most 1% of all stress tests are false alarms.
"""

from __future__ import annotations

import functools
import html
import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from privatize.calibration.norms import Vector
from privatize.display.cards import grid
from privatize.errors import FragileEstimateWarning
from privatize.identity.library import outside
from privatize.planning.plan import Plan

_FALSE_ALARMS = 100  # one in so many
_MATTERS = 1.25  # estimates that would not be larger than this, relative to Δ̂, are no reason to warn
_HEADS = ("if", "pairs beyond the estimate", "it would be", "")


@dataclass(frozen=True)
class Changed:
    """What a stress test found for one change of P.

    Attributes
    ----------
    words : str
        What is different from P.
    pairs : int
        How many pairs were drawn from the changed P.
    beyond : int
        How many of them were beyond the estimate. Those on which the function failed are.
    ratio : float
        About how much larger the estimate would be; infinite if the function fails too often.
    alarm : bool
        Whether this is evidence that the estimate is too small for the changed P.
    """

    words: str
    pairs: int
    beyond: int
    ratio: float
    alarm: bool = False


@dataclass(frozen=True)
class Stress:
    """What a stress test found: a row for each change of P that was tried.

    Attributes
    ----------
    rows : tuple of Changed
        The changes. The worst of them was tried with more pairs than the others.
    expected : int
        At most so many pairs of the worst change were to be expected beyond the estimate, with a probability
        of 99%, if the change made no difference.
    tried : Tried
        The gaps behind it.

    Examples
    --------
    >>> from privatize import estimate_sensitivity, plan, samplers
    >>> def slope(data):
    ...     x, y = data.T
    ...     return np.polyfit(x, y, 1)[0]
    >>> square = samplers.uniform([0, 0], [6, 100])
    >>> found = estimate_sensitivity(slope, n=200, sampler=square, norm="l1", plan=plan(gamma=0.05), seed=4,
    ...                              stress=True)
    >>> found.stress.fragile.alarm
    True
    """

    rows: tuple[Changed, ...]
    expected: int
    tried: Tried

    @property
    def fragile(self) -> Changed | None:
        """The change for which the estimate is too small, if there is one."""
        return next((row for row in self.rows if row.alarm), None)

    def cells(self) -> list[list[str]]:
        """Return the table as text."""
        return [
            [row.words, f"{row.beyond} of {row.pairs}", times(row.ratio), "fragile" if row.alarm else ""]
            for row in self.rows
        ]

    def section(self) -> str:
        """Return the table as a part of a page."""
        return grid(_HEADS, self.cells())

    def _repr_html_(self) -> str:
        return f"<div><b>{html.escape(self.summary())}</b></div>{self.section()}"

    def summary(self) -> str:
        """Say in a sentence what was found."""
        found = self.fragile
        if found is None:
            return f"{len(self.rows)} changes of P were tried, and none was found to break the estimate"
        return f"fragile: {times(found.ratio)} if {found.words}"

    def __repr__(self) -> str:
        lines = [
            f"  {how} beyond, {ratio}, if {words}{flag and ': '}{flag}"
            for words, how, ratio, flag in self.cells()
        ]
        return "\n".join(["stress test", *lines])


def times(ratio: float) -> str:
    """Return a ratio in words."""
    return "infinite" if ratio == math.inf else f"about {ratio:.1f} times as large"


@dataclass(frozen=True)
class Tried:
    """The gaps of a stress test, which are remembered with the estimate.

    Attributes
    ----------
    words : tuple of str
        The changes of P.
    first : tuple of tuple of float
        The gaps of a first look at each.
    worst : int
        Which of them was tested.
    fresh : tuple of float
        The gaps of the test.
    """

    words: tuple[str, ...]
    first: tuple[tuple[float, ...], ...]
    worst: int
    fresh: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return vars(self).copy()

    @classmethod
    def from_json(cls, facts: Any) -> Self:
        """Return what `to_json` was made from."""
        first = tuple(tuple(map(float, gaps)) for gaps in facts["first"])
        fresh = tuple(map(float, facts["fresh"]))
        return cls(tuple(map(str, facts["words"])), first, int(facts["worst"]), fresh)

    def judged(self, plan: Plan, value: float) -> Stress:
        """Compare the gaps with an estimate, the k-th smallest of m."""
        rows = []
        expected = most_expected(plan.m, plan.k, len(self.fresh))
        for at, words in enumerate(self.words):
            gaps = np.sort(self.fresh if at == self.worst else self.first[at])
            beyond, ratio = (
                int((gaps > value).sum()),
                float(gaps[-(-len(gaps) * plan.k // plan.m) - 1]) / value,
            )
            alarm = at == self.worst and beyond > expected and ratio >= _MATTERS
            rows.append(Changed(words, len(gaps), beyond, ratio, alarm))
        return Stress(tuple(rows), expected, self)


def worst_of(first: Vector, value: float) -> int:
    """Return the row of gaps with the most beyond the estimate; of several, with the largest second gap.

    Examples
    --------
    >>> worst_of(np.array([[1.0, 2.0, 9.0], [3.0, 4.0, 9.0], [5.0, 6.0, 7.0]]), value=8.0)
    1
    """
    beyond, second = (first > value).sum(axis=1), np.sort(first)[:, -2]
    return max(range(len(first)), key=lambda at: (int(beyond[at]), float(second[at])))


@functools.cache
def most_expected(m: int, k: int, count: int) -> int:
    """Return how many of some further gaps are beyond the k-th smallest of m, with a probability of 99%.

    All ``C(m + count, count)`` orders of the m and the further gaps are equally likely if both have the same
    distribution. With ties, fewer are beyond.

    Examples
    --------
    >>> most_expected(557, 544, 63)
    5
    """
    orders, beyond = math.comb(m + count, count), 0
    for more in range(count, -1, -1):
        beyond += math.comb(m - k + more, more) * math.comb(k - 1 + count - more, count - more)
        if _FALSE_ALARMS * beyond > orders:
            return more
    raise AssertionError("All orders together are all orders.")


def warn_fragile(name: str, n: int, stress: Stress | None) -> None:
    """Warn the caller if the stress test has found that the estimate hangs on P."""
    found = None if stress is None else stress.fragile
    if stress is None or found is None:
        return
    text = f"""{name}(), n={n}: the estimate hangs on an assumption of P. It would be {times(found.ratio)} if
        {found.words}: {found.beyond} of {found.pairs} pairs of neighbours from such a P are beyond it, where
        at most {stress.expected} are expected. If your data may be like that, the noise may be too small for
        it. Learn P from the data, learn(data, within=P, epsilon=0.3), or use a family, sampler=P.family(), or
        both. {name}.estimate({n}).stress has all changes that were tried; configure(stress=False) switches
        the stress test off."""
    warnings.warn(" ".join(text.split()), FragileEstimateWarning, stacklevel=outside())
