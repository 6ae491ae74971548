"""Random functions, data, samplers and settings, in random order: no leak, no bare error, no hang.

The private data contains sentinels. Whatever a function does with it (raise, exit, print, store, return
something else), they must not appear in anything that the library makes: errors, frames, logs, warnings,
reprs, output, files. A bare error is one that is not the library's own. PRIVATIZE_FULL=1 tries more examples.
"""

import contextlib
import contextvars
import copy
import dataclasses
import dis
import faulthandler
import functools
import gc
import io
import logging
import os
import pickle
import random
import signal
import struct
import sys
import tempfile
import traceback
import types
import warnings
from collections import Counter, OrderedDict, defaultdict, namedtuple
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, currently_in_test_context, event, given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from scipy import stats

import privatize as package
from privatize import Bernstein, Exponential, Gaussian, Laplace, audit, privatize, samplers
from privatize.calibration import global_rng
from privatize.calibration.global_rng import rng_guard
from privatize.errors import (
    CalibrationError,
    DataError,
    PrivateRunError,
    PrivatizeError,
    PrivatizeWarning,
    SettingsError,
    UninformativeWarning,
)
from privatize.execution.packaging.package import Package
from privatize.identity.change_guard import ChangeGuard
from privatize.storage.database import Database
from privatize.storage.estimates import open_store
from tests.cases import for_each
from tests.frames import variables

pytestmark = pytest.mark.slow

if sys.version_info[:3] == (3, 13, 0):
    # The search for leaks walks over everything that an error refers to, which crashes this interpreter.
    pytest.skip("the interpreter crashes in the search (gc.get_referents)", allow_module_level=True)


FULL = bool(os.environ.get("PRIVATIZE_FULL"))
OURS = str(Path(package.__file__).parent)
SECRET = 1234567.890625  # exact as a float64, and nearly as a float32: no noise will hit it
INTEGER = 1234567890123457
TEXT = "SENTINEL-NAME"
WORDS = ("1234567.890625", "1.234567890625", str(INTEGER), TEXT)
BYTES = [form(value) for form in (struct.Struct("<d").pack, struct.Struct(">d").pack) for value in (SECRET,)]
BYTES += [struct.pack("<q", INTEGER), struct.pack(">q", INTEGER), *(word.encode() for word in WORDS)]


def examples(few: int, many: int, **rest: Any) -> Any:
    """Return how many examples to try: few by default, many with PRIVATIZE_FULL=1."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=many if FULL else few,
        derandomize=not FULL,
        deadline=None,
        suppress_health_check=checks,
        print_blob=True,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        **rest,
    )


# --- looking for sentinels ------------------------------------------------------------------------

# A Package is skipped because this module, with the sentinels that are written here, may be in it.
_SKIPPED = (
    Package
    | types.ModuleType
    | types.CodeType
    | type
    | types.FunctionType
    | types.FrameType
    | types.MethodType
    | ChangeGuard  # it refers only to what functions refer to themselves
)


def shows(value: Any) -> bool:
    """Tell whether a string or some bytes contain a sentinel."""
    if isinstance(value, str):
        return any(word in value for word in WORDS)
    return any(word in value for word in BYTES)


def holds(root: Any) -> bool:
    """Tell whether a value is, shows or refers to a sentinel; functions and modules are skipped."""
    seen: set[int] = set()
    waiting: list[Any] = [root]
    alive = []  # or an id could be used again
    while waiting and len(seen) < 50_000:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        alive.append(value)
        if isinstance(value, float | np.floating):
            if float(value) == SECRET:
                return True
        elif isinstance(value, bool | None.__class__):
            continue
        elif isinstance(value, int | np.integer):
            if int(value) == INTEGER:
                return True
        elif isinstance(value, str | bytes | bytearray):
            if shows(value):
                return True
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                waiting += value.ravel().tolist()
            elif shows(np.ascontiguousarray(value).tobytes()) or shows(
                " ".join(map(str, value.ravel()[:50]))
            ):
                return True
        elif isinstance(value, _SKIPPED):
            continue
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += list(value)
        else:
            waiting += [v for v in gc.get_referents(value) if not isinstance(v, _SKIPPED)]
    return False


def chain_of(error: BaseException | None) -> list[BaseException]:
    """Return an exception with all its causes and contexts."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or any(one is other for other in found):
            continue
        found.append(one)
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found


def assert_clean(error: BaseException) -> None:
    """Fail if anything that the library put into an exception contains a sentinel."""
    checked: set[int] = set()
    for one in chain_of(error):
        assert not holds([str(one), repr(one), one.args, vars(one), getattr(one, "__notes__", [])])
        shown = traceback.format_exception(one, chain=False)
        assert not any(map(shows, shown))
        step = one.__traceback__
        while step is not None:
            frame = step.tb_frame
            while frame is not None and id(frame) not in checked:
                checked.add(id(frame))
                if frame.f_code.co_filename.startswith(OURS):
                    for name, value in list(variables(frame).items()):
                        where = f"{frame.f_code.co_qualname} holds the data in {name!r}"
                        assert not holds(value), where
                frame = frame.f_back
            step = step.tb_next


class Mine(UserWarning):
    """What a user's own function warns about."""


class _Recorder(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "user":
            self.records.append([record.getMessage(), record.args, record.exc_text, dict(vars(record))])


class Hung(Exception):
    pass


@contextlib.contextmanager
def time_limit(seconds: float = 60.0) -> Any:
    """Interrupt a call that takes too long, and raise Hung."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    hung: list[bool] = []

    def interrupt(number: int, frame: Any) -> None:
        hung.append(True)
        faulthandler.dump_traceback(file=sys.__stderr__)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if hung:
            raise Hung(f"a call took more than {seconds} s")


def generators() -> Any:
    """Return the state of the caller's global generators."""
    state = np.random.get_state()
    return (
        random.getstate(),
        state[0],
        state[1].tobytes(),
        state[2:],
        id(np.random.mtrand._rand._bit_generator),
    )


@dataclasses.dataclass
class Outcome:
    value: Any = None
    error: BaseException | None = None
    warned: list[str] = dataclasses.field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.error is None


ALLOWED = (PrivatizeError, PrivatizeWarning, KeyboardInterrupt)
NOTES: Any = logging.getLogger("notes of the fuzzer")  # the library does not compare attributes of loggers


def attempt(act: Any, *, own_rng: bool = False, allowed: Any = ALLOWED, strict: bool = False) -> Outcome:
    """Do something with the library, and check everything that leaves it."""
    NOTES.fuzz = {}
    logs, out, err = _Recorder(), io.StringIO(), io.StringIO()
    root = logging.getLogger()
    level = root.level
    random.seed(5)
    np.random.seed(6)
    np.random.normal()  # so that a second number is cached
    before = generators()
    outcome = Outcome()
    root.addHandler(logs)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=not strict) as caught, time_limit():
            warnings.simplefilter("error" if strict else "always")
            warnings.simplefilter("ignore", UninformativeWarning)  # most answers here are about five people
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    outcome.value = act()
                except BaseException as error:
                    outcome.error = error
    finally:
        root.removeHandler(logs)
        root.setLevel(level)
    if not own_rng:
        assert generators() == before, "the caller's generators were touched"
    lines = [*out.getvalue().splitlines(), *err.getvalue().splitlines()]
    assert not [line for line in lines if not line.startswith("USER") and shows(line)]
    assert not holds(logs.records), "a log record has the data"
    for one in caught or ():
        assert not shows(str(one.message))
        numpys = issubclass(one.category, RuntimeWarning) and not one.filename.startswith(OURS)
        if not issubclass(one.category, Mine) and not numpys:  # from the function's own arithmetic
            assert issubclass(one.category, PrivatizeWarning), f"it warned: {one.category} {one.message}"
            outcome.warned.append(str(one.message))
    if outcome.error is not None:
        if not isinstance(outcome.error, allowed):
            raise AssertionError(f"a bare {type(outcome.error).__name__} left the library") from outcome.error
        if isinstance(outcome.error, KeyboardInterrupt):
            assert not holds(outcome.error.args)
        assert_clean(outcome.error)
    return outcome


