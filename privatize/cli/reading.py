"""Open stores and ledgers for reading only: no database is created or changed.

A SQLite file is first copied, with SQLite's own backup. So a file without write permission can be read
too, and everything that is read is from one moment.
"""

import contextlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from privatize.cli.showing import place
from privatize.storage.database import Database, DatabaseError


class NotThere(Exception):  # noqa: N818 - a signal between modules
    """There is no database, or nothing in it."""


@contextlib.contextmanager
def reading(kind: Callable[..., Any], url: str, table: str, what: str) -> Iterator[Any]:
    """Open a store or a ledger for reading.

    Parameters
    ----------
    kind : callable
        Store or Ledger.
    url : str
        Where it is.
    table : str
        A table that it has.
    what : str
        What it is, for errors.

    Raises
    ------
    NotThere
        If there is nothing to read.
    DatabaseError
        If it cannot be read, or is something else.
    """
    database = Database(url, [])
    with contextlib.ExitStack() as stack:
        copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="privatize-"))) / "copy.db"
        tables(database, table, what, copy)
        opened = kind(url) if database.postgres else kind(copy, shown=place(url))
        stack.callback(opened.database.close)
        yield opened


def tables(database: Database, table: str, what: str, copy: Path | None = None) -> set[str]:
    """Return which tables there are, and copy the file if `copy` is given; raises as `reading` does."""
    if database.path is None:
        return _found(database, table)
    path = database.path
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotThere from None
    except IsADirectoryError:
        raise DatabaseError(f"{path} is a folder, not {what}.") from None
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror or error}.") from None
    if empty and table == "budgets":
        raise DatabaseError(f"{path} is empty: its content is missing. Restore it from a backup.")
    if empty:
        raise NotThere  # just created: a store without content has lost nothing
    try:
        with contextlib.closing(_open(path)) as source:
            found = source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = {name for (name,) in found}
            if not names:
                raise NotThere
            if table not in names:
                raise DatabaseError(f"{path} is a database, but not {what}.")
            if copy is not None:
                with contextlib.closing(sqlite3.connect(copy)) as target:
                    source.backup(target)
    except sqlite3.Error as error:
        raise DatabaseError(f"{path} is not {what}, or is damaged: {error}.") from None
    return names


def _found(database: Database, table: str) -> set[str]:
    """Return which tables PostgreSQL has; raise if this one is missing, or it cannot be reached."""
    if not database.postgres:
        raise NotThere  # in memory
    try:
        with database.transaction(write=False) as run:
            names = (table, "ledger_layout")
            found = {name for name in names if run("SELECT to_regclass(?)", name)[0][0] is not None}
    except DatabaseError as error:
        raise DatabaseError(f"{place(database.url)} cannot be reached: {error}") from error
    finally:
        database.close()
    if table not in found:
        raise NotThere
    return found


def _open(path: Path) -> sqlite3.Connection:
    """Open a SQLite file, and write nothing to it.

    A connection that may write is tried first: when it closes, it removes SQLite's companion files (-wal,
    -shm), which a read-only one cannot. Where these files cannot be created, the file can be opened as
    immutable: nobody can be writing to it, unless there is a write-ahead log with content.
    """
    log = path.with_name(path.name + "-wal")
    modes = ["mode=rw", "mode=ro", *([] if log.exists() and log.stat().st_size else ["immutable=1"])]
    failures = []
    for mode in modes:
        source = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=60)
        try:
            source.execute("PRAGMA query_only=1")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return source
        except BaseException as error:
            source.close()
            if not isinstance(error, sqlite3.OperationalError):
                raise
            failures.append(error)
    raise failures[0]
