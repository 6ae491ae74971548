"""A dataset that somebody changed in place is noticed, whatever was changed."""

import numpy as np
import pandas as pd
import polars as pl

from privatize.calibration.evaluators.unchanged import Unchanged
from tests.cases import for_each

ARRAY = np.array([3.0, np.nan, 1.0])
TIMES = pd.DataFrame({"t": pd.date_range("2020", periods=2), "k": pd.array([1, None], dtype="Int64")})
TIMES["z"] = TIMES["t"].dt.tz_localize("UTC")
CODES = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": pd.Categorical(["x", "y"])})
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})


def set_shape(data):
    """Change the shape in place."""
    data.shape = (3, 1)


CHANGES = {
    "value": (ARRAY, lambda data: data.__setitem__(0, 5.0)),
    "sign of zero": (np.zeros(2), lambda data: data.__setitem__(0, -0.0)),
    "order": (ARRAY, lambda data: data.sort()),
    "shape": (ARRAY, set_shape),
    "flags": (ARRAY, lambda data: data.setflags(write=False)),
    "cell": (FRAME, lambda data: data.__setitem__("a", 0.0)),
    "column": (FRAME, lambda data: data.__setitem__("c", 0.0)),
    "name": (FRAME, lambda data: data.columns.set_names("n", inplace=True)),
    "attrs": (FRAME, lambda data: data.attrs.update(seen=True)),
    "index": (FRAME, lambda data: setattr(data, "index", [5, 6])),
    "large": (np.zeros((10**4, 2)), lambda data: data.__setitem__((7, 1), -0.0)),
    "large, narrow": (np.zeros(10**5, dtype=np.int8), lambda data: data.__setitem__(7, 1)),
    "time": (TIMES, lambda data: data.__setitem__("t", TIMES["t"][::-1].to_numpy())),
    "missing": (TIMES, lambda data: data.__setitem__("k", pd.array([None, 2], dtype="Int64"))),
    "zone": (TIMES, lambda data: data.__setitem__("z", TIMES["t"].dt.tz_localize("CET"))),
    "masked cell": (TIMES, lambda data: data["k"].array.__setitem__(0, 5)),
    "category": (CODES, lambda data: data["c"].array.__setitem__(0, "y")),
    "block": (CODES, lambda data: data._mgr.blocks[0].values.__setitem__((1, 0), 9.0)),
    "label": (CODES, lambda data: setattr(data.columns, "_data", pd.Index(["c", "a", "z"]).array)),
    "exchanged": (CODES, lambda data: data.isetitem(0, data["b"])),
    "series": (FRAME["a"], lambda data: setattr(data, "name", "b")),
    "polars": (pl.DataFrame({"a": [1, 2]}), lambda data: data.insert_column(0, pl.Series("b", [1, 2]))),
    "objects": (np.array(["a", "b"], dtype=object), lambda data: data.__setitem__(0, "c")),
    "cells": (np.array([["a"], []], dtype=object), lambda data: data[0].append("c")),
    "record": ([{"a": 1}], lambda data: data[0].update(a=2)),
    "keys": ([{"a": 1, "b": 1}], lambda data: data[0].update(a=data[0].pop("a"))),
    "inside": ([{"a": [1]}], lambda data: data[0]["a"].append(2)),
    "records": ([{"a": 1}, {"a": 1}], lambda data: data.reverse()),
    "dict": ({"x": ARRAY, "y": ARRAY}, lambda data: data.update(x=data.pop("x"))),
    "part": ((ARRAY, [1, 2, 3]), lambda data: data[1].reverse()),
}


@for_each("data, change", CHANGES.values(), ids=list(CHANGES))
def test_a_change_is_noticed(data, change):
    """Otherwise a member of a catalogue would be measured on what another one has left of its data."""
    own = Unchanged(data).copy()
    before = Unchanged(own)
    assert before.same()
    change(own)
    assert not before.same()
    assert Unchanged(before.copy()).same()


def test_a_frame_is_made_again_only_if_it_is_needed():
    """A catalogue on data frames would take longer, or go on with what one of its members has changed."""
    made = []
    data = FRAME.copy()
    before = Unchanged(data, lambda: made.append(FRAME.copy()) or made[0])
    assert before.same()
    data["a"] = 0.0
    assert not before.same()
    assert not made
    own = before.copy()
    own["a"] = 7.0
    pd.testing.assert_frame_equal(before.copy(), FRAME)
    assert len(made) == 1


def test_a_series_without_a_name_can_be_compared():
    """Every member of a catalogue would get a copy of its own, which takes longer."""
    assert Unchanged(pd.Series([1.0, 2.0])).same()
