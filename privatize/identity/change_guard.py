"""Telling quickly that a function is still what it was.

A fingerprint looks at everything that could change what a function computes, at every call. Most of that is
in few places: the function's code, names, docstring, annotations and defaults, its closure, the globals that
it names. Where these hold nothing but values that cannot change, modules with a version, and other such
functions, the fingerprint is the same for as long as each place holds the very same object, and that is seen
in a tenth of the time. All other functions have no guard, and their fingerprint is taken.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from privatize.identity.accessors import is_own, scopes_of
from privatize.identity.bytecode import code_of, words_in_annotations
from privatize.identity.copies import FEW
from privatize.identity.encoder import Read
from privatize.identity.graph import ATOMS, DESCRIPTION, NOTHING, cells_of, is_simple, values_in
from privatize.identity.origin import is_builtin, is_installed, is_static, origin, owner_of, patched
from privatize.identity.places import keeps
from privatize.identity.settings import CONFIGURED, NAMED, pandas_options

__all__ = ["ChangeGuard", "guard"]

_ARRAYS = frozenset({"python", "numpy", "scipy", "privatize"})  # whose functions return nothing but arrays

Description = tuple[Any, ...]


class ChangeGuard:
    """The places that a function's fingerprint depends on, and what they held; made by `guard`.

    Attributes
    ----------
    simple : bool
        Whether the function can change nothing but what is seen here.
    """

    def __init__(self) -> None:
        self.simple = False
        self._errors = np.geterr()
        self._options: str | None = None
        self._functions: list[tuple[types.FunctionType, types.CodeType, Any, Description]] = []
        self._cells: list[tuple[types.CellType, Any]] = []
        self._modules: list[types.ModuleType] = []
        self._places: list[tuple[Any, Any, str, Any]] = []  # owners, their scopes, names and values

    def same(self) -> bool:
        """Tell whether every place holds what it held."""
        for function, code, defaults, described in self._functions:
            if (
                function.__code__ is not code
                or function.__defaults__ is not defaults
                or function.__kwdefaults__
                or function.__dict__
                or not all(map(operator.is_, _describe(function), described))
            ):
                return False
        for _, scope, name, value in self._places:
            if scope.get(name, NOTHING) is not value:
                return False
        for module in self._modules:
            if type(module) is not types.ModuleType:  # it may make up attributes by now
                return False
        if np.geterr() != self._errors:
            return False
        if self._options is not None and pandas_options() != self._options:
            return False
        try:
            return all(cell.cell_contents is value for cell, value in self._cells)
        except ValueError:  # one is empty by now
            return False

    def saw(self, read: Read) -> bool:
        """Tell whether a fingerprint found the same in all places, which may have changed to and fro."""
        found: list[tuple[Any, str, Any]] = [(cell, "", value) for cell, value in self._cells]
        found += [(owner, name, value) for owner, _, name, value in self._places]
        for function, code, defaults, described in self._functions:
            found += [(function, "its code", code), (function, "its defaults", defaults)]
            found += [(function, name, value) for name, value in zip(DESCRIPTION, described, strict=False)]
        return all(read.get((id(owner), name), NOTHING) is value for owner, name, value in found)

    def held(self) -> Iterator[tuple[types.FunctionType, dict[str, Any], list[tuple[str, Any, Any]]]]:
        """Yield the functions with what their globals held, and their cells (names, cells, contents)."""
        contents = {id(cell): value for cell, value in self._cells}
        for function, code, *_ in self._functions:
            cells = zip(code.co_freevars, function.__closure__ or (), strict=False)
            known = [(name, cell, contents[id(cell)]) for name, cell in cells if id(cell) in contents]
            names = [each[2:] for each in self._places if each[0] is function and each[3] is not NOTHING]
            yield function, dict(names), known


def _describe(function: types.FunctionType) -> Description:
    """Return a function's names, docstring and annotations."""
    annotations = function.__annotations__
    return (
        function.__module__,
        function.__name__,
        function.__qualname__,
        function.__doc__,
        getattr(function, "__type_params__", None),
        *annotations,
        *annotations.values(),
        None,  # so that more annotations than before are seen
    )


class _UnguardedError(Exception):
    """A guard would not see every change."""


def _require(fixed: bool) -> None:
    if not fixed:
        raise _UnguardedError


