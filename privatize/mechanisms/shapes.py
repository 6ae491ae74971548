"""Shape: how noise is divided among the numbers of an answer. It is fixed before anything is calibrated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privatize.mechanisms.base import Chosen, Vector

KINDS: tuple[Chosen, ...] = ("none", "total", "relative", "matrix")
MOST_NUMBERS = 128
"""A matrix has the square of so many numbers at most: it is stored with the estimate."""
BITS = 14
"""Bits of a matrix's entries behind the binary point."""
_LARGEST = 2**22  # entries are below this: products of 128 of them with 21 bits are exact in float64
_LEAST = -200  # no weight is below 2^-200 of the largest


@dataclass(frozen=True)
class Shape:
    """How noise is divided among the numbers of an answer; public, and made from a pilot's pairs alone.

    Attributes
    ----------
    kind : {"none", "total", "relative", "matrix"}
        How it was chosen. With ``"none"`` all numbers get the same noise.
    powers : tuple of int
        The weight of each number, as a power of two; none is above 0.
    lower : tuple of int
        For ``"matrix"`` the rows of a lower triangular matrix B, in units of 2^-14: the answer's numbers,
        divided by their weights, are multiplied by B, get the same noise each, and go back.

    Examples
    --------
    >>> Shape.of((1, 0, -3))
    Shape(kind='total', powers=(0, -3), lower=())
    >>> Shape.of(()).kind, Shape("total", (0, -3)).encoded
    ('none', (1, 0, -3))
    """

    kind: Chosen = "none"
    powers: tuple[int, ...] = ()
    lower: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a matrix that has no inverse or cannot be multiplied exactly: it may come from a store."""
        if not self.lower:
            return
        d, entries = len(self.powers), self.lower
        if len(entries) != d * (d + 1) // 2 or max(map(abs, entries)) >= _LARGEST:
            raise ValueError("It is not a triangular matrix of small integers.")
        if any(entries[at * (at + 3) // 2] <= 0 for at in range(d)):
            raise ValueError("Its diagonal is not positive.")

    @classmethod
    def of(cls, encoded: Sequence[int]) -> Self:
        """Return the shape that was encoded as a list of integers."""
        if not encoded:
            return cls()
        if not 0 < encoded[0] < len(KINDS):
            raise ValueError(f"{encoded[0]} is no kind of shape.")
        kind, numbers = KINDS[encoded[0]], tuple(map(int, encoded[1:]))
        size = (math.isqrt(9 + 8 * len(numbers)) - 3) // 2 if kind == "matrix" else len(numbers)
        return cls(kind, numbers[:size], numbers[size:])

    @classmethod
    def diagonal(cls, kind: Chosen, scales: Vector) -> Self:
        """Return weights in proportion to these scales, rounded to powers of two.

        Examples
        --------
        >>> Shape.diagonal("relative", np.array([64.0, 1.0]))
        Shape(kind='relative', powers=(0, -6), lower=())
        """
        return cls(kind, tuple(powers_of(scales).tolist()))

    @classmethod
    def matrix(cls, covariance: NDArray[np.float64]) -> Self:
        """Return the shape whose noise has a covariance in proportion to this one.

        Examples
        --------
        >>> shape = Shape.matrix(np.array([[4.0, 1.0], [1.0, 1.0]]))
        >>> shape.powers, np.round(shape.covariance / shape.covariance[0, 0] * 4, 3).tolist()
        ((0, -1), [[4.0, 1.0], [1.0, 1.0]])
        """
        powers, entries = factored(covariance)
        return cls("matrix", tuple(powers.tolist()), lower_of(entries))

    @property
    def encoded(self) -> tuple[int, ...]:
        """All of it as integers, which can be stored; none for "none"."""
        return () if self.kind == "none" else (KINDS.index(self.kind), *self.powers, *self.lower)

    @cached_property
    def exponents(self) -> NDArray[np.int64]:
        """The powers as an array."""
        return np.array(self.powers, dtype=np.int64)

    @cached_property
    def entries(self) -> NDArray[np.float64]:
        """B in units of 2^-14: integers, as floats. The identity if it is not a matrix."""
        size = len(self.powers)
        if not self.lower:
            return np.ldexp(np.eye(size), BITS)
        found = np.zeros((size, size))
        found[np.tril_indices(size)] = self.lower
        return found

    @cached_property
    def reciprocals(self) -> Vector:
        """One over each weight: to multiply by these powers of two is exact."""
        return np.asarray(np.ldexp(1.0, -self.exponents))

    @cached_property
    def forward(self) -> NDArray[np.float64]:
        """What a gap is multiplied by, in units of 2^-14: each number is divided by its weight, then B."""
        return np.asarray(self.entries * self.reciprocals)

    @property
    def bits(self) -> int:
        """How many bits of `entries` are behind the binary point."""
        return BITS

    @cached_property
    def back(self) -> NDArray[np.float64]:
        """The inverse of B."""
        if not self.lower:
            return np.eye(len(self.powers))
        found: NDArray[np.float64] = np.linalg.inv(np.ldexp(self.entries, -BITS))
        return np.tril(found)

    @cached_property
    def scales(self) -> Vector:
        """The standard deviation of each number's noise if that of each transformed number is 1."""
        if not self.lower:
            return np.ldexp(1.0, self.exponents)
        return np.asarray(np.ldexp(np.sqrt(np.square(self.back).sum(axis=1)), self.exponents))

    @cached_property
    def stretch(self) -> float:
        """How far the transformed gap moves at most if each number, over its weight, moves by 1."""
        d, inside = len(self.powers), np.ldexp(self.entries, -BITS)
        return float(np.linalg.norm(inside)) * math.sqrt(d) * (1 + 2.0**-30)

    @cached_property
    def looseness(self) -> float:
        """By how much, relative to itself, a transformed gap is off at most if it is computed in floats.

        By the error analysis of a product it is (d+3) 2^-53 |B| |B⁻¹|; this is four times that.
        """
        d, inside = len(self.powers), np.ldexp(self.entries, -BITS)
        return (d + 3) * float(np.linalg.norm(inside) * np.linalg.norm(self.back)) * 2.0**-51

    @property
    def covariance(self) -> NDArray[np.float64]:
        """The covariance of the noise if each transformed number has noise of variance 1."""
        rows = np.ldexp(self.back, self.exponents[:, None])
        return np.asarray(rows @ rows.T)

    def floor(self, given: float) -> float:
        """Return a bound on the size of a transformed gap whose own size is at most this.

        No weight is above 1, so it is divided by the smallest; a matrix stretches by its norm at most.
        """
        if not self.lower:
            return math.ldexp(given, -min(self.powers, default=0))
        columns = np.ldexp(self.entries, -BITS - self.exponents[None, :])
        return float(given * np.linalg.norm(columns) * (1 + 2.0**-30))


