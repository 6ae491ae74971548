"""The identity of a function, a sampler, an argument.

A canonical, type-tagged encoding of everything that could change what a function computes, hashed
with SHA-256: the same in every process, for every hash seed, and on every machine with the same
versions; different whenever anything that is seen here changes. The user's own functions, classes
and modules are encoded by content, recursively; installed code by name and version; values by
content. What cannot be encoded raises `Unencodable`: every doubt is a miss.

What is not seen: names that are computed (``getattr`` with anything but a literal, ``eval``), installed
code that was patched where the user's code does not name it, files, environment variables, databases, the
clock.
"""

from __future__ import annotations

import builtins
import contextlib
import copyreg
import dis
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import random
import struct
import sys
import sysconfig
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privatize import accessors
from privatize.errors import NotRememberedWarning
from privatize.reachable import FEW, Private, Sized

__all__ = [
    "VERSION",
    "PrivateReachable",
    "Unencodable",
    "code_of",
    "fingerprint",
    "identity_of",
    "is_builtin",
    "is_installed",
    "is_own",
    "origin",
    "outside",
    "seek",
    "token",
    "warn_changed",
]

VERSION = 2
"""Version of the encoding; part of every fingerprint."""


class Unencodable(Exception):  # noqa: N818 - a signal between rooms
    """Something that a function depends on has no content that could be compared."""


class PrivateReachable(Exception):  # noqa: N818 - a signal between rooms
    """The private data can be reached from the function itself."""


Read = dict[tuple[int, str], Any]


def fingerprint(
    value: Any, *, version: str | None = None, private: Private | None = None, read: Read | None = None
) -> str:
    """Return the identity of a value: 64 hexadecimal digits.

    Parameters
    ----------
    value : object
        A function, or any nesting of functions, arguments and containers.
    version : str, optional
        Vouches for what cannot be encoded, which then counts by its type.
    private : Private, optional
        Data that must not be reachable from the value.
    read : dict, optional
        Gets what was found in every place that was looked at, by the id of what it belongs to, and its name.

    Raises
    ------
    Unencodable
        If something has no content that can be encoded, and no version vouches for it.
    PrivateReachable
        If some of the private data was met.

    Examples
    --------
    >>> def scaled(factor): return lambda x: factor * x
    >>> fingerprint(scaled(1)) == fingerprint(scaled(1)) != fingerprint(scaled(2))
    True
    """
    encoder = _Encoder(version, private, read=read)
    encoder.add(_header())
    encoder.encode(version)
    encoder.encode(value)
    encoder.encode_modules()
    encoder.encode(accessors.options())
    return encoder.digest()


@dataclass
class Reach:
    """What a value is made of, as far as another process must be given it.

    Attributes
    ----------
    digest : str
        A fingerprint.
    modules : dict
        The user's own modules that are used, and the attributes of theirs that code plainly reads.
    owners : set of str
        The user's own modules whose functions and classes are used.
    lookups : set of str
        Names in the code that look things up at run time (``globals``, ``vars``, ``eval``): what they
        find cannot be told.
    names : set of str
        All globals and attributes that the user's own code names.
    """

    digest: str
    modules: dict[str, set[str]]
    owners: set[str]
    lookups: set[str]
    names: set[str]


def reach(value: Any, *, version: str | None = None) -> Reach:
    """Return what a value is made of, for shipping it.

    Unlike `fingerprint`, which takes every attribute that is named anywhere from every module
    that is used, this takes an attribute only from the module that it is read from.

    Examples
    --------
    >>> reach(abs).modules
    {}
    """
    encoder = _Encoder(version, narrow=True)
    encoder.add(_header())
    encoder.encode(version)
    encoder.encode(value)
    encoder.encode_modules()
    encoder.encode(accessors.options())
    wanted = {name: encoder.wanted_from(name) for name in encoder.modules}
    return Reach(encoder.digest(), wanted, encoder.owners, encoder.lookups, encoder.attributes)


# Code that names these can find what is not plainly named.
_LOOKUPS = frozenset(
    {
        *("globals", "vars", "dir", "eval", "exec", "__import__", "import_module", "modules"),
        *("__dict__", "__globals__", "getmembers", "getmembers_static", "get_type_hints", "reload"),
    }
)


