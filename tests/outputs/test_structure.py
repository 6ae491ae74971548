"""An answer must come back with its own types, from a structure that comes from calibration alone."""

import collections
import dataclasses
import decimal
import enum
import fractions
import json
import math
import typing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize.errors import OutputError
from privatize.outputs.describe import describe, from_json
from privatize.outputs.structure import StructureChanged
from tests.cases import for_each

inf, nan = math.inf, math.nan


class Point(typing.NamedTuple):
    x: float
    y: int


Old = collections.namedtuple("Old", ["a", "b"])


@dataclasses.dataclass
class Fit:
    slope: float
    count: int
    residuals: np.ndarray


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    mean: float
    inner: Point


@dataclasses.dataclass
class Derived:
    total: float
    double: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.double = 2 * self.total


@dataclasses.dataclass
class Seeded:
    total: float
    start: dataclasses.InitVar[int]

    def __post_init__(self, start):
        self.total += start


def same(one, other):
    """Tell whether two outputs are equal in types, order and values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)
    if isinstance(one, dict):
        return (
            list(one) == list(other)
            and all(same(a, b) for a, b in zip(one, other, strict=True))
            and all(same(one[key], other[key]) for key in one)
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return one == other


def roundtrip(value):
    """Take an output apart and put it together, through JSON."""
    tree = from_json(json.loads(json.dumps(describe(value).to_json())))
    return tree.rebuild(tree.flatten(value, learn=True))


# --- round trips ---


@for_each(
    "value",
    [
        1.5,
        -0.0,
        1e-320,
        7,
        -(2**53),
        int(2.0**300),
        np.float64(1.5),
        np.float32(0.1),
        np.float16(0.1),
        np.longdouble(1.5),
        np.int8(-128),
        np.uint8(255),
        np.int64(2**53),
        np.uint64(2**53),
        np.array(1.5),
        np.array([1.5, 2.5]),
        np.arange(6).reshape(2, 3),
        np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0)[::-2],
        np.arange(3, dtype=">f4"),
        np.arange(3, dtype=">i2"),
        [1.0, 2, np.float32(3)],
        (1.0, [2, (3.0,)]),
        {"mean": 1.5, "n": 7},
        {"b": 1.0, "a": {"d": [1], "c": (2.0,)}},
        {1: 1.0, True + 1: 2.0, None: 3.0, 0.5: 4.0, ("a", 1, (None, 2.5)): 5.0, "": 6.0, "ü": 7.0},
        {True: 1.0, False: 2.0},
        {np.int64(3): 1.0, np.str_("a"): 2.0, np.float32(0.1): 3.0, np.bool_(True): 4.0},
        {2**80: 1.0, 1e300: 2.0, -0.1: 3.0, inf: 4.0},
        collections.OrderedDict(b=1.0, a=2),
        collections.Counter(b=1, a=2),
        Point(1.0, 2),
        Old([1.0], {"a": 2}),
        Fit(0.5, 3, np.array([1.0, 2.0])),
        Frozen(mean=1.5, inner=Point(2.0, 3)),
        Derived(3.0),
        [Point(1.0, 2), Fit(1.0, 2, np.zeros((0, 3))), Point(3.0, 4)],
        [1.0, [], {}, (), np.zeros((0, 2))],
    ],
    ids=lambda value: repr(value)[:40],
)
def test_round_trip(value):
    """An answer would come back as another type: a float count, a list for an array, a dict for a Counter."""
    assert same(roundtrip(value), value)


def test_a_defaultdict_comes_back_as_a_dict():
    """A factory is code, which is no part of an answer: the dict alone comes back."""
    value = collections.defaultdict(list, a=1.0, b=2)
    assert same(roundtrip(value), {"a": 1.0, "b": 2})


leaves = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(np.float32),
    st.floats(allow_nan=False, allow_infinity=False).map(np.float64),
    st.integers(-128, 127).map(np.int8),
    st.integers(0, 2**53).map(np.uint64),
    st.builds(
        lambda shape, kind, seed: np.random.default_rng(seed).integers(0, 100, shape).astype(kind),
        st.lists(st.integers(0, 3), max_size=3).map(tuple),
        st.sampled_from(["<f8", "<f4", "<f2", "<i8", "<i2", "|u1", ">f8"]),
        st.integers(0, 100),
    ),
)
keys = st.recursive(
    st.one_of(
        st.text(max_size=4),
        st.integers(),
        st.none(),
        st.booleans(),
        st.floats(allow_nan=False),
        st.integers(0, 255).map(np.uint8),
    ),
    lambda inner: st.tuples(inner, inner),
    max_leaves=3,
)
nested = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4).map(collections.OrderedDict),
        st.builds(Old, inner, inner),
        st.builds(Fit, inner, inner, inner),
    ),
    max_leaves=12,
)


def holds_numbers(value):
    """Tell whether there is anything to release."""
    try:
        return bool(describe(value))
    except OutputError:
        return False


@given(nested.filter(holds_numbers))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_round_trip_of_any_nesting(value):
    """Some combination of containers would lose a type, a key, an order or a number."""
    tree = describe(value)
    assert from_json(json.loads(json.dumps(tree.to_json()))) == tree
    vector = tree.flatten(value)
    assert vector.dtype == np.float64
    assert vector.shape == (tree.size,) == tree.integers().shape
    assert same(roundtrip(value), value)


def reordered(value, chance):
    """Return the same output with every dict in another order."""
    if isinstance(value, dict):
        items = [(key, reordered(item, chance)) for key, item in value.items()]
        chance.shuffle(items)
        return type(value)(items)
    if type(value) in (list, tuple):
        return type(value)(reordered(item, chance) for item in value)
    return value


@given(nested.filter(holds_numbers), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_dicts_are_aligned_by_key_at_any_depth(value, chance):
    """Two counts would swap places between neighbours: a huge gap, or a released rank."""
    tree = describe(value)
    other = reordered(value, chance)
    vector = tree.flatten(other)
    assert np.array_equal(vector, tree.flatten(value))
    assert same(tree.rebuild(vector), value)


def test_the_order_of_the_private_dict_does_not_show():
    """Counter.most_common() order would release who has the most."""
    tree = describe(collections.Counter(b=0, a=0, c=0))
    private = collections.Counter(a=9, c=5, b=1)
    assert list(tree.rebuild(tree.flatten(private))) == ["b", "a", "c"]
    assert tree.rebuild(tree.flatten(private)) == private


def test_the_vector_is_a_copy():
    """The answer of a function that returns a view of its data would change later."""
    value = np.array([1.0, 2.0])
    vector = describe(value).flatten(value)
    value[0] = 99
    assert vector.tolist() == [1, 2]
    back = describe(value).rebuild(vector)
    vector[1] = 77
    assert back.tolist() == [1, 2]


def test_small_dtypes_are_widened_before_anything_else():
    """uint8(3) - uint8(5) would be 254 in the gap."""
    value = np.array([3, 5], dtype=np.uint8)
    vector = describe(value).flatten(value)
    assert (vector - vector[::-1]).tolist() == [-2, 2]
    scalar = describe(np.uint8(0))
    assert scalar.numbers(np.uint8(3)) - scalar.numbers(np.uint8(5)) == -2
    assert describe([np.int8(0)]).flatten([np.int8(-128)]).tolist() == [-128]


# --- the structure ---


@for_each(
    ("value", "tree"),
    [
        (1.5, ["float"]),
        (3, ["int"]),
        (np.float32(1), ["numpy", "<f4"]),
        (np.zeros((2, 3), "u1"), ["array", "|u1", [2, 3]]),
        ([1.0, 2], ["list", [["float"], ["int"]]]),
        ((1.0,), ["tuple", [["float"]]]),
        ({"a": 1.0, 2: 3}, ["dict", "dict", [["str", "a"], ["int", 2]], [["float"], ["int"]]]),
        (collections.Counter(a=1), ["dict", "Counter", [["str", "a"]], [["int"]]]),
    ],
)
def test_the_structure_is_pinned(value, tree):
    """Stored estimates contain this JSON: a change would make all of them unreadable."""
    assert describe(value).to_json() == tree
    assert from_json(tree).to_json() == tree


def test_the_structure_names_classes():
    """Two named tuples with the same fields would be taken for each other."""
    assert describe(Point(1.0, 2)).to_json()[0] == "namedtuple"
    assert describe(Point(1.0, 2)).to_json()[1].endswith(":Point")
    assert describe(Point(1.0, 2)).to_json()[2:] == [["x", "y"], [["float"], ["int"]]]
    assert describe(Derived(1.0)).to_json()[0] == "dataclass"
    assert describe(Derived(1.0)).to_json()[2:] == [["total"], [["float"]]]


def test_the_structure_holds_no_values():
    """The structure is public: it must not depend on the numbers."""
    assert describe({"a": 1.0, "b": [2, np.zeros(2)]}) == describe({"a": 9.0, "b": [-7, np.ones(2)]})


def test_integers_are_known_by_coordinate():
    """Integers would get continuous noise, or floats discrete noise."""
    tree = describe({"n": 3, "mean": 1.5, "counts": np.zeros(2, "u1"), "x": [np.float32(1), np.int8(1)]})
    assert tree.integers().tolist() == [True, False, True, True, False, True]
    assert tree.size == 6


@for_each("value", [[], (), {}, {"a": []}, np.zeros(0), [np.zeros((3, 0))], [[], ({},)]], ids=repr)
def test_an_output_without_numbers(value):
    """An empty answer would be released as if it had numbers."""
    with pytest.raises(OutputError, match="holds no numbers"):
        describe(value)


def test_an_output_that_contains_itself():
    """The library would recurse until Python gives up."""
    loop: list = [1.0]
    loop.append(loop)
    with pytest.raises(OutputError, match="contains itself"):
        describe(loop)
    knot: dict = {"a": 1.0}
    knot["b"] = (knot,)
    with pytest.raises(OutputError, match="contains itself"):
        describe(knot)


def test_the_same_part_twice_is_no_loop():
    """[a, a] would be refused as if it contained itself."""
    part = [1.0]
    assert roundtrip([part, part, {"x": part}]) == [[1.0], [1.0], {"x": [1.0]}]


def test_a_vector_of_the_wrong_length():
    """A mistake of a mechanism would be released as a shorter answer."""
    with pytest.raises(ValueError, match="1 numbers do not fill a structure of 2"):
        describe([1.0, 2.0]).rebuild(np.zeros(1))


# --- what is refused ---


class Color(enum.IntEnum):
    """Integers with names."""

    RED = 1


class Estimator:
    """An object with a method of scikit-learn's estimators."""

    def get_params(self):
        return {}


