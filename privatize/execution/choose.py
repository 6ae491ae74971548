"""Choose where pairs are evaluated: inline, on processes of our own, or on somebody else's."""

import contextlib
import logging
import math
import os
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from privatize.errors import ExecutionError, SettingsError
from privatize.execution.clusters.executors import Dask, Futures, Mapped, Ray
from privatize.execution.job import Job, Refused, Results
from privatize.execution.packaging.package import Package, pack
from privatize.execution.processes.pool import Processes, is_warm, pool
from privatize.execution.span_queue import SpanQueue
from privatize.planning.numbers import as_float

_log = logging.getLogger("privatize.execution")
_START, _WARM = 1.0, 0.2  # seconds that must be saved for a pool to be started, or used


class Executor(Protocol):
    """Where pairs are evaluated.

    Gaps come with their indices, so their order does not matter, and they are the same wherever they are
    evaluated.
    """

    @property
    def exact(self) -> bool:
        """Whether numbers are rounded there as in this process."""

    def run(self, job: Job, queue: SpanQueue) -> Results:
        """Take spans from the queue until there are none, and yield the gaps of each as they come in."""


def check_workers(workers: Any) -> Any:
    """Return `workers=` if it is something that pairs can be evaluated on; refuse everything else."""
    executor(workers)
    return int(workers) if isinstance(workers, np.integer) else workers


def check_timeout(timeout: Any) -> float | None:
    """Return `timeout=` in seconds, or None."""
    if timeout is None:
        return None
    value = as_float(timeout)
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
    number = isinstance(workers, int | np.integer) and not isinstance(workers, bool) and workers >= 1
    if workers is None or number:
        if _daemonic():
            if timeout is not None:
                _log.warning("timeout= is ignored: this process is a worker and may not start others")
            return Inline()
        if workers is None and timeout is None:
            return Auto()
        return Processes(int(workers or cores()))
    if isinstance(workers, str) and workers == "inline":
        if timeout is not None:
            raise SettingsError("timeout= needs processes; workers='inline' has none. Leave one out.")
        return Inline()
    found = _others(workers)
    if found is None:
        raise SettingsError(f"""workers={workers!r} is not a number of processes >= 1, 'inline', 'ray', a Dask
            client, a concurrent.futures executor of processes, or an object with a map method. Leave it out
            to let the library decide.""")
    return found


def _others(workers: Any) -> Executor | None:
    """Return the executor for somebody else's processes, or None if `workers` is no such thing."""
    if isinstance(workers, str | types.ModuleType):
        return Ray() if getattr(workers, "__name__", workers) == "ray" else None
    # By name: `multiprocess` and others have copies of the standard library's classes. An executor with
    # another name that runs in threads is refused by its first task (see `clusters.executors`).
    if {kind.__name__ for kind in type(workers).__mro__} & {"ThreadPoolExecutor", "ThreadPool"}:
        raise SettingsError(f"""workers={workers!r} evaluates in threads, where a function may find another
            state than in the thread that calls it with the private data. Use processes: workers=2, for
            example, or a ProcessPoolExecutor.""")
    submits, maps = (callable(getattr(workers, name, None)) for name in ("submit", "map"))
    if isinstance(workers, type) or not (submits or maps):
        return None
    client = getattr(workers, "_client", workers)  # an executor of Dask has its client
    if isinstance(client, getattr(sys.modules.get("distributed"), "Client", ())):
        return Dask(client)
    return Futures(workers) if submits else Mapped(workers)


def _daemonic() -> bool:
    """Tell whether this is a daemonic process, which may not start processes of its own."""
    for name in ("multiprocess.process", "multiprocessing.process"):
        process: Any = sys.modules.get(name)
        if process is not None and process.current_process().daemon:
            return True
    return False


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not on every system
        allowed = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):  # there may be no such limit
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        allowed = min(allowed, max(1, math.ceil(int(quota) / int(period))))
    return allowed


@dataclass(frozen=True)
class Inline:
    """Evaluates in this process, one pair after the other."""

    exact = True

    def run(self, job: Job, queue: SpanQueue) -> Results:
        """Evaluate all spans of the queue."""
        # Several spans, because other threads can use the global generators between two of them.
        while (span := queue.next(1)) is not None:
            found = job.evaluate(span, queue.learned)
            queue.learn(found)
            yield found
            del found  # the exception of a failed pair refers to this frame


@dataclass(frozen=True)
class Auto:
    """Evaluates inline, and then on all cores if the rest takes noticeably longer than starting them."""

    exact = True

    def run(self, job: Job, queue: SpanQueue) -> Results:
        """Evaluate all spans of the queue."""
        workers, seen, package = cores(), 0, None
        for found in Inline().run(job, queue):
            yield found
            del found  # likewise
            seen += queue.learned.structure is not None
            if workers < 2 or seen < 2:  # the first one pays for imports and checks
                continue
            try:
                package = package or self._package(job, queue, workers)
                queue.waiting = package is not None
                # Pairs are evaluated here until a worker has started and loaded the function.
                if package is not None and pool().prepare(package, workers):
                    yield from Processes(workers).run(job, queue, package)
            except Refused as error:
                _log.warning("evaluating inline, on one core, because a worker refused: %s", error)
                workers, queue.waiting = 1, False
            except _NotPackableError as error:
                _log.info("evaluating inline, on one core: %s", error)
                workers = 1

    def _package(self, job: Job, queue: SpanQueue, workers: int) -> Package | None:
        """Return the job for other processes, if they would save enough time."""
        saved = queue.left * queue.cost * (1 - 1 / workers)
        if saved <= (_WARM if is_warm() else _START):
            return None
        try:
            package = pack(job)
        except ExecutionError as error:
            raise _NotPackableError(str(error)) from error
        _log.info("%d pairs left, about %.3g s each: on %d cores", queue.left, queue.cost, workers)
        return package


class _NotPackableError(Exception):
    """A job that cannot be sent to other processes."""
