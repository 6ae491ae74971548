"""Which function makes which part of an answer valid, and how the answer keeps its structure and types."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames
from privatize.errors import SettingsError
from privatize.outputs import constraints
from privatize.outputs.containers import Dataclass, Dict, Frame, List, NamedTuple
from privatize.outputs.models import Model
from privatize.outputs.structure import Branch, Leaf, Reading, Structure, StructureChanged, Vector

Function = Callable[[Any], Any]

READY: dict[str, Function] = {
    function.__name__: function
    for function in (
        constraints.correlations,
        constraints.increasing,
        constraints.orthonormal,
        constraints.positive,
        constraints.probabilities,
        constraints.semidefinite,
        constraints.survival,
    )
}
"""Functions that are known by their names."""

_WHOLE = ("increasing", "positive")  # valid integers remain valid when they are rounded
_CURVES = ("increasing", "probabilities", "survival")  # along an axis, which a frame does not tell


class Constraints(ABC):
    """What makes an answer valid. Made by `as_constraints`; it sees the answer with its noise alone."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What makes an answer valid, in words."""

    @abstractmethod
    def functions(self) -> list[Function]:
        """Return the functions that the user wrote."""

    @abstractmethod
    def apply(self, value: Any, structure: Structure) -> Any:
        """Return a valid answer of the same structure, or raise if it cannot be made valid."""

    def __repr__(self) -> str:
        return f"<made valid by {self.words}>"

    def check(self, structure: Structure, name: str) -> None:
        """Refuse what does not fit the answers of a function, by trying it on made-up numbers.

        Noise may move an answer to any numbers, so what fails on all of these is of no use.
        """
        failures: list[Exception] = []
        for numbers in (np.sqrt(np.arange(structure.size) + 2.0), np.ones(structure.size)):
            try:
                with np.errstate(all="ignore"):
                    self.apply(structure.rebuild(numbers), structure)
                return
            except Exception as error:  # of a user's function
                failures.append(error)
        cause = failures[0]
        told = str(cause) if isinstance(cause, SettingsError) else f"{type(cause).__name__}: {cause}"
        raise SettingsError(f"""constraints= does not fit the answers of {name}(). Tried on made-up numbers in
            the form of its answer: {told.rstrip(".")}. Nothing was spent. A constraint takes an answer with
            noise and returns a valid one of the same form.""") from cause


@dataclass(frozen=True, repr=False)
class _Entire(Constraints):
    """One function for an entire answer, or an entire part of one."""

    function: Function
    name: str  # "" for a function of the user's own

    @property
    def words(self) -> str:
        if self.name:
            return self.name
        inner = self.function.func if isinstance(self.function, functools.partial) else self.function
        name = str(getattr(inner, "__name__", type(inner).__name__))
        return name if name.isidentifier() else "a function"

    def functions(self) -> list[Function]:
        return [] if self.name else [self.function]

    def apply(self, value: Any, structure: Structure) -> Any:
        if any(isinstance(node, Model) for node in structure.nodes()):
            raise SettingsError(f"""{self.words} is for numbers, and there is a model, which is made valid by
                itself: see fitted(constrain=). Name the other parts, constraints={{"key": ...}}""")
        vector = structure.flatten(value)
        # A copy: the function may change what it gets.
        found = self._by_name(vector, structure) if self.name else self._by_user(vector.copy(), structure)
        if not np.isfinite(found).all():
            raise SettingsError(f"{self.words} returned numbers that are not finite")
        return structure.build(self._integers(found, structure))

    def _by_name(self, vector: Vector, structure: Structure) -> Vector:
        if self.name == "positive":  # number by number
            return np.asarray(self.function(vector))
        columns = len(structure.items) if isinstance(structure, Frame) else 1
        if columns > 1 and self.name in _CURVES:
            raise SettingsError(f"""{self.name!r} is for one column, and a frame has {columns} columns of
                numbers. Name them, constraints={{"column": {self.name!r}}}, or pass a
                function""")
        return _vector(self.function(_array(vector, structure)), structure)

    def _by_user(self, vector: Vector, structure: Structure) -> Vector:
        found = self.function(structure.build(vector))
        try:
            # Labels and keys may be left out: an array of the numbers is enough.
            if isinstance(found, np.ndarray | np.generic | float | int):
                array = np.asarray(found)
                if array.shape == _array(vector, structure).shape and array.dtype.kind in "iuf":
                    return _vector(array, structure)
            return structure.flatten(found)
        except StructureChanged:
            shape = f" of shape {found.shape}" if isinstance(found, np.ndarray) else ""
        raise SettingsError(f"""{self.words} returned a {type(found).__name__}{shape}, and must return what it
            is given: the same type, shape, keys and labels""")

    def _integers(self, vector: Vector, structure: Structure) -> Vector:
        """Return the numbers, of which those are integers that are integers in the answer."""
        integers = structure.integers()
        if not integers.any():
            return vector
        rounded = np.where(integers, np.rint(vector), vector)
        if self.name and self.name not in _WHOLE:
            raise SettingsError(f"""{self.name!r} makes fractions, and the answer has integers. Return floats
                from the function, astype(float) say""")
        if not self.name and (rounded != vector).any():
            raise SettingsError(f"""{self.words} returned fractions, and the answer has integers. Round them,
                np.rint(...) say""")
        return rounded


