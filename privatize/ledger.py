"""The ledger: what was spent, by whom and for what, in one database; totals beside it.

Append-only. A reservation is one transaction: the budget's row is locked, the new totals are compared with
the caps, and the charge is written with them, or nothing is. No data and no answer is ever in here.

The rules are in `Book`, which knows no database: a reservation adds one charge to what was loaded, and
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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any

from privatize.composition import NOTHING, Cost, exact
from privatize.database import Database, DatabaseError, Run
from privatize.errors import BudgetExceeded, LedgerError, SettingsError
from privatize.ledger_layout import CREATE, VERSION, check, prepare

__all__ = ["Begun", "Book", "Charge", "Ledger", "Person", "Totals", "check_text", "open_ledger"]

STRENGTHS = ("plain", "sampled")
PURPOSES = ("answer", "declaration", "learning", "check")
NEIGHBOURS = ("replace", "add or remove")
COMPARABLE = "P1:"  # how the digest of a P begins that is the same in every process and version
_LONGEST = 255


def check_text(what: str, text: Any) -> str:
    """Return a name that every database can keep; refuse any other."""
    fine = isinstance(text, str) and 0 < len(text) <= _LONGEST and "\0" not in text
    if fine:
        try:
            text.encode()
        except UnicodeEncodeError:
            fine = False
    if not fine:
        shown = ascii(text) if isinstance(text, str) else f"a {type(text).__name__}"
        raise SettingsError(
            f"{what} {shown if len(shown) < 80 else shown[:70] + '...'} is not a name: it is a text of 1 to "
            f"{_LONGEST} characters that can be written as UTF-8, without NUL characters. Choose another."
        )
    return str(text)


def _storable(text: str) -> str:
    """Return a text that nothing is looked up by, with what a database cannot keep as escapes."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


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
    average_gamma : float or None
        What the share of failures is at most on average over calibrations; None if that is no less than γ.
    looks : tuple
        For all plans that were read from the estimate's gaps, the γ that was asked for and that holds now:
        a further look makes the earlier ones' larger.
    strength : {"sampled", "plain"}
        Whether it holds for all pairs but a share γ of those under P, or for all pairs.
    declared : tuple of str
        Digests of the P that it holds under, of which the function's P is a projection. None for "plain".
    described : str
        P in words.
    lossless : bool
        Whether the words say everything about P.
    columns : tuple of str
        Names of P's columns.
    neighbours, unit : str
        What neighbours are, and what a record is.
    purpose : {"answer", "declaration", "learning", "check"}
        What it is.
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
    average_gamma: float | None = None
    looks: tuple[tuple[float, float], ...] = ()
    people: tuple[str, ...] = ()
    strength: str = "sampled"
    declared: tuple[str, ...] = ()
    described: str = ""
    lossless: bool = False
    columns: tuple[str, ...] = ()
    neighbours: str = "replace"
    unit: str = "record"
    purpose: str = "answer"
    partition: str = ""
    part: str = ""
    who: str = ""

    def __post_init__(self) -> None:
        numbers = (self.epsilon, self.delta, self.gamma, *(x for look in self.looks for x in look))
        average = 0.0 if self.average_gamma is None else self.average_gamma
        if not all(0 <= x < math.inf for x in numbers) or not 0 <= average <= self.gamma or self.n < 0:
            raise SettingsError(
                f"A charge of epsilon={self.epsilon!r}, delta={self.delta!r}, gamma={self.gamma!r}, "
                f"average_gamma={self.average_gamma!r}, n={self.n!r}: amounts are finite and not below zero, "
                f"and the average is not above gamma."
            )
        kinds = (self.strength in STRENGTHS, self.purpose in PURPOSES, self.neighbours in NEIGHBOURS)
        if not all(kinds) or not self.unit:
            raise SettingsError(
                f"A charge with strength={self.strength!r}, purpose={self.purpose!r}, "
                f"neighbours={self.neighbours!r}, unit={self.unit!r} is not known."
            )
        if self.strength == "plain" and (self.declared or self.gamma):
            raise SettingsError("A plain charge holds for all pairs: it has gamma=0, and no P.")


@dataclass
class Totals:
    """What was spent in one part of one partition of a budget, or outside of all ("", "")."""

    cost: Cost = NOTHING
    counts: dict[str, int] = field(default_factory=dict)
    average: Fraction = Fraction(0)


@dataclass(frozen=True)
class Person:
    """People that answers were about, by name: where they are, and the P that all sampled answers hold under.

    `declared` is None before the first sampled answer, and empty where there is no such P, or none is known.
    The name "" stands for all data without a name.
    """

    partition: str
    part: str
    declared: tuple[str, ...] | None = None
    described: str = ""


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