# --- functions -------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass
class Point:
    x: float
    y: Any = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    x: Any


@dataclasses.dataclass
class Picky:
    x: float

    def __post_init__(self) -> None:
        if not 0 <= self.x <= 1:
            raise ValueError(f"{self.x}")


class Loud(Exception):
    """An exception with the data everywhere: in its message, arguments, attributes and notes."""

    def __init__(self, data: Any) -> None:
        super().__init__(f"bad data {data}", data)
        self.data = data
        self.add_note(f"{data!r}")


class LoudInterrupt(KeyboardInterrupt):
    pass


class LoudOurs(SettingsError):
    """One of the library's own errors, with the data."""


class Hostile:
    def __init__(self, data: Any) -> None:
        self.data = data

    def __getattr__(self, name: str) -> Any:
        raise Loud(self.__dict__.get("data"))

    def __eq__(self, other: object) -> bool:
        raise Loud(self.__dict__.get("data"))

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        raise Loud(self.__dict__.get("data"))

    def __repr__(self) -> str:
        raise Loud(self.__dict__.get("data"))


def floats(x: Any) -> Any:
    """Return all numbers in a dataset of any kind, flat."""
    if isinstance(x, tuple):
        return np.concatenate([floats(part) for part in x])
    array = np.asarray(x)
    if array.dtype.kind in "biuf":
        return array.astype(float).ravel()
    return np.array([len(v) if isinstance(v, str) else float(v) for v in array.ravel().tolist()], dtype=float)


def is_private(x: Any) -> bool:
    """Tell private data from sampled data, which is all small."""
    parts = x if isinstance(x, tuple) else (x,)
    flat = [v for part in parts for v in np.asarray(part, dtype=object).ravel().tolist()]
    return any(TEXT in v if isinstance(v, str) else type(v) in (int, float) and 1e5 < v < 1e308 for v in flat)


STATS = {
    "mean": lambda v, x: float(np.mean(v)),
    "numpy mean": lambda v, x: np.mean(v),
    "sum": lambda v, x: float(np.sum(v)),
    "median": lambda v, x: float(np.median(v)),
    "max": lambda v, x: float(np.max(v)),
    "first": lambda v, x: float(v[0]),
    "count": lambda v, x: int((v > 0.5).sum()),
    "integer": lambda v, x: int(np.nansum(v) * 1000) if np.isfinite(v).all() else 0,
    "uint8": lambda v, x: np.uint8(int(abs(np.nansum(v))) % 200 if np.isfinite(v).all() else 0),
    "float32": lambda v, x: np.float32(np.mean(v)),
    "sorted": lambda v, x: np.sort(v),
    "itself": lambda v, x: x,
    "view": lambda v, x: x[::-1] if isinstance(x, np.ndarray) else x,
    "vector": lambda v, x: np.array([v.mean(), v.std(), v.min()]),
    "matrix": lambda v, x: np.outer(v[:2], v[:2]),
    "random": lambda v, x: float(np.mean(v)) + random.random(),
    "numpy random": lambda v, x: float(np.mean(np.random.permutation(v)[:2])),
    "bootstrap": lambda v, x: float(np.random.choice(v, len(v)).mean()),
    "unseeded": lambda v, x: float(np.mean(v)) + np.random.default_rng().random(),
    "constant": lambda v, x: 1.0,
    "huge int": lambda v, x: 10**400 + int(v[0] * 10),
    "big": lambda v, x: float(np.mean(v)) * 1e305,
    "tiny": lambda v, x: float(np.mean(v)) * 1e-320,
    "bool": lambda v, x: bool(v[0] > 0.5),
    "text": lambda v, x: str(v[0]),
    "none": lambda v, x: None,
    "generator": lambda v, x: (float(one) for one in v),
    "complex": lambda v, x: complex(v[0]),
    "object array": lambda v, x: np.array(v, dtype=object),
    "0-d": lambda v, x: np.array(v.mean()),
    "empty": lambda v, x: [],
    "nan": lambda v, x: float("nan"),
    "sets rng": lambda v, x: (random.seed(1), np.random.seed(2), float(v.mean()))[2],
    "masked": lambda v, x: np.ma.array(v),
    "callable": lambda v, x: lambda points: points * v.mean(),
}

WRAPS = {
    "raw": lambda value: value,
    "list": lambda value: [value, 2],
    "tuple": lambda value: (value, (value,)),
    "dict": lambda value: {"a": value, 1: [value], None: 0.5, ("t", 2): value},
    "ordered": lambda value: OrderedDict(b=value, a=1.0),
    "counter": lambda value: Counter(a=value),
    "default": lambda value: defaultdict(list, a=value),
    "named": lambda value: Pair(value, {"c": value}),
    "dataclass": lambda value: Point(value, [value]),
    "frozen": lambda value: Frozen(x=(value, 1)),
    "picky": lambda value: Picky(value),
    "nan key": lambda value: {float("nan"): value},
    "deep": lambda value: functools.reduce(lambda inner, _: [inner], range(60), value),
}


def _loop(value: Any) -> Any:
    made: list[Any] = [value]
    made.append(made)
    return made


LEFT_BEHIND: list[Any] = []


def _mutate(x: Any) -> None:
    part = x[0] if isinstance(x, tuple) else x
    part[0] = part[-1]
    if isinstance(part, list):
        part.append(part[0])


