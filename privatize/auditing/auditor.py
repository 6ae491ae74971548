"""audit(): measure whether both halves of the promise are true.

Coverage: do fresh neighbours stay within the estimate as often as gamma says? Distinguishability:
do releases on neighbours within the estimate stay within (epsilon, delta)? Both are measured
on public data from P; private data is neither needed nor touched.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privatize.auditing.coverage import Coverage, cover, divergence
from privatize.auditing.distinguishing import NUMBERS, Told, Units, Vector, tell_apart
from privatize.auditing.findings import Audit
from privatize.calibration import streams
from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.refuting import AnyBound
from privatize.calibration.run import Collector
from privatize.errors import CalibrationError, SettingsError
from privatize.function.asking import questions
from privatize.function.private_function import PrivateFunction
from privatize.function.question import Question
from privatize.mechanisms.exponential import Exponential
from privatize.mechanisms.matrix import MatrixWeighted
from privatize.mechanisms.weighted import weighted
from privatize.planning.divergence import transfer
from privatize.planning.numbers import as_integer
from privatize.samplers import as_sampler
from privatize.samplers.families import members_of

_STORED = 10**7  # at most so many numbers in all releases on one neighbour: 80 MB


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
        Measure the promise under this distribution instead of the function's own P. A family of P is measured
        under each member, and the one with most pairs beyond the estimate is reported.
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
    _check(private_function, pairs, releases, under, confidence)
    given = [(n, *args), kwargs]
    del n, args, kwargs  # they may be the data
    definition, calibrator = private_function.definition, private_function.calibrator
    ((asked,), _) = questions(definition, calibrator, "audit", given, several=False)
    settings, base = private_function.settings, streams.seed_or_fresh(seed)
    sensitivity = calibrator.recall(asked).sensitivity
    usual = math.ceil(20 / sensitivity.gamma) if sensitivity.gamma else 0
    count = max(1000, usual) if pairs is None else int(pairs)
    auditor = _Auditor(asked, sensitivity, workers, progress, count, base, (1 - confidence) / 2)
    own = settings.sampler if sampler is None else as_sampler(sampler)
    each = members_of(own)
    measured = [auditor.measure(member, 0) for member in each]
    covered = [auditor.cover(*found, len(each)) for found in zip(each, measured, strict=True)]
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
        coverage=max(covered, key=lambda coverage: coverage.beyond),
        under=tuple(auditor.under(other, at) for at, other in enumerate(_several(under), 1)),
        told=tuple(auditor.tell(*max(measured, key=auditor.within), releases)),
        seed=base,
        own=own == settings.sampler,
        members=len(each),
    )


def _unchanged(vector: Vector) -> Vector:
    return vector


def _several(under: Sequence[Any]) -> list[Any]:
    """Return all samplers of a list; of a family, every member."""
    return [member for other in map(as_sampler, under) for member in members_of(other)]


def _check(function: Any, pairs: Any, releases: Any, under: Any, confidence: Any) -> None:
    """Refuse wrong arguments of an audit."""
    if not isinstance(function, PrivateFunction):
        raise SettingsError(f"""audit() takes a function that privatize() made, not a
            {type(function).__name__}.""")
    if isinstance(confidence, bool) or not isinstance(confidence, float | int) or not 0.5 <= confidence < 1:
        raise SettingsError(f"confidence={confidence!r} is not in [0.5, 1).")
    if not isinstance(under, list | tuple):
        raise SettingsError("under= takes a list of samplers.")
    for name, value, least in (("pairs", 1 if pairs is None else pairs, 1), ("releases", releases, 0)):
        if as_integer(value) < least:
            raise SettingsError(f"{name}={value!r} is not an integer >= {least}.")
    if 0 < releases < 100:
        raise SettingsError(f"releases={releases} are too few to tell anything: take 100 or more, or 0.")


@dataclass(frozen=True)
class _Auditor:
    """Measures one calibrated function; its attributes are the same for all distributions."""

    asked: Question
    sensitivity: AnyBound
    workers: Any
    progress: bool | None
    count: int
    base: int
    alpha: float

    @functools.cached_property
    def mechanism(self) -> Any:
        """The mechanism, with the weights that it was calibrated with."""
        return weighted(self.asked.settings.mechanism, self.sensitivity.shape)

    def measure(self, sampler: Any, at: int) -> tuple[Evaluator, Vector]:
        """Return an evaluator of fresh pairs from one distribution, and their gaps."""
        settings, sensitivity = self.asked.settings, self.sensitivity
        converted = self.asked.converted(sensitivity.coin_seed)
        evaluating = evaluator(
            converted.function if sampler in members_of(settings.sampler) else converted,
            n=sensitivity.n,
            sampler=sampler,
            norm=self.mechanism.norm,
            seed=streams.derived_seed(self.base, streams.AUDIT, at),  # never the calibration's seed
            target=self.asked.schema,
            worker_context=self.asked.worker_context(),
            s0=sensitivity.coin_seed,
            version=settings.version,
            timeout=settings.timeout,
            entire=True,  # on entire datasets, even if gaps need only two records
        )
        evaluating.learn(sensitivity.structure)
        evaluating.pairs.check()
        workers = self.asked.workers(self.workers)
        collector = Collector(workers, self.progress, f"audit of {self.asked.definition.name}")
        return evaluating, self.asked.guard().run(collector.gaps, evaluating, self.count)

    def cover(self, sampler: Any, measured: tuple[Evaluator, Vector], many: int) -> Coverage:
        """Return the coverage under one of several distributions under which the promise is claimed."""
        alpha = self.alpha / many  # the one with most pairs beyond is reported
        return cover(repr(sampler), measured[1], self.sensitivity, self.asked.settings, alpha, claimed=True)

    def within(self, measured: tuple[Evaluator, Vector]) -> float:
        """Return the largest gap within the estimate."""
        return float(np.max(measured[1], where=measured[1] <= self.sensitivity.value, initial=-1.0))

    def under(self, sampler: Any, at: int) -> Coverage:
        """Return the coverage under a distribution for which nothing is claimed, and how far it is from P."""
        _, gaps = self.measure(sampler, at)
        settings, sensitivity = self.asked.settings, self.sensitivity
        found = cover(repr(sampler), gaps, sensitivity, settings, self.alpha, claimed=False)
        # gamma is promised under the function's own P, or each of them, whatever distribution is measured.
        divergences = [divergence(member, sampler) for member in members_of(settings.sampler)]
        known = min((each for each in divergences if each is not None), default=None)
        if known is None:
            return found
        certain = min(1.0, transfer(sensitivity.gamma, sensitivity.n, known))
        return replace(found, divergence=known, transferred=certain)

    def tell(self, measured: Evaluator, gaps: Vector, releases: int) -> list[Told]:
        """Try to tell neighbours apart by their releases, on the two largest gaps within the estimate.

        Releases and answers are divided by the scale of each number's noise, and so also by the weights: in
        these units all numbers have the same noise. Scales are rounded to powers of two: division is exact.
        Correlated noise is transformed to noise that is not.
        """
        settings, sensitivity = self.asked.settings, self.sensitivity
        size = min(NUMBERS, sensitivity.structure.size)
        releases = min(releases, max(1000, _STORED // max(1, size)))
        within = np.flatnonzero(gaps <= sensitivity.value)
        chosen = within[np.argsort(gaps[within])[-2 if releases else len(within) :]].tolist()
        promise = {"epsilon": settings.epsilon, "delta": settings.delta}
        limits: dict[str, Any] = promise | {"releases": releases, "alpha": self.alpha / max(1, len(chosen))}
        whole, transform, scaling = sensitivity.whole, _unchanged, self.mechanism
        if isinstance(self.mechanism, MatrixWeighted):  # every transformed number has the same noise
            whole = np.full(len(whole), bool(whole.any()))
            transform, scaling = self.mechanism.transformed, settings.mechanism
        scale = scaling.scale(sensitivity.value, *promise.values())
        release = functools.partial(
            self.mechanism.release, sensitivity=sensitivity.value, **promise, whole=sensitivity.whole
        )
        found = []
        for index in chosen:
            try:
                a, b = measured.outputs(index)
            except Exception as error:  # although it worked before
                raise CalibrationError(f"""The function failed on fresh pair {index}, on which it worked
                    before.""") from error
            shown = None if isinstance(settings.mechanism, Exponential) else Units.of(scale, a, b, transform)
            # Answers from a finite set may repeat, even if they are private.
            repeats = shown is None or (whole | shown.hidden(a, b))[shown.compared]
            gap = float(gaps[index])
            found.append(tell_apart(release, a, b, gap=gap, discrete=repeats, shown=shown, **limits))
        return found