class _Recorder(ChangeGuard):
    """A guard while it is made: it notes what it meets, and raises if that may change unnoticed."""

    def __init__(self) -> None:
        super().__init__()
        # What else counts follows from these: attributes in the code, classes that it names, and whether it
        # gets objects of any library.
        self._names: set[str] = set()
        self._classes: list[type] = []
        self._any_library = False

    def _place(self, owner: Any, scope: Any, name: str) -> Any:
        value = scope.get(name, NOTHING)
        self._places.append((owner, scope, name, value))
        return value

    def _value(self, value: Any) -> None:
        kind = type(value)
        if kind in (
            tuple,
            bytes,
        ):  # others could be a copy of the private data, for which the fingerprint looks
            _require(len(value) < FEW)
        if kind is tuple:
            for item in value:
                self._value(item)
        elif kind in (types.GenericAlias, types.UnionType):
            self._value((value.__args__, getattr(value, "__origin__", None)))
        elif kind is type:  # the types that a fingerprint knows by name
            _require(is_static(value) and owner_of(value) is not None)
        elif kind is types.ModuleType:
            self._module(value)
        elif kind is types.FunctionType:
            self.function(value)
        else:
            _require(kind in ATOMS)

    def _module(self, value: types.ModuleType) -> None:
        owner = origin(value.__name__)
        _require(owner is not None and value.__name__.partition(".")[0] not in CONFIGURED)
        _require(self._place(value, vars(value), "__name__") is value.__name__)
        self._any_library |= str(owner).partition(" ")[0] not in _ARRAYS
        if not any(value is known for known in self._modules):
            self._modules.append(value)

    def function(self, function: types.FunctionType) -> None:
        """Note a function, and what it refers to."""
        if any(function is known for known, *_ in self._functions):
            return
        described, code, scope = _describe(function), function.__code__, function.__globals__
        found = code_of(code)
        self._functions.append((function, code, function.__defaults__, described))
        self._names.update(found.attributes)
        # It may look names up in its own way.
        _require(type(scope) is dict and getattr(function, "__builtins__", None) is vars(builtins))
        _require(not function.__kwdefaults__ and not function.__dict__)
        _require(not is_installed(code.co_filename) and origin(described[0]) is None)
        # What is looked up by computed names, and what counts only where it is named, the fingerprint sees.
        _require(not found.imports and NAMED.isdisjoint(found.attributes))
        _require(not any(" by " in each for each in found.attributes))
        cells = {name: content for name, _, content in cells_of(function)}
        self._cells += [(cell, content) for _, cell, content in cells_of(function)]
        for value in (function.__defaults__, *cells.values(), *described):  # an empty cell is refused as well
            self._value(value)
        for name in (*found.names, *words_in_annotations(function.__annotations__)):
            value = self._place(function, scope, name)
            if value is not NOTHING:
                self._value(value)
            elif name in found.names:
                _require(is_builtin(name))
                self._place(builtins, vars(builtins), name)
        for name in found.attributes:  # a module of the user's own that it may look up
            known = self._place(sys.modules, sys.modules, name)
            _require(known is NOTHING or origin(name) is not None)
        for root, chain in found.chains:
            self._chain(cells.get(root, scope.get(root)), chain)

    def _chain(self, found: Any, chain: tuple[str, ...]) -> None:
        """Note what is read from installed modules: somebody may have patched it, or will."""
        for attribute in chain:
            if not isinstance(found, types.ModuleType):
                return
            found = self._place(found, vars(found), attribute)
            if found is not NOTHING and type(found) not in ATOMS:
                _require(not (is_own(found) or patched(found) or is_simple(found)))
            if isinstance(found, type):
                _require("_abc_impl" not in vars(found))  # classes may be registered with it
                self._classes.append(found)

    def finish(self, libraries: Iterable[str]) -> None:
        """Note what the user may have put, or will, into installed modules and classes."""
        wanted = None if self._any_library else set(libraries)
        self._options = pandas_options() if wanted is None or "pandas" in wanted else None
        for owner, _, _, found in values_in(self._modules, self._names):
            # Others may change without any place holding something else.
            _require(type(found) in ATOMS or isinstance(found, type))
            _require(any(owner is module for module in self._modules))
        for module in self._modules:
            for name in self._names:
                self._place(module, vars(module), name)
        self.simple = not any(
            keeps(each[3]) for each in self._places if isinstance(each[0], types.ModuleType | dict)
        ) and not any(code_of(code).sets_attributes for _, code, *_ in self._functions)
        for kind, scope in scopes_of(wanted, self._classes):
            for name in self._names:
                found = scope.get(name, NOTHING)
                _require(found is NOTHING or type(found) in ATOMS or not is_own(found))
                if not name.startswith("__"):
                    self._places.append((kind, scope, name, found))


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
    made = _Recorder()
    try:
        _require(type(function) is types.FunctionType)
        made.function(function)
        made.finish(libraries)
    except Exception:  # whatever is odd about it, the fingerprint says so
        return None
    return made
