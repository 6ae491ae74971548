"""Check quickly that a function has not changed since its fingerprint was taken.

A fingerprint reads everything that could change what a function computes, at every call. Most of that is in
few places: the function's code, names, docstring, annotations and defaults, its closure, the globals that it
names. If these contain only values that cannot change, modules with a version and their classes, and other
such functions, the fingerprint is the same for as long as each place contains the very same object. Comparing
them takes a tenth of the time. The same goes for methods that set no attributes, if the classes of their
object are plain and contain only such values, too. All other functions have no guard, and their fingerprint
is taken each time.
"""

import builtins
import functools
import operator
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privatize.identity import graph, places
from privatize.identity.bytecode import code_of, words
from privatize.identity.classes import SKIPPED, own_attributes
from privatize.identity.completion import follow
from privatize.identity.copies import FEW
from privatize.identity.encoder import Encoder, Read
from privatize.identity.graph import NOTHING, annotations_of, content_of, parts_of
from privatize.identity.library import LIBRARY, Wrapper
from privatize.identity.origin import (
    is_compiled,
    is_installed,
    is_named,
    is_static,
    module_of,
    origin,
    owner_of,
)
from privatize.identity.reachable import could_be_data
from privatize.identity.settings import CONFIGURED, NAMED, pandas_options, settings_for

Described = dict[types.FunctionType, tuple[Any, ...]]

_ARRAYS = frozenset({"", "python", "numpy", "scipy", LIBRARY})  # their functions return only arrays
# What `functools.wraps` copies: from Python 3.14 on, what computes the annotations.
_COPIED = next(name for name in functools.WRAPPER_ASSIGNMENTS if name.startswith("__annot"))
_PLAIN = SKIPPED | words("__module__ __doc__ __init__")  # special names that a plain class may have


class ChangeGuard:
    """The places that a function's fingerprint depends on, and their values; made by `guard`.

    Attributes
    ----------
    simple : bool
        Whether the function can change nothing but the places in this guard.
    """

    def __init__(self, walk: "_Recorder", read: Read) -> None:
        found = [(owner, name, value) for (_, name), (owner, value) in read.items()]
        self._read, self._described, self._owners = read, walk.described, walk.owners
        self._cells = [(each, value) for each, _, value in found if type(each) is types.CellType]
        modules = {id(each): each for each, *_ in found if isinstance(each, types.ModuleType)}
        self._modules = list(modules.values())
        self._places = [
            (graph.scope_of(each), name, value)
            for each, name, value in found
            if type(each) is not types.CellType and not name.startswith("its ")
        ]
        pandas = walk.libraries is None or "pandas" in walk.libraries
        self._errors, self._options = np.geterr(), pandas_options() if pandas else None
        self._named = NAMED & walk.met.attributes  # only `str`, which depends on how arrays are printed
        self._settings = settings_for(self._named, frozenset())
        values = [value for each, _, value in found if isinstance(each, types.ModuleType | dict)]
        self.simple = not walk.sets_attributes() and not any(map(places.may_keep_data, values))

    def same(self) -> bool:
        """Tell whether every place still contains the same object."""
        # Written as loops, because it runs three times in every call.
        for function, before in self._described.items():
            if not _are_same(_describe(function), before):
                return False
        for owner, _, parts in self._owners:  # classes first: they could make up their object's attributes
            if not _are_same(parts_of(owner, type(owner), _attributes_of(owner)), parts):
                return False
        for scope, name, value in self._places:
            if scope.get(name, NOTHING) is not value:
                return False
        for module in self._modules:  # one of another class could make up its attributes as well
            if type(module) is not types.ModuleType:
                return False
        for cell, value in self._cells:
            if content_of(cell) is not value:
                return False
        if self._named and settings_for(self._named, frozenset()) != self._settings:
            return False
        options = self._options is None or pandas_options() == self._options
        return options and np.geterr() == self._errors

    def saw(self, read: Read) -> bool:
        """Tell whether a fingerprint read the same objects; a place may have changed and changed back."""
        missing = None, NOTHING
        found = [(read.get(place, missing)[1], value) for place, (_, value) in self._read.items()]
        changed = [(now, value) for now, value in found if now is not value]
        # Lists of parts are made each time. There are no other lists: a place with a list has no guard.
        return all(type(now) is type(value) is list and _are_same(now, value) for now, value in changed)

    def put_back(self) -> list[str]:
        """Restore what changed during a private run, and return the names of the places."""
        if self.same():
            return []
        noted, stored, spelled = [], set[str](), {"cell_contents"}
        for function in self._described:
            found = [(name, value) for (_, name), (owner, value) in self._read.items() if owner is function]
            names = [(name, value) for name, value in found if not name.startswith("its ")]
            before = {name: value for name, value in names if value is not NOTHING}
            noted.append(places.globals_of(function, before))
            for name, cell, _ in graph.cells_of(function):
                noted.append(places.variable(cell, name, self._read[id(cell), ""][1]))
            stored |= code_of(function.__code__).stores
            spelled |= before.keys()
        for owner, before, _ in self._owners:
            label = owner.__name__ if issubclass(type(owner), type | Wrapper) else "self"
            noted.append(places.attributes_of(owner, label, functools.partial(_attributes_of, owner)))
            noted[-1].before = before
        return places.put_back(noted, stored, spelled) or ["something that it refers to"]


