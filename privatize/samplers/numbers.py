"""Distributions of numbers: uniform, normal, integers."""

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privatize.errors import SamplerError
from privatize.samplers.base import Rng, kind
from privatize.samplers.distribution import Distribution
from privatize.samplers.parameters import Box, Frozen, accepted, bounds, box, numbers, shape_of, show


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
    """Draw integers between two bounds, both included, each equally often.

    Parameters
    ----------
    low, high : int
        The smallest and the largest.
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
        raise SamplerError(f"integers({low!r}, {high!r}): the bounds must be integers.") from None
    if not -(2**53) <= ends[0] < ends[1] <= 2**53:
        raise SamplerError(f"""integers({low!r}, {high!r}): the lower bound must be below the upper one,
            within ±2^53.""")
    shape = () if size is None else shape_of(size)
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
    if cov is not None:
        if std is not None:
            raise SamplerError("normal() takes std or cov, not both.")
        matrix = numbers("cov", cov)
        if center.ndim != 1 or matrix.shape != (center.size, center.size):
            raise SamplerError(f"""cov has shape {matrix.shape} and mean {center.shape}: a mean of d numbers
                needs a d x d covariance matrix.""")
        if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() < -1e-10 * abs(matrix).max():
            raise SamplerError("""cov is not a covariance matrix: it must be symmetric and positive
                semi-definite.""")
        return _Correlated(Frozen(center), Frozen(matrix), bounds("normal", low, high, center.shape))
    spread = numbers("std", 1.0 if std is None else std)
    if not (spread > 0).all():
        raise SamplerError(f"std={std!r} is not a standard deviation: it must be positive.")
    try:
        shape = np.broadcast_shapes(center.shape, spread.shape)
    except ValueError:
        raise SamplerError(f"mean has shape {center.shape} and std {spread.shape}: they must fit.") from None
    edges = bounds("normal", low, high, shape or None)
    if not shape and edges is not None:  # one mean for all coordinates of the box
        shape = edges[0].shape
    return _Normal(Frozen(np.broadcast_to(center, shape)), Frozen(np.broadcast_to(spread, shape)), edges)


@kind("uniform", streamable=True, immutable=True)
class _Uniform(Distribution):
    low: Frozen
    high: Frozen

    def draw(self, n: int, rng: Rng) -> Any:
        low: Any = self.low.array
        high: Any = self.high.array
        if low.shape and self.low.is_same and self.high.is_same:  # numpy is faster with numbers than arrays
            low, high = low.flat[0], high.flat[0]
        return rng.uniform(low, high, (n, *self.low.shape))

    def _support(self) -> Any:
        return self.low.end, self.high.end

    def narrowed(self, low: Frozen, high: Frozen) -> Distribution:
        return uniform(np.maximum(self.low.array, low.array), np.minimum(self.high.array, high.array))

    def moments(self) -> tuple[Any, Any]:
        low, high = self.low.array, self.high.array
        return (low + high) / 2, (high - low) / math.sqrt(12)

    def __repr__(self) -> str:
        shape = self.low.shape
        if shape and self.low.is_same and self.high.is_same:
            size = shape[0] if len(shape) == 1 else shape
            return f"uniform({self.low.short!r}, {self.high.short!r}, size={size})"
        return f"uniform({self.low!r}, {self.high!r})"


@kind("integers", streamable=True, immutable=True)
class _Integers(Distribution):
    low: int
    high: int
    shape: tuple[int, ...] = ()

    def draw(self, n: int, rng: Rng) -> Any:
        return rng.integers(self.low, self.high, (n, *self.shape), endpoint=True)

    def _support(self) -> Any:
        return self.low, self.high

    def __repr__(self) -> str:
        size = self.shape[0] if len(self.shape) == 1 else self.shape
        return f"integers({self.low}, {self.high}{f', size={size}' if self.shape else ''})"


@kind("normal", streamable=True, immutable=True)
class _Normal(Distribution):
    mean: Frozen
    std: Frozen
    box: Box | None

    def draw(self, n: int, rng: Rng) -> Any:
        mean, std = self.mean.array, self.std.array
        if self.box is None:
            return rng.normal(mean, std, (n, *mean.shape))
        return between(mean, std, self.box, rng.random((n, *mean.shape)))

    def _support(self) -> Any:
        return None if self.box is None else (self.box[0].end, self.box[1].end)

    def narrowed(self, low: Frozen, high: Frozen) -> Distribution:
        own = self.support or (-math.inf, math.inf)
        ends = np.maximum(own[0], low.array), np.minimum(own[1], high.array)
        return normal(self.mean.array, self.std.array, low=ends[0], high=ends[1])

    def moments(self) -> tuple[Any, Any] | None:
        return None if self.box is not None else (self.mean.array, self.std.array)

    def __repr__(self) -> str:
        return f"normal({', '.join([repr(self.mean), repr(self.std), *show(self.box)])})"


def between(mean: Any, std: Any, ends: Box, u: Any, which: Any = None) -> Any:
    """Turn uniform numbers into normal ones between two bounds.

    The distribution function is inverted in the tail where it is accurate to all digits. If there are several
    distributions, in the rows of `mean`, then `which` is the one of each record.
    """
    from scipy.special import ndtr, ndtri

    low, high = ((end.array - mean) / std for end in ends)
    flip = np.asarray(low > 0)  # work in the lower tail, where ndtr has relative accuracy
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    below, above = ndtr(low), ndtr(high)
    if not (above > below).all():
        raise SamplerError("normal(): the box has no mass in floating point: it lies too far from the mean.")
    if which is not None:  # only now: the distribution function takes longer than all else
        mean, low, high, flip, below, above = (each[which] for each in (mean, low, high, flip, below, above))
        std = std[which] if np.ndim(std) else std
    x = u * (above - below)
    x += below
    ndtri(x, out=x).clip(low, high, out=x)
    if flip.any():
        x = np.where(flip, -x, x)
    x *= std
    x += mean
    return x.clip(ends[0].array, ends[1].array, out=x)  # rounding may have moved numbers out of the box


@kind("normal with covariance", immutable=True)
class _Correlated(Distribution):
    mean: Frozen
    cov: Frozen
    box: Box | None

    def draw(self, n: int, rng: Rng) -> Any:
        # An eigendecomposition, since a semi-definite matrix has no Cholesky factor.
        values, vectors = np.linalg.eigh(self.cov.array)
        root = (vectors * np.sqrt(np.clip(values, 0, None))).T

        def draw(size: int) -> Any:
            return rng.standard_normal((size, len(root))) @ root + self.mean.array

        return draw(n) if self.box is None else accepted(draw, self.box, n, self)

    def _support(self) -> Any:
        return None if self.box is None else (self.box[0].end, self.box[1].end)

    def __repr__(self) -> str:
        return f"normal({', '.join([repr(self.mean), f'cov={self.cov!r}', *show(self.box)])})"
