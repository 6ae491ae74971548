"""The declared identity of P: what a ledger calls a public distribution, whatever version is installed.

A fingerprint answers "could a stored estimate be stale?", so it holds versions and every detail that code can
read. A ledger asks something else: "is this the P that the earlier answers were about?" The answer must be
the same for a whole team, on every Python and after every update. So a declared identity holds nothing but
the law: a fixed tag for each kind of sampler, its parameters in exact form, and the version of its law, which
is raised if a fix changes the distribution. Functions of the user's own count by the syntax tree of their
source and by the values that they use. What cannot be compared is the same only as this very object.
"""

from __future__ import annotations

import ast
import dataclasses
import datetime as dt
import decimal
import dis
import enum
import fractions
import functools
import hashlib
import inspect
import json
import linecache
import os
import secrets
import sys
import types
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from privatize import frames
from privatize.domains import Maybe, OneOf
from privatize.fingerprint import origin
from privatize.samplers import bayes, combined, foreign, learners, numbers, public, tables, values
from privatize.samplers.base import Frozen
from privatize.samplers.foreign import Support
from privatize.samplers.tables import origin_of

__all__ = ["Declared", "declare"]


@dataclass(frozen=True)
class Declared:
    """What a ledger knows a public distribution by.

    Attributes
    ----------
    digest : str
        The identity: "P1:" and 64 hexadecimal digits. Equal for equal laws, in every process and version.
    description : str
        The sampler as code, for people.
    lossless : bool
        Whether the description determines the law: all parameters are in it, and it is made of no function
        and no data. Two samplers with the same lossless description are the same P.
    """

    digest: str
    description: str
    lossless: bool


