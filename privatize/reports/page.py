"""report(): a private function's promise, as one page that can be handed on."""

import html
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privatize.auditing import auditor
from privatize.auditing.findings import Audit
from privatize.budgets.budget import Budget
from privatize.budgets.partition import Part
from privatize.calibration.sensitivity import Sensitivity
from privatize.display.cards import page
from privatize.errors import SettingsError
from privatize.function.asking import miscounted, questions
from privatize.function.private_function import PrivateFunction
from privatize.reports.sections import Subject, ledger


@dataclass(frozen=True)
class Report:
    """A page about a private function: `report` makes it.

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
        # In a frame of its own: a notebook's style and the page's leave each other alone.
        return (
            f"<iframe title='{html.escape(self.title)}' style='width:100%;height:36em;"
            f"border:1px solid #8884' srcdoc='{html.escape(self.html)}'></iframe>"
        )


def report(
    function: PrivateFunction[..., Any],
    n: int | list[int],
    /,
    *args: Any,
    audit: Audit | bool = False,
    budget: Budget | None = None,
    known: float | None = None,
    **kwargs: Any,
) -> Report:
    """Put a private function's promise on one page: what it is, what it costs, what it means.

    The page has the function and P, the plan, the gaps and the estimate, the noise and how far off
    answers are, failures in calibration, the audit and the ledger if there are, and everything that
    is needed to reproduce it. It needs no private data, and holds none; a budget's page says which questions
    were asked, and of what.

    Parameters
    ----------
    function : PrivateFunction
        The function.
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
    _check(function, audit, budget, known)
    wrong = miscounted("report", n)
    if wrong is not None:
        del n, args, kwargs  # it may be the data
        raise wrong
    sizes = list(n) if isinstance(n, list | tuple) else [n]
    if not sizes:
        raise SettingsError("report() needs at least one number of records.")
    given = [(sizes, *args), dict(kwargs)]
    asked, _ = questions(function.definition, function.calibrator, "report", given)
    recalled = [function.calibrator.recall(each) for each in asked]
    found = [(each.sensitivity, each.key) for each in recalled]
    estimates = [estimate for estimate, _ in found]
    audits = [audit] if isinstance(audit, Audit) else []
    for each in audits:
        _check_audit(each, function, estimates)
    for size, (estimate, key) in zip(sizes, found, strict=True) if audit is True else ():
        # What is not remembered is calibrated again; with its seed, the same estimate is audited.
        same = function if key is not None else function.replace(seed=estimate.seed)
        audits.append(auditor.audit(same, size, *args, **kwargs))
    subject = Subject(function, args, kwargs)
    title = f"{function.__name__}, n={' and '.join(f'{estimate.n:,}' for estimate in estimates)}"
    return Report(title, page(f"privatize: {title}", _body(subject, found, audits, budget, known)))


def _body(
    subject: Subject,
    found: list[tuple[Sensitivity, str | None]],
    audits: list[Audit],
    budget: Budget | None,
    known: float | None,
) -> str:
    estimates = [estimate for estimate, _ in found]
    parts = [subject.promise(max(estimates, key=lambda estimate: estimate.gamma)), subject.about()]
    parts += [subject.estimate(estimate, known) for estimate in estimates]
    parts += [f"<h2>Was it checked? n={each.n:,}</h2>{each.card().section()}" for each in audits]
    if not audits:
        parts.append(subject.unaudited(estimates[0].n))
    chosen = budget if budget is not None else subject.function.settings.budget
    if chosen is not None:
        parts.append(ledger(chosen.budget if isinstance(chosen, Part) else chosen))
    return "".join([*parts, subject.again(found)])


def _check(function: Any, audit: Any, budget: Any, known: Any) -> None:
    """Refuse wrong arguments of a report."""
    if not isinstance(function, PrivateFunction):
        raise SettingsError(f"report() takes a private function, not a {type(function).__name__}.")
    number = isinstance(known, int | float | np.integer | np.floating) and not isinstance(known, bool)
    if known is not None and not (number and 0 < known < math.inf):
        raise SettingsError(f"known={known!r} is not a sensitivity: it must be a finite number > 0.")
    if budget is not None and not isinstance(budget, Budget):
        raise SettingsError(f"report(budget=...) takes a Budget, not a {type(budget).__name__}.")
    if not isinstance(audit, Audit | bool):
        raise SettingsError(f"report(audit=...) takes an Audit, True or False, not a {type(audit).__name__}.")


def _check_audit(made: Audit, function: PrivateFunction[..., Any], found: list[Sensitivity]) -> None:
    """Refuse an audit of something else: the page would say that this was checked."""
    s = function.settings
    ours = (function.__name__, type(s.mechanism).__name__, s.epsilon, s.delta)
    same = (made.function, made.mechanism, made.epsilon, made.delta) == ours
    if not same or not any((made.n, made.sensitivity) == (each.n, each.value) for each in found):
        raise SettingsError(
            f"The audit is of {made.function}, n={made.n:,}, {made.mechanism}, epsilon={made.epsilon:g} and "
            f"sensitivity {made.sensitivity:.6g}, which this report is not about. Pass audit=True."
        )
