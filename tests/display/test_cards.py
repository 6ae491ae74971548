"""Cards show everything that they were given, as text and as HTML, and run nothing of it."""

import xml.etree.ElementTree as ET

import numpy as np

from privatize.display.cards import Card, grid, page, preview, table
from privatize.display.charts import Chart

NASTY = "<script>alert('x')</script> & co"


def test_a_card_as_text_has_every_row():
    """In a terminal a user would miss a part of the promise."""
    assert Card("Release", [("epsilon", "1"), ("gamma", "0.05")]).text().splitlines() == [
        "Release",
        "  epsilon                      1",
        "  gamma                        0.05",
    ]


def test_names_and_values_are_escaped():
    """A column's name could run code in a colleague's notebook or report."""
    card = Card(NASTY, [(NASTY, NASTY)], Chart(NASTY, "", "", ()), note=NASTY, shares=(0.5,))
    for shown in (card.html(), card.section(), grid([NASTY], [[NASTY]]), preview(NASTY), page(NASTY, "")):
        assert "<script" not in shown and "&lt;script" in shown


def test_a_chart_can_be_unfolded():
    """A notebook would not show the picture, or show it unasked for above everything else."""
    shown = Card("Estimate", [("value", "1")], Chart("Gaps", "x", "y", ())).html()
    tree = ET.fromstring(shown)
    assert tree.find("details/summary").text == "Gaps" and len(tree.find("details")) == 2
    assert "<details>" not in Card("Estimate", [("value", "1")]).html()


def test_words_are_on_the_left_and_numbers_on_the_right():
    """Numbers could not be compared, and a long sentence would push all other columns off the screen."""
    rows = [
        ["a", "1,300", "1 to 8", "[0, 1]", "normal", "x" * 50],
        ["b", "1e-06", "inf", "{1, 2}", "4", ""],
    ]
    tree = ET.fromstring(grid(list("012345"), rows))
    for line in tree.iter("tr"):
        assert [cell.get("class") for cell in line] == [None, None, None, "words", "words", "words long"]
    assert len(list(ET.fromstring(grid(["a"], [])).iter("th"))) == 1


def test_every_row_has_its_bar():
    """A user would read how much is left of one part of a budget beside another part."""
    tree = ET.fromstring(table([("epsilon", "1"), ("delta", "0")], shares=(0.25, 1.0)))
    assert [bar.get("aria-label") for bar in tree.iter("svg")] == ["25% left", "100% left"]


def test_an_answer_is_shown_as_a_notebook_would_show_it():
    """A frame in a report would be a wall of text, and a huge one would fill it."""

    class Own:
        def _repr_html_(self):
            return "<b>own</b>"

    assert preview(Own()) == "<b>own</b>"
    assert ">0.5<" in preview(np.float64(0.5))
    assert len(preview("x" * 10_000)) < 2_200
