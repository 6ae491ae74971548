"""Noise on the grid covers the rounding to it, at every scale that floating point has."""

import math
from decimal import getcontext
from fractions import Fraction

import numpy as np
import pytest

from privatize import Gaussian, Laplace
from privatize.mechanisms.shapes import Shape
from privatize.mechanisms.weighted import Weighted
from privatize.noise import grid as noise
from privatize.testing import insecure_noise
from tests.cases import for_each
from tests.noise.drawn import RELEASES

getcontext().prec = 80


class TestGrid:
    @for_each("sensitivity", [1e-300, 1e-9, 0.3, 1.0, 7.7e11, 1e300])
    @for_each("epsilon", [1e-3, 0.1, 1.0, 50.0])
    @for_each("floats", [0, 1, 1000, 10**6])
    def test_laplace_scale_covers_rounding(self, sensitivity, epsilon, floats):
        """The scale must cover the sensitivity and the rounding to the grid, and be hardly larger."""
        exponent, t, t_integer, shift = noise.laplace_grid(sensitivity, epsilon, floats)
        grid = Fraction(2) ** exponent
        need = Fraction(sensitivity) / Fraction(str(epsilon))
        with_rounding = (Fraction(sensitivity) + floats * grid) / Fraction(str(epsilon))
        for scale in (t * grid, Fraction(t_integer, 2**shift)):
            assert with_rounding <= scale <= need * (1 + Fraction(1, 10**6))
        assert t >= 2**40

    @for_each("size", [1, 100, 10**6])
    @for_each(("epsilon", "delta"), [(0.01, 1e-9), (1.0, 1e-6), (10.0, 1e-3), (50.0, 1e-6)])
    def test_gaussian_sigma_covers_rounding(self, epsilon, delta, size):
        """The same for the Gaussian, where discrete noise must cost less than 2^-20 of delta."""
        scale = Gaussian().scale
        exponent, sigma = noise.gaussian_grid(2.5, epsilon, delta, size, scale)
        grid = Fraction(2) ** exponent
        price = (1 + Fraction(math.exp(epsilon))) * size / (24 * Fraction(sigma) ** 2)
        assert price <= Fraction(delta) / 2**20
        need = scale(2.5 + math.sqrt(size) * float(grid), epsilon, float(Fraction(delta) - price))
        assert Fraction(need) * (1 - Fraction(1, 10**12)) <= sigma * grid
        assert float(sigma * grid) <= scale(2.5, epsilon, delta) * (1 + 1e-6)

    def test_huge_and_tiny_values_are_neither_refused_nor_wrapped(self):
        """A private value's size changes nothing but the answer: neighbours cannot be told apart by it."""
        values = np.array([0.0, 1e-320, -1e-9, 3e15, 2.0**61, -(2.0**80), 1e308, -1.7e308])
        for vector in (values, np.resize(values, 200)):
            whole = np.zeros(len(vector), dtype=bool)
            for found in (
                noise.laplace(vector, 1.0, 1.0, whole),
                noise.gaussian(vector, 1.0, 1.0, 1e-6, whole, Gaussian().scale),
            ):
                assert np.isfinite(found).all()
                assert np.all(np.abs(found - vector) <= 100 + 1e-15 * np.abs(vector))

    @pytest.mark.parametrize("size", [1, 200])
    def test_values_on_and_off_the_grid_are_rounded_to_it(self, size):
        """Every output is a multiple of the public grid, whatever the value."""
        rng = np.random.default_rng(5)
        vector = rng.normal(0, 1000, size)
        found = noise.laplace(vector, 0.1, 1.0, np.zeros(size, dtype=bool))
        exponent = noise.laplace_grid(0.1, 1.0, size)[0]
        units = np.ldexp(found, -exponent)
        assert np.array_equal(units, np.rint(units))

    @for_each("size", [3, 300])
    @for_each("scale", [1e-3, 0.7, 1e6, 1e14])
    def test_integers_get_integers(self, size, scale):
        """Counts stay integers, at every scale."""
        vector = np.arange(size, dtype=float)
        whole = np.ones(size, dtype=bool)
        for found in (
            noise.laplace(vector, scale, 1.0, whole),
            noise.gaussian(vector, scale, 1.0, 1e-6, whole, Gaussian().scale),
        ):
            assert np.array_equal(found, np.rint(found))

    def test_nearest_rounds_halves_to_even_for_any_float(self):
        """The path for single numbers must round like the vectorized one."""
        for value in (0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 5e-324, 1e300, 0.0, -7.25):
            for exponent in (-1080, -3, 0, 1, 40):
                exact = Fraction(value) / Fraction(2) ** exponent
                assert noise.nearest(value, exponent) == round(exact)

    def test_the_ends_of_floating_point(self):
        """Noise beyond the largest float saturates, and tiny grids round once, whatever the path."""
        assert (
            noise._noised_one(0.0, 0, 1 << 1030) == -noise._noised_one(0.0, 0, -(1 << 1030)) == noise._LARGEST
        )
        draws = np.arange(-1000, 1000) * 7919
        few = [noise._noised_one(3e-320, -1080, int(x)) for x in draws]
        assert np.array_equal(noise._noised(np.full(2000, 3e-320), -1080, draws), few)
        for sensitivity in (1e-300, 1e300):
            exponent, sigma = noise.gaussian_grid(sensitivity, 1.0, 1e-6, 4, Gaussian().scale)
            least = Fraction(Gaussian().scale(1.0, 1.0, 1e-6)) * Fraction(sensitivity)
            assert least <= sigma * Fraction(2) ** exponent <= least * (1 + Fraction(1, 10**6))

    def test_mixed_outputs(self):
        """A dict of counts and means gets noise of its own kind in each place."""
        whole = np.array([True, False] * 100)
        found = noise.laplace(np.zeros(200), 1.0, 1.0, whole)
        assert np.array_equal(found[whole], np.rint(found[whole]))
        assert not np.array_equal(found[~whole], np.rint(found[~whole]))


