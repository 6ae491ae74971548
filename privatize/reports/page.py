"""report(): the promise of a private function or a catalogue, as one page that can be handed on."""

import html
import inspect
import math
import os
import platform
import time
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from privatize.auditing import auditor
from privatize.auditing.findings import Audit
from privatize.budgets.budget import Budget
from privatize.budgets.partition import Part
from privatize.calibration.refuting import ProvenBound
from privatize.calibration.sensitivity import Sensitivity
from privatize.calibration.stress import Stress
from privatize.display.cards import grid, page, table
from privatize.display.figures import amount, round_up
from privatize.errors import SettingsError
from privatize.function.accuracy import errors_of
from privatize.function.asking import miscounted, questions
from privatize.function.calibrator import Estimate
from privatize.function.catalogue import Catalogue
from privatize.function.members import Member
from privatize.function.private_function import PrivateFunction
from privatize.function.signal import in_words
from privatize.function.strength import words_of
from privatize.identity.library import DISTRIBUTION
from privatize.mechanisms import Bernstein, Exponential
from privatize.mechanisms.weighted import weighted
from privatize.outputs.structure import Number
from privatize.planning.groups import for_whom, gamma_for, percent
from privatize.reports import distribution
from privatize.reports.catalogue_page import sections
from privatize.samplers.families import Family

_Known = Sensitivity | ProvenBound
_LIBRARIES = (DISTRIBUTION, "numpy", "scipy", "cloudpickle", "narwhals")
_HEADS = ("", "when", "function", "data", "n", *(f"{name} charged" for name in ("epsilon", "delta", "gamma")))
_NUMBERS = ("{n:,}", "{epsilon:g}", "{delta:g}", "{charged:.4g}")
_CHARGE = ("{number}", "{at}", "{function}", "{dataset}", *_NUMBERS)  # what is shown of one charge
_MEANING: dict[type, str] = {
    Exponential: "the chosen response's score is within {} of the best one",
    Bernstein: "each value on the lattice is within ± {} of the raw one",
}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # it is run from its folder
        return "(not installed)"


