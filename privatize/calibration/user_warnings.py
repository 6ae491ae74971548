"""Warnings that the user's function gives while it is calibrated: shown once for each place in the code.

Python shows a warning again whenever its text differs, and a calibration runs the function a thousand times.
"""

import sys
import threading
import warnings
from typing import Any

from privatize.calibration.global_rng import level
from privatize.execution.job import Warned

_LONGEST = 500  # characters of a text that are sent from a worker


class collected_warnings:  # noqa: N801 - used like a function
    """Collect this thread's warnings, the first of each place, while global generators are under guard.

    Parameters
    ----------
    places : set
        The places that are known already; those that are found are added.

    Examples
    --------
    >>> from privatize.calibration.global_rng import rng_guard
    >>> with warnings.catch_warnings(action="always"), rng_guard(1), collected_warnings(set()) as found:
    ...     for k in range(3):
    ...         warnings.warn(f"number {k}")
    >>> [each.text for each in found]
    ['number 0']
    """

    def __init__(self, places: set[tuple[str, str, int]]) -> None:
        self._places = places
        self._found: list[Warned] = []
        self._thread = threading.get_ident()

    def __enter__(self) -> list[Warned]:
        self._before: Any = warnings.showwarning
        warnings.showwarning = self._show  # type: ignore[assignment] # called with these by position
        return self._found

    def __exit__(self, *_: object) -> None:
        warnings.showwarning = self._before

    def _show(self, message: Any, category: Any, filename: str, lineno: int, *rest: Any) -> None:
        # If this thread has no guard, an interrupt came before __exit__.
        if threading.get_ident() != self._thread or not level():
            self._before(message, category, filename, lineno, *rest)
            return
        text = str(message)[:_LONGEST]
        found = Warned(category.__module__, category.__qualname__, text, str(filename), int(lineno))
        if found.place not in self._places:
            self._places.add(found.place)
            self._found.append(found)


def show(found: list[Warned], shown: set[tuple[str, str, int]]) -> None:
    """Show collected warnings, from this or another process, once for each place."""
    for each in found:
        if each.place not in shown:
            shown.add(each.place)
            kind, text = getattr(sys.modules.get(each.module), each.category, None), each.text
            if not (isinstance(kind, type) and issubclass(kind, Warning)):  # defined in a function, say
                kind, text = UserWarning, f"{each.category}: {text}"
            # Not `warn_explicit`: the filters have let it pass where the function ran.
            warnings.showwarning(text, kind, each.filename, each.line)
