"""Values are encoded completely or not at all, and an error names the way to what cannot be."""

import types
from pathlib import Path

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import NotRememberedWarning
from privatize.identity.fingerprint import Unencodable, fingerprint


def test_cycles_can_be_encoded():
    """A list, function or object that contains itself would make the walk endless."""
    loop = [1]
    loop.append(loop)

    def recursive(x):
        return recursive(x)

    holder = types.SimpleNamespace()
    holder.self = holder
    for value in (loop, recursive, holder):
        assert fingerprint(value) == fingerprint(value)


def test_what_cannot_be_encoded_raises():
    """A generator or an open file has no content to compare, so it must not have a fingerprint."""
    with Path(__file__).open() as file:
        for value in ((i for i in range(3)), file, np.frompyfunc(lambda x: x, 1, 1)):
            with pytest.raises(Unencodable):
                fingerprint([value])


def test_errors_name_the_way_to_what_cannot_be_compared():
    """A user cannot find a connection that is five objects away."""
    generator = (i for i in range(3))

    class Store:
        pass

    store = Store()
    store.tables = {"ages": [generator]}

    def helper(x):
        return store.tables

    def f(x):
        return float(x.mean()) * len(helper(x))

    with pytest.raises(Unencodable) as caught:
        fingerprint(f)
    assert str(caught.value) == "a builtins.generator (reached by helper -> store -> tables -> ['ages'])"
    connected = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1))(f)
    with pytest.warns(NotRememberedWarning, match=r"reached by helper -> store -> tables"):
        connected.estimate(20)
