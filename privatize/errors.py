"""Every error and warning of the library.

::

    PrivatizeError
    ├── SettingsError (ValueError)     an argument of ours is wrong
    │   ├── PlanError                  gamma, m and rho are not possible together
    │   ├── PolicyError                the policy of this code base does not allow it
    │   └── SamplerError               this is not a distribution P, or it misbehaves
    ├── ArgumentError (TypeError)      the call does not fit the function
    ├── DataError (TypeError)          the dataset is not made of records that P could have drawn
    │   └── InputError (ValueError)    the input of a private estimator does not fit P
    ├── OutputError (TypeError)        the function's output cannot be released
    ├── CalibrationError               calibration gave no usable sensitivity
    │   ├── InfiniteSensitivityError   too many sampled pairs failed
    │   ├── ZeroSensitivityError       no sampled pair changed the answer
    │   ├── NotReproducibleError       function or sampler differ on identical input
    │   ├── BoundError                 a pair of neighbours is beyond a bound that was given as proven
    │   └── PairError                  `pair=`, or `additive`, disagrees with the function itself
    ├── ExecutionError                 the function cannot run where `workers=` says
    ├── BudgetExceeded                 the budget does not have enough left; nothing was spent
    ├── LedgerError                    the ledger cannot be read or written, or is damaged
    ├── SealedError (TypeError)        sealed data was touched by something that is not private
    ├── ScoreError (AttributeError)    a model cannot be scored on private data outside a private function
    ├── AuditError (AssertionError)    an audit found the promise broken
    └── PrivateRunError                the private run failed, left something behind, or would leave it

    PrivatizeWarning (UserWarning)
    ├── NotRememberedWarning           an estimate cannot be remembered for the next call
    ├── UninformativeWarning           an answer would be mostly noise
    ├── FragileEstimateWarning         an estimate hangs on an assumption of P
    ├── ConstraintWarning              an answer could not be made valid, and is returned as it is
    ├── UnitWarning                    people may have several rows, and nobody has said so
    ├── StoreWarning                   remembered estimates cannot be read or written
    ├── UnsharedBudgetWarning          a budget is in the memory of one process
    └── InsecureNoiseWarning           noise is seeded, for tests: nothing is private

No message, argument or attribute of these ever contains private data.
"""

import re
import traceback
from typing import Any, ClassVar, Self


class PrivatizeError(Exception):
    """Base of every error that this library raises.

    Parameters
    ----------
    message : str
        Value, rule, remedy.
    **facts
        The numbers in the message, which become attributes.

    Examples
    --------
    >>> import pickle
    >>> error = PrivatizeError("gamma=2 is too large", gamma=2)
    >>> pickle.loads(pickle.dumps(error)).gamma
    2
    """

    is_paragraph: ClassVar[bool] = True
    """Whether the message is one paragraph, which our source has on several indented lines."""

    def __init__(self, message: str = "", **facts: Any) -> None:
        super().__init__(re.sub(r"\n {8,}", " ", message) if self.is_paragraph else message)
        self.__dict__.update(facts)

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross processes; BaseException's own reduce would lose the keyword arguments.
        return _rebuild, (type(self), str(self), dict(self.__dict__))

    def plain(self) -> Self:
        """Return the same error without traceback, cause and context; the cause becomes a note.

        Errors are stored in this form: a traceback would keep alive, and show to others, all that is in its
        frames.
        """
        facts = {k: v for k, v in vars(self).items() if not k.startswith("__")}
        new = type(self)(str(self), **facts)
        for note in getattr(self, "__notes__", ()):
            new.add_note(note)
        if self.__cause__ is not None:
            shown = traceback.format_exception(self.__cause__, chain=False)
            new.add_note("The first cause, when it was calibrated:\n" + "".join(shown).rstrip())
        return new

    def facts(self) -> dict[str, Any]:
        """Return the error as values that JSON has, for `restore`."""
        numbers = {k: v for k, v in vars(self).items() if isinstance(v, int | float | str | None)}
        notes = list(getattr(self, "__notes__", ()))
        return {"kind": type(self).__name__, "message": str(self), "numbers": numbers, "notes": notes}


def restore(facts: dict[str, Any]) -> PrivatizeError:
    """Return the error that `PrivatizeError.facts` describes; an unknown kind becomes a CalibrationError."""
    named = globals().get(str(facts["kind"]))
    known = isinstance(named, type) and issubclass(named, PrivatizeError)
    kind: Any = named if known else CalibrationError
    error: PrivatizeError = kind(facts["message"], **facts["numbers"])
    for note in facts["notes"]:
        error.add_note(note)
    return error


def _rebuild(kind: type[PrivatizeError], message: str, facts: dict[str, Any]) -> PrivatizeError:
    return kind(message, **{k: v for k, v in facts.items() if not k.startswith("__")})


class SettingsError(PrivatizeError, ValueError):
    """An argument has a value that the library cannot use."""


