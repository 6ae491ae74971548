"""`privatize check`: check the private functions of modules against the policy."""

import argparse
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from privatize.cli.command import Argument, Outcome, command
from privatize.cli.importing import exists, functions, modules
from privatize.cli.showing import columns
from privatize.config.policy import Lenient, lenient, policy
from privatize.display.figures import counted
from privatize.errors import PrivatizeError
from privatize.function.private_function import PrivateFunction
from privatize.function.strength import mechanism_name, words_of
from privatize.identity.fingerprint import attempt


@dataclass(frozen=True)
class Finding:
    """A private function, its promise, and what is wrong with it.

    Attributes
    ----------
    function : str
        ``module:function``.
    promise : str
        Mechanism and parameters.
    problems : tuple of str
        What breaks the policy, or is not remembered.
    """

    function: str
    promise: str
    problems: tuple[str, ...]


@command("check", Argument("targets", nargs="+", metavar="module-or-path", help="modules, files or folders"))
def check(given: argparse.Namespace) -> Outcome:
    """List private functions, and check them against [tool.privatize] in pyproject.toml.

    privatize check app/ notebooks/report.py
    privatize check app.stats
    """
    findings, rules = examined(given.targets), policy().file
    failed = sum(bool(finding.problems) for finding in findings)
    facts = {"policy": rules and str(rules), "functions": list(map(asdict, findings)), "problems": failed}
    return Outcome(table(findings), facts, 1 if failed else 0)


def examined(targets: Iterable[str]) -> list[Finding]:
    """Import modules, or files and folders, and look at every private function in them.

    Parameters
    ----------
    targets : iterable of str
        Names of modules, or paths.
    """
    found: dict[int, Finding] = {}
    names: set[str] = set()
    listing = Lenient(True)
    before = lenient.set(listing)
    try:
        for module in (module for target in targets for module in modules(target)):
            names.add(module.__name__)
            for name, function, owner in functions(module):
                if id(function) not in found:
                    found[id(function)] = _finding(name, function, owner)
    finally:
        listing.active = False
        lenient.reset(before)
    findings = list(found.values())
    listed = {finding.function for finding in findings}
    for name in policy().sizes:
        module_name = name.partition(":")[0]
        if name not in listed and (module_name in names or not exists(module_name)):
            problem = "the policy's n names it, but there is no such private function"
            findings.append(Finding(name, "", (problem,)))
    return findings


def _finding(name: str, function: PrivateFunction[..., Any], owner: type | None) -> Finding:
    settings, rules = function.settings, policy()
    delta = f", delta={settings.delta:g}" if settings.delta else ""
    budget = "" if settings.budget is None else f", budget {getattr(settings.budget, 'name', 'part')!r}"
    kind = mechanism_name(settings, function.definition.proven)
    words = words_of(settings, function.definition.proven)
    holds = f"differentially private {words}" if words else f"gamma={settings.gamma:g}"
    promise = f"{kind}, epsilon={settings.epsilon:g}{delta}, {holds}{budget}"
    problems = rules.problems(settings.epsilon, settings.delta, settings.gamma or 0.0, budget=True)
    unknown = _unknown(function, owner)
    if unknown:
        problems.append(
            f"its estimates cannot be remembered: it depends on {unknown}, whose content cannot be compared"
        )
    for n in [] if unknown else rules.sizes.get(name, []):
        try:
            fresh = function.remembers(n)
        except PrivatizeError as error:
            problems.append(f"n={n}: {error}")
            continue
        if not fresh:
            problems.append(f"n={n}: no fresh estimate is remembered; call estimate({n})")
    return Finding(name, promise, tuple(problems))


def _unknown(function: PrivateFunction[..., Any], owner: type | None) -> str:
    """Return what keeps estimates of a function, or of a method and its class, from being remembered."""
    settings = function.settings
    return attempt([function.__wrapped__, settings, owner], version=settings.version)[1]


def table(findings: list[Finding]) -> str:
    """Return findings as lines of text."""
    rows = []
    for finding in findings:
        rows.append(("FAILS" if finding.problems else "ok", finding.function, finding.promise))
        rows += [("", "", problem) for problem in finding.problems]
    failed = sum(bool(finding.problems) for finding in findings)
    total = f"{counted(len(findings), 'private function')}, {failed} with problems"
    return f"{columns(rows)}\n{total}" if rows else total
