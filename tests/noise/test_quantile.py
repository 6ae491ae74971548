"""The private quantile: exact scores, public grids, ties, missing values, and the privacy inequality."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from privatize.noise import exact
from privatize.noise.quantile import Grid, dyadic, fineness, quantile, segments, shares
from tests.cases import for_each
from tests.statistical.thresholds import FALSE_ALARM, chi2_limit


def scored(values, points, q):
    """Return the score of every point of an integer grid, in exact numbers, by the definition alone."""
    q, present = Fraction(q), len(values)
    return [
        -max(
            Fraction(0),
            sum(z < y for z in values) - q * present,
            sum(z > y for z in values) - (1 - q) * present,
        )
        for y in range(points)
    ]


def log_odds(values, points, q, epsilon):
    """Return the logarithm of the probability of every point, from the library's own scores."""
    found = segments(np.array(values, dtype=np.int64), points, q)
    logs = np.repeat(found.scores, found.points) * epsilon / 2
    return logs - np.logaddexp.reduce(logs)


def draws(count, seed, *args):
    """Return many draws of a quantile, with a fixed seed."""
    before = exact.source.set(np.random.Generator(np.random.PCG64(seed)).bytes)
    try:
        return np.array([quantile(*args) for _ in range(count)])
    finally:
        exact.source.reset(before)


@for_each("q", [0.5, 0.25, 0.1, 0.999, 2.0**-20])
def test_scores_are_those_of_the_definition(q):
    """A score that is rounded, or of another point, would break the privacy proof."""
    q, rng = dyadic(q), np.random.default_rng(1)
    for size in (0, 1, 2, 3, 7, 30):
        for points in (1, 2, 5, 40):
            values = rng.integers(0, points, size).tolist()
            found = segments(np.array(values, dtype=np.int64), points, q)
            assert found.points.min() > 0 and found.points.sum() == points
            assert found.starts.tolist() == [0, *np.cumsum(found.points)[:-1].tolist()]
            ours = [Fraction(score) for score in np.repeat(found.scores, found.points).tolist()]
            assert ours == scored(values, points, q)


def test_many_values_have_exact_scores():
    """With billions of records q n must not be rounded: the exponents of both neighbours would be off."""
    q, total = dyadic(0.1), 2**33 - 1
    assert Fraction(q * total) == Fraction(q) * total
    assert Fraction(1 - q) == 1 - Fraction(q)


@for_each("q", [0.5, 0.1, 0.75])
def test_one_record_changes_odds_by_epsilon_at_most(q):
    """The promise itself: for all neighbours of three or four records, missing ones included."""
    q, epsilon, points, largest = dyadic(q), 1.0, 9, 0.0
    records = [None, 0, 1, 4, 8]
    tables = {
        chosen: log_odds([z for z in chosen if z is not None], points, q, epsilon)
        for size in (3, 4)
        for chosen in itertools.combinations_with_replacement(records, size)
    }
    for one, other in itertools.product(tables, repeat=2):
        shared = sum(min(one.count(z), other.count(z)) for z in records)
        if len(one) == len(other) == shared + 1:
            largest = max(largest, float(np.abs(tables[one] - tables[other]).max()))
    assert 0.5 * epsilon < largest <= epsilon * (1 + 1e-12)


def test_a_loss_that_is_too_large_is_found():
    """At a gap of exactly 1 the odds change by nearly e^ε, so a loss 30% larger would be noticed."""
    one, other = [0, 9_992, 9_994, 9_996, 9_998], [9_999, 9_992, 9_994, 9_996, 9_998]
    for epsilon, holds in ((1.0, True), (1.3, False)):
        ratio = np.abs(log_odds(one, 10_000, 0.5, epsilon) - log_odds(other, 10_000, 0.5, epsilon)).max()
        assert (ratio <= 1 + 1e-12) == holds


@pytest.mark.slow
def test_draws_have_the_probabilities_of_the_scores():
    """Draws by a wrong law would break the promise, whatever the scores (false-alarm rate 1e-6 each)."""
    values, grid = np.array([2.0, 2.0, 3.0, 7.0, 7.4, np.nan, -5.0, np.inf]), Grid.of(0, 9, integer=True)
    odds = np.exp(log_odds([2, 2, 3, 7, 7, 0, 9], 10, 0.25, 1.0))
    for epsilon, right in ((1.0, True), (1.3, False)):
        found = draws(6000, 5, values, grid, 0.25, epsilon)
        counts = np.bincount(found.astype(int), minlength=10)
        assert (stats.chisquare(counts, 6000 * odds).statistic < chi2_limit(9, FALSE_ALARM)) == right


