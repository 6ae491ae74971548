"""Run a calibration: learn weights, evaluate missing pairs, save gaps, and stop if too many have failed."""

import contextlib
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privatize.calibration import capacity
from privatize.calibration.checks import check_drift, check_each, check_sums
from privatize.calibration.evaluators.base import ANSWERS, MOST_NUMBERS, Evaluator, answer
from privatize.calibration.evaluators.joint import JointEvaluator, own_largest, recall_largest
from privatize.calibration.evaluators.summed import SummedEvaluator
from privatize.calibration.neighbours import NeighbourSampler
from privatize.calibration.norms import Vector
from privatize.calibration.spread import Spread
from privatize.calibration.stress import Tried
from privatize.calibration.user_warnings import show
from privatize.display.figures import ended
from privatize.errors import ExecutionError, InfiniteSensitivityError, NotReproducibleError, PlanError
from privatize.execution.choose import executor
from privatize.execution.job import Cause, Refused, Span, SpanResult
from privatize.execution.progress import bar
from privatize.execution.span_queue import SpanQueue
from privatize.mechanisms.shapes import NONE, Shape
from privatize.outputs.structure import Structure
from privatize.planning.plan import Plan

_log = logging.getLogger("privatize.sensitivity")
_SAVED_EVERY = 0.5  # seconds between two writes to the store
_MOST_PAIRS = 10**8  # whose gaps take 800 MB
_FEW = 8  # answers that show how far they are spread
_MOST_CHARACTERS = 500  # of a cause that are stored
REMEMBERED = (
    "{name}, n={n}: the estimate was measured by another process, and in this one the function gives other "
    "answers for identical data. The order of a set of strings differs between processes (use sorted(...)), "
    "and so do hashes, ids, environment variables and machines. Keep that out of the function. If this "
    "process is right, forget({n}) has it measured again; with store=None nothing is remembered for others."
)
# What to do about a failure, by the kind of its cause.
REMEDIES = {
    "timed_out": "Raise timeout= (it counts for both neighbours of a pair together), then call forget().",
    "killed": "Is there enough memory for all workers? Use fewer workers=, then call forget().",
    "structure": (
        "The keys, labels, types and shapes of an answer are published as they are, so if they depend on the "
        "data they give it away. Return the same ones for every dataset: reindex to fixed categories "
        "(counts.reindex(CATEGORIES, fill_value=0)), sort rows, aggregate rows about single people, always "
        "float(...), define classes outside the function."
    ),
    "not_finite": (
        "An empty group's mean is NaN, and so are a sum with a missing value and the correlation of a "
        "constant column: fillna(...) or dropna() in the function, or another sampler."
    ),
}


@dataclass(frozen=True)
class Collector:
    """Where pairs are evaluated, and how progress is shown.

    Attributes
    ----------
    workers : int, "inline", "ray", Dask client, executor, or object with map, or None
        Where pairs are evaluated.
    progress : bool or None
        Whether to show a bar; by default if it takes long and stderr is a terminal or a notebook.
    label : str
        Name of the function.
    """

    workers: Any
    progress: bool | None
    label: str

    def collect(
        self, evaluator: Evaluator, missing: list[Span], total: int, take: Callable[[SpanResult], object]
    ) -> tuple[bool, bool]:
        """Evaluate some spans of all pairs, and call `take` with each result, in any order.

        Returns
        -------
        exact : bool
            Whether numbers are rounded there as in this process.
        elsewhere : bool
            Whether some of them were evaluated in another process.
        """
        timeout, pairs = evaluator.timeout, evaluator.pairs
        where = executor(capacity.fewer(self.workers, timeout, pairs.bytes), timeout)
        structure = evaluator.learned.structure
        known = (structure, pairs.seconds, evaluator.cost)
        queue = SpanQueue(missing, pairs.block, *known, together=evaluator.together)
        shown = bar(self.label, total, total - queue.left, self.progress)
        try:
            with shown as progress, contextlib.closing(where.run(evaluator, queue)) as results:
                for found in results:
                    take(found)
                    progress.update(len(found.gaps))
                    del found  # the exception of a failed pair refers to this frame
        except Refused as error:
            raise ExecutionError(f"""A worker refused {self.label}(): {error}. Make both sides the same, pass
                what it needs as an argument, or use workers='inline'.""") from error
        evaluator.cost = queue.cost
        return where.exact, queue.moved

    def gaps(self, evaluator: Evaluator, count: int) -> Vector:
        """Evaluate some pairs, and return all of their gaps in index order."""
        gaps = np.full(count, np.nan)

        def take(found: SpanResult) -> None:
            gaps[found.start : found.start + len(found.gaps)] = found.gaps

        self.collect(evaluator, [(0, count)], count, take)
        _refuse_missing(gaps)
        return gaps


