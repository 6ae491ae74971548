"""Learn the weights of an output's numbers from pairs that are drawn for them alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from privatize.calibration import streams
from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.norms import Vector
from privatize.calibration.run import Collector, Memory
from privatize.execution.job import SpanResult

_PILOT = 32  # pairs that weights are learned from


def learn_weights(
    make: Callable[..., Evaluator], scaled: Any, seed: int, memory: Memory | None, collector: Collector
) -> tuple[int, ...]:
    """Return the weights that a mechanism chooses, as powers of two; none if no pair has worked.

    Parameters
    ----------
    make : callable
        Makes the evaluator of pairs, with a norm and a seed.
    scaled : Laplace or Gaussian
        The mechanism.
    seed : int
        The calibration's seed, which that of the weights' own pairs follows from.
    memory : Memory or None
        Where weights may be known already, and are agreed on with others.
    collector : Collector
        Where pairs are evaluated.
    """
    if memory is not None and memory.weights is not None:
        return tuple(memory.weights)
    own = streams.derived_seed(seed, streams.PILOT, 2)
    pilot = make(norm=scaled.norm, seed=own, coordinate_gaps={})
    pilot.pairs.check()
    found: dict[int, Vector] = {}

    def take(result: SpanResult) -> None:
        found.update(result.coordinate_gaps)

    collector = replace(collector, label=f"{collector.label}, weights")
    collector.collect(pilot, [(0, _PILOT)], _PILOT, take)
    sizes = [found[index] for index in sorted(found) if np.isfinite(found[index]).all()]
    # Without any, the calibration will say what is wrong.
    weights: list[int] = scaled.weights(np.array(sizes)) if sizes else []
    return tuple(weights if memory is None else memory.agree(weights))
