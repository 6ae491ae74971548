"""Parameters and constants of estimators: as plain JSON, to compare them, and in a few words."""

from __future__ import annotations

import functools
import hashlib
import json
import types
from typing import Any

import numpy as np

from privatize.outputs.names import find, name_of

__all__ = ["Unclear", "encode", "show"]


class Unclear(Exception):  # noqa: N818 - a signal between modules
    """A parameter or constant cannot be compared, so it cannot be published."""


def show(value: Any) -> str:
    """Return a value in at most 60 characters, for messages."""
    text = " ".join(str(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) < 60 else text[:57] + "..."


def encode(value: Any) -> Any:
    """Return a value as plain JSON with its types; what cannot be compared raises."""
    kind = type(value)
    if value is ...:
        return ["..."]
    if value is None or kind in (bool, int, str):
        return [kind.__name__, value]
    if kind in (float, complex, bytes):
        return [kind.__name__, repr(value)]
    if isinstance(value, np.generic):
        return ["numpy", value.dtype.str, repr(value.item())]
    if isinstance(value, np.dtype):
        return ["dtype", value.str]
    if kind is np.ndarray:
        if value.dtype.hasobject:
            return ["objects", list(value.shape), [encode(item) for item in value.ravel().tolist()]]
        data = np.ascontiguousarray(value).tobytes()
        return ["array", value.dtype.str, list(value.shape), hashlib.sha256(data).hexdigest()]
    if kind in (list, tuple):
        return [kind.__name__, [encode(item) for item in value]]
    if isinstance(value, dict):
        return [name_of(kind), [[encode(k), encode(v)] for k, v in value.items()]]
    if kind in (set, frozenset):
        return [kind.__name__, sorted((encode(item) for item in value), key=json.dumps)]
    if kind is slice:
        return ["slice", [encode(end) for end in (value.start, value.stop, value.step)]]
    if isinstance(value, functools.partial):
        return ["partial", [encode(part) for part in (value.func, value.args, value.keywords)]]
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | np.ufunc):
        return ["named", _found(value)]
    if kind.__module__.startswith("pandas.") and hasattr(value, "to_numpy"):
        return [name_of(kind), encode(value.to_numpy(dtype=object))]
    if kind.__module__.startswith("sklearn."):
        return [name_of(kind), encode(dict(sorted(vars(value).items())))]
    if kind.__module__.startswith("numpy.random"):
        raise Unclear(f"a random generator ({kind.__name__})")
    raise Unclear(f"a {kind.__name__}")


def _found(value: Any) -> str:
    """Return the name under which a function or class can be found, or refuse it."""
    name = getattr(value, "__qualname__", value.__name__)
    module = getattr(value, "__module__", None) or "numpy"
    if find(module, name) is not value:
        raise Unclear(f"a function that is not defined at the top of a module ({name})")
    return f"{module}:{name}"
