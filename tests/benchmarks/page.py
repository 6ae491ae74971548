"""Write the page of the docs from the JSON of a run: its decisive rows, and where the library is slow."""

import math
import textwrap
from collections.abc import Iterator
from typing import Any

from .measuring import ROOT, Result

PAGE = ROOT / "docs" / "benchmarks.md"
_EVEN = 1.2  # by how much a processor's speed may vary without mention
SVM, LONGER = (f"linear SVM, n=1,000, d=8, m={m}" for m in ("1,500", "6,000"))
NUMPY_BLOCK = "mean, 100 blocks of 200 numbers, for each block"
# The rows of the page: what a user asks, and the result that answers it.
QUESTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "A calibration": {
        "the function takes 100 µs, a float": ("calibration", "a float, f = 100 µs, per pair"),
        "100 µs, a dict": ("calibration", "a dict, f = 100 µs, per pair"),
        "100 µs, a series, from a frame": ("calibration", "a frame, to a series, f = 100 µs, per pair"),
        "20 questions on one frame": ("a catalogue", "20 questions, data frames of pandas"),
        "people with 8 rows, pandas": ("people", "pandas: 8 rows each"),
        "stress test, a mean": ("calibration", "the stress test, mean of 1,000 numbers"),
        '`"auto"`, 20 means': ("calibration", 'scaled="auto", means of 20 columns from 3 factors'),
    },
    "What saves time": {
        "`batch=`": ("calibration", "batch=, uniform numbers, per pair"),
        "`additive`, 5 means": ("amortization", "additive: means of 5 columns"),
        "two processes, 1 ms": ("execution", "two processes, f = 1 ms"),
        "two processes, 10 ms": ("execution", "two processes, f = 10 ms"),
        "Dask, 10 ms": ("execution", "Dask, two workers here, f = 10 ms"),
        "Ray, 10 ms": ("execution", "Ray, two workers here, f = 10 ms"),
    },
    "The authors' R package": {
        "a mean, m=50,000": ("the R package", "mean of Exp(1), n=1,000, m=50,000, plain"),
        "SVM, new workers": ("the R package", f"{SVM}, two workers, started first"),
        "SVM, `workers=None`, new workers": ("the R package", f"{SVM}, workers=None, started first"),
        "SVM, four times as many pairs, new workers": (
            "the R package",
            f"{LONGER}, two workers, started first",
        ),
        "SVM, warm workers": ("the R package", f"{SVM}, two workers, warm"),
    },
    "A call, beyond the raw function": {
        "1,000 numbers": ("calls", "warm call over the raw function, 1,000 numbers"),
        "1,000 rows, pandas": ("calls", "warm call over the raw function, a frame of 1,000 rows"),
        "a method": ("calls", "warm call, a method"),
        "a catalogue's question": ("calls", "warm call, a catalogue's member, with a budget in memory"),
        "`fit`, GaussianNB": ("calls", "PrivateEstimator.fit over the raw fit, GaussianNB"),
        "`fit`, LogisticRegression": ("calls", "PrivateEstimator.fit over the raw fit, LogisticRegression"),
        "first answer, with calibration": ("calls", "first answer after the import, mean of 1,000 numbers"),
        "`import privatize`": ("calls", "import privatize"),
    },
    "Blocks, checks, learning": {
        "a block, numpy": ("blocks", NUMPY_BLOCK),
        "a block, scikit-learn": (
            "blocks",
            "logistic regression, 50 blocks of 500 of 25,000 x 10, for each block",
        ),
        "`check_fit`, 1 ms": ("check_fit", "check_fit, f = 1 ms"),
        "`check_fit`, 10 ms": ("check_fit", "check_fit, f = 10 ms"),
        "`learn`, 10⁶ rows, pandas": ("learning", "learn, pandas, 1,000,000 x 10"),
    },
    "Noise and answers": {
        "1,000 numbers, Laplace": ("peers", "Laplace noise, 1,000 numbers", "opendp"),
        '`"matrix"`, 100 numbers': ("noise", 'Gaussian(scaled="matrix"), 100 numbers'),
        "a private mean, diffprivlib": ("peers", "private mean of 1,000 numbers", "diffprivlib"),
    },
    "Memory, drawing": {
        "n=1,000,000": ("memory", "plain, n=1,000,000, m=100"),
        "n=10,000,000": ("memory", "plain, n=10,000,000, m=20"),
        "m=10,000,000, `additive`": ("memory", "additive, n=1,000, m=10,000,000"),
        "65 columns, pandas": ("drawing", "table of 65 columns, pandas, n=1,000, per number"),
    },
}
PAGE_TEXT = """\
# Speed, measured

What the library costs beyond running your function. In short: for functions that take a millisecond, a
calibration takes at most {most:.0%} longer than a bare loop that draws the same records and runs the
function on them.

{met} of {goals} goals are met. *×* is our time over theirs, so less is better; *times as fast* is their time
over ours.

{table}
## How it is measured

`python -m tests.benchmarks --docs` measures everything and writes this page. All {count} results of the
{kind} run of {date} ({minutes:.0f} minutes, {cores} cores, {system})
are in `tests/benchmarks/results.json`. {busy}The two times of a ratio were measured in turn, so ratios carry
over to other machines. The *bare loop* draws n + 1 records, evaluates, replaces one record,
and evaluates again, for frames with `pd.DataFrame` and `iloc`, so a ratio may be below 1.
R is diffpriv 0.4.2.9000.

## Where it is slow, and why

{slow}"""
BUSY = (
    "**The machine was busy with other work** (a load average of {:.1f} before the run), so these figures "
    "are only a sketch. "
)
UNEVEN = "**The processor was at times {:.1f} times as slow as at others.** "
WHOLE: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def figure(number: float | None) -> str:
    """Return a number with three significant digits."""
    if number is None:
        return ""
    if number == round(number):
        return f"{number:,.0f}"
    return f"{number:,.{max(0, 2 - math.floor(math.log10(abs(number))))}f}"