SIZES = [1, 2, 28, 29, 1000]


@pytest.mark.filterwarnings("ignore::privatize.errors.InsecureNoiseWarning")
class TestEveryScale:
    """Noise is the same in units of its scale, from the smallest estimate to the largest."""

    @staticmethod
    def released(name, size, sensitivity, epsilon, power):
        values = np.ldexp(np.random.default_rng(size).normal(0, 3, size), power)
        with insecure_noise(size):
            return RELEASES[name](values, sensitivity, epsilon)

    @for_each("size", SIZES)
    @for_each("name", RELEASES)
    def test_units_do_not_matter(self, name, size):
        """At scales above 5e283 answers of more than 28 numbers were all zero."""
        # Normal noise at a large epsilon has a grid of e^(epsilon/2) steps, and takes as many bits.
        for epsilon in (1e-10, 1.0, 30.0 if name == "gaussian" else 1e5):
            standard = self.released(name, size, 0.75, epsilon, 0)
            assert (standard != 0).all()
            for power in [*range(-996, 997, 83), 899, 900, 904, 943, -999 + 40, -900]:
                found = self.released(name, size, math.ldexp(0.75, power), epsilon, power)
                with np.errstate(over="ignore"):
                    scaled = np.ldexp(standard, power)
                # One rounding, where numbers become subnormal; and what is too large is the largest float.
                largest = np.finfo(float).max
                np.testing.assert_allclose(found, np.clip(scaled, -largest, largest), rtol=1e-15, atol=1e-323)

    @pytest.mark.parametrize("power", [-996, 900, 996])
    def test_a_million_numbers(self, power):
        """A long answer at an extreme scale would get no noise, or take forever."""
        size = 1_000_000 if power == 900 else 20_000
        found = np.ldexp(RELEASES["laplace"](np.zeros(size), math.ldexp(0.75, power), 1.0), -power)
        assert abs(np.abs(found).mean() - 0.75) < 0.05  # a mean of 20,000 is off by 0.005 at one sigma

    def test_weights_do_not_change_an_answer_that_is_huge_beside_its_noise(self):
        """A number of 1e245 beside one that moves by 1e290 came out as 6e239."""
        values = np.array([1e290, 1e245, 1e10])
        weighted = Weighted(Laplace(), Shape("total", (0, -200, -200)))
        whole = np.zeros(3, dtype=bool)
        for sensitivity in (1e289, 1e-290):
            found = weighted.release(values, sensitivity=sensitivity, epsilon=1.0, delta=0.0, whole=whole)
            np.testing.assert_allclose(found[1], 1e245, rtol=1e-12)

    def test_noise_beyond_every_float_becomes_the_largest_float(self):
        """A scale above the largest float would raise on private data, or give an infinity."""
        for name in RELEASES:
            found = RELEASES[name](np.zeros(40), 1e300, 1e-10)
            assert np.isfinite(found).all()
            assert len(np.unique(found)) > 1
