"""A catalogue is filled, declared, and then asked as one goes."""

import copy
import pickle

import numpy as np
import pytest

from privatize import Blocks, Catalogue, additive
from privatize.errors import ArgumentError, SealedError, SettingsError, UnsharedBudgetWarning
from tests.cases import for_each
from tests.function.catalogued import ONES, budget, catalogue, declared, fresh, mean, sealed, share_above


def test_questions_are_added_declared_and_asked():
    """Nothing else of it would be of use: three ways to add, three ways to ask, one gamma."""
    people = sealed()
    made = catalogue(people, gamma=0.2, epsilon=5)

    @made.add
    def total(x):
        return x.sum()

    @made.add(limit=[0.25, 0.5])
    def above(x, limit):
        return (x > limit).mean()

    median = made.add(np.median, name="middle")
    assert made.questions == ("total", "above(limit=0.25)", "above(limit=0.5)", "middle")
    made.calibrate()
    assert abs(median(epsilon=1) - 0.5) < 0.5
    assert abs(made.total(epsilon=1) - 100) < 50
    assert abs(made["above"](limit=0.5, epsilon=1) - 0.5) < 0.5
    release = made.above.release(limit=0.25, epsilon=1)
    assert (release.catalogue, release.gamma, release.epsilon) == (made.name, 0.2, 1)
    assert [each["question"] for each in made.asked()] == [
        "middle",
        "total",
        "above(limit=0.5)",
        "above(limit=0.25)",
    ]


def test_gamma_is_charged_once():
    """A catalogue of many questions would use up the budget's gamma."""
    own = budget(gamma=0.2)
    made = declared(sealed(budget=own))
    for _ in range(3):
        made.mean(epsilon=0.1)
        made.share_above(limit=0.5, epsilon=0.1)
    assert float(own.spent.gamma) == 0.2
    assert round(own.spent.epsilon, 9) == 0.6
    own.verify()


def test_nothing_is_answered_before_it_is_declared():
    """An answer could decide which questions are declared."""
    made = catalogue()
    member = made.add(mean)
    for ask in (lambda: member(epsilon=1), lambda: member.release(epsilon=1), member.estimate):
        with pytest.raises(SettingsError, match="calibrate"):
            ask()


def test_nothing_changes_after_it_is_declared():
    """Members that are dropped because of gaps that were seen break the promise."""
    made = declared()
    for change in (lambda: made.add(np.median), lambda: made.drop("mean"), made.pilot):
        with pytest.raises(SettingsError, match="declare"):
            change()
    made.calibrate()  # once more is nothing


@for_each(
    "name, function, problem",
    [
        ("calibrate", mean, "attribute of every catalogue"),
        ("name", mean, "attribute of every catalogue"),
        ("_mean", mean, "attribute of every catalogue"),
        ("class", mean, "identifier"),
        (None, lambda x: x.mean(), "identifier"),
        (None, lambda epsilon: 0.0, "identifier"),
        ("f", lambda x, epsilon=1: x.mean(), "'epsilon'"),
        ("f", lambda x, delta=1: x.mean(), "'delta'"),
        ("f", lambda x, version=1: x.mean(), "option of add"),
        ("f", lambda x, limit: x.mean(), r"limit=\[\.\.\.\]"),
    ],
)
def test_members_that_could_not_be_asked_are_refused(name, function, problem):
    """Such a member would hide a method, or could not be called."""
    with pytest.raises(SettingsError, match=problem):
        catalogue().add(function, name=name)


def test_a_name_is_taken_once():
    """The first function of that name could not be asked any more."""
    made = catalogue()
    made.add(mean)
    with pytest.raises(SettingsError, match="drop"):
        made.add(mean)
    made.drop("mean")
    made.add(mean)
    with pytest.raises(ArgumentError, match="no member 'nothing'"):
        made["nothing"]
    with pytest.raises(AttributeError, match="mean"):
        _ = made.nothing