def token(
    value: Any,
    label: str,
    *,
    version: str | None = None,
    private: Private | None = None,
    read: Read | None = None,
) -> str | None:
    """Return the identity of a value, or None, with a warning, where there is no telling.

    Examples
    --------
    >>> token([1, "a"], "f") == token([1, "a"], "f") != token([2, "a"], "f")
    True
    """
    try:
        return fingerprint(value, version=version, private=private, read=read)
    except PrivateReachable:
        raise
    except Unencodable as error:
        what = str(error)
    except Exception as error:  # whatever somebody's class does when it is looked at
        what = f"something that raised {type(error).__name__} when it was looked at"
    if private is not None:  # it may be further on
        seek(value, private)
    warnings.warn(
        f"The estimate for {label}() will not be remembered, so every call calibrates again: it depends on "
        f"{what}, whose content cannot be compared. Keep open files, connections, generators and the "
        f"like out of its arguments, closure and globals, or vouch for them with version=.",
        NotRememberedWarning,
        stacklevel=outside(),
    )
    return None


def seek(value: Any, private: Private) -> None:
    """Raise `PrivateReachable` if private data can be reached from a value, whatever else is there."""
    try:
        fingerprint(value, version="", private=private)
    except PrivateReachable:
        raise
    except Exception:  # as far as somebody's class lets itself be looked at
        return


def identity_of(value: Any) -> str | None:
    """Return the fingerprint of a value, or None if it has no content that could be compared."""
    try:
        return fingerprint(value)
    except Exception:  # also whatever somebody's class does when it is looked at
        return None


def warn_changed(label: str) -> None:
    """Say that what a function depends on changed while it ran, so its estimate has no key."""
    warnings.warn(
        f"The estimate for {label}() will not be remembered, so every call calibrates again: what it depends "
        f"on (a global, an attribute, a closure) changed while it ran. Keep counters, caches and logs out "
        f"of what it refers to.",
        NotRememberedWarning,
        stacklevel=outside(),
    )


def outside() -> int:
    """Return the stack level of the first caller outside this package."""
    here, frame, level = str(Path(__file__).parent), sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    return level


@functools.cache
def _header() -> bytes:
    python = f"{_implementation()} {sys.version_info[:3]} {sys.byteorder}"
    return f"privatize fingerprint {VERSION}, {python}".encode()


def _implementation() -> str:
    name = sys.implementation.name
    return "CPython" if name == "cpython" else name


# --- which code is whose --------------------------------------------------------------------


@functools.cache
def _installed_paths() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def is_installed(file: str) -> bool:
    """Tell whether a file is a package's or the standard library's."""
    # A folder of packages inside the standard library's would be found by either.
    return file.startswith(_installed_paths()) or "site-packages" in file or "dist-packages" in file


@functools.lru_cache(maxsize=4096)
def origin(module: str | None) -> str | None:
    """Return whose code a module is: a name and version, or None for the user's own."""
    if not module or module == "__main__":
        return None
    top = module.partition(".")[0]
    if top == "privatize":
        return "privatize"  # what matters of it has a version of its own, in the estimate's key
    file = _file(sys.modules.get(module))
    if file is None and module not in sys.modules:
        file = getattr(_spec(top), "origin", None)
    # The file first: a user's module may have the name of a standard one. An editable install lies
    # outside: it changes without its version changing, so it is the user's own.
    if isinstance(file, str) and Path(file).is_absolute() and not is_installed(file):
        return None
    if top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return "python"
    version = "?" if file is None else _version(top)
    return None if version == "?" else f"{top} {version}"  # without a version, by content


def _file(module: Any) -> str | None:
    """Return where a module comes from; of a package without an ``__init__``, its folder."""
    file = getattr(module, "__file__", None)
    if file is None:
        file = next(iter(getattr(module, "__path__", None) or ()), None)
    return file if isinstance(file, str) else None


