"""Numbers, strings, containers and arrays that differ have different fingerprints."""

import collections
import enum
import fractions
import functools
import logging
import re
import threading
import types
from decimal import Decimal
from pathlib import Path

import numpy as np
from scipy import stats

from privatize import Exponential, Laplace, samplers
from privatize.identity import values
from privatize.identity.encoder import Encoder
from privatize.identity.fingerprint import fingerprint
from privatize.identity.values import is_fixed
from privatize.samplers import as_sampler
from tests.cases import for_each
from tests.identity.sets import two_orders


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Slotted:
    __slots__ = ("__hidden", "shown")

    def __init__(self, hidden, shown):
        self.__hidden, self.shown = hidden, shown


class Tagged(np.ndarray):
    pass


def tagged(tag, values):
    made = np.array(values).view(Tagged)
    made.tag = tag
    return made


def closing(value):
    return lambda x: x + value


def forged(factor):
    @functools.wraps(np.mean)
    def mean(x):
        return factor * np.mean(x)

    return mean


def stored(value):
    made = threading.local()
    made.value = value
    return made


class Lossy(dict):
    def __reduce__(self):
        return (dict, ())


POINT = collections.namedtuple("POINT", "x y")
DIFFERENT = {
    "numbers": (1, 2),
    "kinds of one": (1, 1.0, True, "1", b"1", 1 + 0j, np.float64(1), np.float32(1), np.int64(1)),
    "zeros": (0.0, -0.0, 0),
    "containers": ([1, 2], (1, 2), {1, 2}, frozenset({1, 2}), {1: 2}, [[1], 2], [1, [2]], [12]),
    "strings": ("ab", "a", "", "a\x00b"),
    "closures": (closing(1), closing(2), closing([1])),
    "partials": (functools.partial(max, 1), functools.partial(max, 2), functools.partial(min, 1)),
    "bound methods": ([1].append, [2].append, "a".join),
    "enums": (Colour.RED, Colour.BLUE),
    "arrays": (np.zeros(2), np.zeros(3), np.ones(2), np.zeros(2, "f4"), np.zeros(2, ">f8"), np.zeros((2, 1))),
    "object arrays": (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
    "array subclasses": (tagged("a", [1.0]), tagged("b", [1.0]), tagged("a", [2.0])),
    "layouts": (np.zeros((2, 3)), np.zeros((3, 2)).T),
    "slots": (Slotted(1, 2), Slotted(2, 2), Slotted(1, 3)),
    "patterns": (re.compile("a"), re.compile("b"), re.compile("a", re.IGNORECASE)),
    "paths": (Path("a"), Path("b")),
    "ufuncs": (np.sqrt, np.exp, np.add),
    "numpy functions": (np.mean, np.median),
    "builtins": (max, min, len),
    "forged modules": (np.mean, forged(1), forged(2)),
    "distributions": tuple(
        map(as_sampler, (stats.expon(), stats.expon(scale=2), stats.norm(), stats.gamma(2)))
    ),
    "samplers": (samplers.uniform(0, 1), samplers.uniform(0, 2), samplers.uniform(0, 1, size=1)),
    "mechanisms": (Laplace(), Exponential([1, 2]), Exponential([1, 3]), Exponential([1, 2], prior=[1, 2])),
    "ordered": (collections.OrderedDict(a=1), collections.OrderedDict(a=2), {"a": 1}),
    "deques": (collections.deque([1]), collections.deque([2]), collections.deque([1], maxlen=3)),
    "namespaces": (types.SimpleNamespace(f=closing(1)), types.SimpleNamespace(f=closing(2))),
    "named tuples": (POINT(1, 2), POINT(1, 3), (1, 2)),
    "loggers": (logging.getLogger("a"), logging.getLogger("b")),
    "storage of threads": (stored(1), stored(2)),
    "sets of modules": (frozenset({types}), frozenset({enum})),
    "object dtypes": (
        np.zeros(1, dtype=[("a", "O"), ("b", "f8")]),
        np.zeros(1, dtype=[("b", "O"), ("a", "f8")]),
    ),
    "dates": (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-02"], "M8[D]")),
    "huge integers": (10**5000, 10**5000 + 1),
    "properties": (property(len), (len, None, None)),
    "lossy classes": (Lossy(a=1), Lossy(a=2)),
    "lambdas": (lambda x: x + 1, lambda x: x + 2, lambda x: 1 + x, lambda y, x: x + 1),
    "vectorized": (np.vectorize(closing(1)), np.vectorize(closing(2))),
    "generators": (np.random.default_rng(1), np.random.default_rng(2)),
    "ranges": (range(3), range(4), slice(3)),
}


@for_each("kind", DIFFERENT)
def test_different_values_differ(kind):
    """Two values that behave differently would share an estimate."""
    found = [fingerprint(value) for value in DIFFERENT[kind]]
    assert len(set(found)) == len(found)
    assert [fingerprint(value) for value in DIFFERENT[kind]] == found


def test_equal_values_agree():
    """Equal content that is made again would be calibrated again."""
    for make in (
        lambda: {"a": [1, (2.5, None)], "b": {3, 4}},
        lambda: closing({"x": np.arange(5)}),
        lambda: Slotted([1], "a"),
        lambda: as_sampler(stats.expon(scale=2)),
        lambda: samplers.mixture([samplers.uniform(0, 1), samplers.normal(0, 1)]),
        lambda: functools.partial(np.quantile, q=0.5),
        lambda: np.random.default_rng(1),
    ):
        assert fingerprint(make()) == fingerprint(make())
    expon = as_sampler(stats.expon())
    before = fingerprint(expon)
    np.random.random()  # a scipy distribution refers to numpy's global generator
    assert fingerprint(expon) == before


LONG = b"y" * 500
MIXED = {
    "strings": {"a", "b", "c@d"},
    "numbers": {1, 2.5, 3j, -0.0, float("nan")},
    "all kinds": {None, ..., True, 7, "x", LONG, (1, "z"), frozenset({"p", "@q"})},
    "functions": {len, max, "len"},
    "nothing": set(),
}


@for_each("kind", MIXED)
@for_each("narrow", [False, True])
def test_a_set_is_encoded_as_if_each_item_were_encoded_by_itself(monkeypatch, kind, narrow):
    """Sets of many words take a quick way, which must give the same key and meet the same names."""
    found = []
    for quick in (True, False):
        if not quick:
            monkeypatch.setattr(values, "_meets_nothing", lambda item: False)
        encoder = Encoder(narrow=narrow)
        encoder.encode(MIXED[kind])
        found.append((encoder.digest(), encoder.met))
        assert LONG in encoder.compared or kind != "all kinds"  # with the private data
        monkeypatch.undo()
    assert found[0] == found[1]


def orders_of(value):
    """Return the fingerprint of a value, and the orders of sets in it."""
    orders: set[str] = set()
    return fingerprint(value, orders=orders), orders


@for_each(
    "item", [1, 2.5, True, 2j, Decimal(1), fractions.Fraction(1, 3), np.int64(3), np.True_, (1, (2.0,))]
)
def test_hashes_that_are_the_same_everywhere(item):
    """Sets of these have the same order in every process, which is a part of the fingerprint."""
    assert is_fixed(item)


@for_each("item", ["a", b"a", None, (1, "a"), frozenset([1]), len, int, np.str_("a"), object()])
def test_other_hashes(item):
    """If one of these counted as fixed, estimates would never be found in another process."""
    assert not is_fixed(item)


def test_sets_of_numbers_in_another_order():
    """Equal sets of numbers may have other orders, and a function that takes the first item sees that."""
    for one, other in (({True, 9}, {9, True}), ({1.0, 9}, {9, 1.0}), ({2j, 9}, {9, 2j})):
        assert (fingerprint(one) == fingerprint(other)) == (list(one) == list(other))
    assert list({True, 9}) != list({9, True})  # or nothing was tested


def test_sets_of_strings_in_another_order():
    """Their order differs between processes, so it is no part of the fingerprint; but it is known."""
    one, other = two_orders()
    (first, orders), (second, others) = orders_of(one), orders_of(other)
    assert first == second and len(orders) == len(others) == 1 and orders != others
    assert not orders_of({"a"})[1] and not orders_of({1, 2})[1]
    assert orders_of([{"deep": (frozenset(one), 3)}])[1]
    assert orders_of(lambda x: x[one])[1] != orders_of(lambda x: x[other])[1]
