"""In every block one pair of real neighbours is compared with P's estimate, whatever the function does."""

import os
import random
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privatize import Exponential, Laplace, privatize, samplers
from privatize.calibration.factor_scan import FACTORS, Cut
from privatize.errors import ExecutionError, NotReproducibleError
from privatize.function.asking import questions
from privatize.function.block_gaps import Gauge
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
CALLS = []
BUFFER = np.zeros(1)
B, PEOPLE = 12, 10


def gauge(*functions, sampler=UNIT, like=None, **settings):
    """Return what compares functions on blocks, with P's estimate for each of them."""
    asked, found = [], []
    for function in functions:
        promise = {"epsilon": 1, "gamma": 0.2, "sampler": sampler, "seed": 1, "domain": "as-is"} | settings
        private = privatize(**promise)(function)
        ((question,), _) = questions(
            private.definition, private.calibrator, "estimate", [(9,), {"like": like}]
        )
        asked.append(question)
        found.append(private.calibrator.recall(question).sensitivity)
    return Gauge(tuple(asked), tuple(found), Cut(B, PEOPLE))


def mean(x):
    return float(np.mean(x))


def spread(x):
    return {"mean": np.mean(x), "squares": np.mean(x * x)}


def buffered(x):
    BUFFER[0] = np.mean(x)
    return BUFFER


def changing(x):
    x *= 2
    return float(np.mean(x))


def random_mean(x):
    return float(np.mean(x) + 1e-9 * np.random.random() + 1e-9 * random.random())


def counts_calls(x):
    CALLS.append(len(x))
    return float(np.mean(x)) + 0.0 * len(CALLS)


def scaled(wide=1.0, n=B * PEOPLE):
    return np.random.default_rng(0).uniform(0, 1, n) * wide


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")  # of the buffer
@for_each("function", [mean, spread, buffered, changing, random_mean])
def test_a_block_is_beyond_where_its_gap_is(function):
    """Estimates would be widened for gaps that no two neighbours have, or not for those they have."""
    made = gauge(function)
    inside, beyond = made.counts(scaled()), made.counts(scaled(100.0))
    assert len(inside) == len(FACTORS)
    assert inside == sorted(inside, reverse=True)
    assert beyond[0] > max(inside[0], 1)
    assert beyond[4] > 0 == inside[6]
    assert made.counts(np.full(B * PEOPLE, 7.0)) == [0] * len(FACTORS)  # the same coins on both sides


def fails(x):
    if np.max(x) > 1:
        raise ValueError(f"{x}")
    return mean(x)


def exits(x):
    if np.max(x) > 1:
        os._exit(0)
    return mean(x)


def hangs(x):
    while np.max(x) > 1:
        pass
    return mean(x)


def aborts(x):
    if np.max(x) > 1:
        os.abort()
    return mean(x)


def another_shape(x):
    return [1.0, 2.0] if np.max(x) > 1 else mean(x)


def not_a_number(x):
    return float("nan") if np.max(x) > 1 else mean(x)


def endless(x):
    return float("inf") if np.max(x) > 1 else mean(x)


@pytest.mark.slow
@for_each("function", [fails, exits, hangs, aborts, another_shape, not_a_number, endless])
def test_a_block_that_fails_is_beyond_every_factor(function):
    """A function that fails on real people would look as if P held. Other blocks are not concerned."""
    data = np.full(B * PEOPLE, 0.5)
    data[5] = 2.0  # in one block; it may be the record that replaces another, or that is replaced
    assert gauge(function, timeout=1).counts(data)[-1] == 1


def test_nothing_is_printed_or_left(capfd, tmp_path):
    """What a function prints or writes about real people would be seen without noise."""
    path = tmp_path / "seen"

    def chatty(x):
        print(x)
        os.write(2, repr(x).encode())
        if np.max(x) > 1:
            path.write_text(repr(x))
        return mean(x)

    made = gauge(chatty)
    capfd.readouterr()
    made.counts(scaled(100.0))
    assert capfd.readouterr() == ("", "")
    assert not path.exists()
    CALLS.clear()
    made = gauge(mean)
    gauge(mean).counts(scaled())
    assert not CALLS


def test_several_functions_are_beyond_together():
    """One of several functions for which P does not hold would hide behind the others."""

    def one(x):
        return (1000.0 if np.max(x) > 1 else 1.0) * mean(x)

    alone, other = gauge(mean).counts(scaled(2.0)), gauge(one).counts(scaled(2.0))
    both = gauge(mean, one, mean).counts(scaled(2.0))
    assert max(alone[6:]) == 0 < other[6]
    assert both[6] > 0


