"""The allow-list: what is released of each of scikit-learn's classes.

A class belongs on it only if everything that it predicts from is named, as learned numbers or as constants.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privatize.outputs.constraints import orthonormal, positive, probabilities, semidefinite

_FLOOR = 0.01  # no variance or scale is released below this share of its value on data from P
_TINY = 1e-30  # a variance that can be divided by, also in single precision


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
        How each released attribute is moved to where it is valid. It is given the value, that on data from P
        and the scale of the noise, if they are known.
    together : callable or None
        Moves released attributes to where they are valid together. It is given the new estimator, the values
        on data from P, and the scales of the noise where they are known.
    floors : tuple of str
        Names of the attributes whose values on data from P, or whose noise, `together` needs.
    arrange : callable or None
        Removes a symmetry: makes one of several equivalent solutions the only one. It is given the released
        values and the estimator.
    inside : str
        Name of the list of the estimators inside it, or of tuples of a name, an estimator and more.
    derive : callable or None
        Sets attributes that follow from the released numbers.
    """

    attributes: Callable[[Any], tuple[str, ...]] = lambda _: ()
    constants: Callable[[Any], tuple[str, ...]] = lambda _: ()
    carried: tuple[str, ...] = ()
    valid: Mapping[str, Callable[[Any, Any, Any], Any]] = field(default_factory=dict)
    together: Callable[[Any, Mapping[str, Any], Mapping[str, Any]], None] | None = None
    floors: tuple[str, ...] = ()
    arrange: Callable[[dict[str, Any], Any], dict[str, Any]] | None = None
    inside: str = ""
    derive: Callable[[Any], None] | None = None


# -- symmetries --


def signed(values: dict[str, Any], _: Any = None) -> dict[str, Any]:
    """Give each component the sign that makes its largest entry positive: both signs are equally good.

    Components are the rows of ``components_``, and the columns of ``scalings_``.

    Examples
    --------
    >>> signed({"components_": np.array([[0.6, -0.8], [0.8, 0.6]])})["components_"]
    array([[-0.6,  0.8],
           [ 0.8,  0.6]])
    """
    return values | {
        name: _flipped(np.asarray(values[name]), axis)
        for name, axis in (("components_", 1), ("scalings_", 0))
        if name in values
    }


def _flipped(matrix: Any, axis: int) -> Any:
    largest = np.take_along_axis(matrix, np.expand_dims(np.abs(matrix).argmax(axis=axis), axis), axis=axis)
    return matrix * np.where(largest < 0, -1, 1).astype(matrix.dtype)


def ordered(values: dict[str, Any], _: Any = None) -> dict[str, Any]:
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
    return values | {"cluster_centers_": rows[_ranks(rows)]}


def _ranks(rows: Any) -> Any:
    return np.lexsort(rows.T[::-1])


def sorted_mixture(values: dict[str, Any], estimator: Any) -> dict[str, Any]:
    """Sort the components of a mixture by their means, as `ordered` does with clusters."""
    order = _ranks(np.asarray(estimator.means_))
    each = {"weights_", "means_"}
    if estimator.covariance_type != "tied":
        each |= {"covariances_", "precisions_", "precisions_cholesky_"}
    return {name: np.asarray(value)[order] if name in each else value for name, value in values.items()}


# -- where released numbers are valid --


def above(value: Any, seen: Any, noise: Any = None) -> Any:
    """Raise a variance or scale that noise made too small.

    What would be divided by it would explode. It is at least a share of its value on data from P; and if it
    cannot be told from zero, because the noise is as large, at least that value or twice the noise's scale,
    whichever is smaller.
    """
    usual = np.abs(np.asarray(seen, dtype=np.float64))
    return _cast(positive(value, usual * least_share(usual, noise)), value)


