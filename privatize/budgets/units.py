"""People with several rows in a ledger: by which column, and the secret key that they are ordered by."""

import json
import re
import secrets
from typing import Any

from privatize.budgets.charges import Charge
from privatize.errors import LedgerError, SettingsError
from privatize.storage.database import Run

_PERSON = re.compile(r"person by (.+)", re.DOTALL)
_BYTES = 32
_FIRST = 0x70726978  # advisory lock of PostgreSQL: the first answer about some people decides


def person_by(column: str) -> str:
    """Return what a record is in a charge about people with several rows.

    Examples
    --------
    >>> person_by("patient_id"), is_person(person_by("patient_id")), is_person("record")
    ("person by 'patient_id'", True, False)
    """
    return f"person by {column!r}"


def is_person(unit: str) -> bool:
    """Tell whether a record of a charge is a person with several rows."""
    return _PERSON.fullmatch(unit) is not None


def check(run: Run, budget: str, charge: Charge, *, write: bool, postgres: bool) -> None:
    """Refuse an answer about rows after one about persons, or the reverse: the two do not add up.

    What a record is stays the same for these people in this ledger, and for unsealed data in a budget.

    Parameters
    ----------
    run : callable
        Runs statements, in the transaction of the charge.
    budget : str
        The budget that is charged.
    charge : Charge
        What is charged.
    write : bool
        Whether to note what a record is.
    postgres : bool
        Whether this is PostgreSQL, where first answers about the same people wait for each other.
    """
    if charge.purpose == "declaration":
        return
    if is_person(charge.unit) and charge.partition:
        raise SettingsError(f"""{charge.function}() is about persons with several rows each, and would be
            charged to a part of the budget {budget!r}: one person may have rows in several parts. Charge it
            to the budget itself.""")
    for name in charge.people or ("",):
        _check_people(run, budget, charge, name, write=write, postgres=postgres)


def _check_people(run: Run, budget: str, charge: Charge, name: str, *, write: bool, postgres: bool) -> None:
    """Refuse an answer about some people, or about unsealed data if `name` is empty, as `check` does."""
    place = name or f"unsealed data of {budget!r}"
    where = ("name = ?", (name,)) if name else ("name = '' AND budget = ?", (budget,))
    known = f"SELECT 1 FROM people WHERE {where[0]} LIMIT 1"  # noqa: S608
    if write and postgres and not run(known, *where[1]):
        run("SELECT pg_advisory_xact_lock(?)", _FIRST)
    found = run("SELECT unit FROM units WHERE name = ?", place)
    if found and found[0][0] != charge.unit:
        now, before = (each if is_person(each) else "single row" for each in (charge.unit, found[0][0]))
        raise SettingsError(f"""{charge.function}() would protect a {now}, and earlier answers about
            {place} protect a {before}. The two cannot be added up: a total has one kind of neighbour, and
            what a person is cannot change. Use the same unit= for all questions about these people.""")
    if found or not is_person(charge.unit):
        return
    if run(known, *where[1]):
        raise SettingsError(f"""There are answers about {place} for which every row was another person, so
            an answer that protects a {charge.unit} cannot be added to the same total. Begin a new ledger
            for answers about persons.""")
    if write:
        run("INSERT INTO units VALUES (?, ?) ON CONFLICT (name) DO NOTHING", place, charge.unit)


def verify(run: Run, budget: str) -> None:
    """Refuse a budget in which answers about rows and about persons of the same people were added up."""
    found: dict[str, str] = {}
    for people, unit in run(
        "SELECT DISTINCT people, unit FROM charges WHERE budget = ? AND purpose <> 'declaration'", budget
    ):
        try:
            names = json.loads(people) or [""]
        except (TypeError, ValueError):  # the charge itself is damaged, which is found elsewhere
            names = []
        for name in names if isinstance(names, list) else []:
            if found.setdefault(name, unit) != unit:
                raise LedgerError(f"""The ledger is damaged: in the budget {budget!r}, answers about
                    {name or "unsealed data"} protect a {found[name]} and a {unit}, which do not add up.""")


def key_in(ledger: Any, name: str) -> bytes:
    """Return the secret key by which persons with several rows are ordered, made once for these people.

    Nothing else reads it: no command, export or history shows it.

    Parameters
    ----------
    ledger : Ledger
        What has it, or will have it.
    name : str
        The people, as charges name them.
    """
    with ledger.transaction(write=False) as run:
        found = _key(run, name)
    if found is None:
        with ledger.transaction() as run:  # somebody else may have made it meanwhile
            made = secrets.token_hex(_BYTES)
            run("INSERT INTO unit_keys VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name, made)
            found = _key(run, name)
    if found is None:
        raise LedgerError(f"The key of {name} could not be written.")
    return found


def _key(run: Run, name: str) -> bytes | None:
    """Return the key of some people, or None if they have none yet."""
    found = run("SELECT secret FROM unit_keys WHERE name = ?", name)
    if not found:
        return None
    try:
        secret = bytes.fromhex(found[0][0])
    except (TypeError, ValueError):
        secret = b""
    if len(secret) != _BYTES:
        raise LedgerError(f"""The ledger is damaged: the key of {name} is not what was written. Restore it
            from a backup.""")
    return secret
