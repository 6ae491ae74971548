"""Pairs that are drawn many at once are those of the documented streams, drawn one by one."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from privatize import additive, estimate_sensitivity, plan, samplers
from privatize.calibration import neighbours, streams
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.neighbours import TURN, NeighbourSampler, repeater
from privatize.data import records
from privatize.errors import NotReproducibleError
from privatize.samplers import as_sampler
from privatize.samplers.base import traits_of
from tests.cases import for_each

STREAMABLE = [
    samplers.uniform(0, 1),
    samplers.uniform(-1e300, 1e300),
    samplers.uniform(0, 1, size=3),
    samplers.uniform([0, 5, -3], [1, 6, 1e9]),
    samplers.uniform(np.zeros((2, 3)), np.arange(1, 7).reshape(2, 3)),
    samplers.uniform(0, 1, size=(2, 2)),
    samplers.integers(0, 1),
    samplers.integers(0, 2),
    samplers.integers(-100, 100),
    samplers.integers(0, 2**16),
    samplers.integers(0, 2**31),
    samplers.integers(0, 2**32 - 1),
    samplers.integers(0, 2**32),
    samplers.integers(-(2**53), 2**53),
    samplers.integers(0, 5, size=3),
    samplers.integers(0, 2**40, size=(2, 3)),
    samplers.normal(0, 1),
    samplers.normal([1, 2], [3, 4]),
    samplers.normal(40, 12, low=0, high=120),
    samplers.normal(0, 1, low=[1, 2], high=[3, 8]),
    samplers.normal(0, 1).map(np.exp),
    samplers.normal(45, 20).truncated(0, 120).map(np.rint),
    samplers.uniform(0, 1).map(special.ndtri),
    samplers.uniform(0, 1).map(np.sqrt, support=(0, 1)),
    samplers.uniform(0, 10).map(np.sin).map(np.exp),
    as_sampler(stats.expon()),
    as_sampler(stats.expon(2, 3)),
    as_sampler(stats.norm(scale=2)),
    as_sampler(stats.uniform(loc=-1, scale=2)),
]
OTHERS = [
    samplers.mixture([samplers.uniform(0, 1), samplers.normal(5, 1)]),
    samplers.normal([0, 0], cov=[[1, 0.5], [0.5, 1]]),
    samplers.normal(0, 1).clip(-1, 1),
    samplers.categorical(["a", "b", "c"]),
    samplers.boolean(0.3),
    samplers.table(frame="dict", age=samplers.integers(18, 90)),
    samplers.blobs([[0, 0], [5, 5]]),
    samplers.uniform(0, 1).map(np.modf),
    samplers.uniform(0, 1).map(lambda x: x**2),
    samplers.uniform(0, 1).fixed(size=10),
    samplers.from_function(lambda n, rng: rng.random(n)),
    as_sampler(stats.gamma(2)),
    as_sampler(stats.poisson(3)),
    as_sampler(stats.multivariate_normal([0, 0])),
]


@for_each("sampler", STREAMABLE, ids=repr)
def test_draws_one_after_the_other_are_one_draw(sampler):
    """Otherwise the pairs would depend on how many of them a worker draws at once."""
    assert traits_of(sampler).streamable
    for sizes in ((1, 1), (1, 2), (3, 5), (7, 1, 4), (2, 2, 2), (1001, 999), (13,) * 11):
        rng = streams.stream(5, streams.RECORDS, 3)
        parts = np.concatenate([sampler.draw(size, rng) for size in sizes])
        after = rng.random()
        rng = streams.stream(5, streams.RECORDS, 3)
        at_once = sampler.draw(sum(sizes), rng)
        assert parts.dtype == at_once.dtype
        assert parts.tobytes() == at_once.tobytes(), sizes
        assert after == rng.random()


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(STREAMABLE), st.lists(st.integers(1, 300), min_size=1, max_size=12), st.integers(0, 2**32)
)
def test_draws_of_any_sizes_are_one_draw(sampler, sizes, seed):
    """Otherwise the size of a draw, odd or even, would change the records of the next draw."""
    rng = streams.stream(seed, streams.RECORDS)
    parts = np.concatenate([sampler.draw(size, rng) for size in sizes])
    assert parts.tobytes() == sampler.draw(sum(sizes), streams.stream(seed, streams.RECORDS)).tobytes()


@for_each("sampler", OTHERS, ids=repr)
def test_other_samplers_draw_each_dataset_by_itself(sampler):
    """The records of these may depend on how many are drawn, so datasets must not be drawn together."""
    assert not traits_of(sampler).streamable


@for_each("low", [0.0, -3.7, 1e-300, 5.0])
@for_each("wide", [1.0, 1e-3, 1e300])
def test_equal_bounds_are_drawn_like_different_ones(low, wide):
    """The shortcut for coordinates that have the same bounds must draw the same numbers."""
    short = samplers.uniform(low, low + wide, size=3).draw(100, streams.stream(1, 0))
    long = streams.stream(1, 0).uniform(np.full(3, low), np.full(3, low + wide), (100, 3))
    assert short.tobytes() == long.tobytes()


class Sorted(type(samplers.uniform(0, 1))):
    """A user's subclass of one of our samplers, which draws something else."""

    def draw(self, n, rng):
        return np.sort(super().draw(n, rng)) + rng.random()


