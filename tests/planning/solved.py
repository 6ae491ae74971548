"""The inequalities of the bounds, computed without the package."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

from privatize.errors import PlanError
from privatize.planning.plan import Plan, plan


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
