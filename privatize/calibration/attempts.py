"""Attempts to refute a bound: datasets with records at the corners of a support, and ways between them.

A way leads from one dataset to another by replacing one record after the other. If its ends are further
apart than the bound allows for so many replacements, two neighbours on it are further apart than the bound,
and cutting the way into pieces finds them. So a median's jump is found, which no random pair would hit.
"""

import copy
import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import streams
from privatize.calibration.buffers import Pair
from privatize.calibration.neighbours import Heartbeat, NeighbourSampler
from privatize.data import records
from privatize.data.corners import Place, put
from privatize.samplers import Sampler, draw

PIECES = 6
"""How many pieces a way is cut into."""
_SAMPLED, _CORNERS, _AT_RANDOM = 200, 32, 24  # attempts: draws alone, corners (twice), random corners
# For each place of a record which corner it has, or -1 for what P draws; None: each record is drawn from P.
Recipe = tuple[int, ...] | None


class Attempt(NamedTuple):
    """Two datasets that differ in the records from one step to another of a way.

    Attributes
    ----------
    number : int
        Which stream its records and its order are drawn from.
    before, after, others : Recipe
        What the records on the way are at its begin and at its end, and what all others are.
    width : int
        How many records the way replaces.
    start, stop : int
        How many it has replaced in the first dataset, and in the second.
    order : int
        In which order it replaces them: 0 from the first record, 1 from the last, 2 at random.
    """

    number: int
    before: Recipe
    after: Recipe
    others: Recipe
    width: int
    start: int
    stop: int
    order: int

    @property
    def steps(self) -> int:
        """How many records differ."""
        return self.stop - self.start

    def pieces(self) -> "list[Attempt]":
        """Cut it into pieces of about the same length."""
        cuts = sorted({self.start + self.steps * i // PIECES for i in range(PIECES + 1)})
        return [self._replace(start=a, stop=b) for a, b in itertools.pairwise(cuts)]


class AttemptSampler(NeighbourSampler):
    """Makes the pairs of attempts: datasets of 2n records, of which n are the first one of the pair.

    Parameters
    ----------
    sampler, n, seed, target
        As for `NeighbourSampler`.
    support : object
        What records are clipped to, or None.
    places : list of Place
        The places of a record, with their corners.
    """

    uses_up = False

    def __init__(self, sampler: Sampler, n: int, seed: int, target: Any, support: Any, places: list[Place]):
        super().__init__(sampler, n, seed, target)
        self.support, self.places = support, places
        self.attempts: list[Attempt] = []

    def span(self, start: int, stop: int, heartbeat: Heartbeat | None = None) -> Any:
        """Make the pairs of some attempts, one after the other."""
        for index in range(start, stop):
            if heartbeat is not None:
                heartbeat(index)
            yield self.pair_of(self.attempts[index])

    def pair_of(self, attempt: Attempt) -> Pair:
        """Return the records of both datasets, and the first position in which they differ."""
        pool, first, second, order = self.described(attempt)
        return Pair(records.take(pool, np.concatenate([first, second])), int(order[attempt.start]))

    def described(self, attempt: Attempt) -> tuple[Any, Any, Any, NDArray[np.intp]]:
        """Return the records of an attempt, which of them both datasets have, and the order of its way."""
        n, rng = self.n, streams.stream(self.seed, streams.RECORDS, attempt.number)
        recipes = attempt.before, attempt.after, attempt.others
        own = [at for at, recipe in enumerate(recipes) if recipe is None and (at < 2 or attempt.width < n)]
        drawn = draw(self.sampler, 3 + n * len(own), rng)
        pool = self._at_corners(drawn, recipes)
        pool = records.concat([pool, drawn]) if own else pool
        rows = [6 + n * own.index(at) + np.arange(n) if at in own else np.full(n, at) for at in range(3)]
        order = rng.permutation(n) if attempt.order == 2 else np.arange(n)[:: 1 - 2 * attempt.order]
        both = []
        for step in (attempt.start, attempt.stop):
            made = rows[2].copy()
            for at, part in ((0, order[step : attempt.width]), (1, order[:step])):
                made[part] = rows[at][part]
            both.append(made)
        return records.cast(pool, self.target), *both, order

    def _at_corners(self, drawn: Any, recipes: tuple[Recipe, ...]) -> Any:
        """Return the first drawn records, one for each recipe, with the corners that it has."""
        cells = {
            (row, place.path): place.values[which]
            for row, recipe in enumerate(recipes)
            for place, which in zip(self.places, recipe or (), strict=False)
            if which >= 0
        }
        pool = records.head(drawn, len(recipes))
        if not cells:
            return pool
        with np.errstate(all="ignore"):
            return records.convert(put(pool, cells), drawn, self.support)

    def neighbours(self, drawn: Any, position: int) -> tuple[Any, Any]:  # noqa: ARG002
        """Return both datasets of a pair."""
        one, other = (records.take(drawn, np.arange(self.n) + at) for at in (0, self.n))
        if isinstance(drawn, list):  # records that are repeated must not be one object
            one, other = (list(map(copy.copy, data)) for data in (one, other))
        return records.fresh(one), records.fresh(other)


def first_attempts(places: list[Place], n: int, rng: np.random.Generator) -> list[Attempt]:
    """Return pairs from P, and attempts with one record or all at corners, first, last or anywhere."""
    drawn = (-1,) * len(places)
    low, high, last = (tuple(min(at, len(p.values) - 1) for p in places) for at in (0, 1, 10**9))
    found = [Attempt(0, drawn, drawn, None, 1, 0, 1, 2)] * _SAMPLED
    for before, after in ((low, high), (high, low), (low, last), (drawn, None)):
        found += [Attempt(0, before, after, None, *way) for way in _ways(n)]
    single = [(at, which) for at, place in enumerate(places) for which in range(len(place.values))]
    for at, which in rng.permutation(np.array(single, dtype=int).reshape(-1, 2))[:_CORNERS].tolist():
        # Once alone among draws, and once in a group of its own, as one category is.
        one, other, third = ((*recipe[:at], which, *recipe[at + 1 :]) for recipe in (drawn, low, high))
        found += [Attempt(0, drawn, one, None, 1, 0, 1, 2)]
        found += [Attempt(0, other, third, low if which else high, 1, 0, 1, 2)]
    found += [_at_random(places, n, rng, entire=entire) for entire in [True, False] * (_AT_RANDOM // 2)]
    return [attempt._replace(number=number) for number, attempt in enumerate(found)]


def _ways(n: int) -> list[tuple[int, int, int, int]]:
    """Return width, start, stop and order of ways: one step at the ends or in the middle, or all steps."""
    ways = [(width, 0, 1, order) for width in (1, n) for order in (0, 1)] + [(1, 0, 1, 2)]
    ways += [(n, 0, n, order) for order in (0, 2)]
    return ways + [(n, at, at + 1, 2) for at in sorted({0, (n - 1) // 2, n // 2, n - 1})]


def _at_random(places: list[Place], n: int, rng: np.random.Generator, *, entire: bool) -> Attempt:
    """Return an attempt with random corners, over an entire way or one step of it."""
    before, after, others = (tuple(int(rng.integers(-1, len(p.values))) for p in places) for _ in range(3))
    if places and rng.integers(2):  # a record that changes in one place
        at = int(rng.integers(len(places)))
        after = (*before[:at], after[at], *before[at + 1 :])
    width, order = int(rng.choice([1, n])), int(rng.integers(3))
    start = 0 if entire else int(rng.integers(width))
    return Attempt(0, before, after, others, width, start, width if entire else start + 1, order)


def mutated(attempt: Attempt, places: list[Place], n: int, number: int, rng: np.random.Generator) -> Attempt:
    """Return an attempt that differs in one value of one record, in its draws, its order or its way."""
    what, roles = int(rng.integers(10)), ["before", "after", "others"]
    if what < 6 and places:  # half of them begin with another record of the attempt
        role, at = str(rng.choice(roles)), int(rng.integers(len(places)))
        source = role if rng.integers(2) else str(rng.choice(roles))
        recipe = list(getattr(attempt, source) or (-1,) * len(places))
        recipe[at] = int(rng.integers(-1, len(places[at].values)))
        return attempt._replace(**{role: tuple(recipe)})  # type: ignore[arg-type]
    if what == 6:
        return attempt._replace(order=int(rng.integers(3)))
    if what == 7:
        return attempt._replace(before=attempt.after, after=attempt.before)
    if what == 8:
        start = int(rng.integers(width := int(rng.choice([1, attempt.width, n]))))
        return attempt._replace(width=width, start=start, stop=start + 1)
    return attempt._replace(number=number)
