"""Learn the weights of an output's numbers from pairs that are drawn for them alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.norms import Vector
from privatize.calibration.run import Collector
from privatize.execution.job import SpanResult

__all__ = ["learn_weights"]

_PILOT = 32  # pairs that weights are learned from


def learn_weights(pilot: Evaluator, scaled: Any, collector: Collector) -> list[int]:
    """Return the weights that a mechanism chooses, as powers of two; none if no pair has worked.

    Parameters
    ----------
    pilot : Evaluator
        Of pairs with a seed of their own, with the gaps of all numbers.
    scaled : Laplace or Gaussian
        The mechanism.
    collector : Collector
        Where pairs are evaluated.
    """
    found: dict[int, Vector] = {}

    def take(result: SpanResult) -> None:
        found.update(result.coordinate_gaps)

    pilot.pairs.check()
    label = f"{collector.label}, weights"
    replace(collector, label=label).collect(pilot, [(0, _PILOT)], _PILOT, take)
    sizes = [found[index] for index in sorted(found) if np.isfinite(found[index]).all()]
    # Without any, the calibration will say what is wrong.
    weights: list[int] = scaled.weights(np.array(sizes)) if sizes else []
    return weights
