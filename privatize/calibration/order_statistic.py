"""The order statistic of the gaps that is the estimate, and by how much it is widened or refused."""

import math

import numpy as np

from privatize.calibration.checks import ROUNDING
from privatize.calibration.norms import Vector
from privatize.errors import InfiniteSensitivityError, NotReproducibleError, ZeroSensitivityError
from privatize.mechanisms.shapes import Shape
from privatize.planning.plan import Plan

SMALLEST = 1e-300
"""The smallest estimate, since smaller floats lose digits."""
_MANY = 2**20  # gaps, of which no copy is made at once
# How many of them show about where the k-th smallest is, and how far from there it may be: by five standard
# deviations, if gaps are independent of their index.
_SHOWN, _NEAR = 2**14, 320


def floor_of(given: float | None, shape: Shape) -> float | None:
    """Return a floor in the norm of the gaps, in which the noise has this shape."""
    return None if given is None else shape.floor(given)


def widened(value: float, noise: float) -> float:
    """Return an estimate, widened if there is rounding noise from run to run, or refuse it.

    Examples
    --------
    >>> widened(1.0, 0.0), widened(1.0, 1e-12) > 1
    (1.0, True)
    """
    if noise > value * ROUNDING:
        raise NotReproducibleError(f"""The function rounds differently from run to run, by up to {noise:.3g},
            which is too much for a sensitivity of {value:.3g}. Have it compute in a fixed order: one thread
            (for polars, POLARS_MAX_THREADS=1 in the environment), sorted data.""")
    # Four evaluations (both neighbours, measured and released), and four times that as a reserve.
    return value * (1 + 16 * ROUNDING) if noise else value


def times(value: float, factor: float) -> float:
    """Return an estimate that is a factor larger, rounded up.

    Examples
    --------
    >>> times(0.1, 1.0), times(0.1, 3.0) > 0.3
    (0.1, True)
    """
    return value if factor == 1 else math.nextafter(value * factor, math.inf)


def smallest(gaps: Vector, k: int) -> float:
    """Return the k-th smallest gap; of very many, without a copy of all of them.

    Examples
    --------
    >>> smallest(np.array([3.0, 1.0, 2.0]), 2)
    2.0
    """
    if len(gaps) > _MANY:
        # Only those near it are partitioned, about 4% of them. If it is not among them, all are.
        some, at = np.sort(gaps[:: len(gaps) // _SHOWN]), k * _SHOWN // len(gaps)
        low, high = some[max(at - _NEAR, 0)], some[min(at + _NEAR, len(some) - 1)]
        pieces = [gaps[start : start + _MANY] for start in range(0, len(gaps), _MANY)]
        near = np.concatenate([piece[(piece >= low) & (piece <= high)] for piece in pieces])
        before = sum(int((piece < low).sum()) for piece in pieces)
        if before < k <= before + len(near):
            gaps, k = near, k - before
    return float(np.partition(gaps, k - 1)[k - 1])


def order_statistic(gaps: Vector, plan: Plan, floor: float | None, *, zero: bool = False) -> float:
    """Return the k-th smallest gap, or refuse it; 0 only if `zero` says so, as for a member of a family."""
    value = smallest(gaps, plan.k)
    if not value >= 0:
        raise ValueError(f"{value} is not a gap.")  # no measured gap is negative or NaN
    if value == math.inf:
        failed = int(np.isinf(gaps).sum())
        what = f"{failed} of {plan.m} sampled pairs failed, so the estimate at k={plan.k} is infinite."
        raise InfiniteSensitivityError(what, failed=failed, m=plan.m, k=plan.k)
    if floor is not None:
        return max(value, floor)
    if value == 0 and zero:
        return 0.0
    if value == 0:
        raise ZeroSensitivityError(
            f"{int((gaps == 0).sum())} of {plan.m} sampled pairs did not change the output at all, so the "
            f"estimate is 0, and zero noise would be no privacy. Is the output constant, does it ignore most "
            f"records, or does P never draw what the function looks for, such as zeros (then learn P)? If it "
            f"is about missing values, P must draw some: with_missing(...). If a floor is known (1 for a "
            f"count, say), pass min_sensitivity=...; for a quantile of a column with few values, score them "
            f"with mechanism=Exponential(responses=[...]); for a maximum or minimum ask for a quantile; "
            f"otherwise use a smaller gamma.",
            m=plan.m,
            k=plan.k,
        )
    return max(value, SMALLEST)
