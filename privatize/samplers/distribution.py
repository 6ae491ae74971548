"""The base class of the library's samplers, and the distributions that its methods make."""

import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np

from privatize.data import frames
from privatize.data import support as domains
from privatize.data.clipping import convert_numbers
from privatize.data.columns import Column
from privatize.errors import DataError, SamplerError
from privatize.planning.numbers import as_integer
from privatize.samplers.alone import check_alone, number_by_number
from privatize.samplers.base import KINDS, Kind, Rng, Traits, draw, kind, name_of, some
from privatize.samplers.change import Change, drawn_by, fitting, has_columns, support_for
from privatize.samplers.changes import family_changes
from privatize.samplers.describing import Description, describe
from privatize.samplers.families import Family
from privatize.samplers.given import Support, inside, show_support, value_of
from privatize.samplers.parameters import Frozen, accepted, ends_for, show


class Distribution(Kind, abc.ABC):
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
        return domains.copied(self._support())

    def _support(self) -> Any:
        return None

    def column(self, n: int, rng: np.random.Generator) -> Column:
        """Return n values for a column of a table."""
        drawn = draw(self, n, rng)
        usual = type(drawn) is np.ndarray and drawn.ndim == 1
        return Column(drawn) if usual else as_column(self, drawn, n)

    def names(self) -> list[str] | None:
        """Return the names of the columns that it draws, or None if it draws no table."""
        drawn = some(self)
        form = frames.kind(drawn)
        if isinstance(drawn, dict):
            return list(drawn)
        if form is not None and form[0] == "frame":
            return frames.names(drawn)
        return list(drawn[0]) if isinstance(drawn, list) and isinstance(drawn[0], dict) else None

    def select(self, n: int, rng: np.random.Generator, wanted: str | list[str]) -> Any:
        """Return some columns of n records, in the container that is drawn."""
        if has_columns(self):
            names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
            return self.assemble(self.drawn(n, rng, names), wanted)
        return frames.select(self.draw(n, rng), wanted)

    def select_column(self, n: int, rng: np.random.Generator, wanted: str) -> Column:
        """Return n values of one column, for a table."""
        if has_columns(self):
            return cast("Column", self.drawn(n, rng, (wanted,))[wanted])
        return as_column(self, self.select(n, rng, wanted), n)

    def narrowed(self, low: Frozen, high: Frozen) -> "Distribution":
        """Return the same distribution, restricted to a box."""
        return _Truncated(self, low, high)

    def moments(self) -> tuple[Any, Any] | None:
        """Return mean and standard deviation of every number if these determine it: uniform, normal."""
        return None

    # -- distributions made from this one --

    def map(self, function: Callable[[Any], Any], support: Any = None) -> "Distribution":
        """Return the distribution of what a function makes of the records.

        Parameters
        ----------
        function : callable
            Gets n records and returns n records, each made from one record alone.
        support : optional
            What the returned records lie in, as for `privatize.samplers.from_function`.

        Examples
        --------
        >>> from privatize import samplers
        >>> samplers.normal(3, 1).map(np.exp, support=(0, np.inf))
        normal(3, 1).map(exp, support=(0, inf))
        """
        if not callable(function):
            raise SamplerError(f"map({function!r}) needs a function of n records that returns n.")
        made = _Mapped(self, function, Support.of(support))
        check_alone(self, function)
        return made

    def truncated(self, low: Any = None, high: Any = None) -> "Distribution":
        """Return the same distribution, restricted to records between two bounds.

        Examples
        --------
        >>> from privatize import samplers
        >>> samplers.uniform(0, 100).truncated(18)
        uniform(18, 100)
        """
        ends = ends_for(self, "truncated", low, high)
        if not self.independent:
            raise SamplerError(f"""{self!r} draws records that share a parameter, and a record that is drawn
                again would have another one. Truncate in its likelihood.""")
        made = _own_kind(self).narrowed(self, *ends)
        some(made, 10)  # raises if nothing can be drawn
        return made

    def clip(self, low: Any = None, high: Any = None) -> "Distribution":
        """Return the distribution of the records moved to the nearest of two bounds, if they are outside.

        Examples
        --------
        >>> from privatize import samplers
        >>> samplers.normal(0, 1).clip(-2, 2)
        normal(0, 1).clip(-2, 2)
        """
        return _Clipped(self, *ends_for(self, "clip", low, high))

    def changed(self, change: Change) -> "Distribution":
        """Return the distribution of changed records: another P with the same support.

        `family` and the stress test make such changes, see `privatize.samplers.Change`.

        Examples
        --------
        >>> from privatize import samplers
        >>> samplers.uniform(0, 100).changed(samplers.Change(spread=[("value", 0.5, 40, False)])).support
        (0.0, 100.0)
        """
        return Perturbed(self, fitting(change, self))

    def family(self) -> Family:
        """Return a family around this P: what data may look like that is a little different from it.

        Its members are P itself; all numbers and dates at half, and at twice, their spread around the median
        (clipped into the support); half the share of a category, one category of each column at a time and
        all columns at once, so that the longest column decides (8 at most: further ones share a member); more
        zeros and missing values, where the support has them. Each member is calibrated: a family of 12 costs
        as much as 12 P. A mixture of the *records* of two members is not covered.

        Examples
        --------
        >>> from privatize.samplers import categorical, table, uniform
        >>> family = table(carat=uniform(0.2, 5), cut=categorical(["Fair", "Ideal"])).family()
        >>> print(family)
        a family of 5 P
          0  P: table(carat=uniform(0.2, 5), cut=categorical(['Fair', 'Ideal']))
          1  `carat` is half as spread out
          2  `carat` is twice as spread out
          3  'Fair' of `cut` is half as frequent
          4  'Ideal' of `cut` is half as frequent
        >>> len(family.without(4).adding(table(carat=uniform(0.2, 1), cut=categorical(["Fair", "Ideal"]))))
        5
        """
        if type(self) not in KINDS:
            raise SamplerError(f"""{self!r} is not one of the library's own samplers, so it is not known how
                it may be changed. Pass a list of samplers of your own: sampler=[P1, P2].""")
        members = [("P", self), *((change.words, self.changed(change)) for change in family_changes(self))]
        return Family.of(members, f"{_show(self)}.family()")

    def alternatives(self) -> Iterator[tuple[str, "Distribution"]]:
        """Yield other P, in words, that a stress test tries beside changes of columns."""
        yield from ()

    def fixed(self, *, size: int) -> "Distribution":
        """Return the same distribution for data that grows, of which `size` records are used.

        Whatever the number of private records, the function gets those `size` of them that a fixed public
        permutation of the positions selects, so that one calibration is enough.

        Examples
        --------
        >>> from privatize import samplers
        >>> samplers.uniform(0, 100).fixed(size=1000)
        uniform(0, 100).fixed(size=1000)
        """
        count = as_integer(size)
        if not 1 <= count < 2**53:
            raise SamplerError(f"fixed(size={size!r}): the number of records must be an integer >= 1.")
        return Fixed(self, count)

    def __getitem__(self, columns: str | list[str]) -> "Distribution":
        """Return the distribution of one column, or of several."""
        known, support = names_of(self), self.support
        if known is None:
            raise SamplerError(f"{self!r} draws no table, so it has no column {columns!r}.")
        wanted = columns if isinstance(columns, list) else [columns]
        if any(name not in known for name in wanted) or not wanted or len(set(wanted)) < len(wanted):
            raise SamplerError(f"""P[{columns!r}]: the columns are {known!r}. Name one, or a list of different
                ones.""")
        several = isinstance(columns, list)
        own = {name: support.get(name) for name in wanted} if isinstance(support, dict) else None
        part = own if several or own is None else own[wanted[0]]
        return Projection(self, tuple(wanted), several, part)

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
          value                        [0, 100]: 49.94 ± 28.91; 90% in [4.988, 94.99], median 50.08
        """
        return describe(self, n, seed)


class Supported(Distribution):
    """A distribution with the support that a user gave."""

    given: Support | None

    def _support(self) -> Any:
        return value_of(self.given)


def _own_kind(sampler: Distribution) -> type[Distribution]:
    """Return the class whose shortcuts hold for a sampler: a user's subclass may draw in another way."""
    return type(sampler) if type(sampler) in KINDS else Distribution


