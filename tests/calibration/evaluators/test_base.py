"""A function is run under public seeds, and whatever goes wrong with it is an infinite gap."""

import math
import random
import sys
import weakref

import numpy as np
import pytest

from privatize import plan, samplers
from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.neighbours import NeighbourSampler
from privatize.calibration.norms import NORMS, Norm
from privatize.errors import (
    InfiniteSensitivityError,
    OutputError,
    PairError,
)
from tests.calibration.estimates import estimate
from tests.cases import for_each


def test_values_that_are_too_large_or_too_small():
    """Estimates would be so large or small that floats lose digits."""
    with pytest.raises(InfiniteSensitivityError, match="1e300"):
        estimate(lambda x: 1e304 * x.mean())
    assert estimate(lambda x: 1e-310 * x.mean()).value == 1e-300


def test_global_generators_are_derandomized():
    """A function that subsamples with global generators is calibrated as one fixed function."""

    def subsample(x):
        rows = np.random.permutation(len(x))[:10]
        return x[rows].mean() + random.random()

    found = estimate(subsample, min_sensitivity=1e-9)
    # The random numbers cancel: one of ten sampled records changes (with probability 1/5), or none does.
    assert 0 < found.gaps.max() <= 0.1
    assert 0.6 < (found.gaps == 0).mean() < 0.95


def test_callers_generators_are_untouched():
    """Calibration would change the random numbers of the program that calls it."""
    random.seed(5)
    np.random.seed(5)
    np.random.normal()  # leaves a cached deviate behind
    expected = random.Random()
    expected.setstate(random.getstate())
    twin = np.random.RandomState()
    twin.set_state(np.random.get_state())
    estimate(lambda x: x.mean() + np.random.random() + random.random())
    assert random.random() == expected.random()
    assert np.array_equal(np.random.normal(size=5), twin.normal(size=5))


def test_randomness_for_some_data_only():
    """A function that is random for some data only would get other random numbers each time."""

    def sometimes(x):
        return x.mean() + (np.random.random() if x[0] > 0.9 else 0.0)

    found = estimate(sometimes, plan=plan(0.2, 400))
    rng = np.random.RandomState(found.coin_seed)
    number = rng.random_sample()
    # If both are above or both below 0.9, the number cancels. Otherwise it is the same number.
    jumps = found.gaps[found.gaps > 0.05]
    assert len(jumps) == 0 or np.allclose(jumps, number, atol=0.05)


@for_each(
    "wrong",
    [
        lambda x: math.nan,
        lambda x: math.inf,
        lambda x: np.array([1.0]),
        lambda x: "text",
        lambda x: sys.exit("bye"),
        lambda x: 1 / 0,
    ],
)
def test_every_kind_of_failure_is_infinite(wrong):
    """NaN, infinities, other structures, exits or exceptions would count as small gaps."""

    def f(x):
        return wrong(x) if x[0] > 0.98 else float(x.mean())

    found = estimate(f, plan=plan(0.2, 300))
    assert found.failed == np.isinf(found.gaps).sum() > 0


def test_changing_structure_is_explained():
    """An output whose keys depend on the data would be refused without a remedy."""
    with pytest.raises(InfiniteSensitivityError, match="fixed categories"):
        estimate(lambda x: {round(v, 2): 1.0 for v in x})


def test_unreleasable_output_is_refused_at_once():
    """A function that returns text would be refused only after m runs."""
    calls = []
    with pytest.raises(OutputError, match="Exponential"):
        estimate(lambda x: calls.append(1) or "yes")
    assert len(calls) == 1


