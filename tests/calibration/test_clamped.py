"""Sums with proven bounds: the bounds are attacked, and what comes out is what was promised."""

import functools
import itertools
import math
import pickle
import sys
import traceback
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from privatize import Exponential, Gaussian, Laplace, additive, privatize, samplers, sums
from privatize.calibration.clamped import Ball, Box, OneHot, as_bounds
from privatize.calibration.proven import proven_of
from privatize.errors import DataError, OutputError, PrivateRunError, SettingsError
from privatize.identity.fingerprint import fingerprint
from privatize.noise import exact
from tests.cases import for_each

FALSE_ALARM = 1e-6
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1e-300, 2.0**53, 0.1]


def rows_of_numbers(size, *ends):
    """Return records at the ends of bounds, special ones, and random ones."""
    rng = np.random.default_rng(3)
    corners = itertools.islice(itertools.product([*ends, *SPECIAL], repeat=size), 400)
    near = [np.nextafter(end, way) for end in ends for way in (-np.inf, np.inf)]
    drawn = [rng.normal(0, 10.0 ** rng.integers(-3, 4), size) for _ in range(100)]
    mixed = rng.choice(np.array([*ends, *near, *SPECIAL]), size=(100, size))
    return np.array([*corners, *drawn, *mixed], dtype=np.float64)


def numbers(*ends):
    """Return the same for records that are single numbers."""
    return rows_of_numbers(1, *ends)[:, 0]


ROWS = rows_of_numbers(2, -1.0, 3.0, 0.7)
TRIPLES = rows_of_numbers(3, 2.0, -2.0, 0.5)
FRAME = pd.DataFrame(ROWS, columns=["a", "b"])
# Functions with bounds, and records that their bounds are attacked with.
ATTACKED = {
    "mean": (sums.means(bounds=(0, 120)), numbers(0.0, 120.0)),
    "mean in a small box far from zero": (sums.means(bounds=(1e6, 1e6 + 1e-3)), numbers(1e6, 1e6 + 1e-3)),
    "means": (sums.means(bounds=([-1.0, 0.0], [3.0, 0.7])), ROWS),
    "columns": (sums.means(bounds=({"b": 0, "a": -1}, {"b": 0.7, "a": 3})), FRAME),
    "widths of all sizes": (sums.means(bounds=([0, -1e-9], [1e9, 1e-9])), rows_of_numbers(2, 1e9, 1e-9)),
    "sum of integers": (sums.additive(np.positive, average=False, bounds=(-5, 7)), numbers(-5.0, 7.0, 0.5)),
    "l2 ball": (sums.means(bounds=sums.ball(2, size=3)), TRIPLES),
    "l1 ball": (sums.means(bounds=sums.ball(2, size=3, norm="l1")), TRIPLES),
    "small ball": (sums.means(bounds=sums.ball(1e-30, size=2)), rows_of_numbers(2, 1e-30)),
    "counts": (sums.counts(["a", 1, 2**53 + 1]), ["a", 1, 2**53 + 1, 0.5, None, "b", True, [1], np.nan]),
    "one count": (sums.counts(["a"]), ["a", "b", None, {}, "a"]),
    "histogram": (sums.histogram([0, 1, 2, 5]), numbers(0.0, 1.0, 2.0, 5.0)),
    "one bin": (sums.histogram([0, 1]), numbers(0.0, 1.0)),
    "square": (sums.second_moments(bounds=(-3, 2)), numbers(-3.0, 2.0)),
    "second moments": (sums.second_moments(bounds=([-1, 0.5], [3, 0.7])), ROWS),
    "density": (sums.kde([0.0, 1.0, 2.0], 0.3), numbers(0.0, 1.0)),
}  # fmt: skip


def take(data, at):
    """Return some of the records."""
    if isinstance(data, list):
        return [data[i] for i in at]
    return data.iloc[at].reset_index(drop=True) if isinstance(data, pd.DataFrame) else data[at]


