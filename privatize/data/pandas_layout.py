"""Parts of pandas frames (rows, cells, labels, indexes) that share nothing with other frames."""

import contextlib
import copy
import functools
from typing import Any

import numpy as np
import pandas as pd

from privatize.data.clipping import objects
from privatize.data.columns import arrays
from privatize.data.container import IMMUTABLE


def labels_of(index: Any) -> list[Any]:
    """Return the labels of an index, level by level, as series."""
    return [pd.Series(index.get_level_values(at)) for at in range(index.nlevels)]


def joined(labels: list[Any], names: Any) -> Any:
    """Return labels, level by level, as an index."""
    if len(labels) > 1:
        return pd.MultiIndex.from_arrays(labels, names=names)
    return pd.Index(labels[0], name=names[0], copy=True)


def taken(array: Any, at: Any) -> Any:
    """Return rows of a column's array: numpy's may be a view, others share nothing that can be changed."""
    made = array[at] if type(at) is slice else array.take(at)
    if type(made) is np.ndarray:
        return own_cells(made) if made.dtype.kind == "O" else made
    if type(made.dtype).__name__ != "ArrowDtype" and getattr(made.dtype, "storage", None) != "pyarrow":
        return made.copy()
    inside = made.__arrow_array__()  # cannot be changed, but its chunks can be seen
    one_chunk = inside.num_chunks == 1 and not inside.chunk(0).offset
    return made if one_chunk else pd.array(made.tolist(), dtype=made.dtype)


def own_cells(cells: Any) -> Any:
    """Return an array of objects, with copies of them if any can be changed in place."""
    immutable = {type(cell) for cell in cells} <= IMMUTABLE
    return cells if immutable else objects([copy.deepcopy(cell) for cell in cells])


def with_own_cells(data: Any) -> Any:
    """Return a frame or a series, with copies of the objects in its cells if any can be changed in place."""
    for at, array in enumerate(arrays(data)):
        if array.dtype != object or (made := own_cells(array)) is array:
            continue
        if data.ndim == 1:
            data[:] = made
        else:
            data.isetitem(at, made)
    return data


def without_others(column: Any) -> Any:
    """Return a series without categories, and without memory, of rows that it was taken from."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        own = column.cat.remove_unused_categories()
        if own.cat.ordered:
            return own
        # The order of the others may be that in which they turned up.
        categories = sorted(own.cat.categories, key=lambda value: (type(value).__name__, repr(value)))
        return own.cat.set_categories(pd.Index(categories, dtype=own.cat.categories.dtype))
    if type(column.dtype).__name__ == "ArrowDtype" or getattr(column.dtype, "storage", None) == "pyarrow":
        return pd.Series(pd.array(column.tolist(), dtype=column.dtype), column.index, name=column.name)
    return column


def own_labels(labels: Any) -> Any:
    """Return column names for another frame: what is written into one frame's does not change the other's."""
    return labels.view() if is_read_only(labels.dtype) else labels.copy(deep=True)


@functools.cache
def is_read_only(dtype: Any) -> bool:
    """Tell whether an index of a dtype cannot be written into: from pandas 3.1 on, of some strings."""
    if not isinstance(dtype, pd.StringDtype):
        return False
    made = pd.Index(["a"], dtype=dtype)
    for own in (made.array, made.values, made.to_numpy(), np.asarray(made)):
        with contextlib.suppress(ValueError):
            own[0] = "b"
    return bool(made[0] == "a")


def heads(names: tuple[Any, ...]) -> Any:
    """Return the names of drawn columns as an index, if possible from a cache: making one is slow."""
    if not all(type(name) is str for name in names):
        return pd.Index(names, tupleize_cols=False)
    return own_labels(known_heads(names))


@functools.lru_cache(maxsize=256)
def known_heads(names: tuple[str, ...]) -> Any:
    """Return names of columns as an index that all frames with these names share."""
    made = pd.Index(names)
    made.get_indexer(made)  # makes its lookup table now, and not in one of several threads
    return made
