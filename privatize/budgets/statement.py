"""What the total of a budget promises, by strength, in words that a review board can read."""

from typing import NamedTuple

from privatize.budgets.charges import Totals
from privatize.budgets.ledger import Ledger
from privatize.budgets.terms import Terms, tally
from privatize.display.figures import counted
from privatize.planning.composition import Cost


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
        Whether there are sampled answers.
    """

    total: Cost
    plain: Cost
    promises: tuple[str, ...]
    sampled: bool


def spent(ledger: Ledger, terms: Terms) -> Spent:
    """Return what was spent from a budget, by strength."""
    everything, charges, sampled = ledger.by_strength(terms.name)
    plain: dict[tuple[str, str], Totals] = {}
    for row in charges:
        tally(plain, row)
    promises = tuple(row["promise"] for row in charges)
    return Spent(terms.least(everything), terms.least(plain), promises, sampled)


def sentence(terms: Terms, found: Spent) -> str:
    """Say what a total promises.

    Examples
    --------
    >>> terms = Terms("survey", Cost.of(2, 0, 0.2), "sum")
    >>> plain = Spent(Cost.of(0.5, 0, 0), Cost.of(0.5, 0, 0), ("differentially private",), sampled=False)
    >>> sentence(terms, plain)
    'epsilon=0.5 for all pairs of neighbours: plain differential privacy'
    """
    words = f"{_amounts(terms, found.total)} for all pairs of neighbours"
    # Tight bounds are proven for amounts that do not depend on answers; a sampled question includes its own.
    tight = bool(found.promises) and terms.composition == "tight"
    if not found.sampled:
        words += ": plain differential privacy" if found.promises else ""
        return words + (", if all amounts were fixed beforehand" if tight else "")
    gamma, average = float(found.total.gamma), float(found.total.average)
    words += f" but a share {gamma:.6g} of those under P (on average {average:.6g})"
    if not found.promises:
        return f"{words}, if these questions were fixed beforehand"
    fixed = "the sampled questions and all amounts" if tight else "the sampled questions"
    return f"{words}, if {fixed} were fixed beforehand. Of this, {_plain(terms, found)}"


def about_unsealed(ledger: Ledger, name: str) -> tuple[str, bool]:
    """Say how many sampled answers were about unsealed data, and whether that leaves the total in doubt."""
    count, one = ledger.unsealed(name)
    words = f"{counted(count, 'sampled answer')} {'was' if count == 1 else 'were'} about unsealed data"
    if one:
        return (f"{words}, and all sampled answers are under one P" if count else ""), False
    return f"{words}: it cannot be checked that all answers about the same people are under one P", True


def _plain(terms: Terms, found: Spent) -> str:
    """Say what the plain answers of a total promise, beside sampled ones."""
    count = len(found.promises)
    given = sum("given" in promise for promise in found.promises)
    which = "that is" if count == 1 else "that are"
    words = f"{_amounts(terms, found.plain)} is for {counted(count, 'answer')} {which} differentially private"
    if given in (0, count):
        them = "it" if count == 1 else "them"
        return f"{words} for all pairs{f', given the sampled answers before {them}' if given else ''}"
    return f"{words} for all pairs, {given} of them given the sampled answers before"


def _amounts(terms: Terms, cost: Cost) -> str:
    delta = f", delta={float(cost.delta):.6g}" if terms.cap.delta else ""
    return f"epsilon={float(cost.epsilon):.6g}{delta}"
