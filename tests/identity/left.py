"""Private functions that must be refused for what they leave behind."""

import itertools

import numpy as np
import pytest

from privatize import Budget, privatize, samplers
from privatize.errors import PrivateRunError
from tests.function.sentinels import SENTINEL, holds_sentinel

PROMISE = {
    "epsilon": 1,
    "gamma": 0.3,
    "sampler": samplers.uniform(0, 1),
    "domain": "as-is",
    "workers": "inline",
}
PRIVATE = np.array([SENTINEL, 0.25, 0.75, 0.5])
NUMBERS = itertools.count()


def refused(function, *args, **settings):
    """Return the message of the error that a private call raises; it is charged, and reveals no data."""
    budget = Budget(f"leftovers {next(NUMBERS)}", epsilon=10, gamma=1, ledger="memory")
    f = privatize(**(PROMISE | settings), budget=budget)(function)
    for _ in range(3):  # calibrated, recalled, and guarded
        with pytest.raises(PrivateRunError) as caught:
            f(PRIVATE, *args)
    assert budget.spent.epsilon == 3
    assert not holds_sentinel([str(caught.value), caught.value.args, vars(caught.value)])
    return str(caught.value)
