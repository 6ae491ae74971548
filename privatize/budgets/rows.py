"""Write and read the rows of a ledger; refuse rows that this library cannot have written."""

import contextlib
import functools
import json
import re
from dataclasses import fields
from fractions import Fraction
from typing import Any

from privatize.budgets import catalogues
from privatize.budgets.catalogues import Declaration
from privatize.budgets.charges import Book, Charge, Lesson, Person, Totals, in_words
from privatize.budgets.ledger_layout import KEYS, NAMES
from privatize.budgets.terms import Terms
from privatize.budgets.units import is_person
from privatize.errors import LedgerError, SettingsError
from privatize.mechanisms.gaussian import Gaussian
from privatize.planning.bounds import exact
from privatize.planning.composition import Cost
from privatize.storage.database import Run, now, storable

_HISTORY = (
    "number, at, function, dataset, n, mechanism, epsilon, delta, gamma, charged, partition, part, who, key, "
    "kind, strength, purpose, declared, described, people, neighbours, unit, average, average_charged"
)
_AMOUNTS = ("epsilon", "delta", "gamma", "average", "charged", "average_charged")
_LISTS = ("declared", "people")
_SAMPLED = "strength = 'sampled' AND purpose = 'answer'"
# The fields that are the same in a charge and in its row.
_SAME = {each.name for each in fields(Charge)} & set(NAMES["charges"]) - {*_AMOUNTS, *_LISTS, "looks"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_NUMBER = re.compile(r"(0|[1-9]\d*)(/[1-9]\d*)?", re.ASCII)


# --- single values ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _amount(text: Any) -> Fraction:
    """Parse an amount; refuse all but the strings that `str` makes of fractions that are not below zero."""
    if isinstance(text, str) and _NUMBER.fullmatch(text):
        with contextlib.suppress(ValueError):  # too many digits for Python
            found = Fraction(text)
            if str(found) == text:
                return found
    raise LedgerError("The ledger is damaged: an amount in it is not a number that this library writes.")


def _counts(text: str) -> dict[str, int]:
    with contextlib.suppress(TypeError, ValueError):
        found = json.loads(text)
        if isinstance(found, dict) and all(type(count) is int and count > 0 for count in found.values()):
            return found
    raise LedgerError("The ledger is damaged: its counts of charges are not positive integers.")


def _strings(text: Any) -> tuple[str, ...]:
    with contextlib.suppress(TypeError, ValueError):
        found = json.loads(text)
        if isinstance(found, list) and all(isinstance(each, str) for each in found):
            return tuple(found)
    raise LedgerError("The ledger is damaged: a list of names in it is not a list of strings.")


# --- reading ----------------------------------------------------------------------------------------


def terms_of(row: tuple[Any, ...]) -> Terms:
    """Return the terms of a budget from its row."""
    name, *caps, composition, charges, created, neighbours, unit, migrated = row
    if not isinstance(charges, int) or not isinstance(migrated, int) or not 0 <= migrated <= charges:
        raise LedgerError(f"The ledger is damaged: the budget {name!r} has {charges!r} charges.")
    return Terms(name, Cost(*map(_amount, caps)), composition, charges, created, neighbours, unit, migrated)


def read_totals(run: Run, name: str) -> dict[tuple[str, str], Totals]:
    """Return what was spent, by partition and part."""
    rows = run(
        "SELECT partition, part, epsilon, delta, gamma, counts, average FROM spent WHERE budget = ?", name
    )
    return {
        (partition, part): Totals(Cost(*map(_amount, (*numbers, average))), _counts(counts))
        for partition, part, *numbers, counts, average in rows
    }


def read_book(run: Run, name: str, charge: Charge | None = None) -> Book:
    """Return the book of a budget in the ledger: all of it, or only what a charge can depend on."""
    totals = read_totals(run, name)
    if charge is None:
        return Book(name, totals, _gammas(run, name), read_people(run, name))
    # All people if parts must be compared or a P may be recognized, else those that the charge is about.
    people = read_people(run, name, *(charge.subjects if len(charge.subjects) == 1 else ()))
    earlier = not all(all(person.comparable) for person in people.values())
    if charge.partition or any(partition for partition, _ in totals) or earlier:
        people = read_people(run, name)
    once = charge.dataset and charge.key
    gammas = _gammas(run, name, "AND dataset = ? AND key = ?", charge.dataset, charge.key) if once else {}
    return Book(name, totals, gammas, people)


def _gammas(run: Run, name: str, which: str = "", *values: str) -> dict[tuple[str, str], Cost]:
    rows = run(
        f"SELECT dataset, key, gamma, average FROM gammas WHERE budget = ? {which}",  # noqa: S608
        *(name, *values),
    )
    return {
        (dataset, key): Cost(gamma=_amount(gamma), average=_amount(average))
        for dataset, key, gamma, average in rows
    }


def read_people(run: Run, name: str, *names: str) -> dict[str, Person]:
    """Return all people of a budget, or those with one name."""
    which = "AND name = ?" if names else ""
    rows = run(
        f"SELECT name, partition, part, declared, described FROM people WHERE budget = ? {which}",  # noqa: S608
        *(name, *names),
    )
    return {
        each: Person(partition, part, _strings(declared) if declared else None, described)
        for each, partition, part, declared, described in rows
    }


def read_charges(run: Run, name: str, strength: str = "") -> list[dict[str, Any]]:
    """Return every charge, or those of one strength, the oldest first, as it is stored."""
    columns, which = ", ".join(NAMES["charges"]), "AND strength = ?" if strength else ""
    rows = run(
        f"SELECT {columns} FROM charges WHERE budget = ? {which} ORDER BY number",  # noqa: S608
        *(name, strength)[: 2 if strength else 1],
    )
    return [dict(zip(NAMES["charges"], row, strict=True)) for row in rows]


def read_learned(run: Run, name: str, asked: Lesson) -> str | None:
    """Return what was learned and paid for, or None."""
    found = run(
        "SELECT content FROM learned AS l, charges AS c WHERE l.budget = ? AND l.dataset = ? AND l.n = ? AND "
        "l.within = ? AND l.settings = ? AND c.budget = l.budget AND c.number = l.number AND "
        "c.dataset = l.dataset AND c.n = l.n AND c.purpose IN ('learning', 'check')",
        *(name, *asked.key),
    )
    return str(found[0][0]) if found else None


def write_learned(run: Run, name: str, learned: Lesson) -> None:
    """Write what was learned for the charge that was written last, in place of what was learned before.

    Two processes may learn the same at once, and each pays; with several budgets, one of them may know it.
    """
    run(
        "INSERT INTO learned SELECT name, ?, ?, ?, ?, charges, ? FROM budgets WHERE name = ? "
        "ON CONFLICT (budget, dataset, n, within, settings) DO UPDATE SET number = excluded.number, "
        "content = excluded.content",
        *(*learned.key, learned.content, name),
    )


def has_sampled(run: Run, name: str) -> bool:
    """Tell whether a budget has sampled answers or catalogues: whom these are about has a P."""
    return bool(run("SELECT 1 FROM people WHERE budget = ? AND declared <> '' LIMIT 1", name))


def sampled_before(run: Run, name: str) -> bool:
    """Tell whether a budget has sampled answers. To declare a catalogue is none."""
    return has_sampled(run, name) and bool(
        run(f"SELECT 1 FROM charges WHERE budget = ? AND {_SAMPLED} LIMIT 1", name)  # noqa: S608
    )


def asked(run: Run, name: str) -> tuple[list[tuple[Declaration, int]], int]:
    """Return every catalogue of a budget with its number of answers, and how many others are sampled."""
    declared = catalogues.read(run, name).values()
    if not declared:
        return [], 0
    rows = run(
        "SELECT dataset, key, strength, COUNT(*) FROM charges WHERE budget = ? AND purpose = 'answer' "
        "GROUP BY dataset, key, strength",
        name,
    )
    counts: dict[tuple[str, str], int] = dict.fromkeys(catalogues.by_estimate(declared), 0)
    others = 0
    for dataset, key, strength, count in rows:
        if (dataset, key) in counts:
            counts[dataset, key] += count
        elif strength == "sampled":
            others += count
    return [(each, counts[each.dataset, each.key]) for each in declared], others


def read_history(run: Run, name: str, strength: str = "") -> list[dict[str, Any]]:
    """Return every charge, or those of one strength, the oldest first, as a user reads it."""
    ((first,),) = run(f"SELECT MIN(number) FROM charges WHERE budget = ? AND {_SAMPLED}", name)  # noqa: S608
    declared = catalogues.by_estimate(catalogues.read(run, name).values())
    found = [{each: row[each] for each in _HISTORY.split(", ")} for row in read_charges(run, name, strength)]
    for row in found:
        catalogue = declared.get((row["dataset"], row["key"]))
        row["catalogue"] = catalogue.name if catalogue else ""
        row["promise"] = in_words(row["strength"], first is not None and first < row["number"])
        if catalogue:
            promise = "declares" if row["purpose"] == "catalogue" else f"{row['promise']}, of"
            row["promise"] = f"{promise} {catalogue.in_words}"
        row |= {each: float(_amount(row[each])) for each in _AMOUNTS}
        row |= {each: list(_strings(row[each])) for each in _LISTS}
        row["average_gamma"] = row.pop("average")
    return found


def recompute(terms: Terms, rows: list[dict[str, Any]]) -> Book:
    """Add all charges to an empty book, by the present rules; refuse a charge that breaks one."""
    name, book = terms.name, Book(terms.name)
    for number, row in enumerate(rows, 1):
        try:
            charge, due = _charge_of(row, terms)
            migrated = number <= terms.migrated
            if migrated != _is_migrated(row):
                raise LedgerError("it is not in the layout that charges with this number have")
            terms.check(book.totals, charge)
            again = _row(name, number, row["at"], charge, book.add(charge, due if migrated else None))
            wrong = {each for each, value in zip(row, again, strict=True) if value != row[each]}
            if wrong - {"looks"}:  # these are checked by the cost, and migrated charges have none
                raise LedgerError(f"this library would have written another {', '.join(sorted(wrong))}")
        except (LedgerError, SettingsError) as error:
            raise LedgerError(f"The ledger of {name!r} is damaged at its charge {number}: {error}") from None
    if not _TIME.fullmatch(str(terms.created)):
        raise LedgerError(f"The ledger of {name!r} is damaged: its date is {terms.created!r}.")
    if terms.charges != len(rows):
        raise LedgerError(f"""The ledger of {name!r} is damaged: it has {len(rows)} charges, and has counted
            {terms.charges}.""")
    return book


def _charge_of(row: dict[str, Any], terms: Terms) -> tuple[Charge, Cost]:
    """Return the charge in a row and what it cost; refuse a row that `write` cannot have written."""
    if not all(isinstance(value, int if name in ("number", "n") else str) for name, value in row.items()):
        raise LedgerError("this library cannot have written it: a number is a string in it, or the reverse")
    epsilon, delta, gamma, average, charged, average_charged = (_amount(row[name]) for name in _AMOUNTS)
    unit = row["unit"] if is_person(row["unit"]) else terms.unit
    try:
        looks = json.loads(row["looks"]) if row["looks"] else []
        charge = Charge(
            epsilon=float(epsilon),
            delta=float(delta),
            gamma=float(gamma),
            average_gamma=None if average == gamma else float(average),
            looks=tuple((float(asked), float(now)) for asked, now in looks),
            declared=_strings(row["declared"]),
            people=_strings(row["people"]),
            **{name: row[name] for name in _SAME} | {"neighbours": terms.neighbours, "unit": unit},
        )
        if _fits(charge) and _TIME.fullmatch(row["at"]):
            return charge, Cost(epsilon, delta, charged, average_charged)
    except (TypeError, ValueError, OverflowError) as error:
        raise LedgerError(f"this library cannot have written it ({error})") from None
    raise LedgerError("this library cannot have written it")


def _is_migrated(row: dict[str, Any]) -> bool:
    """Tell whether a charge was converted from the earlier layout."""
    same = (row["average"], row["average_charged"]) == (row["gamma"], row["charged"])
    return not row["looks"] and same and (not row["dataset"] or row["declared"] != "[]")


@functools.lru_cache(maxsize=1000)
def _gaussians(epsilon: float, delta: float) -> list[list[float]]:
    """Return the parameters for composition of the Gaussian mechanisms that promise this ε and δ."""
    made = [Gaussian(), Gaussian("classic")] if epsilon < 1 else [Gaussian()]
    return [list(map(float, each.composition_kind(epsilon, delta).split()[1:])) for each in made]


def _fits(charge: Charge) -> bool:
    """Tell whether a charge's parameters for composition are no better than what it promised."""
    name, *numbers = charge.kind.split(" ")
    if charge.purpose == "catalogue":  # its row is checked with those of all catalogues
        return name == "catalogue" and len(numbers) == 1 and bool(charge.key)
    found = [float(number) for number in numbers]
    if name != "gaussian" or not found:
        return name == "dp" and found == [charge.epsilon, charge.delta]
    # σ must not be above that of the mechanism, and the other parameters of the noise not below theirs.
    return found[0] > 0 and any(
        found[0] <= sigma * (1 + 1e-9)
        and all(x >= y * (1 - 1e-9) for x, y in zip(found[1:], rest, strict=False))
        for sigma, *rest in _gaussians(charge.epsilon, charge.delta)
    )


# --- writing ----------------------------------------------------------------------------------------


def _replacing(table: str) -> str:
    """Return the statement that inserts a row, or replaces the one with the same key."""
    names, keys = NAMES[table], KEYS[table]
    marks, sets = ", ".join("?" * len(names)), ", ".join(f"{each} = excluded.{each}" for each in names[keys:])
    which = ", ".join(names[:keys])
    return f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT ({which}) DO UPDATE SET {sets}"  # noqa: S608


_INSERT = f"INSERT INTO charges VALUES ({', '.join('?' * len(NAMES['charges']))})"  # noqa: S608
_PEOPLE, _GAMMAS, _SPENT = map(_replacing, ("people", "gammas", "spent"))


def _row(budget: str, number: int, at: str, charge: Charge, due: Cost) -> tuple[Any, ...]:
    """Return the row of a charge that costs this."""
    c = charge
    average = c.gamma if c.average_gamma is None else c.average_gamma
    return (
        *(budget, number, at, storable(c.function), c.key, c.dataset, c.n, storable(c.mechanism), c.kind),
        *(str(exact(c.epsilon)), str(exact(c.delta)), str(exact(c.gamma)), str(due.gamma)),
        *(c.partition, c.part, storable(c.who), c.strength, json.dumps(c.declared), storable(c.described)),
        *(json.dumps(c.people), c.neighbours, c.unit, c.purpose, json.dumps(c.looks)),
        *(str(exact(average)), str(due.average)),
    )


def write(run: Run, number: int, charge: Charge, book: Book) -> Cost:
    """Add a charge to the book, and write what it changes to the database."""
    c, name, before = charge, book.name, dict(book.people)
    due = book.add(charge)
    run(_INSERT, *_row(name, number, now(), charge, due))
    for each in c.subjects:
        person = book.people[each]
        if person != before.get(each):
            declared = "" if person.declared is None else json.dumps(person.declared)
            described = storable(person.described)
            run(_PEOPLE, name, each, person.partition, person.part, declared, described)
    if c.purpose == "declaration":
        return due
    if c.dataset and c.key and (due.gamma or due.average):
        known = book.gammas[c.dataset, c.key]
        run(_GAMMAS, name, c.dataset, c.key, str(known.gamma), str(known.average))
    total = book.totals[c.partition, c.part]
    *cost, average = map(str, total.cost.numbers)
    run(_SPENT, name, c.partition, c.part, *cost, json.dumps(total.counts), average)
    return due
