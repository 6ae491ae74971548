"""Quantiles of records with public bounds, which bring their own mechanism: `quantiles`."""

import contextlib
import math
import numbers
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatize.calibration.proof import Answer, Proven
from privatize.data import frames
from privatize.data.columns import array_of_column, kind_of
from privatize.data.persons import table_of
from privatize.data.units import Unit
from privatize.errors import DataError, SettingsError
from privatize.mechanisms import DEFAULT
from privatize.mechanisms.base import Mechanism, Noise, Vector
from privatize.noise.quantile import Grid, dyadic, fineness, quantile, shares
from privatize.outputs.structure import Array, Number, Structure


@dataclass(frozen=True)
class Quantiles(Proven):
    """Quantiles of numbers: made by `quantiles`, and called like any function.

    Attributes
    ----------
    q : tuple of float
        The quantiles, as multiples of 2^-20.
    low, high : float
        Public bounds.
    integer : bool
        Whether the answers are integers.
    scalar : bool
        Whether the answer is one number and not an array.
    most : int
        The largest number of values that one person has.
    """

    words: ClassVar[str] = "by a draw from a public grid"
    immutable: ClassVar[bool] = True
    __name__: ClassVar[str] = "quantiles"

    q: tuple[float, ...]
    low: float
    high: float
    integer: bool
    scalar: bool
    most: int = 1

    def for_persons(self, unit: Unit) -> Proven:
        """Return the quantiles of all rows: a person moves the score of a point by as many as they have."""
        if unit.most is None:
            raise SettingsError(f"""Nothing says how many rows a person may have. Pass
                unit=Unit({unit.name!r}, most=12), say: further rows are left out.""")
        return replace(self, most=unit.most)

    def __call__(self, data: Any) -> Any:
        """Return the quantiles of a dataset, without privacy; missing values do not count."""
        values = np.clip(_numbers(data), self.low, self.high)
        present = values[~np.isnan(values)]
        if not len(present):
            raise DataError("All values are missing, so there are no quantiles.")
        found = np.quantile(present, self.q, method="averaged_inverted_cdf")
        return self.structure(len(values)).rebuild(found)

    def __repr__(self) -> str:
        low, high = (int(bound) if self.integer else bound for bound in (self.low, self.high))
        shown = [round(q, 6) for q in self.q]
        return f"quantiles({shown[0] if self.scalar else shown}, {low!r}, {high!r})"

    def __privatize_proven__(self, _: Any, /) -> Self:
        return self

    def noise_of(self, mechanism: Mechanism | None) -> Noise:
        """Return "": no noise is added to any number."""
        return ""

    def check(self, mechanism: Mechanism | None, epsilon: float, delta: float) -> None:
        """Refuse every mechanism but the default, and a delta."""
        if mechanism is not None and mechanism is not DEFAULT:
            raise SettingsError(f"""mechanism={mechanism!r} does not fit: quantiles() brings its own
                mechanism, a draw from a public grid. Leave mechanism= out.""")
        if delta:
            raise SettingsError(f"""delta={delta!r} has no use here: quantiles() is private with delta=0.
                Leave it out.""")

    def fits(self, data: Any, /) -> None:
        """Refuse data that has not one number for each record, by its types alone."""
        _form(table_of(data))

    def structure(self, n: int) -> Structure:
        """Return a number, or an array of one for each quantile."""
        if self.scalar:
            return Number("int" if self.integer else "float")
        return Array("<i8" if self.integer else "<f8", [len(self.q)])

    def measure(self, data: Any, n: int) -> NDArray[Any]:
        """Return the values as floats, NaN where one is missing."""
        return _numbers(table_of(data))

    def release(
        self, measured: NDArray[Any], n: int, mechanism: Mechanism | None, epsilon: float, delta: float
    ) -> Answer:
        """Return a private draw near each quantile, in order; ε is divided evenly."""
        parts = [part / self.most for part in shares(epsilon, [1.0] * len(self.q))]
        parts = parts if self.most == 1 else [math.nextafter(part, 0.0) for part in parts]
        drawn = [self._draw(measured, n, q, part) for q, part in zip(self.q, parts, strict=True)]
        ranks = np.argsort(np.argsort(self.q, kind="stable"), kind="stable")
        return Answer(np.sort(np.array(drawn))[ranks], 0.0, 1.0)

    def _draw(self, values: Vector, n: int, q: float, epsilon: float) -> float:
        bits = fineness(n, q, epsilon)
        return quantile(values, Grid.of(self.low, self.high, integer=self.integer, bits=bits), q, epsilon)


