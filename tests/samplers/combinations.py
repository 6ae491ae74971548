"""The code of samplers made of others, and whether values lie in their support."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy

from privatize import samplers
from privatize.samplers import (
    Maybe,
    OneOf,
)


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
    "uniform(0, 100).changed(Change(spread=[('value', 0.5, 50, False)]))",
    "labelled(uniform(0, 1, size=2), choice([0, 1])).changed(Change(thinned=[('y', [1], 0.3)]))",
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


BOOTSTRAPS = [
    "load('tests/fixtures/learned_table.json')",
    "load('tests/fixtures/learned_table.json')[['income', 'sex']]",
    "load('tests/fixtures/learned_array.json')",
    "load('tests/fixtures/learned_pair.json')",
    "bootstrap(np.arange(9.0))",
    "bootstrap((np.eye(3), np.arange(3)), smooth=0.5)",
    "bootstrap({'a': np.arange(3), 'b': np.array(['x', 'y', 'z'])})",
    "bootstrap(['x', 'y', 'z'])",
    "bootstrap([{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}])",
    "bootstrap(__import__('pandas').DataFrame({'a': [1.0, 2.0], 'b': ['x', 'y']}))",
    "bootstrap(__import__('polars').DataFrame({'a': [1.0, 2.0], 'b': ['x', None]}))",
    "bootstrap(__import__('pyarrow').table({'a': [1.0, 2.0], 'b': ['x', 'y']}))",
]
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
