"""A function sees the same containers in calibration and on private data, however that is laid out."""

import contextlib
import datetime as dt
import warnings
from pathlib import Path

import numpy as np
import pytest

from privatize import privatize, samplers

N = 12
UNIT = samplers.uniform(0, 1)
MATRIX = samplers.uniform(0, 1, size=3)


def layouts(sampler, data, layout, folder):
    """Return what a function sees of its data besides values: in calibration, then on the private data."""
    file = str(Path(folder) / "seen")

    def function(d):
        with Path(file).open("a") as out:
            out.write(repr(layout(d)) + "\n")
        return 1.0

    made = privatize(
        epsilon=1,
        gamma=0.3,
        sampler=sampler,
        min_sensitivity=1,
        workers="inline",
        store=None,
        seed=1,
    )(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made(data)
    return Path(file).read_text().splitlines()


def check(sampler, data, layout, folder):
    seen = layouts(sampler, data, layout, folder)
    assert len(seen) > 10
    assert set(seen) == {seen[-1]}


# --- arrays -----------------------------------------------------------------------------------


def of_array(x):
    fields = None if x.dtype.names is None else {k: str(v) for k, v in x.dtype.fields.items()}
    return (
        type(x).__name__,
        x.shape,
        x.strides,
        str(x.flags).split(),
        x.base is None,
        x.dtype.str,
        x.dtype.isnative,
        dict(x.dtype.metadata or {}),
        fields,
        x.dtype.isalignedstruct,
        x.dtype.itemsize,
    )


def unaligned(values):
    memory = bytearray(values.nbytes + 1)
    made = np.frombuffer(memory, dtype=np.uint8)[1:].view(values.dtype).reshape(values.shape)
    made[...] = values
    return made


def read_only(values):
    made = values.copy()
    made.setflags(write=False)
    return made


def reversed_twice(values):
    return values[::-1].copy()[::-1]


HOSTILE = {
    "C": lambda v: v,
    "Fortran": np.asfortranarray,
    "part": lambda v: np.repeat(v, 2, axis=0)[::2],
    "reversed": reversed_twice,
    "read-only": read_only,
    "big-endian": lambda v: v.astype(v.dtype.newbyteorder(">")),
    "metadata": lambda v: v.astype(np.dtype(v.dtype, metadata={"secret": 1})),
    "unaligned": unaligned,
    "broadcast": lambda v: np.broadcast_to(v[:1], v.shape),
    "float32": lambda v: np.asfortranarray(v.astype(np.float32)),
    "integers": lambda v: np.asfortranarray((v * 10).astype(np.int16)),
}


class TestArrays:
    @pytest.mark.parametrize("hostile", HOSTILE)
    @pytest.mark.parametrize("domain", ["clip", "as-is"])
    @pytest.mark.parametrize("sampler", [UNIT, MATRIX, samplers.normal(0, 1)], ids=repr)
    def test_numbers(self, hostile, domain, sampler, tmp_path):
        """If an array kept its Fortran order, x.ravel("K")[1::2].mean() would get far too little noise."""
        values = sampler.draw(N, np.random.default_rng(1))
        given = sampler if domain == "clip" else samplers.from_function(sampler.draw)
        check(given, HOSTILE[hostile](values), of_array, tmp_path)

    @pytest.mark.parametrize("hostile", [name for name in HOSTILE if name not in ("float32", "integers")])
    @pytest.mark.parametrize(
        "sampler", [samplers.integers(0, 9), samplers.dates("2020-01-01", "2021-01-01")], ids=repr
    )
    def test_other_dtypes(self, hostile, sampler, tmp_path):
        """What holds for floats holds for integers and dates."""
        values = sampler.draw(N, np.random.default_rng(1))
        check(sampler, HOSTILE[hostile](values), of_array, tmp_path)

    @pytest.mark.parametrize("odd", ["Fortran", "part", "reversed", "read-only", "big-endian", "unaligned"])
    def test_samplers_of_odd_arrays(self, odd, tmp_path):
        """If a sampler draws in Fortran order, a function still gets arrays like the private data's."""
        change = HOSTILE[odd]
        sampler = samplers.from_function(lambda n, rng: change(rng.random((n, 3))))
        data = np.random.default_rng(1).random((N, 3))
        check(sampler, data, of_array, tmp_path)

    def test_structured(self, tmp_path):
        """Titles, padding and the bytes between fields are not those of the private array."""
        bare = np.dtype({"names": ["a", "b"], "formats": ["f8", "i4"], "offsets": [0, 12], "itemsize": 24})
        titled = np.dtype(
            {
                "names": ["a", "b"],
                "formats": ["f8", "i4"],
                "offsets": [0, 12],
                "itemsize": 24,
                "titles": ["secret", "other"],
            }
        )

        def draw(n, rng):
            made = np.empty(n, bare)
            made["a"], made["b"] = rng.random(n), rng.integers(5, size=n)
            return made

        data = np.frombuffer(bytes(range(24)) * N, dtype=titled)
        seen = layouts(samplers.from_function(draw), data[::-1], of_array, tmp_path)
        assert len(set(seen)) == 1
        (tmp_path / "more").mkdir()
        between = layouts(
            samplers.from_function(draw),
            data,
            lambda x: x.view(np.uint8).reshape(N, 24)[:, [8, 9, 10, 11, 16, 23]].tobytes(),
            tmp_path / "more",
        )
        assert set(between) == {repr(bytes(6 * N))}

    def test_objects(self, tmp_path):
        """Arrays of objects get the layout of P's arrays as well."""
        sampler = samplers.from_function(
            lambda n, rng: np.array(["a", "b", "c"], dtype=object)[rng.integers(3, size=(n, 3))]
        )
        data = np.asfortranarray(sampler.draw(N, np.random.default_rng(1)))
        check(sampler, data, of_array, tmp_path)

    def test_the_noise_fits_the_answer(self):
        """Every second number is in the first column, but not in Fortran order: the noise was too small."""
        data = np.asfortranarray(np.random.default_rng(1).random((200, 2)) * [1.0, 100.0])
        P = samplers.uniform([0, 0], [1, 100])

        @privatize(epsilon=1, gamma=0.1, sampler=P, workers="inline", store=None, seed=1)
        def every_second(x):
            return float(x.ravel("K")[::2].mean())

        release = every_second.release(data)
        assert abs(release.value - data[:, 0].mean()) < 30 * release.scale

    def test_zeros_and_nans(self, tmp_path):
        """A function must not see signs of private zeros, or bits of private NaNs, that P never draws."""
        odd = np.array([-0.0, 0.0] * (N // 2))
        P = samplers.uniform(0, 1)
        for data in (odd, odd.astype(np.float32), odd.tolist()):
            assert "1" not in layouts(P, data, lambda x: int(np.signbit(x).sum()), tmp_path)[-1]
        choice = samplers.choice([0.0, 1.0])
        assert layouts(choice, odd, lambda x: int(np.signbit(x).sum()), tmp_path)[-1] == "0"
        bits = np.full(N, 0xFFF8_0000_DEAD_BEEF, dtype=np.uint64).view(np.float64)
        usual = repr({int(np.array(np.nan).view(np.uint64))})
        for sampler in (samplers.normal(0, 1), samplers.with_missing(UNIT, 0.9)):
            seen = layouts(sampler, bits, lambda x: set(x[np.isnan(x)].view(np.uint64).tolist()), tmp_path)
            assert seen[-1] == usual

    def test_aligned_arrays(self, tmp_path):
        """Each part of (X, y) and of a dict gets the layout of P's arrays."""
        rng = np.random.default_rng(1)
        both = samplers.from_function(lambda n, r: (r.random((n, 3)), r.random(n)))
        data = (np.asfortranarray(rng.random((N, 3))), read_only(rng.random(2 * N)[::2]))
        check(both, data, lambda d: [of_array(part) for part in d], tmp_path)
        named = samplers.from_function(
            lambda n, r: {"X": np.asfortranarray(r.random((n, 3))), "y": r.random(n)}
        )
        check(named, {"X": data[0], "y": data[1]}, lambda d: [of_array(p) for p in d.values()], tmp_path)

    @pytest.mark.filterwarnings("ignore:the matrix subclass")
    def test_subclasses_are_refused(self, tmp_path):
        """A matrix, a masked array or a memory map behaves in ways that P's arrays do not."""
        values = np.random.default_rng(1).random(N)
        mapped = np.memmap(tmp_path / "data", dtype=float, mode="w+", shape=N)
        for data in (np.matrix(values).T, np.ma.masked_array(values), mapped, np.rec.array([(1.0,)] * N)):
            with pytest.raises(Exception, match="not supported"):
                layouts(UNIT, data, of_array, tmp_path)
        with pytest.raises(Exception, match="0-dimensional"):
            layouts(UNIT, np.array(1.0), of_array, tmp_path)

    def test_remembered_ids(self):
        """A function that remembers its answers by the id of an array gives stale ones: it is refused."""
        known = {}

        def by_id(x):
            return known.setdefault(id(x), float(x.mean()))

        made = privatize(epsilon=1, gamma=0.1, sampler=UNIT, workers="inline", store=None, seed=1)(by_id)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Exception, match=r"another answer|two different answers"):
                made.estimate(n=20)


# --- frames -----------------------------------------------------------------------------------

with contextlib.suppress(ImportError):
    import pandas as pd
with contextlib.suppress(ImportError):
    import polars as pl
with contextlib.suppress(ImportError):
    import pyarrow as pa


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


COLUMNS = {
    "x": UNIT,
    "y": samplers.uniform(0, 100),
    "k": samplers.integers(0, 9),
    "s": samplers.choice(["a", "b"]),
    "c": samplers.categorical(["F", "M"]),
    "t": samplers.dates("2020-01-01", "2021-01-01"),
}


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
        sampler = samplers.table({name: COLUMNS[name] for name in columns}, frame="pandas")
        data = change(sampler.draw(N, np.random.default_rng(1)))
        check(sampler, data, of_pandas, tmp_path)

    def test_categories(self, tmp_path):
        """The order of categories, and the categories that do not occur, are P's."""
        sampler = samplers.table({name: COLUMNS[name] for name in "xc"}, frame="pandas")
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
        sampler = samplers.table({name: COLUMNS[name] for name in columns}, frame="polars")
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


def of_arrow(d):
    return (
        [(f.name, str(f.type), f.nullable, f.metadata) for f in d.schema],
        d.schema.metadata,
        [(c.num_chunks, c.chunk(0).offset, len(c.chunk(0))) for c in d.columns],
    )


@pytest.mark.skipif("pa" not in globals(), reason="pyarrow is not installed")
class TestArrow:
    @pytest.mark.parametrize("columns", ["x", "xyksct"])
    def test_tables(self, columns, tmp_path):
        """Chunks, offsets, metadata and what may be null are not the private table's."""
        sampler = samplers.table({name: COLUMNS[name] for name in columns}, frame="pyarrow")
        rng = np.random.default_rng(1)
        data = pa.concat_tables([sampler.draw(N, rng), sampler.draw(N, rng)]).slice(3, N)
        data = data.replace_schema_metadata({"secret": "1"})
        fields = [field.with_nullable(False).with_metadata({"secret": "2"}) for field in data.schema]
        data = data.cast(pa.schema(fields, metadata={"secret": "1"}))
        check(sampler, data, of_arrow, tmp_path)


def of_tensor(x):
    return (
        x.stride(),
        x.storage_offset(),
        x.untyped_storage().nbytes(),
        x.requires_grad,
        x.is_leaf,
        x._is_view(),
        x.is_conj(),
        x.is_neg(),
        x.is_contiguous(),
        str(x.dtype),
        str(x.device),
    )


class TestTensors:
    @pytest.mark.parametrize("shape", [(), (3,), (3, 4, 5)])
    def test_tensors(self, shape, tmp_path):
        """Strides, storage, gradients and the bits of a lazy conjugate are not the private tensor's."""
        torch = pytest.importorskip("torch")
        sampler = samplers.uniform(0, 1, size=shape) if shape else UNIT
        values = torch.from_numpy(sampler.draw(2 * N, np.random.default_rng(1)))
        hostile = [values[::2], values[N:], values[:N].clone().requires_grad_()]
        negative = torch._neg_view(-values[:N])
        hostile.append(negative)
        if shape == (3,):
            hostile.append(values[:N].t().contiguous().t())
        if len(shape) == 3:
            hostile.append(values[:N].contiguous(memory_format=torch.channels_last))
        for data in hostile:
            check(sampler, data, of_tensor, tmp_path)
        own = samplers.from_function(lambda n, rng: torch.from_numpy(sampler.draw(n + 3, rng))[3:])
        check(own, values[:N], of_tensor, tmp_path)


def of_sparse(x):
    csr = x.tocsr()
    arrays = [getattr(x, name) for name in ("data", "indices", "indptr", "row", "col") if hasattr(x, name)]
    return (
        type(x).__name__,
        [(str(a.dtype), a.flags.c_contiguous, a.flags.owndata, a.flags.writeable) for a in arrays],
        getattr(x, "has_sorted_indices", None),
        getattr(x, "has_canonical_format", None),
        csr.nnz == csr.count_nonzero(),
    )


class TestSparse:
    @pytest.mark.parametrize("form", ["csr", "csc", "coo"])
    def test_matrices(self, form, tmp_path):
        """Stored zeros, doubled entries, unsorted and wide indices are not the private matrix's."""
        sparse = pytest.importorskip("scipy.sparse")

        def draw(n, rng):
            return sparse.random(n, 6, density=0.4, format=form, rng=rng)

        sampler = samplers.from_function(draw)
        rows, columns = np.repeat(np.arange(N), 4), np.tile([5, 1, 1, 3], N)
        values = np.tile([1.0, 2.0, 3.0, 0.0], N)
        coo = sparse.coo_matrix((values, (rows, columns)), shape=(N, 6))
        csr = sparse.csr_matrix((values, columns.astype(np.int64), np.arange(0, 4 * N + 1, 4)), shape=(N, 6))
        csr.has_sorted_indices = csr.has_canonical_format = True  # which is not true
        data = {"csr": csr, "coo": coo, "csc": coo.tocsc()}[form]
        check(sampler, data, of_sparse, tmp_path)


class TestLists:
    def test_types(self, tmp_path):
        """Numbers of a list are Python's own, whatever the private ones are."""
        data = [np.float64(0.5), 1, True, np.float32(0.25)] * (N // 4)
        check(UNIT, data, lambda x: (type(x), sorted({type(v).__name__ for v in x})), tmp_path)

    def test_subclasses_are_refused(self, tmp_path):
        """A subclass of list may behave in ways that lists do not."""

        class Odd(list):
            pass

        with pytest.raises(Exception, match="not supported"):
            layouts(UNIT, Odd([0.5] * N), type, tmp_path)

    def test_dates(self, tmp_path):
        """Dates of a list are of P's own type."""
        sampler = samplers.table({"t": samplers.dates("2020-01-01", "2021-01-01")}, frame="records")
        data = [{"t": dt.datetime(2020, 5, 1)}] * N
        check(sampler, data, lambda x: sorted({type(v["t"]).__name__ for v in x}), tmp_path)
