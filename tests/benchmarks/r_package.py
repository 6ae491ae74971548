"""The workloads of the R package of the paper's authors, against its seconds and the bare loop.

R is not run: its seconds were recorded with diffpriv 0.4.2.9000 (and e1071) on two cores like those here.
Cost is linear in m, so where a part is run with fewer pairs its seconds are scaled up, and the note says so.
"""

import functools
import importlib.util
import statistics
from typing import Any

import numpy as np
import scipy.stats

from examples.paper.kde_utility import BANDWIDTH, LATTICE, both, density, mixture
from examples.paper.svm_sensitivity import C, classes, machine
from privatize import estimate_sensitivity, plan, samplers, sums

from .calibration import Draw, arrays, loop
from .measuring import Result, fresh, medians, missing, result, seconds

GROUP = "the R package"
# Recorded with R diffpriv 0.4.2.9000.
SECONDS = {"mean": 4.58, "cube": 0.149, "density": 339.5, "machine": 9.0}


Way = tuple[Any, dict[str, Any], int, float | None]  # a function, settings, m, and a goal


def workload(
    name: str,
    r: float,
    n: int,
    m: int,
    sampler: Any,
    ways: dict[str, Way],
    bare: tuple[Any, Draw, Any, int],
    *,
    norm: str = "l1",
    rounds: int = 4,
) -> list[Result]:
    """Calibrate in several ways, on all cores, in turn with the bare loop.

    The first round is not counted, unless it is the only one: in it workers start and import modules.
    """
    function, draw, split, some = bare
    works = {"bare": lambda: loop(function, some, draw, split, n=n)}
    counts = {"bare": some} | {way: count for way, (_, _, count, _) in ways.items()}
    for way, (f, settings, count, _) in ways.items():
        made = plan(m=count, bound="dkw")
        works[way] = functools.partial(
            estimate_sensitivity, f, n=n, sampler=sampler, norm=norm, plan=made, seed=1, **settings
        )
    times: dict[str, list[float]] = {way: [] for way in works}
    for _ in range(rounds):
        for way, work in works.items():
            times[way].append(seconds(work) * m / counts[way])
    taken = {way: statistics.median(each[1:] or each) for way, each in times.items()}
    found = []
    for way, (*_, least) in ways.items():
        notes = [f"the bare loop on one core {taken['bare']:.3g} s: {taken['bare'] / taken[way]:.3g} times"]
        if counts[way] < m:
            notes.append(f"measured with m={counts[way]:,} and scaled")
        if counts["bare"] < m:
            notes.append(f"the loop with m={counts['bare']:,}")
        found.append(
            result(GROUP, f"{name}, {way}", taken[way], "s", against="R", theirs=r, faster=True, least=least,
                   note="; ".join(notes))
        )  # fmt: skip
    return found


def run(quick: bool) -> list[Result]:
    """Run all workloads."""
    many = 50_000
    processes = {"workers": None, "progress": False}
    found = workload(
        "mean of Exp(1), n=1,000, m=50,000",
        SECONDS["mean"],
        1000,
        many,
        samplers.as_sampler(scipy.stats.expon()),
        {
            "plain": (_mean, processes, many, 4),
            "batch=": (_mean, processes | {"batch": _means}, many, 8),
            "additive": (sums.means(), processes, many, 100),
        },
        (_mean, lambda count, rng: rng.exponential(1.0, count), arrays, 5000 if quick else many),
    )
    found += workload(
        "mean of 8 columns, n=500, m=1,500",
        SECONDS["cube"],
        500,
        1500,
        samplers.uniform(0, 1, size=8),
        {
            "plain": (_columns, processes, 1500, None),
            "batch=": (_columns, processes | {"batch": _means}, 1500, None),
            "additive": (sums.means(), processes, 1500, None),
        },
        (_columns, lambda count, rng: rng.random((count, 8)), arrays, 1500),
    )
    public = mixture(1 / 2)
    found += workload(
        "density at 11 points, n=5,000, m=50,000",
        SECONDS["density"],
        5000,
        many,
        public,
        {
            "plain": (_density, processes, 500 if quick else 2000, None),
            "pair=": (_density, processes | {"pair": both}, 5000 if quick else many, 15),
            "additive": (sums.kde(LATTICE, BANDWIDTH), processes, many, 100),
        },
        (_density, public.draw, arrays, 300 if quick else 1000),
        norm="sup",
        rounds=1 if quick else 2,
    )
    if importlib.util.find_spec("sklearn") is None:
        return [*found, missing(GROUP, "linear SVM", "scikit-learn is not installed")]
    return found + support_vectors(300 if quick else 1500, 1 if quick else 3)


