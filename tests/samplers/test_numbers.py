"""Samplers must draw the distribution that they name, state its support, and refuse wrong arguments.

Every statistical check has a fixed seed and would raise a false alarm once in 1e6 other seeds.
"""

import math
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from privatize import samplers
from privatize.errors import SamplerError
from privatize.samplers import as_sampler, draw, from_function, mixture, normal, uniform
from tests.cases import for_each
from tests.samplers.drawn import Callable, Dice, within

ALARM = 1e-6
inf = math.inf


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def assert_follows(sample, cdf):
    """Compare a sample with a distribution function: Kolmogorov and Smirnov's test."""
    assert stats.kstest(sample, cdf).pvalue > ALARM


def spenders(n, generator):
    """Draw with a function of one's own."""
    return generator.lognormal(3, 1, n)


def scaled(n, generator, scale=1.0):
    """Draw with a function that has an option."""
    return generator.random(n) * scale


# --- distributions ---


def test_the_check_has_teeth():
    """A check that accepts everything would let every sampler through."""
    with pytest.raises(AssertionError):
        assert_follows(normal(0, 1.08).draw(50_000, rng()), stats.norm(0, 1).cdf)


@pytest.mark.parametrize(("low", "high"), [(0, 100), (-3, -1), (1e-300, 2e-300), (-1e6, 1e6)])
def test_uniform_is_uniform(low, high):
    """The sensitivity would be that of another distribution than the one promised."""
    sampler = uniform(low, high)
    drawn = sampler.draw(50_000, rng(1))
    assert drawn.shape == (50_000,)
    assert drawn.dtype == np.float64
    assert within(sampler, drawn)
    assert_follows(drawn, stats.uniform(low, high - low).cdf)


def test_uniform_has_a_range_for_every_coordinate():
    """Columns in different units would be drawn with one another's bounds."""
    sampler = uniform([0, -5, 100], [1, 5, 1000])
    drawn = sampler.draw(20_000, rng(2))
    assert drawn.shape == (20_000, 3)
    for column, low, high in zip(drawn.T, [0, -5, 100], [1, 5, 1000], strict=True):
        assert_follows(column, stats.uniform(low, high - low).cdf)
    assert abs(np.corrcoef(drawn.T) - np.eye(3)).max() < stats.norm.isf(ALARM / 6) / math.sqrt(20_000)


@pytest.mark.parametrize(("mean", "std"), [(0, 1), (40, 12), (-1e6, 1e-3)])
def test_normal_is_normal(mean, std):
    """The sensitivity would be that of another distribution than the one promised."""
    drawn = normal(mean, std).draw(50_000, rng(3))
    assert drawn.dtype == np.float64
    assert_follows(drawn, stats.norm(mean, std).cdf)


def test_normal_has_a_mean_and_a_spread_for_every_coordinate():
    """Columns in different units would be drawn with one another's spread."""
    drawn = normal([0, 100], [1, 20]).draw(20_000, rng(4))
    assert_follows(drawn[:, 0], stats.norm(0, 1).cdf)
    assert_follows(drawn[:, 1], stats.norm(100, 20).cdf)


@for_each(
    ("mean", "std", "low", "high"),
    [
        (40, 12, 0, 120),
        (0, 1, -1, 1),
        (0, 1, 0, inf),
        (0, 1, -inf, 0),
        (0, 1, -1, 50),
        (0, 1, -50, 1),
        (0, 1, -8, 8),
        (0, 1, 1e-8, 2e-8),
        (0, 1, 3, inf),
        (0, 1, 8, inf),
        (0, 1, 20, inf),
        (0, 1, 36, inf),
        (0, 1, -inf, -8),
        (0, 1, -inf, -36),
        (0, 1, 9, 9.01),
        (0, 1, -30, -29),
        (0, 1, 30, 31),
        (0, 1, 37, 38),
        (5, 0.5, -inf, 1),
        (-5, 2, 20, 60),
    ],
)
def test_a_normal_in_a_box_is_truncated(mean, std, low, high):
    """The paper's Gaussian restricted to the domain would pile up at the edges, or miss the tail."""
    sampler = normal(mean, std, low=low, high=high)
    drawn = sampler.draw(20_000, rng(5))
    assert within(sampler, drawn)
    assert len(np.unique(drawn)) > 19_900  # cancellation would leave fewer
    a, b = (low - mean) / std, (high - mean) / std
    reference = stats.truncnorm(a, b, loc=mean, scale=std)
    assert_follows(drawn, reference.cdf)


