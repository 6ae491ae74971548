"""Encode values as exact JSON that is the same on every version of Python and of any library.

Numbers are in hexadecimal, constants have their types, arrays are digests of their content. Installed code is
encoded by its name. A function of the user's own is encoded by the syntax tree of its source and the values
that it uses, an object by its class and its attributes. An object without content that could be compared,
such as an open file, is equal only to itself.
"""

import copyreg
import dataclasses
import decimal
import enum
import fractions
import functools
import hashlib
import importlib
import inspect
import json
import os
import random
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from privatize.data import frames
from privatize.data.support import Maybe, OneOf
from privatize.identity.bytecode import words
from privatize.identity.graph import COMPUTED, NOTHING, PARTS, cells_of, full_name, state_of
from privatize.identity.library import LIBRARY
from privatize.identity.origin import is_installed, is_named, origin
from privatize.identity.syntax import literal, named_in, names_in, text_of, tree_of
from privatize.samplers.base import KINDS
from privatize.samplers.foreign import as_sampler, of_scipy
from privatize.samplers.given import Support
from privatize.samplers.parameters import Frozen

_REACH = ("", "-bytecode", "-object")


class Encoder:
    """Encodes a distribution (its "law"), with everything that it is made of, as JSON.

    Parameters
    ----------
    token_of : callable
        Returns a string that stands for an object which cannot be compared.

    Attributes
    ----------
    lossless : bool
        Whether the value consists of nothing but our own kinds of samplers and constants.
    reach : {"", "-bytecode", "-object"}
        Where equal JSON means equal values: everywhere, on one minor version of Python, in this process.
    """

    def __init__(self, token_of: Callable[[Any], str]) -> None:
        self.lossless, self.reach = True, _REACH[0]
        self._token_of = token_of
        self._met: dict[int, tuple[int, Any]] = {}  # with the object, so that no other gets its id
        self._modules: dict[str, types.ModuleType] = {}  # the user's own
        self._attributes: set[str] = set()  # names in the user's own code

    def encode(self, value: Any) -> Any:
        """Return a value as JSON, with what its code reads from the user's own modules."""
        found = [self.value(value)]
        done: set[tuple[str, str]] = set()
        while todo := sorted(
            (name, each)
            for name, module in self._modules.items()
            for each in self._attributes & vars(module).keys()
            if (name, each) not in done
        ):
            done.update(todo)
            found += [[name, each, self.value(vars(self._modules[name])[each])] for name, each in todo]
        return found

    def value(self, value: Any) -> Any:
        """Return any value as JSON."""
        kind = type(value)
        if kind in KINDS:
            self.lossless &= value.lossless()
            return [kind.tag, kind.law_version, self._state(value.parameters())]
        if kind in _LOSSLESS:
            return _LOSSLESS[kind](self, value)
        self._attributes |= names_in(value)
        try:
            return literal(value)
        except TypeError:
            self.lossless = False
        try:
            return self._content(value, kind)
        except RecursionError:
            raise
        except Exception:  # what cannot be copied, such as an open file, has no content to compare
            return self.only(value)

    def only(self, value: Any) -> Any:
        """Return JSON that stands for this very object, which has no content that could be compared."""
        self._restrict(_REACH[2])
        return ["this object", self._token_of(value)]

    def _restrict(self, reach: str) -> None:
        self.reach = max(self.reach, reach, key=_REACH.index)

    def _alone(self, value: Any) -> Any:
        """Return an element of a set as JSON. Sets have no order, so it must not refer to other elements."""
        inner = Encoder(self._token_of)
        inner._modules, inner._attributes = self._modules, self._attributes
        found = inner.value(value)
        self._restrict(inner.reach)
        return found

    def _state(self, value: dict[str, Any]) -> Any:
        """Return attributes as JSON, sorted, since their order does not matter."""
        return [[name, self.value(value[name])] for name in sorted(value)]

    def _content(self, value: Any, kind: type) -> Any:
        """Return data, functions and objects as JSON; a description of these is not lossless."""
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if kind is np.ndarray:
            return self.array(value)
        if isinstance(value, np.generic):
            return ["scalar", self.array(np.asarray(value))]
        if frames.kind(value) is not None:
            return self._frame(value)
        if kind in (decimal.Decimal, fractions.Fraction):
            return [kind.__name__, str(value)]
        if isinstance(value, PurePath) and origin(kind.__module__) is not None:
            return ["path", os.fspath(value)]
        if value is getattr(random, "_inst", None) or value is np.random.mtrand._rand:
            return ["a global generator"]  # it is reseeded with a public seed
        named = _by_name(value)
        if named is not None:
            return named
        if hasattr(kind, "rvs") and of_scipy(value) and not hasattr(value, "numargs"):
            return self.value(as_sampler(value))
        if id(value) in self._met:
            return ["again", self._met[id(value)][0]]
        self._met[id(value)] = len(self._met), value
        return self._made(value, kind)

    def _made(self, value: Any, kind: type) -> Any:
        """Return a value that is made of other values as JSON."""
        if kind is list:
            return ["list", *map(self.value, value)]
        if kind in (dict, types.MappingProxyType):
            return ["dict", *([self.value(key), self.value(each)] for key, each in value.items())]
        if kind in (set, frozenset):
            return [kind.__name__, *sorted(map(self._alone, value), key=json.dumps)]
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if kind in _MADE_OF:
            return [kind.__name__, *map(self.value, PARTS[kind](value))]
        if kind is functools.cached_property:
            return ["cached property", self.value(value.func)]
        if kind is functools._lru_cache_wrapper:
            return ["lru_cache", self.value(value.__wrapped__), self.value(value.cache_parameters())]
        if isinstance(value, enum.Enum):
            return ["member", self.value(kind), value.name]
        if isinstance(value, _BUILTIN):
            return self._builtin(value)
        if kind in _LOCKS:
            return ["lock"]
        if kind.__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
            return ["tensor", self.array(value.detach().cpu().numpy())]
        return self._object(value, kind)

    def array(self, value: Any, *, any_unit: bool = False) -> Any:
        """Return an array as JSON: by its values, whatever its memory layout and byte order."""
        shape, dtype = list(value.shape), value.dtype
        if dtype.hasobject or dtype.names is not None or dtype.kind == "T":
            code = "object" if dtype.kind in "OT" else str(dtype)
            return ["array", code, shape, [self.value(each) for each in value.ravel().tolist()]]
        plain = np.ascontiguousarray(value.astype(dtype.newbyteorder("<"), copy=False))
        code = f"{dtype.kind}{dtype.itemsize}"
        if dtype.kind in "mM":
            fine = plain.astype(f"{dtype.kind}8[ns]") if any_unit else plain
            plain = fine if fine.astype(plain.dtype).tobytes() == plain.tobytes() else plain
            code = str(plain.dtype)
        return ["array", code, shape, hashlib.sha256(plain.tobytes()).hexdigest()]

    def _frame(self, value: Any) -> Any:
        """Return a frame or series as JSON: by its columns, whatever its library's version calls them."""
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

    def _module(self, value: types.ModuleType) -> Any:
        """Return a module by its name; `encode` adds what code reads from the user's own modules."""
        name = value.__name__
        if origin(name) is not None:
            return _installed(name)
        while self._modules.setdefault(name, value) is not value:  # another module has the same name
            name += "'"
        if "__getattr__" in vars(value):  # it makes up attributes
            self._attributes.add("__getattr__")
        return ["module", name, _compiled(value.__name__)]

    def _function(self, value: types.FunctionType) -> Any:
        """Return a function as JSON: by its source and the values that it uses."""
        state = [self.value(each) for each in (value.__defaults__, value.__kwdefaults__ or {}, vars(value))]
        known, code = value.__globals__, value.__code__
        closure = self._state({k: None if v is NOTHING else v for k, _, v in cells_of(value)})
        if is_installed(code.co_filename) and origin(known.get("__name__")) is not None:
            # A function that installed code made: its source may change with the version.
            return ["made by", str(known["__name__"]), value.__qualname__, state, closure]
        named = named_in(code)
        if named is None:
            return self.only(value)
        names, attributes, imported = named
        self._attributes |= attributes
        tree = tree_of(code, text_of(value))
        if tree[0] == "bytecode":
            self._restrict(_REACH[1])
        read = self._state({name: known[name] for name in names & known.keys()})
        modules = [self._imported(full_name(name, level, known)) for name, level in imported]
        return ["function", value.__name__, tree, state, closure, read, modules]

    def _imported(self, name: str) -> Any:
        """Return a module that a function imports when it runs, and the packages that it is in, as JSON."""
        if origin(name) is not None:
            return _installed(name)
        parts = name.split(".")
        inside = [".".join(parts[: end + 1]) for end in range(len(parts))]
        # The function would import them anyway.
        return [self.value(importlib.import_module(each)) for each in inside]

    def _class(self, value: type) -> Any:
        """Return a class of the user's own as JSON: by its content."""
        inside = {name: each for name, each in vars(value).items() if name not in _SKIPPED}
        if not vars(value).keys().isdisjoint(COMPUTED):
            inside["__annotations__"] = value.__annotations__
        if issubclass(value, enum.Enum):
            members = {name: each.value for name, each in value.__members__.items()}
            inside = {k: v for k, v in inside.items() if _is_own_code(v)} | {"its members": members}
        for name, each in inside.items():
            if isinstance(each, types.GetSetDescriptorType | types.MemberDescriptorType):
                inside[name] = "a slot"
            elif _is_generated(name, each) and (dataclasses.is_dataclass(value) or "_fields" in inside):
                inside[name] = "made from the fields"
        made = [None if type(value) is type else self.value(type(value)), _compiled(value.__module__)]
        return ["class", value.__name__, made, self.value(value.__bases__), self._state(inside)]

    def _builtin(self, value: Any) -> Any:
        """Return a function that was not written in Python, and the object that it is bound to, as JSON."""
        owner = getattr(value, "__self__", None)
        bound = None if isinstance(owner, types.ModuleType | None) else self.value(owner)
        module = getattr(getattr(value, "__objclass__", value), "__module__", None)
        return ["builtin", str(module), value.__qualname__, bound, _compiled(module)]

    def _object(self, value: Any, kind: type) -> Any:
        """Return an object as JSON: by its class and attributes, or by what a copy would be made from."""
        origins = {origin(base.__module__) for base in kind.__mro__ if base is not object}
        own = [self.value(kind)]
        if None in origins:  # methods of the user's own may read every attribute
            own.append(self._state(state_of(value)))
            if origins <= {None, LIBRARY}:
                return ["object", *own]
        registered = copyreg.dispatch_table.get(kind)
        made = value.__reduce_ex__(4) if registered is None else registered(value)
        if isinstance(made, str):
            return self.only(value)
        parts: list[Any] = [*made[:3], *(None if each is None else list(each) for each in made[3:5])]
        return ["object", *own, *map(self.value, parts)]


