"""Errors are in one tree, and cross processes with all their attributes."""

import builtins
import copy
import pickle
import re

import pytest

import privatize
from privatize import errors
from tests.cases import for_each

PUBLIC = [getattr(errors, name) for name in errors.__all__]
ERRORS = [kind for kind in PUBLIC if issubclass(kind, errors.PrivatizeError)]
WARNINGS = [kind for kind in PUBLIC if issubclass(kind, Warning)]


def drawn_tree() -> dict[str, tuple[str | None, str | None]]:
    """Return name -> (parent in the drawing, builtin in parentheses) from the module's docstring."""
    tree: dict[str, tuple[str | None, str | None]] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^ {4}([│├└─ ]*)(\w+(?:Error|Warning|Exceeded))\b(?: \((\w+)\))?", line)
        if found:
            depth = len(found[1]) // 4
            path[depth:] = [found[2]]
            tree[found[2]] = (path[depth - 1] if depth else None, found[3])
    return tree


def test_every_public_error_is_drawn():
    """A reader of the tree would miss an error to catch."""
    assert sorted(drawn_tree()) == sorted(errors.__all__)


def test_every_error_of_the_module_is_public():
    """An error that is raised but not exported could not be caught by name."""
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, BaseException) and not name.startswith("_")
    }
    assert defined == set(errors.__all__)


@for_each("name", errors.__all__)
def test_the_drawing_is_true(name):
    """An except clause written from the drawing would let the error through."""
    parent, builtin = drawn_tree()[name]
    kind = getattr(errors, name)
    if parent is not None:
        assert kind.__bases__[0] is getattr(errors, parent)
    if builtin is not None:
        assert issubclass(kind, getattr(builtins, builtin))


@for_each("kind", ERRORS)
def test_one_base_catches_all(kind):
    """``except PrivatizeError`` would not be enough."""
    assert issubclass(kind, errors.PrivatizeError)
    assert not issubclass(kind, Warning)


@for_each("kind", ERRORS)
def test_pickles_with_its_attributes(kind):
    """An error from a worker would arrive without its numbers, or as a TypeError of pickle's own."""
    error = kind("gamma=2 is too large: below 1.", gamma=2, least_m=[1, 2], cause=None)
    error.later = "set afterwards"
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(error, protocol))
        assert type(back) is kind
        assert str(back) == "gamma=2 is too large: below 1."
        assert back.args == error.args
        assert vars(back) == {"gamma": 2, "least_m": [1, 2], "cause": None, "later": "set afterwards"}


@for_each("kind", ERRORS)
def test_pickles_with_a_note(kind):
    """An error that the user's own code annotated would not get out of a worker."""
    error = kind("message", m=3)
    error.add_note("while doing the accounts")
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), back.m) == ("message", 3)


@for_each("kind", ERRORS)
def test_copies(kind):
    """A debugger or a retry that copies the error would lose its numbers."""
    for duplicate in (copy.copy, copy.deepcopy):
        assert vars(duplicate(kind("message", k=5))) == {"k": 5}


@for_each("kind", ERRORS)
def test_is_raised_without_arguments(kind):
    """``raise kind`` would be a TypeError."""
    assert str(kind()) == ""
    assert str(pickle.loads(pickle.dumps(kind()))) == ""


@pytest.mark.parametrize("kind", WARNINGS)
def test_warnings_pickle(kind):
    """A warning from a worker could not be shown."""
    back = pickle.loads(pickle.dumps(kind("not remembered")))
    assert type(back) is kind
    assert str(back) == "not remembered"


def test_an_infeasible_plan_pickles_as_it_was_raised():
    """A caller across a process could not read the feasible m from the error."""
    with pytest.raises(errors.PlanError) as caught:
        privatize.plan(gamma=0.001, m=100)
    error = caught.value
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), vars(back)) == (str(error), vars(error))
    assert back.gamma == 0.001
    assert back.m == 100
    assert back.least_m > 100
    assert back.least_gamma > 0.001


def test_errors_are_reached_from_the_package():
    """``privatize.errors.DataError`` would need another import."""
    assert privatize.errors is errors


def test_messages_are_one_paragraph():
    """A message that is written over several lines would be shown with the indents of our source."""
    message = f"""gamma={2!r} is too large:
        choose one below 1."""
    assert str(errors.SettingsError(message)) == "gamma=2 is too large: choose one below 1."
    card = "The audit failed\n  coverage      0.9\n  loss          2\n                a second line of it"
    assert str(errors.AuditError(card)) == card
