"""Cards: a title, names with their values, and a chart, as text, in a notebook, or on a page."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatize.display.charts import Chart, onto, svg

Rows = list[tuple[str, str]]


@dataclass(frozen=True)
class Card:
    """A title, rows and a chart, to be shown as text or as HTML.

    Attributes
    ----------
    title : str
        What it is.
    rows : list of (str, str)
        Names and values.
    chart : Chart, optional
        A chart.
    lead : str
        HTML that comes before the rows.
    note : str
        A line that comes after them.
    shares : tuple of float
        How full the bar beside each row is; no bars by default.
    """

    title: str
    rows: Rows
    chart: Chart | None = None
    lead: str = ""
    note: str = ""
    shares: tuple[float, ...] = ()

    def plot(self, ax: Any = None) -> Any:
        """Draw the chart with matplotlib, on axes that are given or new, and return them."""
        return onto(self.chart or Chart(self.title, "", "", ()), ax)

    def text(self) -> str:
        """Return the card as lines of text."""
        width = max([28, *(len(name) for name, _ in self.rows)])
        return "\n".join([self.title, *(f"  {name:{width}s} {value}" for name, value in self.rows)])

    def section(self) -> str:
        """Return the card as a part of a page, without its title."""
        return self._body() + ("" if self.chart is None else svg(self.chart))

    def _body(self) -> str:
        note = f"<div style='opacity:.75;font-size:.9em'>{html.escape(self.note)}</div>" if self.note else ""
        return f"{self.lead}{table(self.rows, self.shares)}{note}"

    def html(self) -> str:
        """Return what a notebook shows; the chart can be unfolded."""
        drawn = ""
        if self.chart is not None:
            head = f"<summary style='cursor:pointer'>{html.escape(self.chart.title)}</summary>"
            drawn = f"<details>{head}{svg(self.chart)}</details>"
        return (
            f"<div style='font-family:sans-serif;line-height:1.4;max-width:48em;color:inherit'>"
            f"<div><b>{html.escape(self.title)}</b></div>{self._body()}{drawn}</div>"
        )


class Shown:
    """Base of what a notebook shows as a card."""

    def card(self) -> Card:
        """Return what a person sees of it."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self.card().html()


class Printed(Shown):
    """Base of what is shown as a card everywhere, with its note."""

    def __repr__(self) -> str:
        card = self.card()
        return f"{card.text()}\n  {card.note}" if card.note else card.text()


def table(rows: Rows, shares: Sequence[float] = ()) -> str:
    """Return names and values, and bars, as a table that is readable on any background."""
    head = "text-align:left;font-weight:normal;opacity:.75;padding:.1em 1em .1em 0;vertical-align:top"
    cell = f"text-align:left;padding:.1em {'1em .1em ' if shares else ''}0;overflow-wrap:anywhere"
    bars = [f"<td>{_bar(share)}</td>" for share in shares] or [""] * len(rows)
    body = "".join(
        f"<tr style='background:none'><th scope='row' style='{head}'>{html.escape(name)}</th>"
        f"<td style='{cell}'>{html.escape(value)}</td>{bar}</tr>"
        for (name, value), bar in zip(rows, bars, strict=True)
    )
    return f"<table style='border-collapse:collapse;margin:.3em 0'><tbody>{body}</tbody></table>"


def _bar(share: float) -> str:
    return (
        f"<svg width='160' height='12' role='img' aria-label='{share:.0%} left'><rect width='160' "
        f"height='12' rx='3' fill='#8884'/><rect width='{160 * share:.0f}' height='12' rx='3' "
        f"fill='#3b82f6'/></svg>"
    )


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a head, which scrolls by itself if the screen is too narrow.

    Columns of numbers are aligned on the right; those of words on the left, and long ones are wrapped.
    """
    kinds = [_kind([row[at] for row in rows]) for at in range(len(head))]
    top = "".join(
        f"<th scope='col'{kind}>{html.escape(name)}</th>" for name, kind in zip(head, kinds, strict=True)
    )
    lines = (
        "".join(f"<td{kind}>{html.escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    made = f"<table class='grid'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='scroll'>{made}</div>"


def _kind(cells: Sequence[str]) -> str:
    """Return the class of a column: of words, of long ones, or none, of numbers such as "1 to 8" or "inf"."""
    numbers = (re.sub(r"\b(to|inf|nan|this)\b", "", cell) for cell in cells)
    if not any(re.search(r"[A-Za-z]{2}|[\[{]", cell) for cell in numbers):
        return ""
    return " class='words long'" if max(map(len, cells)) > 40 else " class='words'"


def preview(value: Any) -> str:
    """Return any value as HTML: what a notebook shows, or else its repr, cut if it is long."""
    shown = getattr(value, "_repr_html_", None)
    inner = shown() if callable(shown) else None
    if isinstance(inner, str):
        return inner
    text = str(value) if isinstance(value, np.generic) else repr(value)
    cut = text if len(text) <= 2000 else text[:2000] + " …"
    style = "margin:.3em 0;white-space:pre-wrap;background:none;color:inherit"
    return f"<pre style='{style}'>{html.escape(cut)}</pre>"


def page(title: str, body: str) -> str:
    """Return a self-contained page for light and dark, wide and narrow screens."""
    from importlib import resources  # it takes longer to import than all of this package

    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'/>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'/>"
        f"<link rel='icon' href='data:,'/>"
        f"<title>{html.escape(title)}</title><style>{style}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )
