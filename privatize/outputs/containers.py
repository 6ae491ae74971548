"""Lists, tuples, dicts, named tuples, dataclasses, frames and series in outputs."""

import dataclasses
from abc import abstractmethod
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from privatize.data import frames, records
from privatize.display.signatures import signature_of
from privatize.errors import OutputError
from privatize.outputs.names import name_of
from privatize.outputs.structure import Branch, Describe, Learned, Reading, Structure, StructureChanged


@dataclass(eq=False)
class List(Branch):
    """A list."""

    tags = ("list",)
    kind: ClassVar[Any] = list
    items: list[Structure]

    @classmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        return cls([describe(item) for item in value]) if type(value) is cls.kind else None

    def parts(self, value: Any, how: Reading, /) -> Sequence[Any]:
        return _sequence(value) if how is Reading.STACK else _sequence(value, self.kind)

    def assemble(self, items: list[Any], /) -> Any:
        return self.kind(items)


class Tuple(List):
    """A tuple."""

    tags = ("tuple",)
    kind = tuple


def _sequence(value: Any, *kinds: type) -> Sequence[Any]:
    """Return a list or tuple, of exactly one of these kinds if any are given, or raise `StructureChanged`."""
    if type(value) not in kinds if kinds else not isinstance(value, list | tuple):
        raise StructureChanged
    found: Sequence[Any] = value
    return found


# -- dicts --

_DICTS: dict[str, type] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}


@dataclass(eq=False)
class Dict(Branch):
    """A dict. A defaultdict comes back as a dict, without its factory, which is code."""

    tags = ("dict",)
    kind: str
    encoded: list[list[Any]]  # the keys, as JSON
    items: list[Structure]

    @classmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        kind = dict if type(value) is defaultdict else type(value)
        if kind not in _DICTS.values():
            return None
        return cls(kind.__name__, [_encoded(key) for key in value], [describe(v) for v in value.values()])

    @cached_property
    def keys(self) -> list[Any]:
        """The keys."""
        return [_decoded(key) for key in self.encoded]

    def parts(self, value: Any, _: Reading, /) -> Sequence[Any]:
        keys = self.keys
        if not isinstance(value, dict) or len(value) != len(keys):
            raise StructureChanged
        # A plain dict has a value for its own keys only, so that they need not be looked up twice.
        if type(value) is not dict and not all(key in value for key in keys):
            raise StructureChanged
        try:
            return [value[key] for key in keys]
        except KeyError:
            raise StructureChanged from None

    def assemble(self, items: list[Any], /) -> Any:
        return _DICTS[self.kind](dict(zip(self.keys, items, strict=True)))

    def heads(self) -> list[str]:
        return list(map(str, self.keys))

    def shown(self) -> dict[str, Any]:
        return {"keys": sorted(map(repr, self.keys))}


def _encoded(key: Any) -> list[Any]:
    if isinstance(key, tuple):
        return ["tuple", [_encoded(part) for part in key]]
    kind = type(key)
    if kind in (str, int, bool):
        return [kind.__name__, key]
    if key is None:
        return ["None"]
    if kind is float:
        return ["float", repr(key)]
    if isinstance(key, np.generic) and key.dtype.kind in "iufbU":
        return ["numpy", key.dtype.str, key.item() if key.dtype.kind != "f" else repr(key.item())]
    raise OutputError(f"""A dict in the output has a key of type {kind.__name__}: keys must be strings,
        numbers, None, or tuples of these.""")


def _decoded(encoded: list[Any]) -> Any:
    match encoded:
        case ["tuple", parts]:
            return tuple(map(_decoded, parts))
        case ["None"]:
            return None
        case ["float", text]:
            return float(text)
        case ["numpy", dtype, value]:
            return np.dtype(dtype).type(value)
    return encoded[1]


# -- named tuples and dataclasses --


@dataclass(eq=False)
class _Record(Learned):
    """A class with named fields. Only its qualified name is known until an output shows the class itself."""

    name: str
    fields: list[str]
    items: list[Structure]

    @abstractmethod
    def values(self, value: Any) -> Sequence[Any]:
        """Return the values of the fields."""

    def parts(self, value: Any, how: Reading, /) -> Sequence[Any]:
        kind = type(value)
        if self.template is None and how is Reading.LEARN and name_of(kind) == self.name:
            self.template = kind
        # Refuse another class, and a class that is defined again at every call. Stacks may have any class.
        if kind is not self.template and how is not Reading.STACK:
            raise StructureChanged
        return self.values(value)

    def arrange(self, vector: Any, /) -> Any:
        try:
            return super().arrange(vector)
        except Exception:  # a class may refuse floats where it has integers
            items = (item.arrange(part) for item, (part, _) in self.shares(vector, None))
            return dict(zip(self.fields, items, strict=True))

    def heads(self) -> list[str]:
        return self.fields


