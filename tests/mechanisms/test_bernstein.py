"""The Bernstein mechanism releases coefficients only, and the polynomial that they make is the right one."""

import math
import pickle

import numpy as np
import pytest

from privatize import Bernstein, BernsteinPolynomial, privatize, samplers
from privatize.errors import OutputError, SettingsError
from tests.outputs.labelled import pd

UNIT = samplers.uniform(0, 1)
GOLDEN = {
    (5, 1): [0, 0.03658341284728252, 0.008800168152490496, -0.02901660697944275, -0.01190605212485717,
             0.1157935875986567, -0.5440211108893698],
    (10, 1): [0, 0.06614757118270874, 0.04619658647909091, -0.04681339701689261, -0.1089140004326029,
              0.3197632718908204, -0.5440211108893698],
    (10, 2): [0, 0.1019880829236433, 0.08382513481523388, -0.06723470475322933, -0.21421305167942,
              0.4907874677068579, -0.5440211108893698],
    (10, 3): [0, 0.1189964751615707, 0.1154015813907114, -0.06657259385570623, -0.2922627495696177,
              0.5513169414255172, -0.5440211108893698],
}  # fmt: skip


class TestBernstein:
    @pytest.mark.parametrize(("lattice", "order"), GOLDEN)
    def test_golden(self, lattice, order):
        """The polynomials are those of the authors' own implementation."""
        values = np.arange(lattice + 1) / lattice
        polynomial = BernsteinPolynomial.through(values * np.sin(10 * values), order)
        at = [0, 0.1, 0.2, 0.3, 0.5, 0.75, 1]
        assert polynomial(at) == pytest.approx(GOLDEN[lattice, order], rel=1e-12, abs=1e-14)

    def test_golden_two_dimensions(self):
        """In two dimensions, too, the polynomials are those of the authors' own implementation."""
        mechanism = Bernstein(lattice=5, dimension=2)
        points = mechanism.points()
        polynomial = mechanism.wrap(points[:, 0] * np.sin(10 * points[:, 1]))
        expected = [0.01672364051006111, -0.0220769168548843, 0.1494899823064634]
        assert polynomial([(0.2, 0.3), (0.5, 0.5), (1, 0.25)]) == pytest.approx(expected, rel=1e-12)

    def test_linear_functions_are_reproduced_in_any_dimension(self):
        """Bernstein polynomials keep affine functions, of every order and dimension."""
        for dimension in (1, 2, 3):
            mechanism = Bernstein(lattice=4, order=2, dimension=dimension)
            points = mechanism.points().reshape(mechanism.size, -1)
            slope = np.arange(1.0, dimension + 1)
            polynomial = mechanism.wrap(points @ slope + 0.5)
            at = np.random.default_rng(1).random((3, 5, dimension))
            found = polynomial(at if dimension > 1 else at[..., 0])
            assert found == pytest.approx(at @ slope + 0.5)

    def test_released_object_holds_coefficients_only(self):
        """What is published can be pickled, evaluated anywhere, and holds nothing but the polynomial."""
        polynomial = Bernstein(lattice=30, order=3).wrap(np.linspace(0, 1, 31) ** 2)
        assert set(vars(polynomial)) == {"coefficients"}
        again = pickle.loads(pickle.dumps(polynomial))
        assert again(0.3) == polynomial(0.3) and isinstance(polynomial(0.3), float)
        assert polynomial(np.zeros((2, 3))).shape == (2, 3)
        assert "dimension=1" in repr(polynomial)

    def test_points_outside_are_refused(self):
        """The polynomial says nothing outside the unit cube."""
        polynomial = Bernstein(lattice=3).wrap(np.zeros(4))
        for wrong in (-0.1, [0.5, 1.1], math.nan):
            with pytest.raises(ValueError, match="outside"):
                polynomial(wrong)
        with pytest.raises(ValueError, match="last axis"):
            Bernstein(lattice=3, dimension=2).wrap(np.zeros(16))([0.1, 0.2, 0.3])

    def test_large_lattices_are_stable(self):
        """A lattice of 2000 steps neither overflows nor loses its digits."""
        x = np.arange(2001) / 2000
        at = np.linspace(0, 1, 20)
        assert BernsteinPolynomial.through(x)(at) == pytest.approx(at, abs=1e-12)

    def test_three_ways_to_give_the_function(self):
        """Values on the lattice, a callable, or a function of the points must give the same estimate."""
        mechanism = Bernstein(lattice=6)
        points = mechanism.points()

        def kernel(x, at):
            return np.exp(-((x[:, None] - at) ** 2) / 0.02).mean(axis=0)

        promise = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT, "mechanism": mechanism, "seed": 1}
        ways = [kernel, lambda x: kernel(x, points), lambda x: lambda at: kernel(x, at)]
        gaps = [privatize(**promise)(f).estimate(40).gaps for f in ways]
        assert np.array_equal(gaps[0], gaps[1]) and np.array_equal(gaps[0], gaps[2])
        released = privatize(**promise)(kernel)(np.full(40, 0.5))
        assert isinstance(released, BernsteinPolynomial)

    def test_sup_norm_is_never_better(self):
        """The default adds no more noise than the paper's scale for the same function."""

        def kernel(x, at):
            return np.exp(-((x[:, None] - at) ** 2) / 0.02).mean(axis=0)

        scales = []
        for norm in ("l1", "sup"):
            f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, mechanism=Bernstein(6, norm=norm), seed=1)(
                kernel
            )
            scales.append(f.release(np.full(40, 0.5)).scale)
        assert scales[0] <= scales[1]

    def test_refusals(self):
        """Wrong sizes are refused where they are written."""
        for wrong in (0, -1, 2.5, True, "3"):
            with pytest.raises(SettingsError):
                Bernstein(lattice=wrong)
        with pytest.raises(SettingsError, match="norm="):
            Bernstein(norm="l2")
        f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, mechanism=Bernstein(3))(lambda x: x[:3])
        with pytest.raises(OutputError, match="4 lattice points"):
            f.estimate(10)


def test_bernstein_refuses_labels_that_are_not_its_points():
    """A user's function of points would be drawn through its values in another order."""
    mechanism = Bernstein(lattice=2)
    values = pd.Series([1.0, 2.0, 3.0], index=[1.0, 0.5, 0.0])
    with pytest.raises(OutputError, match="lattice points in their order"):
        mechanism.evaluate(lambda d, s0: values, False)(None, 0)
    for fine in (values[::-1], values.reset_index(drop=True)):
        found = mechanism.evaluate(lambda d, s0, fine=fine: fine, False)(None, 0)
        assert found.tolist() == fine.tolist()
