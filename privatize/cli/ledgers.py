"""`privatize ledger`: budgets, what was spent from them, and whether it adds up. Reads only."""

import argparse
import contextlib
import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privatize.budgets.budget import Budget
from privatize.budgets.ledger import Ledger
from privatize.budgets.terms import Terms
from privatize.cli.command import Argument, Command, Outcome, command
from privatize.cli.reading import NotThere, reading
from privatize.cli.showing import as_json, columns, hide, one_line, place, visible
from privatize.config.policy import policy
from privatize.display.figures import counted
from privatize.errors import LedgerError, PrivatizeError, SettingsError
from privatize.storage.places import checked_place

_SYMBOLS = ("epsilon", "delta", "gamma")
_WHERE = "a path, sqlite:///... or postgresql://... (default: PRIVATIZE_LEDGER, or the policy's)"
_LEDGER = Argument("--ledger", metavar="URL", help=_WHERE)


def whereabouts(given: str | None) -> str | None:
    """Return where budgets are kept, unless in memory: where budgets look, unless told otherwise."""
    found, source = given or os.environ.get("PRIVATIZE_LEDGER"), "PRIVATIZE_LEDGER"
    if found is None:
        found, source = policy().ledger, "The ledger of the policy"
    hide(str(found))
    if found is not None:
        checked_place(found, source)  # or refused
    return None if found is None or found == "memory" else str(found)


@contextlib.contextmanager
def _reading(given: argparse.Namespace, missing: type[Exception], what: str) -> Iterator[Ledger]:
    """Open the ledger that was named; raise this error where there is none."""
    url = whereabouts(given.ledger)
    if url is None:
        raise SettingsError(
            "No ledger is named. Pass --ledger FILE-OR-URL, set PRIVATIZE_LEDGER, or put "
            'ledger = "..." into [tool.privatize].'
        )
    try:
        with reading(Ledger, url, "budgets", "a ledger") as ledger:
            yield ledger
    except NotThere:
        raise missing(f"{what}: {_nothing(given)}.") from None


def _place(given: argparse.Namespace) -> str:
    return place(whereabouts(given.ledger) or "")


def _nothing(given: argparse.Namespace) -> str:
    return f"no budget has been begun in {_place(given)}"


def _begun(ledger: Ledger, names: list[str]) -> list[Terms]:
    known = {each.name: each for each in ledger.begun()}
    for name in names:
        if name not in known:
            listed = ", ".join(map(repr, known)) or "none"
            raise SettingsError(f"There is no budget {name!r} in {ledger.url}. There are: {listed}.")
    return [known[name] for name in dict.fromkeys(names or known)]


def _amounts(amount: Any) -> dict[str, float]:
    return {symbol: float(getattr(amount, symbol)) for symbol in _SYMBOLS}


def _summary(ledger: Ledger, begun: Terms) -> dict[str, Any]:
    """Return a budget for programs: its caps, what was spent and what is left."""
    facts: dict[str, Any] = {"name": begun.name, "composition": begun.composition, "created": begun.created}
    facts |= {"charges": begun.charges, "cap": _amounts(begun.cap)}
    try:
        budget = Budget.begun(begun.name, ledger)
        spent = budget.spent
        facts |= {"spent": _amounts(spent), "left": _amounts(budget.remaining), "note": spent.note}
        facts |= {"average_gamma": budget.average_gamma, "statement": budget.statement}
    except PrivatizeError as error:
        facts |= {"spent": None, "left": None, "problem": one_line(error)}
    return facts


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
    facts: dict[str, Any] = {"ledger": _place(given), "budgets": []}
    if given.name is not None:
        with _reading(given, SettingsError, f"There is no budget {given.name!r}") as ledger:
            (begun,) = _begun(ledger, [given.name])
            budget, history = _summary(ledger, begun), ledger.history(given.name)
        facts = {"ledger": facts["ledger"]} | budget | {"history": history}
        text, problems = _history(budget, history), _problems([budget])
        return Outcome(text, facts, 1 if problems else 0, problems)
    with contextlib.suppress(NotThere), _reading(given, NotThere, "") as ledger:
        facts["budgets"] = [_summary(ledger, begun) for begun in _begun(ledger, [])]
    budgets = facts["budgets"]
    if not budgets:
        return Outcome(_nothing(given), facts)
    text = f"{_table(budgets)}\n{_notes(budgets)}{counted(len(budgets), 'budget')} in {facts['ledger']}"
    return Outcome(text, facts, 1 if _problems(budgets) else 0, _problems(budgets))


