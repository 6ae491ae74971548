"""Records of a public data set, drawn with replacement."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np

from privatize.data import frames, records
from privatize.data.clipping import Array, is_missing
from privatize.data.columns import Column
from privatize.data.parts import as_array, edited, leaves_of, parts_of
from privatize.data.support import Maybe, OneOf, unwrap
from privatize.errors import DataError, SamplerError
from privatize.samplers.base import Kind, Rng, kind, some
from privatize.samplers.distribution import Distribution, Projection
from privatize.samplers.parameters import as_code, number


def bootstrap(public: Any, smooth: float = 0.0) -> Distribution:
    """Draw records with replacement from a public data set.

    The public data set must not be the private data: P must be known without it. A call whose dataset is the
    public one, or has records or columns in common with it, in the same or another order, is refused.

    Parameters
    ----------
    public : dataset
        Any dataset that functions take: an array, a frame, a tuple (X, y), ...
    smooth : float
        Width of a normal kernel that is added to floating-point numbers, in standard deviations of each
        coordinate. Numbers outside the public data's range are moved to its edge. 0 draws the records as
        they are. Integers, strings and dates are not smoothed.

    Examples
    --------
    >>> P = bootstrap(np.array([31.0, 62.0, 45.0]))
    >>> P
    bootstrap(public)
    >>> P.draw(4, np.random.default_rng(1))
    array([62., 62., 45., 45.])
    >>> P.support
    (31.0, 62.0)
    """
    width = number(smooth)
    if not 0 <= width < np.inf:
        raise SamplerError(f"bootstrap(smooth={smooth!r}): the width is a number >= 0.")
    try:
        size = records.count(public)
    except DataError as error:
        raise SamplerError(f"bootstrap(): the public data cannot be drawn from. {error}") from None
    if size < 2:
        raise SamplerError(f"bootstrap(): the public data has {size} records. At least two are needed.")
    own = records.copy(public)
    made = Bootstrap(own, width, _digest(own), size, _data_support(own), public)
    some(made)  # raises if nothing can be drawn
    return made


@kind("bootstrap")
class Bootstrap(Distribution):
    """Records of a public data set."""

    public: Any = field(compare=False)
    smooth: float
    digest: str
    count: int
    own: Any = field(compare=False)
    origin: Any = field(compare=False)

    def draw(self, n: int, rng: Rng) -> Any:
        """Return a dataset of n records."""
        taken = records.take(self.public, rng.integers(self.count, size=n))
        return taken if not self.smooth else _smoothed(taken, self.public, self.own, self.smooth, rng)

    def _support(self) -> Any:
        return self.own

    def parameters(self) -> dict[str, Any]:
        """Return what determines its law."""
        return {"public": self.public, "smooth": self.smooth}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"origin": None}  # only needed in the process that has the private data

    def __repr__(self) -> str:
        return f"bootstrap(public{'' if not self.smooth else f', smooth={as_code(self.smooth)}'})"


def _digest(data: Any) -> str:
    """Return a hash of a public dataset, as 64 hexadecimal digits."""
    found = hashlib.sha256(repr(records.describe(data).to_json()).encode())
    _hash(found, data)
    return found.hexdigest()


def _hash(found: Any, data: Any) -> None:
    """Add everything in a dataset, with its type, to a hash."""
    array: Any = None if isinstance(data, list) else as_array(data)
    if isinstance(data, dict | list | tuple):
        found.update(f"{type(data).__name__} {len(data)}".encode())
        for part in data.items() if isinstance(data, dict) else data:
            _hash(found, part)
    elif frames.kind(data) is not None:
        for column in frames.columns(data):
            found.update(f"{getattr(column, 'dtype', None)!r}".encode())
        for values in frames.contents(data):
            _hash(found, values)
    elif not isinstance(array, np.ndarray):
        found.update(f"{type(data).__qualname__} {data!r};".encode())
    elif array.dtype.hasobject:
        _hash(found, array.tolist())
    else:
        found.update(f"{array.dtype.str} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())


def _data_support(data: Any) -> Any:
    """Return the bounds of public records, and their values where they are not numbers."""
    parts = parts_of(data)
    if parts is not None:
        found = {name: _data_support(part) for name, part in parts}
        if isinstance(data, tuple):
            return tuple(found.values())
        series = (frames.kind(data) or ("",))[0] == "series"
        return next(iter(found.values())) if series else found
    array = as_array(data)
    if array.ndim == 1:
        return _column_support(array)
    if array.dtype.kind not in "biuf" or np.isnan(array).all(axis=0).any():
        return None
    ends = np.nanmin(array, axis=0), np.nanmax(array, axis=0)
    if hasattr(data, "tocsr"):  # entries that are not stored are zeros
        ends = np.minimum(ends[0], 0), np.maximum(ends[1], 0)
    for end in ends:
        end.setflags(write=False)
    return Maybe(ends) if np.isnan(array).any() else ends


def _column_support(values: Array) -> Any:
    kind = values.dtype.kind
    if kind == "b":
        return OneOf((False, True), unknown=False)
    if kind in "iufmM":
        seen = values[values == values]  # NaN and NaT do not equal themselves
        if not len(seen):
            return None
        ends = (seen.min(), seen.max()) if kind in "mM" else (seen.min().item(), seen.max().item())
        return Maybe(ends) if len(seen) < len(values) else ends
    items = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    present = (value for value in items if not is_missing(value))
    counts = Counter(value for value in present if isinstance(value, str | int | float))
    if not counts or len(set(map(type, counts))) > 1:
        return None
    support = OneOf(tuple(sorted(counts)), unknown=counts.most_common(1)[0][0])
    return Maybe(support) if any(map(is_missing, items)) else support


def _smoothed(taken: Any, public: Any, support: Any, width: float, rng: Rng) -> Any:
    """Add a kernel to floating-point numbers, within the public data's range."""
    if {"scipy", "torch"} & records.describe(taken).libraries:
        raise SamplerError("bootstrap(smooth=...) is not for sparse matrices and tensors: smooth an array.")
    others = iter([_floats(column) for _, column, _ in leaves_of(public)])

    def moved(_: str, column: Column, inside: Any) -> Column:
        values, own, ends = _floats(column), next(others), unwrap(inside)[0]
        if values is None or own is None:
            return column
        made = values + width * np.nanstd(own, axis=0) * rng.standard_normal(values.shape)
        return Column((made if ends is None else np.clip(made, *ends)).astype(values.dtype), column.missing)

    return edited(taken, moved, support)


def _floats(column: Column) -> Array | None:
    """Return a column of floating-point numbers, or None for one of anything else."""
    values = column.array() if column.values.dtype.kind in "fO" else np.empty(0, bool)
    if values.dtype.kind == "O":  # of a list
        values = as_array([np.nan if value is None else value for value in values.tolist()])
    return values if values.dtype.kind == "f" else None


def bootstraps(sampler: Any, wanted: Any = None) -> Iterator[tuple[Bootstrap, Any]]:
    """Iterate over the bootstraps in a sampler, with the columns of each that are drawn, or None for all."""
    if isinstance(sampler, Bootstrap):
        yield sampler, wanted
    elif isinstance(sampler, Kind):
        for part in sampler.parts():
            yield from bootstraps(part, sampler.wanted if isinstance(sampler, Projection) else None)
