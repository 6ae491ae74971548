"""Other people's processes: `concurrent.futures`, anything with `map`, Dask, Ray.

They are sent orders: a span of pairs, and the package that it belongs to. A package reaches a
process once, is checked there, and is held. When a process is lost, its span is ordered again,
and everything from then on (on Dask: from the start) is *guarded*: evaluated there in a worker
process of our own, which may be lost without harm and tells which pair it was that did it.
"""

from __future__ import annotations

import abc
import atexit
import concurrent.futures
import contextlib
import copy
import importlib
import logging
import os
import queue
import threading
import warnings
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from privatize.errors import ExecutionError, PrivatizeError, restore
from privatize.execution.job import Cause, Refused, SpanResult
from privatize.execution.packaging import Package, unpack
from privatize.execution.processes import Pool, evaluate, pool
from privatize.execution.span_queue import Task, Work

__all__ = ["Dask", "Futures", "Mapped", "Ray", "fulfil"]

_log = logging.getLogger("privatize.execution")

Span = tuple[int, int]
Outcome = tuple[Span, tuple[str, Any] | None]


@dataclass(frozen=True)
class _Order:
    """A span of pairs for a process that is not ours; the package travels along, or has before."""

    name: str
    payload: bytes | None
    span: Span
    learned: tuple[Any, bool]
    timeout: float | None
    guarded: bool
    sender: tuple[str, int, int]


@dataclass
class _Jobs:
    """The jobs that this process has been sent, the latest few of them."""

    held: dict[str, Any] = field(default_factory=dict)
    turn: Any = field(default_factory=threading.Lock)

    def get(self, order: _Order) -> Any:
        with self.turn:
            if order.name not in self.held:
                if order.payload is None:
                    return None
                package = Package(order.name, order.payload)
                self.held[order.name] = (package, *unpack(package))
                while len(self.held) > 4:
                    del self.held[next(iter(self.held))]
            return self.held[order.name]


_jobs = _Jobs()


def _renew() -> None:
    """Give a forked child locks and processes of its own."""
    _jobs.turn = threading.Lock()
    while not _guards.empty():
        _guards.get_nowait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


_guards: queue.LifoQueue[Pool] = queue.LifoQueue()


@contextlib.contextmanager
def _guard() -> Iterator[Pool]:
    """Lend a pool of one worker to a thread: other people's processes may have several."""
    try:
        found = _guards.get_nowait()
    except queue.Empty:
        found = Pool(pool().processes)
        atexit.register(found.close)
    try:
        yield found
    finally:
        _guards.put(found)


_mark = os.urandom(16).hex()


def _here() -> tuple[str, int, int]:
    """Return which process this is, also among those of other machines and forked ones, and which thread."""
    return _mark, os.getpid(), threading.get_ident()


def fulfil(order: _Order, payload: bytes | None = None) -> tuple[str, Any]:
    """Evaluate an order, in a process that is not ours."""
    here = _here()
    if here[:2] == order.sender[:2] and here != order.sender:
        return "threads", None
    if payload is not None:
        order = replace(order, payload=payload)
    try:
        held = _jobs.get(order)
        if held is None:
            return "unknown", None
        package, pairs, around = held
        if order.guarded or threading.current_thread() is not threading.main_thread():
            # One worker of our own, which may be lost: it finds out which pair it is that does that. And it
            # has one thread: with several, each may have other state.
            work = Work([order.span], pairs.block, order.learned[0])
            work.tossing = order.learned[1]
            with _guard() as guard:
                found = list(guard.run(package, work, workers=1, timeout=order.timeout, keep=True))
        else:
            found = [evaluate(copy.copy(pairs), around, *order.span, order.learned, _unwatched)]
    except PrivatizeError as error:
        return "error", error.plain().facts()
    except Refused as error:
        return "refused", str(error)
    except BaseException as error:  # of the sampler, say
        return "raised", Cause.of(order.span[0], error).plain()
    return "found", [replace(f, cause=f.cause and f.cause.plain()) for f in found]


def _unwatched(index: int) -> None:
    """Nobody waits for a sign of life."""


class _Orders:
    """Makes the orders of one task, and remembers what became of those that went wrong."""

    def __init__(self, task: Task, work: Work, *, apart: bool, guarded: bool) -> None:
        self.package = task.package(local=False)
        self._timeout, self._work = task.timeout, work
        self._guarded = guarded or task.timeout is not None
        # A small package goes with every order; a large one only to those who say that they lack it.
        self._along = not apart and len(self.package.payload) < 100_000
        self.unknown: set[Span] = set()
        self.crashed: Counter[Span] = Counter()

    def __call__(self, span: Span) -> _Order:
        payload = self.package.payload if self._along or span in self.unknown else None
        guarded = self._guarded or bool(self.crashed)
        return _Order(self.package.name, payload, span, self._work.learned, self._timeout, guarded, _here())


