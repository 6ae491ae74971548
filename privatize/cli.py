"""The command line: ``privatize``, also ``python -m privatize``."""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privatize import PrivateFunction, __version__, audit, privatize, samplers
from privatize.checking import check, table
from privatize.errors import PrivatizeError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="privatize", description="Random differentially private answers from any function of a dataset."
    )
    parser.add_argument("--version", action="version", version=f"privatize {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    show = commands.add_parser(
        "demo", help="privatize three functions of made-up people, and explain the numbers"
    )
    show.add_argument("--epsilon", type=float, default=1.0, help="privacy loss (default: 1)")
    show.add_argument("--gamma", type=float, default=0.05, help="confidence of random DP (default: 0.05)")
    measure = commands.add_parser("audit", help="measure whether a private function keeps its promise")
    measure.add_argument(
        "function", metavar="module:function", help="a private function, such as app.stats:mean"
    )
    measure.add_argument("-n", type=int, required=True, help="number of records")
    measure.add_argument(
        "--pairs", type=int, help="fresh pairs of neighbours (default: 20/gamma, at least 1000)"
    )
    measure.add_argument(
        "--releases", type=int, default=20_000, help="releases on each neighbour (default: 20000)"
    )
    measure.add_argument("--confidence", type=float, default=0.99, help="of the verdict (default: 0.99)")
    measure.add_argument("--seed", type=int, help="seed of the fresh pairs")
    measure.add_argument("--html", metavar="FILE", help="write the audit to a page as well")
    policy = commands.add_parser(
        "check", help="list private functions, and check them against [tool.privatize] in pyproject.toml"
    )
    policy.add_argument("targets", nargs="+", metavar="module-or-path", help="modules, files or folders")
    given = parser.parse_args(argv)
    if given.command is None:
        parser.print_help()
        return 2
    try:
        if given.command == "audit":
            return _audit(given)
        if given.command == "check":
            findings = check(given.targets)
            print(table(findings))
            return 1 if any(finding.problems for finding in findings) else 0
        demo(given.epsilon, given.gamma)
    except (ValueError, PrivatizeError, ImportError, OSError) as error:
        print(f"privatize: {error}", file=sys.stderr)
        return 2
    return 0


def _audit(given: argparse.Namespace) -> int:
    """Audit a function, print what was measured, and return 1 if the promise is broken."""
    found = audit(
        _find(given.function),
        given.n,
        pairs=given.pairs,
        releases=given.releases,
        confidence=given.confidence,
        seed=given.seed,
    )
    print(found)
    if given.html:
        Path(given.html).write_text(found.html(), encoding="utf-8")
    return 0 if found.holds else 1


def _find(name: str) -> PrivateFunction[..., Any]:
    """Return the private function at ``module:name``, with the working folder importable."""
    module, sign, path = name.partition(":")
    if not sign or not path:
        raise ValueError(f"{name!r} is not module:function, such as app.stats:average_age.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    thing: Any = importlib.import_module(module)
    for part in path.split("."):
        if not hasattr(thing, part):
            raise ValueError(f"{module} has no {path!r}.")
        thing = getattr(thing, part)
    if not isinstance(thing, PrivateFunction):
        raise ValueError(f"{name} is a {type(thing).__name__}, not a private function: decorate it.")
    return thing


def demo(epsilon: float = 1.0, gamma: float = 0.05) -> None:
    """Privatize a mean, a histogram and a linear classifier, and print what comes out."""
    n = 1000
    rng = np.random.default_rng()
    ages = np.clip(rng.normal(44, 16, n), 0, 100)
    people, bought = _customers(n, rng)
    promise: dict[str, Any] = {"epsilon": epsilon, "gamma": gamma, "store": None}

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

    print(
        f"{n} made-up people. Each function first runs on public, synthetic neighbours: how far one person\n"
        f"can move its answer (the sensitivity) sets the noise. The promise: if one person's record is\n"
        f"replaced, no answer becomes more than e^{epsilon:g} = {math.exp(epsilon):.3g} times as likely, "
        f"on all\nbut a share gamma={gamma:g} of random neighbouring datasets."
    )
    _show("the average age", average_age, (ages,), 100 / n)
    _show("how many people in each age group", age_groups, (ages,), 2.0)
    weights = _show("a linear classifier: who buys?", train, (people, bought), None)
    fresh, label = _customers(5000, rng)
    for name, w in (("raw", train.__wrapped__(people, bought)), ("private", weights)):
        right = np.mean(np.sign(fresh @ w[:-1] + w[-1]) == label)
        print(f"  {name + ' classifier is right':28s} {right:.1%} of the time, on new people")
    print("\nEvery call draws new noise, and every call spends epsilon anew. Next: the README.")


def _customers(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw people as (hours online, income) in [0, 1]^2, and whether they buy, -1 or 1."""
    bought = rng.choice([-1.0, 1.0], n)
    center = np.where(bought[:, None] > 0, [0.65, 0.6], [0.35, 0.4])
    return np.clip(rng.normal(center, 0.15), 0, 1), bought


def _show(title: str, function: PrivateFunction[..., Any], data: tuple[Any, ...], bound: float | None) -> Any:
    start = time.perf_counter()
    release = function.release(*data)
    took = time.perf_counter() - start
    with np.printoptions(precision=3, suppress=True):
        print(f"\n{title}")
        rows = [
            ("raw answer (stays secret)", _plain(function.__wrapped__(*data))),
            ("private answer", _plain(release.value)),
            ("sensitivity, sampled", f"{release.sensitivity:.4g}  (k={release.k} of m={release.m} pairs)"),
            ("sensitivity, global bound", "none known" if bound is None else f"{bound:.4g}"),
            ("noise", f"{release.mechanism}, scale {release.scale:.4g}"),
            ("time to calibrate", f"{took:.2f} s"),
        ]
        for name, value in rows:
            print(f"  {name:28s} {value}")
    return release.value


def _plain(value: Any) -> str:
    return f"{value:.4f}" if np.ndim(value) == 0 else str(value)
