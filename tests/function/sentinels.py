"""A value that is planted in private data, and the search for it."""

import gc
import types

import numpy as np

from privatize import privatize, samplers

SENTINEL = 31415926.5358979
TEXT = "SENTINEL-NAME"
PRIVATE = np.array([SENTINEL, 0.25, 0.75, 0.5])
PROMISE = {"epsilon": 1, "gamma": 0.2, "sampler": samplers.uniform(0, 1), "domain": "as-is"}


def holds_sentinel(value, depth=8, seen=None):
    """Tell whether a value is, shows or refers to the sentinel."""
    seen = set() if seen is None else seen
    if id(value) in seen or depth < 0:
        return False
    seen.add(id(value))
    if isinstance(value, float | np.floating):
        return float(value) == SENTINEL
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("latin-1")
        return TEXT in text or "31415926" in text or "3.14159265" in text
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return any(holds_sentinel(v, depth - 1, seen) for v in value.ravel().tolist())
        return value.dtype.kind == "f" and bool((value == SENTINEL).any())
    if isinstance(value, types.ModuleType | types.CodeType | type | int | None.__class__):
        return False
    if isinstance(value, types.FrameType | types.FunctionType):
        return False  # the caller's own frames and functions hold what is theirs
    if isinstance(value, dict):
        items = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        items = list(value)
    else:
        items = [v for v in gc.get_referents(value) if not isinstance(v, types.ModuleType | type)]
    return any(holds_sentinel(item, depth - 1, seen) for item in items)


def fails(function, data=PRIVATE, **settings):
    """Return the exception that a private call ends in."""
    f = privatize(**(PROMISE | settings))(function)
    try:
        f(data)
    except BaseException as error:
        return error
    raise AssertionError("the call did not fail")


def private(x):
    """Tell private data from sampled data, which is all below 1."""
    return np.max(x) > 1


class Loud(Exception):
    """An exception that carries its data wherever it can."""

    def __init__(self, data):
        super().__init__(f"bad data {data}")
        self.data = data
        self.add_note(f"{data}")


def raises(x):
    if private(x):
        raise Loud(x)
    return x.mean()


def text(x):
    return x.mean() if not private(x) else f"{x}"
