"""P learned from the data: which share of real neighbours lies beyond the estimate, and what the noise is.

People are made up, so that the raw answers and the real neighbours can be shown. Three questions are asked
under three P: uniform over the bounds of the form, learned within it, and the family around the learned P. A
real neighbour has one record replaced by another person's.

    python examples/learning.py            prints the table (about a minute)
    python examples/learning.py --quick    the same, of fewer neighbours and under two P
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import Budget, learn, learning_error, privatize, samplers, seal

P0 = samplers.table(
    age=samplers.integers(18, 100),
    income=samplers.uniform(0, 200_000),
    sex=samplers.categorical(["F", "M"]),
    frame="dict",
)
EPSILON, GAMMA = 0.3, 0.05
People = dict[str, Any]


def people(n: int, seed: int) -> People:
    """Return n made-up people: a third have no income, and few are men."""
    rng = np.random.default_rng(seed)
    age = np.clip(np.rint(rng.normal(42, 9, n)), 18, 100).astype(int)
    income = np.where(rng.random(n) < 0.33, 0.0, rng.lognormal(9.8, 0.5, n) * (0.6 + age / 100))
    sex = rng.choice(["F", "M"], n, p=[0.9, 0.1])
    return {"age": age, "income": np.clip(income, 0, 200_000), "sex": sex}


def slope(people: People) -> float:
    """Return by how much income rises with a year of age."""
    return float(np.polyfit(people["age"], people["income"], 1)[0])


def poor_men(people: People) -> float:
    """Return the share of the men who have less than 10,000."""
    men = people["sex"] == "M"
    return float((people["income"][men] < 10_000).mean())


def mean_income(people: People) -> float:
    """Return the mean income."""
    return float(people["income"].mean())


def gaps(function: Callable[[People], float], data: People, count: int) -> Any:
    """Return how far the answers on real neighbours are apart."""
    rng, n = np.random.default_rng(1), len(data["age"])
    found = []
    for _ in range(count):
        at = np.arange(n)
        at[rng.integers(n)] = rng.integers(n)
        found.append(abs(function({name: own[at] for name, own in data.items()}) - function(data)))
    return np.array(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer neighbours, and no family")
    quick = parser.parse_args().quick
    data = people(2000, seed=0)
    print(learning_error(2000, within=P0, epsilon=EPSILON))
    budget = Budget("example", epsilon=EPSILON, gamma=1, ledger="memory")
    sealed = seal(data, name="people", budget=budget)
    learned = learn(sealed, within=P0, epsilon=EPSILON)
    print(f"\n{learned.describe()}\n\n{budget.statement}\n")
    laws: dict[str, Any] = {"the bounds": P0, "learned": learned}
    if not quick:
        laws["learned, family"] = learned.family()
    print(f"{'question':<14}{'P':<18}{'estimate':>12}{'real neighbours beyond it':>28}")
    for function in (mean_income, slope, poor_men):
        real = gaps(function, data, 300 if quick else 4000)
        for name, law in laws.items():
            private = privatize(epsilon=1, gamma=GAMMA, sampler=law)(function)
            estimate = private.estimate(2000).value
            print(f"{function.__name__:<14}{name:<18}{estimate:>12.4g}{np.mean(real > estimate):>27.1%}")


if __name__ == "__main__":
    main()
