"""What workers are worth: speed-up of two processes, time to the first answer, memory.

    python tests/benchmarks/execution.py

Goals: at least 1.8 times as fast in two processes as inline, for functions of 1 ms and of 50 ms (the
median of interleaved runs); under 50 ms from a cold start to the first answer of a cheap function, the
import not counted; memory flat in m apart from 8 bytes a gap.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from privatize import estimate_sensitivity, plan, samplers

ROOT = Path(__file__).parents[2]


def busy(seconds: float) -> Callable[[Any], float]:
    """Return a mean that takes some work: a fixed number of turns, about so many seconds each."""
    start, turns = time.perf_counter(), 0
    while time.perf_counter() - start < 0.2:
        np.sort(np.arange(1000.0))
        turns += 1
    count = max(1, int(turns * seconds / 0.2))

    def mean(x: Any) -> float:
        for _ in range(count):
            np.sort(np.arange(1000.0))
        return float(x.mean())

    return mean


def speed_up(seconds: float, m: int, rounds: int) -> None:
    """Print how much faster two processes are than one, kept warm."""
    function = busy(seconds)
    made = plan(m=m, bound="marginal")
    times: dict[Any, list[float]] = {"inline": [], 2: []}
    for _ in range(rounds + 1):  # the first one starts the processes, and is not counted
        for workers, taken in times.items():
            start = time.perf_counter()
            estimate_sensitivity(
                function, n=100, sampler=samplers.uniform(0, 1), norm="l1", plan=made, seed=1, workers=workers
            )
            taken.append(time.perf_counter() - start)
    ratios = [one / two for one, two in zip(times["inline"][1:], times[2][1:], strict=True)]
    ratio = statistics.median(ratios)
    print(
        f"{seconds * 1000:4.0f} ms, m={m:5d}: two processes {ratio:.2f} times as fast as inline "
        f"(of {', '.join(f'{r:.2f}' for r in ratios)})  {'met' if ratio >= 1.8 else 'missed'}"
    )


FIRST = """
import time, numpy as np
from privatize import privatize, samplers
ages = np.random.default_rng(0).uniform(0, 100, 1000)
start = time.perf_counter()
mean = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100), store=None)(np.mean)
mean(ages)
first = time.perf_counter() - start
start = time.perf_counter()
for _ in range(557):
    x = np.random.default_rng(1).uniform(0, 100, 1001)
    x[:1000].mean(), x[1:].mean()
print(first, time.perf_counter() - start)
"""

MEMORY = """
import resource, sys, time
import numpy as np
from privatize import privatize, samplers
m = int(sys.argv[1])
mean = privatize(
    epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1), samples=m, seed=1, store=None, workers=2
)(np.mean)
start = time.perf_counter()
mean.estimate(10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.perf_counter() - start)
"""


def run(code: str, *args: str) -> list[float]:
    """Return the numbers that a script prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return [float(number) for number in json.loads("[" + ",".join(done.stdout.split()) + "]")]


def main() -> None:
    """Print all of it."""
    times = [run(FIRST) for _ in range(7)]
    first, bare = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
    verdict = "met" if first < 50 else "missed"
    print(f"first answer, mean of 1,000 numbers: {first:.1f} ms, the bare loop {bare:.1f} ms  {verdict}")
    speed_up(0.001, 1000, 7)
    speed_up(0.05, 100, 3)
    sizes = [1000, 1_000_000] if "--all" not in sys.argv else [1000, 1_000_000, 10_000_000]
    for m in sizes:
        peak, seconds = run(MEMORY, str(m))
        print(f"m={m:10,}: peak {peak:.0f} MB, of which the gaps are {m * 8 / 2**20:.0f} MB; {seconds:.0f} s")


if __name__ == "__main__":
    main()
