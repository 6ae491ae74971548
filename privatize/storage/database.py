"""One database: a sqlite3 file, memory, or PostgreSQL, behind one small interface.

All of them run the same statements; the few differences are in this file. A connection belongs to
one thread of one process. Nothing that is read back is ever unpickled.
"""

import contextlib
import os
import sqlite3
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from privatize.errors import SettingsError

Run = Callable[..., list[tuple[Any, ...]]]
Prepare = Callable[[Run, set[str], bool], None]

_TIMEOUT = 60.0  # seconds to wait for other writers
_LOCK = 0x70726976  # advisory lock of PostgreSQL for creating tables, which is not atomic there


# The threads of this process open files one at a time: see Database._try_sqlite.
_opening = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: globals().update(_opening=threading.Lock()))


class DatabaseError(Exception):
    """The database cannot be reached, read or written."""


class Database:
    """A database by URL or path.

    Parameters
    ----------
    url : str or Path
        A path, ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://...``, or
        ``memory``.
    tables : sequence of str
        Statements that create what is missing.
    durable : bool
        Whether what was committed must survive a loss of power, and not only the end of the process. A file
        that is empty, or was removed after it was opened, is then an error: its content is missing.
    prepare : callable, optional
        ``prepare(run, found, postgres)`` is called at every connection, in the transaction that creates the
        tables; `found` has the names of those that were there before.

    Examples
    --------
    >>> database = Database("memory", ["CREATE TABLE IF NOT EXISTS t (x INTEGER)"])
    >>> with database.transaction() as run:
    ...     _ = run("INSERT INTO t VALUES (?)", 5)
    ...     run("SELECT x FROM t")
    [(5,)]
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        tables: Sequence[str],
        *,
        durable: bool = False,
        prepare: Prepare | None = None,
    ) -> None:
        self.durable, self._prepare = durable, prepare
        self._opened = False
        self.url = os.fspath(url)
        self.postgres = self.url.startswith(("postgresql://", "postgres://"))
        self.path = None if self.postgres or self.url == "memory" else _path(self.url)
        self._tables = tables
        if self.postgres:
            self._tables = [each.replace(" BLOB", " BYTEA").replace(" INTEGER", " BIGINT") for each in tables]
        self._local = threading.local()
        self._shared: _Connection | None = None  # the one connection of a database in memory
        self._turn, self._process = threading.RLock(), os.getpid()
        scheme, sign, _ = self.url.partition("://")
        if sign and not self.postgres and not self.url.startswith("sqlite:///"):
            raise SettingsError(f"""A store at {scheme}:// is not known. Use a path, sqlite:///path, or
                postgresql://...""")

    @contextlib.contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Run]:
        """Run statements in one transaction; a failure undoes all of it.

        Yields a function ``run(statement, *values)`` that returns the rows.

        Raises
        ------
        DatabaseError
            If the database cannot be reached, read or written.
        """
        if self._process != os.getpid():  # forked: a thread that is not here may have the lock
            if self.durable and self.url == "memory":
                raise DatabaseError(
                    "it is in the memory of the process that this one was forked from. Give the budget a "
                    "ledger= to share it."
                )
            self._turn, self._process = threading.RLock(), os.getpid()
        try:
            with self._turn if self.url == "memory" else contextlib.nullcontext():
                connection = self._connection()
                with self._postgres(connection) if self.postgres else self._sqlite(connection, write) as run:
                    yield run
        except Exception as error:
            foreign = getattr(sys.modules.get("psycopg"), "Error", sqlite3.Error)
            if not isinstance(error, (foreign, sqlite3.Error, OSError)):
                raise
            self.close()
            raise DatabaseError(f"{type(error).__name__}: {str(error).strip()}") from error

    def close(self) -> None:
        """Close this thread's connection."""
        if self.url != "memory":
            self._local.current = None

    def _connection(self) -> Any:
        if self.url == "memory":
            if self._shared is None:
                self._shared = _Connection(_connect(":memory:"))
                self._create(self._shared.connection)
            return self._shared.connection
        current: _Connection | None = getattr(self._local, "current", None)
        if current is None or current.process != os.getpid() or current.file != self._file():
            self._local.current = current = None
            current = _Connection(self._connect_postgres() if self.postgres else self._connect_sqlite())
            current.file = self._file()
            self._local.current, self._opened = current, True
        return current.connection

    def _create(self, connection: Any) -> None:
        """Create the tables that are missing, in one transaction."""
        with self._postgres(connection) if self.postgres else self._sqlite(connection, True) as run:
            if self.postgres:
                run("SELECT pg_advisory_xact_lock(?)", _LOCK)
            there = "SELECT to_regclass(?)" if self.postgres else "SELECT 1 FROM sqlite_master WHERE name = ?"
            found = set()
            for statement in self._tables:
                name = statement.partition("IF NOT EXISTS ")[2].split()[0]
                if any(row != (None,) for row in run(there, name)):
                    found.add(name)  # a user who may not create tables can use it
                else:
                    run(statement)
            if self._prepare is not None:
                self._prepare(run, found, self.postgres)

    def _file(self) -> tuple[int, int] | None:
        """Return which file the path names now: it may have been removed or replaced."""
        if not self.durable or self.path is None:
            return None
        try:
            found = os.stat(self.path)  # noqa: PTH116 - at every transaction
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    # -- sqlite3 --

    def _connect_sqlite(self) -> sqlite3.Connection:
        """Open the file; if another process is just creating it, wait."""
        start = time.monotonic()
        while True:
            try:
                with _opening:
                    return self._try_sqlite()
            except sqlite3.OperationalError as error:
                limits = {"locked": _TIMEOUT, "busy": _TIMEOUT, "disk I/O": 3.0}  # an I/O error may be real
                wait = max((seconds for word, seconds in limits.items() if word in str(error)), default=0.0)
                writable = self.path is not None and os.access(self.path, os.R_OK | os.W_OK)
                if time.monotonic() > start + wait or not writable:  # then waiting makes no sense
                    raise
            time.sleep(0.05)

    def _try_sqlite(self) -> sqlite3.Connection:
        assert self.path is not None
        path = Path(os.path.realpath(self.path)) if self.durable else self.path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.durable:
            _new_file(path)
        elif not path.exists():
            self._create_file(path)
        else:
            _refuse_empty(path)
        return self._prepared(path)

    def _create_file(self, path: Path) -> None:
        """Create a file that nobody sees before it is complete, and that replaces no other file."""
        if self._opened:
            raise DatabaseError(f"{path} was removed after it was opened. Restore it from a backup.")
        log = path.with_name(path.name + "-wal")
        # SQLite would apply the log to a new file. If there is a file by now, another process was faster.
        if log.exists() and not path.exists():
            raise DatabaseError(f"{path} is missing, but its {log.name} is there. Restore it from a backup.")
        handle, made = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # private to the user
        os.close(handle)
        try:
            self._prepared(made).close()
            try:
                os.link(made, path)
            except FileExistsError:
                return  # another process was faster
            except OSError:  # a file system without links: others may see it empty for a moment, and refuse
                if _new_file(path):
                    self._prepared(path).close()
            _sync(path.parent)
        finally:
            os.unlink(made)  # noqa: PTH108 - a path from tempfile is a string

    def _prepared(self, path: str | Path) -> sqlite3.Connection:
        connection = _connect(path)
        try:
            # WAL allows readers beside one writer. It does not work on network file systems: there, set
            # another mode once with `sqlite3 FILE "PRAGMA journal_mode=DELETE"`, which is not changed here.
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA synchronous={'FULL' if self.durable else 'NORMAL'}")
            self._create(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _sqlite(self, connection: sqlite3.Connection, write: bool) -> Iterator[Run]:
        if connection.in_transaction:  # an interrupt left one open
            connection.execute("ROLLBACK")
        try:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield lambda statement, *values: connection.execute(statement, values).fetchall()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    # -- PostgreSQL --

    def _connect_postgres(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise DatabaseError(
                "PostgreSQL needs psycopg, which is not installed: pip install 'privatize-dp[postgres]'."
            ) from None
        try:
            connection = psycopg.connect(self.url, autocommit=True, connect_timeout=10)
        except psycopg.ProgrammingError:  # its message quotes the URL, which may have a password
            raise DatabaseError(
                "the URL is not one that PostgreSQL understands: percent-encode special characters in it"
            ) from None
        tries = 5
        try:
            while True:
                try:
                    self._create(connection)
                    return connection
                except psycopg.errors.DeadlockDetected:  # others read the tables that are to be changed
                    tries -= 1
                    if not tries:
                        raise
        except BaseException as error:
            connection.close()
            if isinstance(error, psycopg.errors.InsufficientPrivilege):
                raise DatabaseError(
                    f"{str(error).strip()}. Its tables must be created, or converted to the present layout, "
                    f"once: let their owner open the database with this version of the library"
                ) from None
            raise

    @contextlib.contextmanager
    def _postgres(self, connection: Any) -> Iterator[Run]:
        def run(statement: str, *values: Any) -> list[tuple[Any, ...]]:
            cursor = connection.execute(statement.replace("?", "%s"), values)
            rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
            return rows

        with connection.transaction():
            yield run


def now() -> str:
    """Return the present time in the format in which it is stored."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def storable(text: str) -> str:
    """Escape the characters of a string that no database can store; only for strings that are shown."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def _new_file(path: Path) -> bool:
    """Create a file for the user only, unless there is one; SQLite gives its log the same permissions."""
    # An existing file is not opened: closing it would drop the locks that SQLite has on it in other threads.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


def _sync(folder: Path) -> None:
    """Flush a folder, so that the names in it survive a loss of power, where the system allows it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _refuse_empty(path: Path) -> None:
    """Refuse a file with nothing in it, unless somebody is just creating it."""
    deadline = time.monotonic() + 1
    while path.stat().st_size == 0:
        if time.monotonic() > deadline:
            raise DatabaseError(
                f"{path} is empty: its content is missing. Restore it from a backup, or remove the file if "
                f"there never was anything in it"
            )
        time.sleep(0.05)


def _connect(path: Any) -> sqlite3.Connection:
    # One thread uses the connection, but whichever thread collects the garbage closes it.
    return sqlite3.connect(path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False)


class _Connection:
    """A connection that is closed when its thread ends, by the process that opened it and by no other."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.process = connection, os.getpid()
        self.file: tuple[int, int] | None = None
        # Not __del__: in a cycle of garbage the connection's own finalizer might come first, and warn.
        weakref.finalize(self, _close, connection, self.process)


def _close(connection: Any, process: int) -> None:
    if process == os.getpid():
        with contextlib.suppress(Exception):  # nobody uses it any more, so an error does not matter
            connection.close()


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///")).expanduser().absolute()
