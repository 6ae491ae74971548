"""The list of tests that were left out, for want of a library say, so that they can be run elsewhere."""

import os
from pathlib import Path

IN_A_WORKER = "PYTEST_XDIST_WORKER" in os.environ  # whose reports the main process gets


def left_out(*names: str) -> None:
    """Add tests to the file that PRIVATIZE_LEFT_OUT names, if it names one: the pages of docs as a whole.

    ``pytest @file`` runs them.
    """
    path = os.environ.get("PRIVATIZE_LEFT_OUT")
    entire = [name.partition(".md::")[0] + ".md" if ".md::" in name else name for name in names]
    if path:
        with Path(path).open("a") as file:
            file.writelines(f"{name}\n" for name in entire)
