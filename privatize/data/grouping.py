"""Make persons of the rows of a frame: whose row it is, in which order, and which are left out.

Everything about a person's rows follows from these rows, the person's identifier and a secret key, and from
nothing that others have: not their rows, nor the dtypes of columns, nor the order of the frame. The order of
persons is that of a keyed hash of their identifiers. Why that is enough is in ``docs/people.md``.
"""

import datetime as dt
import hashlib
import math
import uuid
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import columns as _columns
from privatize.data import frames
from privatize.data.clipping import is_missing
from privatize.data.container import find, of
from privatize.data.persons import Counts, Persons, expanded, names_of
from privatize.data.tabular import Tabular
from privatize.data.units import Unit
from privatize.errors import DataError

Words = NDArray[np.uint64]
_KINDS = ("int", "float", "text", "category", "object")  # of columns that can have identifiers
_MISSING = np.uint64(1)  # the hash of a missing value


def group(
    data: Any, unit: Unit, key: bytes, persons: Iterable[Any] | None = None, columns: Sequence[Any] = ()
) -> Persons:
    """Return the persons of a frame or a dict of arrays.

    Persons are ordered by a keyed hash of their identifiers, so their order is secret, and the same whenever
    the key is. Without `persons` they are those who have a row.

    Parameters
    ----------
    data : frame or dict of arrays
        The rows.
    unit : Unit
        Which column identifies persons, and how many rows are used, in which order.
    key : bytes
        32 secret bytes.
    persons : iterable, optional
        The identifiers of all persons, also of those without rows. Rows of others are left out.
    columns : sequence of str
        The order of the columns of P, in which those of the data are put if they are the same.
    """
    codes, names = _coded(_identifiers(data, unit))
    known = set(names) if persons is None else {token for each in persons if (token := _token(each))}
    listed = sorted(known, key=lambda token: _digest(key, b"slot", token))
    slots = {token: slot for slot, token in enumerate(listed)}
    # A row without identifier, or of somebody who is not listed, has the slot -1.
    of_name = np.array([*(slots.get(token, -1) for token in names), -1], dtype=np.int64)
    slot = of_name[codes]
    kept = np.flatnonzero(slot >= 0)
    own = [name for name in names_of(data) if name != unit.name]
    rows = _selected(data, list(columns) if set(columns) == set(own) else own)
    secrets = np.array([int.from_bytes(_digest(key, b"rows", token)[:8]) for token in names], np.uint64)
    mixed, exact = _mixed(rows, kept, key)
    mixed ^= np.append(secrets, np.uint64(0))[codes[kept]]
    by = [] if unit.order is None else [ranks_of(*_contents(_selected(rows, [unit.order]))[0])[kept]]
    order = kept[np.lexsort((exact, _shuffled(mixed), *by, slot[kept]))]
    counts = np.bincount(slot[order], minlength=len(listed)).astype(np.int64)
    if unit.most is not None and counts.max(initial=0) > unit.most:
        starts = np.cumsum(counts) - counts
        counts = np.minimum(counts, unit.most)
        order = order[expanded(starts, counts)]
    return Persons(unit, counts, _once(rows, order, counts, unit))


def number_of_persons(data: Any, unit: Unit, persons: Iterable[Any] | None = None) -> int:
    """Return the number of persons in a frame, which is public; or of those that are declared."""
    if persons is not None:
        return len({token for each in persons if (token := _token(each))})
    return len(_coded(_identifiers(data, unit))[1])


def check_rows(data: Any, unit: Unit) -> None:
    """Refuse a dataset that is no table with the unit's column, by its types and names alone."""
    form = frames.kind(data)
    if type(data) is dict:
        if unit.name in data and (not isinstance(data[unit.name], np.ndarray | list)):
            raise DataError(f"The column {unit.name!r} is no array or list.")
    elif form is None or form[0] != "frame":
        raise DataError(f"""Persons have several rows each, by {unit.name!r}, and the dataset is no table.
            Pass a data frame of pandas or polars, a pyarrow Table, or a dict of arrays.""")
    known = names_of(data)
    of(data).count(data)  # refuses columns of different lengths
    for name in (unit.name, *filter(None, [unit.order]), *unit.once):
        if name not in known:
            index = form is not None and name in frames.index_names(data)
            hint = " It is the index: use reset_index()." if index else ""
            raise DataError(f"""The dataset has no column {name!r}, which unit= names.{hint} Its columns are
                {known!r}.""")
    if form is not None and _columns.kind_of(_column(data, unit.name)) not in _KINDS:
        raise DataError(f"""The column {unit.name!r} has no identifiers: they are integers or strings. Convert
            it, as with astype(str).""")


def identifier_kind(data: Any, unit: Unit) -> str:
    """Return whether identifiers are a "number" or a "text" by the dtype of their column; "" if unknown."""
    if type(data) is dict:
        dtype = getattr(data[unit.name], "dtype", np.dtype(object))
        kind = {"i": "int", "u": "int", "f": "float", "U": "text"}.get(dtype.kind)
    else:
        kind = _columns.kind_of(_column(data, unit.name))
    return {"int": "number", "float": "number", "text": "text"}.get(str(kind), "")