def test_a_subclass_of_our_samplers_draws_each_dataset_by_itself():
    """A user's class that sorts each dataset would sort many datasets as if they were one."""
    ours = samplers.uniform(0, 1)
    made = Sorted(ours.low, ours.high)
    assert not traits_of(made).streamable and not traits_of(made).iid and not traits_of(made).stable
    assert not traits_of(made.map(np.exp)).streamable and not traits_of(made.map(np.exp)).iid
    found = [gaps_of(kind, lambda x: float(x[0] + 2 * x[-1]), 300) for kind in (made, made.draw)]
    assert np.array_equal(*found)


def test_functions_that_look_like_those_of_numpy_are_not_taken_for_them():
    """A user's own ufunc may do anything, so nothing must be assumed about it."""
    odd = np.frompyfunc(lambda x: float(x), 1, 1)
    assert not traits_of(samplers.uniform(0, 1).map(odd)).streamable
    assert not traits_of(samplers.uniform(0, 1).map(odd)).iid


def gaps_of(sampler, function, stop, spans=None, n=20, seed=3):
    pairs = evaluator(
        function, n=n, sampler=as_sampler(sampler), norm=lambda gap: float(np.abs(gap).sum()), seed=seed
    )
    found = np.full(stop, np.nan)
    for begin, end in spans or [(0, 1), (1, stop)]:
        found[begin:end] = pairs.evaluate((begin, end), pairs.learned).gaps
    return found


KINDS = {
    "uniform": (samplers.uniform(0, 1), lambda x: float(x.mean())),
    "plane": (samplers.uniform([0, 0], [1, 9]), lambda x: x.mean(axis=0)),
    "integers": (samplers.integers(0, 9), lambda x: int((x > 4).sum())),
    "expon": (stats.expon(scale=3), lambda x: float(np.median(x))),
    "gamma": (stats.gamma(2), lambda x: float(np.median(x))),
    "mixture": (samplers.mixture([samplers.uniform(0, 1), samplers.normal(5, 1)]), lambda x: float(x.mean())),
    "table": (samplers.table(frame="dict", a=samplers.integers(0, 9)), lambda t: float(t["a"].mean())),
    "tuple": (samplers.uniform(0, 9).map(np.modf), lambda d: float(d[0].mean())),
    "random": (samplers.uniform(0, 1), lambda x: float(x.mean() + np.random.rand())),
    "sum": (samplers.uniform(0, 1), additive(lambda x: x)),
}
EXPECTED = {}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(KINDS)),
    st.sets(st.integers(1, 599), max_size=8),
    st.randoms(use_true_random=False),
)
def test_gaps_are_the_same_however_pairs_are_divided(kind, cuts, shuffler):
    """An estimate must not depend on how many workers there were, or on which was first."""
    if kind not in EXPECTED:
        EXPECTED[kind] = gaps_of(*KINDS[kind], 600, [(i, i + 1) for i in range(600)])
    spans = list(itertools.pairwise(sorted({0, 600, *cuts})))
    shuffler.shuffle(spans)
    assert np.array_equal(gaps_of(*KINDS[kind], 600, spans), EXPECTED[kind])