def declare(sampler: Any) -> Declared:
    """Return the declared identity of a public distribution.

    Columns ``P[...]`` of a table P, its ``labelled(P, "y")`` and its ``.fixed(size=...)`` are P itself.

    Examples
    --------
    >>> from privatize import samplers
    >>> declare(samplers.uniform(0, 1)) == declare(samplers.uniform(0.0, 1.0))
    True
    >>> declare(samplers.uniform(0, 1)).digest[:11]
    'P1:67b3188a'
    """
    whole = origin_of(sampler)
    known = _known.get(id(whole))
    if known is not None and known[0] is whole:
        return known[1]
    encoder = _Encoder()
    try:
        tree = encoder.value(whole)
        content = json.dumps(tree, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    except Exception:  # whatever somebody's class does when it is looked at, and nesting without an end
        content, encoder.lossless = json.dumps(_only(whole)), False
    digest = "P1:" + hashlib.sha256(content.encode("ascii")).hexdigest()
    found = Declared(digest, repr(whole), encoder.lossless)
    if getattr(whole, "settled", False):  # it never changes, so it is read once
        if len(_known) >= 256:
            _known.clear()
        _known[id(whole)] = whole, found
    return found


_known: dict[int, tuple[Any, Declared]] = {}  # with the sampler, so that its id stays its own

_OURS = frozenset(
    kind
    for module in (bayes, combined, foreign, learners, numbers, public, tables, values)
    for kind in vars(module).values()
    if isinstance(kind, type) and "tag" in vars(kind)
)
# The kinds whose repr has all parameters in full, if their parts' has.
_LOSSLESS = frozenset(
    {
        *("uniform", "integers", "normal", "normal with covariance", "values", "dates", "with missing"),
        *("table", "columns", "labelled column", "labelled", "mixture", "truncated", "clipped", "blobs"),
        "fixed size",
    }
)


# --- the same only as this very object --------------------------------------------------------

_tokens: dict[int, tuple[Any, str]] = {}


def _only(value: Any) -> list[str]:
    """Return what stands for an object without content that could be compared: nothing else has it."""
    known = _tokens.get(id(value))
    if known is not None and known[0]() is value:
        return ["this object", known[1]]
    token = secrets.token_hex(16)
    try:
        reference: Any = weakref.ref(value)
    except TypeError:
        reference = functools.partial(_itself, value)  # kept alive, so that its id stays its own
    _tokens[id(value)] = reference, token
    return ["this object", token]


def _itself(value: Any) -> Any:
    return value


# --- source -----------------------------------------------------------------------------------


def _tree_of(function: types.FunctionType) -> Any:
    """Return the syntax tree of a function as JSON, or its bytecode where there is no such source."""
    return _source(function.__code__, _text(function)) or _bytecode(function.__code__)


def _text(function: types.FunctionType) -> str:
    file = function.__code__.co_filename
    linecache.checkcache(file)
    return "".join(linecache.getlines(file, function.__globals__))


@functools.lru_cache(maxsize=256)
def _source(code: types.CodeType, text: str) -> Any:
    """Return the tree of the very function or lambda that a code object was compiled from, or None.

    The source is compiled again and compared, because a file may have been edited since it was imported.
    """
    try:
        module = ast.parse(text)
        compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    if not any(_same_code(code, other) for other in _codes(compiled)):
        return None
    found = [node for node in ast.walk(module) if _made_by(node, code)]
    return _syntax(found[0]) if len(found) == 1 else None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _same_code(one: types.CodeType, other: types.CodeType) -> bool:
    return (
        one.co_name == other.co_name
        and one.co_firstlineno == other.co_firstlineno
        and _bytecode(one) == _bytecode(other)
        and list(one.co_positions()) == list(other.co_positions())
    )


def _made_by(node: ast.AST, code: types.CodeType) -> bool:
    """Tell whether code was compiled from a node: by its name, its line, and for lambdas its columns."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    if not isinstance(node, ast.Lambda) or code.co_name != "<lambda>":
        return False
    body = node.body
    place = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
    return node.lineno == code.co_firstlineno and place in set(code.co_positions())


def _syntax(node: Any) -> Any:
    """Return a syntax tree as JSON without positions, the same on every version of Python."""
    if isinstance(node, ast.Constant):
        return ["Constant", _literal(node.value)]
    if isinstance(node, ast.AST):
        fields = [
            [name, _syntax(value)]
            for name, value in ast.iter_fields(node)
            if value is not None and value != [] and name not in ("ctx", "kind", "type_comment")
        ]
        return [type(node).__name__, *fields]
    return [_syntax(each) for each in node] if isinstance(node, list) else _literal(node)


def _bytecode(code: types.CodeType) -> list[Any]:
    """Return a code object as JSON, with the version of Python that its bytecode is for."""
    constants = [
        _bytecode(each) if isinstance(each, types.CodeType) else _literal(each) for each in code.co_consts
    ]
    shape = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    named = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    raw = [code.co_code.hex(), code.co_exceptiontable.hex()]
    version = [sys.implementation.name, *sys.version_info[:2]]
    return ["bytecode", version, code.co_name, raw, constants, shape, [list(each) for each in named]]


def _literal(value: Any) -> Any:
    """Return a constant as JSON with its type, or raise TypeError."""
    if value is None or value is ... or isinstance(value, bool):
        return ["constant", repr(value)]
    if type(value) is int:
        return ["int", str(value) if abs(value) < 10**1000 else hex(value)]
    if type(value) is float:
        return ["float", value.hex()]
    if type(value) is complex:
        return ["complex", value.real.hex(), value.imag.hex()]
    if type(value) is str:
        return ["str", value]
    if type(value) is bytes:
        return ["bytes", value.hex()]
    if type(value) is tuple:
        return ["tuple", *map(_literal, value)]
    if type(value) is frozenset:
        return ["frozenset", *sorted((_literal(each) for each in value), key=json.dumps)]
    raise TypeError(f"{type(value).__name__} is not a constant")


@functools.lru_cache(maxsize=256)
def _named_in(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the globals, attributes and modules that code names, that of its inner functions included."""
    scope: set[str] = set()
    attributes: set[str] = set()
    imported: set[str] = set()
    for each in (code, *_codes(code)):
        attributes.update(each.co_names)
        attributes.update(c for c in each.co_consts if isinstance(c, str) and c.isidentifier())
        for step in dis.get_instructions(each):
            if "GLOBAL" in step.opname or step.opname == "LOAD_NAME":
                scope.add(step.argval)
            if step.opname == "IMPORT_NAME":
                imported.add(step.argval)
    return tuple(sorted(scope)), tuple(sorted(attributes)), tuple(sorted(imported))


# Code that names these can find what it does not name.
_LOOKUPS = frozenset({"globals", "locals", "vars", "eval", "exec", "__import__", "import_module", "modules"})


# --- values -----------------------------------------------------------------------------------


class _Encoder:
    """Makes JSON of everything that a law is made of."""

    def __init__(self) -> None:
        self.lossless = True
        self.met: dict[int, tuple[int, Any]] = {}  # with the object, so that its id stays its own
        self.modules: dict[str, types.ModuleType] = {}

    def value(self, value: Any) -> Any:
        """Return any value as JSON."""
        kind = type(value)
        if kind in _OURS:
            if kind.tag not in _LOSSLESS:
                self.lossless = False
            parameters = value.parameters()
            return [
                kind.tag,
                kind.law_version,
                [[name, self.value(parameters[name])] for name in sorted(parameters)],
            ]
        if kind is Frozen:
            return ["numbers", list(value.shape), [each.hex() for each in value.array.ravel().tolist()]]
        if kind is Support:
            return ["support", value.kind, self.value(value.inside)]
        if kind is OneOf:
            return ["one of", self.value(value.values), self.value(value.unknown)]
        if kind is Maybe:
            return ["maybe", self.value(value.inner)]
        if kind is np.datetime64:
            return ["datetime64", *np.datetime_data(value.dtype), str(value.astype(np.int64))]
        if kind is tuple:
            return ["tuple", *map(self.value, value)]
        try:
            return _literal(value)
        except TypeError:
            self.lossless = False
        return self.other(value, kind)

    def other(self, value: Any, kind: type) -> Any:
        """Return as JSON what no lossless description is made of."""
        if id(value) in self.met:
            return ["again", self.met[id(value)][0]]
        self.met[id(value)] = len(self.met), value
        if kind is list:
            return ["list", *map(self.value, value)]
        if kind is dict:
            return ["dict", *([self.value(key), self.value(each)] for key, each in value.items())]
        if kind in (set, frozenset):
            return [kind.__name__, *sorted((_Encoder().value(each) for each in value), key=json.dumps)]
        if kind is np.ndarray:
            return self.array(value)
        if isinstance(value, np.generic):
            return ["scalar", self.array(np.asarray(value))]
        if frames.kind(value) is not None:
            return self.frame(value)
        if isinstance(value, dt.date | dt.time | dt.timedelta | decimal.Decimal | fractions.Fraction):
            return [kind.__name__, repr(value)]
        if isinstance(value, PurePath | os.PathLike) and origin(kind.__module__) is not None:
            return ["path", os.fspath(value)]
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, types.MethodType):
            return ["method", self.value(value.__func__), self.value(value.__self__)]
        if isinstance(value, functools.partial):
            state = [value.func, value.args, dict(value.keywords), vars(value)]
            return ["partial", *map(self.value, state)]
        if isinstance(value, types.ModuleType):
            return self.module(value)
        if isinstance(value, np.ufunc):
            return self.ufunc(value)
        if isinstance(value, type):
            return self.a_class(value)
        return self.instance(value, kind)

    def array(self, value: Any) -> Any:
        """Return an array by what it holds, whatever its order in memory."""
        if value.dtype.hasobject or value.dtype.names is not None:
            return [
                "array",
                str(value.dtype),
                list(value.shape),
                [self.value(each) for each in value.ravel().tolist()],
            ]
        plain = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<"), copy=False))
        code = f"{plain.dtype.kind}{plain.dtype.itemsize}"
        if plain.dtype.kind in "mM":
            code = str(plain.dtype)
        return ["array", code, list(value.shape), hashlib.sha256(plain.tobytes()).hexdigest()]

    def frame(self, value: Any) -> Any:
        """Return a data frame or a series by its columns."""
        form, library = frames.kind(value) or ("", "")
        kinds = [{"object": "text"}.get(each, each) for each in frames.kinds(value)]
        parts = [self.array(each) for each in frames.contents(value)]
        return [form, library, [self.value(name) for name in frames.names(value)], kinds, parts]

    def function(self, value: types.FunctionType) -> Any:
        """Return a function by its source and by the values that it uses."""
        named = _by_name(value)
        if named is not None:
            return named
        scope, attributes, imported = _named_in(value.__code__)
        if _LOOKUPS.intersection(scope, attributes):
            return _only(value)
        tree = _tree_of(value)
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=False)
        closure = [[name, self.value(_content(cell))] for name, cell in cells]
        known = value.__globals__
        used = [[name, self.value(known[name])] for name in scope if name in known]
        used += [[name, self.imported(name, attributes)] for name in imported]
        state = [value.__defaults__, value.__kwdefaults__ or {}, dict(vars(value))]
        return ["function", tree, *map(self.value, state), closure, used, self.attributes(value, attributes)]

    def attributes(self, value: types.FunctionType, names: tuple[str, ...]) -> Any:
        """Return what a function reads from the user's own modules."""
        found = []
        for name in _named_in(value.__code__)[0]:
            module = value.__globals__.get(name)
            if isinstance(module, types.ModuleType) and origin(module.__name__) is None:
                found += [
                    [f"{name}.{each}", self.value(vars(module)[each])]
                    for each in names
                    if each in vars(module)
                ]
        return found

    def imported(self, name: str, attributes: tuple[str, ...]) -> Any:
        """Return a module that a function imports when it runs."""
        if origin(name) is not None:
            return ["module", name]
        module = sys.modules.get(name)
        if module is None:
            raise TypeError("a module that has not been imported")
        return [[each, self.value(vars(module)[each])] for each in attributes if each in vars(module)]

    def module(self, value: types.ModuleType) -> Any:
        """Return an installed module by its name; of the user's own, what is read from it counts."""
        return ["module", value.__name__ if origin(value.__name__) is not None else "own"]

    def ufunc(self, value: np.ufunc) -> Any:
        for module in ("numpy", "scipy.special"):
            if getattr(sys.modules.get(module), value.__name__, None) is value:
                return ["name", f"{module}.{value.__name__}"]
        return _only(value)

    def a_class(self, value: type) -> Any:
        """Return a class by its name if it is installed, and else by its content."""
        named = _by_name(value)
        if named is not None:
            return named
        if value in _OURS:
            return ["class", value.tag, value.law_version]  # type: ignore[attr-defined]
        inside = {k: v for k, v in vars(value).items() if k not in _SKIPPED}
        if dataclasses.is_dataclass(value):  # its methods are made from its fields, and have no source
            inside = {k: v for k, v in inside.items() if not _generated(v)}
        inside = {
            k: v
            for k, v in inside.items()
            if not isinstance(v, types.GetSetDescriptorType | types.MemberDescriptorType)
        }
        return ["class", value.__name__, self.value(value.__bases__), self.state(inside)]

    def instance(self, value: Any, kind: type) -> Any:
        """Return an object by its class and its attributes."""
        if isinstance(value, enum.Enum):
            return ["enum", self.a_class_of_enum(kind), value.name, self.value(value.value)]
        if isinstance(value, staticmethod | classmethod):
            return [kind.__name__, self.value(value.__func__)]
        if isinstance(value, property):
            return ["property", *map(self.value, (value.fget, value.fset, value.fdel))]
        if isinstance(value, functools.cached_property):
            return ["cached property", self.value(value.func)]
        if isinstance(
            value, types.BuiltinFunctionType | types.MethodDescriptorType | types.WrapperDescriptorType
        ):
            owner = getattr(value, "__self__", None)
            bound = None if owner is None or isinstance(owner, types.ModuleType) else self.value(owner)
            return ["builtin", str(getattr(value, "__module__", None)), value.__qualname__, bound]
        if inspect.isgenerator(value) or inspect.iscoroutine(value) or hasattr(value, "fileno"):
            return _only(value)
        if kind.__module__.startswith("torch") and hasattr(value, "detach"):
            return ["tensor", self.array(value.detach().cpu().numpy())]
        own = origin(kind.__module__) is None
        if own and all(
            base is object
            or origin(base.__module__) is None
            or base in _OURS
            or base.__module__ == "privatize.samplers.base"
            for base in kind.__mro__
        ):
            return ["object", self.value(kind), self.state(_state(value))]
        made = value.__reduce_ex__(4)
        if isinstance(made, str):
            return ["global", made]
        parts: list[Any] = [*made[:3], *(None if each is None else list(each) for each in made[3:5])]
        return [
            "object",
            self.value(kind),
            self.state(_state(value)) if own else None,
            *map(self.value, parts),
        ]

    def a_class_of_enum(self, kind: type) -> Any:
        return [kind.__name__]

    def state(self, value: dict[str, Any]) -> Any:
        """Return attributes, whose order does not matter."""
        return [[name, self.value(value[name])] for name in sorted(value)]


_SKIPPED = frozenset(
    {
        *(
            "__dict__",
            "__weakref__",
            "__module__",
            "__qualname__",
            "__firstlineno__",
            "__static_attributes__",
        ),
        *("__abstractmethods__", "_abc_impl", "__slotnames__", "__annotate__", "__annotate_func__"),
        *("__annotations_cache__", "__dataclass_params__", "__match_args__"),
    }
)


def _generated(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__code__.co_filename == "<string>"


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


def _state(value: Any) -> dict[str, Any]:
    """Return an object's attributes, slots included."""
    state = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(value, slot):
                state[slot] = getattr(value, slot)
    return state


def _by_name(value: Any) -> Any:
    """Return the name of a function or class of an installed package, without a version; else None."""
    module, name = value.__module__, value.__qualname__
    if value in _OURS or origin(module) is None:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value:
        return None
    return ["name", f"{module}.{name}" if not module.startswith("privatize.") else f"privatize {name}"]
