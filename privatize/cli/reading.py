"""Databases that are only read: none is created, begun, or written.

A file is copied first, with sqlite's own means, so that one that may not be written can be read too, and
what is read is of one moment.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from privatize.cli.showing import place
from privatize.storage.database import Database, DatabaseError

__all__ = ["NotThere", "reading"]


class NotThere(Exception):  # noqa: N818 - a signal between rooms
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
    if database.url == "memory":
        raise NotThere
    if database.postgres:
        try:
            with database.transaction(write=False) as run:
                known = run("SELECT to_regclass(?)", table)[0][0] is not None
        except DatabaseError as error:
            raise DatabaseError(f"{place(url)} cannot be reached: {error}") from error
        database.close()
        if not known:
            raise NotThere
        opened = kind(url)
        try:
            yield opened
        finally:
            opened.database.close()
        return
    path = database.path
    if path is None or not _exists(path):
        raise NotThere
    with tempfile.TemporaryDirectory(prefix="privatize-") as folder:
        copy = Path(folder) / "copy.db"
        _copy(path, copy, table, what)
        opened = kind(copy, shown=place(url))
        try:
            yield opened
        finally:
            opened.database.close()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror or error}") from None


def _copy(path: Path, copy: Path, table: str, what: str) -> None:
    """Copy a database; refuse what is not one, or another one."""
    if path.is_dir():
        raise DatabaseError(f"{path} is a folder, not {what}.")
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise DatabaseError(f"{path} cannot be read: {error.strerror or error}.") from None
    if empty and table == "budgets":
        raise DatabaseError(f"{path} is empty: its content is missing. Restore it from a backup.")
    if empty:
        raise NotThere  # just created, and nothing that could be lost
    try:
        with contextlib.closing(_open(path)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
            names = {
                name for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            if not names:
                raise NotThere
            if table not in names:
                raise DatabaseError(f"{path} is a database, but not {what}.")
            source.backup(target)
    except sqlite3.Error as error:
        raise DatabaseError(f"{path} is not {what}, or is damaged: {error}.") from None


def _open(path: Path) -> sqlite3.Connection:
    """Open a file, and write nothing to it.

    Whoever may write takes away the companion files when it is closed, as a reader cannot. Where they
    cannot be made, nobody writes, unless there is a log with something in it.
    """
    uri, log = path.absolute().as_uri(), path.with_name(path.name + "-wal")
    modes = ["mode=rw", "mode=ro"]
    modes += [] if log.exists() and log.stat().st_size else ["immutable=1"]
    failure: sqlite3.Error | None = None
    for mode in modes:
        source = sqlite3.connect(f"{uri}?{mode}", uri=True, timeout=60)
        try:
            source.execute("PRAGMA query_only=1")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            source.close()
            failure = failure or error
        except BaseException:
            source.close()
            raise
        else:
            return source
    raise failure or sqlite3.OperationalError("it cannot be opened")