def least_share(usual: Any, noise: Any) -> Any:
    """Return the share of a positive number, as it was on data from P, that a released one must reach.

    Examples
    --------
    >>> least_share(np.array([1.0, 1.0, 1.0]), np.array([1e-6, 0.1, 30.0]))
    array([0.01, 0.2 , 1.  ])
    """
    if noise is None:
        return _FLOOR
    with np.errstate(all="ignore"):  # zero has no shares, but all of them are zero
        share = np.where(usual > 0, 2 * np.asarray(noise) / usual, 1.0)
    return np.minimum(np.fmax(share, _FLOOR), 1.0)


def _nearest(valid: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda value, *_: _cast(valid(value), value)


def _log_sum_to_one(value: Any) -> Any:
    below = value - np.max(value, axis=-1, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=-1, keepdims=True))


def _log_of_shares(value: Any) -> Any:
    return np.clip(value, -50.0, -1e-6)


def chances(value: Any, seen: Any, noise: Any = None) -> Any:
    """Return probabilities, each with a floor as in `above`: no class vanishes because of noise."""
    found = above(probabilities(value), seen, noise)
    return _cast(found / found.sum(), value)


def definite(value: Any, seen: Any, noise: Any = None) -> Any:
    """Return covariance matrices whose variances, in every direction, have a floor as in `above`."""
    usual = np.asarray(seen, dtype=np.float64)
    values, vectors = np.linalg.eigh(usual)
    spread = np.sqrt(np.maximum(values, 1e-12 * values[..., -1:]))
    root = vectors * spread[..., None, :]
    inverse = (vectors / spread[..., None, :]).swapaxes(-1, -2)
    whitened = inverse @ np.asarray(value, dtype=np.float64) @ inverse.swapaxes(-1, -2)
    shares = _FLOOR if noise is None else least_share(_diagonal(usual), _diagonal(noise)).max(axis=-1)
    floor = np.eye(root.shape[-1]) * np.asarray(shares)[..., None, None]
    found = root @ (semidefinite(whitened - floor) + floor) @ root.swapaxes(-1, -2)
    return _cast((found + found.swapaxes(-1, -2)) / 2, value)


def _diagonal(matrices: Any) -> Any:
    return np.diagonal(matrices, axis1=-2, axis2=-1)


FLOORED = (above, chances)  # what needs to know the values on data from P


def _mixture_spreads(estimator: Any, seen: Mapping[str, Any], noise: Mapping[str, Any]) -> None:
    """Make the covariances of a mixture valid, whatever their kind."""
    valid = definite if estimator.covariance_type in ("full", "tied") else above
    name = "covariances_"
    estimator.covariances_ = valid(estimator.covariances_, seen[name], noise.get(name))


def _around_noisy_means(estimator: Any, _: Mapping[str, Any], noise: Mapping[str, Any]) -> None:
    """Add the variance of the noise in a mean to that of the records around it.

    A record is that far from the released mean. Without it, a class whose variances are small would lose
    every record as soon as its means are wrong.
    """
    if "theta_" in noise:
        estimator.var_ = _cast(estimator.var_ + 2 * noise["theta_"] ** 2, estimator.var_)


def _above_the_rest(estimator: Any, *_: Any) -> None:
    """Let no component explain less variance than each of those that were left out."""
    least = estimator.noise_variance_ * (1 + 1e-6)
    estimator.explained_variance_ = _cast(
        positive(estimator.explained_variance_, least), estimator.explained_variance_
    )


def _cast(found: Any, value: Any) -> Any:
    return np.asarray(found).astype(np.asarray(value).dtype, order="C")[()]


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


def _components(estimator: Any) -> tuple[str, ...]:
    """Return what a principal component analysis releases."""
    usual = ("components_", "mean_", "explained_variance_")
    return (*usual, "noise_variance_") if _leaves_some_out(estimator) else usual


def _components_constants(estimator: Any) -> tuple[str, ...]:
    return () if _leaves_some_out(estimator) else ("noise_variance_",)


def _leaves_some_out(estimator: Any) -> bool:
    """Tell whether there are fewer components than columns: else the variance of the others is zero."""
    return len(getattr(estimator, "components_", ())) < getattr(estimator, "n_features_in_", 0)


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


