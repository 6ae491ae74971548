"""The pairs: neighbours drawn from P, evaluated on both sides, and measured.

Pair ``i`` is the same wherever and whenever it is evaluated: its records, the position that is
replaced and the coins that the function sees follow from the seed and ``i`` alone. Every index
yields exactly one value, its true gap or infinity.
"""

from __future__ import annotations

import contextlib
import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize import coins, outputs, records
from privatize.errors import NotReproducibleError, OutputError, PairError
from privatize.mechanisms.base import l1, l2, sup
from privatize.samplers import Sampler, draw

__all__ = ["LARGEST", "Cause", "Found", "PairFunction", "Pairs", "Refused"]

Vector = NDArray[np.float64]
Norm = Callable[[Vector], float]
PairFunction = Callable[[Any, int, Any], tuple[Any, Any]]

NORMS: dict[str, Norm] = {"l1": l1, "l2": l2, "sup": sup}
# How many pairs of `pair=` are evaluated plainly too: at random, and the largest gaps.
_CHECKED = 8
# What the same sums in another order may differ by, relative to the outputs.
_SLACK = 2.0**-47
# Gaps beyond this count as infinite: floats run out of digits there.
LARGEST = 1e300
STRUCTURE = "the function returned outputs of different structure"


class Refused(BaseException):
    """What arrived in this process is not what was sent.

    A signal between rooms. Not an Exception, which the user's functions might swallow.
    """


class Elsewhere(Exception):  # noqa: N818 - it shows what happened in another process
    """What a function raised in another process, as text."""

    def __str__(self) -> str:
        return "in another process:\n\n" + str(self.args[0])


@dataclass(frozen=True)
class Cause:
    """Why a pair counts as infinite.

    Attributes
    ----------
    index : int
        Which pair it was.
    text : str
        What happened, in a few words.
    error : BaseException or None
        What the function raised.
    trace : str
        The traceback of an error that was raised in another process.
    """

    index: int
    text: str
    error: BaseException | None = None
    trace: str = ""

    @classmethod
    def of(cls, index: int, error: BaseException) -> Cause:
        """Return the cause that an exception is."""
        if isinstance(error, MemoryError):  # let go of what took the memory: others need it
            traceback.clear_frames(error.__traceback__)
        return cls(index, _text(traceback.format_exception_only, error).strip(), error)

    def plain(self) -> Cause:
        """Return the same as text, for another process: not every exception can be pickled."""
        if self.error is None:
            return self
        trace = _text(traceback.format_exception, self.error)
        return Cause(self.index, self.text[-2000:], None, trace[-20_000:])

    def exception(self) -> BaseException | None:
        """Return what to show as the reason of an error."""
        return Elsewhere(self.trace) if self.trace else self.error


def _text(form: Callable[[BaseException], list[str]], error: BaseException) -> str:
    try:
        return "".join(form(error))
    except BaseException:  # whatever the function did to the interpreter
        return type(error).__name__


