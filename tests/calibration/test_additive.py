"""Sums over records are calibrated on two records for each pair; functions that are no such sums are not."""

import math
import pickle
import typing

import cloudpickle
import numpy as np
import pytest
from scipy import stats

from privatize import (
    Bernstein,
    Exponential,
    Laplace,
    audit,
    plan,
    privatize,
    samplers,
    sums,
)
from privatize.calibration.additive import rows_of
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.evaluators.summed import SummedEvaluator
from privatize.errors import (
    DataError,
    PairError,
    SettingsError,
)
from privatize.identity.fingerprint import fingerprint
from privatize.mechanisms.base import l1
from privatize.samplers import Distribution
from privatize.samplers.base import Traits, traits_of
from privatize.sums import additive
from tests.calibration.estimates import estimate
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
PLANE = samplers.uniform([0, -1, 5], [1, 1, 9])
EDGES = np.linspace(0, 1, 11)
LATTICE = np.linspace(0, 1, 11)
FALSE_ALARM = 1e-6


def density(x, points=LATTICE, h=0.1):
    """Estimate a density by hand."""
    kernels = [np.exp(-((x - p) ** 2) / (2 * h * h)).mean() for p in points]
    return np.array(kernels) / (h * math.sqrt(2 * math.pi))


def tally(x):
    """Count three categories by hand."""
    values = x.tolist()
    return {c: values.count(c) for c in ("a", "b", "c")}


def moments(x):
    """Compute second moments by hand."""
    return (x.T @ x / len(x))[np.triu_indices(x.shape[1])]


LETTERS = samplers.categorical(["a", "b", "c", "d"], p=[0.5, 0.2, 0.2, 0.1])
READY = {
    "means": (sums.means(), lambda x: x.mean(), UNIT),
    "means of columns": (sums.means(), lambda x: x.mean(axis=0), PLANE),
    "counts": (sums.counts(["a", "b", "c"]), tally, LETTERS),
    "histogram": (sums.histogram(EDGES), lambda x: np.histogram(x, EDGES)[0], UNIT),
    "second moments": (sums.second_moments(), moments, PLANE),
    "kde": (sums.kde(LATTICE, 0.1), density, UNIT),
}


@pytest.mark.parametrize("name", READY)
class TestReady:
    """The ready-made sums have the values and gaps of functions that are written by hand."""

    def test_value(self, name):
        """A ready-made sum would compute something else than its name says."""
        ours, plain, sampler = READY[name]
        data = sampler.draw(300, np.random.default_rng(1))
        a, b = ours(data), plain(data)
        assert type(a) is type(b) or isinstance(b, float)
        assert a == b if isinstance(a, dict) else np.allclose(a, b, rtol=1e-13, atol=0)

    def test_distribution_of_gaps(self, name):
        """Gaps of another distribution would mean another amount of noise (false alarm 1e-6 each)."""
        ours, plain, sampler = READY[name]
        made = plan(0.05, 600)
        one = estimate(ours, n=40, sampler=sampler, plan=made, min_sensitivity=0.1).gaps
        other = estimate(plain, n=40, sampler=sampler, plan=made, min_sensitivity=0.1, seed=2).gaps
        # Rounded, because gaps that are equal must stay equal.
        assert stats.ks_2samp(one.round(12), other.round(12)).pvalue > FALSE_ALARM
        assert one.max() > 0

    def test_gaps_on_the_same_records(self, name):
        """On the records of a pair, the function by hand would move farther than the gap of the sum."""
        ours, plain, sampler = READY[name]
        pairs = evaluator(ours, n=40, sampler=sampler, norm=l1, seed=3)
        found = pairs.evaluate((0, 300), pairs.learned)
        assert isinstance(pairs, SummedEvaluator)
        for i in (0, 1, 7, 255, 256, 299):
            pair = pairs.pairs.pair_at(i)
            drawn, position = pair.records, pair.position
            one, other = drawn[:40], drawn[:40].copy()
            other[position] = drawn[40]
            a, b = plain(one), plain(other)
            gap = sum(abs(a[c] - b[c]) for c in a) if isinstance(a, dict) else np.abs(np.subtract(a, b)).sum()
            assert found.gaps[i] == pytest.approx(gap, rel=1e-9, abs=1e-13)
            assert found.gaps[i] >= gap  # rounding is added

    def test_release(self, name):
        """A private ready-made sum would return another type than the sum itself."""
        ours, _, sampler = READY[name]
        private = privatize(epsilon=1e5, gamma=0.2, sampler=sampler, seed=1, min_sensitivity=1e-3)(ours)
        data = sampler.draw(300, np.random.default_rng(1))
        a, b = private(data), ours(data)
        assert type(a) is type(b)
        assert np.allclose(*(list(v.values()) if isinstance(v, dict) else v for v in (a, b)), atol=1e-3)

    def test_pickle_and_fingerprint(self, name):
        """Workers would get another function, or another process would not find the stored estimate."""
        ours = READY[name][0]
        again = pickle.loads(pickle.dumps(ours))
        assert fingerprint(again) == fingerprint(ours)
        assert again.__name__ == ours.__name__ == name.split()[0] + ("_moments" if "moments" in name else "")


