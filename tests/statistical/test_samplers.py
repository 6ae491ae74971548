"""The samplers draw the distributions that they name.

Every test has a fixed seed and would raise a false alarm for at most FALSE_ALARM of other seeds, shared
among the comparisons that it makes.
"""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privatize.samplers import (
    as_sampler,
    blobs,
    boolean,
    bootstrap,
    categorical,
    choice,
    dates,
    dependent,
    from_function,
    integers,
    labelled,
    marginal,
    mixture,
    normal,
    table,
    uniform,
    with_missing,
)

FALSE_ALARM = 1e-6
N = 30_000


def rng(seed):
    """Return a generator."""
    return np.random.default_rng(seed)


def assert_shares(values, shares, tests=1):
    """Compare how often values occur with probabilities: the chi-square test, nothing else may occur."""
    seen = Counter(values)
    counts = np.array([seen[kind] for kind in shares])
    assert counts.sum() == len(values)
    expected = np.array(list(shares.values()), dtype=float) * len(values)
    assert (counts[expected == 0] == 0).all()
    counts, expected = counts[expected > 0], expected[expected > 0]
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic <= stats.chi2.isf(FALSE_ALARM / tests, max(len(counts) - 1, 1))


def assert_follows(sample, cdf, tests=1):
    """Compare a sample with a distribution function: the Kolmogorov-Smirnov test."""
    assert stats.kstest(sample, cdf).pvalue > FALSE_ALARM / tests


def assert_mean(sample, mean, deviation, tests=1):
    """Compare a mean with what it should be, within a normal's quantile of its standard error."""
    margin = stats.norm.isf(FALSE_ALARM / tests / 2) * deviation / math.sqrt(len(sample))
    assert abs(np.mean(sample) - mean) <= margin


def assert_uncorrelated(one, other, tests=1):
    """Compare a correlation with 0, in units of the null's deviation."""
    limit = stats.norm.isf(FALSE_ALARM / tests / 2) / math.sqrt(len(one))
    assert abs(np.corrcoef(one, other)[0, 1]) <= limit


def test_the_checks_have_teeth():
    """Checks that accept everything would let every sampler through (this cannot raise a false alarm)."""
    drawn = categorical(["a", "b"], p=[0.53, 0.47]).draw(N, rng(1)).tolist()
    with pytest.raises(AssertionError):
        assert_shares(drawn, {"a": 0.5, "b": 0.5})
    with pytest.raises(AssertionError):
        assert_follows(normal(0.1, 1).draw(N, rng(1)), stats.norm(0, 1).cdf)
    with pytest.raises(AssertionError):
        assert_mean(normal(0.1, 1).draw(N, rng(1)), 0, 1)
    x = normal(0, 1).draw(N, rng(1))
    with pytest.raises(AssertionError):
        assert_uncorrelated(x, 0.1 * x + normal(0, 1).draw(N, rng(2)))


# --- values ---


