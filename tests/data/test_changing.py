"""Conversion changes records that P does not draw, and it is known which, in every container."""

import datetime as dt

import numpy as np
import pytest
from scipy import sparse

from privatize import samplers
from privatize.data.changing import MOST_COLUMNS, changes, kinds_of
from privatize.data.support import Maybe, OneOf
from tests.cases import for_each

COLUMNS = {
    "age": samplers.integers(0, 120),
    "income": samplers.with_missing(samplers.uniform(0, 1000), 0.1),
    "region": samplers.categorical(["East", "West"]),
    "joined": samplers.dates("2020-01-01", "2020-12-31"),
    "member": samplers.boolean(0.5),
}
# One record that fits, and then one for each thing that can be wrong.
RECORDS = {
    "age": [31, 430, None, 62, -5, 20],
    "income": [10.0, None, 2000.0, 500.0, 0.0, -1.0],
    "region": ["East", "East ", None, "West", "north", "West"],
    "joined": [dt.date(2020, 5, 1), dt.date(2019, 1, 1), None, dt.date(2020, 12, 31), dt.date(2021, 1, 1),
               dt.date(2020, 1, 1)],
    "member": [True, None, False, True, True, False],
}  # fmt: skip
EXPECTED = {
    "age": (("clipped", "filled"), [0, 1, 2, 0, 1, 0]),
    "income": (("clipped",), [0, 0, 1, 0, 0, 1]),
    "region": (("recoded", "filled"), [0, 1, 2, 0, 1, 0]),
    "joined": (("clipped", "filled"), [0, 1, 2, 0, 1, 0]),
    "member": (("recoded", "filled"), [0, 2, 0, 0, 0, 0]),
}


def frame(library):
    """Return the records in a container."""
    if library == "records":
        return [dict(zip(RECORDS, row, strict=True)) for row in zip(*RECORDS.values(), strict=True)]
    if library == "dict":
        plain = RECORDS | {"age": [np.nan if age is None else age for age in RECORDS["age"]]}
        made = {name: np.array(values, dtype=object) for name, values in plain.items()}
        made |= {name: np.array(plain[name], dtype=float) for name in ("age", "income")}
        return made | {"joined": np.array(RECORDS["joined"], dtype="M8[D]")}
    if library == "polars":
        return pytest.importorskip("polars").DataFrame(RECORDS)
    if library == "pyarrow":
        return pytest.importorskip("pyarrow").table(RECORDS)
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(RECORDS | {"joined": pandas.to_datetime(RECORDS["joined"])}).astype(
        {"member": "boolean"}
    )


def changed(data, sampler):
    """Return what conversion does to each record, by column."""
    with np.errstate(all="ignore"):
        found = changes(data, sampler.support)
    return {column.name: (column.kinds, column.codes.tolist()) for column in found}


@for_each("library", ["pandas", "polars", "pyarrow", "dict", "records"])
def test_every_container_of_a_table(library):
    """A user with another kind of frame would be told that nothing was changed."""
    assert changed(frame(library), samplers.table(**COLUMNS, frame=library)) == EXPECTED


@for_each("library", ["pandas", "polars"])
def test_one_column_of_a_table(library):
    """A user whose data is a series would be told that nothing was changed."""
    whole = samplers.table(**COLUMNS, frame=library)
    for name, expected in EXPECTED.items():
        assert changed(frame(library)[name], whole[name]) == {"value": expected}


@for_each("library", ["pandas", "polars", "pyarrow", "dict", "records"])
def test_what_p_draws_is_not_changed(library):
    """A user whose data fits P would be sent to look for mistakes that are not there."""
    sampler = samplers.table(**COLUMNS, frame=library)
    drawn = samplers.draw(sampler, 300, np.random.default_rng(1))
    assert all(not any(codes) for _, codes in changed(drawn, sampler).values())


UNIT = samplers.uniform(0, 1)
BOTH = ("clipped", "filled")


