"""The Laplace mechanism adds noise of scale Δ/ε, integers to integers, and no more than that."""

import numpy as np
import pytest

from privatize import Laplace
from privatize.errors import InsecureNoiseWarning, SettingsError
from privatize.testing import insecure_noise
from tests.cases import for_each

TRIALS = 20_000


def released(vector, sensitivity, epsilon, whole=None):
    whole = np.zeros(len(vector), bool) if whole is None else whole
    with pytest.warns(InsecureNoiseWarning), insecure_noise(7):
        return Laplace().release(vector, sensitivity=sensitivity, epsilon=epsilon, delta=0.0, whole=whole)


@for_each("sensitivity, epsilon", [(1.0, 1.0), (3.0, 0.5), (1e-6, 8.0)])
def test_the_noise_has_the_scale_that_it_states(sensitivity, epsilon):
    """Answers would be less private than promised, or less accurate than stated.

    The mean of |noise| is the scale b, with a standard error of b/√TRIALS: 6 of them are a false-alarm rate
    below 1e-8, and the seed is fixed.
    """
    scale = Laplace().scale(sensitivity, epsilon)
    assert scale == sensitivity / epsilon
    noise = released(np.full(TRIALS, 5.0), sensitivity, epsilon) - 5.0
    assert abs(np.abs(noise).mean() / scale - 1) < 6 / np.sqrt(TRIALS)


def test_integers_stay_integers():
    """A private count would have decimals, which show that they are noise and nothing else."""
    whole = np.array([True, False] * 50)
    made = released(np.full(100, 10.0), 1.0, 0.5, whole)
    assert (made[whole] == np.rint(made[whole])).all() and (made[~whole] != np.rint(made[~whole])).any()


def test_wrong_scales_are_refused_when_it_is_made():
    """A misspelled option would be found after a calibration of hours."""
    with pytest.raises(SettingsError, match="relative"):
        Laplace(scaled="relativ")
    assert repr(Laplace()) == "Laplace()" and repr(Laplace(scaled="total")) == "Laplace(scaled='total')"