def gaps(function, data, pairs, n):
    """Return how far apart the totals of neighbours are: exact integers, in units of the answer."""
    rng, proven = np.random.default_rng(5), proven_of(function)
    size, found = len(data), []
    for _ in range(pairs):
        at, new, position = rng.integers(size, size=n), rng.integers(size), rng.integers(n)
        other = np.where(np.arange(n) == position, new, at)
        one, two = (proven.measure(take(data, each), n) for each in (at, other))
        found.append([int(a) - int(b) for a, b in zip(one, two, strict=True)])
    return found


@for_each("name", list(ATTACKED))
def test_no_pair_of_neighbours_exceeds_the_bound(name):
    """Answers would show more of a record than epsilon; planted bounds that are 30% too small are found."""
    function, data = ATTACKED[name]
    proven, n = proven_of(function), 4
    exponent = proven.bounds.exponent(n)
    unit = Fraction(2) ** exponent
    found = gaps(function, data, 120, n)
    for norm, size in (
        ("l1", lambda gap: sum(map(abs, gap)) ** 2),
        ("l2", lambda gap: sum(x * x for x in gap)),
    ):
        bound = Fraction(proven.bounds.sensitivity(exponent, norm)) * (
            1 + Fraction(1, 2**50)
        )  # our own float
        largest = max(map(size, found)) * unit**2
        assert largest <= bound**2
        if name not in ("density", "small ball") and (not name.endswith("ball") or name.startswith(norm)):
            assert largest > (bound * Fraction(7, 10)) ** 2


@for_each("name", list(ATTACKED))
def test_one_record_alone_stays_inside(name):
    """Totals could be beyond the floats that are exact; the row of a record would depend on others."""
    function, data = ATTACKED[name]
    proven, n = proven_of(function), 1000
    if isinstance(data, list):
        data = [record for record in data if not isinstance(record, list | dict)]
    with np.errstate(all="ignore"):
        rows = [proven.units(proven.function(take(data, [i])), n)[0] for i in range(len(data))]
        assert np.array_equal(rows, proven.units(proven.function(data), n))
    assert n * np.abs(rows).max() < 2**53


