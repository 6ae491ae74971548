"""How the records that P draws are made of columns: tables, arrays, and pairs (X, y) of these."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privatize.data import records
from privatize.data.columns import Column
from privatize.data.parts import edited, leaves_of, numbers_of
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, some, support_of
from privatize.samplers.combined import _Labelled, _Split
from privatize.samplers.distribution import Distribution, Fixed, Projection, names_of
from privatize.samplers.tables import _Table


class Layout:
    """The columns of a P that draws an array, or a pair (X, y) of arrays; others override what differs.

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
        self.within, self.example = within, some(within)
        self.supports = self._described()
        self.names = list(self.supports)
        self.looks = self.columns(1000, np.random.default_rng(0), self.names)

    def _described(self) -> dict[str, Any]:
        leaves = leaves_of(self.example, support_of(self.within))
        return {name: support for leaf in leaves for name, _, support in numbers_of(*leaf)}

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> dict[str, Column]:
        """Draw at least the wanted columns of n records from P."""
        del wanted
        leaves = leaves_of(self.within.draw(n, rng))
        return {name: Column(values) for leaf in leaves for name, values, _ in numbers_of(*leaf)}

    def put(self, columns: dict[str, Column]) -> Any:
        """Return all columns as records in the container that P draws."""
        drawn = (columns[name].array() for name in self.names)
        size = len(columns[self.names[0]].values)

        def filled(_: str, column: Column, __: Any) -> Column:
            like = column.values
            if like.ndim == 1:
                return Column(next(drawn))
            own = itertools.islice(drawn, math.prod(like.shape[1:]))
            return Column(np.stack(list(own), axis=1).astype(like.dtype).reshape(like.shape))

        return edited(records.take(self.example, np.zeros(size, dtype=np.intp)), filled)


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


class _Pairs(Layout):
    """A table as X, and labels that are made of it, or beside it."""

    def _described(self) -> dict[str, Any]:
        self.table = layout_of(self.within.features)
        return self.table.supports | {"y": (support_of(self.within) or (None, None))[1]}

    def columns(self, n: int, rng: Rng, wanted: Sequence[str]) -> dict[str, Column]:
        del wanted
        found = self.table.columns(n, rng, self.table.names)
        return found | {"y": Column(np.asarray(self.within.labels_of(self.table.put(found), n, rng)))}

    def put(self, columns: dict[str, Column]) -> Any:
        return self.table.put({name: columns[name] for name in self.table.names}), columns["y"].array()


def _is_array(drawn: Any) -> bool:
    return isinstance(drawn, np.ndarray) and not drawn.dtype.names


def layout_of(within: Any) -> Layout:
    """Return how the records of a P are made of columns, or refuse it."""
    if isinstance(within, Fixed):
        raise SamplerError(f"""P cannot be learned within {within!r}. Leave out .fixed(size=...) here, and put
            it behind the learned P.""")
    view = within.parent if isinstance(within, Projection | _Split) else within
    if isinstance(view, _Table):
        return _Frames(within)
    drawn: Any = some(within) if isinstance(within, Distribution) else None
    x, y = drawn if isinstance(drawn, tuple) and len(drawn) == 2 else (drawn, np.empty(0))
    if _is_array(y) and (_is_array(x) or isinstance(within, _Labelled)):
        if np.ndim(y) != 1 or "y" in (names_of(getattr(within, "features", within)) or ()):
            raise SamplerError(f"""P cannot be learned within {within!r}: labels are one value for each
                record, and no column of the features may have their name, "y".""")
        return Layout(within) if _is_array(x) else _Pairs(within)
    raise SamplerError(f"""P cannot be learned within {within!r}. It must be one of privatize.samplers that
        draws a table(...), columns of one, an array, or a pair (X, y) as labelled(...) does, of a table or an
        array and an array.""")
