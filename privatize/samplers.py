"""Public distributions P that the neighbouring datasets are drawn from.

A sampler is anything with ``draw(n, rng) -> dataset of n records``, independent of each other
and drawn with nothing but `rng`. P is public and part of the promise: the privacy is random
differential privacy *with respect to P*.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from privatize import records
from privatize.errors import DataError, SamplerError

__all__ = ["Sampler", "as_sampler", "draw", "from_function", "mixture", "normal", "uniform"]

Rng = np.random.Generator
Support = tuple[Any, Any]


@runtime_checkable
class Sampler(Protocol):
    """What a public distribution must be able to do.

    A sampler may also have a ``support``: a pair (low, high) of bounds that every record lies
    between, which `domain="clip"` brings private records into.
    """

    def draw(self, n: int, rng: np.random.Generator, /) -> Any:
        """Return a dataset of n independent records, using no randomness but `rng`."""
        ...


def uniform(
    low: ArrayLike = 0.0, high: ArrayLike = 1.0, size: int | tuple[int, ...] | None = None
) -> Sampler:
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
    lows, highs = _box("uniform", low, high, size)
    if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
        raise SamplerError(f"uniform({low!r}, {high!r}) has an infinite bound: uniform needs finite ones.")
    return _Uniform(_freeze(lows), _freeze(highs))


def normal(
    mean: ArrayLike = 0.0,
    std: ArrayLike | None = None,
    *,
    cov: ArrayLike | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
) -> Sampler:
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
    center = _numbers("mean", mean)
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    if cov is not None:
        if std is not None:
            raise SamplerError("normal() takes std or cov, not both.")
        matrix = _numbers("cov", cov)
        if center.ndim != 1 or matrix.shape != (center.size, center.size):
            raise SamplerError(
                f"cov has shape {matrix.shape} and mean {center.shape}: a mean of d numbers needs "
                f"a d x d covariance matrix."
            )
        if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() < -1e-10 * abs(matrix).max():
            raise SamplerError(
                "cov is not a covariance matrix: it must be symmetric and positive semi-definite."
            )
        return _Correlated(_freeze(center), _freeze(matrix), _bounds(*ends, center.shape))
    spread = _numbers("std", 1.0 if std is None else std)
    if not (spread > 0).all():
        raise SamplerError(f"std={std!r} is not a standard deviation: it must be positive.")
    try:
        shape = np.broadcast_shapes(center.shape, spread.shape)
    except ValueError:
        raise SamplerError(f"mean has shape {center.shape} and std {spread.shape}: they must fit.") from None
    box = _bounds(*ends, shape)
    if not shape and box is not None:  # one mean for all coordinates of the box
        shape = box[0].shape
    return _Normal(_freeze(np.broadcast_to(center, shape)), _freeze(np.broadcast_to(spread, shape)), box)


def mixture(components: Sequence[Any], weights: Sequence[float] | None = None) -> Sampler:
    """Draw each record from one of several distributions, chosen at random.

    Parameters
    ----------
    components : sequence of samplers
        Anything that ``sampler=`` accepts.
    weights : sequence of float, optional
        How often each is chosen, up to a common factor. Equally often by default.

    Examples
    --------
    >>> mixture([normal(0.5, 0.1), normal(0.75, 0.05)], weights=[0.4, 0.6])
    mixture([normal(0.5, 0.1), normal(0.75, 0.05)], weights=[0.4, 0.6])
    """
    try:
        parts = tuple(map(as_sampler, components))
    except TypeError:
        raise SamplerError(f"mixture({components!r}): the components must be a list of samplers.") from None
    if not parts:
        raise SamplerError("mixture([]) has no components.")
    share = _numbers("weights", [1.0] * len(parts) if weights is None else weights)
    if share.shape != (len(parts),) or (share < 0).any() or not share.sum() > 0:
        raise SamplerError(
            f"weights={weights!r} do not fit {len(parts)} components: one number >= 0 for each, not all zero."
        )
    # Weights that sum to 1 are kept as they are, so that a repr makes the same mixture again.
    total = share.sum()
    share = share if abs(total - 1) < 1e-12 else share / total
    none = tuple(records.head(draw(part, 2, np.random.default_rng(0)), 0) for part in parts)
    return _Mixture(parts, _freeze(share), none)


def from_function(draw: Callable[[int, Rng], Any], support: Support | None = None) -> Sampler:
    """Draw records with a function of your own.

    Parameters
    ----------
    draw : callable
        ``draw(n, rng)`` returns n independent records, with no randomness but `rng`, a
        `numpy.random.Generator`.
    support : (low, high), optional
        Bounds that every drawn record lies between.

    Examples
    --------
    >>> def spenders(n, rng):
    ...     return rng.lognormal(3, 1, n)
    >>> from_function(spenders)
    from_function(spenders)
    """
    if not callable(draw):
        raise SamplerError(f"from_function({draw!r}): draw must be a callable (n, rng) -> n records.")
    if support is None:
        return _Function(draw)
    try:
        low, high = support
    except (TypeError, ValueError):
        raise SamplerError(f"support={support!r} is not a pair (low, high).") from None
    return _Function(draw, tuple(map(_freeze, _box("support", low, high, None))))


def as_sampler(value: Any) -> Sampler:
    """Coerce what users hold into a sampler.

    Parameters
    ----------
    value : Sampler, scipy.stats distribution, or callable
        A sampler, a frozen distribution of `scipy.stats`, or a function ``(n, rng)``.

    Examples
    --------
    >>> from scipy import stats
    >>> as_sampler(stats.expon(scale=2))
    scipy.stats.expon(scale=2)
    >>> as_sampler("normal")
    Traceback (most recent call last):
        ...
    privatize.errors.SamplerError: sampler='normal' is not a public distribution. ...
    """
    if any(value is maker for maker in (uniform, normal, mixture, from_function)):
        raise SamplerError(f"sampler={value.__name__} is not called: write samplers.{value.__name__}(...).")
    if not isinstance(value, type):
        if isinstance(value, Sampler):
            return value
        if callable(getattr(value, "rvs", None)):
            return _Scipy(_frozen(value))
        if callable(getattr(value, "sample", None)) and hasattr(value, "cdf"):
            return _ScipyNew(value)
        if callable(value):
            return from_function(value)
    shown = repr(value) if isinstance(value, str | int | float | type | None) else f"a {type(value).__name__}"
    raise SamplerError(
        f"sampler={shown} is not a public distribution. Use one of privatize.samplers, such as "
        f"samplers.uniform(0, 100), a frozen scipy.stats distribution, or a function "
        f"(n, rng) -> n records."
    )


def draw(sampler: Sampler, n: int, rng: np.random.Generator) -> Any:
    """Draw n records, and say whose fault it is if that does not work."""
    try:
        drawn = sampler.draw(n, rng)
    except (SamplerError, KeyboardInterrupt):
        raise
    except BaseException as error:  # sys.exit() in a sampler is a failure like any other
        raise SamplerError(
            f"The sampler {sampler!r} raised {type(error).__name__} when asked for {n} records: "
            f"{str(error) or 'no message'}. It is called as draw(n, rng) and returns n records."
        ) from error
    try:
        found = len(drawn) if type(drawn) is np.ndarray and drawn.ndim else records.count(drawn)
    except DataError as error:
        raise SamplerError(f"The sampler {sampler!r} draws no dataset. {error}") from None
    if found != n:
        raise SamplerError(f"The sampler {sampler!r} was asked for {n} records and drew {found}.")
    return drawn


# --- the distributions ----------------------------------------------------------------------


class _Frozen:
    """A read-only array that compares by content and prints as the code that makes it."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = np.array(array, dtype=np.float64)
        self.array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, (self.array + 0.0).tobytes()))

    def __repr__(self) -> str:
        return _plain(self.array.tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


def _freeze(array: Any) -> _Frozen:
    return _Frozen(array)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return repr(int(value)) if abs(value) < 1e16 and value == int(value) else repr(value)


def _numbers(name: str, value: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise SamplerError(f"{name}={value!r} is not a number or an array of numbers.") from None
    if not np.isfinite(array).all():
        raise SamplerError(f"{name}={value!r} is not finite.")
    return array


def _box(name: str, low: Any, high: Any, size: int | tuple[int, ...] | None) -> tuple[Any, Any]:
    try:
        ends = [np.array(end, dtype=np.float64) for end in (low, high)]
        shape = np.broadcast_shapes(ends[0].shape, ends[1].shape)
        if size is not None:
            wanted = tuple(map(operator.index, size if np.iterable(size) else (size,)))
            if np.broadcast_shapes(shape, wanted) != wanted or 0 in wanted:
                raise ValueError
            shape = wanted
    except (TypeError, ValueError):
        raise SamplerError(
            f"{name}: the bounds {low!r} and {high!r} do not fit each other or size={size!r}."
        ) from None
    lows, highs = (np.broadcast_to(end, shape) for end in ends)
    if not (lows < highs).all():
        raise SamplerError(f"{name}: the lower bound {low!r} must be below the upper bound {high!r}.")
    return lows, highs


def _bounds(low: Any, high: Any, shape: tuple[int, ...]) -> tuple[_Frozen, _Frozen] | None:
    """Return the box of a normal, or None where it bounds nothing."""
    lows, highs = _box("normal", low, high, shape or None)
    return None if np.isinf(lows).all() and np.isinf(highs).all() else (_freeze(lows), _freeze(highs))


@dataclass(frozen=True, repr=False)
class _Uniform:
    immutable: ClassVar[bool] = True
    low: _Frozen
    high: _Frozen

    def draw(self, n: int, rng: Rng) -> Any:
        low, high = self.low.array, self.high.array
        if not low.shape:
            return rng.uniform(low.item(), high.item(), n)
        return rng.uniform(low, high, (n, *low.shape))

    @property
    def support(self) -> Support:
        return self.low.array, self.high.array

    def __repr__(self) -> str:
        low, high, shape = self.low.array, self.high.array, self.low.shape
        if shape and np.ptp(low) == 0 == np.ptp(high):
            size = shape[0] if len(shape) == 1 else shape
            return f"uniform({_plain(low.flat[0].item())}, {_plain(high.flat[0].item())}, size={size})"
        return f"uniform({self.low!r}, {self.high!r})"


@dataclass(frozen=True, repr=False)
class _Normal:
    immutable: ClassVar[bool] = True
    mean: _Frozen
    std: _Frozen
    box: tuple[_Frozen, _Frozen] | None

    def draw(self, n: int, rng: Rng) -> Any:
        mean, std = self.mean.array, self.std.array
        if self.box is None:
            return rng.normal(mean, std, (n, *mean.shape))
        low, high = (end.array for end in self.box)
        x = _truncated_normal((low - mean) / std, (high - mean) / std, rng.random((n, *mean.shape)))
        return np.clip(x * std + mean, low, high)  # rounding may have left the box

    @property
    def support(self) -> Support | None:
        return None if self.box is None else (self.box[0].array, self.box[1].array)

    def __repr__(self) -> str:
        return f"normal({self.mean!r}, {self.std!r}{_show_box(self.box)})"


def _truncated_normal(low: Any, high: Any, u: Any) -> Any:
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
class _Correlated:
    immutable: ClassVar[bool] = True
    mean: _Frozen
    cov: _Frozen
    box: tuple[_Frozen, _Frozen] | None

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
        while found < n:
            x = rng.standard_normal((max(2 * (n - found), 64), mean.size)) @ root.T + mean
            x = x[((low <= x) & (x <= high)).all(axis=1)]
            kept.append(x)
            found, drawn = found + len(x), drawn + 1
            if drawn >= 1000 and found < n:
                raise SamplerError(
                    "normal(cov=...): fewer than one draw in a thousand falls into the box "
                    "between low and high. Widen it, or move the mean."
                )
        return np.concatenate(kept)[:n]

    @property
    def support(self) -> Support | None:
        return None if self.box is None else (self.box[0].array, self.box[1].array)

    def __repr__(self) -> str:
        return f"normal({self.mean!r}, cov={self.cov!r}{_show_box(self.box)})"


def _show_box(box: tuple[_Frozen, _Frozen] | None) -> str:
    if box is None:
        return ""
    shown = ""
    for name, end in zip(("low", "high"), box, strict=True):
        values = end.array
        if np.isinf(values).all():
            continue
        same = values.size and np.ptp(values) == 0
        shown += f", {name}={_plain(values.flat[0].item()) if same else repr(end)}"
    return shown


@dataclass(frozen=True, repr=False)
class _Mixture:
    components: tuple[Sampler, ...]
    weights: _Frozen
    none: tuple[Any, ...] = field(compare=False)

    def draw(self, n: int, rng: Rng) -> Any:
        # Who comes from where, then each component's records, put back into their places.
        origin = np.searchsorted(np.cumsum(self.weights.array)[:-1], rng.random(n), side="right")
        order = np.argsort(origin, kind="stable")
        counts = np.bincount(origin, minlength=len(self.components))
        parts = [c.draw(int(size), rng) for c, size in zip(self.components, counts, strict=True) if size]
        places = np.empty(n, dtype=np.intp)
        places[order] = np.arange(n)
        # No records of every component, so that the dtype does not depend on who was chosen.
        return records.take(records.concat([*self.none, *parts]), places)

    @property
    def support(self) -> Support | None:
        ends = [getattr(component, "support", None) for component in self.components]
        known = [end for end in ends if end is not None]
        if len(known) < len(ends):
            return None
        low = np.minimum.reduce([np.asarray(end[0], dtype=np.float64) for end in known])
        high = np.maximum.reduce([np.asarray(end[1], dtype=np.float64) for end in known])
        return low, high

    def __repr__(self) -> str:
        parts = ", ".join(map(repr, self.components))
        return f"mixture([{parts}], weights={self.weights!r})"


@dataclass(frozen=True, repr=False)
class _Function:
    function: Callable[[int, Rng], Any]
    box: tuple[Any, ...] | None = None

    def draw(self, n: int, rng: Rng) -> Any:
        return self.function(n, rng)

    @property
    def support(self) -> Support | None:
        return None if self.box is None else (self.box[0].array, self.box[1].array)

    def __repr__(self) -> str:
        name = _name(self.function)
        box = "" if self.box is None else f", support=({self.box[0]!r}, {self.box[1]!r})"
        return f"from_function({name}{box})"


def _name(function: Any) -> str:
    """Return a readable name of a callable, the same in every run."""
    if isinstance(function, functools.partial):
        bound = [*map(repr, function.args), *(f"{k}={v!r}" for k, v in function.keywords.items())]
        return f"partial({', '.join([_name(function.func), *bound])})"
    name = getattr(function, "__qualname__", None) or f"{type(function).__qualname__}()"
    return str(name).rpartition(".")[2]


def _frozen(distribution: Any) -> Any:
    """Freeze a scipy distribution that was passed as it is."""
    if hasattr(distribution, "dist"):
        given = (*distribution.args, *distribution.kwds.values())
        if any(np.ndim(value) for value in given):
            raise SamplerError(
                f"scipy.stats.{distribution.dist.name} with arrays for parameters draws no records that are "
                f"alike. Use scalars, or from_function() for records of several coordinates."
            )
        return distribution
    if not hasattr(distribution, "numargs"):
        return distribution
    if distribution.numargs:
        raise SamplerError(
            f"scipy.stats.{distribution.name} needs its shape parameters {distribution.shapes}: "
            f"pass the frozen distribution, scipy.stats.{distribution.name}(...)."
        )
    return distribution()


@dataclass(frozen=True, repr=False, eq=False)
class _Scipy:
    distribution: Any

    def draw(self, n: int, rng: Rng) -> Any:
        # Multivariate distributions squeeze a single record: draw two, and keep what is asked.
        return records.head(self.distribution.rvs(size=max(n, 2), random_state=rng), n)

    @property
    def support(self) -> Support | None:
        ends = getattr(self.distribution, "support", None)
        if ends is None:
            return None
        low, high = ends()
        return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)

    def _identity(self) -> Any:
        return self._facts()

    def _facts(self) -> tuple[Any, ...]:
        """Return what the distribution is: its name and its parameters with defaults filled in."""
        frozen = self.distribution
        if not hasattr(frozen, "dist"):  # a multivariate one keeps its parameters as attributes
            return (_content(frozen),)
        shapes = [s.strip() for s in frozen.dist.shapes.split(",")] if frozen.dist.shapes else []
        given = dict(zip([*shapes, "loc", "scale"], frozen.args, strict=False)) | frozen.kwds
        given = {"loc": 0, "scale": 1} | given
        values = {k: np.asarray(v, dtype=np.float64).tolist() for k, v in given.items()}
        # What a histogram or a table of values keeps beyond its parameters.
        kept = [_content(vars(frozen.dist).get(name)) for name in ("_hpdf", "_hbins", "xk", "pk")]
        return type(frozen.dist), frozen.dist.name, tuple(sorted(values.items())), tuple(kept)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Scipy) and self._facts() == other._facts()

    def __hash__(self) -> int:
        frozen = getattr(self.distribution, "dist", self.distribution)
        return hash((type(frozen), getattr(frozen, "name", None)))

    def __repr__(self) -> str:
        frozen = self.distribution
        if not hasattr(frozen, "dist"):
            return f"scipy.stats.{type(frozen).__name__.removesuffix('_frozen').removesuffix('_gen')}(...)"
        shown = [*map(repr, frozen.args), *(f"{k}={v!r}" for k, v in frozen.kwds.items())]
        return f"scipy.stats.{frozen.dist.name}({', '.join(shown)})"


def _content(value: Any) -> Any:
    """Return the parameters inside a multivariate distribution, without its generator."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list | tuple):
        return tuple(map(_content, value))
    if hasattr(value, "__dict__") and type(value).__module__.startswith("scipy.stats"):
        inside = {k: v for k, v in vars(value).items() if "random_state" not in k and k != "_dist"}
        return type(value), tuple((k, _content(v)) for k, v in sorted(inside.items()))
    return value


@dataclass(frozen=True, repr=False, eq=False)
class _ScipyNew:
    """The distributions that `scipy.stats.make_distribution` and its kin give."""

    distribution: Any

    def draw(self, n: int, rng: Rng) -> Any:
        return np.asarray(self.distribution.sample(n, rng=rng))

    @property
    def support(self) -> Support | None:
        low, high = self.distribution.support()
        return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ScipyNew) and bool(self._identity() == other._identity())

    def _identity(self) -> Any:
        with np.printoptions(precision=17, threshold=sys.maxsize, floatmode="unique"):
            return type(self.distribution), repr(self.distribution)

    def __hash__(self) -> int:
        return hash(type(self.distribution))

    def __repr__(self) -> str:
        return f"scipy.stats.{self.distribution!r}"
