"""Datasets of n records in any container: count, take, replace one, describe, bring into P's support.

A dataset is a numpy array or a torch tensor (the first axis counts the records), a list, a data frame or a
series, a sparse matrix (by rows), or a tuple or dict of such containers that are aligned record by record, as
in ``(X, y)``.
"""

from __future__ import annotations

import copy as _copy
import datetime as dt
import decimal
import fractions
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privatize.data import frames
from privatize.data import support as domains
from privatize.data.matching import mismatch
from privatize.data.schema import (
    AlignedSchema,
    ArraySchema,
    FrameSchema,
    ListSchema,
    Schema,
    SparseSchema,
    TensorSchema,
    dtype_code,
)
from privatize.errors import DataError

__all__ = [
    "adopt",
    "alike",
    "bring_into",
    "concat",
    "copy",
    "count",
    "describe",
    "equal",
    "fits",
    "fresh",
    "head",
    "liken",
    "neighbour",
    "pair",
    "record",
    "take",
]

# Values that nobody can change in place: a list of these needs no deep copy.
_ATOMS = frozenset({int, float, complex, bool, str, bytes, type(None), np.float64, np.int64})


def _kind(data: Any) -> str:
    """Return what container a dataset is: "array", "list", "tuple", "dict", "frame", ..., or "" if none."""
    kind = type(data)
    if kind is np.ndarray:
        return "array"
    if kind is list:
        return "list"
    if kind is tuple:
        return "tuple"
    if kind is dict:
        return "dict"
    found = frames.kind(data)
    if found is not None:
        return found[0]
    module = kind.__module__
    if module.startswith("scipy.sparse") and hasattr(data, "tocsr"):
        return "sparse"
    if module == "torch" and kind.__name__ == "Tensor":
        return "tensor"
    return ""


def count(data: Any) -> int:
    """Return the number of records.

    Examples
    --------
    >>> count([3, 1, 2]), count(np.zeros((5, 2))), count((np.zeros((4, 2)), [0, 1, 1, 0]))
    (3, 5, 4)
    >>> count({"age": [31, 62], "sex": ["F", "M"]})
    2
    """
    kind = _check(data)
    if kind in ("tuple", "dict"):
        sizes = [count(part) for part in _parts(data)]
        if len(set(sizes)) > 1:
            raise DataError(
                f"The parts of the dataset have {sizes} records: aligned containers must have "
                f"one entry per record each."
            )
        return sizes[0]
    return int(data.shape[0]) if kind in ("sparse", "tensor") else len(data)


def _parts(data: Any) -> Any:
    return data.values() if isinstance(data, dict) else data


def _check(data: Any) -> str:
    kind = _kind(data)
    if kind in ("array", "tensor", "sparse"):
        if data.ndim == 0:
            raise DataError(
                "The dataset is a 0-dimensional array: it needs a first axis that counts records."
            )
        if kind == "sparse" and data.ndim != 2:
            raise DataError("The dataset is a sparse array that is not two-dimensional: records are rows.")
    elif kind == "tuple":
        if not data or not all(_kind(part) for part in data):
            raise DataError(
                "The dataset is a tuple, which stands for aligned containers such as (X, y), but "
                "not all of its parts are arrays or lists. Pass a list or an array of records."
            )
    elif kind == "dict":
        if not data or not all(_kind(part) not in ("", "dict") for part in data.values()):
            raise DataError(
                "The dataset is a dict, which stands for aligned columns such as {'age': array}, but not all "
                "of its values are arrays or lists. Pass a list of records."
            )
        if not all(type(name) is str for name in data):
            raise DataError(
                "The dataset is a dict whose keys are not all texts, as names of columns are. Pass a list of "
                "records, or name the columns."
            )
    elif not kind:
        raise DataError(
            f"The dataset is a {_name(type(data))}, which is not supported. Pass a numpy array, a list, a "
            f"data frame or series of pandas or polars, a pyarrow Table, a sparse matrix, a torch tensor, or "
            f"a tuple or dict of aligned ones{_hint(data)}."
        )
    return kind


