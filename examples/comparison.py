"""The same answers from several libraries: the table of docs/comparison.md.

The questions are the mean, the median and the trimmed mean of the ages of 1,000 made-up people, at
epsilon = 1. All know that an age is an integer between 0 and 120 and that there are 1,000 people,
and hide the replacement of one record. A library that is not installed is left out, and so is a question
that it has no answer for; sample-and-aggregate is written out here.

    python examples/comparison.py            prints the table
    python examples/comparison.py --quick    the same, of fewer answers
"""

import argparse
import importlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import privatize, samplers

N, LOW, HIGH, EPSILON = 1000, 0, 120, 1.0
Function = Callable[[Any], float]
Answers = dict[str, Function]


def people() -> Any:
    """Return the ages of 1,000 people, who are not drawn from any P below."""
    rng = np.random.default_rng(2026)
    return np.clip(rng.gamma(6.0, 7.5, N), LOW, HIGH).astype(int)


def _mean(ages: Any) -> float:
    return float(np.mean(ages))


def _median(ages: Any) -> float:
    return float(np.median(ages))


def _trimmed(ages: Any) -> float:
    tenth = len(ages) // 10  # left out on each side
    return float(np.sort(ages)[tenth : len(ages) - tenth].mean())


QUESTIONS: Answers = {"mean": _mean, "median": _median, "trimmed mean": _trimmed}


def ours(sampler: Any) -> Answers:
    """Return private functions, calibrated under a P."""
    private = privatize(epsilon=EPSILON, gamma=0.05, sampler=sampler, seed=1, store=None)
    return {name: private(function) for name, function in QUESTIONS.items()}


def opendp() -> Answers:
    """Return OpenDP's answers: neighbours of one size that differ in a record have symmetric distance 2."""
    dp: Any = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=N), dp.symmetric_distance()
    clamped = space >> dp.t.then_clamp((float(LOW), float(HIGH)))
    candidates = [float(age) for age in range(LOW, HIGH + 1)]

    def mean(scale: float) -> Any:
        return clamped >> dp.t.then_mean() >> dp.m.then_laplace(scale)

    def median(scale: float) -> Any:
        return clamped >> dp.m.then_private_quantile(dp.max_divergence(), candidates, 0.5, scale)

    made = {
        name: dp.binary_search_chain(make, d_in=2, d_out=EPSILON)
        for name, make in (("mean", mean), ("median", median))
    }

    def asked(release: Any) -> Function:
        return lambda ages: float(release(ages.astype(float).tolist()))

    return {name: asked(release) for name, release in made.items()}


def diffprivlib() -> Answers:
    """Return diffprivlib's answers."""
    tools: Any = importlib.import_module("diffprivlib.tools")
    accountant: Any = importlib.import_module("diffprivlib.accountant")

    def asked(function: Any) -> Function:
        def answer(ages: Any) -> float:
            nothing = accountant.BudgetAccountant()  # the default one is shared, and keeps every charge
            return float(function(ages, epsilon=EPSILON, bounds=(LOW, HIGH), accountant=nothing))

        return answer

    return {"mean": asked(tools.mean), "median": asked(tools.median)}


def sample_and_aggregate(blocks: int) -> Answers:
    """Return the mean of any function's answers on disjoint blocks, clipped to a known range, with noise."""
    rng = np.random.default_rng()

    def aggregated(function: Function) -> Function:
        def answer(ages: Any) -> float:
            # One record is in one block, and moves one of the answers, by the range at most.
            parts = np.array_split(rng.permutation(ages), blocks)
            found = np.clip([function(part) for part in parts], LOW, HIGH).mean()
            # Floating-point noise, for this comparison only: it is not safe to release.
            return float(found + rng.laplace(scale=(HIGH - LOW) / blocks / EPSILON))

        return answer

    return {name: aggregated(function) for name, function in QUESTIONS.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer answers")
    releases = 50 if parser.parse_args().quick else 2000
    ages = people()
    print(f"{N:,} people, epsilon={EPSILON:g}: how far answers are off, on average over {releases:,} of them")
    _row("", list(QUESTIONS))
    _row("(the raw answers)", [f"{function(ages):.2f}" for function in QUESTIONS.values()])
    rows: dict[str, Callable[[], Answers]] = {
        "privatize, P=integers(0, 120)": lambda: ours(samplers.integers(LOW, HIGH)),
        "privatize, P=normal(45, 20).truncated(0, 120)": lambda: ours(
            samplers.normal(45, 20).truncated(LOW, HIGH)
        ),
        "OpenDP": opendp,
        "diffprivlib": diffprivlib,
        "sample-and-aggregate, 30 blocks": lambda: sample_and_aggregate(30),
    }
    for name, make in rows.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of imports of other libraries
                answers = make()
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        cells = [_error(answers.get(question), ages, releases, raw) for question, raw in QUESTIONS.items()]
        _row(name, cells)


def _error(answer: Function | None, ages: Any, releases: int, raw: Function) -> str:
    if answer is None:
        return "-"
    return f"{np.mean([abs(answer(ages) - raw(ages)) for _ in range(releases)]):.3f}"


def _row(name: str, cells: list[str]) -> None:
    print(f"{name:48s}" + "".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main()
