"""What a sampler is, and what every one of ours can do."""

from __future__ import annotations

import abc
import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload, runtime_checkable

import numpy as np

from privatize.data import records
from privatize.data import support as domains
from privatize.data.columns import Column
from privatize.errors import DataError, SamplerError

if TYPE_CHECKING:
    from privatize.samplers.describing import Description

__all__ = ["Distribution", "Rng", "Sampler", "draw"]

Rng = np.random.Generator


@runtime_checkable
class Sampler(Protocol):
    """What a public distribution must be able to do.

    A sampler may also have a ``support`` that every record lies in, which `domain="clip"` brings
    private records into: a pair (low, high) of bounds, a `privatize.samplers.OneOf`, a dict of
    these by column, a tuple of these for aligned containers.
    """

    def draw(self, n: int, rng: np.random.Generator, /) -> Any:
        """Return a dataset of n independent records, using no randomness but `rng`."""
        ...


class Distribution(abc.ABC):
    """A public distribution of records, as the functions in `privatize.samplers` make them.

    It compares by content, and its repr is the code that makes it again.

    Examples
    --------
    >>> from privatize import samplers
    >>> ages = samplers.normal(45, 20).truncated(0, 120).map(np.rint)
    >>> ages
    normal(45, 20, low=0, high=120).map(rint)
    >>> ages.draw(3, np.random.default_rng(1))
    array([46., 78., 25.])
    """

    @abc.abstractmethod
    def draw(self, n: int, rng: np.random.Generator, /) -> Any:
        """Return a dataset of n records, using no randomness but `rng`."""

    @property
    def support(self) -> Any:
        """What every record lies in: bounds, fixed values, these by column, or None if nothing is known."""
        return None

    def column(self, n: int, rng: np.random.Generator) -> Column:
        """Return n values for a column of a table."""
        values = np.asarray(draw(self, n, rng))
        if values.ndim != 1:
            raise SamplerError(f"{self!r} draws records of several numbers, which is no column of a table.")
        return Column(values)

    immutable: ClassVar[bool] = False
    # Whether this kind is known to draw each record independently of the others, if all of its parts do.
    by_itself: ClassVar[bool] = False
    # What a kind is called in stored keys and in ledgers, wherever its class lies; every kind has its own.
    tag: ClassVar[str]
    # Raised by whoever changes which records are drawn from a generator: stored estimates are then stale.
    draw_version: ClassVar[int] = 1
    # Raised by whoever changes the distribution itself: in a ledger it is then another P.
    law_version: ClassVar[int] = 1

    def parameters(self) -> dict[str, Any]:
        """Return what determines the law of this kind, by name."""
        return own_fields(self)

    def parts(self) -> Iterator[Any]:
        """Return the samplers that it is made of."""
        return iter(())

    @property
    def settled(self) -> bool:
        """Whether it will always draw the same kind of records: it is made of no function of the user's."""
        parts = list(self.parts())
        own = self.immutable or bool(parts and all(is_settled(part) for part in parts))
        return own and is_ours(self)

    @property
    def one_by_one(self) -> bool:
        """Whether two records alone are like two of any dataset: they are independent, for sure.

        Not for sure is what a function of the user's draws: it may sort, or go by how many it draws.
        """
        return self.by_itself and self.independent and is_ours(self) and all(map(is_iid, self.parts()))

    @property
    def seamless(self) -> bool:
        """Whether draws one after the other are the same records as one draw of all of them."""
        return False

    @property
    def independent(self) -> bool:
        """Whether the records of a dataset are independent of each other, and not only exchangeable."""
        return all(getattr(part, "independent", True) for part in self.parts())

    # -- what can be made of it --

    def map(self, function: Callable[[Any], Any], support: Any = None) -> Distribution:
        """Return the distribution of what a function makes of the records.

        Parameters
        ----------
        function : callable
            Gets n records, and returns n: each made from its own one alone.
        support : optional
            What the made records lie in, as for `privatize.samplers.from_function`.

        Examples
        --------
        >>> from privatize import samplers
        >>> samplers.normal(3, 1).map(np.exp, support=(0, np.inf))
        normal(3, 1).map(exp, support=(0, inf))
        """
        from privatize.samplers.combined import mapped

        return mapped(self, function, support)

    def truncated(self, low: Any = None, high: Any = None) -> Distribution:
        """Return the same distribution, restricted to records between two bounds.

        Examples
        --------
        >>> from privatize import samplers
        >>> samplers.uniform(0, 100).truncated(18)
        uniform(18, 100)
        """
        from privatize.samplers.combined import truncated

        return truncated(self, low, high)

    def clip(self, low: Any = None, high: Any = None) -> Distribution:
        """Return the distribution of the records moved to the nearest of two bounds, if they are outside.

        Examples
        --------
        >>> from privatize import samplers
        >>> samplers.normal(0, 1).clip(-2, 2)
        normal(0, 1).clip(-2, 2)
        """
        from privatize.samplers.combined import clipped

        return clipped(self, low, high)

    def fixed(self, *, size: int) -> Distribution:
        """Return the same distribution for data that grows, of which `size` records are used.

        Whatever the number of private records, the function gets those `size` of them that a fixed public
        permutation of the positions selects, so that one calibration serves.

        Examples
        --------
        >>> from privatize import samplers
        >>> samplers.uniform(0, 100).fixed(size=1000)
        uniform(0, 100).fixed(size=1000)
        """
        from privatize.samplers.combined import fixed

        return fixed(self, size)

    @overload
    def __getitem__(self, columns: str) -> Distribution: ...

    @overload
    def __getitem__(self, columns: list[str]) -> Distribution: ...

    def __getitem__(self, columns: str | list[str]) -> Distribution:
        """Return the distribution of one column, or of several."""
        from privatize.samplers.tables import projection

        return projection(self, columns)

    def __iter__(self) -> Iterator[Any]:
        # Otherwise __getitem__ would make it a sequence without an end.
        raise TypeError(f"{type(self).__name__} is not iterable: draw(n, rng) draws records.")

    def describe(self, n: int = 10_000, seed: int = 0) -> Description:
        """Draw some records, and say what they look like; in a notebook, with a picture.

        Examples
        --------
        >>> from privatize import samplers
        >>> print(samplers.uniform(0, 100).describe())
        uniform(0, 100): 10,000 records, seed 0
        column   support     mean    std     5%  median    95%   missing
        value    [0, 100]   49.94  28.91  4.988   50.08  94.99         0
        """
        from privatize.samplers.describing import describe

        return describe(self, n, seed)


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