def as_column(sampler: Any, drawn: Any, n: int) -> Column:
    """Return what a sampler drew as a column of a table, or refuse."""
    values = np.asarray(drawn)
    if values.shape != (n,):
        raise SamplerError(f"{sampler!r} draws records of several numbers, which fit no column of a table.")
    return Column(values)


def names_of(sampler: Distribution) -> list[str] | None:
    """Return the names of the columns that a sampler draws, or None if it draws no table."""
    return _own_kind(sampler).names(sampler)


def moments_of(sampler: Any) -> tuple[Any, Any] | None:
    """Return mean and standard deviation of every number of a uniform, or of a normal without bounds."""
    return _own_kind(sampler).moments(sampler) if isinstance(sampler, Distribution) else None


def as_part(part: Any) -> Any:
    """Return a sampler that becomes part of another one; refuse one of fixed size, and a family."""
    if isinstance(part, Family):
        raise SamplerError(f"""{part!r} is a part of another sampler. Make the family at the very end, of
            samplers that are complete: any_of(P1, P2, ...).""")
    if isinstance(part, Fixed):
        raise SamplerError(f"{part!r} is a part of another sampler: put .fixed(size=...) at the very end.")
    return part


def _show(part: Any) -> str:
    """Return a sampler as code that methods can be called on."""
    text = repr(part)
    return f"as_sampler({text})" if text.startswith("scipy.stats.") else text


