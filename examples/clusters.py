"""Calibration on Dask and on Ray: the same estimate as here, bit by bit, with the same seed.

Calibration runs the function on made-up data only, so it may go anywhere; the private data stays in this
process. A local cluster of two workers stands for yours, and is shut down at the end. Dask and Ray are used
if they are installed. (On one machine the library's own processes do as well: `workers=2`, or no `workers`.)

    python examples/clusters.py            prints where the pairs were run, and how long that took
    python examples/clusters.py --quick    with fewer pairs

docs/workers.md says more.
"""

import argparse
import contextlib
import logging
import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from privatize import configure, privatize, samplers

N = 2000


@privatize(epsilon=1, gamma=0.05, sampler=samplers.integers(18, 90), coins=("rng",), seed=1)
def standard_error(ages: Any, rng: np.random.Generator) -> float:
    """Return the standard error of the mean age, by resampling: slow enough to be sent away."""
    return float(np.std([rng.choice(ages, len(ages)).mean() for _ in range(200)]))


@contextlib.contextmanager
def dask() -> Iterator[Any]:
    """Start two Dask workers, and give what `workers=` takes: a client."""
    import distributed

    made: Any = distributed  # it has types for some of its functions only
    with (
        made.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as cluster,
        made.Client(cluster) as client,  # yours: Client("tcp://scheduler.example:8786")
    ):
        yield client


@contextlib.contextmanager
def ray() -> Iterator[Any]:
    """Start a Ray with two workers, and give what `workers=` takes: the name."""
    import ray

    # Yours: ray.init("auto")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield "ray"
    finally:
        ray.shutdown()


def main(quick: bool) -> None:
    """Calibrate in this process and on clusters, and compare."""
    configure(store=None, progress=False)  # an example leaves nothing behind
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or Ray warns of its next version
    function = standard_error.replace(gamma=0.2, samples="least") if quick else standard_error
    places: dict[str, Any] = {
        "this process": contextlib.nullcontext("inline"),
        "two processes": contextlib.nullcontext(2),
    }
    for name, needed, cluster in (("Dask", "distributed", dask), ("Ray", "ray", ray)):
        if find_spec(needed) is None:
            print(f"{name} is not installed, so it is left out: pip install 'privatize-dp[{name.lower()}]'")
        else:
            places[f"{name}, two workers"] = cluster()

    print(f"{function.__name__}, n={N:,}: {function.plan.m} pairs, so {2 * function.plan.m:,} runs and a few")
    print(f"{'where':20} {'start':>7} {'pairs':>7}   estimate, all digits")
    first: Any = None
    for name, place in places.items():
        start = time.perf_counter()
        with place as workers:
            started = time.perf_counter()
            found = function.replace(workers=workers).estimate(N)
            done = time.perf_counter()
        function.forget()  # or the next one would recall it
        first = found if first is None else first
        assert np.array_equal(found.gaps, first.gaps)  # every single one, and in the same order
        print(f"{name:20} {started - start:5.1f} s {done - started:5.1f} s   {found.value!r}")
    print("the gaps of all pairs are the same everywhere")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    main(parser.parse_args().quick)
