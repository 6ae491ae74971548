"""`privatize estimate`, `audit` and `check`: about private functions in somebody's modules."""

from __future__ import annotations

import argparse
import ast
import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from privatize.auditing.auditor import audit
from privatize.auditing.findings import Audit
from privatize.cli.checking import check, find, table
from privatize.cli.showing import Told, columns, duration, number, one_line
from privatize.config.policy import policy
from privatize.errors import ArgumentError, CalibrationError, PrivatizeError, SettingsError
from privatize.function.calibrator import store_of
from privatize.function.private_function import PrivateFunction
from privatize.function.release import error_of
from privatize.mechanisms.weighted import Weighted
from privatize.reports.page import report

__all__ = ["audited", "checked", "estimated", "settings_of"]


def settings_of(texts: list[str]) -> dict[str, Any]:
    """Return arguments from texts like ``bins=10``: Python's literals, and else text.

    Examples
    --------
    >>> settings_of(["bins=10", "edges=[0, 0.5, 1]", "how=fast", "title='10'"])
    {'bins': 10, 'edges': [0, 0.5, 1], 'how': 'fast', 'title': '10'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name = name.strip()
        if not sign or not name.isidentifier():
            raise SettingsError(f"--set {text!r} is not name=value, such as --set bins=10.")
        if name in found:
            raise SettingsError(f"--set {name}=... is given twice.")
        try:
            found[name] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found[name] = value
    return found


# --- estimate --------------------------------------------------------------------------------------


def estimated(given: argparse.Namespace) -> Told:
    """Calibrate ahead for one or more numbers of records."""
    arguments = settings_of(given.set)
    _writable(given.report)
    _apart(arguments, _REPORTING if given.report else ())
    name, function = find(given.function)
    sizes = _sizes(given, name, function)
    if given.workers is not None:
        function = function.replace(workers=given.workers)
    with _explained(arguments):
        rows = [_estimate(function, n, arguments) for n in sizes]
    refused = [row for row in rows if "refused" in row]
    s = function.settings
    facts = {
        "function": name,
        "mechanism": type(s.mechanism).__name__,
        "epsilon": s.epsilon,
        "delta": s.delta,
        "sampler": repr(s.sampler),
        "arguments": {each: repr(value) for each, value in arguments.items()},
        "store": store_of(function.settings).url,
        "rows": rows,
    }
    problems = [f"n={row['n']}: {row['refused']}" for row in refused]
    lost = [row["n"] for row in rows if not row.get("kept", True)]
    problems += [f"n={n}: the estimate is not remembered, so it will be made again" for n in lost]
    code = 1 if refused else 2 if lost else 0
    if given.report and refused:
        problems.append("no report was written")
    elif given.report:
        failed = _reported(given.report, function, sizes if len(sizes) > 1 else sizes[0], arguments, facts)
        problems += failed
        code = code or (2 if failed else 0)
    return Told(_shown(function, facts), facts, code, tuple(problems))


_REPORTING = ("audit", "budget", "known")


def _apart(arguments: dict[str, Any], own: Sequence[str]) -> None:
    """Refuse arguments of a function that this command has of its own."""
    for name in arguments:
        if name in own:
            raise SettingsError(
                f"--set {name}=... cannot be told from what this command calls {name}: do it in Python, with "
                f"functools.partial."
            )


@contextlib.contextmanager
def _explained(arguments: dict[str, Any]) -> Iterator[None]:
    """Say what was given, where the function's arguments are wrong; the library does not, for privacy."""
    try:
        yield
    except ArgumentError as error:
        given = ", ".join(f"--set {name}={value!r}" for name, value in arguments.items())
        raise ArgumentError(
            f"{error} Given: {given or 'nothing but the number of records (see --set)'}."
        ) from error


def _sizes(given: argparse.Namespace, name: str, function: PrivateFunction[..., Any]) -> list[int]:
    """Return the numbers of records that were asked for, or that the policy or P says."""
    for n in given.n or ():
        if n < 1:
            raise SettingsError(f"-n {n} is not a number of records: it is 1 or more.")
    if given.n:
        return list(dict.fromkeys(given.n))
    ruled = policy().sizes.get(name, [])
    fixed = getattr(function.settings.sampler, "positions", None) is not None
    sizes = ruled or ([int(function.settings.sampler.size)] if fixed else [])
    if not sizes:
        raise SettingsError(
            f'How many records? Pass -n 1000, or put them into the policy: n = {{"{name}" = [1000]}} in '
            f"[tool.privatize]."
        )
    return list(dict.fromkeys(sizes))


