"""Data is split into columns that can be compared, whatever its container and types."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from privatize import samplers
from privatize.data import records
from privatize.data.columns import Column
from privatize.data.parts import edited
from privatize.errors import DataError
from privatize.identity.reachable import is_private
from tests.cases import for_each
from tests.data.conversions import TEXT, Loud, private

RNG = np.random.default_rng(7)
PUBLIC = RNG.normal(size=(40, 2))


@for_each(
    ("public", "data"),
    [
        (PUBLIC, PUBLIC),
        (PUBLIC, PUBLIC.copy()),
        (PUBLIC, PUBLIC.tolist()),
        (PUBLIC, PUBLIC[::-1]),
        (PUBLIC, PUBLIC[:39]),
        (PUBLIC, RNG.permutation(PUBLIC)),
        (PUBLIC, {"a": PUBLIC[:, 0], "b": PUBLIC[:, 1]}),
        (PUBLIC, (PUBLIC[:, 0], PUBLIC[:, 1].tolist())),
        (PUBLIC, np.column_stack([PUBLIC, np.ones(40)])),
        (PUBLIC[:, 0], PUBLIC),
        (PUBLIC, sparse.csr_array(PUBLIC)),
        (PUBLIC.astype("f4"), PUBLIC.astype("f4").astype("f8")),
        (np.arange(40), np.arange(40.0)),
        (PUBLIC, PUBLIC * 1.1),
    ],
)
def test_bootstrapping_the_private_data_is_refused(public, data):
    """P would be made of the very records that the answer is to hide."""
    assert is_private(samplers.bootstrap(public), data)


def test_bootstrapping_a_rounded_copy_is_refused():
    """The same records in single precision are the same records."""
    assert is_private(samplers.bootstrap(PUBLIC[:, 0]), PUBLIC[:, 0].astype("f4"))


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.bootstrap(PUBLIC).fixed(size=5),
        samplers.bootstrap(PUBLIC).map(np.abs),
        samplers.bootstrap(PUBLIC, smooth=0.1),
        samplers.bootstrap(PUBLIC).clip(-1, 1),
    ],
)
def test_a_bootstrap_inside_another_sampler_is_found(sampler):
    """Private records stay private, whatever a sampler does to them afterwards."""
    with pytest.raises(DataError, match="bootstraps"):
        private(sampler)(PUBLIC.copy())


@pytest.mark.parametrize(
    ("public", "data"),
    [
        (RNG.integers(0, 2, 50), RNG.integers(0, 2, 50)),
        (np.repeat([0, 1], 25), RNG.permutation(np.repeat([0, 1], 25))),
        (PUBLIC, RNG.normal(size=(40, 2))),
        (np.array(["a", "b"] * 20), RNG.permutation(["a", "b"] * 20)),
    ],
)
def test_other_data_is_not_refused(public, data):
    """Data with few different values resembles public data of the same kind by accident."""
    assert not is_private(samplers.bootstrap(public), data)


def test_a_constant_column_is_no_evidence():
    """A constant column, such as an intercept, is in many datasets: none of them may be refused for it."""
    data = np.column_stack([np.ones(40), RNG.normal(size=40)])
    assert not is_private(samplers.bootstrap(np.ones(40)), data)


@pytest.mark.parametrize("data", [[10**400, 1.5, 2], [[1], [2, 3], 4], [None, TEXT, 1.0], [Loud(), 1.0, 2.0]])
def test_odd_private_lists_are_compared_without_an_error(data):
    """The comparison must not fail on a private record."""
    assert not is_private(samplers.bootstrap([1.0, 2.0, 3.0]), data)


ROWS = {"a": [1.5, 2.5, 3.5], "k": [1, 2, 3], "s": ["x", "y", "x"]}
DAYS = np.array(["2020-01-01", "2020-03-01", "NaT"], dtype="M8[D]")
DATASETS = {
    "1-d": np.array([1.0, np.nan, 3.0]),
    "2-d": np.arange(6).reshape(3, 2),
    "strings": np.array(["x", "y", "x"]),
    "dates": DAYS,
    "pair": (np.zeros((3, 2)), np.array([0, 1, 1])),
    "three": (np.zeros(3), np.ones(3), np.ones(3)),
    "dict": {"a": np.array([1.0, 2.0]), "s": np.array(["x", "y"])},
    "pandas": pd.DataFrame(ROWS | {"d": DAYS, "c": pd.Categorical(["u", None, "v"])}),
    "nullable": pd.DataFrame({"i": pd.array([1, None, 3], dtype="Int64")}),
    "index": pd.DataFrame(ROWS, index=["p", "q", "r"]),
    "series": pd.Series([1, 2, 3], name="k"),
    "polars": pl.DataFrame(ROWS | {"n": [None, 2, 3]}),
    "polars series": pl.Series("k", [1, 2, 3]),
    "pyarrow": pa.table(ROWS | {"n": [None, 2, 3]}),
    "records": [{"a": 1, "s": "x"}, {"a": None, "s": "y"}],
    "list": [1.5, 2.5],
}


def copied(label, column, support):
    """Return the same column as another object."""
    return Column(column.values.copy(), column.missing, column.categories)


@for_each("name", DATASETS)
def test_the_container_stays(name):
    """A changed P would draw other dtypes than P, and every call under it would be refused."""
    data = DATASETS[name]
    made = edited(data, copied)
    assert records.equal(made, data)
    assert records.describe(made) == records.describe(data)
    assert edited(data, lambda label, column, support: column) is not None


@for_each(
    ("name", "labels"),
    [
        ("1-d", ["value"]),
        ("pair", ["X", "y"]),
        ("three", ["part 0", "part 1", "part 2"]),
        ("pandas", ["a", "k", "s", "d", "c"]),
        ("series", ["k"]),
        ("records", ["a", "s"]),
        ("list", ["value"]),
    ],
)
def test_columns_have_the_names_that_people_know(name, labels):
    """A warning about a column could not be understood, or a change would be made to another column."""
    seen = []
    edited(DATASETS[name], lambda label, column, support: seen.append(label) or column)
    assert seen == labels


def test_each_column_gets_its_own_support():
    """A number would be clipped to the bounds of another column, and leave P's support."""
    seen = {}

    def note(label, column, support):
        seen[label] = support
        return column

    edited(DATASETS["pandas"], note, {"a": (0, 5), "k": (1, 3)})
    edited(DATASETS["pair"], note, ((0, 1), None))
    assert seen == {"a": (0, 5), "k": (1, 3), "s": None, "d": None, "c": None, "X": (0, 1), "y": None}