class NamedTuple(_Record):
    """A named tuple."""

    tags = ("namedtuple",)

    @classmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        if not isinstance(value, tuple) or not hasattr(value, "_fields"):
            return None
        kind: Any = type(value)
        try:
            again = len(kind(*value)) == len(value)
        except Exception:  # a user's constructor may raise anything
            again = False
        if not again:  # some of SciPy's results are such
            raise OutputError(f"""The function returns a {kind.__name__}, which cannot be made again from its
                fields. Return tuple(...) of it, or the numbers that you need.""")
        return cls(name_of(kind), list(value._fields), [describe(item) for item in value])

    def values(self, value: Any) -> Sequence[Any]:
        return _sequence(value)

    def assemble(self, items: list[Any], /) -> Any:
        return self.template(*items)


class Dataclass(_Record):
    """A dataclass."""

    tags = ("dataclass",)

    @classmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            return None
        kind = type(value)
        names = [each.name for each in dataclasses.fields(value) if each.init]
        needed = [p.name for p in signature_of(kind).parameters.values() if p.default is p.empty]
        if not set(needed) <= set(names):  # an InitVar, or an __init__ of its own
            raise OutputError(f"""The function returns a {kind.__name__}, which needs more than its fields to
                be made again. Return a dataclass without InitVar.""")
        return cls(name_of(kind), names, [describe(getattr(value, name)) for name in names])

    def values(self, value: Any) -> Sequence[Any]:
        if not dataclasses.is_dataclass(value):
            raise StructureChanged
        return [getattr(value, name) for name in self.fields]

    def assemble(self, items: list[Any], /) -> Any:
        return self.template(**dict(zip(self.fields, items, strict=True)))


# -- frames and series: numbers are released, and all else must be the same for every dataset --


@dataclass(eq=False)
class Frame(Learned):
    """A frame or a series: its columns of numbers, and a digest of names, labels, index and other columns."""

    tags = ("frame",)
    form: str
    library: str
    digest: str
    labels: list[list[str]]  # of columns, and of rows
    items: list[Structure]

    @classmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        kind = frames.kind(value)
        if kind is None:
            return None
        kinds = frames.kinds(value)
        if kind[0] == "series" and kinds[0] not in ("int", "float"):
            raise OutputError(f"""The function returns a Series of {frames.describe(value).columns[0].dtype},
                to which no noise can be added. Return numbers; to choose among fixed answers use
                Exponential(responses=[...]).""")
        for name, dtype in zip(frames.names(value), kinds, strict=True):
            if dtype in ("bool", "object", "other"):
                raise OutputError(f"""The function returns a frame whose column {name!r} is {dtype}, neither a
                    number nor a label. Return numbers (astype(float)), and labels as strings
                    (astype("string")), categories or dates.""")
        columns = zip(frames.contents(value), kinds, strict=False)
        items = [describe(array) for array, dtype in columns if dtype in ("int", "float")]
        return cls(*kind, frames.digest(value), frames.labels(value), items)

    def parts(self, value: Any, how: Reading, /) -> Sequence[Any]:
        if how is Reading.STACK or frames.kind(value) != (self.form, self.library):
            raise StructureChanged
        learns = self.template is None and how is Reading.LEARN
        if (self.template is None and not learns) or frames.digest(value) != self.digest:
            raise StructureChanged
        if learns:
            self.template = records.copy(value)
        return frames.numbers(value)

    def assemble(self, items: list[Any], /) -> Any:
        return frames.with_numbers(self.template, items)

    def arrange(self, vector: Any, /) -> Any:
        return frames.with_floats(
            self.template, [item.arrange(part) for item, (part, _) in self.shares(vector, None)]
        )

    def names(self) -> list[str]:
        columns, rows = ([label.strip("'") for label in each] for each in self.labels)
        heads = columns if len(columns) == len(self.items) else self.heads()
        if len(self.items) == 1:
            heads = [""]
        return [
            f"{head} {rows[i] if len(rows) == item.size else i}".strip()
            for head, item in zip(heads, self.items, strict=True)
            for i in range(item.size)
        ]

    def shown(self) -> dict[str, Any]:
        columns, rows = self.labels
        return {"library": self.library, "kind": self.form, "columns": columns, "rows": rows}
