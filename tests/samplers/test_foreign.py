"""Functions, users' own samplers and SciPy's distributions draw what they would draw by themselves."""

import functools
import math
import pickle

import numpy as np
import pytest
import scipy
from scipy import stats

from privatize import estimate_sensitivity, plan, samplers
from privatize.calibration import streams
from privatize.errors import SamplerError
from privatize.samplers import as_sampler, draw, from_function, uniform
from privatize.samplers.base import traits_of
from tests.cases import for_each
from tests.samplers.drawn import Callable, Dice

FROZEN = [
    *(stats.norm(), stats.norm(5), stats.norm(5, 2), stats.norm(loc=-3, scale=0.1)),
    *(stats.expon(), stats.expon(scale=7), stats.uniform(-1, 2), stats.gamma(2), stats.gamma(0.3, scale=2)),
    *(
        stats.beta(2, 3),
        stats.beta(0.5, 0.5, loc=1, scale=9),
        stats.lognorm(0.9),
        stats.lognorm(s=0.5, scale=3),
    ),
    *(
        stats.t(3),
        stats.t(2.5, 1, 4),
        stats.cauchy(),
        stats.laplace(1, 2),
        stats.logistic(),
        stats.gumbel_r(),
    ),
    *(stats.weibull_min(1.5), stats.pareto(3), stats.chi2(4), stats.f(3, 9), stats.truncnorm(-1, 2)),
    *(stats.truncnorm(-1, 2, loc=4, scale=3), stats.triang(0.3), stats.skewnorm(4), stats.vonmises(2)),
    *(stats.halfnorm(), stats.invgamma(3), stats.rayleigh(scale=2), stats.powerlaw(2), stats.genpareto(0.1)),
    *(stats.poisson(3), stats.poisson(3, loc=2), stats.binom(10, 0.3), stats.geom(0.2), stats.nbinom(3, 0.4)),
    *(
        stats.randint(0, 9),
        stats.randint(-5, 5),
        stats.bernoulli(0.3),
        stats.zipf(3),
        stats.hypergeom(20, 7, 12),
    ),
    *(stats.norm(0, 0.0), stats.rv_histogram(np.histogram([1, 2, 2, 3, 9], bins=4))()),
    stats.rv_discrete(values=([1, 5, 9], [0.2, 0.3, 0.5]))(),
]


@for_each("frozen", FROZEN, ids=lambda f: f"{f.dist.name}{f.args}{f.kwds}")
def test_scipy_draws_what_it_would_draw_by_itself(frozen):
    """P must be the distribution that was named, to the last bit."""
    sampler = as_sampler(frozen)
    for n, seed in ((2, 1), (3, 2), (17, 3), (1000, 4), (4001, 5)):
        expected = frozen.rvs(size=n, random_state=streams.stream(seed, 0))
        rng = streams.stream(seed, 0)
        found = sampler.draw(n, rng)
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
        again = streams.stream(seed, 0)
        frozen.rvs(size=n, random_state=again)
        assert again.random() == rng.random()
    copy = pickle.loads(pickle.dumps(sampler))
    assert copy == sampler and np.array_equal(
        copy.draw(9, streams.stream(1, 0)), sampler.draw(9, streams.stream(1, 0))
    )


class Capped(type(stats.expon)):
    """A user's subclass of one of SciPy's distributions."""

    def _rvs(self, size=None, random_state=None):
        return np.minimum(super()._rvs(size, random_state), 20.0)


class CappedFrozen(type(stats.expon())):
    """A user's subclass of a frozen distribution, which very rarely draws something else."""

    def rvs(self, size=None, random_state=None):
        return np.minimum(super().rvs(size, random_state), 20.0)


def test_subclasses_of_scipys_distributions_draw_by_themselves():
    """P must be what the user's class draws, however rarely that differs from SciPy's own."""
    capped = as_sampler(Capped(name="expon")())
    assert not traits_of(capped).streamable and not traits_of(capped).iid
    frozen = as_sampler(CappedFrozen(stats.expon))
    assert not traits_of(frozen).streamable and not traits_of(frozen).iid
    patched = stats.expon()
    patched.rvs = lambda size, random_state: np.full(size, 3.0) * random_state.random(size)
    assert not traits_of(as_sampler(patched)).streamable
    assert as_sampler(patched).draw(5, streams.stream(1, 0)).max() < 3


