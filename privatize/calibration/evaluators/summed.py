"""Evaluate the gaps of sums over records: two records make a pair, whatever the others are."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.additive import Rows
from privatize.calibration.evaluators.base import Evaluator, wanted_answers
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import RecordSampler
from privatize.calibration.norms import Vector
from privatize.data import records
from privatize.errors import OutputError
from privatize.execution.job import Span, SpanResult
from privatize.outputs.structure import StructureChanged


@dataclass(frozen=True)
class Steps:
    """How far the pairs of one block move a sum over records.

    Attributes
    ----------
    rows : array
        What the function returns for their records: two rows for each pair, NaN where it fails.
    steps : array
        By how much each pair moves the output.
    slack : float
        How much rounding may add to a gap.
    gaps : array
        Their gaps.
    """

    rows: Vector
    steps: Vector
    slack: float
    gaps: Vector


@dataclass(kw_only=True, eq=False)
class SummedEvaluator(Evaluator):
    """Runs the function that is added up over records, on the records of all pairs of a block at once."""

    together = True
    pairs: RecordSampler
    summand: Rows
    _steps: tuple[int, Steps] | None = field(default=None, init=False)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_steps": None}

    def gaps(self, span: Span, rng: rng_guard) -> SpanResult:
        """Evaluate the pairs of a span."""
        found = super().gaps(span, rng)
        self.uses_global_rng = self.uses_global_rng or rng.may_be_used()
        return found

    def evaluate_block(self, start: int, stop: int, rng: rng_guard) -> Any:
        """Return the gaps of some pairs of one block."""
        if self.heartbeat is None and self.structure is not None and self.coordinate_gaps is None:
            block, offset = divmod(start, self.block)
            made = self.steps_of(block, rng)
            self._keep_answers(start, stop, made)
            return made.gaps[offset : offset + stop - start]
        found: list[float] = []
        for index in range(start, stop):
            if self.heartbeat is not None:
                self.heartbeat(index)
            gap = 0.0
            if self.structure is None:  # an entire dataset shows it
                gap = self._gap(index, self.pairs.pair_at(index), rng, True)
            if self.structure is not None and gap < math.inf:
                made = self.steps_of(index // self.block, rng)
                gap = float(made.gaps[index % self.block])
                self._keep_answers(index, index + 1, made)
                if self.coordinate_gaps is not None:
                    self.coordinate_gaps[index] = made.steps[index % self.block]
            found.append(gap)
        return found

    def rows(self, data: Any) -> NDArray[Any]:
        """Return the rows that are added up: one for each record."""
        count = records.count(data)
        rows: NDArray[Any] = self.summand.of(records.fresh(data))
        if len(rows) != count:
            raise OutputError(f"The function made {len(rows)} rows of {count} records.")
        rows = rows.reshape(count, -1)
        if rows.shape[1] != self.known_structure.size:
            raise StructureChanged("it makes rows of different lengths")
        return rows

    def steps_of(self, block: int, rng: rng_guard) -> Steps:
        """Evaluate all pairs of a block at once; the result for the last block is cached."""
        if self._steps is not None and self._steps[0] == block:
            return self._steps[1]
        drawn = self.pairs.records(block)
        rng.reseed()
        try:
            found = self.rows(drawn)
        except BaseException as error:
            self.reraise(error)
            found = self._one_by_one(block, rng)
        rows = found.astype(np.float64)
        with np.errstate(all="ignore"):
            steps = self.difference(rows)
        slack = self.slack(rows, exact=found.dtype.kind != "f")
        # If both records have the same rows, the two sums are exactly equal.
        measured = self.norm.gaps(steps) + np.where(steps.any(axis=1), slack, 0.0)
        made = Steps(rows, steps, slack, self.finite(measured, block * self.block))
        self._steps = (block, made)
        return made

    def difference(self, rows: Vector) -> Vector:
        """Return how far the output moves when a record is replaced by the one after it, for each two."""
        steps: Vector = rows[0::2] - rows[1::2]
        return steps / self.pairs.n if self.summand.average else steps

    def _keep_answers(self, start: int, stop: int, made: Steps) -> None:
        """Keep what is spread as answers are, for some pairs: a sum of n records is √(n/2) times its step."""
        for index in wanted_answers(self, start, stop):
            if made.gaps[index % self.block] < math.inf:
                self.answers[index] = made.steps[index % self.block] * math.sqrt(self.pairs.n / 2)

    def forget_steps(self) -> None:
        """Clear the cache, so that the last block is evaluated again."""
        self._steps = None

    def _one_by_one(self, block: int, rng: rng_guard) -> Vector:
        """Evaluate the pairs of a block one after the other: only those that fail are infinite."""
        found = np.full((2 * self.block, self.known_structure.size), np.nan)
        drawn = self.pairs.records(block)
        for offset in range(self.block):
            both = records.copy(self.pairs.both(drawn, offset))
            rng.reseed()
            try:
                found[2 * offset : 2 * offset + 2] = self.rows(both)
            except BaseException as error:
                self.failed(block * self.block + offset, error)
        return found

    def slack(self, rows: Vector, *, exact: bool) -> float:
        """Return how much rounding may add to the gap of two sums.

        A pairwise sum of n numbers is off by less than (log2(n) + 16) 2⁻⁵³ times the sum of their sizes,
        with what numpy adds up one after the other (16 numbers), the division and the conversion. There
        are two of them. The records of a dataset are taken to be as large as the largest of a block. Sums of
        integers below 2^53 are exact.
        """
        n = self.pairs.n
        largest = np.abs(rows).max(axis=0)
        if not np.isfinite(largest).all():
            largest = np.where(np.isfinite(rows), np.abs(rows), 0.0).max(axis=0)
        if exact and not self.summand.average and n * float(largest.max(initial=0.0)) < 2**53:
            return 0.0
        errors = 2 * (math.log2(n) + 16) * 2.0**-53 * largest * (1 if self.summand.average else n)
        if errors.size == 1 and self.norm.absolute:
            return 2 * float(errors[0])
        return self.norm.bound(errors)
