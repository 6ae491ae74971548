"""The estimate for a family of P: the largest of its members' estimates, in one norm."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from privatize.calibration.order_statistic import order_statistic, widened
from privatize.calibration.sensitivity import Sensitivity
from privatize.calibration.spread import largest as widest
from privatize.display.cards import Card
from privatize.errors import CalibrationError
from privatize.outputs.containers import Dict
from privatize.outputs.structure import Structure
from privatize.planning.plan import Plan


@dataclass(frozen=True, eq=False, repr=False)
class FamilySensitivity(Sensitivity):
    """The largest of the estimates for the members of a family of P.

    Whatever P of the family the data is from, a pair is beyond the largest estimate only if it is beyond that
    P's own. So `gamma` holds under each member: it is the largest of theirs, as everything here is the worst
    over all members (docs/choosing.md).
    """

    @classmethod
    def of(cls, members: Sequence[tuple[str, Sensitivity]]) -> "FamilySensitivity":
        """Return the largest of several estimates that have norm, coins and plan in common."""
        first = members[0][1]
        for name, each in members:
            if (each.shape, each.norm, each.coin_seed) != (first.shape, first.norm, first.coin_seed):
                raise ValueError(f"The member {name!r} was measured in another norm, or with other coins.")
            # The weights belong to numbers by their place, so that even the order of keys must be the same.
            kinds = [kind_of(found.structure, first.shape.kind != "none") for found in (first, each)]
            if kinds[0] != kinds[1]:
                raise CalibrationError(f"""The function returns outputs of different structure under the
                    members {members[0][0]!r} and {name!r} of the family. Keys, labels, types and shapes are
                    published as they are: return the same ones, whatever the data is.""")
        largest = max((each for _, each in members), key=lambda each: each.value)
        if not largest.value:  # of one member it may be 0, of all it would be no noise
            with naming(members[0][0]):
                order_statistic(first.gaps, first.plan, None)
        # Rounding noise that was seen under one member is the function's, whatever P is.
        noise = max(each.jitter for _, each in members)
        wider = widened(largest.value, noise)  # raises if the value is too small for it
        failed = max((each for _, each in members), key=lambda each: each.failed)
        own = {each.name: getattr(largest, each.name) for each in fields(Sensitivity)}
        own |= {"value": largest.value if largest.jitter else wider, "jitter": noise}
        own |= {"spread": widest([each.spread for _, each in members])}
        return cls(**own | {"failed": failed.failed, "cause": failed.cause, "members": tuple(members)})

    def _worst(self, read: Callable[[Sensitivity], Any]) -> Any:
        return max(read(each) for _, each in self.members)

    @property
    def gamma(self) -> float:
        """The confidence that holds under each member."""
        return float(self._worst(lambda each: each.gamma))

    @property
    def average_gamma(self) -> float:
        """The probability that a pair is beyond, on average over calibrations, under each member."""
        return float(self._worst(lambda each: each.average_gamma))

    @property
    def unlucky(self) -> float:
        """Probability that the calibration of some member is an unlucky one, which `gamma` includes."""
        return min(1.0, math.fsum(each.unlucky for _, each in self.members))

    @property
    def looks(self) -> int:
        """How many different plans have been read from the gaps of a member, at most."""
        return int(self._worst(lambda each: each.looks))

    def read(self, chosen: Plan, *, zero: bool = False) -> Sensitivity:
        """Read the estimate for another plan from the gaps of every member."""
        del zero  # of one member it may be 0
        return self.of([(name, each.read(chosen, zero=True)) for name, each in self.members])

    def certified(self) -> tuple[tuple[float, float], ...]:
        """Return, for every plan read from a member's gaps, the γ that was asked for and the worst now."""
        found: dict[float, float] = {}
        for asked, now in (look for _, each in self.members for look in each.certified()):
            found[asked] = max(now, found.get(asked, 0.0))
        return tuple(found.items())

    def card(self, known: float | None = None) -> Card:
        """Return what a person sees of the estimate, with a row for each member."""
        card = super().card(known)
        rows = [(f"under {name}", f"{each.value:.6g}") for name, each in self.members]
        whose, _ = max(self.members, key=lambda member: member[1].value)
        family = f"the largest of {len(self.members)}, that of {whose}; each has m={self.m:,} pairs"
        return replace(card, rows=[card.rows[0], ("family", family), *rows, *card.rows[1:]])

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, members={len(self.members)})"


def kind_of(node: Structure, ordered: bool) -> Any:
    """Return what the outputs of all members must have in common; a model also has facts of its own P."""
    by_key = isinstance(node, Dict) and not ordered
    skipped = ("items", "public", "encoded") if by_key else ("items", "public")
    own = [(each.name, getattr(node, each.name)) for each in fields(node) if each.name not in skipped]
    inner = [kind_of(each, ordered) for each in getattr(node, "items", ())]
    if "encoded" in skipped and isinstance(node, Dict):  # dicts are aligned by key
        inner = sorted(zip(map(repr, node.encoded), inner, strict=True))
    return node.tag, own, inner


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Have errors of a calibration name the member that they are about."""
    try:
        yield
    except CalibrationError as error:
        error.args = (f"Under the member {name!r} of the family: {error}",)
        raise
