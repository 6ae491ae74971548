"""The memory of neighbours that are arrays, the same for all pairs: getting and freeing it takes time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_APART = 8  # pairs whose memory is reserved at once
_Both = tuple[NDArray[Any], NDArray[Any]]


def is_buffered(drawn: Any) -> bool:
    """Tell whether neighbours are copies in a `Buffers`, so that the drawn records stay as they are."""
    return type(drawn) is np.ndarray and drawn.dtype.kind in "biufcmMUS"


class Buffers:
    """Two arrays, which hold both neighbours of one pair after the other.

    Examples
    --------
    >>> buffers = Buffers()
    >>> buffers.pair(np.array([0.1, 0.2, 0.3]), 1, 2)
    (array([0.1, 0.2]), array([0.1, 0.3]))
    >>> buffers.again(np.array([0.1, 0.2, 0.3]), 2)
    array([0.1, 0.2])
    """

    def __init__(self) -> None:
        self._both: _Both | None = None
        self._spare: list[_Both] = []

    def pair(self, drawn: NDArray[Any], position: int, n: int) -> _Both:
        """Return the first n records, and their neighbour; outputs are flattened before the next pair."""
        both, first = self._both, drawn[:n]
        if both is None or both[0].shape != first.shape or both[0].dtype is not drawn.dtype:
            both = self._both = (np.empty(first.shape, drawn.dtype), np.empty(first.shape, drawn.dtype))
        one, other = both
        one[...] = first
        other[...] = first
        other[position] = drawn[n]
        return one, other

    def again(self, drawn: NDArray[Any], n: int) -> NDArray[Any]:
        """Return the first n records once more, in other memory than the first neighbour."""
        # The other neighbour's memory is freed first: four datasets may not fit where three do.
        first, self._both = self._both and self._both[0], None
        again = drawn[:n].copy()
        del first
        return again

    def move(self, ahead: int) -> None:
        """Put the next pair into other memory than the last one, and than the ``ahead - 1`` after it.

        It is reserved for all of them while the last pair's is in use. Systems provide memory only when
        something is written to it, so what is reserved takes none.
        """
        if not self._spare and self._both is not None:
            one = self._both[0]
            self._spare = [(np.empty_like(one), np.empty_like(one)) for _ in range(min(ahead, _APART))]
        self._both = self._spare.pop() if self._spare else None
