"""`privatize ledger`: budgets, what was spent from them, and whether it adds up. Reads only."""

import argparse
import contextlib
import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from privatize.budgets.budget import Budget
from privatize.budgets.catalogues import LATE, Declaration
from privatize.budgets.charges import in_words
from privatize.budgets.ledger import Ledger
from privatize.budgets.terms import Terms
from privatize.cli.command import Argument, Command, Outcome, command
from privatize.cli.reading import NotThere, reading
from privatize.cli.showing import as_json, columns, hide, moment, one_line, place, visible
from privatize.display.figures import counted
from privatize.errors import LedgerError, PrivatizeError, SettingsError
from privatize.storage.places import ledger_place

_SYMBOLS = ("epsilon", "delta", "gamma")
_WHERE = "a path, sqlite:///... or postgresql://... (default: PRIVATIZE_LEDGER, or the policy's)"
_LEDGER = Argument("--ledger", metavar="URL", help=_WHERE)


def whereabouts(given: str | None) -> str | None:
    """Return where the ledger is, by default the one that `Budget` uses; None if it is in memory."""
    found = ledger_place(given or None, "--ledger")
    hide(found or "")
    return None if found == "memory" else found


def _place(given: argparse.Namespace) -> str:
    return place(whereabouts(given.ledger) or "")


def _nothing(given: argparse.Namespace) -> str:
    return f"no budget has been opened in {_place(given)}"


def _budgets(
    given: argparse.Namespace, names: list[str], facts_of: Callable[[Ledger, Terms], dict[str, Any]]
) -> list[dict[str, Any]] | None:
    """Return facts about the budgets with these names, or about all; None if there is no ledger."""
    url = whereabouts(given.ledger)
    if url is None:
        raise SettingsError("""No ledger is named. Pass --ledger FILE-OR-URL, set PRIVATIZE_LEDGER, or put
            ledger = "..." into [tool.privatize].""")
    with contextlib.suppress(NotThere), reading(Ledger, url, "budgets", "a ledger") as ledger:
        known = {each.name: each for each in ledger.budgets()}
        for name in names:
            if name not in known:
                listed = ", ".join(map(repr, known)) or "none"
                raise SettingsError(f"There is no budget {name!r} in {ledger.url}. There are: {listed}.")
        return [facts_of(ledger, known[name]) for name in dict.fromkeys(names or known)]
    if names:
        raise SettingsError(f"There is no budget {names[0]!r}: {_nothing(given)}.")
    return None


def _amounts(amount: Any) -> dict[str, float]:
    return {symbol: float(getattr(amount, symbol)) for symbol in _SYMBOLS}


def _summary(ledger: Ledger, terms: Terms) -> dict[str, Any]:
    """Return facts about a budget for JSON: its caps, what was spent and what is left."""
    facts: dict[str, Any] = {"name": terms.name, "composition": terms.composition, "created": terms.created}
    facts |= {"charges": terms.charges, "cap": _amounts(terms.cap)}
    try:
        budget = Budget.begun(terms.name, ledger)
        spent = budget.spent
        facts |= {"spent": _amounts(spent), "left": _amounts(budget.remaining), "note": spent.note}
        facts |= {"average_gamma": budget.average_gamma, "plain": _amounts(budget.plain)}
        facts |= {"statement": budget.statement, "catalogues": list(map(_catalogue, budget.catalogues()))}
    except PrivatizeError as error:
        facts |= {"spent": None, "left": None, "problem": one_line(error)}
    return facts


def _catalogue(declared: Declaration) -> dict[str, Any]:
    """Return facts about a catalogue for JSON."""
    content = declared.facts
    facts = {each: getattr(declared, each) for each in ("name", "dataset", "n", "late")}
    questions = [each["label"] for each in content.get("members", ())]
    return facts | {"gamma": content.get("gamma"), "questions": questions}


def _with_history(ledger: Ledger, terms: Terms) -> dict[str, Any]:
    return _summary(ledger, terms) | {"history": ledger.history(terms.name)}


