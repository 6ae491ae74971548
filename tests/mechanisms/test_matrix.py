"""Correlated noise: the transformed answer is exact, gets the same noise for each number, and goes back."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privatize import Gaussian, audit, samplers
from privatize.errors import SettingsError
from privatize.mechanisms.base import l2
from privatize.mechanisms.matrix import MatrixWeighted, _exact_in_python, _exact_product, _rounding
from privatize.mechanisms.shapes import Shape
from tests.mechanisms.scaled import private
from tests.mechanisms.test_shapes import covariance

FALSE_ALARM = 1e-6


def exact_gap(shape, one, other, exponent):
    """Return the squared L2 distance of two transformed answers, without any rounding after the grid."""
    both = (_exact_product(each, shape, exponent) for each in (one, other))
    return sum((a - b) ** 2 for a, b in zip(*both, strict=True)) * Fraction(2) ** (
        2 * (exponent - shape.bits)
    )


@pytest.mark.parametrize("d", [2, 17, 128])
def test_the_product_is_exact(d):
    """A float product differs between machines, by more than a gap if the answer is large beside it."""
    rng = np.random.default_rng(d)
    shape = Shape.matrix(covariance(d, d))
    units = np.sqrt(np.diag(covariance(d, d)))
    for size, exponent in ((1.0, -40), (1e6, -40), (1e12, -30), (1e300, -60), (1e-300, -60), (1.0, -900)):
        vector = rng.normal(size=d) * units * size
        assert _exact_product(vector, shape, exponent) == _exact_in_python(vector, shape, exponent)
    assert _exact_product(np.zeros(d), shape, 0) == [0] * d


@pytest.mark.parametrize("seed", range(20))
def test_the_sensitivity_covers_what_rounding_adds(seed):
    """Two outputs whose measured gap is just the estimate must be protected, however large they are."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 40))
    wanted = covariance(d, seed, flat=10.0 ** rng.uniform(-3, 0))
    shape, units = Shape.matrix(wanted), np.sqrt(np.diag(wanted))
    mechanism = MatrixWeighted(Gaussian(), shape)
    for size in (0.0, 1.0, 1e9, 1e15):
        one = rng.normal(size=d) * units * size
        other = one + rng.normal(size=d) * units * 10.0 ** rng.uniform(-3, 3)
        with np.errstate(all="ignore"):
            measured = mechanism.norm(one - other)
        if measured:
            exponent, enlarged = _rounding(shape, measured)
            assert exact_gap(shape, one, other, exponent) <= Fraction(enlarged) ** 2
            assert enlarged <= measured * (1 + 2.0**-18)


def test_a_gap_is_measured_as_it_is_defined():
    """Gaps that were stored earlier would belong to another norm than new ones."""
    rng = np.random.default_rng(5)
    units = np.array([1.0, 1e-3, 1e-20, 1e-50])
    shape = Shape.matrix((np.eye(4) + 0.4) * np.outer(units, units))
    for size in (5e-324, 1e-310, 1e-200, 1.0, 1e250, 1e308):
        gap = rng.normal(size=4) * units * size
        with np.errstate(all="ignore"):
            moved = shape.entries @ np.ldexp(gap, -shape.exponents)
        wanted = math.ldexp(l2(moved), -shape.bits)
        np.testing.assert_equal(MatrixWeighted(Gaussian(), shape).norm(gap), wanted)


def test_noise_is_correlated_as_the_shape_says():
    """The intervals, and the reason to use it at all, rest on this. False alarms: 1e-6 for each test."""
    wanted = np.array([[4.0, 1.8], [1.8, 1.0]])
    mechanism = MatrixWeighted(Gaussian(), Shape.matrix(wanted))
    facts = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6}
    center, never = np.array([5.0, -3.0]), np.zeros(2, dtype=bool)
    drawn = np.array([mechanism.release(center, **facts, whole=never) for _ in range(4000)]) - center
    scale = mechanism.scale(*facts.values())
    assert scale[0] / scale[1] == pytest.approx(2.0, rel=1e-3)
    for at in (0, 1):
        assert stats.kstest(drawn[:, at] / scale[at], "norm").pvalue > FALSE_ALARM
    inside = mechanism.transformed((drawn + center).T[:, 0])  # a vector goes in and comes out
    assert inside.shape == (2,)
    moved = np.array([mechanism.transformed(row) for row in drawn])
    assert stats.pearsonr(moved[:, 0], moved[:, 1]).pvalue > FALSE_ALARM
    found = stats.pearsonr(drawn[:, 0], drawn[:, 1]).statistic
    assert abs(np.arctanh(found) - np.arctanh(0.9)) < 5 / np.sqrt(4000)  # five standard errors


