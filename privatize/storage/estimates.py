"""Estimates, remembered: the gaps in index order, and the public facts, as plain numbers and JSON.

What is stored is not Δ̂ but the gaps that it is read from, so another ε, δ, γ or bound needs no new
evaluation and a larger m only the missing indices. One seed per key: the first writer wins. What
cannot be read back whole is a miss, with a warning, and never a number.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.config.policy import ruled
from privatize.errors import StoreWarning, restore
from privatize.identity.library import outside
from privatize.outputs.describe import from_json
from privatize.outputs.structure import Structure
from privatize.planning.plan import Plan
from privatize.storage.database import Database, DatabaseError, Run, storable

__all__ = ["Entry", "Store", "StoreUnavailable", "default_url", "open_store", "warn"]

SCHEMA = 1
_MOST = 2**40  # no calibration has more pairs

_TABLES = [
    """
    CREATE TABLE IF NOT EXISTS estimates (key TEXT PRIMARY KEY, version INTEGER, seed TEXT, label TEXT,
    n INTEGER, facts TEXT, structure TEXT, failure TEXT, created TEXT)
    """,
    """
    CREATE TABLE IF NOT EXISTS gaps (key TEXT, start INTEGER, data BLOB, checksum TEXT,
    PRIMARY KEY (key, start))
    """,
    "CREATE TABLE IF NOT EXISTS looks (key TEXT, at INTEGER, plan TEXT, PRIMARY KEY (key, plan))",
]

# A longer piece replaces a shorter one that begins at the same index.
_PIECE = (
    "INSERT INTO gaps VALUES (?, ?, ?, ?) ON CONFLICT (key, start) DO UPDATE SET data = excluded.data, "
    "checksum = excluded.checksum WHERE length(excluded.data) > length(gaps.data)"
)


@dataclass
class Entry:
    """What is remembered under a key.

    Attributes
    ----------
    key : str
        Fingerprint of everything that the gaps depend on.
    seed : int
        The calibration seed of the first writer.
    gaps : array
        The gaps in index order; NaN where there is none yet.
    looks : list of Plan
        The plans that have been read from them, the first one first.
    structure : Structure or None
        Structure of the output.
    failure : dict
        How calibrations failed, by plan.
    checked : int
        How many of the gaps belong to a calibration that ended well.
    jitter : float
        By how much the function has been seen to round differently from run to run.
    weights : list of int or None
        Weights of the output's numbers, as powers of two.
    cause : str
        Why the first of the failed pairs failed.
    """

    key: str
    seed: int
    gaps: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    looks: list[Plan] = field(default_factory=list)
    structure: Structure | None = None
    failure: dict[str, Any] = field(default_factory=dict)
    checked: int = 0
    jitter: float = 0.0
    weights: list[int] | None = None
    cause: str = ""


class Store:
    """Estimates in a database.

    Parameters
    ----------
    url : str or Path
        See `privatize.storage.database.Database`; ``"memory"`` keeps them in this process only.
    shown : str, optional
        What to call it, if not by its URL: a copy by the name of what it was copied from.

    Examples
    --------
    >>> store = Store("memory")
    >>> store.open("key", seed=7, label="mean", n=100, facts={}).seed
    7
    >>> store.open("key", seed=8, label="mean", n=100, facts={}).seed  # the first writer wins
    7
    """

    def __init__(self, url: str | os.PathLike[str], *, shown: str | None = None) -> None:
        self.database = Database(url, _TABLES)
        self._shown = shown
        self._looks: dict[str, list[Plan]] = {}

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        if self._shown is not None:
            return self._shown
        scheme, sign, rest = self.database.url.partition("://")
        return scheme + sign + rest.rpartition("@")[2].partition("?")[0] if sign else scheme

    def open(self, key: str, *, seed: int, label: str, n: int, facts: dict[str, Any]) -> Entry:
        """Return what is remembered under a key, or begin it with this seed."""
        with self._writing() as run:
            run(
                "INSERT INTO estimates VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, ?) ON CONFLICT (key) DO NOTHING",
                *(key, SCHEMA, str(seed), storable(label), n, json.dumps(facts), _now()),
            )
            found = self._read(run, key)
            if found is None:  # of another version, or damaged: begin anew
                for table in ("estimates", "gaps", "looks"):
                    run(f"DELETE FROM {table} WHERE key = ?", key)  # noqa: S608 - names of ours
                run(
                    "INSERT INTO estimates VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, ?)",
                    *(key, SCHEMA, str(seed), storable(label), n, json.dumps(facts), _now()),
                )
                found = Entry(key, seed)
        return found

    def _read(self, run: Any, key: str) -> Entry | None:
        try:
            return _parsed(key, _rows(run, key))
        except DatabaseError:
            raise
        except Exception as error:  # whatever is in there, it is a miss
            warn(f"A remembered estimate cannot be used, so it is made again: {error!r}.")
            return None

    def read(self, key: str) -> Entry:
        """Return what is remembered under a key, and begin nothing.

        Raises
        ------
        KeyError
            If there is nothing.
        ValueError
            If it is damaged, or of another version.
        """
        with self._writing() as run:
            rows = _rows(run, key)
        return _whole(key, rows)

    def save(
        self,
        key: str,
        seed: int,
        start: int,
        gaps: NDArray[np.float64],
        structure: Structure | None,
        weights: list[int] | None = None,
    ) -> None:
        """Add gaps from index `start` on, if the seed is still the one that they were made with.

        Those that were measured with other weights than the entry's do not pass for its own.
        """
        data = np.ascontiguousarray(gaps, dtype="<f8").tobytes()
        with self._writing() as run:
            if run("SELECT seed FROM estimates WHERE key = ?", key) != [(str(seed),)]:
                return  # forgotten, or begun anew by somebody else
            run(_PIECE, key, start, data, _checksum(key, seed, start, data, weights))
            if structure is not None:
                run("UPDATE estimates SET structure = ? WHERE key = ?", json.dumps(structure.to_json()), key)

    def look(self, key: str, plan: Plan) -> list[Plan]:
        """Note that a plan is read from the gaps, and return all that have been, the first first."""
        facts = {"gamma": plan.gamma, "m": plan.m, "k": plan.k, "rho": plan.rho, "bound": plan.bound}
        with self._writing() as run:
            ((count,),) = run("SELECT count(*) FROM looks WHERE key = ?", key)
            run(
                "INSERT INTO looks VALUES (?, ?, ?) ON CONFLICT (key, plan) DO NOTHING",
                *(key, count, json.dumps(facts, sort_keys=True)),
            )
            rows = run("SELECT plan FROM looks WHERE key = ? ORDER BY at, plan", key)
        # One list for all estimates of this process that are read from these gaps, so that a further
        # look shows in those that were there before.
        looks = self._looks.setdefault(key, [])
        looks[:] = [Plan(**json.loads(found)) for (found,) in rows]
        return looks

    def fail(self, key: str, seed: int, plan: str, failure: dict[str, Any]) -> None:
        """Remember that a plan failed, or all of them ("*"): trying again is not a way to a luckier one."""
        with self._writing() as run:
            rows = self._held(run, "failure", key, seed)
            if rows:
                known = json.loads(rows[0][0]) if rows[0][0] else {}
                text = json.dumps(known | {plan: failure})
                run("UPDATE estimates SET failure = ? WHERE key = ?", text, key)

    def describe(self, key: str, seed: int, **facts: Any) -> None:
        """Add public facts about a calibration, if the seed is still the one that it was made with."""
        with self._writing() as run:
            rows = self._held(run, "facts", key, seed)
            if not rows:
                return
            known = json.loads(rows[0][0])
            run("UPDATE estimates SET facts = ? WHERE key = ?", json.dumps(known | facts), key)

    def agree(self, key: str, seed: int, weights: list[int]) -> list[int]:
        """Return the weights that everybody uses under a key: the first writer's."""
        with self._writing() as run:
            rows = self._held(run, "facts", key, seed)
            if not rows:  # forgotten meanwhile: nobody else goes by them
                return weights
            known = json.loads(rows[0][0])
            if "weights" not in known:
                text = json.dumps(known | {"weights": weights})
                run("UPDATE estimates SET facts = ? WHERE key = ?", text, key)
            return [int(each) for each in known.get("weights", weights)]

    def forget(self, key: str | None = None) -> int:
        """Forget one estimate, or all; return how many there were."""
        where, values = ("", ()) if key is None else (" WHERE key = ?", (key,))
        with self._writing() as run:
            ((count,),) = run(f"SELECT count(*) FROM estimates{where}", *values)  # noqa: S608 - ours
            for table in ("gaps", "looks", "estimates"):
                run(f"DELETE FROM {table}{where}", *values)  # noqa: S608 - ours
        for gone in [key] if key is not None else list(self._looks):
            self._looks.pop(gone, None)
        return int(count)

    def entries(self) -> list[dict[str, Any]]:
        """Return a description of every estimate, the newest first; "damaged" says why one has none."""
        with self._writing() as run:
            rows = run(
                "SELECT key, label, n, seed, created, facts, failure, "
                "(SELECT count(*) FROM looks WHERE looks.key = estimates.key) "
                "FROM estimates ORDER BY created DESC, key"
            )
            pieces = run("SELECT key, start, length(data) FROM gaps ORDER BY key, start")
        covered: dict[str, tuple[int, int]] = {}  # how many gaps, and up to where: pieces may overlap
        for key, start, length in pieces:
            count, end = covered.get(key, (0, 0))
            stop = int(start) + int(length) // 8
            covered[key] = (count + max(0, stop - max(int(start), end)), max(stop, end))
        names = ("key", "label", "n", "seed", "created", "facts", "failure", "looks")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        for entry in found:
            try:
                entry["facts"] = dict(json.loads(entry["facts"]))
                entry["failure"] = {} if entry["failure"] is None else dict(json.loads(entry["failure"]))
                entry["seed"] = int(entry["seed"])
            except (TypeError, ValueError) as error:
                entry |= {"facts": {}, "failure": {}, "seed": 0, "damaged": str(error)}
            entry["pairs"] = covered.get(entry["key"], (0, 0))[0]
        return found

    def copy_to(self, other: Store, key: str) -> str:
        """Copy what is remembered under a key to another store, in one transaction there.

        Nothing there is overwritten. An estimate that is there under another seed is left alone. If it has
        the same seed, what it lacks is added: looks, failures and gaps. So it refuses at least as much as
        before, and promises no more.

        Returns
        -------
        str
            ``"copied"``; ``"added"`` to what was there; ``"there"`` already, all of it; or ``"other"``, left
            alone, since it is there under another seed, or contradicts this one.

        Raises
        ------
        KeyError, ValueError
            If there is nothing under the key; if it is damaged, or of another version, here or there.

        Examples
        --------
        >>> here, there = Store("memory"), Store("memory")
        >>> _ = here.open("key", seed=7, label="mean", n=100, facts={})
        >>> here.copy_to(there, "key"), here.copy_to(there, "key")
        ('copied', 'there')
        """
        with self._writing() as run:
            mine = _rows(run, key)
        entry = _whole(key, mine)
        with other._writing() as run:
            marks = ", ".join("?" * len(_COLUMNS))
            made = run(
                f"INSERT INTO estimates VALUES ({marks}) ON CONFLICT (key) DO NOTHING RETURNING key",  # noqa: S608
                *mine.row,
            )
            other._held(run, "key", key, entry.seed)
            theirs = _rows(run, key)
            outcome = "copied" if made else other._unite(run, mine, entry, theirs)
            if outcome == "other":
                return outcome
            if made:
                _add(run, mine, theirs)
            _whole(key, _rows(run, key), " there")  # or undone
            if key in other._looks:
                other._looks[key][:] = _whole(key, _rows(run, key)).looks
        return outcome

    def _unite(self, run: Run, mine: _Rows, entry: Entry, theirs: _Rows) -> str:
        """Add to an estimate what another copy of it has; say what was done."""
        known = _whole(entry.key, theirs, " there")
        if known.seed != entry.seed:
            return "other"
        facts, added = json.loads(theirs.row[5]), json.loads(mine.row[5])
        both = [known.structure, entry.structure]
        alike = None in both or both[0] == both[1]
        if known.weights != entry.weights:  # gaps in other units, unless one of them has none yet
            alike = alike and any(each.weights is None and not len(each.gaps) for each in (known, entry))
        shared = min(len(known.gaps), len(entry.gaps))
        a, b = known.gaps[:shared], entry.gaps[:shared]
        alike = alike and bool(((a == b) | np.isnan(a) | np.isnan(b)).all())
        if alike:
            if entry.checked > known.checked:
                facts |= {name: added[name] for name in _MEASURED if name in added}
            facts = added | facts
            facts |= {"jitter": max(known.jitter, entry.jitter)} if known.jitter or entry.jitter else {}
        structure = (theirs.row[6] or mine.row[6]) if alike else theirs.row[6]
        failure = entry.failure | known.failure
        texts = (json.dumps(facts), structure, json.dumps(failure) if failure else None)
        run("UPDATE estimates SET facts = ?, structure = ?, failure = ? WHERE key = ?", *texts, entry.key)
        _add(run, mine, theirs, gaps=alike)
        after = _rows(run, entry.key)
        changed = _told(after) != _told(theirs)
        return "added" if changed else "there" if alike else "other"

    def _held(self, run: Run, column: str, key: str, seed: int) -> list[tuple[Any, ...]]:
        """Read from a row that nobody else may write meanwhile; sqlite has one writer anyway."""
        locked = " FOR UPDATE" if self.database.postgres else ""
        statement = f"SELECT {column} FROM estimates WHERE key = ? AND seed = ?{locked}"  # noqa: S608 - ours
        found: list[tuple[Any, ...]] = run(statement, key, str(seed))
        return found

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Run]:
        try:
            with self.database.transaction() as run:
                yield run
        except DatabaseError as error:
            raise StoreUnavailable(str(error)) from error