def _precisions(estimator: Any) -> None:
    """Set what a mixture predicts from: roots of the inverses of its covariances.

    A Cholesky decomposition could fail on what noise has made nearly singular. This cannot.
    """
    spread = np.asarray(estimator.covariances_, dtype=np.float64)
    if estimator.covariance_type in ("full", "tied"):
        values, vectors = np.linalg.eigh((spread + spread.swapaxes(-1, -2)) / 2)
        values = np.maximum(values, np.maximum(1e-14 * values[..., -1:], _TINY))
        roots = vectors / np.sqrt(values)[..., None, :]
        # A triangular root of the same product: that of scikit-learn, whose diagonal gives the determinant.
        lower = np.linalg.qr(roots[..., ::-1, :].swapaxes(-1, -2))[1].swapaxes(-1, -2)
        upper = lower[..., ::-1, ::-1]
        found = upper * np.where(_diagonal(upper) < 0, -1, 1)[..., None, :]
        precisions = found @ found.swapaxes(-1, -2)
    else:
        found = 1 / np.sqrt(np.maximum(spread, _TINY))
        precisions = found**2
    estimator.precisions_cholesky_ = _cast(found, estimator.covariances_)
    estimator.precisions_ = _cast(precisions, estimator.covariances_)


def _columns(estimator: Any) -> tuple[str, ...]:
    return tuple(name for name in _everything(estimator) if name != "transformers_")


_LINEAR = Form(_linear, _linear_constants)
_LINEAR_MODELS = (
    "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "Lars",
    "LassoLars", "MultiTaskLasso", "MultiTaskElasticNet", "BayesianRidge", "ARDRegression", "HuberRegressor",
    "TheilSenRegressor", "QuantileRegressor", "SGDRegressor", "LogisticRegression", "SGDClassifier",
    "Perceptron", "LogisticRegressionCV", "LarsCV", "LassoLarsCV", "LassoLarsIC", "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV", "PassiveAggressiveClassifier", "PassiveAggressiveRegressor",
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
    "linear_model.SGDOneClassSVM": Form(
        lambda e: ("coef_", "offset_") if e.fit_intercept else ("coef_",),
        lambda e: () if e.fit_intercept else ("offset_",),
    ),
    # Their transform() needs more, which most people do not: fitted() can name it.
    "discriminant_analysis.LinearDiscriminantAnalysis": Form(
        _always("coef_", "intercept_"), _always("_max_components"), arrange=signed
    ),
    "cross_decomposition.PLSRegression": Form(
        _always("_x_mean", "coef_", "intercept_"), _always("_predict_1d")
    ),
    "naive_bayes.GaussianNB": Form(
        lambda e: ("theta_", "var_") if e.priors is not None else ("theta_", "var_", "class_prior_"),
        lambda e: () if e.priors is None else ("class_prior_",),
        valid={"var_": above, "class_prior_": chances},
        together=_around_noisy_means,
        floors=("theta_",),
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
    "mixture.GaussianMixture": Form(
        _always("weights_", "means_", "covariances_"),
        valid={"weights_": chances},
        together=_mixture_spreads,
        floors=("covariances_",),
        arrange=sorted_mixture,
        derive=_precisions,
    ),
    **dict.fromkeys(
        ["decomposition.PCA", "decomposition.IncrementalPCA"],
        Form(
            _components,
            _components_constants,
            valid={
                "components_": _nearest(orthonormal), "explained_variance_": above, "noise_variance_": above
            },
            together=_above_the_rest,
            arrange=signed,
            derive=_component_count,
        ),
    ),
    "decomposition.TruncatedSVD": Form(
        _always("components_"), valid={"components_": _nearest(orthonormal)}, arrange=signed
    ),
    **dict.fromkeys(
        [
            "covariance.EmpiricalCovariance", "covariance.ShrunkCovariance", "covariance.LedoitWolf",
            "covariance.OAS",
        ],
        Form(
            lambda e: ("covariance_",) if e.assume_centered else ("location_", "covariance_"),
            lambda e: ("location_",) if e.assume_centered else (),
            valid={"covariance_": _nearest(semidefinite)},
            derive=_precision,
        ),
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
