"""Datasets of n records in any container, as other packages see them: count, take, compare, convert.

A dataset is a numpy array or a torch tensor (the first axis counts the records), a list, a data frame or a
series, a sparse matrix (by rows), or a tuple or dict of such containers that are aligned record by record, as
in ``(X, y)``. The functions call the adapter of the dataset's container.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from privatize.data import frames  # noqa: F401 - the import registers frames
from privatize.data.aligned import Dicts, Tuples
from privatize.data.arrays import Arrays, Sparse, Tensors
from privatize.data.container import Positions, find, of, register
from privatize.data.container import convert as convert
from privatize.data.container import equal as equal
from privatize.data.lists import Lists
from privatize.data.matching import mismatch
from privatize.data.persons import as_passed as as_passed
from privatize.data.schema import Schema
from privatize.errors import DataError

_FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
_SPARSE = [f"{form}_{kind}" for form in _FORMATS for kind in ("array", "matrix")]
register("builtins", {"list": Lists(), "tuple": Tuples(), "dict": Dicts()}.get)
register("numpy", {"ndarray": Arrays()}.get)
register("scipy", dict.fromkeys(_SPARSE, Sparse()).get)
register("torch", {"Tensor": Tensors()}.get)


def count(data: Any) -> int:
    """Return the number of records.

    Examples
    --------
    >>> count([3, 1, 2]), count(np.zeros((5, 2))), count((np.zeros((4, 2)), [0, 1, 1, 0]))
    (3, 5, 4)
    >>> count({"age": [31, 62], "sex": ["F", "M"]})
    2
    """
    return of(data).count(data)


def describe(data: Any) -> Schema:
    """Return the schema of a dataset: containers, names, dtypes, shapes, never n or values.

    It may reveal something about values, which its public JSON leaves out, so it is only compared with P's.

    Examples
    --------
    >>> describe((np.zeros((4, 2)), [0, 1, 1, 0])).to_json()
    ['tuple', ['array', '<f8', [2]], ['list']]
    """
    return of(data).describe(data)


def head(data: Any, n: int) -> Any:
    """Return the first n records, without copying arrays."""
    return of(data).head(data, n)


def take(data: Any, positions: Positions) -> Any:
    """Return the records at the positions, in that order.

    Examples
    --------
    >>> take([5, 6, 7], np.array([2, 0]))
    [7, 5]
    """
    return of(data).take(data, positions)


def record(data: Any, at: int) -> Any:
    """Return one record; of a frame or a sparse matrix, one with a single row."""
    return of(data).record(data, at)


def concat(parts: Sequence[Any]) -> Any:
    """Join datasets of the same container, one after the other."""
    return of(parts[0]).concat(parts)


def copy(data: Any) -> Any:
    """Return a copy that shares nothing that could be changed in place."""
    return of(data).copy(data)


def neighbour(data: Any, position: int, n: int) -> Any:
    """Return the first n records with the one at `position` replaced by the one at n, as a copy.

    Examples
    --------
    >>> neighbour([5, 6, 7], 0, 2)
    [7, 6]
    """
    return of(data).neighbour(data, position, n)


def pair(drawn: Any, position: int, n: int) -> tuple[Any, Any]:
    """Return the first n records, and their neighbour, laid out as `convert` lays private data out.

    Examples
    --------
    >>> pair([5, 6, 7], 0, 2)
    ([5, 6], [7, 6])
    """
    return of(drawn).pair(drawn, position, n)


def fresh(data: Any) -> Any:
    """Return the same records in a new container that shows nothing else of the given one.

    Code can read more than values: the order in memory, flags, the memory that an array is a part of, blocks,
    chunks, stored zeros, attributes. What a function sees of these must be the same in calibration and on the
    private data, so both are made here.

    Examples
    --------
    >>> fresh(np.zeros((2, 3), order="F")).flags.c_contiguous
    True
    """
    return of(data).fresh(data)


def isolated(data: Any) -> Any:
    """Return the same records in a new container that shows nothing of the records that they were taken from.

    Besides what `fresh` leaves out, these are the width of strings and the categories, which may be those of
    other records. Names and dtypes stay.

    Examples
    --------
    >>> isolated(np.array(["a", "a long name"])[:1]).dtype.str[1:]
    'U1'
    """
    return of(data).isolated(data)


def alike(one: Any, other: Any) -> bool:
    """Tell whether two drawn datasets are of the same kind; arrays of numbers may differ in dtype.

    Examples
    --------
    >>> alike(np.zeros(2), np.ones(3, dtype=int)), alike(np.zeros(2), np.zeros((2, 2)))
    (True, False)
    """
    return find(one) is find(other) and of(one).alike(one, other)


def cast(drawn: Any, schema: Schema | None) -> Any:
    """Return drawn records in the container of the private data, where that is easy.

    A drawn array becomes a list, a series, a tensor, or a frame with the private data's column names, if that
    is what the private data is; a drawn series becomes an array or a list. Everything else is returned
    unchanged, and `match` refuses it. What happens to the private data is in `convert`.
    """
    return drawn if schema is None else of(drawn).cast(drawn, schema)


def match(drawn: Any, schema: Schema, support: Any = None) -> Any:
    """Return drawn records in the container of the private data, or refuse; errors name public facts only.

    Parameters
    ----------
    drawn : dataset
        Some records that P has drawn.
    schema : Schema
        The private data's schema.
    support : object
        P's support, if private records are converted into it.
    """
    made = cast(drawn, schema)
    problem = mismatch(schema, describe(made), support)
    if problem is not None:
        raise DataError(problem)
    return made


def misfit(drawn: Any, support: Any) -> str | None:
    """Say why records like these cannot be converted into a support; None if they can."""
    try:
        with np.errstate(all="ignore"):
            convert(drawn, drawn, support)
    except (ValueError, TypeError, DataError) as error:
        return str(error).rstrip(".")
    return None


def is_same_kind(data: Any, drawn: Any) -> bool:
    """Tell quickly whether both surely have equal schemas; if not, the schemas have to be compared.

    Examples
    --------
    >>> is_same_kind(np.ones(3), np.zeros(2)), is_same_kind(np.ones((3, 1)), np.zeros(2))
    (True, False)
    """
    return type(data) is type(drawn) and of(data).is_same_kind(data, drawn)
