"""What calibration costs over the bare loop `draw; f; f`, per pair, in one run.

    python tests/benchmarks/calibration.py

Goal: 20 microseconds or 10% of the loop, whichever is more.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from privatize import Laplace, estimate_sensitivity, plan, samplers


def bare(function: Callable[[Any], Any], n: int, m: int) -> None:
    """Draw, evaluate, replace one, evaluate: the least that must be done."""
    rng = np.random.default_rng(1)
    for _ in range(m):
        drawn = rng.uniform(0.0, 1.0, n + 1)
        function(drawn[:n])
        drawn[n // 2] = drawn[n]
        function(drawn[:n])


def main() -> None:
    """Print the table."""
    functions: dict[str, Callable[[Any], Any]] = {
        "mean": lambda x: x.mean(),
        "mean and deviation": lambda x: np.array([x.mean(), x.std()]),
        "dict": lambda x: {"mean": x.mean(), "max": x.max()},
    }
    print(f"{'function':20s} {'n':>7} {'bare µs':>9} {'ours µs':>9} {'over µs':>8} {'over':>6}  goal")
    for name, function in functions.items():
        for n in (100, 1000, 10_000, 100_000):
            m = max(100, min(4000, 20_000_000 // n))
            made = plan(m=m, bound="marginal")
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(7):
                start = time.perf_counter()
                bare(function, n, m)
                middle = time.perf_counter()
                estimate_sensitivity(
                    function, n=n, sampler=samplers.uniform(0, 1), norm=Laplace().norm, plan=made, seed=1
                )
                times[0].append(middle - start)
                times[1].append(time.perf_counter() - middle)
            least, ours = (statistics.median(t) / m * 1e6 for t in times)
            over = ours - least
            met = "met" if over <= max(20, 0.1 * least) else "missed"
            print(f"{name:20s} {n:7d} {least:9.1f} {ours:9.1f} {over:8.1f} {over / least:6.0%}  {met}")


if __name__ == "__main__":
    main()
