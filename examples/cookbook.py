"""How far off answers to everyday questions are, each asked in several ways: the tables of docs/cookbook.md.

People are made up, and drawn from the P that sampled answers use. An error is the root of the mean square of
what is released minus the raw answer, over 100 runs with new people each time, at epsilon=1. "Other people"
is how much the raw answer itself varies from one group of people to the next.

    python examples/cookbook.py             prints the tables (some minutes)
    python examples/cookbook.py --quick     the same, of fewer people, pairs and runs
    python examples/cookbook.py --docs      writes them into docs/cookbook.md
    python examples/cookbook.py regression  makes this table alone

Needs pandas and scikit-learn.
"""

import argparse
import functools
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from privatize import Exponential, Gaussian, Laplace, additive, configure, privatize, samplers, sums
from privatize.constraints import correlations, survival
from privatize.errors import FragileEstimateWarning, UninformativeWarning

PAGE = Path(__file__).parents[1] / "docs" / "cookbook.md"
SIZES = (1_000, 10_000)

# -- the people: what is known without the data --

REGIONS = ["center", "east", "north", "south", "west"]
JOBS = ["care", "crafts", "driving", "farming", "office", "sales", "teaching", "other"]
NUMBERS = ["age", "income", "bmi", "pressure"]
Q, MONTHS = [0.1, 0.25, 0.5, 0.75, 0.9], np.arange(6, 61, 6)
STARTS = np.array([[2.0, 5.0], [5.0, 5.0], [8.0, 5.0]])  # where k-means begins: public

P = samplers.table(
    age=samplers.integers(18, 90),
    region=samplers.categorical(REGIONS, [0.3, 0.25, 0.2, 0.15, 0.1]),
    job=samplers.categorical(JOBS, [0.14, 0.11, 0.09, 0.03, 0.26, 0.17, 0.12, 0.08]),
    income=samplers.dependent(lambda c, rng: rng.gamma(4, 6_000 + 100 * c["age"]), support=(0, 200_000)),
    bmi=samplers.dependent(lambda c, rng: rng.normal(22 + c["age"] / 15, 4), support=(12, 60)),
    pressure=samplers.dependent(
        lambda c, rng: rng.normal(80 + 0.4 * c["age"] + c["bmi"], 12), support=(60, 240)
    ),
    # Until they died or left the study, or it ended.
    months=samplers.dependent(
        lambda c, rng: np.minimum(rng.exponential(6_000 / c["age"]), rng.exponential(120, len(c["age"]))),
        support=(0, 60),
    ),
    died=samplers.dependent(lambda c, rng: (c["months"] < 60) & (rng.random(len(c["age"])) < 0.5), [0, 1]),
)


def shoppers(width: float) -> Any:
    """Return a P of points in three clouds."""
    centers = [2.0, 2.0], [5.0, 8.0], [8.0, 3.0]
    return samplers.mixture([samplers.normal(center, width).truncated(0.0, 10.0) for center in centers])


SHOPPERS = shoppers(1.2)


Table = list[list[str]]


class Way(NamedTuple):
    """One way to ask a question."""

    title: str
    ask: Callable[[Any], Any]


class Question(NamedTuple):
    """A question, the ways to ask it, and in which numbers errors are told."""

    parts: list[str]
    raw: Callable[[Any], Any]
    ways: Callable[[], list[Way]]
    errors: Callable[[Any, Any, Any], list[float]]  # of the private answer, the raw one, and the people
    people: Any = P


def sampled(function: Any, mechanism: Any = None, people: Any = P, **more: Any) -> Any:
    """Make a function private by sampling."""
    mechanism = mechanism or Laplace()
    delta = 1e-6 if isinstance(mechanism, Gaussian) else 0.0
    settings = {"gamma": 0.05, "seed": 1} | QUICK | more
    return privatize(epsilon=1, delta=delta, sampler=people, mechanism=mechanism, **settings)(function)


def plain(function: Any, **more: Any) -> Any:
    """Make a function private that has bounds of its own."""
    return privatize(**{"epsilon": 1.0} | more)(function)


