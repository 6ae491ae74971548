"""How many records conversion changes is told with differential privacy, and nothing else is."""

import logging
import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize import Blocks, Budget, privatize, samplers, seal, sums
from privatize.errors import ArgumentError, BudgetExceeded, DataError, PrivateRunError, SettingsError
from privatize.function import counting, opening
from tests.cases import for_each
from tests.function.sentinels import PRIVATE, SENTINEL, TEXT, holds_sentinel
from tests.function.test_leaks import assert_clean

UNIT = samplers.uniform(0, 1)
TABLE = samplers.table(
    age=samplers.integers(0, 120),
    income=samplers.with_missing(samplers.uniform(0, 1000), 0.1),
    region=samplers.categorical(["East", "West"]),
    score=samplers.normal(0, 1),
    frame="records",
)
PROMISE = {"epsilon": 1, "gamma": 0.2}


def average(x):
    return float(np.mean(x))


def first(rows):
    return float(len(rows))


def mean_of(sampler=UNIT, function=average, **more):
    return privatize(**(PROMISE | {"sampler": sampler} | more))(function)


def record(age=31, income=10.0, region="East", score=0.0):
    return {"age": age, "income": income, "region": region, "score": score}


@pytest.fixture
def quiet(monkeypatch):
    """Leave the noise out, and note what it was asked for."""
    asked = []

    def none(vector, sensitivity, epsilon, whole):
        asked.append((sensitivity, epsilon, bool(whole.all())))
        return vector

    monkeypatch.setattr(counting.grid, "laplace", none)
    return asked


def test_what_is_counted(quiet):
    """A user must be told that "East " became the first category, in which column, and how often."""
    people = [record() for _ in range(6)]
    people += [record(age=430), record(age=None), record(income=None), record(income=-1.0, region="East ")]
    found = mean_of(TABLE, first).changed(people, epsilon=0.5)
    counts = {(each.column, each.kind): each.count for each in found.counts}
    assert counts == {
        ("age", "clipped"): 1,
        ("age", "filled"): 1,
        ("income", "clipped"): 1,
        ("region", "recoded"): 1,
        ("region", "filled"): 0,
    }
    assert {each.share for each in found.counts} == {0.1, 0.0}
    assert (found.n, found.epsilon, found.given) == (10, 0.5, False)
    # Two for columns with two kinds of changes, one for the column with one, none without bounds.
    assert found.sensitivity == 5
    assert quiet == [(5, 0.5, True)]


VALUES = {
    "age": st.sampled_from([None, -1, 5, 5.5, 430, math.nan]),
    "income": st.sampled_from([None, -1.0, 5.0, 1e9]),
    "region": st.sampled_from([None, "East", "East ", "West"]),
    "score": st.sampled_from([0.0, 1e9]),
}


COUNTED = mean_of(TABLE, first)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=6), st.fixed_dictionaries(VALUES), st.data()
)
def test_one_record_moves_the_counts_by_the_sensitivity_at_most(people, other, data):
    """The counts would not be private if one person could move them by more than the noise is for."""
    at = data.draw(st.integers(0, len(people) - 1))
    raw = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting.grid, "laplace", lambda vector, *_: raw.append(vector) or vector)
        sensitivities = {
            COUNTED.changed(each, epsilon=1).sensitivity
            for each in (people, [*people[:at], other, *people[at + 1 :]])
        }
    assert len(sensitivities) == 1  # it is public
    assert np.abs(raw[0] - raw[1]).sum() <= sensitivities.pop()


def test_the_intervals_hold_together(monkeypatch):
    """A user would be told that something is above the noise that is noise, more than once in 20 tables.

    The probability that all counts are within the width is computed exactly, from the discrete distribution.
    """
    for epsilon in (0.01, 0.1, 1.0, 30.0):
        found = mean_of(TABLE, first).changed([record()] * 10, epsilon=epsilon)
        p = math.exp(-epsilon / found.sensitivity)
        outside = 2 * p ** (found.within + 1) / (1 + p)
        assert (1 - outside) ** len(found.counts) >= 0.95
        wider = 2 * p**found.within / (1 + p)
        assert (1 - wider) ** len(found.counts) < 0.951  # and it is no wider than needed


