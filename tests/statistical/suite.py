"""Whether each bound keeps its claim, for functions of many kinds on data of many kinds.

For each function and law of data (a cell), the library's own pair evaluation draws a reservoir of
gaps, cut into disjoint blocks of m: each block is one calibration, independent of the others, and its
k-th smallest gap is the estimate. Fresh gaps come from a simple loop below that shares no code with the
library (the definition of a random neighbour, written once more). It has another seed but, for
randomized functions, the same seed of their generators. Fresh gaps show which share of all pairs lies
strictly beyond an estimate. Zero and infinite estimates, which the library refuses, count as if they were
used: nothing is left out.

The tests are exact for every law, atoms included, and fail by chance with probability at most
FALSE_ALARM each:

*Confidence* (tolerance, dkw). A calibration fails if the share beyond its estimate is more than
q = gamma - rho: if the estimate is below t = inf{g : P(G <= g) >= 1 - q}. A fresh gap is at most t with
probability 1 - q or more, so the r-th smallest of N fresh gaps is above t with probability at most
P(Bin(N, 1 - q) < r); r is the largest for which that is at most FALSE_ALARM / 2. Outside that event,
every estimate below the r-th fresh gap is a failure, so their number is at most the number of failures,
which is at most Bin(R, rho) distributed if the claim is true; the other FALSE_ALARM / 2 is spent there.

*Average* (marginal). Each calibration has s fresh gaps of its own. The share beyond the estimate is
stochastically at most Beta(m - k + 1, k), whose mean is at most gamma, so the number of the s that lie
beyond is at most beta-binomial, and the sum over independent calibrations at most the sum of as many
beta-binomials, whose distribution is computed by Fourier transform.

``python tests/statistical/suite.py`` runs everything, writes docs/coverage.md and docs/coverage.csv, and
draws docs/coverage.svg: about ten minutes on a core of its own. ``--quick`` runs a part in less than a minute
and writes nothing. ``--pairs`` sets the size: ten times the default is an hour or two.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
import math
import random
import sys
import textwrap
import time
import zlib
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, stats

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":  # as a script, Python looks for modules in this directory only
    sys.path[0] = str(ROOT)

from privatize import Laplace, estimate_sensitivity, plan, privatize, samplers  # noqa: E402
from privatize.planning.plan import Plan  # noqa: E402
from tests.dot_panels import Panel  # noqa: E402
from tests.dot_panels import draw as draw_panels  # noqa: E402
from tests.statistical.thresholds import FALSE_ALARM, fewest_successes, most_successes  # noqa: E402

SEED = 2017
GAMMA = 0.2
PLANS = {
    "tolerance": plan(GAMMA, "balanced", bound="tolerance"),
    "tolerance, least m": plan(GAMMA, "least", bound="tolerance"),
    "dkw": plan(GAMMA, "least", bound="dkw"),
    "marginal": plan(GAMMA, "balanced", bound="marginal"),
    "marginal, least m": plan(GAMMA, "least", bound="marginal"),
}
FULL = 100 * 79  # pairs of a reservoir: 100 calibrations with the default plan
QUICK = 10 * 79


# --- data ------------------------------------------------------------------------------------


def zero_inflated(rng: np.random.Generator, size: Any) -> np.ndarray:
    """Return 0 for seven records out of ten, and exponential values for the others."""
    return np.where(rng.random(size) < 0.7, 0.0, rng.standard_exponential(size))


LAWS: dict[str, Callable[[np.random.Generator, Any], np.ndarray]] = {
    "uniform": lambda rng, size: rng.random(size),
    "normal": lambda rng, size: rng.standard_normal(size),
    "exponential": lambda rng, size: rng.standard_exponential(size),
    "Student t, 2 df": lambda rng, size: rng.standard_t(2, size),
    "zero-inflated": zero_inflated,
    "whole numbers": lambda rng, size: rng.poisson(2.0, size).astype(float),
}


def draw(n: int, rng: np.random.Generator, *, law: str, kind: str) -> Any:
    """Return n records: numbers, rows of three numbers, or two aligned columns."""
    value = LAWS[law]
    if kind == "values":
        return value(rng, n)
    if kind == "columns":
        x = value(rng, n)
        return x, x / 2 + value(rng, n)
    table = value(rng, (n, 3))
    table[:, 1] += table[:, 0]
    return table


# --- functions -------------------------------------------------------------------------------


class Row(NamedTuple):
    """A function of the suite, and what it is run on."""

    function: Callable[..., Any]
    kind: str = "values"
    n: int = 40
    norm: str = "l1"
    cost: int = 1  # reservoirs are this many times smaller
    uses_global_rng: bool = False  # random or numpy.random


ROWS: dict[str, Row] = {}


def row(name: str, **facts: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the suite."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        ROWS[name] = Row(function, **facts)
        return function

    return add


@row("mean", n=100)
def mean(x):
    return x.mean()


@row("median", n=41)
def median(x):
    return np.sort(x)[len(x) // 2]


@row("quantile 0.9", cost=2)
def quantile(x):
    return float(np.quantile(x, 0.9))


@row("trimmed mean")
def trimmed_mean(x):
    return np.sort(x)[4:-4].mean()


@row("winsorized mean")
def winsorized_mean(x):
    ordered = np.sort(x)
    return ordered.clip(ordered[4], ordered[-5]).mean()


@row("Hodges-Lehmann", n=20, cost=2)
def hodges_lehmann(x):
    return np.median(np.add.outer(x, x)) / 2


@row("max")
def largest(x):
    return x.max()


@row("min")
def smallest(x):
    return x.min()


@row("range")
def spread(x):
    return x.max() - x.min()


@row("median absolute deviation", n=41)
def deviation(x):
    middle = len(x) // 2
    return np.sort(np.abs(x - np.sort(x)[middle]))[middle]


@row("count above a threshold (int)")
def count_above(x):
    return int(np.count_nonzero(x > 0.5))


@row("histogram (array of int)")
def histogram(x):
    return np.bincount(np.clip(x * 2, -1, 6).astype(np.int64) + 1, minlength=8)


@row("distinct values (int)", n=30)
def distinct(x):
    return len(set(x.tolist()))


@row("mode of rounded values (int)")
def mode(x):
    return int(np.bincount(np.clip(np.rint(x), -5, 10).astype(np.int64) + 5).argmax()) - 5


@row("variance")
def variance(x):
    return x.var(ddof=1)


@row("standard deviation")
def standard_deviation(x):
    return x.std()


@row("log-sum-exp")
def log_sum_exp(x):
    top = x.max()
    return top + math.log(np.exp(x - top).sum())


@row("geometric mean of 1 + |x|")
def geometric_mean(x):
    return math.exp(np.log1p(np.abs(x)).mean())


@row("Gini coefficient")
def gini(x):
    ordered = np.sort(np.abs(x))
    n = len(x)
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * ordered.sum() + 1e-9))


@row("entropy of a histogram")
def entropy(x):
    shares = histogram(x) / len(x)
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())


@row("covariance matrix", kind="table", norm="l2")
def covariance(table):
    centered = table - table.mean(axis=0)
    return centered.T @ centered / len(table)


@row("variance of the first principal component", kind="table")
def first_component(table):
    return np.linalg.eigvalsh(covariance(table))[-1]


@row("ridge regression", kind="table", norm="l2")
def ridge(table):
    x, y = table[:, :2], table[:, 2]
    return np.linalg.solve(x.T @ x + np.eye(2), x.T @ y)


@row("correlation of two columns", kind="columns")
def correlation(data):
    x, y = (column - column.mean() for column in data)
    return float(x @ y / math.sqrt((x @ x) * (y @ y) + 1e-12))


@row("slope of two columns", kind="columns", n=30)
def slope(data):
    x, y = data
    x = x - x.mean()
    return float(x @ y / (x @ x + 1.0))


@row("ratio of two columns' sums", kind="columns")
def ratio(data):
    x, y = data
    return float(np.abs(x).sum() / (1 + np.abs(y).sum()))


@row("logistic regression, 5 gradient steps", kind="columns", norm="l2", cost=2)
def logistic(data):
    x, y = data
    labels = y > 0.5
    a = b = 0.0
    for _ in range(5):
        residual = 1 / (1 + np.exp(-np.clip(a + b * x, -30, 30))) - labels
        a, b = a - residual.mean(), b - (residual * np.clip(x, -3, 3)).mean()
    return np.array([a, b])


@row("one epoch of SGD, in the order of records", kind="columns", n=20)
def sgd(data):
    a = b = 0.0
    for i, (x, y) in enumerate(zip(data[0].tolist(), data[1].tolist(), strict=True)):
        error = max(-3.0, min(3.0, a + b * x - y))
        rate = 0.5 / (1 + i / 4)
        a, b = a - rate * error, b - rate * error * max(-3.0, min(3.0, x))
    return a, b


@row("exponential moving average (order)", n=20)
def moving_average(x):
    level = 0.0
    for value in x.tolist():
        level += 0.2 * (value - level)
    return level


@row("mean with weights 1, 1/2, 1/3, ... (order)", n=30)
def first_heavy(x):
    weights = 1 / np.arange(1, len(x) + 1)
    return float(x @ weights / weights.sum())


@row("lag-1 and lag-2 products (list)")
def lags(x):
    return [float(x[1:] @ x[:-1]) / len(x), float(x[2:] @ x[:-2]) / len(x)]


@row("density estimate on a grid", norm="sup")
def density(x):
    grid = np.linspace(-2, 4, 13)
    return np.exp(-2 * np.square(grid[:, None] - x)).mean(axis=1)


@row("3 nearest neighbours' prediction", kind="columns", norm="sup")
def neighbours(data):
    x, y = data
    nearest = np.argsort(np.abs(x - np.array([[-0.5], [0.3], [1.1]])), axis=1, kind="stable")[:, :3]
    return y[nearest].mean(axis=1)


@row("k-means, numpy.random", kind="table", n=30, norm="l2", cost=4, uses_global_rng=True)
def k_means(table):
    centers = table[np.random.choice(len(table), 3, replace=False)]
    for _ in range(4):
        near = np.square(table[:, None] - centers).sum(axis=2).argmin(axis=1)
        one_hot = (near[:, None] == np.arange(3)).astype(float)
        sizes = one_hot.sum(axis=0)[:, None]
        centers = np.where(sizes > 0, one_hot.T @ table / np.maximum(sizes, 1), centers)
    return centers


@row("bootstrap mean and deviation, numpy.random", cost=2, uses_global_rng=True)
def bootstrap(x):
    means = x[np.random.randint(len(x), size=(20, len(x)))].mean(axis=1)
    return {"mean": float(means.mean()), "deviation": float(means.std())}


@row("mean of a subsample, random", cost=2, uses_global_rng=True)
def subsample(x):
    return math.fsum(random.sample(x.tolist(), 15)) / 15


@row("shuffled gradient descent, coins=", n=30)
def shuffled(x, rng):
    weight = 0.0
    for i, value in enumerate(x[rng.permutation(len(x))].tolist()):
        weight = 0.97 * (weight - (weight - value) / (i + 2))
    return weight


@row("summary (dict)")
def summary(x):
    return {"mean": float(x.mean()), "above": int(np.count_nonzero(x > 1)), "top": np.sort(x)[-2:]}


class Fit(NamedTuple):
    location: float
    scale: float


@row("location and scale (named tuple)", norm="l2")
def fit(x):
    return Fit(float(x.mean()), float(np.abs(x - x.mean()).mean()))


@dataclasses.dataclass
class Quartiles:
    low: float
    middle: float
    high: float


@row("quartiles (dataclass)", n=39, norm="sup")
def quartiles(x):
    return Quartiles(*np.sort(x)[9::10].tolist())


@row("mean of outliers, raises without any", n=30)
def outliers(x):
    chosen = x[x > x.mean() + 1.5 * x.std()]
    if not len(chosen):
        raise ValueError("there is no outlier")
    return chosen.mean()


@row("decision tree's predictions (scikit-learn)", kind="columns", norm="sup", cost=10)
def tree(data):
    from sklearn.tree import DecisionTreeRegressor

    x, y = data
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(x[:, None], y)
    return model.predict([[-0.5], [0.3], [1.1], [2.0]])


@row("support vector classifier (scikit-learn)", kind="table", norm="l2", cost=10)
def support_vectors(table):
    from sklearn.svm import SVC

    labels = table[:, 2] > 0.7
    if labels.all() or not labels.any():
        return np.zeros(3)
    model = SVC(kernel="linear", C=0.5).fit(np.clip(table[:, :2], -5, 5), labels)
    return np.append(model.coef_, model.intercept_)


if find_spec("sklearn") is None:
    ROWS = {name: entry for name, entry in ROWS.items() if "scikit-learn" not in name}


# --- gaps ------------------------------------------------------------------------------------


def seed_of(*case: object) -> int:
    """Return a fixed seed for a case, the same in every process."""
    return zlib.crc32(repr(case).encode())


def calibration_gaps(name: str, law: str, count: int, *, seed: int, workers: Any) -> tuple[np.ndarray, int]:
    """Return gaps of the library's own evaluation, and the public seed of the function's generators."""
    entry = ROWS[name]
    sampler = samplers.from_function(functools.partial(draw, law=law, kind=entry.kind))
    chosen = seed_of(seed, name, law, "calibrations")
    if entry.function is shuffled:  # only the decorator has coins=
        private = privatize(
            mechanism=Laplace(), epsilon=1.0, gamma=0.5, samples=count, bound="marginal", coins="rng",
            sampler=sampler, seed=chosen, min_sensitivity=1e-12, workers=workers, store=None, progress=False,
        )(entry.function)  # fmt: skip
        found = private.estimate(entry.n)
        private.forget()
    else:
        # At gamma=0.5 half of the pairs may fail, which count as infinite gaps.
        found = estimate_sensitivity(
            entry.function,
            n=entry.n,
            sampler=sampler,
            norm=entry.norm,
            plan=plan(0.5, count, bound="marginal"),
            seed=chosen,
            min_sensitivity=1e-12,
            workers=workers,
            progress=False,
        )
    return found.gaps, found.coin_seed


def flat(value: Any) -> np.ndarray:
    """Return all numbers of an output."""
    if dataclasses.is_dataclass(value):
        value = dataclasses.astuple(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return np.concatenate([flat(item) for item in value])
    return np.asarray(value, dtype=np.float64).ravel()


NORMS = {
    "l1": lambda gap: np.abs(gap).sum(),
    "l2": lambda gap: np.sqrt(np.square(gap).sum()),
    "sup": lambda gap: np.abs(gap).max(),
}


def fresh_gaps(
    name: str, law: str, count: int, coin_seed: int, *, seed: int, last: bool = False
) -> np.ndarray:
    """Return gaps of random neighbours by the definition, without the library.

    With `last`, the replaced record is always the last one, which is right only for functions that
    do not depend on order.
    """
    entry = ROWS[name]
    rng = np.random.default_rng(seed_of(seed, name, law, "fresh"))
    norm = NORMS[entry.norm]

    def value(data: Any) -> np.ndarray:
        if entry.uses_global_rng:
            random.seed(coin_seed)
            np.random.seed(coin_seed)
        if entry.function is shuffled:
            return flat(shuffled(data, np.random.default_rng(coin_seed)))
        return flat(entry.function(data))

    def gap() -> float:
        drawn = draw(entry.n + 1, rng, law=law, kind=entry.kind)
        parts = drawn if isinstance(drawn, tuple) else (drawn,)
        position = entry.n - 1 if last else rng.integers(entry.n)
        both = [tuple(part[: entry.n].copy() for part in parts) for _ in range(2)]
        for part, source in zip(both[1], parts, strict=True):
            part[position] = source[entry.n]
        try:
            one, other = (value(data if isinstance(drawn, tuple) else data[0]) for data in both)
        except ValueError:
            return math.inf
        return float(norm(one - other))

    before = random.getstate(), np.random.get_state()
    try:
        return np.array([gap() for _ in range(count)])
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])


# --- tests -----------------------------------------------------------------------------------


class Cell(NamedTuple):
    """The gaps of one function on one law."""

    name: str
    law: str
    gaps: np.ndarray
    fresh: np.ndarray


class Outcome(NamedTuple):
    """What the calibrations of some cells showed about one plan."""

    calibrations: int
    realized: float  # the share of calibrations that fail, or the mean share of pairs beyond
    refused: float  # the share of calibrations whose estimate is zero or infinite
    seen: int  # the statistic of the test
    most: int  # what it exceeds by chance with probability FALSE_ALARM

    @property
    def holds(self) -> bool:
        """Tell whether the claim is compatible with what was seen."""
        return self.seen <= self.most


def measure(name: str, law: str, pairs: int, *, seed: int = SEED, workers: Any = "inline") -> Cell:
    """Draw the gaps of one cell."""
    count = math.ceil(pairs / ROWS[name].cost / 79) * 79
    gaps, coin_seed = calibration_gaps(name, law, count, seed=seed, workers=workers)
    return Cell(name, law, gaps, fresh_gaps(name, law, count, coin_seed, seed=seed))


def estimates(gaps: np.ndarray, p: Plan) -> np.ndarray:
    """Return the estimate of each calibration: the k-th smallest of each block of m."""
    blocks = gaps[: len(gaps) // p.m * p.m].reshape(-1, p.m)
    return np.partition(blocks, p.k - 1, axis=1)[:, p.k - 1]


def beyond(found: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Return the share of fresh gaps strictly beyond each estimate."""
    return 1 - np.searchsorted(np.sort(fresh), found, side="right") / len(fresh)


