"""Edit the columns of a dataset in any container: each is read, changed, and put back."""

from collections.abc import Callable
from typing import Any

import numpy as np

from privatize.data import frames
from privatize.data.clipping import is_missing, objects
from privatize.data.columns import Column, kind_of, values_of
from privatize.data.parts import parts_of
from privatize.data.support import split

Edit = Callable[[str, Column, Any], Column]


def edited(data: Any, edit: Edit, support: Any = None, label: str = "value") -> Any:
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

    Values in lists are objects. Sparse matrices, tensors and structured arrays are not edited.

    Examples
    --------
    >>> edited({"age": np.array([30, 40])}, lambda label, column, support: Column(column.values + 1))
    {'age': array([31, 41])}
    """
    if isinstance(data, Column):
        return edit(label, data, support)
    if isinstance(data, dict):
        ends = zip(data, split(support, list(data)), strict=True)
        return {name: edited(data[name], edit, end, str(name)) for name, end in ends}
    if isinstance(data, tuple):
        names = "Xy" if len(data) == 2 else [f"part {at}" for at in range(len(data))]
        inside = split(support, range(len(data)))
        return tuple(map(edited, data, [edit] * len(data), inside, names))
    if frames.kind(data) is not None:
        return _edited_frame(data, edit, support, label)
    if isinstance(data, list):
        return _edited_list(data, edit, support, label)
    if type(data) is not np.ndarray or data.dtype.names is not None:
        return data
    column = Column(data)
    made = edit(label, column, support)
    return data if made is column else made.array()


def leaves_of(data: Any, support: Any = None) -> list[tuple[str, Column, Any]]:
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

    edited(data, note, support)
    return found


def _edited_frame(data: Any, edit: Edit, support: Any, label: str) -> Any:
    names = frames.names(data)
    ends = [support] if "series" in (frames.kind(data) or ()) else split(support, names)
    for at, (own, name, end) in enumerate(zip(frames.columns(data), names, ends, strict=True)):
        if kind_of(own) == "other":
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