class PlanError(SettingsError):
    """The request for gamma, m and rho is infeasible.

    Attributes
    ----------
    gamma, m : float or int or None
        What was asked for.
    bound : str
        The bound that was asked for.
    least_gamma : float or None
        The smallest feasible gamma at this m, where there is one.
    least_m : int or None
        The smallest feasible m at this gamma, where there is one.
    """

    gamma: float | None = None
    m: int | None = None
    bound: str | None = None
    least_gamma: float | None = None
    least_m: int | None = None


class SamplerError(SettingsError):
    """An object is not a sampler, or does not do what a sampler must do."""


class ArgumentError(PrivatizeError, TypeError):
    """A call's arguments do not fit the privatized function."""


class DataError(PrivatizeError, TypeError):
    """The dataset is not made of records that the sampler could have drawn."""


class OutputError(PrivatizeError, TypeError):
    """The output of the function is of a kind that cannot be released."""


class CalibrationError(PrivatizeError):
    """The sampled pairs gave no sensitivity that could be used."""


class InfiniteSensitivityError(CalibrationError):
    """Too many sampled pairs failed: the order statistic is infinite."""


class ZeroSensitivityError(CalibrationError):
    """The order statistic is zero: zero noise would be no privacy."""


class NotReproducibleError(CalibrationError):
    """The function or the sampler gives different results for identical input.

    Attributes
    ----------
    remembered : bool
        Whether the other result was that of another process.
    """

    remembered: bool = False


class BoundError(CalibrationError):
    """A pair of neighbours, made of public records, is beyond the bound that the user has proven.

    Attributes
    ----------
    gap, bound : float
        How far apart the outputs are, infinite if the function failed; and what was given.
    n, position : int
        Number of records, and which of them was replaced.
    replaced, replacement : str
        The record that was replaced, and the one that replaced it, in brief.
    """

    gap: float
    bound: float
    n: int
    position: int
    replaced: str
    replacement: str


class PairError(CalibrationError):
    """The fast evaluation, by `pair=` or `additive`, disagrees with the function itself."""


class ExecutionError(PrivatizeError):
    """The function cannot be evaluated where `workers=` says."""


class BudgetExceeded(PrivatizeError):  # noqa: N818 - other libraries use this name
    """A budget does not have enough left for a release. Nothing was spent.

    Attributes
    ----------
    epsilon, delta, gamma : float
        What was asked for.
    epsilon_left, delta_left, gamma_left : float
        What is left.
    epsilon_cap, delta_cap, gamma_cap : float
        The caps of the budget.
    """

    epsilon: float
    delta: float
    gamma: float
    epsilon_left: float
    delta_left: float
    gamma_left: float
    epsilon_cap: float
    delta_cap: float
    gamma_cap: float


class LedgerError(PrivatizeError):
    """The ledger cannot be read or written, or what is in it does not add up."""


class SealedError(PrivatizeError, TypeError):
    """Sealed data was touched by something that is not a private function."""


class ScoreError(PrivatizeError, AttributeError):
    """A private model cannot be scored on private data outside a private function."""


class InputError(DataError, ArgumentError, ValueError):
    """The input of a private estimator does not fit P; scikit-learn expects a ValueError."""


class PolicyError(SettingsError):
    """The policy of this code base does not allow what was asked."""


class AuditError(PrivatizeError, AssertionError):
    """An audit found that the promise is not kept."""

    is_paragraph = False  # it is the card of the audit


class PrivateRunError(PrivatizeError):
    """The function failed on the private data or left some of it behind, or is not run since it would."""


class PrivatizeWarning(UserWarning):
    """Base of every warning that this library emits."""


class StoreWarning(PrivatizeWarning):
    """Remembered estimates cannot be read or written, which only costs time."""


class UnsharedBudgetWarning(PrivatizeWarning):
    """A budget is in the memory of one process only, and ``ledger="memory"`` does not say so."""


class InsecureNoiseWarning(PrivatizeWarning):
    """Noise comes from a seed, so nothing is private. For tests only."""


class UninformativeWarning(PrivatizeWarning):
    """Some numbers of an answer have so much noise that they say little more than P does."""


class FragileEstimateWarning(PrivatizeWarning):
    """An estimate would be larger if P were a little different, in the way that the message says."""


class UnitWarning(PrivatizeWarning):
    """A column has a name like an identifier, and nobody has said whether people have several rows."""


class ConstraintWarning(PrivatizeWarning):
    """A function of ``constraints=`` failed on an answer, which is returned as it is.

    Attributes
    ----------
    answer : object
        The answer, with its noise: it was paid for, and is here if warnings are errors.
    """

    answer: Any = None


class NotRememberedWarning(PrivatizeWarning):
    """An estimate cannot be remembered, so the next call calibrates again."""


__all__ = [
    name
    for name, kind in list(globals().items())
    if isinstance(kind, type) and issubclass(kind, PrivatizeError | PrivatizeWarning)
]
