"""Distributions made of others, of public data or of a model: what they promise, and what they refuse."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from privatize import privatize
from privatize.errors import SamplerError
from privatize.identity.fingerprint import fingerprint
from privatize.samplers import (
    Maybe,
    OneOf,
    as_sampler,
    blobs,
    boolean,
    bootstrap,
    categorical,
    choice,
    from_function,
    integers,
    labelled,
    marginal,
    mixture,
    normal,
    table,
    uniform,
)
from privatize.samplers.base import skip
from tests.cases import for_each
from tests.samplers.combinations import (
    above,
    dice,
    first_above,
    halved,
    pairs,
    weight,
)


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


# --- whether values lie in a support ---


PUBLIC = np.array([1.0, 2.0, 4.0, 8.0])


@for_each(
    ("one", "other"),
    [
        (from_function(dice, support=[0, 1]), from_function(dice, support=[False, True])),
        (from_function(dice, support=[0, 1]), from_function(dice, support=[0.0, 1.0])),
        (from_function(dice, support=[0, 1]), from_function(dice, support=(0, 1))),
        (from_function(dice, support=(0, 1)), from_function(dice, support=Maybe((0, 1)))),
        (from_function(dice, support=(0, 1)), from_function(pairs, support=(0, 1))),
        (
            labelled(uniform(0, 1, size=2), above, support=[0, 1]),
            labelled(uniform(0, 1, size=2), above, support=[False, True]),
        ),
        (blobs([[0], [1]], labels=[0, 1]), blobs([[0], [1]], labels=[False, True])),
        (blobs([[0], [1]], labels=[0, 1]), blobs([[0], [1]], labels=[0.0, 1.0])),
        (blobs([[0], [1]]), blobs([[1], [0]])),
        (blobs([[0], [1]], 1), blobs([[0], [1]], 2)),
        (blobs([[0], [1]], low=0), blobs([[0], [1]], high=0)),
        (normal(0, 1).clip(-1, 1), normal(0, 1).truncated(-1, 1)),
        (integers(0, 9).truncated(0, 5), integers(0, 9).clip(0, 5)),
        (uniform(0, 1).fixed(size=3), uniform(0, 1).fixed(size=4)),
        (uniform(0, 1).fixed(size=3), uniform(0, 1)),
        (uniform(0, 1).map(np.exp), uniform(0, 1).map(np.rint)),
        (uniform(0, 1).map(np.exp), uniform(0, 1).map(np.exp, support=(0, 3))),
        (marginal(normal(75, 5), weight), marginal(normal(75, 5), weight, per="dataset")),
        (marginal(normal(75, 5), weight), marginal(normal(75, 6), weight)),
        (bootstrap(PUBLIC), bootstrap(PUBLIC, smooth=0.1)),
        (bootstrap(PUBLIC), bootstrap(PUBLIC + 1)),
        (bootstrap(PUBLIC), bootstrap(PUBLIC[::-1])),
        (bootstrap(PUBLIC), bootstrap(PUBLIC.astype(int))),
        (bootstrap(PUBLIC), bootstrap(PUBLIC.astype(np.float32))),
        (bootstrap(PUBLIC), bootstrap(PUBLIC.tolist())),
        (bootstrap(PUBLIC), bootstrap(PUBLIC[:, None])),
        (bootstrap(PUBLIC), bootstrap(pd.Series(PUBLIC))),
        (bootstrap(pd.DataFrame({"a": PUBLIC})), bootstrap(pd.DataFrame({"b": PUBLIC}))),
        (bootstrap(pd.DataFrame({"a": PUBLIC})), bootstrap(pl.DataFrame({"a": PUBLIC}))),
        (bootstrap([1, 0]), bootstrap([True, False])),
        (bootstrap([1, 0]), bootstrap([1.0, 0.0])),
        (bootstrap(["1", "0"]), bootstrap([1, 0])),
        (bootstrap(pd.Series(["a", "b"])), bootstrap(pd.Series(["a", "b"], dtype="category"))),
    ],
)
def test_different_samplers_are_not_equal(one, other):
    """A guarantee for one P would be taken for a guarantee for another."""
    assert one != other
    assert other != one
    assert fingerprint(one) != fingerprint(other)


@for_each(
    ("one", "other"),
    [
        (uniform(0, 100).truncated(18), uniform(18, 100)),
        (normal(0, 1).truncated(-1, 1), normal(0, 1, low=-1, high=1)),
        (normal(0, 1).truncated(-1, 3).truncated(-2, 1), normal(0, 1).truncated(-1, 1)),
        (blobs([[0], [1]], weights=[1, 3]), blobs(np.array([[0.0], [1.0]]), weights=[0.25, 0.75])),
        (blobs([[0], [1]], labels=np.array([0, 1])), blobs([[0], [1]])),
        (bootstrap(PUBLIC), bootstrap(PUBLIC.copy())),
        (bootstrap(pd.DataFrame({"a": PUBLIC})), bootstrap(pd.DataFrame({"a": PUBLIC}))),
        (uniform(-0.0, 1), uniform(0.0, 1)),
    ],
)
def test_the_same_sampler_written_in_another_way_is_equal(one, other):
    """The same P, written in another way, would be calibrated twice."""
    assert one == other
    assert hash(one) == hash(other)
    assert fingerprint(one) == fingerprint(other)
    assert repr(one) == repr(other)


def test_a_fingerprint_does_not_depend_on_what_came_before():
    """A sampler would have one identity in one process and another in the next."""
    code = (
        "import sys; from privatize.samplers import uniform\n"
        "from privatize.identity.fingerprint import fingerprint\n"
        "print([fingerprint(uniform(low, 1)) for low in eval(sys.argv[1])][-1])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, lows],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
            cwd=Path(__file__).parents[2],
        ).stdout
        for lows in ("[0.0]", "[-0.0, 0.0]")
    }
    assert len(found) == 1


# --- truncated and clipped ---


@for_each(
    ("call", "message"),
    [
        (lambda: uniform(0, 1).truncated(2, 3), "bound|between"),
        (lambda: uniform(0, 1).truncated(1), "bound"),
        (lambda: integers(0, 9).truncated(10, 20), "fewer than one draw in a thousand"),
        (lambda: integers(0, 9).truncated(2.2, 2.8), "fewer than one draw in a thousand"),
        (lambda: normal(0, 1).truncated(50, 60), "no mass"),
        (lambda: normal([0, 0], 1).truncated([0, 50]), "no mass"),
        (lambda: normal([0, 0], cov=np.eye(2)).truncated(50, 60), "thousand"),
        (lambda: as_sampler(stats.gamma(2)).truncated(high=0), "thousand"),
        (lambda: as_sampler(stats.norm()).truncated(9), "fewer than one draw in a thousand.*Widen them"),
        (lambda: from_function(dice).truncated(7), "thousand"),
        (lambda: mixture([normal(0, 1), normal(5, 1)]).truncated(50), "thousand"),
        (lambda: blobs([[0, 0]], low=50, high=60), "no mass"),
        (lambda: uniform(0, 1).truncated(), r"truncated\(\) needs a bound: truncated\(low, high\)"),
        (lambda: uniform(0, 1).clip(), r"clip\(\) needs a bound"),
        (lambda: uniform(0, 1).clip(-math.inf, math.inf), "needs a bound"),
        (lambda: uniform(0, 1).truncated(0.5, 0.25), "0.5 must be below the upper bound 0.25"),
        (lambda: uniform(0, 1).clip(1, 1), "must be below"),
        (lambda: uniform(0, 1).clip(math.nan, 1), "must be below"),
        (lambda: uniform(0, 1).clip("a", 1), "do not fit"),
        (lambda: uniform(0, 1).truncated([0, 0], 1), r"shape \(2,\) do not fit records of shape \(\)"),
        (lambda: uniform(0, 1, size=2).truncated([0, 0, 0], 1), "do not fit records of shape"),
        (lambda: uniform(0, 1, size=2).clip(0, [1, 1, 1]), "do not fit"),
        (lambda: labelled(uniform(0, 1), choice([0, 1])).clip(0, 1), "is for numbers"),
        (lambda: bootstrap(pd.Series([1.0, 2.0])).clip(0, 1), "is for numbers"),
        (lambda: uniform(0, 1).fixed(size=0), r"fixed\(size=0\).*an integer >= 1"),
        (lambda: uniform(0, 1).fixed(size=-3), ">= 1"),
        (lambda: uniform(0, 1).fixed(size=2.5), "size=2.5"),
        (lambda: uniform(0, 1).fixed(size=True), "size=True"),
        (lambda: uniform(0, 1).fixed(size="3"), "size='3'"),
        (lambda: uniform(0, 1).fixed(size=None), "size=None"),
        (lambda: uniform(0, 1).describe(n=1), r"describe\(n=1\).*from 2 to"),
        (lambda: uniform(0, 1).describe(n=0), "from 2 to"),
        (lambda: uniform(0, 1).describe(n=-5), "from 2 to"),
        (lambda: uniform(0, 1).describe(n=2.5), "n=2.5"),
        (lambda: uniform(0, 1).describe(n="many"), "n='many'"),
        (lambda: uniform(0, 1).describe(n=10**12), "10,000,000"),
        (lambda: uniform(0, 1).describe(seed=-1), "seed=-1"),
        (lambda: uniform(0, 1).describe(seed="x"), "seed='x'"),
        (lambda: mixture([uniform(0, 1), choice(["a", "b"])]), "different kinds of records"),
        (lambda: mixture([uniform(0, 1), uniform(0, 1, size=2)]), "different kinds of records"),
        (lambda: mixture([table(a=boolean()), table(b=boolean())]), "different kinds of records"),
        (
            lambda: mixture([table(a=boolean()), table(a=boolean(), frame="polars")]),
            "different kinds of records",
        ),
        (lambda: mixture([table(a=boolean(), b=boolean()), table(a=boolean())]), "different kinds"),
        (
            lambda: mixture([table(a=boolean(), frame="records"), table(b=boolean(), frame="records")]),
            "different kinds",
        ),
        (lambda: labelled(3, choice([0, 1])), "sampler=3 is not a public distribution"),
        (lambda: labelled(uniform(0, 1), 3), "sampler=3 is not a public distribution"),
        (lambda: labelled(uniform(0, 1), lambda X: np.zeros(7)), "records|length|aligned"),
        (lambda: labelled(uniform(0, 1), lambda X: 1 / 0), "ZeroDivisionError"),
        (lambda: labelled(uniform(0, 1), above, support=5), "support=5"),
        (lambda: blobs([0, 1]), r"centers has shape \(2,\): one row for each cloud"),
        (lambda: blobs([]), "one row for each cloud"),
        (lambda: blobs([[]]), "one row for each cloud"),
        (lambda: blobs("x"), "centers='x' is not a number"),
        (lambda: blobs([[0], [math.nan]]), "not finite"),
        (lambda: blobs([[0], [1]], 0), "std=0 must be positive"),
        (lambda: blobs([[0], [1]], [1, 2, 3]), "one for all clouds or one for each"),
        (lambda: blobs([[0], [1]], labels=[1]), "must be 2 different labels of one type"),
        (lambda: blobs([[0], [1]], labels=[1, 1]), "different"),
        (lambda: blobs([[0], [1]], labels=[1, "a"]), "one type"),
        (lambda: blobs([[0], [1]], labels=[[1], [2]]), "labels"),
        (lambda: blobs([[0], [1]], labels=5), "labels"),
        (lambda: blobs([[0], [1]], weights=[1]), "do not fit 2 clouds"),
        (lambda: blobs([[0], [1]], weights=[1, -1]), ">= 0"),
        (lambda: blobs([[0], [1]], low=1, high=0), "must be below"),
        (lambda: blobs([[0, 0], [1, 1]], low=[0, 0, 0]), "do not fit"),
        (lambda: bootstrap(3), "cannot be drawn from"),
        (lambda: bootstrap(None), "cannot be drawn from"),
        (lambda: bootstrap([]), "0 records. At least two"),
        (lambda: bootstrap([1.0]), "1 records. At least two"),
        (lambda: bootstrap((np.zeros(3), np.zeros(4))), "cannot be drawn from"),
        (lambda: bootstrap(PUBLIC, smooth=-1), r"smooth=-1\): the width is a number >= 0"),
        (lambda: bootstrap(PUBLIC, smooth=math.nan), ">= 0"),
        (lambda: bootstrap(PUBLIC, smooth=math.inf), ">= 0"),
        (lambda: bootstrap(PUBLIC, smooth="x"), "smooth='x'"),
        (lambda: marginal(normal(0, 1), weight, per="column"), "per='column'.*'record' or 'dataset'"),
        (lambda: marginal(normal(0, 1), 3), "likelihood=3 is not a function"),
        (lambda: marginal(3, weight), "sampler=3 is not a public distribution"),
        (lambda: marginal(normal(0, 1), lambda theta: theta[:-1]), "drew 1"),
        (lambda: marginal(normal(0, 1), lambda theta: 1 / 0), "ZeroDivisionError"),
        (lambda: marginal(normal(0, 1), lambda theta: None), "no dataset"),
        (lambda: marginal(normal(0, 1), weight, support=(1, 0)), "must be below"),
        (lambda: from_function(dice, support=[]), "no values"),
        (lambda: from_function(dice, support="ab"), "support|bounds"),
        (lambda: from_function(dice, support={"a": (1, 0)}), "must be below"),
        (lambda: from_function(dice, support={"a": 3}), "support=3"),
        (
            lambda: from_function(dice, support=(np.datetime64("2021-01-01"), np.datetime64("2020-01-01"))),
            "must be below",
        ),
        (lambda: from_function(dice, support=[1, 1]), "different"),
        (lambda: from_function(dice, support=OneOf((1, 2), unknown=3)), "unknown"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    """A slip would surface in the middle of calibration, or as an error about something else."""
    with pytest.raises(SamplerError, match=message):
        call()


# --- mixtures of tables ---


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "dict", "records"])
def test_a_mixture_of_tables_keeps_rows_together(frame):
    """A record would be put together from those of two people."""
    one = table(a=integers(0, 9), b=choice([1]), frame=frame)
    other = table(a=integers(100, 109), b=choice([2]), frame=frame)
    drawn = mixture([one, other]).draw(60, rng(10))
    if frame in ("pandas", "dict"):
        a, b = (list(drawn[name]) for name in "ab")
    elif frame == "records":
        a, b = ([record[name] for record in drawn] for name in "ab")
    else:
        a, b = ((drawn[name].to_list if frame == "polars" else drawn[name].to_pylist)() for name in "ab")
    assert {(x >= 100, y) for x, y in zip(a, b, strict=True)} == {(False, 1), (True, 2)}
    assert list(b) not in (sorted(b), sorted(b, reverse=True))
    assert tuple(map(int, mixture([one, other]).support["a"])) == (0, 109)


def test_a_mixture_of_frames_has_an_index_of_its_own():
    """A function that joins by index would meet every label twice."""
    part = table(a=integers(0, 9), c=categorical(["x", "y"]))
    drawn = mixture([part, part]).draw(30, rng(11))
    assert list(drawn.index) == list(range(30))
    assert drawn["c"].dtype == pd.CategoricalDtype(["x", "y"])


# --- learners ---


def test_labels_belong_to_their_features():
    """A learner would be calibrated on noise."""
    X, y = labelled(uniform(0, 1, size=2), first_above).draw(50, rng(12))
    assert (y == (X[:, 0] > 0.5)).all()
    X, y = blobs([[0, 0], [100, 100]], 0.1, labels=["lo", "hi"]).draw(50, rng(12))
    assert ((X[:, 0] > 50) == (y == "hi")).all()
    frame, y = labelled(table(a=uniform(0, 1)), lambda X: X["a"] > 0.5).draw(50, rng(12))
    assert (y == (frame["a"] > 0.5)).all()


# --- Bayesian models ---


def test_all_records_share_a_parameter_or_none_do():
    """The promise, an average over data sets, would be about another average."""

    def exact(theta):
        return theta

    shared = marginal(normal(0, 1), exact, per="dataset").draw(20, rng(17))
    assert len(set(shared)) == 1
    assert len(set(marginal(normal(0, 1), exact).draw(20, rng(17)))) == 20
    pair = marginal(labelled(uniform(0, 1), normal(0, 1)), lambda theta: theta[0] + theta[1], per="dataset")
    assert len(set(pair.draw(20, rng(17)))) == 1


@for_each("per", ["record", "dataset"])
@for_each(
    ("prior", "likelihood", "shape"),
    [
        (uniform(0, 1), lambda p: stats.bernoulli(p), ()),
        (uniform(1, 2), lambda df: stats.t(df), ()),
        (uniform(1, 2), lambda scale: stats.cauchy(0, scale), ()),
        (uniform(0, 1, size=2), lambda p, generator: generator.normal(p), (2,)),
        (uniform(0, 1, size=2), lambda p: stats.norm(p, 1), (2,)),
        (uniform(0, 1), lambda p: stats.norm(0, 1), ()),
    ],
)
def test_likelihoods_of_every_kind(per, prior, likelihood, shape):
    """A model that is easy to write would draw records of the wrong shape."""
    sampler = marginal(prior, likelihood, per=per)
    for n in (0, 1, 2, 7):
        assert sampler.draw(n, rng(18)).shape == (n, *shape)


# --- private answers ---


def centroid_gap(data):
    """Return a number that a learner would use."""
    X, y = data
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    ones = np.asarray(y) == 1
    return (X[ones].sum() - X[~ones].sum()) / len(X)


def column_means(data):
    """Return a mean of every column."""
    return data.mean()


NUMBERS = rng(19).uniform(-1, 7, 60)


@for_each(
    ("sampler", "data", "function"),
    [
        (integers(0, 9).map(halved, support=(0, 4.5)), NUMBERS, np.mean),
        (as_sampler(stats.gamma(2)).truncated(0, 5), NUMBERS, np.mean),
        (normal(2, 2).clip(0, 5), NUMBERS, np.mean),
        (uniform(0, 5).fixed(size=30), NUMBERS, np.mean),
        (mixture([integers(0, 3), uniform(1, 5)]), NUMBERS, np.mean),
        (
            mixture([table(a=uniform(0, 1)), table(a=uniform(1, 2))]),
            pd.DataFrame({"a": NUMBERS}),
            column_means,
        ),
        (bootstrap(np.linspace(0, 5, 50), smooth=0.1), NUMBERS, np.mean),
        (
            bootstrap(pd.DataFrame({"a": np.linspace(0, 5, 50)})),
            pd.DataFrame({"a": NUMBERS}),
            column_means,
        ),
        (marginal(normal(3, 1), weight), NUMBERS, np.mean),
        (marginal(normal(3, 1), weight, per="dataset", support=None), NUMBERS, np.mean),
        (from_function(dice, support=[1, 2, 3, 4, 5, 6]), np.arange(60), np.mean),
        (
            labelled(uniform(0, 1, size=2), above, support=[0, 1]),
            (rng(20).random((60, 2)), rng(20).integers(0, 3, 60)),
            centroid_gap,
        ),
        (blobs([[0, 0], [1, 2]], 0.5), (rng(20).random((60, 2)), rng(20).integers(0, 2, 60)), centroid_gap),
        (
            labelled(table(a=uniform(0, 1), b=uniform(0, 2)), choice([0, 1])),
            (pd.DataFrame(rng(20).random((60, 2)), columns=["a", "b"]), rng(20).integers(0, 2, 60)),
            centroid_gap,
        ),
    ],
    ids=lambda value: repr(value)[:50] if hasattr(value, "draw") else "",
)
def test_a_private_answer_with_each_sampler(sampler, data, function):
    """A sampler could be made, but not used for a private answer."""
    private = privatize(epsilon=1, gamma=0.2, sampler=sampler, store=None, seed=1, version="1")(function)
    assert np.isfinite(np.asarray(private(data), dtype=float)).all()


def test_skipping_blobs():
    """A pair that is measured again, or by another worker, would be another pair."""
    centers = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    for sampler in (
        blobs(centers),
        blobs(centers, [1, 2, 3], weights=[1, 2, 3]),
        blobs(centers, 1.5, low=-1, high=6),
        blobs(centers, [1, 2, 3], low=-1, high=6, weights=[1, 2, 3]),
    ):
        drawing, skipping = np.random.default_rng(1), np.random.default_rng(1)
        for n in (40, 1, 7):
            sampler.draw(n, drawing)
            skip(sampler, n, skipping)
            assert drawing.bit_generator.state == skipping.bit_generator.state
