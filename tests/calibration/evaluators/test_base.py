"""A function is run under public seeds, and whatever goes wrong with it is an infinite gap."""

import math
import random
import sys

import numpy as np
import pytest

from privatize import plan
from privatize.errors import (
    InfiniteSensitivityError,
    OutputError,
)
from tests.calibration.estimates import estimate
from tests.cases import for_each


def test_values_that_are_too_large_or_too_small():
    """Estimates would be so large or small that floats lose digits."""
    with pytest.raises(InfiniteSensitivityError, match="1e300"):
        estimate(lambda x: 1e304 * x.mean())
    assert estimate(lambda x: 1e-310 * x.mean()).value == 1e-300


def test_global_generators_are_derandomized():
    """A function that subsamples with global generators is calibrated as one fixed function."""

    def subsample(x):
        rows = np.random.permutation(len(x))[:10]
        return x[rows].mean() + random.random()

    found = estimate(subsample, min_sensitivity=1e-9)
    # The random numbers cancel: one of ten sampled records changes (with probability 1/5), or none does.
    assert 0 < found.gaps.max() <= 0.1
    assert 0.6 < (found.gaps == 0).mean() < 0.95


def test_callers_generators_are_untouched():
    """Calibration would change the random numbers of the program that calls it."""
    random.seed(5)
    np.random.seed(5)
    np.random.normal()  # leaves a cached deviate behind
    expected = random.Random()
    expected.setstate(random.getstate())
    twin = np.random.RandomState()
    twin.set_state(np.random.get_state())
    estimate(lambda x: x.mean() + np.random.random() + random.random())
    assert random.random() == expected.random()
    assert np.array_equal(np.random.normal(size=5), twin.normal(size=5))


def test_randomness_for_some_data_only():
    """A function that is random for some data only would get other random numbers each time."""

    def sometimes(x):
        return x.mean() + (np.random.random() if x[0] > 0.9 else 0.0)

    found = estimate(sometimes, plan=plan(0.2, 400))
    rng = np.random.RandomState(found.coin_seed)
    number = rng.random_sample()
    # If both are above or both below 0.9, the number cancels. Otherwise it is the same number.
    jumps = found.gaps[found.gaps > 0.05]
    assert len(jumps) == 0 or np.allclose(jumps, number, atol=0.05)


@for_each(
    "wrong",
    [
        lambda x: math.nan,
        lambda x: math.inf,
        lambda x: np.array([1.0]),
        lambda x: "text",
        lambda x: sys.exit("bye"),
        lambda x: 1 / 0,
    ],
)
def test_every_kind_of_failure_is_infinite(wrong):
    """NaN, infinities, other structures, exits or exceptions would count as small gaps."""

    def f(x):
        return wrong(x) if x[0] > 0.98 else float(x.mean())

    found = estimate(f, plan=plan(0.2, 300))
    assert found.failed == np.isinf(found.gaps).sum() > 0


def test_changing_structure_is_explained():
    """An output whose keys depend on the data would be refused without a remedy."""
    with pytest.raises(InfiniteSensitivityError, match="fixed categories"):
        estimate(lambda x: {round(v, 2): 1.0 for v in x})


def test_unreleasable_output_is_refused_at_once():
    """A function that returns text would be refused only after m runs."""
    calls = []
    with pytest.raises(OutputError, match="Exponential"):
        estimate(lambda x: calls.append(1) or "yes")
    assert len(calls) == 1
