"""What frames of pandas are made of: labels, and blocks of columns with one dtype."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from privatize.data.columns import Array


def own_labels(labels: Any) -> Any:
    """Return column names for another frame: what is written into one frame's does not change the other's."""
    return labels.view() if is_read_only(labels.dtype) else labels.copy(deep=True)


def names_for(data: Any) -> Any:
    """Return the names of the columns of a frame, or a series' own, for another one."""
    return [data.name] if data.ndim == 1 else own_labels(data.columns)


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


def is_laid_out(data: Any) -> bool:
    """Tell whether a frame has the layout of `rows`: one block, in C order, for each of numpy's dtypes.

    Its rows can then be taken block by block, and blocks that are taken have that layout again.
    """
    blocks = getattr(getattr(data, "_mgr", None), "blocks", None)
    if not blocks or type(data) is not pd.DataFrame or type(data.index) is not pd.RangeIndex or data.attrs:
        return False
    if data.index.name is not None or not data.flags.allows_duplicate_labels:
        return False
    plain = [block.dtype for block in blocks if not isinstance(block.dtype, pd.CategoricalDtype)]
    return (
        len(set(plain)) == len(plain)
        and all(isinstance(dtype, np.dtype) and dtype.kind in "biufmM" for dtype in plain)
        and all(own.flags.c_contiguous for own in inside_blocks(data))
    )


def inside_blocks(data: Any) -> list[Array]:
    """Return the arrays in the blocks of a frame of numbers, dates and categories (as codes)."""
    return [getattr(block.values, "_ndarray", block.values) for block in data._mgr.blocks]


def build_frame(parts: list[Any], head: Any, index: Any, *, numbers: bool) -> Any:
    """Return columns as a frame; `numbers` tells whether all are numpy's numbers.

    All ways copy them into one block for each of numpy's dtypes, in C order. The first ones are faster.
    """
    build = from_blocks() if numbers and index is not None else None
    if build is not None:
        return build(stacked(parts), index, head)
    build = getattr(pd.DataFrame, "_from_arrays", None)
    if build is not None:
        return build(parts, head, index, verify_integrity=index is None)
    rows = pd.RangeIndex(len(parts[0])) if index is None and parts else index
    series = (pd.Series(part, rows, None if index is None else part.dtype) for part in parts)
    made = pd.DataFrame(dict(enumerate(series)), rows)
    made.columns = head
    return made


@functools.cache
def from_blocks() -> Callable[..., Any] | None:
    """Return what makes a frame of blocks, their places, an index and names: pandas has it from 3.0 on."""
    try:
        from pandas.api.internals import create_dataframe_from_blocks
    except ImportError:
        return None
    found: Callable[..., Any] = create_dataframe_from_blocks
    return found


def stacked(parts: list[Array]) -> list[tuple[Array, Array]]:
    """Return columns as blocks, one for each dtype in the order in which they turn up, with their places.

    Examples
    --------
    >>> [(block.tolist(), at.tolist()) for block, at in stacked([np.zeros(2), np.arange(2), np.ones(2)])]
    [([[0.0, 0.0], [1.0, 1.0]], [0, 2]), ([[0, 1]], [1])]
    """
    places: dict[Any, list[int]] = {}
    for at, part in enumerate(parts):
        places.setdefault(part.dtype, []).append(at)
    return [(np.array([parts[at] for at in each]), np.array(each)) for each in places.values()]