@for_each("seed", range(8))
def test_random_boxes_and_balls(seed):
    """A bound could hold for the sizes above and not for others."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 6)), int(rng.integers(1, 40))
    width = 10.0 ** rng.uniform(-20, 20, size=d)
    low = rng.normal(0, 1, d) * 10.0 ** rng.uniform(-20, 20)
    high = np.maximum(low + width, np.nextafter(low, np.inf))
    data = np.array(rng.choice([-1, 0, 0.5, 1, 2], (60, d)) * width + low)
    data[rng.random((60, d)) < 0.1] = rng.choice(SPECIAL)
    for bounds in ((low, high), sums.ball(width[0], d), sums.ball(width[0], d, "l1")):
        function = sums.means(bounds=bounds)
        proven = proven_of(function)
        exponent = proven.bounds.exponent(n)
        for norm, power in (("l1", 1), ("l2", 2)):
            bound = Fraction(proven.bounds.sensitivity(exponent, norm)) * (1 + Fraction(1, 2**50))
            for gap in gaps(function, data, 12, n):
                size = sum(abs(Fraction(x) * Fraction(2) ** exponent) ** power for x in gap)
                assert size <= bound**power


def test_an_odd_record_moves_no_other_in_any_container():
    """Text or a huge integer in one record would turn the whole column into something else."""
    odd = [1.0, "x", None, 2**70, 2**53 + 1, True, [1], 1e308, pd.NA, 10**400, b"", math.nan]
    two, keys = ([0, 0], [10, 1]), ({"b": 0, "a": 0}, {"b": 1, "a": 10})

    def objects(column):
        return pd.Series(column, dtype=object)

    for function, make in [
        (sums.means(bounds=(0, 10)), list),
        (sums.means(bounds=(0, 10)), objects),
        (sums.means(bounds=two), lambda column: [[value, 0.5] for value in column]),
        (sums.means(bounds=two), lambda column: {"a": column, "b": [0.5] * len(column)}),
        (sums.means(bounds=keys), lambda column: {"a": column, "b": [0.5] * len(column), "c": column}),
        (sums.means(bounds=two), lambda column: pd.DataFrame({"a": objects(column), "b": 0.5})),
        (sums.counts([3.0, 2**53 + 1, True]), list),
        (sums.counts([3.0, 2**53 + 1, True]), objects),
        (sums.histogram([0, 5, 10]), list),
        (sums.second_moments(bounds=(-2, 10)), list),
        (sums.additive(lambda values: [value * 2 for value in values], bounds=(0, 10)), list),
    ]:
        proven = proven_of(function)
        exponent = proven.bounds.exponent(4)
        totals = [proven.measure(make([3.0, 7.5, other, record]), 4) for other in (4, None) for record in odd]
        for some in (totals[: len(odd)], totals[len(odd) :]):  # neighbours: they differ in the last record
            gap = max(np.abs(one - other).sum() for one in some for other in some)
            assert math.ldexp(gap, exponent) <= proven.bounds.sensitivity(exponent, "l1")


# --- the privacy inequality ------------------------------------------------------------------------


def released(function, data, mechanism, delta, count, seed, factor=1.0):
    """Return many private answers, with a fixed seed, through `Proven.release`."""
    proven, n = proven_of(function), len(data)
    measured = proven.measure(data, n)
    if factor != 1:  # a bound that is too small
        object.__setattr__(proven, "bounds", Planted(proven.bounds, factor))
    before = exact.source.set(np.random.Generator(np.random.PCG64(seed)).bytes)
    try:
        return np.array([proven.release(measured, n, mechanism, 1.0, delta).vector for _ in range(count)])
    finally:
        exact.source.reset(before)


class Planted:
    """Bounds whose sensitivity is wrong."""

    def __init__(self, bounds, factor):
        self._bounds, self._factor = bounds, factor

    def __getattr__(self, name):
        return getattr(self._bounds, name)

    def sensitivity(self, *args):
        return self._factor * self._bounds.sensitivity(*args)


def exceeds(one, other, delta):
    """Tell whether one event is more likely than e^1 times the other plus delta, at FALSE_ALARM.

    By Clopper-Pearson limits.
    """
    count, hits, misses, level = len(one), int(one.sum()), int(other.sum()), FALSE_ALARM / 4
    low = stats.beta.ppf(level, hits, count - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - level, misses + 1, count - misses) if misses < count else 1.0
    return low > math.e * high + delta


@pytest.mark.slow
def test_privacy_inequality_at_the_bound():
    """Answers would be less private than they say; noise that is 30% too small is found.

    False-alarm rate 1e-6 for each pair of answers.
    """
    ages = np.full((2, 50), 60.0)
    ages[:, 0] = math.inf, 500.0  # what is not finite counts as the lower bound
    rows = np.full((1, 2), -9.0), np.full((1, 2), 9.0)
    cases = [
        (sums.means(bounds=(0, 120)), *ages),
        (sums.counts(["F", "M"]), ["F"] * 5, ["M"] + ["F"] * 4),
        (sums.additive(np.positive, average=False, bounds=([0, 0], [3, 1])), *rows),
        (sums.means(bounds=sums.ball(1, 2)), *rows),
    ]
    for (function, *pair), (mechanism, delta) in itertools.product(
        cases, [(Laplace(), 0.0), (Gaussian(), 0.05)]
    ):
        proven, n = proven_of(function), len(pair[0])
        low, high = (proven.finish(proven.total(proven.measure(x, n), n), n) for x in pair)
        gap = high - low
        scale = proven.release(proven.measure(pair[0], n), n, mechanism, 1.0, delta).scale
        for factor in (1.0, 0.7):
            one, two = (
                released(function, x, mechanism, delta, 8_000, seed, factor) for seed, x in enumerate(pair)
            )
            # Where the likelihood ratio is largest; for normal noise, where it is above e^epsilon.
            if isinstance(mechanism, Laplace):
                events = [(np.sign(gap) * (x - high) >= 0).all(axis=1) for x in (two, one)]
            else:
                cut = gap @ (low + high) / 2 + (factor * scale) ** 2
                events = [x @ gap > cut for x in (two, one)]
            assert exceeds(*events, delta) == (factor < 1), (function, mechanism, factor)


# --- what comes out --------------------------------------------------------------------------------


def answer(function, data, mechanism=None, delta=0.0):
    """Return a private answer with very little noise, and what was released."""
    proven, n = proven_of(function), len(data)
    proven.fits(data)
    mechanism = mechanism or Laplace()
    proven.check(mechanism, 1e5, delta)
    found = proven.release(proven.measure(data, n), n, mechanism, 1e5, delta)
    return proven.structure(n).rebuild(found.vector), found


def test_answers_have_the_structure_of_the_bounds():
    """The form of an answer would depend on data."""
    ages = np.array([10.0, 20.0, 600.0, np.nan])
    value, found = answer(sums.means(bounds=(0, 120)), ages)
    assert type(value) is float and value == pytest.approx(150 / 4, abs=0.01)
    assert found.sensitivity == pytest.approx(30) and found.scale == pytest.approx(30 / 1e5)
    value, found = answer(sums.additive(np.positive, average=False, bounds=(0, 120)), ages)
    assert type(value) is int and value == 150 and found.sensitivity == 120
    value, _ = answer(sums.additive(np.positive, average=False, bounds=(0.0, 120)), ages)
    assert type(value) is float
    frame = pd.DataFrame({"name": ["a", "b"], "age": [50, 200], "height": [1.5, None]})
    bounds = {"height": 1.0, "age": 0}, {"height": 2.5, "age": 120}
    for data in (frame, pl.from_pandas(frame)):
        value, found = answer(sums.means(bounds=bounds), data, Gaussian(), 0.5)
        assert value == {"height": pytest.approx(1.25, abs=3), "age": pytest.approx(85, abs=3)}
        assert found.sensitivity == pytest.approx(math.hypot(1.5, 120) / 2)
    value, found = answer(sums.counts(["F", "M"]), ["F", "M", "F", None])
    assert value == {"F": 2, "M": 1} and found.sensitivity == 2
    assert answer(sums.counts(["F", "M"]), ["F"], Gaussian(), 0.5)[1].sensitivity == pytest.approx(
        math.sqrt(2)
    )
    value, _ = answer(sums.histogram([0, 10, 20]), np.array([1, 2, 15, 99]))
    assert value.tolist() == [2, 1] and value.dtype == np.int64
    value, _ = answer(sums.second_moments(bounds=([0, -1], [2, 1])), np.array([[1.0, 1.0], [5.0, -9.0]]))
    assert value == pytest.approx([2.5, -0.5, 1.0], abs=0.01)
    points = np.array([0.0, 1.0])
    value, _ = answer(sums.kde(points, 0.5), np.array([0.0, 0.0, 1.0]))
    assert value == pytest.approx(sums.kde(points, 0.5)(np.array([0.0, 0.0, 1.0])), abs=0.01)


def test_without_noise_they_are_the_clamped_sums():
    """A user could not try the function on made-up records."""
    x = np.random.default_rng(0).normal(50, 30, (1000, 2))
    clamped = np.clip(x, 0, 100)
    assert sums.means(bounds=([0, 0], [100, 100]))(x) == pytest.approx(clamped.mean(axis=0), rel=1e-9)
    assert sums.additive(np.round, average=False, bounds=([0, 0], [100, 100]))(x).tolist() == [
        *np.round(clamped).sum(axis=0)
    ]
    assert sums.additive(lambda x: x[:, 0] / 7, average=False, bounds=(0, 1))(x) == round(
        np.clip(x[:, 0] / 7, 0, 1).sum()
    )
    with pytest.raises(OutputError, match="do not fit"):
        sums.means(bounds=(0, 1))(x)
    with pytest.raises(ZeroDivisionError):
        sums.additive(lambda x: [1 / 0 for _ in x], bounds=(0, 1))(x)


def test_failing_records_count_as_the_public_value():
    """An error would show that somebody's record is unusual, and nobody would get an answer."""

    def length(names):
        return [len(name) for name in names]

    def exits(values):
        if 13 in values:
            sys.exit(str(values))
        return values

    def drops(values):
        return [value for value in values if value != 13]

    def texts(values):
        return [str(value) if value == 13 else value for value in values]

    def none(values):
        raise RuntimeError(str(values))

    for function, data, expected in [
        (length, ["ab", None, "abc", 5], 5 + 2 * 1),
        (exits, [5, 13, 7], 12 + 1),
        (drops, [5, 13, 7], 12 + 1),
        (texts, [5, 13, 7], 12 + 1),
        (none, [5, 13, 7], 3),
        (lambda values: values[0], [5, 13], 2),
        (lambda values: np.array(values, dtype="M8[s]"), [5, 13], 2),
        (lambda values: [[value, value] for value in values], [5, 13], 2),
    ]:
        value, _ = answer(sums.additive(function, average=False, bounds=(1, 20)), data)
        assert value == expected
    with pytest.raises(OutputError):  # it has no rows for any data, and that is seen before it is paid for
        answer(sums.additive(lambda values: None, bounds=(1, 20)), [5, 13])
    zero = answer(sums.additive(none, average=False, bounds=sums.ball(3, 2)), [1, 2])[0]
    assert zero == pytest.approx([0, 0], abs=0.01)
    assert answer(sums.means(bounds=(1, 20)), [5, "x", 2**2000, None, 10**30])[0] == pytest.approx(
        5.6, abs=0.01
    )


