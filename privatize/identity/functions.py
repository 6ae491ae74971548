"""How functions and modules are encoded: installed ones by name and version, the user's own by content."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import sys
import types
from typing import Any, cast

from privatize.identity.accessors import is_value
from privatize.identity.bytecode import (
    CONSTANTS,
    EVALUATING,
    IMPORTERS,
    LOOKUPS,
    OF_PYTHON,
    SEARCHING,
    Code,
    code_of,
    instructions_of,
    words_in_annotations,
)
from privatize.identity.classes import home, registered, spelled
from privatize.identity.completion import patch
from privatize.identity.encoder import Encoder, PrivateReachable, encodes
from privatize.identity.graph import (
    ATOMS,
    DESCRIPTION,
    NOTHING,
    PARTS,
    annotations_of,
    cells_of,
    full_name,
    is_simple,
)
from privatize.identity.library import LIBRARY, Opaque, sources
from privatize.identity.origin import (
    attribute_of,
    is_builtin,
    is_installed,
    is_named,
    module_of,
    name_of,
    origin,
    owner_of,
    patched,
)
from privatize.identity.settings import READ
from privatize.identity.values import sequence

__all__ = ["module"]

_DISPATCHING = ("registry", "dispatch", "register", "_clear_cache")
_DISPATCH = cast("Any", functools.singledispatch(len)).__code__


@functools.lru_cache(maxsize=4096)
def _encoded(code: types.CodeType) -> bytes:
    """Return the encoding of a code object.

    Line numbers and the file are left out, so that a function may move: code that reads them is a doubt.
    Constants stand where they are used, and the docstring, which no instruction loads, at the end.
    """
    encoder = Encoder()
    for each in instructions_of(code):
        if each.opcode not in CONSTANTS:
            encoder.add(b"%d %d" % (each.opcode, each.arg or 0))
            continue
        encoder.add(b"c%d" % each.opcode)
        if isinstance(each.argval, types.CodeType):
            encoder.add(_encoded(each.argval))
        else:
            encoder.encode(each.argval)
    encoder.encode((code.co_name, code.co_qualname))
    encoder.encode((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    encoder.encode((code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount))
    encoder.encode(code.co_exceptiontable)
    if code.co_consts:
        encoder.encode(code.co_consts[0] if isinstance(code.co_consts[0], str) else None)
    return b"".join(encoder.parts)


@encodes(types.CodeType)
def _code(encoder: Encoder, value: types.CodeType) -> None:
    encoder.text("code")
    encoder.add(_encoded(value))


def _exactly(owner: str | None) -> str | None:
    """Return whose code it is; for this library's, which the user's own code calls, with a content hash."""
    return f"{LIBRARY} {sources()}" if owner == LIBRARY else owner


@encodes(types.FunctionType)
def _function(encoder: Encoder, value: types.FunctionType) -> None:
    if encoder.again(value):
        return
    owner = owner_of(value)
    if owner is not None and is_named(value, value.__module__, value.__qualname__):
        encoder.met.look_up(value.__name__, owner)
        encoder.met.use(owner)
        encoder.text(f"function {_exactly(owner)} {spelled(value, owner)}")
        return
    if isinstance(value.__dict__.get("opaque"), Opaque):
        encoder.text("a source of sealed data, which nothing but a private function opens")
        return
    code = encoder.note(value, "its code", value.__code__)
    encoder.met.owners.add(module_of(value) or "")
    encoder.text("function")
    encoder.add(_encoded(code))
    _description(encoder, value)
    encoder.named("its defaults", encoder.note(value, "its defaults", value.__defaults__))
    encoder.state(value.__kwdefaults__ or {})
    if value.__dict__.get("registry") and code is _DISPATCH:
        encoder.encode(dict(value.__dict__["registry"]))  # and not what it remembers of earlier calls
        encoder.state({k: v for k, v in vars(value).items() if k not in _DISPATCHING})
        return
    for name, cell, content in cells_of(value):
        encoder.named(name, NotImplemented if encoder.note(cell, "", content) is NOTHING else content)
    if value.__dict__:
        encoder.state(value.__dict__)
    # A local function of an installed package has a scope with a version. (Its own __module__ may be
    # forged: functools.wraps does that.)
    maker = origin(value.__globals__.get("__name__")) if is_installed(code.co_filename) else None
    if maker is not None:
        encoder.text(maker)
    else:
        _names(encoder, value, code_of(code))


def _description(encoder: Encoder, value: types.FunctionType) -> None:
    """Encode a function's names, its docstring, its annotations, and what those that are strings refer to."""
    for name in DESCRIPTION[:-1] if encoder.narrow else DESCRIPTION:  # cloudpickle leaves the last one out
        said = encoder.note(value, name, getattr(value, name, None))
        encoder.encode(home(encoder, said) if name == "__module__" else said)
    annotations = annotations_of(value)
    encoder.encode(annotations)
    if not encoder.narrow:  # code that evaluates them is not shipped
        scope = value.__globals__
        for name in sorted(words_in_annotations(annotations) & scope.keys()):
            encoder.labelled(name, encoder.note(value, name, scope[name]))


