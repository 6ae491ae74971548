"""What cannot be released is refused with what to do about it."""

import decimal
import fractions

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

from sklearn import (
    ensemble,
    linear_model,
    model_selection,
    neighbors,
    pipeline,
    preprocessing,
    svm,
)

from privatize.errors import (
    OutputError,
)
from privatize.outputs.describe import describe
from tests.cases import for_each
from tests.outputs.shapes import Color, Fit
from tests.outputs.trained import Boosted, Own, refused

UNKNOWN = {
    "RandomForestClassifier": lambda X, y: ensemble.RandomForestClassifier(2, random_state=0).fit(X, y),
    "SVC": lambda X, y: svm.SVC().fit(X, y),
    "KNeighborsClassifier": lambda X, y: neighbors.KNeighborsClassifier().fit(X, y),
    "GridSearchCV": lambda X, y: model_selection.GridSearchCV(
        linear_model.LogisticRegression(), {"C": [1, 2]}, cv=2
    ).fit(X, y),
    "Boosted": lambda X, y: Boosted().fit(X, y),
    "Own": lambda X, y: Own(random_state=0).fit(X, y),
}


@for_each("name", UNKNOWN)
def test_unknown_estimators(name):
    """A model that predicts from records, or from unknown attributes, must be refused with a remedy."""
    remedies = {"SVC": "LinearSVC", "GridSearchCV": "drawn from P"}
    remedies["RandomForestClassifier"] = "privatize.sklearn.predictions(model, at="
    error = refused(UNKNOWN[name])
    assert isinstance(error, OutputError)
    assert f"returns a {name}" in str(error) and remedies.get(name, "fitted(model") in str(error)
    line = refused(lambda X, y: pipeline.make_pipeline(preprocessing.StandardScaler(), Boosted()).fit(X, y))
    assert "returns a Boosted" in str(line)


class Estimator:
    """An object with a method of scikit-learn's estimators."""

    def get_params(self):
        return {}


class Series:
    """An object with a method of pandas' series."""

    def to_numpy(self):
        return np.zeros(1)


class Listed(list):
    """A user's subclass of list."""


@for_each(
    ("value", "message"),
    [
        (True, r"a bool, .*int\(\.\.\.\) for a count.*Exponential\(responses"),
        (np.True_, r"bool, .*Exponential\(responses"),
        (np.array([True]), r"an array of bool, .*Exponential\(responses"),
        ("yes", r"a str, .*Exponential\(responses"),
        (b"yes", r"a bytes, .*Exponential\(responses"),
        (np.str_("yes"), r"Exponential\(responses"),
        (np.array(["yes"]), r"Exponential\(responses"),
        (None, "a NoneType, .*Return the answer"),
        (1j, "a complex, .*real and imaginary"),
        (np.complex128(1), "complex128, .*real and imaginary"),
        (np.array([1j]), "complex128, .*real and imaginary"),
        ((i for i in range(3)), "a generator, .*Return a list"),
        (map(abs, [1]), "a map, .*Return a list"),
        (iter([1]), "iterator, .*Return a list"),
        (zip([1], [2], strict=True), "a zip, .*Return a list"),
        (lambda x: x, r"a function, .*Bernstein\("),
        (np.polynomial.Polynomial([1, 2]), r"a Polynomial, .*Bernstein\("),
        (np.datetime64("2020-01-01"), "datetime64.*days or seconds"),
        (np.array([1], "m8[s]"), "timedelta64.*days or seconds"),
        (np.array([1.0], dtype=object), r"object, .*astype\(float\)"),
        (np.zeros(1, [("a", "f8")]), "an array of .*Return numbers"),
        (object(), "a object, .*Return numbers, arrays, frames"),
        ({1.0, 2.0}, "a set, .*Return numbers"),
        (range(3), "a range, .*Return numbers"),
        (decimal.Decimal("1.5"), "a Decimal, .*Return numbers"),
        (fractions.Fraction(1, 2), "a Fraction, .*Return numbers"),
        (Color.RED, "a Color, .*Return numbers"),
        (Listed([1.0]), "a Listed, .*Return numbers"),
        (Fit, r"a type, "),
        (Estimator(), "an? Estimator, .*coef_ and intercept_"),
        (Series(), r"a Series, .*to_numpy\(\)"),
    ],
    ids=lambda value: type(value).__name__,
)
@for_each("wrap", [lambda v: v, lambda v: {"a": [1.0, (v,)]}], ids=["bare", "nested"])
def test_what_cannot_be_released(value, message, wrap):
    """The user would not learn why, nor which mechanism or change would help."""
    with pytest.raises(OutputError, match=f"The function returns .*{message}"):
        describe(wrap(value))


def test_a_coroutine_cannot_be_released():
    """An answer that does not exist yet would be refused without saying so."""

    async def later():
        return 1.0

    waiting = later()
    with pytest.raises(OutputError, match=r"a coroutine, .*plain function"):
        describe(waiting)
    waiting.close()


@pytest.mark.parametrize("kind", [np.ma.MaskedArray, np.memmap, np.matrix])
def test_a_kind_of_array_is_refused_by_name(kind):
    """A message that an array cannot be released, and that an array should be returned, would confuse."""
    with pytest.raises(OutputError, match=kind.__name__):
        describe(np.zeros((2, 2)).view(kind))
