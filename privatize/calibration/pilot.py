"""The pilot: a few pairs of their own that show how noise is best divided among the numbers of an answer."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privatize.calibration import streams
from privatize.calibration.evaluators.base import MOST_NUMBERS, Evaluator
from privatize.calibration.evaluators.summed import SummedEvaluator
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import NeighbourSampler
from privatize.calibration.norms import Vector
from privatize.calibration.run import Collector, Memory
from privatize.data import records
from privatize.errors import FragileEstimateWarning, SettingsError
from privatize.execution.job import SpanResult
from privatize.execution.threads import limit, restore
from privatize.identity.library import outside
from privatize.mechanisms.base import complete
from privatize.mechanisms.choosing import Matrix, PilotPairs, choose
from privatize.mechanisms.shapes import Shape
from privatize.outputs.models import Model, refitted
from privatize.outputs.structure import Structure

_NAMED = 5  # numbers that a warning names
_FIRST = 4  # pairs that are evaluated before the others
_SHARE, _FEWEST, _MOST = 16, 16, 128  # a sixteenth of the calibration's pairs, within these limits


@dataclass(frozen=True)
class Member:
    """What all members of a family of P have in common, fixed before any of them is calibrated.

    Attributes
    ----------
    coin_seed : int
        The public seed of the random generators that the function uses: a release has one, whatever P is.
    shape : Shape or None
        How noise is divided among numbers, from a pilot of all members together: one norm for all. None if
        the mechanism does not divide it.
    label : str
        The function's name with the member's number and name, for progress bars.
    """

    coin_seed: int
    shape: Shape | None
    label: str


def divides(mechanism: Any) -> bool:
    """Tell whether a mechanism may give the numbers of an answer different noise."""
    return complete(mechanism).scaled != "none"


def pilot_size(m: int) -> int:
    """Return how many pairs a pilot has, for a calibration of m pairs.

    Examples
    --------
    >>> [pilot_size(m) for m in (40, 219, 557, 10_000)]
    [16, 16, 34, 128]
    """
    return min(max(m // _SHARE, _FEWEST), _MOST)


def learn_shape(
    make: Callable[..., Evaluator],
    mechanism: Any,
    *,
    seed: int,
    m: int,
    memory: Memory | None,
    collector: Collector,
    floor: float | None = None,
    member: Member | None = None,
    warned: bool = False,
) -> tuple[Shape, Structure | None, NeighbourSampler | None]:
    """Return how a mechanism divides its noise; "none" if no pair has worked, or if there is one number.

    The structure, if there is one, has the numbers in the order that the shape has them. If P was drawn from,
    and checked, its pairs come last.

    Parameters
    ----------
    make : callable
        Makes the evaluator of pairs, with a norm and a seed.
    mechanism : Laplace or Gaussian or None
        The mechanism, if it divides noise.
    seed : int
        The calibration's seed; the pairs of a pilot are drawn with another one, derived from it.
    m : int
        How many pairs the calibration has; see `pilot_size`.
    memory : Memory or None
        Has the shape if it is known already, and agrees on a new one with other processes.
    collector : Collector
        Where pairs are evaluated.
    floor : float or None
        The least that one record moves a number, if it is known.
    member : Member, optional
        If P is a member of a family, it has the shape that all members use. Nothing is learned then.
    warned : bool
        Whether to warn about numbers that few people decide.
    """
    if mechanism is None:
        return Shape(), None, None
    pooled, order, drawn = None if member is None else member.shape, None, None
    if memory is not None and memory.weights is not None:
        return Shape.of(memory.weights), None, None
    if pooled is None:
        if memory is not None and memory.structure is not None and memory.structure.size == 1:
            return Shape(), None, None
        count = pilot_size(m)
        pilot = pilot_evaluator(make, mechanism, seed, count)
        found, drawn = pilot_pairs(pilot, mechanism, collector, count, floor), pilot.pairs
        if found is None:
            return Shape(), None, drawn
        if warned:
            warn_rare(collector.label, [found])
        # If all pairs failed, the calibration itself will report why.
        pooled = chosen(mechanism, found) if len(found.steps) else Shape()
        # Without it the calibration looks for rounding noise itself, and widens the estimate.
        order = None if found.rounding_noise else found.structure
    own = list(pooled.encoded)
    agreed = own if memory is None else memory.agree(own)
    return (pooled, order, drawn) if agreed == own else (Shape.of(agreed), None, drawn)


def warn_rare(name: str, found: Sequence[PilotPairs]) -> None:
    """Warn about numbers that differ between datasets, but that no pair has moved, under any P."""
    structure: Any = found[0].structure if found else None
    if structure is None:
        return
    rare = sorted(set.union(*(each.rare for each in found)).intersection(*(each.still for each in found)))
    if not rare:
        return
    names, pairs = structure.names(), sum(len(each.steps) for each in found)
    some = ", ".join(names[at] for at in rare[:_NAMED]) + (", ..." if len(rare) > _NAMED else "")
    text = f"""{name}(): of the numbers that it returns, none of {pairs} pairs of neighbours has moved {some},
        which differ from one dataset of P to the next. So few people decide them: it may be a minimum, a
        maximum, or a mean of few. Beside other numbers they get noise for usual moves, which hardly protects
        these people. Leave them out, or ask for a quantile or larger groups, or pass min_sensitivity=.
        configure(stress=False) switches this warning off."""
    warnings.warn(" ".join(text.split()), FragileEstimateWarning, stacklevel=outside())


def chosen(mechanism: Any, found: PilotPairs) -> Shape:
    """Return how a mechanism divides its noise, computed with one thread, as everything public is."""
    limited: list[Any] = []
    try:
        limit(limited)
        return choose(mechanism, found)
    finally:
        restore(limited)


def pilot_evaluator(make: Callable[..., Evaluator], mechanism: Any, seed: int, count: int) -> Evaluator:
    """Return the evaluator of a pilot's pairs, for the seed of a calibration; P is checked."""
    own = streams.derived_seed(seed, streams.PILOT, 2)
    pilot = make(norm=mechanism.norm, seed=own, coordinate_gaps={}, answers_most=count)
    pilot.pairs.check()
    return pilot


