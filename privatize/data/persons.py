"""People with several rows each: a dataset whose records are persons, in one flat frame or dict of arrays."""

# ruff: noqa: ARG002, D102 - the base class says what a method takes and does

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames
from privatize.data.container import Container, Positions, convert, find, of, register
from privatize.data.schema import AlignedSchema, ArraySchema, ColumnSchema, FrameSchema, PersonsSchema
from privatize.data.tabular import Tabular
from privatize.data.units import Unit
from privatize.errors import DataError

Counts = NDArray[np.int64]
COUNTS = "rows of a person"
"""What the number of rows of each person is called, beside the columns."""


@dataclass(frozen=True, eq=False)
class Persons:
    """Some persons with all their rows. Drawn by `privatize.samplers.people`.

    Attributes
    ----------
    unit : Unit
        The column that says whose row it is, and which rows are used.
    counts : array
        The number of rows of each person.
    rows : frame or dict of arrays
        The rows without that column: those of the first person, then those of the second, and so on.

    Examples
    --------
    >>> Persons(Unit("id"), np.array([2, 1]), {"cost": np.array([5.0, 7.0, 9.0])}).frame
    {'id': array([0, 0, 1]), 'cost': array([5., 7., 9.])}
    """

    unit: Unit
    counts: Counts
    rows: Any

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def slots(self) -> Counts:
        """The place of each row's person, from 0."""
        return np.arange(len(self.counts)).repeat(self.counts)

    @property
    def frame(self) -> Any:
        """All rows as a frame, or a dict of arrays, with the place of each person in the unit's column.

        This is what a function gets. It is a copy, which the function may change.
        """
        own = find(self.rows)
        if isinstance(own, Tabular):
            return own.with_first(self.rows, self.unit.name, self.slots)
        return {self.unit.name: self.slots, **{name: of(part).copy(part) for name, part in self.rows.items()}}

    @property
    def values(self) -> Any:
        """The only column beside the unit's, as a series or an array; refused if there are several."""
        own = find(self.rows)
        columns = own.columns(self.rows) if isinstance(own, Tabular) else list(self.rows.values())
        if len(columns) != 1:
            raise DataError(f"""The function takes one value for each row, and the dataset has {len(columns)}
                columns beside {self.unit.name!r}. Pass two columns: {self.unit.name!r}, and the one that
                counts.""")
        return columns[0]

    def __repr__(self) -> str:
        return f"<{len(self)} persons by {self.unit.name!r}, see .frame>"


def as_passed(data: Any) -> Any:
    """Return a dataset as a function gets it: persons as one flat frame, and everything else as it is."""
    return data.frame if type(data) is Persons else data


def table_of(data: Any) -> Any:
    """Return the rows of persons without the unit's column, the only other one by itself; all else as is."""
    if type(data) is not Persons:
        return data
    return data.values if len(names_of(data.rows)) == 1 else data.rows


def expanded(starts: Counts, counts: Counts) -> Positions:
    """Return the places of rows, given where those of each person start, and how many there are.

    Examples
    --------
    >>> expanded(np.array([4, 0]), np.array([2, 3]))
    array([4, 5, 0, 1, 2])
    """
    before = np.cumsum(counts) - counts
    found = np.repeat(starts - before, counts) + np.arange(counts.sum())
    return found.astype(np.intp, copy=False)  # as `take` needs them where addresses have 32 bits


def concatenated(column: Any, runs: list[slice]) -> Any:
    """Return some runs of records of an array, or of another container, one after the other."""
    own = of(column)
    if type(column) is np.ndarray:  # faster than taking them one by one
        return np.concatenate([column[run] for run in runs])
    everywhere = np.arange(own.count(column))
    return own.take(column, np.concatenate([everywhere[run] for run in runs]))


class PersonsAdapter(Container):
    """Datasets of persons. Whatever happens to a person happens to all their rows."""

    def describe(self, data: Any) -> PersonsSchema:
        inner: Any = of(data.rows).describe(data.rows)
        if isinstance(inner, FrameSchema):
            if inner.index is not None:
                raise DataError("""The dataset has an index that is not row numbers. Where people have several
                    rows it is not used: drop it with reset_index(drop=True), or make it a column with
                    reset_index().""")
            first = ColumnSchema(data.unit.name, "int64", "int")
            return PersonsSchema(data.unit, replace(inner, columns=(first, *inner.columns)))
        slots = ArraySchema(np.dtype(np.int64), ())
        return PersonsSchema(data.unit, AlignedSchema((slots, *inner.parts), (data.unit.name, *inner.names)))

    def head(self, data: Any, n: int) -> Any:
        counts = data.counts[:n]
        return replace(data, counts=counts, rows=of(data.rows).head(data.rows, int(counts.sum())))

    def take(self, data: Any, positions: Positions) -> Any:
        return self._taken(data, positions, of(data.rows).take)

    def _taken(self, data: Persons, positions: Positions, take: Any) -> Persons:
        counts, starts = data.counts, np.cumsum(data.counts) - data.counts
        at = expanded(starts[positions], counts[positions])
        return replace(data, counts=counts[positions], rows=take(data.rows, at))

    def record(self, data: Any, at: int) -> Any:
        return self.take(data, np.array([at]))

    def concat(self, parts: Sequence[Any]) -> Any:
        rows = [part.rows for part in parts]
        counts = np.concatenate([part.counts for part in parts])
        return replace(parts[0], counts=counts, rows=of(rows[0]).concat(rows))

    def copy(self, data: Any) -> Any:
        return replace(data, counts=data.counts.copy(), rows=of(data.rows).copy(data.rows))

    def fresh(self, data: Any) -> Any:
        return replace(data, rows=of(data.rows).fresh(data.rows))

    def isolated(self, data: Any) -> Any:
        return replace(data, counts=data.counts.copy(), rows=of(data.rows).isolated(data.rows))

    def pair(self, drawn: Any, position: int, n: int) -> tuple[Any, Any]:
        counts, rows = drawn.counts, drawn.rows
        ends = counts[: n + 1].cumsum()
        total, start = int(ends[n - 1]), int(ends[position] - counts[position])
        stop, other = int(ends[position]), counts[:n].copy()
        other[position] = counts[n]
        runs = [slice(start), slice(total, int(ends[n])), slice(stop, total)]
        own = of(rows)
        if isinstance(own, Tabular):
            everywhere = np.arange(len(rows))
            first, second = own.rows(rows, slice(total), np.concatenate([everywhere[run] for run in runs]))
        else:  # `frame` makes copies
            first = {name: of(part).head(part, total) for name, part in rows.items()}
            second = {name: concatenated(part, runs) for name, part in rows.items()}
        return Persons(drawn.unit, counts[:n], first), Persons(drawn.unit, other, second)

    def comparable(self, data: Any) -> Any:
        return [data.unit, data.counts, of(data.rows).comparable(data.rows)]

    def alike(self, one: Any, other: Any) -> bool:
        inner = of(one.rows)
        return one.unit == other.unit and inner is find(other.rows) and inner.alike(one.rows, other.rows)

    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        return replace(data, rows=convert(data.rows, drawn.rows, support))

    def convert_by_array(self, data: Any, drawn: NDArray[Any], support: Any) -> Any:
        raise DataError("The sampler draws one row for each person. Use samplers.people(...).")


register("privatize", {"Persons": PersonsAdapter()}.get)


def names_of(data: Any) -> list[Any]:
    """Return the names of the columns of a frame or of a dict, or none for other datasets."""
    form = frames.kind(data)
    if form is not None and form[0] == "frame":
        return frames.names(data)
    return list(data) if type(data) is dict else []
