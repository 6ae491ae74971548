"""How far answers of each strength are off: the tables of docs/strengths.md.

People are made up. An error is the root of the mean square of what is released minus what the function
returns on all people, over 100 runs with new people each time. Blocks run here in a loop in this process, to
be quick; `privatize` gives each block a process of its own, and the same numbers come out.

    python examples/strengths.py            prints the tables (about a minute)
    python examples/strengths.py --quick    the same, of fewer runs
    python examples/strengths.py --docs     writes two of them into docs/strengths.md
"""

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from privatize import Blocks, additive, privatize, samplers, sums

PAGE = Path(__file__).parents[1] / "docs" / "strengths.md"
FEW, MANY, EPSILON = 2_000, 20_000, 1.0
People = dict[str, Any]
Function = Callable[[People], float]

# What is known without the data: the form's limits, and that one in ten is a member. That income rises with
# age is not known, and P does not say it.
P = samplers.table(
    age=samplers.uniform(18, 90),
    income=samplers.normal(50, 40).truncated(0, 200),
    member=samplers.boolean(0.1),
    content=samplers.boolean(0.5),
)


def people(n: int, seed: int) -> People:
    """Return n made-up people, who are not drawn from P."""
    rng = np.random.default_rng(seed)
    age = 18 + 72 * rng.beta(2, 3, n)
    income = np.clip(rng.gamma(2.0, (10 + age / 2) / 2), 0, 200)
    return {"age": age, "income": income, "member": rng.random(n) < 0.1, "content": rng.random(n) < 0.3}


# -- five functions, as anybody would write them --


def mean(people: People) -> float:
    """Return the mean income."""
    return float(people["income"].mean())


def slope(people: People) -> float:
    """Return by how much income rises with a year of age."""
    return float(np.polyfit(people["age"], people["income"], 1)[0])


def correlation(people: People) -> float:
    """Return the correlation of age and income."""
    return float(np.corrcoef(people["age"], people["income"])[0, 1])


def median(people: People) -> float:
    """Return the median income."""
    return float(np.median(people["income"]))


def share(people: People) -> float:
    """Return which share of the members is content."""
    inside = people["content"][people["member"]]
    return float(inside.mean()) if len(inside) else np.nan


# -- the same with a proven bound --


@additive(bounds=([-1.0, -1.0, 0.0, -1.0, 0.0], [1.0] * 5))
def moments(people: People) -> Any:
    """Return five numbers of each person, in units in which age and income are between -1 and 1."""
    x, y = (people["age"] - 54) / 36, (people["income"] - 100) / 100
    return np.column_stack([x, y, x * x, x * y, y * y])


@additive(average=False, bounds=sums.ball(1, 2, norm="l1"))
def members(people: People) -> Any:
    """Count the members who are content, and those who are not."""
    return np.column_stack([people["member"] & people["content"], people["member"] & ~people["content"]])


def proven() -> dict[str, Function]:
    """Return the five answers from functions that have bounds of their own; what follows is arithmetic."""
    private = privatize(epsilon=EPSILON)
    mean_of = private(sums.means(bounds=({"income": 0.0}, {"income": 200.0})))
    median_of, moments_of, members_of = (
        private(each) for each in (sums.quantiles(0.5, 0.0, 200.0), moments, members)
    )

    def variances(people: People) -> tuple[float, float, float]:
        x, y, xx, xy, yy = moments_of(people).tolist()
        return max(xx - x * x, 1e-3), xy - x * y, max(yy - y * y, 1e-3)

    def slope_of(people: People) -> float:
        xx, xy, _ = variances(people)
        return xy / xx * 100 / 36

    def correlation_of(people: People) -> float:
        xx, xy, yy = variances(people)
        return float(np.clip(xy / np.sqrt(xx * yy), -1, 1))

    def share_of(people: People) -> float:
        yes, no = (max(count, 1.0) for count in members_of(people).tolist())
        return float(yes / (yes + no))

    return {
        "mean": lambda people: float(mean_of(people)["income"]),
        "slope": slope_of,
        "correlation": correlation_of,
        "median": lambda people: float(median_of(people["income"])),
        "share": share_of,
    }


class Case(NamedTuple):
    """A function, and the bounds of its answer."""

    title: str
    function: Function
    low: float
    high: float


CASES = {
    "mean": Case("mean income, 0 to 200", mean, 0.0, 200.0),
    "slope": Case("slope of income on age, ±10", slope, -10.0, 10.0),
    "correlation": Case("correlation of both, ±1", correlation, -1.0, 1.0),
    "median": Case("median income, 0 to 200", median, 0.0, 200.0),
    "share": Case("share in a group of 10%, 0 to 1", share, 0.0, 1.0),
}


