"""PrivateEstimator obeys scikit-learn's conventions: its own checks, pipelines, cloning, searches.

Noise is never seeded. With the largest epsilon it is so small that predictions are right; each test fails
by chance with probability 1e-6.
"""

import logging
import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from privatize import Budget, samplers
from privatize.sklearn import PrivateEstimator
from tests.function.fitted import HUGE, QUICK, P, X, Y, counted

# -- scikit-learn's own checks --


def _classifier(columns, *labels):
    X = samplers.uniform(-3, 3, size=columns)
    return PrivateEstimator(
        LogisticRegression(),
        sampler=samplers.labelled(X, samplers.choice(list(labels))),
        domain="as-is",
        **QUICK,
    )


def _regressor(columns, targets=None):
    more = {} if targets is None else {"size": targets}
    sampler = samplers.labelled(samplers.uniform(-3, 3, size=columns), samplers.uniform(-3, 3, **more))
    return PrivateEstimator(Ridge(), sampler=sampler, domain="as-is", **QUICK)


def _transformer(columns):
    sampler = samplers.uniform(-3, 3, size=columns)
    return PrivateEstimator(StandardScaler(), sampler=sampler, domain="as-is", **QUICK)


# Before scikit-learn 1.8 this check of classifiers had two labels in place of three.
_OLD = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 8)
_FEATURES = "check_n_features_in_after_fitting"

# One P has one number of columns and one set of labels. So each check runs under a P that its data could
# come from. Checks that are not named here run under the first.
SUITED = {
    "classifier": {
        _classifier(2, 0, 1): [],
        _classifier(2, 0, 1, 2): [
            "check_estimators_overwrite_params",
            "check_estimators_fit_returns_self",
            "check_readonly_memmap_input",
            "check_classifiers_train",
        ],
        _classifier(2, 1, 2): ["check_classifier_data_not_an_array"],
        _classifier(2, "one", "two"): ["check_classifiers_classes"],
        _classifier(3, 0, 1, 2): [
            "check_fit_score_takes_y",
            "check_dont_overwrite_parameters",
            "check_f_contiguous_array_estimator",
            "check_supervised_y_2d",
            "check_dict_unchanged",
            "check_fit2d_predict1d",
            "check_estimators_empty_data_messages",
            "check_estimator_sparse_tag",
        ],
        _classifier(3, 0, 1, 2, 3): ["check_estimator_sparse_array", "check_estimator_sparse_matrix"],
        _classifier(3, 0, 1): [
            "check_estimators_pickle",
            "check_estimators_nan_inf",
            "check_classifiers_one_label",
        ],
        _classifier(4, 0, 1, 2): ["check_positive_only_tag_during_fit", *([] if _OLD else [_FEATURES])],
        _classifier(4, 0, 1): [_FEATURES] if _OLD else [],
        _classifier(5, 1, 2): ["check_estimators_dtypes", "check_supervised_y_no_nan"],
        _classifier(10, 0, 1, 2, 3): [
            "check_dtype_object",
            "check_fit2d_1sample",
            "check_classifiers_regression_target",
        ],
        _classifier(1, 1, 2): ["check_fit2d_1feature", "check_complex_data"],
    },
    "regressor": {
        _regressor(2): [],
        _regressor(3): [
            "check_fit_score_takes_y",
            "check_dont_overwrite_parameters",
            "check_estimators_pickle",
            "check_estimators_nan_inf",
            "check_f_contiguous_array_estimator",
            "check_supervised_y_2d",
            "check_dict_unchanged",
            "check_fit2d_predict1d",
            "check_estimators_empty_data_messages",
            "check_estimator_sparse_tag",
            "check_estimator_sparse_array",
            "check_estimator_sparse_matrix",
        ],
        _regressor(4): [
            "check_n_features_in_after_fitting",
            "check_positive_only_tag_during_fit",
            "check_regressors_no_decision_function",
        ],
        _regressor(5): ["check_estimators_dtypes", "check_supervised_y_no_nan"],
        _regressor(10): [
            "check_dtype_object",
            "check_regressors_train",
            "check_regressor_data_not_an_array",
            "check_regressors_int",
            "check_fit2d_1sample",
        ],
        _regressor(10, 5): ["check_regressor_multioutput"],
        _regressor(1): ["check_fit2d_1feature", "check_complex_data"],
    },
    "transformer": {
        _transformer(2): [],
        _transformer(3): [
            "check_fit_score_takes_y",
            "check_dont_overwrite_parameters",
            "check_estimators_pickle",
            "check_estimators_nan_inf",
            "check_f_contiguous_array_estimator",
            "check_transformer_data_not_an_array",
            "check_transformer_general",
            "check_transformer_preserve_dtypes",
            "check_dict_unchanged",
            "check_fit2d_predict1d",
            "check_estimators_empty_data_messages",
            "check_estimator_sparse_tag",
            "check_estimator_sparse_array",
            "check_estimator_sparse_matrix",
        ],
        _transformer(4): ["check_n_features_in_after_fitting", "check_positive_only_tag_during_fit"],
        _transformer(5): ["check_estimators_dtypes"],
        _transformer(10): ["check_dtype_object", "check_fit2d_1sample"],
        _transformer(1): ["check_fit2d_1feature", "check_complex_data"],
    },
}

