"""What the user's own program adds to classes of installed libraries: accessors, namespaces, patched methods.

A function that calls ``data.health.score()`` names nothing but attributes of its argument, so what was
registered as ``health`` is found on the library's classes alone: those of the containers that functions get
or make, and those that code names. Settings of pandas that change what is computed are looked up as well.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["attributes_of", "is_own", "is_value", "options", "scopes_of"]

Scope = tuple[type, "types.MappingProxyType[str, Any]"]

_CLASSES = {
    "numpy": ("ma.MaskedArray", "matrix", "recarray"),
    "pandas": (
        *("DataFrame", "Series", "Index", "DatetimeIndex", "core.strings.accessor.StringMethods"),
        *("api.typing.DataFrameGroupBy", "api.typing.SeriesGroupBy", "api.typing.Rolling"),
        *("api.typing.Expanding", "api.typing.Resampler"),
    ),
    "polars": ("DataFrame", "LazyFrame", "Series", "Expr", "dataframe.group_by.GroupBy"),
    "torch": ("Tensor", "nn.Module"),
    "pyarrow": ("Table", "ChunkedArray", "Array"),
    "xarray": ("DataArray", "Dataset"),
    "narwhals": ("DataFrame", "LazyFrame", "Series", "Expr"),
    "scipy.sparse": ("csr_array", "csr_matrix", "csc_array", "coo_array"),
}
_PLAIN = ("abc", "typing", "builtins")  # whose classes add nothing to those that are made of them
_FIXED = 1 << 8  # of types that nobody can change


def scopes_of(libraries: Iterable[str] | None, classes: Iterable[type]) -> tuple[Scope, ...]:
    """Return the given classes and those of loaded libraries that can be changed, with their scopes.

    If `libraries` is None, that is all libraries whose containers functions get.
    """
    loaded = [name for name in _CLASSES if name in sys.modules and not _being_loaded(name)]
    if libraries is not None:
        loaded = [name for name in loaded if name.partition(".")[0] in libraries]
    known = _scopes(tuple(loaded))
    extra = dict.fromkeys(base for kind in classes for base in _changeable(kind))
    return (*known, *((kind, vars(kind)) for kind in extra)) if extra else known


def _being_loaded(library: str) -> bool:
    """Tell whether another thread is importing a library, whose classes are not all there yet."""
    return bool(getattr(getattr(sys.modules[library], "__spec__", None), "_initializing", False))


@functools.cache
def _scopes(libraries: tuple[str, ...]) -> tuple[Scope, ...]:
    found: dict[type, None] = {}
    for library in libraries:
        for path in _CLASSES[library]:
            kind: Any = sys.modules[library]
            for name in path.split("."):
                kind = vars(kind).get(name) if isinstance(kind, types.ModuleType) else None
            if isinstance(kind, type):
                found |= dict.fromkeys(_changeable(kind))
    return tuple((kind, vars(kind)) for kind in found)


def _changeable(kind: type) -> Iterator[type]:
    return (base for base in kind.__mro__ if not base.__flags__ & _FIXED and base.__module__ not in _PLAIN)


def attributes_of(names: Iterable[str], classes: Iterable[type]) -> list[tuple[type, str, Any]]:
    """Return the attributes with these names that libraries' classes and the given ones have."""
    scopes = scopes_of(None, classes)
    public = [name for name in names if not name.startswith("__")]
    return [(kind, name, scope[name]) for name in public for kind, scope in scopes if name in scope]


def is_value(thing: Any) -> bool:
    """Tell whether something is a number, a string, a collection or data, not code."""
    kind = type(thing)
    if isinstance(thing, _VALUES):
        return True
    return kind.__module__.partition(".")[0] in _CLASSES and hasattr(kind, "__len__")


_VALUES = (bool, int, float, complex, str, bytes, list, dict, tuple, set, frozenset, np.ndarray, np.generic)


def is_own(thing: Any, origin: Callable[[str | None], str | None]) -> bool:
    """Tell whether the user's own program has set an attribute of an installed class or module.

    Values count as set by it, since nobody can tell who set them; so do functions, classes and descriptors
    whose code is not installed.
    """
    if isinstance(thing, types.FunctionType):
        return origin(thing.__globals__.get("__name__")) is None
    if isinstance(thing, type):
        return origin(thing.__module__) is None
    if isinstance(thing, types.ModuleType | types.BuiltinFunctionType):
        return False
    if isinstance(thing, functools.partial):  # whose arguments may be anything
        return True
    module = type(thing).__module__
    if is_value(thing) or (origin(module) is None and not module.startswith("_cython")):
        return True
    parts = (getattr(thing, name, None) for name in ("__func__", "fget", "fset", "func", "_accessor", "_ns"))
    return any(is_own(part, origin) for part in parts if callable(part))


def options() -> str:
    """Return the options of pandas that change what is computed and do not have their default values."""
    config = sys.modules.get("pandas._config.config")
    if config is None:
        return ""
    current: Any = getattr(config, "_global_config", {})
    known: Any = getattr(config, "_registered_options", {})
    if not known:
        return ""
    changed = [
        f"{group}.{name}={value!r}"
        for group in ("mode", "compute", "future")
        for name, value in current.get(group, {}).items()
        if value != known[f"{group}.{name}"].defval
    ]
    return ", ".join(sorted(changed))
