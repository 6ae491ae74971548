"""What a check of P finds, and what a repair is worth: `python -m tests.benchmarks.fit [--docs]`.

People come from a known distribution, so that it is known how often real neighbours are beyond an estimate.
Gaps are computed in numpy, many at once; block sizes, noise, scan and certificates are the library's own,
with seeded noise, 200 times. `--docs` writes some rows and columns into docs/fit.md, between their marks.
"""

import argparse
import functools
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privatize import check_fit, fit_power, learn, plan, privatize, samplers
from privatize.calibration.factor_scan import FACTORS, Cut, sizes
from privatize.calibration.fit import Fit, fit_of
from privatize.testing import insecure_noise

from .measuring import Result, fresh, result, seconds, works

PAGE = Path(__file__).parents[2] / "docs" / "fit.md"
GAMMA = 0.05
PLAN = plan(gamma=GAMMA)
TIMES = 200
CHECKED = 20_000, 0.2  # people, and the epsilon of a check that is timed
Rng = np.random.Generator
Draw = Callable[[Rng, tuple[int, ...]], Any]  # records of this shape, with one more axis for columns


# --- functions of many datasets at once, and where people come from ---------------------------


def mean(d: Any) -> Any:
    """Return the mean of the second column."""
    return d[..., 1].mean(-1)


def spread(d: Any) -> Any:
    """Return the standard deviation of the second column."""
    return d[..., 1].std(-1)


def median(d: Any) -> Any:
    """Return the median of the second column."""
    return np.median(d[..., 1], axis=-1)


def slope(d: Any) -> Any:
    """Return the slope of the second column on the first."""
    x, y = (d[..., at] - d[..., at].mean(-1, keepdims=True) for at in (0, 1))
    return (x * y).sum(-1) / np.maximum((x * x).sum(-1), 1e-9)


def in_group(d: Any) -> Any:
    """Return the mean of the second column where the first is 1."""
    return (d[..., 0] * d[..., 1]).sum(-1) / np.maximum(d[..., 0].sum(-1), 1)


def box(x: float, y: float) -> Draw:
    """Return independent uniform columns in [-x, x] and [-y, y]."""
    return lambda rng, size: np.stack([rng.uniform(-x, x, size), rng.uniform(-y, y, size)], -1)


def line(x: float, rest: float) -> Draw:
    """Return points around a line of slope 1, clipped to [-10, 10]."""

    def draw(rng: Rng, size: tuple[int, ...]) -> Any:
        first = np.clip(rng.normal(0, x, size), -10, 10)
        return np.stack([first, np.clip(first + rng.normal(0, rest, size), -10, 10)], -1)

    return draw


def group(share: float) -> Draw:
    """Return people of whom a share is in a group, with a uniform number each."""
    return lambda rng, size: np.stack([(rng.random(size) < share) * 1.0, rng.random(size)], -1)


def one(number: Callable[[Rng, tuple[int, ...]], Any]) -> Draw:
    """Return one column, from 0 to 100, as the second of two."""
    return lambda rng, size: np.stack([np.zeros(size), np.clip(number(rng, size), 0, 100)], -1)


BOUNDS = one(lambda rng, size: rng.uniform(0, 100, size))
INCOMES = one(lambda rng, size: np.exp(rng.normal(0, 1.5, size)))
ZEROS = one(lambda rng, size: np.where(rng.random(size) < 0.5, 0, np.exp(rng.normal(3, 0.5, size))))


@dataclass(frozen=True)
class Case:
    """A function, a P, where the people really come from, and what is spent on how many of them."""

    name: str
    function: Callable[[Any], Any]
    P: Draw | None  # None for one that is learned from the people
    people: Draw
    n: int
    epsilon: float
    shown: bool = False  # on the page


CASES = [
    Case("slope, P too wide", slope, box(10, 10), line(0.5, 1.5), 4000, 0.5, True),
    Case("slope, P too wide", slope, box(10, 10), line(0.5, 1.5), 20_000, 0.2),
    Case("mean of a 10% group, P says half", in_group, group(0.5), group(0.1), 4000, 0.5),
    Case("mean of a 10% group, P says half", in_group, group(0.5), group(0.1), 20_000, 0.2, True),
    Case("mean of a 10% group, P says half", in_group, group(0.5), group(0.1), 100_000, 0.2),
    Case("spread of incomes, P uniform", spread, BOUNDS, INCOMES, 4000, 0.5),
    Case("mean, P right", mean, box(1, 1), box(1, 1), 4000, 0.5),
    Case("mean, P right", mean, box(1, 1), box(1, 1), 20_000, 0.2, True),
    Case("mean, P right", mean, box(1, 1), box(1, 1), 100_000, 0.2),
    Case("slope, P right", slope, line(0.5, 1.5), line(0.5, 1.5), 4000, 0.5),
    Case("slope, P right", slope, line(0.5, 1.5), line(0.5, 1.5), 20_000, 0.2),
    Case("mean income, P learned from the same people", mean, None, INCOMES, 4000, 0.5),
    Case("median of half zeros, P uniform", median, BOUNDS, ZEROS, 100_000, 0.2, True),
]


