"""What a catalogue is, what was asked and what is left: as JSON for reports, and as a card."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from privatize.budgets.catalogues import LATE
from privatize.calibration.fit import Fit
from privatize.display.cards import Card, Rows
from privatize.display.figures import counted, figure
from privatize.errors import PrivatizeError
from privatize.function.catalogue_state import Phase, State
from privatize.function.grid import Choice
from privatize.function.inquiry import Inquiry

_MOST = 12  # questions that a card shows


LEARNED = "learn()"  # of the people themselves
_PURPOSES = {"learning": LEARNED, "check": "check_fit()", "catalogue": "(the catalogue is declared)"}


def _labels(state: State) -> dict[str, str]:
    """Return the labels of all questions, by their names in the ledger."""
    return {f"{state.name}.{label}": label for member in state.members.values() for label in member.questions}


def asked_of(state: State) -> list[dict[str, Any]]:
    """Return what was asked, the oldest first, from the ledger."""
    labels = _labels(state)
    first = state.budgets[0]
    return [
        {"question": labels[row["function"]]} | {name: row[name] for name in ("epsilon", "delta", "at")}
        for row in first.ledger.history(first.name)
        if row["function"] in labels and row["dataset"] == state.whom.dataset
    ]


def charges_of(state: State) -> list[dict[str, Any]]:
    """Return all that was charged to each budget, the oldest first: it adds up to what is spent."""
    labels, own, found = _labels(state), state.whom.dataset, []
    for budget in state.budgets:
        for row in budget.ledger.history(budget.name):
            about = f" about {row['dataset'] or 'unsealed data'}" if row["dataset"] != own else ""
            what = _PURPOSES.get(row["purpose"]) or labels.get(row["function"], row["function"])
            promise = row["promise"].partition(", of ")[0]  # without the name of the catalogue
            found.append({"budget": budget.name, "question": f"{what}{about}", "promise": promise})
            found[-1] |= {name: row[name] for name in ("epsilon", "delta", "at")} | {"gamma": row["charged"]}
    return found


def phase_of(state: State) -> str:
    """Say how far a catalogue is in this process, and if the ledger has more of it."""
    if state.phase is Phase.ADDING:
        with contextlib.suppress(PrivatizeError):
            if any(each.declared(state.name) for each in state.budgets):
                return "the ledger has it as declared: call calibrate() to go on from there"
    return state.phase.value


def facts_of(state: State) -> dict[str, Any]:
    """Return everything that a report has about a catalogue, as JSON. All of it is public."""
    declared, asked, settings = state.declared, asked_of(state), state.settings
    questions = (_questions(state, each.inquiry, asked) for each in state.members.values())
    return {
        "name": state.name,
        "people": state.whom.dataset,
        "n": state.whom.n,
        "phase": phase_of(state),
        "declared": declared is not None,
        "late": declared is not None and declared.late,
        "gamma": settings.gamma,
        "P": repr(settings.sampler) if settings.sampler is not None else "",
        "fit": None if state.fit is None else state.fit.facts(),
        "questions": [question for each in questions for question in each],
        "budgets": [
            {
                "name": budget.name,
                "caps": {each: float(getattr(budget.cap, each)) for each in ("epsilon", "delta", "gamma")},
                "left": budget.remaining._asdict(),
                "statement": budget.statement,
            }
            for budget in state.budgets
        ],
        "asked": asked,
        "charges": charges_of(state),
    }


def _questions(state: State, inquiry: Inquiry, asked: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what is public about each question of a member."""
    return [
        {
            "question": choice.label,
            "member": inquiry.name,
            **inquiry.in_words,
            "sensitivity": _sensitivity(state, inquiry, choice),
            "asked": sum(each["question"] == choice.label for each in asked),
        }
        for choice in inquiry.choices
    ]


def _sensitivity(state: State, inquiry: Inquiry, choice: Choice) -> float | None:
    """Return what the noise is calibrated to; None before that is known, or if it is no longer the same."""
    if state.phase is not Phase.DECLARED:
        return None
    with contextlib.suppress(PrivatizeError):
        return float(state.sensitivity_of(inquiry, choice).value)
    return None


def left_of(budget: Mapping[str, Any]) -> str:
    """Say what is left of the caps of a budget."""
    caps, left = budget["caps"], budget["left"]
    return ", ".join(f"{name}={left[name]:.4g} of {cap:g}" for name, cap in caps.items() if cap)


def rows_of(facts: Mapping[str, Any]) -> Rows:
    """Return whom a catalogue is about, what it promises, P, and what a check of P has found."""
    sampled = any(each["sampled"] for each in facts["questions"])
    but = f" but gamma={facts['gamma']:g} of those under P, for all sampled questions together"
    rows = [
        ("people", f"{facts['people']}, n={facts['n']:,}"),
        ("promise", f"for all pairs of neighbours{but if sampled else ''}"),
        ("P", facts["P"]),
        ("estimates are", Fit.of_facts(facts["fit"]).words if facts["fit"] else ""),
    ]
    return [row for row in rows if row[1]]


def card_of(facts: Mapping[str, Any]) -> Card:
    """Return the facts as a card."""
    asked, questions = facts["asked"], facts["questions"]
    late = f"; {LATE}" if facts["late"] else ""
    rows = [("phase", facts["phase"] + late), *rows_of(facts)]
    for question in questions[:_MOST]:
        known = question["sensitivity"]
        moved = f"sensitivity {figure(known)}, " if known else ""
        words = "sampled" if question["sampled"] else "for all pairs"
        rows.append((question["question"], f"{moved}{words}, asked {counted(question['asked'], 'time')}"))
    if len(questions) > _MOST:
        rows.append(("", f"and {len(questions) - _MOST} more questions"))
    rows += [(f"left of {budget['name']}", left_of(budget)) for budget in facts["budgets"]]
    return Card(f"catalogue {facts['name']}", rows, note=f"{counted(len(asked), 'answer')} so far")