def test_errors_of_any_kind_fail_one_record():
    """A panic of a library, which is no Exception in Python, would show that somebody's record is unusual."""

    class Panic(BaseException):
        pass

    def panics(values):
        if 13 in values:
            raise Panic(values)
        return values

    assert answer(sums.additive(panics, average=False, bounds=(1, 20)), [5, 13, 7])[0] == 13


def test_identifiers_stay_the_same_beside_a_missing_one():
    """With one value missing, numpy makes floats of a column: all large identifiers would not be counted."""
    large = 2**60 + 1
    function = sums.counts([large, True])
    nullable = [functools.partial(pd.Series, dtype=each) for each in ("Int64", "int64[pyarrow]")]
    for make in (pl.Series, *nullable):
        for last, count in ((large, 30), (None, 29)):
            data = make([large] * 29 + [last])
            assert proven_of(function).measure(data, 30).tolist() == [count, 0]
    flags = proven_of(sums.counts([False])).measure(pl.Series([False, None, True]), 3)
    assert flags.tolist() == [1]


def test_categories_of_others_do_not_show_in_a_record():
    """One person with a new category would change the codes of everybody."""
    codes = sums.additive(lambda column: column.cat.codes.to_numpy(), bounds=(0, 9))
    named = sums.additive(lambda column: column == "b", bounds=(0, 1))
    column = pd.Series(["b"] * 50, dtype=pd.CategoricalDtype(["a", "b"]))
    assert proven_of(codes).measure(column, 50) is None
    assert proven_of(named).measure(column, 50) is not None
    dummies = proven_of(sums.additive(pd.get_dummies, bounds=([0, 0], [1, 1])))
    for names in ("ab", "abc"):  # an error would tell how many there are
        dummies.fits(pd.Series([*names], dtype="category"))