@dataclass(frozen=True, repr=False)
class _Parts(Constraints):
    """Constraints for the parts of an answer that are named; all other parts stay as they are."""

    parts: tuple[tuple[Hashable, Constraints], ...]

    @property
    def words(self) -> str:
        return ", ".join(f"{inside.words} of {key!r}" for key, inside in self.parts)

    def functions(self) -> list[Function]:
        return [function for _, inside in self.parts for function in inside.functions()]

    def apply(self, value: Any, structure: Structure) -> Any:
        names = _names(structure)
        if names is None or not isinstance(structure, Branch):
            raise SettingsError(f"""The keys {", ".join(repr(key) for key, _ in self.parts)} name parts, and
                what they are looked up in ({structure.tag}) has none. Pass one function, or the name of
                one""")
        unknown = [key for key, _ in self.parts if key not in names]
        if unknown:
            shown = f"{', '.join(map(repr, names[:10]))}{', ...' if len(names) > 10 else ''}"
            raise SettingsError(f"There is no part {unknown[0]!r}: the parts are {shown}")
        items = list(structure.parts(value, Reading.KNOWN))
        for key, inside in self.parts:
            at = names.index(key)
            items[at] = inside.apply(items[at], structure.items[at])
        return structure.assemble(items)


def as_constraints(value: Any) -> Constraints:
    """Return what makes answers valid: a function, the name of a ready one, or a dict of these by part.

    Examples
    --------
    >>> as_constraints({"se": "positive", "corr": "correlations"}).words
    "positive of 'se', correlations of 'corr'"
    """
    if isinstance(value, Constraints):
        return value
    if isinstance(value, dict):
        if not value:
            raise SettingsError("""constraints={} names no part of the answer. Leave it out, or name some:
                constraints={"se": "positive"}.""")
        return _Parts(tuple((key, as_constraints(each)) for key, each in value.items()))
    if isinstance(value, str):
        if value not in READY:
            needs = ", and between needs low and high" if value == "between" else ""
            raise SettingsError(f"""constraints={value!r} is not the name of a ready function. They are
                {", ".join(READY)}{needs}. Pass one of these, or a function of the answer:
                constraints=lambda answer: ... .""")
        return _Entire(READY[value], value)
    if not callable(value):
        raise SettingsError(f"""constraints= takes a function, the name of a ready one
            ({", ".join(READY)}), or a dict of these by key or column, and not a {type(value).__name__}.""")
    return _Entire(value, next((name for name, ready in READY.items() if ready is value), ""))


# --- parts and arrays of an answer ------------------------------------------------------------


def _names(node: Structure) -> Sequence[Any] | None:
    """Return the keys, fields, columns or positions of the parts of an answer, if it has parts."""
    if isinstance(node, Dict):
        return node.keys
    if isinstance(node, NamedTuple | Dataclass):
        return node.fields
    if isinstance(node, Frame) and node.form == "frame":
        columns = zip(frames.names(node.template), frames.kinds(node.template), strict=False)
        return [name for name, kind in columns if kind in ("int", "float")]
    return range(len(node.items)) if isinstance(node, List) else None


def _array(vector: Vector, node: Structure) -> NDArray[Any]:
    """Return numbers as one array: that of a frame has its columns, and that of a list one row for each."""
    if isinstance(node, Leaf):
        return vector.reshape(tuple(node.shape))
    items: list[Structure] = node.items  # type: ignore[attr-defined]
    ends = accumulate(item.size for item in items)
    rows = [_array(vector[end - item.size : end], item) for item, end in zip(items, ends, strict=True)]
    if isinstance(node, Frame) and node.form == "series":
        return rows[0]
    if len({row.shape for row in rows}) != 1:
        raise SettingsError("""The answer has parts of different shapes, which make no array. Name those that
            are to be made valid, constraints={"key": ...}""")
    return np.stack(rows, axis=_axis(node))


def _vector(array: Any, node: Structure) -> Vector:
    """Return the numbers of an array in the order of the structure: the reverse of `_array`."""
    if isinstance(node, Leaf) or (isinstance(node, Frame) and node.form == "series"):
        return np.asarray(array, dtype=np.float64).ravel()
    items: list[Structure] = node.items  # type: ignore[attr-defined]
    rows = np.moveaxis(np.asarray(array, dtype=np.float64), _axis(node), 0)
    return np.hstack([_vector(row, item) for row, item in zip(rows, items, strict=True)])


def _axis(node: Structure) -> int:
    return -1 if isinstance(node, Frame) else 0
