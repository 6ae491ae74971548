"""The tables of a ledger, their version, and the way from the earlier layout to this one."""

import ast
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from privatize.errors import LedgerError
from privatize.storage.database import Run

# 1 is the layout from before there was a number. Whoever changes a table raises this, and adds a migration.
VERSION = 2

_TEXT = "TEXT NOT NULL"
_COLUMNS = {
    "budgets": f"name TEXT PRIMARY KEY, epsilon {_TEXT}, delta {_TEXT}, gamma {_TEXT}, composition {_TEXT}, "
    f"charges INTEGER NOT NULL, created {_TEXT}, neighbours {_TEXT}, unit {_TEXT}, "
    f"migrated INTEGER NOT NULL",
    "spent": f"budget {_TEXT}, partition {_TEXT}, part {_TEXT}, epsilon {_TEXT}, delta {_TEXT}, "
    f"gamma {_TEXT}, counts {_TEXT}, average {_TEXT}, PRIMARY KEY (budget, partition, part)",
    "charges": f"budget {_TEXT}, number INTEGER NOT NULL, at {_TEXT}, function {_TEXT}, key {_TEXT}, "
    f"dataset {_TEXT}, n INTEGER NOT NULL, mechanism {_TEXT}, kind {_TEXT}, epsilon {_TEXT}, delta {_TEXT}, "
    f"gamma {_TEXT}, charged {_TEXT}, partition {_TEXT}, part {_TEXT}, who {_TEXT}, strength {_TEXT}, "
    f"declared {_TEXT}, described {_TEXT}, people {_TEXT}, neighbours {_TEXT}, unit {_TEXT}, "
    f"purpose {_TEXT}, looks {_TEXT}, average {_TEXT}, average_charged {_TEXT}, "
    f"PRIMARY KEY (budget, number)",
    "gammas": f"budget {_TEXT}, dataset {_TEXT}, key {_TEXT}, gamma {_TEXT}, average {_TEXT}, "
    f"PRIMARY KEY (budget, dataset, key)",
    "people": f"budget {_TEXT}, name {_TEXT}, partition {_TEXT}, part {_TEXT}, declared {_TEXT}, "
    f"described {_TEXT}, PRIMARY KEY (budget, name)",
    "ledger_layout": "version INTEGER NOT NULL",
}
CREATE = tuple(f"CREATE TABLE IF NOT EXISTS {name} ({columns})" for name, columns in _COLUMNS.items())
KEYS = {"budgets": 1, "spent": 3, "charges": 2, "gammas": 3, "people": 2}  # how many columns are the key
NAMES = {table: re.findall(r"(\w+) (?:TEXT|INTEGER)", columns) for table, columns in _COLUMNS.items()}

_EARLIER = ("budgets", "spent", "charges", "gammas")  # tables that all earlier ledgers have
# What the earlier tables lack, and what it is for their rows. An earlier version of the library names no
# columns when it inserts, so it cannot write to a table that has more of them: it fails, and spends nothing.
_ADDED = {
    "budgets": {"neighbours": "'replace'", "unit": "'record'", "migrated": "0"},
    "spent": {"average": "'0'"},
    "charges": {
        "strength": "'sampled'",
        "declared": "'[]'",
        "described": "''",
        "people": "'[]'",
        "neighbours": "'replace'",
        "unit": "'record'",
        "purpose": "'answer'",
        "looks": "''",
        "average": "'0'",
        "average_charged": "'0'",
    },
    "gammas": {"average": "'0'"},
    "people": {"declared": "'[]'", "described": "''"},
}
_LITERAL = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_NAMED = re.compile(rf"({_LITERAL})(?: version {_LITERAL})?")
_DATASET = re.compile(rf"{_NAMED.pattern}(?: and {_NAMED.pattern})*")


def prepare(run: Run, found: set[str], postgres: bool) -> None:
    """Check the version of a ledger; convert one of the earlier layout to this one.

    Runs inside the transaction that has created what was missing, so all of it is undone together.

    Parameters
    ----------
    run : callable
        Runs statements.
    found : set of str
        The tables that were there before.
    postgres : bool
        Whether this is PostgreSQL.
    """
    needed = set(_EARLIER)
    if "ledger_layout" in found:
        check(run("SELECT version FROM ledger_layout"))
        needed = set(_COLUMNS)
    missing = sorted(needed - found) if needed & found else []
    if missing:
        raise LedgerError(
            f"The ledger is damaged: its table {missing[0]!r} is missing. Restore it from a backup."
        )
    if "ledger_layout" in found:
        return
    if "budgets" in found:
        _migrate(run, found, postgres)
    run("INSERT INTO ledger_layout VALUES (?)", VERSION)
    if postgres:  # whoever was allowed to spend before can go on
        run("GRANT SELECT ON ledger_layout TO PUBLIC")


