"""An audit measures what it says, on public data, and finds broken promises without false alarms."""

import contextlib
import dataclasses
import decimal
import math
import pickle
import subprocess
import sys
import textwrap
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privatize import Bernstein, Exponential, Gaussian, audit, plan, privatize, samplers
from privatize.auditing.coverage import cover, divergence, losses
from privatize.auditing.distinguishing import tell_apart
from privatize.cli.parser import main
from privatize.errors import ArgumentError, AuditError, PrivatizeError, SettingsError
from privatize.function.settings import Settings
from privatize.planning.confidence import above, clopper_pearson, high_share, low_share
from privatize.testing import assert_private, insecure_noise
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)


def private(function=np.mean, **settings):
    chosen = {"epsilon": 1, "gamma": 0.1, "sampler": UNIT, "seed": 1, "store": None}
    return privatize(**(chosen | settings))(function)


def quick(function, n=20, *args, **rest):
    """Audit with few pairs and seeded noise."""
    chosen = {"pairs": 200, "releases": 200, "seed": 2}
    with warnings.catch_warnings(action="ignore"), insecure_noise(3):
        return audit(function, n, *args, **(chosen | rest))


def forged(function, value):
    """Return the function with a made-up estimate."""
    made = function.calibrator.recall

    def recall(asked):
        found = made(asked)
        return dataclasses.replace(found, sensitivity=dataclasses.replace(found.sensitivity, value=value))

    function.calibrator.recall = recall
    return function


# --- intervals -------------------------------------------------------------------------------------


@for_each("alpha", [0.5, 0.05, 0.005, 1e-6])
@for_each(("count", "total"), [(0, 1), (1, 1), (0, 100), (3, 100), (100, 100), (57, 1000), (4, 10**6)])
def test_intervals_are_those_of_scipy(count, total, alpha):
    """A user would read an interval that is not the one it is named after."""
    known = stats.binomtest(count, total).proportion_ci(1 - alpha, method="exact")
    assert np.allclose(clopper_pearson(count, total, alpha), known, rtol=1e-9)
    greater = stats.binomtest(count, total, alternative="greater").proportion_ci(1 - alpha, method="exact")
    less = stats.binomtest(count, total, alternative="less").proportion_ci(1 - alpha, method="exact")
    assert low_share(count, total, alpha) == pytest.approx(greater.low, rel=1e-9)
    assert high_share(count, total, alpha) == pytest.approx(less.high, rel=1e-9)


@for_each("share", [0.0, 1e-4, 0.05, 0.5, 0.99, 1.0])
@for_each("total", [1, 7, 60, 500])
def test_intervals_cover_exactly(share, total):
    """A user's interval would miss the truth more often than its confidence allows, summed exactly."""
    alpha = 0.05
    weights = stats.binom.pmf(np.arange(total + 1), total, share)
    found = [clopper_pearson(count, total, alpha) for count in range(total + 1)]
    missed = sum(w for w, (low, high) in zip(weights, found, strict=True) if not low <= share <= high)
    too_low = sum(
        w for w, c in zip(weights, range(total + 1), strict=True) if low_share(c, total, alpha) > share
    )
    assert missed <= alpha and too_low <= alpha


@pytest.mark.parametrize(("m", "k"), [(9, 9), (79, 72), (200, 150)])
def test_above_is_what_a_calibration_and_fresh_gaps_do(m, k):
    """With bound='marginal', audits would fail too often, or never (false alarm 1e-6)."""
    rng = np.random.default_rng(4)
    estimate = np.partition(rng.random((20_000, m)), k - 1, axis=1)[:, k - 1]
    beyond = rng.binomial(100, 1 - estimate)
    for count in (1, 5, 20, 40):
        expected = above(count, 100, m - k + 1, k)
        seen = int((beyond >= count).sum())
        assert stats.binom.cdf(seen, 20_000, expected) > 1e-6
        assert stats.binom.sf(seen - 1, 20_000, expected) > 1e-6
    assert above(0, 100, 1, 9) == 1


def test_the_marginal_test_has_its_false_alarm_rate():
    """With bound='marginal', kept promises would fail more often than alpha (summed over all counts)."""
    p = plan(0.1, 219, bound="marginal")
    a, b, count = p.m - p.k + 1, p.k, 500
    weights = stats.betabinom.pmf(np.arange(count + 1), count, a, b)
    failed = sum(w for c, w in enumerate(weights) if above(c, count, a, b) <= 0.005)
    assert 0.0005 < failed <= 0.005


