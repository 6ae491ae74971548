"""Sealed data, which only private functions can open: a guard against accidents, not attackers."""

import functools
import secrets
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, ParamSpec, TypeVar

import numpy as np

from privatize.budgets.budget import Budget
from privatize.budgets.charges import check_text
from privatize.budgets.partition import Part
from privatize.data import records
from privatize.data.grouping import check_rows, group, identifier_kind, is_identifier, number_of_persons
from privatize.data.persons import Persons, names_of
from privatize.data.units import UNDECLARED, Unit, identifiers
from privatize.errors import (
    DataError,
    PrivatizeError,
    PrivatizeWarning,
    SealedError,
    SettingsError,
    UnitWarning,
)
from privatize.identity.library import Opaque, outside
from privatize.samplers import as_sampler
from privatize.samplers.people import declared_unit

P = ParamSpec("P")
R = TypeVar("R")

# The data, by the id of its seal. It is no attribute: nothing that looks through attributes finds it.
_CONTENT: dict[int, Any] = {}
# Of sealed people with several rows: who they are, a secret key, and what was made of them last.
_PERSONS: dict[int, "_People"] = {}


class _NoAttribute(SealedError, AttributeError):  # noqa: N818 - it is a SealedError
    """A SealedError that `hasattr` takes for a missing attribute."""

    def __reduce__(self) -> tuple[Any, ...]:
        return SealedError, (str(self),)


# Users need not know the difference, so both errors have one name.
_NoAttribute.__name__ = _NoAttribute.__qualname__ = "SealedError"
_NoAttribute.__module__ = SealedError.__module__


class Sealed:
    """Data that only private functions can open, as their dataset argument. Made by `seal`.

    Its public facts are its name, version, type, number of records and schema. Everything else raises
    `privatize.errors.SealedError`. It is a guard against accidents, not against an attacker inside
    the process.

    Attributes
    ----------
    name : str
        Name of the dataset.
    version : str or None
        Version of the dataset.
    n : int
        Number of records: of persons, if these have several rows each.
    unit : Unit or None
        Which column identifies persons; None if every row is another person.
    schema
        Containers, names, dtypes and shapes, as JSON, without the lengths of strings.
    """

    __slots__ = ("__weakref__", "_budget", "_kind", "_sampler", "n", "name", "schema", "unit", "version")
    opaque: ClassVar[bool] = True  # fingerprints do not look inside
    name: str
    version: str | None
    n: int
    schema: Any
    unit: Unit | None

    def __init__(
        self, data: Any, name: str, version: str | None, sampler: Any, budget: Any, people: "_People | None"
    ) -> None:
        schema = records.describe(data).to_json(public=True)
        n = records.count(data) if people is None else number_of_persons(data, people.unit, people.persons)
        facts: dict[str, Any] = {"name": name, "version": version, "n": n, "schema": schema}
        facts |= {"_kind": _type(data), "_sampler": sampler, "_budget": budget}
        facts |= {"unit": people and people.unit}
        for slot, value in facts.items():
            object.__setattr__(self, slot, value)  # the class refuses to set attributes
        _CONTENT[id(self)] = data
        if people is not None:
            _PERSONS[id(self)] = people

    def __del__(self) -> None:
        content = globals().get("_CONTENT")  # None or missing when Python ends
        if content is not None:
            content.pop(id(self), None)
            globals().get("_PERSONS", {}).pop(id(self), None)

    def __repr__(self) -> str:
        by = "" if self.unit is None else f" persons by {self.unit.name!r}"
        return f"<sealed {declared(self)}: {self._kind}, n={self.n}{by}>"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __getattr__(self, name: str) -> NoReturn:
        if name in Sealed.__slots__:  # __init__ has not finished
            raise AttributeError(name)
        _refuse(self, f"its attribute {name!r} was read", _NoAttribute)


def _type(data: Any) -> str:
    kind = type(data)
    module = kind.__module__.partition(".")[0]
    return kind.__name__ if module == "builtins" else f"{module} {kind.__name__}"


def _refuse(sealed: Sealed, what: str, kind: type[SealedError] = SealedError) -> NoReturn:
    raise kind(
        f"The data {sealed.name!r} is sealed, and {what}. Only private functions can open it, as their "
        f"dataset: decorate a function with @privatize(...) and pass it the sealed data."
    )


def _refuse_len(sealed: Sealed) -> NoReturn:
    _refuse(sealed, "len() was tried. The number of records is public, as .n")


