"""What an output is made of: nodes that turn it into one flat float64 vector, and back.

A structure comes from calibration, never from the private output, so nothing about the private answer shows
in types, key order or shapes. What is stored of it is plain JSON.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Structure", "StructureChanged"]

Vector = NDArray[np.float64]
Describe = Callable[[Any], "Structure"]


class StructureChanged(Exception):  # noqa: N818 - a signal between packages; users never see it
    """An output does not have the structure that calibration saw."""


@dataclass(eq=False)
class Structure(ABC):
    """A part of an output; its fields are what is stored.

    A class in an output (a named tuple, a dataclass, a frame, a model) cannot be stored: it is learned from
    an output on data from P, and others are refused from then on.
    """

    tag: ClassVar[str]

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers there are."""

    @classmethod
    @abstractmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        """Return the structure of an output, or None if this is not the node for it."""

    @abstractmethod
    def collect(self, value: Any, parts: list[Any], learn: bool, /) -> None:
        """Append the numbers of an output, as floats and arrays, or raise `StructureChanged`."""

    @abstractmethod
    def collect_rows(self, value: Any, count: int, columns: list[Vector], /) -> None:
        """Append the numbers of many outputs that were computed in one call, one row for each of them."""

    @abstractmethod
    def build(self, vector: Vector, /) -> Any:
        """Return an output of this structure that has these numbers, as many as there must be."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return what to call each number: keys, labels, positions."""

    @abstractmethod
    def leaves(self) -> Iterator[Leaf]:
        """Iterate over the numbers and arrays, in the order of the flat vector."""

    @abstractmethod
    def differs(self, found: Any, /) -> str | None:
        """Say how another node of the same tag differs, if it can be said."""

    @property
    def complete(self) -> bool:
        """Whether all classes in the output are known, so that it can be rebuilt."""
        return True

    def holds(self, kind: type[Structure]) -> bool:
        """Tell whether there is a node of this kind in it."""
        return isinstance(self, kind)

    def flatten(self, value: Any, *, learn: bool = False) -> Vector:
        """Return an output as a flat vector. Dicts are aligned by key, whatever their order.

        Parameters
        ----------
        value : object
            The output.
        learn : bool
            Whether its classes may be learned, since it was computed on data from P. Of classes in a private
            output that calibration has not seen, attributes could be anything.

        Raises
        ------
        StructureChanged
            If the output does not fit.
        """
        parts: list[Any] = []
        self.collect(value, parts, learn)
        if len(parts) == 1:
            return np.atleast_1d(parts[0])
        if all(type(part) is float for part in parts):
            return np.array(parts, dtype=np.float64)
        return np.concatenate([np.atleast_1d(part) for part in parts])

    def rebuild(self, vector: Vector) -> Any:
        """Return an output of this structure that has these numbers."""
        if len(vector) != self.size:
            raise ValueError(f"{len(vector)} numbers do not fill a structure of {self.size}.")
        return self.build(vector)

    def rows(self, value: Any, count: int) -> Vector:
        """Return what a function made of a stack of datasets as one row of numbers for each of them."""
        columns: list[Vector] = []
        self.collect_rows(value, count, columns)
        return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)

    def integers(self) -> NDArray[np.bool_]:
        """Return which numbers are integers."""
        leaves = list(self.leaves())
        return np.repeat([leaf.is_integer for leaf in leaves], [leaf.size for leaf in leaves])

    def difference(self, found: Structure) -> str | None:
        """Say how the structure of an output on sampled data, which is public, differs from this one."""
        if self == found:
            return None
        if self.tag == found.tag or (isinstance(self, Number) and isinstance(found, Number)):
            return self.differs(found)
        return f"a {found.tag} where there was a {self.tag}"

    def to_json(self) -> list[Any]:
        """Return what is stored: the tag and the fields, as plain JSON."""
        return [self.tag, *(getattr(self, each.name) for each in fields(self))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]


# -- numbers --


class Leaf(Structure):
    """Numbers of one type."""

    @property
    @abstractmethod
    def is_integer(self) -> bool:
        """Whether they are integers."""

    @property
    @abstractmethod
    def dtype_name(self) -> str:
        """The name of the type."""

    def leaves(self) -> Iterator[Leaf]:
        yield self


