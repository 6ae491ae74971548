"""Distributions made of others, of public data or of a model: what they promise, and what they refuse."""

import math
import pickle
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy
from scipy import sparse, stats

from privatize import privatize, samplers
from privatize.data import records
from privatize.errors import DataError, SamplerError
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
    dates,
    from_function,
    integers,
    labelled,
    marginal,
    mixture,
    normal,
    table,
    uniform,
    with_missing,
)
from tests.cases import for_each


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def dice(n, generator):
    """Draw with a function of one's own."""
    return generator.integers(1, 7, n)


def pairs(n, generator):
    """Draw aligned containers with a function of one's own."""
    return generator.random((n, 2)), generator.integers(0, 2, n)


def rows(n, generator):
    """Draw a dict of arrays with a function of one's own."""
    return {"a": generator.random(n), "b": generator.choice(["x", "y"], n)}


def halved(values):
    """Make each record from one record."""
    return values / 2


def above(X, generator):
    """Label records by their sum and a random number."""
    return (X.sum(axis=1) + generator.normal(0, 0.1, len(X)) > 1).astype(int)


def first_above(X):
    """Label records without randomness."""
    return X[:, 0] > 0.5


def weight(mean):
    """Return a likelihood as one of scipy's distributions."""
    return scipy.stats.norm(mean, 10)


def heard(mean, generator):
    """Draw records of a likelihood with the generator."""
    return generator.poisson(np.exp(mean))


FUNCTIONS = (dice, pairs, rows, halved, above, first_above, weight, heard)
NAMES = {
    **{name: getattr(samplers, name) for name in samplers.__all__},
    **{function.__name__: function for function in FUNCTIONS},
    "exp": np.exp,
    "rint": np.rint,
    "inf": math.inf,
    "math": math,
    "np": np,
    "numpy": np,
    "scipy": scipy,
}

