"""Plans: golden figures, the inequalities themselves, and what is refused."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from privatize.errors import PlanError, SettingsError
from privatize.planning.plan import Plan, plan
from tests.cases import for_each
from tests.planning.solved import (
    assert_satisfies_its_inequality,
    attempt,
    dkw_need,
    exact_tail,
    free_rho,
    written,
)

BOUNDS = ("tolerance", "dkw", "marginal")

# The same examples in every run; none of them is timed.
properties = settings(max_examples=100, deadline=None, derandomize=True, database=None)
gammas = st.floats(0.002, 0.998)
pairs = st.integers(1, 3000)
bounds = st.sampled_from(BOUNDS)

# A free rho as a share of its upper limit; None leaves it to the library.
rho_shares = st.none() | st.floats(1e-9, 0.99)


# --- reference values, independent of the package ---------------------------------------------


def test_exact_tail_is_exact():
    """With a wrong reference the tests below would accept unsafe plans."""
    gamma, rho, m = 0.75, 0.125, 40
    p = 1 - Fraction(gamma) + Fraction(rho)
    for k in range(1, m + 1):
        rational = sum(math.comb(m, i) * p**i * (1 - p) ** (m - i) for i in range(k, m + 1))
        assert abs(Fraction(exact_tail(m, k, gamma, rho)) / rational - 1) < Fraction(1, 10**40)


# --- properties -------------------------------------------------------------------------------


@properties
@given(gamma=gammas, m=pairs | st.sampled_from(["least", "balanced"]), bound=bounds)
@example(gamma=0.97, m=520, bound="tolerance")
@example(gamma=0.1, m="balanced", bound="tolerance")
def test_every_plan_satisfies_its_inequality(gamma, m, bound):
    """A user would be promised a coverage that the estimate does not have."""
    assume(not (bound == "dkw" and m in ("least", "balanced") and gamma < 0.02))  # sums of 10^5 terms
    p = attempt(gamma, m, None, bound)
    assume(p is not None)
    assert p.gamma == gamma
    assert_satisfies_its_inequality(p)


@properties
@given(gamma=gammas, m=pairs, share=st.floats(1e-9, 0.99), bound=st.sampled_from(["tolerance", "dkw"]))
@example(gamma=0.96, m=520, share=0.001, bound="tolerance")
@example(gamma=0.5, m=1194, share=1e-9, bound="tolerance")
def test_every_plan_with_free_rho_satisfies_its_inequality_with_the_least_k(gamma, m, share, bound):
    """A user who chooses rho would get a false promise, or a needlessly large sensitivity."""
    rho = free_rho(share, gamma, bound)
    p = attempt(gamma, m, rho, bound)
    assume(p is not None)
    assert (p.gamma, p.m, p.rho) == (gamma, m, rho)
    assert_satisfies_its_inequality(p)
    if p.k > 1 and bound == "tolerance":
        assert exact_tail(m, p.k - 1, gamma, rho) > Decimal(rho) * (1 - Decimal("1e-9"))
    if p.k > 1 and bound == "dkw":
        assert p.k - 1 < dkw_need(m, gamma, rho) * (1 + Decimal("1e-12"))


@properties
@given(m=st.integers(2, 3000), share=rho_shares, bound=bounds)
def test_every_plan_from_m_alone_satisfies_its_inequality(m, share, bound):
    """A user with a fixed number of samples would get a gamma that the samples do not support."""
    try:
        p = plan(m=m, rho=free_rho(share, 1.0, bound), bound=bound)
    except PlanError as error:
        assume("supports no gamma below 1" not in str(error))
        raise
    assert (p.m, p.k) == (m, m)
    assert_satisfies_its_inequality(p)
    assert attempt(p.gamma * (1 - 1e-9), m, p.rho, bound) is None


@properties
@given(gamma=gammas, m=pairs, step=st.integers(1, 3) | st.integers(1, 500), share=rho_shares, bound=bounds)
@example(gamma=0.96, m=499, step=21, share=0.001, bound="tolerance")
def test_k_is_non_decreasing_in_m(gamma, m, step, share, bound):
    """A user who pays for more pairs would get a weaker rank, which means that one plan is false."""
    rho = free_rho(share, gamma, bound)
    fewer, more = attempt(gamma, m, rho, bound), attempt(gamma, m + step, rho, bound)
    if fewer is not None:
        assert more is not None
        assert fewer.k <= more.k <= fewer.k + step


@properties
@given(gamma=gammas, factor=st.floats(0.5, 1) | st.floats(0.999, 1), m=pairs, bound=bounds)
@example(gamma=0.97, factor=0.9, m=450, bound="tolerance")
def test_k_is_non_decreasing_in_confidence(gamma, factor, m, bound):
    """A user who asks for a stricter promise would get a smaller sensitivity for it."""
    loose, strict = attempt(gamma, m, None, bound), attempt(gamma * factor, m, None, bound)
    if strict is not None:
        assert loose is not None
        assert loose.k <= strict.k


@properties
@given(gamma=gammas, share=rho_shares, bound=bounds)
@example(gamma=0.1, share=None, bound="marginal")
def test_least_is_least(gamma, share, bound):
    """A user in a hurry would pay for more evaluations than the promise needs."""
    rho = free_rho(share, gamma, bound)
    least = plan(gamma, "least", rho, bound=bound)
    assert least == plan(gamma, least.m, rho, bound=bound)
    for fewer in (least.m - 1, least.m // 2):
        if fewer >= 1:
            assert attempt(gamma, fewer, rho, bound) is None


@for_each("bound", ["tolerance", "dkw"])
@for_each("gamma", [0.9, 0.5, 0.3, 0.2, 0.1, 0.05])
def test_balanced_is_the_smallest_balanced_m(gamma, bound):
    """A user would pay for more pairs than it takes to leave half of gamma to the data, or get less."""

    def is_balanced(p: Plan) -> bool:
        return 1 - Fraction(p.k, p.m + 1) >= written(gamma) / 2

    p = plan(gamma, "balanced", bound=bound)
    assert is_balanced(p)
    smaller = (attempt(gamma, m, None, bound) for m in range(1, p.m))
    assert not any(is_balanced(other) for other in smaller if other is not None)


@properties
@given(gamma=st.floats(0.02, 0.99), share=st.floats(1e-6, 0.4))
def test_balanced_with_free_rho_is_balanced(gamma, share):
    """A user who chooses rho would get the noisy largest gap in place of a steady estimate."""
    rho = share * gamma
    p = plan(gamma, "balanced", rho)
    assert 1 - Fraction(p.k, p.m + 1) >= written(gamma) / 2
    assert_satisfies_its_inequality(p)


@pytest.mark.parametrize("bound", ["tolerance", "dkw"])
def test_balanced_out_of_reach_of_a_large_rho_is_refused(bound):
    """A user who gives away half of gamma or more to rho would wait forever (balanced is a default)."""
    code = f"""