def _refusing(operation: str) -> Callable[..., NoReturn]:
    def refuse(self: Sealed, *args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        _refuse(self, f"{operation} was tried")

    return refuse


_OPERATIONS = {
    "indexing": "getitem setitem delitem contains",
    "iterating": "iter next reversed",
    "arithmetic": (
        "add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv ifloordiv "
        "mod rmod imod pow rpow ipow matmul rmatmul imatmul divmod rdivmod neg pos abs invert round trunc "
        "floor ceil and rand iand or ror ior xor rxor ixor lshift rlshift ilshift rshift rrshift irshift"
    ),
    "comparing": "eq ne lt le gt ge hash bool",
    "converting": "int float complex index bytes fspath",
    "pickling or copying": "reduce reduce_ex getstate copy deepcopy",
    "changing it": "setattr delattr",
    "calling it": "call enter exit",
    "numpy's protocol": "array array_ufunc array_function",
    "a data frame's protocol": (
        "dataframe dataframe_consortium_standard arrow_c_stream arrow_c_array arrow_c_schema arrow_array "
        "dlpack dlpack_device narwhals_dataframe narwhals_series dir sizeof"
    ),
}
for _operation, _names in _OPERATIONS.items():
    for _name in _names.split():
        setattr(Sealed, f"__{_name}__", _refusing(_operation))
Sealed.__len__ = _refuse_len  # type: ignore[attr-defined]


def seal(
    data: Any,
    *,
    name: str,
    version: str | None = None,
    sampler: Any = None,
    budget: Budget | Part | None = None,
    unit: Any = UNDECLARED,
    persons: Any = None,
) -> Sealed:
    """Seal data, so that nothing but private functions can open it.

    Parameters
    ----------
    data : dataset
        Anything that private functions take.
    name : str
        Declares which people these are. The same name and version mean the same data.
    version : str, optional
        Distinguishes states of the data.
    sampler : Sampler, optional
        P, for functions that are decorated without one.
    budget : Budget, optional
        What every answer about this data is charged to.
    unit : str, Unit or None, optional
        The column that identifies a person, if people have several rows each; None says that every row is
        another person. By default that of P.
    persons : iterable, optional
        The identifiers of all persons, if some may have no rows. Rows of others are left out.

    Examples
    --------
    >>> import numpy as np
    >>> ages = seal(np.array([31.0, 62.0, 45.0]), name="staff", version="2026")
    >>> ages
    <sealed 'staff' version '2026': numpy ndarray, n=3>
    >>> ages.mean()
    Traceback (most recent call last):
        ...
    privatize.errors.SealedError: The data 'staff' is sealed, and its attribute 'mean' was read. ...
    """
    _check_names(name, version)
    if hidden_in(data, 1):
        raise SettingsError("seal(): the data, or a part of it, is sealed already.")
    if budget is not None and not isinstance(budget, Budget | Part):
        raise SettingsError(f"seal(budget=...): a {type(budget).__name__} is not a Budget.")
    chosen = None if sampler is None else as_sampler(sampler)
    failure: PrivatizeError | PrivatizeWarning | None = None
    people = None
    try:
        people = _people(data, declared_unit(unit, chosen, "seal"), persons, budget, chosen)
        return Sealed(data, name, version, chosen, budget, people)
    except (PrivatizeError, PrivatizeWarning) as error:
        failure = error.with_traceback(None)
        failure.__context__ = None
    except Exception:  # whatever a record's class raises could quote it
        failure = DataError("""seal(): the data could not be read: its columns, or the identifiers of its
            people. What went wrong is not shown, since it could give the data away.""")
    finally:
        del data, persons, people  # the frames of the error's traceback must not have them
    raise failure


@dataclass(frozen=True, eq=False, repr=False)
class _People:
    """Who the people with several rows are: private, so it is in a table of its own."""

    unit: Unit
    persons: tuple[Any, ...] | None
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    made: dict[tuple[Any, ...], Persons] = field(default_factory=dict)

    def grouped(self, data: Any, unit: Unit, key: bytes, columns: tuple[Any, ...]) -> Persons:
        """Return the persons of the data; they are made once, since that takes longer than most answers."""
        at = unit, key, columns
        found = self.made.get(at)
        if found is None:
            found = group(data, unit, key, self.persons, columns)
            self.made.clear()
            self.made[at] = found
        return found


def _people(data: Any, unit: Any, persons: Any, budget: Any, sampler: Any) -> _People | None:
    """Return who the persons are; None if every row is one."""
    if unit is UNDECLARED or unit is None:
        if persons is not None:
            raise SettingsError("""seal(persons=...) lists people who may have no rows, so unit= must say
                which column identifies them.""")
        if unit is UNDECLARED:
            warn_identifiers(names_of(data), "seal")
        return None
    check_rows(data, unit)
    if isinstance(budget, Part):
        raise SettingsError(f"""The data is sealed with unit={unit.name!r} and a part of a budget, and a
            person may have rows in several parts. Use the budget itself.""")
    if sampler is not None and persons is not None and not unit.empty:
        raise SettingsError(f"""persons= lists people who may have no rows, and P draws at least one row for
            everybody. Let it draw that: rows=samplers.integers(0, {unit.most or 12}).""")
    if unit.empty and persons is None:
        raise SettingsError("""P draws people without rows, so the number of people would depend on who has
            rows. List all of them: seal(..., persons=[...]).""")
    return _People(unit, None if persons is None else _listed(data, unit, persons))


def _listed(data: Any, unit: Unit, persons: Any) -> tuple[Any, ...]:
    """Return the identifiers of all persons, or refuse what is no list of them."""
    table = names_of(persons) or isinstance(persons, str | bytes | dict)
    listed = () if table else tuple(persons)
    if not listed or not all(map(is_identifier, listed)):
        raise SettingsError("""persons= is a list of the identifiers of all persons: integers, strings, bytes
            or UUIDs. There is at least one, and none is missing.""")
    kinds, texts = identifier_kind(data, unit), {isinstance(each, str) for each in listed}
    if (kinds == "text" and texts == {False}) or (kinds == "number" and texts == {True}):
        raise SettingsError(f"""persons= has {"strings" if texts == {True} else "numbers"}, and the column
            {unit.name!r} has {kinds}s, so nobody would be found. Convert one of them.""")
    return listed


def warn_identifiers(names: Any, what: str) -> None:
    """Warn if columns have names like identifiers, and nobody has said whether people have several rows."""
    found = identifiers(names)
    if found:
        sealed = f"pass unit={found[0]!r}, or a P that draws people"
        other = f"use samplers.people(P, unit={found[0]!r}, ...), or unit={found[0]!r} where there is no P"
        warnings.warn(
            f"The column {found[0]!r} looks as if it identified people. If a person may have several rows, "
            f"{what}() would protect single rows only: {sealed if what == 'seal' else other}. If every row "
            f"is another person, pass unit=None.",
            UnitWarning,
            stacklevel=outside(),
        )


def private_source(
    *,
    name: str,
    version: str | None = None,
    sampler: Any = None,
    budget: Budget | Part | None = None,
    unit: Any = UNDECLARED,
) -> Callable[[Callable[P, R]], Callable[P, Sealed]]:
    """Decorate a loader so that it returns sealed data.

    Parameters
    ----------
    name, version, sampler, budget, unit
        As for `seal`.

    Examples
    --------
    >>> import numpy as np
    >>> @private_source(name="staff")
    ... def load():
    ...     return np.array([31.0, 62.0, 45.0])
    >>> load()
    <sealed 'staff': numpy ndarray, n=3>
    """
    _check_names(name, version)
    chosen = None if sampler is None else as_sampler(sampler)

    def decorate(loader: Callable[P, R]) -> Callable[P, Sealed]:
        @functools.wraps(loader)
        def load(*args: P.args, **kwargs: P.kwargs) -> Sealed:
            loaded = loader(*args, **kwargs)
            try:
                return seal(loaded, name=name, version=version, sampler=chosen, budget=budget, unit=unit)
            finally:
                del loaded

        vars(load)["opaque"] = Opaque()  # fingerprints do not look inside
        return load

    return decorate


def _check_names(name: Any, version: Any) -> None:
    check_text("The name of sealed data", name)
    if version is not None and version != "":
        check_text("The version of sealed data", version)


# --- for private functions --------------------------------------------------------------------


def is_sealed(value: Any) -> bool:
    """Tell whether a value is sealed data, without touching it."""
    return type(value) is Sealed


def opened(sealed: Any) -> Any:
    """Return the data inside. Only private functions may call this."""
    return _CONTENT[id(sealed)]


def persons_of(
    sealed: Sealed, unit: Unit, key: bytes | None, columns: tuple[Any, ...]
) -> tuple[Persons, bytes]:
    """Return the people inside, and the key that they are ordered by: the given one, or their own."""
    people = _PERSONS[id(sealed)]
    used = people.key if key is None else key
    return people.grouped(_CONTENT[id(sealed)], unit, used, columns), used


def lists_persons(sealed: Sealed) -> bool:
    """Tell whether all persons were listed when the data was sealed."""
    return _PERSONS[id(sealed)].persons is not None


def declared(sealed: Sealed) -> str:
    """Return name and version as one string."""
    version = "" if sealed.version is None else f" version {sealed.version!r}"
    return f"{sealed.name!r}{version}"


def subject(sealed: Sealed) -> str:
    """Return the name without the version: all versions are about the same people."""
    return repr(sealed.name)


def carried(sealed: Sealed) -> tuple[Any, Any]:
    """Return the sampler and the budget that sealed data carries."""
    return sealed._sampler, sealed._budget


def hidden_in(value: Any, depth: int = 20) -> bool:
    """Tell whether an argument is sealed data, or has some inside its containers."""
    if is_sealed(value):
        return True
    if not depth:
        return False
    if isinstance(value, list | tuple | set | frozenset | deque):
        return any(hidden_in(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return any(hidden_in(item, depth - 1) for item in value.values())
    if isinstance(value, functools.partial):
        return hidden_in([*value.args, *value.keywords.values()], depth - 1)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return any(hidden_in(item, depth - 1) for item in value.ravel())
    return False
