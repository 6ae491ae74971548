"""What is released of scikit-learn's classes is complete, and the same for equivalent models."""

import copy
import math
import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

from sklearn import (
    cluster,
    covariance,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    linear_model,
    mixture,
    naive_bayes,
)
from sklearn.base import clone

from privatize import samplers
from privatize.outputs import allowlist, models
from privatize.outputs.describe import describe
from privatize.sklearn import PrivateEstimator, fitted
from tests.cases import for_each
from tests.outputs.trained import (
    CASES,
    LABELLED,
    LEARN_NOTHING,
    PASSIVE,
    REGRESSION,
    X_ONLY,
    dataset,
    private,
)


def test_every_class_of_the_list_has_a_case():
    """A class on the allow-list could be untested."""
    removed = {f"linear_model.PassiveAggressive{kind}" for kind in ("Classifier", "Regressor")} - set(PASSIVE)
    assert sorted({*CASES, *LEARN_NOTHING} | removed) == models.known()


def test_signs_that_flip_at_random():
    """A component is as good as its opposite: a solver that flips signs gives the same answer and gap."""
    flips = iter(np.random.default_rng(0).choice([-1.0, 1.0], size=100_000))

    def flipping(X):
        model = decomposition.PCA(2).fit(X)
        model.components_ = model.components_ * [[next(flips)], [next(flips)]]
        return model

    def steady(X):
        return decomposition.PCA(2).fit(X)

    (X,) = dataset(X_ONLY)
    tree = describe(steady(X))
    vectors = {tree.flatten(flipping(X)).tobytes() for _ in range(20)}
    assert vectors == {tree.flatten(steady(X)).tobytes()}
    rows = allowlist.signed({"components_": np.array([[0.6, -0.8, 0.0], [-0.1, 0.3, 0.2]])})["components_"]
    assert rows.tolist() == [[-0.6, 0.8, 0.0], [-0.1, 0.3, 0.2]]
    assert allowlist.signed({}) == {} and allowlist.ordered({}) == {}


def test_clusters_in_any_order():
    """The order in which clusters are found is not part of the answer."""
    sampler = samplers.blobs([[0, 0], [4, 1], [0, 5]], 0.3)
    X, _ = sampler.draw(60, np.random.default_rng(0))
    tree, vectors = None, set()
    for seed in range(6):
        model = cluster.KMeans(3, n_init=5, random_state=0).fit(X)
        model.cluster_centers_ = model.cluster_centers_[np.random.default_rng(seed).permutation(3)]
        tree = tree or describe(model)
        vectors.add(tree.flatten(model).tobytes())
    assert len(vectors) == 1
    centers = np.frombuffer(vectors.pop()).reshape(3, 2)
    assert (np.diff(centers[:, 0]) > 0).all()
    ties = np.array([[1.0, 2.0], [1.0, -1.0], [0.0, 9.0]])
    assert allowlist.ordered({"cluster_centers_": ties})["cluster_centers_"].tolist() == [
        [0, 9],
        [1, -1],
        [1, 2],
    ]


KINDS = ["full", "tied", "diag", "spherical"]


@for_each("kind", KINDS)
@for_each("constrain", [True, False])
@for_each("epsilon", [1e5, 1e-6])
def test_mixtures(kind, constrain, epsilon):
    """A mixture could not be used: noise leaves no valid covariances, or it predicts from others."""
    (X,) = dataset(X_ONLY)
    estimator = mixture.GaussianMixture(3, covariance_type=kind, reg_covar=0.1, random_state=0)
    f = private(X_ONLY, epsilon=epsilon)(lambda X: fitted(clone(estimator).fit(X), constrain=constrain))
    model = f(X)
    with np.errstate(**({} if constrain else {"all": "ignore"})):  # a weight may be negative
        assert model.score_samples(X).shape == (40,) and set(model.predict(X)) <= {0, 1, 2}
        assert math.isfinite(model.score(X)) or not constrain
    if epsilon > 1:
        raw = clone(estimator).fit(X)
        assert np.allclose(model.score_samples(X), raw.score_samples(X), atol=0.05)
        assert (np.diff(model.means_[:, 0]) > -0.01).all()
    if constrain:
        expect = copy.deepcopy(model)
        expect._set_parameters(
            (model.weights_, model.means_, model.covariances_, _cholesky(model.covariances_, kind))
        )
        assert np.allclose(model.precisions_cholesky_, expect.precisions_cholesky_, rtol=1e-3, atol=1e-9)
        assert np.allclose(model.precisions_, expect.precisions_, rtol=1e-3, atol=1e-9)
        assert math.isclose(model.weights_.sum(), 1) and (model.weights_ > 0).all()
        assert model.sample(5)[0].shape == (5, 3)


