"""SVM: sensitivity.

The paper's Figure 5: the weights and the bias of a linear SVM with C=3, trained on n=1000 records of two
normal classes within [0, 1]ᵈ, in L1, with m=1500 sampled pairs. All γ are read from the same gaps, for
which the paper's bound holds at once. Left: the loss is averaged, each record weighs C/n; the global bound
is derived for this. Right: it is summed, each record weighs C, as in LIBSVM and scikit-learn. Solid: the
last record is exchanged, as in the paper's Algorithm 1, and the solver stops at its default tolerance 10⁻³.
Dashed: any record is exchanged, and the tolerance is 10⁻⁸. Estimates of zero are not drawn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privatize import Laplace, plan, privatize, samplers

from .common import BLUE, GREEN, INK, MARKERS, PINK, RED, SEED, Claim, main

N, C = 1000, 3
ZERO = 1e-12  # in place of a zero, which is refused: nothing is released here
AVERAGED, SUMMED, STOPPED, LAST = "averaged", "summed", "summed, stopped early", "the last record exchanged"
WAYS = {AVERAGED: (C / N, 1e-8), SUMMED: (C, 1e-8), STOPPED: (C, 1e-3)}


def machine(x: Any, y: Any, c: float, tol: float) -> tuple[Any, float]:
    """Train a linear SVM by LIBSVM: hinge loss, bias not regularized."""
    from sklearn.svm import SVC

    fitted = SVC(kernel="linear", C=c, tol=tol).fit(x, y)
    return fitted.coef_[0], float(fitted.intercept_[0])


def classes(d: int) -> samplers.Distribution:
    """Return the paper's two classes in d dimensions, within [0, 1]ᵈ, where its bound holds."""
    return samplers.blobs([[0.2] * d, [0.8] * d], 0.1, labels=[1, -1], low=0, high=1)


def bound(d: int, c: float = C) -> float:
    """Return the global bound of the paper's Proposition for an averaged loss."""
    return 2 + 2 * c * math.sqrt(d) + 4 * c * d / N


def exchanged(d: int, m: int, c: float, tol: float) -> Any:
    """Return m gaps as in the paper's Algorithm 1, which always exchanges the last record."""
    rng, gaps = np.random.default_rng(SEED + d), []
    for _ in range(m):
        x, y = classes(d).draw(N + 1, rng)
        other = np.append(np.arange(N - 1), N)
        first, second = machine(x[:N], y[:N], c, tol), machine(x[other], y[other], c, tol)
        gaps.append(np.abs(np.append(*first) - np.append(*second)).sum())
    return np.sort(gaps)


def run(quick: bool) -> dict[str, Any]:
    """Estimate for every dimension, for the averaged and the summed loss; read every γ from the same gaps."""
    from sklearn.svm import SVC

    dimensions = (8, 32) if quick else (8, 16, 32, 64)
    gammas, m = ((0.2, 0.5), 64) if quick else ((0.05, 0.1, 0.2, 0.5), 1500)
    curves: dict[str, Any] = {
        way: {"largest": [], "unmoved": [], "from_optimum": [], "vectors": []}
        | {"values": {str(gamma): [] for gamma in gammas}}
        for way in (*WAYS, LAST)
    }
    exact, held = [], []
    for d in dimensions:
        private = privatize(
            mechanism=Laplace(scaled="none"),
            epsilon=1,
            gamma=gammas[0],
            data=("x", "y"),
            sampler=classes(d),
            bound="dkw",
            samples=m,
            seed=SEED + d + (500 if quick else 0),  # another m would be another look at the same gaps
            min_sensitivity=ZERO,
            workers="inline",  # drawing costs as much as training here, and each process draws what others do
            progress=not quick,
        )(machine)
        drawn = [private.sample(N, seed=SEED + i) for i in range(3 if quick else 20)]
        for way, (c, tol) in WAYS.items():
            found, curve = private.estimate(N, c=c, tol=tol), curves[way]
            for gamma in gammas:
                look = found.at(gamma)
                curve["values"][str(gamma)].append(look.value)
                held.append(look.gamma <= gamma)
            curve["largest"].append(float(found.gaps.max()))
            curve["unmoved"].append(float(np.mean(found.gaps < 1e-6)))
            apart = [
                np.abs(np.append(*machine(x, y, c, tol)) - np.append(*machine(x, y, c, 1e-12))).sum()
                for x, y in drawn
            ]
            curve["from_optimum"].append(float(np.max(apart)))
            vectors = [SVC(kernel="linear", C=c, tol=tol).fit(x, y).n_support_.sum() for x, y in drawn]
            curve["vectors"].append(float(np.mean(vectors)))
        gaps, curve = exchanged(d, m, *WAYS[STOPPED]), curves[LAST]
        for gamma in gammas:
            curve["values"][str(gamma)].append(float(gaps[plan(gamma, m, bound="dkw").k - 1]))
        curve["largest"].append(float(gaps.max()))
        curve["unmoved"].append(float(np.mean(gaps < 1e-6)))
        # The same promise by the exact bound, on pairs of its own.
        ours = private.replace(bound="tolerance", samples="balanced", seed=SEED + 1000 + d)
        exact.append(ours.estimate(N, c=C / N, tol=1e-8).value)
        if not quick:
            print(f"d = {d}: done", flush=True)
    return {
        "n": N,
        "C": C,
        "m": m,
        "dimensions": list(dimensions),
        "gammas": list(gammas),
        "global": [bound(d) for d in dimensions],
        "global_summed": [bound(d, N * C) for d in dimensions],
        "weights": [4 * C * d / N for d in dimensions],
        "curves": curves,
        "held": all(held),
        "exact": {"gamma": ours.plan.gamma, "m": ours.plan.m, "values": exact},
    }


