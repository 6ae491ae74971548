"""Private data, and what shares memory with it, copies it, or is something else."""

import array
import collections
import contextvars
import copy
import ctypes
import functools
import pickle
import types
import weakref

import numpy as np
import pytest

from privatize.identity.fingerprint import PrivateReachable, token
from privatize.identity.reachable import Private

pd = pytest.importorskip("pandas")
N = 200
RNG = np.random.default_rng(3)
AGES = RNG.uniform(18, 90, N)
COUNTS = RNG.integers(0, 40, N)
NAMES = [f"name {i}" for i in RNG.permutation(N)]
TABLE = RNG.normal(size=(N, 3))
FRAME = pd.DataFrame(
    {"age": AGES, "visits": COUNTS, "income": RNG.lognormal(10, 1, N), "name": NAMES},
    index=pd.Index(RNG.permutation(N) + 1000, name="id"),
)
PEOPLE = [{"age": float(a), "name": name, "tags": [name]} for a, name in zip(AGES, NAMES, strict=True)]
ROWS = [(float(a), int(c)) for a, c in zip(AGES, COUNTS, strict=True)]


def found(data, value):
    """Tell whether a function that has a value in its closure is refused."""

    def raw(x):
        return 0.0 if value is None else 1.0

    try:
        token(raw, "raw", private=Private(data))
    except PrivateReachable:
        return True
    return False


class Holder:
    def __init__(self, value):
        self.value = value


class Closed:
    """An object that cannot be encoded."""

    def __init__(self, value):
        self.value = value

    def __reduce_ex__(self, protocol):
        raise TypeError("not this one")


def _lines(values):
    yield from values


@functools.lru_cache
def _loaded():
    return FRAME