def own_modules() -> dict[str, types.ModuleType]:
    """Return the user's own modules that have been imported, without ``__main__``."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name in ("__main__", "__mp_main__") or not isinstance(module, types.ModuleType):
            continue
        file = _file(module)
        # By the file alone where there is one: versions, which the others need, are slow to be had.
        if (file is None or not is_installed(file)) and origin(name) is None:
            found[name] = module
    return found


def _spec(top: str) -> Any:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None


@functools.lru_cache(maxsize=1024)
def _version(top: str) -> str:
    told = getattr(sys.modules.get(top), "__version__", None)
    if top in _TOLD and isinstance(told, str):
        return told
    from importlib import metadata  # only here: it takes 30 ms

    try:
        return metadata.version(_TOLD.get(top, top))  # half a second quicker than the mapping below
    except metadata.PackageNotFoundError:
        names = metadata.packages_distributions().get(top, [])
        return ", ".join(f"{name} {metadata.version(name)}" for name in sorted(set(names))) or "?"


# Packages whose __version__ is that of their distribution.
_TOLD = {"numpy": "numpy", "scipy": "scipy", "pandas": "pandas", "sklearn": "scikit-learn"}


def _found(thing: Any, module: str | None, qualname: str) -> bool:
    """Tell whether a thing is what its own name leads to, so that the name stands for it."""
    found: Any = sys.modules.get(module or "")
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found is thing


# --- code objects ---------------------------------------------------------------------------

_CONSTANTS = frozenset(dis.hasconst)


@functools.lru_cache(maxsize=4096)
def code_of(
    code: types.CodeType,
) -> tuple[
    bytes,
    tuple[str, ...],
    tuple[str, ...],
    tuple[tuple[str, int, tuple[str, ...]], ...],
    tuple[tuple[str, tuple[str, ...]], ...],
]:
    """Return a code object's encoding, the globals it names, the attributes, its imports, and chains.

    A chain is a name and the attributes that are read from it one after the other: a.b.c.

    Line numbers, file and own name are left out. Constants stand where they are used, so that a
    docstring, which no instruction loads, does not count (unless `__doc__` is read somewhere).
    """
    encoder = _Encoder()
    names: set[str] = set()
    attributes: set[str] = set(code.co_names)
    imports: set[tuple[str, int, tuple[str, ...]]] = set()
    literals: set[str] = set()
    chains: set[tuple[str, tuple[str, ...]]] = set(_chains(code))
    instructions = list(dis.get_instructions(code))
    for at, instruction in enumerate(instructions):
        if instruction.opcode in _CONSTANTS:
            following = instructions[at + 1].argval if at + 1 < len(instructions) else None
            if following == "__firstlineno__":  # of a class body, from Python 3.13 on
                continue
            encoder.add(b"c%d" % instruction.opcode)
            if isinstance(instruction.argval, types.CodeType):
                inner, inner_names, inner_attributes, inner_imports, inner_chains = code_of(
                    instruction.argval
                )
                chains.update(inner_chains)
                encoder.add(inner)
                names.update(inner_names)
                attributes.update(inner_attributes)
                imports.update(inner_imports)
            else:
                encoder.encode(instruction.argval)
                literals |= _identifiers(instruction.argval)
        else:
            encoder.add(b"%d %d" % (instruction.opcode, instruction.arg or 0))
        if "GLOBAL" in instruction.opname or instruction.opname in ("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            names.add(instruction.argval)
        if instruction.opname == "IMPORT_NAME":
            level, names_of = (
                (instructions[at - 2].argval, instructions[at - 1].argval) if at >= 2 else (0, ())
            )
            wanted = names_of if isinstance(names_of, tuple) else ()
            imports.add((instruction.argval, level if isinstance(level, int) else 0, wanted))
    encoder.encode((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    encoder.encode((code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount))
    encoder.encode(code.co_exceptiontable)
    if "__doc__" in code.co_names and code.co_consts:
        encoder.encode(code.co_consts[0] if isinstance(code.co_consts[0], str) else None)
    # getattr(module, "name") and globals()["name"] name what they read as well.
    attributes |= literals
    if "globals" in code.co_names:
        names |= literals
    return (
        b"".join(encoder.parts),
        tuple(sorted(names)),
        tuple(sorted(attributes)),
        tuple(sorted(imports)),
        tuple(sorted(chains)),
    )


def _identifiers(value: Any) -> set[str]:
    """Return the names in a literal such as ``"package.module"``."""
    if not isinstance(value, str) or len(value) > 200:
        return set()
    parts = value.split(".")
    if not all(part.isidentifier() for part in parts):
        return set()
    return {*parts, *(".".join(parts[: end + 1]) for end in range(len(parts)))}


def _chains(code: types.CodeType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names in a code object with the attributes that are read from them.

    The name is "" where the root is a local variable that an import made.
    """
    imported: set[str] = set()
    root, chain, importing = None, [], False
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in ("LOAD_ATTR", "LOAD_METHOD"):
            chain.append(instruction.argval)
            continue
        if name == "LOAD_CONST" and root is not None and not chain and isinstance(instruction.argval, str):
            chain = instruction.argval.split(".")[:1]  # getattr(module, "name")
        if root is not None and chain:
            yield root, tuple(chain)
        root, chain = None, []
        if name in ("CACHE", "PUSH_NULL", "PRECALL", "EXTENDED_ARG"):
            continue
        if name in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"):
            root = "" if instruction.argval in imported else instruction.argval
        elif name.startswith("LOAD_FAST") and isinstance(instruction.argval, str):
            root = "" if instruction.argval in imported else None
        elif name == "IMPORT_FROM":
            yield "", (instruction.argval,)
            importing = True
        elif name == "IMPORT_NAME":
            importing = True
        elif importing and name.startswith("STORE_"):
            imported.add(instruction.argval)
            importing = False


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return NotImplemented


