"""A sampler that fails or draws something else is named, and one of a user's own is used unchanged."""

import numpy as np
import pytest
from scipy import stats

from privatize.errors import SamplerError
from privatize.samplers import as_sampler, draw, from_function, mixture, normal, uniform
from tests.cases import for_each
from tests.samplers.drawn import Dice


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def spenders(n, generator):
    """Draw with a function of one's own."""
    return generator.lognormal(3, 1, n)


@for_each(
    ("sampler", "shape"),
    [
        (uniform(), ()),
        (uniform(0, 1, size=1), (1,)),
        (uniform(0, 1, size=3), (3,)),
        (uniform(0, [1, 2, 3], size=(2, 3)), (2, 3)),
        (uniform(np.zeros((4, 5)), 1), (4, 5)),
        (uniform(0, 1, size=()), ()),
        (normal(), ()),
        (normal([0, 1]), (2,)),
        (normal(0, [1, 2, 3]), (3,)),
        (normal(np.zeros((2, 3)), 1), (2, 3)),
        (normal(np.zeros((2, 3)), [1, 2, 3], low=-1), (2, 3)),
        (normal(0, [1, 2, 3], low=-1, high=1), (3,)),
        (normal([0, 0], low=[0, -1]), (2,)),
        (normal([0, 0], cov=np.eye(2)), (2,)),
        (normal([0, 0], cov=np.eye(2), low=-1), (2,)),
        (mixture([normal([0, 0]), uniform(0, 1, size=2)]), (2,)),
        (as_sampler(stats.norm()), ()),
        (as_sampler(stats.multivariate_normal([0, 0, 0])), (3,)),
        (as_sampler(stats.multivariate_normal([0.0])), ()),
        (as_sampler(stats.dirichlet([1, 2, 3])), (3,)),
        (as_sampler(stats.multinomial(5, [0.2, 0.8])), (2,)),
        (as_sampler(stats.matrix_normal(np.zeros((2, 3)))), (2, 3)),
    ],
    ids=repr,
)
@for_each("n", [1, 2, 3, 17])
def test_n_records_of_the_right_shape(sampler, shape, n):
    """A dataset of one record, or of records that are vectors, would have its axes mixed up."""
    assert draw(sampler, n, rng(n)).shape == (n, *shape)


@for_each(
    "sampler",
    [
        uniform(),
        normal([0, 0], cov=[[1, 0.5], [0.5, 1]], low=0),
        mixture([normal(), uniform(3, 4), stats.expon()], [1, 2, 3]),
        as_sampler(stats.gamma(2)),
        as_sampler(stats.multivariate_normal([0, 0])),
        from_function(spenders),
        Dice(),
    ],
    ids=repr,
)
def test_a_draw_depends_on_the_generator_alone(sampler):
    """Calibration could not be repeated, nor shared among workers."""
    np.random.seed(1)
    before = np.random.get_state()[1].tobytes()
    first = draw(sampler, 50, rng(13))
    np.random.seed(2)
    draw(sampler, 7, rng(14))
    assert np.array_equal(draw(sampler, 50, rng(13)), first)
    assert not np.array_equal(draw(sampler, 50, rng(14)), first)
    np.random.seed(1)
    draw(sampler, 50, rng(13))
    assert np.random.get_state()[1].tobytes() == before


def test_a_users_sampler_is_used_unchanged():
    """A user's own sampler would lose its other methods."""
    dice = Dice()
    assert as_sampler(dice) is dice


def test_a_sampler_that_raises():
    """The user would look for the error in the wrong function."""

    def broken(n, generator):
        raise ZeroDivisionError("in the sampler")

    with pytest.raises(
        SamplerError, match=r"from_function\(broken\) raised ZeroDivisionError.* 3 records"
    ) as e:
        draw(as_sampler(broken), 3, rng())
    assert isinstance(e.value.__cause__, ZeroDivisionError)


@for_each(
    ("drawn", "message"),
    [
        (np.zeros(4), "asked for 3 records and drew 4"),
        ([1, 2], "asked for 3 records and drew 2"),
        (np.zeros((2, 3)), "asked for 3 records and drew 2"),
        ((np.zeros(4), np.zeros(4)), "asked for 3 records and drew 4"),
        ((np.zeros(3), np.zeros(4)), "draws no dataset.*aligned"),
        (1.5, "draws no dataset.*float"),
        (None, "draws no dataset.*NoneType"),
        (np.array(1.0), "draws no dataset.*0-dimensional"),
        ("abc", "draws no dataset.*str"),
        (iter([1, 2, 3]), "draws no dataset.*iterator"),
        ((1, 2, 3), "draws no dataset.*tuple"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_sampler_that_draws_something_else(drawn, message):
    """Calibration would run on datasets of another size, or fail in the user's function."""

    def odd(n, generator):
        return drawn

    with pytest.raises(SamplerError, match=message) as e:
        draw(as_sampler(odd), 3, rng())
    assert "from_function(odd)" in str(e.value)
