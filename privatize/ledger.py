"""The ledger: what was spent, by whom and for what, in one database; totals beside it.

Append-only. A reservation is one transaction: the budget's row is locked, the new totals are compared with
the caps, and the charge is written with them, or nothing is. No data and no answer is ever in here.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from privatize.composition import NOTHING, Cost, exact
from privatize.database import Database, DatabaseError, Run
from privatize.errors import BudgetExceeded, LedgerError, SettingsError

__all__ = ["Begun", "Charge", "Ledger", "Totals", "open_ledger"]

_TEXT = "TEXT NOT NULL"
_COLUMNS = {
    "budgets": f"name TEXT PRIMARY KEY, epsilon {_TEXT}, delta {_TEXT}, gamma {_TEXT}, composition {_TEXT}, "
    f"charges INTEGER NOT NULL, created {_TEXT}",
    "spent": f"budget {_TEXT}, partition {_TEXT}, part {_TEXT}, epsilon {_TEXT}, delta {_TEXT}, "
    f"gamma {_TEXT}, counts {_TEXT}, PRIMARY KEY (budget, partition, part)",
    "charges": f"budget {_TEXT}, number INTEGER NOT NULL, at {_TEXT}, function {_TEXT}, key {_TEXT}, "
    f"dataset {_TEXT}, n INTEGER NOT NULL, mechanism {_TEXT}, kind {_TEXT}, epsilon {_TEXT}, delta {_TEXT}, "
    f"gamma {_TEXT}, charged {_TEXT}, partition {_TEXT}, part {_TEXT}, who {_TEXT}, "
    f"PRIMARY KEY (budget, number)",
    "gammas": f"budget {_TEXT}, dataset {_TEXT}, key {_TEXT}, gamma {_TEXT}, "
    f"PRIMARY KEY (budget, dataset, key)",
    "datasets": f"budget {_TEXT}, dataset {_TEXT}, sampler {_TEXT}, described {_TEXT}, "
    f"PRIMARY KEY (budget, dataset)",
    "people": f"budget {_TEXT}, name {_TEXT}, partition {_TEXT}, part {_TEXT}, PRIMARY KEY (budget, name)",
}
_TABLES = tuple(f"CREATE TABLE IF NOT EXISTS {name} ({columns})" for name, columns in _COLUMNS.items())


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one release asks of a budget.

    Attributes
    ----------
    function : str
        Its name.
    key : str
        The estimate's fingerprint, or "" if it has none.
    dataset : str
        Name and version of declared (sealed) data, or "".
    people : tuple of str
        The names in it without versions: who it is about.
    n : int
        Number of records.
    mechanism, kind : str
        The mechanism, and what tight composition knows of it.
    epsilon, delta, gamma : float
        The promise.
    looks : tuple
        For all plans that were read from the estimate's gaps, the γ that was asked for and that holds now:
        a further look makes the earlier ones' larger.
    sampler, described : str
        Fingerprint and repr of P, of which the function's P is a projection.
    partition, part : str
        Where parallel composition applies.
    who : str
        User and host, if they are wanted.
    """

    function: str
    key: str
    dataset: str
    n: int
    mechanism: str
    kind: str
    epsilon: float
    delta: float
    gamma: float
    looks: tuple[tuple[float, float], ...] = ()
    people: tuple[str, ...] = ()
    sampler: str = ""
    described: str = ""
    partition: str = ""
    part: str = ""
    who: str = ""


@dataclass
class Totals:
    """What was spent in one part of one partition of a budget, or outside of all ("", "")."""

    cost: Cost = NOTHING
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Begun:
    """A budget in a ledger: what it was begun with, and the number of charges since."""

    name: str
    cap: Cost
    composition: str
    charges: int
    created: str


Combine = Callable[[dict[tuple[str, str], Totals]], Cost]


