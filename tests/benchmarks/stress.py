"""How often a stress test warns, and what it costs: `python -m tests.benchmarks.stress [--quick]`.

Some of the figures are on docs/choosing.md. The first table is arithmetic on simulated gaps; the
second has private functions with the P that a newcomer would write; the third is time.
"""

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import configure, estimate_sensitivity, plan, privatize, samplers
from privatize.calibration.neighbours import TURN
from privatize.calibration.stress import Tried, worst_of

from .measuring import Result, result, settings
from .page import line

PLAN = plan(gamma=0.05)
CHANGES, PAIRS = 6, PLAN.m // 8
FACTORS = (1.0, 1.5, 2.0, 3.0, 5.0)
Rng = np.random.Generator
GAPS: dict[str, Callable[[Rng, int], Any]] = {
    "triangular (a mean of uniform records)": lambda rng, size: abs(rng.random(size) - rng.random(size)),
    "normal": lambda rng, size: abs(rng.normal(size=size)),
    "lognormal": lambda rng, size: rng.lognormal(size=size),
    "lognormal, σ = 2": lambda rng, size: rng.lognormal(sigma=2, size=size),
    "Pareto, α = 1": lambda rng, size: rng.pareto(1, size=size) + 1,
    "0 to 4, all equally likely": lambda rng, size: rng.integers(0, 5, size=size) * 1.0,
    "0 or 1, as a share that few records move": lambda rng, size: (rng.random(size) < 0.05) * 1.0,
    "infinite for 1%, else normal": lambda rng, size: np.where(
        rng.random(size) < 0.01, np.inf, abs(rng.normal(size=size))
    ),
}


def alarms(gaps: Callable[[Rng, int], Any], factor: float, rng: Rng) -> bool:
    """Simulate one stress test: six changes of P, and the first of them multiplies gaps by a factor."""
    value = float(np.sort(gaps(rng, PLAN.m))[PLAN.k - 1])
    if not 0 < value < np.inf:
        return False
    first = np.array([gaps(rng, TURN) * (factor if at == 0 else 1) for at in range(CHANGES)])
    worst = worst_of(first, value)
    fresh = gaps(rng, PAIRS - first.size) * (factor if worst == 0 else 1)
    tried = Tried(("",) * CHANGES, tuple(map(tuple, first)), worst, tuple(fresh))
    return tried.judged(PLAN, value).fragile is not None


def simulated(times: int) -> None:
    """Print how often simulated gaps give an alarm."""
    print("| gaps |", " | ".join(f"× {factor:g}" for factor in FACTORS), "|")
    for name, gaps in GAPS.items():
        rng = np.random.default_rng(1)
        shares = [np.mean([alarms(gaps, factor, rng) for _ in range(times)]) for factor in FACTORS]
        print(f"| {name} |", " | ".join(f"{share:.1%}" for share in shares), "|", flush=True)


REGIONS = ["north", "east", "south", "west"]
PEOPLE = samplers.table(
    carat=samplers.uniform(0.2, 5),
    price=samplers.uniform(0, 20_000),
    region=samplers.categorical(REGIONS),
    sold=samplers.boolean(0.5),
    frame="dict",
)
Columns = dict[str, Any]


def by_region(columns: Columns, name: str) -> dict[str, float]:
    """Return means by region."""
    return {region: columns[name][columns["region"] == region].mean() for region in REGIONS}


QUESTIONS: dict[str, Callable[[Columns], Any]] = {
    "mean": lambda d: d["price"].mean(),
    "sum": lambda d: d["price"].sum(),
    "two means": lambda d: [d["carat"].mean() / 5, d["price"].mean() / 20_000],
    "count": lambda d: int((d["price"] > 10_000).sum()),
    "counts by region": lambda d: [int((d["region"] == region).sum()) for region in REGIONS],
    "standard deviation": lambda d: d["price"].std(),
    "median": lambda d: np.median(d["price"]),
    "correlation": lambda d: np.corrcoef(d["carat"], d["price"])[0, 1],
    "slope": lambda d: np.polyfit(d["carat"], d["price"], 1)[0],
    "ratio of sums": lambda d: d["price"].sum() / d["carat"].sum(),
    "means by region": lambda d: by_region(d, "price"),
    "shares by region": lambda d: by_region(d, "sold"),
    "mean of one region": lambda d: d["price"][d["region"] == "north"].mean(),
}
NUMBERS = {
    "mean, P = uniform(0, 100)": samplers.uniform(0, 100),
    "mean, P = integers(18, 90)": samplers.integers(18, 90),
    "mean, P = normal(50, 10)": samplers.normal(50, 10),
}


def regression(data: Any) -> Any:
    """Return the coefficients of the last column by the others."""
    return np.linalg.lstsq(data[:, :-1], data[:, -1], rcond=None)[0]


def asked(function: Any, sampler: Any, n: int, seeds: int) -> tuple[float, str]:
    """Return how often a function's estimate is found fragile, and the change that is named most often."""
    found = []
    for seed in range(seeds):
        made = estimate_sensitivity(
            function, n=n, sampler=sampler, norm="l1", plan=PLAN, seed=seed, workers="inline", stress=True
        )
        assert made.stress is not None
        found.append(made.stress.fragile)
    words = [row.words for row in found if row is not None]
    return len(words) / seeds, max(words, key=words.count, default="")


def questions(seeds: int) -> None:
    """Print how often the estimates of private functions are found fragile."""
    print("\n| function | warns | most often because |")
    cases = [(name, function, PEOPLE) for name, function in QUESTIONS.items()]
    cases += [(name, np.mean, sampler) for name, sampler in NUMBERS.items()]
    for name, function, sampler in cases:
        share, words = asked(function, sampler, 500, seeds)
        print(f"| {name} | {share:.0%} | {words} |", flush=True)


def run(quick: bool) -> list[Result]:
    """Measure what a stress test adds to a first estimate, in processor time of this process."""
    cases: dict[str, tuple[Any, Any, int]] = {
        "mean of 1,000 numbers": (np.mean, samplers.uniform(0, 100), 1000),
        "median of 10,000 numbers": (np.median, samplers.uniform(0, 100), 10_000),
        "slope, columns of 1,000": (QUESTIONS["slope"], PEOPLE, 1000),
        "means by region, columns of 1,000": (QUESTIONS["means by region"], PEOPLE, 1000),
        "regression on 10 columns, 2,000 rows": (regression, samplers.uniform(0, 1, size=10), 2000),
    }
    found = []
    for name, (function, sampler, n) in cases.items():
        took: dict[bool, list[float]] = {True: [], False: []}
        for seed in range(5 if quick else 15):
            for on in took:
                with settings(stress=on, store=None, workers="inline"):
                    made = privatize(epsilon=1, gamma=0.05, sampler=sampler, seed=seed, version=f"{on}")
                    private = made(function)
                    start = time.process_time()
                    private.estimate(n)
                    took[on].append(time.process_time() - start)
        both, without = min(took[True]) * 1e3, min(took[False]) * 1e3
        found.append(
            result("calibration", f"the stress test, {name}", both, "ms", against="without it",
                   theirs=without, most=1.2, note="γ=0.05, m=557; processor time, the best of all rounds")
        )  # fmt: skip
    return found


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    warnings.simplefilter("ignore")
    configure(store=None, workers="inline")
    simulated(200 if quick else 3_000)
    questions(3 if quick else 40)
    print()
    for each in run(quick):
        print(line(each))
