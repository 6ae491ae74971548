"""Distributions of categories, strings, booleans and dates, and of values that may be missing."""

import datetime as dt
import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privatize.data.columns import Column, array_of
from privatize.data.support import Maybe, OneOf
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, Sampler, kind, support_of
from privatize.samplers.distribution import Distribution, as_column, as_part
from privatize.samplers.foreign import as_sampler
from privatize.samplers.parameters import Frozen, as_code, chosen, even, number, scalars, shares


def categorical(
    values: Sequence[Any], p: Sequence[float] | None = None, *, ordered: bool = False, unknown: Any = None
) -> Distribution:
    """Draw from fixed categories: a categorical column of a table.

    Parameters
    ----------
    values : sequence of str, int, float or bool
        The categories, all of one type.
    p : sequence of float, optional
        How often each is drawn, up to a common factor. Equally often by default.
    ordered : bool
        Whether the categories have an order.
    unknown : optional
        The category that private values in no category, or missing, are mapped to with ``domain="clip"``.
        The first one by default.

    Examples
    --------
    >>> categorical(["F", "M"], p=[0.6, 0.4])
    categorical(['F', 'M'], p=[0.6, 0.4])
    >>> categorical(["F", "M"]).support
    OneOf(('F', 'M'), unknown='F')
    """
    return _fixed("categorical", values, p, unknown, categorical=True, ordered=bool(ordered))


def choice(values: Sequence[Any], p: Sequence[float] | None = None, *, unknown: Any = None) -> Distribution:
    """Draw from fixed values: strings or numbers.

    Parameters
    ----------
    values : sequence of str, int, float or bool
        What is drawn, all of one type.
    p : sequence of float, optional
        How often each is drawn, up to a common factor. Equally often by default.
    unknown : optional
        What private values that are none of these, or missing, are mapped to with ``domain="clip"``. The
        first one by default.

    Examples
    --------
    >>> choice(["red", "green"]).draw(3, np.random.default_rng(1))
    array(['red', 'green', 'green'], dtype='<U5')
    """
    return _fixed("choice", values, p, unknown)


def boolean(p: float = 0.5) -> Distribution:
    """Draw True with probability `p`, and False otherwise.

    Examples
    --------
    >>> boolean(0.3)
    boolean(0.3)
    """
    chance = number(p)
    if not 0 <= chance <= 1:
        raise SamplerError(f"boolean({p!r}): p is a probability, between 0 and 1.")
    return _Values((False, True), "bool", Frozen([1 - chance, chance]), False)


def _fixed(name: str, values: Any, p: Any, unknown: Any, **more: bool) -> Distribution:
    """Make a distribution of fixed values, or refuse them."""
    if isinstance(values, str | bytes | set | frozenset | dict) or not np.iterable(values):
        hint = f" For shares: {name}(['a', 'b'], p=[0.6, 0.4])." if isinstance(values, dict) else ""
        raise SamplerError(f"{name}({values!r}): the values must be a list, whose order is fixed.{hint}")
    found, kinds = scalars(values)
    if kinds == {int, float}:
        found, kinds = tuple(map(float, found)), {float}
    if len(kinds) != 1 or not kinds <= {str, int, float, bool}:
        raise SamplerError(f"""{name}({list(found)!r}): the values must be all strings, all numbers or all
            booleans, and at least one. For missing values use with_missing(...).""")
    if len(set(found)) < len(found) or any(value != value for value in found):
        raise SamplerError(f"{name}({list(found)!r}): the values must be different from each other.")
    fallback = found[0] if unknown is None else unknown
    if fallback not in found or type(fallback) is not type(found[0]):
        raise SamplerError(f"{name}(..., unknown={unknown!r}): it must be one of the values {list(found)!r}.")
    (kind_of,) = kinds  # 1 == True == 1.0, so their type is compared too
    return _Values(found, kind_of.__name__, shares("p", p, len(found), "values"), fallback, **more)


@kind("values", immutable=True)
class _Values(Distribution):
    values: tuple[Any, ...]
    kind: str
    p: Frozen | None
    unknown: Any
    categorical: bool = False
    ordered: bool = False

    def draw(self, n: int, rng: Rng) -> Any:
        if self.values == (False, True) and self.kind == "bool" and self.p is not None:
            return rng.random(n) >= self.p.array[0]
        return array_of(self.values)[chosen(self.p, len(self.values), n, rng)]

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"p": self.p or even(len(self.values))}

    def column(self, n: int, rng: Rng) -> Column:
        codes = chosen(self.p, len(self.values), n, rng)
        return Column(codes, categories=self.values, plain=not self.categorical, ordered=self.ordered)

    def _support(self) -> Any:
        return OneOf(self.values, self.unknown)

    def lossless(self) -> bool:
        if self.kind != "bool" or self.p is None or len(self.values) != 2:
            return True
        return bool(self.p.array[0] == 1 - self.p.array[1])  # boolean(p) shows only one of them

    def __repr__(self) -> str:
        default = self.values == (False, True) and self.unknown is False and not self.categorical
        if self.kind == "bool" and self.p is not None and default:
            return f"boolean({as_code(self.p.array[1].item())})"
        p = "" if self.p is None else f", p={self.p!r}"
        more = (", ordered=True" if self.ordered else "") + (
            "" if self.unknown == self.values[0] else f", unknown={self.unknown!r}"
        )
        return f"{'categorical' if self.categorical else 'choice'}({list(self.values)!r}{p}{more})"


