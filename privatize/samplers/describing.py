"""What a sampler draws, as a person would like to see it: a table, and a picture in a notebook."""

import contextlib
import html
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import support as domains
from privatize.data.clipping import is_missing
from privatize.data.parts import as_array, parts_of
from privatize.display.charts import axes
from privatize.display.figures import as_integer, figure
from privatize.errors import SamplerError
from privatize.samplers.base import Sampler, draw, support_of
from privatize.samplers.parameters import plain

Array = NDArray[Any]
_BARS = 30
_HEAD: tuple[str, ...] = ("column", "support", "mean", "std", "5%", "median", "95%", "missing")


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

    def sentence(self) -> str:
        """Return the facts in words."""
        if self.listed:
            return ", ".join(self.facts)
        mean, std, low, median, high = self.facts
        return f"{mean} ± {std}; 90% in [{low}, {high}], median {median}"


@dataclass(frozen=True)
class Description:
    """What a sampler draws. Its text is a table; a notebook shows a picture of each column too.

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

    def __str__(self) -> str:
        cells = [_HEAD]
        for row in self.rows:
            facts = (", ".join(row.facts), "", "", "", "") if row.listed else row.facts
            missing = f"{row.missing / self.n:.1%}" if row.missing else "0"
            cells.append((row.name, row.support, *facts, missing))
        # Values that are listed take the place of all figures.
        narrow = [line for line in cells if line[3]]
        widths = [max(len(line[at]) for line in (narrow if 2 <= at < 7 else cells)) for at in range(8)]
        space = sum(widths[2:7]) + 8
        lines = [f"{self._title()}: {self.n:,} records, seed {self.seed}"]
        for line in cells:
            middle = "  ".join(f"{line[at]:>{widths[at]}}" for at in range(2, 7))
            if not line[3]:
                middle = line[2] if len(line[2]) <= space else line[2][: space - 3] + "..."
            start = f"{line[0]:<{widths[0]}}   {line[1]:<{widths[1]}}"
            lines.append(f"{start}   {middle:<{space}}   {line[7]:>{widths[7]}}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _title(self) -> str:
        short = f"{self.sampler[:280]}... ({len(self.rows)} columns)"
        return self.sampler if len(self.sampler) <= 300 else short

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><td>{html.escape(row.name)}</td><td>{html.escape(row.support)}</td>"
            f"<td>{html.escape(row.sentence())}</td>"
            f"<td>{row.missing / self.n:.1%}</td><td>{_picture(row)}</td></tr>"
            for row in self.rows
        )
        return (
            f"<div style='font-family:sans-serif'><p><code>{html.escape(self._title())}</code>: {self.n:,} "
            f"records, seed {self.seed}</p><table><thead><tr><th>column</th><th>support</th><th>drawn</th>"
            f"<th>missing</th><th></th></tr></thead><tbody>{body}</tbody></table></div>"
        )

    def plot(self) -> Any:
        """Plot every column with matplotlib, and return the figure."""
        figure = axes().figure
        figure.clear()
        wide = min(len(self.rows), 4)
        high = -(-len(self.rows) // wide)
        figure.set_size_inches(3 * wide, 2.5 * high)
        for at, row in enumerate(self.rows):
            ax = figure.add_subplot(high, wide, at + 1)
            ax.bar(range(len(row.heights)), row.heights, width=0.8 if row.listed else 1.0)
            last = len(row.labels) - 1
            places = list(range(last + 1)) if row.listed else sorted({0, last})
            names = [row.labels[place] for place in places]
            ax.set_xticks(places, names, rotation=45 if row.listed else 0, parse_math=False)
            ax.set_yticks([])
            ax.set_title(row.name, parse_math=False)
        return figure


def _picture(row: _Row) -> str:
    """Draw the heights as a small SVG."""
    most = max(row.heights, default=1) or 1
    step = 150 / max(len(row.heights), 1)
    bars = "".join(
        f"<rect x='{at * step:.1f}' y='{40 - 38 * height / most:.1f}' width='{max(step - 1, 1):.1f}' "
        f"height='{38 * height / most:.1f}'><title>{html.escape(label)}: {height}</title></rect>"
        for at, (label, height) in enumerate(zip(row.labels, row.heights, strict=True))
    )
    name = html.escape(f"histogram of {row.name}", quote=True)
    return f"<svg width='150' height='40' role='img' aria-label='{name}' fill='#2563eb'>{bars}</svg>"


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
    support = support_of(sampler)
    rows = tuple(_row(name, values, inside) for name, values, inside in _columns("", drawn, support))
    return Description(repr(sampler), count, seed, rows)


def _columns(label: str, drawn: Any, support: Any) -> Iterator[tuple[str, Array, Any]]:
    """Return name, values and support of every column of what was drawn."""
    parts = parts_of(drawn)
    if parts is None:
        yield from _numbered(label, as_array(drawn), support)
        return
    aligned = isinstance(drawn, tuple)
    whole = None if isinstance(drawn, dict | list | tuple) else support  # of a series
    inside = dict(enumerate(support)) if aligned and isinstance(support, tuple) else support
    for name, part in parts:
        own = inside.get(name) if isinstance(inside, dict) else whole
        shown = "Xy"[name] if aligned and len(parts) == 2 else str(name)
        yield from _columns(f"{label}{shown}" if aligned else shown, part, own)


def _numbered(label: str, values: Array, support: Any) -> Iterator[tuple[str, Array, Any]]:
    """Return the columns of an array, at most 50, with their places."""
    if values.dtype == object:
        values = _settled(values)
    if values.ndim == 1:
        yield label or "value", values, support
        return
    shape = values.shape[1:]
    for at, column in enumerate(values.reshape(len(values), -1).T[:50]):
        own = support
        if domains.is_pair(support):
            own = tuple(np.broadcast_to(end, shape).ravel()[at].item() for end in support)
        yield f"{label}[{at}]", column, own


def _settled(values: Array) -> Array:
    """Return objects as numbers or moments, where they are."""
    items = [None if is_missing(value) else value for value in values.tolist()]
    if not any(isinstance(value, str | bool) for value in items):
        for dtype in (np.float64, "M8[us]"):
            with contextlib.suppress(TypeError, ValueError):
                return np.array(items, dtype=dtype)
    return values


def _row(name: str, values: Array, support: Any) -> _Row:
    kind, size, inside = values.dtype.kind, len(values), _support(support)
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
    """Return a column of numbers; `width` shows a difference of two, if not as a number itself."""
    missing = size - len(found)
    if not len(found):
        return _Row(name, support, ("", "", "", "", ""), missing, ("",), (0,))
    quantiles = np.quantile(found, [0.05, 0.5, 0.95])
    facts = (show(found.mean()), (width or show)(found.std()), *map(show, quantiles))
    low, high = found.min(), found.max()
    if width is None and (found == np.rint(found)).all() and high - low < 1e9:  # integers: no combs
        step = max(1, math.ceil((high - low + 1) / 100))
        heights, edges = np.histogram(found, bins=np.arange(low, high + step + 1, step) - 0.5)
        labels = [show(edge + 0.5) for edge in edges[:-1]]
    else:
        heights, edges = np.histogram(found, bins=_BARS, range=(low, high if high > low else low + 1))
        labels = [*map(show, edges[:-2]), show(high)]
    return _Row(name, support, facts, missing, tuple(labels), tuple(heights.tolist()))


def _support(support: Any) -> str:
    if support is None:
        return "unbounded"
    if isinstance(support, domains.Maybe):
        return f"{_support(support.inner)} or missing"
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
    return plain(value.item()) if np.isfinite(value) else str(value.item())
