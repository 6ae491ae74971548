"""What the total of a budget promises, by strength, in words that a review board can read."""

import itertools
from decimal import ROUND_CEILING, Context
from typing import Any, NamedTuple

from privatize.budgets.catalogues import LATE, Declaration
from privatize.budgets.charges import Totals
from privatize.budgets.ledger import Ledger
from privatize.budgets.terms import Terms, tally
from privatize.display.figures import counted
from privatize.planning.composition import Cost

_THREE = Context(prec=3, rounding=ROUND_CEILING)  # it is a bound, so it is rounded up
_TOLD = {
    "learning": ("learn()", "the P that learn() found"),
    "check": ("check_fit()", "the factor that check_fit() found"),
}


class Spent(NamedTuple):
    """What was spent from a budget, by strength.

    Attributes
    ----------
    total : Cost
        What all answers cost together. Its γ and average γ are those of the sampled answers.
    plain : Cost
        What the plain answers cost together: ε and δ for all pairs.
    promises : tuple of str
        What each plain answer promises by itself, in words.
    sampled : bool
        Whether there are sampled answers or catalogues.
    catalogues : tuple of str
        Names of the catalogues that were declared before the first answer.
    others : int
        The number of sampled answers that are of no catalogue.
    early : bool
        Whether a tight total has Gaussian answers from before the first catalogue.
    told : str
        On what the catalogues rest that was found of the people before the first one, in words: its
        questions may have been chosen because of that.
    """

    total: Cost
    plain: Cost
    promises: tuple[str, ...]
    sampled: bool
    catalogues: tuple[str, ...] = ()
    others: int = 0
    early: bool = False
    told: str = ""


def spent(ledger: Ledger, terms: Terms) -> Spent:
    """Return what was spent from a budget, by strength."""
    everything, charges, sampled = ledger.by_strength(terms.name)
    declared, others = ledger.asked(terms.name)
    # A tight budget with a catalogue has another rule, which is for all of its charges.
    plain = {at: Totals(counts=total.catalogues) for at, total in everything.items() if total.catalogues}
    answers = [row for row in charges if row["purpose"] != "catalogue"]
    for row in answers:
        tally(plain, row)
    promises = tuple(row["promise"] for row in answers)
    names = tuple(each.name for each, _ in declared if not each.late)
    history = ledger.history(terms.name) if declared else []
    before = list(itertools.takewhile(lambda row: row["purpose"] != "catalogue", history))
    early = terms.composition == "tight" and any(row["kind"].startswith("gaussian") for row in before)
    told = _told({row["purpose"] for row in before}, _used(history, [each for each, _ in declared]))
    return Spent(terms.least(everything), terms.least(plain), promises, sampled, names, others, early, told)


def _used(history: list[dict[str, Any]], declared: list[Declaration]) -> set[str]:
    """Return which of learn() and check_fit() catalogues use the results of, by purpose."""
    laws = [row["described"] for row in history if row["purpose"] == "catalogue"]
    found = {"learning"} if any("learned(" in law for law in laws) else set[str]()
    return found | ({"check"} if any(each.facts.get("fit") for each in declared) else set())


def _told(before: set[str], used: set[str]) -> str:
    """Say what catalogues rest on; of what is not used, that questions may have been chosen because of it.

    Examples
    --------
    >>> _told({"learning", "check"}, {"learning", "check"})
    'for the P that learn() found and the factor that check_fit() found'
    >>> _told({"learning", "check"}, {"check"})
    'for the factor that check_fit() found, given what learn() told before'
    """
    found = [words for what, (_, words) in _TOLD.items() if what in before & used]
    others = [name for what, (name, _) in _TOLD.items() if what in before - used]
    parts = [f"for {' and '.join(found)}"] if found else []
    parts += [f"given what {' and '.join(others)} told before"] if others else []
    return ", ".join(parts)


