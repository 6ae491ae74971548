"""The declared values of arguments, and which question a call asks."""

import numpy as np
import pytest

from privatize.errors import ArgumentError, SettingsError
from privatize.function.binding import Binding
from privatize.function.grid import Grid, labelled, same
from tests.cases import for_each
from tests.function.catalogued import sealed


def between(x, low=0, high=1):
    """Return a share."""
    return ((x > low) & (x < high)).mean()


def grid(**values):
    """Return the grid of a function."""
    return Grid.of("between", values, Binding.of(between))


def test_every_combination_is_a_question():
    """A combination that is not calibrated could not be asked."""
    made = grid(low=[0, 1], high=np.array([2.0, 3.0]))
    assert [choice.label for choice in made.choices] == [
        "between(low=0, high=2.0)",
        "between(low=0, high=3.0)",
        "between(low=1, high=2.0)",
        "between(low=1, high=3.0)",
    ]
    assert grid().choices[0].label == "between"


def test_a_call_finds_its_question():
    """An equal number would be taken for another question, or a default would be forgotten."""
    made = grid(low=[0, 1], high=[1, 2])
    assert made.choose({"low": 1.0, "high": np.int64(2)}).label == "between(low=1, high=2)"
    assert made.choose({"low": 1}).label == "between(low=1, high=1)"  # the function's own default
    assert made.choose({}).label == "between(low=0, high=1)"
    assert grid(low=[5]).choose({}).label == "between(low=5)"  # the only one
    assert grid(low=[[1, 2], [3]]).choose({"low": [3]}).label == "between(low=[3])"


@for_each(
    "values, asked, problem",
    [
        ({"low": [0, 1]}, {"low": 3}, "low=3, which was not declared.*0, 1"),
        ({"low": [0, 1]}, {"high": 1}, "high=, of which no values were declared"),
        ({"low": [2, 3]}, {}, "asked without low=.*2, 3"),
        ({}, {"low": 1}, "takes no arguments but epsilon and delta"),
        ({"low": [0, 1]}, {"low": np.arange(3)}, "low=a ndarray"),
    ],
)
def test_what_was_not_declared_is_refused(values, asked, problem):
    """A question that was not calibrated would get the noise of another one."""
    with pytest.raises(ArgumentError, match="(?s)" + problem):
        grid(**values).choose(asked)


@for_each(
    "values, problem",
    [
        ({"low": []}, "no values"),
        ({"low": 3}, r"a list, such as low=\[3\]"),
        ({"low": "ab"}, "a list"),
        ({"low": [1, 1.0]}, "twice"),
        ({"middle": [1]}, "no other parameter 'middle'"),
        ({"x": [1]}, "no other parameter 'x'"),
        ({"low": [lambda: 1, lambda: 2]}, "same way"),
    ],
)
def test_grids_that_make_no_sense_are_refused(values, problem):
    """A question would be missing, or two would have one name."""
    with pytest.raises(SettingsError, match=problem):
        grid(**values)


def test_sealed_data_is_no_argument():
    """Private data would be a public argument."""
    with pytest.raises(SettingsError, match="sealed"):
        grid(low=[sealed()])


def test_values_are_compared_by_content():
    """Two arrays with other numbers would be one question."""
    assert same(np.arange(3), np.arange(3)) and not same(np.arange(3), np.arange(4))
    assert not same([1], (1,)) and not same(1, "1")
    assert labelled("f", {"a": "x" * 100}).endswith("...)")
