"""Encode all other objects: our own by their traits, those of libraries by what `pickle` would store."""

import copyreg
import functools
import random
import sys
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from privatize.identity.bytecode import words
from privatize.identity.classes import class_, module_name
from privatize.identity.compiled import compiled_function, library
from privatize.identity.completion import LOGGED
from privatize.identity.encoder import Encoder, PrivateReachable, Unencodable, encodes
from privatize.identity.functions import module
from privatize.identity.graph import public_state, state_of
from privatize.identity.library import LIBRARY, tag_of
from privatize.identity.origin import attribute_of, is_compiled, module_of, origin, owner_of
from privatize.identity.reachable import DeclaredValues, could_be_data
from privatize.identity.values import array, scalar, sequence

_MADE_BY_VECTORIZE = ("_ufunc", "_init_stage_2")
_COLLECTIONS = (dict, list, tuple, set, frozenset)
_MOST = 1024  # encodings that are cached
_CACHED = functools.cached_property
# By id, with the value, so that no other gets its id, and with its parts that could be private data.
_encoded: dict[int, tuple[Any, bytes, list[Any]]] = {}
_LOCKED = words("locked locked_lock acquire _is_owned")
_TYPING = words("TypeVar ParamSpec TypeVarTuple NewType ForwardRef TypeAliasType")
# The attributes that define the types above; `pickle` stores only their names.
_TYPING_ATTRIBUTES = words("""__name__ __qualname__ __doc__ __bound__ __constraints__ __supertype__ __value__
    __type_params__ __forward_arg__ __forward_module__ __forward_is_class__ __covariant__ __contravariant__
    __infer_variance__ __default__""")
# Modules whose objects depend on what cannot be read: the globals that code was compiled with, or state in
# another process or in files.
_HIDING = tuple(
    words("""numba. jax. jaxlib. torch.jit torch._dynamo torch._C joblib.memory joblib.parallel
    tempfile multiprocessing.managers multiprocess.managers multiprocessing.sharedctypes""")
)


@encodes(object)
def _object(encoder: Encoder, value: Any) -> None:
    kind = type(value)
    ours = owner_of(kind) == LIBRARY
    if ours and _ours(encoder, value, kind):
        return
    handler = next((handler for base, handler in _BASES if isinstance(value, base)), None)
    if handler is not None:
        handler(encoder, value)
    elif value is getattr(random, "_inst", None) or value is np.random.mtrand._rand:
        encoder.text("a global generator")  # it is reseeded with a public seed
    elif not (callable(value) and compiled_function(encoder, value)) and not encoder.seen_before(value):
        _content(encoder, value, tag_of(kind) if ours else f"{module_of(kind) or ''}.{kind.__qualname__}")


def _ours(encoder: Encoder, value: Any, kind: Any) -> bool:
    """Encode an object of this library by the traits of its class; tell whether the class has any."""
    if getattr(kind, "immutable", False):
        encoded, sized = _immutable(value)
        encoder.parts.append(encoded)
        for each in sized:
            encoder.compare(each)
    elif getattr(kind, "opaque", False):
        encoder.text("a budget, a ledger or sealed data, on which no answer depends")
        encoder.met.opaque.add(kind.__name__)
    elif hasattr(kind, "_identity"):
        encoder.text(tag_of(kind))
        encoder.encode(value._identity())
    elif isinstance(value, types.ModuleType):  # one that was sent by another process
        module(encoder, value)
    else:
        return False
    return True


def _immutable(value: Any) -> tuple[bytes, list[Any]]:
    """Return the encoding of one of our own values, which never change, and its parts that could be data."""
    known = _encoded.get(id(value))
    if known is None:
        encoder = Encoder()
        encoder.text(tag_of(type(value)))
        # What it has computed from its other attributes, and caches, says nothing new.
        state = state_of(value).items()
        encoder.state({k: v for k, v in state if not isinstance(getattr(type(value), k, None), _CACHED)})
        if len(_encoded) >= _MOST:
            _encoded.clear()
        met = list(filter(could_be_data, encoder.compared))
        if hasattr(value, "draw_version"):  # a sampler: these are values that P was declared with
            met = [each if isinstance(each, DeclaredValues) else DeclaredValues(each) for each in met]
        known = _encoded[id(value)] = (value, b"".join(encoder.parts), met)
    return known[1], known[2]


def _subclassed_array(encoder: Encoder, value: Any) -> None:
    class_(encoder, type(value))
    encoder.state(getattr(value, "__dict__", {}))
    array(encoder, np.ndarray.view(value, np.ndarray))  # without its own methods


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
    try:
        _encode(encoder, value, name)
    except (Unencodable, PrivateReachable, RecursionError):
        raise
    except Exception:  # a user's __reduce__ may raise anything: then the object cannot be compared
        if encoder.private is not None and encoder.private.inside(value):
            raise PrivateReachable from None
        encoder.doubt(f"a {name}")


