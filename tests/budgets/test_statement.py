"""Totals by strength: what is differentially private for all pairs, what is so given other answers."""

import itertools
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from privatize import Budget, Gaussian, privatize, samplers, seal
from privatize.budgets.charges import Charge
from privatize.budgets.ledger import open_ledger
from privatize.errors import BudgetExceeded, SettingsError
from tests.budgets.charged import catalogue, declaration
from tests.cases import for_each

NUMBERS = itertools.count()
ALONE = "differentially private"
GIVEN = "differentially private given the sampled answers before it"
SAMPLED = "random differentially private"


def opened(**caps):
    """Return a new budget in memory."""
    return Budget(f"total {next(NUMBERS)}", **({"epsilon": 9, "gamma": 1, "ledger": "memory"} | caps))


def sampled(epsilon=0.1, gamma=0.05, **facts):
    """Return a charge for an answer that holds for pairs under P."""
    about = {"function": "f", "key": "", "dataset": "'people'", "n": 5, "mechanism": "Laplace", "delta": 0.0}
    about |= {"kind": f"dp {epsilon!r} {facts.get('delta', 0.0)!r}", "declared": ("P1:P",), "described": "P"}
    return Charge(epsilon=epsilon, gamma=gamma, **(about | facts))


def plain(epsilon=0.1, **facts):
    """Return a charge for an answer that holds for all pairs."""
    return sampled(epsilon, 0.0, **({"strength": "plain", "declared": (), "described": ""} | facts))


def promises(budget):
    """Return what the history says of every charge."""
    return list(budget.history()["promise"])


@pytest.fixture
def path(tmp_path):
    """Return the path of a ledger of this test's own."""
    open_ledger.cache_clear()
    yield tmp_path / "ledger.db"
    open_ledger.cache_clear()


# --- the sentence -----------------------------------------------------------------------------------

SHARE = "for all pairs of neighbours but a share 0.05 of those under P (on average 0.02)"
FIXED = f"{SHARE}, if the sampled questions were fixed beforehand. Of this, epsilon="
ANSWER = "1 answer that is differentially private for all pairs"
ANSWERS = "answers that are differentially private for all pairs"
FIRST = sampled(0.8, average_gamma=0.02)


@for_each(
    "charges, delta, words",
    [
        ([], 0, "epsilon=0 for all pairs of neighbours"),
        ([plain(0.5)], 0, "epsilon=0.5 for all pairs of neighbours: plain differential privacy"),
        (
            [plain(0.5), plain(0.25, delta=1e-7)],
            1e-6,
            "epsilon=0.75, delta=1e-07 for all pairs of neighbours: plain differential privacy",
        ),
        ([FIRST], 0, f"epsilon=0.8 {SHARE}, if these questions were fixed beforehand"),
        (
            [plain(0.5), sampled(0.8, delta=1e-7, average_gamma=0.02)],
            1e-6,
            f"epsilon=1.3, delta=1e-07 {FIXED}0.5, delta=0 is for {ANSWER}",
        ),
        (
            [FIRST, plain(0.5)],
            0,
            f"epsilon=1.3 {FIXED}0.5 is for {ANSWER}, given the sampled answers before it",
        ),
        (
            [FIRST, plain(0.5), plain(0.1)],
            0,
            f"epsilon=1.4 {FIXED}0.6 is for 2 {ANSWERS}, given the sampled answers before them",
        ),
        (
            [plain(0.5), FIRST, plain(0.5), plain(0.1)],
            0,
            f"epsilon=1.9 {FIXED}1.1 is for 3 {ANSWERS}, 2 of them given the sampled answers before",
        ),
    ],
)
def test_the_sentence(charges, delta, words):
    """A review board would read a sentence that is not true, or none."""
    budget = opened(delta=delta)
    for charge in charges:
        budget.reserve(charge)
    assert budget.statement == words
    assert f"{words}</div>" in budget.card().html() if charges else True
    shown = f"; spent {words})" if charges else "gamma=1)"
    assert repr(budget).endswith(shown)
    budget.verify()


