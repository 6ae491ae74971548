"""Draw rows of dots in panels side by side, each with a line at what is claimed: pictures of the docs.

The background is transparent, and all colors can be read on white and on black.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_TEXT, _LINE, _GOOD, _BAD = "#808080", "#80808060", "#3b82f6", "#e8710a"
_GAP, _TOP, _BOTTOM = 24, 40, 30


@dataclass(frozen=True)
class Panel:
    """A title; for each row its dots, of which the first `full` are filled; the claim; and the axis' end."""

    title: str
    dots: Sequence[Sequence[float]]
    claim: float
    most: float
    full: int | None = None


def draw(rows: Sequence[str], panels: Sequence[Panel], *, left: int, width: int, row: int) -> str:
    """Return the picture: names of rows on the left, panels of a width, rows of a height."""
    high, wide = _TOP + row * len(rows) + _BOTTOM, left + (width + _GAP) * len(panels)
    size = f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
    font = f'font-family="sans-serif" font-size="12" fill="{_TEXT}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>']
    for at, name in enumerate(rows):
        y = _TOP + row * (at + 0.5)
        lines.append(f'<text x="{left - 10}" y="{y + 4:g}" text-anchor="end">{escape(name)}</text>')
    for at, panel in enumerate(panels):
        lines += _panel(panel, left + (width + _GAP) * at, width, row, high)
    return "\n".join([*lines, "</svg>\n"])


def _panel(panel: Panel, left: int, width: int, row: int, high: int) -> list[str]:
    def place(value: float) -> float:
        return left + width * min(value / panel.most, 1)

    end, claim, shown = high - _BOTTOM, place(panel.claim), f"{100 * panel.claim:.3g}%"
    lines = [
        f'<text x="{left}" y="16" font-weight="bold">{escape(panel.title)}</text>',
        f'<text x="{left}" y="{end + 18}">0</text>',
        f'<text x="{left + width}" y="{end + 18}" text-anchor="end">{panel.most:.0%}</text>',
        f'<path d="M{claim:.1f},{_TOP - 8} V{end}" stroke="{_BAD}" stroke-dasharray="4 3" fill="none"/>',
        f'<text x="{claim:.1f}" y="{_TOP - 10}" text-anchor="middle" fill="{_BAD}">{shown}</text>',
    ]
    for at, dots in enumerate(panel.dots):
        y = _TOP + row * (at + 0.5)
        lines.append(f'<path d="M{left},{y:g} H{left + width}" stroke="{_LINE}"/>')
        for number, value in enumerate(sorted(dots) if panel.full is None else dots):
            color = _BAD if value > panel.claim else _GOOD
            filled = panel.full is None or number < panel.full
            look = f'fill="{color}" fill-opacity="0.6"' if filled else f'fill="none" stroke="{color}"'
            lines.append(f'<circle cx="{place(value):.1f}" cy="{y:g}" r="{4 if filled else 3}" {look}/>')
    return lines
