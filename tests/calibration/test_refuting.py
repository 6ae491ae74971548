"""A proven bound is attacked before it is used: true ones survive, false ones are shown to be false."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from privatize import Exponential, Laplace, samplers
from privatize.calibration.refuting import ProvenBound, check_bound, enlarged, refute
from privatize.data import records
from privatize.data.corners import Place
from privatize.errors import BoundError, CalibrationError, NotReproducibleError, SettingsError
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
AGES = samplers.integers(18, 100)
GROUPS = ["a", "b", "c", "d"]
FRAMES = samplers.table(
    value=samplers.uniform(-1, 3),
    group=samplers.categorical(GROUPS, p=[0.97, 0.01, 0.01, 0.01]),
    day=samplers.dates("2025-01-01", "2025-12-31"),
    gap=samplers.with_missing(samplers.uniform(0, 10), 0.001),
)
POLARS = samplers.table(frame="polars", value=samplers.uniform(-1, 3), group=samplers.categorical(GROUPS))
MANY_GROUPS = samplers.table(
    frame="dict",
    value=samplers.uniform(-1, 3),
    group=samplers.categorical([f"g{k}" for k in range(20)]),
    weight=samplers.uniform(0, 1),
)
RECORDS = samplers.table(frame="records", age=AGES, sex=samplers.categorical(["F", "M"]))
PAIRS = samplers.labelled(samplers.uniform(0, [1, 5]), samplers.categorical([0, 1]))


def attack(function, bound, n=101, sampler=UNIT, norm="l1", seed=1, **rest):
    rest = {"support": getattr(sampler, "support", None), "workers": "inline"} | rest
    return refute(function, n=n, sampler=sampler, norm=norm, sensitivity=bound, seed=seed, **rest)


def refuted(function, bound, **rest):
    with pytest.raises(BoundError) as caught:
        attack(function, bound, **rest)
    return caught.value


def mean_of_a(data):
    some = data["value"][data["group"] == "a"]
    return float(some.mean()) if len(some) else 0.0


def mean_of_g7(data):
    some = data["value"][data["group"] == "g7"]
    return float(some.mean()) if len(some) else 0.0


def weighted_mean(data):
    return float((data["value"] * data["weight"]).sum() / max(data["weight"].sum(), 1e-9))


def share_of_c(data):
    return float((data["group"] == "c").mean())


def largest_total(data):
    features, labels = data
    return float(features[labels == 1].sum(axis=0).max()) if (labels == 1).any() else 0.0


def first(data):
    return float(data[0])


def last(data):
    return float(data[-1])


def both_moments(data):
    return {"mean": data.mean(), "top": data.max()}


# -- what survives --


@for_each(
    "function, bound, rest",
    [
        (np.mean, lambda n: 1 / n, {}),
        (np.mean, lambda n: 1 / n, {"n": 1}),
        (np.mean, lambda n: 0.7 / n, {"n": 2, "sampler": samplers.uniform(0.1, 0.8)}),
        (np.mean, lambda n: 82 / n, {"sampler": AGES}),
        (np.sum, 1, {"n": 1000}),
        (np.median, 1.0, {}),
        (np.median, 0.5, {"n": 100}),
        (np.max, 1.0, {}),
        (np.ptp, 1.0, {}),
        (np.var, lambda n: (n - 1) / n**2, {}),
        (lambda x: np.array([x.mean(), x.max()]), lambda n: 1 + 1 / n, {}),
        (both_moments, lambda n: math.hypot(1, 1 / n), {"norm": "l2"}),
        (lambda x: int((x > 0.5).sum()), 1, {}),
        (lambda d: sum(one["age"] for one in d), 82, {"sampler": RECORDS}),
        (largest_total, 5.0, {"sampler": PAIRS}),
        (first, 1.0, {}),
    ],
)
def test_true_bounds_survive(function, bound, rest):
    """A proof that is right would be refused, and nobody could use the bound."""
    survives(function, bound, **rest)


@pytest.mark.slow
@for_each(
    "function, bound, rest",
    [
        (mean_of_a, 4.0, {"sampler": FRAMES}),
        (share_of_c, lambda n: 1 / n, {"sampler": FRAMES}),
        (lambda d: d["gap"].fillna(0).mean(), lambda n: 10 / n, {"sampler": FRAMES}),
        (lambda d: d["day"].dt.day_of_year.mean(), lambda n: 364 / n, {"sampler": FRAMES}),
        (lambda d: d.value_counts().reindex(GROUPS, fill_value=0), 2, {"sampler": FRAMES["group"]}),
        (lambda d: float(d["value"].mean()), lambda n: 4 / n, {"sampler": POLARS}),
        (np.mean, lambda n: 1 / n, {"n": 10**5}),
    ],
)
def test_true_bounds_survive_on_frames(function, bound, rest):
    """A proof that is right would be refused, and nobody could use the bound."""
    survives(function, bound, **rest)


def survives(function, bound, **rest):
    found = attack(function, bound, **rest)
    given = check_bound(bound, found.n)
    assert found.given == given <= found.value <= given * (1 + 1e-4)
    assert found.largest <= found.value
    assert 200 < found.tried <= 520


def test_a_bound_that_is_attained_is_found():
    """A search that never came near a bound could not show that it is false."""
    for function, bound in ((np.median, 1.0), (np.max, 1.0), (np.ptp, 1.0), (np.mean, 1 / 101), (first, 1.0)):
        assert attack(function, bound).largest == pytest.approx(bound, rel=1e-12)


def test_a_proven_bound_has_what_an_estimate_has():
    """Code that reads estimates would fail on bounds, or show that something was sampled."""
    found = attack(both_moments, 2.0)
    assert (found.gamma, found.average_gamma, found.shape.kind, found.bound) == (0.0, 0.0, "none", "proven")
    assert found.m == found.k == found.tried
    assert found.norm == "l1" and found.whole.tolist() == [False, False]
    assert found.schema is not None and found.structure.complete
    assert (
        repr(found) == f"ProvenBound(2, norm=l1, n=101, gamma=0, tried={found.tried}, largest=1.0099, seed=1)"
    )
    rows = dict(found.card().rows)
    assert (
        rows["from"] == "a bound that its author proved"
        and rows["holds for"] == "all pairs of neighbours (gamma=0)"
    )
    assert "a bound that its author proved" in found._repr_html_()
    copied = pickle.loads(pickle.dumps(found))
    assert isinstance(copied, ProvenBound) and repr(copied) == repr(found)


# -- what is refuted --


FALSE = [
    (np.mean, lambda n: 0.7 / n, {}),
    (np.mean, lambda n: 1 / n**2, {}),
    (np.sum, 0.7, {}),
    (np.max, lambda n: 1 / n, {}),
    # Right for nearly all draws, and broken at corners only.
    (np.max, 0.7, {}),
    (np.ptp, 0.7, {}),
    (np.var, lambda n: 0.7 * (n - 1) / n**2, {}),
    (np.median, 0.7, {}),
    (np.median, 0.35, {"n": 100}),
    (lambda x: float(np.quantile(x, 0.03)), 0.7, {"n": 101}),
    (lambda x: np.array([x.mean(), x.max()]), 0.9, {"norm": "l2"}),
    (lambda x: np.mean(x[:, 1] ** 4), lambda n: 0.7 / n, {"sampler": samplers.uniform([0, 0, 0], 1)}),
    (largest_total, 3.5, {"sampler": PAIRS, "n": 30}),
    # One category, or missing values, or dates.
    (lambda d: float(any(one["age"] == 100 for one in d)), 0.5, {"sampler": RECORDS, "n": 3}),
    (lambda d: max(one["age"] for one in d), 57, {"sampler": RECORDS}),
    (mean_of_g7, 2.8, {"sampler": MANY_GROUPS, "n": 51}),
    (weighted_mean, 2.8, {"sampler": MANY_GROUPS, "n": 51}),
    # One position.
    (first, 0.99, {}),
    (last, 0.99, {}),
    (lambda x: first(x) * (x[1:] == 0).all(), 0.7, {}),
    # A value beyond all draws, where it is allowed.
    (np.mean, lambda n: 8 / n, {"sampler": samplers.normal(0, 1), "domain": "as-is"}),
]
FALSE_AND_SLOW = [
    (np.max, 0.7, {"n": 30_000}),
    (np.median, 0.7, {"n": 30_001}),
    (lambda x: float(np.quantile(x, 0.9)), 0.7, {"n": 1001}),
    (np.median, 57, {"n": 1001, "sampler": AGES}),
    (mean_of_a, 2.8, {"sampler": FRAMES}),
    (share_of_c, lambda n: 0.7 / n, {"sampler": FRAMES}),
    (lambda d: 50.0 * d["gap"].isna().any(), 1.0, {"sampler": FRAMES}),
    (lambda d: d["day"].max().day_of_year, 250, {"sampler": FRAMES}),
]


def is_refuted(function, bound, **rest):
    error = refuted(function, bound, **rest)
    assert isinstance(error, CalibrationError)
    assert error.gap > error.bound == check_bound(bound, error.n)


@for_each("function, bound, rest", FALSE)
def test_false_bounds_are_refuted(function, bound, rest):
    """The noise would be too small for some pairs, and the answer not private."""
    is_refuted(function, bound, **rest)


@pytest.mark.slow
@for_each("function, bound, rest", FALSE_AND_SLOW + FALSE)
def test_false_bounds_are_refuted_with_any_seed(function, bound, rest):
    """It would be a matter of luck, that is of the seed, whether a false bound is found."""
    for seed in (2, 3, 4):
        is_refuted(function, bound, seed=seed, **rest)


def test_the_error_shows_the_pair():
    """Nobody could see what is wrong with a proof that nearly everybody would believe."""
    error = refuted(np.max, 0.7)
    assert {error.replaced, error.replacement} == {"0.0", "1.0"}
    text = str(error)
    assert (
        "sensitivity=0.7 is not a bound for max(): two answers are 1 apart (l1). On made-up "
        "records from P: of n=101 records the one" in text
    )
    assert (
        f"at position {error.position}, 0.0, was replaced by 1.0; the others are 100 × 0.0. A bound" in text
    )
    assert "gamma=" in text and "\n" not in text
    copied = pickle.loads(pickle.dumps(error))
    assert str(copied) == text and copied.gap == 1.0 and copied.bound == 0.7
    assert "the others are 99 × a draw." in str(refuted(np.mean, 0.001, n=100))
    frame = refuted(lambda d: d["day"].max().day_of_year, 250, sampler=FRAMES)
    assert "day='2025-12-31" in frame.replaced + frame.replacement


def test_a_function_that_fails_has_no_bound():
    """An error, or an answer that is not finite, would show that the private data is of that kind."""
    error = refuted(lambda x: math.inf if x.max() == x.min() else x.mean(), 100)
    assert error.gap == math.inf and "the function failed" in str(error) and "not finite" in str(error)

    def fails(data):
        if data.min() == 1.0:
            raise ZeroDivisionError("all {ones}")
        return data.mean()

    error = refuted(fails, 0.01)
    assert "ZeroDivisionError: all {ones}" in str(error) and isinstance(error.__cause__, ZeroDivisionError)
    error = refuted(lambda d: d.groupby("group", observed=True).value.mean().to_dict(), 9, sampler=FRAMES)
    assert "different structure" in str(error) and "reindex" in str(error)


def test_a_function_that_is_not_reproducible_is_refused():
    """Two runs on the same data would differ by more than the bound."""
    state = itertools.count()
    with pytest.raises(NotReproducibleError):
        attack(lambda x: x.mean() + next(state), 1000.0)


def test_the_same_seed_tries_the_same_pairs_anywhere():
    """Whether a bound is refuted could depend on luck, or on the number of cores."""
    for where in ("inline", 2):
        found = attack(np.median, 1.0, workers=where)
        assert (found.tried, found.largest) == (lambda one: (one.tried, one.largest))(attack(np.median, 1.0))
        assert str(refuted(np.median, 0.7, workers=where)) == str(refuted(np.median, 0.7))
    assert attack(np.mean, 0.01, seed=None).seed != attack(np.mean, 0.01, seed=None).seed


def test_pairs_are_in_the_container_of_the_private_data_and_in_the_support():
    """A bound would be refuted, or trusted, because of data that cannot occur."""
    seen = set()

    def spy(data):
        assert (
            type(data) is list
            and len(data) == 5
            and all(type(one) is float and 0 <= one <= 1 for one in data)
        )
        seen.update(data)
        return sum(data)

    attack(spy, 1.0, n=5, like=records.describe([0.5]))
    assert {0.0, 1.0} <= seen

    def check(data):
        assert type(data) is pd.DataFrame and data["group"].dtype.categories.tolist() == GROUPS
        assert data["value"].between(-1, 3).all() and data["day"].dt.year.eq(2025).all()
        assert data["gap"].dropna().between(0, 10).all() and data["group"].notna().all()
        assert list(data.index) == list(range(7))
        return 1.0

    attack(check, 1.0, n=7, sampler=FRAMES)


def test_records_that_a_function_changes_are_its_own():
    """A function that changes records in place would see some of them twice, and have no bound."""

    def grow(data):
        for one in data:
            one["age"] += 1
        return sum(one["age"] for one in data)

    assert attack(grow, 82, sampler=RECORDS).largest == 82


def test_mechanisms_measure_in_their_own_norm():
    """A bound in another norm than the mechanism's would be accepted."""
    steps = lambda x: np.array([x.sum(), -x.sum()])  # noqa: E731
    assert attack(steps, 2.0, norm=Laplace().norm).norm == "l1"
    refuted(steps, 1.0, norm=Laplace().norm)
    assert attack(steps, 1.0, norm=Exponential([0.0, 1.0]).norm).norm == "range"


