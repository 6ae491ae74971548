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


def two(label: str, duration: float, m: int, rounds: int) -> list[Result]:
    """Compare two processes with this one, in turn with the bare loop in one process and in two."""
    function = works(duration)
    rows = []
    calibrate(function, m, workers=2)
    for _ in range(rounds):
        inline = seconds(lambda: calibrate(function, m))
        warm = seconds(lambda: calibrate(function, m, workers=2))
        bare = seconds(lambda: loop(function, m, numbers)) / halves(function, m)
        pool().close()
        cold = seconds(lambda: calibrate(function, m, workers=2))
        rows.append((inline, warm, cold, inline / warm, inline / cold, bare))
    inline, warm, cold, gain, cold_gain, bare = (statistics.median(each) for each in zip(*rows, strict=True))
    spread = ", ".join(f"{row[3]:.2f}" for row in rows)
    facts = {"against": "inline", "theirs": inline, "faster": True}
    return [
        result("execution", f"two processes, {label}", warm, "s", **facts, ratio=gain, least=1.8,
               note=f"m={m}; warm; all rounds: {spread}; the bare loop in two processes: {bare:.2f}"),
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


def clusters(quick: bool) -> list[Result]:
    """Compare local clusters of two workers with this process."""
    function, m = works(0.01), 60 if quick else 150
    found = []
    for name, module, cluster in (("Dask", "distributed", dask), ("Ray", "ray", ray)):
        if importlib.util.find_spec(module) is None:
            found.append(missing("execution", name, f"{module} is not installed"))
            continue
        with cluster() as workers:
            calibrate(function, m, workers=workers)
            rows = []
            for _ in range(1 if quick else 5):
                inline = seconds(lambda: calibrate(function, m))
                there = seconds(lambda w=workers: calibrate(function, m, workers=w))
                rows.append((inline, there, inline / there))
        inline, there, gain = (statistics.median(each) for each in zip(*rows, strict=True))
        found.append(
            result("execution", f"{name}, two workers here, f = 10 ms", there, "s", against="inline",
                   theirs=inline, ratio=gain, faster=True, note=f"m={m}, n={N}; warm")
        )  # fmt: skip
    return found


def run(quick: bool) -> list[Result]:
    """Run all measurements."""
    return [
        *two("f = 1 ms", 0.001, 300 if quick else 1000, 3 if quick else 7),
        *two("f = 10 ms", 0.01, 100 if quick else 200, 2 if quick else 5),
        *clusters(quick),
    ]
