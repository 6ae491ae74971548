"""Predictions at public points: of trees, forests and boosting, in one line or in a function of one's own."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

from sklearn.cluster import KMeans
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from privatize import privatize, samplers, seal
from privatize.constraints import probabilities
from privatize.errors import PrivateRunError, PrivatizeError, SettingsError
from privatize.identity.fingerprint import fingerprint
from privatize.sklearn import predictions
from tests.cases import for_each
from tests.function.fitted import QUICK

P = samplers.blobs([[0, 0], [3, 3]], 2.0, low=-4, high=7)
X, Y = P.draw(80, np.random.default_rng(3))
POINTS = [[0.0, 0.0], [1.5, 1.5], [3.0, 3.0]]
FEW = {"n_estimators": 5, "random_state": 0}
CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=2),
    RandomForestClassifier(**FEW),
    RandomForestClassifier(5),  # its random_state is that of numpy, which is reseeded for every run
    ExtraTreesClassifier(**FEW),
    GradientBoostingClassifier(**FEW),
    HistGradientBoostingClassifier(max_iter=5),
    KNeighborsClassifier(),
    make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)),
]
REGRESSORS = [
    DecisionTreeRegressor(max_depth=2, random_state=0),
    RandomForestRegressor(**FEW),
    GradientBoostingRegressor(**FEW),
    HistGradientBoostingRegressor(max_iter=5),
]


def private(function, **more):
    """Make a function of X and y private, with little noise."""
    return privatize(**(QUICK | {"sampler": P, "data": ("X", "y")} | more))(function)


@for_each("estimator", CLASSIFIERS)
def test_classifiers_in_one_line(estimator):
    """Trees, forests and boosting could not be released at all."""
    function = predictions(estimator, at=POINTS)
    found = private(function)(X, Y)
    assert found.shape == (3, 2) and found.dtype == np.float64
    assert np.allclose(found.sum(axis=1), 1, atol=0.01)
    if getattr(estimator, "random_state", 0) == 0:
        assert np.allclose(found, function(X, Y), atol=0.01)
    noisy = private(function, epsilon=1, min_sensitivity=0.1)(X, Y)
    assert np.allclose(probabilities(noisy).sum(axis=1), 1)


@for_each("estimator", REGRESSORS)
def test_regressors_in_one_line(estimator):
    """A regressor would have to be released by hand."""
    function = predictions(estimator, at=POINTS)
    found = private(function)(X, Y)
    assert found.shape == (3,) and np.allclose(found, function(X, Y), atol=0.01)


def test_of_a_fitted_model():
    """Inside a function of one's own, where the model is fitted already, there would be no short way."""

    def train(X, y):
        return predictions(RandomForestClassifier(**FEW).fit(X, y), at=POINTS)

    assert np.allclose(private(train)(X, Y), train(X, Y), atol=0.01)
    assert np.array_equal(train(X, Y), RandomForestClassifier(**FEW).fit(X, Y).predict_proba(POINTS))


def test_the_estimator_that_is_given_learns_nothing():
    """What was learned without noise would stay in the caller's hands."""
    forest = RandomForestClassifier(**FEW)
    private(predictions(forest, at=POINTS))(X, Y)
    assert not hasattr(forest, "estimators_")


def test_another_model_or_other_points_are_another_question():
    """An estimate for one model would be recalled for another, with the wrong noise."""
    forests = [RandomForestClassifier(n, random_state=0) for n in (3, 4)]
    found = [fingerprint(predictions(each, at=at)) for each in forests for at in (POINTS, POINTS[:2])]
    assert len(set(found)) == 4
    assert fingerprint(predictions(forests[0], at=POINTS)) == found[0]
    assert predictions(forests[0], at=POINTS).__name__ == "predictions_of_RandomForestClassifier"


def test_other_processes_see_the_same():
    """Workers could not unpack the function, or would train another model."""
    here, there = (
        private(predictions(RandomForestClassifier(**FEW), at=POINTS), workers=workers).estimate(40).value
        for workers in ("inline", 2)
    )
    assert here == there


def test_points_are_copied():
    """Points that change after calibration would be another question under the same name."""
    points = np.array(POINTS)
    function = predictions(DecisionTreeClassifier(max_depth=2, random_state=0), at=points)
    before = function(X, Y)
    points[:] = 9
    assert np.array_equal(function(X, Y), before)


