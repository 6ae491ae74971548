"""Show a progress bar on stderr, by default if that is a terminal or a notebook."""

import contextlib
import sys
import types
import warnings
from typing import Any

_DELAY = 1.0  # seconds: calibrations that take less need no bar


def bar(label: str, total: int, done: int = 0, show: bool | None = None) -> Any:
    """Return a context in which ``update(pairs)`` shows how many pairs are done.

    Parameters
    ----------
    label : str
        Name of the function.
    total, done : int
        Number of pairs, and how many of them are done already.
    show : bool or None
        Whether to show a bar. None: if it takes more than a second and stderr is a terminal or a
        notebook.

    Examples
    --------
    >>> with bar("mean", total=100, show=False) as progress:
    ...     progress.update(100)
    """
    if sys.stderr is None or not (_interactive() if show is None else show):
        return contextlib.nullcontext(types.SimpleNamespace(update=lambda _: None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a notebook without ipywidgets gets a bar of text
        from tqdm.auto import tqdm

    options: Any = {"delay": 0 if show else _DELAY, "smoothing": 0, "leave": False}
    return tqdm(total=total, initial=done, desc=label, unit=" pairs", file=sys.stderr, **options)


def _interactive() -> bool:
    """Tell whether stderr is a terminal or a notebook."""
    shell = sys.modules.get("IPython")
    if shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell":
        return True
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # it is not a usual file, or it is closed
        return False