def _table(budgets: list[dict[str, Any]]) -> str:
    symbols = [s for s in _SYMBOLS if s != "delta" or any(each["cap"]["delta"] for each in budgets)]
    rows = [("budget", "charges", *(f"{s} spent" for s in symbols), "composition", "begun")]
    for each in budgets:
        spent = [_spent(each, symbol) for symbol in symbols]
        day = each["created"].partition("T")[0]
        rows.append((each["name"], str(each["charges"]), *spent, each["composition"], day))
    return columns(rows, right=range(1, 2 + len(symbols)))


def _spent(budget: dict[str, Any], symbol: str) -> str:
    if budget["left"] is None:
        return f"? of {budget['cap'][symbol]:g}"
    return f"{budget['spent'][symbol]:.4g} of {budget['cap'][symbol]:g}, {budget['left'][symbol]:.4g} left"


def _history(budget: dict[str, Any], history: list[dict[str, Any]]) -> str:
    symbols = [s for s in _SYMBOLS if s != "delta" or budget["cap"]["delta"]]
    head = f"budget {visible(budget['name'])}, begun {budget['created']}, composition {budget['composition']}"
    rows = [("", *symbols)]
    for name in ("cap", "spent", "left"):
        known = budget[name]
        rows.append((name, *("?" if known is None else f"{known[s]:.6g}" for s in symbols)))
    lines = [head, columns(rows, right=range(1, 4), indent="  ")]
    if not history:
        return "\n".join([*lines, "no charges yet"])
    lines += [f"in all {budget['statement']}"] if "statement" in budget else []
    return "\n".join([*lines, _charges(history, symbols)])


def _charges(history: list[dict[str, Any]], symbols: list[str]) -> str:
    """Return every charge as a line, with what is unusual about any of them."""
    usual = {"strength": "sampled", "purpose": "answer", "part": "", "who": ""}
    wide = [name for name, value in usual.items() if any(row[name] != value for row in history)]
    names = ["number", "at", "function", "dataset", "n", "mechanism", *symbols, *wide]
    table = [["no.", "at (UTC)", *names[2:]]]
    table += [[_cell(row, name) for name in names] for row in history]
    right = [at for at, name in enumerate(names) if name in ("number", "n", *_SYMBOLS)]
    return columns(table, right=right)


def _cell(row: dict[str, Any], name: str) -> str:
    """Return what a charge has under this name, as a person reads it."""
    value = row["charged" if name == "gamma" else name]
    if name == "at":
        return str(value).replace("T", " ").removesuffix("Z")
    if name == "part" and value:
        return f"{row['partition']}: {value}"
    if name == "dataset":
        return value or "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# --- verify ----------------------------------------------------------------------------------------


@command("verify", _LEDGER, Argument("names", nargs="*", metavar="NAME", help="budgets (default: all)"))
def verify(given: argparse.Namespace) -> Outcome:
    """Compute from every charge what was spent, and compare it with what the ledger says.

    privatize ledger verify --ledger ledger.db
    """
    with _reading(given, LedgerError, "There is no ledger to verify") as ledger:
        checked = [_verified(ledger, begun) for begun in _begun(ledger, given.names)]
    if not checked:
        raise LedgerError(f"There is no budget to verify: {_nothing(given)}.")
    problems = _problems(checked)
    facts = {"ledger": _place(given), "holds": not problems, "budgets": checked}
    rows = []
    for each in checked:
        charges = counted(each["charges"], "charge") + (" " if each["charges"] == 1 else "")
        damaged = "problem" in each
        total = "" if damaged else f"add up to {_sum(each['spent'])}"
        rows.append(("DAMAGED" if damaged else "ok", each["name"], charges, total))
    text = f"{columns(rows, right=(2,))}\n{_notes(checked)}".rstrip("\n")
    return Outcome(text, facts, 1 if problems else 0, problems)


def _verified(ledger: Ledger, begun: Terms) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": begun.name, "charges": begun.charges}
    try:
        spent = Budget.begun(begun.name, ledger).verify()
        return facts | {"spent": _amounts(spent), "note": spent.note}
    except LedgerError as error:
        return facts | {"spent": None, "problem": one_line(error)}


def _sum(spent: dict[str, float]) -> str:
    return ", ".join(f"{name}={amount:.6g}" for name, amount in spent.items() if name != "delta" or amount)


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
    with _reading(given, LedgerError, "There is nothing to export") as ledger:
        found = _begun(ledger, [] if given.name is None else [given.name])
        budgets = [_summary(ledger, begun) | {"history": ledger.history(begun.name)} for begun in found]
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
        *("unit", "average_gamma", "average_charged"),
    )
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["budget", *names])
    for budget in budgets:
        for row in budget["history"]:
            cells = [" ".join(row[name]) if name == "declared" else row[name] for name in names]
            writer.writerow([budget["name"], *cells])
    return text.getvalue()


GROUP = Command(
    "ledger",
    "Show, verify and export budgets and what was spent.\n\nprivatize ledger show",
    actions=(show, verify, export),
)