def test_classes_that_a_dataset_may_lack():
    """A dataset without a rare class has fewer columns, so nothing would be released."""
    rare = samplers.blobs([[0, 0], [3, 3], [6, 0]], 1.0, weights=[0.6, 0.39, 0.01], labels=["a", "b", "c"])
    x, y = P.draw(40, np.random.default_rng(1))
    names = np.array(["a", "b"])[y]
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    function = predictions(tree, at=POINTS, classes=["c", "b", "a"])
    plain = predictions(tree, at=POINTS)(x, names)
    assert np.array_equal(function(x, names), np.column_stack([np.zeros(3), plain[:, 1], plain[:, 0]]))
    found = private(function, sampler=rare)(*rare.draw(30, np.random.default_rng(2)))
    assert found.shape == (3, 3)
    with pytest.raises(SettingsError, match="lacks the label 'a'"):
        predictions(tree, at=POINTS, classes=["b", "c"])(x, names)


def test_a_private_label_is_not_shown():
    """The message about a label that is not among the classes would tell a private one."""
    function = predictions(DecisionTreeClassifier(random_state=0), at=POINTS, classes=[0, 1])
    with pytest.raises(PrivateRunError) as caught:
        private(function, domain="as-is", min_sensitivity=0.1)(X, np.where(Y == 1, 7, 0))
    assert "7" not in str(caught.value)


def test_frames():
    """A model of a frame knows its columns by name, and wants points that have them."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
    people = samplers.labelled(
        samplers.table({"age": samplers.uniform(0, 1), "dose": samplers.uniform(0, 2)}),
        lambda frame, rng: frame["age"].to_numpy() + rng.normal(0, 0.1, len(frame)),
        support=(-1, 2),
    )
    points = pd.DataFrame({"age": [0.2, 0.8], "dose": [1.0, 1.0]})
    forest = RandomForestRegressor(5, min_samples_leaf=5, random_state=0)
    data = people.draw(60, np.random.default_rng(1))
    found = private(predictions(forest, at=points), sampler=people)(*data)
    assert found.shape == (2,) and found[0] < found[1]


@for_each(
    ("estimator", "options", "message"),
    [
        (RidgeClassifier(), {"at": POINTS}, "no predict_proba.*labels.*no noise.*decision_function"),
        (KMeans(2), {"at": POINTS}, "neither a classifier nor a regressor"),
        (RandomForestClassifier, {"at": POINTS}, "not a class RandomForestClassifier"),
        (7, {"at": POINTS}, "not a int"),
        (RandomForestRegressor(), {"at": POINTS, "classes": [0, 1]}, "is for classifiers"),
        (RandomForestClassifier(), {"at": POINTS, "classes": [0, 0]}, "different labels"),
        (RandomForestClassifier(), {"at": [0.0, 1.0]}, r"shape \(2,\).*\[\[...\]\]"),
        (RandomForestClassifier(), {"at": []}, "shape"),
        (RandomForestClassifier(), {"at": [[0.0, np.nan]]}, "missing or infinite"),
        (RandomForestClassifier(), {"at": [["a", "b"]]}, "array of numbers"),
        (RandomForestClassifier(), {"at": seal(X, name="people")}, "sealed.*public"),
    ],
)
def test_what_is_refused(estimator, options, message):
    """A mistake would show only after calibration, or as an error of scikit-learn about something else."""
    with pytest.raises(SettingsError, match=f"(?s){message}"):
        predictions(estimator, **options)


@for_each(
    ("function", "message"),
    [
        (predictions(RandomForestClassifier(**FEW), at=[[0.0]]), "1 columns, and RandomForestClassifier"),
        (lambda X, y: RandomForestClassifier(**FEW).fit(X, y), "predictions"),
        (
            lambda X, y: predictions(RandomForestClassifier(**FEW).fit(X, np.c_[y, y]), at=POINTS),
            "several columns of labels",
        ),
    ],
)
def test_what_is_refused_when_it_runs(function, message):
    """Points with other columns, and models that are no numbers, would end in an error without a remedy."""
    with pytest.raises(PrivatizeError, match=f"(?s){message}"):
        private(function)(X, Y)
