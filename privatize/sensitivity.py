"""The sensitivity sampler: pairs are drawn, evaluated and measured; an order statistic is taken.

Algorithm 1 of the paper (Rubinstein & Aldà, ICML 2017), with the record at a uniformly random
position replaced, so that functions that care about order are measured fairly. Every index
0..m-1 yields exactly one value, its true gap or infinity; none is dropped or drawn again.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatize import coins, outputs, records
from privatize.errors import (
    InfiniteSensitivityError,
    NotReproducibleError,
    OutputError,
    PairError,
    PlanError,
    SettingsError,
    ZeroSensitivityError,
)
from privatize.mechanisms.base import l1, l2, sup
from privatize.planning import Bound, Plan, band, running_band
from privatize.planning import plan as make_plan
from privatize.samplers import Sampler, draw

__all__ = ["Memory", "PairFunction", "Sensitivity", "estimate_sensitivity"]

Vector = NDArray[np.float64]
Norm = Callable[[Vector], float]
PairFunction = Callable[[Any, int, Any], tuple[Any, Any]]

_NORMS: dict[str, Norm] = {"l1": l1, "l2": l2, "sup": sup}
# How many pairs of `pair=` are evaluated plainly too: at random, and the largest gaps.
_CHECKED = 8
# Estimates stay inside these, where floats have all their digits: smaller ones are raised to the first,
# and gaps beyond the second count as infinite.
SMALLEST, LARGEST = 1e-300, 1e300
_STRUCTURE = "the function returned outputs of different structure"


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """An estimate of how far one record can move a function's output.

    Attributes
    ----------
    value : float
        Δ̂, the k-th smallest of the m gaps, or `min_sensitivity` if that is larger.
    n : int
        Number of records.
    plan : Plan
        The operating point; its m, k, rho and bound are attributes here too.
    norm : str
        Name of the norm that the gaps are measured in.
    seed, coin_seed : int
        The public seeds of the pairs and of the coins that the function saw.
    failed : int
        How many pairs failed and count as infinite gaps.
    gaps : array
        All m gaps, in index order. Read-only.
    structure : list
        The structure of the output, as JSON.
    schema : list
        The schema of the datasets, as JSON.
    classes : dict
        The named tuples and dataclasses in the output, by name.
    """

    value: float
    n: int
    plan: Plan
    norm: str
    seed: int
    coin_seed: int
    failed: int
    gaps: Vector = field(repr=False)
    structure: list[Any] = field(repr=False)
    schema: list[Any] = field(repr=False)
    classes: dict[str, type] = field(default_factory=dict, repr=False)
    min_sensitivity: float | None = None
    _looks: list[Plan] = field(default_factory=list, repr=False)
    _note: Callable[[Plan], object] | None = field(default=None, repr=False)

    @property
    def m(self) -> int:
        """Number of pairs."""
        return self.plan.m

    @property
    def k(self) -> int:
        """Index of the order statistic."""
        return self.plan.k

    @property
    def rho(self) -> float | None:
        """Sampling confidence."""
        return self.plan.rho

    @property
    def bound(self) -> Bound:
        """The bound that ties gamma, m, k and rho together."""
        return self.plan.bound

    @property
    def gamma(self) -> float:
        """The confidence that holds, further looks at the same gaps included.

        The first look's plan was fixed before the gaps were drawn, so its bound holds as it is.
        Further looks may have been chosen for what they show, so they are certified by the band
        that holds for all order statistics at once (:func:`privatize.planning.band`). With
        probability 1 - rho - rho' both hold, whichever look is used in the end.
        """
        first = self._looks[0]
        if len(self._looks) == 1:
            return self.plan.gamma
        rho, error = band(first.m)
        # What must not go wrong, and with which probability each may.
        events = {"first": first.rho or 0.0}
        if any(look.m == first.m for look in self._looks[1:]):
            events["band"] = rho
        if any(look.m != first.m for look in self._looks):
            events["running band"] = rho
        if first.bound == "dkw" and first.rho == rho:
            events.pop("band", None)  # the first look's own event
        if self.plan == first:
            events["first"] = 0.0  # in its gamma already
            return min(1.0, first.gamma + math.fsum(events.values()))
        if self.m != first.m:
            error = running_band(self.m, rho)
        elif first.bound == "dkw" and first.rho == rho:
            events["first"] = 0.0
            events["band"] = rho
        covered = 1 - self.k / self.m + error + math.fsum(events.values())
        return min(1.0, max(self.plan.gamma, covered))

    @property
    def looks(self) -> int:
        """How many different plans have been read from these gaps."""
        return len(self._looks)

    def at(self, gamma: float, *, bound: Bound | None = None) -> Sensitivity:
        """Read the estimate for another gamma or bound from the same gaps.

        Nothing is evaluated. It counts as a further look: it may be made for the sake of a smaller
        estimate, so the gamma that it reports is the one that holds for every choice made after
        seeing the gaps, and the other looks' gammas grow a little. With the bound ``"dkw"``, whose
        statement holds for all gamma at once, it is the gamma that was asked for. The marginal
        bound holds for one look only.

        Parameters
        ----------
        gamma : float
            The new confidence.
        bound : {"tolerance", "dkw", "marginal"}, optional
            The new bound; this one's by default.
        """
        chosen = make_plan(gamma, self.m, bound=self.bound if bound is None else bound)
        if chosen not in self._looks:
            if "marginal" in (chosen.bound, *(look.bound for look in self._looks)):
                raise PlanError(
                    "bound='marginal' holds for one look at the gaps only, and they have been looked at. "
                    "Estimate anew with the gamma and bound you want.",
                    gamma=gamma,
                    m=self.m,
                    bound=chosen.bound,
                )
            self._looks.append(chosen)  # before anything is shown, be it an error
            if self._note is not None:
                self._note(chosen)
        value = _order_statistic(self.gaps, chosen, self.min_sensitivity, None)
        return replace(self, value=value, plan=chosen)

    def __repr__(self) -> str:
        rho = "" if self.rho is None else f", rho={self.rho:.3g}"
        failed = f", failed={self.failed}" if self.failed else ""
        looks = f", looks={self.looks}" if self.looks > 1 else ""
        return (
            f"Sensitivity({self.value:.6g}, norm={self.norm}, n={self.n}, m={self.m}, k={self.k}, "
            f"gamma={self.gamma:.4g}{rho}, bound={self.bound}{failed}{looks}, seed={self.seed})"
        )


@dataclass
class Memory:
    """What an earlier calibration with the same seed has found, and where to put what is found now.

    Attributes
    ----------
    gaps : array
        Gaps in index order; NaN where there is none yet.
    structure : list or None
        The structure of the output.
    looks : list of Plan
        The plans read from these gaps, this one included, the first one first.
    save : callable
        ``save(start, gaps, structure)`` is called with what is new, every now and then.
    note : callable
        ``note(plan)`` is called before a further plan is read from the gaps.
    checked : int
        How many of them belong to a calibration that ended well.
    """

    gaps: Vector
    structure: list[Any] | None
    looks: list[Plan]
    save: Callable[[int, Vector, list[Any] | None], None]
    note: Callable[[Plan], object]
    checked: int = 0


def estimate_sensitivity(
    function: Callable[[Any], Any],
    *,
    n: int,
    sampler: Sampler,
    norm: Literal["l1", "l2", "sup"] | Norm,
    plan: Plan,
    seed: int | None = None,
    pair: PairFunction | None = None,
    min_sensitivity: float | None = None,
    like: list[Any] | None = None,
    memory: Memory | None = None,
) -> Sensitivity:
    """Estimate a function's sensitivity by running it on sampled neighbours.

    Parameters
    ----------
    function : callable
        A function of a dataset.
    n : int
        Number of records.
    sampler : Sampler
        The public distribution P.
    norm : {"l1", "l2", "sup"} or callable
        How the difference of two flat outputs is measured.
    plan : Plan
        How many pairs, and which order statistic.
    seed : int, optional
        Seed of the calibration; a fresh one by default. It is recorded.
    pair : callable, optional
        ``pair(data, position, replacement) -> (value, neighbour_value)``, which evaluates both
        neighbours at once. Trusted, but checked against plain evaluation on some pairs.
    min_sensitivity : float, optional
        A floor for the estimate.
    like : list, optional
        Schema of the private data, whose container the drawn records are brought into.
    memory : Memory, optional
        What is known already, and where to save what is found.

    Returns
    -------
    Sensitivity

    Raises
    ------
    InfiniteSensitivityError, ZeroSensitivityError, NotReproducibleError, PairError
        Where no usable estimate came out, with the first real cause.

    References
    ----------
    Rubinstein & Aldà, ICML 2017, Algorithm 1.

    Examples
    --------
    >>> from privatize import samplers
    >>> from privatize.planning import plan
    >>> estimate_sensitivity(np.mean, n=100, sampler=samplers.uniform(0, 1), norm="l1",
    ...                      plan=plan(gamma=0.1), seed=1)
    Sensitivity(0.00780261, norm=l1, n=100, m=219, k=209, gamma=0.1, rho=0.00541, \
bound=tolerance, seed=1)
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        shown = repr(n) if isinstance(n, int | float | str | None) else f"a {type(n).__name__}"
        raise SettingsError(f"n={shown} is not a number of records: it must be an integer >= 1.")
    chosen = coins.check_seed(seed)
    run = _Run(
        function,
        n=int(n),
        sampler=sampler,
        norm=_NORMS[norm] if isinstance(norm, str) else norm,
        plan=plan,
        seed=coins.fresh_seed() if chosen is None else chosen,
        pair=pair,
        like=like,
    )
    gaps = run.gaps(memory)
    value = _order_statistic(gaps, plan, min_sensitivity, run)
    if pair is not None:
        run.check_pair(gaps)
    run.learn_classes(gaps)
    gaps.setflags(write=False)
    return Sensitivity(
        value=value,
        n=run.n,
        plan=plan,
        norm=norm if isinstance(norm, str) else _norm_name(norm),
        seed=run.seed,
        coin_seed=run.s0,
        failed=int(np.isinf(gaps).sum()),
        gaps=gaps,
        structure=run.structure or [],
        classes=run.classes,
        schema=run.schema,
        min_sensitivity=min_sensitivity,
        _looks=[plan] if memory is None else memory.looks,
        _note=None if memory is None else memory.note,
    )