def test_the_sentence_of_tight_totals():
    """Tight totals hold for amounts that do not depend on answers: the sentence would leave that out."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    budget = opened(epsilon=3, delta=1e-5, composition="tight")
    for _ in range(50):
        budget.reserve(plain())
    assert budget.spent.epsilon < 3 < 0.1 * 50 and budget.plain == budget.spent
    words = "for all pairs of neighbours: plain differential privacy, if all amounts were fixed beforehand"
    assert budget.statement == f"epsilon={budget.spent.epsilon:.6g}, delta=1e-05 {words}"
    budget.reserve(sampled())
    assert "if the sampled questions and all amounts were fixed beforehand. Of this" in budget.statement
    assert budget.plain.epsilon < budget.spent.epsilon == budget.verify().epsilon


def test_kinds_of_both_strengths_are_composed_alike():
    """On pairs outside of the share, plain and sampled answers lose the same: tight totals would differ."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    mixed, same = (opened(epsilon=3, delta=1e-5, composition="tight") for _ in range(2))
    for _ in range(20):
        mixed.reserve(plain())
        mixed.reserve(sampled(gamma=0.01))
        same.reserve(plain())
        same.reserve(plain())
    assert mixed.spent[:2] == same.spent[:2] and mixed.spent.gamma == 0.2 and same.spent.gamma == 0
    assert mixed.verify()[:2] == same.verify()[:2]


def test_plain_parts_count_by_the_largest():
    """The plain part of a total would be counted for each site, and not by the largest."""
    budget = opened()
    sites = budget.partition("site", parts=["A", "B"])
    for part, epsilon in (("A", 0.5), ("B", 0.3), ("B", 0.1)):
        assert sites[part].reserve(plain(epsilon, dataset=part)) is False
    budget.reserve(plain(0.2, dataset=""))
    assert budget.plain == budget.spent == budget.verify() == (0.7, 0, 0)
    assert budget.statement == "epsilon=0.7 for all pairs of neighbours: plain differential privacy"
    for place, name in ((sites["B"], "A"), (budget, "A")):
        with pytest.raises(SettingsError, match="A dataset is in one part"):
            place.reserve(plain(dataset=name))
    with pytest.raises(SettingsError, match="needs data with a name"):
        sites["A"].reserve(plain(dataset=""))


# --- the order --------------------------------------------------------------------------------------


@for_each("place", ["memory", "file"])
def test_the_order_decides_the_promise(path, place):
    """A plain answer that a sampled one led to would be called differentially private by itself."""
    budget = opened(ledger="memory" if place == "memory" else path)
    found = [budget.reserve(each) for each in (plain(), sampled(), plain(), sampled(), plain(dataset=""))]
    assert found == [False, False, True, True, True]
    assert promises(budget) == [ALONE, SAMPLED, GIVEN, SAMPLED, GIVEN]
    budget.verify()
    again = Budget.begun(budget.name, budget.ledger)
    assert promises(again) == promises(budget) and again.reserve(plain()) is True


@for_each(
    "first, second",
    [
        ({"dataset": ""}, {"dataset": "'people'"}),
        ({"dataset": "'people'"}, {"dataset": ""}),
        ({"dataset": "'people' version '1'", "people": ("'people'",)}, {"dataset": "'people'"}),
        ({"dataset": "'X' and 'y'", "people": ("'X'", "'y'")}, {"dataset": "'y'"}),
        ({"dataset": "'people'"}, {"dataset": "'others'"}),
    ],
)
def test_in_doubt_the_weaker_sentence(first, second):
    """What is asked of some people may depend on answers about any, and two names may share people."""
    budget = opened()
    assert budget.reserve(sampled(**first)) is False
    assert budget.reserve(plain(**second)) is True
    assert promises(budget) == [SAMPLED, GIVEN]


