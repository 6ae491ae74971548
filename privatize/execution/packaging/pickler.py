"""Pickle a job with the user's own modules by value, and its arrays with the memory that they share."""

import contextlib
import functools
import io
import os
import random
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from privatize.errors import ExecutionError
from privatize.execution.packaging import modules
from privatize.identity.memory import bounds
from privatize.identity.origin import origin


def not_packable(why: str) -> ExecutionError:
    """Return the error that something cannot be evaluated in another process."""
    return ExecutionError(f"""The function cannot be evaluated in other processes: {why}. Keep that out of its
        arguments, closure and globals, or use workers='inline'.""")


class _Packing(threading.local):
    active = False


_packing = _Packing()
_turn = threading.Lock()  # cloudpickle's list of modules that go by value is one per process
if hasattr(os, "register_at_fork"):  # a forked child needs a lock of its own
    os.register_at_fork(after_in_child=lambda: globals().update(_turn=threading.Lock()))


def packing() -> bool:
    """Tell whether a job is being packed at the moment. A job never spends any budget."""
    return _packing.active


def by_value(module: str | None) -> bool:
    """Tell whether things of a module are being packed by value at the moment."""
    return packing() and origin(module) is None


def dumps(contents: Any, owners: set[str], wanted: dict[str, set[str]]) -> bytes:
    """Pickle something.

    Parameters
    ----------
    contents : object
        Anything.
    owners : set of str
        The modules whose definitions go by value, if they are the user's own.
    wanted : dict
        The attributes of modules that code reads: only these go along.
    """
    bases: list[Any] = []  # arrays that others are part of: they must come first
    with _turn, _by_value(owners):
        while True:
            buffer = io.BytesIO()
            try:
                _pickler(buffer, wanted).dump((bases, contents))
                return buffer.getvalue()
            except _PartFirstError as error:
                bases.insert(0, error.args[0])


@contextlib.contextmanager
def _by_value(owners: set[str]) -> Iterator[None]:
    """Make cloudpickle pickle by value what some modules define."""
    import cloudpickle

    known = cloudpickle.list_registry_pickle_by_value()
    mine = [sys.modules[name] for name in owners if name in sys.modules and name not in known]
    mine = [module for module in mine if module.__name__ != "__main__" and origin(module.__name__) is None]
    _packing.active = True
    try:
        for module in mine:
            cloudpickle.register_pickle_by_value(module)
        yield
    finally:
        _packing.active = False
        for module in mine:
            if module.__name__ in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.unregister_pickle_by_value(module)


_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_NEVER_SENT = frozenset({"__builtins__", "__loader__", "__spec__", "__cached__", "__doc__"})


def _pickler(buffer: io.BytesIO, wanted: dict[str, set[str]]) -> Any:
    import cloudpickle

    met: list[Any] = []  # arrays

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            reduced = _reduced(thing, wanted, met)
            if reduced is not None:
                return reduced
            made = super().reducer_override(thing)
            if isinstance(thing, type) and isinstance(made, tuple) and "skeleton" in made[0].__name__:
                # cloudpickle looks for an existing class by this id, and would change that class.
                args = [*made[1][:-2], os.urandom(16).hex(), *made[1][-1:]]
                if isinstance(args[3], dict):  # attributes of the class; cloudpickle leaves this one out
                    args[3] = args[3] | {"__qualname__": thing.__qualname__}
                return (made[0], tuple(args), *made[2:])
            return made

    return Pickler(buffer)


def _reduced(thing: Any, wanted: dict[str, set[str]], met: list[Any]) -> tuple[Any, ...] | None:
    """Return how to rebuild a thing, or None to leave that to cloudpickle."""
    if isinstance(thing, types.ModuleType) and origin(thing.__name__) is None:
        used = wanted.get(thing.__name__, set()) | {"__file__", "__package__", "__path__"}
        sent = {name: value for name, value in vars(thing).items() if name in used - _NEVER_SENT}
        not_sent = frozenset(vars(thing)) - frozenset(sent) - _NEVER_SENT
        return modules.sent_module, (thing.__name__,), (sent, not_sent), None, None, modules.fill
    if type(thing) is np.ndarray:
        return _array(thing, met)
    if isinstance(thing, functools._lru_cache_wrapper) and origin(thing.__module__) is None:
        state = {k: v for k, v in vars(thing).items() if k != "__wrapped__"}
        return _cached, (thing.__wrapped__, thing.cache_parameters()), state
    if isinstance(thing, _LOCKS):  # all are the same to the fingerprint, too
        return threading.Lock if isinstance(thing, _LOCKS[0]) else threading.RLock, ()
    if isinstance(thing, types.MappingProxyType):
        return types.MappingProxyType, (dict(thing),)
    if thing is getattr(random, "_inst", None):
        return getattr, (random, "_inst")
    if thing is np.random.mtrand._rand:
        return getattr, (np.random.mtrand, "_rand")
    return None


class _PartFirstError(Exception):
    """An array was met after a part of it."""


def _array(array: Any, met: list[Any]) -> tuple[Any, ...] | None:
    """Return how to rebuild an array: as a part of another one, or with the same strides."""
    owner = _owner(array, met)
    if owner is not None:
        offset = array.__array_interface__["data"][0] - bounds(owner)[0]
        return _part, (owner, array.shape, array.dtype, offset, array.strides)
    if not (array.flags.c_contiguous or array.flags.f_contiguous or array.dtype.hasobject):
        return _strided, (np.ascontiguousarray(array), array.strides)
    return None


def _owner(array: Any, met: list[Any]) -> Any:
    """Return an array that this one is a part of; refuse those that overlap otherwise.

    Arrays that share memory would arrive as separate ones, and what a function writes into one of
    them would not be seen in the other.
    """
    first, last = bounds(array)
    for known in met:
        start, stop = bounds(known)
        if known is array or not (first < stop and start < last):
            continue
        if start <= first and last <= stop and known.flags.forc and not array.dtype.hasobject:
            return known
        if first <= start and stop <= last and array.flags.forc and not known.dtype.hasobject:
            raise _PartFirstError(array)
        if array.flags.writeable or known.flags.writeable:
            raise not_packable(f"""two arrays that it uses share memory, of shapes {known.shape} and
                {array.shape}; use a copy() of one""")
    met.append(array)
    return None


def _part(owner: Any, shape: tuple[int, ...], dtype: Any, offset: int, strides: tuple[int, ...]) -> Any:
    flat = owner if owner.flags.c_contiguous else owner.T
    return np.ndarray(shape, dtype, flat, offset, strides)


def _strided(values: Any, strides: tuple[int, ...]) -> Any:
    """Return an array with the same strides, so that its numbers are added in the same order."""
    sizes = [(size - 1) * stride for size, stride in zip(values.shape, strides, strict=True)]
    below = -sum(size for size in sizes if size < 0)
    above = sum(size for size in sizes if size > 0)
    memory = bytearray(below + above + values.dtype.itemsize)
    made: Any = np.ndarray(values.shape, values.dtype, memory, below, strides)
    made[...] = values
    return made


def _cached(function: Any, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)
