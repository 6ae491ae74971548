"""A class is known by its qualified name, and another one of that name is not taken for it."""

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

from sklearn import (
    svm,
)

from tests.outputs.trained import refused


def test_classes_with_the_name_of_a_known_one():
    """A user's class that is called LinearSVC would be released as if it were scikit-learn's."""

    class LinearSVC(svm.LinearSVC):
        pass

    LinearSVC.__module__ = svm.LinearSVC.__module__
    LinearSVC.__qualname__ = "LinearSVC"
    assert "returns a LinearSVC" in str(refused(lambda X, y: LinearSVC(random_state=0).fit(X, y)))
