"""The ledger: what was spent, by whom and for what, in one database; totals beside it.

Append-only. A reservation is one transaction: the budget's row is locked, the new totals are compared with
the caps, and the charge is written with them, or nothing is. No data and no answer is ever in here.

The rules are those of `privatize.budgets.charges.Book`: a reservation adds one charge to what was loaded, and
`Ledger.recomputed` adds all of them to an empty one, so that what is verified is what was enforced.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from privatize.budgets.charges import COMPARABLE, Book, Charge, Due, Person, Totals
from privatize.budgets.ledger_layout import CREATE, VERSION, check, prepare
from privatize.errors import BudgetExceeded, LedgerError, SettingsError
from privatize.mechanisms.gaussian import Gaussian
from privatize.planning.bounds import exact
from privatize.planning.composition import Cost
from privatize.storage.database import Database, DatabaseError, Run, storable

__all__ = ["Begun", "Charge", "Ledger", "Totals", "open_ledger"]


@dataclass(frozen=True)
class Begun:
    """A budget in a ledger: what it was begun with, and the number of charges since."""

    name: str
    cap: Cost
    composition: str
    charges: int
    created: str
    neighbours: str = "replace"
    unit: str = "record"
    migrated: int = 0


Combine = Callable[[dict[tuple[str, str], Totals]], Cost]
_COLUMNS = (
    *("number", "at", "function", "key", "dataset", "n", "mechanism", "kind", "epsilon", "delta", "gamma"),
    *("charged", "partition", "part", "who", "strength", "declared", "described", "people", "neighbours"),
    *("unit", "purpose", "looks", "average", "average_charged"),
)
_BUDGET = "name, epsilon, delta, gamma, composition, charges, created, neighbours, unit, migrated"
_MARKS = ", ".join("?" * (1 + len(_COLUMNS)))


class Ledger:
    """A ledger in a database.

    Parameters
    ----------
    url : str or Path
        See `privatize.storage.database.Database`; ``"memory"`` keeps it in this process only.
    shown : str, optional
        What to call it, if not by its URL: a copy by the name of what it was copied from.
    """

    opaque: ClassVar[bool] = True  # to fingerprints

    def __init__(self, url: str | os.PathLike[str], *, shown: str | None = None) -> None:
        self.database = Database(url, CREATE, durable=True, prepare=prepare)
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
            if not run("SELECT 1 FROM budgets WHERE name = ?", name):
                for table in ("charges", "spent", "gammas", "people"):
                    if run(f"SELECT 1 FROM {table} WHERE budget = ? LIMIT 1", name):  # noqa: S608
                        raise LedgerError(
                            f"The ledger {self.url} is damaged: its table {table} has rows of the budget "
                            f"{name!r}, whose caps are missing. Restore it from a backup."
                        )
            run(
                "INSERT INTO budgets VALUES (?, ?, ?, ?, ?, 0, ?, 'replace', 'record', 0) "
                "ON CONFLICT (name) DO NOTHING",
                *(name, *facts, _now()),
            )
            begun = self._begun(run, name)
        if begun.cap != cap or begun.composition != composition:
            raise SettingsError(
                f"The budget {name!r} in {self.url} was begun with {_caps(begun)}. A budget keeps the caps "
                f"that it was begun with: pass these, or begin a budget with another name."
            )

    def begun(self) -> list[Begun]:
        """Return every budget, the oldest first."""
        with self._transaction(write=False) as run:
            rows = run(f"SELECT {_BUDGET} FROM budgets ORDER BY created, name")  # noqa: S608
        return [_begun_of(row) for row in rows]

    def totals(self, name: str) -> dict[tuple[str, str], Totals]:
        """Return what was spent, by partition and part."""
        with self._transaction(write=False) as run:
            return _totals(run, name)

    def unsealed(self, name: str) -> tuple[int, bool]:
        """Return how many sampled answers were about data without a name, and whether one P holds for all."""
        with self._transaction(write=False) as run:
            ((count,),) = run(
                "SELECT COUNT(*) FROM charges WHERE budget = ? AND dataset = '' AND strength = 'sampled' "
                "AND purpose <> 'declaration'",
                name,
            )
            declared = [person.declared for person in _people(run, name).values()] if count else []
        families = [set(each) for each in declared if each is not None]
        return int(count), not families or bool(set.intersection(*families))

    def reserve(self, begun: Begun, charge: Charge, combine: Combine) -> Cost:
        """Spend, in one transaction, or refuse and change nothing. Returns what was charged.

        Parameters
        ----------
        begun : Begun
            The budget, as its user knows it.
        charge : Charge
            What is asked for.
        combine : callable
            Tells what totals cost together.
        """
        _check_charge(begun, charge)
        with self._transaction() as run:
            number = self._next(run, begun)
            book = self._book(run, begun.name, charge)
            spent = combine(book.totals)
            for again in _recognized(book, charge):
                _write(run, number, again, book)
                number = self._next(run, begun)
            due = _write(run, number, charge, book)
            after = combine(book.totals)
            if not after.fits(begun.cap):
                raise _exceeded(begun.name, charge, due.cost, spent, after, begun.cap)
        return due.cost

    def afford(self, begun: Begun, charge: Charge, combine: Combine) -> None:
        """Refuse what could not be reserved now; spend nothing."""
        _check_charge(begun, charge)
        with self._transaction(write=False) as run:
            _compare(self._begun(run, begun.name), begun, self.url)
            book = self._book(run, begun.name, charge)
            spent = combine(book.totals)
            for again in _recognized(book, charge):
                book.add(again)
            due = book.add(charge)
            after = combine(book.totals)
            if not after.fits(begun.cap):
                raise _exceeded(begun.name, charge, due.cost, spent, after, begun.cap)

    def declare_again(self, begun: Begun, name: str, declared: str, described: str, who: str) -> None:
        """Write into the history that the P of some people, which cannot be compared, is this one."""
        with self._transaction() as run:
            number = self._next(run, begun)
            book = Book(begun.name, people=_people(run, begun.name))
            names = book.alike(name) if name in book.people else (name,)
            _write(run, number, _declaration(names, declared, described, who), book)

    def _next(self, run: Run, begun: Begun) -> int:
        """Lock a budget's row until the end of the transaction; return the number of the next charge."""
        # On PostgreSQL the row is locked by this, on sqlite by the transaction itself. A ledger that a later
        # version has changed meanwhile is not written to.
        rows = run(
            f"UPDATE budgets SET charges = charges + 1 WHERE name = ? AND "  # noqa: S608
            f"(SELECT MAX(version) FROM ledger_layout) = {VERSION} RETURNING {_BUDGET}",
            begun.name,
        )
        found = _begun_of(rows[0]) if rows else self._begun(run, begun.name)
        _compare(found, begun, self.url)
        return found.charges

    def _begun(self, run: Run, name: str) -> Begun:
        check(run("SELECT version FROM ledger_layout"))
        rows = run(f"SELECT {_BUDGET} FROM budgets WHERE name = ?", name)  # noqa: S608
        if not rows:
            raise LedgerError(f"The budget {name!r} is no longer in {self.url}.")
        return _begun_of(rows[0])

    def _book(self, run: Run, name: str, charge: Charge) -> Book:
        """Load what a charge can depend on."""
        totals = _totals(run, name)
        names = charge.people or (charge.dataset,)
        # All people where parts must be compared, or where a P is recognized; else those that it is about.
        people = _people(run, name, *names) if len(names) == 1 else _people(run, name)
        old = any(not _comparable(person) for person in people.values())
        if charge.partition or any(partition for partition, _ in totals) or old:
            people = _people(run, name)
        gammas = {}
        if charge.dataset and charge.key:
            gammas = _gammas(run, name, "AND dataset = ? AND key = ?", charge.dataset, charge.key)
        return Book(name, totals, gammas, people)

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
            *("partition", "part", "who", "key", "kind", "strength", "purpose", "declared", "described"),
            *("people", "neighbours", "unit", "average", "average_charged"),
        )
        with self._transaction(write=False) as run:
            columns = ", ".join(names)
            rows = run(f"SELECT {columns} FROM charges WHERE budget = ? ORDER BY number", name)  # noqa: S608
        found = [dict(zip(names, row, strict=True)) for row in rows]
        for row in found:
            for number in ("epsilon", "delta", "gamma", "charged", "average", "average_charged"):
                row[number] = float(_amount(row[number]))
            row |= {each: list(_texts(row[each])) for each in ("declared", "people")}
            row["average_gamma"] = row.pop("average")
        return found

    def recomputed(self, name: str) -> tuple[Begun, Book, Book]:
        """Return a budget's caps, what the ledger says of it, and what its charges make; all of one moment.

        Raises
        ------
        LedgerError
            If the charges break a rule, or do not say what they would if they had been written by `reserve`.
        """
        with self._transaction() as run:
            if self.database.postgres:  # or every statement would see a moment of its own
                run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            begun = self._begun(run, name)
            kept = Book(name, _totals(run, name), _gammas(run, name), _people(run, name))
            columns = ", ".join(_COLUMNS)
            rows = run(f"SELECT {columns} FROM charges WHERE budget = ? ORDER BY number", name)  # noqa: S608
        made = Book(name)
        for number, row in enumerate(rows, 1):
            facts = dict(zip(_COLUMNS, row, strict=True))
            try:
                if facts["number"] != number:
                    raise LedgerError(f"its number is {facts['number']}")
                charge, due = _charge_of(facts, begun)
                migrated = number <= begun.migrated
                if migrated != _is_migrated(facts):
                    raise LedgerError("it is not in the layout that charges with this number have")
                if made.add(charge, due if migrated else None) != due:
                    raise LedgerError("the cost that is written down is not what it costs")
            except (LedgerError, SettingsError) as error:
                raise LedgerError(
                    f"The ledger of {name!r} is damaged at its charge {number}: {error}"
                ) from None
        if not _TIME.fullmatch(str(begun.created)):
            raise LedgerError(f"The ledger of {name!r} is damaged: its date is {begun.created!r}.")
        if begun.charges != len(rows):
            raise LedgerError(
                f"The ledger of {name!r} is damaged: it has {len(rows)} charges, and has counted "
                f"{begun.charges}."
            )
        return begun, kept, made

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


