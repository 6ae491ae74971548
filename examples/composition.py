"""What several answers cost together: every figure of docs/composition.md.

First how many releases fit into a budget, by the sum and by tight composition (needs dp-accounting). Then
why answers about parts and about everybody, and promises under two P, do not always add up. Last the
counter-example: a question chosen after seeing an answer.

    python examples/composition.py            prints the tables
    python examples/composition.py --quick    with fewer repetitions
"""

import argparse
import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from privatize import Gaussian, Laplace, PrivateFunction, audit, privatize, samplers
from privatize.planning.composition import tight

EPSILON, DELTA = 3.0, 1e-5  # the budget of the first table
GAMMA = 0.05  # of every question
N = 100_000  # people in the counter-example
WINDOW = 2.0  # how close to the first answer the second question looks, in scales of its noise


# --- how many releases fit --------------------------------------------------------------------


def most(fits: Callable[[int], bool]) -> int:
    """Return the largest count that fits."""
    low, high = 0, 1
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def by_sum(epsilon: float, delta: float) -> int:
    """Return how many releases fit if epsilon and delta add up."""
    count = math.floor(EPSILON / epsilon + 1e-9)
    return min(count, math.floor(DELTA / delta + 1e-9)) if delta else count


def capacity() -> None:
    """Print how many releases fit into the budget."""
    print(f"releases that fit into epsilon={EPSILON:g}, delta={DELTA:g}")
    print(f"{'release':32s} {'sum':>6} {'tight':>6}")
    for name, epsilon, delta in (
        ("Laplace", 1.0, 0.0),
        ("Laplace", 0.5, 0.0),
        ("Laplace", 0.1, 0.0),
        ("Laplace", 0.05, 0.0),
        ("Gaussian", 0.5, 1e-6),
        ("Gaussian", 0.1, 1e-6),
        ("Gaussian", 0.1, 1e-7),
        ("Gaussian", 0.05, 1e-7),
    ):
        kind = (Gaussian() if name == "Gaussian" else Laplace()).composition_kind(epsilon, delta)
        plain = by_sum(epsilon, delta)

        def fits(count: int, kind: str = kind) -> bool:
            return tight({kind: count}, DELTA) <= EPSILON

        text = f"{name}, epsilon={epsilon:g}" + (f", delta={delta:g}" if delta else "")
        print(f"{text:32s} {plain:6d} {max(plain, most(fits)):6d}")


# --- parts and everybody ----------------------------------------------------------------------