def test_values_and_missing_values_are_put_back():
    """More missing values would be announced, and none drawn."""

    def blank(label, column, support):
        values = np.where([True, False, False], column.values[1], column.values)
        return Column(values, np.array([False, False, True]))

    numbers = {"a": [1.5, 2.5, 3.5], "s": ["x", "y", "x"]}
    for data in (pd.DataFrame(numbers), pl.DataFrame(numbers), pa.table(numbers)):
        made = pl.DataFrame(edited(data, blank)) if not isinstance(data, pa.Table) else edited(data, blank)
        rows = made.to_pylist() if isinstance(data, pa.Table) else made.to_dicts()
        assert [row["a"] for row in rows[:2]] == [2.5, 2.5]
        assert [row["s"] for row in rows] == ["y", "y", None]
        assert rows[2]["a"] is None or np.isnan(rows[2]["a"])
    assert edited([1, 2, 3], blank) == [2, 2, None]


def test_what_has_no_columns_stays_as_it_is():
    """A P of sparse matrices or of objects could have no family at all."""
    odd = np.array([(1, 2.0)], dtype=[("a", int), ("b", float)])
    for data in (sparse.csr_matrix(np.eye(3)), odd):
        assert edited(data, copied) is data
    assert edited([], copied) == []


def test_values_of_a_list_keep_their_types_whatever_the_others_are():
    """A record would be changed in one way in a small draw, and in another in a large one."""
    seen = []
    for data in ([1], [1, 2.5], [1, "a", None, np.nan]):
        edited(data, lambda label, column, support: seen.append(column.values.dtype.kind) or column)
    assert seen == ["O", "O", "O"]
