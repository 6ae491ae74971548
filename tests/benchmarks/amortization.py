"""How much time amortization saves over plain calibration, and why it does not work for SVMs."""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import plan, samplers, sums

from .calibration import calibrate
from .measuring import Result, compare, missing, result

GROUP = "amortization"
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
    "second moments of 5 columns": (sums.second_moments(), moments, COLUMNS),
    "density at 11 points": (sums.kde(LATTICE, 0.1), density, UNIT),
}


def additive(quick: bool) -> list[Result]:
    """Compare sums over records with the plain functions."""
    m, found = plan(0.05).m, []
    for name, (ours, plain, sampler) in FUNCTIONS.items():
        fast, slow, ratio, _ = compare(
            lambda f=ours, s=sampler: calibrate(f, m, n=N, sampler=s),
            lambda f=plain, s=sampler: calibrate(f, m, n=N, sampler=s),
            1 if quick else 3,
        )
        found.append(
            result(GROUP, f"additive: {name}", fast * 1000, "ms", against="plain", theirs=slow * 1000,
                   ratio=1 / ratio, faster=True, note=f"n={N:,}, γ=0.05, m={m}, one core, checks included")
        )  # fmt: skip
    return found


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
    """Fit a logistic regression until it converges."""
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(*data)
    return np.append(found.coef_, found.intercept_)


def logistic_pair(data: Any, position: int, replacement: Any) -> Any:
    """Fit it on both neighbours, the second starting from the first fit."""
    from sklearn.linear_model import LogisticRegression

    x, y = data
    model = LogisticRegression(solver="newton-cholesky", tol=1e-12, warm_start=True).fit(x, y)
    value = np.append(model.coef_, model.intercept_)
    x, y = x.copy(), y.copy()
    x[position], y[position] = replacement
    model.fit(x, y)
    return value, np.append(model.coef_, model.intercept_)


def updated(quick: bool) -> list[Result]:
    """Compare `pair=` with plain evaluation."""
    m, found = 10 if quick else plan(0.1).m, []
    ways = {"ridge, rank one": (ridge, ridge_pair), "logistic, warm start": (logistic, logistic_pair)}
    for name, (function, pair) in ways.items():
        fast, slow, ratio, _ = compare(
            lambda f=function, p=pair: calibrate(f, m, n=N, sampler=people(50), pair=p),
            lambda f=function: calibrate(f, m, n=N, sampler=people(50)),
            1,
        )
        found.append(
            result(GROUP, f"pair=: {name}", fast * 1000, "ms", against="plain", theirs=slow * 1000,
                   ratio=1 / ratio, faster=True,
                   note=f"n={N:,}, 50 columns, m={m}, one core, checks included")
        )  # fmt: skip
    return found


def support_vectors(quick: bool) -> list[Result]:
    """Replace records that are no support vectors by others that are none: the model should not change."""
    from sklearn.svm import SVC

    sampler, rng, wanted = people(5), np.random.default_rng(1), 10 if quick else 200
    found = []
    for tolerance in (1e-3, 1e-5, 1e-8):
        without: list[float] = []
        with_one: list[float] = []
        while len(without) < wanted:
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
        found.append(
            result(GROUP, f"linear SVM, tolerance {tolerance:.0e}: pairs without a support vector that move",
                   sum(gap > 0 for gap in without), f"of {wanted}",
                   note=f"n=300; by up to {max(without):.2g}; with a support vector the median is "
                   f"{np.median(with_one):.2g}")
        )  # fmt: skip
    return found


def run(quick: bool) -> list[Result]:
    """Run all measurements."""
    found = additive(quick)
    if importlib.util.find_spec("sklearn") is None:
        return [*found, missing(GROUP, "pair=", "scikit-learn is not installed")]
    return found + updated(quick) + support_vectors(quick)
