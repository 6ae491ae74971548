"""Private estimators for scikit-learn.

A decorated function may return a fitted estimator of the classes that `privatize.outputs.models`
knows. For other classes `fitted` says what to release. `PrivateEstimator` does the same with the
interface of a scikit-learn estimator.
"""

from __future__ import annotations

import contextlib
import operator
import os
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privatize.budgets.sealed import is_sealed
from privatize.data import records
from privatize.errors import ArgumentError, DataError, InputError, PrivateRunError, ScoreError, SettingsError
from privatize.function.advice import Advice
from privatize.function.calibrator import Calibrator
from privatize.function.private_function import PrivateFunction
from privatize.function.recursion import evaluating
from privatize.function.release import Release
from privatize.function.settings import Settings
from privatize.function.template import Template
from privatize.mechanisms import Mechanism
from privatize.outputs.models import Fitted, Unfitted, unfitted
from privatize.planning.plan import Bound
from privatize.samplers.families import Family

_CAUSES = (
    " For a model the usual causes are labels in y that P does not draw, or only one class; "
    "OneHotEncoder without categories=; missing values in a column that P leaves unbounded."
)
_CALIBRATOR = Calibrator()  # shared by all private estimators, which train by the same functions


def fitted(
    estimator: Any,
    attributes: Sequence[str] | None = None,
    *,
    constants: Sequence[str] = (),
    constrain: bool = True,
) -> Any:
    """Say what of a fitted estimator is released. Wrap it around what a decorated function returns.

    The private answer is a new estimator of the same class and parameters, with noise added to these
    attributes, and without anything else that was learned.

    Parameters
    ----------
    estimator : estimator
        A fitted one.
    attributes : sequence of str, optional
        The learned numbers that it predicts from. By default those of the allow-list, for the classes
        that are on it.
    constants : sequence of str
        What else it needs, and is the same for every dataset: it is published as it was on data from
        P, and compared at every evaluation. Class labels and feature names need not be named.
    constrain : bool
        Whether what is released is made valid: probabilities that sum to 1, positive variances,
        semidefinite covariance matrices, orthonormal components. It costs no privacy.

    Examples
    --------
    >>> from privatize import privatize, samplers
    >>> from privatize.sklearn import fitted
    >>> from sklearn.neighbors import NearestCentroid
    >>> P = samplers.blobs([[0, 0], [3, 3]], 1.0, low=-4, high=7)
    >>> @privatize(epsilon=1, gamma=0.1, sampler=P, data=("X", "y"), seed=1)
    ... def train(X, y):
    ...     model = NearestCentroid(priors=[0.5, 0.5]).fit(X, y)
    ...     return fitted(model, ["centroids_"], constants=["class_prior_"])
    >>> X, y = P.draw(500, np.random.default_rng(1))
    >>> train(X, y).predict([[-1, -1], [4, 4]])
    array([0, 1])
    """
    if not isinstance(estimator, BaseEstimator):
        raise SettingsError(f"fitted() takes a fitted estimator, not a {type(estimator).__name__}.")
    for what, given in (("attributes", attributes), ("constants", constants)):
        if isinstance(given, str) or not all(isinstance(name, str) for name in given or ()):
            raise SettingsError(f"fitted(): {what}={given!r} is not a list of names of attributes.")
    if attributes is not None and not len(attributes):
        raise SettingsError("fitted(): attributes=[] leaves nothing to release.")
    return Fitted(estimator, None if attributes is None else tuple(attributes), tuple(constants), constrain)


def fit(X: Any, y: Any, estimator: Any, *shaping: Any) -> Any:  # noqa: N803 - scikit-learn's name
    """Train a copy of an estimator. This is the function that a private estimator makes private."""
    return _shaped(clone(estimator).fit(X, y), *shaping)


def fit_without_labels(X: Any, estimator: Any, *shaping: Any) -> Any:  # noqa: N803 - scikit-learn's name
    """Train a copy of an estimator that needs no labels."""
    return _shaped(clone(estimator).fit(X), *shaping)


