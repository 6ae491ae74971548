"""A changed P must be a P like any other, and be changed in what its words say and in nothing else."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privatize.data import records
from privatize.errors import SamplerError
from privatize.identity.declared import declare
from privatize.identity.fingerprint import fingerprint
from privatize.samplers import (
    Change,
    boolean,
    bootstrap,
    categorical,
    choice,
    dates,
    dependent,
    from_function,
    integers,
    labelled,
    marginal,
    normal,
    table,
    uniform,
    with_missing,
)
from privatize.samplers.base import traits_of
from privatize.samplers.changes import family_changes, stress_changes
from tests.cases import for_each
from tests.samplers import columns as tables
from tests.samplers import combinations as combined

CODES = [
    *combined.CODES,
    *tables.CODES,
    "uniform(0, [1, 2, 3], size=(2, 3))",
    "normal(40, 12, low=10, high=120)",
]
ALARM = 1e-6  # the false-alarm rate of each statistical comparison below


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def make(code):
    """Make a sampler from its code."""
    return eval(code, dict(combined.NAMES | tables.NAMES | {"Change": Change}))


def changes_of(P):
    """Return all changes that a family or a stress test makes."""
    return [*dict.fromkeys([*family_changes(P), *stress_changes(P)])]


def inside(drawn, support):
    """Tell whether everything drawn lies in the support."""
    if isinstance(support, dict):
        return all(tables.lies_in(v, support.get(k)) for k, v in tables.columns_of(drawn).items())
    return combined.inside(drawn, support)


@pytest.mark.slow
@for_each("code", CODES)
def test_draws_stay_what_p_draws(code):
    """Private data would not match a member of the family, or be clipped to where the member never draws."""
    P = make(code)
    many = P.draw(300, rng(1))
    for change in changes_of(P):
        Q = P.changed(change)
        drawn = Q.draw(300, rng(1))
        assert repr(Q.support) == repr(P.support)
        assert records.describe(drawn) == records.describe(many), change
        assert records.describe(Q.draw(0, rng())) == records.describe(many), change
        assert records.count(Q.draw(1, rng())) == 1
        assert inside(drawn, P.support), change
        assert records.equal(drawn, Q.draw(300, rng(1)))


@pytest.mark.slow
@for_each("code", CODES[::3])
def test_a_changed_p_has_one_identity(code):
    """The same member, made in another process, would be calibrated and budgeted again."""
    P = make(code)
    for change in changes_of(P)[:3]:
        Q = P.changed(change)
        again = make(code).changed(next(each for each in changes_of(make(code)) if each == change))
        back = pickle.loads(pickle.dumps(Q))
        for other in (again, back, make(repr(Q))) if code not in combined.BOOTSTRAPS else (again, back):
            assert other == Q
            assert hash(other) == hash(Q)
            assert fingerprint(other) == fingerprint(Q)
            assert records.equal(other.draw(20, rng(2)), Q.draw(20, rng(2)))
        assert declare(again).digest == declare(Q).digest != declare(P).digest
        assert declare(Q).lossless == declare(P).lossless


def test_numbers_in_a_change_may_be_written_in_any_way():
    """A colleague who writes 1.0 for 1 would have another P in the ledger."""
    one = Change(spread=[("value", 2, 40, True)], swapped=[("value", [1], [2, 3], [1, 0])])
    other = Change(
        spread=(("value", 2.0, np.float64(40.0), 1),), swapped=[["value", (1,), (2, 3), (1.0, 0.0)]]
    )
    assert one == other
    assert fingerprint(one) == fingerprint(other)
    assert declare(integers(0, 99).changed(one)).digest == declare(integers(0, 99).changed(other)).digest


def two_sided(found, of, share):
    """Tell whether a count is compatible with a share."""
    return stats.binomtest(int(found), of, share).pvalue > ALARM


def earned(columns, generator):
    """Make a column that depends on another one."""
    return generator.normal(np.where(columns["sex"] == "F", 30, 10), 3)


def above(X, generator):
    """Make labels that depend on the features."""
    return (X.sum(axis=1) + generator.normal(0, 0.3, len(X)) > 1.4).astype(int)


SHARES = [
    (categorical(["a", "b", "c"], p=[0.6, 0.3, 0.1]), lambda d: d),
    (table(sex=categorical(["F", "M"], p=[0.2, 0.8]), ok=boolean(0.9), frame="dict"), lambda d: d["sex"]),
    (table(sex=categorical(["F", "M"], p=[0.2, 0.8]), pay=earned, frame="dict"), lambda d: d["sex"]),
    (labelled(uniform(0, 1, size=2), above, support=[0, 1]), lambda d: d[1]),
    (bootstrap(pd.DataFrame({"g": list("uuuvvw") * 9, "h": list("xyxyxz") * 9})), lambda d: np.array(d["g"])),
    (integers(0, 1), lambda d: d),
    (with_missing(choice(["a", "b"], p=[0.9, 0.1]), 0.3), lambda d: d),
]


@for_each(("P", "column"), SHARES, ids=repr)
def test_the_share_of_a_value_is_really_half(P, column):
    """A family would promise γ for groups half as large, and not have tried them.

    Medians and shares come from 16,384 draws, so half is compared with half of the share among these: the
    expected share is off by less than 2% of itself, and this slack is added to the test of rate 1e-6.
    """
    size, before = 20_000, column(P.draw(100_000, rng(3)))
    for change in family_changes(P):
        for label, values, *_ in (*change.thinned, *change.swapped):
            if label in ("ok", "h"):
                continue
            share = np.mean([before == value for value in values]) * len(values)
            after = column(P.changed(change).draw(size, rng(4)))
            count = sum(int((after == value).sum()) for value in values)
            assert two_sided(count, size, 0.98 * share / 2) or two_sided(count, size, 1.02 * share / 2), (
                change
            )
            assert abs(count / size / share - 0.5) < 0.1


def test_thinning_keeps_the_dependence_inside_a_record():
    """Members would be about records that P never draws, such as men with women's incomes."""
    P = table(sex=categorical(["F", "M"], p=[0.2, 0.8]), pay=earned, frame="dict")
    thinned = [change for change in family_changes(P) if change.thinned]
    assert len(thinned) == 2
    for change in thinned:
        drawn = P.changed(change).draw(5000, rng(5))
        women = drawn["sex"] == "F"
        # Each mean has a standard error below 0.15; ten of them have a false-alarm rate below 1e-20.
        assert abs(drawn["pay"][women].mean() - 30) < 1.5
        assert abs(drawn["pay"][~women].mean() - 10) < 1.5