class Series:
    """An object with a method of pandas' series."""

    def to_numpy(self):
        return np.zeros(1)


class Listed(list):
    """A user's subclass of list."""


@for_each(
    ("value", "message"),
    [
        (True, r"a bool, .*int\(\.\.\.\) for a count.*Exponential\(responses"),
        (np.True_, r"bool, .*Exponential\(responses"),
        (np.array([True]), r"an array of bool, .*Exponential\(responses"),
        ("yes", r"a str, .*Exponential\(responses"),
        (b"yes", r"a bytes, .*Exponential\(responses"),
        (np.str_("yes"), r"Exponential\(responses"),
        (np.array(["yes"]), r"Exponential\(responses"),
        (None, "a NoneType, .*Return the answer"),
        (1j, "a complex, .*real and imaginary"),
        (np.complex128(1), "complex128, .*real and imaginary"),
        (np.array([1j]), "complex128, .*real and imaginary"),
        ((i for i in range(3)), "a generator, .*Return a list"),
        (map(abs, [1]), "a map, .*Return a list"),
        (iter([1]), "iterator, .*Return a list"),
        (zip([1], [2], strict=True), "a zip, .*Return a list"),
        (lambda x: x, r"a function, .*Bernstein\("),
        (np.polynomial.Polynomial([1, 2]), r"a Polynomial, .*Bernstein\("),
        (np.datetime64("2020-01-01"), "datetime64.*days or seconds"),
        (np.array([1], "m8[s]"), "timedelta64.*days or seconds"),
        (np.array([1.0], dtype=object), r"object, .*astype\(float\)"),
        (np.zeros(1, [("a", "f8")]), "an array of .*Return numbers"),
        (object(), "a object, .*Return numbers, arrays, frames"),
        ({1.0, 2.0}, "a set, .*Return numbers"),
        (range(3), "a range, .*Return numbers"),
        (decimal.Decimal("1.5"), "a Decimal, .*Return numbers"),
        (fractions.Fraction(1, 2), "a Fraction, .*Return numbers"),
        (Color.RED, "a Color, .*Return numbers"),
        (Listed([1.0]), "a Listed, .*Return numbers"),
        (Fit, r"a type, "),
        (Estimator(), "an? Estimator, .*coef_ and intercept_"),
        (Series(), r"a Series, .*to_numpy\(\)"),
    ],
    ids=lambda value: type(value).__name__,
)
@for_each("wrap", [lambda v: v, lambda v: {"a": [1.0, (v,)]}], ids=["bare", "nested"])
def test_what_cannot_be_released(value, message, wrap):
    """The user would not learn why, nor which mechanism or change would help."""
    with pytest.raises(OutputError, match=f"The function returns .*{message}"):
        describe(wrap(value))


