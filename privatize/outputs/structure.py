"""What an output is made of: nodes that turn it into one flat float64 vector, and back.

A structure comes from calibration, never from the private output, so nothing about the private answer shows
in types, key order or shapes. It is stored as JSON.
"""

import enum
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privatize.data.clipping import cast_numbers
from privatize.data.parts import as_array

Vector = NDArray[np.float64]
Scale = float | Vector | None  # of noise: for all numbers, or one for each; None if it is not known
Describe = Callable[[Any], "Structure"]


class StructureChanged(Exception):  # noqa: N818 - a signal between packages; users never see it
    """An output does not have the structure that calibration saw."""


class Reading(enum.Enum):
    """How an output is matched with a structure."""

    KNOWN = "its classes must be those that are known"
    LEARN = "its classes may be learned, since it was computed on data from P"
    STACK = "it is many outputs in one, as a function of a stack of datasets returns them"


@dataclass(eq=False)
class Structure(ABC):
    """A part of an output; its fields are what is stored.

    A class in an output (a named tuple, a dataclass, a frame, a model) cannot be stored: it is learned from
    an output on data from P, and other classes are refused from then on.
    """

    tags: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers there are."""

    @classmethod
    @abstractmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        """Return the structure of an output, or None if this is not the node for it."""

    @abstractmethod
    def match(self, value: Any, how: Reading, found: "list[tuple[Leaf, Any]]", /) -> None:
        """Append the numbers and arrays of an output and their nodes, or raise `StructureChanged`."""

    @abstractmethod
    def build(self, vector: Vector, scale: Scale = None, /) -> Any:
        """Return an output that has these numbers, which are `size` many, with noise of this scale."""

    @abstractmethod
    def arrange(self, vector: Vector, /) -> Any:
        """Return a float for each number of an output, such as the scale of its noise, in the output's form.

        A model, which is made of other things than numbers, becomes a dict.
        """

    @abstractmethod
    def names(self) -> list[str]:
        """Return what to call each number: keys, labels, positions."""

    @property
    def tag(self) -> str:
        """The name of the node in stored JSON."""
        return self.tags[0]

    def nodes(self) -> "Iterator[Structure]":
        """Iterate over this node and all inside it, in the order of the flat vector."""
        yield self

    def leaves(self) -> "list[Leaf]":
        """Return the numbers and arrays, in the order of the flat vector."""
        return [node for node in self.nodes() if isinstance(node, Leaf)]

    @property
    def complete(self) -> bool:
        """Whether all classes in the output are known, so that it can be rebuilt."""
        return all(node.template is not None for node in self.nodes() if isinstance(node, Learned))

    def flatten(self, value: Any, *, learn: bool = False) -> Vector:
        """Return an output as a flat vector. Dicts are aligned by key, whatever their order.

        Parameters
        ----------
        value : object
            The output.
        learn : bool
            Whether its classes may be learned, since it was computed on data from P. A class in a private
            output that calibration has not seen could have anything in its attributes.

        Raises
        ------
        StructureChanged
            If the output does not fit.
        """
        found: list[tuple[Leaf, Any]] = []
        self.match(value, Reading.LEARN if learn else Reading.KNOWN, found)
        parts = [leaf.numbers(part) for leaf, part in found]
        if set(map(type, parts)) <= {float}:
            return np.array(parts)
        return np.hstack(parts)

    def rows(self, value: Any, count: int) -> Vector:
        """Return the output of a function on a stack of datasets, as one row of numbers for each dataset."""
        found: list[tuple[Leaf, Any]] = []
        self.match(value, Reading.STACK, found)
        rows = [_stacked(part, (count, *leaf.shape)) for leaf, part in found]
        return rows[0] if len(rows) == 1 else np.hstack(rows)

    def rebuild(self, vector: Vector, scale: Scale = None) -> Any:
        """Return an output of this structure that has these numbers.

        Parameters
        ----------
        vector : array
            The numbers.
        scale : float or array, optional
            The scale of the noise in all numbers, or in each, which is public. Estimators need it to tell
            what noise has made of a variance.
        """
        if len(vector) != self.size:
            raise ValueError(f"{len(vector)} numbers do not fill a structure of {self.size}.")
        return self.build(vector, scale)

    def integers(self) -> NDArray[np.bool_]:
        """Return which numbers are integers."""
        leaves = self.leaves()
        return np.repeat([leaf.is_integer for leaf in leaves], [leaf.size for leaf in leaves])

    def shown(self) -> dict[str, Any]:
        """Return how it differs from other nodes of its tag, for messages about public outputs."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "items"}

    def to_json(self) -> list[Any]:
        """Return what is stored: the tag and the fields, as JSON."""
        return [self.tag, *(getattr(self, each.name) for each in fields(self))]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Structure) and self.to_json() == other.to_json())

    __hash__ = None  # type: ignore[assignment]


