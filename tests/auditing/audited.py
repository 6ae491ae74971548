"""Quick audits, and functions with made-up estimates."""

import dataclasses
import warnings

import numpy as np

from privatize import audit, privatize, samplers
from privatize.auditing.distinguishing import tell_apart
from privatize.testing import insecure_noise


def quick(function, n=20, *args, **rest):
    """Audit with few pairs and seeded noise."""
    chosen = {"pairs": 200, "releases": 200, "seed": 2}
    with warnings.catch_warnings(action="ignore"), insecure_noise(3):
        return audit(function, n, *args, **(chosen | rest))


def forged(function, value):
    """Return the function with a made-up estimate."""
    made = function.calibrator.recall

    def recall(asked):
        found = made(asked)
        return dataclasses.replace(found, sensitivity=dataclasses.replace(found.sensitivity, value=value))

    function.calibrator.recall = recall
    return function


def distinguish(release, a=0.0, b=1.0, **rest):
    chosen = {"gap": 1.0, "epsilon": 1.0, "delta": 0.0, "releases": 4000, "alpha": 0.005}

    def on_grid(vector):  # or the last digits would distinguish releases
        return np.ldexp(np.rint(np.ldexp(release(vector), 20)), -20)

    return tell_apart(on_grid, np.atleast_1d(a), np.atleast_1d(b), **(chosen | rest))


UNIT = samplers.uniform(0, 1)


def private(function=np.mean, **settings):
    chosen = {"epsilon": 1, "gamma": 0.1, "sampler": UNIT, "seed": 1, "store": None}
    return privatize(**(chosen | settings))(function)