def test_a_distribution_is_not_identified_by_its_name():
    """A distribution that has the name of another one would be drawn like the other one."""
    named = as_sampler(type(stats.gamma)(name="norm")(2))
    assert not traits_of(named).streamable


def test_parameters_that_change_are_seen():
    """A frozen distribution can be changed in place, and P must then be the changed one."""
    frozen = stats.expon(scale=1.0)
    sampler = as_sampler(frozen)
    before = sampler.draw(100, streams.stream(1, 0))
    frozen.kwds["scale"] = 100.0
    assert np.array_equal(sampler.draw(100, streams.stream(1, 0)), 100 * before)
    rng = streams.stream(1, 0)
    assert np.array_equal(np.concatenate([sampler.draw(n, rng) for n in (1, 60, 39)]), 100 * before)
    frozen.kwds["scale"] = 1.0
    assert np.array_equal(sampler.draw(100, streams.stream(1, 0)), before)
    frozen.dist = stats.norm().dist
    assert np.array_equal(sampler.draw(9, streams.stream(1, 0)), stats.norm().rvs(9, streams.stream(1, 0)))


def test_an_estimate_follows_parameters_that_change():
    """A hundred times wider P needs a hundred times the noise."""
    frozen = stats.expon(scale=1.0)
    made = {"n": 50, "sampler": as_sampler(frozen), "norm": "l1", "plan": plan(0.2), "seed": 1}
    before = estimate_sensitivity(np.median, **made).value
    frozen.kwds["scale"] = 100.0
    assert estimate_sensitivity(np.median, **made).value == pytest.approx(100 * before)


@pytest.mark.parametrize("n", [1, 2, 100])
def test_single_draws_of_scipy_are_arrays(n):
    """A single record must be a dataset of one record, not a scalar."""
    for frozen in (stats.expon(), stats.poisson(3), stats.multivariate_normal([0, 0])):
        assert len(as_sampler(frozen).draw(n, streams.stream(1, 0))) == n


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


# --- supports ---


def test_an_unbounded_scipy_distribution_clips_nothing():
    """A normal from scipy would clip private records."""
    low, high = as_sampler(stats.norm(3, 2)).support
    assert (low, high) == (-inf, inf)


# --- coercion ---


