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

from privatize.database import Database, DatabaseError, Run
from privatize.errors import StoreWarning, restore
from privatize.fingerprint import outside
from privatize.outputs import size
from privatize.planning import Plan
from privatize.policy import ruled

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
    structure : list or None
        Structure of the output.
    failure : dict
        How calibrations failed, by plan.
    checked : int
        How many of the gaps belong to a calibration that ended well.
    jitter : float
        By how much the function has been seen to round differently from run to run.
    weights : list of int or None
        Weights of the output's numbers, as powers of two.
    """

    key: str
    seed: int
    gaps: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    looks: list[Plan] = field(default_factory=list)
    structure: list[Any] | None = None
    failure: dict[str, Any] = field(default_factory=dict)
    checked: int = 0
    jitter: float = 0.0
    weights: list[int] | None = None


class Store:
    """Estimates in a database.

    Parameters
    ----------
    url : str or Path
        See :class:`privatize.database.Database`; ``"memory"`` keeps them in this process only.

    Examples
    --------
    >>> store = Store("memory")
    >>> store.open("key", seed=7, label="mean", n=100, facts={}).seed
    7
    >>> store.open("key", seed=8, label="mean", n=100, facts={}).seed  # the first writer wins
    7
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.database = Database(url, _TABLES)
        self._looks: dict[str, list[Plan]] = {}

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        scheme, sign, rest = self.database.url.partition("://")
        return scheme + sign + rest.rpartition("@")[2].partition("?")[0] if sign else scheme

    def open(self, key: str, *, seed: int, label: str, n: int, facts: dict[str, Any]) -> Entry:
        """Return what is remembered under a key, or begin it with this seed."""
        with self._writing() as run:
            run(
                "INSERT INTO estimates VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, ?) ON CONFLICT (key) DO NOTHING",
                *(key, SCHEMA, str(seed), label, n, json.dumps(facts), _now()),
            )
            found = self._read(run, key)
            if found is None:  # of another version, or damaged: begin anew
                for table in ("estimates", "gaps", "looks"):
                    run(f"DELETE FROM {table} WHERE key = ?", key)  # noqa: S608 - names of ours
                run(
                    "INSERT INTO estimates VALUES (?, ?, ?, ?, ?, ?, NULL, NULL, ?)",
                    *(key, SCHEMA, str(seed), label, n, json.dumps(facts), _now()),
                )
                found = Entry(key, seed)
        return found

    def _read(self, run: Any, key: str) -> Entry | None:
        # The gaps first: where statements see each other's commits, the row is then at least as new as they.
        pieces = run("SELECT start, data, checksum FROM gaps WHERE key = ? ORDER BY start", key)
        rows = run("SELECT version, seed, structure, failure, facts FROM estimates WHERE key = ?", key)
        try:
            version, seed, structure, failure, facts = rows[0]
            if version != SCHEMA:
                raise ValueError(f"it has schema version {version}, and this library knows {SCHEMA}")
            told = json.loads(facts)
            entry = Entry(
                key, int(seed), checked=int(told.get("checked", 0)), jitter=float(told.get("jitter", 0.0))
            )
            if "weights" in told:
                entry.weights = [int(each) for each in told["weights"]]
            entry.structure = None if structure is None else json.loads(structure)
            entry.failure = {} if failure is None else json.loads(failure)
            if entry.structure is not None and not size(entry.structure):
                raise ValueError("its structure is empty")
            for described in entry.failure.values():
                restore(described)
            looks = run("SELECT plan FROM looks WHERE key = ? ORDER BY at, plan", key)
            entry.looks = [Plan(**json.loads(plan)) for (plan,) in looks]
            entry.gaps = _joined(key, entry.seed, pieces, entry.weights)
        except DatabaseError:
            raise
        except Exception as error:  # whatever is in there, it is a miss
            warn(f"A remembered estimate cannot be used, so it is made again: {error!r}.")
            return None
        return entry

    def save(
        self,
        key: str,
        seed: int,
        start: int,
        gaps: NDArray[np.float64],
        structure: list[Any] | None,
        weights: list[int] | None = None,
    ) -> None:
        """Add gaps from index `start` on, if the seed is still the one that they were made with.

        Those that were measured with other weights than the entry's do not pass for its own.
        """
        data = np.ascontiguousarray(gaps, dtype="<f8").tobytes()
        with self._writing() as run:
            if run("SELECT seed FROM estimates WHERE key = ?", key) != [(str(seed),)]:
                return  # forgotten, or begun anew by somebody else
            # A longer piece replaces a shorter one that begins at the same index.
            run(
                "INSERT INTO gaps VALUES (?, ?, ?, ?) ON CONFLICT (key, start) DO UPDATE SET "
                "data = excluded.data, checksum = excluded.checksum "
                "WHERE length(excluded.data) > length(gaps.data)",
                *(key, start, data, _checksum(key, seed, start, data, weights)),
            )
            if structure is not None:
                run("UPDATE estimates SET structure = ? WHERE key = ?", json.dumps(structure), key)

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
        """Return a description of every estimate, the newest first."""
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
            entry["facts"] = json.loads(entry["facts"])
            entry["failure"] = {} if entry["failure"] is None else json.loads(entry["failure"])
            entry["seed"], entry["pairs"] = int(entry["seed"]), covered.get(entry["key"], (0, 0))[0]
        return found

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
