"""`privatize catalogue`: show, calibrate and ask questions that were declared together."""

import argparse
import time
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from privatize.budgets.sealed import Sealed
from privatize.cli.calls import REPORT, SET, check_file, settings_of
from privatize.cli.command import Argument, Command, Outcome, command
from privatize.cli.importing import find
from privatize.cli.showing import columns, labelled
from privatize.display.figures import duration, figure
from privatize.errors import SettingsError
from privatize.function.catalogue import Catalogue
from privatize.function.catalogue_facts import left_of, rows_of
from privatize.function.standing import Standing, standing_of
from privatize.reports.page import report

_NAMED = "a catalogue: app.survey:questions, or app/survey.py:questions"
_NAME = Argument("catalogue", metavar="module:catalogue", help=_NAMED)
_LATE = "declare it after answers about these people: it is recorded as such, and is not in the total"
_DATA = "sealed data, if the catalogue has only its public facts (may be repeated, for aligned parts)"


# --- show ------------------------------------------------------------------------------------------


@command("show", _NAME, REPORT)
def show(given: argparse.Namespace) -> Outcome:
    """Show the questions of a catalogue, their promise, what was asked and what is left.

    privatize catalogue show app.survey:questions --report questions.html
    """
    check_file(given.report)
    name, catalogue = find(given.catalogue, Catalogue)
    standing = standing_of(catalogue)
    if standing.declared and standing.remembered:
        catalogue.calibrate()  # only recalls the estimates
    facts = _facts(name, catalogue, standing)
    if given.report:
        facts["report"] = str(report(catalogue).save(given.report))
    problems = (standing.problem,) if standing.problem else ()
    return Outcome(_text(facts), facts, 1 if problems else 0, problems)


def _facts(name: str, catalogue: Catalogue, standing: Standing) -> dict[str, Any]:
    return {"catalogue": name} | catalogue.facts() | asdict(standing)


def state(facts: Mapping[str, Any]) -> str:
    """Say how far a catalogue is, as the ledger and the store have it."""
    if not facts["declared"]:
        return "not declared yet"
    late = " after answers, so it is not in the total" if facts["late"] else ""
    return f"declared{late}; its estimates are {'' if facts['remembered'] else 'NOT '}remembered"


def _text(facts: dict[str, Any]) -> str:
    rows: dict[str, str | list[str]] = {"catalogue": f"{facts['name']} ({facts['catalogue']})"}
    rows |= {"state": state(facts), **dict(rows_of(facts))}
    rows |= {"left": _left(facts), "report": facts.get("report", "")}
    table = [("question", "sensitivity", "asked", "holds for")]
    for each in facts["questions"]:
        moved = "-" if each["sensitivity"] is None else figure(each["sensitivity"])
        whom = "sampled pairs" if each["sampled"] else "all pairs"
        table.append((each["question"], moved, str(each["asked"]), whom))
    return f"{labelled(rows)}\n{columns(table, right=(1, 2))}"


def _left(facts: dict[str, Any]) -> list[str]:
    """Return what is left of each budget."""
    return [f"{left_of(each)} in {each['name']}" for each in facts["budgets"]]


# --- calibrate -------------------------------------------------------------------------------------


@command(
    "calibrate",
    _NAME,
    Argument("--late", action="store_true", help=_LATE),
    interrupted="; what is declared stays so, and the same command goes on from here",
)
def calibrate(given: argparse.Namespace) -> Outcome:
    """Declare the questions of a catalogue, which charges gamma once, and calibrate them together.

    privatize catalogue calibrate app.survey:questions
    """
    name, catalogue = find(given.catalogue, Catalogue)
    before, start = standing_of(catalogue), time.perf_counter()
    catalogue.calibrate(late=given.late)
    facts = _facts(name, catalogue, standing_of(catalogue))
    facts |= {"new": not before.declared, "seconds": round(time.perf_counter() - start, 3)}
    known = "recalled" if before.remembered else f"calibrated in {duration(facts['seconds'])}"
    first = f"{'declared now' if facts['new'] else 'declared before'}, {known}"
    lost = "the estimates are not remembered, so every process will make them again, with the same seed"
    problems = () if facts["remembered"] else (lost,)
    return Outcome(f"{first}\n{_text(facts)}", facts, 2 if problems else 0, problems)


# --- ask -------------------------------------------------------------------------------------------


@command(
    "ask",
    _NAME,
    Argument("member", metavar="NAME", help="a function of the catalogue"),
    SET,
    Argument("--epsilon", type=float, required=True, help="what is charged for this answer"),
    Argument("--delta", type=float, default=0.0, help="for mechanisms that need it (default: 0)"),
    Argument("--data", action="append", default=[], metavar="module:data", help=_DATA),
)
def ask(given: argparse.Namespace) -> Outcome:
    """Ask a question of a declared catalogue, charge epsilon for it, and print the private answer.

    privatize catalogue ask app.survey:questions share_above --set limit=40000 --epsilon 0.1
    """
    arguments = settings_of(given.set)
    if clash := {"epsilon", "delta"} & set(arguments):
        raise SettingsError(f"--set {clash.pop()}=... is no argument of a question: pass it as an option.")
    name, catalogue = find(given.catalogue, Catalogue)
    parts = tuple(find(each, Sealed)[1] for each in given.data)
    member = catalogue[given.member]
    label = member.inquiry.grid.choose(arguments).label
    standing = standing_of(catalogue)
    if standing.problem:
        raise SettingsError(standing.problem)
    if not standing.declared:
        raise SettingsError(f"""The catalogue {catalogue.name!r} is not declared, and an answer may be seen
            only after all of its questions are fixed. Run: privatize catalogue calibrate {name}""")
    catalogue.calibrate()  # finds what was declared, and recalls the estimates
    data = (parts if len(parts) > 1 else parts[0],) if parts else ()
    release = member.release(*data, epsilon=given.epsilon, delta=given.delta, **arguments)
    facts = {each.name: getattr(release, each.name) for each in fields(release)}
    facts |= {"catalogue": name, "name": catalogue.name, "question": label}
    facts["budgets"] = catalogue.facts()["budgets"]
    card = release.card()
    rows = [*card.rows, *(("left", line) for line in _left(facts))]
    return Outcome(replace(card, title=f"{label}\n{release.value}", rows=rows).text(), facts)


_ABOUT = "Show, calibrate and ask catalogues: declared questions.\n\nprivatize catalogue show"
GROUP = Command("catalogue", _ABOUT, actions=(show, calibrate, ask))
