"""Releases with seeded noise."""

import contextlib

import numpy as np

from privatize import Gaussian, Release, privatize, samplers
from privatize.noise import exact

UNIT = samplers.uniform(0, 1)
TRIALS = 20_000
FAR = 1.0e3  # the raw answer in tests of the noise alone


@contextlib.contextmanager
def bits(seed):
    """Replace the operating system's randomness by a seeded one, so that a test's outcome is fixed."""
    mark = exact.source.set(np.random.Generator(np.random.PCG64(seed)).bytes)
    try:
        yield
    finally:
        exact.source.reset(mark)


def release(value, noise="laplace", scale=1.0, **changes):
    """Return a release of a value, as if it had been made with this noise."""
    facts = {
        "epsilon": 1.0,
        "delta": 0.0,
        "gamma": 0.1,
        "average_gamma": 2 / 21,
        "sensitivity": 1.0,
        "mechanism": "Laplace" if noise == "laplace" else "Gaussian",
        "n": 10,
        "m": 20,
        "k": 19,
        "bound": "tolerance",
    }
    return Release(value=value, scale=scale, noise=noise, **(facts | changes))


def noised(mechanism, scale, integer, seed, raw=FAR):
    """Return many releases of one number, each with noise of this scale."""
    epsilon, delta = 1.0, 1e-6 if isinstance(mechanism, Gaussian) else 0.0
    per = mechanism.scale(1.0, epsilon, delta)
    with bits(seed):
        return mechanism.release(
            np.full(TRIALS, raw),
            sensitivity=scale / per,
            epsilon=epsilon,
            delta=delta,
            whole=np.full(TRIALS, integer),
        )


def private(function, **changes):
    """Return a private function with a fixed seed and no store."""
    chosen = {"epsilon": 1, "gamma": 0.1, "sampler": UNIT, "seed": 1, "store": None} | changes
    return privatize(**chosen)(function)
