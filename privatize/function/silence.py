"""Hide what Python itself reports while a function runs on private data: it may quote the data.

The filters of `warnings` belong to the process, and any thread that leaves ``catch_warnings`` restores
those that it found. So the thread of a private run has filters of its own for that time, and so have the
threads that it starts: the module `warnings` gets a class whose attributes differ by thread. Warnings of
other threads are dropped while the function itself runs, since it may have given them work. So are the
reports about exceptions in finalizers, and in threads that the run has started.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

# Whether `warnings` itself has a state for each thread: from Python 3.14 on, if that is switched on.
_APART = bool(getattr(sys.flags, "context_aware_warnings", False))


class _Filters(list[Any]):
    """Filters of a private run; a type of its own, so that no thread restores them for all after the run."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return _Filters(found) if isinstance(at, slice) else found


def _drop(*_: Any) -> None:
    """Show nothing, in place of both functions by which `warnings` shows something."""


class _Run:
    """The state of `warnings` for one private run: what ``catch_warnings`` changes and restores.

    As a context manager it hides the warnings of other threads as well.
    """

    __slots__ = ("quoted", "state", "thread", "threads")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.threads: list[threading.Thread] | None = None  # those that were running when the function began
        self.state: dict[str, Any] = {
            "filters": _Filters([("ignore", None, Warning, None, 0)]),
            "showwarning": _drop,
            "_showwarnmsg_impl": _drop,
        }
        self.quoted: list[tuple[Any, Any]] = []  # where `warnings` has stored a message

    def __enter__(self) -> None:
        self.threads = threading.enumerate()

    def __exit__(self, *_: object) -> None:
        self.threads = None


_now: list[_Run] = []  # the runs that are under way
_turn = threading.RLock()  # held while a run is added or removed


def _renew() -> None:
    """Give a forked child a lock of its own, and only the run that it was forked in."""
    global _turn
    _turn = threading.RLock()
    _now[:] = [run for run in _now if run.thread == threading.get_ident()]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def _mine(now: list[_Run] = _now) -> _Run | None:
    """Return the run that this thread belongs to, if there is one."""
    for run in now:
        if run.thread == threading.get_ident():
            return run
    for run in now:
        if run.threads is not None and threading.current_thread() not in run.threads:  # started meanwhile
            return run
    return None


def _attribute(name: str) -> property:
    # Globals are bound as defaults: warnings are still raised when Python ends and has cleared this module.
    def get(module: Any, mine: Any = _mine, now: list[_Run] = _now) -> Any:
        run = mine() if now else None
        return vars(module)[name] if run is None else run.state[name]

    def put(module: Any, value: Any, mine: Any = _mine, now: list[_Run] = _now) -> None:
        run = mine() if now else None
        if run is not None:
            run.state[name] = value
        elif type(value) is not _Filters and value is not _drop:
            vars(module)[name] = value

    return property(get, put)


class _Warnings(types.ModuleType):
    """The module `warnings`, with a state of its own for the threads of a private run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, ("warnings",)  # as cloudpickle does with modules

    filters = _attribute("filters")
    showwarning = _attribute("showwarning")
    _showwarnmsg_impl = _attribute("_showwarnmsg_impl")


def _note(run: _Run, message: Any) -> None:
    """Remember where a warning's message is stored: in the globals of the code that it is about."""
    text, category = str(message.message), message.category
    places: list[Any] = [vars(warnings)["onceregistry"]]
    frame: Any = sys._getframe(1)
    while frame is not None:
        places.append(frame.f_globals.get("__warningregistry__"))
        frame = frame.f_back
    keys = [(text, category, message.lineno), (text, category, 0), (text, category)]
    run.quoted += [(place, key) for place in places if place for key in keys]


