"""The ledger: what was spent, by whom and for what, with the totals, in one database.

Charges are only ever appended. A reservation is one transaction: it locks the budget's row, compares the new
totals with the caps, and writes the charge and the totals, or nothing. A ledger has no data and no
answers, except every learned P, which is private already.

The rules are those of `privatize.budgets.charges.Book`: a reservation adds one charge to what was loaded, and
`Ledger.recomputed` adds all charges to an empty book, so that what is verified is what was enforced.
"""

import contextlib
import functools
import itertools
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from privatize.budgets import catalogues, rows, units
from privatize.budgets.catalogues import Declaration
from privatize.budgets.charges import Book, Charge, Lesson, Totals
from privatize.budgets.ledger_layout import CREATE, NAMES, VERSION, check, prepare
from privatize.budgets.terms import Terms
from privatize.errors import BudgetExceeded, LedgerError, SettingsError
from privatize.planning.composition import Cost
from privatize.storage.database import Database, DatabaseError, Run, now, storable
from privatize.storage.places import without_password

_DECLARING = 0x70726977  # advisory lock of PostgreSQL: one declares, and the others find it
_TERMS = ", ".join(NAMES["budgets"])  # by name: somebody may have added a column


class Ledger:
    """A ledger in a database.

    Parameters
    ----------
    url : str or Path
        See `privatize.storage.database.Database`; ``"memory"`` keeps it in this process only.
    shown : str, optional
        Its name in messages, if not its URL: a copy has the name of its original.
    """

    opaque: ClassVar[bool] = True  # fingerprints do not look inside

    def __init__(self, url: str | os.PathLike[str], *, shown: str | None = None) -> None:
        self.database = Database(url, CREATE, durable=True, prepare=prepare)
        self.url = without_password(self.database.url) if shown is None else shown

    def open_budget(self, terms: Terms) -> None:
        """Open a budget, or create it; refuse if it was opened with other caps before."""
        name, cap = terms.name, terms.cap
        with self.transaction() as run:
            if not run("SELECT 1 FROM budgets WHERE name = ?", name):
                for table in ("charges", "spent", "gammas", "people", "catalogues"):
                    if run(f"SELECT 1 FROM {table} WHERE budget = ? LIMIT 1", name):  # noqa: S608
                        raise LedgerError(f"""The ledger {self.url} is damaged: its table {table} has rows of
                            the budget {name!r}, whose caps are missing. Restore it from a backup.""")
            run(
                "INSERT INTO budgets VALUES (?, ?, ?, ?, ?, 0, ?, 'replace', 'record', 0) "
                "ON CONFLICT (name) DO NOTHING",
                *(name, str(cap.epsilon), str(cap.delta), str(cap.gamma), terms.composition, now()),
            )
            found = self._terms(run, name)
        if (found.cap, found.composition) != (cap, terms.composition):
            raise SettingsError(f"""The budget {name!r} in {self.url} was opened with {found.caps()}. A budget
                keeps the caps that it was opened with: pass these, or open a budget with another name.""")

    def budgets(self) -> list[Terms]:
        """Return every budget, the oldest first."""
        with self.transaction(write=False) as run:
            found = run(f"SELECT {_TERMS} FROM budgets ORDER BY created, name")  # noqa: S608
        return [rows.terms_of(row) for row in found]

    def totals(self, name: str) -> dict[tuple[str, str], Totals]:
        """Return what was spent, by partition and part."""
        with self.transaction(write=False) as run:
            return rows.read_totals(run, name)

    def unsealed(self, name: str) -> tuple[int, bool]:
        """Return how many sampled answers were about data without a name, and whether one P holds for all."""
        with self.transaction(write=False) as run:
            ((count,),) = run(
                "SELECT COUNT(*) FROM charges WHERE budget = ? AND dataset = '' AND strength = 'sampled' "
                "AND purpose <> 'declaration'",
                name,
            )
            people = rows.read_people(run, name).values() if count else ()
        families = [set(person.declared) for person in people if person.declared is not None]
        return int(count), not families or bool(set.intersection(*families))

    def history(self, name: str) -> list[dict[str, Any]]:
        """Return every charge, the oldest first."""
        with self.transaction(write=False) as run:
            return rows.read_history(run, name)

    def by_strength(self, name: str) -> tuple[dict[tuple[str, str], Totals], list[dict[str, Any]], bool]:
        """Return all totals, every plain charge, and whether there are sampled answers or catalogues."""
        with self.transaction(write=False) as run:
            charges = rows.read_history(run, name, "plain")
            return rows.read_totals(run, name), charges, rows.has_sampled(run, name)

    def asked(self, name: str) -> tuple[list[tuple[Declaration, int]], int]:
        """Return every catalogue of a budget with its number of answers, and how many others are sampled."""
        with self.transaction(write=False) as run:
            return rows.asked(run, name)

    def learned(self, name: str, asked: Lesson) -> str | None:
        """Return what was learned for a charge of a budget, or None."""
        with self.transaction(write=False) as run:
            return rows.read_learned(run, name, asked)

    def reserve(self, terms: Terms, charge: Charge, learned: Lesson | None = None) -> bool:
        """Spend what a charge asks for, in one transaction, or refuse it and change nothing.

        Parameters
        ----------
        terms : Terms
            The budget's caps and rule, as it was opened.
        charge : Charge
            What is asked for.
        learned : Lesson, optional
            What was learned for it, which is written in the same transaction.

        Returns
        -------
        bool
            Whether the budget had sampled answers before. About whom does not matter: what is asked next may
            depend on any of them.
        """
        _check_charge(terms, charge)
        with self.transaction() as run:
            numbers = self._numbers(run, terms)
            units.check(run, terms.name, charge, write=True, postgres=self.database.postgres)
            before = rows.sampled_before(run, terms.name)
            _add(run, terms, charge, lambda book, each: rows.write(run, next(numbers), each, book))
            if learned is not None:
                rows.write_learned(run, terms.name, learned)
        return before

    def declare(
        self, terms: Terms, charge: Charge, wanted: Declaration, *, write: bool = True
    ) -> Declaration:
        """Declare a catalogue and charge its γ, in one transaction; return what is declared.

        What was declared before is returned, and costs nothing.

        Parameters
        ----------
        terms : Terms
            The budget's caps and rule, as it was opened.
        charge : Charge
            What it costs, and about whom it is.
        wanted : Declaration
            What is to be declared.
        write : bool
            Whether to declare it. If not, only what is refused now is refused.
        """
        _check_charge(terms, charge)
        with self.transaction(write=write) as run:
            if write and self.database.postgres:  # on SQLite the transaction itself locks the file
                run("SELECT pg_advisory_xact_lock(?)", _DECLARING)
            self._compare(self._terms(run, terms.name), terms)
            known = catalogues.known(run, terms.name, wanted.name)
            if known is not None:
                wanted.check_same(known, terms.name)
                return known
            numbers = self._numbers(run, terms) if write else iter(())
            units.check(run, terms.name, charge, write=write, postgres=self.database.postgres)
            found = catalogues.settled(run, terms.name, wanted, charge)
            add = (lambda book, each: rows.write(run, next(numbers), each, book)) if write else Book.add
            _add(run, terms, found.charge(charge), add)
            if write:
                catalogues.write(run, terms.name, found)
        return found

    def catalogues(self, name: str) -> list[Declaration]:
        """Return what was declared in a budget, the oldest first."""
        with self.transaction(write=False) as run:
            return list(catalogues.read(run, name).values())

    def check(self, terms: Terms, charge: Charge) -> None:
        """Refuse a charge that could not be reserved now; spend nothing."""
        _check_charge(terms, charge)
        with self.transaction(write=False) as run:
            units.check(run, terms.name, charge, write=False, postgres=False)
            self._compare(self._terms(run, terms.name), terms)
            _add(run, terms, charge, Book.add)

    def declare_again(self, terms: Terms, name: str, declared: str, described: str, who: str) -> None:
        """Write into the history that the P of some people, which cannot be compared, is this one."""
        with self.transaction() as run:
            number = self._next(run, terms)
            book = Book(terms.name, people=rows.read_people(run, terms.name))
            names = book.alike(name) if name in book.people else (name,)
            rows.write(run, number, _declaration(names, declared, described, who), book)

    def recomputed(self, terms: Terms) -> tuple[Book, Book]:
        """Return the book of a budget in the ledger, and what its charges add up to, both from one moment.

        Raises
        ------
        LedgerError
            If the caps have changed, or a charge breaks a rule or is not what `reserve` would have written.
        """
        with self.transaction() as run:
            if self.database.postgres:  # else every statement would read another moment
                run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            found = self._compare(self._terms(run, terms.name), terms)
            stored, charges = rows.read_book(run, terms.name), rows.read_charges(run, terms.name)
            catalogues.check(run, terms.name)
            units.verify(run, terms.name)
        return stored, rows.recompute(found, charges)

    def _numbers(self, run: Run, terms: Terms) -> Iterator[int]:
        """Lock a budget's row before anything is read; return the numbers of the next charges."""
        return itertools.chain([self._next(run, terms)], iter(lambda: self._next(run, terms), None))

    def _next(self, run: Run, terms: Terms) -> int:
        """Lock a budget's row until the end of the transaction; return the number of the next charge."""
        # This locks the row on PostgreSQL; on SQLite the transaction itself locks the file. A ledger that
        # a later version of the library has converted meanwhile is not written to.
        updated = run(
            f"UPDATE budgets SET charges = charges + 1 WHERE name = ? AND "  # noqa: S608
            f"(SELECT MAX(version) FROM ledger_layout) = {VERSION} RETURNING {_TERMS}",
            terms.name,
        )
        found = rows.terms_of(updated[0]) if updated else self._terms(run, terms.name)
        return self._compare(found, terms).charges

    def _terms(self, run: Run, name: str) -> Terms:
        check(run("SELECT version FROM ledger_layout"))
        found = run(f"SELECT {_TERMS} FROM budgets WHERE name = ?", name)  # noqa: S608
        if not found:
            raise LedgerError(f"The budget {name!r} is no longer in {self.url}.")
        return rows.terms_of(found[0])

    def _compare(self, found: Terms, opened: Terms) -> Terms:
        """Return the terms in the ledger; refuse them if they differ from those that were opened."""
        if found != opened:
            raise LedgerError(f"""The ledger {self.url} is damaged: the budget {opened.name!r} was opened with
                {opened.caps()}, and has {found.caps()} now. A budget keeps its caps. Restore the ledger from
                a backup.""")
        return found

    @contextlib.contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Run]:
        """Run statements in one transaction."""
        try:
            with self.database.transaction(write=write) as run:
                yield run
        except DatabaseError as error:
            raise LedgerError(f"""The ledger {self.url} cannot be used, so nothing can be spent from it:
                {error}""") from None


