"""What a mechanism is, and how its name becomes one."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privatize.errors import SettingsError

__all__ = ["Mechanism", "as_mechanism", "l1", "l2"]

Vector = NDArray[np.float64]


@runtime_checkable
class Mechanism(Protocol):
    """Three things make a mechanism: a norm, a scale and a release.

    A user adds one by writing a frozen dataclass with these methods. Three more are looked up if
    they are there: ``evaluate(call)``, which turns a call that leaves one parameter open into a
    function of the dataset, ``wrap(vector)``, which turns a released vector into the object
    that the user gets, and ``error(sensitivity, epsilon, delta, confidence)``, which tells how far
    off its answers are.
    """

    def norm(self, gap: Vector, /) -> float:
        """Return the size of the difference of two outputs."""
        ...

    def scale(self, sensitivity: float, epsilon: float, delta: float, /) -> float:
        """Return the scale of the noise, in the units of the output."""
        ...

    def release(
        self,
        vector: Vector,
        /,
        *,
        sensitivity: float,
        epsilon: float,
        delta: float,
        whole: NDArray[np.bool_],
    ) -> Vector:
        """Return a private version of the vector; `whole` marks integer coordinates."""
        ...


def as_mechanism(value: Any) -> Mechanism:
    """Return the mechanism of this name, or the mechanism itself.

    Examples
    --------
    >>> as_mechanism("laplace")
    Laplace()
    >>> as_mechanism("cauchy")
    Traceback (most recent call last):
        ...
    privatize.errors.SettingsError: mechanism='cauchy' is not known. The mechanisms are laplace, \
gaussian, exponential and bernstein, or an instance such as Laplace().
    """
    from privatize.mechanisms import Bernstein, Exponential, Gaussian, Laplace

    known: dict[str, Callable[[], Mechanism]] = {
        "laplace": Laplace,
        "gaussian": Gaussian,
        "exponential": Exponential,
        "bernstein": Bernstein,
    }
    if isinstance(value, str) and value in known:
        return known[value]()
    if isinstance(value, Mechanism) and not isinstance(value, type):
        return value
    raise SettingsError(
        f"mechanism={value!r} is not known. The mechanisms are laplace, gaussian, exponential and "
        f"bernstein, or an instance such as Laplace()."
    )


def labels(found: Any) -> list[Any] | None:
    """Return the labels of what a function returned: a dict's keys, a pandas object's index; else None.

    The index that pandas gives to what has none counts the rows, and is no label.
    """
    if isinstance(found, dict):
        return list(found)
    pandas = sys.modules.get("pandas")  # where nobody has imported it, nothing is one of its objects
    if pandas is None or not isinstance(found, pandas.Series | pandas.DataFrame):
        return None
    counted = isinstance(found.index, pandas.RangeIndex) and found.index.equals(pandas.RangeIndex(len(found)))
    return None if counted and found.index.name is None else list(found.index)


def l1(gap: Vector) -> float:
    """Return the sum of absolute values."""
    return float(np.add.reduce(np.abs(gap)))


def l2(gap: Vector) -> float:
    """Return the Euclidean length, scaled so that tiny gaps do not underflow to zero."""
    largest = float(np.abs(gap).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    # Scaling by a power of two is exact.
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    return unit * float(np.sqrt(np.square(gap / unit).sum()))


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
