"""The noise has the distribution that the proofs are about.

Every test here has a fixed seed and a false-alarm rate of at most FALSE_ALARM each.
"""

import contextlib
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from privatize.noise import exact
from privatize.noise import grid as noise
from privatize.planning.gaussian import excess_delta

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-6


@contextlib.contextmanager
def bits(seed):
    """Replace the operating system's randomness by a seeded one, so that a test's outcome is fixed."""
    before = exact.source.set(np.random.Generator(np.random.PCG64(seed)).bytes)
    try:
        yield
    finally:
        exact.source.reset(before)


@pytest.fixture(params=["python", "vectorized", "undecided"])
def path(request, monkeypatch):
    """Force the path in pure Python, the vectorized one, or one whose fast filter never decides."""
    if request.param == "python":
        monkeypatch.setattr(exact, "_vectorizes", lambda t, size: False)
    if request.param == "undecided":
        monkeypatch.setattr(exact, "_DOUBT", 2.0)
    return request.param


def chi_square(sample, probabilities, first):
    """Return the p-value of integers against probabilities of first, first+1, ..., and the rest."""
    counts = np.bincount(
        np.clip(sample - first, -1, len(probabilities)) + 1, minlength=len(probabilities) + 2
    )
    outside = max(0.0, 1 - math.fsum(probabilities))
    expected = np.array([outside / 2, *probabilities, outside / 2]) * len(sample)
    # Join cells from both ends until each expects at least 10.
    while len(expected) > 2 and expected[0] < 10:
        expected, counts = (
            np.array([expected[:2].sum(), *expected[2:]]),
            np.array([counts[:2].sum(), *counts[2:]]),
        )
    while len(expected) > 2 and expected[-1] < 10:
        expected = np.array([*expected[:-2], expected[-2:].sum()])
        counts = np.array([*counts[:-2], counts[-2:].sum()])
    keep = expected > 0
    statistic = ((counts[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    assert counts[~keep].sum() == 0
    return stats.chi2.sf(statistic, max(1, keep.sum() - 1))


def draws(function, path):
    """Return a sample as an array, smaller if every decision needs Python's integers."""
    size = {"python": 20_000, "vectorized": 200_000, "undecided": 4_000}[path]
    with bits(11):
        return np.array(function(size))


@pytest.mark.parametrize("scale", [2.0**-20, 0.125, 0.5, 1.0, 3.7, 50.0])
def test_discrete_laplace_small_scales(scale, path):
    """Integer noise has the exact two-sided geometric probabilities."""
    shift = 40 - max(0, math.floor(math.log2(scale)))
    t = exact.coarse(math.ceil(scale * 2**shift))
    sample = draws(lambda size: exact.discrete_laplace(t, shift, size), path)
    q = math.exp(-(2**shift) / t)
    reach = int(30 * scale) + 3
    x = np.arange(-reach, reach + 1)
    assert chi_square(sample, (1 - q) / (1 + q) * q ** np.abs(x), -reach) > FALSE_ALARM


@pytest.mark.parametrize("bit", [8, 20, 30, 40])
def test_discrete_laplace_large_scales(bit, path):
    """Fine-grid noise is Laplace in the large, uniform in its low digits, and symmetric."""
    t = exact.coarse(2**bit + 2 ** (bit - 3) + 1)
    sample = draws(lambda size: exact.discrete_laplace(t, 0, size), path)
    # The distribution function, randomized over each atom, is exactly uniform.
    before, after = laplace_cdf(sample - 1.0, t), laplace_cdf(sample * 1.0, t)
    u = before + np.random.default_rng(1).random(len(sample)) * (after - before)
    assert stats.kstest(u, "uniform").pvalue > FALSE_ALARM
    if bit >= 20:
        assert stats.chisquare(np.bincount(sample % 64, minlength=64)).pvalue > FALSE_ALARM


def laplace_cdf(x, t):
    """Return P(X <= x) of the discrete Laplace distribution of scale t."""
    q = math.exp(-1 / t)
    below = np.exp(np.minimum(x, 0) / t) / (1 + q)
    return np.where(x < 0, below, 1 - q * np.exp(-np.maximum(x, 0) / t) / (1 + q))


@pytest.mark.parametrize("sigma", [1, 2, 3, 10, 37])
def test_discrete_gaussian_small_scales(sigma, path):
    """The probabilities are exactly proportional to exp(-x^2 / 2 sigma^2)."""
    sample = draws(lambda size: exact.discrete_gaussian(sigma, size), path)
    x = np.arange(-9 * sigma, 9 * sigma + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    assert chi_square(sample, weights / weights.sum(), x[0]) > FALSE_ALARM


@pytest.mark.parametrize("bit", [12, 20, 30, 40])
def test_discrete_gaussian_large_scales(bit, path):
    """Fine-grid noise is normal in the large and uniform in its low digits.

    At sigma >= 2^12 the continuous distribution function is within 2^-12 of the discrete one, which
    the K-S test at these sample sizes cannot see once half a step is added at random.
    """
    sigma = exact.coarse(2**bit + 2 ** (bit - 2) + 1)
    sample = draws(lambda size: exact.discrete_gaussian(sigma, size), path)
    within_step = np.random.default_rng(1).random(len(sample)) - 0.5
    assert stats.kstest((sample + within_step) / sigma, "norm").pvalue > FALSE_ALARM
    if bit >= 20:
        assert stats.chisquare(np.bincount(sample % 64, minlength=64)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("t", [2**60 + 12345, 2**100 + 7])
def test_scales_beyond_64_bits(t):
    """Beyond 64 bits, Python's integers give the same distribution."""
    with bits(12):
        laplace = np.array([x / t for x in exact.discrete_laplace(t, 0, 10_000)])
        normal = np.array([x / t for x in exact.discrete_gaussian(t, 10_000)])
    assert stats.kstest(laplace, "laplace").pvalue > FALSE_ALARM
    assert stats.kstest(normal, "norm").pvalue > FALSE_ALARM


def test_these_tests_can_fail():
    """Noise that is 5% too small is noticed, so a pass above means something."""
    with bits(13):
        sample = np.array(exact.discrete_laplace(exact.coarse(2**30), 0, 200_000))
        few = np.array(exact.discrete_laplace(1, 0, 200_000))
    assert stats.kstest(sample * 0.95 / 2**30, "laplace").pvalue < FALSE_ALARM
    q = math.exp(-1 / 1.05)
    x = np.arange(-40, 41)
    assert chi_square(few, (1 - q) / (1 + q) * q ** np.abs(x), -40) < FALSE_ALARM


@pytest.mark.parametrize("sigma", [1, 2, 3, 10, 100, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0])
def test_discrete_gaussian_privacy_curve(sigma, epsilon):
    """The exact (epsilon, delta) curve of the discrete Gaussian is within the proven bound.

    For every gap in grid units, coarse grids included: delta is at most that of the continuous
    Gaussian plus (1 + e^epsilon) / (24 sigma^2), the price of being discrete (docs/noise.md).
    """
    reach = 40 * sigma + 60
    x = np.arange(-reach, reach + 1, dtype=float)
    log_p = -(x**2) / (2.0 * sigma**2)
    log_p -= special.logsumexp(log_p)
    for gap in sorted({1, 2, sigma // 2 or 1, sigma, 3 * sigma}):
        shifted = -((x - gap) ** 2) / (2.0 * sigma**2)
        shifted -= special.logsumexp(shifted)
        true = np.maximum(0, np.exp(log_p) - math.exp(epsilon) * np.exp(shifted)).sum()
        claimed = excess_delta(sigma / gap, epsilon) + (1 + math.exp(epsilon)) / (24 * sigma**2)
        assert true <= claimed * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [1, 2, 5, 30, 300])
def test_total_variation_to_the_rounded_normal(sigma):
    """The lemma behind the bound: the discrete Gaussian is within 1/(24 sigma^2) of the rounded normal."""
    x = np.arange(-40 * sigma - 40, 40 * sigma + 41, dtype=float)
    discrete = np.exp(-(x**2) / (2.0 * sigma**2))
    discrete /= discrete.sum()
    upper = special.ndtr((-np.abs(x) + 0.5) / sigma) - special.ndtr((-np.abs(x) - 0.5) / sigma)
    assert np.abs(discrete - upper).sum() / 2 <= 1 / (24 * sigma**2)


class TestChoose:
    @pytest.mark.parametrize(
        ("scores", "weights"),
        [
            ([0.0, 1.0, 2.0, 3.5], [1, 1, 1, 1]),
            ([-1e6, -1e6 + 1, -1e6 - 2], [1, 2, 3]),
            ([0.0, 0.0, 0.0], [0.1, 0.3, 0.6]),
            ([1e300, 1e300, -1e300], [1, 1, 1]),
            ([5.0], [2.0]),
        ],
    )
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_probabilities(self, scores, weights, epsilon):
        """Responses come with probability proportional to weight * exp(epsilon score / 2 sensitivity)."""
        sensitivity = 0.75
        values = np.array(scores)
        with bits(14):
            sample = np.array([noise.choose(values, sensitivity, epsilon, weights) for _ in range(8000)])
        expected = np.array(weights) * np.exp(epsilon * (values - values.max()) / (2 * sensitivity))
        expected /= expected.sum()
        assert chi_square(sample, expected, 0) > FALSE_ALARM

    def test_many_responses(self):
        """A hundred thousand responses are drawn from as exactly as two."""
        scores = np.log(np.arange(1, 100_001) / 1e5)
        with bits(15):
            sample = np.array([noise.choose(scores, 0.5, 1.0, (1.0,) * 100_000) for _ in range(400)])
        # Probability proportional to the index: the distribution function is its square.
        assert stats.kstest((sample + 0.5) / 1e5, lambda u: u**2).pvalue > FALSE_ALARM

    def test_rare_responses_are_possible(self):
        """A response of probability 1e-3 is neither impossible nor too frequent."""
        scores = np.array([0.0, -2 * math.log(1e3)])
        with bits(16):
            found = sum(noise.choose(scores, 1.0, 1.0, (1.0, 1.0)) for _ in range(20_000))
        assert stats.binom.cdf(found, 20_000, 1e-3 / (1 + 1e-3)) > FALSE_ALARM
        assert stats.binom.sf(found - 1, 20_000, 1e-3 / (1 + 1e-3)) > FALSE_ALARM

    def test_proposals_are_upper_bounds(self):
        """A proposal weight below the true one could not be corrected by rejection."""
        rng = np.random.default_rng(17)
        for _ in range(30):
            scores = rng.normal(0, 10 ** rng.uniform(-3, 4), 50)
            weights = rng.uniform(1e-9, 1, 50)
            rate = Fraction(rng.uniform(0.01, 10))
            upper, power = noise._proposals(scores, scores.max(), rate, weights)
            for s, w, found in zip(scores.tolist(), weights.tolist(), upper.tolist(), strict=True):
                y = rate * (Fraction(float(scores.max())) - Fraction(s))
                share = Decimal(w) / Decimal(weights.max())
                true = share * (-Decimal(y.numerator) / Decimal(y.denominator)).exp() * 2**power
                assert true <= found <= true * (1 + Decimal(2) ** -28) + 2
            assert upper.max() > 2**30 and sum(upper.tolist()) < 2**63

    def test_scores_at_the_ends_of_floating_point(self):
        """Differences that overflow, and rates that do, still give the right probabilities."""
        scores, other = np.array([9.2e307, -8.9e307]), np.array([8e307, -9.9e307])
        for values in (scores, other):
            upper, power = noise._proposals(values, values.max(), Fraction(1) / Fraction(2e307), np.ones(2))
            y = (Fraction(float(values[0])) - Fraction(float(values[1]))) / Fraction(2e307)
            true = (-Decimal(y.numerator) / Decimal(y.denominator)).exp() * 2**power
            assert true <= int(upper[1]) <= true * 2 + 2
        with bits(30):
            assert noise.choose(np.array([0.0, 1e-320]), 1e-310, 1.0, (1.0, 1.0)) in (0, 1)
            assert noise.choose(np.array([0.0, 1.0]), 1e-300, 1e5, (1.0, 1.0)) == 1

    def test_a_prior_far_from_the_scores_is_fast_and_exact(self):
        """Posterior sampling far from the prior's center is neither slow nor wrong."""
        grid = np.linspace(-15, 15, 301)
        prior = np.exp(-(grid**2) / 2)
        scores = -((grid - 14.0) ** 2)  # at rate 1/2: the posterior is normal around 7
        with bits(31):
            sample = np.array([noise.choose(scores, 1.0, 1.0, prior.tolist()) for _ in range(2000)])
        expected = np.exp(-(grid**2) / 2 - (grid - 14.0) ** 2 / 2)
        assert chi_square(sample, expected / expected.sum(), 0) > FALSE_ALARM


def off_grid_share(outputs):
    """Return the share of outputs that are not multiples of 2^-53."""
    scaled = outputs * 2.0**53
    return float(np.mean(scaled != np.rint(scaled)))


def low_bits_differ(at_zero, at_one):
    """Return the p-value of a two-sample test on the lowest bits of the outputs' grid."""
    exponent = min(math.frexp(x)[1] - 53 for x in np.abs(np.concatenate([at_zero, at_one])) if x)
    # The number of trailing zero bits is what the published attack looks at.
    table = [
        np.bincount([trailing(x, exponent) for x in sample], minlength=64)[:64]
        for sample in (at_zero, at_one)
    ]
    seen = np.sum(table, axis=0) >= 10
    return stats.chi2_contingency(np.array(table)[:, seen] + 1e-9).pvalue


def trailing(x, exponent):
    units = int(math.ldexp(x, -exponent)) if x else 0
    return min(63, (units & -units).bit_length() - 1) if units else 63


def test_precision_attack():
    """The low bits of an answer do not distinguish 0 from 1; with numpy's noise they do."""
    zero, one = np.zeros(4000), np.ones(4000)
    whole = np.zeros(4000, dtype=bool)
    with bits(19):
        ours = [noise.laplace(f, 1.0, 1.0, whole) for f in (zero, one)]
    rng = np.random.default_rng(20)
    theirs = [f + rng.laplace(0, 1.0, 4000) for f in (zero, one)]
    assert off_grid_share(ours[0]) == off_grid_share(ours[1]) == 0
    assert low_bits_differ(*ours) > FALSE_ALARM
    # The same tests on floating-point noise: one value is recovered from a quarter of the outputs.
    assert off_grid_share(theirs[0]) > 0.2 and off_grid_share(theirs[1]) == 0
    assert low_bits_differ(*theirs) < FALSE_ALARM