def _estimate(function: PrivateFunction[..., Any], n: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Calibrate for one number of records, or recall; say what came out."""
    known = function.remembers(n, **arguments)
    start = time.perf_counter()
    try:
        found = function.estimate(n, **arguments)
    except CalibrationError as error:
        return {"n": n, "refused": one_line(error), "kind": type(error).__name__}
    s = function.settings
    mechanism: Any = Weighted(s.mechanism, found.weights) if found.weights else s.mechanism
    row = {
        "n": found.n,
        "sensitivity": found.value,
        "m": found.m,
        "k": found.k,
        "gamma": found.gamma,
        "rho": found.rho,
        "bound": found.bound,
        "norm": found.norm,
        "failed": found.failed,
        "looks": found.looks,
        "seed": found.seed,
        "scale": mechanism.scale(found.value, s.epsilon, s.delta),
    }
    row |= {"remembered": known, "seconds": round(time.perf_counter() - start, 3)}
    row["kept"] = known or function.remembers(n, **arguments)
    try:
        # As error_at() does, but from the estimate at hand: not all can be remembered.
        return row | {"error95": error_of(s, found, 0.95)}
    except SettingsError:  # of this mechanism there is no such thing
        return row | {"error95": None}


def _shown(function: PrivateFunction[..., Any], facts: dict[str, Any]) -> str:
    what = ("noise scale", "± with 95%")
    if hasattr(function.settings.mechanism, "responses"):  # it chooses; there is no noise to speak of
        what = ("temperature", "below best, 95%")
    rows = [("n", "sensitivity", "m", "k", "gamma", *what, "")]
    for row in facts["rows"]:
        if "refused" in row:
            rows.append((f"{row['n']:,}", "refused", *["-"] * 5, row["kind"]))
            continue
        how = "remembered" if row["remembered"] else f"took {duration(row['seconds'])}"
        how += "" if row["kept"] else ", NOT REMEMBERED"
        failed = f", {row['failed']} pairs failed" if row["failed"] else ""
        rows.append(
            (
                f"{row['n']:,}",
                f"{row['sensitivity']:.6g}",
                f"{row['m']:,}",
                f"{row['k']:,}",
                f"{row['gamma']:.4g}",
                number(row["scale"]),
                number(row["error95"]),
                how + failed,
            )
        )
    where = facts["store"] if facts["store"] != "memory" else "memory, which ends with this command"
    lines = [repr(function), columns(rows, right=range(7), indent="  "), f"  store: {where}"]
    if "report" in facts:
        lines.append(f"  report: {facts['report']}")
    return "\n".join(lines)


def _writable(file: str | None) -> None:
    """Refuse, before the work, to write a report where none can be written."""
    if file is None:
        return
    path = Path(file)
    if path.is_dir():
        raise SettingsError(
            f"--report {file}: that is a folder. Name a file, such as {path / 'report.html'}."
        )
    if not path.absolute().parent.is_dir():
        raise SettingsError(f"--report {file}: there is no folder {path.parent}.")


# --- audit -----------------------------------------------------------------------------------------


def audited(given: argparse.Namespace) -> Told:
    """Measure a promise."""
    arguments = settings_of(given.set)
    _writable(given.report)
    name, function = find(given.function)
    rest: dict[str, Any] = {"pairs": given.pairs, "releases": given.releases, "confidence": given.confidence}
    _apart(arguments, (*rest, "seed", "sampler", "under", "workers", "progress", *_REPORTING))
    with _explained(arguments):
        if given.report:
            function = _settled(function, given.n, arguments)
        found = audit(function, given.n, **rest, seed=given.seed, workers=given.workers, **arguments)
    text, facts, code = str(found), _audit_facts(name, found), 0 if found.holds else 1
    problems: tuple[str, ...] = ()
    if given.report:
        problems = _reported(given.report, function, given.n, arguments, facts, audit=found)
        text += "" if problems else f"\n  {'report':28s} {given.report}"
    return Told(text, facts, code or (2 if problems else 0), problems)


def _settled(
    function: PrivateFunction[..., Any], n: int, arguments: dict[str, Any]
) -> PrivateFunction[..., Any]:
    """Return a function whose estimate is the same one each time, also if it cannot be remembered."""
    made = function.estimate(n, **arguments)
    return function if function.remembers(n, **arguments) else function.replace(seed=made.seed)


def _reported(
    file: str, function: PrivateFunction[..., Any], n: Any, arguments: dict[str, Any], facts: Any, **more: Any
) -> tuple[str, ...]:
    """Write a report; return what went wrong, so that what was found before is still said."""
    try:
        report(function, n, **more, **arguments).save(file)
    except (PrivatizeError, OSError) as error:
        return (f"no report was written: {one_line(error)}",)
    facts["report"] = file
    return ()


def _audit_facts(name: str, found: Audit) -> dict[str, Any]:
    facts = asdict(found)
    for coverage in (facts["coverage"], *facts["under"]):
        losses = coverage.pop("losses")
        coverage["largest_loss"] = float(losses[-1]) if len(losses) else None
    return facts | {"function": name, "holds": found.holds, "verdict": found.verdict}


# --- check -----------------------------------------------------------------------------------------


def checked(given: argparse.Namespace) -> Told:
    """List private functions, and check them against the policy."""
    findings = check(given.targets)
    rules = policy().file
    failed = sum(bool(finding.problems) for finding in findings)
    facts = {
        "policy": None if rules is None else str(rules),
        "functions": [finding.facts for finding in findings],
        "problems": failed,
    }
    return Told(table(findings), facts, 1 if failed else 0)
