"""`privatize ledger`: budgets, what was spent from them, and whether it adds up. Reads only."""

from __future__ import annotations

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
from privatize.budgets.places import checked_place
from privatize.budgets.rows import Begun
from privatize.cli.reading import NotThere, reading
from privatize.cli.showing import Told, as_json, columns, hide, one_line, place, visible
from privatize.config.policy import policy
from privatize.errors import LedgerError, PrivatizeError, SettingsError

__all__ = ["exported", "shown", "verified", "whereabouts"]

_SYMBOLS = ("epsilon", "delta", "gamma")


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
def _reading(given: argparse.Namespace) -> Iterator[Ledger]:
    url = whereabouts(given.ledger)
    if url is None:
        raise SettingsError(
            "No ledger is named. Pass --ledger FILE-OR-URL, set PRIVATIZE_LEDGER, or put "
            'ledger = "..." into [tool.privatize].'
        )
    with reading(Ledger, url, "budgets", "a ledger") as ledger:
        yield ledger


def _place(given: argparse.Namespace) -> str:
    return place(whereabouts(given.ledger) or "")


def _begun(ledger: Ledger, names: list[str]) -> list[Begun]:
    known = {each.name: each for each in ledger.begun()}
    for name in names:
        if name not in known:
            listed = ", ".join(map(repr, known)) or "none"
            raise SettingsError(f"There is no budget {name!r} in {ledger.url}. There are: {listed}.")
    return [known[name] for name in dict.fromkeys(names)] if names else list(known.values())


def _amounts(amount: Any) -> dict[str, float]:
    return {symbol: float(getattr(amount, symbol)) for symbol in _SYMBOLS}


def _summary(ledger: Ledger, begun: Begun) -> dict[str, Any]:
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


# --- show ------------------------------------------------------------------------------------------


def shown(given: argparse.Namespace) -> Told:
    """Show every budget, or the history of one."""
    try:
        with _reading(given) as ledger:
            found = _begun(ledger, [given.name] if given.name is not None else [])
            budgets = [_summary(ledger, begun) for begun in found]
            if given.name is not None:
                history = ledger.history(given.name)
    except NotThere:
        if given.name is not None:
            raise SettingsError(f"There is no budget {given.name!r}: {_nothing(given)}.") from None
        return Told(_nothing(given), {"ledger": _place(given), "budgets": []})
    problems = tuple(f"{each['name']}: {each['problem']}" for each in budgets if "problem" in each)
    code = 1 if problems else 0
    if given.name is not None:
        facts = {"ledger": _place(given)} | budgets[0] | {"history": history}
        return Told(_history(budgets[0], history), facts, code, problems)
    facts = {"ledger": _place(given), "budgets": budgets}
    if not budgets:
        return Told(_nothing(given), facts)
    many = "1 budget" if len(budgets) == 1 else f"{len(budgets)} budgets"
    return Told(f"{_table(budgets)}\n{_notes(budgets)}{many} in {_place(given)}", facts, code, problems)


def _notes(budgets: list[dict[str, Any]]) -> str:
    """Return what could not be checked about the totals, one line for each budget."""
    return "".join(f"{visible(each['name'])}: {each['note']}\n" for each in budgets if each.get("note"))


def _nothing(given: argparse.Namespace) -> str:
    return f"no budget has been begun in {_place(given)}"


def _table(budgets: list[dict[str, Any]]) -> str:
    symbols = [s for s in _SYMBOLS if s != "delta" or any(each["cap"]["delta"] for each in budgets)]
    rows = [("budget", "charges", *(f"{s} spent" for s in symbols), "composition", "begun")]
    for each in budgets:
        spent = [_spent(each, symbol) for symbol in symbols]
        rows.append(
            (
                each["name"],
                str(each["charges"]),
                *spent,
                each["composition"],
                each["created"].partition("T")[0],
            )
        )
    return columns(rows, right=range(1, 2 + len(symbols)))


def _spent(budget: dict[str, Any], symbol: str) -> str:
    if budget["left"] is None:
        return f"? of {budget['cap'][symbol]:g}"
    return f"{budget['spent'][symbol]:.4g} of {budget['cap'][symbol]:g}, {budget['left'][symbol]:.4g} left"


