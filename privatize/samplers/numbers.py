"""Numbers: uniform, normal, integers."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privatize.errors import SamplerError
from privatize.samplers.base import Distribution, Frozen, Rng, box, is_ours, numbers, plain

__all__ = ["integers", "normal", "uniform"]


def uniform(
    low: ArrayLike = 0.0, high: ArrayLike = 1.0, size: int | tuple[int, ...] | None = None
) -> Distribution:
    """Draw records uniformly between two bounds.

    Parameters
    ----------
    low, high : float or array
        Bounds of a record, or of each of its coordinates.
    size : int or tuple of int, optional
        Shape of one record; by default that of `low` and `high`.

    Examples
    --------
    >>> uniform(0, 100)
    uniform(0, 100)
    >>> uniform(0, 1, size=3).draw(2, np.random.default_rng(1)).shape
    (2, 3)
    >>> uniform(0, 1, size=2) == uniform([0, 0], [1.0, 1.0])
    True
    """
    lows, highs = box("uniform", low, high, size)
    if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
        raise SamplerError(f"uniform({low!r}, {high!r}) has an infinite bound: uniform needs finite ones.")
    return _Uniform(Frozen(lows), Frozen(highs))


def integers(low: int, high: int, size: int | tuple[int, ...] | None = None) -> Distribution:
    """Draw whole numbers between two bounds, both included, each equally often.

    Parameters
    ----------
    low, high : int
        The least and the largest.
    size : int or tuple of int, optional
        Shape of one record; by default it is one number.

    Examples
    --------
    >>> integers(0, 120).draw(3, np.random.default_rng(1))
    array([57, 61, 91])
    """
    try:
        ends = operator.index(low), operator.index(high)
    except TypeError:
        raise SamplerError(f"integers({low!r}, {high!r}): the bounds must be whole numbers.") from None
    if not -(2**53) <= ends[0] < ends[1] <= 2**53:
        raise SamplerError(
            f"integers({low!r}, {high!r}): the lower bound must be below the upper one, within ±2^53."
        )
    try:
        shape = () if size is None else tuple(map(operator.index, size if np.iterable(size) else (size,)))
    except TypeError:
        shape = (0,)
    if any(length < 1 for length in shape):
        raise SamplerError(f"integers(size={size!r}): the shape of a record is one or more integers >= 1.")
    return _Integers(*ends, shape)


def normal(
    mean: ArrayLike = 0.0,
    std: ArrayLike | None = None,
    *,
    cov: ArrayLike | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
) -> Distribution:
    """Draw records from a normal distribution, restricted to a box if one is given.

    Parameters
    ----------
    mean : float or array
        Mean of a record; its shape is the record's.
    std : float or array, optional
        Standard deviation, the same for all coordinates or one for each. 1 by default.
    cov : array, optional
        Covariance matrix, in place of `std`.
    low, high : float or array, optional
        The records are drawn conditionally on lying between these, as in the paper's
        "Gaussian restricted to the domain".

    Examples
    --------
    >>> normal(40, 12, low=0, high=120)
    normal(40, 12, low=0, high=120)
    >>> normal([0, 0], cov=[[1, 0.5], [0.5, 1]]).draw(3, np.random.default_rng(1)).shape
    (3, 2)
    """
    center = numbers("mean", mean)
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    if cov is not None:
        if std is not None:
            raise SamplerError("normal() takes std or cov, not both.")
        matrix = numbers("cov", cov)
        if center.ndim != 1 or matrix.shape != (center.size, center.size):
            raise SamplerError(
                f"cov has shape {matrix.shape} and mean {center.shape}: a mean of d numbers needs "
                f"a d x d covariance matrix."
            )
        if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() < -1e-10 * abs(matrix).max():
            raise SamplerError(
                "cov is not a covariance matrix: it must be symmetric and positive semi-definite."
            )
        return _Correlated(Frozen(center), Frozen(matrix), _bounds(*ends, center.shape))
    spread = numbers("std", 1.0 if std is None else std)
    if not (spread > 0).all():
        raise SamplerError(f"std={std!r} is not a standard deviation: it must be positive.")
    try:
        shape = np.broadcast_shapes(center.shape, spread.shape)
    except ValueError:
        raise SamplerError(f"mean has shape {center.shape} and std {spread.shape}: they must fit.") from None
    edges = _bounds(*ends, shape)
    if not shape and edges is not None:  # one mean for all coordinates of the box
        shape = edges[0].shape
    return _Normal(Frozen(np.broadcast_to(center, shape)), Frozen(np.broadcast_to(spread, shape)), edges)


def _bounds(low: Any, high: Any, shape: tuple[int, ...]) -> tuple[Frozen, Frozen] | None:
    """Return the box of a normal, or None where it bounds nothing."""
    lows, highs = box("normal", low, high, shape or None)
    return None if np.isinf(lows).all() and np.isinf(highs).all() else (Frozen(lows), Frozen(highs))


@dataclass(frozen=True, repr=False)
class _Uniform(Distribution):
    tag: ClassVar[str] = "uniform"
    by_itself: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    low: Frozen
    high: Frozen

    def draw(self, n: int, rng: Rng) -> Any:
        low, high = self.low.array, self.high.array
        if not low.shape or np.ptp(low) == 0 == np.ptp(high):
            start, end = low.flat[0].item(), high.flat[0].item()
            if not math.isfinite(end - start):
                return rng.uniform(start, end, (n, *low.shape))  # which refuses what is too wide
            return _moved(rng.random((n, *low.shape)), start, end - start)
        return rng.uniform(low, high, (n, *low.shape))

    @property
    def seamless(self) -> bool:
        return is_ours(self)  # number by number

    @property
    def support(self) -> Any:
        return self.low.end, self.high.end

    def __repr__(self) -> str:
        low, high, shape = self.low.array, self.high.array, self.low.shape
        if shape and np.ptp(low) == 0 == np.ptp(high):
            size = shape[0] if len(shape) == 1 else shape
            return f"uniform({plain(low.flat[0].item())}, {plain(high.flat[0].item())}, size={size})"
        return f"uniform({self.low!r}, {self.high!r})"


@dataclass(frozen=True)
class _Integers(Distribution):
    tag: ClassVar[str] = "integers"
    by_itself: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    low: int
    high: int
    shape: tuple[int, ...] = ()

    def draw(self, n: int, rng: Rng) -> Any:
        return rng.integers(self.low, self.high, (n, *self.shape), endpoint=True)

    @property
    def seamless(self) -> bool:
        return is_ours(self)  # number by number

    @property
    def support(self) -> Any:
        return self.low, self.high

    def __repr__(self) -> str:
        size = self.shape[0] if len(self.shape) == 1 else self.shape
        return f"integers({self.low}, {self.high}{f', size={size}' if self.shape else ''})"


@dataclass(frozen=True, repr=False)
class _Normal(Distribution):
    tag: ClassVar[str] = "normal"
    by_itself: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    mean: Frozen
    std: Frozen
    box: tuple[Frozen, Frozen] | None

    def draw(self, n: int, rng: Rng) -> Any:
        mean, std = self.mean.array, self.std.array
        if self.box is None and not mean.shape:
            return _moved(rng.standard_normal(n), mean, std)
        if self.box is None:
            return rng.normal(mean, std, (n, *mean.shape))
        low, high = (end.array for end in self.box)
        x = truncated_normal((low - mean) / std, (high - mean) / std, rng.random((n, *mean.shape)))
        return np.clip(x * std + mean, low, high)  # rounding may have left the box

    @property
    def seamless(self) -> bool:
        return is_ours(self)  # number by number

    @property
    def support(self) -> Any:
        return None if self.box is None else (self.box[0].end, self.box[1].end)

    def __repr__(self) -> str:
        return f"normal({self.mean!r}, {self.std!r}{_show_box(self.box)})"


def _moved(x: Any, start: Any, width: Any) -> Any:
    """Return start + width x, made in place: what numpy's own uniform and normal do, and sooner."""
    if width != 1:
        x *= width
    if start != 0:
        x += start
    return x