def test_which_question_was_asked_repeats_a_sampled_answer():
    """Chosen by a sampled answer, a count that is differentially private gives a person away (T2).

    On this pair the first answer differs by 100, at noise of scale 0.001, and the counts are 100 apart from
    the threshold, at noise of scale 1: the test fails by chance with a probability below 1e-40.
    """
    law = samplers.uniform(0, 1)
    budget = opened()
    settings = {"epsilon": 1, "sampler": law, "budget": budget, "store": None}
    average = privatize(gamma=0.05, **settings)(lambda x: float(x.mean() + 100 * (x.max() > 0.999999)))
    counting = privatize(sensitivity=1, **settings)
    below, above = (counting(f) for f in (lambda x: float((x < 0.5).sum()), lambda x: float((x > 0.9).sum())))
    one = np.random.default_rng(1).uniform(0, 0.99, 1000)
    other = np.append(one[:-1], 0.9999999)
    assert abs(above.release(one).value - above.release(other).value) < 100  # each is private by itself
    first, second = ((below if average(x) > 50 else above).release(x) for x in (one, other))
    assert first.value < 300 < second.value
    assert all("given the sampled answers before it" in repr(each) for each in (first, second))
    assert promises(budget) == [ALONE, ALONE, SAMPLED, GIVEN, SAMPLED, GIVEN]


def test_a_refused_answer_was_not_seen():
    """A sampled answer that nobody got would weaken what is promised later."""
    budget = opened(epsilon=1)
    with pytest.raises(BudgetExceeded):
        budget.reserve(sampled(2.0))
    budget.afford(sampled())
    assert budget.reserve(plain()) is False and promises(budget) == [ALONE]


def test_parts_tell_the_order():
    """An answer about a site would not say that sampled answers came before it."""
    budget = opened()
    sites = budget.partition("site", parts=["A", "B"])
    assert sites["A"].reserve(sampled(dataset="A")) is False
    assert sites["B"].reserve(plain(dataset="B")) is True
    assert budget.reserve(plain(dataset="all")) is True


def test_a_declaration_is_no_answer(path):
    """A ledger of an earlier version has sampled answers, and says so after P was declared again as well."""
    old = Path(__file__).parents[1] / "fixtures" / "ledger_layout_1.sql"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(old.read_text(encoding="utf-8"))
    ledger = open_ledger(str(path))
    for terms in ledger.budgets():
        budget = Budget.begun(terms.name, ledger)
        before = len(budget.history())
        if budget.remaining.epsilon < 0.01:
            continue
        domain = {
            "described": "uniform(0, 1)",
            "lossless": True,
        }  # a P that is a domain only declares nothing
        assert budget.reserve(plain(0.01, dataset="'new'", **domain)) is bool(before)
        assert promises(budget)[before:] == [GIVEN if before else ALONE]
        budget.verify()