def test_a_function_that_fails_on_some_records_is_checked_too():
    """A running sum would stay unnoticed if one record makes the function fail."""
    seen = []

    def running(values):
        seen.extend(values)
        return [len(seen) / 10] if len(values) == 1 else 1 / 0

    assert proven_of(sums.additive(running, bounds=(0, 20))).measure(list(range(12)), 12) is None


@for_each("n", [1, 2, 3, 1000])
def test_sensitivities_are_rounded_up(n):
    """Noise would be calibrated to a little less than one record can do."""
    rng = np.random.default_rng(n)
    for size in (1, 2, 3, 10, 1000):
        box = Box((0.0,) * size, tuple(rng.uniform(0.1, 3.0, size).tolist()), (size,))
        exponent = box.exponent(n)
        steps, unit = box._steps(exponent).tolist(), Fraction(2) ** exponent
        assert Fraction(box.sensitivity(exponent, "l1")) >= sum(steps) * unit
        assert Fraction(box.sensitivity(exponent, "l2")) ** 2 >= sum(step**2 for step in steps) * unit**2


def test_interrupts_pass():
    """A long evaluation could not be stopped."""

    def interrupted(values):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        proven_of(sums.additive(interrupted, bounds=(0, 1))).measure([1, 2], 2)


def test_functions_that_look_at_several_records_are_found():
    """The bound would say nothing, and the answer would be called private."""

    class Running:
        """A running sum: what it returns depends on what it has seen."""

        def __init__(self):
            self.total = 0.0

        def __call__(self, values):
            self.total += np.square(values).sum() / 1000
            return np.full(len(values), self.total)

    data = np.random.default_rng(1).normal(size=100)
    for mixed in (
        lambda x: x - x.mean(),
        np.sort,
        np.cumsum,
        lambda x: x / np.abs(x).max(),
        lambda x: np.arange(len(x)),
        lambda x: np.full(len(x), x[0]),
        np.argsort,
        Running(),
        np.roll,
    ):
        function = functools.partial(mixed, shift=1) if mixed is np.roll else mixed
        proven = proven_of(sums.additive(function, bounds=(-3, 3)))
        assert proven.measure(data, 100) is None
    weights = np.random.default_rng(2).normal(size=(50, 4))
    wide = np.random.default_rng(3).normal(size=(100, 50))
    for alone in (lambda x: x @ weights, lambda x: np.exp(x @ weights) / 1e3, lambda x: np.tanh(x[:, :4])):
        box = sums.additive(alone, bounds=([-9.0] * 4, [9.0] * 4))
        assert proven_of(box).measure(wide, 100) is not None
    assert "one record at a time" in proven.broken


