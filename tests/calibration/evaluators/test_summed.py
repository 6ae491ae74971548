"""Two records make a pair of a sum, in documented streams, however the pairs are divided."""

import functools
import math

import numpy as np
import pytest

from privatize import (
    plan,
    samplers,
    sums,
)
from privatize.calibration.evaluators.choose import evaluator
from privatize.mechanisms.base import l1
from privatize.sums import additive
from tests.calibration.estimates import estimate
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
EDGES = np.linspace(0, 1, 11)
LATTICE = np.linspace(0, 1, 11)


def test_streams_are_as_documented():
    """Pair i would not have the records 2i and 2i+1 of its block, as documented."""
    found = estimate(sums.means(), n=1000, plan=plan(0.2, 600))
    expected = []
    for block in range(3):
        rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(1, spawn_key=(0, block))))
        both = rng.uniform(0.0, 1.0, 512).reshape(256, 2)
        expected += (np.abs(both[:, 0] - both[:, 1]) / 1000).tolist()
    added = found.gaps - expected[:600]
    assert (added > 0).all() and added.max() < 2e-14


def test_any_division_into_spans():
    """The estimate would depend on how pairs are divided among workers."""
    expected = estimate(sums.kde(LATTICE, 0.1), plan=plan(0.2, 600)).gaps
    for size in (1, 7, 100, 256, 300):
        pairs = evaluator(sums.kde(LATTICE, 0.1), n=50, sampler=UNIT, norm=l1, seed=1)
        parts = [pairs.evaluate((at, min(at + size, 600)), pairs.learned).gaps for at in range(0, 600, size)]
        assert np.array_equal(np.concatenate(parts), expected)


@additive
def clipped(x, limit=0.5):
    """Clip."""
    return np.minimum(x, limit)


@pytest.mark.parametrize("function", [sums.histogram(EDGES), clipped, functools.partial(clipped, limit=0.9)])
def test_workers_give_the_same_gaps(function):
    """A pair would have another gap in another process."""
    here = estimate(function, plan=plan(0.1, 700), workers="inline")
    there = estimate(function, plan=plan(0.1, 700), workers=2)
    assert np.array_equal(here.gaps, there.gaps)


def test_a_longer_run_extends_a_shorter_one():
    """A plan with more pairs would measure all of them again."""
    short, long = (estimate(sums.means(), plan=plan(0.2, m)).gaps for m in (100, 600))
    assert np.array_equal(short, long[:100])


@for_each("n", [1, 2, 3, 100_000])
@for_each("average", [True, False])
def test_any_number_of_records(n, average):
    """The gap of a mean is 1/n of that of two records, the gap of a sum does not depend on n."""
    found = estimate(additive(np.square, average=average), n=n).value
    assert found == pytest.approx(
        estimate(additive(np.square, average=False), n=5).value / n**average, rel=1e-8
    )


def test_sums_round_pairwise():
    """The rounding error of a column's sum would be larger than what is added to gaps for it."""
    x = np.random.default_rng(1).random((100_000, 3))
    exact = [math.fsum(column) / len(x) for column in x.T]
    allowed = (math.log2(len(x)) + 16) * 2.0**-53
    assert (np.abs(sums.means()(x) - exact) <= allowed).all()


def test_rounding_with_large_offsets():
    """If values are huge and gaps tiny, rounding could make real gaps larger than the estimated ones."""
    pairs = evaluator(additive(lambda x: 1e9 + x), n=5000, sampler=UNIT, norm=l1, seed=1)
    found = pairs.evaluate((0, 100), pairs.learned)
    for i in range(100):
        one, other = pairs.pairs.use_up(pairs.pairs.pair_at(i))
        assert abs(pairs.function(one) - pairs.function(other)) <= found.gaps[i]
