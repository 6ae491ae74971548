"""The walk over values that gives their canonical encoding.

How each kind of value is encoded stands in `values`, `functions`, `classes` and `objects`, which register
themselves here.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Any

from privatize.identity.bytecode import AT, LOOKUPS, way_by
from privatize.identity.graph import NOTHING, parts_of, scope_of
from privatize.identity.reachable import Private

Read = dict[tuple[int, str], tuple[Any, Any]]
_WALKED = frozenset({"vars", "__dict__"})


class _Signal(Exception):  # noqa: N818 - a signal between modules
    """Ends a walk; by these names the walk came to where it ended, as far as code has them."""

    def __init__(self, *what: str) -> None:
        super().__init__(*what)
        self.path: list[str] = []


class Unencodable(_Signal):
    """Something that a function depends on has no content that could be compared."""

    def __str__(self) -> str:
        shown = self.path if len(self.path) < 10 else [*self.path[:5], "...", *self.path[-3:]]
        return f"{self.args[0]} (reached by {' -> '.join(shown)})" if shown else str(self.args[0])


class PrivateReachable(_Signal):
    """The private data can be reached from the function itself."""

    def __str__(self) -> str:
        return " -> ".join(self.path[:5]) or "a global, its closure, P or another argument"


Handler = Callable[["Encoder", Any], None]
_HANDLERS: dict[type, Handler] = {}


def encodes(*kinds: type) -> Callable[[Handler], Handler]:
    """Register how values of some types are encoded; with `object`, how all others are."""

    def register(handler: Handler) -> Handler:
        _HANDLERS.update(dict.fromkeys(kinds, handler))
        return handler

    return register


@dataclass
class Met:
    """What a walk has met that may make more count.

    Attributes
    ----------
    modules : dict
        The user's own modules.
    attributes : set of str
        All globals and attributes that the user's own code names, and what it can look up.
    wanted : set of (str, str)
        Attributes that are plainly read from a module; the module is "" if it may be any.
    owners : set of str
        The user's own modules whose functions and classes are used.
    lookups : set of str
        What looks things up at run time, or finds what was patched: another process lacks it.
    classes, installed : dict
        Classes, and those of installed libraries, which the user may have patched.
    libraries : set of str
        The installed libraries that code names.
    versioned : dict
        The installed modules.
    scopes : dict
        Globals of code that evaluates strings.
    later : set of (frozenset of str, callable)
        State that counts only where code has one of the names, and what reads it.
    """

    modules: dict[int, types.ModuleType] = field(default_factory=dict)
    attributes: set[str] = field(default_factory=set)
    wanted: set[tuple[str, str]] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)
    lookups: set[str] = field(default_factory=set)
    classes: dict[int, type] = field(default_factory=dict)
    installed: dict[type, None] = field(default_factory=dict)
    libraries: set[str] = field(default_factory=set)
    versioned: dict[int, types.ModuleType] = field(default_factory=dict)
    scopes: dict[int, dict[str, Any]] = field(default_factory=dict)
    later: set[tuple[frozenset[str], Callable[[], str]]] = field(default_factory=set)

    def merge(self, other: Met) -> None:
        """Add what another walk has met."""
        for name, found in vars(other).items():
            vars(self)[name].update(found)

    def use(self, owner: str | None) -> None:
        """Take note of the library that something belongs to."""
        self.libraries.add((owner or "").partition(" ")[0])

    def look_up(self, name: str, owner: str | None) -> None:
        """Take note of functions such as ``getattr`` that were reached under another name, or as a value."""
        if owner == "python":
            if name in LOOKUPS:
                self.lookups.add(name)
            if way := way_by(name):
                self.attributes.add(f"{way} by {name!r}")


@dataclass(eq=False)
class Encoder:
    """A walk, and the encoding as far as it has come.

    Parameters
    ----------
    version : str, optional
        Attests what cannot be encoded.
    private : Private, optional
        What must not be met.
    narrow : bool
        Whether this is for another process: attributes count only of the modules that they are read from.
    read : dict, optional
        Is filled with the owner and the value of every place, by the id of the owner and the name.
    libraries : set of str, optional
        The libraries whose classes the user may have changed; None for all.
    parts : list of bytes
        The encoding.
    met : Met
        What was met.
    compared : list
        Everything that was, or would have been, compared with private data.
    """

    version: str | None = None
    private: Private | None = None
    narrow: bool = False
    read: Read | None = None
    libraries: Set[str] | None = None
    parts: list[bytes] = field(default_factory=list)
    met: Met = field(default_factory=Met)
    compared: list[Any] = field(default_factory=list)
    _seen: dict[int, tuple[int, Any]] = field(default_factory=dict)  # with the objects: their ids stay theirs

    def note(self, owner: Any, name: str, value: Any) -> Any:
        """Return what was found in a place, and note it if anybody wants to know."""
        if self.read is not None:
            self.read[id(owner), name] = owner, value
        return value

    def held(self, owner: Any, name: str) -> Any:
        """Return what is found under a name in a function's globals, a module, a class or a mapping."""
        return self.note(owner, name, scope_of(owner).get(name, NOTHING))

    def note_parts(self, owner: Any, kind: type, held: dict[str, Any]) -> dict[str, Any]:
        """Return what one of the user's own objects or classes holds, and note it with what the owner is."""
        if self.read is not None:
            self.note(owner, "its parts", parts_of(owner, kind, held))
        return held

    def doubt(self, what: str) -> None:
        """Refuse what has no content, unless a version describes it."""
        if self.version is None:
            raise Unencodable(what)
        self.text(f"attested: {what}")

    def add(self, part: bytes) -> None:
        """Add bytes with their length."""
        self.parts.append(b"%d:" % len(part))
        self.parts.append(part)

    def text(self, part: str) -> None:
        """Add a description of our own."""
        self.add(part.encode())

    def digest(self) -> str:
        """Return the hash of what was encoded."""
        return hashlib.sha256(b"".join(self.parts)).hexdigest()

    def encode(self, value: Any) -> None:
        """Encode any value."""
        (_HANDLERS.get(type(value)) or _HANDLERS[object])(self, value)

    def named(self, name: str, value: Any) -> None:
        """Encode what was reached by a name; errors show the name."""
        try:
            self.encode(value)
        except Unencodable as error:
            error.path.insert(0, name)
            raise
        except PrivateReachable as error:
            # Whatever is inside a value, such as the keys of a dict, may be somebody's data.
            inner = error.path if isinstance(value, types.FunctionType | types.ModuleType | type) else []
            error.path = [] if name.startswith("[") else [name, *inner]
            raise

    def string(self, value: str) -> None:
        """Encode a string."""
        if "@" in value:
            self.met.attributes.update(AT.findall(value))
        self.parts.append(b"s")
        self.add(value.encode("utf-8", "surrogatepass"))

    def labelled(self, label: str, value: Any) -> None:
        """Encode a value with where it was found."""
        self.string(label)
        self.named(label, value)

    def state(self, value: dict[str, Any]) -> None:
        """Encode attributes, whose order few see."""
        self.parts.append(b"<%d;" % len(value))
        if value:
            self.met.later.add((_WALKED, lambda: repr(list(value))))
        for name in sorted(value):
            self.labelled(name, value[name])

    def again(self, value: Any) -> bool:
        """Tell whether a mutable object has been met before, and if so refer to it."""
        self.compare(value)
        known = self._seen.get(id(value))
        if known is not None:
            self.parts.append(b"&%d;" % known[0])
            return True
        self._seen[id(value)] = (len(self._seen), value)
        return False

    def compare(self, value: Any) -> None:
        """Refuse the private data, and what shares memory with it or is a copy of it."""
        self.compared.append(value)
        if self.private is not None and self.private.holds(value):
            raise PrivateReachable