def is_ours(sampler: Any) -> bool:
    """Tell whether a sampler is of one of the library's kinds: a class made of one may draw otherwise."""
    kind = type(sampler)
    return kind.__module__.startswith("privatize.samplers.") and "tag" in vars(kind)


def is_iid(sampler: Any) -> bool:
    """Tell whether a sampler is known to draw independent records, whatever a user's own class claims."""
    return is_ours(sampler) and bool(getattr(sampler, "one_by_one", False))


def is_streamable(sampler: Any) -> bool:
    """Tell whether draws one after the other are known to be the same records as one draw of all of them."""
    return is_ours(sampler) and bool(getattr(sampler, "seamless", False))


def is_settled(sampler: Any) -> bool:
    """Tell whether a sampler is known to draw the same kind of records always."""
    return is_ours(sampler) and bool(getattr(sampler, "settled", False))


def own_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, by name."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


# --- what they share --------------------------------------------------------------------------


class Frozen:
    """A read-only array that compares by content and prints as the code that makes it."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(np.array(array, dtype=np.float64) + 0.0)  # there is one zero, not two
        self.array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, (self.array + 0.0).tobytes()))

    def __repr__(self) -> str:
        return plain(self.array.tolist())

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.array.shape

    @property
    def end(self) -> Any:
        """The array as a bound: a number if it is one."""
        return self.array if self.array.shape else self.array.item()


def plain(value: Any) -> str:
    """Return a number, or a list of them, as code; whole ones without a point."""
    if isinstance(value, list):
        return f"[{', '.join(map(plain, value))}]"
    return repr(int(value)) if abs(value) < 1e16 and value == int(value) else repr(value)


def numbers(name: str, value: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return finite numbers as an array, or refuse."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise SamplerError(f"{name}={value!r} is not a number or an array of numbers.") from None
    if not np.isfinite(array).all():
        raise SamplerError(f"{name}={value!r} is not finite.")
    return array


def box(name: str, low: Any, high: Any, size: int | tuple[int, ...] | None) -> tuple[Any, Any]:
    """Return two bounds as arrays of the same shape, or refuse."""
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


def shares(name: str, given: Any, count: int, what: str) -> Frozen | None:
    """Return probabilities up to a common factor as ones that sum to 1; None stays None."""
    if given is None:
        return None
    share = numbers(name, given)
    if share.shape != (count,) or (share < 0).any() or not share.sum() > 0:
        raise SamplerError(
            f"{name}={given!r} do not fit {count} {what}: one number >= 0 for each, not all zero."
        )
    # Those that sum to 1 are kept as they are, so that a repr makes the same again.
    total = share.sum()
    return Frozen(share if abs(total - 1) < 1e-12 else share / total)


def even(count: int) -> Frozen:
    """Return equal shares that sum to 1."""
    return Frozen([1 / count] * count)


def chosen(share: Frozen | None, count: int, n: int, rng: Rng) -> Any:
    """Draw n indices below `count`, with the given probabilities or equal ones."""
    if share is None:
        return rng.integers(count, size=n)
    return np.searchsorted(np.cumsum(share.array)[:-1], rng.random(n), side="right")


def name_of(function: Any) -> str:
    """Return a readable name of a callable, the same in every run."""
    if isinstance(function, functools.partial):
        bound = [*map(repr, function.args), *(f"{k}={v!r}" for k, v in function.keywords.items())]
        return f"partial({', '.join([name_of(function.func), *bound])})"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return str(name or f"{type(function).__qualname__}()").rpartition(".")[2]


def inside(drawn: Any, support: Any) -> Any:
    """Return drawn records brought into a support that a user gave: P is what lies in it."""
    if support is None:
        return drawn
    try:
        return records.convert(drawn, drawn, support)
    except (ValueError, TypeError) as error:
        raise SamplerError(f"The support={support!r} does not fit what is drawn: {error}.") from None


def loose(part: Any) -> Any:
    """Return a part of another sampler, or refuse one that is for a fixed number of records."""
    if hasattr(part, "positions"):
        raise SamplerError(f"{part!r} is a part of another sampler: put .fixed(size=...) at the very end.")
    return part


def copied(support: Any) -> Any:
    """Return a support that a caller may change."""
    if isinstance(support, dict):
        return {name: copied(inner) for name, inner in support.items()}
    if isinstance(support, tuple) and not domains.is_pair(support):
        return tuple(map(copied, support))
    return support


def shown(part: Any) -> str:
    """Return a sampler as code that methods can be called on."""
    text = repr(part)
    return f"as_sampler({text})" if text.startswith("scipy.stats.") else text


def with_coins(function: Callable[..., Any], first: Any, rng: Rng) -> Any:
    """Call a function (value) or (value, rng)."""
    return function(first, rng) if _takes_coins(function) else function(first)


@functools.lru_cache(maxsize=256)
def _takes_coins(function: Any) -> bool:
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [
        p for p in known if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) >= 2 or any(p.name == "rng" for p in known)
