"""Numpy arrays, SciPy's sparse matrices and torch's tensors: their first axis counts the records."""

# ruff: noqa: D102 - the base class says what a method does

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data.clipping import convert_numbers, convert_values
from privatize.data.container import Container, Positions, of_schema
from privatize.data.schema import ArraySchema, Schema, SparseSchema, TensorSchema
from privatize.data.support import Maybe, bounds
from privatize.errors import DataError


class Arrays(Container):
    """Numpy arrays."""

    def count(self, data: Any) -> int:
        if data.ndim == 0:
            raise DataError("""The dataset is a 0-dimensional array: it needs a first axis that counts
                records.""")
        return int(data.shape[0])

    def describe(self, data: Any) -> Schema:
        self.count(data)
        return ArraySchema(data.dtype, tuple(data.shape[1:]))

    def is_same_kind(self, data: Any, drawn: Any) -> bool:
        if type(data) is not np.ndarray or data.dtype != drawn.dtype or data.dtype.kind not in "biuf":
            return False
        return data.ndim > 0 and bool(data.shape[1:] == drawn.shape[1:])

    def concat(self, parts: Sequence[Any]) -> Any:
        return np.concatenate(parts)

    def copy(self, data: Any) -> Any:
        return copy.deepcopy(data) if data.dtype.hasobject else data.copy()

    def neighbour(self, data: Any, position: int, n: int) -> Any:
        other = self.copy(data[:n])
        other[position] = data[n]
        return other

    def pair(self, drawn: Any, position: int, n: int) -> tuple[Any, Any]:
        if type(drawn) is not np.ndarray or drawn.dtype.kind not in "biufcmMUS":
            return super().pair(drawn, position, n)
        one = drawn[:n].copy()  # the same, without further copies
        other = one.copy()
        other[position] = drawn[n]
        return one, other

    def fresh(self, data: Any) -> Any:
        return _laid_out(data, data.dtype)

    def isolated(self, data: Any) -> Any:
        return _laid_out(data, _narrow(data))

    def alike(self, one: Any, other: Any) -> bool:
        kinds = {one.dtype.kind, other.dtype.kind}
        return one.shape[1:] == other.shape[1:] and (len(kinds) == 1 or kinds <= set("biuf"))

    def cast(self, drawn: Any, schema: Schema) -> Any:
        return of_schema(schema).from_array(drawn, schema)

    def to_array(self, drawn: Any) -> Any:
        return drawn

    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        dtype = drawn.dtype
        if support is not None and dtype.kind not in "biufmMUSTO":
            raise ValueError("only numbers, dates and fixed values can have a support")
        if support is None and data.dtype == dtype:
            if dtype.kind != "f":
                return self.fresh(self.copy(data))
            support = Maybe(None)
        made = convert_values(self.copy(data) if data.dtype.hasobject else data, dtype, support)
        flags = made.flags
        if made is not data and made.dtype is dtype and flags.owndata and flags.c_contiguous:
            return made
        # Converted strings may be wider than the few that were drawn.
        return _laid_out(made, made.dtype if made.dtype.kind in "USTO" else dtype)


def _laid_out(data: Any, dtype: np.dtype[Any]) -> Any:
    """Return the same values in a new array, in C order."""
    made = (np.zeros if data.dtype.names else np.empty)(data.shape, dtype)
    _fill(made, data)
    return made


def _narrow(data: Any) -> np.dtype[Any]:
    """Return the dtype of an array, with strings as wide as the longest of its own."""
    dtype: np.dtype[Any] = data.dtype
    if dtype.names:
        parts = [(name, data[name]) for name in dtype.names]
        narrow = [(name, _narrow(part), part.shape[data.ndim :]) for name, part in parts]
        same = all(part.dtype == made for (_, part), (_, made, _) in zip(parts, narrow, strict=True))
        return dtype if same else np.dtype(narrow)
    if dtype.kind not in "US":
        return dtype
    return np.dtype(f"{dtype.byteorder}{dtype.kind}{np.char.str_len(data).max(initial=1)}")


