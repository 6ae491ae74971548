"""Make an answer valid after its noise was added: that is post-processing, and costs nothing."""

import warnings
from dataclasses import replace
from typing import Any

from privatize.errors import ConstraintWarning
from privatize.function.release import Release
from privatize.outputs.structure import Structure
from privatize.outputs.validity import Constraints


def made_valid(name: str, constraints: Constraints, structure: Structure, answer: Any) -> Any:
    """Return a release, or its value, that is valid; or as it is, with a warning, if that fails.

    An answer was paid for, so it is not lost by a function that fails on it. Nothing here is private any
    more: the warning may show what the function has to say about the answer.

    Parameters
    ----------
    name : str
        The private function's name, for the warning.
    constraints : Constraints
        What makes it valid.
    structure : Structure
        The structure of answers, as calibration saw it.
    answer : object
        A release, or its value.
    """
    entire = isinstance(answer, Release)
    noised = answer.value if entire else answer
    try:
        valid = constraints.apply(noised, structure)
    except (Exception, SystemExit) as error:  # of a user's function
        told = ConstraintWarning(
            f"The answer of {name}() could not be made valid, and is returned as it is, with its noise: "
            f"{type(error).__name__}: {error}".rstrip(". ")
            + f". The answer was paid for. Change it afterwards, "
            f"which costs nothing, and give {name}() constraints= that work for all numbers."
        )
        told.answer = answer
        warnings.warn(told, stacklevel=4)
        return answer
    return (
        replace(answer, value=valid, unconstrained=noised, constraints=constraints.words) if entire else valid
    )
