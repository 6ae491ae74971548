"""Describe what a sampler draws: a card of text, and a picture of each column."""

import contextlib
import html
import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatize.data import support as domains
from privatize.data.clipping import Array, is_missing
from privatize.data.columns import Column
from privatize.data.parts import leaves_of, numbers_of
from privatize.data.persons import COUNTS, Persons
from privatize.display.cards import Card
from privatize.display.charts import Chart, Layer, axes, onto, svg
from privatize.display.figures import figure
from privatize.errors import SamplerError
from privatize.planning.numbers import as_integer
from privatize.samplers.base import Sampler, draw, support_of
from privatize.samplers.parameters import as_code

_BARS = 30


@dataclass(frozen=True)
class _Row:
    """One column of what was drawn."""

    name: str
    support: str
    facts: tuple[str, ...]  # mean, std, 5%, median, 95%; or the commonest values
    missing: int
    labels: tuple[str, ...]
    heights: tuple[int, ...]
    listed: bool = False  # whether the facts are values

    def sentence(self, size: int) -> str:
        """Describe the column in words; `size` is how many records were drawn."""
        drawn = ", ".join(self.facts)
        if not self.listed:
            mean, std, low, median, high = self.facts
            drawn = f"{mean} ± {std}; 90% in [{low}, {high}], median {median}"
        missing = f"; {self.missing / size:.1%} missing" if self.missing else ""
        return f"{self.support}: {drawn}{missing}"

    def chart(self) -> Chart:
        """Return a histogram."""
        bars = Layer("interval", range(len(self.heights)), [0] * len(self.heights), self.heights)
        return Chart(self.name, "", "", (bars,), names=self.labels)


