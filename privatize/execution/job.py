"""What is handed out to be evaluated, and what comes back: spans of gaps, and causes of infinite ones."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privatize.outputs.structure import Structure

__all__ = ["Cause", "Refused", "RemoteTraceback", "SpanResult", "shown"]

Vector = NDArray[np.float64]


class Refused(BaseException):
    """What arrived in this process is not what was sent.

    A signal between modules. Not an Exception, which the user's functions might swallow.
    """


class RemoteTraceback(Exception):  # noqa: N818 - it shows what happened in another process
    """What a function raised in another process, as text."""

    def __str__(self) -> str:
        return "in another process:\n\n" + str(self.args[0])


@dataclass(frozen=True)
class Cause:
    """Why a pair counts as infinite.

    Attributes
    ----------
    index : int
        Which pair it was.
    text : str
        What happened, in a few words.
    error : BaseException or None
        What the function raised.
    trace : str
        The traceback of an error that was raised in another process.
    """

    index: int
    text: str
    error: BaseException | None = None
    trace: str = ""

    @classmethod
    def of(cls, index: int, error: BaseException) -> Cause:
        """Return the cause that an exception is."""
        if isinstance(error, MemoryError):  # let go of what took the memory: others need it
            traceback.clear_frames(error.__traceback__)
        return cls(index, shown(traceback.format_exception_only, error).strip(), error)

    def plain(self) -> Cause:
        """Return the same as text, for another process: not every exception can be pickled."""
        if self.error is None:
            return self
        trace = shown(traceback.format_exception, self.error)
        return Cause(self.index, self.text[-2000:], None, trace[-20_000:])

    def exception(self) -> BaseException | None:
        """Return what to show as the reason of an error."""
        return RemoteTraceback(self.trace) if self.trace else self.error


def shown(form: Callable[[BaseException], list[str]], error: BaseException) -> str:
    """Return what a formatter of `traceback` makes of an error, or its class's name if that fails."""
    try:
        return "".join(form(error))
    except BaseException:  # whatever the function did to the interpreter
        return type(error).__name__


@dataclass(frozen=True)
class SpanResult:
    """The gaps of the pairs from one index on, and what was learned on the way.

    Attributes
    ----------
    start : int
        Index of the first pair.
    gaps : array
        One gap for each.
    seconds : float
        How long they took.
    structure : Structure or None
        Structure of the output, if it is known by now.
    tossing : bool
        Whether the function has been seen to use the global generators.
    cause : Cause or None
        Why the first infinite one is.
    jitter : float
        By how much the same evaluation has been seen to differ, by rounding.
    kept : dict
        The gaps of all numbers of the output, by index, where they are wanted.
    """

    start: int
    gaps: Vector
    seconds: float
    structure: Structure | None = None
    tossing: bool = False
    cause: Cause | None = None
    jitter: float = 0.0
    kept: dict[int, Vector] = field(default_factory=dict)
