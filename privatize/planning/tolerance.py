"""The tolerance bound: the paper's statement with the exact binomial tail."""

import math

from privatize.errors import PlanError
from privatize.planning.bounds import LEAST_GAMMA, Bounding, Point, bisect, exact, first

# A computed tail must be below rho by this relative margin, which covers its rounding.
_MARGIN = 1e-12
# Below these the tail is summed term by term with `math` alone (see `_tail`).
_TERMS = 500
_EXPONENT = 600.0

# With q = gamma - rho and j = m - k + 1, the estimate fails to cover 1 - q of the pairs only if
# at most j - 1 of m gaps fall into the upper q of the distribution: P(Bin(m, q) <= j - 1).


def _tail(m: int, j: int, q: float) -> float:
    """Return P(Bin(m, q) <= j - 1), to a relative 1e-12."""
    if j <= _TERMS and -m * math.log1p(-q) <= _EXPONENT:
        # exp's argument is at most 600 and carries two roundings, each term three more:
        # 600 * 2^-52 + 3 * 500 * 2^-53 < 4e-13 in all.
        term = total = math.exp(m * math.log1p(-q))
        odds = q / (1 - q)
        for i in range(1, j):
            term *= (m - i + 1) / i * odds
            total += term
        return total
    # Binomial cdf routines err on the unsafe side at large m; this one does not.
    from scipy.special import betaincc

    return float(betaincc(j, m - j + 1, q))


def _covers(m: int, j: int, gamma: float, rho: float) -> bool:
    # One ulp off gamma - rho, since its rounding weighs as much as sqrt(m) roundings of the tail.
    q = math.nextafter(gamma - rho, 0)
    return 0 < q < 1 and _tail(m, j, q) <= rho * (1 - _MARGIN)


def _best_rho(m: int, j: int, gamma: float) -> float | None:
    """Return a rho at which `_covers`, or None if there is none.

    h(rho) = tail - rho has derivative Beta(k, j)-density(1 - gamma + rho) - 1. Up to the mode of
    that density h is convex, beyond it concave with h(gamma) = 1 - gamma > 0. So the feasible
    rho form one interval, and if there are any, the minimum of the convex part is one.
    """
    k = m - j + 1
    if k < 2:
        return None
    constant = _log_factorials(m, k) - math.lgamma(j)

    def log_density(q: float) -> float:
        return constant + (k - 1) * math.log1p(-q) + ((j - 1) * math.log(q) if j > 1 else 0.0)

    mode = (j - 1) / (m - 1)
    if mode >= gamma or log_density(gamma) >= 0:
        return None
    # log_density is concave and decreasing right of the mode: Newton from the right is monotone.
    q = gamma
    for _ in range(60):
        slope = -(k - 1) / (1 - q) + (j - 1) / q
        step = log_density(q) / slope if slope < 0 else 0.0
        if not q - step > mode:
            return None  # the density stays below one: no minimum inside
        q -= step
        if step <= 1e-12 * q:
            break
    rho = gamma - q
    return rho if rho > 0 and _covers(m, j, gamma, rho) else None


def _log_factorials(m: int, k: int) -> float:
    """Return log(m! / (k-1)!), whose digits the difference of two lgamma would lose at large m."""
    if k < 1000:
        return math.lgamma(m + 1) - math.lgamma(k)
    j = m - k + 1  # Stirling's formula, without the terms that cancel; off by less than 1 / (360 k^3)
    return j * math.log(k) + (m + 0.5) * math.log1p(j / k) - j + 1 / (12 * (m + 1)) - 1 / (12 * k)


def _smallest_rho(m: int, j: int, gamma: float) -> float:
    """Return the safe end of a bisection for the least rho that covers."""
    good = _best_rho(m, j, gamma)
    assert good is not None
    return bisect(0.0, good, lambda rho: _covers(m, j, gamma, rho), 1e-10)


class Tolerance(Bounding):
    """The exact binomial tail."""

    def holds(self, point: Point) -> bool:
        return point.rho is not None and _covers(point.m, point.m - point.k + 1, point.gamma, point.rho)

    @staticmethod
    def _feasible(m: int, j: int, gamma: float, rho: float | None) -> bool:
        if j > m:
            return False
        if rho is None:
            return _best_rho(m, j, gamma) is not None
        return _covers(m, j, gamma, rho)

    def _least(self, j: int, gamma: float, rho: float | None, start: int) -> int:
        # For fixed j the tail falls as m grows, so feasibility is monotone in m.
        return first(start, lambda m: self._feasible(m, j, gamma, rho))

    def least(self, gamma: float, rho: float | None) -> int:
        start = math.log(1 / (rho or gamma / 10)) / gamma
        return self._least(1, gamma, rho, int(start))

    def balanced(self, gamma: float, rho: float | None) -> int:
        share = exact(gamma)
        m, j = self.least(gamma, rho), 1
        while 2 * j < share * (m + 1):
            # The least m never falls as j grows, so no j below gamma (m+1) / 2 is enough.
            before, j = j, math.ceil(share * (m + 1) / 2)
            m = self._least(j, gamma, rho, m + int((j - before) / gamma))
        return m

    def of_both(self, gamma: float, m: int, rho: float | None) -> Point | None:
        if not self._feasible(m, 1, gamma, rho):
            return None
        # Feasibility is monotone in j as well; for a balanced m, the largest j is half of gamma * m.
        most = first(int(gamma * m / 2) + 1, lambda j: not self._feasible(m, j, gamma, rho)) - 1
        chosen = _smallest_rho(m, most, gamma) if rho is None else rho
        return Point(gamma, m, m - most + 1, chosen)

    def of_m(self, m: int, rho: float | None) -> Point:
        if m == 1 and rho is None:
            raise PlanError("One pair supports no gamma below 1. Raise m to 2 or more.", m=m)
        # k = m: (1 - gamma + rho)^m = rho, so gamma = 1 + rho - rho^(1/m), least where rho is
        # m^(-m/(m-1)). Asking for twice the margin makes the float gamma feasible.
        free = math.exp(-m / (m - 1) * math.log(m)) if rho is None else rho
        gamma = max(free - math.expm1((math.log(free) + math.log1p(-2 * _MARGIN)) / m), LEAST_GAMMA)
        while gamma < 1 and not _covers(m, 1, gamma, free):
            gamma = math.nextafter(gamma, 1) + 1e-15 * gamma
        if not gamma < 1:
            raise PlanError(f"m={m} supports no gamma below 1 at rho={rho}. Raise m to 2 or more.", m=m)
        return Point(gamma, m, m, free)
