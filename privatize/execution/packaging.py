"""Shipping: a calibration as bytes, the user's own code by value, checked on arrival.

cloudpickle ships functions of importable modules by name, so a worker would evaluate whatever it
imports itself: an old form of a module that was edited and reloaded, or one without the globals
that were changed at run time. Here the user's own modules go by value, and whoever receives them
fingerprints what arrived and refuses it if it is not what was sent.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import io
import os
import pickle
import random
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privatize.execution.job import Refused
from privatize.identity.fingerprint import Unencodable, origin, own_modules, reach
from privatize.identity.memory import bounds

__all__ = [
    "THREADS",
    "NotShippable",
    "Package",
    "Surroundings",
    "by_value",
    "pack",
    "refusing",
    "surroundings",
    "unpack",
]


class NotShippable(Exception):  # noqa: N818 - a signal between rooms
    """Something cannot be evaluated in another process."""


class Job(Protocol):
    """What is shipped."""

    def identity(self) -> dict[str, Any]:
        """Return what must be the same on both sides, by name."""


@dataclass(frozen=True)
class Package:
    """A job as bytes.

    Attributes
    ----------
    name : str
        Which one it is.
    payload : bytes
        The job, with the fingerprints of its parts.
    """

    name: str
    payload: bytes


_packing = threading.local()
_turn = threading.Lock()  # cloudpickle's list of modules that go by value is one per process


def by_value(module: str | None) -> bool:
    """Tell whether things of a module are being shipped by value at the moment."""
    return getattr(_packing, "active", False) and origin(module) is None


def packing() -> bool:
    """Tell whether a job is being packed at the moment, for which nothing is ever spent."""
    return bool(getattr(_packing, "active", False))


def _renew() -> None:
    """Give a forked child a lock of its own."""
    global _turn
    _turn = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def pack(job: Job, version: str | None = None, *, local: bool = True) -> Package:
    """Return a job as bytes, to be evaluated elsewhere.

    The folder and the environment, which may hold secrets, go along only to processes of our own on
    this machine (``local``).

    Raises
    ------
    NotShippable
        If it cannot be, with the reason.
    """
    try:
        parts = {name: reach(part, version=version) for name, part in job.identity().items()}
    except Unencodable as error:
        raise NotShippable(f"it depends on {error}, whose content cannot be compared") from error
    except Exception as error:  # whatever somebody's class does when it is looked at
        raise NotShippable(f"looking at it raised {type(error).__name__}: {error}") from error
    if lookups := sorted(set().union(*(part.lookups for part in parts.values()))):
        raise NotShippable(
            f"its code uses {lookups[0]!r}, which can find what is not plainly named and so not sent along"
        )
    wanted: dict[str, set[str]] = {}
    for part in parts.values():
        for name, attributes in part.modules.items():
            wanted.setdefault(name.rstrip("'"), set()).update(attributes)
    for name in wanted:
        try:
            made_up = "__getattr__" in vars(sys.modules.get(name, types))
        except Exception as error:  # what stands in the place of a module is anybody's code
            raise NotShippable(f"the module {name} cannot be inspected ({type(error).__name__})") from error
        if made_up:
            raise NotShippable(f"the module {name} makes attributes up ({name}.__getattr__)")
    owners = set(wanted).union(*(part.owners for part in parts.values()))
    named = {name: sys.modules[name] for name in sorted(wanted) if name in sys.modules}
    contents = (job, version, named, _surroundings(local), sorted(own_modules()))
    whole: list[Any] = []  # arrays that others are part of: they must come first
    try:
        with _turn, _by_value(owners):
            while True:
                buffer = io.BytesIO()
                try:
                    _pickler(buffer, wanted).dump((whole, contents))
                    break
                except _PartFirstError as error:
                    whole.insert(0, error.args[0])
    except NotShippable:
        raise
    except Exception as error:  # pickling runs anybody's code
        raise NotShippable(f"it cannot be pickled ({type(error).__name__}: {error})") from error
    digests = {name: part.digest for name, part in parts.items()}
    payload = pickle.dumps((list(sys.path), digests, buffer.getvalue()))
    return Package(hashlib.sha256(payload).hexdigest(), payload)


def unpack(package: Package, *, exclusive: bool = False) -> tuple[Any, Surroundings]:
    """Return the job of a package, and the surroundings that it is to be evaluated in.

    Parameters
    ----------
    package : Package
        What arrived.
    exclusive : bool
        Whether this process has nothing else to do: then its ``sys.path``, folder and environment become
        the sender's, and what functions import when they run is what was shipped. Otherwise missing
        folders are added at the end of the path, and they import what they find.

    Raises
    ------
    Refused
        If it is not what was sent, or cannot be made here.
    """
    if hashlib.sha256(package.payload).hexdigest() != package.name:
        raise Refused("what arrived there is not what was sent")
    # It is from the process that this one works for.
    path, digests, inner = pickle.loads(package.payload)  # noqa: S301
    if exclusive:
        sys.path[:] = path
        _guard.clear()
    else:
        sys.path.extend(folder for folder in path if folder not in sys.path)
    origin.cache_clear()
    try:
        _, (job, version, named, around, mine) = pickle.loads(inner)  # noqa: S301 - the same
        if exclusive:
            _guard.fill(named)
            around.settle()
        found = {name: reach(part, version=version).digest for name, part in job.identity().items()}
        if exclusive:
            _guard.watch(mine)
    except Exception as error:  # unpickling runs anybody's code
        raise Refused(f"it cannot be made there ({type(error).__name__}: {error})") from error
    differing = [name for name in digests if found.get(name) != digests[name]]
    if differing:
        raise Refused(
            f"its {differing[0]} is not the same there as here (Python {sys.version.split()[0]} and numpy "
            f"{np.__version__} there; another version of a package, or of a module that it imports late, or "
            f"another option of pandas?)"
        )
    return job, around


# --- by value -------------------------------------------------------------------------------


@contextlib.contextmanager
def _by_value(owners: set[str]) -> Iterator[None]:
    """Make cloudpickle ship what some modules define by value."""
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


_refusals: list[str] = []


def refuse(text: str) -> None:
    """Refuse, also if the function swallows the exception: see `refusing`."""
    _refusals.append(text)
    raise Refused(text)


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Raise at the end what was refused meanwhile, whatever the function made of it."""
    _refusals.clear()  # those of an earlier job have been raised
    yield
    if _refusals:
        raise Refused(_refusals[0])


