"""From P to Q.

The paper's Proposition on transfer, for normal records: P = N(0, 1), and Q a little wider or shifted, at
an exactly known divergence τ = KL(P‖Q). Points: the share of fresh pairs from Q beyond the estimate made
under P, measured. Lines: γ + √((n+1)τ/2), which the Proposition allows. Left, the mean, whose gap only
the two exchanged records move; right, (Σx)²/n, whose gap all records move.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privatize import audit, privatize, samplers

from .common import BLUE, INK, MARKERS, RED, SEED, Claim, at_most, main

GAMMA, SIZES = 0.1, (10, 100)


def transferred(gamma: float, n: int, tau: float) -> float:
    """Return what the paper's Proposition allows; `privatize.transfer` is sharper."""
    return min(1.0, gamma + math.sqrt((n + 1) * tau / 2))


def mean(x: Any) -> float:
    """Average."""
    return float(x.mean())


def squared_sum(x: Any) -> float:
    """Square the sum: a shift of all records adds up in it."""
    return float(x.sum() ** 2 / len(x))


def wider(amount: float) -> tuple[Any, float]:
    """Return a Q that is wider than N(0, 1), and KL(P‖Q)."""
    s = 1 + amount
    return samplers.normal(0, s), math.log(s) + 1 / (2 * s**2) - 0.5


def shifted(amount: float) -> tuple[Any, float]:
    """Return a Q to the right of N(0, 1), and KL(P‖Q)."""
    shift = math.sqrt(2) * amount
    return samplers.normal(shift, 1), shift**2 / 2


CASES = {"mean, Q wider": (mean, wider), "squared sum, Q shifted": (squared_sum, shifted)}


def run(quick: bool) -> dict[str, Any]:
    """Estimate under P, and count fresh pairs from each Q that are beyond the estimate."""
    amounts = np.geomspace(0.003, 0.5, 4 if quick else 9).tolist()
    pairs = 2_000 if quick else 20_000
    points = []
    for case, (function, near) in CASES.items():
        private = privatize(
            epsilon=1,
            gamma=GAMMA,
            sampler=samplers.normal(0, 1),
            samples=1_000 if quick else 5_000,
            seed=SEED,
            progress=not quick,
        )(function)
        for n in SIZES:
            for amount in [0.0, *amounts]:
                other, tau = near(amount)
                found = audit(
                    private, n, sampler=other, pairs=pairs, releases=0, seed=SEED, progress=not quick
                ).coverage
                points.append(
                    {
                        "case": case,
                        "n": n,
                        "tau": tau,
                        "beyond": found.beyond,
                        "pairs": pairs,
                        "allowed": transferred(GAMMA, n, tau),
                    }
                )
    return {"gamma": GAMMA, "points": points}


def draw(numbers: dict[str, Any], figure: Any) -> None:
    """Draw what is measured below what is allowed."""
    figure.set_size_inches(9.2, 4.0)
    panels = figure.subplots(1, 2, sharey=True)
    taus = np.geomspace(5e-6, 0.4, 100)
    for axes, case in zip(panels, CASES, strict=True):
        axes.axhline(numbers["gamma"], color=INK, linewidth=1, linestyle=":", label="γ, claimed under P")
        for n, color, marker in zip(SIZES, (BLUE, RED), MARKERS, strict=False):
            allowed = [transferred(numbers["gamma"], n, float(tau)) for tau in taus]
            axes.plot(taus, allowed, color=color, label=f"allowed, n = {n}")
            here = [p for p in numbers["points"] if (p["case"], p["n"]) == (case, n) and p["tau"] > 0]
            shares = [p["beyond"] / p["pairs"] for p in here]
            axes.plot([p["tau"] for p in here], shares, marker, color=color, label=f"measured, n = {n}")
        axes.set(xscale="log", xlabel="τ = KL(P‖Q)", ylim=(0, 1.02), title=case)
    panels[0].set(ylabel="share of pairs beyond the estimate")
    panels[0].legend(loc="upper left")


def used(points: list[dict[str, Any]], gamma: float, case: str, n: int) -> float:
    """Return the largest part of the allowance √((n+1)τ/2) that is used up, where it is below 1."""
    here = [p for p in points if (p["case"], p["n"]) == (case, n)]
    own = next(p["beyond"] / p["pairs"] for p in here if p["tau"] == 0)
    return max(
        float((p["beyond"] / p["pairs"] - own) / (p["allowed"] - gamma))
        for p in here
        if p["tau"] > 0 and p["allowed"] < 1
    )


def claims(numbers: dict[str, Any]) -> list[Claim]:
    """Compare with the Proposition."""
    points = numbers["points"]
    kept = [at_most(p["beyond"], p["pairs"], p["allowed"]) for p in points if p["tau"] > 0]
    same = [p for p in points if p["tau"] == 0]
    return [
        Claim(
            "a mechanism that is RDP with confidence γ under P is so with γ + √((n+1)τ/2) under any Q with "
            "KL(P‖Q) ≤ τ",
            "Proposition 8",
            f"in {sum(kept)} of {len(kept)} cases no more fresh pairs from Q are beyond Δ̂ than allowed",
            all(kept),
            "Where the sum is 1 or more it allows everything, and says nothing.",
        ),
        Claim(
            "with confidence γ under P itself",
            "Theorem 15",
            "; ".join(
                f"{p['case'].partition(',')[0]}, n={p['n']}: {p['beyond'] / p['pairs']:.4f}" for p in same
            )
            + f"; γ = {numbers['gamma']:g}",
            all(at_most(p["beyond"], p["pairs"], numbers["gamma"]) for p in same),
        ),
        Claim(
            "how much of the allowance √((n+1)τ/2) is used up",
            "not in the paper",
            "the largest part: "
            + "; ".join(
                f"{case.partition(',')[0]}, n={n}: {used(points, numbers['gamma'], case, n):.0%}"
                for case in CASES
                for n in SIZES
            ),
            None,
            "The √n is needed for functions such as the squared sum, where a shift of all records adds up. "
            "For the mean only the two exchanged records matter, and an allowance for n+1 is too large.",
        ),
    ]


def summary(numbers: dict[str, Any]) -> str:
    """Return the paragraph of the page."""
    points, gamma = numbers["points"], numbers["gamma"]
    kept = [at_most(p["beyond"], p["pairs"], p["allowed"]) for p in points if p["tau"] > 0]
    most = max(used(points, gamma, case, n) for case in CASES for n in SIZES)
    return (
        "Proposition 8: a promise with γ under P holds with γ+√((n+1)τ/2) under every Q with KL(P‖Q)≤τ. "
        "We estimated under a normal P and counted fresh pairs from wider or shifted Q (points; lines: "
        f"what is allowed). It holds in {sum(kept)} of {len(kept)} cases, and uses at most {most:.0%} of the "
        "allowance where that is below 1. `privatize.transfer` has a sharper allowance."
    )


if __name__ == "__main__":
    main("transfer")