def draw(numbers: dict[str, Any], figure: Any) -> None:
    """Draw the estimates far below the global bounds."""
    figure.set_size_inches(9.2, 4.4)
    left, right = figure.subplots(1, 2, sharey=True)
    d = numbers["dimensions"]
    left.plot(d, numbers["global"], color=INK, linewidth=2, label="global bound 2 + 2C√d + 4Cd/n")
    right.plot(d, numbers["global_summed"], color=INK, linewidth=2, label="global bound, with nC for C")
    for axes, way, line, text in (
        (left, AVERAGED, "-", ""),
        (right, SUMMED, "--", ", any record, 10⁻⁸"),
        (right, LAST, "-", ", last record, 10⁻³"),
    ):
        for gamma, color, marker in zip(numbers["gammas"], (BLUE, RED, PINK, GREEN), MARKERS, strict=False):
            values = np.array(numbers["curves"][way]["values"][str(gamma)])
            values[values <= ZERO] = math.nan
            if np.all(np.isnan(values)):
                continue
            fill = "none" if line == "--" else color
            label = f"sampled, γ = {gamma:g}{text}"
            axes.plot(d, values, marker + line, color=color, markerfacecolor=fill, label=label)
    left.set(title="loss averaged: C/n per record", ylabel="sensitivity of weights and bias (L1)")
    right.set(title="loss summed: C per record")
    for axes in (left, right):
        axes.set(xlabel="dimension d", yscale="log", ylim=(1e-3, 2e5))
        axes.set_xscale("log", base=2)
        axes.set_xticks(d, [str(each) for each in d])
        axes.minorticks_off()
    left.legend(loc="upper left", fontsize=8)
    right.legend(loc="center", bbox_to_anchor=(0.45, 0.66), fontsize=8)


def _shown(value: float) -> str:
    """Return an estimate in words: one of zero would be refused."""
    return f"{value:.4f}" if value > ZERO else "0"


