"""Columns are read as arrays without losing a type, a missing value or a category."""

import numpy as np
import pytest

from privatize import samplers
from privatize.data import columns, frames, records
from privatize.data.support import Maybe
from tests.data.drawn_frames import LAYOUTS, TEXT, nan, pd, pl


def test_missing_strings_can_be_compared():
    """Calibration compares datasets to see whether a function changes them; pandas' NA must not stop it."""
    one = pd.DataFrame({"s": pd.array(["q", None], dtype="string")})
    other = pd.DataFrame({"s": pd.array([None, "q"], dtype="string")})
    assert records.equal(one, one.copy())
    assert not records.equal(one, other)


def test_a_missing_code_is_not_the_code_zero():
    """What fills the gap of a nullable column would be taken for a person's answer."""
    P = samplers.table(code=samplers.categorical([0, 1], unknown=1))
    data = pd.DataFrame({"code": pd.array([0, None, 1], dtype="Int64")})
    assert records.convert(data, P.draw(3, np.random.default_rng(0)), P.support)["code"].tolist() == [0, 1, 1]


def test_a_fill_value_is_not_cached():
    """A private number would stay in a cache of the library, as a part of a dtype."""
    frame = pd.DataFrame({"x": pd.arrays.SparseArray([31415926.5] * 4, fill_value=31415926.5)})
    records.describe(frame)
    assert not any("31415926" in repr(dtype) for dtype in columns._known_kinds)


def test_numbers_of_frames_leave_out_other_columns():
    """Booleans and labels must not be released as numbers, whatever arrays pandas stores them in."""
    for data in (LAYOUTS["mixed"](), LAYOUTS["strings"](), LAYOUTS["nullable"](), LAYOUTS["one by one"]()):
        wanted = [column for _, column in data.items() if columns.kind_of(column) in ("int", "float")]
        found = frames.numbers(data)
        assert len(found) == len(wanted)
        for values, column in zip(found, wanted, strict=True):
            assert np.array_equal(values, column.to_numpy(dtype=np.float64, na_value=nan), equal_nan=True)
    assert frames.numbers(LAYOUTS["booleans"]()) == []


def test_metadata_of_a_dtype_is_not_cached():
    """The metadata of a numpy dtype can be anything: the private data's must not stay in the process."""
    dtype = np.dtype("f8", metadata={"note": TEXT})
    data = pd.DataFrame({"a": np.array([1.0, 2.0]).astype(dtype)}, copy=False)
    frames.describe(data)
    records.convert(data, pd.DataFrame({"a": [0.0]}), None)
    cached = [
        each
        for known in (columns._known_kinds, columns._known_dtypes, columns.NUMPY_KINDS, columns._SPELLED)
        for each in known
    ]
    assert not any(getattr(each, "metadata", None) for each in cached)


def test_strings_in_objects_stay_objects():
    """If pandas read objects that are all strings as strings, the dtype would depend on one record."""
    data = pd.Series(["a", "b", "c"], dtype=object, name="x")
    frame = data.to_frame()
    for own, drawn in ((data, data), (frame, frame)):
        for made in (records.fresh(own), *records.pair(own, 0, 2), records.convert(own, drawn)):
            assert {str(dtype) for dtype in ([made.dtype] if made.ndim == 1 else made.dtypes)} == {"object"}


@pytest.mark.parametrize("missing", [0.5, np.nan])
def test_a_missing_number_does_not_show_where_integers_are_drawn(missing):
    """An array of integers has no missing ones, so neither has the series that private numbers become."""
    drawn = np.array([1, 2, 3])
    for data in (pd.Series([1.5, missing]), pl.Series([1.5, missing])):
        made = records.convert(data, drawn, Maybe((0, 3)))
        assert str(made.dtype).lower() == "int64"
        assert columns.narwhals(made).null_count() == 0
