"""Private data is compared with records that P draws now, and what does not fit is refused beforehand."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from privatize import (
    privatize,
    samplers,
)
from privatize.data.support import OneOf
from privatize.errors import (
    DataError,
    SettingsError,
)
from tests.cases import for_each
from tests.data.conversions import (
    private,
)

DAYS = samplers.dates("2020-01-01", "2024-12-31")
FIRST, LAST = np.datetime64("2020-01-01"), np.datetime64("2024-12-31")


def test_a_fixed_size_is_what_the_function_gets():
    """One calibration serves only if the number of records is the same every time."""

    def mean(data):
        return data.mean() if len(data) == 10 else 1 / 0

    f = private(samplers.uniform(0, 1).fixed(size=10), mean)
    rng = np.random.default_rng(0)
    assert f.release(rng.random(10)).n == f.release(rng.random(35)).n == 10
    with pytest.raises(DataError, match="9 records"):
        f(rng.random(9))


@for_each(
    ("make", "support"),
    [
        (lambda n, rng: (rng.random(n), rng.random(n)), (0, 1)),
        (lambda n, rng: {"a": rng.random(n)}, (0, 1)),
        (lambda n, rng: {"a": rng.random(n)}, {"b": (0, 1)}),
        (lambda n, rng: rng.random(n), {"a": (0, 1)}),
        (lambda n, rng: rng.random((n, 2)), (np.zeros(3), np.ones(3))),
        (lambda n, rng: np.full(n, "a"), (0, 1)),
        (lambda n, rng: ["a"] * n, (0, 1)),
        (lambda n, rng: sparse.csr_array(rng.random((n, 2))), (1, 2)),
        (lambda n, rng: FIRST + rng.integers(0, 99, n), (0, 1)),
        (lambda n, rng: rng.random(n), (FIRST, LAST)),
        (lambda n, rng: {"a": FIRST + rng.integers(0, 99, n)}, {"a": (0, 1)}),
        (lambda n, rng: {"a": rng.random((n, 2))}, {"a": (np.zeros(3), np.ones(3))}),
        (lambda n, rng: pd.DataFrame({"x": rng.random(n)}), (0, 1)),
        (lambda n, rng: pd.DataFrame({"x": rng.random(n)}), {"y": (0, 1)}),
        (lambda n, rng: pd.Series(rng.random(n)), {"x": (0, 1)}),
        (
            lambda n, rng: pd.DataFrame({"x": pd.to_datetime(rng.integers(0, 10**9, n), unit="s")}),
            {"x": (0, 1)},
        ),
        (lambda n, rng: pd.DataFrame({"x": rng.random(n)}), {"x": DAYS.support}),
        (lambda n, rng: pd.DataFrame({"x": rng.choice(["a", "b"], n)}), {"x": (0, 1)}),
        (lambda n, rng: pl.DataFrame({"x": rng.random(n)}), {"x": OneOf(("a", "b"), "a")}),
        (lambda n, rng: pl.Series(rng.random(n)), DAYS.support),
        (lambda n, rng: pd.Series(rng.random(n)), (np.zeros(3), np.ones(3))),
    ],
)
def test_a_support_that_does_not_fit_is_refused_before_the_private_data_is_seen(make, support):
    """If it were found on the private data, the error could not explain it."""
    f = private(samplers.from_function(make, support=support), lambda d: 1.0, domain="clip")
    with pytest.raises(SettingsError):
        f(make(5, np.random.default_rng(0)))


class Switching:
    """A sampler that cannot be compared (it has an open generator), and may draw another kind of records."""

    def __init__(self):
        self.dtype, self.open = float, (i for i in range(3))

    def draw(self, n, rng):
        return rng.integers(0, 100, n).astype(self.dtype)


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_a_p_that_cannot_be_compared_is_drawn_from_again():
    """Private data would be converted to what P used to draw, and calibration run on what it draws now."""
    notes = logging.getLogger("switching notes")
    notes.kinds = []

    def mean(x):
        notes.kinds.append(x.dtype.kind)
        return float(x.mean())

    P = Switching()
    f = privatize(epsilon=1, gamma=0.3, sampler=P, workers="inline", store=None)(mean)
    for P.dtype, kind in ((float, "f"), (int, "i")):
        notes.kinds.clear()
        f(np.arange(20.5))
        assert set(notes.kinds) == {kind}


class Moved:
    """A sampler of the user's own, whose support can change."""

    def __init__(self):
        self.support = (0.0, 10.0)

    def draw(self, n, rng):
        return rng.random(n)


@pytest.mark.parametrize("replaced", [False, True])
def test_records_are_clipped_to_the_support_that_p_has_now(replaced):
    """A P that was narrowed would be calibrated, while private records are still clipped to the wide one."""
    sampler = Moved()
    private = privatize(epsilon=1000.0, gamma=0.2, sampler=sampler, seed=1, store=None, workers="inline")(
        _mean_of
    )
    assert private(np.full(50, 100.0)) > 5
    sampler.support = (0.0, 1.0)
    again = private.replace(epsilon=900.0) if replaced else private
    assert again(np.full(50, 100.0)) < 2


def _mean_of(x):
    return float(x.mean())
