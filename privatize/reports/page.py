"""report(): a private function's promise, as one page that can be handed on."""

from __future__ import annotations

import html
import inspect
import math
import os
import platform
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from privatize.auditing.coverage import Audit, audit
from privatize.budgets.budget import Budget, Part
from privatize.calibration.sensitivity import Sensitivity
from privatize.display import cards as views
from privatize.display.charts import svg
from privatize.errors import SettingsError
from privatize.function.private_function import PrivateFunction, miscounted, questions
from privatize.function.release import error_of
from privatize.function.remembering import store_of

__all__ = ["Report", "report"]


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
    if not isinstance(function, PrivateFunction):
        raise SettingsError(f"report() takes a private function, not a {type(function).__name__}.")
    number = isinstance(known, int | float | np.integer | np.floating) and not isinstance(known, bool)
    if known is not None and not (number and 0 < known < math.inf):
        raise SettingsError(f"known={known!r} is not a sensitivity: it must be a finite number > 0.")
    if budget is not None and not isinstance(budget, Budget):
        raise SettingsError(f"report(budget=...) takes a Budget, not a {type(budget).__name__}.")
    if not isinstance(audit, Audit | bool):
        raise SettingsError(f"report(audit=...) takes an Audit, True or False, not a {type(audit).__name__}.")
    wrong = miscounted("report", n)
    if wrong is not None:
        del n, args, kwargs  # it may be the data
        raise wrong
    sizes = list(n) if isinstance(n, list | tuple) else [n]
    if not sizes:
        raise SettingsError("report() needs at least one number of records.")
    asked, _ = questions(function, "report", [(sizes, *args), dict(kwargs)])
    url = store_of(function.settings).url
    recalled = [function.calibrator.recall(each) for each in asked]
    found = [(each.sensitivity, each.key, url) for each in recalled]
    audits = [audit] if isinstance(audit, Audit) else []
    for each in audits:
        _check_audit(each, function, [estimate for estimate, _, _ in found])
    if audit is True:
        audits = [
            _audited(function, each, args, kwargs, None if key is not None else estimate.seed)
            for each, (estimate, key, _) in zip(sizes, found, strict=True)
        ]
    name = function.__name__
    title = f"{name}, n={' and '.join(f'{estimate.n:,}' for estimate, _, _ in found)}"
    worst = max((estimate for estimate, _, _ in found), key=lambda estimate: estimate.gamma)
    parts = [_head(function, name, worst)]
    parts.append(_about(function, args, kwargs))
    parts += [_section(function, estimate, known) for estimate, _, _ in found]
    parts += [f"<h2>Was it checked? n={each.n:,}</h2>{views.audit_section(each)}" for each in audits]
    if not audits:
        line = f"audit({', '.join([_written(function), str(found[0][0].n), *_others(args, kwargs)])})"
        parts.append(
            f"<h2>Was it checked?</h2><p>No audit is included: <code>{html.escape(line)}</code> makes it.</p>"
        )
    chosen = budget if budget is not None else function.settings.budget
    if chosen is not None:
        parts.append(_ledger(chosen.budget if isinstance(chosen, Part) else chosen))
    parts.append(_again(function, found, args, kwargs))
    return Report(title, views.page(f"privatize: {title}", "".join(parts)))


def _audited(
    function: PrivateFunction[..., Any], n: int, args: tuple[Any, ...], kwargs: Any, seed: int | None
) -> Audit:
    # What is not remembered is calibrated anew: with its seed, it is the same estimate that is audited.
    return audit(function if seed is None else function.replace(seed=seed), n, *args, **kwargs)


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


def _head(function: PrivateFunction[..., Any], name: str, estimate: Any) -> str:
    s = function.settings
    times = math.exp(s.epsilon) if s.epsilon < 700 else math.inf
    delta = f" (up to a probability of {s.delta:g})" if s.delta else ""
    return (
        f"<h1>The promise of <code>{html.escape(name)}</code></h1>"
        f"<p class='lead'>If one person's record is replaced, no answer becomes more than e<sup>{s.epsilon:g}"
        f"</sup> = {times:.4g} times as likely{delta}, on all but a share γ = {estimate.gamma:g} of "
        f"random pairs of such neighbouring datasets ({views.round_up(estimate.average_gamma)} on average "
        f"over calibrations).</p>"
        f"<p class='note'>This is <i>random</i> differential privacy: a promise about typical data under the "
        f"public distribution P below, for replaced records, with the number of records known, and with code "
        f"that is trusted. It says nothing about the worst dataset that an adversary could think of. Every "
        f"answer spends its ε anew.</p>"
    )


