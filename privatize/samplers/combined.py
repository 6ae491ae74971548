"""Distributions made of others: mixtures; mapped, truncated and clipped ones; those for data that grows."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from privatize.data import records
from privatize.data import support as domains
from privatize.data.clipping import convert_numbers
from privatize.data.columns import Column
from privatize.errors import DataError, SamplerError
from privatize.samplers.base import (
    Distribution,
    Frozen,
    Rng,
    Sampler,
    box,
    chosen,
    draw,
    inside,
    is_ours,
    is_streamable,
    loose,
    name_of,
    plain,
    shares,
    shown,
)
from privatize.samplers.foreign import Support, as_sampler
from privatize.samplers.numbers import _Normal, _Uniform, normal, uniform

__all__ = ["mixture"]


def mixture(components: Sequence[Any], weights: Sequence[float] | None = None) -> Distribution:
    """Draw each record from one of several distributions, chosen at random.

    Parameters
    ----------
    components : sequence of samplers
        Anything that ``sampler=`` accepts.
    weights : sequence of float, optional
        How often each is chosen, up to a common factor. Equally often by default.

    Examples
    --------
    >>> from privatize.samplers import normal
    >>> mixture([normal(0.5, 0.1), normal(0.75, 0.05)], weights=[0.4, 0.6])
    mixture([normal(0.5, 0.1), normal(0.75, 0.05)], weights=[0.4, 0.6])
    """
    try:
        parts = tuple(loose(as_sampler(component)) for component in components)
    except TypeError:
        raise SamplerError(f"mixture({components!r}): the components must be a list of samplers.") from None
    if not parts:
        raise SamplerError("mixture([]) has no components.")
    share = shares("weights", [1.0] * len(parts) if weights is None else weights, len(parts), "components")
    some = [draw(part, 2, np.random.default_rng(0)) for part in parts]
    none = tuple(records.head(drawn, 0) for drawn in some)
    kinds = [records.alike(some[0], drawn) for drawn in some]
    if not all(kinds):
        raise SamplerError(
            f"mixture(): {parts[0]!r} and {parts[kinds.index(False)]!r} draw different kinds of records: "
            f"containers, columns, dtypes and categories must be the same."
        )
    return _Mixture(parts, cast("Frozen", share), none)


@dataclass(frozen=True, repr=False)
class _Mixture(Distribution):
    tag: ClassVar[str] = "mixture"
    by_itself: ClassVar[bool] = True
    components: tuple[Sampler, ...]
    weights: Frozen
    none: tuple[Any, ...] = field(compare=False)

    def draw(self, n: int, rng: Rng) -> Any:
        # Who comes from where, then each component's records, put back into their places.
        origin = chosen(self.weights, len(self.components), n, rng)
        order = np.argsort(origin, kind="stable")
        counts = np.bincount(origin, minlength=len(self.components))
        parts = [c.draw(int(size), rng) for c, size in zip(self.components, counts, strict=True) if size]
        places = np.empty(n, dtype=np.intp)
        places[order] = np.arange(n)
        # No records of every component, so that the dtype does not depend on who was chosen.
        return records.take(records.concat([*self.none, *parts]), places)

    def parts(self) -> Iterator[Any]:
        yield from self.components

    def parameters(self) -> dict[str, Any]:
        return {"components": self.components, "weights": self.weights}

    def _identity(self) -> Any:
        return self.components, self.weights

    @property
    def support(self) -> Any:
        return domains.join(getattr(component, "support", None) for component in self.components)

    def __repr__(self) -> str:
        parts = ", ".join(map(repr, self.components))
        return f"mixture([{parts}], weights={self.weights!r})"


# --- of one other -----------------------------------------------------------------------------


def mapped(inner: Distribution, function: Callable[[Any], Any], support: Any) -> Distribution:
    """Make a distribution of what a function makes of the records, or refuse the function."""
    if not callable(function):
        raise SamplerError(f"map({function!r}) needs a function of n records that returns n.")
    made = _Mapped(inner, function, Support.of(support))
    some = draw(inner, 16, np.random.default_rng(0))
    halves = np.array([13, 2, 7, 15, 0, 9, 4, 11]), np.array([3, 14, 1, 10, 5, 12, 8, 6])
    try:
        whole = function(records.copy(some))
        alone = records.count(whole) == 16 and all(
            records.equal(records.take(whole, at), function(records.take(some, at))) for at in halves
        )
    except DataError:
        alone = False
    except Exception as error:
        raise SamplerError(
            f"map({name_of(function)}) raised {type(error).__name__} on drawn records: {error}. It gets n "
            f"records, in the container that {inner!r} draws, and returns n."
        ) from error
    if not alone:
        raise SamplerError(
            f"map({name_of(function)}) does not make each record from its own one alone: 8 of 16 come out "
            f"differently by themselves than among the others. Records must stay independent."
        )
    return made


def _number_by_number(function: Any) -> bool:
    """Tell whether a function surely makes one number of each: one of numpy's and SciPy's own."""
    if not isinstance(function, np.ufunc) or (function.nin, function.nout) != (1, 1) or function.signature:
        return False
    return any(
        getattr(sys.modules.get(module), function.__name__, None) is function
        for module in ("numpy", "scipy.special")
    )


@dataclass(frozen=True, repr=False)
class _Mapped(Distribution):
    tag: ClassVar[str] = "mapped"
    by_itself: ClassVar[bool] = True
    inner: Distribution
    function: Callable[[Any], Any]
    given: Support | None

    def draw(self, n: int, rng: Rng) -> Any:
        return inside(self.function(self.inner.draw(n, rng)), self.support)

    @property
    def one_by_one(self) -> bool:
        return _number_by_number(self.function) and super().one_by_one

    @property
    def seamless(self) -> bool:
        return _number_by_number(self.function) and is_ours(self) and is_streamable(self.inner)

    def parts(self) -> Iterator[Any]:
        yield self.inner

    @property
    def settled(self) -> bool:
        return False  # the function may change

    @property
    def support(self) -> Any:
        return None if self.given is None else self.given.plain

    def __repr__(self) -> str:
        more = "" if self.given is None else f", support={self.given!r}"
        return f"{shown(self.inner)}.map({name_of(self.function)}{more})"


def _ends(name: str, low: Any, high: Any) -> tuple[Frozen, Frozen]:
    lows, highs = box(name, -math.inf if low is None else low, math.inf if high is None else high, None)
    if np.isinf(lows).all() and np.isinf(highs).all():
        raise SamplerError(f"{name}() needs a bound: {name}(low, high).")
    return Frozen(lows), Frozen(highs)


def _numeric(inner: Distribution, name: str, low: Frozen) -> None:
    drawn = draw(inner, 2, np.random.default_rng(0))
    if not isinstance(drawn, np.ndarray) or drawn.dtype.kind not in "iuf":
        raise SamplerError(
            f"{name}() is for numbers, and {inner!r} draws something else. Of a table, do it to its columns."
        )
    try:
        np.broadcast_to(low.array, drawn.shape[1:])
    except ValueError:
        raise SamplerError(
            f"{name}(): bounds of shape {low.shape} do not fit records of shape {drawn.shape[1:]}."
        ) from None


def truncated(inner: Distribution, low: Any, high: Any) -> Distribution:
    """Restrict a distribution to a box."""
    ends = _ends("truncated", low, high)
    _numeric(inner, "truncated", ends[0])
    if not inner.independent:
        raise SamplerError(
            f"{inner!r} draws records that share a parameter, which drawing some of them again would not. "
            f"Truncate in its likelihood."
        )
    if type(inner) in (_Uniform, _Normal):  # a class that somebody made of one of these may draw otherwise
        inner = cast("_Uniform | _Normal", inner)
        own = inner.support or (-math.inf, math.inf)
        lows = np.maximum(own[0], ends[0].array)
        highs = np.minimum(own[1], ends[1].array)
        if isinstance(inner, _Uniform):
            return uniform(lows, highs)
        made: Distribution = normal(inner.mean.array, inner.std.array, low=lows, high=highs)
        draw(made, 1, np.random.default_rng(0))  # or refused
        return made
    made = _Truncated(inner, *ends)
    draw(made, 10, np.random.default_rng(0))  # or refused
    return made


@dataclass(frozen=True, repr=False)
class _Truncated(Distribution):
    tag: ClassVar[str] = "truncated"
    by_itself: ClassVar[bool] = True
    inner: Distribution
    low: Frozen
    high: Frozen

    def draw(self, n: int, rng: Rng) -> Any:
        kept: list[Any] = []
        found = drawn = 0
        size = max(2 * n, 64)
        while found < n or not kept:
            x = self.inner.draw(size, rng)
            between = (self.low.array <= x) & (x <= self.high.array)
            x = x[between.reshape(len(x), -1).all(axis=1)]
            kept.append(x)
            found, drawn = found + len(x), drawn + size
            if found < n and drawn > 2000 * size and found * 1000 < drawn:
                raise SamplerError(
                    f"{self!r}: fewer than one draw in a thousand lies between the bounds. Widen them."
                )
        return np.concatenate(kept)[:n]

    def parts(self) -> Iterator[Any]:
        yield self.inner

    def parameters(self) -> dict[str, Any]:
        return {"inner": self.inner, "low": _short(self.low), "high": _short(self.high)}

    @property
    def support(self) -> Any:
        return _narrowed(self.inner.support, self.low, self.high)

    def __repr__(self) -> str:
        return f"{shown(self.inner)}.truncated({_arguments(self.low, self.high)})"


def _narrowed(support: Any, low: Frozen, high: Frozen) -> Any:
    if isinstance(support, domains.Maybe):
        return domains.Maybe(_narrowed(support.inner, low, high))
    if not domains.is_pair(support):
        return low.end, high.end
    return Frozen(np.clip(support[0], low.array, high.array)).end, Frozen(
        np.clip(support[1], low.array, high.array)
    ).end


def _short(end: Frozen) -> Frozen:
    """Return one bound for all coordinates where they have the same."""
    return Frozen(end.array.flat[0]) if end.array.size and (end.array == end.array.flat[0]).all() else end


def _arguments(low: Frozen, high: Frozen) -> str:
    texts: list[str] = []
    for name, end in (("low", low), ("high", high)):
        if not np.isinf(end.array).all():
            same = end.shape and np.ptp(end.array) == 0
            text = plain(end.array.flat[0].item()) if same else repr(end)
            texts.append(text if len(texts) == (name == "high") else f"{name}={text}")
    return ", ".join(texts)


def clipped(inner: Distribution, low: Any, high: Any) -> Distribution:
    """Move records to the nearest bound."""
    ends = _ends("clip", low, high)
    _numeric(inner, "clip", ends[0])
    return _Clipped(inner, *ends)


@dataclass(frozen=True, repr=False)
class _Clipped(Distribution):
    tag: ClassVar[str] = "clipped"
    by_itself: ClassVar[bool] = True
    inner: Distribution
    low: Frozen
    high: Frozen

    def draw(self, n: int, rng: Rng) -> Any:
        drawn = self.inner.draw(n, rng)
        return convert_numbers(drawn, drawn.dtype, domains.Maybe((self.low.array, self.high.array)))

    def parts(self) -> Iterator[Any]:
        yield self.inner

    def parameters(self) -> dict[str, Any]:
        return {"inner": self.inner, "low": _short(self.low), "high": _short(self.high)}

    @property
    def support(self) -> Any:
        return _narrowed(self.inner.support, self.low, self.high)

    def __repr__(self) -> str:
        return f"{shown(self.inner)}.clip({_arguments(self.low, self.high)})"


# --- for data that grows ----------------------------------------------------------------------


def fixed(inner: Distribution, size: Any) -> Distribution:
    """Make a distribution for data of which a fixed number of records is used."""
    try:
        count = -1 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        count = -1
    if not 1 <= count < 2**53:
        raise SamplerError(f"fixed(size={size!r}): the number of records must be an integer >= 1.")
    return _Fixed(inner, count)


@dataclass(frozen=True, repr=False)
class _Fixed(Distribution):
    tag: ClassVar[str] = "fixed size"
    by_itself: ClassVar[bool] = True
    inner: Distribution
    size: int

    def draw(self, n: int, rng: Rng) -> Any:
        return self.inner.draw(n, rng)

    def column(self, n: int, rng: Rng) -> Column:
        return self.inner.column(n, rng)

    def parts(self) -> Iterator[Any]:
        yield self.inner

    def _identity(self) -> Any:
        return self.inner, self.size

    @property
    def support(self) -> Any:
        return self.inner.support

    def positions(self, n: int) -> Any:
        """Return which of n records are used: those first in a fixed public order of all positions.

        Examples
        --------
        >>> uniform(0, 1).fixed(size=3).positions(10)
        array([0, 2, 5])
        """
        if n < self.size:
            raise DataError(f"The dataset has {n} records, and fixed(size={self.size}) uses {self.size}.")
        rank = np.random.Generator(np.random.PCG64(20170806)).random(n)
        return np.sort(np.argpartition(rank, self.size - 1)[: self.size])

    def __getitem__(self, columns: Any) -> Distribution:
        return self.inner[columns].fixed(size=self.size)

    def map(self, function: Callable[[Any], Any], support: Any = None) -> Distribution:
        return self.inner.map(function, support).fixed(size=self.size)

    def truncated(self, low: Any = None, high: Any = None) -> Distribution:
        return self.inner.truncated(low, high).fixed(size=self.size)

    def clip(self, low: Any = None, high: Any = None) -> Distribution:
        return self.inner.clip(low, high).fixed(size=self.size)

    def fixed(self, *, size: int) -> Distribution:
        return self.inner.fixed(size=size)

    def __repr__(self) -> str:
        return f"{shown(self.inner)}.fixed(size={self.size})"
