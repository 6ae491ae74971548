"""Pack a job as bytes, with the user's own code and the settings of this process; check it on arrival.

cloudpickle sends functions of importable modules by name, so a worker would evaluate whatever it
imports itself: an old version of a module that was edited and reloaded, or one without the globals
that were changed at run time. Here the user's own modules go by value, and the process that receives them
fingerprints what arrived and refuses it if it is not what was sent.
"""

import contextlib
import decimal
import hashlib
import itertools
import os
import pickle
import sys
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from privatize.errors import ExecutionError
from privatize.execution.job import Learned, Packable, Refused, Span, SpanResult
from privatize.execution.packaging.modules import guard, refusing
from privatize.execution.packaging.pickler import dumps, not_packable
from privatize.execution.processes.libraries import THREADS
from privatize.identity.encoder import Unencodable
from privatize.identity.fingerprint import reach
from privatize.identity.origin import origin, own_modules

_OWN_PATH = list(sys.path)  # before a job changes it


@dataclass(frozen=True)
class Package:
    """A job as bytes.

    Attributes
    ----------
    name : str
        SHA-256 of the payload.
    payload : bytes
        The job, with the fingerprints of its parts; empty if the receiver may have it already.
    module : str
        Where the job's class is defined: what a worker imports first.
    local : bool
        Whether it is for processes of our own on this machine.
    libraries : tuple of str
        The installed libraries that the job names.
    """

    name: str
    payload: bytes
    module: str
    local: bool = True
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Surroundings:
    """Settings of the sender's process that can change what a function returns."""

    filters: tuple[Any, ...]
    floating: dict[str, Any]
    decimals: decimal.Context
    recursion: int
    folder: str | None
    environment: dict[str, str] | None

    @classmethod
    def here(cls, *, local: bool) -> Self:
        """Return the settings of this process; with folder and environment only if `local`."""
        folder = None
        with contextlib.suppress(OSError):  # it may have been deleted
            folder = os.getcwd()  # noqa: PTH109 - a string
        floating, decimals = {**np.geterr(), "call": np.geterrcall()}, decimal.getcontext().copy()
        own = (folder, dict(os.environ)) if local else (None, None)
        return cls(tuple(warnings.filters), floating, decimals, sys.getrecursionlimit(), *own)

    def apply(self) -> None:
        """Give this process the sender's settings, until the next job."""
        sys.setrecursionlimit(self.recursion)
        warnings.filters[:] = self.filters  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]
        if self.folder is not None:
            with contextlib.suppress(OSError):  # it may be missing
                os.chdir(self.folder)
        if self.environment is not None:
            own = {name: os.environ[name] for name in THREADS if name in os.environ}
            os.environ.clear()
            os.environ.update(self.environment | own)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Treat floating-point errors and decimals as the sender does."""
        with np.errstate(**self.floating), decimal.localcontext(self.decimals):
            yield


@dataclass(frozen=True)
class Unpacked:
    """A job in another process, and the sender's settings that it is evaluated with."""

    job: Any
    surroundings: Surroundings

    def evaluate(self, span: Span, learned: Learned, heartbeat: Any) -> SpanResult:
        """Evaluate some pairs as the sender would."""
        with self.surroundings.entered(), refusing():
            found: SpanResult = self.job.evaluate(span, learned, heartbeat)
            return found


def pack(job: Packable, *, local: bool = True) -> Package:
    """Return a job as bytes, to be evaluated in other processes.

    The folder and the environment, which may hold secrets, go along only to processes of our own on
    this machine (``local``).
    """
    try:
        parts = {name: reach(part, version=job.version) for name, part in job.identity().items()}
    except Unencodable as error:
        raise not_packable(f"it depends on {error}, whose content cannot be compared") from error
    except Exception as error:  # a user's class may raise anything
        raise not_packable(f"inspecting it raised {type(error).__name__}: {error}") from error
    if lookups := sorted(set().union(*(part.lookups for part in parts.values()))):
        raise not_packable(f"""its code uses {lookups[0]!r}, which can find what the code does not name and so
            is not sent""")
    wanted = _wanted([part.modules for part in parts.values()])
    owners = set(wanted).union(*(part.owners for part in parts.values()))
    named = {name: sys.modules[name] for name in sorted(wanted) if name in sys.modules}
    try:
        inner = dumps((job, named, Surroundings.here(local=local), sorted(own_modules())), owners, wanted)
    except ExecutionError:
        raise
    except Exception as error:  # pickling runs anybody's code
        raise not_packable(f"it cannot be pickled ({type(error).__name__}: {error})") from error
    digests = {name: part.digest for name, part in parts.items()}
    payload = pickle.dumps((list(sys.path), digests, inner))
    libraries = tuple(sorted(set().union(*(part.libraries for part in parts.values()))))
    return Package(hashlib.sha256(payload).hexdigest(), payload, type(job).__module__, local, libraries)


def _wanted(used: list[Any]) -> dict[str, set[str]]:
    """Return the attributes of modules that code reads; refuse modules that cannot be sent."""
    wanted: dict[str, set[str]] = {}
    for name, attributes in itertools.chain.from_iterable(modules.items() for modules in used):
        wanted.setdefault(name, set()).update(attributes)
    for name in wanted:
        try:
            computed = "__getattr__" in vars(sys.modules.get(name, types))
        except Exception as error:  # sys.modules can hold any object
            raise not_packable(f"the module {name} cannot be inspected ({type(error).__name__})") from error
        if computed:
            raise not_packable(f"the module {name} computes attributes at run time ({name}.__getattr__)")
    return wanted


def unpack(package: Package) -> Unpacked:
    """Return the job of a package, in a process that does nothing else.

    Its ``sys.path``, folder and environment become the sender's, and what functions import when they run is
    what was sent. Another machine may have packages in other folders, so its own ``sys.path`` comes after.

    Raises
    ------
    Refused
        If it is not what was sent, or cannot be rebuilt here.
    """
    if hashlib.sha256(package.payload).hexdigest() != package.name:
        raise Refused("what arrived there is not what was sent")
    # Unpickling is safe: the bytes are from the process that this one works for.
    path, digests, inner = pickle.loads(package.payload)  # noqa: S301
    sys.path[:] = path if package.local else [*path, *(each for each in _OWN_PATH if each not in path)]
    guard.clear()
    origin.cache_clear()
    try:
        _, (job, named, surroundings, own) = pickle.loads(inner)  # noqa: S301 - the same
        guard.fill(named)
        surroundings.apply()
        found = {name: reach(part, version=job.version).digest for name, part in job.identity().items()}
        guard.refuse_others(own)
    except Exception as error:  # unpickling runs anybody's code
        raise Refused(f"it cannot be rebuilt there ({type(error).__name__}: {error})") from error
    differing = [name for name in digests if found.get(name) != digests[name]]
    if differing:
        raise Refused(
            f"its {differing[0]} is not the same there as here (Python {sys.version.split()[0]} and numpy "
            f"{np.__version__} there; another version of a package, or of a module that it imports late, or "
            f"another option of pandas?)"
        )
    return Unpacked(job, surroundings)