def _about(function: PrivateFunction[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    s = function.settings
    doc = inspect.getdoc(function.__wrapped__)
    own = bool(doc) and inspect.isfunction(function.__wrapped__)
    rows = [("function", function.definition.label)]
    if own and doc:
        rows.append(("what it says it does", doc.splitlines()[0]))
    rows.append(("private data", ", ".join(function.definition.binding.names)))
    others = _others(args, kwargs)
    if others:
        rows.append(("other arguments", ", ".join(others)))
    clip = "are brought into P's support first" if s.domain == "clip" else "are taken as they are"
    rows += [
        ("mechanism", repr(s.mechanism)),
        ("P, one record", repr(s.sampler)),
        ("private records", clip),
    ]
    if s.timeout is not None:
        rows.append(("timeout", f"{s.timeout:g} s for a pair"))
    drawn = ""
    describe = getattr(s.sampler, "describe", None)
    if describe is not None:
        drawn = (
            f"<details><summary>What P draws</summary><div class='scroll'><div style='min-width:36rem'>"
            f"{describe(1000, seed=0)._repr_html_()}</div></div></details>"
        )
    return f"<h2>What it is</h2>{views.table(rows)}{drawn}"


def _written(function: PrivateFunction[..., Any]) -> str:
    """Return what a function is called in a line of code."""
    return function.__name__ if function.__name__.isidentifier() else "f"


def _others(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return the other arguments as they are written in a call."""
    return [_brief(each) for each in args] + [f"{k}={_brief(v)}" for k, v in kwargs.items() if k != "like"]


def _brief(value: Any) -> str:
    """Return a short argument as it is, and of a long one only what it is: it may be data, by a slip."""
    text = repr(value)
    if len(text) <= 80:
        return text
    size = f" of {len(value):,}" if hasattr(value, "__len__") else ""
    return f"<{type(value).__name__}{size}>"


def _section(function: PrivateFunction[..., Any], found: Sensitivity, known: float | None) -> str:
    s = function.settings
    head = f"<h2>With {found.n:,} records</h2>"
    chart = svg(views.gaps_chart(found, known))
    meaning = _meaning(function, found)
    rows = views.estimated(found)
    if known is not None:
        rows.insert(1, ("known bound", f"{known:.6g}: the estimate is {found.value / known:.3g} times that"))
    cost = views.planned(found.plan)[:1]
    why = (
        f"<p>{html.escape(function.__name__)} was run on pairs of datasets drawn from P that differ in one "
        f"record. How far its answers were apart sets the noise.</p>"
    )
    scale = s.mechanism.scale(found.value, s.epsilon, s.delta)
    if found.weights:
        scale = np.ldexp(float(scale), np.array(found.weights))
    noise = [("noise", f"{type(s.mechanism).__name__}, scale {views.amount(scale)}")]
    return f"{head}{meaning}<h3>How it was found</h3>{why}{views.table(cost + rows + noise)}{chart}"


def _meaning(function: PrivateFunction[..., Any], found: Sensitivity) -> str:
    """Say what the noise means for an answer, in words and for several epsilons."""
    s = function.settings
    try:
        main = error_of(s, found, 0.95)
    except SettingsError:
        return ""
    what = {"Exponential": "the chosen response's score is within {} of the best one"}.get(
        type(s.mechanism).__name__,
        "each value on the lattice is within ± {} of the raw one"
        if type(s.mechanism).__name__ == "Bernstein"
        else "each number is within ± {} of the raw one"
        if len(np.atleast_1d(main)) > 1 or views.several(found.structure)
        else "the answer is within ± {} of the raw one",
    )
    sentence = f"With 95% probability, {what.format(views.amount(main))}."
    rows = []
    for times in (0.1, 0.5, 1.0, 2.0, 10.0):
        try:
            at = replace(s, epsilon=s.epsilon * times)
            cells = [views.amount(error_of(at, found, level), 3) for level in (0.5, 0.95, 0.99)]
        except SettingsError:  # this mechanism is not proven there
            continue
        rows.append([f"{s.epsilon * times:.4g}" + (" (this)" if times == 1 else ""), *cells])
    heads = ["epsilon", *(f"± with {level}" for level in ("50%", "95%", "99%"))]
    return (
        f"<p class='lead'>{html.escape(sentence)}</p><details open='open'><summary>At another "
        f"epsilon</summary>{views.grid(heads, rows)}</details>"
    )


def _ledger(budget: Budget) -> str:
    rows = budget.ledger.history(budget.name)
    last = rows[-20:]
    cells = [
        [
            str(row["number"]),
            str(row["at"])[:16].replace("T", " "),
            str(row["function"]),
            str(row["dataset"]) or "not declared",
            f"{row['n']:,}",
            f"{row['epsilon']:g}",
            f"{row['delta']:g}",
            f"{row['charged']:.4g}",
        ]
        for row in last
    ]
    heads = ["", "when", "function", "data", "n", "epsilon", "delta", "gamma charged"]
    shown = views.grid(heads, cells) if cells else "<p>Nothing was spent yet.</p>"
    cut = f"<p class='note'>The last {len(last)} of {len(rows):,}.</p>" if len(rows) > len(last) else ""
    chart = svg(budget._chart()) if rows else ""
    return f"<h2>What was spent</h2>{budget._repr_html_()}{chart}{shown}{cut}"


_LIBRARIES = ("numpy", "scipy", "cloudpickle", "narwhals")


def _again(
    function: PrivateFunction[..., Any],
    found: list[tuple[Sensitivity, str | None, str]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> str:
    """Say what is needed to reproduce the estimates."""
    from importlib import metadata

    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("privatize", *_LIBRARIES))
    rows = [
        ("versions", f"Python {platform.python_version()}, {versions}"),
        ("platform", f"{platform.system()} {platform.machine()}"),
        ("written", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
    ]
    for estimate, key, _ in found:
        known = key if key is not None else "none: something in it cannot be encoded, so it is not remembered"
        rows.append((f"fingerprint, n={estimate.n:,}", known))
        rows.append(
            (f"seeds, n={estimate.n:,}", f"{estimate.seed} of the pairs, {estimate.coin_seed} of the coins")
        )
    name = _written(function)
    rest = _others(args, kwargs) + (["like=data[:0]"] if kwargs.get("like") is not None else [])
    lines = [
        f"{name}.replace(seed={estimate.seed}, store=None).estimate({', '.join([str(estimate.n), *rest])})"
        for estimate, _, _ in found
    ]
    shown = "".join(f"<p><code>{html.escape(line)}</code></p>" for line in lines)
    return (
        f"<h2>To reproduce it</h2>{views.table(rows)}<p>The same function and versions give the same "
        f"gaps:</p>{shown}"
    )
