"""Lists of records: numbers, strings, dates, dicts with the same keys, or anything else."""

# ruff: noqa: ARG002, D102 - the base class says what a method takes and does

import copy
import datetime as dt
import decimal
import fractions
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import clipping
from privatize.data.container import IMMUTABLE, Container, Positions, isolated
from privatize.data.schema import ListSchema, Schema
from privatize.data.support import OneOf, is_fixed, split, unwrap
from privatize.errors import DataError

_WRONG_TYPE = """The records of the list are not all of the type that P draws: numbers, booleans, dates of the
        same time zone. Convert them, or have the sampler draw what they are."""


class Lists(Container):
    """Lists of records."""

    def describe(self, data: Any) -> Schema:
        return ListSchema()

    def take(self, data: Any, positions: Positions) -> Any:
        return [*map(data.__getitem__, np.asarray(positions).tolist())]

    def concat(self, parts: Sequence[Any]) -> Any:
        return [record for part in parts for record in part]

    def copy(self, data: Any) -> Any:
        kinds = {type(record) for record in data}
        if kinds <= IMMUTABLE:
            return data[:]
        if kinds == {dict} and len(set(map(id, data))) == len(data):
            values = itertools.chain.from_iterable(map(dict.values, data))
            inside = set(map(type, itertools.chain(values, *data)))  # of the keys too
            if inside <= IMMUTABLE:
                return [record.copy() for record in data]
        return copy.deepcopy(data)

    def neighbour(self, data: Any, position: int, n: int) -> Any:
        other = self.copy(data[:n])
        other[position] = data[n]
        return other

    def isolated(self, data: Any) -> Any:
        return [isolated(record) for record in data]

    def alike(self, one: Any, other: Any) -> bool:
        dicts = all(part and isinstance(part[0], dict) for part in (one, other))
        return not dicts or list(one[0]) == list(other[0])

    def from_array(self, values: NDArray[Any], schema: Any) -> Any:
        fine = values.dtype.kind in "biufUM" or (values.dtype.kind == "O" and values.ndim == 1)
        return values.tolist() if fine else values

    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        copied = self.copy(data)
        if not isinstance(support, dict):
            return _convert_column(copied, drawn, support)
        # Records get P's keys: one that a record lacks becomes a missing value, and other keys are left out.
        if not all(isinstance(record, dict) for record in [*copied, *drawn]):
            raise DataError("The records of the list are not all dicts, as those that P draws are.")
        names = list(drawn[0])
        made = [
            _convert_column([one.get(name) for one in copied], [one[name] for one in drawn], end)
            for name, end in zip(names, split(support, names), strict=True)
        ]
        return [dict(zip(names, record, strict=True)) for record in zip(*made, strict=True)]

    def convert_by_array(self, data: Any, drawn: NDArray[Any], support: Any) -> Any:
        dtype = drawn.dtype
        if dtype.kind in "UO" and support is None:
            return self.copy(data)
        if is_fixed(support) and drawn.ndim == 1:
            listed = clipping.convert_choices(data, support)
            if dtype.kind not in "biuf":
                return listed
            return np.array([math.nan if value is None else value for value in listed], dtype=dtype).tolist()
        values, missing = to_array(data, dtype)
        if values.shape[1:] != drawn.shape[1:]:
            raise DataError(f"The records of the list are not of the shape {drawn.shape[1:]} that P draws.")
        return self.from_array(clipping.convert_values(values, dtype, support, missing), None)


def _convert_column(values: list[Any], drawn: list[Any], support: Any) -> list[Any]:
    """Return a list of values, or one column of a list of dicts, inside its support."""
    inner, optional = unwrap(support)
    if inner is None:
        return values
    if isinstance(inner, OneOf):
        return clipping.convert_choices(values, support)
    example = next((value for value in drawn if not clipping.is_missing(value)), None)
    if example is None:  # all drawn values are missing: take the type of the bounds
        example = inner[0].item() if isinstance(inner[0], np.generic) else inner[0]
    zone = example.tzinfo if isinstance(example, dt.datetime) else None
    integers = isinstance(example, int) and not isinstance(example, bool)
    dtype = "M8[us]" if isinstance(example, dt.date) else "i8" if integers else "f8"
    array, missing = to_array(values, np.dtype(dtype), zone)
    if array.ndim != 1:
        raise DataError(_WRONG_TYPE)
    found = clipping.convert_values(array, array.dtype, inner, missing).tolist()
    if dtype == "M8[us]":
        found = [_match_type(moment, example) for moment in found]
    return clipping.with_none(found, missing) if optional else found


def _match_type(moment: dt.datetime, example: dt.date) -> dt.date:
    """Return a time in UTC as a date, or as a time in a time zone, as the example is."""
    if not isinstance(example, dt.datetime):
        return moment.date()
    zone = example.tzinfo
    return moment if zone is None else moment.replace(tzinfo=dt.UTC).astimezone(zone)


def _moment(value: Any, zone: Any) -> Any:
    """Return a date or a time without its time zone, in UTC, or refuse its type."""
    if value is None:
        return value
    if isinstance(value, np.datetime64):
        return value.astype("M8[us]")
    if not isinstance(value, dt.date):
        raise DataError(_WRONG_TYPE)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    elif zone is not None:
        raise DataError(_WRONG_TYPE)
    return np.datetime64(value, "us")


def to_array(data: list[Any], dtype: np.dtype[Any], zone: Any = None) -> tuple[Any, Any]:
    """Return a list as an array that can be cast to P's dtype, and which values are missing.

    Each value is converted by itself: the result does not depend on the other values.
    """
    if dtype.kind in "UO":
        return clipping.objects(data), None
    if dtype.kind == "f" and {type(value) for value in data} == {float}:
        return np.array(data), np.isnan(data)
    try:
        values = np.array(data, dtype=object)
    except ValueError:  # ragged
        raise DataError(_WRONG_TYPE) from None
    flat = values.ravel().tolist()
    missing = np.array([clipping.is_missing(value) for value in flat], dtype=bool)
    present = clipping.with_none(flat, missing)
    found: Any
    if dtype.kind in "mM":
        found = np.array([_moment(value, zone) for value in present], dtype="M8[us]")
    elif dtype.kind in "iu":
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        found = np.array([round(min(max(_number(v), least), most)) for v in present], dtype=dtype)
    else:
        found = _floats([_number(value) for value in present])
    return found.reshape(values.shape), missing.reshape(values.shape)


def _floats(numbers: list[Any]) -> NDArray[Any]:
    try:
        return np.array(numbers, dtype=np.float64)
    except OverflowError:  # as decimals, huge integers become infinite
        return np.array([float(decimal.Decimal(number)) for number in numbers])


def _number(value: Any) -> Any:
    """Return a number as an int or a float, a missing one as 0, or refuse its type."""
    if value is None:
        return 0
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if isinstance(value, decimal.Decimal | fractions.Fraction):
        value = float(value)
    if not isinstance(value, int | float):
        raise DataError(_WRONG_TYPE)
    return float(value) if isinstance(value, float) else int(value)
