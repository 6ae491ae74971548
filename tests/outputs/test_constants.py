"""Parameters and constants that cannot be compared, or that differ, are refused."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

from sklearn import (
    linear_model,
    neighbors,
    pipeline,
    preprocessing,
    svm,
)

from privatize.errors import (
    InfiniteSensitivityError,
)
from privatize.sklearn import fitted
from tests.cases import for_each
from tests.outputs.trained import refused


@for_each(
    ("function", "message"),
    [
        (lambda X, y: linear_model.LogisticRegression(), "is it fitted"),
        (
            lambda X, y: pipeline.make_pipeline(preprocessing.StandardScaler(), svm.LinearSVC()),
            "is it fitted",
        ),
        (
            lambda X, y: svm.LinearSVC(random_state=np.random.RandomState(0)).fit(X, y),
            "random generator",
        ),
        (lambda X, y: preprocessing.FunctionTransformer(lambda x: x).fit(X), "top of a module"),
        (lambda X, y: preprocessing.FunctionTransformer(lambda x: x - X[0]).fit(X), "top of a module"),
        (lambda X, y: preprocessing.FunctionTransformer(X.__add__).fit(X), "cannot be compared"),
        (lambda X, y: svm.LinearSVC, "type"),
        (lambda X, y: svm.LinearSVC().fit, "method"),
    ],
)
def test_parameters_that_cannot_be_compared(function, message):
    """A parameter that could carry data unseen must be refused before anything private is touched."""
    assert message in str(refused(function))


def test_constants_must_be_constant():
    """A constant that depends on the data is refused: it would be published without noise."""

    def nearest(X, y):
        return fitted(
            neighbors.NearestCentroid(priors="empirical").fit(X, y),
            ["centroids_"],
            constants=["class_prior_"],
        )

    assert isinstance(refused(nearest), InfiniteSensitivityError)
