"""The declared identity of P: what a ledger calls a public distribution, whatever version is installed.

A fingerprint answers "could a stored estimate be stale?", so it holds versions and every detail that code can
read. A ledger asks something else: "is this the P that the earlier answers were about?" The answer must be
the same for a whole team, on every Python and after every update. So a declared identity holds nothing but
the law: a fixed tag for each kind of sampler, its parameters in exact form, and the version of its law, which
is raised if a fix changes the distribution. Functions of the user's own count by the syntax tree of their
source and by the values that they use. What cannot be compared is the same only as this very object.
"""

from __future__ import annotations

import copyreg
import dataclasses
import decimal
import enum
import fractions
import functools
import hashlib
import importlib
import importlib.util
import inspect
import json
import operator
import os
import random
import secrets
import sys
import types
import weakref
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from privatize.data import frames
from privatize.data.support import Maybe, OneOf
from privatize.identity.origin import is_installed, origin
from privatize.identity.syntax import LOOKUPS, literal, named_in, names_in, text_of, tree_of
from privatize.samplers.base import KINDS, origin_of, traits_of
from privatize.samplers.foreign import as_sampler, of_scipy
from privatize.samplers.given import Support
from privatize.samplers.parameters import Frozen

__all__ = ["Declared", "declare"]


@dataclass(frozen=True)
class Declared:
    """What a ledger knows a public distribution by.

    Attributes
    ----------
    digest : str
        The identity: "P1:" and 64 hexadecimal digits, the same for the same P in every process and version.
        With "P1-bytecode:" it is so for one minor version of Python, since a function has no source; with
        "P1-object:" for this very object only, since it has no content that could be compared.
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
    'P1:884ab1e3'
    """
    whole = origin_of(as_sampler(sampler))
    known = _known.get(id(whole))
    if known is not None and known[0]() is whole:
        return known[1]
    encoder = _Encoder()
    try:
        content = json.dumps(encoder.encode(whole), ensure_ascii=True, separators=(",", ":"))
    except Exception:  # whatever somebody's class does when it is looked at, and nesting without an end
        content, encoder.lossless = json.dumps(encoder.only(whole)), False
    digest = encoder.prefix + hashlib.sha256(content.encode("ascii")).hexdigest()
    found = Declared(digest, repr(whole), encoder.lossless)
    if traits_of(whole).stable:  # it never changes, so it is read once
        if len(_known) >= 256:
            _known.clear()
        _known[id(whole)] = weakref.ref(whole), found
    return found


_known: dict[int, tuple[Any, Declared]] = {}  # by id, with a reference that tells whether it is still its own

_PREFIXES = ("P1:", "P1-bytecode:", "P1-object:")
_tokens: dict[int, tuple[Any, str]] = {}


def _token_of(value: Any) -> str:
    """Return a token that this very object has in this process, and no other one."""
    known = _tokens.get(id(value))
    if known is None or known[0]() is not value:
        for key in [key for key, (reference, _) in list(_tokens.items()) if reference() is None]:
            _tokens.pop(key, None)
        try:
            reference: Any = weakref.ref(value)
        except TypeError:
            reference = functools.partial(operator.getitem, [value], 0)  # kept alive: its id stays its own
        known = _tokens[id(value)] = reference, secrets.token_hex(16)
    return known[1]


# --- values -----------------------------------------------------------------------------------