def _problems(budgets: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(f"{each['name']}: {each['problem']}" for each in budgets if "problem" in each)


def _notes(budgets: list[dict[str, Any]]) -> str:
    """Return what could not be checked about the totals, one line for each budget."""
    return "".join(f"{visible(each['name'])}: {each['note']}\n" for each in budgets if each.get("note"))


# --- show ------------------------------------------------------------------------------------------


@command("show", _LEDGER, Argument("name", nargs="?", metavar="NAME", help="a budget"))
def show(given: argparse.Namespace) -> Outcome:
    """Show all budgets, or the history of one.

    privatize ledger show
    privatize ledger show survey-2026 --ledger ledger.db
    """
    if given.name is not None:
        (budget,) = _budgets(given, [given.name], _with_history) or []
        problems = _problems([budget])
        return Outcome(_history(budget), {"ledger": _place(given)} | budget, 1 if problems else 0, problems)
    budgets = _budgets(given, [], _summary) or []
    facts, problems = {"ledger": _place(given), "budgets": budgets}, _problems(budgets)
    if not budgets:
        return Outcome(_nothing(given), facts)
    text = f"{_table(budgets)}\n{_notes(budgets)}{counted(len(budgets), 'budget')} in {_place(given)}"
    return Outcome(text, facts, 1 if problems else 0, problems)


def _table(budgets: list[dict[str, Any]]) -> str:
    symbols = [s for s in _SYMBOLS if s == "epsilon" or any(each["cap"][s] for each in budgets)]
    rows = [("budget", "charges", *(f"{s} spent" for s in symbols), "composition", "opened")]
    for each in budgets:
        spent = [_spent(each, symbol) for symbol in symbols]
        day = each["created"].partition("T")[0]
        rows.append((each["name"], str(each["charges"]), *spent, each["composition"], day))
    return columns(rows, right=range(1, 2 + len(symbols)))


def _spent(budget: dict[str, Any], symbol: str) -> str:
    if budget["left"] is None:
        return f"? of {budget['cap'][symbol]:g}"
    return f"{budget['spent'][symbol]:.4g} of {budget['cap'][symbol]:g}, {budget['left'][symbol]:.4g} left"


def _history(budget: dict[str, Any]) -> str:
    symbols = [s for s in _SYMBOLS if s == "epsilon" or budget["cap"][s]]
    top = f"budget {visible(budget['name'])}, opened {budget['created']}, composition {budget['composition']}"
    rows = [("", *symbols)]
    for name in ("cap", "spent", "left"):
        known = budget[name]
        rows.append((name, *("?" if known is None else f"{known[s]:.6g}" for s in symbols)))
    lines = [top, columns(rows, right=range(1, 4), indent="  ")]
    if not budget["history"]:
        return "\n".join([*lines, "no charges yet"])
    lines += [f"in all {budget['statement']}"] if "statement" in budget else []
    for each in budget.get("catalogues", ()):
        late = f", {LATE}" if each["late"] else ""
        many = counted(len(each["questions"]), "question")
        about = f"{many} about {each['dataset']}, n={each['n']:,}"
        lines.append(visible(f"catalogue {each['name']!r}: {about}{late}"))
    return "\n".join([*lines, _charges(budget["history"], symbols)])


def _charges(history: list[dict[str, Any]], symbols: list[str]) -> str:
    """Return every charge as a line, without the columns in which all charges are as usual.

    Gamma is what was charged of it: an estimate's gamma is charged once, and may be asked for often.
    """
    usual = {"purpose": "answer", "part": "", "who": "", "promise": in_words("sampled", after_sampled=False)}
    unusual = [name for name, value in usual.items() if any(row[name] != value for row in history)]
    names = ["number", "at", "function", "dataset", "n", "mechanism", *symbols, *unusual]
    table = [["no.", "at (UTC)", *(f"{name} charged" if name in symbols else name for name in names[2:])]]
    for row in history:
        shown = row | {"at": moment(row["at"]), "gamma": row["charged"], "dataset": row["dataset"] or "-"}
        shown["part"] = f"{row['partition']}: {row['part']}" if row["part"] else ""
        cells = (shown[name] for name in names)
        table.append([f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in cells])
    right = [at for at, name in enumerate(names) if name in ("number", "n", *_SYMBOLS)]
    return columns(table, right=right)


# --- verify ----------------------------------------------------------------------------------------


@command("verify", _LEDGER, Argument("names", nargs="*", metavar="NAME", help="budgets (default: all)"))
def verify(given: argparse.Namespace) -> Outcome:
    """Compute from every charge what was spent, and compare it with what the ledger says.

    privatize ledger verify --ledger ledger.db
    """
    checked = _budgets(given, given.names, _verified)
    if not checked:
        raise LedgerError(f"There is no budget to verify: {_nothing(given)}.")
    problems = _problems(checked)
    facts = {"ledger": _place(given), "holds": not problems, "budgets": checked}
    rows = []
    for each in checked:
        charges = counted(each["charges"], "charge") + (" " if each["charges"] == 1 else "")
        state, total = ("DAMAGED", "") if "problem" in each else ("ok", f"add up to {_sum(each['spent'])}")
        rows.append((state, each["name"], charges, total))
    text = f"{columns(rows, right=(2,))}\n{_notes(checked)}".rstrip("\n")
    return Outcome(text, facts, 1 if problems else 0, problems)


def _verified(ledger: Ledger, terms: Terms) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": terms.name, "charges": terms.charges}
    try:
        spent = Budget.begun(terms.name, ledger).verify()
        return facts | {"spent": _amounts(spent), "note": spent.note}
    except LedgerError as error:
        return facts | {"spent": None, "problem": one_line(error)}


def _sum(spent: dict[str, float]) -> str:
    return ", ".join(f"{name}={amount:.6g}" for name, amount in spent.items() if name == "epsilon" or amount)


# --- export ----------------------------------------------------------------------------------------


@command(
    "export",
    _LEDGER,
    Argument("name", nargs="?", metavar="NAME", help="a budget (default: all)"),
    Argument("--format", choices=("csv", "json"), default="csv", help="of the file (default: csv)"),
    Argument("-o", "--output", metavar="FILE", help="a file (default: stdout)"),
)
def export(given: argparse.Namespace) -> Outcome:
    """Write every charge as CSV or JSON.

    privatize ledger export --format csv -o charges.csv
    """
    budgets = _budgets(given, [] if given.name is None else [given.name], _with_history)
    if budgets is None:
        raise LedgerError(f"There is nothing to export: {_nothing(given)}.")
    everything = {"ledger": _place(given), "budgets": budgets}
    text = as_json(everything) + "\n" if given.format == "json" else _csv(budgets)
    if given.output is None:
        return Outcome(text.rstrip("\n"), everything)
    Path(given.output).write_text(text, encoding="utf-8", newline="")
    charges = sum(len(each["history"]) for each in budgets)
    facts = everything | {"file": given.output, "budgets": len(budgets), "charges": charges}
    many = f"{counted(charges, 'charge')} of {counted(len(budgets), 'budget')}"
    return Outcome(f"{many} written to {given.output}", facts)


def _csv(budgets: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    names = (
        *("number", "at", "function", "dataset", "n", "mechanism", "epsilon", "delta", "gamma", "charged"),
        *("partition", "part", "who", "key", "strength", "purpose", "declared", "described", "neighbours"),
        *("unit", "average_gamma", "average_charged", "promise", "catalogue"),
    )
    writer = csv.DictWriter(text, ("budget", *names), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for budget in budgets:
        for row in budget["history"]:
            writer.writerow(row | {"budget": budget["name"], "declared": " ".join(row["declared"])})
    return text.getvalue()


_ABOUT = "Show, verify and export budgets and what was spent.\n\nprivatize ledger show"
GROUP = Command("ledger", _ABOUT, actions=(show, verify, export))
