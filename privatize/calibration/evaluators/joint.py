"""Evaluate many functions on the same pairs: the joint gap is the largest of theirs, each in its own unit.

T1 in docs/catalogue.md: T = max Gᵢ/wᵢ over the functions i, with weights wᵢ that were fixed before.
"""

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from privatize.calibration.buffers import Pair
from privatize.calibration.evaluators.base import LARGEST, Evaluator, Function, flattened
from privatize.calibration.evaluators.unchanged import Options, Unchanged
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import NeighbourSampler
from privatize.calibration.norms import Norm, Vector
from privatize.data.container import find
from privatize.data.persons import as_passed
from privatize.data.tabular import Tabular
from privatize.errors import NotReproducibleError, OutputError
from privatize.execution.job import CauseKind, Span, SpanResult
from privatize.outputs.containers import Tuple
from privatize.outputs.describe import describe
from privatize.outputs.structure import Number, Structure

_STEPS = 16  # weights in a factor of two
# 2^(j/16), written down so that they are the same on every machine.
_ROOTS = (
    *(1.0, 1.0442737824274138, 1.0905077326652577, 1.1387886347566916, 1.189207115002721),
    *(1.241857812073484, 1.2968395546510096, 1.3542555469368927, 1.4142135623730951, 1.4768261459394993),
    *(1.5422108254079407, 1.6104903319492543, 1.681792830507429, 1.7562521603732995, 1.8340080864093424),
    1.9152065613971474,
)


