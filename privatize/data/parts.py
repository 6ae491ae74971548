"""Take datasets in any container apart into named parts and columns, and put edited columns back."""

import contextlib
import datetime as dt
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from privatize.data import frames
from privatize.data.clipping import is_missing, objects
from privatize.data.columns import Array, Column, kind_of, values_of
from privatize.data.persons import COUNTS, Persons
from privatize.data.support import coordinate, split


def parts_of(data: Any) -> list[tuple[Any, Any]] | None:
    """Return the parts that a dataset is made of, by name or by place; None for one array or list of values.

    Examples
    --------
    >>> parts_of([{"age": 31, "sex": "F"}, {"age": 62, "sex": "M"}])
    [('age', [31, 62]), ('sex', ['F', 'M'])]
    """
    if type(data) is Persons:
        return [(COUNTS, data.counts), *(parts_of(data.rows) or [])]
    if isinstance(data, dict):
        return list(data.items())
    if isinstance(data, tuple):
        return list(enumerate(data))
    if frames.kind(data) is not None:
        return list(zip(frames.names(data), frames.contents(data), strict=False))  # without an index
    if isinstance(data, list) and data and all(isinstance(record, dict) for record in data):
        return [(name, [record.get(name) for record in data]) for name in data[0]]
    return None


def as_array(data: Any) -> Array:
    """Return an array, a tensor, a sparse matrix or a list as an array; a ragged list as one of objects.

    Floats of 16 bits in tensors are widened: numpy does not have all of them.
    """
    if isinstance(data, list):
        try:
            return np.array(data)
        except ValueError:
            return objects(data)
    if hasattr(data, "detach"):
        made = data.detach().cpu()
        data = (made.float() if made.is_floating_point() and made.element_size() == 2 else made).numpy()
    found: Array = data.toarray() if hasattr(data, "tocsr") else data
    return found


def columns_of(data: Any) -> Iterator[Array]:
    """Yield everything in a dataset as flat arrays, one for each coordinate of a record."""
    if type(data) is Persons:
        yield from columns_of(data.rows)
        return
    if frames.kind(data) is not None:
        yield from frames.contents(data)
        return
    inner = parts_of(data)
    if inner is not None:
        for _, part in inner:
            yield from columns_of(part)
        return
    values = as_array(data)
    if values.dtype.names:
        yield from (values[name] for name in values.dtype.names)
    else:
        yield from values.reshape(len(values), -1).T


def comparable(values: Array) -> Array:
    """Return a column in which equal values compare equal, whatever their types were."""
    if values.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    if values.dtype.kind in "mM":
        return (values.astype("M8[us]") if values.dtype.kind == "M" else values).astype(np.int64)
    return _comparable_objects([None if is_missing(value) else value for value in values.tolist()])


def _comparable_objects(items: list[Any]) -> Array:
    kinds = tuple({type(value) for value in items if value is not None})
    if all(issubclass(kind, bool | int | float) for kind in kinds):
        with np.errstate(over="ignore"), contextlib.suppress(OverflowError):
            return np.array([np.nan if value is None else value for value in items], dtype=np.float32)
    if all(issubclass(kind, dt.date) for kind in kinds):
        bare = [value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value for value in items]
        return np.array(bare, dtype="M8[us]").astype(np.int64)
    return np.array(["" if value is None else str(value) for value in items])


# --- columns, read or edited, of a dataset in any container ---------------------------------------

Edit = Callable[[str, Column, Any], Column]