def _stacked(value: Any, shape: tuple[int, ...]) -> Vector:
    # Copy it now: the function may return the same object again, with other content.
    found = np.array(value.detach() if hasattr(value, "detach") else value)
    if found.shape != shape or found.dtype.kind not in "iuf":
        raise StructureChanged
    with np.errstate(over="ignore"):  # long doubles may overflow
        return found.astype(np.float64, copy=False).reshape(shape[0], -1)


# -- numbers and arrays --


class Leaf(Structure):
    """Numbers of one type, which is known by its name."""

    dtype: str
    shape: Sequence[int]

    @abstractmethod
    def numbers(self, value: Any) -> Any:
        """Return the output as a float, or as a flat vector of its own."""

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def is_integer(self) -> bool:
        return np.dtype(self.dtype).kind in "iu"

    @property
    def dtype_name(self) -> str:
        return np.dtype(self.dtype).name

    def match(self, value: Any, _: Reading, found: "list[tuple[Leaf, Any]]", /) -> None:
        found.append((self, value))

    def flatten(self, value: Any, *, learn: bool = False) -> Vector:  # noqa: ARG002 - nothing to learn
        found = self.numbers(value)  # the usual case: it is faster without a list
        return found if type(found) is np.ndarray else np.array([found])

    def arrange(self, vector: Vector, /) -> Any:
        return np.array(vector).reshape(self.shape)

    def names(self) -> list[str]:
        return [",".join(map(str, at)) for at in np.ndindex(*self.shape)]

    def cast(self, values: Vector) -> NDArray[Any]:
        """Return noised values in the output's own dtype; integers saturate, they never wrap."""
        return cast_numbers(values, np.dtype(self.dtype))


_FLOAT = np.dtype(np.float64).str


@dataclass(eq=False)
class Number(Leaf):
    """One number, of Python's types or numpy's."""

    tags = ("numpy", "float", "int")
    dtype: str
    shape = ()

    @classmethod
    def of(cls, value: Any, _: Describe, /) -> Self | None:
        if type(value) in (float, int):
            return cls(type(value).__name__)
        return cls(value.dtype.str) if isinstance(value, np.generic) and value.dtype.kind in "iuf" else None

    def numbers(self, value: Any) -> float:
        """Return the output as a float. A float may come as an int, but not the reverse."""
        kind = type(value)
        if kind is not np.float64 and kind is not float:
            if kind is int or isinstance(value, np.integer):
                try:
                    return float(value)
                except OverflowError:  # an int beyond every float
                    return math.inf
            scalar = kind is np.ndarray and value.shape == () and value.dtype.kind == "f"
            if not scalar and not isinstance(value, np.floating):
                raise StructureChanged
        if self.is_integer:
            raise StructureChanged
        return float(value)

    def build(self, vector: Vector, _: Scale = None, /) -> Any:
        if self.tag != "numpy":
            return float(vector[0]) if self.dtype == "float" else round(float(vector[0]))
        return vector[0] if self.dtype == _FLOAT else self.cast(vector)[0]

    def arrange(self, vector: Vector, /) -> float:
        return float(vector[0])

    @property
    def tag(self) -> str:
        return self.dtype if self.dtype in self.tags else "numpy"

    def to_json(self) -> list[Any]:
        return [self.dtype] if self.dtype in self.tags else super().to_json()


