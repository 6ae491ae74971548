"""Records of a public data set, drawn with replacement."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames, records
from privatize.data.support import Maybe, OneOf, is_pair, missing
from privatize.errors import DataError, SamplerError
from privatize.samplers.base import Kind, Rng, kind, some
from privatize.samplers.distribution import Distribution, Projection, copied
from privatize.samplers.parameters import number, plain

__all__ = ["Bootstrap", "bootstrap", "bootstraps"]

Array = NDArray[Any]


def bootstrap(public: Any, smooth: float = 0.0) -> Distribution:
    """Draw records with replacement from a public data set.

    It is never the private data: P must be known without it. A call whose dataset is the public one, or
    has records or columns in common with it, in the same or another order, is refused.

    Parameters
    ----------
    public : dataset
        Any dataset that functions take: an array, a frame, a tuple (X, y), ...
    smooth : float
        Width of a normal kernel that is added to floating-point numbers, in standard deviations of each
        coordinate; what leaves the public data's range is moved back to its edge. 0 draws the records as
        they are. Integers, texts and dates are not smoothed.

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
    kept = records.copy(public)
    made = Bootstrap(kept, width, _digest(kept), size, _support(kept), public)
    some(made)  # or refused
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

    @property
    def support(self) -> Any:
        """What every record lies in."""
        return copied(self.own)

    def parameters(self) -> dict[str, Any]:
        """Return what determines its law."""
        return {"public": self.public, "smooth": self.smooth}

    def _identity(self) -> Any:
        return self.digest, self.smooth

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"origin": None}  # of use only where the private data is

    def __repr__(self) -> str:
        return f"bootstrap(public{'' if not self.smooth else f', smooth={plain(self.smooth)}'})"


def _digest(data: Any) -> str:
    """Return what a public dataset is, as 64 hexadecimal digits."""
    found = hashlib.sha256(repr(records.describe(data).to_json()).encode())
    _hash(found, data)
    return found.hexdigest()


def _hash(found: Any, data: Any) -> None:
    """Add everything in a dataset, with its type, to a hash."""
    if isinstance(data, dict | list | tuple) and not hasattr(data, "tocsr"):
        found.update(f"{type(data).__name__} {len(data)}".encode())
        for part in data.items() if isinstance(data, dict) else data:
            _hash(found, part)
    elif frames.kind(data) is not None:
        for column in frames.columns(data):
            found.update(f"{getattr(column, 'dtype', None)!r}".encode())
        for values in frames.contents(data):
            _hash(found, values)
    elif hasattr(data, "tocsr"):
        made = data.tocoo()
        for part in (made.data, *made.coords) if hasattr(made, "coords") else (made.data, made.row, made.col):
            _hash(found, part)
    elif hasattr(data, "detach"):
        _hash(found, data.detach().cpu().numpy())
    elif isinstance(data, np.ndarray) and not data.dtype.hasobject:
        found.update(f"{data.dtype.str} {data.shape}".encode() + np.ascontiguousarray(data).tobytes())
    elif isinstance(data, np.ndarray):
        _hash(found, data.tolist())
    else:
        found.update(f"{type(data).__qualname__} {data!r};".encode())


def _support(data: Any) -> Any:
    """Return the bounds of public records, and their values where they are not numbers."""
    if hasattr(data, "tocsr"):
        dense = data.toarray()
        return _fixed(np.minimum(dense.min(axis=0), 0), np.maximum(dense.max(axis=0), 0))
    if isinstance(data, tuple):
        return tuple(map(_support, data))
    if isinstance(data, dict):
        return {name: _support(part) for name, part in data.items()}
    form = frames.kind(data)
    if form is not None:
        found = [_column_support(values) for values in frames.contents(data)[: len(frames.columns(data))]]
        return dict(zip(frames.names(data), found, strict=True)) if form[0] == "frame" else found[0]
    if isinstance(data, list):
        if all(isinstance(record, dict) for record in data):
            return {name: _support([record.get(name) for record in data]) for name in data[0]}
        try:
            data = np.array(data)
        except ValueError:
            return None
    if hasattr(data, "detach"):
        data = data.detach().cpu().numpy()
    if data.ndim == 1:
        return _column_support(data)
    if data.dtype.kind not in "biuf" or np.isnan(data).all(axis=0).any():
        return None
    ends = _fixed(np.nanmin(data, axis=0), np.nanmax(data, axis=0))
    return Maybe(ends) if np.isnan(data).any() else ends


