"""The allow-list: what is released of each of scikit-learn's classes.

A class belongs on it only if everything that it predicts from is named, as learned numbers or as constants.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privatize.outputs.constraints import orthonormal, positive, probabilities, semidefinite

_FLOOR = 0.01  # no variance or scale is released below this share of its value on data from P


@dataclass(frozen=True)
class Form:
    """An entry of the allow-list: what of a class is released, and how.

    Attributes
    ----------
    attributes : callable
        Names of the learned numbers of an estimator that are released.
    constants : callable
        Names of attributes that must be the same for every dataset, beside those that all estimators have.
    carried : tuple of str
        Names of attributes that are copied from an estimator fitted on data from P, without a comparison.
    valid : dict
        How each released attribute is moved to where it is valid.
    arrange : callable or None
        Removes a symmetry: makes one of several equivalent solutions the only one.
    inside : str
        Name of the list of the estimators inside it, or of tuples of a name, an estimator and more.
    derive : callable or None
        Sets attributes that follow from the released numbers.
    """

    attributes: Callable[[Any], tuple[str, ...]] = lambda _: ()
    constants: Callable[[Any], tuple[str, ...]] = lambda _: ()
    carried: tuple[str, ...] = ()
    valid: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    arrange: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    inside: str = ""
    derive: Callable[[Any], None] | None = None


# -- symmetries --


def signed(values: dict[str, Any]) -> dict[str, Any]:
    """Give each component the sign that makes its largest entry positive: both signs are equally good.

    Examples
    --------
    >>> signed({"components_": np.array([[0.6, -0.8], [0.8, 0.6]])})["components_"]
    array([[-0.6,  0.8],
           [ 0.8,  0.6]])
    """
    if "components_" not in values:
        return values
    rows = np.asarray(values["components_"])
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return values | {"components_": rows * np.where(largest < 0, -1, 1).astype(rows.dtype)}


def ordered(values: dict[str, Any]) -> dict[str, Any]:
    """Sort cluster centers by their first coordinate, then by the next: all orders are equally good.

    Examples
    --------
    >>> ordered({"cluster_centers_": np.array([[2.0, 1.0], [0.0, 5.0]])})["cluster_centers_"]
    array([[0., 5.],
           [2., 1.]])
    """
    if "cluster_centers_" not in values:
        return values
    rows = np.asarray(values["cluster_centers_"])
    return values | {"cluster_centers_": rows[np.lexsort(rows.T[::-1])]}


# -- where released numbers are valid --


def above(value: Any, seen: Any) -> Any:
    """Raise a variance or scale to a share of its value on data from P, if noise made it smaller."""
    return _cast(positive(value, _FLOOR * np.abs(np.asarray(seen, dtype=np.float64))), value)


def _nearest(valid: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda value, _: _cast(valid(value), value)


def _log_sum_to_one(value: Any) -> Any:
    below = value - np.max(value, axis=-1, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=-1, keepdims=True))


def _log_of_shares(value: Any) -> Any:
    return np.clip(value, -50.0, -1e-6)


def _cast(found: Any, value: Any) -> Any:
    return np.asarray(found).astype(np.asarray(value).dtype)


# -- the allow-list --


def _always(*names: str) -> Callable[[Any], tuple[str, ...]]:
    return lambda _: names


def _linear(estimator: Any) -> tuple[str, ...]:
    return ("coef_", "intercept_") if getattr(estimator, "fit_intercept", True) else ("coef_",)


def _linear_constants(estimator: Any) -> tuple[str, ...]:
    return () if getattr(estimator, "fit_intercept", True) else ("intercept_",)


def _flagged(**names: str) -> Callable[[Any], tuple[str, ...]]:
    """Return the attributes whose parameter is set."""
    return lambda estimator: tuple(n for n, flag in names.items() if getattr(estimator, flag))


def _everything(estimator: Any) -> tuple[str, ...]:
    return tuple(sorted(set(vars(estimator)) - set(estimator.get_params(deep=False))))


def _component_count(estimator: Any) -> None:
    estimator.n_components_ = len(estimator.components_)


def _scaler(estimator: Any) -> None:
    if getattr(estimator, "scale_", None) is not None:
        estimator.var_ = estimator.scale_**2
    for name in ("mean_", "var_", "scale_"):
        if not hasattr(estimator, name):
            setattr(estimator, name, None)


def _precision(estimator: Any) -> None:
    estimator.precision_ = np.linalg.pinv(estimator.covariance_, hermitian=True)
    if not estimator.store_precision:
        estimator.precision_ = None


def _columns(estimator: Any) -> tuple[str, ...]:
    return tuple(name for name in _everything(estimator) if name != "transformers_")


_LINEAR = Form(_linear, _linear_constants)
_LINEAR_MODELS = (
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "Lars",
    "LassoLars", "MultiTaskLasso", "MultiTaskElasticNet", "BayesianRidge", "ARDRegression", "HuberRegressor",
    "TheilSenRegressor", "QuantileRegressor", "SGDRegressor", "LogisticRegression", "SGDClassifier",
    "Perceptron",
)  # fmt: skip
_SCALES = {"scale_": above}
_CONSTANT = Form(constants=_everything)
FORMS: dict[str, Form] = {
    **dict.fromkeys((f"linear_model.{name}" for name in _LINEAR_MODELS), _LINEAR),
    **dict.fromkeys(("svm.LinearSVC", "svm.LinearSVR"), _LINEAR),
    **{
        f"linear_model.{name}": Form(_linear, _linear_constants, carried=("_base_loss",))
        for name in ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
    },
    **{
        f"linear_model.{name}": Form(_linear, lambda e: (*_linear_constants(e), "_label_binarizer"))
        for name in ("RidgeClassifier", "RidgeClassifierCV")
    },
    "naive_bayes.GaussianNB": Form(
        lambda e: ("theta_", "var_") if e.priors is not None else ("theta_", "var_", "class_prior_"),
        lambda e: () if e.priors is None else ("class_prior_",),
        valid={"var_": above, "class_prior_": _nearest(probabilities)},
    ),
    "naive_bayes.MultinomialNB": Form(
        _always("feature_log_prob_", "class_log_prior_"),
        valid={"feature_log_prob_": _nearest(_log_sum_to_one), "class_log_prior_": _nearest(_log_sum_to_one)},
    ),
    "naive_bayes.BernoulliNB": Form(
        _always("feature_log_prob_", "class_log_prior_"),
        valid={"feature_log_prob_": _nearest(_log_of_shares), "class_log_prior_": _nearest(_log_sum_to_one)},
    ),
    "preprocessing.StandardScaler": Form(
        _flagged(mean_="with_mean", scale_="with_std"), valid=_SCALES, derive=_scaler
    ),
    "preprocessing.MinMaxScaler": Form(_always("min_", "scale_"), valid=_SCALES),
    "preprocessing.MaxAbsScaler": Form(_always("scale_"), valid=_SCALES),
    "preprocessing.RobustScaler": Form(
        _flagged(center_="with_centering", scale_="with_scaling"), valid=_SCALES
    ),
    "impute.SimpleImputer": Form(
        lambda e: () if e.strategy == "constant" else ("statistics_",),
        lambda e: (
            "indicator_", "_fit_dtype", "_fill_dtype", *(["statistics_"] if e.strategy == "constant" else [])
        ),
    ),
    **dict.fromkeys(
        ["cluster.KMeans", "cluster.MiniBatchKMeans"],
        Form(_always("cluster_centers_"), carried=("_n_threads",), arrange=ordered),
    ),
    "decomposition.PCA": Form(
        _always("components_", "mean_", "explained_variance_"),
        valid={"components_": _nearest(orthonormal), "explained_variance_": above},
        arrange=signed,
        derive=_component_count,
    ),
    "decomposition.TruncatedSVD": Form(
        _always("components_"), valid={"components_": _nearest(orthonormal)}, arrange=signed
    ),
    "covariance.EmpiricalCovariance": Form(
        lambda e: ("covariance_",) if e.assume_centered else ("location_", "covariance_"),
        lambda e: ("location_",) if e.assume_centered else (),
        valid={"covariance_": _nearest(semidefinite)},
        derive=_precision,
    ),
    # These learn nothing that could differ between datasets.
    **dict.fromkeys(
        [
            "preprocessing.OneHotEncoder", "preprocessing.OrdinalEncoder", "preprocessing.Normalizer",
            "preprocessing.PolynomialFeatures", "preprocessing.FunctionTransformer",
            "preprocessing.Binarizer", "kernel_approximation.RBFSampler",
            "random_projection.GaussianRandomProjection",
        ],
        _CONSTANT,
    ),
    # These are made of other estimators.
    "pipeline.Pipeline": Form(inside="steps"),
    "pipeline.FeatureUnion": Form(inside="transformer_list"),
    "compose.ColumnTransformer": Form(constants=_columns, inside="transformers_"),
    "multiclass.OneVsRestClassifier": Form(constants=_always("label_binarizer_"), inside="estimators_"),
}  # fmt: skip
