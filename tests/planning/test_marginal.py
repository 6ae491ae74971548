"""The marginal bound holds on average over calibrations, with the least k."""

from __future__ import annotations

from fractions import Fraction

import pytest

from privatize.errors import PlanError
from privatize.planning.plan import plan
from tests.cases import for_each
from tests.planning.solved import written


@pytest.mark.parametrize(("gamma", "m"), [(0.001, 999), (0.01, 99), (0.05, 19), (0.1, 9), (0.2, 4)])
def test_marginal_least(gamma, m):
    """A user would pay for a pair that rounding, not the rule, asked for."""
    p = plan(gamma, "least", bound="marginal")
    assert (p.m, p.k, p.rho, p.bound) == (m, m, None, "marginal")


def test_marginal_k_at_given_m():
    """A user's sensitivity would be read off at the wrong rank."""
    assert plan(0.05, 1305, bound="marginal").k == 1241


@pytest.mark.parametrize("gamma", [0.5, 0.2, 0.05, 0.01])
def test_marginal_balanced_is_the_tolerance_bounds_m(gamma):
    """A user who switches bounds would find the estimate's steadiness changed as well."""
    assert plan(gamma, bound="marginal").m == plan(gamma).m


@for_each("m", [1, 2, 9, 10, 19, 48, 97, 10**6])
def test_marginal_m_alone(m):
    """A user with a fixed number of samples would get a gamma that the rule does not give."""
    p = plan(m=m, bound="marginal")
    assert (p.m, p.k, p.rho) == (m, m, None)
    assert Fraction(1, m + 1) <= written(p.gamma) <= Fraction(1, m + 1) * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize("m", [19, "least", "balanced", None])
def test_marginal_refuses_rho(m):
    """A user would believe in a confidence that the marginal bound does not have."""
    with pytest.raises(PlanError, match="'marginal' has no rho"):
        plan(0.05, m, 0.01, bound="marginal")
    with pytest.raises(PlanError, match="'marginal' has no rho"):
        plan(m=19, rho=0.01, bound="marginal")