WITHOUT_FUNCTIONS = [
    "integers(0, 120)",
    "integers(-3, 4).truncated(-1, 2)",
    "integers(0, 100).truncated(18)",
    "integers(0, 100).truncated(high=18)",
    "integers(0, 10).truncated(2.5, 7.5)",
    "uniform(0, 100).truncated(18)",
    "uniform([0, 0], [1, 2]).truncated(0.5, [0.75, 1])",
    "normal(40, 12).truncated(0, 120)",
    "normal([0, 5], 2).truncated(high=[1, inf])",
    "normal([0, 0], cov=[[1, 0.5], [0.5, 1]]).truncated(-1, [1, 2])",
    "normal([0, 0], cov=[[1, 0.5], [0.5, 1]]).truncated([-1, -inf])",
    "mixture([normal(0, 1), normal(5, 1)]).truncated(0, 6)",
    "normal(0, 1).clip(-2, 2)",
    "normal(0, 1).clip(high=2)",
    "normal([0, 0], 1).clip([0, -inf], [inf, 1])",
    "uniform(0, 1).clip(0.25)",
    "uniform(0, 1, size=3).clip(0.25, 0.5)",
    "integers(0, 10).clip(2, 7)",
    "integers(0, 10).clip(2.5, 7.5)",
    "choice([1, 2, 3]).clip(2, 5)",
    "with_missing(uniform(0, 1), 0.5).clip(0.25, 0.75)",
    "with_missing(uniform(0, 1), 0.5).truncated(0.25, 0.75)",
    "with_missing(integers(0, 9).clip(2, 7), 0.5)",
    "uniform(0, 1).fixed(size=10)",
    "normal(0, 1).clip(-2, 2).truncated(-1, 1).fixed(size=3)",
    "table(a=integers(0, 9), b=boolean(), frame='dict').fixed(size=3)",
    "table(a=integers(0, 9), b=boolean(), frame='dict').fixed(size=3)['a']",
    "mixture([scipy.stats.gamma(2), scipy.stats.norm(9, 1)], weights=[0.25, 0.75])",
    "mixture([choice(['a', 'b']), choice(['b', 'ccc'])])",
    "mixture([dates('2020-01-01', '2020-01-31'), dates('2019-01-01', '2020-01-02')])",
    "mixture([with_missing(uniform(0, 1), 0.5), uniform(2, 3)])",
    "mixture([table(a=integers(0, 9), c=choice(['x'])), table(a=integers(5, 20), c=choice(['y', 'z']))])",
    *(
        f"mixture([table(a=integers(0, 9), c=choice(['x', 'y']), frame={frame!r}), "
        f"table(a=integers(5, 20), c=choice(['z']), frame={frame!r})], weights=[0.25, 0.75])"
        for frame in ("polars", "pyarrow", "dict")
    ),
    "mixture([table(a=integers(0, 9), frame='records'), table(a=integers(5, 20), frame='records')])",
    "mixture([labelled(uniform(0, 1, size=2), choice([0, 1])), blobs([[0, 0], [1, 1]])])",
    "labelled(uniform(0, 1, size=2), choice([0, 1]))",
    "labelled(uniform(0, 1), normal(0, 1))",
    "labelled(scipy.stats.norm(0, 1), scipy.stats.bernoulli(0.5))",
    "labelled(table(a=uniform(0, 1), b=boolean()), categorical(['x', 'y']))",
    "labelled(table(a=uniform(0, 1), b=boolean(), frame='dict'), uniform(0, 1))",
    "blobs([[0, 0], [1, 2]])",
    "blobs([[0, 0], [1, 2]], 0.5, labels=[-1, 1])",
    "blobs([[0, 0], [1, 2]], [0.5, 2], labels=['a', 'b'], weights=[1, 3])",
    "blobs([[0, 0], [1, 2]], labels=[False, True])",
    "blobs([[0, 0], [1, 2]], labels=[0.0, 1.0])",
    "blobs([[0, 0], [1, 2]], low=-1, high=2)",
    "blobs([[0, 0], [1, 2]], low=[-1, -inf], high=[inf, 3])",
    "blobs([[0.1], [0.2], [0.3]], high=1)",
    "blobs([[0, 0], [1, 2]], low=-inf, weights=[1, 1])",
    "as_sampler(scipy.stats.gamma(2, scale=3))",
]
WITH_FUNCTIONS = [
    "from_function(dice)",
    "from_function(dice, support=(1, 6))",
    "from_function(dice, support=[1, 2, 3, 4, 5, 6])",
    "from_function(dice, support=OneOf((1, 2, 3, 4, 5, 6), unknown=3))",
    "from_function(dice, support=(0, inf))",
    "from_function(dice, support=(-inf, inf))",
    "from_function(dice, support=Maybe((1, 6)))",
    "from_function(pairs, support=((0, 1), [0, 1]))",
    "from_function(pairs, support=(None, [0, 1]))",
    "from_function(pairs, support=(([0, 0], [1, 1]), (0, 1)))",
    "from_function(rows, support={'a': (0, 1), 'b': ['x', 'y']})",
    "from_function(rows, support={'a': (0, 1)})",
    "from_function(rows)[['b']]",
    "from_function(dice, support=(1, 6)).truncated(2, 5)",
    "from_function(dice, support=(1, 6)).clip(2)",
    "normal(3, 1).map(exp)",
    "normal(3, 1).map(exp, support=(0, inf))",
    "normal(40, 12).truncated(0, 120).map(rint, support=(0, 120)).truncated(1, 100)",
    "integers(0, 9).map(halved, support=[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5])",
    "labelled(uniform(0, 1, size=2), above, support=[0, 1])",
    "labelled(uniform(0, 1, size=2), above)",
    "labelled(uniform(0, 1, size=2), first_above, support=[False, True])",
    "marginal(normal(75, 5), weight)",
    "marginal(normal(75, 5), weight, per='dataset')",
    "marginal(uniform(0, 3), heard, support=(0, inf))",
    "marginal(scipy.stats.uniform(0, 3), heard)",
    "marginal(normal(75, 5), weight).truncated(0, 200)",
]
# SciPy's distributions have our methods only after as_sampler().
SCIPY = [
    "as_sampler(scipy.stats.gamma(2, scale=3)).truncated(1, 10)",
    "as_sampler(scipy.stats.norm(0, 1)).clip(-1, 1)",
    "as_sampler(scipy.stats.poisson(3)).truncated(high=9)",
    "as_sampler(scipy.stats.norm(0, 1)).fixed(size=3)",
    "as_sampler(scipy.stats.norm(0, 1)).map(exp)",
]
CODES = WITHOUT_FUNCTIONS + WITH_FUNCTIONS + SCIPY


def make(code):
    """Make a sampler from its code."""
    return eval(code, dict(NAMES))


# --- whether values lie in a support ---


