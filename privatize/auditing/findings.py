"""What an audit found, whether the promise held, and how that is shown."""

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatize.auditing.coverage import Coverage
from privatize.auditing.distinguishing import Told
from privatize.display.cards import Card, Shown, page
from privatize.display.charts import Chart, Layer, onto
from privatize.display.figures import promise
from privatize.errors import AuditError

_REMEDY = (
    "calibrate again (forget()); if it fails again, P, the mechanism or the version= that attests the "
    "function is wrong"
)


@dataclass(frozen=True, kw_only=True)
class Audit(Shown):
    """What an audit measured, and whether the promise held.

    Attributes
    ----------
    function : str
        Name of the function.
    n : int
        Number of records.
    epsilon, delta, gamma : float
        What is claimed.
    sensitivity : float
        The estimate.
    confidence : float
        Probability that a promise that is kept passes (but see `rho`).
    rho : float
        Probability that the calibration itself is an unlucky one, which gamma includes.
    coverage : Coverage
        Under P.
    under : tuple of Coverage
        Under other distributions, for which nothing is claimed.
    told : tuple of Told
        How well releases tell neighbours apart.
    seed : int
        Seed of the fresh pairs.
    own : bool
        Whether it was measured under the function's own P.
    members : int
        Under how many members of a family of P it was measured; `coverage` is that of the worst.
    """

    function: str
    n: int
    epsilon: float
    delta: float
    gamma: float
    sensitivity: float
    mechanism: str
    bound: str
    confidence: float
    rho: float
    coverage: Coverage
    under: tuple[Coverage, ...]
    told: tuple[Told, ...]
    seed: int
    own: bool = True
    members: int = 1

    @property
    def holds(self) -> bool:
        """Whether nothing that was measured contradicts the promise."""
        return self.coverage.holds and all(told.holds for told in self.told)

    @property
    def verdict(self) -> str:
        """The result, in one sentence."""
        if self.holds:
            return "nothing that was measured contradicts the promise"
        failed = []
        if not self.coverage.holds:
            failed.append(
                f"at least {self.coverage.least:.4g} of all neighbours are beyond the estimate, and "
                f"gamma={self.gamma:.4g} is claimed"
            )
        failed += [told.verdict for told in self.told if not told.holds][:1]
        where = "" if self.own and self.members == 1 else f"under {self.coverage.sampler} "
        return f"{where}the promise is broken: " + "; ".join(failed)

    def assert_holds(self) -> None:
        """Raise an AuditError if the promise is broken, for tests.

        Raises
        ------
        AuditError
            An AssertionError, with the entire audit as its message.
        """
        if not self.holds:
            raise AuditError(str(self))

    def __str__(self) -> str:
        return f"{self._title}: {self.verdict}{self.card().text().removeprefix(self._title)}"

    def html(self) -> str:
        """Return the audit as a page."""
        return page(self._title, f"<h1>{html.escape(self._title)}</h1>{self.card().section()}")

    def plot(self, ax: Any = None) -> Any:
        """Plot the profile of the promise: which share of neighbours gets which epsilon.

        Needs matplotlib (the extra ``plot``). Returns the axes.
        """
        return onto(self._chart(), ax)

    def card(self) -> Card:
        """Return the audit as a card, its verdict first."""
        # The text itself has no color: none of these is readable on white and on black alike.
        color = "#16a34a" if self.holds else "#dc2626"
        style = f"border-left:.4em solid {color};padding-left:.6em;margin:.5em 0"
        verdict = f"<p style='{style}'><b>{html.escape(self.verdict)}</b></p>"
        return Card(self._title, list(self._rows()), self._chart(), lead=verdict)

    @property
    def _title(self) -> str:
        return f"audit of {self.function}, n={self.n:,}"

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield "claimed", promise(self.epsilon, self.delta, self.gamma)
        yield "noise", f"{self.mechanism}, for a sensitivity of {self.sensitivity:.4g}"
        where = "coverage under P" if self.own else f"under {self.coverage.sampler}"[:28]
        yield where, self._covered(self.coverage)
        if self.members > 1:
            yield "", f"under the worst of {self.members} members, {self.coverage.sampler}"
        yield "the smallest gamma supported", self._supported()
        yield "losses", _losses(self.coverage)
        for told in self.told:
            yield "telling neighbours apart", told.verdict
            if told.shape_low is not None:
                what = "delta" if told.delta else "epsilon"
                yield "", f"the noise looks {told.shape}, and its width shows {what} >= {told.shape_low:.3g}"
            yield "", f"{told.releases:,} releases on each, at a gap of {told.gap:.4g}"
        for other in self.under:
            yield f"under {other.sampler}"[:28], self._covered(other)
            if other.divergence is None:
                yield "", "its KL divergence has no closed form here, so nothing is certain there"
            else:
                yield "", f"KL {other.divergence:.3g}: gamma={other.transferred:.3g} is certain there"
        alarms = f"at most {1 - self.confidence:.2g}, and rho={self.rho:.2g} for an unlucky calibration"
        yield "false alarms", alarms
        if not self.holds:
            yield "what to do", _REMEDY

    def _covered(self, coverage: Coverage) -> str:
        return (
            f"{coverage.beyond} of {coverage.pairs:,} fresh pairs are beyond: {coverage.share:.4g}, "
            f"[{coverage.low:.4g}, {coverage.high:.4g}] at {1 - (1 - self.confidence) / 2:.4g}"
        )

    def _supported(self) -> str:
        """Say which gamma the pairs can confirm: finitely many of them never confirm a smaller one."""
        own, claimed = self.coverage, f"{self.gamma:.4g}"
        shown = f"{own.high:.4g}"
        if not own.holds:
            return f"{shown}; the pairs contradict {claimed}"
        if own.high <= self.gamma:
            return f"{shown}, so {own.pairs:,} fresh pairs confirm {claimed}"
        more = "more pairs could confirm it" if self.gamma else "no number of pairs could confirm it"
        return (
            f"{own.pairs:,} fresh pairs can confirm a gamma of {shown} or more; they do not "
            f"contradict {claimed}, and {more}"
        )

    def _chart(self) -> Chart:
        """Return the profile: for each epsilon, which share of neighbours gets more."""
        own = self.coverage
        finite = own.losses[np.isfinite(own.losses)]
        most = max(float(finite[-1]) if len(finite) else 0.0, self.epsilon) * 1.1
        x = np.linspace(0.0, most, 201).tolist()
        layers = [Layer("step", x, list(map(own.at, x)), (), f"{own.pairs:,} fresh pairs")]
        for other in self.under:
            more = list(map(other.at, x))
            layers.append(Layer("step", x, more, (), f"under {other.sampler}", "orange", dashed=True))
        layers.append(Layer("point", [self.epsilon], [self.gamma], (), "claimed", "red"))
        title = f"{self.function}, n={self.n:,}: how many get more than each epsilon"
        limits = (min(self.gamma or 1.0, 1 / own.pairs) / 2, 1.0)
        return Chart(title, "epsilon", "share of neighbours with more", tuple(layers), log="y", limits=limits)


def _losses(coverage: Coverage) -> str:
    shares = [s for s in (0.5, 0.9, 0.99) if s * coverage.pairs < coverage.pairs]
    found = [(s, float(np.quantile(coverage.losses, s, method="higher"))) for s in shares]
    worst = f"the largest seen {coverage.losses[-1]:.3g}"
    return "; ".join([*(f"{s:.0%} of pairs up to {x:.3g}" for s, x in found), worst])