class _Elsewhere(abc.ABC):
    """What all executors in other people's processes have in common."""

    exact = False
    apart = False  # whether packages reach workers by another way than with orders
    guarded = False  # whether orders are guarded from the start

    def run(self, task: Task, work: Work) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do."""
        work.moved = True
        orders = _Orders(task, work, apart=self.apart, guarded=self.guarded)
        with contextlib.closing(self._guarded(work, orders)) as outcomes:
            for span, outcome in outcomes:
                if outcome is None:  # its process was lost
                    orders.crashed[span] += 1
                    if orders.crashed[span] > 3:
                        raise ExecutionError(
                            f"Pairs {span[0]} to {span[1] - 1} were lost again and again with their worker. "
                            f"Is there enough memory, and are the workers still there?"
                        )
                    _log.warning("the worker with pairs %d to %d was lost; they are done again", *span)
                    work.again(*span)
                elif outcome[0] == "unknown":
                    orders.unknown.add(span)
                    work.again(*span)
                else:
                    for found in _read(*outcome):
                        work.learn(found)
                        yield found

    def _guarded(self, work: Work, orders: _Orders) -> Generator[Outcome, None, None]:
        try:
            yield from self.outcomes(work, orders)
        except (PrivatizeError, Refused):
            raise
        except Exception as error:  # of somebody else's executor: anything
            raise ExecutionError(
                f"{type(self).__name__} failed: {type(error).__name__}: {error}. What was found so far is "
                f"kept. Workers that are a number are the library's own, which survive functions that crash."
            ) from error

    @abc.abstractmethod
    def outcomes(self, work: Work, orders: _Orders) -> Generator[Outcome, None, None]:
        """Have orders fulfilled, and yield what became of each: None if its process was lost."""


def _read(kind: str, content: Any) -> list[SpanResult]:
    """Return what was found, or raise what happened instead."""
    if kind == "threads":
        raise ExecutionError(
            "workers= evaluates in threads of this process, where a function may find another state than in "
            "the thread that calls it with the private data. Use processes: workers=2, for example, or for "
            "Dask a cluster with processes=True."
        )
    if kind == "refused":
        raise Refused(content)
    if kind == "error":
        raise restore(content)
    if kind == "raised":
        raise ExecutionError(
            f"Drawing the pairs failed in a worker: {content.text}."
        ) from content.exception()
    found: list[SpanResult] = content
    return found


class Futures(_Elsewhere):
    """On a `concurrent.futures` executor."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def outcomes(self, work: Work, orders: _Orders) -> Generator[Outcome, None, None]:
        """Have orders fulfilled."""
        count = 2 * getattr(self._pool, "_max_workers", os.cpu_count() or 1)
        running: dict[Any, Span] = {}
        try:
            while True:
                while len(running) < count and (span := work.next(count, len(running))) is not None:
                    running[self._pool.submit(fulfil, orders(span))] = span
                if not running:
                    return
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()


class Mapped(_Elsewhere):
    """On anything that has a `map`."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def outcomes(self, work: Work, orders: _Orders) -> Generator[Outcome, None, None]:
        """Have orders fulfilled, a wave at a time."""
        count = 2 * (getattr(self._pool, "_processes", None) or os.cpu_count() or 1)
        while True:
            spans: list[Span] = []
            while len(spans) < count and (span := work.next(count, len(spans))) is not None:
                spans.append(span)
            if not spans:
                return
            results: Iterable[Any] = self._pool.map(fulfil, [orders(span) for span in spans])
            yield from zip(spans, list(results), strict=True)


class Dask(_Elsewhere):
    """On a Dask cluster."""

    apart = True
    # Dask gives a task that killed its worker to another one, three times, and loses that as well.
    guarded = True

    def __init__(self, client: Any) -> None:
        self._client = client
        self._distributed: Any = importlib.import_module("distributed")

    def outcomes(self, work: Work, orders: _Orders) -> Generator[Outcome, None, None]:
        """Have orders fulfilled."""
        client = self._client
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # once, and it is what must be sent
            # A result of the cluster's, which it keeps where it is needed, and makes again if it is lost.
            payload = client.submit(_same, orders.package.payload, pure=False)
        running: dict[Any, Span] = {}
        try:
            while True:
                count = 2 * max(1, sum(client.ncores().values()))
                while len(running) < count and (span := work.next(count, len(running))) is not None:
                    running[client.submit(fulfil, orders(span), payload, pure=False)] = span
                if not running:
                    return
                for future in self._done(list(running)):
                    yield running.pop(future), self._outcome(future)
        finally:
            client.cancel([*running, payload])

    def _done(self, futures: list[Any]) -> Any:
        """Wait until something is done; not forever, if there is nobody left to do it."""
        alone = 0
        while True:
            try:
                return self._distributed.wait(futures, timeout=10, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                alone = 0 if self._client.ncores() else alone + 1
                if alone > 6:
                    raise ExecutionError("The Dask cluster has had no workers for a minute.") from None

    def _outcome(self, future: Any) -> tuple[str, Any] | None:
        if future.status in ("cancelled", "lost"):
            return None
        try:
            # It is there; but if its worker is lost just now, the cluster may wait for it forever.
            outcome: tuple[str, Any] = future.result(timeout=30)
        except (self._distributed.KilledWorker, TimeoutError, concurrent.futures.CancelledError):
            return None
        return outcome


def _same(payload: bytes) -> bytes:
    return payload


class Ray(_Elsewhere):
    """On a Ray cluster."""

    apart = True

    def outcomes(self, work: Work, orders: _Orders) -> Generator[Outcome, None, None]:
        """Have orders fulfilled."""
        ray: Any = importlib.import_module("ray")
        if not ray.is_initialized():
            ray.init()
        payload = ray.put(orders.package.payload)
        remote = ray.remote(max_retries=0)(fulfil)
        spans: dict[Any, Span] = {}
        try:
            while True:
                count = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
                while len(spans) < count and (span := work.next(count, len(spans))) is not None:
                    spans[remote.remote(orders(span), payload)] = span
                if not spans:
                    return
                done, _ = ray.wait(list(spans))
                for reference in done:
                    try:
                        outcome = ray.get(reference)
                    except ray.exceptions.RayTaskError:
                        raise
                    except ray.exceptions.RayError:
                        outcome = None
                    yield spans.pop(reference), outcome
        finally:
            for reference in spans:
                ray.cancel(reference, force=True)
