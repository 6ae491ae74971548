"""The schema of a dataset: container, names, dtypes and shapes, never the number of records or a value."""

# ruff: noqa: D102 - the base class says what a method does

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from privatize.data.units import Unit
from privatize.errors import DataError

# A name of a column: a string, an integer, None, or a tuple of these.
Label = Any


class Schema(ABC):
    """The kind of a dataset. `str` describes it in words, without anything that may be taken from values."""

    libraries: frozenset[str] = frozenset({"numpy"})
    """The packages that the containers are from; numpy is always one of them."""
    container: tuple[str, str]
    """The package and the class of the container."""

    @abstractmethod
    def to_json(self, *, public: bool = False) -> list[Any]:
        """Return the schema as JSON, as in the keys of estimates.

        If public, leave out what may be taken from values: widths of strings, digits, fields in columns.
        """


@dataclass(frozen=True)
class ListSchema(Schema):
    """A list of records."""

    container = ("builtins", "list")

    def to_json(self, *, public: bool = False) -> list[Any]:  # noqa: ARG002
        return ["list"]

    def __str__(self) -> str:
        return "a list"


@dataclass(frozen=True)
class ArraySchema(Schema):
    """A numpy array.

    Examples
    --------
    >>> ArraySchema(np.dtype("<U11"), ()).to_json(public=True)
    ['array', '<U', []]
    """

    dtype: Any
    shape: tuple[int, ...]
    place: str = ""
    container = ("numpy", "ndarray")
    tag: ClassVar[str] = "array"

    def to_json(self, *, public: bool = False) -> list[Any]:
        code = self.dtype if isinstance(self.dtype, str) else _dtype_code(self.dtype, public)
        return [self.tag, code, list(self.shape), *([self.place] if self.place else [])]

    def __str__(self) -> str:
        return f"{self._words()}{f' with records of shape {self.shape}' if self.shape else ''}"

    def _words(self) -> str:
        return f"an array of {_in_words(self.dtype)}"


class SparseSchema(ArraySchema):
    """A SciPy sparse matrix, whose records are rows; `place` is its format."""

    libraries, container, tag = frozenset({"numpy", "scipy"}), ("scipy", "csr_array"), "sparse"

    def _words(self) -> str:
        return f"a sparse {self.place} of {self.dtype.name}"


class TensorSchema(ArraySchema):
    """A torch tensor; `dtype` is a string, `place` is its device."""

    libraries, container, tag = frozenset({"numpy", "torch"}), ("torch", "Tensor"), "tensor"

    def _words(self) -> str:
        return f"a torch tensor of {self.dtype} on {self.place}"


@dataclass(frozen=True)
class AlignedSchema(Schema):
    """A tuple of aligned containers, or a dict of them if they have names."""

    parts: tuple[Schema, ...]
    names: tuple[str, ...] | None = None
    container = ("builtins", "tuple")

    @property
    def keys(self) -> Sequence[Any]:
        """The keys of the parts: their names, or places."""
        return range(len(self.parts)) if self.names is None else self.names

    @property
    def libraries(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"numpy"}).union(*(part.libraries for part in self.parts))

    def to_json(self, *, public: bool = False) -> list[Any]:
        inside = [part.to_json(public=public) for part in self.parts]
        if self.names is None:
            return ["tuple", *inside]
        return ["dict", [list(both) for both in zip(self.names, inside, strict=True)]]

    def __str__(self) -> str:
        if self.names is None:
            return f"a tuple of ({', '.join(map(str, self.parts))})"
        named = zip(self.names, self.parts, strict=True)
        return f"a dict of {{{', '.join(f'{name!r}: {part}' for name, part in named)}}}"


class ColumnSchema(NamedTuple):
    """A column of a frame: its name, its dtype as a string, what it holds, and its time zone."""

    name: Label
    dtype: str
    kind: str
    zone: str | None = None

    @property
    def public_dtype(self) -> str:
        """The dtype without what may be taken from values."""
        return bare(self.dtype) if self.kind == "other" else self.dtype


