"""Evaluate many datasets in one call: a stack of them goes in, and rows of numbers come out."""

import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.evaluators.base import Evaluator, wanted_answers
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import Stack
from privatize.calibration.norms import Vector
from privatize.errors import PairError, SettingsError
from privatize.execution.job import Span, SpanResult, shown
from privatize.outputs.structure import StructureChanged

Batch = bool | Callable[..., Any]


def check_batch(batch: Any, **others: Any) -> None:
    """Refuse a `batch=` that is neither a bool nor a function, and settings that do not go with it."""
    if not isinstance(batch, bool) and not callable(batch):
        raise SettingsError(f"""batch={batch!r} is not True, False, or a function of a stack of datasets,
            which is an array with one more axis in front.""")
    for name, given in others.items():
        if batch and given:
            raise SettingsError(f"""batch= and {name}= do not go together: batch= evaluates many datasets in
                one call. Leave one of them out.""")


@dataclass(kw_only=True, eq=False)
class BatchedEvaluator(Evaluator):
    """Runs the user's `batch=` on stacks of datasets, and the function itself where that fails."""

    trusted = "batch="
    together = True
    batch: Batch
    _stacked: bool = field(default=False, init=False)
    _stop: int = field(default=0, init=False)
    _buffers: list[NDArray[Any]] = field(default_factory=list, init=False)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_buffers": []}

    def identity(self) -> dict[str, Any]:
        """Return what must be the same wherever the pairs are evaluated, by name."""
        return super().identity() | {"batch=": self.batch}

    def gaps(self, span: Span, rng: rng_guard) -> SpanResult:
        """Evaluate the pairs of a span in stacks, once the structure of the output has been seen on one."""
        self._stacked, self._stop = self.structure is not None, span[1]
        rng.reseed()
        found = super().gaps(span, rng)
        if self._stacked:  # once for all blocks: it takes as long as a small block
            _refuse_use(rng)
        return found

    def evaluate_block(self, start: int, stop: int, rng: rng_guard) -> Any:
        """Return the gaps of some pairs of one block."""
        if not self._stacked:
            return super().evaluate_block(start, stop, rng)
        self.pairs.prepare(start // self.block, self._stop)
        found: list[Any] = []
        for at, stack, positions in self.pairs.stacks(start, stop, self.heartbeat):
            gaps: Any = self._measure(at, stack, positions)
            if isinstance(gaps, BaseException):
                _refuse_use(rng)
                # Evaluate the pairs one after the other, so that only those that fail are infinite.
                error, count = gaps, len(positions)
                gaps = super().evaluate_block(at, at + count, rng)
                if max(gaps) < math.inf and isinstance(error, Exception):
                    _refuse_batch(at, count, error)
            found.append(gaps)
        return np.concatenate(found)

    def _measure(self, start: int, stack: Stack, positions: NDArray[np.int64]) -> Vector | BaseException:
        """Return the gaps of a stack of pairs, or what was raised if it cannot be evaluated at once."""
        count, n = len(positions), self.pairs.n
        # The first datasets are copies, since the function may change what it gets. Their memory is reused,
        # since allocating it takes as long as drawing.
        wanted = [(part[:, :n].shape, part.dtype) for part in stack]
        if [(each.shape, each.dtype) for each in self._buffers] != wanted:
            self._buffers = [np.empty(shape, dtype) for shape, dtype in wanted]
        for buffer, part in zip(self._buffers, stack, strict=True):
            np.copyto(buffer, part[:, :n])
        try:
            a = self._rows(tuple(self._buffers), count)
            for part in stack:
                part[np.arange(count), positions] = part[:, n]
            b = self._rows(tuple(part[:, :n] for part in stack), count)
        except BaseException as error:  # plain evaluation will show which pairs fail
            self.reraise(error)
            return error
        with np.errstate(all="ignore"):
            steps = a - b
        if self.coordinate_gaps is not None:
            self.coordinate_gaps |= {start + i: step for i, step in enumerate(steps)}
        gaps = self.finite(self.norm.gaps(steps), start)
        for index in wanted_answers(self, start, start + count):
            if gaps[index - start] < math.inf:
                self.answers[index] = a[index - start].copy()
        return gaps

    def _rows(self, stack: Stack, count: int) -> Vector:
        """Return the outputs for a stack of datasets, as rows."""
        batch: Any = self.function if self.batch is True else self.batch
        return self.known_structure.rows(batch(stack if self.pairs.aligned else stack[0]), count)


def _refuse_use(rng: rng_guard) -> None:
    """Refuse a `batch=` that has used the global generators since the last reseeding."""
    if rng.used():
        raise PairError("""batch= evaluates many datasets in one call, and the function uses the global random
            generators, so each dataset would get other random numbers than by itself. Leave batch= out.""")


def _refuse_batch(index: int, count: int, error: Exception) -> None:
    """Refuse a `batch=` that does not work where the function does; unless there was not enough memory."""
    if isinstance(error, MemoryError):
        return
    what = f"raises {shown(traceback.format_exception_only, error).strip()}"
    if isinstance(error, StructureChanged):
        what = f"""returns something else than a stack of {count} outputs, which is one output with one more
            axis in front, or the same keys or parts with such stacks in them"""
    text = f"""batch= {what}, for a stack of {count} datasets from sampled pair {index} on, and the function
        works on each of them. Fix it, or leave batch= out."""
    raise PairError(text, index=index) from error
