"""Tell a private function's calls to itself from calls by something that merely interrupts it.

A function that calls itself needs the raw answers of the inner calls: the outer call adds noise. A signal
handler, a callback of a window, a finalizer or a trace function that runs meanwhile, in the same thread, must
not get a raw answer. Both have the evaluation's frame above them. What tells them apart is the code in
between: a call is the function's own if every frame down to it runs the function, something that its
code names, or a library that calls what it is given (``sorted``, ``DataFrame.apply``).
"""

from __future__ import annotations

import contextvars
import functools
import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from privatize.identity.bytecode import code_of
from privatize.identity.graph import NOTHING, cells_of
from privatize.identity.origin import is_installed

P = ParamSpec("P")
R = TypeVar("R")

# Libraries that call a user's function only if it was passed to them.
_LIBRARIES = frozenset(
    {
        *("numpy", "scipy", "pandas", "polars", "pyarrow", "torch", "sklearn", "joblib", "statsmodels"),
        *("networkx", "jax", "numba", "xarray", "dask", "tqdm"),
    }
)
_PARTS = {
    **dict.fromkeys((types.MethodType, staticmethod, classmethod), "__func__"),
    functools.partial: "func",
    property: "fget",
}
_PACKAGE = str(Path(__file__).parent.parent) + os.sep
_running: contextvars.ContextVar[tuple[RecursionGuard, ...]] = contextvars.ContextVar("running", default=())


class RecursionGuard:
    """Says, while it is active, that a private function is being evaluated in this thread.

    As a context manager it is active in its block; `run` does the same for one call.
    """

    # `active` becomes False at the end, because contexts that were copied meanwhile still have the guard.
    __slots__ = ("_before", "_functions", "_thread", "_walk", "active", "root")

    def __init__(self, root: Any, *functions: Any) -> None:
        self.root, self.active, self._thread = root, True, threading.get_ident()
        self._functions = functions
        self._walk: _Walk | None = None

    def run(self, act: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in a copy of the context: what it sets in context variables ends with the call."""
        try:
            return contextvars.copy_context().run(self._run, act, args, kwargs)
        finally:
            self.active = False  # not by a method: an interrupt could come in between

    def _run(self, act: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        self.__enter__()
        return act(*args, **kwargs)

    def __enter__(self) -> None:
        self._before = _running.get()
        _running.set((*self._before, self))

    def __exit__(self, *_: object) -> None:
        self.active = False
        _running.set(self._before)

    def calls(self, called: Any = None) -> bool:
        """Tell whether the function that is being evaluated has itself made the current call."""
        if self._thread != threading.get_ident():
            return False
        if self._walk is None:
            self._walk = _Walk((*self._functions, called))
        frame, last = sys._getframe(1), None
        while frame is not None and _is_ours(frame):  # up to the caller of the private function
            frame = frame.f_back  # type: ignore[assignment] # there may be none
        # Then up to a frame of ours that evaluates the function, or is an inner call that was checked before.
        while frame is not None and not _is_ours(frame):
            if frame.f_code in self._walk.named:
                last = frame.f_code
            elif not is_installed(frame.f_code.co_filename) or not _is_library(
                frame.f_globals.get("__name__")
            ):
                return False
            frame = frame.f_back  # type: ignore[assignment]
        return frame is not None and last in self._walk.entries


def active_guards() -> list[RecursionGuard]:
    """Return the guards of the private functions that are being evaluated, the outermost first."""
    return [guard for guard in _running.get() if guard.active]


def evaluating() -> bool:
    """Tell whether the caller is a private function that is being evaluated: its answer gets noise later."""
    return any(guard.calls() for guard in active_guards())


def _is_ours(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _is_library(module: Any) -> bool:
    """Tell whether a module is Python's own, or of a library that is known to call what it is given."""
    top = str(module).partition(".")[0]
    return top in sys.stdlib_module_names or top in _LIBRARIES


class _Walk:
    """The code of functions, and of everything of the user's own that their code names."""

    def __init__(self, functions: tuple[Any, ...]) -> None:
        self.entries: set[Any] = set()
        self.named: set[Any] = set()
        self._attributes: set[str] = set()
        self._owners: list[Any] = []  # modules and classes that attributes are read from
        self._done: dict[tuple[int, bool], Any] = {}  # with the objects, so that no id is used again
        todo = [(function, True) for function in functions]
        while todo:
            while todo:
                value, entry = todo.pop()
                if (id(value), entry) not in self._done:
                    self._done[id(value), entry] = value
                    todo += self._next(value, entry)
            found = [each for owner in self._owners for each in vars(owner).items()]
            read = [value for name, value in found if name in self._attributes]
            todo = [(value, False) for value in read if (id(value), False) not in self._done]

    def _next(self, value: Any, entry: bool) -> list[tuple[Any, bool]]:
        """Note a value, and return what it consists of or names, and whether that is an entry as well."""
        others: list[Any] = []
        if isinstance(value, types.FunctionType):
            if _is_own(value) or not is_installed(value.__code__.co_filename):
                inner = _inner(value.__code__)
                self.named |= inner
                self.entries |= inner if entry else set()
                self._attributes.update(code_of(value.__code__).attributes)
                others += _named(value)
        elif isinstance(value, types.ModuleType | type) and _is_own(value):
            self._owners.append(value)
        if isinstance(value, type):
            others += value.__bases__
        else:
            others.append(type(value.__self__ if isinstance(value, types.MethodType) else value))
        return [(each, False) for each in others] + [(each, entry) for each in _inside(value)]


def _is_own(value: Any) -> bool:
    """Tell whether a module, class or function may be the user's own, even if it is installed."""
    return not _is_library(value.__name__ if isinstance(value, types.ModuleType) else value.__module__)


def _inside(value: Any) -> list[Any]:
    """Return the functions that a callable consists of."""
    if isinstance(value, type | types.ModuleType):
        return []
    try:  # not by getattr: reading an attribute of a user's object may run code
        parts = [object.__getattribute__(value, "__dict__").get("__wrapped__")]
    except AttributeError:
        parts = []
    for kind, name in _PARTS.items():
        if isinstance(value, kind):
            return [*parts, getattr(value, name)]
    return [*parts, type(value).__dict__.get("__call__")] if _is_own(type(value)) else parts


def _inner(code: types.CodeType) -> set[Any]:
    """Return a code object with those of the functions, lambdas and comprehensions inside it."""
    return {code}.union(*(_inner(each) for each in code.co_consts if isinstance(each, types.CodeType)))


def _named(function: types.FunctionType) -> list[Any]:
    """Return what the names in a function's code stand for."""
    scope = function.__globals__
    found = [scope[name] for name in code_of(function.__code__).names if name in scope]
    return [*found, *(content for *_, content in cells_of(function) if content is not NOTHING)]