# --- gaps, estimates and checks ---------------------------------------------------------------


def gaps(function: Callable[[Any], Any], draw: Draw, n: int, m: int, rng: Rng) -> Any:
    """Return the gaps of m pairs of neighbours of n records."""
    found, most = [], max(1, 2_000_000 // n)
    while m > 0:
        pairs = min(most, m)
        m -= pairs
        drawn = draw(rng, (pairs, n + 1))
        found.append(between(function, drawn, rng))
    return np.concatenate(found)


def between(function: Callable[[Any], Any], drawn: Any, rng: Rng) -> Any:
    """Return the gaps of blocks of people, of whom the last replaces one of the others."""
    first = drawn[:, :-1]
    other = first.copy()
    other[np.arange(len(drawn)), rng.integers(0, first.shape[1], len(drawn))] = drawn[:, -1]
    return np.abs(function(first) - function(other))


def estimated(function: Callable[[Any], Any], P: Draw, n: int, rng: Rng) -> float:
    """Return P's estimate at n: the k-th smallest of m gaps."""
    return float(np.sort(gaps(function, P, n, PLAN.m, rng))[PLAN.k - 1])


def checked(case: Case, people: Any, P: Draw, rng: Rng, known: Callable[[int], float]) -> Fit | None:
    """Check P on people as the library does; `known` returns P's estimate at the size of a block."""
    cut = sizes(case.n, GAMMA, case.epsilon)
    order = rng.permutation(case.n)

    def counts(blocks: Cut, at: Any) -> list[int]:
        drawn = people[at[: blocks.number * blocks.people]].reshape(blocks.number, blocks.people, -1)
        found = between(case.function, drawn, rng) / known(blocks.size)
        return [int((found > factor).sum()) for factor in FACTORS]

    used = cut.main.number * cut.main.people
    second = None if cut.smaller is None else counts(cut.smaller, order[used:])
    facts: dict[str, Any] = {"main": cut.main, "smaller": cut.smaller, "n": case.n}
    facts |= {"gamma": GAMMA, "epsilon": case.epsilon, "functions": ("f",), "about": ("",)}
    return fit_of(counts(cut.main, order), second, **facts)


def learned(people: Any) -> Draw:
    """Return a P that is learned from the second column, with an epsilon of 0.3."""
    made = learn(people[:, 1].copy(), within=samplers.uniform(0, 100), epsilon=0.3)

    def draw(source: Rng, size: tuple[int, ...]) -> Any:
        numbers = made.draw(int(np.prod(size)), source).reshape(size)
        return np.stack([np.zeros(size), numbers], -1)

    return draw


def row(case: Case, times: int) -> list[str]:
    """Return what checks of one case have found."""
    rng, main = np.random.default_rng(1), sizes(case.n, GAMMA, case.epsilon).main
    real = np.sort(gaps(case.function, case.people, case.n, 2000, rng))
    small = np.sort(gaps(case.function, case.people, main.size, 50_000, rng))
    needed, fixed = float(np.quantile(real, 1 - GAMMA)), []
    if case.P is not None:  # ten calibrations, which take turns
        law = case.P
        fixed = [functools.cache(lambda n: estimated(case.function, law, n, rng)) for _ in range(10)]
    before, after, wide, factors, wrong, failed, grows = [], [], [], [], [], 0, 0
    for at in range(times):
        people = case.people(rng, (case.n,))
        P = learned(people) if case.P is None else case.P
        own = functools.cache(lambda n, P=P: estimated(case.function, P, n, rng))
        known = fixed[at % 10] if fixed else own
        fit = checked(case, people, P, rng, known)
        before.append(beyond(real, known(case.n)))
        if fit is None:
            failed += 1
            continue
        after.append(beyond(real, fit.factor * known(case.n)))
        wide.append(fit.factor * known(case.n) / needed)
        factors.append(fit.factor)
        true = [beyond(small, factor * known(main.size)) for factor in (1.0, fit.factor)]
        wrong.append([true[0] > fit.share.high, true[0] < fit.share.low, true[1] > fit.certified])
        grows += fit.grows
    bad = np.mean(wrong, axis=0)
    return [
        case.name,
        f"{case.n:,}, {case.epsilon:g}",
        f"{np.mean(before):.3f}",
        f"{np.mean(after):.3f}",
        f"{np.mean(np.array(after) > GAMMA):.0%}",
        f"{np.median(factors):.2g} ({np.quantile(factors, 0.9):.2g})",
        f"{np.median(wide):.1f}",
        f"{max(bad[:2]):.1%}, {bad[2]:.1%}",
        f"{grows / times:.0%}" if sizes(case.n, GAMMA, case.epsilon).smaller else "",
        f"{failed}",
    ]


def beyond(found: Any, limit: float) -> float:
    """Return the share of sorted gaps that are beyond a limit."""
    return 1 - float(np.searchsorted(found, limit, side="right")) / len(found)


HEADS = [
    "question",
    "n, ε",
    "beyond Δ̂",
    "after",
    "still > γ",
    "factor (9 of 10)",
    "cost",
    "false bounds: count, scan",
    "grows",
    "no factor",
]
SHOWN = ["question", "n, ε", "beyond Δ̂", "after", "still > γ", "cost"]  # on the page


def power() -> list[list[str]]:
    """Return what checks can find, at several n and epsilon."""
    rows = []
    for n, epsilon in ((4000, 0.5), (20_000, 0.2), (100_000, 0.2)):
        found = fit_power(n, gamma=GAMMA, epsilon=epsilon)
        main = f"{found.main.number:,} of {found.main.people}"
        rows.append([f"{n:,}, {epsilon:g}", main, f"{found.certified:.3f}", f"{found.excess:.2g}"])
    return rows


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    first, *others = (f"| {' | '.join(line)} |" for line in [heads, *rows])
    return "\n".join([first, "|" + "---|" * len(heads), *others])


def timed(duration: float, rounds: int) -> tuple[float, float]:
    """Return the median seconds of a check, and of one evaluation of the function that takes so long."""
    n, epsilon = CHECKED
    people, P = np.random.default_rng(0).uniform(0, 100, n), samplers.uniform(0, 100)
    function, took, bare = works(duration), [], []
    for seed in range(rounds):
        # A version of its own, so that no estimate is remembered.
        options: Any = {"gamma": GAMMA, "sampler": P, "store": None, "version": f"{duration}, {seed}"}
        f = privatize(epsilon=1, **options, samples="least")(function)
        with warnings.catch_warnings(action="ignore"):
            took.append(seconds(functools.partial(check_fit, f, people, epsilon=epsilon)))
        bare.append(min(seconds(lambda f=function: f(people[:100])) for _ in range(20)))
    return statistics.median(took), statistics.median(bare)


def run(quick: bool) -> list[Result]:
    """Compare checks of P with the evaluations that they need, on people's blocks and on P's pairs."""
    n, epsilon = CHECKED
    found, made = [], sizes(n, GAMMA, epsilon)
    for duration in (0.001, 0.01):
        # Not in this process, which has loaded all libraries of all benchmarks: then forks take longer.
        script = f"from tests.benchmarks.fit import timed; print(*timed({duration}, {1 if quick else 3}))"
        took, bare = fresh(script)
        cuts = [each for each in (made.main, made.smaller) if each is not None]
        evaluations = sum(2 * each.number + 2 * plan(GAMMA, m="least").m for each in cuts)
        found.append(
            result("check_fit", f"check_fit, f = {duration * 1e3:g} ms", took, "s",
                   against="its evaluations, one by one", theirs=bare * evaluations,
                   most=2, note=f"n={n:,}, ε={epsilon}: {evaluations:,} evaluations, two for each pair")
        )  # fmt: skip
    return found


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--repeats", type=int, default=TIMES)
    given = parser.parse_args()
    heads = ["n, ε", "blocks of people", "certified if P holds", "noise alone: factor up to"]
    made = {"power": table(heads, power())}
    rows = []
    with warnings.catch_warnings(action="ignore"), insecure_noise(1):
        for case in CASES:
            rows.append(row(case, given.repeats))
            print(rows[-1], flush=True)
    print(f"\n{table(HEADS, rows)}")
    columns = [HEADS.index(head) for head in SHOWN]
    shown = [row for case, row in zip(CASES, rows, strict=True) if case.shown]
    made["repaired"] = table(SHOWN, [[row[at] for at in columns] for row in shown])
    for name, text in made.items():
        print(f"\n{name}\n{text}")
        if given.docs:
            page = PAGE.read_text(encoding="utf-8")
            start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
            head, rest = page.split(start)
            PAGE.write_text(f"{head}{start}\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
