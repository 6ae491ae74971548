"""Executors on other people's processes: `concurrent.futures`, Dask, Ray, and anything with a `map`."""

import concurrent.futures
import functools
import importlib
import logging
import os
import warnings
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from privatize.errors import ExecutionError, PrivatizeError
from privatize.execution.clusters.orders import Order, fulfil, here
from privatize.execution.job import Job, Refused, Span, SpanResult
from privatize.execution.packaging.package import Package, pack
from privatize.execution.span_queue import SpanQueue

_log = logging.getLogger("privatize.execution")
_SMALL = 100_000  # bytes of a package that goes with every order; a larger one only to those who lack it


class Futures:
    """On a `concurrent.futures` executor; other kinds override what they do differently."""

    exact = False

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def run(self, job: Job, queue: SpanQueue) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do; when a process is lost, its span is ordered again."""
        queue.moved = True
        try:
            yield from self._run(job, pack(job, local=False), queue)
        except (PrivatizeError, Refused):
            raise
        except Exception as error:  # of somebody else's executor: anything
            raise ExecutionError(
                f"{type(self).__name__} failed: {type(error).__name__}: {error}. What was found so far is "
                f"kept. Workers that are a number are the library's own, which survive functions that crash."
            ) from error

    def _run(self, job: Job, package: Package, queue: SpanQueue) -> Generator[SpanResult, None, None]:
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
        finally:  # nobody waits for these any more
            for future in running:
                self.cancel(future)

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return int(getattr(self._pool, "_max_workers", os.cpu_count() or 1))

    def submit(self, order: Order) -> Any:
        """Have an order fulfilled, and return a future of it."""
        return self._pool.submit(fulfil, order)

    def wait(self, futures: list[Any]) -> Any:
        """Wait until something is done, and return the futures of what is."""
        return concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_COMPLETED).done

    def reply(self, future: Any) -> Any:
        """Return the `Reply` to an order that is done, or None if its process was lost."""
        return future.result()

    def cancel(self, future: Any) -> None:
        """Give an order up."""
        future.cancel()


class Dask(Futures):
    """On a Dask cluster, by its client."""

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return sum(self._pool.ncores().values())

    def submit(self, order: Order) -> Any:
        """Have an order fulfilled."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # it is what must be sent
            return self._pool.submit(fulfil, order, pure=False)

    def wait(self, futures: list[Any]) -> Any:
        """Wait until something is done; not forever, if there is nobody left to do it."""
        distributed, alone = importlib.import_module("distributed"), 0
        while True:
            try:
                return distributed.wait(futures, timeout=10, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                alone = 0 if self._pool.ncores() else alone + 1
                if alone > 6:
                    raise ExecutionError("The Dask cluster has had no workers for a minute.") from None

    def reply(self, future: Any) -> Any:
        """Return the reply, or None if its process was lost."""
        killed = importlib.import_module("distributed").KilledWorker
        if future.status in ("cancelled", "lost"):
            return None
        try:
            # It is there; but if its worker is lost just now, the cluster may wait for it forever.
            return future.result(timeout=30)
        except (killed, TimeoutError, concurrent.futures.CancelledError):
            return None


class Ray(Futures):
    """On the Ray cluster of this process; one is started if there is none."""

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
        """Have an order fulfilled."""
        return self._remote.remote(order)

    def wait(self, futures: list[Any]) -> Any:
        """Wait until something is done."""
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
        """Give an order up, with the process that evaluates it."""
        self._ray.cancel(future, force=True)


class Mapped(Futures):
    """On anything that has a `map`, a wave of orders at a time."""

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return getattr(self._pool, "_processes", None) or os.cpu_count() or 1

    def submit(self, order: Order) -> Any:
        """Put an order into the next wave."""
        future: Any = concurrent.futures.Future()
        future.order = order
        return future

    def wait(self, futures: list[Any]) -> Any:
        """Have the wave fulfilled."""
        replies = list(self._pool.map(fulfil, [future.order for future in futures]))
        for future, reply in zip(futures, replies, strict=True):
            future.set_result(reply)
        return futures


def _check_lost(span: Span, times: int) -> None:
    """Accept that the process of a span was lost, which happens; but not again and again."""
    if times > 3:
        raise ExecutionError(
            f"Pairs {span[0]} to {span[1] - 1} were lost again and again with their worker. Is there "
            f"enough memory, and are the workers still there?"
        )
    _log.warning("the worker with pairs %d to %d was lost; they are done again", *span)


def checked(found: list[SpanResult], span: Span) -> list[SpanResult]:
    """Refuse an answer that is not about the very pairs of the order, each once."""
    at = sorted(index for each in found for index in range(each.start, each.start + len(each.gaps)))
    if at != list(range(*span)):
        raise ExecutionError("A worker answered another question than it was asked.")
    return found