# --- divergence ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q", "known"),
    [
        (samplers.normal(0, 1), samplers.normal(1, 1), 0.5),
        (samplers.normal(0, 1), samplers.normal(0, 2), math.log(2) + 1 / 8 - 0.5),
        (samplers.normal([0, 0], 1), samplers.normal([1, 1], 1), 1.0),
        (samplers.uniform(0, 1), samplers.uniform(0, 2), math.log(2)),
        (samplers.uniform(0, 1, size=3), samplers.uniform(0, 2, size=3), 3 * math.log(2)),
    ],
)
def test_divergence_is_the_known_one(p, q, known):
    """A user would be shown a distance between distributions that is not theirs."""
    assert divergence(p, q) == pytest.approx(known, rel=1e-12)


def test_an_unknown_divergence_promises_nothing():
    """A user would read a gamma that nothing supports, without a warning."""
    found = quick(private(), releases=0, under=[stats.norm(0.5, 1), samplers.normal(0.5, 1)])
    assert found.under[0].divergence is None and found.under[0].transferred is None
    assert found.under[1].transferred > found.under[1].gamma
    assert str(found).count("has no closed form here, so nothing is certain there") == 1


@for_each("step", [1e-4, 1e-7, 1e-8, 3e-9, 1e-12, 1e-15])
@for_each("sign", [1, -1])
@for_each("at", [0.0, 1.0, 1e6])
@for_each("scale", [1.0, 1e-9, 1e9])
def test_a_small_divergence_is_not_rounded_away(step, sign, at, scale):
    """A user would read that a promise under P holds unchanged under a distribution that is not P."""
    wide = scale * (1 + sign * step)
    more = Fraction(scale) / Fraction(wide) - 1
    with decimal.localcontext(prec=80):
        ratio = decimal.Decimal(more.numerator) / decimal.Decimal(more.denominator)
        known = float(ratio + ratio**2 / 2 - (1 + ratio).ln())
    found = divergence(samplers.normal(at, scale), samplers.normal(at, wide))
    assert known * (1 - 1e-15) <= found <= known * 1.001 + 2e-15 * step
    if sign == 1:
        found = divergence(samplers.uniform(0, scale), samplers.uniform(0, wide))
        assert found == pytest.approx(float(Fraction(wide) / Fraction(scale) - 1), rel=step + 1e-14, abs=0)


def test_divergence_between_a_uniform_and_a_normal_distribution():
    """A user would be shown a finite distance where P draws what the other cannot, or a wrong one."""
    known = 0.5 * math.log(2 * math.pi) + 1 / 24
    assert divergence(UNIT, samplers.normal(0.5, 1)) == pytest.approx(known, rel=1e-13)
    assert divergence(samplers.normal(0, 1), UNIT) == math.inf
    assert divergence(samplers.uniform(0, 1 + 1e-15), UNIT) == math.inf


def test_a_transferred_gamma_comes_from_the_functions_own_p():
    """If sampler= and under= are the same, the gamma of P would be stated for a distribution far from P."""
    mean = private(sampler=samplers.normal(0, 1))
    far = samplers.normal(0, 10)
    own = quick(mean, releases=0, under=[far, stats.norm(0, 10)]).under
    other = quick(mean, releases=0, sampler=far, under=[far, stats.norm(0, 10)]).under
    assert [each.divergence for each in other] == [each.divergence for each in own]
    assert other[0].divergence == divergence(samplers.normal(0, 1), far) > 1
    assert other[0].transferred == own[0].transferred > 0.9


def test_divergence_is_none_where_it_is_not_known():
    """A user would read a number that means nothing."""
    coin = samplers.from_function(lambda n, rng: rng.integers(0, 2, n).astype(float))
    words = samplers.from_function(lambda n, rng: ["a"] * n)
    assert divergence(UNIT, UNIT) == 0
    assert divergence(coin, UNIT) is None and divergence(UNIT, coin) is None
    assert divergence(UNIT, words) is None
    assert divergence(UNIT, samplers.uniform(0, 1, size=2)) is None
    bounded = [samplers.normal(np.zeros(11), 1, low=-1, high=high) for high in (1, 2)]
    assert divergence(*bounded) is None
    shared = samplers.marginal(samplers.normal(0, 1), lambda t, rng: rng.normal(t), per="dataset")
    assert divergence(shared, shared.clip(-9, 9)) is None