def _history(budget: dict[str, Any], history: list[dict[str, Any]]) -> str:
    symbols = [s for s in _SYMBOLS if s != "delta" or budget["cap"]["delta"]]
    lines = [
        f"budget {visible(budget['name'])}, begun {budget['created']}, composition {budget['composition']}"
    ]
    head = ("", *symbols)
    rows = [head, ("cap", *(f"{budget['cap'][s]:.6g}" for s in symbols))]
    for name in ("spent", "left"):
        known = budget[name]
        rows.append((name, *("?" if known is None else f"{known[s]:.6g}" for s in symbols)))
    lines.append(columns(rows, right=range(1, 4), indent="  "))
    lines += [f"in all {budget['statement']}"] if history and "statement" in budget else []
    if not history:
        return "\n".join([*lines, "no charges yet"])
    usual = {"strength": "sampled", "purpose": "answer", "part": "", "who": ""}
    wide = [name for name, value in usual.items() if any(row[name] != value for row in history)]
    titles = ["number", "at", "function", "dataset", "n", "mechanism", *symbols, *wide]
    table: list[list[str]] = [["no.", "at (UTC)", *titles[2:]]]
    for row in history:
        cells = []
        for name in titles:
            value = row["charged"] if name == "gamma" else row[name]
            if name == "at":
                value = str(value).replace("T", " ").removesuffix("Z")
            if name == "part" and value:
                value = f"{row['partition']}: {value}"
            if name == "dataset":
                value = value or "-"
            cells.append(f"{value:.6g}" if isinstance(value, float) else str(value))
        table.append(cells)
    right = [at for at, name in enumerate(titles) if name in ("number", "n", *_SYMBOLS)]
    return "\n".join([*lines, columns(table, right=right)])


# --- verify ----------------------------------------------------------------------------------------


def verified(given: argparse.Namespace) -> Told:
    """Compute from the history what was spent, and compare."""
    try:
        with _reading(given) as ledger:
            checked = [_verify(ledger, begun) for begun in _begun(ledger, given.names)]
    except NotThere:
        raise LedgerError(f"There is no ledger to verify: {_nothing(given)}.") from None
    if not checked:
        raise LedgerError(f"There is no budget to verify: {_nothing(given)}.")
    broken = [each for each in checked if "problem" in each]
    facts = {"ledger": _place(given), "holds": not broken, "budgets": checked}
    rows = [
        (
            "DAMAGED" if "problem" in each else "ok",
            each["name"],
            _charges(each["charges"]),
            "" if "problem" in each else f"add up to {_sum(each['spent'])}",
        )
        for each in checked
    ]
    problems = tuple(f"{each['name']}: {each['problem']}" for each in broken)
    text = f"{columns(rows, right=(2,))}\n{_notes(checked)}".rstrip("\n")
    return Told(text, facts, 1 if broken else 0, problems)


def _verify(ledger: Ledger, begun: Begun) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": begun.name, "charges": begun.charges}
    try:
        spent = Budget.begun(begun.name, ledger).verify()
        return facts | {"spent": _amounts(spent), "note": spent.note}
    except LedgerError as error:
        return facts | {"spent": None, "problem": one_line(error)}


def _charges(count: int) -> str:
    return "1 charge " if count == 1 else f"{count} charges"


def _sum(spent: dict[str, float]) -> str:
    return ", ".join(
        f"{symbol}={spent[symbol]:.6g}" for symbol in _SYMBOLS if symbol != "delta" or spent[symbol]
    )


# --- export ----------------------------------------------------------------------------------------


def exported(given: argparse.Namespace) -> Told:
    """Write what was spent to a file or to stdout."""
    try:
        with _reading(given) as ledger:
            found = _begun(ledger, [given.name] if given.name is not None else [])
            budgets = [_summary(ledger, begun) | {"history": ledger.history(begun.name)} for begun in found]
    except NotThere:
        raise LedgerError(f"There is nothing to export: {_nothing(given)}.") from None
    whole = {"ledger": _place(given), "budgets": budgets}
    text = as_json(whole) + "\n" if given.format == "json" else _csv(budgets)
    charges = sum(len(each["history"]) for each in budgets)
    if given.output is None:
        return Told(text.rstrip("\n"), whole)
    file = Path(given.output)
    file.write_text(text, encoding="utf-8", newline="")
    facts = {"ledger": _place(given), "file": given.output, "budgets": len(budgets), "charges": charges}
    many = "1 budget" if len(budgets) == 1 else f"{len(budgets)} budgets"
    return Told(f"{_charges(charges).strip()} of {many} written to {given.output}", facts)


def _csv(budgets: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    names = (
        *("budget", "number", "at", "function", "dataset", "n", "mechanism", "epsilon", "delta", "gamma"),
        *("charged", "partition", "part", "who", "key", "strength", "purpose", "declared", "described"),
        *("neighbours", "unit", "average_gamma", "average_charged"),
    )
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for budget in budgets:
        for row in budget["history"]:
            cells = [" ".join(row[name]) if name == "declared" else row[name] for name in names[1:]]
            writer.writerow([budget["name"], *cells])
    return text.getvalue()
