"""What users give as numbers is read as they meant it, or as a number that every check refuses."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from privatize import plan
from privatize.errors import PlanError
from privatize.planning.numbers import as_float, as_integer
from tests.cases import for_each


class Unfit:
    """Cannot be read, whatever it is asked."""

    def __float__(self):
        raise ValueError("no number")

    __index__ = None


@for_each("value", [0.5, Fraction(1, 2), Decimal("0.5"), np.float32(0.5), np.array(0.5)])
def test_numbers_of_every_type_are_read(value):
    """A gamma from a data frame or a configuration file would be refused."""
    assert as_float(value) == 0.5 and type(as_float(value)) is float
    assert plan(value, 50) == plan(0.5, 50)


@for_each("value", ["0.5", True, None, 1j, 10**400, [0.5], np.array([0.5, 0.5]), Unfit()])
def test_what_is_no_number_passes_no_check(value):
    """A string or a flag in the wrong place would be taken for a gamma."""
    assert math.isnan(as_float(value))
    with pytest.raises(PlanError, match="gamma"):
        plan(value)


@for_each("value", [7, np.int8(7), np.uint64(7)])
def test_integers_of_every_type_are_read(value):
    """A number of records that numpy has counted would be refused."""
    assert as_integer(value) == 7 and type(as_integer(value)) is int


@for_each("value", [7.0, "7", True, None, np.float64(7), [7], Unfit()])
def test_what_is_no_integer_passes_no_check(value):
    """Half a pair, or a flag, would be taken for a number of pairs."""
    assert as_integer(value) == -1
    if value is not None:
        with pytest.raises(PlanError, match="m="):
            plan(0.1, value)