def test_an_infinite_divergence_is_not_shown_as_finite():
    """A user would be given a gamma by a proposition that does not apply."""
    assert divergence(UNIT, samplers.uniform(0, 0.99)) == math.inf


# --- losses ----------------------------------------------------------------------------------------


def test_losses_of_laplace_noise():
    """A user's profile would show another epsilon than epsilon G / sensitivity."""
    settings = Settings(mechanism="laplace", epsilon=0.5, gamma=0.1, sampler=UNIT)
    found = losses(np.array([0.0, 1.0, 2.0, 3.0, math.inf]), 2.0, settings)
    assert found.tolist() == [0.0, 0.25, 0.5, 0.75, math.inf]


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (10.0, 0.01)])
def test_losses_of_normal_noise_solve_for_the_scale(epsilon, delta):
    """A user's profile would show an epsilon for which this noise is not the right one."""
    mechanism = Gaussian()
    settings = Settings(mechanism=mechanism, epsilon=epsilon, delta=delta, gamma=0.1, sampler=UNIT)
    gaps = np.array([0.3, 1.0, 1.7, math.inf])
    found = losses(gaps, 1.0, settings)
    assert found[1] == pytest.approx(epsilon, rel=5e-3) and found[3] == math.inf
    for gap, loss in zip(gaps[:3], found[:3], strict=True):
        if loss > 0:
            needed = mechanism.scale(gap, loss, delta)
            assert needed == pytest.approx(mechanism.scale(1.0, epsilon, delta), rel=5e-3)


def test_coverage_reads_its_own_losses():
    """A user would be told another share for an epsilon than the pairs show."""
    found = quick(private(), releases=0).coverage
    assert len(found.losses) == found.pairs == 200
    assert (np.diff(found.losses) >= 0).all()
    assert found.at(1.0) == found.share == found.beyond / 200
    assert found.at(0.0) == 1 and found.at(math.inf) == 0
    assert found.low <= found.share <= found.high


# --- fresh pairs -----------------------------------------------------------------------------------


def test_fresh_pairs_are_not_those_of_the_calibration():
    """A user who passes one seed everywhere would audit an estimate with the very gaps that made it."""
    mean = private(seed=2)
    found = quick(mean, seed=2, releases=0)
    calibrated = mean.estimate(20)
    losses = calibrated.gaps / calibrated.value
    assert not np.isin(found.coverage.losses, losses).any()