@pytest.mark.parametrize(
    ("sampler", "shares"),
    [
        (categorical(["a", "b", "c"]), {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}),
        (categorical(["a", "b", "c"], p=[1, 2, 7]), {"a": 0.1, "b": 0.2, "c": 0.7}),
        (categorical(["a", "b", "c"], p=[0, 1, 0]), {"a": 0, "b": 1, "c": 0}),
        (categorical(["a", "b", "c"], p=[0.5, 0, 0.5]), {"a": 0.5, "b": 0, "c": 0.5}),
        (choice([3, 1, 2], p=[0.01, 0.09, 0.9]), {3: 0.01, 1: 0.09, 2: 0.9}),
        (choice([False, True]), {False: 0.5, True: 0.5}),
        (boolean(0.3), {True: 0.3, False: 0.7}),
        (boolean(0), {True: 0, False: 1}),
        (boolean(1), {True: 1, False: 0}),
        (integers(-3, 3), dict.fromkeys(range(-3, 4), 1 / 7)),
        (integers(0, 1), {0: 0.5, 1: 0.5}),
        (integers(0, 9).truncated(2.5, 6), dict.fromkeys(range(3, 7), 1 / 4)),
        (integers(0, 9).clip(3, 6), {3: 0.4, 4: 0.1, 5: 0.1, 6: 0.4}),
        (mixture([choice([0, 1]), choice([1, 2])], weights=[1, 3]), {0: 0.125, 1: 0.5, 2: 0.375}),
        (mixture([choice(["a"]), choice(["bb"])], weights=[0.2, 0.8]), {"a": 0.2, "bb": 0.8}),
        (bootstrap(np.array([1, 2, 2, 5])), {1: 0.25, 2: 0.5, 5: 0.25}),
        (bootstrap(["x", "y", "x"]), {"x": 2 / 3, "y": 1 / 3}),
        (
            as_sampler(stats.poisson(3)).truncated(1, 3),
            {k: stats.poisson(3).pmf(k) / stats.poisson(3).pmf([1, 2, 3]).sum() for k in (1, 2, 3)},
        ),
        (
            marginal(uniform(0, 1), lambda p: stats.binom(2, p)),
            {0: 1 / 3, 1: 1 / 3, 2: 1 / 3},  # a uniform prior makes all counts equally likely
        ),
    ],
    ids=repr,
)
def test_values_occur_as_often_as_they_should(sampler, shares):
    """Calibration would see rare values too often, or too seldom (false alarms: 1e-6 per sampler)."""
    assert_shares(np.asarray(sampler.draw(N, rng(3))).tolist(), shares)


def test_categories_of_a_table_occur_as_often_as_they_should():
    """A column in a frame would have other shares than the same distribution alone (false alarms: 1e-6)."""
    sampler = table(c=categorical(["a", "b", "c"], p=[1, 2, 7]), b=boolean(0.3), s=choice(["x", "y"]))
    drawn = sampler.draw(N, rng(4))
    assert_shares(drawn["c"].tolist(), {"a": 0.1, "b": 0.2, "c": 0.7}, tests=3)
    assert_shares(drawn["b"].tolist(), {True: 0.3, False: 0.7}, tests=3)
    assert_shares(drawn["s"].tolist(), {"x": 0.5, "y": 0.5}, tests=3)


@pytest.mark.parametrize("bits", [20, 52])
def test_wide_integers_are_uniform(bits):
    """Large numbers would be drawn more often than small ones (false alarms: 1e-6 per range)."""
    drawn = integers(-(2**bits), 2**bits).draw(N, rng(5))
    assert_follows(drawn, stats.uniform(-(2**bits), 2 ** (bits + 1)).cdf)
    assert_shares((drawn % 2 == 0).tolist(), {True: 0.5, False: 0.5})


# --- dates ---


def test_days_are_uniform_and_include_both_ends():
    """The first or the last day would never be drawn, or twice as often (false alarms: 1e-6)."""
    drawn = dates("2024-02-27", "2024-03-02").draw(N, rng(6))
    days = ["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"]
    assert_shares(drawn.astype(str).tolist(), dict.fromkeys(days, 0.2))


def test_seconds_are_uniform_and_include_both_ends():
    """The last second would never be drawn, or the last day only at midnight (false alarms: 1e-6)."""
    drawn = dates("2024-01-01 00:00:57", "2024-01-01 00:01:01", times=True).draw(N, rng(7))
    ends = np.datetime64("2024-01-01T00:00:57")
    assert_shares((drawn - ends).astype(int).tolist(), dict.fromkeys(range(5), 0.2), tests=2)
    drawn = dates("2024-01-01", "2024-01-02", times=True).draw(N, rng(7))
    passed = (drawn - np.datetime64("2024-01-01T00:00:00")).astype(int)
    assert_follows(passed, stats.randint(0, 2 * 86_400).cdf, tests=2)