def weight_of(exponent: int) -> float:
    """Return the weight 2^(exponent/16).

    Examples
    --------
    >>> weight_of(0), weight_of(-16), round(weight_of(8), 3)
    (1.0, 0.5, 1.414)
    """
    return math.ldexp(_ROOTS[exponent % _STEPS], exponent // _STEPS)


def exponent_of(size: float) -> int:
    """Return the exponent of the smallest weight that is at least as large as a size.

    Examples
    --------
    >>> exponent_of(1.0), exponent_of(0.3), weight_of(exponent_of(0.3)) >= 0.3
    (0, -27, True)
    """
    found = math.floor(_STEPS * math.log2(size)) - 1
    while weight_of(found) < size:
        found += 1
    return found


@dataclass(frozen=True, eq=False)
class Joint:
    """Many functions of one dataset, as one function that returns a tuple.

    Attributes
    ----------
    functions : tuple of callable
        The functions, each of the dataset alone.
    norms : tuple of callable
        How the difference of two outputs of each function is measured.
    labels : tuple of str
        What each is called in messages.
    exponents : tuple of int
        The weight of each function, as the exponent of `weight_of`.
    timed : bool
        Whether the gaps of numbers are followed by the seconds that each function took, as a pilot needs it.
    """

    functions: tuple[Function, ...]
    norms: tuple[Callable[[Vector], float], ...]
    labels: tuple[str, ...]
    exponents: tuple[int, ...]
    timed: bool = False

    def __call__(self, data: Any) -> tuple[Any, ...]:
        """Return the outputs of all functions."""
        passed = as_passed(data)
        return tuple(function(passed) for function in self.functions)


class JointNorm(Norm):
    """The largest of the functions' own norms, each divided by its weight."""

    def __init__(self, joint: Joint) -> None:
        self.function: Any = (joint.norms, joint.exponents)  # what other processes compare
        self.absolute, self.many, self.name, self.label = False, False, "", "joint"
        self._norms = [Norm(norm) for norm in joint.norms]
        self._weights = np.array([weight_of(each) for each in joint.exponents])
        self.worst = 0  # whose gap was the largest last time
        self.step: Vector = np.zeros(0)  # the difference that was measured last, and each function's own gap
        self.own: Vector = np.zeros(0)

    def lay_out(self, sizes: list[int]) -> list[slice]:
        """Note how many numbers each function returns, and return where they are."""
        ends = np.cumsum(sizes).tolist()
        self._places = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        one = [size == 1 and norm.absolute for size, norm in zip(sizes, self._norms, strict=True)]
        self._single, self._others = np.flatnonzero(one), np.flatnonzero(np.logical_not(one)).tolist()
        self._starts = np.array([place.start for place in self._places], dtype=np.intp)[self._single]
        return self._places

    def each(self, step: Vector) -> Vector:
        """Return the gap of each function by itself, without its weight."""
        found = np.empty(len(self._norms))
        found[self._single] = np.abs(step[self._starts])
        for at in self._others:
            found[at] = self._norms[at].function(step[self._places[at]])
        found[~((found >= 0) & (found <= LARGEST))] = math.inf
        return found

    def gap(self, a: Any, b: Any) -> float:
        """Return the largest gap over its weight."""
        with np.errstate(all="ignore"):
            self.step = a - b
            self.own = self.each(self.step)
            found = self.own / self._weights
        self.worst = int(found.argmax())
        return float(found[self.worst])

    def slack(self, a: Any, b: Any) -> float:
        """Return by how much rounding may change the joint gap."""
        places = zip(self._norms, self._places, self._weights, strict=True)
        return max(float(norm.slack(a[place], b[place]) / weight) for norm, place, weight in places)

    def of(self, at: int, a: Vector, b: Vector) -> tuple[float, float, float]:
        """Return one function's own gap, by how much rounding may change it, and its weight."""
        return self._norms[at].gap(a, b), self._norms[at].slack(a, b), float(self._weights[at])


@dataclass(kw_only=True, eq=False)
class JointEvaluator(Evaluator):
    """Runs every function of a `Joint` on each dataset, which is drawn once.

    Each function finds what it would find alone: unchanged data, generators with the public seed, and the
    options of libraries as they were. Whether that is so is checked once for each dataset, or for each block,
    and not for each function. If it is not so, it is looked for who did it. Such functions then get a copy of
    their own, and what they change is put back.
    """

    function: Joint
    norm: JointNorm
    _laid: Structure | None = field(default=None, init=False)
    # Functions that change what others find: their data or the generators, and those that change options.
    _special: set[int] = field(default_factory=set, init=False)
    _setting: set[int] = field(default_factory=set, init=False)
    _watching: bool = field(default=False, init=False)
    _stirred: bool = field(default=False, init=False)  # whether a function that is not known to has done so
    _at: int = field(default=0, init=False)  # the function that is being evaluated
    _options: Options | None = field(default=None, init=False)
    _plan: list[Any] = field(default_factory=list, init=False)
    _size: int = field(default=0, init=False)
    _floats: bool = field(default=False, init=False)  # whether each function returns one float

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.function.functions)
        self._seconds = [0.0] * count
        # Every function's own largest gap, and the pair that has it: they are measured again in the end.
        self._largest, self._where = np.full(count, -1.0), np.zeros(count, dtype=np.int64)
        self._last: tuple[int, Vector] = (-1, np.zeros(0))  # the last pair that worked, with all own gaps

    def __getstate__(self) -> dict[str, Any]:
        # What is derived from the structure, or of this process.
        return super().__getstate__() | {"_laid": None, "_plan": [], "_options": None}

    def checked(self, since: Vector | None = None) -> dict[int, Vector]:
        """Return the pairs in which some function's own gap is the largest, with these gaps, else NaN.

        With the largest gaps of some time before, only of functions that have had larger ones since. The last
        pair that worked is there with the gaps of all functions.
        """
        new = self._largest > (-1.0 if since is None else since)
        pairs = sorted(set(self._where[new].tolist()))
        found = {at: np.where((self._where == at) & new, self._largest, np.nan) for at in pairs}
        last, own = self._last
        return found if last < 0 else found | {last: own}

    def learn(
        self,
        structure: Structure | None,
        rounding_noise: float = 0.0,
        largest: Mapping[int, Vector] | None = None,
    ) -> None:
        """Note what other processes or earlier calibrations have seen."""
        super().learn(structure, rounding_noise)
        for index, own in (largest or {}).items():
            self._note_gaps(index, own)

    def _note_gaps(self, index: int, own: Vector) -> None:
        """Note the functions' own gaps in a pair, or of some of them, with NaN for the others."""
        if index >= self._last[0] and not np.isnan(own).any():
            self._last = index, own
        larger = own > self._largest
        if larger.any():
            self._largest[larger], self._where[larger] = own[larger], index

    # -- blocks and pairs --

    def evaluate_block(self, start: int, stop: int, rng: rng_guard) -> Any:
        """Return the gaps of some pairs of one block.

        If a function that is not known to do so has used the generators or changed options by the end of the
        block, the block is evaluated again, with a look at each function.
        """
        before, own = self.cause, (self._largest.copy(), self._where.copy(), self._last)
        self._options = Options()
        reseed = "torch" in sys.modules  # see `rng_guard.may_be_used`
        try:
            while True:
                pairs, self._stirred = self.pairs.span(start, stop, self.heartbeat), False
                rng.reseed()
                found = [self._gap(index, next(pairs), rng, reseed) for index in range(start, stop)]
                self._look_around(rng, reseed)
                if self._watching or not self._stirred:
                    next(pairs, None)  # so that it notes where it stopped
                    return found
                self._watching, self.cause = True, before
                self._largest, self._where, self._last = own
        finally:
            self._watching, self._options = False, None

    def gaps(self, span: Span, rng: rng_guard) -> SpanResult:
        """Evaluate the pairs of a span, and return the functions' own largest gaps with theirs."""
        before = self._largest.copy()
        found = super().gaps(span, rng)
        return found if self.function.timed else replace(found, coordinate_gaps=self.checked(before))

    def _gap(self, index: int, pair: Pair, rng: rng_guard, reseed: bool) -> float:
        self._seconds = [0.0] * len(self._seconds)
        found = super()._gap(index, pair, rng, reseed)
        if found < math.inf:
            self._note_gaps(index, self.norm.own)
        known = {} if self.coordinate_gaps is None else self.coordinate_gaps
        if self.function.timed and index in known:
            known[index] = np.append(self.norm.step, self._seconds)
        return found

    def both(self, pair: Pair, rng: rng_guard, reseed: bool = True) -> tuple[Any, Any]:
        """Evaluate every function on both neighbours, and return flat outputs."""
        one, other = self.pairs.neighbours(pair.records, pair.position)
        # What is made of frames shares nothing with them, so that a pair can be made again.
        kept = isinstance(find(pair.records), Tabular)
        again = [partial(_neighbour, self.pairs, pair, at) if kept else None for at in range(2)]
        return self.evaluated(one, rng, reseed, again[0]), self.evaluated(other, rng, reseed, again[1])

    measured = both

    def evaluated(
        self, data: Any, rng: rng_guard, reseed: bool = True, again: Callable[[], Any] | None = None
    ) -> Vector:
        """Evaluate every function on one dataset: all on the same copy, unless one of them changes it."""
        if self._options is None:  # outside of a block
            try:
                self._options = Options()
                return self.evaluated(data, rng, reseed, again)
            finally:
                self._options = None
        data = as_passed(data)  # persons become one flat frame for all functions
        before = Unchanged(data, again)
        if self.structure is not None and not self._watching and before.comparable:
            try:
                found = self._together(data, before, rng, reseed)
                if before.same():
                    return found
            except BaseException as error:  # perhaps because of what another function did
                self.reraise(error)
                if before.same():
                    raise
        return self._watched(before, rng)

    def _together(self, data: Any, before: Unchanged, rng: rng_guard, reseed: bool) -> Vector:
        """Evaluate every function on the same data, but special ones by themselves."""
        self._lay_out()
        if self._floats and not (reseed or self.function.timed or self._special):
            return _numbers(self, data)
        found, special, usual = np.empty(self._size), self._special, not (reseed or self.function.timed)
        for at, (function, node, place, number) in enumerate(self._plan):
            self._at = at
            if at in special:
                value = self._alone(at, before.copy(), rng, reseed)
            elif usual:
                value = function(data)
            else:
                if reseed:
                    rng.reseed()
                value = _clocked(self, at, data)
            kind = type(value)
            if number and (kind is np.float64 or kind is float):
                found[place] = value  # the usual case, faster
            else:
                found[place] = flattened(value, node, number=True)
        return found

    def _watched(self, before: Unchanged, rng: rng_guard) -> Vector:
        """Evaluate every function by itself, and note which ones change what others find.

        The first time it begins with the last one. The usual order must then give the same, so that functions
        that tell each other something, by a file or a flag, are found.
        """
        nodes: dict[int, Structure] = {}
        found: dict[int, Any] = {}
        known = None if self.structure is None else cast("Tuple", self.structure).items
        every = list(enumerate(self.function.labels))
        for at, label in reversed(every) if known is None else every:
            self._at, own = at, before.copy()
            untouched = Unchanged(own)
            rng.reseed()
            try:
                value = _clocked(self, at, own)
            finally:
                self._note(at, untouched, rng)
            try:
                nodes[at] = describe(value) if known is None else known[at]
                # A copy: the function may return a buffer that it uses again.
                found[at] = np.array(flattened(value, nodes[at], number=True))
            except OutputError as error:
                error.args = (f"{label}: {error}",)
                raise
        if known is None:
            self.structure = Tuple([nodes[at] for at, _ in every])
        self._lay_out()
        return np.hstack([found[at] for at, _ in every])

    def _note(self, at: int, own: Unchanged, rng: rng_guard) -> None:
        """Note whether a function has changed what others find, and put it back."""
        used, set_options = rng.used(), self._options is not None and self._options.put_back()
        self.uses_global_rng = self.uses_global_rng or used
        if set_options:
            self._setting.add(at)
        if used or set_options or not own.same():
            self._special.add(at)

    def _alone(self, at: int, own: Any, rng: rng_guard, reseed: bool) -> Any:
        """Evaluate a function that is special, and put back what it changes."""
        self._look_around(rng, reseed, options=at in self._setting)
        rng.reseed()
        try:
            return _clocked(self, at, own)
        finally:
            rng.reseed()
            if at in self._setting and self._options is not None:
                self._options.put_back()

    def _look_around(self, rng: rng_guard, reseed: bool, *, options: bool = True) -> None:
        """Note whether functions before this have used the generators, or changed options: nobody knew it."""
        used = not reseed and rng.used()  # if they are reseeded each time it does not matter
        changed = options and self._options is not None and self._options.put_back()
        self._stirred = self._stirred or used or changed

    def of(self, at: int, pair: Pair, rng: rng_guard) -> tuple[Vector, Vector]:
        """Evaluate one function on both neighbours of a pair, each by itself, and return flat outputs."""
        node = cast("Tuple", self.known_structure).items[at]
        found = []
        for data in self.pairs.neighbours(pair.records, pair.position):
            rng.reseed()
            value = flattened(self.function.functions[at](as_passed(data)), node, number=True)
            found.append(np.atleast_1d(value))
        return found[0], found[1]

    def _lay_out(self) -> None:
        """Note where in the vector each function's numbers are."""
        if self._laid is self.structure:
            return
        self._laid, nodes = self.structure, cast("Tuple", self.structure).items
        numbers = [isinstance(node, Number) for node in nodes]
        places = self.norm.lay_out([node.size for node in nodes])
        at = [place.start if number else place for place, number in zip(places, numbers, strict=True)]
        floats = [number and not node.integers()[0] for node, number in zip(nodes, numbers, strict=True)]
        self._size = sum(node.size for node in nodes)
        self._plan = list(zip(self.function.functions, nodes, at, floats, strict=True))
        self._floats = all(floats)

    # -- failures --

    def _check_repeats(self, first: Any, again: Any, rng: rng_guard) -> None:
        step, own = self.norm.step, self.norm.own
        try:
            super()._check_repeats(first, again, rng)
        except NotReproducibleError as error:
            error.args = (f"{self.function.labels[self.norm.worst]}: {error}",)
            raise
        self.norm.step, self.norm.own = step, own

    def failed(self, index: int, error: BaseException) -> float:
        """Note which function failed and why, and return infinity."""
        known = self.cause
        found = super().failed(index, error)
        if known is None and self.cause is not None and self.cause.kind == "raised":
            text = f"{self.function.labels[self._at]}: {self.cause.text}"
            self.cause = replace(self.cause, text=text)
        return found

    def note(self, index: int, kind: CauseKind, what: str) -> float:
        """Note which function has made a pair infinite, if it is the first one, and return infinity."""
        at = self.norm.worst if kind == "not_finite" else self._at
        return super().note(index, kind, f"{self.function.labels[at]}: {what}")


