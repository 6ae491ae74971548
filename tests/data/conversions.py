"""Values that are hard to convert, and what becomes of each of them alone."""

import datetime as dt
import decimal
import math

import numpy as np
from hypothesis import strategies as st

from privatize import privatize, samplers
from privatize.data import clipping, records
from privatize.data.support import Maybe, OneOf

inf, nan = math.inf, math.nan
TEXT = "SENTINEL-TEXT"


def objects(values):
    """Return a one-dimensional array of any objects."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def private(sampler, function=len, **more):
    """Return a private function that remembers nothing."""
    more = {"min_sensitivity": 1.0} | more
    return privatize(epsilon=1, gamma=0.2, sampler=sampler, store=None, **more)(function)


def alone(data, drawn, support):
    """Check that every record is converted as it would be alone, and return them all."""
    made = records.convert(data, drawn, support)
    assert records.count(made) == records.count(data)
    for at in range(records.count(data)):
        one = records.convert(records.take(data, np.array([at])), drawn, support)
        assert records.equal(records.record(made, at), records.record(one, 0))
        assert records.describe(one) == records.describe(made)
    return made


SUPPORTS = st.sampled_from(
    [
        None,
        (0.0, 1.0),
        (-3, 100),
        (0.0, inf),
        (-inf, 5.0),
        OneOf((0, 1, 7), unknown=7),
        Maybe((0.0, 10.0)),
        Maybe(OneOf((0, 1), unknown=1)),
    ]
)


def inside(made, support, target):
    """Tell whether numbers lie in a support."""
    optional = isinstance(support, Maybe)
    inner = support.inner if optional else support
    if inner is None:
        return True
    missing = np.isnan(made) if made.dtype.kind == "f" else np.zeros(len(made), bool)
    if missing.any() and not optional:
        return False
    rest = made[~missing].astype(float)
    if isinstance(inner, OneOf):
        return set(rest.tolist()) <= set(map(float, inner.values))
    low, high = inner
    if np.dtype(target).kind == "u":
        low = max(low, 0)
    return bool(((rest >= low) & (rest <= high)).all())


ODD = [
    "F",
    "M",
    TEXT,
    "",
    None,
    nan,
    1,
    True,
    1.0,
    np.str_("M"),
    np.float64(nan),
    np.datetime64("NaT", "D"),
    np.bool_(True),
    decimal.Decimal("1"),
    decimal.Decimal("sNaN"),
    [1],
    {},
    {2},
    b"F",
    10**400,
    1j,
    dt.date(2020, 1, 1),
    np.array([1, 2]),
]
COLUMNS = {
    "age": samplers.integers(0, 120),
    "pay": samplers.uniform(0, 1e5),
    "sex": samplers.categorical(["F", "M"]),
    "day": samplers.dates("2020-01-01", "2024-12-31"),
    "kg": samplers.with_missing(samplers.uniform(40, 120), 0.3),
    "kids": samplers.with_missing(samplers.integers(0, 9), 0.3),
    "pet": samplers.with_missing(samplers.choice(["cat", "dogs"]), 0.3),
    "ok": samplers.boolean(),
}


def fine(value, support):
    """Tell whether one value lies in a support."""
    if isinstance(support, Maybe):
        return clipping.is_missing(value) or fine(value, support.inner)
    if clipping.is_missing(value):
        return False
    if isinstance(support, OneOf):
        return value in support.values
    low, high = support
    if isinstance(low, np.datetime64):
        return bool(low <= np.datetime64(value) <= high)
    return bool(low <= value <= high)


class Loud:
    """A record that shows its text whenever it is converted, hashed or printed."""

    def __float__(self):
        raise RuntimeError(TEXT)

    def __hash__(self):
        raise RuntimeError(TEXT)

    def __repr__(self):
        return TEXT


ENDS = st.sampled_from([-inf, -1e300, -5.0, -0.0, 0.0, 1.0, 3.5, 1e300, inf])
