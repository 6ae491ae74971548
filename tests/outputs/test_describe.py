"""The structure of any output can be described, stored and read back."""

import collections
import json
import typing

import numpy as np
import pytest
from hypothesis import given, settings

from privatize.errors import OutputError
from privatize.outputs.describe import describe, from_json
from tests.cases import for_each
from tests.outputs.shapes import Derived, holds_numbers, nested, roundtrip, same


class Point(typing.NamedTuple):
    x: float
    y: int


@given(nested.filter(holds_numbers))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_round_trip_of_any_nesting(value):
    """Some combination of containers would lose a type, a key, an order or a number."""
    tree = describe(value)
    assert from_json(json.loads(json.dumps(tree.to_json()))) == tree
    vector = tree.flatten(value)
    assert vector.dtype == np.float64
    assert vector.shape == (tree.size,) == tree.integers().shape
    assert same(roundtrip(value), value)


@for_each(
    ("value", "tree"),
    [
        (1.5, ["float"]),
        (3, ["int"]),
        (np.float32(1), ["numpy", "<f4"]),
        (np.zeros((2, 3), "u1"), ["array", "|u1", [2, 3]]),
        ([1.0, 2], ["list", [["float"], ["int"]]]),
        ((1.0,), ["tuple", [["float"]]]),
        ({"a": 1.0, 2: 3}, ["dict", "dict", [["str", "a"], ["int", 2]], [["float"], ["int"]]]),
        (collections.Counter(a=1), ["dict", "Counter", [["str", "a"]], [["int"]]]),
    ],
)
def test_the_structure_is_pinned(value, tree):
    """Stored estimates contain this JSON: a change would make all of them unreadable."""
    assert describe(value).to_json() == tree
    assert from_json(tree).to_json() == tree


def test_the_structure_names_classes():
    """Two named tuples with the same fields would be taken for each other."""
    assert describe(Point(1.0, 2)).to_json()[0] == "namedtuple"
    assert describe(Point(1.0, 2)).to_json()[1].endswith(":Point")
    assert describe(Point(1.0, 2)).to_json()[2:] == [["x", "y"], [["float"], ["int"]]]
    assert describe(Derived(1.0)).to_json()[0] == "dataclass"
    assert describe(Derived(1.0)).to_json()[2:] == [["total"], [["float"]]]


@for_each("value", [[], (), {}, {"a": []}, np.zeros(0), [np.zeros((3, 0))], [[], ({},)]], ids=repr)
def test_an_output_without_numbers(value):
    """An empty answer would be released as if it had numbers."""
    with pytest.raises(OutputError, match="holds no numbers"):
        describe(value)


def test_an_output_that_contains_itself():
    """The library would recurse until Python gives up."""
    loop: list = [1.0]
    loop.append(loop)
    with pytest.raises(OutputError, match="contains itself"):
        describe(loop)
    knot: dict = {"a": 1.0}
    knot["b"] = (knot,)
    with pytest.raises(OutputError, match="contains itself"):
        describe(knot)


def test_the_same_part_twice_is_no_loop():
    """[a, a] would be refused as if it contained itself."""
    part = [1.0]
    assert roundtrip([part, part, {"x": part}]) == [[1.0], [1.0], {"x": [1.0]}]
