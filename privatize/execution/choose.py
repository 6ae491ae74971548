"""Where pairs are evaluated: inline, processes, executors, Dask, Ray. One small interface.

An executor has ``run(task, work)``, which takes spans of indices from the work until there are
none, and yields the gaps of each as they come. Gaps carry their indices, so nobody depends on
the order, and they are the same wherever they were evaluated.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import types
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from privatize.calibration import streams as coins
from privatize.errors import ExecutionError, SettingsError
from privatize.execution.job import Refused, SpanResult
from privatize.execution.packaging import Package
from privatize.execution.progress import Progress
from privatize.execution.span_queue import Task, Work

__all__ = ["Executor", "check_timeout", "check_workers", "collect", "executor"]

_log = logging.getLogger("privatize.execution")
_START, _WARM = 1.0, 0.2  # seconds that must be saved for a pool to be started, or used


class Executor(Protocol):
    """Where pairs are evaluated."""

    exact: bool
    """Whether it rounds as this process does."""

    def run(self, task: Task, work: Work) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do."""


def check_workers(workers: Any) -> Any:
    """Return `workers=` if it is something that pairs can be evaluated on; refuse everything else."""
    if workers is None or _name(workers) == "ray":
        return workers
    if isinstance(workers, str) and workers in ("inline", "ray"):
        return workers
    if isinstance(workers, int | np.integer) and not isinstance(workers, bool) and workers >= 1:
        return int(workers)
    # By name: `multiprocess` and others have copies of the standard library's classes. An executor with
    # another name that runs in threads is refused by its first task (see `clusters.fulfil`).
    if {kind.__name__ for kind in type(workers).__mro__} & {"ThreadPoolExecutor", "ThreadPool"}:
        raise SettingsError(
            f"workers={workers!r} evaluates in threads, where a function may find another state than in the "
            f"thread that calls it with the private data. Use processes: workers=2, for example, or a "
            f"ProcessPoolExecutor."
        )
    if not isinstance(workers, type | str | bytes | types.ModuleType) and (
        callable(getattr(workers, "submit", None)) or callable(getattr(workers, "map", None))
    ):
        return workers
    raise SettingsError(
        f"workers={workers!r} is not a number of processes >= 1, 'inline', 'ray', a Dask client, a "
        f"concurrent.futures executor of processes, or an object with a map method. Leave it out to let the "
        f"library decide."
    )


def check_timeout(timeout: Any) -> float | None:
    """Return `timeout=` in seconds, or None."""
    if timeout is None:
        return None
    try:
        value = math.nan if isinstance(timeout, bool | str | bytes | bytearray) else float(timeout)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not 0 < value < math.inf:
        raise SettingsError(f"timeout={timeout!r} is not a number of seconds > 0. Leave it out for no limit.")
    return value


def executor(workers: Any = None, timeout: float | None = None) -> Executor:
    """Return where pairs are evaluated.

    Examples
    --------
    >>> executor("inline")
    Inline()
    >>> executor(2)
    Processes(count=2)
    """
    workers = check_workers(workers)
    if workers is None or isinstance(workers, int):
        if _daemonic():
            if timeout is not None:
                _log.warning("no timeout: this process is somebody's worker, and may have none of its own")
            return Inline()
        if workers is None and timeout is None:
            return Auto()
        return Processes(workers or _cpus())
    if isinstance(workers, str) and workers == "inline":
        if timeout is not None:
            raise SettingsError("timeout= needs processes, which can be ended; workers='inline' has none.")
        return Inline()
    from privatize.execution import clusters

    if isinstance(workers, str | types.ModuleType):
        return clusters.Ray()
    if any(kind.__module__.partition(".")[0] == "distributed" for kind in type(workers).__mro__):
        return clusters.Dask(getattr(workers, "_client", workers))  # of its executor
    submits = callable(getattr(workers, "submit", None))
    return clusters.Futures(workers) if submits else clusters.Mapped(workers)


def collect(
    task: Task, work: Work, where: Executor, bar: Progress, take: Callable[[SpanResult], object], label: str
) -> None:
    """Have all that there is to do evaluated, and hand over what was found as it comes."""
    try:
        with bar, contextlib.closing(where.run(task, work)) as results:
            for found in results:
                take(found)
                bar.add(len(found.gaps))
    except Refused as error:
        raise ExecutionError(
            f"A worker refused {label}(): {error}. Make the two sides alike, pass what it needs as an "
            f"argument, or use workers='inline'."
        ) from error


def _name(thing: Any) -> str | None:
    return thing.__name__ if isinstance(thing, types.ModuleType) else None


def _daemonic() -> bool:
    """Tell whether this is somebody's worker, which may have no children."""
    for name in ("multiprocess.process", "multiprocessing.process"):
        process: Any = sys.modules.get(name)
        if process is not None and process.current_process().daemon:
            return True
    return False


def _cpus() -> int:
    """Return how many cores this process may use."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not on every system
        cores = os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cores = min(cores, max(1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no such limit
        pass
    return cores


# --- in this process ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inline:
    """In this process, one pair after the other."""

    exact = True

    def run(self, task: Task, work: Work) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do."""
        while (span := work.next(1)) is not None:
            # The global generators are ours for a while, then others' for a moment.
            with coins.public_coins(task.pairs.s0) as flips:
                found = task.pairs.gaps(*span, flips)
            work.learn(found)
            yield found


@dataclass(frozen=True)
class Auto:
    """Inline, and on all cores if what is left would take noticeably longer than starting them."""

    exact = True

    def run(self, task: Task, work: Work) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do."""
        cores, seen = _cpus(), 0
        for found in Inline().run(task, work):
            yield found
            seen += work.structure is not None
            if cores < 2 or seen < 2:  # the first one pays for imports and checks
                continue
            saved = work.left * work.cost * (1 - 1 / cores)
            if saved > _WARM and saved > (_WARM if _warm() else _START):
                try:
                    package = task.package(local=True)
                except ExecutionError as error:
                    _log.info("inline, on one core: %s", error)
                    cores = 1
                    continue
                _log.info("%d pairs are left, about %.3g s each: on %d cores", work.left, work.cost, cores)
                try:
                    yield from Processes(cores).on(package, task, work)
                except Refused as error:
                    _log.warning("inline, on one core, since other processes do not do: %s", error)
                    cores = 1


def _warm() -> bool:
    processes: Any = sys.modules.get("privatize.execution.processes")
    return processes is not None and processes.pool().warm


# --- in processes of our own ------------------------------------------------------------------------


@dataclass(frozen=True)
class Processes:
    """In a pool of processes, which is kept warm between calls."""

    count: int
    exact = True

    def run(self, task: Task, work: Work) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do."""
        return self.on(task.package(local=True), task, work)

    def on(self, package: Package, task: Task, work: Work) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do; it has been packed already."""
        from privatize.execution.processes import pool

        work.moved = True
        return pool().run(package, work, workers=self.count, timeout=task.timeout)
