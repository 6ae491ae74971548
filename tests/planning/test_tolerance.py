"""The tolerance bound is the exact binomial one, and never worse than DKW's."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from privatize.planning.plan import plan
from tests.cases import for_each
from tests.planning.solved import assert_satisfies_its_inequality, attempt, exact_tail, free_rho

# The same examples in every run; none of them is timed.
properties = settings(max_examples=100, deadline=None, derandomize=True, database=None)
gammas = st.floats(0.002, 0.998)
pairs = st.integers(1, 3000)

# A free rho as a share of its upper limit; None leaves it to the library.
rho_shares = st.none() | st.floats(1e-9, 0.99)


@for_each(("gamma", "m"), [(0.01, 761), (0.02, 339), (0.05, 113), (0.1, 47), (0.2, 19), (0.5, 5)])
def test_tolerance_least(gamma, m):
    """A user in a hurry would pay for more evaluations than the promise needs."""
    p = plan(gamma, "least")
    assert (p.m, p.k, p.bound) == (m, m, "tolerance")


@for_each(
    ("gamma", "m", "k"),
    [
        (0.001, 57497, 57469),
        (0.01, 3996, 3977),
        (0.02, 1781, 1764),
        (0.05, 557, 544),
        (0.1, 219, 209),
        (0.2, 79, 72),
        (0.5, 15, 12),
    ],
)
def test_tolerance_balanced_is_the_default(gamma, m, k):
    """A user who gives only gamma would get another cost and another estimate than documented."""
    p = plan(gamma)
    assert (p.gamma, p.m, p.k, p.bound) == (gamma, m, k, "tolerance")
    assert p == plan(gamma, "balanced") == plan(gamma, m)


@pytest.mark.parametrize(
    ("m", "gamma", "k"), [(4000, 0.01, 3981), (1000, 0.05, 971), (600, 0.05, 586), (200, 0.1, 192)]
)
def test_tolerance_k_at_given_m(m, gamma, k):
    """A user's sensitivity would be read off at the wrong rank."""
    assert plan(gamma, m).k == k


@pytest.mark.parametrize(
    ("m", "gamma", "digits"), [(10, 0.3032, 4), (100, 0.0550, 4), (1000, 0.0078840, 7), (10000, 0.0010207, 7)]
)
def test_tolerance_least_gamma_for_m_alone(m, gamma, digits):
    """A user with a fixed number of samples would be promised too little, or more than is true."""
    p = plan(m=m)
    assert (p.m, p.k) == (m, m)
    assert gamma - 10**-digits < p.gamma <= gamma
    assert_satisfies_its_inequality(p)
    assert attempt(p.gamma * (1 - 1e-9), m, None, "tolerance") is None


@for_each(
    ("gamma", "rho", "m"),
    [
        (0.05, 1e-2, 90),
        (0.05, 1e-3, 135),
        (0.05, 1e-6, 270),
        (0.01, 1e-2, 459),
        (0.01, 1e-3, 688),
        (0.01, 1e-6, 1375),
    ],
)
def test_tolerance_with_free_rho_is_the_classic_tolerance_limit(gamma, rho, m):
    """A user who chooses rho would not get the textbook sample size for coverage 1 - gamma."""
    p = plan(gamma + rho, "least", rho)
    assert (p.m, p.k, p.rho) == (m, m, rho)


@pytest.mark.parametrize(
    ("gamma", "m", "rho", "k"),
    [(0.96, 520, 0.001, 38), (0.97, 520, None, 30), (0.75, 600, 1e-4, 191), (0.9, 468, 1e-9, 91)],
)
def test_tolerance_at_large_gamma(gamma, m, rho, k):
    """A user with a loose gamma would get a sensitivity that covers far fewer pairs than promised."""
    p = plan(gamma, m, rho)
    assert p.k == k
    assert_satisfies_its_inequality(p)


@properties
@given(gamma=gammas, m=st.integers(2, 1500))
@example(gamma=0.97, m=520)
@example(gamma=0.3, m=39)
def test_tolerance_k_is_the_least_that_any_rho_allows(gamma, m):
    """A user would get a larger sensitivity, hence more noise, than the theorem asks for."""
    p = attempt(gamma, m, None, "tolerance")
    k = m if p is None else p.k - 1  # the next better rank, which no rho may support
    rho = gamma * np.concatenate([np.geomspace(1e-12, 1e-2, 200), np.linspace(0.01, 0.999, 400)])
    tail = stats.binom.cdf(m - k, m, gamma - rho)
    assert np.all(tail > rho * (1 - 1e-9))


@properties
@given(gamma=gammas, m=st.integers(2, 1500))
@example(gamma=0.97, m=520)
def test_tolerance_rho_is_the_least_at_that_k(gamma, m):
    """A user's report would claim less confidence in the calibration than it has."""
    p = attempt(gamma, m, None, "tolerance")
    assume(p is not None)
    smaller = p.rho * (1 - 1e-6)
    assert exact_tail(m, p.k, gamma, smaller) > Decimal(smaller)


@properties
@given(gamma=gammas, m=pairs, share=rho_shares)
def test_tolerance_is_never_worse_than_dkw(gamma, m, share):
    """A user of the default bound would pay more than the paper asks for the same statement."""
    rho = free_rho(share, gamma, "dkw")
    paper, exact = attempt(gamma, m, rho, "dkw"), attempt(gamma, m, rho, "tolerance")
    if paper is not None:
        assert exact is not None
        assert exact.k <= paper.k
    assert plan(gamma, "least", rho).m <= plan(gamma, "least", rho, bound="dkw").m