def edited(data: Any, edit: Edit, support: Any = None, label: str = "value", *, every: bool = False) -> Any:
    """Return a dataset with edited columns, in the same container.

    Parameters
    ----------
    data : dataset
        Records that P has drawn; or a dict of columns, as tables draw them before they make a frame.
    edit : callable
        Gets the label of a column (its name, "X" or "y" for aligned arrays, otherwise "value"), the column
        and its support, and returns another column, or the same one if nothing changes.
    support : object
        P's support.
    label : str
        What a column without a name is called.
    every : bool
        Whether `edit` also gets what P's changes leave alone: sparse matrices and tensors, as arrays,
        structured arrays, and columns of unusual dtypes.

    Values in lists are objects.

    Examples
    --------
    >>> edited({"age": np.array([30, 40])}, lambda label, column, support: Column(column.values + 1))
    {'age': array([31, 41])}
    """
    if type(data) is Persons:
        return replace(data, rows=edited(data.rows, edit, support, label, every=every))
    if isinstance(data, Column):
        return edit(label, data, support)
    if isinstance(data, dict):
        ends = zip(data, split(support, list(data)), strict=True)
        return {name: edited(data[name], edit, end, str(name), every=every) for name, end in ends}
    if isinstance(data, tuple):
        names = "Xy" if len(data) == 2 else [f"part {at}" for at in range(len(data))]
        parts = zip(data, split(support, range(len(data))), names, strict=True)
        return tuple(edited(part, edit, end, name, every=every) for part, end, name in parts)
    if frames.kind(data) is not None:
        return _edited_frame(data, edit, support, label, every)
    if isinstance(data, list):
        return _edited_list(data, edit, support, label)
    if not every and (type(data) is not np.ndarray or data.dtype.names is not None):
        return data
    return _edited_array(data, edit, support, label)


def leaves_of(data: Any, support: Any = None, *, every: bool = False) -> list[tuple[str, Column, Any]]:
    """Return label, values and support of every column of a dataset, as `edited` has them.

    Examples
    --------
    >>> leaves_of({"age": np.array([30, 40])}, {"age": (0, 120)})[0][::2]
    ('age', (0, 120))
    """
    found: list[tuple[str, Column, Any]] = []

    def note(name: str, column: Column, inside: Any) -> Column:
        found.append((name, column, inside))
        return column

    edited(data, note, support, every=every)
    return found


def numbers_of(label: str, column: Column, support: Any) -> Iterator[tuple[str, Array, Any]]:
    """Yield name, values and support of every number of a column's records: of each coordinate, if any.

    Examples
    --------
    >>> [name for name, _, _ in numbers_of("X", Column(np.zeros((3, 2))), None)]
    ['X[0]', 'X[1]']
    """
    values, shape = column.values, column.values.shape[1:]
    if not shape:
        yield label, values, support
        return
    for at, each in enumerate(values.reshape(len(values), math.prod(shape)).T):
        yield f"{label}[{at}]".removeprefix("value"), each, coordinate(support, shape, at)


def _edited_frame(data: Any, edit: Edit, support: Any, label: str, every: bool) -> Any:
    names = frames.names(data)
    ends = [support] if "series" in (frames.kind(data) or ()) else split(support, names)
    for at, (own, name, end) in enumerate(zip(frames.columns(data), names, ends, strict=True)):
        if kind_of(own) == "other" and not every:
            continue
        column = Column(*values_of(own))
        made = edit(label if name is None else str(name), column, end)
        if made is not column:
            data = frames.with_values(data, at, made.values, made.missing)
    return data


def _edited_list(data: list[Any], edit: Edit, support: Any, label: str) -> Any:
    named = parts_of(data)  # of a list of dicts
    if named is not None:
        parts = edited(dict(named), edit, support)
        return [dict(zip(parts, record, strict=True)) for record in zip(*parts.values(), strict=True)]
    # As objects: whether all of a few values are integers must not decide what happens to them.
    column = Column(objects([None if is_missing(value) else value for value in data]))
    made = edit(label, column, support)
    return data if made is column else made.array().tolist()


def _edited_array(data: Any, edit: Edit, support: Any, label: str) -> Any:
    column = Column(as_array(data))
    made = edit(label, column, support)
    if made is column:
        return data
    if hasattr(data, "new_tensor"):
        return data.new_tensor(made.array())
    return type(data)(made.array()) if hasattr(data, "tocsr") else made.array()