def test_the_far_tail_decays_as_it_should():
    """Beyond eight deviations 1 - cdf is rounded to 0: all records would be equal to the bound."""
    above = normal(0, 1, low=30).draw(20_000, rng(6)) - 30

    def survival(x):
        return np.exp(special.log_ndtr(-(30 + x)) - special.log_ndtr(-30.0))

    assert_follows(above, lambda x: 1 - survival(x))


def test_a_vector_in_a_box_is_truncated_coordinate_by_coordinate():
    """One coordinate would be cut with the other's bounds."""
    sampler = normal([0, 10], [1, 5], low=[-1, 12], high=[inf, 14])
    drawn = sampler.draw(20_000, rng(7))
    assert within(sampler, drawn)
    assert_follows(drawn[:, 0], stats.truncnorm(-1, inf).cdf)
    assert_follows(drawn[:, 1], stats.truncnorm(0.4, 0.8, loc=10, scale=5).cdf)


def test_rounding_never_leaves_the_box():
    """A record below zero by one rounding error is a NaN in the user's logarithm or square root."""
    chance = rng(8)
    for seed in range(300):
        mean, low = 50 * chance.normal(size=2)
        std = 0.1 + abs(10 * chance.normal())
        if abs(low - mean) > 30 * std:
            continue
        # Two units in the last place of the standardized bounds: most records sit at an edge.
        high = low + 8 * max(np.spacing(abs(low)), np.spacing(abs(mean)))
        sampler = normal(mean, std, low=low, high=high)
        try:
            drawn = sampler.draw(20, rng(seed))
        except SamplerError:  # the box is too narrow for floating point
            continue
        assert within(sampler, drawn), f"{sampler} draws {drawn.min()!r} to {drawn.max()!r}"


@pytest.mark.parametrize("low", [40, 1e6])
def test_a_box_without_mass_is_refused(low):
    """Calibration would run on NaN or on one value only."""
    with pytest.raises(SamplerError, match="too far from the mean"):
        normal(0, 1, low=low).draw(3, rng())


def test_records_have_the_given_covariance():
    """Columns would be drawn as if they were independent."""
    mean, cov = np.array([1.0, -2.0, 0.0]), np.array([[4.0, 1.5, 0.0], [1.5, 1.0, 0.2], [0.0, 0.2, 0.5]])
    drawn = normal(mean, cov=cov).draw(30_000, rng(9))
    for direction in np.vstack([np.eye(3), [[1, 1, 1], [1, -2, 0], [0.3, -0.7, 2]]]):
        spread = math.sqrt(direction @ cov @ direction)
        assert_follows(drawn @ direction, stats.norm(mean @ direction, spread).cdf)


def test_records_have_a_given_semi_definite_covariance():
    """Two columns that are the same in the data could not be the same in P."""
    drawn = normal([0, 0], cov=[[1, 1], [1, 1]]).draw(20_000, rng(10))
    assert np.allclose(drawn[:, 0], drawn[:, 1])
    assert_follows(drawn[:, 0], stats.norm.cdf)


