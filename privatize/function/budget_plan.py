"""The epsilon that each question of a catalogue needs for a wished error, and whether there is enough."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privatize.budgets.budget import Amount
from privatize.display.cards import Card, Printed
from privatize.display.figures import figure
from privatize.errors import SettingsError
from privatize.function.accuracy import errors_of, least_epsilon
from privatize.function.members import Member
from privatize.function.settings import TRIAL
from privatize.mechanisms.accuracy import check_confidence


@dataclass(frozen=True, repr=False)
class BudgetPlan(Printed):
    """What questions need for the errors that were wished for. Made by `privatize.Catalogue.plan_budget`.

    Attributes
    ----------
    catalogue : str
        The name of the catalogue.
    errors : dict
        The largest distance from the raw answer, by question.
    epsilons : dict
        The least epsilon for it, by question.
    deltas : dict
        The delta of each, 0 if its mechanism needs none.
    left : Amount
        What is left; of several budgets, the least.
    confidence : float
        The probability with which each number is that close.
    unknown : dict
        Why no error can be told, for questions that are left out of all this.
    """

    catalogue: str
    errors: Mapping[str, float]
    epsilons: Mapping[str, float]
    deltas: Mapping[str, float]
    left: Amount
    confidence: float = 0.95
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def epsilon(self) -> float:
        """What they need together."""
        return sum(self.epsilons.values())

    @property
    def fits(self) -> bool:
        """Whether what is left is enough to ask all of them once."""
        return self.epsilon <= self.left.epsilon and sum(self.deltas.values()) <= self.left.delta

    def _verdict(self) -> str:
        total, left = figure(self.epsilon), figure(self.left.epsilon)
        others = f", without {', '.join(self.unknown)}" if self.unknown else ""
        verdict = "it is enough" if self.fits else "NOT enough"
        return f"epsilon={total} in all{others}, of {left} left: {verdict}"

    def card(self) -> Card:
        """Return the plan as a card: a row for each question."""
        rows = []
        for label, epsilon in self.epsilons.items():
            delta = f", delta={self.deltas[label]:.3g}" if self.deltas[label] else ""
            rows.append((label, f"epsilon={figure(epsilon)}{delta} for ± {figure(self.errors[label])}"))
        rows += [(label, f"left out, no error can be told: {why}") for label, why in self.unknown.items()]
        title = f"what the catalogue {self.catalogue} needs, at {self.confidence:.0%} confidence"
        return Card(title, [*rows, ("all of them once", self._verdict())])


def planned(
    name: str,
    members: Mapping[str, Member],
    errors: Mapping[str, float],
    left: Sequence[Amount],
    confidence: float,
) -> BudgetPlan:
    """Return the least epsilon for each question; the name of a member stands for all of its questions."""
    questions = {choice.label: (each, choice) for each in members.values() for choice in each.inquiry.choices}
    wished = _wished(name, {label: each.name for label, (each, _) in questions.items()}, errors)
    least = Amount(*(min(getattr(each, symbol) for each in left) for symbol in Amount._fields))
    needing = [label for label in wished if questions[label][0].inquiry.settings.delta]
    if needing and not least.delta:
        raise SettingsError(f"""{needing[0]} needs a delta, and the budget has none left. Open a budget with
            one, or use mechanism='laplace'.""")
    deltas = {label: least.delta / len(needing) if label in needing else 0.0 for label in wished}
    confidence, epsilons, unknown = check_confidence(confidence), {}, {}
    for label, error in wished.items():
        member, choice = questions[label]
        try:
            found = member.estimate(**choice.arguments)
            at = functools.partial(_error_at, member, found, deltas[label], confidence)
            at(TRIAL["epsilon"])
        except SettingsError as refused:  # answers that are drawn, or medians of blocks
            unknown[label] = str(refused)
            continue
        epsilons[label] = least_epsilon(at, error)
    if not epsilons:
        label, why = next(iter(unknown.items()))
        raise SettingsError(f"There is nothing to plan: no error can be told. {label}: {why}")
    return BudgetPlan(name, wished, epsilons, deltas, least, confidence, unknown)


def _wished(name: str, questions: Mapping[str, str], errors: Mapping[str, float]) -> dict[str, float]:
    """Return the wished errors by question, given the member of each; refuse errors of anything else."""
    if not isinstance(errors, Mapping) or not errors:
        raise SettingsError(f"""plan_budget(errors=a {type(errors).__name__}): errors are a dict of questions
            and how far the answers may be off, such as {{"mean_income": 500}}.""")
    for each in errors:
        if each not in questions and each not in questions.values():
            raise SettingsError(f"""plan_budget(errors=...): the catalogue {name!r} has no question {each!r}.
                It has {", ".join(questions)}.""")
    # The error of a question itself counts before that of its member.
    wishes = {label: errors.get(label, errors.get(member)) for label, member in questions.items()}
    return {label: error for label, error in wishes.items() if error is not None}


def _error_at(member: Member, found: Any, delta: float, confidence: float, epsilon: float) -> Any:
    return errors_of(member.inquiry.settings_for(epsilon, delta), found, confidence)