def test_the_noise_is_added():
    """Raw counts would not be private. The test fails by chance with a probability below 1e-15."""
    f, data = mean_of(), np.repeat([0.5, 7.0], 500)
    found = [f.changed(data, epsilon=1).counts[0].count for _ in range(30)]
    assert any(count != 500 for count in found)
    assert all(400 < count < 600 for count in found)


def test_it_says_what_is_above_the_noise(quiet):
    """A user must not read noise as a finding, nor miss one."""
    f = mean_of()
    nothing = f.changed(np.full(1000, 0.5), epsilon=0.1)
    assert nothing.found == ()
    assert "nothing is above the noise" in repr(nothing)
    assert f"Up to {2 * nothing.within} changed records" in nothing.summary
    some = f.changed(np.r_[np.full(500, 0.5), np.full(400, 7.0), np.full(100, np.nan)], epsilon=1)
    assert [(each.kind, each.count) for each in some.found] == [("clipped", 400), ("filled", 100)]
    assert some.summary == "of 1,000 records about 400 were clipped in value, about 100 were filled in value."
    assert all(each.low <= each.count <= each.high for each in some.counts)
    assert "400, 40.0%" in repr(some)
    assert "epsilon=1: Laplace noise of scale 2" in repr(some)
    assert "clipped" in some._repr_html_()


def test_who_pays():
    """Counts that nobody was charged for would be answers outside of the total."""
    own, entered, sealed = (Budget(f"counting {i}", epsilon=2, ledger="memory") for i in range(3))
    part = sealed.partition("site", ["Berlin", "Paris"])["Paris"]
    people = seal(np.full(50, 0.5), name="people", sampler=UNIT, budget=part)
    with entered:
        found = mean_of(None, budget=own).changed(people, epsilon=0.25)
    assert found.n == 50
    for budget in (own, entered, sealed):
        (row,) = budget.ledger.history(budget.name)
        kind = (row["strength"], row["purpose"], row["function"], row["dataset"])
        assert kind == ("plain", "check", "average.changed", "'people'")
        assert (row["epsilon"], row["gamma"], row["n"]) == (0.25, 0, 50)
        assert budget.plain.epsilon == 0.25
    assert sealed.ledger.history(sealed.name)[0]["part"] == "Paris"
    with pytest.raises(BudgetExceeded), entered:
        mean_of().changed(people, epsilon=1.9)


def test_after_sampled_answers_it_says_so():
    """Whether to count may have been decided because of a sampled answer, on which it then depends."""
    budget = Budget("counting after", epsilon=3, gamma=0.5, ledger="memory")
    f, people = mean_of(budget=budget), seal(np.full(50, 0.5), name="people")
    assert not f.changed(people, epsilon=0.5).given
    f(people)
    found = f.changed(people, epsilon=0.5)
    assert found.given
    assert "given the sampled answers before it" in repr(found)


def test_several_datasets_methods_and_fixed_sizes(quiet):
    """What is counted is what the function gets, however it is called."""

    def slope(X, y):
        return float(np.mean(X * y))

    both = mean_of(samplers.labelled(UNIT, UNIT), slope, data=("X", "y"))
    found = both.changed(np.array([0.5, 2.0]), np.array([0.5, 0.5]), epsilon=1)
    assert [(each.column, each.count) for each in found.counts if each.count] == [("part 1", 1)]

    class Model:
        @privatize(**PROMISE, sampler=UNIT)
        def score(self, x):
            return float(np.mean(x))

    assert Model().score.changed(np.array([0.5, 2.0]), epsilon=1).counts[0].count == 1
    few = UNIT.fixed(size=3)
    values = np.full(10, 0.5)
    values[few.positions(10)[0]] = 7.0
    found = mean_of(few).changed(values, epsilon=1)
    assert (found.n, found.counts[0].count) == (3, 1)


