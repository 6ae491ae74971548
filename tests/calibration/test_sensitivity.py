"""The sensitivity sampler measures what the paper's Algorithm 1 measures, and refuses doubtful results."""

import contextlib
import importlib.util
import itertools
import math
import random
import subprocess
import sys
import traceback
import weakref
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privatize import Gaussian, Laplace, additive, estimate_sensitivity, plan, privatize, samplers
from privatize.calibration import streams
from privatize.errors import (
    InfiniteSensitivityError,
    NotReproducibleError,
    OutputError,
    PairError,
    PlanError,
    SamplerError,
    SettingsError,
    ZeroSensitivityError,
)
from privatize.mechanisms.base import l2
from privatize.mechanisms.weighted import Weighted
from privatize.planning.dkw import band
from privatize.planning.plan import Plan
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)


def estimate(function, n=50, sampler=UNIT, norm="l1", gamma=0.2, seed=1, **rest):
    made = rest.pop("plan", None) or plan(gamma)
    return estimate_sensitivity(function, n=n, sampler=sampler, norm=norm, plan=made, seed=seed, **rest)


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


def test_same_seed_same_gaps_and_a_longer_run_extends_a_shorter_one():
    """Estimates would not be reproducible, or a plan with more pairs would measure all of them again."""
    short = estimate(np.median, plan=plan(0.2, 100))
    again = estimate(np.median, plan=plan(0.2, 100))
    long = estimate(np.median, plan=plan(0.2, 700))
    assert np.array_equal(short.gaps, again.gaps)
    assert np.array_equal(short.gaps, long.gaps[:100])
    assert not np.array_equal(short.gaps, estimate(np.median, plan=plan(0.2, 100), seed=2).gaps)


def test_a_fresh_seed_is_recorded_and_reproduces():
    """An estimate with a fresh seed could not be reproduced, because the seed is unknown."""
    first = estimate(np.mean, seed=None)
    assert first.seed != estimate(np.mean, seed=None).seed
    assert np.array_equal(first.gaps, estimate(np.mean, seed=first.seed).gaps)


def test_gaps_are_read_only_and_facts_are_recorded():
    """Somebody could make a gap smaller afterwards, or could not see how the estimate was made."""
    found = estimate(np.mean)
    with pytest.raises(ValueError, match="read-only"):
        found.gaps[0] = 0
    assert (found.n, found.m, found.k, found.bound, found.norm) == (50, 79, 72, "tolerance", "l1")
    assert found.gamma == 0.2 and found.rho == plan(0.2).rho and found.failed == 0
    assert found.structure.to_json() == ["numpy", "<f8"] and found.schema.to_json() == ["array", "<f8", []]
    assert "looks" not in repr(found) and "m=79" in repr(found)


@pytest.mark.parametrize("norm", ["l1", "l2", "sup"])
def test_norms_of_vectors(norm):
    """The gap of a vector is measured in the norm that was asked for."""

    def f(x):
        return np.array([x.mean(), 2 * x[0], -x.max()])

    found = estimate(f, norm=norm)
    same = estimate(lambda x: {"a": [x.mean(), 2 * x[0]], "b": (-x.max(),)}, norm=norm)
    assert np.allclose(found.gaps, same.gaps, rtol=1e-14)
    order = {"l1": 1, "l2": 2, "sup": math.inf}[norm]
    reference = estimate(f, norm=lambda gap: float(np.linalg.norm(gap, order)))
    assert np.allclose(found.gaps, reference.gaps, rtol=1e-12)


def test_tiny_gaps_do_not_underflow():
    """An L2 gap of 1e-200 is not taken for zero, which would mean no noise at all."""
    assert l2(np.array([3e-200, 4e-200])) == pytest.approx(5e-200)
    found = estimate(lambda x: np.array([3e-200, 4e-200]) * x.sum(), norm="l2")
    assert found.gaps.min() > 0 and found.value > 1e-201
    assert l2(np.array([5e-324, 0.0])) == 5e-324
    assert l2(np.array([1e300, 1e300])) == pytest.approx(math.sqrt(2) * 1e300)


@for_each("bad", [0, -1, 1.5, "10", True, None])
def test_n_must_be_a_count(bad):
    """A wrong n is refused with its value."""
    with pytest.raises(SettingsError, match="n="):
        estimate(np.mean, n=bad)


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


