"""What code can read besides what it plainly refers to: of modules, of patched libraries, of the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from privatize.identity.accessors import is_own, is_value, scopes_of
from privatize.identity.bytecode import words
from privatize.identity.encoder import Encoder
from privatize.identity.graph import values_in
from privatize.identity.origin import name_of, owner_of
from privatize.identity.settings import PROCESS, settings_for

__all__ = ["LOGGED", "complete", "patch", "wanted_from"]

Done = set[tuple[Any, str]]

_WRITTEN_BY_PYTHON = words("__builtins__ __loader__ __spec__ __cached__ __warningregistry__ __file__")
LOGGED = words("isEnabledFor getEffectiveLevel level disabled handlers hasHandlers")


def complete(encoder: Encoder) -> None:
    """Encode what follows from the names that were met, until there is no more of it."""
    met, done = encoder.met, set[tuple[Any, str]]()
    while True:
        ways = [name for name in met.attributes if name.startswith("anything by ")]
        if ways and not encoder.narrow:
            encoder.doubt(f"code that can look up {min(ways)}, whatever its name")
        steps = (_modules, _subclasses, _evaluated, _installed_values)
        new = [step(encoder, done) for step in steps]
        if not any(new) and not _accessors(encoder, done):
            break
    encoder.encode(sorted(read() for names, read in met.later if names & met.attributes))
    if any(names is LOGGED and names & met.attributes for names, _ in met.later):
        met.lookups.add("the level of a logger")  # which is not shipped
    if encoder.narrow:
        encoder.encode(None)
        return
    if process := PROCESS & met.attributes:
        encoder.doubt(f"the process or thread that it runs in ({min(process)})")
    encoder.encode(settings_for(met.attributes, met.libraries))


def wanted_from(encoder: Encoder, module: str) -> set[str]:
    """Return the attributes of one of the user's own modules that code reads."""
    met = encoder.met
    if encoder.narrow:
        return {attribute for name, attribute in met.wanted if name in (module, "")}
    computed = any(name.startswith("an attribute by ") for name in met.attributes)
    return set(vars(met.modules[module])) - _WRITTEN_BY_PYTHON if computed else met.attributes


def _modules(encoder: Encoder, done: Done) -> bool:
    """Encode every attribute of the user's own modules that is named; tell if any are new."""
    modules = encoder.met.modules
    new = sorted(
        (name, attribute)
        for name, module in modules.items()
        for attribute in wanted_from(encoder, name)
        if (name, attribute) not in done and attribute in vars(module)
    )
    done.update(new)
    for name, attribute in new:
        module = modules[name]
        found = encoder.note(module, attribute, vars(module)[attribute])
        encoder.labelled(f"{name}.{attribute}", found)
    return bool(new)


def _subclasses(encoder: Encoder, done: Done) -> bool:
    """Encode the user's own classes that `__subclasses__` finds."""
    if encoder.narrow or "__subclasses__" not in encoder.met.attributes:
        return False
    new = [kind for at, kind in encoder.met.classes.items() if (at, "__subclasses__") not in done]
    for kind in new:
        done.add((id(kind), "__subclasses__"))
        encoder.encode(list(_derived(kind)))
    return bool(new)


def _derived(value: type) -> Iterator[type]:
    kinds: list[type] = type.__subclasses__(value)
    for kind in kinds:
        if owner_of(kind) is None:
            yield kind
        yield from _derived(kind)


def _evaluated(encoder: Encoder, done: Done) -> bool:
    """Encode globals that are named in strings which code evaluates."""
    names = sorted(name[1:] for name in encoder.met.attributes if name.startswith("@"))
    scopes = list(encoder.met.scopes.values())
    new = [(scope, name) for scope in scopes for name in names if (id(scope), name) not in done]
    for scope, name in new:
        done.add((id(scope), name))
        if name in scope:
            encoder.met.lookups.add(f"@{name}")
            encoder.labelled(name, None if encoder.narrow else scope[name])
    return bool(new)


def _installed_values(encoder: Encoder, done: Done) -> bool:
    """Encode the values in installed modules, and in objects there, that have a name which code reads.

    Code may read them in any way: by a local name, as an argument of a helper.
    """
    met, new = encoder.met, []
    if encoder.narrow:
        return False
    owners = sorted(met.versioned.values(), key=name_of)
    for owner in owners if encoder.read is not None else ():
        for name in met.attributes & vars(owner).keys():
            encoder.note(owner, name, vars(owner)[name])
    for owner, name, label, value in values_in(owners, met.attributes):
        if isinstance(value, type):
            met.installed[value] = None
        elif (id(owner), name) not in done:
            done.add((id(owner), name))
            new.append((label, value))
    for label, value in new:
        encoder.string(label)
        encoder.encode(value)
    return bool(new)


def _accessors(encoder: Encoder, done: Done) -> bool:
    """Encode what named attributes are on classes of libraries, if it is the user's own."""
    scopes, before = scopes_of(None, encoder.met.installed), len(done)
    for name in sorted(name for name in encoder.met.attributes if not name.startswith("__")):
        for kind, scope in scopes:
            if name in scope:
                value = encoder.note(kind, name, scope[name])
                if (id(kind), name) not in done and is_own(value):
                    done.add((id(kind), name))
                    patch(encoder, kind, name, value)
    return len(done) > before


def patch(encoder: Encoder, owner: Any, name: str, value: Any) -> None:
    """Encode what the user's own program has put into an installed module or class."""
    if isinstance(value, type) and not is_own(value):
        encoder.met.installed[value] = None
    elif is_own(value):
        if not is_value(value):  # it is not to be found elsewhere
            encoder.met.lookups.add(f"{owner.__name__}.{name} (which was patched)")
        encoder.string(f"{owner.__name__}.{name}")
        encoder.encode(value)
