"""The sections of a report: HTML about a function, its estimates, its budget, and how to repeat it."""

import html
import inspect
import math
import platform
import time
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import numpy as np

from privatize.budgets.budget import Budget
from privatize.calibration.sensitivity import Sensitivity
from privatize.display.cards import grid, table
from privatize.display.figures import amount, round_up
from privatize.errors import SettingsError
from privatize.function.private_function import PrivateFunction
from privatize.function.release import error_of
from privatize.mechanisms import Bernstein, Exponential
from privatize.mechanisms.weighted import weighted
from privatize.outputs.structure import Number

_LIBRARIES = ("privatize", "numpy", "scipy", "cloudpickle", "narwhals")
_HEADS = ("", "when", "function", "data", "n", "epsilon", "delta", "gamma charged")
_NUMBERS = ("{n:,}", "{epsilon:g}", "{delta:g}", "{charged:.4g}")
_CHARGE = ("{number}", "{at:.16}", "{function}", "{dataset}", *_NUMBERS)  # what is shown of one
_MEANING: dict[type, str] = {
    Exponential: "the chosen response's score is within {} of the best one",
    Bernstein: "each value on the lattice is within ± {} of the raw one",
}


@dataclass(frozen=True)
class Subject:
    """What a report is about: a private function and its public arguments."""

    function: PrivateFunction[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def promise(self, estimate: Sensitivity) -> str:
        """Say what is promised, and what is not."""
        s = self.function.settings
        times = math.exp(s.epsilon) if s.epsilon < 700 else math.inf
        delta = f" (up to a probability of {s.delta:g})" if s.delta else ""
        return (
            f"<h1>The promise of <code>{html.escape(self.function.__name__)}</code></h1>"
            f"<p class='lead'>If one person's record is replaced, no answer becomes more than "
            f"e<sup>{s.epsilon:g}</sup> = {times:.4g} times as likely{delta}, on all but a share "
            f"γ = {estimate.gamma:g} of random pairs of such neighbouring datasets "
            f"({round_up(estimate.average_gamma)} on average over calibrations).</p>"
            f"<p class='note'>This is <i>random</i> differential privacy: a promise about typical data under "
            f"the public distribution P below, for replaced records, with the number of records known, and "
            f"with code that is trusted. It says nothing about the worst dataset that an adversary could "
            f"think of. Every answer spends its ε anew.</p>"
        )

    def about(self) -> str:
        """Say what the function is, and what P draws."""
        s, raw, others = self.function.settings, self.function.__wrapped__, ", ".join(self._others())
        doc = inspect.getdoc(raw) if inspect.isfunction(raw) else None
        clip = "are brought into P's support first" if s.domain == "clip" else "are taken as they are"
        rows = [
            ("function", self.function.definition.label),
            ("what it says it does", doc.splitlines()[0] if doc else ""),
            ("private data", ", ".join(self.function.definition.binding.names)),
            ("other arguments", others),
            ("mechanism", repr(s.mechanism)),
            ("P, one record", repr(s.sampler)),
            ("private records", clip),
            ("timeout", "" if s.timeout is None else f"{s.timeout:g} s for a pair"),
        ]
        drawn = ""
        describe = getattr(s.sampler, "describe", None)
        if describe is not None:
            drawn = (
                f"<details><summary>What P draws</summary><div class='scroll'><div style='min-width:36rem'>"
                f"{describe(1000, seed=0)._repr_html_()}</div></div></details>"
            )
        return f"<h2>What it is</h2>{table([row for row in rows if row[1]])}{drawn}"

    def estimate(self, found: Sensitivity, known: float | None) -> str:
        """Say what an estimate means for an answer, and how it was found."""
        s, card = self.function.settings, found.card(known)
        why = (
            f"<p>{html.escape(self.function.__name__)} was run on pairs of datasets drawn from P that differ "
            f"in one record. How far its answers were apart sets the noise.</p>"
        )
        scale = weighted(s.mechanism, found.weights).scale(found.value, s.epsilon, s.delta)
        noise = ("noise", f"{type(s.mechanism).__name__}, scale {amount(scale)}")
        shown = replace(card, rows=[found.plan.rows()[0], *card.rows, noise]).section()
        return f"<h2>With {found.n:,} records</h2>{self._meaning(found)}<h3>How it was found</h3>{why}{shown}"

    def _meaning(self, found: Sensitivity) -> str:
        """Say what the noise means for an answer, in words and for several epsilons."""
        s = self.function.settings
        try:
            main = error_of(s, found, 0.95)
        except SettingsError:
            return ""
        single = np.size(main) == 1 and isinstance(found.structure, Number)
        usual = f"{'the answer' if single else 'each number'} is within ± {{}} of the raw one"
        what = _MEANING.get(type(s.mechanism), usual).format(amount(main))
        rows = []
        for times in (0.1, 0.5, 1.0, 2.0, 10.0):
            try:
                at = replace(s, epsilon=s.epsilon * times)
                cells = [amount(error_of(at, found, level), 3) for level in (0.5, 0.95, 0.99)]
            except SettingsError:  # this mechanism is not proven there
                continue
            rows.append([f"{at.epsilon:.4g}{' (this)' if times == 1 else ''}", *cells])
        heads = ["epsilon", *(f"± with {level}" for level in ("50%", "95%", "99%"))]
        return (
            f"<p class='lead'>{html.escape(f'With 95% probability, {what}.')}</p><details open='open'>"
            f"<summary>At another epsilon</summary>{grid(heads, rows)}</details>"
        )

    def unaudited(self, n: int) -> str:
        """Say how an audit is made, where there is none."""
        line = f"audit({', '.join([self._name, str(n), *self._others()])})"
        return f"<h2>Was it checked?</h2><p>No audit is included: {_code(line)} makes it.</p>"

    def again(self, found: list[tuple[Sensitivity, str | None]]) -> str:
        """Say what is needed to reproduce the estimates, of which each comes with its key."""
        versions = ", ".join(f"{name} {metadata.version(name)}" for name in _LIBRARIES)
        rows = [
            ("versions", f"Python {platform.python_version()}, {versions}"),
            ("platform", f"{platform.system()} {platform.machine()}"),
            ("written", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        ]
        rest = self._others() + (["like=data[:0]"] if self.kwargs.get("like") is not None else [])
        lines = []
        for made, key in found:
            unknown = "none: something in it cannot be encoded, so it is not remembered"
            rows.append((f"fingerprint, n={made.n:,}", unknown if key is None else key))
            rows.append((f"seeds, n={made.n:,}", f"{made.seed} of the pairs, {made.coin_seed} of the coins"))
            call = f"estimate({', '.join([str(made.n), *rest])})"
            lines.append(f"<p>{_code(f'{self._name}.replace(seed={made.seed}, store=None).{call}')}</p>")
        same = "The same function and versions give the same gaps:"
        return f"<h2>To reproduce it</h2>{table(rows)}<p>{same}</p>{''.join(lines)}"

    @property
    def _name(self) -> str:
        """What the function is called in a line of code."""
        return self.function.__name__ if self.function.__name__.isidentifier() else "f"

    def _others(self) -> list[str]:
        """Return the other arguments as they are written in a call."""
        named = [f"{k}={_brief(v)}" for k, v in self.kwargs.items() if k != "like"]
        return [*map(_brief, self.args), *named]


def _code(line: str) -> str:
    return f"<code>{html.escape(line)}</code>"


def _brief(value: Any) -> str:
    """Return a short argument as it is, and of a long one only what it is: it may be data, by a slip."""
    text = repr(value)
    if len(text) <= 80:
        return text
    size = f" of {len(value):,}" if hasattr(value, "__len__") else ""
    return f"<{type(value).__name__}{size}>"


def ledger(budget: Budget) -> str:
    """Say what was spent from a budget, and for what."""
    rows = budget.ledger.history(budget.name)
    last = [row | {"dataset": row["dataset"] or "not declared"} for row in rows[-20:]]
    cells = [[form.format(**row) for form in _CHARGE] for row in last]
    shown = grid(_HEADS, cells) if cells else "<p>Nothing was spent yet.</p>"
    cut = f"<p class='note'>The last {len(last)} of {len(rows):,}.</p>" if len(rows) > len(last) else ""
    card = budget.card()
    body = replace(card, chart=budget.chart() if rows else None).section()
    return f"<h2>What was spent</h2><div><b>{html.escape(card.title)}</b></div>{body}{shown}{cut}"
