"""What a person reads of a plan, an estimate, a release, an audit, a budget: text, HTML and charts."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np

from privatize.display.charts import Chart, Color, Layer, svg, thin

__all__ = ["audited", "card", "estimated", "page", "planned", "released", "spent", "text"]

Rows = list[tuple[str, str]]


# --- pieces ---------------------------------------------------------------------------------------


def table(rows: Rows) -> str:
    """Return names and values as a table that is readable on any background."""
    head = "text-align:left;font-weight:normal;opacity:.75;padding:.1em 1em .1em 0;vertical-align:top"
    cell = "text-align:left;padding:.1em 0;overflow-wrap:anywhere"
    body = "".join(
        f"<tr style='background:none'><th scope='row' style='{head}'>{html.escape(name)}</th>"
        f"<td style='{cell}'>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table style='border-collapse:collapse;margin:.3em 0'><tbody>{body}</tbody></table>"


def card(title: str, rows: Rows, chart: Chart | None = None, *, lead: str = "", more: str = "") -> str:
    """Return what a notebook shows: a title, a table, and a chart that can be unfolded."""
    drawn = (
        ""
        if chart is None
        else f"<details><summary style='cursor:pointer'>{html.escape(chart.title)}</summary>"
        f"{svg(chart)}</details>"
    )
    return (
        f"<div style='font-family:sans-serif;line-height:1.4;max-width:48em;color:inherit'>"
        f"<div><b>{html.escape(title)}</b></div>{lead}{table(rows)}{more}{drawn}</div>"
    )


def page(title: str, body: str) -> str:
    """Return a page that needs nothing else, for light and dark, wide and narrow screens."""
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'/>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'/>"
        f"<link rel='icon' href='data:,'/>"
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


_STYLE = (
    ":root{color-scheme:light dark;--line:#8884}"
    "body{margin:0;background:Canvas;color:CanvasText;font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:50rem;margin:0 auto;padding:1rem 1.2rem 3rem;overflow-wrap:break-word}"
    "h1{font-size:1.6rem;line-height:1.25;margin:.5rem 0;overflow-wrap:anywhere}"
    "h2{font-size:1.2rem;margin:2rem 0 .4rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}"
    "h3{font-size:1rem;margin:1.2rem 0 .3rem}"
    "p{margin:.4rem 0}code{font-size:.9em;overflow-wrap:anywhere}"
    ".lead{font-size:1.1rem}.note{opacity:.8;font-size:.9rem}"
    ".good{color:light-dark(#15803d,#4ade80)}.bad{color:light-dark(#b91c1c,#f87171)}"
    ".scroll{overflow-x:auto}"
    ".grid{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".grid th,.grid td{text-align:right;padding:.15rem .7rem .15rem 0;white-space:nowrap}"
    ".grid th{font-weight:normal;opacity:.75}"
    "@media(max-width:30rem){.grid{font-size:.9rem}.grid th,.grid td{padding-right:.4rem}}"
    ".grid th:first-child,.grid td:first-child{text-align:left}"
    "details{margin:.4rem 0}summary{cursor:pointer}"
    "@media print{details::details-content{display:block;content-visibility:visible}}"
)


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a head, which scrolls by itself where the screen is too narrow."""
    top = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<div class='scroll'><table class='grid'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
        f"</div>"
    )


def amount(value: Any, digits: int = 4) -> str:
    """Return a number, or the least and the largest of several, in a few digits.

    Examples
    --------
    >>> amount(0.123456), amount(np.array([1.0, 8.0]))
    ('0.1235', '1 to 8')
    """
    ends = (float(np.min(value)), float(np.max(value)))
    return " to ".join(dict.fromkeys(figure(end, digits) for end in ends))