def judge(
    cells: Iterable[Cell], p: Plan, false_alarm: float = FALSE_ALARM, against: Plan | None = None
) -> Outcome:
    """Test a plan's claim on all calibrations of some cells together.

    The claim may also be another plan's, to see what a wrong k does.
    """
    cells = list(cells)
    claimed = p if against is None else against
    found = [estimates(cell.gaps, p) for cell in cells]
    shares = np.concatenate([beyond(e, cell.fresh) for e, cell in zip(found, cells, strict=True)])
    together = np.concatenate(found)
    refused = float(np.mean((together == 0) | np.isinf(together)))
    total = len(together)
    if p.rho is None:
        seen, groups = 0, []
        for e, cell in zip(found, cells, strict=True):
            rows = min(len(e), len(cell.fresh))
            size = len(cell.fresh) // rows
            own = cell.fresh[: rows * size].reshape(rows, size)
            seen += int(np.count_nonzero(own > e[:rows, None]))
            groups.append((rows, size))
        most = most_beyond(groups, claimed.m - claimed.k + 1, claimed.k, false_alarm)
        return Outcome(total, float(shares.mean()), refused, seen, most)
    q = p.gamma - p.rho
    seen = 0
    for e, cell in zip(found, cells, strict=True):
        r = fewest_successes(len(cell.fresh), 1 - q, false_alarm / 2 / len(cells))
        limit = np.sort(cell.fresh)[r - 1] if r else 0.0
        seen += int(np.count_nonzero(e < limit))
    most = most_successes(total, p.rho, false_alarm / 2)
    return Outcome(total, float(np.mean(shares > q)), refused, seen, most)


