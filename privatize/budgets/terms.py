"""What a budget was opened with, and what its totals cost together."""

import functools
import math
import operator
from collections import Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from privatize.budgets.charges import Charge, Totals
from privatize.errors import SettingsError
from privatize.planning.bounds import exact
from privatize.planning.composition import NOTHING, Chosen, Cost, tight

_Totals = Mapping[tuple[str, str], Totals]


@dataclass(frozen=True)
class Terms:
    """A budget's caps and rule: parts of one partition cost as much as the largest, all else adds up.

    Attributes
    ----------
    name : str
        Name of the budget.
    cap : Cost
        What may be spent in all.
    composition : {"sum", "tight"}
        Whether ε is added up, or is the smallest of this sum and tighter bounds that hold at the budget's δ;
        with a catalogue, which is asked as you go, it is the one bound of `Chosen`.
    charges, created, migrated
        From the ledger: the number of charges, when the budget was opened, and how many charges were
        converted from the earlier layout.
    neighbours, unit : str
        What neighbours are, and what a record is.
    """

    name: str
    cap: Cost
    composition: str
    charges: int = field(default=0, compare=False)
    created: str = field(default="", compare=False)
    neighbours: str = "replace"
    unit: str = "record"
    migrated: int = field(default=0, compare=False)

    def caps(self) -> str:
        """Return the caps in words."""
        numbers = (f"{name}={float(getattr(self.cap, name)):g}" for name in ("epsilon", "delta", "gamma"))
        return f"{', '.join(numbers)}, composition={self.composition!r}"

    def cost(self, totals: _Totals) -> Cost:
        """Return what totals cost together; use the tighter bound only if the sum exceeds the caps."""
        found = summed(totals)
        if self.composition == "tight" and _as_you_go(totals):
            return self._chosen(totals, found)
        return found if self.composition == "sum" or found.fits(self.cap) else self._tight(totals, found)

    def least(self, totals: _Totals) -> Cost:
        """Return what totals cost together, by whichever bound is smaller."""
        cost = self.cost(totals)
        if self.composition == "sum" or not cost.epsilon or _as_you_go(totals):
            return cost
        return min(cost, self._tight(totals, cost), key=lambda each: each.epsilon)

    def _tight(self, totals: _Totals, summed: Cost) -> Cost:
        """Return the sum, but with the ε that holds at the budget's entire δ if that is less."""
        base = Counter(totals.get(("", ""), Totals()).counts)
        parts = [(partition, total.counts) for (partition, _), total in totals.items() if partition]
        if len({partition for partition, _ in parts}) > 1:  # composed one after the other: the sum holds
            return summed
        delta = float(self.cap.delta)
        found = max(tight(dict(base + Counter(counts)), delta) for _, counts in parts or [("", {})])
        less = math.isfinite(found) and (exact(found) < summed.epsilon or summed.delta > self.cap.delta)
        return Cost(exact(found), self.cap.delta, summed.gamma, summed.average) if less else summed

    def _chosen(self, totals: _Totals, summed: Cost) -> Cost:
        """Return the sum, but with the ε of releases that were chosen as you go."""
        largest: dict[str, Chosen] = {}
        for (partition, _), total in totals.items():
            largest[partition] = Chosen.of(total.counts).larger(largest.get(partition, Chosen()))
        found = functools.reduce(operator.add, largest.values())
        at_cap = found.epsilon_at(self.cap)
        beyond = self.cap.epsilon + summed.epsilon + 1  # it does not fit, whatever the caps
        epsilon = exact(at_cap) if math.isfinite(at_cap) else beyond
        return Cost(epsilon, self.cap.delta if found.ratio else found.delta, summed.gamma, summed.average)

    def check(self, totals: _Totals, charge: Charge) -> None:
        """Refuse what cannot be added up tightly with answers of a catalogue."""
        gaussian = charge.kind.startswith("gaussian ") or not (charge.epsilon or charge.delta)
        if self.composition == "tight" and not gaussian and _as_you_go(totals):
            raise SettingsError(f"""The budget {self.name!r} has composition='tight', and a catalogue was
                declared in it, which is asked as you go. Then only answers with Gaussian noise add up
                tightly, and {charge.function}() has {charge.mechanism}. Use mechanism="gaussian", or another
                budget with composition="sum".""")


def _as_you_go(totals: _Totals) -> bool:
    """Tell whether a catalogue was declared: its answers may depend on each other."""
    return any(total.catalogues for total in totals.values())


def tally(totals: MutableMapping[tuple[str, str], Totals], row: Mapping[str, Any]) -> None:
    """Add a charge of the history to totals."""
    total = totals.setdefault((row["partition"], row["part"]), Totals())
    total.cost += Cost.of(row["epsilon"], row["delta"], row["charged"])
    if row["epsilon"] or row["delta"] or row["purpose"] == "catalogue":
        total.counts = total.counts | {row["kind"]: total.counts.get(row["kind"], 0) + 1}


def summed(totals: _Totals) -> Cost:
    """Return the sum of all totals, where each partition counts by its largest part."""
    largest: dict[str, Cost] = {}
    for (partition, _), total in totals.items():
        known = largest.get(partition)
        largest[partition] = total.cost if known is None else known.larger(total.cost)
    return functools.reduce(operator.add, largest.values() or [NOTHING])
