"""Find what a private run leaves behind besides its answer, name the places, and restore them.

A function may fit a global model, append to a list, store the last result in an attribute, or write into a
buffer that it was given. Whoever looks there afterwards sees private data without noise. So what the user's
own code can reach is noted before the run: globals, closures, defaults, attributes, containers, arrays,
estimators, other arguments. What is different afterwards is restored, and nothing is released. For objects of
installed libraries only the content counts: caches that a library fills by itself do not matter. For
installed modules and classes only containers that code names, and attributes that it assigns to, count.
"""

import builtins
import contextlib
import functools
import os
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from privatize.data import frames, records
from privatize.identity import places
from privatize.identity.bytecode import code_of
from privatize.identity.fingerprint import identity_of
from privatize.identity.graph import ATOMS, PARTS, cells_of, full_name, public_state
from privatize.identity.library import LIBRARY, Wrapper
from privatize.identity.origin import is_installed, origin

_DESCRIBING = frozenset({"dataclasses", "_collections"})  # what they put into classes describes their fields
_FIXED = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: nobody can change the type


class Snapshot:
    """The user's own state that a function can reach, as it is before a run."""

    def __init__(self, function: Any, arguments: Iterable[tuple[str, Any]]) -> None:
        self._noted: list[Any] = []
        self._seen: dict[int, Any] = {}  # by id, with the object, so that no other gets its id
        self._stored: set[str] = set()  # names that the code assigns to
        self._spelled: set[str] = set()  # names in the code
        # Modules and the like, their names, and whether they are the user's own.
        # All code can reach the first two, so only what code assigns to counts in them.
        self._owners: list[tuple[Any, str, bool | None]] = [(builtins, "builtins", None)]
        if main := sys.modules.get("__main__"):
            self._owners.append((main, "__main__", None))
        self._globals: dict[int, set[str]] = {}  # names that were noted as globals, by their scope's id
        self._resets: list[Callable[[], object]] = []  # for state that is restored without an error
        self._place, self._counts = "", True  # of the value that is visited now
        self._todo = [
            (value, f"the argument {name!r}" if name else "an argument", True) for name, value in arguments
        ]
        self._todo.append((function, "the function", True))
        seen = -1
        while len(self._seen) > seen:
            seen = len(self._seen)
            self._visit_all()
        for owner, label, own in self._owners:
            names = self._spelled if own else self._stored & self._spelled
            names = names - self._globals.get(id(vars(owner)), set())
            read = functools.partial(places.some_of, vars(owner), names)
            self._noted += [places.attributes_of(owner, label, read)] if names else []

    def _visit_all(self) -> None:
        """Visit all values that wait, and then find more by all names in the code."""
        while self._todo:
            value, self._place, self._counts = self._todo.pop()
            if id(value) not in self._seen and not places.is_skipped(value):
                self._seen[id(value)] = value
                with contextlib.suppress(Exception):  # a user's class may raise anything when it is inspected
                    self._visit(value)
        self._next([sys.modules[name] for name in self._spelled & sys.modules.keys()], "a module")
        for owner, label, own in self._owners:  # the list may grow meanwhile
            for name in () if own is None else self._spelled & vars(owner).keys():
                with contextlib.suppress(Exception):  # as above
                    self._part(vars(owner)[name], f"{label}.{name}", bool(own))

    def put_back(self) -> list[str]:
        """Restore what changed during the run, and return the names of the places."""
        for reset in self._resets:
            reset()
        return places.put_back(self._noted, self._stored, self._spelled | {"cell_contents"})

    def _next(self, values: Iterable[Any], place: str = "", counts: bool = True) -> None:
        """Visit some values later, in a new place or in that of the value that is visited now."""
        place, counts = (place, counts) if place else (self._place, self._counts)
        self._todo += [(value, place, counts) for value in values if type(value) not in ATOMS]

    def _names(self, names: places.Names) -> None:
        """Note names with values, and visit the values later."""
        self._noted.append(names)
        for name, value in names.before.items():
            self._next([value], names.label(name))

    def _content(self, changed: Callable[[], bool], restore: Callable[[], object]) -> None:
        self._noted.append(places.Content(self._place, changed, restore, self._counts))

    def _visit(self, value: Any) -> None:
        """Note the content of a value, and visit what is in it later."""
        if type(value) in PARTS:
            self._next(PARTS[type(value)](value))
            if type(value) is types.MethodType:  # "self" says more than the name of the method
                self._next([value.__self__], "self", self._counts)
            return
        for base, visit in _VISITORS:
            if isinstance(value, base):
                visit(self, value)
                return
        owner = origin(type(value).__module__)
        if owner == LIBRARY:
            return
        if frames.kind(value) is not None:
            self._frame(value)
        elif type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
            self._tensor(value)
        elif (memory := _memory(value)) is not None:
            self._counts = True
            self._content(lambda: _memory(value) != memory, lambda: _refill(value, memory))
        elif owner is None:
            self._names(places.attributes_of(value, self._place))
            self._next([type(value)])
        elif not isinstance(value, places.UNCHANGING) and type(value).__module__ not in _DESCRIBING:
            self._installed(value)

    def _function(self, function: types.FunctionType) -> None:
        code, cells = function.__code__, cells_of(function)
        if is_installed(code.co_filename):  # its state is a library's, but it may call the user's functions
            self._next([function.__dict__.get("__wrapped__")], "the function")
            self._next([each for _, _, each in cells if type(each) is types.FunctionType], "the function")
            return
        found, scope = code_of(code), function.__globals__
        self._stored |= found.stores
        self._spelled.update(found.names, found.attributes)
        for name, level, _ in found.imports:
            parts = full_name(name, level, scope).split(".")
            self._spelled.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
        self._names(places.globals_of(function))
        self._globals.setdefault(id(scope), set()).update(places.global_names(function))
        for name, cell, value in cells:
            self._names(places.variable(cell, name, value))
        self._names(places.attributes_of(function, function.__name__, lambda: dict(vars(function))))
        parameters, defaults = code.co_varnames[: code.co_argcount], function.__defaults__ or ()
        named = zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True)
        for name, value in (*named, *(function.__kwdefaults__ or {}).items()):
            self._next([value], f"the default of {name!r} of {function.__name__}()")

    def _cached(self, value: Any) -> None:
        before = value.cache_info()
        # A cache may be emptied, because it can be filled again.
        self._resets.append(lambda: value.cache_info() == before or value.cache_clear())
        self._next([value.__wrapped__])

    def _module(self, value: types.ModuleType) -> None:
        self._owners.append((value, value.__name__, _is_own(value.__name__)))

    def _class(self, value: type) -> None:
        if origin(value.__module__) is None:
            self._names(places.attributes_of(value, value.__name__))
        elif not value.__flags__ & _FIXED:
            self._owners.append((value, value.__name__, _is_own(value.__module__)))
        else:
            return
        self._next(value.__mro__)

    def _error(self, value: BaseException) -> None:
        """Note the content of an exception, and attributes that raising it sets, such as the traceback."""
        names = ("__traceback__", "__context__", "__cause__", "__suppress_context__")
        for name in names:
            self._resets.append(functools.partial(setattr, value, name, getattr(value, name)))
        self._names(places.attributes_of(value, self._place, lambda: {"args": value.args}))
        self._names(places.attributes_of(value, self._place))
        self._next([type(value)])

    def _wrapper(self, value: Any) -> None:
        """Note what one of our own private functions runs, and the attributes that it was given."""
        self._next(value._runs())
        self._noted.append(places.attributes_of(value, value.__name__, value._attributes))

    def _part(self, value: Any, place: str, own: bool) -> None:
        """Visit a value in a module or the like; of a library's own objects, only what code assigns to."""
        if id(value) in self._seen or places.is_skipped(value):
            return
        if isinstance(value, types.FunctionType) and origin(value.__globals__.get("__name__")) is not None:
            return
        if own or isinstance(value, places.CODE) or places.may_keep_data(value):
            self._next([value], place)
        elif type(getattr(value, "__dict__", None)) is dict:
            self._seen[id(value)] = value
            self._owners.append((value, place, False))

    def _array(self, value: Any) -> None:
        saved = value.copy(order="K")
        if value.dtype.hasobject:
            items = value.ravel().tolist()
            changed = lambda: places.differ(value.ravel().tolist(), items)  # noqa: E731
            self._next(items)
        else:
            changed = lambda: value.tobytes() != saved.tobytes()  # noqa: E731
        self._content(changed, lambda: np.copyto(value, saved, casting="no"))

    def _frame(self, value: Any) -> None:
        saved = records.copy(value)
        self._content(lambda: not records.equal(value, saved), lambda: vars(value).update(vars(saved)))
        self._names(places.attributes_of(value, self._place, lambda: public_state(value)))
        self._next([getattr(value, "attrs", None)])

    def _tensor(self, value: Any) -> None:
        """Note the numbers of a tensor, and its gradient, which is no part of a model's content."""
        saved = value.detach().clone()
        gradient = None if value.grad is None else value.grad.clone()
        content = identity_of([saved, gradient])

        def restore() -> None:
            value.detach().copy_(saved)
            value.grad = gradient

        self._counts = True
        self._content(lambda: identity_of([value.detach(), value.grad]) != content, restore)

    def _container(self, value: Any) -> None:
        if value is sys.modules:
            self._noted.append(places.items_of(value, "sys.modules", places.was_imported))
            return
        base = next(each for each in places.CONTAINERS if isinstance(value, each))
        mapping = issubclass(base, dict)
        listed: Any = dict.items if mapping else base.__iter__
        before = list(listed(value))

        def flat(items: list[Any]) -> list[Any]:
            return [each for pair in items for each in pair] if mapping else items

        def changed() -> bool:
            if base is set:
                return len(value) != len(before) or any(each not in value for each in before)
            return places.differ(flat(list(listed(value))), flat(before))

        def restore() -> None:
            base.clear(value)
            (base.update if mapping or base is set else base.extend)(value, before)

        self._content(changed, restore)
        self._next(flat(before))
        if getattr(value, "__dict__", None) is not None and origin(type(value).__module__) is None:
            self._names(places.attributes_of(value, self._place))

    def _installed(self, value: Any) -> None:
        """Note the content of an object of an installed class, and its state, to restore it."""
        counts, content = self._counts, identity_of(value) if self._counts else ""
        if content is None:  # an open file, a connection: it cannot be compared
            return
        state = getattr(value, "__dict__", None)
        if state or not hasattr(value, "__setstate__"):
            attributes = dict(state or {})

            def restore() -> None:
                vars(value).clear()
                vars(value).update(attributes)

            self._next(attributes.values(), self._place, counts=False)
        else:
            restore = functools.partial(value.__setstate__, value.__reduce_ex__(4)[2])
        self._content(lambda: not counts or identity_of(value) != content, restore)