def check(rows: list[tuple[Any, ...]]) -> None:
    """Refuse a ledger that a later version of the library has written, or that has no version."""
    version = rows[0][0] if len(rows) == 1 else None
    if not isinstance(version, int) or version < VERSION:
        raise LedgerError(f"The ledger is damaged: the version of its layout is {version!r}.")
    if version > VERSION:
        raise LedgerError(
            f"The ledger has layout {version}, and this version of privatize knows layouts up to {VERSION}: "
            f"a later version has written it. Update privatize here too: pip install --upgrade privatize."
        )


def _migrate(run: Run, found: set[str], postgres: bool) -> None:
    """Convert the tables from before there was a version to the present layout."""
    if postgres:  # in the order in which a reservation locks them
        run("LOCK TABLE budgets, spent, charges, gammas, datasets IN ACCESS EXCLUSIVE MODE")
    for table, columns in _ADDED.items():
        if table not in found:
            continue  # it was created just now
        for column, value in columns.items():
            number = "BIGINT" if postgres else "INTEGER"
            kind = number if column == "migrated" else "TEXT"
            run(f"ALTER TABLE {table} ADD COLUMN {column} {kind} NOT NULL DEFAULT {value}")
            if postgres:  # or an earlier version could insert rows without it
                run(f"ALTER TABLE {table} ALTER COLUMN {column} DROP DEFAULT")
    _fractions(run)
    run("UPDATE budgets SET migrated = charges")
    # The average is at most γ, and more is not known of these.
    run("UPDATE spent SET average = gamma")
    run("UPDATE gammas SET average = gamma")
    run("UPDATE charges SET average = gamma, average_charged = charged")
    _place_people(run)
    run("DROP TABLE datasets")


def _place_people(run: Run) -> None:
    """Write down who charges were about, and under which P all answers about them hold."""
    declared = {
        (budget, dataset): (sampler, described)
        for budget, dataset, sampler, described in run(
            "SELECT budget, dataset, sampler, described FROM datasets"
        )
    }
    rows = run(
        "SELECT budget, dataset, partition, part, MIN(number) FROM charges "
        "GROUP BY budget, dataset, partition, part ORDER BY MIN(number)"
    )
    placed = {(budget, name) for budget, name in run("SELECT budget, name FROM people")}
    known: dict[tuple[str, str], tuple[set[str], str]] = {}
    for budget, dataset, partition, part, _ in rows:
        names = names_in(dataset)
        sampler, described = declared.get((budget, dataset), ("", ""))
        several = [sampler] if sampler else []  # of data without a name P was not written down
        run(
            "UPDATE charges SET people = ?, declared = ?, described = ? WHERE budget = ? AND dataset = ?",
            *(json.dumps(names if dataset else []), json.dumps(several), described, budget, dataset),
        )
        for name in names:
            if (budget, name) not in placed:
                placed.add((budget, name))
                run("INSERT INTO people VALUES (?, ?, ?, ?, '', '')", budget, name, partition, part)
            before, text = known.get((budget, name), (set(several), described))
            known[budget, name] = (before & set(several), text)
    for (budget, name), (common, described) in known.items():
        run(
            "UPDATE people SET declared = ?, described = ? WHERE budget = ? AND name = ?",
            *(json.dumps(sorted(common)), described, budget, name),
        )


def _fractions(run: Run) -> None:
    """Write amounts as fractions: the first versions wrote decimals."""
    for table in _EARLIER:
        keys = NAMES[table][: KEYS[table]]
        amounts = [name for name in NAMES[table] if name in ("epsilon", "delta", "gamma", "charged")]
        for row in run(f"SELECT {', '.join((*keys, *amounts))} FROM {table}"):  # noqa: S608
            before = row[len(keys) :]
            after = [_fraction(text) for text in before]
            if list(before) != after:
                sets = ", ".join(f"{name} = ?" for name in amounts)
                where = " AND ".join(f"{name} = ?" for name in keys)
                run(f"UPDATE {table} SET {sets} WHERE {where}", *after, *row[: len(keys)])  # noqa: S608


def _fraction(text: Any) -> Any:
    decimal = isinstance(text, str) and re.fullmatch(r"\d{1,20}(\.\d{1,400})?([eE][-+]?\d{1,3})?", text)
    return str(Fraction(text)) if decimal else text


def names_in(dataset: str) -> Sequence[str]:
    """Return the people of a dataset: its names without their versions.

    Examples
    --------
    >>> names_in("'ages' version '2026' and 'incomes'")
    ["'ages'", "'incomes'"]
    """
    if not _DATASET.fullmatch(dataset):
        return [dataset]
    return list(dict.fromkeys(repr(ast.literal_eval(name)) for name in _NAMED.findall(dataset)))
