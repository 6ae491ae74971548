"""Frames of pandas are laid out in private data as in P's draws, and shortcuts change nothing."""

import contextlib
import copy

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.data import columns, frames, pandas_blocks, pandas_frames, records
from privatize.data.support import Maybe, OneOf
from privatize.data.tabular import Tabular
from privatize.errors import DataError, PrivatizeError
from tests.cases import for_each
from tests.data.drawn_frames import (
    COLUMNS,
    DAYS,
    FULL,
    LAYOUTS,
    LIBRARIES,
    PEOPLE,
    TEXT,
    ZONE,
    dtype_of,
    framed,
    inf,
    nan,
    pd,
)
from tests.data.layouts import OF_EVERY_KIND, UNIT, check, layouts, of_array

NUMBER = 918273.6450912


def values_of(frame, at=0):
    """Return a column of a frame as Python's values."""
    return columns.narwhals(frames.columns(frame)[at]).to_list()


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


def converted(data, sampler, seed=0):
    """Convert data to a sampler's dtypes and support."""
    return records.convert(data, drawn_by(sampler, seed), sampler.support)


@pytest.mark.parametrize("library", LIBRARIES)
def test_ordered_categories_stay_ordered(library):
    """A function that compares categories would run on another dtype than in calibration."""
    P = samplers.table(c=samplers.categorical(["low", "high"], ordered=True), frame=library)
    made = converted(
        framed(library, "c", pd.Series(["high", TEXT]) if library == "pandas" else ["high", TEXT]), P
    )
    assert dtype_of(made) == dtype_of(drawn_by(P))
    assert values_of(made) == ["high", "low"]


@pytest.mark.parametrize("index", [[5, 3, 9], [0, 0, 0], range(7, 10)])
def test_row_numbers_are_not_part_of_the_records(index):
    """Row numbers that are left after a filter would reveal how many rows were dropped."""
    P = samplers.table(x=samplers.uniform(0, 1))
    data = pd.DataFrame({"x": [0.1, 0.2, 0.3]}, index=index)
    for support in (P.support, None):
        made = records.convert(data, drawn_by(P), support)
        assert made.index.identical(pd.RangeIndex(3))
        assert made["x"].tolist() == [0.1, 0.2, 0.3]


def test_only_the_labels_of_an_index_are_taken():
    """A frequency, and labels of rows that were dropped, are not part of any record."""
    P = samplers.table(d=DAYS, x=samplers.uniform(0, 1)).map(lambda frame: frame.set_index("d"))
    days = pd.date_range("2021-01-01", periods=4, name="d").astype(drawn_by(P).index.dtype)
    made = records.convert(pd.DataFrame({"x": 0.5}, index=days), drawn_by(P), None)
    assert made.index.tolist() == days.tolist()
    assert made.index.freq is None
    Q = samplers.table(a=samplers.choice(["u", "v"]), b=samplers.integers(0, 9), x=samplers.uniform(0, 1))
    Q = Q.map(lambda frame: frame.set_index(["a", "b"]))
    data = pd.DataFrame({"a": ["u", "v", TEXT], "b": [1, 2, 3], "x": 0.5}).set_index(["a", "b"]).iloc[:2]
    made = records.convert(data, drawn_by(Q), None)
    assert TEXT not in made.index.levels[0]


def test_attrs_of_a_frame_are_left_out():
    """attrs is not part of any record: the function would see what it was not calibrated on."""
    data = pd.DataFrame({"x": [1.0, 2.0]})
    data.attrs["mean"] = NUMBER
    for support in ({"x": (0, 1)}, None):
        made = records.convert(data, pd.DataFrame({"x": [0.5, 0.5]}), support)
        assert made.attrs == {} and made["x"].attrs == {}


def mean(data):
    return float(np.asarray(data).mean())


