"""The page of a catalogue has all that was declared, asked and left, and no private data."""

import re
from html import unescape

import numpy as np
import pytest

from privatize import Blocks, report
from privatize.calibration.factor_scan import Counted, Cut
from privatize.calibration.fit import Fit
from privatize.errors import SettingsError
from privatize.reports.catalogue_page import sections
from tests.function.catalogued import catalogue, mean, sealed, share_above

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
    assert re.search(r"share_above\(limit=0.5\) +2 +0 ", text) and "epsilon=8 of 10" in text
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
    answer = {"question": "middle", "epsilon": 0.1, "delta": 0.0, "at": "2026-01-01T00:00:00Z"}
    text = shown(sections(facts | {"declared": True, "late": True, "asked": [answer] * 60}))
    assert "The last 50 of 60." in text and "declared after answers about these people" in text


def test_the_check_of_p():
    """A page would not say that estimates were widened, and what that rests on."""
    made = catalogue()
    made.add(mean)
    found = {"share": Counted(0.2, 0.1, 0.3), "certified": 0.06, "excess": 4.0, "main": Cut(448, 40)}
    found |= {"smaller": None, "smaller_factor": None, "n": 20_000, "gamma": 0.05, "epsilon": 0.5}
    fit = Fit(factor=2.0, **found, functions=("mean",), about=("digest",))
    text = shown(sections(made.facts() | {"fit": fit.facts()}))
    assert "widened 2 times" in text and "at most 6.0%" in text and "is assumed" in text
