"""What a function depends on, place by place: to tell its own doing from what others do meanwhile.

A fingerprint says that something has changed. A function that counts its calls changes something whenever it
runs, which is no reason to refuse it; another thread that sets a limit meanwhile is one. So the places are
compared one by one: globals, closures, attributes, entries of dicts.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

from privatize.fingerprint import Read, fingerprint, origin

__all__ = ["Snapshot", "changed", "snapshot"]

Place = tuple[Any, ...]
Snapshot = dict[Place, str]


def snapshot(value: Any) -> Snapshot:
    """Return a digest of what is in each place that a value depends on.

    Examples
    --------
    >>> state = {"calls": 0, "limit": 65}
    >>> def share(ages): return (ages >= state["limit"]).mean()
    >>> before = snapshot([share])
    >>> state["calls"] += 1
    >>> sorted(place[-1] for place in changed(before, snapshot([share])) if len(place) > 2)
    ['calls']
    """
    read: Read = {}
    try:
        fingerprint(value, version="", read=read)  # what has no content counts by its type
    except Exception:  # as far as somebody's class lets itself be looked at
        read[id(value), ""] = None
    seen: dict[int, Any] = {}
    starts = [((0, at), part) for at, part in enumerate(value)] if isinstance(value, list) else []
    return {
        each: _digest(part)
        for place, held in (*starts, *read.items())
        for each, part in _places(place, held, seen, _DEPTH)
    }


def changed(before: Snapshot, after: Snapshot) -> set[Place]:
    """Return the places that differ; of entries that a dict or an object got or lost, only that it did."""
    places = {place for place in before.keys() | after.keys() if before.get(place) != after.get(place)}
    grown = {place[:-1] for place in places if place[-1] is _NAMES}
    both = _paths(before) & _paths(after)
    return {
        place
        for place in places
        if not any(place[:at] in grown and place[: at + 1] not in both for at in range(2, len(place)))
    }


def _paths(found: Snapshot) -> set[Place]:
    return {place[:end] for place in found for end in range(2, len(place) + 1)}


class _Names:
    """Stands for the names of the entries of a dict or an object."""

    def __repr__(self) -> str:
        return "its names"


_NAMES = _Names()
_DEPTH = 5


def _places(place: Place, value: Any, seen: dict[int, Any], depth: int) -> Iterator[tuple[Place, Any]]:
    """Yield the places in a value, and what is in each."""
    parts = _parts(value) if depth else None
    if parts is None:
        yield place, value
    elif id(value) not in seen:
        seen[id(value)] = value
        yield (
            (*place, _NAMES),
            [f"{type(name).__name__} {name}" for name in parts if isinstance(name, str | int)],
        )
        for name, part in parts.items():
            yield from _places((*place, name), part, seen, depth - 1)


def _parts(value: Any) -> dict[Any, Any] | None:
    """Return what is in an object, by name; None for what is compared as a whole."""
    kind = type(value)
    if kind is dict:
        return dict(value)
    if kind is tuple:
        return dict(enumerate(value))
    if kind is types.MethodType:
        return {"self": value.__self__, "function": value.__func__}
    if kind is functools.partial:
        return {"function": value.func, "args": value.args, "keywords": value.keywords}
    if isinstance(value, type):
        own = origin(value.__module__) is None
        return {k: v for k, v in vars(value).items() if not k.startswith("__")} if own else None
    # What functions and modules refer to are places of their own.
    reduced = vars(object)["__reduce__"]
    if (
        kind in (types.FunctionType, types.ModuleType)
        or inspect.getattr_static(kind, "__reduce__") is not reduced
    ):
        return None
    state = getattr(value, "__dict__", None)
    return dict(state) if type(state) is dict else None


def _digest(value: Any) -> str:
    try:
        return fingerprint(value, version="")
    except Exception:  # the same
        return f"a {type(value).__name__}"