def figure(value: float, digits: int = 4) -> str:
    """Return a number in a few digits, as people write it: with an exponent only far from 1.

    Examples
    --------
    >>> figure(2222.2, 3), figure(0.00012345), figure(1.5e9)
    ('2,220', '0.0001234', '1.5e+09')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e" in text and 1 <= abs(value) < 1e7 else text


def round_up(gamma: float) -> str:
    """Print gamma with four decimals, or three digits if that is more, rounded up."""
    exact = Decimal(repr(float(gamma)))  # as its user would write it
    places = max(4, 2 - exact.adjusted())
    if exact < 1:
        places = max(places, 2 - (1 - exact).adjusted())  # never round a feasible gamma up to 1
    return str(exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING))


def promise(epsilon: float, delta: float, gamma: float) -> str:
    """Return the promise in a line."""
    shown = f", delta={delta:g}" if delta else ""
    return f"epsilon={epsilon:g}{shown} on all but gamma={gamma:.4g} of neighbours"


# --- a plan ---------------------------------------------------------------------------------------


def planned(plan: Any) -> Rows:
    """Return a plan as names and values."""
    rows = [
        ("evaluations", f"{2 * plan.m:,}: the function on both of m={plan.m:,} pairs of neighbours"),
        ("takes", f"gap k={plan.k:,} of {plan.m:,}, the smallest first, as the sensitivity"),
        ("the promise may fail on", f"a share gamma={plan.gamma:.4g} of neighbours"),
    ]
    if plan.rho is not None:
        rows.append(("of which for an unlucky calibration", f"rho={plan.rho:.3g}"))
    return [*rows, ("bound", plan.bound)]


def plan_chart(plan: Any, curves: dict[str, list[tuple[float, int]]]) -> Chart:
    """Return how many pairs each bound needs, with this plan among them."""
    colors: dict[str, Color] = {"dkw": "orange", "tolerance": "blue", "marginal": "green"}
    layers = [
        Layer(
            "line",
            [g for g, _ in curve],
            [m for _, m in curve],
            label=f"{name}, the least m",
            color=colors[name],
        )
        for name, curve in curves.items()
        if curve
    ]
    here = Layer("point", [plan.gamma], [plan.m], label=f"this plan: m={plan.m:,}", color="red")
    return Chart(
        "pairs that each bound needs",
        "gamma: share of neighbours on which the promise may fail",
        "pairs m",
        (*layers, here),
        log="xy",
    )


# --- an estimate ------------------------------------------------------------------------------------


def estimated(found: Any) -> Rows:
    """Return an estimate as names and values."""
    rows = [
        ("sensitivity", f"{found.value:.6g} ({found.norm})"),
        ("records", f"n={found.n:,}"),
        ("from", f"gap k={found.k:,} of m={found.m:,} sampled pairs"),
        ("holds for all but", f"a share gamma={found.gamma:.4g} of neighbours, by the bound {found.bound!r}"),
    ]
    rows.append(("on average over calibrations", f"a share {round_up(found.average_gamma)} at most"))
    if found.rho is not None:
        rows.append(("of which for an unlucky calibration", f"rho={found.rho:.3g}"))
    if found.min_sensitivity is not None:
        rows.append(("floor", f"min_sensitivity={found.min_sensitivity:g}"))
    if found.failed:
        rows.append(("failed pairs", f"{found.failed:,}, which count as infinite gaps"))
        if found.cause:
            rows.append(("the first cause", found.cause))
    if found.looks > 1:
        rows.append(("looks", f"{found.looks} plans were read from these gaps, which gamma allows for"))
    return [*rows, ("seed", str(found.seed))]


def gaps_chart(found: Any, known: float | None = None) -> Chart:
    """Return the distribution of the gaps: what was seen, what is certain, and what was taken."""
    gaps, m = np.sort(found.gaps), found.m
    if len(gaps) < m:  # of very many only the largest were kept, and some whose ranks are not known
        gaps = gaps[-(m - found.k + 1) :]
    finite = gaps[np.isfinite(gaps)]
    at = thin(len(finite)) if len(finite) else []
    ranks = np.array(at, dtype=np.float64) + 1 + (m - len(gaps))
    x = [float(finite[i]) for i in at]
    layers = [
        Layer("band", x, _certain(ranks, found).tolist(), (ranks / m).tolist(), _CERTAIN[found.bound]),
        Layer("step", x, (ranks / m).tolist(), label=f"the {m:,} gaps that were seen"),
        Layer(
            "level",
            y=[1 - found.gamma],
            color="gray",
            dashed=True,
            label=f"1 - gamma = {1 - found.gamma:.4g}",
        ),
        Layer("upright", [found.value], color="red", label=f"sensitivity {found.value:.4g}"),
    ]
    if known is not None:
        layers.append(Layer("upright", [known], color="green", dashed=True, label=f"known bound {known:.4g}"))
    if not x:
        layers = layers[2:]
    return Chart(
        f"how far one record moved the output, n={found.n:,}",
        f"gap ({found.norm})",
        "share of pairs up to here",
        tuple(layers),
        limits=(0.0, 1.0),
    )


_CERTAIN = {
    "tolerance": "what is certain of each gap by itself, with probability 1 - rho",
    "dkw": "what is certain at 1 - rho, for all gaps at once",
    "marginal": "what holds on average over calibrations",
}


def _certain(ranks: Any, found: Any) -> Any:
    """Return which share of all pairs the gap of each rank covers for certain, by the estimate's bound."""
    m = found.m
    if found.bound == "marginal":
        return ranks / (m + 1)
    if found.bound == "dkw":
        return np.maximum(ranks / m - math.sqrt(-math.log(found.rho) / (2 * m)), 0.0)
    from scipy.special import betaincinv

    return betaincinv(ranks, m - ranks + 1, found.rho)


