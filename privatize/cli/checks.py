"""`privatize check`: check the private functions and catalogues of modules against the policy."""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from privatize.budgets.sealed import Sealed, carried
from privatize.cli.catalogues import state
from privatize.cli.command import Argument, Outcome, command
from privatize.cli.importing import exists, find, listed, modules
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
    notes : tuple of str
        What could not be checked. It is no problem.
    """

    function: str
    promise: str
    problems: tuple[str, ...]
    catalogue: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return it as facts for JSON."""
        if self.catalogue is not None:
            return {"catalogue": self.function} | self.catalogue | {"problems": self.problems}
        facts = {"function": self.function, "promise": self.promise, "problems": self.problems}
        return facts | {"notes": self.notes}


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
    functions: dict[int, tuple[str, Any, type | None]] = {}
    catalogues: dict[int, tuple[str, Catalogue]] = {}
    data: dict[str, Sealed] = {}
    names: set[str] = set()
    listing = Lenient(True)
    before = lenient.set(listing)
    try:
        for module in (module for target in targets for module in modules(target)):
            names.add(module.__name__)
            for name, function, owner in listed(module):
                functions.setdefault(id(function), (name, function, owner))
            for name, catalogue, _ in listed(module, Catalogue):
                catalogues.setdefault(id(catalogue), (name, catalogue))
            data |= {name: sealed for name, sealed, _ in listed(module, Sealed)}
        # At the end, because modules that were imported later may have added questions, or sealed data.
        findings = [_finding(*each, data) for each in functions.values()]
        findings += [_declared(*each) for each in catalogues.values()]
        findings += _others(names, {finding.function for finding in findings}, data)
    finally:
        listing.active = False
        lenient.reset(before)
    return findings


def _others(names: set[str], known: set[str], data: dict[str, Sealed]) -> Iterator[Finding]:
    """Yield findings about what the policy's n names beside the functions that were found."""
    for name in policy().sizes:
        module_name = name.partition(":")[0]
        if name in known or (module_name not in names and exists(module_name)):
            continue
        try:
            _, function = find(name)  # a method of an object, say
        except (PrivatizeError, ImportError) as error:
            problem = f"the policy's n names it, but there is no such private function: {one_line(error)}"
            yield Finding(name, "", (problem,))
        else:
            yield _finding(name, function, None, data)


def _finding(
    name: str, function: PrivateFunction[..., Any], owner: type | None, data: dict[str, Sealed]
) -> Finding:
    settings, rules = function.settings, policy()
    delta = f", delta={settings.delta:g}" if settings.delta else ""
    budget = "" if settings.budget is None else f", budget {getattr(settings.budget, 'name', 'part')!r}"
    kind = mechanism_name(settings, function.definition.proven)
    words = words_of(settings, function.definition.proven)
    holds = f"differentially private {words}" if words else f"gamma={settings.gamma:g}"
    law = ", P of the sealed data" if _without_p(function) else ""
    promise = f"{kind}, epsilon={settings.epsilon:g}{delta}, {holds}{law}{budget}"
    problems = rules.problems(settings.epsilon, settings.delta, settings.gamma or 0.0, budget=True)
    if rules.require_catalogue and not words:
        problems.append("it is sampled and in no catalogue, and require-catalogue is set")
    unknown = _unknown(function, owner)
    if unknown:
        problems.append(
            f"its estimates cannot be remembered: it depends on {unknown}, whose content cannot be compared"
        )
    notes: list[str] = []
    for n in [] if unknown else rules.sizes.get(name, []):
        try:
            # By its name, so that a method has its object or class.
            called = function if owner is None else find(name)[1]
            _remembered(name, called, n, data, problems, notes)
        except PrivatizeError as error:
            problems.append(f"n={n}: {one_line(error)}")
    return Finding(name, promise, tuple(problems), None, tuple(notes))


def _without_p(function: PrivateFunction[..., Any]) -> bool:
    """Tell whether the P of a function comes with the data that it is called with."""
    return function.definition.proven is None and function.settings.sampler is None


def _remembered(
    name: str,
    function: PrivateFunction[..., Any],
    n: int,
    data: dict[str, Sealed],
    problems: list[str],
    notes: list[str],
) -> None:
    """Add a problem if no estimate is remembered for n records, or a note if that is not known."""
    if not _without_p(function):
        if not function.remembers(n):
            problems.append(f"n={n}: no fresh estimate is remembered; call estimate({n})")
        return
    laws = {where: carried(sealed)[0] for where, sealed in data.items() if sealed.n == n}
    known = {where: law for where, law in laws.items() if law is not None}
    if not known:
        notes.append(
            f"n={n}: not checked, because P comes with the sealed data, and these modules have no sealed "
            f"data with n={n} and a P"
        )
    elif not any(_fits(function, law, n) for law in known.values()):
        where = " or ".join(known)
        problems.append(
            f"n={n}: no fresh estimate is remembered under the P of {where}; run privatize estimate {name} "
            f"--data {next(iter(known))}"
        )


def _fits(function: PrivateFunction[..., Any], law: Any, n: int) -> bool:
    """Tell whether an estimate is remembered under a P; not, if it is a P for another function."""
    try:
        return function.replace(sampler=law).remembers(n)
    except PrivatizeError:
        return False


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
        rows += [("", "", line) for line in (*finding.problems, *finding.notes)]
    failed = sum(bool(finding.problems) for finding in findings)
    many = sum(finding.catalogue is not None for finding in findings)
    total = counted(len(findings) - many, "private function")
    total += f" and {counted(many, 'catalogue')}" if many else ""
    total += f", {failed} with problems"
    return f"{columns(rows)}\n{total}" if rows else total