_LOSSLESS: dict[type, Callable[[Encoder, Any], Any]] = {
    Frozen: lambda _, x: ["numbers", list(x.shape), [each.hex() for each in x.array.ravel().tolist()]],
    Support: lambda e, x: ["support", x.kind, e.value(x.inside)],
    OneOf: lambda e, x: ["one of", e.value(x.values), e.value(x.unknown)],
    Maybe: lambda e, x: ["maybe", e.value(x.inner)],
    np.datetime64: lambda _, x: ["datetime64", *np.datetime_data(x.dtype), str(x.astype(np.int64))],
    tuple: lambda e, x: ["tuple", *map(e.value, x)],
}
_MADE_OF = PARTS.keys() - {types.GenericAlias, types.UnionType}
_BUILTIN: tuple[type, ...] = (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType)
_BUILTIN += (types.WrapperDescriptorType, types.ClassMethodDescriptorType)
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_SKIPPED = words("""__dict__ __weakref__ __module__ __qualname__ __firstlineno__ __slotnames__
    __abstractmethods__ _abc_impl __static_attributes__ __dataclass_params__ __replace__ __annotate__
    __annotate_func__ __annotations_cache__ __conditional_annotations__ __classdictcell__ __match_args__""")
_GENERATED = words("""__new__ __init__ __repr__ __eq__ __hash__ __setattr__ __delattr__ __lt__ __le__ __gt__
    __ge__ __getstate__ __setstate__""")