class Number(Leaf):
    """One number."""

    size = 1

    def number(self, value: Any) -> float:
        """Return the output as a float. A float may come as an int, but not the reverse."""
        kind = type(value)
        if kind is not np.float64 and kind is not float:
            integer = kind is int or isinstance(value, np.integer)
            if not (integer or isinstance(value, np.floating) or _is_zero_dimensional(value)):
                raise StructureChanged
            if integer:
                try:
                    return float(value)
                except OverflowError:  # an int beyond every float
                    return math.inf
        if self.is_integer:
            raise StructureChanged
        return float(value)

    def collect(self, value: Any, parts: list[Any], _: bool, /) -> None:
        parts.append(self.number(value))

    def collect_rows(self, value: Any, count: int, columns: list[Vector], /) -> None:
        columns.append(_stacked(value, (count,)))

    def names(self) -> list[str]:
        return [""]

    def differs(self, found: Any, /) -> str | None:
        return f"a {found.to_json()[-1]} where there was a {self.to_json()[-1]}"


class Float(Number):
    """Python's float."""

    tag = dtype_name = "float"
    is_integer = False

    @classmethod
    def of(cls, value: Any, _: Describe, /) -> Self | None:
        return cls() if type(value) is float else None

    def build(self, vector: Vector, /) -> float:
        return float(vector[0])


class Integer(Number):
    """Python's int."""

    tag = dtype_name = "int"
    is_integer = True

    @classmethod
    def of(cls, value: Any, _: Describe, /) -> Self | None:
        return cls() if type(value) is int else None

    def build(self, vector: Vector, /) -> int:
        return round(float(vector[0]))


def _is_zero_dimensional(value: Any) -> bool:
    return type(value) is np.ndarray and value.shape == () and value.dtype.kind == "f"


class _Typed(Leaf):
    """Numbers of one of numpy's types, whose name is stored."""

    dtype: str

    @cached_property
    def is_integer(self) -> bool:
        return np.dtype(self.dtype).kind in "iu"

    @cached_property
    def dtype_name(self) -> str:
        return np.dtype(self.dtype).name

    def cast(self, values: Vector) -> NDArray[Any]:
        """Return noised values in the output's own dtype; integers saturate, they never wrap."""
        kind = np.dtype(self.dtype)
        with np.errstate(over="ignore"):
            if kind.kind == "f":
                return values.astype(kind)
            ends = np.iinfo(kind)
            inside = np.rint(values)
            out = np.clip(inside, float(ends.min), float(ends.max))
            # 2^63 - 1 is no float64: what rounds up to 2^63 must not wrap around.
            top = inside >= float(ends.max)
            return np.where(top, ends.max, np.where(top, 0.0, out).astype(kind)).astype(kind)


@dataclass(eq=False)
class NumpyNumber(_Typed, Number):
    """One of numpy's scalars."""

    tag = "numpy"
    dtype: str

    @classmethod
    def of(cls, value: Any, _: Describe, /) -> Self | None:
        numeric = isinstance(value, np.generic) and value.dtype.kind in "iuf"
        return cls(value.dtype.str) if numeric else None

    def build(self, vector: Vector, /) -> Any:
        return self.cast(vector)[0]


@dataclass(eq=False)
class Array(_Typed):
    """An array of numpy."""

    tag = "array"
    dtype: str
    shape: list[int]

    @classmethod
    def of(cls, value: Any, _: Describe, /) -> Self | None:
        numeric = type(value) is np.ndarray and value.dtype.kind in "iuf"
        return cls(value.dtype.str, list(value.shape)) if numeric else None

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape)

    def collect(self, value: Any, parts: list[Any], _: bool, /) -> None:
        if type(value) is not np.ndarray or list(value.shape) != self.shape:
            raise StructureChanged
        dtype = value.dtype
        if dtype.kind not in ("iu" if self.is_integer else "iuf"):
            raise StructureChanged
        if dtype.itemsize <= 8:
            parts.append(value.astype(np.float64).ravel())
        else:
            with np.errstate(over="ignore"):  # a long double may be beyond every float: no warning tells
                parts.append(value.astype(np.float64).ravel())

    def collect_rows(self, value: Any, count: int, columns: list[Vector], /) -> None:
        columns.append(_stacked(value, (count, *self.shape)))

    def build(self, vector: Vector, /) -> Any:
        return self.cast(vector).reshape(self.shape)

    def names(self) -> list[str]:
        return [",".join(map(str, at)) for at in np.ndindex(*self.shape)]

    def differs(self, found: Any, /) -> str | None:
        if found.shape != self.shape:
            return f"of shape {tuple(found.shape)} where it was {tuple(self.shape)}"
        return f"of {found.dtype_name} where it was {self.dtype_name}"


