"""What a private call costs once its estimate is remembered, split into its parts, in one run.

    python tests/benchmarks/warm.py

Goals: under 200 microseconds in all; a fingerprint under 100 for a typical function and 64 kB of values.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from privatize import Laplace, coins, privatize, samplers
from privatize.fingerprint import fingerprint

TABLE = np.arange(8000.0)  # 64 kB


def helper(x: Any) -> Any:
    """Do a part of the work."""
    return x.mean()


def typical(x: Any, q: float = 0.5) -> Any:
    """Use a helper, a library and a constant."""
    return helper(x) * q + np.quantile(x, q)


def heavy(x: Any) -> Any:
    """Use a table of 64 kB as well."""
    return typical(x) + TABLE[0]


def microseconds(work: Callable[[], Any], inner: int = 100) -> float:
    """Return the median time of one run."""
    times = []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(inner):
            work()
        times.append((time.perf_counter() - start) / inner * 1e6)
    return statistics.median(times)


def main() -> None:
    """Print the table."""
    data = np.full(100, 0.5)
    sampler = samplers.uniform(0, 1)
    trivial = privatize(epsilon=1, gamma=0.1, sampler=sampler, store=None)(
        lambda x: 0.01 * float(x[0] + x.sum())
    )
    trivial(data)
    whole = np.zeros(1, dtype=bool)
    vector = np.zeros(1)

    def tossed() -> None:
        with coins.public_coins(1) as flips:
            flips.toss()

    rows = {
        "a call, in all": lambda: trivial(data),
        "  the estimate (fingerprint, lookup)": lambda: trivial.estimate(100),
        "  public coins": tossed,
        "  noise": lambda: Laplace().release(vector, sensitivity=1.0, epsilon=1.0, whole=whole),
        "fingerprint of a typical function": lambda: fingerprint(typical),
        "fingerprint with 64 kB of values": lambda: fingerprint(heavy),
    }
    for name, work in rows.items():
        print(f"{name:40s} {microseconds(work):8.1f} µs")


if __name__ == "__main__":
    main()
