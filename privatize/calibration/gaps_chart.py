"""Draw the gaps behind an estimate: those measured, what is certain about them, and the estimate."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.stress import Stress
from privatize.display.charts import Chart, Layer, thin
from privatize.planning.plan import Plan

_CERTAIN = {
    "tolerance": "what is certain of each gap by itself, with probability 1 - rho",
    "dkw": "what is certain at 1 - rho, for all gaps at once",
    "marginal": "what holds on average over calibrations",
}


def gaps_chart(
    gaps: NDArray[np.float64],
    plan: Plan,
    value: float,
    gamma: float,
    norm: str,
    n: int,
    known: float | None,
    stress: Stress | None = None,
) -> Chart:
    """Return the distribution of the gaps, with the estimate and, if there is one, a known bound.

    If a stress test found a changed P for which the estimate is too small, its gaps are drawn beside them.
    """
    gaps, m = np.sort(gaps), plan.m
    finite = gaps[np.isfinite(gaps)]
    at = thin(len(finite))
    ranks = np.array(at, dtype=np.float64) + 1
    x, shares = finite[at].tolist(), (ranks / m).tolist()
    seen = [
        Layer("band", x, certain(ranks, plan).tolist(), shares, _CERTAIN[plan.bound]),
        Layer("step", x, shares, (), f"the {m:,} gaps that were seen"),
    ]
    layers = [
        *(seen if x else []),
        Layer("level", (), [1 - gamma], (), f"1 - gamma = {1 - gamma:.4g}", "gray", dashed=True),
        Layer("upright", [value], (), (), f"sensitivity {value:.4g}", "red"),
    ]
    if known is not None:
        layers.append(Layer("upright", [known], (), (), f"known bound {known:.4g}", "green", dashed=True))
    if stress is not None and stress.fragile is not None:
        worse = sorted(gap for gap in stress.tried.fresh if gap < math.inf)
        share = [(rank + 1) / len(stress.tried.fresh) for rank in range(len(worse))]
        layers.append(Layer("step", worse, share, (), f"if {stress.fragile.words}", "orange"))
    title = f"how far one record moved the output, n={n:,}"
    return Chart(title, f"gap ({norm})", "share of pairs up to here", tuple(layers), limits=(0.0, 1.0))


def certain(ranks: Any, plan: Plan) -> Any:
    """Return which share of all pairs the gap of each rank covers for certain, by the plan's bound."""
    if plan.rho is None:
        return ranks / (plan.m + 1)
    if plan.bound == "dkw":
        return np.maximum(ranks / plan.m - math.sqrt(-math.log(plan.rho) / (2 * plan.m)), 0.0)
    from scipy.special import betaincinv

    return betaincinv(ranks, plan.m - ranks + 1, plan.rho)
