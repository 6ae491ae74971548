"""What a private call costs: warm and split into its parts, cold, and the import before it."""

import compileall
import contextlib
import hashlib
import importlib.util
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from privatize import Laplace, privatize, samplers
from privatize.calibration.global_rng import rng_guard
from privatize.function import calibrator, pipeline
from privatize.function.binding import Binding
from privatize.function.calibrator import Calibrator, store_of
from privatize.function.template import Template
from privatize.identity.fingerprint import fingerprint
from privatize.outputs.structure import Leaf, Structure

from .measuring import Result, fresh, in_turn, medians, microseconds, result

GROUP = "calls"
MEGABYTE = np.arange(131_072.0)


def helper(x: Any) -> Any:
    """Do a part of the work."""
    return x.mean()


def small(x: Any, q: float = 0.5) -> Any:
    """Use a helper, a library and a constant."""
    return helper(x) * q + np.quantile(x, q)


def large(x: Any) -> Any:
    """Use a megabyte of values as well."""
    return small(x) + MEGABYTE[0]


# The parts of a call, and the functions that are timed for each.
PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "fingerprint": ((calibrator, "token"),),
    "fingerprint and lookup": ((Calibrator, "recall"),),
    "binding": ((Binding, "bind"),),
    "policy, seals and schema": (
        (pipeline, "policy"),
        (pipeline, "_unseal"),
        (Template, "records"),
        (Template, "match"),
    ),
    "domain": ((pipeline, "convert"),),
    "coins": ((rng_guard, "__enter__"), (rng_guard, "__exit__"), (rng_guard, "reseed")),
    "output": ((Leaf, "flatten"), (Structure, "flatten"), (Structure, "rebuild"), (pipeline, "Release")),
    "noise": ((Laplace, "release"),),
}


@contextlib.contextmanager
def timed_parts(taken: dict[str, float]) -> Iterator[None]:
    """Add up the seconds of every part, during real calls."""

    def timer(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                taken[part] += time.perf_counter() - start

        return timed

    with contextlib.ExitStack() as stack:
        for part, places in PARTS.items():
            for where, name in places:
                stack.enter_context(mock.patch.object(where, name, timer(part, getattr(where, name))))
        yield


def warm(name: str, function: Callable[[Any], Any], sampler: Any, data: Any, count: int) -> list[Result]:
    """Time calls whose estimate is remembered, the raw function, and the parts of calls."""
    private = privatize(epsilon=1, gamma=0.1, sampler=sampler, store=None, seed=1)(function)
    times = in_turn({"call": lambda: private(data), "raw": lambda: function(data)}, 9, count)
    call, raw = (statistics.median(times[which]) * 1e6 for which in ("call", "raw"))
    rows = []
    for _ in range(9 * count):
        taken = dict.fromkeys(PARTS, 0.0)
        with timed_parts(taken):
            private(data)
        rows.append(list(taken.values()))
    parts = {part: each * 1e6 for part, each in zip(PARTS, medians(rows), strict=True)}
    parts["lookup"] = parts.pop("fingerprint and lookup") - parts["fingerprint"]
    over = call - raw
    parts["the rest"] = max(0.0, over - sum(parts.values()))
    return [
        result(GROUP, f"warm call over the raw function, {name}", over, "µs", most=100,
               note=f"{call:.0f} µs in all, the function by itself {raw:.0f} µs"),
        *(result(GROUP, f"… {part}, {name}", each, "µs", note=f"{each / over:.0%} of that")
          for part, each in parts.items()),
    ]  # fmt: skip


def remembered(quick: bool) -> list[Result]:
    """Time the fingerprint, and the lookup of an estimate in this process and in a store."""
    inner = 20 if quick else 100
    digest = microseconds(lambda: hashlib.sha256(MEGABYTE).digest(), 5)
    one = microseconds(lambda: fingerprint(small), inner)
    megabyte = microseconds(lambda: fingerprint(large), 5)
    found = [
        result(GROUP, "fingerprint of a small function", one, "µs"),
        result(GROUP, "fingerprint with 1 MB in its globals", megabyte, "µs", against="sha256 of it",
               theirs=digest),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "bare.db")
        connection.execute("CREATE TABLE t (key TEXT PRIMARY KEY, gaps BLOB)")
        connection.execute("INSERT INTO t VALUES (?, ?)", ("0" * 64, bytes(557 * 8)))
        connection.commit()
        select = "SELECT * FROM t WHERE key = ?"
        bare = microseconds(lambda: connection.execute(select, ("0" * 64,)).fetchone())
        connection.close()
        for name, store in (("in memory", None), ("in SQLite", str(Path(folder) / "store.db"))):
            private = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1), store=store)(small)
            private.estimate(1000)
            known = microseconds(lambda p=private: p.estimate(1000), inner)

            def look_up(p: Any = private) -> None:
                p.calibrator.memory.clear()
                p.estimate(1000)

            found.append(
                result(GROUP, f"lookup of an estimate {name}", microseconds(look_up, inner) - known, "µs",
                       against="a bare SELECT" if store else "", theirs=bare if store else None,
                       note="over one that this function object knows already; m=557")
            )  # fmt: skip
            with contextlib.suppress(AttributeError):
                store_of(private.settings).database.close()
    return found


