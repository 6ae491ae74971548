"""The spread of answers over datasets from P is measured, remembered and shown."""

import json
import sqlite3

import numpy as np
import pytest

from privatize import additive, privatize, samplers
from privatize.calibration.spread import Spread, largest
from privatize.outputs.describe import describe

P = samplers.uniform(0, 1)


def private(function, **more):
    """Decorate with a fixed seed."""
    options = {"epsilon": 1, "gamma": 0.05, "sampler": P, "seed": 3, "workers": "inline"}
    return privatize(**options | more)(function)


@pytest.mark.parametrize("workers", ["inline", 2])
def test_it_is_that_of_the_answers(workers):
    """A signal that is too large would hide that an answer is noise.

    The standard deviation of 64 answers is off by 9%, and so by more than 50% with probability below 1e-6.
    """
    found = private(lambda x: [x.mean(), 10 * x.sum()], workers=workers, store=None).estimate(100).spread
    assert found.count >= 60 and not found.labels
    assert found.deviations == pytest.approx([12**-0.5 / 10, 12**-0.5 * 100], rel=0.5)


@pytest.mark.parametrize(
    ("function", "more"),
    [
        (additive(lambda x: x), {}),
        (lambda x: x.mean(axis=-1), {"batch": True}),
        (np.mean, {"pair": lambda x, at, new: (x.mean(), (x.sum() - x[at] + new) / len(x))}),
    ],
)
def test_every_way_to_evaluate_pairs(function, more):
    """A user of additive(), batch= or pair= would see no signal, or a wrong one. False alarms as above."""
    found = private(function, store=None, **more).estimate(100).spread
    assert found.deviations == pytest.approx([12**-0.5 / 10], rel=0.5)


def test_it_is_remembered_and_made_again_where_it_is_missing(tmp_path):
    """Another process would not know whether an answer is worth reading."""
    place = tmp_path / "estimates.db"
    first = private(mean, store=place).estimate(60).spread
    again = private(mean, store=place).estimate(60).spread
    assert again is not first and np.array_equal(again.deviations, first.deviations)
    with sqlite3.connect(place) as connection:  # the first process was killed before the end
        connection.execute("UPDATE estimates SET facts = '{}'")
    connection.close()
    fewer = private(mean, store=place).estimate(60).spread
    assert fewer.count == 8 and fewer.deviations[0] > 0


def mean(x):
    """Return the mean."""
    return float(x.mean())


def test_labels_are_recognized():
    """The labels that predict() returns would be drowned in noise, and nothing would say why."""
    labels = describe(np.array([0, 1, 1, 0]))
    rng = np.random.default_rng(0)
    answers = {at: rng.integers(0, 2, 4).astype(float) for at in range(20)}
    assert Spread.of(answers, labels).labels
    assert not Spread.of(answers, describe(np.zeros(4))).labels  # floats
    assert not Spread.of({at: 1000.0 * rng.random(4) for at in range(20)}, labels).labels
    assert Spread.of({0: np.zeros(4)}, labels) is None


def test_families_and_json():
    """A family's answer is worth reading if it is under one of its P."""
    one, other = Spread(np.array([1.0, 5.0]), 10), Spread(np.array([2.0, 3.0]), 20)
    assert largest([one, other]).deviations.tolist() == [2.0, 5.0]
    assert largest([one, None]) is None and largest([]) is None
    read = Spread.from_json(json.loads(json.dumps(one.to_json())))
    assert read.deviations.tolist() == [1.0, 5.0] and (read.count, read.labels) == (10, False)
    assert one.over(np.array([2.0, 0.0])).tolist() == [0.5, np.inf]
    members = private(lambda x: [x.mean(), x.max()], sampler=[P, samplers.uniform(0, 5)]).estimate(50)
    each = np.array([member.spread.deviations for _, member in members.members])
    assert np.array_equal(members.spread.deviations, each.max(axis=0))


def test_long_answers_are_not_kept():
    """An answer of millions of numbers would be held in memory 64 times, and stored."""
    assert private(lambda x: np.full(10_001, x.mean()), store=None, gamma=0.3).estimate(20).spread is None


def test_numbers_that_are_always_the_same_are_named():
    """A user would not know why the diagonal of a correlation matrix gets noise."""
    found = private(lambda x: {"mean": x.mean(), "one": 1.0}, store=None).estimate(30)
    assert dict(found.card().rows)["the same for all datasets"].startswith("one: it gets the noise")
    both = private(lambda x: [x.mean(), x.max()], store=None).estimate(30)
    assert "the same for all datasets" not in dict(both.card().rows)