def _fill(made: Any, values: Any) -> None:
    """Write values into an array, and nothing into the bytes between fields."""
    if made.dtype.names is None:
        made[...] = values
        return
    for name in made.dtype.names:
        _fill(made[name], values[name])


class Sparse(Arrays):
    """SciPy's sparse matrices, whose records are rows."""

    def count(self, data: Any) -> int:
        if data.ndim != 2:
            raise DataError("The dataset is a sparse array that is not two-dimensional: records are rows.")
        return int(data.shape[0])

    def describe(self, data: Any) -> Schema:
        self.count(data)
        family = "array" if "array" in type(data).__name__ else "matrix"
        return SparseSchema(data.dtype, tuple(data.shape[1:]), f"{data.format}_{family}")

    def head(self, data: Any, n: int) -> Any:
        return self.take(data, np.arange(n))

    def take(self, data: Any, positions: Positions) -> Any:
        return data.tocsr()[positions].asformat(data.format)

    def record(self, data: Any, at: int) -> Any:
        return self.take(data, np.array([at]))

    def concat(self, parts: Sequence[Any]) -> Any:
        from scipy.sparse import vstack

        return vstack(parts, format=parts[0].format)

    def copy(self, data: Any) -> Any:
        return data.copy()

    neighbour = Container.neighbour

    def fresh(self, data: Any) -> Any:
        rows = data.tocsr()
        wide = max(rows.nnz, *rows.shape) > np.iinfo(np.int32).max
        places = (part.astype(np.int64 if wide else np.int32) for part in (rows.indices, rows.indptr))
        made = type(rows)((rows.data.copy(), *places), shape=rows.shape)
        made.sum_duplicates()
        made.eliminate_zeros()
        return made.copy().asformat(data.format)

    def comparable(self, data: Any) -> Any:
        made = self.fresh(data).tocoo()
        return [made.data, made.row, made.col, made.shape]

    alike, cast, isolated = Container.alike, Container.cast, Container.isolated

    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        made = data.tocsr(copy=True)
        made.sum_duplicates()
        made = made.tocoo()
        if support is not None:
            ends = bounds(support, dated=False)
            if not (np.all(np.asarray(ends[0]) <= 0) and np.all(np.asarray(ends[1]) >= 0)):
                raise ValueError("the support of a sparse matrix must contain 0")
            support = tuple(np.broadcast_to(end, drawn.shape[1:])[made.col] for end in ends)
        made.data = convert_numbers(made.data, drawn.dtype, support)
        return self.fresh(made.asformat(data.format))


class Tensors(Arrays):
    """Torch's tensors."""

    def describe(self, data: Any) -> Schema:
        self.count(data)
        dtype = str(data.dtype).removeprefix("torch.")
        return TensorSchema(dtype, tuple(data.shape[1:]), str(data.device))

    def concat(self, parts: Sequence[Any]) -> Any:
        import torch

        return torch.cat(list(parts))

    def copy(self, data: Any) -> Any:
        return data.clone()

    def fresh(self, data: Any) -> Any:
        import torch

        return data.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)

    def comparable(self, data: Any) -> Any:
        return data.detach().cpu().numpy()

    alike, cast, isolated = Container.alike, Container.cast, Container.isolated

    def from_array(self, values: NDArray[Any], schema: Any) -> Any:
        if values.dtype.kind not in "biuf":
            return values
        import torch

        made = torch.from_numpy(np.ascontiguousarray(values))
        # A numpy sampler does not choose among torch's float dtypes, so the private data's is used.
        floats = values.dtype.kind == "f" == schema.dtype[0]
        return made.to(getattr(torch, schema.dtype)) if floats else made

    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        made = self.convert_by_array(data, drawn.cpu().numpy(), support, self.describe(drawn))
        return made.to(drawn.device)

    def convert_by_array(self, data: Any, drawn: NDArray[Any], support: Any, schema: Any = None) -> Any:
        values = convert_values(self.fresh(data).cpu().numpy(), drawn.dtype, support)
        return self.fresh(self.from_array(values, schema or self.describe(data)))
