"""Noise of its own scale for every number: it is private for any public weights, and less in total."""

import numpy as np
import pytest

from privatize import Gaussian, Laplace, audit, samplers
from privatize.calibration.evaluators.choose import evaluator
from privatize.errors import InfiniteSensitivityError
from privatize.mechanisms.shapes import NONE, Shape
from privatize.mechanisms.weighted import Weighted, weighted
from privatize.outputs.describe import describe
from privatize.storage.estimates import Store
from privatize.testing import insecure_noise
from tests.mechanisms.scaled import PEOPLE, means, private

FALSE_ALARM = 1e-6
SCALED = [
    (Laplace(scaled="total"), 0.0),
    (Laplace(scaled="relative"), 0.0),
    (Gaussian(scaled="total"), 1e-6),
    (Gaussian(scaled="relative"), 1e-6),
]


def test_a_weighted_release_is_the_unweighted_one_of_divided_numbers():
    """The proof that it is private rests on this, so it must be true bit for bit."""
    vector, powers = np.array([3.25, -1e5, 0.001]), np.array([0, -7, 3])
    never = np.zeros(3, dtype=bool)
    facts = {"sensitivity": 2.0, "epsilon": 0.5, "delta": 1e-6}
    for unweighted in (Laplace(), Gaussian()):
        with pytest.warns(UserWarning, match="seeded"), insecure_noise(3):
            one = Weighted(unweighted, Shape("total", tuple(powers.tolist()))).release(
                vector, **facts, whole=never
            )
        with pytest.warns(UserWarning, match="seeded"), insecure_noise(3):
            other = unweighted.release(np.ldexp(vector, -powers), **facts, whole=never)
        assert (one == np.ldexp(other, powers)).all()


@pytest.mark.parametrize(("mechanism", "delta"), SCALED)
def test_no_pair_within_the_estimate_loses_more_than_promised(mechanism, delta):
    """The gaps of all numbers, each divided by its own noise, must not add up to more than is promised."""
    function = private(means, mechanism)
    estimate = function.estimate(60)
    release = function.release(PEOPLE.draw(60, np.random.default_rng(1)))
    assert release.scale.shape == (3,)
    unweighted = type(mechanism)()
    unit = release.scale / unweighted.scale(1.0, 1.0, delta)  # of each number, at epsilon=1
    pairs = evaluator(means, n=60, sampler=PEOPLE, norm=unweighted.norm, seed=estimate.seed)
    pairs.learn(estimate.structure)
    losses = np.array(
        [unweighted.norm((one - other) / unit) for one, other in map(pairs.outputs, range(estimate.m))]
    )
    assert losses == pytest.approx(estimate.gaps / estimate.value, rel=1e-9)
    assert (losses <= 1 + 1e-9).sum() == (estimate.gaps <= estimate.value).sum() >= estimate.k


def test_the_total_noise_is_nearly_least():
    """Weights that are far from the best ones would add noise for nothing."""
    data = PEOPLE.draw(200, np.random.default_rng(0))
    scales = {
        way: private(mechanism=Laplace(scaled=way)).release(data).scale
        for way in ("none", "total", "relative")
    }
    assert scales["total"].sum() < 0.45 * scales["none"].sum()  # nearly a third: most is in one number
    widths = np.array([72.0, 200_000.0, 1.0])
    # They are in proportion to the widths, up to rounding to powers of two and the chance of the pilot pairs.
    ratio = scales["relative"] / widths
    assert ratio.max() / ratio.min() < 3
    total = scales["total"] / np.sqrt(widths)
    assert total.max() / total.min() < 2.5


def test_counts_stay_integers():
    """A count with a fraction would surprise whoever reads it."""

    def counts(data):
        return {"old": int((data[:, 0] > 60).sum()), "income": float(data[:, 1].mean())}

    answer = private(counts, Laplace(scaled="relative"), min_sensitivity=1e-9)(
        PEOPLE.draw(300, np.random.default_rng(2))
    )
    assert type(answer["old"]) is int and type(answer["income"]) is float