from privatize.errors import PlanError
from privatize.planning.plan import plan
try:
    print(plan(0.1, "balanced", 0.06, bound={bound!r}))
except PlanError as error:
    print("refused:", error)
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert answer.stdout.startswith("refused:"), answer.stderr
    assert "rho=0.06" in answer.stdout


# --- what is out of reach ---------------------------------------------------------------------


def test_out_of_reach_names_value_rule_and_remedy():
    """A user would not get the remedy that the documentation shows."""
    with pytest.raises(PlanError) as caught:
        plan(gamma=0.001, m=100)
    assert str(caught.value) == (
        "gamma=0.001 with samples=100 is out of reach: 100 samples support gamma >= 0.0550. "
        "Raise samples to 10229 or more, or leave it out."
    )


@pytest.mark.parametrize(
    ("m", "rho", "bound"), [(1, None, "tolerance"), (1, None, "dkw"), (2, 1e-9, "dkw"), (1, 0.3, "tolerance")]
)
def test_m_alone_out_of_reach_gives_a_remedy_that_works(m, rho, bound):
    """A user who raises m as the message says would be refused again."""
    with pytest.raises(PlanError, match=f"m={m} |One pair") as caught:
        plan(m=m, rho=rho, bound=bound)
    remedy = re.search(r"Raise m to (\d+) or more", str(caught.value))
    assert remedy, str(caught.value)
    assert plan(m=int(remedy.group(1)), rho=rho, bound=bound).gamma < 1
    if int(remedy.group(1)) > m + 1:
        with pytest.raises(PlanError):
            plan(m=int(remedy.group(1)) - 1, rho=rho, bound=bound)


def test_plan_error_keeps_its_numbers_across_processes():
    """A user's worker would report a refusal without the figures that explain it."""
    with pytest.raises(PlanError) as caught:
        plan(0.001, 100)
    for revived in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert type(revived) is PlanError
        assert str(revived) == str(caught.value)
        assert (revived.gamma, revived.m, revived.bound, revived.least_m) == (0.001, 100, "tolerance", 10229)
        assert revived.least_gamma == plan(m=100).gamma


@for_each(
    "request_",
    [
        {"gamma": 0.001, "m": 100},
        {"gamma": 0.5, "m": 1, "bound": "dkw"},
        {"m": 1},
        {"m": 1, "bound": "dkw"},
        {"gamma": 2},
        {},
    ],
)
def test_every_plan_error_has_the_documented_attributes(request_):
    """A user who handles a refusal in code would meet an AttributeError in its place."""
    with pytest.raises(PlanError) as caught:
        plan(**request_)
    for name in ("gamma", "m", "bound", "least_gamma", "least_m"):
        assert hasattr(caught.value, name), name


