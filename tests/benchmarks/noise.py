"""What exact noise costs, against numpy's insecure noise."""

import functools
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import Gaussian, Laplace
from privatize.mechanisms.shapes import Shape
from privatize.mechanisms.weighted import weighted
from privatize.noise import exact

from .measuring import Result, counted, in_turn, result


def run(quick: bool) -> list[Result]:
    """Measure releases of one number up to a million."""
    rng, found = np.random.default_rng(1), []
    for d in (1, 10**3, 10**5, 10**6):
        vector, whole = np.zeros(d), np.zeros(d, dtype=bool)
        settings: dict[str, Any] = {"sensitivity": 1.0, "epsilon": 1.0, "whole": whole}
        works: dict[str, Callable[[], Any]] = {
            "numpy's laplace": lambda d=d: rng.laplace(size=d),
            "numpy's normal": lambda d=d: rng.normal(size=d),
            "Laplace": lambda v=vector, e=settings: Laplace().release(v, delta=0.0, **e),
            "Gaussian": lambda v=vector, e=settings: Gaussian().release(v, delta=1e-6, **e),
        }
        times = in_turn(works, 3 if quick or d > 10**5 else 9, 200 if d == 1 else 1)
        each = {name: statistics.median(taken) / d * 1e9 for name, taken in times.items()}
        for name, theirs in (("Laplace", "numpy's laplace"), ("Gaussian", "numpy's normal")):
            found.append(
                result("noise", f"{name}, {counted(d)}, each", each[name], "ns",
                       against=f"{theirs} (insecure)", theirs=each[theirs], series=name, x=d)
            )  # fmt: skip
    return [*found, matrix(quick), *crossover(quick)]


def matrix(quick: bool) -> Result:
    """Compare noise that is correlated as the gaps are with noise of one scale, for 100 numbers."""
    d = 100
    mix = np.random.default_rng(2).normal(size=(d, 3))
    shape = Shape.matrix(mix @ mix.T + 0.1 * np.eye(d))
    works = {
        name: functools.partial(
            mechanism.release, np.zeros(d), sensitivity=1.0, epsilon=1.0, delta=1e-6, whole=np.zeros(d, bool)
        )
        for name, mechanism in (("matrix", weighted(Gaussian(scaled="matrix"), shape)), ("plain", Gaussian()))
    }
    ours, theirs = (statistics.median(each) * 1e6 for each in in_turn(works, 9 if quick else 31, 20).values())
    return result("noise", "Gaussian(scaled=\"matrix\"), 100 numbers", ours, "µs", against="Gaussian",
                  theirs=theirs, most=3)  # fmt: skip


def crossover(quick: bool) -> list[Result]:
    """Show from how many draws on numpy is faster than plain Python, for which exact._FEW is set."""
    found, before = [], exact._FEW
    for d in (20, before, 2 * before):
        row = {}
        for name, few in (("Python", 10**9), ("numpy", 0)):
            exact._FEW = few
            work = functools.partial(exact.discrete_laplace, 2**40, 0, d)
            row[name] = statistics.median(in_turn({name: work}, 9 if quick else 31)[name]) * 1e6
        exact._FEW = before
        found.append(
            result("noise", f"{d} draws in plain Python", row["Python"], "µs", against="numpy",
                   theirs=row["numpy"], note=f"up to {before} are made in plain Python")
        )  # fmt: skip
    return found