def is_missing(value):
    """Tell whether a value is missing."""
    return value is None or bool(np.any(pd.isna(value)))


def inside(drawn, support):
    """Tell whether everything drawn lies in a support."""
    if support is None:
        return True
    if isinstance(drawn, pd.DataFrame | pl.DataFrame):
        drawn = {name: np.array(drawn[name].to_list(), dtype=object) for name in drawn.columns}
    if isinstance(drawn, pa.Table):
        drawn = {name: np.array(drawn[name].to_pylist(), dtype=object) for name in drawn.column_names}
    if isinstance(drawn, list) and drawn and isinstance(drawn[0], dict):
        drawn = {name: np.array([record[name] for record in drawn]) for name in drawn[0]}
    if isinstance(drawn, pd.Series | pl.Series | list):
        drawn = np.array(list(drawn))
    if isinstance(support, dict):
        return all(inside(drawn[name], own) for name, own in support.items())
    if isinstance(drawn, tuple):
        return all(map(inside, drawn, support))
    if isinstance(support, Maybe):
        return inside(np.array([value for value in drawn.tolist() if not is_missing(value)]), support.inner)
    if any(map(is_missing, drawn.ravel().tolist())):
        return False
    if isinstance(support, OneOf):
        known = {(type(value), value) for value in support.values}
        return all((type(value), value) in known for value in drawn.tolist())
    low, high = support
    return bool(((low <= drawn) & (drawn <= high)).all())


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


BOOTSTRAPS = [
    "bootstrap(np.arange(9.0))",
    "bootstrap((np.eye(3), np.arange(3)), smooth=0.5)",
    "bootstrap({'a': np.arange(3), 'b': np.array(['x', 'y', 'z'])})",
    "bootstrap(['x', 'y', 'z'])",
    "bootstrap([{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}])",
    "bootstrap(__import__('pandas').DataFrame({'a': [1.0, 2.0], 'b': ['x', 'y']}))",
    "bootstrap(__import__('polars').DataFrame({'a': [1.0, 2.0], 'b': ['x', None]}))",
    "bootstrap(__import__('pyarrow').table({'a': [1.0, 2.0], 'b': ['x', 'y']}))",
]


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


# --- map ---


def cumulative(values):
    """Mix records with those before them."""
    return np.cumsum(values)