def _raise(error: BaseException) -> Any:
    raise error


def _chain(x: Any) -> Any:
    try:
        raise Loud(x)
    except Loud as error:
        raise ValueError(f"{x}") from error


# What a function does to its value when it is triggered. (x, value) -> value
ACTS: dict[str, Any] = {
    "raise": lambda x, value: _raise(Loud(x)),
    "chain": lambda x, value: _chain(x),
    "exit": lambda x, value: sys.exit(f"{x}"),
    "generator exit": lambda x, value: _raise(GeneratorExit(x)),
    "stop": lambda x, value: _raise(StopIteration(x)),
    "group": lambda x, value: _raise(ExceptionGroup(f"{x}", [Loud(x)])),
    "ours": lambda x, value: _raise(LoudOurs(f"{x}", data=x)),
    "ours bare": lambda x, value: _raise(PrivateRunError(f"{x}", data=x)),
    "interrupt": lambda x, value: _raise(LoudInterrupt(x)),
    "memory": lambda x, value: _raise(MemoryError(x)),
    "recursion": lambda x, value: ACTS["recursion"](x, value),
    "nan": lambda x, value: float("nan"),
    "inf": lambda x, value: float("inf"),
    "other kind": lambda x, value: f"{x}",
    "longer": lambda x, value: [value, value, 1.0],
    "other keys": lambda x, value: {f"{x}": value},
    "int": lambda x, value: 10**400,
    "bool": lambda x, value: True,
    "hostile": lambda x, value: Hostile(x),
    "loop": lambda x, value: _loop(value),
    "none": lambda x, value: None,
    "returns the data": lambda x, value: x,
    "class": lambda x, value: type(f"{x}", (), {"data": x})(),
    "print": lambda x, value: (print("USER", repr(x).replace("\n", " ")), value)[1],
    "warn": lambda x, value: (warnings.warn(f"{x}", Mine, stacklevel=1), value)[1],
    "log": lambda x, value: (logging.getLogger("user").error("%s", x), value)[1],
    "mutate": lambda x, value: (_mutate(x), value)[1],
    "stash": lambda x, value: (NOTES.fuzz.setdefault("stash", x), value)[1],
    "keep": lambda x, value: (LEFT_BEHIND.append(x), value)[1],
    "numpy error": lambda x, value: np.linalg.inv(np.zeros((2, 2))),
    "calls itself": lambda x, value: value,
}

TRIGGERS = {
    "never": lambda v, x: False,
    "private": lambda v, x: is_private(x),
    "some": lambda v, x: bool(v[0] > 0.8),
    "rare": lambda v, x: bool(v[0] > 0.98),
    "always": lambda v, x: True,
}


def build(stat: str, wrap: str, act: str, trigger: str) -> Any:
    """Return a function of a dataset: one choice from each of the tables above."""
    compute, shape, misbehave, fires = STATS[stat], WRAPS[wrap], ACTS[act], TRIGGERS[trigger]

    def fuzzed(x: Any) -> Any:
        v = floats(x)
        private = is_private(x)
        if private:
            NOTES.fuzz["seen"] = True
        value = shape(compute(v, x))
        if fires(v, x):
            value = misbehave(x, value)
        if private:
            NOTES.fuzz["raw"] = copy.deepcopy(value)
        return value

    return fuzzed


SANE_STATS = ["mean", "sum", "vector", "count", "numpy random", "sorted", "first"]
specs = st.one_of(
    st.tuples(st.sampled_from(list(STATS)), st.sampled_from(list(WRAPS)), st.just("raise"), st.just("never")),
    st.tuples(
        st.sampled_from(SANE_STATS),
        st.sampled_from(["raw", "dict", "named", "dataclass", "tuple"]),
        st.sampled_from(list(ACTS)),
        st.sampled_from(list(TRIGGERS)),
    ),
    st.tuples(st.sampled_from(list(STATS)), st.just("raw"), st.sampled_from(list(ACTS)), st.just("private")),
    st.tuples(*(st.sampled_from(list(kind)) for kind in (STATS, WRAPS, ACTS, TRIGGERS))),
)


# --- samplers, data, mechanisms, settings ------------------------------------------------------------


class Stateful:
    """A sampler that returns the same buffer at every call."""

    def __init__(self) -> None:
        self.buffer = np.zeros(64)

    def draw(self, n: int, rng: Any) -> Any:
        if n > len(self.buffer):
            self.buffer = np.zeros(n)
        self.buffer[:n] = rng.random(n)
        return self.buffer[:n]


class Counting:
    """A sampler that draws another dtype at every ninth call."""

    def __init__(self) -> None:
        self.calls = 0

    def draw(self, n: int, rng: Any) -> Any:
        self.calls += 1
        drawn = rng.random(n)
        return drawn if self.calls % 9 else drawn.astype(np.float32)


def _list_of(n: int, rng: Any) -> Any:
    return rng.integers(0, 9, n).tolist()


def _object_array(n: int, rng: Any) -> Any:
    return rng.random(n).astype(object)


def _later(n: int, rng: Any) -> Any:
    drawn = rng.random(n)
    if n > 2 and n < 100 and drawn[0] > 0.9:
        raise ValueError("later")
    return drawn


def _with(value: float, share: float, n: int, rng: Any) -> Any:
    return np.where(rng.random(n) < share, value, rng.random(n))


def _read_only(n: int, rng: Any) -> Any:
    return np.broadcast_to(rng.random((n, 1))[:, 0], (n,))


def _framed(n: int, rng: Any) -> Any:
    return pytest.importorskip("pandas").DataFrame({"a": rng.random(n)})


