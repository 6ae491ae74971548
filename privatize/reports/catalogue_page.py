"""The sections of a page about a catalogue: its promise and questions, what was asked and what is left."""

import html
from collections.abc import Mapping
from typing import Any

from privatize.calibration.fit import Fit
from privatize.display.cards import grid, table
from privatize.display.figures import counted, figure
from privatize.function.catalogue_facts import left_of
from privatize.planning.groups import for_whom
from privatize.reports import distribution

_QUESTIONS = ("question", "promise", "mechanism", "sensitivity", "asked")
_ASKED = ("when", "question", "epsilon charged", "delta charged")
_MOST = 50  # answers that are listed


def sections(facts: Mapping[str, Any], sampler: Any = None) -> str:
    """Return all sections, made from `Catalogue.facts` and P; without P, they have its code."""
    parts = [_promise(facts, sampler), _questions(facts), _fit(facts), _asked(facts), _left(facts)]
    return "".join(parts)


def _promise(facts: Mapping[str, Any], sampler: Any) -> str:
    gamma = facts["gamma"]
    count = counted(len(facts["questions"]), "question")
    sampled = any(each["sampled"] for each in facts["questions"])
    share = f" but a share of {gamma:g} (gamma, γ) of those under P, one gamma for all of them"
    but = share if sampled else ""
    state = "It is not declared here yet: calibrate() declares it, or finds it in the ledger."
    if facts["late"]:
        state = (
            "It was declared after answers about these people, which may have decided its questions. So it "
            "is not in the total of its budgets, and the promise holds only if they did not."
        )
    elif facts["declared"]:
        state = (
            "Its questions were fixed before the first answer about these people: only learn(), check_fit() "
            "and changed() may have come before."
        )
    may_fail = f"<p>It may fail for {html.escape(for_whom(gamma, facts['n']))}.</p>" if sampled else ""
    rows = [("people", f"{facts['people']}, n={facts['n']:,}"), ("phase", facts["phase"])]
    rows += [("P", facts["P"])] if sampler is None else []
    law = "" if sampler is None else distribution.section(sampler)
    return (
        f"<h1>The promise of the catalogue <code>{html.escape(facts['name'])}</code></h1>"
        f"<p class='lead'>{count}, in any order and as often as the budget allows: all answers together keep "
        f"to the caps of epsilon (ε) and delta (δ) below, on all pairs of neighbouring datasets{but}.</p>"
        f"<p class='note'>{state}</p>{may_fail}{table([row for row in rows if row[1]])}{law}"
    )


def _questions(facts: Mapping[str, Any]) -> str:
    rows = []
    for each in facts["questions"]:
        moved = "" if each["sensitivity"] is None else figure(each["sensitivity"])
        rows.append([each["question"], each["promise"], each["mechanism"], moved, str(each["asked"])])
    return f"<h2>Its questions</h2>{grid(_QUESTIONS, rows)}"


def _fit(facts: Mapping[str, Any]) -> str:
    if not facts["fit"]:
        return "<h2>Was P checked?</h2><p>Not on the people themselves: check_fit(epsilon=...) does it.</p>"
    card = Fit.of_facts(facts["fit"]).card()
    return f"<h2>Was P checked?</h2><div><b>{html.escape(card.title)}</b></div>{card.section()}"


def _asked(facts: Mapping[str, Any]) -> str:
    last = facts["asked"][-_MOST:]
    rows = [
        [each["at"][:16].replace("T", " "), each["question"], f"{each['epsilon']:g}", f"{each['delta']:g}"]
        for each in last
    ]
    many = len(facts["asked"])
    cut = f"<p class='note'>The last {len(last)} of {many:,}.</p>" if many > len(last) else ""
    return f"<h2>What was asked</h2>{grid(_ASKED, rows) if rows else '<p>Nothing yet.</p>'}{cut}"


def _left(facts: Mapping[str, Any]) -> str:
    rows = [(each["name"], left_of(each)) for each in facts["budgets"]]
    return f"<h2>What is left</h2>{table(rows)}"