COLD = """
import time
import numpy
start = time.perf_counter()
import sklearn.svm  # as a program does that uses it; workers are new, and have not loaded it
loading = time.perf_counter() - start
from tests.benchmarks.r_package import machine_calibrated, machine_loop
start = time.perf_counter()
machine_calibrated({some}, workers={workers})
cold = time.perf_counter() - start
start = time.perf_counter()
machine_calibrated({some}, workers={workers})
warm = time.perf_counter() - start
start = time.perf_counter()
machine_loop({some})
print(cold, warm, time.perf_counter() - start, loading)
"""


def machine_calibrated(m: int, **settings: Any) -> None:
    """Calibrate the paper's support vector machine."""
    estimate_sensitivity(
        _machine, n=1000, sampler=classes(8), norm="l1", plan=plan(m=m, bound="dkw"), seed=1,
        min_sensitivity=1e-12, progress=False, **settings,
    )  # fmt: skip


def machine_loop(m: int) -> None:
    """Draw and fit the paper's support vector machine in a bare loop."""
    loop(_machine, m, classes(8).draw, _tuples, n=1000)


def support_vectors(m: int, rounds: int) -> list[Result]:
    """Compare two workers that must be started first, and warm ones, with the bare loop, in new processes.

    The last lines are for four times as many pairs, because starting takes as long whatever their number.
    """
    name, scale = "linear SVM, n=1,000, d=8, m=1,500", 1500 / m
    found = []
    for which, workers in (("two workers", 2), ("workers=None", None)):
        rows = [fresh(COLD.format(some=m, workers=workers)) for _ in range(rounds)]
        cold, warm, bare, loading = medians([[each * scale for each in row] for row in rows])
        note = f"R: {SECONDS['machine']:g} s" + (f"; measured with m={m} and scaled" if m < 1500 else "")
        facts = {"against": "the bare loop on one core", "theirs": bare, "note": note}
        found += [
            result(GROUP, f"{name}, {which}, started first", cold, "s", **facts, most=0.7),
            result(GROUP, f"{name}, {which}, warm", warm, "s", **facts, most=0.58),
            result(
                GROUP,
                f"{name}, {which}, importing scikit-learn alone",
                loading / scale,
                "s",
                against=facts["against"],
                theirs=bare,
            ),
        ]
        if m == 1500:
            cold, _, bare, _ = fresh(COLD.format(some=6000, workers=workers))
            longer = name.replace("1,500", "6,000")
            found.append(
                result(GROUP, f"{longer}, {which}, started first", cold, "s", against=facts["against"],
                       theirs=bare)
            )  # fmt: skip
    return found


def _mean(x: Any) -> Any:
    return x.mean()


def _columns(x: Any) -> Any:
    return x.mean(axis=0)


def _means(x: Any) -> Any:
    return x.mean(axis=1)


def _density(data: Any) -> Any:
    return density(data, LATTICE)


def _machine(data: tuple[Any, Any]) -> Any:
    return np.append(*machine(*data, C, 1e-3))


def _tuples(drawn: Any, n: int, at: int) -> tuple[Any, Any]:
    halves = [arrays(part, n, at) for part in drawn]
    return tuple(one for one, _ in halves), tuple(other for _, other in halves)
