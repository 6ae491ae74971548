"""Nothing holds private data after a call."""

import gc
import sys

import numpy as np

from privatize import privatize
from privatize.errors import PrivateRunError
from tests.function.sentinels import PRIVATE, PROMISE, private, raises


def other_structure(x):
    return x.mean() if not private(x) else {"value": x[0]}


def test_nothing_keeps_the_data_alive():
    """After a call, failed or not, the data is referred to by its owner alone."""
    for function in (np.mean, raises, other_structure):
        f = privatize(**PROMISE)(function)
        data = PRIVATE.copy()
        before = sys.getrefcount(data)
        try:
            f(data)
        except PrivateRunError as error:
            kept = error  # as a logger or a test runner would
        gc.collect()
        assert sys.getrefcount(data) == before
    assert kept is not None
