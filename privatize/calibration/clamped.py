"""Sums over records with proven bounds: rows are clamped, and added up exactly in integers.

Every number becomes an integer on a public grid before it is added. So replacing one record moves the total
by at most the bound, exactly, and no rounding is left that could depend on data. Proof: ``docs/proven.md``.
"""

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.numeric import NoRowsError
from privatize.calibration.proof import Answer, Proven
from privatize.data import records
from privatize.data.persons import Persons, table_of
from privatize.data.units import Unit
from privatize.errors import DataError, OutputError, SettingsError
from privatize.mechanisms.base import Mechanism, Vector
from privatize.mechanisms.laplace import Laplace
from privatize.outputs.describe import describe
from privatize.outputs.structure import Structure
from privatize.planning.numbers import as_float

Array = NDArray[Any]
Integers = NDArray[np.int64]
# Squares of bounds stay far from the ends of float64.
_SMALLEST, _LARGEST = 1e-140, 1e140
_SINGLE_RECORDS = 5  # how many are evaluated alone, to check that g looks at one record at a time


class Bounds(ABC):
    """What rows are clamped to, and how far a sum of such rows moves if one of them is replaced.

    Attributes
    ----------
    shape : tuple of int
        The shape of the answer.
    keys : tuple or None
        The keys of the answer, if it is a dict.
    whole : bool
        Whether sums are integers.
    low : tuple of float
        What is subtracted from every row, for each number; empty if nothing is.
    """

    shape: tuple[int, ...]
    keys: tuple[Any, ...] | None
    whole: bool
    low: tuple[float, ...]

    @property
    @abstractmethod
    def largest(self) -> float:
        """The largest number that is added up, after `low` is subtracted."""

    @property
    def size(self) -> int:
        """How many numbers there are in a row."""
        return math.prod(self.shape)

    def exponent(self, n: int) -> int:
        """Return e so that n numbers in units of 2^e add up to less than 2^53."""
        return math.frexp(self.largest)[1] + n.bit_length() - 53

    def slack(self, exponent: int) -> int:
        """Return by how many units rows may differ that a function computes of the same record."""
        return 1 + int(math.ldexp(max(self.largest, *map(abs, self.low), 0.0), -exponent - 40))

    @abstractmethod
    def units(self, rows: Vector, exponent: int) -> Integers:
        """Return rows in units of 2^exponent, less `low`: inside the bounds, whatever is in the rows."""

    @abstractmethod
    def sensitivity(self, exponent: int, norm: Literal["l1", "l2"]) -> float:
        """Return how far apart two rows of units can be in this norm, times 2^exponent."""


