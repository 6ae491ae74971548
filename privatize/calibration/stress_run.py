"""Run a stress test: evaluate a few pairs from each of some changed P, then fresh ones from the worst."""

import logging
from collections.abc import Callable
from dataclasses import replace

from privatize.calibration import streams
from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.neighbours import TURN
from privatize.calibration.norms import Vector
from privatize.calibration.run import Collector, Run
from privatize.calibration.stress import Tried, worst_of
from privatize.samplers import Distribution, Sampler
from privatize.samplers.changes import stress_changes

_log = logging.getLogger("privatize.stress")
_CHANGES = 6  # of P that are tried
_FEWEST = 500  # pairs of a calibration that has a stress test
_SHARE, _MOST = 8, 200  # pairs of a stress test: an eighth of the calibration's, and at most so many


def stress_test(
    make: Callable[..., Evaluator],
    sampler: Sampler,
    run: Run,
    value: float,
    collector: Collector,
    *,
    wanted: bool,
) -> Tried | None:
    """Draw pairs from changed P and return their gaps, or what is remembered of them.

    There are none if P cannot be changed, if the calibration is small, or if it did not work.

    Parameters
    ----------
    make : callable
        Makes the evaluator of pairs, with a seed and the P that take turns.
    sampler : Sampler
        P.
    run : Run
        The calibration, which is completed.
    value : float
        The estimate.
    collector : Collector
        Where pairs are evaluated.
    wanted : bool
        Whether to evaluate any. An estimate that was completed earlier is left as it is.
    """
    m, memory = run.plan.m, run.memory
    known = memory is not None and (memory.tried is not None or memory.checked >= m)
    if known or not wanted or m < _FEWEST or not isinstance(sampler, Distribution):
        return None if memory is None else memory.tried
    try:
        other = [*sampler.alternatives()]
        changes = stress_changes(sampler)[: _CHANGES - len(other)]
        members = [*(sampler.changed(change) for change in changes), *(each for _, each in other)]
        words = [*(change.words for change in changes), *(word for word, _ in other)]
        collector = replace(collector, label=f"{collector.label}, stress test")
        return _tried(make, members, words, run, value, collector)
    except Exception as error:  # it is advice: without it the estimate is what it is
        _log.warning("%s: no stress test: %s", collector.label, error)
        return None


def _tried(
    make: Callable[..., Evaluator],
    members: list[Distribution],
    words: list[str],
    run: Run,
    value: float,
    collector: Collector,
) -> Tried | None:
    """Look at each changed P with a few pairs, and at the worst of them with all that are left."""

    def gaps_of(turns: list[Distribution], count: int, number: int) -> Vector:
        seed = streams.derived_seed(run.evaluator.pairs.seed, streams.STRESS, number)
        evaluator = make(seed=seed, turns=turns, answers_most=0)
        evaluator.follow(run.evaluator)
        return collector.gaps(evaluator, count)

    if not members:
        return None
    first = gaps_of(members, TURN * len(members), 0).reshape(-1, TURN)
    worst = worst_of(first, value)
    # Fresh pairs: those of the choice would make what was chosen look worse than it is.
    fresh = gaps_of([members[worst]], min(run.plan.m // _SHARE, _MOST) - first.size, 1)
    return Tried(tuple(words), tuple(map(tuple, first.tolist())), worst, tuple(fresh.tolist()))
