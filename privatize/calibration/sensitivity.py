"""The sensitivity sampler: pairs are drawn, evaluated and measured; an order statistic is taken.

Algorithm 1 of the paper (Rubinstein & Aldà, ICML 2017), with the record at a uniformly random
position replaced, so that functions that care about order are measured fairly. Every index
0..m-1 yields exactly one value, its true gap or infinity; none is dropped or drawn again.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import capacity
from privatize.calibration import streams as coins
from privatize.calibration.batching import Batch, check_batch
from privatize.calibration.gaps_chart import gaps_chart
from privatize.calibration.pairs import (
    LARGEST,
    NORMS,
    ROUNDING,
    PairFunction,
    Pairs,
)
from privatize.data.schema import Schema
from privatize.display.cards import Card
from privatize.display.figures import round_up
from privatize.errors import (
    ExecutionError,
    InfiniteSensitivityError,
    NotReproducibleError,
    PlanError,
    SettingsError,
    ZeroSensitivityError,
)
from privatize.execution.base import collect
from privatize.execution.choose import check_timeout, executor
from privatize.execution.job import Cause, CauseKind, SpanResult
from privatize.execution.progress import Progress
from privatize.execution.span_queue import SpanQueue
from privatize.mechanisms.weighted import Weighted
from privatize.outputs import structure as outputs
from privatize.planning.plan import Bound, Plan, band, running_band
from privatize.planning.plan import plan as make_plan
from privatize.samplers import Sampler

__all__ = ["LARGEST", "SMALLEST", "Memory", "PairFunction", "Sensitivity", "estimate_sensitivity"]

_log = logging.getLogger("privatize.sensitivity")

Vector = NDArray[np.float64]
Norm = Callable[[Vector], float]

SMALLEST = 1e-300
"""Estimates are at least this: floats have all their digits there."""
_PILOT = 32  # pairs that weights are learned from
_SAVED_EVERY = 0.5  # seconds between two writes to the store
_MANY = 10**8  # pairs beyond which only the largest gaps are kept
_FIRST = 512  # and the first ones, to be looked at again
_WORDS = 500  # characters of a cause that are kept


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
        All m gaps, in index order. Read-only. Of more than 10⁸ pairs, the largest m-k+1 and a few others.
    structure : list
        The structure of the output, as JSON.
    schema : Schema
        The schema of the datasets.
    classes : dict
        The named tuples, dataclasses and frames in the output, by name; empty once it was pickled.
    weights : tuple of int
        Weights of the output's numbers, as powers of two, if the mechanism is scaled.
    cause : str
        Why the first of the failed pairs failed.
    jitter : float
        By how much the function was seen to round differently from run to run, as libraries do that sum in
        parallel; the estimate then has room for that, 2⁻¹⁶ of itself.
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
    schema: Schema | None = field(repr=False)
    classes: dict[str, Any] = field(default_factory=dict, repr=False)
    min_sensitivity: float | None = None
    jitter: float = field(default=0.0, repr=False)
    weights: tuple[int, ...] = field(default=(), repr=False)
    cause: str = field(default="", repr=False)
    _looks: list[Plan] = field(default_factory=list, repr=False)
    _note: Callable[[Plan], object] | None = field(default=None, repr=False)
    _pickled: bool = field(default=False, repr=False)

    @functools.cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Which numbers of the output are integers. Read-only."""
        found = outputs.integers(self.structure)
        found.flags.writeable = False
        return found

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
        that holds for all order statistics at once (`privatize.planning.plan.band`). With
        probability 1 - rho - rho' both hold, whichever look is used in the end.
        """
        if len(self._looks) == 1:
            return self.plan.gamma
        first, events = self._looks[0], self._events()
        rho, error = band(first.m)
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

    def _events(self) -> dict[str, float]:
        """Return what must not go wrong in the sampling, and with which probability each may."""
        first = self._looks[0]
        events = {"first": first.rho or 0.0}
        if len(self._looks) == 1:
            return events
        rho, _ = band(first.m)
        # The first look of the bound "dkw" may have the band as its own event.
        if any(look.m == first.m for look in self._looks[1:]) and (first.bound, first.rho) != ("dkw", rho):
            events["band"] = rho
        if any(look.m != first.m for look in self._looks):
            events["running band"] = rho
        return events

    @property
    def unlucky(self) -> float:
        """Probability that the calibration is an unlucky one, which `gamma` includes; 0 if it has none."""
        return math.fsum(self._events().values())

    @property
    def average_gamma(self) -> float:
        """The probability that a random pair is beyond the estimate, on average over calibrations.

        Among m+1 exchangeable gaps the last one is beyond the k-th smallest of the others with probability
        1 - k/(m+1) at most: calibration and pair are both random here, and nothing is left to `rho`. It
        holds for the plan that was fixed before the gaps were drawn, and was the only one: whoever has read
        several plans may have chosen this one for what the gaps are, so there it is `gamma`.

        Examples
        --------
        >>> from privatize import estimate_sensitivity, plan, samplers
        >>> found = estimate_sensitivity(np.mean, n=100, sampler=samplers.uniform(0, 1), norm="l1",
        ...                              plan=plan(gamma=0.05), seed=1)
        >>> round(found.average_gamma, 4), found.gamma
        (0.0251, 0.05)
        """
        if self._looks != [self.plan]:
            return self.gamma
        above, of = self.m + 1 - self.k, self.m + 1
        numerator, denominator = (above / of).as_integer_ratio()
        rounded = above / of if numerator * of >= above * denominator else math.nextafter(above / of, 1.0)
        return min(self.gamma, rounded)

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
        if len(self.gaps) < self.m:
            raise PlanError(
                f"Of m={self.m} pairs only the largest gaps were kept, so no other estimate can be read from "
                f"them. Estimate anew with the gamma and bound you want.",
                gamma=gamma,
                m=self.m,
                bound=self.bound,
            )
        chosen = make_plan(gamma, self.m, bound=self.bound if bound is None else bound)
        if chosen not in self._looks:
            if self._pickled:
                raise PlanError(
                    "This estimate was unpickled: the original would not know of a further look at the same "
                    "gaps, and its gamma would be too small. Call at() on the original, before pickling it.",
                    gamma=gamma,
                    m=self.m,
                    bound=chosen.bound,
                )
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
        value = _order_statistic(self.gaps, chosen, _floor(self.min_sensitivity, self.weights), None)
        return replace(self, value=_widened(value, self.jitter), plan=chosen)

    def __copy__(self) -> Sensitivity:
        return self  # nothing of it changes but the plans read from the gaps, which all copies must count

    def __deepcopy__(self, memo: dict[int, Any]) -> Sensitivity:
        return self

    def __getstate__(self) -> dict[str, Any]:
        # Whom to tell of a further look is of this process, and classes may be local ones.
        state = {name: value for name, value in vars(self).items() if name != "whole"}
        return state | {"classes": {}, "_note": None, "_looks": list(self._looks), "_pickled": True}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.gaps.setflags(write=False)

    def plot(self, ax: Any = None, *, known: float | None = None) -> Any:
        """Plot the distribution of the gaps, what is certain about it, and the estimate.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default. Needs matplotlib (the extra ``plot``).
        known : float, optional
            A global or analytic sensitivity to draw beside the estimate.

        Returns
        -------
        matplotlib axes
        """
        return self.card(known).plot(ax)

    def _repr_html_(self) -> str:
        return self.card().html()

    def card(self, known: float | None = None) -> Card:
        """Return what a person sees of the estimate: names and values, and the gaps beside a known bound."""
        rows = [
            ("sensitivity", f"{self.value:.6g} ({self.norm})"),
            ("records", f"n={self.n:,}"),
            ("from", f"gap k={self.k:,} of m={self.m:,} sampled pairs"),
            (
                "holds for all but",
                f"a share gamma={self.gamma:.4g} of neighbours, by the bound {self.bound!r}",
            ),
            ("on average over calibrations", f"a share {round_up(self.average_gamma)} at most"),
        ]
        if known is not None:
            rows.insert(
                1, ("known bound", f"{known:.6g}: the estimate is {self.value / known:.3g} times that")
            )
        if self.rho is not None:
            rows.append(("of which for an unlucky calibration", f"rho={self.rho:.3g}"))
        if self.min_sensitivity is not None:
            rows.append(("floor", f"min_sensitivity={self.min_sensitivity:g}"))
        if self.failed:
            rows.append(("failed pairs", f"{self.failed:,}, which count as infinite gaps"))
        if self.failed and self.cause:
            rows.append(("the first cause", self.cause))
        if self.looks > 1:
            rows.append(("looks", f"{self.looks} plans were read from these gaps, which gamma allows for"))
        rows.append(("seed", str(self.seed)))
        chart = gaps_chart(self.gaps, self.plan, self.value, self.gamma, self.norm, self.n, known)
        return Card("sensitivity", rows, chart)

    def certified(self) -> tuple[tuple[float, float], ...]:
        """Return, for every plan read from these gaps, the γ that was asked for and that holds now."""
        return tuple((look.gamma, replace(self, plan=look).gamma) for look in self._looks)

    def __repr__(self) -> str:
        rho = "" if self.rho is None else f", rho={self.rho:.3g}"
        failed = f", failed={self.failed}" if self.failed else ""
        looks = f", looks={self.looks}" if self.looks > 1 else ""
        return (
            f"Sensitivity({self.value:.6g}, norm={self.norm}, n={self.n}, m={self.m}, k={self.k}, "
            f"gamma={self.gamma:.4g}, average_gamma={round_up(self.average_gamma)}{rho}, "
            f"bound={self.bound}{failed}{looks}, seed={self.seed})"
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
        ``save(start, gaps, structure)`` is called with what is new, every now and then; with ``weights=`` if
        there are some.
    note : callable
        ``note(plan)`` is called before a further plan is read from the gaps.
    checked : int
        How many of them belong to a calibration that ended well.
    jitter : float
        By how much the function has been seen to round differently from run to run.
    weights : list of int or None
        Weights of the output's numbers, as powers of two.
    agree : callable
        ``agree(weights)`` returns those that everybody uses who has these gaps.
    cause : str
        Why the first of the failed pairs failed.
    """

    gaps: Vector
    structure: list[Any] | None
    looks: list[Plan]
    save: Callable[..., None]
    note: Callable[[Plan], object]
    checked: int = 0
    jitter: float = 0.0
    weights: list[int] | None = None
    agree: Callable[[list[int]], list[int]] = list
    cause: str = ""


