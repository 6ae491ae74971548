"""Find what the user's program added to classes of libraries: accessors, namespaces, patched methods.

A function that calls ``data.health.score()`` names only attributes of its argument. What was registered as
``health`` can be found only on the library's classes. So we look at the classes of the containers that
functions get or make, and at the classes that code names.
"""

import functools
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from privatize.identity.origin import origin

Scope = tuple[type, "types.MappingProxyType[str, Any]"]

_CLASSES = {
    "numpy": "ma.MaskedArray matrix recarray",
    "pandas": (
        "DataFrame Series Index DatetimeIndex core.strings.accessor.StringMethods "
        "api.typing.DataFrameGroupBy api.typing.SeriesGroupBy api.typing.Rolling "
        "api.typing.Expanding api.typing.Resampler"
    ),
    "polars": "DataFrame LazyFrame Series Expr dataframe.group_by.GroupBy",
    "torch": "Tensor nn.Module",
    "pyarrow": "Table ChunkedArray Array",
    "xarray": "DataArray Dataset",
    "narwhals": "DataFrame LazyFrame Series Expr",
    "scipy.sparse": "csr_array csr_matrix csc_array coo_array",
}
_VALUES = (bool, int, float, complex, str, bytes, list, dict, tuple, set, frozenset, np.ndarray, np.generic)
_ADDING_NOTHING = ("abc", "typing", "builtins")  # a class inherits nothing of interest from these modules
_CODE = (types.FunctionType, type, property, staticmethod, classmethod, np.ufunc)
_PARTS = ("__func__", "fget", "fset", "func", "__wrapped__", "_accessor", "_ns")
_FIXED = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: nobody can change the type


def scopes_of(libraries: Iterable[str] | None, classes: Iterable[type]) -> tuple[Scope, ...]:
    """Return the given classes and those of loaded libraries that can be changed, with their scopes.

    If `libraries` is None, the classes of all libraries that we know are included.
    """
    loaded = [name for name in _CLASSES if name in sys.modules and not _being_loaded(name)]
    if libraries is not None:
        loaded = [name for name in loaded if name.partition(".")[0] in libraries]
    known = _scopes(tuple(loaded))
    extra = dict.fromkeys(base for kind in classes for base in _changeable(kind))
    return (*known, *((kind, vars(kind)) for kind in extra)) if extra else known


def _being_loaded(library: str) -> bool:
    """Tell whether another thread is still importing a library, so that some classes may be missing."""
    return bool(getattr(getattr(sys.modules[library], "__spec__", None), "_initializing", False))


@functools.cache
def _scopes(libraries: tuple[str, ...]) -> tuple[Scope, ...]:
    found: dict[type, None] = {}
    for library in libraries:
        for path in _CLASSES[library].split():
            kind: Any = sys.modules[library]
            for name in path.split("."):
                kind = vars(kind).get(name) if isinstance(kind, types.ModuleType) else None
            if isinstance(kind, type):
                found |= dict.fromkeys(_changeable(kind))
    return tuple((kind, vars(kind)) for kind in found)


def _changeable(kind: type) -> Iterator[type]:
    fixed = (base for base in kind.__mro__ if not base.__flags__ & _FIXED)
    return (base for base in fixed if base.__module__ not in _ADDING_NOTHING)


def is_value(thing: Any) -> bool:
    """Tell whether something is a number, a string, a collection or data, not code."""
    kind = type(thing)
    library = kind.__module__.partition(".")[0]
    return isinstance(thing, _VALUES) or (library in _CLASSES and hasattr(kind, "__len__"))


def is_own(thing: Any) -> bool:
    """Tell whether the user's own program has put something into an installed class or module.

    Values count as the user's own, since it is not known who set them. Functions, classes and descriptors
    count as the user's own if their code is not installed.
    """
    # The answers for other objects are not cached: they may be data, which a cache would keep alive.
    return _is_own_code(thing) if isinstance(thing, _CODE) else _is_own(thing)


def _is_own(thing: Any) -> bool:
    if isinstance(thing, types.FunctionType):
        return origin(thing.__globals__.get("__name__")) is None
    module = type(thing).__module__
    if isinstance(thing, type | types.BuiltinFunctionType) or module.startswith("_cython"):
        return thing.__module__ is not None and origin(thing.__module__) is None
    if isinstance(thing, types.ModuleType):
        return False
    if isinstance(thing, functools.partial) or is_value(thing) or origin(module) is None:
        return True  # the arguments of a partial function may be anything
    parts = (getattr(thing, name, None) for name in _PARTS)
    return any(_is_own(part) for part in parts if callable(part))


_is_own_code = functools.lru_cache(maxsize=4096)(_is_own)
