"""Evaluate in this process, one span of pairs after the other."""

from collections.abc import Generator
from dataclasses import dataclass

from privatize.execution.job import Job, SpanResult
from privatize.execution.span_queue import SpanQueue


@dataclass(frozen=True)
class Inline:
    """In this process, one pair after the other."""

    exact = True

    def run(self, job: Job, queue: SpanQueue) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do."""
        # Between two spans the global generators are others' for a moment.
        while (span := queue.next(1)) is not None:
            found = job.evaluate(span, queue.learned)
            queue.learn(found)
            yield found
