"""What is released of scikit-learn's classes is complete, and the same for equivalent models."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

from sklearn import (
    cluster,
    decomposition,
)

from privatize import samplers
from privatize.outputs import allowlist, models
from privatize.outputs.describe import describe
from tests.outputs.trained import CASES, LEARN_NOTHING, X_ONLY, dataset


def test_every_class_of_the_list_has_a_case():
    """A class on the allow-list could be untested."""
    assert sorted([*CASES, *LEARN_NOTHING]) == models.known()


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