@dataclass(eq=False)
class Array(Leaf):
    """An array of numpy."""

    tags = ("array",)
    dtype: str
    shape: list[int]

    @classmethod
    def of(cls, value: Any, _: Describe, /) -> Self | None:
        numeric = type(value) is np.ndarray and value.dtype.kind in "iuf"
        return cls(value.dtype.str, list(value.shape)) if numeric else None

    def numbers(self, value: Any) -> Vector:
        if type(value) is not np.ndarray or list(value.shape) != self.shape:
            raise StructureChanged
        dtype = value.dtype
        if dtype.kind not in ("iu" if self.is_integer else "iuf"):
            raise StructureChanged
        if dtype.itemsize <= 8:
            return value.astype(np.float64).ravel()
        with np.errstate(over="ignore"):  # a long double beyond every float is infinite, without a warning
            return value.astype(np.float64).ravel()

    def build(self, vector: Vector, _: Scale = None, /) -> Any:
        return self.cast(vector).reshape(self.shape)


@dataclass(eq=False)
class Tensor(Array):
    """A tensor of PyTorch. Types that numpy does not have are widened."""

    tags = ("tensor",)
    torch_dtype: str

    @classmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        if not _is_tensor(value):
            return None
        array: Any = describe(as_array(value))
        return cls(array.dtype, array.shape, str(value.dtype).removeprefix("torch."))

    @property
    def dtype_name(self) -> str:
        return self.torch_dtype

    def numbers(self, value: Any) -> Vector:
        return super().numbers(as_array(value) if _is_tensor(value) else None)

    def build(self, vector: Vector, _: Scale = None, /) -> Any:
        import torch

        made: Any = torch.from_numpy(super().build(vector))
        return made.to(getattr(torch, self.torch_dtype))

    def arrange(self, vector: Vector, /) -> Any:
        import torch

        return torch.from_numpy(super().arrange(vector))


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter)


# -- containers of other nodes --


class Branch(Structure):
    """A container of other nodes, which are its last field."""

    items: list[Structure]

    @abstractmethod
    def parts(self, value: Any, how: Reading, /) -> Sequence[Any]:
        """Return the items of an output, or raise `StructureChanged`."""

    @abstractmethod
    def assemble(self, items: list[Any], /) -> Any:
        """Return an output that has these items."""

    def heads(self) -> list[str]:
        """Return what to call each item."""
        return [str(i) for i in range(len(self.items))]

    @cached_property
    def size(self) -> int:
        return sum(item.size for item in self.items)

    def nodes(self) -> Iterator[Structure]:
        yield self
        for item in self.items:
            yield from item.nodes()

    def match(self, value: Any, how: Reading, found: list[tuple[Leaf, Any]], /) -> None:
        parts = self.parts(value, how)
        if len(parts) != len(self.items):
            raise StructureChanged
        for part, item in zip(parts, self.items, strict=True):
            item.match(part, how, found)

    def build(self, vector: Vector, scale: Scale = None, /) -> Any:
        return self.assemble([item.build(*part) for item, part in self.shares(vector, scale)])

    def shares(self, vector: Vector, scale: Scale) -> Iterator[tuple[Structure, tuple[Vector, Scale]]]:
        """Iterate over the items, each with its numbers and the scale of the noise in them."""
        for item, end in zip(self.items, accumulate(item.size for item in self.items), strict=True):
            at = slice(end - item.size, end)
            yield item, (vector[at], scale[at] if isinstance(scale, np.ndarray) and scale.ndim else scale)

    def arrange(self, vector: Vector, /) -> Any:
        return self.assemble([item.arrange(part) for item, (part, _) in self.shares(vector, None)])

    def names(self) -> list[str]:
        parts = zip(self.heads(), self.items, strict=True)
        return [f"{head} {name}".strip() for head, item in parts for name in item.names()]

    def to_json(self) -> list[Any]:
        *facts, items = super().to_json()
        return [*facts, [item.to_json() for item in items]]


class Learned(Branch):
    """A container of a class that is not stored, but learned from an output. Copies must learn it again."""

    template: Any = None  # what new outputs are made from

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "template"}
