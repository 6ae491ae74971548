"""Many datasets in one call: stacks of them, and the rows of numbers that come out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.outputs import structure as outputs

__all__ = ["rows_of"]


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
        if found.dtype != np.float64:
            with np.errstate(over="ignore"):  # of long doubles
                found = found.astype(np.float64)
        columns.append(found.reshape(count, -1))
        return
    items: list[Any]
    if kind == "dict":
        keys = [outputs.unkey(key) for key in tree[2]]
        if not isinstance(value, dict) or len(value) != len(keys) or not all(key in value for key in keys):
            raise outputs.StructureChanged
        items = [value[key] for key in keys]
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