# --- a release ----------------------------------------------------------------------------------------


def released(made: Any, widths: Any = None) -> Rows:
    """Return what is known of a release, without its value, as names and values."""
    rows: Rows = []
    if widths is not None:
        rows.append(("within", f"± {amount(widths)} of the raw answer, with 95% probability"))
    return [
        *rows,
        ("promise", promise(made.epsilon, made.delta, made.gamma)),
        ("on average over calibrations", f"gamma={round_up(made.average_gamma)}"),
        ("noise", f"{made.mechanism}, scale {amount(made.scale)}"),
        ("sensitivity", f"{made.sensitivity:.4g} (gap k={made.k:,} of m={made.m:,}, {made.bound})"),
        ("records", f"n={made.n:,}"),
    ]


def release_card(made: Any, chart: Chart | None = None, widths: Any = None) -> str:
    """Return a release as a notebook shows it: its value first."""
    shown = getattr(made.value, "_repr_html_", None)
    inner = shown() if callable(shown) else None
    if not isinstance(inner, str):
        text = str(made.value) if isinstance(made.value, np.generic) else repr(made.value)
        cut = text if len(text) <= 2000 else text[:2000] + " …"
        style = "margin:.3em 0;white-space:pre-wrap;background:none;color:inherit"
        inner = f"<pre style='{style}'>{html.escape(cut)}</pre>"
    return card("private answer", released(made, widths), chart, lead=inner)


def noise_chart(made: Any, vector: Any, widths: Any, names: Sequence[str]) -> Chart:
    """Return the noise around an answer: a density for one number, intervals for several."""
    if len(vector) == 1:
        (center,), scale = vector, float(np.max(made.scale))
        t = np.linspace(-5, 5, 201) * (1.4 if made.noise == "laplace" else 1.0)
        height = np.exp(-np.abs(t)) / 2 if made.noise == "laplace" else np.exp(-(t**2) / 2) / 2.5066
        x = center + t * scale
        inside = np.abs(t * scale) <= widths[0]
        low, high = center - widths[0], center + widths[0]
        return Chart(
            "where the raw answer may be",
            "answer",
            "density",
            (
                Layer(
                    "band",
                    x[inside].tolist(),
                    [0.0] * int(inside.sum()),
                    (height[inside] / scale).tolist(),
                    label=f"95%: {low:.6g} to {high:.6g}",
                ),
                Layer("line", x.tolist(), (height / scale).tolist(), label=f"{made.mechanism} noise"),
                Layer("upright", [center], color="red", label=f"private answer {center:.6g}"),
            ),
        )
    at = thin(len(vector), 100)
    x = [float(i) for i in range(len(at))]
    return Chart(
        "where the raw numbers may be",
        "" if len(at) == len(vector) else f"{len(at)} of {len(vector):,} numbers",
        "answer",
        (
            Layer(
                "interval",
                x,
                [float(vector[i] - widths[i]) for i in at],
                [float(vector[i] + widths[i]) for i in at],
                label="95% for each number by itself",
            ),
            Layer("point", x, [float(vector[i]) for i in at], label="private answer", color="red"),
        ),
        names=tuple(names[i] for i in at),
    )


