"""The way to a value is followed through closures, attributes and annotations, and can be named."""

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import DataError
from tests.identity.private_data import (
    AGES,
    FRAME,
    _loaded,
)

_loaded()
PROMISE = {"epsilon": 1, "gamma": 0.3, "workers": "inline", "store": None, "seed": 1}
P = samplers.uniform(0, 100)
COPY = {"somebody's name": FRAME.rename(columns={"age": "secret column"})}


def _helper(ages):
    return len(COPY)


class TestMessage:
    """The message says where the data was found, and reveals nothing about anybody."""

    def test_it_names_the_variables_on_the_way(self):
        """A function has many globals, and the user would have to search all of them for the data."""
        own = {"somebody's name": [AGES.copy()]}

        def by_global(ages):
            return np.mean(ages) + _helper(ages)

        def by_closure(ages):
            return np.mean(ages) + len(own)

        def by_default(ages, other=own):
            return np.mean(ages)

        ways = {by_global: "_helper -> COPY", by_closure: "own", by_default: "its defaults"}
        for raw, way in ways.items():
            with pytest.raises(DataError, match=f"can be reached .* through {way}") as caught:
                privatize(sampler=P, **PROMISE)(raw)(AGES)
            text = str(caught.value)
            assert "somebody" not in text and "secret" not in text and str(AGES[0])[:6] not in text
