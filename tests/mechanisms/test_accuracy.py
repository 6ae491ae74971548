"""Half-widths and mean errors are those of the noise itself."""

import math

import numpy as np
import pytest
from scipy import stats

from privatize import Gaussian, Laplace
from privatize.errors import SettingsError
from privatize.mechanisms.accuracy import half_widths, mean_error
from tests.cases import for_each
from tests.function.released import FAR, noised, private, release
from tests.statistical.thresholds import FALSE_ALARM, mean_margin


@for_each("confidence", [0.01, 0.3, 0.5, 0.9, 0.95, 0.99, 0.999999])
@for_each("scale", [1e-3, 0.3, 0.7, 1.0, 5.0, 123.4])
@for_each("rounded", [False, True])
@for_each("noise", ["laplace", "normal"])
def test_an_interval_of_integers_is_as_narrow_as_can_be(noise, rounded, scale, confidence):
    """A user's count would be reported as off by one more than it is, or by one less."""
    integer = np.array([True])
    (width,) = half_widths(noise, scale, confidence, integer, rounded=rounded)
    assert width == int(width) >= 0

    def inside(t):
        """Return the probability that the noise is at most t, an integer."""
        if noise == "laplace" and not rounded:
            return 1 - 2 * math.exp(-(t + 1) / scale) / (1 + math.exp(-1 / scale))
        law = stats.laplace if noise == "laplace" else stats.norm
        return 1 - 2 * law.sf((t + 0.5) / scale)

    assert inside(width) >= confidence - 1e-12
    # One less is not enough. The library widens intervals by less than this, since it rounds scales up.
    assert width == 0 or inside(width - 1) < confidence + 1e-4


@for_each("dtype", [np.float16, np.float32])
@for_each("at", [-1, 0, 1])
def test_rounding_to_a_narrow_type_does_not_uncover(dtype, at):
    """A user's float16 answer, between whose values there are gaps, would be outside its interval."""
    power = 2.0 ** (np.finfo(dtype).nmant + 1)  # its neighbours are 1 below and 2 above
    raw = float(dtype(power + at))
    for scale in (0.1, 0.37, 0.5, 0.955, 1.1, 3.0):
        (width,) = half_widths("laplace", scale, 0.9, np.array([False]))
        found = (raw + np.linspace(-width, width, 2001)).astype(dtype)  # all noise that must be covered
        low, high = release(found, "laplace", scale).interval(0.9)
        assert low.dtype == high.dtype == dtype
        assert ((low <= raw) & (high >= raw)).all()


@for_each("rounded", [False, True])
@for_each("scale", [0.05, 0.3, 1.0, 5.0, 49.9, 50.0, 300.0])
@for_each("noise", ["laplace", "normal"])
def test_mean_error_of_integers_is_exact(noise, scale, rounded):
    """A user's small counts would be reported as off by far more than they are."""
    (real, integer) = mean_error(noise, scale, np.array([False, True]), rounded=rounded)
    law = stats.laplace if noise == "laplace" else stats.norm
    assert real == pytest.approx(scale * law.expect(abs))
    t = np.arange(0, math.ceil(60 * scale) + 2)
    if noise == "laplace" and not rounded:
        expected = 2 * (np.exp(-(t + 1) / scale) / (1 + np.exp(-1 / scale))).sum()
    else:
        expected = 2 * law.sf((t + 0.5) / scale).sum()
    assert integer == pytest.approx(expected, rel=2e-4, abs=1e-12)


@for_each("integer", [False, True])
@for_each("scale", [0.3, 4.0])
@for_each("mechanism", [Laplace(), Gaussian()], ids=["laplace", "gaussian"])
def test_expected_error_is_the_mean_distance(mechanism, scale, integer):
    """A user's answers would be off by something else, on average, than was expected."""
    found = np.abs(noised(mechanism, scale, integer, seed=9) - FAR)
    value = 3 if integer else 3.0
    expected = release(value, mechanism.noise_name, scale).expected_error
    assert type(expected) is float
    assert abs(found.mean() - expected) <= mean_margin(len(found), found.std(), FALSE_ALARM / 2) + 1e-5


def test_expected_error_of_several_numbers():
    """A user could not tell how far off each number is where they differ."""
    assert release([1.0, 2.0], scale=2.0).expected_error == [2.0, 2.0]
    mixed = release({"a": 1.0, "b": 2}, scale=0.5).expected_error
    assert mixed == {"a": 0.5, "b": pytest.approx(1 / math.sinh(2))}
    assert release((1.0, 2.0), scale=(2.0, 8.0)).expected_error == (2.0, 8.0)


@for_each(
    "confidence",
    [0, 1, -0.5, 1.5, 95, True, False, "0.95", None, math.nan, [0.9], np.array([0.9]), 1j, np.complex64(0.5)],
    ids=repr,
)
def test_a_wrong_confidence_is_refused(confidence):
    """A user's 95 (for 95%) would give an interval that is anything."""
    mean = private(np.mean)
    for ask in (
        lambda: release(1.0).interval(confidence),
        lambda: mean.error_at(20, confidence=confidence),
        lambda: mean.epsilon_for(20, error=1.0, confidence=confidence),
    ):
        with pytest.raises(SettingsError, match="is not a probability strictly between 0 and 1") as raised:
            ask()
        assert "out of reach" not in str(raised.value)


def test_a_confidence_may_be_a_numpy_number():
    """A user's confidence from a computation would be refused."""
    low, high = release(1.0).interval(np.float32(0.5))
    assert (low, high) == pytest.approx((1 - math.log(2), 1 + math.log(2)), rel=1e-4)
