"""Quantiles with public bounds: any container, missing values, and what is refused."""

import copy
import inspect
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privatize import Gaussian, Laplace, sums
from privatize.calibration.proven import proven_of
from privatize.errors import DataError, SettingsError
from privatize.identity.fingerprint import fingerprint
from privatize.mechanisms import DEFAULT
from privatize.noise import exact
from tests.cases import for_each


def released(function, data, epsilon=1.0, seed=1):
    """Return a private answer, as the pipeline makes it, with a fixed seed."""
    n = len(data)
    before = exact.source.set(np.random.Generator(np.random.PCG64(seed)).bytes)
    try:
        answer = function.release(function.measure(data, n), n, None, epsilon, 0.0)
    finally:
        exact.source.reset(before)
    assert answer.scale == 0.0 and answer.sensitivity == 1.0
    return function.structure(n).rebuild(answer.vector)


def test_the_median_age_of_many_people_is_exact():
    """OpenDP gives the exact median here; with a smoother mechanism a user would go there."""
    ages = np.random.default_rng(1).integers(0, 95, 30_000)
    function = sums.quantiles([0.5], 0, 120)
    for seed in range(20):
        assert released(function, ages, seed=seed).tolist() == [np.median(ages)]
    assert function(ages).tolist() == [np.median(ages)]


@for_each(
    ("q", "low", "high", "kind"),
    [
        (0.5, 0, 9, int),
        (0.5, 0.0, 9, float),
        ([0.5], 0, 9, np.ndarray),
        (np.float64(0.5), np.int64(0), np.int32(9), int),
        ((0.25, 0.75), 0.0, 9.0, np.ndarray),
    ],
)
def test_the_answer_is_a_number_or_an_array(q, low, high, kind):
    """A caller would get an array where a number is expected, or a float where an integer is."""
    function = sums.quantiles(q, low, high)
    for found in (function([1, 2, 3]), released(function, [1, 2, 3])):
        assert type(found) is kind
        if kind is np.ndarray:
            assert found.dtype == (np.int64 if isinstance(low, int) else np.float64)


class Odd(complex):
    """A number of somebody's own class, which cannot be converted."""

    def __float__(self):
        raise RuntimeError("private")


@for_each(
    "data",
    [
        [3, None, 5, float("nan"), 4],
        np.array([3.0, np.nan, 5.0, np.nan, 4.0]),
        np.array([3, None, 5, "text", 4], dtype=object),
        pd.Series([3, None, 5, None, 4]),
        pd.Series([3, None, 5, None, 4], dtype="Int64"),
        pd.Series([3, None, 5, None, Decimal(4)], dtype=object),
        pd.DataFrame({"age": [3, None, 5, None, 4]}),
        pl.Series([3, None, 5, None, 4]),
        [3, "text", 5, [1, 2], Decimal(4)],
        [3, 1j, 5, Decimal("sNaN"), 4],
        [3, Odd(), 5, Odd(), 4],
    ],
)
def test_records_of_any_container(data):
    """A column of another library, or with missing values, could not be asked, or its values would show."""
    function = sums.quantiles(0.5, 0, 9)
    assert function.measure(data, 5).tolist() == pytest.approx([3, np.nan, 5, np.nan, 4], nan_ok=True)
    assert function(data) == 4
    assert released(function, data, epsilon=500.0) == 4


def test_values_that_are_no_usual_numbers():
    """An infinite or a huge record would stop the release because of one person."""
    data = [10**400, -(10**400), float("inf"), -np.inf, True, np.float32(2.5), np.uint64(2**64 - 1)]
    found = sums.quantiles(0.5, -3, 3).measure(data, 7)
    assert found.tolist() == [np.inf, -np.inf, np.inf, -np.inf, 1.0, 2.5, 2.0**64]
    assert np.abs(released(sums.quantiles([0.1, 0.9], -3, 3), data)).max() <= 3
    long = np.array([1, 2, 3], dtype=np.longdouble) * np.longdouble(1e300) * np.longdouble(1e300)
    assert np.isinf(sums.quantiles(0.5, 0, 1).measure(long, 3)).all()


def test_the_data_is_not_changed():
    """Somebody's array would be clamped or sorted."""
    data = np.array([9.0, -5.0, np.nan, 3.0])
    before = data.copy()
    sums.quantiles(0.5, 0, 1)(data)
    released(sums.quantiles(0.5, 0, 1), data)
    assert np.array_equal(data, before, equal_nan=True)


