"""What a private run leaves behind outside its answer: it is named, and put back.

A function may fit a global model, append to a list, keep the last result in an attribute, or write into a
buffer that it was given. Whoever looks there afterwards sees private data without noise. So what the user's
own code can reach is noted before the run: globals, closures, defaults, attributes, containers, arrays,
estimators, other arguments. What is different afterwards is restored, and nothing is released. Of objects of
installed libraries only the content counts: caches that a library fills by itself do not matter. Of installed
modules and classes count the containers that code names, and the attributes that it assigns to.
"""

from __future__ import annotations

import builtins
import contextlib
import datetime as dt
import decimal
import dis
import enum
import fractions
import functools
import importlib.util
import logging
import operator
import os
import pathlib
import re
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from privatize.data import frames, records
from privatize.identity import classes
from privatize.identity.bytecode import code_of
from privatize.identity.change_guard import Watch
from privatize.identity.fingerprint import identity_of
from privatize.identity.origin import is_installed, origin

__all__ = ["Snapshot", "WatchedNames", "is_simple"]

_NOTHING = object()
_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented)})
# What never changes, or leads to the entire process and not to what a run computes.
_SKIPPED = (
    *(np.generic, np.dtype, np.ufunc, range, slice, types.BuiltinFunctionType, types.CodeType),
    *(types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.FrameType, logging.Logger),
)
# Classes of Python's own whose objects never change.
_UNCHANGING = (
    *(dt.date, dt.time, dt.timedelta, dt.tzinfo, decimal.Decimal, fractions.Fraction),
    *(enum.Enum, pathlib.PurePath, re.Pattern, types.GenericAlias, types.UnionType),
    *(operator.itemgetter, operator.attrgetter, operator.methodcaller, type(np.mean)),
)
_DESCRIBING = frozenset({"dataclasses", "_collections"})  # what they put into classes describes their fields
_CODE = (types.FunctionType, types.MethodType, type, types.ModuleType, staticmethod, classmethod, property)
# Most of what is met there, to be told quickly.
_PLAIN = _ATOMS | {object, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType}
_PLAIN |= {np.ufunc, type(np.mean)}
_NONE: frozenset[str] = frozenset()
_FIXED = 1 << 8  # of types that nobody can change
# What Python adds to classes by itself, such as the combinations of flags that were met, tells nothing new.
_KEPT_BY_PYTHON = classes.SKIPPED | {"__abstractmethods__", "__annotations__"}
_WRITTEN_BY_PYTHON = frozenset({"__builtins__", "__warningregistry__", "__cached__"})
_CONTAINERS: tuple[Any, ...] = (list, OrderedDict, dict, set, deque, bytearray)


def _same(now: Any, held: Any) -> bool:
    """Tell whether a place has the same value as before, or one that cannot be told from it."""
    if now is held or isinstance(now, types.ModuleType):  # that a module was imported meanwhile tells nothing
        return True
    if now is _NOTHING or held is _NOTHING or type(now) is not type(held):
        return False
    if type(now) in _ATOMS:
        return repr(now) == repr(held)
    found = identity_of(now)
    return found is not None and found == identity_of(held)


class _Names:
    """Names with values: the globals that a function uses, the attributes of an object, a cell."""

    counts = True

    def __init__(
        self,
        place: Callable[[str], str],
        read: Callable[[], dict[str, Any]],
        write: Callable[[str, Any], object],
        held: dict[str, Any] | None = None,
        every: bool = False,
    ) -> None:
        self.place, self.read, self.write, self.every = place, read, write, every
        self.held = read() if held is None else held

    def changed(self) -> list[str]:
        now = self.read()
        if now.keys() == self.held.keys() and all(now[name] is self.held[name] for name in now):
            return []
        names = [name for name in {**self.held, **now} if name not in _KEPT_BY_PYTHON]
        return [n for n in names if not _same(now.get(n, _NOTHING), self.held.get(n, _NOTHING))]

    def places(self, spelled: set[str]) -> list[str]:
        """Return what changed. A name that is neither old nor spelled in the code may be made of the data."""
        return [
            self.place(name if name in spelled or name in self.held else "...") for name in self.changed()
        ]

    def restore(self, stored: set[str]) -> None:
        for name in self.changed():
            # A value that the function's own code does not store is another thread's doing.
            if self.every or name in stored or name not in self.held:
                self.write(name, self.held.get(name, _NOTHING))


