"""Projections move a noisy answer to the nearest valid one."""

import math

import numpy as np
import pytest
from scipy import optimize

from privatize import constraints
from privatize.errors import (
    SettingsError,
)
from tests.cases import for_each


def nearest(point, start, constraints_of):
    """Return the nearest valid point as a general solver finds it."""
    solved = optimize.minimize(
        lambda x: ((x - point) ** 2).sum(), start, constraints=constraints_of, method="SLSQP", tol=1e-12
    )
    return solved.x


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_are_the_nearest(seed):
    """The projection onto the simplex moves an answer no further than it must."""
    point = np.random.default_rng(seed).normal(0, 1, 4)
    rules = [{"type": "eq", "fun": lambda x: x.sum() - 1}, {"type": "ineq", "fun": lambda x: x}]
    found = constraints.probabilities(point)
    assert np.allclose(found, nearest(point, np.full(4, 0.25), rules), atol=1e-5)
    assert np.allclose(constraints.probabilities(found), found, atol=1e-15)
    table = np.random.default_rng(seed).normal(0, 1, (3, 4))
    assert np.allclose(constraints.probabilities(table)[1], constraints.probabilities(table[1]))
    assert np.allclose(constraints.probabilities(table, axis=0), constraints.probabilities(table.T).T)


def test_probabilities_of_any_size():
    """Large noise gives probabilities as well."""
    for point in (
        [1e12, -1e12, 0],
        [1e12, 1e12],
        [1e17, 1e17],
        [1e300, -1e300, 0],
        [-1e9] * 3,
        [0.0],
        [5.0],
        [-1e-300, 0, 0],
    ):
        found = constraints.probabilities(point)
        assert (found >= 0).all() and math.isclose(found.sum(), 1)


@pytest.mark.parametrize("seed", range(5))
def test_semidefinite_is_the_nearest(seed):
    """No semidefinite matrix is nearer: none of many, and none that a general solver finds."""
    rng = np.random.default_rng(seed)
    noisy = rng.normal(0, 1, (3, 3))
    found = constraints.semidefinite(noisy)
    assert np.array_equal(found, found.T) and np.linalg.eigvalsh(found).min() > -1e-12
    assert np.allclose(constraints.semidefinite(found), found)
    distance = ((found - noisy) ** 2).sum()
    solved = optimize.minimize(
        lambda x: ((x.reshape(3, 3) @ x.reshape(3, 3).T - noisy) ** 2).sum(), rng.normal(0, 1, 9), tol=1e-12
    )
    assert distance <= solved.fun + 1e-9 and math.isclose(distance, solved.fun, rel_tol=1e-3, abs_tol=1e-5)
    stacked = np.stack([noisy, np.eye(3)])
    assert np.allclose(constraints.semidefinite(stacked), [found, np.eye(3)])


