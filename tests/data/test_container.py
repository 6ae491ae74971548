"""Whatever is no dataset is refused, and two datasets are equal only if they would be to a function."""

import collections
import copy
import json

import numpy as np
import pytest

from privatize.data import records
from privatize.errors import DataError
from tests.cases import for_each
from tests.data.datasets import NAMES, make, nan, objects

every_container = pytest.mark.parametrize("name", NAMES)


class Rows(list):
    """A subclass of list, which may behave differently."""


@for_each(
    ("data", "message"),
    [
        (None, "NoneType"),
        (3.0, "float"),
        ("abc", "a str,"),
        (b"abc", "bytes"),
        ({1, 2}, "set"),
        (range(3), "range"),
        ({"a": 1}, "dict.*aligned"),
        ({}, "dict.*aligned"),
        ({1: [2]}, "dict whose keys"),
        (iter([1, 2]), "list_iterator"),
        ((i for i in range(3)), "generator"),
        (collections.deque([1]), "collections.deque"),
        (np.float64(3), "numpy.float64"),
        (np.array(3.0), "0-dimensional"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), "MaskedArray"),
        (np.rec.array([(1, 2.0)]), "recarray"),
        (Rows([1, 2]), "Rows"),
        ((), "tuple.*aligned"),
        ((1, 2, 3), "tuple.*aligned.*list or an array"),
        ((np.zeros(3), 5), "tuple.*aligned"),
        ((np.zeros(3), "abc"), "tuple.*aligned"),
        (((1, 2), [1, 2]), "tuple.*aligned"),
        (collections.namedtuple("Point", "x y")([1], [2]), "Point"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_a_dataset(data, message):
    """The user would not learn what to pass instead."""
    for ask in (records.count, records.describe):
        with pytest.raises(DataError, match=message) as caught:
            ask(data)
        assert "Pass a" in str(caught.value) or "needs a first axis" in str(caught.value)


@every_container
def test_a_dataset_equals_itself_made_again(name):
    """A sampler that is a pure function of its generator would be refused as not reproducible."""
    assert records.equal(make(name), make(name))
    assert records.equal(make(name), copy.deepcopy(make(name)))


@every_container
def test_one_other_record_is_noticed(name):
    """A sampler with randomness of its own would pass for reproducible."""
    data = make(name)
    other = records.take(data, np.array([0, 3, *range(2, records.count(data))]))
    assert not records.equal(data, other)
    assert not records.equal(data, records.head(data, 4))


@for_each(
    ("one", "other"),
    [
        ([1, 2], np.array([1, 2])),
        ([1, 2], (1, 2)),
        ([1], [True]),
        ([1], [1.0]),
        (np.array([1, 2]), np.array([1.0, 2.0])),
        (np.array([1, 2]), np.array([[1, 2]])),
        (np.array([1, 2], "<i4"), np.array([1, 2], ">i4")),
        ([{"a": 1}], [{"a": 1, "b": 2}]),
        ([{"a": 1}], [{"b": 1}]),
        ([nan], [1.0]),
        (objects([[1, nan]]), objects([[1, 2]])),
        ([np.arange(3)], [np.arange(4)]),
    ],
)
def test_different_datasets_are_not_equal(one, other):
    """A sampler that changes kinds would pass for reproducible."""
    assert not records.equal(one, other)
    assert not records.equal(other, one)


@pytest.mark.parametrize("data", [[nan, {"a": nan}], np.array([nan]), objects([nan, [nan]]), ([nan], [1])])
def test_nan_equals_nan(data):
    """A sampler of data with missing values would be refused as not reproducible."""
    again = json.loads(json.dumps(data)) if isinstance(data, list) else copy.deepcopy(data)
    assert records.equal(data, again)