class _Loaded(_Names):
    """The modules that are loaded. That one was imported tells nothing; that something was put there does."""

    def changed(self) -> list[str]:
        new = [(name, each) for name, each in self.read().items() if each is not self.held.get(name)]
        return [name for name, each in new if getattr(each, "__spec__", None) is None]


class _Content:
    """Something that is changed in place: a container, an array, a frame, an estimator."""

    def __init__(
        self, place: str, differs: Callable[[], bool], put_back: Callable[[], object], counts: bool
    ) -> None:
        self.place, self.differs, self.put_back, self.counts = place, differs, put_back, counts

    def changed(self) -> bool:
        return self.differs()

    def places(self, _: set[str]) -> list[str]:
        return [self.place]

    def restore(self, _: set[str]) -> None:
        if self.differs():
            self.put_back()


def _write(scope: dict[str, Any], name: str, value: Any) -> None:
    if value is _NOTHING:
        scope.pop(name, None)
    else:
        scope[name] = value


def _set(owner: Any, name: str, value: Any) -> None:
    kind = type if isinstance(owner, type) else object
    if value is _NOTHING:
        kind.__delattr__(owner, name)
    else:
        kind.__setattr__(owner, name, value)


def _fill(cell: types.CellType, value: Any) -> None:
    if value is _NOTHING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _content(cell: types.CellType) -> dict[str, Any]:
    try:
        return {"": cell.cell_contents}
    except ValueError:  # it is empty
        return {}


def _global_names(names: Iterable[str], attributes: Iterable[str]) -> set[str]:
    return {*names, *(name[1:] for name in attributes if name.startswith("@"))}


def _globals_of(function: Any, held: dict[str, Any] | None = None) -> _Names:
    """Return the globals that a function uses; all of them if it can look up any."""
    scope = function.__globals__
    names, attributes = code_of(function.__code__)[:2]
    spelled = _global_names(names, attributes)
    anything = any(name.startswith("anything by ") for name in attributes)
    return _Names(
        lambda name: f"the global {name!r}",
        lambda: {
            name: scope[name]
            for name in (list(scope) if anything else spelled)
            if name in scope and name not in _WRITTEN_BY_PYTHON
        },
        lambda name, value: _write(scope, name, value),
        held,
    )


def _variable(cell: types.CellType, name: str, held: dict[str, Any] | None = None) -> _Names:
    place = f"the variable {name!r} of an enclosing function"
    return _Names(lambda _: place, lambda: _content(cell), lambda _, value: _fill(cell, value), held)


def _put_back(kept: list[Any], stored: set[str], spelled: set[str]) -> list[str]:
    """Restore what changed, and return the names of the places: never a value."""
    found: set[str] = set()
    for each in kept:
        try:
            found.update(each.places(spelled) if each.counts and each.changed() else ())
        except Exception:  # somebody's class cannot be compared any more
            found.add("something that it refers to")
    if found:
        for each in kept:  # those that do not count as well: they belong to what does
            with contextlib.suppress(Exception):  # what cannot be put back is at least named
                each.restore(stored)
    return sorted(found)