_facts = operator.attrgetter("__code__", "__defaults__", "__module__", "__name__", "__qualname__", "__doc__")


def _describe(function: types.FunctionType) -> tuple[Any, ...]:
    """Return a function's code, defaults, names, docstring, attributes and annotations."""
    annotations = annotations_of(function)
    types_of = getattr(function, graph.DESCRIPTION[-1], None)
    rare = function.__kwdefaults__ or None, function.__dict__ or None  # a guarded function has neither
    return (*_facts(function), types_of, *rare, *annotations, *annotations.values())


def _attributes_of(owner: Any) -> dict[str, Any]:
    """Return the attributes of one of the user's own objects, classes or private functions."""
    if issubclass(type(owner), Wrapper):
        wrapped, settings, attributes = owner._identity()
        return {**attributes, "__wrapped__": wrapped, "_settings": settings}
    return own_attributes(owner) if isinstance(owner, type) else vars(owner).copy()


def _are_same(now: Sequence[Any], before: Sequence[Any]) -> bool:
    """Tell whether two sequences consist of the very same objects."""
    return len(now) == len(before) and all(map(operator.is_, now, before))


class _UnguardedError(Exception):
    """A guard would not see every change."""


@dataclass(eq=False)
class _Recorder(Encoder):
    """A walk over a function that notes every place, and raises if a value there may change unnoticed."""

    described: Described = field(default_factory=dict)
    shared: set[types.FunctionType] = field(default_factory=set)  # functions that were met more than once
    # A method's classes and object, and private functions, with their attributes and all their parts.
    owners: list[tuple[Any, dict[str, Any], list[Any]]] = field(default_factory=list)

    def enter(self, value: Any) -> None:
        """Walk over a method's object, and the classes that its attributes are looked up in."""
        kinds = type(value).__mro__[:-1]
        for owner in (*kinds, value):
            if owner is not value and not _is_plain(owner):
                raise _UnguardedError
            self.state(self.note_parts(owner, type(owner), self._note_owner(owner)))
        if type(value).__mro__[:-1] != kinds:  # another thread has changed them
            raise _UnguardedError

    def _note_owner(self, owner: Any) -> dict[str, Any]:
        attributes = _attributes_of(owner)
        self.owners.append((owner, attributes, parts_of(owner, type(owner), attributes)))
        return attributes

    def sets_attributes(self) -> bool:
        """Tell whether code that a run can call sets attributes.

        A run cannot call `__init__` if no other code names types or special methods.
        """
        inits = {each.get("__init__") for owner, each, _ in self.owners if type(owner) is type} - self.shared
        codes = [code_of(function.__code__) for function in self.described.keys() - inits]
        named = [name for code in codes for name in code.attributes if self.owners]
        makes = any(name == "type" or name.startswith("__") for name in named)
        return makes or any(code.sets_attributes for code in codes)

    def encode(self, value: Any) -> None:
        """Walk over a value."""
        kind = type(value)
        if kind in (types.GenericAlias, types.UnionType):
            self.encode((value.__args__, getattr(value, "__origin__", None)))
        elif issubclass(kind, Wrapper) and owner_of(kind) == LIBRARY:
            self._private(value)
        elif not _is_fixed(value):
            raise _UnguardedError
        elif value is str or not (kind is type and is_static(value)):
            if kind is types.FunctionType:
                self.shared |= self.described.keys() & {value}
                self.described.setdefault(value, _describe(value))
            super().encode(value)

    def _private(self, value: Any) -> None:
        """Walk over a private function, such as another method of the class."""
        found = self._note_owner(value)
        settings, wrapped, before = found["_settings"], found["__wrapped__"], len(self.compared)
        super().encode(settings.key)  # if something in the key could change, it is a list, which is refused
        if any(map(could_be_data, self.compared[before:])):  # only the fingerprint compares it with the data
            raise _UnguardedError
        known = {id(settings), id(getattr(wrapped, _COPIED))}  # they belong to the raw function
        self.state({name: each for name, each in found.items() if id(each) not in known})


