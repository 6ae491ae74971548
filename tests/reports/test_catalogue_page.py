"""The page of a catalogue has all that was declared, asked and left, and no private data."""

import re
from html import unescape

import numpy as np
import pytest

from privatize import Blocks, learn, report
from privatize.calibration.factor_scan import Counted, Cut
from privatize.calibration.fit import Fit
from privatize.errors import SettingsError
from privatize.reports.catalogue_page import sections
from tests.function.catalogued import UNIT, budget, catalogue, mean, sealed, share_above

SENTINEL = 0.918273645


def shown(page):
    return unescape(re.sub(r"<[^>]*>", " ", page))


def test_a_page_of_a_catalogue():
    """Somebody who does not read code could not see what is promised, what was asked and what is left."""
    made = catalogue(sealed(np.full(200, SENTINEL)), name="<b>incomes</b>")
    made.add(mean)
    made.add(share_above, limit=[0.25, 0.5])
    made.add(np.median, name="middle", mechanism=Blocks(0, 1))
    before = shown(report(made).html)
    assert "It is not declared here yet" in before and "Nothing yet." in before
    made.calibrate()
    made.share_above(limit=0.5, epsilon=2)
    page = report(made)
    text = shown(page.html)
    assert page.title == "catalogue <b>incomes</b>" and "<b>incomes</b>" not in page.html
    assert "4 questions, in any order" in text and "but a share of 0.2 (gamma, γ) of those under P" in text
    assert "caps of epsilon (ε) and delta (δ)" in text
    assert "at most 40 of 200 people" in text and "fixed before the first answer" in text
    for label in (
        "mean",
        "share_above(limit=0.25)",
        "whatever the function does",
        "check_fit(epsilon=...)",
    ):
        assert label in text
    assert re.search(r"share_above\(limit=0.5\) +random differentially private +2 +0 +0 ", text)
    assert "epsilon=8 of 10" in text
    assert str(SENTINEL)[:6] not in text
    with pytest.raises(SettingsError, match="takes nothing else"):
        report(made, 200)


def test_late_ones_plain_ones_and_many_answers():
    """A page would promise what does not hold, or have a list without an end."""
    made = catalogue()
    made.add(np.median, name="middle", mechanism=Blocks(0, 1))
    facts = made.facts()
    text = shown(sections(facts))
    assert "on all pairs of neighbouring datasets." in text and "γ" not in text
    answer = {"question": "middle", "epsilon": 0.1, "delta": 0.0, "gamma": 0, "at": "2026-01-01T00:00:00Z"}
    answer |= {"budget": facts["budgets"][0]["name"], "promise": "differentially private"}
    text = shown(sections(facts | {"declared": True, "late": True, "charges": [answer] * 60}))
    assert "The last 50 of 60." in text and "declared after answers about these people" in text


def test_what_was_asked_adds_up_to_what_is_spent():
    """A review board would see less on the page than was spent, and a promise without its condition."""
    people = sealed(np.linspace(0, 1, 400), budget=budget(epsilon=2))
    law = learn(people, within=UNIT, epsilon=0.3)
    made = catalogue(people, sampler=law, epsilon=1)
    made.add(mean)
    made.add(np.median, name="middle", mechanism=Blocks(0, 1))
    made.calibrate()
    made.mean(epsilon=0.1)
    made.middle(epsilon=0.5)
    text = shown(report(made).html)
    assert re.search(r"learn\(\) +differentially private +0.3 +0 +0 ", text)
    assert re.search(r"declared\) +declares the catalogue '[^']*' +0 +0 +0.2 ", text)
    assert text.count("given the sampled answers before it") >= 3  # in the question, and in both budgets
    assert "epsilon = 2 (a factor of 7.4), gamma = 0.5." in text
    for each in made.facts()["budgets"]:
        charged = [row["epsilon"] for row in made.facts()["charges"] if row["budget"] == each["name"]]
        assert sum(charged) == pytest.approx(each["caps"]["epsilon"] - each["left"]["epsilon"])
        assert each["statement"] in text
    assert "P was learned from the same people. Gamma holds for people drawn from that P;" in text


def test_a_member_has_no_page_of_its_own():
    """Somebody who asks for the page of a question would not learn that there is one for all."""
    made = catalogue()
    with pytest.raises(SettingsError, match=r"report\(catalogue\) has a page about all its questions"):
        report(made.add(mean))


def test_the_check_of_p():
    """A page would not say that estimates were widened, and what that rests on."""
    made = catalogue()
    made.add(mean)
    found = {"share": Counted(0.2, 0.1, 0.3), "certified": 0.06, "excess": 4.0, "main": Cut(448, 40)}
    found |= {"smaller": None, "smaller_factor": None, "n": 20_000, "gamma": 0.05, "epsilon": 0.5}
    fit = Fit(factor=2.0, **found, functions=("mean",), about=("digest",))
    text = shown(sections(made.facts() | {"fit": fit.facts()}))
    assert "widened 2 times" in text and "at most 6.0%" in text and "is assumed" in text
