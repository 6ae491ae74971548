"""The sensitivity sampler measures what the paper's Algorithm 1 measures, and refuses doubtful results."""

import importlib.util
import math
import subprocess
import sys
import traceback
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privatize import Gaussian, Laplace, additive, estimate_sensitivity, plan, privatize, samplers
from privatize.calibration import streams
from privatize.errors import (
    InfiniteSensitivityError,
    NotReproducibleError,
    PlanError,
    SamplerError,
    SettingsError,
    ZeroSensitivityError,
)
from privatize.mechanisms.weighted import Weighted
from privatize.planning.dkw import band
from privatize.planning.plan import Plan
from tests.calibration.estimates import estimate
from tests.cases import for_each


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


@for_each("bad", [0, -1, 1.5, "10", True, None])
def test_n_must_be_a_count(bad):
    """A wrong n is refused with its value."""
    with pytest.raises(SettingsError, match="n="):
        estimate(np.mean, n=bad)


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

    def test_interrupt_stops(self):
        """Ctrl-C would count as a failing pair, and the calibration would go on."""

        def interrupted(x):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            estimate(interrupted)

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


def test_too_many_pairs_are_refused():
    """A plan with too many pairs would run for days, and then run out of memory."""
    many = Plan(m=10**8 + 1, k=10**8, gamma=0.5, rho=0.1, bound="tolerance")
    with pytest.raises(PlanError, match=r"m=100000001 pairs .* at most 100000000 .*larger gamma") as caught:
        estimate(np.mean, plan=many)
    assert caught.value.m == many.m


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
@pytest.mark.parametrize("scaled", ["total", "relative"])
def test_weights_are_used_in_sums(kind, scaled):
    """Noise is divided by weights, so gaps without them would leave some numbers with too little of it."""
    mechanism = kind(scaled=scaled)
    wide = samplers.uniform([0, 0], [1, 100])
    rest = {"sampler": wide, "norm": mechanism.norm, "scaled": mechanism, "n": 100}
    summed = estimate(additive(lambda x: x), **rest)
    assert min(summed.shape.powers) < 0
    norm = Weighted(mechanism, summed.shape).norm
    rng = streams.stream(1, streams.RECORDS, 0)
    drawn = wide.draw(512, rng)
    expected = [norm((a - b) / 100) for a, b in zip(drawn[0::2], drawn[1::2], strict=True)]
    assert np.allclose(summed.gaps, expected[: summed.m], rtol=1e-9)


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
