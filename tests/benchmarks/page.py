"""Write the page of the docs, with its charts, from the JSON of a run."""

import math
from collections.abc import Iterator
from typing import Any

from privatize.display.charts import Chart, Color, Layer, svg

from .measuring import ROOT, Result

PAGE = ROOT / "docs" / "benchmarks.md"
# Titles of the groups, in the order of the page.
GROUPS = {
    "calibration": "Calibration, per pair",
    "cost against n": "Calibration against n",
    "evaluations": "Pairs that each bound needs",
    "execution": "Workers",
    "the R package": "The workloads of the R package",
    "calls": "Calls",
    "noise": "Noise",
    "budget": "Budgets",
    "memory": "Memory",
    "amortization": "Amortization",
    "drawing": "Drawing",
    "peers": "Other libraries",
}
DESCRIPTIONS = {
    "calibration": """\
One pair is: draw n + 1 records, evaluate, replace one, evaluate. The bare loop does that and nothing else, as
most people would write it: with frames it makes a `pd.DataFrame` of columns and takes rows with `iloc`, which
costs more than what the library does, so a ratio there may be below 1.
`batch=` evaluates hundreds of pairs in one call, so it is compared with drawing alone.""",
    "cost against n": """\
The mean at γ = 0.05, in one process. `additive` draws two records for each pair, whatever n is; what grows
are its checks, on four whole datasets.""",
    "evaluations": """\
The function runs twice for each pair. This is arithmetic, not time: [the bounds](bounds.md).""",
    "execution": """\
Speed-ups over this process alone, in turn with it. The bare loop in two processes, without the library, tells
what the machine allowed at that moment. [Use all cores](workers.md) has the rest.""",
    "the R package": """\
The seconds of the authors' own package diffpriv (0.4.2.9000) were recorded on two cores like these. Ours are
of calibrations from nothing, on all cores, with all checks.""",
    "calls": """\
A call is warm when its estimate is remembered: it then runs the function once. Parts are timed by themselves;
the rest is what they do not add up to.""",
    "noise": "[Exact noise](noise.md) from the operating system's randomness, for each number.",
    "budget": "Reserving from a [budget](budgets.md), durably, before the data is touched.",
    "memory": "By how much the peak of a fresh process grows beyond that of a small calibration.",
    "amortization": "[Sums over records and updates](amortization.md), against plain evaluation.",
    "drawing": "What a number costs to draw, against the numpy calls that do the least.",
    "peers": "The same work on the same data, in one run.",
}
INTRODUCTION = """\
# Benchmarks

What the library costs beyond drawing the records and running your function, and how it compares with others.
One command measures it and writes this page:

```
python -m tests.benchmarks --docs
```

This was the {kind} run of {date} ({minutes:.0f} minutes), on {cores} cores ({system}), with {versions}.{busy}

Times are of that machine; ratios are between things that were measured in turn, and carry over. *×* is ours
over theirs, so less is better; *times as fast* is theirs over ours.
"""
BUSY = (
    " **The machine was busy with other work** (a load average of {:.1f} before the run), so these figures "
    "are only a sketch."
)
CHARTS = {
    "calibration": Chart("Time over the bare loop", "what the function takes, µs", "ratio", (), log="x"),
    "cost against n": Chart("Calibration of a mean, γ = 0.05", "records n", "ms", (), log="xy"),
    "evaluations": Chart("Pairs needed", "γ", "pairs m", (), log="xy"),
    "noise": Chart("Noise", "numbers", "ns for each", (), log="xy"),
    "memory": Chart("Growth of the peak", "m, or n", "MB", (), log="xy"),
}
COLORS: tuple[Color, ...] = ("blue", "red", "green", "orange", "gray")


def figure(number: float | None) -> str:
    """Return a number with three significant digits."""
    if number is None:
        return ""
    if number == round(number):
        return f"{number:,.0f}"
    return f"{number:,.{max(0, 2 - math.floor(math.log10(abs(number))))}f}"


def cells(each: Result) -> list[str]:
    """Return a result as the cells of a row: name, ours, against, ratio, goal, verdict."""
    compared = each.against if each.theirs is None else f"{each.against}: {figure(each.theirs)} {each.unit}"
    times = " ×" if not each.faster else " times as few" if each.unit == "pairs" else " times as fast"
    ratio = "" if each.ratio is None else figure(each.ratio) + times
    verdict = "" if each.met is None else "met" if each.met else "**missed**"
    return [each.name, f"{figure(each.ours)} {each.unit}".strip(), compared, ratio, each.goal, verdict]


def line(each: Result) -> str:
    """Return a result as a line of the terminal."""
    name, ours, compared, ratio, goal, verdict = cells(each)
    text = f"  {name:58s} {ours:>14s} {ratio:>20s} {goal:>9s} {verdict.strip('*'):6s}"
    return f"{text}  {'; '.join(filter(None, (compared, each.note)))}".rstrip()


def _table(rows: list[Result], *, notes: bool = True) -> Iterator[str]:
    heads = ["", "ours", "against", "ratio", "goal", "", *(["note"] if notes else [])]
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for each in rows:
        yield f"| {' | '.join([*cells(each), *([each.note] if notes else [])])} |"
    yield ""


def _chart(group: str, rows: list[Result]) -> str:
    """Return the chart of a group."""
    series = list(dict.fromkeys(each.series for each in rows if each.series))
    layers = []
    for name, color in zip(series, COLORS, strict=False):
        points = sorted(((each.x, each) for each in rows if each.series == name), key=lambda point: point[0])
        y = [p.ratio if group == "calibration" else p.ours for _, p in points]
        layers.append(Layer("line", [x for x, _ in points], [v or 0.0 for v in y], label=name, color=color))
    made = CHARTS[group]
    limits = (1.0, max(2.0, *(max(layer.y) for layer in layers))) if group == "calibration" else None
    return svg(Chart(made.title, made.x, made.y, tuple(layers), made.log, limits=limits))


def write(run: dict[str, Any]) -> str:
    """Return the page."""
    results = [Result(**each) for each in run["results"]]
    goals = [each for each in results if each.met is not None]
    met = sum(bool(each.met) for each in goals)
    head = INTRODUCTION.format(
        kind="quick" if run["quick"] else "full",
        date=run["date"],
        minutes=run["seconds"] / 60,
        cores=run["cores"],
        system=run["system"],
        busy=BUSY.format(run["load"]) if run["load"] > run["cores"] / 4 else "",
        versions=", ".join(f"{name} {version}" for name, version in run["versions"].items()),
    )
    lines = [head, f"## Goals: {met} of {len(goals)} met", "", *_table(goals, notes=False)]
    for group, title in GROUPS.items():
        rows = [each for each in results if each.group == group]
        if not rows:
            continue
        lines += [f"## {title}", "", DESCRIPTIONS[group], ""]
        if group in CHARTS and any(each.series for each in rows):
            lines += [_chart(group, rows), ""]
        lines += _table(rows)
    return "\n".join(lines).rstrip() + "\n"