def test_instants_of_a_long_day_are_uniform():
    """The hour that the clock shows twice would be drawn only as often as the others (false alarms: 1e-6)."""
    sampler = table(z=dates("2024-10-27", "2024-10-27", tz="Europe/Berlin"))
    hours = sampler.draw(N, rng(8))["z"].dt.hour
    assert_shares(hours.tolist(), {hour: (2 if hour == 2 else 1) / 25 for hour in range(24)})


# --- numbers ---


@pytest.mark.parametrize(
    ("sampler", "inner", "low", "high"),
    [
        (normal(0, 1).truncated(-1, 2), stats.norm(0, 1), -1, 2),
        (normal(5, 2).truncated(8), stats.norm(5, 2), 8, math.inf),
        (as_sampler(stats.norm(0, 1)).truncated(-1, 2), stats.norm(0, 1), -1, 2),
        (as_sampler(stats.gamma(2, scale=3)).truncated(1, 10), stats.gamma(2, scale=3), 1, 10),
        (as_sampler(stats.gamma(2)).truncated(high=1), stats.gamma(2), 0, 1),
        (as_sampler(stats.gamma(2)).truncated(low=5), stats.gamma(2), 5, math.inf),
        (from_function(lambda n, g: g.exponential(size=n)).truncated(1, 2), stats.expon(), 1, 2),
        (uniform(0, 1).truncated(0.5).truncated(high=0.75), stats.uniform(), 0.5, 0.75),
        (uniform(0, 1).map(lambda x: -np.log(x)).truncated(0.5), stats.expon(), 0.5, math.inf),
    ],
    ids=lambda each: repr(each).partition(" at 0x")[0],
)
def test_truncated_samplers_have_the_conditional_distribution(sampler, inner, low, high):
    """The bounds would move P's mass to another place (false alarms: 1e-6 per sampler)."""
    below, above = inner.cdf(low), inner.cdf(high)
    drawn = sampler.draw(N, rng(9))
    assert_follows(drawn, lambda x: np.clip((inner.cdf(x) - below) / (above - below), 0, 1))


def test_a_truncated_sampler_drawn_in_small_pieces():
    """The first records of a small draw would be others than those of a large one (false alarms: 1e-6)."""
    sampler, generator = as_sampler(stats.norm(0, 1)).truncated(-1, 0.5), rng(10)
    drawn = np.concatenate([sampler.draw(3, generator) for _ in range(2000)])
    below, above = stats.norm.cdf([-1, 0.5])
    assert_follows(drawn, lambda x: np.clip((stats.norm.cdf(x) - below) / (above - below), 0, 1))


def test_clipped_samplers_have_their_mass_at_the_bounds():
    """What lies outside would be drawn again, not moved (false alarms: 1e-6)."""
    drawn = normal(0, 1).clip(-1, 2).draw(N, rng(11))
    at = {-1: stats.norm.cdf(-1), 2: stats.norm.sf(2)}
    where = np.where(drawn == -1, -1, np.where(drawn == 2, 2, 0))
    assert_shares(where.tolist(), at | {0: 1 - sum(at.values())}, tests=2)
    low, high = stats.norm.cdf([-1, 2])
    assert_follows(drawn[where == 0], lambda x: (stats.norm.cdf(x) - low) / (high - low), tests=2)


def test_mapped_samplers_have_the_image_distribution():
    """The function would be applied to something else (false alarms: 1e-6)."""
    assert_follows(normal(3, 0.5).map(np.exp).draw(N, rng(12)), stats.lognorm(0.5, scale=math.exp(3)).cdf)


# --- missing values ---