def most_beyond(groups: list[tuple[int, int]], a: int, b: int, false_alarm: float) -> int:
    """Return what a sum of beta-binomials exceeds with probability at most false_alarm.

    For each (rows, size) there are `rows` of them, of `size` trials each. Rounding errors of the
    Fourier transform are below 1e-8 here, which are added to the tail.
    """
    length = fft.next_fast_len(sum(rows * size for rows, size in groups) + 1, real=True)
    spectrum = 1.0
    for size in {size for _, size in groups}:
        rows = sum(r for r, s in groups if s == size)
        spectrum = spectrum * fft.rfft(stats.betabinom.pmf(np.arange(size + 1), size, a, b), length) ** rows
    law = fft.irfft(spectrum, length)
    tail = np.cumsum(law[::-1])[::-1] + 1e-8  # at i: the sum is i or more
    return int(np.argmax(tail <= false_alarm)) - 1


# --- the run ---------------------------------------------------------------------------------


def quick_cells() -> list[tuple[str, str]]:
    """Return every function once, with the laws in turn."""
    laws = list(LAWS)
    return [(name, laws[i % len(laws)]) for i, name in enumerate(ROWS)]


def all_cells() -> list[tuple[str, str]]:
    """Return every function with every law."""
    return [(name, law) for name in ROWS for law in LAWS]


def percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def claim(p: Plan) -> float:
    """Return what a plan's realized figure must not exceed."""
    return p.gamma if p.rho is None else p.rho


SHOWN = ["tolerance", "tolerance, least m", "dkw", "marginal"]  # beside every function and law


class Line(NamedTuple):
    """What was realized for a function, or for a law: for all its cells together, and for the worst."""

    name: str
    n: int | None  # records, of a function
    calibrations: int
    realized: list[float]  # of the plans in SHOWN
    worst: list[float]
    refused: float


def lines_of(cells: list[Cell]) -> list[Line]:
    """Return a line for every function, and then for every law."""
    names, laws = dict.fromkeys(cell.name for cell in cells), dict.fromkeys(cell.law for cell in cells)
    found = [_line(name, ROWS[name].n, [cell for cell in cells if cell.name == name]) for name in names]
    return found + [_line(law, None, [cell for cell in cells if cell.law == law]) for law in laws]


def _line(name: str, n: int | None, cells: list[Cell]) -> Line:
    outcomes = [judge(cells, PLANS[b]) for b in SHOWN]
    worst = [] if n is None else [max(judge([cell], PLANS[b]).realized for cell in cells) for b in SHOWN]
    first = outcomes[0]
    return Line(name, n, first.calibrations, [o.realized for o in outcomes], worst, first.refused)


