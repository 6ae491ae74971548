"""Noise from the operating system's randomness. It has no seed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose", "gaussian", "laplace"]

Vector = NDArray[np.float64]


def _uniform(size: int) -> Vector:
    """Return numbers strictly between 0 and 1."""
    bits = np.frombuffer(os.urandom(8 * size), dtype=np.uint64) >> np.uint64(12)
    return (bits.astype(np.float64) + 0.5) * 2.0**-52


def laplace(vector: Vector, scale: float, whole: NDArray[np.bool_]) -> Vector:
    """Return the vector with Laplace noise of the scale; `whole` coordinates stay integers."""
    sign = np.where(_uniform(len(vector)) < 0.5, -1.0, 1.0)
    noised = vector - sign * scale * np.log(_uniform(len(vector)))
    return np.where(whole, np.rint(noised), noised)


def gaussian(vector: Vector, sigma: float, whole: NDArray[np.bool_]) -> Vector:
    """Return the vector with normal noise; `whole` coordinates stay integers."""
    radius = np.sqrt(-2 * np.log(_uniform(len(vector))))
    noised = vector + sigma * radius * np.cos(2 * np.pi * _uniform(len(vector)))
    return np.where(whole, np.rint(noised), noised)


def choose(scores: Vector, temperature: float, weights: Any) -> int:
    """Return an index drawn with probability proportional to weights * exp(scores / temperature)."""
    with np.errstate(divide="ignore"):
        logits = scores / temperature + np.log(np.asarray(weights, dtype=np.float64))
    return int(np.argmax(logits - np.log(-np.log(_uniform(len(scores))))))