@dataclass
class Memory:
    """What earlier calibrations with the same seed have measured, and how to save new gaps.

    Attributes
    ----------
    gaps : array
        Gaps in index order; NaN where there is none yet.
    structure : Structure or None
        The structure of the output.
    looks : list of Plan
        The plans read from these gaps, this one included, the first one first.
    save : callable
        ``save(start, gaps, structure)`` is called with new gaps, every now and then; with ``weights=`` if
        noise is divided among numbers.
    note : callable
        ``note(plan)`` is called before a further plan is read from the gaps.
    checked : int
        How many of the gaps belong to a calibration that was completed.
    jitter : float
        The largest difference by rounding that was seen between two runs of the function.
    weights : list of int or None
        How noise is divided among the output's numbers: an encoded `Shape`.
    agree : callable
        ``agree(weights)`` returns the weights that everybody with these gaps uses.
    spread : Spread or None
        How far answers are spread over datasets from P.
    cause : str
        Why the first of the failed pairs failed.
    tried : Tried or None
        The gaps of the stress test.
    elsewhere : bool
        Whether another process may have measured the gaps.
    largest : list of (int, float) or None
        Of many functions, each one's pair with its own largest gap, and that gap.
    """

    gaps: Vector = field(default_factory=lambda: np.zeros(0), repr=False)
    structure: Structure | None = None
    looks: list[Plan] = field(default_factory=list)
    save: Callable[..., object] = lambda *_, **__: None
    note: Callable[[Plan], object] = lambda _: None
    checked: int = 0
    jitter: float = 0.0
    weights: list[int] | None = None
    agree: Callable[[list[int]], list[int]] = list
    spread: Spread | None = None
    cause: str = ""
    tried: Tried | None = None
    elsewhere: bool = False
    largest: list[tuple[int, float]] | None = None