def sentence(terms: Terms, found: Spent) -> str:
    """Say what a total promises.

    Examples
    --------
    >>> terms = Terms("survey", Cost.of(2, 0, 0.2), "sum")
    >>> plain = Spent(Cost.of(0.5, 0, 0), Cost.of(0.5, 0, 0), ("differentially private",), sampled=False)
    >>> sentence(terms, plain)
    'epsilon=0.5 for all pairs of neighbours: plain differential privacy'
    """
    if found.sampled and found.catalogues:
        return _as_you_go(terms, found)
    words = f"{_amounts(terms, found.total)} for all pairs of neighbours"
    # Tight bounds are proven for amounts that do not depend on answers; a sampled question includes its own.
    tight = bool(found.promises) and terms.composition == "tight"
    if not found.sampled:
        words += ": plain differential privacy" if found.promises else ""
        return words + (", if all amounts were fixed beforehand" if tight else "")
    words += _but(found)
    if not found.promises:
        return f"{words}, if these questions were fixed beforehand"
    fixed = "the sampled questions and all amounts" if tight else "the sampled questions"
    return f"{words}, if {fixed} were fixed beforehand. Of this, {_plain(terms, found)}"


def _as_you_go(terms: Terms, found: Spent) -> str:
    """Say what a total promises that has catalogues: amounts may depend on answers, so the caps hold."""
    several = len(found.catalogues) > 1
    names = f"the catalogue{'s' if several else ''} {' and '.join(map(repr, found.catalogues))}"
    words = f"{_amounts(terms, terms.cap)} for all pairs of neighbours{_but(found)}, whatever is asked of "
    words += f"{names}, in whatever order and with whatever amounts"
    words += f", {found.told}" if found.told else ""
    fixed = ["all amounts before the first declaration"] if found.early else []
    if found.others:
        answers = counted(found.others, "sampled answer")
        fixed = [f"the questions outside of {'them' if several else 'it'} ({answers})", *fixed]
    words += f", if {' and '.join(fixed)} were fixed beforehand" if fixed else ""
    words += f". These are the caps; {_amounts(terms, found.total)} is spent so far"
    return f"{words}. Of this, {_plain(terms, found)}" if found.promises else words


def _but(found: Spent) -> str:
    gamma, average = float(found.total.gamma), float(found.total.average)
    shown = _THREE.create_decimal(repr(average)).normalize()
    return f" but a share {gamma:.6g} of those under P (on average {shown:g})"


def doubts(ledger: Ledger, name: str) -> tuple[str, bool]:
    """Say what is not in a total, or could not be checked about it, and whether that leaves it in doubt."""
    count, one = ledger.unsealed(name)
    words = f"{counted(count, 'sampled answer')} {'was' if count == 1 else 'were'} about unsealed data"
    notes = []
    if not one:
        notes = [f"{words}: it cannot be checked that all answers about the same people are under one P"]
    elif count:
        notes = [f"{words}, and all sampled answers are under one P"]
    late = [repr(each.name) for each in ledger.catalogues(name) if each.late]
    if late:
        was, its = ("was", "its") if len(late) == 1 else ("were", "their")
        which = f"{counted(len(late), 'catalogue')} ({' and '.join(late)}) {was}"
        notes.append(f"{which} {LATE}, nor is what was asked because of {its} answers")
    return ". ".join(notes), not one or bool(late)


def _plain(terms: Terms, found: Spent) -> str:
    """Say what the plain answers of a total promise, beside sampled ones."""
    count = len(found.promises)
    given = sum(promise.startswith("differentially private given") for promise in found.promises)
    which = "that is" if count == 1 else "that are"
    words = f"{_amounts(terms, found.plain)} is for {counted(count, 'answer')} {which} differentially private"
    if given in (0, count):
        them = "it" if count == 1 else "them"
        return f"{words} for all pairs{f', given the sampled answers before {them}' if given else ''}"
    return f"{words} for all pairs, {given} of them given the sampled answers before"


def _amounts(terms: Terms, cost: Cost) -> str:
    delta = f", delta={float(cost.delta):.6g}" if terms.cap.delta else ""
    return f"epsilon={float(cost.epsilon):.6g}{delta}"
