"""Declare the questions of a catalogue in every budget that pays for them, before any of them is answered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privatize.budgets.budget import Budget
from privatize.budgets.catalogues import Declaration
from privatize.budgets.charges import Charge
from privatize.budgets.units import person_by
from privatize.calibration import streams
from privatize.errors import SettingsError
from privatize.function.grid import Choice
from privatize.function.inquiry import Inquiry
from privatize.function.people import Whom
from privatize.function.persons import RECORD
from privatize.function.question import Question
from privatize.function.settings import Settings
from privatize.identity.fingerprint import attempt, reach


@dataclass(frozen=True, eq=False)
class Entry:
    """A question of a catalogue, as it is declared.

    Attributes
    ----------
    inquiry : Inquiry
        The function.
    choice : Choice
        Its label and arguments.
    question : Question or None
        What its estimate depends on; None if the function brings its own bound and needs no P.
    """

    inquiry: Inquiry
    choice: Choice
    question: Question | None

    @property
    def label(self) -> str:
        """Its name."""
        return self.choice.label

    def depends_on(self) -> list[Any]:
        """Return everything that it depends on."""
        return self.inquiry.facts(self.choice) if self.question is None else self.question.facts()

    def refuse_readers(self) -> None:
        """Refuse a question that could read what was asked before: the earlier answers would choose it."""
        found = reach(self.depends_on(), version=self.inquiry.settings.version or "").opaque - {"Sealed"}
        if found:
            raise SettingsError(f"""{self.label} cannot be declared: it refers to a {sorted(found)[0]}, which
                changes with every answer, so that earlier answers could choose what it computes. Keep
                budgets, ledgers and catalogues out of its code, arguments, closure and globals.""")

    @property
    def key(self) -> str:
        """A fingerprint of everything that it depends on; what has none is refused."""
        return self.identified()[0]

    def identified(self) -> tuple[str, frozenset[str]]:
        """Return its key, and the orders of sets in this process, on which it may depend, too."""
        orders: set[str] = set()
        found, what = attempt(self.depends_on(), version=self.inquiry.settings.version, orders=orders)
        if found is None:
            raise SettingsError(f"""{self.label} cannot be declared: it depends on {what}, whose content
                cannot be compared, so nobody could tell later whether it is still the same. Keep open files,
                connections, generators and the like out of its arguments, closure and globals, or describe
                them: add(..., version="1").""")
        return found, frozenset(orders)

    def facts(self) -> dict[str, Any]:
        """Return what is declared of it, as JSON."""
        settings, question = self.inquiry.settings, self.question
        bound = None if question is None or settings.plan is not None else question.bound
        return {
            "label": self.label,
            **self.inquiry.in_words,
            "bound": bound,
            "least": settings.min_sensitivity,
            "digest": self.key,
        }


@dataclass(frozen=True, eq=False)
class Draft:
    """What is declared, but for what the first declaration decides: seed and weights.

    Attributes
    ----------
    name : str
        The catalogue's name.
    whom : Whom
        Its people.
    settings : Settings
        P, gamma and the plan.
    entries : tuple of Entry
        All questions, in the order in which they were added.
    caps : tuple of float, optional
        Epsilon and delta of the catalogue's own budget, which every answer is charged to.
    tag : str
        Which key persons with several rows are ordered by; empty if every row is another person.
    """

    name: str
    whom: Whom
    settings: Settings
    entries: tuple[Entry, ...]
    caps: tuple[float, float] | None = None
    tag: str = ""

    @property
    def sampled(self) -> tuple[Entry, ...]:
        """The questions that are calibrated together."""
        return tuple(entry for entry in self.entries if entry.inquiry.sampled)

    @property
    def questions(self) -> list[Question]:
        """What the estimates of these depend on."""
        return [entry.question for entry in self.sampled if entry.question is not None]

    @property
    def n(self) -> int:
        """How many records are used."""
        return next((question.n for question in self.questions), self.whom.n)

    def facts(self) -> dict[str, Any]:
        """Return what is declared, as JSON."""
        laws = (question.template.law()["described"] for question in self.questions)
        return {
            "gamma": self.settings.gamma,
            "plan": repr(self.settings.plan),
            "P": next(laws, ""),
            "caps": self.caps and list(self.caps),
            "members": [entry.facts() for entry in self.entries],
        }

    def declaration(self, facts: dict[str, Any], decided: dict[str, Any], late: bool) -> Declaration:
        """Return what is written to a ledger; `decided` are seed, weights, fit and signatures."""
        digest = _digest([self.whom.dataset, self.whom.n, facts])
        key = f"{_digest([self.name, digest, decided])}:{decided['seed']}{self.tag and f':{self.tag}'}"
        content = json.dumps({**decided, **facts}, sort_keys=True)
        return Declaration(
            name=self.name,
            dataset=self.whom.dataset,
            n=self.n,
            digest=digest,
            key=key,
            content=content,
            late=late,
        )

    def seed(self, given: int) -> int:
        """Return the seed of the calibration that follows from the user's seed and all that is declared."""
        digest = _digest([self.name, self.facts()])
        return streams.derived_seed(given, streams.CATALOGUE, int(digest[:16], 16))

    def charge(self) -> Charge:
        """Return what declaring costs: gamma, once for all questions."""
        plan, whom = self.settings.plan, self.whom
        costs: dict[str, Any] = {"strength": "plain", "gamma": 0.0}
        if plan is not None and self.questions:
            average = min(1 - plan.k / (plan.m + 1), plan.gamma)
            costs = {"gamma": plan.gamma, "average_gamma": average, **self.questions[0].template.law()}
        costs |= {"mechanism": "", "kind": "", "epsilon": 0.0, "delta": 0.0, "purpose": "catalogue"}
        unit = self.settings.record
        costs |= {"unit": person_by(unit.name) if self.tag else RECORD}
        return Charge(function=self.name, key="", dataset=whom.dataset, people=whom.people, n=self.n, **costs)