@for_each(
    "function",
    [
        lambda x: x - x.mean(),
        lambda x: x / x.max(),
        lambda x: (x - x.mean()) / x.std(),
        np.sort,
        lambda x: x[::-1],
        lambda x: np.roll(x, 1),
        lambda x: np.argsort(np.argsort(x)),
        cumulative,
        lambda x: np.maximum.accumulate(x),
        lambda x: x - x[0],
        lambda x: x - x[:1].mean(),
        lambda x: np.concatenate([x[:1], np.diff(x)]),
        lambda x: x + np.arange(len(x)),
        lambda x: x[: len(x) // 2 * 2 :][::-1],
    ],
)
def test_functions_that_mix_records_are_refused(function):
    """Records of P would not be independent, and the theorem needs them to be."""
    with pytest.raises(SamplerError, match="each record from one record alone"):
        uniform(0, 1).map(function)


@for_each(
    ("function", "message"),
    [
        (np.random.default_rng(0).permutation, "one record alone"),
        (lambda x: x[:-1], "one record alone|drew"),
        (lambda x: x.sum(), "one record alone|records"),
        (lambda x: 1 / 0, "ZeroDivisionError"),
        (lambda x: x["a"], "raised IndexError"),
        (3, r"map\(3\) needs a function"),
        (None, "needs a function"),
    ],
)
def test_functions_that_make_no_records_are_refused(function, message):
    """A slip would surface in the middle of calibration."""
    with pytest.raises(SamplerError, match=message):
        uniform(0, 1).map(function)


@for_each(
    ("sampler", "function"),
    [
        (uniform(0, 1), np.exp),
        (uniform(0, 1), lambda x: np.where(x > 0.5, np.nan, x)),
        (uniform(0, 1), lambda x: np.column_stack([x, x**2])),
        (uniform(0, 1), lambda x: x.tolist()),
        (uniform(0, 1), lambda x: (x, x > 0.5)),
        (uniform(0, 1), lambda x: {"a": x, "b": x > 0.5}),
        (uniform(0, 1), pd.Series),
        (uniform(0, 1, size=3), lambda x: x.sum(axis=1)),
        (uniform(0, 1, size=3), lambda x: x / x.sum(axis=1, keepdims=True)),
        (choice(["a", "b"]), np.char.upper),
        (with_missing(uniform(0, 1), 0.5), np.sqrt),
        (table(a=uniform(0, 1), c=categorical(["x", "y"])), lambda d: d.assign(b=2 * d["a"])),
        (table(a=uniform(0, 1), frame="polars"), lambda d: d.with_columns(b=2 * pl.col("a"))),
        (table(a=uniform(0, 1), frame="pyarrow"), lambda d: d.append_column("b", d["a"])),
        (table(a=uniform(0, 1), frame="records"), lambda d: [r | {"b": 1} for r in d]),
        (table(a=uniform(0, 1), b=boolean(), frame="dict"), lambda d: np.column_stack([d["a"], d["b"]])),
        (labelled(uniform(0, 1, size=2), choice([0, 1])), lambda pair: (pair[0] * 2, pair[1])),
    ],
)
def test_functions_of_single_records_are_accepted(sampler, function):
    """A harmless function would be refused, and P could not be made to look like the data."""
    made = sampler.map(function)
    drawn = made.draw(30, rng(7))
    assert records.count(drawn) == 30
    assert records.equal(drawn, function(sampler.draw(30, rng(7))))


def test_a_function_that_changes_its_input_changes_nothing_else():
    """A function that works in place would change what P draws for others."""

    def in_place(values):
        values += 10
        return values

    inner = from_function(dice)
    made = inner.map(in_place)
    assert set(made.draw(200, rng(8))) == {11, 12, 13, 14, 15, 16}
    assert set(inner.draw(200, rng(8))) == {1, 2, 3, 4, 5, 6}
    public = bootstrap(np.array([1.0, 2.0]))
    public.map(in_place).draw(50, rng(8))
    assert set(public.draw(50, rng(8))) == {1.0, 2.0}


# --- truncated and clipped ---


@for_each(
    ("sampler", "support"),
    [
        (normal(0, 1).truncated(-1), (-1, math.inf)),
        (uniform(0, 10).truncated(-5, 5), (0, 5)),
        (integers(0, 10).truncated(3), (3, 10)),
        (integers(0, 10).truncated(high=7), (0, 7)),
        (as_sampler(stats.gamma(2)).truncated(-1, 5), (0, 5)),
        (as_sampler(stats.gamma(2)).truncated(1), (1, math.inf)),
        (normal(0, 1).clip(-2, 2), (-2, 2)),
        (uniform(0, 1).clip(-5, 0.5), (0, 0.5)),
        (uniform(0, 1).clip(0.5), (0.5, 1)),
        (from_function(dice).truncated(2, 5), (2, 5)),
    ],
    ids=repr,
)
def test_supports_of_restricted_samplers(sampler, support):
    """Private records would be clipped to more, or less, than P's bounds."""
    assert tuple(float(end) for end in sampler.support) == support


def test_clip_moves_records_and_truncated_draws_them_again():
    """The mass outside of the bounds would be in the wrong place."""
    clipped, cut = (
        normal(0, 1).clip(-1, 1).draw(1000, rng(9)),
        normal(0, 1).truncated(-1, 1).draw(1000, rng(9)),
    )
    assert 200 < (abs(clipped) == 1).sum() < 450
    assert (abs(cut) == 1).sum() == 0


@for_each("share", [0.0016, 0.003, 0.01])
@for_each("n", [1, 1000, 30_000])
def test_bounds_that_more_than_one_draw_in_a_thousand_meets(share, n):
    """A truncation that was accepted would be refused in the middle of calibration, for a large dataset."""
    sampler = from_function(lambda size, generator: generator.random(size)).truncated(high=share)
    drawn = sampler.draw(n, rng(9))
    assert drawn.shape == (n,)
    assert drawn.max() <= share


@pytest.mark.parametrize("code", ["integers(0, 10)", "from_function(dice)", "choice([1, 2, 3])"])
def test_integers_stay_integers(code):
    """The dtype of P, which private records are cast to, would change with a bound."""
    sampler = make(code)
    assert sampler.clip(1).draw(9, rng()).dtype == sampler.draw(9, rng()).dtype == np.int64
    assert sampler.truncated(high=2.5).draw(9, rng()).dtype == np.int64
    column = table(x=sampler.clip(1, 2)).draw(9, rng())["x"]
    assert column.dtype == np.int64


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


# --- supports that a user states ---


@for_each(
    ("given", "support"),
    [
        (None, None),
        ((0, 1), (0.0, 1.0)),
        ([0, 1], OneOf((0, 1), 0)),
        (["b", "a"], OneOf(("b", "a"), "b")),
        (OneOf((0, 1), 1), OneOf((0, 1), 1)),
        (Maybe((0, 1)), Maybe((0.0, 1.0))),
        (Maybe(), Maybe()),
        ({"a": (0, 1), "b": None}, {"a": (0.0, 1.0), "b": None}),
        (((0, 1), ["x"]), ((0.0, 1.0), OneOf(("x",), "x"))),
        ((None, (0, 1)), (None, (0.0, 1.0))),
        (({"a": (0, 1)}, (0, 1)), ({"a": (0.0, 1.0)}, (0.0, 1.0))),
        (((0, 1), Maybe((0, 1))), ((0.0, 1.0), Maybe((0.0, 1.0)))),
        ((Maybe(["x"]), None), (Maybe(OneOf(("x",), "x")), None)),
    ],
)
def test_a_stated_support_is_the_support(given, support):
    """Private records would be converted to another support than the one that was stated."""
    assert from_function(dice, support=given).support == support


def test_a_stated_support_of_dates():
    """Dates that a function draws could not have bounds."""
    ends = np.datetime64("2020-01-01"), np.datetime64("2020-12-31")
    sampler = from_function(dice, support=ends)
    assert sampler.support == ends
    assert make(repr(sampler)) == sampler


# --- fixed ---


def test_the_same_records_are_used_every_time():
    """A record that was used yesterday would not be used today, and one calibration would not be enough."""
    sampler = uniform(0, 1).fixed(size=50)
    for n in (50, 51, 1000):
        chosen = sampler.positions(n)
        assert len(set(chosen.tolist())) == 50
        assert chosen.min() >= 0 and chosen.max() < n
        assert (np.diff(chosen) > 0).all()
        assert np.array_equal(chosen, uniform(5, 6).fixed(size=50).positions(n))
    with pytest.raises(DataError, match=r"has 49 records, and fixed\(size=50\) uses 50"):
        sampler.positions(49)


@for_each(
    "make_it",
    [
        lambda s: s.map(np.exp),
        lambda s: s.clip(0.25, 0.75),
        lambda s: s.truncated(0.25, 0.75),
        lambda s: mixture([s, s]),
        lambda s: with_missing(s, 0.5),
        lambda s: labelled(s, choice([0, 1])),
        lambda s: table(a=s),
    ],
)
def test_a_fixed_size_is_never_dropped(make_it):
    """The data would be used in full, and calibrated again every day, though the size was fixed."""
    try:
        made = make_it(uniform(0, 1).fixed(size=7))
    except SamplerError:
        return  # refused is right too
    assert len(made.positions(20)) == 7


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


# --- public data ---

FRAME = pd.DataFrame(
    {
        "a": [1.0, 2.0, 4.0, np.nan],
        "i": [1, 2, 3, 4],
        "s": ["x", "y", "x", None],
        "c": pd.Categorical(["p", "q", "p", "q"], categories=["q", "p", "r"]),
        "t": pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01", "2020-04-01"]).tz_localize(
            "Asia/Tokyo"
        ),
    }
)