def test_the_same_seed_gives_the_same_audit():
    """A user could not reproduce a verdict, or would get the same one whatever the seed."""
    mean = private()
    one, again, other = (quick(mean, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.coverage.losses, again.coverage.losses)
    assert str(one) == str(again) and one.told == again.told
    assert not np.array_equal(one.coverage.losses, other.coverage.losses)
    fresh = audit(mean, 20, pairs=50, releases=0)
    assert fresh.seed != audit(mean, 20, pairs=50, releases=0).seed
    assert np.array_equal(
        audit(mean, 20, pairs=50, releases=0, seed=fresh.seed).coverage.losses, fresh.coverage.losses
    )


def test_workers_measure_the_same():
    """A user's verdict would depend on where the pairs were evaluated."""
    mean = private()
    inline, processes = (quick(mean, releases=0, workers=w, progress=False) for w in ("inline", 2))
    assert np.array_equal(inline.coverage.losses, processes.coverage.losses)


def test_data_from_other_distributions_is_clipped_first():
    """A user would be told of failures that clipping private records prevents."""
    wide = [samplers.uniform(0, 3)]
    clipped, bare = (
        quick(private().replace(domain=domain), releases=0, under=wide).under[0]
        for domain in ("clip", "as-is")
    )
    assert clipped.losses[-1] <= 1.3 < bare.losses[-1]
    assert clipped.beyond < bare.beyond


def test_other_distributions_have_pairs_of_their_own():
    """A user would compare distributions on the same random numbers, or see a claim made for both."""
    mean = private(domain="as-is")
    found = quick(mean, releases=0, under=[samplers.uniform(0, 3), UNIT, stats.norm(0.5, 0.2)])
    wide, same, normal = found.under
    assert wide.beyond > 50 and wide.holds and found.holds
    assert wide.divergence == pytest.approx(math.log(3), abs=0.2) and 0.999 < wide.transferred <= 1
    assert same.divergence == 0 and same.transferred == found.gamma
    assert not np.array_equal(same.losses, found.coverage.losses)
    assert normal.pairs == 200 and "norm" in normal.sampler


def test_another_distribution_in_place_of_p():
    """A user who doubts P could not measure the promise under the distribution that they believe in."""
    found = quick(private(domain="as-is"), releases=0, sampler=samplers.uniform(0, 3))
    assert not found.holds and found.coverage.beyond > 50 and "uniform(0, 3)" in found.coverage.sampler


# --- what can be audited ---------------------------------------------------------------------------


@dataclasses.dataclass
class Summary:
    total: float
    count: int


OUTPUTS = {
    "int": lambda x: int((x > 0.5).sum()),
    "dict": lambda x: {"mean": x.mean(), "count": int((x > 0.5).sum())},
    "dataclass": lambda x: Summary(float(x.sum()), int((x > 0.5).sum())),
    "array": lambda x: np.histogram(x, 3, (0, 1))[0],
    "list": lambda x: [float(x.mean()), (float(x.max()),)],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_of_every_kind(name):
    """A user whose function returns this could not audit it."""
    found = quick(private(OUTPUTS[name]))
    assert found.holds and len(found.told) == 2 and found.n == 20


MECHANISMS = {
    "gaussian": (np.mean, {"mechanism": "gaussian", "delta": 1e-6}),
    "exponential": (lambda x, r: -abs(float((x > 0.5).sum()) - r), {"mechanism": Exponential(range(20))}),
    "bernstein": (lambda x, at: np.mean(x[:, None] <= at, axis=0), {"mechanism": Bernstein(3)}),
    "bernstein in two dimensions": (
        lambda x: np.outer(np.arange(3) / 2, np.arange(3) / 2) * x.mean(),
        {"mechanism": Bernstein(2, dimension=2)},
    ),
    "coins": (lambda x, rng: float(x[rng.integers(len(x), size=5)].mean()), {"coins": "rng"}),
    "a global generator": (lambda x: float(np.random.choice(x, 5).mean()), {}),
    "marginal": (np.mean, {"bound": "marginal"}),
    "dkw": (np.mean, {"bound": "dkw"}),
    "min_sensitivity": (np.mean, {"min_sensitivity": 3.0}),
}


@for_each("name", MECHANISMS)
def test_mechanisms_and_settings_of_every_kind(name):
    """A user with these settings could not audit."""
    function, settings = MECHANISMS[name]
    found = quick(private(function, **settings))
    assert found.holds and len(found.told) == 2 and "contradicts" in str(found)


def test_the_classic_gaussian():
    """A user of the paper's own sigma could not audit."""
    assert quick(private(mechanism=Gaussian("classic"), epsilon=0.5, delta=1e-6)).holds


def test_other_arguments():
    """A user whose function has other arguments would audit another function, or none."""

    def quantile(x, q, *, factor=1.0):
        return factor * np.quantile(x, q)

    made = private(quantile)
    median, large = quick(made, 20, 0.5), quick(made, 20, 0.5, factor=10.0)
    assert large.sensitivity == pytest.approx(10 * median.sensitivity)
    assert large.coverage.beyond == median.coverage.beyond
    with pytest.raises(ArgumentError):
        quick(made)
    with pytest.raises(ArgumentError):
        quick(made, 20, 0.5, scale=1)


def test_methods_and_several_datasets():
    """A user whose function is a method, or takes aligned arrays, could not audit it."""

    class Model:
        @privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1, store=None, version="1")
        def mean(self, x):
            return x.mean()

    assert quick(Model().mean).function == "mean"

    def two(n, rng):
        return rng.random(n), rng.random(n)

    slope = private(lambda x, y: float(x @ y / (1 + x @ x)), data=("x", "y"), sampler=two)
    assert quick(slope).holds


def test_pairs_that_fail_are_beyond():
    """A user whose function fails on some data would be told that these neighbours are protected."""

    def seldom(x):
        if x.max() > 0.999:
            raise ValueError("too large")
        return x.mean()

    found = quick(private(seldom, gamma=0.2), pairs=1000)
    infinite = int(np.isinf(found.coverage.losses).sum())
    assert 0 < infinite <= found.coverage.beyond and found.coverage.at(1e300) == infinite / 1000
    assert "inf" in str(found) and found.html() and all(math.isfinite(t.gap) for t in found.told)
    # Under a distribution where it always fails, nothing is left to tell apart.
    none = quick(private(seldom, gamma=0.2), sampler=samplers.uniform(1, 2))
    assert none.coverage.share == 1 and none.told == () and not none.holds and "inf" in none.html()


def test_without_releases_only_coverage_is_measured():
    """A user in a hurry would wait for releases that they did not ask for."""
    mean = private()
    found = quick(mean, releases=0)
    assert found.told == () and found.holds and "telling" not in str(found)
    assert not quick(forged(mean, 1e-6), releases=0).holds


def test_the_largest_gaps_within_the_estimate_are_told_apart():
    """A user's mechanism would be tested on neighbours that differ less than it must hide."""
    found = quick(private(), releases=400)
    within = found.coverage.losses[found.coverage.losses <= found.epsilon]
    assert [t.gap / found.sensitivity * found.epsilon for t in found.told] == pytest.approx(
        within[-2:].tolist()
    )


# --- refusals --------------------------------------------------------------------------------------


@for_each(
    ("bad", "text"),
    [
        ({"n": 0}, "n"),
        ({"n": -1}, "n"),
        ({"n": 2.5}, "n"),
        ({"n": True}, "n"),
        ({"n": "20"}, "n"),
        ({"pairs": 0}, "pairs=0"),
        ({"pairs": 1.5}, "pairs=1.5"),
        ({"pairs": True}, "pairs=True"),
        ({"releases": -1}, "releases=-1"),
        ({"releases": 10.0}, "releases=10.0"),
        ({"confidence": 2}, "confidence=2"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"confidence": 0.4}, "confidence=0.4"),
        ({"confidence": math.nan}, "confidence=nan"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"sampler": 3}, "sampler"),
        ({"under": [3]}, "3"),
        ({"workers": -1}, "workers"),
    ],
)
def test_bad_settings_are_refused(bad, text):
    """A user would get an audit of something else than they asked for, or an obscure error."""
    with pytest.raises(SettingsError, match=text):
        audit(private(), **({"n": 20, "pairs": 20, "releases": 0} | bad))


