"""What is counted to learn P: cells of columns, which columns go together, and what of ε each group gets.

All of it is public: it follows from P, n, ε and what the user asks for. One record is in exactly one cell of
each group, so replacing it moves two counts of a group by one each.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import support as domains
from privatize.errors import SamplerError
from privatize.noise.quantile import shares
from privatize.samplers.histograms import BINS, PAIRED_BINS, Cells, Vector, cells_of, shares_of, weights_of
from privatize.samplers.layouts import layout_of
from privatize.samplers.learned import Learned, connected

MOST_CELLS = 1 << 14  # of a group
MIXED = 0.005  # the share of the records that a learned P draws from the P that it is within


@dataclass(frozen=True)
class Counted:
    """A column, or two together, that are counted with noise for a part of ε.

    Attributes
    ----------
    names : tuple of str
        One column, or two.
    cells : int
        The number of cells.
    epsilon : float
        Its part of ε.
    n : int
        The number of records.
    """

    names: tuple[str, ...]
    cells: int
    epsilon: float
    n: int

    @property
    def scale(self) -> float:
        """Scale of the noise on each count: replacing a record moves two counts by one."""
        return 2 / self.epsilon

    @property
    def noise(self) -> float:
        """The share of the records that noise alone may put into wrong cells, before it is smoothed."""
        return min(1.0, self.cells * self.scale / (2 * self.n))

    @property
    def smallest(self) -> float:
        """The share of the records that a cell needs to stand out from the noise."""
        return self.scale * math.log(max(self.cells, 2)) / self.n


@dataclass(frozen=True)
class Design:
    """What is counted to learn P.

    Attributes
    ----------
    within : Distribution
        The P that is learned within.
    columns : tuple
        Name and cells of every column.
    groups : tuple of Counted
        What is counted: every column is in at least one group.
    epsilon : float
        What it costs in all. The parts of the groups sum to no more.
    n : int
        The number of records.
    """

    within: Any = field(repr=False)
    columns: tuple[tuple[str, Cells], ...]
    groups: tuple[Counted, ...]
    epsilon: float
    n: int

    @property
    def key(self) -> str:
        """What determines the counts and what is made of them, as 64 hexadecimal digits."""
        cells = [(name, repr(each.starts), repr(each.values), each.missing) for name, each in self.columns]
        parts = [(each.names, each.epsilon) for each in self.groups]
        return hashlib.sha256(json.dumps([1, cells, parts, self.epsilon]).encode()).hexdigest()

    def counts(self, values: Sequence[NDArray[Any]], missing: Sequence[Any] = ()) -> list[Vector]:
        """Return how many records are in each cell of each group.

        Parameters
        ----------
        values : sequence of arrays
            The values of each column, inside its support.
        missing : sequence of arrays or None
            Which values of each column are missing, beyond NaN, NaT and None.
        """
        columns = zip(self.columns, values, missing or [None] * len(values), strict=True)
        places = {name: cells.places(own, absent) for (name, cells), own, absent in columns}
        size = {name: len(cells) for name, cells in self.columns}
        found = []
        for group in self.groups:
            at = places[group.names[0]]
            for name in group.names[1:]:
                at = at * size[name] + places[name]
            found.append(np.bincount(at, minlength=group.cells).astype(np.float64))
        return found

    def learned(self, noisy: Sequence[Vector]) -> Learned:
        """Return the P that noisy counts speak for."""
        known = dict(self.columns)
        groups = []
        for group, counts in zip(self.groups, noisy, strict=True):
            own = [known[name] for name in group.names]
            groups.append((group.names, weights_of(shares_of(counts, own, self.n, group.scale))))
        noise = max(group.noise for group in self.groups)
        return Learned(self.within, self.columns, tuple(groups), MIXED, self.epsilon, self.n, noise)


def design(
    within: Any,
    n: int,
    epsilon: float,
    together: Sequence[Sequence[str]],
    atoms: Mapping[str, Sequence[Any]],
    asked: float | None = None,
) -> Design:
    """Return what is counted to learn a P from n records, or refuse.

    Where this is a part of what is learned, `asked` is the epsilon of all parts, for errors.
    """
    layout = layout_of(within)
    supports, looks = layout.supports, layout.looks
    _check_bounds(within, supports)
    pairs = _pairs(together, layout.names)
    for name in atoms:
        if name not in supports:
            raise SamplerError(f"atoms= names {name!r}, and the columns are {layout.names!r}.")

    def cells(name: str, bins: int) -> Cells:
        return cells_of(name, supports[name], looks[name].array(), bins=bins, atoms=atoms.get(name, ()))

    paired = {name for pair in pairs for name in pair}
    names = [*pairs, *((name,) for name in layout.names if name not in paired)]
    parts = shares(epsilon, [len(group) for group in names])
    columns = {name: cells(name, PAIRED_BINS if name in paired else BINS) for name in layout.names}
    groups = tuple(
        Counted(group, math.prod(len(columns[name]) for name in group), part, n)
        for group, part in zip(names, parts, strict=True)
    )
    made = Design(within, tuple(columns.items()), groups, epsilon, n)
    _check_size(made, epsilon if asked is None else asked)
    return made


def _pairs(together: Any, names: list[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns that are learned together, or refuse them."""
    found = []
    for pair in together:
        listed = () if isinstance(pair, str) else tuple(pair)
        if len(listed) != 2 or any(name not in names for name in listed) or listed[0] == listed[1]:
            raise SamplerError(f"""together={together!r}: {pair!r} is not a pair of columns. Pass a list of
                pairs, [("a", "b"), ...]. The columns are {names!r}.""")
        found.append(listed)
    connected(found)  # raises if they form a circle
    return found


def _check_bounds(within: Any, supports: Mapping[str, Any]) -> None:
    """Refuse a P that does not say what all of its values lie in."""
    for name, support in supports.items():
        inner, _ = domains.unwrap(support)
        if isinstance(inner, domains.OneOf) or (domains.is_pair(inner) and np.isfinite(inner).all()):
            continue
        where = f"the column {name!r} of it" if len(supports) > 1 else "it"
        raise SamplerError(f"""P cannot be learned within {within!r}, because {where} is unbounded: its
            support is {support!r}. Give it finite bounds, which must not be taken from the data:
            uniform(low, high), or normal(mean, std, low=..., high=...).""")


def _check_size(made: Design, asked: float) -> None:
    """Refuse so many cells, or so few records, that nothing could be told from noise."""
    large = max(made.groups, key=lambda group: group.cells)
    if large.cells > MOST_CELLS:
        raise SamplerError(f"""{" and ".join(map(repr, large.names))} would have {large.cells:,} cells, and at
            most {MOST_CELLS:,} can be learned. Learn columns with that many values separately, or with fewer
            categories.""")
    worst = max(made.groups, key=lambda group: group.scale)
    if 2 * worst.scale > made.n * (1 + 1e-9):  # below twice the scale, single values are taken for noise
        least = asked * 2 * worst.scale / made.n
        digits = 1 - math.floor(math.log10(least))
        shown = math.ceil(least * 10**digits) / 10**digits
        raise SamplerError(f"""epsilon={asked:g} is too little to learn P from {made.n:,} records: the
            noise on each count has scale {worst.scale:.3g}, and not even a value that all records have would
            stand out from it. It takes epsilon={shown:g}, or {math.ceil(2 * worst.scale):,} records, or fewer
            columns.""")