@pytest.mark.parametrize(
    ("corr", "low", "high"),
    [
        (0.8, [-1.0, -1.0], [1.0, 1.0]),
        (-0.6, [0.0, 0.0], [inf, inf]),
        (0.9, [-0.5, 0.5], [0.5, 3.0]),
        (0.0, [1.0, -inf], [2.0, 0.3]),
        (0.5, [2.0, 2.0], [inf, inf]),
    ],
)
def test_a_correlated_box_is_truncated(corr, low, high):
    """The box would be cut as if the columns were independent, or records moved to its edges."""
    mean, std = np.array([10.0, -3.0]), np.array([2.0, 0.5])
    cov = np.outer(std, std) * [[1, corr], [corr, 1]]
    sampler = normal(mean, cov=cov, low=mean + std * low, high=mean + std * high)
    drawn = sampler.draw(10_000, rng(11))
    assert within(sampler, drawn)
    x, y = ((drawn - mean) / std).T
    rest = math.sqrt(1 - corr**2)

    def mass(x):  # of the second coordinate's interval, given the first
        return special.ndtr((high[1] - corr * x) / rest) - special.ndtr((low[1] - corr * x) / rest)

    # Rosenblatt's transform: both are uniform and independent if, and only if, the law is right.
    grid = np.linspace(max(low[0], -9), min(high[0], 9), 20_001)
    curve = integrate.cumulative_trapezoid(np.exp(-(grid**2) / 2) * mass(grid), grid, initial=0)
    u = np.interp(x, grid, curve / curve[-1])
    v = (special.ndtr((y - corr * x) / rest) - special.ndtr((low[1] - corr * x) / rest)) / mass(x)
    assert_follows(u, stats.uniform.cdf)
    assert_follows(v, stats.uniform.cdf)
    for quarter in range(4):
        assert_follows(v[(quarter <= 4 * u) & (4 * u < quarter + 1)], stats.uniform.cdf)


def test_a_correlated_box_without_mass_is_refused():
    """The draw would never return."""
    with pytest.raises(SamplerError, match=r"fewer than one draw in a thousand.*Widen them"):
        normal([0, 0], cov=np.eye(2), low=[20, 20]).draw(5, rng())


# --- one stream ---


@pytest.mark.parametrize(
    "sampler",
    [
        uniform(0, 100),
        uniform([0, 10], [1, 20]),
        uniform(0, 1, size=(2, 3)),
        normal(40, 12),
        normal([0, 1, 2], [1, 2, 3]),
        normal(np.zeros((2, 3)), 2),
        normal(0, 1, low=-1, high=3),
        normal([0, 5], 1, low=[2, -inf]),
    ],
    ids=repr,
)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_drawing_in_pieces_is_drawing_at_once(sampler, sizes):
    """A block drawn at once would hold other pairs than the same block drawn one by one."""
    generator = rng(12)
    pieces = np.concatenate([sampler.draw(size, generator) for size in sizes])
    assert np.array_equal(pieces, sampler.draw(sum(sizes), rng(12)))


# --- mixtures ---


def test_a_mixture_follows_its_distribution():
    """The sensitivity would be that of other weights than those promised."""
    sampler = mixture([normal(0, 1), uniform(5, 6), stats.expon(10, 2)], weights=[0.5, 0.2, 0.3])

    def cdf(x):
        parts = stats.norm.cdf(x), stats.uniform(5, 1).cdf(x), stats.expon(10, 2).cdf(x)
        return np.average(parts, axis=0, weights=[0.5, 0.2, 0.3])

    assert_follows(sampler.draw(30_000, rng(15)), cdf)


@pytest.mark.parametrize("weights", [None, [1, 1, 1], [2, 3, 5], [0.1, 0, 0.9], [1e-3, 1, 1e3]])
def test_a_mixture_uses_its_weights(weights):
    """Rare people would be drawn too often, or never."""
    sampler = mixture([uniform(i, i + 1) for i in range(3)], weights)
    share = np.ones(3) / 3 if weights is None else np.array(weights) / np.sum(weights)
    n = 30_000
    found = np.bincount(sampler.draw(n, rng(16)).astype(int), minlength=3)
    for count, chance in zip(found.tolist(), share, strict=True):
        if chance == 0:
            assert count == 0
        else:
            assert stats.binomtest(count, n, chance).pvalue > ALARM / 3