def pilot_pairs(
    pilot: Evaluator, mechanism: Any, collector: Collector, count: int, floor: float | None = None
) -> PilotPairs | None:
    """Return what the pairs of a pilot have shown; None if the answer has one number, or too many."""
    steps: dict[int, Vector] = {}
    answers: dict[int, Vector] = {}

    def take(result: SpanResult) -> None:
        pilot.learn(result.structure, result.rounding_noise)
        steps.update(result.coordinate_gaps)
        answers.update(result.answers)

    collector = replace(collector, label=f"{collector.label}, pilot")
    # The first pair shows how many numbers there are. If a few fail, the calibration itself will report why.
    start = 0
    while start < count:
        stop = count if answers or start == _FIRST else _FIRST if start else 1
        collector.collect(pilot, [(start, stop)], count, take)
        size = 0 if pilot.structure is None else pilot.structure.size
        if size == 1 or _too_long(size, complete(mechanism).scaled):
            return None
        if stop == _FIRST and not answers:
            break
        start = stop
    return _shown(pilot, steps, answers, floor)


def _shown(
    pilot: Evaluator, steps: dict[int, Vector], answers: dict[int, Vector], floor: float | None
) -> PilotPairs:
    """Return what pairs have shown, without those that are not finite."""
    size = 0 if pilot.structure is None else pilot.structure.size
    worked = [at for at in sorted(answers) if np.isfinite(steps[at]).all()]
    rows = [np.array([each[at] for at in worked]).reshape(len(worked), size) for each in (steps, answers)]
    metric = None if pilot.structure is None or not worked else metric_of(pilot.structure, pilot, worked[0])
    steps_apart = not isinstance(pilot, SummedEvaluator)
    return PilotPairs(rows[0], rows[1], metric, floor, pilot.structure, steps_apart, pilot.rounding_noise)


def _too_long(size: int, scaled: str) -> bool:
    """Tell whether an answer has too many numbers for a pilot; refuse it if the user has asked for one."""
    if size > MOST_NUMBERS and scaled != "auto":
        raise SettingsError(f"""scaled={scaled!r} is for at most {MOST_NUMBERS:,} numbers, and the answer has
            {size:,}. Leave it out, or ask for fewer.""")
    return size > MOST_NUMBERS


def pooled_pairs(found: Sequence[PilotPairs]) -> PilotPairs:
    """Return the pairs of the members of a family as those of one pilot.

    Answers are centered for each member, so that their spread is that under one P. If keys come in another
    order under another member, numbers at the same place are different ones, and no order is common to all.
    """
    orders = [None if each.structure is None else each.structure.to_json() for each in found]
    order = found[0].structure if all(each == orders[0] for each in orders) else None
    answers = [each.answers - each.answers.mean(axis=0) for each in found if len(each.answers)]
    steps = [each.steps for each in found if len(each.steps)]
    metrics = [each.metric for each in found if each.metric is not None]
    metric = np.mean(metrics, axis=0) if len(metrics) == len(found) else None
    return PilotPairs(np.concatenate(steps), np.concatenate(answers), metric, found[0].floor, order)


def metric_of(structure: Structure, evaluator: Evaluator, index: int) -> Matrix | None:
    """Return the mean of x xᵀ under P for a linear model of x, since its predictions are what people want.

    None if the answer is no linear model, or if it was not fitted to the dataset (X, y) as it is: the same
    model is fitted to that of one pair again, and must come out the same.
    """
    if not isinstance(structure, Model) or structure.released[:1] != ["coef_"]:
        return None
    drawn = evaluator.pairs.pair_at(index).records
    if not _is_pair(drawn):
        return None
    try:
        table, target = records.head(drawn, evaluator.pairs.n)
        x = np.asarray(table, dtype=np.float64)
        with rng_guard(evaluator.s0) as rng:
            found = evaluator.evaluated(records.copy((table, target)), rng)
            rng.reseed()
            again = evaluator.known_structure.flatten(refitted(evaluator.known_structure, table, target))
    except Exception:  # columns that are no numbers, or a model that cannot be fitted again
        return None
    sizes = [leaf.size for leaf in structure.leaves()]
    if x.ndim != 2 or not np.isfinite(x).all() or not np.allclose(found, again, rtol=1e-6, atol=0):
        return None
    return _moments(x, sizes)


def _is_pair(drawn: Any) -> bool:
    return isinstance(drawn, tuple) and len(drawn) == 2


def _moments(x: Matrix, sizes: list[int]) -> Matrix | None:
    """Return the mean of x xᵀ for the coefficients, and the intercepts if there are any, of each line."""
    columns = x.shape[1]
    lines = sizes[0] // columns  # one for each class, or target
    if lines * columns != sizes[0] or sizes[1:] not in ([], [lines]):
        return None
    x = np.column_stack([x, np.ones(len(x))]) if sizes[1:] else x
    moments, places = x.T @ x / len(x), np.arange(sizes[0]).reshape(lines, columns)
    found = np.zeros((sum(sizes), sum(sizes)))
    for line, coefficients in enumerate(places):
        at = [*coefficients, sizes[0] + line] if sizes[1:] else coefficients
        found[np.ix_(at, at)] = moments
    return found
