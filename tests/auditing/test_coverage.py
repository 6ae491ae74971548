"""Coverage: fresh pairs are counted exactly, also under other distributions, and losses are what they say."""

import decimal
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privatize import Gaussian, samplers
from privatize.auditing.coverage import divergence, losses
from privatize.function.settings import Settings
from tests.auditing.audited import private, quick
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)


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


def test_fresh_pairs_are_not_those_of_the_calibration():
    """A user who passes one seed everywhere would audit an estimate with the very gaps that made it."""
    mean = private(seed=2)
    found = quick(mean, seed=2, releases=0)
    calibrated = mean.estimate(20)
    losses = calibrated.gaps / calibrated.value
    assert not np.isin(found.coverage.losses, losses).any()


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