def _state(value: Any) -> dict[str, Any]:
    """Return an object's attributes, slots included."""
    state = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            private = slot.startswith("__") and not slot.endswith("__")
            name = f"_{base.__name__.lstrip('_')}{slot}" if private else slot
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                state[name] = getattr(value, name)
    return state


# --- the encoder ----------------------------------------------------------------------------

_SKIPPED = frozenset(
    {
        *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__"),
        *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
        *("__static_attributes__", "__dataclass_fields__", "__dataclass_params__", "__abstractmethods__"),
        *("_abc_impl", "__parameters__", "__orig_bases__", "__type_params__", "__slotnames__"),
        "_value2member_map_",  # of flags: it grows with use
    }
)
_HEAP_TYPE = 1 << 9
_MOST = 1024  # encodings that are kept
_BY_TYPE = frozenset({"_thread.lock", "_thread.RLock", "_thread._local"})
_BUILTINS = frozenset(vars(builtins))


def is_builtin(name: str) -> bool:
    """Tell whether a name is one of Python's own."""
    return name in _BUILTINS


@functools.lru_cache(maxsize=4096)
def _known_own(thing: Any) -> bool:
    return accessors.is_own(thing, origin)


def is_own(thing: Any) -> bool:
    """Tell whether something in an installed class or module is of the user's making."""
    # Others are not kept: they may be anybody's data.
    known = isinstance(thing, types.FunctionType | type | property | staticmethod | classmethod)
    return _known_own(thing) if known else accessors.is_own(thing, origin)


# With the value, so that its id stays its own, and what is in it that could be private data.
_encoded: dict[int, tuple[Any, bytes, list[Any]]] = {}


def _immutable(value: Any) -> tuple[bytes, list[Any]]:
    """Return the encoding of one of our own values, which never change, and what could be data in it."""
    known = _encoded.get(id(value))
    if known is None:
        sized = Sized()
        encoder = _Encoder(private=sized)
        encoder.add(type(value).__qualname__.encode())
        encoder.on_state(_state(value))
        if len(_encoded) >= _MOST:
            _encoded.clear()
        known = _encoded[id(value)] = (value, b"".join(encoder.parts), sized.met)
    return known[1], known[2]


