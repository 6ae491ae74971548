"""The marginal bound: it needs only exchangeability, and holds on average over calibrations."""

import math

from privatize.planning.bounds import LEAST_GAMMA, Bounding, Point, exact
from privatize.planning.tolerance import Tolerance


class Marginal(Bounding):
    """The bound from exchangeability. It has no rho."""

    def holds(self, point: Point) -> bool:
        return point.rho is None and point.k >= (1 - exact(point.gamma)) * (point.m + 1)

    def largest_rho(self, _: float) -> float:
        return 0.0

    def least(self, gamma: float, _: float | None) -> int:
        return max(1, math.ceil(1 / exact(gamma) - 1))

    def balanced(self, gamma: float, _: float | None) -> int:
        # Every feasible m is balanced here: take the one at which the estimate is as steady
        # as the tolerance bound's.
        return Tolerance().balanced(gamma, None)

    def of_both(self, gamma: float, m: int, _: float | None) -> Point | None:
        k = math.ceil((1 - exact(gamma)) * (m + 1))
        return Point(gamma, m, k, None) if k <= m else None

    def of_m(self, m: int, _: float | None) -> Point:
        gamma = max(1 / (m + 1), LEAST_GAMMA)
        while exact(gamma) * (m + 1) < 1:
            gamma = math.nextafter(gamma, 1)
        return Point(gamma, m, m, None)
