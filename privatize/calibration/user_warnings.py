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


class WarningIsError(BaseException):
    """A warning that a filter of the user's makes an error. No function catches it by chance.

    On private data every warning is ignored. A function that takes another way after such an error would take
    that way in the calibration only.
    """


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
        self._known: Any = []
        self._filters: list[Any] = []

    def __enter__(self) -> list[Warned]:
        self._known, self._filters = warnings.filters, list(warnings.filters)
        if "error" in {action for action, *_ in self._filters}:
            softer = [("always" if action == "error" else action, *which) for action, *which in self._filters]
            set_filters(self._known, softer)
        self._before: Any = warnings.showwarning
        warnings.showwarning = self._show  # type: ignore[assignment] # called with these by position
        return self._found

    def __exit__(self, *_: object) -> None:
        warnings.showwarning = self._before
        if "error" in {action for action, *_ in self._filters}:
            set_filters(self._known, self._filters)

    def _is_error(self, text: str, category: Any, line: int) -> bool:
        """Tell whether a filter makes a warning an error; in doubt, which is about modules, it does."""
        for action, message, kind, module, at in self._filters:
            fits = (message is None or message.match(text)) and issubclass(category, kind) and at in (0, line)
            if fits and (action == "error" or module is None):
                return bool(action == "error")
        return False

    def _show(self, message: Any, category: Any, filename: str, lineno: int, *rest: Any) -> None:
        # If this thread has no guard, an interrupt came before __exit__.
        if threading.get_ident() != self._thread or not level():
            self._before(message, category, filename, lineno, *rest)
            return
        if self._is_error(str(message), category, lineno):
            raise WarningIsError(f"{category.__qualname__}: {message} (a filter makes it an error)")
        text = str(message)[:_LONGEST]
        found = Warned(category.__module__, category.__qualname__, text, str(filename), int(lineno))
        if found.place not in self._places:
            self._places.add(found.place)
            self._found.append(found)


def set_filters(known: list[Any], filters: list[Any]) -> None:
    """Set filters of warnings; `known` is the list that ``warnings.filters`` was: threads exchange it."""
    known[:] = filters
    with warnings.catch_warnings():  # so that Python notices that they have changed
        pass


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
