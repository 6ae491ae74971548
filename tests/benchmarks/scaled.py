"""How much noise each way to divide it makes, over `scaled="total"`: T8's nine functions, and others.

python -m tests.benchmarks.scaled              # docs/worth.md has some of the rows: about five minutes
python -m tests.benchmarks.scaled --pilots 1   # one calibration of each
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import Gaussian, Laplace, configure, privatize, samplers
from privatize.errors import UninformativeWarning
from privatize.mechanisms.weighted import weighted

from .measuring import Result, result, settings
from .page import line

N, DELTA = 1000, 1e-6
RNG = np.random.default_rng(26)
LOADINGS = RNG.normal(size=(3, 20))
UNITS = 10.0 ** RNG.uniform(-1, 2, 20)
COEFFICIENTS = RNG.normal(size=20)
POINTS = np.linspace(-1.5, 1.5, 20)


def factors(n: int, rng: np.random.Generator) -> Any:
    """Draw twenty columns that three factors move."""
    return np.clip(rng.normal(size=(n, 3)), -4, 4) @ LOADINGS + 0.3 * np.clip(rng.normal(size=(n, 20)), -4, 4)


def in_units(n: int, rng: np.random.Generator) -> Any:
    """Draw the same columns, each in a unit of its own."""
    return factors(n, rng) * UNITS


def numbers(n: int, rng: np.random.Generator) -> Any:
    """Draw one normal column."""
    return np.clip(rng.normal(size=n), -5, 5)


def regression(n: int, rng: np.random.Generator) -> Any:
    """Draw twenty correlated features, and what depends on them."""
    x = factors(n, rng) / 2
    return np.column_stack([x, x @ COEFFICIENTS + np.clip(rng.normal(size=n), -4, 4)])


def classes(n: int, rng: np.random.Generator) -> Any:
    """Draw five classes of different sizes, and four correlated features."""
    label = rng.choice(5, n, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    return np.column_stack([label, label[:, None] + factors(n, rng)[:, :4]])


def incomes(n: int, rng: np.random.Generator) -> Any:
    """Draw ages, incomes and a flag."""
    age, flag = rng.integers(18, 90, n), rng.random(n) < 0.2
    return np.column_stack([age, np.minimum(np.exp(rng.normal(10.3, 0.6, n)), 300_000), flag])


def durations(n: int, rng: np.random.Generator) -> Any:
    """Draw times until an event, or until people were lost."""
    event, lost = rng.exponential(10, n), rng.uniform(0, 25, n)
    return np.column_stack([np.minimum(event, lost), event <= lost])


def covariance(d: Any) -> Any:
    """Return the covariances of ten columns."""
    return np.cov(d[:, :10].T)


def principal(d: Any) -> Any:
    """Return two principal components, with signs by their largest entries under P."""
    _, vectors = np.linalg.eigh(np.cov(d.T))
    top = vectors[:, :-3:-1].T
    return top * np.sign((top * AXES).sum(axis=1, keepdims=True))


AXES = np.linalg.eigh(LOADINGS.T @ LOADINGS + 0.09 * np.eye(20))[1][:, :-3:-1].T


def least_squares(d: Any) -> Any:
    """Return the coefficients of a regression."""
    return np.linalg.lstsq(d[:, :-1], d[:, -1], rcond=None)[0]


def class_means(d: Any) -> Any:
    """Return the mean of each feature in each class."""
    return np.array([d[d[:, 0] == each, 1:].mean(axis=0) for each in range(5)])


def histogram(d: Any) -> Any:
    """Return the counts of twenty bins."""
    return np.histogram(d, bins=20, range=(-3, 3))[0].astype(float)


def ecdf(d: Any) -> Any:
    """Return the share below each of twenty points."""
    return np.searchsorted(np.sort(d), POINTS) / len(d)


def by_group(d: Any) -> Any:
    """Return the mean income and the number of people in each of six groups of age."""
    group = np.minimum((d[:, 0] - 18) // 12, 5).astype(int)
    count = np.bincount(group, minlength=6)
    return [*(np.bincount(group, d[:, 1], 6) / count), *count.astype(float)]


def survival(d: Any) -> Any:
    """Return a survival curve at twenty times."""
    order = np.argsort(d[:, 0])
    at_risk = len(d) - np.arange(len(d))
    curve = np.cumprod(1 - d[order, 1] / at_risk)
    return np.append(1.0, curve)[np.searchsorted(d[order, 0], np.linspace(1, 18, 20))]


def quantiles(d: Any) -> Any:
    """Return five quantiles of an integer column."""
    return np.quantile(d[:, 0], [0.1, 0.25, 0.5, 0.75, 0.9])


def facts(d: Any) -> Any:
    """Return three numbers in very different units."""
    return [d[:, 0].mean(), d[:, 1].mean(), d[:, 2].mean()]


def k_means(d: Any) -> Any:
    """Return three centers, from a fixed start."""
    centers = np.array([[-2.0] * 4, [0.0] * 4, [2.0] * 4])
    for _ in range(10):
        nearest = ((d[:, None, :4] - centers) ** 2).sum(axis=2).argmin(axis=1)
        counts = [nearest == at for at in range(3)]
        centers = np.array(
            [d[one, :4].mean(axis=0) if one.any() else c for one, c in zip(counts, centers, strict=True)]
        )
    return centers


def predictions_metric() -> Any:
    """Return the mean of x xᵀ under P."""
    x = regression(100_000, np.random.default_rng(0))[:, :-1]
    return x.T @ x / len(x)


Case = tuple[str, Callable[[Any], Any], Callable[..., Any], Any]
T8: list[Case] = [
    ("means of 20 columns from 3 factors", lambda d: d.mean(axis=0), factors, None),
    ("means of 20 columns in own units", lambda d: d.mean(axis=0), in_units, None),
    ("ECDF at 20 points", ecdf, numbers, None),
    ("covariance 10×10", covariance, factors, None),
    ("PCA 2 of 20", principal, factors, None),
    ("OLS, error of predictions", least_squares, regression, predictions_metric()),
    ("OLS, 20 coefficients", least_squares, regression, None),
    ("class means 5×4", class_means, classes, None),
    ("histogram of 20 bins", histogram, numbers, None),
]
OTHERS: list[Case] = [
    ("mean income and count of 6 groups", by_group, incomes, None),
    ("survival curve at 20 times", survival, durations, None),
    ("5 quantiles of ages", quantiles, incomes, None),
    ("mean age, income and share", facts, incomes, None),
    ("k-means 3×4", k_means, factors, None),
]


def errors(case: Case, mechanism: Any, seed: int) -> tuple[float, float, str, float]:
    """Return the error in the answer's units, the error without a unit, what was chosen, and the seconds."""
    _, function, draw, metric = case
    P = samplers.from_function(draw)
    delta = DELTA if isinstance(mechanism, Gaussian) else 0.0
    if metric is not None and mechanism.scaled in ("auto", "matrix"):
        mechanism = Gaussian(scaled=mechanism.scaled, error=metric)
    promise: Any = {"epsilon": 1, "delta": delta, "gamma": 0.05, "sampler": P, "mechanism": mechanism}
    start = time.perf_counter()
    # By case: two of them have the same function, and the estimate of the first would be remembered.
    found = privatize(**promise, seed=seed, store=None, version=case[0])(function).estimate(N)
    took = time.perf_counter() - start
    used = weighted(mechanism, found.shape)
    scales = np.broadcast_to(used.scale(found.value, 1.0, delta), found.structure.size)
    unit_free = float(np.sqrt(np.mean(np.square(scales / found.spread.deviations))))
    if metric is None:
        return float(np.sqrt(np.mean(np.square(scales)))), unit_free, found.shape.kind, took
    sigma = float(mechanism.scale(found.value, 1.0, delta))
    own = found.shape.covariance if found.shape.powers else np.eye(len(metric))
    return sigma * float(np.sqrt(np.sum(metric * own))), unit_free, found.shape.kind, took


