"""A shape is public integers, which can be stored, and says how noise is divided among numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatize.mechanisms.shapes import KINDS, NONE, Shape


def covariance(d, seed, flat=0.1):
    """Return a covariance of numbers in very different units."""
    rng = np.random.default_rng(seed)
    mixed, units = rng.normal(size=(d, 3)), 10.0 ** rng.uniform(-6, 6, d)
    return (mixed @ mixed.T + flat * np.eye(d)) * np.outer(units, units)


@given(st.lists(st.floats(1e-150, 1e150), min_size=1, max_size=20))
def test_weights_are_positive_powers_of_two(sizes):
    """A weight of zero would divide by zero, and one that is no power of two would round private values."""
    powers = Shape.diagonal("total", np.array(sizes)).powers
    assert len(powers) == len(sizes) and all(type(each) is int for each in powers)
    assert max(powers) == 0 and min(powers) >= -200


@pytest.mark.parametrize("d", [2, 3, 20, 128])
def test_every_shape_is_read_as_it_was_stored(d):
    """Noise of another shape than that of the gaps would protect nobody."""
    for shape in (NONE, Shape.diagonal("relative", np.arange(1.0, d + 1)), Shape.matrix(covariance(d, 1))):
        assert Shape.of(shape.encoded) == shape == Shape.of(list(shape.encoded))
        assert all(type(each) is int for each in shape.encoded)
    for wrong in ([len(KINDS), 0, 0], [-9, 1]):
        with pytest.raises((ValueError, IndexError)):
            Shape.of(wrong)


@pytest.mark.parametrize("seed", range(5))
def test_the_noise_has_the_covariance_that_was_asked_for(seed):
    """Noise would be larger where it hurts most."""
    wanted = covariance(12, seed)
    shape = Shape.matrix(wanted)
    ratio = np.sqrt(np.diag(shape.covariance) / np.diag(wanted))
    assert ratio == pytest.approx(ratio[0], rel=1e-3)
    sizes = np.sqrt(np.diag(wanted))
    own = shape.covariance / ratio[0] ** 2 / np.outer(sizes, sizes)
    np.testing.assert_allclose(own, wanted / np.outer(sizes, sizes), atol=2e-3)
    np.testing.assert_allclose(shape.scales**2, np.diag(shape.covariance), rtol=1e-9)
    assert shape.scales.max() == pytest.approx(1.0, rel=0.01)


def test_a_floor_covers_every_gap_of_that_size():
    """A user's floor would be broken in some directions."""
    rng = np.random.default_rng(3)
    for shape in (NONE, Shape("total", (0, -3)), Shape.matrix(covariance(2, 4))):
        for angle in rng.uniform(0, 7, 200):
            gap = 0.7 * np.array([np.cos(angle), np.sin(angle)])
            inside = gap if shape == NONE else np.ldexp(gap, -shape.exponents)
            moved = inside if shape == NONE else np.ldexp(shape.entries @ inside, -shape.bits)
            assert np.linalg.norm(moved) <= shape.floor(0.7) * (1 + 1e-12)


def test_a_singular_covariance_is_refused():
    """Entries would overflow, and a direction would get no noise."""
    for wrong in (np.ones((2, 2)), np.zeros((2, 2)), np.full((2, 2), np.nan), np.diag([1.0, 0.0])):
        with pytest.raises((ValueError, np.linalg.LinAlgError)):
            Shape.matrix(wrong)


def test_a_matrix_of_large_entries_is_refused():
    """Products would not be exact, and answers near 0 would be told apart from their neighbours."""
    apart = np.diag([1e160, 1.0, 1e160]) + 0.5e160 * np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    with pytest.raises((ValueError, np.linalg.LinAlgError)):
        Shape.matrix(apart)  # powers of two are not below 2^-200, so entries would be
    for wrong in ((2**22, 0, 1), (1, 0, 0), (-1, 0, 1), (1, 0)):
        with pytest.raises(ValueError, match=r"triangular|diagonal"):
            Shape("matrix", (0, 0), wrong)
