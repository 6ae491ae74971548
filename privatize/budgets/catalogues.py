"""Catalogues in a ledger: questions that were declared before the first answer about some people."""

import contextlib
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

from privatize.budgets.charges import Charge, check_text
from privatize.errors import LedgerError, SettingsError
from privatize.storage.database import Run, storable

LATE = "declared after answers: not in the total"

_ALL = 2**62  # above every number of a charge
_EARLIER = "SELECT 1 FROM charges WHERE budget = ? AND number < ? AND dataset = ? AND key = ?"


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What was declared of a catalogue, before the first answer about its people.

    Attributes
    ----------
    name : str
        Name of the catalogue; a budget has one catalogue of each name.
    dataset : str
        Name and version of the sealed data, as in charges.
    n : int
        Number of records.
    digest : str
        A digest of everything that was declared, except what the first declaration decides: seeds, weights.
    key : str
        What its answers are charged under: they have this key, so γ is charged once. Nothing else has it.
    content : str
        What was declared, as JSON: an object that has the seed of the calibration as "seed".
    late : bool
        Whether it may be declared after answers; in a ledger, whether it was.
    """

    name: str
    dataset: str
    n: int
    digest: str
    key: str
    content: str
    late: bool = False

    def __post_init__(self) -> None:
        check_text("The name of a catalogue", self.name)
        texts = (self.dataset, self.digest, self.key, self.content)
        if not all(texts) or any(storable(text) != text for text in texts):
            raise SettingsError(f"""The catalogue {self.name!r} cannot be declared: dataset, digest, key and
                content are strings that can be written as UTF-8, and none of them is empty.""")

    @property
    def fixed(self) -> tuple[Any, ...]:
        """Return what must be the same in every budget that answers are charged to."""
        return self.name, self.dataset, self.n, self.digest, self.key, self.content

    @property
    def facts(self) -> dict[str, Any]:
        """Return what was declared, from its content."""
        return _facts_in(self.content)

    @property
    def kind(self) -> str:
        """Return the kind of its charge, from which it is seen if its row has changed."""
        text = json.dumps([*self.fixed, bool(self.late)])
        return f"catalogue {hashlib.sha256(text.encode()).hexdigest()}"

    @property
    def in_words(self) -> str:
        """Its name, and that it is late if it is."""
        return f"the catalogue {self.name!r}{f', {LATE}' if self.late else ''}"

    def charge(self, charge: Charge) -> Charge:
        """Return the charge for declaring it; refuse a charge that is about something else."""
        if (charge.purpose, charge.dataset, charge.n) != ("catalogue", self.dataset, self.n):
            raise SettingsError(f"""The catalogue {self.name!r} is about {self.dataset}, n={self.n}, and its
                charge is for {charge.purpose!r}, about {charge.dataset or "unsealed data"}, n={charge.n}.""")
        return replace(charge, function=self.name, key=self.key, kind=self.kind)

    def check_same(self, known: "Declaration", budget: str, differs: str = "") -> None:
        """Refuse to use a catalogue that was declared with other questions, data or settings."""
        if known.fixed[:4] != self.fixed[:4]:
            words = differs or "a question, its code or a setting differs now"
            same = (known.dataset, known.n) == (self.dataset, self.n)
            raise SettingsError(f"""The catalogue {self.name!r} was declared in the budget {budget!r}, and
                {words if same else f"it is about {known.dataset}, n={known.n}"}. What was declared stays as
                it is, because answers may have been seen since then. Put it back as it was. Or declare a
                catalogue under another name, which costs its own gamma, and must come before any answer about
                these people.""")


def read(run: Run, budget: str | None = None) -> dict[tuple[str, int], Declaration]:
    """Return every declaration of a budget, or of a ledger, by budget and the number of its charge.

    Raises
    ------
    LedgerError
        If one has changed since it was charged.
    """
    which, values = ("", ()) if budget is None else ("WHERE k.budget = ?", (budget,))
    found = run(
        f"SELECT k.budget, k.number, k.name, k.dataset, k.n, k.digest, c.key, k.content, k.late, c.kind "  # noqa: S608
        f"FROM catalogues AS k LEFT JOIN charges AS c ON c.budget = k.budget AND c.number = k.number "
        f"AND c.purpose = 'catalogue' {which} ORDER BY k.budget, k.number",
        *values,
    )
    return {(budget, number): _declaration(budget, *facts) for budget, number, *facts in found}


def _declaration(budget: str, *row: Any) -> Declaration:
    *facts, kind = row
    names = (each.name for each in fields(Declaration))
    with contextlib.suppress(SettingsError, TypeError, AttributeError):  # no charge, or values of other types
        found = Declaration(**dict(zip(names, facts, strict=True)))
        if found.kind == kind:
            return replace(found, late=bool(found.late))
    raise LedgerError(f"""The ledger is damaged: the catalogue {facts[0]!r} of the budget {budget!r} is not
        what was declared and charged. Restore the ledger from a backup.""")


def known(run: Run, budget: str, name: str) -> Declaration | None:
    """Return what was declared under a name in a budget, or None."""
    return next((each for each in read(run, budget).values() if each.name == name), None)


def settled(run: Run, budget: str, wanted: Declaration, charge: Charge) -> Declaration:
    """Return a declaration as it is to be written to a budget; refuse it after answers about these people.

    If another budget of this ledger has the same catalogue, its seeds and weights are used. It was fixed when
    that one was declared, so answers since then do not matter.

    Parameters
    ----------
    run : callable
        Runs statements.
    budget : str
        The budget.
    wanted : Declaration
        What is to be declared, and whether it may be late.
    charge : Charge
        About whom it is.
    """
    same = [each for each in read(run).values() if each.fixed[:4] == wanted.fixed[:4]]
    first = min(same, key=lambda each: each.late, default=None)
    late = first.late if first else _answered(run, charge.subjects)
    about = ", ".join(sorted(charge.subjects)) if late else _perhaps_the_same(run, budget, charge.partition)
    if about and not wanted.late:
        raise SettingsError(f"""The catalogue {wanted.name!r} would be declared after answers: the ledger of
            the budget {budget!r} has answers about {about}. Its questions may have been chosen because of
            them, and then its gamma would not hold. Only learn(), check_fit() and changed() may come
            before. Declare it first, before anything is asked, or ask about other people. Or
            calibrate(late=True): it is then recorded as {LATE}.""")
    found = replace(first or wanted, late=bool(about))
    seed = found.facts.get("seed")
    if first is None and seed is not None and seed in _seeds(run, charge.subjects):
        raise SettingsError(f"""The catalogue {wanted.name!r} has the seed of another one about the same
            people. It would be measured on pairs whose gaps are known, and its questions may have been chosen
            because of them: then its gamma does not hold. Leave seed= out, or choose another.""")
    # Answers of the same catalogue may have been charged to this budget before it was declared here, too.
    where = (budget, _ALL, found.dataset, found.key)
    if first is None and run(f"{_EARLIER} LIMIT 1", *where):
        raise SettingsError(f"""The catalogue {wanted.name!r} has a key that the budget {budget!r} knows from
            something else: its gamma would not be charged. Declare it with new seeds.""")
    return found


def _perhaps_the_same(run: Run, budget: str, partition: str) -> str:
    """Say which answers of a budget may be about the same people, though under other names, or ""."""
    found = run(
        "SELECT DISTINCT dataset = '', partition FROM charges WHERE budget = ? AND purpose = 'answer' AND "
        "(dataset = '' OR partition <> ?)",
        *(budget, partition),
    )
    if any(unsealed for unsealed, _ in found):
        return "unsealed data, which may be the same people"
    others = sorted(f"parts of {each!r}" if each else "data outside of the partition" for _, each in found)
    return f"{' and '.join(others)}, who may be the same people" if others else ""


def _seeds(run: Run, people: Collection[str]) -> list[Any]:
    """Return the seeds of all catalogues of a ledger about people."""
    found = run(
        "SELECT k.content, c.people, c.dataset FROM catalogues AS k JOIN charges AS c "
        "ON c.budget = k.budget AND c.number = k.number"
    )
    return [_facts_in(text).get("seed") for text, *about in found if not _named(*about).isdisjoint(people)]


def _facts_in(content: str) -> dict[str, Any]:
    found = json.loads(content)
    return found if isinstance(found, dict) else {}


def _answered(run: Run, people: Collection[str], *where: Any) -> bool:
    """Tell whether a ledger has answers about people, whatever their strength and the data's version."""
    which = "AND budget = ? AND number < ?" if where else ""
    found = run(f"SELECT DISTINCT people, dataset FROM charges WHERE purpose = 'answer' {which}", *where)  # noqa: S608
    return any(not _named(names, dataset).isdisjoint(people) for names, dataset in found)


