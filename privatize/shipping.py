"""Shipping: a calibration as bytes, the user's own code by value, checked on arrival.

cloudpickle ships functions of importable modules by name, so a worker would evaluate whatever it
imports itself: an old form of a module that was edited and reloaded, or one without the globals
that were changed at run time. Here the user's own modules go by value, and whoever receives them
fingerprints what arrived and refuses it if it is not what was sent.
"""

from __future__ import annotations

import contextlib
import functools
import io
import pickle
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privatize.fingerprint import Unencodable, origin, own_modules, reach
from privatize.pairs import Refused

__all__ = ["NotShippable", "Package", "by_value", "pack", "surroundings", "unpack"]


class NotShippable(Exception):  # noqa: N818 - a signal between rooms
    """Something cannot be evaluated in another process."""


class Job(Protocol):
    """What is shipped."""

    def identity(self) -> Any:
        """Return what must be the same on both sides."""


@dataclass(frozen=True)
class Package:
    """A job as bytes.

    Attributes
    ----------
    digest : str
        Fingerprint of the job.
    payload : bytes
        The job.
    """

    digest: str
    payload: bytes


_packing = threading.local()
_turn = threading.Lock()  # cloudpickle's list of modules that go by value is one per process


def by_value(module: str | None) -> bool:
    """Tell whether things of a module are being shipped by value at the moment."""
    return getattr(_packing, "active", False) and origin(module) is None


def pack(job: Job, version: str | None = None) -> Package:
    """Return a job as bytes, to be evaluated elsewhere.

    Raises
    ------
    NotShippable
        If it cannot be, with the reason.
    """
    try:
        digest, reached = reach(job.identity(), version=version)
    except Unencodable as error:
        raise NotShippable(f"it depends on {error}, whose content cannot be compared") from error
    # Modules that names in the code may refer to, also those that functions import when they run.
    named = {name: sys.modules[name] for name in sorted(reached) if name in sys.modules}
    buffer = io.BytesIO()
    try:
        with _turn, _own_modules():
            _pickler(buffer, reached).dump((job, version, named, _surroundings()))
    except Exception as error:  # pickling runs anybody's code
        raise NotShippable(f"it cannot be pickled ({type(error).__name__}: {error})") from error
    return Package(digest, pickle.dumps((list(sys.path), buffer.getvalue())))


def unpack(package: Package, *, exclusive: bool = False) -> tuple[Any, Surroundings]:
    """Return the job of a package, and the surroundings that it is to be evaluated in.

    Parameters
    ----------
    package : Package
        What arrived.
    exclusive : bool
        Whether this process has nothing else to do: then its ``sys.path`` becomes the sender's, and what
        functions import when they run is what was shipped. Otherwise missing folders are added at
        the end, and they import what they find.

    Raises
    ------
    Refused
        If it is not what was sent, or cannot be made here.
    """
    path, inner = pickle.loads(package.payload)  # noqa: S301 - from the process that this one works for
    if exclusive:
        sys.path[:] = path
        for name, module in own_modules().items():
            if getattr(module, "__file__", None):
                del sys.modules[name]
    else:
        sys.path.extend(folder for folder in path if folder not in sys.path)
    origin.cache_clear()
    try:
        job, version, named, around = pickle.loads(inner)  # noqa: S301 - the same
        if exclusive:
            sys.modules.update({name: module for name, module in named.items() if name != "__main__"})
        digest = reach(job.identity(), version=version, modules=named)[0]
    except Exception as error:  # unpickling runs anybody's code
        raise Refused(f"it cannot be made there ({type(error).__name__}: {error})") from error
    if digest != package.digest:
        raise Refused(
            f"what arrived there is not what was sent: Python {sys.version.split()[0]} and numpy "
            f"{np.__version__} there, or a module that it imports when it runs is not the same"
        )
    return job, around


# --- by value -------------------------------------------------------------------------------


@contextlib.contextmanager
def _own_modules() -> Iterator[None]:
    """Make cloudpickle ship what the user's own modules define by value."""
    import cloudpickle

    known = cloudpickle.list_registry_pickle_by_value()
    mine = [m for name, m in own_modules().items() if m.__name__ == name and name not in known]
    _packing.active = True
    try:
        for module in mine:
            cloudpickle.register_pickle_by_value(module)
        yield
    finally:
        _packing.active = False
        for module in mine:
            cloudpickle.unregister_pickle_by_value(module)


class Module(types.ModuleType):
    """A module of the user's, as far as it is used: the attributes that code names."""

    _left: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name in self._left:
            # Not an AttributeError, which hasattr() and getattr() with a default would swallow.
            raise Refused(
                f"{self.__name__}.{name} is read by a name that is made up at run time, so it was not shipped"
            )
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def _fill(module: Module, state: tuple[dict[str, Any], frozenset[str]]) -> None:
    vars(module).update(state[0])
    type.__setattr__(type(module), "_left", state[1])


def _module(name: str) -> Module:
    # A class of its own, so that what was left out is not among the module's attributes.
    kind: Any = type("Module", (Module,), {"__module__": __name__})
    made: Module = kind(name)
    return made


_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_WRITTEN = frozenset({"__builtins__", "__loader__", "__spec__", "__cached__", "__doc__"})


def _pickler(buffer: io.BytesIO, reached: dict[str, set[str]]) -> Any:
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, types.ModuleType) and origin(thing.__name__) is None:
                wanted = reached.get(thing.__name__, set()) | {"__file__", "__package__", "__path__"}
                held = {name: value for name, value in vars(thing).items() if name in wanted - _WRITTEN}
                left = frozenset(vars(thing)) - frozenset(held) - _WRITTEN
                return _module, (thing.__name__,), (held, left), None, None, _fill
            if isinstance(thing, functools._lru_cache_wrapper) and origin(thing.__module__) is None:
                return _cached, (thing.__wrapped__, thing.cache_parameters())
            if isinstance(thing, _LOCKS):  # as the fingerprint sees them: one is like another
                return threading.Lock if isinstance(thing, _LOCKS[0]) else threading.RLock, ()
            return super().reducer_override(thing)

    return Pickler(buffer)


def _cached(function: Any, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


# --- what an evaluation depends on besides its arguments ---------------------------------------


@dataclass(frozen=True)
class Surroundings:
    """How warnings and floating-point errors are treated: one may be an exception."""

    filters: tuple[Any, ...]
    floating: dict[str, Any]


def _surroundings() -> Surroundings:
    return Surroundings(tuple(warnings.filters), dict(np.geterr()))


@contextlib.contextmanager
def surroundings(like: Surroundings) -> Iterator[None]:
    """Treat warnings and floating-point errors as the sender does."""
    with warnings.catch_warnings(), np.errstate(**like.floating):
        warnings.filters[:] = like.filters  # type: ignore[index]
        yield
