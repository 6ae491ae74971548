"""The store of estimates: gaps in index order and public facts, as numbers and JSON.

What is stored is not Δ̂ but the gaps that it is read from, so another ε, δ, γ or bound needs no new
evaluation, and a larger m only the missing indices. A key has one seed, that of the first writer. An
entry that cannot be read back completely is measured again, with a warning, and never used in part.
"""

import contextlib
import functools
import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.run import Memory
from privatize.calibration.spread import Spread
from privatize.calibration.stress import Tried
from privatize.errors import StoreWarning, restore
from privatize.identity.library import outside
from privatize.mechanisms.shapes import Shape
from privatize.outputs.describe import from_json
from privatize.outputs.structure import Structure
from privatize.planning.plan import Plan
from privatize.storage.database import Database, Run, now, storable
from privatize.storage.places import without_password

SCHEMA = 1
_MOST = 2**40  # no calibration has more pairs
_NOTED = 256  # of how many estimates it is noted that they hold in this process

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

_ESTIMATE = "INSERT INTO estimates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"
_LOOK = "INSERT INTO looks VALUES (?, ?, ?) ON CONFLICT (key, plan) DO NOTHING"
# A longer piece replaces a shorter one that begins at the same index.
_PIECE = (
    "INSERT INTO gaps VALUES (?, ?, ?, ?) ON CONFLICT (key, start) DO UPDATE SET data = excluded.data, "
    "checksum = excluded.checksum WHERE length(excluded.data) > length(gaps.data)"
)


@dataclass(kw_only=True)
class Entry(Memory):
    """What is remembered under a key.

    Attributes
    ----------
    key : str
        Fingerprint of everything that the gaps depend on.
    seed : int
        The calibration seed of the first writer.
    failure : dict
        How calibrations failed, by plan.
    gaps : array
        The gaps in index order; NaN where there is none yet.
    looks : list of Plan
        The plans that have been read from them, the first one first.
    structure : Structure or None
        Structure of the output.
    checked : int
        How many of the gaps belong to a calibration that succeeded.
    jitter : float
        By how much the function has been seen to round differently from run to run.
    weights : list of int or None
        How noise is divided among the output's numbers: an encoded `Shape`.
    spread : Spread or None
        How far answers are spread over datasets from P.
    cause : str
        Why the first of the failed pairs failed.
    tried : Tried or None
        The gaps of the stress test.
    largest : list of (int, float) or None
        Of many functions, each one's pair with its own largest gap, and that gap.
    proven : dict
        The facts about a proven bound that was tried.
    signature : tuple of float
        How answers about public datasets differ, which tells what the function computes; empty if unknown.
    """

    key: str
    seed: int
    failure: dict[str, Any] = field(default_factory=dict)
    proven: dict[str, Any] = field(default_factory=dict)
    signature: tuple[float, ...] = ()