# --- an audit -------------------------------------------------------------------------------------


def text(audit: Any) -> str:
    """Return an audit as lines of text."""
    lines = [f"audit of {audit.function}, n={audit.n:,}: {audit.verdict}"]
    lines += [f"  {name:28s} {value}" for name, value in audited(audit)]
    if not audit.holds:
        lines.append(f"  {'what to do':28s} {_REMEDY}")
    return "\n".join(lines)


_REMEDY = (
    "calibrate anew (forget()); if it fails again, P, the mechanism or the version= that vouches for the "
    "function is wrong"
)


def audited(audit: Any) -> Rows:
    """Return an audit as names and values."""
    rows = [
        ("claimed", promise(audit.epsilon, audit.delta, audit.gamma)),
        ("noise", f"{audit.mechanism}, for a sensitivity of {audit.sensitivity:.4g}"),
        (
            "coverage under P" if audit.own else f"under {audit.coverage.sampler}"[:28],
            _covered(audit.coverage, audit),
        ),
        ("the smallest gamma supported", f"{audit.coverage.high:.4g}"),
        ("losses", _losses(audit.coverage)),
    ]
    for told in audit.told:
        rows.append(("telling neighbours apart", told.verdict))
        if told.shape_low is not None:
            what = "delta" if told.delta else "epsilon"
            rows.append(
                ("", f"the noise looks {told.shape}, and its width shows {what} >= {told.shape_low:.3g}")
            )
        rows.append(("", f"{told.releases:,} releases on each, at a gap of {told.gap:.4g}"))
    for other in audit.under:
        rows.append((f"under {other.sampler}"[:28], _covered(other, audit)))
        if other.divergence is not None:
            known = other.transferred is not None
            after = f": gamma={other.transferred:.3g} is certain there" if known else ", estimated"
            rows.append(("", f"KL {other.divergence:.3g}{after}"))
    rows.append(
        (
            "false alarms",
            f"at most {1 - audit.confidence:.2g}, and rho={audit.rho:.2g} for an unlucky calibration",
        )
    )
    return rows


def _covered(coverage: Any, audit: Any) -> str:
    return (
        f"{coverage.beyond} of {coverage.pairs:,} fresh pairs are beyond: {coverage.share:.4g}, "
        f"[{coverage.low:.4g}, {coverage.high:.4g}] at {1 - (1 - audit.confidence) / 2:.4g}"
    )


def _losses(coverage: Any) -> str:
    shares = [s for s in (0.5, 0.9, 0.99) if s * coverage.pairs < coverage.pairs]
    found = [(s, float(np.quantile(coverage.losses, s, method="higher"))) for s in shares]
    worst = float(coverage.losses[-1])
    return "; ".join(
        [f"{s:.0%} of pairs up to {x:.3g}" for s, x in found] + [f"the largest seen {worst:.3g}"]
    )


def audit_card(audit: Any) -> str:
    """Return an audit as a notebook shows it."""
    return card(
        f"audit of {audit.function}, n={audit.n:,}", audited(audit), profile(audit), lead=verdict(audit)
    )


def audit_page(audit: Any) -> str:
    """Return an audit as a page."""
    title = f"audit of {audit.function}, n={audit.n:,}"
    return page(title, f"<h1>{html.escape(title)}</h1>{audit_section(audit)}")


def audit_section(audit: Any) -> str:
    """Return an audit as a part of a page."""
    remedy = "" if audit.holds else f"<p>What to do: {html.escape(_REMEDY)}.</p>"
    return f"{verdict(audit)}{remedy}{table(audited(audit))}{svg(profile(audit))}"


def verdict(audit: Any) -> str:
    """Return an audit's verdict as a line of HTML, with a green or red bar beside it."""
    # The text itself has no color: none of these is readable on white and on black alike.
    color = "#16a34a" if audit.holds else "#dc2626"
    style = f"border-left:.4em solid {color};padding-left:.6em;margin:.5em 0"
    return f"<p style='{style}'><b>{html.escape(audit.verdict)}</b></p>"


