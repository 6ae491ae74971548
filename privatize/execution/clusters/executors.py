"""Evaluate on processes that are not ours: `concurrent.futures`, Dask, Ray, and anything with a `map`.

They are sent orders. An order is a span of pairs, and the package that it belongs to. A large package reaches
a process once and is cached there. It is unpacked and evaluated in a worker process of our own. If that
crashes, nothing else is lost, and we know with which pair. It also has only one thread: with several, each
may have other state.
"""

import atexit
import concurrent.futures
import contextlib
import functools
import importlib
import logging
import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from privatize.errors import ExecutionError, PrivatizeError
from privatize.execution.job import Job, Learned, Refused, Reply, Results, Span, SpanResult
from privatize.execution.packaging.package import Package, pack
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


_log = logging.getLogger("privatize.execution")
_SMALL = 100_000  # bytes; a larger package is sent only to processes that lack it, not with every order


class Futures:
    """Evaluates on a `concurrent.futures` executor; subclasses override what differs for theirs."""

    exact = False

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def run(self, job: Job, queue: SpanQueue) -> Results:
        """Evaluate all spans of the queue; when a process is lost, its span is ordered again."""
        queue.moved = True
        try:
            yield from self._run(job, pack(job, local=False), queue)
        except (PrivatizeError, Refused):
            raise
        except Exception as error:  # somebody else's executor may raise anything
            raise ExecutionError(f"""{type(self).__name__} failed: {type(error).__name__}: {error}. All gaps
                so far are saved. With a number, as in workers=2, the library has its own processes and
                replaces lost ones.""") from error

    def _run(self, job: Job, package: Package, queue: SpanQueue) -> Results:
        bare = package if len(package.payload) < _SMALL else replace(package, payload=b"")
        missing: set[Span] = set()
        lost: Counter[Span] = Counter()
        running: dict[Any, Span] = {}
        try:
            while True:
                slots = 2 * max(1, self.cores())
                while len(running) < slots and (span := queue.next(slots, len(running))) is not None:
                    sent = package if span in missing else bare
                    order = Order(sent, span, queue.learned, job.block, job.timeout, here())
                    running[self.submit(order)] = span
                if not running:
                    return
                for future in self.wait(list(running)):
                    span, reply = running.pop(future), self.reply(future)
                    if reply is None:
                        lost[span] += 1
                        _check_lost(span, lost[span])
                        queue.again(*span)
                    elif reply.status == "missing":
                        missing.add(span)
                        queue.again(*span)
                    else:
                        for found in checked(reply.read(), span):
                            queue.learn(found)
                            yield found
        finally:  # nobody needs these any more
            for future in running:
                self.cancel(future)

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return int(getattr(self._pool, "_max_workers", os.cpu_count() or 1))

    def submit(self, order: Order) -> Any:
        """Submit an order, and return its future."""
        return self._pool.submit(fulfil, order)

    def wait(self, futures: list[Any]) -> Any:
        """Wait until an order is done, and return the futures of all that are."""
        return concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_COMPLETED).done

    def reply(self, future: Any) -> Any:
        """Return the `Reply` to an order that is done, or None if its process was lost."""
        return future.result()

    def cancel(self, future: Any) -> None:
        """Cancel an order."""
        future.cancel()


class Dask(Futures):
    """Evaluates on a Dask cluster, through its client."""

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return sum(self._pool.ncores().values())

    def submit(self, order: Order) -> Any:
        """Submit an order."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # the package must be sent
            return self._pool.submit(fulfil, order, pure=False)

    def wait(self, futures: list[Any]) -> Any:
        """Wait until an order is done, but only a minute if the cluster has no workers."""
        distributed, empty = importlib.import_module("distributed"), 0
        while True:
            try:
                return distributed.wait(futures, timeout=10, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                empty = 0 if self._pool.ncores() else empty + 1
                if empty > 6:
                    raise ExecutionError("The Dask cluster has had no workers for a minute.") from None

    def reply(self, future: Any) -> Any:
        """Return the reply, or None if its process was lost."""
        killed = importlib.import_module("distributed").KilledWorker
        if future.status in ("cancelled", "lost"):
            return None
        try:
            # The result exists, but if its worker is lost just now, the client may wait for it forever.
            return future.result(timeout=30)
        except (killed, TimeoutError, concurrent.futures.CancelledError):
            return None
        finally:  # the cluster has a result for as long as anything here, such as a traceback, has its future
            future.release()


class Ray(Futures):
    """Evaluates on the Ray cluster of this process; one is started if there is none."""

    def __init__(self) -> None:
        super().__init__(None)

    @functools.cached_property
    def _ray(self) -> Any:
        ray: Any = importlib.import_module("ray")
        if not ray.is_initialized():
            ray.init()
        return ray

    @functools.cached_property
    def _remote(self) -> Any:
        return self._ray.remote(max_retries=0)(fulfil)

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    def submit(self, order: Order) -> Any:
        """Submit an order."""
        return self._remote.remote(order)

    def wait(self, futures: list[Any]) -> Any:
        """Wait until an order is done."""
        return self._ray.wait(futures)[0]

    def reply(self, future: Any) -> Any:
        """Return the reply, or None if its process was lost."""
        try:
            return self._ray.get(future)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError:
            return None

    def cancel(self, future: Any) -> None:
        """Cancel an order, and end the process that evaluates it."""
        self._ray.cancel(future, force=True)


class Mapped(Futures):
    """Evaluates with anything that has a `map`, several orders in one call."""

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return getattr(self._pool, "_processes", None) or os.cpu_count() or 1

    def submit(self, order: Order) -> Any:
        """Save an order for the next call of `map`."""
        future: Any = concurrent.futures.Future()
        future.order = order
        return future

    def wait(self, futures: list[Any]) -> Any:
        """Evaluate all orders in one call of `map`."""
        replies = list(self._pool.map(fulfil, [future.order for future in futures]))
        for future, reply in zip(futures, replies, strict=True):
            future.set_result(reply)
        return futures


def _check_lost(span: Span, times: int) -> None:
    """Log that the process of a span was lost; raise an error if that happened more than three times."""
    if times > 3:
        raise ExecutionError(f"""The worker that evaluated pairs {span[0]} to {span[1] - 1} was lost {times}
            times. Is there enough memory, and are the workers still running?""")
    _log.warning("the worker with pairs %d to %d was lost; they are done again", *span)


def checked(found: list[SpanResult], span: Span) -> list[SpanResult]:
    """Return results, or raise an error unless they have every pair of the order exactly once."""
    at = sorted(index for each in found for index in range(each.start, each.start + len(each.gaps)))
    if at != list(range(*span)):
        raise ExecutionError("A worker returned gaps of other pairs than it was sent.")
    return found