INDEXES = {
    "numbers": lambda n: pd.RangeIndex(n),
    "other numbers": lambda n: pd.Index(np.arange(n) * 3 + 5),
    "named": lambda n: pd.Index(np.arange(n), name="id"),
    "strings": lambda n: pd.Index(list("pqrst")[:n]),
}


@for_each("index", INDEXES)
@for_each("layout", LAYOUTS)
def test_rows_are_those_that_pandas_takes(layout, index):
    """A neighbour whose rows, dtypes or rounding differ from pandas' own would be another dataset."""
    data = LAYOUTS[layout]()
    data.index = INDEXES[index](len(data))
    data.attrs = {"source": "here"}
    for attrs in ({"source": "here"}, {}):
        data.attrs = attrs
        for positions in ([], [0], [4, 0, 0, 3], [-1, 1], [4, 3, 2, 1, 0]):
            at = np.array(positions, dtype=np.intp)
            if at.size and not (-len(data) <= at.min() and at.max() < len(data)):
                with pytest.raises(IndexError):
                    records.take(data, at)
                continue
            expected = data.take(at)
            if index in ("numbers", "other numbers"):
                expected = expected.reset_index(drop=True)
            found = records.take(data, at)
            pd.testing.assert_frame_equal(found, expected, check_exact=True)
            assert found.attrs == expected.attrs == attrs
            with np.errstate(invalid="ignore"):
                ours, theirs = (d.sum(numeric_only=True).tolist() for d in (found, expected))
            assert np.array_equal(ours, theirs, equal_nan=True)


def test_the_flag_against_duplicate_labels_stays():
    """A flag that the user has set holds for the rows that are taken, too."""
    data = LAYOUTS["by rows"]().set_flags(allows_duplicate_labels=False)
    assert not records.take(data, np.array([0, 1])).flags.allows_duplicate_labels


SUPPORTS = {
    "none": None,
    "bounds": (-1.0, 2.5),
    "integer bounds": (0, 3),
    "from below": (0.0, inf),
    "or missing": Maybe((-1.0, 2.5)),
    "anything or missing": Maybe(None),
    "some": OneOf((0, 1, 7), unknown=7),
    "some or missing": Maybe(OneOf((0, 1, 7), unknown=7)),
}
VALUES = {
    "float64": [1.5, nan, inf, -inf, -0.0],
    "float32": [1.5, nan, 3e38, -inf, -0.0],
    "int64": [0, 1, -5, 2**62, -(2**63)],
    "int8": [0, 1, -5, 127, -128],
    "uint64": [0, 1, 7, 2**63, 2**64 - 1],
    "bool": [True, False, True, True, False],
    ">f8": [1.5, nan, inf, 0.0, 1.0],
    "float16": [1.5, nan, inf, 0.0, 1.0],
    "Int64": [0, 1, None, 7, -5],
    "Float64": [0.5, 1, None, 7, -5],
    "int64[pyarrow]": [0, 1, None, 7, -5],
}


def column_as(dtype):
    """Return a column of numbers of a dtype."""
    if dtype[0] in ">" or dtype == "float16":
        return pd.Series(np.array(VALUES[dtype], dtype=dtype))
    return pd.Series(pd.array(VALUES[dtype], dtype=dtype))


@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("drawn", VALUES)
def test_numbers_are_the_same_without_the_fast_path(drawn, support, monkeypatch):
    """The answer must not depend on whether pandas stores the private numbers in numpy arrays."""
    every = [name for name in VALUES if drawn != "bool" or "bool" in name]
    ends = {"x": SUPPORTS[support], "y": SUPPORTS[support]}
    template = pd.DataFrame({"x": column_as(drawn), "y": column_as(drawn)}).iloc[:2]

    def converted(own):
        data = pd.DataFrame({"x": column_as(own), "y": column_as(own)}).set_axis([5, 3, 1, 0, 2])
        try:
            return records.convert(data, template, ends)
        except DataError as error:  # an unusual dtype
            return str(error)

    with np.errstate(all="ignore"):
        fast = [converted(own) for own in every]
        monkeypatch.setattr(pandas_frames, "is_quick", lambda *_: False)
        slow = [converted(own) for own in every]
    for one, other in zip(fast, slow, strict=True):
        if isinstance(other, str):
            assert one == other
            continue
        pd.testing.assert_frame_equal(one, other, check_exact=True)
        for name in ("x", "y"):
            if isinstance(one[name].dtype, np.dtype):
                assert one[name].to_numpy().tobytes() == other[name].to_numpy().tobytes()