def _cholesky(covariances, kind):
    """Return the roots of precisions as scikit-learn computes them."""
    if kind in ("full", "tied"):
        return np.linalg.inv(np.linalg.cholesky(covariances)).swapaxes(-1, -2)
    return 1 / np.sqrt(covariances)


@for_each("kind", KINDS)
def test_components_of_a_mixture_in_any_order(kind):
    """Neighbours whose components are found in another order would seem far apart, and get much noise."""
    (X,) = dataset(X_ONLY)
    model = mixture.GaussianMixture(3, covariance_type=kind, reg_covar=0.1, random_state=0).fit(X)
    tree, vectors = describe(model), set()
    for order in ([0, 1, 2], [2, 0, 1], [1, 0, 2]):
        other = copy.deepcopy(model)
        for name in ("weights_", "means_", *([] if kind == "tied" else ["covariances_"])):
            setattr(other, name, getattr(model, name)[order])
        vectors.add(tree.flatten(other).tobytes())
    assert len(vectors) == 1


@for_each("make", [decomposition.PCA, decomposition.IncrementalPCA])
@for_each("options", [{}, {"whiten": True}, {"n_components": 3}])
def test_the_covariance_of_components(make, options):
    """The released components could not say what covariance they stand for, nor how likely a record is."""
    (X,) = dataset(X_ONLY)
    estimator = make(**({"n_components": 2} | options))
    model, raw = private(X_ONLY)(lambda X: clone(estimator).fit(X))(X), clone(estimator).fit(X)
    assert np.allclose(model.get_covariance(), raw.get_covariance(), atol=0.01)
    assert np.allclose(model.get_precision(), raw.get_precision(), atol=0.05)
    assert ("noise_variance_" in models.take_apart(raw).names) == (options != {"n_components": 3})
    if make is decomposition.PCA:
        assert abs(model.score(X) - raw.score(X)) < 0.05
        noisy = private(X_ONLY, epsilon=0.01)(lambda X: clone(estimator).fit(X))(X)
        assert np.isfinite(noisy.score_samples(X)).all()


def test_transforms_that_fitted_names():
    """Whoever needs the transform of a discriminant or of partial least squares could not have it."""
    X, y = dataset(LABELLED)
    names = ["coef_", "intercept_", "scalings_", "xbar_"]
    lda = discriminant_analysis.LinearDiscriminantAnalysis()
    raw = clone(lda).fit(X, y)
    model = private(LABELLED)(lambda X, y: fitted(clone(lda).fit(X, y), names))(X, y)
    sign = np.sign(raw.scalings_[np.abs(raw.scalings_).argmax(), 0])
    assert np.allclose(model.transform(X), sign * raw.transform(X), atol=0.05)
    X, y = dataset(REGRESSION)
    names = ["_x_mean", "coef_", "intercept_", "_x_std", "x_rotations_", "x_loadings_"]
    pls = cross_decomposition.PLSRegression(2)
    raw = clone(pls).fit(X, y)
    model = private(REGRESSION)(lambda X, y: fitted(clone(pls).fit(X, y), names))(X, y)
    assert np.allclose(model.transform(X), raw.transform(X), atol=0.05)
    assert np.allclose(
        model.inverse_transform(raw.transform(X)), raw.inverse_transform(raw.transform(X)), atol=0.1
    )