def figures(lines: list[Line]) -> list[list[str]]:
    """Return all lines as text, with a row of heads."""
    heads = [f"{b} (claims {percent(claim(PLANS[b]))})" for b in SHOWN]
    rows = [["function or law", "n", "calibrations", *heads, *(f"worst law: {b}" for b in SHOWN), "refused"]]
    for line in lines:
        worst = [percent(share) for share in line.worst] or [""] * len(SHOWN)
        shares = [*map(percent, line.realized), *worst, percent(line.refused)]
        rows.append([line.name, str(line.n or ""), str(line.calibrations), *shares])
    return rows


def picture(lines: list[Line]) -> str:
    """Return a drawing of what was realized for every function, beside what is claimed."""
    functions = [line for line in lines if line.n is not None]
    panels = []
    for b, most in (("tolerance, least m", 0.06), ("marginal", 0.25)):
        at = SHOWN.index(b)
        dots = [[line.realized[at], line.worst[at]] for line in functions]
        panels.append(Panel(b, dots, claim(PLANS[b]), most, full=1))
    return draw_panels([line.name for line in functions], panels, left=270, width=200, row=15)


PAGE = """
# Measured coverage

This page shows whether the [bounds](bounds.md) keep their claims in use. {names} functions were calibrated
repeatedly on data from {laws} distributions (laws), at γ = {gamma}, the share of pairs on which the promise
may fail. Each claim was tested for each function and law.

**Result: {flagged} of {tests} tests were flagged.**

{table}

m is the number of pairs in a calibration, and the estimate Δ̂ is the k-th smallest of their gaps. For
`tolerance` and `dkw` a calibration *fails* if more than a share γ − ρ of all pairs lies beyond Δ̂. The
claim is that at most a share ρ of calibrations fail. For `marginal` the claim is that the mean share beyond
Δ̂ is at most γ.

If gaps are continuous, the claims of `tolerance` and `marginal` are tight, so the figures should be close
to them. If many gaps are equal, estimates cover more. `dkw` has much to spare.

## By function

A full dot shows all laws together. A ring shows the worst law by itself, the largest of {laws} figures that
vary by chance. The line is the claim. Where a claim is tight, about half of the full dots are above it by
chance, in orange.

![What was realized for each function, beside what is claimed](coverage.svg)

[All figures](coverage.csv) are listed by function and by law.

## How it is measured

For each function and law the library evaluated {pairs:,} pairs (fewer for slow functions). They were cut
into disjoint blocks of m pairs, and each block is one calibration. As many fresh pairs, drawn and evaluated
by a simple loop that shares no code with the library, show which share of pairs lies beyond Δ̂. A
randomized function has the same public seed in all calibrations on one law. Estimates of zero or infinity,
which the library refuses, count here as if it used them; *refused* says how many there were.

Realized figures vary by chance, and the share beyond Δ̂ is itself estimated. The tests allow for both
exactly: each flags a true claim with probability at most {alarm:g}, whatever the law. The docstring of
`tests/statistical/suite.py` has the proof.

`python tests/statistical/suite.py --pairs {pairs} --seed {seed}` writes this page. The same command gives
the same figures, up to the rounding of another machine's libraries.
"""


