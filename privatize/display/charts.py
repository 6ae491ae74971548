"""Describe charts, and draw them as self-contained SVG or with matplotlib."""

import html
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from privatize.errors import SettingsError

# Readable on white and on black alike.
COLORS = {"blue": "#3b82f6", "red": "#dc2626", "green": "#16a34a", "orange": "#d97706", "gray": "#808080"}
Color = Literal["blue", "red", "green", "orange", "gray"]

_WIDTH, _HEIGHT = 440.0, 260.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 14.0, 12.0, 40.0
_POINTS = 300  # more points than these could not be seen


@dataclass(frozen=True)
class Layer:
    """One thing in a chart.

    Attributes
    ----------
    kind : {"line", "step", "band", "point", "upright", "level", "interval"}
        A line; steps that jump at each x; an area between `y` and `top`; points; an upright line at
        each x; a level line at each y; an upright stroke from `y` to `top` at each x.
    x, y, top : sequence of float
        Coordinates.
    label : str
        Its text in the legend; if empty, it is not in the legend.
    color : str
        Name of a color.
    dashed : bool
        Whether a line is dashed.
    """

    kind: Literal["line", "step", "band", "point", "upright", "level", "interval"]
    x: Sequence[float] = ()
    y: Sequence[float] = ()
    top: Sequence[float] = ()
    label: str = ""
    color: Color = "blue"
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart: what is on its axes, and its layers, the lowest first.

    Attributes
    ----------
    title, x, y : str
        What it shows, and what the axes are.
    layers : tuple of Layer
        Its content.
    log : str
        Which axes are logarithmic: "", "x", "y" or "xy".
    names : tuple of str
        Labels at x = 0, 1, ... in place of numbers.
    limits : tuple
        Where the y axis begins and ends; by default, so that everything is visible.
    """

    title: str
    x: str
    y: str
    layers: tuple[Layer, ...]
    log: str = ""
    names: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None


def thin(count: int, most: int = _POINTS) -> list[int]:
    """Return at most `most` indices of a sequence, evenly spread, including both ends.

    Examples
    --------
    >>> thin(3), thin(100, 5)
    ([0, 1, 2], [0, 24, 49, 74, 99])
    """
    if count <= most:
        return list(range(count))
    return [i * (count - 1) // (most - 1) for i in range(most)]


# --- SVG ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """An axis: where numbers are on it, and which of them are labelled."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        low, high = self._scaled(self.low), self._scaled(self.high)
        share = (self._scaled(value) - low) / (high - low)
        return self.start + (self.end - self.start) * min(max(share, -0.02), 1.02)

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, self.low * 1e-3)) if self.log else value

    def ticks(self) -> list[float]:
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            apart = max(1, math.ceil((last - first) / 5))
            decades = [10.0**e for e in range(first, last + 1, apart)]
            if len(decades) > 1:
                return decades
        rough = (self.high - self.low) / 4
        unit = 10.0 ** math.floor(math.log10(rough))
        step = min((unit * times for times in (1, 2, 5, 10)), key=lambda s: abs(s - rough))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(i * step, 12 - math.floor(math.log10(step))) for i in range(first, last + 1)]


def _range(numbers: list[float], log: bool) -> tuple[float, float]:
    """Return the ends of an axis that shows all of these."""
    finite = [x for x in numbers if math.isfinite(x) and abs(x) < 1e300 and (not log or x > 1e-300)]
    low, high = (min(finite), max(finite)) if finite else (0.1, 1.0) if log else (0.0, 1.0)
    if log:
        return (low / 1.2, high * 1.2) if high > low * 1.0001 else (low / 2, low * 2)
    if high - low <= abs(high) * 1e-9:
        wide = abs(high) * 0.1 or 1.0
        return low - wide, high + wide
    return low, high


