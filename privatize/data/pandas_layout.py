"""How pandas lays frames out: blocks, cells, labels and indexes, and what of them is shared."""

import contextlib
import copy
import functools
from typing import Any

import numpy as np
import pandas as pd

from privatize.data.clipping import objects
from privatize.data.columns import Array, is_numpy_number
from privatize.data.container import IMMUTABLE


def numbered(rows: Any) -> Any:
    """Return rows that are numbered from 0 on."""
    index = rows.index
    if type(index).__name__ != "RangeIndex" or index.start != 0 or index.step != 1 or index.name is not None:
        rows.index = pd.RangeIndex(len(rows))
    return rows


def labels_of(index: Any) -> list[Any]:
    """Return the labels of an index, level by level, as series."""
    return [pd.Series(index.get_level_values(at)) for at in range(index.nlevels)]


def joined(labels: list[Any], names: Any) -> Any:
    """Return labels, level by level, as an index."""
    if len(labels) > 1:
        return pd.MultiIndex.from_arrays(labels, names=names)
    return pd.Index(labels[0], name=names[0])


def one_array(data: Any) -> Array | None:
    """Return the array that a frame is, where it is one of numbers, without copying; or else None."""
    blocks: Any = getattr(getattr(data, "_mgr", None), "blocks", ())
    if len(blocks) != 1 or data.ndim != 2 or not is_numpy_number(blocks[0].dtype):
        return None
    found: Array = data.to_numpy()
    return found


@functools.cache
def copies_on_write() -> bool:
    """Tell whether what is written into a part of a pandas object stays out of the whole one."""
    return int(pd.__version__.partition(".")[0]) >= 3


def with_own_cells(data: Any) -> Any:
    """Return a frame or a series whose cells are its own too, if they can be changed in place."""
    blocks = getattr(getattr(data, "_mgr", None), "blocks", None)  # columns of one dtype: quicker to look at
    if blocks is not None and not any(block.dtype == object for block in blocks):
        return data
    for at, column in enumerate([data] if data.ndim == 1 else [column for _, column in data.items()]):
        if column.dtype != object or {type(cell) for cell in column} <= IMMUTABLE:
            continue
        made = objects([copy.deepcopy(cell) for cell in column])
        if data.ndim == 1:
            data[:] = made
        else:
            data.isetitem(at, made)
    return data


def is_laid_out(rows: Any) -> bool:
    """Tell whether an object has one block for each of numpy's dtypes, in C order."""
    blocks = [block for block in getattr(rows._mgr, "blocks", ()) if isinstance(block.dtype, np.dtype)]
    flags = [np.asarray(block.values).flags for block in blocks]
    return len({block.dtype for block in blocks}) == len(blocks) and all(
        flag.c_contiguous and flag.writeable for flag in flags
    )


def is_arrow(dtype: Any) -> bool:
    """Tell whether columns of a dtype are arrow's."""
    return type(dtype).__name__ == "ArrowDtype" or getattr(dtype, "storage", None) == "pyarrow"


def own_labels(labels: Any) -> Any:
    """Return the names of columns for another frame: what is written into one stays there."""
    return labels.view() if is_read_only(labels.dtype) else labels.copy(deep=True)


@functools.cache
def is_read_only(dtype: Any) -> bool:
    """Tell whether pandas keeps everybody from writing into an index: from 3.1 on, of some strings."""
    if not isinstance(dtype, pd.StringDtype):
        return False
    made = pd.Index(["a"], dtype=dtype)
    for own in (made.array, made.values, made.to_numpy(), np.asarray(made)):
        with contextlib.suppress(ValueError):
            own[0] = "b"
    return bool(made[0] == "a")


def heads(names: tuple[Any, ...]) -> Any:
    """Return the names of drawn columns as an index: making one costs as much as all else in a frame."""
    if not all(type(name) is str for name in names):
        return pd.Index(names, tupleize_cols=False)
    return own_labels(known_heads(names))


@functools.lru_cache(maxsize=256)
def known_heads(names: tuple[str, ...]) -> Any:
    """Return names of columns as an index that all frames with these names share."""
    made = pd.Index(names)
    made.get_indexer(made)  # where each is, now and not in one of several threads
    return made
