"""The (ε, δ) of normal noise, continuous and on a grid."""

import math

from privatize.planning.bounds import bisect


def least_sigma(epsilon: float, delta: float) -> float:
    """Return the least σ, for sensitivity 1, at which normal noise is (ε, δ)-private.

    It is rounded up: `excess_delta` is an upper bound, and the safe end of the bisection is
    returned.
    """
    low = high = 1.0
    while excess_delta(high, epsilon) > delta:
        high *= 2
    while excess_delta(low, epsilon) <= delta:
        low /= 2
    return bisect(low, high, lambda sigma: excess_delta(sigma, epsilon) <= delta, 1e-14)


def excess_delta(sigma: float, epsilon: float) -> float:
    """Return an upper bound on the δ of normal noise σ at sensitivity 1 and this ε.

    δ = Φ(a) - e^ε Φ(b) with a = 1/2σ - εσ and b = -1/2σ - εσ (Balle & Wang, Theorem 8). Since
    b² - a² = 2ε this is e^(-a²/2) (erfcx(-a/√2) - erfcx(-b/√2)) / 2, which does not cancel in the
    exponents and so keeps its digits however small δ is.
    """
    a = 1 / (2 * sigma) - epsilon * sigma
    b = -1 / (2 * sigma) - epsilon * sigma
    if a > 5:  # no cancellation: the first term is close to one, the second tiny
        return min(1.0, 0.5 * math.erfc(-a / math.sqrt(2)) * (1 + 1e-15))
    x, y = -a / math.sqrt(2), -b / math.sqrt(2)
    # Both erfcx have a relative error below 1e-12, the exponential one below a² 2^-51.
    difference = _erfcx(x) * (1 + 1e-12) - _erfcx(y) * (1 - 1e-12)
    return 0.5 * math.exp(-a * a / 2) * difference * (1 + (1 + a * a) * 1e-15)


def _erfcx(x: float) -> float:
    """Return exp(x²) erfc(x), to a relative 1e-12 for x > -4."""
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    z = 1 / (2 * x * x)
    return (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z * (1 - 9 * z))))) / (x * math.sqrt(math.pi))


def least_epsilon(sigma: float, delta: float) -> float:
    """Return the least ε at which normal noise σ is (ε, δ)-private at sensitivity 1, rounded up."""
    if excess_delta(sigma, 0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while excess_delta(sigma, high) > delta:
        low, high = high, 2 * high
    return bisect(low, high, lambda epsilon: excess_delta(sigma, epsilon) <= delta, 1e-12)


def discretization(epsilon: float, delta: float) -> float:
    """Return how far discrete Gaussian noise is from the rounded continuous one at most, in total variation.

    This is for all coordinates together, whatever their number: the grid is at most 2^-40 sigma / sqrt(size),
    and costs at most 2^-20 of delta.
    """
    costs = 2.0 ** (math.log2(delta) - 20 - min(log2_1p_exp(epsilon), 900.0))
    return math.nextafter(min(costs, 2.0**-80 / 24), 1.0)


def log2_1p_exp(epsilon: float) -> float:
    """Return log2(1 + e^epsilon), which does not overflow."""
    return epsilon / math.log(2) + math.log2(1 + math.exp(-epsilon))
