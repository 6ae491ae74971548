"""What the benchmarks share: results, timing, functions of a given duration, and fresh processes."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from privatize import configure
from privatize.config import policy

ROOT = Path(__file__).parents[2]
Work = Callable[[], Any]


@dataclass(frozen=True)
class Result:
    """One line of the table.

    Attributes
    ----------
    group, name : str
        Which benchmark, and which line of it.
    ours : float or None
        What was measured, in `unit`; None if it could not be.
    unit : str
        "s", "ms", "µs", "ns", "MB", "pairs", ...
    against : str
        What it is compared with, if anything.
    theirs : float or None
        The same figure for `against`.
    ratio : float or None
        Ours over theirs, or theirs over ours if `faster`.
    faster : bool
        Whether the ratio says how many times as fast ours is, so that more is better.
    goal : str
        What the ratio should be, or `ours` if there is no ratio.
    met : bool or None
        Whether the goal is met; None without a goal.
    note : str
        Anything else.
    series, x : str, float
        The line of a chart that it belongs to, and its position on that line.
    """

    group: str
    name: str
    ours: float | None
    unit: str
    against: str = ""
    theirs: float | None = None
    ratio: float | None = None
    faster: bool = False
    goal: str = ""
    met: bool | None = None
    note: str = ""
    series: str = ""
    x: float = 0.0


def result(
    group: str,
    name: str,
    ours: float,
    unit: str,
    *,
    against: str = "",
    theirs: float | None = None,
    ratio: float | None = None,
    faster: bool = False,
    most: float | None = None,
    least: float | None = None,
    **more: Any,
) -> Result:
    """Return a result; its ratio and whether its goal is met follow from the rest.

    Parameters
    ----------
    most, least : float, optional
        The goal: for the ratio, or for `ours` if nothing is compared.
    """
    if ratio is None and theirs is not None:
        ratio = theirs / ours if faster else ours / theirs
    judged = ours if ratio is None else ratio
    goal, met = "", None
    mark = "" if ratio is not None else f" {unit}"
    if most is not None:
        goal, met = f"≤ {most:g}{mark}", judged <= most
    if least is not None:
        goal, met = f"≥ {least:g}{mark}", judged >= least
    return Result(group, name, ours, unit, against, theirs, ratio, faster, goal, met, **more)


def missing(group: str, name: str, why: str) -> Result:
    """Return a line for what cannot be measured here."""
    return Result(group, name, None, "", note=why)


# --- time -------------------------------------------------------------------------------------------


def seconds(work: Work, inner: int = 1) -> float:
    """Return how long one run takes, as the mean of `inner` runs."""
    start = time.perf_counter()
    for _ in range(inner):
        work()
    return (time.perf_counter() - start) / inner


def in_turn(works: dict[str, Work], rounds: int, inner: int = 1) -> dict[str, list[float]]:
    """Return the seconds of each work in each round; a first round is not counted."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work, inner))
    return times


class Compared(NamedTuple):
    """Median seconds of both, the median ratio of ours to theirs, and the ratios of all rounds."""

    ours: float
    theirs: float
    ratio: float
    ratios: list[float]

    @property
    def spread(self) -> str:
        """The smallest and the largest ratio."""
        return f"{min(self.ratios):.2f} to {max(self.ratios):.2f} in {len(self.ratios)} rounds"


def compare(ours: Work, theirs: Work, rounds: int, inner: int = 1) -> Compared:
    """Time both in turn."""
    found = in_turn({"ours": ours, "theirs": theirs}, rounds, inner)
    ratios = [a / b for a, b in zip(found["ours"], found["theirs"], strict=True)]
    middle = statistics.median
    return Compared(middle(found["ours"]), middle(found["theirs"]), middle(ratios), ratios)


def microseconds(work: Work, inner: int = 100, rounds: int = 9) -> float:
    """Return the best time of one run: for work so short that other processes can only slow it down."""
    work()
    return min(seconds(work, inner) for _ in range(rounds)) * 1e6


def pace() -> float:
    """Return the milliseconds of a fixed piece of Python, which tell whether the processor's speed varies."""
    return statistics.median(seconds(_count) for _ in range(21)) * 1e3


def _count() -> None:
    total = 0
    for number in range(100_000):
        total += number * number


def waits(duration: float, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that is busy for a given time, by the clock, and returns an answer about its data."""

    def function(data: Any) -> Any:
        end = time.perf_counter() + duration
        found = answer(data)
        while time.perf_counter() < end:
            pass
        return found

    return function


def works(duration: float) -> Callable[[Any], float]:
    """Return a mean that does a fixed amount of work first, which takes `duration` on a free core."""
    once = min(seconds(_turn, 20) for _ in range(20))
    turns = max(1, round(duration / once))

    def mean(x: Any) -> float:
        for _ in range(turns):
            np.sort(np.arange(1000.0))
        return float(x.mean())

    return mean


def _turn() -> None:
    np.sort(np.arange(1000.0))


@contextlib.contextmanager
def settings(**options: Any) -> Iterator[None]:
    """Configure the library for a while."""
    with mock.patch.dict(policy._chosen):
        configure(**options)
        yield


# --- other processes ----------------------------------------------------------------------------------


def fresh(code: str, *args: object, python: str = sys.executable) -> list[float]:
    """Return the numbers that a script prints, in a process of its own."""
    command = [python, "-c", code, *map(str, args)]
    # Our modules are compiled once, as those of an installed package are.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return [float(number) for number in done.stdout.split()]


def medians(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the median of every column."""
    return [statistics.median(column) for column in zip(*rows, strict=True)]


def counted(d: int) -> str:
    """Return how many numbers there are, in words."""
    return "1 number" if d == 1 else f"{d:,} numbers"


def as_json(results: list[Result]) -> str:
    """Return results as JSON."""
    return json.dumps([vars(each) for each in results], ensure_ascii=False)
