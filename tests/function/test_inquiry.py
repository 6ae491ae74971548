"""A function of a catalogue: which options it gets, and what is refused when it is added."""

import numpy as np
import pytest

from privatize import Blocks, Gaussian, Laplace, additive
from privatize.errors import SettingsError
from tests.cases import for_each
from tests.function.catalogued import catalogue, fresh, mean, sealed, share_above


def inquiry(function=mean, **more):
    """Return a member's function with its options."""
    return catalogue().add(function, name="one", **more).inquiry


def test_members_have_the_options_of_the_catalogue_and_their_own():
    """A member would be calibrated for another promise than the one it has."""
    made = catalogue(gamma=0.1, mechanism="gaussian", samples=400, timeout=60, workers=None)
    one, other = made.add(mean).inquiry, made.add(np.median, mechanism=Laplace(), min_sensitivity=0.1).inquiry
    assert (one.settings.gamma, one.settings.samples, one.settings.timeout) == (0.1, 400, 60)
    assert (one.settings.mechanism, other.settings.mechanism) == (Gaussian(), Laplace())
    assert other.settings.min_sensitivity == 0.1 and one.sampled


@for_each(
    "options",
    [
        {"sensitivity": 1.0},
        {"mechanism": Blocks(0, 1)},
        {"function": additive(np.square, bounds=(0, 1))},
    ],
)
def test_bounds_for_all_pairs_need_no_samples(options):
    """They would be calibrated and charged like sampled questions."""
    found = inquiry(**options)
    assert not found.sampled and found.settings.plan is None
    assert found.promise.startswith("differentially private for all pairs")


def test_epsilon_and_delta_belong_to_each_question():
    """Every answer would spend the same, or be charged under the name of another question."""
    found = inquiry(share_above, limit=[0.5])
    asked = found.asked(found.choices[0], 0.3, 0.0)
    assert (asked.settings.epsilon, asked.charged) == (0.3, f"{found.catalogue}.one(limit=0.5)")
    assert found.settings_for(0.3, 0.0) is asked.settings  # a warm call makes nothing new
    with pytest.raises(SettingsError, match="epsilon"):
        found.settings_for(-1, 0.0)


def test_aligned_data_is_named():
    """A function would get all parts as one argument."""
    X, y = sealed(name=fresh("X")), sealed(name=fresh("y"))
    made = catalogue((X, y), sampler=lambda n, rng: (rng.random(n), rng.random(n)))
    with pytest.raises(SettingsError, match=r"add\(data=\('X', 'y'\)\)"):
        made.add(lambda X, y: (X * y).mean(), name="product")
    made.add(lambda X, y: (X * y).mean(), name="product", data=("X", "y"))
    made.add(lambda k, y, X: (X * y).mean() * k, name="other", data=("X", "y"), k=[1, 2])
    made.calibrate()
    assert abs(made.product(epsilon=1) - 0.33) < 0.5
    assert abs(made.other(k=2, epsilon=1) - 0.66) < 0.9
    with pytest.raises(SettingsError, match="one dataset"):
        catalogue().add(lambda X, y: 0.0, name="f", data=("X", "y"))