def test_gaps_are_those_of_a_simple_loop():
    """Gaps would differ from those that a simple loop over the documented streams computes."""
    n, found = 40, estimate(np.mean, n=40, gamma=0.05)
    size = min(256, 2**18 // (n + 1))
    expected = []
    for block in range(-(-found.m // size)):
        stream = [
            np.random.Generator(np.random.SFC64(np.random.SeedSequence(1, spawn_key=(tag, block))))
            for tag in (0, 1)
        ]
        positions = stream[1].integers(n, size=size)
        for position in positions:
            drawn = stream[0].uniform(0.0, 1.0, n + 1)
            other = drawn[:n].copy()
            other[position] = drawn[n]
            expected.append(abs(drawn[:n].mean() - other.mean()))
    assert np.array_equal(found.gaps, expected[: found.m])
    assert found.value == sorted(found.gaps)[found.k - 1]


def test_functions_may_mutate_their_data():
    """A function that sorts its data in place would change the neighbour, or be refused."""

    def in_place(x):
        x.sort()
        x *= 2
        return x[len(x) // 2]

    assert np.array_equal(estimate(in_place).gaps, estimate(lambda x: np.sort(2 * x)[len(x) // 2]).gaps)

    def lists(records):
        records.sort()
        records[0]["x"] += 1
        return records[0]["x"]

    class Row(dict):
        def __lt__(self, other):
            return self["x"] < other["x"]

    sampler = samplers.from_function(lambda n, rng: [Row(x=v) for v in rng.random(n).tolist()])
    plain = estimate(lambda rs: min(r["x"] for r in rs), sampler=sampler, min_sensitivity=1e-9)
    assert np.allclose(estimate(lists, sampler=sampler, min_sensitivity=1e-9).gaps, plain.gaps)


def test_outputs_may_be_views_of_the_data():
    """A function that returns a slice of its data would have other gaps than one that returns a copy."""
    assert np.array_equal(estimate(lambda x: x[:3], n=4).gaps, estimate(lambda x: x[:3].copy(), n=4).gaps)


@for_each("length", [2, 5000, 20_000])  # all of a block are compared together, three, or each by itself
def test_pairs_that_are_compared_together_have_their_own_gaps(length):
    """After a failed pair, gaps would belong to other pairs, and the first cause would be a later one."""
    answers = np.linspace(1, 2, length)

    def one_number(x):
        return float(x.mean())

    def many(x):
        if x[0] < 0.1:
            raise ValueError("small")
        return answers * (math.nan if x[0] > 0.9 else x.mean())

    pairs = NeighbourSampler(samplers.uniform(0, 1), n=20, seed=1)
    plain = Evaluator(function=one_number, pairs=pairs, norm=Norm(NORMS["sup"]), s0=5)
    alone = plain.evaluate((0, 40), plain.learned).gaps
    pairs = NeighbourSampler(samplers.uniform(0, 1), n=20, seed=1)
    together = Evaluator(function=many, pairs=pairs, norm=Norm(NORMS["sup"]), s0=5, coordinate_gaps={})
    found = together.evaluate((0, 40), together.learned)
    worked = np.isfinite(found.gaps)
    assert 10 < worked.sum() < 40
    np.testing.assert_allclose(found.gaps[worked], 2 * alone[worked])
    assert found.cause.index == int((~worked).argmax())
    places = np.flatnonzero(worked).tolist()
    assert list(found.answers) == (places if length <= 10_000 else [])
    for at in places:
        assert abs(found.coordinate_gaps[at][-1]) == found.gaps[at]


def test_one_buffer_for_all_outputs():
    """A function that returns the same buffer at each call would overwrite its first output."""
    buffer = np.zeros(4)

    def counts(x):
        buffer[:] = np.histogram(x, bins=4, range=(0, 1))[0]
        return buffer

    plain = estimate(lambda x: np.histogram(x, bins=4, range=(0, 1))[0] * 1.0)
    assert np.array_equal(estimate(counts, min_sensitivity=0.01).gaps, plain.gaps)


@for_each("limit", [0.98, 0.95])  # with the second one, pairs of the last span fail, too
def test_nothing_keeps_a_run_alive_after_a_failed_pair(limit):
    """A pair that failed would keep the caller's local variables in memory after the calibration."""

    class Local:
        pass

    objects = [Local()]
    reference = weakref.ref(objects[0])

    def f(x):
        if x[0] > limit:
            raise ValueError("one of few")
        return x.mean()

    def caller():
        local = objects[0]  # noqa: F841 - it must not be kept alive by a traceback
        return estimate(f, plan=plan(0.2, 300))

    assert caller().failed > 0
    objects.clear()
    assert reference() is None


class TestPair:
    @staticmethod
    def of_mean(data, position, replacement):
        mean = data.mean()
        return mean, mean + (replacement - data[position]) / len(data)

    def test_pair_gives_the_same_estimate(self):
        """A correct `pair=` would give other gaps."""
        assert np.allclose(estimate(np.mean, pair=self.of_mean).gaps, estimate(np.mean).gaps, atol=1e-12)

    def test_wrong_pair_is_refused(self):
        """A pair= that gives smaller gaps than the function has would mean too little noise."""

        def small(data, position, replacement):
            mean = data.mean()
            return mean, mean + 0.5 * (replacement - data[position]) / len(data)

        with pytest.raises(PairError, match="disagrees") as caught:
            estimate(np.mean, pair=small)
        assert caught.value.evaluated > caught.value.pair

    def test_pair_wrong_on_large_gaps_only_is_refused(self):
        """The largest gaps, which decide the estimate, would not be checked."""

        def capped(data, position, replacement):
            mean = data.mean()
            step = np.clip((replacement - data[position]) / len(data), -0.017, 0.017)
            return mean, mean + step

        with pytest.raises(PairError):
            estimate(np.mean, pair=capped, plan=plan(0.05, 2000))

    def test_pair_that_returns_one_object_twice(self):
        """Two values in the same buffer would be equal, so that all gaps are 0."""
        buffer = np.zeros(1)

        def overwritten(data, position, replacement):
            buffer[0] = data.mean()
            return buffer, buffer

        with pytest.raises(PairError, match="same object"):
            estimate(lambda x: np.array([x.mean()]), pair=overwritten)

    def test_pair_for_a_function_of_large_values(self):
        """A wrong gap would be accepted as the rounding of large values."""

        def wrong(data, position, replacement):
            value = 1e12 + data.sum()
            return value, value + 0.001

        with pytest.raises(PairError):
            estimate(lambda x: 1e12 + x.sum(), pair=wrong)

    def test_pair_that_rounds_differently(self):
        """If many gaps are equal to the estimate, up to rounding, some of them would be beyond it.

        Without widening, 145 of 1,000 fresh pairs were beyond the estimate; with it none can be.
        """
        law = samplers.choice([0.0, 0.1])
        found = estimate(np.mean, 12345, law, plan=plan(0.1), pair=self.of_mean, seed=2)
        fresh = estimate(np.mean, 12345, law, plan=plan(0.1), seed=3)
        assert np.mean(fresh.gaps > np.sort(found.gaps)[found.k - 1]) > 0.1
        assert np.mean(fresh.gaps > found.value) == 0
        assert found.value == pytest.approx(0.1 / 12345, rel=1e-4)

    @pytest.mark.parametrize("which", ["pair", "batch"])
    def test_a_small_difference_is_reported(self, which):
        """A pair= that is slightly wrong would be reported as a function that is not reproducible."""

        def off(data, position, replacement):
            mean = data.mean()
            return mean, mean + (1 + 9.9e-7) * (replacement - data[position]) / len(data)

        given = {"pair": off} if which == "pair" else {"batch": lambda s: (1 + 9.9e-7) * s.mean(axis=1)}
        with pytest.raises(PairError, match=rf"{which}= disagrees.*difference of .*e-0[78] is more"):
            estimate(np.mean, **given)

    def test_a_small_difference_in_gaps_beyond_the_estimate(self):
        """A pair= that is right to nine digits would be refused for the rounding of rare, large gaps."""
        law = samplers.mixture([samplers.uniform(0, 1), samplers.uniform(0, 1e6)], [0.999, 0.001])

        def off(data, position, replacement):
            mean = data.mean()
            return mean, mean + (1 + 1e-9) * (replacement - data[position]) / len(data)

        assert estimate(np.mean, 50, law, plan=plan(0.1), pair=off).value < 1

    def test_pair_where_the_gap_is_not_finite(self):
        """A pair= that gives a small gap where that of the function is infinite would be accepted."""

        def finite(data, position, replacement):
            return 0.0, 0.01 * ((data[0] > 0.5) != (replacement > 0.5))

        with pytest.raises(PairError, match="disagrees"):
            estimate(lambda x: math.copysign(1.7e308, x[0] - 0.5), n=1, pair=finite)

    def test_pair_where_the_function_fails(self):
        """A pair= that works where the function fails would hide the failure."""

        def f(x):
            raise ValueError

        with pytest.raises(PairError):
            estimate(f, pair=self.of_mean)
