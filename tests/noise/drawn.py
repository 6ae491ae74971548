"""Releases of every mechanism that adds noise."""

import numpy as np

from privatize import Bernstein, Gaussian, Laplace
from privatize.mechanisms.shapes import Shape
from privatize.mechanisms.weighted import Weighted

RELEASES = {
    "laplace": lambda v, s, epsilon: Laplace().release(
        v, sensitivity=s, epsilon=epsilon, delta=0.0, whole=np.zeros(len(v), dtype=bool)
    ),
    "gaussian": lambda v, s, epsilon: Gaussian().release(
        v, sensitivity=s, epsilon=epsilon, delta=1e-6, whole=np.zeros(len(v), dtype=bool)
    ),
    "weighted": lambda v, s, epsilon: Weighted(
        Laplace(), Shape("total", tuple(-(i % 3) for i in range(len(v))))
    ).release(v, sensitivity=s, epsilon=epsilon, delta=0.0, whole=np.zeros(len(v), dtype=bool)),
    "bernstein": lambda v, s, epsilon: Bernstein(lattice=max(1, len(v) - 1), norm="sup").release(
        v, sensitivity=s, epsilon=epsilon, delta=0.0, whole=np.zeros(len(v), dtype=bool)
    ),
}
