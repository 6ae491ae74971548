"""How far off answers are, in the form of the answer, before it is asked for."""

import numpy as np
import pytest

from privatize import Exponential, Gaussian, Laplace, privatize, samplers
from privatize.errors import SettingsError
from privatize.function.accuracy import error_of, errors_of, least_epsilon

P = samplers.uniform([0, 0], [1, 1000])


def private(function, **more):
    """Decorate with a fixed seed."""
    options = {"epsilon": 1, "gamma": 0.1, "sampler": P, "seed": 3, "workers": "inline", "store": None}
    return privatize(**options | more)(function)


def facts(data):
    """Return numbers in two units, and a count."""
    return {"means": data.mean(axis=0), "old": int((data[:, 0] > 0.5).sum())}


@pytest.mark.parametrize(
    "mechanism", [Laplace(), Laplace(scaled="none"), Gaussian(), Gaussian(scaled="matrix")]
)
def test_errors_have_the_form_of_the_answer(mechanism):
    """A user would have to know in which order the numbers of a dict are flattened."""
    function = private(facts, mechanism=mechanism, delta=1e-6 if isinstance(mechanism, Gaussian) else 0.0)
    data = P.draw(200, np.random.default_rng(0))
    release, before = function.release(data), function.error_at(200)
    for each in (release.scale, release.expected_error, release.signal, before):
        assert list(each) == ["means", "old"] and each["means"].shape == (2,) and type(each["old"]) is float
    low, high = release.interval()
    assert type(low["old"]) is int and low["old"] < release.value["old"] < high["old"]
    width = (high["means"] - low["means"]) / 2
    np.testing.assert_allclose(width, before["means"], rtol=1e-6)
    assert release.scaled == function.estimate(200).shape.kind
    flat = errors_of(function.settings, function.estimate(200), 0.95)
    np.testing.assert_array_equal(flat[:2], before["means"])
    assert function.epsilon_for(200, error=float(flat.max())) == pytest.approx(1.0, rel=0.05)


def test_frames_are_frames():
    """A user would have to put labels back."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")

    def table(data):
        group = pd.DataFrame({"group": data[:, 0] > 0.5, "income": data[:, 1]}).groupby("group")
        return group["income"].agg(["mean", "count"]).reindex([False, True]).fillna(0)

    function = private(table)
    release = function.release(P.draw(100, np.random.default_rng(0)))
    for each in (release.scale, release.expected_error, release.signal, function.error_at(100)):
        assert list(each.columns) == ["mean", "count"] and list(each.index) == [False, True]
        assert all(dtype.kind == "f" for dtype in each.dtypes)
    assert release.scale["mean"].iloc[0] > release.scale["count"].iloc[0]


def test_what_has_no_noise_has_one_number():
    """The error of a choice is about its score."""

    def score(data, response):
        return -abs(data[:, 0].mean() - response)

    choice = private(score, mechanism=Exponential(responses=[0.0, 0.5, 1.0]))
    found = choice.estimate(100)
    assert type(error_of(choice.settings, found, 0.95)) is float
    release = choice.release(P.draw(100, np.random.default_rng(0)))
    assert type(release.scale) is float and release.signal is None and release.scaled == "none"


def test_the_least_epsilon():
    """A user would pay more than is needed, or get a larger error than was asked for."""
    assert least_epsilon(lambda epsilon: 2 / epsilon, 4.0) == pytest.approx(0.5)
    assert least_epsilon(lambda epsilon: np.array([1.0, 2.0]) / epsilon, 4.0) == pytest.approx(0.5)
    with pytest.raises(SettingsError, match="out of reach"):
        least_epsilon(lambda epsilon: 1e170 / epsilon, 1.0)
    for wrong in (0, -1.0, np.nan, np.inf, True, "2"):
        with pytest.raises(SettingsError, match="not a distance"):
            least_epsilon(lambda epsilon: 1 / epsilon, wrong)


def test_a_subclass_of_the_gaussian_has_no_known_error():
    """Its noise is not known, so a number would be made up."""

    class Own(Gaussian):
        """May add any noise."""

    function = private(facts, mechanism=Own(), delta=1e-6)
    with pytest.raises(SettingsError, match="does not say how far off"):
        function.error_at(50)