def test_a_coroutine_cannot_be_released():
    """An answer that does not exist yet would be refused without saying so."""

    async def later():
        return 1.0

    waiting = later()
    with pytest.raises(OutputError, match=r"a coroutine, .*plain function"):
        describe(waiting)
    waiting.close()


@pytest.mark.parametrize("kind", [np.ma.MaskedArray, np.memmap, np.matrix])
def test_a_kind_of_array_is_refused_by_name(kind):
    """A message that an array cannot be released, and that an array should be returned, would confuse."""
    with pytest.raises(OutputError, match=kind.__name__):
        describe(np.zeros((2, 2)).view(kind))


@for_each("key", [b"a", frozenset([1]), np.datetime64("2020-01-01"), 1j, ("a", b"b"), Color.RED])
def test_keys_that_cannot_be_stored(key):
    """A structure that is not JSON would fail when it is stored."""
    with pytest.raises(OutputError, match=r"key of type \w+: keys must be strings, numbers, None, or tuples"):
        describe({key: 1.0})


def test_a_dataclass_that_cannot_be_made_again():
    """It would calibrate, and fail at the release, after the budget is spent."""
    try:
        tree = describe(Seeded(1.0, start=2))
    except OutputError:
        return  # refused in time
    assert tree.rebuild(tree.flatten(Seeded(1.0, start=2))).total == 3.0