class Ledger:
    """A ledger in a database.

    Parameters
    ----------
    url : str or Path
        See `privatize.database.Database`; ``"memory"`` keeps it in this process only.
    shown : str, optional
        What to call it, if not by its URL: a copy by the name of what it was copied from.
    """

    opaque: ClassVar[bool] = True  # to fingerprints

    def __init__(self, url: str | os.PathLike[str], *, shown: str | None = None) -> None:
        self.database = Database(url, _TABLES, durable=True)
        self._shown = shown
        self._process = os.getpid()

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        if self._shown is not None:
            return self._shown
        scheme, sign, rest = self.database.url.partition("://")
        return scheme + sign + rest.rpartition("@")[2].partition("?")[0] if sign else scheme

    def begin(self, name: str, cap: Cost, composition: str) -> None:
        """Begin a budget, or find it; refuse if it was begun with other caps."""
        facts = (str(cap.epsilon), str(cap.delta), str(cap.gamma), composition)
        with self._transaction() as run:
            run(
                "INSERT INTO budgets VALUES (?, ?, ?, ?, ?, 0, ?) ON CONFLICT (name) DO NOTHING",
                *(name, *facts, _now()),
            )
            ((*found, _),) = run(
                "SELECT epsilon, delta, gamma, composition, charges FROM budgets WHERE name = ?", name
            )
        known = _cost_of(found[:3])
        if known != cap or found[3] != composition:
            raise SettingsError(
                f"The budget {name!r} in {self.url} was begun with epsilon={float(known.epsilon):g}, "
                f"delta={float(known.delta):g}, gamma={float(known.gamma):g}, composition={found[3]!r}. A "
                f"budget keeps what it was begun with: name the same, or begin another one."
            )

    def begun(self) -> list[Begun]:
        """Return every budget, the oldest first."""
        with self._transaction(write=False) as run:
            rows = run(
                "SELECT name, epsilon, delta, gamma, composition, charges, created FROM budgets "
                "ORDER BY created, name"
            )
        return [
            Begun(name, _cost_of(caps), composition, int(charges), created)
            for name, *caps, composition, charges, created in rows
        ]

    def totals(self, name: str) -> dict[tuple[str, str], Totals]:
        """Return what was spent, by partition and part."""
        with self._transaction(write=False) as run:
            return _totals(run, name)

    def reserve(self, name: str, charge: Charge, cap: Cost, combine: Combine, *, several: bool) -> Cost:
        """Spend, in one transaction, or refuse and change nothing. Returns what was charged.

        Parameters
        ----------
        name : str
            The budget.
        charge : Charge
            What is asked for.
        cap : Cost
            What there is in all.
        combine : callable
            Tells what totals cost together.
        several : bool
            Whether one dataset may have several samplers.
        """
        with self._transaction() as run:
            # The row is locked until the end: on PostgreSQL by this, on sqlite by the transaction itself.
            rows = run("UPDATE budgets SET charges = charges + 1 WHERE name = ? RETURNING charges", name)
            if not rows:
                raise LedgerError(f"The budget {name!r} is no longer in {self.url}.")
            number = int(rows[0][0])
            cost = self._cost(run, name, charge, several)
            before = _totals(run, name)
            after = _added(before, charge, cost)
            spent = combine(after)
            if not spent.fits(cap):
                raise _exceeded(name, charge, cost, combine(before), spent, cap)
            _write(run, name, number, charge, cost, after[charge.partition, charge.part])
        return cost

    def afford(self, name: str, charge: Charge, cap: Cost, combine: Combine, *, several: bool) -> None:
        """Refuse what could not be reserved now; spend nothing."""
        with self._transaction(write=False) as run:
            cost = self._cost(run, name, charge, several, write=False)
            before = _totals(run, name)
            after = combine(_added(before, charge, cost))
            if not after.fits(cap):
                raise _exceeded(name, charge, cost, combine(before), after, cap)

    def _cost(self, run: Run, name: str, charge: Charge, several: bool, *, write: bool = True) -> Cost:
        """Return what a charge costs: γ only once for the same estimate on the same declared dataset."""
        cost = Cost.of(charge.epsilon, charge.delta, charge.gamma)
        if not charge.dataset:
            if charge.partition:
                raise SettingsError(
                    f"The part {charge.part!r} of {charge.partition!r} needs data with a name: the parts of "
                    f"a partition are separate datasets, fixed beforehand, which a replaced record cannot "
                    f"leave (sites, years). Seal each: seal(data, name=...). To group by an attribute, use "
                    f"one function that returns all groups."
                )
            return cost
        self._declare(run, name, charge, several, write)
        if not charge.key:
            return cost
        rows = run(
            "SELECT gamma FROM gammas WHERE budget = ? AND dataset = ? AND key = ?",
            *(name, charge.dataset, charge.key),
        )
        known = _cost_of((0, 0, rows[0][0])).gamma if rows else Fraction(0)
        # Of plans that may have been charged before, what holds for them now.
        due = max([cost.gamma, *(exact(now) for asked, now in charge.looks if exact(asked) <= known)])
        cost = Cost(cost.epsilon, cost.delta, due)
        if write and cost.gamma > known:
            run(
                "INSERT INTO gammas VALUES (?, ?, ?, ?) ON CONFLICT (budget, dataset, key) DO UPDATE SET "
                "gamma = excluded.gamma",
                *(name, charge.dataset, charge.key, str(cost.gamma)),
            )
        return Cost(cost.epsilon, cost.delta, max(cost.gamma - known, Fraction(0)))

    def _declare(self, run: Run, name: str, charge: Charge, several: bool, write: bool) -> None:
        """Refuse a second P for a dataset, and a dataset in two parts of a partition."""
        rows = run(
            "SELECT sampler, described FROM datasets WHERE budget = ? AND dataset = ?", name, charge.dataset
        )
        if not rows and write:
            run(
                "INSERT INTO datasets VALUES (?, ?, ?, ?)",
                *(name, charge.dataset, charge.sampler, charge.described),
            )
        for sampler, described in rows:
            if sampler != charge.sampler and not several:
                raise SettingsError(
                    f"The budget {name!r} has answers about {charge.dataset} under P={described}, and this "
                    f"one has P={charge.described}. Promises add up only with respect to one P: use that "
                    f"one, or its columns P[...]; or pass Budget(..., several_samplers=True) if you have "
                    f"reason to."
                )
        where = (charge.partition, charge.part)
        for person in charge.people or (charge.dataset,):  # versions are of the same people
            placed = run("SELECT partition, part FROM people WHERE budget = ? AND name = ?", name, person)
            if not placed and write:
                run("INSERT INTO people VALUES (?, ?, ?, ?)", *(name, person, *where))
            if placed and tuple(placed[0]) != where:
                raise SettingsError(
                    f"The data {person} has been used in the budget {name!r} {_where(*placed[0])}, and now "
                    f"{_where(*where)}. A dataset is in one part of a partition, fixed beforehand, or in "
                    f"none: then a replaced record cannot move to another part, and the largest part counts. "
                    f"To group by an attribute, use one function that returns all groups."
                )

    def history(self, name: str) -> list[dict[str, Any]]:
        """Return every charge, the oldest first."""
        names = (
            *(
                "number",
                "at",
                "function",
                "dataset",
                "n",
                "mechanism",
                "epsilon",
                "delta",
                "gamma",
                "charged",
            ),
            *("partition", "part", "who", "key", "kind"),
        )
        with self._transaction(write=False) as run:
            columns = ", ".join(names)
            rows = run(f"SELECT {columns} FROM charges WHERE budget = ? ORDER BY number", name)  # noqa: S608
        found = [dict(zip(names, row, strict=True)) for row in rows]
        for row in found:
            for number in ("epsilon", "delta", "gamma", "charged"):
                row[number] = float(_cost_of((0, 0, row[number])).gamma)
        return found

    def recomputed(self, name: str) -> tuple[dict[tuple[str, str], Totals], dict[tuple[str, str], Totals]]:
        """Return the totals, and what the charges add up to, both of one moment."""
        with self._transaction() as run:
            if self.database.postgres:  # or every statement would see a moment of its own
                run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            kept = _totals(run, name)
            rows = run(
                "SELECT number, dataset, key, kind, epsilon, delta, gamma, charged, partition, part "
                "FROM charges WHERE budget = ? ORDER BY number",
                name,
            )
            counted = run("SELECT charges FROM budgets WHERE name = ?", name)
            gammas = run("SELECT dataset, key, gamma FROM gammas WHERE budget = ?", name)
            datasets = {row[0] for row in run("SELECT dataset FROM datasets WHERE budget = ?", name)}
        made: dict[tuple[str, str], Totals] = {}
        largest: dict[tuple[str, str], Fraction] = {}
        for number, (at, dataset, key, kind, epsilon, delta, gamma, charged, partition, part) in enumerate(
            rows, 1
        ):
            total = made.setdefault((partition, part), Totals())
            due = _cost_of((epsilon, delta, charged)).gamma
            known = Fraction(0)
            if dataset and key:
                known = largest.get((dataset, key), Fraction(0))
                largest[dataset, key] = known + due
            # At least what was asked for; more if a further look made an earlier one's larger.
            wanted = _cost_of((epsilon, delta, gamma)).gamma
            lost = bool(dataset) and dataset not in datasets
            if at != number or due < 0 or known + due < wanted or lost:
                raise LedgerError(f"The ledger of {name!r} is damaged at its charge {at}.")
            total.cost += Cost(Fraction(epsilon), Fraction(delta), due)
            total.counts[kind] = total.counts.get(kind, 0) + 1
        if counted != [(len(rows),)]:
            raise LedgerError(f"The ledger of {name!r} has {len(rows)} charges, and counted {counted}.")
        noted = {(dataset, key): _cost_of((0, 0, gamma)).gamma for dataset, key, gamma in gammas}
        if noted != {where: gamma for where, gamma in largest.items() if gamma}:
            raise LedgerError(f"The ledger of {name!r} is damaged: its gammas are not its charges'.")
        return kept, made

    @contextlib.contextmanager
    def _transaction(self, *, write: bool = True) -> Iterator[Run]:
        if self.database.url == "memory" and self._process != os.getpid():
            raise LedgerError(
                "This budget is in the memory of the process that this one was forked from. Give it a "
                "ledger= to share it."
            )
        try:
            with self.database.transaction(write=write) as run:
                yield run
        except DatabaseError as error:
            raise LedgerError(
                f"The ledger {self.url} cannot be used, so nothing can be spent from it: {error}"
            ) from None


