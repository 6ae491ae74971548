"""Block sizes follow from public numbers, the scan and the count are private, and their bounds are exact."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from privatize.calibration.factor_scan import (
    FACTORS,
    Scan,
    at_least,
    at_most,
    count,
    counting,
    scanning,
    sizes,
)
from privatize.errors import SettingsError
from privatize.testing import insecure_noise
from tests.cases import for_each

pytestmark = pytest.mark.filterwarnings("ignore::privatize.errors.InsecureNoiseWarning")
K = len(FACTORS)
SCANS = [(25, 0.2, 0.75), (200, 0.05, 0.375), (708, 0.05, 0.15), (100, 0.05, 0.75)]


class TestSizes:
    @for_each(
        ("gamma", "epsilon"), list(itertools.product([0.01, 0.05, 0.2, 0.5], [0.05, 0.2, 0.5, 1.0, 3.0]))
    )
    def test_nobody_is_in_two_blocks(self, gamma, epsilon):
        """A person who is in two blocks would be paid for once and counted twice."""
        for n in (1000, 5000, 20_000, 100_000, 3_000_000):
            try:
                found = sizes(n, gamma, epsilon)
            except SettingsError:
                continue
            second = found.smaller
            used = found.main.number * found.main.people
            assert found.main.people >= 10
            assert used + (second.number * second.people if second else 0) <= n
            assert second is None or 10 <= second.people <= found.main.people / 4

    def test_more_people_make_larger_blocks_and_more_of_them(self):
        """With more people a check would otherwise say no more about datasets of their size."""
        found = [sizes(n, 0.05, 0.2).main for n in (5000, 10_000, 20_000, 40_000, 10**6)]
        assert [each.people for each in found] == sorted(each.people for each in found)
        assert [each.number for each in found] == sorted(each.number for each in found)

    @for_each(
        ("n", "epsilon", "remedy"),
        [(4999, 0.2, "epsilon=0.201"), (999, 1.0, "fewer than 1,000 people"), (10, 0.2, "fewer than 1,000")],
    )
    def test_too_few_people_are_told_what_it_takes(self, n, epsilon, remedy):
        """Nobody pays for a check that can find nothing, or guesses what would be enough."""
        with pytest.raises(SettingsError, match=remedy):
            sizes(n, 0.05, epsilon)
        if "=" in remedy:
            assert sizes(n, 0.05, float(remedy.split("=")[1])).main.people >= 10


def neighbours(b, rng):
    """Return the counts of b blocks, and those after one block has changed."""
    r = np.exp(rng.normal(rng.uniform(-2, 3), rng.uniform(0.1, 2), b))
    other = r.copy()
    other[rng.integers(b)] = np.exp(rng.normal(0, 4))
    return [[int((each > factor).sum()) for factor in FACTORS] for each in (r, other)]


class TestScan:
    @for_each(("b", "gamma", "epsilon"), SCANS)
    def test_one_person_changes_no_probability_by_more_than_epsilon(self, b, gamma, epsilon):
        """The factor would tell more about a person than was paid for."""
        scan, rng, largest = Scan(b, gamma, epsilon), np.random.default_rng(0), 0.0
        cases = [neighbours(b, rng) for _ in range(200)]
        # Every count is up by one; or some of them are, up to any factor: the extremes.
        for low in (0, 1, int(scan.thresholds[0]), b - 1):
            cases += [([low] * K, [low + 1] * at + [low] * (K - at)) for at in range(1, K + 1)]
        for one, other in cases:
            found = [scan.probabilities(counts) for counts in (one, other)]
            assert all(math.isclose(each.sum(), 1.0, abs_tol=1e-9) for each in found)
            assert min(each.min() for each in found) >= 0
            above = [each > 1e-12 for each in found]
            assert (above[0] == above[1])[np.minimum(*found) > 1e-10].all()
            both = above[0] & above[1]
            largest = max(largest, np.abs(np.log(found[0][both] / found[1][both])).max())
        assert largest <= epsilon * (1 + 1e-6)
        assert largest > epsilon * 0.9  # the proof is about this noise, and no weaker

    def test_what_is_drawn_has_these_probabilities(self):
        """The proof would be about another scan. A chi-square test with a false-alarm rate of 1e-4."""
        scan = Scan(40, 0.1, 1.0)
        counts = [max(0, 12 - 3 * i) for i in range(K)]
        with insecure_noise(1):
            drawn = [scan.first(counts) for _ in range(4000)]
        seen = np.bincount([K if each is None else each for each in drawn], minlength=K + 1)
        expected = scan.probabilities(counts) * len(drawn)
        usual = expected > 5
        seen, expected = [np.append(each[usual], each[~usual].sum()) for each in (seen, expected)]
        assert chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-4

    @for_each(("b", "gamma", "epsilon"), SCANS)
    def test_the_certificate_is_wrong_in_one_of_twenty_checks_at_most(self, b, gamma, epsilon):
        """A share would be certified that is beyond more often than "95%" says; computed exactly."""
        scan, worst = Scan(b, gamma, epsilon), 0.0
        for last in range(0, K, 4):  # a share is beyond all factors up to this one, and none beyond the rest
            share = min(scan.high(last) + 1e-9, 1.0)
            wrong = [i for i in range(last + 1) if scan.high(i) < share]
            found = 0.0
            for number in range(b + 1):
                weight = binom.pmf(number, b, share)
                if weight > 1e-10:
                    counts = [number] * (last + 1) + [0] * (K - last - 1)
                    found += weight * scan.probabilities(counts)[wrong].sum()
            worst = max(worst, found)
        assert worst <= 0.05
        assert worst > 0.02

    def test_a_factor_is_seldom_much_too_large(self):
        """Noise alone would make answers useless, where P is right; computed exactly."""
        scan = Scan(1582, 0.05, 0.15)
        assert scan.excess(0.005) <= 1.5
        assert scan.excess(0.005) <= Scan(200, 0.05, 0.375).excess(0.005)


class TestCount:
    @pytest.mark.slow
    @for_each(("b", "share", "epsilon"), [(200, 0.05, 0.125), (200, 0.3, 0.5), (1000, 0.01, 0.05)])
    def test_its_bounds_are_wrong_in_one_of_twenty_counts_at_most(self, b, share, epsilon):
        """A share would be told to be larger or smaller than it is, more often than "95%" says."""
        rng, wrong, tries = np.random.default_rng(0), np.zeros(2), 400
        with insecure_noise(2):
            for number in rng.binomial(b, share, tries):
                found = count(int(number), b, epsilon)
                assert 0 <= found.low <= found.high <= 1
                wrong += [share < found.low, share > found.high]
        assert (wrong <= binom.ppf(1 - 1e-4, tries, 0.05)).all()  # the false-alarm rate of each
        assert wrong.max() > 2

    def test_without_noise_it_is_clopper_and_pearson(self):
        """The bounds would be looser or tighter than the exact ones."""
        assert at_most(100, (0, np.array([1.0]))) == pytest.approx(0.0295, abs=1e-4)
        assert at_least(100, (9, np.array([1.0]))) == pytest.approx(0.0553, abs=1e-4)
        assert (at_most(10, (10, np.array([1.0]))), at_least(10, (-1, np.array([1.0])))) == (1.0, 0.0)


@for_each("epsilon", [0.1, 0.2, 0.3, 1.0, 0.7123, 1e-3])
def test_count_and_scan_cost_no_more_than_was_paid(epsilon):
    """The parts of epsilon would add up to more than was charged."""
    scan = Scan(100, 0.05, scanning(epsilon))
    assert counting(epsilon) + 2 * scan.half <= epsilon
    assert counting(epsilon) + 2 * scan.half > epsilon * 0.999
