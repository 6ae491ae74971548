"""The units that releases are compared in: of each number's noise; and which numbers are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

NUMBERS = 10_000  # numbers of an answer that are compared; a longer release is cut, which is post-processing


@dataclass(frozen=True)
class Units:
    """The units that releases are compared in: of each number's noise; and the numbers that are compared."""

    powers: NDArray[np.int64]
    kept: NDArray[np.int64]

    @classmethod
    def of(cls, scale: Any, a: Vector, b: Vector) -> Units:
        """Return the units of noise of these scales; of many numbers those that differ most are kept."""
        known = np.asarray(scale, dtype=np.float64)
        # A mechanism of somebody's own may have a scale of another form.
        finite = np.nan_to_num(np.broadcast_to(known if known.shape in ((), a.shape) else 1.0, a.shape))
        powers = np.frexp(finite)[1].astype(np.int64)
        differ = np.abs(_divided(a, powers) - _divided(b, powers))
        return cls(powers, np.sort(np.argsort(-differ, kind="stable")[:NUMBERS]))

    def __call__(self, vector: Vector) -> Vector:
        """Return the numbers that are compared, in units of their noise."""
        if len(vector) != len(self.powers):  # a mechanism may release fewer numbers, or more
            return vector
        return _divided(vector, self.powers)[self.kept]

    def hidden(self, a: Vector, b: Vector) -> NDArray[np.bool_]:
        """Tell which numbers are so large that floats are too far apart there to show the noise."""
        largest = np.maximum(np.abs(_divided(a, self.powers)), np.abs(_divided(b, self.powers)))
        return np.asarray(np.spacing(largest) > 0.5)


def _divided(vector: Vector, powers: NDArray[np.int64]) -> Vector:
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(np.ldexp(vector, -powers), -1e300, 1e300)
