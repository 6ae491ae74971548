"""A learned P: cells of columns with the weights that private noisy counts gave them, within another P."""

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data.clipping import convert_values
from privatize.data.columns import Column, array_of
from privatize.data.support import OneOf, unwrap
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, code_of, draw, kind
from privatize.samplers.distribution import Distribution
from privatize.samplers.histograms import WEIGHT, Cells
from privatize.samplers.layouts import layout_of
from privatize.samplers.parameters import Frozen

Places = NDArray[np.intp]
Group = tuple[tuple[str, ...], tuple[int, ...]]
_FACTS = ("groups", "mixed", "epsilon", "n", "noise")


@kind("learned", "within", immutable=True)
class Learned(Distribution):
    """A distribution that was learned from private data. Made by `privatize.learn`.

    Its support, container and columns are those of the P that it was learned within. Columns are independent
    of each other, except those that were learned together.

    Attributes
    ----------
    within : Distribution
        The P that it was learned within.
    columns : tuple
        Name and cells of every column.
    groups : tuple
        One column, or two that were learned together, and the weights of their cells. They sum to 65,536.
    mixed : float
        How many of the records are drawn from `within`, so that nothing of the support is impossible.
    epsilon : float
        What it cost.
    n : int
        The number of records that it was learned from.
    noise : float
        How sure it is: the share of the records that may be counted in a wrong cell, in the worst group.
    """

    draw_version = 2
    within: Distribution
    columns: tuple[tuple[str, Cells], ...]
    groups: tuple[Group, ...]
    mixed: float
    epsilon: float = field(compare=False)
    n: int = field(compare=False)
    noise: float = field(compare=False)

    @functools.cached_property
    def _prepared(self) -> "_Prepared":
        return _Prepared(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_prepared"}

    def draw(self, n: int, rng: Rng) -> Any:
        """Return a dataset of n records."""
        return self.assemble(self.drawn(n, rng))

    def assemble(self, *columns: Any) -> Any:
        """Return columns, or the wanted ones of a table, in the container that is drawn."""
        return self._prepared.layout.put(*columns)

    @property
    def supports(self) -> dict[str, Any]:
        """What the values of each column lie in."""
        return self._prepared.layout.supports

    def drawn(self, n: int, rng: Rng, wanted: tuple[str, ...] | None = None) -> dict[str, Column]:
        """Draw the wanted columns of n records."""
        return self._prepared.drawn(n, rng, wanted)

    def parts(self) -> Iterator[Any]:
        """Return what it is made of: the P that it is within, and the cells of each column."""
        yield self.within
        yield from (cells for _, cells in self.columns)

    def _support(self) -> Any:
        return self.within.support

    def lossless(self) -> bool:
        """Return False: its repr does not have the weights."""
        return False

    def content(self) -> dict[str, Any]:
        """Return what `save` writes: the code of the P that it is within, and what was learned."""
        return {"within": code_of(self.within), "learned": self.facts()}

    def facts(self) -> dict[str, Any]:
        """Return what was learned, and what it cost, as JSON."""
        cells = [
            [name, each.starts.array.tolist(), each.widths.array.tolist(), each.step]
            for name, each in self.columns
        ]
        return {"columns": cells} | {name: getattr(self, name) for name in _FACTS}

    @classmethod
    def of_facts(cls, facts: dict[str, Any], within: Distribution) -> "Learned":
        """Return what `facts` of a learned P make within the same P again; refuse what does not fit."""
        try:
            layout = layout_of(within)
            columns = zip(facts["columns"], layout.supports.items(), strict=True)
            cells = tuple((name, _cells(stored, name, support)) for stored, (name, support) in columns)
            groups = tuple((tuple(names), tuple(weights)) for names, weights in facts["groups"])
            made = cls(within, cells, groups, *(facts[name] for name in _FACTS[1:]))
            made._check()
            draw(made, 20, np.random.default_rng(0))
        except (KeyError, TypeError, ValueError, IndexError, SamplerError):
            raise SamplerError(f"""What was stored of a learned P does not fit {within!r}: it was learned
                within another P, or was changed. Learn it again, or load it again.""") from None
        return made

    def _check(self) -> None:
        """Raise ValueError unless every column is in one group, or in pairs, with weights that fit."""
        connected([names for names, _ in self.groups])
        sizes = {name: len(cells) for name, cells in self.columns}
        paired = {name for names, _ in self.groups for name in names if len(names) == 2}
        alone = sorted(names[0] for names, _ in self.groups if len(names) == 1)
        right = alone == sorted(set(sizes) - paired) and 0 < self.mixed < 1
        fitting = (_fit(weights, math.prod(sizes[each] for each in names)) for names, weights in self.groups)
        if not right or not all(fitting):
            raise ValueError(self.groups)

    def __repr__(self) -> str:
        return f"learned(within={self.within!r}, epsilon={self.epsilon!r}, n={self.n})"


def _fit(weights: tuple[int, ...], size: int) -> bool:
    """Tell whether there is a weight for each combination of cells, and they add up."""
    right = len(weights) == size and all(type(w) is int and w >= 0 for w in weights)
    return right and sum(weights) == WEIGHT


class _Prepared:
    """What a learned P draws with, computed once. Workers compute it themselves."""

    def __init__(self, learned: Learned) -> None:
        self.layout, self.mixed = layout_of(learned.within), learned.mixed
        looks, supports = self.layout.looks, self.layout.supports
        self.columns = {name: _Drawing(cells, looks[name], supports[name]) for name, cells in learned.columns}
        sizes = {name: len(cells) for name, cells in learned.columns}
        self.tables = [
            (names, _Table(np.reshape(weights, [sizes[name] for name in names])))
            for names, weights in _connecting(learned.groups)
        ]
        # For each column, all columns that were learned together with it, directly or through others.
        self.connected = connected([names for names, _ in learned.groups])

    def drawn(self, n: int, rng: Rng, wanted: tuple[str, ...] | None) -> dict[str, Column]:
        """Draw the wanted columns of n records, or all."""
        chosen = tuple(self.layout.names) if wanted is None else wanted
        # Some records are drawn from the other P, with all of their columns.
        others = np.flatnonzero(rng.random(n) < self.mixed)
        given = self.layout.columns(len(others), rng, chosen)
        places = self._places(n, rng, wanted)
        found = {}
        for name in chosen:
            found[name] = column = self.columns[name].column(places[name], rng)
            other = given[name]
            column.values[others] = other.values
            if column.missing is not None:
                column.missing[others] = False if other.missing is None else other.missing
        return found

    def _places(self, n: int, rng: Rng, wanted: tuple[str, ...] | None) -> dict[str, Places]:
        """Draw the cells of the wanted columns, or of all, and of those that they depend on."""
        found: dict[str, Places] = {}
        for names, table in self.tables:
            if wanted is not None and self.connected[names[0]].isdisjoint(wanted):
                continue
            if len(names) == 1:
                found[names[0]] = table.alone(n, rng)
            elif names[0] in found:
                found[names[1]] = table.given(found[names[0]], rng)
            elif names[1] in found:
                found[names[0]] = table.turned.given(found[names[1]], rng)
            else:
                found[names[0]], found[names[1]] = np.divmod(table.alone(n, rng), table.shape[1])
        return found


def _cells(stored: Any, name: str, support: Any) -> Cells:
    """Return the cells of a column from what was stored of them, or raise ValueError."""
    own, starts, widths, step = stored
    inner, optional = unwrap(support)
    values = inner.values if isinstance(inner, OneOf) else ()
    if own != name or len(starts) != len(widths) or bool(starts) == bool(values):
        raise ValueError(stored)
    return Cells(Frozen(starts), Frozen(widths), values, optional, step)


def connected(groups: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> dict[str, set[str]]:
    """Return for each name all names that groups connect it with; refuse groups that form a circle.

    Examples
    --------
    >>> sorted(connected([("a", "b"), ("b", "c"), ("d",)])["a"])
    ['a', 'b', 'c']
    """
    found: dict[str, set[str]] = {}
    for names in groups:
        sets = [found.setdefault(name, {name}) for name in names]
        if len(sets) == 2 and sets[0] is sets[1]:
            raise SamplerError(f"""together=: {names!r} closes a circle, as ("a", "b"), ("b", "c"), ("a", "c")
                do: these two columns are connected by other pairs already. Leave one of the pairs out.""")
        joined = set().union(*sets)
        found |= dict.fromkeys(joined, joined)
    return found


def _connecting(groups: Sequence[Group]) -> Iterator[Group]:
    """Yield groups so that each is next to one before it, if any left is: then no column is drawn twice."""
    left, seen = list(groups), set[str]()
    while left:
        at = next((at for at, (names, _) in enumerate(left) if not seen.isdisjoint(names)), 0)
        seen.update(left[at][0])
        yield left.pop(at)


class _Table:
    """The weights of the cells of one column, or of pairs of cells, to draw from."""

    def __init__(self, weights: NDArray[np.int64]) -> None:
        self.weights, self.shape = weights, weights.shape

    @functools.cached_property
    def turned(self) -> "_Table":
        """The same pairs of cells in the other order."""
        return _Table(self.weights.T)

    @functools.cached_property
    def _listed(self) -> Places:
        """Every cell as often as its weight says, so that a place in this list, drawn evenly, is a cell."""
        return np.repeat(np.arange(self.weights.size), self.weights.ravel())

    @functools.cached_property
    def _rows(self) -> NDArray[np.float64]:
        """The distribution function of each row, one after the other: that of row i rises from i to i + 1."""
        rows = self.weights + np.where(self.weights.sum(axis=1, keepdims=True), 0, self.weights.sum(axis=0))
        cumulative = np.cumsum(rows, axis=1) / rows.sum(axis=1, keepdims=True)
        found: NDArray[np.float64] = (cumulative + np.arange(len(rows))[:, None]).ravel()
        return found

    def alone(self, n: int, rng: Rng) -> Places:
        """Draw n cells."""
        return self._listed[rng.integers(len(self._listed), size=n)]

    def given(self, rows: Places, rng: Rng) -> Places:
        """Draw a cell of the second column for each of some cells of the first."""
        found = np.searchsorted(self._rows, rows + rng.random(len(rows)), side="right")
        inside: Places = np.clip(found - rows * self.shape[1], 0, self.shape[1] - 1)
        return inside


class _Drawing:
    """How values of one column are made from cells: in the dtype, with the categories, that P draws."""

    def __init__(self, cells: Cells, look: Column, support: Any) -> None:
        self.cells, self.look, self.support = cells, look, support
        inner, _ = unwrap(support)
        if cells.values and look.categories is not None:
            self.table = np.array([look.categories.index(value) for value in cells.values])
        elif cells.values:
            self.table = array_of(cells.values)
            if look.values.dtype.kind not in "USO":
                self.table = self.table.astype(look.values.dtype)
        self.high = 0.0 if cells.values else inner[1]
        own = {each.name: getattr(look, each.name) for each in fields(look)}
        self.make = functools.partial(Column, **own | {"values": None, "missing": None})

    def column(self, places: Places, rng: Rng) -> Column:
        """Return a value in each of some cells, as a column."""
        cells, dtype = self.cells, self.look.values.dtype
        missing = places == len(cells) - 1 if cells.missing else None
        if cells.values:
            values = self.table[places if missing is None else np.where(missing, 0, places)]
        else:
            values = self._numbers(cells.inside(places, rng.random(len(places))), dtype)
        if missing is not None and self.look.missing is None:  # P marks them in the values
            return self.make(values=self.make(values=values, missing=missing).array())
        return self.make(values=values, missing=missing)

    def _numbers(self, values: NDArray[Any], dtype: np.dtype[Any]) -> Any:
        """Return numbers, or dates, as P has them."""
        if dtype.kind == "M":
            return values.astype(f"M8[{self.cells.step}]").astype(dtype)
        if dtype == np.float64:
            return np.minimum(values, self.high, dtype=dtype)  # rounding may have moved them
        return values if values.dtype == dtype else convert_values(values, dtype, self.support)
