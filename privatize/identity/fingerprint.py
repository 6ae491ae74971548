"""The identity of a function, a sampler, an argument.

A canonical, type-tagged encoding of everything that could change what a function computes, hashed
with SHA-256: the same in every process, for every hash seed, and on every machine with the same
versions; different whenever anything that is seen here changes. The user's own functions, classes
and modules are encoded by content, recursively; installed code by name and version; values by
content. What cannot be encoded raises `Unencodable`: every doubt is a miss.

What is not seen: installed code that was patched where the user's code does not name it, state that compiled
code keeps to itself, settings of most libraries, environment variables with computed names, files, databases,
the network, the clock.
"""

from __future__ import annotations

import abc
import builtins
import contextlib
import copyreg
import dis
import enum
import functools
import hashlib
import importlib
import importlib.util
import inspect
import locale
import os
import random
import re
import struct
import sys
import sysconfig
import time
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, cast

import numpy as np

from privatize.calibration.streams import sources
from privatize.errors import NotRememberedWarning
from privatize.identity import accessors
from privatize.identity.reachable import FEW, Declared, Private, Sized

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

VERSION = 3
"""Version of the encoding; part of every fingerprint."""


class Unencodable(Exception):  # noqa: N818 - a signal between rooms
    """Something that a function depends on has no content that could be compared."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.path: list[str] = []

    def __str__(self) -> str:
        shown = self.path if len(self.path) < 10 else [*self.path[:5], "...", *self.path[-3:]]
        return f"{self.args[0]} (reached by {' -> '.join(shown)})" if shown else str(self.args[0])


class PrivateReachable(Exception):  # noqa: N818 - a signal between rooms
    """The private data can be reached from the function itself: by these names, as far as code has them."""

    def __init__(self) -> None:
        super().__init__()
        self.path: list[str] = []

    def __str__(self) -> str:
        return " -> ".join(self.path[:5]) or "a global, its closure, P or another argument"


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
        Is filled with the value in every place that was read, by the id of its owner and its name.

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
        *("get_annotations", "__subclasses__", "__type_params__"),
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
    """Return the identity of a value, or None, with a warning, where it has none.

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
        what = f"something that raised {type(error).__name__} when it was inspected"
    if private is not None:  # it may be further on
        seek(value, private)
    warnings.warn(
        f"The estimate for {label}() will not be remembered, so every call calibrates again: it depends on "
        f"{what}, whose content cannot be compared. Keep open files, connections, generators and the "
        f"like out of its arguments, closure and globals, or describe them with version=.",
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
    """Warn that what a function depends on changed while it ran, so its estimate has no key."""
    warnings.warn(
        f"The estimate for {label}() is not remembered: what it depends on (a global, an attribute, a "
        f"closure) changed while it ran. A call with private data calibrates again, and is refused if "
        f"something changes again. Keep counters, caches and logs out of what it refers to.",
        NotRememberedWarning,
        stacklevel=outside(),
    )


def outside() -> int:
    """Return the stack level of the first caller outside this package."""
    here, frame, level = str(Path(__file__).parents[1]), sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    return level


@functools.cache
def _header() -> bytes:
    # The magic number changes with the bytecode, so patch versions need not count.
    magic = importlib.util.MAGIC_NUMBER.hex()
    python = f"{_implementation()} {sys.version_info[:2]} {magic} {sys.byteorder}"
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
    if not isinstance(module, str) or not module or module == "__main__":
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
    file = _attribute(module, "__file__")
    if file is None:
        with contextlib.suppress(Exception):  # a path may be anything
            file = next(iter(_attribute(module, "__path__") or ()), None)
    return file if isinstance(file, str) else None


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute, or None if there is none; a lazy module may raise anything when it is asked."""
    try:
        return getattr(value, name, None)
    except KeyboardInterrupt:
        raise
    except BaseException:  # also SystemExit, and whatever test runners raise to skip a test
        return None


def _module_of(value: Any) -> str | None:
    """Return the module that a function or class says it is from; None if what it says is no name."""
    found = _attribute(value, "__module__")
    return found if isinstance(found, str) else None


def own_modules() -> dict[str, types.ModuleType]:
    """Return the user's own modules that have been imported, without ``__main__``."""
    found = {}
    for name, module in list(sys.modules.items()):
        # Not isinstance(), which asks the object itself for its class.
        if name in ("__main__", "__mp_main__") or not issubclass(type(module), types.ModuleType):
            continue
        file = _file(module)
        # By the file alone where there is one: versions, which the others need, are slow to be had.
        if (file is None or not is_installed(file)) and origin(name) is None:
            found[name] = module
    return found


def _spec(top: str) -> Any:
    try:
        return importlib.util.find_spec(top)
    except Exception:  # a module's finder is anybody's code
        return None


@functools.lru_cache(maxsize=1024)
def _version(top: str) -> str:
    told = _attribute(sys.modules.get(top), "__version__")
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
        found = _attribute(found, part)
    return found is thing


def _exactly(owner: str | None) -> str | None:
    """Return whose code it is; for this library's, which the user's own code calls, with a content hash."""
    return f"privatize {sources()}" if owner == "privatize" else owner


def _extension(module: str | None) -> str | None:
    """Return the file of a compiled module, or None if the module is not compiled."""
    file = _file(sys.modules.get(module or ""))
    return file if file is not None and file.endswith(tuple(EXTENSION_SUFFIXES)) else None


def _compiled(kind: type) -> bool:
    """Tell whether a class was not written in Python."""
    return not kind.__flags__ & _HEAP_TYPE or _extension(_module_of(kind)) is not None


_STARTED = time.time()


def _binary(file: str) -> str:
    """Return the hash of a compiled library that this process has loaded."""
    about = Path(file).stat()
    if max(about.st_mtime, about.st_ctime) > _STARTED:
        # What was loaded may be an earlier build than what lies there now.
        raise Unencodable(f"the compiled library {Path(file).name}, built after this program started")
    return _hashed(file, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


@functools.lru_cache(maxsize=1024)
def _hashed(file: str, *state: int) -> str:
    del state  # only for the cache
    with Path(file).open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


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

    Line numbers and the file are left out, so that a function may move: code that reads them is a doubt.
    Constants stand where they are used, and the docstring, which no instruction loads, at the end.
    """
    encoder = _Encoder()
    names: set[str] = set()
    attributes: set[str] = set(code.co_names)
    imports: set[tuple[str, int, tuple[str, ...]]] = set()
    literals: set[str] = set()
    evaluates = not _EVALUATE.isdisjoint(code.co_names)
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
                literals |= _words(instruction.argval, everywhere=evaluates)
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
        if instruction.argval in _IMPORTERS and isinstance(name := _following(instructions, at), str):
            imports.add((name, 0, ()))
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and instruction.argval == "acquire":
            called = next(each for each in instructions[at + 1 :] if each.opname not in _IDLE)
            attributes.update(() if (called.opname, called.arg) == ("CALL", 0) else (_WAITLESS,))
        if way := _way(instructions, at):
            attributes.add(f"{way} by {instruction.argval!r}")
    encoder.encode((code.co_name, code.co_qualname))
    encoder.encode((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars))
    encoder.encode((code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount))
    encoder.encode(code.co_exceptiontable)
    if code.co_consts:
        encoder.encode(code.co_consts[0] if isinstance(code.co_consts[0], str) else None)
    # getattr(module, "name"), "{0.name}".format(module) and globals()["name"] name what they read as well.
    attributes |= literals
    attributes.update(f"{_WAYS[word]} by {word!r}" for word in literals & _WAYS.keys() if "_" in word)
    if evaluates:
        attributes |= {f"@{word}" for word in literals}
    return (
        b"".join(encoder.parts),
        tuple(sorted(names)),
        tuple(sorted(attributes)),
        tuple(sorted(imports)),
        tuple(sorted(chains)),
    )


_WORDS = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_FIELDS = re.compile(r"\{[^{}]*\}|%\([^)]*\)")  # of templates
_AT = re.compile(r"@[^\W\d]\w*")  # globals, in what pandas evaluates


def _words(value: Any, *, everywhere: bool = False) -> set[str]:
    """Return the names in a literal such as ``"package.module"`` or ``"{0.limit}"``, or a tuple of them.

    Other strings have no names, unless `everywhere` is true.
    """
    if isinstance(value, tuple | frozenset):
        return set().union(*(_words(item, everywhere=everywhere) for item in value))
    if not isinstance(value, str):
        return set()
    found = set(_AT.findall(value))
    texts = [value] if everywhere or _WORDS.fullmatch(value) else _FIELDS.findall(value)
    for text in [word for each in texts for word in _WORDS.findall(each)]:
        parts = text.split(".")
        found.update(parts, (".".join(parts[: end + 1]) for end in range(len(parts))))
    return found


# Ways of looking something up by a name that the code need not spell out. Where it may be an attribute, all
# attributes of the user's modules count; where it may be anything, that is a doubt.
_CALLED = {
    **dict.fromkeys(("getattr", "hasattr", "format"), "an attribute"),
    **dict.fromkeys(("eval", "exec", "globals", "__import__", "import_module", "modules"), "anything"),
}
_WAYS = {
    **dict.fromkeys(("vars", "dir", "__dict__", "__getattribute__", "getmembers"), "an attribute"),
    **dict.fromkeys(("getmembers_static", "getattr_static", "attrgetter", "methodcaller"), "an attribute"),
    **dict.fromkeys(("Formatter", "format_map", "vformat"), "an attribute"),
    **dict.fromkeys(
        ("__globals__", "__builtins__", "builtins", "f_globals", "f_locals", "f_back"), "anything"
    ),
    **dict.fromkeys(
        ("getclosurevars", "get_objects", "get_referrers", "spec_from_file_location"), "anything"
    ),
    # Where code stands in its file is left out.
    **dict.fromkeys(("co_firstlineno", "co_filename", "co_lines", "co_positions", "co_consts"), "anything"),
    **dict.fromkeys(("co_linetable", "co_lnotab", "f_lineno", "tb_lineno", "__firstlineno__"), "anything"),
    **dict.fromkeys(("getsource", "getsourcelines", "getcomments", "getframeinfo"), "anything"),
    **dict.fromkeys(("extract_stack", "extract_tb", "walk_stack", "walk_tb"), "anything"),
}
# The same, where a name says so only together with its module: np.stack is something else.
_OF_PYTHON = frozenset({"locate", "resolve_name", "run_module", "run_path", "reload", "stack", "trace"})
_LOOKING = frozenset({"pydoc", "pkgutil", "runpy", "importlib", "inspect", "sys"})
# What Python's own modules tell of this process without being given anything.
_READ = frozenset(
    {
        *("getrecursionlimit", "getswitchinterval", "get_int_max_str_digits", "getdefaulttimeout"),
        *("getcwd", "isenabled", "get_threshold"),
    }
)
_EVALUATE = frozenset({"globals", "eval", "exec", "query", "sql"})  # these find globals by what is in a text
_IDLE = ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "NOP", "KW_NAMES")
_LOADS = ("LOAD_FAST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CONST", "LOAD_CLASSDEREF")


_IMPORTERS = ("import_module", "__import__")


def _following(instructions: list[dis.Instruction], at: int) -> Any:
    """Return the constant that is loaded next, or None."""
    for instruction in instructions[at + 1 :]:
        if instruction.opname not in _IDLE:
            return instruction.argval if instruction.opname == "LOAD_CONST" else None
    return None


def _way(instructions: list[dis.Instruction], at: int) -> str:
    """Return what is looked up at an instruction by a name that is computed, or "".

    A name that is not plainly seen to be a literal counts as computed.
    """
    this, before = instructions[at], instructions[at - 1]
    read = this.opname in ("LOAD_ATTR", "LOAD_METHOD")
    if not read and this.opname not in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_FROM", "IMPORT_NAME"):
        return ""
    if this.argval not in _CALLED:
        return _WAYS.get(this.argval, "")
    name, loads = this.argval, []
    if name in ("eval", "exec") and read:  # of a data frame, say: see _EVALUATE
        return ""
    if name == "format":  # of a text; the function format() reads no attribute
        return _CALLED[name] if read and before.opname != "LOAD_CONST" else ""
    if name == "modules" and read and before.argval != "sys":  # of a neural network, say
        return ""
    following = [each for each in instructions[at + 1 :] if each.opname not in _IDLE]
    if name == "modules" and following[0].argval == "get":
        following = following[1:]
    if name == "globals":  # globals()["name"]
        following = following[1:] if following[0].opname.startswith("CALL") else []
    for instruction in following:
        if instruction.is_jump_target:  # there may be another value
            break
        if instruction.opname.startswith(_LOADS):
            loads.append(instruction)
        elif loads and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            loads[-1] = instruction
        elif instruction.opname.startswith("CALL") and instruction.arg != len(loads):
            break
        else:
            wanted = loads[1 if name in ("getattr", "hasattr") else 0 :]
            own = name == "modules" and wanted and wanted[0].opname == "LOAD_GLOBAL"
            fixed = wanted and (wanted[0].opname == "LOAD_CONST" or (own and wanted[0].argval == "__name__"))
            last = instruction.opname
            return "" if fixed and last.startswith(("CALL", "BINARY")) else _CALLED[name]
    return _CALLED[name]


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
    if isinstance(value, enum.Flag):
        state.pop("_inverted_", None)  # which Python computes when it is first asked for
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            private = slot.startswith("__") and not slot.endswith("__")
            name = f"_{base.__name__.lstrip('_')}{slot}" if private else slot
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                state[name] = getattr(value, name)
    return state


NAMES = ("__module__", "__name__", "__qualname__", "__doc__", "__type_params__")
"""What a function says of itself, besides its annotations."""
_WRITTEN = frozenset(
    {"__builtins__", "__loader__", "__spec__", "__cached__", "__warningregistry__", "__file__"}
)
_DISPATCHING = ("registry", "dispatch", "register", "_clear_cache")
_DISPATCH = cast("Any", functools.singledispatch(len)).__code__


ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, type(...)})
"""Types of values that cannot change."""


_NOTHING = object()


def simple(value: Any) -> bool:
    """Tell whether a value is a list, tuple or dict of values that cannot change."""
    items = [*value, *value.values()] if type(value) is dict else value
    return type(value) in (list, tuple, dict) and all(type(item) in ATOMS for item in items)


def values_in(owners: list[Any], names: Iterable[str]) -> Iterator[tuple[Any, str, str, Any]]:
    """Yield what installed modules hold under some names, and what the objects found there hold.

    Values, classes, and what is the user's own come with their owner, name and label; functions of libraries
    do not come.
    """
    seen = {id(owner) for owner in owners}
    waiting = [(owner, _name(owner), 4) for owner in owners]  # so deep may settings be
    names = sorted(names)
    while waiting:
        owner, label, left = waiting.pop()
        scope = _attribute(owner, "__dict__")
        for name in names if type(scope) is dict else ():
            value = scope.get(name, _NOTHING)
            if value is _NOTHING or value is sys.modules or isinstance(value, types.BuiltinFunctionType):
                continue
            if isinstance(value, type) or type(value) in ATOMS or accessors.is_value(value) or patched(value):
                yield owner, name, f"{label}.{name}", value
            elif (
                left
                and id(value) not in seen
                and not isinstance(value, types.FunctionType)
                and not (isinstance(value, types.ModuleType) and origin(_name(value)) is None)
            ):  # a module inside a package, or an object with settings
                seen.add(id(value))
                waiting.append((value, f"{label}.{name}", left - 1))


def patched(value: Any) -> bool:
    """Tell whether what an installed module holds is the user's own."""
    if isinstance(value, types.FunctionType):
        return origin(value.__globals__.get("__name__")) is None
    return (
        isinstance(value, functools.partial)
        or origin(_module_of(value if isinstance(value, type) else type(value))) is None
    )


def _name(module: types.ModuleType) -> str:
    """Return a module's name, even if the module was changed."""
    found = vars(module).get("__name__")
    return found if isinstance(found, str) else "?"


def _spelled(value: Any, owner: str) -> str:
    """Return the name of installed code; that of this library without its module, which may change."""
    if owner == "privatize":
        return tag_of(value) if isinstance(value, type) else str(value.__qualname__)
    return f"{value.__module__}.{value.__qualname__}"


def _annotations(value: Any) -> dict[str, Any]:
    """Return the annotations of a function or class; a class's own, not its bases'."""
    try:
        found = vars(value).get("__annotations__") if isinstance(value, type) else value.__annotations__
    except Exception:  # from Python 3.14 on they are computed when they are read
        return {"": getattr(value, "__annotate__", None)}
    return dict(found) if isinstance(found, dict) else {}


def spelled(annotations: dict[str, Any]) -> set[str]:
    """Return the names in annotations that are texts."""
    texts = [each for each in annotations.values() if isinstance(each, str)]
    return set().union(*(_words(each, everywhere=True) for each in texts))


def _derived(value: type) -> Iterator[type]:
    """Yield the user's own classes that derive from a class, as `__subclasses__` finds them."""
    kinds: list[type] = type.__subclasses__(value)
    for kind in kinds:
        if origin(_module_of(kind)) is None:
            yield kind
        yield from _derived(kind)


def _generated(value: type) -> bool:
    """Tell whether a dataclass's docstring is the one that Python makes of its signature.

    It holds the defaults' reprs, and so their addresses, or sets in any order.
    """
    text = value.__doc__ or ""
    if not text.startswith(f"{value.__name__}("):
        return False
    with contextlib.suppress(Exception):
        return text == value.__name__ + str(inspect.signature(value)).replace(" -> None", "")
    return False


def _stable(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an object of a library without what differs from process to process.

    That is the ids of what it holds, and the numbers of a torch module's hooks, which count earlier ones.
    """
    ids = {id(part): name for name, part in state.items()}
    state = {k: f"id of {ids[v]}" if type(v) is int and v in ids else v for k, v in state.items()}
    hooks = {name: part for name, part in state.items() if isinstance(part, dict) and "_hooks" in name}
    keys = sorted({key for part in hooks.values() for key in part if isinstance(key, int)})
    order = {key: at for at, key in enumerate(keys)}
    for name, part in hooks.items():
        state[name] = [(order.get(key, key), hook) for key, hook in part.items()]
    return state


def _logging(value: Any) -> str:
    """Return what code can read from a logger."""
    handlers = [(type(each).__qualname__, each.level) for each in value.handlers]
    level = value.level, value.getEffectiveLevel(), value.manager.disable
    return f"{value.name} {level} {value.disabled} {value.propagate} {handlers}"


# --- the encoder ----------------------------------------------------------------------------

# Of a class: what Python adds, what follows from the rest, and what grows with use.
_SKIPPED = frozenset(
    {
        *("__dict__", "__weakref__", "__firstlineno__", "__static_attributes__", "__slotnames__"),
        *("__annotations_cache__", "_abc_impl", "_value2member_map_"),
    }
)
_HEAP_TYPE = 1 << 9
_COMPILED = (types.MethodDescriptorType, types.ClassMethodDescriptorType, types.WrapperDescriptorType)
_MOST = 1024  # encodings that are kept
_WALKED = frozenset({"vars", "__dict__"})
_WAITLESS = "acquire without waiting"  # which tells whether a lock is free
_LOCKED = frozenset({"locked", "locked_lock", _WAITLESS, "_is_owned"})
_LOGGED = frozenset({"isEnabledFor", "getEffectiveLevel", "level", "disabled", "handlers", "hasHandlers"})
# What makes a value of typing's what it is; `pickle` knows these by name alone.
_TYPING = {
    **dict.fromkeys(("TypeVar", "ParamSpec", "TypeVarTuple"), ("__name__", "__bound__", "__constraints__")),
    "NewType": ("__name__", "__qualname__", "__module__", "__supertype__", "__doc__"),
    "ForwardRef": ("__forward_arg__", "__forward_module__", "__forward_is_class__"),
    "TypeAliasType": ("__name__", "__module__", "__value__", "__type_params__"),
}
_VARIANCE = ("__covariant__", "__contravariant__", "__infer_variance__", "__default__")
# Modules whose objects hold what cannot be seen: the globals that code was compiled with, or state in another
# process or in files.
_HIDING = (
    *(
        "numba.",
        "jax.",
        "jaxlib.",
        "torch.jit",
        "torch._dynamo",
        "torch._C",
        "joblib.memory",
        "joblib.parallel",
    ),
    *("multiprocessing.managers", "multiprocess.managers", "multiprocessing.sharedctypes", "tempfile"),
)
_BUILTINS = dict(vars(builtins))


def is_builtin(name: str) -> bool:
    """Tell whether a name is one of Python's own, and means what it always did."""
    return name in _BUILTINS and vars(builtins).get(name) is _BUILTINS[name]


def tag_of(kind: type) -> str:
    """Return the name of one of our own classes in keys, which stays when its module moves.

    Samplers and mechanisms have a tag, and a version of what they draw or measure.
    """
    tag = vars(kind).get("tag")
    if not isinstance(tag, str):
        return kind.__qualname__
    version = getattr(kind, "draw_version", None) or getattr(kind, "gap_version", None)
    return tag if version is None else f"{tag} {version}"


def _decimal() -> str:
    context = importlib.import_module("decimal").getcontext().copy()
    context.clear_flags()  # which change with use
    return repr(context)


def _locale() -> str:
    return repr([locale.setlocale(each) for each in (locale.LC_NUMERIC, locale.LC_COLLATE, locale.LC_TIME)])


def _printing() -> str:
    options = sys.modules["numpy"].get_printoptions()
    return repr(sorted((name, repr(value)) for name, value in options.items()))


# Where code runs, which is another place every time.
_WHERE = frozenset(
    {
        *(
            "getpid",
            "getppid",
            "get_ident",
            "get_native_id",
            "current_thread",
            "current_process",
            "parent_process",
        )
    }
)
_FLAGS = frozenset({"flags", "writeable", "setflags", "__array_interface__"})
_ENVIRONMENT = frozenset({"environ", "environb", "getenv", "expandvars", "putenv"})

# Settings that count only where code names what reads them.
_SETTINGS: list[tuple[frozenset[str], Callable[[], str]]] = [
    (frozenset({"decimal", "Decimal", "getcontext", "localcontext"}), _decimal),
    (frozenset({"locale", "strftime", "strptime", "atof", "localeconv", "strcoll", "strxfrm"}), _locale),
    (frozenset({"RecursionError"}), lambda: str(sys.getrecursionlimit())),
    (_ENVIRONMENT, lambda: ""),  # see _Encoder.settings
    (frozenset({"flags"}), lambda: repr((sys.flags.optimize, sys.flags.dev_mode, sys.flags.utf8_mode))),
    (frozenset({"str", "repr", "array2string", "array_str", "array_repr", "get_printoptions"}), _printing),
    (
        frozenset({"get_option", "options"}),
        lambda: repr(getattr(sys.modules.get("pandas._config.config"), "_global_config", None)),
    ),
]


CONFIGURED: dict[str, Callable[[Any], str]] = {
    "sklearn": lambda sklearn: repr(sorted(sklearn.get_config().items())),
    "torch": lambda torch: f"{torch.get_default_dtype()} {torch.is_grad_enabled()}",
}
"""Libraries with settings that change what their functions return."""


NAMED = (_EVALUATE | _OF_PYTHON | _READ | _WHERE | {"modules", "__subclasses__"}).union(
    *(names for names, _ in _SETTINGS)
)
"""Names in code that make more of the process count than what a function refers to."""


@functools.lru_cache(maxsize=4096)
def _known_own(thing: Any) -> bool:
    return accessors.is_own(thing, origin)


def is_own(thing: Any) -> bool:
    """Tell whether the user's own program has put something into an installed class or module."""
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
        encoder.add(tag_of(type(value)).encode())
        encoder.on_state(_state(value))
        if len(_encoded) >= _MOST:
            _encoded.clear()
        met = sized.met
        if type(value).__module__.startswith("privatize.samplers."):
            met = [each if isinstance(each, Declared) else Declared(each) for each in met]
        known = _encoded[id(value)] = (value, b"".join(encoder.parts), met)
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
        self.classes: list[type] = []
        self.libraries: set[str] = set()  # the installed ones that code names
        self.versioned: dict[int, types.ModuleType] = {}  # installed modules that were met
        self.scopes: list[dict[str, Any]] = []  # of code that evaluates texts
        # State that counts only where code names what reads it.
        self.later: list[tuple[frozenset[str], Callable[[], str]]] = []
        self.installed: dict[type, None] = {}  # classes that are named, which the user may have patched
        self.accessors: set[tuple[type, str]] = set()

    def found(self, owner: Any, name: str, value: Any) -> Any:
        """Return what was found in a place, and note it if anybody wants to know."""
        if self.read is not None:
            self.read[id(owner), name] = value
        return value

    def named(self, name: str, value: Any) -> None:
        """Encode what was reached by a name; errors show the name."""
        try:
            self.encode(value)
        except Unencodable as error:
            error.path.insert(0, name)
            raise
        except PrivateReachable as error:
            # Whatever is inside a value, such as the keys of a dict, may be somebody's data.
            inner = error.path if isinstance(value, types.FunctionType | types.ModuleType | type) else []
            error.path = [] if name.startswith("[") else [name, *inner]
            raise

    def doubt(self, what: str) -> None:
        """Refuse what has no content, unless a version describes it."""
        if self.version is None:
            raise Unencodable(what)
        self.add(f"vouched for: {what}".encode())

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
        if "@" in value:
            self.attributes.update(_AT.findall(value))
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
                if isinstance(key, str):
                    self.named(f"[{key!r}]", item)
                else:
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
            self.classes += inner.classes
            self.libraries |= inner.libraries
            self.versioned |= inner.versioned
            self.scopes += inner.scopes
            self.later += inner.later
            for name, attributes in inner.wanted.items():
                self.wanted.setdefault(name, set()).update(attributes)
        self.add(type(value).__name__.encode())
        self.add("".join(sorted(digests)).encode())
        if all(type(item) in (int, float) for item in value):  # whose order is the same in every process
            self.on_tuple(tuple(value))

    def on_proxy(self, value: types.MappingProxyType[Any, Any]) -> None:
        self.add(b"proxy")
        self.encode(dict(value))

    def on_state(self, value: dict[str, Any]) -> None:
        """Encode attributes, whose order few see."""
        self.parts.append(b"<%d;" % len(value))
        self.later.append((_WALKED, lambda: repr(list(value))))
        for name in sorted(value):
            self.on_str(name)
            self.named(name, value[name])

    def on_array(self, value: Any) -> None:
        self.compare(value)
        if not self.narrow:  # a copy in another process is not like this one
            self.later.append((_FLAGS, lambda: f"writeable={value.flags.writeable}"))
        if value.dtype.hasobject:
            if self.again(value):
                return
            self.add(f"array {value.dtype!r} {value.shape}".encode())
            for item in value.ravel().tolist():
                self.encode(item)
            return
        # Order in memory decides the order of summation.
        layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "?"
        if value.dtype.metadata:
            self.encode(dict(value.dtype.metadata))
        self.add(f"array {value.dtype!r} {value.dtype.str} {value.shape} {layout}".encode())
        self.add(value.tobytes())

    def on_scalar(self, value: Any) -> None:
        self.add(b"scalar")
        self.on_array(np.asarray(value))

    # -- code --

    def on_function(self, value: types.FunctionType) -> None:
        if self.again(value):
            return
        owner = origin(_module_of(value))
        if owner is not None and _found(value, value.__module__, value.__qualname__):
            self.on_lookup(value.__name__, owner)
            self.libraries.add(owner.partition(" ")[0])
            self.add(f"function {_exactly(owner)} {_spelled(value, owner)}".encode())
            return
        if value.__dict__.get("opaque") and value.__globals__.get("__name__") == "privatize.budgets.sealed":
            self.add(b"a source of sealed data, which nothing but a private function opens")
            return
        code = self.found(value, "its code", value.__code__)
        encoded, names, attributes, imports, chains = code_of(code)
        self.owners.add(_module_of(value) or "")
        self.add(b"function")
        self.add(encoded)
        for name in NAMES[:-1] if self.narrow else NAMES:  # cloudpickle leaves the last one out
            said = self.found(value, name, getattr(value, name, None))
            self.encode(self.home(said) if name == "__module__" else said)
        self.on_annotations(value, value.__globals__)
        self.named("its defaults", self.found(value, "its defaults", value.__defaults__))
        self.on_state(value.__kwdefaults__ or {})
        if value.__dict__.get("registry") and value.__code__ is _DISPATCH:
            self.on_dict(dict(value.__dict__["registry"]))  # and not what it remembers of earlier calls
            self.on_state({k: v for k, v in vars(value).items() if k not in _DISPATCHING})
            return
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=False):
            self.named(name, self.found(cell, "", _content(cell)))
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
        self.lookups.update(each.split("'")[1] for each in attributes if each.startswith("anything by "))
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=False))
        for root, chain in chains:
            self.want(scope.get(root) if root not in cells else _content(cells[root]), root, chain)
        for name in names:
            if name in scope:
                self.on_str(name)
                if name not in _IMPORTERS or scope[name] is not importlib.import_module:
                    self.named(name, self.found(value, name, scope[name]))
            elif not is_builtin(name):
                self.on_str(name)
                self.encode(vars(builtins).get(name, "missing"))
            elif isinstance(self.found(builtins, name, _BUILTINS[name]), type):
                self.classes.append(_BUILTINS[name])
        own: Any = getattr(value, "__builtins__", None)
        if own and own is not vars(builtins):  # those of a named tuple's code are empty
            self.lookups.add("__builtins__")
            self.named("__builtins__", own)
        for name, level, wanted in imports:
            self.on_imported(name, level, wanted, scope)
            if name in _LOOKING:
                self.attributes.update(
                    f"anything by {each!r}" for each in _OF_PYTHON.intersection(attributes)
                )
        if not _EVALUATE.isdisjoint(attributes):
            self.scopes.append(scope)
        if self.narrow:
            return
        if "modules" in attributes:  # sys.modules[__name__]
            attributes = (*attributes, str(scope.get("__name__")))
        for name in attributes:  # sys.modules["helpers"], import_module("helpers")
            found = sys.modules.get(name)
            if found is not None:
                self.found(sys.modules, name, found)
                if origin(name) is None and issubclass(type(found), types.ModuleType):
                    self.meet(found)

    def on_annotations(self, value: Any, scope: dict[str, Any]) -> None:
        """Encode annotations in their order, and what those that are texts refer to."""
        annotations = _annotations(value)
        self.encode(annotations)
        if not self.narrow:  # code that evaluates them is not shipped
            for name in sorted(spelled(annotations)):
                if name in scope:
                    self.on_str(name)
                    self.named(name, self.found(value, name, scope[name]))

    def home(self, module: Any) -> Any:
        """Return a module's name; in a child process the main program has another one."""
        if module != "__mp_main__":
            return module
        self.later.append((frozenset({"__module__", "vars", "__dict__"}), lambda: "__mp_main__"))
        return "__main__"

    def on_lookup(self, name: str, owner: str | None) -> None:
        """Note functions such as ``getattr`` that were reached under another name, or as a value."""
        if owner == "python":
            if name in _LOOKUPS:
                self.lookups.add(name)
            way = _CALLED.get(name) or _WAYS.get(name) or ("anything" if name in _OF_PYTHON else "")
            if way:
                self.attributes.add(f"{way} by {name!r}")

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
            if origin(_name(owner)) is None:
                self.wanted.setdefault(_name(owner), set()).add(attribute)
            elif self.narrow and owner is sys and simple(root):  # sys.argv is another one in a worker
                self.lookups.add(f"sys.{attribute}")
            elif type(root) in ATOMS or simple(root):
                self.encode(root)
            elif attribute in _READ and origin(_name(owner)) == "python" and callable(root):
                self.encode(None if self.narrow else root())
            elif (attribute in _OF_PYTHON and _name(owner) in _LOOKING) or (
                root is sys.modules and name != "sys"  # where `_way` does not look
            ):
                self.on_lookup(attribute, "python")
            elif origin(_name(owner)) != "python" or isinstance(root, types.FunctionType):
                self.on_attribute(owner, attribute, root)
            elif patched(root):
                # By content, and not to be found elsewhere.
                self.lookups.add(f"{_name(owner)}.{attribute} (which was patched)")
                self.encode(root)
            elif not self.narrow and accessors.is_value(root) and root is not sys.modules:
                self.on_str(f"{_name(owner)}.{attribute}")  # sys.argv, say, or what the user has put there
                self.encode(root)
            if isinstance(root, type) and origin(_name(owner)) is not None:
                self.classes.append(root)
                self.on_registered(root)

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
            computed = any(name.startswith("an attribute by ") for name in self.attributes)
            return set(vars(self.modules[module])) - _WRITTEN if computed else self.attributes
        return self.wanted.get(module, set()) | self.wanted.get("", set())

    def meet(self, module: types.ModuleType) -> None:
        """Take note of one of the user's own modules; of two with one name, of both."""
        name = _name(module)
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
        if name not in sys.modules and not (self.narrow and origin(name) is not None):
            try:
                importlib.import_module(name)  # as the function is about to do
            except Exception:  # an import runs anybody's code; the function will say what is wrong with it
                self.add(b"missing module " + name.encode())
                return
        found = sys.modules.get(name)
        owner = origin(name)
        if found is None or owner is not None:  # whether somebody has imported it by now or not
            self.add(f"import {name} {owner}".encode())
            self.libraries.add((owner or "").partition(" ")[0])
            if owner != "privatize" and issubclass(type(found), types.ModuleType):
                self.versioned[id(found)] = found  # type: ignore[assignment] # it is a module
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
        owner, module = getattr(value, "__self__", None), _module_of(value)
        if module is None and isinstance(owner, types.ModuleType):
            module = _name(owner)
        source = origin(module or "builtins")
        self.on_lookup(value.__name__, source)
        self.add(f"builtin {module}.{value.__qualname__} {source}".encode())
        self.libraries.add((source or "").partition(" ")[0])
        if source is None:
            self.on_binary(module or "")
        if owner is not None and not isinstance(owner, types.ModuleType):
            self.on_owner(owner)

    def on_binary(self, module: str) -> None:
        """Encode a compiled module of the user's own by its file, and by what can be read from it."""
        found, file = sys.modules.get(module), _extension(module)
        if found is None or file is None:
            self.doubt(f"compiled code of {module!r}, whose file is not known")
            return
        self.on_file(file)
        if not self.narrow:
            self.attributes.add("an attribute by 'compiled code'")
            self.meet(found)

    def on_file(self, file: str) -> None:
        """Encode a compiled library by its content."""
        try:
            self.add(f"file {_binary(file)}".encode())
        except (OSError, Unencodable) as error:
            self.doubt(str(error) if isinstance(error, Unencodable) else "a compiled library without a file")

    def on_descriptor(self, value: Any) -> None:
        owner = value.__objclass__
        module = _module_of(owner)
        self.add(f"descriptor {module}.{owner.__qualname__}.{value.__name__}".encode())
        if origin(module) is None and type(value) in _COMPILED:
            self.on_binary(module or "")

    def on_code(self, value: types.CodeType) -> None:
        self.add(b"code")
        self.add(code_of(value)[0])

    def on_wrapped(self, value: Any) -> None:
        self.add(type(value).__qualname__.encode())
        self.encode(value.__func__)

    def on_property(self, value: property) -> None:
        self.add(b"property")
        self.on_tuple((value.fget, value.fset, value.fdel, value.__doc__))

    def on_partial(self, value: functools.partial[Any]) -> None:
        if not self.again(value):
            self.add(b"partial")
            self.encode(value.func)
            self.on_tuple(value.args)
            self.encode(dict(value.keywords))
            self.on_state(vars(value))

    def on_cached(self, value: Any) -> None:
        if not self.again(value):
            module, name = _module_of(value), str(_attribute(value, "__qualname__"))
            if origin(module) is not None and _found(value, module, name):
                self.add(f"function {origin(module)} {module}.{name}".encode())
                return
            if self.private is not None and self.private.inside(value):
                raise PrivateReachable
            value.cache_clear()  # it may hold answers from before something changed
            self.add(b"lru_cache")
            self.encode(value.__wrapped__)
            self.on_state(value.cache_parameters())
            self.on_state({k: v for k, v in vars(value).items() if k != "__wrapped__"})

    def on_module(self, value: types.ModuleType) -> None:
        name = _name(value)
        owner = origin(self.found(value, "__name__", name))
        self.add(f"module {name} {_exactly(owner)}".encode())
        self.libraries.add((owner or "").partition(" ")[0])
        if owner not in (None, "privatize"):
            self.versioned[id(value)] = value
        if owner is None:
            self.meet(value)
            if "__getattr__" in vars(value):  # attributes that it makes up
                self.attributes.add("__getattr__")

    def encode_modules(self) -> None:
        """Encode what can be reached through the user's own modules: every attribute that is named."""
        done: set[tuple[Any, str]] = set()
        classes: dict[int, type] = {}
        while True:
            if not self.narrow and (ways := [n for n in self.attributes if n.startswith("anything by ")]):
                self.doubt(f"code that can look up {min(ways)}, whatever its name")
            todo = sorted(
                (name, attribute)
                for name, module in self.modules.items()
                for attribute in self.wanted_from(name)
                if (name, attribute) not in done and attribute in vars(module)
            )
            for name, attribute in todo:
                done.add((name, attribute))
                self.on_str(f"{name}.{attribute}")
                module = self.modules[name]
                found = self.found(module, attribute, vars(module)[attribute])
                self.named(f"{name}.{attribute}", found)
            derived = [c for c in self.classes if id(c) not in classes] if self.subclassed() else []
            for each in derived:
                classes[id(each)] = each
                self.encode(list(_derived(each)))
            asked = {name[1:] for name in self.attributes if name.startswith("@")}
            texts = [
                (scope, name)
                for scope in self.scopes
                for name in sorted(asked)
                if (id(scope), name) not in done
            ]
            for scope, name in texts:
                done.add((id(scope), name))
                if name in scope:
                    self.on_str(name)
                    self.lookups.add(f"@{name}")
                    self.named(name, None if self.narrow else scope[name])
            values = [] if self.narrow else [each for each in self.values_named() if each[0] not in done]
            for place, label, value in values:
                done.add(place)
                self.on_str(label)
                self.encode(value)
            if not todo and not derived and not texts and not values and not self.encode_accessors():
                break
        self.encode(sorted(read() for names, read in self.later if names & self.attributes))
        if any(names is _LOGGED and names & self.attributes for names, _ in self.later):
            self.lookups.add("the level of a logger")  # which is not shipped
        self.encode(None if self.narrow else self.settings())

    def settings(self) -> list[Any]:
        """Return the settings of the process, and of libraries, that code which was met can read."""
        if where := _WHERE & self.attributes:
            self.doubt(f"the process or thread that it runs in ({min(where)})")
        found: list[Any] = [read() for names, read in _SETTINGS if names & self.attributes]
        if _ENVIRONMENT & self.attributes:  # those whose names stand in the code
            found.append({name: os.environ[name] for name in sorted(self.attributes) if name in os.environ})
        for library, read in CONFIGURED.items():
            if library in self.libraries and library in sys.modules:
                found.append([library, read(sys.modules[library])])
        return found

    def subclassed(self) -> bool:
        return not self.narrow and "__subclasses__" in self.attributes

    def values_named(self) -> Iterator[tuple[tuple[Any, str], str, Any]]:
        """Yield the values in installed modules, and in objects there, that have a name which code reads.

        Code may read them in any way: by a local name, as an argument of a helper.
        """
        owners = sorted(self.versioned.values(), key=_name)
        for owner in owners if self.read is not None else ():
            for name in self.attributes:
                if name in vars(owner):
                    self.found(owner, name, vars(owner)[name])
        for owner, name, label, value in values_in(owners, self.attributes):
            if isinstance(value, type):
                self.installed[value] = None
            else:
                yield (id(owner), name), label, value

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
        module = _module_of(value)
        owner = origin(module)
        static = not value.__flags__ & _HEAP_TYPE  # C types that Python code cannot have made
        if value not in (object, type):  # of which every class is one
            self.classes.append(value)
        if owner is not None and (static or _found(value, module, value.__qualname__)):
            self.libraries.add(owner.partition(" ")[0])
            if not static and owner not in ("privatize", "python"):
                self.installed[value] = None
            if self.narrow and not static and owner != "privatize":
                for name, method in vars(value).items():
                    if (
                        isinstance(method, types.FunctionType)
                        and origin(method.__globals__["__name__"]) is None
                    ):
                        self.lookups.add(f"{value.__qualname__}.{name} (which was patched)")
            self.on_lookup(value.__name__, owner)
            if value.__name__ in NAMED:
                self.attributes.add(value.__name__)
            self.add(f"class {owner} {_spelled(value, owner)}".encode())
            self.on_registered(value)
            return
        if self.again(value):
            return
        self.owners.add(module or "")
        self.add(f"class {value.__name__} {value.__qualname__}".encode())
        if _compiled(value):
            self.on_binary(module or "")
        self.encode(type(value))
        self.on_tuple(value.__bases__)
        self.on_registered(value)
        kept = {k: v for k, v in vars(value).items() if k not in _SKIPPED}
        if "__module__" in kept:
            kept["__module__"] = self.home(kept["__module__"])
        if "__dataclass_fields__" in kept and _generated(value):
            del kept["__doc__"]
        # Slots are in __slots__ as well; a class that was shipped has attributes in their place.
        kept = {k: v for k, v in kept.items() if type(v) is not types.MemberDescriptorType}
        try:
            self.on_state(kept)
        except Unencodable as error:
            error.path[0] = f"{value.__qualname__}.{error.path[0]}"
            raise
        if not self.narrow:
            scope = _attribute(sys.modules.get(module or ""), "__dict__") or {}
            for name in sorted(spelled(_annotations(value))):
                if name in scope:
                    self.on_str(name)
                    self.named(name, scope[name])

    def on_registered(self, value: type) -> None:
        """Encode classes registered with an abstract one; with an installed one, only the user's own."""
        if "_abc_impl" not in vars(value):
            return
        registry = cast("Any", abc)._get_dump(value)[0]
        installed = origin(_module_of(value)) is not None
        kinds = [kind for each in registry if (kind := each()) is not None]
        found = [kind for kind in kinds if not installed or origin(_module_of(kind)) is None]
        if found:
            self.on_set(found)
            if installed:  # then it is not shipped
                self.lookups.add(f"{value.__qualname__}.register")

    # -- everything else --

    def on_other(self, value: Any) -> None:
        kind = type(value)
        module = _module_of(kind) or ""
        ours = module.startswith("privatize.")
        name = tag_of(kind) if ours else f"{module}.{kind.__qualname__}"
        if ours and getattr(kind, "immutable", False):
            encoded, sized = _immutable(value)
            self.parts.append(encoded)
            for each in sized:
                self.compare(each)
            return
        if ours and getattr(kind, "opaque", False):
            self.add(b"a budget, a ledger or sealed data, on which no answer depends")
            return
        identity = getattr(kind, "_identity", None)
        if identity is not None and ours:
            self.add(tag_of(kind).encode())
            self.encode(identity(value))
            return
        if isinstance(value, type):
            self.on_type(value)
            return
        if isinstance(value, np.ndarray):  # a subclass
            self.on_type(kind)
            self.on_state(getattr(value, "__dict__", {}))
            self.on_array(np.ndarray.view(value, np.ndarray))  # whatever its own methods do
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
        if value is getattr(random, "_inst", None) or value is np.random.mtrand._rand:
            self.on_owner(value)
            return
        if isinstance(value, weakref.ReferenceType):
            self.add(name.encode())
            self.encode(value())
            return
        if callable(value) and isinstance(qualname := _attribute(value, "__qualname__"), str):
            made = _module_of(value)  # an extension's
            owner = origin(made)
            if owner is not None and _found(value, made, qualname):
                self.add(f"function {owner} {_spelled(value, owner)}".encode())
                return
            if owner is None and _extension(made):
                self.add(f"function {made}.{qualname}".encode())
                self.on_binary(made or "")
                return
        if self.again(value):
            return
        special = _SPECIAL.get(name)
        try:
            if special is not None:
                self.add(name.encode())
                special(self, value)
            elif module.startswith(_HIDING) and not hasattr(value, "detach"):
                raise TypeError
            elif module.partition(".")[0].startswith("typing") and kind.__name__ in _TYPING:
                self.add(f"typing {kind.__name__}".encode())
                self.on_tuple(tuple(_attribute(value, each) for each in _TYPING[kind.__name__] + _VARIANCE))
            else:
                self.on_reduced(value, kind)
        except (Unencodable, PrivateReachable, RecursionError):
            raise
        except Exception:  # __reduce__ is anybody's code: what it raises means that there is no telling
            if self.private is not None and self.private.inside(value):
                raise PrivateReachable from None
            self.doubt(f"a {name}")

    def on_reduced(self, value: Any, kind: type) -> None:
        """Encode an object as what `copy` and `pickle` would make it again from."""
        if inspect.isgenerator(value) or inspect.iscoroutine(value):
            raise TypeError
        module = _module_of(kind) or ""
        if module.startswith("torch") and hasattr(value, "detach"):
            # What a tensor is made of again holds the storage's address: its numbers are what counts.
            self.add(f"{kind.__qualname__} {value.dtype} {value.requires_grad} {origin('torch')}".encode())
            self.on_array(value.detach().cpu().numpy())
            if not self.narrow:
                self.add(
                    f"{value.layout} {value.stride() if 'strided' in str(value.layout) else ''}".encode()
                )
                self.encode(value.grad if value.is_leaf else None)
                self.on_state({k: v for k, v in vars(value).items() if k != "_backward_hooks"})
            return
        self.on_type(kind)
        if module.startswith("pandas"):  # which leaves out what the user has set as an attribute
            own = {k: v for k, v in (_attribute(value, "__dict__") or {}).items() if not k.startswith("_")}
            self.on_state(own)
        registered = copyreg.dispatch_table.get(kind)
        ours = module.partition(".")[0] == "privatize"
        if origin(module) is None or ours:
            # A class's own __reduce__ may leave out what its methods read, so the state comes first.
            self.on_state(_state(value))
            self.encode(registered)
            written = [
                base is object or not (origin(_module_of(base)) or _compiled(base)) for base in kind.__mro__
            ]
            if all(written):  # in Python, so that there is no more to it
                return
            if ours:
                return
            if isinstance(value, dict):  # whatever its own methods make of it
                self.encode(list(dict.items(value)))
            elif isinstance(value, list | tuple | set | frozenset):
                plain: Any = next(base for base in (list, tuple, set, frozenset) if isinstance(value, base))
                self.encode(plain(plain.__iter__(value)))
        made = value.__reduce_ex__(4) if registered is None else registered(value)
        if isinstance(made, str):
            self.add(f"global {made}".encode())
            if origin(_module_of(value)) is None:
                self.on_state(_state(value))
            return
        function, args, *rest = made
        self.encode(function)
        self.on_tuple(tuple(args))
        for at, part in enumerate(rest):
            if at in (1, 2) and part is not None:  # iterators over items
                self.on_list(list(part))
            elif isinstance(part, dict) and all(isinstance(key, str) for key in part):
                self.on_state(_stable(part))
            else:
                self.encode(part)

    def on_library(self, value: Any) -> None:
        """Encode a library that ctypes loaded by its file, which must be known."""
        if not Path(value._name or "").is_file():
            raise TypeError
        self.on_file(value._name)

    def on_lock(self, value: Any) -> None:
        self.later.append((_LOCKED, lambda: repr(value).partition(" ")[0]))

    def on_logger(self, value: Any) -> None:
        self.add(value.name.encode())
        self.later.append((_LOGGED, lambda: _logging(value)))

    def on_variable(self, value: Any) -> None:
        self.on_str(value.name)
        try:
            self.named("get()", value.get())
        except LookupError:
            self.add(b"not set")

    def on_ufunc(self, value: np.ufunc) -> None:
        for module in ("numpy", "scipy.special", "numpy._core.umath"):
            if getattr(sys.modules.get(module), value.__name__, None) is value:
                self.add(f"ufunc {module}.{value.__name__} {origin(module)}".encode())
                return
        self.doubt(f"the ufunc {value.__name__}")