def test_without_any_value():
    """An error would tell that all values are missing."""
    function = sums.quantiles([0.25, 0.75], 0, 9)
    seen = [released(function, [None] * 5, seed=seed).tolist() for seed in range(30)]
    assert len(set(map(tuple, seen))) > 10
    with pytest.raises(DataError, match="missing"):  # the raw function may say so
        function([None, None])


def test_quantiles_asked_together_are_in_order():
    """The 75% quantile could be below the 25% quantile."""
    data, function = np.arange(10), sums.quantiles([0.75, 0.25, 0.5], 0.0, 9.0)
    for seed in range(30):
        upper, lower, middle = released(function, data, epsilon=0.1, seed=seed)
        assert lower <= middle <= upper
    exactly = released(function, np.repeat(np.arange(101.0), 300) / 10, epsilon=3.0)
    assert exactly.tolist() == pytest.approx([7.5, 2.5, 5.0])


def test_raw_quantiles_are_numpys():
    """The raw function would differ from what everybody computes."""
    rng = np.random.default_rng(4)
    for size in (1, 2, 9, 10):
        data = rng.random(size)
        assert sums.quantiles(0.5, 0.0, 1.0)(data) == pytest.approx(np.median(data))


@for_each(
    ("data", "why"),
    [
        (np.zeros((3, 2)), "one number"),
        (pd.DataFrame({"a": [1], "b": [2]}), "one number"),
        (np.array(["a", "b"]), "one number"),
        (pd.Series(["a", "b"]).astype("string"), "one number"),
        (pd.Series(pd.to_datetime(["2020-01-01"])), "one number"),
        ({"a": [1]}, "one number"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "one number"),
    ],
)
def test_containers_without_one_number_for_each_record(data, why):
    """A frame of several columns would give a number that means nothing, or be paid for before it fails."""
    with pytest.raises(DataError, match=why):
        sums.quantiles(0.5, 0, 9).fits(data)
    with pytest.raises(DataError, match=why):
        sums.quantiles(0.5, 0, 9).measure(data, 3)


@for_each(
    ("arguments", "why"),
    [
        ((0.0, 0, 1), "q=0.0"),
        ((1, 0, 1), "q=1"),
        (([], 0, 1), "q="),
        (([0.5, np.nan], 0, 1), "q="),
        (([[0.5]], 0, 1), "q="),
        (("half", 0, 1), "q='half'"),
        ((None, 0, 1), "q=None"),
        ((0.5, 2, 1), "low=2 and high=1"),
        ((0.5, 0, np.inf), "finite"),
        ((0.5, np.nan, 1), "finite"),
        ((0.5, 0, 10**400), "finite"),
        ((0.5, "a", 1), "numbers"),
        ((0.5, None, 1), "numbers"),
        ((0.5, False, True), "numbers"),
        ((0.5, [0], [1]), "numbers"),
    ],
)
def test_arguments_that_are_refused(arguments, why):
    """A mistake in the bounds would be an answer that means nothing."""
    with pytest.raises(SettingsError, match=why):
        sums.quantiles(*arguments)


def test_it_brings_its_own_mechanism():
    """Noise would be added to an answer that is private already, or a delta be spent for nothing."""
    function = sums.quantiles(0.5, 0, 9)
    assert proven_of(function) is function and function.noise_of(None) == ""
    for mechanism in (None, DEFAULT):
        function.check(mechanism, 1.0, 0.0)
    for mechanism in (Laplace(), Laplace(scaled="total"), Gaussian()):
        with pytest.raises(SettingsError, match="its own mechanism"):
            function.check(mechanism, 1.0, 0.0)
    with pytest.raises(SettingsError, match="delta"):
        function.check(None, 1.0, 1e-6)


def test_it_is_a_public_value():
    """A private function with it could not be sent to another process, or would look like another one."""
    function = sums.quantiles([0.5, 0.1], 0, 9)
    for again in (copy.deepcopy(function), pickle.loads(pickle.dumps(function))):
        assert again == function and repr(again) == repr(function)
        assert fingerprint(again) == fingerprint(function)
    assert fingerprint(function) != fingerprint(sums.quantiles([0.5, 0.1], 0, 10))
    assert function.__name__ == "quantiles" and list(inspect.signature(function).parameters) == ["data"]
    assert repr(function) == "quantiles([0.5, 0.1], 0, 9)"
    assert repr(sums.quantiles(0.5, 0.0, 9)) == "quantiles(0.5, 0.0, 9.0)"
