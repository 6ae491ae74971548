"""The DKW bound gives the figures of the paper's table."""

from __future__ import annotations

import pytest

from privatize.errors import PlanError
from privatize.planning.plan import plan
from tests.cases import for_each


@for_each(
    ("gamma", "m", "rho"),
    [
        (0.001, 5486187, 4.7859528903803136e-05),
        (0.01, 41971, 0.00063612267419468395),
        (0.05, 1305, 0.0041828699326980513),
        (0.1, 285, 0.0097446116652419798),
        (0.2, 61, 0.023533002797485499),
        (0.5, 8, 0.083968220397363028),
    ],
)
def test_dkw_gamma_alone_is_the_papers_first_row(gamma, m, rho):
    """A user who asks for the paper's bound would get other figures than the authors' package."""
    p = plan(gamma, bound="dkw")
    assert (p.gamma, p.m, p.k, p.bound) == (gamma, m, m, "dkw")
    assert p.rho == pytest.approx(rho, rel=1e-15, abs=0)
    assert p == plan(gamma, "least", bound="dkw")
    assert p == plan(gamma, m, bound="dkw")


@pytest.mark.parametrize(
    ("m", "gamma", "rho"),
    [
        (10, 0.43462261231005017, 0.068233461446956412),
        (100, 0.15972417461047017, 0.017588874855988573),
        (1500, 0.046899061343925477, 0.0038736827447679984),
        (50000, 0.0092127755686748358, 0.00057912960789864045),
    ],
)
def test_dkw_m_alone_is_the_papers_last_row(m, gamma, rho):
    """A user with a fixed number of samples would get another gamma than the paper's."""
    p = plan(m=m, bound="dkw")
    assert (p.m, p.k, p.bound) == (m, m, "dkw")
    assert p.gamma == pytest.approx(gamma, rel=1e-15, abs=0)
    assert p.rho == pytest.approx(rho, rel=1e-15, abs=0)


@for_each(
    ("m", "gamma", "k"),
    [
        (100, 0.2, 96),
        (100, 0.5, 66),
        (1000, 0.1, 957),
        (10000, 0.05, 9696),
        (1500, 0.05, 1496),
        (50000, 0.01, 49961),
    ],
)
def test_dkw_m_and_gamma_give_the_papers_k(m, gamma, k):
    """A user would get another order statistic than the paper's, hence another sensitivity."""
    assert plan(gamma, m, bound="dkw").k == k


@pytest.mark.parametrize(
    ("m", "gamma", "rho"),
    [
        (100, 0.2, 0.017588874855988573),
        (100, 0.5, 0.017588874855988573),
        (1500, 0.05, 0.0038736827447679984),
        (50000, 0.01, 0.00057912960789864045),
    ],
)
def test_dkw_rho_depends_on_m_alone_when_both_are_given(m, gamma, rho):
    """Plans with several gammas, read from one calibration, would no longer hold all at once."""
    assert plan(gamma, m, bound="dkw").rho == pytest.approx(rho, rel=1e-15, abs=0)


def test_dkw_says_what_100_samples_support():
    """A user who asks the paper's bound for too much would not learn what is within reach."""
    with pytest.raises(PlanError, match=r"100 samples support gamma >= 0\.1598\. Raise samples to 1305 "):
        plan(0.05, 100, bound="dkw")
    with pytest.raises(PlanError) as caught:
        plan(0.05, 100, bound="dkw")
    assert caught.value.least_gamma == pytest.approx(0.15972417461047017, rel=1e-15, abs=0)
    assert caught.value.least_m == 1305


@pytest.mark.parametrize("gamma", [None, 0.05, 0.999])
def test_dkw_one_sample_supports_nothing(gamma):
    """A user would be promised a gamma above 1, or no gamma at all without an error."""
    with pytest.raises(PlanError, match="no gamma below 1"):
        plan(gamma, 1, bound="dkw")


def test_dkw_one_sample_names_the_gamma_it_would_have():
    """A user would not see how far one sample is from any promise (1.0744..., rounded up)."""
    with pytest.raises(PlanError, match=r"would be 1\.0745\."):
        plan(m=1, bound="dkw")