def test_the_records_of_a_mixture_are_in_random_order():
    """Records sorted by component are not exchangeable: the last one would always be of the last kind."""
    sampler, n = mixture([uniform(0, 1), uniform(1, 2)], [0.3, 0.7]), 20_000
    kind = sampler.draw(n, rng(17)).astype(int)
    limit = stats.norm.isf(ALARM / 2) / math.sqrt(n)
    assert abs(np.corrcoef(kind[1:], kind[:-1])[0, 1]) < limit
    assert abs(np.corrcoef(kind, np.arange(n))[0, 1]) < limit
    firsts = [int(sampler.draw(5, rng(seed))[0]) for seed in range(2000)]
    assert stats.binomtest(sum(firsts), 2000, 0.7).pvalue > ALARM


def test_the_records_of_a_mixture_stay_aligned():
    """A label would end up with somebody else's features."""

    def blob(label):
        return lambda n, generator: (
            generator.normal(10 * label, 1, (n, 2)),
            [label] * n,
            (np.full(n, label), [str(label)] * n),
        )

    features, labels, (again, names) = draw(mixture([blob(0), blob(1), blob(2)], [1, 2, 3]), 500, rng(18))
    assert features.shape == (500, 2)
    assert set(labels) == {0, 1, 2}
    assert (np.rint(features.mean(axis=1) / 10) == labels).all()
    assert again.tolist() == labels
    assert names == [str(label) for label in labels]


def test_a_mixture_of_lists_is_a_list():
    """Records that are not numbers could not be mixed."""
    words = [lambda n, _: [{"word": "a"}] * n, lambda n, _: [{"word": "b"}] * n]
    drawn = draw(mixture(words), 100, rng(19))
    assert type(drawn) is list
    assert {record["word"] for record in drawn} == {"a", "b"}


def test_mixtures_of_mixtures():
    """The weights of the inner mixture would be ignored."""
    inner = mixture([uniform(0, 1), uniform(1, 2)], [1, 3])
    found = np.bincount(mixture([inner, uniform(2, 3)], [1, 1]).draw(20_000, rng(20)).astype(int))
    for count, chance in zip(found.tolist(), [0.125, 0.375, 0.5], strict=True):
        assert stats.binomtest(count, 20_000, chance).pvalue > ALARM / 3


def test_the_dtype_of_a_mixture_does_not_depend_on_chance():
    """The two records that show P's dtype may both be integers: private floats would then be rounded."""
    sampler = mixture([stats.poisson(3), uniform(0, 1)])
    assert {sampler.draw(n, rng(seed)).dtype for n in (1, 2, 50) for seed in range(20)} == {
        np.dtype(np.float64)
    }


# --- supports ---


@for_each(
    ("sampler", "low", "high"),
    [
        (uniform(0, 100), 0, 100),
        (uniform([0, 1], [2, 3]), [0, 1], [2, 3]),
        (uniform(0, 1, size=2), [0, 0], [1, 1]),
        (normal(40, 12, low=0, high=120), 0, 120),
        (normal(40, 12, low=0), 0, inf),
        (normal(40, 12, high=0), -inf, 0),
        (normal([0, 0], 1, low=[0, -inf]), [0, -inf], [inf, inf]),
        (normal([0, 0], cov=np.eye(2), low=-1, high=1), [-1, -1], [1, 1]),
        (mixture([uniform(0, 1), uniform(5, 6)]), 0, 6),
        (mixture([uniform(0, 1), normal(0, 1, low=-3)]), -3, inf),
        (as_sampler(stats.expon(2)), 2, inf),
        (as_sampler(stats.uniform(2, 3)), 2, 5),
        (as_sampler(stats.binom(7, 0.5)), 0, 7),
        (as_sampler(stats.beta(2, 3)), 0, 1),
        (from_function(spenders, support=(0, inf)), 0, inf),
        (from_function(spenders, support=([0, 1], 2)), [0, 1], [2, 2]),
    ],
    ids=repr,
)
def test_supports(sampler, low, high):
    """Private records would be clipped to other bounds than P's, or not at all."""
    found = sampler.support
    assert np.array_equal(found[0], low)
    assert np.array_equal(found[1], high)