def _where(partition: str, part: str) -> str:
    return f"in the part {part!r} of {partition!r}" if partition else "outside of every partition"


def _totals(run: Run, name: str) -> dict[tuple[str, str], Totals]:
    rows = run("SELECT partition, part, epsilon, delta, gamma, counts FROM spent WHERE budget = ?", name)
    return {
        (partition, part): Totals(_cost_of(numbers), _counts_of(counts))
        for partition, part, *numbers, counts in rows
    }


def _cost_of(texts: Any) -> Cost:
    try:
        return Cost(*map(Fraction, texts))
    except (TypeError, ValueError, ZeroDivisionError):
        raise LedgerError("The ledger is damaged: an amount in it is not a number.") from None


def _counts_of(text: str) -> dict[str, int]:
    try:
        return {str(kind): int(count) for kind, count in json.loads(text).items()}
    except (TypeError, ValueError, AttributeError):
        raise LedgerError("The ledger is damaged: its counts are not counts.") from None


def _added(
    totals: dict[tuple[str, str], Totals], charge: Charge, cost: Cost
) -> dict[tuple[str, str], Totals]:
    """Return totals with one more charge."""
    where = (charge.partition, charge.part)
    before = totals.get(where, Totals())
    counts = before.counts | {charge.kind: before.counts.get(charge.kind, 0) + 1}
    return totals | {where: Totals(before.cost + cost, counts)}


