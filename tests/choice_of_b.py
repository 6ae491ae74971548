"""Measure errors of `Blocks` for many b: ``python -m tests.choice_of_b`` prints the table.

docs/blocks.md has some of its rows. An error is the root of the mean square of what is released minus the
truth, over data that is drawn again.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from privatize import Blocks

NUMBERS = (10, 20, 30, 40, 60, 80, 120, 160, 240, 400, 600, 800)
HEADS = ("answer", "n", "ε", "f on all", "best b", "error", "b by default", "error", "GUPT, best b: error")


class Case(NamedTuple):
    """A question: people are drawn as columns of shape (b, people in a block); f is taken of each block."""

    draw: Callable[[Any, tuple[int, int]], Any]
    f: Callable[[Any], Any]
    low: float
    high: float
    truth: float


def _linear(slope: float, noise: float) -> Callable[[Any, tuple[int, int]], Any]:
    def draw(rng: Any, shape: tuple[int, int]) -> Any:
        x = rng.standard_normal(shape)
        return x, slope * x + noise * rng.standard_normal(shape)

    return draw


def _moments(columns: Any) -> tuple[Any, Any, Any]:
    x, y = (column - column.mean(axis=-1, keepdims=True) for column in columns)
    return (x * x).sum(axis=-1), (x * y).sum(axis=-1), (y * y).sum(axis=-1)


def _slope(columns: Any) -> Any:
    xx, xy, _ = _moments(columns)
    return xy / xx


def _correlation(columns: Any) -> Any:
    xx, xy, yy = _moments(columns)
    return xy / np.sqrt(xx * yy)


def _skewed(rng: Any, shape: tuple[int, int]) -> Any:
    return rng.gamma(2.0, 8.0, shape).clip(0, 100)


def _incomes(rng: Any, shape: tuple[int, int]) -> Any:
    return rng.lognormal(3.0, 0.7, shape)


def _group(rng: Any, shape: tuple[int, int]) -> Any:
    return rng.random(shape) < 0.1, rng.random(shape) < 0.3


def _share(columns: Any) -> Any:
    group, hit = columns
    with np.errstate(invalid="ignore"):  # a block without anybody of the group fails
        return (group & hit).sum(axis=-1) / group.sum(axis=-1)


CASES = {
    "slope, ±10": Case(_linear(1.0, 1.3), _slope, -10.0, 10.0, 1.0),
    "correlation, ±1": Case(_linear(0.2, 0.96**0.5), _correlation, -1.0, 1.0, 0.2),
    "mean, 0 to 100": Case(_skewed, lambda x: x.mean(axis=-1), 0.0, 100.0, 15.99957),
    "share in a 10% group, 0 to 1": Case(_group, _share, 0.0, 1.0, 0.3),
    "median, 0 to 200": Case(_incomes, lambda x: np.median(x, axis=-1), 0.0, 200.0, 20.08554),
}


def error(case: Case, n: int, b: int, epsilon: float, count: int, seed: int, aggregate: Any) -> float:
    """Return the error of `Blocks` with b blocks; with b = 1 and ε = 0, that of f on all n people."""
    rng, mechanism = np.random.default_rng(seed), Blocks(case.low, case.high, aggregate=aggregate)
    found = []
    for _ in range(count):
        values = case.f(case.draw(rng, (b, n // b)))
        found.append(mechanism.release_blocks(values[:, None], epsilon).item() if epsilon else values.item())
    return float(np.sqrt(np.mean(np.square(np.array(found) - case.truth))))


def main(count: int) -> None:
    """Print the table."""
    print(*("", *HEADS, ""), sep=" | ")
    print("|---" * len(HEADS) + "|")
    for (name, case), n in ((item, n) for item in CASES.items() for n in (2000, 20_000)):
        raw = error(case, n, 1, 0.0, count, 1, "median")
        for epsilon in (0.1, 1.0, 10.0):
            usual = Blocks(0.0, 1.0).number(n, epsilon)
            numbers = [b for b in {*NUMBERS, usual} if b <= n // 4]
            median, mean = (
                {b: error(case, n, b, epsilon, count, b, aggregate) for b in numbers}
                for aggregate in ("median", "mean")
            )
            best = min(numbers, key=lambda b: median[b])
            a, b, c, d = (f"{x:.2g}" for x in (raw, median[best], median[usual], min(mean.values())))
            print("", name, f"{n:,}", f"{epsilon:g}", a, best, b, usual, c, d, "", sep=" | ", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