def then(ask: Callable[[Any], Any], finish: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what is made of a private answer, without any further use of the data."""
    return lambda people: finish(ask(people))


QUICK: dict[str, Any] = {}


def differences(private: Any, raw: Any, _: Any) -> list[float]:
    """Return the root of the mean square of all differences."""
    return [rms(np.asarray(private, dtype=float) - np.asarray(raw, dtype=float))]


def rms(errors: Any) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


# -- quantiles --


def quantiles(people: pd.DataFrame) -> Any:
    """Return a table of quantiles of income."""
    return people["income"].quantile(Q)


def quantile_ways() -> list[Way]:
    """Return the ways to ask for quantiles."""
    own = plain(sums.quantiles(Q, 0.0, 200_000.0))
    return [
        Way("sampled", sampled(quantiles)),
        Way("sampled, Gaussian", sampled(quantiles, Gaussian())),
        Way("plain, `sums.quantiles`", lambda people: own(people["income"])),
    ]


# -- the largest --


def jobs(people: pd.DataFrame) -> Any:
    """Count jobs."""
    return people["job"].value_counts().reindex(JOBS, fill_value=0)


def three(counts: Any) -> set[str]:
    """Return the three largest categories."""
    return set(pd.Series(counts).nlargest(3).index)


def largest(people: pd.DataFrame) -> set[str]:
    """Return the three jobs that most people have."""
    return three(jobs(people))


def missed(private: set[str], raw: set[str], _: Any) -> list[float]:
    """Return how many of the three are missing, in percent; not a root of a mean square."""
    return [100 - 100 * len(private & raw) / 3]


TRIPLES = list(itertools.combinations(JOBS, 3))
INSIDE = np.array([[job in triple for job in JOBS] for triple in TRIPLES], dtype=int)


def triples(people: pd.DataFrame) -> Any:
    """Score every three jobs by how many people have one of them."""
    return INSIDE @ np.bincount(people["job"].cat.codes, minlength=len(JOBS))


def largest_ways() -> list[Way]:
    """Return the ways to ask for the largest categories."""
    counts = plain(sums.counts(JOBS))
    drawn = privatize(
        epsilon=1,
        sensitivity=1,
        sampler=P,
        domain="as-is",
        mechanism=Exponential(responses=range(len(TRIPLES))),
    )(triples)
    return [
        Way("plain, `sums.counts`", lambda people: three(counts(people["job"]))),
        Way("plain, `Exponential`", lambda people: set(TRIPLES[drawn(people)])),
        Way("sampled counts", then(sampled(jobs), three)),
    ]


# -- means and counts of groups --


def groups(people: pd.DataFrame) -> Any:
    """Return the number of people and their mean income, by region."""
    return people.groupby("region", observed=False)["income"].agg(["count", "mean"])


def in_groups(people: pd.DataFrame) -> Any:
    """Return, for each person, a 1 in the column of their region, and their income, centered and scaled."""
    inside = np.asarray(people["region"])[:, None] == np.array(REGIONS)
    return np.hstack([inside, inside * (np.asarray(people["income"])[:, None] / 100_000 - 1)])


def as_groups(totals: Any) -> pd.DataFrame:
    """Return counts and means from counts and sums."""
    count, total = totals[:5], totals[5:]
    mean = 100_000 * np.clip(total / np.maximum(count, 1) + 1, 0, 2)
    return pd.DataFrame({"count": count, "mean": mean}, index=REGIONS)


def group_ways() -> list[Way]:
    """Return the ways to ask for means and counts together."""
    own = plain(additive(in_groups, average=False, bounds=sums.ball(2, 10, norm="l1")))
    return [
        Way("sampled", sampled(groups)),
        Way("plain, counts and clamped sums", then(own, as_groups)),
    ]


def group_errors(private: pd.DataFrame, raw: pd.DataFrame, _: Any) -> list[float]:
    """Return the errors of counts, and of means."""
    return [rms(np.asarray(private[name] - raw[name], dtype=float)) for name in ("count", "mean")]


# -- correlations --


def correlation(people: pd.DataFrame) -> pd.DataFrame:
    """Return the correlations of four columns."""
    return people[NUMBERS].corr()


def triangle(people: pd.DataFrame) -> Any:
    """Return every correlation once."""
    return np.asarray(correlation(people))[np.triu_indices(4, 1)]


def unit(people: pd.DataFrame) -> Any:
    """Return four columns in units in which all are between -1 and 1."""
    low, high = np.array([18, 0, 12, 60]), np.array([90, 200_000, 60, 240])
    return 2 * (np.asarray(people[NUMBERS]) - low) / (high - low) - 1


def products(people: pd.DataFrame) -> Any:
    """Return, for each person, the numbers and all their products."""
    x = unit(people)
    one, other = np.triu_indices(4)
    return np.hstack([x, x[:, one] * x[:, other]])


def moments_private() -> Any:
    """Make the means of numbers and products private."""
    one, other = np.triu_indices(4)
    low = np.append([-1.0] * 4, np.where(one == other, 0.0, -1.0))
    return plain(additive(products, bounds=(low, np.ones(14))))


def covariance_of(moments: Any) -> tuple[Any, Any]:
    """Return means and covariances from moments."""
    mean, square = moments[:4], np.zeros((4, 4))
    square[np.triu_indices(4)] = moments[4:]
    square = square + np.triu(square, 1).T
    values, vectors = np.linalg.eigh(square - np.outer(mean, mean))
    return mean, vectors * np.maximum(values, 1e-3) @ vectors.T


def correlation_of(moments: Any) -> Any:
    """Return correlations from moments."""
    found = covariance_of(moments)[1]
    deviation = np.sqrt(np.diag(found))
    return found / np.outer(deviation, deviation)


def whole(triangle: Any) -> Any:
    """Return a valid matrix of correlations of which every pair is known once."""
    found = np.eye(4)
    found[np.triu_indices(4, 1)] = triangle
    return correlations(found + np.triu(found, 1).T)


def correlation_ways() -> list[Way]:
    """Return the ways to ask for correlations."""
    return [
        Way("sampled, every pair once", then(sampled(triangle), whole)),
        Way("sampled, constraints='correlations'", sampled(correlation, constraints="correlations")),
        Way("plain, from 14 clamped means", then(moments_private(), correlation_of)),
    ]


def correlation_errors(private: Any, raw: Any, _: Any) -> list[float]:
    """Return the errors off the diagonal."""
    return [rms((np.asarray(private) - np.asarray(raw))[~np.eye(4, dtype=bool)])]


# -- cross table --


def cross(people: pd.DataFrame) -> pd.DataFrame:
    """Count people by region and job."""
    return pd.crosstab(people["region"], people["job"], dropna=False)


def cross_errors(private: pd.DataFrame, raw: pd.DataFrame, _: Any) -> list[float]:
    """Return the errors of the cells."""
    private, raw = (pd.DataFrame(each).reindex(index=REGIONS, columns=JOBS) for each in (private, raw))
    return [rms(np.asarray(private - raw))]


def cross_ways() -> list[Way]:
    """Return the ways to ask for a cross table."""
    proved = privatize(epsilon=1, sensitivity=2, sampler=P, constraints="positive")
    return [
        Way("plain, `sensitivity=2`", proved(cross)),
        Way("sampled", sampled(cross)),
        Way("sampled, Gaussian", sampled(cross, Gaussian())),
    ]


# -- Kaplan-Meier --


def kaplan_meier(people: pd.DataFrame) -> Any:
    """Return which share is alive after each of the months."""
    months, died = np.asarray(people["months"]), np.asarray(people["died"], dtype=float)
    order = np.lexsort((-died, months))
    at_risk = np.arange(len(months), 0, -1)
    alive = np.append(1.0, np.cumprod(1 - died[order] / at_risk))
    return pd.Series(alive[np.searchsorted(months[order], MONTHS, side="right")], index=MONTHS)


@additive(average=False, bounds=sums.ball(1, 22, norm="l1"))
def gone(people: pd.DataFrame) -> Any:
    """Return, for each person, a 1 for the half year in which they left or died; the last are still there."""
    half_year = np.searchsorted(MONTHS, people["months"], side="right")
    return (2 * half_year + people["died"].to_numpy())[:, None] == np.arange(22)


def life_table(ask: Any, people: pd.DataFrame) -> Any:
    """Return survival from the numbers who left and died; those who left did so in the middle."""
    counts = ask(people).reshape(11, 2)
    left, died = counts[:10].T
    at_risk = counts.sum(axis=1)[::-1].cumsum()[::-1][:10] - left / 2  # all who left or died later
    return survival(np.cumprod(1 - died / np.maximum(at_risk, 1)))


def survival_ways() -> list[Way]:
    """Return the ways to ask for a survival curve."""
    own = plain(gone, constraints="positive")
    return [
        Way("plain, a life table", lambda people: life_table(own, people)),
        Way("sampled, Gaussian", sampled(kaplan_meier, Gaussian())),
        Way("sampled", sampled(kaplan_meier)),
    ]


# -- regression --


def regression(people: pd.DataFrame) -> dict[str, Any]:
    """Return coefficients and standard errors of blood pressure on age, income and weight."""
    y = np.asarray(people["pressure"])
    X = np.column_stack(  # noqa: N806 - the usual name
        [np.ones(len(y)), (people["age"] - 54) / 10, people["income"] / 10_000 - 4, people["bmi"] - 26]
    )
    inverse = np.linalg.inv(X.T @ X)
    coef = inverse @ (X.T @ y)
    left = y - X @ coef
    return {"coef": coef, "se": np.sqrt(left @ left / (len(y) - 4) * np.diag(inverse))}


def coefficients(people: pd.DataFrame) -> Any:
    """Return the coefficients alone."""
    return {"coef": regression(people)["coef"]}


def regression_of(moments: Any, n: int) -> dict[str, Any]:
    """Return coefficients and standard errors from moments of numbers between -1 and 1."""
    mean, covariance = covariance_of(moments)
    half = np.array([36, 100_000, 24, 90])
    middle = np.array([54, 100_000, 36, 150])
    mean, covariance = mean * half + middle, covariance * np.outer(half, half)
    scale = np.array([10, 10_000, 1])
    x, slopes = (
        (mean[:3] - [54, 40_000, 26]) / scale,
        np.linalg.solve(covariance[:3, :3], covariance[:3, 3]) * scale,
    )
    inside = covariance[:3, :3] / np.outer(scale, scale)
    residual = max(covariance[3, 3] - slopes @ inside @ slopes, 1e-6)
    inverse = np.linalg.inv(inside)
    variances = np.append(1 + x @ inverse @ x, np.diag(inverse)) * residual / n
    return {"coef": np.append(mean[3] - slopes @ x, slopes), "se": np.sqrt(variances)}


def regression_ways() -> list[Way]:
    """Return the ways to ask for a regression."""
    own = moments_private()
    return [
        Way("sampled", sampled(regression, constraints={"se": "positive"})),
        Way("sampled, without standard errors", sampled(coefficients)),
        Way("plain, from 14 clamped means", lambda people: regression_of(own(people), len(people))),
    ]


def regression_errors(private: Any, raw: Any, _: Any) -> list[float]:
    """Return the errors of coefficients in standard errors, and those of standard errors in percent."""
    of_se = 100 * (private["se"] / raw["se"] - 1) if "se" in private else np.nan
    return [rms((private["coef"] - raw["coef"]) / raw["se"]), rms(of_se)]


# -- k-means --


def k_means(points: Any) -> KMeans:
    """Find three centers, from public ones on."""
    return KMeans(3, init=STARTS, n_init=1).fit(points)


def k_means_plus(points: Any) -> KMeans:
    """Find three centers from starts that are drawn from the data."""
    return KMeans(3, n_init=1, random_state=0).fit(points)


@additive(average=False, bounds=sums.ball(2, 9, norm="l1"))
def in_clusters(points: Any, centers: Any) -> Any:
    """Return, for each point, a 1 in the column of its nearest center, and where it is from the middle."""
    nearest = ((points[:, None] - np.array(centers)) ** 2).sum(axis=2).argmin(axis=1)
    inside = nearest[:, None] == np.arange(3)
    return np.hstack([inside, inside * (points[:, :1] / 10 - 0.5), inside * (points[:, 1:] / 10 - 0.5)])


def lloyd(rounds: int) -> Callable[[Any], Any]:
    """Return k-means whose every round asks for counts and clamped sums."""
    ask = plain(in_clusters, epsilon=1 / rounds)

    def centers(points: Any) -> Any:
        found = STARTS
        for _ in range(rounds):
            totals = ask(points, centers=tuple(map(tuple, found.tolist())))
            count, x, y = np.split(totals, 3)
            found = np.clip(np.column_stack([x, y]) / np.maximum(count, 1)[:, None] + 0.5, 0, 1) * 10
        return found

    return centers


def k_means_ways() -> list[Way]:
    """Return the ways to find centers."""
    return [
        Way("sampled, public starts", sampled(k_means, people=SHOPPERS)),
        Way("sampled, starts drawn from the data", sampled(k_means_plus, people=SHOPPERS)),
        Way("plain, 2 rounds of counts and sums", lloyd(2)),
    ]


def starts(n: int) -> Table:
    """Return how far one person moves the centers, by where k-means starts and how far clouds are apart."""
    ways = {"public starts": k_means, "starts drawn from the data": k_means_plus}
    rows = [["people", *ways]]
    for title, people in {
        "clouds of width 1.2": SHOPPERS,
        "clouds of width 3": shoppers(3.0),
        "no clouds": samplers.uniform([0.0, 0.0], [10.0, 10.0]),
    }.items():
        found = [sampled(function, people=people).estimate(n).value for function in ways.values()]
        rows.append([title, *map(shown, found)])
    return rows


def k_means_errors(private: Any, raw: Any, _: Any) -> list[float]:
    """Return how far centers are from the raw ones."""
    private, raw = (getattr(each, "cluster_centers_", each) for each in (private, raw))
    return [rms(private[np.lexsort(private.T[::-1])] - raw[np.lexsort(raw.T[::-1])])]


# -- the tables --

QUESTIONS = {
    "quantiles": Question(["income"], quantiles, quantile_ways, differences),
    "largest": Question(["% missed"], largest, largest_ways, missed),
    "groups": Question(["count", "mean income"], groups, group_ways, group_errors),
    "correlations": Question(["correlation"], correlation, correlation_ways, correlation_errors),
    "cross": Question(["cell"], cross, cross_ways, cross_errors),
    "survival": Question(["survival"], kaplan_meier, survival_ways, differences),
    "regression": Question(
        ["coefficient, in s.e.", "s.e., in %"],
        regression,
        regression_ways,
        regression_errors,
    ),
    "k_means": Question(["center"], k_means, k_means_ways, k_means_errors, SHOPPERS),
}


def measured(ask: Callable[[Any], Any], question: Question, n: int, runs: int) -> list[float]:
    """Return the errors of one way to ask."""
    found = []
    for seed in range(runs):
        people = question.people.draw(n, np.random.default_rng(seed))
        found.append(question.errors(ask(people), question.raw(people), people))
    errors = np.array(found)
    return [float(np.mean(part)) if question.errors is missed else rms(part) for part in errors.T]


def heads(question: Question, sizes: tuple[int, ...]) -> list[str]:
    """Return the heads of a table: for each part, n = 1,000 and then the other sizes."""
    first, *further = (f"{n:,}" for n in sizes)
    return ["", *(head for part in question.parts for head in (f"{part}, n = {first}", *further))]


def table(question: Question, sizes: tuple[int, ...], runs: int) -> Table:
    """Return the errors of all ways to ask a question."""
    others = iter(range(10**6, 10**7))

    def other(people: Any) -> Any:
        """Return the raw answer of as many other people."""
        return question.raw(question.people.draw(len(people), np.random.default_rng(next(others))))

    rows = [heads(question, sizes)]
    for title, ask in (Way("*other people*", other), *question.ways()):
        by_size = [measured(ask, question, n, runs) for n in sizes]
        rows.append([title, *(shown(errors[at]) for at in range(len(question.parts)) for errors in by_size)])
    return rows


def shown(error: float) -> str:
    """Return two digits, or nothing."""
    return "" if np.isnan(error) else f"{float(f'{error:.2g}'):,.10g}"


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(table[0]) - 1), *lines[1:]])


def in_page(page: str) -> Iterator[tuple[str, str]]:
    """Return the tables that a page has between its marks, with their names."""
    yield from re.findall(r"<!-- table: (\w+) -->\n\n(.*?)\n\n<!-- end -->", page, re.DOTALL)


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("question", nargs="*", help=f"{', '.join(QUESTIONS)}, starts; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer people, pairs and runs")
    parser.add_argument("--docs", action="store_true", help=f"write the tables into {PAGE.name}")
    options = parser.parse_args()
    configure(store=None)  # an example leaves nothing behind
    # These tables are about how much noise there is, and P is right here.
    for warning in (UninformativeWarning, FragileEstimateWarning):
        warnings.simplefilter("ignore", warning)
    if options.quick:
        QUICK.update(gamma=0.2, samples="least")
    sizes, runs = ((300,), 2) if options.quick else (SIZES, 100)
    tables: dict[str, Callable[[], Table]] = {
        name: functools.partial(table, question, sizes, runs) for name, question in QUESTIONS.items()
    }
    tables["starts"] = functools.partial(starts, sizes[0])
    for name in options.question or tables:
        text = markdown(tables[name]())
        print(f"\n{name}\n\n{text}", flush=True)
        if options.docs:
            page = PAGE.read_text(encoding="utf-8")
            written = dict(in_page(page))[name]
            page = page.replace(f"<!-- table: {name} -->\n\n{written}", f"<!-- table: {name} -->\n\n{text}")
            PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
