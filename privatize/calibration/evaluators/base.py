"""Evaluate pairs one after the other: on both neighbours, under the guard of the global generators."""

import contextlib
import copy
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from privatize.calibration import streams
from privatize.calibration.buffers import Pair
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import NeighbourSampler, repeater
from privatize.calibration.norms import Norm, Vector
from privatize.calibration.user_warnings import collected_warnings
from privatize.data import records
from privatize.errors import NotReproducibleError, OutputError, PairError
from privatize.execution.job import Cause, CauseKind, Heartbeat, Learned, Refused, Span, SpanResult
from privatize.identity.library import sources
from privatize.outputs.describe import describe, difference
from privatize.outputs.structure import Number, Structure, StructureChanged

Function = Callable[[Any], Any]
PairFunction = Callable[[Any, int, Any], tuple[Any, Any]]
Context = Callable[[], contextlib.AbstractContextManager[object]]
Waiting = list[tuple[int, Vector, Vector]]  # indices of pairs, and their outputs
# Gaps beyond this count as infinite: floats run out of digits there.
LARGEST = 1e300
# Blocks with fewer pairs are reseeded before every evaluation: checking for use would cost as much.
_FEW = 2
ANSWERS = 64
"""Of how many pairs the answers are kept, to show how far they are spread."""
MOST_NUMBERS = 10_000
"""Longer answers are not kept."""
_TOGETHER = 2**14  # numbers of outputs that wait until they are compared together
_NOT_FINITE = "the function returned values that are not finite, or beyond 1e300"


class _SharedOutput(Exception):  # noqa: N818 - a signal; users see a `PairError`
    """`pair=` returned one object twice."""


