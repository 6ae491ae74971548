"""Have spans of pairs evaluated where the user wants it, and take what is found as it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import capacity
from privatize.calibration.evaluators import Evaluator
from privatize.calibration.norms import Vector
from privatize.errors import ExecutionError
from privatize.execution.base import collect
from privatize.execution.choose import executor
from privatize.execution.job import Span, SpanResult
from privatize.execution.progress import Progress
from privatize.execution.span_queue import SpanQueue

__all__ = ["Collected", "Collector", "joined", "missing_spans", "refuse_missing"]


class Collected(NamedTuple):
    """Where pairs were evaluated: whether all of it rounds as this process does, and whether it is another."""

    exact: bool
    elsewhere: bool


@dataclass(frozen=True)
class Collector:
    """Where pairs are to be evaluated, and how that is shown.

    Attributes
    ----------
    workers : int, "inline", "ray", Dask client, executor, or object with map, or None
        Where.
    progress : bool or None
        Whether to show a bar; by default if it takes long and somebody is watching.
    label : str
        What to call the function.
    """

    workers: Any
    progress: bool | None
    label: str

    def collect(
        self, evaluator: Evaluator, missing: list[Span], total: int, take: Callable[[SpanResult], object]
    ) -> Collected:
        """Have some spans of all pairs evaluated; `take` gets what is found, in any order."""
        timeout, pairs = evaluator.timeout, evaluator.pairs
        where = executor(capacity.fewer(self.workers, timeout, pairs.bytes), timeout)
        structure = evaluator.learned.structure
        queue = SpanQueue(missing, pairs.block, structure, pairs.seconds, together=evaluator.together)
        bar = Progress(self.label, total, total - queue.left, self.progress)
        collect(evaluator, queue, where, bar, take, self.label)
        return Collected(where.exact, queue.moved)


def missing_spans(gaps: Vector) -> list[Span]:
    """Return the spans of indices that have no gap yet.

    Examples
    --------
    >>> missing_spans(np.array([np.nan, np.nan, 1.0, np.nan]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.isnan(gaps), prepend=False, append=False))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def refuse_missing(gaps: NDArray[np.float64]) -> None:
    """Refuse gaps of which some are missing: every index counts, or none does."""
    missing = int(np.isnan(gaps).sum())
    if missing:
        raise ExecutionError(f"{missing} of {len(gaps)} pairs were not evaluated.")


def joined(spans: list[Span]) -> list[Span]:
    """Return spans with neighbours made one.

    Examples
    --------
    >>> joined([(3, 5), (0, 3), (7, 8)])
    [(0, 5), (7, 8)]
    """
    found: list[Span] = []
    for start, stop in sorted(spans):
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((start, stop))
    return found