@for_each(
    "data, sampler, expected",
    [
        (np.array([0.5, 2, np.nan, -1]), UNIT, {"value": (BOTH, [0, 1, 2, 1])}),
        ([0.5, 2, None, -1], UNIT, {"value": (BOTH, [0, 1, 2, 1])}),
        ([True, 1.5], UNIT, {"value": (BOTH, [0, 1])}),
        (np.array([0, 7, 1]), samplers.choice([0, 1]), {"value": (("recoded", "filled"), [0, 1, 0])}),
        (
            np.array([[0.5, 2.0], [np.nan, 0.5]]),
            samplers.uniform(0, 1, size=2),
            {"column 0": (BOTH, [0, 2]), "column 1": (BOTH, [1, 0])},
        ),
        (
            [[0.5, 2.0], [None, 0.5]],
            samplers.uniform(0, 1, size=2),
            {"column 0": (BOTH, [0, 2]), "column 1": (BOTH, [1, 0])},
        ),
        (
            (np.array([0.5, 2.0]), np.array(["a", "c"])),
            samplers.labelled(UNIT, samplers.choice(["a", "b"])),
            {"part 1": (BOTH, [0, 1]), "part 2": (("recoded", "filled"), [0, 1])},
        ),
        (np.full((2, 3, 3), 0.5), samplers.uniform(0, 1, size=(3, 3)), {"value": (BOTH, [0, 0])}),
        (np.array([0.5, 2.0]), samplers.normal(0, 1), {}),
        (
            np.array([-0.5, 2.0]),
            samplers.uniform(0, 1).map(lambda x: x, support=(0.0, np.inf)),
            {"value": (BOTH, [1, 0])},
        ),
    ],
)
def test_arrays_and_lists(data, sampler, expected):
    """A user of arrays would be told something else than what happens to the records."""
    assert changed(data, sampler) == expected


def test_wide_arrays_count_as_one_column():
    """Noise for a thousand pixels would hide everything: a record counts once, whatever its number."""
    wide = np.full((3, MOST_COLUMNS + 1), 0.5)
    wide[1, 4], wide[1, 5], wide[2, 6] = 7.0, np.nan, 7.0
    sampler = samplers.uniform(0, 1, size=MOST_COLUMNS + 1)
    assert changed(wide, sampler) == {"value": (BOTH, [0, 2, 1])}
    rows = sampler.map(sparse.csr_array, support=(0.0, 1.0))
    assert changed(sparse.csr_array(np.nan_to_num(wide, nan=3.0)), rows) == {"value": (BOTH, [0, 1, 1])}
    torch = pytest.importorskip("torch")
    assert changed(torch.from_numpy(wide), sampler) == {"value": (BOTH, [0, 2, 1])}


def test_an_array_for_a_frame():
    """A frame whose P draws arrays is clipped, too, and its own names are shown."""
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame({"a": [0.5, 2.0], "b": [np.nan, 0.5]})
    assert changed(data, samplers.uniform(0, 1, size=2)) == {"a": (BOTH, [0, 1]), "b": (BOTH, [2, 0])}


def test_an_index_that_p_draws():
    """An index is a part of the records, and is clipped like a column."""
    pandas = pytest.importorskip("pandas")
    law = samplers.table(age=samplers.integers(0, 9), visit=samplers.integers(0, 5))
    indexed = law.map(lambda d: d.set_index("visit"), support=law.support)
    data = pandas.DataFrame({"age": [1, 12]}, index=pandas.Index([7, 3], name="visit"))
    assert changed(data, indexed) == {"visit": (BOTH, [1, 0]), "age": (BOTH, [0, 1])}


@for_each(
    "dtype, values, fixed", [("boolean", [True, None], [0, 1]), ("Int64", [2**53 + 1, None], [2**53, 5])]
)
def test_a_missing_value_changes_no_other_record(dtype, values, fixed):
    """One record would move all counts, and the noise is for two: the answer would give it away."""
    pandas = pytest.importorskip("pandas")
    law = samplers.table(flag=samplers.choice(fixed))
    found = []
    for last in values:
        column = pandas.array([values[0]] * 5 + [last], dtype=dtype)
        found.append(changed(pandas.DataFrame({"flag": column}), law)["flag"][1])
    assert found[0][:5] == found[1][:5]
    assert found[1][5] == 2


def test_rounding_is_no_change():
    """Ages with a fraction, and times where P draws days, are cast and not counted."""
    law = samplers.dates("2020-01-01", "2020-12-31")
    noon = np.array(["2020-12-31T12:00"], dtype="M8[s]")
    assert changed(noon, law) == {"value": (BOTH, [0])}
    assert changed(np.array([31.5]), samplers.integers(0, 120)) == {"value": (BOTH, [0])}


def test_kinds():
    """The sensitivity follows from these, so it must follow from P alone."""
    assert kinds_of((0, 1)) == BOTH
    assert kinds_of(Maybe((0, 1))) == ("clipped",)
    assert kinds_of(OneOf(("a",), unknown="a")) == ("recoded", "filled")
    assert kinds_of(Maybe(OneOf(("a",), unknown="a"))) == ("recoded",)
    assert kinds_of(None) == kinds_of(Maybe(None)) == ()