@dataclass(frozen=True)
class Description:
    """What a sampler draws. Printed, it has a line for each column; a notebook also shows a picture of each.

    Attributes
    ----------
    sampler : str
        The sampler's repr.
    n, seed : int
        How many records were drawn, and with which seed.
    rows : tuple
        One for each column.
    """

    sampler: str
    n: int
    seed: int
    rows: tuple[_Row, ...]

    def _card(self) -> Card:
        short = f"{self.sampler[:280]}... ({len(self.rows)} columns)"
        title = self.sampler if len(self.sampler) <= 300 else short
        rows = [(row.name, row.sentence(self.n)) for row in self.rows]
        return Card(f"{title}: {self.n:,} records, seed {self.seed}", rows)

    def __str__(self) -> str:
        return self._card().text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        charts = "".join(f"<div>{html.escape(row.name)}{svg(row.chart())}</div>" for row in self.rows)
        columns = "grid-template-columns:repeat(auto-fill,minmax(20em,1fr))"
        return f"{self._card().html()}<div style='display:grid;{columns}'>{charts}</div>"

    def plot(self) -> Any:
        """Plot every column with matplotlib, and return the figure."""
        figure = axes().figure
        figure.clear()
        wide = min(len(self.rows), 4)
        high = -(-len(self.rows) // wide)
        figure.set_size_inches(4 * wide, 3 * high)
        for at, row in enumerate(self.rows):
            onto(row.chart(), figure.add_subplot(high, wide, at + 1)).tick_params("x", labelrotation=45)
        return figure


def describe(sampler: Sampler, n: int, seed: int) -> Description:
    """Draw some records, and describe them."""
    count = as_integer(n)
    if not 2 <= count <= 10_000_000:
        raise SamplerError(f"describe(n={n!r}): the number of records is an integer from 2 to 10,000,000.")
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise SamplerError(f"describe(seed={seed!r}): the seed is an integer >= 0.") from None
    drawn = draw(sampler, count, rng)
    leaves = leaves_of(drawn, support_of(sampler), every=True)
    if type(drawn) is Persons:
        ends = 0 if drawn.unit.empty else 1, drawn.unit.most or int(drawn.counts.max())
        leaves.insert(0, (COUNTS, Column(drawn.counts), ends))
    columns = ((label, Column(_typed(column.array())), inside) for label, column, inside in leaves)
    rows = (_row(*each) for column in columns for each in itertools.islice(numbers_of(*column), 50))
    return Description(repr(sampler), count, seed, tuple(rows))


def _typed(values: Array) -> Array:
    """Return objects as an array of numbers or of dates if all of them are, and unchanged otherwise."""
    if values.dtype != object:
        return values
    items = [None if is_missing(value) else value for value in values.tolist()]
    if not any(isinstance(value, str | bool) for value in items):
        for dtype in (None, np.float64, "M8[us]"):
            with contextlib.suppress(TypeError, ValueError):
                made = np.array(items, dtype=dtype)
                if made.dtype != object:
                    return made
    return values


def _row(name: str, values: Array, support: Any) -> _Row:
    kind, size, inside = values.dtype.kind, len(values), shown_support(support)
    if kind == "M":
        seen = values[~np.isnat(values)].astype("M8[s]").astype(np.float64)
        return _numbers(name, inside, seen, size, _day, lambda width: f"{width / 86_400:.4g} d")
    if kind == "f" or (kind in "iu" and len(np.unique(values[:1000])) > 10):
        seen = values[np.isfinite(values)].astype(np.float64)
        return _numbers(name, inside, seen, size, figure, None)
    counts = Counter(str(value) for value in values.tolist() if not is_missing(value))
    listed = support.inner if isinstance(support, domains.Maybe) else support
    if isinstance(listed, domains.OneOf) and len(listed.values) <= 12:  # in P's own order
        top = [str(value) for value in listed.values]
    elif kind in "iu":
        top = list(map(str, np.unique(values).tolist()))[:12]
    else:
        top = [value for value, _ in counts.most_common(12)]
    facts = tuple(f"{value}: {counts[value] / max(size, 1):.1%}" for value in top)
    heights = tuple(counts[value] for value in top)
    return _Row(name, inside, facts, size - counts.total(), tuple(top), heights, True)


def _day(at: float) -> str:
    return str(np.datetime64(round(at), "s").astype("M8[D]"))


def _numbers(name: str, support: str, found: Array, size: int, show: Any, width: Any) -> _Row:
    """Describe a column of numbers; `width` formats a difference of two, if `show` does not fit it."""
    missing = size - len(found)
    if not len(found):
        return _Row(name, support, ("no number",), missing, ("",), (0,), True)
    quantiles = np.quantile(found, [0.05, 0.5, 0.95])
    facts = (show(found.mean()), (width or show)(found.std()), *map(show, quantiles))
    low, high = found.min(), found.max()
    if width is None and (found == np.rint(found)).all() and high - low < 1e9:  # integers: no empty bars
        step = max(1, math.ceil((high - low + 1) / 100))
        heights, edges = np.histogram(found, bins=np.arange(low, high + step + 1, step) - 0.5)
        labels = [show(edge + 0.5) for edge in edges[:-1]]
    else:
        heights, edges = np.histogram(found, bins=_BARS, range=(low, high if high > low else low + 1))
        labels = [*map(show, edges[:-2]), show(high)]
    return _Row(name, support, facts, missing, tuple(labels), tuple(heights.tolist()))


def shown_support(support: Any) -> str:
    """Return in a few words what the values of a column lie in."""
    if support is None:
        return "unbounded"
    if isinstance(support, domains.Maybe):
        return f"{shown_support(support.inner)} or missing"
    if isinstance(support, domains.OneOf):
        shown = ", ".join(map(str, support.values[:6]))
        return f"{{{shown}{', ...' if len(support.values) > 6 else ''}}}"
    if domains.is_pair(support):
        return f"[{', '.join(_end(end) for end in support)}]"
    return "by column"


def _end(end: Any) -> str:
    if isinstance(end, np.datetime64):
        return str(end)
    value = np.asarray(end, dtype=np.float64)
    if value.ndim:
        return "..."
    return as_code(value.item()) if np.isfinite(value) else str(value.item())
