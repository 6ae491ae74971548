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

from privatize import Budget, Catalogue, Laplace, privatize, samplers, seal
from privatize.calibration.global_rng import rng_guard
from privatize.function import calibrator, pipeline
from privatize.function.binding import Binding
from privatize.function.calibrator import Calibrator
from privatize.function.remembering import store_of
from privatize.function.template import Template
from privatize.identity.fingerprint import fingerprint
from privatize.outputs.structure import Leaf, Structure

from .measuring import Result, fresh, in_turn, medians, microseconds, missing, result

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


def warm(
    name: str, function: Callable[[Any], Any], sampler: Any, data: Any, count: int, most: float
) -> list[Result]:
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
        result(GROUP, f"warm call over the raw function, {name}", over, "µs", most=most,
               note=f"{call:.0f} µs in all, the function by itself {raw:.0f} µs"),
        *(result(GROUP, f"… {part}, {name}", each, "µs", note=f"{each / over:.0%} of that")
          for part, each in parts.items()),
    ]  # fmt: skip


class Ages:
    """A class with a private method."""

    @privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), store=None, seed=1)
    def mean(self, ages: Any) -> float:
        """Return the mean."""
        return float(ages.mean())


def kinds(count: int) -> list[Result]:
    """Compare warm calls of other kinds of private functions with a plain one."""
    data, unit = np.random.default_rng(1).random(1000), samplers.uniform(0, 1)

    def mean(x: Any) -> float:
        return float(x.mean())

    purse = {"epsilon": 1e9, "gamma": 1e9, "ledger": "memory"}
    plain = privatize(epsilon=1, gamma=0.1, sampler=unit, store=None, seed=1)(mean)
    charged = plain.replace(budget=Budget("benchmark: a function", **purse))
    replaced, method = plain.replace(epsilon=0.5), Ages().mean
    people = seal(data, name="benchmark: sealed", sampler=unit, budget=Budget("benchmark: sealed", **purse))
    asked = seal(data, name="benchmark: asked", sampler=unit, budget=Budget("benchmark: asked", **purse))
    free = seal(data, name="benchmark: free", sampler=unit)
    questions = Catalogue("benchmark", asked, gamma=0.1, store=None)
    questions.add(mean)
    questions.calibrate()
    works = {
        "a function": lambda: plain(data),
        "a method": lambda: method(data),
        "a function made by replace()": lambda: replaced(data),
        "sealed data": lambda: plain(free),
        "replace() and call": lambda: plain.replace(epsilon=0.5)(data),
        "a function, with a budget in memory": lambda: charged(data),
        "sealed data, with a budget in memory": lambda: plain(people),
        "a catalogue's member, with a budget in memory": lambda: questions.mean(epsilon=1),
    }
    times = in_turn(works, 15, count)
    middle = {name: statistics.median(each) * 1e6 for name, each in times.items()}
    found = []
    for name in works:
        against = "a function, with a budget in memory" if "budget" in name else "a function"
        if name != against:
            most = None if name == "replace() and call" else 1.3
            found.append(
                result(GROUP, f"warm call, {name}", middle[name], "µs", against=against,
                       theirs=middle[against], most=most)
            )  # fmt: skip
    return found


def models(count: int) -> list[Result]:
    """Compare fits of a private model with fits of the raw one."""
    if importlib.util.find_spec("sklearn") is None:
        return [missing(GROUP, "a private model", "scikit-learn is not installed")]
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    from privatize.sklearn import PrivateEstimator

    law = samplers.blobs([[0.0] * 5, [1.0] * 5])
    x, y = law.draw(1000, np.random.default_rng(1))
    found = []
    for raw in (GaussianNB(), LogisticRegression()):
        private = PrivateEstimator(raw, epsilon=1, gamma=0.1, sampler=law, store=None, seed=1)
        works = {"private": lambda p=private: p.fit(x, y), "raw": lambda r=raw: r.fit(x, y)}
        times = in_turn(works, 15, max(1, count // 10))
        ours, bare = (statistics.median(times[which]) * 1e3 for which in works)
        found.append(
            result(GROUP, f"PrivateEstimator.fit over the raw fit, {type(raw).__name__}", ours - bare, "ms",
                   most=1, note=f"n=1,000, d=5, warm; the raw fit {bare:.2f} ms")
        )  # fmt: skip
    return found


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
                p.calibrator.clear()
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
IMPORT = "import time; s = time.perf_counter(); {}; print(time.perf_counter() - s)"
ALL = "from privatize import privatize, samplers"


def cold(quick: bool) -> list[Result]:
    """Time the first answer of a process, and the import."""
    rounds = 5 if quick else 10
    # Installed packages are compiled; here, files that were just edited may not be.
    compileall.compile_dir(Path(pipeline.__file__).parents[1], quiet=1)
    first, bare = medians([fresh(FIRST) for _ in range(rounds)])
    wanted = ("import privatize", ALL, "import numpy")
    ours, everything, numpys = medians(
        [[fresh(IMPORT.format(each))[0] for each in wanted] for _ in range(rounds)]
    )
    known = ("distributed", "ray", "sklearn", "matplotlib", "psycopg", "dp_accounting", "argcomplete")
    extras = [name for name in known if importlib.util.find_spec(name)]
    return [
        result(GROUP, "first answer after the import, mean of 1,000 numbers", first * 1000, "ms", most=40,
               note=f"γ=0.05, m=557, calibration included; the bare loop alone {bare * 1000:.1f} ms"),
        result(GROUP, "import privatize", ours, "s", most=0.2,
               note=f"median of {rounds} processes, {len(extras)} of {len(known)} extras installed; "
               f"import numpy alone {numpys:.3f} s"),
        result(GROUP, ALL, everything, "s", note=f"of which numpy is {numpys:.3f} s"),
    ]  # fmt: skip


def run(quick: bool) -> list[Result]:
    """Run all measurements."""
    inner = 30 if quick else 200
    rng = np.random.default_rng(1)
    unit = samplers.uniform(0, 1)
    found = warm("1,000 numbers", lambda x: float(x.mean()), unit, rng.random(1000), inner, 150)
    if importlib.util.find_spec("pandas"):
        weight = samplers.normal(75, 15).truncated(30, 200)
        people = samplers.table(age=samplers.integers(18, 90), weight=weight)
        data = people.draw(1000, rng)
        found += warm("a frame of 1,000 rows", lambda d: float(d["weight"].mean()), people, data, inner, 300)
    return found + kinds(inner) + models(inner) + remembered(quick) + cold(quick)
