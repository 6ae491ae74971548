"""How the choice of P changes the noise and the promise: the tables and the picture of docs/choosing.md.

The question is the mean age of n people. First the estimate under several P; then what is left of the promise
if people are not as P says: the Proposition's penalty, and what an audit measures.

    python examples/choosing_p.py            prints the tables
    python examples/choosing_p.py --picture docs/choosing.svg      draws the picture too (needs matplotlib)
"""

import argparse
import math
from typing import Any

import numpy as np

from privatize import PrivateFunction, audit, privatize, samplers, transfer

N = 1000


def mean(ages: Any) -> float:
    """Return the mean age."""
    return float(ages.mean())


def private(sampler: Any, **settings: Any) -> PrivateFunction[..., float]:
    """Make the mean age private under a P."""
    return privatize(epsilon=1, gamma=0.05, sampler=sampler, seed=1, store=None, **settings)(mean)


def estimates() -> None:
    """Print the estimate under several public distributions of an age."""
    print(f"mean age of {N:,} people, gamma=0.05: the estimate under P")
    for text, sampler in {
        "uniform(0, 120)": samplers.uniform(0, 120),
        "uniform(18, 90)": samplers.uniform(18, 90),
        "normal(45, 20).truncated(0, 120)": samplers.normal(45, 20).truncated(0, 120),
        "normal(45, 10).truncated(0, 120)": samplers.normal(45, 10).truncated(0, 120),
        "normal(45, 5).truncated(0, 120)": samplers.normal(45, 5).truncated(0, 120),
    }.items():
        print(f"  {text:34s} {private(sampler).estimate(N).value:8.5f}")
    print(f"  {'(the worst case: 120/n)':34s} {120 / N:8.5f}")


def penalties(quick: bool) -> None:
    """Print the Proposition's penalty beside the share of failures that is measured."""
    pairs = 2_000 if quick else 20_000
    print("\npeople are normal(45 + shift, 20), P is normal(45, 20): the gamma that is left of 0.05")
    print(f"{'shift':>6} {'KL':>9} {'n=100':>8} {'n=1,000':>8} {'n=10,000':>9}   measured at n=1,000")
    average = private(samplers.normal(45, 20))
    for shift in (0.01, 0.1, 1.0, 10.0):
        kl = shift**2 / (2 * 20**2)
        bounds = [transfer(0.05, n, kl) for n in (100, 1_000, 10_000)]
        found = audit(
            average, N, sampler=samplers.normal(45 + shift, 20), pairs=pairs, releases=0, seed=2
        ).coverage.share
        print(f"{shift:6g} {kl:9.2e} {bounds[0]:8.3f} {bounds[1]:8.3f} {bounds[2]:9.3f}   {found:.3f}")
    print("\npeople are normal(45, 20 * factor), P is normal(45, 20): clipping at [0, 120], and not")
    print(f"{'factor':>6} {'KL':>9} {'n=1,000':>8}   measured, not clipped   measured, clipped")
    clipped = private(samplers.normal(45, 20).truncated(0, 120))
    for factor in (0.5, 1.0, 1.5, 3.0):
        kl = math.log(factor) + 1 / (2 * factor**2) - 0.5
        people = samplers.normal(45, 20 * factor)
        shares = [
            audit(f, N, sampler=people, pairs=pairs, releases=0, seed=2).coverage.share
            for f in (average, clipped)
        ]
        bound = transfer(0.05, N, kl)
        print(f"{factor:6g} {kl:9.2e} {bound:8.3f}   {shares[0]:21.3f}   {shares[1]:17.3f}")


def picture(path: str) -> None:
    """Draw the estimate as P changes."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "choosing"  # the same file at every run
    widths = np.geomspace(1, 200, 25)
    figure: Any = Figure(figsize=(6.5, 3.8), layout="constrained")
    ax = figure.subplots()
    lines: dict[str, list[float]] = {}
    for width in widths:
        normal = samplers.normal(45, width)
        for text, sampler in {
            "P = normal(45, width)": normal,
            "P = normal(45, width).truncated(0, 120)": normal.truncated(0, 120),
            "P = normal(45, width).clip(0, 120)": normal.clip(0, 120),
        }.items():
            lines.setdefault(text, []).append(private(sampler).estimate(N).value)
    for text, values in lines.items():
        ax.plot(widths, values, label=text)
    ax.axhline(120 / N, color="gray", linestyle=":", label="worst case for ages in [0, 120]")
    ax.set(xscale="log", yscale="log", xlabel="width of P", ylabel=f"estimate Δ̂ (mean age, n={N:,})")
    ax.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main(quick: bool, path: str | None) -> None:
    """Print both tables, and draw the picture."""
    estimates()
    penalties(quick)
    if path is not None:
        picture(path)
    elif not quick:
        print("\n--picture FILE draws the picture")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument("--picture", metavar="FILE", help="where to draw the picture")
    given = parser.parse_args()
    main(given.quick, given.picture)
