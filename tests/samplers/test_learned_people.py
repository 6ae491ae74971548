"""A P of persons that is learned: counts of persons, with noise for a person."""

import json

import numpy as np
import pandas as pd
import pytest

from privatize import Budget, learn, learning_error, samplers, seal
from privatize.data.grouping import group
from privatize.data.units import Unit
from privatize.errors import SamplerError
from privatize.samplers.learned_people import LearnedParts, alike, design_people
from tests.cases import for_each
from tests.data.test_grouping import visits

s = samplers
VISIT = s.table(cost=s.uniform(0, 9), day=s.integers(0, 4))
PERSON = s.table(sex=s.categorical(["F", "M"]))
WITHIN = s.people(VISIT, unit="id", rows=s.integers(1, 8), person=PERSON)


def test_a_person_moves_two_counts_of_each_group_by_one():
    """The noise is for that: with all rows counted it would be too small by the number of rows."""
    design = design_people(WITHIN, 40, 1.0, [], {})
    assert sum(group.epsilon for group in design.groups) <= 1
    data, unit = visits(), Unit("id", most=8, once=("sex",))
    data = data.drop(columns="kind")
    persons = group(data, unit, bytes(32))
    for counts in design.counts(persons):
        assert counts.sum() == 40
    # Of the same rows, counts of what does not depend on the choice of a row differ by two at most.
    other = group(data[data["id"] != "p003"], unit, bytes(32))
    for one, less in zip(design.counts(persons)[:2], design.counts(other)[:2], strict=True):
        assert np.abs(one - less).sum() == 1


def test_what_is_learned_is_near_the_people():
    """The number of rows and the columns of a row would be those of the guess."""
    rng = np.random.default_rng(1)
    rows = rng.choice([1, 2, 3], 4000, p=[0.7, 0.2, 0.1])
    data = {"id": np.repeat(np.arange(4000), rows), "cost": rng.uniform(2, 3, rows.sum())}
    within = s.people(s.table(cost=s.uniform(0, 9), frame="dict"), unit="id", rows=s.integers(1, 8))
    P = learn(data, within=within, epsilon=2)
    drawn = P.draw(4000, np.random.default_rng(2))
    assert abs(np.mean(drawn.counts) - rows.mean()) < 0.15
    assert abs(np.median(drawn.frame["cost"]) - 2.5) < 0.3
    assert P.support == within.support and P.unit == within.unit
    assert len(P.family()) > 3


def test_how_alike_rows_are_is_learned():
    """With independent rows an estimate is too small for people whose rows are alike (.25 beyond at .05)."""
    rng, n = np.random.default_rng(0), 3000
    for icc, low, high in ((0.0, 0.0, 0.2), (0.5, 0.4, 0.7), (1.0, 0.9, 1.0)):
        level = np.repeat(rng.normal(0, np.sqrt(icc), n), 4)
        values = np.clip(level + rng.normal(0, np.sqrt(1 - icc), 4 * n), -4, 4)
        data = {"id": np.repeat(np.arange(n), 4), "value": values}
        within = s.people(s.table(value=s.uniform(-4, 4), frame="dict"), unit="id", rows=s.integers(1, 6))
        assert low <= learn(data, within=within, epsilon=2).shared <= high
    alone = s.people(s.table(value=s.uniform(-4, 4), frame="dict"), unit="id", rows=1)
    assert design_people(alone, 100, 1.0, [], {}).epsilon == 0


def test_agreement_moves_as_the_noise_expects():
    """The noise is for one person, who moves both numbers together by twice the number of columns."""
    design = design_people(WITHIN, 40, 1.0, [], {})
    assert design.compared == ("cost", "day")
    data, unit = visits().drop(columns="kind"), Unit("id", most=8, once=("sex",))
    data["cost"], data["day"] = data.groupby("id")["cost"].transform("max"), 2  # all rows agree
    before = design.agreement(group(data, unit, bytes(32)), {"cost": 4.5, "day": 2})
    for rows in (1, 2, 5):
        costs = ([0.0, 9.0] * 3)[:rows]
        other = {"id": "p003", "cost": costs, "day": [0, 4, 0, 4, 0][:rows], "sex": "F"}
        both = pd.concat([data[data["id"] != "p003"], pd.DataFrame(other)])
        moved = np.abs(design.agreement(group(both, unit, bytes(32)), {"cost": 4.5, "day": 2}) - before)
        assert moved.sum() <= 4
    assert sum(each.epsilon for each in design.groups) + design.epsilon <= 1