def test_the_data_is_not_changed():
    """A function that works in place would change the user's data."""

    def emptied(people):
        return [person.pop() for person in people]

    for people in ([[5.0], [7.0]], np.array([[5.0], [7.0], None], dtype=object)[:2]):
        assert proven_of(sums.additive(emptied, bounds=(0, 10))).measure(people, 2) is not None
        assert [*people] == [[5.0], [7.0]]

    def doubled(x):
        x *= 2
        return x

    data = np.ones(5)
    assert answer(sums.additive(doubled, average=False, bounds=(0, 9)), data)[0] == 10
    assert data.tolist() == [1] * 5


def test_data_of_another_form_is_refused():
    """Every record would count as the public value, and the user would not see why."""
    rows, table = np.ones((5, 2)), pd.DataFrame({"a": [1.0], "b": ["x"]})
    for function, data, error in [
        (sums.means(bounds=(0, 1)), rows, OutputError),
        (sums.means(bounds=([0] * 3, [1] * 3)), rows, OutputError),
        (sums.second_moments(bounds=([0] * 3, [1] * 3)), rows, OutputError),
        (sums.additive(np.positive, bounds=(0, 1)), rows, OutputError),
        (sums.means(bounds=({"c": 0}, {"c": 1})), table, DataError),
        (sums.means(bounds=(0, 1)), np.array(["a", "b"]), DataError),
        (sums.histogram([0, 1]), rows, DataError),
        (sums.counts(["a"]), rows, DataError),
    ]:
        with pytest.raises(error):
            proven_of(function).fits(data)
    for function, data in [
        (sums.means(bounds=(0, 1)), [1.0]),
        (sums.means(bounds=({"a": 0}, {"a": 1})), table),
        (sums.additive(lambda x: [[a, b] for a, b in x], bounds=([0, 0], [1, 1])), rows),
        (sums.additive(lambda x: x - x.max(), bounds=(0, 1)), rows[:, 0]),
    ]:
        proven_of(function).fits(data)


def test_wrong_bounds_are_refused():
    """Noise would be calibrated to something that is no bound."""
    for bounds in (
        1, (0,), (0, 1, 2), "ab", (1, 0), (0, 0), (0, math.inf), (math.nan, 1), (None, 1), ("a", "b"),
        ([], []), ([0, 0], [1, 1, 1]), ([0, [1]], 1), ({"a": 0}, {"b": 1}), ({"a": 0}, 1), ({}, {}),
        (0, 1e200), (0, 1e-200), (0, 10**400), (False, True), {"low": 0},
    ):  # fmt: skip
        with pytest.raises(SettingsError, match="bounds="):
            sums.additive(np.positive, bounds=bounds)
    for arguments in (
        (0, 2),
        (-1, 2),
        (math.inf, 2),
        (math.nan, 2),
        ("a", 2),
        (1, 0),
        (1, 2.5),
        (1, 2, "l3"),
    ):
        with pytest.raises(SettingsError):
            sums.ball(*arguments)
    for bounds in (sums.ball(1, 2), ({"a": 0}, {"a": 1}), ([[0, 0]], [[1, 1]]), (0, 1e100)):
        with pytest.raises(SettingsError):
            sums.second_moments(bounds=bounds)


