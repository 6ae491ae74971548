"""SVM: error.

The paper's Figure 6: misclassification against ε, for two classes in the plane as in the previous
experiment, γ=0.05; means of 500 repeats, each with new private records, new noise and new records to
classify; bands are two standard errors each way. Left: the paper's machine, the loss averaged (C/n per
record) and the bias free. Right: a scikit-learn `LinearSVC` with the hinge loss, which comes back with
private numbers: the loss is summed (C per record) and the bias regularized like a weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privatize import Laplace, privatize

from .common import BLUE, INK, ORANGE, SEED, Claim, main
from .svm_sensitivity import C, N, bound, classes, machine

D = 2
SURE = 4.9  # standard errors: beyond, by chance, one in a million times


def model(x: Any, y: Any) -> Any:
    """Train a linear SVM by LIBLINEAR: hinge loss, C per record, bias regularized."""
    from sklearn.svm import LinearSVC

    return LinearSVC(C=C, loss="hinge", tol=1e-8, max_iter=1_000_000, random_state=0).fit(x, y)


def missed(weights: Any, bias: float, x: Any, y: Any) -> float:
    """Return the share of records that are classified wrongly."""
    return float(np.mean(np.where(x @ weights + bias > 0, 1, -1) != y))


def noisy(weights: Any, bias: float, sensitivity: float, epsilon: float) -> tuple[Any, float]:
    """Release weights and bias by the Laplace mechanism with a known sensitivity."""
    numbers = np.append(weights, bias)
    flat = Laplace().release(
        numbers, sensitivity=sensitivity, epsilon=epsilon, whole=np.zeros(len(numbers), dtype=bool)
    )
    return flat[:-1], float(flat[-1])


def run(quick: bool) -> dict[str, Any]:
    """Estimate once; then train, release and count errors, again and again."""
    repeats, gamma, m = (4, 0.2, 100) if quick else (500, 0.05, 1500)
    epsilons = [0.001, 0.1, 10.0] if quick else np.geomspace(1e-3, 100, 11).tolist()
    privacy: dict[str, Any] = {
        "mechanism": Laplace(scaled="none"),
        "gamma": gamma,
        "data": ("x", "y"),
        "sampler": classes(D),
        "bound": "dkw",
        "samples": m,
        "seed": SEED + (1 if quick else 2),  # another m would be another look at the same gaps
        "workers": "inline",  # see svm_sensitivity
        "progress": not quick,
    }
    if quick:
        privacy["min_sensitivity"] = 0.01  # with few pairs the estimate for the right half may be zero
    own = {"c": C / N, "tol": 1e-8}
    left = {e: privatize(epsilon=e, **privacy)(machine) for e in epsilons}
    right = {e: privatize(epsilon=e, **privacy)(model) for e in epsilons}
    bounds = {"left": bound(D), "right": 4.0 * C * (D + 1)}
    found = {"left": left[epsilons[0]].estimate(N, **own), "right": right[epsilons[0]].estimate(N)}
    rng = np.random.default_rng(SEED)
    missing: dict[str, Any] = {
        f"{side} {name}": np.zeros((repeats, len(epsilons)))
        for side in ("left", "right")
        for name in ("plain", "sampled", "global")
    }
    for i in range(repeats):
        x, y = classes(D).draw(N, rng)  # the private records
        new = classes(D).draw(N, rng)
        weights, bias = machine(x, y, **own)
        exact = model(x, y)
        normal, offset = exact.coef_[0], float(exact.intercept_[0])
        missing["left plain"][i] = missed(weights, bias, *new)
        missing["right plain"][i] = missed(normal, offset, *new)
        for j, e in enumerate(epsilons):
            missing["left sampled"][i, j] = missed(*left[e](x, y, **own), *new)
            missing["left global"][i, j] = missed(*noisy(weights, bias, bounds["left"], e), *new)
            missing["right sampled"][i, j] = 1 - right[e](x, y).score(*new)  # it is a LinearSVC
            missing["right global"][i, j] = missed(*noisy(normal, offset, bounds["right"], e), *new)
        if not quick and (i + 1) % 50 == 0:
            print(f"{i + 1} of {repeats} repeats", flush=True)
    return {
        "n": N,
        "d": D,
        "C": C,
        "gamma": max(each.gamma for each in found.values()),
        "m": m,
        "repeats": repeats,
        "epsilons": epsilons,
        "bounds": bounds,
        "estimates": {side: each.value for side, each in found.items()},
        "typical": {side: float(np.quantile(each.gaps, 0.9)) for side, each in found.items()},
        "unmoved": {side: float(np.mean(each.gaps < 1e-6)) for side, each in found.items()},
        "errors": {name: all_.mean(axis=0).tolist() for name, all_ in missing.items()},
        "standard_errors": {
            name: (all_.std(axis=0, ddof=1) / math.sqrt(repeats)).tolist() for name, all_ in missing.items()
        },
    }


def draw(numbers: dict[str, Any], figure: Any) -> None:
    """Draw error against ε."""
    figure.set_size_inches(9.2, 4.0)
    panels = figure.subplots(1, 2, sharey=True)
    epsilons = numbers["epsilons"]
    for axes, side, title in zip(
        panels,
        ("left", "right"),
        ("the paper's: C/n per record, free bias", "LinearSVC: C per record, regularized bias"),
        strict=True,
    ):
        for name, text, color, line in (
            ("global", f"global bound, Δ = {numbers['bounds'][side]:.3g}", ORANGE, "s-"),
            ("sampled", f"sampled, Δ = {numbers['estimates'][side]:.2g}", BLUE, "o-"),
            ("plain", "not private", INK, "--"),
        ):
            mean = np.array(numbers["errors"][f"{side} {name}"])
            spread = 2 * np.array(numbers["standard_errors"][f"{side} {name}"])
            axes.plot(epsilons, mean, line, color=color, label=text)
            axes.fill_between(epsilons, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0)
        axes.set(xscale="log", xlabel="privacy budget ε", title=title, ylim=(-0.01, 0.56))
        axes.legend(loc="lower left", bbox_to_anchor=(0, 0.12))
    panels[0].set(ylabel="misclassification error")


def claims(numbers: dict[str, Any]) -> list[Claim]:
    """Compare with the experiment on utility."""
    epsilons, gamma = numbers["epsilons"], numbers["gamma"]
    means = {name: np.array(each) for name, each in numbers["errors"].items()}
    spreads = {name: np.array(each) for name, each in numbers["standard_errors"].items()}
    ratio = {side: numbers["bounds"][side] / numbers["estimates"][side] for side in ("left", "right")}

    def apart(side: str) -> Any:
        """Return how much more error the global bound makes, in standard errors, for every ε."""
        spread = np.hypot(spreads[f"{side} global"], spreads[f"{side} sampled"])
        return (means[f"{side} global"] - means[f"{side} sampled"]) / np.maximum(spread, 1e-9)

    def reached(side: str, name: str) -> float:
        """Return the least ε from which on the error is within 0.01 of the non-private one."""
        within = means[f"{side} {name}"] <= means[f"{side} plain"] + 0.01
        last = np.flatnonzero(~within)
        after = 0 if len(last) == 0 else int(last[-1]) + 1
        return float(epsilons[after]) if after < len(epsilons) else math.inf

    def told(side: str, name: str) -> str:
        """Return that ε in words."""
        epsilon = reached(side, name)
        return (
            f"from ε={float(f'{epsilon:.2g}'):g} on"
            if math.isfinite(epsilon)
            else f"not by ε={epsilons[-1]:g}"
        )

    low = {name: means[f"left {name}"][0] for name in ("sampled", "global")}
    between = [
        i
        for i in range(len(epsilons))
        if means["left sampled"][i] < 0.25 and means["left global"][i] > means["left plain"][i] + 0.05
    ]
    gains = means["left global"] - means["left sampled"]
    most = int(np.argmax(gains))
    rates = {side: float(means[f"{side} plain"][0]) for side in ("left", "right")}
    return [
        Claim(
            "at very high privacy levels both private SVMs suffer the same poor error",
            "Section 7.3, Figure 6",
            f"at ε={epsilons[0]:g}: {low['sampled']:.3f} (sampled), {low['global']:.3f} (global bound)",
            bool(abs(apart("left")[0]) < SURE and min(low.values()) > 0.3),
            "A coin makes 0.5.",
        ),
        Claim(
            "quickly with lower privacy, the error with Δ̂ drops until it reaches the non-private rate",
            "Section 7.3, Figure 6",
            f"within 0.01 of the non-private {rates['left']:.4f} {told('left', 'sampled')}",
            math.isfinite(reached("left", "sampled")),
            "The non-private rate is not zero, since with C/n most records are within the margin: the "
            f"weights are small and the bias is ill-determined. With C per record: {rates['right']:.4f}.",
        ),
        Claim(
            "the global sensitivity approach has a significantly higher error, and a much slower decline",
            "Section 7.3, Figure 6",
            f"higher by {min(apart('left')[between], default=math.nan):.0f} standard errors or more at all "
            f"{len(between)} ε in between; within 0.01 of non-private {told('left', 'global')}",
            bool(between)
            and bool(np.all(apart("left")[between] > SURE))
            and reached("left", "global") >= 10 * reached("left", "sampled"),
            f"Nine in ten gaps are below {numbers['typical']['left']:.3f}. The largest, which the paper's "
            "bound takes, are jumps of the free bias where the classes become equally large. "
            "The error depends on Δ/ε alone, so on this axis the curve is the same, moved to the right by "
            f"the ratio of the sensitivities, {numbers['bounds']['left']:.2f} and "
            f"{numbers['estimates']['left']:.4f}: {ratio['left']:,.0f}.",
        ),
        Claim(
            "the sampler can achieve much better utility in addition to sensitivity",
            "Section 7.3",
            f"at ε={epsilons[most]:.2g}: {means['left sampled'][most]:.3f} against "
            f"{means['left global'][most]:.3f} with the global bound",
            bool(gains[most] >= 0.2 and apart("left")[most] > SURE),
            f"Random differential privacy (γ={gamma:g}), against differential privacy for all data.",
        ),
        Claim(
            "utility with Δ̂ dominates that with the global sensitivity",
            "Proposition 18",
            "error with the global bound minus that with Δ̂, over all ε: "
            + ", ".join(f"{apart(s).min():.1f} to {apart(s).max():.0f}" for s in ("left", "right"))
            + " standard errors (left, right)",
            bool(np.all(apart("left") > -SURE) and np.all(apart("right") > -SURE)),
            "Where both guess, chance decides.",
        ),
        Claim(
            "a released `LinearSVC`: C per record, regularized bias",
            "not in the paper",
            f"within 0.01 of the non-private {rates['right']:.4f} {told('right', 'sampled')} "
            f"(Δ̂ = {numbers['estimates']['right']:.3f}), and {told('right', 'global')} with the global bound",
            None,
            "With the bias regularized like a weight, the paper's bound for the weights covers it too: "
            f"4C(d+1) = {numbers['bounds']['right']:g}, {ratio['right']:,.0f} times Δ̂. "
            f"{numbers['unmoved']['right']:.0%} of pairs do not differ; the rest differ by much.",
        ),
    ]


def summary(numbers: dict[str, Any]) -> str:
    """Return the paragraph of the page."""
    epsilons = numbers["epsilons"]
    means = {name: np.array(each) for name, each in numbers["errors"].items()}
    most = int(np.argmax(means["left global"] - means["left sampled"]))

    def reached(side: str, name: str) -> str:
        """Return from which ε on the error is within 0.01 of the non-private one."""
        above = np.flatnonzero(means[f"{side} {name}"] > means[f"{side} plain"] + 0.01)
        after = int(above[-1]) + 1 if len(above) else 0
        if after == len(epsilons):
            return f"not even at ε={epsilons[-1]:g}"
        return f"from ε={epsilons[after]:.2g} on"

    return (
        f"Figure 6, left: at ε={epsilons[0]:g} both private machines guess (errors "
        f"{means['left sampled'][0]:.2f} and {means['left global'][0]:.2f}). With Δ̂ the error is within "
        f"0.01 of the non-private {means['left plain'][0]:.3f} {reached('left', 'sampled')}; with the "
        f"global bound, {reached('left', 'global')}. At ε={epsilons[most]:.2g} the errors are "
        f"{means['left sampled'][most]:.3f} and {means['left global'][most]:.3f}. But only the second "
        f"promise covers all data; the first is random differential privacy, γ={numbers['gamma']:g}."
    )


if __name__ == "__main__":
    main("svm_utility")