# --- structures that change ---


@for_each(
    ("calibrated", "private"),
    [
        (1, 1.5),
        (1, np.float64(1)),
        (np.int8(1), 1.0),
        (1.0, True),
        (1, True),
        (1.0, np.True_),
        (1.0, None),
        (1.0, "1.0"),
        (1.0, 1j),
        (1.0, [1.0]),
        (1.0, np.array([1.0])),
        (1.0, decimal.Decimal(1)),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), [0.0, 0.0]),
        (np.zeros(2), 0.0),
        (np.zeros(2), np.zeros(2, dtype=bool)),
        (np.zeros(2), np.zeros(2, dtype=complex)),
        (np.zeros(2), np.array([0.0, 0.0], dtype=object)),
        (np.zeros(2), np.ma.array([0.0, 0.0], mask=[0, 1])),
        (np.zeros(2, dtype=int), np.zeros(2)),
        (np.zeros(()), np.zeros(1)),
        ([1.0], [1.0, 2.0]),
        ([1.0, 2.0], [1.0]),
        ([1.0], (1.0,)),
        ((1.0,), [1.0]),
        ([1.0], Listed([1.0])),
        ([1.0], np.array([1.0])),
        ([1.0], {"a": 1.0}),
        ([1.0], None),
        ([1.0, [2.0]], [1.0, [2.0, 3.0]]),
        ([1.0], ["x"]),
        ({"a": 1.0}, {"b": 1.0}),
        ({"a": 1.0}, {"a": 1.0, "b": 1.0}),
        ({"a": 1.0, "b": 1.0}, {"a": 1.0}),
        ({"a": 1.0}, {}),
        ({"a": 1.0}, [1.0]),
        ({"a": 1.0}, {"a": [1.0]}),
        ({1: 1.0}, {"1": 1.0}),
        ({"a": 1}, {"a": 1.5}),
        (Point(1.0, 2), (1.0, 2)),
        (Point(1.0, 2), Old(1.0, 2)),
        (Point(1.0, 2), Point(1.0, 2.5)),
        (Old([1.0], 1), Old([1.0, 2.0], 1)),
        (Fit(1.0, 2, np.zeros(2)), Fit(1.0, 2, np.zeros(3))),
        (Fit(1.0, 2, np.zeros(2)), Derived(1.0)),
        (Fit(1.0, 2, np.zeros(2)), {"slope": 1.0, "count": 2, "residuals": np.zeros(2)}),
    ],
    ids=repr,
)
def test_a_changed_structure_is_noticed(calibrated, private):
    """A shape, a key or a type that depends on the private data would be released with it."""
    with pytest.raises(StructureChanged):
        describe(calibrated).flatten(private)


