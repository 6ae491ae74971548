"""What is counted to learn a P of persons: how many rows they have, what they have once, and one row of each.

One person is in exactly one cell of each group, so replacing a person moves two counts of a group by one
each, as with records. Of a person's rows one is counted, chosen at random: with all of them the noise would
be as many times larger as a person may have rows.

How alike the rows of a person are is learned from two rows of each: whether both are on the same side of the
median that was learned before, more often than by chance.
"""

import hashlib
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privatize.data import records
from privatize.data.parts import leaves_of
from privatize.data.persons import Persons, names_of
from privatize.data.support import is_pair, unwrap
from privatize.errors import SamplerError
from privatize.noise.quantile import shares
from privatize.planning.numbers import as_float
from privatize.samplers.designs import Counted, Design, design
from privatize.samplers.histograms import Vector
from privatize.samplers.learned import Learned
from privatize.samplers.people import PeopleDistribution

_PARTS = ("rows", "person", "visit")
_INFORMATIVE = 0.25  # how often two independent rows must differ in a column, at least
_MOST_ALIKE = 0.95  # so that rows of a person still differ


@dataclass(frozen=True)
class LearnedParts:
    """What was learned of each part of a P of persons.

    Attributes
    ----------
    within : PeopleDistribution
        The P that it was learned within.
    learned : dict
        The learned distribution of each part.
    shared : float
        How alike the rows of a person are.
    """

    within: PeopleDistribution
    learned: dict[str, Learned]
    shared: float

    def people(self) -> PeopleDistribution:
        """Return the learned P."""
        parts: dict[str, Any] = dict(self.learned)
        return replace(self.within, **parts, shared=self.shared)

    def facts(self) -> dict[str, Any]:
        """Return what was learned as JSON."""
        return {name: part.facts() for name, part in self.learned.items()} | {"shared": self.shared}

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any], within: PeopleDistribution) -> "LearnedParts":
        """Return what facts of a learned P make within the same P again; refuse what does not fit."""
        known = _parts(within)
        if set(facts) != {*known, "shared"} or not 0 <= as_float(facts["shared"]) <= 1:
            raise SamplerError(f"What was stored of a learned P does not fit {within!r}. Learn it again.")
        made = {name: Learned.of_facts(facts[name], known[name]) for name in known}
        return cls(within, made, float(facts["shared"]))


@dataclass(frozen=True)
class PeopleDesign:
    """What is counted to learn a P of persons.

    Attributes
    ----------
    within : PeopleDistribution
        The P that is learned within.
    parts : dict
        What is counted of each part.
    compared : tuple of str
        The columns of numbers and dates in which two rows of a person are compared.
    epsilon : float
        What of ε is for how alike the rows of a person are; 0 if that is not learned.
    """

    within: PeopleDistribution
    parts: dict[str, Design]
    compared: tuple[str, ...]
    epsilon: float

    @property
    def groups(self) -> tuple[Counted, ...]:
        """Everything that is counted."""
        return tuple(group for part in self.parts.values() for group in part.groups)

    @property
    def key(self) -> str:
        """What determines the counts and what is made of them, as 64 hexadecimal digits."""
        parts = [[(name, part.key) for name, part in self.parts.items()], self.compared, self.epsilon]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def counts(self, persons: Persons) -> list[Vector]:
        """Return how many persons are in each cell of each group."""
        found = self.parts["rows"].counts([persons.counts]) if "rows" in self.parts else []
        starts = np.cumsum(persons.counts) - persons.counts
        some = np.flatnonzero(persons.counts)
        # A fresh and secret choice: the first row by a column is not like the others.
        rng = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
        at = starts[some] + rng.integers(persons.counts[some])
        rows = records.take(persons.rows, at)
        columns = dict(zip(names_of(rows), leaves_of(rows), strict=True))
        for name in ("person", "visit"):
            if name in self.parts:
                own = [columns[each][1] for each, _ in self.parts[name].columns]
                values, missing = [each.values for each in own], [each.missing for each in own]
                found += self.parts[name].counts(values, missing)
        return found

    def learned(self, noisy: Sequence[Vector]) -> LearnedParts:
        """Return the P that noisy counts speak for; how alike rows are stays as it was."""
        left, made = list(noisy), {}
        # Who has no rows is counted with the number of rows, and nowhere else.
        nobody = max(0, round(float(left[0][0]))) if "rows" in self.parts and self.within.unit.empty else 0
        for name, part in self.parts.items():
            own = part if name == "rows" else replace(part, n=max(1, part.n - nobody))
            made[name], left = own.learned(left[: len(part.groups)]), left[len(part.groups) :]
        return LearnedParts(self.within, made, self.within.shared)

    def agreement(self, persons: Persons, medians: Mapping[str, Any]) -> Vector:
        """Return k for each person who has two rows; and in how many of k columns more rows agree than not.

        Two rows of each person are chosen at random. They agree in a column if both are above the median, or
        both are not. A person adds k to the first number, and -k to k to the second; or nothing to both, with
        fewer rows. So replacing a person moves both together by 2k at most.
        """
        rng = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
        some = np.flatnonzero(persons.counts > 1)
        counts, starts = persons.counts[some], (np.cumsum(persons.counts) - persons.counts)[some]
        one = rng.integers(counts)
        other = (one + 1 + rng.integers(counts - 1)) % counts
        both = [records.take(persons.rows, starts + at) for at in (one, other)]
        agree = 0
        for name, median in medians.items():
            above = [np.asarray(_column(rows, name) > median) for rows in both]
            agree += int(np.count_nonzero(above[0] == above[1]))
        asked = len(medians) * len(some)
        return np.array([float(asked), float(2 * agree - asked)])