def _names(encoder: Encoder, value: types.FunctionType, code: Code) -> None:
    """Encode what the names in a function's code stand for."""
    met, scope, attributes = encoder.met, value.__globals__, set(code.attributes)
    met.attributes |= attributes
    met.lookups |= LOOKUPS & attributes
    met.lookups.update(each.split("'")[1] for each in attributes if each.startswith("anything by "))
    cells = {name: content for name, _, content in cells_of(value)}
    for root, chain in code.chains:
        _chain(encoder, cells.get(root, scope.get(root)), root, chain)
    for name in code.names:
        _global(encoder, value, name)
    own: Any = getattr(value, "__builtins__", None)
    if own and own is not vars(builtins):  # those of a named tuple's code are empty
        met.lookups.add("__builtins__")
        encoder.named("__builtins__", own)
    for imported, level, wanted in code.imports:
        _imported(encoder, imported, level, wanted, scope)
        if imported in SEARCHING:
            met.attributes.update(f"anything by {each!r}" for each in OF_PYTHON & attributes)
    if EVALUATING & attributes:
        met.scopes[id(scope)] = scope
    if encoder.narrow:
        return
    if "modules" in attributes:  # sys.modules[__name__]
        attributes.add(str(scope.get("__name__")))
    for name in sorted(attributes & sys.modules.keys()):  # sys.modules["helpers"], import_module("helpers")
        found = encoder.note(sys.modules, name, sys.modules.get(name))
        if origin(name) is None and issubclass(type(found), types.ModuleType):
            met.meet(found)


def _global(encoder: Encoder, value: types.FunctionType, name: str) -> None:
    scope = value.__globals__
    if name in scope:
        encoder.string(name)
        if name not in IMPORTERS or scope[name] is not importlib.import_module:
            encoder.named(name, encoder.note(value, name, scope[name]))
    elif not is_builtin(name):
        encoder.string(name)
        encoder.encode(vars(builtins).get(name, "missing"))
    elif isinstance(found := encoder.note(builtins, name, vars(builtins)[name]), type):
        encoder.met.classes[id(found)] = found


def _chain(encoder: Encoder, root: Any, name: str, chain: tuple[str, ...]) -> None:
    """Note which attributes are read from which module."""
    met = encoder.met
    if name == "":  # from whatever was imported
        met.wanted.update(("", attribute) for attribute in chain)
    for attribute in chain:
        if not isinstance(root, types.ModuleType):
            return
        owner, root = root, vars(root).get(attribute)
        if attribute in vars(owner):
            encoder.note(owner, attribute, root)
        if origin(name_of(owner)) is None:
            met.wanted.add((name_of(owner), attribute))
        elif root is sys.modules and name != "sys":  # where `bytecode` does not look
            met.look_up(attribute, "python")
        else:
            _read(encoder, owner, attribute, root)
            if isinstance(root, type):
                met.classes[id(root)] = root
                registered(encoder, root)