class TestRandomness:
    def test_global_generators_are_derandomized(self):
        """A function that subsamples with global generators is calibrated as one fixed function."""

        def subsample(x):
            rows = np.random.permutation(len(x))[:10]
            return x[rows].mean() + random.random()

        found = estimate(subsample, min_sensitivity=1e-9)
        # The random numbers cancel: one of ten sampled records changes (with probability 1/5), or none does.
        assert 0 < found.gaps.max() <= 0.1
        assert 0.6 < (found.gaps == 0).mean() < 0.95

    def test_callers_generators_are_untouched(self):
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

    def test_randomness_for_some_data_only(self):
        """A function that is random for some data only would get other random numbers each time."""

        def sometimes(x):
            return x.mean() + (np.random.random() if x[0] > 0.9 else 0.0)

        found = estimate(sometimes, plan=plan(0.2, 400))
        rng = np.random.RandomState(found.coin_seed)
        number = rng.random_sample()
        # If both are above or both below 0.9, the number cancels. Otherwise it is the same number.
        jumps = found.gaps[found.gaps > 0.05]
        assert len(jumps) == 0 or np.allclose(jumps, number, atol=0.05)

    def test_hidden_randomness_is_refused(self):
        """Randomness that cannot be seeded would go unnoticed, or be refused without a remedy."""
        with pytest.raises(NotReproducibleError, match=r"coins="):
            estimate(lambda x: x.mean() + np.random.default_rng().random())

    def test_memory_of_earlier_calls_is_refused(self):
        """A function with a warm start, whose output depends on earlier calls, would be calibrated."""
        state = {"w": 0.0}

        def warm(x):
            state["w"] = 0.5 * state["w"] + 0.5 * x.mean()
            return state["w"]

        with pytest.raises(NotReproducibleError, match="warm starts"):
            estimate(warm)

    def test_flaky_failure_is_refused(self):
        """A function that fails when it runs again on the same data would be calibrated."""
        calls = []

        def flaky(x):
            calls.append(1)
            if len(calls) == 3:
                raise RuntimeError
            return x.mean()

        with pytest.raises(NotReproducibleError):
            estimate(flaky)


class TestFailures:
    def test_failing_pairs_count_as_infinite_and_do_not_shift_k(self):
        """A pair that raises would be missing, and the estimate too small."""

        def f(x):
            if x[0] > 0.99:
                raise ValueError("too large")
            return x.mean()

        good = estimate(np.mean, plan=plan(0.2, 300))
        found = estimate(f, plan=plan(0.2, 300))
        assert found.failed > 0 and found.k == good.k and len(found.gaps) == 300
        bad = np.isinf(found.gaps)
        assert np.array_equal(found.gaps[~bad], good.gaps[~bad])
        assert found.value >= good.value

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
    def test_every_kind_of_failure_is_infinite(self, wrong):
        """NaN, infinities, other structures, exits or exceptions would count as small gaps."""

        def f(x):
            return wrong(x) if x[0] > 0.98 else float(x.mean())

        found = estimate(f, plan=plan(0.2, 300))
        assert found.failed == np.isinf(found.gaps).sum() > 0

    def test_infinite_estimates_show_the_first_cause(self):
        """The error for a function that never works would not have the function's own traceback."""

        def broken(x):
            raise KeyError("column")

        with pytest.raises(InfiniteSensitivityError, match="KeyError: 'column'") as caught:
            estimate(broken)
        assert isinstance(caught.value.__cause__, KeyError)
        frames = [
            frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.value.__cause__.__traceback__)
        ]
        assert frames[-1] == "broken"
        assert caught.value.failed == 8  # m - k + 1: more would be a waste of time

    def test_infinite_estimates_without_exception(self):
        """The error would not say that values are not finite."""
        with pytest.raises(InfiniteSensitivityError, match="not finite"):
            estimate(lambda x: np.array([x.mean(), np.inf]))

    def test_changing_structure_is_explained(self):
        """An output whose keys depend on the data would be refused without a remedy."""
        with pytest.raises(InfiniteSensitivityError, match="fixed categories"):
            estimate(lambda x: {round(v, 2): 1.0 for v in x})

    def test_interrupt_stops(self):
        """Ctrl-C would count as a failing pair, and the calibration would go on."""

        def interrupted(x):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            estimate(interrupted)

    def test_unreleasable_output_is_refused_at_once(self):
        """A function that returns text would be refused only after m runs."""
        calls = []
        with pytest.raises(OutputError, match="Exponential"):
            estimate(lambda x: calls.append(1) or "yes")
        assert len(calls) == 1

    def test_zero_is_refused_or_floored(self):
        """An estimate of zero would mean no noise."""
        with pytest.raises(ZeroSensitivityError, match="min_sensitivity"):
            estimate(lambda x: 1.0)
        assert estimate(lambda x: 1.0, min_sensitivity=0.5).value == 0.5
        assert estimate(np.mean, min_sensitivity=1e-9).value > 1e-9

    def test_a_floor_does_not_replace_infinity(self):
        """min_sensitivity would be used in place of an estimate that is infinite."""
        with pytest.raises(InfiniteSensitivityError):
            estimate(lambda x: math.nan, min_sensitivity=1.0)