POLARS = samplers.table(x=UNIT, y=samplers.integers(0, 5), frame="polars")
ALIGNED = samplers.labelled(UNIT, lambda x, rng: rng.random(len(x)))
TWO = np.column_stack([scaled(100.0)] * 2)
TABLE = samplers.table(x=UNIT, y=samplers.integers(0, 5))


def frame_mean(d):
    return float(d["x"].mean())


def nearness(x, response):
    return -((float(x.mean()) - response) ** 2)


def aligned(x, y):
    return float((x * y).mean())


@for_each(
    ("function", "sampler", "people", "settings"),
    [
        (frame_mean, TABLE, pd.DataFrame({"x": scaled(100.0), "y": 1}), {}),
        (
            frame_mean,
            POLARS,
            pl.DataFrame({"x": scaled(100.0), "y": [1] * B * PEOPLE}),
            {},
        ),
        (lambda x: sum(x) / len(x), UNIT, list(scaled(100.0)), {}),
        (
            lambda x: x.mean(axis=0),
            samplers.uniform([0, 0], [1, 1]),
            np.column_stack([scaled(100.0)] * 2),
            {},
        ),
        (
            aligned,
            ALIGNED,
            (scaled(9.0),) * 2,
            {"data": ["x", "y"]},
        ),
        (spread, UNIT, scaled(100.0), {"mechanism": Laplace(scaled="total")}),
        (mean, [UNIT, samplers.uniform(0, 0.5)], scaled(100.0), {}),
        (nearness, UNIT, scaled(100.0), {"mechanism": Exponential(responses=[0.0, 0.5, 1.0])}),
    ],
)
@pytest.mark.slow
def test_all_containers_mechanisms_and_families_are_measured(function, sampler, people, settings):
    """People in another container could not be checked, or would be measured in another norm."""
    like = people.head(0) if hasattr(people, "head") else None
    like = [] if isinstance(people, list) else like
    found = gauge(function, sampler=sampler, like=like, **settings).counts(people)
    assert found[0] >= B / 2


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_what_cannot_be_sent_is_refused_before_anybody_pays():
    """Everything would be charged, and every block would fail."""
    stuck = (each for each in "a generator cannot be sent")
    with pytest.raises(ExecutionError, match="Each block is evaluated"):
        gauge(lambda x: mean(x) + 0 * bool(stuck)).check()


def by_hash(x):
    return mean(x) * (1 + hash("a string") % 2**20 / 2**20)


def writing(x):
    Path("seen").write_text("")
    return mean(x)


@for_each(("function", "problem"), [(by_hash, "gives other answers"), (writing, "fails in the processes")])
def test_what_computes_something_else_there_is_refused_before_anybody_pays(
    function, problem, tmp_path, monkeypatch
):
    """Gaps of something else would be compared, and P would be said to hold, or the epsilon would be lost.

    The hash of a string is the same in both processes with a probability of one in a million, unless somebody
    has set the hash seed.
    """
    monkeypatch.chdir(tmp_path)
    if function is by_hash and os.environ.get("PYTHONHASHSEED", "random") != "random":
        pytest.skip("PYTHONHASHSEED is set, so that hashes are the same everywhere")
    with pytest.raises(NotReproducibleError, match=problem) as caught:
        gauge(function).check()
    assert function.__name__ in str(caught.value)


def test_processes_with_other_hashes_than_those_that_were_tried():
    """The fork server may have been replaced meanwhile, and a function may compute something else there."""
    made = gauge(mean)
    made.check()
    assert made.counts(scaled())[-1] == 0
    made._hash += 1
    assert made.counts(scaled())[-1] == B


def test_a_function_that_fails_on_some_public_data_can_be_checked():
    """Failures that P has as well say nothing about the processes of blocks."""

    def picky(x):
        return mean(x) if x[0] > 0.05 else [1.0][1]

    gauge(picky, min_sensitivity=0.1, bound="marginal").check()


def categories_of(d):
    return float(d["x"].mean()) + len(d["job"].cat.categories)


def test_a_block_has_all_categories_of_p():
    """A mean by group would have fewer groups in small blocks, and count as one that fails."""
    table = samplers.table(x=UNIT, job=samplers.categorical(list("abcdefghijkl")))
    made = gauge(
        categories_of, lambda d: d.groupby("job", observed=False).size(), sampler=table, domain="clip"
    )
    few = table.draw(B * PEOPLE, np.random.default_rng(0)).assign(job=pd.Categorical(["a"] * (B * PEOPLE)))
    assert made.counts(few)[-1] == 0
