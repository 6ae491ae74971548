"""The Gaussian mechanism has the least noise that its proof allows, at every epsilon and delta."""

import math

import numpy as np
import pytest

from privatize import Gaussian
from privatize.errors import SettingsError
from tests.cases import for_each


def test_refusals():
    """A delta that the mechanism cannot use, or a classic epsilon of 1, is refused."""
    for wrong in (0.0, 1.0, -0.1, 2.0, 5e-324):
        with pytest.raises(SettingsError, match="delta="):
            Gaussian().scale(1.0, 1.0, wrong)
    with pytest.raises(SettingsError, match="analytic"):
        Gaussian("classic").scale(1.0, 1.0, 1e-6)
    with pytest.raises(SettingsError, match="calibration="):
        Gaussian("modern")


def test_golden():
    """Analytic and classic sigma at (1, 1e-6), as published."""
    assert Gaussian().scale(1.0, 1.0, 1e-6) == pytest.approx(4.225, abs=5e-4)
    assert math.sqrt(2 * math.log(1.25e6)) == pytest.approx(5.299, abs=5e-4)
    assert Gaussian("classic").scale(1.0, 0.5, 1e-6) == pytest.approx(2 * 5.2988, abs=1e-3)


@pytest.mark.slow
@for_each("epsilon", [1e-10, 1e-3, 0.5, 1.0, 50.0, 1e5])
@for_each("delta", [1e-300, math.nextafter(1e-300, 1), 1e-100, 1e-6, 0.5, math.nextafter(1, 0)])
@for_each("calibration", ["analytic", "classic"])
def test_every_delta_that_is_allowed_works(calibration, delta, epsilon):
    """A user's delta of 1e-300 passed all checks, and then every call failed on the private data."""
    if calibration == "classic" and epsilon >= 1:
        return
    mechanism = Gaussian(calibration=calibration)
    mechanism.check(epsilon, delta)
    for size in (1, 40):
        found = mechanism.release(
            np.zeros(size), sensitivity=1.0, epsilon=epsilon, delta=delta, whole=np.zeros(size, dtype=bool)
        )
        assert np.isfinite(found).all() and found.any()


@for_each("epsilon", [1e-10, 1e-3, 1.0, 50.0, 1e5])
@for_each("delta", [1e-300, 1e-100, 1e-6, 0.5, math.nextafter(1, 0)])
def test_sigma_is_enough_at_every_corner(delta, epsilon):
    """A user's delta would be exceeded where floats run out of digits."""
    mpmath = pytest.importorskip("mpmath")
    sigma = mpmath.mpf(Gaussian().scale(1.0, epsilon, delta))
    with mpmath.workdps(400):  # Balle & Wang's delta, with more digits than floats have
        a, b = (sign / (2 * sigma) - epsilon * sigma for sign in (1, -1))
        first, second = (mpmath.erfc(-x / mpmath.sqrt(2)) / 2 for x in (a, b))
        assert first - mpmath.exp(epsilon) * second <= delta


def test_analytic_is_never_worse_than_classic():
    """The default needs no more noise than the paper's."""
    for epsilon in (0.01, 0.1, 0.9):
        for delta in (1e-9, 1e-3):
            assert Gaussian().scale(1, epsilon, delta) <= Gaussian("classic").scale(1, epsilon, delta)