def _neighbour(pairs: NeighbourSampler, pair: Pair, at: int) -> Any:
    return pairs.neighbours(pair.records, pair.position)[at]


def _numbers(evaluator: JointEvaluator, data: Any) -> Vector:
    """Evaluate functions that return one float each, none of which is special: the usual case, faster."""
    found: list[Any] = []
    try:
        for function in evaluator.function.functions:
            value = function(data)
            kind = type(value)
            if kind is not np.float64 and kind is not float:
                value = flattened(value, evaluator._plan[len(found)][1], number=True)
            found.append(value)
    except BaseException:
        evaluator._at = len(found)
        raise
    return np.array(found, dtype=np.float64)


def _clocked(evaluator: JointEvaluator, at: int, data: Any) -> Any:
    """Evaluate a function, and note how long it takes."""
    began = time.perf_counter()
    found = evaluator.function.functions[at](data)
    evaluator._seconds[at] += time.perf_counter() - began
    return found


def own_largest(evaluator: JointEvaluator) -> list[tuple[int, float]] | None:
    """Return, for every function, the pair in which its own gap is the largest, and that gap.

    None if that is not known, because no pair was evaluated here.
    """
    found = list(zip(evaluator._where.tolist(), evaluator._largest.tolist(), strict=True))
    return found if (evaluator._largest >= 0).all() else None


def recall_largest(evaluator: JointEvaluator, known: Sequence[tuple[int, float]]) -> None:
    """Note what `own_largest` was in an earlier calibration of the same functions."""
    where, gaps = zip(*known, strict=True)
    evaluator._where, evaluator._largest = np.array(where, dtype=np.int64), np.array(gaps, dtype=np.float64)