@for_each(
    "sampler",
    [
        normal(40, 12),
        normal([0, 0], cov=np.eye(2)),
        from_function(spenders),
        mixture([uniform(0, 1), spenders]),
        mixture([uniform(0, 1), normal()]),
        mixture([uniform(0, 1), Dice()]),
        as_sampler(stats.multivariate_normal([0, 0])),
    ],
    ids=repr,
)
def test_no_support_is_claimed_that_is_not_known(sampler):
    """Private records would be clipped to bounds that nobody promised."""
    assert sampler.support is None


# --- equality ---


SAME = [
    (uniform(0, 100), uniform(0.0, 100.0)),
    (uniform(0, 1, size=2), uniform([0, 0], [1.0, 1.0])),
    (uniform(0, 1, size=(2, 1)), uniform(np.zeros((2, 1)), 1)),
    (uniform(-0.0, 1), uniform(0, 1)),
    (normal(), normal(0, 1)),
    (normal([0, 0], 2), normal([0.0, 0.0], [2, 2])),
    (normal([0, 0], 2, low=0), normal([0, 0], 2, low=[0, 0])),
    (normal(0, [2, 2], low=0), normal([0, 0], 2, low=[0, 0])),
    (normal([0, 0], cov=np.eye(2)), normal((0, 0), cov=[[1, 0], [0, 1.0]])),
    (normal(0, 1, low=0), normal(0, 1, low=0, high=inf)),
    (normal(0, 1, low=-inf, high=inf), normal(0, 1)),
    (mixture([uniform(), normal()], [1, 2]), mixture([uniform(), normal()], [10, 20])),
    (mixture([uniform(), normal()]), mixture((uniform(), normal()), [0.5, 0.5])),
    (mixture([stats.norm(0, 1), spenders]), mixture([stats.norm(), from_function(spenders)])),
    (from_function(spenders), as_sampler(spenders)),
    (from_function(spenders, support=(0, 1)), from_function(spenders, support=(0.0, 1.0))),
    (as_sampler(stats.expon(scale=2)), as_sampler(stats.expon(0, 2))),
    (as_sampler(stats.norm), as_sampler(stats.norm(loc=0, scale=1))),
    (as_sampler(stats.gamma(2)), as_sampler(stats.gamma(a=2, scale=1.0))),
    (as_sampler(stats.poisson(3)), as_sampler(stats.poisson(mu=3.0))),
    (
        as_sampler(stats.multivariate_normal([0, 0], np.eye(2))),
        as_sampler(stats.multivariate_normal([0, 0], np.eye(2))),
    ),
]
DIFFERENT = [
    (uniform(0, 100), uniform(0, 101)),
    (uniform(0, 1), uniform(0, 1, size=1)),
    (uniform(0, 1, size=2), uniform(0, 1, size=3)),
    (uniform(0, 1), normal(0, 1)),
    (normal(0, 1), normal(0, 1, low=0)),
    (normal(0, 1, low=0), normal(0, 1, high=0)),
    (normal(0, 1), normal(0, 2)),
    (normal([0, 0], cov=np.eye(2)), normal([0, 0], cov=2 * np.eye(2))),
    (mixture([uniform(), normal()], [1, 2]), mixture([uniform(), normal()], [2, 1])),
    (mixture([uniform(), normal()]), mixture([uniform(), normal(), normal()])),
    (from_function(spenders), from_function(scaled)),
    (from_function(spenders), from_function(spenders, support=(0, inf))),
    (as_sampler(stats.expon(scale=2)), as_sampler(stats.expon(scale=3))),
    (as_sampler(stats.expon(scale=2)), as_sampler(stats.halfnorm(scale=2))),
    (as_sampler(stats.expon(scale=2)), as_sampler(stats.expon(2))),
    (
        as_sampler(stats.multivariate_normal([0, 0], np.eye(2))),
        as_sampler(stats.multivariate_normal([0, 0], 2 * np.eye(2))),
    ),
    (as_sampler(stats.dirichlet([1, 2])), as_sampler(stats.dirichlet([2, 1]))),
    (
        as_sampler(stats.rv_discrete(values=([1, 2], [0.5, 0.5]))),
        as_sampler(stats.rv_discrete(values=([1, 2], [0.1, 0.9]))),
    ),
    (
        as_sampler(stats.rv_histogram(np.histogram([0, 1, 1, 3]))),
        as_sampler(stats.rv_histogram(np.histogram([0, 2, 2, 3]))),
    ),
    (uniform(), "uniform(0, 1)"),
    (as_sampler(stats.norm), stats.norm),
]