def svg(chart: Chart) -> str:
    """Return a chart as a figure: SVG in HTML that scales with the page, with a legend under it."""
    # A level is part of the y axis, an upright line of the x axis.
    xs = [x for layer in chart.layers if layer.kind != "level" for x in layer.x]
    ys = [y for layer in chart.layers if layer.kind != "upright" for y in (*layer.y, *layer.top)]
    ends = (-0.5, len(chart.names) - 0.5) if chart.names else _range(xs, "x" in chart.log)
    across = _Axis(*ends, _LEFT, _WIDTH - _RIGHT, "x" in chart.log)
    up = _Axis(*(chart.limits or _range(ys, "y" in chart.log)), _HEIGHT - _BOTTOM, _TOP, "y" in chart.log)
    parts = [_frame(chart, across, up), *(_layer(layer, across, up) for layer in chart.layers)]
    legend = "".join(_swatch(layer) for layer in chart.layers if layer.label)
    return (
        f"<figure style='margin:.5em 0;max-width:36em'><svg viewBox='0 0 {_WIDTH:.0f} {_HEIGHT:.0f}' "
        f"role='img' style='width:100%;height:auto;display:block' fill='currentColor' "
        f"font-family='sans-serif' font-size='12'><title>{html.escape(chart.title)}</title>{''.join(parts)}"
        f"</svg><figcaption style='font-size:.85em;line-height:1.5'>{legend}</figcaption></figure>"
    )


def _frame(chart: Chart, across: _Axis, up: _Axis) -> str:
    bottom, right = up.start, across.end
    edges = f"M{_LEFT:.0f},{_TOP:.0f} V{bottom:.0f} H{right:.0f}"
    parts = [f"<path d='{edges}' fill='none' stroke='currentColor' stroke-opacity='.6'/>"]
    for tick in up.ticks():
        at = up(tick)
        parts.append(
            f"<path d='M{_LEFT:.0f},{at:.1f} H{right:.0f}' stroke='currentColor' stroke-opacity='.12'/>"
            f"<text x='{_LEFT - 6:.0f}' y='{at + 4:.1f}' text-anchor='end'>{_short(tick)}</text>"
        )
    labels = _names(chart.names) if chart.names else [(tick, _short(tick)) for tick in across.ticks()]
    for where, label in labels:
        at = across(where)
        anchor = "end" if at > right - 12 and not chart.names else "middle"
        text = min(at, _WIDTH - 3.6 * len(label)) if chart.names else at  # a long last name stays inside
        parts.append(
            f"<path d='M{at:.1f},{bottom:.0f} v4' stroke='currentColor' stroke-opacity='.6'/>"
            f"<text x='{text:.1f}' y='{bottom + 17:.0f}' text-anchor='{anchor}'>{html.escape(label)}</text>"
        )
    middle = (_TOP + bottom) / 2
    parts.append(
        f"<text x='{(_LEFT + right) / 2:.0f}' y='{_HEIGHT - 5:.0f}' text-anchor='middle'>"
        f"{html.escape(chart.x)}</text>"
        f"<text x='12' y='{middle:.0f}' text-anchor='middle' transform='rotate(-90 12 {middle:.0f})'>"
        f"{html.escape(chart.y)}</text>"
    )
    return "".join(parts)


def _names(names: Sequence[str]) -> list[tuple[float, str]]:
    """Return as many names as fit on the axis, and where they are."""
    longest = max(3, *(min(len(name), 12) for name in names))
    fitting = max(1, int((_WIDTH - _LEFT - _RIGHT) / (7 * longest)))
    shown = thin(len(names), max(2, fitting))
    return [(float(i), names[i] if len(names[i]) <= 12 else names[i][:11] + "…") for i in shown]


