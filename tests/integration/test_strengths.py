"""The tables of docs/strengths.md are those that examples/strengths.py makes."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("pandas")
FILE = Path(__file__).parents[2] / "examples" / "strengths.py"


@pytest.fixture(scope="module")
def script():
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("strengths_example", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cells(text):
    """Return the cells of a table in Markdown."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_the_page_has_every_table(script):
    """A reader would miss a table, or find one that nothing makes."""
    page = script.PAGE.read_text(encoding="utf-8")
    assert [name for name, _ in script.in_page(page)] == list(script.TABLES)


@pytest.mark.slow
def test_errors_are_those_of_the_page(script):
    """Somebody would choose a strength by figures that are no longer true.

    To be 4 times as large, a root of a mean square of 20 needs a number of 24 times the scale of its Laplace
    noise: false alarm about 1e-8 for all cells together.
    """
    page = dict(script.in_page(script.PAGE.read_text(encoding="utf-8")))
    for name in ("strengths", "biases"):
        written, made = (cells(text) for text in (page[name], script.markdown(script.TABLES[name](20))))
        assert len(written) == len(made) and written[0] == made[0]
        for old, new in zip(written[2:], made[2:], strict=True):
            assert old[0] == new[0]
            for before, now in zip(old[1:], new[1:], strict=True):
                ratio = float(now.replace(",", "")) / float(before.replace(",", ""))
                assert 1 / 4 < ratio < 4, (name, old[0], before, now)
