"""Frames of polars are laid out in private data as in P's draws."""

import contextlib

import numpy as np
import pytest

from privatize import samplers
from privatize.data import columns, frames, polars_frames, records
from privatize.errors import DataError
from tests.cases import for_each
from tests.data.drawn_frames import pl
from tests.data.layouts import OF_EVERY_KIND, check, layouts


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


def converted(data, sampler, seed=0):
    """Convert data to a sampler's dtypes and support."""
    return records.convert(data, drawn_by(sampler, seed), sampler.support)


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="polars has it from 1.18 on")
def test_integers_of_128_bits_are_clipped_or_refused_by_their_schema():
    """What is accepted by its schema must not fail on the private values."""
    P = samplers.table(x=samplers.integers(0, 9), frame="polars")
    data = pl.DataFrame({"x": pl.Series([1, 2**70, None], dtype=pl.Int128)})
    try:
        records.match(drawn_by(P), records.describe(data), P.support)
    except DataError:
        return
    assert converted(data, P)["x"].to_list() == [1, 9, 4]


@for_each("dtype", ["Int8", "Int64", "UInt64", "Float32", "Float64", "Boolean"])
def test_polars_numbers_are_the_same_with_and_without_missing_ones(dtype):
    """What becomes of a number must not depend on whether another one is missing."""
    values = [True, False, True] if dtype == "Boolean" else [0, 1, 100]
    full = pl.Series("x", values, dtype=getattr(pl, dtype))
    three, missing = columns.values_of(full)
    four, one_missing = columns.values_of(full.extend_constant(None, 1))
    assert three.dtype == four.dtype
    assert three.tolist() == four[:3].tolist()
    assert missing.tolist() == [False] * 3
    assert one_missing.tolist() == [False] * 3 + [True]
    three[:] = 0  # a copy
    assert full.to_list()[:3] == [type(full[0])(value) for value in values]


N = 12
with contextlib.suppress(ImportError):
    pass
with contextlib.suppress(ImportError):
    import polars as pl
with contextlib.suppress(ImportError):
    pass


def of_polars(d):
    own = [d] if isinstance(d, pl.Series) else d.get_columns()
    return [
        (c.name, str(c.dtype), c.n_chunks(), c.flags, c.has_nulls(), c.to_physical().dtype == c.dtype)
        for c in own
    ]


@pytest.mark.skipif("pl" not in globals(), reason="polars is not installed")
class TestPolars:
    @pytest.mark.parametrize("columns", ["x", "xyksct"])
    def test_frames(self, columns, tmp_path):
        """Chunks and the flag of a sorted column are not the private frame's."""
        sampler = samplers.table({name: OF_EVERY_KIND[name] for name in columns}, frame="polars")
        rng = np.random.default_rng(1)
        data = pl.concat([sampler.draw(N // 2, rng), sampler.draw(N // 2, rng)], rechunk=False).sort("x")
        check(sampler, data.with_columns(pl.col("x").set_sorted()), of_polars, tmp_path)
        split = pl.concat([sampler.draw(N // 2, rng), sampler.draw(N // 2, rng)], rechunk=False)
        check(sampler, split, of_polars, tmp_path)

    def test_sorted_draws(self, tmp_path):
        """Both neighbours, and the private data, have the same flags if P draws sorted records."""
        sampler = samplers.from_function(lambda n, rng: pl.DataFrame({"x": rng.random(n)}).sort("x"))
        data = pl.DataFrame({"x": np.random.default_rng(1).random(N)}).sort("x")
        check(sampler, data, of_polars, tmp_path)
        check(
            samplers.from_function(lambda n, rng: pl.Series("x", rng.random(n)).sort()),
            data["x"],
            of_polars,
            tmp_path,
        )

    def test_categoricals(self, tmp_path):
        """Codes of categories do not depend on what was read before the private data."""
        sampler = samplers.from_function(
            lambda n, rng: pl.DataFrame(
                {
                    "c": pl.Series(
                        ["u", *np.array(["u", "v"])[rng.integers(2, size=n - 1)]], dtype=pl.Categorical
                    )
                }
            )
        )
        data = pl.DataFrame({"c": pl.Series(["v", "u"] * (N // 2), dtype=pl.Categorical)}).reverse()
        assert data["c"][0] == "u"
        seen = layouts(
            sampler,
            data,
            lambda d: dict(
                sorted(zip(d["c"].cast(pl.String).to_list(), d["c"].to_physical().to_list(), strict=True))
            ),
            tmp_path,
        )
        assert set(seen) == {seen[-1]}


def test_days_without_a_value_are_missing():
    """A day that a function of P left out would be drawn as one long ago."""
    days = np.array(["2020-02-29", "NaT", "1969-12-31"], dtype="M8[D]")
    for own in (days, days[::2]):
        made = frames.make("polars", {"day": columns.Column(own)})
        assert made["day"].dtype == pl.Date
        assert made["day"].to_list() == own.tolist()


@for_each("fast", [True, False])
@for_each("code", ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_numbers_are_those_of_polars_own_constructor(code, fast, monkeypatch):
    """P's columns would have other values, or another dtype, in some version of polars."""
    if not fast:  # as if this version had no such constructor
        monkeypatch.setattr(polars_frames, "_constructor", lambda dtype: None)
    values = np.array([0, 1, 5, 7, 0, 3]).astype(code)
    if values.dtype.kind == "f":
        values[1:4] = np.nan, -0.0, np.inf
    frozen = values.copy()
    frozen.setflags(write=False)
    unaligned = np.frombuffer(b"." + values.tobytes(), dtype=np.uint8)[1:].view(code)
    for own in (values, values[::2], values[::-1], frozen, unaligned, values[:0]):
        made, wanted = frames.make("polars", {"x": columns.Column(own)})["x"], pl.Series("x", own)
        assert made.dtype == wanted.dtype and made.null_count() == 0
        assert made.to_numpy().tobytes() == wanted.to_numpy().tobytes()


def test_the_constructor_is_found_in_this_version():
    """Drawing tables of many columns would take twice as long."""
    assert polars_frames._constructor(np.dtype("f8")) is not None