@dataclass(frozen=True)
class Box(Bounds):
    """Every number between a lower and an upper bound. What is not finite becomes the lower one."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...] = ()
    keys: tuple[Any, ...] | None = None
    whole: bool = False

    @property
    def largest(self) -> float:
        return float(np.subtract(self.high, self.low).max())

    def _steps(self, exponent: int) -> Integers:
        return np.ceil(np.ldexp(np.subtract(self.high, self.low), -exponent)).astype(np.int64)

    def units(self, rows: Vector, exponent: int) -> Integers:
        inside = np.clip(np.where(np.isfinite(rows), rows, self.low), self.low, self.high)
        rounded = np.rint(np.ldexp(inside - self.low, -exponent)).astype(np.int64)
        return np.clip(rounded, 0, self._steps(exponent))

    def sensitivity(self, exponent: int, norm: Literal["l1", "l2"]) -> float:
        steps = self._steps(exponent).tolist()
        found = sum(steps) if norm == "l1" else math.sqrt(sum(step**2 for step in steps))
        if norm == "l2" or float(found) < found:  # never below, by rounding
            found = math.nextafter(found, math.inf)
        return math.ldexp(found, exponent)


@dataclass(frozen=True)
class Ball(Bounds):
    """Rows whose L1 or L2 norm is at most the radius: made by `ball`."""

    radius: float
    shape: tuple[int, ...]
    norm: Literal["l1", "l2"]
    keys: ClassVar[None] = None  # type: ignore[misc]
    whole: ClassVar[bool] = False  # type: ignore[misc]
    low: ClassVar[tuple[float, ...]] = ()  # type: ignore[misc]

    @property
    def largest(self) -> float:
        return self.radius

    def units(self, rows: Vector, exponent: int) -> Integers:
        rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        scaled = rows / np.where(largest > 0, largest, 1.0)
        if self.norm == "l1":
            size = np.abs(scaled).sum(axis=1, keepdims=True)
        else:
            size = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
        # The norm may be wrong by (size + 8) roundings of 2^-53, so rows are made a little shorter than that.
        limit = self.radius * (1 - (self.size + 16) * 2.0**-52)
        outside = largest * size > limit
        inside = np.where(outside, scaled * (limit / np.where(outside, size, 1.0)), rows)
        # Toward zero, so that no norm grows.
        return np.trunc(np.ldexp(inside, -exponent)).astype(np.int64)

    def sensitivity(self, exponent: int, norm: Literal["l1", "l2"]) -> float:
        # Two points of an L1 ball are at most 2r apart in L2, too.
        return 2 * self.radius * (math.sqrt(self.size) if (self.norm, norm) == ("l2", "l1") else 1.0)


@dataclass(frozen=True)
class OneHot(Bounds):
    """Rows with at most one 1, and zeros: what counts in categories or bins are made of."""

    shape: tuple[int, ...]
    keys: tuple[Any, ...] | None = None
    whole: ClassVar[bool] = True  # type: ignore[misc]
    low: ClassVar[tuple[float, ...]] = ()  # type: ignore[misc]

    @property
    def largest(self) -> float:
        return 1.0

    def exponent(self, n: int) -> int:
        return 0

    def slack(self, exponent: int) -> int:
        return 0

    def units(self, rows: Vector, exponent: int) -> Integers:
        ones = np.isfinite(rows) & (rows != 0)
        return np.asarray(ones & (ones.sum(axis=1, keepdims=True) == 1), dtype=np.int64)

    def sensitivity(self, exponent: int, norm: Literal["l1", "l2"]) -> float:
        moved = min(2, self.size)
        return float(moved) if norm == "l1" else math.sqrt(moved)


@dataclass(frozen=True)
class Signed(Bounds):
    """Every number between bounds that include 0, and nothing is subtracted: a missing row counts as 0."""

    inner: Box
    low: ClassVar[tuple[float, ...]] = ()  # type: ignore[misc]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.inner.shape

    @property
    def keys(self) -> tuple[Any, ...] | None:  # type: ignore[override]
        return self.inner.keys

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self.inner.whole

    @property
    def largest(self) -> float:
        return float(np.abs([self.inner.low, self.inner.high]).max())

    def _steps(self, exponent: int) -> tuple[Integers, Integers]:
        """Return how many units are below 0, and above."""
        ends = -np.minimum(self.inner.low, 0.0), np.maximum(self.inner.high, 0.0)
        below, above = (np.ceil(np.ldexp(end, -exponent)).astype(np.int64) for end in ends)
        return below, above

    def units(self, rows: Vector, exponent: int) -> Integers:
        box = self.inner
        inside = np.clip(np.where(np.isfinite(rows), rows, box.low), box.low, box.high)
        below, above = self._steps(exponent)
        found: Integers = np.clip(np.rint(np.ldexp(inside, -exponent)).astype(np.int64), -below, above)
        return found

    def sensitivity(self, exponent: int, norm: Literal["l1", "l2"]) -> float:
        below, above = self._steps(exponent)
        return Box(tuple((-below).tolist()), tuple(above.tolist())).sensitivity(0, norm) * 2.0**exponent


@dataclass(frozen=True)
class Clamped(Proven):
    """A sum or mean over records of rows that are clamped.

    Attributes
    ----------
    function : callable
        Returns one row of numbers for each record of a dataset.
    bounds : Bounds
        What rows are clamped to.
    average : bool
        Whether it is the mean and not the sum.
    samplable : bool
        Whether it is the same function without its bounds, which may be calibrated under a P.
    columns : bool
        Whether the function takes the columns of rows without that of the unit, if there is one.
    most : int or None
        The largest number of rows of a person; None if every row is a record.
    loose : callable or None
        The function without a check of how many rows it returns: for persons it may be one for each.
    """

    function: Callable[..., Array]
    bounds: Bounds
    average: bool = True
    samplable: bool = False
    columns: bool = False
    most: int | None = None
    loose: Callable[..., Array] | None = field(default=None, repr=False)

    words = "by bounds that every record is clamped to"
    broken = """The function that is added up does not look at one record at a time: it returned other numbers
        for the same records in another order, or alone. Its bounds say nothing then, so nothing was released.
        What it returns for a record must follow from that record alone."""

    def wrapped(self, wrap: Callable[[Callable[..., Any]], Callable[..., Any]], /) -> "Clamped":
        return replace(self, function=wrap(self.function))

    def for_persons(self, unit: Unit) -> Proven:
        """Return the sum over all rows of persons; a mean divides it by the number of persons."""
        if unit.most is None:
            raise SettingsError(f"""The bounds are about one row, and nothing says how many rows a person may
                have. Pass unit=Unit({unit.name!r}, most=12), say: further rows are left out.""")
        bounds = Signed(self.bounds) if isinstance(self.bounds, Box) else self.bounds
        return replace(self, function=self.loose or self.function, bounds=bounds, most=unit.most)

    def _exponent(self, n: int) -> int:
        return self.bounds.exponent(n * (self.most or 1))

    def _of(self, data: Any) -> Any:
        """Return rows of numbers for a dataset."""
        return self.function(table_of(data) if self.columns else data)

    def structure(self, n: int) -> Structure:
        zero = 0 if self._whole else 0.0
        keys, shape = self.bounds.keys, self.bounds.shape
        return describe(dict.fromkeys(keys, zero) if keys else np.full(shape, zero) if shape else zero)

    @property
    def _whole(self) -> bool:
        return self.bounds.whole and not self.average

    def fits(self, data: Any) -> None:
        try:
            # Isolated: how many categories there are would be an answer that nobody has paid for.
            made = self._of(records.isolated(records.take(data, np.zeros(0, dtype=np.intp))))
        except (DataError, NoRowsError):  # about the form of the data, and of what the function returns
            raise
        except (Exception, SystemExit):  # many functions cannot do anything with no records
            return
        # A list of no rows does not show how long they are.
        width = math.prod(made.shape[1:])
        if made.ndim > 1 and width != self.bounds.size:
            raise OutputError(f"""The function that is added up returns rows of {width} numbers, and bounds=
                has {self.bounds.size}. Give a lower and an upper bound for each number, as two arrays or
                dicts.""")

    def units(self, rows: Array, n: int) -> Integers:
        """Return rows as integers inside the bounds."""
        flat = np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)
        if flat.shape[1] != self.bounds.size:
            raise OutputError(f"Rows of {flat.shape[1]} numbers do not fit bounds= of {self.bounds.size}.")
        with np.errstate(all="ignore"):
            return self.bounds.units(flat, self._exponent(n))

    def _evaluated(self, data: Any, at: NDArray[np.intp], n: int) -> tuple[Integers, bool]:
        """Return the rows of the records at some positions, and whether each was evaluated alone.

        They are, if the function fails on all of them. A record on which it fails has a row of zeros: the
        lower bounds of a box, the center of a ball, no category.
        """
        try:
            taken = records.copy(records.take(data, at))  # the function may change records in place
            # A record by itself does not show the categories of others, as it may among them.
            rows = self.units(self._of(records.isolated(taken) if len(at) == 1 else taken), n)
            if self.most is not None and len(rows) == int(taken.counts.sum()):
                return _added(rows, taken), False
            if len(rows) == len(at):  # of persons, one for each: it stays within the bounds of one row
                return rows, False
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: S110 - an error would tell something about the data, whatever it is
            pass
        rows = np.zeros((len(at), self.bounds.size), dtype=np.int64)
        for row, one in enumerate(at.tolist() if len(at) > 1 else []):
            rows[row] = self._evaluated(data, np.array([one]), n)[0][0]
        return rows, True

    def measure(self, data: Any, n: int) -> Integers | None:
        order = np.random.Generator(np.random.PCG64(secrets.randbits(128))).permutation(n)
        # Single records first: when a function with a state has seen all, nothing may change any more.
        single = [self._evaluated(data, at, n)[0] for at in order[:_SINGLE_RECORDS, None]]
        rows, alone = self._evaluated(data, order, n)
        again = rows if alone else self._evaluated(data, np.arange(n), n)[0][order]
        found, expected = np.concatenate([again, *single]), np.concatenate([rows, rows[: len(single)]])
        if (np.abs(found - expected) > self.bounds.slack(self._exponent(n)) * (self.most or 1)).any():
            return None
        return np.asarray(np.add.reduce(rows, axis=0))

    def total(self, measured: Integers, n: int) -> Vector:
        """Return the sum of rows less `low`, as floats without rounding; integers if sums are integers."""
        exponent = self._exponent(n)
        if self._whole and exponent < 0:
            # By the floor: two sums that are at most an integer apart are so afterwards.
            measured, exponent = (measured + (1 << (-exponent - 1))) >> -exponent, 0
        return np.ldexp(measured.astype(np.float64), exponent)

    def finish(self, total: Vector, n: int) -> Vector:
        """Return the answer, given a total, with or without noise."""
        moved = total + n * np.array(self.bounds.low) if self.bounds.low else total
        return moved / n if self.average else moved

    def _moved(self, n: int, mechanism: Mechanism) -> float:
        """Return how far one record moves the sum."""
        norm: Literal["l1", "l2"] = "l1" if isinstance(mechanism, Laplace) else "l2"
        row = self.bounds.sensitivity(self._exponent(n), norm)
        return row if self.most is None else math.nextafter(row * self.most, math.inf)

    def bound_at(self, n: int, mechanism: Mechanism, /) -> float:
        return self._moved(n, mechanism) / (n if self.average else 1)

    def release(self, measured: Array, n: int, mechanism: Mechanism, epsilon: float, delta: float) -> Answer:
        sensitivity, whole = self._moved(n, mechanism), np.full(self.bounds.size, self._whole)
        total = self.total(measured, n)
        noised = mechanism.release(total, sensitivity=sensitivity, epsilon=epsilon, delta=delta, whole=whole)
        bound = self.bound_at(n, mechanism)
        return Answer(self.finish(noised, n), mechanism.scale(bound, epsilon, delta), bound)


def _added(rows: Integers, persons: Persons) -> Integers:
    """Return the sum of the rows of each person."""
    found = np.zeros((len(persons), rows.shape[1]), dtype=np.int64)
    np.add.at(found, persons.slots, rows)
    return found


# --- what bounds may be ---------------------------------------------------------------------------


def ball(radius: float, size: int, norm: Literal["l1", "l2"] = "l2") -> Ball:
    """Make bounds for rows of numbers: those of a larger norm are shortened to the radius.

    A row that has a number which is not finite becomes zero.

    Parameters
    ----------
    radius : float
        The largest norm.
    size : int
        How many numbers a row has.
    norm : {"l2", "l1"}
        The Euclidean norm, for `privatize.Gaussian`, or the sum of absolute values, for `privatize.Laplace`.
        The other mechanism may be used too.

    Examples
    --------
    >>> from privatize import sums
    >>> sums.means(bounds=sums.ball(5, size=2))(np.array([[3.0, 4.0], [30.0, 40.0]])).round(9)
    array([3., 4.])
    """
    if not _SMALLEST <= as_float(radius) <= _LARGEST:
        raise SettingsError(f"""radius={radius!r} is out of range: it must be a number between {_SMALLEST:g}
            and {_LARGEST:g}.""")
    if not isinstance(size, int | np.integer) or not 0 < size <= 2**40:
        raise SettingsError(f"size={size!r} is not the number of numbers in a row, 1 or more.")
    if norm not in ("l1", "l2"):
        raise SettingsError(f"norm={norm!r} is not 'l1' or 'l2'.")
    return Ball(float(radius), (int(size),), norm)


def as_bounds(value: Any) -> Bounds | None:
    """Return bounds as the user gives them: a pair (low, high) of numbers, arrays or dicts, or a ball.

    Examples
    --------
    >>> as_bounds((0, [1, 5.5]))
    Box(low=(0.0, 0.0), high=(1.0, 5.5), shape=(2,), keys=None, whole=False)
    """
    if value is None or isinstance(value, Ball):
        return value
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise SettingsError(f"""bounds={value!r} are not bounds: pass (low, high), two numbers, arrays or
            dicts, or sums.ball(radius, size).""")
    low, high = value
    keys = None
    if isinstance(low, dict) and isinstance(high, dict) and low and low.keys() == high.keys():
        keys = tuple(low)
        low, high = list(low.values()), [high[key] for key in keys]
    numbers = _numbers(low, high)
    if numbers is None:
        raise SettingsError(f"""bounds={value!r} are not bounds: low and high must be two numbers, two arrays
            of one shape, or two dicts with the same keys.""")
    lows, highs = numbers
    below, above = lows.astype(np.float64), highs.astype(np.float64)
    largest = np.abs([below, above]).max()
    if not (largest <= _LARGEST and (above - below >= _SMALLEST).all()):
        raise SettingsError(f"""bounds={value!r} are out of range: each low must be below its high, and all
            must be finite and at most {_LARGEST:g}.""")
    whole = lows.dtype.kind in "iu" and highs.dtype.kind in "iu" and largest < 2.0**52
    flat = tuple(below.ravel().tolist()), tuple(above.ravel().tolist())
    return Box(*flat, lows.shape, keys, bool(whole))


def _numbers(low: Any, high: Any) -> tuple[Array, Array] | None:
    """Return both as arrays of numbers of one shape, or None if they are not."""
    try:
        lows, highs = np.broadcast_arrays(np.asarray(low), np.asarray(high))
    except ValueError:  # ragged, or of shapes that do not fit
        return None
    numeric = lows.dtype.kind in "iuf" and highs.dtype.kind in "iuf"
    return (lows, highs) if numeric and lows.size else None