def test_missing_values_are_as_many_as_they_should_be_and_independent():
    """Large values would be missing more often than small ones (false alarms: 1e-6)."""
    sampler = table(
        a=uniform(0, 1),
        b=with_missing(uniform(0, 1), 0.2),
        c=with_missing(with_missing(uniform(0, 1), 0.5), 0.5),
    )
    drawn = sampler.draw(N, rng(13))
    missing = drawn["b"].isna()
    assert_shares(missing.tolist(), {True: 0.2, False: 0.8}, tests=6)
    assert_shares(drawn["c"].isna().tolist(), {True: 0.75, False: 0.25}, tests=6)
    assert_follows(drawn["b"].dropna(), stats.uniform().cdf, tests=6)
    assert_uncorrelated(missing, drawn["a"], tests=6)
    assert_uncorrelated(missing, drawn["c"].isna(), tests=6)
    assert_uncorrelated(missing[1:], missing[:-1], tests=6)


# --- tables ---


def test_columns_are_independent_of_each_other_and_records_too():
    """Columns that should be independent would be drawn from the same random numbers (false alarms: 1e-6)."""
    sampler = table(a=uniform(0, 1), b=normal(0, 1), c=boolean(), d=integers(0, 99), frame="dict")
    drawn = {name: values.astype(float) for name, values in sampler.draw(N, rng(14)).items()}
    names = list(drawn)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            assert_uncorrelated(drawn[one], drawn[other], tests=10)
        assert_uncorrelated(drawn[one][1:], drawn[one][:-1], tests=10)


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "dict", "records"])
def test_a_projection_has_the_columns_distribution(frame):
    """A function of one column would be calibrated on another P than the table's (false alarms: 1e-6)."""
    sampler = table(a=normal(40, 12).truncated(0, 120), b=lambda c: 2 * c["a"], c=boolean(), frame=frame)
    low, high = stats.norm(40, 12).cdf([0, 120])

    def cdf(x):
        return (stats.norm(40, 12).cdf(x) - low) / (high - low)

    assert_follows(np.asarray(sampler["a"].draw(8000, rng(15))), cdf, tests=3)
    assert_follows(np.asarray(sampler["b"].draw(8000, rng(16))) / 2, cdf, tests=3)
    assert_follows(np.asarray(sampler[["c", "a"]]["a"].draw(8000, rng(17))), cdf, tests=3)


def test_a_dependent_column_has_the_regression_that_was_written():
    """Columns that depend on each other would be drawn independently (false alarms: 1e-6)."""

    def earned(columns, generator):
        return generator.normal(1000 + 500 * columns["age"], 9000)

    sampler = table(sex=boolean(), age=integers(18, 70), income=dependent(earned))
    for drawn in (sampler.draw(N, rng(18)), sampler[["income", "age"]].draw(N, rng(19))):
        age, rest = drawn["age"], drawn["income"] - 1000 - 500 * drawn["age"]
        assert_follows(rest, stats.norm(0, 9000).cdf, tests=6)
        assert_uncorrelated(rest, age, tests=6)
        slope, _ = np.polyfit(age, drawn["income"], 1)
        margin = stats.norm.isf(FALSE_ALARM / 12) * 9000 / (np.std(age) * math.sqrt(N))
        assert abs(slope - 500) <= margin


# --- mixtures ---


def test_a_mixture_of_tables_has_its_shares_row_by_row():
    """Rows would come from the components in other shares, or in blocks (false alarms: 1e-6)."""
    one = table(a=normal(0, 1), c=categorical(["x", "y"], p=[0.9, 0.1]))
    other = table(a=normal(100, 1), c=categorical(["x", "y"], p=[0.2, 0.8]))
    drawn = mixture([one, other], weights=[0.3, 0.7]).draw(N, rng(20))
    second = drawn["a"] > 50
    assert_shares(second.tolist(), {True: 0.7, False: 0.3}, tests=5)
    assert_shares(drawn["c"][second].tolist(), {"x": 0.2, "y": 0.8}, tests=5)
    assert_shares(drawn["c"][~second].tolist(), {"x": 0.9, "y": 0.1}, tests=5)
    assert_uncorrelated(second, np.arange(N), tests=5)
    assert_uncorrelated(second[1:], second[:-1].to_numpy(), tests=5)


# --- learners ---


