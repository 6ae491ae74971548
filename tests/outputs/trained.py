"""Estimators of every class in the allow-list, and data to train them on."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

from sklearn import (
    cluster,
    compose,
    covariance,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    impute,
    kernel_approximation,
    linear_model,
    mixture,
    multiclass,
    naive_bayes,
    pipeline,
    preprocessing,
    random_projection,
    svm,
)
from sklearn.base import BaseEstimator, ClassifierMixin

from privatize import privatize, samplers
from privatize.errors import (
    PrivatizeError,
)

HUGE = 1e5
N = 40
LABELLED = samplers.blobs([[0, 0, 1], [1, 2, 0]], 0.7, labels=[-1, 1], low=-3, high=4)
COUNTS = samplers.blobs([[1, 2, 3], [3, 2, 1]], 0.7, labels=[-1, 1], low=0.0, high=4)
X_ONLY = samplers.uniform(0, 3, size=3)
CODES = samplers.integers(0, 2, size=3)


def _target(X, rng):
    return X @ [1.0, 2.0, 0.5] + rng.uniform(0.1, 1, len(X))


def _targets(X, rng):
    return np.stack([_target(X, rng), _target(X, rng)], axis=1)


REGRESSION = samplers.labelled(X_ONLY, _target, support=(0, 12))
SEVERAL = samplers.labelled(X_ONLY, _targets, support=(0, 12))


def private(sampler, **more):
    """Decorate with few pairs, a fixed seed and no store."""
    settings = {
        "epsilon": HUGE,
        "gamma": 0.3,
        "samples": "least",
        "workers": "inline",
        "store": None,
        "seed": 1,
        "min_sensitivity": 1e-9,
    }
    pair = isinstance(sampler.draw(2, np.random.default_rng(0)), tuple)
    return privatize(**(settings | {"sampler": sampler} | ({"data": ("X", "y")} if pair else {}) | more))


def dataset(sampler, n=N):
    """Return data as arguments of such a function."""
    drawn = sampler.draw(n, np.random.default_rng(3))
    return drawn if isinstance(drawn, tuple) else (drawn,)


LINEAR = {"coef_", "intercept_", "n_features_in_"}
CLASSIFIER = LINEAR | {"classes_"}
LOG = {"feature_log_prob_", "class_log_prior_", "classes_", "n_features_in_"}
CLUSTERS = {"cluster_centers_", "n_features_in_", "_n_features_out", "_n_threads"}
FIXED = {"max_iter": 5, "tol": None, "random_state": 0}
COVARIANCE = {"location_", "covariance_", "precision_", "n_features_in_"}
COMPONENTS = {
    "components_",
    "mean_",
    "explained_variance_",
    "noise_variance_",
    "n_components_",
    "n_features_in_",
}
MIXTURE = {"weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "n_features_in_"}
# scikit-learn warns that it will remove these, and versions after 1.9 do not have them.
PASSIVE = {
    f"linear_model.{name}": (name, sampler, expected)
    for name, sampler, expected in (
        ("PassiveAggressiveClassifier", LABELLED, CLASSIFIER),
        ("PassiveAggressiveRegressor", REGRESSION, LINEAR),
    )
    if hasattr(linear_model, name)
}


def _passive(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return getattr(linear_model, name)(**FIXED)


def _choosing():
    """Return a model that chooses C, without what scikit-learn warns about since 1.8."""
    made = linear_model.LogisticRegressionCV(Cs=2, cv=2)
    new = {"l1_ratios": (0,), "use_legacy_attributes": False, "scoring": "accuracy"}
    return made.set_params(**({} if "use_legacy_attributes" not in made.get_params() else new))


CASES = {
    **{name: (_passive(kind), *rest) for name, (kind, *rest) in PASSIVE.items()},
    "linear_model.LogisticRegressionCV": (_choosing(), LABELLED, CLASSIFIER),
    "linear_model.LarsCV": (linear_model.LarsCV(cv=2), REGRESSION, LINEAR),
    "linear_model.LassoLarsCV": (linear_model.LassoLarsCV(cv=2), REGRESSION, LINEAR),
    "linear_model.LassoLarsIC": (linear_model.LassoLarsIC(), REGRESSION, LINEAR),
    "linear_model.OrthogonalMatchingPursuit": (
        linear_model.OrthogonalMatchingPursuit(n_nonzero_coefs=2),
        REGRESSION,
        LINEAR,
    ),
    "linear_model.OrthogonalMatchingPursuitCV": (
        linear_model.OrthogonalMatchingPursuitCV(cv=2),
        REGRESSION,
        LINEAR,
    ),
    "linear_model.SGDOneClassSVM": (
        linear_model.SGDOneClassSVM(**FIXED),
        X_ONLY,
        {"coef_", "offset_", "n_features_in_"},
    ),
    "discriminant_analysis.LinearDiscriminantAnalysis": (
        discriminant_analysis.LinearDiscriminantAnalysis(),
        LABELLED,
        CLASSIFIER | {"_max_components", "_n_features_out"},
    ),
    "cross_decomposition.PLSRegression": (
        cross_decomposition.PLSRegression(2),
        REGRESSION,
        LINEAR | {"_x_mean", "_predict_1d", "_n_features_out"},
    ),
    "mixture.GaussianMixture": (mixture.GaussianMixture(2, reg_covar=0.1, random_state=0), X_ONLY, MIXTURE),
    "decomposition.IncrementalPCA": (decomposition.IncrementalPCA(2), X_ONLY, COMPONENTS),
    "covariance.ShrunkCovariance": (covariance.ShrunkCovariance(), X_ONLY, COVARIANCE),
    "covariance.LedoitWolf": (covariance.LedoitWolf(), X_ONLY, COVARIANCE),
    "covariance.OAS": (covariance.OAS(), X_ONLY, COVARIANCE),
    "linear_model.LinearRegression": (linear_model.LinearRegression(), REGRESSION, LINEAR),
    "linear_model.Ridge": (linear_model.Ridge(fit_intercept=False), REGRESSION, LINEAR),
    "linear_model.RidgeCV": (linear_model.RidgeCV(), REGRESSION, LINEAR),
    "linear_model.Lasso": (linear_model.Lasso(0.01), REGRESSION, LINEAR),
    "linear_model.LassoCV": (linear_model.LassoCV(alphas=[0.1, 0.01], cv=2), REGRESSION, LINEAR),
    "linear_model.ElasticNet": (linear_model.ElasticNet(0.01), REGRESSION, LINEAR),
    "linear_model.ElasticNetCV": (linear_model.ElasticNetCV(alphas=[0.1, 0.01], cv=2), REGRESSION, LINEAR),
    "linear_model.Lars": (linear_model.Lars(), REGRESSION, LINEAR),
    "linear_model.LassoLars": (linear_model.LassoLars(0.01), REGRESSION, LINEAR),
    "linear_model.MultiTaskLasso": (linear_model.MultiTaskLasso(0.01), SEVERAL, LINEAR),
    "linear_model.MultiTaskElasticNet": (linear_model.MultiTaskElasticNet(0.01), SEVERAL, LINEAR),
    "linear_model.BayesianRidge": (linear_model.BayesianRidge(), REGRESSION, LINEAR),
    "linear_model.ARDRegression": (linear_model.ARDRegression(), REGRESSION, LINEAR),
    "linear_model.HuberRegressor": (linear_model.HuberRegressor(max_iter=1000), REGRESSION, LINEAR),
    "linear_model.TheilSenRegressor": (
        linear_model.TheilSenRegressor(random_state=0, max_subpopulation=50),
        REGRESSION,
        LINEAR,
    ),
    "linear_model.QuantileRegressor": (linear_model.QuantileRegressor(alpha=0.01), REGRESSION, LINEAR),
    "linear_model.SGDRegressor": (linear_model.SGDRegressor(**FIXED), REGRESSION, LINEAR),
    "linear_model.PoissonRegressor": (linear_model.PoissonRegressor(), REGRESSION, LINEAR | {"_base_loss"}),
    "linear_model.GammaRegressor": (linear_model.GammaRegressor(), REGRESSION, LINEAR | {"_base_loss"}),
    "linear_model.TweedieRegressor": (
        linear_model.TweedieRegressor(power=1.5),
        REGRESSION,
        LINEAR | {"_base_loss"},
    ),
    "linear_model.LogisticRegression": (linear_model.LogisticRegression(), LABELLED, CLASSIFIER),
    "linear_model.SGDClassifier": (
        linear_model.SGDClassifier(loss="log_loss", **FIXED),
        LABELLED,
        CLASSIFIER,
    ),
    "linear_model.Perceptron": (linear_model.Perceptron(**FIXED), LABELLED, CLASSIFIER),
    "linear_model.RidgeClassifier": (
        linear_model.RidgeClassifier(),
        LABELLED,
        CLASSIFIER | {"_label_binarizer"},
    ),
    "linear_model.RidgeClassifierCV": (
        linear_model.RidgeClassifierCV(),
        LABELLED,
        CLASSIFIER | {"_label_binarizer"},
    ),
    "svm.LinearSVC": (svm.LinearSVC(random_state=0), LABELLED, CLASSIFIER),
    "svm.LinearSVR": (svm.LinearSVR(max_iter=100_000, random_state=0), REGRESSION, LINEAR),
    "naive_bayes.GaussianNB": (
        naive_bayes.GaussianNB(),
        LABELLED,
        {"theta_", "var_", "class_prior_", "classes_", "n_features_in_"},
    ),
    "naive_bayes.MultinomialNB": (naive_bayes.MultinomialNB(), COUNTS, LOG),
    "naive_bayes.BernoulliNB": (naive_bayes.BernoulliNB(binarize=2.0), COUNTS, LOG),
    "preprocessing.StandardScaler": (
        preprocessing.StandardScaler(),
        X_ONLY,
        {"mean_", "scale_", "var_", "n_features_in_"},
    ),
    "preprocessing.MinMaxScaler": (
        preprocessing.MinMaxScaler(),
        X_ONLY,
        {"min_", "scale_", "n_features_in_"},
    ),
    "preprocessing.MaxAbsScaler": (preprocessing.MaxAbsScaler(), X_ONLY, {"scale_", "n_features_in_"}),
    "preprocessing.RobustScaler": (
        preprocessing.RobustScaler(),
        X_ONLY,
        {"center_", "scale_", "n_features_in_"},
    ),
    "impute.SimpleImputer": (
        impute.SimpleImputer(),
        X_ONLY,
        {"statistics_", "indicator_", "_fit_dtype", "_fill_dtype", "n_features_in_"},
    ),
    "cluster.KMeans": (cluster.KMeans(2, n_init=1, random_state=0), X_ONLY, CLUSTERS),
    "cluster.MiniBatchKMeans": (cluster.MiniBatchKMeans(2, n_init=1, random_state=0), X_ONLY, CLUSTERS),
    "decomposition.PCA": (decomposition.PCA(2, whiten=True), X_ONLY, COMPONENTS),
    "decomposition.TruncatedSVD": (
        decomposition.TruncatedSVD(2, random_state=0),
        X_ONLY,
        {"components_", "n_features_in_"},
    ),
    "covariance.EmpiricalCovariance": (
        covariance.EmpiricalCovariance(),
        X_ONLY,
        COVARIANCE,
    ),
    "multiclass.OneVsRestClassifier": (
        multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
        LABELLED,
        {"estimators_", "label_binarizer_", "classes_", "n_features_in_"},
    ),
    "pipeline.Pipeline": (
        pipeline.make_pipeline(preprocessing.StandardScaler(), "passthrough", svm.LinearSVC(random_state=0)),
        LABELLED,
        set(),
    ),
    "pipeline.FeatureUnion": (
        pipeline.make_union(preprocessing.StandardScaler(), decomposition.PCA(1)),
        X_ONLY,
        set(),
    ),
    "compose.ColumnTransformer": (
        compose.ColumnTransformer([("a", preprocessing.StandardScaler(), [0, 1])], remainder="passthrough"),
        X_ONLY,
        {
            "transformers_",
            "_columns",
            "_n_features",
            "_remainder",
            "_transformer_to_input_indices",
            "output_indices_",
            "sparse_output_",
            "n_features_in_",
        },
    ),
}

# These learn nothing that could differ between datasets, so a step follows that does learn.
LEARN_NOTHING = {
    "preprocessing.OneHotEncoder": (
        preprocessing.OneHotEncoder(categories=[[0, 1, 2]] * 3, sparse_output=False),
        CODES,
    ),
    "preprocessing.OrdinalEncoder": (preprocessing.OrdinalEncoder(categories=[[0, 1, 2]] * 3), CODES),
    "preprocessing.Normalizer": (preprocessing.Normalizer(), X_ONLY),
    "preprocessing.PolynomialFeatures": (preprocessing.PolynomialFeatures(), X_ONLY),
    "preprocessing.FunctionTransformer": (preprocessing.FunctionTransformer(np.log1p), X_ONLY),
    "preprocessing.Binarizer": (preprocessing.Binarizer(threshold=1.5), X_ONLY),
    "kernel_approximation.RBFSampler": (
        kernel_approximation.RBFSampler(n_components=4, gamma=1.0, random_state=0),
        X_ONLY,
    ),
    "random_projection.GaussianRandomProjection": (
        random_projection.GaussianRandomProjection(2, random_state=0),
        X_ONLY,
    ),
}


def refused(function, sampler=LABELLED, **more):
    """Return the message of the refusal."""
    with pytest.raises(PrivatizeError) as caught:
        private(sampler, **more)(function)(*dataset(sampler))
    return caught.value


class Boosted(BaseEstimator, ClassifierMixin):
    """A model of another library, such as one for boosted trees."""

    def fit(self, X, y):
        self.classes_, self.coef_ = np.unique(y), X.mean(axis=0)
        return self


class Own(svm.LinearSVC):
    """A user's own subclass, which may have learned anything."""

    def fit(self, X, y):
        self.seen_ = X
        return super().fit(X, y)
