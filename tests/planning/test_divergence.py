"""A promise that holds under P is worth no more under another distribution than the divergence allows."""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privatize.errors import SettingsError
from privatize.planning.divergence import transfer
from tests.cases import for_each


@for_each(
    ("gamma", "n", "kl", "expected"),
    [
        # Data processing. Pinsker's inequality gives .121, .081 and .072 in the first three.
        (0.05, 1000, 1e-5, 0.0869236),
        (0.01, 1000, 1e-5, 0.0311402),
        (0.001, 1000, 1e-5, 0.0135360),
        (0.05, 10**6, 0, 0.05),
        (0.05, 10**6, 1, 1.0),
        (0.5, 3, math.inf, 1.0),
        (0.05, 10**400, 1e-5, 1.0),
    ],
)
def test_transfer(gamma, n, kl, expected):
    """A user whose data differs from P would believe in a wrong promise."""
    assert transfer(gamma, n, kl) == pytest.approx(expected, rel=1e-5, abs=0)


@given(
    st.floats(1e-15, 1 - 1e-9),
    st.integers(1, 10**9),
    st.floats(1e-12, 1e3),
    st.floats(1e-9, 1),
    st.integers(0, 99),
)
def test_transfer_is_the_largest_share_that_the_divergence_allows(gamma, n, budget, step, at):
    """A user would be promised less than what an event of probability gamma can become under Q, or far more.

    An event has probability gamma under a two-valued P and q under a two-valued Q, whose divergence is the
    binary one: the bound must reach such a q, and not stop before it.
    """
    kl = budget / (n + 1)
    found = transfer(gamma, n, kl)
    pinsker = gamma + math.sqrt(budget / 2)
    assert gamma <= found <= min(1.0, pinsker) * (1 + 2.0**-49)  # the paper's, but for a few roundings
    q = Fraction(gamma) + (1 - Fraction(gamma)) * Fraction(at, 100)  # some share that could come true
    if gamma < q < 1:
        with localcontext() as context:
            context.prec = 60
            p, r = Decimal(gamma), Decimal(q.numerator) / Decimal(q.denominator)
            exact = p * (p / r).ln() + (1 - p) * ((1 - p) / (1 - r)).ln()
            if exact <= Decimal(kl) * (n + 1):
                assert found >= float(q) * (1 - 1e-15)
            elif exact > Decimal(kl) * (n + 1) * Decimal("1.000001") + Decimal("1e-12"):
                assert found <= float(q)
    assert transfer(gamma, n, kl * (1 + step)) >= found  # farther away is worse
    assert transfer(min(gamma * (1 + step), 1 - 1e-9), n, kl) >= min(found, 1 - 1e-9) * (1 - 1e-15)


@for_each(
    ("gamma", "n", "kl", "match"),
    [
        (0, 10, 0.1, "gamma=0 "),
        (1, 10, 0.1, "gamma=1 "),
        (0.05, 0, 0.1, "n=0 "),
        (0.05, 1.5, 0.1, "n=1.5 "),
        (0.05, "x", 0.1, "n='x' "),
        (0.05, True, 0.1, "n=True "),
        (0.05, 10, -0.1, "kl=-0.1 "),
        (0.05, 10, math.nan, "kl=nan "),
        (0.05, 10, "x", "kl='x' "),
    ],
)
def test_transfer_refuses(gamma, n, kl, match):
    """A user's mistake would come out as a promise."""
    with pytest.raises(SettingsError, match=re.escape(match)):
        transfer(gamma, n, kl)


@pytest.mark.parametrize("kl", [1e-300, 1.2e-40, 1e-33, 1e-20])
def test_transfer_adds_no_more_than_the_papers_bound(kl):
    """A user whose data is nearly drawn from P would be promised less than the paper promises."""
    gamma = 0.9516511453194575
    assert transfer(gamma, 180886, kl) <= (gamma + math.sqrt(180887 * kl / 2)) * (1 + 2.0**-51)


def test_transfer_accepts_numpy_scalars():
    """A user whose n comes out of an array's shape or sum would be refused."""
    answer = transfer(np.float64(0.05), np.int64(999), np.float64(2e-6))
    assert answer == transfer(0.05, 999, 2e-6)
    assert type(answer) is float