def truncated_normal(low: Any, high: Any, u: Any) -> Any:
    """Invert the distribution function, in the tail that keeps the digits."""
    from scipy.special import ndtr, ndtri

    flip = np.asarray(low > 0)  # work in the lower tail, where ndtr has relative accuracy
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    below, above = ndtr(low), ndtr(high)
    if not (above > below).all():
        raise SamplerError(
            "normal(): the box has no mass that floating point can see: it lies too far from the mean."
        )
    x = np.clip(ndtri(below + u * (above - below)), low, high)
    return np.where(flip, -x, x)


@dataclass(frozen=True, repr=False)
class _Correlated(Distribution):
    tag: ClassVar[str] = "normal with covariance"
    by_itself: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    mean: Frozen
    cov: Frozen
    box: tuple[Frozen, Frozen] | None

    def draw(self, n: int, rng: Rng) -> Any:
        mean, cov = self.mean.array, self.cov.array
        # An eigendecomposition, since a semi-definite matrix has no Cholesky factor.
        values, vectors = np.linalg.eigh(cov)
        root = vectors * np.sqrt(np.clip(values, 0, None))
        if self.box is None:
            return rng.standard_normal((n, mean.size)) @ root.T + mean
        low, high = (end.array for end in self.box)
        kept: list[Any] = []
        found = drawn = 0
        size = max(2 * n, 64)
        while found < n or not kept:
            x = rng.standard_normal((size, mean.size)) @ root.T + mean
            x = x[((low <= x) & (x <= high)).all(axis=1)]
            kept.append(x)
            found, drawn = found + len(x), drawn + size
            if found < n and drawn > 2000 * size and found * 1000 < drawn:
                raise SamplerError(
                    "normal(cov=...): fewer than one draw in a thousand falls into the box "
                    "between low and high. Widen it, or move the mean."
                )
        return np.concatenate(kept)[:n]

    @property
    def support(self) -> Any:
        return None if self.box is None else (self.box[0].end, self.box[1].end)

    def __repr__(self) -> str:
        return f"normal({self.mean!r}, cov={self.cov!r}{_show_box(self.box)})"


def _show_box(edges: tuple[Frozen, Frozen] | None) -> str:
    if edges is None:
        return ""
    shown = ""
    for name, end in zip(("low", "high"), edges, strict=True):
        values = end.array
        if np.isinf(values).all():
            continue
        same = values.size and np.ptp(values) == 0
        shown += f", {name}={plain(values.flat[0].item()) if same else repr(end)}"
    return shown
