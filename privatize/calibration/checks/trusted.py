"""Check `pair=` and `batch=` against plain evaluation."""

from __future__ import annotations

import numpy as np

from privatize.calibration.checks.chosen import CHECKED, largest, smallest, spread
from privatize.calibration.checks.repeats import is_close
from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.norms import Vector
from privatize.errors import PairError

__all__ = ["ROUNDING", "check_trusted"]

# By how much the same gap may differ between two evaluations, relative to the sensitivity.
ROUNDING = 2.0**-20


def check_trusted(evaluator: Evaluator, gaps: Vector, value: float) -> None:
    """Compare `pair=` or `batch=` with plain evaluation, on random indices and on the largest gaps.

    They may differ by rounding, by little relative to the ``value`` that was read from the gaps.
    """
    which = evaluator.trusted
    some = spread(gaps, evaluator.pairs.seed, together=evaluator.together)
    chosen = np.union1d([*some, *smallest(gaps)], largest(gaps, CHECKED))
    with rng_guard(evaluator.s0) as rng:
        for index in chosen.astype(int).tolist():
            pair = evaluator.pair_at(index)
            try:
                a, b = evaluator.both(pair, rng)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # sys.exit() as well
                raise PairError(
                    f"{which} disagrees with plain evaluation: the function fails on sampled pair {index}, "
                    f"or returns an output of another structure.",
                    index=index,
                ) from error
            plain, claimed = evaluator.norm.gap(a, b), float(gaps[index])
            # Gaps beyond the sensitivity may differ by as much, relative to themselves.
            differ = abs(plain - claimed) * min(1.0, value / max(plain, claimed, value))
            if not is_close(plain, claimed, a, b) or differ > ROUNDING * value:
                raise PairError(
                    f"{which} disagrees with plain evaluation: for sampled pair {index} it gives the gap "
                    f"{claimed:.6g}, and running the function on both neighbours gives {plain:.6g}. The "
                    f"difference of {abs(plain - claimed):.3g} is more than rounding may make for a "
                    f"sensitivity of {value:.3g}. Fix it, or leave {which} out.",
                    index=index,
                    pair=claimed,
                    evaluated=plain,
                )
            evaluator.rounding_noise = max(evaluator.rounding_noise, differ)