# --- mapped -----------------------------------------------------------------------------------


@kind("mapped", "inner", stable=False)  # the function may change
class _Mapped(Supported):
    inner: Distribution
    function: Callable[[Any], Any]
    given: Support | None

    def draw(self, n: int, rng: Rng) -> Any:
        return inside(self.function(self.inner.draw(n, rng)), self.given)

    def own_traits(self) -> Traits:
        alone = number_by_number(self.function)
        return replace(self.known, iid=alone, streamable=alone)

    def __repr__(self) -> str:
        return f"{_show(self.inner)}.map({name_of(self.function)}{show_support(self.given)})"


# --- between bounds ---------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class _Bounded(Distribution):
    """A distribution between two bounds, made by `truncated` or `clip`."""

    method: ClassVar[str]
    inner: Distribution
    low: Frozen
    high: Frozen

    def parameters(self) -> dict[str, Any]:
        return {"inner": self.inner, "low": self.low.short, "high": self.high.short}

    def _support(self) -> Any:
        return self._within(self.inner.support)

    def _within(self, support: Any) -> Any:
        if isinstance(support, domains.Maybe):
            return domains.Maybe(self._within(support.inner))
        if not domains.is_pair(support):
            return self.low.end, self.high.end
        return tuple(Frozen(np.clip(end, self.low.array, self.high.array)).end for end in support)

    def __repr__(self) -> str:
        return f"{_show(self.inner)}.{self.method}({', '.join(show((self.low, self.high), named=False))})"


@kind("truncated", "inner")
class _Truncated(_Bounded):
    method = "truncated"

    def draw(self, n: int, rng: Rng) -> Any:
        return accepted(lambda size: self.inner.draw(size, rng), (self.low, self.high), n, self)


@kind("clipped", "inner")
class _Clipped(_Bounded):
    method = "clip"

    def draw(self, n: int, rng: Rng) -> Any:
        drawn = self.inner.draw(n, rng)
        return convert_numbers(drawn, drawn.dtype, domains.Maybe((self.low.array, self.high.array)))


# --- changed ----------------------------------------------------------------------------------


@kind("perturbed", "inner", "change", streamable=True, immutable=True)
class Perturbed(Distribution):
    """The same distribution, with another spread, other shares, or more zeros and missing values."""

    inner: Distribution
    change: Change

    def draw(self, n: int, rng: Rng) -> Any:
        """Return a dataset of n records."""
        found = self.drawn(n, rng)
        return self.assemble(found) if has_columns(self) else found

    def drawn(self, n: int, rng: Rng, wanted: tuple[str, ...] | None = None) -> Any:
        """Draw the columns of n records, or the wanted ones, if P can."""
        found = self.change.draw(lambda size: drawn_by(self.inner, size, rng), self.supports, n, rng)
        return found if wanted is None else {name: found[name] for name in wanted}

    def assemble(self, *columns: Any) -> Any:
        """Return columns, or the wanted ones, in the container that it draws."""
        return cast("Any", self.inner).assemble(*columns)

    @property
    def supports(self) -> Any:
        """What the values of each column lie in."""
        return support_for(self.inner)

    def column(self, n: int, rng: Rng) -> Column:
        """Return n values for a column of a table."""
        label, column = min(self.change.columns), _own_kind(self.inner).column
        support = {label: self.inner.support}
        found = self.change.draw(lambda k: {label: column(self.inner, k, rng)}, support, n, rng)
        return cast("Column", found[label])

    def _support(self) -> Any:
        return self.inner.support

    def __repr__(self) -> str:
        return f"{_show(self.inner)}.changed({self.change!r})"