@for_each(("one", "other"), SAME, ids=repr)
def test_the_same_distribution_is_equal(one, other):
    """The same P written in another way would count as another promise."""
    assert one == other
    assert other == one


@for_each(("one", "other"), SAME, ids=repr)
def test_equal_samplers_have_equal_hashes(one, other):
    """A set or a dict keyed by P would hold the same one twice."""
    assert hash(one) == hash(other)


@for_each(("one", "other"), DIFFERENT, ids=lambda each: repr(each).partition(" at 0x")[0])
def test_different_distributions_are_not_equal(one, other):
    """A guarantee for one P would be taken for a guarantee for another."""
    assert one != other
    assert other != one


# --- reprs ---


EVALUABLE = [
    uniform(),
    uniform(0, 100),
    uniform(-0.5, 1e-9),
    uniform(0, 1e30),
    uniform(0, 1, size=3),
    uniform(0, 1, size=(2, 3)),
    uniform([0, 1], [2, 3.5]),
    uniform(np.zeros((2, 2)), [[1, 2], [3, 4]]),
    normal(),
    normal(40, 12),
    normal(40, 12, low=0, high=120),
    normal(40, 12, low=0),
    normal(40, 12, high=1 / 3),
    normal(0, 1, low=-inf, high=inf),
    normal([0, 1], 2),
    normal([0, 1], [1, 2], low=0),
    normal([0, 1], [1, 2], low=[0, -inf], high=[inf, 3]),
    normal([0, 0], cov=[[1, 0.5], [0.5, 1]]),
    normal([0, 0], cov=[[1, 0.5], [0.5, 1]], low=-1, high=[1, 2]),
    mixture([normal(0.5, 0.1), normal(0.75, 0.05)], weights=[0.4, 0.6]),
    mixture([uniform(), normal(), uniform(1, 2)]),
    mixture([mixture([uniform(), normal()], [1, 2]), uniform(0, 3)], [1, 2]),
    mixture([uniform(i, i + 1) for i in range(6)], [1, 2, 3, 4, 5, 6]),
    from_function(spenders),
    from_function(spenders, support=(0, 10)),
    from_function(spenders, support=([0, 1], 10)),
]


@for_each("sampler", EVALUABLE, ids=repr)
def test_a_repr_is_the_code_that_makes_it(sampler):
    """What a report prints as P could not be put back into the code."""
    assert eval(repr(sampler), {**vars(samplers), "inf": inf, "spenders": spenders}) == sampler


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_mixtures_repr_is_the_code_that_makes_it(weights):
    """The weights that a report prints would make another mixture."""
    sampler = mixture([uniform(0, 1)] * len(weights), weights)
    assert eval(repr(sampler), vars(samplers).copy()) == sampler


