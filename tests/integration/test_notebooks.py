"""The notebooks of the examples run, and show what they were saved with."""

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed (extra test-all)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra test-all)")

from tests.notebooks import NOTEBOOKS, executed  # noqa: E402 - they need the libraries above


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _kinds(cell):
    """Return what a cell shows: printed text, a value, a picture."""
    return [(each.output_type, sorted(each.get("data", ()))) for each in cell.outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_shows_what_was_saved(path):
    """A reader who runs a notebook would see an error, or something else than on the page."""
    saved = nbformat.read(path, as_version=4)
    assert [cell.execution_count for cell in _code(saved)] == [*range(1, len(_code(saved)) + 1)]
    assert [_kinds(cell) for cell in _code(executed(path))] == [_kinds(cell) for cell in _code(saved)]


def test_no_path_of_a_machine_is_saved():
    """A published notebook would tell where somebody's files are."""
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert not any(place in text for place in ("/home/", "/root/", "/tmp/", "/work/", "site-packages")), (
            path.name
        )
