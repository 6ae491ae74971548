"""The test behind a stress test, its table, and the warning."""

import itertools
import json
import math

import numpy as np
import pytest

from privatize import plan
from privatize.calibration.neighbours import TURN
from privatize.calibration.stress import Stress, Tried, most_expected, times, warn_fragile, worst_of
from privatize.errors import FragileEstimateWarning
from tests.benchmarks.stress import GAPS, alarms
from tests.cases import for_each

PLAN = plan(gamma=0.05)


def tried(fresh, first=((1.0, 2.0),), worst=0):
    """Return gaps of a stress test, whose change has a name."""
    words = tuple(f"column {at} is different" for at in range(len(first)))
    return Tried(words, tuple(map(tuple, first)), worst, tuple(fresh))


def test_the_number_to_expect_is_exact():
    """The rate of false alarms would not be what is stated; compared with all orders of a few gaps."""
    m, count = 6, 4
    for k in range(1, m + 1):
        limit, wrong, orders = most_expected(m, k, count), [0] * (count + 1), 0
        for places in itertools.combinations(range(m + count), count):
            known = [rank for rank in range(m + count) if rank not in places]
            beyond = sum(rank > known[k - 1] for rank in places)
            orders += 1
            for least in range(beyond + 1):
                wrong[least] += 1
        above = wrong[limit + 1] if limit < count else 0
        assert 100 * above <= orders
        assert 100 * wrong[limit] > orders  # it is not larger than it must be


@for_each("name", list(GAPS))
def test_false_alarms_are_rare_whatever_the_gaps_are_like(name):
    """People would stop reading the warning. If 1% are false alarms, this fails once in 10,000 times."""
    rng = np.random.default_rng(1)
    assert sum(alarms(GAPS[name], 1.0, rng) for _ in range(1000)) <= 23


@for_each(("name", "factor"), [("normal", 3.0), ("lognormal", 5.0), ("0 to 4, all equally likely", 1.5)])
def test_large_changes_are_found(name, factor):
    """A wrong P would be found by nobody. About 90% are found; with other seeds, 3 in 1,000 would fail."""
    rng = np.random.default_rng(2)
    assert sum(alarms(GAPS[name], factor, rng) for _ in range(200)) >= 165


def test_the_choice_of_the_worst_costs_no_certainty():
    """Testing the pairs that the choice was made by would alarm far too often, so the test has its own."""
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(500):
        value = np.sort(rng.normal(size=PLAN.m))[PLAN.k - 1]
        first = rng.normal(size=(6, TURN))
        again = first[worst_of(first, value)]
        found += (again > value).sum() > most_expected(PLAN.m, PLAN.k, TURN)
    assert found > 0.02 * 500  # what a test of the same pairs would do


def test_failures_are_beyond_and_ties_are_not():
    """A function that fails on changed data would pass; a count, whose gaps are all 1, would not."""
    failing = tried([math.inf] * 20 + [0.5] * 40).judged(PLAN, 1.0)
    assert failing.rows[0].beyond == 20
    assert failing.rows[0].ratio == math.inf
    assert failing.fragile is failing.rows[0]
    assert times(math.inf) == "infinite"
    ties = tried([1.0] * 60).judged(PLAN, 1.0)
    assert ties.rows[0].beyond == 0
    assert ties.fragile is None


def test_what_hardly_matters_is_no_alarm():
    """The mean of values at both bounds has gaps a little larger than of uniform ones: that is no news."""
    for ratio, alarm in ((1.2, False), (1.3, True)):
        found = tried([ratio] * 30 + [0.5] * 30).judged(PLAN, 1.0)
        assert found.rows[0].beyond == 30
        assert (found.fragile is not None) is alarm


def test_only_the_worst_is_tested():
    """Six tests would alarm six times as often."""
    found = tried([0.1] * 60, [[0.1] * TURN, [9.0] * TURN], worst=0).judged(PLAN, 1.0)
    assert [row.pairs for row in found.rows] == [60, TURN]
    assert found.rows[1].beyond == TURN
    assert found.fragile is None
    assert found.summary() == "2 changes of P were tried, and none was found to break the estimate"


def test_gaps_are_stored_as_json():
    """An estimate that is read from the store would have lost its stress test."""
    made = tried([1.5, math.inf], [[0.25, 1e-300], [2.0, math.inf]], worst=1)
    assert Tried.from_json(json.loads(json.dumps(made.to_json()))) == made


def found_fragile() -> Stress:
    """Return a stress test that has found something."""
    return tried([2.0] * 20 + [0.5] * 43, [[0.5] * TURN, [2.0] * TURN], worst=1).judged(PLAN, 1.0)


def test_the_warning_says_what_was_found_and_what_to_do():
    """A warning without the assumption, the size and the remedies would only frighten."""
    with pytest.warns(FragileEstimateWarning) as caught:
        warn_fragile("slope", 500, found_fragile())
    (text,) = (str(each.message) for each in caught)
    wanted = (
        "slope(), n=500",
        "about 2.0 times as large if column 1 is different",
        "20 of 63 pairs",
        "at most 5",
    )
    for part in (*wanted, "learn(", "P.family()", "slope.estimate(500).stress", "configure(stress=False)"):
        assert part in text
    warn_fragile("slope", 500, None)
    warn_fragile("slope", 500, tried([0.1] * 63).judged(PLAN, 1.0))


def test_the_table_can_be_read():
    """A person would see numbers without a name."""
    found = found_fragile()
    assert repr(found) == (
        "stress test\n"
        "  0 of 4 beyond, about 0.5 times as large, if column 0 is different\n"
        "  20 of 63 beyond, about 2.0 times as large, if column 1 is different: fragile"
    )
    shown = found._repr_html_()
    assert "fragile: about 2.0 times as large if column 1 is different" in shown
    assert "20 of 63" in shown