@pytest.mark.parametrize("seed", range(5))
def test_correlations_are_the_nearest(seed):
    """A noisy matrix of correlations becomes the nearest one: ones on the diagonal, semidefinite."""
    noisy = np.random.default_rng(seed).uniform(-1.5, 1.5, (3, 3))
    found = constraints.correlations(noisy)
    assert np.array_equal(np.diag(found), np.ones(3)) and np.allclose(found, found.T)
    assert np.linalg.eigvalsh(found).min() > -1e-9 and np.abs(found).max() <= 1
    assert np.allclose(constraints.correlations(found), found, atol=1e-6)

    def matrix(x):
        rows = x.reshape(3, 3)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return rows @ rows.T

    symmetric = (noisy + noisy.T) / 2
    starts = np.random.default_rng(seed + 100).normal(0, 1, (5, 9))
    best = min(optimize.minimize(lambda x: ((matrix(x) - symmetric) ** 2).sum(), s).fun for s in starts)
    assert ((found - symmetric) ** 2).sum() <= best + 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_orthonormal_is_the_nearest(seed):
    """No matrix with orthonormal rows is nearer than the one returned."""
    rng = np.random.default_rng(seed)
    noisy = rng.normal(0, 1, (2, 3))
    found = constraints.orthonormal(noisy)
    assert np.allclose(found @ found.T, np.eye(2)) and np.allclose(constraints.orthonormal(found), found)
    distance = ((found - noisy) ** 2).sum()
    for _ in range(500):
        other = np.linalg.qr(found.T + rng.normal(0, 10 ** rng.uniform(-3, 1), (3, 2)))[0].T
        other = other * np.sign((other * found).sum(axis=1, keepdims=True))
        assert ((other - noisy) ** 2).sum() >= distance - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_curves_are_the_nearest(seed):
    """A monotone curve would be further from the answer than it must be."""
    rng = np.random.default_rng(seed)
    point = rng.normal(0.5, 0.5, 6)
    rise = [{"type": "ineq", "fun": np.diff}]
    inside = [{"type": "ineq", "fun": lambda x: x}, {"type": "ineq", "fun": lambda x: 1 - x}]
    found = constraints.increasing(point)
    assert np.allclose(found, nearest(point, np.linspace(-1, 2, 6), rise), atol=1e-4)
    found = constraints.increasing(point, 0, 1)
    assert np.allclose(found, nearest(point, np.linspace(0.1, 0.9, 6), rise + inside), atol=1e-4)
    assert np.allclose(constraints.survival(point), constraints.increasing(point[::-1], 0, 1)[::-1])
    for function in (constraints.survival, constraints.increasing):
        many = rng.normal(0.5, 3, (40, 30))
        found = function(many)
        steps = np.diff(found, axis=1) * (1 if function is constraints.increasing else -1)
        assert (steps >= 0).all() and np.array_equal(function(found), found)
        assert np.array_equal(function(many.T, axis=0), found.T)


def test_curves_of_any_size():
    """Large noise gives curves as well, and long ones do not take long."""
    assert np.allclose(constraints.increasing([1e308, -1.7e308, 1.7e308]), [-3.5e307, -3.5e307, 1.7e308])
    assert constraints.survival([-1e300, 3e300]).tolist() == [1, 1]
    assert constraints.survival([3.0]).tolist() == [1] and constraints.survival([-0.0]).tolist() == [0]
    assert constraints.survival(np.linspace(0, 1, 100_000)).tolist() == pytest.approx([0.5] * 100_000)
    assert constraints.increasing([3, 1], low=0).tolist() == [2, 2]


def test_between():
    """Values outside would stay there, or others would be moved."""
    assert constraints.between([2.0, -1.0, 0.5], 0, 1).tolist() == [1, 0, 0.5]
    assert constraints.between([2.0, -1.0], [0, -2], [1, 0]).tolist() == [1, -1]
    for low, high in ((1, 0), (np.nan, 1), (None, 1)):
        with pytest.raises(SettingsError, match="between"):
            constraints.between([1.0], low, high)


def test_positive():
    """Values below a floor become the floor, and others stay."""
    assert constraints.positive([2.0, -1.0, 0.0], [0.5, 0.25, 0.0]).tolist() == [2.0, 0.25, 0.0]
    assert constraints.positive(-3).tolist() == 0


@for_each(
    ("function", "wrong"),
    [
        (constraints.probabilities, []),
        (constraints.probabilities, [np.nan, 1]),
        (constraints.probabilities, "text"),
        (constraints.positive, [np.inf]),
        (constraints.semidefinite, [1.0]),
        (constraints.semidefinite, [[1.0, 2.0]]),
        (constraints.semidefinite, [[np.nan]]),
        (constraints.correlations, np.ones((2, 2, 2))),
        (constraints.correlations, [[1.0, 2.0]]),
        (constraints.orthonormal, [1.0]),
        (constraints.orthonormal, [[1.0], [2.0]]),
        (constraints.orthonormal, [[None]]),
        (constraints.survival, []),
        (constraints.survival, 0.5),
        (constraints.survival, [np.nan]),
        (constraints.increasing, 0.5),
        (constraints.increasing, ["a"]),
    ],
)
def test_projections_refuse_wrong_arguments(function, wrong):
    """A value without a nearest valid one must be refused, not returned as if it were valid."""
    with pytest.raises(SettingsError, match=function.__name__):
        function(wrong)