class Store:
    """Estimates in a database.

    Parameters
    ----------
    url : str or Path
        See `privatize.storage.database.Database`; ``"memory"`` keeps them in this process only.
    shown : str, optional
        Its name in messages, if not its URL: a copy has the name of its original.

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
        self.url = without_password(self.database.url) if shown is None else shown
        self._looks: dict[str, list[Plan]] = {}
        # By key, seed and the orders of sets: gaps that this process has measured, or has checked.
        self._measured: dict[tuple[str, int, frozenset[str]], NDArray[np.float64]] = {}

    def note_measured(self, which: tuple[str, int, frozenset[str]], gaps: NDArray[np.float64]) -> None:
        """Note that these are gaps that this process has measured, or of which it has measured one again."""
        if len(self._measured) >= _NOTED:
            self._measured.clear()
        self._measured[which] = gaps

    def measured_here(self, which: tuple[str, int, frozenset[str]], gaps: NDArray[np.float64]) -> bool:
        """Tell whether these gaps, as far as there are any, were noted: others may have come since."""
        known, have = self._measured.get(which, gaps[:0])[: len(gaps)], ~np.isnan(gaps)
        return len(known) == len(gaps) and bool((gaps == known)[have].all())

    def open(self, key: str, *, seed: int, label: str, n: int, facts: dict[str, Any]) -> Entry:
        """Return what is remembered under a key, or start an entry with this seed."""
        row = (key, SCHEMA, str(seed), storable(label), n, json.dumps(facts), None, None, now())
        with self.database.transaction() as run:
            run(_ESTIMATE, *row)
            try:
                return _entry(key, _rows(run, key))
            except Exception as error:  # of another version, or damaged: it counts as missing
                warn(f"A remembered estimate cannot be used, so it is made again: {error!r}.")
            _delete(run, key)
            run(_ESTIMATE, *row)
            return Entry(key=key, seed=seed)

    def read(self, key: str) -> Entry:
        """Return what is remembered under a key, and start no entry.

        Raises
        ------
        KeyError
            If nothing is remembered.
        ValueError
            If it is damaged, or of another version.
        """
        with self.database.transaction() as run:
            rows = _rows(run, key)
        return _entry(key, rows)

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

        The checksum includes the weights, so gaps that were measured with other weights than the entry's are
        not taken for its own.
        """
        data = np.ascontiguousarray(gaps, dtype="<f8").tobytes()
        with self.database.transaction() as run:
            if run("SELECT seed FROM estimates WHERE key = ?", key) != [(str(seed),)]:
                return  # forgotten, or started again by somebody else
            run(_PIECE, key, start, data, _checksum(key, seed, start, data, weights))
            if structure is not None:
                run("UPDATE estimates SET structure = ? WHERE key = ?", json.dumps(structure.to_json()), key)

    def look(self, key: str, plan: Plan) -> list[Plan]:
        """Record that a plan is read from the gaps, and return all plans that were, the first one first."""
        with self.database.transaction() as run:
            ((count,),) = run("SELECT count(*) FROM looks WHERE key = ?", key)
            run(_LOOK, key, count, json.dumps(asdict(plan), sort_keys=True))
            found = _looks(run, key)
        # All estimates of this process that are read from these gaps share one list, so that earlier ones
        # know of a further plan.
        looks = self._looks.setdefault(key, [])
        looks[:] = [Plan(**json.loads(plan)) for plan in found]
        return looks

    def fail(self, key: str, seed: int, plan: str, failure: dict[str, Any]) -> None:
        """Remember that a plan failed, or all of them ("*"): trying again must not give a luckier one."""
        self._change(key, seed, "failure", lambda known: known | {plan: failure})

    def describe(self, key: str, seed: int, **facts: Any) -> None:
        """Add public facts about a calibration, if the seed is still the one that it was made with."""
        self._change(key, seed, "facts", lambda known: known | facts)

    def agree(self, key: str, seed: int, weights: list[int]) -> list[int]:
        """Return the weights that everybody uses under a key: the first writer's."""
        first = self._change(
            key, seed, "facts", lambda known: known | {"weights": known.get("weights", weights)}
        )
        # If the entry was forgotten meanwhile, nobody else uses its weights.
        return weights if first is None else [int(each) for each in first["weights"]]

    def _change(
        self, key: str, seed: int, column: str, change: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> dict[str, Any] | None:
        """Change a column of JSON and return its content, or None if the entry has another seed by now."""
        locked = " FOR UPDATE" if self.database.postgres else ""  # sqlite has one writer anyway
        with self.database.transaction() as run:
            which = f"estimates WHERE key = ? AND seed = ?{locked}"
            rows = run(f"SELECT {column} FROM {which}", key, str(seed))  # noqa: S608 - ours
            if not rows:
                return None
            changed = change(json.loads(rows[0][0] or "{}"))
            run(f"UPDATE estimates SET {column} = ? WHERE key = ?", json.dumps(changed), key)  # noqa: S608
            return changed

    def forget(self, key: str | None = None) -> int:
        """Forget one estimate, or all; return how many there were. A family is forgotten with its members."""
        with self.database.transaction() as run:
            keys = [key] if key is None else [key, *_members(run, key)]
            count = sum(_delete(run, each) for each in keys)
        for forgotten in list(self._looks) if key is None else keys:
            self._looks.pop(forgotten or "", None)
        return count

    def entries(self) -> list[dict[str, Any]]:
        """Return a description of every estimate, the newest first; "damaged" says why one has none."""
        with self.database.transaction() as run:
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

    def copy_to(self, other: "Store", key: str) -> str:
        """Copy what is remembered under a key to another store; what is there already stays as it is.

        Returns
        -------
        str
            ``"copied"``; ``"there"`` if it was there already; ``"other"`` if it is there under another seed.

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
        with self.database.transaction() as run:
            mine = _rows(run, key)
        seed = _entry(key, mine).seed
        with other.database.transaction() as run:
            new = bool(run(f"{_ESTIMATE} RETURNING key", *mine.row))
            if new:
                for at, plan in enumerate(mine.looks):
                    run(_LOOK, key, at, plan)
                for start, data, checksum in mine.pieces:
                    run(_PIECE, key, start, bytes(data), checksum)
            known = _entry(key, _rows(run, key), " there")  # an error undoes the copy
        return "copied" if new else "there" if known.seed == seed else "other"


@dataclass(frozen=True)
class _Rows:
    """What the tables have under a key."""

    row: tuple[Any, ...]  # of estimates; empty if there is none
    pieces: list[tuple[Any, ...]]
    looks: list[str]


def _rows(run: Run, key: str) -> _Rows:
    # Gaps first: a statement may see later commits than the one before, and the row must not be older.
    pieces = run("SELECT start, data, checksum FROM gaps WHERE key = ? ORDER BY start", key)
    rows = run("SELECT * FROM estimates WHERE key = ?", key)
    return _Rows(rows[0] if rows else (), pieces, _looks(run, key))


def _looks(run: Run, key: str) -> list[str]:
    return [plan for (plan,) in run("SELECT plan FROM looks WHERE key = ? ORDER BY at, plan", key)]


def _members(run: Run, key: str) -> list[str]:
    """Return the keys of the members, if an estimate is for a family of P."""
    for (facts,) in run("SELECT facts FROM estimates WHERE key = ?", key):
        with contextlib.suppress(ValueError, AttributeError, TypeError):  # damaged
            return [str(each) for each in json.loads(facts).get("members", [])]
    return []


def _delete(run: Run, key: str | None) -> int:
    """Delete one estimate, or all; return how many there were."""
    where, values = ("", ()) if key is None else (" WHERE key = ?", (key,))
    ((count,),) = run(f"SELECT count(*) FROM estimates{where}", *values)  # noqa: S608 - ours
    for table in ("gaps", "looks", "estimates"):
        run(f"DELETE FROM {table}{where}", *values)  # noqa: S608 - ours
    return int(count)


def _entry(key: str, rows: _Rows, where: str = "") -> Entry:
    """Return the entry in rows; raise a KeyError if there is none, a ValueError if it is damaged."""
    if not rows.row:
        raise KeyError(key)
    try:
        return _parsed(key, rows)
    except Exception as error:
        raise ValueError(f"the estimate {key[:10]} is damaged{where}: {error}") from error


def _parsed(key: str, rows: _Rows) -> Entry:
    _, version, seed, _, _, text, structure, failure, _ = rows.row
    if version != SCHEMA:
        raise ValueError(f"it has schema version {version}, and this library knows {SCHEMA}")
    facts = json.loads(text)
    weights = [int(each) for each in facts["weights"]] if "weights" in facts else None
    entry = Entry(
        key=key,
        seed=int(seed),
        gaps=_joined(key, int(seed), rows.pieces, weights),
        looks=[Plan(**json.loads(plan)) for plan in rows.looks],
        structure=None if structure is None else from_json(json.loads(structure)),
        failure=json.loads(failure or "{}"),
        checked=int(facts.get("checked", 0)),
        jitter=float(facts.get("jitter", 0.0)),
        weights=weights,
        spread=Spread.from_json(facts["spread"]) if "spread" in facts else None,
        cause=str(facts.get("cause", "")),
        tried=Tried.from_json(facts["stress"]) if "stress" in facts else None,
        proven=dict(facts.get("proven", {})),
        signature=tuple(map(float, facts.get("signature", ()))),
        largest=_largest(facts["largest"]) if "largest" in facts else None,
    )
    if weights:
        Shape.of(weights)  # raises if it is none
    if entry.structure is not None and not entry.structure.size:
        raise ValueError("its structure is empty")
    for described in entry.failure.values():
        restore(described)
    return entry


def _largest(facts: list[list[Any]]) -> list[tuple[int, float]]:
    """Return the pair with the largest gap of each of many functions, and that gap."""
    found = [(int(index), float(gap)) for index, gap in facts]
    if not all(0 <= index <= _MOST and 0 <= gap < math.inf for index, gap in found):
        raise ValueError("its largest gaps are negative, NaN or at impossible indices")
    return found


def _checksum(key: str, seed: int, start: int, data: bytes, weights: list[int] | None = None) -> str:
    measured = "" if not weights else f"{weights} "
    return hashlib.sha256(f"{key} {seed} {start} {measured}".encode() + data).hexdigest()


def _joined(
    key: str, seed: int, rows: list[tuple[Any, ...]], weights: list[int] | None
) -> NDArray[np.float64]:
    """Return stored pieces as one array; raise if they are damaged."""
    pieces = []
    for start, data, checksum in rows:
        data = bytes(data)
        if _checksum(key, seed, start, data, weights) != checksum or len(data) % 8:
            raise ValueError("its gaps are damaged (the checksum does not match)")
        piece = np.frombuffer(data, dtype="<f8").astype(np.float64, copy=False)
        if not 0 <= start <= _MOST or not (piece >= 0).all():
            raise ValueError("its gaps are negative, NaN or at impossible indices")
        pieces.append((int(start), piece))
    size = max((start + len(piece) for start, piece in pieces), default=0)
    gaps = np.full(size, np.nan)
    for start, piece in pieces:
        known = gaps[start : start + len(piece)]
        if (piece[~np.isnan(known)] != known[~np.isnan(known)]).any():
            raise ValueError("its gaps contradict each other")
        known[:] = piece
    return gaps


def warn(text: str) -> None:
    """Warn the caller outside this package that the store does not work as it should."""
    warnings.warn(text, StoreWarning, stacklevel=outside())


@functools.cache
def open_store(url: str) -> Store:
    """Return the store at a URL, the same one for the same URL."""
    return Store(url)
