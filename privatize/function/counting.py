"""Count, with differential privacy, how many records conversion into P's support changes."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatize.data.changing import changes
from privatize.data.persons import Persons
from privatize.display.cards import Card, Printed
from privatize.display.figures import figure
from privatize.errors import ArgumentError, SettingsError
from privatize.function.box import Box
from privatize.function.opening import Opened, Opening
from privatize.function.question import Definition
from privatize.function.settings import Settings
from privatize.mechanisms.accuracy import half_widths
from privatize.noise import grid

_CONFIDENCE = 0.95  # of all intervals of a table together


@dataclass(frozen=True)
class Count:
    """About how many records of one column were changed in one way.

    Attributes
    ----------
    column : str
        Name of the column.
    kind : {"clipped", "filled", "recoded"}
        What happened: a number or a date beyond a bound became that bound, a missing value became one that P
        draws, or a value that P does not draw became one that it does.
    count : int
        How many records, with noise, from 0 to n.
    low, high : int
        What the raw number lies between.
    share : float
        The count's share of all records.
    """

    column: str
    kind: str
    count: int
    low: int
    high: int
    share: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Changed(Printed):
    """How many records were changed before a function saw them. Made by `PrivateFunction.changed`.

    Attributes
    ----------
    counts : tuple of Count
        One for each column and each kind of change that P's support allows there.
    n : int
        Number of records.
    epsilon : float
        What it cost: the counts are differentially private, for all neighbours.
    sensitivity : int
        How far one record moves all counts together: 1 for a column with one kind of change, 2 with two.
    within : int
        Each count is within ± this of the raw one, all of them together with 95% probability.
    given : bool
        Whether sampled answers came before it in its budget: then it is private given those.

    Examples
    --------
    >>> from privatize import privatize, samplers
    >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 100))(np.mean)
    >>> changed = mean.changed(np.full(500, 430.0), epsilon=10)
    >>> changed.found[0].kind, changed.sensitivity
    ('clipped', 2)
    """

    counts: tuple[Count, ...]
    n: int
    epsilon: float
    sensitivity: int
    within: int
    given: bool

    @property
    def found(self) -> tuple[Count, ...]:
        """The counts above the noise, the largest first; with 95% probability all are really above zero."""
        return tuple(sorted((each for each in self.counts if each.low), key=lambda each: -each.count))

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        if not self.found:
            return (
                f"nothing is above the noise. Up to {min(2 * self.within, self.n):,} changed records in a "
                f"column may go unnoticed; a larger epsilon shows fewer."
            )
        shown = [f"about {each.count:,} were {each.kind} in {each.column}" for each in self.found[:3]]
        more = f", and {len(self.found) - 3} more counts are above the noise" if self.found[3:] else ""
        return f"of {self.n:,} records {', '.join(shown)}{more}."

    def card(self) -> Card:
        """Return the counts as a card."""
        shown = "{0.count:,}, {0.share:.1%} ({0.low:,} to {0.high:,})"
        rows = [(f"{each.column}, {each.kind}", shown.format(each)) for each in self.counts]
        given = ", given the sampled answers before it" if self.given else ""
        note = (
            f"In brackets: what the raw numbers lie between, all of them with 95% probability. "
            f"Differentially private with epsilon={self.epsilon:g}{given}: Laplace noise of scale "
            f"{figure(self.sensitivity / self.epsilon)} on each count."
        )
        return Card(f"changed records: {self.summary}", rows, note=note)


def changed(definition: Definition, box: Box, epsilon: float) -> Changed:
    """Return how many of the records in the box were changed, or raise from a frame that holds nothing.

    Parameters
    ----------
    definition : Definition
        The private function whose P and budget it is about.
    box : Box
        The datasets that the function would get, as its arguments.
    epsilon : float
        What to spend.
    """
    try:
        opening, names = _opening(definition, epsilon), definition.binding.names
        if len(box.args) != len(names):
            raise ArgumentError(f"""{opening.name}() takes the dataset alone, {", ".join(names)}, and no other
                arguments: it got {len(box.args)}.""")
        box.data = box.args if definition.binding.aligned else box.args[0]
    finally:
        box.args = None
    return opening.run(box, functools.partial(_counted, opening))


def _opening(definition: Definition, epsilon: float) -> Opening:
    own, name = definition.settings, f"{definition.name}.changed"
    if definition.proven is not None or own.domain == "as-is":
        raise SettingsError(f"""{name}() counts the records that are outside P's support, and
            {definition.name}() converts no records: it has no P with bounds, or domain='as-is'.""")
    return Opening(
        name=name,
        settings=Settings(epsilon=epsilon, sampler=own.sampler, domain=own.domain, budget=own.budget),
        purpose="check",
    )


def _counted(opening: Opening, found: Opened) -> Changed:
    support, epsilon, n = found.template.support, opening.settings.epsilon, found.n
    if support is None:
        raise SettingsError(f"""{opening.name}() counts the records that are outside P's support, and
            {found.template.sampler!r} has no bounds.""")
    (cells, noised, sensitivity), given = found.paid(lambda box: _noised(box, support, epsilon))
    level = _CONFIDENCE ** (1 / max(len(cells), 1))  # the noise on each count is independent
    integers = np.ones(1, dtype=bool)
    within = int(half_widths("laplace", sensitivity / epsilon, level, integers)[0])
    counts = []
    for (column, kind), raw in zip(cells, noised, strict=True):
        count, low, high = (min(max(value, 0), n) for value in (raw, raw - within, raw + within))
        counts.append(Count(column, kind, count, low, high, count / n))
    return Changed(
        counts=tuple(counts), n=n, epsilon=epsilon, sensitivity=sensitivity, within=within, given=given
    )


def _noised(box: Box, support: Any, epsilon: float) -> tuple[list[tuple[str, str]], list[int], int]:
    """Return columns and kinds, the count of each with noise, and the sensitivity that the noise is for.

    In a column, a record is counted in at most one kind, by its own values. So replacing a record moves at
    most one count down and one up by one: by 1 where there is one kind, by 2 where there are more. Where
    people have several rows, persons are counted, and one of them may be in every count.
    """
    persons = box.data if type(box.data) is Persons else None
    columns = changes(box.data if persons is None else persons.rows, support)
    cells = [(column.name, kind) for column in columns for kind in column.kinds]
    which = [column.codes == at + 1 for column in columns for at in range(len(column.kinds))]
    if persons is None:
        sensitivity = sum(min(len(column.kinds), 2) for column in columns)
        raw = [int(np.count_nonzero(each)) for each in which]
    else:  # persons with at least one such row, who may have some of every kind
        sensitivity, slots = len(cells), persons.slots
        raw = [len(np.unique(slots[each])) for each in which]
    whole = np.ones(len(raw), dtype=bool)
    noised = grid.laplace(np.array(raw, dtype=np.float64), sensitivity, epsilon, whole)
    return cells, [int(count) for count in noised], sensitivity
