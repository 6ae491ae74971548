"""How long it takes to learn P from a million records of ten columns, in every container."""

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from privatize import learn, samplers

from .measuring import Result, result, seconds

COLUMNS: dict[str, Any] = {
    "age": samplers.integers(18, 100),
    "income": samplers.uniform(0, 200_000),
    "sex": samplers.categorical(["F", "M"]),
    "region": samplers.categorical(["north", "east", "south", "west"]),
    "height": samplers.uniform(100, 220),
    "weight": samplers.uniform(30, 200),
    "children": samplers.integers(0, 12),
    "employed": samplers.boolean(0.5),
    "savings": samplers.uniform(0, 1_000_000),
    "hours": samplers.integers(0, 80),
}


def cases(n: int) -> Iterator[tuple[str, Any, Callable[[], Any]]]:
    """Yield containers, the P that says what is possible, and what makes the data."""
    box = samplers.uniform(0, 1, size=10)
    yield "numpy", box, lambda: box.draw(n, np.random.default_rng(1))
    for frame in ("dict", "pandas", "polars", "pyarrow"):
        if frame == "dict" or importlib.util.find_spec(frame):
            table = samplers.table(COLUMNS, frame=frame)
            yield frame, table, lambda table=table: table.draw(n, np.random.default_rng(1))


def run(quick: bool) -> list[Result]:
    """Time `learn` on each container."""
    n, found = 10**6, []
    for name, form, draw in cases(n):
        people = draw()
        taken = min(
            seconds(lambda p=people, f=form: learn(p, within=f, epsilon=1)) for _ in range(2 if quick else 4)
        )
        found.append(
            result("learning", f"learn, {name}, 1,000,000 x 10", taken, "s", most=2,
                   note="the best of all rounds")
        )  # fmt: skip
    return found
