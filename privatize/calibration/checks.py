"""The health checks of a calibration: some pairs are evaluated again, and must give the same gaps."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from privatize.calibration import streams
from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.norms import Vector, slack_of
from privatize.calibration.user_warnings import collected_warnings
from privatize.errors import NotReproducibleError, PairError, PrivatizeError

CHECKED = 8  # how many pairs of a kind are evaluated again
_PIECE = 2**20  # gaps that are searched at once
DRIFTS = (
    "The function gave another answer for identical data at the end of the calibration than before. It must "
    "not depend on earlier calls (caches, warm starts, counters), the time, the process it runs in (library "
    "settings, patches, the order of a set of strings), or globals that change, nor use randomness for some "
    "data only."
)
# By how much the same gap may differ between two evaluations, relative to the sensitivity.
ROUNDING = 2.0**-20


# -- which pairs --


def largest(gaps: Vector, count: int, sign: float = 1.0) -> list[int]:
    """Return the indices of the largest finite gaps, the largest first; piece by piece, to save memory.

    Examples
    --------
    >>> largest(np.array([1.0, 5.0, np.inf, 3.0]), 2)
    [1, 3]
    """
    best = np.zeros(0, dtype=np.int64)
    for start in range(0, len(gaps), _PIECE):
        piece = gaps[start : start + _PIECE]
        places = np.concatenate([best, start + np.flatnonzero(np.isfinite(piece))])
        if len(places) > count:  # a selection, so that few are left to be sorted
            values = sign * gaps[places]
            places = places[values >= np.partition(values, -count)[-count]]
        best = places[np.argsort(sign * gaps[places], kind="stable")[-count:]]
    found: list[int] = best[::-1].tolist()
    return found


def smallest(gaps: Vector) -> list[int]:
    """Return the indices of the two smallest finite gaps."""
    return largest(gaps, 2, sign=-1.0)


def at_random(gaps: Vector, rng: np.random.Generator, most: int = CHECKED) -> list[int]:
    """Return the indices of some finite gaps, chosen without regard to their size."""
    finite = np.isfinite(gaps)
    if len(gaps) > _PIECE:  # a list of all places would take as much memory as the gaps
        places = np.unique(rng.integers(len(gaps), size=100 * most))
        places = rng.permutation(places[finite[places]])
    else:
        places = np.flatnonzero(finite)
    found: list[int] = rng.choice(places, min(most, len(places)), replace=False).tolist()
    return found


def of_all_blocks(gaps: Vector, block: int, rng: np.random.Generator, most: int) -> set[int]:
    """Return indices of random finite gaps, with two of the last block, which may be shorter than others.

    They are from all blocks, because an error may happen in some calls or some processes only.
    """
    start = (len(gaps) - 1) // block * block
    return {*at_random(gaps, rng, most), *(start + at for at in at_random(gaps[start:], rng, 2))}


# -- what is compared --


def check_drift(evaluator: Evaluator, gaps: Vector, *, exact: bool, elsewhere: bool) -> None:
    """Measure the first pair and the one with the largest gap again, to find a function that drifts.

    They are measured in this process; wherever they were measured before, the gap must be the same. Other
    machines may round differently (not ``exact``). If pairs were measured ``elsewhere``, a few more are
    measured again, at random and those with the smallest gaps: a function may behave differently there on
    some data only, and gaps that are too small would give too little noise.
    """
    worked = np.isfinite(gaps)
    if not worked.any():
        return
    chosen = {int(worked.argmax()), *largest(gaps, 1)}
    if elsewhere:
        rng = streams.stream(evaluator.pairs.seed, streams.CHECK, 2)
        chosen |= {*at_random(gaps, rng), *smallest(gaps)}
    with rng_guard(evaluator.s0) as guard, collected_warnings(evaluator.warned):
        for index, a, b, gap in _again(evaluator, chosen, guard, lambda _: NotReproducibleError(DRIFTS)):
            before = float(gaps[index])
            differ = abs(gap - before)
            same = gap == before or differ <= slack_of(a, b)
            if not same and (exact or not is_close(gap, before, a, b)):
                raise NotReproducibleError(DRIFTS)
            evaluator.rounding_noise = max(evaluator.rounding_noise, differ)


def _again(
    evaluator: Evaluator, chosen: set[int], guard: rng_guard, refusal: Callable[[int], PrivatizeError]
) -> Iterator[tuple[int, Any, Any, float]]:
    """Run the function on chosen pairs; yield indices, flat outputs and gaps, or refuse if it fails."""
    buffers = [evaluator.pairs.drop_buffers()]
    for index in sorted(chosen):
        # In other memory than the last pair: a function may recognize arrays by their ids.
        buffers[1:] = [evaluator.pairs.drop_buffers()]
        pair = evaluator.pairs.pair_at(index)
        try:
            a, b = evaluator.both(pair, guard)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() as well
            raise refusal(index) from error
        yield index, a, b, evaluator.norm.gap(a, b)


def is_close(one: float, other: float, a: Any, b: Any) -> bool:
    """Tell whether two gaps, computed in two ways, differ by no more than rounding, in gap and values."""
    slack = 1e-6 * max(one, other) + slack_of(a, b)
    return one == other or abs(one - other) <= slack < math.inf


def check_trusted(evaluator: Evaluator, gaps: Vector, value: float) -> None:
    """Compare `pair=` or `batch=` with plain evaluation, on random indices and on the largest gaps.

    They may differ by rounding, by little relative to the ``value`` that was read from the gaps.
    """
    which, rng = evaluator.trusted, streams.stream(evaluator.pairs.seed, streams.CHECK)
    # More pairs for batch=: that is cheap, and a batch may be wrong for some of its datasets only.
    some = of_all_blocks(gaps, evaluator.block, rng, 4 * CHECKED if evaluator.together else CHECKED)
    chosen = some | {*smallest(gaps), *largest(gaps, CHECKED)}

    def refusal(index: int) -> PairError:
        what = f"""{which} disagrees with plain evaluation: the function fails on sampled pair {index}, or
            returns an output of another structure."""
        return PairError(what, index=index)

    with rng_guard(evaluator.s0) as guard, collected_warnings(evaluator.warned):
        for index, a, b, plain in _again(evaluator, chosen, guard, refusal):
            claimed = float(gaps[index])
            # Gaps beyond the sensitivity may differ by as much, relative to themselves.
            differ = abs(plain - claimed) * min(1.0, value / max(plain, claimed, value))
            if not is_close(plain, claimed, a, b) or differ > ROUNDING * value:
                what = f"""{which} disagrees with plain evaluation: for sampled pair {index} it gives the gap
                    {claimed:.6g}, and running the function on both neighbours gives {plain:.6g}. The
                    difference of {abs(plain - claimed):.3g} is more than rounding may make for a sensitivity
                    of {value:.3g}. Fix it, or leave {which} out."""
                raise PairError(what, index=index, pair=claimed, evaluated=plain)
            evaluator.rounding_noise = max(evaluator.rounding_noise, differ)