def claims(numbers: dict[str, Any]) -> list[Claim]:
    """Compare with the Proposition and the second experiment."""
    d, gammas, curves = numbers["dimensions"], numbers["gammas"], numbers["curves"]
    bounds, m = np.array(numbers["global"]), numbers["m"]
    values = {way: np.array([curves[way]["values"][str(g)] for g in gammas]) for way in curves}
    averaged, last = values[AVERAGED], values[LAST]

    def table(way: str) -> str:
        """Return the estimates at the first and the last dimension."""
        return "; ".join(
            f"d={d[i]}: "
            + ", ".join(f"{_shown(v)} (γ={g:g})" for g, v in zip(gammas, values[way][:, i], strict=True))
            for i in (0, -1)
        )

    def near(found: Any) -> bool:
        """Tell whether all are within a factor of five of 0.01."""
        return bool(np.all((found >= 0.01 / 5) & (found <= 0.01 * 5)))

    def alike(found: Any) -> bool:
        """Tell whether γ makes less than a factor of five in every dimension."""
        return bool(np.all(found.max(axis=0) <= 5 * found.min(axis=0)))

    largest = np.array(curves[AVERAGED]["largest"])
    summed = np.array(curves[SUMMED]["largest"]) / np.array(numbers["global_summed"])
    over = bounds / averaged[0]
    counts = {
        way: ", ".join(f"{v:.0f} (d={each})" for v, each in zip(curves[way]["vectors"], d, strict=True))
        for way in (AVERAGED, SUMMED)
    }
    exact = numbers["exact"]
    unmoved = {way: (min(curves[way]["unmoved"]), max(curves[way]["unmoved"])) for way in curves}
    ranges = {way: f"{low:.0%} to {high:.0%}" for way, (low, high) in unmoved.items()}
    return [
        Claim(
            "weights and bias have L1 global sensitivity at most 2 + 2C√d + 4Cd/n",
            "Proposition 19",
            f"the largest of {m:,} gaps is at most {np.max(largest / bounds):.1e} of it; with the summed "
            f"loss, at most {np.max(summed):.1e} of the same with nC for C",
            bool(np.all(largest <= bounds) and np.all(summed <= 1)),
            "As proved it would need 2Cd in place of 2C√d, since k(x, x′) goes up to d. It holds for C ≥ 2 "
            "in another way: ½‖w‖² ≤ C, the objective at zero, so |w·x| ≤ √(2Cd) ≤ C√d.",
        ),
        Claim(
            "‖w − w′‖₁ ≤ 4LCκ√d/n, which here is 4Cd/n",
            "Section 7.2",
            "the largest gap of weights and bias together, over 4Cd/n: "
            + ", ".join(
                f"{v / w:.2f} (d={each})" for v, w, each in zip(largest, numbers["weights"], d, strict=True)
            ),
            bool(np.all(largest <= np.array(numbers["weights"]))),
            "So nearly all of the bound of Proposition 19 is for the bias, which is not regularized.",
        ),
        Claim(
            "the global sensitivity exceeds 20",
            "Section 7.2",
            ", ".join(f"{v:.2f} (d={each})" for v, each in zip(bounds, d, strict=True)),
            bool(np.all(bounds > 20)),
            "At d=8 it is a little less. With the summed loss it is "
            f"{numbers['global_summed'][0]:,.0f} at d={d[0]}.",
        ),
        Claim(
            "Δ̂ hovers around 0.01 (loss averaged)",
            "Section 7.2, Figure 5",
            table(AVERAGED),
            near(averaged[averaged > ZERO]),
            "Within a factor of five, zeros apart: for a large γ and d most records are no support vectors, "
            "so most pairs do not differ at all. An estimate of zero is refused.",
        ),
        Claim(
            "Δ̂ hovers around 0.01 (loss summed)",
            "Section 7.2, Figure 5; Algorithm 1",
            table(LAST),
            near(last),
            f"For γ ≥ {gammas[1]:g}: {'yes' if near(last[1:]) else 'no'}. These are gaps of LIBSVM stopped "
            "at 10⁻³, with the last record exchanged, as in Algorithm 1. That changes the path it takes: "
            f"only {ranges[LAST]} of pairs do not move. If any record is exchanged, as this library does, "
            f"{ranges[STOPPED]} do not, and Δ̂ is {table(STOPPED)}. At tolerance 10⁻⁸: {table(SUMMED)}.",
        ),
        Claim(
            "Δ̂ is largely independent of γ (loss averaged)",
            "Section 7.2",
            "the largest over the smallest: "
            + ", ".join(
                f"d={each}: {column.max() / column[column > ZERO].min():.1f}"
                + ("" if column.min() > ZERO else " and zeros")
                for column, each in zip(averaged.T, d, strict=True)
            ),
            alike(averaged),
            "An estimate of zero is not like others; among those above zero, less than a factor of five. "
            "As d grows fewer records are support vectors, and most pairs do not differ at all.",
        ),
        Claim(
            "Δ̂ is largely independent of γ (loss summed)",
            "Section 7.2; Algorithm 1",
            "the largest over the smallest: "
            + ", ".join(
                f"{a:.0f}, or {b:.1f} for γ ≥ {gammas[1]:g} (d={each})"
                for a, b, each in zip(
                    last.max(axis=0) / last.min(axis=0),
                    last[1:].max(axis=0) / last[1:].min(axis=0),
                    d,
                    strict=True,
                )
            ),
            alike(last),
            f"Most gaps are what the stopping tolerance leaves. At γ={gammas[0]:g}, k is nearly m={m:,}, and "
            "the few pairs with a support vector count, which differ by far more.",
        ),
        Claim(
            "the global sensitivity is two orders of magnitude greater",
            "Section 7.2",
            "by a factor of "
            + ", ".join(f"{v:,.0f} (d={each})" for v, each in zip(over, d, strict=True))
            + f" at γ={gammas[0]:g}",
            bool(np.all(over >= 100)),
            "At least two: three, in the averaged form that the bound is for.",
        ),
        Claim(
            "these patterns are repeated as the dimension increases; the sensitivity increases",
            "Section 7.2",
            f"averaged, γ={gammas[0]:g}: "
            + ", ".join(f"{_shown(v)} (d={each})" for v, each in zip(averaged[0], d, strict=True)),
            bool(np.all(np.diff(averaged[0]) > 0)),
        ),
        Claim(
            "as dimensions are added, records become more likely to be support vectors (loss averaged)",
            "Section 7.2",
            f"of {numbers['n']:,} records: {counts[AVERAGED]}",
            bool(np.all(np.diff(curves[AVERAGED]["vectors"]) > 0)),
            "The classes move apart as √d and C/n is small, so at a low d most records are within the "
            "margin. The sensitivity grows all the same.",
        ),
        Claim(
            "as dimensions are added, records become more likely to be support vectors (loss summed)",
            "Section 7.2",
            f"of {numbers['n']:,} records: {counts[SUMMED]}",
            bool(np.all(np.diff(curves[SUMMED]["vectors"]) > 0)),
        ),
        Claim(
            "the solver's tolerance does not make the estimate (left, and right dashed)",
            "not in the paper",
            "distance from the optimum (10⁻¹²) in L1, at most: "
            + ", ".join(
                f"{max(curves[way]['from_optimum']):.0e} ({text})"
                for way, text in (
                    (AVERAGED, "averaged, 10⁻⁸"),
                    (SUMMED, "summed, 10⁻⁸"),
                    (STOPPED, "summed, 10⁻³"),
                )
            ),
            None,
            "At LIBSVM's default it is as large as the Δ̂ of the paper.",
        ),
        Claim(
            f"the exact bound with {exact['m']} pairs (loss averaged, γ={exact['gamma']:g})",
            "not in the paper",
            ", ".join(
                f"{v:.4f}, paper's {w:.4f} (d={each})"
                for v, w, each in zip(exact["values"], averaged[0], d, strict=True)
            ),
            None,
        ),
    ]


