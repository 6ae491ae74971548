"""Frames of every library are converted column by column and row by row, and share nothing."""

import copy

import numpy as np
import pytest

from privatize import samplers
from privatize.data import frames, records
from tests.cases import for_each
from tests.data.drawn_frames import COLUMNS, EMPTY, LIBRARIES, PAIRS, ZONE, pd, pl


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


def converted(data, sampler, seed=0):
    """Convert data to a sampler's dtypes and support."""
    return records.convert(data, drawn_by(sampler, seed), sampler.support)


@for_each("seed", range(6))
@for_each("container", [list, lambda v: np.array(v, dtype=object), np.array], ids=["list", "O", "U"])
def test_a_drawn_series_does_not_truncate_the_strings_of_an_array(seed, container):
    """Two drawn strings may happen to be short: private strings must not be cut to their width."""
    P = samplers.table(c=samplers.choice(["aa", "b", "longest"]))["c"]
    made = converted(container(["aa", "longest", "zz", "b"]), P, seed)
    assert list(made) == ["aa", "longest", "aa", "b"]


def test_takes_lists_with_missing_strings():
    """A drawn 1-D array becomes a list where the private data is one, with missing values too."""
    P = samplers.with_missing(samplers.choice(["a", "b"]), 0.5)
    data = ["a", None, "zz"]
    records.match(drawn_by(P), records.describe(data), P.support)
    assert converted(data, P) == ["a", None, "a"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_neighbour_differs_in_one_row(library):
    """Neighbours must differ in one record and nothing else: not in index, dtypes or categories."""
    frame = samplers.table(COLUMNS, frame=library).draw(6, np.random.default_rng(3))
    other = records.neighbour(frame, 2, 5)
    first = records.head(frame, 5)
    assert records.describe(other) == records.describe(first) == records.describe(frame)
    for at in range(5):
        same = records.equal(records.record(other, at), records.record(first, at))
        assert same == (at != 2)
    assert records.equal(records.record(other, 2), records.record(frame, 5))
    if library == "pandas":
        assert other.index.identical(first.index)


@pytest.mark.parametrize("clip", [True, False])
def test_the_callers_frame_is_neither_changed_nor_shared(clip):
    """A function that fills missing values in place would change the caller's data."""
    P = samplers.table(COLUMNS)
    data = P.draw(5, np.random.default_rng(2))
    before = copy.deepcopy(data)
    made = records.convert(data, drawn_by(P), P.support if clip else None)
    for name in made.columns:
        values = made[name].iloc[::-1].tolist()
        for at in range(len(made)):
            made.iat[at, made.columns.get_loc(name)] = values[at]
        raw = made[name].array
        raw[0] = raw[1]
    made.index = made.index[::-1]
    made.columns = [f"{name}!" for name in made.columns]
    assert data.equals(before)
    assert data.index.identical(before.index)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_series_that_is_converted_by_an_array_shares_nothing(library):
    """A function that changes its series would change the private one."""
    data = pd.Series([0.1, 0.2]) if library == "pandas" else pl.Series([0.1, 0.2])
    made = records.convert(data, np.zeros(2), None)
    made[0] = 5.0
    assert data.to_list() == [0.1, 0.2]


def test_a_frame_made_of_an_array_is_what_the_private_one_becomes():
    """Calibration and release must run on the same kind of data."""
    for data in (EMPTY[name][1] for name in ("DataFrame", "integer names", "two levels of names", "Table")):
        drawn = np.zeros((2, 2))
        matched = records.match(drawn, records.describe(data), PAIRS.support)
        made = records.convert(data, drawn, PAIRS.support)
        assert records.describe(matched) == records.describe(made)
        if hasattr(made, "iloc"):
            assert made.columns.identical(matched.columns)


def test_wide_frames_are_described_column_by_column():
    """The schema of a wide frame names every column's own dtype and time zone."""
    data = pd.DataFrame(
        {
            "a": [1.0],
            "day": pd.to_datetime(["2020-01-01"]),
            "b": [1],
            "seen": pd.to_datetime(["2020-01-01"]).tz_localize(ZONE),
            "c": [True],
            "sex": pd.Categorical(["F"]),
        }
    )
    found = frames.describe(data).columns
    assert [entry[0] for entry in found] == list(data.columns)
    assert [entry[2] for entry in found] == ["float", "date", "int", "date", "bool", "category"]
    assert [entry[3] for entry in found] == [None, None, None, ZONE, None, None]
    for entry, (_, column) in zip(found, data.items(), strict=True):
        assert entry[1:] == frames.describe(column).columns[0][1:]


def test_bounds_of_several_numbers_are_not_for_a_column():
    """Two bounds for two records would clip each to its own, so a value would depend on its position."""
    ends = (np.array([0.0, 1.0]), np.array([2.0, 3.0]))
    data = pd.Series([5.0, 6.0], name="x")
    for own, support in ((data, ends), (data.to_frame(), {"x": ends})):
        with pytest.raises(ValueError, match="one bound for all"):
            records.convert(own, own, support)
