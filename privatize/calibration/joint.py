"""Weights of a joint calibration, from the gaps of a pilot, and each function's share of its estimate.

On one sample of pairs T = max Gᵢ/wᵢ over the functions i. With Δ̂ the order statistic of one plan, a pair
with T ≤ Δ̂ has Gᵢ ≤ wᵢ·Δ̂ for all i at once: one γ for all of them (T1 in docs/catalogue.md).
"""

import math
from dataclasses import dataclass, field, fields, replace

from privatize.calibration.evaluators.joint import exponent_of, weight_of
from privatize.calibration.family_estimate import kind_of
from privatize.calibration.norms import Norm
from privatize.calibration.order_statistic import SMALLEST, floor_of
from privatize.calibration.pilot import chosen, divides, pooled_pairs
from privatize.calibration.sensitivity import Sensitivity
from privatize.calibration.spread import Spread
from privatize.display.cards import Card
from privatize.errors import CalibrationError, InfiniteSensitivityError, PlanError, ZeroSensitivityError
from privatize.mechanisms.base import Mechanism
from privatize.mechanisms.choosing import PilotPairs
from privatize.mechanisms.shapes import Shape
from privatize.mechanisms.weighted import weighted
from privatize.outputs.structure import Structure
from privatize.planning.plan import Plan

Weights = tuple[tuple[int, ...], ...]
"""For each function the exponent of its weight (see `weight_of`), and then how its noise is divided among its
numbers: an encoded `Shape`."""
_LARGEST = 1e290  # weights are between this and its inverse


def learned_weights(
    mechanism: Mechanism, found: list[PilotPairs], floor: float | None
) -> tuple[int, ...] | None:
    """Return the weights of one function, from the gaps of a pilot; None if it never moved and has no floor.

    Parameters
    ----------
    mechanism : Mechanism
        Has the norm.
    found : list of PilotPairs
        For each P of a family what the pairs have shown.
    floor : float or None
        The function's `min_sensitivity`.
    """
    several = divides(mechanism) and found[0].steps.shape[1] > 1
    shape = chosen(mechanism, pooled_pairs(found)) if several else Shape()
    norm = Norm(weighted(mechanism, shape).norm)
    # The largest over the family: under each of its P the function must not stand out.
    size = max(float(norm.gaps(each.steps).max(initial=0.0)) for each in found)
    size = max(size, floor_of(floor, shape) or 0.0)
    if not size > 0:
        return None
    return (exponent_of(min(max(size, 1 / _LARGEST), _LARGEST)), *shape.encoded)


@dataclass(frozen=True, eq=False, repr=False)
class Share(Sensitivity):
    """One function's part of a joint estimate.

    Its gaps are the joint ones in this function's unit, so each is at least as large as its own gap. All
    functions have one plan, whose γ holds for all of them at once.

    Attributes
    ----------
    joint : Sensitivity
        The estimate that it is a part of.
    """

    joint: Sensitivity = field(kw_only=True)

    @property
    def gamma(self) -> float:
        """The confidence that holds for all functions at once."""
        return self.joint.gamma

    @property
    def average_gamma(self) -> float:
        """The probability that a pair is beyond for any function, on average over calibrations."""
        return self.joint.average_gamma

    @property
    def unlucky(self) -> float:
        """Probability that the calibration is an unlucky one, which `gamma` includes."""
        return self.joint.unlucky

    def card(self, known: float | None = None) -> Card:
        """Return what a person sees of the estimate, and that it is a part of a joint one."""
        card = super().card(known)
        row = ("calibrated", "with other questions: the gaps are the largest of all, in the unit of this one")
        return replace(card, rows=[card.rows[0], row, *card.rows[1:]])

    def read(self, chosen: Plan, *, zero: bool = False) -> Sensitivity:
        """Refuse another plan: the one of a joint calibration was fixed for all functions together."""
        del zero
        if chosen == self.plan:
            return self
        what = f"""gamma={chosen.gamma:g} cannot be read from a joint calibration, whose plan (gamma=
            {self.plan.gamma:g}) was fixed for all its functions together. Declare them again, under another
            name and with that gamma."""
        raise PlanError(what, gamma=chosen.gamma, m=chosen.m, bound=chosen.bound)


def shares(
    found: Sensitivity, weights: Weights, mechanisms: list[Mechanism], floors: list[float | None]
) -> tuple[Sensitivity, ...]:
    """Return each function's share of a joint estimate.

    Parameters
    ----------
    found : Sensitivity
        The joint estimate.
    weights : tuple of tuple of int
        The weights that it was measured with.
    mechanisms : list of Mechanism
        The mechanism of each function.
    floors : list of float or None
        The `min_sensitivity` of each function.
    """
    if not found.value > 0:
        raise ZeroSensitivityError("A joint estimate of 0 would be no noise.", m=found.m, k=found.k)
    nodes: list[Structure] = found.structure.items  # type: ignore[attr-defined]
    for name, member in found.members:  # weights belong to numbers by their place, also in dicts
        own = zip(weights, nodes, member.structure.items, strict=True)  # type: ignore[attr-defined]
        if any(kind_of(a, True) != kind_of(b, True) for (_, *within), a, b in own if within):
            raise CalibrationError(f"""A scaled function returns its keys in another order under the member
                {name!r} of the family. Return the same ones in the same order, whatever the data is.""")
    each = zip(weights, mechanisms, floors, strict=True)
    return tuple(_share(found, at, *own, structure=nodes[at]) for at, own in enumerate(each))


def _part(found: Sensitivity, at: int) -> Spread | None:
    """Return the spread of one function's numbers."""
    if found.spread is None:
        return None
    sizes = [node.size for node in found.structure.items]  # type: ignore[attr-defined]
    start = sum(sizes[:at])
    return Spread(found.spread.deviations[start : start + sizes[at]], found.spread.count)


def _share(
    found: Sensitivity,
    at: int,
    weights: tuple[int, ...],
    mechanism: Mechanism,
    floor: float | None,
    *,
    structure: Structure,
) -> Share:
    weight, shape = weight_of(weights[0]), Shape.of(weights[1:])
    # A measured G/w is rounded: no more than two units of its last place are lost there and here.
    value = math.nextafter(found.value * weight * (1 + 2.0**-50), math.inf)
    value = max(value, floor_of(floor, shape) or 0.0, SMALLEST)
    if not value < math.inf:
        what = f"The joint estimate of {found.value:.3g} is beyond every float in the unit of a question."
        raise InfiniteSensitivityError(what, failed=found.failed, m=found.m, k=found.k)
    own = {each.name: getattr(found, each.name) for each in fields(Sensitivity)}
    gaps = found.gaps * weight
    gaps.setflags(write=False)
    own |= {"value": value, "norm": Norm(weighted(mechanism, shape).norm).label, "gaps": gaps}
    own |= {"structure": structure, "shape": shape, "min_sensitivity": floor, "stress": None}
    own |= {"spread": _part(found, at)}
    members = tuple(
        (name, _share(each, at, weights, mechanism, floor, structure=each.structure.items[at]))  # type: ignore[attr-defined]
        for name, each in found.members
    )
    return Share(**own | {"jitter": found.jitter * weight, "members": members, "joint": found})
