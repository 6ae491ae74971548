"""Encode parameters and constants of estimators as JSON, to compare them, and show them in messages."""

import functools
import hashlib
import json
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize.outputs.names import find, name_of


class Unclear(Exception):  # noqa: N818 - a signal between modules
    """A parameter or constant cannot be compared, so it cannot be published."""


def show(value: Any) -> str:
    """Return a value in at most 60 characters, for messages."""
    text = " ".join(str(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) < 60 else text[:57] + "..."


def encode(value: Any) -> Any:
    """Return a value as JSON with its types, or raise `Unclear` if it cannot be compared."""
    kind = type(value)
    if kind in _BY_TYPE:
        return [kind.__name__, _BY_TYPE[kind](value)]
    if kind is np.ndarray:
        return _array(value)
    for kinds, way in _BY_CLASS:
        if isinstance(value, kinds):
            return way(value)
    if kind.__module__.startswith("pandas.") and hasattr(value, "to_numpy"):
        return [name_of(kind), encode(value.to_numpy(dtype=object))]
    if kind.__module__.startswith("sklearn."):
        return [name_of(kind), encode(dict(sorted(vars(value).items())))]
    random = kind.__module__.startswith("numpy.random")
    raise Unclear(f"a random generator ({kind.__name__})" if random else f"a {kind.__name__}")


def _each(values: Any) -> list[Any]:
    return [encode(item) for item in values]


def _array(value: Any) -> list[Any]:
    if value.dtype.hasobject:
        return ["objects", list(value.shape), _each(value.ravel().tolist())]
    data = np.ascontiguousarray(value).tobytes()
    return ["array", value.dtype.str, list(value.shape), hashlib.sha256(data).hexdigest()]


_CODE = (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)
_BY_TYPE: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((type(None), bool, int, str), lambda value: value),
    **dict.fromkeys((float, complex, bytes), repr),
    **dict.fromkeys((list, tuple), _each),
    **dict.fromkeys((set, frozenset), lambda value: sorted(_each(value), key=json.dumps)),
    slice: lambda value: _each((value.start, value.stop, value.step)),
    functools.partial: lambda value: _each((value.func, value.args, value.keywords)),
}
_BY_CLASS: list[tuple[Any, Callable[[Any], list[Any]]]] = [
    (type(...), lambda _: ["..."]),
    (np.generic, lambda value: ["numpy", value.dtype.str, repr(value.item())]),
    (np.dtype, lambda value: ["dtype", value.str]),
    (dict, lambda value: [name_of(type(value)), [_each(item) for item in value.items()]]),
    (_CODE, lambda value: ["named", _found(value)]),
]


def _found(value: Any) -> str:
    """Return the name under which a function or class can be found, or refuse it."""
    name = getattr(value, "__qualname__", value.__name__)
    module = getattr(value, "__module__", None) or "numpy"
    if find(module, name) is not value:
        raise Unclear(f"a function that is not defined at the top of a module ({name})")
    return f"{module}:{name}"
