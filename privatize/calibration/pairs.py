"""The pairs: neighbours drawn from P, evaluated on both sides, and measured.

Pair ``i`` is the same wherever and whenever it is evaluated: its records, the position that is
replaced and the coins that the function sees follow from the seed and ``i`` alone. Every index
yields exactly one value, its true gap or infinity.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import time
import traceback
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import capacity
from privatize.calibration import streams as coins
from privatize.calibration.batching import Batch, neighbours, refuse_coins, rows_of, stack_of
from privatize.calibration.streams import sources
from privatize.data import records
from privatize.data.schema import Schema
from privatize.errors import NotReproducibleError, OutputError, PairError, SamplerError
from privatize.execution.job import Cause, Heartbeat, Learned, Refused, Span, SpanResult, shown
from privatize.mechanisms.base import l1, l2, sizes, sup
from privatize.outputs import structure as outputs
from privatize.samplers import Sampler, draw
from privatize.samplers.base import traits_of

__all__ = ["LARGEST", "PairFunction", "Pairs"]

Vector = NDArray[np.float64]
Norm = Callable[[Vector], float]
PairFunction = Callable[[Any, int, Any], tuple[Any, Any]]

NORMS: dict[str, Norm] = {"l1": l1, "l2": l2, "sup": sup}
# How many pairs of `pair=` are evaluated plainly too: at random, and the largest gaps.
_CHECKED = 8
# How many pairs of a sum are, of each kind, on whole datasets; their records by themselves are for more.
_WHOLE = 10**6  # records of the datasets that a sum over records is looked at on, at most
_SUMMED = 2
# Gaps that are compared with those of records of whole datasets, and the probability of a false alarm.
_COMPARED, _ALARM = 500, 1e-9
_CHUNK = 2**18  # numbers that are drawn at once
_PIECE = 2**20  # gaps that are looked at together
_DATASETS = 2**40  # their streams, beyond those of pairs
_AHEAD = 16  # blocks whose streams are made together: half as long as one by one, between large arrays
# What the same sums in another order may differ by, relative to the outputs.
_SLACK = 2.0**-47
# By how much the same gap may differ between two evaluations, relative to the sensitivity.
ROUNDING = 2.0**-20
# Gaps beyond this count as infinite: floats run out of digits there.
LARGEST = 1e300
_STRUCTURE = "the function returned outputs of different structure"
_NOT_FINITE = "the function returned values that are not finite, or beyond 1e300"
_DISAGREES = "additive(...) disagrees with plain evaluation"
_DRIFTS = (
    "The function gave another answer for identical data at the end of the calibration than before. It must "
    "not depend on earlier calls (caches, warm starts, counters), the time, the process it runs in (library "
    "settings, patches, the order of a set of texts), or globals that change, nor use randomness for some "
    "data only."
)


@dataclass(frozen=True)
class _Steps:
    """What the pairs of one block do to a sum over records.

    Attributes
    ----------
    rows : array
        What the sum's function makes of their records: two rows for each pair. NaN where it fails.
    steps : array
        By how much each pair moves the output.
    room : float
        What rounding may add to a gap.
    gaps : array
        Their gaps.
    """

    rows: Vector
    steps: Vector
    room: float
    gaps: Vector


class Pairs:
    """A function, P and a seed: everything that the gaps of all pairs follow from.

    Examples
    --------
    >>> from privatize import samplers
    >>> pairs = Pairs(np.mean, n=100, sampler=samplers.uniform(0, 1), norm=l1, seed=1)
    >>> with coins.public_coins(pairs.s0) as flips:
    ...     found = pairs.gaps(0, 3, flips)
    >>> found.gaps.round(4).tolist()
    [0.0024, 0.0044, 0.0018]
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        n: int,
        sampler: Sampler,
        norm: Norm,
        seed: int,
        pair: PairFunction | None = None,
        batch: Batch = False,
        like: Schema | None = None,
        worker_context: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
        s0: int | None = None,
        whole: bool = False,
        version: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.function, self.n, self.sampler, self.norm = function, n, sampler, norm
        self.seed, self.pair, self.like, self.worker_context = seed, pair, like, worker_context
        self.version, self.timeout = version, timeout
        self.batch = batch
        self.s0 = coins.coin_seed(seed) if s0 is None else s0
        # On one number the library's own norms are the absolute value.
        mechanism = type(getattr(norm, "__self__", None)).__module__
        self.absolute = norm in NORMS.values() or mechanism.startswith("privatize.mechanisms")
        # What a sum over records adds up: then two records make a pair, if P surely draws them independently.
        alone = pair is None and not batch and not whole and traits_of(sampler).iid
        sums: Any = sys.modules.get(
            "privatize.calibration.additive"
        )  # where nobody has been there, nothing is one of them
        self.summed = sums.rows_of(function) if alone and sums is not None else None
        self.average = self.summed is not None and self.summed.average
        # How many records a whole dataset has: a sum over records is looked at on fewer, if n is huge.
        self.whole_n = n if self.summed is None else min(n, _WHOLE)
        self.bytes = 0  # of a dataset, about
        self.block = coins.block_size(n if self.summed is None else 1)  # how many pairs share a stream
        self.structure: list[Any] | None = None
        self.tossing = False
        self.kept: dict[int, Vector] | None = None  # gaps of all numbers, where they are wanted
        self.jitter = 0.0  # how much the same evaluation has been seen to differ, by rounding
        self.cause: Cause | None = None
        self.classes: dict[str, Any] = {}
        self.schema: Schema | None = None
        # Whether the datasets of a block can be drawn at once, as the same numbers.
        self.seamless = like is None and traits_of(sampler).streamable
        self.drawing = 0.0  # seconds that one pair takes to be drawn, once that is known
        self._wide: int | None = None  # how many numbers a pair has
        self._several = False  # whether a dataset is a tuple of aligned arrays
        self.fair: NDArray[np.int64] | None = None  # which gaps were not kept for their size, if some were
        self._spare: Any = None
        self._stacked: list[NDArray[Any]] = []
        self._foreseen: list[int] = []  # pairs that will be looked at again, in order, and their records
        self._seen: dict[int, tuple[Any, int]] = {}
        self._next: tuple[int, Any, NDArray[np.int64]] | None = None
        self._ahead: dict[int, tuple[np.random.Generator, NDArray[np.int64]]] = {}
        self._steps: tuple[int, _Steps] | None = None

    @property
    def together(self) -> bool:
        """Whether the pairs of a block are evaluated in one go."""
        return self.summed is not None or bool(self.batch)

    def identity(self) -> dict[str, Any]:
        """Return what must be the same wherever the pairs are evaluated, by name."""
        return {
            "version of numpy or of this library": [coins.SCHEME, np.__version__, sources()],
            "function": self.function,
            "sampler": self.sampler,
            "norm": self.norm,
            "pair=": self.pair,
            "batch=": self.batch,
            "seed": [self.n, self.seed, self.s0, self.like and self.like.to_json()],
        }

    def __getstate__(self) -> dict[str, Any]:
        # What a copy, in another process say, must have of its own.
        own: dict[str, Any] = {
            "kept": None if self.kept is None else {},
            "classes": {},
            "cause": None,
            "_spare": None,
            "_stacked": [],
            "_foreseen": [],
            "_seen": {},
            "_next": None,
            "_ahead": {},
            "_steps": None,
        }
        return vars(self) | own

    # -- drawing --

    def _draw(self, rng: np.random.Generator, count: int | None = None) -> Any:
        drawn = draw(self.sampler, self.whole_n + 1 if count is None else count, rng)
        return drawn if self.like is None else records.adopt(drawn, self.like)

    def check_sampler(self) -> None:
        """Draw twice from the same stream: a sampler must be a pure function of its generator."""
        self.bytes = capacity.footprint(self.sampler, self.whole_n + 1, coins.stream(self.seed, coins.CHECK))
        capacity.check("A calibration draws datasets of", self.n, self.bytes)
        one = self._draw(coins.stream(self.seed, coins.RECORDS))
        began = time.perf_counter()
        other = self._draw(coins.stream(self.seed, coins.RECORDS))
        self.drawing = time.perf_counter() - began  # the first one may pay for imports
        self.schema = records.describe(one)
        if not records.equal(one, other):
            raise NotReproducibleError(
                f"The sampler {self.sampler!r} drew different records from generators with the same seed. "
                f"It must use no randomness but the generator that it is given: draw(n, rng)."
            )
        del one, other  # four datasets may not fit where two do
        size = max(self.whole_n + 1, 1000)  # so many that they cannot be the same by chance
        one, other = (draw(self.sampler, size, coins.stream(self.seed, coins.CHECK, i)) for i in range(2))
        if records.equal(one, other):
            raise NotReproducibleError(
                f"The sampler {self.sampler!r} drew the same {size} records from two different generators. "
                f"Its randomness must come from the generator that it is given: draw(n, rng)."
            )

    def _streams(self, index: int) -> tuple[np.random.Generator, NDArray[np.int64]]:
        """Return the generator of a pair's records, and the replaced positions from it to its block's end."""
        block, offset = divmod(index, self.block)
        before, self._next = self._next, None
        if before is not None and before[0] <= index and before[0] // self.block == block:
            at, rng, positions = before  # go on from where the last ones ended
        else:
            at = index - offset
            rng, positions = self._ahead.pop(block) if block in self._ahead else self._made(block)
        if index > at and self.seamless:  # the pairs in between are drawn and let go
            for _ in self._in_chunks(rng, index - at):
                pass
            at = index
        for _ in range(index - at):
            self._draw(rng)
        return rng, positions[offset - self.block :]

    def _drawing(self, rng: np.random.Generator, count: int) -> Callable[[], Any]:
        """Return what gives the records of the next pairs, one after the other."""
        if not self.seamless or count == 1:
            return lambda: self._draw(rng)
        # Each is handed out once, and its own: what is done to it does not show in the others.
        return itertools.chain.from_iterable(self._in_chunks(rng, count)).__next__

    def _in_chunks(self, rng: np.random.Generator, count: int) -> Iterator[Any]:
        """Draw many pairs at once, but no more than fit into a few megabytes."""
        size = 1
        while count > 0:
            size = min(size, count)
            drawn = self._draw(rng, size * (self.n + 1))
            count -= size
            yield drawn.reshape(size, self.n + 1, *drawn.shape[1:])
            size = max(1, _CHUNK * size // drawn.size)

    def _made(self, block: int) -> tuple[np.random.Generator, NDArray[np.int64]]:
        """Return the generator of a block's records, and its replaced positions."""
        return coins.stream(self.seed, coins.RECORDS, block), self._positions(block)

    def _positions(self, block: int) -> NDArray[np.int64]:
        return coins.stream(self.seed, coins.POSITIONS, block).integers(self.n, size=self.block)

    def _pair_at(self, index: int) -> tuple[Any, int]:
        """Draw one pair by its index."""
        if self.summed is not None:
            return self._dataset_of(index)
        kept = self._seen.pop(index, None)  # once: the function may change it
        if kept is not None:
            return kept
        rng, positions = self._streams(index)
        drawn = self._draw(rng)
        if len(positions) > 1:  # whoever asks for one of the next goes on from here
            self._next = (index + 1, rng, positions[1:])
        return drawn, int(positions[0])

    def _neighbours(self, drawn: Any, position: int) -> tuple[Any, Any]:
        if type(drawn) is not np.ndarray or drawn.dtype.kind not in "biufcmMUS":
            return records.pair(drawn, position, self.whole_n)
        # The same, sooner: two arrays for all pairs, since giving memory back and getting it
        # again costs more than copying. Outputs are flattened before the next pair.
        spare, first = self._spare, drawn[: self.whole_n]
        if spare is None or spare[0].shape != first.shape or spare[0].dtype is not drawn.dtype:
            spare = self._spare = (np.empty(first.shape, drawn.dtype), np.empty(first.shape, drawn.dtype))
        one, other = spare
        one[...] = first
        other[...] = first
        other[position] = drawn[self.whole_n]
        return one, other

    # -- evaluating --

    def evaluate(self, span: Span, learned: Learned, heartbeat: Heartbeat | None = None) -> SpanResult:
        """Evaluate the pairs from one index up to another, with the global generators under guard.

        A `heartbeat` is given in workers, and called with every index before its pair is evaluated: there an
        interrupt is not the user's, and the caller's own contexts are to be entered first.
        """
        self.structure = learned.structure
        self.tossing = self.tossing or learned.uses_global_rng
        context = contextlib.nullcontext() if heartbeat is None else self.worker_context()
        with context, coins.public_coins(self.s0) as flips:
            return self.gaps(*span, flips, heartbeat)

    def gaps(
        self, start: int, stop: int, flips: coins.Coins, watch: Callable[[int], object] | None = None
    ) -> SpanResult:
        """Evaluate the pairs from one index up to another.

        Parameters
        ----------
        start, stop : int
            The indices.
        flips : Coins
            The public coins, which the caller has.
        watch : callable, optional
            Called with every index before its pair is evaluated. Given in workers, where an interrupt
            is not the user's.
        """
        began = time.perf_counter()
        found: list[Any] = []
        self.cause = None
        evaluate = (
            self._block_of_sums
            if self.summed is not None
            else self._block_of_stacks
            if self.batch and self.structure is not None  # it is seen on one pair
            else self._block
        )
        stacks = evaluate == self._block_of_stacks
        if stacks:
            flips.toss()
        at = start
        while at < stop:
            block = at // self.block
            end = min((block + 1) * self.block, stop)
            if stacks and block not in self._ahead:
                blocks = range(block, min(block + _AHEAD, -(-stop // self.block)))
                self._ahead = {each: self._made(each) for each in blocks}
            found.append(evaluate(at, end, flips, watch))
            at = end
        # Once for all blocks: a look takes as long as a small one of them.
        if stacks:
            refuse_coins(flips)
        if self.summed is not None:
            self.tossing = self.tossing or flips.moved()
        cause, self.cause = self.cause, None  # an exception's frames would keep callers' frames alive
        seconds = time.perf_counter() - began
        kept = {} if self.kept is None else self.kept
        self.kept = None if self.kept is None else {}
        gaps = np.concatenate(found) if found else np.zeros(0)
        return SpanResult(start, gaps, seconds, self.structure, self.tossing, cause, self.jitter, kept)

    def _block(
        self, start: int, stop: int, flips: coins.Coins, watch: Callable[[int], object] | None
    ) -> list[float]:
        """Return the gaps of some pairs of one block.

        Every evaluation must find the public coins untouched. Putting them back each time costs
        more than evaluating a cheap function, so as long as the function has not been seen to
        use them, one look at the end of the block tells whether any evaluation did; if so, the
        block is done again, with the coins put back each time from then on.
        """
        before = self.cause
        while True:
            untouched = True
            rng, positions = self._streams(start)
            take = self._drawing(rng, stop - start)
            found: list[float] = []
            flips.toss()
            for at, position in zip(range(start, stop), positions.tolist(), strict=False):
                tossing = self.tossing or self.structure is None or stop - start < 16
                untouched = untouched and tossing
                if watch is not None:
                    watch(at)
                # A call of its own, so that the records are let go before the next are drawn.
                found.append(self._gap(at, take(), position, flips, tossing, watch))
            if untouched or not flips.moved():
                if len(positions) > stop - start:
                    self._next = (stop, rng, positions[stop - start :])
                return found
            self.tossing = True
            self.cause = before

    def _gap(
        self,
        index: int,
        drawn: Any,
        position: int,
        flips: coins.Coins,
        tossing: bool,
        watch: Callable[[int], object] | None,
    ) -> float:
        """Return the gap of one pair: a finite number, or infinity if anything went wrong."""
        structure = self.structure
        shared = False
        value: Any = None
        if structure is None:
            again = records.fresh(records.copy(records.head(drawn, self.whole_n)))
        try:
            if self.pair is None:
                one, other = self._neighbours(drawn, position)
                if tossing:
                    flips.toss()
                value = self.function(one)
                if structure is None:
                    structure = outputs.describe(value)
                # At once: the function may return one and the same object again and again.
                a = self._flat(value, structure)
                if tossing:
                    flips.toss()
                value = self.function(other)
                b = self._flat(value, structure)
            else:
                if tossing:
                    flips.toss()
                value, neighbour = self.pair(
                    records.fresh(records.head(drawn, self.n)), position, records.record(drawn, self.n)
                )
                if structure is None:
                    structure = outputs.describe(value)
                shared = value is neighbour and not isinstance(value, int | float | np.generic)
                a = self._flat(value, structure)
                value = neighbour
                b = self._flat(value, structure)
            gap = self._norm(a, b)
            if self.kept is not None:
                with np.errstate(all="ignore"):
                    self.kept[index] = np.atleast_1d(np.abs(a - b))
        except outputs.StructureChanged:
            return self._failed(Cause(index, "structure", f"{_STRUCTURE}: {_difference(value, structure)}"))
        except Refused:
            raise
        except OutputError:
            if structure is None:
                raise
            return self._failed(
                Cause(index, "output", "the function returned something that cannot be released")
            )
        except BaseException as error:  # sys.exit() in a function is a failure of that pair
            if watch is None and isinstance(error, KeyboardInterrupt):
                raise
            if self.cause is None:
                cause = Cause.of(index, error)
                # In a worker as text at once: the exception's frames hold what the next pairs may need.
                self.cause = cause if watch is None else cause.plain()
            return math.inf
        if shared:
            raise PairError(
                "pair= returned one and the same object as both values, so one of them was overwritten. "
                "Return two."
            )
        if self.structure is None:
            self.tossing = flips.moved()
            self.structure = structure
            if watch is not None:  # what follows is not the pair's own time
                watch(index)
            self._check_function(a, again, flips)
        if gap <= LARGEST:
            return gap
        return self._failed(Cause(index, "not_finite", _NOT_FINITE))

    # -- many in one call --

    def _block_of_stacks(
        self, start: int, stop: int, flips: coins.Coins, watch: Callable[[int], object] | None
    ) -> Vector:
        """Return the gaps of some pairs of one block, evaluated as stacks of datasets."""
        found: list[Any] = []
        rng, positions = self._streams(start)
        size, at = 1 if self._wide is None else max(1, _CHUNK // self._wide), start
        while at < stop:
            count = min(size, stop - at)
            if watch is not None:
                watch(at)
            stack = self._stack(rng, count)
            self._wide = sum(part[0].size for part in stack)
            size = max(1, _CHUNK // self._wide)
            places = positions[at - start : at - start + count]
            self._keep(at, stack, places)
            gaps: Any = self._gaps_of(at, stack, places, watch)
            if isinstance(gaps, BaseException):
                refuse_coins(flips)
                # One after the other: only those that fail are infinite.
                error, gaps = gaps, self._block(at, at + count, flips, watch)
                self._next = None
                if max(gaps) < math.inf and isinstance(error, Exception):
                    _refuse_stacks(at, count, error)
            found.append(gaps)
            at += count
        if len(positions) > stop - start:
            self._next = (stop, rng, positions[stop - start :])
        return np.concatenate(found) if len(found) > 1 else np.asarray(found[0])

    def _stack(self, rng: np.random.Generator, count: int) -> tuple[NDArray[Any], ...]:
        if self.seamless:
            drawn = self._draw(rng, count * (self.n + 1))
            return (drawn.reshape(count, self.n + 1, *drawn.shape[1:]),)
        datasets = [self._draw(rng) for _ in range(count)]
        self._several = isinstance(datasets[0], tuple)
        return stack_of(datasets)

    def foresee(self, m: int) -> None:
        """Note which of m pairs `check_pair` will look at, if none of them fails.

        Those that are evaluated here are kept when they are drawn: to draw one alone takes half a block.
        """
        if self.batch and m <= _PIECE:
            self._foreseen = sorted(self._spread(np.zeros(m)))

    def _keep(self, start: int, stack: tuple[NDArray[Any], ...], positions: NDArray[np.int64]) -> None:
        """Keep the records of pairs that will be looked at again, if all of them take a few megabytes."""
        if len(self._foreseen) * (self._wide or 0) > 4 * _CHUNK:
            return
        low = bisect_left(self._foreseen, start)
        high = bisect_left(self._foreseen, start + len(positions))
        for index in self._foreseen[low:high]:
            parts = tuple(part[index - start].copy() for part in stack)
            drawn = parts if self._several else parts[0]
            self._seen[index] = drawn, int(positions[index - start])

    def _gaps_of(
        self,
        start: int,
        stack: tuple[NDArray[Any], ...],
        positions: NDArray[np.int64],
        watch: Callable[[int], object] | None,
    ) -> Vector | BaseException:
        """Return the gaps of a stack of pairs, or what was raised if it cannot be evaluated at once."""
        one, replaced = neighbours(stack, positions, self.n, self._stacked)
        try:
            a = self._evaluated(one, len(positions))
            b = self._evaluated(replaced(), len(positions))
        except Refused:
            raise
        except BaseException as error:  # whatever it is, plain evaluation will show what counts
            if watch is None and isinstance(error, KeyboardInterrupt):
                raise
            return error
        with np.errstate(all="ignore"):
            steps = a - b
        if self.kept is not None:
            self.kept |= {start + i: np.abs(step) for i, step in enumerate(steps)}
        return self._finite(self._norms(steps), start)

    def _finite(self, gaps: Vector, start: int) -> Vector:
        """Return gaps, with infinity and a cause for those that are too large, or not a number."""
        if not (gaps <= LARGEST).all():
            for at in np.flatnonzero(~(gaps <= LARGEST)).tolist():
                gaps[at] = self._failed(Cause(start + at, "not_finite", _NOT_FINITE))
        return gaps

    def _evaluated(self, stack: tuple[NDArray[Any], ...], count: int) -> Vector:
        """Return what the function of a stack makes of it, as rows."""
        batch: Any = self.function if self.batch is True else self.batch
        return rows_of(batch(stack if self._several else stack[0]), self.structure or [], count)

    def _failed(self, cause: Cause | None) -> float:
        self.cause = self.cause or cause
        return math.inf

    def _flat(self, value: Any, structure: list[Any]) -> Any:
        """Return an output as a vector, or as a float if that is all there is to measure."""
        if self.absolute and structure[0] in outputs.SCALARS:
            return outputs.number(value, structure)
        return outputs.flatten(value, structure, self.classes)

    def _norm(self, a: Any, b: Any) -> float:
        """Return the norm of a difference; infinity where it is not a number."""
        if type(a) is float:
            return float(abs(a - b))
        with np.errstate(all="ignore"):
            gap = float(self.norm(a - b))
        return gap if gap >= 0 else math.inf

    def _check_function(self, first: Vector | float, again: Any, flips: coins.Coins) -> None:
        """Evaluate A, B, A: caches, warm starts and hidden randomness show in the second A."""
        if self.pair is not None:
            return  # what it says is compared with plain evaluation afterwards
        flips.toss()
        try:
            second = self._flat(self.function(again), self.structure or [])
        except KeyboardInterrupt:
            raise
        except BaseException:  # sys.exit() as well
            second = None
        if second is None or not self._repeats(first, second):
            raise NotReproducibleError(
                "The function gave two different answers for identical data. Its randomness, if it has any, "
                "must come from `random`, `numpy.random`, torch's default generator, or a parameter named "
                "by coins=('rng',), which receives a seeded generator; it must not depend on earlier "
                "calls (caches, warm starts, counters, the time); and its rows must have an order (those of "
                "polars' group_by and unique have none: sort them)."
            )

    def _repeats(self, one: Vector | float, other: Vector | float) -> bool:
        """Tell whether two outputs for the same data are the same, but for rounding, which is noted.

        Libraries that sum in parallel (polars) round differently from run to run.
        """
        if np.array_equal(one, other, equal_nan=True):
            return True
        differ = self._norm(one, other)
        if not differ <= _SLACK * float(np.abs(one).sum() + np.abs(other).sum()):
            return False
        self.jitter = max(self.jitter, differ)
        return True

    def check_again(
        self, gaps: Vector, at: NDArray[np.int64] | None = None, *, exact: bool, elsewhere: bool = False
    ) -> None:
        """Measure the first pair and the one with the largest gap again, to find a function that drifts.

        They are measured in this process; wherever they were measured before, the gap must be the same. Other
        machines may round differently (not ``exact``). If pairs were measured ``elsewhere``, a few more are
        measured again, at random and those with the smallest gaps: a function may behave differently there on
        some data only, and gaps that are too small do harm. ``at`` has the indices of the gaps, if they are
        not all of them.
        """
        if self.pair is not None or self.batch:
            return  # `check_pair` compares more of them with plain evaluation
        if self.summed is not None:
            self._check_sums(gaps, at, exact)
            return
        worked = np.isfinite(gaps)
        if not worked.any():
            return
        chosen = {int(worked.argmax()), *_largest(gaps, 1)}
        if elsewhere:
            rng = coins.stream(self.seed, coins.CHECK, 2)
            chosen |= {*self._at_random(gaps, rng), *_smallest(gaps)}
        held = [self._spare, None]
        with coins.public_coins(self.s0) as flips:
            for i in sorted(chosen):
                # Other arrays than for the last pair: a function may have noted their ids.
                held[1], self._spare = self._spare, None
                one, other = self._neighbours(*self._pair_at(_index(at, i)))
                try:
                    flips.toss()
                    a = self._flat(self.function(one), self.structure or [])
                    flips.toss()
                    b = self._flat(self.function(other), self.structure or [])
                    gap = self._norm(a, b)
                except KeyboardInterrupt:
                    raise
                except BaseException:  # sys.exit() as well
                    gap, a, b = math.nan, 0.0, 0.0
                if gap == gaps[i]:
                    continue
                differ = abs(gap - float(gaps[i]))
                slack = _SLACK * float(np.abs(a).sum() + np.abs(b).sum())
                if differ <= slack or (not exact and _close(gap, float(gaps[i]), a, b)):
                    self.jitter = max(self.jitter, differ)
                else:
                    raise NotReproducibleError(_DRIFTS)

    # -- sums over records --

    def _dataset_of(self, index: int) -> tuple[Any, int]:
        """Return a whole dataset around the two records of a pair, drawn for the purpose, as `_draw` does."""
        block, offset = divmod(index, self.block)
        position = int(self._positions(block)[offset]) % self.whole_n
        both = self._both(self._records(block), offset)
        if self.n == 1:
            return both, 0
        others = self._draw(coins.stream(self.seed, coins.CHECK, 3 + index), self.whole_n - 1)
        order = np.arange(2, self.whole_n + 1)
        order = np.concatenate([order[:position], [0], order[position:], [1]])
        return records.take(records.concat([both, others]), order), position

    def _records(self, block: int) -> Any:
        return self._draw(coins.stream(self.seed, coins.RECORDS, block), 2 * self.block)

    def _both(self, drawn: Any, offset: int) -> Any:
        return records.take(drawn, np.array([2 * offset, 2 * offset + 1]))

    def _rows(self, data: Any) -> NDArray[Any]:
        """Return what is added up over records: one row for each."""
        count = records.count(data)
        # There are some, here.
        rows: NDArray[Any] = self.summed.of(records.fresh(data))  # type: ignore[union-attr]
        if len(rows) != count:
            raise OutputError(f"The function made {len(rows)} rows of {count} records.")
        rows = rows.reshape(count, -1)
        if rows.shape[1] != outputs.size(self.structure or []):
            raise outputs.StructureChanged
        return rows

    def _block_of_sums(
        self, start: int, stop: int, flips: coins.Coins, watch: Callable[[int], object] | None
    ) -> Vector | list[float]:
        """Return the gaps of some pairs of one block of a sum over records."""
        if watch is None and self.structure is not None and self.kept is None:
            block = start // self.block
            made = self._steps_of(block, flips, None)
            return made.gaps[start - block * self.block : stop - block * self.block]
        found: list[float] = []
        for at in range(start, stop):
            if watch is not None:
                watch(at)
            gap = 0.0
            if self.structure is None:  # it is seen on a whole dataset
                gap = self._gap(at, *self._pair_at(at), flips, True, watch)
            if self.structure is not None and gap < math.inf:
                made = self._steps_of(at // self.block, flips, watch)
                gap = float(made.gaps[at % self.block])
                if self.kept is not None:
                    self.kept[at] = np.abs(made.steps[at % self.block])
            found.append(gap)
        return found

    def _steps_of(self, block: int, flips: coins.Coins, watch: Callable[[int], object] | None) -> _Steps:
        """Evaluate all pairs of a block of a sum at once: pair i has the records 2i and 2i+1 of one draw."""
        if self._steps is not None and self._steps[0] == block:
            return self._steps[1]
        width = outputs.size(self.structure or [])
        drawn = self._records(block)
        flips.toss()
        try:
            found = self._rows(drawn)
        except Refused:
            raise
        except BaseException as error:
            if watch is None and isinstance(error, KeyboardInterrupt):
                raise
            found = self._one_by_one(block, width, flips, watch)
        whole = found.dtype.kind != "f"
        rows = found.astype(np.float64)
        with np.errstate(all="ignore"):
            steps = rows[0::2] - rows[1::2]
            if self.average:
                steps /= self.n
        room = self._room(rows, whole)
        # The same rows in the same places are added up to the same sums.
        measured = self._norms(steps) + np.where(steps.any(axis=1), room, 0.0)
        made = _Steps(rows, steps, room, self._finite(measured, block * self.block))
        self._steps = (block, made)
        return made

    def _norms(self, steps: Vector) -> Vector:
        """Return the norms of many differences; infinity where one is not a number."""
        # By its name at this moment: weights come to it when they have been learned.
        name = _known_name(self.norm) if self.absolute else ""
        if name in NORMS and steps.shape[1] == 1:  # the same, sooner
            found: Any = np.abs(steps[:, 0])
            return np.where(found >= 0, found, math.inf)
        with np.errstate(all="ignore"):
            found = sizes(name, steps)
            if found is None:
                found = np.array([float(self.norm(step)) for step in steps])
            return np.where(found >= 0, found, math.inf)

    def _one_by_one(
        self, block: int, width: int, flips: coins.Coins, watch: Callable[[int], object] | None
    ) -> Vector:
        """Evaluate the pairs of a block one after the other: only those that fail are infinite."""
        found = np.full((2 * self.block, width), np.nan)
        drawn = self._records(block)
        for at in range(self.block):
            index = block * self.block + at
            both = records.copy(self._both(drawn, at))
            flips.toss()
            try:
                found[2 * at : 2 * at + 2] = self._rows(both)
            except Refused:
                raise
            except outputs.StructureChanged:
                self._failed(Cause(index, "structure", f"{_STRUCTURE}: it makes rows of different lengths"))
            except BaseException as error:
                if watch is None and isinstance(error, KeyboardInterrupt):
                    raise
                if self.cause is None:
                    cause = Cause.of(index, error)
                    self.cause = cause if watch is None else cause.plain()
        return found

    def _room(self, rows: Vector, whole: bool) -> float:
        """Return what rounding may add to the gap of two sums.

        A pairwise sum of n numbers is off by less than (log2(n) + 16) 2⁻⁵³ times the sum of their sizes,
        with what numpy adds up one after the other (16 numbers), the division and the conversion. There
        are two of them. For the sizes of the records of a dataset stand the largest ones of a block. Of
        norms, there are those that grow with every size, and half the range of differences: they take
        these errors with equal signs, or with different ones. Sums of whole numbers below 2^53 are exact.
        """
        largest = np.abs(rows).max(axis=0)
        if not np.isfinite(largest).all():
            largest = np.where(np.isfinite(rows), np.abs(rows), 0.0).max(axis=0)
        if whole and not self.average and self.n * float(largest.max(initial=0.0)) < 2**53:
            return 0.0
        errors = 2 * (math.log2(self.n) + 16) * 2.0**-53 * largest * (1 if self.average else self.n)
        if errors.size == 1 and self.absolute:
            return 2 * float(errors[0])
        signs = np.where(np.arange(errors.size) % 2, -1.0, 1.0)
        return float(self._norms(np.stack([errors, signs * errors])).sum())

    def _check_sums(self, gaps: Vector, at: NDArray[np.int64] | None, exact: bool) -> None:
        """Compare the gaps of a sum with plain evaluation, at random and on the largest, and once more.

        What a sum adds up must follow from each record alone, or the other records and their number
        change it, and two records do not tell how far the sum moves.
        """
        failed = len(gaps) - int(np.isfinite(gaps).sum())
        if failed:  # the share of pairs is not that of datasets, which have n records
            raise PairError(
                f"The function that is added up over records fails, or is not finite, on {failed} of "
                f"{len(gaps)} pairs of sampled records, and the sum fails on every dataset of n={self.n} "
                f"records that has such a one. Have it return a number for every record that the sampler can "
                f"draw, or leave additive(...) out.",
                failed=failed,
            )
        rng = coins.stream(self.seed, coins.CHECK, 2)
        largest = _largest(gaps, _CHECKED)
        at_random = self._at_random(gaps, rng)
        whole = np.union1d(largest[:_SUMMED], at_random[:_SUMMED]).tolist()
        self._steps = None
        with coins.public_coins(self.s0) as flips:
            for place in np.union1d([*largest, *_smallest(gaps)], at_random).astype(int).tolist():
                i, gap = _index(at, place), float(gaps[place])
                made = self._steps_of(i // self.block, flips, None)
                again = float(made.gaps[i % self.block])
                if again != gap and (exact or not abs(again - gap) <= 1e-6 * gap + made.room):
                    raise NotReproducibleError(_DRIFTS)
                if place in whole:
                    pair = self._pair_at(i)
                    self._check_step(i, made, flips, pair)
                else:
                    pair = self._both(self._records(i // self.block), i % self.block), 0
                self._check_rows(i, made, flips, pair, rng)
            self._check_law(gaps, made.room, flips, rng)

    def _check_rows(
        self, index: int, made: _Steps, flips: coins.Coins, pair: tuple[Any, int], rng: np.random.Generator
    ) -> None:
        """Refuse a sum whose rows depend on other records, on their places, or on their number."""
        drawn, position = pair
        last = records.count(drawn) - 1
        offset = 2 * (index % self.block)
        some = rng.permutation(last)[: max(1, last // 2)]  # in another order
        which = [np.arange(last + 1), np.array([position]), np.array([last]), some]
        found = []
        for places in which:
            flips.toss()
            rows = self._checked(index, self._rows, records.take(drawn, places))
            exact = rows.dtype.kind != "f"
            found.append(rows.astype(np.float64))
        whole, alone, replaced, half = found
        # A dataset may have larger records than a block has: what rounding adds to its sum then is noted.
        room = self._room(whole, exact)
        if room > 2 * made.room:
            self.jitter = max(self.jitter, room)
        with np.errstate(all="ignore"):
            # What may round differently, and what would not matter if it did more.
            slack = _SLACK * np.abs(whole) + 1e-9 * np.abs(whole[position] - whole[last])
            same = all(
                bool((np.abs(whole[places] - rows) <= slack[places]).all())
                for places, rows in (
                    (position, made.rows[offset]),
                    (last, made.rows[offset + 1]),
                    (position, alone[0]),
                    (last, replaced[0]),
                    (some, half),
                )
            )
        if not same:
            raise PairError(
                f"{_DISAGREES}: for sampled pair {index} the function that is added up over records gives a "
                f"record another number by itself than among others. It must follow from the record alone, "
                f"and not from the other ones (their mean, ranks or number), its place or the global random "
                f"generators. Fix it, or leave additive(...) out.",
                index=index,
            )

    def _check_step(self, index: int, made: _Steps, flips: coins.Coins, pair: tuple[Any, int]) -> None:
        """Refuse a sum whose step for a pair is not that of the real function."""
        one, other = self._neighbours(*pair)
        structure = self.structure or []
        values = []
        for data in (one, other):
            flips.toss()
            flat = self._checked(index, lambda d: outputs.flatten(self.function(d), structure), data)
            values.append(flat)
        # One record moves a mean of fewer records farther.
        times = self.n / self.whole_n if self.average else 1.0
        claimed = float(made.gaps[index % self.block]) * times
        step = made.steps[index % self.block] * times
        plain = self._norm(values[0], values[1])
        off = self._norm(values[0] - values[1], step)
        if not off <= 1e-6 * claimed + made.room:  # more than that disproves the room for rounding
            raise PairError(
                f"{_DISAGREES}: for sampled pair {index} two records give the gap {claimed:.6g}, and running "
                f"the function on both neighbours gives {plain:.6g}. The function that is added up must "
                f"follow from each record alone. Fix it, or leave additive(...) out.",
                index=index,
                pair=claimed,
                evaluated=plain,
            )

    def _checked(self, index: int, evaluate: Callable[[Any], Any], data: Any) -> Any:
        try:
            return evaluate(records.copy(data))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() as well
            raise PairError(
                f"{_DISAGREES}: on a dataset around sampled pair {index} the function fails, or returns an "
                f"output of another structure. Have it return one row of numbers for every record that the "
                f"sampler can draw, or leave additive(...) out.",
                index=index,
            ) from error

    def _check_law(self, gaps: Vector, room: float, flips: coins.Coins, rng: np.random.Generator) -> None:
        """Refuse a sampler that draws other records for a dataset than for the pairs, or in an order.

        By the distribution of gaps: both samples keep within the bound of Dvoretzky, Kiefer and Wolfowitz.
        """
        rows: list[NDArray[Any]] = []
        count = 0
        while count < 2 * _COMPARED:
            drawn = self._draw(coins.stream(self.seed, coins.CHECK, _DATASETS + len(rows)))
            flips.toss()
            some = rng.permutation(self.whole_n + 1)[: 2 * _COMPARED - count]
            rows.append(self._checked(0, self._rows, drawn)[some])
            count += len(some)
        found = np.concatenate(rows).astype(np.float64)
        steps = found[0::2] - found[1::2]
        if self.average:
            steps /= self.n
        fair = gaps if self.fair is None else gaps[self.fair]
        ours, there = np.sort(fair[:_COMPARED]), np.sort(self._norms(steps))
        # Beyond what rounding adds to ours: where many gaps are the same they must count together.
        at = np.concatenate([ours, there]) * (1 + 1e-6) + 8 * room
        shares = [np.searchsorted(sample, at, side="right") / len(sample) for sample in (ours, there)]
        limit = sum(math.sqrt(math.log(4 / _ALARM) / (2 * len(sample))) for sample in (ours, there))
        distance = float(np.abs(shares[0] - shares[1]).max())
        if distance > limit:
            raise SamplerError(
                f"{self.sampler!r} draws other records when it is asked for {self.whole_n + 1} of them "
                f"than for {2 * self.block}, or its records depend on their order: the distributions of "
                f"their gaps differ by {distance:.3g}. Records must be independent of each other and of how "
                f"many there are."
            )

    # -- looking again --

    def outputs(self, index: int) -> tuple[Vector, Vector]:
        """Return the flat outputs on both neighbours of one pair, which is known to work."""
        one, other = self._neighbours(*self._pair_at(index))
        structure = self.structure or []
        with coins.public_coins(self.s0) as flips:
            flips.toss()
            a = outputs.flatten(self.function(one), structure, self.classes)
            flips.toss()
            return a, outputs.flatten(self.function(other), structure, self.classes)

    def learn_classes(self, gaps: Vector, at: NDArray[np.int64] | None = None) -> None:
        """Meet the classes in the output, if there are any and it was evaluated elsewhere or earlier."""
        if self.classes or not outputs.has_classes(self.structure or []):
            return
        with coins.public_coins(self.s0) as flips:
            flips.toss()
            worked = int(np.isfinite(gaps).argmax())
            one, _ = self._neighbours(*self._pair_at(_index(at, worked)))
            self._flat(self.function(one), self.structure or [])

    def check_pair(self, gaps: Vector, value: float, at: NDArray[np.int64] | None = None) -> None:
        """Compare `pair=` or `batch=` with plain evaluation, on random indices and on the largest gaps.

        They may differ by rounding, by little relative to the ``value`` that was read from the gaps.
        """
        which = "batch=" if self.pair is None else "pair="
        chosen = np.union1d([*self._spread(gaps), *_smallest(gaps)], _largest(gaps, _CHECKED))
        with coins.public_coins(self.s0) as flips:
            for place in chosen.astype(int).tolist():
                i = _index(at, place)
                one, other = self._neighbours(*self._pair_at(i))
                flips.toss()
                a = self._plain(one, i)
                flips.toss()
                b = self._plain(other, i)
                plain, claimed = self._norm(a, b), float(gaps[place])
                # Gaps beyond the sensitivity may differ by as much, relative to themselves.
                differ = abs(plain - claimed) * min(1.0, value / max(plain, claimed, value))
                if not _close(plain, claimed, a, b) or differ > ROUNDING * value:
                    raise PairError(
                        f"{which} disagrees with plain evaluation: for sampled pair {i} it gives the gap "
                        f"{claimed:.6g}, and running the function on both neighbours gives {plain:.6g}. The "
                        f"difference of {abs(plain - claimed):.3g} is more than rounding may make for a "
                        f"sensitivity of {value:.3g}. Fix it, or leave {which} out.",
                        index=i,
                        pair=claimed,
                        evaluated=plain,
                    )
                self.jitter = max(self.jitter, differ)

    def _spread(self, gaps: Vector) -> list[int]:
        """Return the places of some finite gaps for `check_pair`."""
        # A stack is cheap to compare with, and easily wrong for some of its datasets only.
        most = 4 * _CHECKED if self.batch else _CHECKED
        return self._at_random(gaps, coins.stream(self.seed, coins.CHECK), most)

    def _at_random(self, gaps: Vector, rng: np.random.Generator, most: int = _CHECKED) -> list[int]:
        """Return places of some finite gaps, chosen without regard to their size."""
        finite = np.isfinite(gaps)
        if self.fair is None and len(gaps) > _PIECE:  # a list of all places would take as much as the gaps
            places = np.unique(rng.integers(len(gaps), size=100 * most))
            places = rng.permutation(places[finite[places]])
        else:
            places = np.flatnonzero(finite) if self.fair is None else self.fair[finite[self.fair]]
        found: list[int] = rng.choice(places, min(most, len(places)), replace=False).tolist()
        return found

    def _plain(self, data: Any, index: int) -> Vector:
        try:
            return outputs.flatten(self.function(data), self.structure or [], self.classes)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() as well
            raise PairError(
                f"{'batch=' if self.pair is None else 'pair='} disagrees with plain evaluation: the function "
                f"fails on sampled pair {index}, "
                f"or returns an output of another structure.",
                index=index,
            ) from error


def _refuse_stacks(index: int, count: int, error: Exception) -> None:
    """Refuse a `batch=` that does not work where the function does; unless there was not enough memory."""
    if isinstance(error, MemoryError):
        return
    what = (
        f"returns something else than a stack of {count} outputs, which is one output with one more axis in "
        f"front, or the same keys or parts with such stacks in them"
        if isinstance(error, outputs.StructureChanged)
        else f"raises {shown(traceback.format_exception_only, error).strip()}"
    )
    raise PairError(
        f"batch= {what}, for a stack of {count} datasets from sampled pair {index} on, and the function "
        f"works on each of them. Fix it, or leave batch= out.",
        index=index,
    ) from error


def _smallest(gaps: Vector) -> list[int]:
    """Return the places of the two smallest finite gaps."""
    return _largest(gaps, 2, sign=-1.0)


def _largest(gaps: Vector, count: int, sign: float = 1.0) -> list[int]:
    """Return the places of the largest finite gaps, the largest first; by pieces, which need little memory.

    Examples
    --------
    >>> _largest(np.array([1.0, 5.0, np.inf, 3.0]), 2)
    [1, 3]
    """
    kept = np.zeros(0, dtype=np.int64)
    for start in range(0, len(gaps), _PIECE):
        piece = gaps[start : start + _PIECE]
        places = np.concatenate([kept, start + np.flatnonzero(np.isfinite(piece))])
        if len(places) > count:  # a selection, so that few are left to be sorted
            values = sign * gaps[places]
            places = places[values >= np.partition(values, -count)[-count]]
        kept = places[np.argsort(sign * gaps[places], kind="stable")[-count:]]
    found: list[int] = kept[::-1].tolist()
    return found


def _index(at: NDArray[np.int64] | None, place: int) -> int:
    return place if at is None else int(at[place])


def _known_name(norm: Any) -> str:
    """Return the name of one of the library's own norms."""
    for name, known in NORMS.items():
        if norm is known:
            return name
    return str(getattr(getattr(norm, "__self__", None), "norm_name", ""))


def _difference(value: Any, structure: list[Any] | None) -> str:
    try:
        return outputs.difference(value, structure or [])
    except Exception:  # an output's own methods are anybody's code
        return "of another kind"


def _close(one: float, other: float, a: Any, b: Any) -> bool:
    """Tell whether two gaps, computed in two ways, differ by no more than rounding, in gap and values."""
    with np.errstate(over="ignore"):
        slack = 1e-6 * max(one, other) + _SLACK * float(np.abs(a).sum() + np.abs(b).sum())
    return one == other or abs(one - other) <= slack < math.inf