def _short(tick: float) -> str:
    return f"{tick:.4g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def _layer(layer: Layer, across: _Axis, up: _Axis) -> str:
    color = COLORS[layer.color]
    style = f"stroke='{color}' stroke-width='2' fill='none'" + " stroke-dasharray='5 4'" * layer.dashed
    if layer.kind == "interval":
        style = f"stroke='{color}' stroke-width='3' stroke-opacity='.45'"
    x = [f"{across(each):.1f}" for each in layer.x]
    y, top = ([f"{up(each):.1f}" for each in values] for values in (layer.y, layer.top))
    if layer.kind in _PATHS:
        return "".join(f"<path d='{path}' {style}/>" for path in _PATHS[layer.kind](x, y, top))
    points = list(map(",".join, zip(x, y, strict=True)))
    if layer.kind == "point":
        places = zip(x, y, strict=True)
        return "".join(f"<circle cx='{a}' cy='{b}' r='4.5' fill='{color}'/>" for a, b in places)
    if layer.kind == "band":
        points += map(",".join, zip(x[::-1], top[::-1], strict=True))
        return f"<polygon points='{' '.join(points)}' fill='{color}' fill-opacity='.22'/>"
    if layer.kind == "step":  # across, then up
        turns = map(",".join, zip(x[1:], y, strict=False))
        points = [points[0], *itertools.chain(*zip(turns, points[1:], strict=True))]
    return f"<polyline points='{' '.join(points)}' {style}/>"


_PATHS: dict[str, Callable[[list[str], list[str], list[str]], list[str]]] = {
    "upright": lambda x, _y, _top: [f"M{a},{_TOP:.0f} V{_HEIGHT - _BOTTOM:.0f}" for a in x],
    "level": lambda _x, y, _top: [f"M{_LEFT:.0f},{b} H{_WIDTH - _RIGHT:.0f}" for b in y],
    "interval": lambda x, y, top: [f"M{a},{b} V{c}" for a, b, c in zip(x, y, top, strict=True)],
}


def _swatch(layer: Layer) -> str:
    color, shape = COLORS[layer.color], "border-radius:50%;width:.7em;height:.7em"
    if layer.kind != "point":
        shape = f"width:1.4em;height:{'.7em' if layer.kind in ('band', 'interval') else '.2em'}"
    shade = "opacity:.4;" if layer.kind in ("band", "interval") else ""
    return (
        f"<span style='display:inline-block;margin-right:1.2em'><span style='display:inline-block;{shape};"
        f"{shade}background:{color};vertical-align:middle;margin-right:.4em'></span>"
        f"{html.escape(layer.label)}</span>"
    )


# --- matplotlib -------------------------------------------------------------------------------------


def axes(ax: Any = None) -> Any:
    """Return matplotlib's axes to draw on: those given, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise SettingsError("plot() needs matplotlib: pip install 'privatize-dp[plot]'.") from None
    return plt.figure(figsize=(6, 4), layout="constrained").gca()


def onto(chart: Chart, ax: Any = None) -> Any:
    """Draw a chart with matplotlib, on axes that are given or new, and return them."""
    ax = axes(ax)
    for layer in chart.layers:
        _draw(layer, ax)
    limits = {"ylim": chart.limits} if chart.limits else {}
    ax.set(**{f"{axis}scale": "log" for axis in chart.log}, **limits)
    if chart.names:
        places, names = zip(*_names(chart.names), strict=True)
        ax.set_xticks(places, names, parse_math=False)
    for write, text in ((ax.set_xlabel, chart.x), (ax.set_ylabel, chart.y), (ax.set_title, chart.title)):
        write(text, parse_math=False)
    if any(layer.label for layer in chart.layers):
        for text in ax.legend().get_texts():
            text.set_parse_math(False)
    return ax


def _draw(layer: Layer, ax: Any) -> None:
    style: dict[str, Any] = {"color": COLORS[layer.color], "label": layer.label or None}
    line = {**style, "linestyle": "--" if layer.dashed else "-"}
    match layer.kind:
        case "upright" | "level":
            draw, places = (ax.axvline, layer.x) if layer.kind == "upright" else (ax.axhline, layer.y)
            for at, place in enumerate(places):
                draw(place, **line | ({"label": None} if at else {}))
        case "point":
            ax.plot(layer.x, layer.y, "o", **style)
        case "interval":
            ax.vlines(layer.x, layer.y, layer.top, alpha=0.45, linewidth=3, **style)
        case "band":
            ax.fill_between(layer.x, layer.y, layer.top, alpha=0.22, linewidth=0, **style)
        case kind:
            ax.plot(layer.x, layer.y, drawstyle="steps-post" if kind == "step" else "default", **line)
