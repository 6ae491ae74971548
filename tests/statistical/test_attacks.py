"""The table of docs/attacks.md is true: bounds hold where it says so, and attacks work where it says so."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from privatize import Budget, Catalogue, People, seal
from privatize.errors import ArgumentError, BudgetExceeded, SettingsError, ZeroSensitivityError
from tests.statistical.thresholds import most_successes

FILE = Path(__file__).parents[2] / "examples" / "attacks.py"
GAMES = {"5 scale, `learn`": 30, "4 adaptive": 150}  # where a game takes long; 300 elsewhere
SLOW = ("3 asked 16 times", "3 with a budget", "4 adaptive", "4 adaptive, catalogue", "5 scale, `learn`")
HELD = ["1 outlier, clipped", "3 asked 4 times", "3 asked 16 times", "3 with a budget"]
HELD += ["4 adaptive, catalogue", "5 scale, `learn`", "5 dependence, proven sums", "6 two totals"]
BROKE = ["1 outlier, not clipped", "2 group of 10, P says 500", "2 all groups, P right", "4 adaptive"]
BROKE += ["5 scale", "5 dependence", "6 one question"]


@pytest.fixture(scope="module")
def script():
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("attacks_example", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(script):
    """Return the rows of the page's table, by the attack's title."""
    (table,) = script.in_page(script.PAGE.read_text(encoding="utf-8"))
    assert table.splitlines()[0] == f"|{'|'.join(script.HEAD)}|"
    return {row[0]: row[1:] for row in script.rows_of(table)}


def each(titles):
    """Return the titles as parameters, the long ones marked."""
    return [pytest.param(title, marks=pytest.mark.slow) if title in SLOW else title for title in titles]


def played(script, title):
    """Play some games of an attack."""
    (attack,) = (attack for attack in script.ATTACKS if attack.title == title)
    return script.played(attack, GAMES.get(title, 300)), script.bound(attack.epsilon)


def test_the_page_has_every_attack_with_its_verdict(script, rows):
    """A reader would miss an attack, or read a verdict that its own figures contradict."""
    assert list(rows) == [attack.title for attack in script.ATTACKS]
    for attack in script.ATTACKS:
        right, interval, bound, verdict = rows[attack.title]
        low, high = map(float, interval.split("–"))
        assert low <= float(right) <= high and bound == f"{script.bound(attack.epsilon):.3f}"
        assert verdict.partition(",")[0] == ("**broke**" if low > float(bound) else "held")
        assert high <= float(bound) or low > float(bound)


def test_the_picture_is_that_of_the_table(script):
    """A reader would see other figures than those of the table."""
    (table,) = script.in_page(script.PAGE.read_text(encoding="utf-8"))
    assert script.PICTURE.read_text(encoding="utf-8") == script.picture(table)


@pytest.mark.parametrize("title", each(HELD))
def test_no_attacker_is_right_more_often_than_the_bound(script, rows, title):
    """A promise that the page says was kept would be broken. False alarm 1e-6 each."""
    assert rows[title][-1].startswith("held")
    outcome, bound = played(script, title)
    assert outcome.right <= most_successes(outcome.games, bound)


@pytest.mark.parametrize("title", each(BROKE))
def test_what_the_page_says_is_broken_still_is(script, rows, title):
    """The page would warn of what no longer happens.

    The measured accuracies are at least 0.88, and the bounds at most 0.74: false alarm below 1e-6 each.
    """
    assert rows[title][-1].startswith("**broke**")
    outcome, bound = played(script, title)
    assert outcome.share > bound


def test_a_question_about_a_small_group_alone_is_refused(script):
    """If most pairs never touch the group, the estimate is 0, and an answer would have no noise."""
    asked = script.private(script.of_group, sampler=script.RARE)
    with pytest.raises(ZeroSensitivityError):
        asked.release(script.GROUPED[0])


def test_a_question_about_one_user_alone_is_refused(script):
    """The answer would be that user's balance."""
    with pytest.raises(ZeroSensitivityError):
        script.private(lambda x: float(x[0])).release(script.WORLDS[0])


def test_a_budget_ends_the_repetition(script):
    """An attacker who may ask for ever learns everything."""
    budget = Budget("attacked", epsilon=1, gamma=0.05, ledger="memory")
    asked = script.private(script.mean, epsilon=0.25)
    people = seal(script.WORLDS[1], name="attacked", sampler=script.P, budget=budget)
    for _ in range(4):
        asked(people)
    with pytest.raises(BudgetExceeded):
        asked(people)


def test_a_catalogue_refuses_what_was_not_declared(script):
    """A question that is made from an answer would be answered."""
    budget = Budget("declared", epsilon=1, gamma=0.1, ledger="memory")
    people = People("declared", 100)
    listed = Catalogue("declared", people, gamma=0.05, sampler=script.P, budget=budget)
    mean = listed.add(script.mean)
    above = listed.add(lambda x, limit: float((x > limit).mean()), name="above", limit=[1_000, 5_000])
    listed.calibrate()
    data = seal(np.linspace(1, 10_000, 100), name="declared")
    mean(data, epsilon=0.1)
    with pytest.raises(ArgumentError):
        above(data, limit=4_999, epsilon=0.1)
    late = Catalogue("late", people, gamma=0.05, sampler=script.P, budget=budget)
    late.add(lambda x: float((x > 4_999).mean()), name="made_from_the_answer")
    with pytest.raises(SettingsError):
        late.calibrate()


def test_an_answer_tells_what_it_promises_to_a_small_group(script):
    """Somebody would believe that γ is shared evenly."""
    release = script.private(script.by_group, sampler=script.RARE).release(script.GROUPED[0])
    assert release.gamma_for(share=0.01) == 1.0


def test_the_bound_is_that_of_randomized_response(script):
    """The page would measure attackers against a wrong bound: randomized response reaches it."""
    assert script.bound(np.log(3)) == pytest.approx(0.75) and script.bound(0, 0.1) == pytest.approx(0.55)