CHOICES = {
    "strings": OneOf(("F", "M"), unknown="M"),
    "strings or missing": Maybe(OneOf(("F", "M"), unknown="M")),
    "numbers": OneOf((0, 1, 7), unknown=7),
    "booleans": OneOf((False, True), unknown=False),
    "anything or missing": Maybe(None),
    "none": None,
}
LISTED = {
    "text": lambda: pd.Series(["F", "x", None, "M", "F", "F"]),
    "text of pyarrow": lambda: pd.Series(["F", "x", None, "M", "F", "F"], dtype="string[pyarrow]"),
    "python text": lambda: pd.Series(["F", "x", None, "M", "F", "F"], dtype="string[python]"),
    "objects": lambda: pd.Series(["F", 1, None, True, 1.0, "F"], dtype=object),
    "categories": lambda: pd.Series(pd.Categorical(["F", "x", None, "M", "F", "F"])),
    "unused categories": lambda: pd.Series(pd.Categorical(["F", "M", None] * 2, categories=["a", "M", "F"])),
    "many categories": lambda: pd.Series(pd.Categorical([*"FMFMFM"], categories=[*"abcdefghFM"])),
    "numbers": lambda: pd.Series(pd.Categorical([0, 1, 7, 8, 1, 0])),
    "booleans": lambda: pd.Series(pd.Categorical([True, False, None, True, False, True])),
    "mixed": lambda: pd.Series(pd.Categorical([1, "F", True, None, "1", 1])),
}


@pytest.mark.parametrize("support", CHOICES)
@pytest.mark.parametrize("drawn", ["text", "objects", "categories", "numbers", "booleans"])
def test_each_distinct_value_is_converted_as_every_single_one(drawn, support, monkeypatch):
    """Private strings would become other ones than those that P draws, because they are converted faster."""
    template = pd.DataFrame({"x": LISTED[drawn]()}).iloc[:2]

    def converted(own):
        try:
            return records.convert(pd.DataFrame({"x": LISTED[own]()}), template, {"x": CHOICES[support]})
        except (DataError, ValueError, TypeError) as error:
            return type(error)

    fast = [converted(own) for own in LISTED]

    monkeypatch.setattr(pandas_frames, "distinct", lambda *_: None)
    for one, other in zip(fast, [converted(own) for own in LISTED], strict=True):
        if isinstance(other, type):
            assert one is other
        else:
            pd.testing.assert_frame_equal(one, other)
            assert [type(value) for value in one["x"]] == [type(value) for value in other["x"]]


@pytest.mark.parametrize("domain", ["clip", "as-is"])
def test_a_column_may_be_called_name(domain):
    """A column called "name" is the private one, and not what P drew for it."""
    P = samplers.table(name=samplers.uniform(0, 1), age=samplers.uniform(0, 100))
    data = P.draw(6, np.random.default_rng(2))
    made = records.convert(data, P.draw(2, np.random.default_rng(3)), P.support if domain == "clip" else None)
    pd.testing.assert_frame_equal(made, data)

    @privatize(epsilon=1e5, gamma=0.2, sampler=P, domain=domain, store=None, seed=1)
    def mean(d):
        return float(d["name"].mean())

    assert mean(data) == pytest.approx(data["name"].mean(), abs=1e-4)  # 60 times the scale of the noise


