"""Tables: columns drawn side by side, and projections of them."""

import keyword
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal

import numpy as np

from privatize.data import frames
from privatize.data import support as domains
from privatize.data.clipping import convert_values
from privatize.data.columns import Column
from privatize.data.persons import Persons
from privatize.errors import SamplerError
from privatize.samplers.base import Kind, Rng, Traits, kind, name_of, origin_of, some, support_of, with_rng
from privatize.samplers.distribution import Distribution, Projection, as_part
from privatize.samplers.foreign import as_sampler, is_function, is_maker
from privatize.samplers.given import Support, show_support, value_of
from privatize.samplers.values import column_of

Frame = Literal["pandas", "polars", "pyarrow", "dict", "records"]
_AROUND = ("perturbed", "fixed size", "family", "learned")  # what draws the columns of its first part
_FRAMES = ("pandas", "polars", "pyarrow", "dict", "records")


def table(
    columns: Mapping[str, Any] | None = None, /, *, frame: Frame = "pandas", **named: Any
) -> Distribution:
    """Draw records of several columns.

    Parameters
    ----------
    columns : mapping, optional
        Columns whose names are no Python names, or are "frame".
    frame : {"pandas", "polars", "pyarrow", "dict", "records"}
        What is drawn: a data frame, a dict of arrays, or a list of dicts.
    **named : samplers or callables
        One distribution for each column, in the order of the data's columns, independent of the others; or
        a function of the columns drawn so far, a dict of arrays, and perhaps of a generator:
        ``lambda columns, rng: ...`` (see `dependent`).

    Examples
    --------
    >>> from privatize.samplers import categorical, integers
    >>> P = table(age=integers(0, 120), sex=categorical(["F", "M"]), frame="dict")
    >>> P
    table(age=integers(0, 120), sex=categorical(['F', 'M']), frame='dict')
    >>> P.draw(2, np.random.default_rng(1))
    {'age': array([57, 61]), 'sex': array(['M', 'M'], dtype='<U1')}
    >>> P["age"]
    table(age=integers(0, 120), sex=categorical(['F', 'M']), frame='dict')['age']
    >>> P.support
    {'age': (0, 120), 'sex': OneOf(('F', 'M'), unknown='F')}
    >>> table({"mean radius": integers(5, 30)}, area=lambda columns: 3.14 * columns["mean radius"] ** 2)
    table({'mean radius': integers(5, 30), 'area': dependent(<lambda>)})
    """
    if columns is not None and not isinstance(columns, Mapping):
        raise SamplerError("table() takes its columns by name: table(age=..., sex=...), or a dict of them.")
    twice = sorted(set(columns or ()) & set(named))
    if twice:
        raise SamplerError(f"table(): the column {twice[0]!r} is given twice.")
    made = unchecked(dict(columns or {}) | named, frame)
    some(made)  # raises if nothing can be drawn
    return made


def unchecked(columns: Mapping[str, Any], frame: Frame) -> "_Table":
    """Return a table whose dependent columns may need others than its own, so that nothing is drawn yet."""
    if not columns:
        raise SamplerError("table() has no columns: table(age=integers(0, 120), ...).")
    if frame not in _FRAMES:
        raise SamplerError(f"frame={frame!r} is not one of {', '.join(map(repr, _FRAMES))}.")
    return _Table(tuple((name, _column(name, value)) for name, value in columns.items()), frame)


def _column(name: Any, value: Any) -> Any:
    """Return the sampler or the dependent column that makes a column, or refuse it."""
    if not isinstance(name, str):
        raise SamplerError(f"""table(): the column name {name!r} is not a string. Rename the data's columns
            (data.columns.astype(str)), or draw arrays, which take any names: uniform(0, 1, size=3).""")
    if isinstance(value, Dependent):
        return value
    if is_function(value) and not is_maker(value):
        return dependent(value)
    try:
        return as_part(as_sampler(value))
    except SamplerError as error:
        raise SamplerError(f"table(): the column {name!r}: {error}") from None


def dependent(function: Callable[..., Any], support: Any = None) -> "Dependent":
    """Make a column of a table from the columns before it.

    Parameters
    ----------
    function : callable
        ``function(columns)`` or ``function(columns, rng)``: gets a dict of the arrays drawn so far, and
        returns an array, each value made from the values of the same record alone.
    support : optional
        A pair of bounds, or a list of values. What the function returns is converted to it.

    Examples
    --------
    >>> from privatize.samplers import integers, table
    >>> def earned(columns, rng):
    ...     return rng.normal(500 * columns["age"], 9000)
    >>> table(age=integers(18, 70), income=dependent(earned, support=(0, 100_000)))
    table(age=integers(18, 70), income=dependent(earned, support=(0, 100000)))
    """
    if not callable(function):
        raise SamplerError(f"dependent({function!r}) needs a function of the columns drawn so far.")
    return Dependent(function, Support.of(support))


@kind("dependent column", iid=False, stable=False)
class Dependent(Kind):
    """A column that is made from those before it."""

    function: Callable[..., Any]
    given: Support | None

    @property
    def support(self) -> Any:
        """What its values lie in."""
        return value_of(self.given)

    def column(self, before: dict[str, Any], n: int, rng: Rng) -> Column:
        """Return n values, made from the columns before."""
        found = with_rng(self.function, before, rng)
        found = found if isinstance(found, Column) else Column(np.asarray(found))
        if found.values.shape != (n,):
            raise SamplerError(f"""The dependent column {name_of(self.function)} has shape
                {found.values.shape} for {n} records: it must return an array with one value for each.""")
        if self.given is None or found.categories is not None:
            return found
        values = found.values
        return replace(found, values=convert_values(values, values.dtype, self.support, found.missing))

    def __repr__(self) -> str:
        return f"dependent({name_of(self.function)}{show_support(self.given)})"


