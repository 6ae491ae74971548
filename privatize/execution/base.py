"""The interface of executors, and the loop that takes what they find."""

import contextlib
from collections.abc import Callable, Generator
from typing import Protocol

from privatize.errors import ExecutionError
from privatize.execution.job import Job, Refused, SpanResult
from privatize.execution.progress import Progress
from privatize.execution.span_queue import SpanQueue


class Executor(Protocol):
    """Where pairs are evaluated.

    Gaps carry their indices, so nobody depends on the order in which they come, and they are the same
    wherever they were evaluated.
    """

    @property
    def exact(self) -> bool:
        """Whether it rounds as this process does."""

    def run(self, job: Job, queue: SpanQueue) -> Generator[SpanResult, None, None]:
        """Take spans from the queue until there are none, and yield the gaps of each as they come."""


def collect(
    job: Job,
    queue: SpanQueue,
    where: Executor,
    bar: Progress,
    take: Callable[[SpanResult], object],
    label: str,
) -> None:
    """Have all that there is to do evaluated, and hand over what was found as it comes."""
    try:
        with bar, contextlib.closing(where.run(job, queue)) as results:
            for found in results:
                take(found)
                bar.add(len(found.gaps))
    except Refused as error:
        raise ExecutionError(
            f"A worker refused {label}(): {error}. Make the two sides alike, pass what it needs as an "
            f"argument, or use workers='inline'."
        ) from error
