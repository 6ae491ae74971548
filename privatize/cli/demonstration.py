"""`privatize demo`: three private functions of made-up people, and what the numbers mean."""

import argparse
import math
import time
from typing import Any

import numpy as np

from privatize import samplers
from privatize.cli.command import Argument, Outcome, command
from privatize.display.figures import amount
from privatize.function.private_function import privatize


@command(
    "demo",
    Argument("--epsilon", type=float, default=1.0, help="privacy loss (default: 1)"),
    Argument("--gamma", type=float, default=0.05, help="share on which it may fail (default: 0.05)"),
)
def demo(given: argparse.Namespace) -> Outcome:
    """Privatize three functions of made-up people, and explain the numbers.

    privatize demo --epsilon 0.1
    """
    n, epsilon, gamma = 1000, given.epsilon, given.gamma
    rng = np.random.default_rng()
    ages = np.clip(rng.normal(44, 16, n), 0, 100)
    people, bought = _customers(n, rng)
    promise: dict[str, Any] = {"epsilon": epsilon, "gamma": gamma, "store": None, "seed": 1}

    @privatize(**promise, sampler=samplers.uniform(0, 100))
    def average_age(ages: Any) -> Any:
        return ages.mean()

    @privatize(**promise, sampler=samplers.uniform(0, 100))
    def age_groups(ages: Any) -> Any:
        return np.histogram(ages, bins=[0, 20, 40, 60, 80, 100])[0]

    @privatize(**promise, data=("people", "bought"), sampler=_customers)
    def train(people: Any, bought: Any) -> Any:
        x = np.column_stack([people, np.ones(len(people))])
        return np.linalg.solve(x.T @ x / len(x) + 0.01 * np.eye(x.shape[1]), x.T @ bought / len(x))

    intro = (
        f"{n} made-up people. Each function first runs on public, synthetic neighbours: how far one person\n"
        f"can move its answer (the sensitivity) sets the noise. The promise: if one person's record is\n"
        f"replaced, no answer becomes more than e^{epsilon:g} = {_times(epsilon)} times as likely, "
        f"on all\nbut a share gamma={gamma:g} of random neighbouring datasets. So it may fail for up to\n"
        f"gamma*n = {gamma * n:g} of {n} people, in expectation."
    )
    lines = [intro]
    shown = [
        _show(lines, "the average age", average_age, (ages,), 100 / n),
        _show(lines, "how many people in each age group", age_groups, (ages,), 2.0),
        _show(lines, "a linear classifier: who buys?", train, (people, bought), None),
    ]
    fresh, label = _customers(5000, rng)
    right = {}
    for name in ("raw", "private"):
        w = shown[2][name]
        right[name] = float(np.mean(np.sign(fresh @ w[:-1] + w[-1]) == label))
        lines.append(f"  {name + ' classifier is right':28s} {right[name]:.1%} of the time, on new people")
    lines.append("\nEvery call draws new noise, and every call spends epsilon again.")
    lines.append("For means and counts, made-up neighbours from wide bounds are safe. For a classifier they")
    lines.append("must be like people, as they are here. With real people, learn that first, as in:")
    lines.append("docs/quickstart.md, with a CSV of your own.")
    facts = {"n": n, "epsilon": epsilon, "gamma": gamma, "functions": shown, "right": right}
    return Outcome("\n".join(lines), facts)


def _times(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else "more than 10^300"


def _customers(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw people as (hours online, income) in [0, 1]^2, and whether they buy, -1 or 1."""
    bought = rng.choice([-1.0, 1.0], n)
    center = np.where(bought[:, None] > 0, [0.65, 0.6], [0.35, 0.4])
    return np.clip(rng.normal(center, 0.15), 0, 1), bought


def _show(lines: list[str], title: str, function: Any, data: Any, bound: float | None) -> dict[str, Any]:
    """Release an answer, add lines about it, and return its facts."""
    start = time.perf_counter()
    release = function.release(*data)
    took = time.perf_counter() - start
    raw = function.__wrapped__(*data)
    rows = [
        ("raw answer (stays secret)", _rounded(raw)),
        ("private answer", _rounded(release.value)),
        ("sensitivity, sampled", f"{release.sensitivity:.4g}  (k={release.k} of m={release.m} pairs)"),
        ("sensitivity, global bound", "none known" if bound is None else f"{bound:.4g}"),
        ("noise", f"{release.mechanism}, scale {amount(release.scale)}"),
        ("time to calibrate", f"{took:.2f} s"),
    ]
    lines += [f"\n{title}", *(f"  {name:28s} {value}" for name, value in rows)]
    facts = {"function": function.__name__, "raw": raw, "private": release.value}
    facts |= {"sensitivity": release.sensitivity, "global": bound, "m": release.m, "k": release.k}
    return facts | {"mechanism": release.mechanism, "scale": release.scale, "seconds": round(took, 3)}


def _rounded(value: Any) -> str:
    return np.array2string(np.asarray(value), precision=4, suppress_small=True)
