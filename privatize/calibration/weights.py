"""Weights of an output's numbers, learned from the gaps of a pilot before anything is calibrated."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privatize.calibration import streams
from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.norms import Vector
from privatize.calibration.run import Collector, Memory
from privatize.execution.job import SpanResult

_PILOT = 32  # pairs that weights are learned from


@dataclass(frozen=True)
class Member:
    """What all members of a family of P have in common, fixed before any of them is calibrated.

    Attributes
    ----------
    coin_seed : int
        The public seed of the random generators that the function uses: a release has one, whatever P is.
    weights : tuple of int or None
        Weights from a pilot of all members together, as powers of two: one norm for all. None if the
        mechanism is not scaled.
    label : str
        The function's name with the member's number and name, for progress bars.
    """

    coin_seed: int
    weights: tuple[int, ...] | None
    label: str


def learn_weights(
    make: Callable[..., Evaluator],
    scaled: Any,
    seed: int,
    memory: Memory | None,
    collector: Collector,
    pooled: tuple[int, ...] | None = None,
) -> tuple[int, ...]:
    """Return the weights that a mechanism chooses, as powers of two; none if no pair has worked.

    Parameters
    ----------
    make : callable
        Makes the evaluator of pairs, with a norm and a seed.
    scaled : Laplace or Gaussian
        The mechanism.
    seed : int
        The calibration's seed; pairs for the weights are drawn with another one, derived from it.
    memory : Memory or None
        Has the weights if they are known already, and agrees on new ones with other processes.
    collector : Collector
        Where pairs are evaluated.
    pooled : tuple of int, optional
        The weights that a family of P uses. Nothing is learned then.
    """
    if memory is not None and memory.weights is not None:
        return tuple(memory.weights)
    found = pilot_gaps(make, scaled, seed, collector) if pooled is None else []
    # If all pairs failed, the calibration itself will report why.
    weights: list[int] = scaled.weights(np.array(found)) if found else list(pooled or ())
    return tuple(weights if memory is None else memory.agree(weights))


def pilot_gaps(make: Callable[..., Evaluator], scaled: Any, seed: int, collector: Collector) -> list[Vector]:
    """Return by how much each number of the output differs, for every pair of a pilot that has worked."""
    own = streams.derived_seed(seed, streams.PILOT, 2)
    pilot = make(norm=scaled.norm, seed=own, coordinate_gaps={})
    pilot.pairs.check()
    found: dict[int, Vector] = {}

    def take(result: SpanResult) -> None:
        found.update(result.coordinate_gaps)

    collector = replace(collector, label=f"{collector.label}, weights")
    collector.collect(pilot, [(0, _PILOT)], _PILOT, take)
    return [found[index] for index in sorted(found) if np.isfinite(found[index]).all()]