@for_each(
    ("sampler", "shown"),
    [
        (uniform(0, 100), "uniform(0, 100)"),
        (uniform(0.0, 1.0, size=3), "uniform(0, 1, size=3)"),
        (uniform([0, 1], [2, 3]), "uniform([0, 1], [2, 3])"),
        (uniform(0, 1e30), "uniform(0, 1e+30)"),
        (normal(40, 12, low=0, high=120), "normal(40, 12, low=0, high=120)"),
        (normal([0, 0], 1, low=0), "normal([0, 0], [1, 1], low=0)"),
        (as_sampler(stats.expon(scale=2)), "scipy.stats.expon(scale=2)"),
        (as_sampler(stats.multivariate_normal([0, 0])), "scipy.stats.multivariate_normal(...)"),
        (as_sampler(lambda n, generator: None), "from_function(<lambda>)"),
        (from_function(spenders, support=(0, 1)), "from_function(spenders, support=(0, 1))"),
        (as_sampler(Callable().__call__), "from_function(__call__)"),
    ],
    ids=repr,
)
def test_reprs_are_readable(sampler, shown):
    """The repr of a private function says what P is: it would say something else."""
    assert repr(sampler) == shown


# --- values ---


@for_each("sampler", [s for s in EVALUABLE if "function" not in repr(s)], ids=repr)
def test_samplers_pickle(sampler):
    """A sampler could not be sent to a worker."""
    back = pickle.loads(pickle.dumps(sampler))
    assert back == sampler
    assert np.array_equal(back.draw(5, rng(26)), sampler.draw(5, rng(26)))


def test_samplers_do_not_change():
    """P could be changed after calibration, by hand or through the arrays it was made of."""
    low, high, weights = np.zeros(2), np.ones(2), np.array([1.0, 2.0])
    box, mix = uniform(low, high), mixture([uniform(), normal()], weights)
    before = repr(box), repr(mix)
    low[:], high[:], weights[:] = -5, 5, 1
    assert (repr(box), repr(mix)) == before
    with pytest.raises(ValueError, match="read-only"):
        operator.setitem(box.support[0], 0, -7)
    with pytest.raises(AttributeError):
        box.low = 3


# --- what is refused ---


