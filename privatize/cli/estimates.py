"""`privatize estimate`: calibrate a private function ahead of time."""

import argparse
import time
from typing import Any

from privatize.cli.calls import ARGUMENTS, Call
from privatize.cli.command import Argument, Outcome, command
from privatize.cli.showing import columns, one_line
from privatize.config.policy import policy
from privatize.display.figures import amount, duration
from privatize.errors import CalibrationError, SettingsError
from privatize.function.accuracy import errors_of
from privatize.function.private_function import PrivateFunction
from privatize.function.remembering import store_of
from privatize.function.signal import signal_of
from privatize.mechanisms.exponential import Exponential
from privatize.mechanisms.weighted import weighted
from privatize.samplers.base import traits_of

_N = "number of records (may be repeated; default: the policy's for this function, or that of --data)"


@command(
    "estimate",
    *ARGUMENTS,
    Argument("-n", type=int, action="append", metavar="N", help=_N),
    interrupted="; where estimates are remembered, the same command goes on from here",
)
def estimate(given: argparse.Namespace) -> Outcome:
    """Calibrate a private function ahead of time, and remember it.

    privatize estimate app.stats:average_age -n 1000 -n 5000
    privatize estimate app/stats.py:histogram -n 1000 --set bins=10 --report histogram.html
    privatize estimate app.stats:Report.total --data app.people:staff
    """
    call = Call.of(given)
    sizes = _sizes(given, call)
    function = call.function if given.workers is None else call.function.replace(workers=given.workers)
    with call.explained():
        rows = [_row(function, n, call.arguments) for n in sizes]
    s = function.settings
    facts = {"function": call.name, "mechanism": type(s.mechanism).__name__, "epsilon": s.epsilon}
    facts |= {"delta": s.delta, "sampler": repr(s.sampler)}
    facts["arguments"] = {each: repr(value) for each, value in call.arguments.items()}
    facts |= {"store": store_of(s).url, "rows": rows}
    refused = [f"n={row['n']}: {row['refused']}" for row in rows if "refused" in row]
    unsaved = [row["n"] for row in rows if not row.get("kept", True)]
    problems = [f"n={n}: the estimate is not remembered, so it will be made again" for n in unsaved]
    if refused and call.file:
        problems.append("no report was written")
    elif not refused:
        problems += call.write(function, sizes if len(sizes) > 1 else sizes[0], facts)
    code = 1 if refused else 2 if problems else 0
    return Outcome(_text(function, facts), facts, code, (*refused, *problems))


def _sizes(given: argparse.Namespace, call: Call) -> list[int]:
    """Return the numbers of records from the command line, or else from the policy, the data or P."""
    sampler = call.function.settings.sampler
    fixed = None if sampler is None else traits_of(sampler).size
    sizes = call.sizes(given.n or policy().sizes.get(call.name) or ()) or ([] if fixed is None else [fixed])
    if not sizes:
        raise SettingsError(f"""How many records? Pass -n 1000, or put the number into the policy, in
            [tool.privatize]: n = {{"{call.name}" = [1000]}}.""")
    return sizes


def _row(function: PrivateFunction[..., Any], n: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Calibrate for one number of records, or recall the estimate; return its facts."""
    known = function.remembers(n, **arguments)
    start = time.perf_counter()
    try:
        found = function.estimate(n, **arguments)
    except CalibrationError as error:
        return {"n": n, "refused": one_line(error), "kind": type(error).__name__}
    took = round(time.perf_counter() - start, 3)
    s = function.settings
    mechanism = weighted(s.mechanism, found.shape)
    try:
        # Not error_at(), which would calibrate again if the estimate cannot be remembered.
        error95 = _one(errors_of(s, found, 0.95))
    except SettingsError:  # this mechanism has no such error
        error95 = None
    names = ("m", "k", "gamma", "rho", "bound", "norm", "failed", "looks", "seed")
    facts = {"n": found.n, "sensitivity": found.value} | {name: getattr(found, name) for name in names}
    facts |= {"scale": mechanism.scale(found.value, s.epsilon, s.delta), "remembered": known, "seconds": took}
    facts |= {"scaled": found.shape.kind, "signal": _one(signal_of(s, found))}
    return facts | {"kept": known or function.remembers(n, **arguments), "error95": error95}


def _one(numbers: Any) -> Any:
    """Return a number if all are the same, or all of them; None if they are not known."""
    if numbers is None:
        return None
    return float(numbers[0]) if (numbers == numbers[0]).all() else numbers


def _text(function: PrivateFunction[..., Any], facts: dict[str, Any]) -> str:
    what = ("noise scale", "± with 95%")
    if isinstance(function.settings.mechanism, Exponential):  # it chooses an answer and adds no noise
        what = ("temperature", "below best, 95%")
    rows = [("n", "sensitivity", "m", "k", "gamma", *what, "signal", "")]
    for row in facts["rows"]:
        if "refused" in row:
            rows.append((f"{row['n']:,}", "refused", *["-"] * 6, row["kind"]))
            continue
        how = "remembered" if row["remembered"] else f"took {duration(row['seconds'])}"
        how += "" if row["kept"] else ", NOT REMEMBERED"
        how += f", {row['failed']} pairs failed" if row["failed"] else ""
        how += f", scaled={row['scaled']!r}" if row["scaled"] != "none" else ""
        counts = (f"{row['n']:,}", f"{row['sensitivity']:.6g}", f"{row['m']:,}", f"{row['k']:,}")
        error = "-" if row["error95"] is None else amount(row["error95"])
        signal = "-" if row["signal"] is None else amount(row["signal"], 2)
        rows.append((*counts, f"{row['gamma']:.4g}", amount(row["scale"]), error, signal, how))
    where = facts["store"] if facts["store"] != "memory" else "memory, lost when this command ends"
    lines = [repr(function), columns(rows, right=range(8), indent="  "), f"  store: {where}"]
    return "\n".join([*lines, f"  report: {facts['report']}"] if "report" in facts else lines)
