"""Sums and means over records: `additive`, which makes such functions, and some ready-made ones.

A function f(D) = Σ g(x) moves by g(x') - g(x) when a record x is replaced by x', whatever the
other records are. So its calibration draws two records for each pair, and not n + 1.
"""

import functools
import math
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatize.calibration.clamped import Bounds, Box, Clamped, OneHot, as_bounds
from privatize.calibration.numeric import NoRowsError, numbers, numeric, unmixed
from privatize.data import records
from privatize.errors import DataError, OutputError, SettingsError
from privatize.identity.library import Wrapper
from privatize.planning.numbers import as_float

Array = NDArray[Any]
# Integers are added up exactly; beyond this they would wrap around.
_LARGEST_SUM = 2**62


class Rows(NamedTuple):
    """A function of the dataset that gives the rows of a sum, and whether their mean is taken."""

    of: Callable[..., Any]
    average: bool


@dataclass(frozen=True, eq=False)
class Additive(Wrapper):
    """A sum, or a mean, over records: made by `additive`, and called like any function.

    Attributes
    ----------
    function : callable
        g, which returns one number, or one row of numbers, for each record.
    average : bool
        Whether it is the mean and not the sum.
    labels : tuple or None
        Keys, if the answer is a dict with one number for each of them.
    name : str or None
        Its name, if not that of g.
    bounds : Bounds or None
        What the rows are clamped to, if the user gave bounds.
    own : Bounds or None
        Bounds that the rows have by themselves.

    Examples
    --------
    >>> total = additive(np.square, average=False)
    >>> total
    <sum of square over records>
    >>> total(np.array([1, 2, 3]))
    14
    """

    function: Callable[..., Any]
    average: bool = True
    labels: tuple[Any, ...] | None = None
    name: str | None = None
    bounds: Bounds | None = None
    own: Bounds | None = None

    def __post_init__(self) -> None:
        inner: Any = self.function
        while isinstance(inner, functools.partial):
            inner = inner.func
        vars(self)["ready"] = self.name is not None  # whether it is one of those below
        name = self.name or getattr(inner, "__name__", type(inner).__name__)
        # It has the name, docstring and signature of g.
        attributes = {"__module__": getattr(inner, "__module__", __name__), "__doc__": inner.__doc__}
        attributes |= {"__qualname__": getattr(inner, "__qualname__", name), "__wrapped__": self.function}
        vars(self).update(attributes, name=name)

    @property
    def __name__(self) -> str:
        return str(self.name)

    def rows(self, *args: Any, **kwargs: Any) -> Array:
        """Return what g returns for the records: one number or row for each."""
        sizes = {size for value in (*args, *kwargs.values()) if (size := _count(value)) is not None}
        rows = self.loose_rows(*args, **kwargs)
        if len(rows) not in sizes:
            raise OutputError(f"""{self.__name__}() made {len(rows)} rows of
                {" or ".join(map(str, sorted(sizes))) or "no"} records. What is added up over records must be
                one number, or one row of numbers, for each of them: return 0 for those that do not count, and
                do not add up in the function.""")
        return rows

    def loose_rows(self, *args: Any, **kwargs: Any) -> Array:
        """Return the same, however many there are."""
        return _rows(self.function(*args, **kwargs), self.__name__, self.bounds.keys if self.bounds else None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate the sum or mean on a dataset."""
        rows = self.rows(*args, **kwargs)
        n = len(rows)
        if self.bounds is not None:
            exact = Clamped(self.rows, self.bounds, self.average)
            total = np.add.reduce(exact.units(rows, n), axis=0)
            return exact.structure(n).rebuild(exact.finish(exact.total(total, n), n))
        if rows.dtype.kind == "f":
            # Along contiguous memory numpy adds pairwise, so that rounding grows with log n and not with n.
            flat = np.ascontiguousarray(rows.reshape(n, -1).T, dtype=np.float64)
            total = np.add.reduce(flat, axis=1).reshape(rows.shape[1:])
        else:
            if n * max(int(rows.max(initial=0)), -int(rows.min(initial=0))) >= _LARGEST_SUM:
                raise OutputError(f"""{self.__name__}() returns integers that are too large to be added up:
                    the sum must be below 2^62. Return floats.""")
            total = np.add.reduce(rows, axis=0, dtype=np.int64)
        if self.average:
            total = total / n
        if self.labels is not None:
            return dict(zip(self.labels, total.tolist(), strict=True))
        return total.item() if total.ndim == 0 else total

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind like a function."""
        return self if instance is None else types.MethodType(self, instance)

    def __privatize_rows__(self, _: Any, /) -> Rows | None:
        return None if self.bounds else Rows(self.rows, self.average)

    def __privatize_proven__(self, _: Any, /) -> Clamped | None:
        bounds = self.bounds or self.own
        if bounds is None:
            return None
        own = Clamped(self.rows, bounds, self.average, self.bounds is None, vars(self)["ready"])
        return replace(own, loose=self.loose_rows)

    def _identity(self) -> tuple[Any, ...]:
        return self.function, self.average, self.labels, *([self.bounds] if self.bounds else [])

    def _runs(self) -> list[Any]:
        return [self.function]

    def _attributes(self) -> dict[str, Any]:
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        name = self.name if vars(self)["ready"] else None
        return Additive, (self.function, self.average, self.labels, name, self.bounds, self.own)

    def __repr__(self) -> str:
        return f"<{'mean' if self.average else 'sum'} of {self.__name__} over records>"


def _count(value: Any) -> int | None:
    """Return how many records something has, if it is a dataset."""
    try:
        return records.count(value)
    except DataError:
        return None


def _rows(made: Any, name: str, keys: tuple[Any, ...] | None = None) -> Array:
    """Return what a function returned as an array of numbers with one entry for each record."""
    rows = numeric(made, keys)
    if rows.ndim == 0 or rows.dtype.kind not in "biuf":
        kind = OutputError if rows.ndim else NoRowsError
        raise kind(f"""{name}() returned
            {f"a {type(made).__name__}" if rows.ndim == 0 else f"rows of {rows.dtype}"}. What is added up over
            records must be one number, or one row of numbers, for each of them, as an array, a series or a
            list: do not add up in the function.""")
    return rows


def rows_of(function: Any) -> Rows | None:
    """Return the rows that a function adds up, if it is an `Additive`; with its other arguments.

    A callable that passes its dataset on to another function has a method ``__privatize_rows__(rows_of)``. It
    returns the rows that are then added up, or None, and calls `rows_of` for the other function.

    Examples
    --------
    >>> found = rows_of(functools.partial(additive(np.power), 2))
    >>> found.of(np.array([1, 2, 3]))
    array([2, 4, 8])
    >>> rows_of(np.mean) is None
    True
    """
    if isinstance(function, types.MethodType):
        function = functools.partial(function.__func__, function.__self__)
    if hasattr(type(function), "__privatize_rows__"):
        rows: Rows | None = function.__privatize_rows__(rows_of)
        return rows
    inner = rows_of(function.func) if isinstance(function, functools.partial) else None
    return inner and inner._replace(of=functools.partial(inner.of, *function.args, **function.keywords))


@overload
def additive(g: Callable[..., Any], *, average: bool = True, bounds: Any = None) -> Additive: ...


@overload
def additive(*, average: bool = True, bounds: Any = None) -> Callable[[Callable[..., Any]], Additive]: ...


def additive(
    g: Callable[..., Any] | None = None, *, average: bool = True, bounds: Any = None
) -> Additive | Callable[[Callable[..., Any]], Additive]:
    """Make the function f(D) = mean (or sum) of g(x) over the records x, which is quick to calibrate.

    A calibration draws two records for each pair of neighbours, and not n + 1, so it takes
    milliseconds. Its gaps are checked against plain evaluation: see "Make calibration cheaper" in the docs.
    If P may draw records that are not independent, it is calibrated like any other function.

    Parameters
    ----------
    g : callable
        Gets records, as the function gets them: an array, a frame, a list, or several aligned
        ones, and other public arguments. It returns one number, or one row of numbers, for each
        record, which must follow from that record alone. Booleans count as 0 and 1.
    average : bool
        Whether to take the mean, or the sum. Sums of integers are integers.
    bounds : tuple or Ball, optional
        What g returns is clamped to these: (low, high), two numbers, arrays or dicts that have the structure
        of the answer, or `ball`. The answer is then differentially private without gamma and without P. What
        is missing or not finite, and a record on which g fails, counts as low, or as zero in a ball. Sums
        between two integers are integers. See "Proven bounds" in the docs.

    Returns
    -------
    Additive
        Or, without g, a decorator that makes one.

    Examples
    --------
    >>> from privatize import privatize, samplers
    >>> @privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100), seed=1)
    ... @additive
    ... def of_age(ages):
    ...     return ages >= 65
    >>> of_age.estimate(n=10_000).value.__round__(10)
    0.0001

    >>> additive(np.positive, bounds=(0, 120))(np.array([30.0, 60.0, 500.0]))
    70.0
    """
    if not isinstance(average, bool):
        raise SettingsError(f"average={average!r} is neither True, for a mean, nor False, for a sum.")
    if g is None:
        return functools.partial(additive, average=average, bounds=bounds)
    if isinstance(g, Additive):
        raise SettingsError(f"{g.__name__} is a sum over records already.")
    if isinstance(g, Wrapper):
        raise SettingsError(f"""{getattr(g, "__name__", "the function")} is private already, and a sum of
            noisy rows is far noisier than a noisy sum. Write @privatize(...) above @additive.""")
    if not callable(g):
        raise SettingsError(f"""additive() was applied to a {type(g).__name__}, which cannot be called. Apply
            it to a function that returns one number, or one row of numbers, for each record.""")
    clamped = as_bounds(bounds)
    return Additive(g, average, clamped.keys if clamped else None, bounds=clamped)


# --- ready-made ones ------------------------------------------------------------------------------


def _floats(values: Any) -> Array:
    """Return an array of floats, which is empty if the values are not numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.zeros(0)


def _itself(data: Any, keys: tuple[Any, ...] | None = None) -> Array:
    return numbers(data, "means()", keys)


def means(*, bounds: Any = None) -> Additive:
    """Make the mean of records: of every column, if they have several.

    Parameters
    ----------
    bounds : tuple or Ball, optional
        What records are clamped to, as for `additive`. Dicts name columns: the answer is then a dict.

    Examples
    --------
    >>> means()(np.array([[1.0, 10.0], [3.0, 30.0]]))
    array([ 2., 20.])
    >>> means(bounds=({"age": 0}, {"age": 120}))({"age": [50, 200], "name": ["a", "b"]})
    {'age': 85.0}
    """
    clamped = as_bounds(bounds)
    keys = clamped.keys if clamped else None
    of = functools.partial(_itself, keys=keys) if keys else _itself
    return Additive(of, labels=keys, name="means", bounds=clamped)


def _membership(categories: tuple[Any, ...], data: Any) -> Array:
    codes = {category: at for at, category in enumerate(categories)}
    values, missing = unmixed(data)
    if values.ndim != 1:
        raise DataError("counts() takes one value for each record: a series, a list, a 1-d array.")
    # Each different value is looked up once, where values can be sorted.
    found, places = np.unique(values, return_inverse=True) if values.dtype.kind in "biufUS" else (values, ...)
    at = np.array([codes.get(value, -1) for value in found.tolist()], dtype=np.intp)[places]
    at[missing] = -1
    return np.asarray(at[:, None] == np.arange(len(categories)))


def counts(categories: Iterable[Any]) -> Additive:
    """Make the function that counts the records of each category, as a dict; others are not counted.

    Parameters
    ----------
    categories : iterable of str, int, bool or float
        The public list of what is counted. Never read it off the data.

    Examples
    --------
    >>> counts(["F", "M"])(["F", "F", "M", "unknown"])
    {'F': 2, 'M': 1}
    """
    if isinstance(categories, str | bytes):
        raise SettingsError(f"categories={categories!r} is one string: pass a list of categories.")
    listed = [c.item() if isinstance(c, np.generic) else c for c in categories]
    if not listed:
        raise SettingsError("categories=[] is empty, so there is nothing to count. List at least one.")
    for category in listed:
        if not isinstance(category, str | int | float) or category != category:
            raise SettingsError(f"""categories= holds {category!r}, which cannot be counted: they must be
                strings, numbers or booleans. For missing values count with a function of your own:
                additive(lambda column: column.isna(), average=False).""")
    if len(set(listed)) < len(listed):
        twice = next(c for at, c in enumerate(listed) if c in listed[:at])
        raise SettingsError(f"""categories= holds {twice!r} twice (1, 1.0 and True are the same). List each
            once.""")
    rows = functools.partial(_membership, tuple(listed))
    own = OneHot((len(listed),), tuple(listed))
    return Additive(rows, average=False, labels=tuple(listed), name="counts", own=own)


def _bins(edges: tuple[float, ...], data: Any) -> Array:
    values = numbers(data, "histogram()")
    if values.ndim != 1:
        raise DataError("""histogram() takes one number for each record: a series, a list, an array of shape
            (n,).""")
    at = np.searchsorted(edges, values, side="right") - 1
    at[values == edges[-1]] = len(edges) - 2  # the last bin includes its upper edge
    return np.asarray(at[:, None] == np.arange(len(edges) - 1))


def histogram(edges: ArrayLike) -> Additive:
    """Make the function that counts records in bins with fixed edges, as `numpy.histogram` does.

    A bin includes its lower edge and not its upper one; the last bin includes both. Values outside
    the bins, and missing values, are not counted.

    Parameters
    ----------
    edges : array
        The public edges of the bins, increasing. Never read them off the data.

    Examples
    --------
    >>> histogram([0, 18, 65, 120])(np.array([3, 18, 40, 65, 120, 130]))
    array([1, 2, 2])
    """
    given = _floats(edges)
    if given.ndim != 1 or given.size < 2 or not (np.diff(given) > 0).all():
        raise SettingsError(f"""edges={edges!r} are not edges of bins: they must be two or more numbers, each
            larger than the one before.""")
    rows, own = functools.partial(_bins, tuple(given.tolist())), OneHot((given.size - 1,))
    return Additive(rows, average=False, name="histogram", own=own)


def _products(data: Any, box: Box | None = None) -> Array:
    values = numbers(data, "second_moments()")
    if box is not None and math.prod(values.shape[1:]) == box.size:
        inside = np.clip(values, np.reshape(box.low, box.shape), np.reshape(box.high, box.shape))
        values = np.where(np.isfinite(values), inside, np.nan)
    if values.ndim == 1:
        return np.square(values)
    one, other = np.triu_indices(values.shape[1])
    return np.asarray(values[:, one] * values[:, other])


def _products_of(box: Box) -> Bounds | None:
    """Return the bounds of all products of two columns in a box."""
    one, other = np.triu_indices(box.size)
    ends = np.array(box.low), np.array(box.high)
    corners = [a[one] * b[other] for a in ends for b in ends]
    low = np.where((one == other) & (np.sign(ends[0]) != np.sign(ends[1]))[one], 0.0, np.min(corners, axis=0))
    high = np.max(corners, axis=0)
    return as_bounds((low, high) if box.shape else (low[0], high[0]))


def second_moments(*, bounds: Any = None) -> Additive:
    """Make the means of all products of two columns: the upper triangle of XᵀX/n, row by row.

    `matrix` turns the result, with or without noise, into the symmetric matrix. For a covariance
    matrix the columns must be centered: subtract public centers, or release `means` as well.

    Parameters
    ----------
    bounds : tuple, optional
        What columns are clamped to before they are multiplied: (low, high), two numbers for records that are
        numbers, or two arrays with a number for each column. Otherwise as for `additive`.

    Examples
    --------
    >>> second_moments()(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([ 5.,  7., 10.])
    """
    box = as_bounds(bounds)
    if box is None:
        return Additive(_products, name="second_moments")
    if not isinstance(box, Box) or box.keys is not None or len(box.shape) > 1:
        raise SettingsError(f"""bounds={bounds!r} do not fit second_moments(): pass (low, high), two numbers,
            or two arrays with a number for each column.""")
    return Additive(functools.partial(_products, box=box), name="second_moments", bounds=_products_of(box))


def matrix(vector: ArrayLike) -> NDArray[np.float64]:
    """Return the symmetric matrix whose upper triangle is the vector, row by row.

    Examples
    --------
    >>> matrix([5.0, 7.0, 10.0])
    array([[ 5.,  7.],
           [ 7., 10.]])
    """
    values = np.atleast_1d(np.asarray(vector, dtype=np.float64))
    d = (math.isqrt(8 * values.size + 1) - 1) // 2
    if values.ndim != 1 or d * (d + 1) // 2 != values.size or not d:
        raise SettingsError(f"""A vector of shape {values.shape} is not the upper triangle of a matrix: for d
            columns it has d(d+1)/2 numbers.""")
    made = np.zeros((d, d))
    made[np.triu_indices(d)] = values
    return made + np.triu(made, 1).T


def _height(bandwidth: float, dimension: int) -> float:
    """Return the largest value of the kernel."""
    return float((math.sqrt(2 * math.pi) * bandwidth) ** -dimension)


def _kernel(bandwidth: float, data: Any, points: Any) -> Array:
    values, at = (numbers(each, "kde()") for each in (data, points))
    if values.ndim == 1 and at.ndim == 1:
        values, at = values[:, None], at[:, None]
    if values.ndim != 2 or at.ndim != 2 or values.shape[1] != at.shape[1]:
        raise DataError(f"""kde() has points of shape {np.shape(points)}, and records of shape
            {values.shape[1:]}: each point must have as many numbers as a record.""")
    from scipy.spatial.distance import cdist

    found = cdist(at / bandwidth, values / bandwidth, "sqeuclidean")
    found *= -0.5
    np.exp(found, out=found)
    found *= _height(bandwidth, values.shape[1])
    return np.asarray(found.T)


def _kernel_at(points: tuple[Any, ...], bandwidth: float, data: Any) -> Array:
    return _kernel(bandwidth, data, np.array(points))


def kde(points: ArrayLike | None, bandwidth: float) -> Additive:
    """Make a Gaussian kernel density estimate at fixed points.

    Parameters
    ----------
    points : array or None
        The public points: of shape (k,) for records that are numbers, (k, d) for rows of d. None
        leaves them open: the function takes them as its second argument, which the mechanism
        `privatize.Bernstein` fills with its lattice.
    bandwidth : float
        Standard deviation of the kernel along every axis.

    Examples
    --------
    >>> kde([0.0, 1.0], bandwidth=0.5)(np.array([0.0, 0.0, 1.0])).round(4)
    array([0.5679, 0.3379])
    """
    if not 0 < as_float(bandwidth) < math.inf:
        raise SettingsError(f"bandwidth={bandwidth!r} is out of range: it must be a number > 0 and finite.")
    if points is None:
        return Additive(functools.partial(_kernel, float(bandwidth)), name="kde")
    given = _floats(points)
    if given.ndim not in (1, 2) or not given.size or not np.isfinite(given).all():
        raise SettingsError(f"""points= of shape {np.shape(points)} are not points: they must be finite
            numbers, of shape (k,) or (k, d).""")
    fixed = tuple(map(tuple, given.tolist())) if given.ndim == 2 else tuple(given.tolist())
    own = None
    if abs(given[0].size * math.log(bandwidth)) < 250:  # beyond that float64 has no place for the kernel
        height = _height(float(bandwidth), given[0].size)
        own = Box((0.0,) * len(given), (height,) * len(given), (len(given),))
    return Additive(functools.partial(_kernel_at, fixed, float(bandwidth)), name="kde", own=own)