FIRST = """
import time, numpy as np
from privatize import privatize, samplers
ages = np.random.default_rng(0).uniform(0, 100, 1000)
start = time.perf_counter()
mean = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100), store=None)(np.mean)
mean(ages)
first = time.perf_counter() - start
start = time.perf_counter()
rng = np.random.default_rng(1)
for _ in range(557):
    x = rng.uniform(0, 100, 1001)
    x[:1000].mean(), x[1:].mean()
print(first, time.perf_counter() - start)
"""
IMPORT = "import time; s = time.perf_counter(); import {}; print(time.perf_counter() - s)"


def cold(quick: bool) -> list[Result]:
    """Time the first answer of a process, and the import."""
    rounds = 5 if quick else 10
    # Installed packages are compiled; here, files that were just edited may not be.
    compileall.compile_dir(Path(pipeline.__file__).parents[1], quiet=1)
    first, bare = medians([fresh(FIRST) for _ in range(rounds)])
    ours, numpys = medians(
        [(*fresh(IMPORT.format("privatize")), *fresh(IMPORT.format("numpy"))) for _ in range(rounds)]
    )
    wanted = ("distributed", "ray", "sklearn", "matplotlib", "psycopg", "dp_accounting", "argcomplete")
    extras = [name for name in wanted if importlib.util.find_spec(name)]
    return [
        result(GROUP, "first answer after the import, mean of 1,000 numbers", first * 1000, "ms", most=50,
               note=f"γ=0.05, m=557, calibration included; the bare loop alone {bare * 1000:.1f} ms"),
        result(GROUP, "import privatize", ours, "s", most=0.25,
               note=f"median of {rounds} processes, {len(extras)} of {len(wanted)} extras installed; "
               f"import numpy alone {numpys:.3f} s"),
    ]  # fmt: skip


def run(quick: bool) -> list[Result]:
    """Run all measurements."""
    inner = 30 if quick else 200
    rng = np.random.default_rng(1)
    found = warm("1,000 numbers", lambda x: float(x.mean()), samplers.uniform(0, 1), rng.random(1000), inner)
    if importlib.util.find_spec("pandas"):
        weight = samplers.normal(75, 15).truncated(30, 200)
        people = samplers.table(age=samplers.integers(18, 90), weight=weight)
        data = people.draw(1000, rng)
        found += warm("a frame of 1,000 rows", lambda d: float(d["weight"].mean()), people, data, inner)
    return found + remembered(quick) + cold(quick)
