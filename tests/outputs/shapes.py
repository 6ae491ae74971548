"""Outputs of every kind, and what it means that two of them are the same."""

import collections
import dataclasses
import enum
import json

import numpy as np
from hypothesis import strategies as st

from privatize.errors import OutputError
from privatize.outputs.describe import describe, from_json

Old = collections.namedtuple("Old", ["a", "b"])


@dataclasses.dataclass
class Fit:
    slope: float
    count: int
    residuals: np.ndarray


@dataclasses.dataclass
class Derived:
    total: float
    double: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.double = 2 * self.total


def same(one, other):
    """Tell whether two outputs are equal in types, order and values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)
    if isinstance(one, dict):
        return (
            list(one) == list(other)
            and all(same(a, b) for a, b in zip(one, other, strict=True))
            and all(same(one[key], other[key]) for key in one)
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return one == other


def roundtrip(value):
    """Take an output apart and put it together, through JSON."""
    tree = from_json(json.loads(json.dumps(describe(value).to_json())))
    return tree.rebuild(tree.flatten(value, learn=True))


leaves = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(np.float32),
    st.floats(allow_nan=False, allow_infinity=False).map(np.float64),
    st.integers(-128, 127).map(np.int8),
    st.integers(0, 2**53).map(np.uint64),
    st.builds(
        lambda shape, kind, seed: np.random.default_rng(seed).integers(0, 100, shape).astype(kind),
        st.lists(st.integers(0, 3), max_size=3).map(tuple),
        st.sampled_from(["<f8", "<f4", "<f2", "<i8", "<i2", "|u1", ">f8"]),
        st.integers(0, 100),
    ),
)
keys = st.recursive(
    st.one_of(
        st.text(max_size=4),
        st.integers(),
        st.none(),
        st.booleans(),
        st.floats(allow_nan=False),
        st.integers(0, 255).map(np.uint8),
    ),
    lambda inner: st.tuples(inner, inner),
    max_leaves=3,
)
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4).map(collections.OrderedDict),
        st.builds(Old, inner, inner),
        st.builds(Fit, inner, inner, inner),
    ),
    max_leaves=12,
)


def holds_numbers(value):
    """Tell whether there is anything to release."""
    try:
        return bool(describe(value))
    except OutputError:
        return False


class Color(enum.IntEnum):
    """Integers with names."""

    RED = 1