def test_a_structure_change_carries_nothing():
    """The exception would carry the private output that caused it."""
    with pytest.raises(StructureChanged) as caught:
        describe({"a": 1.0}).flatten({"secret": 8675309})
    assert caught.value.args == ()
    assert caught.value.__cause__ is None


@for_each(
    ("calibrated", "private", "vector"),
    [
        (1.5, 3, [3]),
        (1.5, np.int8(3), [3]),
        (1.5, np.float32(3), [3]),
        (1.5, np.array(3.0), [3]),
        (np.float64(1), 3, [3]),
        (np.float32(1), 2.5, [2.5]),
        (1, np.int64(3), [3]),
        (np.uint8(1), 300, [300]),
        (np.zeros(2), np.array([1, 2]), [1, 2]),
        (np.zeros(2), np.array([1, 2], dtype=np.float32), [1, 2]),
        (np.zeros(2, dtype=int), np.array([1, 2], dtype=np.uint8), [1, 2]),
        ([1.0], [2], [2]),
        ({"a": 1.0}, collections.OrderedDict(a=2), [2]),
        (collections.Counter(a=1), {"a": 2}, [2]),
        ({1: 1.0}, {np.int64(1): 2.0}, [2]),
    ],
    ids=repr,
)
def test_what_is_the_same_structure(calibrated, private, vector):
    """sum([]) is an int and sum of floats a float: such an answer would be refused at random."""
    tree = describe(calibrated)
    assert tree.flatten(private).tolist() == vector
    assert type(tree.rebuild(tree.flatten(private))) is type(calibrated)


# --- numbers at the edges ---


def test_ints_stay_ints():
    """A count of people would come back as 41.99."""
    back = describe([1, 1, 1, 1]).rebuild(np.array([41.99, -0.4, 1e300, 2.5]))
    assert back == [42, 0, int(1e300), 2]
    assert {type(value) for value in back} == {int}


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_an_int_beyond_every_float_is_not_finite(value):
    """It would be an OverflowError inside the library that shows the private number."""
    assert math.isinf(describe(1).numbers(value))
    assert np.isinf(describe([1, 1.0]).flatten([value, 1.0]))[0]
    assert np.isinf(describe({"a": 1.5}).flatten({"a": value}))[0]