@for_each(
    ("value", "cdf"),
    [
        (uniform(0, 1), stats.uniform.cdf),
        (stats.expon(scale=2), stats.expon(scale=2).cdf),
        (stats.gamma(2.5, loc=1), stats.gamma(2.5, loc=1).cdf),
        (stats.norm, stats.norm.cdf),
        (stats.rv_histogram(np.histogram([0, 1, 1, 3], bins=3)), None),
        (spenders, stats.lognorm(1, scale=math.exp(3)).cdf),
        (lambda n, generator: generator.random(n), stats.uniform.cdf),
        (functools.partial(scaled, scale=5), stats.uniform(0, 5).cdf),
        (Callable(), stats.uniform.cdf),
        (Callable().__call__, stats.uniform.cdf),
        (Dice(), None),
        (stats.poisson(3), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_as_sampler_accepts(value, cdf):
    """What a user has at hand would have to be wrapped first, or would be drawn wrongly."""
    sampler = as_sampler(value)
    assert isinstance(sampler, samplers.Sampler)
    assert as_sampler(sampler) is sampler
    drawn = draw(sampler, 5000, rng(21))
    assert drawn.shape == (5000,)
    if cdf is not None:
        assert_follows(drawn, cdf)


def test_a_discrete_distribution_of_scipy_draws_integers():
    """Counts would be drawn as something else than counts."""
    drawn = draw(as_sampler(stats.poisson(3)), 10_000, rng(22))
    assert drawn.dtype.kind == "i"
    found = np.bincount(drawn, minlength=8)[:8]
    expected = 10_000 * stats.poisson(3).pmf(range(7))
    expected = np.append(expected, 10_000 - expected.sum())
    found[7] = 10_000 - found[:7].sum()
    assert stats.chisquare(found, expected).pvalue > ALARM


@pytest.mark.skipif(not hasattr(stats, "Normal"), reason="scipy has them from 1.15 on")
def test_the_new_distributions_of_scipy():
    """scipy's own successors of the frozen distributions would be refused."""
    sampler = as_sampler(stats.Normal(mu=3.0, sigma=2.0))
    assert_follows(draw(sampler, 10_000, rng(23)), stats.norm(3, 2).cdf)
    assert np.array_equal(sampler.support, [-inf, inf])
    assert sampler == as_sampler(stats.Normal(mu=3.0, sigma=2.0))
    assert hash(sampler) == hash(as_sampler(stats.Normal(mu=3.0, sigma=2.0)))
    assert sampler != as_sampler(stats.Normal(mu=np.nextafter(3.0, 4), sigma=2.0))
    assert sampler != as_sampler(stats.norm(3, 2))
    assert draw(as_sampler(stats.Normal(mu=[1.0, 2.0])), 3, rng()).shape == (3, 2)
    assert "Normal(mu=" in repr(sampler)


@for_each(
    "value",
    [
        None,
        3,
        "normal",
        (uniform(),),
        (0, 100),
        {"low": 0},
        np.zeros(3),
        np.random.default_rng(0),
        Dice,
        Callable,
        stats.rv_continuous,
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_as_sampler_refuses(value):
    """A slip would surface as a TypeError in the middle of calibration."""
    with pytest.raises(
        SamplerError, match=r"is not a public distribution.*samplers\.uniform.*scipy\.stats"
    ) as e:
        as_sampler(value)
    # A value that could be the data itself is not shown, only its type.
    shown = isinstance(value, str | int | type | None)
    assert (repr(value) if shown else type(value).__name__) in str(e.value)


def test_an_unfrozen_distribution_with_shape_parameters():
    """The user would not learn which parameters are missing."""
    with pytest.raises(SamplerError, match=r"scipy.stats.gamma needs its shape parameters a: .*frozen"):
        as_sampler(stats.gamma)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_frozen_distribution_of_arrays(n):
    """With n = 2 the first record would come from the first parameter and the second from the second."""
    try:
        drawn = draw(as_sampler(stats.norm([0, 100])), n, rng(24))
    except SamplerError:
        return  # refused is right too, if it is refused for every n
    assert drawn.shape == (n, 2)


@pytest.mark.skipif(not hasattr(stats, "normal_inverse_gamma"), reason="scipy has it from 1.15 on")
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_distribution_that_draws_a_tuple(n):
    """A mixture that happens to take one record of it would fail."""
    mean, variance = draw(as_sampler(stats.normal_inverse_gamma(a=2)), n, rng(25))
    assert mean.shape == variance.shape == (n,)


# --- reprs ---


@pytest.mark.parametrize(
    "frozen",
    [stats.expon(scale=2), stats.norm(1, 2), stats.gamma(2.5, loc=1), stats.poisson(3), stats.norm()],
)
def test_a_scipy_repr_is_the_code_that_makes_it(frozen):
    """What a report prints as P could not be put back into the code."""
    sampler = as_sampler(frozen)
    assert as_sampler(eval(repr(sampler), {"scipy": scipy})) == sampler


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (functools.partial(scaled, scale=1.5), "scaled"),
        (functools.partial(functools.partial(scaled), scale=2), "scaled"),
        (Callable(), "Callable"),
    ],
    ids=["a float bound", "nested", "an object"],
)
def test_the_repr_of_a_callable_without_a_name(value, name):
    """P would be printed as a fragment such as ``5))``, or with an address that changes with every run."""
    shown = repr(from_function(value))
    assert shown.startswith("from_function(")
    assert name in shown
    assert shown.count("(") == shown.count(")")
    assert " at 0x" not in shown


# --- values ---


@pytest.mark.parametrize(
    "frozen", [stats.expon(scale=2), stats.multivariate_normal([0, 1]), stats.poisson(3)]
)
def test_scipy_samplers_pickle(frozen):
    """A sampler could not be sent to a worker."""
    sampler = as_sampler(frozen)
    back = pickle.loads(pickle.dumps(sampler))
    assert back == sampler
    assert np.array_equal(back.draw(5, rng(26)), sampler.draw(5, rng(26)))