class TestSamplers:
    def test_impure_sampler_is_refused(self):
        """A sampler with randomness of its own would give an estimate that cannot be reproduced."""
        hidden = np.random.default_rng(3)
        with pytest.raises(NotReproducibleError, match="draw"):
            estimate(np.mean, sampler=samplers.from_function(lambda n, rng: hidden.random(n)))

    def test_wrong_count_is_refused(self):
        """A sampler that draws too few records would be reported as a function that fails."""
        with pytest.raises(SamplerError, match="asked for 51 records and drew 50"):
            estimate(np.mean, sampler=samplers.from_function(lambda n, rng: rng.random(n - 1)))

    def test_failing_sampler_is_named(self):
        """A sampler's own exception would be reported as one of the function."""
        with pytest.raises(SamplerError, match="ZeroDivisionError") as caught:
            estimate(np.mean, sampler=samplers.from_function(lambda n, rng: 1 / 0))
        assert isinstance(caught.value.__cause__, ZeroDivisionError)

    def test_aligned_tuples(self):
        """In (X, y) a record would be replaced in one array and not in the other."""

        def xy(n, rng):
            x = rng.random(n)
            return np.column_stack([x, x]), x.tolist()

        def f(data):
            x, y = data
            assert np.array_equal(x[:, 0], y) and np.array_equal(x[:, 1], y)
            return float(np.mean(y))

        found = estimate(f, sampler=samplers.from_function(xy))
        assert found.failed == 0 and found.value > 0


def test_one_buffer_for_all_outputs():
    """A function that returns the same buffer at each call would overwrite its first output."""
    buffer = np.zeros(4)

    def counts(x):
        buffer[:] = np.histogram(x, bins=4, range=(0, 1))[0]
        return buffer

    plain = estimate(lambda x: np.histogram(x, bins=4, range=(0, 1))[0] * 1.0)
    assert np.array_equal(estimate(counts, min_sensitivity=0.01).gaps, plain.gaps)


def test_values_that_are_too_large_or_too_small():
    """Estimates would be so large or small that floats lose digits."""
    with pytest.raises(InfiniteSensitivityError, match="1e300"):
        estimate(lambda x: 1e304 * x.mean())
    assert estimate(lambda x: 1e-310 * x.mean()).value == 1e-300


def test_a_function_that_drifts_is_refused():
    """A function whose globals change while it is calibrated would be another one when it is released."""
    state = {"factor": 1.0}

    def drifting(x):
        state["factor"] += 0.01
        return x.mean() * (1.0 if state["factor"] < 1.2 else state["factor"])

    with pytest.raises(NotReproducibleError, match="end of the calibration"):
        estimate(drifting)