def curve(audit: Any) -> tuple[list[float], list[float]]:
    """Return the profile: for each epsilon, the share of neighbours whose loss is more."""
    losses = audit.coverage.losses
    finite = losses[np.isfinite(losses)]
    most = max(float(finite[-1]) if len(finite) else 0.0, audit.epsilon) * 1.1
    at = np.linspace(0.0, most, 201)
    share = 1 - np.searchsorted(losses, at, side="right") / len(losses)
    return at.tolist(), share.tolist()


def profile(audit: Any) -> Chart:
    """Return the profile of the promise: which share of neighbours gets more than which epsilon."""
    x, y = curve(audit)
    floor = min(audit.gamma, 1 / audit.coverage.pairs) / 2
    layers = [Layer("step", x, y, label=f"{audit.coverage.pairs:,} fresh pairs")]
    for other in audit.under:
        share = 1 - np.searchsorted(other.losses, x, side="right") / other.pairs
        layers.append(
            Layer("step", x, share.tolist(), label=f"under {other.sampler}", color="orange", dashed=True)
        )
    layers.append(Layer("point", [audit.epsilon], [audit.gamma], label="claimed", color="red"))
    return Chart(
        f"{audit.function}, n={audit.n:,}: who gets more than which epsilon",
        "epsilon",
        "share of neighbours with more",
        tuple(layers),
        log="y",
        limits=(floor, 1.0),
    )


# --- a budget -------------------------------------------------------------------------------------


def spent(budget: Any, charges: int) -> str:
    """Return a budget as a notebook shows it: what is left of each part."""
    left, bars = budget.remaining, []
    for symbol in ("epsilon", "delta", "gamma"):
        cap = float(getattr(budget.cap, symbol))
        if not cap:
            continue
        share = min(max(getattr(left, symbol) / cap, 0.0), 1.0)
        cell = "text-align:left;padding:.1em 1em .1em 0"
        bars.append(
            f"<tr style='background:none'><td style='{cell}'>{symbol}</td>"
            f"<td style='{cell}'>{getattr(left, symbol):.4g} of {cap:g} left</td>"
            f"<td><svg width='160' height='12' role='img' aria-label='{share:.0%} left'><rect width='160' "
            f"height='12' rx='3' fill='#8884'/><rect width='{160 * share:.0f}' height='12' rx='3' "
            f"fill='#3b82f6'/></svg></td></tr>"
        )
    asked = f"{charges:,} answer{'s' if charges != 1 else ''} so far, composition {budget.composition!r}"
    asked += f"; in all {html.escape(budget.statement)}" if charges else ""
    return (
        f"<div style='font-family:sans-serif;line-height:1.4;color:inherit'><div><b>"
        f"{html.escape(f'budget {budget.name}')}</b></div><table style='border-collapse:collapse'><tbody>"
        f"{''.join(bars)}</tbody></table><div style='opacity:.75;font-size:.9em'>{asked}</div></div>"
    )


def spending_chart(budget: Any, shares: dict[str, list[tuple[int, float]]]) -> Chart:
    """Return how a budget was used up, charge by charge."""
    colors: dict[str, Color] = {"epsilon": "blue", "delta": "green", "gamma": "orange"}
    layers = [
        Layer(
            "step",
            [float(i) for i, _ in line],
            [s for _, s in line],
            label=name,
            color=colors[name],
            dashed=name == "gamma",
        )
        for name, line in shares.items()
    ]
    return Chart(
        f"what was spent of {budget.name}",
        "answers",
        "share of the budget",
        (*layers, Layer("level", y=[1.0], color="red", dashed=True, label="all of it")),
        limits=(0.0, 1.05),
    )


# --- a private function -------------------------------------------------------------------------------


def function_card(name: str, signature: str, settings: Any) -> str:
    """Return a private function as a notebook shows it."""
    s = settings
    rows = [
        ("promise", promise(s.epsilon, s.delta, s.gamma)),
        ("mechanism", repr(s.mechanism)),
        ("P", "that of sealed data" if s.sampler is None else repr(s.sampler)),
        (
            "private records",
            "are brought into P's support" if s.domain == "clip" else "are taken as they are",
        ),
        *planned(s.plan)[:2],
    ]
    if s.budget is not None:
        rows.append(("budget", repr(s.budget)))
    return card(f"private {name}{signature}", rows)
