"""Orders to processes that are not ours: what they are sent, and how it is evaluated there.

An order is a span of pairs, and the package that it belongs to. A large package reaches a process once and
is cached there. It is unpacked and evaluated in a worker process of our own. If that crashes, nothing else
is lost, and we know with which pair. It also has only one thread: with several, each may have other state.
"""

import atexit
import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from privatize.errors import ExecutionError
from privatize.execution.job import Learned, Reply, Span, SpanResult
from privatize.execution.packaging.package import Package
from privatize.execution.processes.pool import Pool, pool
from privatize.execution.span_queue import SpanQueue

_random_id = os.urandom(16).hex()


def here() -> tuple[str, int]:
    """Return an id of this process, unique across machines and forks, and the id of this thread."""
    return f"{_random_id} {os.getpid()}", threading.get_ident()


@dataclass(frozen=True)
class Order:
    """A span of pairs for a process that is not ours; the package's payload may have been sent before."""

    package: Package
    span: Span
    learned: Learned
    block: int
    timeout: float | None
    sender: tuple[str, int]


_packages: dict[str, Package] = {}  # the latest few that this process has received
_pools: list[Pool] = []  # of one worker each
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # a forked child needs processes of its own


@contextlib.contextmanager
def _lent_pool() -> Iterator[Pool]:
    """Lend a pool of one worker to this thread: a process that is not ours may have several threads."""
    try:
        lent = _pools.pop()
    except IndexError:
        lent = Pool(pool().method)
        atexit.register(lent.close)
    try:
        yield lent
    finally:
        _pools.append(lent)


def fulfil(order: Order) -> Reply:
    """Evaluate an order, in a process that is not ours."""
    return Reply.to(functools.partial(_evaluate, order))


def _evaluate(order: Order) -> list[SpanResult] | None:
    process, thread = here()
    if process == order.sender[0] and thread != order.sender[1]:
        raise ExecutionError("""workers= evaluates in threads of this process, where a function may find
            another state than in the thread that calls it with the private data. Use processes: workers=2,
            for example, or for Dask a cluster with processes=True.""")
    if order.package.payload:
        _packages[order.package.name] = order.package
        for old in list(_packages)[:-4]:
            _packages.pop(old, None)
    package = _packages.get(order.package.name)
    if package is None:
        return None
    spans = SpanQueue([order.span], order.block, order.learned.structure)
    spans.learned = order.learned
    with _lent_pool() as lent:
        return list(lent.run(package, spans, workers=1, timeout=order.timeout, keep=True))
