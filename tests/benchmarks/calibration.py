"""What calibration costs: per pair over the bare loop, in batches, and against n."""

import collections
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from privatize import estimate_sensitivity, plan, samplers, sums
from privatize.calibration import streams

from .measuring import Result, compare, in_turn, medians, result, waits

N = 100
UNIT = samplers.uniform(0, 1)
Draw = Callable[[int, np.random.Generator], Any]
Split = Callable[[Any, int, int], tuple[Any, Any]]


def calibrate(function: Any, m: int, *, n: int = N, sampler: Any = UNIT, **more: Any) -> None:
    """Estimate with m pairs, in this process."""
    settings = {"norm": "l1", "plan": plan(m=m, bound="marginal"), "seed": 1, "workers": "inline"} | more
    estimate_sensitivity(function, n=n, sampler=sampler, **settings)


def arrays(drawn: Any, n: int, at: int) -> tuple[Any, Any]:
    """Return two neighbours of an array: a view, and a copy with one record replaced."""
    other = drawn[:n].copy()
    other[at] = drawn[n]
    return drawn[:n], other


def frames(drawn: Any, n: int, at: int) -> tuple[Any, Any]:
    """Return two neighbours of a pandas frame."""
    rows = np.arange(n)
    rows[at] = n
    return drawn.iloc[:n], drawn.iloc[rows]


def loop(function: Callable[[Any], Any], m: int, draw: Draw, split: Split = arrays, n: int = N) -> None:
    """Draw, evaluate, replace one record, evaluate: the least that any calibration must do."""
    rng = np.random.default_rng(1)
    for at in rng.integers(n, size=m).tolist():
        one, other = split(draw(n + 1, rng), n, at)
        function(one)
        function(other)