# -- rounding --


def loop_sum(values):
    total = 0.0
    for value in values:
        total += value
    return total


def test_the_allowance_for_rounding_covers_a_sum_from_left_to_right():
    """Sums of neighbours in floats differ by more than the range, and the noise would be too small."""
    exponent = 12
    n, unit = 2 ** (exponent + 1), 2.0 ** (exponent - 53)  # of numbers just below 2^12
    rest = [-0.75 * unit] * (n - 2**exponent - 1)
    one, other = ([end, *[1.0] * 2**exponent, *rest] for end in (1.0, -1.0))
    gap = loop_sum(one) - loop_sum(
        other
    )  # above 2^12 each of the small numbers is lost, below it counts fully
    assert gap > 2.0 + 100 * n * 2.0**-52 * 2.0  # n·2^-52·range would not do
    assert gap <= enlarged(2.0, n, [Place((0,), (-1.0, 1.0))], {"float64"})


def test_the_allowance_follows_the_theorem():
    """An allowance that is too small breaks privacy, and one that is too large adds noise for nothing."""
    column = lambda low, high: Place((0,), (low, high))  # noqa: E731
    for known, dtypes, n, expected in (
        ([], set(), 10**6, 2e12 * 2.0**-53),
        ([column(0, 120), column(1000, 1001)], {"float64"}, 1000, 2e6 * 2.0**-53 * 1001),
        ([column(0, 120)], {"float32", "float64"}, 1000, 2e6 * 2.0**-24),
        ([column(0, 120)], {"float16"}, 10, 200 * 2.0**-11),
        ([column(0, 2), column(1000, 1000)], set(), 1000, 2e6 * 2.0**-53 * 500),
        ([column(5, 5), Place((0,), ("a", None))], set(), 10**5, 2e10 * 2.0**-53),
    ):
        assert enlarged(3.0, n, known, dtypes) == pytest.approx(3 * (1 + expected), rel=1e-14)
    assert enlarged(1.0, 1, [], set()) > 1.0
    single = attack(lambda x: x.astype(np.float32).mean(), 0.01, n=100)
    assert single.value == pytest.approx(0.01 * (1 + 2e4 * 2.0**-24), rel=1e-14)
    small = samplers.uniform(0, 1).map(lambda x: x.astype(np.float32), support=(0, 1))
    assert attack(lambda x: float(x.mean()), 0.01, n=100, sampler=small).value == single.value


