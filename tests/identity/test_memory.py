"""The memory of every container is found, so private data in reach is recognized."""

import array
import mmap

import numpy as np
import pytest

from privatize.identity.memory import bounds
from tests.cases import for_each
from tests.identity.private_data import (
    AGES,
    COUNTS,
    FRAME,
    NAMES,
    RNG,
    N,
    _loaded,
    found,
    pd,
)


@for_each(
    "view",
    [
        lambda a: a,
        lambda a: a[::-1],
        lambda a: a[1:, ::2],
        lambda a: a.T,
        lambda a: a[:0],
        lambda a: a[2, 1],
        lambda a: a[::-2, 1],
        lambda a: np.broadcast_to(a[0], (5, 3)),
    ],
)
def test_bounds_of_memory_are_numpys(view):
    """Arrays that share memory would go unnoticed, on some versions of numpy."""
    array = np.asarray(view(np.arange(12.0).reshape(4, 3)))
    first, last = getattr(np.lib, "array_utils", np).byte_bounds(array)  # numpy 1 has it at the top
    assert bounds(array) == ((first, last) if array.size else (first, first))


_loaded()


def _torch():
    torch = pytest.importorskip("torch")
    made = torch.from_numpy(AGES)
    own = torch.tensor(AGES)
    model = torch.nn.Linear(N, 1, dtype=torch.float64)
    model.weight = torch.nn.Parameter(own.reshape(1, -1))
    return [
        (AGES, made),
        (made, AGES),
        (own, own[5:9]),
        (own, own.detach().view(-1, 2)),
        (own[100:], own[:50]),
        (own, own.numpy()),
        (own, own.clone()),
        (own, {"a": [own.float()]}),
        (own, model),
        (AGES, own.clone()),
    ]


def _polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"age": AGES, "name": NAMES, "visits": COUNTS, "odd": [None, *COUNTS[1:].tolist()]})
    return [
        (frame, frame["age"]),
        (frame["age"], frame),
        (frame["odd"], frame),
        (frame["name"], frame),
        (frame, frame.lazy()),
        (frame, frame.slice(3, 20)),
        (frame["age"].slice(3, 4), frame),
        (frame, frame.select("visits")),
        (frame, frame["age"].to_numpy()),
        (frame, frame.to_pandas()),
        (frame, frame.clone()),
        (frame, frame.to_dicts()),
        (pl.concat([frame, frame], rechunk=False), frame["visits"]),
        (AGES, pl.Series(AGES)),
        (frame["name"].cast(pl.Categorical), frame),
    ]


def _arrow():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"age": AGES, "name": NAMES, "visits": COUNTS})
    return [
        (table, table["age"]),
        (table["age"], table),
        (table["age"].chunk(0), table),
        (table, table["visits"].chunk(0).buffers()[1]),
        (table, table.slice(5, 4)),
        (table["name"], table.slice(5, 9)),
        (table, table.to_pandas()),
        (table, table.to_batches()),
        (pa.array(AGES), AGES),
        (FRAME, pa.Table.from_pandas(FRAME)),
        (table, pa.chunked_array([table["age"].chunk(0), table["age"].chunk(0)])),
    ]


def _sparse():
    sparse = pytest.importorskip("scipy.sparse")
    made = sparse.csr_array(sparse.random(N, 5, density=0.5, random_state=np.random.default_rng(1)))
    return [
        (made, made.data),
        (made, made[:50]),
        (made, made.copy()),
        (made.data, made),
        (made, made.tocsc()),
    ]


def _files():
    made = mmap.mmap(-1, AGES.nbytes)
    made.write(AGES.tobytes())
    mapped = np.frombuffer(made)
    owned = array.array("d", AGES)
    return [
        (mapped, made),
        (mapped, np.frombuffer(made)[4:5]),
        (np.asarray(owned), owned),
        (mapped[3:], mapped),
    ]


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
@pytest.mark.parametrize("cases", [_torch, _polars, _arrow, _sparse, _files])
def test_every_container_is_recognized(cases):
    """Private numbers would count as public ones because of the library that they are stored in."""
    missed = [at for at, (data, value) in enumerate(cases()) if not found(data, value)]
    assert not missed


def test_other_numbers_of_every_container_are_not_refused():
    """A function that uses a public table of the same type as the data would be refused."""
    pl, pa, torch = (pytest.importorskip(name) for name in ("polars", "pyarrow", "torch"))
    other = {"age": RNG.uniform(18, 90, N), "name": [f"other {i}" for i in range(N)]}
    for data in (
        FRAME,
        pl.DataFrame({"age": AGES, "name": NAMES}),
        pa.table({"age": AGES}),
        torch.tensor(AGES),
    ):
        for value in (pd.DataFrame(other), pl.DataFrame(other), pa.table(other), torch.tensor(other["age"])):
            assert not found(data, value)
