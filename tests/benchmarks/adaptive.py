"""What breaks an adaptive analysis, and what does not: `python -m tests.benchmarks.adaptive [--docs]`.

Every row is a simulation in plain numpy, with fixed seeds: which share of pairs of neighbours is beyond some
estimate that was used, at γ=0.05. Nothing of the library is used but the size of a plan. `--docs` writes the
rows that carry the message into docs/catalogue.md, between its marks.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from privatize import plan

GAMMA, EPSILON = 0.05, 1.0
PLAN = plan(gamma=GAMMA)
PILOT = 256  # pairs of a pilot
WINDOW = 2.0  # how close to an answer the second question looks, in scales of the answer's noise
PAGE = Path(__file__).parents[2] / "docs" / "catalogue.md"
ON_PAGE = (0, 1, 2, 4, 7, 9)  # which rows it has
Row = tuple[str, str, str]


# --- one calibration for 60 members, or 60 calibrations ---------------------------------------


def light_and_heavy(pairs: int, rng: Any) -> Any:
    """Return gaps of 60 members, one row for each pair: 20 columns, each asked for three means.

    The columns share a factor. A member is the mean of a uniform, a normal or a lognormal column (σ=1.5).
    """

    def record() -> Any:
        z = np.sqrt(0.3) * rng.normal(size=(pairs, 1)) + np.sqrt(0.7) * rng.normal(size=(pairs, 20))
        return np.hstack([1 / (1 + np.exp(-1.7 * z)), z, np.exp(1.5 * z)])

    return abs(record() - record())


def weights(pilot: Any) -> Any:
    """Return a weight for each member: its largest gap in a pilot, or 1 if it never moved."""
    largest = pilot.max(axis=0)
    return np.where(largest > 0, largest, 1)


def smallest(gaps: Any, k: int) -> Any:
    """Return the k-th smallest gap, of each column."""
    return np.sort(gaps, axis=0)[k - 1]


def joined(gaps: Any, weight: Any) -> Any:
    """Return each member's estimate from one calibration for all."""
    return weight * smallest((gaps / weight).max(axis=1), PLAN.k)


def beyond(gaps: Any, estimate: Any) -> float:
    """Return the share of pairs on which some member is beyond its estimate."""
    return float((gaps > estimate).any(axis=1).mean())