def test_as_is_takes_the_bound_as_it_is_given():
    """The user says that the bound holds for any values, and more noise was not asked for."""
    found = attack(
        lambda x: np.clip(x, 0, 1).mean(), 0.01, n=100, sampler=samplers.normal(0, 1), domain="as-is"
    )
    assert found.value == found.given == 0.01 < found.largest * (1 + 1e-12)


# -- the bound itself --


@for_each(
    "bound",
    [
        True, np.True_, math.nan, -1.0, 0, 0.0, -0.0, math.inf, 10**400, 1e-301, "1", None, 1j, [1.0],
        lambda n: 0.0, lambda n: 100 - n, lambda n: 120 - n, lambda n: math.nan, lambda n: "1", lambda: 1.0,
        lambda n: 1 / (n - 101), lambda n: 10.0**-n * 1e-200, lambda n: None,
    ],
)  # fmt: skip
def test_what_is_no_bound_is_refused(bound):
    """No noise, or noise of no use, would be added."""
    with pytest.raises(SettingsError, match=r"sensitivity.*(n: 120 / n|a function of the number of records)"):
        check_bound(bound, 101)
    with pytest.raises(SettingsError):
        attack(np.mean, bound)


def test_a_bound_becomes_a_float_that_is_not_below_it():
    """A bound would be rounded to something smaller."""
    assert check_bound(Fraction(1, 10), 5) >= Fraction(1, 10)
    assert check_bound(Fraction(1, 3), 5) >= Fraction(1, 3)
    assert check_bound(2**53 + 1, 5) >= 2**53 + 1
    assert check_bound(np.float32(0.5), 5) == 0.5
    assert check_bound({7: 0.25}.__getitem__, 7) == 0.25  # known for one n only


def test_n_must_be_a_number_of_records():
    """A wrong n would end in an error that says nothing about it."""
    for n in (0, -1, 2.5, "ten"):
        with pytest.raises(SettingsError, match="number of records"):
            attack(np.mean, 1.0, n=n)