class WatchedNames:
    """The names that a simple function, one with a watch, uses: it could change nothing else."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def put_back(self) -> list[str]:
        """Restore what changed during the run, and return the names of the places."""
        if self._watch.same():
            return []
        kept, stored, spelled = [], {""}, {""}
        for function, values, cells in self._watch.held():
            kept.append(_globals_of(function, values))
            kept += [_variable(cell, name, {"": value}) for name, cell, value in cells]
            stored |= _stores(function.__code__)
            spelled |= set(values)
        return _put_back(kept, stored, spelled) or ["something that it refers to"]


def is_simple(watch: Watch) -> bool:
    """Tell whether a function that is watched can change nothing but what its watch sees."""
    if any(_keeps(value) for _, _, value in watch._places):  # a list in an installed module, say
        return False
    return not any(_stores_attributes(function.__code__) for function, _, _ in watch.held())


class Snapshot:
    """What a function can reach of the user's own state, as it is before a run."""

    def __init__(self, function: Any, arguments: Iterable[tuple[str, Any]]) -> None:
        self._kept: list[Any] = []
        self._seen: dict[int, Any] = {}  # with the objects, so that their ids stay their own
        self._stored: set[str] = set()  # names that reached code assigns to
        self._spelled: set[str] = set()  # names that reached code spells
        # Modules and the like, their names, and whether they are the user's own.
        # Everybody can get at these two; of them counts only what code assigns to.
        self._owners: list[tuple[Any, str, bool | None]] = [(builtins, "builtins", None)]
        if main := sys.modules.get("__main__"):
            self._owners.append((main, "__main__", None))
        self._globals: dict[int, set[str]] = {}  # names that were noted as globals, by their scope's id
        self._words: set[str] = set()  # those that have been looked for,
        self._known = 0  # and in how many of the owners
        self._caches: list[tuple[Any, Any]] = []
        self._raised: list[tuple[Any, Any, Any, Any, bool]] = []
        self._todo = [
            (value, f"the argument {name!r}" if name else "an argument", True) for name, value in arguments
        ]
        self._todo.append((function, "the function", True))
        self._look_at_all()
        while self._look_into_owners():
            self._look_at_all()

    def _look_at_all(self) -> None:
        while self._todo:
            value, place, counts = self._todo.pop()
            if type(value) not in _ATOMS and id(value) not in self._seen and not isinstance(value, _SKIPPED):
                self._seen[id(value)] = value
                with contextlib.suppress(Exception):  # whatever somebody's class does when it is looked at
                    self._look(value, place, counts)

    def put_back(self) -> list[str]:
        """Restore what changed during the run, and return the names of the places."""
        for cached, before in self._caches:
            if cached.cache_info() != before:
                cached.cache_clear()  # it can be filled again
        for error, trace, context, cause, suppressed in self._raised:  # raising it sets these, with frames
            error.__traceback__, error.__context__, error.__cause__ = trace, context, cause
            error.__suppress_context__ = suppressed
        return _put_back(self._kept, self._stored | {""}, self._spelled)

    def _next(self, values: Iterable[Any], place: str, counts: bool) -> None:
        self._todo += [(value, place, counts) for value in values if type(value) not in _ATOMS]

    def _look(self, value: Any, place: str, counts: bool) -> None:
        """Note what a value holds, and look at that next."""
        kind = type(value)
        if isinstance(value, tuple | frozenset):
            self._next(value, place, counts)
        elif kind is types.FunctionType:
            self._function(value)
        elif kind is types.MethodType:
            self._next([value.__func__], place, counts)
            self._next([value.__self__], "self", counts)
        elif kind in (staticmethod, classmethod, property, functools.partial):
            inside = (getattr(value, name, None) for name in ("__func__", "fget", "fset", "func"))
            self._next(inside, place, counts)
            if kind is functools.partial:
                self._next([*value.args, value.keywords], place, counts)
        elif kind is functools._lru_cache_wrapper:
            self._caches.append((value, value.cache_info()))
            self._next([value.__wrapped__], place, counts)
        elif isinstance(value, types.ModuleType):
            self._owners.append((value, value.__name__, _is_own(value.__name__)))
        elif isinstance(value, type):
            if origin(value.__module__) is None:
                self._attributes(value, value.__name__)
                self._next(value.__mro__, place, counts)
            elif not value.__flags__ & _FIXED:
                self._owners.append((value, value.__name__, _is_own(value.__module__)))
                self._next(value.__mro__, place, counts)
        elif isinstance(value, BaseException):
            self._error(value, place)
        elif value is sys.modules:
            self._kept.append(_items_of(value, "sys.modules", _Loaded))
        elif isinstance(value, os._Environ):
            self._kept.append(_items_of(value, "os.environ", _Names))
        elif kind.__module__.partition(".")[0] == "privatize":
            if hasattr(kind, "_identity") and hasattr(value, "__wrapped__"):  # a private function
                wrapped, settings, more = value._identity()
                self._next([wrapped, settings.pair, settings.batch, *more.values()], place, counts)
                self._kept.append(_attributes_of(value, value.__name__, lambda: value._identity()[2]))
        elif isinstance(value, np.ndarray):
            self._array(value, place, counts)
        elif isinstance(value, _CONTAINERS):
            self._container(value, place, counts)
            if getattr(value, "__dict__", None) is not None and origin(kind.__module__) is None:
                self._attributes(value, place)
        elif frames.kind(value) is not None:
            saved = records.copy(value)
            unequal = lambda: not records.equal(value, saved)  # noqa: E731
            self._kept.append(_Content(place, unequal, lambda: vars(value).update(vars(saved)), counts))
            mine = lambda: {n: each for n, each in vars(value).items() if not n.startswith("_")}  # noqa: E731
            self._kept.append(_attributes_of(value, place, mine))
            self._next([getattr(value, "attrs", None)], place, counts)
        elif kind.__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
            self._tensor(value, place)
        elif (memory := _memory(value)) is not None:
            differs = lambda: _memory(value) != memory  # noqa: E731
            self._kept.append(_Content(place, differs, lambda: _refill(value, memory), True))
        elif origin(kind.__module__) is None:
            self._attributes(value, place)
            self._next([kind], place, counts)
        elif not isinstance(value, _UNCHANGING) and kind.__module__ not in _DESCRIBING:
            self._installed(value, place, counts)

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        if is_installed(code.co_filename):  # what it keeps is a library's, but it may call the user's own
            self._next([function.__dict__.get("__wrapped__")], "the function", True)
            inside = (_content(cell).get("") for cell in function.__closure__ or ())
            self._next([each for each in inside if type(each) is types.FunctionType], "the function", True)
            return
        names, attributes, imports = code_of(code)[:3]
        self._stored |= _stores(code)
        self._spelled.update(names, attributes)
        scope = function.__globals__
        for name, level, _ in imports:
            self._spelled |= _modules_of(name, level, scope.get("__package__"))
        self._kept.append(_globals_of(function))
        self._globals.setdefault(id(scope), set()).update(_global_names(names, attributes))
        for name, value in self._kept[-1].held.items():
            self._next([value], f"the global {name!r}", True)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            self._kept.append(_variable(cell, name))
            self._next(_content(cell).values(), f"the variable {name!r} of an enclosing function", True)
        label = f"{function.__name__}()"
        self._kept.append(_attributes_of(function, function.__name__, lambda: dict(vars(function))))
        self._next(vars(function).values(), f"an attribute of {label}", True)
        parameters = code.co_varnames[: code.co_argcount]
        defaults = function.__defaults__ or ()
        for name, value in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True):
            self._next([value], f"the default of {name!r} of {label}", True)
        for name, value in (function.__kwdefaults__ or {}).items():
            self._next([value], f"the default of {name!r} of {label}", True)

    def _attributes(self, value: Any, place: str) -> None:
        """Note the attributes of one of the user's own classes or objects, slots included."""
        self._kept.append(_attributes_of(value, place, lambda: _attributes_now(value)))
        for name, each in self._kept[-1].held.items():
            self._next([each], f"{place}.{name}", True)

    def _error(self, value: BaseException, place: str) -> None:
        """Note the content of an exception."""
        self._raised.append(
            (value, value.__traceback__, value.__context__, value.__cause__, value.__suppress_context__)
        )
        read = lambda: {"args": value.args}  # noqa: E731
        self._kept.append(_attributes_of(value, place, read))
        self._next(value.args, place, True)
        self._attributes(value, place)
        self._next([type(value)], place, True)

    def _look_into_owners(self) -> bool:
        """Note what code names of the user's own modules, and assigns to in others; tell if there is more."""
        words = self._spelled - self._words
        self._words |= words
        self._next([sys.modules[name] for name in words if name in sys.modules], "", True)
        known, self._known = self._known, len(self._owners)
        if not words and known == self._known:
            return False
        for at, (owner, label, own) in enumerate(self._owners):  # which may grow meanwhile
            scope, new = vars(owner), words if at < known else self._spelled
            names = (new if own else self._stored & new) - self._globals.get(id(scope), _NONE)
            if names:
                read = functools.partial(_some_of, owner, names)
                self._kept.append(_attributes_of(owner, label, read))
            for name in () if own is None else scope.keys() & new:
                with contextlib.suppress(Exception):  # whatever somebody's class does when it is looked at
                    self._part(scope[name], f"{label}.{name}", bool(own))
        self._known = len(self._owners)
        return True

    def _part(self, value: Any, place: str, own: bool) -> None:
        """Look at what a module or the like holds; of a library's own objects, at what code assigns to."""
        if id(value) in self._seen or type(value) in _ATOMS or isinstance(value, _SKIPPED):
            return
        if isinstance(value, types.FunctionType) and origin(value.__globals__.get("__name__")) is not None:
            return
        if own or isinstance(value, _CODE) or _keeps(value):
            self._next([value], place, True)
        elif type(getattr(value, "__dict__", None)) is dict:
            self._seen[id(value)] = value
            self._owners.append((value, place, False))

    def _array(self, value: Any, place: str, counts: bool) -> None:
        if value.dtype.hasobject:
            held = value.ravel().tolist()
            differs = lambda: _unlike(value.ravel().tolist(), held)  # noqa: E731
            saved = value.copy()
            self._next(held, place, counts)
        else:
            saved = value.copy(order="K")
            differs = lambda: value.tobytes() != saved.tobytes()  # noqa: E731
        self._kept.append(_Content(place, differs, lambda: np.copyto(value, saved, casting="no"), counts))

    def _tensor(self, value: Any, place: str) -> None:
        """Note the numbers of a tensor, and its gradient, which is no part of a model's content."""
        saved = value.detach().clone()
        gradient = None if value.grad is None else value.grad.clone()

        def restore() -> None:
            value.detach().copy_(saved)
            value.grad = gradient

        def differs() -> bool:
            return identity_of([value.detach(), value.grad]) != identity_of([saved, gradient])

        self._kept.append(_Content(place, differs, restore, True))

    def _container(self, value: Any, place: str, counts: bool) -> None:
        base = next(each for each in _CONTAINERS if isinstance(value, each))
        mapping = issubclass(base, dict)
        held = list(dict.items(value)) if mapping else list(base.__iter__(value))
        items = [each for pair in held for each in pair] if mapping else held

        def differs() -> bool:
            if base is set:
                return len(value) != len(held) or any(each not in value for each in held)
            now = list(dict.items(value)) if mapping else list(base.__iter__(value))
            return _unlike([each for pair in now for each in pair] if mapping else now, items)

        def restore() -> None:
            base.clear(value)
            (base.update if mapping or base is set else base.extend)(value, held)

        self._kept.append(_Content(place, differs, restore, counts))
        if base is not bytearray:
            self._next(items, place, counts)

    def _installed(self, value: Any, place: str, counts: bool) -> None:
        """Note the content of an object of an installed class, and what it is made of, to restore it."""
        content = identity_of(value) if counts else ""
        if content is None:  # an open file, a connection: it cannot be compared
            return
        state = getattr(value, "__dict__", None)
        if state or not hasattr(value, "__setstate__"):
            held = dict(state or {})

            def restore() -> None:
                vars(value).clear()
                vars(value).update(held)

            self._next(held.values(), place, False)
        else:
            inner = value.__reduce_ex__(4)[2]
            restore = functools.partial(value.__setstate__, inner)
        self._kept.append(
            _Content(place, lambda: not counts or identity_of(value) != content, restore, counts)
        )