def _tree(encoder: _Encoder, value: Any) -> None:
    encoder.on_tuple((value.data, value.leafsize, value.boxsize, value.indices))


_SPECIAL: dict[str, Callable[[_Encoder, Any], None]] = {
    "scipy.spatial._ckdtree.cKDTree": _tree,  # whose pickle holds memory that was never written
    "scipy.spatial._kdtree.KDTree": _tree,
    "numpy.vectorize": lambda encoder, value: encoder.on_state(  # and not the ufunc that it makes of them
        {k: v for k, v in vars(value).items() if k not in ("_ufunc", "_init_stage_2")}
    ),
    "_thread.lock": _Encoder.on_lock,
    "_thread.RLock": _Encoder.on_lock,
    "_thread._local": lambda encoder, value: encoder.on_state(vars(value)),
    "_contextvars.ContextVar": _Encoder.on_variable,
    "logging.Logger": _Encoder.on_logger,
    "logging.RootLogger": _Encoder.on_logger,
    "ctypes.CDLL": _Encoder.on_library,
    "ctypes.PyDLL": _Encoder.on_library,
    "multiprocessing.shared_memory.ShareableList": lambda encoder, value: encoder.on_list(list(value)),
    "multiprocessing.shared_memory.SharedMemory": lambda encoder, value: encoder.on_bytes(bytes(value.buf)),
    "_weakrefset.WeakSet": lambda encoder, value: encoder.on_set(set(value)),
    "weakref.WeakKeyDictionary": lambda encoder, value: encoder.on_list(list(value.items())),
    "weakref.WeakValueDictionary": lambda encoder, value: encoder.on_list(list(value.items())),
}


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
    types.CodeType: _Encoder.on_code,
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
