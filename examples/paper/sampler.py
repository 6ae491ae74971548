"""Inside the sampler.

The paper's Figure 1 for the mean of n=100 records of Exp(1), whose gap G has the CDF Φ(g) = 1 − exp(−ng):
m=40 gaps are drawn, their empirical CDF Φₘ (red) is inverted at 1−γ+ρ+ρ′ (dotted), which gives Δ̂. With
probability 1−ρ, Φₘ exceeds Φ (blue) by at most ρ′ everywhere, and then Φ(Δ̂) ≥ 1−γ+ρ. The claims are
checked on many calibrations.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.stats

from privatize import additive, plan, privatize

from .common import BLUE, INK, RED, SEED, Claim, at_most, main

N, M, GAMMA = 100, 40, 0.4


@additive
def mean(times: Any) -> Any:
    """Average the loan default times of the paper's Example."""
    return times


def run(quick: bool) -> dict[str, Any]:
    """Calibrate many times: the gaps of one large calibration, cut into blocks of m."""
    repeats = 500 if quick else 10_000
    private = privatize(
        epsilon=1,
        gamma=GAMMA,
        sampler=scipy.stats.expon(),
        bound="dkw",
        samples=M * repeats,
        seed=SEED,
        progress=not quick,
    )(mean)
    blocks = np.sort(private.estimate(N).gaps.reshape(repeats, M), axis=1)
    made = plan(GAMMA, M, bound="dkw")
    assert made.rho is not None
    error = math.sqrt(math.log(1 / made.rho) / (2 * M))  # ρ′
    truth = -np.expm1(-N * blocks)  # Φ at the gaps
    above = (np.arange(1, M + 1) / M - truth).max(axis=1)  # sup(Φₘ − Φ), which is at a gap
    estimates, covered = blocks[:, made.k - 1], truth[:, made.k - 1]
    level = 1 - GAMMA + made.rho + error
    return {
        "n": N,
        "m": M,
        "k": made.k,
        "gamma": GAMMA,
        "rho": made.rho,
        "error": error,
        "level": level,
        "gaps": blocks[0].tolist(),
        "estimate": float(estimates[0]),
        "repeats": repeats,
        "above": int(np.sum(above > error)),
        "inverted": bool((made.k - 1) / M < level <= made.k / M + 1e-12),
        "covered": float(covered.mean()),
        "short": int(np.sum(covered < 1 - GAMMA + made.rho)),
        "by_gamma": {
            str(g): float(blocks[:, plan(g, M, bound="dkw").k - 1].mean()) for g in (0.3, 0.4, 0.5, 0.6)
        },
    }


def draw(numbers: dict[str, Any], figure: Any) -> None:
    """Draw both CDFs and the inversion."""
    axes = figure.subplots()
    gaps, m, value = numbers["gaps"], numbers["m"], numbers["estimate"]
    right = gaps[-1] * 1.15
    grid = np.linspace(0, right, 200)
    low, middle, level = 1 - numbers["gamma"], 1 - numbers["gamma"] + numbers["rho"], numbers["level"]
    axes.plot(grid, -np.expm1(-numbers["n"] * grid), color=BLUE, label="true CDF Φ of the gap G")
    steps = np.arange(m + 1) / m
    axes.step(
        [0, *gaps, right], [*steps, 1], where="post", color=RED, label=f"empirical CDF Φₘ of m={m} gaps"
    )
    axes.plot([0, value, value], [level, level, 0], ":", color=INK, linewidth=2, label="inversion of Φₘ")
    axes.plot(value, 0, "o", color=INK, clip_on=False)
    axes.annotate(r"$\hat{\Delta}=G_{(k)}$", (value, 0), (6, 6), textcoords="offset points")
    for height, text in ((low, "1−γ"), (middle, "1−γ+ρ"), (level, "1−γ+ρ+ρ′")):
        axes.axhline(height, color=INK, linewidth=0.7, zorder=0)
        nudge = {low: -9, middle: 3}.get(height, 3)
        axes.annotate(text, (right, height), (-2, nudge), textcoords="offset points", ha="right", fontsize=9)
    at = right * 0.8
    for bottom, top, text in ((middle, level, "ρ′"), (low, middle, "ρ")):
        arrow = {"arrowstyle": "<->" if text == "ρ′" else "-", "shrinkA": 0, "shrinkB": 0, "color": INK}
        axes.annotate("", (at, bottom), (at, top), arrowprops=arrow)
        axes.annotate(text, (at, (bottom + top) / 2), (4, -3), textcoords="offset points")
    axes.grid(False)
    axes.set(xlim=(0, right), ylim=(0, 1.02), xlabel="gap g = |f(D) − f(D′)|", ylabel="probability")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.08))