# Impossible by definition. Each is expected to fail, and the suite fails if it no longer does.
_ALL = {
    "check_fit_idempotent": "Noise is never seeded, so a second fit differs from the first.",
    "check_estimators_nan_inf": "An error may not tell that a private value is missing or infinite.",
    "check_dtype_object": "An error may not tell what kind of object a value of the private data is.",
}
IMPOSSIBLE = {
    "classifier": _ALL
    | {
        "check_supervised_y_no_nan": "An error may not tell that a private label is missing or infinite.",
        "check_classifiers_one_label": "An error may not tell that all private labels are the same.",
        "check_classifiers_regression_target": "An error may not tell what the private labels are like.",
        "check_classifiers_classes": "It trains on several sets of labels, and one P has one.",
        "check_classifiers_train": "It trains on two labels and on three, and one P has one set of them.",
    },
    "regressor": _ALL
    | {
        "check_supervised_y_no_nan": "An error may not tell that a private target is missing or infinite.",
        "check_supervised_y_2d": "Noise is never seeded, so predictions after a second fit differ a little.",
    },
    "transformer": _ALL,
}


def _name(check):
    return check.func.__name__


def _suited():
    """Return scikit-learn's checks, each with the estimator whose P suits it."""
    pairs = []
    for kind, estimators in SUITED.items():
        marked = parametrize_with_checks(
            list(estimators), expected_failed_checks=lambda _, k=kind: IMPOSSIBLE[k]
        )
        special = {check for names in estimators.values() for check in names}
        first = next(iter(estimators))
        for item in marked.args[1]:
            estimator, check = getattr(item, "values", item)
            name = _name(check)
            if name in estimators[estimator] or (estimator is first and name not in special):
                marks = getattr(item, "marks", ())
                pairs.append(pytest.param(estimator, check, marks=marks, id=f"{kind}-{name}"))
    return pairs


CHECKS = _suited()


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_own_checks(estimator, check):
    """A private estimator can be used wherever scikit-learn takes one."""
    check(estimator)


@pytest.mark.parametrize("kind", SUITED)
def test_every_exception_is_about_a_check_that_exists(kind):
    """A check that scikit-learn renames would leave a stale exception behind, or run under the wrong P."""
    run = {_name(param.values[1]) for param in CHECKS if param.id.startswith(kind)}
    named = set(IMPOSSIBLE[kind]).union(*SUITED[kind].values())
    if _OLD:  # it may lack a check that was added later
        named = {name for name in named if hasattr(estimator_checks, name)}
    assert named <= run


@pytest.mark.parametrize("kind", SUITED)
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_methods_sample_order_invariance,
        estimator_checks.check_methods_subset_invariance,
    ],
)
def test_predictions_do_not_depend_on_their_neighbours(check, kind):
    """Noise is in the model alone: scikit-learn leaves these checks out where fits differ, and they hold."""
    suited = (est for est, names in SUITED[kind].items() if "check_dict_unchanged" in names)
    check("PrivateEstimator", next(suited))


# -- what those checks cannot see --


def private(estimator, **more):
    """Return a private estimator with little noise, few pairs, a fixed seed and no store."""
    return PrivateEstimator(estimator, **(QUICK | {"sampler": P} | more))


def fits():
    """Return how often the model was fitted. The count is in a logger, which the fingerprint ignores."""
    return getattr(logging.getLogger("fits of test_sklearn"), "count", 0)


def counting():
    """Return a classifier that counts its fits."""
    return make_pipeline(FunctionTransformer(counted), LogisticRegression())


def test_in_a_pipeline():
    """It works in a pipeline, after steps that learn nothing, and the pipeline clones and pickles."""
    sampler = samplers.blobs([[3, 0], [0, 3]], 0.3, low=-2, high=5)
    data, label = sampler.draw(60, np.random.default_rng(1))
    line = make_pipeline(Normalizer(), private(LogisticRegression(), sampler=sampler))
    for model in (line.fit(data, label), clone(line).fit(data, label), pickle.loads(pickle.dumps(line))):
        assert list(model.predict([[4, 0], [0, 4]])) == [0, 1]
        assert list(model[:-1].transform([[4.0, 0.0]])[0]) == [1, 0]
        assert model[-1].release_.epsilon == HUGE
    assert line.set_params(privateestimator__epsilon=1)[-1].epsilon == 1
    assert line.set_params(privateestimator__estimator__C=3)[-1].estimator.C == 3


@pytest.mark.parametrize(
    "search",
    [
        lambda model: GridSearchCV(model, {"estimator__logisticregression__C": [1, 2]}).fit(X, Y),
        lambda model: cross_val_score(model, X, Y),
    ],
)
def test_searches_are_refused_before_anything_is_spent(search):
    """A search would score on raw private folds, which no budget sees."""
    budget = Budget(f"searches {search}", epsilon=1e6, gamma=9, ledger="memory")
    before = fits()
    with pytest.raises(TypeError, match="score"):
        search(private(counting(), budget=budget))
    assert fits() == before and budget.spent.epsilon == 0
