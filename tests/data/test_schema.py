"""A schema describes the kind of the records, and shows neither a value nor how many there are."""

import json

import numpy as np
import pytest

from privatize.data import records
from tests.data.datasets import NAMES, make, sampled
from tests.data.drawn_frames import TEXT, pa, pd, pl


def test_schemas_hold_no_category():
    """Categories are taken from the data, and schemas are stored."""
    for data in (
        pd.DataFrame({"c": pd.Categorical([TEXT])}),
        pl.DataFrame({"c": pl.Series([TEXT], dtype=pl.Enum([TEXT]))}),
        pl.DataFrame({"c": [{"v": 1}]}),
        pa.table({"c": pa.array([TEXT]).dictionary_encode()}),
        pd.DataFrame({"x": [1]}, index=pd.CategoricalIndex([TEXT])),
        pd.DataFrame({"x": [1]}, index=pd.MultiIndex.from_arrays([pd.Categorical([TEXT]), [1]])),
    ):
        assert TEXT not in repr(records.describe(data))


def convert(data, schema, support=None):
    """Convert private records, given the schema of what P draws."""
    return records.convert(data, sampled(schema), support)


def match(schema, drawn):
    """Refuse private data that P could not have drawn, given the schema of what P draws."""
    records.match(sampled(drawn), schema)


every_container = pytest.mark.parametrize("name", NAMES)


@every_container
def test_a_schema_is_json(name):
    """A schema could not be stored and compared with the next call's."""
    schema = records.describe(make(name)).to_json()
    assert json.loads(json.dumps(schema)) == schema


@every_container
def test_a_schema_names_no_value_and_no_size(name):
    """A schema is public: it must be the same for any number of records."""
    data = make(name)
    schema = records.describe(data)
    assert records.describe(records.head(data, 2)) == schema
    assert records.describe(records.take(data, np.array([3, 3, 3, 3, 1, 0]))) == schema


def test_schemas():
    """Another container, dtype or shape would share an estimate with this one."""
    assert records.describe(np.zeros((4, 2, 3))).to_json() == ["array", "<f8", [2, 3]]
    assert records.describe([1, "a"]).to_json() == ["list"]
    assert records.describe((np.zeros(3, "i2"), [1, 2, 3])).to_json() == [
        "tuple",
        ["array", "<i2", []],
        ["list"],
    ]
    assert (
        len({json.dumps(records.describe(make(name)).to_json()) for name in NAMES if "list" not in name})
        >= 15
    )


@every_container
def test_a_stored_schema_works_like_a_fresh_one(name):
    """Data would be refused by its own schema, once that was stored."""
    data = make(name)
    stored = json.loads(json.dumps(records.describe(data).to_json()))
    match(records.describe(data), stored)
    assert records.equal(convert(data, stored, None), data)