@pytest.mark.parametrize(("mechanism", "delta"), SCALED)
def test_the_audit_finds_nothing(mechanism, delta):
    """The promise holds with weights as without. False alarms: 1e-6 (and the seed is fixed)."""
    function = private(mechanism=mechanism)
    found = audit(function, 50, pairs=2000, releases=2000, confidence=1 - FALSE_ALARM, seed=1)
    found.assert_holds()


def test_what_moves_too_rarely_for_the_pilot_is_still_covered():
    """A number that moves in one pair of fifty may get a small weight, but the estimate must cover it."""

    def rare(data):
        return [float(data[:, 0].mean()), float((data[:, 1] > 199_800).sum())]

    function = private(rare, gamma=0.05)
    estimate = function.estimate(20)
    fresh = audit(function, 20, pairs=3000, releases=0, confidence=1 - FALSE_ALARM, seed=2)
    fresh.assert_holds()
    assert estimate.value > 0


def test_a_function_that_always_fails_says_why():
    """The pilot must not hide the cause of a failure behind one of its own."""

    def broken(data):
        raise KeyError("no such column")

    with pytest.raises(InfiniteSensitivityError, match="no such column"):
        private(broken).estimate(20)


def test_one_number_is_as_without_weights():
    """A single number has nothing to weigh against, so nothing may change."""

    def first(data):
        return float(data[:, 0].mean())

    unweighted, scaled = private(first, Laplace()), private(first, Laplace(scaled="total"))
    assert unweighted.estimate(30).value == scaled.estimate(30).value
    assert scaled.estimate(30).shape == NONE


def test_numbers_that_rarely_move_get_no_small_noise():
    """A rare count would come out nearly exact, though by itself it is refused because no gap is seen."""
    P = samplers.uniform([0, 0], [1e6, 1])

    def facts(data):
        return [float(data[:, 0].mean()), float(data[:, 1].mean()), float((data[:, 1] > 0.999).sum())]

    data = P.draw(500, np.random.default_rng(1))
    for way in ("total", "relative"):
        release = private(facts, Laplace(scaled=way), sampler=P, gamma=0.05).release(data)
        assert release.scale[2] > 1  # it moves by 1, if it does


def test_a_floor_is_one_for_every_number():
    """A floor of 1 for a count must mean noise for a change of 1, whatever unit the gaps are measured in."""

    def facts(data):
        return [float(data[:, 1].mean()), float(data[:, 2].mean()), float((data[:, 0] > 89).sum())]

    function = private(facts, min_sensitivity=1.0)
    release = function.release(PEOPLE.draw(100, np.random.default_rng(1)))
    assert min(release.scale) >= 1
    other = function.estimate(100).at(0.2)
    assert np.ldexp(other.value, other.shape.exponents).min() >= 1


def test_the_shape_decides_the_mechanism():
    """Noise of another shape than that of the estimate would protect nobody."""
    assert weighted(Laplace(), NONE) == Laplace()
    assert type(weighted(Laplace(), Shape("relative", (0, -1)))) is Weighted


def test_no_warning_reveals_a_private_number():
    """A warning about an overflow would show that a private number is huge. Here warnings are errors."""
    vector = np.array([1.0, 1e280])
    found = Weighted(Laplace(), Shape("total", (0, -200))).release(
        vector, sensitivity=1.0, epsilon=1.0, delta=0.0, whole=np.zeros(2, dtype=bool)
    )
    assert np.isfinite(found).all()
    assert Weighted(Laplace(), Shape("total", (0, -200))).norm(np.array([0.0, 1e280])) == np.inf


def test_gaps_in_another_norm_are_not_used(tmp_path):
    """A user who forgets an estimate and starts again, with other weights, must not get the old gaps."""
    store = Store(tmp_path / "estimates.db")
    store.open("key", seed=7, label="f", n=10, facts={})
    assert store.agree("key", 7, [1, 0, -3]) == [1, 0, -3]
    store.forget("key")
    store.open("key", seed=7, label="f", n=10, facts={})
    assert store.agree("key", 7, [1, 0, -4]) == [1, 0, -4]
    store.save("key", 7, 0, np.ones(5), describe([0.0, 0.0]), [1, 0, -3])  # a late writer
    with pytest.warns(UserWarning, match="made again"):
        assert not len(store.open("key", seed=8, label="f", n=10, facts={}).gaps)