# --- what is refused --------------------------------------------------------------------------


@for_each("gamma", [0, 1, 0.0, 1.0, -0.1, 1.5, math.nan, math.inf, True, False, "x", [0.05]])
@for_each("bound", BOUNDS)
def test_bad_gamma(gamma, bound):
    """A user would get a promise that means nothing."""
    with pytest.raises(PlanError, match=re.escape(f"gamma={gamma!r} is not a share of pairs: it must lie")):
        plan(gamma, bound=bound)
    with pytest.raises(PlanError, match="gamma="):
        Plan(gamma, 19, 19, None if bound == "marginal" else 0.01, bound)


@for_each("m", [0, -1, 1.5, 100.0, math.nan, True, False, np.True_, "many", "", b"least", [100]])
@for_each("gamma", [0.05, None])
@for_each("bound", BOUNDS)
def test_bad_m(m, gamma, bound):
    """A user's slip in the number of samples would be planned for as if it were meant."""
    with pytest.raises(PlanError, match=re.escape(f"m={m!r} is not a number of pairs")) as caught:
        plan(gamma, m, bound=bound)
    assert "'least'" in str(caught.value)
    assert "'balanced'" in str(caught.value)


@pytest.mark.parametrize("m", [None, "least", "balanced"])
def test_neither_gamma_nor_m(m):
    """A user who promises nothing would get a plan all the same."""
    with pytest.raises(PlanError, match="needs gamma, m, or both"):
        plan(m=m)


@for_each("rho", [0, 0.0, -0.01, 0.05, 0.06, 1, math.nan, math.inf, True, "x"])
@for_each("bound", ["tolerance", "dkw"])
def test_bad_rho(rho, bound):
    """A user would spend more than all of gamma on the sampling, or have no confidence in it."""
    for m in (10000, "least", "balanced", None):
        with pytest.raises(PlanError, match=re.escape(f"rho={rho!r} is out of range")):
            plan(0.05, m, rho, bound=bound)


def test_rho_limits():
    """A user would be refused a legal rho, or allowed one outside the paper's Theorem."""
    with pytest.raises(PlanError, match=r"needs 0 < rho < 0\.5\."):
        plan(0.9, 1000, 0.5, bound="dkw")
    assert plan(0.9, 1000, 0.49, bound="dkw").rho == 0.49
    assert plan(0.9, 1000, 0.5).rho == 0.5


@pytest.mark.parametrize("bound", ["exact", "", "DKW", None, 3])
def test_unknown_bound(bound):
    """A user's misspelt bound would fall back to another guarantee."""
    with pytest.raises(PlanError, match="The bounds are tolerance, dkw, marginal") as caught:
        plan(0.05, bound=bound)
    assert f"bound={bound!r}" in str(caught.value)
    with pytest.raises(PlanError, match="The bounds are tolerance, dkw, marginal"):
        Plan(0.05, 19, 19, None, bound)


def test_plan_error_is_a_value_error():
    """A user's `except ValueError` would let the refusal through."""
    with pytest.raises(ValueError, match="gamma=2 "):
        plan(2)
    assert issubclass(PlanError, SettingsError)


# --- Plan -------------------------------------------------------------------------------------


@for_each("request_", [(0.05, None), (0.05, "least"), (0.2, 100), (0.5, 1000), (0.97, 520)])
@for_each("bound", BOUNDS)
def test_plan_that_breaks_its_inequality_cannot_exist(request_, bound):
    """A user who builds or edits a plan by hand would release with a promise that is false."""
    p = plan(*request_, bound=bound)
    assert Plan(p.gamma, p.m, p.k, p.rho, p.bound) == p
    for changes in ({"k": p.k - 1}, {"k": 1}, {"gamma": p.gamma * 0.9}):
        changed = dataclasses.asdict(p) | changes
        if bound == "dkw" and "k" in changes:
            assert changed["k"] < dkw_need(p.m, p.gamma, p.rho)
        with pytest.raises(PlanError, match="does not support gamma="):
            Plan(**changed)
        with pytest.raises(PlanError, match="does not support gamma="):
            dataclasses.replace(p, **changes)


def test_plan_that_breaks_its_inequality_says_who_can_choose_k():
    """A user's wrong plan would be refused without a way to a right one."""
    with pytest.raises(PlanError) as caught:
        Plan(0.05, 557, 543, 0.0026, "tolerance")
    assert str(caught.value) == (
        "k=543 of m=557 gaps does not support gamma=0.05 by the bound 'tolerance' with rho=0.0026. "
        "Let plan(gamma=0.05, m=557, bound='tolerance') choose k."
    )
    assert (caught.value.gamma, caught.value.m, caught.value.bound) == (0.05, 557, "tolerance")