def _write(run: Run, name: str, number: int, charge: Charge, cost: Cost, total: Totals) -> None:
    c = charge
    numbers = (str(exact(c.epsilon)), str(exact(c.delta)), str(exact(c.gamma)), str(cost.gamma))
    run(
        "INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(name, number, _now(), c.function, c.key, c.dataset, c.n, c.mechanism, c.kind, *numbers),
        *(c.partition, c.part, c.who),
    )
    spent = (str(total.cost.epsilon), str(total.cost.delta), str(total.cost.gamma), json.dumps(total.counts))
    run(
        "INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (budget, partition, part) DO UPDATE SET "
        "epsilon = excluded.epsilon, delta = excluded.delta, gamma = excluded.gamma, "
        "counts = excluded.counts",
        *(name, c.partition, c.part, *spent),
    )


def _exceeded(name: str, charge: Charge, cost: Cost, spent: Cost, after: Cost, cap: Cost) -> BudgetExceeded:
    """Return the error that shows requested, remaining and cap, and what would fit."""
    short: list[str] = []
    enough: list[str] = []
    facts: dict[str, float] = {}
    fits: list[str] = []
    for symbol in ("epsilon", "delta", "gamma"):
        asked, most = float(getattr(cost, symbol)), float(getattr(cap, symbol))
        left = max(float(getattr(cap, symbol) - getattr(spent, symbol)), 0.0)
        line = f"{symbol}={asked:.6g} of {left:.6g} left (cap {most:.6g})"
        facts |= {symbol: asked, f"{symbol}_left": left, f"{symbol}_cap": most}
        if getattr(after, symbol) <= getattr(cap, symbol):
            enough += [line] if asked else []
        else:
            short.append(line)
            fits.append(f"{symbol}={_down(left)}" if _down(left) > 0 and symbol != "gamma" else "")
    possible = bool(fits) and all(fits)
    would = f"{charge.function}.replace({', '.join(fits)}) would fit." if possible else "Nothing more fits."
    also = f"; there is enough for {', '.join(enough)}" if enough else ""
    text = (
        f"The budget {name!r} has not enough left for {charge.function}(), which asks for "
        f"{', '.join(short)}{also}."
    )
    return BudgetExceeded(f"{text} Nothing was spent. {would}", **facts)


def _down(amount: float) -> float:
    """Return an amount in few digits, and not more than it is."""
    if amount <= 0:
        return 0.0
    digits = 5 - math.floor(math.log10(amount))
    rounded = float(f"{amount:.6g}")
    return rounded if rounded <= amount else float(f"{amount - 10.0**-digits:.6g}")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@functools.cache
def open_ledger(url: str) -> Ledger:
    """Return the ledger at a URL or an absolute path, one for each in this process."""
    return Ledger(url)
