"""How all other objects are encoded: our own by their traits, libraries' by what makes them again."""

from __future__ import annotations

import copyreg
import inspect
import random
import sys
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from privatize.identity.classes import class_, spelled
from privatize.identity.compiled import binary, library
from privatize.identity.completion import LOGGED
from privatize.identity.encoder import Encoder, PrivateReachable, Unencodable, encodes
from privatize.identity.functions import module
from privatize.identity.graph import state_of
from privatize.identity.library import LIBRARY, tag_of, traits_of
from privatize.identity.origin import (
    attribute_of,
    extension_of,
    is_compiled,
    is_named,
    module_of,
    origin,
    owner_of,
)
from privatize.identity.reachable import Declared, Sized
from privatize.identity.values import array, scalar, sequence

__all__: list[str] = []

_COLLECTIONS = (dict, list, tuple, set, frozenset)
_MOST = 1024  # encodings that are kept
# With the value, so that its id stays its own, and what is in it that could be private data.
_encoded: dict[int, tuple[Any, bytes, list[Any]]] = {}
_LOCKED = frozenset({"locked", "locked_lock", "acquire without waiting", "_is_owned"})
# What makes a value of typing's what it is; `pickle` knows these by name alone.
_TYPING = {
    **dict.fromkeys(("TypeVar", "ParamSpec", "TypeVarTuple"), "__name__ __bound__ __constraints__"),
    "NewType": "__name__ __qualname__ __module__ __supertype__ __doc__",
    "ForwardRef": "__forward_arg__ __forward_module__ __forward_is_class__",
    "TypeAliasType": "__name__ __module__ __value__ __type_params__",
}
_VARIANCE = " __covariant__ __contravariant__ __infer_variance__ __default__"
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


@encodes(object)
def _object(encoder: Encoder, value: Any) -> None:
    kind = type(value)
    ours = owner_of(kind) == LIBRARY
    if ours and _ours(encoder, value, kind):
        return
    for base, handler in _BASES:
        if isinstance(value, base):
            handler(encoder, value)
            return
    if value is getattr(random, "_inst", None) or value is np.random.mtrand._rand:
        encoder.text("a global generator")  # which gets public coins
        return
    if callable(value) and _extension(encoder, value):
        return
    if encoder.again(value):
        return
    name = tag_of(kind) if ours else f"{module_of(kind) or ''}.{kind.__qualname__}"
    try:
        _content(encoder, value, name)
    except (Unencodable, PrivateReachable, RecursionError):
        raise
    except Exception:  # __reduce__ is anybody's code: what it raises means that there is no telling
        if encoder.private is not None and encoder.private.inside(value):
            raise PrivateReachable from None
        encoder.doubt(f"a {name}")


def _ours(encoder: Encoder, value: Any, kind: type) -> bool:
    """Encode an object of this library by what its class says of it; tell if it says anything."""
    traits = traits_of(kind)
    if traits.immutable:
        encoded, sized = _immutable(value)
        encoder.parts.append(encoded)
        for each in sized:
            encoder.compare(each)
    elif traits.opaque:
        encoder.text("a budget, a ledger or sealed data, on which no answer depends")
    elif traits.identity is not None:
        encoder.text(traits.name)
        encoder.encode(traits.identity(value))
    elif isinstance(value, types.ModuleType):  # one that came from another process
        module(encoder, value)
    else:
        return False
    return True


def _immutable(value: Any) -> tuple[bytes, list[Any]]:
    """Return the encoding of one of our own values, which never change, and what could be data in it."""
    known = _encoded.get(id(value))
    if known is None:
        sized, traits = Sized(), traits_of(type(value))
        encoder = Encoder(private=sized)
        encoder.text(traits.name)
        encoder.state(state_of(value))
        if len(_encoded) >= _MOST:
            _encoded.clear()
        met = sized.met
        if traits.declares:
            met = [each if isinstance(each, Declared) else Declared(each) for each in met]
        known = _encoded[id(value)] = (value, b"".join(encoder.parts), met)
    return known[1], known[2]


def _extension(encoder: Encoder, value: Any) -> bool:
    """Encode a function of a compiled module; tell whether it is one."""
    qualname, made = attribute_of(value, "__qualname__"), module_of(value)
    owner = origin(made)
    if not isinstance(qualname, str):
        return False
    if owner is not None and is_named(value, made, qualname):
        encoder.text(f"function {owner} {spelled(value, owner)}")
        return True
    if owner is None and made and extension_of(made):
        encoder.text(f"function {made}.{qualname}")
        binary(encoder, made)
        return True
    return False


def _subclassed_array(encoder: Encoder, value: Any) -> None:
    class_(encoder, type(value))
    encoder.state(getattr(value, "__dict__", {}))
    array(encoder, np.ndarray.view(value, np.ndarray))  # whatever its own methods do


def _ufunc(encoder: Encoder, value: np.ufunc) -> None:
    for name in ("numpy", "scipy.special", "numpy._core.umath"):
        if getattr(sys.modules.get(name), value.__name__, None) is value:
            encoder.text(f"ufunc {name}.{value.__name__} {origin(name)}")
            return
    encoder.doubt(f"the ufunc {value.__name__}")


def _reference(encoder: Encoder, value: Any) -> None:
    encoder.text(f"{module_of(type(value))}.{type(value).__qualname__}")
    encoder.encode(value())


_BASES: list[tuple[Any, Callable[[Encoder, Any], None]]] = [
    (type, class_),
    (np.ndarray, _subclassed_array),
    (np.generic, scalar),
    (np.ufunc, _ufunc),
    (weakref.ReferenceType, _reference),
]


