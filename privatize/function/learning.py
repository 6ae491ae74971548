"""Learn P from private data, with plain differential privacy."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privatize.budgets.budget import Budget
from privatize.budgets.charges import Lesson
from privatize.budgets.partition import Part
from privatize.data.parts import leaves_of
from privatize.errors import SettingsError
from privatize.function.box import Box
from privatize.function.opening import Opened, Opening
from privatize.function.settings import Settings
from privatize.identity.declared import declare
from privatize.noise import grid
from privatize.planning.numbers import as_integer
from privatize.samplers import Distribution
from privatize.samplers.designs import Counted, Design, design
from privatize.samplers.learned import Learned
from privatize.samplers.learned_people import (
    LearnedParts,
    PeopleDesign,
    alike,
    design_people,
    medians_of,
)
from privatize.samplers.people import PeopleDistribution

Pairs = Sequence[Sequence[str]]
Atoms = Mapping[str, Sequence[Any]]


def learn(
    data: Any,
    *,
    within: Any = None,
    epsilon: float,
    budget: Budget | Part | None = None,
    together: Pairs = (),
    atoms: Atoms | None = None,
) -> Distribution:
    """Learn a P near private data, with plain differential privacy.

    Records are counted in cells of each column: categories, bins of numbers, and single numbers that are
    common: 0, both bounds, and those in `atoms`. The counts get exact discrete Laplace noise, so that the
    learned P is epsilon-differentially private for all neighbours that replace a record.

    Parameters
    ----------
    data : dataset
        Anything that private functions take, sealed or not.
    within : Distribution, optional
        A bounded P, usually a `privatize.samplers.table`. The learned P has its support, and draws what it
        draws. By default the P that the data was sealed with.
    epsilon : float
        What to spend. `learning_error` says what it takes.
    budget : Budget, optional
        What it is charged to, beside the budget of sealed data and those that were entered.
    together : list of pairs of columns
        Columns whose dependence is learned. All others are independent in the learned P.
    atoms : dict, optional
        For columns of numbers, public lists of single values that are common.

    Returns
    -------
    Distribution
        A sampler like any other; `people`, if `within` draws persons. If sealed data has a budget, the
        same P is returned, without charge, when the same is asked again.

    Examples
    --------
    >>> import numpy as np
    >>> from privatize import learn, samplers
    >>> ages = np.random.default_rng(0).normal(40, 8, 1000)
    >>> P = learn(ages, within=samplers.uniform(0, 120), epsilon=0.5)
    >>> P
    learned(within=uniform(0, 120), epsilon=0.5, n=1000)
    >>> bool(abs(np.median(P.draw(1000, np.random.default_rng(1))) - 40) < 5)
    True
    """
    box = Box()
    try:
        box.data, data = data, None
        opening = Opening(
            name="learn",
            settings=Settings(epsilon=epsilon, sampler=within, budget=budget),
            purpose="learning",
        )
        return opening.run(box, functools.partial(_learned, opening.settings.epsilon, together, atoms or {}))
    finally:
        box.data = None


def _learned(epsilon: float, together: Pairs, atoms: Atoms, found: Opened) -> Distribution:
    within = found.template.sampler
    made = _design(within, found.n, epsilon, together, atoms)
    digest = declare(within).digest
    asked = Lesson(dataset=found.subjects.dataset, n=found.n, within=digest, settings=made.key)
    kind = LearnedParts if isinstance(made, PeopleDesign) else Learned
    read = functools.partial(kind.of_facts, within=within)
    known: Any = found.once(asked, read, lambda: functools.partial(_noisy, made))
    return known.people() if isinstance(known, LearnedParts) else known


def _design(within: Any, n: int, epsilon: float, together: Pairs, atoms: Atoms) -> Design | PeopleDesign:
    """Return what is counted to learn P."""
    made = design_people if isinstance(within, PeopleDistribution) else design
    return made(within, n, epsilon, together, atoms)


def _noisy(made: Design | PeopleDesign, box: Box) -> Learned | LearnedParts:
    """Count the records of every cell, add noise, and make P of that."""
    if isinstance(made, PeopleDesign):
        counts = made.counts(box.value)
    else:
        counts = made.counts(*zip(*_columns(box.value), strict=True))
    parts = zip(counts, made.groups, strict=True)
    found = made.learned(
        [grid.laplace(own, 2.0, group.epsilon, np.ones(len(own), dtype=bool)) for own, group in parts]
    )
    if isinstance(made, PeopleDesign) and isinstance(found, LearnedParts) and made.compared:
        medians, chance = medians_of(found, made.compared)
        if medians:
            raw, moved = made.agreement(box.value, medians), 2.0 * len(medians)
            noisy = grid.laplace(raw, moved, made.epsilon, np.ones(len(raw), dtype=bool))
            shared = alike(noisy, moved / made.epsilon, chance, made.within.shared)
            return replace(found, shared=shared)
    return found


def _columns(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the values of every column, and of every coordinate of an array; and which of them are missing.

    Values of a list are objects: a dtype that they share would depend on all of them, so that one record
    could change how the others compare.
    """
    for _, column, _ in leaves_of(data):
        values = column.values
        yield from ((each, column.missing) for each in values.reshape(len(values), -1).T)


@dataclass(frozen=True, repr=False)
class LearningNoise:
    """How much of what would be learned is noise. Made by `learning_error`.

    Attributes
    ----------
    groups : tuple
        What is counted: its columns, its number of cells, its part of ε, its noise, and the smallest share
        of the records that stands out from it.
    noise : float
        The share of the records that noise alone may put into wrong cells, in the worst group.
    smallest : float
        The share of the records that a cell needs to stand out from the noise, in the worst group.
    """

    groups: tuple[Counted, ...]

    @property
    def noise(self) -> float:
        """Return the share of the worst group."""
        return max(group.noise for group in self.groups)

    @property
    def smallest(self) -> float:
        """Return the share of the worst group."""
        return max(group.smallest for group in self.groups)

    def __repr__(self) -> str:
        lines = [
            f"  {' and '.join(g.names):<28} {g.cells:>6} cells, epsilon={g.epsilon:.4g}: "
            f"{g.smallest:.1%} of the records, {g.noise:.1%} is noise"
            for g in self.groups
        ]
        first = f"a cell with {self.smallest:.1%} of {self.groups[0].n:,} records stands out from the noise"
        return "\n".join([f"{first}; before smoothing, up to {self.noise:.1%} is noise", *lines])


def learning_error(
    n: int, *, within: Any, epsilon: float, together: Pairs = (), atoms: Atoms | None = None
) -> LearningNoise:
    """Tell how much of a P that is learned from n records would be noise, without any private data.

    Parameters
    ----------
    n : int
        The number of records.
    within, epsilon, together, atoms
        As for `learn`.

    Examples
    --------
    >>> from privatize import learning_error, samplers
    >>> P0 = samplers.table(age=samplers.integers(18, 90), sex=samplers.categorical(["F", "M"]))
    >>> learning_error(1000, within=P0, epsilon=0.3).smallest < 0.06
    True
    """
    settings, count = Settings(epsilon=epsilon, sampler=within), as_integer(n)
    if count < 1:
        raise SettingsError(f"learning_error(n={n!r}): the number of records is an integer >= 1.")
    return LearningNoise(_design(settings.sampler, count, settings.epsilon, together, atoms or {}).groups)
