"""How much faster workers are than this process alone: two processes, warm and cold, Dask and Ray."""

import contextlib
import importlib.util
import logging
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from privatize.execution.processes.pool import pool

from .calibration import N, calibrate, loop, numbers
from .measuring import Result, missing, result, seconds, works

PARTS = 20  # of a loop that others run: enough to share it out evenly


def halves(function: Callable[[Any], Any], m: int) -> float:
    """Return how long the bare loop takes in two processes: the best that this machine allows now."""
    context = multiprocessing.get_context("fork")
    gate, ends = context.Barrier(3), context.SimpleQueue()
    made = [context.Process(target=_half, args=(gate, ends, function, m // 2)) for _ in range(2)]
    for process in made:
        process.start()
    gate.wait()
    start = time.perf_counter()
    for _ in made:
        ends.get()
    taken = time.perf_counter() - start
    for process in made:
        process.join()
    return taken


def _half(gate: Any, ends: Any, function: Callable[[Any], Any], m: int) -> None:
    gate.wait()
    loop(function, m, numbers)
    ends.put(None)


def with_joblib(function: Callable[[Any], Any], m: int) -> Callable[[], Any] | None:
    """Return the bare loop by joblib's own processes, in parts; None if joblib is not installed."""
    if importlib.util.find_spec("joblib") is None:
        return None
    import joblib

    parts = [joblib.delayed(loop)(function, m // PARTS, numbers) for _ in range(PARTS)]
    return lambda: joblib.Parallel(n_jobs=2)(parts)


def two(label: str, duration: float, m: int, rounds: int) -> list[Result]:
    """Compare two processes with this one, in turn with the bare loop in one process and in two."""
    function = works(duration)
    rows = []
    calibrate(function, m, workers=2)
    peer = with_joblib(function, m)
    if peer:
        peer()
    for _ in range(rounds):
        inline = seconds(lambda: calibrate(function, m))
        warm = seconds(lambda: calibrate(function, m, workers=2))
        one = seconds(lambda: loop(function, m, numbers))
        bare, others = one / halves(function, m), one / seconds(peer) if peer else float("nan")
        pool().close()
        cold = seconds(lambda: calibrate(function, m, workers=2))
        rows.append((inline, warm, cold, inline / warm, inline / cold, bare, others, inline / warm / bare))
    inline, warm, cold, gain, cold_gain, bare, others, share = (
        statistics.median(each) for each in zip(*rows, strict=True)
    )
    spread = ", ".join(f"{row[3]:.2f}" for row in rows)
    facts = {"against": "inline", "theirs": inline, "faster": True}
    return [
        result("execution", f"two processes, {label}", warm, "s", **facts, ratio=gain, least=1.8,
               note=f"m={m}; warm; all rounds: {spread}; joblib's own processes: {others:.2f}; "
               f"the bare loop in two processes: {bare:.2f}"),
        result("execution", f"two processes, {label}, gain", gain, "times", theirs=bare, ratio=share,
               against="the bare loop's gain", least=0.95, note=f"m={m}"),
        result("execution", f"two processes, {label}, started first", cold, "s", **facts, ratio=cold_gain,
               note=f"m={m}; the workers are started again, their fork server is not"),
    ]  # fmt: skip


@contextlib.contextmanager
def dask() -> Iterator[Any]:
    """Start a local Dask cluster of two workers."""
    from distributed import Client, LocalCluster

    made = {"dashboard_address": None, "silence_logs": logging.ERROR}
    with LocalCluster(n_workers=2, threads_per_worker=1, **made) as cluster, Client(cluster) as client:
        yield client


@contextlib.contextmanager
def ray() -> Iterator[Any]:
    """Start a local Ray cluster of two workers."""
    import ray as module

    module.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield "ray"
    finally:
        module.shutdown()


def own_map(name: str, workers: Any, function: Callable[[Any], Any], m: int) -> Callable[[], Any]:
    """Return the bare loop as a cluster's own tasks, in parts."""
    if name == "Dask":
        return lambda: workers.gather(
            workers.map(lambda _: loop(function, m // PARTS, numbers), range(PARTS), pure=False)
        )
    import ray as module

    part = module.remote(lambda: loop(function, m // PARTS, numbers))
    return lambda: module.get([part.remote() for _ in range(PARTS)])


def clusters(quick: bool) -> list[Result]:
    """Compare local clusters of two workers with this process."""
    function, m = works(0.01), 60 if quick else 200
    found = []
    for name, module, cluster in (("Dask", "distributed", dask), ("Ray", "ray", ray)):
        if importlib.util.find_spec(module) is None:
            found.append(missing("execution", name, f"{module} is not installed"))
            continue
        with cluster() as workers:
            own = own_map(name, workers, function, m)
            calibrate(function, m, workers=workers)
            own()
            rows = []
            for _ in range(1 if quick else 5):
                inline = seconds(lambda: calibrate(function, m))
                there = seconds(lambda w=workers: calibrate(function, m, workers=w))
                bare = seconds(lambda: loop(function, m, numbers)) / seconds(own)
                rows.append((inline, there, inline / there, bare))
        inline, there, gain, bare = (statistics.median(each) for each in zip(*rows, strict=True))
        found.append(
            result("execution", f"{name}, two workers here, f = 10 ms", there, "s", against="inline",
                   theirs=inline, ratio=gain, faster=True,
                   note=f"m={m}, n={N}; warm; the bare loop in {name}'s own tasks: {bare:.2f} times as fast")
        )  # fmt: skip
    return found


def run(quick: bool) -> list[Result]:
    """Run all measurements."""
    return [
        *two("f = 1 ms", 0.001, 557 if quick else 1000, 3 if quick else 7),
        *two("f = 10 ms", 0.01, 100 if quick else 557, 2 if quick else 3),
        *clusters(quick),
    ]
