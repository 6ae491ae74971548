"""Whom gamma is about: what a promise to everybody is worth to a group of people, and the reverse."""

import math
from fractions import Fraction
from typing import Any

from privatize.display.figures import figure
from privatize.errors import PlanError
from privatize.planning.bounds import exact
from privatize.planning.numbers import as_float


def check_share(share: Any) -> float:
    """Return the share of P that a group of people has, or refuse it."""
    value = as_float(share)
    if not 0 < value <= 1:
        raise PlanError(f"""share={share!r} is not the share of a group: it must be above 0 and at most 1. It
            is the probability under P that a person belongs to the group, 0.1 say.""")
    return value


def gamma_for(gamma: float, share: float) -> float:
    """Return a bound on the share of pairs on which a promise fails for somebody of a group.

    Under P, a person belongs to the group with probability `share` or more. Proof: ``docs/promise.md``.

    Examples
    --------
    >>> gamma_for(0.05, 0.1), gamma_for(0.05, 0.01)
    (0.5, 1.0)
    """
    most = min(exact(gamma) / exact(check_share(share)), Fraction(1))
    found = float(most)
    return found if exact(found) >= most else math.nextafter(found, 2)


def gamma_within(gamma: float, share: float) -> float:
    """Return the gamma for everybody by which a group of this share has a gamma of its own.

    Examples
    --------
    >>> gamma_within(0.05, 0.1)
    0.005
    """
    most = exact(gamma) * exact(check_share(share))
    found = float(most)
    return found if exact(found) <= most else math.nextafter(found, 0)


def for_whom(gamma: float, n: int) -> str:
    """Say for how many people a promise may fail, and who may be among them.

    Examples
    --------
    >>> for_whom(0.05, 1000)
    'at most 50 of 1,000 people in expectation; a group of at most 5% of P may bear all of it'
    >>> for_whom(0.001, 1000)
    'at most 1 of 1,000 people in expectation; a group of at most 0.1% of P may bear all of it'
    """
    group = f"a group of at most {percent(gamma)} of P may bear all of it"
    return f"at most {figure(gamma * n, 3)} of {n:,} people in expectation; {group}"


def percent(share: float) -> str:
    """Return a share as a percentage.

    Examples
    --------
    >>> percent(0.05), percent(0.001)
    ('5%', '0.1%')
    """
    return f"{figure(100 * share, 3)}%"
