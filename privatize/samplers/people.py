"""People with several rows each: a public distribution whose records are persons."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames
from privatize.data.clipping import objects
from privatize.data.columns import Column
from privatize.data.grouping import ranks_of
from privatize.data.persons import COUNTS, Counts, Persons, expanded
from privatize.data.support import unwrap
from privatize.data.units import UNDECLARED, Unit, as_unit
from privatize.errors import SamplerError, SettingsError
from privatize.planning.numbers import as_float
from privatize.samplers.base import Kind, Rng, Traits, kind, name_of, some, support_of
from privatize.samplers.change import has_columns
from privatize.samplers.changes import family_changes
from privatize.samplers.distribution import Distribution, as_part
from privatize.samplers.families import Family
from privatize.samplers.foreign import as_sampler, is_function, is_maker
from privatize.samplers.given import Support, show_support, value_of
from privatize.samplers.tables import Frame, _Table, unchecked
from privatize.samplers.values import choice, column_of

_FRAMES = ("pandas", "polars", "pyarrow", "dict")
_MOST = 10**6  # rows of a person, at most
_SEVERAL = 4  # rows of some person, from which on other ways of sorting rows are faster
_PART = 1000  # rows of persons who are sorted together, at least: for fewer, the calls take longer


def people(
    visit: Any,
    *,
    unit: str,
    rows: Any = None,
    person: Any = None,
    shared: float = 0.0,
    most: int | None = None,
    order: str | None = None,
    support: Mapping[str, Any] | None = None,
    frame: Frame | None = None,
) -> Distribution:
    """Draw persons who have several rows each: a record is a person with all their rows.

    The function gets one flat frame. Its first column is the unit's, with the numbers 0 to n - 1 in place of
    identifiers. Then come the columns that a person has once, and then those of a row.

    Parameters
    ----------
    visit : table, dict of columns, or callable
        The distribution of one row. In a dict of columns, as `table` takes them, functions may use the
        columns of `person`, too. Or a function ``(person, rng) -> rows`` that makes all rows of a person, as
        a dict of arrays, from a dict of what the person has once.
    unit : str
        The column of the data that identifies a person.
    rows : sampler of integers, or int
        The number of rows of a person, from 1; one number if all have as many. From 0 if all persons are
        declared: ``seal(..., persons=...)``.
    person : table, optional
        What a person has once, such as sex and year of birth: the same in all their rows.
    shared : float
        The share of the variance of a row that a person explains, from 0, where rows are independent given
        the person, to 1. A row is its person's typical row with probability √shared, and otherwise a new
        one, so two rows of a person have this correlation. The column `order` is not shared.
    most : int, optional
        How many rows of a person are used at most. By default the largest number that `rows` draws.
    order : str, optional
        The column that each person's rows are ordered by. By default their order is random.
    support : dict, optional
        What the columns that a function makes lie in, as for `privatize.samplers.dependent`.
    frame : {"pandas", "polars", "pyarrow", "dict"}, optional
        What is drawn. By default what `visit` draws.

    Examples
    --------
    >>> from privatize import samplers
    >>> visit = samplers.table(cost=samplers.uniform(0, 5000), day=samplers.integers(1, 365), frame="dict")
    >>> P = people(visit, unit="patient_id", rows=samplers.integers(1, 3), order="day")
    >>> P.draw(2, np.random.default_rng(3)).frame["patient_id"]
    array([0, 0, 0, 1])
    >>> P
    people(table(cost=uniform(0, 5000), day=integers(1, 365), frame='dict'), unit='patient_id',
    rows=integers(1, 3), order='day')
    """
    part = _visit(visit, rows, support, frame or "pandas")
    if isinstance(rows, int | np.integer) and not isinstance(rows, bool):
        rows = choice([int(rows)])
    numbers = "a number or a sampler of integers: integers(1, 12)"
    counts = None if rows is None else _part(rows, "rows", numbers)
    attributes = None if person is None else _attributes(person)
    share = _share(shared, rows)
    low, high = (1, None) if counts is None else _ends(counts)
    once = tuple(attributes.supports) if attributes is not None else ()
    if isinstance(unit, Unit):
        raise SamplerError(f"""people(unit={unit!r}): pass the name, unit={unit.name!r}. The number of rows
            and their order are most= and order= of people().""")
    try:
        made_unit = Unit(unit, high if most is None else most, order, once, empty=low == 0)
    except SettingsError as error:
        raise SamplerError(f"people(): {error}") from None
    chosen = (frame_of(part) if has_columns(part) else "pandas") if frame is None else frame
    if chosen not in _FRAMES:
        raise SamplerError(f"frame={chosen!r} is not one of {', '.join(map(repr, _FRAMES))}.")
    made = PeopleDistribution(part, made_unit, counts, attributes, share, cast("Frame", chosen))
    made.check()
    return made


def _part(given: Any, name: str, what: str) -> Any:
    """Return the sampler that an argument is, or refuse it."""
    try:
        return as_part(as_sampler(given))
    except SamplerError:
        raise SamplerError(f"people({name}={given!r}) is not {what}.") from None


def _attributes(person: Any) -> Any:
    """Return the table of what a person has once, or refuse it."""
    found = _part(person, "person", "a table: table(sex=..., born=...)")
    if not has_columns(found):
        raise SamplerError(f"person={person!r} is not a table: table(sex=..., born=integers(1920, 2010)).")
    return found


def _share(shared: Any, rows: Any) -> float:
    """Return the share of variance that a person explains, or refuse it."""
    share = as_float(shared)
    if not 0 <= share <= 1 or (share and rows is None):
        raise SamplerError(f"""shared={shared!r} is not a share of variance, from 0 to 1, of the rows of a
            table.""")
    return share


def _visit(visit: Any, rows: Any, support: Any, frame: Frame) -> Any:
    """Return the distribution of one row, or of all rows of a person, or refuse it."""
    if is_function(visit) and not is_maker(visit):
        if rows is not None:
            raise SamplerError(f"""rows={rows!r} has no use here: {name_of(visit)}() makes all rows of a
                person, so it decides how many there are. Leave it out.""")
        return Trajectory(visit, Support.of(None if support is None else dict(support)))
    part = unchecked(visit, frame) if isinstance(visit, Mapping) else as_part(as_sampler(visit))
    if not has_columns(part) or support is not None:
        raise SamplerError(f"""people({visit!r}, ...): the rows are not those of a table. Pass the
            distribution
            of one row, table(cost=..., day=...), or a function (person, rng) -> rows, with its support.""")
    if rows is None:
        raise SamplerError("""people() needs rows=, the public distribution of the number of rows of a person,
            for example rows=integers(1, 12).""")
    return part


def _ends(rows: Any) -> tuple[int, int]:
    """Return the smallest and the largest number of rows of a person."""
    ends, drawn = unwrap(support_of(rows))[0], np.asarray(some(rows, 100))
    values = getattr(ends, "values", ends if isinstance(ends, tuple) else ())
    fits = (
        len(values) > 0 and drawn.dtype.kind in "iu" and all(isinstance(each, int | float) for each in values)
    )
    low, high = (min(values), max(values)) if fits else (0, math.inf)
    if not fits or not 0 <= low <= high <= _MOST or high < 1:
        raise SamplerError(f"""rows={rows!r} draws no numbers of rows: they are integers between two bounds, 0
            or 1 and at most {_MOST:,}, such as integers(1, 12).""")
    return math.ceil(low), math.floor(high)


def frame_of(sampler: Any) -> str:
    """Return the kind of frame that a table, or what is made of one, draws."""
    while not isinstance(sampler, _Table):
        sampler = next(iter(sampler.parts()))
    return sampler.frame


@kind("trajectory", iid=False, stable=False)
class Trajectory(Kind):
    """All rows of a person, made by a function of what the person has once."""

    function: Callable[..., Any]
    given: Support | None

    @property
    def supports(self) -> dict[str, Any]:
        """What the values of each column lie in, as far as that is known."""
        return dict(value_of(self.given) or {})

    def drawn(self, persons: Mapping[str, Column], n: int, rng: Rng) -> tuple[Any, dict[str, Column]]:
        """Return the number of rows of each of n persons, and the columns of all rows."""
        values = {name: column.listed() for name, column in persons.items()}
        made = [self._rows({name: each[at] for name, each in values.items()}, rng) for at in range(n)]
        counts = np.array([len(next(iter(each.values()))) for each in made], dtype=np.int64)
        if n and not counts.all():
            raise SamplerError(f"""{name_of(self.function)}(person, rng) returned no rows. Everybody has at
                least one row here; to draw people without rows use a table, and rows=integers(0, 12).""")
        names = list(made[0]) if made else []
        if any(list(each) != names for each in made):
            raise SamplerError(f"""{name_of(self.function)}() returns other columns for other persons. It must
                return the same ones for all.""")
        return counts, {name: Column(np.concatenate([each[name] for each in made])) for name in names}

    def _rows(self, person: dict[str, Any], rng: Rng) -> dict[str, Any]:
        found = self.function(person, rng)
        if isinstance(found, list) and found and all(isinstance(row, dict) for row in found):
            found = {name: [row[name] for row in found] for name in found[0]}
        if not isinstance(found, Mapping) or not found:
            raise SamplerError(f"""{name_of(self.function)}(person, rng) returned a {type(found).__name__}. It
                must return the rows of one person: a dict of arrays, or a list of dicts.""")
        made = {str(name): np.asarray(values) for name, values in found.items()}
        if len({values.shape for values in made.values()}) > 1 or next(iter(made.values())).ndim != 1:
            raise SamplerError(f"""{name_of(self.function)}(person, rng) returned columns of different
                lengths: each must have one value for each row.""")
        return made

    def __repr__(self) -> str:
        return name_of(self.function)


@kind("people", iid=False)
class PeopleDistribution(Distribution):
    """Persons with several rows each."""

    visit: Any
    unit: Unit
    rows: Any
    person: Any
    shared: float
    frame: Frame

    def draw(self, n: int, rng: Rng) -> Any:
        """Return n persons."""
        return self.assemble(self.drawn(n, rng))

    def drawn(self, n: int, rng: Rng, wanted: tuple[str, ...] | None = None) -> dict[str, Column]:
        """Draw the columns of n persons: what they have once, the number of rows of each, and all rows."""
        del wanted
        found: dict[str, Column] = {} if self.person is None else dict(self.person.drawn(n, rng))
        if isinstance(self.visit, Trajectory):
            counts, visits = self.visit.drawn(found, n, rng)
            # In random order: that of private rows is not known.
            order = _shuffled(counts, rng)
            visits = {name: _at(column, order) for name, column in visits.items()}
            return {**found, COUNTS: Column(counts), **visits}
        counts = column_of(self.rows, n, rng).array().astype(np.int64)
        if counts.min(initial=0) < 0:
            raise SamplerError(f"rows={self.rows!r} drew a negative number of rows.")
        visits = self._visits(found, counts, rng)
        if self.shared:
            typical = self._visits(found, np.ones_like(counts), rng)
            same = rng.random(int(counts.sum())) < math.sqrt(self.shared)
            alike = (name for name in visits if name != self.unit.order)
            visits |= {name: _where(same, _repeated(typical[name], counts), visits[name]) for name in alike}
        return {**found, COUNTS: Column(counts), **visits}

    def _visits(self, persons: Mapping[str, Column], counts: Counts, rng: Rng) -> dict[str, Column]:
        """Draw the columns of all rows, given what persons have once, and the number of rows of each."""
        more: dict[str, Any] = {}
        if isinstance(self.visit, _Table) and self.visit.dependents():
            more["given"] = {name: _repeated(column, counts) for name, column in persons.items()}
        found: dict[str, Column] = self.visit.drawn(int(counts.sum()), rng, **more)
        return found

    def assemble(self, columns: dict[str, Column], *wanted: Any) -> Persons:
        """Return columns as persons."""
        del wanted
        counts, unit = columns[COUNTS].values, self.unit
        each = {name: column for name, column in columns.items() if name != COUNTS}
        flat = {name: _repeated(own, counts) if name in unit.once else own for name, own in each.items()}
        if unit.order is not None:
            order = _by_person(counts, _ranks(flat[unit.order]))
            # What a person has once is the same in all their rows, in any order.
            flat = {name: own if name in unit.once else _at(own, order) for name, own in flat.items()}
        if unit.most is not None and counts.max(initial=0) > unit.most:
            starts = np.cumsum(counts) - counts
            counts = np.minimum(counts, unit.most)
            flat = {name: _at(column, expanded(starts, counts)) for name, column in flat.items()}
        return Persons(unit, counts, frames.make(self.frame, flat))

    @property
    def supports(self) -> dict[str, Any]:
        """What the values of each column, and the number of rows, lie in."""
        once = {} if self.person is None else self.person.supports
        return {**once, COUNTS: None if self.rows is None else support_of(self.rows), **self.visit.supports}

    def _support(self) -> Any:
        return {name: support for name, support in self.supports.items() if name != COUNTS}

    @property
    def least(self) -> int:
        """The smallest number of rows that is drawn, as far as that is known."""
        return 1 if self.rows is None else _ends(self.rows)[0]

    def dependent(self) -> bool:
        """Tell whether a column of it is made from others by a function."""
        return any(isinstance(each, _Table) and each.dependents() for each in (self.visit, self.person))

    def check(self) -> None:
        """Refuse persons that cannot be drawn, and columns with the same name."""
        drawn = self.drawn(20, np.random.default_rng(0))
        once = [] if self.person is None else list(self.person.supports)
        visits = list(self.visit.supports)
        if isinstance(self.visit, Trajectory):
            persons = {name: drawn[name] for name in once}
            visits = list(self.visit.drawn(persons, 20, np.random.default_rng(0))[1])
        known = [self.unit.name, *once, *visits]
        twice = [name for name in known if known.count(name) > 1]
        if twice or COUNTS in known:
            raise SamplerError(f"""people(): the column {(twice or [COUNTS])[0]!r} is there twice. Rename
                one.""")
        if self.unit.order is not None and self.unit.order not in drawn:
            raise SamplerError(f"""people(order={self.unit.order!r}): there is no such column. The columns are
                {[name for name in drawn if name != COUNTS]!r}.""")
        some(self)

    def names(self) -> list[str] | None:
        """Return None: what it draws is no table of one row for each record."""
        return None

    def parts(self) -> Iterator[Any]:
        """Return the distributions of a row, of the number of rows, and of what a person has once."""
        yield from (part for part in (self.visit, self.rows, self.person) if part is not None)

    def parameters(self) -> dict[str, Any]:
        """Return what determines the law, by name; of the unit, what it consists of."""
        unit = {name: getattr(self.unit, name) for name in ("most", "order", "once", "empty")}
        return super().parameters() | unit | {"unit": self.unit.name}

    def own_traits(self) -> Traits:
        """Return its traits."""
        return replace(self.known, immutable=True)

    def family(self) -> Family:
        """Return a family around this P, with members whose persons have fewer, and more, rows."""
        members = [("P", self), *((change.words, self.changed(change)) for change in family_changes(self))]
        return Family.of([*members, *self._other_rows()], f"{self!r}.family()")

    def alternatives(self) -> Iterator[tuple[str, Distribution]]:
        """Yield the same P with persons whose rows are all alike: they do not average out."""
        if self.rows is not None and self.unit.most != 1 and self.shared < 1:
            yield "all rows of a person are alike", replace(self, shared=1.0)

    def _other_rows(self) -> Iterator[tuple[str, Distribution]]:
        """Yield the same P with another number of rows for each person, and with rows that are more alike."""
        if not isinstance(self.rows, Distribution):
            return
        yield from self.alternatives()
        if self.shared:
            yield "the rows of a person are independent", replace(self, shared=0.0)
        for change in family_changes(self.rows):
            if not change.added:
                words = change.words.replace("`value`", "the number of rows")
                yield words, replace(self, rows=self.rows.changed(change))

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        raise SamplerError(f"""{self!r} draws persons with several rows each. Change the distribution of a
            row, or of what a person has once, before you make people() of them.""")

    map = truncated = clip = __getitem__ = cast("Any", _refuse)

    def __repr__(self) -> str:
        given = [f"{self.visit!r}{show_support(getattr(self.visit, 'given', None))}"]
        given.append(f"unit={self.unit.name!r}")
        given += [] if self.rows is None else [f"rows={self.rows!r}"]
        given += [] if self.person is None else [f"person={self.person!r}"]
        given += [f"shared={self.shared!r}"] if self.shared else []
        usual = None if self.rows is None else _ends(self.rows)[1]
        given += [f"most={self.unit.most!r}"] if self.unit.most != usual else []
        given += [f"order={self.unit.order!r}"] if self.unit.order else []
        own = frame_of(self.visit) if has_columns(self.visit) else "pandas"
        given += [f"frame={self.frame!r}"] if self.frame != own else []
        return f"people({', '.join(given)})"


# --- columns ----------------------------------------------------------------------------------


def _at(column: Column, at: NDArray[np.intp]) -> Column:
    """Return the values of a column at some places; `take` is faster than an index."""
    missing = column.missing
    return column.having(column.values.take(at, axis=0), None if missing is None else missing.take(at))


def _repeated(column: Column, counts: Counts) -> Column:
    """Return a column with the value of each person in all their rows."""
    return column.having(
        column.values.repeat(counts), None if column.missing is None else column.missing.repeat(counts)
    )


def _where(which: NDArray[np.bool_], one: Column, other: Column) -> Column:
    """Return the values of one column in some rows, and those of another in all others."""
    missing = other.missing
    if one.missing is not None and other.missing is not None:
        missing = np.where(which, one.missing, other.missing)
    return other.having(np.where(which, one.values, other.values), missing)


def _shuffled(counts: NDArray[Any], rng: Rng) -> NDArray[np.intp]:
    """Return the places of all rows, with those of each person in random order."""
    slots = np.repeat(np.arange(len(counts)), counts)
    return np.lexsort((rng.random(len(slots)), slots))


def _by_person(counts: Counts, values: NDArray[Any]) -> NDArray[np.intp]:
    """Return the order of rows by person and then by value; equal ones stay in the order of drawing."""
    size, n, most = len(values), len(counts), int(counts.max(initial=0))
    several = most >= _SEVERAL
    if values.dtype.kind in "iumM" and size:
        numbers = values.astype(np.int64)
        low, high = int(numbers.min()), int(numbers.max())
        numbers -= low
        span, bits = high - low + 1, size.bit_length()
        if several and most * n == size and span << bits < 2**62:
            # All have as many rows: each person's by themselves, as numbers that end with their place.
            numbers <<= bits
            numbers |= np.arange(size)
            numbers.reshape(n, most).sort(axis=1)
            numbers &= (1 << bits) - 1
            return numbers.astype(np.intp, copy=False)
        together = min(2**16 // span, n)
        if several and together * size >= _PART * n:
            return _in_parts(counts, numbers, span, together)
        if several and max(span, n) <= 2**16:  # numpy sorts short integers faster, even twice
            order = numbers.astype(np.uint16).argsort(kind="stable")
            slots = np.arange(n, dtype=np.uint16).repeat(counts)
            return order.take(slots.take(order).argsort(kind="stable"))
        if span * (size + 1) < 2**62:  # one key is ten times as fast as two
            return np.argsort(np.arange(n).repeat(counts) * span + numbers, kind="stable")
    return np.lexsort((values, np.arange(n).repeat(counts)))


def _in_parts(counts: Counts, numbers: NDArray[np.int64], span: int, together: int) -> NDArray[np.intp]:
    """Return the order of rows by person and then by a number below `span`, some persons after the others.

    Persons are next to each other already. So few are sorted together that person and number make one integer
    of 16 bits, which numpy sorts faster than others: once here, and not twice as for all persons.
    """
    keys = (np.arange(len(counts)) % together * span).astype(np.uint16).repeat(counts)
    keys += numbers.astype(np.uint16)
    order, start = np.empty(len(keys), dtype=np.intp), 0
    for stop in [*counts.cumsum()[together - 1 : -1 : together].tolist(), len(keys)]:
        np.add(keys[start:stop].argsort(kind="stable"), start, out=order[start:stop])
        start = stop
    return order


def _ranks(column: Column) -> NDArray[Any]:
    """Return what the rows of a person are ordered by: values, with missing ones last."""
    if column.categories is None and column.missing is None and column.values.dtype.kind in "biuM":
        return column.values
    values = column.values if column.categories is None else objects(column.listed())
    return ranks_of(values, column.missing)


# --- which unit P, data and functions have ----------------------------------------------------


def unit_of(sampler: Any) -> Unit | None:
    """Return the unit of the persons that P draws; None if it is not known to draw persons."""
    if isinstance(sampler, PeopleDistribution):
        return sampler.unit
    if not isinstance(sampler, Kind) or sampler.tag not in ("perturbed", "fixed size", "family", "mixture"):
        return None
    return next((found for part in sampler.parts() if (found := unit_of(part)) is not None), None)


def declared_unit(given: Any, sampler: Any, what: str) -> Any:
    """Return the unit that was given, or P's; refuse two that differ.

    Parameters
    ----------
    given : str, Unit, None or UNDECLARED
        What the user passed as ``unit=``.
    sampler : Sampler or None
        P.
    what : str
        What has both, for errors.
    """
    unit = as_unit(given)
    if sampler is None:
        return unit
    own = unit_of(sampler)
    if unit is UNDECLARED:
        return UNDECLARED if own is None else own
    if own is None and unit is not None:
        raise SettingsError(f"""{what}(unit={unit.name!r}): P draws one row for each person, {sampler!r}. Let
            it draw people: samplers.people(P, unit={unit.name!r}, rows=samplers.integers(1, 12)).""")
    if (unit and unit.name) != (own and own.name):
        raise SettingsError(f"""{what}(unit={unit and unit.name!r}): P draws people by {own and own.name!r}.
            Leave unit= out, which is then P's.""")
    if unit is not None and unit not in (own, Unit(unit.name)):
        raise SettingsError(f"""{what}(unit={unit!r}): P says {own!r}. Where there is a P, the number of rows
            and their order are arguments of samplers.people(): set them there, and leave unit= out.""")
    return own