def quantiles(q: ArrayLike, low: float, high: float) -> Quantiles:
    """Make quantiles of records that are numbers, which are private by themselves.

    ``privatize(epsilon=1)(sums.quantiles(0.5, 0, 120))`` is a private median: differentially private for
    all data, without P and gamma. A number is drawn from a public grid between the bounds, and the more
    evenly it splits the records, the likelier it is. Missing records (NaN, None) do not count.

    Parameters
    ----------
    q : float or sequence of float
        One quantile or several, between 0 and 1. Several divide ε evenly among them. Each is rounded to a
        multiple of 2^-20.
    low, high : int or float
        Public bounds; records outside are clamped to them. If both are integers the answers are integers.
        Never read them off the data.

    Returns
    -------
    Quantiles
        A function of a dataset: an array, a series, or a list of numbers. It returns one number, or an array
        if q is a sequence.

    References
    ----------
    Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.

    Examples
    --------
    >>> quartiles = quantiles([0.25, 0.5, 0.75], 0, 120)
    >>> quartiles
    quantiles([0.25, 0.5, 0.75], 0, 120)
    >>> quartiles([31, 62, None, 40, 18, 25])
    array([25, 31, 40])
    """
    try:
        given = np.asarray(q, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.zeros(0)
    if given.ndim > 1 or not given.size or not ((given > 0) & (given < 1)).all():
        raise SettingsError(f"""q={q!r} is out of range: it must be a number between 0 and 1, or several. The
            smallest and the largest record (0 and 1) are not private: use 0.01 or 0.99, say.""")
    bounds: list[Any] = [low, high]
    if any(isinstance(bound, bool) or not isinstance(bound, numbers.Real) for bound in bounds):
        raise SettingsError(f"low={low!r} and high={high!r} are no bounds: both must be numbers.")
    bottom, top = _float(low), _float(high)
    if not -math.inf < bottom <= top < math.inf:
        raise SettingsError(f"""low={low!r} and high={high!r} are no bounds: both must be finite, and low must
            not be above high. The answer is clamped to them, and they must be public.""")
    integer = all(isinstance(bound, numbers.Integral) for bound in bounds)
    return Quantiles(tuple(map(dyadic, given.ravel().tolist())), bottom, top, integer, given.ndim == 0)


def _form(data: Any) -> Any:
    """Return a list, an array of one dimension, or a series. Others are refused, by their types alone."""
    form = frames.kind(data)
    if form is not None and form[0] == "frame" and len(frames.columns(data)) == 1:
        data, form = frames.columns(data)[0], ("series", form[1])
    if form is not None:
        fits = form[0] == "series" and kind_of(data) not in ("text", "category", "date", "duration")
    elif not isinstance(data, list):
        data = np.asarray(data)
        fits = data.ndim == 1 and data.dtype.kind in "biufO"
    else:
        fits = True
    if not fits:
        raise DataError("""quantiles() takes one number for each record: an array of shape (n,), a series, or
            a list of numbers.""")
    return data


def _numbers(data: Any) -> Vector:
    """Return one float for each record, NaN for what is no number. Values never make it raise."""
    found = _form(data)
    if not isinstance(found, list | np.ndarray):
        found = array_of_column(found)
    if isinstance(found, list) or found.dtype.kind == "O":
        return np.array([*map(_float, found)], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(found.astype(np.float64))


def _float(value: Any) -> float:
    """Return a number as a float, infinite if it is too large, and NaN if it is no number."""
    if type(value) is float:
        return value
    with contextlib.suppress(Exception):  # a complex number, a signaling NaN, a class that raises anything
        if isinstance(value, numbers.Number | Decimal):
            try:
                return float(value)  # type: ignore[arg-type]
            except OverflowError:
                return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    return math.nan
