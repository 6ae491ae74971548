"""Which changes of P make a family around it, and which a stress test: from what a draw of P shows.

All numbers in a change are public: they come from draws of P with a fixed seed.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from privatize.data.clipping import Array, absent_in, are_integers
from privatize.data.columns import Column
from privatize.data.parts import leaves_of
from privatize.data.persons import COUNTS, Persons
from privatize.data.support import OneOf, coordinate, is_pair, unwrap
from privatize.errors import SamplerError
from privatize.samplers.base import KINDS, Kind, origin_of, traits_of
from privatize.samplers.change import RATE, Change, drawn_by, is_one_of, support_for

MOST_MEMBERS = 8  # of a family, for categories
MORE = 0.1  # the share of values that become 0, or missing: more costs noise and covers no more real data
_DRAWN = 16_384  # records from which medians and shares are computed
_MOST_CLIPPED = 0.25  # the share of values that may end at a bound when a stress test doubles a spread
_MOST_HALVED = 2 / 3  # categories with a larger share together are not halved by a stress test
_FEW = 8  # integers with at most so many values are treated as categories


@dataclass(frozen=True)
class _Leaf:
    """What a draw from P shows of one column."""

    label: str
    column: Column
    support: Any

    @cached_property
    def absent(self) -> Array:
        """Which values are missing."""
        return absent_in(self.column.values, self.column.missing)

    @cached_property
    def seen(self) -> Array:
        """The values that are not missing, in one dimension."""
        return self.column.values[~self.absent]

    @cached_property
    def is_integer(self) -> bool:
        """Whether all numbers are integers."""
        return are_integers(self.column.values)

    @cached_property
    def numeric(self) -> bool:
        """Whether these are numbers or dates, and not groups: at half their spread a group would be empty."""
        inner, kind = unwrap(self.support)[0], self.column.values.dtype.kind
        if self.column.categories is not None or isinstance(inner, OneOf) or kind not in "iufM":
            return False
        seen = self.seen
        return len(seen) > 0 and not self.values and bool((seen != seen[0]).any())

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The categories, or the few numbers, that the column may have."""
        inner, own = unwrap(self.support)[0], self.column.values
        if isinstance(inner, OneOf):
            return inner.values if own.ndim == 1 else ()
        if own.dtype.kind == "b" and own.ndim == 1:
            return False, True
        if own.ndim > 1 or own.dtype.kind not in "iuf":
            return ()
        if is_pair(inner) and self.is_integer:
            low, high = (np.asarray(end, dtype=np.float64) for end in inner)
            if not low.ndim and high - low < _FEW:
                return tuple(range(math.ceil(low), math.floor(high) + 1))
        seen = self.seen
        # Labels such as -1 and 1, whose P has no bounds. Most columns have more values among their first.
        few = len(set(seen[:64].tolist())) <= _FEW and len(known := set(seen.tolist())) <= _FEW
        return tuple(sorted(known)) if few else ()

    @cached_property
    def among(self) -> list[Array]:
        """Which records have each of the values."""
        return [is_one_of(self.column, (value,)) for value in self.values]

    @cached_property
    def centers(self) -> Any:
        """The medians."""
        values = self.column.values
        if values.dtype.kind == "M":
            days = np.sort(self.seen)
            return str(days[len(days) // 2])
        if values.ndim == 1:
            return _rounded(_median(self.seen.astype(np.float64)))
        return _rounded(_medians(np.where(self.absent, np.nan, values.astype(np.float64))))

    def zeros(self) -> Any:
        """Return which coordinates of a record may be 0, as 0 and 1, or None if none may."""
        inner = unwrap(self.support)[0]
        if not self.numeric or self.column.values.dtype.kind == "M" or not is_pair(inner):
            return None
        inside = (np.asarray(inner[0]) <= 0) & (np.asarray(inner[1]) >= 0)
        return inside.astype(np.float64) if inside.any() else None

    def spread(self, factor: Any) -> tuple[Any, ...]:
        """Return the step that changes the spread around the median."""
        return self.label, factor, self.centers, self.is_integer or self.column.values.dtype.kind == "M"


def _median(values: Array) -> Any:
    """Return the median of numbers, as np.median does."""
    # np.median() and np.unique() import numpy.ma, which takes a fifth of the time of a first answer.
    ends = (len(values) - 1) // 2, len(values) // 2
    low, high = np.partition(values, ends)[[*ends]]
    return low if low == high else (low + high) / 2


def _medians(values: Array) -> Array:
    """Return the median of each column of numbers, without missing ones, as np.nanmedian does."""
    ordered, count = np.sort(values, axis=0), np.count_nonzero(~np.isnan(values), axis=0)
    ends = (np.asarray(at)[None] for at in ((count - 1) // 2, count // 2))
    low, high = (np.take_along_axis(ordered, at, 0)[0] for at in ends)
    return np.asarray(np.where(low == high, low, (low + high) / 2))


def _rounded(numbers: Any) -> Any:
    """Return numbers with four digits, which are enough for medians and shares, and short to read."""
    array = np.asarray(numbers)
    return np.array([float(f"{number:.4g}") for number in array.ravel().tolist()]).reshape(array.shape)


class Seen:
    """What some records of P, drawn with a fixed seed, show of its columns.

    Parameters
    ----------
    sampler : Sampler
        P.
    most : int
        How many records at most.
    """

    def __init__(self, sampler: Any, most: int = _DRAWN) -> None:
        sampler = sampler.inner if getattr(sampler, "tag", None) == "fixed size" else sampler
        support = support_for(sampler)
        few = drawn_by(sampler, 2, np.random.default_rng(0))
        width = sum(column.values.size for _, column, _ in leaves_of(few, support)) // 2
        self.size = min(most, max(256, 2**22 // max(width, 1)))
        drawn = drawn_by(sampler, self.size, np.random.default_rng(0))
        if isinstance(drawn, Persons):
            raise SamplerError(f"""{sampler!r} draws persons with several rows each, and it is not known how
                it may be changed. Pass a list of samplers of your own: sampler=[P1, P2].""")
        # The number of rows of persons is changed by itself, see `PeopleDistribution.family`.
        self.leaves = [_Leaf(*each) for each in leaves_of(drawn, support) if each[0] != COUNTS]
        # If columns are independent, swapping values has the same law as thinning records, and is faster.
        origin = origin_of(sampler)
        separate = type(origin) in KINDS and origin.tag == "table"
        separate = separate and all(getattr(each, "tag", "") != "dependent column" for each in origin.parts())
        separate = separate or (type(origin) in KINDS and origin.tag == "people")
        self.joint = len(self.leaves) > 1 and not separate and traits_of(sampler).independent

    @cached_property
    def numeric(self) -> list[tuple[str, int]]:
        """The columns of numbers and dates: label, and which coordinate of an array."""
        width = {leaf.label: leaf.column.values[:1].size for leaf in self.leaves if leaf.numeric}
        return [(label, at) for label, size in width.items() for at in range(size)]

    def narrow(self, at: tuple[str, int]) -> bool:
        """Tell whether most of a column would still be inside its bounds if it were twice as spread out."""
        leaf = next(leaf for leaf in self.leaves if leaf.label == at[0])
        inner, seen = (
            unwrap(leaf.support)[0],
            leaf.column.values.reshape(len(leaf.column.values), -1)[:, at[1]],
        )
        if not is_pair(inner):
            return True
        ends = coordinate(inner, leaf.column.values.shape[1:], at[1])
        low, high = np.asarray(ends).astype(seen.dtype if seen.dtype.kind == "M" else np.float64)
        seen = seen[seen == seen]  # without missing values
        center = np.partition(seen, len(seen) // 2)[len(seen) // 2]
        beyond = (seen - center > (high - center) / 2) | (center - seen > (center - low) / 2)
        return bool(beyond.mean() <= _MOST_CLIPPED)

    def spread(self, factor: float, only: Sequence[tuple[str, int]] | None = None) -> Change:
        """Return the change of the spread of all columns of numbers and dates, or of some."""
        steps, wanted = [], set(self.numeric if only is None else only)
        for leaf in self.leaves:
            every = range(leaf.column.values[:1].size if leaf.numeric else 0)
            moved = [(leaf.label, at) in wanted for at in every]
            if any(moved):
                shape = leaf.column.values.shape[1:]
                factors = factor if all(moved) else np.where(moved, factor, 1.0).reshape(shape)
                steps.append(leaf.spread(factors))
        return Change(spread=steps)

    def added(self) -> Change:
        """Return the change to more zeros and missing values, wherever P's support has them."""
        zeros = ((leaf.label, "zeros", leaf.zeros()) for leaf in self.leaves)
        steps: list[Any] = [(name, what, MORE * at) for name, what, at in zeros if at is not None]
        steps += [(leaf.label, "missing", MORE) for leaf in self.leaves if leaf.absent.any()]
        return Change(added=steps)

    def fewer(self, chosen_of: Callable[[_Leaf, Array], tuple[Any, ...]]) -> Change:
        """Return the change to half the share of some values of each column, which a function chooses.

        The function gets a column, and the shares of its values.
        """
        steps: dict[str, tuple[Any, ...]] = {}
        sets: dict[str, Array] = {}
        for leaf in self.leaves:
            shares = np.array([which.mean() for which in leaf.among])
            values = chosen_of(leaf, shares) if len(shares) else ()
            halved = np.array([value in values for value in leaf.values], dtype=bool)
            rest = shares[~halved]
            if shares[halved].sum() > 0 and rest.sum() > 0:
                others = [value for value in leaf.values if value not in values]
                steps[leaf.label] = leaf.label, values, others, _rounded(rest / rest.sum())
                sets[leaf.label] = np.flatnonzero(is_one_of(leaf.column, values))
        kept = _kept(sets, self.size) if self.joint else {}
        return Change(
            thinned=[(*steps[name][:2], _rounded(share)) for name, share in kept.items()],
            swapped=[step for name, step in steps.items() if name not in kept],
        )


def _kept(sets: dict[str, Array], size: int) -> dict[str, float]:
    """Return the share of records in each set to keep, so that each set has half of its share of all.

    Columns may depend on each other, so the shares are found in rounds. Sets are left out if all together
    would keep too few records: those with the largest shares first.
    """
    kept: dict[str, float] = {}
    weights = np.ones(size)
    for name in sorted(sets, key=lambda name: len(sets[name])):
        tried, own = kept | {name: 1.0}, weights.copy()
        for _ in range(10):
            moved = 0.0
            for each, share in tried.items():
                goal, now = len(sets[each]) / size / 2, own[sets[each]].sum() / own.sum()
                tried[each] = min(1.0, share * goal / (1 - goal) * (1 - now) / now)
                own[sets[each]] *= tried[each] / share
                moved = max(moved, abs(tried[each] / share - 1))
            if moved < 1e-3:
                break
        if np.mean(own) >= RATE:
            kept, weights = tried, own
    return kept


def family_changes(sampler: Any) -> Iterator[Change]:
    """Yield the changes that make a family around P: at most 11, all different."""
    seen = Seen(sampler)
    longest = max((len(leaf.values) for leaf in seen.leaves), default=0)
    fewer = [seen.fewer(partial(_every_eighth, at)) for at in range(min(longest, MOST_MEMBERS))]
    found = (seen.spread(0.5), seen.spread(2.0), *fewer, seen.added())
    yield from dict.fromkeys(change for change in found if change.columns)


def _every_eighth(at: int, leaf: _Leaf, _: Array) -> tuple[Any, ...]:
    return leaf.values[at::MOST_MEMBERS]


def stress_changes(sampler: Any, most: int = 6) -> tuple[Change, ...]:
    """Return a few changes of P that are as specific as their number allows, for a stress test.

    Columns of numbers at half their spread; those at twice their spread that P does not spread over all of
    their bounds already, since no data has half of its values at the bounds, and that P has not learned;
    every other category at half its share, then the others; more zeros and missing values. Where there are
    too many columns, some are changed together.

    Examples
    --------
    >>> from privatize.samplers import boolean, table, uniform
    >>> for change in stress_changes(table(carat=uniform(0.2, 5), sex=boolean(0.1))):
    ...     print(change.words)
    `carat` is half as spread out
    True of `sex` is half as frequent
    """
    seen = Seen(sampler, 2048)
    narrow = [] if _is_learned(sampler) else list(filter(seen.narrow, seen.numeric))
    rest = [change for change in (seen.spread(2.0, narrow), seen.added()) if change.columns]
    numeric, values = seen.numeric, [leaf.label for leaf in seen.leaves if leaf.values]
    remaining = most - len(rest)
    each = len(numeric) + 2 * len(values) <= remaining  # whether every column has changes of its own
    groups = [[name] for name in values] if each else [values] if values else []
    first = min(len(numeric), max(1, remaining - 2 * len(groups)))
    found = [seen.spread(0.5, numeric[at::first]) for at in range(first)]
    found += [seen.fewer(partial(_every_other, names, at)) for names in groups for at in range(2)]
    return tuple(dict.fromkeys(change for change in (*found, *rest) if change.columns))[:most]


def _is_learned(sampler: Any) -> bool:
    """Tell whether P was learned from data, or a part of it: then it is about as spread out as the data."""
    if not isinstance(sampler, Kind):
        return False
    return sampler.tag == "learned" or any(map(_is_learned, sampler.parts()))


def _every_other(labels: Sequence[str], at: int, leaf: _Leaf, shares: Array) -> tuple[Any, ...]:
    """Return every other value of some columns, but not if they are most of what P draws."""
    few = leaf.label in labels and shares[at::2].sum() <= _MOST_HALVED
    return leaf.values[at::2] if few else ()
