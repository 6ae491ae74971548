"""Encode what code can read beyond what it refers to: in modules, in patched libraries, in the process."""

import itertools
import sys
import types
from collections.abc import Iterator
from typing import Any

from privatize.identity.accessors import is_own, is_value, scopes_of
from privatize.identity.bytecode import words
from privatize.identity.encoder import Encoder
from privatize.identity.graph import ATOMS, NOTHING, is_simple
from privatize.identity.origin import attribute_of, name_of, origin, owner_of
from privatize.identity.settings import PROCESS, settings_for

_WRITTEN_BY_PYTHON = words("__builtins__ __loader__ __spec__ __cached__ __warningregistry__ __file__")
LOGGED = words("isEnabledFor getEffectiveLevel level disabled handlers hasHandlers")


class Done(set[tuple[int, str]]):
    """The names that were looked up already, with the ids of what they were looked up in."""

    def new(self, owner: Any, name: str) -> bool:
        """Tell whether a name is looked up for the first time."""
        before = len(self)
        self.add((id(owner), name))
        return len(self) > before


def complete(encoder: Encoder) -> None:
    """Encode what can be found by the names that were met, and the settings that code can read."""
    met = encoder.met
    follow(encoder)
    encoder.encode(sorted(read() for names, read in met.later if names & met.attributes))
    if any(names is LOGGED and names & met.attributes for names, _ in met.later):
        met.lookups.add("the level of a logger")  # which workers do not get
    if encoder.narrow:
        encoder.encode(None)
        return
    if process := PROCESS & met.attributes:
        encoder.doubt(f"the process or thread that it runs in ({min(process)})")
    encoder.encode(settings_for(met.attributes, met.libraries))


def follow(encoder: Encoder) -> None:
    """Encode what can be found by the names that were met, until nothing new turns up."""
    done = Done()
    while True:
        before = len(done)
        ways = [name for name in encoder.met.attributes if name.startswith("anything by ")]
        if ways and not encoder.narrow:
            encoder.doubt(f"code that can look up {min(ways)}")
        for step in (_modules, _subclasses, _evaluated, _installed_values):
            step(encoder, done)
        if len(done) == before:
            _accessors(encoder, done)
        if len(done) == before:
            return


def wanted_from(encoder: Encoder, module: types.ModuleType) -> set[str]:
    """Return the attributes of one of the user's own modules that code reads."""
    met = encoder.met
    if encoder.narrow:
        return {attribute for name, attribute in met.wanted if name in (name_of(module), "")}
    computed = any(name.startswith("an attribute by ") for name in met.attributes)
    return set(vars(module)) - _WRITTEN_BY_PYTHON if computed else met.attributes


def _modules(encoder: Encoder, done: Done) -> None:
    """Encode every attribute of the user's own modules that code names."""
    new = [
        (module, name)
        for module in sorted(encoder.met.modules.values(), key=name_of)
        for name in sorted(wanted_from(encoder, module) & vars(module).keys())
        if done.new(module, name)
    ]
    for module, name in new:
        encoder.labelled(f"{name_of(module)}.{name}", encoder.lookup(module, name))


def _subclasses(encoder: Encoder, done: Done) -> None:
    """Encode the user's own classes that `__subclasses__` finds."""
    named = not encoder.narrow and "__subclasses__" in encoder.met.attributes
    for kind in list(encoder.met.classes.values()) if named else ():
        if done.new(kind, "__subclasses__"):
            encoder.encode(list(_derived(kind)))


def _derived(value: type) -> Iterator[type]:
    kinds: list[type] = type.__subclasses__(value)
    for kind in kinds:
        if owner_of(kind) is None:
            yield kind
        yield from _derived(kind)


def _evaluated(encoder: Encoder, done: Done) -> None:
    """Encode globals that are named in strings which code evaluates."""
    names = sorted(name[1:] for name in encoder.met.attributes if name.startswith("@"))
    for scope, name in itertools.product(list(encoder.met.scopes.values()), names):
        if done.new(scope, name) and name in scope:
            encoder.met.lookups.add(f"@{name}")
            encoder.labelled(name, None if encoder.narrow else scope[name])


def _installed_values(encoder: Encoder, done: Done) -> None:
    """Encode values in installed modules, and in objects there, whose names are in the code.

    Code may read them in any way: by a local name, or as an argument of a helper. Functions of libraries are
    left out, because they have a version.
    """
    names = sorted(encoder.met.attributes)
    owners = sorted(encoder.met.versioned.values(), key=name_of)
    waiting: list[tuple[Any, str, int]] = [(owner, name_of(owner), 4) for owner in owners]
    seen, found = {id(owner) for owner in owners}, []
    while waiting:
        owner, label, left = waiting.pop()
        for name, value in _values_of(encoder, owner, names):
            if isinstance(value, type) and not is_own(value):
                encoder.met.installed[value] = None
            elif type(value) in ATOMS or is_own(value):
                found.append((owner, name, f"{label}.{name}", value))
            elif left and id(value) not in seen and _holds_more(value):  # settings may be nested
                seen.add(id(value))
                waiting.append((value, f"{label}.{name}", left - 1))
    for owner, name, label, value in found:
        if not _stays_here(encoder, owner, name, value) and done.new(owner, name):
            _patch(encoder, label, value)


def _values_of(encoder: Encoder, owner: Any, names: list[str]) -> Iterator[tuple[str, Any]]:
    scope = attribute_of(owner, "__dict__")
    for name in names if type(scope) is dict else ():
        value = scope.get(name, NOTHING)
        if encoder.read is not None:
            encoder.note(owner, name, value)
        if value is not NOTHING and value is not sys.modules:
            yield name, value


def _holds_more(value: Any) -> bool:
    """Tell whether a value is a module inside a package, or an object that may have settings."""
    if isinstance(value, types.ModuleType):
        return origin(name_of(value)) is not None
    return not isinstance(value, types.FunctionType | types.BuiltinFunctionType)


def _stays_here(encoder: Encoder, owner: Any, name: str, value: Any) -> bool:
    """Tell whether another process has its own value, or code does not read this one from its module."""
    if not encoder.narrow:
        return False
    if not isinstance(owner, types.ModuleType) or (name_of(owner), name) not in encoder.met.wanted:
        return True
    if owner is sys and is_simple(value):  # a worker has a sys.argv of its own
        encoder.met.lookups.add(f"sys.{name}")
        return True
    fixed = type(value) in ATOMS or is_simple(value)
    return not fixed and is_value(value) and origin(name_of(owner)) == "python"


def _accessors(encoder: Encoder, done: Done) -> None:
    """Encode attributes of libraries' classes that code names, if they are the user's own."""
    names = {name for name in encoder.met.attributes if not name.startswith("__")}
    if not names:
        return
    scopes = scopes_of(encoder.libraries, encoder.met.installed)
    found = [(name, at) for at, (_, scope) in enumerate(scopes) for name in names & scope.keys()]
    for kind, _ in scopes if encoder.read is not None else ():
        for name in names:
            encoder.lookup(kind, name)
    for name, at in sorted(found):
        kind, scope = scopes[at]
        if is_own(scope[name]) and done.new(kind, name):
            _patch(encoder, f"{kind.__name__}.{name}", scope[name])


def _patch(encoder: Encoder, label: str, value: Any) -> None:
    """Encode what the user's own program has put into an installed module or class."""
    if not is_value(value) and type(value) not in ATOMS:  # workers do not have it
        encoder.met.lookups.add(f"{label} (which was patched)")
    encoder.labelled(label, value)