def medians_of(learned: LearnedParts, names: Sequence[str]) -> tuple[dict[str, Any], float]:
    """Return medians of columns of a row, and how often two independent rows agree, by what was learned.

    Columns in which nearly all rows are on one side of the median say nothing, and are left out.
    """
    drawn = learned.learned["visit"].drawn(4096, np.random.default_rng(0))
    found, chances = {}, []
    for name in names:
        values = drawn[name].values
        middle = np.sort(values)[len(values) // 2]
        above = float(np.mean(values > middle))
        if 2 * above * (1 - above) > _INFORMATIVE:
            found[name] = middle
            chances.append(1 - 2 * above * (1 - above))
    return found, float(np.mean(chances)) if chances else 1.0


def alike(noisy: Vector, scale: float, chance: float, before: float) -> float:
    """Return how alike the rows of a person are, from noisy counts of agreement.

    It is the correlation of normal deviates that agree as often: with probability 1/2 + arcsin(r) / π, if by
    chance they agree half of the time. The scale of the noise is added once: too little is the worse mistake
    for sums. If the counts are mostly noise, it stays what P says.
    """
    asked, more = (float(each) for each in noisy)
    if asked < 3 * scale:
        return before
    agreeing = ((more + scale) / asked + 1) / 2
    share = min(max((agreeing - chance) / (1 - chance), 0.0), 1.0)
    return max(before, min(math.ceil(20 * math.sin(math.pi / 2 * share)) / 20, _MOST_ALIKE))


def _column(rows: Any, name: str) -> Any:
    """Return the values of a column as P has them."""
    return dict(zip(names_of(rows), leaves_of(rows), strict=True))[name][1].values


def design_people(
    within: PeopleDistribution,
    n: int,
    epsilon: float,
    together: Sequence[Sequence[str]],
    atoms: Mapping[str, Sequence[Any]],
) -> PeopleDesign:
    """Return what is counted to learn a P from n persons, or refuse."""
    if within.rows is None or within.dependent():
        raise SamplerError(f"""P cannot be learned within {within!r}, because a function makes columns of it.
            Use tables of columns that are independent of each other, and learn which go together=.""")
    known = _parts(within)
    columns = {name: ["value"] if name == "rows" else list(part.supports) for name, part in known.items()}
    _check_names(columns, together, list(atoms))
    compared = _compared(within)
    *parts, last = shares(epsilon, [*(float(len(own)) for own in columns.values()), 1.0 * bool(compared)])
    made = {}
    for (name, own), part in zip(columns.items(), parts, strict=True):
        pairs = [pair for pair in together if set(pair) <= set(own)]
        mine = {each: values for each, values in atoms.items() if each in own}
        made[name] = design(known[name], n, part, pairs, mine, epsilon)
    return PeopleDesign(within, made, compared, last)


def _check_names(columns: dict[str, list[str]], together: Sequence[Sequence[str]], atoms: list[str]) -> None:
    """Refuse names that no part of P has, and pairs of columns of different parts."""
    for what, names in (*(("together", pair) for pair in together), ("atoms", atoms)):
        unknown = [each for each in names if not any(each in own for own in columns.values())]
        if unknown:
            raise SamplerError(f"{what}= names {unknown[0]!r}, and the columns are {columns!r}.")
    split = [pair for pair in together if not any(set(pair) <= set(own) for own in columns.values())]
    if split:
        raise SamplerError(f"""together={together!r}: {split[0]!r} are a column of a person and one of a row,
            and only columns of the same kind can be learned together.""")


def _parts(within: PeopleDistribution) -> dict[str, Any]:
    """Return the distributions that are learned: not that of a number of rows which all persons have."""
    known = {name: getattr(within, name) for name in _PARTS if getattr(within, name) is not None}
    if within.unit.most == within.least:
        known.pop("rows", None)
    return known


def _compared(within: PeopleDistribution) -> tuple[str, ...]:
    """Return the columns of numbers and dates in which two rows of a person are compared."""
    if within.unit.most == 1:
        return ()
    supports = within.visit.supports.items()
    ordered = [name for name, support in supports if is_pair(unwrap(support)[0])]
    return tuple(name for name in ordered if name != within.unit.order)
