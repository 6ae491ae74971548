"""What drawing a number costs, against the numpy calls that do the least for it."""

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from privatize.samplers import (
    as_sampler,
    blobs,
    boolean,
    bootstrap,
    categorical,
    choice,
    dates,
    from_function,
    integers,
    labelled,
    marginal,
    mixture,
    normal,
    table,
    uniform,
    with_missing,
)

from .measuring import Result, in_turn, result

Rng = np.random.Generator
PUBLIC = np.random.default_rng(0).normal(size=10_000)
CITIES = np.array(["Aachen", "Bonn", "Cottbus"])
EPOCH = np.datetime64("2020-01-01")
COLUMNS: dict[str, Any] = {
    "age": integers(0, 120),
    "income": normal(3e4, 1e4),
    "sex": categorical(["F", "M"], p=[0.6, 0.4]),
    "joined": dates("2020-01-01", "2024-12-31"),
}


# Thirteen columns of each of five kinds.
WIDE: dict[str, Any] = {
    f"{name}{at}": column
    for at in range(13)
    for name, column in (*COLUMNS.items(), ("height", uniform(100, 220)))
}


def noise(mean: Any, rng: Rng) -> Any:
    """Add noise to parameters."""
    return rng.normal(mean, 4.0)


def sums(x: Any) -> Any:
    """Label records."""
    return x.sum(axis=1) > 2


def doubled(columns: dict[str, Any]) -> Any:
    """Make a column from another one."""
    return 2 * columns["age"]


def columns(n: int, rng: Rng) -> Any:
    """Draw four columns as codes and numbers, without making a frame."""
    return rng.integers(0, 121, n), rng.normal(3e4, 1e4, n), rng.random(n) < 0.4, rng.integers(0, 1827, n)


def wide(n: int, rng: Rng) -> Any:
    """Draw the columns of a wide table as codes and numbers, without making a frame."""
    return [(columns(n, rng), rng.uniform(100, 220, n)) for _ in range(13)]


def some_missing(n: int, rng: Rng) -> Any:
    """Draw numbers of which some are missing."""
    x = rng.random(n)
    x[rng.random(n) < 0.1] = np.nan
    return x


def pair(n: int, rng: Rng) -> Any:
    """Draw features and labels."""
    x = rng.random((n, 4))
    return x, x.sum(axis=1) > 2


def clouds(n: int, rng: Rng) -> Any:
    """Draw two clouds."""
    which = rng.integers(2, size=n)
    return which[:, None] + rng.standard_normal((n, 4)), which


def cut(n: int, rng: Rng) -> Any:
    """Draw gammas, and keep those inside the bounds."""
    x = rng.gamma(2.0, 1.0, 2 * n)
    return x[x < 2][:n]


def mixed(n: int, rng: Rng) -> Any:
    """Draw from two normals at once."""
    which = rng.random(n) < 0.4
    return rng.normal(np.where(which, 0.0, 5.0), 1.0)


# Name, sampler, numbers per record, and the numpy calls that do the least.
CASES: list[tuple[str, Any, int, Callable[[int, Rng], Any]]] = [
    ("uniform", uniform(0, 100), 1, lambda n, rng: rng.uniform(0, 100, n)),
    ("uniform, size=10", uniform(0, 1, size=10), 10, lambda n, rng: rng.uniform(0, 1, (n, 10))),
    ("normal", normal(40, 12), 1, lambda n, rng: rng.normal(40, 12, n)),
    ("normal in a box", normal(40, 12).truncated(0, 120), 1, lambda n, rng: rng.normal(40, 12, n)),
    ("integers", integers(0, 120), 1, lambda n, rng: rng.integers(0, 121, n)),
    ("boolean", boolean(0.3), 1, lambda n, rng: rng.random(n) < 0.3),
    ("choice of texts", choice(CITIES), 1, lambda n, rng: CITIES[rng.integers(3, size=n)]),
    ("choice, p=", choice(CITIES, [1, 2, 3]), 1, lambda n, rng: CITIES[rng.integers(3, size=n)]),
    (
        "dates",
        dates("2020-01-01", "2024-12-31"),
        1,
        lambda n, rng: EPOCH + rng.integers(0, 1827, n).astype("m8[D]"),
    ),
    ("with_missing", with_missing(uniform(0, 1), 0.1), 1, some_missing),
    ("scipy gamma", as_sampler(stats.gamma(2)), 1, lambda n, rng: rng.gamma(2.0, 1.0, n)),
    ("gamma truncated", as_sampler(stats.gamma(2)).truncated(high=2), 1, cut),
    ("normal clipped", normal(0, 1).clip(-1, 1), 1, lambda n, rng: np.clip(rng.normal(0, 1, n), -1, 1)),
    ("normal mapped", normal(0, 1).map(np.exp), 1, lambda n, rng: np.exp(rng.normal(0, 1, n))),
    ("from_function", from_function(lambda n, rng: rng.random(n)), 1, lambda n, rng: rng.random(n)),
    ("mixture", mixture([normal(0, 1), normal(5, 1)], [0.4, 0.6]), 1, mixed),
    ("bootstrap", bootstrap(PUBLIC), 1, lambda n, rng: PUBLIC[rng.integers(10_000, size=n)]),
    (
        "bootstrap, smooth",
        bootstrap(PUBLIC, smooth=0.1),
        1,
        lambda n, rng: PUBLIC[rng.integers(10_000, size=n)] + 0.1 * rng.standard_normal(n),
    ),
    ("marginal", marginal(normal(0, 3), noise), 1, lambda n, rng: noise(rng.normal(0, 3, n), rng)),
    ("labelled", labelled(uniform(0, 1, size=4), sums), 5, pair),
    ("blobs", blobs([[0, 0, 0, 0], [1, 1, 1, 1]]), 5, clouds),
    *(
        (f"table, {frame}", table(COLUMNS, frame=frame), 4, columns)
        for frame in ("dict", "pandas", "polars", "pyarrow")
        if frame == "dict" or importlib.util.find_spec(frame)
    ),
    ("table, records", table(COLUMNS, frame="records"), 4, columns),
    *(
        (f"table of 65 columns, {frame}", table(WIDE, frame=frame), 65, wide)
        for frame in ("dict", "pandas", "polars", "pyarrow")
        if frame == "dict" or importlib.util.find_spec(frame)
    ),
    ("table, dependent", table(COLUMNS | {"twice": doubled}, frame="dict"), 5, columns),
    ("projection", table(COLUMNS, frame="dict")["age"], 1, lambda n, rng: rng.integers(0, 121, n)),
]


def run(quick: bool) -> list[Result]:
    """Draw with each sampler, in datasets of several sizes."""
    found = []
    for name, sampler, width, least in CASES:
        for n in (1000,) if quick else (100, 1000, 100_000):
            works = {
                which: lambda draw=draw, n=n: draw(n, np.random.default_rng(1))
                for which, draw in (("ours", sampler.draw), ("numpy", least))
            }
            times = in_turn(works, 5 if quick else 9, max(1, 20_000 // n // (4 if quick else 1)))
            ours, theirs = (min(times[which]) / (n * width) * 1e9 for which in works)
            found.append(
                result("drawing", f"{name}, n={n:,}, per number", ours, "ns", against="numpy's own calls",
                       theirs=theirs, most=2 if "65" in name and n == 1000 else None)
            )  # fmt: skip
    return found