def _is_own(module: str) -> bool | None:
    """Tell whether a module is the user's own; None for this library, which keeps notes of its own."""
    return None if module.partition(".")[0] == "privatize" else origin(module) is None


def _keeps(value: Any) -> bool:
    """Tell whether something that an installed module holds is a container, or the user's own, or Python's.

    The state of other objects is their library's own.
    """
    if type(value) in _PLAIN or isinstance(value, (*_CODE, *_SKIPPED, *_UNCHANGING)):
        return False
    whole = isinstance(value, (*_CONTAINERS, tuple, np.ndarray)) or frames.kind(value) is not None
    return whole or origin(type(value).__module__) in (None, "python")


def _modules_of(name: str, level: int, package: Any) -> set[str]:
    """Return the full names of the modules that an import statement names."""
    with contextlib.suppress(ImportError, ValueError):
        name = importlib.util.resolve_name("." * level + name, package or "") if level else name
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts) + 1)}


def _some_of(owner: Any, names: set[str]) -> dict[str, Any]:
    scope = vars(owner)
    return {name: scope[name] for name in names if name in scope}


def _memory(value: Any) -> bytes | None:
    """Return the bytes of something that others can write into, such as an array of Python's own."""
    try:  # nothing may hold on to a buffer: its owner could not grow any more
        with memoryview(value) as memory:
            return None if memory.readonly else memory.tobytes()
    except (TypeError, ValueError, BufferError):  # most things are none
        return None


