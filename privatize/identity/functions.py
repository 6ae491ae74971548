"""Encode functions and modules: installed ones by name and version, the user's own by content."""

import builtins
import contextlib
import functools
import importlib
import sys
import types
from typing import Any, cast

from privatize.identity import bytecode
from privatize.identity.classes import module_name, registered
from privatize.identity.encoder import Encoder, PrivateReachable, encodes
from privatize.identity.graph import DESCRIPTION, NOTHING, PARTS, annotations_of, cells_of, full_name
from privatize.identity.library import LIBRARY, Opaque, sources, spelled
from privatize.identity.origin import is_builtin, is_installed, is_named, module_of, name_of, origin, owner_of
from privatize.identity.values import mapping, sequence

_DISPATCHING = ("registry", "dispatch", "register", "_clear_cache")
_DISPATCH = cast("Any", functools.singledispatch(len)).__code__


@functools.lru_cache(maxsize=4096)
def _encoded(code: types.CodeType) -> bytes:
    """Return the encoding of a code object.

    Line numbers and the file are left out, so that a function may move. Code that reads them is refused.
    Constants are encoded where they are used, and the docstring, which no instruction loads, at the end.
    """
    encoder = Encoder()
    for each in bytecode.instructions_of(code):
        if each.opcode not in bytecode.CONSTANTS:
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
    """Return an owner of code; if it is this library, which the user's code calls, with a digest of it."""
    return f"{LIBRARY} {sources()}" if owner == LIBRARY else owner


@encodes(types.FunctionType)
def _function(encoder: Encoder, value: types.FunctionType) -> None:
    owner = owner_of(value)
    if encoder.seen_before(value):
        return
    if owner is not None and is_named(value, value.__module__, value.__qualname__):
        encoder.met.look_up(value.__name__, owner)
        encoder.met.use(owner)
        encoder.text(f"function {_exactly(owner)} {spelled(value, owner)}")
    elif isinstance(value.__dict__.get("opaque"), Opaque):
        encoder.text("a source of sealed data, which nothing but a private function opens")
    else:
        _own(encoder, value, encoder.note(value, "its code", value.__code__))


def _own(encoder: Encoder, value: types.FunctionType, code: types.CodeType) -> None:
    encoder.met.owners.add(module_of(value) or "")
    encoder.text("function")
    encoder.add(_encoded(code))
    _description(encoder, value)
    encoder.named("its defaults", encoder.note(value, "its defaults", value.__defaults__))
    encoder.state(value.__kwdefaults__ or {})
    if value.__dict__.get("registry") and code is _DISPATCH:
        encoder.encode(dict(value.__dict__["registry"]))  # without its cache of earlier calls
        encoder.state({k: v for k, v in vars(value).items() if k not in _DISPATCHING})
        return
    for name, cell, content in cells_of(value):
        encoder.named(name, NotImplemented if encoder.note(cell, "", content) is NOTHING else content)
    encoder.state(value.__dict__)
    # The globals of an installed package's local function are known by the package's version. (The
    # function's own __module__ may be wrong: functools.wraps replaces it.)
    maker = origin(value.__globals__.get("__name__")) if is_installed(code.co_filename) else None
    if maker is not None:
        encoder.text(maker)
    else:
        _names(encoder, value, bytecode.code_of(code))


def _description(encoder: Encoder, value: types.FunctionType) -> None:
    """Encode a function's names, its docstring, its annotations, and what those that are strings refer to."""
    for name in DESCRIPTION[:-1] if encoder.narrow else DESCRIPTION:  # cloudpickle leaves the last one out
        fact = getattr(value, name, None)
        if encoder.read is not None:
            encoder.note(value, f"its {name}", fact)
        encoder.encode(module_name(encoder, fact) if name == "__module__" else fact)
    annotations = annotations_of(value)
    mapping(encoder, annotations)
    if not encoder.narrow:  # code that evaluates them is not sent to workers
        for name in sorted(bytecode.words_in_annotations(annotations)):
            if (found := encoder.lookup(value, name)) is not NOTHING:
                encoder.labelled(name, found)