def _is_plain(kind: type) -> bool:
    """Tell whether a class is the user's own, and its objects have attributes in the usual way."""
    inside = vars(kind)
    special = {name for name in inside if name.startswith("__") and name.endswith("__")}
    usual = special <= _PLAIN and isinstance(inside.get("__dict__"), types.GetSetDescriptorType | None)
    return usual and type(kind) is type and owner_of(kind) is None and not is_compiled(kind)


def _is_fixed(value: Any) -> bool:
    """Tell whether a value never changes, so that it is enough to compare which object a place contains."""
    kind = type(value)
    if kind in (tuple, bytes):  # a longer one could be a copy of private data: see `copies`
        return len(value) < FEW
    if issubclass(kind, type):
        return _is_known(value)
    if kind is types.ModuleType:
        return origin(value.__name__) is not None and value.__name__.partition(".")[0] not in CONFIGURED
    return kind in graph.ATOMS or (kind is types.FunctionType and _is_guardable(value))


def _is_known(kind: type) -> bool:
    """Tell whether a fingerprint knows a class by its name, and reads nothing else but attributes by name."""
    owner = owner_of(kind)
    if owner is None or (kind.__name__ in NAMED and kind is not str):  # settings change what it computes
        return False
    if type(kind) is type and is_static(kind):
        return True
    made = owner_of(type(kind)) is not None and is_named(kind, module_of(kind), kind.__qualname__)
    return made and owner.partition(" ")[0] not in (LIBRARY, *CONFIGURED)


def _is_guardable(function: types.FunctionType) -> bool:
    """Tell whether a function of the user's own looks things up in the usual way, by names in its code."""
    usual = type(function.__globals__) is dict and getattr(function, "__builtins__", None) is vars(builtins)
    if not usual or function.__kwdefaults__ or function.__dict__ or owner_of(function) is not None:
        return False
    code = code_of(function.__code__)
    # Only the fingerprint sees what computed names find, and state that counts only if it is named.
    computed = code.imports or any(" by " in each for each in code.attributes)
    return not (computed or is_installed(function.__code__.co_filename)) and NAMED.isdisjoint(code.attributes)


def guard(function: Any, libraries: Iterable[str] = ("numpy",)) -> ChangeGuard | None:
    """Return a guard over a function or method, or None if a guard would not see every change.

    Parameters
    ----------
    function : callable
        Any callable.
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
    bound = type(function) is types.MethodType
    try:
        if bound:
            walk.enter(function.__self__)
            function = function.__func__
        walk.encode(function)
        if met.libraries <= _ARRAYS:  # otherwise it may get objects of any library
            walk.libraries = frozenset(libraries)
        follow(walk)
    except Exception:  # the fingerprint reports what is wrong
        return None
    registering = any("_abc_impl" in vars(kind) for kind in met.classes.values())
    undefined = any(owner is builtins and value is NOTHING for owner, value in read.values())
    if type(function) is not types.FunctionType or met.modules or met.lookups or registering or undefined:
        return None
    found = ChangeGuard(walk, read)
    return None if bound and not found.simple else found
