"""How far answers are spread over datasets from P: noise that is larger tells no more than P does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from privatize.calibration.norms import Vector
from privatize.outputs.structure import Structure

_ROUNDING = 1e-9  # relative differences that may come from rounding
_NAMED = 5  # numbers that are named
_FEW = 20  # integers that take at most so many values in all may be labels


@dataclass(frozen=True, eq=False)
class Spread:
    """How far answers are spread over datasets from P.

    Attributes
    ----------
    deviations : array
        The standard deviation of each number.
    count : int
        Over how many datasets.
    labels : bool
        Whether the answers look like labels: several integers that take few values in all.

    Examples
    --------
    >>> from privatize.outputs.describe import describe
    >>> found = Spread.of({0: np.array([1.0]), 1: np.array([3.0])}, describe(1.5))
    >>> found.deviations.round(3).tolist(), found.count, found.labels
    ([1.414], 2, False)
    """

    deviations: Vector
    count: int
    labels: bool = False

    @classmethod
    def of(cls, answers: Mapping[int, Vector], structure: Structure) -> Self | None:
        """Return the spread of some answers, by the index of their pair; None if there are fewer than two."""
        if len(answers) < 2:
            return None
        rows = np.array([answers[at] for at in sorted(answers)])
        with np.errstate(all="ignore"):
            deviations = rows.std(axis=0, ddof=1)
            deviations[deviations <= _ROUNDING * np.abs(rows).max(axis=0)] = 0.0
        return cls(deviations, len(rows), _are_labels(rows, structure))

    def over(self, noise: Vector) -> Vector:
        """Return the signal: the spread of each number over the standard deviation of its noise."""
        with np.errstate(all="ignore"):
            found = self.deviations / noise
            return np.where(np.isnan(found), 0.0, found)

    def constant(self, names: list[str]) -> str:
        """Say which numbers were the same on all datasets: it is not known how much noise they need.

        Examples
        --------
        >>> Spread(np.array([0.0, 1.5]), 64).constant(["diagonal", "other"])
        'diagonal: it gets the noise of a number that moves far'
        """
        found = [names[at] for at in np.flatnonzero(self.deviations == 0).tolist()]
        if not found or len(found) == len(names):
            return ""
        some = ", ".join(found[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
        return f"{some}: {'they get' if len(found) > 1 else 'it gets'} the noise of a number that moves far"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"deviations": self.deviations.tolist(), "count": self.count, "labels": self.labels}

    @classmethod
    def from_json(cls, facts: Any) -> Self:
        """Return what `to_json` was made from."""
        deviations = np.array([float(each) for each in facts["deviations"]])
        return cls(deviations, int(facts["count"]), bool(facts["labels"]))


def _are_labels(rows: Vector, structure: Structure) -> bool:
    """Tell whether answers are several integers of few values. Counts are not labels: their sum is fixed."""
    if structure.size <= 2 or not structure.integers().all() or not (rows == np.rint(rows)).all():
        return False
    counts = np.ptp(rows.sum(axis=1)) == 0 and np.ptp(rows, axis=0).any()
    return len(np.unique(rows)) <= _FEW and not counts


def largest(found: "list[Spread | None]") -> Spread | None:
    """Return the largest spread of each number under the members of a family; None if one is not known."""
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    deviations = np.max([each.deviations for each in known], axis=0)
    return Spread(deviations, min(each.count for each in known), all(each.labels for each in known))