@given(
    values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=4),
    kind=st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8"]),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_noised_integers_saturate_and_never_wrap(values, kind):
    """A count with noise below zero would be released as 255."""
    ends = np.iinfo(kind)
    expected = [
        (ends.max if v > 0 else ends.min) if math.isinf(v) else min(max(round(v), ends.min), ends.max)
        for v in values
    ]
    tree = describe(np.zeros(len(values), dtype=kind))
    back = tree.rebuild(np.array(values))
    assert back.dtype == np.dtype(kind)
    assert back.tolist() == expected
    scalar = describe(np.zeros(1, dtype=kind)[0]).rebuild(np.array(values[:1]))
    assert isinstance(scalar, np.integer)
    assert int(scalar) == expected[0]


@for_each(
    ("kind", "value", "expected"),
    [
        ("u1", -1.0, 0),
        ("u1", 256.0, 255),
        ("i1", 200.0, 127),
        ("i8", 2.0**63, 2**63 - 1),
        ("i8", np.nextafter(2.0**63, 0), 2**63 - 1024),
        ("i8", -(2.0**63), -(2**63)),
        ("i8", -1e300, -(2**63)),
        ("u8", 2.0**64, 2**64 - 1),
        ("u8", np.nextafter(2.0**64, 0), 2**64 - 2048),
        ("u8", -5.0, 0),
    ],
)
def test_the_ends_of_the_integers(kind, value, expected):
    """2^63 is the first float that is no int64: it would come back as its opposite."""
    assert from_json(["array", np.dtype(kind).str, [1]]).rebuild(np.array([value])).tolist() == [expected]


def test_values_that_are_not_finite_are_passed_on():
    """Whether to refuse NaN is decided later, in one place: here it must not turn into a number."""
    vector = describe([1.0, 1.0, 1.0]).flatten([nan, inf, -inf])
    assert np.array_equal(vector, [nan, inf, -inf], equal_nan=True)


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no wider float here")
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v, 1.0]], ids=["bare", "nested"])
def test_a_long_double_beyond_every_float_gives_no_warning(wrap):
    """A warning about an overflow would show in a public log that the answer is huge."""
    huge = np.array([np.longdouble("1e4000")])
    assert np.isinf(describe(wrap(huge)).flatten(wrap(huge))[0])
    assert np.isinf(describe(wrap(huge[0])).flatten(wrap(huge[0]))[0])


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: {"a": x}, lambda x: (x, 1.0)])
def test_the_vector_of_a_nested_array_is_a_copy(wrap):
    """A function may return one array again and again: the first answer must not become the second."""
    value = np.array([1.0, 2.0])
    flat = describe(wrap(value)).flatten(wrap(value))
    value[:] = 9.0
    assert flat[:2].tolist() == [1.0, 2.0]
    assert flat.dtype == np.float64
    assert flat.shape == (describe(wrap(value)).size,)


def test_the_vector_of_a_series_is_a_copy():
    """A function may change a series or a frame and return it again: the first answer must not change."""
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, 2.0], index=["a", "b"])
    for value in (series, series.to_frame("x"), pd.DataFrame({"x": series, "n": [3, 4]})):
        tree = describe(value)
        expected = np.concatenate([column.to_numpy() for _, column in pd.DataFrame(value).items()]).tolist()
        first = tree.flatten(value)
        value.iloc[:] = 9
        assert first.tolist() == expected
        assert tree.flatten(value).tolist() == [9.0] * len(expected)


def test_an_index_that_changes_later_is_noticed():
    """Labels are published without noise, so those of every pair must be compared, not only the first."""
    pd = pytest.importorskip("pandas")
    seen = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}, index=["a", "b"])
    tree = describe(seen)
    tree.flatten(seen)
    assert tree.flatten(seen + 1).tolist() == [2.0, 3.0, 4.0, 5.0]
    others = (
        seen.set_axis(["a", "c"]),
        seen.set_axis(["x", "z"], axis=1),
        seen[["y", "x"]],
        seen.iloc[::-1],
        seen.rename_axis("who"),
        seen.astype({"x": bool}),
        seen.set_axis(pd.CategoricalIndex(["a", "b"])),
    )
    for other in others:
        with pytest.raises(StructureChanged):
            tree.flatten(other)
