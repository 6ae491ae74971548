"""Plans: golden figures, the inequalities themselves, and what is refused."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import re
import subprocess
import sys
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from privatize.errors import PlanError, SettingsError
from privatize.planning.divergence import transfer
from privatize.planning.plan import Plan, plan
from tests.cases import for_each

BOUNDS = ("tolerance", "dkw", "marginal")

# The same examples in every run; none of them is timed.
properties = settings(max_examples=100, deadline=None, derandomize=True, database=None)
gammas = st.floats(0.002, 0.998)
pairs = st.integers(1, 3000)
bounds = st.sampled_from(BOUNDS)
# A free rho as a share of its upper limit; None leaves it to the library.
rho_shares = st.none() | st.floats(1e-9, 0.99)


# --- reference values, independent of the package ---------------------------------------------


def exact_tail(m: int, k: int, gamma: float, rho: float) -> Decimal:
    """Return P(Bin(m, 1 - gamma + rho) >= k) of the floats as they are, to about 45 digits."""
    with localcontext(Context(prec=50)):
        q = Decimal(gamma) - Decimal(rho)
        odds = q / (1 - q)
        term = total = (m * (1 - q).ln()).exp()
        for i in range(1, m - k + 1):
            term *= (m - i + 1) * odds / i
            total += term
        return total


def dkw_need(m: int, gamma: float, rho: float) -> Decimal:
    """Return the paper's condition on k: at least m (1 - gamma + rho + sqrt(log(1/rho) / 2m))."""
    with localcontext(Context(prec=50)):
        return m * (1 - Decimal(gamma) + Decimal(rho) + (-Decimal(rho).ln() / (2 * m)).sqrt())


def written(gamma: float) -> Fraction:
    """Return the rational that a user wrote: 0.1 is one tenth."""
    return Fraction(str(gamma))


def free_rho(share: float | None, gamma: float, bound: str) -> float | None:
    """Turn a share of the range of rho into a rho that the bound accepts."""
    if share is None or bound == "marginal":
        return None
    return share * (min(gamma, 0.5) if bound == "dkw" else gamma)


def attempt(gamma: float | None, m: int | str | None, rho: float | None, bound: str) -> Plan | None:
    """Return a plan, or None if the request is out of reach; any other refusal fails the test."""
    try:
        return plan(gamma, m, rho, bound=bound)
    except PlanError as error:
        if "out of reach" not in str(error):
            raise
        return None


def assert_satisfies_its_inequality(p: Plan) -> None:
    assert 1 <= p.k <= p.m
    if p.bound == "marginal":
        assert p.rho is None
        assert Fraction(p.k, p.m + 1) >= 1 - written(p.gamma)
        return
    assert 0 < p.rho < p.gamma
    # DKW only weakens the binomial tail, so its plans must pass this as well, and strictly.
    assert exact_tail(p.m, p.k, p.gamma, p.rho) <= Decimal(p.rho)
    if p.bound == "dkw":
        assert p.rho < 0.5
        assert p.k >= dkw_need(p.m, p.gamma, p.rho) * (1 - Decimal("1e-12"))


def test_exact_tail_is_exact():
    """With a wrong reference the tests below would accept unsafe plans."""
    gamma, rho, m = 0.75, 0.125, 40
    p = 1 - Fraction(gamma) + Fraction(rho)
    for k in range(1, m + 1):
        rational = sum(math.comb(m, i) * p**i * (1 - p) ** (m - i) for i in range(k, m + 1))
        assert abs(Fraction(exact_tail(m, k, gamma, rho)) / rational - 1) < Fraction(1, 10**40)


# --- golden figures: dkw ----------------------------------------------------------------------


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


# --- golden figures: tolerance ----------------------------------------------------------------


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


