"""`privatize demo`: three private functions of made-up people, and what the numbers mean."""

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from privatize import samplers
from privatize.cli.command import Argument, Outcome, command
from privatize.cli.showing import one_line
from privatize.config.policy import policy, without_policy
from privatize.display.figures import amount
from privatize.errors import PolicyError, SettingsError
from privatize.function.private_function import privatize

_N = 1000
_NEXT = """
Every call draws new noise, and every answer is charged its epsilon again.
For means and counts, made-up neighbours from wide bounds are safe. For a classifier they must be like
people, as they are here. With real people, learn that first: help(privatize.learn).

Next:
  python -m privatize demo --script mean.py                write a short script, and put your data into it
  python -c "import privatize; help(privatize.privatize)"  read about all options of the decorator
  python -m privatize --help                               see what else the command can do"""
_SCRIPT = '''"""A private mean. Change the three lines that are marked, and run: python {name}"""

import numpy as np

from privatize import Budget, privatize, samplers, seal

# CHANGE: your data, such as np.loadtxt("people.csv", delimiter=",", skiprows=1, usecols=0)
ages = np.random.default_rng(0).normal(44, 16, 1000).clip(0, 100)
# CHANGE: public bounds of a value. Do not look at the data for them.
P = samplers.uniform(0, 100)
# CHANGE: ledger="ledger.db", so that what was spent is remembered when this script ends
budget = Budget("people", epsilon={most:g}, gamma={gamma:g}, ledger="memory")


@privatize(epsilon={epsilon:g}, gamma={gamma:g}, sampler=P)
def average(values):
    return values.mean()


people = seal(ages, name="people", version="1", budget=budget)  # only private functions can read it now
release = average.release(people)
print(release)
print("between", *release.interval(0.95), "with 95% probability")
print(budget)
'''


@command(
    "demo",
    Argument("--epsilon", type=float, default=1.0, help="privacy loss (default: 1)"),
    Argument("--gamma", type=float, default=0.05, help="share on which it may fail (default: 0.05)"),
    Argument("--script", metavar="FILE", help="write a script with a private mean instead, to start from"),
)
def demo(given: argparse.Namespace) -> Outcome:
    """Privatize three functions of made-up people, and explain the numbers.

    privatize demo --epsilon 0.1
    privatize demo --script mean.py
    """
    with without_policy():  # which is about private data, and there is none
        if given.script is not None:
            return _written(given.script, given.epsilon, given.gamma)
        found = _demonstrated(given.epsilon, given.gamma)
    note = _exempted()
    return Outcome(f"{found.text}\n\n{note}" if note else found.text, found.facts | {"policy": note or None})


def _demonstrated(epsilon: float, gamma: float) -> Outcome:
    rng = np.random.default_rng()
    ages = np.clip(rng.normal(44, 16, _N), 0, 100)
    people, bought = _customers(_N, rng)
    promise: dict[str, Any] = {"epsilon": epsilon, "gamma": gamma, "store": None, "seed": 1}
    promise["workers"] = "inline"  # another process would read the policy

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

    lines = [_intro(epsilon, gamma)]
    shown = [
        _show(lines, "the average age", average_age, (ages,), 100 / _N),
        _show(lines, "how many people in each age group", age_groups, (ages,), 2.0),
        _show(lines, "a linear classifier: who buys?", train, (people, bought), None),
    ]
    fresh, label = _customers(5000, rng)
    right = {}
    for name in ("raw", "private"):
        w = shown[2][name]
        right[name] = float(np.mean(np.sign(fresh @ w[:-1] + w[-1]) == label))
        lines.append(f"  {name + ' classifier is right':28s} {right[name]:.1%} of the time, on new people")
    facts = {"n": _N, "epsilon": epsilon, "gamma": gamma, "functions": shown, "right": right}
    return Outcome("\n".join([*lines, _NEXT]), facts)


def _intro(epsilon: float, gamma: float) -> str:
    return (
        f"{_N} made-up people. Each function first runs on public, synthetic neighbours: how far one person\n"
        f"can move its answer (the sensitivity) sets the noise. The promise: if one person's record is\n"
        f"replaced, no answer becomes more than e^{epsilon:g} = {_times(epsilon)} times as likely, "
        f"on all\nbut a share gamma={gamma:g} of random neighbouring datasets. So it may fail for up to\n"
        f"gamma*n = {gamma * _N:g} of {_N} people, in expectation."
    )


def _times(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else "more than 10^300"


def _exempted() -> str:
    """Say that the policy of this folder does not matter here, if there is one."""
    try:
        file = policy().file
    except PolicyError as error:  # the demo needs none, but everything else does
        return f"The policy of this folder is not needed here, but it cannot be used: {one_line(error)}"
    if file is None:
        return ""
    return (
        f"The policy in {file} is about private data,\nso it does not apply to these made-up people. "
        f"It does to yours: python -m privatize check app/"
    )


def _written(file: str, epsilon: float, gamma: float) -> Outcome:
    """Write a script to start from; never over a file."""
    privatize(epsilon=epsilon, gamma=gamma, sampler=samplers.uniform(0, 1))(np.mean)  # refuses wrong ones
    path = Path(file)
    if not path.absolute().parent.is_dir():
        raise SettingsError(f"--script {file}: there is no folder {path.parent}. Make it, or name another.")
    try:
        with path.open("x", encoding="utf-8") as script:
            script.write(_SCRIPT.format(name=path.name, epsilon=epsilon, gamma=gamma, most=5 * epsilon))
    except FileExistsError:
        raise SettingsError(f"""--script {file}: it exists already, and is not overwritten. Name a new
            file.""") from None
    return Outcome(f"wrote {file}. Run it: python {file}", {"script": file})


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
