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
from privatize.samplers.distribution import Distribution, Fixed, Projection
from privatize.samplers.tables import _Table
from privatize.samplers.values import column_of


class Layout:
    """The columns of a P that draws one value for each record; other layouts override what differs.

    Attributes
    ----------
    names : list of str
        The names of the columns, as `describe()` shows them.
    supports : dict
        What the values of each lie in.
    looks : dict
        Some values of each.
    """

    def __init__(self, within: Any) -> None:
        self.within = within
        self.supports = self._described()
        self.names = list(self.supports)
        self.looks = self.columns(1000, np.random.default_rng(0), self.names)

    def _described(self) -> dict[str, Any]:
        return {"value": support_of(self.within)}

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> dict[str, Column]:
        """Draw at least the wanted columns of n records from P."""
        del wanted
        return {"value": column_of(self.within, n, rng)}

    def put(self, columns: dict[str, Column]) -> Any:
        """Return all columns as records in the container that P draws."""
        return columns["value"].array()


class _Frames(Layout):
    """A table, or some of its columns, or one of them as y and the others as X."""

    def _described(self) -> dict[str, Any]:
        view, supports = self.within, self.within.supports
        # As in the data: y is behind X, wherever the table has it.
        names = [*view.others, view.label] if isinstance(view, _Split) else supports
        return {name: supports[name] for name in names}

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> dict[str, Column]:
        found: dict[str, Column] = self.within.drawn(n, rng, tuple(wanted))
        return found

    def put(self, columns: dict[str, Column], *wanted: Any) -> Any:
        return self.within.assemble(columns, *wanted)


class _Arrays(Layout):
    """Arrays whose records have several coordinates."""

    def _described(self) -> dict[str, Any]:
        self.example = some(self.within)
        return _coordinates("", self.example, support_of(self.within))

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> dict[str, Column]:
        del wanted
        return dict(zip(self.names, _columns(self.within.draw(n, rng)), strict=True))

    def put(self, columns: dict[str, Column]) -> Any:
        return _array(list(columns.values()), self.example)


class _Pairs(Layout):
    """Features and labels: two arrays, or a table and an array."""

    def _described(self) -> dict[str, Any]:
        x, y = self.example = some(self.within)
        own, labels = support_of(self.within) or (None, None)
        self.table: Layout | None = None
        if isinstance(x, np.ndarray):
            supports = _coordinates("X", x, own)
        else:
            self.table = layout_of(getattr(self.within, "features", None))
            supports = self.table.supports
        if "y" in supports or np.ndim(y) != 1:
            raise SamplerError(f"""P cannot be learned within {self.within!r}: labels are one value for each
                record, and no column of the features may have their name, "y".""")
        return supports | {"y": labels}

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> dict[str, Column]:
        del wanted
        if self.table is None:
            x, y = self.within.draw(n, rng)
            found = dict(zip(self.names, _columns(x), strict=False))
        else:
            found = self.table.columns(n, rng, self.names[:-1])
            y = self.within.labels_of(self.table.put(found), n, rng)
        return found | {"y": Column(np.asarray(y))}

    def put(self, columns: dict[str, Column]) -> Any:
        features = {name: columns[name] for name in self.names[:-1]}
        if self.table is None:
            return _array(list(features.values()), self.example[0]), columns["y"].array()
        return self.table.put(features), columns["y"].array()


def _coordinates(label: str, drawn: Any, support: Any) -> dict[str, Any]:
    """Return what each number of an array's records lies in, by name."""
    if drawn.ndim == 1:
        return {label: support}
    every, shape = range(math.prod(drawn.shape[1:])), drawn.shape[1:]
    return {f"{label}[{at}]": coordinate(support, shape, at) for at in every}


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
