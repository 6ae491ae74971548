"""Many datasets in one call: stacks of them, and the rows of numbers that come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import streams as coins
from privatize.errors import PairError, SettingsError

__all__ = ["Batch", "check_batch", "neighbours", "refuse_coins", "stack_of"]

Batch = bool | Callable[..., Any]
Stack = tuple[NDArray[Any], ...]
# Datasets, and what then makes their neighbours.
Neighbours = tuple[Stack, Callable[[], Stack]]


def check_batch(batch: Any, **others: Any) -> None:
    """Refuse what is no way to evaluate a stack of datasets, and settings that do not go with it."""
    if not isinstance(batch, bool) and not callable(batch):
        raise SettingsError(
            f"batch={batch!r} is not True, False, or a function of a stack of datasets, which is an array "
            f"with one more axis in front."
        )
    for name, given in others.items():
        if batch and given:
            raise SettingsError(
                f"batch= and {name}= do not go together: batch= evaluates many datasets in one call. "
                f"Leave one of them out."
            )


def refuse_coins(flips: coins.Coins) -> None:
    """Refuse a `batch=` that has used the global generators since the last toss."""
    if flips.used():
        raise PairError(
            "batch= evaluates many datasets in one call, and the function uses the global random "
            "generators, so each dataset would see other coins than by itself. Leave batch= out."
        )


def stack_of(datasets: Sequence[Any]) -> Stack:
    """Return datasets, arrays or tuples of aligned ones, with one more axis in front."""
    columns = list(zip(*(each if isinstance(each, tuple) else (each,) for each in datasets), strict=True))
    if any(type(part) is not np.ndarray or part.dtype.hasobject for parts in columns for part in parts):
        kind = type(datasets[0][0] if isinstance(datasets[0], tuple) else datasets[0])
        raise SettingsError(
            f"batch= stacks datasets, which must be numpy arrays of numbers, and here they are "
            f"{'arrays of objects' if kind is np.ndarray else kind.__name__}. Leave it out, or pass arrays."
        )
    for parts in columns:
        if len({(part.shape, part.dtype) for part in parts}) > 1:  # they would be made alike
            raise SettingsError(
                "batch= stacks datasets, and here they are arrays of different dtypes or shapes. Leave it "
                "out, or draw arrays that are alike."
            )
    return tuple(map(np.stack, columns))


def neighbours(stack: Stack, positions: NDArray[np.int64], n: int, spare: list[NDArray[Any]]) -> Neighbours:
    """Return all datasets of a stack of n+1 records, and what then makes their neighbours in its place.

    The first ones are copies, since the function may change what it gets. `spare` keeps the memory for
    them, which costs as much to get as drawing does.
    """
    at = np.arange(len(positions))

    def replaced() -> Stack:
        for part in stack:
            part[at, positions] = part[:, n]
        return tuple(part[:, :n] for part in stack)

    wanted = [((*part[:, :n].shape,), part.dtype) for part in stack]
    if [(each.shape, each.dtype) for each in spare] != wanted:
        spare[:] = [np.empty(shape, dtype) for shape, dtype in wanted]
    for copy, part in zip(spare, stack, strict=True):
        np.copyto(copy, part[:, :n])
    return tuple(spare), replaced
