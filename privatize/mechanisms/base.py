"""What a mechanism is, and the norms that mechanisms measure gaps in."""

import math
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privatize.errors import SettingsError

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Noise = Literal["laplace", "normal", ""]
Chosen = Literal["none", "total", "relative", "matrix"]
Scaled = Literal["auto", "none", "total", "relative", "matrix"]


@runtime_checkable
class Mechanism(Protocol):
    """Three things make a mechanism: a norm, a scale and a release.

    A user adds one by writing a frozen dataclass with these methods. Whatever else `BaseMechanism` has is
    used if it is there: ``evaluate(call, opened)``, which turns a call that leaves one parameter open into a
    function of the dataset, ``wrap(vector)``, which turns a released vector into the object that the user
    gets, and ``error(sensitivity, epsilon, delta, confidence)``, which tells how far off its answers are.
    """

    def norm(self, gap: Vector, /) -> float:
        """Return the size of the difference of two outputs."""
        ...

    def scale(self, sensitivity: float, epsilon: float, delta: float, /) -> float:
        """Return the scale of the noise, in the units of the output."""
        ...

    def release(
        self, vector: Vector, /, *, sensitivity: float, epsilon: float, delta: float, whole: Mask
    ) -> Vector:
        """Return a private version of the vector; `whole` marks integer coordinates."""
        ...


class BaseMechanism:
    """What a mechanism may have beside a norm, a scale and a release, with defaults.

    Attributes
    ----------
    gap_version : int
        Must be raised when gaps are measured or weights chosen differently: stored estimates are then stale.
    noise_name : {"laplace", "normal", ""}
        The noise that is added to every number; see `noise`.
    scaled : {"auto", "none", "total", "relative", "matrix"}
        How noise is divided among the numbers of an answer: see `privatize.mechanisms.choosing`.
    evaluate : callable or None
        ``evaluate(call, opened)`` returns the function of a dataset and a seed whose output gets noise, if it
        is not the user's function itself.
    wrap : callable or None
        ``wrap(vector)`` returns the object that the user gets, if it is not of the function's own structure.
    """

    gap_version: ClassVar[int] = 1
    noise_name: ClassVar[Noise] = ""
    scaled: Scaled = "none"
    evaluate: Callable[[Callable[..., Any], bool], Callable[..., Any]] | None = None
    wrap: Callable[[Vector], Any] | None = None

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    @property
    def noise(self) -> Noise:
        """The noise that is added to every number for sure, or "" if that is not known.

        It is not known for a user's subclass of one of our classes, which may do something else.
        """
        found: Noise = vars(type(self)).get("noise_name", "")
        return found

    def check(self, _: float, delta: float, /) -> None:
        """Refuse an (ε, δ) that does not fit."""
        if delta:
            raise SettingsError(f"""delta={delta!r} has no use here: {self.name} is private with delta=0.
                Leave it out, or use mechanism='gaussian'.""")

    def error(self, sensitivity: float, epsilon: float, delta: float, confidence: float) -> float:
        """Return how far off answers are at most, with this probability."""
        raise SettingsError(f"""{self.name} does not say how far off its answers are. Give it a method
            error(sensitivity, epsilon, delta, confidence).""")

    def composition_kind(self, epsilon: float, delta: float) -> str:
        """Return what tight composition must know about a release, as a string: here its ε and δ."""
        return f"dp {float(epsilon)!r} {float(delta)!r}"


class _Completed(BaseMechanism):
    """What a user's own mechanism has, and defaults for the rest."""

    def __init__(self, own: Mechanism) -> None:
        self._name = type(own).__name__
        for name in ("scaled", "evaluate", "wrap", "check", "error"):
            if hasattr(own, name):
                setattr(self, name, getattr(own, name))

    @property
    def name(self) -> str:
        return self._name


def complete(mechanism: Mechanism) -> BaseMechanism:
    """Return what a mechanism has beside its norm, scale and release, with defaults if a user wrote it."""
    return mechanism if isinstance(mechanism, BaseMechanism) else _Completed(mechanism)


def labels(found: Any) -> list[Any] | None:
    """Return the labels of what a function returned: a dict's keys, a pandas object's index; else None.

    The default index of pandas only counts the rows, so it has no labels.
    """
    if isinstance(found, dict):
        return list(found)
    pandas = sys.modules.get("pandas")  # if nobody has imported pandas, `found` is not one of its objects
    if pandas is None or not isinstance(found, pandas.Series | pandas.DataFrame):
        return None
    counted = isinstance(found.index, pandas.RangeIndex) and found.index.equals(pandas.RangeIndex(len(found)))
    return None if counted and found.index.name is None else list(found.index)


def l1(gap: Vector) -> float:
    """Return the sum of absolute values."""
    return float(np.add.reduce(np.abs(gap)))


def l2(gap: Vector) -> float:
    """Return the Euclidean length, scaled so that tiny gaps do not underflow to zero."""
    largest = float(np.maximum.reduce(np.abs(gap), initial=0.0))  # quicker than the methods of arrays
    if not 0 < largest < math.inf:
        return largest
    # Scaling by a power of two is exact.
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    return unit * math.sqrt(np.add.reduce(np.square(gap / unit)))


def sup(gap: Vector) -> float:
    """Return the largest absolute value."""
    return float(np.abs(gap).max(initial=0.0))


def sizes(name: str, gaps: NDArray[np.float64]) -> Vector | None:
    """Return the norms of many gaps, one in each row, or None if the norm of this name is not known here."""
    if name == "l1":
        return np.asarray(np.abs(gaps).sum(axis=1))
    if name == "sup":
        return np.asarray(np.abs(gaps).max(axis=1, initial=0.0))
    if name != "l2":
        return None
    largest = np.abs(gaps).max(axis=1, initial=0.0)
    usual = (largest > 0) & (largest < math.inf)
    unit = np.ldexp(1.0, np.where(usual, np.frexp(np.where(usual, largest, 1.0))[1] - 1, 0))
    found = unit * np.sqrt(np.square(gaps / unit[:, None]).sum(axis=1))
    return np.asarray(np.where(usual, found, largest))


def inflate(sensitivity: float, dimension: int) -> float:
    """Return the sensitivity, enlarged by what rounding may have taken from the gaps.

    A gap is a sum of `dimension` rounded differences: its relative error is at most
    (dimension + 2) units of 2^-53; twice that is added, and one step for subnormal numbers.
    """
    return math.nextafter(sensitivity * (1 + (dimension + 2) * 2.0**-52), math.inf)
