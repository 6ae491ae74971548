"""Data, P and models for private estimators."""

import logging

import numpy as np

from privatize import samplers

HUGE = 1e5
QUICK = {
    "epsilon": HUGE,
    "gamma": 0.5,
    "samples": "least",
    "workers": "inline",
    "store": None,
    "seed": 1,
    "min_sensitivity": 1e-9,
}
P = samplers.blobs([[0, 0], [3, 3]], 0.7, low=-4, high=7)
X, Y = P.draw(60, np.random.default_rng(3))


def counted(X):
    log = logging.getLogger("fits of test_sklearn")
    log.count = getattr(log, "count", 0) + 1
    return X
