"""The interface of functions with a proven bound, and how they are found."""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from privatize import Bernstein, Exponential, Gaussian, Laplace
from privatize.calibration.proven import Answer, Proven, proven_of
from privatize.errors import SettingsError
from privatize.outputs.describe import describe


@dataclass(frozen=True)
class Total(Proven):
    """A sum of numbers from 0 to 1, as short as it can be."""

    function: Any
    words = "by a bound of this test"

    def wrapped(self, wrap, /):
        return replace(self, function=wrap(self.function))

    def structure(self, n):
        return describe(0.0)

    def measure(self, data, n):
        return np.array([np.clip(self.function(data), 0, 1).sum()])

    def release(self, measured, n, mechanism, epsilon, delta):
        whole = np.array([False])
        noised = mechanism.release(measured, sensitivity=1.0, epsilon=epsilon, delta=delta, whole=whole)
        return Answer(noised, mechanism.scale(1.0, epsilon, delta), 1.0)


class Summed:
    """A function that brings its bound."""

    def __call__(self, *args, power=1):
        return args[-1] ** power

    def __privatize_proven__(self, _, /):
        return Total(self)


class Passed:
    """A callable that passes its dataset on."""

    def __init__(self, function):
        self.function = function

    def __call__(self, data):
        return self.function(data)

    def __privatize_proven__(self, proven_of, /):
        inner = proven_of(self.function)
        return inner and inner.wrapped(Passed)


def test_bound_is_found_through_partials_and_methods():
    """A function with public arguments would be refused, or evaluated without them."""
    data, f = np.array([0.5, 1.0]), Summed()
    for function, expected in [
        (f, 1.5),
        (functools.partial(f, power=2), 1.25),
        (functools.partial(functools.partial(f, "ignored"), power=2), 1.25),
        (Passed(functools.partial(f, power=2)), 1.25),
        (functools.partial(Passed(f)), 1.5),
    ]:
        found = proven_of(function)
        assert found is not None and found.measure(data, 2).tolist() == [expected]
    assert proven_of(f, power=2).measure(data, 2).tolist() == [1.25]
    for function in (np.mean, functools.partial(np.quantile, q=0.5), [].append, Passed(np.mean), None):
        assert proven_of(function) is None


def test_only_laplace_and_gaussian_fit():
    """Another mechanism would add noise that is calibrated to another norm."""
    found = Total(Summed())
    found.check(Laplace(), 1.0, 0.0)
    found.check(Gaussian(), 1.0, 1e-6)
    assert (found.noise_of(Laplace()), found.noise_of(Gaussian())) == ("laplace", "normal")

    class Own(Laplace):
        pass

    for mechanism, delta in [
        (Exponential([1, 2]), 0.0),
        (Bernstein(), 0.0),
        (Own(), 0.0),
        (Laplace(scaled="total"), 0.0),
        (Gaussian(scaled="relative"), 1e-6),
        (Gaussian(), 0.0),
        (Laplace(), 1e-6),
    ]:
        with pytest.raises(SettingsError):
            found.check(mechanism, 1.0, delta)
