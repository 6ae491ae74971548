"""Compare the schema of private data with that of P's draws, and say what to do if they do not fit."""

from dataclasses import replace
from typing import Any

from privatize.data import schema as schemas
from privatize.data.schema import AlignedSchema, ArraySchema, FrameSchema, ListSchema, PersonsSchema, Schema
from privatize.data.support import is_fixed, split
from privatize.data.units import identifiers

# Kinds of columns that can be converted to each other.
_NUMBERS, _STRINGS = ("int", "float"), ("text", "category", "object")
_CONVERT = "Convert it, or have the sampler draw what it is."
_FIXES = {
    "category": "Its values must be of the same type: convert it with astype, or give P values of that type.",
    "bool": "Convert it to booleans (astype('boolean') where some are missing).",
    "date": "Convert it to dates of the same time zone (pd.to_datetime(...)), or give dates(...) its tz=.",
}


def mismatch(own: Schema, drawn: Schema, support: Any) -> str | None:
    """Say how the private data's schema differs from what P draws, and what to do; None if it fits.

    Examples
    --------
    >>> import numpy as np
    >>> mismatch(ArraySchema(np.dtype(int), ()), ArraySchema(np.dtype(float), ()), None)
    >>> mismatch(ArraySchema(np.dtype(float), (2,)), ArraySchema(np.dtype(float), ()), None)
    'The dataset is an array of float64 with records of shape (2,), but the sampler draws an array of ...
    """
    if isinstance(own, PersonsSchema) and isinstance(drawn, PersonsSchema) and own.unit == drawn.unit:
        return _persons_mismatch(own, drawn, support)
    if isinstance(own, AlignedSchema) and isinstance(drawn, AlignedSchema):
        if own.keys == drawn.keys:
            return _parts_mismatch(own, drawn, support)
    elif isinstance(own, FrameSchema) and isinstance(drawn, FrameSchema) and own.form == drawn.form:
        return _frames_mismatch(own, drawn)
    if isinstance(own, ArraySchema) and isinstance(drawn, ArraySchema) and _matches(own, drawn, support):
        return None
    if isinstance(own, ListSchema) and isinstance(drawn, ListSchema):
        return None
    return _other_container(own, drawn)


def _other_container(own: Schema, drawn: Schema) -> str:
    if str(own) == str(drawn):
        return f"""The dataset is {own} with longer strings than the sampler can draw. Have the sampler draw
            strings of the longest width that may occur."""
    width = advice = ""
    if isinstance(own, FrameSchema) and isinstance(drawn, ArraySchema):
        width = f" Its records have {len(own.columns)} columns; P's would have to be of that width."
    if isinstance(own, ListSchema) and isinstance(drawn, FrameSchema):
        advice = " For a list of dicts use table(..., frame='records')."
    elif isinstance(drawn, AlignedSchema) and drawn.names is None:
        advice = " If the dataset is several arguments, name them: data=('X', 'y')."
    return f"""The dataset is {own}, but the sampler draws {drawn}.{width} Calibration and release must run on
        the same kind of data: convert the dataset, or have the sampler draw what the dataset is.{advice}"""


def _persons_mismatch(own: PersonsSchema, drawn: PersonsSchema, support: Any) -> str | None:
    ends = {own.unit.name: None, **support} if isinstance(support, dict) else support
    problem = mismatch(own.inner, drawn.inner, ends)
    return problem and problem.replace("table(..., frame=", "people(..., frame=")


def _parts_mismatch(own: AlignedSchema, drawn: AlignedSchema, support: Any) -> str | None:
    for key, *part in zip(own.keys, own.parts, drawn.parts, split(support, own.keys), strict=True):
        problem = mismatch(*part)
        if problem is not None:
            what = f"Part {key + 1} of the dataset, which is a tuple," if isinstance(key, int) else ""
            return f"{what or f'The part {key!r} of the dataset'} does not fit. {problem}"
    return None