class TestCalls:
    """However the function is called, its rows are found, and it gets its other arguments."""

    def test_decorators(self):
        """Both forms of the decorator keep name, documentation and signature."""

        @additive(average=False)
        def above(x, limit=0.5):
            """Count."""
            return x > limit

        assert above.__name__ == "above" and above.__doc__ == "Count."
        assert above(np.array([0.1, 0.7])) == 1 and above(np.array([0.1, 0.7]), limit=0.9) == 0
        assert type(above(np.array([0.1, 0.7]))) is int
        assert repr(above) == "<sum of above over records>"
        private = privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1)(above)
        assert private.estimate(100).value == private.estimate(100, limit=0.4).value == 1.0
        assert isinstance(private(np.full(100, 0.3)), int)

    def test_aligned_data_and_other_arguments(self):
        """Several aligned containers are drawn and evaluated together."""

        @additive
        def product(X, scale, y):
            return X * y[:, None] * scale

        P = samplers.labelled(samplers.uniform([0, 0], [1, 2]), samplers.categorical([0, 1]))
        private = privatize(epsilon=1, gamma=0.2, sampler=P, data=("X", "y"), seed=1)(product)
        plain = privatize(epsilon=1, gamma=0.2, sampler=P, data=("X", "y"), seed=1)(
            lambda X, scale, y: (X * y[:, None] * scale).mean(axis=0)
        )
        assert private.estimate(50, 3.0).value == pytest.approx(plain.estimate(50, 3.0).value, rel=0.3)
        assert private.estimate(50, 6.0).value == pytest.approx(2 * private.estimate(50, 3.0).value)

    def test_methods(self):
        """A sum that is a method would be calibrated slowly, on entire datasets."""

        class Survey:
            """Has a limit."""

            def __init__(self, limit):
                self.limit = limit

            @privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1)
            @additive(average=False)
            def above(self, x):
                """Count."""
                return 2 * (x > self.limit)

        assert Survey(0.5).above.estimate(100).value == 2.0
        assert rows_of(Survey(0.5).above.__wrapped__) is not None

    @pytest.mark.parametrize("kind", ["list", "pandas", "polars", "dict"])
    def test_containers(self, kind):
        """Lists, frames and dicts of columns are records as well."""
        table = {"age": samplers.integers(0, 100), "income": samplers.uniform(0, 10)}
        if kind == "list":
            P, g = UNIT.map(lambda x: x.tolist()), lambda x: [v * 2 for v in x]
        else:
            if kind != "dict":
                pytest.importorskip(kind)
            P = samplers.table(table, frame=kind)
            g = additive(lambda d: d["age"] * d["income"]).function
        found = estimate(additive(g), sampler=P)
        assert found.value > 0 and found.m == 79

    def test_means_of_frames(self):
        """The means of a frame are those of its columns, in their order."""
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}, index=["x", "y"])
        assert sums.means()(frame).tolist() == [1.5, 1.0]
        assert sums.means()({"a": [1, 2], "b": [0.5, 1.5]}).tolist() == [1.5, 1.0]
        assert sums.second_moments()(frame).tolist() == [2.5, 1.75, 1.25]
        assert sums.counts([1, 3])(frame["a"]) == {1: 1, 3: 0}
        with pytest.raises(DataError, match="numbers"):
            sums.means()(frame.assign(c=["x", "y"]))

    def test_bernstein(self):
        """A density estimate is released as a polynomial, with points given or chosen by the mechanism."""
        mechanism = Bernstein(lattice=10)
        private = privatize(epsilon=1e5, gamma=0.2, sampler=UNIT, mechanism=mechanism, seed=1)
        x = np.random.default_rng(1).random(200)
        for form in (sums.kde(mechanism.points(), 0.1), sums.kde(None, 0.1)):
            found = private(form)
            assert np.allclose(found.release(x).value(LATTICE), private(density)(x)(LATTICE), atol=1e-2)
            assert found.estimate(200).value == pytest.approx(private(density).estimate(200).value, rel=0.3)

    def test_a_mechanism_that_wraps_the_function(self):
        """If a mechanism wraps the function, the sum inside would not be recognized."""

        class Values:
            def __init__(self, inner):
                self.inner = inner

            def __call__(self, data, s0):
                return self.inner(data, s0)

            def __privatize_rows__(self, rows_of):
                return rows_of(self.inner)

        class Wrapping(Bernstein):
            def evaluate(self, call, opened):
                return Values(super().evaluate(call, opened))

        private = privatize(epsilon=1, gamma=0.2, sampler=UNIT, mechanism=Wrapping(lattice=10), seed=1)
        expected = estimate(sums.kde(LATTICE, 0.1), n=200).gaps
        for form in (sums.kde(LATTICE, 0.1), sums.kde(None, 0.1)):
            assert np.allclose(private(form).estimate(200).gaps, expected, rtol=1e-12)
        assert rows_of(lambda x: x) is None

    def test_exponential_scores(self):
        """Scores that are sums would be measured in another norm than the mechanism's own."""
        scores = additive(lambda x: -np.abs(x[:, None] - LATTICE), average=False)
        private = privatize(epsilon=1e4, gamma=0.2, sampler=UNIT, mechanism=Exponential(LATTICE), seed=1)
        assert private(scores)(np.full(100, 0.31)) == LATTICE[3]
        found = estimate(scores, norm=Exponential(LATTICE).norm)
        plain = estimate(lambda x: -np.abs(x[:, None] - LATTICE).sum(axis=0), norm=Exponential(LATTICE).norm)
        assert found.value == pytest.approx(plain.value, rel=0.3)

    def test_scaled(self):
        """Weights for columns of different size would not be learned for sums."""
        private = privatize(
            epsilon=1, gamma=0.2, sampler=PLANE, mechanism=Laplace(scaled="relative"), seed=1
        )(sums.means())
        assert private.estimate(100).value > 0


