"""Every value is in exactly one cell, and noisy counts become sensible shares."""

import datetime as dt

import numpy as np
import pytest

from privatize.errors import SamplerError
from privatize.samplers import Maybe, OneOf
from privatize.samplers.histograms import cells_of, shares_of, weights_of
from tests.cases import for_each

HALF, INTEGER = np.array([0.5]), np.array([3])
DAYS = tuple(np.array(["2020-01-01", "2024-12-31"], dtype="M8[D]"))


def rng(seed=0):
    return np.random.default_rng(seed)


CASES = {
    "floats": (cells_of("x", (-1.0, 2.0), HALF, bins=7, atoms=[0.3]), rng().uniform(-1, 2, 500)),
    "floats that may be missing": (
        cells_of("x", Maybe((0.0, 1.0)), HALF, bins=3),
        np.where(rng().random(500) < 0.2, np.nan, rng(1).random(500)),
    ),
    "few integers": (cells_of("x", (-3, 9), INTEGER, bins=4), rng().integers(-3, 10, 500)),
    "many integers": (cells_of("x", (-900, 5000), INTEGER, bins=32), rng().integers(-900, 5001, 500)),
    "integers as floats": (
        cells_of("x", (0.0, 99.0), np.array([1.0]), bins=8),
        rng().integers(0, 100, 500) * 1.0,
    ),
    "floats that are all integers": (
        cells_of("x", (0.0, 1e300), np.array([1e299]), bins=8),
        rng().uniform(0, 1e300, 500),
    ),
    "days": (cells_of("x", DAYS, np.array(DAYS), bins=8), DAYS[0] + rng().integers(0, 1826, 500)),
    "categories": (
        cells_of("x", OneOf(("a", "b"), "a"), np.array(["a"]), bins=8),
        rng().choice(["a", "b"], 500),
    ),
    "flags": (cells_of("x", OneOf((False, True), False), np.array([True]), bins=8), rng().random(500) < 0.2),
    "fixed numbers": (cells_of("x", OneOf((3, 1, 2), 3), np.array([1]), bins=8), rng().integers(1, 4, 500)),
}


@for_each("cells, values", CASES.values(), ids=list(CASES))
def test_every_value_is_in_exactly_one_cell(cells, values):
    """Replacing a record would move more than two counts by one, and the noise would be too little."""
    at = cells.places(values)
    assert at.shape == (500,)
    assert at.min() >= 0 and at.max() < len(cells)
    alone = np.concatenate([cells.places(values[i : i + 1]) for i in range(500)])
    assert (alone == at).all()  # whatever the other records are


@for_each("cells, values", [case for name, case in CASES.items() if not case[0].values], ids=None)
def test_numbers_that_are_drawn_in_a_cell_are_in_that_cell(cells, values):
    """The learned P would not be what was counted."""
    numbers = len(cells.starts.array)
    at = np.repeat(np.arange(numbers), 200)
    for u in (rng(2).random(len(at)), np.zeros(len(at)), np.full(len(at), 1 - 2.0**-53)):
        drawn = cells.inside(at, u)
        if cells.step not in ("", "1"):
            drawn = drawn.astype(f"M8[{cells.step}]")
        found = cells.places(drawn)
        # The first number of a bin may be an atom, and rounding may give the first number of the next bin.
        fine = (found == at) | (u == 0) | (u > 1 - 2.0**-50)
        assert fine.all() if not cells.step else (found == at).all()


@for_each(
    "support, drawn, at",
    [
        ((-1.0, 2.0), HALF, [-1.0, 0.0, 2.0, 0.7]),
        ((-900, 5000), INTEGER, [-900, 0, 5000, 77]),
    ],
)
def test_zero_the_bounds_and_listed_values_have_cells_of_their_own(support, drawn, at):
    """Half of all incomes may be zero, and a median there moves as no bin shows it."""
    cells = cells_of("x", support, drawn, bins=16, atoms=[at[3]])
    close = np.array(
        [x + step for x in at for step in (-1e-9, 1e-9)] if not cells.step else [-899, -1, 1, 4999, 76, 78]
    )
    own = cells.places(np.array(at))
    assert len(set(own.tolist())) == 4
    assert not set(own.tolist()) & set(cells.places(np.clip(close, *support)).tolist()) - set(own[:1]) - set(
        own[2:3]
    )
    if not cells.step:
        assert (cells.widths.array[own] == 0).all()


