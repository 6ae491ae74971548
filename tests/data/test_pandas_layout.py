"""Parts of pandas frames share nothing with other frames, so a function cannot change what others see."""

import contextlib
import copy

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.data import records
from privatize.errors import PrivatizeError
from tests.data.drawn_frames import COLUMNS, FULL, LAYOUTS, PEOPLE, ZONE, pd


@pytest.mark.parametrize("series", [True, False])
def test_objects_in_a_column_are_copied_too(series):
    """A list in a cell can be changed in place like everything else."""
    data = pd.DataFrame({"o": pd.Series([[0], [1]], dtype=object)})
    drawn = copy.deepcopy(data)
    made = records.convert(data["o"], drawn["o"], None) if series else records.convert(data, drawn, None)
    (made if series else made["o"])[0].append(9)
    assert data["o"].tolist() == [[0], [1]]


def test_the_head_of_a_frame_shares_nothing_that_can_be_written():
    """Without a copy there must be copying on write, also of series, strings and cells."""
    frame = PEOPLE.draw(10, np.random.default_rng(1))
    before = frame.copy()
    for change in (
        lambda f: f.__setitem__("age", 0.0),
        lambda f: f.isetitem(0, 1.0),
        lambda f: f.loc.__setitem__((0, "age"), 7.0),
        lambda f: f.pop("age"),
        lambda f: f.insert(0, "first", 1),
    ):
        change(records.head(frame, 5))
        pd.testing.assert_frame_equal(frame, before)
    series = frame["age"]
    head = records.head(series, 5)
    head.iloc[0] = -1.0
    assert series.equals(before["age"])
    lists = pd.DataFrame({"a": [[1], [2], [3]]})
    records.head(lists, 2)["a"].iloc[0].append(9)
    assert lists["a"].tolist() == [[1], [2], [3]]
    one = pd.Series([[1], [2]])
    records.head(one, 1).iloc[0].append(9)
    assert one.tolist() == [[1], [2]]


def test_cells_of_mixed_columns_are_copied():
    """One column of lists among columns of numbers is found, whichever block it is in."""
    mixed = pd.DataFrame({"x": [1.0, 2.0], "cells": [{"a": 1}, {"a": 2}], "t": ["a", "b"]})
    for made in (records.head(mixed, 2), records.copy(mixed), records.take(mixed, np.array([0, 1]))):
        made["cells"].iloc[0]["a"] = 99
        assert mixed["cells"].tolist() == [{"a": 1}, {"a": 2}]


def test_rows_share_nothing():
    """What the function writes into one neighbour must not show in the other, nor in the private data."""
    for layout in ("by rows", "by columns", "a part", "one by one", "mixed"):
        data = LAYOUTS[layout]()
        before = data.copy()
        rows = records.take(data, np.arange(5))
        rows.iloc[:, 0] = 99.0
        rows.loc[1, "b"] = 77
        rows.index.name = "mine"
        if (
            int(pd.__version__.partition(".")[0]) >= 3
        ):  # before, names of columns are shared among all that is taken
            rows.columns.name = "mine"
        pd.testing.assert_frame_equal(data, before)


PARTS = {
    "floats": FULL[["f"]].assign(g=0.5),
    "floats of two sizes": FULL[["f"]].assign(g=np.float32(0.5), h=FULL["f"]),
    "mixed": FULL[["i", "f", "b"]].assign(j=7, g=0.5, a=pd.Series([[1], [2], [3]], dtype=object)),
    "dates": FULL[["d", "z", "t"]].assign(e=FULL["d"], y=FULL["z"].dt.tz_convert(ZONE)),
    "categories": FULL[["c"]].assign(o=pd.Categorical([2, None, 1], ordered=True)),
    "strings": FULL[["s", "S"]].assign(
        o=FULL["s"].astype(object), p=pd.array(["q", None, "r"], dtype="string[pyarrow]")
    ),
    "missing values": FULL[["I", "B"]].assign(a=pd.array([1, None, 3], dtype="int64[pyarrow]")),
    "all": FULL,
    "no columns": FULL[[]],
    "an index of dates": FULL.set_index("z"),
    "an index of two levels": FULL.set_index(["i", "S"]),
    "integers as names": FULL.set_axis(range(FULL.shape[1]), axis=1),
    "names of two levels": FULL.set_axis(
        pd.MultiIndex.from_product([["x"], FULL.columns], names=["where", "what"]), axis=1
    ),
    "a name of the names": FULL.rename_axis("heads", axis=1),
}