def _read(encoder: Encoder, owner: types.ModuleType, attribute: str, value: Any) -> None:
    """Encode what is read from an installed module, unless its version tells it."""
    met, label = encoder.met, f"{name_of(owner)}.{attribute}"
    python = origin(name_of(owner)) == "python"
    if encoder.narrow and owner is sys and is_simple(value):  # sys.argv is another one in a worker
        met.lookups.add(label)
    elif type(value) in ATOMS or is_simple(value):
        encoder.encode(value)
    elif attribute in READ and python and callable(value):
        encoder.encode(None if encoder.narrow else value())
    elif attribute in OF_PYTHON and name_of(owner) in SEARCHING:
        met.look_up(attribute, "python")
    elif not python or isinstance(value, types.FunctionType):
        patch(encoder, owner, attribute, value)
    elif patched(value):
        # By content, and not to be found elsewhere.
        met.lookups.add(f"{label} (which was patched)")
        encoder.encode(value)
    elif not encoder.narrow and is_value(value) and value is not sys.modules:
        encoder.string(label)  # sys.argv, say, or what the user has put there
        encoder.encode(value)


def _imported(
    encoder: Encoder, name: str, level: int, wanted: tuple[str, ...], scope: dict[str, Any]
) -> None:
    """Encode the modules that a function imports when it runs, with the packages that they are in."""
    name = full_name(name, level, scope)
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        _import(encoder, ".".join(parts[:end]))
    found = sys.modules.get(name)
    if found is not None and origin(name) is None and wanted:  # from package import module
        for item in wanted:
            if item not in vars(found) and hasattr(found, "__path__"):
                with contextlib.suppress(Exception):  # then it is found among the package's attributes
                    importlib.import_module(f"{name}.{item}")


def _import(encoder: Encoder, name: str) -> None:
    if name not in sys.modules and not (encoder.narrow and origin(name) is not None):
        try:
            importlib.import_module(name)  # as the function is about to do
        except Exception:  # an import runs anybody's code; the function will say what is wrong with it
            encoder.text(f"missing module {name}")
            return
    found, owner = sys.modules.get(name), origin(name)
    if found is None or owner is not None:  # whether somebody has imported it by now or not
        encoder.text(f"import {name} {owner}")
        encoder.met.use(owner)
        if owner != LIBRARY and issubclass(type(found), types.ModuleType):
            encoder.met.versioned[id(found)] = cast("types.ModuleType", found)
    else:
        module(encoder, found)


@encodes(types.ModuleType)
def module(encoder: Encoder, value: types.ModuleType) -> None:
    """Encode a module by its name, and take note of it."""
    name, met = name_of(value), encoder.met
    owner = origin(encoder.note(value, "__name__", name))
    encoder.text(f"module {name} {_exactly(owner)}")
    met.use(owner)
    if owner is None:
        met.meet(value)
        met.attributes |= {"__getattr__"} & vars(value).keys()  # attributes that it makes up
    elif owner != LIBRARY:
        met.versioned[id(value)] = value


@encodes(types.MethodType, staticmethod, classmethod)
def _wrapper(encoder: Encoder, value: Any) -> None:
    encoder.text(type(value).__qualname__)
    for part in PARTS[type(value)](value):
        encoder.encode(part)


@encodes(property)
def _property(encoder: Encoder, value: property) -> None:
    encoder.text("property")
    sequence(encoder, (*PARTS[property](value), value.__doc__))


@encodes(functools.partial)
def _partial(encoder: Encoder, value: functools.partial[Any]) -> None:
    if not encoder.again(value):
        encoder.text("partial")
        encoder.encode(value.func)
        sequence(encoder, value.args)
        encoder.encode(dict(value.keywords))
        encoder.state(vars(value))


@encodes(functools._lru_cache_wrapper)
def _cached(encoder: Encoder, value: Any) -> None:
    if encoder.again(value):
        return
    owner, name = owner_of(value), str(attribute_of(value, "__qualname__"))
    if owner is not None and is_named(value, module_of(value), name):
        encoder.text(f"function {owner} {module_of(value)}.{name}")
        return
    if encoder.private is not None and encoder.private.inside(value):
        raise PrivateReachable
    value.cache_clear()  # it may hold answers from before something changed
    encoder.text("lru_cache")
    encoder.encode(value.__wrapped__)
    encoder.state(value.cache_parameters())
    encoder.state({k: v for k, v in vars(value).items() if k != "__wrapped__"})
