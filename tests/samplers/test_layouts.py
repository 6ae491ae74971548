"""Records of every container are taken apart into columns, and put together again."""

import numpy as np
import pytest

from privatize import samplers as s
from privatize.data import records
from privatize.errors import SamplerError
from privatize.samplers.layouts import layout_of
from tests.cases import for_each


def labels(X, rng):
    return (X["a"] > rng.random(len(X))).to_numpy().astype(int)


COLUMNS = {
    "a": s.uniform(0, 1),
    "i": s.integers(0, 9),
    "f": s.boolean(0.3),
    "c": s.categorical(["x", "y"]),
    "t": s.with_missing(s.choice(["p", "qq"]), 0.3),
    "d": s.dates("2020-01-01", "2020-12-31"),
    "m": s.with_missing(s.integers(0, 5), 0.2),
}
TABLES = [s.table(COLUMNS, frame=frame) for frame in ("pandas", "polars", "pyarrow", "dict", "records")]
WITHIN = [
    *TABLES,
    *(table[["c", "a"]] for table in TABLES),
    *(table["i"] for table in TABLES),
    s.labelled(TABLES[0], "f"),
    s.uniform(0, 1),
    s.boolean(),
    s.with_missing(s.choice(["p", "q"]), 0.5),
    s.dates("2020-01-01", "2020-12-31"),
    s.uniform([0, 0], [1, 5]),
    s.integers(0, 9, size=(2, 2)),
    s.labelled(s.uniform(0, 1, size=2), s.choice([0, 1])),
    s.labelled(s.uniform(0, 1), s.boolean()),
    s.labelled(s.table(a=s.uniform(0, 1)), labels, support=[0, 1]),
    s.labelled(s.table(a=s.uniform(0, 1)), s.uniform(0, 1)),
    s.blobs([[0, 0], [1, 2]], low=-1, high=2),
]


@for_each("within", WITHIN)
def test_columns_of_drawn_records_make_records_of_the_same_kind(within):
    """The learned P would draw another container, or other dtypes, than the data has."""
    layout = layout_of(within)
    columns = layout.columns(20, np.random.default_rng(1), layout.names)
    assert list(columns) == layout.names == list(layout.supports)
    made = layout.put(columns)
    drawn = within.draw(20, np.random.default_rng(2))
    assert records.describe(made) == records.describe(drawn)
    assert records.alike(made, drawn)
    empty = layout.columns(0, np.random.default_rng(1), layout.names)
    assert records.count(layout.put(empty)) == 0


def test_columns_are_named_as_descriptions_name_them():
    """A user could not tell how to name the columns that are learned together."""
    pair = s.labelled(s.uniform(0, 1, size=2), s.boolean())
    assert layout_of(pair).names == [row.name for row in pair.describe(10).rows] == ["X[0]", "X[1]", "y"]
    assert layout_of(s.uniform(0, 1, size=2)).names == ["[0]", "[1]"]
    assert layout_of(s.uniform(0, 1)).names == ["value"]


@for_each(
    "within, words",
    [
        (s.uniform(0, 1).fixed(size=5), "Leave out"),
        (s.table(a=s.uniform(0, 1)).map(lambda frame: frame), "must be one of"),
        (s.labelled(s.table(y=s.uniform(0, 1)), s.boolean()), "their name"),
        (s.from_function(lambda n, rng: list(rng.random(n))), "must be one of"),
        ("uniform", "must be one of"),
    ],
)
def test_what_has_no_columns_is_refused(within, words):
    """The error would come from deep inside, with no remedy."""
    with pytest.raises(SamplerError, match=words):
        layout_of(within)