@dataclass(frozen=True)
class Report:
    """A page about a private function or a catalogue: `report` makes it.

    Attributes
    ----------
    title : str
        What it is about.
    html : str
        The page, which needs nothing else: no network, no scripts.
    """

    title: str
    html: str

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write the page to a file, and return its path."""
        path = Path(file)
        path.write_text(self.html, encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"<report on {self.title}: {len(self.html):,} characters of HTML; save(file) writes it>"

    def _repr_html_(self) -> str:
        # An iframe, so that the notebook's styles and the page's do not affect each other.
        return (
            f"<iframe title='{html.escape(self.title)}' style='width:100%;height:36em;"
            f"border:1px solid #8884' srcdoc='{html.escape(self.html)}'></iframe>"
        )


def report(
    function: PrivateFunction[..., Any] | Catalogue,
    n: int | list[int] | None = None,
    /,
    *args: Any,
    audit: Audit | bool = False,
    budget: Budget | None = None,
    known: float | None = None,
    **kwargs: Any,
) -> Report:
    """Put the promise of a private function or a catalogue on one page: what it is, costs and means.

    The page has the function and P, the plan, the gaps and the estimate, the noise and how far off
    answers are, failures in calibration, the audit and the ledger if there are any, and everything
    that is needed to reproduce it. It neither needs nor contains private data. With a budget, it lists which
    functions were called, and on which datasets. Of a catalogue, it has the questions, their promise, the
    check of P, what was asked and what is left.

    Parameters
    ----------
    function : PrivateFunction or Catalogue
        The function, or a catalogue, which needs nothing else.
    n : int or list of int
        The number of records, or several.
    *args, **kwargs
        The function's other arguments, as for `PrivateFunction.estimate`.
    audit : Audit or bool
        An audit to include, or True to make one for every n.
    budget : Budget, optional
        A budget to include; the function's own by default.
    known : float, optional
        A global or analytic sensitivity to draw beside the estimate.

    Returns
    -------
    Report
        Its ``save(file)`` writes the page.

    Examples
    --------
    >>> from privatize import privatize, report, samplers
    >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 100), seed=1)(np.mean)
    >>> report(mean, 1000, known=0.1).title
    'mean, n=1,000'
    """
    if isinstance(function, Catalogue):
        if any(each is not None for each in (n, budget, known)) or args or kwargs or audit is not False:
            del n, args, kwargs  # it may be the data
            raise SettingsError("report() of a catalogue takes nothing else: the catalogue has all of it.")
        return _made(f"catalogue {function.name}", sections(function.facts(), function.sampler))
    _check(function, audit, budget, known)
    wrong = miscounted("report", n)
    if wrong is not None:
        del n, args, kwargs  # it may be the data
        raise wrong
    sizes = [] if n is None else list(n) if isinstance(n, list | tuple) else [n]
    if not sizes:
        raise SettingsError("report() needs at least one number of records.")
    subject = _Subject(function, args, kwargs)
    if function.definition.proven is not None:
        if audit:
            raise SettingsError(f"""{function.__name__}() has a bound for all pairs of its own, so there is no
                estimate to audit. Leave audit= out.""")
        return _made(subject.title(sizes), subject.own(sizes, budget))
    given = [(sizes, *args), dict(kwargs)]
    asked, _ = questions(function.definition, function.calibrator, "report", given)
    found = [function.calibrator.recall(each) for each in asked]
    body = subject.body(found, subject.audits(audit, sizes, found), budget, known)
    return _made(subject.title([each.sensitivity.n for each in found]), body)


def _made(title: str, body: str) -> Report:
    return Report(title, page(f"privatize: {title}", body))


def _check(function: Any, audit: Any, budget: Any, known: Any) -> None:
    """Refuse wrong arguments of a report."""
    if not isinstance(function, PrivateFunction):
        member = isinstance(function, Member)
        about = " report(catalogue) has a page about all its questions." if member else ""
        raise SettingsError(f"""report() takes a private function or a catalogue, not a
            {type(function).__name__}.{about}""")
    number = isinstance(known, int | float | np.integer | np.floating) and not isinstance(known, bool)
    if known is not None and not (number and 0 < known < math.inf):
        raise SettingsError(f"known={known!r} is not a sensitivity: it must be a finite number > 0.")
    if budget is not None and not isinstance(budget, Budget):
        raise SettingsError(f"report(budget=...) takes a Budget, not a {type(budget).__name__}.")
    if not isinstance(audit, Audit | bool):
        raise SettingsError(f"report(audit=...) takes an Audit, True or False, not a {type(audit).__name__}.")


def _check_audit(made: Audit, function: PrivateFunction[..., Any], found: list[_Known]) -> None:
    """Refuse an audit of something else: the page would say that this function was checked."""
    s = function.settings
    ours = (function.__name__, type(s.mechanism).__name__, s.epsilon, s.delta)
    same = (made.function, made.mechanism, made.epsilon, made.delta) == ours
    if not same or not any((made.n, made.sensitivity) == (each.n, each.value) for each in found):
        raise SettingsError(f"""The audit is of {made.function}, n={made.n:,}, {made.mechanism},
            epsilon={made.epsilon:g} and sensitivity {made.sensitivity:.6g}, which this report is not about.
            Pass audit=True.""")


# --- sections ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Subject:
    """What a report is about: a private function and its public arguments."""

    function: PrivateFunction[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def title(self, sizes: list[int]) -> str:
        """Return what the page is called."""
        return f"{self.function.__name__}, n={' and '.join(f'{size:,}' for size in sizes)}"

    def audits(self, given: Audit | bool, sizes: list[int], found: list[Estimate]) -> list[Audit]:
        """Return the audit that was given, or one for every n if it is True."""
        if isinstance(given, Audit):
            _check_audit(given, self.function, [each.sensitivity for each in found])
            return [given]
        made = []
        for size, each in zip(sizes, found, strict=True) if given else ():
            # An estimate that is not remembered is made again for the audit; its seed makes it the same one.
            seed = each.sensitivity.seed
            same = self.function if each.key is not None else self.function.replace(seed=seed)
            made.append(auditor.audit(same, size, *self.args, **self.kwargs))
        return made

    def body(
        self, found: list[Estimate], audits: list[Audit], budget: Budget | None, known: float | None
    ) -> str:
        """Return all sections."""
        estimates = [each.sensitivity for each in found]
        worst = max(estimates, key=lambda estimate: estimate.gamma)
        parts = [self.promise(worst.gamma, worst.average_gamma), self.whom(worst), self.about()]
        parts += [self.estimate(estimate, known) for estimate in estimates]
        parts += [f"<h2>Was it checked? n={each.n:,}</h2>{each.card().section()}" for each in audits]
        if not audits:
            line = f"audit({', '.join([self._name, str(estimates[0].n), *self._others()])})"
            parts.append(f"<h2>Was it checked?</h2><p>No audit is included: {_code(line)} makes it.</p>")
        return "".join([*parts, *self.spent(budget), self.reproduction(found)])

    def own(self, sizes: list[int], budget: Budget | None) -> str:
        """Return all sections about a function with a bound of its own, for which nothing is estimated."""
        parts = [self.promise(0.0, 0.0), self.about()]
        parts += [f"<h2>With {n:,} records</h2><p>{html.escape(self.error(n))}</p>" for n in sizes]
        return "".join([*parts, *self.spent(budget)])

    def error(self, n: int) -> str:
        """Say how far off answers are, if that is known."""
        try:
            within = amount(self.function.error_at(n, *self.args, **self.kwargs))
        except SettingsError as unknown:
            return str(unknown)
        return f"With 95% probability, each number is within ± {within} of the raw one."

    def spent(self, budget: Budget | None) -> list[str]:
        """Return what was spent from the budget, if there is one."""
        chosen = budget if budget is not None else self.function.settings.budget
        return [] if chosen is None else [_ledger(chosen.budget if isinstance(chosen, Part) else chosen)]

    def promise(self, gamma: float, average: float) -> str:
        """Say what is promised, and what is not."""
        s = self.function.settings
        words = words_of(s, self.function.definition.proven)
        pairs = (
            "for all pairs of such neighbouring datasets"
            if words
            else f"on all but a share of {gamma:g} (gamma, γ) of random pairs of such neighbouring datasets "
            f"({round_up(average)} on average over calibrations)"
        )
        kind = (
            f"This is differential privacy, {html.escape(words)}: a promise about all data, for replaced"
            if words
            else "This is <i>random</i> differential privacy: a promise about typical data under "
            f"{'each' if isinstance(s.sampler, Family) else 'the'} public distribution P below, for replaced"
        )
        worst = "" if words else " It says nothing about the worst dataset that an adversary could think of."
        lesson = "" if words else distribution.learned(s.sampler)
        cost = f" P was learned with {lesson}, which is not in this number." if lesson else ""
        times = math.exp(s.epsilon) if s.epsilon < 700 else math.inf
        delta = f" (up to a probability of {s.delta:g})" if s.delta else ""
        return (
            f"<h1>The promise of <code>{html.escape(self.function.__name__)}</code></h1>"
            f"<p class='lead'>If one person's record is replaced, no answer becomes more than "
            f"e<sup>{s.epsilon:g}</sup> = {times:.4g} times as likely{delta}, {pairs}.</p>"
            f"<p class='note'>{kind} records, with the number of records known, and with code that is "
            f"trusted.{worst} Every answer is charged its epsilon, ε = {s.epsilon:g}, again.{cost}</p>"
        )

    def whom(self, found: _Known) -> str:
        """Say whom the promise may fail for, and what it is worth to a group of people."""
        if not found.gamma:
            return ""
        shares = sorted({0.5, 0.1, 0.01, found.gamma}, reverse=True)
        rows = [[percent(share), round_up(gamma_for(found.gamma, share))] for share in shares]
        shown = grid(["the group's share of P", "gamma (γ) for its people, at most"], rows)
        return (
            f"<p>The promise may fail for {html.escape(for_whom(found.gamma, found.n))}.</p>"
            f"<details><summary>For a group of people</summary>{shown}</details>"
        )

    def about(self) -> str:
        """Say what the function is, and what P draws."""
        s, raw, others = self.function.settings, self.function.__wrapped__, ", ".join(self._others())
        doc = inspect.getdoc(raw) if inspect.isfunction(raw) else None
        clip = "are clipped into P's range first" if s.domain == "clip" else "are taken as they are"
        sampled = self.function.definition.proven is None
        rows = [
            ("function", self.function.definition.label),
            ("what it says it does", doc.splitlines()[0] if doc else ""),
            ("private data", ", ".join(self.function.definition.binding.names)),
            ("other arguments", others),
            ("mechanism", repr(s.mechanism)),
            ("a record is", s.in_words),
            ("private records", clip if sampled else ""),
            ("timeout", "" if s.timeout is None else f"{s.timeout:g} s for a pair"),
        ]
        law = distribution.section(s.sampler) if sampled and s.sampler is not None else ""
        return f"<h2>What it is</h2>{table([row for row in rows if row[1]])}{law}"

    def estimate(self, found: _Known, known: float | None) -> str:
        """Say what an estimate means for an answer, and how it was found."""
        s, card = self.function.settings, found.card(known)
        why = f"<p>{html.escape(self.function.__name__)} was run on pairs of datasets " + (
            "drawn from P that differ in one record. How far its answers were apart sets the noise.</p>"
            if isinstance(found, Sensitivity)
            else "that differ in one record, to refute the bound; none of them did.</p>"
        )
        scale = weighted(s.mechanism, found.shape).scale(found.value, s.epsilon, s.delta)
        divided = "" if found.shape.kind == "none" else f", divided by scaled={found.shape.kind!r}"
        noise = ("noise", f"{type(s.mechanism).__name__}, scale {amount(scale)}{divided}")
        plan = [found.plan.rows()[0]] if isinstance(found, Sensitivity) else []
        shown = replace(card, rows=[*plan, *card.rows, noise]).section()
        stress = _stressed(found.stress) if isinstance(found, Sensitivity) else ""
        hidden = " ".join(in_words(s, found).split()) if isinstance(found, Sensitivity) else ""
        worth = f"<p class='note'>{html.escape(hidden[:1].upper() + hidden[1:])}</p>" if hidden else ""
        means = f"<h2>With {found.n:,} records</h2>{self._meaning(found)}{worth}"
        return f"{means}<h3>How it was found</h3>{why}{shown}{stress}"

    def _meaning(self, found: _Known) -> str:
        """Say what the noise means for an answer, in words and for several epsilons."""
        s = self.function.settings
        try:
            main = errors_of(s, found, 0.95)
        except SettingsError:
            return ""
        single = np.size(main) == 1 and isinstance(found.structure, Number)
        usual = f"{'the answer' if single else 'each number'} is within ± {{}} of the raw one"
        what = _MEANING.get(type(s.mechanism), usual).format(amount(main))
        rows = []
        for times in (0.1, 0.5, 1.0, 2.0, 10.0):
            try:
                at = replace(s, epsilon=s.epsilon * times)
                cells = [amount(errors_of(at, found, level), 3) for level in (0.5, 0.95, 0.99)]
            except SettingsError:  # this mechanism has no proof for that epsilon
                continue
            rows.append([f"{at.epsilon:.4g}{' (this)' if times == 1 else ''}", *cells])
        heads = ["epsilon", *(f"± with {level}" for level in ("50%", "95%", "99%"))]
        return (
            f"<p class='lead'>{html.escape(f'With 95% probability, {what}.')}</p><details open='open'>"
            f"<summary>At another epsilon</summary>{grid(heads, rows)}</details>"
        )

    def reproduction(self, found: list[Estimate]) -> str:
        """Say what is needed to reproduce the estimates."""
        versions = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
        rows = [
            ("versions", f"Python {platform.python_version()}, {versions}"),
            ("platform", f"{platform.system()} {platform.machine()}"),
            ("written", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        ]
        rest = self._others() + (["like=data[:0]"] if self.kwargs.get("like") is not None else [])
        lines = []
        unknown = "none: something in it cannot be encoded, so it is not remembered"
        for each in found:
            made = each.sensitivity
            rows.append((f"fingerprint, n={made.n:,}", unknown if each.key is None else each.key))
            rows.append((f"seeds, n={made.n:,}", f"{made.seed} for pairs, {made.coin_seed} for generators"))
            members = made.members if isinstance(made, Sensitivity) else ()
            rows += [(f"seed of {name}", f"{member.seed} for pairs") for name, member in members]
            if members:  # they have different seeds
                continue
            call = f"estimate({', '.join([str(made.n), *rest])})"
            lines.append(f"<p>{_code(f'{self._name}.replace(seed={made.seed}, store=None).{call}')}</p>")
        same = "<p>The same function and versions give the same gaps:</p>" if lines else ""
        return f"<h2>To reproduce it</h2>{table(rows)}{same}{''.join(lines)}"

    @property
    def _name(self) -> str:
        """What the function is called in a line of code."""
        return self.function.__name__ if self.function.__name__.isidentifier() else "f"

    def _others(self) -> list[str]:
        """Return the other arguments as they are written in a call."""
        named = [f"{k}={_brief(v)}" for k, v in self.kwargs.items() if k != "like"]
        return [*map(_brief, self.args), *named]


def _stressed(stress: Stress | None) -> str:
    """Say what happens to an estimate if P is a little different, if that was tried."""
    if stress is None:
        return ""
    what = "A few pairs of neighbours were drawn from changed P, and fresh ones from the worst of them."
    return (
        f"<h3>If P is a little different</h3><p>{html.escape(stress.summary())}.</p>{stress.section()}"
        f"<p class='note'>{what} Of those, {stress.expected} or fewer are expected beyond the estimate.</p>"
    )


def _code(line: str) -> str:
    return f"<code>{html.escape(line)}</code>"


def _brief(value: Any) -> str:
    """Return the repr of an argument; if that is long, only type and length: it may be data, by mistake."""
    text = repr(value)
    if len(text) <= 80:
        return text
    size = f" of {len(value):,}" if hasattr(value, "__len__") else ""
    return f"<{type(value).__name__}{size}>"


def _ledger(budget: Budget) -> str:
    """Say what was spent from a budget, and for what."""
    rows = budget.ledger.history(budget.name)
    last = [
        row | {"dataset": row["dataset"] or "not declared", "at": row["at"][:16].replace("T", " ")}
        for row in rows[-20:]
    ]
    cells = [[form.format(**row) for form in _CHARGE] for row in last]
    shown = grid(_HEADS, cells) if cells else "<p>Nothing was spent yet.</p>"
    cut = f"<p class='note'>The last {len(last)} of {len(rows):,}.</p>" if len(rows) > len(last) else ""
    card = budget.card()
    body = replace(card, chart=budget.chart() if rows else None).section()
    return f"<h2>What was spent</h2><div><b>{html.escape(card.title)}</b></div>{body}{shown}{cut}"