SAMPLERS: dict[str, Any] = {
    "unit": lambda: samplers.uniform(0, 1),
    "unit 2-D": lambda: samplers.uniform(0, 1, size=2),
    "normal": lambda: samplers.normal(0, 1),
    "half": lambda: samplers.normal(0, 1, low=0),
    "scipy": lambda: stats.norm(),
    "mixture": lambda: samplers.mixture([samplers.uniform(0, 1), samplers.uniform(1, 2)]),
    "integers": lambda: samplers.from_function(lambda n, rng: rng.integers(0, 9, n), support=(0, 9)),
    "uint8": lambda: samplers.from_function(lambda n, rng: rng.integers(0, 9, n, dtype=np.uint8)),
    "float16": lambda: samplers.from_function(lambda n, rng: rng.random(n).astype(np.float16)),
    "lists": lambda: samplers.from_function(_list_of),
    "clipped lists": lambda: samplers.from_function(_list_of, support=(0, 9)),
    "objects": lambda: samplers.from_function(_object_array),
    "strings": lambda: samplers.from_function(lambda n, rng: rng.choice(["a", "bb", "ccc" * 9], n)),
    "string list": lambda: samplers.from_function(lambda n, rng: rng.choice(["a", "bb"], n).tolist()),
    "aligned": lambda: samplers.from_function(lambda n, rng: (rng.random((n, 2)), rng.random(n))),
    "nans": lambda: samplers.from_function(functools.partial(_with, np.nan, 0.2)),
    "infs": lambda: samplers.from_function(functools.partial(_with, np.inf, 0.01)),
}
BAD_SAMPLERS: dict[str, Any] = {
    "one more": lambda: samplers.from_function(lambda n, rng: rng.random(n + 1)),
    "raises": lambda: samplers.from_function(lambda n, rng: 1 / 0),
    "exits": lambda: samplers.from_function(lambda n, rng: sys.exit(3)),
    "interrupts": lambda: samplers.from_function(lambda n, rng: _raise(LoudInterrupt(n))),
    "later": lambda: samplers.from_function(_later),
    "own rng": lambda: samplers.from_function(lambda n, rng: np.random.default_rng().random(n)),
    "global rng": lambda: samplers.from_function(lambda n, rng: np.random.random(n)),
    "constant": lambda: samplers.from_function(lambda n, rng: np.ones(n)),
    "none": lambda: samplers.from_function(lambda n, rng: None),
    "scalar": lambda: samplers.from_function(lambda n, rng: 1.0),
    "generator": lambda: samplers.from_function(lambda n, rng: (i for i in range(n))),
    "hostile": lambda: samplers.from_function(lambda n, rng: Hostile(n)),
    "ragged": lambda: samplers.from_function(lambda n, rng: (rng.random(n), rng.random(n + 1))),
    "buffer": Stateful,
    "counting": Counting,
    "narrow support": lambda: samplers.from_function(lambda n, rng: rng.random(n), support=([0, 0], [1, 1])),
    "read-only": lambda: samplers.from_function(_read_only),
    "frame": lambda: samplers.from_function(_framed),
}


class Sub(np.ndarray):
    pass


def _frame(n: int) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"a": base(n), "b": base(n)})  # names are public