def _shaped(estimator: Any, attributes: Any, constants: Any, constrain: bool) -> Any:
    if attributes is None and not constants and constrain:
        return estimator
    return fitted(estimator, attributes, constants=constants, constrain=constrain)


def _as_array(part: Any, drawn: Any) -> Any:
    """Return X or y as an array if P draws arrays and scikit-learn would convert it to one."""
    wanted = isinstance(drawn, np.ndarray) and not is_sealed(part)
    if wanted and (isinstance(part, np.memmap) or _foreign(part)):
        with contextlib.suppress(Exception):  # which may quote the data; the part itself is refused later
            return np.asarray(part)
    return part


def _is_column(y: Any, drawn: Any) -> bool:
    """Tell whether y is a column vector where P draws a one-dimensional array."""
    return type(y) is np.ndarray and y.ndim == 2 and y.shape[1] == 1 and np.ndim(drawn) == 1


def _foreign(part: Any) -> bool:
    """Tell whether numpy can convert something to an array, but this library does not know its class."""
    if isinstance(part, np.ndarray) or not hasattr(type(part), "__array__"):
        return False  # not a masked array either: its masked values are no data
    try:
        records.count(part)
    except DataError:
        return True
    return False


def _misshaped(X: Any) -> str:  # noqa: N803 - scikit-learn's name
    """Return what is wrong with the number of rows or columns of X, or with its dtype, which are public."""
    shape: Any = () if is_sealed(X) else getattr(X, "shape", ())
    rows, columns = shape if isinstance(shape, tuple) and len(shape) == 2 else (2, 1)
    if shape and getattr(getattr(X, "dtype", None), "kind", "") == "c":
        return "Complex data not supported: P draws real numbers."
    if columns == 0:
        return f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required."
    return "fit() was given 1 sample: a model of one person hides nobody." if rows == 1 else ""


class _Delegated:
    """An attribute or method of the private model, which exists only if the model has it.

    A method is returned, not called, so that its arguments pass through no frame of ours.
    """

    def __init__(self, doc: str, *, learned: bool = False) -> None:
        self.__doc__, self.learned = doc, learned

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        # Before fit(), an unfitted copy raises the usual error, even if the estimator itself is fitted.
        fitted_one = vars(instance).get("estimator_")
        if fitted_one is None and self.learned:
            raise AttributeError(f"PrivateEstimator has no {self.name} before fit().")
        return getattr(clone(instance.estimator) if fitted_one is None else fitted_one, self.name)


