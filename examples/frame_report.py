"""A private report about a data frame: several questions about a CSV of patients, under one budget.

P says what is public about such patients: what the form allows, and what the yearbook says. The patients are
made up, but not from P: they differ from it, as yours will. They are sealed where they are read, so the
rest of the script cannot look at them, and only private answers come out.

    python examples/frame_report.py                  prints the report
    python examples/frame_report.py --quick          with fewer patients and pairs
    python examples/frame_report.py --report FILE    also writes what one of the answers promises, as HTML

Needs pandas. docs/tutorial.md goes through such questions slowly.
"""

import argparse
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privatize import Budget, Sealed, configure, private_source, privatize, report, samplers
from privatize.errors import BudgetExceeded

WARDS = ["surgery", "internal", "children", "other"]
BEDS = [0.45, 0.3, 0.2, 0.05]  # their shares, from the yearbook

# --- 1. P, from public knowledge: one entry for each column of the file -------------------------


def stays(columns: dict[str, Any], rng: np.random.Generator) -> Any:
    """Draw days in hospital: about a week, says the yearbook, and older patients stay longer."""
    return rng.exponential(4 + columns["age"] / 15)


P = samplers.table(
    # Whatever else is written there counts as "other". A ward that is smaller than P says gets too little
    # noise, since each of its patients moves its mean further.
    ward=samplers.categorical(WARDS, p=BEDS, unknown="other"),
    age=samplers.integers(0, 110),
    days=samplers.dependent(stays, support=(0, 90)),  # to the minute, as recorded; more than 90 count as 90
    again=samplers.boolean(0.2),  # whether they came back within a month
)

# --- 2. the questions, all of them before the first answer, and what each may cost ---------------

PROMISE: dict[str, Any] = {"epsilon": 0.25, "gamma": 0.05, "sampler": P, "seed": 1}


@privatize(**PROMISE)
def patients_by_ward(d: pd.DataFrame) -> Any:
    """Count patients. All wards are there, also an empty one: `observed=False`."""
    return d.groupby("ward", observed=False).size()


@privatize(**PROMISE)
def days_by_ward(d: pd.DataFrame) -> Any:
    """Return the mean stay in each ward; a ward without patients would have 0."""
    return d.groupby("ward", observed=False)["days"].mean().fillna(0)


@privatize(**PROMISE)
def days_quantiles(d: pd.DataFrame) -> Any:
    """Return how long a quarter, half and nine tenths of the patients stay at most."""
    return d["days"].quantile([0.25, 0.5, 0.9])


@privatize(**PROMISE)
def came_back(d: pd.DataFrame) -> float:
    """Return the share of patients who came back."""
    return float(d["again"].mean())


QUESTIONS = {
    "patients in each ward": patients_by_ward,
    "mean days in each ward": days_by_ward,
    "quantiles of the days": days_quantiles,
    "share that came back": came_back,
}
HOSPITAL = Budget("hospital-2026", epsilon=1, gamma=0.2, ledger="memory")  # a file keeps it after today

# --- 3. the private data, sealed where it is read ------------------------------------------------


@private_source(name="patients", version="2026", sampler=P, budget=HOSPITAL)
def load(path: Path) -> pd.DataFrame:
    """Read the file."""
    return pd.read_csv(path)


def write_patients(path: Path, n: int) -> None:
    """Make up patients who are not from P: other ages, other stays, and a ward that P does not have."""
    rng = np.random.default_rng(20)
    ward = rng.choice(["surgery", "internal", "children", "Eyes"], n, p=[0.4, 0.35, 0.18, 0.07])
    adults = rng.normal(58, 18, n).clip(16, 104)
    age = np.where(ward == "children", rng.uniform(0, 16, n), adults).astype(int)
    days = rng.lognormal(np.where(ward == "surgery", 1.9, 1.4), 0.7).round(3)
    again = rng.random(n) < np.where(age > 70, 0.25, 0.12)
    pd.DataFrame({"ward": ward, "age": age, "days": days, "again": again}).to_csv(path, index=False)


# --- 4. the report -------------------------------------------------------------------------------


def line(name: str, value: float, error: float) -> str:
    """Return a number and how far it may be off, to two digits of the latter."""
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"  {name:12} {value:9.{digits}f} ± {error:.{digits}f}"


def show(title: str, release: Any) -> None:
    """Print an answer with how far each of its numbers may be from the raw one."""
    low, high = release.interval()  # with 95% probability, for each number by itself
    print(f"\n{title} (epsilon={release.epsilon:g}, gamma={release.gamma:g})")
    if isinstance(release.value, float):
        print(line("all", release.value, (high - low) / 2))
    else:
        for name in release.value.index:
            print(line(str(name), release.value[name], (high[name] - low[name]) / 2))


def ask(patients: Sealed, questions: dict[str, Any]) -> None:
    """Print what is known beforehand, then ask, until the budget is spent."""
    n = patients.n  # the number of records is public
    print(f"{patients}\n{HOSPITAL}\n")
    print("before anything is asked: each number is within ± this, 19 times out of 20")
    for title, question in questions.items():
        print(f"  {title:24} ± {np.asarray(question.error_at(n)).max():.3g}")
    for title, question in questions.items():
        show(title, question.release(patients))
    print(f"\n{HOSPITAL}\none question too many:")
    try:
        questions["share that came back"](patients)
    except BudgetExceeded as refused:
        print(f"  {refused}")


def main(quick: bool, page: str | None) -> None:
    """Make the file up, load it, and report."""
    configure(store=None)  # an example leaves nothing behind; without it, estimates are kept for next time
    fewer: dict[str, Any] = {"samples": "least"} if quick else {}
    questions = {title: question.replace(**fewer) for title, question in QUESTIONS.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "patients.csv")
        write_patients(path, 1_000 if quick else 4_000)
        patients = load(path)
    ask(patients, questions)
    if page is not None:
        report(questions["mean days in each ward"], patients.n, budget=HOSPITAL).save(page)
        print(f"\nwhat was promised for the mean days in each ward: {page}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer patients and pairs")
    parser.add_argument("--report", metavar="FILE", help="where to write the promise, as HTML")
    given = parser.parse_args()
    main(given.quick, given.report)
