"""Constraints move the part of an answer that they are meant for, and leave its structure and types."""

import dataclasses
import functools
import pickle
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from privatize import constraints
from privatize.errors import SettingsError
from privatize.outputs.describe import describe
from privatize.outputs.validity import READY, as_constraints
from tests.cases import for_each


class Fit(NamedTuple):
    coef: np.ndarray
    se: np.ndarray


@dataclasses.dataclass
class Curve:
    times: list
    alive: np.ndarray


def valid(value, given):
    """Return an answer, made valid."""
    return as_constraints(given).apply(value, describe(value))


def same(found, wanted):
    """Tell whether two answers are the same, types, labels and numbers."""
    if isinstance(wanted, pd.DataFrame | pd.Series):
        return type(found) is type(wanted) and found.equals(wanted) and found.index.equals(wanted.index)
    if isinstance(wanted, np.ndarray):
        return found.dtype == wanted.dtype and np.allclose(found, wanted) and found.shape == wanted.shape
    if isinstance(wanted, dict):
        keys = list(found) == list(wanted)
        return type(found) is type(wanted) and keys and all(same(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list | tuple):
        return type(found) is type(wanted) and all(map(same, found, wanted))
    return type(found) is type(wanted) and found == pytest.approx(wanted)


A = np.array
LABELS = ["x", "y"]
SQUARE = pd.DataFrame([[1.1, 1.3], [1.3, 0.9]], LABELS, LABELS)
TABLE = pd.DataFrame({"group": ["a", "b"], "n": [-3, 4], "share": [-0.5, 0.5]})
CASES = {
    "a float": (-0.5, "positive", 0.0),
    "an integer": (-3, "positive", 0),
    "a number of numpy": (np.float32(-3), "positive", np.float32(0)),
    "integers": (A([3, -2]), "positive", A([3, 0])),
    "floats of 32 bits": (A([3, -2], "f4"), "positive", A([3, 0], "f4")),
    "a list": ([0.7, 0.5, -0.2], "probabilities", [0.6, 0.4, 0.0]),
    "a tuple of all": ((1, -1.5, A([-2, 2])), "positive", (1, 0.0, A([0, 2]))),
    "rounded": (A([1, 4, 1, 9]), "increasing", A([1, 2, 2, 9])),
    "a dict of numbers": (
        OrderedDict(b=0.7, a=0.5, c=-0.2),
        "probabilities",
        OrderedDict(b=0.6, a=0.4, c=0.0),
    ),
    "rows": (
        {"f": A([0.7, 0.5]), "m": A([1.0, 4.0])},
        "probabilities",
        {"f": A([0.6, 0.4]), "m": A([0.0, 1])},
    ),
    "a series": (pd.Series([1.1, 0.5, 0.7], [0, 1, 5]), "survival", pd.Series([1, 0.6, 0.6], [0, 1, 5])),
    "a frame with labels": (SQUARE, "correlations", pd.DataFrame(np.ones((2, 2)), LABELS, LABELS)),
    "a function of a frame": (
        SQUARE,
        lambda d: d.clip(-1, 1),
        pd.DataFrame([[1, 1], [1, 0.9]], LABELS, LABELS),
    ),
    "an array for a frame": (
        SQUARE,
        functools.partial(constraints.between, low=-1, high=1),
        pd.DataFrame([[1, 1], [1, 0.9]], LABELS, LABELS),
    ),
    "columns": (TABLE, {"n": "positive"}, TABLE.assign(n=[0, 4])),
    "a frame with text": (TABLE, "positive", TABLE.assign(n=[0, 4], share=[0.0, 0.5])),
    "keys": ({"coef": A([-1.0]), "se": A([-1.0])}, {"se": "positive"}, {"coef": A([-1.0]), "se": A([0.0])}),
    "positions": ((A([-1.0]), A([-1.0])), {1: "positive"}, (A([-1.0]), A([0.0]))),
    "fields": (Fit(A([-1.0]), A([-1.0])), {"se": np.abs}, Fit(A([-1.0]), A([1.0]))),
    "nested": ([{"a": -1.0, "b": -1.0}], {0: {"b": "positive"}}, [{"a": -1.0, "b": 0.0}]),
    "whole floats": (A([3, -2]), lambda h: constraints.between(h, 0, 2), A([2, 0])),
    "a whole float": (-3, lambda x: max(x, 0.0), 0),
}


@for_each("value, given, wanted", list(CASES.values()), ids=list(CASES))
def test_a_valid_answer_has_the_form_of_the_answer(value, given, wanted):
    """A user would get an array for a frame, floats for counts, or another part would be changed."""
    found = valid(value, given)
    if not isinstance(wanted, pd.Series | pd.DataFrame):
        assert same(found, wanted), found
    else:
        assert type(found) is type(wanted)
        test = pd.testing.assert_frame_equal if wanted.ndim == 2 else pd.testing.assert_series_equal
        test(found, wanted, check_dtype=wanted is TABLE)
    if isinstance(value, pd.DataFrame):
        assert (found.dtypes == value.dtypes).all()


def test_dataclasses():
    """A result of the user's own class would come back as something else."""
    found = valid(Curve([1, 2], A([0.4, 0.6])), {"alive": "survival"})
    assert type(found) is Curve and found.alive.tolist() == [0.5, 0.5] and found.times == [1, 2]


def test_tensors():
    """An answer of torch would come back as an array."""
    torch = pytest.importorskip("torch")
    found = valid(torch.tensor([-1.0, 2.0]), "positive")
    assert isinstance(found, torch.Tensor) and found.tolist() == [0, 2] and found.dtype is torch.float32


def test_a_function_may_change_what_it_gets():
    """The answer before it, around which intervals are, would be changed as well."""
    value = A([-1.0, 2.0])

    def cut(values):
        values[values < 0] = 0
        return values

    assert valid(value, cut).tolist() == [0, 2] and value.tolist() == [-1, 2]


def test_ready_functions_are_the_same_by_name():
    """The function itself, not its name, would lose the labels of a frame."""
    for name, function in READY.items():
        assert as_constraints(function) == as_constraints(name) and getattr(constraints, name) is function
        assert pickle.loads(pickle.dumps(as_constraints(name))) == as_constraints(name)
        assert as_constraints(name).functions() == []
    assert set(READY) == set(constraints.__all__) - {"between"}


def test_words():
    """A card could not say what made an answer valid."""
    given = {"a": "positive", 1: {"b": np.abs}, "c": lambda x: x}
    assert as_constraints(given).words == "positive of 'a', absolute of 'b' of 1, a function of 'c'"
    assert as_constraints(functools.partial(constraints.between, low=0, high=1)).words == "between"
    assert repr(as_constraints("positive")) == "<made valid by positive>"
    assert len(as_constraints(given).functions()) == 2
    assert as_constraints(as_constraints(given)) == as_constraints(given)


@for_each(
    "given, message",
    [
        ("positiv", "'positiv' is not the name"),
        ("between", "between needs low and high"),
        ({}, "names no part"),
        ({"a": "nothing"}, "'nothing' is not the name"),
        (3, "and not a int"),
        ([np.abs], "and not a list"),
    ],
)
def test_wrong_constraints_are_refused(given, message):
    """A typing mistake would be found after the budget is spent."""
    with pytest.raises(SettingsError, match=message):
        as_constraints(given)


def fails(value):
    raise KeyError("on purpose")


@for_each(
    "value, given, message",
    [
        (A([1.0, 2.0]), "correlations", "square matrix"),
        (A([1.0, 2.0]), {"a": "positive"}, "has none"),
        (1.0, "survival", "along an axis"),
        ({"a": 1.0}, {"b": "positive"}, "no part 'b': the parts are 'a'"),
        ({"a": 1.0, "b": A([1.0])}, "probabilities", "different shapes"),
        ((1.0, 2.0), {2: "positive"}, "no part 2: the parts are 0, 1"),
        (SQUARE, {"z": "positive"}, "the parts are 'x', 'y'"),
        (SQUARE, "survival", "has 2 columns"),
        (SQUARE["x"], {"x": "positive"}, "has none"),
        (TABLE, {"group": "positive"}, "the parts are 'n', 'share'"),
        (SQUARE, lambda d: d.iloc[:1], "returned a DataFrame"),
        (SQUARE, lambda d: d.rename(columns=str.upper), "labels"),
        (SQUARE, lambda d: d.to_numpy()[:1], r"shape \(1, 2\)"),
        (A([1, 2]), "probabilities", "makes fractions"),
        (A([1, 2]), lambda h: h / 2, "returned fractions"),
        (A([1.0, 2.0]), lambda h: None, "returned a NoneType"),
        (A([1.0, 2.0]), lambda h: h > 0, "returned a ndarray"),
        (A([1.0, 2.0]), lambda h: h * np.nan, "not finite"),
        (A([1.0, 2.0]), fails, "KeyError: 'on purpose'"),
        ({"a": 1.0}, lambda d: d | {"b": 2.0}, "keys"),
    ],
)
def test_what_does_not_fit_is_found_on_made_up_numbers(value, given, message):
    """The mistake would be found on the first private answer, when it is paid for."""
    with pytest.raises(SettingsError, match=message) as caught:
        as_constraints(given).check(describe(value), "f")
    assert "answers of f()" in str(caught.value) and caught.value.__cause__ is not None


@for_each(
    "value, given",
    [
        (A([[1.0, 2.0], [2.0, 5.0]]), np.linalg.inv),
        (A([1.0, 2.0]), lambda h: h / h.sum()),
        (A([1.0, 2.0]), lambda h: h if np.ptp(h) == 0 else fails(h)),
        (A([1, 2]), lambda h: np.maximum(h, 0)),
    ],
)
def test_a_function_that_works_is_not_refused(value, given):
    """A function that fails on special numbers only, such as equal ones, could not be used."""
    as_constraints(given).check(describe(value), "f")


def test_models_are_left_to_themselves():
    """A function of numbers would get a model, or a model beside numbers would be spoiled."""
    Ridge = pytest.importorskip("sklearn.linear_model").Ridge
    value = {"model": Ridge().fit([[1.0], [2.0]], [1.0, 2.0]), "se": A([-1.0])}
    for given in ("positive", {"model": "positive"}, {"model": lambda model: model}):
        with pytest.raises(SettingsError, match="made valid by itself"):
            valid(value, given)
    found = valid(value, {"se": "positive"})
    assert found["se"].tolist() == [0] and found["model"].coef_ == value["model"].coef_