def test_integers_stay_integers_and_nothing_warns():
    """A count with a fraction would surprise, and a warning would reveal that a private number is huge."""
    mechanism = MatrixWeighted(Gaussian(), Shape.matrix(np.array([[4.0, 1.0], [1.0, 1.0]])))
    for vector in (np.array([3.0, 1e9]), np.array([1e308, -1e308]), np.array([5e-324, 0.0])):
        whole = np.array([True, False])
        found = mechanism.release(vector, sensitivity=1.0, epsilon=1.0, delta=1e-6, whole=whole)
        assert np.isfinite(found).all() and found[0] == np.rint(found[0])
    assert mechanism.norm(np.array([np.inf, 0.0])) != 0


def test_errors_of_any_sign_are_within_the_bound():
    """A sum over records would be measured as closer to its neighbour than rounding allows."""
    rng = np.random.default_rng(0)
    mechanism = MatrixWeighted(Gaussian(), Shape.matrix(covariance(9, 2)))
    for _ in range(200):
        errors = rng.exponential(size=9)
        assert mechanism.norm(errors * rng.choice([-1, 1], 9)) <= mechanism.bound(errors) * (1 + 1e-12)


FACTORS = samplers.normal([0.0, 0.0], [1.0, 1.0]).truncated([-5, -5], [5, 5])


def mixed(data):
    """Return means that move together."""
    a, b = data.T
    return [float(a.mean()), float((a + 0.1 * b).mean()), float((a - 0.1 * b).mean()), float(b.mean())]


def test_the_audit_knows_it():
    """A mechanism that adds too little noise would pass. False alarms: 1e-6 (and the seed is fixed)."""
    function = private(mixed, Gaussian(scaled="matrix"), sampler=FACTORS)
    assert function.estimate(50).shape.kind == "matrix"
    found = audit(function, 50, pairs=1000, releases=4000, confidence=1 - FALSE_ALARM, seed=1)
    found.assert_holds()


def test_the_audit_finds_half_of_the_noise(monkeypatch):
    """An audit in units in which noise is correlated would miss what an attacker sees."""
    function = private(mixed, Gaussian(scaled="matrix"), sampler=FACTORS)
    function.estimate(50)
    release = MatrixWeighted.release

    def half(self, vector, /, *, sensitivity, **facts):
        return release(self, vector, sensitivity=sensitivity / 2, **facts)

    monkeypatch.setattr(MatrixWeighted, "release", half)
    found = audit(function, 50, pairs=1000, releases=4000, confidence=1 - FALSE_ALARM, seed=1)
    assert not found.holds


def test_it_is_for_the_gaussian_itself_and_few_numbers():
    """A user would learn only later that noise was added in another way."""

    class Own(Gaussian):
        """May add any noise."""

    with pytest.raises(SettingsError, match="Gaussian itself"):
        Own(scaled="matrix")
    with pytest.raises(SettingsError, match="at most 128 numbers"):
        private(lambda d: np.tile(d.mean(axis=0), 65), Gaussian(scaled="matrix")).estimate(20)


@pytest.mark.parametrize("times", [1.0, 1e40, 1e78, 1e150])
def test_units_that_are_far_apart(times):
    """At 1e78 entries of the matrix wrapped around, and two answers with a tiny gap were 8,000,000 apart."""

    def far(x):
        c, s = np.mean(x) - 0.5, -np.mean(np.sin(2 * np.pi * x))
        return np.array([times * c, s, times * (c + 0.02 * s)])

    function = private(far, Gaussian(), sampler=samplers.uniform(0, 1), gamma=0.2)
    one, other = np.linspace(0, 1, 101), np.linspace(0, 1, 101)
    one[50], other[50] = 0.5 + 2e-4, 0.5 - 2e-4
    first, second = function.release(one), function.release(other)
    assert abs(first.value[1] - second.value[1]) < 20 * first.scale[1]  # noise is not so large in 1e-40
