"""Telling a private function's calls to itself from calls by something that merely interrupts it.

A function that calls itself needs the raw answers of the inner calls, since its noise comes later. A signal
handler, a callback of a window, a finalizer or a trace function that runs meanwhile, in the same thread, must
not get a raw answer. Both have the evaluation's frame above them. What tells them apart is the code in
between: a call is the function's own if every frame down to it runs the function, something that its
code names, or a library that calls what it is given (``sorted``, ``DataFrame.apply``).
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
from pathlib import Path
from typing import Any

from privatize.identity.bytecode import code_of
from privatize.identity.origin import is_installed

__all__ = ["Evaluation"]

# Libraries that call functions which they are given, and never one of the user's that was not given to them.
_LIBRARIES = frozenset(
    {
        *("numpy", "scipy", "pandas", "polars", "pyarrow", "torch", "sklearn", "joblib", "statsmodels"),
        *("networkx", "jax", "numba", "xarray", "dask", "tqdm"),
    }
)
_HERE = str(Path(__file__).parents[1]) + os.sep


class Evaluation:
    """Marks, while it is active, that a private function is being evaluated in this thread."""

    # Switched off, not just forgotten: contexts that were copied meanwhile keep it.
    __slots__ = ("_codes", "_functions", "_thread", "active", "root")

    def __init__(self, root: Any, *functions: Any) -> None:
        self.root, self.active, self._thread = root, True, threading.get_ident()
        self._functions = functions
        self._codes: tuple[set[Any], set[Any]] | None = None

    def calls(self, called: Any = None) -> bool:
        """Tell whether the function that is being evaluated has itself made the call that runs now."""
        if self._thread != threading.get_ident():
            return False
        if self._codes is None:
            self._codes = _codes((*self._functions, called))
        entries, named = self._codes
        frame, last = sys._getframe(1), None
        while frame is not None and _is_ours(frame):  # from what was called to its caller
            frame = frame.f_back  # type: ignore[assignment] # there may be none
        # Then up to a frame of ours that evaluates the function, or is an inner call that was checked before.
        while frame is not None and not _is_ours(frame):
            if frame.f_code in named:
                last = frame.f_code
            elif not is_installed(frame.f_code.co_filename) or not _is_library(
                frame.f_globals.get("__name__")
            ):
                return False
            frame = frame.f_back  # type: ignore[assignment]
        return frame is not None and last in entries


def _is_ours(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_HERE)


def _is_library(module: Any) -> bool:
    """Tell whether a module is Python's own, or of a library that is known to call what it is given."""
    top = str(module).partition(".")[0]
    return top in sys.stdlib_module_names or top in _LIBRARIES


def _codes(functions: tuple[Any, ...]) -> tuple[set[Any], set[Any]]:
    """Return the code of functions, and that of everything of the user's own which it names."""
    entries: set[Any] = set()
    named: set[Any] = set()
    attributes: set[str] = set()
    owners: list[Any] = []  # modules and classes that attributes are read from
    done: dict[tuple[int, bool], Any] = {}  # with the objects, so that their ids stay their own
    todo = [(function, True) for function in functions]
    while todo:
        value, entry = todo.pop()
        if (id(value), entry) not in done:
            done[id(value), entry] = value
            if isinstance(value, types.FunctionType) and (
                _is_own(value) or not is_installed(value.__code__.co_filename)
            ):
                inner = _inner(value.__code__)
                named |= inner
                entries |= inner if entry else set()
                attributes.update(code_of(value.__code__).attributes)
                todo += [(each, False) for each in _named(value)]
            elif isinstance(value, types.ModuleType | type) and _is_own(value):
                owners.append(value)
            todo += [(each, entry) for each in _inside(value)]
            if isinstance(value, type):
                todo += [(base, False) for base in value.__bases__]
            else:
                todo.append((type(value.__self__ if isinstance(value, types.MethodType) else value), False))
        if not todo:
            found = [each for owner in owners for name, each in vars(owner).items() if name in attributes]
            todo = [(each, False) for each in found if (id(each), False) not in done]
    return entries, named


def _is_own(value: Any) -> bool:
    """Tell whether a module, class or function may be the user's own, also if it is installed."""
    return not _is_library(value.__name__ if isinstance(value, types.ModuleType) else value.__module__)


def _inside(value: Any) -> list[Any]:
    """Return the functions that a callable consists of."""
    if isinstance(value, type | types.ModuleType):
        return []
    try:  # not by getattr: the attributes of somebody's objects may be code
        parts = [object.__getattribute__(value, "__dict__").get("__wrapped__")]
    except AttributeError:
        parts = []
    if isinstance(value, types.MethodType | staticmethod | classmethod):
        parts.append(value.__func__)
    elif isinstance(value, functools.partial):
        parts.append(value.func)
    elif isinstance(value, property):
        parts.append(value.fget)
    elif _is_own(type(value)):
        parts.append(type(value).__dict__.get("__call__"))
    return parts


def _inner(code: types.CodeType) -> set[Any]:
    """Return a code object with those of the functions, lambdas and comprehensions inside it."""
    return {code}.union(*(_inner(each) for each in code.co_consts if isinstance(each, types.CodeType)))


def _named(function: types.FunctionType) -> list[Any]:
    """Return what the names in a function's code stand for."""
    scope = function.__globals__
    found = [scope[name] for name in code_of(function.__code__).names if name in scope]
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not yet filled
            continue
    return found
