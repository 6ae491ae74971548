"""A private estimator spends, recalls, copies and refuses as a private function does."""

import copy
import inspect
import logging
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from privatize import Budget, privatize, samplers, seal
from privatize.errors import (
    ArgumentError,
    BudgetExceeded,
    DataError,
    PrivateRunError,
    PrivatizeError,
    ScoreError,
    SettingsError,
)
from privatize.function import calibrator, private_estimator
from privatize.mechanisms import as_mechanism
from privatize.sklearn import PrivateEstimator
from tests.function.fitted import HUGE, QUICK, P, X, Y, counted

FALSE_ALARM = 1e-6


def test_its_options_are_those_of_the_decorator():
    """An option with another default, or under another name, would promise something else."""
    own = {"self", "estimator", "attributes", "constants", "constrain"}
    given = inspect.signature(PrivateEstimator.__init__).parameters
    known = inspect.signature(privatize).parameters
    options = [name for name in given if name not in own]
    assert set(known) - set(options) == {
        "function",
        "unknown",
        "data",
        "unit",
        "pair",
        "batch",
        "coins",
        "fit",
        "constraints",
    }
    for name in set(options) - {"sampler", "mechanism"}:
        assert given[name].default == known[name].default, name
    # scikit-learn wants defaults that are no objects.
    assert as_mechanism(given["mechanism"].default) == known["mechanism"].default


FAR = [[-3.0, -3.0], [6.0, 6.0]]


def private(estimator, **more):
    """Return a private estimator with little noise, few pairs, a fixed seed and no store."""
    return PrivateEstimator(estimator, **(QUICK | {"sampler": P} | more))


def fits():
    """Return how often the model was fitted. The count is in a logger, which the fingerprint ignores."""
    return getattr(logging.getLogger("fits of test_sklearn"), "count", 0)


def counting():
    """Return a classifier that counts its fits."""
    return make_pipeline(FunctionTransformer(counted), LogisticRegression())


@pytest.mark.parametrize(
    "given",
    [
        lambda X, y: (X.tolist(), y.tolist()),
        lambda X, y: (X.astype("float32"), y.astype("int8")),
        lambda X, y: (np.asfortranarray(X), y.astype(float)),
        lambda X, y: (X[::-1], y[::-1]),
    ],
)
def test_lists_dtypes_and_views(given):
    """Lists, other dtypes and views train the same model as arrays do."""
    model = private(LogisticRegression()).fit(*given(X, Y))
    raw = LogisticRegression().fit(X, Y)
    # 3 numbers, each with Laplace noise of scale sensitivity/epsilon; float32 rounds the data.
    largest = float(max(np.max(each) for each in model.release_.scale.values()))
    allowed = largest * math.log(3 / FALSE_ALARM) + 1e-5
    assert np.abs(model.estimator_.coef_ - raw.coef_).max() < allowed
    assert (model.predict(FAR) == [0, 1]).all()


