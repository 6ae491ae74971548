"""Each mechanism measures gaps in its norm, scales its noise to them, and releases nothing else."""

import functools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from privatize import Bernstein, BernsteinPolynomial, Exponential, Gaussian, Laplace, privatize, samplers
from privatize.errors import InfiniteSensitivityError, OutputError, SettingsError
from privatize.mechanisms import Mechanism, as_mechanism
from privatize.mechanisms.base import inflate
from privatize.planning.gaussian import excess_delta, least_sigma
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)


def test_names_and_instances():
    """A mechanism is found by its name, and an unknown name lists the known ones."""
    assert as_mechanism("laplace") == Laplace() and as_mechanism("gaussian") == Gaussian()
    assert as_mechanism("bernstein") == Bernstein()
    chosen = Exponential(responses=[1, 2])
    assert as_mechanism(chosen) is chosen
    for wrong in ("cauchy", None, 3, Laplace, "Laplace"):
        with pytest.raises(SettingsError, match="laplace, gaussian, exponential and bernstein"):
            as_mechanism(wrong)
    with pytest.raises(SettingsError, match="responses"):
        as_mechanism("exponential")


@pytest.mark.parametrize("made", [Laplace(), Gaussian(), Exponential([1, 2]), Bernstein(3)])
def test_mechanisms_are_frozen_values(made):
    """A mechanism cannot be changed after the promise was made, and equals its copies."""
    assert isinstance(made, Mechanism)
    assert pickle.loads(pickle.dumps(made)) == made
    assert hash(made) == hash(pickle.loads(pickle.dumps(made)))
    with pytest.raises(AttributeError):
        made.anything = 1
    assert type(made).__name__ in repr(made)


def test_norms():
    """The paper's norms, and half the range for the exponential mechanism."""
    gap = np.array([3.0, -4.0, 1.0])
    assert Laplace().norm(gap) == 8
    assert Gaussian().norm(gap) == pytest.approx(math.sqrt(26))
    assert Exponential([1, 2, 3]).norm(gap) == pytest.approx(3.5, rel=1e-14)
    assert Exponential([1, 2, 3], norm="sup").norm(gap) == 4
    assert Exponential([1, 2, 3]).norm(gap + 1e6) == pytest.approx(3.5)  # a common shift is harmless
    assert Bernstein(2).norm(gap) == 8 and Bernstein(2, norm="sup").norm(gap) == 4


def test_scales():
    """Noise grows with the sensitivity and shrinks with epsilon, as the corollaries say."""
    assert Laplace().scale(2.0, 0.5) == 4.0
    assert Exponential([1, 2]).scale(2.0, 0.5) == 8.0
    assert Bernstein(4).scale(2.0, 0.5) == 4.0
    assert Bernstein(4, dimension=2, norm="sup").scale(2.0, 0.5) == 4.0 * 25


class TestGaussian:
    def test_golden(self):
        """Analytic and classic sigma at (1, 1e-6), as published."""
        assert Gaussian().scale(1.0, 1.0, 1e-6) == pytest.approx(4.225, abs=5e-4)
        assert math.sqrt(2 * math.log(1.25e6)) == pytest.approx(5.299, abs=5e-4)
        assert Gaussian("classic").scale(1.0, 0.5, 1e-6) == pytest.approx(2 * 5.2988, abs=1e-3)

    @for_each("epsilon", [1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0, 700.0, 2000.0])
    @for_each("delta", [1e-300, 1e-30, 1e-12, 1e-6, 0.01, 0.5, 0.99])
    def test_least_sigma_is_safe_and_least(self, epsilon, delta):
        """The standard deviation gives at most delta, and one slightly smaller gives more."""
        sigma = least_sigma(epsilon, delta)
        assert excess_delta(sigma, epsilon) <= delta
        assert excess_delta(sigma * (1 - 1e-6), epsilon) > delta * (1 - 1e-2)

    @for_each("epsilon", [0.01, 0.3, 1.0, 4.0])
    @for_each("sigma", [0.3, 1.0, 4.0, 30.0])
    def test_excess_delta_is_the_integral(self, sigma, epsilon):
        """The formula agrees with the hockey-stick divergence integrated numerically."""
        x = np.linspace(-40 * sigma, 40 * sigma, 2_000_001)
        p, q = (np.exp(-((x - c) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi)) for c in (1, 0))
        integral = np.maximum(0, p - math.exp(epsilon) * q).sum() * (x[1] - x[0])
        assert excess_delta(sigma, epsilon) == pytest.approx(integral, rel=1e-3, abs=1e-12)

    def test_refusals(self):
        """A delta that the mechanism cannot use, or a classic epsilon of 1, is refused."""
        for wrong in (0.0, 1.0, -0.1, 2.0, 5e-324):
            with pytest.raises(SettingsError, match="delta="):
                Gaussian().scale(1.0, 1.0, wrong)
        with pytest.raises(SettingsError, match="analytic"):
            Gaussian("classic").scale(1.0, 1.0, 1e-6)
        with pytest.raises(SettingsError, match="calibration="):
            Gaussian("modern")

    def test_analytic_is_never_worse_than_classic(self):
        """The default needs no more noise than the paper's."""
        for epsilon in (0.01, 0.1, 0.9):
            for delta in (1e-9, 1e-3):
                assert Gaussian().scale(1, epsilon, delta) <= Gaussian("classic").scale(1, epsilon, delta)


