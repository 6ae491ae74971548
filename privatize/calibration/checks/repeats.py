"""Check that a function repeats itself: at once, and at the end of a calibration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privatize.calibration import streams
from privatize.calibration.checks.chosen import at_random, largest, smallest
from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.norms import Vector
from privatize.errors import NotReproducibleError

__all__ = ["DRIFTS", "SLACK", "check_drift", "check_repeats", "is_close"]

# What the same sums in another order may differ by, relative to the outputs.
SLACK = 2.0**-47
DRIFTS = (
    "The function gave another answer for identical data at the end of the calibration than before. It must "
    "not depend on earlier calls (caches, warm starts, counters), the time, the process it runs in (library "
    "settings, patches, the order of a set of texts), or globals that change, nor use randomness for some "
    "data only."
)


def check_repeats(evaluator: Evaluator, first: Any, again: Any, rng: rng_guard) -> None:
    """Evaluate A, B, A: caches, warm starts and hidden randomness show in the second A.

    What differs by rounding alone is noted: libraries that sum in parallel (polars) round differently from
    run to run.
    """
    rng.reseed()
    try:
        second = evaluator.flat(evaluator.function(again))
    except KeyboardInterrupt:
        raise
    except BaseException:  # sys.exit() as well
        second = None
    if second is not None:
        if np.array_equal(first, second, equal_nan=True):
            return
        differ = evaluator.norm.gap(first, second)
        if differ <= _slack(first, second):
            evaluator.rounding_noise = max(evaluator.rounding_noise, differ)
            return
    raise NotReproducibleError(
        "The function gave two different answers for identical data. Its randomness, if it has any, "
        "must come from `random`, `numpy.random`, torch's default generator, or a parameter named "
        "by coins=('rng',), which receives a seeded generator; it must not depend on earlier "
        "calls (caches, warm starts, counters, the time); and its rows must have an order (those of "
        "polars' group_by and unique have none: sort them)."
    )


def check_drift(evaluator: Evaluator, gaps: Vector, *, exact: bool, elsewhere: bool) -> None:
    """Measure the first pair and the one with the largest gap again, to find a function that drifts.

    They are measured in this process; wherever they were measured before, the gap must be the same. Other
    machines may round differently (not ``exact``). If pairs were measured ``elsewhere``, a few more are
    measured again, at random and those with the smallest gaps: a function may behave differently there on
    some data only, and gaps that are too small do harm.
    """
    worked = np.isfinite(gaps)
    if not worked.any():
        return
    chosen = {int(worked.argmax()), *largest(gaps, 1)}
    if elsewhere:
        rng = streams.stream(evaluator.pairs.seed, streams.CHECK, 2)
        chosen |= {*at_random(gaps, rng), *smallest(gaps)}
    kept = [evaluator.pairs.drop_buffers()]
    with rng_guard(evaluator.s0) as guard:
        for index in sorted(chosen):
            # Other arrays than for the last pair: a function may have noted their ids.
            kept[1:] = [evaluator.pairs.drop_buffers()]
            pair = evaluator.pair_at(index)
            try:
                a, b = evaluator.both(pair, guard)
                gap = evaluator.norm.gap(a, b)
            except KeyboardInterrupt:
                raise
            except BaseException:  # sys.exit() as well
                raise NotReproducibleError(DRIFTS) from None
            before = float(gaps[index])
            differ = abs(gap - before)
            if gap != before and not (differ <= _slack(a, b) or (not exact and is_close(gap, before, a, b))):
                raise NotReproducibleError(DRIFTS)
            evaluator.rounding_noise = max(evaluator.rounding_noise, differ)


def is_close(one: float, other: float, a: Any, b: Any) -> bool:
    """Tell whether two gaps, computed in two ways, differ by no more than rounding, in gap and values."""
    slack = 1e-6 * max(one, other) + _slack(a, b)
    return one == other or abs(one - other) <= slack < math.inf


def _slack(a: Any, b: Any) -> float:
    """Return what rounding may change about the difference of two outputs."""
    with np.errstate(over="ignore"):
        return SLACK * float(np.abs(a).sum() + np.abs(b).sum())