def on_blocks(function: Function, people: People, b: int, rng: Any) -> list[float]:
    """Return a function's answers on b random blocks."""
    order = rng.permutation(len(people["age"]))
    parts = np.array_split(order, b)
    return [function({name: column[part] for name, column in people.items()}) for part in parts]


def released(
    case: Case, values: list[float], aggregate: Literal["median", "mean"], wider: float = 1
) -> float:
    """Return what `Blocks` releases of the answers on blocks."""
    mechanism = Blocks(case.low * wider, case.high * wider, aggregate=aggregate)
    rows = np.array([mechanism.row(value) for value in values])
    return float(mechanism.release_blocks(rows, EPSILON).item())


def rms(errors: Any) -> str:
    """Return the root of the mean square, with two digits."""
    return f"{float(f'{np.sqrt(np.mean(np.square(errors))):.2g}'):,.10g}"


# -- the tables --

Table = list[list[str]]


def strengths(runs: int) -> Table:
    """Return the errors of all strengths."""
    table = [["answer, bounds", "f itself", "sampled", "proven", "`Blocks`"]]
    others = proven()
    for name, case in CASES.items():
        sampled = privatize(epsilon=EPSILON, gamma=0.05, sampler=P, seed=1, store=None)(case.function)
        b, found = Blocks(case.low, case.high).number(FEW, EPSILON), []
        for seed in range(runs):
            data, rng = people(FEW, seed), np.random.default_rng(seed)
            raw, values = case.function(data), on_blocks(case.function, data, b, rng)
            answers = [sampled(pd.DataFrame(data)), others[name](data), released(case, values, "median")]
            found.append([raw, *(answer - raw for answer in answers)])
        raws, *errors = np.array(found).T
        table.append([case.title, *map(rms, (raws - raws.mean(), *errors))])
    return table


def widths(runs: int) -> Table:
    """Return the errors of the mean if its bounds are too wide, for many people."""
    factors, case = (1, 100, 10_000), CASES["mean"]
    table = [["the mean income is between", "proven", "`Blocks`", "GUPT's mean"]]
    for wider in factors:
        found = []
        bound = privatize(epsilon=EPSILON)(sums.means(bounds=({"income": 0.0}, {"income": 200.0 * wider})))
        for seed in range(runs):
            data = people(MANY, seed)
            values, raw = on_blocks(mean, data, 80, np.random.default_rng(seed)), mean(data)
            answers = [bound(data)["income"], *(released(case, values, k, wider) for k in ("median", "mean"))]
            found.append([answer - raw for answer in answers])
        table.append([f"0 and {200 * wider:,}", *map(rms, np.array(found).T)])
    return table


def _variation(people: People) -> float:
    return float(people["income"].std() / people["income"].mean())


BIASED: dict[str, tuple[Function, float]] = {
    "total income": (lambda people: float(people["income"].sum()), 2e6),
    "highest income": (lambda people: float(people["income"].max()), 200.0),
    "coefficient of variation": (_variation, 5.0),
    "mean income": (mean, 200.0),
}


def biases(runs: int) -> Table:
    """Return what `Blocks` releases of functions that are biased on few people, for many people."""
    numbers = (80, 400)
    table = [["answer", "on all people", *(f"blocks of {MANY // b}" for b in numbers)]]
    for title, (function, high) in BIASED.items():
        found = []
        for seed in range(max(3, runs // 10)):
            data, rng = people(MANY, seed), np.random.default_rng(seed)
            case, blocks = (
                Case(title, function, 0.0, high),
                [on_blocks(function, data, b, rng) for b in numbers],
            )
            found.append([function(data), *(released(case, values, "median") for values in blocks)])
        table.append([title, *(f"{float(f'{value:.3g}'):,.10g}" for value in np.mean(found, axis=0))])
    return table


TABLES: dict[str, Callable[[int], Table]] = {"strengths": strengths, "biases": biases}  # on the page


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    first, *others = ("| " + " | ".join(row) + " |" for row in table)
    return "\n".join([first, "|" + "---|" * len(table[0]), *others])


def in_page(page: str) -> Iterator[tuple[str, str]]:
    """Return the tables that a page has between its marks, with their names."""
    yield from re.findall(r"<!-- table: (\w+) -->\n\n(.*?)\n\n<!-- end -->", page, re.DOTALL)


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--docs", action="store_true", help=f"write the tables into {PAGE.name}")
    options = parser.parse_args()
    every = {**TABLES, "widths": widths}
    made = {name: markdown(make(2 if options.quick else 100)) for name, make in every.items()}
    for name, text in made.items():
        print(f"\n{name}\n\n{text}")
    if options.docs:
        page = PAGE.read_text(encoding="utf-8")
        for name, text in in_page(page):
            page = page.replace(
                f"<!-- table: {name} -->\n\n{text}", f"<!-- table: {name} -->\n\n{made[name]}"
            )
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
