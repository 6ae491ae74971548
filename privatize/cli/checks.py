"""`privatize check`: check the private functions and catalogues of modules against the policy."""

import argparse
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from privatize.cli.catalogues import state
from privatize.cli.command import Argument, Outcome, command
from privatize.cli.importing import exists, listed, modules
from privatize.cli.showing import columns, one_line
from privatize.config.policy import Lenient, lenient, policy
from privatize.display.figures import counted
from privatize.errors import PrivatizeError
from privatize.function.catalogue import Catalogue
from privatize.function.private_function import PrivateFunction
from privatize.function.standing import standing_of
from privatize.function.strength import mechanism_name, words_of
from privatize.identity.fingerprint import attempt


@dataclass(frozen=True)
class Finding:
    """A private function or a catalogue, its promise, and what is wrong with it.

    Attributes
    ----------
    function : str
        ``module:function``.
    promise : str
        Mechanism and parameters.
    problems : tuple of str
        What breaks the policy, or is not remembered.
    catalogue : dict, optional
        If it is a catalogue: its name, questions, gamma and phase, and where it stands.
    """

    function: str
    promise: str
    problems: tuple[str, ...]
    catalogue: dict[str, Any] | None = None

    def facts(self) -> dict[str, Any]:
        """Return it as facts for JSON."""
        if self.catalogue is not None:
            return {"catalogue": self.function} | self.catalogue | {"problems": self.problems}
        return {"function": self.function, "promise": self.promise, "problems": self.problems}


@command("check", Argument("targets", nargs="+", metavar="module-or-path", help="modules, files or folders"))
def check(given: argparse.Namespace) -> Outcome:
    """List private functions and catalogues, and check them against [tool.privatize] in pyproject.toml.

    privatize check app/ notebooks/report.py
    privatize check app.stats
    """
    findings, rules = examined(given.targets), policy().file
    failed = sum(bool(finding.problems) for finding in findings)
    facts: dict[str, Any] = {"policy": rules and str(rules), "problems": failed}
    facts["functions"] = [each.facts() for each in findings if each.catalogue is None]
    facts["catalogues"] = [each.facts() for each in findings if each.catalogue is not None]
    return Outcome(table(findings), facts, 1 if failed else 0)


def examined(targets: Iterable[str]) -> list[Finding]:
    """Import modules, or files and folders, and look at every private function and catalogue in them.

    Parameters
    ----------
    targets : iterable of str
        Names of modules, or paths.
    """
    found: dict[int, Finding] = {}
    catalogues: dict[int, tuple[str, Catalogue]] = {}
    names: set[str] = set()
    listing = Lenient(True)
    before = lenient.set(listing)
    try:
        for module in (module for target in targets for module in modules(target)):
            names.add(module.__name__)
            for name, function, owner in listed(module):
                if id(function) not in found:
                    found[id(function)] = _finding(name, function, owner)
            for name, catalogue, _ in listed(module, Catalogue):
                catalogues.setdefault(id(catalogue), (name, catalogue))
        # At the end, because modules that were imported later may have added questions.
        found |= {at: _declared(*each) for at, each in catalogues.items()}
    finally:
        listing.active = False
        lenient.reset(before)
    findings = list(found.values())
    known = {finding.function for finding in findings}
    for name in policy().sizes:
        module_name = name.partition(":")[0]
        if name not in known and (module_name in names or not exists(module_name)):
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
    if rules.require_catalogue and not words:
        problems.append("it is sampled and in no catalogue, and require-catalogue is set")
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


def _declared(name: str, catalogue: Catalogue) -> Finding:
    facts, standing = catalogue.facts(), standing_of(catalogue)
    about = {each: facts[each] for each in ("name", "people", "n", "phase", "gamma")} | asdict(standing)
    about["questions"] = catalogue.questions
    del about["problem"]
    count = counted(len(catalogue.questions), "question")
    promise = f"catalogue {catalogue.name!r}, {count}, gamma={facts['gamma']:g}, {state(about)}"
    problems = policy().problems(0.0, 0.0, facts["gamma"], budget=True)
    problems += [one_line(standing.problem)] if standing.problem else []
    return Finding(name, promise, tuple(problems), about)


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
    many = sum(finding.catalogue is not None for finding in findings)
    total = counted(len(findings) - many, "private function")
    total += f" and {counted(many, 'catalogue')}" if many else ""
    total += f", {failed} with problems"
    return f"{columns(rows)}\n{total}" if rows else total