def dates(start: Any, end: Any, *, tz: str | None = None, times: bool = False) -> Distribution:
    """Draw days between two days, both included, each equally often; or times of day as well.

    Parameters
    ----------
    start, end : str, date, datetime or datetime64
        The first and the last.
    tz : str, optional
        Time zone, such as "Europe/Berlin". Start and end are local times there, and times of day are drawn.
    times : bool
        Draw times of day too, to the second.

    Examples
    --------
    >>> dates("2020-01-01", "2024-12-31")
    dates('2020-01-01', '2024-12-31')
    >>> dates("2020-01-01", "2024-12-31").draw(2, np.random.default_rng(1))
    array(['2022-05-14', '2022-07-24'], dtype='datetime64[D]')
    """
    unit = "s" if times or tz is not None else "D"
    if tz is not None:
        _zone(tz)  # raises if there is no such zone
    first, last = _moment("start", start, unit, tz), _moment("end", end, unit, tz)
    if not first < last:
        raise SamplerError(f"dates({start!r}, {end!r}): the start must be before the end.")
    return _Dates(first, last, tz, unit)


def _moment(name: str, given: Any, unit: str, tz: str | None) -> Any:
    """Return a day, or a moment in UTC, or refuse."""
    try:
        text = str(given)
        zoned = getattr(given, "tzinfo", None) is not None or text.endswith("Z") or "+" in text
        if zoned or text.lower() in ("", "nat"):  # numpy would warn that it has no unit
            raise ValueError
        day = given if isinstance(given, np.datetime64) else np.datetime64(text.replace(" ", "T"))
        moment = day.astype(f"M8[{unit}]")
        if name == "end" and unit == "s" and np.datetime_data(day.dtype)[0] == "D":
            moment += np.timedelta64(86_399, "s")  # all of the last day
        if np.isnat(moment) or not np.datetime64("0001") <= moment < np.datetime64("10000"):
            raise ValueError
        if tz is None:
            return moment
        local = moment.item().replace(tzinfo=_zone(tz))
        return np.datetime64(local.astimezone(dt.UTC).replace(tzinfo=None), "s")
    except (TypeError, ValueError, OverflowError):
        raise SamplerError(f"""dates(): {name}={given!r} is not a date such as '2020-01-31', without a time
            zone (which goes into tz=).""") from None


def _zone(tz: str) -> Any:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(tz)
    except (OSError, ValueError, TypeError, KeyError):
        raise SamplerError(f"dates(): tz={tz!r} is not a time zone such as 'Europe/Berlin'.") from None


_EARLIEST, _LATEST = np.datetime64("1678-01-01"), np.datetime64("2262-01-01")  # what nanoseconds can count


@kind("dates", immutable=True)
class _Dates(Distribution):
    start: Any
    end: Any
    tz: str | None
    unit: str

    @functools.cached_property
    def _range(self) -> tuple[int, int, np.dtype[Any]]:
        """The start and the end as integers, and the dtype of what is drawn."""
        return int(self.start.astype(np.int64)), int(self.end.astype(np.int64)), self.start.dtype

    @functools.cached_property
    def _wide(self) -> bool:
        """Whether some are beyond the years that nanoseconds can count."""
        return bool(self.start < _EARLIEST or self.end > _LATEST)

    def draw(self, n: int, rng: Rng) -> Any:
        low, high, dtype = self._range
        return rng.integers(low, high, n, endpoint=True).view(dtype)

    def column(self, n: int, rng: Rng) -> Column:
        return Column(self.draw(n, rng), zone=self.tz, wide=self._wide)

    def _support(self) -> Any:
        return self.start, self.end

    def lossless(self) -> bool:
        return self.tz is None  # a local time is another moment if the rules of its time zone change

    def __repr__(self) -> str:
        if self.tz is None:
            more = "" if self.unit == "D" else ", times=True"
            return f"dates({str(self.start)!r}, {str(self.end)!r}{more})"
        local = [
            end.item().replace(tzinfo=dt.UTC).astimezone(_zone(self.tz)).replace(tzinfo=None)
            for end in (self.start, self.end)
        ]
        return f"dates({str(local[0])!r}, {str(local[1])!r}, tz={self.tz!r})"


def with_missing(values: Any, rate: float) -> Distribution:
    """Draw values of which some are missing: NaN, NaT, None, or the missing value of a frame.

    Parameters
    ----------
    values : sampler
        What the values that are not missing are drawn from.
    rate : float
        The share of missing values.

    Examples
    --------
    >>> from privatize.samplers import integers
    >>> with_missing(integers(0, 9), 0.5).draw(4, np.random.default_rng(1))
    array([nan,  5., nan, nan])
    """
    share = number(rate)
    if not 0 < share < 1:
        raise SamplerError(f"with_missing(..., {rate!r}): the rate is a share between 0 and 1.")
    return _Missing(as_part(as_sampler(values)), share)


@kind("with missing", "values")
class _Missing(Distribution):
    values: Sampler
    rate: float

    def draw(self, n: int, rng: Rng) -> Any:
        return self.column(n, rng).array()

    def column(self, n: int, rng: Rng) -> Column:
        drawn = column_of(self.values, n, rng)
        missing = rng.random(n) < self.rate
        return replace(drawn, missing=missing if drawn.missing is None else missing | drawn.missing)

    def _support(self) -> Any:
        inner = support_of(self.values)
        return inner if isinstance(inner, Maybe) else Maybe(inner)

    def __repr__(self) -> str:
        return f"with_missing({self.values!r}, {self.rate!r})"


def column_of(sampler: Sampler, n: int, rng: Rng) -> Column:
    """Return n values of any sampler as a column."""
    if isinstance(sampler, Distribution):
        return sampler.column(n, rng)
    return as_column(sampler, sampler.draw(n, rng), n)
