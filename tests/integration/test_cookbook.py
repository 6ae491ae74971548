"""The tables of docs/cookbook.md are those that examples/cookbook.py makes."""

import importlib.util
import warnings
from pathlib import Path

import pytest

from privatize.errors import FragileEstimateWarning

pytest.importorskip("pandas")
pytest.importorskip("sklearn")
FILE = Path(__file__).parents[2] / "examples" / "cookbook.py"


@pytest.fixture(scope="module")
def script():
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("cookbook_example", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cells(text):
    """Return the cells of a table in Markdown."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def number(cell):
    return float(cell.replace(",", ""))


def test_the_page_has_every_table(script):
    """A reader would miss a table, or find one that nothing makes."""
    page = script.PAGE.read_text(encoding="utf-8")
    assert [name for name, _ in script.in_page(page)] == [*script.QUESTIONS, "starts"]


def test_the_page_has_every_way_to_ask(script):
    """A way that the script measures would have no figures on the page, or figures under a wrong head."""
    page = dict(script.in_page(script.PAGE.read_text(encoding="utf-8")))
    for name, question in script.QUESTIONS.items():
        head, _, _, *rows = cells(page[name])
        assert head == script.heads(question, script.SIZES), name
        assert [row[0] for row in rows] == [way.title for way in question.ways()], name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["survival"])
def test_errors_are_those_of_the_page(script, name):
    """Somebody would choose a way to ask by figures that are no longer true.

    How noise is divided is chosen on a few pairs, so figures of the same way may differ by half.
    """
    page = dict(script.in_page(script.PAGE.read_text(encoding="utf-8")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FragileEstimateWarning)
        made = script.table(script.QUESTIONS[name], (1_000,), 20)
    written = cells(page[name])
    kept = [0, *range(1, len(written[0]), 2)]  # the columns of n = 1,000
    for old, new in zip(written[2:], made[1:], strict=True):
        for before, now in zip([old[at] for at in kept[1:]], new[1:], strict=True):
            if before:
                assert 1 / 4 < number(now) / number(before) < 4, (name, old[0], before, now)
