"""Convert private values to P's dtype and clip them to its support.

Every value is changed by itself, whatever the others are, so neighbouring datasets stay neighbours. Numbers
and dates are clipped. Missing values, and values that P does not draw, become one that it does.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data.support import OneOf, bounds, is_pair, unwrap

Array = NDArray[Any]
Mask = NDArray[np.bool_]
_FEW = 8  # known values that are compared one after the other


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for a missing one, as None, NaN, NaT and pandas' NA do."""
    if value is None:
        return True
    kind = type(value)
    if kind is str:
        return False
    if kind.__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(value != value)


def absent_in(values: Array, missing: Mask | None = None) -> Mask:
    """Tell which values of an array are missing: NaN, NaT and None, and those that are marked as missing.

    Examples
    --------
    >>> absent_in(np.array([1.0, np.nan, 3.0]), np.array([True, False, False]))
    array([ True,  True, False])
    """
    if values.dtype.kind == "O":
        listed = values.ravel().tolist()
        if set(map(type, listed)) <= {str, type(None)}:  # the same, faster
            found = np.array([value is None for value in listed], dtype=bool).reshape(values.shape)
        else:
            found = np.array([is_missing(value) for value in listed], dtype=bool).reshape(values.shape)
    else:
        found = values != values if values.dtype.kind in "fmM" else np.zeros(values.shape, dtype=bool)
    return found if missing is None else found | missing


def are_integers(values: Array) -> bool:
    """Tell whether the numbers of an array are integers, perhaps as floats.

    Examples
    --------
    >>> are_integers(np.array([1.0, np.nan])), are_integers(np.array([0.5])), are_integers(np.array(["a"]))
    (True, False, False)
    """
    seen = values[np.isfinite(values)] if values.dtype.kind == "f" else values[:0]
    return values.dtype.kind in "iu" or (len(seen) > 0 and bool((seen == np.rint(seen)).all()))


def objects(values: Sequence[Any]) -> Array:
    """Return values as an array of objects."""
    return np.fromiter(values, object, len(values))


def with_none(values: list[Any], missing: Any) -> list[Any]:
    """Return a list of values with None where `missing` is true, or unchanged if it is None or nowhere true.

    Examples
    --------
    >>> with_none([1, 2], np.array([True, False])), with_none([1, 2], None)
    ([None, 2], [1, 2])
    """
    if missing is None or not np.any(missing):
        return values
    flags = np.ravel(missing).tolist()
    return [None if absent else value for value, absent in zip(values, flags, strict=True)]


def convert_values(values: Array, dtype: np.dtype[Any], support: Any, missing: Mask | None = None) -> Any:
    """Return an array of anything in P's dtype and, if a support is given, inside it.

    Parameters
    ----------
    values : array
        The private values.
    dtype : dtype
        What P draws.
    support : object
        What P's values lie in, or None.
    missing : array of bool, optional
        Which of the values are missing, beyond those that are NaN, NaT or None.
    """
    inner, _ = unwrap(support)
    if is_pair(inner):
        _check_shapes([np.shape(end) for end in inner], values.shape[1:])
    if dtype.kind in "biuf" and values.dtype.kind in "biuf":
        return convert_numbers(values, dtype, support, missing)
    if values.dtype.kind in "mM" and values.dtype.kind == dtype.kind:
        return convert_moments(values, dtype, support, missing)
    if dtype.kind not in "USTO" or (support is None and missing is None):
        return values.astype(dtype)
    listed = with_none(values.ravel().tolist(), missing)
    if support is not None:
        listed = convert_choices(listed, support)
    if dtype.kind == "U" and isinstance(inner, OneOf):  # wide enough for all, not just for the few drawn
        dtype = np.result_type(dtype, np.array(inner.values).dtype)
    made = np.empty(len(listed), dtype=dtype)
    made[:] = listed
    return made.reshape(values.shape)


def _check_shapes(shapes: list[tuple[int, ...]], record: tuple[int, ...]) -> None:
    if any(shape and np.broadcast_shapes(shape, record) != record for shape in shapes):
        raise ValueError("its support must have one bound for all, or one for each number of a record")


