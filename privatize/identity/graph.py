"""Take values apart: parts, closures, attributes, annotations, and the scopes that names are found in."""

import contextlib
import copyreg
import enum
import functools
import importlib.util
import types
from collections.abc import Callable, Iterable
from typing import Any

NOTHING: Any = object()
"""Stands for the value of a place that has none."""

ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, type(...)})
"""Types of values that cannot change."""

DESCRIPTION = ("__module__", "__name__", "__qualname__", "__doc__", "__type_params__")
"""Attributes that describe a function, besides its annotations."""

PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    tuple: tuple,
    frozenset: tuple,
    types.MethodType: lambda value: (value.__func__, value.__self__),
    staticmethod: lambda value: (value.__func__,),
    classmethod: lambda value: (value.__func__,),
    property: lambda value: (value.fget, value.fset, value.fdel),
    functools.partial: lambda value: (value.func, value.args, value.keywords, vars(value)),
    types.MappingProxyType: lambda value: (dict(value),),
    types.GenericAlias: lambda value: (*value.__args__, value.__origin__),
    types.UnionType: lambda value: value.__args__,
}
"""How to get the parts of values that consist of nothing else."""


def content_of(cell: types.CellType) -> Any:
    """Return the value of a variable of an enclosing function; `NOTHING` if it has none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return NOTHING


def cells_of(function: types.FunctionType) -> list[tuple[str, types.CellType, Any]]:
    """Return a function's closure: names, cells and their values."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return [(name, cell, content_of(cell)) for name, cell in cells]


def state_of(value: Any) -> dict[str, Any]:
    """Return an object's attributes, slots included."""
    state = dict(getattr(value, "__dict__", {}))
    if isinstance(value, enum.Flag):
        state.pop("_inverted_", None)  # Python computes it when it is first read
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            private = slot.startswith("__") and not slot.endswith("__")
            name = f"_{base.__name__.lstrip('_')}{slot}" if private else slot
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                state[name] = getattr(value, name)
    return state


def parts_of(owner: Any, kind: type, attributes: dict[str, Any]) -> list[Any]:
    """Return the class of one of the user's own objects or classes, and all its attributes in order."""
    if issubclass(kind, type):
        return [kind, owner.__bases__, owner.__name__, owner.__qualname__, *attributes, *attributes.values()]
    return [kind, copyreg.dispatch_table.get(kind), *attributes, *attributes.values()]


def public_state(value: Any) -> dict[str, Any]:
    """Return the attributes of an object whose names are public."""
    return {name: each for name, each in state_of(value).items() if not name.startswith("_")}


COMPUTED = frozenset({"__annotate_func__", "__annotations_cache__"})
"""What a class has in place of annotations from Python 3.14 on, which computes them when they are read."""


def annotations_of(value: Any) -> dict[str, Any]:
    """Return the annotations of a function or class; a class's own, not its bases'."""
    try:
        inside = vars(value) if isinstance(value, type) else {}
        own = not isinstance(value, type) or not inside.keys().isdisjoint(COMPUTED)
        found = value.__annotations__ if own else inside.get("__annotations__")
    except Exception:  # a name in them may not be defined
        return {"": getattr(value, "__annotate__", None)}
    return dict(found) if isinstance(found, dict) else {}


def full_name(name: str, level: int, scope: dict[str, Any]) -> str:
    """Return the full name of a module that an import statement names."""
    with contextlib.suppress(ImportError, ValueError):
        if level:
            return importlib.util.resolve_name("." * level + name, scope.get("__package__") or "")
    return name


def is_simple(value: Any) -> bool:
    """Tell whether a value is a list, tuple or dict of values that cannot change."""
    items = [*value, *value.values()] if type(value) is dict else value
    return type(value) in (list, tuple, dict) and all(type(item) in ATOMS for item in items)


def scope_of(owner: Any) -> Any:
    """Return a function's globals, or the dict with the attributes of a module, class or object."""
    if type(owner) is types.FunctionType:
        return owner.__globals__
    return owner if type(owner) is dict else vars(owner)
