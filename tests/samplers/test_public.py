"""Records of public data are drawn with their rows together, in every container."""

import pickle

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from privatize.data import records
from privatize.errors import SamplerError
from privatize.identity.fingerprint import fingerprint
from privatize.samplers import (
    bootstrap,
)
from tests.cases import for_each
from tests.samplers.combinations import FRAME, inside


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


PUBLIC = np.array([1.0, 2.0, 4.0, 8.0])


@for_each(
    "public",
    [
        PUBLIC,
        PUBLIC.astype(np.float32),
        np.arange(12).reshape(4, 3),
        np.array(["x", "yy", "z", "x"]),
        np.array(["2020-01-01", "2020-02-01", "NaT", "2020-01-01"], dtype="M8[D]"),
        [1.0, 2.0, 4.0, 8.0],
        ["x", None, "z", "x"],
        [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": None}, {"a": 4, "b": "x"}],
        (np.arange(8.0).reshape(4, 2), np.array([0, 1, 1, 0])),
        {"a": PUBLIC, "b": np.array(["x", "y", "x", "z"])},
        FRAME,
        FRAME["a"],
        FRAME["c"],
        pl.from_pandas(FRAME),
        pl.Series("a", [1, None, 3, 4]),
        pa.Table.from_pandas(FRAME, preserve_index=False),
        sparse.csr_array(np.diag([1.0, 2.0, 3.0, 4.0])),
    ],
    ids=lambda public: type(public).__name__,
)
@for_each("smooth", [0, 0.5])
def test_public_records_of_every_kind(public, smooth):
    """Some public data could not be used, or would be drawn with other types."""
    if smooth and sparse.issparse(public):
        with pytest.raises(SamplerError, match="not for sparse"):
            bootstrap(public, smooth=smooth)
        return
    sampler = bootstrap(public, smooth=smooth)
    drawn = sampler.draw(50, rng(13))
    assert records.count(drawn) == 50
    assert records.describe(drawn) == records.describe(public)
    if not sparse.issparse(public):
        assert inside_public(drawn, sampler.support)
    assert repr(sampler) == ("bootstrap(public, smooth=0.5)" if smooth else "bootstrap(public)")
    back = pickle.loads(pickle.dumps(sampler))
    assert back == sampler and hash(back) == hash(sampler)
    assert fingerprint(back) == fingerprint(sampler)
    assert records.equal(back.draw(9, rng(13)), sampler.draw(9, rng(13)))
    assert pickle.loads(cloudpickle.dumps(sampler)) == sampler


def inside_public(drawn, support):
    """Tell whether public data lies in a support, but for the column "t" of times with a zone."""
    if isinstance(support, dict):
        support = {name: own for name, own in support.items() if name != "t"}
    return inside(drawn, support)


def test_rows_of_public_data_stay_together():
    """A record would be put together from those of different people."""
    public = pl.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    known = set(public.iter_rows())
    assert set(bootstrap(public).draw(60, rng(14)).iter_rows()) == known
    X, y = bootstrap((np.arange(9).reshape(3, 3), np.array([0, 3, 6]))).draw(60, rng(14))
    assert (X[:, 0] == y).all()


def test_public_data_that_changes_afterwards():
    """P would change with an array that the caller goes on using."""
    public, frame = PUBLIC.copy(), FRAME.copy()
    one, other = bootstrap(public), bootstrap(frame)
    before = one.draw(9, rng(15)), other.draw(9, rng(15)), fingerprint(one)
    public[:] = 99
    frame["a"] = 99.0
    after = one.draw(9, rng(15)), other.draw(9, rng(15)), fingerprint(one)
    assert records.equal(before, after)
    drawn = one.draw(9, rng(15))
    drawn[:] = 77
    assert records.equal(one.draw(9, rng(15)), before[0])


@for_each(
    ("public", "values"),
    [
        (PUBLIC, lambda drawn: drawn),
        (PUBLIC.astype(np.float32), lambda drawn: drawn),
        (np.column_stack([PUBLIC, -PUBLIC]), lambda drawn: drawn[:, 1]),
        (PUBLIC.tolist(), lambda drawn: drawn),
        ([[x, 2 * x] for x in PUBLIC], lambda drawn: [x for x, _ in drawn]),
        ([{"a": x} for x in PUBLIC], lambda drawn: [record["a"] for record in drawn]),
        ((PUBLIC, np.arange(4)), lambda drawn: drawn[0]),
        ({"a": PUBLIC, "b": np.arange(4)}, lambda drawn: drawn["a"]),
        (pd.DataFrame({"a": PUBLIC, "b": range(4)}), lambda drawn: drawn["a"]),
        (pd.Series(PUBLIC), lambda drawn: drawn),
        (pl.DataFrame({"a": PUBLIC, "b": range(4)}), lambda drawn: drawn["a"]),
        (pl.Series("a", PUBLIC), lambda drawn: drawn),
        (pa.table({"a": PUBLIC, "b": range(4)}), lambda drawn: drawn["a"].to_pylist()),
    ],
)
def test_smoothing_reaches_every_container(public, values):
    """Records of a public data set would be drawn as they are, though they were to be smoothed."""
    sampler = bootstrap(public, smooth=0.1)
    found = np.asarray(values(sampler.draw(50, rng(16))), dtype=float)
    assert len(np.unique(found)) > 20
    if isinstance(public, pd.DataFrame):
        assert set(sampler.draw(50, rng(16))["b"]) == {0, 1, 2, 3}
