"""Datasets of every container."""

import math

import numpy as np

from privatize.data.schema import Schema


def to_dtype(code):
    """Return the dtype that a schema's JSON describes."""
    if code == "StringDType":
        return np.dtype(np.dtypes.StringDType())
    if isinstance(code, str):
        return np.dtype(code)
    if "base" in code:
        return np.dtype((to_dtype(code["base"]), tuple(code["shape"])))
    return np.dtype(code | {"formats": [to_dtype(inner) for inner in code["formats"]]})


def sampled(schema):
    """Return two records of a schema, or its JSON, as P would draw them."""
    schema = schema.to_json() if isinstance(schema, Schema) else schema
    if schema[0] == "tuple":
        return tuple(map(sampled, schema[1:]))
    return [0.0, 0.0] if schema[0] == "list" else np.zeros((2, *schema[2]), to_dtype(schema[1]))


inf, nan = math.inf, math.nan
PAIR = np.dtype([("age", "<i4"), ("pay", "<f8")])
ALIGNED = np.dtype([("sex", "i1"), ("pay", "f8")], align=True)
NESTED = np.dtype([("id", [("a", "<i8"), ("b", "<f4")]), ("xy", "<f8", (2,))])


def objects(values):
    """Return a one-dimensional array of any objects."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def structured(dtype, n=5):
    """Return n different structured records."""
    array = np.zeros(n, dtype=dtype)
    for i in range(n):
        array[i] = np.frombuffer(bytes(range(i, i + array.itemsize)), dtype=dtype)[0]
    return array


def make(name):
    """Return a fresh dataset of five records, all different."""
    return {
        "1-D": lambda: np.arange(5.0),
        "2-D": lambda: np.arange(15).reshape(5, 3),
        "4-D": lambda: np.arange(5 * 2 * 3 * 2, dtype=np.float32).reshape(5, 2, 3, 2),
        "Fortran order": lambda: np.asfortranarray(np.arange(10.0).reshape(5, 2)),
        "a view": lambda: np.arange(30.0).reshape(10, 3)[::-2, 1:],
        "big-endian": lambda: np.arange(5, dtype=">i4"),
        "bytes": lambda: np.arange(5, dtype=np.uint8),
        "NaN": lambda: np.array([nan, 1, inf, -inf, 2]),
        "strings": lambda: np.array(["a", "bc", "", "d", "e"]),
        "dates": lambda: np.array(["2020-01-01", "NaT", "2021-01-01", "2022-01-01", "2023-01-01"], "M8[D]"),
        "complex": lambda: np.arange(5) * 1j,
        "objects": lambda: objects([[1], {"a": [2]}, "three", None, (4,)]),
        "2-D objects": lambda: objects([[i] for i in range(10)]).reshape(5, 2),
        "structured": lambda: structured(PAIR),
        "aligned": lambda: np.array([(i, i / 2) for i in range(5)], dtype=ALIGNED),
        "nested": lambda: structured(NESTED),
        "structured objects": lambda: np.array([([i], i) for i in range(5)], dtype=[("a", "O"), ("b", "f8")]),
        "list": lambda: [3, 1.5, True, "x", None],
        "list of lists": lambda: [[i, [i]] for i in range(5)],
        "list of dicts": lambda: [{"name": str(i), "tags": [i]} for i in range(5)],
        "list of arrays": lambda: [np.arange(i) for i in range(5)],
        "list of tuples": lambda: [(i, [i]) for i in range(5)],
        "tuple": lambda: (np.arange(10.0).reshape(5, 2), [0, 1, 2, 3, 4]),
        "tuple of one": lambda: (np.arange(5),),
        "tuple of tuples": lambda: (
            (np.arange(5), [[i] for i in range(5)]),
            objects([[i] for i in range(5)]),
        ),
    }[name]()


NAMES = [
    "1-D",
    "2-D",
    "4-D",
    "Fortran order",
    "a view",
    "big-endian",
    "bytes",
    "NaN",
    "strings",
    "dates",
    "complex",
    "objects",
    "2-D objects",
    "structured",
    "aligned",
    "nested",
    "structured objects",
    "list",
    "list of lists",
    "list of dicts",
    "list of arrays",
    "list of tuples",
    "tuple",
    "tuple of one",
    "tuple of tuples",
]
