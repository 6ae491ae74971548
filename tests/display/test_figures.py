"""Numbers are written as people write them, and never better than they are."""

from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privatize.display.figures import amount, counted, figure, promise, round_up
from tests.cases import for_each


@for_each("value, text", [(1e-9, "1e-09"), (12345.6, "12,350"), (2e7, "2e+07"), (-2500.0, "-2500")])
def test_an_exponent_only_where_it_is_needed(value, text):
    """A user would read an income as 1.235e+04."""
    assert figure(value) == text


def test_several_numbers_are_their_ends():
    """A user would see one of many scales and take it for all of them."""
    assert amount(np.array([0.5, 2.0, 1.0])) == "0.5 to 2" and amount([3.0, 3.0]) == "3"


def test_one_thing_is_not_several():
    """A message would say "1 answers"."""
    assert [counted(k, "pair") for k in (0, 1, 2)] == ["0 pairs", "1 pair", "2 pairs"]


@given(st.floats(1e-12, 1, exclude_max=True))
def test_a_printed_gamma_is_never_below_the_true_one(gamma):
    """A user who copies the gamma from a message would be refused again, or promise too much."""
    printed = Decimal(round_up(gamma))
    assert Decimal(repr(gamma)) <= printed < 1


def test_a_delta_of_zero_is_left_out():
    """A promise without delta would look as if it had one."""
    assert "delta" not in promise(1, 0, 0.05) and "delta=1e-06" in promise(1, 1e-6, 0.05)