@for_each(
    ("make", "message"),
    [
        (lambda: uniform(1, 0), "lower bound 1 must be below the upper bound 0"),
        (lambda: uniform(1, 1), "must be below"),
        (lambda: uniform([0, 5], [1, 2]), "must be below"),
        (lambda: uniform(math.nan, 1), "must be below"),
        (lambda: uniform(0, inf), "infinite bound"),
        (lambda: uniform(-inf, 0), "infinite bound"),
        (lambda: uniform("a", 1), "do not fit"),
        (lambda: uniform(None, 1), "must be below|do not fit"),
        (lambda: uniform(1j, 1), "do not fit"),
        (lambda: uniform([0, 0], [1, 1, 1]), "do not fit"),
        (lambda: uniform([0, 0], 1, size=3), "do not fit"),
        (lambda: uniform([0, 0], 1, size=()), "do not fit"),
        (lambda: uniform(0, 1, size=-1), "size=-1"),
        (lambda: uniform(0, 1, size=0), "size=0"),
        (lambda: uniform(0, 1, size=2.5), "size=2.5"),
        (lambda: uniform(0, 1, size="3"), "size='3'"),
        (lambda: normal("a"), "mean='a' is not a number"),
        (lambda: normal(math.nan), "mean=nan is not finite"),
        (lambda: normal(inf), "mean=inf is not finite"),
        (lambda: normal(0, 0), "std=0 is not a standard deviation: it must be positive"),
        (lambda: normal(0, -1), "must be positive"),
        (lambda: normal(0, [1, -1]), "must be positive"),
        (lambda: normal(0, math.nan), "not finite"),
        (lambda: normal([0, 0], [1, 2, 3]), "must fit"),
        (lambda: normal([0, 0], 1, cov=np.eye(2)), "std or cov, not both"),
        (lambda: normal(0, cov=1), "d x d"),
        (lambda: normal([0, 0], cov=np.eye(3)), "d x d"),
        (lambda: normal([0, 0], cov=[[1, 0.5], [0, 1]]), "symmetric"),
        (lambda: normal([0, 0], cov=[[1, 2], [2, 1]]), "semi-definite"),
        (lambda: normal([0, 0], cov=[[1, math.nan], [math.nan, 1]]), "not finite"),
        (lambda: normal(0, 1, low=1, high=0), "must be below"),
        (lambda: normal(0, 1, low=math.nan), "must be below"),
        (lambda: normal(0, 1, low="a"), "do not fit"),
        (lambda: normal([0, 0], 1, low=[0, 0, 0]), "do not fit"),
        (lambda: normal(0, [1, 2], low=[0, 0, 0]), "fit"),
        (lambda: mixture([]), "no components"),
        (lambda: mixture([uniform(), 3]), "sampler=3 is not a public distribution"),
        (lambda: mixture(uniform()), "components"),
        (lambda: mixture([uniform()], [1, 2]), "do not fit 1 components"),
        (lambda: mixture([uniform(), normal()], [1]), "do not fit 2 components"),
        (lambda: mixture([uniform(), normal()], 1), "do not fit 2 components"),
        (lambda: mixture([uniform(), normal()], [1, -1]), ">= 0"),
        (lambda: mixture([uniform(), normal()], [0, 0]), "not all zero"),
        (lambda: mixture([uniform(), normal()], [1, math.nan]), "not finite"),
        (lambda: mixture([uniform(), normal()], ["a", "b"]), "not a number"),
        (lambda: from_function(3), r"from_function\(3\): draw must be a callable"),
        (lambda: from_function(spenders, support=(1, 0)), "must be below"),
        (lambda: from_function(spenders, support=("a", 0)), "do not fit"),
        (lambda: from_function(spenders, support=5), "support"),
        (lambda: from_function(spenders, support=(0,)), "support"),
        (lambda: from_function(spenders, support=(0, 1, 2)), "support"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    """A slip would surface in the middle of calibration, or as an error about broadcasting."""
    with pytest.raises(SamplerError, match=message):
        make()


def test_the_namespace():
    """A name that the documentation uses would be missing."""
    assert set(samplers.__all__) >= {"Sampler", "as_sampler", "from_function", "mixture", "normal", "uniform"}
    assert all(hasattr(samplers, name) for name in samplers.__all__)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 100), (-3.3, 17.7), (5, 6), (1e300, 1.1e300)])
def test_uniform_draws_what_numpy_does(low, high):
    """Estimates would differ from those that numpy's own method gives with the same seed."""
    ours, theirs = (np.random.Generator(np.random.SFC64(3)) for _ in range(2))
    assert np.array_equal(samplers.uniform(low, high).draw(1001, ours), theirs.uniform(low, high, 1001))
    drawn = samplers.uniform(low, high, size=3).draw(101, ours)
    assert np.array_equal(drawn, theirs.uniform(low, high, (101, 3)))


@pytest.mark.parametrize(("mean", "std"), [(0, 1), (3, 2), (-7.7, 1e-9), (0, 5), (4, 1)])
def test_normal_draws_what_numpy_does(mean, std):
    """Estimates would differ from those that numpy's own method gives with the same seed."""
    ours, theirs = (np.random.Generator(np.random.SFC64(3)) for _ in range(2))
    assert np.array_equal(samplers.normal(mean, std).draw(1001, ours), theirs.normal(mean, std, 1001))


def test_a_range_that_overflows_is_refused():
    """A user would calibrate on infinities and NaN, which the data does not have."""
    for made in (samplers.uniform(-1.7e308, 1.7e308), samplers.uniform(-1.7e308, 1.7e308, size=2)):
        with pytest.raises(SamplerError, match="OverflowError"):
            draw(made, 3, np.random.default_rng(0))