def _is_generated(name: str, value: Any) -> bool:
    """Tell whether a dataclass or a named tuple made this method, which has no source, from its fields."""
    code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
    return name in _GENERATED and code is not None and code.co_filename in ("<string>", dataclasses.__file__)


def _is_own_code(value: Any) -> bool:
    """Tell whether something in an enumeration is a method of the user's own."""
    inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return isinstance(inner, types.FunctionType) and origin(inner.__globals__.get("__name__")) is None


def _compiled(module: str | None) -> str | None:
    """Return the digest of a compiled module of the user's own, which has no source; else None."""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if not isinstance(file, str) or file.endswith((".py", ".pyc")) or origin(module) is not None:
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _by_name(value: Any) -> Any:
    """Return the name of an installed function or class, without a version, if the name leads to it."""
    if isinstance(value, type) and value in KINDS:
        return ["class", value.tag, value.law_version]
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, np.ufunc):
        name = value.__name__
        module = "numpy" if getattr(np, name, None) is value else "scipy.special"
    elif hasattr(value, "numargs"):  # a distribution of SciPy's that has no parameters yet
        module, name = "scipy.stats", getattr(value, "name", None)
    if not isinstance(module, str) or not isinstance(name, str) or origin(module) is None:
        return None
    if not is_named(value, module, name):
        return None
    ours = origin(module) == LIBRARY
    return ["name", f"privatize {name}", *_raised()] if ours else ["name", f"{module}.{name}"]


def _installed(module: str) -> Any:
    """Return an installed module as JSON: by its name."""
    return ["module", module, *(_raised() if origin(module) == LIBRARY else [])]


def _raised() -> list[Any]:
    """Return the kinds of samplers whose law was corrected: the user's own code may draw with them."""
    return sorted([kind.tag, kind.law_version] for kind in KINDS if kind.law_version > 1)
