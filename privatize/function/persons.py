"""Make persons of the private rows in a box, in an order that is secret and stays the same."""

import functools
import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from privatize.budgets.paying import Payer
from privatize.budgets.sealed import lists_persons, persons_of
from privatize.budgets.units import key_in
from privatize.data.grouping import group
from privatize.data.persons import Persons, names_of
from privatize.data.units import UNDECLARED, Unit
from privatize.errors import DataError, SealedError, SettingsError
from privatize.function.box import Box

RECORD = "record"


@functools.cache
def _of_process() -> bytes:
    """Return the key for data that is neither sealed nor in a ledger, which lives as long as the process."""
    return secrets.token_bytes(32)


def refuse_aligned(name: str, parts: Sequence[Any], aligned: bool) -> None:
    """Refuse several datasets that are aligned record by record, if people have several rows in one."""
    units = [part.unit for part in parts if getattr(part, "unit", None) is not None]
    if aligned and units:
        raise SettingsError(f"""{name}() was given several datasets that are aligned record by record, and one
            is sealed with unit={units[0].name!r}: people have several rows each. Seal and pass one table.""")


def unit_for(name: str, declared: Any, drawn: Any, sealed: Any) -> Unit | None:
    """Return what a record is: by P, by ``unit=`` or by sealed data. Refuse two that differ.

    Parameters
    ----------
    name : str
        What opens the data, for errors.
    declared : Unit, None or UNDECLARED
        What the function's ``unit=`` says.
    drawn : dataset or None
        Some records that P draws, if there is a P.
    sealed : Sealed or None
        The data, if it is sealed.
    """
    law = UNDECLARED if drawn is None else drawn.unit if type(drawn) is Persons else None
    own = UNDECLARED if sealed is None else sealed.unit
    wanted = law if law is not UNDECLARED else declared
    if own is None and isinstance(wanted, Unit):
        raise SealedError(f"""{name}() is about persons with several rows, by {wanted.name!r}, and the data
            was sealed with every row as another person. Seal it with unit={wanted.name!r}.""")
    if not isinstance(own, Unit):
        return wanted if isinstance(wanted, Unit) else None
    if wanted is None:
        raise SettingsError(f"""{name}() takes every row as another person, and the data was sealed with
            unit={own.name!r}: people have several rows each. Let P draw people: samplers.people(P,
            unit={own.name!r}, rows=samplers.integers(1, 12)).""")
    if isinstance(wanted, Unit) and own.name != wanted.name:
        raise SettingsError(f"""{name}() is about persons by {wanted.name!r}, and the data was sealed with
            unit={own.name!r}. What a person is must be the same.""")
    name_alone = law is UNDECLARED and wanted == Unit(own.name)
    return wanted if isinstance(wanted, Unit) and not name_alone else own


def make_persons(
    name: str, box: Box, unit: Unit | None, sealed: Any, budgets: Sequence[Any], drawn: Any = None
) -> str:
    """Put persons in place of the rows in the box; return a public name of the key, empty for rows.

    The key is in the ledger of the budgets, for people with a name. Otherwise it lives as long as the sealed
    data, or as this process.
    """
    if unit is None:
        return ""
    named = [repr(sealed.name)] if sealed is not None else []
    if unit.empty and (sealed is None or not lists_persons(sealed)):
        raise DataError(f"""P draws people without rows, so the number of people would depend on who has rows.
            {name}() needs a list of all: seal(data, name=..., persons=[...]).""")
    if drawn is not None and sealed is not None and lists_persons(sealed) and not unit.empty:
        raise DataError(f"""All persons were listed when the data was sealed, so some may have no rows, and
            for {name}() everybody has at least one. Let P draw that: rows=samplers.integers(0,
            {unit.most or 12}).""")
    key = _in_ledger(budgets, named) if named else None
    box.raw, columns = box.data, columns_of(drawn)
    if sealed is not None:
        box.data, used = persons_of(sealed, unit, key, columns)
    else:
        used = _of_process()
        box.data = group(box.raw, unit, used, columns=columns)
    return tag_of(used)


def columns_of(drawn: Any) -> tuple[Any, ...]:
    """Return the names of the columns of P, in their order, if it draws persons."""
    return tuple(names_of(drawn.rows)) if type(drawn) is Persons else ()


def tag_of(key: bytes) -> str:
    """Return a public name of a key, from which nothing of it can be learned."""
    return hashlib.blake2b(key, person=b"tag", digest_size=8).hexdigest()


def ledger_tag(budgets: Sequence[Any], named: Sequence[str], unit: Unit | None) -> str:
    """Return the public name of the key that some people have in the ledger of budgets; empty for rows."""
    key = None if unit is None else _in_ledger(budgets, named)
    return "" if key is None else tag_of(key)


def _in_ledger(budgets: Sequence[Any], named: Sequence[str]) -> bytes | None:
    """Return the key of some people in the first ledger of budgets, or None if there is no ledger."""
    payers = [getattr(each, "budget", each) for each in budgets]
    found = sorted((each for each in payers if isinstance(each, Payer)), key=lambda each: each.where)
    return key_in(found[0].ledger, named[0]) if found else None