@dataclass(frozen=True)
class Due:
    """What a charge costs, beside the charges before it."""

    cost: Cost
    average: Fraction


@dataclass
class Book:
    """What is known of one budget, and the rules by which a charge is added. No database.

    Parameters
    ----------
    name : str
        The budget, for errors.
    totals : dict
        By partition and part.
    gammas : dict
        By dataset and estimate: γ and the average γ that were charged.
    people : dict
        By name.
    """

    name: str
    totals: dict[tuple[str, str], Totals] = field(default_factory=dict)
    gammas: dict[tuple[str, str], tuple[Fraction, Fraction]] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)

    def add(self, charge: Charge, written: Due | None = None) -> Due:
        """Add a charge; return what it costs. Refuses what does not add up with the charges before.

        Parameters
        ----------
        charge : Charge
            What is asked for.
        written : Due, optional
            What the ledger says that it cost, of a charge from before the rules of today: taken as it is,
            if it is enough.
        """
        if charge.purpose == "declaration":
            return self._declare_again(charge)
        if written is None:
            self._check(charge)
        due = self._due(charge, written)
        self._place(charge, checked=written is None)
        where = (charge.partition, charge.part)
        before = self.totals.get(where, Totals())
        counts = before.counts
        if charge.epsilon or charge.delta or written is not None:  # what costs nothing need not be composed
            counts = counts | {charge.kind: counts.get(charge.kind, 0) + 1}
        self.totals[where] = Totals(before.cost + due.cost, counts, before.average + due.average)
        return due

    def _check(self, charge: Charge) -> None:
        if charge.strength == "sampled" and not charge.declared:
            raise SettingsError(f"{charge.function}() has no P that its answer could hold under.")
        if charge.partition and not charge.dataset:
            raise SettingsError(
                f"The part {charge.part!r} of {charge.partition!r} needs data with a name: the parts of "
                f"a partition are separate datasets, fixed beforehand, which a replaced record cannot "
                f"leave (sites, years). Seal each: seal(data, name=...). To group by an attribute, use "
                f"one function that returns all groups."
            )

    def _due(self, charge: Charge, written: Due | None) -> Due:
        """Return what a charge costs: γ only once for the same estimate on the same declared dataset."""
        cost = Cost.of(charge.epsilon, charge.delta, charge.gamma)
        where = (charge.dataset, charge.key)
        once = all(where)
        known, average = self.gammas.get(where, (Fraction(0), Fraction(0))) if once else (Fraction(0),) * 2
        if written is not None:
            gamma, mean = known + written.cost.gamma, average + written.average
            if gamma < cost.gamma or (written.cost.epsilon, written.cost.delta) != (cost.epsilon, cost.delta):
                raise LedgerError("it costs less than was asked for")
        else:
            # Of plans that may have been charged before, what holds for them now.
            seen = [exact(now) for asked, now in charge.looks if once and exact(asked) <= known]
            gamma = max([cost.gamma, *seen])
            further = charge.average_gamma is None or gamma > cost.gamma
            mean = max(average, gamma if further else exact(charge.average_gamma or 0.0))
            gamma = max(gamma, known)
        if once and (gamma, mean) > (Fraction(0), Fraction(0)):
            self.gammas[where] = (gamma, mean)
        return Due(Cost(cost.epsilon, cost.delta, gamma - known), mean - average)

    def _place(self, charge: Charge, *, checked: bool) -> None:
        """Refuse a second P for the same people, and people in two parts of a partition."""
        where = (charge.partition, charge.part)
        for name in charge.people or (charge.dataset,):  # versions are of the same people
            known = self.people.get(name, Person(*where))
            if (known.partition, known.part) != where and checked:
                raise SettingsError(
                    f"The data {name} has been used in the budget {self.name!r} "
                    f"{_where(known.partition, known.part)}, and now {_where(*where)}. A dataset is in one "
                    f"part of a partition, fixed beforehand, or in none: then a replaced record cannot move "
                    f"to another part, and the largest part counts. To group by an attribute, use one "
                    f"function that returns all groups."
                )
            if charge.strength == "sampled":
                known = self._under(name, known, charge, checked)
            self.people[name] = known
        if checked and charge.strength == "sampled":
            self._check_parts(charge)

    def _under(self, name: str, known: Person, charge: Charge, checked: bool) -> Person:
        """Return people with the P that all answers about them hold under."""
        if known.declared is None:
            return replace(known, declared=charge.declared, described=charge.described)
        common = tuple(digest for digest in known.declared if digest in charge.declared)
        if common or not name or not checked:  # about data without a name nobody knows; the total says so
            return replace(known, declared=common)
        if not known.declared:
            raise SettingsError(
                f"The budget {self.name!r} has answers about {name} under several P, or under one "
                f"that was not written down, from before this was refused ({known.described}). No P is known to "
                f"hold for all of them, so nothing can be added. Begin another budget for further answers."
            )
        again = (
            ""
            if any(digest.startswith(COMPARABLE) for digest in known.declared)
            else f" If it is the same P, and only cannot be compared (it was written down by an earlier "
            f"version, or by another process), say so once: budget.declare_again({name}, P)."
        )
        raise SettingsError(
            f"The budget {self.name!r} has answers about {name} under P={known.described}, and this one has "
            f"P={charge.described}. Promises about the same people add up only with respect to one P, "
            f"whatever the version of the data: use that one, or its columns P[...], or begin another "
            f"budget.{again}"
        )

    def _check_parts(self, charge: Charge) -> None:
        """Refuse answers about parts together with others, unless all are about one law of pairs."""
        sampled = [person for person in self.people.values() if person.declared is not None]
        layers = sorted({person.partition for person in sampled})
        if len(layers) < 2:
            return  # about everybody, or about the parts of one partition
        common = set.intersection(*(set(person.declared or ()) for person in sampled))
        shown = " and ".join(f"about the parts of {each!r}" if each else "outside of them" for each in layers)
        remedy = "Begin another budget for one of them, and add the two up."
        if not common:
            raise SettingsError(
                f"The budget {self.name!r} would have answers {shown}, and not all of them under one P "
                f"(this one has P={charge.described}). They add up only if P is the same everywhere, as "
                f"records that are replaced within a part must be the records that are replaced in all of "
                f"the data. {remedy}"
            )
        for name in charge.columns:
            if any(name.strip().casefold() == each.strip().casefold() for each in layers if each):
                raise SettingsError(
                    f"The budget {self.name!r} would have answers {shown}, and P has the column {name!r}. "
                    f"Under P a replaced record may change it, in a part it cannot: these are two laws of "
                    f"pairs, and their gammas do not add up. {remedy}"
                )

    def _declare_again(self, charge: Charge) -> Due:
        """Note that P is, for some people, the one that could not be compared."""
        for name in charge.people:
            known = self.people.get(name)
            if known is None or not known.declared or not charge.declared or charge.epsilon or charge.gamma:
                raise SettingsError(
                    f"The budget {self.name!r} has no P for {name} that could be declared again. The first "
                    f"sampled answer about people declares their P."
                )
            if any(digest.startswith(COMPARABLE) for digest in known.declared):
                raise SettingsError(
                    f"The budget {self.name!r} has P={known.described} for {name}, by a name that is the same "
                    f"everywhere. It is not declared again: use this P, or begin another budget."
                )
            self.people[name] = replace(known, declared=charge.declared, described=charge.described)
        return Due(NOTHING, Fraction(0))

    def alike(self, name: str) -> tuple[str, ...]:
        """Return all names whose P was written down in the same way."""
        declared = self.people[name].declared
        return tuple(sorted(each for each, person in self.people.items() if person.declared == declared))


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
        See `privatize.database.Database`; ``"memory"`` keeps it in this process only.
    shown : str, optional
        What to call it, if not by its URL: a copy by the name of what it was copied from.
    """

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
                            f"The ledger {self.url} is damaged: there are {table} of the budget {name!r}, and "
                            f"what it was begun with is lost. Restore it from a backup."
                        )
            run(
                "INSERT INTO budgets VALUES (?, ?, ?, ?, ?, 0, ?, 'replace', 'record', 0) "
                "ON CONFLICT (name) DO NOTHING",
                *(name, *facts, _now()),
            )
            begun = self._begun(run, name)
        if begun.cap != cap or begun.composition != composition:
            raise SettingsError(
                f"The budget {name!r} in {self.url} was begun with {_caps(begun)}. A "
                f"budget keeps what it was begun with: name the same, or begin another one."
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
                    raise LedgerError(f"it has the number {facts['number']}")
                charge, due = _charge_of(facts, begun)
                migrated = number <= begun.migrated
                if made.add(charge, due if migrated else None) != due:
                    raise LedgerError("it did not cost what it says")
            except (LedgerError, SettingsError) as error:
                raise LedgerError(
                    f"The ledger of {name!r} is damaged at its charge {number}: {error}"
                ) from None
        if begun.charges != len(rows):
            raise LedgerError(f"The ledger of {name!r} has {len(rows)} charges, and counted {begun.charges}.")
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


def _where(partition: str, part: str) -> str:
    return f"in the part {part!r} of {partition!r}" if partition else "outside of every partition"


def _check_charge(begun: Begun, charge: Charge) -> None:
    """Refuse a charge that this budget cannot add up, or no database can keep."""
    if (charge.neighbours, charge.unit) != (begun.neighbours, begun.unit):
        raise SettingsError(
            f"The budget {begun.name!r} is about neighbours that {begun.neighbours} a {begun.unit}, and "
            f"{charge.function}() about such that {charge.neighbours} a {charge.unit}. A total has one kind of "
            f"neighbour: begin another budget."
        )
    for text in (charge.key, charge.dataset, charge.partition, charge.part, *charge.people, *charge.declared):
        if not text.isascii() or "\0" in text:
            if _storable(text) != text:
                raise SettingsError(
                    f"{ascii(text)} cannot be kept in a ledger: it is no text that can be written as UTF-8, or "
                    f"has a NUL character. Choose another name."
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
            f"{_caps(found)} now. A budget keeps what it was begun with. Restore it from a backup."
        )


def _comparable(person: Person) -> bool:
    return all(digest.startswith(COMPARABLE) for digest in person.declared or ())


def _recognized(book: Book, charge: Charge) -> Iterator[Charge]:
    """Yield what notes that a P from before digests could be compared is the one of a charge."""
    for name in charge.people or (charge.dataset,):
        known = book.people.get(name)
        if not name or known is None or not known.declared or set(known.declared) & set(charge.declared):
            continue
        same = charge.lossless and known.described == _storable(charge.described)
        if same and not any(digest.startswith(COMPARABLE) for digest in known.declared):
            yield _declaration(book.alike(name), charge.declared[0], charge.described, charge.who)


def _declaration(names: tuple[str, ...], declared: str, described: str, who: str) -> Charge:
    return Charge(
        **{"function": "", "key": "", "dataset": "", "n": 0, "mechanism": "", "kind": "dp 0.0 0.0"},
        **{"epsilon": 0.0, "delta": 0.0, "gamma": 0.0},
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


def _amount(text: Any) -> Fraction:
    """Return an amount: what `str` makes of a fraction that is not below zero, and nothing else."""
    if isinstance(text, str) and _NUMBER.fullmatch(text):
        with contextlib.suppress(ValueError):  # too many digits for Python
            found = Fraction(text)
            if str(found) == text:
                return found
    raise LedgerError("The ledger is damaged: an amount in it is not a number that could have been spent.")


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
    raise LedgerError("The ledger is damaged: a list of names in it is none.")


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
        raise LedgerError(f"it is none that could have been written ({error})") from None
    texts = all(isinstance(row[name], str) for name in _PLAIN if name != "n")
    fine = fine and texts and isinstance(charge.n, int) and bool(_TIME.fullmatch(str(row["at"])))
    if not fine or (charge.neighbours, charge.unit) != (begun.neighbours, begun.unit):
        raise LedgerError("it is none that could have been written")
    return charge, due


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_PLAIN = tuple(
    each.name
    for each in fields(Charge)
    if each.name in _COLUMNS
    and each.name not in ("epsilon", "delta", "gamma", "looks", "declared", "people", "average")
)


@functools.lru_cache(maxsize=1000)
def _most_sigma(epsilon: float, delta: float) -> float:
    from privatize.mechanisms.gaussian import Gaussian

    classic = Gaussian("classic").scale(1.0, epsilon, delta) if epsilon < 1 else 0.0
    return max(Gaussian().scale(1.0, epsilon, delta), classic) * (1 + 1e-9)


def _fits(charge: Charge) -> bool:
    """Tell whether what composition knows of a release is what it promised."""
    name, *numbers = charge.kind.split(" ")
    found = [float(number) for number in numbers]
    if name == "dp":
        return found == [charge.epsilon, charge.delta]
    most = _most_sigma(charge.epsilon, charge.delta) if name == "gaussian" else 0.0
    return bool(found) and 0 < found[0] <= most


def _write(run: Run, number: int, charge: Charge, book: Book) -> Due:
    """Add a charge to the book, and write down what has changed by it."""
    c, name, people = charge, book.name, dict(book.people)
    due = book.add(charge)
    asked = exact(c.gamma) if c.average_gamma is None else exact(c.average_gamma)
    run(
        f"INSERT INTO charges VALUES ({_MARKS})",  # noqa: S608
        *(name, number, _now(), _storable(c.function), c.key, c.dataset, c.n, _storable(c.mechanism), c.kind),
        *(str(exact(c.epsilon)), str(exact(c.delta)), str(exact(c.gamma)), str(due.cost.gamma)),
        *(c.partition, c.part, _storable(c.who), c.strength, json.dumps(c.declared), _storable(c.described)),
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
            *(name, each, person.partition, person.part, declared, _storable(person.described)),
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
        "INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (budget, partition, part) DO UPDATE SET "
        "epsilon = excluded.epsilon, delta = excluded.delta, gamma = excluded.gamma, "
        "counts = excluded.counts, average = excluded.average",
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