def test_gaps_are_those_of_the_documented_streams():
    """Anybody can draw the same pairs with numpy alone."""
    n, size, found = 30, 256, []
    for block in range(3):
        rng, places = (
            np.random.Generator(np.random.SFC64(np.random.SeedSequence(3, spawn_key=(tag, block))))
            for tag in (0, 1)
        )
        for position in places.integers(n, size=size):
            drawn = rng.uniform(0.0, 1.0, n + 1)
            other = drawn[:n].copy()
            other[position] = drawn[n]
            found.append(abs(drawn[:n].mean() - other.mean()))
    assert np.array_equal(found[:700], gaps_of(*KINDS["uniform"], 700, n=n))


def overwrites(x):
    found = float(x.max() - x[0])
    x[:] = -1.0
    return found


def sorts(x):
    first = x[0]
    x.sort()
    return float(x[-1] - first)


@pytest.mark.parametrize("function", [overwrites, sorts])
def test_a_function_that_writes_into_its_data_spoils_no_other_pair(function):
    """Datasets of other pairs lie next to it in memory, and must not change."""
    expected = gaps_of(samplers.uniform(0, 1), lambda x: float(x.max() - x[0]), 500)
    assert np.array_equal(gaps_of(samplers.uniform(0, 1), function, 500), expected)
    assert np.array_equal(gaps_of(samplers.uniform(0, 1), function, 500, [(400, 500), (0, 400)]), expected)


def test_a_dataset_of_a_block_is_an_ordinary_array():
    """A function that needs a contiguous array, or writes into it, would fail."""
    seen = set()

    def look(x):
        seen.add((type(x), x.shape, x.dtype, x.flags.c_contiguous, x.flags.writeable, x.flags.aligned))
        return float(x.mean())

    gaps_of(samplers.uniform(0, 1), look, 300)
    assert seen == {(np.ndarray, (20,), np.dtype(float), True, True, True)}


def test_wide_records_are_drawn_a_few_at_a_time():
    """A block of wide datasets, or what comes before a pair in its block, would not fit into memory."""
    wide = samplers.uniform(0, 1, size=5000)
    pairs = evaluator(
        lambda x: float(x[0, 0]), n=10, sampler=wide, norm=lambda gap: float(abs(gap[0])), seed=1
    )
    pairs.evaluate((0, 1), pairs.learned)
    tracemalloc.start()
    try:
        pairs.evaluate((200, 256), pairs.learned)  # a block of 256 is 113 MB
        pairs.evaluate((255, 256), pairs.learned)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * 2**20


