"""Containers in answers come back with their own types and order, and nobody takes labels by position."""

import collections
import dataclasses
import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize import privatize, samplers
from privatize.errors import InfiniteSensitivityError, OutputError, PrivateRunError
from privatize.outputs.describe import describe
from privatize.outputs.structure import StructureChanged
from tests.cases import for_each
from tests.outputs.labelled import _counts, pd
from tests.outputs.shapes import Color, holds_numbers, nested, roundtrip, same


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_value_counts_in_an_order_of_its_own_is_refused(mechanism):
    """A user's most frequent count would be published under the label that was most frequent under P."""
    private = privatize(
        mechanism=mechanism, epsilon=1, delta=1e-6 if mechanism == "gaussian" else 0, gamma=0.2,
        sampler=samplers.integers(0, 4), seed=1, store=None, workers="inline",
    )(functools.partial(_counts, how="value_counts"))  # fmt: skip
    with pytest.raises(InfiniteSensitivityError, match="reindex"):
        private.estimate(100)


def test_an_order_that_calibration_never_saw_is_refused():
    """A user's counts would get the labels of another order, on the private data alone."""

    def largest_first(x):
        counts = pd.Series({"zeros": int((x == 0).sum()), "others": int((x != 0).sum())})
        return counts.sort_values(ascending=False)

    private = privatize(epsilon=1, gamma=0.2, sampler=samplers.integers(0, 4), seed=1, store=None)(
        largest_first
    )
    assert list(private(np.arange(200) % 5).index) == ["others", "zeros"]
    with pytest.raises(PrivateRunError):
        private(np.zeros(200, dtype=int))


def test_a_dict_is_taken_by_key():
    """A user's numbers would be published under each other's keys."""

    def summary(x):
        pairs = [("zeros", float((x == 0).sum())), ("sum", float(x.sum()))]
        return dict(pairs if x[0] == 0 else pairs[::-1])

    private = privatize(epsilon=1e4, gamma=0.2, sampler=samplers.integers(0, 4), seed=1, store=None)(summary)
    for first in (0, 1):
        found = private(np.array([first, *[0] * 99]))
        assert abs(found["zeros"] - 99.5) < 5 and abs(found["sum"]) < 5


@dataclasses.dataclass
class Seeded:
    total: float
    start: dataclasses.InitVar[int]

    def __post_init__(self, start):
        self.total += start


def test_a_defaultdict_comes_back_as_a_dict():
    """A factory is code, which is no part of an answer: the dict alone comes back."""
    value = collections.defaultdict(list, a=1.0, b=2)
    assert same(roundtrip(value), {"a": 1.0, "b": 2})


def reordered(value, chance):
    """Return the same output with every dict in another order."""
    if isinstance(value, dict):
        items = [(key, reordered(item, chance)) for key, item in value.items()]
        chance.shuffle(items)
        return type(value)(items)
    if type(value) in (list, tuple):
        return type(value)(reordered(item, chance) for item in value)
    return value


@given(nested.filter(holds_numbers), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_dicts_are_aligned_by_key_at_any_depth(value, chance):
    """Two counts would swap places between neighbours: a huge gap, or a released rank."""
    tree = describe(value)
    other = reordered(value, chance)
    vector = tree.flatten(other)
    assert np.array_equal(vector, tree.flatten(value))
    assert same(tree.rebuild(vector), value)


def test_the_order_of_the_private_dict_does_not_show():
    """Counter.most_common() order would release who has the most."""
    tree = describe(collections.Counter(b=0, a=0, c=0))
    private = collections.Counter(a=9, c=5, b=1)
    assert list(tree.rebuild(tree.flatten(private))) == ["b", "a", "c"]
    assert tree.rebuild(tree.flatten(private)) == private


@for_each("key", [b"a", frozenset([1]), np.datetime64("2020-01-01"), 1j, ("a", b"b"), Color.RED])
def test_keys_that_cannot_be_stored(key):
    """A structure that is not JSON would fail when it is stored."""
    with pytest.raises(OutputError, match=r"key of type \w+: keys must be strings, numbers, None, or tuples"):
        describe({key: 1.0})


def test_a_dataclass_that_cannot_be_made_again():
    """It would calibrate, and fail at the release, after the budget is spent."""
    try:
        tree = describe(Seeded(1.0, start=2))
    except OutputError:
        return  # refused in time
    assert tree.rebuild(tree.flatten(Seeded(1.0, start=2))).total == 3.0


def test_the_vector_of_a_series_is_a_copy():
    """A function may change a series or a frame and return it again: the first answer must not change."""
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, 2.0], index=["a", "b"])
    for value in (series, series.to_frame("x"), pd.DataFrame({"x": series, "n": [3, 4]})):
        tree = describe(value)
        expected = np.concatenate([column.to_numpy() for _, column in pd.DataFrame(value).items()]).tolist()
        first = tree.flatten(value)
        value.iloc[:] = 9
        assert first.tolist() == expected
        assert tree.flatten(value).tolist() == [9.0] * len(expected)


def test_an_index_that_changes_later_is_noticed():
    """Labels are published without noise, so those of every pair must be compared, not only the first."""
    pd = pytest.importorskip("pandas")
    seen = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}, index=["a", "b"])
    tree = describe(seen)
    tree.flatten(seen)
    assert tree.flatten(seen + 1).tolist() == [2.0, 3.0, 4.0, 5.0]
    others = (
        seen.set_axis(["a", "c"]),
        seen.set_axis(["x", "z"], axis=1),
        seen[["y", "x"]],
        seen.iloc[::-1],
        seen.rename_axis("who"),
        seen.astype({"x": bool}),
        seen.set_axis(pd.CategoricalIndex(["a", "b"])),
    )
    for other in others:
        with pytest.raises(StructureChanged):
            tree.flatten(other)