def _content(encoder: Encoder, value: Any, name: str) -> None:
    kind = type(value)
    if name in _SPECIAL:
        encoder.text(name)
        _SPECIAL[name](encoder, value)
    elif name.startswith(_HIDING) and not hasattr(value, "detach"):
        raise TypeError
    elif name.startswith("typing") and kind.__name__ in _TYPING:
        encoder.text(f"typing {kind.__name__}")
        names = (_TYPING[kind.__name__] + _VARIANCE).split()
        sequence(encoder, tuple(attribute_of(value, each) for each in names))
    elif inspect.isgenerator(value) or inspect.iscoroutine(value):
        raise TypeError
    elif name.startswith("torch") and hasattr(value, "detach"):
        _tensor(encoder, value)
    else:
        _reduced(encoder, value, kind)


def _tensor(encoder: Encoder, value: Any) -> None:
    # What a tensor is made of again holds the storage's address: its numbers are what counts.
    encoder.text(f"{type(value).__qualname__} {value.dtype} {value.requires_grad} {origin('torch')}")
    array(encoder, value.detach().cpu().numpy())
    if not encoder.narrow:
        encoder.text(f"{value.layout} {value.stride() if 'strided' in str(value.layout) else ''}")
        encoder.encode(value.grad if value.is_leaf else None)
        encoder.state({k: v for k, v in vars(value).items() if k != "_backward_hooks"})


def _reduced(encoder: Encoder, value: Any, kind: type) -> None:
    """Encode an object as what `copy` and `pickle` would make it again from."""
    class_(encoder, kind)
    owner = owner_of(kind)
    if (module_of(kind) or "").startswith("pandas"):  # which leaves out what the user has set as an attribute
        own = (attribute_of(value, "__dict__") or {}).items()
        encoder.state({name: each for name, each in own if not name.startswith("_")})
    registered = copyreg.dispatch_table.get(kind)
    if owner in (None, LIBRARY):
        # A class's own __reduce__ may leave out what its methods read, so the state comes first.
        encoder.state(state_of(value))
        encoder.encode(registered)
        bases = [base for base in kind.__mro__ if base is not object]
        if owner == LIBRARY or not any(owner_of(base) or is_compiled(base) for base in bases):
            return  # it is written in Python, so that there is no more to it
        base: Any = next((each for each in _COLLECTIONS if isinstance(value, each)), None)
        if base is not None:  # whatever its own methods make of it
            encoder.encode(list(dict.items(value)) if base is dict else base(base.__iter__(value)))
    made = value.__reduce_ex__(4) if registered is None else registered(value)
    if isinstance(made, str):
        encoder.text(f"global {made}")
        if owner_of(value) is None:
            encoder.state(state_of(value))
        return
    function, args, *rest = made
    encoder.encode(function)
    sequence(encoder, tuple(args))
    for at, part in enumerate(rest):
        if at in (1, 2) and part is not None:  # iterators over items
            encoder.encode(list(part))
        elif isinstance(part, dict) and all(isinstance(key, str) for key in part):
            encoder.state(_stable(part))
        else:
            encoder.encode(part)


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


def _tree(encoder: Encoder, value: Any) -> None:
    sequence(encoder, (value.data, value.leafsize, value.boxsize, value.indices))


def _library(encoder: Encoder, value: Any) -> None:
    """Encode a library that ctypes loaded by its file, which must be known."""
    if not Path(value._name or "").is_file():
        raise TypeError
    library(encoder, value._name)


def _lock(encoder: Encoder, value: Any) -> None:
    encoder.met.later.add((_LOCKED, lambda: repr(value).partition(" ")[0]))


def _logger(encoder: Encoder, value: Any) -> None:
    def read() -> str:
        handlers = [(type(each).__qualname__, each.level) for each in value.handlers]
        level = value.level, value.getEffectiveLevel(), value.manager.disable
        return f"{value.name} {level} {value.disabled} {value.propagate} {handlers}"

    encoder.text(value.name)
    encoder.met.later.add((LOGGED, read))


def _variable(encoder: Encoder, value: Any) -> None:
    encoder.string(value.name)
    try:
        encoder.named("get()", value.get())
    except LookupError:
        encoder.text("not set")


def _vectorized(encoder: Encoder, value: Any) -> None:
    encoder.state({k: v for k, v in vars(value).items() if k not in ("_ufunc", "_init_stage_2")})


def _items(encoder: Encoder, value: Any) -> None:
    encoder.encode(list(value.items()))


_SPECIAL: dict[str, Callable[[Encoder, Any], None]] = {
    "scipy.spatial._ckdtree.cKDTree": _tree,  # whose pickle holds memory that was never written
    "scipy.spatial._kdtree.KDTree": _tree,
    "numpy.vectorize": _vectorized,  # and not the ufunc that it makes of its parts
    "_thread.lock": _lock,
    "_thread.RLock": _lock,
    "_thread._local": lambda encoder, value: encoder.state(vars(value)),
    "_contextvars.ContextVar": _variable,
    "logging.Logger": _logger,
    "logging.RootLogger": _logger,
    "ctypes.CDLL": _library,
    "ctypes.PyDLL": _library,
    "multiprocessing.shared_memory.ShareableList": lambda encoder, value: encoder.encode(list(value)),
    "multiprocessing.shared_memory.SharedMemory": lambda encoder, value: encoder.encode(bytes(value.buf)),
    "_weakrefset.WeakSet": lambda encoder, value: encoder.encode(set(value)),
    "weakref.WeakKeyDictionary": _items,
    "weakref.WeakValueDictionary": _items,
}
