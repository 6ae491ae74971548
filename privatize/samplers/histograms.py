"""Cells of columns: which cell a value is in, and what noisy counts of cells say about how often each occurs.

A column's cells are public: they follow from its support and the atoms that a user lists. Every value is in
exactly one cell. Everything after the noise is arithmetic on noisy counts, so it costs no privacy.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import support as domains
from privatize.data.clipping import Array, absent_in, are_integers
from privatize.data.lists import to_array
from privatize.errors import SamplerError
from privatize.samplers.base import Kind, kind
from privatize.samplers.parameters import Frozen

Vector = NDArray[np.float64]

BINS = 32  # of a column that is learned by itself
PAIRED_BINS = 16  # of each of two columns that are learned together
AS_THEY_ARE = 256  # integers, or days, with at most as many values have a cell for each
FEW = 8  # integers with at most as many values are like categories
WEIGHT = 1 << 16  # what the weights of all cells sum to


@kind("cells", immutable=True)
class Cells(Kind):
    """The cells of one column, in this order: bins, single numbers, fixed values, missing values.

    Attributes
    ----------
    starts, widths : Frozen
        The smallest number of each cell on the line, and its width. A single number has width 0 among floats;
        among integers and dates the width is the number of values, so that it is 1.
    values : tuple
        Fixed values, one cell each, if the column has no numbers.
    missing : bool
        Whether the last cell is for missing values.
    step : str
        "" for floats, "1" for integers, a unit of numpy's (days, seconds) for dates, which count from 1970.
    """

    starts: Frozen
    widths: Frozen
    values: tuple[Any, ...] = ()
    missing: bool = False
    step: str = ""

    def __len__(self) -> int:
        return len(self.starts.array) + len(self.values) + self.missing

    @property
    def bins(self) -> int:
        """How many of the first cells are neighbours on the line."""
        return len(self.starts.array) if self.step else int(np.count_nonzero(self.widths.array))

    def places(self, values: Array, missing: Array | None = None) -> NDArray[np.intp]:
        """Return the cell of each value, which is inside the support; there is exactly one.

        Examples
        --------
        >>> cells = cells_of('age', (0.0, 100.0), np.array([0.5]), bins=4)
        >>> cells.places(np.array([0.0, 10.0, 25.0, 100.0]))
        array([4, 0, 1, 5])
        """
        absent = absent_in(values, missing)
        if self.values:
            found = _positions(values, self.values)
        else:
            x = self._numbers(values, absent)
            starts = self.starts.array
            found = np.searchsorted(starts[1 : self.bins], x, side="right")
            for at in range(self.bins, len(starts)):  # single numbers
                found[x == starts[at]] = at
        if self.missing:
            found[absent] = len(self) - 1
        return found

    def _numbers(self, values: Array, absent: Array) -> Vector:
        """Return values as numbers on the line, 0 for missing ones."""
        if values.dtype.kind == "O":
            values, _ = to_array(values.tolist(), np.dtype("f8" if self.step in ("", "1") else "M8[us]"))
        if values.dtype.kind == "M":
            values = values.astype(f"M8[{self.step}]").astype(np.int64)
        found = values.astype(np.float64)
        return np.where(absent, 0.0, found) if absent.any() else found

    def inside(self, places: NDArray[np.intp], u: Vector) -> Array:
        """Return a number in each of some cells of a column of numbers, given uniform random numbers."""
        # Missing values have no number: they get that of the last cell that has one.
        at = np.minimum(places, len(self.starts.array) - 1) if self.missing else places
        offset = u * self.widths.array[at]
        starts: Array = self.starts.array[at]
        if not self.step:
            starts += offset
            return starts
        # Rounding may give the width itself, which is the first number of the next cell.
        steps: Array = np.minimum(np.floor(offset), self.widths.array[at] - 1)
        found: Array = (starts + steps).astype(np.int64)
        return found


def _positions(values: Array, known: tuple[Any, ...]) -> NDArray[np.intp]:
    """Return the place of each value among known ones; 0 for any other."""
    listed = list(known)
    if values.dtype.kind in "biufU" and len({type(value) for value in known}) == 1:
        # P's own values as an array of one dtype: they are compared sorted.
        array = np.array(listed)
        order = np.argsort(array)
        at = np.minimum(np.searchsorted(array[order], values), len(known) - 1)
        return np.where(array[order][at] == values, order[at], 0)
    table = {value: at for at, value in enumerate(listed)}
    return np.fromiter(map(table.get, values.tolist(), itertools.repeat(0)), np.intp, len(values))


# --- which cells a column has -----------------------------------------------------------------


def cells_of(name: str, support: Any, drawn: Array, *, bins: int, atoms: Sequence[Any] = ()) -> Cells:
    """Return the cells of a column.

    Parameters
    ----------
    name : str
        Its name, for errors.
    support : pair, OneOf or Maybe
        What the values lie in.
    drawn : array
        Some values that P draws, which show whether they are integers or dates.
    bins : int
        How many bins of the same width.
    atoms : sequence
        Numbers or dates that have a cell of their own, beside 0 and both bounds.

    Examples
    --------
    >>> cells_of('age', (0, 3), np.array([1, 2]), bins=2).starts
    [0, 1, 2, 3]
    >>> cells_of('age', (-1.0, 1.0), np.array([0.5]), bins=2, atoms=[0.25]).starts
    [-1, 0, -1, 0, 0.25, 1]
    """
    inner, optional = domains.unwrap(support)
    if isinstance(inner, domains.OneOf):
        if len(atoms):
            raise SamplerError(f"atoms= names {name!r}, which has a cell for each of its values anyway.")
        # Two objects, as in a P that is read from a ledger, so that both have the same fingerprint.
        return Cells(Frozen(np.empty(0)), Frozen(np.empty(0)), inner.values, optional)
    dated = np.asarray(inner[0]).dtype.kind == "M"
    # Beyond 2^53 all floats are integers, and most integers are no floats.
    is_integer = not dated and are_integers(drawn) and max(map(abs, inner)) <= 2**53
    step = np.datetime_data(np.asarray(inner[0]).dtype)[0] if dated else "1" if is_integer else ""
    low, high = (float(_number(end, step)) for end in inner)
    if step == "1":
        low, high = float(math.ceil(low)), float(math.floor(high))
    if not math.isfinite(high - low):
        raise SamplerError(f"""The bounds of {name!r}, {low!r} and {high!r}, are too far apart to be divided
            into bins. Choose narrower ones.""")
    single = sorted({low, high, *_atoms(name, atoms, step, inner), *([0.0] if low <= 0 <= high else [])})
    if not step:
        edges = np.linspace(low, high, bins + 1)
        starts, widths = [*edges[:-1], *single], [*np.diff(edges), *np.zeros(len(single))]
        return Cells(Frozen(starts), Frozen(widths), (), optional, step)
    firsts = _firsts(low, high, bins, single)
    return Cells(Frozen(firsts), Frozen(np.diff([*firsts, high + 1])), (), optional, step)


def _firsts(low: float, high: float, bins: int, single: list[float]) -> Vector:
    """Return the first integers of cells, where some integers have one of their own; all, if they are few."""
    count = high - low + 1
    if count <= AS_THEY_ARE:
        return np.arange(count) + low
    cuts = {low + (count * at) // bins for at in range(bins)}
    return np.array(sorted(cuts | {x for y in single for x in (y, y + 1) if x <= high}))


def _number(value: Any, step: str) -> Any:
    """Return a number or a date on the line."""
    if step in ("", "1"):
        return value
    return np.array(value, dtype=f"M8[{step}]").astype(np.int64)


def _atoms(name: str, atoms: Sequence[Any], step: str, ends: Any) -> list[float]:
    """Return single numbers that a user listed, or refuse them."""
    low, high = (_number(end, step) for end in ends)
    found = []
    for value in atoms:
        try:
            at = float(_number(value, step))
        except (TypeError, ValueError):
            at = math.nan
        if not low <= at <= high or (step == "1" and at != int(at)):
            what = {"": "a number", "1": "an integer"}.get(step, "a date")
            raise SamplerError(f"""atoms={{{name!r}: [{value!r}]}}: {value!r} is not {what} between
                {ends[0]!s} and {ends[1]!s}, the bounds of {name!r}.""")
        found.append(at + 0.0)
    return found


# --- from noisy counts to weights -------------------------------------------------------------


def shares_of(noisy: Vector, cells: Sequence[Cells], n: int, scale: float) -> Vector:
    """Return shares of cells, or of pairs of cells, from noisy counts.

    Records are spread evenly over bins, and two columns are independent, except where the counts speak
    against it.

    Parameters
    ----------
    noisy : array
        Counts with discrete Laplace noise; of two columns, those of the second for each cell of the first.
    cells : sequence of Cells
        The cells of one column, or of two.
    n : int
        The number of records.
    scale : float
        Scale of the noise.
    """
    if len(cells) == 1:
        return _shares(_denoised(noisy, cells[0], n, scale))
    table = noisy.reshape([len(each) for each in cells])
    sides = []
    for axis in (1, 0):  # the noise of a sum of k counts is about √k times as large
        total, wide = table.sum(axis=axis), scale * math.sqrt(table.shape[axis])
        sides.append(_shares(_denoised(total, cells[1 - axis], n, wide)))
    alone = n * np.outer(*sides)
    surplus = table - alone
    sure = scale * math.log(table.size)
    return _shares(alone + np.where(np.abs(surplus) > sure, surplus, 0.0)).ravel()


def _denoised(noisy: Vector, cells: Cells, n: int, scale: float) -> Vector:
    """Return counts without what is most likely noise alone."""
    found, bins, rest = np.maximum(noisy, 0.0), cells.bins, len(cells.starts.array)
    single = found[bins:rest]
    single[single < 2 * scale] = 0.0
    few = bins if cells.step and bins <= FEW else 0  # flags and short scales, which are like categories
    least = min(scale / 2, 0.03 * n)  # an empty group is the worst guess
    found[:few] = np.maximum(found[:few], least)
    found[rest : rest + len(cells.values)] = np.maximum(found[rest : rest + len(cells.values)], least)
    left = max(n - found[bins:].sum(), 0.0)  # n is public
    if bins > few:
        found[:bins] = left * np.array(_spread(noisy[:bins], cells.widths.array[:bins], scale))
    return found


def _shares(counts: Vector) -> Vector:
    counts = np.maximum(counts, 0.0)
    total = counts.sum()
    return counts / total if total > 0 else np.full(counts.shape, 1 / counts.size)


def _spread(counts: Vector, widths: Vector, scale: float) -> list[float]:
    """Return shares of bins: each half of the line in proportion to its width, unless the counts deny it.

    Halves are divided again. This is a test of the Haar wavelet's coefficients, from coarse to fine.
    """
    size = len(counts)
    if size == 1:
        return [1.0]
    half = size // 2
    left, right, even = counts[:half].sum(), counts[half:].sum(), widths[:half].sum() / widths.sum()
    # The standard deviation of left - even * (left + right), if all of it is noise.
    spread = scale * math.sqrt(2 * (half * (1 - even) ** 2 + (size - half) * even**2))
    if abs(left - even * (left + right)) >= 3 * spread:
        even = max(left, 0.0) / (max(left, 0.0) + max(right, 0.0) or 1.0)
    parts = _spread(counts[:half], widths[:half], scale), _spread(counts[half:], widths[half:], scale)
    return [share * even for share in parts[0]] + [share * (1 - even) for share in parts[1]]


def weights_of(shares: Vector) -> tuple[int, ...]:
    """Return shares as integers that sum to 65,536: the largest remainders are rounded up.

    Examples
    --------
    >>> weights_of(np.array([1, 1, 1]) / 3)
    (21846, 21845, 21845)
    """
    exact = shares * WEIGHT
    floor = np.floor(exact).astype(np.int64)
    order = np.argsort(floor - exact, kind="stable")  # the largest remainder first
    floor[order[: WEIGHT - int(floor.sum())]] += 1
    return tuple(floor.tolist())