def _digest(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def declared_before(draft: Draft, facts: dict[str, Any], budgets: Sequence[Budget]) -> Declaration | None:
    """Return what was declared under this name, or None; refuse it if something is different now."""
    for budget in budgets:
        found = budget.declared(draft.name)
        if found is not None:
            differs = difference(facts, found.facts)
            draft.declaration(facts, {"seed": 0}, late=False).check_same(found, budget.name, differs)
            return found
    return None


def checked_before(name: str, dataset: str, budgets: Sequence[Budget], how: str) -> str:
    """Say that P was checked for a catalogue of this name, by the ledgers; an empty string if not."""
    about = ("check", f"{name}.check_fit", dataset)
    rows = [row for each in budgets for row in each.ledger.history(each.name)]
    found = [row for row in rows if (row["purpose"], row["function"], row["dataset"]) == about]
    if not found:
        return ""
    epsilon = f"epsilon={found[0]['epsilon']:g}"
    return f"""P was checked for the catalogue {name!r} before, for {epsilon}, {how}. What is declared must
        have been chosen before the check, and is widened by it. With the same questions call
        check_fit({epsilon}), which is free now, and then calibrate(). For other questions, or if that check
        found no factor, make a catalogue with another name."""


# The same code under another name of its module is other code: nobody could tell the two apart later.
_MODULE = (
    "or the name of its module (in a script or a notebook that is __main__: put the questions into a module "
    "that you import, under the same name everywhere)"
)


def difference(facts: dict[str, Any], known: dict[str, Any]) -> str:
    """Say what is different from what was known before."""
    for name, words in (
        ("gamma", "gamma is"),
        ("plan", "plan is"),
        ("caps", "own caps, epsilon= and delta=, are"),
    ):
        if known[name] != facts[name]:
            return f"its {words} {known[name]}, not {facts[name]}"
    before = {each["label"]: each for each in known["members"]}
    now = {each["label"]: each for each in facts["members"]}
    if now.keys() != before.keys():
        return _others(list(now), list(before))
    changed = [label for label in now if now[label] != before[label]]
    if len(changed) == len(now) > 1:
        return f"""all of its questions are different now: P ({known["P"]}), the data's container, the
            version of a library, {_MODULE}"""
    if not changed:
        return "its questions were in another order"
    return f"""{", ".join(changed)} {"is" if len(changed) == 1 else "are"} different now: code, a global that
        it reads, an option, the version of a library that it uses, {_MODULE}"""


def _others(now: list[str], before: list[str]) -> str:
    """Say which questions are new, and which are missing."""
    new, gone = [each for each in now if each not in before], [each for each in before if each not in now]
    return " and ".join(
        f"{', '.join(each)} {'was' if len(each) == 1 else 'were'} {words}"
        for each, words in ((new, "not in it"), (gone, "in it, and not now"))
        if each
    )
