"""What amortization saves over plain calibration, in CPU time, and why SVMs have none, in one run.

    python tests/benchmarks/amortization.py

The paper's density experiment (11 lattice points, n=5000, m=50000) took 339.5 s in R.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from privatize import Plan, estimate_sensitivity, plan, samplers, sums

N = 5000
EDGES = LATTICE = np.linspace(0, 1, 11)
UNIT = samplers.uniform(0, 1)
COLUMNS = samplers.uniform([0.0] * 5, [1.0] * 5)


def moments(x: Any) -> Any:
    """Compute second moments."""
    return (x.T @ x / len(x))[np.triu_indices(x.shape[1])]


def density(x: Any) -> Any:
    """Estimate a density on the lattice."""
    kernels = np.exp(-np.square((x[:, None] - LATTICE) / 0.1) / 2)
    return kernels.mean(axis=0) / (0.1 * np.sqrt(2 * np.pi))


FUNCTIONS: dict[str, tuple[Any, Callable[[Any], Any], Any]] = {
    "means of 5 columns": (sums.means(), lambda x: x.mean(axis=0), COLUMNS),
    "histogram, 10 bins": (sums.histogram(EDGES), lambda x: np.histogram(x, EDGES)[0], UNIT),
    "second moments of 5": (sums.second_moments(), moments, COLUMNS),
    "density, 11 points": (sums.kde(LATTICE, 0.1), density, UNIT),
}


def seconds(function: Any, sampler: Any, made: Plan, pair: Any = None) -> tuple[float, float]:
    """Return how long a calibration on one core takes, the best of three, and its estimate."""
    best, value = np.inf, 0.0
    for _ in range(3):
        start = time.process_time()
        value = estimate_sensitivity(
            function, n=N, sampler=sampler, norm="l1", plan=made, seed=1, workers="inline", pair=pair
        ).value
        best = min(best, time.process_time() - start)
    return best, value


def additive() -> None:
    """Compare sums over records with the plain functions."""
    made = plan(0.05)
    print(f"n={N}, gamma=0.05, m={made.m}, one core; seconds, and the estimates")
    print(f"{'function':22s} {'plain':>9} {'additive':>9} {'ratio':>7} {'plain':>11} {'additive':>11}")
    for name, (ours, plain, sampler) in FUNCTIONS.items():
        slow, expected = seconds(plain, sampler, made)
        fast, found = seconds(ours, sampler, made)
        print(f"{name:22s} {slow:9.4f} {fast:9.4f} {slow / fast:7.1f} {expected:11.4g} {found:11.4g}")
    many = plan(m=50_000, bound="dkw")
    start = time.process_time()
    estimate_sensitivity(
        sums.kde(LATTICE, 0.1), n=N, sampler=UNIT, norm="l1", plan=many, seed=1, workers="inline"
    )
    print(f"density with m={many.m}: {time.process_time() - start:.2f} s (the paper's, in R: 339.5 s)")


# --- pair= ----------------------------------------------------------------------------------------


def people(columns: int) -> Any:
    """Return a distribution of features and a label that follows from them."""
    weights = np.linspace(-1, 1, columns)

    def label(x: Any, rng: np.random.Generator) -> Any:
        return (x @ weights + rng.normal(size=len(x)) > 0).astype(int)

    return samplers.labelled(samplers.uniform([0.0] * columns, [1.0] * columns), label)


def ridge(data: Any) -> Any:
    """Fit a ridge regression."""
    x, y = data
    return np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y)


def ridge_pair(data: Any, position: int, replacement: Any) -> Any:
    """Fit it on both neighbours, the second by two updates of rank one."""
    x, y = data
    gram, moment = x.T @ x + np.eye(x.shape[1]), x.T @ y
    (old, new), (was, now) = (x[position], replacement[0]), (y[position], replacement[1])
    other = gram - np.outer(old, old) + np.outer(new, new)
    return np.linalg.solve(gram, moment), np.linalg.solve(other, moment - was * old + now * new)


def logistic(data: Any) -> Any:
    """Fit a logistic regression to the end."""
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(*data)
    return np.append(found.coef_, found.intercept_)


def logistic_pair(data: Any, position: int, replacement: Any) -> Any:
    """Fit it on both neighbours, the second from where the first ended."""
    from sklearn.linear_model import LogisticRegression

    x, y = data
    model = LogisticRegression(solver="newton-cholesky", tol=1e-12, warm_start=True).fit(x, y)
    value = np.append(model.coef_, model.intercept_)
    x, y = x.copy(), y.copy()
    x[position], y[position] = replacement
    model.fit(x, y)
    return value, np.append(model.coef_, model.intercept_)


def warm() -> None:
    """Compare `pair=` with plain evaluation."""
    made = plan(0.1)
    print(f"\nn={N}, 50 columns, gamma=0.1, m={made.m}, one core; seconds, and the estimates")
    print(f"{'function':22s} {'plain':>9} {'pair=':>9} {'ratio':>7} {'plain':>11} {'pair=':>11}")
    for name, function, pair in (
        ("ridge, rank one", ridge, ridge_pair),
        ("logistic, warm start", logistic, logistic_pair),
    ):
        slow, expected = seconds(function, people(50), made)
        fast, found = seconds(function, people(50), made, pair)
        print(f"{name:22s} {slow:9.4f} {fast:9.4f} {slow / fast:7.1f} {expected:11.4g} {found:11.4g}")


def support_vectors() -> None:
    """Replace records that are no support vectors by others that are none: nothing should move."""
    from sklearn.svm import SVC

    sampler, rng = people(5), np.random.default_rng(1)
    print(
        "\nlinear SVM, n=300: gaps of coefficients where neither record is a support vector of either model"
    )
    print(f"{'tolerance':>10} {'pairs':>6} {'moved':>6} {'largest':>9}   with a support vector: median")
    for tolerance in (1e-3, 1e-5, 1e-8):
        without: list[float] = []
        with_one: list[float] = []
        while len(without) < 200:
            x, y = sampler.draw(301, rng)
            position = int(rng.integers(300))
            fits, touched = [], False
            for extra in (position, 300):  # the record itself, or the other one in its place
                which = np.arange(300)
                which[position] = extra
                model = SVC(kernel="linear", tol=tolerance).fit(x[which], y[which])
                touched = touched or position in model.support_
                fits.append(model.coef_.ravel())
            (with_one if touched else without).append(float(np.abs(fits[0] - fits[1]).sum()))
        moved = sum(gap > 0 for gap in without)
        print(
            f"{tolerance:10.0e} {len(without):6d} {moved:6d} {max(without):9.2g}   {np.median(with_one):.2g}"
        )


if __name__ == "__main__":
    additive()
    warm()
    support_vectors()
