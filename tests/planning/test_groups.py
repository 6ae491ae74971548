"""A promise to everybody is worth less to a small group, and how much less is known."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatize import plan, privatize, samplers
from privatize.errors import PlanError
from privatize.planning.bounds import exact
from privatize.planning.groups import check_share, for_whom, gamma_for, gamma_within
from tests.cases import for_each
from tests.statistical.thresholds import most_successes

shares = st.floats(1e-12, 1.0)
gammas = st.floats(1e-15, 0.999)


@given(gammas, shares)
def test_rounding_is_on_the_safe_side(gamma, share):
    """A group would be promised more than follows from the promise to everybody."""
    worst, needed = gamma_for(gamma, share), gamma_within(gamma, share)
    assert worst == 1 or exact(worst) >= exact(gamma) / exact(share)
    assert exact(needed) <= exact(gamma) * exact(share)
    assert needed == pytest.approx(gamma * share, rel=1e-12)
    assert worst == pytest.approx(min(gamma / share, 1.0), rel=1e-12)
    assert gamma_for(needed, share) <= gamma * (1 + Fraction(1, 2**50))


def test_the_figures():
    """These are what the documentation says."""
    assert gamma_for(0.05, 1) == 0.05
    assert gamma_for(0.05, 0.5) == 0.1
    assert gamma_for(0.05, 0.01) == 1.0
    assert gamma_for(0.0, 0.01) == 0.0
    assert gamma_within(0.05, 0.01) == 0.0005


@for_each("share", [0, -0.1, 1.1, float("nan"), "0.1", True, None, [0.1]])
def test_wrong_shares(share):
    """A percentage, or a group that does not exist, would come out as a promise."""
    with pytest.raises(PlanError, match="share="):
        check_share(share)


def test_in_words():
    """Whoever reads a share of pairs must see how many people that is."""
    assert for_whom(0.05, 200).startswith(
        "at most 10 of 200 people in expectation; a group of at most 5% of P may bear all of it"
    )
    assert for_whom(0.005, 200).endswith("; a group of at most 0.5% of P may bear all of it")


def draw_people(n, rng):
    """Draw incomes: one person in 20 belongs to a group that has a hundred times as much."""
    rich = rng.random(n) < 0.05
    return np.where(rich, rng.uniform(50.0, 100.0, n), rng.uniform(0.0, 1.0, n))


def beyond(estimate, rng, pairs=4000, n=20):
    """Return how many pairs, in which a rich person is replaced, lie beyond an estimate for a mean."""
    return int(np.sum(np.abs(rng.uniform(50, 100, pairs) - draw_people(pairs, rng)) / n > estimate))


def test_a_group_may_bear_all_of_gamma_and_a_plan_for_it_may_not():
    """A minority would be told that the promise fails for 1 in 10 of them, and it fails for nearly all.

    The pairs whose replaced person is rich are simulated. False alarms: below 1e-6.
    """
    law, rng = samplers.from_function(draw_people, support=(0.0, 100.0)), np.random.default_rng(5)
    usual = privatize(epsilon=1, gamma=0.3, sampler=law, seed=3)(np.mean)
    assert beyond(usual.estimate(20).value, rng) > 3600  # although it holds on all but 0.3 of all pairs
    assert gamma_for(0.3, 0.05) == 1.0  # which is why this is all that is promised
    careful = usual.replace(gamma=plan(0.3, share=0.05).gamma)
    assert careful.plan.gamma == 0.015
    assert beyond(careful.estimate(20).value, rng) <= most_successes(4000, 0.3)
