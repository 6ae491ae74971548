"""People with several rows in a ledger: by which column, and the secret key that they are ordered by."""

import re
import secrets
from typing import Any

from privatize.budgets.charges import Charge
from privatize.errors import LedgerError, SettingsError
from privatize.storage.database import Run

_PERSON = re.compile(r"person by (.+)", re.DOTALL)
_BYTES = 32


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


def check(run: Run, budget: str, charge: Charge, *, write: bool) -> None:
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
    """
    if charge.purpose == "declaration":
        return
    own = is_person(charge.unit)
    if own and charge.partition:
        raise SettingsError(f"""{charge.function}() is about persons with several rows each, and would be
            charged to a part of the budget {budget!r}: one person may have rows in several parts. Charge it
            to the budget itself.""")
    for name in charge.people or ("",):
        place = name or f"unsealed data of {budget!r}"
        found = run("SELECT unit FROM units WHERE name = ?", place)
        if found and found[0][0] != charge.unit:
            raise SettingsError(f"""{charge.function}() is about a {charge.unit}, and earlier answers about
                {place} were about a {found[0][0]}. A total has one kind of neighbour, and what a person is
                cannot change. Seal the data with the same unit=, or under another name.""")
        if found or not own:
            continue
        where = ("name = ?", (name,)) if name else ("name = '' AND budget = ?", (budget,))
        if run(f"SELECT 1 FROM people WHERE {where[0]} LIMIT 1", *where[1]):  # noqa: S608
            raise SettingsError(f"""There are answers about {place} for which every row was another person, so
                an answer about a {charge.unit} cannot be added to the same total. Use another ledger, or seal
                the data under another name.""")
        if write:
            run("INSERT INTO units VALUES (?, ?) ON CONFLICT (name) DO NOTHING", place, charge.unit)


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
