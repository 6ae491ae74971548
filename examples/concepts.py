"""Three pictures for docs/quickstart.md: what P, ε and γ are, for the mean income of 1,000 made-up people.

All numbers come from the library: the people from P, the gaps and Δ̂ from a calibration, and the scale of the
noise from the mechanism.

    python examples/concepts.py          prints the numbers
    python examples/concepts.py --docs   draws docs/concepts/*.svg too, for light and dark pages (matplotlib)
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from privatize import Sensitivity, configure, privatize, samplers

FOLDER = Path(__file__).parents[1] / "docs" / "concepts"
N, GAMMA, EPSILONS = 1000, 0.05, (0.1, 1.0)
P = samplers.table(
    income=samplers.normal(35_000, 15_000).truncated(0, 100_000),
    age=samplers.integers(18, 85),
    frame="dict",
)


class Colors(NamedTuple):
    """The colors of a picture."""

    ink: str
    people: str
    pair: str
    answer: str


COLORS = {
    "light": Colors("#333333", "#9aa5b1", "#d9480f", "#1971c2"),
    "dark": Colors("#dddddd", "#7b8794", "#ff922b", "#74c0fc"),
}


@privatize(epsilon=1, gamma=GAMMA, sampler=P, seed=1, store=None, workers="inline")
def mean_income(people: Any) -> float:
    """Return the mean income."""
    return float(people["income"].mean())


def neighbours(n: int, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a dataset of n people from P, and the same with its first person replaced by one more draw."""
    drawn = P.draw(n + 1, np.random.default_rng(seed))
    return {name: each[:-1] for name, each in drawn.items()}, {
        name: np.concatenate([each[-1:], each[1:-1]]) for name, each in drawn.items()
    }


def scale(found: Sensitivity, epsilon: float) -> float:
    """Return the scale of the Laplace noise."""
    return float(mean_income.settings.mechanism.scale(found.value, epsilon, 0.0))


def show(found: Sensitivity) -> None:
    """Print the numbers of the three pictures."""
    one, other = (mean_income.__wrapped__(each) for each in neighbours(20, seed=11))
    print(f"P: the mean income of 20 people is {one:,.0f}; with one person replaced, {other:,.0f}")
    for epsilon in EPSILONS:
        likely = math.exp(epsilon)
        print(f"epsilon={epsilon:g}: noise of scale {scale(found, epsilon):,.0f} for {N:,} people;", end=" ")
        print(f"no answer becomes more than {likely:.2f} times as likely")
    beyond = int((np.asarray(found.gaps) > found.value).sum())
    print(f"gamma={GAMMA:g}: {beyond} of {found.m} gaps are beyond the estimate, {found.value:,.1f}")


