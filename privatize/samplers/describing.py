"""What a sampler draws, as a person would like to see it: a table, and a picture in a notebook."""

from __future__ import annotations

import contextlib
import html
import math
import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import support as domains
from privatize.data.parts import as_array, parts_of
from privatize.display.figures import figure
from privatize.errors import SamplerError, SettingsError
from privatize.samplers.base import Sampler, draw, support_of
from privatize.samplers.parameters import plain

__all__ = ["Description", "describe"]

Array = NDArray[Any]
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
        head = ("column", "support", "mean", "std", "5%", "median", "95%", "missing")
        cells: list[tuple[str, ...]] = [head]
        for row in self.rows:
            facts = row.facts if not row.listed else (", ".join(row.facts), "", "", "", "")
            cells.append(
                (row.name, row.support, *facts, f"{row.missing / self.n:.1%}" if row.missing else "0")
            )
        widths = [
            max(len(line[at]) for line in cells if at < 2 or at == 7 or _short(line))
            for at in range(len(head))
        ]
        lines = [f"{self._title()}: {self.n:,} records, seed {self.seed}"]
        for line in cells:
            start = f"{line[0]:<{widths[0]}}   {line[1]:<{widths[1]}}"
            room = sum(widths[2:7]) + 8
            if _short(line):
                middle = "  ".join(f"{line[at]:>{widths[at]}}" for at in range(2, 7))
            else:
                middle = line[2] if len(line[2]) <= room else line[2][: room - 3] + "..."
            lines.append(f"{start}   {middle:<{room}}   {line[7]:>{widths[7]}}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _title(self) -> str:
        return (
            self.sampler
            if len(self.sampler) <= 300
            else f"{self.sampler[:280]}... ({len(self.rows)} columns)"
        )

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><td>{html.escape(row.name)}</td><td>{html.escape(row.support)}</td>"
            f"<td>{html.escape(', '.join(row.facts) if row.listed else _sentence(row.facts))}</td>"
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
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise SettingsError("plot() needs matplotlib: pip install 'privatize[plot]'.") from None

        wide = min(len(self.rows), 4)
        high = -(-len(self.rows) // wide)
        figure, axes = plt.subplots(
            high, wide, figsize=(3 * wide, 2.5 * high), layout="constrained", squeeze=False
        )
        for ax in axes.ravel()[len(self.rows) :]:
            ax.set_axis_off()
        for ax, row in zip(axes.ravel(), self.rows, strict=False):
            ax.bar(range(len(row.heights)), row.heights, width=1.0 if not row.listed else 0.8)
            shown = {0: row.labels[0], len(row.labels) - 1: row.labels[-1]}
            if row.listed:
                shown = dict(enumerate(row.labels))
            turned = 0 if not row.listed else 45
            ax.set_xticks(list(shown), list(shown.values()), rotation=turned, parse_math=False)
            ax.set_yticks([])
            ax.set_title(row.name, parse_math=False)
        return figure


def _short(line: tuple[str, ...]) -> bool:
    return line[3] != ""


def _sentence(facts: tuple[str, ...]) -> str:
    mean, std, low, median, high = facts
    return f"{mean} ± {std}; 90% in [{low}, {high}], median {median}"


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
    try:
        count = operator.index(n)
    except TypeError:
        count = 0
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
    if parts is not None:
        aligned = isinstance(drawn, tuple)
        series = not isinstance(drawn, dict | list | tuple) and not isinstance(support, dict)
        inside = dict(enumerate(support)) if aligned and isinstance(support, tuple) else support
        for name, part in parts:
            own = support if series else inside.get(name) if isinstance(inside, dict) else None
            shown = "Xy"[name] if aligned and len(parts) == 2 else str(name)
            yield from _columns(f"{label}{shown}" if aligned else shown, part, own)
        return
    values = as_array(drawn)
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
    items = [None if domains.missing(value) else value for value in values.tolist()]
    if not any(isinstance(value, str | bool) for value in items):
        for dtype in (np.float64, "M8[us]"):
            with contextlib.suppress(TypeError, ValueError):
                return np.array(items, dtype=dtype)
    return values


def _row(name: str, values: Array, support: Any) -> _Row:
    if values.dtype.kind in "iuf" and not _few(values):
        found = values[np.isfinite(values)].astype(np.float64)
        return _numbers(name, found, support, len(values) - len(found), figure)
    if values.dtype.kind == "M":
        seen = values[~np.isnat(values)]
        days = seen.astype("M8[s]").astype(np.float64)

        def shown(at: float) -> str:
            return str(np.datetime64(round(at), "s").astype("M8[D]"))

        return _numbers(name, days, support, len(values) - len(seen), shown, lambda x: f"{x / 86_400:.4g} d")
    present = [str(value) for value in values.tolist() if not domains.missing(value)]
    counts = Counter(present)
    listed = support.inner if isinstance(support, domains.Maybe) else support
    if isinstance(listed, domains.OneOf) and len(listed.values) <= 12:  # in P's own order
        top = [(str(value), counts[str(value)]) for value in listed.values]
    elif values.dtype.kind in "iu":
        top = [(str(value), counts[str(value)]) for value in np.unique(values).tolist()][:12]
    else:
        top = counts.most_common(12)
    facts = tuple(f"{value}: {times / max(len(values), 1):.1%}" for value, times in top)
    gone = len(values) - len(present)
    return _Row(
        name, _support(support), facts, gone, tuple(v for v, _ in top), tuple(t for _, t in top), True
    )


def _few(values: Array) -> bool:
    return values.dtype.kind in "iu" and len(np.unique(values[:1000])) <= 10


def _numbers(name: str, found: Array, support: Any, gone: int, show: Any, width: Any = None) -> _Row:
    if not len(found):
        return _Row(name, _support(support), ("", "", "", "", ""), gone, ("",), (0,))
    quantiles = np.quantile(found, [0.05, 0.5, 0.95])
    facts = (show(found.mean()), (width or show)(found.std()), *map(show, quantiles))
    low, high = found.min(), found.max()
    if width is None and (found == np.rint(found)).all() and high - low < 1e9:  # whole numbers: no combs
        step = max(1, math.ceil((high - low + 1) / 100))
        edges = np.arange(low, high + step + 1, step) - 0.5
        heights, edges = np.histogram(found, bins=edges)
        labels = [show(edge + 0.5) for edge in edges[:-1]]
    else:
        heights, edges = np.histogram(found, bins=_BARS, range=(low, high if high > low else low + 1))
        labels = [*map(show, edges[:-2]), show(high)]
    return _Row(name, _support(support), facts, gone, tuple(labels), tuple(int(h) for h in heights))


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
