"""audit(): is the promise true? Measured, both halves of it.

Coverage: do fresh neighbours stay within the estimate as often as gamma says? Distinguishability:
do releases on neighbours within the estimate stay within (epsilon, delta)? All of it on public
data from P; nothing private is needed, or touched.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.auditing import divergence
from privatize.auditing.distinguishing import Told, tell_apart
from privatize.calibration import capacity
from privatize.calibration import streams as coins
from privatize.calibration.pairs import Pairs
from privatize.calibration.sensitivity import Sensitivity
from privatize.display import cards as views
from privatize.display import charts as drawing
from privatize.errors import AuditError, CalibrationError, ExecutionError, SettingsError
from privatize.execution.choose import collect, executor
from privatize.execution.job import SpanResult
from privatize.execution.progress import Progress
from privatize.execution.span_queue import Task, Work
from privatize.function.private_function import PrivateFunction, questions
from privatize.function.question import Question
from privatize.mechanisms.weighted import Weighted
from privatize.outputs import structure as outputs
from privatize.planning.confidence import above, clopper_pearson, low_share
from privatize.planning.plan import transfer
from privatize.samplers import as_sampler

__all__ = ["Audit", "Coverage", "audit"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How often fresh neighbours stay within the estimate, under one distribution.

    Attributes
    ----------
    sampler : str
        The distribution.
    pairs, beyond : int
        Fresh pairs, and how many of them have a gap beyond the estimate (failed ones included).
    low, high : float
        Exact (Clopper-Pearson) interval for the share of all pairs that is beyond.
    least : float
        One-sided lower limit for it, which decides.
    gamma : float
        The share that is claimed.
    holds : bool
        False if the share is larger than claimed, at the audit's confidence.
    losses : array
        For each pair the epsilon that it gets, in increasing order.
    divergence : float or None
        Of this distribution from the function's own P (Kullback-Leibler, in nats), estimated where it can be.
    transferred : float or None
        The gamma that is certain for this distribution (`privatize.transfer`), where the divergence is known
        and not estimated: an estimate is off by more than what that can bear.
    """

    sampler: str
    pairs: int
    beyond: int
    low: float
    high: float
    least: float
    gamma: float
    holds: bool
    losses: Vector = field(repr=False)
    divergence: float | None = None
    transferred: float | None = None

    @property
    def share(self) -> float:
        """The share of fresh pairs beyond the estimate."""
        return self.beyond / self.pairs

    def at(self, epsilon: float) -> float:
        """Return the share of fresh pairs whose loss is more than this epsilon."""
        return float(np.mean(self.losses > epsilon))


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an audit measured, and whether the promise held.

    Attributes
    ----------
    function : str
        Name of the function.
    n : int
        Number of records.
    epsilon, delta, gamma : float
        What is claimed.
    sensitivity : float
        The estimate.
    confidence : float
        Probability that a promise that is kept passes (but see `rho`).
    rho : float
        Probability that the calibration itself is an unlucky one, which gamma includes.
    coverage : Coverage
        Under P.
    under : tuple of Coverage
        Under other distributions, for which nothing is claimed.
    told : tuple of Told
        How well releases tell neighbours apart.
    seed : int
        Seed of the fresh pairs.
    own : bool
        Whether it was measured under the function's own P.
    """

    function: str
    n: int
    epsilon: float
    delta: float
    gamma: float
    sensitivity: float
    mechanism: str
    bound: str
    confidence: float
    rho: float
    coverage: Coverage
    under: tuple[Coverage, ...]
    told: tuple[Told, ...]
    seed: int
    own: bool = True

    @property
    def holds(self) -> bool:
        """Whether nothing that was measured contradicts the promise."""
        return self.coverage.holds and all(told.holds for told in self.told)

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.holds:
            return "nothing that was measured contradicts the promise"
        failed = []
        if not self.coverage.holds:
            failed.append(
                f"at least {self.coverage.least:.4g} of all neighbours are beyond the estimate, and "
                f"gamma={self.gamma:.4g} is claimed"
            )
        failed += [told.verdict for told in self.told if not told.holds][:1]
        where = "" if self.own else f"under {self.coverage.sampler} "
        return f"{where}the promise is broken: " + "; ".join(failed)

    def assert_holds(self) -> None:
        """Raise an AuditError if the promise is broken, for tests.

        Raises
        ------
        AuditError
            An AssertionError, with the whole audit as its text.
        """
        if not self.holds:
            raise AuditError(views.text(self))

    def __str__(self) -> str:
        return views.text(self)

    def _repr_html_(self) -> str:
        return views.audit_card(self)

    def html(self) -> str:
        """Return the audit as a page."""
        return views.audit_page(self)

    def plot(self, ax: Any = None) -> Any:
        """Plot the profile of the promise: which share of neighbours gets which epsilon.

        Needs matplotlib (the extra ``plot``). Returns the axes.
        """
        return drawing.onto(views.profile(self), ax)


def audit(
    private_function: PrivateFunction[..., Any],
    n: int,
    *args: Any,
    pairs: int | None = None,
    releases: int = 20_000,
    sampler: Any = None,
    under: Sequence[Any] = (),
    confidence: float = 0.99,
    seed: int | None = None,
    workers: Any = None,
    progress: bool | None = None,
    **kwargs: Any,
) -> Audit:
    """Measure whether a private function keeps its promise, on public data.

    Parameters
    ----------
    private_function : PrivateFunction
        Made by `privatize`.
    n : int
        Number of records.
    *args, **kwargs
        The function's other arguments; and ``like=``, as `PrivateFunction.estimate` takes it.
    pairs : int, optional
        Fresh pairs of neighbours; by default 20/gamma, and 1,000 at least.
    releases : int
        Releases on each neighbour of the pairs that are told apart. 0 leaves that part out.
    sampler : Sampler, optional
        Measure the promise under this distribution instead of the function's own P.
    under : sequence of Sampler
        Measure coverage under these too, though nothing is claimed there.
    confidence : float
        A promise that is kept passes with this probability at least, over the audit's own
        randomness.
    seed : int, optional
        Seed of the fresh pairs; they are never those of the calibration. Noise is not seeded.
    workers, progress
        As for `privatize`.

    Returns
    -------
    Audit

    References
    ----------
    Bichsel et al., "DP-Sniper", S&P 2021: an event is learned on one half of the releases and
    bounded on the other. Clopper & Pearson, Biometrika 1934.

    Examples
    --------
    >>> from privatize import audit, privatize, samplers
    >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), seed=1)(np.mean)
    >>> found = audit(mean, n=100, pairs=500, releases=2000, seed=2)
    >>> found.holds, found.coverage.beyond
    (True, 29)
    """
    if not isinstance(private_function, PrivateFunction):
        raise SettingsError(
            f"audit() takes a function that privatize() made, not a {type(private_function).__name__}."
        )
    if isinstance(confidence, bool) or not isinstance(confidence, float | int) or not 0.5 <= confidence < 1:
        raise SettingsError(f"confidence={confidence!r} is not in [0.5, 1).")
    if not isinstance(under, list | tuple):
        raise SettingsError("under= takes a list of samplers.")
    given = [(n, *args), kwargs]
    del n, args, kwargs  # they may be the data
    settings = private_function.settings
    ((asked,), _) = questions(private_function, "audit", given, several=False)
    sensitivity = private_function.calibrator.recall(asked).sensitivity
    count = max(1000, math.ceil(20 / sensitivity.gamma)) if pairs is None else _whole("pairs", pairs, 1)
    if _whole("releases", releases, 0) and releases < 100:
        raise SettingsError(f"releases={releases} are too few to tell anything: take 100 or more, or 0.")
    chosen = coins.check_seed(seed)
    base = coins.fresh_seed() if chosen is None else chosen
    task = _Auditing(asked, sensitivity, workers, progress, count)
    alpha = (1 - confidence) / 2

    own = settings.sampler if sampler is None else as_sampler(sampler)
    measured, gaps = task.measure(own, base, 0)
    coverage = _coverage(measured, gaps, sensitivity, settings, alpha, claimed=True)
    others = []
    for at, other in enumerate(map(as_sampler, under)):
        measured_there, there = task.measure(other, base, at + 1)
        # gamma is promised under the function's own P, whatever distribution is measured.
        kl = divergence.kl(settings.sampler, other, coins.stream(base, coins.AUDIT, at + 1))
        known = divergence.exact(settings.sampler, other)
        found = _coverage(measured_there, there, sensitivity, settings, alpha, claimed=False)
        if known is not None:
            transferred = min(1.0, transfer(sensitivity.gamma, sensitivity.n, known))
            found = replace(found, transferred=transferred)
        found = replace(found, divergence=kl)
        others.append(found)
    told = _told(measured, gaps, sensitivity, settings, releases, alpha)
    return Audit(
        function=private_function.__name__,
        n=sensitivity.n,
        epsilon=settings.epsilon,
        delta=settings.delta,
        gamma=sensitivity.gamma,
        sensitivity=sensitivity.value,
        mechanism=type(settings.mechanism).__name__,
        bound=sensitivity.bound,
        confidence=confidence,
        rho=sensitivity.unlucky,
        coverage=coverage,
        under=tuple(others),
        told=tuple(told),
        seed=base,
        own=own == settings.sampler,
    )


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SettingsError(f"{name}={value!r} is not an integer >= {least}.")
    return int(value)


@dataclass(frozen=True)
class _Auditing:
    """What does not change between one distribution and the next."""

    asked: Question
    sensitivity: Sensitivity
    workers: Any
    progress: bool | None
    count: int

    def measure(self, sampler: Any, base: int, at: int) -> tuple[Pairs, Vector]:
        """Return fresh pairs of one distribution, and their gaps."""
        settings, sensitivity = self.asked.settings, self.sensitivity
        converted = self.asked.converted(sensitivity.coin_seed)
        words = np.random.SeedSequence(base, spawn_key=(coins.AUDIT, at)).generate_state(2, np.uint64)
        own = sampler == settings.sampler
        pairs = Pairs(
            converted.function if own else converted,
            n=sensitivity.n,
            sampler=sampler,
            norm=_used(settings, sensitivity).norm,
            seed=int(words[0]),  # a stream of its own, whatever seed the calibration had
            like=self.asked.schema,
            around=self.asked.worker_context(),
            s0=sensitivity.coin_seed,
            whole=True,  # on whole datasets, whatever the function knows about its own gap
        )
        pairs.structure = sensitivity.structure
        pairs.classes = dict(sensitivity.classes)
        pairs.check_sampler()
        gaps = np.full(self.count, np.nan)

        def take(found: SpanResult) -> None:
            gaps[found.start : found.start + len(found.gaps)] = found.gaps

        work = Work([(0, self.count)], pairs.block, pairs.structure, pairs.drawing)
        task = Task(pairs, settings.version, settings.timeout)
        workers = capacity.fewer(self.asked.workers(self.workers), settings.timeout, pairs.bytes)
        where = executor(workers, settings.timeout)
        label = f"audit of {self.asked.name}"
        bar = Progress(label, self.count, 0, self.progress)
        self.asked.guard().run(collect, task, work, where, bar, take, label)
        if np.isnan(gaps).any():
            raise ExecutionError(f"{int(np.isnan(gaps).sum())} of {self.count} pairs were not evaluated.")
        return pairs, gaps


def _used(settings: Any, sensitivity: Sensitivity) -> Any:
    """Return the mechanism, with the weights that it was calibrated with."""
    return Weighted(settings.mechanism, sensitivity.weights) if sensitivity.weights else settings.mechanism


def _coverage(
    pairs: Pairs,
    gaps: Vector,
    sensitivity: Sensitivity,
    settings: Any,
    alpha: float,
    *,
    claimed: bool,
) -> Coverage:
    count, beyond = len(gaps), int((gaps > sensitivity.value).sum())
    low, high = clopper_pearson(beyond, count, alpha)
    gamma = sensitivity.gamma
    if not claimed:
        holds = True
    elif sensitivity.bound == "marginal":
        # It holds on average over calibrations: the share of one is spread like a beta distribution.
        holds = above(beyond, count, sensitivity.m - sensitivity.k + 1, sensitivity.k) > alpha
    else:
        holds = low_share(beyond, count, alpha) <= gamma
    return Coverage(
        sampler=repr(pairs.sampler),
        pairs=count,
        beyond=beyond,
        low=low,
        high=high,
        least=low_share(beyond, count, alpha),
        gamma=gamma,
        holds=holds,
        losses=np.sort(losses(gaps, sensitivity.value, settings)),
    )


def losses(gaps: Vector, sensitivity: float, settings: Any) -> Vector:
    """Return the epsilon that each pair gets: the one for which its gap would need the noise that there is.

    For Laplace noise that is ε·G/Δ̂. In general, the epsilon at which the mechanism's scale for the
    gap is the scale that is used.
    """
    mechanism, epsilon, delta = settings.mechanism, settings.epsilon, settings.delta
    if not delta:  # scales are in proportion to sensitivity / epsilon
        return np.asarray(epsilon * gaps / sensitivity)
    scale = mechanism.scale(sensitivity, epsilon, delta)
    knots, reach = [], []
    for knot in np.geomspace(1e-6, 1e3, 91).tolist():
        with contextlib.suppress(SettingsError):  # the mechanism may not be proven for all
            # The gap that would get this epsilon from this noise.
            reach.append(math.log(scale / mechanism.scale(1.0, knot, delta)))
            knots.append(math.log(knot))
    with np.errstate(divide="ignore"):
        found = np.interp(np.log(gaps), reach, knots, left=-np.inf, right=np.inf)
    return np.exp(found)


_NUMBERS = 10_000  # numbers of an answer that are compared; a longer release is cut, which is post-processing
_STORED = 10**7  # numbers of all releases on one neighbour, 80 MB


def _told(
    pairs: Pairs, gaps: Vector, sensitivity: Sensitivity, settings: Any, releases: int, alpha: float
) -> list[Told]:
    """Tell the two pairs with the largest gaps within the estimate apart by their releases.

    Releases and answers are divided by the scale of each number's noise, so by the weights too: in these
    units all numbers have the same noise. Scales are rounded to powers of two, so that dividing is exact.
    """
    size = min(_NUMBERS, outputs.size(sensitivity.structure))
    releases = min(releases, max(1000, _STORED // max(1, size)))
    within = np.flatnonzero(gaps <= sensitivity.value)
    if not releases or not len(within):
        return []
    chosen = within[np.argsort(gaps[within])[-2:]]
    mechanism = _used(settings, sensitivity)
    scale = mechanism.scale(sensitivity.value, settings.epsilon, settings.delta)
    found = []
    for index in chosen.tolist():
        try:
            a, b = pairs.outputs(index)
        except Exception as error:  # it worked before
            raise CalibrationError(
                f"The function failed on fresh pair {index}, on which it worked before."
            ) from error
        shown = None if hasattr(settings.mechanism, "responses") else _Units.of(scale, a, b)
        found.append(
            tell_apart(
                lambda vector: mechanism.release(
                    vector,
                    sensitivity=sensitivity.value,
                    epsilon=settings.epsilon,
                    delta=settings.delta,
                    whole=sensitivity.whole,
                ),
                a,
                b,
                gap=float(gaps[index]),
                epsilon=settings.epsilon,
                delta=settings.delta,
                releases=releases,
                alpha=alpha / len(chosen),
                # Answers from a finite set may repeat, however private they are.
                discrete=shown is None or (sensitivity.whole | shown.hidden(a, b))[shown.kept],
                shown=shown,
            )
        )
    return found


@dataclass(frozen=True)
class _Units:
    """The units that releases are compared in: of each number's noise; and the numbers that are compared."""

    powers: NDArray[np.int64]
    kept: NDArray[np.int64]

    @classmethod
    def of(cls, scale: Any, a: Vector, b: Vector) -> _Units:
        """Return the units of noise of these scales; of many numbers those that differ most are kept."""
        known = np.asarray(scale, dtype=np.float64)
        # A mechanism of somebody's own may have a scale of another form.
        finite = np.nan_to_num(np.broadcast_to(known if known.shape in ((), a.shape) else 1.0, a.shape))
        powers = np.frexp(finite)[1].astype(np.int64)
        differ = np.abs(_divided(a, powers) - _divided(b, powers))
        return cls(powers, np.sort(np.argsort(-differ, kind="stable")[:_NUMBERS]))

    def __call__(self, vector: Vector) -> Vector:
        """Return the numbers that are compared, in units of their noise."""
        if len(vector) != len(self.powers):  # a mechanism may release fewer numbers, or more
            return vector
        return _divided(vector, self.powers)[self.kept]

    def hidden(self, a: Vector, b: Vector) -> NDArray[np.bool_]:
        """Tell which numbers are so large that floats are too far apart there to show the noise."""
        largest = np.maximum(np.abs(_divided(a, self.powers)), np.abs(_divided(b, self.powers)))
        return np.asarray(np.spacing(largest) > 0.5)


def _divided(vector: Vector, powers: NDArray[np.int64]) -> Vector:
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(np.ldexp(vector, -powers), -1e300, 1e300)