def table(cases: list[Case], ways: list[Any], pilots: int) -> list[float]:
    """Print a row for each function: the errors of each way over those of "total", in both measures."""
    heads = [str(way.scaled) for way in ways]
    print("| function | " + " | ".join(heads) + " | auto, without unit | auto chooses |")
    print("|---|" + "---:|" * (len(heads) + 1) + "---|")
    last = []
    for case in cases:
        found: dict[str, list[tuple[float, float, str, float]]] = {}
        for way in [type(ways[0])(scaled="total"), *ways]:
            found[way.scaled] = [errors(case, way, seed) for seed in range(1, pilots + 1)]
        base = found["total"]
        ratio = {
            name: [
                np.median([one[at] / two[at] for one, two in zip(each, base, strict=True)]) for at in (0, 1)
            ]
            for name, each in found.items()
        }
        cells = " | ".join(f"{ratio[name][0]:.2f}" for name in heads)
        kinds = ", ".join(sorted({each[2] for each in found["auto"]}))
        print(f"| {case[0]} | {cells} | {ratio['auto'][1]:.2f} | {kinds} |", flush=True)
        last.append(float(ratio["auto"][0]))
    return last


def run(quick: bool) -> list[Result]:
    """Measure how much longer a calibration with "auto" takes than with "none"."""
    found = []
    for case in T8[::3] if quick else T8:
        took: dict[str, list[float]] = {"auto": [], "none": []}
        with settings(stress=False, workers="inline"), warnings.catch_warnings(action="ignore"):
            for seed in range(1, 4 if quick else 8):
                for way in took:
                    took[way].append(errors(case, Gaussian(scaled=way), seed)[3])  # type: ignore[arg-type]
        auto, none = (float(np.median(each)) * 1e3 for each in took.values())
        ratio = float(np.median(np.array(took["auto"]) / np.array(took["none"])))
        found.append(
            result("calibration", f'scaled="auto", {case[0]}', auto, "ms", against='scaled="none"',
                   theirs=none, ratio=ratio, most=1.1, note=f"n={N}, γ=0.05, m=557, Gaussian, inline")
        )  # fmt: skip
    return found


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore", UninformativeWarning)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pilots", type=int, default=5, help="calibrations of each")
    pilots = parser.parse_args().pilots
    configure(stress=False, workers="inline")
    ways = [Gaussian(scaled="none"), Gaussian(scaled="relative"), Gaussian(scaled="matrix"), Gaussian()]
    print(f'Gaussian, n={N}, epsilon=1, delta={DELTA:g}, gamma=.05: RMS error over scaled="total"\n')
    found = table(T8, ways, pilots)
    print(f"\nauto on these nine: median {np.median(found):.2f}, largest {max(found):.2f}\n\nothers\n")
    table(OTHERS, ways, pilots)
    print('\nLaplace, epsilon=1, gamma=.05: RMS error over scaled="total"\n')
    table(T8[:5] + T8[6:] + OTHERS, [Laplace(scaled="none"), Laplace(scaled="relative"), Laplace()], pilots)
    print()
    for each in run(quick=False):
        print(line(each))


if __name__ == "__main__":
    main()