class TestExponential:
    def test_refusals(self):
        """Responses, prior and norm are checked where they are written."""
        with pytest.raises(SettingsError, match="responses"):
            Exponential()
        for prior in ([1], [1, -1], [1, 0], [1, math.inf], [1, math.nan]):
            with pytest.raises(SettingsError, match="prior"):
                Exponential(responses=["a", "b"], prior=prior)
        with pytest.raises(SettingsError, match="norm="):
            Exponential(responses=["a"], norm="l2")

    def test_scores_per_response_or_one_by_one(self):
        """A function that returns all scores must calibrate like one that is called for each response."""
        responses = [0.25, 0.5, 0.75]
        mechanism = Exponential(responses)

        def one(x, r):
            return -abs(float((x < r).mean()) - 0.5)

        def every(x):
            return [one(x, r) for r in responses]

        promise = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT, "mechanism": mechanism, "seed": 1}
        estimates = [privatize(**promise)(f).estimate(50) for f in (one, every)]
        assert np.array_equal(estimates[0].gaps, estimates[1].gaps)
        assert estimates[0].norm == "range"
        assert privatize(**promise)(one)(np.full(50, 0.4)) in responses

    def test_responses_can_be_anything(self):
        """Names, tuples or objects can be chosen, and the very object comes back."""
        names = ["red", ("green", 2), None]
        f = privatize(epsilon=5, gamma=0.2, sampler=UNIT, mechanism=Exponential(names))(
            lambda x: np.array([x.mean(), 2 * x.mean(), 0.1])
        )
        assert f(np.full(30, 0.5)) in names

    def test_wrong_number_of_scores(self):
        """A score too many is refused at once."""
        f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, mechanism=Exponential([1, 2]))(lambda x: x[:3])
        with pytest.raises(OutputError, match="one score for each of its 2 responses"):
            f.estimate(10)

    def test_infinite_scores_are_refused(self):
        """A log-likelihood of minus infinity has no finite sensitivity."""
        f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, mechanism=Exponential([1, 2]))(
            lambda x: np.array([-np.inf, x.mean()])
        )
        with pytest.raises(InfiniteSensitivityError):
            f.estimate(10)


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


def test_a_user_can_add_a_mechanism():
    """Three methods are enough: a norm, a scale and a release."""

    class Rounded:
        def norm(self, gap):
            return float(np.abs(gap).max())

        def scale(self, sensitivity, epsilon, delta):
            return sensitivity / epsilon

        def release(self, vector, *, sensitivity, epsilon, delta, whole):
            return np.rint(vector)

    f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, mechanism=Rounded())(lambda x: [x.mean(), x.max()])
    assert f(np.full(20, 0.4)) == [0.0, 0.0]
    assert f.estimate(20).norm == "test_a_user_can_add_a_mechanism.<locals>.Rounded.norm"


