"""Arrays, tensors and sparse matrices are laid out in private data as in P's draws."""

import contextlib
import warnings

import numpy as np
import pytest
from scipy import sparse

from privatize import privatize, samplers
from privatize.data import records
from privatize.data.support import Maybe
from tests.cases import for_each
from tests.data.conversions import nan
from tests.data.datasets import ALIGNED
from tests.data.layouts import UNIT, check, layouts, of_array

CSR = sparse.csr_array(np.zeros((2, 2)))


@pytest.mark.parametrize("support", [(0, 100), (np.zeros(2), np.array([100.0, 50.0]))])
def test_entries_of_a_sparse_matrix_that_are_stored_twice_are_one_number(support):
    """Stored in parts, a number could be any multiple of what the support allows."""
    data = sparse.csr_array(
        (np.array([60.0, 60.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2)
    )
    made = records.convert(data, CSR, support)
    assert made.toarray().tolist() == [[100.0, 0.0], [0.0, 5.0]]
    assert data.nnz == 3  # the caller's matrix is not changed


def test_a_sparse_matrix_saturates():
    """A number beyond the integers must be clipped to the upper bound, not wrap to the lower one."""
    data = sparse.csr_array(np.array([[1e30, nan], [0.0, 3.6]]))
    with np.errstate(all="ignore"):
        made = records.convert(data, CSR.astype(np.int64), (0, 100))
    assert made.toarray().tolist() == [[100, 50], [0, 4]]


def test_a_sparse_support_with_missing_values():
    """A support that was accepted must not fail on the private data."""
    if records.misfit(CSR, Maybe((0, 1))) is None:
        data = sparse.csr_array(np.array([[nan, 5.0], [0.0, 0.5]]))
        assert np.array_equal(
            records.convert(data, CSR, Maybe((0, 1))).toarray(), [[nan, 1.0], [0.0, 0.5]], equal_nan=True
        )


@for_each("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@for_each("support", [(0, 100), (np.zeros(2), np.full(2, 100.0))])
def test_sparse_matrices_of_every_form(form, support):
    """A form that P may draw and that is accepted must not fail on the private data."""
    drawn, data = CSR.asformat(form), sparse.csr_array(np.array([[150.0, 0.0], [-3.0, 7.0]])).asformat(form)
    assert records.misfit(drawn, support) is None
    made = records.convert(data, drawn, support)
    assert made.format == form
    assert made.toarray().tolist() == [[100.0, 0.0], [0.0, 7.0]]


@for_each("dtype", ["f8", ">f8", "f4", "i8", "i4", "u1", "?", "U3", "O", "M8[D]", "i4,f8"])
@for_each("shape", [(3,), (3, 2), (3, 0)])
def test_arrays_of_the_same_kind_as_ps_have_its_schema(dtype, shape):
    """Data that does not fit would be let through, since schemas are not compared then."""
    drawn = [np.zeros(size, dtype=d) for size in ((2,), (2, 2)) for d in ("f8", "i8", "O", "i4,f8", "?")]
    data = np.zeros(shape, dtype=dtype)
    assert not records.is_same_kind(np.zeros((), dtype=dtype), drawn[0])
    for each in drawn:
        if records.is_same_kind(data, each):
            assert records.describe(data) == records.describe(each)
            assert records.match(each, records.describe(data), None) is each


N = 12
MATRIX = samplers.uniform(0, 1, size=3)


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


with contextlib.suppress(ImportError):
    pass
with contextlib.suppress(ImportError):
    pass
with contextlib.suppress(ImportError):
    pass


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
            return sparse.random(n, 6, density=0.4, format=form, random_state=rng)

        sampler = samplers.from_function(draw)
        rows, columns = np.repeat(np.arange(N), 4), np.tile([5, 1, 1, 3], N)
        values = np.tile([1.0, 2.0, 3.0, 0.0], N)
        coo = sparse.coo_matrix((values, (rows, columns)), shape=(N, 6))
        csr = sparse.csr_matrix((values, columns.astype(np.int64), np.arange(0, 4 * N + 1, 4)), shape=(N, 6))
        csr.has_sorted_indices = csr.has_canonical_format = True  # which is not true
        data = {"csr": csr, "coo": coo, "csc": coo.tocsc()}[form]
        check(sampler, data, of_sparse, tmp_path)


def test_head_does_not_copy_arrays():
    """Every sampled pair would pay for one more copy of the data."""
    data = np.arange(5.0), np.arange(5)
    assert all(np.shares_memory(a, b) for a, b in zip(data, records.head(data, 3), strict=True))


def test_padding_is_no_part_of_a_record():
    """The bytes between aligned fields are whatever was in memory: no such sampler would be reproducible."""
    one, other = (np.frombuffer(fill * 48, dtype=ALIGNED).copy() for fill in (b"\x00", b"\xff"))
    for array in (one, other):
        array["sex"], array["pay"] = 1, 2.5
    assert records.equal(one, other)