def figure(colors: Colors, panels: int = 1) -> tuple[Any, Any]:
    """Return an empty figure, and its axes."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "concepts"  # the same file at every run
    rcParams["svg.fonttype"] = "none"  # text stays text, and the file small
    drawing: Any = Figure(figsize=(6, 2.6), layout="constrained")
    axes = drawing.subplots(1, panels, squeeze=False)[0]
    for ax in axes:
        ax.set_facecolor("none")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.spines["bottom"].set_color(colors.ink)
        ax.tick_params(colors=colors.ink, labelsize=9)
        ax.xaxis.label.set_color(colors.ink)
        ax.set_yticks([])
        ax.xaxis.set_major_formatter("{x:,.0f}")
    return drawing, axes


def draw_p(colors: Colors) -> Any:
    """Draw people from P, one of whom is replaced, and how far that moves the mean."""
    before, after = neighbours(20, seed=11)
    drawing, (ax,) = figure(colors)
    ax.scatter(before["income"][1:], before["age"][1:], color=colors.people, s=28)
    ends = [(each["income"][0], each["age"][0]) for each in (before, after)]
    ax.scatter(*ends[0], facecolors="none", edgecolors=colors.pair, s=40, linewidths=1.6)
    ax.scatter(*ends[1], color=colors.pair, s=40)
    ax.annotate(
        "",
        ends[1],
        ends[0],
        arrowprops={"arrowstyle": "->", "color": colors.pair, "shrinkA": 5, "shrinkB": 5},
    )
    ax.annotate(
        "one person is replaced", ends[1], (7, 0), textcoords="offset points", color=colors.pair, va="center"
    )
    means = [mean_income.__wrapped__(each) for each in (before, after)]
    for mean, style in zip(means, (":", "-"), strict=True):
        ax.axvline(mean, ymax=0.86, color=colors.answer, linestyle=style)
    ax.axvspan(*sorted(means), ymax=0.86, color=colors.answer, alpha=0.25, linewidth=0)
    ax.annotate(
        "the mean moves: a gap", (max(means), 92), (5, 0), textcoords="offset points", color=colors.answer
    )
    ax.set(xlabel="income", ylim=(14, 100), xlim=(0, 95_000))
    ax.set_ylabel("age", color=colors.ink)
    return drawing


def draw_epsilon(colors: Colors, found: Sensitivity) -> Any:
    """Draw how likely answers are on two neighbouring datasets, for a small and for a large ε."""
    drawing, axes = figure(colors, 2)
    low = 35_000 - found.value / 2
    at = np.linspace(low - 8 * found.value, low + 9 * found.value, 18 * 4 - 3)  # both peaks are among these
    for ax, epsilon in zip(axes, EPSILONS, strict=True):
        width = scale(found, epsilon)
        for mean, color in ((low, colors.answer), (low + found.value, colors.pair)):
            density = np.exp(-np.abs(at - mean) / width) / (2 * width)
            ax.fill_between(at, density, color=color, alpha=0.3, linewidth=0)
            ax.plot(at, density, color=color, linewidth=1.4)
        ax.set_title(
            f"ε = {epsilon:g}: {math.exp(epsilon):.2f} times as likely, at most", color=colors.ink, size=9.5
        )
        if epsilon == EPSILONS[-1]:  # where there is space beside the peaks
            peak = 0.45 / width
            places = {
                "one dataset": (low, -6, colors.answer, "right"),
                "its neighbour": (low + found.value, 6, colors.pair, "left"),
            }
            for words, (x, beside, color, side) in places.items():
                ax.annotate(words, (x, peak), (beside, 0), textcoords="offset points", color=color, ha=side)
        ax.set(xlabel="private answer", ylim=(0, None), xlim=(at[0], at[-1]))
        ax.locator_params(axis="x", nbins=4)
    return drawing


def draw_gamma(colors: Colors, found: Sensitivity) -> Any:
    """Draw the sampled gaps, the estimate, and the gaps beyond it."""
    drawing, (ax,) = figure(colors)
    gaps = np.asarray(found.gaps)
    width = found.value / 16
    bins = np.arange(0, gaps.max() + width, width)
    ax.hist(gaps[gaps <= found.value], bins, color=colors.people)
    ax.hist(gaps[gaps > found.value], bins, color=colors.pair)
    ax.axvline(found.value, color=colors.answer)
    top = ax.get_ylim()[1]
    ax.annotate(
        f"Δ̂, the {found.k}th smallest\nof {found.m} sampled gaps",
        (found.value, top * 0.95),
        (-6, 0),
        textcoords="offset points",
        color=colors.answer,
        ha="right",
        va="top",
    )
    ax.annotate(
        f"beyond it the promise may fail:\nat most a share γ = {GAMMA:g}\nof all pairs",
        (found.value, top * 0.95),
        (6, 0),
        textcoords="offset points",
        color=colors.pair,
        va="top",
    )
    ax.set(xlabel=f"how far one replaced person of {N:,} moves the mean income", xlim=(0, found.value * 1.6))
    return drawing


def draw(found: Sensitivity) -> None:
    """Write the three pictures, each in two variants."""
    FOLDER.mkdir(exist_ok=True)
    for page, colors in COLORS.items():
        pictures = {
            "p": draw_p(colors),
            "epsilon": draw_epsilon(colors, found),
            "gamma": draw_gamma(colors, found),
        }
        for name, picture in pictures.items():
            path = FOLDER / f"{name}-{page}.svg"
            picture.savefig(path, transparent=True, metadata={"Date": None})


def main() -> None:
    """Print the numbers, or draw the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="changes nothing: it takes a second anyway")
    parser.add_argument("--docs", action="store_true", help="draw docs/concepts/*.svg")
    options = parser.parse_args()
    configure(stress=False)
    found = mean_income.estimate(N)
    show(found)
    if options.docs:
        draw(found)


if __name__ == "__main__":
    main()