class IndexSchema(NamedTuple):
    """A pandas index that is a part of the records."""

    kind: str
    dtypes: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class FrameSchema(Schema):
    """A data frame, or a series, which has one column; `heading` names the levels of a frame's columns."""

    form: str
    library: str
    columns: tuple[ColumnSchema, ...]
    index: IndexSchema | None = None
    heading: tuple[Label, ...] | None = None

    @property
    def libraries(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"numpy", self.library})

    @property
    def container(self) -> tuple[str, str]:  # type: ignore[override]
        table = "Table" if self.library == "pyarrow" else "DataFrame"
        return (self.library, "Series" if self.form == "series" else table)

    def to_json(self, *, public: bool = False) -> list[Any]:
        columns, index = self.columns, self.index
        if public:
            columns = tuple(own._replace(dtype=own.public_dtype) for own in columns)
            index = index and index._replace(dtypes=tuple(map(bare, index.dtypes)))
        return [self.form, self.library, *map(_as_lists, (columns, index, self.heading))]

    def __str__(self) -> str:
        if self.form == "series":
            return f"a {self.library} Series of {self.columns[0].public_dtype}"
        listed = ", ".join(f"{own.name!r}: {own.public_dtype}" for own in self.columns[:12])
        more = ", ..." if len(self.columns) > 12 else ""
        return f"a {' '.join(self.container)} with the columns {{{listed}{more}}}"


@dataclass(frozen=True)
class PersonsSchema(Schema):
    """Persons with several rows each; `inner` is what a function gets, with the unit's column first."""

    unit: Unit
    inner: Schema
    container = ("privatize", "Persons")

    @property
    def libraries(self) -> frozenset[str]:  # type: ignore[override]
        return self.inner.libraries

    def to_json(self, *, public: bool = False) -> list[Any]:
        unit = [self.unit.name, self.unit.most, self.unit.order, list(self.unit.once), self.unit.empty]
        return ["people", unit, self.inner.to_json(public=public)]

    def __str__(self) -> str:
        return f"{self.inner}, in which people have several rows each by {self.unit.name!r}"


def _as_lists(value: Any) -> Any:
    return [_as_lists(part) for part in value] if isinstance(value, tuple) else value


def bare(code: str) -> str:
    """Return the name of a dtype, without the part in brackets if that may be taken from values."""
    dates = code.startswith(("datetime", "period", "interval"))
    return code if dates else re.split(r"[\[({<]", code, maxsplit=1)[0]


def label(name: Any) -> Label:
    """Return a column's name as one that a schema can hold, or refuse it."""
    if type(name) is str or name is None or type(name) is int:
        return name
    if isinstance(name, tuple):
        return tuple(map(label, name))
    if isinstance(name, np.integer):
        return int(name)
    raise DataError(f"""The dataset has a column whose name is a {type(name).__name__}: names must be strings,
        integers or tuples of these.""")


def _dtype_code(dtype: np.dtype[Any], public: bool) -> Any:
    """Return a dtype as JSON: a string, or names, kinds, offsets and size of a structured one."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return {"base": _dtype_code(base, public), "shape": list(shape)}
    if dtype.names is None:
        code = "StringDType" if dtype.kind == "T" else dtype.str
        return code[:2] if public and dtype.kind in "USV" else code
    known: Any = dtype.fields
    fields = [known[name] for name in dtype.names]
    made = {"names": list(dtype.names), "formats": [_dtype_code(field[0], public) for field in fields]}
    if public:
        return made
    return made | {"offsets": [field[1] for field in fields], "itemsize": dtype.itemsize}


def _in_words(dtype: np.dtype[Any]) -> str:
    """Return a dtype in words, without widths: the length of the longest string reveals data."""
    if dtype.subdtype is not None:
        return f"{_in_words(dtype.subdtype[0])} of shape {dtype.subdtype[1]}"
    if dtype.names is not None:
        known: Any = dtype.fields
        return f"{{{', '.join(f'{name!r}: {_in_words(known[name][0])}' for name in dtype.names)}}}"
    return "text" if dtype.kind in "SUT" else "bytes" if dtype.kind == "V" else dtype.name