def _refill(value: Any, saved: bytes) -> None:
    np.frombuffer(value, np.uint8)[:] = np.frombuffer(saved, np.uint8)


def _unlike(now: list[Any], held: list[Any]) -> bool:
    return len(now) != len(held) or not all(map(_same, now, held))


def _attributes_now(value: Any) -> dict[str, Any]:
    if isinstance(value, type):
        return {name: each for name, each in vars(value).items() if name not in _KEPT_BY_PYTHON}
    found = dict(getattr(value, "__dict__", {}))
    if isinstance(value, enum.Flag):  # which remembers its complement
        found.pop("_inverted_", None)
    for base in type(value).__mro__:
        for name, each in vars(base).items():
            if isinstance(each, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):  # it is empty
                    found[name] = each.__get__(value)
    found.pop("__suppress_context__", None)  # of an exception: set whenever it is raised
    return found


def _attributes_of(value: Any, place: str, read: Callable[[], dict[str, Any]]) -> _Names:
    return _Names(
        lambda name: f"{place}.{name}" if name != "..." else f"an attribute of {place}",
        read,
        lambda name, each: _set(value, name, each),
    )


def _items_of(value: Any, place: str, kind: type[_Names]) -> _Names:
    return kind(
        lambda name: f"{place}[{name!r}]" if name != "..." else place,
        lambda: dict(value),
        lambda name, each: _write(value, name, each),
        every=True,
    )


_STORING = ("STORE_GLOBAL", "STORE_NAME", "STORE_ATTR", "DELETE_GLOBAL", "DELETE_NAME", "DELETE_ATTR")
_BY_TEXT = frozenset(
    {"setattr", "delattr", "globals", "vars", "__dict__", "exec", "eval", "__setattr__", "__builtins__"}
)


@functools.lru_cache(maxsize=4096)
def _stores(code: types.CodeType) -> frozenset[str]:
    """Return the names and attributes that a code object assigns to, or could by their texts."""
    found = {each.argval for each in dis.get_instructions(code) if each.opname in _STORING}
    if _BY_TEXT.intersection(code.co_names):
        found.update(code_of(code).attributes)
    inner = [_stores(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return frozenset(found).union(*inner)


@functools.lru_cache(maxsize=4096)
def _stores_attributes(code: types.CodeType) -> bool:
    """Tell whether a code object assigns to attributes, of whatever."""
    own = any("_ATTR" in each.opname and "LOAD" not in each.opname for each in dis.get_instructions(code))
    inner = any(_stores_attributes(each) for each in code.co_consts if isinstance(each, types.CodeType))
    return own or inner or bool(_BY_TEXT.intersection(code.co_names))