class TestIdentity:
    """Stored estimates of sums and of other functions are never mixed up."""

    def test_keys_differ(self):
        """The function itself, its mean and its sum have three keys."""
        keys = {fingerprint(f) for f in (np.square, additive(np.square), additive(np.square, average=False))}
        assert len(keys) == 3
        assert fingerprint(sums.histogram([0, 1])) != fingerprint(sums.histogram([0, 2]))
        assert fingerprint(sums.counts(["a"])) != fingerprint(sums.counts(["b"]))
        assert fingerprint(sums.kde([0.0], 1)) != fingerprint(sums.kde([0.0], 2))

    def test_cloudpickle(self):
        """A sum of a lambda can be sent to other processes."""
        again = cloudpickle.loads(cloudpickle.dumps(additive(lambda x: x + 1)))
        assert again(np.array([1.0, 2.0])) == 2.5


class TestSettings:
    """Wrong arguments of ready-made sums are refused with value, rule and remedy."""

    @for_each("edges", [[], [1], [1, 1], [2, 1], [0, math.nan], [[0, 1]], "ab", None])
    def test_edges(self, edges):
        """Bins without a width would count nothing."""
        with pytest.raises(SettingsError, match="edges="):
            sums.histogram(edges)

    @for_each("categories", [[], ["a", "a"], [1, True], [None], [math.nan], "ab", [("a",)]])
    def test_categories(self, categories):
        """A category would be counted twice, or could never be found."""
        with pytest.raises(SettingsError, match="categories="):
            sums.counts(categories)

    @for_each("bandwidth", [0, -1, math.nan, math.inf, "1", True, None])
    def test_bandwidth(self, bandwidth):
        """A kernel without a width would divide by zero."""
        with pytest.raises(SettingsError, match="bandwidth="):
            sums.kde([0.0], bandwidth)

    @pytest.mark.parametrize("points", [[], [math.nan], [[[0.0]]], "ab"])
    def test_points(self, points):
        """A density without points, or at points that are not numbers, could not be released."""
        with pytest.raises(SettingsError, match="points="):
            sums.kde(points, 1.0)

    def test_dimensions(self):
        """Records and points of different dimensions would fail inside numpy or SciPy."""
        with pytest.raises(DataError, match="points of shape"):
            sums.kde([0.0, 1.0], 1.0)(np.zeros((3, 2)))
        with pytest.raises(DataError, match="one number for each"):
            sums.histogram([0, 1])(np.zeros((3, 2)))
        with pytest.raises(DataError, match="one value for each"):
            sums.counts([0])(np.zeros((3, 2)))

    def test_matrix(self):
        """The matrix would differ from XᵀX/n, or be made from a vector that is no triangle."""
        x = PLANE.draw(100, np.random.default_rng(1))
        assert np.allclose(sums.matrix(sums.second_moments()(x)), x.T @ x / 100)
        assert sums.matrix(4.0).tolist() == [[4.0]]
        for wrong in ([], [1.0, 2.0], [[1.0]]):
            with pytest.raises(SettingsError, match="triangle"):
                sums.matrix(wrong)