def test_missing_values_and_times_in_lists_are_counted():
    """Records in lists of dicts have None, and times with a time zone."""
    day = cells_of("x", Maybe(DAYS), np.array(DAYS), bins=4)
    zoned = dt.datetime(2020, 1, 1, 3, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    values = np.array([None, zoned, dt.date(2024, 12, 31)], dtype=object)
    assert day.places(values).tolist() == [len(day) - 1, 0, len(day) - 2]
    text = cells_of("x", Maybe(OneOf(("a", "b"), "a")), np.array(["a"]), bins=4)
    assert text.places(np.array(["b", None, "a"], dtype=object)).tolist() == [1, 2, 0]


@for_each(
    "support, drawn, atoms, words",
    [
        ((0.0, 1.0), HALF, [2.0], "not a number between"),
        ((0.0, 1.0), HALF, ["zero"], "not a number between"),
        ((0.0, 1.0), HALF, [np.nan], "not a number between"),
        ((0, 9), INTEGER, [0.5], "not an integer between"),
        (DAYS, np.array(DAYS), ["2031-01-01"], "not a date between"),
        (OneOf(("a", "b"), "a"), np.array(["a"]), ["a"], "anyway"),
        ((-1e308, 1e308), HALF, [], "too far apart"),
    ],
)
def test_what_cannot_be_a_cell_is_refused(support, drawn, atoms, words):
    """A wrong list of values would silently have no effect."""
    with pytest.raises(SamplerError, match=words):
        cells_of("x", support, drawn, bins=4, atoms=atoms)


def test_large_counts_survive_smoothing_and_noise_does_not():
    """The learned P would be spread out over bins in which nobody is."""
    cells = cells_of("x", (0.0, 1.0), HALF, bins=32)
    counts = np.zeros(len(cells))
    counts[10:14] = 2000
    counts[32] = 1500  # at zero
    noisy = counts + rng(3).laplace(0, 20, len(cells)).round()
    shares = shares_of(noisy, [cells], 9500, 20.0)
    assert abs(shares - counts / 9500).sum() < 0.03


def test_a_small_group_of_a_flag_stays_small_whether_it_is_a_number_or_a_category():
    """Fails if a 10% minority is learned as half of the people: its answers would get too little noise."""
    for support in ((0, 1), OneOf((0, 1), 0)):
        cells = cells_of("flag", support, np.array([0, 1]), bins=32)
        shares = shares_of(np.array([225.0, 25.0]), [cells], 250, 40.0)
        np.testing.assert_allclose(shares, [0.9, 0.1], atol=1e-12)
        empty = shares_of(np.array([250.0, -60.0]), [cells], 250, 40.0)
        assert 0.02 < empty[1] < 0.05  # a floor: 3% of n, or half of the noise's scale


def test_pairs_of_independent_columns_come_out_independent():
    """Noise in a table of many cells would look like dependence."""
    cells = [
        cells_of("x", (0.0, 1.0), HALF, bins=8),
        cells_of("y", OneOf(("a", "b"), "a"), np.array(["a"]), bins=8),
    ]
    truth = np.outer([1] * 8 + [0] * 2, [0.25, 0.75]) / 8
    noisy = (4000 * truth + rng(4).laplace(0, 20, truth.shape)).round()
    shares = shares_of(noisy.ravel(), cells, 4000, 20.0).reshape(truth.shape)
    assert np.linalg.matrix_rank(shares, tol=1e-9) == 1
    assert np.abs(shares - truth).sum() < 0.2
    turned = truth * np.where(np.arange(10) < 4, 1, 0)[:, None] * [2, 0] + truth * np.where(
        np.arange(10) < 4, 0, 1
    )[:, None] * [0, 2]
    turned /= turned.sum()
    noisy = (4000 * turned + rng(5).laplace(0, 20, truth.shape)).round()
    shares = shares_of(noisy.ravel(), cells, 4000, 20.0).reshape(truth.shape)
    assert np.abs(shares - turned).sum() < 0.3


def test_nothing_but_noise_gives_a_distribution_all_the_same():
    """A learned P could not be drawn from."""
    cells = cells_of("x", (0.0, 1.0), HALF, bins=16)
    assert shares_of(np.full(len(cells), -50.0), [cells], 10, 1.0).sum() == pytest.approx(1)


def test_weights_sum_to_a_fixed_total_exactly():
    """A draw would fall beyond the last cell."""
    for seed in range(50):
        shares = rng(seed).dirichlet(np.full(1 + seed * 7, 0.1))
        weights = weights_of(shares)
        assert sum(weights) == 65536 and min(weights) >= 0
        assert np.abs(np.array(weights) / 65536 - shares).max() <= 1 / 65536