class PrivateEstimator(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc] # it has no types
    """An estimator whose `fit` is private: it learns a random differentially private model.

    Parameters
    ----------
    estimator : estimator
        What is trained: any that a decorated function may return, pipelines included. The steps before
        a private estimator in a pipeline see the raw data, so put the pipeline inside.
    epsilon, gamma, sensitivity, sampler
        The promise: see `privatize.privatize`. P draws pairs (X, y), or X alone if the
        estimator learns without labels.
    attributes, constants : sequence of str, optional
        What to release, and what else the model needs, as in `fitted`.
    constrain : bool
        Whether what is released is made valid.
    mechanism, delta, bound, samples, domain, min_sensitivity, timeout, seed, version, workers, store, \
progress, budget
        As for `privatize.privatize`.

    Attributes
    ----------
    estimator_ : estimator
        The private model: a plain estimator of scikit-learn, without anything else that was learned.
    release_ : Release
        The release, with what was promised and how much noise there is.
    classes_, n_features_in_, feature_names_in_
        As calibration saw them, where the model has them.

    Examples
    --------
    >>> from privatize import samplers
    >>> from sklearn.linear_model import LogisticRegression
    >>> P = samplers.blobs([[0, 0], [3, 3]], 1.0, low=-4, high=7)
    >>> model = PrivateEstimator(LogisticRegression(C=0.1), epsilon=2, gamma=0.1, sampler=P, seed=1)
    >>> X, y = P.draw(500, np.random.default_rng(1))
    >>> bool((model.fit(X, y).predict([[-3, -3], [6, 6]]) == [0, 1]).all())
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        epsilon: float,
        gamma: float | None = None,
        sensitivity: float | Callable[[int], float] | None = None,
        sampler: Any,
        mechanism: str | Mechanism = "laplace",
        delta: float = 0.0,
        attributes: Sequence[str] | None = None,
        constants: Sequence[str] = (),
        constrain: bool = True,
        bound: Bound = "tolerance",
        samples: int | Literal["least", "balanced"] = "balanced",
        domain: Literal["clip", "as-is"] | None = None,
        min_sensitivity: float | None = None,
        timeout: float | None = None,
        seed: int | None = None,
        version: str | None = None,
        workers: Any = None,
        store: str | os.PathLike[str] | None = "default",
        progress: bool | None = None,
        budget: Any = None,
    ) -> None:
        for name, value in list(locals().items()):
            if name != "self":
                setattr(self, name, value)

    def _function(self, labels: bool = False) -> PrivateFunction[..., Any]:
        """Return the private function that trains; a new one only if a parameter is another object."""
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            what = getattr(self.estimator, "__name__", type(self.estimator).__name__)
            raise SettingsError(f"estimator= must be an estimator, such as Ridge(), not {what}.")
        given = [getattr(self, name) for name in _OPTIONS]
        listed = self.sampler if isinstance(self.sampler, list) else []  # it may have changed
        options = [*given, labels and self.sampler is None]  # without a sampler, P is that of sealed data
        options += listed
        known = _MADE.get(self)
        same = known is not None and len(known[0]) == len(options)
        if known is None or not same or not all(map(operator.is_, known[0], options)):
            settings = Settings(**dict(zip(_OPTIONS, given, strict=True)))
            if self.sampler is not None:
                labels = isinstance(Template(settings).records(), tuple)
            star, function = ("*", fit) if labels else ("", fit_without_labels)
            first = ("[0]" if listed else ".members[0]") if isinstance(settings.sampler, Family) else ""
            trial = f"clone(estimator).fit({star}sampler{first}.draw(n, np.random.default_rng(0)))"
            settings = replace(settings, data=("X", "y") if labels else "X")
            advice = Advice("fit", trial, _CAUSES)
            made = PrivateFunction(function, settings, calibrator=_CALIBRATOR, advice=advice)
            known = _MADE[self] = options, made
        return known[1]

    def fit(self, X: Any, y: Any = None) -> PrivateEstimator:  # noqa: N803 - scikit-learn's name
        """Train on private data, and keep only the private model.

        The first fit for a number of records calibrates; later ones recall.
        """
        failed = wrong = ""
        column = labelled = False
        try:
            function = self._function(y is not None)
            labelled = function.definition.binding.aligned
            if labelled and y is None:
                raise ArgumentError(f"""fit() requires y to be passed, but the target y is None: P draws pairs
                    (X, y). If {type(self.estimator).__name__} learns without labels, give it a P that draws X
                    alone.""")
            sealed = self.sampler is None
            drawn = (None, None) if sealed else _CALIBRATOR.template(function.definition).records()
            if labelled:
                X, y = _as_array(X, drawn[0]), _as_array(y, drawn[1])  # noqa: N806 - scikit-learn's name
                column = _is_column(y, drawn[1])
                y = y[:, 0] if column else y
            else:
                X = _as_array(X, drawn)  # noqa: N806 - scikit-learn's name
            wrong = _misshaped(X)
            if not wrong:
                released: Release = function.release(*((X, y) if labelled else (X,)), *self._shaping())
        except (ArgumentError, DataError) as error:
            wrong = str(error)  # which holds no data
            if y is not None and not labelled:
                wrong += " y was passed, so P may have to draw pairs (X, y): samplers.labelled(P, 'column')."
        except PrivateRunError as error:
            failed = str(error)  # a fixed message
        finally:
            del X, y
        if wrong:
            raise InputError(wrong)
        if failed:
            raise PrivateRunError(failed)
        self.release_ = released
        self.estimator_ = released.value
        if column:  # in scikit-learn's own words, and where no frame holds data
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                "(n_samples,), for example using ravel().",
                DataConversionWarning,
                stacklevel=2,
            )
        return self

    def estimate(self, n: int, **more: Any) -> Any:
        """Calibrate ahead of time for n records. Needs no private data. See `PrivateFunction.estimate`."""
        return self._function().estimate(n, *self._shaping(), **more)

    def _shaping(self) -> tuple[Any, ...]:
        """Return the other arguments of the function that trains."""
        found = unfitted(self.estimator, _COPIES.get(self))
        if found is not None:
            _COPIES[self] = found
        return found or self.estimator, self.attributes, self.constants, self.constrain

    @property
    def score(self) -> Any:
        """The model's score method, but only inside a private function, which adds noise to what it returns.

        Elsewhere it is refused: a score on private data would be one more answer about the people in it.
        """
        if not evaluating():
            raise ScoreError("""PrivateEstimator has no score() outside a private function: a score on private
                data is one more answer about people, which no noise protects and no budget sees. On public
                data call estimator_.score(X, y). On private data decorate a function that returns the score.
                To tune, search with the bare estimator on data that is drawn from P.""")
        check_is_fitted(self)
        return self.estimator_.score

    predict = _Delegated("Predict with the private model.")
    predict_proba = _Delegated("Predict the probabilities of classes with the private model.")
    predict_log_proba = _Delegated("Predict the logarithms of the probabilities of classes.")
    decision_function = _Delegated("Return how far points are from the decision boundary, with a sign.")
    score_samples = _Delegated("Return the logarithm of the density at points, or another score of each.")
    transform = _Delegated("Transform with the private model.")
    inverse_transform = _Delegated("Undo `transform`.")
    get_feature_names_out = _Delegated("Return the names of what `transform` returns.")
    classes_ = _Delegated("The labels, as calibration saw them.", learned=True)
    n_features_in_ = _Delegated("The number of columns of X.", learned=True)
    feature_names_in_ = _Delegated("The names of the columns of X, where it has names.", learned=True)

    @available_if(lambda self: hasattr(self, "transform"))  # type: ignore[untyped-decorator] # it has no types
    def fit_transform(self, X: Any, y: Any = None) -> Any:  # noqa: N803 - scikit-learn's name
        """Fit, and transform the same records. The result is about single records and is not private."""
        try:
            return self.fit(X, y).transform(X)
        finally:
            del X, y

    def __sklearn_clone__(self) -> PrivateEstimator:
        # The same budget, workers and P, not copies: a copied budget could be spent twice.
        given = self.get_params(deep=False)
        shared = ("sampler", "mechanism", "workers", "budget")
        return type(self)(**{n: v if n in shared else clone(v, safe=False) for n, v in given.items()})

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.transformer_tags = inner.transformer_tags
        tags.input_tags.sparse = False
        tags.non_deterministic = True  # noise is never seeded
        for more in (tags.classifier_tags, tags.regressor_tags):
            if more is not None:
                more.poor_score = True  # as poor as the noise makes it
        return tags


_PARAMETERS = PrivateEstimator.__init__.__annotations__
_OPTIONS = tuple(each.name for each in fields(Settings) if each.name in _PARAMETERS)
# By estimator: its options, and the function that was made of them.
_MADE: weakref.WeakKeyDictionary[PrivateEstimator, tuple[list[Any], PrivateFunction[..., Any]]]
_MADE = weakref.WeakKeyDictionary()
_COPIES: weakref.WeakKeyDictionary[PrivateEstimator, Unfitted] = weakref.WeakKeyDictionary()
