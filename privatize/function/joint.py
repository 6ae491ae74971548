"""Calibrate many questions together: one sample of pairs, one norm, one plan, one γ (T1, docs/catalogue.md).

The way through it, for whoever declares questions::

    asked = joint("survey", settings, parts, labels)      # a JointQuestion
    seen = pilot(asked, seed)                             # a Pilot: problems by label, else seen.weights
    found = calibrated(calibrator, asked, seen.weights, seed)   # one Sensitivity for each part, in order
"""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import streams
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.evaluators.joint import weight_of
from privatize.calibration.global_rng import level, unwind
from privatize.calibration.joint import Weights, learned_weights, shares
from privatize.calibration.run import REMEDIES, Collector
from privatize.calibration.sensitivity import Sensitivity
from privatize.display.figures import counted, duration, ended
from privatize.errors import (
    CalibrationError,
    ExecutionError,
    NotRememberedWarning,
    OutputError,
    SettingsError,
)
from privatize.execution.job import Cause, SpanResult
from privatize.function.calibrator import Calibrator
from privatize.function.joint_question import JointQuestion as JointQuestion
from privatize.function.joint_question import joint as joint
from privatize.function.question import UNKNOWN
from privatize.function.remembering import store_of
from privatize.identity.fingerprint import attempt
from privatize.mechanisms.choosing import PilotPairs
from privatize.mechanisms.shapes import Shape
from privatize.outputs.structure import Structure
from privatize.samplers.families import members_of

# Pairs of a pilot, and the fewest for each P of a family. With 64 of one P, sixty members of light and heavy
# tails got twice the noise that they got with 512 (once 10 times: large gaps of one were not seen), with 256
# up to 1.3 times.
_PAIRS, _FEWEST = 256, 64
_WORK = "Make it work on all data that P can draw, or drop it."


# --- the pilot --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piloted:
    """What a pilot has seen of one question.

    Attributes
    ----------
    label : str
        Which question.
    weights : tuple of int or None
        The weight, as the exponent of `weight_of`, and how noise is divided among its numbers.
    failed : float
        The share of pairs that failed.
    cause : str
        Why the first of them failed.
    seconds : float
        How long one evaluation takes.
    numbers : int
        How many numbers the answer has.
    problem : str
        Why the question cannot be calibrated, and what to do; empty if it can.
    """

    label: str
    weights: tuple[int, ...] | None = None
    failed: float = 0.0
    cause: str = ""
    seconds: float = 0.0
    numbers: int = 0
    problem: str = ""

    @property
    def weight(self) -> float | None:
        """About how far one record moves the answer in the worst of the pilot's pairs, in the norm's unit."""
        return None if self.weights is None else weight_of(self.weights[0])

    @property
    def how(self) -> str:
        """How the answer moves and what it is, for a person to read."""
        moved = "" if self.weight is None else f"moves by {self.weight:.3g}, "
        failed = f", {self.failed:.1%} failed" if self.failed else ""
        kind = Shape.of(self.weights[1:]).kind if self.weights else "none"
        numbers = f"{self.numbers} number{'s' * (self.numbers != 1)}"
        numbers += "" if kind == "none" else f" (scaled={kind!r})"
        return f"{moved}{numbers}, {self.seconds * 1e3:.3g} ms{failed}"


@dataclass(frozen=True)
class Tried:
    """What a pilot has seen of a question with a bound for all pairs, which is not sampled.

    Attributes
    ----------
    label : str
        Which question.
    how : str
        How it was tried.
    problem : str
        Why it cannot be asked, and what to do; empty if it can.
    """

    label: str
    how: str
    problem: str = ""