def visible(frame):
    """Return what public attributes show of a frame besides its values."""
    arrays = [frame.to_numpy(), *(own.to_numpy() for _, own in frame.items())]
    memory = [(a.dtype, a.strides, str(a.flags), getattr(a.base, "shape", None)) for a in arrays]
    labels = [(type(own), own.dtype, own.names, own.tolist()) for own in (frame.index, frame.columns)]
    return repr([list(frame.dtypes), memory, labels, frame.attrs, frame.flags.allows_duplicate_labels])


def assert_the_same_without_it(make, monkeypatch):
    """Check that frames are the same if pandas has no `_from_arrays`, and return those."""
    usual = make()
    with monkeypatch.context() as without:
        without.delattr(pd.DataFrame, "_from_arrays", raising=False)
        found = make()
    for one, other in zip(usual, found, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
        assert visible(one) == visible(other)
    return found


@pytest.mark.parametrize("name", PARTS)
def test_frames_are_the_same_without_pandas_private_constructor(name, monkeypatch):
    """With a pandas that drops it, a function would get other frames than estimates were measured on."""
    data = PARTS[name]
    before, drawn = copy.deepcopy(data), records.head(data, 2)

    def make():
        taken = [records.fresh(data), records.fresh(records.head(data, 0)), *records.pair(data, 0, 2)]
        return [*taken, records.convert(data, drawn)]

    for made in assert_the_same_without_it(make, monkeypatch):
        made.columns.names = ["renamed"] * made.columns.nlevels
        for _, own in made.items() if len(made) else ():
            with contextlib.suppress(ValueError):  # some arrays are read-only
                own.array[0] = own.array[1]
    pd.testing.assert_frame_equal(data, before)


@pytest.mark.parametrize("called", [["pay", "kg"], *([name] for name in COLUMNS), list(COLUMNS)], ids=str)
def test_drawn_frames_are_the_same_without_pandas_private_constructor(called, monkeypatch):
    """With a pandas that drops it, the same seed would draw another dataset."""
    P = samplers.table({name: COLUMNS[name] for name in called})

    def make():
        drawn = [P.draw(n, np.random.default_rng(4)) for n in (0, 1, 6)]
        return [*drawn, *records.pair(drawn[2], 0, 5), records.convert(drawn[2], drawn[1], P.support)]

    assert_the_same_without_it(make, monkeypatch)


def write_labels(labels, value):
    """Write into an index in every way that pandas allows."""
    for take in (
        lambda: labels.array,
        lambda: labels.values,
        lambda: labels.to_numpy(),
        lambda: np.asarray(labels),
    ):
        with contextlib.suppress(ValueError, TypeError):
            take()[0] = value


@pytest.mark.filterwarnings("ignore:.*infer_string.*")  # the option goes away, and such names with it
@pytest.mark.parametrize("infer", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_what_a_function_writes_into_the_names_of_columns_stays_there(infer, several):
    """A private value would show in the names of every frame that is drawn later in the process."""
    first = f"height{infer}{several}"  # names that no other test has drawn, because they are cached
    parts = {first: samplers.uniform(0, 1)} | ({"weight": samplers.uniform(0, 1)} if several else {})

    def function(frame):
        value = float(frame.iloc[:, 0].mean())
        write_labels(frame.columns, f"{frame.iloc[0, 0]:.3f}")
        write_labels(frame.mean().index, f"{frame.iloc[0, 0]:.3f}")
        return value

    with pd.option_context("future.infer_string", infer):
        P = samplers.table(parts)
        data = P.draw(20, np.random.default_rng(0))
        private = privatize(epsilon=1, gamma=0.3, sampler=P, seed=1, store=None)(function)
        for _ in range(2):
            with contextlib.suppress(PrivatizeError):  # it may well be refused
                private(data)
            assert list(P.draw(2, np.random.default_rng(1)).columns) == list(parts)
            assert list(data.columns) == list(parts)
            assert list(private.calibrator.template(private.definition).records().columns) == list(parts)