class Module(types.ModuleType):
    """A module of the user's, as far as it is used: the attributes that code plainly reads."""

    _left: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name in self._left:
            # Not an AttributeError, which hasattr() and getattr() with a default would swallow.
            refuse(
                f"{self.__name__}.{name} is read by a name that is made up at run time, so it was not sent"
            )
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # The module's own functions have globals of their own, and would not see it.
        refuse(f"the function sets {self.__name__}.{name}")

    def __delattr__(self, name: str) -> None:
        refuse(f"the function deletes {self.__name__}.{name}")


def _fill(module: Module, state: tuple[dict[str, Any], frozenset[str]]) -> None:
    vars(module).update(state[0])
    type.__setattr__(type(module), "_left", state[1])


def _module(name: str) -> Module:
    # A class of its own, so that what was left out is not among the module's attributes.
    kind: Any = type("Module", (Module,), {"__module__": __name__})
    made: Module = kind(name)
    return made


class _Guard:
    """Looks after what functions import in this process: what was sent, and nothing else of the user's."""

    def __init__(self) -> None:
        self.brought: set[str] = set()
        self.refused: frozenset[str] = frozenset()

    def clear(self) -> None:
        """Take away what the last job brought."""
        for name, module in own_modules().items():
            file: Any = True  # a lazy module may raise anything when it is asked: it goes
            with contextlib.suppress(Exception):
                file = getattr(module, "__file__", None)
            if name in self.brought or file:
                del sys.modules[name]
        self.brought, self.refused = set(), frozenset()
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def fill(self, named: dict[str, types.ModuleType]) -> None:
        """Put there what this job brings."""
        brought = {name: module for name, module in named.items() if name != "__main__"}
        sys.modules.update(brought)
        self.brought = set(brought)

    def watch(self, mine: list[str]) -> None:
        """Know what the sender has besides."""
        self.refused = frozenset(mine) - self.brought

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse what the sender has in a form that may not be the one that is found here."""
        del path, target
        if name in self.refused:
            refuse(f"the module {name} is imported in a way that could not be foreseen")


_guard: Any = _Guard()

_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_WRITTEN = frozenset({"__builtins__", "__loader__", "__spec__", "__cached__", "__doc__"})


def _pickler(buffer: io.BytesIO, wanted: dict[str, set[str]]) -> Any:
    import cloudpickle

    spans: list[Any] = []  # arrays that were met

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, types.ModuleType) and origin(thing.__name__) is None:
                kept = wanted.get(thing.__name__, set()) | {"__file__", "__package__", "__path__"}
                held = {name: value for name, value in vars(thing).items() if name in kept - _WRITTEN}
                left = frozenset(vars(thing)) - frozenset(held) - _WRITTEN
                return _module, (thing.__name__,), (held, left), None, None, _fill
            if type(thing) is np.ndarray:
                owner = _owner(thing, spans)
                if owner is not None:
                    offset = bounds(thing)[0] - bounds(owner)[0]
                    first = thing.__array_interface__["data"][0] - bounds(thing)[0]
                    return _part, (owner, thing.shape, thing.dtype, offset + first, thing.strides)
                if not (thing.flags.c_contiguous or thing.flags.f_contiguous or thing.dtype.hasobject):
                    return _strided, (np.ascontiguousarray(thing), thing.strides)
            elif isinstance(thing, functools._lru_cache_wrapper) and origin(thing.__module__) is None:
                state = {k: v for k, v in vars(thing).items() if k != "__wrapped__"}
                return _cached, (thing.__wrapped__, thing.cache_parameters()), state
            elif isinstance(thing, _LOCKS):  # as the fingerprint sees them: one is like another
                return threading.Lock if isinstance(thing, _LOCKS[0]) else threading.RLock, ()
            elif isinstance(thing, types.MappingProxyType):
                return types.MappingProxyType, (dict(thing),)
            elif thing is getattr(random, "_inst", None):
                return getattr, (random, "_inst")
            elif thing is np.random.mtrand._rand:
                return getattr, (np.random.mtrand, "_rand")
            made = super().reducer_override(thing)
            if isinstance(thing, type) and isinstance(made, tuple) and "skeleton" in made[0].__name__:
                # cloudpickle finds classes again by this, and would change the ones that are there.
                args = [*made[1][:-2], os.urandom(16).hex(), *made[1][-1:]]
                if isinstance(args[3], dict):  # attributes, among which cloudpickle forgets this one
                    args[3] = args[3] | {"__qualname__": thing.__qualname__}
                return (made[0], tuple(args), *made[2:])
            return made

    return Pickler(buffer)


class _PartFirstError(Exception):
    """An array was met after a part of it."""


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
            raise NotShippable(
                f"two arrays that it uses share memory, of shapes {known.shape} and {array.shape}; use a "
                f"copy() of one"
            )
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
    room = bytearray(below + above + values.dtype.itemsize)
    made: Any = np.ndarray(values.shape, values.dtype, room, below, strides)
    made[...] = values
    return made


def _cached(function: Any, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


# --- what an evaluation depends on besides its arguments ---------------------------------------


@dataclass(frozen=True)
class Surroundings:
    """What the sender's process is like: warnings and floating-point errors, folder, environment."""

    filters: tuple[Any, ...]
    floating: dict[str, Any]
    decimal: Any
    recursion: int
    folder: str | None
    environment: dict[str, str] | None

    def settle(self) -> None:
        """Make this process like the sender's."""
        sys.setrecursionlimit(self.recursion)
        warnings.filters[:] = self.filters  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]
        if self.folder is not None:
            with contextlib.suppress(OSError):  # it may be gone
                os.chdir(self.folder)
        if self.environment is None:
            return
        kept = {name: os.environ[name] for name in THREADS if name in os.environ}
        os.environ.clear()
        os.environ.update(self.environment | kept)


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""Environment variables that limit the threads of libraries when they are loaded."""


def _surroundings(local: bool) -> Surroundings:
    decimal = sys.modules.get("decimal")
    try:
        folder = os.getcwd()  # noqa: PTH109 - a text
    except OSError:
        folder = None
    return Surroundings(
        tuple(warnings.filters),
        {**np.geterr(), "call": np.geterrcall()},
        None if decimal is None else decimal.getcontext().copy(),
        sys.getrecursionlimit(),
        folder if local else None,
        dict(os.environ) if local else None,
    )


@contextlib.contextmanager
def surroundings(like: Surroundings, *, settled: bool = False) -> Iterator[None]:
    """Treat warnings, floating-point errors and decimal numbers as the sender does."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(np.errstate(**like.floating))
        if like.decimal is not None:
            stack.enter_context(importlib.import_module("decimal").localcontext(like.decimal))
        if not settled:
            stack.enter_context(warnings.catch_warnings())
            warnings.filters[:] = like.filters  # type: ignore[index]
        yield
