"""`privatize audit`: measure whether a private function keeps its promise."""

import argparse
from dataclasses import asdict
from typing import Any

from privatize.auditing import auditor
from privatize.auditing.findings import Audit
from privatize.cli.calls import ARGUMENTS, Call
from privatize.cli.command import Argument, Outcome, command
from privatize.errors import SettingsError

_MEASURING = ("pairs", "releases", "confidence", "seed", "workers")
_OWN = (*_MEASURING, "sampler", "under", "progress", "audit", "budget", "known")


@command(
    "audit",
    *ARGUMENTS,
    Argument("-n", type=int, metavar="N", help="number of records (default: that of --data)"),
    Argument("--pairs", type=int, help="fresh pairs of neighbours (default: 20/gamma, at least 1000)"),
    Argument("--releases", type=int, default=20_000, help="releases on each neighbour (default: 20000)"),
    Argument("--confidence", type=float, default=0.99, help="of the verdict (default: 0.99)"),
    Argument("--seed", type=int, help="seed of the fresh pairs"),
)
def audit(given: argparse.Namespace) -> Outcome:
    """Measure whether a private function keeps its promise.

    privatize audit app.stats:average_age -n 1000 --report audit.html
    privatize audit app.stats:Report.total --data app.people:staff
    """
    call = Call.of(given, _OWN)
    sizes = call.sizes([] if given.n is None else [given.n])
    if not sizes:
        raise SettingsError("How many records? Pass -n 1000, or --data with sealed data.")
    (n,) = sizes
    function, settings = call.function, {name: getattr(given, name) for name in _MEASURING}
    with call.explained():
        if call.file:  # the page must show the audited estimate, even if it cannot be remembered
            made = function.estimate(n, **call.arguments)
            if not function.remembers(n, **call.arguments):
                function = function.replace(seed=made.seed)
        found = auditor.audit(function, n, **settings, **call.arguments)
    facts = _facts(found) | {"function": call.name, "holds": found.holds, "verdict": found.verdict}
    problems = call.write(function, n, facts, audit=found)
    text = str(found) + (f"\n  {'report':28s} {given.report}" if "report" in facts else "")
    return Outcome(text, facts, 1 if not found.holds else 2 if problems else 0, problems)


def _facts(found: Audit) -> dict[str, Any]:
    """Return an audit as facts for JSON, with only the largest of its many losses."""
    facts = asdict(found)
    for coverage in (facts["coverage"], *facts["under"]):
        losses = coverage.pop("losses")
        coverage["largest_loss"] = float(losses[-1]) if len(losses) else None
    return facts
