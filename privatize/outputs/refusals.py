"""What cannot be released, and what to do about it."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from privatize.errors import OutputError


def _is(*types: type, kind: str = "") -> Callable[[Any], bool]:
    """Return a test for values of these types, and for numpy's arrays and scalars of this kind of dtype."""

    def applies(value: Any) -> bool:
        array = isinstance(value, np.ndarray | np.generic)
        return isinstance(value, types) or (array and value.dtype.kind in kind)

    return applies


def _has(attribute: str) -> Callable[[Any], bool]:
    return lambda value: hasattr(value, attribute)


_DATES = ("Timestamp", "Timedelta", "datetime", "date", "timedelta")
# The first test that a value passes counts. Objects of other libraries are recognized by their methods.
_REMEDIES: list[tuple[Callable[[Any], bool], str]] = [
    (
        _is(bool, kind="b"),
        "Return int(...) for a count; to choose True or False use Exponential(responses=[...]).",
    ),
    (_is(str, bytes, kind="US"), "To choose among fixed answers use mechanism=Exponential(responses=[...])."),
    (_is(type(None)), "Return the answer."),
    (_is(complex, kind="c"), "Return its real and imaginary parts."),
    (_is(Iterator), "Return a list."),
    (inspect.isawaitable, "Decorate a plain function."),
    (_is(kind="Mm"), "Return a number of days or seconds."),
    (_is(kind="O"), "Convert it with astype(float)."),
    (
        lambda value: isinstance(value, np.ndarray) and type(value) is not np.ndarray,
        "Return a plain array: np.asarray(...), or filled(...) of a masked one.",
    ),
    (_has("state_dict"), "Return its state_dict()."),
    (callable, "To release a function use the mechanism Bernstein(...)."),
    (lambda value: "GroupBy" in type(value).__name__, "Aggregate it: .mean(), .size()."),
    (_has("collect"), "Call collect() on it."),
    (_has("toarray"), "Return its toarray()."),
    (
        lambda value: type(value).__name__ in _DATES,
        "Return a number: (value - pd.Timestamp('2000-01-01')).days, say.",
    ),
    (_has("to_numpy"), "Return its to_numpy(), or a dict of numbers."),
    (_has("params"), "Return its params."),
    (_has("get_params"), "Return its learned numbers, such as coef_ and intercept_."),  # not scikit-learn's
]
_USUAL = "Return numbers, arrays, frames or series, or lists, tuples, dicts or dataclasses of these."


def refusal(value: Any) -> OutputError:
    """Return the error for an output that no noise can be added to. It says what to return instead."""
    name = f"a {type(value).__name__}"
    if type(value) is np.ndarray:
        name = f"an array of {value.dtype}"
    elif isinstance(value, np.generic):
        name = f"a value of {value.dtype}"
    remedy = next((remedy for applies, remedy in _REMEDIES if applies(value)), _USUAL)
    return OutputError(f"The function returns {name}, to which no noise can be added. {remedy}")


_SEARCH = """A search publishes which parameters won. Search on data drawn from P, or on public data, and
        return a model that is fitted with what was found."""
_VECTORS = """It predicts from support vectors, which are people's records. Use LinearSVC or LinearSVR (after
        RBFSampler for a radial kernel), or return {'coef': model.coef_, 'intercept': model.intercept_} if the
        kernel is linear."""
_POINTS = """For trees, forests, boosting, neighbours and kernels release predictions at public points: return
        privatize.sklearn.predictions(model, at=POINTS), or use mechanism=Bernstein(...). If it predicts from
        numbers, return privatize.sklearn.fitted(model, attributes=[...]) with their names, or the numbers
        alone."""


def unknown_model(model: Any) -> OutputError:
    """Return the error for an estimator that is not on the allow-list. It says what to return instead."""
    name = type(model).__name__
    vectors = name in ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM")
    remedy = _SEARCH if hasattr(model, "best_estimator_") else _VECTORS if vectors else _POINTS
    return OutputError(f"The function returns a {name}: it is not known what of it may be released. {remedy}")