class _Encoder:
    """Makes JSON of everything that a law is made of."""

    def __init__(self) -> None:
        self.lossless = True
        self.prefix = _PREFIXES[0]
        self.met: dict[int, tuple[int, Any]] = {}  # with the object, so that its id stays its own
        self.modules: dict[str, types.ModuleType] = {}  # of the user's own
        self.attributes: set[str] = set()  # that the user's own code names

    def encode(self, value: Any) -> Any:
        """Return a value as JSON, with what is read from the user's own modules."""
        found = [self.value(value)]
        done: set[tuple[str, str]] = set()
        while True:
            todo = sorted(
                (name, each)
                for name, module in self.modules.items()
                for each in self.attributes & vars(module).keys()
                if (name, each) not in done
            )
            if not todo:
                return found
            for name, each in todo:
                done.add((name, each))
                found.append([name, each, self.value(vars(self.modules[name])[each])])

    def value(self, value: Any) -> Any:
        """Return any value as JSON."""
        kind = type(value)
        if kind in KINDS:
            self.lossless &= value.lossless
            return [kind.tag, kind.law_version, self.state(value.parameters())]
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
        self.attributes |= names_in(value)
        try:
            return literal(value)
        except TypeError:
            self.lossless = False
        try:
            return self.content(value, kind)
        except RecursionError:
            raise
        except Exception:  # what cannot be copied, such as an open file, has no content to compare
            return self.only(value)

    def only(self, value: Any) -> Any:
        """Return what stands for an object without content that could be compared."""
        self.prefix = _PREFIXES[2]
        return ["this object", _token_of(value)]

    def alone(self, value: Any) -> Any:
        """Return an element of a set, which has no order, so that no element refers to another one."""
        inner = _Encoder()
        inner.modules, inner.attributes = self.modules, self.attributes
        found = inner.value(value)
        self.prefix = max(self.prefix, inner.prefix, key=_PREFIXES.index)
        return found

    def state(self, value: dict[str, Any]) -> Any:
        """Return attributes, whose order does not matter."""
        return [[name, self.value(value[name])] for name in sorted(value)]

    def content(self, value: Any, kind: type) -> Any:
        """Return as JSON what no lossless description is made of: data, functions, objects."""
        if isinstance(value, types.ModuleType):
            return self.module(value)
        if kind is np.ndarray:
            return self.array(value)
        if isinstance(value, np.generic):
            return ["scalar", self.array(np.asarray(value))]
        if frames.kind(value) is not None:
            return self.frame(value)
        if kind in (decimal.Decimal, fractions.Fraction):
            return [kind.__name__, str(value)]
        if isinstance(value, PurePath) and origin(kind.__module__) is not None:
            return ["path", os.fspath(value)]
        if value is getattr(random, "_inst", None) or value is np.random.mtrand._rand:
            return ["a global generator"]  # which gets public coins
        named = _by_name(value)
        if named is not None:
            return named
        if hasattr(kind, "rvs") and of_scipy(value) and not hasattr(value, "numargs"):
            return self.value(as_sampler(value))
        if id(value) in self.met:
            return ["again", self.met[id(value)][0]]
        self.met[id(value)] = len(self.met), value
        if kind is list:
            return ["list", *map(self.value, value)]
        if kind in (dict, types.MappingProxyType):
            return ["dict", *([self.value(key), self.value(each)] for key, each in value.items())]
        if kind in (set, frozenset):
            return [kind.__name__, *sorted(map(self.alone, value), key=json.dumps)]
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, type):
            return self.a_class(value)
        return self.instance(value, kind)

    def array(self, value: Any, *, any_unit: bool = False) -> Any:
        """Return an array by what it holds, whatever its order in memory and its byte order."""
        if value.dtype.hasobject or value.dtype.names is not None or value.dtype.kind == "T":
            parts = [self.value(each) for each in value.ravel().tolist()]
            return [
                "array",
                "object" if value.dtype.kind in "OT" else str(value.dtype),
                list(value.shape),
                parts,
            ]
        plain = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("<"), copy=False))
        code = f"{plain.dtype.kind}{plain.dtype.itemsize}"
        if plain.dtype.kind in "mM":
            fine = plain.astype(f"{plain.dtype.kind}8[ns]") if any_unit else plain
            plain = fine if fine.astype(plain.dtype).tobytes() == plain.tobytes() else plain
            code = str(plain.dtype)
        return ["array", code, list(value.shape), hashlib.sha256(plain.tobytes()).hexdigest()]

    def frame(self, value: Any) -> Any:
        """Return a data frame or a series by its columns, whatever the version of its library calls them."""
        form, library, columns, index, above = frames.describe(value).to_json()
        index = None if index is None else ["a part of the records", self.value(index[-1])]
        kinds = [[{"object": "text"}.get(what, what), zone] for _, _, what, zone in columns]
        parts = [self.array(each, any_unit=True) for each in frames.contents(value)]
        categories: list[Any] = []
        if library == "pandas":
            dtypes = [getattr(each.dtype, "categories", None) for each in frames.columns(value)]
            categories = [None if each is None else self.value(each.tolist()) for each in dtypes]
            if index is None and value.index.tolist() != list(range(len(value))):
                index = self.value(value.index.tolist())
        named = [self.value(name) for name in frames.names(value)]
        return [form, library, named, kinds, categories, index, self.value(above), parts]

    def module(self, value: types.ModuleType) -> Any:
        """Return an installed module by its name; of the user's own, what is read from it counts."""
        name, owner = value.__name__, origin(value.__name__)
        if owner is not None:
            return ["module", name, *(_raised() if owner == "privatize" else [])]
        while self.modules.setdefault(name, value) is not value:  # two modules of one name
            name += "'"
        if "__getattr__" in vars(value):  # attributes that it makes up
            self.attributes.add("__getattr__")
        return ["module", name, _compiled(value.__name__)]

    def function(self, value: types.FunctionType) -> Any:
        """Return a function by its source and by the values that it uses."""
        state = [self.value(each) for each in (value.__defaults__, value.__kwdefaults__ or {}, vars(value))]
        known = value.__globals__
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=False)
        closure = [[name, self.value(_content(cell))] for name, cell in cells]
        if is_installed(value.__code__.co_filename) and origin(known.get("__name__")) is not None:
            # A function that installed code made: its source may change with the version.
            return ["made by", str(known["__name__"]), value.__qualname__, state, closure]
        scope, attributes, imported = named_in(value.__code__)
        if LOOKUPS.intersection(scope, attributes):
            return self.only(value)
        self.attributes |= attributes
        tree = tree_of(value.__code__, text_of(value))
        if tree[0] == "bytecode":
            self.prefix = max(self.prefix, _PREFIXES[1], key=_PREFIXES.index)
        return [
            "function",
            value.__name__,
            tree,
            state,
            closure,
            [[name, self.value(known[name])] for name in scope if name in known],
            [self.imported(name, level, known) for name, level in imported],
        ]

    def imported(self, name: str, level: int, scope: dict[str, Any]) -> Any:
        """Return a module that a function imports when it runs, with the packages that it is in."""
        if level:
            name = importlib.util.resolve_name("." * level + name, scope.get("__package__") or "")
        if origin(name) is not None:
            return ["module", name, *(_raised() if origin(name) == "privatize" else [])]
        parts = name.split(".")
        inside = [".".join(parts[: end + 1]) for end in range(len(parts))]
        return [
            self.value(importlib.import_module(each)) for each in inside
        ]  # as the function is about to do

    def a_class(self, value: type) -> Any:
        """Return a class of the user's own by its content."""
        inside = {name: each for name, each in vars(value).items() if name not in _SKIPPED}
        if issubclass(value, enum.Enum):
            members = {name: each.value for name, each in value.__members__.items()}
            inside = {k: v for k, v in inside.items() if _is_own_code(v)} | {"its members": members}
        for name, each in inside.items():
            if isinstance(each, types.GetSetDescriptorType | types.MemberDescriptorType):
                inside[name] = "a slot"
            elif _is_generated(name, each) and (dataclasses.is_dataclass(value) or "_fields" in inside):
                inside[name] = "made from the fields"
        inside.pop("__replace__", None)  # of dataclasses, from Python 3.13 on
        made = [None if type(value) is type else self.value(type(value)), _compiled(value.__module__)]
        return ["class", value.__name__, made, self.value(value.__bases__), self.state(inside)]

    def instance(self, value: Any, kind: type) -> Any:
        """Return an object by its class and its attributes."""
        if isinstance(value, types.MethodType):
            return ["method", self.value(value.__func__), self.value(value.__self__)]
        if kind is functools.partial:
            state = [value.func, value.args, dict(value.keywords), vars(value)]
            return ["partial", *map(self.value, state)]
        if isinstance(value, functools._lru_cache_wrapper):
            return ["lru_cache", self.value(value.__wrapped__), self.value(value.cache_parameters())]
        if isinstance(value, enum.Enum):
            return ["member", self.value(kind), value.name]
        if isinstance(value, staticmethod | classmethod):
            return [kind.__name__, self.value(value.__func__)]
        if kind is property:
            return ["property", *map(self.value, (value.fget, value.fset, value.fdel))]
        if kind is functools.cached_property:
            return ["cached property", self.value(value.func)]
        if isinstance(value, _BUILTIN):
            owner = getattr(value, "__self__", None)
            bound = None if isinstance(owner, types.ModuleType | None) else self.value(owner)
            owner = getattr(value, "__objclass__", value)
            module = getattr(owner, "__module__", None)
            return ["builtin", str(module), value.__qualname__, bound, _compiled(module)]
        if f"{kind.__module__}.{kind.__qualname__}" in ("_thread.lock", "_thread.RLock"):
            return ["lock"]
        if inspect.isgenerator(value) or inspect.iscoroutine(value):
            return self.only(value)
        if kind.__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
            return ["tensor", self.array(value.detach().cpu().numpy())]
        origins = {origin(base.__module__) for base in kind.__mro__ if base is not object}
        if None in origins:  # methods of the user's own may read every attribute
            own = [self.value(kind), self.state(_state(value))]
            if origins <= {None, "privatize"}:
                return ["object", *own]
        else:
            own = [self.value(kind)]
        registered = copyreg.dispatch_table.get(kind)
        made = value.__reduce_ex__(4) if registered is None else registered(value)
        if isinstance(made, str):
            return self.only(value)
        parts: list[Any] = [*made[:3], *(None if each is None else list(each) for each in made[3:5])]
        return ["object", *own, *map(self.value, parts)]


