"""How the choice of P changes the noise and the promise: the tables and the picture of docs/choosing.md.

Two questions about n people, each with an age and a blood pressure: the mean age, and the slope of the line
that predicts the pressure from the age. First the estimates under several P; then what is left of the promise
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


def mean(d: Any) -> float:
    """Return the mean age."""
    return float(d[:, 0].mean())


def slope(d: Any) -> float:
    """Return by how much the pressure rises with one year of age."""
    age, pressure = d.T - d.mean(axis=0)[:, None]
    return float(age @ pressure / (age @ age))


QUESTIONS = {"mean age": mean, "slope": slope}


def people(width: float, shift: float = 0.0) -> samplers.Distribution:
    """Return P: ages are spread by `width` around 45, and pressures by 20 around 130."""
    return samplers.normal([45 + shift, 130], [width, 20])


def bounded(width: float) -> samplers.Distribution:
    """Return the same P within bounds: ages from 0 to 120, and pressures from 60 to 200."""
    return people(width).truncated([0, 60], [120, 200])


def private(question: Any, sampler: Any) -> PrivateFunction[..., float]:
    """Make a question private under a P."""
    return privatize(epsilon=1, gamma=0.05, sampler=sampler, seed=1, store=None)(question)


def estimates() -> None:
    """Print both estimates under several public distributions."""
    print(f"{N:,} people, gamma=0.05: the estimate under P, for the mean age and for the slope")
    for width in (80, 40, 20, 10, 5):
        found = [private(question, bounded(width)).estimate(N).value for question in QUESTIONS.values()]
        print(f"  {f'normal(45, {width})':24s} {found[0]:8.4f} {found[1]:8.4f}")
    print(f"  {'worst case':24s} {120 / N:8.4f}     none")


def penalties(quick: bool) -> None:
    """Print the Proposition's penalty beside the share of failures that is measured."""
    pairs = 2_000 if quick else 20_000
    functions = [private(question, people(20)) for question in QUESTIONS.values()]

    def row(actual: samplers.Distribution, kl: float) -> str:
        bounds = [transfer(0.05, n, kl) for n in (100, 1_000, 10_000)]
        found = [
            audit(f, N, sampler=actual, pairs=pairs, releases=0, seed=2).coverage.share for f in functions
        ]
        return " ".join(f"{each:9.3f}" for each in [*bounds, *found])

    print("\nages are normal(45 + shift, 20 * factor), P says normal(45, 20): what is left of gamma=0.05")
    print("shift factor        KL     n=100   n=1,000  n=10,000  and measured: mean age, slope (n=1,000)")
    for shift in (0.1, 1.0, 10.0):
        kl = shift**2 / (2 * 20**2)
        print(f"{shift:5g} {1:6g} {kl:9.2e} {row(people(20, shift), kl)}")
    for factor in (0.25, 0.5, 1.0, 1.5, 3.0):
        kl = math.log(factor) + 1 / (2 * factor**2) - 0.5
        print(f"{0:5g} {factor:6g} {kl:9.2e} {row(people(20 * factor), kl)}")


def picture(path: str) -> None:
    """Draw both estimates as the ages of P spread, as multiples of those at a spread of 20."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams["svg.hashsalt"] = "choosing"  # the same file at every run
    for part in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"):
        rcParams[part] = "#808080"  # can be read on white and on black
    widths = np.geomspace(1, 200, 25)
    figure: Any = Figure(figsize=(6.5, 3.8), layout="constrained")
    ax = figure.subplots()
    for text, question in QUESTIONS.items():
        usual = private(question, bounded(20)).estimate(N).value
        values = [private(question, bounded(width)).estimate(N).value / usual for width in widths]
        ax.plot(widths, values, label=text, linewidth=2)
    ax.axhline(1, color="gray", linestyle=":")
    ax.set(xscale="log", yscale="log", xlabel="spread of the ages in P")
    ax.set(ylabel="Δ̂, compared with a spread of 20")
    ax.legend(fontsize="small", framealpha=0)
    figure.savefig(path, metadata={"Date": None}, transparent=True)


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
