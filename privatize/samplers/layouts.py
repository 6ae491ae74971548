"""How the records that P draws are made of columns: tables, arrays, and pairs (X, y) of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privatize.data.columns import Column
from privatize.data.support import coordinate
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, some, support_of
from privatize.samplers.combined import _Labelled, _Split
from privatize.samplers.distribution import Distribution, Fixed, Projection, names_of
from privatize.samplers.tables import _Table
from privatize.samplers.values import column_of


class Layout:
    """The columns of a P that draws one value for each record; other layouts override what differs.

    Attributes
    ----------
    names : list of str
        The names of the columns, as `describe()` shows them.
    supports : list
        What the values of each lie in.
    frame_names : list of str or None
        The names of a table's columns; None if P draws no table.
    """

    frame_names: list[str] | None = None

    def __init__(self, within: Any) -> None:
        self.within = within
        self.names, self.supports = self._described()
        self.looks = self.columns(1000, np.random.default_rng(0), self.names)

    def _described(self) -> tuple[list[str], list[Any]]:
        return ["value"], [support_of(self.within)]

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> list[Column]:
        """Draw the wanted columns of n records from P."""
        del wanted
        return [column_of(self.within, n, rng)]

    def put(self, columns: dict[str, Column]) -> Any:
        """Return all columns as records in the container that P draws."""
        return columns["value"].array()

    def select(self, columns: dict[str, Column], wanted: str | list[str]) -> Any:
        """Return some columns in the container that P draws."""
        del columns
        raise SamplerError(f"{self.within!r} draws no table, so it has no column {wanted!r}.")


class _Frames(Layout):
    """A table, or some of its columns, or one of them as y and the others as X."""

    def _described(self) -> tuple[list[str], list[Any]]:
        view, supports = self.within, self.within.supports
        # As in the data: y is behind X, wherever the table has it.
        names = [*view.others, view.label] if isinstance(view, _Split) else list(supports)
        self.frame_names = names_of(view)
        return names, [supports[name] for name in names]

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> list[Column]:
        return list(self.within.drawn(n, rng, tuple(wanted)).values())

    def put(self, columns: dict[str, Column]) -> Any:
        return self.within.assemble(columns)

    def select(self, columns: dict[str, Column], wanted: str | list[str]) -> Any:
        return self.within.assemble(columns, wanted)


class _Arrays(Layout):
    """Arrays whose records have several coordinates."""

    def _described(self) -> tuple[list[str], list[Any]]:
        self.example = some(self.within)
        return _coordinates("", self.example, support_of(self.within))

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> list[Column]:
        every = dict(zip(self.names, _columns(self.within.draw(n, rng)), strict=True))
        return [every[name] for name in wanted]

    def put(self, columns: dict[str, Column]) -> Any:
        return _array(list(columns.values()), self.example)


class _Pairs(Layout):
    """Features and labels: two arrays, or a table and an array."""

    def _described(self) -> tuple[list[str], list[Any]]:
        x, y = self.example = some(self.within)
        own, labels = support_of(self.within) or (None, None)
        self.table: Layout | None = None
        if isinstance(x, np.ndarray):
            names, supports = _coordinates("X", x, own)
        else:
            self.table = layout_of(getattr(self.within, "features", None))
            names, supports = self.table.names, self.table.supports
        if "y" in names or np.ndim(y) != 1:
            raise SamplerError(f"""P cannot be learned within {self.within!r}: labels are one value for each
                record, and no column of the features may have their name, "y".""")
        return [*names, "y"], [*supports, labels]

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> list[Column]:
        if self.table is None:
            x, y = self.within.draw(n, rng)
            found = _columns(x)
        else:
            found = self.table.columns(n, rng, self.names[:-1])
            y = self.within.labels_of(self._features(found), n, rng)
        every = dict(zip(self.names, [*found, Column(np.asarray(y))], strict=True))
        return [every[name] for name in wanted]

    def _features(self, columns: list[Column]) -> Any:
        if self.table is None:
            return _array(columns, self.example[0])
        return self.table.put(dict(zip(self.names, columns, strict=False)))

    def put(self, columns: dict[str, Column]) -> Any:
        *features, labels = columns.values()
        return self._features(features), labels.array()


def _coordinates(label: str, drawn: Any, support: Any) -> tuple[list[str], list[Any]]:
    """Return the names of the numbers of an array's records, and what each lies in."""
    if drawn.ndim == 1:
        return [label], [support]
    every, shape = range(math.prod(drawn.shape[1:])), drawn.shape[1:]
    return [f"{label}[{at}]" for at in every], [coordinate(support, shape, at) for at in every]


def _columns(drawn: Any) -> list[Column]:
    return [Column(column) for column in drawn.reshape(len(drawn), math.prod(drawn.shape[1:])).T]


def _array(columns: list[Column], like: Any) -> Any:
    """Return columns as an array with records of the shape that P draws."""
    if like.ndim == 1:
        return columns[0].array()
    found = np.empty((len(columns[0].values), len(columns)), dtype=like.dtype)
    for at, column in enumerate(columns):
        found[:, at] = column.array()
    return found.reshape(len(found), *like.shape[1:])


def layout_of(within: Any) -> Layout:
    """Return how the records of a P are made of columns, or refuse it."""
    if isinstance(within, Fixed):
        raise SamplerError(f"""P cannot be learned within {within!r}. Leave out .fixed(size=...) here, and put
            it behind the learned P.""")
    view = within.parent if isinstance(within, Projection | _Split) else within
    if isinstance(view, _Table):
        return _Frames(within)
    drawn: Any = some(within) if isinstance(within, Distribution) else None
    if isinstance(drawn, np.ndarray) and not drawn.dtype.names:
        return Layout(within) if drawn.ndim == 1 else _Arrays(within)
    arrays = isinstance(drawn, tuple) and len(drawn) == 2 and isinstance(drawn[1], np.ndarray)
    if arrays and (isinstance(drawn[0], np.ndarray) or isinstance(within, _Labelled)):
        return _Pairs(within)
    raise SamplerError(f"""P cannot be learned within {within!r}. It must be one of privatize.samplers that
        draws a table(...), columns of one, an array, or a pair (X, y) as labelled(...) does, of a table or an
        array and an array.""")