def sixty(times: int) -> Iterator[Row]:
    """Compare one joint calibration with 60 separate ones."""
    rng, members, tested = np.random.default_rng(1), 60, 4000
    narrow = plan(gamma=GAMMA / members)
    joint, apart, wider = [], [], []
    for _ in range(times):
        gaps, fresh = light_and_heavy(PLAN.m, rng), light_and_heavy(tested, rng)
        together, each = joined(gaps, weights(light_and_heavy(PILOT, rng))), smallest(gaps, PLAN.k)
        joint.append(beyond(fresh, together))
        apart.append(beyond(fresh, each))
        wider.append(np.median(together / each))
    few, ratios = [], []
    for _ in range(max(times // 40, 2)):
        each = smallest(light_and_heavy(narrow.m, rng), narrow.k)
        few.append(beyond(light_and_heavy(20_000, rng), each))
        together = joined(light_and_heavy(PLAN.m, rng), weights(light_and_heavy(PILOT, rng)))
        ratios.append(np.median(together / each))
    yield (f"{members} questions, one joint calibration at γ", f"{np.mean(joint):.3f}",
           f"{PLAN.m:,} pairs")  # fmt: skip
    yield ("each calibrated at γ", f"{np.mean(apart):.2f}",
           f"the joint noise is {np.median(wider):.1f} times as large")  # fmt: skip
    yield (f"each calibrated at γ/{members}", f"{np.mean(few):.3f}",
           f"{narrow.m:,} pairs; the joint noise is {np.median(ratios):.2f} times as large")  # fmt: skip
    yield f"the worst of {times} joint calibrations", f"{max(joint):.3f}", ""


# --- members that are dropped after the gaps were seen ----------------------------------------


def rare(pairs: int, members: int, rng: Any) -> Any:
    """Return gaps of members that rarely move a lot: on one of 2,000 pairs, 20 times as much."""
    return abs(rng.normal(size=(pairs, members))) * np.where(rng.random((pairs, members)) < 1 / 2000, 20, 1)


def dropped(times: int) -> Iterator[Row]:
    """Drop members because of the calibration's own gaps, or because of a pilot's."""
    rng, members = np.random.default_rng(2), 200
    reused, again, piloted = [], [], []
    for _ in range(times):
        gaps, fresh, new = (rare(size, members, rng) for size in (PLAN.m, 2000, PLAN.m))
        kept = gaps.max(axis=0) < 6
        reused.append(beyond(fresh[:, kept], smallest(gaps[:, kept].max(axis=1), PLAN.k)))
        again.append(beyond(fresh[:, kept], smallest(new[:, kept].max(axis=1), PLAN.k)))
        kept = rare(PILOT, members, rng).max(axis=0) < 6
        piloted.append(beyond(fresh[:, kept], smallest(gaps[:, kept].max(axis=1), PLAN.k)))
    yield f"{members} questions, some dropped after the gaps, gaps reused", f"{np.mean(reused):.3f}", ""
    yield "the same, calibrated again with a new seed", f"{np.mean(again):.3f}", "a new declaration"
    yield "dropped because of a pilot", f"{np.mean(piloted):.3f}", "the pilot has pairs of its own"


# --- questions, data and arguments that are made from an answer -------------------------------


def from_an_answer(times: int) -> Iterator[Row]:
    """Ask a mean, then about data, or a question, that was made from the answer."""
    rng, n = np.random.default_rng(3), 100_000
    changes = rng.random((PLAN.m, 2)) / n
    mean = float(smallest(abs(changes[:, 0] - changes[:, 1]), PLAN.k))
    squares = float(smallest(abs(changes[:, 0] ** 2 - changes[:, 1] ** 2) * n, PLAN.k))
    scale, data, question, other = mean / EPSILON, 0, 0, 0
    for _ in range(times):
        people, strangers, position, new = rng.random(n), rng.random(n), rng.integers(n), rng.random()
        answer = people.mean() + rng.laplace(scale=scale)
        for found in (people, strangers):
            changed = found.copy()
            changed[position] = new
            near = max(abs(found.mean() - answer), abs(changed.mean() - answer)) <= WINDOW * scale
            moved = abs(found.sum() % 1 - changed.sum() % 1)
            if found is people:
                data += near and moved > mean  # g(x) is x, or n times the fraction of its sum
                question += near and moved > squares
            else:
                other += near and moved > squares
    yield "`mean` alone, about data that was made from its answer", f"{data / times:.2f}", ""
    yield (
        "a second question, made from the answer",
        f"{question / times:.2f}",
        f"about other people {other / times:.3f}",
    )


def arguments(times: int) -> Iterator[Row]:
    """Choose an argument from an answer: each value is harmless, and all together are not."""
    rng, n, grid = np.random.default_rng(4), 100_000, np.linspace(-1.5, 1.5, 60)
    spread, half = np.sqrt(n / 12), (grid[1] - grid[0]) / 2

    def gaps(pairs: int) -> tuple[Any, Any]:
        """Return where each sum is, in standard deviations, and how far its fraction moves."""
        sums, old, new = rng.normal(n / 2, spread, pairs), rng.random(pairs), rng.random(pairs)
        return (sums - n / 2) / spread, abs(sums % 1 - (sums + new - old) % 1)

    def members(at: Any, moved: Any) -> Any:
        """Return each member's gap: 1/n of a record, unless the data's mean is near its grid point."""
        return np.where(abs(at[:, None] - grid) <= half, moved[:, None], moved[:, None] / n)

    apart, joint = [], []
    for _ in range(times):
        found, pilot = members(*gaps(PLAN.m)), members(*gaps(PILOT))
        each, together = smallest(found, PLAN.k), joined(found, weights(pilot))
        at, moved = gaps(2000)
        chosen = abs(at[:, None] + rng.laplace(scale=1 / spread, size=(2000, 1)) - grid).argmin(axis=1)
        fresh = members(at, moved)[np.arange(2000), chosen]
        apart.append(np.mean(fresh > each[chosen]))
        joint.append(np.mean(fresh > together[chosen]))
    yield (
        "an argument chosen from an answer, 60 calibrations at γ",
        f"{np.mean(apart):.2f}",
        f"in one joint calibration: {np.mean(joint):.3f}",
    )


def sums(times: int) -> Iterator[Row]:
    """Ask a (0, δ)-private question again and again until it shows the data, with and without a cap."""
    rng, delta, cap = np.random.default_rng(5), 0.01, 0.1
    shown_at = rng.geometric(delta, times * 100)
    small = shown_at * delta <= cap + 1e-9
    yield ("(0, 0.01)-private answers until one shows the data, where Σδ came out at most 0.1",
           "1.00", f"of {small.mean():.2f} of the analysts")  # fmt: skip
    yield "the same under a cap Σδ ≤ 0.1", f"{small.mean():.2f}", "δ, not γ: at most 0.1 is promised"


def rows(quick: bool) -> list[Row]:
    """Run every simulation."""
    few = 5 if quick else 1
    return [
        *sixty(200 // few),
        *dropped(200 // few),
        *from_an_answer(1000 // few),
        *arguments(200 // few),
        *sums(100),
    ]


def table(found: list[Row]) -> str:
    """Return the rows as a table."""
    lines = ["| what is done | pairs beyond an estimate |  |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in found])


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/catalogue.md")
    options = parser.parse_args()
    found = rows(options.quick)
    print(table(found))
    if options.docs:
        shown = table([found[row] for row in ON_PAGE])
        before, rest = PAGE.read_text().split("<!-- adaptive -->")
        after = rest.split("<!-- end of adaptive -->")[1]
        PAGE.write_text(f"{before}<!-- adaptive -->\n\n{shown}\n\n<!-- end of adaptive -->{after}")


if __name__ == "__main__":
    main()