def _fixed(low: Array, high: Array) -> tuple[Array, Array]:
    for end in (low, high):
        end.setflags(write=False)
    return low, high


def _column_support(values: Array) -> Any:
    kind = values.dtype.kind
    if kind == "b":
        return OneOf((False, True), unknown=False)
    if kind in "iufmM":
        gone = np.isnan(values) if kind == "f" else np.isnat(values) if kind in "mM" else np.zeros(0, bool)
        if gone.all() and gone.size:
            return None
        seen = values[~gone] if gone.size else values
        ends = (seen.min(), seen.max()) if kind in "mM" else (seen.min().item(), seen.max().item())
        return Maybe(ends) if gone.any() else ends
    found = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    counts = Counter(value for value in found if not missing(value) and isinstance(value, str | int | float))
    if not counts or len({type(value) for value in counts}) > 1:
        return None
    support = OneOf(tuple(sorted(counts)), unknown=counts.most_common(1)[0][0])
    return Maybe(support) if any(map(missing, found)) else support


def _smoothed(taken: Any, public: Any, support: Any, width: float, rng: Rng) -> Any:
    """Add a kernel to floating-point numbers, within the public data's range."""
    if hasattr(taken, "tocsr") or hasattr(taken, "detach"):
        raise SamplerError("bootstrap(smooth=...) is not for sparse matrices and tensors: smooth an array.")
    if isinstance(taken, tuple):
        ends = support if isinstance(support, tuple) and not is_pair(support) else [None] * len(taken)
        parts = zip(taken, public, ends, strict=True)
        return tuple(_smoothed(part, own, end, width, rng) for part, own, end in parts)
    if isinstance(taken, dict):
        return {name: _smoothed(taken[name], public[name], support[name], width, rng) for name in taken}
    if frames.kind(taken) is not None:
        columns = zip(frames.contents(taken), frames.contents(public), strict=False)
        ends = list(support.values()) if isinstance(support, dict) else [support]
        for at, ((values, own), end) in enumerate(zip(columns, ends, strict=False)):
            if values.dtype.kind == "f" and frames.is_float(taken, at):
                taken = frames.replaced(taken, at, _kernel(values, own, end, width, rng))
        return taken
    if isinstance(taken, np.ndarray) and taken.dtype.kind == "f":
        return _kernel(taken, public, support, width, rng)
    if isinstance(taken, list) and isinstance(public[0], dict):
        done = [
            _smoothed([r[name] for r in taken], [r[name] for r in public], support[name], width, rng)
            for name in public[0]
        ]
        return [dict(zip(public[0], record, strict=True)) for record in zip(*done, strict=True)]
    if isinstance(taken, list):
        try:
            numbers, others = np.array(taken), np.array(public)
        except ValueError:  # ragged
            return taken
        if others.dtype.kind == numbers.dtype.kind == "f":
            return _kernel(numbers, others, support, width, rng).tolist()
    return taken


def _kernel(values: Array, own: Array, support: Any, width: float, rng: Rng) -> Any:
    moved = values + width * np.nanstd(own, axis=0) * rng.standard_normal(values.shape)
    ends = support.inner if isinstance(support, Maybe) else support
    return (moved if ends is None else np.clip(moved, *ends)).astype(values.dtype)


def bootstraps(sampler: Any, wanted: Any = None) -> Iterator[tuple[Bootstrap, Any]]:
    """Iterate over the bootstraps in a sampler, with the columns of each that are drawn, if not all."""
    if isinstance(sampler, Bootstrap):
        yield sampler, wanted
    elif isinstance(sampler, Kind):
        for part in sampler.parts():
            yield from bootstraps(part, sampler.wanted if isinstance(sampler, Projection) else None)
