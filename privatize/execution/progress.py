"""Progress: a bar for whoever is watching, on stderr; log records for the rest."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

__all__ = ["Progress"]

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
        self._label, self._total, self._done = label, total, done
        self._first = done
        self._show = sys.stderr is not None and (_watched() if show is None else show)
        self._from = 0.0 if show else time.monotonic() + _PATIENCE
        self._began = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if self._show and self._from == 0.0:
            self._open()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, pairs: int) -> None:
        """Count pairs that have been done."""
        self._done += pairs
        if self._bar is not None:
            self._bar.update(pairs)
        elif self._show and time.monotonic() > self._from:
            self._open()

    def _open(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without ipywidgets gets a bar of text
            from tqdm.auto import tqdm

        self._bar = tqdm(
            total=self._total,
            initial=self._first,
            desc=self._label,
            unit=" pairs",
            smoothing=0,
            file=sys.stderr,
            leave=False,
        )
        self._bar.start_t -= time.monotonic() - self._began  # it began before anybody saw it
        self._bar.update(self._done - self._first)


def _watched() -> bool:
    """Tell whether somebody is looking at stderr: a terminal, or a notebook."""
    shell = sys.modules.get("IPython")
    if shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell":
        return True
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False