def _norm_name(norm: Any) -> str:
    named = getattr(getattr(norm, "__self__", None), "norm_name", None)
    return str(named or getattr(norm, "__qualname__", repr(norm)))


def _order_statistic(gaps: Vector, plan: Plan, floor: float | None, run: _Run | None) -> float:
    """Return the k-th smallest gap, or refuse it."""
    value = float(np.partition(gaps, plan.k - 1)[plan.k - 1])
    if not value >= 0:
        raise ValueError(f"{value} is not a gap.")  # nothing that was measured is
    if value == math.inf:
        failed = int(np.isinf(gaps).sum())
        if run is not None:
            run.refuse(failed, len(gaps))
        raise InfiniteSensitivityError(
            f"{failed} of {len(gaps)} sampled pairs failed, so the estimate at k={plan.k} is infinite.",
            failed=failed,
            m=plan.m,
            k=plan.k,
        )
    if floor is not None:
        return max(value, floor)
    if value > 0:
        return max(value, SMALLEST)
    if value == 0:
        zeros = int((gaps == 0).sum())
        raise ZeroSensitivityError(
            f"{zeros} of {plan.m} sampled pairs did not change the output at all, so the estimate is 0, "
            f"and zero noise would be no privacy. Is the output constant, or does it ignore most records? "
            f"If a floor is known (1 for a count, say), pass min_sensitivity=...; otherwise use a "
            f"smaller gamma.",
            m=plan.m,
            k=plan.k,
        )
    return value


