"""A change of a public distribution: another spread, other shares, more zeros and missing values."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from privatize.data import records
from privatize.data.clipping import Array, convert_floats, convert_values
from privatize.data.columns import Column, array_of
from privatize.data.parts import edited, leaves_of
from privatize.data.persons import COUNTS, Persons
from privatize.data.support import is_pair, unwrap
from privatize.errors import SamplerError
from privatize.samplers.base import KINDS, Kind, Rng, Traits, draw, kind, support_of
from privatize.samplers.parameters import Frozen, chosen

Draw = Callable[[int], Any]
RATE = 0.25  # the smallest share of records that thinning may keep


@kind("change", streamable=True, immutable=True)
class Change(Kind):
    """What is different in a changed P.

    Attributes
    ----------
    spread : sequence of (column, factor, center, is_integer)
        Numbers x of a column become center + factor * (x - center), rounded if `is_integer`, and clipped
        into P's support. Zeros of other numbers stay: they often stand for "none".
    thinned : sequence of (column, values, kept)
        Records with one of these values are drawn again, but for a share `kept` of them.
    swapped : sequence of (column, values, others, shares)
        Half of these values become one of the others, which have these shares.
    added : sequence of (column, "zeros" or "missing", share)
        This share of the values becomes 0, or missing.

    Examples
    --------
    >>> from privatize import samplers
    >>> change = Change(spread=[("value", 0.5, 40, False)])
    >>> change.words
    '`value` is half as spread out'
    >>> samplers.uniform(0, 100).changed(change)
    uniform(0, 100).changed(Change(spread=[('value', 0.5, 40, False)]))
    """

    spread: Sequence[Any] = ()
    thinned: Sequence[Any] = ()
    swapped: Sequence[Any] = ()
    added: Sequence[Any] = ()

    def __post_init__(self) -> None:
        # The same numbers make the same change, whether they are 1 or 1.0, in lists or in tuples.
        try:
            own: dict[str, list[Any]] = {
                "spread": [
                    (a, Frozen(b), c if type(c) is str else Frozen(c), bool(d)) for a, b, c, d in self.spread
                ],
                "thinned": [(a, tuple(b), Frozen(c)) for a, b, c in self.thinned],
                "swapped": [(a, tuple(b), tuple(c), Frozen(d)) for a, b, c, d in self.swapped],
                "added": [
                    (a, {"zeros": "zeros", "missing": "missing"}[b], Frozen(c)) for a, b, c in self.added
                ],
            }
        except (TypeError, ValueError, KeyError):
            raise SamplerError("""Change(): a step is spread=[(column, factor, center, is_integer)],
                thinned=[(column, values, kept)], swapped=[(column, values, others, shares)] or
                added=[(column, "zeros" or "missing", share)].""") from None
        for name, steps in own.items():
            object.__setattr__(self, name, tuple(steps))

    @property
    def columns(self) -> frozenset[str]:
        """The labels of the columns that it changes."""
        steps = (*self.spread, *self.thinned, *self.swapped, *self.added)
        return frozenset(step[0] for step in steps)

    def own_traits(self) -> Traits:
        """Return its traits: draws one after the other are one draw if it uses no randomness of its own."""
        random = self.thinned or self.swapped or self.added or any(step[3] for step in self.spread)
        return replace(self.known, streamable=not random)

    @property
    def words(self) -> str:
        """What it changes, in words."""
        parts = []
        for factor in dict.fromkeys(step[1] for step in self.spread):
            names = [_coordinates(step) for step in self.spread if step[1] == factor]
            how = {0.5: "half", 2.0: "twice"}.get(max(factor.array.flat, key=_far), f"{factor!r} times")
            parts.append(f"{_listed(names)} {'are' if len(names) > 1 else 'is'} {how} as spread out")
        fewer = [f"{_some(step[1])} of `{step[0]}`" for step in (*self.thinned, *self.swapped)]
        if fewer:
            one = len(fewer) == sum(len(step[1]) for step in (*self.thinned, *self.swapped)) == 1
            parts.append(f"{_listed(fewer)} {'is' if one else 'are'} half as frequent")
        kinds = dict.fromkeys({"zeros": "zeros", "missing": "missing values"}[step[1]] for step in self.added)
        if kinds:
            parts.append(f"{' and '.join(kinds)} are more frequent")
        return ", ".join(parts)

    def __repr__(self) -> str:
        fields = ("spread", self.spread), ("thinned", self.thinned), ("swapped", self.swapped)
        given = ((name, steps) for name, steps in (*fields, ("added", self.added)) if steps)
        return f"Change({', '.join(f'{name}={list(steps)!r}' for name, steps in given)})"

    def draw(self, draw_some: Draw, support: Any, n: int, rng: Rng) -> Any:
        """Return n changed records.

        Parameters
        ----------
        draw_some : callable
            Draws as many records from P as it is asked for.
        support : object
            P's support.
        n : int
            How many records are returned.
        rng : numpy.random.Generator
            The only source of randomness.
        """
        drawn = self._thin(draw_some, support, n, rng) if self.thinned else draw_some(n)
        if not (self.spread or self.swapped or self.added):
            return drawn

        def edit(name: str, column: Column, inside: Any) -> Column:
            for act, steps in ((_swap, self.swapped), (_spread, self.spread), (_add, self.added)):
                for step in steps:
                    column = act(column, step, inside, rng) if step[0] == name else column
            return column

        return edited(drawn, edit, support)

    def _thin(self, draw_some: Draw, support: Any, n: int, rng: Rng) -> Any:
        """Draw until n records are accepted: each with a probability that depends on its own values alone."""
        found: list[Any] = []
        count = 0
        for _ in range(1000):
            size = math.ceil(1.1 * (n - count) / RATE) + 16 if found else 2 * n + 32
            drawn = draw_some(size)
            chance = np.ones(size)
            for name, column, _ in leaves_of(drawn, support):
                for step in self.thinned:
                    if step[0] == name:
                        chance = np.where(is_one_of(column, step[1]), chance * step[2].array, chance)
            kept = np.flatnonzero(rng.random(size) < chance)[: n - count]
            found.append(_take(drawn, kept))
            count += len(kept)
            if count == n:
                return found[0] if len(found) == 1 else _concat(found)
        raise SamplerError(f"""{self!r}: hardly any record of P is kept. Leave this change out of the
            family.""")


def _far(factor: float) -> float:
    return abs(math.log2(factor)) if factor > 0 else math.inf


def _coordinates(step: Any) -> str:
    """Return the name of a column, or of the coordinates of a record, that a step spreads."""
    name, factor = step[0], step[1].array
    moved = np.flatnonzero(factor.ravel() != 1).tolist() if factor.ndim else []
    if not 0 < len(moved) < factor.size:
        return f"`{name}`"
    return f"`{name}{moved}`" if len(moved) < 4 else f"`{name}` ({len(moved)} of {factor.size} numbers)"


def _some(values: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, values[:3])) + (f" and {len(values) - 3} others" if len(values) > 3 else "")


def _listed(parts: list[str]) -> str:
    if len(parts) > 4:
        parts = [*parts[:3], f"{len(parts) - 3} others"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


# --- what happens to a column -----------------------------------------------------------------


def is_one_of(column: Column, values: tuple[Any, ...]) -> Array:
    """Tell which values of a column are among some."""
    own = column.values
    if column.categories is not None:
        values = tuple(column.categories.index(value) for value in values if value in column.categories)
    each = (own == value for value in values)
    among = functools.reduce(np.logical_or, each) if values else np.zeros(len(own), bool)
    return among if column.missing is None else among & ~column.missing


def _swap(column: Column, step: Any, _: Any, rng: Rng) -> Column:
    """Return a column in which half of some values are replaced by others."""
    values, others, shares = step[1:]
    size = len(column.values)
    which = chosen(shares, len(others), size, rng)
    half = rng.random(size) < 0.5
    if column.categories is not None:
        new = np.array([column.categories.index(value) for value in others])[which]
    else:
        new = array_of(others)[which]
    dtype = column.values.dtype  # strings of a function's own may be too narrow for all values
    new = new.astype(np.result_type(dtype, new.dtype) if dtype.kind == "U" else dtype)
    return column.having(np.where(is_one_of(column, values) & half, new, column.values), column.missing)


def _spread(column: Column, step: Any, support: Any, rng: Rng) -> Column:
    """Return a column of numbers or dates with another spread, inside the support."""
    _, factor, center, is_integer = step
    own = column.values
    if own.dtype.kind == "M":
        middle = np.datetime64(center).astype(own.dtype)
        moved = middle + (own - middle) * factor.array.item()
        return column.having(convert_values(moved, own.dtype, support), column.missing)
    numbers = own.astype(np.float64, copy=False)
    times, middle = factor.end, center.end  # Python's numbers where possible, which are faster
    moved = numbers - middle
    moved *= times
    moved += middle
    # Integers are rounded at random, because half of 0 and 1 would always be rounded to 0.
    if is_integer:
        moved += rng.random(moved.shape)
        np.floor(moved, out=moved)
    elif np.count_nonzero(numbers) < numbers.size:
        moved[numbers == 0] = 0.0
    if type(times) is float:
        moved = numbers if times == 1 else moved
    elif (times == 1).any():
        moved = np.where(times == 1, numbers, moved)
    if own.dtype == np.float64 and _stays_inside(times, middle, support):
        return column.having(moved, column.missing)
    found = convert_floats(moved, own, support)
    if found is None:
        found = convert_values(moved, own.dtype, support)
    return column.having(found, column.missing)


def _stays_inside(factor: Any, center: Any, support: Any) -> bool:
    """Tell whether numbers that move half of the way to a center, or none, are inside their bounds."""
    inner = unwrap(support)[0]
    if not is_pair(inner) or not _all((factor == 0.5) | (factor == 1)):
        return False
    return _all(inner[0] <= center) and _all(center <= inner[1])


def _all(found: Any) -> bool:
    return found if type(found) is bool else bool(found.all())  # numpy is slow for one value


def _add(column: Column, step: Any, _: Any, rng: Rng) -> Column:
    """Return a column in which some values have become 0, or missing."""
    what, share = step[1:]
    new = rng.random(column.values.shape) < share.array
    if what == "zeros":
        changed = np.where(new, column.values.dtype.type(0), column.values)
        return column.having(changed, column.missing)
    return column.having(column.values, new if column.missing is None else new | column.missing)


# --- drawn records: datasets, or columns before they become a frame ----------------------------


def drawn_by(sampler: Any, n: int, rng: Rng) -> Any:
    """Draw n records: as columns from a table, since making frames takes longer than changing them."""
    return sampler.drawn(n, rng) if has_columns(sampler) else draw(sampler, n, rng)


def support_for(sampler: Any) -> Any:
    """Return the support of what `drawn_by` draws."""
    return sampler.supports if has_columns(sampler) else support_of(sampler)


def has_columns(sampler: Any) -> TypeGuard[Any]:
    """Tell whether a sampler draws columns, `drawn`, of which it makes datasets, `assemble`."""
    if type(sampler) not in KINDS or not hasattr(sampler, "assemble"):
        return False
    inner = getattr(sampler, "parent", getattr(sampler, "inner", None))
    return inner is None or has_columns(inner)


def _is_columns(drawn: Any) -> bool:
    return isinstance(drawn, dict) and all(isinstance(part, Column) for part in drawn.values())


def _take(drawn: Any, at: Array) -> Any:
    if isinstance(drawn, Column):
        return replace(drawn, values=drawn.values[at], missing=_at(drawn.missing, at))
    return {k: _take(v, at) for k, v in drawn.items()} if _is_columns(drawn) else records.take(drawn, at)


def _at(missing: Array | None, at: Array) -> Array | None:
    return None if missing is None else missing[at]


def _concat(parts: list[Any]) -> Any:
    first = parts[0]
    if isinstance(first, Column):
        missing = None if first.missing is None else np.concatenate([part.missing for part in parts])
        return replace(first, values=np.concatenate([part.values for part in parts]), missing=missing)
    if _is_columns(first):
        return {name: _concat([part[name] for part in parts]) for name in first}
    return records.concat(parts)


def fitting(change: Any, sampler: Any) -> Change:
    """Return a change if P has the columns that it names, or refuse it."""
    if not isinstance(change, Change):
        raise SamplerError(f"changed({change!r}): a change is needed, samplers.Change(spread=[...]).")
    if getattr(sampler, "independent", True) is False and change.thinned:
        raise SamplerError(f"""{sampler!r} draws records that share a parameter, and a record that is drawn
            again would have another one. Use a change that swaps values.""")
    drawn = drawn_by(sampler, 100, np.random.default_rng(0))
    if isinstance(drawn, Persons):
        raise SamplerError(f"""{sampler!r} draws persons with several rows each, who cannot be changed here.
            Change the samplers that it is made of.""")
    if COUNTS in change.columns or (change.thinned and isinstance(drawn, dict) and COUNTS in drawn):
        raise SamplerError(f"""{change!r}: of persons, neither the number of rows is changed nor persons are
            left out. Use a change that spreads, swaps or adds values of columns.""")
    few = leaves_of(drawn, support_for(sampler))
    unknown = sorted(change.columns - {label for label, _, _ in few})
    if unknown:
        raise SamplerError(f"""{change!r} names {unknown[0]!r}, which is no column of P. The columns are
            {sorted({label for label, _, _ in few})!r}.""")
    return change
