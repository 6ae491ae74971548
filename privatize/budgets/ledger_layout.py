"""The tables of a ledger, their version, and the conversion of the earlier layout to this one."""

import ast
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from privatize.errors import LedgerError
from privatize.storage.database import Run

# Ledgers of layout 1 have no number. Whoever changes a table must raise this and add a migration.
VERSION = 2

_TABLES = {
    "budgets": "name epsilon delta gamma composition charges created neighbours unit migrated",
    "spent": "budget partition part epsilon delta gamma counts average",
    "charges": "budget number at function key dataset n mechanism kind epsilon delta gamma charged partition "
    "part who strength declared described people neighbours unit purpose looks average average_charged",
    "gammas": "budget dataset key gamma average",
    "people": "budget name partition part declared described",
    "learned": "budget dataset n within settings number content",
    "catalogues": "budget name dataset n digest number late content",
    "units": "name unit",
    "unit_keys": "name secret",
    "ledger_layout": "version",
}
_INTEGERS = ("charges", "migrated", "number", "n", "late", "version")  # all other columns have strings
NAMES = {table: names.split() for table, names in _TABLES.items()}
# How many columns are the key.
KEYS = {"budgets": 1, "spent": 3, "charges": 2, "gammas": 3, "people": 2, "learned": 5, "catalogues": 2}
KEYS |= {"units": 1, "unit_keys": 1}


def _create(table: str, names: list[str]) -> str:
    columns = [f"{name} {'INTEGER' if name in _INTEGERS else 'TEXT'} NOT NULL" for name in names]
    key = [f"PRIMARY KEY ({', '.join(names[: KEYS[table]])})"] if table in KEYS else []
    return f"CREATE TABLE IF NOT EXISTS {table} ({', '.join(columns + key)})"


CREATE = tuple(_create(table, names) for table, names in NAMES.items())

_LATER = {"learned", "catalogues", "units", "unit_keys"}  # additions, which are no part of totals
_EARLIER = ("budgets", "spent", "charges", "gammas")  # tables that all earlier ledgers have
# The columns that earlier tables lack, and their values in existing rows. An earlier version of the library
# names no columns when it inserts, so it cannot write to a table that has more of them: it fails, and spends
# nothing.
_ADDED = {"neighbours": "'replace'", "unit": "'record'", "strength": "'sampled'", "purpose": "'answer'"}
_ADDED |= {"declared": "'[]'", "people": "'[]'", "described": "''", "looks": "''"}
_ADDED |= {"average": "'0'", "average_charged": "'0'", "migrated": "0"}
_LITERAL = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_NAMED = re.compile(rf"({_LITERAL})(?: version {_LITERAL})?")
_DATASET = re.compile(rf"{_NAMED.pattern}(?: and {_NAMED.pattern})*")


def prepare(run: Run, found: set[str], postgres: bool) -> None:
    """Check the version of a ledger; convert one of the earlier layout to this one.

    It runs inside the transaction that creates missing tables, so a failure undoes everything together.

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
        needed = set(NAMES) - _LATER
    for table in ("catalogues", "units") if postgres else ():
        if table not in found:  # whoever may read a budget can go on; but keys are secret
            run(f"GRANT SELECT ON {table} TO PUBLIC")
    missing = sorted(needed - found) if needed & found else []
    if missing:
        raise LedgerError(f"""The ledger is damaged: its table {missing[0]!r} is missing. Restore it from a
            backup.""")
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
        raise LedgerError(f"""The ledger has layout {version}, and this version of privatize knows layouts up
            to {VERSION}: a later version has written it. Update the library here too: pip install
            --upgrade privatize-dp.""")


def _migrate(run: Run, found: set[str], postgres: bool) -> None:
    """Convert the tables of the earlier layout, which has no number, to the present layout."""
    if postgres:  # in the order in which a reservation locks them
        run("LOCK TABLE budgets, spent, charges, gammas, datasets IN ACCESS EXCLUSIVE MODE")
    for table in [each for each in KEYS if each in found]:  # the others were created just now
        for column in (name for name in NAMES[table] if name in _ADDED):
            number = "BIGINT" if postgres else "INTEGER"
            kind = number if column in _INTEGERS else "TEXT"
            run(f"ALTER TABLE {table} ADD COLUMN {column} {kind} NOT NULL DEFAULT {_ADDED[column]}")
            if postgres:  # or an earlier version could insert rows without it
                run(f"ALTER TABLE {table} ALTER COLUMN {column} DROP DEFAULT")
    _fractions(run)
    run("UPDATE budgets SET migrated = charges")
    # The average is at most γ, and nothing better is known for these rows.
    run("UPDATE spent SET average = gamma")
    run("UPDATE gammas SET average = gamma")
    run("UPDATE charges SET average = gamma, average_charged = charged")
    _place_people(run)
    run("DROP TABLE datasets")


def _place_people(run: Run) -> None:
    """Record who charges were about, and under which P all answers about them hold."""
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
        digests = [sampler] if sampler else []  # that layout has no P for data without a name
        run(
            "UPDATE charges SET people = ?, declared = ?, described = ? WHERE budget = ? AND dataset = ?",
            *(json.dumps(names if dataset else []), json.dumps(digests), described, budget, dataset),
        )
        for name in names:
            if (budget, name) not in placed:
                placed.add((budget, name))
                run("INSERT INTO people VALUES (?, ?, ?, ?, '', '')", budget, name, partition, part)
            before, text = known.get((budget, name), (set(digests), described))
            known[budget, name] = (before & set(digests), text)
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