def _encode(encoder: Encoder, value: Any, name: str) -> None:
    kind = type(value)
    if name in _CONTENTS:
        encoder.text(name)
        encoder.encode(_CONTENTS[name](value))
    elif name in _SPECIAL:
        encoder.text(name)
        _SPECIAL[name](encoder, value)
    elif name.startswith(_HIDING) and not hasattr(value, "detach"):
        raise TypeError
    elif name.startswith("typing") and kind.__name__ in _TYPING:
        encoder.text(f"typing {kind.__name__}")
        encoder.encode(module_name(encoder, module_of(value)))
        sequence(encoder, tuple(attribute_of(value, each) for each in sorted(_TYPING_ATTRIBUTES)))
    elif name.startswith("torch") and hasattr(value, "detach"):
        _tensor(encoder, value)
    else:
        _reduced(encoder, value, kind)


def _tensor(encoder: Encoder, value: Any) -> None:
    # What `pickle` stores of a tensor has the address of its memory in it, but only the numbers count.
    encoder.text(f"{type(value).__qualname__} {value.dtype} {value.requires_grad} {origin('torch')}")
    array(encoder, value.detach().cpu().numpy())
    if not encoder.narrow:
        encoder.text(f"{value.layout} {value.stride() if 'strided' in str(value.layout) else ''}")
        encoder.encode(value.grad if value.is_leaf else None)
        encoder.state({k: v for k, v in vars(value).items() if k != "_backward_hooks"})


def _reduced(encoder: Encoder, value: Any, kind: type) -> None:
    """Encode what `copy` and `pickle` would make an object from."""
    class_(encoder, kind)
    if (module_of(kind) or "").startswith("pandas"):  # its pickles leave out attributes that the user has set
        encoder.state(public_state(value))
    registered = copyreg.dispatch_table.get(kind)
    if owner_of(kind) in (None, LIBRARY):
        # A class's own __reduce__ may leave out what its methods read, so the state comes first.
        encoder.state(encoder.note_parts(value, kind, state_of(value)))
        encoder.encode(registered)
        if owner_of(kind) == LIBRARY or all(map(_is_python, kind.__mro__)):
            return  # classes that are written in Python have no other state
        base: Any = next((each for each in _COLLECTIONS if isinstance(value, each)), None)
        if base is not None:  # its content, without its own methods
            encoder.encode(list(dict.items(value)) if base is dict else base(base.__iter__(value)))
    made = value.__reduce_ex__(4) if registered is None else registered(value)
    if isinstance(made, str):
        encoder.text(f"global {made}")
        encoder.state(state_of(value) if owner_of(value) is None else {})
    else:
        _remade(encoder, *made)


def _is_python(kind: type) -> bool:
    return kind is object or not (owner_of(kind) or is_compiled(kind))


def _remade(encoder: Encoder, function: Any, args: Any, *rest: Any) -> None:
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

    That is the ids of its parts, and the numbers of a torch module's hooks, which count earlier hooks.
    """
    ids = {id(part): name for name, part in state.items()}
    state = {k: f"id of {ids[v]}" if type(v) is int and v in ids else v for k, v in state.items()}
    hooks = {name: part for name, part in state.items() if isinstance(part, dict) and "_hooks" in name}
    keys = sorted({key for part in hooks.values() for key in part if isinstance(key, int)})
    order = {key: at for at, key in enumerate(keys)}
    for name, part in hooks.items():
        state[name] = [(order.get(key, key), hook) for key, hook in part.items()]
    return state


def _library(encoder: Encoder, value: Any) -> None:
    """Encode a library that ctypes loaded, by its file; raise TypeError if that is not known."""
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


def _variable(value: Any) -> Any:
    try:
        return value.name, value.get()
    except LookupError:  # it is not set
        return value.name


def _tree(value: Any) -> Any:
    return value.data, value.leafsize, value.boxsize, value.indices


_SPECIAL: dict[str, Callable[[Encoder, Any], None]] = {
    "_thread.lock": _lock,
    "_thread.RLock": _lock,
    "logging.Logger": _logger,
    "logging.RootLogger": _logger,
    "ctypes.CDLL": _library,
    "ctypes.PyDLL": _library,
}
_CONTENTS: dict[str, Callable[[Any], Any]] = {
    "scipy.spatial._ckdtree.cKDTree": _tree,  # its pickle has uninitialized memory in it
    "scipy.spatial._kdtree.KDTree": _tree,
    "numpy.vectorize": lambda value: {k: v for k, v in vars(value).items() if k not in _MADE_BY_VECTORIZE},
    "_thread._local": lambda value: dict(vars(value)),
    "_contextvars.ContextVar": _variable,
    "multiprocessing.shared_memory.ShareableList": list,
    "multiprocessing.shared_memory.SharedMemory": lambda value: bytes(value.buf),
    "_weakrefset.WeakSet": set,
    "weakref.WeakKeyDictionary": lambda value: list(value.items()),
    "weakref.WeakValueDictionary": lambda value: list(value.items()),
}