def blocks(m: int, n: int, sampler: Any) -> Iterator[tuple[int, Any]]:
    """Draw the same numbers as a calibration, from its streams and in its blocks, and do nothing else."""
    size = streams.block_size(n)
    for block in range(-(-m // size)):
        count = min(size, m - size * block)
        drawn = sampler.draw(count * (n + 1), streams.stream(1, streams.RECORDS, block))
        yield block, drawn.reshape(count, n + 1)


def by_hand(batch: Callable[[Any], Any], m: int, n: int, sampler: Any) -> Any:
    """Measure these pairs in stacks, without copies, checks or handling of failures."""
    found = []
    for block, stack in blocks(m, n, sampler):
        rows, data = np.arange(len(stack)), stack[:, :n]
        at = streams.stream(1, streams.POSITIONS, block).integers(n, size=streams.block_size(n))[: len(stack)]
        one = batch(data)
        stack[rows, at] = stack[:, n]
        found.append(np.abs(one - batch(data)))
    return np.concatenate(found)


def numbers(count: int, rng: np.random.Generator) -> Any:
    """Draw numbers."""
    return rng.uniform(0.0, 1.0, count)


Case = tuple[Callable[[Any], Any], Any, Draw, Split]


def cases() -> dict[str, Case]:
    """Return functions by what they get and return, with a sampler, and draw and split of the bare loop."""
    found: dict[str, Case] = {
        "a float": (lambda x: float(x.mean()), UNIT, numbers, arrays),
        "an array": (lambda x: np.array([x.mean(), x.std()]), UNIT, numbers, arrays),
        "a dict": (lambda x: {"mean": x.mean(), "max": x.max()}, UNIT, numbers, arrays),
    }
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        people = samplers.table(age=samplers.uniform(0, 100), weight=samplers.normal(75, 15))

        def drawn(count: int, rng: np.random.Generator) -> Any:
            return pd.DataFrame({"age": rng.uniform(0, 100, count), "weight": rng.normal(75, 15, count)})

        found["a frame, to a float"] = (lambda d: float(d["age"].mean()), people, drawn, frames)
        found["a frame, to a series"] = (lambda d: d.mean(), people, drawn, frames)
    return found


def overhead(quick: bool) -> list[Result]:
    """Compare with the bare loop, for functions that take no time, 100 µs and 1 ms."""
    found = []
    for name, (answer, sampler, draw, split) in cases().items():
        for label, duration, m, most in (
            ("f ≈ 0", 0.0, 557, None),
            ("f = 100 µs", 1e-4, 557, 1.15),
            ("f = 1 ms", 1e-3, 240 if quick else 557, 1.05),
        ):
            function = waits(duration, answer) if duration else answer
            both = compare(
                lambda f=function, m=m, s=sampler: calibrate(f, m, sampler=s),
                lambda f=function, m=m, d=draw, s=split: loop(f, m, d, s),
                3 if quick else 9,
            )
            ours, theirs, ratio, _ = both
            found.append(
                result(
                    "calibration",
                    f"{name}, {label}, per pair",
                    ours / m * 1e6,
                    "µs",
                    against="the bare loop",
                    theirs=theirs / m * 1e6,
                    ratio=ratio,
                    most=most,
                    note=f"n={N}, m={m}, inline; {(ours - theirs) / m * 1e6:.0f} µs over; {both.spread}",
                    series=name,
                    x=max(duration, 1e-5) * 1e6,
                )
            )
    return found


def batches(quick: bool) -> list[Result]:
    """Compare batches with drawing the same numbers alone, in the same blocks, and with stacks by hand."""
    n, m = 1000, 10_000 if quick else 50_000
    note, found = f"mean of {n} numbers, m={m}, inline", []
    for name, sampler in {"uniform": UNIT, "normal": samplers.normal(0, 1)}.items():
        times = in_turn(
            {
                "batch": lambda p=sampler: calibrate(_mean, m, n=n, sampler=p, batch=_means),
                "by hand": lambda p=sampler: by_hand(_means, m, n, p),
                "drawing": lambda p=sampler: collections.deque(blocks(m, n, p), maxlen=0),
            },
            3 if quick else 7,
        )
        columns = list(zip(*times.values(), strict=True))
        batch, hand, alone = medians(columns)
        ratio, over, limit = medians([(b / d, b / h, h / d) for b, h, d in columns])
        found += [
            result("calibration", f"batch=, {name} numbers, per pair", batch / m * 1e6, "µs",
                   against="drawing the numbers alone", theirs=alone / m * 1e6, ratio=ratio, most=1.4,
                   note=f"{note}; by hand, with no copy and no check, {limit:.2f} times of drawing"),
            result("calibration", f"batch=, {name} numbers, per pair, and by hand", batch / m * 1e6, "µs",
                   against="stacks by hand", theirs=hand / m * 1e6, ratio=over, note=note),
        ]  # fmt: skip
    without = {"plain": lambda: calibrate(_mean, m, n=n), "bare": lambda: loop(_mean, m, numbers, n=n)}
    columns = list(zip(*in_turn(without, 3 if quick else 7).values(), strict=True))
    ours, bare = medians(columns)
    (over,) = medians([(p / least,) for p, least in columns])
    return [
        *found,
        result("calibration", "the same without batch=, uniform numbers", ours / m * 1e6, "µs",
               against="the bare loop", theirs=bare / m * 1e6, ratio=over, note=note),
    ]  # fmt: skip


def against_n(quick: bool) -> list[Result]:
    """Measure what γ = 0.05 costs for growing numbers of records."""
    m, found = plan(0.05).m, []
    for n in (100, 1000, 10_000) if quick else (100, 1000, 10_000, 100_000, 1_000_000):
        works = {
            "plain": lambda n=n: calibrate(_mean, m, n=n),
            "batch=": lambda n=n: calibrate(_mean, m, n=n, batch=_means),
            "additive": lambda n=n: calibrate(sums.means(), m, n=n),
            "the bare loop": lambda n=n: loop(_mean, m, numbers, n=n),
        }
        times = in_turn(works, 3 if n <= 10_000 else 1)
        found += [
            result("cost against n", f"{name}, n={n:,}", min(times[name]) * 1000, "ms",
                   against="the bare loop", theirs=min(times["the bare loop"]) * 1000,
                   note=f"mean, γ=0.05, m={m}, inline", series=name, x=n)
            for name in works if name != "the bare loop"
        ]  # fmt: skip
        found.append(
            Result("cost against n", f"the bare loop, n={n:,}", min(times["the bare loop"]) * 1000, "ms",
                   series="the bare loop", x=n)
        )  # fmt: skip
    return found


def _mean(x: Any) -> Any:
    return x.mean()


def _means(stack: Any) -> Any:
    return stack.mean(axis=1)


def run(quick: bool) -> list[Result]:
    """Run all measurements."""
    return overhead(quick) + batches(quick) + against_n(quick)
