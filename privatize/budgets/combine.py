"""What the totals of a budget cost together."""

import functools
import math
import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from privatize.budgets.charges import Totals
from privatize.planning.bounds import exact
from privatize.planning.composition import NOTHING, Cost, tight

_Totals = Mapping[tuple[str, str], Totals]


@dataclass(frozen=True)
class Combination:
    """The rule of a budget: parts of one partition cost as much as the largest, all else adds up.

    Attributes
    ----------
    composition : {"sum", "tight"}
        Whether ε simply adds up, or the least of that and tighter bounds at the budget's δ holds.
    cap : Cost
        What may be spent in all.
    """

    composition: str
    cap: Cost

    def __call__(self, totals: _Totals) -> Cost:
        """Return what totals cost together; by the tighter bound only if the sum is too much."""
        summed = _summed(totals)
        return summed if self.composition == "sum" or summed.fits(self.cap) else self._tight(totals, summed)

    def least(self, totals: _Totals) -> Cost:
        """Return the same, by whichever bound is smaller."""
        cost = self(totals)
        if self.composition == "sum" or not cost.epsilon:
            return cost
        return min(cost, self._tight(totals, cost), key=lambda each: each.epsilon)

    def _tight(self, totals: _Totals, summed: Cost) -> Cost:
        """Return the same with the ε that holds at the whole of the budget's δ, if that is less."""
        base = Counter(totals.get(("", ""), Totals()).counts)
        parts = [(partition, total.counts) for (partition, _), total in totals.items() if partition]
        if len({partition for partition, _ in parts}) > 1:  # one after the other: their sum holds
            return summed
        delta = float(self.cap.delta)
        found = max(tight(dict(base + Counter(counts)), delta) for _, counts in parts or [("", {})])
        less = math.isfinite(found) and (exact(found) < summed.epsilon or summed.delta > self.cap.delta)
        return Cost(exact(found), self.cap.delta, summed.gamma) if less else summed


def _summed(totals: _Totals) -> Cost:
    largest: dict[str, Cost] = {}
    for (partition, _), total in totals.items():
        known = largest.get(partition)
        largest[partition] = total.cost if known is None else known.larger(total.cost)
    return functools.reduce(operator.add, largest.values() or [NOTHING])


def average_gamma(totals: _Totals) -> float:
    """Return the share of pairs under P that is not covered, on average over calibrations."""
    largest: dict[str, Fraction] = {}
    for (partition, _), total in totals.items():
        largest[partition] = max(largest.get(partition, Fraction(0)), total.average)
    return float(sum(largest.values()))