# --- identifiers ------------------------------------------------------------------------------


def _column(data: Any, name: str) -> Any:
    """Return a column of a frame."""
    own = find(data)
    if not isinstance(own, Tabular):
        raise TypeError("Only frames have columns.")
    return own.columns(data)[own.names(data).index(name)]


def _identifiers(data: Any, unit: Unit) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return identifiers, and which of them are missing beyond NaN and None."""
    check_rows(data, unit)
    if type(data) is not dict:
        return _columns.values_of(_column(data, unit.name))
    found = data[unit.name]
    if isinstance(found, list):
        return np.fromiter(found, dtype=object, count=len(found)), None
    if found.ndim != 1:
        raise DataError(f"The column {unit.name!r} has several numbers in a row, which are no identifiers.")
    return found, None


def _coded(found: tuple[NDArray[Any], NDArray[Any] | None]) -> tuple[NDArray[np.intp], list[bytes]]:
    """Return the number of each row's identifier, and the identifiers; one after the last if there is none.

    What becomes of an identifier does not depend on the others: 7 and 7.0 are the same, since a column of
    integers has floats as soon as one is missing.
    """
    values, missing = found
    if values.dtype.kind in "iufUS":
        different, codes = np.unique(values, return_inverse=True)
        tokens = [_token(value) for value in different.tolist()]
    else:
        rows = values.tolist()
        texts = set(map(type, rows)) == {str}  # these are different if their tokens are, and compared faster
        rows = rows if texts else [_token(value) for value in rows]
        places = {each: at for at, each in enumerate(dict.fromkeys(rows))}
        codes = np.fromiter(map(places.__getitem__, rows), np.intp, len(rows))
        tokens = [_token(each) for each in places] if texts else [*places]
    names = list(dict.fromkeys(token for token in tokens if token))
    places_of = {token: at for at, token in enumerate(names)}
    last = len(names)
    found_codes = np.array([*(places_of.get(token, last) for token in tokens), last], dtype=np.intp)[codes]
    if missing is not None:
        found_codes[missing] = last
    return found_codes, names


def _token(value: Any) -> bytes:
    """Return an identifier as bytes that no other one has; none if it is no identifier. It never raises."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return b"i" + hex(int(value)).encode()
    if isinstance(value, str):
        return b"s" + str.encode(value, "utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"b" + bytes(value)
    return b"u" + value.bytes if type(value) is uuid.UUID else b""


def is_identifier(value: Any) -> bool:
    """Tell whether a value can identify a person."""
    return bool(_token(value))


def _digest(key: bytes, purpose: bytes, token: bytes) -> bytes:
    return hashlib.blake2b(token, key=key, person=purpose, digest_size=16).digest()


# --- rows -------------------------------------------------------------------------------------


def _selected(data: Any, names: list[Any]) -> Any:
    """Return the columns without the unit's."""
    if not names:
        raise DataError("The dataset has no column beside that of the unit.")
    if type(data) is dict:
        return {name: data[name] for name in names}
    return frames.select(data, names)


def _contents(rows: Any) -> list[tuple[NDArray[Any], NDArray[Any] | None]]:
    """Return the values of every column of rows, and which of them are missing."""
    if type(rows) is not dict:
        return [_columns.values_of(column) for column in frames.columns(rows)]
    parts = (np.fromiter(each, object, len(each)) if type(each) is list else each for each in rows.values())
    found: list[tuple[NDArray[Any], NDArray[Any] | None]] = [(np.asarray(part), None) for part in parts]
    return found


def _mixed(rows: Any, kept: NDArray[np.intp], key: bytes) -> tuple[Words, Words]:
    """Return a keyed hash of the content of some rows, of 64 bits, and another one for rows that are alike.

    The first is the same whatever the dtypes of columns are: a column of integers has floats as soon as one
    is missing. The second tells integers apart that are the same float.
    """
    found, exact = (np.zeros(len(kept), dtype=np.uint64) for _ in range(2))
    for name, (values, missing) in zip(names_of(rows), _contents(rows), strict=True):
        own = values[kept].reshape(len(kept), math.prod(values.shape[1:]))
        for part in range(own.shape[1]):
            salt = np.uint64(int.from_bytes(_digest(key, b"column", f"{part} {name}".encode())[:8]))
            words = _words(own[:, part], key)
            if missing is not None:
                words = np.where(missing[kept], _MISSING, words)
            found ^= _shuffled(words ^ salt)  # in any order of columns
            if own.dtype.kind in "iumM":
                exact ^= _shuffled(own[:, part].astype(np.int64).view(np.uint64) ^ salt)
    return found, exact


def _words(values: NDArray[Any], key: bytes) -> Words:
    """Return 64 bits for each value: the same for equal values, whatever the dtype of their column is."""
    with np.errstate(all="ignore"):
        if values.dtype.kind in "biuf":
            return _of_floats(values.astype(np.float64))
        if values.dtype.kind in "mM":
            unit = f"{values.dtype.kind}8[us]"
            return np.where(np.isnat(values), _MISSING, values.astype(unit).astype(np.int64).view(np.uint64))
    known: dict[Any, int] = {}
    listed = values.tolist()
    if set(map(type, listed)) == {str}:  # the same, faster
        known = {each: int.from_bytes(_digest(key, b"value", _text(each))[:8]) for each in set(listed)}
        return np.fromiter(map(known.__getitem__, listed), np.uint64, len(listed))
    found = np.empty(len(values), dtype=np.uint64)
    for at, value in enumerate(listed):
        number = _number(value)
        if number is not None:
            found[at] = _of_floats(np.array([number], dtype=np.float64))[0]
            continue
        moment = _moment(value)
        if moment is not None:
            found[at] = moment % 2**64
            continue
        token = _text(value)
        if token not in known:
            known[token] = int.from_bytes(_digest(key, b"value", token)[:8])
        found[at] = known[token]
    return found


def _of_floats(numbers: NDArray[np.float64]) -> Words:
    """Return the bits of floats; -0.0 is 0.0, and all that are not a number are missing."""
    words = (numbers + 0.0).view(np.uint64)
    return np.where(np.isnan(numbers), _MISSING, words)


def _number(value: Any) -> float | None:
    """Return a number as a float, and NaN for a missing value; None for what is no number."""
    if value is None or is_missing(value):
        return math.nan
    if not isinstance(value, bool | int | float | Decimal | np.number):
        return None
    try:
        return float(value)
    except (OverflowError, ValueError):
        return math.inf


def _moment(value: Any) -> int | None:
    """Return a date, a time or a duration in microseconds; None for everything else."""
    try:
        if isinstance(value, dt.timedelta):
            return value // dt.timedelta(microseconds=1)
        if isinstance(value, dt.datetime):
            zone = dt.UTC if value.tzinfo is not None else None
            return (value - dt.datetime(1970, 1, 1, tzinfo=zone)) // dt.timedelta(microseconds=1)
        if isinstance(value, dt.date):
            return (value - dt.date(1970, 1, 1)) // dt.timedelta(microseconds=1)
    except Exception:  # a class of the user's own
        return 0
    return None


def _text(value: Any) -> bytes:
    """Return what stands for a value that is no number: its text, or its class if it has none."""
    if isinstance(value, str):
        return str.encode(value, "utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return b"b" + bytes(value)
    name = type(value).__qualname__.encode()
    shown: Any = type(value).__repr__
    if shown is object.__repr__:  # which has an address in memory
        return b"o" + name
    try:
        return b"r" + repr(value).encode("utf-8", "surrogatepass")
    except Exception:  # an object may do anything if it is shown
        return b"o" + name


def _shuffled(words: Words) -> Words:
    """Return words with all bits mixed, one to one: the last step of the generator SplitMix64."""
    with np.errstate(over="ignore"):
        found = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Words = found ^ (found >> np.uint64(31))
    return mixed


def ranks_of(values: NDArray[Any], missing: NDArray[Any] | None) -> NDArray[np.intp]:
    """Return the rank of each row by a column: equal values have one rank, missing ones come last.

    Numbers and dates are ordered as such, also among objects. Then come strings, and then everything else.
    """
    if values.dtype.kind not in "biufmM":
        keys = [_sortable(value) for value in values.tolist()]
        ranked = {each: at for at, each in enumerate(sorted(set(keys)))}
        return np.array([ranked[each] for each in keys], dtype=np.intp)
    with np.errstate(all="ignore"):
        moments = values.dtype.kind in "mM"
        same = values.astype(f"{values.dtype.kind}8[us]" if moments else np.float64)
    different, found = np.unique(same, return_inverse=True)
    absent = np.isnat(same) if moments else np.isnan(same)
    absent = absent if missing is None else absent | missing
    return np.where(absent, len(different), found)


def _sortable(value: Any) -> tuple[int, float, bytes]:
    """Return a value as one that can be compared with all others: numbers and dates, strings, all others."""
    moment = _moment(value)
    number = _number(value) if moment is None else moment
    if number is None:
        return (1 if isinstance(value, str) else 2), 0.0, _text(value)
    return (3, 0.0, b"") if number != number else (0, number, b"")


def _once(rows: Any, order: NDArray[np.intp], counts: Counts, unit: Unit) -> Any:
    """Return rows in their order; columns that a person has once have the value of the person's first row."""
    own = of(rows)
    taken = own.take(rows, order)
    if not unit.once:
        return own.fresh(taken)
    starts = np.cumsum(counts) - counts
    first = own.take(taken, np.repeat(starts, counts))
    if type(rows) is dict:
        return {name: (first if name in unit.once else taken)[name] for name in taken}
    for name in unit.once:
        at = frames.names(taken).index(name)
        taken = own.with_column(taken, at, frames.columns(first)[at])  # type: ignore[attr-defined]
    return own.fresh(taken)