# --- for data that grows ----------------------------------------------------------------------


def _and_fixed(name: str) -> Any:
    """Return the method of a P of fixed size that makes another P, of the same size, as P's own does."""

    def made(self: "Fixed", *args: Any, **kwargs: Any) -> Any:
        return getattr(self.inner, name)(*args, **kwargs).fixed(size=self.size)

    return made


@kind("fixed size", "inner", view=True)
class Fixed(Distribution):
    """The same distribution for data of which a fixed number of records is used."""

    inner: Distribution
    size: int

    def draw(self, n: int, rng: Rng) -> Any:
        """Return a dataset of n records."""
        return self.inner.draw(n, rng)

    def own_traits(self) -> Traits:
        """Return its traits, with the number of records that are used."""
        return replace(self.known, size=self.size)

    def _support(self) -> Any:
        return self.inner.support

    def positions(self, n: int) -> Any:
        """Return which of n records are used: those first in a fixed public order of all positions.

        Examples
        --------
        >>> from privatize.samplers import uniform
        >>> uniform(0, 1).fixed(size=3).positions(10)
        array([0, 2, 5])
        """
        if n < self.size:
            raise DataError(f"The dataset has {n} records, and fixed(size={self.size}) uses {self.size}.")
        rank = np.random.Generator(np.random.PCG64(20170806)).random(n)
        return np.sort(np.argpartition(rank, self.size - 1)[: self.size])

    map, truncated, clip = _and_fixed("map"), _and_fixed("truncated"), _and_fixed("clip")
    changed, family, __getitem__ = _and_fixed("changed"), _and_fixed("family"), _and_fixed("__getitem__")

    def fixed(self, *, size: int) -> Distribution:
        """Return the same for another number of records."""
        return self.inner.fixed(size=size)

    def __repr__(self) -> str:
        return f"{_show(self.inner)}.fixed(size={self.size})"


# --- columns ----------------------------------------------------------------------------------


@kind("columns", "parent", view=True)
class Projection(Distribution):
    """One column, or several, of a table."""

    parent: Distribution
    columns: tuple[str, ...]
    several: bool
    own: Any = field(default=None, compare=False)

    @property
    def wanted(self) -> Any:
        """One name, or a list of them."""
        return list(self.columns) if self.several else self.columns[0]

    def draw(self, n: int, rng: Rng) -> Any:
        """Return a dataset of n records."""
        return _own_kind(self.parent).select(self.parent, n, rng, self.wanted)

    def drawn(self, n: int, rng: Rng, wanted: tuple[str, ...] | None = None) -> Any:
        """Draw the columns of n records, or the wanted ones, if the table can."""
        return cast("Any", self.parent).drawn(n, rng, wanted or self.columns)

    def assemble(self, columns: dict[str, Column], wanted: Any = None) -> Any:
        """Return columns, or the wanted ones, in the container that it draws."""
        return cast("Any", self.parent).assemble(columns, self.wanted if wanted is None else wanted)

    @property
    def supports(self) -> dict[str, Any]:
        """What the values of each column lie in."""
        return {name: support_for(self.parent)[name] for name in self.columns}

    def column(self, n: int, rng: Rng) -> Column:
        """Return n values for a column of a table."""
        if self.several:
            return super().column(n, rng)  # raises
        return _own_kind(self.parent).select_column(self.parent, n, rng, self.columns[0])

    def _support(self) -> Any:
        return self.own

    def __repr__(self) -> str:
        return f"{_show(self.parent)}[{self.wanted!r}]"