# --- golden figures: marginal -----------------------------------------------------------------


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
@given(gamma=gammas, m=pairs, share=rho_shares)
def test_tolerance_is_never_worse_than_dkw(gamma, m, share):
    """A user of the default bound would pay more than the paper asks for the same statement."""
    rho = free_rho(share, gamma, "dkw")
    paper, exact = attempt(gamma, m, rho, "dkw"), attempt(gamma, m, rho, "tolerance")
    if paper is not None:
        assert exact is not None
        assert exact.k <= paper.k
    assert plan(gamma, "least", rho).m <= plan(gamma, "least", rho, bound="dkw").m


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


@properties
@given(gamma=gammas, m=st.integers(1, 1000), share=rho_shares, bound=bounds)
@example(gamma=0.5, m=2, share=2e-10, bound="tolerance")
@example(gamma=0.5, m=1, share=None, bound="tolerance")
@example(gamma=0.9, m=2, share=0.5, bound="dkw")
def test_printed_bounds_are_feasible_and_least(gamma, m, share, bound):
    """A user who follows the error's advice would be refused again, or pay too much."""
    rho = free_rho(share, gamma, bound)
    try:
        plan(gamma, m, rho, bound=bound)
    except PlanError as error:
        refusal = error
    else:
        assume(False)
    samples = int(re.search(r"Raise samples to (\d+) or more", str(refusal)).group(1))
    assert refusal.least_m == samples > m
    assert plan(gamma, samples, rho, bound=bound).m == samples
    assert attempt(gamma, samples - 1, rho, bound) is None
    if "support no gamma below 1" in str(refusal):
        assert refusal.least_gamma is None
        assert attempt(math.nextafter(1, 0), m, rho, bound) is None
    else:
        printed = re.search(r"support gamma >= (\d\.\d+)", str(refusal)).group(1)
        assert plan(float(printed), m, rho, bound=bound).m == m
        assert refusal.least_gamma <= float(printed)
        # Rounded up by less than one unit of the last place printed.
        assert Decimal(printed) - Decimal(refusal.least_gamma) < Decimal(1).scaleb(
            Decimal(printed).as_tuple()[2]
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


@pytest.mark.parametrize("m", [19, "least", "balanced", None])
def test_marginal_refuses_rho(m):
    """A user would believe in a confidence that the marginal bound does not have."""
    with pytest.raises(PlanError, match="'marginal' has no rho"):
        plan(0.05, m, 0.01, bound="marginal")
    with pytest.raises(PlanError, match="'marginal' has no rho"):
        plan(m=19, rho=0.01, bound="marginal")


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
def test_plan_accepts_numpy_scalars(bound):
    """A user whose settings come out of an array would be refused, or get unprintable plans."""
    rho = None if bound == "marginal" else 0.01
    expected = plan(0.125, 1000, rho, bound=bound)
    for count in (np.int32(1000), np.int64(1000), np.uint16(1000)):
        for real in (np.float32, np.float64):
            p = plan(real(0.125), count, None if rho is None else np.float64(rho), bound=bound)
            assert p == expected
            assert repr(p) == repr(expected)
            assert (type(p.gamma), type(p.m), type(p.k)) == (float, int, int)
    p = plan(m=np.int64(1000), bound=bound)
    assert p == plan(m=1000, bound=bound)
    assert type(p.m) is int


@pytest.mark.parametrize("bound", BOUNDS)
def test_plan_by_hand_accepts_numpy_scalars(bound):
    """A user who rebuilds a plan from a table of numbers would be refused a right one."""
    p = plan(0.05, 2000, bound=bound)
    rho = None if p.rho is None else np.float64(p.rho)
    made = Plan(np.float64(p.gamma), np.int64(p.m), np.int64(p.k), rho, bound)
    assert made == p
    assert repr(made) == repr(p)


# --- transfer ---------------------------------------------------------------------------------


@for_each(
    ("gamma", "n", "kl", "expected"),
    [
        # Data processing. Pinsker's inequality gives .121, .081 and .072 in the first three.
        (0.05, 1000, 1e-5, 0.0869236),
        (0.01, 1000, 1e-5, 0.0311402),
        (0.001, 1000, 1e-5, 0.0135360),
        (0.05, 10**6, 0, 0.05),
        (0.05, 10**6, 1, 1.0),
        (0.5, 3, math.inf, 1.0),
        (0.05, 10**400, 1e-5, 1.0),
    ],
)
def test_transfer(gamma, n, kl, expected):
    """A user whose data differs from P would believe in a wrong promise."""
    assert transfer(gamma, n, kl) == pytest.approx(expected, rel=1e-5, abs=0)


@given(
    st.floats(1e-15, 1 - 1e-9),
    st.integers(1, 10**9),
    st.floats(1e-12, 1e3),
    st.floats(1e-9, 1),
    st.integers(0, 99),
)
def test_transfer_is_the_largest_share_that_the_divergence_allows(gamma, n, budget, step, at):
    """A user would be promised less than what an event of probability gamma can become under Q, or far more.

    An event has probability gamma under a two-valued P and q under a two-valued Q, whose divergence is the
    binary one: the bound must reach such a q, and not stop before it.
    """
    kl = budget / (n + 1)
    found = transfer(gamma, n, kl)
    pinsker = gamma + math.sqrt(budget / 2)
    assert gamma <= found <= min(1.0, pinsker) * (1 + 2.0**-49)  # the paper's, but for a few roundings
    q = Fraction(gamma) + (1 - Fraction(gamma)) * Fraction(at, 100)  # some share that could come true
    if gamma < q < 1:
        with localcontext() as context:
            context.prec = 60
            p, r = Decimal(gamma), Decimal(q.numerator) / Decimal(q.denominator)
            exact = p * (p / r).ln() + (1 - p) * ((1 - p) / (1 - r)).ln()
            if exact <= Decimal(kl) * (n + 1):
                assert found >= float(q) * (1 - 1e-15)
            elif exact > Decimal(kl) * (n + 1) * Decimal("1.000001") + Decimal("1e-12"):
                assert found <= float(q)
    assert transfer(gamma, n, kl * (1 + step)) >= found  # farther away is worse
    assert transfer(min(gamma * (1 + step), 1 - 1e-9), n, kl) >= min(found, 1 - 1e-9) * (1 - 1e-15)


@for_each(
    ("gamma", "n", "kl", "match"),
    [
        (0, 10, 0.1, "gamma=0 "),
        (1, 10, 0.1, "gamma=1 "),
        (0.05, 0, 0.1, "n=0 "),
        (0.05, 1.5, 0.1, "n=1.5 "),
        (0.05, "x", 0.1, "n='x' "),
        (0.05, True, 0.1, "n=True "),
        (0.05, 10, -0.1, "kl=-0.1 "),
        (0.05, 10, math.nan, "kl=nan "),
        (0.05, 10, "x", "kl='x' "),
    ],
)
def test_transfer_refuses(gamma, n, kl, match):
    """A user's mistake would come out as a promise."""
    with pytest.raises(SettingsError, match=re.escape(match)):
        transfer(gamma, n, kl)


@pytest.mark.parametrize("kl", [1e-300, 1.2e-40, 1e-33, 1e-20])
def test_transfer_adds_no_more_than_the_papers_bound(kl):
    """A user whose data is nearly drawn from P would be promised less than the paper promises."""
    gamma = 0.9516511453194575
    assert transfer(gamma, 180886, kl) <= (gamma + math.sqrt(180887 * kl / 2)) * (1 + 2.0**-51)


def test_transfer_accepts_numpy_scalars():
    """A user whose n comes out of an array's shape or sum would be refused."""
    answer = transfer(np.float64(0.05), np.int64(999), np.float64(2e-6))
    assert answer == transfer(0.05, 999, 2e-6)
    assert type(answer) is float


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