def _add(run: Run, terms: Terms, charge: Charge, add: Callable[[Book, Charge], Cost]) -> None:
    """Add a charge to the book of a budget; refuse it if the total exceeds the caps."""
    book = rows.read_book(run, terms.name, charge)
    spent = terms.cost(book.totals)
    terms.check(book.totals, charge)
    for each in itertools.chain(_recognized(book, charge), [charge]):
        due = add(book, each)
    after = terms.cost(book.totals)
    if not after.fits(terms.cap) or _for_plain_only(terms, charge):
        raise _exceeded(terms, charge, due, spent, after)


def _check_charge(terms: Terms, charge: Charge) -> None:
    """Refuse a charge that this budget cannot add up, or that no database can store."""
    if charge.neighbours != terms.neighbours or not (
        charge.unit == terms.unit or units.is_person(charge.unit)
    ):
        raise SettingsError(f"""The budget {terms.name!r} is about neighbours that {terms.neighbours} a
            {terms.unit}, and {charge.function}() is about neighbours that {charge.neighbours} a
            {charge.unit}. A total has one kind of neighbour: open another budget.""")
    for text in (charge.key, charge.dataset, charge.partition, charge.part, *charge.people, *charge.declared):
        if storable(text) != text:
            raise SettingsError(f"""{text!a} cannot be written to a ledger: it cannot be encoded as UTF-8, or
                has a NUL character. Choose another name.""")


