"""Records as numbers."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privatize.calibration.numeric import as_real, numbers, numeric
from privatize.errors import DataError

# Records that numpy makes different arrays of, depending on what is beside them.
RECORDS = [0, 1, 2**53 + 1, 2**63, 2**70, 10**400, True, 0.5, -0.0, math.nan, math.inf, 5e-324, None, pd.NA]
RECORDS += [np.float32(0.1), np.int64(7), np.uint64(2**63), np.bool_(True), Decimal("0.1"), Fraction(1, 3)]
RECORDS += [
    "x",
    "1.5",
    b"1",
    2j,
    [1.0],
    dt.date(2020, 1, 1),
    pd.NaT,
    np.datetime64("NaT", "D"),
    np.array([1.0]),
]


def alone(record):
    """Return the bits of one record as a float, or "" if it is refused; of rows of one number, too."""
    try:
        made = numbers([record], "a test")
        return made.tobytes() if made.size == 1 else ""
    except (DataError, ValueError, OverflowError, TypeError):
        return ""


def test_a_record_never_changes_another():
    """The bound of a sum would not hold: replacing one record could move the numbers of all others."""
    for one in RECORDS:
        for other in RECORDS:
            try:
                made = numbers([one, other], "a test")
            except (DataError, ValueError, OverflowError, TypeError):
                assert "" in (alone(one), alone(other)) or np.ndim(one) != np.ndim(other)
                continue
            assert [row.tobytes() for row in made] == [alone(one), alone(other)]


def test_missing_values_of_frames_become_nan():
    """A column with missing values could not be averaged."""
    columns = {"a": [1, None, 3], "b": [1.5, 2.5, None]}
    expected = np.array([[1, 1.5], [np.nan, 2.5], [3, np.nan]])
    for frame in (
        pd.DataFrame(columns),
        pd.DataFrame(columns).astype({"a": "Int64", "b": "Float64"}),
        pd.DataFrame(columns, dtype=object),
        pl.DataFrame(columns),
        columns,
    ):
        assert np.array_equal(numeric(frame), expected, equal_nan=True)
        assert np.array_equal(numeric(frame, ("b", "a")), expected[:, ::-1], equal_nan=True)
        with pytest.raises(DataError, match="no column 'c'"):
            numeric(frame, ("c",))


def test_what_is_no_number_is_refused():
    """Text would be counted as a number."""
    for value in ("1", b"1", 2j, [1], dt.date(2020, 1, 1)):
        with pytest.raises((TypeError, ValueError)):
            as_real(value)
    assert as_real(True) == 1.0 and math.isnan(as_real(None))