def _named(people: str, dataset: str) -> set[str]:
    """Return whom a charge is about."""
    try:
        return {*(json.loads(people) or [dataset])}
    except (TypeError, ValueError):
        raise LedgerError("The ledger is damaged: a list of names in it is not a list of strings.") from None


def write(run: Run, budget: str, declaration: Declaration) -> None:
    """Write a declaration for the charge that was written last."""
    d = declaration
    run(
        "INSERT INTO catalogues SELECT name, ?, ?, ?, ?, charges, ?, ? FROM budgets WHERE name = ?",
        *(d.name, d.dataset, d.n, d.digest, int(d.late), d.content, budget),
    )


def check(run: Run, budget: str) -> None:
    """Refuse a ledger whose declarations are not those that were charged, or that hides that one is late."""
    found = read(run)
    own = {number: each for (name, number), each in found.items() if name == budget}
    charges = run(
        "SELECT number, function, dataset, n, people FROM charges "
        "WHERE budget = ? AND purpose = 'catalogue' ORDER BY number",
        budget,
    )
    facts = {number: (name, dataset, n) for number, name, dataset, n, _ in charges}
    wrong = facts != {number: (each.name, each.dataset, each.n) for number, each in own.items()}
    for number, _, dataset, _, people in charges if not wrong else ():
        mine = own[number]
        same = [each.late for (name, _), each in found.items() if name != budget and each.fixed == mine.fixed]
        wrong |= not same and bool(run(f"{_EARLIER} LIMIT 1", budget, number, dataset, mine.key))
        if not mine.late and all(same):  # no other budget has had it before the first answer
            wrong |= _answered(run, _named(people, dataset), budget, number)
    if wrong:
        raise LedgerError(f"""The ledger of {budget!r} is damaged: its catalogues are not those that were
            charged. Restore it from a backup.""")


def by_estimate(declarations: Collection[Declaration]) -> dict[tuple[str, str], Declaration]:
    """Return declarations by what their answers are charged under: dataset and key."""
    return {(each.dataset, each.key): each for each in declarations}