def test_bounds_are_values():
    """Two functions with the same bounds would not be the same."""
    assert as_bounds((0, 1)) == Box((0.0,), (1.0,), (), None, True) == as_bounds([0, 1])
    assert sums.ball(1, 2) == Ball(1.0, (2,), "l2") != sums.ball(1, 2, "l1")
    assert OneHot((1,)).sensitivity(0, "l1") == OneHot((1,)).sensitivity(0, "l2") == 1
    proven = proven_of(sums.means(bounds=(0, 1)))
    assert replace(proven).bounds == proven.bounds
    assert "clamped" in proven.words


# --- as private functions ----------------------------------------------------------------------------


def test_private_functions_need_neither_p_nor_gamma():
    """Nobody could ask for plain differential privacy, or one would get less than that without notice."""
    ages = np.random.default_rng(4).uniform(0, 100, 2000)
    mean = privatize(epsilon=1)(sums.means(bounds=(0, 120)))
    release = mean.release(ages)
    assert release.gamma == 0 and release.scale == pytest.approx(0.06)
    assert abs(release.value - ages.mean()) < 0.06 * 30  # more with probability e^-30
    assert "clamped" in repr(release)

    class Survey:
        limit = 65

        @additive(average=False, bounds=(0, 1))
        def older(self, ages, than=0):
            return ages >= self.limit + than

    counted = privatize(epsilon=5)(Survey().older)
    assert abs(counted(ages, than=10) - (ages >= 75).sum()) < 20
    assert type(counted(ages)) is int
    aligned = additive(lambda a, b: a * b, bounds=(0, 1))
    product = privatize(epsilon=5, data=["a", "b"])(aligned)
    assert abs(product(ages / 100, np.ones(2000)) - ages.mean() / 100) < 0.01
    # With gamma, counts are sampled as ever, and what has bounds refuses it.
    people = samplers.uniform(0, 100)
    assert (
        privatize(epsilon=1, gamma=0.05, sampler=people)(sums.histogram([0, 50, 100])).release(ages).gamma > 0
    )
    for options in ({"gamma": 0.05, "sampler": people}, {"sensitivity": 0.1, "sampler": people}):
        with pytest.raises(SettingsError):
            privatize(epsilon=1, **options)(sums.means(bounds=(0, 120)))
    for mechanism in (Exponential([1, 2]), Laplace(scaled="total"), "bernstein"):
        with pytest.raises(SettingsError):
            privatize(epsilon=1, mechanism=mechanism)(sums.counts(["F", "M"]))


def test_errors_show_no_record():
    """A record would be in a message or in a traceback."""
    secret = np.array([41.25, 17.5, 98765.0])
    mixed = privatize(epsilon=1)(additive(lambda x: x - x.mean(), bounds=(0, 1)))
    wide = privatize(epsilon=1)(sums.means(bounds=(0, 1)))
    for function, data, error in [
        (mixed, secret, PrivateRunError),
        (wide, secret[:, None] * [1, 1], OutputError),
    ]:
        with pytest.raises(error) as caught:
            function(data)
        shown = "".join(traceback.format_exception(caught.value))
        assert not any(text in shown for text in ("41.25", "17.5", "98765"))
        assert caught.value.__cause__ is caught.value.__context__ is None


def test_functions_with_bounds_pickle_and_are_told_apart():
    """Bounds would be lost on the way to another process, or in a key."""
    functions = [
        sums.means(bounds=(0, 1)),
        sums.means(bounds=(0, 2)),
        sums.means(bounds=sums.ball(1, 2)),
        sums.means(bounds=({"a": 0}, {"a": 1})),
        sums.means(),
    ]
    for function in (*functions, sums.counts(["a"]), sums.kde([0.0], 0.5)):
        again = pickle.loads(pickle.dumps(function))
        assert (again.bounds, again.own) == (function.bounds, function.own)
    assert len({fingerprint(function) for function in functions}) == len(functions)