def test_histogram_counts_as_numpy_does():
    """Edges, values outside, missing values and infinities are counted as numpy counts them."""
    x = np.array([-1, 0, 0.5, 1, 1.5, 2, 2.0000001, np.nan, np.inf, -np.inf])
    for edges in ([0, 1, 2], [-np.inf, 0, np.inf], [0.5, 1]):
        assert sums.histogram(edges)(x).tolist() == np.histogram(x, edges)[0].tolist()


def test_kde_in_two_dimensions():
    """In several dimensions the density would not be that of a normal kernel."""
    rng = np.random.default_rng(1)
    x, points = rng.normal(size=(50, 2)), rng.normal(size=(4, 2))
    expected = [stats.multivariate_normal(p, 0.3**2 * np.eye(2)).pdf(x).mean() for p in points]
    assert np.allclose(sums.kde(points, 0.3)(x), expected)


def test_audits_hold():
    """An audit on fresh pairs would find that the promise is broken (false alarm 1%, fixed seed)."""
    private = privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1)(sums.kde(LATTICE, 0.1))
    found = audit(private, 200, pairs=1000, releases=1000, under=[samplers.normal(0.5, 0.1)], seed=2)
    assert found.holds and 0 < found.coverage.beyond < 100


def test_pair_is_used_if_given():
    """A `pair=` for a sum would be ignored, or not checked."""

    def both(data, position, replacement):
        a = data.mean()
        return a, a + (replacement - data[position]) / len(data)

    assert np.allclose(estimate(sums.means(), pair=both).gaps, estimate(np.mean).gaps, atol=1e-15)
    with pytest.raises(PairError, match="pair= disagrees"):
        estimate(sums.means(), pair=lambda data, position, replacement: (data.mean(), data.mean() + 1e-9))


def _shared_mean(theta, rng):
    """Draw records around one common mean: they depend on each other."""
    return rng.normal(theta.mean(), 0.1, len(theta)) + rng.normal(0, 3)