def estimate_sensitivity(
    function: Callable[[Any], Any],
    *,
    n: int,
    sampler: Sampler,
    norm: Literal["l1", "l2", "sup"] | Norm,
    plan: Plan,
    seed: int | None = None,
    pair: PairFunction | None = None,
    batch: Batch = False,
    min_sensitivity: float | None = None,
    timeout: float | None = None,
    workers: Any = None,
    progress: bool | None = None,
    version: str | None = None,
    like: Schema | None = None,
    memory: Memory | None = None,
    label: str | None = None,
    scaled: Any = None,
    around: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
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
    batch : bool or callable
        Whether the function accepts a stack of datasets, an array with one more axis in front, and returns
        a stack of outputs; or another function that does. Trusted and checked as `pair` is.
    min_sensitivity : float, optional
        A floor for the estimate.
    timeout : float, optional
        Seconds for one pair; one that takes longer counts as infinite.
    workers : int, "inline", "ray", Dask client, executor, or object with map, optional
        Where the pairs are evaluated. By default here, and on all cores if that is much quicker.
    progress : bool, optional
        Whether to show a bar. By default if it takes more than a second and somebody is watching.
    version : str, optional
        Vouches for what a worker cannot compare of the function that it received.
    like : Schema, optional
        Schema of the private data, whose container the drawn records are brought into.
    memory : Memory, optional
        What is known already, and where to save what is found.
    label : str, optional
        What to call the function.
    scaled : Laplace or Gaussian, optional
        A mechanism that is ``scaled``: its norm, with weights that are learned from pairs of their own.
    around : callable, optional
        Makes a context that other processes evaluate the pairs in.

    Returns
    -------
    Sensitivity

    Raises
    ------
    InfiniteSensitivityError, ZeroSensitivityError, NotReproducibleError, PairError
        Where no usable estimate came out, with the first real cause.
    ExecutionError
        Where the pairs cannot be evaluated on these workers.

    References
    ----------
    Rubinstein & Aldà, ICML 2017, Algorithm 1.

    Examples
    --------
    >>> from privatize import samplers
    >>> from privatize.planning.plan import plan
    >>> estimate_sensitivity(np.mean, n=100, sampler=samplers.uniform(0, 1), norm="l1",
    ...                      plan=plan(gamma=0.1), seed=1)
    Sensitivity(0.00780261, norm=l1, n=100, m=219, k=209, gamma=0.1, average_gamma=0.0500, \
rho=0.00541, bound=tolerance, seed=1)
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        shown = repr(n) if isinstance(n, int | float | str | None) else f"a {type(n).__name__}"
        raise SettingsError(f"n={shown} is not a number of records: it must be an integer >= 1.")
    check_batch(batch, pair=pair, timeout=timeout)
    chosen = coins.check_seed(seed)
    pairs = Pairs(
        function,
        n=int(n),
        sampler=sampler,
        norm=NORMS[norm] if isinstance(norm, str) else norm,
        seed=coins.fresh_seed() if chosen is None else chosen,
        pair=pair,
        batch=batch,
        like=like,
        worker_context=around,
        version=version,
        timeout=check_timeout(timeout),
    )
    name = label or str(getattr(function, "__name__", type(function).__name__))
    run = _Run(pairs, plan, memory, name)
    open_before = coins.level()
    weights: tuple[int, ...] = ()
    try:
        if scaled is not None:
            weights = run.agreed = run.weights(scaled, workers, progress)
            if weights:
                pairs.norm = norm = Weighted(scaled, weights).norm
        gaps, at = run.gaps(workers, progress) if plan.m <= _MANY else run.largest(workers, progress)
        value = _order_statistic(gaps, plan, _floor(min_sensitivity, weights), run)
        if pair is not None or batch:
            pairs.check_pair(gaps, value, at)
        pairs.learn_classes(gaps, at)
    finally:
        coins.unwind(open_before)
    jitter = max(pairs.jitter, 0.0 if memory is None else memory.jitter)
    # It sums in parallel, in whatever order, whether or not that was seen.
    if pairs.schema is not None and "polars" in pairs.schema.libraries:
        jitter = max(jitter, SMALLEST)
    gaps.setflags(write=False)
    return Sensitivity(
        value=_widened(value, jitter),
        jitter=jitter,
        weights=weights,
        n=pairs.n,
        plan=plan,
        norm=norm if isinstance(norm, str) else _norm_name(norm),
        seed=pairs.seed,
        coin_seed=pairs.s0,
        failed=int(np.isinf(gaps).sum()),
        cause=run.told(),
        gaps=gaps,
        structure=pairs.structure or [],
        classes=pairs.classes,
        schema=pairs.schema,
        min_sensitivity=min_sensitivity,
        _looks=[plan] if memory is None else memory.looks,
        _note=None if memory is None else memory.note,
    )


def _floor(given: float | None, weights: tuple[int, ...]) -> float | None:
    """Return a floor in the norm that gaps are measured in: what is within it as it is, is so weighted.

    No weight is above 1, so a gap of this size is at most itself over the least weight.
    """
    return None if given is None else math.ldexp(given, -min(weights, default=0))


def _widened(value: float, jitter: float) -> float:
    """Return an estimate with room for what a function rounds differently from run to run, or refuse it."""
    if jitter > value * ROUNDING:
        raise NotReproducibleError(
            f"The function rounds differently from run to run, by up to {jitter:.3g}, which is too much for "
            f"a sensitivity of {value:.3g}. Have it compute in a fixed order: one thread (for polars, "
            f"POLARS_MAX_THREADS=1 in the environment), sorted data."
        )
    # Both sides of the measured gap and both sides of a release: four times, and four times that.
    return value * (1 + 16 * ROUNDING) if jitter else value


def _norm_name(norm: Any) -> str:
    named = getattr(getattr(norm, "__self__", None), "norm_name", None)
    return str(named or getattr(norm, "__qualname__", repr(norm)))


def _order_statistic(gaps: Vector, plan: Plan, floor: float | None, run: _Run | None) -> float:
    """Return the k-th smallest gap, or refuse it."""
    rank = plan.k - 1 - (plan.m - len(gaps))  # if there are fewer, the smaller ones were not kept
    value = float(np.partition(gaps, rank)[rank])
    if not value >= 0:
        raise ValueError(f"{value} is not a gap.")  # nothing that was measured is
    if value == math.inf:
        failed = int(np.isinf(gaps).sum())
        if run is not None:
            run.refuse()
        raise InfiniteSensitivityError(
            f"{failed} of {plan.m} sampled pairs failed, so the estimate at k={plan.k} is infinite.",
            failed=failed,
            m=plan.m,
            k=plan.k,
        )
    if floor is not None:
        return max(value, floor)
    if value > 0:
        return max(value, SMALLEST)
    if value == 0:
        zeros = int((gaps == 0).sum()) + plan.m - len(gaps)  # those that were not kept are no larger
        raise ZeroSensitivityError(
            f"{zeros} of {plan.m} sampled pairs did not change the output at all, so the estimate is 0, "
            f"and zero noise would be no privacy. Is the output constant, or does it ignore most records? "
            f"If it is about missing values, P must draw some: with_missing(...). If a floor is known (1 for "
            f"a count, say), pass min_sensitivity=...; for a quantile of a column with few values, score "
            f"them with mechanism=Exponential(responses=[...]); for a maximum or minimum ask for a quantile; "
            f"otherwise use a smaller gamma.",
            m=plan.m,
            k=plan.k,
        )
    return value


_REMEDIES: dict[CauseKind, str] = {
    "timed_out": " Raise timeout= (it counts for both neighbours of a pair together), then call forget().",
    "killed": " Is there enough memory for all of them? Use fewer workers=, then call forget().",
    "structure": " The keys, labels, types and shapes of an answer are published as they are, so if they "
    "depend on the data they give it away. Return the same ones for every dataset: reindex to fixed "
    "categories (counts.reindex(CATEGORIES, fill_value=0)), sort rows, aggregate rows about single "
    "people, always float(...), define classes outside the function.",
    "not_finite": " An empty group's mean is NaN, and so are a sum with a missing value and the correlation "
    "of a constant column: fillna(...) or dropna() in the function, or another sampler.",
}


class _Run:
    """One calibration: the gaps that are there, and what must happen before the others are."""

    def __init__(self, pairs: Pairs, plan: Plan, memory: Memory | None, label: str) -> None:
        self.pairs, self.plan, self.memory, self.label = pairs, plan, memory, label
        self.failed = 0
        self.cause: Cause | None = None
        self.unsaved: list[tuple[int, int]] = []
        self.saved = time.monotonic()
        self.known = np.full(plan.m if plan.m <= _MANY else 0, np.nan)
        self.agreed: tuple[int, ...] = ()  # weights of the output's numbers

    def gaps(self, workers: Any, progress: bool | None) -> tuple[Vector, None]:
        """Return all m gaps, in index order; evaluate only those that are not known."""
        m, gaps, pairs = self.plan.m, self.known, self.pairs
        memory = self.memory
        if memory is not None:
            pairs.structure = memory.structure
            if memory.structure is not None or not np.isfinite(memory.gaps).any():
                gaps[: len(memory.gaps)] = memory.gaps[:m]
            self.failed = int(np.isinf(gaps).sum())
            self._refuse_early("what was remembered")
        missing = _spans(np.isnan(gaps))
        if not missing:
            if memory is not None and memory.checked < m:  # whoever found them did not come to the end
                pairs.check_sampler()
                pairs.check_again(gaps, exact=False, elsewhere=True)
            return gaps, None
        pairs.check_sampler()
        where = executor(capacity.fewer(workers, pairs.timeout, pairs.bytes), pairs.timeout)
        pairs.foresee(m)
        work = SpanQueue(missing, pairs.block, pairs.structure, pairs.drawing, together=pairs.together)
        exact = where.exact and work.left == m
        # Known gaps may have been found by another process, which did not come to the end.
        unchecked = memory is not None and memory.checked < m - work.left
        _log.debug("%s: %d of %d pairs to evaluate, n=%d, %r", self.label, work.left, m, pairs.n, where)
        began = time.monotonic()
        try:
            bar = Progress(self.label, m, m - work.left, progress)
            collect(pairs, work, where, bar, self._take, self.label)
        finally:  # also if it was interrupted, or failed
            self._save()
        if np.isnan(gaps).any():  # every index counts, or none does
            raise ExecutionError(f"{int(np.isnan(gaps).sum())} of {m} pairs were not evaluated.")
        _log.debug("%s: done in %.3g s, %d failed", self.label, time.monotonic() - began, self.failed)
        pairs.check_again(gaps, exact=exact, elsewhere=work.moved or unchecked)
        return gaps, None

    def largest(self, workers: Any, progress: bool | None) -> tuple[Vector, NDArray[np.int64]]:
        """Return the largest gaps and a few others, with their indices; nothing is kept of all the rest.

        For so many pairs that all gaps would not fit into memory. Nothing is stored either, but the seed.
        """
        pairs, m = self.pairs, self.plan.m
        some = coins.stream(pairs.seed, coins.CHECK, 4).integers(m, size=64)
        kept = _Kept(m - self.plan.k + 1, some)
        pairs.check_sampler()
        where = executor(capacity.fewer(workers, pairs.timeout, pairs.bytes), pairs.timeout)
        work = SpanQueue([(0, m)], pairs.block, None, pairs.drawing, together=pairs.together)

        def take(found: SpanResult) -> None:
            kept.add(found.start, found.gaps)
            self._learn(found)

        collect(pairs, work, where, Progress(self.label, m, 0, progress), take, self.label)
        if kept.seen != m:
            raise ExecutionError(f"{m - kept.seen} of {m} pairs were not evaluated.")
        gaps, at = kept.all()
        pairs.fair = np.flatnonzero(np.isin(at, some) | (at < _FIRST))
        pairs.check_again(gaps, at, exact=where.exact, elsewhere=work.moved)
        return gaps, at

    def weights(self, scaled: Any, workers: Any, progress: bool | None) -> tuple[int, ...]:
        """Return the weights of the output's numbers: known ones, or from pairs drawn for them alone."""
        memory, pairs = self.memory, self.pairs
        if memory is not None and memory.weights is not None:
            return tuple(memory.weights)
        pairs.check_sampler()
        words = np.random.SeedSequence(pairs.seed, spawn_key=(coins.PILOT, 2)).generate_state(1, np.uint64)
        pilot = Pairs(
            pairs.function,
            n=pairs.n,
            sampler=pairs.sampler,
            norm=scaled.norm,
            seed=int(words[0]),  # streams of their own
            pair=pairs.pair,
            batch=pairs.batch,
            like=pairs.like,
            worker_context=pairs.worker_context,
            s0=pairs.s0,
            version=pairs.version,
            timeout=pairs.timeout,
        )
        pilot.kept = {}
        kept: dict[int, Vector] = {}
        work = SpanQueue([(0, _PILOT)], pilot.block, None)
        bar = Progress(f"{self.label}, weights", _PILOT, 0, progress)
        where = executor(capacity.fewer(workers, pairs.timeout, pairs.bytes), pairs.timeout)
        collect(pilot, work, where, bar, lambda found: kept.update(found.coordinate_gaps), self.label)
        sizes = [kept[i] for i in sorted(kept) if np.isfinite(kept[i]).all()]
        # Without any, the calibration will say what is wrong.
        found: list[int] = scaled.weights(np.array(sizes)) if sizes else []
        return tuple(found if memory is None else memory.agree(found))

    def _take(self, found: SpanResult) -> None:
        """Take note of what was found, and stop if the estimate is infinite already."""
        start, stop = found.start, found.start + len(found.gaps)
        self.known[start:stop] = found.gaps
        self.unsaved.append((start, stop))
        self._learn(found)
        if time.monotonic() >= self.saved + _SAVED_EVERY:
            self._save()

    def _learn(self, found: SpanResult) -> None:
        pairs = self.pairs
        pairs.structure = pairs.structure or found.structure
        pairs.jitter = max(pairs.jitter, found.rounding_noise)
        failed = int(np.isinf(found.gaps).sum())
        if failed:
            self.failed += failed
            if self.cause is None or (found.cause is not None and found.cause.index < self.cause.index):
                self.cause = found.cause
            self._refuse_early()

    def told(self) -> str:
        """Return why the first of the failed pairs failed, in a few words: it is remembered and shown."""
        known = "" if self.memory is None else self.memory.cause
        text = known or ("" if self.cause is None else self.cause.text)
        return text if len(text) <= _WORDS else f"{text[:_WORDS]}..."

    def _save(self) -> None:
        """Hand what is new to the memory."""
        spans, self.unsaved = self.unsaved, []
        self.saved = time.monotonic()
        if self.memory is None:
            return
        for start, stop in _joined(spans):
            more = {"weights": list(self.agreed)} if self.agreed else {}
            self.memory.save(start, self.known[start:stop], self.pairs.structure, **more)

    def _given(self) -> str:
        """Return what kind of data the function gets."""
        return str(self.pairs.schema or "data")

    def _refuse_early(self, otherwise: str = "") -> None:
        """Refuse when so many have failed that the estimate is infinite, whatever the others are."""
        if self.failed > self.plan.m - self.plan.k:
            self.refuse(otherwise)

    def refuse(self, otherwise: str = "") -> None:
        """Raise the error for an infinite estimate, with the first real cause."""
        cause = self.cause
        what = cause.text if cause is not None else otherwise or "what was remembered"
        fix = _REMEDIES.get("raised" if cause is None else cause.kind) or (
            " Make pair= work on all data that the sampler can draw."
            if self.pairs.pair is not None
            else f" Make the function work on all data that the sampler can draw, or choose another sampler. "
            f"It gets {self._given()}, as it was called with."
        )
        done = len(self.known) - int(np.isnan(self.known).sum()) or self.plan.m
        raise InfiniteSensitivityError(
            f"{self.failed} of the first {done} sampled pairs failed, and at most m-k="
            f"{self.plan.m - self.plan.k} of m={self.plan.m} may. The first cause: {what.rstrip('.')}.{fix}",
            failed=self.failed,
            m=self.plan.m,
            k=self.plan.k,
        ) from (cause.exception() if cause is not None else None)


class _Kept:
    """The largest of many gaps, the first ones, and some that were chosen beforehand; with their indices."""

    def __init__(self, largest: int, chosen: NDArray[np.int64]) -> None:
        self.seen = 0
        self._count = max(largest, 16)
        self._chosen = np.union1d(chosen, np.arange(_FIRST))
        self._gaps, self._at = np.zeros(0), np.zeros(0, dtype=np.int64)
        self._others: dict[int, float] = {}

    def add(self, start: int, gaps: Vector) -> None:
        """Take note of the gaps from one index on."""
        self.seen += len(gaps)
        low, high = np.searchsorted(self._chosen, [start, start + len(gaps)])
        self._others |= {int(i): float(gaps[i - start]) for i in self._chosen[low:high]}
        self._gaps = np.concatenate([self._gaps, gaps])
        self._at = np.concatenate([self._at, np.arange(start, start + len(gaps))])
        if len(self._gaps) > self._count:
            top = np.argpartition(self._gaps, -self._count)[-self._count :]
            self._gaps, self._at = self._gaps[top], self._at[top]

    def all(self) -> tuple[Vector, NDArray[np.int64]]:
        """Return the gaps in index order, and their indices."""
        found = self._others | dict(zip(self._at.tolist(), self._gaps.tolist(), strict=True))
        at = np.array(sorted(found), dtype=np.int64)
        return np.array([found[i] for i in at.tolist()]), at


def _spans(missing: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the runs of True as spans of indices.

    Examples
    --------
    >>> _spans(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(missing, prepend=False, append=False))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans with neighbours made one.

    Examples
    --------
    >>> _joined([(3, 5), (0, 3), (7, 8)])
    [(0, 5), (7, 8)]
    """
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return joined
