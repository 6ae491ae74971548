"""Note places that a run could change, names and contents, and put back what was there."""

import contextlib
import datetime as dt
import decimal
import enum
import fractions
import functools
import logging
import operator
import pathlib
import re
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privatize.data import frames
from privatize.identity.bytecode import code_of, words
from privatize.identity.classes import SKIPPED
from privatize.identity.fingerprint import identity_of
from privatize.identity.graph import ATOMS, NOTHING, content_of, state_of
from privatize.identity.origin import origin

# Objects that lead to the entire process and not to what a run computes.
_PASSED_OVER: tuple[type, ...] = (np.generic, np.dtype, np.ufunc, range, slice, logging.Logger)
_PASSED_OVER += (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType)
_PASSED_OVER += (types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType)
_PASSED_OVER += (types.CodeType, types.FrameType)
# Classes of Python's own whose objects never change.
UNCHANGING: tuple[Any, ...] = (dt.date, dt.time, dt.timedelta, dt.tzinfo, decimal.Decimal, fractions.Fraction)
UNCHANGING += (enum.Enum, pathlib.PurePath, re.Pattern, types.GenericAlias, types.UnionType)
UNCHANGING += (operator.itemgetter, operator.attrgetter, operator.methodcaller, type(np.mean))
CODE = (types.FunctionType, types.MethodType, type, types.ModuleType, staticmethod, classmethod, property)
CONTAINERS: tuple[Any, ...] = (list, OrderedDict, dict, set, deque, bytearray)
_ATOMS = ATOMS | {type(NotImplemented)}
# What Python adds to classes by itself, such as combinations of flags that were used, reveals nothing.
_ADDED_BY_PYTHON = SKIPPED | {"__abstractmethods__", "__annotations__"}
_WRITTEN_BY_PYTHON = words("__builtins__ __warningregistry__ __cached__")


def is_skipped(value: Any) -> bool:
    """Tell whether a value never changes, or leads to the entire process and not to what a run computes."""
    return type(value) in _ATOMS or value is NOTHING or isinstance(value, _PASSED_OVER)


def may_keep_data(value: Any) -> bool:
    """Tell whether a value in an installed module is a container, or its class is the user's or Python's.

    The state of other objects is their library's own.
    """
    if is_skipped(value) or isinstance(value, (*CODE, *UNCHANGING)):
        return False
    container = isinstance(value, (*CONTAINERS, tuple, np.ndarray)) or frames.kind(value) is not None
    return container or origin(type(value).__module__) in (None, "python")


def _same(now: Any, before: Any) -> bool:
    """Tell whether a place has the same value as before the run, or one with the same content."""
    if now is before or isinstance(now, types.ModuleType):  # that a module was imported reveals nothing
        return True
    if now is NOTHING or before is NOTHING or type(now) is not type(before):
        return False
    if type(now) in _ATOMS:
        return repr(now) == repr(before)
    found = identity_of(now)
    return found is not None and found == identity_of(before)


def differ(now: list[Any], before: list[Any]) -> bool:
    """Tell whether a list has other values than before."""
    return len(now) != len(before) or not all(map(_same, now, before))


def was_imported(now: Any, before: Any) -> bool:
    """Tell whether a loaded module is the one from before, or was imported, which reveals nothing."""
    return now is before or now is NOTHING or getattr(now, "__spec__", None) is not None


@dataclass(eq=False)
class Names:
    """Names with values: the globals that a function uses, the attributes of an object, a cell.

    Attributes
    ----------
    label : callable
        Returns what a name is called in messages.
    read : callable
        Returns the values by their names.
    write : callable
        Gives a name a value.
    before : mapping
        The values before the run.
    same : callable
        Tells whether a value is the one from before.
    every : bool
        Whether names are put back that the function's own code does not assign to.
    """

    label: Callable[[str], str]
    read: Callable[[], Mapping[str, Any]]
    write: Callable[[str, Any], object]
    before: Mapping[str, Any]
    same: Callable[[Any, Any], bool] = _same
    every: bool = False
    counts: ClassVar[bool] = True

    def changed(self) -> list[str]:
        """Return the names that have another value."""
        now = self.read()
        if now.keys() == self.before.keys() and all(now[name] is self.before[name] for name in now):
            return []
        names = [name for name in {**self.before, **now} if self.every or name not in _ADDED_BY_PYTHON]
        return [n for n in names if not self.same(now.get(n, NOTHING), self.before.get(n, NOTHING))]

    def labels(self, spelled: set[str]) -> list[str]:
        """Return the labels of what changed. A name that is neither old nor in the code may reveal data."""
        return [self.label(n if n in spelled or n in self.before else "...") for n in self.changed()]

    def restore(self, stored: set[str]) -> None:
        """Put back what changed."""
        for name in self.changed():
            # If the function's own code does not assign to an old name, another thread has changed it.
            if self.every or name in stored or name not in self.before:
                self.write(name, self.before.get(name, NOTHING))


