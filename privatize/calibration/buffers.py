"""The memory of pairs: neighbours that are arrays reuse it, because getting and freeing it takes time."""

import contextlib
import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 2**22
"""Bytes of a dataset from which on there are two in memory at a time, and not three."""
# Before 2.4 numpy overlooks a reference if Python is 3.14 or newer (numpy's issue 30265).
_COUNTS = sys.version_info < (3, 14) or np.lib.NumpyVersion(np.__version__) >= "2.4.0"
_APART = 8  # pairs whose memory is reserved at once
_trim: Any = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
_Both = tuple[NDArray[Any], NDArray[Any]]


@dataclass(slots=True)
class Pair:
    """What both neighbours are made from.

    Attributes
    ----------
    records : dataset
        n + 1 records; None if they have been used up.
    position : int
        Which of the first n the last one replaces.
    """

    records: Any
    position: int


def is_buffered(drawn: Any) -> bool:
    """Tell whether neighbours are copies in a `Buffers`, so that the drawn records stay as they are."""
    return type(drawn) is np.ndarray and drawn.dtype.kind in "biufcmMUS"


def _first_of(pair: Pair, n: int) -> NDArray[Any]:
    """Return the first n records, in their own memory unless somebody else may use that; use them up."""
    drawn: NDArray[Any]
    drawn, pair.records = pair.records, None  # so that there is one reference
    if _COUNTS and drawn.flags.carray:  # contiguous, aligned and writeable
        # Refused if it is a part of another array or has more references, or if its memory is not numpy's.
        with contextlib.suppress(ValueError, RuntimeError):
            drawn.resize((n, *drawn.shape[1:]))
            return drawn
    return drawn[:n].copy()


def _marks(data: NDArray[Any]) -> tuple[int, int]:
    """Return what a function may recognize an array by: its id and its address."""
    return id(data), data.__array_interface__["data"][0]


def _give_back() -> None:
    """Return memory that is free to the system: the C library of Linux keeps blocks of up to 32 MB."""
    if _trim is not None:
        _trim(0)


class Buffers:
    """Two arrays, which hold both neighbours of one pair after the other.

    Large datasets have one, for the second neighbour: the first one has the memory of the drawn records.

    Examples
    --------
    >>> buffers = Buffers()
    >>> buffers.pair(np.array([0.1, 0.2, 0.3]), 1, 2)
    (array([0.1, 0.2]), array([0.1, 0.3]))
    >>> buffers.again(np.array([0.1, 0.2, 0.3]), 2)
    array([0.1, 0.2])
    >>> buffers.use_up(Pair(np.array([0.1, 0.2, 0.3]), 1), 2)
    (array([0.1, 0.2]), array([0.1, 0.3]))
    """

    def __init__(self) -> None:
        self._memory: list[NDArray[Any]] = []
        self._spare: list[list[NDArray[Any]]] = []
        self._seen: set[int] = set()  # the ids and addresses of all datasets so far

    def pair(self, drawn: NDArray[Any], position: int, n: int) -> _Both:
        """Return the first n records, and their neighbour; outputs are flattened before the next pair."""
        first = drawn[:n]
        other, one = self._fitting(first, 2)
        one[...] = first
        other[...] = first
        other[position] = drawn[n]
        return one, other

    def use_up(self, pair: Pair, n: int) -> _Both:
        """Return both neighbours as `pair` does, the first one in the memory of the records if possible."""
        first = pair.records[:n]
        if len(self._memory) == 2:  # `move` has chosen memory for both
            other, one = self._fitting(first, 2)
            last = pair.records[n:].copy()
            one[...] = first
            del first
            pair.records = None  # before the other one takes memory
            _give_back()
            other[...] = one
            other[pair.position] = last[0]
            return one, other
        [other] = self._fitting(first, 1)
        other[...] = first
        other[pair.position] = pair.records[n]
        del first
        one = _first_of(pair, n)
        self._seen.update(_marks(one))
        return one, other

    def _fitting(self, first: NDArray[Any], count: int) -> list[NDArray[Any]]:
        """Return memory for so many datasets like the first one: that of the last pair, or new."""
        memory, shape, dtype = self._memory, first.shape, first.dtype
        if len(memory) == count:
            for each in memory:  # a function may have changed its shape, or forbidden to write to it
                if each.shape != shape or each.dtype != dtype or not each.flags.carray:
                    break
            else:
                return memory
        memory = self._memory = [np.empty(shape, dtype) for _ in range(count)]
        self._note(memory)
        return memory

    def _note(self, memory: list[NDArray[Any]]) -> None:
        for each in memory:
            self._seen.update(_marks(each))

    def again(self, drawn: NDArray[Any], n: int) -> NDArray[Any]:
        """Return the first n records once more, in other memory than any dataset before."""
        self._memory = []  # freed first: four datasets may not fit where three do
        [again] = self._unseen(drawn[:n], 1)
        again[...] = drawn[:n]
        return again

    def drawn_again(self, draw: Callable[[], Pair], n: int) -> NDArray[Any]:
        """Do as `again` does for records that were used up: they are drawn once more."""
        self._memory = []  # likewise
        drawn = _first_of(draw(), n)
        [again] = self._unseen(drawn, 1)
        again[...] = drawn
        return again

    def move(self, ahead: int) -> None:
        """Put the next pair into memory that no dataset had before, nor one of the ``ahead - 1`` after it.

        It is reserved for all of them while the last pair's is in use. Systems provide memory only when
        something is written to it, so what is reserved takes none.
        """
        large = bool(self._memory) and self._memory[0].nbytes >= LARGE
        if large:  # else what is reserved could be blocks that were written to
            _give_back()
        if not self._spare and self._memory:
            self._spare = [self._unseen(self._memory[0], 2) for _ in range(min(ahead, _APART))]
        self._memory = self._spare.pop() if self._spare else []
        if large:
            _give_back()

    def _unseen(self, like: NDArray[Any], count: int) -> list[NDArray[Any]]:
        """Return memory for so many datasets like one, with ids and addresses that no function has seen."""
        found: list[NDArray[Any]] = []
        tried: list[NDArray[Any]] = []  # alive, so that the next one is another
        while len(found) < count:
            made = np.empty(like.shape, like.dtype)
            (tried if self._seen.intersection(_marks(made)) else found).append(made)
        self._note(found)
        return found
