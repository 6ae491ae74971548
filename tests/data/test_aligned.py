"""Tuples and dicts stay aligned record by record, and each part is converted by itself."""

import numpy as np
import pytest

from privatize import samplers
from privatize.data import records
from privatize.data.support import OneOf
from privatize.errors import DataError
from tests.cases import for_each
from tests.data.conversions import COLUMNS, TEXT, alone, fine, inf, nan, objects
from tests.data.datasets import sampled


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


def test_dicts_of_arrays_are_converted_column_by_column():
    """A dict of columns is a table like any other."""
    P = samplers.table(COLUMNS, frame="dict")
    drawn = drawn_by(P)
    data = {
        "age": np.array([nan, 200.0, -inf, 30.4]),
        "pay": np.array([-1, 2**60, 0, 5]),
        "sex": objects(["M", TEXT, None, [1]]),
        "day": np.array(["NaT", "1999-01-01", "9999-01-01", "2022-01-01"], dtype="M8[s]"),
        "kg": np.array([nan, 200.0, -inf, 50.5]),
        "kids": np.array([nan, 200.0, -inf, 3.0]),
        "pet": objects(["cat", TEXT, None, "dogs"]),
        "ok": np.array([True, False, True, False]),
    }
    records.match(drawn, records.describe(data), P.support)
    with np.errstate(all="ignore"):
        made = alone(data, drawn, P.support)
    assert records.describe(made) == records.describe(drawn)
    for name, values in made.items():
        assert all(fine(value, P.support[name]) for value in values.tolist())


def test_tuples_are_converted_part_by_part():
    """Features and labels have supports of their own."""
    drawn = (np.zeros((2, 2)), np.array(["no", "yes"]))
    support = ((0.0, 1.0), OneOf(("no", "yes"), unknown="no"))
    made = alone((np.array([[nan, 2], [0.5, -inf]]), objects([None, "yes"])), drawn, support)
    assert made[0].tolist() == [[0.5, 1.0], [0.5, 0.0]]
    assert made[1].tolist() == ["no", "yes"]


def convert(data, schema, support=None):
    """Convert private records, given the schema of what P draws."""
    return records.convert(data, sampled(schema), support)


@pytest.mark.parametrize(
    "data", [([1, 2], [1, 2, 3]), (np.zeros((3, 2)), np.zeros(2)), (([1], [2, 3]), [1]), ([], [1])]
)
def test_misaligned_parts(data):
    """Labels would belong to other people's features."""
    with pytest.raises(DataError, match=r"have \[\d, \d\] records: aligned containers must have one entry"):
        records.count(data)


F8, F4, I8, I4, I2, U1, U8, B1 = (
    ["array", kind, []] for kind in ("<f8", "<f4", "<i8", "<i4", "<i2", "|u1", "<u8", "|b1")
)


def test_tuples_are_cast_part_by_part():
    """The labels would be cast to the features' dtype."""
    drawn = ["tuple", ["array", "<f4", [2]], ["list"], I8]
    features, names, labels = convert((np.ones((2, 2)), ["a", "b"], [1.0, 2.0]), drawn, None)
    assert features.dtype == np.float32
    assert names == ["a", "b"]
    assert labels == [1, 2]
    assert {type(label) for label in labels} == {int}


ALIGNED = [
    (np.zeros((3, 2)), np.zeros(3, dtype=int)),
    (np.zeros((3, 2)), np.zeros(3)),
    (np.zeros((3, 2)), [0, 1, 1]),
    (np.zeros((3, 2)),),
    {"X": np.zeros(3), "y": np.zeros(3)},
    {"y": np.zeros(3), "X": np.zeros(3)},
    {"X": np.zeros(3), "z": np.zeros(3)},
    {},
    (),
]


@for_each("data", ALIGNED)
def test_containers_of_the_same_kind_as_ps_have_its_schema(data):
    """Data that does not fit would be let through, since schemas are not compared then."""
    for drawn in ALIGNED:
        if records.is_same_kind(data, drawn):
            assert records.describe(data) == records.describe(drawn)
    plain = bool(data) and all(
        type(part) is np.ndarray for part in (data.values() if type(data) is dict else data)
    )
    assert records.is_same_kind(data, data) == plain
