"""Functions with a proven bound: what all of them have, unless they say otherwise."""

from dataclasses import dataclass

import numpy as np
import pytest

from privatize import Exponential, Gaussian, Laplace
from privatize.calibration.proof import Answer, Proven
from privatize.errors import SettingsError
from privatize.outputs.describe import describe


@dataclass(frozen=True)
class Half(Proven):
    """An answer that is always one half."""

    words = "because it does not depend on the data"

    def structure(self, n):
        """Return a float."""
        return describe(0.5)

    def measure(self, data, n):
        """Return one half."""
        return np.array([0.5])

    def release(self, measured, n, mechanism, epsilon, delta):
        """Return what was measured."""
        return Answer(measured, 0.0, 1.0)


def test_noise_of_laplace_and_gaussian_is_accepted_and_nothing_else():
    """A mechanism that the proof is not about would be used."""
    half = Half()
    half.check(Laplace(), 1.0, 0.0)
    half.check(Gaussian(), 1.0, 1e-6)
    assert half.noise_of(Laplace()) == "laplace" and half.noise_of(Gaussian()) == "normal"
    for mechanism, delta in (
        (Exponential(["a", "b"]), 0.0),
        (Laplace(), 1e-6),
        (Gaussian(), 0.0),
        (Laplace(scaled="total"), 0.0),
    ):
        with pytest.raises(SettingsError):
            half.check(mechanism, 1.0, delta)


def test_answers_without_noise_have_no_sensitivity():
    """An interval would be shown around an answer to which no noise was added."""
    with pytest.raises(SettingsError, match="No noise is added"):
        Half().bound_at(100, Laplace())


def test_a_function_of_the_dataset_alone_is_the_same_in_any_wrapper():
    """Other arguments would be applied to a function that takes none."""
    half = Half()
    assert half.wrapped(lambda function: None) is half
    assert half.fits([1, 2]) is None