class TestIndependentOnlyIfKnown:
    """Two records replace a dataset only if the library knows that P draws them independently."""

    def test_the_users_own_likelihood(self):
        """Sums over records that share a mean would be calibrated on two records, with half the noise."""

        def spread(theta, rng):
            return np.sort(theta) * len(theta) ** 0.2 + rng.random(len(theta))

        P = samplers.marginal(samplers.normal(0, 1), spread)
        assert not traits_of(P).iid
        f = additive(np.positive)
        assert not isinstance(evaluator(f, n=100, sampler=P, norm=l1, seed=1), SummedEvaluator)
        assert np.array_equal(
            estimate(f, n=100, sampler=P).gaps, estimate(lambda x: f(x), n=100, sampler=P).gaps
        )

    def made_of(self, part):
        """Return samplers of every kind that is made of another one."""
        yield samplers.table(a=part, b=samplers.uniform(0, 1))
        yield samplers.table(a=part, b=samplers.uniform(0, 1))["a"]
        yield samplers.table(a=part, b=samplers.uniform(0, 1))[["b", "a"]]
        yield samplers.labelled(samplers.table(a=part, b=samplers.uniform(0, 1)), "b")
        yield samplers.labelled(samplers.uniform(0, 1), part)
        yield samplers.labelled(part, samplers.uniform(0, 1))
        yield samplers.mixture([part, samplers.uniform(0, 1)])
        yield samplers.with_missing(part, 0.1)
        yield samplers.as_sampler(part).map(np.exp)
        yield samplers.as_sampler(part).truncated(-1e9, 1e9)
        yield samplers.as_sampler(part).clip(-1e9, 1e9)
        yield samplers.as_sampler(part).fixed(size=10)

    def test_samplers_made_of_independent_ones(self):
        """Sums under a P made of known ones would be calibrated slowly, though two records are enough."""
        for part in (
            samplers.uniform(0, 1),
            samplers.from_function(lambda n, rng: rng.random(n), independent=True),
        ):
            for made in self.made_of(part):
                assert traits_of(made).iid, made

    def test_samplers_made_of_unknown_ones(self):
        """A part that sorts or shifts its records would go unnoticed inside a table, a mixture or a map."""
        ours = samplers.uniform(0, 1)

        class Claims:
            iid = independent = streamable = stable = True
            known = Traits(iid=True, streamable=True, stable=True)

            def draw(self, n, rng):
                return np.sort(rng.random(n))

        class Sorts(type(ours)):
            tag = "uniform"

            def draw(self, n, rng):
                return np.sort(super().draw(n, rng))

        class Own(Distribution):
            immutable = True
            known = Traits(iid=True, streamable=True, stable=True, immutable=True)

            def draw(self, n, rng):
                return np.sort(rng.random(n))

        for part in (
            samplers.from_function(lambda n, rng: np.sort(rng.random(n))),
            samplers.marginal(ours, _shared_mean),
            samplers.marginal(ours, _shared_mean, per="dataset"),
            Sorts(ours.low, ours.high),
            Own(),
        ):
            made = evaluator(additive(np.positive), n=9, sampler=part, norm=l1, seed=1)
            assert not isinstance(made, SummedEvaluator), part
            for made in self.made_of(part) if getattr(part, "independent", True) else ():
                assert not traits_of(made).iid, made
                assert not traits_of(made).streamable
                assert not (traits_of(made).stable and part is not ours), made
        pairs = evaluator(additive(np.positive), n=9, sampler=Claims(), norm=l1, seed=1)
        assert not isinstance(pairs, SummedEvaluator) and not pairs.pairs.streamable
        made = traits_of(samplers.table(a=Claims()))
        assert not made.iid and not made.stable and not made.immutable

    @for_each(
        "make",
        [
            lambda: samplers.table(a=samplers.uniform(0, 1), frame="dict"),
            lambda: samplers.mixture([samplers.uniform(0, 1), samplers.uniform(0, 2)]),
            lambda: samplers.with_missing(samplers.uniform(0, 1), 0.5),
            lambda: samplers.bootstrap(np.arange(20.0)),
            lambda: samplers.as_sampler(stats.expon()),
            lambda: samplers.integers(0, 5).truncated(1, 4),
            lambda: samplers.normal(0, 1).clip(-1, 1),
            lambda: samplers.uniform(0, 1).map(np.exp),
            lambda: samplers.uniform(0, 1).fixed(size=5),
            lambda: samplers.table(a=samplers.uniform(0, 1))["a"],
            lambda: samplers.labelled(samplers.uniform(0, 1), samplers.boolean()),
            lambda: samplers.from_function(lambda n, rng: rng.random(n), independent=True),
            lambda: samplers.blobs([[0, 0], [1, 2]]),
        ],
    )
    def test_a_subclass_of_ours(self, make):
        """A user's subclass that sorts would inherit the claim that records are independent."""
        ours = make()
        assert traits_of(ours).iid
        kind = type("Sorts", (type(ours),), {"draw": lambda self, n, rng: super(kind, self).draw(n, rng)})
        made = object.__new__(kind)
        vars(made).update(vars(ours))
        assert not traits_of(made).iid and not traits_of(made).streamable and not traits_of(made).stable

    def test_functions_of_all_records(self):
        """A map, a label or a column that subtracts the mean makes the records depend on each other."""
        ours = samplers.uniform(0, 1)
        for made in (
            ours.map(lambda x: x * 2),
            samplers.labelled(ours, lambda x: x - x.mean()),
            samplers.table(a=ours, b=lambda columns: columns["a"] - columns["a"].mean()),
            samplers.table(a=ours, b=lambda columns: columns["a"] - columns["a"].mean())["b"],
        ):
            assert not traits_of(made).iid, made
            assert not traits_of(made).streamable

    def test_scipy_distributions_with_user_code(self):
        """A user's own inverse distribution function gets all uniform numbers at once, and may sort them."""

        class Mine(stats.rv_continuous):
            def _ppf(self, q):
                return np.sort(q)

        patched = stats.gamma(2)
        patched.dist._ppf = np.sort
        for value in (Mine(), Mine()(), stats.rv_continuous(name="norm"), patched):
            assert not traits_of(samplers.as_sampler(value)).iid, value
        if not hasattr(stats, "Binomial"):  # SciPy 1.16, from which on such classes are accepted
            return

        class Sorted:
            __make_distribution_version__ = "1.16.0"
            parameters: typing.ClassVar = {"a": {"endpoints": (0, 10)}}
            support: typing.ClassVar = {"endpoints": (0, 1)}

            def icdf(self, q, a):
                return np.sort(q, axis=0)

            def pdf(self, x, a):
                return 1.0 + 0 * x

            def cdf(self, x, a):
                return x

        made = stats.make_distribution(Sorted())(a=1.0)
        assert not traits_of(samplers.as_sampler(made)).iid
        assert not traits_of(samplers.as_sampler(stats.truncate(made, 0.1, 0.9))).iid
        assert not traits_of(samplers.as_sampler(stats.Mixture([made, made]))).iid
        assert traits_of(samplers.as_sampler(stats.Normal(mu=0.0, sigma=1.0))).iid
        assert traits_of(samplers.as_sampler(stats.norm(0, 1))).iid
        assert traits_of(samplers.as_sampler(stats.multivariate_normal([0, 0]))).iid
        assert traits_of(samplers.as_sampler(stats.rv_discrete(values=([1, 2], [0.5, 0.5])))).iid

    def test_a_subclass_of_ours_draws_for_itself(self):
        """Truncating a user's subclass, or selecting columns, would draw from the library's distribution."""

        class Ones(type(samplers.uniform(0, 2))):
            def draw(self, n, rng):
                return np.ones(n) + rng.random(n) * 1e-9

        ours = samplers.uniform(0, 2)
        drawn = Ones(ours.low, ours.high).truncated(0.5, 1.5).draw(50, np.random.default_rng(1))
        assert np.allclose(drawn, 1)
        table = samplers.table(a=samplers.uniform(0, 1), b=samplers.uniform(0, 1), frame="dict")

        class Other(type(table)):
            def draw(self, n, rng):
                return {name: part + 5 for name, part in super().draw(n, rng).items()}

        made = Other(table.columns, table.frame)
        assert (made["a"].draw(50, np.random.default_rng(1)) > 4).all()