_VARIABLE = contextvars.ContextVar("variable", default=FRAME)
SHARED = {
    "the array itself": (AGES, AGES),
    "in a list": (AGES, [[1, 2], [AGES]]),
    "in an object": (AGES, Holder({"a": (AGES,)})),
    "a part in a dict": ({"age": AGES, "visits": COUNTS}, COUNTS),
    "a part in a tuple": ((TABLE, AGES), AGES),
    "a view": (AGES, AGES[5:10]),
    "a reversed view": (AGES, AGES[::-1]),
    "a view passed": (AGES[50:], AGES),
    "another view of one array": (TABLE[:, 0], TABLE[:, 1]),
    "a transposed array": (TABLE, TABLE.T),
    "the bytes of an array": (AGES, memoryview(AGES)),
    "other numbers in the same bytes": (AGES, AGES.view(np.int64)),
    "a structured array's field": (FRAME[["age", "visits"]].to_records(), AGES),
    "a column of a frame": (FRAME["age"], FRAME),
    "a frame of a column": (FRAME, FRAME["visits"]),
    "a column's array": (FRAME, FRAME["income"].to_numpy()),
    "columns of a frame": (FRAME[["age", "visits"]], FRAME),
    "a frame of columns": (FRAME, FRAME[["age", "visits"]]),
    "strings of a frame": (FRAME, FRAME["name"]),
    "an index": (FRAME, FRAME.index),
    "a frame's rows": (FRAME, FRAME.iloc[3:50]),
    "a frame in groups": (FRAME, FRAME.groupby("visits")),
    "a category's codes": (FRAME["name"].astype("category"), FRAME["name"].astype("category").cat.codes),
    "an index of two levels": (FRAME.set_index(["name", "visits"]), FRAME.reset_index().set_index(["name"])),
    "numbers that may be missing": (FRAME["visits"].astype("Int64"), FRAME["visits"]),
    "the same, stored otherwise": (FRAME["age"], FRAME["age"].astype("double[pyarrow]")),
    "dates": (
        pd.Series(pd.to_datetime(COUNTS * 7 + 3, unit="D")),
        pd.to_datetime(COUNTS * 7 + 3, unit="D").to_numpy(),
    ),
    "a list of records": (PEOPLE, PEOPLE),
    "some of the records": (PEOPLE, PEOPLE[:50]),
    "one of the records": (PEOPLE, {"first": PEOPLE[7]}),
    "what is in a record": (PEOPLE, PEOPLE[9]["tags"]),
    "all records, some passed": (PEOPLE[:150], PEOPLE),
    "every second record": (PEOPLE[::2], tuple(PEOPLE)),
    "one of the rows": (ROWS, [ROWS[3], (1.0, 2)]),
    "objects": ([Holder(i) for i in AGES], None),
    "an array of records": (np.array(PEOPLE, dtype=object), PEOPLE[:20]),
    "an iterator": (PEOPLE, iter(PEOPLE)),
    "a view of values": ({"age": AGES}, {"age": AGES}.values()),
    "a queue": (AGES, collections.deque([AGES])),
    "a weak reference": (AGES, weakref.ref(AGES)),
    "a bound method": (AGES, AGES.mean),
    "a partial": (AGES, functools.partial(max, AGES)),
    "a generator": (AGES, (i for i in AGES)),
    "the generator of a function": (PEOPLE, _lines(PEOPLE)),
    "a flat view": (AGES, AGES.flat),
    "a cache": (FRAME, _loaded),
    "a context variable": (FRAME, _VARIABLE),
    "in what cannot be encoded": (AGES, Closed(AGES)),
    "beside what cannot be encoded": (AGES, [Closed(1), AGES]),
}
COPIES = {
    "an array": (AGES, AGES.copy()),
    "as a list": (AGES, AGES.tolist()),
    "as a tuple": (AGES, tuple(AGES.tolist())),
    "as a set": (AGES, set(AGES.tolist())),
    "in a dict by name": (AGES, dict(zip(NAMES, AGES.tolist(), strict=True))),
    "in single precision": (AGES, AGES.astype("f4")),
    "in half precision": (AGES, AGES.astype("f2")),
    "as integers": (AGES, AGES.astype(int)),
    "rounded": (AGES, AGES.round()),
    "sorted": (AGES, np.sort(AGES)),
    "shuffled integers": (COUNTS, RNG.permutation(COUNTS)),
    "bytes": (AGES, AGES.tobytes()),
    "a pickle": (AGES, pickle.dumps({"a": AGES})),
    "an array of bytes": (AGES, bytearray(AGES.tobytes())),
    "array.array": (AGES, array.array("d", AGES)),
    "ctypes": (AGES, (ctypes.c_double * N)(*AGES)),
    "some": (AGES, AGES[AGES > 50]),
    "some passed": (AGES[AGES > 50], AGES.tolist()),
    "the first integers": (COUNTS, COUNTS[:60].copy()),
    "the first rows": (TABLE, TABLE[:50].copy()),
    "a column of a table": (TABLE, TABLE[:, 1].copy()),
    "a table of columns": (TABLE[:, 1].copy(), TABLE),
    "a frame": (FRAME, FRAME.copy()),
    "a column of a frame": (FRAME, FRAME["visits"].copy()),
    "a frame's first rows": (FRAME, FRAME.head(60).copy()),
    "a frame of numbers": (FRAME[["age", "income"]], FRAME[["age", "income"]].to_numpy()),
    "records": (FRAME, FRAME.to_dict("records")),
    "lists": (FRAME, FRAME.to_dict("list")),
    "strings": (FRAME["name"], list(NAMES)),
    "records of records": (PEOPLE, copy.deepcopy(PEOPLE)),
    "some of them": (PEOPLE, copy.deepcopy(PEOPLE[:80])),
    "rows": (ROWS, [tuple(row) for row in map(list, ROWS)]),
    "objects": ([Holder(a) for a in AGES], [Holder(a) for a in AGES]),
    "twice the numbers": (COUNTS, 2 * COUNTS),
    "standardized": (TABLE, (TABLE - TABLE.mean(axis=0)) / TABLE.std(axis=0)),
    "logarithms": (AGES, np.log(AGES)),
    "the opposite": (AGES, -AGES),
    "arrays": ([np.array([a, 1.0]) for a in AGES], [np.array([a, 1.0]) for a in AGES]),
    "a list of few": ([1.5, 7.0, 2.25, 9.5, 4.0, 3.0, 8.75, 0.5], (1.5, 7.0, 2.25, 9.5, 4.0, 3.0, 8.75, 0.5)),
}
SHARED["objects"] = (OBJECTS := [Holder(i) for i in AGES], {"a": OBJECTS[3]})
OTHERS = {
    "nothing": (AGES, 1),
    "other numbers": (AGES, RNG.uniform(18, 90, N)),
    "positions": (FRAME.reset_index(), np.arange(N)),
    "a grid": (COUNTS, np.linspace(0, 40, 401)),
    "the same range": (np.arange(N), np.arange(N)),
    "constants": (np.zeros(N), [0.0] * N),
    "equal constants": (np.ones(N), np.ones(N)),
    "a table of codes": (COUNTS + 1000, dict.fromkeys(range(1000, 1050), 0.5)),
    "names of groups": (["F", "M"] * 100, ["F", "M", "D", "U", "A", "B", "C", "E"]),
    "words": (PEOPLE, [f"word {i}" for i in range(N)]),
    "few": ([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]),
    "an empty array": (AGES, np.array([])),
    "an empty array of it": (AGES, AGES[:0].copy()),
    "zeros and ones": (RNG.integers(0, 2, N), RNG.integers(0, 2, N)),
    "the edges of bins": (AGES, (18, 25, 35, 45, 55, 65, 75, 90)),
    "names of columns": (
        {f"column {i}": RNG.uniform(0, 1, N) for i in range(12)},
        [f"column {i}" for i in range(12)],
    ),
    "names of a frame": (
        pd.DataFrame({f"column {i}": RNG.uniform(0, 1, N) for i in range(12)}),
        tuple(f"column {i}" for i in range(12)),
    ),
    "sorted numbers": (np.sort(AGES), np.sort(RNG.uniform(0, 1, N))),
    "an enum": (PEOPLE, types.SimpleNamespace(a=1)),
    "other records": (PEOPLE, [{"age": float(a), "name": "x"} for a in RNG.uniform(18, 90, N)]),
}
STATES = [f"state {i:02d}" for i in range(50)]