class TestRounding:
    """Libraries that sum in parallel round differently from run to run."""

    def shaky(self, offset, steps=1):
        calls = itertools.count()

        def mean(x):
            value = offset + float(x.mean())
            return value + steps * math.ulp(value) * (next(calls) % 2)

        return mean

    def test_rounding_is_accepted_and_widens_the_estimate(self):
        """A user of such a library would be refused, or get noise for a smaller gap than there is."""
        found, exact = estimate(self.shaky(0.0)), estimate(lambda x: float(x.mean()))
        assert 0 < found.jitter < 1e-15 and exact.jitter == 0
        assert found.value >= exact.value * (1 + 2**-17)
        assert found.value == pytest.approx(exact.value, rel=1e-4)
        assert found.at(0.5).value >= exact.at(0.5).value * (1 + 2**-17)

    def test_rounding_that_is_too_large_for_the_estimate(self):
        """Noise for a gap of 0.02 would not hide what rounding at 1e12 adds to it."""
        with pytest.raises(NotReproducibleError, match=r"rounds differently.*fixed order"):
            estimate(self.shaky(1e12))

    def test_more_than_rounding_is_refused(self):
        """A function with randomness of its own would be accepted as one that rounds."""
        with pytest.raises(NotReproducibleError, match="answer"):
            estimate(self.shaky(0.0, steps=10_000))

    def test_rounding_that_is_too_large_for_a_further_look(self):
        """An estimate that was read later would be smaller than what rounding adds."""

        def mostly_flat(x):
            value = 1e9 + (float(x.mean()) if x[0] > 0.9 else 1e-6 * float(x.mean()))
            return value + math.ulp(value) * (next(calls) % 2)

        calls = itertools.count()
        found = estimate(mostly_flat, n=5, gamma=0.02, plan=plan(0.02, 2000))
        assert found.jitter > 0
        with pytest.raises(NotReproducibleError, match="rounds differently"):
            found.at(0.6)


def test_randomness_for_some_data_only_is_refused():
    """Hidden randomness that affects only the largest gaps would go unnoticed."""

    def sometimes(x):
        return x.mean() + (np.random.default_rng().random() if x.max() > 0.999 else 0.0)

    with pytest.raises(NotReproducibleError):
        estimate(sometimes, plan=plan(0.2, 400))


def test_a_sampler_that_ignores_its_generator_is_refused():
    """All pairs would be the same dataset, which is no sample of P."""
    fixed = samplers.from_function(lambda n, rng: np.random.default_rng(0).random(n))
    with pytest.raises(NotReproducibleError, match="two different generators"):
        estimate(np.mean, sampler=fixed)


def test_a_norm_of_fixed_dimension():
    """A user's norm with one weight per coordinate would be called on vectors of another length."""
    weights = np.array([1.0, 2.0])
    found = estimate(
        lambda x: np.array([x.mean(), x.mean()]), norm=lambda gap: float(np.abs(weights * gap).sum())
    )
    assert np.allclose(found.gaps, 3 * estimate(np.mean).gaps)


def test_nothing_keeps_a_run_alive_after_a_failed_pair():
    """A pair that failed would keep the caller's local variables in memory after the calibration."""

    class Local:
        pass

    objects = [Local()]
    reference = weakref.ref(objects[0])

    def f(x):
        if x[0] > 0.98:
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


class TestLooks:
    def test_another_gamma_evaluates_nothing_and_counts(self):
        """A second look at the same gaps would be free, though it could be chosen for a smaller estimate."""
        calls = []
        found = estimate(lambda x: calls.append(1) or x.mean(), plan=plan(0.2, 300))
        before, runs = found.gamma, len(calls)
        other = found.at(0.3)
        assert len(calls) == runs and other.value == sorted(found.gaps)[other.k - 1]
        assert before == 0.2
        rho, error = band(300)
        assert found.gamma == pytest.approx(0.2 + rho)
        # Chosen after the gaps were drawn: what holds for all order statistics at once.
        assert other.gamma == pytest.approx(1 - other.k / 300 + error + rho + found.rho)
        assert other.gamma > 0.3
        assert found.at(0.3).gamma == other.gamma and found.looks == 2  # the same look again is free
        assert "looks=2" in repr(other)

    def test_dkw_holds_for_all_gamma_at_once(self):
        """With the paper's uniform bound, further looks would raise gamma without need."""
        found = estimate(np.mean, plan=plan(0.2, 300, bound="dkw"))
        looks = [found.at(g) for g in (0.25, 0.3, 0.4)]
        assert [look.gamma for look in looks] == [0.25, 0.3, 0.4]
        assert found.gamma == 0.2
        mixed = found.at(0.3, bound="tolerance")
        rho, error = band(300)
        assert mixed.gamma == pytest.approx(1 - mixed.k / 300 + error + rho) and mixed.gamma > 0.3

    def test_a_look_that_fails_is_a_look(self):
        """A look that ends in an error would not count, though its estimate of zero was seen."""
        found = estimate(lambda x: float(x.max()), plan=plan(0.02, 2000), n=20)
        with pytest.raises(ZeroSensitivityError):
            found.at(0.97, bound="dkw")
        assert found.looks == 2

    def test_marginal_refuses_a_second_look(self):
        """The bound that holds only on average could be chosen after the gaps were seen."""
        found = estimate(np.mean, plan=plan(0.2, 300))
        with pytest.raises(PlanError, match="one look"):
            found.at(0.2, bound="marginal")
        with pytest.raises(PlanError, match="one look"):
            estimate(np.mean, plan=plan(0.2, 300, bound="marginal")).at(0.3)

    def test_an_infeasible_look_is_refused(self):
        """A smaller gamma would be reported than that number of pairs can support."""
        with pytest.raises(PlanError, match="out of reach"):
            estimate(np.mean).at(0.001)