def _names(encoder: Encoder, value: types.FunctionType, code: bytecode.Code) -> None:
    """Encode what the names in a function's code stand for."""
    met, scope, attributes = encoder.met, value.__globals__, set(code.attributes)
    met.attributes |= attributes
    met.lookups |= bytecode.LOOKUPS & attributes
    met.lookups.update(each.split("'")[1] for each in attributes if each.startswith("anything by "))
    cells = {name: content for name, _, content in cells_of(value)}
    for root, chain in code.chains:
        _chain(encoder, cells.get(root, scope.get(root)), root, chain)
    for name in code.names:
        _global(encoder, value, name)
    own: Any = getattr(value, "__builtins__", None)
    if own and own is not vars(builtins):  # a named tuple's code has empty ones
        met.lookups.add("__builtins__")
        encoder.named("__builtins__", own)
    for imported, level, wanted in code.imports:
        _imported(encoder, full_name(imported, level, scope), wanted)
        if imported in bytecode.SEARCHING:
            met.attributes.update(f"anything by {each!r}" for each in bytecode.OF_PYTHON & attributes)
    if bytecode.EVALUATING & attributes:
        met.scopes[id(scope)] = scope
    if not encoder.narrow:
        _named_modules(encoder, attributes, str(scope.get("__name__")))


def _named_modules(encoder: Encoder, names: set[str], own: str) -> None:
    """Take note of modules that may be looked up by name: sys.modules["helpers"], sys.modules[__name__]."""
    names |= {own} if "modules" in names else set()
    for name in sorted(names if encoder.read is not None else names & sys.modules.keys()):
        found = encoder.lookup(sys.modules, name)
        if issubclass(type(found), types.ModuleType) and origin(name) is None:
            encoder.met.modules[id(found)] = found


def _global(encoder: Encoder, function: types.FunctionType, name: str) -> None:
    value = encoder.lookup(function, name)
    if value is not NOTHING:
        encoder.string(name)
        if name not in bytecode.IMPORTERS or value is not importlib.import_module:
            encoder.named(name, value)
        return
    found = encoder.lookup(builtins, name)
    if not is_builtin(name):
        encoder.string(name)
        encoder.encode("missing" if found is NOTHING else found)
    elif isinstance(found, type):
        encoder.met.classes[id(found)] = found


def _chain(encoder: Encoder, root: Any, name: str, chain: tuple[str, ...]) -> None:
    """Note which attributes are read from which module."""
    met = encoder.met
    if name == "":  # a local variable that an import made
        met.wanted.update(("", attribute) for attribute in chain)
    for attribute in chain:
        if not isinstance(root, types.ModuleType):
            return
        module, root = name_of(root), encoder.lookup(root, attribute)
        met.wanted.add((module, attribute))
        searching = attribute in bytecode.OF_PYTHON and module in bytecode.SEARCHING
        if searching or (root is sys.modules and name != "sys"):  # `bytecode` does not find these
            met.look_up(attribute, "python")
        if isinstance(root, type) and origin(module) is not None:
            met.classes[id(root)] = root
            registered(encoder, root)


def _imported(encoder: Encoder, name: str, wanted: tuple[str, ...]) -> None:
    """Encode a module that a function imports when it runs, with the packages that it is in."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        _import(encoder, ".".join(parts[:end]))
    found: Any = sys.modules.get(name)
    own = found is not None and origin(name) is None and hasattr(found, "__path__")
    for item in wanted if own else ():  # from package import module
        if item not in vars(found):
            with contextlib.suppress(Exception):  # importing it makes it an attribute of the package
                importlib.import_module(f"{name}.{item}")


def _import(encoder: Encoder, name: str) -> None:
    if name not in sys.modules and not (encoder.narrow and origin(name) is not None):
        try:
            importlib.import_module(name)  # the function would import it anyway
        except Exception:  # an import may raise anything; the function will raise it again
            encoder.text(f"missing module {name}")
            return
    found, owner = sys.modules.get(name), origin(name)
    if found is None or owner is not None:  # the same whether it has been imported or not
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
        met.modules[id(value)] = value
        met.attributes |= {"__getattr__"} & vars(value).keys()  # it makes up attributes
    elif owner != LIBRARY:
        met.versioned[id(value)] = value


@encodes(types.MethodType, staticmethod, classmethod, property, functools.partial, types.MappingProxyType)
def _made(encoder: Encoder, value: Any) -> None:
    if not encoder.seen_before(value):
        encoder.text(type(value).__qualname__)
        sequence(encoder, (*PARTS[type(value)](value), value.__doc__ if type(value) is property else None))


@encodes(functools._lru_cache_wrapper)
def _cached(encoder: Encoder, value: Any) -> None:
    if encoder.seen_before(value):
        return
    owner, name = owner_of(value), str(getattr(value, "__qualname__", ""))
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
