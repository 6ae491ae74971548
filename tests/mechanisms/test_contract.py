"""What every mechanism of the library must do."""

import copy
import pickle

import numpy as np
import pytest

from privatize import Bernstein, Exponential, Gaussian, Laplace, Mechanism, privatize, samplers
from privatize.identity.fingerprint import fingerprint
from privatize.mechanisms import as_mechanism
from privatize.mechanisms.base import complete
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
# Each with an (epsilon, delta) that fits, and a function of a dataset in [0, 1] that it can release.
MECHANISMS = {
    "laplace": (Laplace(), 0.0, lambda x: x.mean()),
    "laplace, scaled": (Laplace(scaled="relative"), 0.0, lambda x: [x.mean(), 100 * x.max()]),
    "gaussian": (Gaussian(), 1e-6, lambda x: [x.mean(), x.std()]),
    "gaussian, scaled": (Gaussian(scaled="total"), 1e-6, lambda x: [x.mean(), 100 * x.max()]),
    "exponential": (Exponential(range(3)), 0.0, lambda x: [x.mean(), x.max(), x.min()]),
    "bernstein": (Bernstein(lattice=4), 0.0, lambda x, at: at * x.mean()),
}


@for_each("name", MECHANISMS)
def test_it_is_a_frozen_public_value(name):
    """A mechanism could be changed after calibration, or have another identity in a worker."""
    mechanism = MECHANISMS[name][0]
    assert isinstance(mechanism, Mechanism) and as_mechanism(mechanism) is mechanism
    with pytest.raises(AttributeError):
        mechanism.scaled = "other"
    for again in (copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))):
        assert again == mechanism and repr(again) == repr(mechanism)
        assert fingerprint(again) == fingerprint(mechanism)


@for_each("name", MECHANISMS)
def test_its_norm_is_a_norm_as_far_as_privacy_needs(name):
    """A larger gap would be measured as smaller, or the order of the two neighbours would matter."""
    mechanism = MECHANISMS[name][0]
    gaps = np.random.default_rng(0).normal(size=(50, 3))
    for gap in gaps:
        size = mechanism.norm(gap)
        assert size > 0 and mechanism.norm(-gap) == pytest.approx(size, rel=1e-12)
        assert mechanism.norm(2 * gap) == pytest.approx(2 * size, rel=1e-12)
    assert mechanism.norm(np.zeros(3)) == 0
    assert not np.isfinite(mechanism.norm(np.array([1.0, np.inf, 0.0])))


@for_each("name", MECHANISMS)
def test_its_scale_follows_sensitivity_and_epsilon(name):
    """More sensitivity, or a stronger promise, would not mean more noise."""
    mechanism, delta, _ = MECHANISMS[name]
    scale = mechanism.scale(1.0, 1.0, delta)
    assert 0 < scale < np.inf
    assert mechanism.scale(2.0, 1.0, delta) == pytest.approx(2 * scale)
    assert mechanism.scale(1.0, 0.5, delta) > scale


@for_each("name", MECHANISMS)
def test_a_delta_that_does_not_fit_is_refused(name):
    """A promise would be stated that the mechanism does not keep, or a delta be spent for nothing."""
    mechanism, delta, _ = MECHANISMS[name]
    complete(mechanism).check(1.0, delta)
    with pytest.raises(ValueError, match="delta"):
        complete(mechanism).check(1.0, 0.0 if delta else 0.1)


@for_each("name", MECHANISMS)
def test_a_private_answer(name):
    """A mechanism that works by itself would not work under the decorator."""
    mechanism, delta, function = MECHANISMS[name]
    private = privatize(
        mechanism=mechanism, epsilon=0.01, delta=delta, gamma=0.2, sampler=UNIT, seed=1, store=None
    )(function)
    data = np.linspace(0, 1, 50)
    released = [private.release(data) for _ in range(30)]
    # With three outcomes, all 30 are the same once in 3**29 runs.
    assert len({pickle.dumps(one.value) for one in released}) > 1
    for one in released:
        assert one.epsilon == 0.01 and one.delta == delta and one.gamma <= 0.2


@pytest.mark.usefixtures("own_generators")
@for_each("name", MECHANISMS)
def test_the_noise_is_not_numpys(name):
    """Noise from a generator that others can seed or read would be no secret."""
    mechanism, delta, _ = MECHANISMS[name]
    found = set()
    for _ in range(30):
        np.random.seed(5)
        vector, integers = np.array([1.0, 2.0, 3.0]), np.zeros(3, dtype=bool)
        out = mechanism.release(vector, sensitivity=100.0, epsilon=1.0, delta=delta, whole=integers)
        found.add(np.asarray(out).tobytes())
    assert len(found) > 1
