"""Plain differential privacy, for all pairs of neighbours: what PINQ, Airavat and GUPT did, and a proof.

All data is made up, so raw answers are printed beside private ones. Counts, sums and mappers are clamped, and
a mean has a bound that is proven by hand. Two black boxes of scikit-learn, k-means and logistic regression,
run on blocks of people, against an answer of zeros. With epsilon=0.1 for all coefficients together, blocks
are useless: an answer is a random one between the bounds.

    python examples/plain.py           25,000 people; scikit-learn for the last two (a few minutes)
    python examples/plain.py --quick   1,000 people and few blocks: only to see that it runs
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import Blocks, additive, privatize, samplers, sums

try:  # at the top: imports inside a function are made again on each block, which takes most of its time
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LogisticRegression
except ImportError:
    KMeans = LogisticRegression = None

WORDS = ["fever", "cough", "fall"]
CENTERS = np.array([[-2.0] * 10, [0.0] * 10, [2.0] * 10])
COEFFICIENTS = np.array([1.0, -1.0, 0.5, -0.5, 0.25, -0.25, 0.0, 0.0, 0.0, 0.0])


def show(title: str, private: Any, raw: Any) -> None:
    """Print a private answer, the raw one and the error; of many numbers, the root of its mean square."""
    answer, truth = (np.asarray(each, dtype=float).ravel() for each in (private, raw))
    error = float(np.sqrt(np.mean(np.square(answer - truth))))
    few = [f"{value:,.10g}" for value in (answer.round(2)[0], truth.round(2)[0])]
    print(f"{title:58s} {few[0]:>12s} {few[1]:>12s} {error:10.3g}")


def head(title: str) -> None:
    """Print the head of a table."""
    print(f"\n{title:58s} {'private':>12s} {'raw':>12s} {'error':>10s}")


# -- PINQ: counts and sums of what is selected, and parts --


def pinq(n: int) -> None:
    """Ask for counts and sums, as with PINQ's Where, NoisyCount, NoisySum and Partition."""
    rng = np.random.default_rng(1)
    people = {
        "age": rng.integers(0, 100, n),
        "income": rng.gamma(2.0, 20.0, n),
        "region": rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
    }

    @privatize(epsilon=1)
    @additive(average=False, bounds=(0, 1))
    def pensioners(people: Any) -> Any:
        return people["age"] >= 65

    @privatize(epsilon=1)
    @additive(average=False, bounds=(0, 200))
    def their_income(people: Any) -> Any:
        return np.where(people["age"] >= 65, people["income"], 0)

    parts = privatize(epsilon=1)(sums.counts(["north", "south", "west"]))
    old = people["age"] >= 65
    head("counts and sums (PINQ), epsilon=1 each")
    show("how many are 65 or older", pensioners(people), old.sum())
    show("their income together", their_income(people), people["income"].clip(0, 200)[old].sum())
    counted = [(people["region"] == name).sum() for name in ("north", "south", "west")]
    show("people by region (the first of three)", list(parts(people["region"]).values()), counted)


# -- Airavat: a mapper that nobody has read --


def airavat(n: int) -> None:
    """Run a mapper over lines of text; whatever it returns for a line is shortened to at most three words."""
    rng = np.random.default_rng(2)
    lines = [" ".join(rng.choice([*WORDS, "rest", "tea", "talk"], 5).tolist()) for _ in range(n)]

    def words(line: str) -> list[int]:
        return [line.split().count(word) for word in WORDS]

    @privatize(epsilon=1)
    @additive(average=False, bounds=sums.ball(3, len(WORDS), norm="l1"))
    def mapper(lines: Any) -> Any:
        return np.array([words(line) for line in lines], dtype=float).reshape(-1, len(WORDS))

    head("a mapper (Airavat), epsilon=1")
    raw = np.array([words(line) for line in lines])
    kept = raw * np.minimum(1, 3 / np.maximum(raw.sum(axis=1, keepdims=True), 1))
    show("words of interest, against the shortened lines", mapper(lines), kept.sum(axis=0))
    show("the same, against all words: the price of shortening", mapper(lines), raw.sum(axis=0))


# -- a bound that you have proved --


def by_proof(n: int) -> None:
    """Release a mean with the bound (high - low) / n, which holds for all pairs of neighbours."""

    @privatize(epsilon=1, sensitivity=lambda n: 120 / n, sampler=samplers.uniform(0, 120), store=None)
    def mean_age(ages: Any) -> float:
        return float(ages.mean())

    ages = np.random.default_rng(3).integers(0, 100, n).astype(float)
    head("a bound that its author proved, epsilon=1")
    show("mean age", mean_age(ages), ages.mean())


# -- GUPT: black boxes --


def k_means(people: Any) -> Any:
    """Find three centers; they are sorted, so that they have the same place on every block."""
    centers = KMeans(3, n_init=3, random_state=0).fit(people).cluster_centers_
    return centers[np.argsort(centers[:, 0])]


def logistic(people: Any) -> Any:
    """Fit a logistic regression; the last column is the label."""
    return LogisticRegression(C=1.0).fit(people[:, :-1], people[:, -1]).coef_[0]


def gupt(n: int, quick: bool) -> None:
    """Run two functions of scikit-learn on blocks of people."""
    rng = np.random.default_rng(4)
    clusters = CENTERS[rng.integers(0, 3, n)] + rng.normal(size=(n, 10))
    features = rng.normal(size=(n, 10))
    labels = rng.random(n) < 1 / (1 + np.exp(-features @ COEFFICIENTS))
    labelled = np.column_stack([features, labels])
    tasks: list[tuple[str, Callable[[Any], Any], Any, Any]] = [
        ("k-means, 3 centers of 10 numbers, ±5", k_means, clusters, np.full((3, 10), 5.0)),
        ("logistic regression, 10 coefficients, ±3", logistic, labelled, np.full(10, 3.0)),
    ]
    for title, function, data, high in tasks:
        raw = function(data)
        head(f"{title} (GUPT)")
        show("  no data at all: zeros", np.zeros(raw.shape), raw)
        plans: list[tuple[Any, float, Any]] = [("median", 10.0, 20), ("mean", 10.0, 20)]
        if not quick:
            plans = [
                ("median", 0.1, 200),
                *((each, e, "auto") for each in ("median", "mean") for e in (1.0, 10.0)),
            ]
        for aggregate, epsilon, blocks in plans:
            mechanism = Blocks(-high, high, aggregate=aggregate, blocks=blocks)
            b = mechanism.number(n, epsilon)
            private = privatize(epsilon=epsilon, mechanism=mechanism)(function)
            show(f"  {aggregate} of {b} blocks of {n // b}, epsilon={epsilon:g}", private(data), raw)


def main() -> None:
    """Print all answers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer people, few blocks")
    quick = parser.parse_args().quick
    n = 1_000 if quick else 25_000
    print(f"{n:,} made-up people. The error is the root of the mean square over all numbers of an answer.")
    pinq(n)
    airavat(n)
    by_proof(n)
    if KMeans is None:
        print("GUPT's black boxes are left out: scikit-learn is not installed.", file=sys.stderr)
    else:
        gupt(n, quick)


if __name__ == "__main__":
    main()
