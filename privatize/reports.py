"""What a person reads: text, HTML and plots."""

from __future__ import annotations

import html as escaping
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privatize.errors import SettingsError

__all__ = ["html", "page", "profile", "text"]


# --- an audit --------------------------------------------------------------------------------------


def text(audit: Any) -> str:
    """Return an audit as lines of text."""
    lines = [f"audit of {audit.function}, n={audit.n:,}: {audit.verdict}"]
    lines += [f"  {name:28s} {value}" for name, value in _rows(audit)]
    if not audit.holds:
        lines.append(f"  {'what to do':28s} {_REMEDY}")
    return "\n".join(lines)


_REMEDY = (
    "calibrate anew (forget()); if it fails again, P, the mechanism or the version= that vouches for the "
    "function is wrong"
)


def _rows(audit: Any) -> list[tuple[str, str]]:
    delta = f", delta={audit.delta:g}" if audit.delta else ""
    rows = [
        ("claimed", f"epsilon={audit.epsilon:g}{delta} on all but gamma={audit.gamma:.4g} of neighbours"),
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
            after = f": Proposition 8 gives {other.transferred:.3g}" if known else ", estimated"
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


_HEAD = "text-align:left;font-weight:normal;opacity:.7;padding-right:1em"


def html(audit: Any) -> str:
    """Return an audit as a piece of HTML, with the profile drawn."""
    color = "#1a7f37" if audit.holds else "#b42318"
    rows = "".join(
        f"<tr><th style='{_HEAD}'>{escaping.escape(name)}</th>"
        f"<td style='text-align:left'>{escaping.escape(value)}</td></tr>"
        for name, value in _rows(audit)
    )
    title = f"audit of {audit.function}, n={audit.n:,}"
    return (
        f"<div style='font-family:sans-serif;max-width:60em'><h3>{escaping.escape(title)}</h3>"
        f"<p style='color:{color}'><b>{escaping.escape(audit.verdict)}</b></p>"
        f"<table>{rows}</table>{_drawing(audit)}</div>"
    )


def page(audit: Any) -> str:
    """Return an audit as a page of HTML that needs nothing else."""
    title = escaping.escape(f"audit of {audit.function}")
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title></head>"
        f"<body>{html(audit)}</body></html>\n"
    )


def _curve(audit: Any) -> tuple[list[float], list[float]]:
    """Return the profile: for each epsilon, the share of neighbours whose loss is more."""
    losses = audit.coverage.losses
    finite = losses[np.isfinite(losses)]
    most = max(float(finite[-1]) if len(finite) else 0.0, audit.epsilon) * 1.1
    at = np.linspace(0.0, most, 201)
    share = 1 - np.searchsorted(losses, at, side="right") / len(losses)
    return at.tolist(), share.tolist()


def _drawing(audit: Any) -> str:
    """Draw the profile as SVG: which share of neighbours gets more than which epsilon."""
    x, y = _curve(audit)
    width, height, left, bottom = 520.0, 240.0, 60.0, 40.0
    floor = min(audit.gamma, 1 / audit.coverage.pairs) / 2

    def place(at: float, share: float) -> tuple[float, float]:
        level = (math.log10(max(share, floor)) - math.log10(floor)) / -math.log10(floor)
        return left + (width - left - 10) * at / x[-1], height - bottom - (height - bottom - 10) * level

    line = " ".join(f"{px:.1f},{py:.1f}" for px, py in map(place, x, y))
    claim_x, claim_y = place(audit.epsilon, audit.gamma)
    ticks = _ticks(floor)
    labels = "".join(
        f"<text x='{left - 6:.0f}' y='{place(0, t)[1] + 4:.1f}' text-anchor='end' font-size='11'>{t:g}</text>"
        for t in ticks
    )
    labels += "".join(
        f"<text x='{place(t, 1)[0]:.1f}' y='{height - bottom + 15:.0f}' text-anchor='middle' "
        f"font-size='11'>{t:g}</text>"
        for t in (0.0, audit.epsilon / 2, audit.epsilon)
    )
    return (
        f"<svg width='{width:.0f}' height='{height:.0f}' role='img' "
        f"aria-label='share of neighbours by epsilon' fill='currentColor' font-family='sans-serif'>"
        f"<path d='M{left:.0f},10 V{height - bottom:.0f} H{width - 10:.0f}' fill='none' "
        f"stroke='currentColor'/>"
        f"<polyline points='{line}' fill='none' stroke='#2563eb' stroke-width='2'/>"
        f"<circle cx='{claim_x:.1f}' cy='{claim_y:.1f}' r='5' fill='#b42318'/>"
        f"<text x='{claim_x - 10:.1f}' y='{claim_y - 9:.1f}' text-anchor='end' font-size='11'>claimed</text>"
        f"{labels}"
        f"<text x='{(width + left) / 2:.0f}' y='{height - 6:.0f}' text-anchor='middle' font-size='12'>"
        f"epsilon</text>"
        f"<text x='12' y='{height / 2:.0f}' font-size='12' text-anchor='middle' "
        f"transform='rotate(-90 12 {height / 2:.0f})'>share of neighbours with more</text></svg>"
    )


def _ticks(floor: float) -> Sequence[float]:
    return [10.0**e for e in range(math.ceil(math.log10(floor)), 1)]


def profile(audit: Any, ax: Any = None) -> Any:
    """Plot the profile of the promise with matplotlib, and return the axes."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise SettingsError("plot() needs matplotlib: pip install 'privatize[plot]'.") from None

        ax = plt.figure(figsize=(6, 4), layout="constrained").gca()
    x, y = _curve(audit)
    ax.plot(x, y, drawstyle="steps-post", label=f"{audit.coverage.pairs:,} fresh pairs")
    ax.plot([audit.epsilon], [audit.gamma], "o", color="tab:red", label="claimed")
    for other in audit.under:
        share = 1 - np.searchsorted(other.losses, x, side="right") / other.pairs
        ax.plot(x, share, "--", drawstyle="steps-post", label=f"under {other.sampler}")
    ax.set_yscale("log")
    ax.set_xlabel("epsilon")
    ax.set_ylabel("share of neighbours with more")
    ax.set_title(f"{audit.function}, n={audit.n:,}")
    ax.legend()
    return ax