def test_records_do_not_depend_on_how_many_are_drawn():
    """A pair of neighbours of n records would have another law than the two halves of a larger draw."""
    P = labelled(uniform(0, 1, size=2), above, support=[0, 1])
    Q = P.changed(next(change for change in family_changes(P) if change.thinned))
    generator = rng(6)
    ones = np.array([Q.draw(1, generator)[0][0] for _ in range(2000)])
    pairs = np.array([Q.draw(3, generator)[0][2] for _ in range(2000)])
    many = Q.draw(4000, generator)[0]
    for one, other in ((ones, many), (pairs, many), (many[:2000], many[2000:]), (ones, pairs)):
        for at in (0, 1):
            assert stats.ks_2samp(one[:, at], other[:, at]).pvalue > ALARM
    halves = many[0::2, 0], many[1::2, 0]
    assert abs(np.corrcoef(*halves)[0, 1]) < 0.12  # 5.3 standard errors: a false-alarm rate below 1e-6


def test_the_spread_is_half_or_twice_around_the_median():
    """The stress test would say that a column is half as spread out, and it is not."""
    P = normal(40, 2, low=0, high=100)
    before = np.quantile(P.draw(50_000, rng(7)), [0.1, 0.5, 0.9])
    half, double = (P.changed(change) for change in family_changes(P) if change.spread)
    for Q, factor in ((half, 0.5), (double, 2)):
        after = np.quantile(Q.draw(50_000, rng(7)), [0.1, 0.5, 0.9])
        assert np.allclose(after, before[1] + factor * (before - before[1]), atol=0.05)
    assert {0.0, 1.0} <= set(uniform(0, 1).changed(Change(spread=[("value", 2, 0.5, False)])).draw(99, rng()))


def test_integers_and_dates_stay_integers_and_dates():
    """A number of children would become 0.5, or half of all flags would be lost by rounding."""
    flags = table(a=integers(0, 3), frame="dict")
    halved = flags.changed(Change(spread=[("a", 0.5, 0, True)])).draw(9000, rng(8))["a"]
    assert halved.dtype == np.int64
    assert two_sided((halved == 0).sum(), 9000, 0.375)  # 0 always, and 1 in half of the cases
    whole = with_missing(integers(0, 99), 0.3)
    drawn = whole.changed(next(family_changes(whole))).draw(500, rng(8))
    seen = drawn[~np.isnan(drawn)]
    assert (seen == np.rint(seen)).all()
    assert 0 < len(seen) < 500
    days = dates("2020-01-01", "2020-12-31")
    half, double = (days.changed(change).draw(2000, rng(8)) for change in family_changes(days))
    assert half.min() > np.datetime64("2020-03-25") and half.max() < np.datetime64("2020-10-05")
    assert double.min() == np.datetime64("2020-01-01") and double.max() == np.datetime64("2020-12-31")


def test_zeros_that_are_no_rounded_numbers_stay():
    """A column that is half zeros would have no zeros in the members with another spread."""
    P = from_function(zero_inflated, support=(0, 100))
    drawn = P.changed(Change(spread=[("value", 0.5, 30, False)])).draw(1000, rng(9))
    assert two_sided((drawn == 0).sum(), 1000, 0.5)


