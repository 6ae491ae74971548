"""Run the notebooks of the examples: ``python -m tests.notebooks --write`` saves what they show.

Messages on stderr are left out: they have paths of the machine, and bars that have long gone. The test
`tests/integration/test_notebooks.py` runs them again.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))


def executed(path: Path) -> Any:
    """Return a notebook after its cells have run, in an empty folder; it raises what a cell raises."""
    import nbformat  # not above: the tests import this file where it is not installed
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if cell.cell_type == "code":
            cell.outputs = _shown(cell.outputs)
    return notebook


def _shown(outputs: list[Any]) -> list[Any]:
    """Return what a cell shows, without stderr; what it prints is in one piece."""
    shown: list[Any] = []
    for each in outputs:
        if each.get("name") == "stdout" and shown and shown[-1].get("name") == "stdout":
            shown[-1].text += each.text
        elif each.get("name") != "stderr":
            shown.append(each)
    return shown


def main() -> None:
    """Run all notebooks, and save them if that is wanted."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="save the notebooks with their outputs")
    write = parser.parse_args().write
    for path in NOTEBOOKS:
        notebook = executed(path)
        print(path.name, sum(cell.cell_type == "code" for cell in notebook.cells), "cells")
        if write:
            import nbformat

            nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
