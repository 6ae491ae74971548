"""Telling quickly that a function is still what it was.

A fingerprint looks at everything that could change what a function computes, at every call. Most of that is
in few places: the function's code, names, docstring, annotations and defaults, its closure, the globals that
it names. Where these hold nothing but values that cannot change, modules with a version, and other such
functions, the fingerprint is the same for as long as each place holds the very same object, and that is seen
in a tenth of the time. All other functions have no guard, and their fingerprint is taken.
"""

import builtins
import operator
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privatize.identity.bytecode import code_of
from privatize.identity.completion import follow
from privatize.identity.copies import FEW
from privatize.identity.encoder import Encoder, Read
from privatize.identity.graph import ATOMS, DESCRIPTION, NOTHING, cells_of, scope_of
from privatize.identity.library import LIBRARY
from privatize.identity.origin import is_installed, is_static, origin, owner_of
from privatize.identity.places import keeps
from privatize.identity.settings import CONFIGURED, NAMED, pandas_options

Described = dict[types.FunctionType, tuple[Any, ...]]

_ARRAYS = frozenset({"", "python", "numpy", "scipy", LIBRARY})  # whose functions return nothing but arrays


class ChangeGuard:
    """The places that a function's fingerprint depends on, and what they held; made by `guard`.

    Attributes
    ----------
    simple : bool
        Whether the function can change nothing but what is seen here.
    """

    def __init__(self, read: Read, described: Described, pandas: bool) -> None:
        found = [(owner, name, value) for (_, name), (owner, value) in read.items()]
        self._read, self._described = read, described
        self._cells = [(each, value) for each, _, value in found if type(each) is types.CellType]
        self._modules = {id(each): each for each, *_ in found if isinstance(each, types.ModuleType)}
        self._places = [
            (scope_of(each), name, value)
            for each, name, value in found
            if type(each) is not types.CellType and not name.startswith("its ")
        ]
        self._errors, self._options = np.geterr(), pandas_options() if pandas else None
        held = [value for each, _, value in found if isinstance(each, types.ModuleType | dict)]
        sets_attributes = any(code_of(function.__code__).sets_attributes for function in described)
        self.simple = not sets_attributes and not any(map(keeps, held))

    def same(self) -> bool:
        """Tell whether every place holds what it held."""
        for function, described in self._described.items():
            if function.__kwdefaults__ or function.__dict__:
                return False
            if not all(map(operator.is_, _describe(function), described)):
                return False
        for scope, name, value in self._places:
            if scope.get(name, NOTHING) is not value:
                return False
        for module in self._modules.values():
            if type(module) is not types.ModuleType:  # it may make up attributes by now
                return False
        try:
            cells = all(cell.cell_contents is value for cell, value in self._cells)
        except ValueError:  # one is empty by now
            return False
        options = self._options is None or pandas_options() == self._options
        return cells and options and np.geterr() == self._errors

    def saw(self, read: Read) -> bool:
        """Tell whether a fingerprint found the same in all places, which may have changed to and fro."""
        missing = None, NOTHING
        return all(read.get(place, missing)[1] is value for place, (_, value) in self._read.items())

    def held(self) -> Iterator[tuple[types.FunctionType, dict[str, Any], list[tuple[str, Any, Any]]]]:
        """Yield the functions with what their globals held, and their cells (names, cells, contents)."""
        for function in self._described:
            places = [(name, value) for (_, name), (owner, value) in self._read.items() if owner is function]
            names = {name: value for name, value in places if not name.startswith("its ")}
            cells = [(name, cell, self._read[id(cell), ""][1]) for name, cell, _ in cells_of(function)]
            yield function, {name: value for name, value in names.items() if value is not NOTHING}, cells


_facts = operator.attrgetter("__code__", "__defaults__", "__module__", "__name__", "__qualname__", "__doc__")


def _describe(function: types.FunctionType) -> tuple[Any, ...]:
    """Return a function's code, defaults, names, docstring and annotations."""
    annotations = function.__annotations__
    types_of = getattr(function, DESCRIPTION[-1], None)
    # The end is marked, so that more annotations than before are seen.
    return (*_facts(function), types_of, *annotations, *annotations.values(), None)


class _UnguardedError(Exception):
    """A guard would not see every change."""


@dataclass(eq=False)
class _Recorder(Encoder):
    """A walk over a function that notes every place, and raises if what it holds may change unnoticed."""

    described: Described = field(default_factory=dict)

    def encode(self, value: Any) -> None:
        """Walk over a value."""
        kind = type(value)
        if kind in (types.GenericAlias, types.UnionType):
            self.encode((value.__args__, getattr(value, "__origin__", None)))
        elif not _is_fixed(value):
            raise _UnguardedError
        elif kind is not type:
            if kind is types.FunctionType:
                self.described.setdefault(value, _describe(value))
            super().encode(value)


def _is_fixed(value: Any) -> bool:
    """Tell whether a value changes only where a place holds another one."""
    kind = type(value)
    if kind in (tuple, bytes):  # it could be a copy of the private data, for which the fingerprint looks
        return len(value) < FEW
    if kind is type:  # the types that a fingerprint knows by name
        return is_static(value) and owner_of(value) is not None
    if kind is types.ModuleType:
        return origin(value.__name__) is not None and value.__name__.partition(".")[0] not in CONFIGURED
    return kind in ATOMS or (kind is types.FunctionType and _is_guardable(value))


def _is_guardable(function: types.FunctionType) -> bool:
    """Tell whether a function of the user's own looks things up in the usual way, by names that it spells."""
    if type(function.__globals__) is not dict or getattr(function, "__builtins__", None) is not vars(
        builtins
    ):
        return False
    if function.__kwdefaults__ or function.__dict__ or owner_of(function) is not None:
        return False
    code = code_of(function.__code__)
    # What is looked up by computed names, and what counts only where it is named, the fingerprint sees.
    computed = code.imports or any(" by " in each for each in code.attributes)
    return not (computed or is_installed(function.__code__.co_filename)) and NAMED.isdisjoint(code.attributes)


def guard(function: Any, libraries: Iterable[str] = ("numpy",)) -> ChangeGuard | None:
    """Return a guard over a function, or None if a guard would not see every change.

    Parameters
    ----------
    function : callable
        Any.
    libraries : iterable of str
        The packages that the data is from.

    Examples
    --------
    >>> program = {"__name__": "__main__", "limit": 65}
    >>> exec("def share(ages): return (ages >= limit).mean()", program)
    >>> guarded = guard(program["share"])
    >>> guarded.same()
    True
    >>> program["limit"] = 66
    >>> guarded.same()
    False
    """
    read: Read = {}
    walk = _Recorder(read=read)
    met = walk.met
    try:
        walk.encode(function)
        if met.libraries <= _ARRAYS:  # otherwise it may get objects of any
            walk.libraries = frozenset(libraries)
        follow(walk)
    except Exception:  # whatever is odd about it, the fingerprint says so
        return None
    registering = any("_abc_impl" in vars(kind) for kind in met.classes.values())
    undefined = any(owner is builtins and value is NOTHING for owner, value in read.values())
    if type(function) is not types.FunctionType or met.modules or met.lookups or registering or undefined:
        return None
    return ChangeGuard(read, walk.described, walk.libraries is None or "pandas" in walk.libraries)