class StoreUnavailable(Exception):  # noqa: N818 - a signal between rooms
    """The store cannot be read or written."""


_MEASURED = ("checked", "failed", "seconds", "norm")
_COLUMNS = ("key", "version", "seed", "label", "n", "facts", "structure", "failure", "created")


@dataclass(frozen=True)
class _Rows:
    """What the tables have under a key."""

    row: tuple[Any, ...]  # as in _COLUMNS; empty if there is none
    pieces: list[tuple[Any, ...]]
    looks: list[str]


def _rows(run: Run, key: str) -> _Rows:
    # The gaps first: where statements see each other's commits, the row is then at least as new as they.
    pieces = run("SELECT start, data, checksum FROM gaps WHERE key = ? ORDER BY start", key)
    rows = run(f"SELECT {', '.join(_COLUMNS)} FROM estimates WHERE key = ?", key)  # noqa: S608 - ours
    looks = run("SELECT plan FROM looks WHERE key = ? ORDER BY at, plan", key)
    return _Rows(rows[0] if rows else (), pieces, [plan for (plan,) in looks])


def _parsed(key: str, rows: _Rows) -> Entry:
    """Return what rows say; whatever is wrong with them raises."""
    _, version, seed, _, _, facts, structure, failure, _ = rows.row
    if version != SCHEMA:
        raise ValueError(f"it has schema version {version}, and this library knows {SCHEMA}")
    told = json.loads(facts)
    entry = Entry(key, int(seed), checked=int(told.get("checked", 0)), jitter=float(told.get("jitter", 0.0)))
    entry.cause = str(told.get("cause", ""))
    if "weights" in told:
        entry.weights = [int(each) for each in told["weights"]]
    entry.structure = None if structure is None else from_json(json.loads(structure))
    entry.failure = {} if failure is None else json.loads(failure)
    if entry.structure is not None and not entry.structure.size:
        raise ValueError("its structure is empty")
    for described in entry.failure.values():
        restore(described)
    entry.looks = [Plan(**json.loads(plan)) for plan in rows.looks]
    entry.gaps = _joined(key, entry.seed, rows.pieces, entry.weights)
    return entry