def test_chance_is_no_likeness():
    """A column of zeros, or one with few values, would make everybody's rows the same."""
    rng, n = np.random.default_rng(3), 3000
    ids = np.repeat(np.arange(n), 3)
    for values, law in (
        (np.where(rng.random(3 * n) < 0.9, 0.0, rng.uniform(0, 9, 3 * n)), s.uniform(0, 9)),
        (rng.integers(0, 3, 3 * n), s.integers(0, 2)),
    ):
        within = s.people(s.table(value=law, frame="dict"), unit="id", rows=s.integers(1, 4))
        assert learn({"id": ids, "value": values}, within=within, epsilon=2).shared <= 0.15
    # Counts that are mostly noise say nothing.
    assert alike(np.array([10.0, 10.0]), 50.0, 0.5, 0.2) == 0.2
    assert alike(np.array([1000.0, 1000.0]), 1.0, 0.5, 0.0) == 0.95


def test_people_without_rows_count_once():
    """What is in rows would be diluted by those who have none: .095 zeros were learned where .47 are."""
    rng, n = np.random.default_rng(4), 5000
    rows = np.where(rng.random(n) < 0.8, 0, 2)
    ids = np.repeat(np.arange(n), rows)
    cost = np.where(rng.random(len(ids)) < 0.5, 0.0, rng.uniform(1, 9, len(ids)))
    within = s.people(s.table(cost=s.uniform(0, 9), frame="dict"), unit="id", rows=s.integers(0, 3))
    people = seal({"id": ids, "cost": cost}, name="a", sampler=within, persons=range(n))
    drawn = learn(people, epsilon=20).draw(4000, np.random.default_rng(0))
    assert abs((drawn.frame["cost"] == 0).mean() - 0.5) < 0.1
    assert abs((drawn.counts == 0).mean() - 0.8) < 0.05


def test_one_number_of_rows_is_not_learned():
    """A part of epsilon would be spent on what is known."""
    within = s.people(VISIT, unit="id", rows=3)
    assert set(design_people(within, 100, 1.0, [], {}).parts) == {"visit"}
    data = visits(100).drop(columns=["kind", "sex"])
    assert learn(data, within=within, epsilon=3).draw(5, np.random.default_rng(0)).counts.tolist() == [3] * 5


def test_too_little_epsilon_is_said_of_the_whole():
    """The error would name a part of epsilon, and ask for less than was given."""
    with pytest.raises(SamplerError, match=r"epsilon=0\.01 is too little"):
        learning_error(40, within=WITHIN, epsilon=0.01)


def test_it_is_remembered_with_sealed_data():
    """The same question would be paid for twice."""
    budget = Budget("learned people", epsilon=3, gamma=0.1, ledger="memory")
    people = seal(visits().drop(columns="kind"), name="the learned", sampler=WITHIN, budget=budget)
    first = learn(people, epsilon=2)
    assert learn(people, epsilon=2) == first and budget.spent.epsilon == 2


def test_stored_facts_must_fit():
    """A P that was learned within another one would be drawn from in the wrong way."""
    design = design_people(WITHIN, 400, 1.0, [("cost", "day")], {"cost": [3.0]})
    persons = group(visits(400).drop(columns="kind"), WITHIN.unit, bytes(32))
    made = design.learned(design.counts(persons))
    again = LearnedParts.of_facts(json.loads(json.dumps(made.facts())), WITHIN)
    assert again.people() == made.people()
    with pytest.raises(SamplerError, match="does not fit"):
        LearnedParts.of_facts({"rows": {}}, WITHIN)


def test_its_error_is_known_beforehand():
    """Nobody would know what epsilon it takes."""
    found = learning_error(1000, within=WITHIN, epsilon=1)
    assert {name for group in found.groups for name in group.names} == {"value", "sex", "cost", "day"}


@for_each(
    ("within", "more", "message"),
    [
        (WITHIN, {"together": [("sex", "cost")]}, "one of a row"),
        (WITHIN, {"together": [("sex", "other")]}, "names 'other'"),
        (WITHIN, {"atoms": {"other": [1]}}, "names 'other'"),
        (
            s.people(
                {"cost": s.dependent(lambda c: np.ones(len(c["sex"])), support=(0, 9))},
                unit="id",
                rows=s.integers(1, 8),
                person=PERSON,
            ),
            {},
            "a function makes columns",
        ),
    ],
)
def test_what_cannot_be_learned_is_refused(within, more, message):
    """The error must say what to do."""
    with pytest.raises(SamplerError, match=message):
        learning_error(1000, within=within, epsilon=1, **more)