@for_each("called", [["age", "pay"], ["pay"], ["pay", "kg"], ["pay", "ok"], ["age", "size"], list(COLUMNS)])
def test_a_drawn_frame_is_its_columns_side_by_side(called):
    """Columns that share an array have the values and the dtypes that they have alone."""
    P = samplers.table({name: COLUMNS[name] for name in called})
    for n in (0, 1, 50):
        drawn = frames.make("pandas", table := P.drawn(n, np.random.default_rng(4)))
        pd.testing.assert_frame_equal(
            drawn,
            pd.DataFrame(
                {
                    name: pandas_frames.PandasFrames("frame").from_column(column)
                    for name, column in table.items()
                }
            ),
        )


N = 12
with contextlib.suppress(ImportError):
    import pandas as pd
with contextlib.suppress(ImportError):
    pass
with contextlib.suppress(ImportError):
    pass


def of_index(index):
    return (
        type(index).__name__,
        str(index.dtype),
        list(index.names),
        str(getattr(index, "freq", None)),
        [[str(value) for value in level] for level in getattr(index, "levels", [])] and index.nlevels,
    )


def of_pandas(d):
    arrays = [d.to_numpy()] if d.ndim == 1 else [d.to_numpy(), *(own.to_numpy() for _, own in d.items())]
    arrow = [own.array for own in ([d] if d.ndim == 1 else [c for _, c in d.items()])]
    return (
        type(d).__name__,
        [of_array(array)[2:7] for array in arrays],
        sorted((str(block.dtype), block.shape) for block in d._mgr.blocks),
        [
            (chunks.num_chunks, chunks.chunk(0).offset)
            for chunks in (a.__arrow_array__() for a in arrow if type(a).__name__.startswith("Arrow"))
        ],
        of_index(d.index),
        None if d.ndim == 1 else (of_index(d.columns), list(d.columns)),
        d.attrs,
        d.flags.allows_duplicate_labels,
        [repr(own.dtype) for own in ([d] if d.ndim == 1 else [c for _, c in d.items()])],
        getattr(d, "name", None),
    )


def odd_frame(d):
    """Return the same rows with everything else changed that can be."""
    parts = [d.iloc[::2, at : at + 1].sort_index(ascending=False) for at in range(d.shape[1])]
    rest = [d.iloc[1::2, at : at + 1] for at in range(d.shape[1])]
    made = pd.concat([pd.concat([a, b]) for a, b in zip(parts, rest, strict=True)], axis=1)
    made.index = range(5, 5 + 3 * len(made), 3)
    made.columns = list(made.columns)
    made.attrs = {"secret": 1}
    return made.set_flags(allows_duplicate_labels=False)


def odd_dtypes(d):
    made = odd_frame(d)
    kinds = {"x": "float32", "y": "Float64", "k": "Int16", "s": "category", "c": object}
    return made.astype({name: kind for name, kind in kinds.items() if name in made})


def reordered_categories(d):
    made = odd_frame(d)
    made["c"] = pd.Categorical(made["c"].astype(str), categories=["M", "Z", "F"], ordered=True)
    return made


