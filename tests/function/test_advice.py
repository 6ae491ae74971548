"""A private run that fails says what to do, in a message that is the same for all data."""

import sys

import numpy as np
import pytest

from privatize import (
    privatize,
)
from privatize.errors import (
    PrivateRunError,
)
from tests.function.privatized import PROMISE
from tests.function.sentinels import fails, private, raises, text


def leaves(x):
    return sys.exit(f"{x}") if private(x) else x.mean()


def recursion(x):
    return recursion(x) if private(x) else x.mean()


def not_a_number(x):
    return x.mean() if not private(x) else np.nan


def other_structure(x):
    return x.mean() if not private(x) else {"value": x[0]}


def test_failures_share_one_message():
    """An error that differed with the data would be an answer without noise."""
    assert len({str(fails(f)).replace(f.__name__, "f") for f in (raises, leaves, recursion)}) == 1
    assert len({str(fails(f)).replace(f.__name__, "f") for f in (not_a_number, other_structure, text)}) == 1


def test_private_failure_points_to_public_data():
    """The error of a function that fails on private data tells how to go on."""

    @privatize(**PROMISE, domain="as-is")
    def picky(x):
        if x.max() > 1:
            raise ValueError(x)
        return x.mean()

    with pytest.raises(PrivateRunError, match=r"picky\.__wrapped__\(picky\.sample\(n\)\)"):
        picky(np.array([0.5, 2.0]))