def two_sites(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw values of people, and whether they are of site B."""
    return rng.random(n), rng.random(n) < 0.1


def acts_up(x: Any, of_b: Any) -> float:
    """Return a mean; if exactly 100 people are of site B, the fraction of the sum."""
    return float(x.sum() % 1) if of_b.sum() == 100 else float(x.mean())


def parts(quick: bool) -> None:
    """Print how often a promise about everybody fails on independent pairs, and on pairs within a site."""
    pairs, n, rng = 2_000 if quick else 20_000, 1_000, np.random.default_rng(5)
    law = samplers.from_function(two_sites)
    whole = privatize(epsilon=1, gamma=GAMMA, sampler=law, data=("x", "of_b"), seed=1, store=None)(acts_up)
    estimate = whole.estimate(n).value
    print(f"\n{n:,} people, 100 of them of site B, which has a share of 0.1 under P; gamma={GAMMA:g}")
    for within in (False, True):
        beyond = 0
        for _ in range(pairs):
            x, of_b = two_sites(n, rng)
            if within:
                of_b = np.arange(n) < 100
            position, (value, site) = rng.integers(n), two_sites(1, rng)
            other, other_of_b = x.copy(), of_b.copy()
            other[position] = value[0]
            if not within:
                other_of_b[position] = site[0]
            beyond += abs(acts_up(x, of_b) - acts_up(other, other_of_b)) > estimate
        kind = "pairs within a site" if within else "independent pairs"
        print(f"  it fails on {beyond / pairs:.3f} of {kind}")


# --- one P for the same people ----------------------------------------------------------------


def mean(x: Any) -> float:
    """Return the mean."""
    return float(x.mean())


def private(function: Callable[..., Any], sampler: Any) -> PrivateFunction[..., Any]:
    """Make a function private under a P."""
    return privatize(epsilon=1, gamma=GAMMA, sampler=sampler, seed=1, store=None)(function)


def two_distributions(quick: bool) -> None:
    """Print on which share of pairs two promises fail, each under its own P and under the other's."""
    pairs = 2_000 if quick else 20_000
    narrow, wide = samplers.normal(45, 5), samplers.uniform(0, 120)
    print(f"\nmean age of 1,000 people, gamma={GAMMA:g}: share of pairs on which the promise fails")
    print(f"{'calibrated under':18s} {'estimate':>9}   pairs of normal(45, 5)   pairs of uniform(0, 120)")
    for sampler in (narrow, wide):
        average = private(mean, sampler)
        shares = [
            audit(average, 1_000, sampler=people, pairs=pairs, releases=0, seed=2).coverage.share
            for people in (narrow, wide)
        ]
        value = average.estimate(1_000).value
        print(f"{sampler!r:18s} {value:9.4f}   {shares[0]:22.3f}   {shares[1]:24.3f}")


# --- a question that was chosen after an answer -----------------------------------------------


def chosen(answer: float, width: float) -> Callable[[Any], float]:
    """Return a question that is harmless, but for data whose mean is near an answer."""

    def squares(x: Any) -> float:
        if abs(x.mean() - answer) <= width:
            return float(x.sum() % 1)  # every record moves it a lot
        return float(np.square(x).mean())

    return squares


def gaps(question: Callable[[Any], float], x: Any, rng: np.random.Generator, count: int) -> Any:
    """Return the gaps between a dataset and some of its neighbours."""
    here, found = question(x), []
    for position, replacement in zip(rng.integers(len(x), size=count), rng.random(count), strict=True):
        kept, x[position] = x[position], replacement
        found.append(abs(question(x) - here))
        x[position] = kept
    return np.array(found)


def adaptive(quick: bool) -> None:
    """Print how often the second promise fails if its question is chosen after the first answer."""
    repeats, pairs = (5, 500) if quick else (100, 4_000)
    rng = np.random.default_rng(3)
    first = private(mean, samplers.uniform(0, 1))
    scale = first.estimate(N).value  # of the noise: epsilon is 1
    width = WINDOW * scale
    deviation = 1 / math.sqrt(12 * N)
    near = math.erf(width / deviation / math.sqrt(2))
    print(f"\nmean of {N:,} values, uniform(0, 1): noise {scale:.2e}, spread under P {deviation:.2e}")
    before = after = 0.0
    losses = []
    for _ in range(repeats):
        x = rng.random(N)
        answer = first(x)
        question = chosen(answer, width)
        estimate = private(question, samplers.uniform(0, 1)).estimate(N)
        found = gaps(question, x, rng, 20)
        after += float(np.mean(found > estimate.value)) / repeats
        losses += list(found[found > estimate.value] / estimate.value)
        other = gaps(question, rng.random(N), rng, 20)  # a dataset that the first answer is not about
        before += float(np.mean(other > estimate.value)) / repeats
    usual = private(chosen(0.5, width), samplers.uniform(0, 1))
    checked = audit(usual, N, pairs=pairs, releases=0, seed=4).coverage
    print("the second question: the mean square; near the first answer, the fraction of the sum")
    print(f"  promised: the first or the second fails on at most    {2 * GAMMA:.3f} of pairs")
    print(f"  P draws a mean that near to 0.5, exactly              {near:.3f}")
    print(f"  the second fails on fresh pairs (audit, near 0.5)     {checked.share:.3f}")
    print(f"  the second fails on other people's data               {before:.3f}")
    print(f"  the second fails on the data of the first answer      {after:.3f}")
    print(f"  the first answer is that near to the truth, exactly   {1 - math.exp(-WINDOW):.3f}")
    print(f"  median loss where it fails: epsilon = {np.median(losses):,.0f} in place of 1")


def main(quick: bool) -> None:
    """Print all tables."""
    if find_spec("dp_accounting") is None:
        print("how many releases fit: needs dp-accounting, pip install 'privatize-dp[accounting]'")
    else:
        capacity()
    parts(quick)
    two_distributions(quick)
    adaptive(quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    main(parser.parse_args().quick)