def page(cells: list[Cell], pairs: int, seed: int) -> str:
    """Return docs/coverage.md."""
    flagged = [
        f"- {cell.name}, {cell.law}: {b}"
        for cell in cells
        for b in PLANS
        if not judge([cell], PLANS[b]).holds
    ]
    heads = ["plan", "m", "k", "claimed", "realized", "calibrations", "refused", "verdict"]
    rows = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for b, q in PLANS.items():
        o = judge(cells, q)
        shown = [b, q.m, q.k, f"≤ {percent(claim(q))}", percent(o.realized), f"{o.calibrations:,}"]
        shown += [percent(o.refused), "holds" if o.holds else "**flagged**"]
        rows.append(f"| {' | '.join(map(str, shown))} |")
    return filled(
        table="\n".join([*flagged, *([""] if flagged else []), *rows]),
        names=len({cell.name for cell in cells}),
        laws=len({cell.law for cell in cells}),
        flagged=len(flagged),
        tests=len(cells) * len(PLANS),
        pairs=pairs,
        seed=seed,
    )


def filled(**facts: Any) -> str:
    """Return the page with its figures, in lines of at most 120 characters."""
    text = PAGE.strip().format(gamma=GAMMA, alarm=FALSE_ALARM, **facts)
    parts = (
        part if part[0] in "|-!#" else "\n".join(textwrap.wrap(part, 120, break_on_hyphens=False))
        for part in text.split("\n\n")
    )
    return "\n\n".join(parts) + "\n"