class _Encoder:
    def __init__(
        self,
        version: str | None = None,
        private: Private | Sized | None = None,
        *,
        narrow: bool = False,
        read: Read | None = None,
    ) -> None:
        self.parts: list[bytes] = []
        self.read = read
        self.narrow = narrow
        self.wanted: dict[str, set[str]] = {}  # attributes, by module; under "" those of any
        self.owners: set[str] = set()
        self.lookups: set[str] = set()
        self.version = version
        self.private = private
        self.seen: dict[int, tuple[int, Any]] = {}  # the object is kept alive, so its id stays its own
        self.modules: dict[str, types.ModuleType] = {}
        self.attributes: set[str] = set()
        self.installed: dict[type, None] = {}  # classes that are named, which the user may have patched
        self.accessors: set[tuple[type, str]] = set()

    def found(self, owner: Any, name: str, value: Any) -> Any:
        """Return what was found in a place, and note it if anybody wants to know."""
        if self.read is not None:
            self.read[id(owner), name] = value
        return value

    def add(self, part: bytes) -> None:
        self.parts.append(b"%d:" % len(part))
        self.parts.append(part)

    def digest(self) -> str:
        return hashlib.sha256(b"".join(self.parts)).hexdigest()

    def encode(self, value: Any) -> None:
        """Encode any value."""
        handler = _HANDLERS.get(type(value))
        if handler is not None:
            handler(self, value)
        else:
            self.on_other(value)

    def again(self, value: Any) -> bool:
        """Tell whether a mutable object has been met before, and if so refer to it."""
        self.compare(value)
        known = self.seen.get(id(value))
        if known is not None:
            self.parts.append(b"&%d;" % known[0])
            return True
        self.seen[id(value)] = (len(self.seen), value)
        return False

    def compare(self, value: Any) -> None:
        """Refuse the private data, and what shares memory with it or is a copy of it."""
        if self.private is not None and self.private.holds(value):
            raise PrivateReachable

    # -- values --

    def on_atom(self, value: Any) -> None:
        self.add(f"{type(value).__name__} {value!r}".encode())

    def on_int(self, value: int) -> None:
        self.parts.append(b"i")
        self.add(b"%x" % value)

    def on_float(self, value: float) -> None:
        self.parts.append(b"d")
        self.parts.append(struct.pack("<d", value))

    def on_complex(self, value: complex) -> None:
        self.parts.append(b"z")
        self.parts.append(struct.pack("<dd", value.real, value.imag))

    def on_str(self, value: str) -> None:
        self.parts.append(b"s")
        self.add(value.encode("utf-8", "surrogatepass"))

    def on_bytes(self, value: bytes) -> None:
        self.parts.append(b"b")
        self.add(value)
        if len(value) >= FEW:
            self.compare(value)

    def on_tuple(self, value: tuple[Any, ...]) -> None:
        self.parts.append(b"(%d;" % len(value))
        if len(value) >= FEW:
            self.compare(value)
        for item in value:
            self.encode(item)

    def on_list(self, value: list[Any]) -> None:
        if not self.again(value):
            self.parts.append(b"[%d;" % len(value))
            for item in value:
                self.encode(item)

    def on_dict(self, value: dict[Any, Any]) -> None:
        # In order: a function that walks over a dict sees it.
        if not self.again(value):
            self.parts.append(b"{%d;" % len(value))
            for key, item in value.items():
                self.encode(key)
                self.encode(item)

    def on_set(self, value: Iterable[Any]) -> None:
        digests = []
        self.compare(value)
        for item in value:
            inner = _Encoder(self.version, self.private, narrow=self.narrow)
            inner.encode(item)
            inner.encode_modules()
            digests.append(inner.digest())
            self.modules.update(inner.modules)
            self.attributes |= inner.attributes
            self.owners |= inner.owners
            self.lookups |= inner.lookups
            for name, attributes in inner.wanted.items():
                self.wanted.setdefault(name, set()).update(attributes)
        self.add(type(value).__name__.encode())
        self.add("".join(sorted(digests)).encode())

    def on_proxy(self, value: types.MappingProxyType[Any, Any]) -> None:
        self.add(b"proxy")
        self.encode(dict(value))

    def on_state(self, value: dict[str, Any]) -> None:
        """Attributes, whose order nobody sees."""
        self.parts.append(b"<%d;" % len(value))
        for name in sorted(value):
            self.on_str(name)
            self.encode(value[name])

    def on_array(self, value: Any) -> None:
        self.compare(value)
        if value.dtype.hasobject:
            if self.again(value):
                return
            self.add(f"array {value.dtype!r} {value.shape}".encode())
            for item in value.ravel().tolist():
                self.encode(item)
            return
        # Order in memory decides the order of summation.
        layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "?"
        self.add(f"array {value.dtype!r} {value.dtype.str} {value.shape} {layout}".encode())
        self.add(value.tobytes())

    def on_scalar(self, value: Any) -> None:
        self.add(f"scalar {value.dtype.str}".encode())
        self.add(value.tobytes())

    # -- code --

    def on_function(self, value: types.FunctionType) -> None:
        if self.again(value):
            return
        owner = origin(value.__module__)
        if owner is not None and _found(value, value.__module__, value.__qualname__):
            if value.__name__ in _LOOKUPS:  # under another name
                self.lookups.add(value.__name__)
            self.add(f"function {owner} {value.__module__}.{value.__qualname__}".encode())
            return
        code = self.found(value, "its code", value.__code__)
        encoded, names, attributes, imports, chains = code_of(code)
        self.owners.add(value.__module__ or "")
        self.add(b"function")
        self.add(encoded)
        self.encode(self.found(value, "its defaults", value.__defaults__))
        self.on_state(value.__kwdefaults__ or {})
        for cell in value.__closure__ or ():
            self.encode(self.found(cell, "", _content(cell)))
        if value.__dict__:
            self.on_state(value.__dict__)
        scope = value.__globals__
        # A local function of an installed package has a scope with a version. (Its own __module__ may be
        # forged: functools.wraps does that.)
        maker = origin(scope.get("__name__")) if is_installed(value.__code__.co_filename) else None
        if maker is not None:
            self.add(maker.encode())
            return
        self.attributes.update(attributes)
        self.lookups |= _LOOKUPS.intersection(attributes)
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=False))
        for root, chain in chains:
            self.want(scope.get(root) if root not in cells else _content(cells[root]), root, chain)
        for name in names:
            if name in scope:
                self.on_str(name)
                self.encode(self.found(value, name, scope[name]))
            elif name not in _BUILTINS:
                self.on_str(name)
                self.encode(vars(builtins).get(name, "missing"))
        for name, level, wanted in imports:
            self.on_imported(name, level, wanted, scope)
        if self.narrow:
            return
        if "modules" in attributes:  # sys.modules[__name__]
            attributes = (*attributes, str(scope.get("__name__")))
        for name in attributes:  # sys.modules["helpers"], import_module("helpers")
            found = sys.modules.get(name)
            if found is not None:
                self.found(sys.modules, name, found)
                if origin(name) is None:
                    self.meet(found)

    def want(self, root: Any, name: str, chain: tuple[str, ...]) -> None:
        """Note which attributes are read from which module."""
        if name == "":  # from whatever was imported
            self.wanted.setdefault("", set()).update(chain)
        for attribute in chain:
            if not isinstance(root, types.ModuleType):
                return
            owner = root
            root = vars(owner).get(attribute)
            if attribute in vars(owner):
                self.found(owner, attribute, root)
            if origin(owner.__name__) is None:
                self.wanted.setdefault(owner.__name__, set()).add(attribute)
            elif origin(owner.__name__) != "python" or isinstance(root, types.FunctionType):
                self.on_attribute(owner, attribute, root)

    def on_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Encode what the user's own program has put into an installed module or class."""
        if isinstance(value, type) and not is_own(value):
            self.installed[value] = None
        elif is_own(value):
            if not accessors.is_value(value):  # it is not to be found elsewhere
                self.lookups.add(f"{owner.__name__}.{name} (which was patched)")
            self.on_str(f"{owner.__name__}.{name}")
            self.encode(value)

    def wanted_from(self, module: str) -> set[str]:
        """Return the attributes of a module that code reads."""
        if not self.narrow:
            return self.attributes
        return self.wanted.get(module, set()) | self.wanted.get("", set())

    def meet(self, module: types.ModuleType) -> None:
        """Take note of one of the user's own modules; of two with one name, of both."""
        name = module.__name__
        while name in self.modules and self.modules[name] is not module:
            name += "'"
        self.modules[name] = module

    def on_imported(self, name: str, level: int, wanted: tuple[str, ...], scope: dict[str, Any]) -> None:
        """Encode the modules that a function imports when it runs, with the packages that they are in."""
        if level:
            package = scope.get("__package__") or ""
            with contextlib.suppress(ImportError, ValueError):
                name = importlib.util.resolve_name("." * level + name, package)
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            self.on_import(".".join(parts[:end]))
        for item in wanted:  # from package import module
            found = sys.modules.get(name)
            if (
                found is not None
                and origin(name) is None
                and item not in vars(found)
                and hasattr(found, "__path__")
            ):
                with contextlib.suppress(Exception):  # then it is found among the package's attributes
                    importlib.import_module(f"{name}.{item}")

    def on_import(self, name: str) -> None:
        if origin(name) is None and name not in sys.modules:
            try:
                importlib.import_module(name)  # as the function is about to do
            except Exception:  # an import runs anybody's code; the function will say what is wrong with it
                self.add(b"missing module " + name.encode())
                return
        found = sys.modules.get(name)
        if found is None or origin(name) is not None:  # whether somebody has imported it by now or not
            self.add(f"import {name} {origin(name)}".encode())
        else:
            self.on_module(found)

    def on_method(self, value: types.MethodType) -> None:
        self.add(b"method")
        self.encode(value.__func__)
        self.on_owner(value.__self__)

    def on_owner(self, value: Any) -> None:
        """Encode what a method belongs to; the global generators, which get public coins, by name."""
        if value is getattr(random, "_inst", None) or value is np.random.mtrand._rand:
            self.add(b"a global generator")
        else:
            self.encode(value)

    def on_builtin(self, value: Any) -> None:
        if value.__name__ in _LOOKUPS:  # under another name
            self.lookups.add(value.__name__)
        owner = getattr(value, "__self__", None)
        name = f"{getattr(value, '__module__', None)}.{value.__qualname__}"
        self.add(f"builtin {name} {origin(getattr(value, '__module__', None) or 'builtins')}".encode())
        if owner is not None and not isinstance(owner, types.ModuleType):
            self.on_owner(owner)

    def on_descriptor(self, value: Any) -> None:
        owner = value.__objclass__
        self.add(f"descriptor {owner.__module__}.{owner.__qualname__}.{value.__name__}".encode())

    def on_wrapped(self, value: Any) -> None:
        self.add(type(value).__qualname__.encode())
        self.encode(value.__func__)

    def on_property(self, value: property) -> None:
        self.add(b"property")
        self.on_tuple((value.fget, value.fset, value.fdel))

    def on_partial(self, value: functools.partial[Any]) -> None:
        if not self.again(value):
            self.add(b"partial")
            self.encode(value.func)
            self.on_tuple(value.args)
            self.on_state(value.keywords)
            self.on_state(vars(value))

    def on_cached(self, value: Any) -> None:
        if not self.again(value):
            if self.private is not None and self.private.inside(value):
                raise PrivateReachable
            self.add(b"lru_cache")
            self.encode(value.__wrapped__)
            self.on_state(value.cache_parameters())
            self.on_state({k: v for k, v in vars(value).items() if k != "__wrapped__"})

    def on_module(self, value: types.ModuleType) -> None:
        owner = origin(self.found(value, "__name__", value.__name__))
        self.add(f"module {value.__name__} {owner}".encode())
        if owner is None:
            self.meet(value)
            if "__getattr__" in vars(value):  # attributes that it makes up
                self.attributes.add("__getattr__")

    def encode_modules(self) -> None:
        """Encode what can be reached through the user's own modules: every attribute that is named."""
        done: set[tuple[str, str]] = set()
        while True:
            todo = sorted(
                (name, attribute)
                for name, module in self.modules.items()
                for attribute in self.wanted_from(name)
                if (name, attribute) not in done and attribute in vars(module)
            )
            if not todo and not self.encode_accessors():
                return
            for name, attribute in todo:
                done.add((name, attribute))
                self.on_str(f"{name}.{attribute}")
                module = self.modules[name]
                self.encode(self.found(module, attribute, vars(module)[attribute]))

    def encode_accessors(self) -> bool:
        """Encode what named attributes are on installed classes, if the user's own; tell if any are new."""
        before = len(self.accessors)
        names, classes = sorted(self.attributes), list(self.installed)
        for kind, name, value in accessors.attributes_of(names, classes):
            self.found(kind, name, value)
            if (kind, name) not in self.accessors and is_own(value):
                self.accessors.add((kind, name))
                self.on_attribute(kind, name, value)
        return len(self.accessors) > before

    def on_type(self, value: type) -> None:
        owner = origin(value.__module__)
        static = not value.__flags__ & _HEAP_TYPE  # C types that Python code cannot have made
        if owner is not None and (static or _found(value, value.__module__, value.__qualname__)):
            if not static and owner not in ("privatize", "python"):
                self.installed[value] = None
            if self.narrow and not static and origin(value.__module__) != "privatize":
                for name, method in vars(value).items():
                    if (
                        isinstance(method, types.FunctionType)
                        and origin(method.__globals__["__name__"]) is None
                    ):
                        self.lookups.add(f"{value.__qualname__}.{name} (which was patched)")
            self.add(f"class {owner} {value.__module__}.{value.__qualname__}".encode())
            return
        if self.again(value):
            return
        self.owners.add(value.__module__ or "")
        self.add(f"class {value.__name__}".encode())
        self.encode(type(value))
        self.on_tuple(value.__bases__)
        kept = {k: v for k, v in vars(value).items() if k not in _SKIPPED}
        # Slots are in __slots__ as well; a class that was shipped has attributes in their place.
        self.on_state({k: v for k, v in kept.items() if type(v) is not types.MemberDescriptorType})

    # -- everything else --

    def on_other(self, value: Any) -> None:
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        ours = kind.__module__.startswith("privatize.")
        if ours and getattr(kind, "immutable", False):
            encoded, sized = _immutable(value)
            self.parts.append(encoded)
            for each in sized:
                self.compare(each)
            return
        identity = getattr(kind, "_identity", None)
        if identity is not None and ours:
            self.add(name.encode())
            self.encode(identity(value))
            return
        if isinstance(value, type):
            self.on_type(value)
            return
        if isinstance(value, np.ndarray):  # a subclass
            self.on_type(kind)
            self.on_state(getattr(value, "__dict__", {}))
            self.on_array(value)
            return
        if isinstance(value, np.generic):
            self.on_scalar(value)
            return
        if ours and isinstance(value, types.ModuleType):  # one that came from another process
            self.on_module(value)
            return
        if isinstance(value, np.ufunc):
            self.on_ufunc(value)
            return
        if name in _BY_TYPE:
            self.add(name.encode())
            if name == "_thread._local":
                self.on_state(vars(value))
            return
        if isinstance(value, weakref.ReferenceType):
            self.add(name.encode())
            self.encode(value())
            return
        if callable(value) and isinstance(getattr(value, "__qualname__", None), str):  # of an extension
            owner = origin(value.__module__)
            if owner is not None and _found(value, value.__module__, value.__qualname__):
                self.add(f"function {owner} {value.__module__}.{value.__qualname__}".encode())
                return
        if self.again(value):
            return
        try:
            self.on_reduced(value, kind)
        except (Unencodable, PrivateReachable, RecursionError):
            raise
        except Exception:  # __reduce__ is anybody's code: what it raises means that there is no telling
            if self.private is not None and self.private.inside(value):
                raise PrivateReachable from None
            if self.version is None:
                raise Unencodable(f"a {name}") from None
            self.add(f"vouched for: {name}".encode())

    def on_reduced(self, value: Any, kind: type) -> None:
        """Encode an object as what `copy` and `pickle` would make it again from."""
        if inspect.isgenerator(value) or inspect.iscoroutine(value):
            raise TypeError
        if kind.__module__.startswith("torch") and hasattr(value, "detach"):
            # What a tensor is made of again holds the storage's address: its numbers are what counts.
            self.add(f"{kind.__qualname__} {value.dtype} {value.requires_grad} {origin('torch')}".encode())
            self.on_array(value.detach().cpu().numpy())
            return
        self.on_type(kind)
        ours = kind.__module__.partition(".")[0] == "privatize"
        if origin(kind.__module__) is None or ours:
            # A class's own __reduce__ may leave out what its methods read, so the state comes first.
            self.on_state(_state(value))
            if all(base is object or origin(base.__module__) is None for base in kind.__mro__):
                return
            if ours:
                return
            if isinstance(value, dict):  # whatever its own methods make of it
                self.encode(list(dict.items(value)))
            elif isinstance(value, list | tuple | set | frozenset):
                plain: Any = next(base for base in (list, tuple, set, frozenset) if isinstance(value, base))
                self.encode(plain(plain.__iter__(value)))
        registered = copyreg.dispatch_table.get(kind)
        made = value.__reduce_ex__(4) if registered is None else registered(value)
        if isinstance(made, str):
            self.add(f"global {made}".encode())
            return
        function, args, *rest = made
        self.encode(function)
        self.on_tuple(tuple(args))
        for at, part in enumerate(rest):
            if at in (1, 2) and part is not None:  # iterators over items
                self.on_list(list(part))
            elif isinstance(part, dict) and all(isinstance(key, str) for key in part):
                self.on_state(part)
            else:
                self.encode(part)

    def on_ufunc(self, value: np.ufunc) -> None:
        for module in ("numpy", "scipy.special", "numpy._core.umath"):
            if getattr(sys.modules.get(module), value.__name__, None) is value:
                self.add(f"ufunc {module}.{value.__name__} {origin(module)}".encode())
                return
        if self.version is None:
            raise Unencodable(f"the ufunc {value.__name__}")
        self.add(f"vouched for: ufunc {value.__name__}".encode())