def _check_charge(begun: Begun, charge: Charge) -> None:
    """Refuse a charge that this budget cannot add up, or no database can keep."""
    if (charge.neighbours, charge.unit) != (begun.neighbours, begun.unit):
        raise SettingsError(
            f"The budget {begun.name!r} is about neighbours that {begun.neighbours} a {begun.unit}, and "
            f"{charge.function}() is about neighbours that {charge.neighbours} a {charge.unit}. A total has "
            f"one kind of neighbour: begin another budget."
        )
    for text in (charge.key, charge.dataset, charge.partition, charge.part, *charge.people, *charge.declared):
        if storable(text) != text:
            raise SettingsError(
                f"{text!a} cannot be written to a ledger: it cannot be encoded as UTF-8, or has a NUL "
                f"character. Choose another name."
            )


def _caps(begun: Begun) -> str:
    cap = begun.cap
    return (
        f"epsilon={float(cap.epsilon):g}, delta={float(cap.delta):g}, gamma={float(cap.gamma):g}, "
        f"composition={begun.composition!r}"
    )


def _compare(found: Begun, begun: Begun, url: str) -> None:
    """Refuse a budget whose caps are not those that it was opened with."""
    facts = ("cap", "composition", "neighbours", "unit")
    if any(getattr(found, fact) != getattr(begun, fact) for fact in facts):
        raise LedgerError(
            f"The ledger {url} is damaged: the budget {begun.name!r} was opened with {_caps(begun)}, and has "
            f"{_caps(found)} now. A budget keeps its caps. Restore it from a backup."
        )