def test_the_sensitivity_covers_the_rounding_of_gaps():
    """The sensitivity that noise is scaled to must be a little above the measured one."""
    assert inflate(1.0, 1) > 1.0 and inflate(1.0, 10**6) < 1 + 1e-9
    assert inflate(5e-324, 1) > 5e-324  # also where a relative margin rounds to nothing


def test_the_norm_covers_rounding_under_a_common_shift():
    """Scores that differ by less than the rounding of a common shift would count as equal."""
    scores, other = np.array([0.0, 1.4 * 2.0**-53]), np.array([1.0, 1.0])
    true = (Fraction(scores[1]) - Fraction(scores[0])) / 2
    assert Exponential([1, 2]).norm(scores - other) >= true


@for_each("epsilon", [1e-10, 1e-3, 0.5, 1.0, 50.0, 1e5])
@for_each("delta", [1e-300, math.nextafter(1e-300, 1), 1e-100, 1e-6, 0.5, math.nextafter(1, 0)])
@for_each("calibration", ["analytic", "classic"])
def test_every_delta_that_is_allowed_works(calibration, delta, epsilon):
    """A user's delta of 1e-300 passed all checks, and then every call failed on the private data."""
    if calibration == "classic" and epsilon >= 1:
        return
    mechanism = Gaussian(calibration=calibration)
    mechanism.check(epsilon, delta)
    for size in (1, 40):
        found = mechanism.release(
            np.zeros(size), sensitivity=1.0, epsilon=epsilon, delta=delta, whole=np.zeros(size, dtype=bool)
        )
        assert np.isfinite(found).all() and found.any()


@for_each("epsilon", [1e-10, 1e-3, 1.0, 50.0, 1e5])
@for_each("delta", [1e-300, 1e-100, 1e-6, 0.5, math.nextafter(1, 0)])
def test_sigma_is_enough_at_every_corner(delta, epsilon):
    """A user's delta would be exceeded where floats run out of digits."""
    mpmath = pytest.importorskip("mpmath")
    sigma = mpmath.mpf(Gaussian().scale(1.0, epsilon, delta))
    with mpmath.workdps(400):  # Balle & Wang's delta, with more digits than floats have
        a, b = (sign / (2 * sigma) - epsilon * sigma for sign in (1, -1))
        first, second = (mpmath.erfc(-x / mpmath.sqrt(2)) / 2 for x in (a, b))
        assert first - mpmath.exp(epsilon) * second <= delta


@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e-301, 1.0, math.nan])
def test_other_deltas_are_refused_where_they_are_set(delta):
    """A user would learn only at the first call, after the charge, that a delta does not work."""
    with pytest.raises(SettingsError, match=r"1e-300 at least|not in \[0, 1\)"):
        privatize(epsilon=1, delta=delta, gamma=0.1, mechanism="gaussian", sampler=samplers.uniform(0, 1))


@for_each("mechanism", ["laplace", "gaussian"])
@for_each("epsilon", [1e-10, 1e5])
@for_each("factor", [1e-299, 1.0, 1e299])
def test_the_corners_of_what_is_allowed_work(mechanism, epsilon, factor):
    """A user whose settings pass all checks would get an error, or an answer without noise."""
    private = privatize(
        epsilon=epsilon,
        delta=1e-300 if mechanism == "gaussian" else 0.0,
        gamma=0.5,
        mechanism=mechanism,
        sampler=samplers.uniform(0, 1),
        seed=1,
        store=None,
        workers="inline",
    )(functools.partial(_first_two, factor))
    # Noise of 1e309 saturates: an answer is one of four corners, and 32 are alike with probability 4^-31.
    answers = np.array([private(np.ones(5)) for _ in range(32)])
    assert np.isfinite(answers).all() and (answers != answers[0]).any() and answers.any()


def _first_two(factor, x):
    return factor * x[:2]


@for_each("epsilon", [1e-300, 9e-11, 1.1e5, 1e9, math.inf, 0.0])
def test_other_epsilons_are_refused_where_they_are_set(epsilon):
    """A user would learn only at the first call, after the charge, that an epsilon does not work."""
    with pytest.raises(SettingsError, match="between 1e-10 and 100000"):
        privatize(epsilon=epsilon, gamma=0.1, sampler=samplers.uniform(0, 1))
