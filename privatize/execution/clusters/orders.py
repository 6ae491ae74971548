"""Orders to processes that are not ours: what they are sent, and how it is evaluated there.

An order is a span of pairs, and the package that it belongs to. A package reaches a process once, is
checked there, and is held. An *isolated* order is evaluated there in a worker process of our own, which may
be lost without harm and tells which pair it was that did it.
"""

import atexit
import contextlib
import functools
import os
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

from privatize.execution.job import Learned, Reply, Span, SpanResult
from privatize.execution.packaging.package import Package, Unpacked, unpack
from privatize.execution.processes.pool import Pool, pool
from privatize.execution.span_queue import SpanQueue

_mark = os.urandom(16).hex()


def here() -> tuple[str, int]:
    """Return which process this is, also among those of other machines and forked ones, and which thread."""
    return f"{_mark} {os.getpid()}", threading.get_ident()


@dataclass(frozen=True)
class Order:
    """A span of pairs for a process that is not ours; the package's bytes travel along, or have before."""

    package: Package
    span: Span
    learned: Learned
    timeout: float | None
    isolated: bool
    sender: tuple[str, int]


_jobs: dict[str, tuple[Package, Unpacked]] = {}  # that this process has been sent, the latest few of them
_turn = threading.Lock()
_pools: queue.LifoQueue[Pool] = queue.LifoQueue()  # of one worker each, for isolated orders


def _renew() -> None:
    """Give a forked child locks and processes of its own."""
    global _turn
    _turn = threading.Lock()
    while not _pools.empty():
        _pools.get_nowait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def _job(package: Package) -> tuple[Package, Unpacked] | None:
    """Return the job of a package, or None if its bytes have not come."""
    with _turn:
        if package.name not in _jobs:
            if not package.payload:
                return None
            _jobs[package.name] = package, unpack(package)
            while len(_jobs) > 4:
                del _jobs[next(iter(_jobs))]
        return _jobs[package.name]


@contextlib.contextmanager
def _lent_pool() -> Iterator[Pool]:
    """Lend a pool of one worker to a thread: other people's processes may have several."""
    try:
        lent = _pools.get_nowait()
    except queue.Empty:
        lent = Pool(pool().method)
        atexit.register(lent.close)
    try:
        yield lent
    finally:
        _pools.put(lent)


def fulfil(order: Order, payload: bytes = b"") -> Reply:
    """Evaluate an order, in a process that is not ours."""
    process, thread = here()
    if process == order.sender[0] and thread != order.sender[1]:
        return Reply("threads")
    package = replace(order.package, payload=payload) if payload else order.package
    return Reply.to(functools.partial(_evaluate, order, package), order.span[0])


def _evaluate(order: Order, package: Package) -> list[SpanResult] | None:
    known = _job(package)
    if known is None:
        return None
    package, unpacked = known
    if not order.isolated and threading.current_thread() is threading.main_thread():
        return [unpacked.evaluate(order.span, order.learned, lambda _: None)]
    # One worker of our own, which may be lost: it finds out which pair it is that does that. And it
    # has one thread: with several, each may have other state.
    spans = SpanQueue([order.span], unpacked.job.block, order.learned.structure)
    spans.learned = order.learned
    with _lent_pool() as lent:
        return list(lent.run(package, spans, workers=1, timeout=order.timeout, keep=True))