@pytest.mark.parametrize("rho", [1e-12, 0.0025, 0.04])
def test_plan_with_the_wrong_rho_cannot_exist(rho):
    """A user could claim any confidence for a calibration that they have already made."""
    with pytest.raises(PlanError, match="does not support gamma="):
        dataclasses.replace(plan(0.05), rho=rho)


@for_each("k", [0, -1, 20, 19.0, "19", None, True])
def test_plan_with_a_bad_k_cannot_exist(k):
    """A user would read the sensitivity off at a rank that no gap has."""
    with pytest.raises(PlanError, match=re.escape(f"k={k!r} is not an index from 1 to m=")):
        Plan(0.05, 19, k, None, "marginal")


@for_each("bound", ["tolerance", "dkw"])
@for_each("rho", [None, 0, 0.05, math.nan])
def test_plan_with_a_bad_rho_cannot_exist(bound, rho):
    """A user would hold a plan whose confidence is missing or impossible."""
    with pytest.raises(PlanError, match="rho"):
        Plan(0.05, 2000, 2000, rho, bound)


def test_plan_with_rho_and_marginal_cannot_exist():
    """A user would believe in a confidence that the marginal bound does not have."""
    with pytest.raises(PlanError, match="'marginal' has no rho"):
        Plan(0.05, 19, 19, 0.01, "marginal")


def test_plan_is_a_frozen_value():
    """A user could weaken a promise after it was checked, or fail to send it to a worker."""
    p = plan(0.05)
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.k = 1
    assert pickle.loads(pickle.dumps(p)) == p
    assert hash(p) == hash(plan(0.05))
    assert eval(repr(p)) == p


# --- numpy scalars ----------------------------------------------------------------------------


@pytest.mark.parametrize("bound", BOUNDS)
def test_plan_by_hand_accepts_numpy_scalars(bound):
    """A user who rebuilds a plan from a table of numbers would be refused a right one."""
    p = plan(0.05, 2000, bound=bound)
    rho = None if p.rho is None else np.float64(p.rho)
    made = Plan(np.float64(p.gamma), np.int64(p.m), np.int64(p.k), rho, bound)
    assert made == p
    assert repr(made) == repr(p)


# --- imports ----------------------------------------------------------------------------------


def test_small_plans_do_not_import_scipy():
    """A user would wait for scipy's import in every script that only plans."""
    code = """
import sys
from privatize.planning.divergence import transfer
from privatize.planning.plan import plan
for bound in ("tolerance", "dkw", "marginal"):
    for gamma in (0.5, 0.2, 0.1, 0.05, 0.01, 0.001):
        for m in (None, "least", "balanced"):
            plan(gamma, m, bound=bound)
    plan(0.2, 100, bound=bound)
    plan(m=10**6, bound=bound)
plan(0.01, 4000)
transfer(0.05, 999, 2e-6)
print([name for name in sys.modules if name.partition(".")[0] == "scipy"])
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert answer.stdout == "[]\n", answer.stderr


@for_each("m", ["least", "balanced"])
@for_each("bound", ["tolerance", "dkw", "marginal"])
@for_each("gamma", [1e-15, 1e-12, 1.1e-8, 1e-3, 0.999, math.nextafter(1, 0)])
def test_the_corners_of_gamma(gamma, bound, m):
    """A user's plan for a tiny gamma by the bound 'dkw' was searched for forever."""
    if bound == "dkw" and gamma < 1e-8:
        with pytest.raises(
            PlanError, match=r"nobody can evaluate more than 10\^17\. Raise gamma or use bound='tol"
        ):
            plan(gamma, m, bound=bound)
    else:
        assert plan(gamma, m, bound=bound).gamma == gamma


@pytest.mark.parametrize("bound", ["tolerance", "dkw", "marginal"])
def test_the_largest_number_of_pairs(bound):
    """A user would be refused a number of pairs that the message allows, for a gamma that was not given."""
    assert plan(m=10**18, bound=bound).gamma >= 1e-15


def test_a_plan_for_a_group():
    """Whoever plans for a minority would have to know that its gamma is divided by its share."""
    for bound in BOUNDS:
        assert plan(0.05, share=0.1, bound=bound) == plan(0.005, bound=bound)
    assert plan(0.05, share=1) == plan(0.05)
    assert plan(0.05, 5573, share=0.1) == plan(0.005, 5573)
    for given_, match in (
        ({"m": 100, "share": 0.1}, "pass gamma, too"),
        ({"gamma": 0.1, "share": 2}, "share=2"),
    ):
        with pytest.raises(PlanError, match=match):
            plan(**given_)
    with pytest.raises(PlanError, match="out of reach"):
        plan(0.05, 557, share=0.1)
