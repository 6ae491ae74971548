"""Functions that depend on the order of a set compute something else in other processes."""

import collections
import dis
import fractions
import operator
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from privatize.identity.bytecode import code_of
from privatize.identity.encoder import Encoder
from privatize.identity.fingerprint import fingerprint
from privatize.identity.orders import is_fixed, uses_order
from tests.cases import for_each

NOTHING, ONE, OTHER = frozenset(), frozenset({"a"}), frozenset({"b"})
ALIAS, HASHED, OF_STRINGS, BY_NAME = set, hash, str.__hash__, collections.defaultdict(set)


@dataclass
class Words:
    """An object that gets a set of its own."""

    words: list = field(default_factory=set)


class Names(set):
    """A set under another name."""


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
    """If one of these counted as fixed, a set in another order would go unnoticed."""
    assert not is_fixed(item)


def test_sets_of_numbers_in_another_order():
    """Equal sets of numbers may have other orders, and a function that takes the first item sees that."""
    for one, other in (({True, 9}, {9, True}), ({1.0, 9}, {9, 1.0}), ({2j, 9}, {9, 2j})):
        assert (fingerprint(one) == fingerprint(other)) == (list(one) == list(other))
    assert list({True, 9}) != list({9, True})  # or nothing was tested


def test_sets_of_strings():
    """Their order differs between processes, so it is no part of the fingerprint; but it is known."""
    one, other = two_orders()
    (first, orders), (second, others) = orders_of(one), orders_of(other)
    assert first == second and len(orders) == len(others) == 1 and orders != others
    assert orders_of({"a"})[1] and orders_of({1, 2})[1]  # which may grow
    assert not orders_of(frozenset([1, 2]))[1]
    assert orders_of([{"deep": (frozenset(one), 3)}])[1]


def two_orders():
    """Return two equal sets of strings that have other orders in this process."""
    names = [f"column {i}" for i in range(100)]
    for first in names:
        for second in names:
            one, other = {first, second}, {second, first}
            if list(one) != list(other):
                return one, other
    raise AssertionError("There is no collision among 100 names.")


DEPEND = [
    lambda x: [x[word] for word in {"a", "b", "c"}],
    lambda x: [x[word] for word in {"a", "b"}],
    lambda x: next(iter({"a", "b", "c"})),
    lambda x, y: {x, y},
    lambda x: {*x},
    lambda x: {word[0] for word in x},
    lambda x: list(set(x)),
    lambda x: hash(x) % 2,
    lambda x: "a".__hash__(),
    lambda x, y: list(x.keys() & y.keys()),
    lambda x: (lambda: set(x))(),
    lambda x: {1, 2}.pop(),
    lambda x, y: [{x if y else 1, 2}],
    lambda x: sorted(x, key=id),
    lambda x: NOTHING.union(x),
    lambda x: getattr(NOTHING, "union")(x),  # noqa: B009 - as users may write it
    lambda x, y: x.keys().__or__(y),
    lambda x, y: operator.or_(x.keys(), y.keys()),
]
# Only what they refer to shows it.
NAMED = [
    lambda x: next(iter(ONE | OTHER)),
    lambda x: ALIAS(x),
    lambda x: HASHED(x),
    lambda x: OF_STRINGS(x),
    lambda x: BY_NAME[x].add("a"),
    lambda x: Words().words.add("a"),
    lambda x: Names(x),
]
INDEPENDENT = [
    lambda x: x in {"a", "b"},
    lambda x: x not in {"a", "b", None},
    lambda x: [x[at] for at in {1, 2, 3}],
    lambda x, y: x in {y, "a"},
    lambda x: x["id"].sum() + x["set"].mean(),
    lambda x: {**x, "a": 1},
    lambda x: x.keys(),
    lambda x, y: (x - y) & 1,
]


@for_each("function", DEPEND)
def test_code_that_may_depend_on_an_order(function):
    """If it went unnoticed, an estimate of another process would be taken for its own."""
    assert code_of(function.__code__).uses_order
    assert orders_of(function)[1]


@for_each("function", NAMED)
def test_code_that_refers_to_what_makes_sets(function):
    """A set has another order elsewhere, whatever it is called, and although it was empty before."""
    assert not code_of(function.__code__).uses_order
    assert orders_of(function)[1]


@for_each("function", INDEPENDENT)
def test_code_that_does_not(function):
    """Estimates of usual functions would be measured again in each process."""
    assert not code_of(function.__code__).uses_order
    assert not uses_order(list(dis.get_instructions(function.__code__)))
    assert not orders_of(function)[1]


def test_a_set_that_a_function_names():
    """A global is found wherever the function names it."""
    names = {"a", "b"}
    assert orders_of(lambda x: x[names])[1]
    encoder = Encoder()
    encoder.encode(names)
    assert encoder.met.orders