_VISITORS: list[tuple[Any, Callable[[Snapshot, Any], None]]] = [
    ((tuple, frozenset), Snapshot._next),
    (types.FunctionType, Snapshot._function),
    (functools._lru_cache_wrapper, Snapshot._cached),
    (types.ModuleType, Snapshot._module),
    (type, Snapshot._class),
    (BaseException, Snapshot._error),
    (os._Environ, lambda snapshot, value: snapshot._noted.append(places.items_of(value, "os.environ"))),
    (Wrapper, Snapshot._wrapper),
    (np.ndarray, Snapshot._array),
    (places.CONTAINERS, Snapshot._container),
]


def _is_own(module: str) -> bool | None:
    """Tell whether a module is the user's own; None for this library, whose own state does not count."""
    return None if origin(module) == LIBRARY else origin(module) is None


def _memory(value: Any) -> bytes | None:
    """Return the bytes of a buffer that can be written to, such as an ``array.array``; else None."""
    try:  # the buffer is released at once: as long as it is in use, its owner cannot grow
        with memoryview(value) as memory:
            return None if memory.readonly else memory.tobytes()
    except (TypeError, ValueError, BufferError):  # most values are no buffers
        return None


def _refill(value: Any, saved: bytes) -> None:
    np.frombuffer(value, np.uint8)[:] = np.frombuffer(saved, np.uint8)
