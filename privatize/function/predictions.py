"""Predictions at public points, for models that have no numbers of their own to release.

Trees, forests, boosting, neighbours and kernels predict from people's records. What can be released of them
is what they predict at points that are public anyway.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from privatize.budgets.sealed import is_sealed
from privatize.errors import SettingsError


def predictions(estimator: Any, *, at: Any, classes: Sequence[Any] | None = None) -> Any:
    """Release what a model predicts at public points: for trees, forests, boosting, neighbours and kernels.

    Of an estimator that is not fitted it makes a function of X and y, which trains a copy and returns the
    copy's predictions, to be made private in one line. Of a fitted one it returns the predictions, for the
    last line of a decorated function.

    Parameters
    ----------
    estimator : estimator
        A classifier with ``predict_proba``, or a regressor; a pipeline that ends in one, too.
    at : array or frame
        The points, with the columns of X. They must be public: chosen without looking at the private data, a
        grid for example. Fewer points need less noise.
    classes : sequence, optional
        All labels, in the order of the columns of the answer, for classifiers. By default those of the
        training data, in sorted order; so give them if one of them may be absent from a dataset.

    Returns
    -------
    function or array
        The predictions, or a function that returns them: for classifiers the probabilities of the classes, of
        shape (points, classes); for regressors the predicted values. `privatize.constraints.probabilities`
        makes what noise left of probabilities valid again.

    Examples
    --------
    >>> from privatize import privatize, samplers
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> P = samplers.blobs([[0, 0], [3, 3]], 1.0, low=-4, high=7)
    >>> tree = predictions(DecisionTreeClassifier(max_depth=1, random_state=0), at=[[-1, -1], [4, 4]])
    >>> private = privatize(epsilon=100, gamma=0.3, sampler=P, data=("X", "y"), seed=1)(tree)
    >>> private(*P.draw(2000, np.random.default_rng(1))).round().astype(int)
    array([[1, 0],
           [0, 1]])
    """
    if not isinstance(estimator, BaseEstimator):
        raise SettingsError(f"""predictions() takes an estimator of scikit-learn, such as
            RandomForestClassifier(random_state=0), not a {_kind(estimator)}.""")
    labels = None if classes is None else list(classes)
    _check(estimator, labels)
    points = _public(at)
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return _trained(clone(estimator), points, labels)
    return _predicted(estimator, points, labels)


def _kind(value: Any) -> str:
    return f"class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _check(estimator: Any, labels: list[Any] | None) -> None:
    """Refuse an estimator that predicts nothing that noise can be added to."""
    name = type(estimator).__name__
    if is_classifier(estimator):
        if not hasattr(estimator, "predict_proba"):
            raise SettingsError(f"""predictions() was given a {name}, which has no predict_proba. The labels
                that it predicts are no numbers, so no noise can be added to them. Use a classifier with
                probabilities, or return its decision_function at the points.""")
        if labels is not None and (len(labels) < 2 or len(set(labels)) < len(labels)):
            raise SettingsError(f"classes={labels!r} are not at least two different labels.")
    elif not is_regressor(estimator):
        raise SettingsError(f"""predictions() was given a {name}, which is neither a classifier nor a
            regressor. Return the numbers that it gives for public points.""")
    elif labels is not None:
        raise SettingsError(f"classes={labels!r} is for classifiers, and {name} is a regressor.")


def _public(at: Any) -> Any:
    """Return a copy of the points, or refuse them."""
    if is_sealed(at):
        raise SettingsError("""at= was given sealed data. The points must be public: take a grid, or data that
            is drawn from P.""")
    if hasattr(at, "columns"):
        points, numbers = copy.deepcopy(at), np.asarray(at)
    else:
        try:
            points = numbers = np.array(at, dtype=np.float64)
        except (TypeError, ValueError):
            raise SettingsError(
                "at= must be an array of numbers or a frame, with the columns of X."
            ) from None
    if numbers.ndim != 2 or not numbers.size:
        raise SettingsError(f"""at= must have one row for each point and the columns of X, not shape
            {numbers.shape}. For one point write [[...]].""")
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        raise SettingsError("at= has points that are missing or infinite. Give finite numbers.")
    return points


def _trained(estimator: Any, points: Any, labels: list[Any] | None) -> Callable[[Any, Any], Any]:
    """Return the function that trains a copy of an estimator and returns its predictions."""

    def predicted(X: Any, y: Any) -> Any:  # noqa: N803 - scikit-learn's name
        return _predicted(clone(estimator).fit(X, y), points, labels)

    predicted.__name__ = predicted.__qualname__ = f"predictions_of_{type(estimator).__name__}"
    return predicted


def _predicted(model: Any, points: Any, labels: list[Any] | None) -> Any:
    """Return the probabilities of classes, or predicted values, as numbers."""
    columns = getattr(model, "n_features_in_", points.shape[1])
    if columns != points.shape[1]:
        raise SettingsError(f"""at= has {points.shape[1]} columns, and {type(model).__name__} was trained on
            {columns}. Give the points the columns of X, in the same order.""")
    if not is_classifier(model):
        return np.asarray(model.predict(points), dtype=np.float64)
    found = model.predict_proba(points)
    if isinstance(found, list):
        raise SettingsError(f"""{type(model).__name__} was trained on several columns of labels. Train one
            classifier for each.""")
    if labels is None:
        return np.asarray(found, dtype=np.float64)
    own = model.classes_.tolist()
    if unknown := [label for label in own if label not in labels]:
        raise SettingsError(f"classes={labels!r} lacks the label {unknown[0]!r}, which y has. Add it.")
    answer = np.zeros((len(points), len(labels)))
    answer[:, [labels.index(label) for label in own]] = found
    return answer