def powers_of(scales: Vector) -> NDArray[np.int64]:
    """Return scales, relative to the largest, as powers of two."""
    powers = np.log2(scales)
    return np.asarray(np.maximum(np.rint(powers - powers.max()).astype(np.int64), _LEAST))


def factored(covariance: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the powers and the entries of B of the shape whose noise has a covariance like this one."""
    sizes = np.sqrt(np.diag(covariance))
    if not (np.isfinite(covariance).all() and (sizes > 0).all()):
        raise ValueError("The covariance is not one of numbers that all move.")
    powers = powers_of(sizes)
    inside = covariance / np.outer(sizes, sizes)
    units = np.ldexp(sizes / sizes.max(), -powers)  # between .7 and 1.5
    factor = np.linalg.cholesky(inside * np.outer(units, units))
    entries = np.rint(np.ldexp(np.tril(np.linalg.inv(factor)), BITS))
    # Before they are integers, which would wrap around.
    if not (np.abs(entries).max() < _LARGEST and np.diag(entries).min() > 0):
        raise ValueError("The covariance is too close to a singular one.")
    return powers, entries


def lower_of(entries: NDArray[np.float64]) -> tuple[int, ...]:
    """Return the rows of a lower triangular matrix of integers, one after the other."""
    return tuple(entries[np.tril_indices(len(entries))].astype(np.int64).tolist())


NONE = Shape()
"""All numbers get the same noise."""
