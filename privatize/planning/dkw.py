"""The bound of the paper's Theorem and Table: the Dvoretzky-Kiefer-Wolfowitz inequality."""

import functools
import math

from privatize.display.figures import round_up
from privatize.errors import PlanError
from privatize.planning.bounds import Bounding, Point, exact, first


def _lambert_lower(x: float) -> float:
    """Return W_{-1}(x) for -1/e < x < 0, by Halley's iteration, to the last digit or two."""
    u = -1 - math.log(-x)  # x = -exp(-u - 1)
    w = -1 - math.sqrt(2 * u) - 5 * u / 6  # between the bounds of Chatzigeorgiou (2013)
    for _ in range(50):
        # Solve w + log(-w) = log(-x), which does not underflow.
        f = w + math.log(w / x)
        new = w - f * w / (1 + w) if abs(1 + w) > 1e-8 else w
        if abs(new - w) <= 2e-16 * abs(w):
            return new
        w = new
    return w


def _best_rho(m: int) -> float:
    """Return the rho that minimizes `_error`: row 2 of the Table."""
    return math.exp(_lambert_lower(-1 / (4 * m)) / 2)


def _least_rho(gamma: float) -> float:
    """Return the rho that minimizes m: row 1 of the Table."""
    return math.exp(_lambert_lower(-gamma / (2 * math.sqrt(math.e))) + 0.5)


def _error(m: int, rho: float) -> float:
    return rho + math.sqrt(math.log(1 / rho) / (2 * m))


def band(m: int) -> tuple[float, float]:
    """Return (rho, error): with probability 1 - rho, Φ(G₍ₖ₎) >= k/m - error for all k at once.

    This is the Dvoretzky-Kiefer-Wolfowitz inequality with the rho that minimizes rho + error.
    """
    rho = _best_rho(m)
    return rho, math.sqrt(math.log(1 / rho) / (2 * m))


def running_band(m: int, rho: float) -> float:
    """Return the error of a band that holds for all k and all m at once, with probability 1 - rho.

    This is the same inequality at every m, each with rho / (m (m + 1)) of the risk, which sums to rho.
    """
    return math.sqrt((math.log(1 / rho) + math.log(m) + math.log(m + 1)) / (2 * m))


def _least(gamma: float, rho: float) -> float:
    return math.log(1 / rho) / (2 * (gamma - rho) ** 2)


class DKW(Bounding):
    """The paper's Theorem, and the two rows of its Table."""

    def holds(self, point: Point) -> bool:
        # The binomial tail never reaches the DKW bound, so a relative 1e-12 for the rounding of both sides is
        # harmless.
        gamma, m, k, rho = point
        error = math.inf if rho is None else _error(m, rho)
        return k >= m * (1 - gamma + error) * (1 - 1e-12) and error <= gamma * (1 + 1e-12)

    def largest_rho(self, gamma: float) -> float:
        return min(gamma, 0.5)

    def least(self, gamma: float, rho: float | None) -> int:
        return math.ceil(_least(gamma, _least_rho(gamma) if rho is None else rho))

    def balanced(self, gamma: float, rho: float | None) -> int:
        share = exact(gamma)
        least = self.least(gamma, rho)

        def spare(m: int) -> float:
            return m * (gamma - _error(m, _best_rho(m) if rho is None else rho))

        # j = floor(spare) + 1 gaps may be above the estimate; a balanced m has spare + 1 >= gamma (m+1) / 2.
        # The difference of the two is convex in m, so past the least m it changes sign once.
        def possible(m: int) -> bool:
            return m >= least and spare(m) + 1 >= gamma * (m + 1) / 2 * (1 - 1e-9)

        def reaches(j: int, m: int) -> bool:
            return m >= least and spare(m) >= j

        m = least if possible(least) else first(4 * least, possible)
        while True:
            j = math.floor(spare(m)) + 1
            if 2 * j >= share * (m + 1):
                return m
            m = first(m + 1, functools.partial(reaches, j))  # one more gap may be above

    def of_both(self, gamma: float, m: int, rho: float | None) -> Point | None:
        if m < self.least(gamma, rho):
            return None
        if rho is None:
            # Row 2 of the Table; at the least m of row 1 its own rho is needed.
            rho = _best_rho(m)
            if not (rho < min(gamma, 0.5) and _error(m, rho) <= gamma) or m == self.least(gamma, None):
                rho = _least_rho(gamma)
        k = min(m, math.ceil(m * (1 - gamma + _error(m, rho))))
        return Point(gamma, m, max(k, 1), rho)

    def of_m(self, m: int, rho: float | None) -> Point:
        rho = _best_rho(m) if rho is None else rho
        gamma = _error(m, rho)
        if not gamma < 1:
            message = (
                f"m={m} supports no gamma below 1 by the bound 'dkw': it would be {round_up(gamma)}. Raise m "
            )
            enough = math.floor(_least(1.0, rho)) + 1
            raise PlanError(f"{message}to {enough} or more.", m=m, bound="dkw")
        return Point(gamma, m, m, rho)
