"""A private model whose guard misses a change would get the noise of another model."""

import abc
import copyreg
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

import sklearn
from sklearn import linear_model
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from privatize.function import private_estimator
from privatize.function.private_estimator import fit
from privatize.identity.fingerprint import fingerprint
from privatize.identity.model_guard import model_guard


class Registered(abc.ABC):  # noqa: B024 - classes are registered with it
    """An abstract class."""


def _parameter(model, patch):
    patch.setattr(model, "C", 2.0)


def _attribute(model, patch):
    patch.setattr(model, "coef_", 1.0, raising=False)


def _removed(model, patch):
    patch.delattr(model, "C")


def _class(model, patch):
    patch.setattr(model, "__class__", GaussianNB)


def _setting(model, patch):
    config = sklearn.get_config()
    patch.setattr(sklearn, "get_config", lambda: config | {"assume_finite": True})


def _pickling(model, patch):
    patch.setattr(LogisticRegression, "__getstate__", lambda self: {"C": 1.0}, raising=False)


def _registered(model, patch):
    patch.setitem(copyreg.dispatch_table, LogisticRegression, lambda model: (LogisticRegression, ()))


def _abstract(model, patch):
    Registered.register(type("Other", (), {}))


def _name(model, patch):
    patch.setattr(sys.modules[LogisticRegression.__module__], "LogisticRegression", GaussianNB)


def _function(model, patch):
    patch.setattr(private_estimator, "fit", private_estimator.fit_without_labels)


CHANGES = [
    _parameter,
    _attribute,
    _removed,
    _class,
    _setting,
    _pickling,
    _registered,
    _abstract,
    _name,
    _function,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__[1:])
def test_every_change_is_seen(change, monkeypatch):
    """The fingerprint would be another one, but would not be taken."""
    model = LogisticRegression(C=1.0)
    guarded = model_guard(fit, [model])
    assert guarded.same() and guarded.put_back() == []
    change(model, monkeypatch)
    assert not guarded.same() and guarded.put_back() != []


@pytest.mark.parametrize("change", [np.errstate(all="raise"), sklearn.config_context(assume_finite=True)])
def test_settings_are_compared(change):
    """Errors instead of NaN, or unchecked NaN, change what a model learns."""
    model = LogisticRegression()
    guarded, before = model_guard(fit, [model]), fingerprint([fit, model, np.geterr()])
    with change:
        assert not guarded.same() and fingerprint([fit, model, np.geterr()]) != before
    assert guarded.same() and fingerprint([fit, model, np.geterr()]) == before


def test_pandas_options_are_compared():
    """A function that gets frames may compute something else under another option."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed (extra test-all)")
    guarded = model_guard(fit, [LogisticRegression()])
    with pandas.option_context("mode.sim_interactive", True):
        assert not guarded.same()
    assert guarded.same()


class Own(LogisticRegression):
    """A class of the user's own, whose methods may change."""


def test_what_has_no_guard():
    """Only the fingerprint reads the user's own code, and values that change in place."""
    plain = LogisticRegression()
    assert model_guard(fit, [plain, GaussianNB()]) is not None
    assert model_guard(lambda X, y, estimator: estimator.fit(X, y), [plain]) is None
    for model in (
        Own(),
        BaggingClassifier(plain),
        LogisticRegression(class_weight={0: 1.0}),
        GaussianNB(priors=[1]),
    ):
        assert model_guard(fit, [model]) is None
    assert model_guard(linear_model.enet_path, [plain]) is None
