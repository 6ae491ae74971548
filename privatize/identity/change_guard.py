"""Telling quickly that a function is still what it was.

A fingerprint looks at everything that could change what a function computes, at every call. Most of that is
in few places: the function's code, names, docstring, annotations and defaults, its closure, the globals that
it names. Where these hold nothing but values that cannot change, modules with a version, and other such
functions, the fingerprint is the same for as long as each place holds the very same object, and that is seen
in a tenth of the time. All other functions have no watch, and their fingerprint is taken.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from privatize.identity import accessors
from privatize.identity.accessors import is_own
from privatize.identity.bytecode import code_of
from privatize.identity.bytecode import words_in_annotations as spelled
from privatize.identity.encoder import Read
from privatize.identity.graph import ATOMS, values_in
from privatize.identity.graph import DESCRIPTION as NAMES
from privatize.identity.graph import is_simple as simple
from privatize.identity.origin import is_builtin, is_installed, origin, patched
from privatize.identity.reachable import FEW
from privatize.identity.settings import CONFIGURED, NAMED, pandas_options

__all__ = ["Watch", "watch"]

_NOTHING = object()
_ARRAYS = frozenset({"python", "numpy", "scipy", "privatize"})  # whose functions return nothing but arrays


class Watch:
    """The places that a function's fingerprint depends on, and what they held; made by `watch`."""

    __slots__ = (
        *(
            "_cells",
            "_classes",
            "_errors",
            "_functions",
            "_libraries",
            "_modules",
            "_names",
            "_options",
            "_places",
        ),
        "_scopes",
    )

    # It holds on to functions and modules, never to their scopes, which may have anything in them.
    def __init__(self) -> None:
        self._errors = np.geterr()
        self._functions: list[tuple[types.FunctionType, Any, Any, _Said, list[tuple[str, Any]]]] = []
        self._cells: list[tuple[types.CellType, Any]] = []
        self._places: list[tuple[types.ModuleType | None, str, Any]] = []  # of modules, None for sys.modules
        self._scopes: list[tuple[type, Any, str, Any]] = []  # what named attributes are on libraries' classes
        self._options: str | None = None
        # What these follow from: attributes in the code, classes that it names, libraries it gets objects of.
        self._names: set[str] = set()
        self._classes: list[type] = []
        self._modules: list[types.ModuleType] = []
        self._libraries: set[str] | None = set()  # or any

    def same(self) -> bool:
        """Tell whether every place holds what it held."""
        for function, code, defaults, said, names in self._functions:
            if (
                function.__code__ is not code
                or function.__defaults__ is not defaults
                or function.__kwdefaults__
                or function.__dict__
                or not all(map(operator.is_, _said(function), said))
            ):
                return False
            scope = function.__globals__
            for name, value in names:
                if scope.get(name, _NOTHING) is not value:
                    return False
        for owner, name, value in self._places:
            if name == "__name__" and type(owner) is not types.ModuleType:  # it may make up attributes by now
                return False
            if (sys.modules if owner is None else owner.__dict__).get(name, _NOTHING) is not value:
                return False
        for _, scope, name, value in self._scopes:
            if scope.get(name, _NOTHING) is not value:
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
        found = [((id(cell), ""), value) for cell, value in self._cells]
        for function, code, defaults, said, names in self._functions:
            found += [((id(function), "its code"), code), ((id(function), "its defaults"), defaults)]
            found += [((id(function), name), value) for name, value in zip(NAMES, said, strict=False)]
            found += [((id(function), name), value) for name, value in names]
        for owner, name, value in self._places:
            found.append(((id(sys.modules if owner is None else owner), name), value))
        found += [((id(kind), name), value) for kind, _, name, value in self._scopes]
        return all(read.get(place, _NOTHING) is value for place, value in found)

    def held(self) -> Iterator[tuple[types.FunctionType, dict[str, Any], list[tuple[str, Any, Any]]]]:
        """Yield the functions with what their globals held, and their cells (names, cells, contents)."""
        contents = {id(cell): value for cell, value in self._cells}
        for function, code, _, _, names in self._functions:
            cells = zip(code.co_freevars, function.__closure__ or (), strict=False)
            known = [(name, cell, contents[id(cell)]) for name, cell in cells if id(cell) in contents]
            yield function, {name: value for name, value in names if value is not _NOTHING}, known

    def _note(self, owner: types.ModuleType | None, name: str) -> Any:
        value = (sys.modules if owner is None else vars(owner)).get(name, _NOTHING)
        self._places.append((owner, name, value))
        return value

    def _settled(self, value: Any) -> bool:
        """Tell whether a value can be watched, and watch what it is made of."""
        kind = type(value)
        if kind in ATOMS or kind is tuple:
            # Others could be a copy of the private data, for which the fingerprint looks.
            return kind not in (tuple, bytes) or (
                len(value) < FEW and (kind is bytes or all(map(self._settled, value)))
            )
        if kind in (types.GenericAlias, types.UnionType):
            return all(map(self._settled, value.__args__)) and self._settled(
                getattr(value, "__origin__", None)
            )
        if kind is type:  # the types that a fingerprint knows by name
            static = not value.__flags__ & 1 << 9
            return static and origin(value.__module__) is not None
        if kind is types.ModuleType:
            whose = origin(value.__name__)
            if value.__name__.partition(".")[0] in CONFIGURED:
                return False
            if whose is not None and whose.partition(" ")[0] not in _ARRAYS:
                self._libraries = None  # it may return objects of any
            if not any(value is known for known in self._modules):
                self._modules.append(value)
            return whose is not None and self._note(value, "__name__") is value.__name__
        return kind is types.FunctionType and self._function(value)

    def _function(self, function: types.FunctionType) -> bool:
        if any(function is known for known, *_ in self._functions):
            return True
        said, code = _said(function), function.__code__
        globals_: list[tuple[str, Any]] = []
        self._functions.append((function, code, function.__defaults__, said, globals_))
        if type(function.__globals__) is not dict:  # it may look names up in its own way
            return False
        if getattr(function, "__builtins__", None) is not vars(builtins):
            return False
        if function.__kwdefaults__ or function.__dict__ or is_installed(code.co_filename) or origin(said[0]):
            return False
        names, attributes, imports, chains = code_of(code)[:4]
        self._names.update(attributes)
        # What is looked up by computed names, and what counts only where it is named, the fingerprint sees.
        if imports or not NAMED.isdisjoint(attributes) or any(" by " in each for each in attributes):
            return False
        contents = []
        for cell in function.__closure__ or ():
            try:
                contents.append(cell.cell_contents)
            except ValueError:  # not yet filled
                return False
            self._cells.append((cell, contents[-1]))
        if not all(map(self._settled, (function.__defaults__, *contents, *said))):
            return False
        scope = function.__globals__
        for name in spelled(function.__annotations__):
            globals_.append((name, scope.get(name, _NOTHING)))
            if not (globals_[-1][1] is _NOTHING or self._settled(globals_[-1][1])):
                return False
        for name in names:
            found = scope.get(name, _NOTHING)
            globals_.append((name, found))
            if found is _NOTHING:
                if not is_builtin(name):
                    return False
                self._places.append((builtins, name, vars(builtins)[name]))
            elif not self._settled(found):
                return False
        for name in attributes:  # a module of the user's own that it may look up
            if self._note(None, name) is not _NOTHING and origin(name) is None:
                return False
        cells = dict(zip(code.co_freevars, contents, strict=True))
        return all(self._chain(cells.get(root, scope.get(root)), chain) for root, chain in chains)

    def _chain(self, found: Any, chain: tuple[str, ...]) -> bool:
        """Watch what is read from installed modules: somebody may have patched it, or will."""
        for attribute in chain:
            if not isinstance(found, types.ModuleType):
                return True
            found = self._note(found, attribute)
            if isinstance(found, type) and "_abc_impl" in vars(found):  # classes may be registered with it
                return False
            changeable = found is not _NOTHING and type(found) not in ATOMS
            if changeable and (is_own(found) or patched(found) or simple(found)):
                return False
            if isinstance(found, type):
                self._classes.append(found)
        return True

    def _registered(self, libraries: Iterable[str]) -> bool:
        """Watch what the user may have registered, or will, on classes of libraries."""
        wanted = None if self._libraries is None else set(libraries)
        for kind, scope in accessors.scopes_of(wanted, self._classes):
            for name in self._names:
                found = scope.get(name, _NOTHING)
                if found is not _NOTHING and type(found) not in ATOMS and is_own(found):
                    return False
                if not name.startswith("__"):
                    self._scopes.append((kind, scope, name, found))
        for owner, _, _, found in values_in(self._modules, self._names):
            # What may change without any place holding something else.
            fixed = type(found) in ATOMS or isinstance(found, type)
            if not fixed or not any(owner is module for module in self._modules):
                return False
        for module in self._modules:
            for name in self._names:
                self._note(module, name)
        self._options = pandas_options() if wanted is None or "pandas" in wanted else None
        return True


_Said = tuple[Any, ...]


def _said(function: types.FunctionType) -> _Said:
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


def watch(function: Any, libraries: Iterable[str] = ("numpy",)) -> Watch | None:
    """Return a watch over a function, or None if a watch would not see every change.

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
    >>> watched = watch(program["share"])
    >>> watched.same()
    True
    >>> program["limit"] = 66
    >>> watched.same()
    False
    """
    made = Watch()
    try:
        if type(function) is types.FunctionType and made._function(function) and made._registered(libraries):
            return made
        return None
    except Exception:  # whatever is odd about it, the fingerprint says so
        return None
