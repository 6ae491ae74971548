"""What workers are sent and what they return: jobs, gaps of pairs, and causes of infinite gaps."""

import json
import traceback
from collections.abc import Callable, Generator
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np

from privatize.errors import ExecutionError, PrivatizeError, restore
from privatize.outputs.describe import from_json
from privatize.outputs.structure import Structure, Vector

Span = tuple[int, int]
Facts = tuple[Any, ...]
Heartbeat = Callable[[int], object]
CauseKind = Literal["raised", "structure", "output", "not_finite", "timed_out", "killed", "crashed"]


class Refused(BaseException):
    """A job cannot be evaluated in this process exactly as it was sent.

    Only this library raises and catches it. It is not an Exception, because user code may catch those.
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
        """Return the cause for an exception that the function raised."""
        if isinstance(error, MemoryError):  # free what took the memory: other pairs need it
            traceback.clear_frames(error.__traceback__)
        return cls(index, "raised", shown(traceback.format_exception_only, error).strip(), error)

    def as_text(self) -> Self:
        """Return the cause with text in place of the exception, since not all exceptions can be pickled."""
        if self.error is None:
            return self
        trace = shown(traceback.format_exception, self.error)
        return replace(self, text=self.text[-2000:], error=None, trace=trace[-20_000:])

    def facts(self) -> Facts:
        """Return the cause as a tuple of built-in values."""
        return astuple(self.as_text())

    def exception(self) -> BaseException | None:
        """Return the exception to show as the cause of an error."""
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


class Warned(NamedTuple):
    """A warning of the function: its category by module and name, its text, and its place in the code."""

    module: str
    category: str
    text: str
    filename: str
    line: int

    @property
    def place(self) -> tuple[str, str, int]:
        """What is shown once."""
        return self.category, self.filename, self.line


@dataclass(frozen=True)
class SpanResult:
    """The gaps of the pairs from one index on, and what they showed about the function.

    Attributes
    ----------
    start : int
        Index of the first pair.
    gaps : array
        One gap for each pair.
    seconds : float
        How long the pairs took.
    structure, uses_global_rng
        What is known about the function by now: see `Learned`.
    cause : Cause or None
        Why the first infinite gap is infinite.
    rounding_noise : float
        The largest difference by rounding that was seen between two evaluations of the same pair.
    coordinate_gaps : dict
        By the index of a pair: how far each number of the output moves. Empty unless the job needs them.
    answers : dict
        By the index of a pair: the numbers of the output. Of some pairs, to show how far they are spread.
    warned : list
        Warnings that the function gave, one for each place in the code.
    """

    start: int
    gaps: Vector
    seconds: float
    structure: Structure | None = None
    uses_global_rng: bool = False
    cause: Cause | None = None
    rounding_noise: float = 0.0
    coordinate_gaps: dict[int, Vector] = field(default_factory=dict)
    answers: dict[int, Vector] = field(default_factory=dict)
    warned: list[Warned] = field(default_factory=list)

    def facts(self) -> Facts:
        """Return the result as a tuple of built-in values, for another process.

        It is not pickled, because the function may have changed how that works. Classes in an output are
        left out, because a class of the same name may be a different one there.
        """
        return (
            *(int(self.start), np.asarray(self.gaps, dtype=float).tobytes(), float(self.seconds)),
            None if self.structure is None else json.dumps(self.structure.to_json()),
            bool(self.uses_global_rng),
            None if self.cause is None else self.cause.facts(),
            float(self.rounding_noise),
            *(_packed(each) for each in (self.coordinate_gaps, self.answers)),
            [tuple(each) for each in self.warned],
        )

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """Return the result that another process has sent as facts."""
        start, gaps, seconds, structure, uses_global_rng, cause, rounding_noise, *rest = facts
        steps, answers, warned = rest
        return cls(
            *(start, np.frombuffer(gaps).copy(), seconds),
            None if structure is None else from_json(json.loads(structure)),
            uses_global_rng,
            None if cause is None else Cause(*cause),
            rounding_noise,
            _unpacked(steps),
            _unpacked(answers),
            [Warned(*each) for each in warned],
        )


def _packed(vectors: dict[int, Vector]) -> dict[int, bytes]:
    return {int(at): np.asarray(one, dtype=float).tobytes() for at, one in vectors.items()}


def _unpacked(vectors: dict[int, bytes]) -> dict[int, Vector]:
    return {at: np.frombuffer(one).copy() for at, one in vectors.items()}


class Packable(Protocol):
    """What can be evaluated in another process.

    Attributes
    ----------
    version : str or None
        Attests what the fingerprint of its parts cannot encode.
    """

    version: str | None

    def identity(self) -> dict[str, Any]:
        """Return what must be the same in both processes, by name."""


Results = Generator[SpanResult, None, None]
"""Results as they come in."""


class Job(Packable, Protocol):
    """A function, P and a seed, which decide the gaps of all pairs, wherever these are evaluated.

    Attributes
    ----------
    timeout : float or None
        Seconds for one pair.
    block : int
        How many pairs share a stream.
    """

    timeout: float | None
    block: int

    def evaluate(self, span: Span, learned: Learned, heartbeat: Heartbeat | None = None) -> SpanResult:
        """Evaluate the pairs from one index up to another, with the global generators under guard.

        Workers pass a `heartbeat`, which is called with every index before its pair is evaluated. With it,
        an interrupt is not the user's, so it counts as a failure, and the caller's contexts are entered.
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

        `evaluate` returns None if this process lacks the job.
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
        except BaseException as error:  # raised by the sampler, for example: the sender reports it
            cause = Cause.of(0, error).as_text()
            failed = ExecutionError(f"Drawing the pairs failed in a worker: {cause.text}.")
            failed.add_note(str(cause.exception()))
            return cls("error", error=failed.facts())

    def read(self) -> list[SpanResult]:
        """Return the results, or raise the error that the worker reports."""
        if self.status == "refused":
            raise Refused(self.reason)
        if self.error is not None:
            raise restore(self.error)
        return [SpanResult.of(facts) for facts in self.results]