def base(n: int) -> Any:
    """Return n private records, one of them the sentinel."""
    data = np.linspace(0.1, 0.9, n) if n else np.zeros(0)
    data[n // 2 : n // 2 + 1] = SECRET
    return data


def _frozen_array(n: int) -> Any:
    data = base(n)
    data.setflags(write=False)
    return data


def _integers(n: int) -> Any:
    return np.array([INTEGER if i == n // 2 else i % 7 for i in range(n)], dtype=np.int64)


DATA: dict[str, Any] = {
    "floats": base,
    "floats 2-D": lambda n: np.stack([base(n), base(n)], axis=1),
    "integers": _integers,
    "uint8": lambda n: np.arange(n, dtype=np.uint8),
    "bool": lambda n: np.arange(n) % 2 == 0,
    "float32": lambda n: base(n).astype(np.float32),
    "long double": lambda n: base(n).astype(np.longdouble) * np.longdouble(10) ** 200,
    "objects": lambda n: base(n).astype(object),
    "strings": lambda n: np.array([TEXT] * n),
    "string list": lambda n: [TEXT] * n,
    "list": lambda n: base(n).tolist(),
    "integer list": lambda n: _integers(n).tolist(),
    "numpy list": lambda n: list(_integers(n)),
    "mixed list": lambda n: [SECRET, None, TEXT, [INTEGER]][:n],
    "huge list": lambda n: [10**400 + INTEGER] * n,
    "huge mixed": lambda n: [10**30 + INTEGER, 0.5, *base(n).tolist()][:n],
    "nested list": lambda n: [[SECRET, 0.5]] * n,
    "ragged list": lambda n: [[SECRET] * (i + 1) for i in range(n)],
    "aligned": lambda n: (np.stack([base(n), base(n)], axis=1), base(n)),
    "aligned lists": lambda n: (np.stack([base(n), base(n)], axis=1), base(n).tolist()),
    "misaligned": lambda n: (base(n), base(n + 1)),
    "read-only": _frozen_array,
    "strided": lambda n: np.repeat(base(n), 2)[::2],
    "big endian": lambda n: base(n).astype(">f8"),
    "fortran": lambda n: np.asfortranarray(np.stack([base(n), base(n)], axis=1)),
    "subclass": lambda n: base(n).view(Sub),
    "masked": lambda n: np.ma.array(base(n)),
    "nan": lambda n: np.append(base(n), np.nan)[-n:] if n else base(n),
    "inf": lambda n: np.append(base(n), -np.inf)[-n:] if n else base(n),
    "frame": _frame,
    "scalar": lambda n: SECRET,
    "0-d": lambda n: np.array(SECRET),
    "text": lambda n: TEXT,
    "dict": lambda n: {TEXT: SECRET},
    "iterator": lambda n: iter(base(n).tolist()),
    "none": lambda n: None,
    "hostile": Hostile,
    "complex": lambda n: base(n) * 1j,
    "records": lambda n: np.array([(v, TEXT) for v in base(n)], dtype=[("a", float), ("b", "U20")]),
    "fractions": lambda n: [Fraction(SECRET)] * n,
    "named": lambda n: Pair(base(n), base(n)),
}

MECHANISMS: dict[str, Any] = {
    "laplace": {"mechanism": "laplace"},
    "gaussian": {"mechanism": "gaussian", "delta": 1e-5},
    "classic": {"mechanism": Gaussian("classic"), "delta": 1e-5, "epsilon": 0.5},
    "exponential": {"mechanism": Exponential(responses=["tea", "milk", 3])},
    "bernstein": {"mechanism": Bernstein(lattice=2)},
}

changes = st.fixed_dictionaries(
    {},
    optional={
        "epsilon": st.sampled_from([1e-9, 0.1, 1.0, 50.0, 1e5]),
        "gamma": st.sampled_from([0.3, 0.25, 0.5, 0.9]),
        "bound": st.sampled_from(["tolerance", "tolerance", "dkw", "marginal"]),
        "samples": st.sampled_from(["least", "balanced", 40]),
        "min_sensitivity": st.sampled_from([None, 1e-9, 1.0, 1e250]),
        "domain": st.sampled_from(["clip", "as-is"]),
        "seed": st.sampled_from([None, 0, 7, 2**80]),
        "store": st.sampled_from([None, "file", "/proc/none/store.sqlite"]),
        "workers": st.sampled_from(["inline", "inline", None, 2]),
        "timeout": st.sampled_from([None, 5.0]),
        "version": st.sampled_from([None, "1"]),
        "sampler": st.sampled_from(["unit", "normal", "integers", "lists", "unit 2-D", "later", "counting"]),
    },
)
WRONG = st.sampled_from(
    [
        *({"epsilon": v} for v in (0, -1, float("nan"), "1", None, [1], np.ones(2), 10**400, True)),
        *({"gamma": v} for v in (0, 1, float("nan"), "1", None, [1], np.ones(2), 10**400, 1e-300)),
        *({"delta": v} for v in (-1, 1, float("nan"), "x", None, [1], np.ones(2))),
        *({"samples": v} for v in (0, -1, float("nan"), "x", [1], np.ones(2), 10**400)),
        *({"min_sensitivity": v} for v in (0, -1, float("nan"), "1", [1], np.ones(2), 10**400)),
        *({"seed": v} for v in (-1, 1.5, "1", [1], np.ones(2), True)),
        *({"timeout": v} for v in (0, -1, float("nan"), "1", [1], np.ones(2), 10**400)),
        *({"workers": v} for v in (0, -1, 1.5, "x", [1], np.ones(2), True)),
        *({"bound": v} for v in (0, "x", None, [1], {})),
        *({"domain": v} for v in (0, "x", [1], {})),
        *({"mechanism": v} for v in (0, "x", None, [1], Laplace)),
        *({"sampler": v} for v in (0, "x", [1], np.ones(2), samplers.uniform)),
        *({"data": v} for v in ("nope", ["nope"], [], ["x", "x"])),
        *({"coins": v} for v in ("nope", ["nope"], ["x"])),
        *({"store": v} for v in (0, [1], np.ones(2))),
        *({"progress": v} for v in ("x", [1])),
        *({"pair": v} for v in (0, "x")),
        {"budget": 1},
        {"nope": 1},
    ]
)

PROMISE: dict[str, Any] = {
    "epsilon": 1.0,
    "gamma": 0.3,
    "samples": "least",
    "store": None,
    "workers": "inline",
    "seed": 1,
}


def healthy(x: Any) -> float:
    return float(np.mean(x))


HEALTHY = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(healthy)


def still_works() -> None:
    """Check that the next call works, as if nothing had happened before."""
    found = attempt(lambda: HEALTHY(np.linspace(0, 1, 5)), strict=True)
    assert found.ok and type(found.value) is float
    expected = HEALTHY.estimate(5).value
    assert expected == 0.10366652260667775 or expected == pytest.approx(0.10366652260667775, rel=1e-12)


def leaves(value: Any) -> list[float]:
    """Return the float64 numbers in an answer, in order."""
    if type(value) is float or type(value) is np.float64:
        return [float(value)]
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype == np.float64 else []
    if isinstance(value, dict):
        return [one for key in sorted(value, key=repr) for one in leaves(value[key])]
    if isinstance(value, list | tuple):
        return [one for item in value for one in leaves(item)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [one for f in dataclasses.fields(value) for one in leaves(getattr(value, f.name))]
    return []


def assert_noised(release: Any, raw: Any) -> None:
    """Check that no number in a release is the raw one."""
    if release.mechanism not in ("Laplace", "Gaussian"):
        return
    given, answer, scales = leaves(release.value), leaves(raw), leaves(release.scale)
    if len(given) == len(answer) == len(scales):
        for one, other, scale in zip(given, answer, scales, strict=True):
            if scale > 1e4 * np.spacing(abs(other)):
                assert one != other, "the raw answer was released"


def files_clean(path: str) -> None:
    for file in Path(path).parent.glob(Path(path).name + "*"):
        assert not shows(file.read_bytes()), "the store has the data"


def same(one: Any, other: Any) -> bool:
    """Tell whether data is as it was."""
    try:
        return pickle.dumps(one) == pickle.dumps(other)
    except Exception:
        return True


# --- the tests -----------------------------------------------------------------------------------------


def check_call(f: Any, make: Any, n: int, *, strict: bool = False, own_rng: bool = False) -> None:
    """Release once, and check everything about it."""
    LEFT_BEHIND.clear()
    data = make(n)
    before = copy.deepcopy(data) if isinstance(data, list | np.ndarray | tuple) else None
    known = attempt(lambda: f.estimate(n), own_rng=own_rng) if n else None
    LEFT_BEHIND.clear()
    found = attempt(lambda: f.release(data), strict=strict, own_rng=own_rng)
    seen, raw = NOTES.fuzz.get("seen"), NOTES.fuzz.get("raw")
    if currently_in_test_context():
        event(type(found.error).__name__)
        note(f"{type(found.error).__name__}: {found.error}")
    if before is not None:
        assert same(before, data), "the caller's data was changed"
    if found.ok:
        release = found.value
        assert not holds({k: v for k, v in vars(release).items() if k != "value"})
        assert SECRET not in leaves(release.value)  # integers may coincide
        if raw is not None:
            assert_noised(release, raw)
        if isinstance(release.value, np.ndarray) and isinstance(data, np.ndarray):
            assert not np.shares_memory(release.value, data)
        assert release.sensitivity > 0 and min(leaves(release.scale)) > 0
    elif isinstance(found.error, CalibrationError | SettingsError | DataError):
        assert not seen, "the private data was evaluated though it was refused"
    if known is not None and isinstance(known.error, CalibrationError) and f.settings.seed is not None:
        listed = any(isinstance(part, list) for part in (data if isinstance(data, tuple) else (data,)))
        changing = isinstance(f.settings.sampler, Counting | Stateful)
        assert not found.ok or listed or changing, "calibration fails, and yet it was released"
    assert not shows(repr(f)) and not holds([f.calibrator.memory, f.settings])
    NOTES.fuzz = {}
    LEFT_BEHIND.clear()
    still_works()


@examples(250, 6000)
@given(specs, st.sampled_from(list(SAMPLERS)), st.sampled_from(list(DATA)), st.integers(0, 5), st.booleans())
def test_any_function_any_data(spec, sampler, data, n, strict):
    """An unusual function or dataset would put private values into an error report or a log."""
    f = privatize(**PROMISE | {"domain": "as-is"}, sampler=SAMPLERS[sampler]())(build(*spec))
    check_call(f, DATA[data], n, strict=strict)


@for_each("wrap", ["raw", "named"])
@for_each("act", ACTS)
def test_every_misbehaviour_on_private_data(act, wrap):
    """One of the ways to misbehave on private data alone would be tested only by chance."""
    f = privatize(**PROMISE | {"domain": "as-is"}, sampler=samplers.uniform(0, 1))(
        build("mean", wrap, act, "private")
    )
    for make in (base, DATA["list"]):
        check_call(f, make, 5)


BOUNDED = ("unit", "unit 2-D", "half", "integers", "clipped lists")
FITS = [
    ("unit", "floats"),
    ("unit", "list"),
    ("unit", "integers"),
    ("unit", "strided"),
    ("unit", "long double"),
    ("unit 2-D", "floats 2-D"),
    ("integers", "integers"),
    ("integers", "integer list"),
    ("lists", "integer list"),
    ("lists", "numpy list"),
    ("clipped lists", "numpy list"),
    ("clipped lists", "integer list"),
    ("objects", "objects"),
    ("strings", "strings"),
    ("string list", "string list"),
    ("aligned", "aligned"),
    ("aligned", "aligned lists"),
    ("scipy", "read-only"),
    ("half", "nan"),
    ("uint8", "uint8"),
    ("float16", "floats"),
    ("infs", "inf"),
]


@examples(300, 8000)
@given(
    specs,
    st.sampled_from(FITS),
    st.integers(1, 5),
    st.sampled_from(["laplace", "laplace", *MECHANISMS]),
    changes,
    st.booleans(),
)
def test_data_that_fits_under_any_settings(spec, fit, n, mechanism, change, strict):
    """A function that misbehaves on private data alone would leak it, or break the next call."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "store.sqlite")
        sampler = SAMPLERS[fit[0]]()
        change = {k: v for k, v in change.items() if k not in ("workers", "timeout", "sampler")}
        if change.get("store") == "file":
            change["store"] = path
        if change.get("domain") == "clip" and fit[0] not in BOUNDED:
            change["domain"] = "as-is"
        promise = PROMISE | {"domain": "as-is"} | MECHANISMS[mechanism] | change
        if mechanism == "classic":
            promise["epsilon"] = 0.5
        made = attempt(lambda: privatize(**promise, sampler=sampler))
        if made.ok:
            check_call(made.value(build(*spec)), DATA[fit[1]], n, strict=strict)
            files_clean(path)


@examples(60, 1500)
@given(st.sampled_from(list(BAD_SAMPLERS)), st.sampled_from(list(DATA)), st.integers(1, 4), specs)
def test_samplers_that_misbehave(sampler, data, n, spec):
    """A broken P would end in a bare error with the private data in its frames, or in an answer."""
    made = attempt(lambda: privatize(**PROMISE, sampler=BAD_SAMPLERS[sampler]())(build(*spec)))
    if made.ok:
        check_call(made.value, DATA[data], n, own_rng=sampler == "global rng")


@examples(60, 400)
@given(WRONG)
def test_wrong_settings_are_refused_by_name(change):
    """A wrong setting would raise a TypeError from somewhere inside."""
    f = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(lambda x: float(x.mean()))
    found = attempt(lambda: f.replace(**change))
    assert isinstance(found.error, PrivatizeError)
    still_works()


COUNTS = st.sampled_from([0, -1, 1, 5, 1.5, "5", None, True, [1, 2], [], 2**62, np.int64(3), [None], {}])


@examples(30, 200)
@given(COUNTS, st.sampled_from(["estimate", "forget", "sample", "audit"]))
def test_any_number_of_records(n, what):
    """A mistake in n would raise a bare error, or one with the data in its message."""
    f = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(healthy)
    if what == "audit":
        attempt(lambda: audit(f, n, pairs=5, releases=0))
    else:
        attempt(lambda: getattr(f, what)(n))
    still_works()


@examples(40, 600)
@given(
    st.integers(1, 20),
    st.sampled_from([0, 50, 101]),
    st.sampled_from(["laplace", "gaussian", "exponential", "bernstein"]),
    st.sampled_from(["mean", "vector", "sorted", "count", "callable", "unseeded"]),
    st.sampled_from(["never", "some", "rare"]),
    st.sampled_from([0.5, 0.9, 0.99]),
)
def test_audits_of_any_size(pairs, releases, mechanism, stat, trigger, confidence):
    """A quick audit with few pairs and releases would end in a bare error."""
    promise = PROMISE | MECHANISMS[mechanism]
    f = privatize(**promise, sampler=samplers.uniform(0, 1))(build(stat, "raw", "raise", trigger))

    def act():
        return str(audit(f, 3, pairs=pairs, releases=releases, confidence=confidence, seed=3))

    attempt(act)
    still_works()


INSTANT = ("PrivateFunction.__call__", "PrivateFunction.release", "released")


class _Stop:
    """Raises an interrupt at the k-th call of a Python function inside the library."""

    def __init__(self, k: int) -> None:
        self.k, self.at = k, 0

    def __call__(self, frame: Any, what: str, arg: Any) -> None:
        code = frame.f_code
        if what == "call" and code.co_filename.startswith(OURS) and code.co_name != "<genexpr>":
            if code.co_qualname in INSTANT:
                return  # documented: the first instant of a call
            self.at += 1
            if self.at == self.k:
                raise KeyboardInterrupt


@examples(150, 4000)
@given(st.integers(1, 700), st.booleans(), st.sampled_from(["mean", "numpy random"]))
def test_interrupts_at_any_time(k, recalled, stat):
    """Ctrl-C at an unlucky moment would leave the data in a frame, or the caller's generators changed."""
    f = privatize(**PROMISE | {"domain": "as-is"}, sampler=samplers.uniform(0, 1))(
        build(stat, "raw", "raise", "never")
    )
    f.forget()
    if recalled:
        f.estimate(5)
    data = base(5)

    def act():
        sys.setprofile(_Stop(k))
        try:
            return f(data)
        finally:
            sys.setprofile(None)

    found = attempt(act)
    if not found.ok:
        assert type(found.error) in (KeyboardInterrupt, PrivateRunError)
    again = attempt(lambda: f(data))
    assert again.ok
    still_works()


@examples(40, 500)
@given(
    st.sampled_from(["mean", "median", "vector", "numpy random", "bootstrap", "random", "sets rng"]),
    st.sampled_from(["unit", "normal", "mixture", "scipy"]),
    st.integers(1, 6),
    st.integers(0, 2**70),
    st.sampled_from(["inline", "inline", None, 2]),
)
def test_estimates_are_reproducible(stat, sampler, n, seed, workers):
    """The same seed would give another estimate, in this process or in workers."""

    def estimate(where):
        f = privatize(**PROMISE | {"seed": seed, "workers": where}, sampler=SAMPLERS[sampler]())(
            build(stat, "raw", "raise", "never")
        )
        f.forget()
        return attempt(lambda: f.estimate(n))

    one, other = estimate("inline"), estimate(workers)
    assert one.ok == other.ok
    if one.ok:
        assert np.array_equal(one.value.gaps, other.value.gaps) and one.value.value == other.value.value


def test_the_checks_find_leaks(monkeypatch):
    """The checks that are used above would pass whatever happens."""
    for leak in (SECRET, INTEGER, [base(3)], f"{SECRET}", {TEXT: 1}, np.float64(SECRET), Loud(base(3))):
        with pytest.raises(AssertionError):
            attempt(lambda leak=leak: _raise(SettingsError("oh", leak=leak)))
    for act in (lambda: print(SECRET), lambda: logging.warning("%s", SECRET), lambda: random.random()):
        with pytest.raises(AssertionError):
            attempt(act)
    for act in (lambda: warnings.warn("oh", stacklevel=1), lambda: 1 / 0):
        with pytest.raises(AssertionError):
            attempt(act)
    f = privatize(**PROMISE | {"domain": "as-is"}, sampler=samplers.uniform(0, 1))(
        build("mean", "raw", "raise", "never")
    )
    monkeypatch.setattr(Laplace, "release", lambda self, vector, **rest: vector)
    with pytest.raises(AssertionError, match="the raw answer was released"):
        check_call(f, base, 3)


# --- bugs that were found, each as a small case --------------------------------------------------------


def lists(n: int, rng: Any) -> Any:
    return rng.integers(0, 9, n).tolist()


@for_each("kind", [np.int64, np.float32, np.uint8, Fraction, Decimal, str])
def test_clipping_reaches_every_kind_of_number_in_a_list(kind):
    """A record outside P in a list of numpy numbers would reach the function, and change the answer a lot."""
    f = privatize(**PROMISE, sampler=samplers.from_function(lists, support=(0, 9)))(
        lambda x: 1e9 if max(map(float, x)) > 9 else float(sum(map(float, x)))
    )
    assert f.settings.domain == "clip"
    found = attempt(lambda: f([kind(200), kind(1)]))  # a refusal is fine, too
    assert not found.ok or abs(found.value) < 1e6


def test_a_support_of_another_shape_than_the_records():
    """One private record would become two if the support has two coordinates and the records none."""
    sampler = samplers.from_function(lambda n, rng: rng.random(n), support=([0, 0], [1, 1]))
    f = privatize(**PROMISE, sampler=sampler)(lambda x: len(x) + x.mean() / 1000)
    found = attempt(lambda: f(np.array([0.5])))
    assert not found.ok or abs(found.value - 1) < 0.5


def test_casts_of_private_numbers_do_not_warn():
    """A warning would say that a private number is beyond every float."""
    f = privatize(**PROMISE, sampler=SAMPLERS["uint8"]())(lambda x: float(x.mean()))
    attempt(lambda: f(np.array([1.0, 0.0], dtype=np.longdouble) * np.longdouble("1e4000")))


@pytest.mark.parametrize("data", [[10**400, 0, 1], [10**30, 0.5, 0.25]])
def test_clipping_reaches_integers_of_any_size(data):
    """A huge integer in a list would make the call fail, though it can be clipped into P's support."""
    f = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(lambda x: float(np.mean(x)))
    assert attempt(lambda: f(data)).ok


def test_a_function_that_exits_beside_a_pair():
    """sys.exit() in the function would end the program when pair= is compared with the function."""
    f = privatize(**PROMISE, sampler=samplers.uniform(0, 1), pair=lambda x, i, r: (x[0], x[0] + (r - x[i])))(
        lambda x: sys.exit(3)
    )
    assert not attempt(lambda: f.estimate(5)).ok


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_function_that_calls_itself(how):
    """A copy's calls to itself would go to the original, which adds its own noise."""

    def total(x):
        return total(x[:2]) + float(x[2:].sum()) if len(x) > 2 else float(x.sum())

    total = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(total)
    expected = total.estimate(4).value
    total.forget()
    assert how(total).estimate(4).value == expected


def test_forgetting_where_nothing_can_be_remembered():
    """forget() would end in a bare error if the store cannot be opened."""
    f = privatize(**PROMISE | {"store": "/proc/none/store.sqlite"}, sampler=samplers.uniform(0, 1))(healthy)
    attempt(f.forget)
    attempt(lambda: f.forget(5))


@pytest.mark.parametrize("n", [2**63, 2**70])
def test_more_records_than_a_database_can_count(n):
    """estimate() of an absurd n would end in SQLite's own error."""
    f = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(healthy)
    assert not attempt(lambda: f.estimate(n)).ok


@pytest.mark.parametrize("releases", [1, 2, 20])
def test_audits_with_very_few_releases(releases):
    """A quick try of audit() would end in a numpy error about quantiles."""
    f = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(healthy)
    attempt(lambda: audit(f, 5, pairs=3, releases=releases))


def test_audits_of_the_classic_gaussian():
    """A function with mechanism=Gaussian("classic") could not be audited at all."""
    f = privatize(**PROMISE | MECHANISMS["classic"], sampler=samplers.uniform(0, 1))(healthy)
    assert attempt(lambda: audit(f, 5, pairs=20, releases=0)).ok


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "exponential", "bernstein"])
def test_callers_who_make_numpy_raise(mechanism):
    """np.seterr(all="raise"), which careful users set, would make the library's own arithmetic fail."""
    stat = {"exponential": "vector", "bernstein": "callable"}.get(mechanism, "mean")
    f = privatize(**PROMISE | MECHANISMS[mechanism], sampler=samplers.uniform(0, 1))(
        build(stat, "raw", "raise", "never")
    )
    with np.errstate(all="raise"):
        assert attempt(lambda: f(base(5))).ok
        assert attempt(lambda: str(audit(f, 5, pairs=20, releases=100))).ok


@pytest.mark.parametrize("rest", [{"confidence": "a"}, {"confidence": None}, {"under": 5}])
def test_wrong_arguments_of_an_audit(rest):
    """A mistake in a call of audit() would raise a TypeError from somewhere inside."""
    f = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(healthy)
    assert not attempt(lambda: audit(f, 5, pairs=3, releases=0, **rest)).ok


@for_each(
    "change",
    [
        {"delta": 10**400},
        {"domain": np.ones(2)},
        {"progress": np.ones(2)},
        {"store": "/tmp/\0store.sqlite"},
        {"data": 5},
        {"coins": 5},
    ],
)
def test_other_wrong_settings(change):
    """A wrong setting would raise a bare error from somewhere inside, at once or at the first call."""
    f = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(healthy)
    attempt(lambda: f.replace(**change).estimate(5))


@pytest.mark.parametrize("where", ["__enter__", "__exit__"])
@pytest.mark.parametrize("what", ["estimate", "call"])
def test_interrupts_between_contexts(what, where):
    """After an unlucky Ctrl-C the next call would return the raw answer, or generators would stay seeded."""
    f = privatize(**PROMISE | {"domain": "as-is"}, sampler=samplers.uniform(0, 1))(lambda x: float(x.mean()))
    data = base(5)
    code = getattr(rng_guard, where).__code__
    fired = []

    def trace(frame, event, arg):
        if frame.f_code is not code or fired:
            return None
        if where == "__exit__":  # before its first line
            fired.append(1)
            raise KeyboardInterrupt
        frame.f_trace_opcodes = True
        return step

    def step(frame, event, arg):
        name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if event == "opcode" and not fired and name.startswith("RETURN"):  # after its last line
            fired.append(1)
            raise KeyboardInterrupt
        return step

    before, tracing = generators(), sys.gettrace()
    context = contextvars.copy_context()
    caught = None  # it stays alive, as sys.last_exc does in a notebook
    sys.settrace(trace)
    try:
        context.run(f.estimate, 5) if what == "estimate" else context.run(f, data)
    except BaseException as error:
        caught = error
    finally:
        sys.settrace(tracing)
    after = generators()
    answer = context.run(f, data)
    assert fired and isinstance(caught, KeyboardInterrupt)
    assert not global_rng._entered
    del caught
    assert answer != data.mean(), "the raw answer was released"
    assert after == before, "the caller's generators were touched"


def test_the_store_survives_interrupts():
    """After an unlucky Ctrl-C nothing would work until the program is started again."""
    f = privatize(**PROMISE, sampler=samplers.uniform(0, 1))(lambda x: float(x.mean()))
    code = Database._sqlite.__wrapped__.__code__
    lines: list[int] = []

    def trace(frame, what, arg):
        if frame.f_code is not code:
            return None
        if what == "line":
            lines.append(frame.f_lineno)
            if len(lines) == 2:  # the transaction has just begun
                raise KeyboardInterrupt
        return trace

    tracing = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt):
            f.estimate(2)
    finally:
        sys.settrace(tracing)
    try:
        assert attempt(lambda: f.estimate(2)).ok
    finally:
        open_store("memory").database._shared.connection.rollback()


# --- in random order ---------------------------------------------------------------------------------


class Session(RuleBasedStateMachine):
    """One private function in a random sequence of calls, changes, copies and failures."""

    @initialize(spec=specs, sampler=st.sampled_from(["unit", "normal", "integers", "unit 2-D", "lists"]))
    def begin(self, spec, sampler):
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self.folder.name) / "store.sqlite")
        self.known: dict[Any, Any] = {}
        self.f = privatize(**PROMISE, sampler=SAMPLERS[sampler]())(build(*spec))
        self.random = spec[0] == "unseeded" or "keep" in spec

    def teardown(self):
        if hasattr(self, "folder"):
            files_clean(self.path)
            self.folder.cleanup()
        still_works()

    def do(self, act):
        found = attempt(act, own_rng=False)
        LEFT_BEHIND.clear()
        if not found.ok:
            note(f"{type(found.error).__name__}: {found.error}")
        return found

    @rule(data=st.sampled_from(list(DATA)), n=st.integers(0, 4), entire=st.booleans())
    def call(self, data, n, entire):
        made = DATA[data](n)
        before = copy.deepcopy(made) if isinstance(made, list | np.ndarray | tuple) else None
        found = self.do(lambda: self.f.release(made) if entire else self.f(made))
        assert before is None or same(before, made)
        if found.ok and entire:
            assert SECRET not in leaves(found.value.value)  # integers may coincide
            raw = NOTES.fuzz.get("raw")
            if raw is not None:
                assert_noised(found.value, raw)

    @rule(n=st.one_of(st.integers(1, 4), st.lists(st.integers(1, 3), max_size=3)))
    def estimate(self, n):
        found = self.do(lambda: self.f.estimate(n))
        s = self.f.settings
        if found.ok and not isinstance(n, list) and s.seed is not None and not self.random:
            key = (n, s.seed, s.plan, s.min_sensitivity, repr(s.sampler), repr(s.mechanism))
            first = self.known.setdefault(key, found.value)
            assert first.value == found.value.value and np.array_equal(first.gaps, found.value.gaps)
            repr(found.value)

    @rule(n=st.one_of(st.none(), st.integers(1, 4)))
    def forget(self, n):
        if str(self.f.settings.store).startswith("/proc"):
            return  # see test_forgetting_where_nothing_can_be_remembered
        assert self.do(lambda: self.f.forget() if n is None else self.f.forget(n)).ok

    @rule(n=st.integers(1, 4), seed=st.one_of(st.none(), st.integers(0, 9)))
    def sample(self, n, seed):
        self.do(lambda: self.f.sample(n, seed=seed))

    @rule(change=changes)
    def replace(self, change):
        change = dict(change)
        if change.get("store") == "file":
            change["store"] = self.path
        if "sampler" in change:
            change["sampler"] = (SAMPLERS | BAD_SAMPLERS)[change["sampler"]]()
        found = self.do(lambda: self.f.replace(**change))
        if found.ok:
            self.f = found.value

    @rule(mechanism=st.sampled_from(list(MECHANISMS)))
    def mechanism(self, mechanism):
        found = self.do(lambda: self.f.replace(**{"delta": 0.0} | MECHANISMS[mechanism]))
        if found.ok:
            self.f = found.value

    @rule(change=WRONG)
    def wrong(self, change):
        if set(change) & {"data", "coins", "seed"} or "delta" in change:
            return
        self.do(lambda: self.f.replace(**change))

    @rule(how=st.sampled_from(["copy", "deepcopy", "cloudpickle"]))
    def copied(self, how):
        makers = {
            "copy": copy.copy,
            "deepcopy": copy.deepcopy,
            "cloudpickle": lambda f: pickle.loads(cloudpickle.dumps(f)),
        }
        if how == "cloudpickle" and "Counting" in repr(self.f):
            return
        self.do(lambda: repr(makers[how](self.f)))
        if how != "cloudpickle":
            self.f = makers[how](self.f)

    @rule(k=st.integers(1, 400), n=st.integers(1, 4))
    def interrupted(self, k, n):
        data = base(n)

        def act():
            sys.setprofile(_Stop(k))
            try:
                return self.f(data)
            finally:
                sys.setprofile(None)

        self.do(act)

    @precondition(lambda self: FULL or self.f.settings.workers == "inline")
    @rule(n=st.integers(1, 3), pairs=st.integers(1, 8), releases=st.sampled_from([0, 50]))
    def audited(self, n, pairs, releases):
        self.do(lambda: str(audit(self.f, n, pairs=pairs, releases=releases)))

    @rule()
    def nothing_has_leaked(self):
        assert not shows(repr(self.f)) and not holds([self.f.calibrator.memory, self.f.settings])
        files_clean(self.path)


Session.TestCase.settings = examples(25, 500, stateful_step_count=40 if FULL else 14)
Session.TestCase.runTest.__doc__ = (
    "Some order of calls and failures would break what each of them alone does not."
)
TestSession = Session.TestCase
