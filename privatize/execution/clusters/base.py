"""What all executors on other people's processes have in common."""

import abc
import logging
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from typing import Any

from privatize.errors import ExecutionError, PrivatizeError
from privatize.execution.clusters.orders import Order, here
from privatize.execution.job import Job, Refused, Span, SpanResult
from privatize.execution.packaging.package import Package, pack
from privatize.execution.span_queue import SpanQueue

_log = logging.getLogger("privatize.execution")
_SMALL = 100_000  # bytes of a package that goes with every order; a larger one only to those who lack it


class ClusterExecutor(abc.ABC):
    """Orders spans from other people's processes.

    When a process is lost, its span is ordered again, and everything from then on is isolated: see `orders`.
    """

    exact = False
    isolated = False  # whether orders are isolated from the start

    def run(self, job: Job, queue: SpanQueue) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do."""
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
        along = self.open(package)
        missing: set[Span] = set()
        crashed: Counter[Span] = Counter()
        running: dict[Any, Span] = {}

        def order(span: Span) -> Order:
            sent = package if along or span in missing else replace(package, payload=b"")
            isolated = self.isolated or job.timeout is not None or bool(crashed)
            return Order(sent, span, queue.learned, job.timeout, isolated, here())

        try:
            while True:
                slots = 2 * max(1, self.cores())
                while len(running) < slots and (span := queue.next(slots, len(running))) is not None:
                    running[self.submit(order(span))] = span
                if not running:
                    return
                for handle in self.wait(list(running)):
                    span, reply = running.pop(handle), self.reply(handle)
                    if reply is None:
                        self._lose(span, crashed)
                        queue.again(*span)
                    elif reply.status == "missing":
                        missing.add(span)
                        queue.again(*span)
                    else:
                        for found in checked(reply.read(), span):
                            queue.learn(found)
                            yield found
        finally:
            self.close(list(running))

    def _lose(self, span: Span, crashed: Counter[Span]) -> None:
        """Count that the process of a span was lost, which happens; but not again and again."""
        crashed[span] += 1
        if crashed[span] > 3:
            raise ExecutionError(
                f"Pairs {span[0]} to {span[1] - 1} were lost again and again with their worker. Is there "
                f"enough memory, and are the workers still there?"
            )
        _log.warning("the worker with pairs %d to %d was lost; they are done again", *span)

    def open(self, package: Package) -> bool:
        """Get ready for a package, and return whether its bytes go along with every order."""
        return len(package.payload) < _SMALL

    @abc.abstractmethod
    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""

    @abc.abstractmethod
    def submit(self, order: Order) -> Any:
        """Have an order fulfilled, and return a handle of it."""

    @abc.abstractmethod
    def wait(self, handles: list[Any]) -> Any:
        """Wait until something is done, and return the handles of what is."""

    @abc.abstractmethod
    def reply(self, handle: Any) -> Any:
        """Return the `Reply` to an order that is done, or None if its process was lost."""

    def close(self, handles: list[Any]) -> None:  # noqa: B027 - not everybody can
        """Give up the orders that nobody waits for any more."""


def checked(found: list[SpanResult], span: Span) -> list[SpanResult]:
    """Refuse an answer that is not about the very pairs of the order, each once."""
    at = sorted(index for each in found for index in range(each.start, each.start + len(each.gaps)))
    if at != list(range(*span)):
        raise ExecutionError("A worker answered another question than it was asked.")
    return found