@for_each(
    ("estimator", "sampler"),
    [
        (discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), LABELLED),
        (cross_decomposition.PLSRegression(1, scale=False), REGRESSION),
        (linear_model.SGDOneClassSVM(fit_intercept=False, random_state=0), X_ONLY),
        (mixture.GaussianMixture(2, reg_covar=0.1, random_state=0), X_ONLY),
        (covariance.LedoitWolf(assume_centered=True), X_ONLY),
    ],
)
def test_as_a_private_estimator(estimator, sampler):
    """A learner would work in a function of one's own, but not as an estimator of scikit-learn."""
    data = dataset(sampler)
    settings = {
        "epsilon": 1e5,
        "gamma": 0.3,
        "samples": "least",
        "workers": "inline",
        "store": None,
        "seed": 1,
    }
    model = PrivateEstimator(estimator, sampler=sampler, min_sensitivity=1e-9, **settings).fit(*data)
    raw = clone(estimator).fit(*data)
    for released in (model.estimator_, pickle.loads(pickle.dumps(model)).estimator_):
        methods = ("decision_function", "score_samples", "mahalanobis", "predict")
        method = next(each for each in methods if hasattr(raw, each))
        assert hasattr(model, method) or method == "mahalanobis"
        assert np.allclose(getattr(released, method)(data[0]), getattr(raw, method)(data[0]), atol=0.05)
    assert not hasattr(clone(model), "estimator_")


# -- where noise is as large as what is released --


def test_a_variance_that_noise_hides():
    """A variance that noise made almost zero would outvote all other columns of a naive Bayes classifier."""
    found = allowlist.above(
        np.array([-3.0, 0.5, 0.02]), np.array([1.0, 1.0, 1.0]), np.array([5.0, 0.1, 1e-6])
    )
    assert found.tolist() == [1.0, 0.5, 0.02]
    assert allowlist.above(np.array([-3.0]), np.array([2.0])).tolist() == [0.02]
    assert allowlist.above(np.array([-3.0]), np.array([2.0]), np.array([np.nan])).tolist() == [0.02]
    assert allowlist.above(np.array([-3.0]), np.array([0.0]), np.array([1.0])).tolist() == [0.0]


def test_no_class_vanishes():
    """A class whose share noise made zero could never be predicted, however clear its records are."""
    found = allowlist.chances(np.array([1.4, -0.4]), np.array([0.5, 0.5]), np.array([0.1, 0.1]))
    assert np.allclose(found, [1 / 1.2, 0.2 / 1.2])
    assert np.allclose(
        allowlist.chances(np.array([1.4, -0.4]), np.array([0.5, 0.5])), [1 / 1.005, 0.005 / 1.005]
    )


def test_matrices_have_a_floor_in_every_direction():
    """A direction in which noise left no variance would make every record infinitely unlikely."""
    seen = np.array([[4.0, 1.0], [1.0, 1.0]])
    assert np.allclose(allowlist.definite(-seen, seen), seen / 100)
    assert np.allclose(allowlist.definite(-seen, seen, np.full((2, 2), 0.1)), seen * 0.2)
    assert np.allclose(allowlist.definite(seen * 1.5, seen, np.full((2, 2), 9.0)), seen * 1.5)


def test_noise_in_means_counts_as_spread():
    """Where noise moved the means, the class that varies least would lose all records, majority or not."""
    f = private(LABELLED, epsilon=1, min_sensitivity=1.0)(lambda X, y: naive_bayes.GaussianNB().fit(X, y))
    release = f.release(*dataset(LABELLED))
    scale = release.scale["theta_"]
    assert (release.value.var_ > 2 * scale**2).all()
    raw = private(LABELLED, epsilon=1, min_sensitivity=1.0)(
        lambda X, y: fitted(naive_bayes.GaussianNB().fit(X, y), constrain=False)
    )
    assert any((raw(*dataset(LABELLED)).var_ < 2 * scale**2).any() for _ in range(20))


def test_naive_bayes_with_much_noise():
    """At a small epsilon the classifier would be no better than a guess, though its means still tell."""
    P = samplers.blobs([[0.3] * 6, [0.7] * 6], 0.15, low=0, high=1)
    X, y = P.draw(1500, np.random.default_rng(1))
    f = private(P, epsilon=0.3, gamma=0.1, samples=100)(lambda X, y: naive_bayes.GaussianNB().fit(X, y))
    assert np.mean([f(X, y).score(X, y) for _ in range(20)]) > 0.9
