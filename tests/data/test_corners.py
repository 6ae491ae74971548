"""Corners are put into records of every container, where they stay inside the support."""

import datetime as dt

import numpy as np
import pytest

from privatize import samplers
from privatize.data import records
from privatize.data.clipping import value_in
from privatize.data.corners import FAR, places, put
from privatize.data.support import Maybe, OneOf
from tests.cases import for_each


def table(frame):
    return samplers.table(
        frame=frame,
        age=samplers.integers(18, 100),
        income=samplers.with_missing(samplers.uniform(-1, 2e5), 0.1),
        sex=samplers.categorical(["F", "M", "other"]),
        day=samplers.dates("2025-01-01", "2025-12-31"),
        left=samplers.boolean(0.3),
    )


def corner_records(sampler):
    """Return P's records, and one record for each round of corners, converted as private data is."""
    drawn, support = sampler.draw(50, np.random.default_rng(1)), sampler.support
    known = places(drawn, support)
    rounds = max(len(place.values) for place in known)
    cells = {(k, p.path): p.values[min(k, len(p.values) - 1)] for k in range(rounds) for p in known}
    made = put(records.head(drawn, rounds), cells)
    return drawn, made, records.convert(made, drawn, support)


@for_each("frame", ["pandas", "polars", "pyarrow", "dict", "records"])
def test_frames_get_bounds_zero_categories_and_missing_values(frame):
    """A bound that is broken by one column of one library would not be refuted."""
    drawn, made, converted = corner_records(table(frame))
    assert frame == "records" or records.equal(records.fresh(made), converted)  # lists get Python's dates
    assert records.describe(records.concat([converted, drawn])) == records.describe(drawn)
    listed = converted if frame == "records" else None
    if frame == "pandas":
        listed = converted.to_dict("records")
    elif frame == "polars":
        listed = converted.to_dicts()
    elif frame == "pyarrow":
        listed = converted.to_pylist()
    if listed is not None:
        assert [one["age"] for one in listed] == [18, 100, 100, 100]
        assert [one["sex"] for one in listed] == ["F", "M", "other", "other"]
        assert [str(one["day"])[:10] for one in listed[:2]] == ["2025-01-01", "2025-12-31"]
        assert [one["income"] for one in listed[:3]] == [-1, 2e5, 0]
        assert listed[3]["income"] is None or listed[3]["income"] != listed[3]["income"]
        assert {one["left"] for one in listed} == {False, True}


@for_each(
    "sampler, expected",
    [
        (samplers.uniform([0, -1], [1, 5]), [[0, -1], [1, 5], [1, 0]]),
        (samplers.integers(0, 9), [0, 9]),
        (samplers.categorical(["a", "much longer"]), ["a", "much longer"]),
        (samplers.normal(0, 1).clip(0), [0, FAR]),
        (samplers.normal(0, 1), [-FAR, FAR, 0]),
        (samplers.from_function(lambda n, rng: rng.integers(5, size=n).astype(np.int8)), [-128, 127, 0]),
        (samplers.from_function(lambda n, rng: rng.random(n).tolist(), support=(0.0, 1.0)), [0.0, 1.0]),
        (samplers.from_function(lambda n, rng: rng.integers(5, size=n).tolist()), [-1_000_000, 1_000_000, 0]),
    ],
)
def test_arrays_and_lists_get_their_corners(sampler, expected):
    """A bound that is broken at the end of a range would not be refuted."""
    _, made, converted = corner_records(sampler)
    assert (made if type(made) is list else made.tolist()) == expected
    assert records.equal(made, converted)
    assert type(made) is not list or {type(value) for value in made} == {type(expected[0])}


def test_aligned_and_sparse_data_and_tensors_get_their_corners():
    """Only data frames and arrays could be attacked."""
    aligned = samplers.labelled(samplers.uniform(0, [1, 5]), samplers.categorical([0, 1]))
    _, made, _ = corner_records(aligned)
    assert made[0].tolist() == [[0, 0], [1, 5]] and made[1].tolist() == [0, 1]
    sparse = pytest.importorskip("scipy.sparse")
    drawn = sparse.csr_matrix(np.eye(3))
    changed = put(drawn, {(1, place.path): place.values[1] for place in places(drawn, (-2.0, 7.0))})
    assert type(changed) is type(drawn) and changed.toarray().tolist() == [[1, 0, 0], [7, 7, 7], [0, 0, 1]]
    torch = pytest.importorskip("torch")
    tensor = torch.zeros((2, 2), dtype=torch.float32)
    assert put(tensor, {(0, (0, 1)): 0.5, (1, (0, 0)): None})[0].tolist() == [0, 0.5]
    assert tensor.sum() == 0  # a copy


def test_values_beyond_the_bounds_only_if_asked_for():
    """With domain="as-is" records beyond the bounds would not be tried, or with "clip" they would."""
    (place,) = places(np.zeros(2), Maybe((0.0, 1.0)))
    assert place.values == (0.0, 1.0, None)
    assert places(np.zeros(2), (0.0, 1.0), beyond=True)[0].values == (0.0, 1.0, -FAR, FAR)
    assert places(["a"], OneOf(("a", "b"), "a"), beyond=True)[0].values == ("a", "b")
    days = samplers.dates("2025-01-01", "2025-12-31").support
    assert places([dt.date(2025, 3, 1)], days, beyond=True)[0].values == ()
    assert places(np.zeros(2, dtype=[("a", "f8")]), None) == []


def test_values_fit_into_their_dtype():
    """A corner would wrap around to the other end."""
    assert value_in(300, np.dtype("u1")) == 255 and value_in(None, np.dtype("i8")) == 0
    assert np.isnat(value_in(None, np.dtype("M8[D]"))) and value_in("a", np.dtype("U1")) == "a"
