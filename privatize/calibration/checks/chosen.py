"""Choose the pairs that are evaluated again: some at random, the largest gaps and the smallest ones."""

from __future__ import annotations

import numpy as np

from privatize.calibration import streams
from privatize.calibration.norms import Vector

__all__ = ["CHECKED", "at_random", "largest", "smallest", "spread"]

CHECKED = 8  # how many of a kind are evaluated again
_PIECE = 2**20  # gaps that are looked at together


def largest(gaps: Vector, count: int, sign: float = 1.0) -> list[int]:
    """Return the indices of the largest finite gaps, the largest first; by pieces, which need little memory.

    Examples
    --------
    >>> largest(np.array([1.0, 5.0, np.inf, 3.0]), 2)
    [1, 3]
    """
    kept = np.zeros(0, dtype=np.int64)
    for start in range(0, len(gaps), _PIECE):
        piece = gaps[start : start + _PIECE]
        places = np.concatenate([kept, start + np.flatnonzero(np.isfinite(piece))])
        if len(places) > count:  # a selection, so that few are left to be sorted
            values = sign * gaps[places]
            places = places[values >= np.partition(values, -count)[-count]]
        kept = places[np.argsort(sign * gaps[places], kind="stable")[-count:]]
    found: list[int] = kept[::-1].tolist()
    return found


def smallest(gaps: Vector) -> list[int]:
    """Return the indices of the two smallest finite gaps."""
    return largest(gaps, 2, sign=-1.0)


def at_random(gaps: Vector, rng: np.random.Generator, most: int = CHECKED) -> list[int]:
    """Return the indices of some finite gaps, chosen without regard to their size."""
    finite = np.isfinite(gaps)
    if len(gaps) > _PIECE:  # a list of all places would take as much as the gaps
        places = np.unique(rng.integers(len(gaps), size=100 * most))
        places = rng.permutation(places[finite[places]])
    else:
        places = np.flatnonzero(finite)
    found: list[int] = rng.choice(places, min(most, len(places)), replace=False).tolist()
    return found


def spread(gaps: Vector, seed: int, *, together: bool) -> list[int]:
    """Return some indices at which `pair=` or `batch=` is compared with plain evaluation.

    A stack is cheap to compare with, and easily wrong for some of its datasets only.
    """
    return at_random(gaps, streams.stream(seed, streams.CHECK), 4 * CHECKED if together else CHECKED)