_BUILTIN = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
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
        *("__abstractmethods__", "_abc_impl", "__slotnames__", "__dataclass_params__", "__match_args__"),
        *("__annotate__", "__annotate_func__", "__annotations_cache__", "__conditional_annotations__"),
    }
)
_GENERATED = frozenset(
    {
        *("__new__", "__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"),
        *("__lt__", "__le__", "__gt__", "__ge__", "__getstate__", "__setstate__"),
    }
)


def _is_generated(name: str, value: Any) -> bool:
    """Tell whether a dataclass or a named tuple made this method, which has no source, from its fields."""
    code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
    return name in _GENERATED and code is not None and code.co_filename in ("<string>", dataclasses.__file__)


def _is_own_code(value: Any) -> bool:
    """Tell whether something in an enumeration is a method of the user's own."""
    inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return isinstance(inner, types.FunctionType) and origin(inner.__globals__.get("__name__")) is None


def _compiled(module: str | None) -> str | None:
    """Return the content of a compiled module of the user's own, which has no source; else None."""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if not isinstance(file, str) or file.endswith((".py", ".pyc")) or origin(module) is not None:
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


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
            private = slot.startswith("__") and not slot.endswith("__")
            name = f"_{base.__name__.lstrip('_')}{slot}" if private else slot
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                state[name] = getattr(value, name)
    return state


def _by_name(value: Any) -> Any:
    """Return the name of an installed function or class, without a version, if the name leads to it."""
    kind: Any = value if isinstance(value, type) else None
    if kind in KINDS:
        return ["class", kind.tag, kind.law_version]
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, np.ufunc):
        name = value.__name__
        module = "numpy" if getattr(np, name, None) is value else "scipy.special"
    elif hasattr(value, "numargs"):  # a distribution of SciPy's that has no parameters yet
        module, name = "scipy.stats", getattr(value, "name", None)
    if not isinstance(module, str) or not isinstance(name, str) or origin(module) is None:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value:
        return None
    ours = origin(module) == "privatize"
    return ["name", f"privatize {name}", *_raised()] if ours else ["name", f"{module}.{name}"]


def _raised() -> list[Any]:
    """Return the kinds whose law was fixed: the user's own code may draw with them."""
    return sorted([kind.tag, kind.law_version] for kind in KINDS if kind.law_version > 1)