@for_each("n", [3, 20_000])
def test_several_p_take_turns(n):
    """A stress test would name a change that it has not tried, or depend on how pairs are divided."""
    zero, one = samplers.uniform(0, 1), samplers.uniform(1, 2)
    pairs = NeighbourSampler(zero, n, seed=1, turns=[zero, one])
    spans = [pairs.span(block * TURN, (block + 1) * TURN) for block in range(4)]
    entire = [pair.records.copy() for span in spans for pair in span]
    for index, drawn in enumerate(entire):
        assert (drawn >= 1).all() == (index // TURN % 2 == 1)
        assert (pairs.pair_at(index).records == drawn).all()
    first, second = (pairs.span(at, at + 3) for at in (0, 3))
    assert all((a.records == b).all() for a, b in zip([*first, *second], entire, strict=False))


def spawning(n, rng):
    """Draw numbers from a generator that the given one spawns, which its state does not show."""
    return rng.spawn(1)[0].random(n)


def half_spawning(n, rng):
    """Draw numbers from the given generator, and sometimes from one that it spawns."""
    found = rng.random(n)
    return found if found[0] < 0.9 else rng.spawn(1)[0].random(n)


@for_each(
    "sampler", [*STREAMABLE, *OTHERS, *map(samplers.from_function, (spawning, half_spawning))], ids=repr
)
def test_a_pair_that_is_drawn_again_is_the_same(sampler):
    """A user's function would be accused of another answer for identical data, which were different data."""
    pairs = NeighbourSampler(sampler, n=3, seed=2)
    first = [
        (records.copy(pair.records), pair.position)
        for start, stop in ((0, 1), (1, 17), (17, 256), (256, 300))
        for pair in pairs.span(start, stop)
    ]
    for index in (255, 3, 64, 70, 69, 299, 0, 12, 13, 190):
        pair = pairs.pair_at(index)
        assert records.equal(pair.records, first[index][0]), index
        assert pair.position == first[index][1]


def test_a_pair_that_is_drawn_again_costs_few_draws():
    """Checks at the end of a calibration would draw many of its datasets a second time."""
    calls = []
    sampler = samplers.from_function(lambda n, rng: calls.append(n) or rng.random(n))
    pairs = NeighbourSampler(sampler, n=3, seed=2)
    for _ in pairs.span(0, 256):
        pass
    calls.clear()
    pairs.pair_at(203)
    assert len(calls) <= 4


LARGE = 600_000  # records, which are more than 4 MB


def test_two_large_datasets_are_in_memory_at_a_time():
    """A third one may not fit."""
    settings = {"norm": "l1", "plan": plan(m=5, bound="marginal"), "seed": 1, "workers": "inline"}
    taken = []

    def mean(x):
        taken.append(tracemalloc.get_traced_memory()[0])
        return x.mean()

    tracemalloc.start()
    try:
        estimate_sensitivity(mean, n=LARGE, sampler=samplers.uniform(0, 1), **settings)
    finally:
        tracemalloc.stop()
    # Two for each pair, and the first once more. Then pairs are measured again in memory that is reserved.
    assert max(taken[:11]) < 2.5 * 8 * LARGE


class Keeping:
    """Draws numbers, and keeps what it has drawn."""

    def __init__(self):
        self.drawn = []

    def draw(self, n, rng):
        self.drawn.append(rng.random(n))
        return self.drawn[-1]


@for_each(
    "sampler", [samplers.uniform(0, 1, size=2), samplers.integers(0, 100), samplers.boolean(0.5)], ids=repr
)
def test_large_pairs_are_those_of_the_streams(sampler, monkeypatch):
    """Gaps would depend on how large "large" is, and change with a version of the library."""
    settings = {"norm": "l1", "plan": plan(m=30, bound="marginal"), "seed": 3, "workers": "inline"}

    def found():
        return estimate_sensitivity(np.std, n=2000, sampler=sampler, **settings).gaps

    usual = found()
    monkeypatch.setattr(neighbours, "LARGE", 1)
    assert np.array_equal(found(), usual)


def test_what_a_sampler_keeps_is_left_alone(monkeypatch):
    """A sampler that draws from a list of its own would draw other records than it has."""
    monkeypatch.setattr(neighbours, "LARGE", 1)
    sampler = Keeping()
    pairs = NeighbourSampler(sampler, n=2000, seed=1)
    pairs.check()
    pair = pairs.pair_at(0)
    before = pair.records.copy()
    one, other = pairs.use_up(pair)
    one[:] = other[:] = 7.0
    assert np.array_equal(sampler.drawn[-1], before)


@for_each("place", [id, lambda x: x.__array_interface__["data"][0]], ids=["object", "address"])
def test_a_function_that_recognizes_large_arrays(place, monkeypatch):
    """Its gaps would be those of other pairs, since the memory of their data is used again."""
    monkeypatch.setattr(neighbours, "LARGE", 1)
    answers, settings = {}, {"norm": "l1", "plan": plan(gamma=0.1), "seed": 3, "workers": "inline"}

    def cached(x):
        return answers.setdefault(place(x), float(x.mean()))

    with pytest.raises(NotReproducibleError, match=r"It\s+must not depend|it must not depend"):
        estimate_sensitivity(cached, n=2000, sampler=samplers.uniform(0, 1), **settings)


def test_a_large_dataset_once_more(monkeypatch):
    """A function that changes its data would be accused of giving two answers for identical data."""
    monkeypatch.setattr(neighbours, "LARGE", 1)
    pairs = NeighbourSampler(samplers.uniform(0, 1), n=2000, seed=1)
    pairs.check()
    pair = pairs.pair_at(2)
    first = pair.records[:2000].copy()
    again = repeater(pairs, 2, pair.records)
    one, _ = pairs.use_up(pair)
    one[:] = 0
    found = again()
    assert found is not one and not np.shares_memory(found, one) and np.array_equal(found, first)
