"""Walk over values and build their canonical encoding.

The modules `values`, `functions`, `classes`, `compiled` and `objects` encode the types of values. They
register their functions here.
"""

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
    """Ends a walk; `path` has the names in the code that led to where it ended."""

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
    """Register a function that encodes values of some types; `object` stands for all other types."""

    def register(handler: Handler) -> Handler:
        _HANDLERS.update(dict.fromkeys(kinds, handler))
        return handler

    return register


@dataclass
class Met:
    """What a walk has met so far, which decides what else must be encoded.

    Attributes
    ----------
    modules : dict
        The user's own modules.
    attributes : set of str
        All globals and attributes that the user's own code names, and what it can look up.
    wanted : set of (str, str)
        Modules and the attributes that code reads from them; the module is "" if it is not known.
    owners : set of str
        The user's own modules whose functions and classes are used.
    lookups : set of str
        What is looked up at run time, and what was patched: another process does not have it.
    classes, installed : dict
        All classes, and the classes of installed libraries that the user may have patched.
    libraries : set of str
        The installed libraries that code names.
    versioned : dict
        The installed modules.
    scopes : dict
        Globals of code that evaluates strings.
    later : set of (frozenset of str, callable)
        State that counts only if code has one of the names in it: these names, and what reads the state.
    opaque : set of str
        Classes of the budgets, ledgers, catalogues and sealed data.
    orders : set of str
        The orders of sets that were met, where they may be others in another process.
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
    opaque: set[str] = field(default_factory=set)
    orders: set[str] = field(default_factory=set)

    def merge(self, other: "Met") -> None:
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
    """A walk over values, and the encoding so far.

    Parameters
    ----------
    version : str, optional
        Attests what cannot be encoded.
    private : Private, optional
        Private data, which the walk must not meet.
    narrow : bool
        Whether this is for another process: an attribute counts only in the module that it is read from.
    read : dict, optional
        Is filled with the owner and the value of every place, by the id of the owner and the name.
    libraries : set of str, optional
        The libraries whose classes the user may have changed; None for all.
    parts : list of bytes
        The encoding.
    met : Met
        What was met.
    compared : list
        Everything that is compared with private data, if there is any.
    """

    version: str | None = None
    private: Private | None = None
    narrow: bool = False
    read: Read | None = None
    libraries: Set[str] | None = None
    parts: list[bytes] = field(default_factory=list)
    met: Met = field(default_factory=Met)
    compared: list[Any] = field(default_factory=list)
    _seen: dict[int, tuple[int, Any]] = field(default_factory=dict)  # with the object: no other gets its id

    def note(self, owner: Any, name: str, value: Any) -> Any:
        """Return a value, and record in `read` where it was found."""
        if self.read is not None:
            self.read[id(owner), name] = owner, value
        return value

    def lookup(self, owner: Any, name: str) -> Any:
        """Return what a function's globals, a module, a class or a mapping has under a name; record it."""
        return self.note(owner, name, scope_of(owner).get(name, NOTHING))

    def note_parts(self, owner: Any, kind: type, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes of one of the user's own objects or classes; record them with its class."""
        if self.read is not None:
            self.note(owner, "its parts", parts_of(owner, kind, attributes))
        return attributes

    def doubt(self, what: str) -> None:
        """Raise `Unencodable` about something that cannot be compared, unless a version attests it."""
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
        """Encode attributes by name; their order counts only for code that can read it."""
        self.parts.append(b"<%d;" % len(value))
        if value:
            self.met.later.add((_WALKED, lambda: repr(list(value))))
        for name in sorted(value):
            self.labelled(name, value[name])

    def seen_before(self, value: Any) -> bool:
        """Tell whether a mutable object was met before; if so, encode a reference to it."""
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
