"""How noise is divided among numbers is chosen on a pilot alone, by an error that has no unit."""

import numpy as np
import pytest

from privatize import Gaussian, Laplace
from privatize.errors import SettingsError
from privatize.mechanisms import choosing
from privatize.mechanisms.choosing import _made, choose, error_metric
from privatize.mechanisms.shapes import NONE
from tests.mechanisms.scaled import private


def PilotPairs(*args, **more):
    """Return pairs of an answer whose numbers have an order."""
    return choosing.PilotPairs(*args, structure="known", **more)


def seen(steps, spread=10.0, seed=0, **more):
    """Return pairs of a pilot whose answers are some steps apart from each other."""
    steps = np.asarray(steps, dtype=float)
    rng = np.random.default_rng(seed)
    size = np.abs(steps).max(axis=0)
    return PilotPairs(steps, rng.normal(size=steps.shape) * spread * size + 1000 * size, **more)


def normal(covariance, count=48, seed=1):
    """Return pairs whose gaps have this covariance."""
    rng = np.random.default_rng(seed)
    steps = rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=count)
    spread = rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=count)
    return PilotPairs(steps, 10 * spread)


def test_weights_follow_how_far_numbers_move():
    """Otherwise a number that hardly moves would get as much noise as one that moves far."""
    pairs = seen(np.tile([[1024.0, 1.0], [-1024.0, 1.0]], (10, 1)))
    for kind in (Laplace, Gaussian):
        assert choose(kind(scaled="relative"), pairs).powers == (0, -10)
        assert choose(kind(scaled="total"), pairs).powers == (0, -5)
        assert choose(kind(scaled="none"), pairs) == NONE
        for times in (1e-290, 1e290):  # squares would under- or overflow
            far = PilotPairs(pairs.steps * times, pairs.answers * times)
            assert choose(kind(scaled="relative"), far).powers == (0, -10)
            assert choose(kind(), far) == choose(kind(), pairs)


def test_wrong_ways_to_scale_are_refused():
    """A misspelt way must not silently mean another one."""
    for kind in (Laplace, Gaussian):
        for wrong in ("totals", 1, True, ["total"], None):
            with pytest.raises(SettingsError, match="'auto', 'none', 'total'"):
                kind(scaled=wrong)
    with pytest.raises(SettingsError, match="'total' or 'relative'"):
        Laplace(scaled="matrix")
    assert repr(Laplace(scaled="total")) == "Laplace(scaled='total')" and repr(Laplace()) == "Laplace()"
    assert Gaussian(scaled="total") != Gaussian() == Gaussian(scaled="auto")


def test_no_number_drowns_beside_a_larger_one():
    """A count would be lost in the noise of an income."""
    pairs = normal(np.diag([1e10, 1.0]))
    for kind in (Laplace, Gaussian):
        scales = choose(kind(), pairs).scales
        assert 1e4 < scales[0] / scales[1] < 1e6
        assert choose(kind(scaled="none"), pairs) == NONE


def test_numbers_that_move_together_get_noise_that_does():
    """Errors would be larger by a third or more."""
    rng = np.random.default_rng(2)
    mixed = rng.normal(size=(20, 3))
    pairs = normal(mixed @ mixed.T + 0.05 * np.eye(20))
    assert choose(Gaussian(), pairs).kind == "matrix"
    assert choose(Laplace(), pairs).kind != "matrix"
    assert choose(Gaussian(), normal(np.eye(20))).kind != "matrix"


def test_the_matrix_makes_the_error_least():
    """T8: no other shape has a smaller expected error, by the metric that it was made for."""
    rng = np.random.default_rng(3)
    mixed = rng.normal(size=(6, 6))
    moments = mixed @ mixed.T
    pairs = normal(moments, count=20_000)
    for metric in (None, np.diag([9.0, 1, 1, 1, 1, 1]), mixed.T @ mixed / 6 + np.eye(6)):
        w = np.eye(6) if metric is None else metric

        def cost(covariance, w=w):
            return np.trace(w @ covariance) * np.trace(np.linalg.inv(covariance) @ moments)

        found = cost(_made("matrix", PilotPairs(pairs.steps, pairs.answers, metric)).covariance)
        root = np.linalg.cholesky(w)
        values = np.linalg.eigvalsh(root.T @ moments @ root)
        least = np.sqrt(np.maximum(values, 0)).sum() ** 2  # T8: (tr (W^½ C W^½)^½)²
        assert least <= found * (1 + 1e-9) and found < 1.05 * least
        assert found < cost(_made("total", pairs).covariance)


def test_what_never_moved_gets_its_weight_from_its_own_spread():
    """A quantile of integers beside an income would get the noise of the income: ages of -5068."""
    rng = np.random.default_rng(1)
    steps = np.column_stack([rng.normal(size=48) * 1000, np.zeros(48)])
    answers = np.column_stack([rng.normal(size=48) * 10_000 + 1e6, rng.choice([35.0, 36.0], 48)])
    for kind in (Laplace, Gaussian):
        for way in ("auto", "relative"):
            size = PilotPairs(steps, answers).sizes[0]
            assert 1 <= size[1] < 30  # one step at least, when it moves
            scales = choose(kind(scaled=way), PilotPairs(steps, answers)).scales
            assert scales[0] / scales[1] > 10


