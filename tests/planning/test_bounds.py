"""Numbers are taken as their user wrote them, and printed bounds can be used."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from privatize.errors import PlanError
from privatize.planning.bounds import exact
from privatize.planning.plan import plan
from tests.planning.solved import attempt, free_rho


def test_numbers_are_what_their_user_wrote():
    """Binary rounding would make a hundred hundredths more, or less, than one."""
    assert exact(0.1) + exact(0.2) == exact(0.3)
    assert sum([exact(0.01)] * 100) == 1 and exact(1e-300) == Decimal("1e-300")
    assert exact(np.float64(0.1)) == exact(0.1) and exact(1) == 1


BOUNDS = ("tolerance", "dkw", "marginal")

# The same examples in every run; none of them is timed.
properties = settings(max_examples=100, deadline=None, derandomize=True, database=None)
gammas = st.floats(0.002, 0.998)
bounds = st.sampled_from(BOUNDS)

# A free rho as a share of its upper limit; None leaves it to the library.
rho_shares = st.none() | st.floats(1e-9, 0.99)


@properties
@given(gamma=gammas, m=st.integers(1, 1000), share=rho_shares, bound=bounds)
@example(gamma=0.5, m=2, share=2e-10, bound="tolerance")
@example(gamma=0.5, m=1, share=None, bound="tolerance")
@example(gamma=0.9, m=2, share=0.5, bound="dkw")
def test_printed_bounds_are_feasible_and_least(gamma, m, share, bound):
    """A user who follows the error's advice would be refused again, or pay too much."""
    rho = free_rho(share, gamma, bound)
    try:
        plan(gamma, m, rho, bound=bound)
    except PlanError as error:
        refusal = error
    else:
        assume(False)
    samples = int(re.search(r"Raise samples to (\d+) or more", str(refusal)).group(1))
    assert refusal.least_m == samples > m
    assert plan(gamma, samples, rho, bound=bound).m == samples
    assert attempt(gamma, samples - 1, rho, bound) is None
    if "support no gamma below 1" in str(refusal):
        assert refusal.least_gamma is None
        assert attempt(math.nextafter(1, 0), m, rho, bound) is None
    else:
        printed = re.search(r"support gamma >= (\d\.\d+)", str(refusal)).group(1)
        assert plan(float(printed), m, rho, bound=bound).m == m
        assert refusal.least_gamma <= float(printed)
        # Rounded up by less than one unit of the last place printed.
        assert Decimal(printed) - Decimal(refusal.least_gamma) < Decimal(1).scaleb(
            Decimal(printed).as_tuple()[2]
        )


@pytest.mark.parametrize("bound", BOUNDS)
def test_plan_accepts_numpy_scalars(bound):
    """A user whose settings come out of an array would be refused, or get unprintable plans."""
    rho = None if bound == "marginal" else 0.01
    expected = plan(0.125, 1000, rho, bound=bound)
    for count in (np.int32(1000), np.int64(1000), np.uint16(1000)):
        for real in (np.float32, np.float64):
            p = plan(real(0.125), count, None if rho is None else np.float64(rho), bound=bound)
            assert p == expected
            assert repr(p) == repr(expected)
            assert (type(p.gamma), type(p.m), type(p.k)) == (float, int, int)
    p = plan(m=np.int64(1000), bound=bound)
    assert p == plan(m=1000, bound=bound)
    assert type(p.m) is int