def _whole(key: str, rows: _Rows, where: str = "") -> Entry:
    """Return the same; a KeyError if there is nothing, a ValueError if there is something wrong."""
    if not rows.row:
        raise KeyError(key)
    try:
        return _parsed(key, rows)
    except Exception as error:
        raise ValueError(f"the estimate {key[:10]} is damaged{where}: {error}") from error


def _add(run: Run, mine: _Rows, theirs: _Rows, *, gaps: bool = True) -> None:
    """Add looks, after those that are there, and pieces of gaps."""
    key = mine.row[0]
    new = [plan for plan in mine.looks if plan not in theirs.looks]
    ((last,),) = run("SELECT max(at) FROM looks WHERE key = ?", key)
    for at, plan in enumerate(new, 0 if last is None else last + 1):
        run("INSERT INTO looks VALUES (?, ?, ?) ON CONFLICT (key, plan) DO NOTHING", key, at, plan)
    for start, data, checksum in mine.pieces if gaps else ():
        run(_PIECE, key, start, bytes(data), checksum)


def _told(rows: _Rows) -> tuple[Any, ...]:
    """Return what rows say in a form that can be compared."""
    row = list(rows.row)
    for at in (5, 6, 7):
        row[at] = None if row[at] is None else json.loads(row[at])
    return row, [(start, bytes(data)) for start, data, _ in rows.pieces], rows.looks