def test_paper_example_exponential_mean():
    """The paper's Example: the mean of Exp(1) has sensitivity log(1/gamma)/n; false alarm < 1e-6.

    With the marginal bound at m = 4999 the estimate is the 4750th of 4999 gaps, each Exp(n)-distributed:
    its law is Beta(4750, 250) mapped through the quantile function, so the test is exact.
    """
    n, gamma, m = 100, 0.05, 4999
    found = estimate(
        np.mean, n=n, sampler=samplers.as_sampler(stats.expon()), plan=plan(gamma, m, bound="marginal")
    )
    assert found.k == 4750
    uniform = 1 - math.exp(-n * found.value)
    assert 1e-6 / 2 < stats.beta(found.k, m - found.k + 1).cdf(uniform) < 1 - 1e-6 / 2
    assert found.value == pytest.approx(math.log(1 / gamma) / n, rel=0.1)


def test_global_versus_sampled_mean_of_the_unit_cube():
    """The appendix's figure: sampled sensitivity is far below the global bound d/n, and grows with d."""
    values = []
    for d in (1, 4, 16):
        found = estimate(lambda x: x.mean(axis=0), n=500, sampler=samplers.uniform(0, 1, size=d), gamma=0.1)
        values.append(found.value)
        assert found.value < d / 500
    assert values[0] < values[1] < values[2] < 0.6 * 16 / 500


def test_large_and_small_n():
    """Datasets of one record, or of a hundred thousand, could not be calibrated."""
    assert estimate(np.mean, n=1).value > 0.1
    assert 0 < estimate(np.mean, n=100_000, gamma=0.5).value < 1e-5


def test_importing_does_not_load_scipy():
    """`import privatize` and a small calibration would wait for scipy and pandas to load."""
    code = (
        "import sys, numpy as np\n"
        "from privatize import privatize, samplers\n"
        "f = privatize(epsilon=1, gamma=.05, sampler=samplers.uniform(0, 1))(np.mean)\n"
        "f(np.ones(100) / 2)\n"
        "assert not [m for m in sys.modules if m.startswith(('scipy', 'pandas', 'torch', 'matplotlib'))]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- many pairs -------------------------------------------------------------------------------


def test_too_many_pairs_are_refused():
    """A plan with too many pairs would run for days, and then run out of memory."""
    many = Plan(m=10**8 + 1, k=10**8, gamma=0.5, rho=0.1, bound="tolerance")
    with pytest.raises(PlanError, match=r"m=100000001 pairs .* at most 100000000 .*larger gamma") as caught:
        estimate(np.mean, plan=many)
    assert caught.value.m == many.m


def test_random_pairs_are_checked():
    """A check of the largest gaps alone would never find gaps that are too small."""

    def low(stack):  # right for 3 of 10 datasets: eight random ones miss that once in 15,000 times
        return np.where(stack[:, 0] > 0.7, stack.mean(axis=1), 0.5)

    found = 0
    for seed in range(10):
        with contextlib.suppress(PairError):
            estimate(np.mean, plan=plan(0.3, 3000), batch=low, seed=seed)
            found += 1
    assert found == 0


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
@pytest.mark.parametrize("scaled", ["total", "relative"])
def test_weights_are_used_in_sums(kind, scaled):
    """Noise is divided by weights, so gaps without them would leave some numbers with too little of it."""
    mechanism = kind(scaled=scaled)
    wide = samplers.uniform([0, 0], [1, 100])
    rest = {"sampler": wide, "norm": mechanism.norm, "scaled": mechanism, "n": 100}
    summed = estimate(additive(lambda x: x), **rest)
    assert min(summed.weights) < 0
    norm = Weighted(mechanism, summed.weights).norm
    rng = streams.stream(1, streams.RECORDS, 0)
    drawn = wide.draw(512, rng)
    expected = [norm((a - b) / 100) for a, b in zip(drawn[0::2], drawn[1::2], strict=True)]
    assert np.allclose(summed.gaps, expected[: summed.m], rtol=1e-9)


def test_a_long_cause_is_cut():
    """A user's error message that has an entire dataset in it would fill the store and the report."""

    def fails(x):
        if x[0] > 0.99:
            raise ValueError("x" * 10_000)
        return x.mean()

    found = estimate_sensitivity(
        fails, n=10, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.2), seed=1, workers="inline"
    )
    assert found.failed and found.cause.startswith("ValueError: xxx") and len(found.cause) < 600


