"""Stress tests of functions: which estimates are found fragile, and that nothing else changes."""

import logging
import math

import numpy as np
import pandas as pd
import pytest

from privatize import estimate_sensitivity, plan, samplers, sums
from privatize.calibration import stress_run
from tests.cases import for_each

PLAN = plan(gamma=0.05)
SQUARE = samplers.uniform([0, 0], [6, 100])
DIAMONDS = samplers.table(
    carat=samplers.uniform(0.2, 5),
    price=samplers.uniform(0, 20_000),
    cut=samplers.categorical(["fair", "good"]),
)


def estimate(function, sampler, n=100, seed=1, **options):
    """Estimate a sensitivity, with a stress test."""
    options = {"workers": "inline", "plan": PLAN, "norm": "l1", "stress": True} | options
    return estimate_sensitivity(function, n=n, sampler=sampler, seed=seed, **options)


def slope(data):
    """Return the slope of the second column by the first."""
    x, y = data.T
    return float(np.polyfit(x, y, 1)[0])


def test_a_slope_is_fragile_and_the_change_is_named():
    """Somebody would release a slope with a fifth of the noise that their data needs."""
    found = estimate(slope, SQUARE, n=200, seed=4).stress.fragile
    assert found.words == "`value[0]` is half as spread out"
    assert found.ratio > 1.4


def by_cut(frame):
    """Return the mean price by cut."""
    return frame.groupby("cut", observed=False)["price"].mean()


@for_each(
    ("function", "sampler"),
    [
        (np.mean, samplers.uniform(0, 100)),
        (np.sum, samplers.integers(18, 90)),
        (lambda x: int((x > 50).sum()), samplers.uniform(0, 100)),
        (sums.additive(lambda x: x), samplers.uniform(0, 100)),
        (lambda x: x.mean(axis=0), SQUARE),
        (lambda d: d["cut"].value_counts().reindex(["fair", "good"]), DIAMONDS),
    ],
)
def test_sums_means_and_counts_of_bounded_values_are_not(function, sampler):
    """The warning would be everywhere, and nobody would read it. Seeds are fixed; 1 in 100 would alarm."""
    found = estimate(function, sampler)
    assert found.stress.rows
    assert found.stress.fragile is None


def test_nothing_else_changes():
    """An estimate would depend on whether it is tested; keys and stores would not be what they were."""
    with_test, without = estimate(slope, SQUARE), estimate(slope, SQUARE, stress=False)
    assert with_test.value == without.value
    assert (with_test.gaps == without.gaps).all()
    assert without.stress is None
    assert with_test.at(0.2).stress.rows != with_test.stress.rows  # compared with another estimate


@for_each("options", [{"workers": 2}, {"batch": True, "workers": "inline"}])
def test_the_same_pairs_wherever_they_are_evaluated(options):
    """A warning would come and go with the number of cores."""

    def mean(data):
        return data.mean(axis=-2)[..., 0]

    here, there = estimate(mean, SQUARE), estimate(mean, SQUARE, **options)
    assert here.stress.tried.words == there.stress.tried.words
    assert here.stress.tried.worst == there.stress.tried.worst
    assert np.allclose(here.stress.tried.fresh, there.stress.tried.fresh)
    assert np.allclose(here.stress.tried.first, there.stress.tried.first)


def test_frames_and_lists_are_tried():
    """Only arrays would have a stress test."""
    for function, sampler in (
        (by_cut, DIAMONDS),
        (lambda rows: float(np.mean(rows)), samplers.uniform(0, 1)),
    ):
        found = estimate(function, sampler, n=50)
        assert len(found.stress.tried.fresh) + sum(map(len, found.stress.tried.first)) == PLAN.m // 8


def test_functions_that_fail_on_changed_data_are_fragile():
    """A function that fails on other data than P's would end the calibration, or pass the test."""

    def mean_of_many(data):
        if (data == 0).any():
            raise ValueError("too many zeros")
        return data.mean()

    found = estimate(mean_of_many, samplers.uniform(0, 100)).stress.fragile
    assert found.words == "zeros are more frequent"
    assert found.ratio == math.inf
    assert found.beyond == found.pairs


def test_coins_are_those_of_the_calibration():
    """A random function would be compared with itself under other coins, and seem fragile."""

    def noisy(data):
        return data.mean() + 100 * np.random.random()

    assert estimate(noisy, samplers.uniform(0, 1)).stress.fragile is None


def test_without_changes_or_with_few_pairs_there_is_no_test():
    """A stress test that says nothing would be shown as one that found nothing."""

    class Own:
        def draw(self, n, rng):
            return rng.random(n)

    assert estimate(np.mean, samplers.uniform(0, 1), plan=plan(gamma=0.1)).stress is None
    assert estimate(np.mean, Own()).stress is None


def test_an_error_in_the_test_is_logged_and_no_more(monkeypatch, caplog):
    """Nobody would get an estimate, because of advice about it."""

    def broken(_):
        raise RuntimeError("cannot change this")

    monkeypatch.setattr(stress_run, "stress_changes", broken)
    with caplog.at_level(logging.WARNING, "privatize.stress"):
        assert estimate(np.mean, samplers.uniform(0, 1)).stress is None
    assert "cannot change this" in caplog.text


@pytest.mark.slow
def test_a_small_group_can_be_found_fragile():
    """The mean of a group would never warn: with so few pairs it does in about a fifth of calibrations."""

    def mean_of_good(frame: pd.DataFrame) -> float:
        return float(frame["price"][frame["cut"] == "good"].mean())

    found = [estimate(mean_of_good, DIAMONDS, n=100, seed=seed).stress.fragile for seed in range(12)]
    assert any(row is not None for row in found)
