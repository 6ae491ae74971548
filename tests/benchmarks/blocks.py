"""What it costs to run each block in a process of its own, against a bare loop over the same blocks."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize.data import records
from privatize.function.blocks import cut, run_blocks
from privatize.outputs.describe import describe

from .measuring import ROOT, Result, missing, result, seconds


def forks(count: int) -> float:
    """Return how long it takes to fork this process and to end the child, which each block needs at least."""
    start = time.perf_counter()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return (time.perf_counter() - start) / count


def compared(
    name: str, function: Callable[[Any], Any], data: Any, b: int, example: Any, rounds: int, most: float
) -> Result:
    """Compare a release by blocks with a loop; the best of several rounds, for the machine may be busy."""
    positions = cut(records.count(data), b)
    structure = describe(example)

    def bare() -> None:
        for block in positions:
            function(records.take(data, block))

    def ours() -> None:
        run_blocks(function, structure, data, b, coin_seed=1)

    bare()
    ours()
    loop = min(seconds(bare) for _ in range(rounds))
    taken = min(seconds(ours) for _ in range(rounds))
    start = min(seconds(lambda: run_blocks(function, structure, data, 1, coin_seed=1)) for _ in range(rounds))
    start = max(0.0, start - loop / b)
    each = max(0.0, taken - start - loop) / (b - 1) * 1e3
    note = (
        f"{start:.2f} s to start; {taken:.3g} s in all, a bare loop {loop:.3g} s; "
        f"a bare fork {forks(20) * 1e3:.1f} ms"
    )
    return result("blocks", f"{name}, for each block", each, "ms", most=most, note=note)


NUMPY = """
import json
import numpy as np
from tests.benchmarks.blocks import compared

data = np.random.default_rng(1).random(20_000)
found = compared("mean, 100 blocks of 200 numbers", lambda x: float(x.mean()), data, 100, 0.0, {rounds}, 4)
print(json.dumps(vars(found)))
"""


def numbers(rounds: int) -> Result:
    """Measure 100 blocks of 200 numbers, in a process that has loaded nothing but numpy."""
    command = [sys.executable, "-c", NUMPY.format(rounds=rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return Result(**json.loads(done.stdout))


def frame(rounds: int) -> Result:
    """Measure 100 blocks of 200 rows of a small frame."""
    try:
        import pandas as pd
    except ImportError:
        return missing("blocks", "mean by group, a frame", "pandas is not installed")
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"age": rng.integers(18, 90, 20_000), "income": rng.normal(3e4, 1e4, 20_000)})

    def slope(people: Any) -> float:
        return float(np.polyfit(people["age"], people["income"], 1)[0])

    return compared("slope, 100 blocks of 200 rows of a frame", slope, data, 100, 0.0, rounds, 15)


def model(rounds: int) -> Result:
    """Measure a logistic regression in 50 blocks of 500 of 25,000 rows of 10 columns."""
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        return missing("blocks", "logistic regression", "scikit-learn is not installed")
    rng = np.random.default_rng(2)
    x = rng.normal(size=(25_000, 10))
    y = (x @ np.linspace(-1, 1, 10) + rng.logistic(size=25_000) > 0).astype(int)

    def coefficients(data: Any) -> Any:
        return LogisticRegression().fit(data[0], data[1]).coef_[0]

    name = "logistic regression, 50 blocks of 500 of 25,000 x 10"
    return compared(name, coefficients, (x, y), 50, np.zeros(10), rounds, 15)


def run(quick: bool) -> list[Result]:
    """Run all measurements."""
    rounds = 2 if quick else 5
    return [numbers(rounds), frame(rounds), model(rounds)]