class _Run:
    """One calibration: a function, a seed, and what has been learned so far."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        n: int,
        sampler: Sampler,
        norm: Norm,
        plan: Plan,
        seed: int,
        pair: PairFunction | None,
        like: list[Any] | None,
    ) -> None:
        self.function, self.n, self.sampler, self.norm = function, n, sampler, norm
        self.plan, self.seed, self.pair, self.like = plan, seed, pair, like
        self.s0 = coins.coin_seed(seed)
        # On one number the library's own norms are the absolute value.
        mechanism = type(getattr(norm, "__self__", None)).__module__
        self.absolute = norm in _NORMS.values() or mechanism.startswith("privatize.mechanisms")
        self.structure: list[Any] | None = None
        self.cause: BaseException | str | None = None
        self.classes: dict[str, type] = {}
        self.failed = 0
        self.tossing = False
        self.spare: Any = None
        self.schema: list[Any] = []

    # -- drawing --

    def _draw(self, rng: np.random.Generator) -> Any:
        drawn = draw(self.sampler, self.n + 1, rng)
        return drawn if self.like is None else records.adopt(drawn, self.like)

    def _check_sampler(self) -> list[Any]:
        """Draw twice from the same stream: a sampler must be a pure function of its generator."""
        one, other = (self._draw(coins.stream(self.seed, coins.RECORDS)) for _ in range(2))
        schema: list[Any] = records.describe(one)
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
        return schema

    def _streams(self, block: int) -> tuple[np.random.Generator, list[int]]:
        """Return a block's generator of records and the replaced positions of its pairs."""
        positions = coins.stream(self.seed, coins.POSITIONS, block)
        drawn: list[int] = positions.integers(self.n, size=coins.block_size(self.n)).tolist()
        return coins.stream(self.seed, coins.RECORDS, block), drawn

    def _pair_at(self, index: int) -> tuple[Any, int]:
        """Draw one pair by its index; the pairs before it in its block are drawn and let go."""
        block, offset = divmod(index, coins.block_size(self.n))
        rng, positions = self._streams(block)
        for _ in range(offset):
            self._draw(rng)
        return self._draw(rng), positions[offset]

    def _neighbours(self, drawn: Any, position: int) -> tuple[Any, Any]:
        if type(drawn) is np.ndarray and not drawn.dtype.hasobject:
            # The same, sooner: one array for all copies, since giving memory back and getting it
            # again costs more than copying. Outputs are flattened before the next pair.
            if self.spare is None or self.spare.shape != drawn.shape or self.spare.dtype != drawn.dtype:
                self.spare = np.empty_like(drawn)
            np.copyto(self.spare, drawn)
            self.spare[position] = drawn[self.n]
            return drawn[: self.n], self.spare[: self.n]
        one = records.head(drawn, self.n)
        other = records.copy(one)
        records.replace(other, position, drawn, self.n)
        return one, other

    # -- evaluating --

    def gaps(self, memory: Memory | None = None) -> Vector:
        """Return all m gaps, in index order; evaluate only those that are not known."""
        m, size = self.plan.m, coins.block_size(self.n)
        gaps = np.full(m, np.nan)
        if memory is not None:
            self.structure = memory.structure
            if memory.structure is not None or not np.isfinite(memory.gaps).any():
                gaps[: len(memory.gaps)] = memory.gaps[:m]
            self.failed = int(np.isinf(gaps).sum())
            if self.failed > m - self.plan.k:
                self.cause = "what was remembered"
                self.refuse(self.failed, m)
        if not np.isnan(gaps).any():
            if memory is not None and memory.checked < m:  # whoever found them did not come to the end
                self._check_again(gaps)
            return gaps
        self.schema = self._check_sampler()
        start = saved = int(np.flatnonzero(np.isnan(gaps))[0])
        written = time.monotonic()
        try:
            while start < m:
                # The global generators are ours for a while, then others' for a moment.
                with coins.public_coins(self.s0) as flips:
                    until = time.monotonic() + 0.1
                    while start < m and time.monotonic() < until:
                        stop = min((start // size + 1) * size, m)
                        gaps[start:stop] = self._block(start, stop, flips)
                        start = stop
                if memory is not None and time.monotonic() > written + 0.5:
                    memory.save(saved, gaps[saved:start], self.structure)
                    saved, written = start, time.monotonic()
        finally:  # also if it was interrupted, or failed
            if memory is not None and saved < start:
                memory.save(saved, gaps[saved:start], self.structure)
        self.cause = None  # an exception's frames would keep this run, and callers' frames, alive
        self._check_again(gaps)
        return gaps

    def _block(self, start: int, stop: int, flips: coins.Coins) -> list[float]:
        """Return the gaps of some pairs of one block.

        Every evaluation must find the public coins untouched. Putting them back each time costs
        more than evaluating a cheap function, so as long as the function has not been seen to
        use them, one look at the end of the block tells whether any evaluation did; if so, the
        block is done again, with the coins put back each time from then on.
        """
        before = self.failed
        block, first = divmod(start, coins.block_size(self.n))
        while True:
            self.failed = before
            untouched = True
            rng, positions = self._streams(block)
            for _ in range(first):
                self._draw(rng)
            found: list[float] = []
            flips.toss()
            for position in positions[first : first + stop - start]:
                tossing = self.tossing or self.structure is None or stop - start < 16
                untouched = untouched and tossing
                # A call of its own, so that the records are let go before the next are drawn.
                found.append(self._gap(rng, position, flips, tossing))
                if found[-1] == math.inf:
                    self.failed += 1
                    if self.failed > self.plan.m - self.plan.k:  # infinite already
                        self.refuse(self.failed, start + len(found))
            if untouched or not flips.moved():
                return found
            self.tossing = True

    def _gap(self, rng: np.random.Generator, position: int, flips: coins.Coins, tossing: bool) -> float:
        """Return the gap of one pair: a finite number, or infinity if anything went wrong."""
        drawn = self._draw(rng)
        structure = self.structure
        shared = False
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
                b = self._flat(self.function(other), structure)
            else:
                if tossing:
                    flips.toss()
                value, neighbour = self.pair(records.head(drawn, self.n), position, _record(drawn, self.n))
                if structure is None:
                    structure = outputs.describe(value)
                shared = value is neighbour and not isinstance(value, int | float | np.generic)
                a, b = self._flat(value, structure), self._flat(neighbour, structure)
            gap = self._norm(a, b)
        except KeyboardInterrupt:
            raise
        except outputs.StructureChanged:
            self.cause = self.cause or _STRUCTURE
            return math.inf
        except OutputError:
            if structure is None:
                raise
            self.cause = self.cause or "the function returned something that cannot be released"
            return math.inf
        except BaseException as error:  # sys.exit() in a function is a failure of that pair
            if self.cause is None:
                self.cause = error
            return math.inf
        if shared:
            raise PairError(
                "pair= returned one and the same object as both values, so one of them was overwritten. "
                "Return two."
            )
        if self.structure is None:
            self.tossing = flips.moved()
            self.structure = structure
            self._check_function(a, again, flips)
        if gap <= LARGEST:
            return gap
        self.cause = self.cause or "the function returned values that are not finite, or beyond 1e300"
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
        except (Exception, outputs.StructureChanged):
            second = None
        if second is None or not np.array_equal(first, second, equal_nan=True):
            raise NotReproducibleError(
                "The function gave two different answers for identical data. Its randomness, if it has any, "
                "must come from `random`, `numpy.random`, torch's default generator, or a parameter named "
                "by coins=('rng',), which receives a seeded generator; and it must not depend on earlier "
                "calls (caches, warm starts, counters, the time)."
            )

    def _check_again(self, gaps: Vector) -> None:
        """Measure the first pair and the largest gap once more: a function that drifts shows here."""
        finite = np.flatnonzero(np.isfinite(gaps))
        if self.pair is not None or not len(finite):
            return
        with coins.public_coins(self.s0) as flips:
            for i in sorted({int(finite[0]), int(finite[np.argmax(gaps[finite])])}):
                one, other = self._neighbours(*self._pair_at(i))
                try:
                    flips.toss()
                    a = self._flat(self.function(one), self.structure or [])
                    flips.toss()
                    gap = self._norm(a, self._flat(self.function(other), self.structure or []))
                except (Exception, outputs.StructureChanged):
                    gap = math.nan
                if gap != gaps[i]:
                    raise NotReproducibleError(
                        "The function gave another answer for identical data at the end of the calibration "
                        "than before. It must not depend on earlier calls (caches, warm starts, counters), "
                        "the time, or globals that change, nor use randomness for some data only."
                    )

    def learn_classes(self, gaps: Vector) -> None:
        """Meet the classes in the output, if there are any and all gaps were remembered."""
        if self.classes or not outputs.has_classes(self.structure or []):
            return
        with coins.public_coins(self.s0) as flips:
            flips.toss()
            worked = int(np.flatnonzero(np.isfinite(gaps))[0])
            one, _ = self._neighbours(*self._pair_at(worked))
            self._flat(self.function(one), self.structure or [])

    def refuse(self, failed: int, done: int) -> None:
        """Raise the error for an infinite estimate, with the first real cause."""
        cause = self.cause
        what = (
            "".join(traceback.format_exception_only(type(cause), cause)).strip()
            if isinstance(cause, BaseException)
            else str(cause)
        )
        fix = (
            " Return the same types, keys and shapes for every dataset (always float(...), fixed categories, "
            "classes defined outside the function): a structure that depends on the data gives it away."
            if cause is _STRUCTURE
            else " Make pair= work on all data that the sampler can draw."
            if self.pair is not None
            else " Make the function work on all data that the sampler can draw, choose another sampler, or "
            "check the other arguments. It gets data of the container that it is called with."
        )
        raise InfiniteSensitivityError(
            f"{failed} of the first {done} sampled pairs failed, and at most m-k={self.plan.m - self.plan.k} "
            f"of m={self.plan.m} may. The first cause: {what}.{fix}",
            failed=failed,
            m=self.plan.m,
            k=self.plan.k,
        ) from (cause if isinstance(cause, BaseException) else None)

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
                # Two ways to compute the same number may differ by rounding, in gap and values.
                slack = 1e-6 * max(plain, claimed) + 2.0**-47 * float(np.abs(a).sum() + np.abs(b).sum())
                if not abs(plain - claimed) <= slack:
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
        except Exception as error:
            raise PairError(
                f"pair= disagrees with plain evaluation: the function fails on sampled pair {index}, "
                f"or returns an output of another structure.",
                index=index,
            ) from error


def _record(data: Any, at: int) -> Any:
    return tuple(_record(part, at) for part in data) if isinstance(data, tuple) else data[at]