@for_each(
    "public",
    [
        PUBLIC,
        PUBLIC.astype(np.float32),
        np.arange(12).reshape(4, 3),
        np.array(["x", "yy", "z", "x"]),
        np.array(["2020-01-01", "2020-02-01", "NaT", "2020-01-01"], dtype="M8[D]"),
        [1.0, 2.0, 4.0, 8.0],
        ["x", None, "z", "x"],
        [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": None}, {"a": 4, "b": "x"}],
        (np.arange(8.0).reshape(4, 2), np.array([0, 1, 1, 0])),
        {"a": PUBLIC, "b": np.array(["x", "y", "x", "z"])},
        FRAME,
        FRAME["a"],
        FRAME["c"],
        pl.from_pandas(FRAME),
        pl.Series("a", [1, None, 3, 4]),
        pa.Table.from_pandas(FRAME, preserve_index=False),
        sparse.csr_array(np.diag([1.0, 2.0, 3.0, 4.0])),
    ],
    ids=lambda public: type(public).__name__,
)
@for_each("smooth", [0, 0.5])
def test_public_records_of_every_kind(public, smooth):
    """Some public data could not be used, or would be drawn with other types."""
    if smooth and sparse.issparse(public):
        with pytest.raises(SamplerError, match="not for sparse"):
            bootstrap(public, smooth=smooth)
        return
    sampler = bootstrap(public, smooth=smooth)
    drawn = sampler.draw(50, rng(13))
    assert records.count(drawn) == 50
    assert records.describe(drawn) == records.describe(public)
    if not sparse.issparse(public):
        assert inside_public(drawn, sampler.support)
    assert repr(sampler) == ("bootstrap(public, smooth=0.5)" if smooth else "bootstrap(public)")
    back = pickle.loads(pickle.dumps(sampler))
    assert back == sampler and hash(back) == hash(sampler)
    assert fingerprint(back) == fingerprint(sampler)
    assert records.equal(back.draw(9, rng(13)), sampler.draw(9, rng(13)))
    assert pickle.loads(cloudpickle.dumps(sampler)) == sampler


def inside_public(drawn, support):
    """Tell whether public data lies in a support, but for the column "t" of times with a zone."""
    if isinstance(support, dict):
        support = {name: own for name, own in support.items() if name != "t"}
    return inside(drawn, support)


def test_rows_of_public_data_stay_together():
    """A record would be put together from those of different people."""
    public = pl.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    known = set(public.iter_rows())
    assert set(bootstrap(public).draw(60, rng(14)).iter_rows()) == known
    X, y = bootstrap((np.arange(9).reshape(3, 3), np.array([0, 3, 6]))).draw(60, rng(14))
    assert (X[:, 0] == y).all()


def test_public_data_that_changes_afterwards():
    """P would change with an array that the caller goes on using."""
    public, frame = PUBLIC.copy(), FRAME.copy()
    one, other = bootstrap(public), bootstrap(frame)
    before = one.draw(9, rng(15)), other.draw(9, rng(15)), fingerprint(one)
    public[:] = 99
    frame["a"] = 99.0
    after = one.draw(9, rng(15)), other.draw(9, rng(15)), fingerprint(one)
    assert records.equal(before, after)
    drawn = one.draw(9, rng(15))
    drawn[:] = 77
    assert records.equal(one.draw(9, rng(15)), before[0])


@for_each(
    ("public", "values"),
    [
        (PUBLIC, lambda drawn: drawn),
        (PUBLIC.astype(np.float32), lambda drawn: drawn),
        (np.column_stack([PUBLIC, -PUBLIC]), lambda drawn: drawn[:, 1]),
        (PUBLIC.tolist(), lambda drawn: drawn),
        ([[x, 2 * x] for x in PUBLIC], lambda drawn: [x for x, _ in drawn]),
        ([{"a": x} for x in PUBLIC], lambda drawn: [record["a"] for record in drawn]),
        ((PUBLIC, np.arange(4)), lambda drawn: drawn[0]),
        ({"a": PUBLIC, "b": np.arange(4)}, lambda drawn: drawn["a"]),
        (pd.DataFrame({"a": PUBLIC, "b": range(4)}), lambda drawn: drawn["a"]),
        (pd.Series(PUBLIC), lambda drawn: drawn),
        (pl.DataFrame({"a": PUBLIC, "b": range(4)}), lambda drawn: drawn["a"]),
        (pl.Series("a", PUBLIC), lambda drawn: drawn),
        (pa.table({"a": PUBLIC, "b": range(4)}), lambda drawn: drawn["a"].to_pylist()),
    ],
)
def test_smoothing_reaches_every_container(public, values):
    """Records of a public data set would be drawn as they are, though they were to be smoothed."""
    sampler = bootstrap(public, smooth=0.1)
    found = np.asarray(values(sampler.draw(50, rng(16))), dtype=float)
    assert len(np.unique(found)) > 20
    if isinstance(public, pd.DataFrame):
        assert set(sampler.draw(50, rng(16))["b"]) == {0, 1, 2, 3}


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


# --- descriptions ---


class Checker(HTMLParser):
    """Check that tags are closed in order, and keep what a reader would see."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


DAYS = dates("2020-01-01", "2020-02-01")
KNOWN = {"div", "b", "table", "tbody", "tr", "th", "td"}
KNOWN |= {"figure", "figcaption", "svg", "path", "text", "title"}
NASTY = "<script>alert('x')</script>\"&"


@for_each(
    "sampler",
    [
        *map(make, (code for code in CODES if "pairs" not in code)),
        table(
            {NASTY: categorical([NASTY, "b"]), "a b": uniform(0, 1), "": dates("2020-01-01", "2020-02-01")}
        ),
        with_missing(uniform(0, 1), 1 - 1e-12),
        with_missing(dates("2020-01-01", "2020-02-01"), 1 - 1e-12),
        with_missing(choice(["a"]), 1 - 1e-12),
        choice([5]),
        choice([math.inf, 1.0]),
        from_function(pairs),
        from_function(lambda n, generator: [[1], [1, 2]] * (n // 2)),
        uniform(0, 1, size=(2, 3)),
        uniform(0, 1, size=200),
        bootstrap(FRAME),
        bootstrap(pl.from_pandas(FRAME)),
        bootstrap(sparse.csr_array(np.eye(3))),
    ],
    ids=lambda sampler: repr(sampler)[:60],
)
def test_every_sampler_describes_itself(sampler):
    """Looking at P before using it would end in an error, or run a script that is hidden in a name."""
    found = sampler.describe(n=200)
    assert found.n == 200 and found.seed == 0
    text = str(found)
    assert repr(sampler) in text
    assert "200 records, seed 0" in text
    assert repr(found) == text
    page = Checker()
    page.feed(found._repr_html_())
    page.close()
    assert page.open == []
    assert page.seen <= KNOWN
    assert repr(sampler) in "".join(page.text)


def test_a_description_is_right():
    """A user would judge P by numbers that are not those of its records."""
    parts = {"c": categorical(["x", "y"], p=[1, 3]), "d": dates("2020-01-01", "2020-12-31")}
    sampler = table({"a": with_missing(uniform(0, 10), 0.25)} | parts)
    drawn = sampler.draw(5000, rng(3))
    found = {row.name: row for row in sampler.describe(n=5000, seed=3).rows}
    assert list(found) == ["a", "c", "d"]
    assert found["a"].missing == drawn["a"].isna().sum()
    assert float(found["a"].facts[0]) == pytest.approx(drawn["a"].mean(), rel=1e-3)
    assert float(found["a"].facts[1]) == pytest.approx(drawn["a"].std(), rel=1e-2)
    assert float(found["a"].facts[3]) == pytest.approx(drawn["a"].median(), rel=1e-3)
    assert found["a"].support == "[0, 10] or missing"
    assert found["c"].facts[1] == f"y: {(drawn['c'] == 'y').mean():.1%}"
    assert found["c"].support == "{x, y}"
    assert sum(found["a"].heights) + found["a"].missing == sum(found["c"].heights) == 5000
    assert found["d"].support == "[2020-01-01, 2020-12-31]"
    assert sampler.describe(n=5000, seed=3) == sampler.describe(n=5000, seed=3)
    assert str(sampler.describe(n=5000, seed=4)) != str(sampler.describe(n=5000, seed=3))


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
@pytest.mark.parametrize(
    "sampler",
    [
        uniform(0, 1),
        uniform(0, 1, size=3),
        table(
            {
                NASTY: categorical([NASTY, "b"]),
                "a$_{$b": uniform(0, 1),
                "d": dates("2020-01-01", "2020-02-01"),
            },
            frame="dict",
        ),
        blobs([[0, 0], [1, 1]]),
        with_missing(uniform(0, 1), 1 - 1e-12),
    ],
    ids=lambda sampler: repr(sampler)[:40],
)
def test_a_description_plots_itself(sampler, tmp_path):
    """The picture that the documentation promises would be missing, or its figure would stay open."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    found = sampler.describe(n=100)
    figure = found.plot()
    try:
        assert [axes.get_title() for axes in figure.axes] == [row.name for row in found.rows]
        figure.savefig(tmp_path / "picture.png", dpi=30)
    finally:
        plt.close(figure)


def test_a_plot_without_matplotlib(monkeypatch):
    """The error would not say what is missing."""
    from privatize.errors import SettingsError

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(SettingsError, match="needs matplotlib"):
        uniform(0, 1).describe(n=10).plot()


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
ONE_COLUMN = pd.DataFrame({"a": NUMBERS})


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