def convert_numbers(values: Array, dtype: np.dtype[Any], support: Any, missing: Mask | None = None) -> Any:
    """Return numbers in another dtype and, if a support is given, inside it.

    Numbers are clipped; missing ones, which P's support does not contain, become the middle of a bounded
    support or the one finite end of a half-bounded one. Where P draws missing values too, they stay NaN in
    floats; in other dtypes the caller has to mark them.

    Examples
    --------
    >>> convert_numbers(np.array([-1, 50, 200]), np.dtype(float), (0.0, 100.0))
    array([  0.,  50., 100.])
    >>> convert_numbers(np.array([0.0, 1.0, 7.0]), np.dtype(int), OneOf((0, 1), unknown=0))
    array([0, 1, 0])
    """
    if missing is None and values.dtype == dtype and dtype.kind in "iu" and _is_known(support):
        low, high = _known_edges(*support, dtype)  # the same, faster
        return np.minimum(np.maximum(values, low), high)
    inner, optional = unwrap(support)
    absent = absent_in(values, missing)
    if isinstance(inner, OneOf):
        inside = _are_among(values, inner.values) & ~absent
        found = np.where(inside, cast_numbers(values, dtype), np.array(inner.unknown, dtype=dtype))
    elif inner is None:
        found, optional = cast_numbers(values, dtype), True
    else:
        found = _clip(values, dtype, inner, absent)
    if dtype.kind != "f":
        return found
    if inner is not None:
        found = found + 0.0  # -0.0 becomes 0.0: P's support has one zero, not two
    # NaNs can differ in their bits, which code can read: all of them become the usual one.
    return np.where(absent, np.array(np.nan, dtype=dtype), found) if optional and absent.any() else found


def _are_among(values: Array, known: tuple[Any, ...]) -> Mask:
    """Tell which numbers are among known ones."""
    if len(known) > _FEW:
        return np.isin(values, np.array(known))
    found = np.zeros(values.shape, dtype=bool)  # the same, faster
    for each in np.array(known):
        found |= values == each
    return found


def convert_floats(values: Any, drawn: Any, support: Any) -> Array | None:
    """Return the same as `convert_numbers`, without warnings, in the usual case; otherwise None.

    The usual case is arrays of float64 and a support of two floats, and takes a third of the time. It does
    not depend on values: a missing record must not change how others are converted, not even the sign of a
    zero. The result is laid out in memory as drawn records are, however the private array is laid out.

    Examples
    --------
    >>> convert_floats(np.array([-1.0, 50.0, 200.0]), np.zeros(2), (0.0, 100.0))
    array([  0.,  50., 100.])
    >>> convert_floats(np.array([-1.0, np.nan]), np.zeros(2), (0.0, 100.0))
    array([ 0., 50.])
    """
    if type(values) is not np.ndarray or type(drawn) is not np.ndarray or type(support) is not tuple:
        return None
    if not drawn.dtype == values.dtype == np.float64 or len(support) != 2:
        return None
    low, high = support
    if type(low) is not float or type(high) is not float:
        return None
    found: Array = np.empty(values.shape, drawn.dtype)
    np.maximum(values, low, out=found)
    np.minimum(found, high, out=found)
    np.add(found, 0.0, out=found)  # -0.0 becomes 0.0
    absent = found != found
    if np.count_nonzero(absent):
        found[absent] = fill_value(low, high)
    return found


def _clip(values: Array, dtype: np.dtype[Any], ends: Any, absent: Mask) -> Array:
    low, high = (np.asarray(end, dtype=np.float64) for end in bounds(ends, dated=False))
    integers = dtype.kind in "iu"
    if integers:  # rounded inward, so that rounding values does not leave the support
        low, high = np.ceil(low), np.floor(high)
    some = bool(absent.any())
    if integers and values.dtype.kind in "iu":
        # As integers, because floats cannot represent all of them beyond 2^53.
        first, last = ends
        edges = (_known_edges if _is_known(ends) else _edges)(first, last, dtype)
        found = np.clip(values if values.dtype == dtype else cast_numbers(values, dtype), *edges)
    else:
        numbers = values if values.dtype.kind == "f" else values.astype(np.float64)
        found = cast_numbers(np.clip(np.where(absent, 0, numbers) if some else numbers, low, high), dtype)
    return np.where(absent, cast_numbers(np.asarray(fill_value(low, high)), dtype), found) if some else found


def _is_known(support: Any) -> bool:
    """Tell whether a support is two numbers of Python's, as usual."""
    return type(support) is tuple and len(support) == 2 and all(type(end) in (int, float) for end in support)


def _edges(low: Any, high: Any, dtype: Any) -> list[Array]:
    """Return bounds rounded inward to integers, and infinite ones as the ends of the dtype's range."""
    limits = np.iinfo(dtype)
    found = []
    for given, last, inward in ((low, limits.min, np.ceil), (high, limits.max, np.floor)):
        end = np.asarray(given)
        rounded = cast_numbers(end if end.dtype.kind in "iu" else inward(end.astype(np.float64)), dtype)
        found.append(np.where(np.isinf(end), np.array(last, dtype=dtype), rounded))
    return found


_known_edges = functools.lru_cache(maxsize=256, typed=True)(_edges)  # for 2**63 and 2.0**63 they differ


def fill_value(low: Any, high: Any) -> Any:
    """Return the value that replaces a missing one: it is public and inside the support."""
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2
    end = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    return np.where(np.isfinite(low) & np.isfinite(high), middle, end)


