"""The sections of a page about a catalogue: its promise and questions, what was asked and what is left."""

import html
import math
from collections.abc import Mapping
from typing import Any

from privatize.calibration.fit import Fit
from privatize.display.cards import grid, table
from privatize.display.figures import counted, figure
from privatize.function.catalogue_facts import LEARNED, left_of
from privatize.planning.groups import for_whom
from privatize.reports import distribution

_QUESTIONS = ("question", "promise", "mechanism", "sensitivity", "asked")
_ASKED = ("when", "question", "promise", *(f"{name} charged" for name in ("epsilon", "delta", "gamma")))
_AMOUNTS = ("{epsilon:g}", "{delta:g}", "{gamma:.4g}")
_GIVEN = "given the sampled answers before it"
_MOST = 50  # charges that are listed


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
    same = any(each["question"] == LEARNED for each in facts["charges"])
    law = "" if sampler is None else distribution.section(sampler, same)
    return (
        f"<h1>The promise of the catalogue <code>{html.escape(facts['name'])}</code></h1>"
        f"<p class='lead'>{count}, in any order and as often as the budget allows: all answers together keep "
        f"to the caps of epsilon (ε) and delta (δ) below, on all pairs of neighbouring datasets{but}.</p>"
        f"{_caps(facts)}<p class='note'>{state}</p>{may_fail}{table([row for row in rows if row[1]])}{law}"
    )


def _caps(facts: Mapping[str, Any]) -> str:
    """Say what the caps of each budget are, and what its total promises."""
    parts = []
    for each in facts["budgets"]:
        epsilon = each["caps"]["epsilon"]
        factor = f" (a factor of {figure(math.exp(epsilon), 2)})" if epsilon < 700 else ""
        others = [f"{name} = {cap:g}" for name, cap in each["caps"].items() if cap and name != "epsilon"]
        caps = ", ".join([f"epsilon = {epsilon:g}{factor}", *others])
        of = f" of the budget {each['name']}" if len(facts["budgets"]) > 1 else ""
        said = f"Its statement: {each['statement']}."
        parts.append(f"<p>{html.escape(f'Caps{of}: {caps}. {said}')}</p>")
    return "".join(parts)


def _questions(facts: Mapping[str, Any]) -> str:
    rows = []
    given = {each["question"] for each in facts["charges"] if _GIVEN in each["promise"]}
    for each in facts["questions"]:
        moved = "" if each["sensitivity"] is None else figure(each["sensitivity"])
        promise = each["promise"] + (f", {_GIVEN}" if each["question"] in given else "")
        rows.append([each["question"], promise, each["mechanism"], moved, str(each["asked"])])
    return f"<h2>Its questions</h2>{grid(_QUESTIONS, rows)}"


def _fit(facts: Mapping[str, Any]) -> str:
    if not facts["fit"]:
        return "<h2>Was P checked?</h2><p>Not on the people themselves: check_fit(epsilon=...) does it.</p>"
    card = Fit.of_facts(facts["fit"]).card()
    return f"<h2>Was P checked?</h2><div><b>{html.escape(card.title)}</b></div>{card.section()}"


def _asked(facts: Mapping[str, Any]) -> str:
    """List every charge of every budget, also of learn() and check_fit(): they add up to what is spent."""
    parts = []
    for budget in facts["budgets"]:
        charges = [each for each in facts["charges"] if each["budget"] == budget["name"]]
        last = charges[-_MOST:]
        rows = [
            [each["at"][:16].replace("T", " "), each["question"], each["promise"]]
            + [form.format(**each) for form in _AMOUNTS]
            for each in last
        ]
        many = len(charges)
        cut = f"<p class='note'>The last {len(last)} of {many:,}.</p>" if many > len(last) else ""
        name = f"<h3>{html.escape(budget['name'])}</h3>" if len(facts["budgets"]) > 1 else ""
        parts.append(f"{name}{grid(_ASKED, rows) if rows else '<p>Nothing yet.</p>'}{cut}")
    return f"<h2>What was asked</h2>{''.join(parts)}"


def _left(facts: Mapping[str, Any]) -> str:
    rows = [(each["name"], left_of(each)) for each in facts["budgets"]]
    return f"<h2>What is left</h2>{table(rows)}"
