"""What exact noise costs, against numpy's insecure noise and the peers, as ratios within one run.

    python tests/benchmarks/noise.py

diffprivlib and OpenDP take part if they are installed. Interleaved runs, medians.
"""

import functools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from privatize import Gaussian, Laplace, discrete


def interleaved(works: dict[str, Callable[[], Any]], repeats: int = 9) -> dict[str, float]:
    """Return the median seconds of each work."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peers(d: int) -> dict[str, Callable[[], Any]]:
    """Return what the peers offer for the same work: Laplace noise of scale 1 on d numbers."""
    works: dict[str, Callable[[], Any]] = {}
    vector = np.zeros(d)
    try:
        import opendp.prelude as dp

        dp.enable_features("contrib", "idealized-numerics")
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=d), dp.l1_distance(T=float)
        mechanism = dp.m.make_laplace(*space, scale=1.0, k=-40)
        values = vector.tolist()
        works["OpenDP Laplace, k=-40"] = lambda: mechanism(values)
    except ImportError:
        print("(opendp is not installed)")
    try:
        from diffprivlib.mechanisms import Laplace as Theirs

        single = Theirs(epsilon=1.0, sensitivity=1.0)
        works["diffprivlib Laplace"] = lambda: [single.randomise(0.0) for _ in range(d)]
    except ImportError:
        print("(diffprivlib is not installed)")
    return works


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(1)
    for d in (1, 10**3, 10**5, 10**6):
        vector, whole = np.zeros(d), np.zeros(d, dtype=bool)
        exact: dict[str, Any] = {"sensitivity": 1.0, "epsilon": 1.0, "whole": whole}
        works: dict[str, Callable[[], Any]] = {
            "numpy laplace (insecure)": lambda d=d: rng.laplace(size=d),  # type: ignore[misc]
            "numpy normal (insecure)": lambda d=d: rng.normal(size=d),  # type: ignore[misc]
            "ours, Laplace release": lambda v=vector, e=exact: Laplace().release(v, delta=0.0, **e),  # type: ignore[misc]
            "ours, Gaussian release": lambda v=vector, e=exact: Gaussian().release(v, delta=1e-6, **e),  # type: ignore[misc]
            "ours, Laplace draw": lambda d=d: discrete.discrete_laplace(2**40 + 2**20, 0, d),  # type: ignore[misc]
            "ours, Gaussian draw": lambda d=d: discrete.discrete_gaussian(2**40 + 2**20, d),  # type: ignore[misc]
        }
        if d <= 10**5:
            works |= peers(d)
        inner = 200 if d == 1 else 1
        timed = {name: lambda w=work, r=inner: [w() for _ in range(r)] for name, work in works.items()}  # type: ignore[misc]
        found = interleaved(timed, 9 if d <= 10**5 else 3)
        print(f"\nd = {d}")
        for name, seconds in found.items():
            base = found[
                "numpy normal (insecure)"
                if "Gauss" in name or "normal" in name
                else "numpy laplace (insecure)"
            ]
            each = seconds / inner / d * 1e9
            print(f"  {name:28s} {each:12.0f} ns each   {seconds / base:8.1f} x numpy")
    crossover()


def crossover() -> None:
    """Show where numpy overtakes plain Python, which is where discrete._FEW comes from."""
    print("\nplain Python against numpy, microseconds for d draws")
    for d in (10, 20, 30, 40, 60, 80):
        row = {}
        for name, few in (("plain", 10**9), ("numpy", 0)):
            discrete._FEW = few
            work = functools.partial(discrete.discrete_laplace, 2**40, 0, d)
            row[name] = interleaved({name: work}, 31)[name] * 1e6
        print(f"  d={d:3d}  plain {row['plain']:6.0f}  numpy {row['numpy']:6.0f}")


if __name__ == "__main__":
    main()