def _matches(own: ArraySchema, drawn: ArraySchema, support: Any) -> bool:
    """Tell whether arrays differ in nothing but a dtype that can be converted to what P draws."""
    if replace(own, dtype=drawn.dtype) != drawn:
        return False
    if own.to_json() == drawn.to_json():
        return True
    if own.tag == "tensor":
        return not {own.dtype[0], drawn.dtype[0]} & {"c", "q"} and drawn.dtype != "bool"
    one, other = own.dtype, drawn.dtype
    if other.kind in "UO" and one.kind in "UO" and is_fixed(support):
        return True  # whatever P does not draw is mapped to what it draws
    if {one.kind, other.kind} in ({"U"}, {"S"}):  # shorter strings fit where P draws longer ones
        return bool(one.itemsize <= other.itemsize)
    # Numbers may differ in kind: the private data is cast to what P draws.
    return (one.kind == other.kind and one.kind in "mM") or (one.kind in "biuf" and other.kind in "iuf")


def _frames_mismatch(own: FrameSchema, drawn: FrameSchema) -> str | None:
    if own.library != drawn.library:
        same = f"Have it draw the same: table(..., frame={own.library!r})."
        fix = same if own.form == "frame" else _CONVERT
        return f"The dataset is {own}, but the sampler draws {drawn}. {fix}"
    if own.form == "frame" and (problem := _names_mismatch(own, drawn)) is not None:
        return problem
    for one, other in zip(own.columns, drawn.columns, strict=True):
        if not _column_matches(one, other):
            column = f"The column {one.name!r}" if own.form == "frame" else "The dataset"
            fix = _FIXES.get(other.kind, _CONVERT)
            return f"{column} is {one.public_dtype}, but the sampler draws {other.dtype}. {fix}"
    if own.index != drawn.index:
        return f"""The dataset has {_index_in_words(own)}, and the sampler draws {_index_in_words(drawn)}.
            Drop the index with reset_index(drop=True); if the function needs it, make it a column with
            reset_index(), or have the sampler draw it: table(...).map(lambda d: d.set_index(...))."""
    return None


def _column_matches(own: schemas.ColumnSchema, drawn: schemas.ColumnSchema) -> bool:
    if own.zone != drawn.zone:
        return False
    if drawn.kind == "category":  # of numbers, or of strings
        numeric = own.dtype == "category of numbers" if own.kind == "category" else own.kind in _NUMBERS
        return (numeric or own.kind in _STRINGS) and numeric == (drawn.dtype == "category of numbers")
    if drawn.kind in _NUMBERS:
        return own.kind in (*_NUMBERS, "bool")
    if drawn.kind in _STRINGS:
        return own.kind in _STRINGS
    return own.dtype == drawn.dtype or own.kind == drawn.kind != "other"


def _index_in_words(schema: FrameSchema) -> str:
    index = schema.index
    if index is None:
        return "no index except row numbers"
    named = f" named {', '.join(index.names)}" if index.names != ("None",) else ""
    return f"an index ({index.kind}) of {', '.join(map(schemas.bare, index.dtypes))}{named}"


def _names_mismatch(own: FrameSchema, drawn: FrameSchema) -> str | None:
    """Say how the names of the columns differ from those that P draws; None if they do not."""
    ours, theirs = ([column.name for column in schema.columns] for schema in (own, drawn))
    more = [name for name in ours if name not in theirs]
    less = [name for name in theirs if name not in ours]
    if less:
        advice = _advice(less, more, own)
        return f"The dataset lacks the columns {less!r} that the sampler draws{advice}"
    if more:
        hint = ""
        for found in identifiers(more)[:1]:
            hint = f""" {found!r} looks as if it identified people: if a person may have several rows, keep
                it, and use samplers.people(P, unit={found!r}, rows=...)."""
        return f"""The dataset has the columns {more!r}, which the sampler does not draw. Pass only
            data[{theirs!r}], or add them to the sampler.{hint}"""
    if ours != theirs:
        return f"""The dataset's columns are {ours!r}, and the sampler draws them in the order {theirs!r}.
            Pass data[{theirs!r}]."""
    return None


def _advice(less: list[Any], more: list[Any], own: FrameSchema) -> str:
    """Return what to do about columns that the dataset lacks."""
    if set(map(str, less)) <= set(map(str, more)):
        return ": its names are not strings. Rename them: data.columns = data.columns.astype(str)."
    indexed = [name for name in less if own.index is not None and name in own.index.names]
    if indexed:
        return f": {indexed[0]!r} is the index. Pass data.reset_index()."
    if more:
        rename = f"data.rename(columns={{{more[0]!r}: {less[0]!r}}})"
        return f", and has {more!r}, which it does not draw. Rename them ({rename}), or change P."
    return ". Draw only columns that it has (as in sampler=P[['age', 'sex']]), or add the others."
