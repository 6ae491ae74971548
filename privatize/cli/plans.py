"""`privatize plan`: compare how many pairs each bound needs for a promise."""

import argparse
import math
import textwrap
from typing import Any

from privatize.cli.command import Argument, Outcome, command
from privatize.cli.showing import columns, cost, one_line
from privatize.display.figures import duration
from privatize.errors import PlanError, SettingsError
from privatize.planning.plan import BOUNDS, plan


def _pairs(text: str) -> int | str:
    if text in ("least", "balanced"):
        return text
    try:
        return int(text)
    except ValueError:
        message = f"{text!r} is not a number of pairs, 'least' or 'balanced'"
        raise argparse.ArgumentTypeError(message) from None


_NUMBERS = {"m": ",", "k": ",", "gamma": ".4g", "rho": ".3g", "evaluations": ","}
_COST = "time of one run of the function: 0.5, 500us, 10ms, 2s, 1min (default: 10ms)"


@command(
    "plan",
    Argument("--gamma", type=float, help="confidence of random DP: the promise may fail on this share"),
    Argument("--share", type=float, metavar="S", help="promise gamma to each group that is a share S of P"),
    Argument("--m", type=_pairs, metavar="N|least|balanced", help="number of pairs (default: both)"),
    Argument("--bound", choices=BOUNDS, help="one bound only"),
    Argument("--cost", default="10ms", help=_COST),
    Argument("--workers", type=int, default=1, metavar="W", help="number of cores (default: 1)"),
)
def plans(given: argparse.Namespace) -> Outcome:
    """Tell how many pairs of neighbours each bound needs, and how long that takes.

    privatize plan --gamma 0.05
    privatize plan --gamma 0.01 --bound tolerance --cost 2s --workers 8
    privatize plan --m 1000              # which gamma do 1000 pairs support?
    privatize plan --gamma 0.05 --share 0.1   # 0.05 for a group that is a tenth of P
    """
    if given.gamma is None and not isinstance(given.m, int):
        raise SettingsError("""plan needs --gamma 0.05 (to find the number of pairs) or --m 557 (to find the
            least gamma).""")
    seconds = cost(given.cost)
    if given.workers < 1:
        raise SettingsError(f"--workers {given.workers} is not a number of cores >= 1.")
    modes = ["least", "balanced"] if given.m is None else [given.m]
    bounds = BOUNDS if given.bound is None else (given.bound,)
    promise = given.gamma, given.share
    rows = [_row(promise, mode, bound, seconds, given.workers) for bound in bounds for mode in modes]
    facts = {"gamma": given.gamma, "share": given.share, "m": given.m, "cost": seconds}
    facts |= {"workers": given.workers, "rows": rows}
    if all("problem" in row for row in rows):
        raise PlanError(_why_impossible(given.gamma, rows))
    return Outcome(_text(given, seconds, rows), facts)


def _row(promise: tuple[Any, Any], mode: Any, bound: Any, seconds: float, workers: int) -> dict[str, Any]:
    row: dict[str, Any] = {"bound": bound, "mode": mode if isinstance(mode, str) else "given"}
    try:
        found = plan(promise[0], mode, bound=bound, share=promise[1])
    except PlanError as error:
        asked = mode if isinstance(mode, int) else None
        return row | {"m": asked, "problem": one_line(error), "least_m": error.least_m}
    took = 2 * math.ceil(found.m / workers) * seconds
    numbers = {"m": found.m, "k": found.k, "rho": found.rho, "gamma": found.gamma}
    return row | numbers | {"evaluations": 2 * found.m, "seconds": took}


def _why_impossible(gamma: float | None, rows: list[dict[str, Any]]) -> str:
    """Return why no plan is possible: one reason, or what each bound needs."""
    reasons = list(dict.fromkeys(row["problem"] for row in rows))
    if len(reasons) == 1 or any(row["least_m"] is None for row in rows):
        return str(reasons[0])
    needs = ", ".join(f"{row['bound']} {row['least_m']:,}" for row in rows)
    return f"gamma={gamma:g} is out of reach of {rows[0]['m']:,} pairs. The bounds need at least: {needs}."


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return what the table shows of a plan."""
    numbers = ("-" if row.get(name) is None else format(row[name], how) for name, how in _NUMBERS.items())
    time = "out of reach" if "problem" in row else duration(row["seconds"])
    return row["bound"], row["mode"], *numbers, time


def _text(given: argparse.Namespace, seconds: float, rows: list[dict[str, Any]]) -> str:
    cores = "1 core" if given.workers == 1 else f"{given.workers} cores"
    shown = [("bound", "mode", *_NUMBERS, "time"), *map(_cells, rows)]
    notes = dict.fromkeys(f"{row['bound']}: {row['problem']}" for row in rows if "problem" in row)
    lines = [columns(shown, right=range(2, 8)), ""]
    lines += [line for note in notes for line in textwrap.wrap(note, 100)]
    lines.append(
        f"The function runs twice for each of m sampled pairs; the time is for {duration(seconds)} a run "
        f"(--cost) on {cores}."
    )
    if given.share is not None:
        group = f"gamma={given.gamma:g} is for each group that is a share {given.share:g} of P"
        lines.append(f"{group}; the table has gamma for everybody.")
    if any((row["bound"], row["mode"]) == ("tolerance", "balanced") for row in rows):
        lines.append("tolerance, balanced is the default of @privatize(gamma=...).")
    if any(row["bound"] == "marginal" and "problem" not in row for row in rows):
        lines.append("marginal holds on average over calibrations, the others for nearly every single one.")
    return "\n".join(lines)