def _recognized(book: Book, charge: Charge) -> Iterator[Charge]:
    """Yield a declaration for each P of the earlier layout whose description is that of the charge's P."""
    for name in charge.subjects:
        known = book.people.get(name)
        if not name or known is None or not known.declared or set(known.declared) & set(charge.declared):
            continue
        same = len(charge.declared) == 1 and charge.lossless and known.described == storable(charge.described)
        if same and not any(known.comparable):
            yield _declaration(book.alike(name), charge.declared[0], charge.described, charge.who)


def _declaration(names: tuple[str, ...], declared: str, described: str, who: str) -> Charge:
    nothing: Any = {"epsilon": 0.0, "delta": 0.0, "gamma": 0.0}
    about: Any = {"people": names, "declared": (declared,), "described": described, "who": who}
    blank: Any = {"key": "", "dataset": "", "n": 0, "mechanism": "", "kind": "dp 0.0 0.0"}
    return Charge(function="declaration", purpose="declaration", **nothing, **about, **blank)


def _exceeded(terms: Terms, charge: Charge, cost: Cost, spent: Cost, after: Cost) -> BudgetExceeded:
    """Return the error that shows what is requested, what is left, the caps, and what would fit."""
    lines: dict[bool, list[str]] = {True: [], False: []}  # by whether there is enough
    facts: dict[str, float] = {}
    fits: list[str] = []
    short: list[str] = []
    for symbol in ("epsilon", "delta", "gamma"):
        cap, asked = getattr(terms.cap, symbol), float(getattr(cost, symbol))
        left = max(float(cap - getattr(spent, symbol)), 0.0)
        enough = getattr(after, symbol) <= cap
        facts |= {symbol: asked, f"{symbol}_left": left, f"{symbol}_cap": float(cap)}
        if asked or not enough:
            lines[enough].append(f"{symbol}={asked:.6g} of {left:.6g} left (cap {float(cap):.6g})")
        if not enough:
            short.append(symbol)
            fits.append(f"{symbol}={_down(left)}" if _down(left) > 0 and symbol != "gamma" else "")
    possible = bool(fits) and all(fits)
    # A question of a catalogue has another kind of name, and an epsilon of its own in every call.
    function = charge.purpose == "answer" and charge.function.isidentifier()
    answer = f"{charge.function}.replace({', '.join(fits)})" if function else ", ".join(fits)
    which = " with this gamma" if facts["gamma_left"] else ""  # a smaller one may
    nothing = f"No sampled answer{which} fits. Answers with proven bounds or Blocks need no gamma."
    nothing = nothing if short == ["gamma"] else "Nothing more fits."
    would = f"{answer} would fit." if possible else nothing
    name = charge.function + "()" * (not charge.function.endswith(")"))
    if _for_plain_only(terms, charge):
        return BudgetExceeded(
            f"""The budget {terms.name!r} has gamma=0: it is for answers that are differentially private for
            all pairs of neighbours, and {name} promises that for all but a share gamma of the pairs
            under P. Nothing was spent. Open a budget with a gamma, under another name, or give the
            function a bound that is proven for all pairs: sensitivity=, or mechanism=Blocks(low, high).""",
            **facts,
        )
    also = f"; there is enough for {', '.join(lines[True])}" if lines[True] else ""
    return BudgetExceeded(
        f"The budget {terms.name!r} has not enough left for {name}, which asks for "
        f"{', '.join(lines[False])}{also}. Nothing was spent. {would}",
        **facts,
    )


def _for_plain_only(terms: Terms, charge: Charge) -> bool:
    """Tell whether a sampled answer is asked of a budget for plain ones."""
    # The charge may have no gamma yet: before calibration it is not known how much of it is new.
    return charge.strength == "sampled" and not terms.cap.gamma


def _down(amount: float) -> float:
    """Round an amount down to six digits."""
    if amount <= 0:
        return 0.0
    digits = 5 - math.floor(math.log10(amount))
    rounded = float(f"{amount:.6g}")
    return rounded if rounded <= amount else float(f"{amount - 10.0**-digits:.6g}")


@functools.cache
def open_ledger(url: str) -> Ledger:
    """Return the ledger at a URL or an absolute path, one for each in this process."""
    return Ledger(url)