class Run:
    """One calibration: it evaluates the pairs whose gaps are not known yet, and checks them.

    Parameters
    ----------
    evaluator : Evaluator
        Evaluates pairs.
    plan : Plan
        How many pairs, and how many may fail.
    memory : Memory or None
        What is known already, and where to save new gaps.
    shape : Shape
        How noise is divided among numbers, which is saved with the gaps.
    order : Structure, optional
        The output's structure as the shape has it: keys of a dict may come in any order.
    drawn : NeighbourSampler, optional
        Pairs of the same P that a pilot has checked.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        plan: Plan,
        memory: Memory | None,
        shape: Shape = NONE,
        order: Structure | None = None,
        drawn: NeighbourSampler | None = None,
    ) -> None:
        if plan.m > _MOST_PAIRS:
            what = (
                f"m={plan.m} pairs are too many for one calibration: at most {_MOST_PAIRS} can be evaluated "
                f"and stored. Choose a larger gamma or rho, or fewer samples."
            )
            raise PlanError(what, gamma=plan.gamma, m=plan.m, bound=plan.bound)
        self.evaluator, self.plan, self.memory, self.shape = evaluator, plan, memory, shape
        self.answers: dict[int, Vector] = {}
        self.order, self.drawn = order, drawn
        evaluator.answers_every = max(1, plan.m // ANSWERS)
        self.known = np.full(plan.m, np.nan)
        self.failed = 0
        self.cause: Cause | None = None
        self._unsaved: list[Span] = []
        self._shown: set[tuple[str, str, int]] = set()  # places in the code that have warned
        self._saved = time.monotonic()

    def gaps(self, collector: Collector) -> Vector:
        """Return all m gaps, in index order; evaluate only those that are not known."""
        m, gaps, evaluator = self.plan.m, self.known, self.evaluator
        checked, elsewhere = self._recall()
        spans = _missing_spans(gaps)
        left = sum(stop - start for start, stop in spans)
        unchecked, remembered = checked < m - left, elsewhere and left < m
        if left or unchecked or remembered:
            evaluator.pairs.check(self.drawn)
        if remembered:
            self._check_remembered(collector.label)
        if not left:
            if unchecked and not remembered:  # this process was stopped before it had checked them
                self.check_again(exact=False, elsewhere=True)
            return gaps
        _log.debug("%s: %d of %d pairs to evaluate, n=%d", collector.label, left, m, evaluator.pairs.n)
        began = time.monotonic()
        try:
            exact, elsewhere = collector.collect(evaluator, spans, m, self._take)
        finally:  # also if it was interrupted, or failed
            self._save()
        # There are few failures. The exception refers to frames of callers, and these to this run: a circle.
        self.cause = self.cause and replace(self.cause, error=None)
        _refuse_missing(gaps)
        _log.debug("%s: done in %.3g s, %d failed", collector.label, time.monotonic() - began, self.failed)
        self.check_again(exact=exact and left == m, elsewhere=elsewhere or unchecked)
        return gaps

    def _recall(self) -> tuple[float, bool]:
        """Take what is remembered; tell how many gaps were checked, and whether another process has them."""
        memory = self.memory
        if memory is not None:
            self.evaluator.learn(memory.structure)
            if memory.structure is not None or not np.isfinite(memory.gaps).any():
                self.known[: len(memory.gaps)] = memory.gaps[: self.plan.m]
            self.failed = int(np.isinf(self.known).sum())
            self._refuse_early()
        if self.order is not None:  # the pilot has seen it, and has checked that the function repeats itself
            self.evaluator.learn(self.order)
        return (math.inf, False) if memory is None else (memory.checked, memory.elsewhere)

    def _check_remembered(self, name: str) -> None:
        """Refuse gaps of another process if the function computes something else in this one.

        It may depend on the order of a set of strings, on the hash or the address of something, or on the
        machine: nothing that a fingerprint shows. And it may do so for some records only, so several pairs
        are measured again; of many functions, also each one in the pair with its own largest gap.
        """
        known = None if self.memory is None else self.memory.largest
        # Somebody else may have written it: then there may not be one for each function.
        evaluator = self.evaluator
        if isinstance(evaluator, JointEvaluator) and len(known or ()) == len(evaluator.function.labels):
            recall_largest(evaluator, known or ())
        try:
            self.check_again(exact=False, elsewhere=True)
        except NotReproducibleError as error:
            text = REMEMBERED.format(name=getattr(error, "function", name), n=self.evaluator.pairs.n)
            raise NotReproducibleError(text, remembered=True) from None

    def check_again(self, *, exact: bool, elsewhere: bool) -> None:
        """Evaluate some pairs again; `pair=` and `batch=` are checked later, when the estimate is known."""
        if isinstance(self.evaluator, SummedEvaluator):
            check_sums(self.evaluator, self.known, exact=exact)
        elif not self.evaluator.trusted:
            check_drift(self.evaluator, self.known, exact=exact, elsewhere=elsewhere)
        if isinstance(self.evaluator, JointEvaluator):
            check_each(self.evaluator, exact=exact)
            if self.memory is not None:
                self.memory.largest = own_largest(self.evaluator)

    def spread(self) -> Spread | None:
        """Return how far answers are spread, remembered or from pairs that were evaluated now."""
        if self.memory is not None and self.memory.spread is not None:
            return self.memory.spread
        evaluator = self.evaluator
        if evaluator.known_structure.size > MOST_NUMBERS:
            return None
        # An earlier process was stopped before it could remember this: evaluate some pairs again.
        again = [] if len(self.answers) >= _FEW else np.flatnonzero(np.isfinite(self.known))[:_FEW].tolist()
        for index in (at for at in again if at not in self.answers):
            with contextlib.suppress(Exception):  # without it the estimate is what it is
                self.answers[index] = answer(evaluator, index)
        return Spread.of(self.answers, evaluator.known_structure)

    def first_cause(self) -> str:
        """Return why the first of the failed pairs failed, in a few words: it is remembered and shown."""
        known = "" if self.memory is None else self.memory.cause
        text = known or ("" if self.cause is None else self.cause.text)
        return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."

    def _take(self, found: SpanResult) -> None:
        """Add the gaps of a span, and stop if the estimate is already infinite."""
        start, stop = found.start, found.start + len(found.gaps)
        self.known[start:stop] = found.gaps
        self._unsaved.append((start, stop))
        self.evaluator.learn(found.structure, found.rounding_noise, found.coordinate_gaps)
        self.answers.update(found.answers)
        show(found.warned, self._shown)
        failed = int(np.isinf(found.gaps).sum())
        if failed:
            self.failed += failed
            if self.cause is None or (found.cause is not None and found.cause.index < self.cause.index):
                self.cause = found.cause
            self._refuse_early()
        if time.monotonic() >= self._saved + _SAVED_EVERY:
            self._save()

    def _save(self) -> None:
        """Save new gaps in the memory."""
        spans, self._unsaved = self._unsaved, []
        self._saved = time.monotonic()
        if self.memory is None:
            return
        more = {"weights": list(self.shape.encoded)} if self.shape.kind != "none" else {}
        for start, stop in _joined(spans):
            self.memory.save(start, self.known[start:stop], self.evaluator.learned.structure, **more)

    def _refuse_early(self) -> None:
        """Refuse when so many have failed that the estimate is infinite, whatever the others are."""
        plan, cause = self.plan, self.cause
        if self.failed <= plan.m - plan.k:
            return
        what = "not known, since they were evaluated earlier" if cause is None else cause.text
        done = plan.m - int(np.isnan(self.known).sum())
        text = (
            f"{self.failed} of the first {done} sampled pairs failed, and at most m-k={plan.m - plan.k} of "
            f"m={plan.m} may. The first cause: {ended(what)} {self._remedy()}"
        )
        error = InfiniteSensitivityError(text, failed=self.failed, m=plan.m, k=plan.k)
        raise error from (None if cause is None else cause.exception())

    def _remedy(self) -> str:
        if self.cause is not None and self.cause.kind in REMEDIES:
            return REMEDIES[self.cause.kind]
        if self.evaluator.trusted == "pair=":
            return "Make pair= work on all data that the sampler can draw."
        return (
            f"Make the function work on all data that the sampler can draw, or choose another sampler. "
            f"It gets {self.evaluator.pairs.schema or 'data'}, as in the call."
        )


def _refuse_missing(gaps: Vector) -> None:
    """Refuse gaps of which some are missing: a bound holds only if every pair counts."""
    if missing := int(np.isnan(gaps).sum()):
        raise ExecutionError(f"{missing} of {len(gaps)} pairs were not evaluated.")


def _missing_spans(gaps: Vector) -> list[Span]:
    """Return the spans of indices that have no gap yet.

    Examples
    --------
    >>> _missing_spans(np.array([np.nan, np.nan, 1.0, np.nan]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.isnan(gaps), prepend=False, append=False))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _joined(spans: list[Span]) -> list[Span]:
    """Return spans in order, with adjacent ones joined.

    Examples
    --------
    >>> _joined([(3, 5), (0, 3), (7, 8)])
    [(0, 5), (7, 8)]
    """
    ordered = np.array(sorted(spans), dtype=np.int64).reshape(-1, 2)
    parts = np.split(ordered, np.flatnonzero(ordered[1:, 0] != ordered[:-1, 1]) + 1)
    return [(int(part[0, 0]), int(part[-1, 1])) for part in parts if len(part)]