def _comparable(person: Person) -> bool:
    return all(digest.startswith(COMPARABLE) for digest in person.declared or ())


def _recognized(book: Book, charge: Charge) -> Iterator[Charge]:
    """Yield declarations that a P of an earlier ledger, known by its description, is that of a charge."""
    for name in charge.people or (charge.dataset,):
        known = book.people.get(name)
        if not name or known is None or not known.declared or set(known.declared) & set(charge.declared):
            continue
        same = charge.lossless and known.described == storable(charge.described)
        if same and not any(digest.startswith(COMPARABLE) for digest in known.declared):
            yield _declaration(book.alike(name), charge.declared[0], charge.described, charge.who)


def _declaration(names: tuple[str, ...], declared: str, described: str, who: str) -> Charge:
    return Charge(
        function="declaration",
        key="",
        dataset="",
        n=0,
        mechanism="",
        kind="dp 0.0 0.0",
        epsilon=0.0,
        delta=0.0,
        gamma=0.0,
        purpose="declaration",
        people=names,
        declared=(declared,),
        described=described,
        who=who,
    )


# --- rows ------------------------------------------------------------------------------------------


def _begun_of(row: tuple[Any, ...]) -> Begun:
    name, *caps, composition, charges, created, neighbours, unit, migrated = row
    if not isinstance(charges, int) or not isinstance(migrated, int) or not 0 <= migrated <= charges:
        raise LedgerError(f"The ledger is damaged: {name!r} has {charges!r} charges.")
    return Begun(name, _cost_of(caps), composition, charges, created, neighbours, unit, migrated)