def _checksum(key: str, seed: int, start: int, data: bytes, weights: list[int] | None = None) -> str:
    measured = "" if not weights else f"{weights} "
    return hashlib.sha256(f"{key} {seed} {start} {measured}".encode() + data).hexdigest()


def _joined(
    key: str, seed: int, rows: list[tuple[Any, ...]], weights: list[int] | None = None
) -> NDArray[np.float64]:
    """Return stored pieces as one array; what is damaged raises."""
    pieces = []
    for start, data, checksum in rows:
        data = bytes(data)
        if _checksum(key, seed, start, data, weights) != checksum or len(data) % 8:
            raise ValueError("its gaps are damaged (the checksum does not fit)")
        piece = np.frombuffer(data, dtype="<f8").astype(np.float64, copy=False)
        if not 0 <= start <= _MOST or not (piece >= 0).all():
            raise ValueError("its gaps are not gaps")
        pieces.append((int(start), piece))
    size = max((start + len(piece) for start, piece in pieces), default=0)
    gaps = np.full(size, np.nan)
    for start, piece in pieces:
        known = gaps[start : start + len(piece)]
        if (piece[~np.isnan(known)] != known[~np.isnan(known)]).any():
            raise ValueError("its gaps contradict each other")
        known[:] = piece
    return gaps


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def warn(text: str) -> None:
    """Tell the caller outside this package that memory does not work as it should."""
    warnings.warn(text, StoreWarning, stacklevel=outside())


def default_url() -> str:
    """Return where estimates are kept unless somebody says otherwise: the user's cache folder."""
    given = os.environ.get("PRIVATIZE_STORE")
    if given is not None:
        return given or "memory"
    import platformdirs

    ruled_place = ruled("store")
    if ruled_place:
        return str(ruled_place)
    return str(Path(platformdirs.user_cache_dir("privatize", appauthor=False)) / "estimates.db")


@functools.cache
def open_store(url: str) -> Store:
    """Return the store at a URL, the same one for the same URL."""
    return Store(url)