_HANDLERS: dict[type, Callable[[_Encoder, Any], None]] = {
    type(None): _Encoder.on_atom,
    bool: _Encoder.on_atom,
    int: _Encoder.on_int,
    type(...): _Encoder.on_atom,
    type(NotImplemented): _Encoder.on_atom,
    float: _Encoder.on_float,
    complex: _Encoder.on_complex,
    str: _Encoder.on_str,
    bytes: _Encoder.on_bytes,
    tuple: _Encoder.on_tuple,
    list: _Encoder.on_list,
    dict: _Encoder.on_dict,
    set: _Encoder.on_set,
    frozenset: _Encoder.on_set,
    np.ndarray: _Encoder.on_array,
    types.FunctionType: _Encoder.on_function,
    types.MethodType: _Encoder.on_method,
    types.BuiltinFunctionType: _Encoder.on_builtin,
    types.MethodWrapperType: _Encoder.on_builtin,
    types.MethodDescriptorType: _Encoder.on_descriptor,
    types.WrapperDescriptorType: _Encoder.on_descriptor,
    types.ClassMethodDescriptorType: _Encoder.on_descriptor,
    types.GetSetDescriptorType: _Encoder.on_descriptor,
    types.MemberDescriptorType: _Encoder.on_descriptor,
    types.ModuleType: _Encoder.on_module,
    types.MappingProxyType: _Encoder.on_proxy,
    staticmethod: _Encoder.on_wrapped,
    classmethod: _Encoder.on_wrapped,
    property: _Encoder.on_property,
    functools.partial: _Encoder.on_partial,
    functools._lru_cache_wrapper: _Encoder.on_cached,
    type: _Encoder.on_type,
}