def test_misspelled_names():
    """A user would search a list of sixty questions for the one that is meant."""
    made = catalogue()
    made.add(mean)
    made.add(share_above, limit=[0.25, 0.5])
    made.calibrate()
    with pytest.raises(AttributeError, match="Did you mean 'share_above'"):
        _ = made.shareabove
    with pytest.raises(ArgumentError, match="Did you mean 'mean'"):
        made["maen"]
    with pytest.raises(
        ArgumentError, match=r"mean\(\) has no argument 'eps'. Did you mean 'epsilon'\? It has"
    ):
        made.mean(eps=0.1)
    with pytest.raises(ArgumentError, match=r"with limt=, of which .* Did you mean 'limit'"):
        made.share_above(epsilon=0.1, limt=0.5)
    with pytest.raises(ArgumentError, match="was asked without epsilon="):
        made.share_above(limit=0.5)


def test_members_with_a_bound_for_all_pairs_cost_no_gamma():
    """Plain answers would be charged as if they rested on samples."""
    own = budget(gamma=0)
    made = catalogue(sealed(budget=own))
    made.add(mean, sensitivity=lambda n: 1 / n)
    made.add(np.median, mechanism=Blocks(0.0, 1.0))
    made.add(additive(np.square, bounds=(0, 1)), name="total")
    made.calibrate()
    for name in ("mean", "median", "total"):
        release = made[name].release(epsilon=1)
        assert (release.gamma, release.catalogue) == (0, made.name)
    assert own.spent.gamma == 0
    own.verify()


def test_a_catalogue_needs_sealed_data_and_a_budget():
    """The data would be a choice made from answers; and there would be no cap to promise."""
    with pytest.raises(SealedError, match="ndarray"):
        Catalogue(fresh(), ONES, gamma=0.1)
    with pytest.raises(SettingsError, match="epsilon="):
        catalogue(sealed(budget=None))
    with pytest.raises(SettingsError, match="delta"):
        catalogue(delta=1e-6)
    with pytest.raises(SettingsError, match="no P"):
        catalogue(sealed(sampler=None)).add(mean)


def test_it_is_not_copied_or_pickled():
    """A copy could be filled with other questions, and a pickle would carry the data."""
    made = declared()
    assert copy.deepcopy(made) is copy.copy(made) is made
    assert copy.deepcopy(made.mean) is made.mean
    for each in (made, made.mean):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(each)


def test_it_shows_what_it_is():
    """Nobody would know what can be asked, and what is left."""
    made = declared()
    made.mean(epsilon=0.5)
    assert "3 questions" in repr(made) and "declared" in repr(made)
    assert "asked 1 time" in made.card().text()
    assert "share_above(limit=0.5)" in made._repr_html_() and "mean" in dir(made)
    assert set(made.members) == {"mean", "share_above"}


def test_an_empty_catalogue_is_refused():
    """There would be nothing to declare."""
    with pytest.raises(SettingsError, match="no questions"):
        catalogue().calibrate()
    made = catalogue()
    made.add(share_above, limit=[0.5])
    made.drop("share_above")
    with pytest.raises(SettingsError, match="no questions"):
        made.pilot()


@for_each(
    "option, where",
    [("epsilon", "when mean is asked"), ("delta", "when mean is asked"), ("gamma", "Catalogue")],
)
def test_options_that_belong_elsewhere_are_told_where(option, where):
    """Somebody who writes add(epsilon=0.1) would read that the function lacks a parameter."""
    with pytest.raises(SettingsError, match=where):
        catalogue().add(mean, **{option: 0.1})
    with pytest.raises(SettingsError, match="has no other parameter"):
        catalogue().add(mean, limit=[1])


def test_gamma_is_asked_for():
    """Somebody who leaves gamma out would get a bare TypeError, and not be told what it is."""
    with pytest.raises(SettingsError, match=r"needs gamma=.*0\.05"):
        Catalogue(fresh(), sealed())


def test_the_warning_of_its_own_budget_is_at_the_users_line(monkeypatch):
    """It would point into the library, where nobody can change anything."""
    monkeypatch.delenv("PRIVATIZE_LEDGER", raising=False)
    people = sealed(budget=None)
    with pytest.warns(UnsharedBudgetWarning) as found:
        Catalogue(fresh(), people, gamma=0.1, epsilon=1)
    assert {each.filename for each in found} == {__file__}
