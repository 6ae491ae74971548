"""The delta of normal noise is its integral, and the least sigma is safe."""

import math

import numpy as np
import pytest

from privatize.planning.gaussian import excess_delta, least_sigma
from tests.cases import for_each


@for_each("epsilon", [1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0, 700.0, 2000.0])
@for_each("delta", [1e-300, 1e-30, 1e-12, 1e-6, 0.01, 0.5, 0.99])
def test_least_sigma_is_safe_and_least(epsilon, delta):
    """The standard deviation gives at most delta, and one slightly smaller gives more."""
    sigma = least_sigma(epsilon, delta)
    assert excess_delta(sigma, epsilon) <= delta
    assert excess_delta(sigma * (1 - 1e-6), epsilon) > delta * (1 - 1e-2)


@for_each("epsilon", [0.01, 0.3, 1.0, 4.0])
@for_each("sigma", [0.3, 1.0, 4.0, 30.0])
def test_excess_delta_is_the_integral(sigma, epsilon):
    """The formula agrees with the hockey-stick divergence integrated numerically."""
    x = np.linspace(-40 * sigma, 40 * sigma, 2_000_001)
    p, q = (np.exp(-((x - c) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi)) for c in (1, 0))
    integral = np.maximum(0, p - math.exp(epsilon) * q).sum() * (x[1] - x[0])
    assert excess_delta(sigma, epsilon) == pytest.approx(integral, rel=1e-3, abs=1e-12)