def convert_moments(values: Array, dtype: np.dtype[Any], support: Any, missing: Mask | None = None) -> Array:
    """Return dates, times or durations in another unit and, if a support is given, inside it.

    Examples
    --------
    >>> ends = tuple(np.array(["2020-01-01", "2020-12-31"], dtype="M8[D]"))
    >>> convert_moments(np.array(["2021-03-01", "NaT"], dtype="M8[s]"), np.dtype("M8[D]"), ends)
    array(['2020-12-31', '2020-07-01'], dtype='datetime64[D]')
    """
    inner, optional = unwrap(support)
    if missing is not None:
        values = np.where(missing, np.array("NaT", dtype=values.dtype), values)
    if isinstance(inner, OneOf):
        found = values.astype(dtype)
        inside = np.isin(found, np.array(inner.values, dtype=dtype)) | (np.isnat(found) & optional)
        return np.where(inside, found, np.array(inner.unknown, dtype=dtype))
    if inner is None:
        return values.astype(dtype)
    # In the support's own unit, for example days, because P draws nothing finer.
    low, high = map(np.asarray, bounds(inner, dated=True))
    clipped = np.clip(values.astype(low.dtype), low, high)
    if not optional:
        clipped = np.where(np.isnat(clipped), low + (high - low) // 2, clipped)
    return np.asarray(clipped.astype(dtype))


def convert_choices(values: list[Any], support: Any) -> list[Any]:
    """Return strings, or values of any kind, with those that P does not draw replaced.

    None and NaN are missing values.

    Examples
    --------
    >>> convert_choices(["F", "x", None], OneOf(("F", "M"), unknown="M"))
    ['F', 'M', 'M']
    >>> from privatize.data.support import Maybe
    >>> convert_choices(["F", "x", None], Maybe(OneOf(("F", "M"), unknown="M")))
    ['F', 'M', None]
    """
    inner, optional = unwrap(support)
    if inner is None:
        return [None if is_missing(value) else value for value in values]
    if not isinstance(inner, OneOf):
        raise ValueError("its support is bounds, which only numbers and dates have")
    allowed = {_key(value): value for value in inner.values}
    if {type(value) for value in inner.values} == {bool}:  # P draws booleans only: 0 and 1 mean them
        allowed |= {_key(int(value)): value for value in inner.values}
    found = _look_up(values, allowed, inner.unknown)
    return with_none(found, [is_missing(value) for value in values]) if optional else found


def codes(values: list[Any], known: list[Any]) -> list[int]:
    """Return the place of each value among known ones, or -1 if it is not among them.

    Examples
    --------
    >>> codes(["M", "x", None], ["F", "M"])
    [1, -1, -1]
    """
    return _look_up(values, {_key(value): at for at, value in enumerate(known)}, -1)


def _look_up(values: list[Any], table: dict[tuple[str, Any], Any], otherwise: Any) -> list[Any]:
    if set(map(type, values)) <= {str, type(None)}:  # the same, faster
        texts = {value: found for (kind, value), found in table.items() if kind == "str"}
        return [texts.get(value, otherwise) for value in values]
    found = []
    for value in values:
        try:
            found.append(table.get(_key(value), otherwise))
        except TypeError:  # not hashable, so P does not draw it
            found.append(otherwise)
    return found


def _key(value: Any) -> tuple[str, Any]:
    """Return a key that is the same for 1 and 1.0, and another one for True."""
    value = value.item() if isinstance(value, np.generic) else value
    kind = type(value)
    return ("number" if kind in (int, float) else kind.__name__, value)


def cast_numbers(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers in another dtype; integers saturate, they never wrap."""
    if dtype.kind not in "iu" or values.dtype.kind == "b":
        with np.errstate(over="ignore"):  # a warning would reveal that a private number is huge
            return values.astype(dtype)
    ends = np.iinfo(dtype)
    if values.dtype.kind in "iu":
        own = np.iinfo(values.dtype)
        return np.asarray(np.clip(values, max(own.min, ends.min), min(own.max, ends.max)).astype(dtype))
    # In float64, since float32 cannot represent 2^31 - 1. 2^63 - 1 is no float64, but what rounds to 2^63.
    rounded = np.rint(values.astype(np.float64))
    rounded = np.where(rounded == rounded, rounded, 0.0)  # NaN becomes 0
    above = rounded >= float(ends.max)
    inside = np.maximum(np.where(above, 0.0, rounded), float(ends.min)).astype(dtype)
    return np.where(above, np.array(ends.max, dtype=dtype), inside).astype(dtype, copy=False)


def value_in(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a value, None for a missing one, as an array of a dtype can have it; integers saturate.

    Examples
    --------
    >>> value_in(1e6, np.dtype("i1")), value_in(None, np.dtype(float))
    (127, nan)
    """
    if value is None and dtype.kind in "fmM":
        return np.nan if dtype.kind == "f" else np.array("NaT", dtype=dtype)[()]
    return cast_numbers(np.asarray(value or 0), dtype).item() if dtype.kind in "biuf" else value