@pytest.mark.parametrize("raw", [np.mean, None, 3, "mean"])
def test_raw_functions_are_refused(raw):
    """A user would audit a function that promises nothing."""
    with pytest.raises(SettingsError, match="privatize"):
        audit(raw, 20)


def test_private_data_in_place_of_n_is_refused_and_not_shown():
    """A user who passes the dataset by habit would see it in the error."""
    with pytest.raises(SettingsError) as caught:
        audit(private(), np.array([123456.0]))
    assert "123456" not in str(caught.value)
    with pytest.raises(PrivatizeError) as caught:
        audit(private(), 20, np.array([123456.0]), pairs=20, releases=0)
    assert "123456" not in str(caught.value)


@pytest.mark.parametrize("releases", [1, 2, 3, 10, 39])
def test_few_releases_pass_or_are_refused(releases):
    """A user who asks for few releases would get numpy's error about quantiles."""
    with contextlib.suppress(SettingsError):
        assert quick(private(), releases=releases).holds


# --- telling apart ---------------------------------------------------------------------------------


def distinguish(release, a=0.0, b=1.0, **rest):
    chosen = {"gap": 1.0, "epsilon": 1.0, "delta": 0.0, "releases": 4000, "alpha": 0.005}

    def on_grid(vector):  # or the last digits would distinguish releases
        return np.ldexp(np.rint(np.ldexp(release(vector), 20)), -20)

    return tell_apart(on_grid, np.atleast_1d(a), np.atleast_1d(b), **(chosen | rest))


def test_bounds_are_below_the_truth_and_near_it():
    """A user's bound would be wrong, or so far below that nothing is ever found."""
    rng = np.random.default_rng(1)
    found = distinguish(lambda v: v + rng.laplace(0, 1, 1), releases=20_000)
    assert 0.8 < found.low < 1 and found.shape == "Laplace" and 0.92 < found.shape_low < 1 and found.holds
    found = distinguish(lambda v: v + rng.laplace(0, 0.25, 1), releases=20_000)
    assert 3 < found.low < 4 and 3.7 < found.shape_low < 4 and not found.holds
    found = distinguish(lambda v: v + rng.normal(0, 1, 1), delta=0.01, releases=20_000)
    delta = stats.norm.cdf(-0.5) - math.e * stats.norm.cdf(-1.5)
    assert found.shape == "normal" and 0.8 * delta < found.shape_low < delta and not found.holds