def _totals(run: Run, name: str) -> dict[tuple[str, str], Totals]:
    rows = run(
        "SELECT partition, part, epsilon, delta, gamma, counts, average FROM spent WHERE budget = ?", name
    )
    return {
        (partition, part): Totals(_cost_of(numbers), _counts_of(counts), _amount(average))
        for partition, part, *numbers, counts, average in rows
    }


def _gammas(run: Run, name: str, which: str = "", *values: str) -> dict[tuple[str, str], Any]:
    rows = run(
        f"SELECT dataset, key, gamma, average FROM gammas WHERE budget = ? {which}",  # noqa: S608
        *(name, *values),
    )
    return {(dataset, key): (_amount(gamma), _amount(average)) for dataset, key, gamma, average in rows}


def _people(run: Run, name: str, *names: str) -> dict[str, Person]:
    which = "AND name = ?" if names else ""
    rows = run(
        f"SELECT name, partition, part, declared, described FROM people WHERE budget = ? {which}",  # noqa: S608
        *(name, *names),
    )
    return {
        each: Person(partition, part, _texts(declared) if declared else None, described)
        for each, partition, part, declared, described in rows
    }


_NUMBER = re.compile(r"(0|[1-9]\d*)(/[1-9]\d*)?", re.ASCII)


@functools.lru_cache(maxsize=1024)
def _amount(text: Any) -> Fraction:
    """Return an amount: what `str` makes of a fraction that is not below zero, and nothing else."""
    if isinstance(text, str) and _NUMBER.fullmatch(text):
        with contextlib.suppress(ValueError):  # too many digits for Python
            found = Fraction(text)
            if str(found) == text:
                return found
    raise LedgerError("The ledger is damaged: an amount in it is not a number that this library writes.")


def _cost_of(texts: Any) -> Cost:
    epsilon, delta, gamma = map(_amount, texts)
    return Cost(epsilon, delta, gamma)


def _counts_of(text: str) -> dict[str, int]:
    with contextlib.suppress(TypeError, ValueError):
        found = json.loads(text)
        if isinstance(found, dict) and all(type(count) is int and count > 0 for count in found.values()):
            return found
    raise LedgerError("The ledger is damaged: its counts are not counts.")


def _texts(text: Any) -> tuple[str, ...]:
    with contextlib.suppress(TypeError, ValueError):
        found = json.loads(text)
        if isinstance(found, list) and all(isinstance(each, str) for each in found):
            return tuple(found)
    raise LedgerError("The ledger is damaged: a list of names in it is not a list of names.")


def _charge_of(row: dict[str, Any], begun: Begun) -> tuple[Charge, Due]:
    """Return a row as what was asked for and what it cost; refuse what `_write` would not have written."""
    numbers = {name: _amount(row[name]) for name in ("epsilon", "delta", "gamma", "average")}
    due = Due(
        Cost(numbers["epsilon"], numbers["delta"], _amount(row["charged"])), _amount(row["average_charged"])
    )
    try:
        looks = json.loads(row["looks"]) if row["looks"] else []
        charge = Charge(
            epsilon=float(numbers["epsilon"]),
            delta=float(numbers["delta"]),
            gamma=float(numbers["gamma"]),
            average_gamma=None if numbers["average"] == numbers["gamma"] else float(numbers["average"]),
            looks=tuple((float(asked), float(now)) for asked, now in looks),
            declared=_texts(row["declared"]),
            people=_texts(row["people"]),
            **{name: row[name] for name in _PLAIN},
        )
        fine = all(exact(float(number)) == number for number in numbers.values()) and _fits(charge)
    except (TypeError, ValueError, OverflowError) as error:
        raise LedgerError(f"this library cannot have written it ({error})") from None
    texts = all(isinstance(row[name], str) for name in _PLAIN if name != "n")
    fine = fine and texts and isinstance(charge.n, int) and bool(_TIME.fullmatch(str(row["at"])))
    if not fine or (charge.neighbours, charge.unit) != (begun.neighbours, begun.unit):
        raise LedgerError("this library cannot have written it")
    return charge, due


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_PLAIN = tuple(
    each.name
    for each in fields(Charge)
    if each.name in _COLUMNS
    and each.name not in ("epsilon", "delta", "gamma", "looks", "declared", "people", "average")
)