def cells(each: Result) -> list[str]:
    """Return a result as the cells of a row: name, ours, against, ratio, goal, verdict."""
    compared = each.against if each.theirs is None else f"{each.against}: {figure(each.theirs)} {each.unit}"
    times = " ×" if not each.faster else " times as few" if each.unit == "pairs" else " times as fast"
    ratio = "" if each.ratio is None else figure(each.ratio) + times
    verdict = "" if each.met is None else "met" if each.met else "**missed**"
    return [each.name, f"{figure(each.ours)} {each.unit}".strip(), compared, ratio, each.goal, verdict]


def line(each: Result) -> str:
    """Return a result as a line of the terminal."""
    name, ours, compared, ratio, goal, verdict = cells(each)
    text = f"  {name:58s} {ours:>14s} {ratio:>20s} {goal:>9s} {verdict.strip('*'):6s}"
    return f"{text}  {'; '.join(filter(None, (compared, each.note)))}".rstrip()


def find(results: list[Result], group: str, name: str, against: str = "") -> Result | None:
    """Return the result of a group with a name, compared with something; None if it was not measured."""
    same = (each for each in results if (each.group, each.name) == (group, name))
    return next((each for each in same if each.against.startswith(against)), None)


def _table(results: list[Result]) -> Iterator[str]:
    yield "|  | ratio | compared with | goal |"
    yield "|---|---|---|---|"
    for question, rows in QUESTIONS.items():
        found = {text: find(results, *where) for text, where in rows.items()}
        if any(found.values()):
            yield f"| **{question}** | | | |"
        for text, each in found.items():
            if each is not None:
                _, ours, compared, ratio, goal, verdict = cells(each)
                goal = ", ".join(filter(None, (goal.replace(" ", "", 1), verdict)))
                # Numbers of pairs say more than their ratio.
                shown = (
                    (ours, compared)
                    if each.unit == "pairs"
                    else (ratio or ours, each.against.partition(", ")[0])
                )
                yield f"| {text} | {' | '.join(shown)} | {goal} |"
    yield ""


def _slow(results: list[Result]) -> Iterator[str]:
    """Return the reasons, with the figures of this run; leave out what was not measured."""

    def ours(group: str, name: str) -> str:
        each = find(results, group, name)
        return "—" if each is None else cells(each)[1]

    yield (
        "- **New workers** must load libraries. Importing scikit-learn alone takes "
        f"{ours('the R package', f'{SVM}, two workers, importing scikit-learn alone')}, once."
    )
    yield (
        f"- **Blocks.** Each of them, hundreds in `check_fit`, has a process of its own, which takes "
        f"{ours('blocks', NUMPY_BLOCK)}, mostly for the fork."
    )
    yield (
        "- **Memory.** Two datasets are in memory if they are arrays of more than 4 MB, three if they are "
        "frames, up to five if they are smaller."
    )
    yield (
        "- **Budgets.** A charge is written to disk first: "
        f"{ours('budget', 'reserve, SQLite, 100,000 charges')} with SQLite, "
        f"{ours('budget', 'reserve, PostgreSQL, 100,000 charges')} with PostgreSQL."
    )


def _disturbed(run: dict[str, Any]) -> str:
    """Say what other work may have done to the figures."""
    slower = max(run["pace"]) / min(run["pace"])
    if slower > _EVEN:
        return UNEVEN.format(slower)
    return BUSY.format(run["load"]) if run["load"] > run["cores"] / 4 else ""


def write(run: dict[str, Any]) -> str:
    """Return the page."""
    results = [Result(**each) for each in run["results"]]
    goals = [each for each in results if each.met is not None]
    ratios = [each.ratio or 0.0 for each in results if each.group == "calibration" and "1 ms" in each.name]
    facts = {
        "met": sum(bool(each.met) for each in goals),
        "goals": len(goals),
        "most": max(ratios) - 1,
        "count": len(results),
        "kind": "quick" if run["quick"] else "full",
        "date": run["date"],
        "minutes": run["seconds"] / 60,
        "cores": run["cores"],
        "system": run["system"],
        "busy": _disturbed(run),
        "table": "\n".join(_table(results)),
        "slow": "\n".join(_slow(results)),
    }
    lines: list[str] = []
    for each in PAGE_TEXT.format(**facts).split("\n"):
        indent = "  " if each.startswith("- ") else ""
        long = len(each) > 120 and not each.startswith("|")
        lines += textwrap.wrap(each, 120, subsequent_indent=indent, **WHOLE) if long else [each]
    return "\n".join(lines).rstrip() + "\n"