def test_clouds_are_where_they_should_be():
    """A classifier would be calibrated on easier or harder data than P says (false alarms: 1e-6)."""
    centers, std = np.array([[0, 0], [3, -1], [10, 5]]), [1, 2, 0.5]
    X, y = blobs(centers, std, labels=["a", "b", "c"], weights=[1, 2, 7]).draw(N, rng(21))
    assert_shares(y.tolist(), {"a": 0.1, "b": 0.2, "c": 0.7}, tests=10)
    for label, center, spread in zip("abc", centers, std, strict=True):
        for at in (0, 1):
            assert_follows(X[y == label, at], stats.norm(center[at], spread).cdf, tests=10)
        assert_uncorrelated(X[y == label, 0], X[y == label, 1], tests=10)


def test_clouds_in_a_box_are_truncated():
    """The mass outside of the box would be in the wrong place (false alarms: 1e-6)."""
    X, y = blobs([[0, 0], [1, 2]], [1, 2], low=[-0.5, -math.inf], high=[2, 1]).draw(N, rng(22))
    assert_shares(y.tolist(), {0: 0.5, 1: 0.5}, tests=5)
    for label, center, spread in ((0, (0, 0), 1), (1, (1, 2), 2)):
        for at, (low, high) in enumerate([(-0.5, 2), (-math.inf, 1)]):
            inner = stats.norm(center[at], spread)
            below, above = inner.cdf(low), inner.cdf(high)
            assert_follows(
                X[y == label, at], lambda x, i=inner, b=below, a=above: (i.cdf(x) - b) / (a - b), tests=5
            )


def test_labels_are_independent_of_features_unless_a_function_makes_them():
    """A classifier would find a dependence in P where there is none (false alarms: 1e-6)."""
    X, y = labelled(normal([0, 0]), boolean(0.3)).draw(N, rng(23))
    assert_shares(y.tolist(), {True: 0.3, False: 0.7}, tests=3)
    assert_uncorrelated(X[:, 0], y, tests=3)

    def noisy(X, generator):
        return X[:, 0] + generator.normal(0, 2, len(X))

    X, y = labelled(normal([0, 0]), noisy).draw(N, rng(24))
    assert_follows(y - X[:, 0], stats.norm(0, 2).cdf, tests=3)


# --- public data ---


def test_rows_of_public_data_are_equally_likely():
    """Some public records would be drawn more often than others (false alarms: 1e-6)."""
    public = pd.DataFrame({"a": range(20), "b": list("abcdefghijklmnopqrst")})
    drawn = bootstrap(public).draw(N, rng(25))
    assert_shares(drawn["b"].tolist(), dict.fromkeys("abcdefghijklmnopqrst", 1 / 20), tests=2)
    assert_uncorrelated(drawn["a"][1:], drawn["a"][:-1], tests=2)


@pytest.mark.parametrize("smooth", [0.05, 0.5])
def test_smoothing_is_a_normal_kernel_within_the_range(smooth):
    """P would be rougher or smoother than it says (false alarms: 1e-6 per width)."""
    public = np.array([0.0, 1.0, 1.0, 4.0, 10.0])
    width = smooth * public.std()

    def cdf(x):
        x = np.asarray(x, dtype=float)
        inside = stats.norm.cdf((x[..., None] - public) / width).mean(axis=-1)
        return np.where(x >= 10, 1, np.where(x < 0, 0, inside))

    drawn = bootstrap(public, smooth=smooth).draw(N, rng(26))
    assert drawn.min() == 0 and drawn.max() == 10
    middle = drawn[(drawn > 0) & (drawn < 10)]
    low, high = cdf(0.0), stats.norm.cdf((10 - public) / width).mean()
    assert_follows(middle, lambda x: (cdf(x) - low) / (high - low), tests=3)
    assert_shares((drawn == 0).tolist(), {True: low, False: 1 - low}, tests=3)
    assert_shares((drawn == 10).tolist(), {True: 1 - high, False: high}, tests=3)