@dataclass(eq=False)
class Tensor(Array):
    """A tensor of PyTorch. Types that numpy does not have are widened."""

    tag = "tensor"
    torch_dtype: str

    @classmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        if not _is_tensor(value):
            return None
        array: Any = describe(_numpy(value))
        return cls(array.dtype, array.shape, str(value.dtype).removeprefix("torch."))

    @property
    def dtype_name(self) -> str:
        return self.torch_dtype

    def collect(self, value: Any, parts: list[Any], learn: bool, /) -> None:
        super().collect(_numpy(value) if _is_tensor(value) else None, parts, learn)

    def build(self, vector: Vector, /) -> Any:
        import torch

        made: Any = torch.from_numpy(super().build(vector))
        return made.to(getattr(torch, self.torch_dtype))


def _is_tensor(value: Any) -> bool:
    kind = type(value)
    return (kind.__module__, kind.__name__) in (("torch", "Tensor"), ("torch.nn.parameter", "Parameter"))


def _numpy(tensor: Any) -> NDArray[Any]:
    own = tensor.detach().cpu()
    narrow = str(own.dtype) in ("torch.bfloat16", "torch.float16")
    found: NDArray[Any] = (own.float() if narrow else own).numpy()
    return found


def _stacked(value: Any, shape: tuple[int, ...]) -> Vector:
    # A copy, at once: the function may return one and the same object again.
    found = np.array(value.detach() if hasattr(value, "detach") else value)
    if found.shape != shape or found.dtype.kind not in "iuf":
        raise StructureChanged
    with np.errstate(over="ignore"):  # of long doubles
        return found.astype(np.float64, copy=False).reshape(shape[0], -1)


# -- what is made of others --


class Branch(Structure):
    """A container of other nodes, which are its last field, `items`."""

    items: list[Structure]

    @abstractmethod
    def parts(self, value: Any, learn: bool, /) -> Sequence[Any]:
        """Return what the items of an output are; raise `StructureChanged` if it is of another kind."""

    def stacked_parts(self, _: Any, /) -> Sequence[Any]:
        """Return the items of many outputs in one; frames and models have no stacks."""
        raise StructureChanged

    @abstractmethod
    def assemble(self, items: list[Any], /) -> Any:
        """Return an output that has these items."""

    def heads(self) -> list[str]:
        """Return what to call each item."""
        return [str(i) for i in range(len(self.items))]

    @cached_property
    def size(self) -> int:
        return sum(item.size for item in self.items)

    @property
    def complete(self) -> bool:
        return all(item.complete for item in self.items)

    def holds(self, kind: type[Structure]) -> bool:
        return isinstance(self, kind) or any(item.holds(kind) for item in self.items)

    def collect(self, value: Any, parts: list[Any], learn: bool, /) -> None:
        found = self.parts(value, learn)
        if len(found) != len(self.items):
            raise StructureChanged
        for part, item in zip(found, self.items, strict=True):
            item.collect(part, parts, learn)

    def collect_rows(self, value: Any, count: int, columns: list[Vector], /) -> None:
        found = self.stacked_parts(value)
        if len(found) != len(self.items):
            raise StructureChanged
        for part, item in zip(found, self.items, strict=True):
            item.collect_rows(part, count, columns)

    def build(self, vector: Vector, /) -> Any:
        made, at = [], 0
        for item in self.items:
            made.append(item.build(vector[at : at + item.size]))
            at += item.size
        return self.assemble(made)

    def names(self) -> list[str]:
        parts = zip(self.heads(), self.items, strict=True)
        return [f"{head} {name}".strip() for head, item in parts for name in item.names()]

    def leaves(self) -> Iterator[Leaf]:
        for item in self.items:
            yield from item.leaves()

    def differs(self, found: Any, /) -> str | None:
        if len(found.items) != len(self.items):
            return f"of {len(found.items)} parts where there were {len(self.items)}"
        pairs = zip(self.items, found.items, strict=True)
        return next(filter(None, (mine.difference(theirs) for mine, theirs in pairs)), None)

    def to_json(self) -> list[Any]:
        *facts, items = super().to_json()
        return [*facts, [item.to_json() for item in items]]


class Learned(Branch):
    """A container of a class that is not stored, but learned from an output."""

    template: Any = None  # what makes an output anew

    @property
    def complete(self) -> bool:
        return self.template is not None and super().complete

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "template"}