def test_other_noise_has_no_shape():
    """A user's integers, choices or heavy tails would be judged by a distribution that is not theirs."""
    rng = np.random.default_rng(2)
    for release in (
        lambda v: v + rng.integers(-50, 50, 1),
        lambda v: v + rng.standard_cauchy(1),
        lambda v: v + rng.uniform(-5, 5, 1),
        lambda v: np.zeros(3),
    ):
        found = distinguish(release, releases=2000)
        assert found.shape is None and found.shape_low is None
    assert distinguish(lambda v: v + rng.laplace(0, 1, 1), releases=150).shape is None


def test_equal_neighbours_are_not_told_apart():
    """A user would be warned about neighbours that have one and the same answer."""
    rng = np.random.default_rng(3)
    for draw in (rng.laplace, rng.normal):
        for delta in (0.0, 1e-6):
            found = distinguish(
                lambda v, draw=draw: v + draw(0, 1, 1), 0.0, 0.0, gap=0.0, delta=delta, releases=1000
            )
            assert found.holds and found.low <= 0.5


def test_a_verdict_says_what_was_found():
    """A user would not learn how the neighbours were told apart."""
    rng = np.random.default_rng(4)
    assert "the same in every release" in distinguish(lambda v: v).verdict
    coin = distinguish(lambda v: np.where(rng.random(1) < 0.9, v, 1 - v))
    assert "told apart by the answer itself" in coin.verdict
    assert "looks Laplace" in distinguish(lambda v: v + rng.laplace(0, 0.85, 1), releases=5000).verdict
    assert "show epsilon >= " in distinguish(lambda v: v + rng.laplace(0, 2, 1)).verdict


def test_no_noise_at_all_is_flagged_for_a_large_epsilon():
    """A user with epsilon=10 would be told that answers without any noise are private."""
    assert not distinguish(lambda v: v, epsilon=10.0).holds


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_releases_that_are_not_finite(value):
    """A user whose mechanism overflows would get a warning about a cast, and no verdict."""
    rng = np.random.default_rng(5)
    found = distinguish(lambda v: v + (value if rng.random() < 0.1 else rng.laplace(0, 1, 1)))
    assert found.releases == 4000


# --- verdicts --------------------------------------------------------------------------------------


def test_a_broken_promise_raises_an_assertion_error_that_pickles():
    """A user's test would pass, or its failure be lost between processes."""
    mean = private()
    found = quick(forged(mean, mean.estimate(20).value / 3))
    assert not found.holds and "broken" in found.verdict and "forget()" in str(found)
    with pytest.raises(AuditError) as caught:
        found.assert_holds()
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value, PrivatizeError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is AuditError and str(again) == str(caught.value) == str(found)
    assert pickle.loads(pickle.dumps(found)).verdict == found.verdict
    assert quick(private()).assert_holds() is None


def test_a_failed_coverage_states_more_than_gamma():
    """A user would read "at least 0.0497, and gamma=0.05 is claimed", which contradicts nothing."""
    mean = private(gamma=0.05)
    sensitivity, count = mean.estimate(20), 1000
    for beyond in range(50, 100):
        gaps = np.where(np.arange(count) < beyond, 2.0, 0.5) * sensitivity.value
        found = cover("P", gaps, sensitivity, mean.settings, 0.005, claimed=True)
        assert found.beyond == beyond and (found.holds or found.least > found.gamma)


def test_assert_private_is_deterministic():
    """A user's suite would fail on some days only."""
    mean = private()
    one, again = (assert_private(mean, 20, pairs=100, releases=400) for _ in range(2))
    assert str(one) == str(again) and one.told == again.told
    other = assert_private(mean, 20, pairs=100, releases=400, seed=1)
    assert str(other) != str(one)
    with pytest.raises(AssertionError, match="broken"):
        assert_private(forged(mean, 1e-6), 20, pairs=100, releases=400)