@dataclass(frozen=True)
class Pilot:
    """What a pilot has seen of all questions: it is public, and decides the weights.

    Attributes
    ----------
    name : str
        What the questions are called together.
    seed : int
        The seed of its pairs, which are not those of the calibration.
    pairs : int
        How many pairs there were.
    each : tuple of Piloted
        What was seen of each question, in order.
    ahead : float
        About how many seconds the calibration will take, as fast as the pilot was; 0 if that is not known.
    others : tuple of Tried
        What was seen of questions with a bound for all pairs.
    """

    name: str
    seed: int
    pairs: int
    each: tuple[Piloted, ...]
    ahead: float = 0.0
    others: tuple[Tried, ...] = ()

    def __getitem__(self, label: str) -> Piloted | Tried:
        """Return what was seen of one question."""
        return next(one for one in self.every if one.label == label)

    @property
    def every(self) -> tuple[Piloted | Tried, ...]:
        """What was seen of all questions."""
        return (*self.each, *self.others)

    @property
    def problems(self) -> dict[str, str]:
        """Why questions cannot be calibrated, and what to do, by label."""
        return {one.label: one.problem for one in self.every if one.problem}

    @property
    def weights(self) -> Weights:
        """The weights of all questions; raise if one of them cannot be calibrated."""
        if self.problems:
            told = " ".join(f"{label}: {problem}" for label, problem in self.problems.items())
            raise CalibrationError(f"The pilot of {self.name!r} found what cannot be calibrated. {told}")
        return tuple(one.weights or () for one in self.each)

    def __repr__(self) -> str:
        width = max(len(one.label) for one in self.every)
        heads = [f"{counted(len(self.each), 'question')}, {self.pairs} pairs"] if self.each else []
        if self.others:
            heads.append(f"{counted(len(self.others), 'question')} with bounds for all pairs")
        lines = [f"Pilot of {self.name!r}: {'; '.join(heads)}"]
        lines += [f"  {one.label:{width}}  {one.problem or one.how}" for one in self.every]
        seconds = sum(one.seconds for one in self.each)
        if self.ahead and seconds and not self.problems:
            slow = max(self.each, key=lambda one: one.seconds)
            most = f", and {slow.label} takes {slow.seconds / seconds:.0%} of its evaluations"
            about = duration(float(f"{max(self.ahead, 1):.1g}"))
            lines.append(f"The calibration will take about {about}{most if len(self.each) > 1 else ''}")
        return "\n".join(lines)