def claims(numbers: dict[str, Any]) -> list[Claim]:
    """Compare with the figure's caption, the Theorem and its proof."""
    repeats, rho, gamma = numbers["repeats"], numbers["rho"], numbers["gamma"]
    values = list(numbers["by_gamma"].values())
    return [
        Claim(
            "Δ̂ = G₍ₖ₎ with k = ⌈m(1−γ+ρ+ρ′)⌉ is the smallest Δ with Φₘ(Δ) ≥ 1−γ+ρ+ρ′",
            "Figure 1; Theorem 15, proof",
            f"(k−1)/m < {numbers['level']:.4f} ≤ k/m with k={numbers['k']}, m={numbers['m']}",
            numbers["inverted"],
        ),
        Claim(
            "Φₘ exceeds Φ by more than ρ′ with probability at most ρ (Dvoretzky-Kiefer-Wolfowitz)",
            "Theorem 15, proof",
            f"{numbers['above'] / repeats:.4f} of {repeats:,} calibrations; ρ = {rho:.4f}",
            at_most(numbers["above"], repeats, rho),
        ),
        Claim(
            "and otherwise Φ(Δ̂) ≥ 1−γ+ρ",
            "Theorem 15, proof",
            f"below {1 - gamma + rho:.3f} in {numbers['short'] / repeats:.4f} of them; ρ = {rho:.4f}",
            at_most(numbers["short"], repeats, rho),
            "The inequality is uniform over all levels, and only one is used: hence fewer than ρ. "
            'The bound "tolerance" takes that one level\'s exact probability.',
        ),
        Claim(
            "so a random pair is within Δ̂ with probability at least 1−γ",
            "Theorem 15",
            f"{numbers['covered']:.4f} on average; 1−γ = {1 - gamma:g}",
            numbers["covered"] >= 1 - gamma,
            f"For a continuous gap it is k/(m+1) = {numbers['k'] / (numbers['m'] + 1):.4f} exactly.",
        ),
        Claim(
            "higher confidence (a smaller γ) invokes higher sensitivity",
            "Section 5",
            "mean Δ̂: " + ", ".join(f"{v:.4f} (γ={g})" for g, v in numbers["by_gamma"].items()),
            values == sorted(values, reverse=True),
        ),
    ]


def summary(numbers: dict[str, Any]) -> str:
    """Return the paragraph of the page."""
    repeats, rho, gamma = numbers["repeats"], numbers["rho"], numbers["gamma"]
    return (
        "Figure 1 and the proof of Theorem 15: Δ̂ is where the distribution function of the sampled gaps "
        "(red) reaches 1−γ+ρ+ρ′, above 1−γ because the true one (blue) may be lower. "
        f"We calibrated the mean of {numbers['n']} exponential records {repeats:,} times, with "
        f"m={numbers['m']}, γ={gamma:g}. On average {numbers['covered']:.3f} of pairs were within Δ̂ "
        f"(promised: {1 - gamma:g}). This share was below 1−γ+ρ in {numbers['short'] / repeats:.4f} of the "
        f"calibrations (allowed: ρ={rho:.4f})."
    )


if __name__ == "__main__":
    main("sampler")
