"""What cannot be released, and what to do about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from privatize.errors import OutputError

__all__ = ["refusal"]

_CHOOSE = "use Exponential(responses=[...])."


def _held(*kinds: str) -> Callable[[Any], bool]:
    """Return a test for arrays and scalars of numpy that hold these kinds of values."""
    return lambda value: isinstance(value, np.ndarray | np.generic) and value.dtype.kind in kinds


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _has(attribute: str) -> Callable[[Any], bool]:
    return lambda value: hasattr(value, attribute)


# The first that is true of a value counts. Other libraries' objects are known by what they can do.
_REMEDIES: list[tuple[Callable[[Any], bool], str]] = [
    (_is(bool), f"Return int(...) for a count; to choose True or False {_CHOOSE}"),
    (_held("b"), f"Return int(...) for a count; to choose True or False {_CHOOSE}"),
    (_is(str, bytes), "To choose among fixed answers use mechanism=Exponential(responses=[...])."),
    (_held("U", "S"), "To choose among fixed answers use mechanism=Exponential(responses=[...])."),
    (_is(type(None)), "Return the answer."),
    (_is(complex), "Return its real and imaginary parts."),
    (_held("c"), "Return its real and imaginary parts."),
    (_is(Iterator), "Return a list."),
    (inspect.isawaitable, "Decorate a plain function."),
    (_held("M", "m"), "Return a number of days or seconds."),
    (_held("O"), "Convert it with astype(float)."),
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
        lambda value: type(value).__name__ in ("Timestamp", "Timedelta", "datetime", "date", "timedelta"),
        "Return a number: (value - pd.Timestamp('2000-01-01')).days, say.",
    ),
    (_has("to_numpy"), "Return its to_numpy(), or a dict of numbers."),
    (_has("params"), "Return its params."),
    (_has("get_params"), "Return its learned numbers, such as coef_ and intercept_."),  # not scikit-learn's
    (
        lambda _: True,
        "Return numbers, arrays, frames or series, or lists, tuples, dicts or dataclasses of these.",
    ),
]


def refusal(value: Any) -> OutputError:
    """Return the error of an output that no noise can be added to: it says what would do."""
    name = f"a {type(value).__name__}"
    if type(value) is np.ndarray:
        name = f"an array of {value.dtype}"
    elif isinstance(value, np.generic):
        name = f"a value of {value.dtype}"
    remedy = next(remedy for applies, remedy in _REMEDIES if applies(value))
    return OutputError(f"The function returns {name}, to which no noise can be added. {remedy}")
