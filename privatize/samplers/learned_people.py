"""What is counted to learn a P of persons: how many rows they have, what they have once, and one row of each.

One person is in exactly one cell of each group, so replacing a person moves two counts of a group by one
each, as with records. Of a person's rows one is counted, chosen at random: with all of them the noise would
be as many times larger as a person may have rows.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privatize.data import records
from privatize.data.parts import leaves_of
from privatize.data.persons import Persons, names_of
from privatize.errors import SamplerError
from privatize.noise.quantile import shares
from privatize.samplers.designs import Counted, Design, design
from privatize.samplers.histograms import Vector
from privatize.samplers.learned import Learned
from privatize.samplers.people import PeopleDistribution

_PARTS = ("rows", "person", "visit")


@dataclass(frozen=True)
class LearnedParts:
    """What was learned of each part of a P of persons.

    Attributes
    ----------
    within : PeopleDistribution
        The P that it was learned within.
    learned : dict
        The learned distribution of each part.
    """

    within: PeopleDistribution
    learned: dict[str, Learned]

    def people(self) -> PeopleDistribution:
        """Return the learned P."""
        parts: dict[str, Any] = dict(self.learned)
        return replace(self.within, **parts)

    def facts(self) -> dict[str, Any]:
        """Return what was learned as JSON."""
        return {name: part.facts() for name, part in self.learned.items()}

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any], within: PeopleDistribution) -> "LearnedParts":
        """Return what facts of a learned P make within the same P again; refuse what does not fit."""
        known = {name: getattr(within, name) for name in _PARTS if getattr(within, name) is not None}
        if set(facts) != set(known):
            raise SamplerError(f"What was stored of a learned P does not fit {within!r}. Learn it again.")
        return cls(within, {name: Learned.of_facts(facts[name], known[name]) for name in known})


@dataclass(frozen=True)
class PeopleDesign:
    """What is counted to learn a P of persons.

    Attributes
    ----------
    within : PeopleDistribution
        The P that is learned within.
    parts : dict
        What is counted of each part.
    """

    within: PeopleDistribution
    parts: dict[str, Design]

    @property
    def groups(self) -> tuple[Counted, ...]:
        """Everything that is counted."""
        return tuple(group for part in self.parts.values() for group in part.groups)

    @property
    def key(self) -> str:
        """What determines the counts and what is made of them, as 64 hexadecimal digits."""
        parts = [(name, part.key) for name, part in self.parts.items()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def counts(self, persons: Persons) -> list[Vector]:
        """Return how many persons are in each cell of each group."""
        found = self.parts["rows"].counts([persons.counts])
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
        """Return the P that noisy counts speak for."""
        left, made = list(noisy), {}
        for name, part in self.parts.items():
            made[name], left = part.learned(left[: len(part.groups)]), left[len(part.groups) :]
        return LearnedParts(self.within, made)


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
    known = {name: getattr(within, name) for name in _PARTS if getattr(within, name) is not None}
    columns = {name: ["value"] if name == "rows" else list(part.supports) for name, part in known.items()}
    for what, names in (*(("together", pair) for pair in together), ("atoms", list(atoms))):
        unknown = [each for each in names if not any(each in own for own in columns.values())]
        if unknown:
            raise SamplerError(f"{what}= names {unknown[0]!r}, and the columns are {columns!r}.")
    split = [pair for pair in together if not any(set(pair) <= set(own) for own in columns.values())]
    if split:
        raise SamplerError(f"""together={together!r}: {split[0]!r} are a column of a person and one of a row,
            and only columns of the same kind can be learned together.""")
    parts = shares(epsilon, [float(len(own)) for own in columns.values()])
    made = {}
    for (name, own), part in zip(columns.items(), parts, strict=True):
        pairs = [pair for pair in together if set(pair) <= set(own)]
        mine = {each: values for each, values in atoms.items() if each in own}
        made[name] = design(known[name], n, part, pairs, mine)
    return PeopleDesign(within, made)
