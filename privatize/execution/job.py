"""What is handed out to be evaluated, and what comes back: gaps of pairs, and causes of infinite ones."""

import json
import traceback
from collections.abc import Callable
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privatize.errors import ExecutionError, PrivatizeError, restore
from privatize.outputs.describe import from_json
from privatize.outputs.structure import Structure

Vector = NDArray[np.float64]
Span = tuple[int, int]
Facts = tuple[Any, ...]
Heartbeat = Callable[[int], object]
CauseKind = Literal["raised", "structure", "output", "not_finite", "timed_out", "killed", "crashed"]


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
    kind : str
        What kind of failure it was: the function ``"raised"``, returned another ``"structure"``, an
        ``"output"`` that cannot be released or that is ``"not_finite"``, ``"timed_out"``; or its process
        was ``"killed"`` (SIGKILL) or ``"crashed"``. Remedies are chosen by it.
    text : str
        What happened, in a few words.
    error : BaseException or None
        What the function raised.
    trace : str
        The traceback of an error that was raised in another process.
    """

    index: int
    kind: CauseKind
    text: str
    error: BaseException | None = None
    trace: str = ""

    @classmethod
    def of(cls, index: int, error: BaseException) -> Self:
        """Return the cause that an exception is."""
        if isinstance(error, MemoryError):  # let go of what took the memory: others need it
            traceback.clear_frames(error.__traceback__)
        return cls(index, "raised", shown(traceback.format_exception_only, error).strip(), error)

    def plain(self) -> Self:
        """Return the same as text, for another process: not every exception can be pickled."""
        if self.error is None:
            return self
        trace = shown(traceback.format_exception, self.error)
        return replace(self, text=self.text[-2000:], error=None, trace=trace[-20_000:])

    def facts(self) -> Facts:
        """Return the same as plain values."""
        return astuple(self.plain())

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
class Learned:
    """What evaluated pairs have shown about a function.

    Attributes
    ----------
    structure : Structure or None
        Structure of the output, if it is known by now.
    uses_global_rng : bool
        Whether the function has been seen to use the global generators.
    """

    structure: Structure | None = None
    uses_global_rng: bool = False


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
    structure, uses_global_rng
        What is known about the function by now: see `Learned`.
    cause : Cause or None
        Why the first infinite one is.
    rounding_noise : float
        By how much the same evaluation has been seen to differ, by rounding.
    coordinate_gaps : dict
        The gaps of all numbers of the output, by the pair's index, where they are wanted.
    warned : list
        Warnings that the function gave: the name of the category, text, file and line; one for each place.
    """

    start: int
    gaps: Vector
    seconds: float
    structure: Structure | None = None
    uses_global_rng: bool = False
    cause: Cause | None = None
    rounding_noise: float = 0.0
    coordinate_gaps: dict[int, Vector] = field(default_factory=dict)
    warned: list[tuple[str, str, str, int]] = field(default_factory=list)

    def facts(self) -> Facts:
        """Return the same as plain values, for another process: pickling may have been changed.

        Classes in an output are left out, since those of the same name may be others there.
        """
        return (
            *(int(self.start), np.asarray(self.gaps, dtype=float).tobytes(), float(self.seconds)),
            None if self.structure is None else json.dumps(self.structure.to_json()),
            bool(self.uses_global_rng),
            None if self.cause is None else self.cause.facts(),
            float(self.rounding_noise),
            {int(at): np.asarray(step, dtype=float).tobytes() for at, step in self.coordinate_gaps.items()},
            list(self.warned),
        )

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """Return what another process has found."""
        start, gaps, seconds, structure, uses_global_rng, cause, rounding_noise, steps, warned = facts
        return cls(
            *(start, np.frombuffer(gaps).copy(), seconds),
            None if structure is None else from_json(json.loads(structure)),
            uses_global_rng,
            None if cause is None else Cause(*cause),
            rounding_noise,
            {index: np.frombuffer(step).copy() for index, step in steps.items()},
            warned,
        )


class Job(Protocol):
    """A function, P and a seed: what the gaps of pairs follow from, wherever they are evaluated.

    Attributes
    ----------
    version : str or None
        Attests what the fingerprint of its parts cannot encode.
    timeout : float or None
        Seconds for one pair.
    block : int
        How many pairs share a stream.
    """

    version: str | None
    timeout: float | None
    block: int

    def identity(self) -> dict[str, Any]:
        """Return what must be the same on both sides, by name."""

    def evaluate(self, span: Span, learned: Learned, heartbeat: Heartbeat | None = None) -> SpanResult:
        """Evaluate the pairs from one index up to another, with the global generators under guard.

        A `heartbeat` is given in workers, and called with every index before its pair is evaluated: there an
        interrupt is not the user's, and the caller's own contexts are to be entered first.
        """


@dataclass(frozen=True)
class Reply:
    """What a worker answers: what it found, or why it found nothing.

    Attributes
    ----------
    status : str
        ``"found"``, or: an ``"error"`` of this library; the job was ``"refused"``; the package is
        ``"missing"`` there.
    results : list of tuple
        What was found: the facts of each `SpanResult`.
    error : dict or None
        The error of this library, for `restore`.
    reason : str
        Why the job was refused.
    """

    status: Literal["found", "error", "refused", "missing"]
    results: list[Facts] = field(default_factory=list)
    error: dict[str, Any] | None = None
    reason: str = ""

    @classmethod
    def to(cls, evaluate: Callable[[], list[SpanResult] | None]) -> Self:
        """Evaluate pairs, and return the answer, whatever happens.

        Where there is no job to evaluate, `evaluate` returns None.
        """
        try:
            found = evaluate()
            if found is None:
                return cls("missing")
            return cls("found", [each.facts() for each in found])
        except PrivatizeError as error:
            return cls("error", error=error.plain().facts())
        except Refused as error:
            return cls("refused", reason=str(error))
        except BaseException as error:  # of the sampler, say: whatever it is, the sender says so
            cause = Cause.of(0, error).plain()
            failed = ExecutionError(f"Drawing the pairs failed in a worker: {cause.text}.")
            failed.add_note(str(cause.exception()))
            return cls("error", error=failed.facts())

    def read(self) -> list[SpanResult]:
        """Return what was found, or raise what happened instead."""
        if self.status == "refused":
            raise Refused(self.reason)
        if self.error is not None:
            raise restore(self.error)
        return [SpanResult.of(facts) for facts in self.results]
