"""People with several rows in a ledger: by which column, and the secret key that they are ordered by."""

import secrets
from collections.abc import Sequence

from privatize.budgets.charges import Charge
from privatize.errors import LedgerError, SettingsError
from privatize.storage.database import Run

PERSON = "person"
"""What a record is in a charge about people with several rows."""
_BYTES = 32


def check(run: Run, charge: Charge) -> None:
    """Refuse an answer about rows if others about the same people are about persons: both do not add up."""
    if charge.unit == PERSON:
        return
    for name in charge.people:
        found = run("SELECT unit FROM units WHERE name = ?", name)
        if found:
            raise SettingsError(f"""{charge.function}() would be about rows of {name}, and these people have
                several rows each, by {found[0][0]!r}: earlier answers were about persons. A total has one
                kind of neighbour. Seal the data with unit={found[0][0]!r}.""")


def key(run: Run, names: Sequence[str], unit: str) -> bytes | None:
    """Return the key of some people, or None if they have none yet."""
    found = run("SELECT secret FROM unit_keys WHERE name = ?", names[0])
    if not found:
        return None
    known = run("SELECT unit FROM units WHERE name = ?", names[0])
    try:
        secret = bytes.fromhex(found[0][0])
    except (TypeError, ValueError):
        secret = b""
    if len(secret) != _BYTES or not known:
        raise LedgerError(f"""The ledger is damaged: the key of {names[0]} is not what was written. Restore it
            from a backup.""")
    if known[0][0] != unit:
        raise SettingsError(f"""The people {names[0]} are identified by {known[0][0]!r} in this ledger, and
            not by {unit!r}. What a person is cannot change: use unit={known[0][0]!r}, or another name.""")
    return secret


def make_key(run: Run, names: Sequence[str], unit: str) -> bytes:
    """Make the key of some people, unless somebody else has made it meanwhile; return it."""
    if run("SELECT 1 FROM unit_keys WHERE name = ?", names[0]) == []:
        if run("SELECT 1 FROM people WHERE name = ? LIMIT 1", names[0]):
            raise SettingsError(f"""There are answers about {names[0]} for which every row was another person,
                so persons with several rows, by {unit!r}, cannot be added to the same total. Use another
                ledger, or seal the data under another name.""")
        run("INSERT INTO units VALUES (?, ?) ON CONFLICT (name) DO NOTHING", names[0], unit)
        made = secrets.token_hex(_BYTES)
        run("INSERT INTO unit_keys VALUES (?, ?) ON CONFLICT (name) DO NOTHING", names[0], made)
    found = key(run, names, unit)
    if found is None:
        raise LedgerError(f"The key of {names[0]} could not be written.")
    return found