def summary(numbers: dict[str, Any]) -> str:
    """Return the paragraph of the page."""
    curves, gammas, bounds = numbers["curves"], numbers["gammas"], np.array(numbers["global"])
    averaged, last = (np.array([curves[way]["values"][str(g)] for g in gammas]) for way in (AVERAGED, LAST))
    over, d, vectors = bounds / averaged[0], numbers["dimensions"], curves[AVERAGED]["vectors"]
    return (
        "Figure 5: with the averaged loss (left), Δ̂ is near 0.01 as claimed, or zero; "
        f"the global bound is {over.min():,.0f} to {over.max():,.0f} times as large at γ={gammas[0]:g} "
        f"(the paper: two orders of magnitude). Three statements fail: the bound is {bounds[0]:.2f} at "
        f"d={d[0]}, not above 20; Δ̂ depends on γ, and is zero at large γ and d, where we refuse to "
        f"release; and there are fewer support vectors as d grows ({vectors[0]:.0f} to {vectors[-1]:.0f} "
        f"of {numbers['n']:,} records), not more. With the summed loss (right, as in scikit-learn), Δ̂ is "
        f"near 0.01 only for γ≥{gammas[1]:g} and with the solver's default tolerance (solid), whose error "
        f"causes most of these gaps; at γ={gammas[0]:g} it is {last[0].min():.1f} to {last[0].max():.1f}. "
        "The proof of Proposition 19 gives 2Cd, not 2C√d, but its bound holds for C≥2, because ½‖w‖²≤C "
        "gives |w·x|≤√(2Cd)≤C√d."
    )


if __name__ == "__main__":
    main("svm_sensitivity")