def zero_inflated(n, generator):
    """Draw numbers of which half are 0."""
    return np.where(generator.random(n) < 0.5, 0.0, generator.uniform(20, 80, n))


def test_zeros_and_missing_values_are_added_where_p_has_them():
    """Missing values in a column that P draws without would break every member's schema."""
    P = table(
        a=uniform(0, 9), b=uniform(1, 9), c=with_missing(uniform(1, 9), 0.1), s=boolean(), frame="polars"
    )
    (change,) = (each for each in family_changes(P) if each.added)
    assert change.words == "zeros and missing values are more frequent"
    drawn = P.changed(change).draw(4000, rng(10))
    assert two_sided((drawn["a"] == 0).sum(), 4000, 0.1)
    assert not (drawn["b"] == 0).any() and drawn["b"].null_count() == 0
    assert two_sided(drawn["c"].null_count(), 4000, 1 - 0.9 * 0.9)
    both = uniform([0, 1], [9, 9]).changed(Change(added=[("value", "zeros", [0.5, 0])])).draw(1000, rng(11))
    assert two_sided((both[:, 0] == 0).sum(), 1000, 0.5) and not (both[:, 1] == 0).any()


def test_a_part_of_a_changed_table_is_a_part_of_its_records():
    """A question about one column would be calibrated under another law than one about all."""
    P = table(sex=categorical(["F", "M"], p=[0.2, 0.8]), pay=dependent(earned), frame="pandas")
    Q = P.changed(next(change for change in family_changes(P) if change.thinned))
    assert Q["pay"].draw(50, rng(12)).equals(Q.draw(50, rng(12))["pay"])
    assert Q[["sex"]].draw(50, rng(12)).equals(Q.draw(50, rng(12))[["sex"]])
    X, y = labelled(Q, "pay").draw(50, rng(12))
    assert list(X.columns) == ["sex"] and y.name == "pay"
    own = table(c=categorical(["u", "v"]).changed(Change(swapped=[("value", ["u"], ["v"], [1])])))
    assert own.draw(3, rng())["c"].dtype == pd.CategoricalDtype(["u", "v"])


def test_a_changed_p_of_fixed_size_keeps_its_size():
    """A member would use all records of growing data, where P uses a thousand."""
    P = uniform(0, 1).fixed(size=1000)
    Q = P.changed(stress_changes(P)[0])
    assert traits_of(Q).size == 1000
    assert repr(Q).endswith(".fixed(size=1000)")


def test_only_changes_without_randomness_are_streamable():
    """Pairs that are drawn together would have other records than pairs that are drawn one by one."""
    P = uniform(0, 1)
    for change in family_changes(P):
        assert traits_of(P.changed(change)).streamable == bool(change.spread)
        assert traits_of(P.changed(change)).iid and traits_of(P.changed(change)).immutable


def test_records_that_share_a_parameter_are_not_drawn_again():
    """A record that is drawn again would have another parameter than the rest of its dataset."""
    P = marginal(normal(0, 1), lambda t, g: g.normal(t) > 0, per="dataset", support=[False, True])
    assert all(not change.thinned for change in family_changes(P))
    with pytest.raises(SamplerError, match="share a parameter"):
        P.changed(Change(thinned=[("value", [True], 0.5)]))


def test_a_change_that_does_not_fit_is_refused():
    """A member would silently be P itself."""
    with pytest.raises(SamplerError, match="names 'age', which is no column"):
        uniform(0, 1).changed(Change(spread=[("age", 0.5, 0, False)]))
    for wrong in ({"spread": [("age", 0.5)]}, {"added": [("age", "ones", 0.1)]}, {"thinned": 3}):
        with pytest.raises(SamplerError, match="a step is spread="):
            Change(**wrong)
    with pytest.raises(SamplerError, match="a change is needed"):
        uniform(0, 1).changed(0.5)


@for_each(
    ("change", "words"),
    [
        (Change(spread=[("carat", 0.5, 1, False)]), "`carat` is half as spread out"),
        (Change(spread=[("a", 2, 1, False), ("b", 2, 1, False)]), "`a` and `b` are twice as spread out"),
        (Change(spread=[("X", [0.5, 1, 1], 0, False)]), "`X[0]` is half as spread out"),
        (Change(spread=[("X", [2] * 4 + [1], 0, False)]), "`X` (4 of 5 numbers) is twice as spread out"),
        (Change(spread=[("a", 3, 1, False)]), "`a` is 3 times as spread out"),
        (Change(thinned=[("sex", ["F"], 0.3)]), "'F' of `sex` is half as frequent"),
        (Change(swapped=[("c", [1, 2, 3, 4], [5], [1])]), "1, 2, 3 and 1 others of `c` are half as frequent"),
        (Change(added=[("a", "missing", 0.1)]), "missing values are more frequent"),
    ],
)
def test_words(change, words):
    """A warning would not say which assumption an estimate hangs on."""
    assert change.words == words
    assert eval(repr(change), {"Change": Change}) == change