@for_each(
    "f, args, error, match",
    [
        (lambda: mean_of(domain="as-is"), (PRIVATE,), SettingsError, "converts no records"),
        (lambda: mean_of(samplers.normal(0, 1)), (PRIVATE,), SettingsError, "converts no records"),
        (lambda: privatize(epsilon=1, mechanism=Blocks(0, 1))(average), (PRIVATE,), SettingsError, "no P"),
        (lambda: privatize(epsilon=1)(sums.means(bounds=(0, 1))), (PRIVATE,), SettingsError, "no P"),
        (lambda: mean_of(None), (PRIVATE,), SettingsError, "has no P"),
        (
            lambda: mean_of(None),
            (seal(PRIVATE, name="x", sampler=samplers.normal(0, 1)),),
            SettingsError,
            "bound",
        ),
        (mean_of, (PRIVATE, PRIVATE), ArgumentError, "it got 2"),
        (mean_of, (), ArgumentError, "it got 0"),
        (mean_of, (PRIVATE.reshape(2, 2),), DataError, "sampler draws"),
    ],
)
def test_refusals(f, args, error, match):
    """A mistake is told in words, and nothing of the data is."""
    budget = Budget(f"refused {match} {len(args)} {id(f)}", epsilon=1, ledger="memory")
    with budget, pytest.raises(error, match=match) as caught:
        f().changed(*args, epsilon=1)
    assert_clean(caught.value)
    assert budget.spent.epsilon == 0
    for epsilon in (0, -1, math.nan, "1"):
        with pytest.raises(SettingsError, match="epsilon=") as caught:
            mean_of().changed(PRIVATE, epsilon=epsilon)
        assert_clean(caught.value)


class Odd:
    """A value that quotes itself wherever it can."""

    def __repr__(self):
        return TEXT

    def __float__(self):
        raise ValueError(TEXT)


def test_nothing_of_the_data_is_shown(caplog, capsys, recwarn):
    """No error, repr, log or warning has a value of a record, and a failing conversion is paid for."""
    budget = Budget("counting sentinels", epsilon=100, ledger="memory")
    f = mean_of(budget=budget)
    with caplog.at_level(logging.DEBUG):
        found = f.changed(PRIVATE, epsilon=0.5)
        assert not holds_sentinel(found)
        shown = [repr(found), found._repr_html_(), found.summary, str(budget.ledger.history(budget.name))]
        for wrong in ([0.5, Odd()], [0.5, TEXT], [SENTINEL, {"x": TEXT}]):
            with pytest.raises(PrivateRunError, match=r"average\.changed\(\) could not convert") as caught:
                f.changed(wrong, epsilon=0.5)
            assert_clean(caught.value)
    assert budget.spent.epsilon == 2.0
    shown += [caplog.text, *capsys.readouterr(), *(str(each.message) for each in recwarn)]
    assert not any(TEXT in text or "31415926" in text for text in shown)


def test_the_charge_is_there_if_the_process_dies(tmp_path):
    """Somebody who kills the process after the charge must not have looked for free."""
    code = f"""
        import os
        import numpy as np
        from privatize import Budget, privatize, samplers
        from privatize.function import opening

        budget = Budget("dying", epsilon=1, ledger={str(tmp_path / "ledger.db")!r})
        mean = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), budget=budget)(np.mean)
        opening.Opened._measured = lambda *_: os._exit(7)
        mean.changed(np.full(9, 0.5), epsilon=0.25)
    """
    assert opening.Opened._measured  # what the process replaces
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False, timeout=120)
    assert done.returncode == 7
    assert Budget.begun("dying", tmp_path / "ledger.db").spent.epsilon == 0.25


def test_a_family_of_p(quiet):
    """Under a family, only records outside the support of all of its members are changed."""
    family = [samplers.uniform(0, 1), samplers.uniform(0, 2)]
    found = mean_of(family).changed(np.array([0.5, 1.5, 2.5]), epsilon=1)
    assert [(each.kind, each.count) for each in found.counts] == [("clipped", 1), ("filled", 0)]