def write(cells: list[Cell], pairs: int, seed: int, page_at: Path = ROOT / "docs" / "coverage.md") -> None:
    """Write the page, and the figures and the picture beside it."""
    page_at.write_text(page(cells, pairs, seed), encoding="utf-8")
    lines = lines_of(cells)
    with page_at.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(figures(lines))
    page_at.with_suffix(".svg").write_text(picture(lines), encoding="utf-8")


def main() -> None:
    """Run the suite, and write the page if it was the full one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a part, in less than a minute; writes nothing")
    parser.add_argument("--pairs", type=int, default=FULL, help=f"pairs of a reservoir ({FULL})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"seed of the run ({SEED})")
    parser.add_argument("--workers", default="inline", help="processes, or inline (the default)")
    options = parser.parse_args()
    pairs = QUICK if options.quick else options.pairs
    workers = int(options.workers) if options.workers.isdigit() else options.workers
    chosen = quick_cells() if options.quick else all_cells()
    cells, began = [], time.monotonic()
    for i, (name, law) in enumerate(chosen, 1):
        cell = measure(name, law, pairs, seed=options.seed, workers=workers)
        cells.append(cell)
        found = {b: judge([cell], p) for b, p in PLANS.items()}
        bad = [f"{b}: {o}" for b, o in found.items() if not o.holds]
        figures = "  ".join(f"{o.realized:.4f}" for o in found.values())
        print(f"{i}/{len(chosen)} {time.monotonic() - began:6.1f} s  {figures}  {name}, {law}  {bad or ''}")
        sys.stdout.flush()
    for b, p in PLANS.items():
        print(f"{b} claims {claim(p):.4f}: {judge(cells, p)}")
    if not options.quick:
        write(cells, pairs, options.seed)


if __name__ == "__main__":
    main()