def _is_migrated(row: dict[str, Any]) -> bool:
    """Tell whether a charge is from before the present layout, and was converted to it."""
    same = (row["average"], row["average_charged"]) == (row["gamma"], row["charged"])
    return not row["looks"] and same and (not row["dataset"] or row["declared"] != "[]")


@functools.lru_cache(maxsize=1000)
def _gaussians(epsilon: float, delta: float) -> list[list[float]]:
    """Return what composition knows of the Gaussian releases that promise this."""
    made = [Gaussian(), Gaussian("classic")] if epsilon < 1 else [Gaussian()]
    return [list(map(float, each.composition_kind(epsilon, delta).split()[1:])) for each in made]


def _fits(charge: Charge) -> bool:
    """Tell whether what composition knows of a release is what it promised, and no better."""
    name, *numbers = charge.kind.split(" ")
    found = [float(number) for number in numbers]
    if name != "gaussian" or not found:
        return name == "dp" and found == [charge.epsilon, charge.delta]
    # σ is not above, and whatever else is known of the noise not below, that of the mechanism.
    return found[0] > 0 and any(
        found[0] <= sigma * (1 + 1e-9)
        and all(x >= y * (1 - 1e-9) for x, y in zip(found[1:], rest, strict=False))
        for sigma, *rest in _gaussians(charge.epsilon, charge.delta)
    )


def _write(run: Run, number: int, charge: Charge, book: Book) -> Due:
    """Add a charge to the book, and write down what has changed by it."""
    c, name, people = charge, book.name, dict(book.people)
    due = book.add(charge)
    asked = exact(c.gamma) if c.average_gamma is None else exact(c.average_gamma)
    run(
        f"INSERT INTO charges VALUES ({_MARKS})",  # noqa: S608
        *(name, number, _now(), storable(c.function), c.key, c.dataset, c.n, storable(c.mechanism), c.kind),
        *(str(exact(c.epsilon)), str(exact(c.delta)), str(exact(c.gamma)), str(due.cost.gamma)),
        *(c.partition, c.part, storable(c.who), c.strength, json.dumps(c.declared), storable(c.described)),
        *(json.dumps(c.people), c.neighbours, c.unit, c.purpose, json.dumps(c.looks)),
        *(str(asked), str(due.average)),
    )
    for each in c.people or (c.dataset,):
        person = book.people[each]
        if person == people.get(each):
            continue
        declared = "" if person.declared is None else json.dumps(person.declared)
        run(
            "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (budget, name) DO UPDATE SET "
            "declared = excluded.declared, described = excluded.described",
            *(name, each, person.partition, person.part, declared, storable(person.described)),
        )
    if c.purpose == "declaration":
        return due
    if c.dataset and c.key and (due.cost.gamma or due.average):
        gamma, average = book.gammas[c.dataset, c.key]
        run(
            "INSERT INTO gammas VALUES (?, ?, ?, ?, ?) ON CONFLICT (budget, dataset, key) DO UPDATE SET "
            "gamma = excluded.gamma, average = excluded.average",
            *(name, c.dataset, c.key, str(gamma), str(average)),
        )
    total = book.totals[c.partition, c.part]
    spent = (str(total.cost.epsilon), str(total.cost.delta), str(total.cost.gamma), json.dumps(total.counts))
    run(
        "INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (budget, partition, part) DO UPDATE SET epsilon = excluded.epsilon, "
        "delta = excluded.delta, gamma = excluded.gamma, counts = excluded.counts, "
        "average = excluded.average",
        *(name, c.partition, c.part, *spent, str(total.average)),
    )
    return due


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