def test_smoothing_has_the_width_of_each_column():
    """Columns in different units would be smoothed with one another's width (false alarms: 1e-6)."""
    # The ends of the range are far away, so that hardly anything is moved back from there.
    public = pd.DataFrame({"a": [-1e3, *[0.0] * 98, 1e3], "b": [-1.0, *[0.0] * 98, 1.0]})
    drawn = bootstrap(public, smooth=0.1).draw(N, rng(27))
    for name, scale in (("a", 1e3), ("b", 1.0)):
        width = 0.1 * public[name].std(ddof=0)
        near = drawn[name][abs(drawn[name]) < scale / 2]
        assert_follows(near, stats.norm(0, width).cdf, tests=3)
    assert_uncorrelated(drawn["a"][abs(drawn["a"]) < 500], drawn["b"][abs(drawn["a"]) < 500], tests=3)


# --- the Bayesian choice ---


def noise(mean, generator):
    """Add normal noise to a mean."""
    return generator.normal(mean, 4)


@pytest.mark.parametrize("likelihood", [noise, lambda mean: stats.norm(mean, 4)], ids=["function", "scipy"])
def test_a_parameter_per_record_adds_the_variances(likelihood):
    """P would be the likelihood at one parameter, not the marginal (false alarms: 1e-6 per likelihood)."""
    drawn = marginal(normal(10, 3), likelihood).draw(N, rng(28))
    assert_follows(drawn, stats.norm(10, 5).cdf, tests=2)
    assert_uncorrelated(drawn[1:], drawn[:-1], tests=2)


@pytest.mark.parametrize("likelihood", [noise, lambda mean: stats.norm(mean, 4)], ids=["function", "scipy"])
def test_a_parameter_per_dataset_correlates_records(likelihood):
    """Records of one data set would be independent, though they share a parameter (false alarms: 1e-6)."""
    sampler, generator = marginal(normal(10, 3), likelihood, per="dataset"), rng(29)
    drawn = np.array([sampler.draw(4, generator) for _ in range(2000)])
    # Any two records of a data set: correlation 9/25; Fisher's transformation is normal.
    for one, other in ((0, 1), (0, 3), (2, 3)):
        found = np.arctanh(np.corrcoef(drawn[:, one], drawn[:, other])[0, 1])
        assert abs(found - np.arctanh(9 / 25)) <= stats.norm.isf(FALSE_ALARM / 20) / math.sqrt(2000 - 3)
    for at in range(4):
        assert_follows(drawn[:, at], stats.norm(10, 5).cdf, tests=10)
    within = (drawn - drawn.mean(axis=1, keepdims=True)) ** 2
    assert_mean(within.sum(axis=1) / 3, 16, 16 * math.sqrt(2 / 3), tests=10)
    assert_follows(drawn.mean(axis=1), stats.norm(10, math.sqrt(9 + 4)).cdf, tests=10)


# --- records are exchangeable ---


@pytest.mark.parametrize(
    "sampler",
    [
        uniform(0, 1),
        integers(0, 99),
        as_sampler(stats.gamma(2)).truncated(1, 4),
        mixture([uniform(0, 1), normal(5, 1)], weights=[1, 2]),
        bootstrap(np.arange(30.0), smooth=0.1),
        marginal(normal(0, 1), noise),
        marginal(normal(0, 1), noise, per="dataset"),
        table(a=with_missing(uniform(0, 1), 0.5).truncated(0.25), frame="dict")["a"],
    ],
    ids=repr,
)
def test_the_first_record_has_the_distribution_of_the_last(sampler):
    """The replaced record of a pair would be another kind of record (false alarms: 1e-6 per sampler)."""
    generator = rng(30)
    drawn = np.array([sampler.draw(5, generator) for _ in range(3000)])
    assert stats.ks_2samp(drawn[:1500, 0], drawn[1500:, 4]).pvalue > FALSE_ALARM / 2
    assert stats.ks_2samp(drawn[:1500, 4], drawn[1500:, 2]).pvalue > FALSE_ALARM / 2