def test_frames_have_names():
    """A model that was trained on a data frame knows its columns, and refuses others."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
    table = samplers.table({"age": samplers.uniform(0, 1), "dose": samplers.uniform(0, 2)})

    def sick(frame, rng):
        return np.where(frame["age"] + frame["dose"] + rng.normal(0, 0.1, len(frame)) > 1.5, "yes", "no")

    sampler = samplers.labelled(table, sick, support=["no", "yes"])
    frame, label = sampler.draw(80, np.random.default_rng(1))
    model = private(make_pipeline(StandardScaler(), LogisticRegression()), sampler=sampler)
    model.fit(frame, pd.Series(label))
    assert list(model.feature_names_in_) == ["age", "dose"] and model.n_features_in_ == 2
    assert list(model.classes_) == ["no", "yes"]
    assert list(model.predict(pd.DataFrame({"age": [0.0, 1.0], "dose": [0.0, 2.0]}))) == ["no", "yes"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame({"age": [0.0], "weight": [0.0]}))
    with pytest.raises(DataError):
        model.fit(frame.rename(columns={"dose": "weight"}), label)


def test_text_labels():
    """Labels may be strings, and the model predicts them."""
    sampler = samplers.blobs([[0, 0], [3, 3]], 0.7, labels=["ill", "well"])
    model = private(LinearSVC(), sampler=sampler).fit(*sampler.draw(60, np.random.default_rng(1)))
    assert list(model.classes_) == ["ill", "well"] and list(model.predict(FAR)) == ["ill", "well"]


def test_without_labels():
    """Where P draws X alone, models that learn without labels are trained, and a y is ignored."""
    sampler = samplers.uniform(0, 1, size=2)
    data = sampler.draw(60, np.random.default_rng(1))
    model = private(StandardScaler(), sampler=sampler).fit(data, np.ones(60))
    assert np.abs(model.transform(data) - StandardScaler().fit_transform(data)).max() < 1e-2
    assert np.allclose(model.inverse_transform(model.transform(data)), data)
    assert list(model.get_feature_names_out()) == ["x0", "x1"]
    assert model.fit_transform(data).shape == data.shape
    clusters = private(KMeans(2, n_init=1, random_state=0), sampler=sampler).fit(data)
    assert set(clusters.predict(data)) == {0, 1} and not hasattr(clusters, "labels_")
    assert not hasattr(clusters, "classes_") and not hasattr(clusters, "decision_function")


def test_methods_are_those_of_the_model():
    """A method that the model does not have is not there, before fit and after."""
    model = private(LinearSVC())
    for _ in range(2):
        assert hasattr(model, "predict") and hasattr(model, "decision_function")
        assert not hasattr(model, "predict_proba") and not hasattr(model, "transform")
        model.fit(X, Y)
    assert is_classifier(model) and not is_regressor(model)
    proba = private(GaussianNB()).fit(X, Y)
    assert np.allclose(proba.predict_proba(FAR).sum(axis=1), 1)
    assert np.allclose(proba.predict_log_proba(FAR), np.log(proba.predict_proba(FAR)))


def test_before_fit():
    """A model that has not been trained says so."""
    model = private(LogisticRegression())
    with pytest.raises(NotFittedError):
        model.predict(FAR)
    assert not any(hasattr(model, name) for name in ("classes_", "n_features_in_", "feature_names_in_"))


def test_pickles_without_data():
    """A fitted model can be sent away: it predicts the same, and holds no record."""
    model = private(LogisticRegression()).fit(X, Y)
    packed = pickle.dumps(model)
    again = pickle.loads(packed)
    assert (again.decision_function(X) == model.decision_function(X)).all()
    assert repr(again.release_) == repr(model.release_)
    assert not any(X[i].tobytes() in packed for i in range(len(X)))
    assert len(packed) < 8 * X.size + 5000


RECALLED = 2  # fits: of the private data, and of one sample of P, to see what the model is made of


def test_another_epsilon_recalls_the_estimate():
    """Changing epsilon costs no calibration: the same sampled pairs are used."""
    model = private(counting()).fit(X, Y)
    calibrated = fits()
    model.set_params(epsilon=10.0).fit(X, Y)
    assert fits() <= calibrated + RECALLED
    clone(model).set_params(epsilon=20.0).fit(X, Y)
    assert fits() <= calibrated + 2 * RECALLED
    model.set_params(estimator__logisticregression__C=0.5).fit(X, Y)
    assert fits() > calibrated + 2 * RECALLED + 5  # another function has another sensitivity


def test_estimate_ahead_of_time():
    """Calibrating needs no private data, and fit recalls it."""
    model = private(counting())
    estimate = model.estimate(60)
    before = fits()
    model.fit(X, Y)
    assert fits() <= before + RECALLED and model.release_.sensitivity == estimate.value


@pytest.mark.parametrize("copied", [clone, copy.copy, copy.deepcopy, lambda model: clone(clone(model))])
def test_copies_spend_from_the_same_budget(copied):
    """A copy of an estimator, such as every search makes, does not have a budget of its own."""
    budget = Budget(f"copies {copied}", epsilon=25, gamma=2, ledger="memory")
    model = private(LogisticRegression(), epsilon=10, budget=budget).fit(X, Y)
    copied(model).fit(X, Y)
    assert budget.spent.epsilon == 20
    with pytest.raises(BudgetExceeded):
        copied(model).fit(X, Y)
    assert copied(model).budget is budget and budget.spent.epsilon == 20


def test_copies_of_parts_of_a_budget():
    """The same holds for a part of a partition."""
    budget = Budget("copies of parts", epsilon=25, gamma=2, ledger="memory")
    part = budget.partition("site", ["Berlin", "Paris"])["Paris"]
    parts = [seal(each, name="people in Paris") for each in (X, Y)]
    copy.deepcopy(private(LogisticRegression(), epsilon=10, budget=part)).fit(*parts)
    assert budget.spent.epsilon == 10


def test_workers_are_not_copied():
    """An executor cannot be copied, and a clone runs on the same one."""

    class Mapped:
        def map(self, function, *iterables):
            return map(function, *iterables)

        def __deepcopy__(self, memo):
            raise TypeError("cannot pickle '_thread.lock' object")

    workers = Mapped()
    assert clone(private(LogisticRegression(), workers=workers)).workers is workers


def test_score_only_inside_a_private_function():
    """A score on private data is an answer about people: without noise it is refused."""
    model = private(LogisticRegression()).fit(X, Y)
    assert not hasattr(model, "score")
    with pytest.raises(ScoreError, match=r"estimator_\.score"):
        model.score(X, Y)

    @privatize(**QUICK, sampler=P, data=("X", "y"))
    def accuracy(X, y, model):
        return model.score(X, y)

    assert abs(accuracy(X, Y, model) - model.estimator_.score(X, Y)) < 1e-2
    assert not hasattr(model, "score")


def test_fit_inside_a_private_function_is_refused():
    """Noise would be added twice, and calibrated to noise."""

    @privatize(**QUICK, sampler=P, data=("X", "y"))
    def twice(X, y, model):
        return model.fit(X, y).estimator_.coef_

    with pytest.raises(PrivatizeError, match="private"):
        twice(X, Y, private(LogisticRegression()))


def test_sealed_data():
    """Sealed data goes into fit as it is, with its budget and its P."""
    budget = Budget("sealed for sklearn", epsilon=1e6, gamma=2, ledger="memory")
    parts = [seal(part, name="people", sampler=P, budget=budget) for part in (X, Y)]
    for sampler in (P, None):
        model = private(LogisticRegression(), sampler=sampler).fit(*parts)
        assert list(model.predict(FAR)) == [0, 1]
    assert budget.spent.epsilon == 2 * HUGE
    with pytest.raises(PrivatizeError, match="sealed"):
        private(LogisticRegression()).fit(parts[0], Y)


def test_what_fit_refuses():
    """Data that does not fit P is refused in scikit-learn's own words, and no frame of ours holds data."""
    model = private(LogisticRegression())
    for wrong, message in (
        (lambda: model.fit(X), "requires y"),
        (lambda: model.fit(X, Y[1:]), "records"),
        (lambda: model.fit(X[:, :1], Y), "shape"),
        (lambda: model.fit(X[:1], Y[:1]), "1 sample"),
        (lambda: model.fit(X[:, 0], Y), "shape"),
        (lambda: model.fit(X[:0], Y[:0]), "empty"),
        (lambda: model.fit(X * 1j, Y), "Complex"),
        (lambda: model.fit(np.ma.masked_array(X, X > 1), Y), "arrays"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            wrong()
        assert isinstance(caught.value, DataError) and isinstance(caught.value, ArgumentError)
        assert caught.value.__cause__ is None
        held = _held(caught.value)
        assert not any(isinstance(value, np.ndarray) for value in held)
    with pytest.raises(SettingsError, match="epsilon"):
        model.set_params(epsilon=-1).fit(X, Y)


def test_other_labels_are_refused_without_saying_which():
    """All labels that P does not have end in the same fixed message."""
    sampler = samplers.blobs([[0, 0], [3, 3]], 0.7)
    model = private(LogisticRegression(), sampler=sampler, domain="as-is")
    found = set()
    for label in (7, 31):
        with pytest.raises(PrivateRunError) as caught:
            model.fit(X, np.where(Y == 1, label, 0))
        assert str(label) not in str(caught.value)
        found.add(str(caught.value))
        assert not any(isinstance(value, np.ndarray) for value in _held(caught.value))
    assert len(found) == 1 and "clone(estimator).fit(*sampler.draw" in found.pop()


def test_an_array_like_that_fails_with_its_data():
    """The code of a foreign container sees the data, and its errors do not get out."""

    class Loud:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError(f"secret {X}")

    with pytest.raises(DataError) as caught:
        private(LogisticRegression()).fit(Loud(), Y)
    assert "secret" not in str(caught.value) and caught.value.__context__ is None


def _held(error):
    """Return the local variables of our frames in the traceback of an error."""
    step, values = error.__traceback__, []
    while step is not None:
        if "privatize" in step.tb_frame.f_globals.get("__name__", "").partition(".")[0]:
            values += step.tb_frame.f_locals.values()
        step = step.tb_next
    return values


def test_constants_of_other_models():
    """A model that needs more than its numbers can be private too, without a function of one's own."""
    clouds = samplers.blobs([[0, 0], [2, 2]], low=-3, high=5)
    network = MLPClassifier((3,), max_iter=2000, random_state=0, solver="lbfgs", alpha=1.0)
    model = PrivateEstimator(
        network,
        sampler=clouds,
        **QUICK,
        attributes=["coefs_", "intercepts_"],
        constants=["n_layers_", "out_activation_", "_label_binarizer", "n_outputs_"],
    )
    x, y = clouds.draw(60, np.random.default_rng(5))
    assert set(model.fit(x, y).predict(x)) <= {0, 1}
    assert not hasattr(model.estimator_, "loss_")


def test_arguments_of_predict_pass_through_no_frame_of_ours():
    """A traceback of a failed prediction would show the records from inside the library."""
    clouds = samplers.blobs([[0, 0], [2, 2]], low=-3, high=5)
    model = PrivateEstimator(LogisticRegression(), sampler=clouds, **QUICK)
    model.fit(*clouds.draw(60, np.random.default_rng(5)))
    with pytest.raises(ValueError, match="NaN") as caught:
        model.predict(np.array([[31415926.5, np.nan]]))
    step = caught.value.__traceback__
    while step is not None:
        assert "privatize" not in Path(step.tb_frame.f_code.co_filename).parts[-2:]
        step = step.tb_next


def test_a_model_that_was_fitted_before_does_not_predict():
    """What was learned without privacy would pass for the private model, until fit() is called."""
    clouds = samplers.blobs([[0, 0], [2, 2]], low=-3, high=5)
    X, y = clouds.draw(60, np.random.default_rng(5))
    model = PrivateEstimator(LogisticRegression().fit(X, y), sampler=clouds, **QUICK)
    with pytest.raises(NotFittedError):
        model.predict(X)


class TestWarmFits:
    """Fits that need no fingerprint any more."""

    @staticmethod
    def warm(estimator, **options):
        model = PrivateEstimator(estimator, sampler=P, **QUICK | options)
        for _ in range(4):
            model.fit(X, Y)
        return model

    @staticmethod
    def counting(monkeypatch):
        taken = []
        for name in ("token", "identity_of"):
            real = getattr(calibrator, name)
            monkeypatch.setattr(calibrator, name, lambda *a, f=real, **k: taken.append(f) or f(*a, **k))
        return taken

    def test_no_fingerprint(self, monkeypatch):
        """Each fit would take a millisecond more."""
        model, taken = self.warm(GaussianNB()), self.counting(monkeypatch)
        before = model.release_.sensitivity
        model.estimator.fit(X, Y)  # what a raw fit has learned does not count
        assert model.fit(X, Y).release_.sensitivity == before and not taken
        assert set(vars(model.estimator)) > {"theta_"}

    @pytest.mark.parametrize(
        "change",
        [
            lambda model: setattr(model.estimator, "var_smoothing", 1e-3),
            lambda model: model.set_params(estimator__var_smoothing=1e-3),
            lambda model: model.set_params(estimator=GaussianNB(var_smoothing=1e-3)),
            lambda model: setattr(model.estimator, "priors", [0.5, 0.5]),
            lambda model: setattr(model.estimator, "partial_fit", None),
            lambda model: setattr(model, "constants", ["classes_"]),
        ],
    )
    def test_changes_between_fits_are_seen(self, change, monkeypatch):
        """A model with other parameters would get the noise of the first one."""
        model, taken = self.warm(GaussianNB()), self.counting(monkeypatch)
        change(model)
        model.fit(X, Y)
        assert taken

    def test_a_parameter_that_changes_back_and_forth(self):
        """The noise of one would be added to the other."""
        model = self.warm(LogisticRegression(C=1.0))
        first = model.release_.sensitivity
        for _ in range(3):
            second = model.set_params(estimator__C=1e-4).fit(X, Y).release_.sensitivity
            assert second < first / 3
            assert model.set_params(estimator__C=1.0).fit(X, Y).release_.sensitivity == first

    def test_a_setting_of_scikit_learn_is_seen(self, monkeypatch):
        """With assume_finite, a model may learn something else."""
        model, taken = self.warm(GaussianNB()), self.counting(monkeypatch)
        with config_context(assume_finite=True):
            model.fit(X, Y)
        assert taken

    def test_the_copy_is_never_trained(self):
        """What it had learned would be private data that stays in memory."""
        model = self.warm(GaussianNB())
        copies = private_estimator._COPIES[model].estimator
        assert set(vars(copies)) == {"priors", "var_smoothing"} and copies is not model.estimator