def pilot(asked: JointQuestion, seed: int | None = None) -> Pilot:
    """Evaluate all questions on some pairs of their own, and return what was seen of each.

    Nothing of it is used by the calibration but the weights, so it can be repeated, and questions may be
    dropped for what it shows. A question that fails, hangs (with ``timeout=``), returns different structures,
    gives different answers to identical data, or never moves is reported with its cause.

    Parameters
    ----------
    asked : JointQuestion
        The questions.
    seed : int, optional
        A seed; fresh by default. The pairs follow from it, and are never those of a calibration.
    """
    own = streams.derived_seed(streams.seed_or_fresh(seed), streams.PILOT, 3)
    laws = [asked.under(sampler=each) for each in members_of(asked.settings.sampler)]
    allowed = 0.0 if asked.settings.plan is None else 1 - asked.settings.plan.k / asked.settings.plan.m
    count = max(_PAIRS // len(laws), _FEWEST)
    most, unclear, runs = math.floor(allowed * count), None, []
    ahead, start = 0.0, time.perf_counter()
    try:
        for at, law in enumerate(laws, 1):
            runs.append(_run(law, own, count, 0, f", P {at} of {len(laws)}" if len(laws) > 1 else ""))
    except (CalibrationError, ExecutionError, OutputError) as error:
        unclear = error
    if unclear is None and not any(run.failed for run in runs):
        plan = asked.settings.plan
        ahead = 0.0 if plan is None else (time.perf_counter() - start) * plan.m / count
        each = [_piloted(asked, at, runs, at) for at in range(len(asked.parts))]
    else:
        each = _one_by_one(asked, laws, own, count, most)
        if unclear is not None and not any(one.problem for one in each):
            raise unclear  # it takes several of them
    return Pilot(asked.definition.name, own, count * len(laws), tuple(each), ahead)


class _Enough(Exception):  # noqa: N818 - a signal
    """A pilot has seen enough failures."""


@dataclass
class _Run:
    """What the pairs of a pilot under one P have shown; it ends after more than so many failed ones."""

    most: int
    steps: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    answers: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    structure: Structure | None = None
    seen: int = 0
    failed: set[int] = field(default_factory=set)
    cause: Cause | None = None

    def take(self, found: SpanResult) -> None:
        """Add what a span has shown, or end the run."""
        self.steps.update({at: step for at, step in found.coordinate_gaps.items() if np.isfinite(step).all()})
        self.answers.update(found.answers)
        self.structure = self.structure or found.structure
        self.seen += len(found.gaps)
        self.failed |= {found.start + at for at in np.flatnonzero(np.isinf(found.gaps)).tolist()}
        self.cause = self.cause or (found.cause and found.cause.as_text())
        if len(self.failed) > self.most:
            raise _Enough

    def of(self, at: int) -> tuple[PilotPairs, float]:
        """Return what was seen of a part, and its seconds."""
        nodes: list[Structure] = self.structure.items  # type: ignore[union-attr]
        sizes = [node.size for node in nodes]
        start = sum(sizes[:at])
        rows = np.array([self.steps[index] for index in sorted(self.steps)])
        own = slice(start, start + sizes[at])
        answers = np.array([self.answers[index][own] for index in sorted(self.answers)])
        seen = PilotPairs(rows[:, own], answers, structure=nodes[at])
        if len(answers) < 2:  # those of many numbers are not kept
            seen = PilotPairs(rows[:, own], np.zeros_like(rows[:, own]))
        return seen, float(np.median(rows[:, sum(sizes) + at])) / 2


def _run(asked: JointQuestion, seed: int, count: int, most: int, which: str = "") -> _Run:
    """Evaluate the pairs of a pilot under one P; stop after more than so many failed pairs."""
    s0, given = streams.coin_seed(seed), asked._options(seed)
    shared = {name: given[name] for name in ("n", "sampler", "version", "norm", "seed")}
    function = replace(asked, timed=True).function(s0)
    made = evaluator(
        function,
        **shared,
        s0=s0,
        target=asked.schema,
        timeout=asked.settings.timeout,
        worker_context=asked.worker_context(),
        coordinate_gaps={},
        answers_most=count,
    )
    made.pairs.check()
    run, opened = _Run(most), level()
    collector = Collector(given["workers"], given["progress"], f"{given['label']}, pilot{which}")
    try:
        with contextlib.suppress(_Enough):
            asked.guard().run(collector.collect, made, [(0, count)], count, run.take)
    finally:
        unwind(opened)
    return run


def _one_by_one(
    asked: JointQuestion, laws: list[JointQuestion], seed: int, count: int, most: int
) -> list[Piloted]:
    """Pilot each part by itself, on the same pairs, to find out which ones fail, and on how many pairs."""
    each, failed = [], [set[int]() for _ in laws]
    for at, label in enumerate(asked.labels):
        alone = [replace(law, parts=(asked.parts[at],), labels=(label,)) for law in laws]
        try:
            runs = [_run(law, seed, count, 2 * most + 4) for law in alone]
        except (CalibrationError, ExecutionError, OutputError) as error:
            each.append(Piloted(label, failed=1.0, cause=str(error), problem=str(error)))
            continue
        for pairs, run in zip(failed, runs, strict=True):
            pairs |= run.failed
        each.append(_judged(asked, at, runs, most))
    together = max(map(len, failed))
    if together > most and not any(one.problem for one in each):
        what = f"It fails together with others on {together} of {count} pairs, where {most} may. {_WORK}"
        return [replace(one, problem=what if one.failed else "") for one in each]
    return each


def _judged(asked: JointQuestion, at: int, runs: list[_Run], most: int) -> Piloted:
    """Return what was seen of a part by itself, of which some pairs may have failed."""
    worst = max(runs, key=lambda run: len(run.failed) / run.seen)
    failed, cause = len(worst.failed), "" if worst.cause is None else worst.cause.text
    if failed > most or not all(run.steps for run in runs):
        remedy = REMEDIES.get("" if worst.cause is None else worst.cause.kind, _WORK)
        what = f"{failed} of {worst.seen} pairs failed: {ended(cause)} {remedy}"
        return Piloted(asked.labels[at], failed=failed / worst.seen, cause=cause, problem=what)
    found = _piloted(asked, at, runs, 0)
    return replace(found, failed=failed / worst.seen, cause=cause)


def _piloted(asked: JointQuestion, at: int, runs: list[_Run], place: int) -> Piloted:
    """Return what was seen of a part that works; `place` is its place in the runs."""
    settings, label = asked.parts[at].settings, asked.labels[at]
    found = [run.of(place) for run in runs]
    seconds = max(seconds for _, seconds in found)
    sizes = {each.steps.shape[1] for each, _ in found}
    seen = Piloted(label, seconds=seconds, numbers=max(sizes))
    if len(sizes) > 1:
        what = "It returns different numbers of values under the P of the family. Return the same shapes."
        return replace(seen, problem=what)
    node: Structure = runs[0].structure.items[place]  # type: ignore[union-attr]
    if settings.constraints is not None and node.complete:  # otherwise it is tried when it is asked
        try:
            settings.constraints.check(node, asked.parts[at].definition.name)
        except SettingsError as error:
            return replace(seen, problem=str(error))
    floor = settings.min_sensitivity
    weights = learned_weights(settings.mechanism, [replace(each, floor=floor) for each, _ in found], floor)
    if weights is None:
        what = """No pair of the pilot moved it, so it is not known how much noise it needs. Is it constant?
            Pass min_sensitivity= (1 for a count, say), or drop it."""
        return replace(seen, problem=" ".join(what.split()))
    return replace(seen, weights=weights)


# --- the calibration --------------------------------------------------------------------------


def calibrated(
    calibrator: Calibrator, asked: JointQuestion, weights: Weights, seed: int
) -> tuple[Sensitivity, ...]:
    """Return each part's share of the joint estimate, remembered or made now.

    It is remembered and resumed under a key that has name, weights and seed in it: the same declaration gives
    the same shares, also after a crash.

    Parameters
    ----------
    calibrator : Calibrator
        Holds estimates in memory; any one will do.
    asked : JointQuestion
        The questions.
    weights : tuple of tuple of int
        What `Pilot.weights` was, fixed before.
    seed : int
        The seed of the pairs, fixed before.

    Raises
    ------
    CalibrationError
        If there is no usable estimate, or if what a function depends on changes while it runs.
    """
    fixed = _fixed(asked, weights, seed)
    _refuse_unattested(asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotRememberedWarning)
        estimate = calibrator.recall(fixed)
    places = [] if estimate.holds() else fixed.left_by_a_public_run(streams.coin_seed(seed))
    if places == UNKNOWN:  # once more: something may have been loaded on first use
        estimate = calibrator.recall(fixed)
        places = [] if estimate.holds() else places
    if places or not isinstance(estimate.sensitivity, Sensitivity):
        raise CalibrationError(f"""What the questions of {asked.definition.name!r} depend on changes while
            they run, so they would not be measured as they are asked: {"; ".join(places)}. Keep counters,
            caches and logs out of what functions refer to.""")
    mechanisms = [part.settings.mechanism for part in asked.parts]
    floors = [part.settings.min_sensitivity for part in asked.parts]
    return shares(estimate.sensitivity, fixed.weights or (), mechanisms, floors)


def _refuse_unattested(asked: JointQuestion) -> None:
    """Refuse a part without a version that needs one, if another part has one: that would attest it, too."""
    if asked.settings.version is None:
        return
    for label, part in zip(asked.labels, asked.parts, strict=True):
        found, what = attempt(part.facts(), version=part.settings.version)
        if found is None:
            raise SettingsError(f"""{label} depends on {what}, whose content cannot be compared. Keep it out
                of its arguments, closure and globals, or describe it with version=.""")


def remembered(asked: JointQuestion, weights: Weights, seed: int) -> bool:
    """Tell whether the joint estimate is in a store that outlives this process: other ones recall it."""
    outlives = store_of(asked.settings).url != "memory"
    return outlives and Calibrator().remembers(_fixed(asked, weights, seed))


def _fixed(asked: JointQuestion, weights: Weights, seed: int) -> JointQuestion:
    """Return the questions with what was fixed before they are calibrated."""
    return replace(asked.under(seed=seed), weights=tuple(map(tuple, weights)))