def test_points_inside_a_segment_are_uniform():
    """A draw that prefers the ends of a gap would reveal the records there (false-alarm rate 1e-6)."""
    grid = Grid.of(0.0, 1.0, integer=False)
    found = draws(3000, 6, np.array([np.nan]), grid, 0.5, 1.0)
    assert stats.kstest(found, "uniform").pvalue > 1e-6


def test_ties_are_no_problem():
    """If all hundred values are 7, the median is 7, and not a random point between the bounds."""
    for integer in (True, False):
        grid = Grid.of(0.0, 120.0, integer=integer, bits=fineness(100, 0.5, 1.0))
        assert (draws(300, 7, np.full(100, 7.0), grid, 0.5, 1.0) == 7).all()


def test_a_grid_is_public_and_reaches_its_ends():
    """A record at a bound could not be answered, or a point of the grid would be no float."""
    huge, tiny = np.finfo(np.float64).max, 5e-324
    for low, high in (
        *[(0.0, 1.0), (-0.1, 0.3), (-huge, huge), (0.0, tiny), (-tiny, 1e-300), (1e15, 1e15 + 1)],
        *[(0.3, 0.3), (0.0, 0.0), (-1e300, 1e-300), (huge / 2, huge), (-7.0, 1 / 3)],
    ):
        for grid in (Grid.of(low, high, integer=False), Grid.of(low, high, integer=False, bits=12)):
            some = sorted({0, 1, grid.points // 3, grid.points // 2, grid.points - 2, grid.points - 1})
            places = [at for at in some if 0 <= at < grid.points]
            points = [grid.value(at) for at in places]
            assert points[0] == low and points[-1] == high and points == sorted(points)
            if low < high:
                assert grid.indices(np.array(points)).tolist() == places
            for y in points[1:-1]:
                assert Fraction(y) % Fraction(2) ** grid.exponent == 0
            assert grid.indices(np.array([-np.inf, np.inf])).tolist() == [0, grid.points - 1]
        assert Grid.of(low, high, integer=False).points <= 2**54


def test_a_grid_of_floats_is_fine():
    """Answers would be rounded to a grid that one can see."""
    assert 2**44 <= Grid.of(0.0, 1.0, integer=False).points <= 2**46
    assert 2**44 <= Grid.of(-1e308, 1e308, integer=False).points <= 2**46


def test_a_grid_of_integers_has_all_of_them():
    """A count would be released that no count can be."""
    grid = Grid.of(-3, 120, integer=True)
    assert [grid.value(at) for at in range(grid.points)] == list(range(-3, 121))
    assert grid.indices(np.array([-3.2, 0.4, 119.5, 1e300])).tolist() == [0, 3, 123, 123]


def test_counts_of_points_beyond_2_53():
    """Weights of segments that are rounded to floats would be other probabilities than the proof's."""
    grid = Grid.of(-(2.0**53), 2.0**53, integer=True)
    found = segments(grid.indices(np.array([2.0**53 - 2])), grid.points, 0.5)
    assert sum(found.points.tolist()) == 2**54 + 1
    assert found.points.tolist() == [2**54 - 2, 1, 2]
    drawn = draws(50, 8, np.array([np.nan]), grid, 0.5, 1.0)
    assert (np.abs(drawn) <= 2.0**53).all() and len(set(drawn.tolist())) == 50
    wide = Grid.of(-(2.0**63), 2.0**63, integer=True)  # there is no float for every integer
    assert wide.points == 2**54 + 1 and wide.value(1) == -(2.0**63) + 2**10


def test_one_record_and_no_record():
    """An empty column, or one record, would stop a release, or its error would tell that it is empty."""
    grid = Grid.of(0, 9, integer=True)
    for values in (np.zeros(0), np.array([np.nan] * 5)):
        assert len(set(draws(200, 9, values, grid, 0.5, 1.0).tolist())) == 10
    assert (draws(20, 10, np.array([4.0]), grid, 0.5, 200.0) == 4).all()


def test_quantiles_are_dyadic_and_inside():
    """q = 0 would make every point below the smallest record the best one."""
    assert dyadic(0.5) == 0.5 and dyadic(1e-300) == 2.0**-20 and dyadic(1 - 1e-16) == 1 - 2.0**-20
    assert abs(dyadic(0.1) - 0.1) < 2.0**-20


@for_each("epsilon", [1.0, 0.1, 1 / 3, 1e-9, 5e-324, 700.0])
def test_shares_never_add_up_to_more(epsilon):
    """Several numbers together would cost more than was paid for them."""
    rng = np.random.default_rng(3)
    for count in (1, 2, 3, 7, 49, 1000):
        for weights in ([1.0] * count, rng.random(count).tolist()):
            parts = shares(epsilon, weights)
            assert sum(map(Fraction, parts)) <= Fraction(epsilon)
            assert epsilon < 1e-300 or math.fsum(parts) == pytest.approx(epsilon, rel=1e-12)