def _hint(data: Any) -> str:
    if "GroupBy" in type(data).__name__:
        return " (pass the frame, and group inside the function)"
    if type(data).__module__.partition(".")[0] == "networkx":
        return " (for a graph pass its edges, np.array(graph.edges))"
    if type(data).__name__ == "LazyFrame":
        return " (collect() a lazy frame)"
    return " (to_numpy(), perhaps)" if hasattr(type(data), "to_numpy") else ""


def _name(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _each(data: Any, act: Any, *others: Any) -> Any:
    """Do something with every part of aligned containers."""
    if isinstance(data, dict):
        return {name: act(part, *(other[name] for other in others)) for name, part in data.items()}
    return tuple(map(act, data, *others))


def head(data: Any, n: int) -> Any:
    """Return the first n records, without copying arrays."""
    if type(data) is np.ndarray or type(data) is list:
        return data[:n]
    kind = _kind(data)
    if kind in ("tuple", "dict"):
        return _each(data, lambda part: head(part, n))
    if kind in ("frame", "series"):
        return frames.head(data, n)
    return take(data, np.arange(n)) if kind == "sparse" else data[:n]


def take(data: Any, positions: np.ndarray[Any, np.dtype[np.intp]]) -> Any:
    """Return the records at the positions, in that order.

    Examples
    --------
    >>> take([5, 6, 7], np.array([2, 0]))
    [7, 5]
    """
    kind = _kind(data)
    if kind in ("tuple", "dict"):
        return _each(data, lambda part: take(part, positions))
    if kind == "list":
        return [data[i] for i in positions]
    if kind in ("frame", "series"):
        return frames.take(data, positions)
    if kind == "sparse":
        return data.tocsr()[positions].asformat(data.format)
    return data[positions]


def concat(parts: Sequence[Any]) -> Any:
    """Join datasets of the same container, one after the other."""
    first = parts[0]
    kind = _kind(first)
    if kind == "tuple":
        return tuple(concat(column) for column in zip(*parts, strict=True))
    if kind == "dict":
        return {name: concat([part[name] for part in parts]) for name in first}
    if kind == "list":
        return [record for part in parts for record in part]
    if kind in ("frame", "series"):
        return frames.concat(parts)
    if kind == "sparse":
        from scipy.sparse import vstack

        return vstack(parts, format=first.format)
    if kind == "tensor":
        import torch

        return torch.cat(list(parts))
    return np.concatenate(parts)


def copy(data: Any) -> Any:
    """Return a copy that shares nothing that could be changed in place."""
    kind = _kind(data)
    if kind in ("tuple", "dict"):
        return _each(data, copy)
    if kind == "list":
        return data[:] if {type(r) for r in data} <= _ATOMS else _copy.deepcopy(data)
    if kind in ("frame", "series"):
        return frames.copy(data)
    if kind == "tensor":
        return data.clone()
    return _copy.deepcopy(data) if kind == "array" and data.dtype.hasobject else data.copy()


def neighbour(data: Any, position: int, n: int) -> Any:
    """Return the first n records with the one at `position` replaced by the one at n, as a copy.

    Examples
    --------
    >>> neighbour([5, 6, 7], 0, 2)
    [7, 6]
    """
    kind = _kind(data)
    if kind in ("tuple", "dict"):
        return _each(data, lambda part: neighbour(part, position, n))
    if kind in ("array", "list", "tensor"):
        other = copy(data[:n])
        other[position] = data[n]
        return other
    positions = np.arange(n)
    positions[position] = n
    return take(data, positions)


def pair(drawn: Any, position: int, n: int) -> tuple[Any, Any]:
    """Return the first n records, and their neighbour, laid out as `bring_into` lays private data out.

    Examples
    --------
    >>> pair([5, 6, 7], 0, 2)
    ([5, 6], [7, 6])
    """
    kind = _kind(drawn)
    if kind in ("tuple", "dict"):
        both = _each(drawn, lambda part: pair(part, position, n))
        return _each(both, lambda parts: parts[0]), _each(both, lambda parts: parts[1])
    if kind in ("frame", "series"):
        return frames.fresh(drawn, n), frames.fresh(drawn, n, position)
    if kind == "list":  # whose records the function may change
        return drawn[:n], neighbour(drawn, position, n)
    return fresh(head(drawn, n)), fresh(neighbour(drawn, position, n))


def fresh(data: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """Return the same records in a new container that shows nothing else of the given one.

    Code can read more than values: the order in memory, flags, the memory that an array is a part of, blocks,
    chunks, stored zeros, attributes. What a function sees of these must be the same in calibration and on the
    private data, so both are made here.

    Examples
    --------
    >>> fresh(np.zeros((2, 3), order="F")).flags.c_contiguous
    True
    """
    kind = _kind(data)
    if kind in ("tuple", "dict"):
        return _each(data, fresh)
    if kind in ("frame", "series"):
        return frames.fresh(data, len(data))
    if kind == "array":
        made = (np.zeros if data.dtype.names else np.empty)(data.shape, dtype or data.dtype)
        _fill(made, data)
        return made
    if kind == "tensor":
        import torch

        return data.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    if kind == "sparse":
        rows = data.tocsr()
        wide = max(rows.nnz, *rows.shape) > np.iinfo(np.int32).max
        places = (part.astype(np.int64 if wide else np.int32) for part in (rows.indices, rows.indptr))
        made = type(rows)((rows.data.copy(), *places), shape=rows.shape)
        made.sum_duplicates()
        made.eliminate_zeros()
        return made.copy().asformat(data.format)
    return data


def _fill(made: Any, values: Any) -> None:
    """Write values into an array, and nothing into the bytes between fields."""
    if made.dtype.names is None:
        made[...] = values
        return
    for name in made.dtype.names:
        _fill(made[name], values[name])


def record(data: Any, at: int) -> Any:
    """Return one record: of a frame or a sparse matrix a row of the same kind."""
    kind = _kind(data)
    if kind in ("tuple", "dict"):
        return _each(data, lambda part: record(part, at))
    return take(data, np.array([at])) if kind in ("frame", "sparse") else data[at]


def equal(one: Any, other: Any) -> bool:
    """Tell whether two datasets are the same, bit by bit (NaN equals NaN)."""
    if type(one) is not type(other):
        return domains.missing(one) and domains.missing(other)
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype.hasobject:
            return all(map(equal, one.ravel().tolist(), other.ravel().tolist()))
        if one.dtype.names:  # field by field, since the bytes between fields are no one's
            return all(equal(one[name], other[name]) for name in one.dtype.names)
        return bool(one.tobytes() == other.tobytes())
    if type(one) is dict:
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    kind = _kind(one)
    if kind in ("frame", "series"):
        return bool(frames.describe(one) == frames.describe(other)) and all(
            equal(a, b) for a, b in zip(frames.contents(one), frames.contents(other), strict=True)
        )
    if kind == "sparse":
        a, b = fresh(one).tocoo(), fresh(other).tocoo()
        return all(equal(getattr(a, x), getattr(b, x)) for x in ("data", "row", "col"))
    if kind == "tensor":
        return one.dtype == other.dtype and equal(one.detach().cpu().numpy(), other.detach().cpu().numpy())
    if domains.missing(one) or domains.missing(other):
        return domains.missing(one) and domains.missing(other)
    return bool(one == other) or bool(one != one and other != other)


def alike(one: Any, other: Any) -> bool:
    """Tell whether two drawn datasets are of the same kind; arrays of numbers may differ in dtype.

    Examples
    --------
    >>> alike(np.zeros(2), np.ones(3, dtype=int)), alike(np.zeros(2), np.zeros((2, 2)))
    (True, False)
    """
    kind = _kind(one)
    if kind != _kind(other):
        return False
    if kind == "tuple":
        return len(one) == len(other) and all(map(alike, one, other))
    if kind == "dict":
        return list(one) == list(other) and all(alike(one[name], other[name]) for name in one)
    if kind in ("frame", "series"):
        same = [frames.same(a, b) for a, b in zip(frames.columns(one), frames.columns(other), strict=False)]
        return bool(frames.describe(one) == frames.describe(other)) and all(same)
    if kind == "array":
        return one.shape[1:] == other.shape[1:] and (
            one.dtype.kind == other.dtype.kind or {one.dtype.kind, other.dtype.kind} <= set("biuf")
        )
    if kind == "list" and all(part and isinstance(part[0], dict) for part in (one, other)):
        return list(one[0]) == list(other[0])
    return bool(describe(one) == describe(other))


def just_like(data: Any, drawn: Any) -> bool:
    """Tell whether both are arrays of one dtype and shape but for n, so that nothing needs to be compared."""
    return (
        type(data) is type(drawn) is np.ndarray
        and data.dtype == drawn.dtype
        and data.shape[1:] == drawn.shape[1:]
        and data.dtype.kind in "biuf"
    )


def describe(data: Any) -> Schema:
    """Return the schema of a dataset: containers, names, dtypes, shapes, never n or values.

    What `Schema.public` leaves out of it may tell about values, so it is for comparing with what P draws.

    Examples
    --------
    >>> describe((np.zeros((4, 2)), [0, 1, 1, 0])).to_json()
    ['tuple', ['array', '<f8', [2]], ['list']]
    """
    kind = _check(data)
    if kind == "tuple":
        return AlignedSchema(tuple(map(describe, data)))
    if kind == "dict":
        return AlignedSchema(tuple(map(describe, data.values())), tuple(data))
    if kind == "list":
        return ListSchema()
    if kind in ("frame", "series"):
        return frames.describe(data)
    shape = tuple(data.shape[1:])
    if kind == "sparse":
        family = "array" if "array" in type(data).__name__ else "matrix"
        return SparseSchema(data.dtype.str, shape, f"{data.format}_{family}")
    if kind == "tensor":
        return TensorSchema(str(data.dtype).removeprefix("torch."), shape, str(data.device))
    return ArraySchema(dtype_code(data.dtype), shape)


def adopt(drawn: Any, schema: Schema | None) -> Any:
    """Bring drawn records into the container of the private data, where that is easy.

    A drawn array becomes a list, a series, a tensor, or a frame with the private data's column names, if that
    is what the private data is; a drawn series becomes an array or a list. What the library does to the
    private data in turn is `bring_into`. Everything else stays, and is found not to fit.
    """
    kind = _kind(drawn)
    if isinstance(schema, AlignedSchema):
        if kind == "tuple" and schema.names is None and len(drawn) == len(schema.parts):
            return tuple(map(adopt, drawn, schema.parts))
        if kind == "dict" and schema.names is not None:
            parts = dict(zip(schema.names, schema.parts, strict=True))
            return {name: adopt(part, parts.get(name)) for name, part in drawn.items()}
        return drawn
    if kind == "series" and (
        type(schema) in (ArraySchema, ListSchema)
        or (isinstance(schema, FrameSchema) and schema.form == "series" and schema.library != _of(drawn))
    ):
        (values,) = frames.contents(drawn)
        return adopt(values, schema)
    if kind != "array":
        return drawn
    if isinstance(schema, ListSchema):
        fine = drawn.dtype.kind in "biufUM" or (drawn.dtype.kind == "O" and drawn.ndim == 1)
        return drawn.tolist() if fine else drawn
    if isinstance(schema, FrameSchema):
        wide = drawn.shape[1:] == (() if schema.form == "series" else (len(schema.columns),))
        return frames.adopt(drawn, schema) if wide else drawn
    if isinstance(schema, TensorSchema) and drawn.dtype.kind in "biuf":
        import torch

        made = torch.from_numpy(np.ascontiguousarray(drawn))
        # Numbers drawn by numpy have no float type of torch's: the private data's is as good.
        floats = drawn.dtype.kind == "f" == schema.dtype[0]
        return made.to(getattr(torch, schema.dtype)) if floats else made
    return drawn


def _of(drawn: Any) -> str:
    return (frames.kind(drawn) or ("", ""))[1]


def liken(drawn: Any, schema: Schema, support: Any = None) -> Any:
    """Return drawn records in the container of the private data, or refuse. Names public facts only.

    Parameters
    ----------
    drawn : dataset
        Some records that P has drawn.
    schema : Schema
        The private data's schema.
    support : object
        P's support, if private records are brought into it.
    """
    made = adopt(drawn, schema)
    problem = mismatch(schema, describe(made), support)
    if problem is not None:
        raise DataError(problem)
    return made


def fits(drawn: Any, support: Any) -> str | None:
    """Say why records like these cannot be brought into a support; None if they can."""
    kind = _kind(drawn)
    if support is None:
        return None
    if kind == "tuple":
        if not isinstance(support, tuple) or domains.is_pair(support) or len(support) != len(drawn):
            return f"its support must be a tuple of {len(drawn)}, one for each part"
        found = [fits(*parts) for parts in zip(drawn, support, strict=True)]
        return next((problem for problem in found if problem), None)
    if kind in ("frame", "dict") or (kind == "list" and drawn and isinstance(drawn[0], dict)):
        return _fits_columns(kind, drawn, support)
    if isinstance(support, dict) or (isinstance(support, tuple) and not domains.is_pair(support)):
        return "its support is that of several columns, and it draws only one"
    if domains.is_fixed(support):
        return None if kind != "sparse" else "sparse matrices have no fixed values"
    if kind == "list":
        present = [one for one in drawn if not domains.missing(one)]
        if not all(isinstance(one, int | float) for one in present):
            return "only numbers in a list can be brought into bounds"
        return None
    if kind == "series":
        return _fits_kind(frames.kinds(drawn)[0], support)
    pair = support.inner if isinstance(support, domains.Maybe) else support
    if pair is None:
        return None
    letter = "f" if kind == "tensor" else drawn.dtype.kind
    if letter not in "biufmM":
        return "only numbers, dates, fixed texts and columns of these can be brought into a support"
    if (np.asarray(pair[0]).dtype.kind in "mM") != (letter in "mM"):
        return "its bounds are dates and it draws numbers, or the other way round"
    ends = [np.shape(end) for end in pair]
    shape = tuple(drawn.shape[1:])
    if not all(_broadcasts(end, shape) for end in ends):
        return (
            f"its support has bounds of shape {ends[0]}, and its records have shape {shape}: give one bound "
            f"for all, or one for each number of a record"
        )
    if kind == "sparse" and isinstance(support, domains.Maybe):
        return "a sparse matrix has no missing values"
    if kind == "sparse" and not (np.all(np.asarray(pair[0]) <= 0) and np.all(np.asarray(pair[1]) >= 0)):
        return "the support of a sparse matrix must contain 0"
    return None


def _fits_columns(kind: str, drawn: Any, support: Any) -> str | None:
    if not isinstance(support, dict):
        return "its support must be given by column: {'age': (0, 120), ...}"
    if kind == "dict":
        known = dict.fromkeys(drawn)
    elif kind == "list":
        known = dict.fromkeys(drawn[0])
    else:
        known = dict(zip(frames.names(drawn), frames.kinds(drawn), strict=True))
        known |= dict.fromkeys(frames.index_names(drawn))
    unknown = [name for name in support if name not in known]
    if unknown:
        return f"its support names {unknown!r}, which it does not draw"
    for name, inner in support.items():
        problem = fits(drawn[name], inner) if kind == "dict" else _fits_kind(known[name], inner)
        if problem is not None:
            return f"in the column {name!r}, {problem}"
    return None


def _fits_kind(what: str | None, support: Any) -> str | None:
    """Say why a column of a kind cannot be brought into a support; None if it can, or it is not known."""
    inner = support.inner if isinstance(support, domains.Maybe) else support
    if what is None or not domains.is_pair(inner):
        return None
    dated = np.asarray(inner[0]).dtype.kind in "mM"
    if what in ("int", "float", "bool") and not dated:
        return None
    if what in ("date", "duration") and dated:
        return None
    return f"bounds of {'dates' if dated else 'numbers'} do not fit what it draws"


def _broadcasts(end: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(end, shape) == shape
    except ValueError:
        return False


def bring_into(data: Any, drawn: Any, support: Any = None) -> Any:
    """Return a copy of private records as P would draw them: in its dtypes and, if given, inside its support.

    Each record is changed by itself, so neighbouring datasets stay neighbours. Numbers are clipped; missing
    values and values that P does not draw become one that it does (see `privatize.data.support`). Nothing but
    the values is left of the given container (see `fresh`).

    Parameters
    ----------
    data : dataset
        The private records, whose schema fits.
    drawn : dataset
        Some records that P has drawn, as it drew them.
    support : object
        P's support, or None to leave values as they are.

    Examples
    --------
    >>> bring_into(np.array([-1, 50, 200]), np.zeros(2), (0.0, 100.0))
    array([  0.,  50., 100.])
    >>> bring_into([-1, 50, 200], np.zeros(2), (0.0, 100.0))
    [0.0, 50.0, 100.0]
    """
    kind, own = _kind(drawn), _kind(data)
    if kind == own == "array":
        made = _bring_array(data, drawn.dtype, support)
        flags = made.flags
        done = made is not data and made.dtype is drawn.dtype and flags.owndata and flags.c_contiguous
        # Of texts the width may be another one.
        return made if done else fresh(made, made.dtype if made.dtype.kind in "USTO" else drawn.dtype)
    made = _bring(data, drawn, support)
    done = kind in ("tuple", "dict") or (kind == own and kind in ("frame", "series"))
    return made if done else fresh(made)


def _bring_array(data: Any, dtype: np.dtype[Any], support: Any) -> Any:
    if data.dtype == dtype and (support is None or dtype.kind not in "biufmMUSTO"):
        if dtype.kind != "f":
            return copy(data)
        support = domains.Maybe(None)
    return domains.bring(copy(data) if data.dtype.hasobject else data, dtype, support)


def _bring(data: Any, drawn: Any, support: Any) -> Any:
    kind, own = _kind(drawn), _kind(data)
    if kind == "tuple":
        ends = [None] * len(drawn) if support is None else support
        return tuple(bring_into(*parts) for parts in zip(data, drawn, ends, strict=True))
    if kind == "dict":
        ends = {} if support is None else support
        return {name: bring_into(part, drawn[name], ends.get(name)) for name, part in data.items()}
    if kind in ("frame", "series"):
        if own == kind and _of(data) == _of(drawn):
            return frames.bring(data, drawn, support)
        (values,) = frames.contents(drawn)
        return bring_into(data, values, support)
    if kind == "list":
        copied = copy(data)
        if support is None:
            return copied
        if isinstance(support, dict):
            return _bring_dicts(copied, drawn, support)
        return _bring_values(copied, next((one for one in drawn if not domains.missing(one)), None), support)
    if kind == "sparse":
        made = data.tocsr(copy=True)
        made.sum_duplicates()
        made = made.tocoo()
        if support is not None:
            support = tuple(np.broadcast_to(end, drawn.shape[1:])[made.col] for end in support)
        made.data = domains.bring_numbers(made.data, drawn.dtype, support)
        return made.asformat(data.format)
    if kind == "tensor":
        values = domains.bring(fresh(data).cpu().numpy(), _torch(drawn), support)
        return adopt(values, describe(drawn)).to(drawn.device)
    # An array was drawn; the private data is one, or something that drawn arrays are made into.
    if own == "list":
        if drawn.dtype.kind in "UO" and support is None:
            return copy(data)
        if domains.is_fixed(support) and drawn.ndim == 1:
            listed = domains.bring_texts(data, support)
            return (
                [drawn.dtype.type(math.nan if one is None else one).item() for one in listed]
                if (drawn.dtype.kind in "biuf")
                else listed
            )
        values, gone = _listed(data, drawn.dtype)
        if values.shape[1:] != drawn.shape[1:]:
            raise DataError(f"The records of the list are not of the shape {drawn.shape[1:]} that P draws.")
        return domains.bring(values, drawn.dtype, support, gone).tolist()
    if own in ("frame", "series"):
        return adopt(frames.plain(data, drawn.dtype, support), describe(data))
    if own == "tensor":
        values = domains.bring(fresh(data).cpu().numpy(), drawn.dtype, support)
        return adopt(values, describe(data))
    return bring_into(data, drawn, support)


def _torch(tensor: Any) -> np.dtype[Any]:
    found: np.dtype[Any] = tensor.cpu().numpy().dtype
    return found


def _bring_dicts(data: list[Any], drawn: list[Any], support: dict[str, Any]) -> list[Any]:
    """Return records that are dicts with P's keys: what one lacks is missing, what P lacks is left out."""
    if not all(isinstance(one, dict) for one in data):
        raise DataError("The records of the list are not all dicts, as those that P draws are.")
    made = {}
    for name in drawn[0]:
        # What P draws there, where it is not missing.
        example = next((one[name] for one in drawn if not domains.missing(one[name])), None)
        values = [one.get(name) for one in data]
        made[name] = _bring_values(values, example, support.get(name))
    return [dict(zip(made, one, strict=True)) for one in zip(*made.values(), strict=True)]


def _bring_values(values: list[Any], example: Any, support: Any) -> list[Any]:
    """Return a list of values, or one column of a list of dicts, inside its support."""
    kept = isinstance(support, domains.Maybe)
    inner = support.inner if kept else support
    if isinstance(inner, domains.OneOf):
        return domains.bring_texts(values, support)
    if inner is None:
        return values
    gone = [domains.missing(value) for value in values]
    if example is None:  # all that was drawn is missing: the bounds tell
        example = inner[0].item() if isinstance(inner[0], np.generic) else inner[0]
    if isinstance(example, dt.date):
        fine = _bring_dates(values, gone, example, inner)
    else:
        whole = isinstance(example, int) and not isinstance(example, bool)
        numbers, lost = _listed(values, np.dtype(np.int64 if whole else np.float64))
        if numbers.ndim != 1:
            raise DataError(_ODD)
        fine = domains.bring_numbers(numbers, numbers.dtype, inner, lost).tolist()
    return [None if kept and lost else value for value, lost in zip(fine, gone, strict=True)]


def _bring_dates(values: list[Any], gone: list[bool], example: Any, support: Any) -> list[Any]:
    """Return dates or times like the example, in its time zone, inside their support."""
    zone = getattr(example, "tzinfo", None)
    plain = [None if lost else _moment(value, zone) for value, lost in zip(values, gone, strict=True)]
    found = domains.bring_moments(np.array(plain, dtype="M8[us]"), np.dtype("M8[us]"), support).tolist()
    if zone is not None:
        return [moment.replace(tzinfo=dt.UTC).astimezone(zone) for moment in found]
    return found if isinstance(example, dt.datetime) else [moment.date() for moment in found]


def _moment(value: Any, zone: Any) -> Any:
    """Return a date or a time without its time zone, in UTC, or refuse its type."""
    if isinstance(value, np.datetime64):
        return value.astype("M8[us]")
    if not isinstance(value, dt.date):
        raise DataError(_ODD)
    aware = getattr(value, "tzinfo", None) is not None
    if zone is not None and not aware:
        raise DataError(_ODD)
    if not aware:
        return np.datetime64(value, "us")
    aware_one: Any = value
    return np.datetime64(aware_one.astimezone(dt.UTC).replace(tzinfo=None), "us")


def _listed(data: list[Any], dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return a list as an array that P's dtype can be made from, and which values are missing.

    Value by value: what becomes of one does not depend on what the others are.
    """
    if dtype.kind in "UO":
        made = np.empty(len(data), dtype=object)
        made[:] = data
        return made, None
    if dtype.kind == "f" and {type(value) for value in data} == {float}:
        return np.array(data), None
    try:
        values = np.array(data, dtype=object)
    except ValueError:  # ragged
        raise DataError(_ODD) from None
    flat = values.ravel().tolist()
    lost = [domains.missing(value) for value in flat]
    gone = np.array(lost, dtype=bool)
    found: Any
    if dtype.kind in "mM":
        found = np.array([None if g else _moment(v, None) for v, g in zip(flat, lost, strict=True)], "M8[us]")
    else:
        present = [0 if g else _number(value) for value, g in zip(flat, lost, strict=True)]
        if dtype.kind in "iu":
            ends = np.iinfo(dtype)
            whole = [v if isinstance(v, int) else 0 for v in present]
            found = np.array([min(max(v, int(ends.min)), int(ends.max)) for v in whole], dtype=dtype)
            floats = np.array([isinstance(v, float) for v in present], dtype=bool)
            numbers = np.array([v if isinstance(v, float) else 0.0 for v in present])
            found = np.where(floats, domains.cast(numbers, dtype), found)
        else:
            found = np.array([_float(value) for value in present], dtype=np.float64)
    return found.reshape(values.shape), gone.reshape(values.shape) if gone.any() else None


def _number(value: Any) -> Any:
    """Return a number as one of Python's, or refuse its type."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if isinstance(value, decimal.Decimal | fractions.Fraction):
        value = float(value)
    if not isinstance(value, int | float):
        raise DataError(_ODD)
    return int(value) if isinstance(value, bool) else value


_ODD = (
    "The records of the list are not all of the type that P draws: numbers, booleans, dates of the same time "
    "zone. Convert them, or have the sampler draw what they are."
)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