@dataclass(frozen=True)
class Found:
    """The gaps of the pairs from one index on, and what was learned on the way.

    Attributes
    ----------
    start : int
        Index of the first pair.
    gaps : array
        One gap for each.
    seconds : float
        How long they took.
    structure : list or None
        Structure of the output, if it is known by now.
    tossing : bool
        Whether the function has been seen to use the global generators.
    cause : Cause or None
        Why the first infinite one is.
    jitter : float
        By how much the same evaluation has been seen to differ, by rounding.
    """

    start: int
    gaps: Vector
    seconds: float
    structure: list[Any] | None = None
    tossing: bool = False
    cause: Cause | None = None
    jitter: float = 0.0


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
        like: list[Any] | None = None,
        around: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
        s0: int | None = None,
    ) -> None:
        self.function, self.n, self.sampler, self.norm = function, n, sampler, norm
        self.seed, self.pair, self.like, self.around = seed, pair, like, around
        self.s0 = coins.coin_seed(seed) if s0 is None else s0
        # On one number the library's own norms are the absolute value.
        mechanism = type(getattr(norm, "__self__", None)).__module__
        self.absolute = norm in NORMS.values() or mechanism.startswith("privatize.mechanisms")
        self.structure: list[Any] | None = None
        self.tossing = False
        self.jitter = 0.0  # how much the same evaluation has been seen to differ, by rounding
        self.cause: Cause | None = None
        self.classes: dict[str, Any] = {}
        self.schema: list[Any] = []
        self._spare: Any = None
        self._next: tuple[int, np.random.Generator, list[int]] | None = None

    def identity(self) -> dict[str, Any]:
        """Return what must be the same wherever the pairs are evaluated, by name."""
        return {
            "version of numpy or of this library": [coins.SCHEME, np.__version__],
            "function": self.function,
            "sampler": self.sampler,
            "norm": self.norm,
            "pair=": self.pair,
            "seed": [self.n, self.seed, self.s0, self.like],
        }

    def __getstate__(self) -> dict[str, Any]:
        # What a copy, in another thread or process, must have of its own.
        own: dict[str, Any] = {"classes": {}, "cause": None, "_spare": None, "_next": None}
        return vars(self) | own

    # -- drawing --

    def _draw(self, rng: np.random.Generator) -> Any:
        drawn = draw(self.sampler, self.n + 1, rng)
        return drawn if self.like is None else records.adopt(drawn, self.like)

    def check_sampler(self) -> None:
        """Draw twice from the same stream: a sampler must be a pure function of its generator."""
        one, other = (self._draw(coins.stream(self.seed, coins.RECORDS)) for _ in range(2))
        self.schema = records.describe(one)
        if not records.equal(one, other):
            raise NotReproducibleError(
                f"The sampler {self.sampler!r} drew different records from generators with the same seed. "
                f"It must use no randomness but the generator that it is given: draw(n, rng)."
            )
        size = max(self.n + 1, 1000)  # so many that they cannot be the same by chance
        one, other = (draw(self.sampler, size, coins.stream(self.seed, coins.CHECK, i)) for i in range(2))
        if records.equal(one, other):
            raise NotReproducibleError(
                f"The sampler {self.sampler!r} drew the same {size} records from two different generators. "
                f"Its randomness must come from the generator that it is given: draw(n, rng)."
            )

    def _streams(self, index: int) -> tuple[np.random.Generator, list[int]]:
        """Return the generator of a pair's records, and the replaced positions from it to its block's end."""
        if self._next is not None and self._next[0] == index:  # where the last ones ended
            _, rng, positions = self._next
            self._next = None
            return rng, positions
        block, offset = divmod(index, coins.block_size(self.n))
        rng = coins.stream(self.seed, coins.RECORDS, block)
        for _ in range(offset):  # the pairs before it are drawn and let go
            self._draw(rng)
        drawn = coins.stream(self.seed, coins.POSITIONS, block).integers(
            self.n, size=coins.block_size(self.n)
        )
        return rng, drawn[offset:].tolist()

    def _pair_at(self, index: int) -> tuple[Any, int]:
        """Draw one pair by its index."""
        rng, positions = self._streams(index)
        return self._draw(rng), positions[0]

    def _neighbours(self, drawn: Any, position: int) -> tuple[Any, Any]:
        if type(drawn) is np.ndarray and not drawn.dtype.hasobject:
            # The same, sooner: one array for all copies, since giving memory back and getting it
            # again costs more than copying. Outputs are flattened before the next pair.
            if self._spare is None or self._spare.shape != drawn.shape or self._spare.dtype != drawn.dtype:
                self._spare = np.empty_like(drawn)
            np.copyto(self._spare, drawn)
            self._spare[position] = drawn[self.n]
            return drawn[: self.n], self._spare[: self.n]
        return records.head(drawn, self.n), records.neighbour(drawn, position, self.n)

    # -- evaluating --

    def gaps(
        self, start: int, stop: int, flips: coins.Coins, watch: Callable[[int], object] | None = None
    ) -> Found:
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
        size = coins.block_size(self.n)
        found: list[float] = []
        self.cause = None
        at = start
        while at < stop:
            end = min((at // size + 1) * size, stop)
            found += self._block(at, end, flips, watch)
            at = end
        cause, self.cause = self.cause, None  # an exception's frames would keep callers' frames alive
        seconds = time.perf_counter() - began
        return Found(start, np.array(found), seconds, self.structure, self.tossing, cause, self.jitter)

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
            found: list[float] = []
            flips.toss()
            for at, position in zip(range(start, stop), positions, strict=False):
                tossing = self.tossing or self.structure is None or stop - start < 16
                untouched = untouched and tossing
                if watch is not None:
                    watch(at)
                # A call of its own, so that the records are let go before the next are drawn.
                found.append(self._gap(at, rng, position, flips, tossing, watch))
            if untouched or not flips.moved():
                if len(positions) > stop - start:
                    self._next = (stop, rng, positions[stop - start :])
                return found
            self.tossing = True
            self.cause = before

    def _gap(
        self,
        index: int,
        rng: np.random.Generator,
        position: int,
        flips: coins.Coins,
        tossing: bool,
        watch: Callable[[int], object] | None,
    ) -> float:
        """Return the gap of one pair: a finite number, or infinity if anything went wrong."""
        drawn = self._draw(rng)
        structure = self.structure
        shared = False
        value: Any = None
        if structure is None:
            again = records.copy(records.head(drawn, self.n))
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
                    records.head(drawn, self.n), position, records.record(drawn, self.n)
                )
                if structure is None:
                    structure = outputs.describe(value)
                shared = value is neighbour and not isinstance(value, int | float | np.generic)
                a = self._flat(value, structure)
                value = neighbour
                b = self._flat(value, structure)
            gap = self._norm(a, b)
        except outputs.StructureChanged:
            return self._failed(Cause(index, f"{STRUCTURE}: {_difference(value, structure)}"))
        except (Refused, coins.LentError):
            raise
        except OutputError:
            if structure is None:
                raise
            return self._failed(Cause(index, "the function returned something that cannot be released"))
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
        return self._failed(Cause(index, "the function returned values that are not finite, or beyond 1e300"))

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

    def check_again(self, gaps: Vector, *, exact: bool, elsewhere: bool = False) -> None:
        """Measure the first pair and the largest gap once more: a function that drifts shows here.

        Here, in this process: wherever they were measured before, the answer must be the same. Other
        machines may round differently (not ``exact``). If they were measured ``elsewhere``, a few
        more are, at random: what is not the same there may not be the same on some data only.
        """
        if self.pair is not None:
            return
        worked = np.isfinite(gaps)
        if not worked.any():
            return
        chosen = {int(worked.argmax()), int(np.where(worked, gaps, -1.0).argmax())}
        if elsewhere:
            more = coins.stream(self.seed, coins.CHECK, 2).choice(
                len(gaps), min(8, len(gaps) // 50), replace=False
            )
            chosen |= {i for i in more.tolist() if worked[i]}
        with coins.public_coins(self.s0) as flips:
            for i in sorted(chosen):
                one, other = self._neighbours(*self._pair_at(i))
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
                    raise NotReproducibleError(
                        "The function gave another answer for identical data at the end of the calibration "
                        "than before. It must not depend on earlier calls (caches, warm starts, counters), "
                        "the time, the process it runs in (library settings, patches, the order of a set of "
                        "texts), or globals that change, nor use randomness for some data only."
                    )

    def outputs(self, index: int) -> tuple[Vector, Vector]:
        """Return the flat outputs on both neighbours of one pair, which is known to work."""
        one, other = self._neighbours(*self._pair_at(index))
        structure = self.structure or []
        with coins.public_coins(self.s0) as flips:
            flips.toss()
            a = outputs.flatten(self.function(one), structure, self.classes)
            flips.toss()
            return a, outputs.flatten(self.function(other), structure, self.classes)

    def learn_classes(self, gaps: Vector) -> None:
        """Meet the classes in the output, if there are any and it was evaluated elsewhere or earlier."""
        if self.classes or not outputs.has_classes(self.structure or []):
            return
        with coins.public_coins(self.s0) as flips:
            flips.toss()
            worked = int(np.isfinite(gaps).argmax())
            one, _ = self._neighbours(*self._pair_at(worked))
            self._flat(self.function(one), self.structure or [])

    def check_pair(self, gaps: Vector) -> None:
        """Compare `pair=` with plain evaluation, on random indices and on the largest gaps."""
        rng = coins.stream(self.seed, coins.CHECK)
        finite = np.flatnonzero(np.isfinite(gaps))
        largest = finite[np.argsort(gaps[finite])[-_CHECKED:]]
        chosen = np.union1d(rng.choice(finite, min(_CHECKED, len(finite)), replace=False), largest)
        with coins.public_coins(self.s0) as flips:
            for i in chosen.tolist():
                one, other = self._neighbours(*self._pair_at(i))
                flips.toss()
                a = self._plain(one, i)
                flips.toss()
                b = self._plain(other, i)
                plain, claimed = self._norm(a, b), float(gaps[i])
                if not _close(plain, claimed, a, b):
                    raise PairError(
                        f"pair= disagrees with plain evaluation: for sampled pair {i} it gives the gap "
                        f"{claimed:.6g}, and running the function on both neighbours gives {plain:.6g}. "
                        f"Mend pair=, or leave it out.",
                        index=i,
                        pair=claimed,
                        plain=plain,
                    )

    def _plain(self, data: Any, index: int) -> Vector:
        try:
            return outputs.flatten(self.function(data), self.structure or [], self.classes)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() as well
            raise PairError(
                f"pair= disagrees with plain evaluation: the function fails on sampled pair {index}, "
                f"or returns an output of another structure.",
                index=index,
            ) from error


def _difference(value: Any, structure: list[Any] | None) -> str:
    try:
        return outputs.difference(value, structure or [])
    except Exception:  # an output's own methods are anybody's code
        return "of another kind"


def _close(one: float, other: float, a: Any, b: Any) -> bool:
    """Tell whether two gaps, computed in two ways, differ by no more than rounding, in gap and values."""
    slack = 1e-6 * max(one, other) + _SLACK * float(np.abs(a).sum() + np.abs(b).sum())
    return abs(one - other) <= slack