class TestWordsOfOurs:
    @pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="pandas is not installed")
    @pytest.mark.parametrize("name", ["polars", "timeout=", "Sparse", "category of numbers"])
    def test_names_of_columns(self, name):
        """A column whose name is a word that the library looks for, such as polars, changed the estimate."""
        found = []
        for called in ("age", name):
            sampler = samplers.table({called: samplers.uniform(0, 1)}, frame="pandas")
            found.append(
                estimate_sensitivity(
                    lambda d: float(d.iloc[:, 0].mean()),
                    n=20,
                    sampler=sampler,
                    norm="l1",
                    plan=plan(0.2),
                    seed=1,
                    workers="inline",
                ).value
            )
        assert found[0] == found[1]

    def test_messages_of_functions(self):
        """A function whose error message has a word that the library looks for got the wrong advice."""

        def fails(x):
            raise ValueError("retry with timeout=5, not finite, SIGKILL")

        with pytest.raises(InfiniteSensitivityError) as caught:
            estimate_sensitivity(
                fails,
                n=20,
                sampler=samplers.uniform(0, 1),
                norm="l1",
                plan=plan(0.2),
                seed=1,
                workers="inline",
            )
        assert "Make the function work on all data" in str(caught.value)


class TestAverageGamma:
    """The share beyond the estimate on average over calibrations, beside gamma."""

    @staticmethod
    def estimate(**rest):
        facts = {"n": 3, "sampler": samplers.uniform(0, 1), "norm": "l1", "seed": 1, "workers": "inline"}
        return estimate_sensitivity(np.mean, **(facts | {"plan": plan(0.05)} | rest))

    def test_golden(self):
        """A user who adds up many answers would get another sum than the one that is proven."""
        found = self.estimate()
        assert (found.m, found.k) == (557, 544)
        exact = 1 - Fraction(544, 558)
        assert exact <= Fraction(found.average_gamma) <= exact * (1 + Fraction(1, 2**50))
        assert "average_gamma=0.0251" in repr(found)
        assert "0.0251 at most" in found._repr_html_()

    @for_each("bound", ["tolerance", "dkw", "marginal"])
    @for_each("gamma", [0.5, 0.1, 0.03])
    def test_not_above_gamma(self, bound, gamma):
        """A user would be shown an average that is worse than what holds for nearly every calibration."""
        found = self.estimate(plan=plan(gamma, bound=bound))
        assert 1 - Fraction(found.k, found.m + 1) <= Fraction(found.average_gamma)
        assert found.average_gamma <= found.gamma * (1 + 1e-15)

    def test_further_looks(self):
        """A user who chose a plan after seeing the gaps would see an average that does not hold for it."""
        found = self.estimate()
        other = found.at(0.1)
        assert other.average_gamma == other.gamma
        assert found.average_gamma == found.gamma > 0.05

    def test_shown_in_a_release(self):
        """A user would find the average only in the estimate, and not in a release."""
        private = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1), seed=1, store=None)(
            np.mean
        )
        made = private.release(np.ones(20))
        assert made.average_gamma == private.estimate(20).average_gamma
        assert "average_gamma=0.0251" in repr(made)
        assert "gamma=0.0251" in made._repr_html_()