def test_assert_private_leaves_noise_unseeded_afterwards():
    """A user's releases after a test would be predictable."""
    mean = private()
    answers = []
    for _ in range(2):
        assert_private(mean, 20, pairs=20, releases=0)
        answers.append(mean(np.ones(20)))
    assert answers[0] != answers[1]


def test_an_audit_neither_spends_nor_changes_the_estimate():
    """A user who audits often would pay for it in gamma, or get another estimate."""
    mean = private()
    before = mean.estimate(20)
    for seed in range(3):
        quick(mean, seed=seed, releases=0)
    after = mean.estimate(20)
    assert after.value == before.value and after.gamma == before.gamma == 0.1


# --- the command line ------------------------------------------------------------------------------

MODULE = """
    import numpy as np
    from pathlib import Path
    from privatize import privatize, samplers

    class Secret:
        def __getattr__(self, name):
            Path("touched").write_text(name)

    data = Secret()  # nothing may read it

    @privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), seed=1, store=None)
    def kept(x):
        return x.mean()

    broken = kept.replace(seed=2)
    class _Forged:
        def template(self, definition):
            return kept.calibrator.template(definition)

        def recall(self, asked):
            import dataclasses
            found = kept.calibrator.recall(asked)
            forged = dataclasses.replace(found.sensitivity, value=1e-6)
            return dataclasses.replace(found, sensitivity=forged)

    broken.calibrator = _Forged()

    def raw(x):
        return x.mean()

    class inner:
        deep = kept.replace(gamma=0.2)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "audited.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    yield tmp_path
    sys.modules.pop("audited", None)


def test_command_line(module, capsys):
    """A user's build could not tell a promise that is kept from one that is not."""
    few = ["-n", "20", "--pairs", "100", "--releases", "200", "--seed", "2"]
    assert main(["audit", "audited:kept", *few]) == 0
    assert "nothing that was measured contradicts" in capsys.readouterr().out
    assert main(["audit", "audited:broken", *few, "--report", "page.html"]) == 1
    assert "promise is broken" in capsys.readouterr().out
    assert "promise is broken" in (module / "page.html").read_text(encoding="utf-8")
    assert main(["audit", "audited:inner.deep", *few]) == 0
    assert not (module / "touched").exists()


@pytest.mark.parametrize(
    "given",
    [
        ["audited:raw"],
        ["audited:nothing"],
        ["audited"],
        ["audited:"],
        ["no_such_module:f"],
        ["audited:kept", "--pairs", "0"],
        ["audited:kept", "--releases", "-1"],
        ["audited:kept", "--confidence", "2"],
        ["audited:kept", "--seed", "-1"],
        ["audited:kept", "-n", "0"],
        ["audited:kept", "--pairs", "20", "--releases", "0", "--report", "no/such/folder.html"],
    ],
)
def test_command_line_errors_are_one_line(module, capsys, given):
    """A user's typing error would look like a broken promise (code 1), or like a crash."""
    assert main(["audit", "-n", "20", *given]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("privatize: ") and shown.count("\n") == 1


def test_command_line_in_a_process_of_its_own(module):
    """A user could not run it from a folder with a module in it, as the help says."""
    command = [sys.executable, "-m", "privatize", "audit", "audited:kept", "-n", "100"]
    done = subprocess.run(
        [*command, "--pairs", "100", "--releases", "200"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stderr == "" and "audit of kept, n=100" in done.stdout


def test_one_response_is_not_an_answer_without_noise():
    """A user of the exponential mechanism, whose answers repeat by design, would be told it is broken."""
    f = privatize(
        mechanism=Exponential(responses=["only"]),
        epsilon=1,
        gamma=0.2,
        sampler=UNIT,
        seed=1,
        store=None,
        min_sensitivity=0.1,
    )(lambda x: np.array([x.mean()]))
    assert audit(f, 20, pairs=50, releases=200, seed=1, workers="inline").holds


def test_a_proven_bound_is_audited():
    """Somebody who proved a bound could not check that the noise fits it."""
    proven = privatize(epsilon=1, sensitivity=lambda n: 1 / n, sampler=UNIT, seed=1, store=None)(np.mean)
    found = audit(proven, 50, pairs=200, releases=500, seed=2, workers="inline")
    assert found.holds and found.gamma == 0 and found.coverage.beyond == 0 and found.rho == 0
    assert found.told and "gamma=0" in str(found) and found._repr_html_()