@pytest.mark.skipif("pd" not in globals(), reason="pandas is not installed")
class TestPandas:
    @pytest.mark.parametrize("columns", ["xy", "xyk", "xyksct", "s"])
    @pytest.mark.parametrize("change", [lambda d: d, odd_frame, odd_dtypes], ids=["same", "odd", "dtypes"])
    def test_frames(self, columns, change, tmp_path):
        """Blocks, their order in memory, index, attributes and flags are not the private frame's."""
        sampler = samplers.table({name: OF_EVERY_KIND[name] for name in columns}, frame="pandas")
        data = change(sampler.draw(N, np.random.default_rng(1)))
        check(sampler, data, of_pandas, tmp_path)

    def test_categories(self, tmp_path):
        """The order of categories, and the categories that do not occur, are P's."""
        sampler = samplers.table({name: OF_EVERY_KIND[name] for name in "xc"}, frame="pandas")
        data = reordered_categories(sampler.draw(N, np.random.default_rng(1)))
        check(sampler, data, of_pandas, tmp_path)

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_frames_that_users_draw(self, order, tmp_path):
        """A frame that P makes of one array, and a private one of many columns, look the same in memory."""
        sampler = samplers.from_function(
            lambda n, rng: pd.DataFrame(np.array(rng.random((n, 3)), order=order), columns=list("abc"))
        )
        rng = np.random.default_rng(1)
        many = pd.DataFrame({name: rng.random(N) for name in "abc"})
        for data in (many, many.copy(), pd.DataFrame(np.asfortranarray(many), columns=list("abc"))):
            check(sampler, data, of_pandas, tmp_path)

    def test_series(self, tmp_path):
        """A series that is a column of a larger frame looks like one that was drawn."""
        rng = np.random.default_rng(1)
        data = pd.DataFrame(rng.random((N, 3)), columns=list("abc"))["b"]
        data.attrs = {"secret": 1}
        check(UNIT, data, of_pandas, tmp_path)

    @pytest.mark.parametrize("kind", ["string[pyarrow]", "string[python]", "Int64", "double[pyarrow]"])
    def test_columns_that_need_no_conversion(self, kind, tmp_path):
        """Columns that already have P's dtype are copied too: their chunks are not the private ones."""

        def draw(n, rng):
            numbers = pd.Series(rng.integers(3, size=n))
            return pd.DataFrame(
                {"s": numbers.astype(str).astype(kind) if "string" in kind else numbers.astype(kind)}
            )

        sampler = samplers.from_function(draw)
        rng = np.random.default_rng(1)
        data = pd.concat([draw(N // 2, rng), draw(N // 2, rng)]).iloc[::-1]
        check(sampler, data, of_pandas, tmp_path)

    def test_index(self, tmp_path):
        """An index that is a part of the records has no frequency and no unused levels."""
        days = pd.date_range("2020-01-01", periods=N)

        def draw(n, rng):
            return pd.DataFrame(
                {"x": rng.random(n)}, index=pd.date_range("2020-01-01", periods=n, name="day")
            )

        data = pd.DataFrame({"x": np.ones(N)}, index=days.rename("day"))
        check(samplers.from_function(draw), data, of_pandas, tmp_path)

        def nested(n, rng):
            index = pd.MultiIndex.from_arrays([rng.permutation(n) % 3, np.arange(n)], names=["g", "i"])
            return pd.DataFrame({"x": rng.random(n)}, index=index)

        wide = pd.DataFrame(
            {"x": 1.0}, index=pd.MultiIndex.from_product([[0, 1, 2, 9], range(N)], names=["g", "i"])
        )
        last = wide[:N]
        (tmp_path / "more").mkdir()
        seen = layouts(
            samplers.from_function(nested),
            last,
            lambda d: (len(d.index.levels[1]) == N, of_pandas(d)),
            tmp_path / "more",
        )
        assert set(seen) == {seen[-1]} and seen[-1].startswith("(True")

    def test_attributes_that_a_sampler_adds(self, tmp_path):
        """The private run would lack what a sampler adds to its records, so calibration must lack it too."""

        def draw(n, rng):
            made = pd.DataFrame({"x": rng.random(n)})
            made.attrs = {"unit": "cm"}
            return made

        check(samplers.from_function(draw), pd.DataFrame({"x": np.ones(N)}), of_pandas, tmp_path)


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
    """Check that frames are the same if pandas has fewer constructors, and return those without both."""
    usual = make()
    with monkeypatch.context() as without:
        without.setattr(pandas_blocks, "from_blocks", lambda: None)
        fewer = make()
        without.delattr(pd.DataFrame, "_from_arrays", raising=False)
        found = make()
    for one, *others in zip(usual, fewer, found, strict=True):
        for other in others:
            pd.testing.assert_frame_equal(one, other, check_exact=True)
            assert visible(one) == visible(other)
    for one, other in zip(usual, fewer, strict=True):
        assert blocks_of(one) == blocks_of(other)
    return found


def blocks_of(frame):
    """Return the dtype and the places of each block, and how it lies in memory."""
    blocks = frame._mgr.blocks
    arrays = [np.asarray(getattr(each.values, "_ndarray", each.values)) for each in blocks]
    places = [(str(each.dtype), each.mgr_locs.as_array.tolist()) for each in blocks]
    return places, [(own.strides, str(own.flags)) for own in arrays if own.dtype != object]


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


def by_columns(drawn, position, n):
    """Return a pair of neighbours that is made column by column."""
    return Tabular.pair(pandas_frames.ADAPTERS["DataFrame"], drawn, position, n)


@pytest.mark.parametrize("name", PARTS)
def test_neighbours_are_the_same_block_by_block_and_column_by_column(name):
    """A record in other columns, or another layout than private data has, would make gaps meaningless."""
    data = PARTS[name]
    for drawn in (data, records.fresh(data), data.copy(), data.iloc[::-1], data.iloc[:, ::-1]):
        before = drawn.copy(deep=True)
        found = records.pair(drawn, 1, 2)
        for one, other in zip(found, by_columns(drawn, 1, 2), strict=True):
            pd.testing.assert_frame_equal(one, other, check_exact=True)
            assert visible(one) == visible(other)
        for made, other in (found, found[::-1]):
            kept = other.copy(deep=True)
            for at in range(made.shape[1]):
                made.isetitem(at, made.iloc[::-1, at].array)
            for own in pandas_blocks.inside_blocks(made):
                with contextlib.suppress(ValueError, TypeError):
                    own[...] = own[..., :1]
            pd.testing.assert_frame_equal(other, kept)
        pd.testing.assert_frame_equal(drawn, before)


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


def of_other_kinds(frame):
    """Return a frame, and some whose schemas differ from its own."""
    first, *others = frame.columns
    yield frame
    yield frame.rename(columns={first: "other"})
    yield frame[[*others, first]]
    yield frame[others]
    yield frame.assign(one_more=1)
    yield frame.set_axis(range(frame.shape[1]), axis=1)
    yield frame.set_axis(pd.Index(frame.columns, name="what"), axis=1)
    yield frame.set_axis([*frame.columns[:-1], frame.columns[0]], axis=1)
    yield frame.set_index(pd.Index(list("abcde"), name="who"))
    yield frame.set_index(pd.date_range("2020-01-01", periods=len(frame)))
    yield frame.astype({first: object})
    yield frame.astype({first: "float32"})
    yield frame.astype({first: "Int64"})


@for_each("names", [["age", "pay"], ["age", "sex", "day"], ["age", "city", "seen", "kids", "maybe"]])
def test_frames_of_the_same_kind_as_ps_have_its_schema(names):
    """Data that does not fit would be let through, since schemas are not compared then."""
    sampler = samplers.table(**{name: COLUMNS[name] for name in names})
    frame, again = (sampler.draw(5, np.random.default_rng(seed)) for seed in (1, 2))
    strings = isinstance(frame.columns.dtype, pd.StringDtype)  # from pandas 3 on
    assert records.is_same_kind(again, frame) == strings
    read = frame.set_axis(pd.Index(names), axis=1)  # as a frame of the user's own has them
    assert records.is_same_kind(read, frame) == strings
    for number, drawn in enumerate(of_other_kinds(frame)):
        for place, data in enumerate(of_other_kinds(again)):
            if records.is_same_kind(data, drawn):
                assert number == place
                assert records.describe(data) == records.describe(drawn)
                assert records.match(drawn, records.describe(data), None) is drawn
    assert not records.is_same_kind(frame["age"], frame)
    assert not records.is_same_kind(frame["age"], frame["age"])