def test_constants_get_enough_noise_and_disturb_nobody():
    """The diagonal of a correlation matrix never moves; noise that is too small would protect nobody."""
    rng = np.random.default_rng(4)
    moving = rng.normal(size=(48, 2))
    steps = np.column_stack([moving * [0.01, 0.01], np.zeros(48), np.zeros(48)])
    answers = np.column_stack([0.3 + 0.1 * rng.normal(size=(48, 2)), np.ones(48), np.zeros(48)])
    size, spread = PilotPairs(steps, answers).sizes
    assert (size[2:] >= size[:2].max()).all() and (spread > 0).all()
    rounded = PilotPairs(np.where(steps == 0, 1e-16, steps), answers + 1e-16 * rng.normal(size=(48, 4)))
    assert rounded.sizes[0][2] >= size[:2].max()  # what differs by rounding does not move
    alone = choose(Gaussian(), PilotPairs(steps[:, :2], answers[:, :2]))
    assert alone.kind == choose(Gaussian(), PilotPairs(steps, answers)).kind or alone.kind == "none"
    assert (PilotPairs(np.zeros((8, 2)), np.zeros((8, 2))).sizes[0] > 0).all()


def test_a_floor_is_the_least_that_a_number_moves():
    """The floor, divided by a tiny weight, would drown all other numbers."""
    pairs = seen(np.tile([[1.0, 1e-15], [-1.0, 1e-15]], (10, 1)), floor=0.5)
    assert choose(Laplace(scaled="relative"), pairs).powers == (0, -1)


def test_a_floor_is_part_of_the_error():
    """A floor, divided by a small weight, made the noise of a count 256 times as large as without weights."""
    rng = np.random.default_rng(0)
    steps = np.column_stack([rng.choice([-1.0, 0, 1], 48), 1e-5 * rng.normal(size=48)])
    answers = np.column_stack([rng.binomial(100, 0.5, 48), 0.5 + 1e-4 * rng.normal(size=48)])
    for kind in (Laplace, Gaussian):
        shape = choose(kind(), PilotPairs(steps, answers, floor=1.0))
        assert shape.floor(1.0) * shape.scales.max() <= 2 if shape.powers else True


def test_what_is_only_spread_like_answers_has_no_steps():
    """Counts by additive() would get noise for √(n/2) people."""
    rng = np.random.default_rng(0)
    steps = rng.choice([-1.0, 0, 1], (48, 2))
    answers = 70 * rng.choice([-1.0, 0, 1], (48, 2))
    assert PilotPairs(steps, answers).sizes[0].max() >= 70
    assert PilotPairs(steps, answers, apart=False).sizes[0].max() < 2


def test_the_default_metric_has_no_unit():
    """Euros or cents would decide which number gets less noise."""
    spread = np.array([2.0, 0.1, 30.0])
    units = np.array([100.0, 1.0, 1.0])
    pairs = normal(np.diag(np.square(spread)))
    one = error_metric(spread)
    assert np.trace(one * np.diag(spread**2)) == pytest.approx(2.0)  # both parts count alike
    cents = PilotPairs(pairs.steps * units, pairs.answers * units)
    own, other = (choose(Laplace(), each).scales for each in (pairs, cents))
    assert (other / own / units)[0] == pytest.approx((other / own / units)[1], rel=3)
    assert choose(Laplace(), pairs).kind == choose(Laplace(), cents).kind


def test_wrong_metrics_are_refused():
    """Noise would be divided by something that is no error."""
    asymmetric, negative = [[1.0, 2.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]
    for wrong in (asymmetric, negative, [[-1.0]], [[np.nan]], "no", [1.0, 2.0], [[0.0]], [[1j]], [["1"]]):
        with pytest.raises(SettingsError, match="symmetric matrix"):
            Gaussian(scaled="matrix", error=wrong)
    with pytest.raises(SettingsError, match="has no use with"):
        Gaussian(scaled="total", error=np.eye(2))
    with pytest.raises(SettingsError, match="2 rows, and the answer has 3"):
        private(mechanism=Gaussian(error=np.eye(2))).estimate(30)
    own = Gaussian(scaled="matrix", error=np.eye(3))
    assert own == Gaussian(scaled="matrix", error=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert hash(own) == hash(own) and "error=" in repr(own)
    assert Gaussian(scaled="matrix", error=1e308 * np.eye(3)) == own
    assert private(mechanism=own).estimate(30).shape.kind == "matrix"


def test_a_class_of_the_users_own_is_left_alone():
    """A class that clamps, or adds other noise, would get numbers in units that it does not know."""

    class Own(Laplace):
        """May do anything."""

    assert private(mechanism=Own()).estimate(30).shape == NONE
    assert private(mechanism=Own(scaled="relative")).estimate(30).shape.kind == "relative"


def test_numbers_without_a_common_order_are_left_alone():
    """Under one P of a family the weight of a number would be that of another one."""
    pairs = normal(np.diag([1e10, 1.0]))
    assert choose(Laplace(), pairs) != NONE
    assert choose(Laplace(), choosing.PilotPairs(pairs.steps, pairs.answers)) == NONE