@kind("table")
class _Table(Distribution):
    columns: tuple[tuple[str, Any], ...]
    frame: Frame

    def draw(self, n: int, rng: Rng) -> Any:
        return self.assemble(self.drawn(n, rng))

    def skip(self, n: int, rng: Rng) -> None:
        """Use a generator as `draw` does."""
        self.drawn(n, rng)

    def assemble(self, columns: dict[str, Column], wanted: str | list[str] | None = None) -> Any:
        """Return columns, or the wanted ones, in the container that it draws."""
        if isinstance(wanted, str) and self.frame in ("dict", "pyarrow"):
            return columns[wanted].array()
        made = frames.make(self.frame, columns)
        return made if wanted is None else frames.select(made, wanted)

    @property
    def supports(self) -> dict[str, Any]:
        """What the values of each column lie in."""
        return {name: support_of(part) for name, part in self.columns}

    def drawn(
        self,
        n: int,
        rng: Rng,
        wanted: tuple[str, ...] | None = None,
        given: Mapping[str, Column] | None = None,
    ) -> dict[str, Column]:
        """Draw the wanted columns, and others only if a wanted one may be made from them, or from `given`."""
        dependents = self.dependents()
        if not dependents if wanted is None else dependents.isdisjoint(wanted):
            drawn = self.columns if wanted is None else [own for own in self.columns if own[0] in wanted]
            found = {name: column_of(part, n, rng) for name, part in drawn}
        else:
            found, arrays = {}, {name: _read_only(column) for name, column in (given or {}).items()}
            for name, part in self.columns:
                made = name in dependents
                found[name] = part.column(dict(arrays), n, rng) if made else column_of(part, n, rng)
                arrays[name] = _read_only(found[name])
        return found if wanted is None else {name: found[name] for name in wanted}

    def dependents(self) -> set[str]:
        """Return the names of the columns that are made from others."""
        return {name for name, part in self.columns if isinstance(part, Dependent)}

    def names(self) -> list[str] | None:
        return [name for name, _ in self.columns]

    def own_traits(self) -> Traits:
        return replace(self.known, immutable=True)

    def parts(self) -> Iterator[Any]:
        for _, part in self.columns:
            yield part

    def _support(self) -> Any:
        return self.supports

    def __repr__(self) -> str:
        frame = "" if self.frame == "pandas" else f"frame={self.frame!r}"
        if all(n.isidentifier() and n != "frame" and not keyword.iskeyword(n) for n, _ in self.columns):
            inside = ", ".join(f"{name}={part!r}" for name, part in self.columns)
        else:
            inside = "{" + ", ".join(f"{name!r}: {part!r}" for name, part in self.columns) + "}"
        return f"table({', '.join(filter(None, (inside, frame)))})"


def _read_only(column: Column) -> Any:
    """Return a column as an array that a dependent column cannot change."""
    found = column.array().view()
    found.setflags(write=False)
    return found


def table_names(sampler: Any) -> tuple[str, ...]:
    """Return the names of the columns that P draws as a table, without drawing; none for all others."""
    if isinstance(sampler, Projection):
        return sampler.columns if sampler.several else ()
    origin = next(iter(sampler.parts()), None) if getattr(sampler, "tag", "") in _AROUND else sampler
    if origin is not sampler:
        return table_names(origin)
    return tuple(name for name, _ in sampler.columns) if isinstance(sampler, _Table) else ()


def columns_of(sampler: Any, drawn: Any) -> tuple[str, ...]:
    """Return the names of all columns of P, also of those that a sampler of some columns does not draw.

    Parameters
    ----------
    sampler : Sampler
        P, or columns of it.
    drawn : dataset
        What the sampler has drawn.
    """
    origin = origin_of(sampler)
    if isinstance(origin, _Table):
        return tuple(name for name, _ in origin.columns)
    if origin is not sampler:
        drawn = some(origin)
    return tuple(dict.fromkeys(str(name) for name in _every_name(drawn) if name is not None))


def _every_name(drawn: Any) -> Iterator[Any]:
    """Iterate over all names in a dataset: of columns, of their levels and fields, and of a pandas index."""
    if type(drawn) is Persons:
        yield from (drawn.unit.name, *_every_name(drawn.rows))
    elif frames.kind(drawn):
        for name in frames.names(drawn):
            yield name
            yield from name if isinstance(name, tuple) else ()  # a name of several levels
        yield from frames.index_names(drawn)
    elif isinstance(drawn, dict):
        yield from drawn
        for part in drawn.values():
            yield from _every_name(part)
    elif isinstance(drawn, tuple):
        yield from getattr(drawn, "_fields", ())
        for part in drawn:
            yield from _every_name(part)
    elif isinstance(drawn, list):
        yield from _every_name(tuple(drawn[:1]))  # all records have the same fields
    elif isinstance(drawn, np.ndarray | np.void):
        yield from _fields(drawn.dtype)
    elif is_dataclass(drawn):
        yield from _every_name({each.name: getattr(drawn, each.name, None) for each in fields(drawn)})


def _fields(dtype: Any) -> Iterator[str]:
    """Iterate over the names of the fields of a structured dtype, at any depth."""
    for name in dtype.base.names or ():
        yield name
        yield from _fields(dtype.base[name])


def values_of(sampler: Any) -> tuple[frozenset[str], ...]:
    """Return the values, as strings, of each column of P that has fixed ones."""
    found = support_of(origin_of(sampler))
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, tuple) else (found,)
    inner = (part.inner if isinstance(part, domains.Maybe) else part for part in parts)
    return tuple(frozenset(map(str, part.values)) for part in inner if isinstance(part, domains.OneOf))