def _show(run: _Run, message: Any) -> None:
    """Give a warning to a function that records its own warnings, and to nobody else."""
    _note(run, message)
    show = run.state["showwarning"]
    if show is vars(warnings)["_showwarning_orig"]:
        run.state["_showwarnmsg_impl"](message)
    else:
        show(message.message, message.category, message.filename, message.lineno, message.file, message.line)


def _add_filter(run: _Run, *item: Any, append: bool) -> None:
    filters = run.state["filters"]
    if item in filters and not append:
        filters.remove(item)
    if item not in filters:
        filters.insert(len(filters) if append else 0, item)
    vars(warnings)["_filters_mutated"]()


def _reset(run: _Run) -> None:
    run.state["filters"] = _Filters()
    vars(warnings)["_filters_mutated"]()


_INSIDE: dict[str, Callable[..., None]] = {
    "_showwarnmsg": _show,
    "_add_filter": _add_filter,
    "resetwarnings": _reset,
}
_installed: dict[str, Any] = {}


def _install() -> None:
    """Make the state of `warnings` differ by thread from now on."""
    for name, inside in _INSIDE.items():
        outside = vars(warnings)[name]
        if outside is not _installed.get(name):
            vars(warnings)[name] = _installed[name] = _divided(name, inside, outside)
    warnings.__class__ = _Warnings


def _divided(name: str, inside: Callable[..., None], outside: Callable[..., None]) -> Callable[..., None]:
    """Return a function of `warnings` that does something else in a private run."""

    @functools.wraps(outside)
    def act(*args: Any, mine: Any = _mine, now: list[_Run] = _now, **more: Any) -> None:
        run = mine() if now else None
        if run is not None:
            inside(run, *args, **more)
        elif name == "_showwarnmsg" and (others := [run for run in now if run.threads is not None]):
            _note(others[0], *args)  # the run may have given work to this thread
        else:
            outside(*args, **more)

    return act


class _Hook:
    """A hook for exceptions that nobody can catch: in a private run they are not reported."""

    def __init__(self, outside: Callable[[Any], Any]) -> None:
        self.outside = outside

    def __call__(self, report: Any, mine: Any = _mine, now: list[_Run] = _now) -> None:
        if not now or mine() is None:
            self.outside(report)


_HOOKS: tuple[tuple[Any, str], ...] = ((sys, "unraisablehook"), (threading, "excepthook"))


class quiet:  # noqa: N801 - it is used like a function
    """Show no warning of a private run, and store no message of one. Leaving it twice does no harm.

    Examples
    --------
    >>> with quiet():
    ...     warnings.warn("the salary 31415 is odd")
    """

    def __init__(self) -> None:
        self._run: Any = None

    def __enter__(self) -> quiet:
        if _APART:  # pragma: no cover - not on the version that coverage is measured on
            self._run = warnings.catch_warnings(action="ignore")
            self._run.__enter__()
            return self
        if warnings.__dict__["_showwarnmsg"] is not _installed.get("_showwarnmsg"):  # not yet, or reloaded
            _install()
        self._run = _Run()
        with _turn:
            _now.append(self._run)
            for owner, name in _HOOKS:
                if type(getattr(owner, name)) is not _Hook:
                    setattr(owner, name, _Hook(getattr(owner, name)))
        return self

    def everywhere(self) -> Any:
        """Return a context that also hides the warnings of threads that the run starts or gives work to.

        Use it only where no other thread evaluates a function, which would miss the warnings that it records.
        """
        return self._run if type(self._run) is _Run else contextlib.nullcontext()

    def __exit__(self, *_: object) -> None:
        run = self._run
        if run in _now:
            for place, key in run.quoted:
                place.pop(key, None)
            with _turn:
                _now.remove(run)
                for owner, name in _HOOKS:
                    if not _now and type(getattr(owner, name)) is _Hook:
                        setattr(owner, name, getattr(owner, name).outside)
        elif isinstance(run, warnings.catch_warnings):  # pragma: no cover
            self._run = None
            run.__exit__(None, None, None)