@dataclass(kw_only=True, eq=False)
class Evaluator:
    """Evaluates a function on both neighbours of pairs: every index yields its true gap, or infinity.

    Attributes
    ----------
    function, pairs, norm
        What is evaluated, on which neighbours, and how outputs are compared.
    s0 : int
        The public seed of the global generators.
    worker_context : callable
        Makes a context in which other processes evaluate the pairs.
    version, timeout
        See `privatize.execution.job.Job`.
    coordinate_gaps : dict or None
        By the index of a pair: how far each number of the output moves. None unless they are needed.
    answers : dict
        By the index of a pair: the numbers of the output.
    answers_every, answers_most : int
        Of which pairs these are kept, and of how many.
    structure : Structure or None
        Structure of the output, once one pair has worked.
    uses_global_rng : bool
        Whether the function has been seen to use the global generators.
    rounding_noise : float
        The largest difference by rounding that was seen between two evaluations of the same pair.
    cost : float
        Seconds that a pair takes, once that is known.
    warned : set
        Places in the code that have warned: see `collected_warnings`.
    cause, heartbeat
        Of the span that is being evaluated: why the first infinite gap is infinite, and what `evaluate` got.

    Examples
    --------
    >>> from privatize import samplers
    >>> from privatize.calibration.neighbours import NeighbourSampler
    >>> from privatize.calibration.norms import NORMS, Norm
    >>> pairs = NeighbourSampler(samplers.uniform(0, 1), n=100, seed=1)
    >>> evaluator = Evaluator(function=np.mean, pairs=pairs, norm=Norm(NORMS["l1"]), s0=5)
    >>> evaluator.evaluate((0, 3), evaluator.learned).gaps.round(4).tolist()
    [0.0024, 0.0044, 0.0018]
    """

    trusted: ClassVar[str] = ""
    """The option that computes the gaps, if they must be compared with plain evaluation afterwards."""
    together: ClassVar[bool] = False
    """Whether the pairs of a block are evaluated in one call."""

    function: Function
    pairs: NeighbourSampler
    norm: Norm
    s0: int
    worker_context: Context = contextlib.nullcontext
    version: str | None = None
    timeout: float | None = None
    coordinate_gaps: dict[int, Vector] | None = None
    answers_every: int = 1
    answers_most: int = ANSWERS
    structure: Structure | None = field(default=None, init=False)
    uses_global_rng: bool = field(default=False, init=False)
    rounding_noise: float = field(default=0.0, init=False)
    cost: float = field(default=math.inf, init=False)
    cause: Cause | None = field(default=None, init=False)
    heartbeat: Heartbeat | None = field(default=None, init=False)
    answers: dict[int, Vector] = field(default_factory=dict, init=False)
    warned: set[tuple[str, str, int]] = field(default_factory=set, init=False)
    _waiting: Waiting | None = field(default=None, init=False)  # while a block is evaluated

    def __post_init__(self) -> None:
        self.block = self.pairs.block

    def __getstate__(self) -> dict[str, Any]:
        # A copy, for example in another process, must not share what this one learns.
        wanted: dict[int, Vector] | None = None if self.coordinate_gaps is None else {}
        own = {"pairs": copy.copy(self.pairs), "cause": None, "coordinate_gaps": wanted, "answers": {}}
        return vars(self) | own | {"_waiting": None}

    def identity(self) -> dict[str, Any]:
        """Return what must be the same wherever the pairs are evaluated, by name."""
        pairs, target = self.pairs, self.pairs.target
        return {
            "version of numpy or of this library": [streams.SCHEME, np.__version__, sources()],
            "function": self.function,
            "sampler": pairs.sampler,
            "norm": self.norm.function,
            "pair=": None,
            "batch=": False,
            "seed": [pairs.n, pairs.seed, self.s0, target and target.to_json()],
        }

    @property
    def learned(self) -> Learned:
        """What has been learned about the function so far."""
        return Learned(self.structure, self.uses_global_rng)

    @property
    def known_structure(self) -> Structure:
        """The structure of the output, once a pair has worked."""
        if self.structure is None:
            raise AssertionError("No pair has worked.")  # callers check first
        return self.structure

    def learn(
        self,
        structure: Structure | None,
        rounding_noise: float = 0.0,
        largest: Mapping[int, Vector] | None = None,  # noqa: ARG002 - for a joint evaluator
    ) -> None:
        """Note what other processes or earlier calibrations have seen."""
        if self.structure is None:
            self.structure = copy.deepcopy(structure)  # without its classes, which may be different ones here
        self.rounding_noise = max(self.rounding_noise, rounding_noise)

    def follow(self, other: Self) -> None:
        """Note what another evaluator of the same function has seen: its datasets differ in P alone."""
        self.structure, self.uses_global_rng = copy.deepcopy(other.structure), other.uses_global_rng
        self.pairs.bytes, self.pairs.seconds, self.cost = other.pairs.bytes, other.pairs.seconds, other.cost

    # -- spans of pairs --

    def evaluate(self, span: Span, learned: Learned, heartbeat: Heartbeat | None = None) -> SpanResult:
        """Evaluate the pairs from one index up to another, with the global generators under guard.

        Parameters
        ----------
        span : tuple of int
            The first index, and the one after the last.
        learned : Learned
            What other pairs have shown.
        heartbeat : callable, optional
            Called with every index before its pair is evaluated. Workers pass it. With it an interrupt,
            which is not the user's, counts as a failure, and the caller's context is entered.
        """
        if self.structure != learned.structure:
            self.structure = copy.deepcopy(learned.structure)  # as in `learn`
        self.uses_global_rng = learned.uses_global_rng or self.uses_global_rng
        self.heartbeat = heartbeat
        context = contextlib.nullcontext() if heartbeat is None else self.worker_context()
        with context, rng_guard(self.s0) as rng, collected_warnings(self.warned) as found:
            return replace(self.gaps(span, rng), warned=found)

    def gaps(self, span: Span, rng: rng_guard) -> SpanResult:
        """Evaluate the pairs of a span, block by block."""
        began = time.perf_counter()
        self.cause = None
        found: list[Any] = []
        at, stop = span
        while at < stop:
            end = min((at // self.block + 1) * self.block, stop)
            found.append(self.evaluate_block(at, end, rng))
            at = end
        gaps = np.concatenate(found) if found else np.zeros(0)
        seconds, learned = time.perf_counter() - began, (self.structure, self.uses_global_rng)
        coordinates = self.coordinate_gaps or {}
        self.coordinate_gaps = None if self.coordinate_gaps is None else {}
        seen, self.answers = (coordinates, self.answers), {}
        try:  # a variable would make a circle: the cause refers to this frame, and this frame to its callers
            return SpanResult(span[0], gaps, seconds, *learned, self.cause, self.rounding_noise, *seen)
        finally:
            self.cause = None

    def evaluate_block(self, start: int, stop: int, rng: rng_guard) -> Any:
        """Return the gaps of some pairs of one block.

        Every evaluation must find the public seed unused. Reseeding each time costs more than
        evaluating a cheap function, so as long as the function has not been seen to use the
        generators, one check at the end of the block tells whether any evaluation did. If so, the
        block is evaluated again, and from then on generators are reseeded each time.
        """
        before = self.cause
        while True:
            always = True
            pairs = self.pairs.span(start, stop, self.heartbeat)
            found: list[float] = []
            waiting = self._waiting = []
            rng.reseed()
            for index in range(start, stop):
                reseed = self.uses_global_rng or self.structure is None or stop - start < _FEW
                always = always and reseed
                # A call of its own, so that the records are freed before the next are drawn.
                found.append(self._gap(index, next(pairs), rng, reseed))
                if waiting and len(waiting) * waiting[0][1].size >= _TOGETHER:
                    _compare(self, waiting, found, start)
            self._waiting = None
            if always or not rng.may_be_used():
                _compare(self, waiting, found, start)
                next(pairs, None)  # so that it notes where it stopped
                return found
            self.uses_global_rng = True
            self.cause = before

    # -- one pair --

    def _gap(self, index: int, pair: Pair, rng: rng_guard, reseed: bool) -> float:
        """Return the gap of one pair, infinity if anything went wrong, or NaN if it waits to be compared."""
        first = self.structure is None
        again = _repeater(self, index, pair)
        try:
            a, b = self.measured(pair, rng, reseed)
            waiting = self._waiting if self.norm.many and type(a) is not float else None
            gap = self.norm.gap(a, b) if waiting is None else math.nan
        except _SharedOutput:
            raise PairError("""pair= returned one and the same object as both values, so one of them was
                overwritten. Return two.""") from None
        except BaseException as error:
            described = self.structure is not None
            if first:  # only a pair that worked decides it
                self.structure = None
            if not isinstance(error, OutputError):
                return self.failed(index, error)
            if not described:
                raise
            return self.note(index, "output", "the function returned something that cannot be released")
        if first:
            self.uses_global_rng = self.uses_global_rng or rng.may_be_used()
            if self.heartbeat is not None:  # the check below does not count as the pair's time
                self.heartbeat(index)
            if again is not None:
                self._check_repeats(a, again(), rng)
        if waiting is not None:
            waiting.append((index, a, b))
            return gap
        if self.coordinate_gaps is not None:
            with np.errstate(all="ignore"):
                self.coordinate_gaps[index] = np.atleast_1d(a - b)
        return _noted(self, index, a, gap)

    def both(self, pair: Pair, rng: rng_guard, reseed: bool = True) -> tuple[Any, Any]:
        """Evaluate the function on both neighbours, each with the public seed, and return flat outputs."""
        one, other = self.pairs.use_up(pair)
        # Flattened at once: the function may return the same object both times.
        return self.evaluated(one, rng, reseed), self.evaluated(other, rng, reseed)

    measured = both  # the flat outputs whose difference counts

    def evaluated(self, data: Any, rng: rng_guard, reseed: bool = True) -> Any:
        """Evaluate the function on one dataset, with the public seed, and return its flat output."""
        if reseed:
            rng.reseed()
        return self.flat(self.function(data))

    def flat(self, value: Any) -> Any:
        """Return an output as a vector, or as a float if it is one number in an absolute norm."""
        structure = self.structure
        if structure is None:
            structure = self.structure = describe(value)
        return flattened(value, structure, number=self.norm.absolute)

    def _check_repeats(self, first: Any, again: Any, rng: rng_guard) -> None:
        """Evaluate the first dataset again, after its neighbour: caches, warm starts and randomness show.

        A difference by rounding alone is noted: libraries that sum in parallel (polars) round differently
        from run to run.
        """
        try:
            second = self.evaluated(again, rng)
        except KeyboardInterrupt:
            raise
        except BaseException:  # sys.exit() as well
            second = None
        if second is not None:
            if np.array_equal(first, second, equal_nan=True):
                return
            differ = self.norm.gap(first, second)
            if differ <= self.norm.slack(first, second):
                self.rounding_noise = max(self.rounding_noise, differ)
                return
        raise NotReproducibleError("""The function gave two different answers for identical data. Its
            randomness, if it has any, must come from `random`, `numpy.random`, torch's default generator, or
            a parameter named by coins=('rng',), which receives a seeded generator; it must not depend on
            earlier calls (caches, warm starts, counters, the time); and its rows must have an order (those of
            polars' group_by and unique have none: sort them).""")

    def outputs(self, index: int) -> tuple[Vector, Vector]:
        """Return the flat outputs on both neighbours of one pair, which is known to work."""
        # Its warnings are not shown: it has been evaluated before.
        with rng_guard(self.s0) as rng, collected_warnings(self.warned):
            a, b = self.both(self.pairs.pair_at(index), rng)
        return np.atleast_1d(a), np.atleast_1d(b)

    # -- failures --

    def reraise(self, error: BaseException) -> None:
        """Raise an error that is not a failure of the function; return for all others."""
        if isinstance(error, Refused) or (self.heartbeat is None and isinstance(error, KeyboardInterrupt)):
            raise error

    def failed(self, index: int, error: BaseException) -> float:
        """Note why a pair failed and return infinity; sys.exit() in a function is a failure as well."""
        self.reraise(error)
        if isinstance(error, StructureChanged):
            what = f"the function returned outputs of different structure: {error}"
            return self.note(index, "structure", what)
        if self.cause is None:
            cause = Cause.of(index, error)
            # In a worker as text at once: the exception's frames hold memory that the next pairs may need.
            self.cause = cause if self.heartbeat is None else cause.as_text()
        return math.inf

    def note(self, index: int, kind: CauseKind, what: str) -> float:
        """Note why a pair failed, if it is the first one, and return infinity."""
        if self.cause is None or index < self.cause.index:  # a pair that waited may come after a later one
            self.cause = Cause(index, kind, what)
        return math.inf

    def finite(self, gaps: Vector, start: int) -> Vector:
        """Return gaps, with infinity and a cause for those that are too large, or not a number."""
        wrong = np.flatnonzero(~(gaps <= LARGEST))
        if len(wrong):
            gaps[wrong] = self.note(start + int(wrong[0]), "not_finite", _NOT_FINITE)
        return gaps


def _repeater(evaluator: Evaluator, index: int, pair: Pair) -> Callable[[], Any] | None:
    """Return what makes the first dataset once more, to see that the function repeats itself; or None."""
    # The gaps of pair= are compared with plain evaluation later.
    if evaluator.structure is not None or evaluator.trusted == "pair=":
        return None
    return repeater(evaluator.pairs, index, pair.records)


def _compare(evaluator: Evaluator, waiting: Waiting, found: list[float], start: int) -> None:
    """Put the gaps of the pairs that wait into the list of gaps, and empty the list of those that wait.

    To compare the outputs of many pairs together takes much less time than one pair after the other.
    """
    if not waiting:
        return
    with np.errstate(all="ignore"):
        steps = np.array([a for _, a, _ in waiting]) - np.array([b for _, _, b in waiting])
    if evaluator.coordinate_gaps is not None:
        evaluator.coordinate_gaps |= {index: step for (index, *_), step in zip(waiting, steps, strict=True)}
    for (index, a, _), gap in zip(waiting, evaluator.norm.gaps(steps).tolist(), strict=True):
        found[index - start] = _noted(evaluator, index, a, gap)
    waiting.clear()


def _noted(evaluator: Evaluator, index: int, a: Any, gap: float) -> float:
    """Note what is wanted of a pair's output, and return its gap, or infinity if that is not finite."""
    if not gap <= LARGEST:
        return evaluator.note(index, "not_finite", _NOT_FINITE)
    if index % evaluator.answers_every == 0 and wanted_answers(evaluator, index, index + 1):
        evaluator.answers[index] = np.atleast_1d(a)
    return gap


@dataclass(kw_only=True, eq=False)
class PairedEvaluator(Evaluator):
    """Gets both outputs of a pair from the user's `pair=`."""

    trusted = "pair="
    pair: PairFunction

    def identity(self) -> dict[str, Any]:
        """Return what must be the same wherever the pairs are evaluated, by name."""
        return super().identity() | {"pair=": self.pair}

    def measured(self, pair: Pair, rng: rng_guard, reseed: bool = True) -> tuple[Any, Any]:
        """Return the flat outputs of `pair=`."""
        drawn, position = pair.records, pair.position
        n = self.pairs.n
        if reseed:
            rng.reseed()
        one, other = self.pair(records.fresh(records.head(drawn, n)), position, records.record(drawn, n))
        found = self.flat(one), self.flat(other)
        if one is other and not isinstance(one, int | float | np.generic):
            raise _SharedOutput
        return found


def wanted_answers(evaluator: Evaluator, start: int, stop: int) -> range:
    """Return the pairs of a span whose answers are kept, to show how far answers are spread."""
    every = evaluator.answers_every
    if evaluator.known_structure.size > MOST_NUMBERS:
        return range(0)
    return range(-(-start // every) * every, min(stop, every * evaluator.answers_most), every)


def answer(evaluator: Evaluator, index: int) -> Vector:
    """Return the flat output on the first dataset of one pair, which is known to work."""
    with rng_guard(evaluator.s0) as rng, collected_warnings(evaluator.warned):
        data = evaluator.pairs.use_up(evaluator.pairs.pair_at(index))[0]
        return np.atleast_1d(evaluator.evaluated(data, rng))


def flattened(value: Any, structure: Structure, *, number: bool) -> Any:
    """Return an output as a vector, or one number as a float; say what differs from the structure."""
    try:
        if number and isinstance(structure, Number):
            return structure.numbers(value)
        return structure.flatten(value, learn=True)
    except StructureChanged as error:
        raise StructureChanged(_difference(value, structure)) from error


def _difference(value: Any, structure: Structure) -> str:
    try:
        return difference(value, structure)
    except Exception:  # an output's own methods are anybody's code
        return "of another kind"
