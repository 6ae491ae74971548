"""Progress: a bar for whoever is watching, on stderr; log records for the rest."""

import contextlib
import sys
import warnings
from typing import Any

_PATIENCE = 1.0  # seconds that nobody needs a bar for


class _Nothing(contextlib.nullcontext[Any]):
    """Stands for a bar that nobody sees."""

    def __enter__(self) -> Any:
        return self

    def update(self, pairs: int) -> None:
        """Count nothing."""


def bar(label: str, total: int, done: int = 0, show: bool | None = None) -> Any:
    """Return a context in which ``update(pairs)`` shows how many pairs are done.

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
    >>> with bar("mean", total=100, show=False) as progress:
    ...     progress.update(100)
    """
    if sys.stderr is None or not (_watched() if show is None else show):
        return _Nothing()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a notebook without ipywidgets gets a bar of text
        from tqdm.auto import tqdm

    when: Any = {"delay": 0 if show else _PATIENCE, "smoothing": 0, "leave": False}
    return tqdm(total=total, initial=done, desc=label, unit=" pairs", file=sys.stderr, **when)


def _watched() -> bool:
    """Tell whether somebody is looking at stderr: a terminal, or a notebook."""
    shell = sys.modules.get("IPython")
    if shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell":
        return True
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False
