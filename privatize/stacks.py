"""Many datasets in one call: stacks of them, and the rows of numbers that come out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize import outputs
from privatize.errors import SettingsError

__all__ = ["Batch", "check_batch", "neighbours", "rows_of", "stack_of"]

Batch = bool | Callable[..., Any]


def check_batch(batch: Any) -> None:
    """Refuse what is no way to evaluate a stack of datasets."""
    if not isinstance(batch, bool) and not callable(batch):
        raise SettingsError(
            f"batch={batch!r} is not True, False, or a function of a stack of datasets, which is an array "
            f"with one more axis in front."
        )


def stack_of(datasets: Sequence[Any]) -> tuple[NDArray[Any], ...]:
    """Return datasets, arrays or tuples of aligned ones, with one more axis in front."""
    first = datasets[0]
    parts = first if isinstance(first, tuple) else (first,)
    if not all(type(part) is np.ndarray and not part.dtype.hasobject for part in parts):
        raise SettingsError(
            f"batch= stacks datasets, which must be numpy arrays of numbers, and here they are "
            f"{type(first).__name__}. Leave it out, or pass arrays."
        )
    if not isinstance(first, tuple):
        return (np.stack(datasets),)
    return tuple(np.stack([each[i] for each in datasets]) for i in range(len(parts)))


def neighbours(
    stack: tuple[NDArray[Any], ...], positions: Sequence[int], n: int
) -> tuple[tuple[NDArray[Any], ...], Callable[[], tuple[NDArray[Any], ...]]]:
    """Return all datasets of a stack of n+1 records, and what then makes their neighbours in its place."""
    at = np.arange(len(positions))

    def replaced() -> tuple[NDArray[Any], ...]:
        for part in stack:
            part[at, positions] = part[:, n]
        return tuple(part[:, :n] for part in stack)

    # A copy: the function may change what it gets.
    return tuple(part[:, :n].copy() for part in stack), replaced


def rows_of(value: Any, tree: list[Any], count: int) -> NDArray[np.float64]:
    """Return the output for a stack as one row of numbers for each dataset.

    Examples
    --------
    >>> rows_of({"mean": np.zeros(3), "row": np.ones((3, 2))},
    ...         outputs.describe({"mean": 0.0, "row": np.ones(2)}), 3)
    array([[0., 1., 1.],
           [0., 1., 1.],
           [0., 1., 1.]])
    """
    columns: list[NDArray[np.float64]] = []
    _collect(value, tree, count, columns)
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)


def _collect(value: Any, tree: list[Any], count: int, columns: list[NDArray[np.float64]]) -> None:
    kind = tree[0]
    if kind in outputs.SCALARS or kind in ("array", "tensor"):
        shape = (count,) if kind in outputs.SCALARS else (count, *tree[2])
        # A copy, at once: the function may return one and the same object again.
        found = np.array(value.detach() if hasattr(value, "detach") else value)
        if found.shape != shape or found.dtype.kind not in "iuf":
            raise outputs.StructureChanged
        columns.append(found.astype(np.float64, copy=False).reshape(count, -1))
        return
    items: list[Any]
    if kind == "dict":
        keys = [outputs.unkey(key) for key in tree[2]]
        if not isinstance(value, dict) or list(value) != keys:
            raise outputs.StructureChanged
        items = list(value.values())
    elif kind in ("list", "tuple", "namedtuple"):
        if not isinstance(value, list | tuple):
            raise outputs.StructureChanged
        items = list(value)
    elif kind == "dataclass" and dataclasses.is_dataclass(value):
        items = [getattr(value, name) for name in tree[2]]
    else:  # frames and models have no stacks
        raise outputs.StructureChanged
    if len(items) != len(tree[-1]):
        raise outputs.StructureChanged
    for item, branch in zip(items, tree[-1], strict=True):
        _collect(item, branch, count, columns)
