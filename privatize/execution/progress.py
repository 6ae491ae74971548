"""Progress: a bar for whoever is watching, on stderr; log records for the rest."""

from __future__ import annotations

import sys
import warnings
from typing import Any

_PATIENCE = 1.0  # seconds that nobody needs a bar for


class Progress:
    """How many pairs are done.

    Parameters
    ----------
    label : str
        Name of the function.
    total, done : int
        Pairs that there are, and that are there already.
    show : bool or None
        Whether to show a bar. None: if it takes more than a second and somebody is watching, on a
        terminal or in a notebook.

    Examples
    --------
    >>> with Progress("mean", total=100, show=False) as progress:
    ...     progress.add(100)
    """

    def __init__(self, label: str, total: int, done: int = 0, show: bool | None = None) -> None:
        self._bar: Any = None
        if sys.stderr is None or not (_watched() if show is None else show):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without ipywidgets gets a bar of text
            from tqdm.auto import tqdm

        when: Any = {"delay": 0 if show else _PATIENCE, "smoothing": 0, "leave": False}
        self._bar = tqdm(total=total, initial=done, desc=label, unit=" pairs", file=sys.stderr, **when)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, pairs: int) -> None:
        """Count pairs that have been done."""
        if self._bar is not None:
            self._bar.update(pairs)


def _watched() -> bool:
    """Tell whether somebody is looking at stderr: a terminal, or a notebook."""
    shell = sys.modules.get("IPython")
    if shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell":
        return True
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False
