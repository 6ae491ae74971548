"""Run the benchmarks: `python -m tests.benchmarks [--quick] [--only NAME ...] [--json FILE] [--docs]`."""

import os

# One thread for BLAS everywhere, as in calibration; and no estimate is stored from run to run.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PRIVATIZE_STORE="")

import argparse
import importlib
import importlib.metadata
import json
import platform
import time
import traceback
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import privatize
from privatize.errors import PrivatizeWarning

from . import page
from .measuring import ROOT, Result, missing, pace

# In the order in which they run: those that start processes come last, to disturb no others.
NAMES = (
    "bounds",
    "calibration",
    "stress",
    "scaled",
    "calls",
    "noise",
    "peers",
    "ledger",
    "memory",
    "samplers",
    "people",
    "learning",
    "amortization",
    "catalogue",
    "execution",
    "blocks",
    "fit",
    "r_package",
)
LIBRARIES = ("numpy", "scipy", "pandas", "polars", "scikit-learn", "distributed", "ray")
RESULTS = ROOT / "tests" / "benchmarks" / "results.json"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries."""
    found = {"Python": platform.python_version(), "privatize": privatize.__version__}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def measure(names: list[str], quick: bool, peer: str | None) -> dict[str, Any]:
    """Run benchmarks, and print results as they come in."""
    start, load = time.perf_counter(), os.getloadavg()[0]
    results: list[Result] = []
    failed: list[str] = []
    paces: list[float] = []
    for name in names:
        paces.append(pace())
        began = time.perf_counter()
        print(f"\n{name}", flush=True)
        try:
            run = importlib.import_module(f".{name}", __package__).run
            found = run(quick, peer) if name == "peers" else run(quick)
        except Exception as error:  # the others run all the same
            traceback.print_exc()
            found = [missing(name, "all of it", f"failed: {type(error).__name__}")]
            failed.append(name)
        results += found
        for each in found:
            print(page.line(each))
        print(f"  ({time.perf_counter() - began:.0f} s)", flush=True)
    goals = [each for each in results if each.met is not None]
    seconds = time.perf_counter() - start
    print(f"\n{sum(bool(each.met) for each in goals)} of {len(goals)} goals met, {seconds:.0f} s")
    for each in goals:
        if not each.met:
            print(f"missed: {page.line(each).strip()}")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "quick": quick,
        "seconds": seconds,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": load,
        "pace": [*paces, pace()],
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions(),
        "failed": failed,
        "results": [vars(each) for each in results],
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two minutes in place of fifteen")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter that has opendp and diffprivlib")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results there")
    parser.add_argument("--docs", action="store_true", help=f"write docs/benchmarks.md, and {RESULTS.name}")
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="with --docs: from this JSON"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrivatizeWarning)  # nobody reads these answers
    if options.docs and options.only:
        parser.error("--docs needs all benchmarks: leave out --only")
    if options.source is not None:
        if not options.docs:
            parser.error("--from goes with --docs")
        run = json.loads(options.source.read_text())
    else:
        run = measure(options.only or list(NAMES), options.quick, options.peer)
        file = options.json or (RESULTS if options.docs else None)
        if file is not None:
            file.write_text(json.dumps(run, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    if run["failed"]:
        raise SystemExit(f"failed: {', '.join(run['failed'])}")  # the page needs all of them
    if options.docs:
        page.PAGE.write_text(page.write(run))


if __name__ == "__main__":
    main()
