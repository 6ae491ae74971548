"""Read the numbers that users give: what is no number becomes one that every check refuses."""

import math
import operator
from typing import Any

import numpy as np


def as_float(value: Any) -> float:
    """Return a number as a float, and anything else as NaN.

    Examples
    --------
    >>> as_float(2), as_float("2"), as_float(True)
    (2.0, nan, nan)
    """
    try:
        return math.nan if isinstance(value, bool | str | bytes | bytearray) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def as_integer(value: Any) -> int:
    """Return an integer as an int, and anything else as -1, which is never a valid count or seed.

    Examples
    --------
    >>> as_integer(2), as_integer(2.0), as_integer(True)
    (2, -1, -1)
    """
    try:
        return -1 if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        return -1
