"""The sensitivity sampler: draw pairs, measure their gaps, and take an order statistic.

Algorithm 1 of the paper (Rubinstein & Aldà, ICML 2017), with the record at a uniformly random
position replaced, so that functions that depend on the order are measured correctly. Every index
0..m-1 yields exactly one value, its true gap or infinity; none is dropped or drawn again.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import streams
from privatize.calibration.checks import check_trusted
from privatize.calibration.evaluators.base import Context, PairFunction
from privatize.calibration.evaluators.batched import Batch, check_batch
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.gaps_chart import gaps_chart
from privatize.calibration.global_rng import level, unwind
from privatize.calibration.norms import NORMS, Vector
from privatize.calibration.order_statistic import SMALLEST, floor_of, order_statistic, times, widened
from privatize.calibration.pilot import Member, learn_shape
from privatize.calibration.run import Collector, Memory, Run
from privatize.calibration.spread import Spread
from privatize.calibration.stress import Stress, Tried
from privatize.calibration.stress_run import stress_test
from privatize.data.schema import Schema
from privatize.display.cards import Card, Shown
from privatize.display.figures import round_up
from privatize.errors import PlanError, SettingsError
from privatize.execution.choose import check_timeout
from privatize.mechanisms.shapes import NONE, Shape
from privatize.mechanisms.weighted import weighted
from privatize.outputs.structure import Structure
from privatize.planning.dkw import band, running_band
from privatize.planning.numbers import as_integer
from privatize.planning.plan import Bound, Plan
from privatize.planning.plan import plan as make_plan
from privatize.samplers import Sampler


@dataclass(frozen=True, eq=False)
class Sensitivity(Shown):
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
        The public seeds of the pairs, and of the random generators that the function used.
    failed : int
        How many pairs failed and count as infinite gaps.
    gaps : array
        All m gaps, in index order. Read-only.
    structure : Structure
        The structure of the output. After pickling, only the names of classes in it (named tuples,
        dataclasses, frames, models) are left.
    schema : Schema
        The schema of the datasets.
    shape : Shape
        How noise is divided among the numbers of the output.
    spread : Spread or None
        How far each number is spread over datasets from P.
    fit : Fit or None
        The check of P on the people themselves by which the estimate was widened.
    cause : str
        Why the first of the failed pairs failed.
    stress : Stress or None
        What the stress test found, if there was one: is the estimate large enough if P is a little different?
    members : tuple of (str, Sensitivity)
        For a family of P, the name and the estimate of each member; this one is then the largest.
    jitter : float
        The largest difference by rounding that was seen between two runs of the function, as with libraries
        that sum in parallel. If it is not 0, the estimate is widened by 2⁻¹⁶ of itself.
    """

    value: float
    n: int
    plan: Plan
    norm: str
    seed: int
    coin_seed: int
    failed: int
    gaps: Vector
    structure: Structure
    schema: Schema | None
    min_sensitivity: float | None = None
    jitter: float = 0.0
    shape: Shape = NONE
    spread: Spread | None = None
    fit: Any = None
    cause: str = ""
    stress: Stress | None = None
    members: tuple[tuple[str, Sensitivity], ...] = ()
    _looks: list[Plan] = field(default_factory=list)
    _note: Callable[[Plan], object] | None = None
    _pickled: bool = False

    @functools.cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Which numbers of the output are integers. Read-only."""
        found = self.structure.integers()
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
        that holds for all order statistics at once (`privatize.planning.dkw.band`). With
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
        """Probability that the calibration is an unlucky one, which `gamma` includes; 0 without `rho`."""
        return math.fsum(self._events().values())

    @property
    def average_gamma(self) -> float:
        """The probability that a random pair is beyond the estimate, on average over calibrations.

        Among m+1 exchangeable gaps the last one is beyond the k-th smallest of the others with probability
        1 - k/(m+1) at most: calibration and pair are both random here, and there is no `rho`. It holds for
        a plan that was fixed before the gaps were drawn, if it is the only one. If several plans were read,
        this one may have been chosen because of the gaps, so then it is `gamma`.

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
        seeing the gaps, and the other looks' gammas grow a little. With the bound ``"dkw"`` and a given
        number of samples, whose statement holds for all gamma at once, it is the gamma that was asked for.
        The marginal bound holds for one look only.

        Parameters
        ----------
        gamma : float
            The new confidence.
        bound : {"tolerance", "dkw", "marginal"}, optional
            The new bound; this one's by default.
        """
        return self.read(make_plan(gamma, self.m, bound=self.bound if bound is None else bound))

    def read(self, chosen: Plan, *, zero: bool = False) -> Sensitivity:
        """Read the estimate for another plan of the same m; it may be 0 for a member of a family."""
        if chosen not in self._looks:
            wrong = ""
            if self._pickled:
                wrong = (
                    "This estimate was unpickled: the original would not know of a further look at the same "
                    "gaps, and its gamma would be too small. Call at() on the original, before pickling it."
                )
            elif "marginal" in (chosen.bound, *(look.bound for look in self._looks)):
                wrong = (
                    "bound='marginal' holds for one look at the gaps only, and they have been looked at. "
                    "Estimate again with the gamma and bound you want."
                )
            if wrong:
                raise PlanError(wrong, gamma=chosen.gamma, m=self.m, bound=chosen.bound)
            self._looks.append(chosen)  # before anything is shown, even an error
            if self._note is not None:
                self._note(chosen)
        value = order_statistic(self.gaps, chosen, floor_of(self.min_sensitivity, self.shape), zero=zero)
        value = value and times(widened(value, self.jitter), self.fit.factor if self.fit else 1.0)
        stress = self.stress and self.stress.tried.judged(chosen, value)
        return replace(self, value=value, plan=chosen, stress=stress)

    def __copy__(self, _: Any = None) -> Self:
        return self  # only the list of plans read changes, and all copies must share it

    __deepcopy__ = __copy__

    def __getstate__(self) -> dict[str, Any]:
        # `_note` belongs to this process.
        state = {name: value for name, value in vars(self).items() if name != "whole"}
        return state | {"_note": None, "_looks": list(self._looks), "_pickled": True}

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

    def card(self, known: float | None = None) -> Card:
        """Return what a person sees of the estimate: names and values, and the gaps beside a known bound."""
        looks = f"{self.looks} plans were read from these gaps, which gamma allows for"
        share = f"a share gamma={self.gamma:.4g} of neighbours, by the bound {self.bound!r}"
        rows = {
            "sensitivity": f"{self.value:.6g} ({self.norm})",
            "known bound": known and f"{known:.6g}: the estimate is {self.value / known:.3g} times that",
            "noise is divided": "" if self.shape.kind == "none" else f"scaled={self.shape.kind!r}",
            "the same for all datasets": self.spread and self.spread.constant(self.structure.names()),
            "records": f"n={self.n:,}",
            "from": f"gap k={self.k:,} of m={self.m:,} sampled pairs",
            "holds for all but": share,
            "on average over calibrations": f"a share {round_up(self.average_gamma)} at most",
            "of which for an unlucky calibration": self.rho and f"rho={self.rho:.3g}",
            "floor": self.min_sensitivity and f"min_sensitivity={self.min_sensitivity:g}",
            "failed pairs": self.failed and f"{self.failed:,}, which count as infinite gaps",
            "the first cause": self.failed and self.cause,
            "stress test": self.stress and self.stress.summary(),
            "estimate is": self.fit and self.fit.words,
            "looks": looks if self.looks > 1 else "",
            "seed": str(self.seed),
        }
        chart = gaps_chart(
            self.gaps, self.plan, self.value, self.gamma, self.norm, self.n, known, self.stress
        )
        return Card("sensitivity", [(name, str(text)) for name, text in rows.items() if text], chart)

    def certified(self) -> tuple[tuple[float, float], ...]:
        """Return, for every plan read from these gaps, the γ that was asked for and that holds now."""
        if self._looks == [self.plan]:
            return ((self.plan.gamma, self.plan.gamma),)
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


def estimate_sensitivity(
    function: Callable[[Any], Any],
    *,
    n: int,
    sampler: Sampler,
    norm: Literal["l1", "l2", "sup"] | Callable[[Vector], float],
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
    around: Context = contextlib.nullcontext,
    stress: bool = False,
    member: Member | None = None,
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
        Whether to show a bar. By default if it takes more than a second, on a terminal or in a notebook.
    version : str, optional
        Attests the parts of the function that a worker cannot compare with what was sent.
    like : Schema, optional
        Schema of the private data; drawn records are cast to its container.
    memory : Memory, optional
        What is known already, and where to save new gaps.
    label : str, optional
        Name of the function.
    scaled : Laplace or Gaussian, optional
        A mechanism that divides noise among numbers: its norm is used, with a shape that is learned from
        pairs of their own.
    around : callable, optional
        Makes a context in which other processes evaluate the pairs.
    stress : bool
        Whether to try changed P after a calibration of 500 pairs or more: an eighth as many pairs again.
    member : Member, optional
        What the members of a family of P have in common, if P is one of them.

    Returns
    -------
    Sensitivity

    Raises
    ------
    InfiniteSensitivityError, ZeroSensitivityError, NotReproducibleError, PairError
        If there is no usable estimate; with the first cause.
    ExecutionError
        If the pairs cannot be evaluated on these workers.

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
    if as_integer(n) < 1:
        shown = repr(n) if isinstance(n, int | float | str | None) else f"a {type(n).__name__}"
        raise SettingsError(f"n={shown} is not a number of records: it must be an integer >= 1.")
    check_batch(batch, pair=pair, timeout=timeout)
    own = streams.seed_or_fresh(seed)
    seconds, s0 = check_timeout(timeout), streams.coin_seed(own) if member is None else member.coin_seed
    make = functools.partial(evaluator, function, n=int(n), sampler=sampler, pair=pair, batch=batch, s0=s0)
    make = functools.partial(make, target=like, worker_context=around, version=version, timeout=seconds)
    name = label or str(getattr(function, "__name__", type(function).__name__))
    collector = Collector(workers, progress, name)
    opened = level()
    try:
        learn = functools.partial(learn_shape, make, scaled, member=member, memory=memory, warned=stress)
        shape, order, drawn = learn(seed=own, m=plan.m, collector=collector, floor=min_sensitivity)
        norm = norm if shape.kind == "none" else weighted(scaled, shape).norm
        make = functools.partial(make, norm=NORMS[norm] if isinstance(norm, str) else norm)
        run = Run(make(seed=own), plan, memory, shape, order, drawn)
        gaps = run.gaps(collector)
        value = order_statistic(gaps, plan, floor_of(min_sensitivity, shape), zero=member is not None)
        if run.evaluator.trusted:
            check_trusted(run.evaluator, gaps, max(value, SMALLEST))
        if not run.evaluator.known_structure.complete:  # it was evaluated elsewhere, or earlier
            run.evaluator.outputs(int(np.isfinite(gaps).argmax()))
        tried = stress_test(make, sampler, run, value, collector, wanted=stress)
    finally:
        unwind(opened)
    return _sensitivity(run, value, min_sensitivity, tried)


def _sensitivity(run: Run, value: float, floor: float | None, tried: Tried | None) -> Sensitivity:
    """Return the estimate of a run."""
    evaluated, memory = run.evaluator, run.memory
    pairs, noise = evaluated.pairs, evaluated.rounding_noise
    if memory is not None:
        noise = max(noise, memory.jitter)
    # Polars sums in parallel, in an order that changes, even if no difference was seen.
    if pairs.schema is not None and "polars" in pairs.schema.libraries:
        noise = max(noise, SMALLEST)
    run.known.setflags(write=False)
    value = value and widened(value, noise)
    return Sensitivity(
        value=value,
        n=pairs.n,
        plan=run.plan,
        norm=evaluated.norm.label,
        seed=pairs.seed,
        coin_seed=evaluated.s0,
        failed=run.failed,
        gaps=run.known,
        structure=evaluated.known_structure,
        schema=pairs.schema,
        min_sensitivity=floor,
        jitter=noise,
        shape=run.shape,
        spread=run.spread(),
        cause=run.first_cause(),
        stress=None if tried is None else tried.judged(run.plan, value),
        _looks=[run.plan] if memory is None else memory.looks,
        _note=None if memory is None else memory.note,
    )