@for_each("place", ["memory", "file"])
def test_many_at_once(path, place):
    """With two threads, an answer could be told that nothing came before it, and the ledger say otherwise."""
    budget = opened(ledger="memory" if place == "memory" else path, epsilon=99, gamma=99)
    start, found = threading.Barrier(6), {}

    def ask(thread):
        start.wait()
        for at in range(8):
            name = f"{thread} {at}"
            request = sampled if (thread, at) == (0, 4) else plain
            found[name] = budget.reserve(request(0.01, function=name))

    threads = [threading.Thread(target=ask, args=(each,)) for each in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = budget.history().to_dict("records")
    (first,) = (row["number"] for row in rows if row["strength"] == "sampled")
    assert len(rows) == 48 and found == {row["function"]: row["number"] > first for row in rows}
    assert all((row["promise"] == GIVEN) == (row["number"] > first) for row in rows)


# --- budgets without gamma ----------------------------------------------------------------------------


def test_a_budget_for_plain_answers():
    """A law may ask for differential privacy: a sampled answer would be paid from such a budget."""
    budget = Budget("only plain answers", epsilon=1, ledger="memory")
    assert repr(budget) == "Budget('only plain answers', epsilon=1: left epsilon=1)"
    budget.reserve(plain(0.5))
    f = privatize(epsilon=0.1, gamma=0.05, sampler=samplers.uniform(0, 1), store=None, budget=budget)(np.mean)
    evaluated = []
    g = privatize(epsilon=0.1, gamma=0.05, sampler=samplers.uniform(0, 1), store=None, budget=budget)(
        lambda x: evaluated.append(1) or 0.0
    )
    for function in (f, g):
        with pytest.raises(BudgetExceeded, match=r"has gamma=0: .* Open a budget with a gamma") as caught:
            function(seal(np.full(20, 0.5), name="people"))
        assert caught.value.gamma_cap == 0 and caught.value.epsilon_left == 0.5
    assert evaluated == []  # refused before anybody waits for a calibration
    assert budget.spent == (0.5, 0, 0) and budget.reserve(plain(0.5)) is False
    assert Budget("only plain answers", epsilon=1, ledger="memory").remaining.epsilon == 0


# --- parts beside sampled answers ---------------------------------------------------------------------


def test_plain_parts_beside_a_p_with_a_column_for_them():
    """Under P a record may change its site: the plain answers about sites would then break, unsaid (T9)."""
    budget = opened()
    sites = budget.partition("site", parts=["A", "B"])
    sites["A"].reserve(plain(dataset="A"))
    for facts, words in (
        ({"columns": ("x", "site_id")}, "has the column 'site_id'"),
        ({"columns": ("x", "where"), "values": (frozenset("AB"),)}, "parts of 'site'"),
    ):
        with pytest.raises(SettingsError, match=words):
            budget.reserve(sampled(dataset="all", **facts))
        with pytest.raises(SettingsError, match=words):
            budget.partition("year", parts=["1"])["1"].reserve(sampled(dataset="1", **facts))
        sites["A"].reserve(sampled(dataset="A", **facts))  # about the parts of that partition alone
        budget = opened()
        sites = budget.partition("site", parts=["A", "B"])
        sites["A"].reserve(plain(dataset="A"))
    budget.reserve(sampled(dataset="all", columns=("x",)))
    assert sites["B"].reserve(plain(dataset="B")) is True
    assert budget.verify() == (0.2, 0, 0.05)


def test_plain_parts_after_a_p_whose_columns_are_not_known():
    """A ledger has no columns of P, so nobody could tell later whether P lets a record change its site."""
    budget = opened()
    sites = budget.partition("site", parts=["A", "B"])
    budget.reserve(sampled(dataset="all"))
    with pytest.raises(SettingsError, match=r"first one about a part of 'site'.* Open another budget"):
        sites["A"].reserve(plain(dataset="A"))
    assert len(budget.history()) == 1
    sites["A"].reserve(sampled(dataset="A", columns=("x",)))  # this one tells its columns
    sites["B"].reserve(plain(dataset="B"))
    budget.verify()


# --- catalogues -------------------------------------------------------------------------------------

CAPS = "for all pairs of neighbours but a share 0.05 of those under P (on average 0.02), whatever is asked of"
ORDER = "in whatever order and with whatever amounts"
LATE = "declared after answers: not in the total"


def declares(budget, name="x", **facts):
    """Declare a catalogue about the people of a budget's name."""
    about = {"dataset": f"'{budget.name}'", "people": (f"'{budget.name}'",)}
    facts = {"average_gamma": 0.02} | about | facts
    late = facts.pop("late", False)
    found = declaration(name, dataset=about["dataset"], late=late)
    return budget.declare(catalogue(**facts), found)


def test_the_sentence_of_a_catalogue():
    """Users would read a sum that does not hold if they ask as they go, or a condition that is not needed."""
    budget = opened(delta=1e-6)
    about = {"dataset": f"'{budget.name}'", "average_gamma": 0.02}
    learned = plain(0.5, purpose="learning", dataset=f"'{budget.name}'")
    assert budget.reserve(learned) is False
    declares(budget)
    given = "given what learn() told before"  # its questions may have been chosen because of that
    first = f"epsilon=9, delta=1e-06 {CAPS} the catalogue 'x', {ORDER}, {given}. These are the caps; epsilon="
    of_this = "is spent so far. Of this, epsilon=0.5, delta=0 is for 1 answer that is differentially private"
    assert budget.statement == f"{first}0.5, delta=0 {of_this} for all pairs"
    assert budget.reserve(sampled(0.8, key="x:1", **about)) is False  # to declare is no answer
    assert budget.reserve(sampled(0.2, key="x:1", **about)) is True
    assert budget.statement == f"{first}1.5, delta=0 {of_this} for all pairs"
    assert repr(budget).endswith(f"; promised {budget.statement})")
    html = budget.card().html()
    assert "3 answers so far (2 of the catalogue &#x27;x&#x27;), composition" in html
    budget.reserve(sampled(0.1, key="other", average_gamma=0.02, dataset=f"'{budget.name}'"))
    share = "a share 0.1 of those under P (on average 0.04)"
    outside = "if the questions outside of it (1 sampled answer) were fixed beforehand. These are the caps"
    assert share in budget.statement and outside in budget.statement
    assert budget.verify() == (1.6, 0, 0.1)


def test_what_was_found_and_used_is_named():
    """A reader would take gamma to be about people, where it is about the P that was learned from them."""
    budget = opened()
    for purpose in ("learning", "check"):
        budget.reserve(plain(0.1, purpose=purpose, dataset=f"'{budget.name}'"))
    declares(budget, described="learned(within=uniform(0, 1), epsilon=0.1, n=9)")
    assert "for the P that learn() found, given what check_fit() told before." in budget.statement


@pytest.mark.parametrize(("average", "shown"), [(0.0250896, "0.0251"), (0.04001, "0.0401")])
def test_the_average_is_short(average, shown):
    """A bound on a share would have more digits than anybody reads, or be rounded down."""
    budget = opened()
    budget.reserve(sampled(0.1, average_gamma=average, dataset="'short'"))
    assert f"(on average {shown})" in budget.statement


def test_several_catalogues():
    """A total of two catalogues would name one of them, or ask for what is not needed."""
    budget = opened(epsilon=1)
    for name in ("x", "y"):
        declares(budget, name)
    assert f"whatever is asked of the catalogues 'x' and 'y', {ORDER}. These are the caps" in budget.statement


def test_a_late_catalogue_is_not_in_the_total():
    """The total would claim gamma for questions that were made from answers."""
    budget = opened(epsilon=1)
    budget.reserve(plain(dataset=f"'{budget.name}'"))
    declares(budget, late=True)
    note = f"1 catalogue ('x') was {LATE}, nor is what was asked because of its answers"
    assert "if the sampled questions were fixed beforehand" in budget.statement
    assert budget.statement.endswith(f"epsilon=0.1 is for {ANSWER}. {note}")
    assert repr(budget).endswith(f"; {note})")
    assert budget.spent.note == budget.verify().note == note
    assert f"1 answer so far (0 of the catalogue 'x', {LATE}), composition" in budget.card().note


def test_a_catalogue_of_plain_questions():
    """Declaring questions that are private for all pairs would cost gamma, or count as an answer."""
    budget = opened(epsilon=1, gamma=0)
    declares(budget, strength="plain", gamma=0.0, average_gamma=None, declared=(), described="")
    assert budget.statement == "epsilon=0 for all pairs of neighbours"
    budget.reserve(plain(dataset=f"'{budget.name}'"))
    assert budget.statement == "epsilon=0.1 for all pairs of neighbours: plain differential privacy"
    assert "1 answer so far" in budget.card().html()


def test_a_tight_catalogue():
    """The smaller of two totals would be claimed for amounts that were chosen from answers."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    budget = opened(epsilon=3, delta=1e-5, composition="tight")
    gaussian = {"delta": 1e-6, "kind": Gaussian().composition_kind(0.1, 1e-6)}
    budget.reserve(plain(**gaussian, dataset="'others'"))
    declares(budget)
    budget.reserve(sampled(key="x:1", average_gamma=0.02, dataset=f"'{budget.name}'", **gaussian))
    early = "if all amounts before the first declaration were fixed beforehand. These are the caps"
    assert "epsilon=3, delta=1e-05" in budget.statement and early in budget.statement
    assert 0 < budget.plain.epsilon < budget.spent.epsilon