@dataclass(eq=False)
class Content:
    """Something that is changed in place: a container, an array, a frame, an estimator."""

    label: str
    differs: Callable[[], bool]
    write: Callable[[], object]
    counts: bool = True

    def labels(self, _: set[str]) -> list[str]:
        """Return where it was found, if it changed."""
        return [self.label] if self.differs() else []

    def restore(self, _: set[str]) -> None:
        """Put it back if it changed."""
        if self.differs():
            self.write()


def _put(scope: Any, name: str, value: Any) -> None:
    if value is NOTHING:
        scope.pop(name, None)
    else:
        scope[name] = value


def _set(owner: Any, name: str, value: Any) -> None:
    kind = type if isinstance(owner, type) else object
    if value is NOTHING:
        kind.__delattr__(owner, name)
    else:
        kind.__setattr__(owner, name, value)


def global_names(function: types.FunctionType) -> set[str]:
    """Return the globals that a function's code names, in strings that are evaluated as well."""
    code = code_of(function.__code__)
    return {*code.names, *(name[1:] for name in code.attributes if name.startswith("@"))}


def some_of(scope: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the values that some names have in a scope."""
    return {name: scope[name] for name in names if name in scope}


def globals_of(function: types.FunctionType, before: Mapping[str, Any] | None = None) -> Names:
    """Return the globals that a function uses; all of them if it can look up any."""
    scope, spelled = function.__globals__, global_names(function)
    anything = any(name.startswith("anything by ") for name in code_of(function.__code__).attributes)

    def read() -> dict[str, Any]:
        return some_of(scope, (set(scope) if anything else spelled) - _WRITTEN_BY_PYTHON)

    write = functools.partial(_put, scope)
    return Names(lambda name: f"the global {name!r}", read, write, read() if before is None else before)


def variable(cell: types.CellType, name: str, before: Any) -> Names:
    """Return a variable of an enclosing function, and its value before the run."""
    place = f"the variable {name!r} of an enclosing function"

    def content(value: Any) -> dict[str, Any]:
        return {} if value is NOTHING else {"cell_contents": value}

    write = functools.partial(_set, cell)
    return Names(lambda _: place, lambda: content(content_of(cell)), write, content(before))


def attributes_of(owner: Any, place: str, read: Callable[[], Mapping[str, Any]] | None = None) -> Names:
    """Return the attributes of a class, object, function or module: all, or those that `read` gives."""
    read = read or functools.partial(_attributes, owner)
    label = lambda name: f"{place}.{name}" if name != "..." else f"an attribute of {place}"  # noqa: E731
    return Names(label, read, functools.partial(_set, owner), read())


def items_of(mapping: Any, place: str, same: Callable[[Any, Any], bool] = _same) -> Names:
    """Return the items of a mapping of Python's own, such as the environment."""
    label = lambda name: f"{place}[{name!r}]" if name != "..." else place  # noqa: E731
    write = functools.partial(_put, mapping)
    return Names(label, lambda: dict(mapping), write, dict(mapping), same, every=True)


def _attributes(owner: Any) -> dict[str, Any]:
    if isinstance(owner, type):
        return {name: each for name, each in vars(owner).items() if name not in _ADDED_BY_PYTHON}
    return state_of(owner)


def put_back(noted: Iterable[Names | Content], stored: set[str], spelled: set[str]) -> list[str]:
    """Restore what changed, and return the names of the places: never a value."""
    found: set[str] = set()
    stored = stored | {"cell_contents"}
    for each in noted:
        try:
            found.update(each.labels(spelled) if each.counts else ())
        except Exception:  # a user's class may raise anything when it is compared
            found.add("something that it refers to")
    if found:
        for each in noted:  # also those that do not count, because they are parts of some that do
            with contextlib.suppress(Exception):  # what cannot be put back is at least named
                each.restore(stored)
    return sorted(found)
