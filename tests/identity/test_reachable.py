"""Private data that a function can reach besides its argument is refused, in whatever form."""

import array
import collections
import contextvars
import copy
import ctypes
import functools
import mmap
import pickle
import types
import weakref

import numpy as np
import pytest

from privatize import privatize, samplers, seal
from privatize.errors import DataError
from privatize.identity.fingerprint import PrivateReachable, token
from privatize.identity.reachable import Private, is_private
from privatize.mechanisms import Exponential
from tests.cases import for_each

pd = pytest.importorskip("pandas")

N = 200
RNG = np.random.default_rng(3)
AGES = RNG.uniform(18, 90, N)
COUNTS = RNG.integers(0, 40, N)
NAMES = [f"name {i}" for i in RNG.permutation(N)]
TABLE = RNG.normal(size=(N, 3))
FRAME = pd.DataFrame(
    {"age": AGES, "visits": COUNTS, "income": RNG.lognormal(10, 1, N), "name": NAMES},
    index=pd.Index(RNG.permutation(N) + 1000, name="id"),
)
PEOPLE = [{"age": float(a), "name": name, "tags": [name]} for a, name in zip(AGES, NAMES, strict=True)]
ROWS = [(float(a), int(c)) for a, c in zip(AGES, COUNTS, strict=True)]


def found(data, value):
    """Tell whether a function that has a value in its closure is refused."""

    def raw(x):
        return 0.0 if value is None else 1.0

    try:
        token(raw, "raw", private=Private(data))
    except PrivateReachable:
        return True
    return False


class Holder:
    def __init__(self, value):
        self.value = value


class Closed:
    """An object that cannot be encoded."""

    def __init__(self, value):
        self.value = value

    def __reduce_ex__(self, protocol):
        raise TypeError("not this one")


def _lines(values):
    yield from values


@functools.lru_cache
def _loaded():
    return FRAME


_loaded()
_VARIABLE = contextvars.ContextVar("variable", default=FRAME)
SHARED = {
    "the array itself": (AGES, AGES),
    "in a list": (AGES, [[1, 2], [AGES]]),
    "in an object": (AGES, Holder({"a": (AGES,)})),
    "a part in a dict": ({"age": AGES, "visits": COUNTS}, COUNTS),
    "a part in a tuple": ((TABLE, AGES), AGES),
    "a view": (AGES, AGES[5:10]),
    "a reversed view": (AGES, AGES[::-1]),
    "a view passed": (AGES[50:], AGES),
    "another view of one array": (TABLE[:, 0], TABLE[:, 1]),
    "a transposed array": (TABLE, TABLE.T),
    "the bytes of an array": (AGES, memoryview(AGES)),
    "other numbers in the same bytes": (AGES, AGES.view(np.int64)),
    "a structured array's field": (FRAME[["age", "visits"]].to_records(), AGES),
    "a column of a frame": (FRAME["age"], FRAME),
    "a frame of a column": (FRAME, FRAME["visits"]),
    "a column's array": (FRAME, FRAME["income"].to_numpy()),
    "columns of a frame": (FRAME[["age", "visits"]], FRAME),
    "a frame of columns": (FRAME, FRAME[["age", "visits"]]),
    "strings of a frame": (FRAME, FRAME["name"]),
    "an index": (FRAME, FRAME.index),
    "a frame's rows": (FRAME, FRAME.iloc[3:50]),
    "a frame in groups": (FRAME, FRAME.groupby("visits")),
    "a category's codes": (FRAME["name"].astype("category"), FRAME["name"].astype("category").cat.codes),
    "an index of two levels": (FRAME.set_index(["name", "visits"]), FRAME.reset_index().set_index(["name"])),
    "numbers that may be missing": (FRAME["visits"].astype("Int64"), FRAME["visits"]),
    "the same, stored otherwise": (FRAME["age"], FRAME["age"].astype("double[pyarrow]")),
    "dates": (
        pd.Series(pd.to_datetime(COUNTS * 7 + 3, unit="D")),
        pd.to_datetime(COUNTS * 7 + 3, unit="D").to_numpy(),
    ),
    "a list of records": (PEOPLE, PEOPLE),
    "some of the records": (PEOPLE, PEOPLE[:50]),
    "one of the records": (PEOPLE, {"first": PEOPLE[7]}),
    "what is in a record": (PEOPLE, PEOPLE[9]["tags"]),
    "all records, some passed": (PEOPLE[:150], PEOPLE),
    "every second record": (PEOPLE[::2], tuple(PEOPLE)),
    "one of the rows": (ROWS, [ROWS[3], (1.0, 2)]),
    "objects": ([Holder(i) for i in AGES], None),
    "an array of records": (np.array(PEOPLE, dtype=object), PEOPLE[:20]),
    "an iterator": (PEOPLE, iter(PEOPLE)),
    "a view of values": ({"age": AGES}, {"age": AGES}.values()),
    "a queue": (AGES, collections.deque([AGES])),
    "a weak reference": (AGES, weakref.ref(AGES)),
    "a bound method": (AGES, AGES.mean),
    "a partial": (AGES, functools.partial(max, AGES)),
    "a generator": (AGES, (i for i in AGES)),
    "the generator of a function": (PEOPLE, _lines(PEOPLE)),
    "a flat view": (AGES, AGES.flat),
    "a cache": (FRAME, _loaded),
    "a context variable": (FRAME, _VARIABLE),
    "in what cannot be encoded": (AGES, Closed(AGES)),
    "beside what cannot be encoded": (AGES, [Closed(1), AGES]),
}

COPIES = {
    "an array": (AGES, AGES.copy()),
    "as a list": (AGES, AGES.tolist()),
    "as a tuple": (AGES, tuple(AGES.tolist())),
    "as a set": (AGES, set(AGES.tolist())),
    "in a dict by name": (AGES, dict(zip(NAMES, AGES.tolist(), strict=True))),
    "in single precision": (AGES, AGES.astype("f4")),
    "in half precision": (AGES, AGES.astype("f2")),
    "as integers": (AGES, AGES.astype(int)),
    "rounded": (AGES, AGES.round()),
    "sorted": (AGES, np.sort(AGES)),
    "shuffled integers": (COUNTS, RNG.permutation(COUNTS)),
    "bytes": (AGES, AGES.tobytes()),
    "a pickle": (AGES, pickle.dumps({"a": AGES})),
    "an array of bytes": (AGES, bytearray(AGES.tobytes())),
    "array.array": (AGES, array.array("d", AGES)),
    "ctypes": (AGES, (ctypes.c_double * N)(*AGES)),
    "some": (AGES, AGES[AGES > 50]),
    "some passed": (AGES[AGES > 50], AGES.tolist()),
    "the first integers": (COUNTS, COUNTS[:60].copy()),
    "the first rows": (TABLE, TABLE[:50].copy()),
    "a column of a table": (TABLE, TABLE[:, 1].copy()),
    "a table of columns": (TABLE[:, 1].copy(), TABLE),
    "a frame": (FRAME, FRAME.copy()),
    "a column of a frame": (FRAME, FRAME["visits"].copy()),
    "a frame's first rows": (FRAME, FRAME.head(60).copy()),
    "a frame of numbers": (FRAME[["age", "income"]], FRAME[["age", "income"]].to_numpy()),
    "records": (FRAME, FRAME.to_dict("records")),
    "lists": (FRAME, FRAME.to_dict("list")),
    "strings": (FRAME["name"], list(NAMES)),
    "records of records": (PEOPLE, copy.deepcopy(PEOPLE)),
    "some of them": (PEOPLE, copy.deepcopy(PEOPLE[:80])),
    "rows": (ROWS, [tuple(row) for row in map(list, ROWS)]),
    "objects": ([Holder(a) for a in AGES], [Holder(a) for a in AGES]),
    "twice the numbers": (COUNTS, 2 * COUNTS),
    "standardized": (TABLE, (TABLE - TABLE.mean(axis=0)) / TABLE.std(axis=0)),
    "logarithms": (AGES, np.log(AGES)),
    "the opposite": (AGES, -AGES),
    "arrays": ([np.array([a, 1.0]) for a in AGES], [np.array([a, 1.0]) for a in AGES]),
    "a list of few": ([1.5, 7.0, 2.25, 9.5, 4.0, 3.0, 8.75, 0.5], (1.5, 7.0, 2.25, 9.5, 4.0, 3.0, 8.75, 0.5)),
}
SHARED["objects"] = (OBJECTS := [Holder(i) for i in AGES], {"a": OBJECTS[3]})

OTHERS = {
    "nothing": (AGES, 1),
    "other numbers": (AGES, RNG.uniform(18, 90, N)),
    "positions": (FRAME.reset_index(), np.arange(N)),
    "a grid": (COUNTS, np.linspace(0, 40, 401)),
    "the same range": (np.arange(N), np.arange(N)),
    "constants": (np.zeros(N), [0.0] * N),
    "equal constants": (np.ones(N), np.ones(N)),
    "a table of codes": (COUNTS + 1000, dict.fromkeys(range(1000, 1050), 0.5)),
    "names of groups": (["F", "M"] * 100, ["F", "M", "D", "U", "A", "B", "C", "E"]),
    "words": (PEOPLE, [f"word {i}" for i in range(N)]),
    "few": ([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]),
    "an empty array": (AGES, np.array([])),
    "an empty array of it": (AGES, AGES[:0].copy()),
    "zeros and ones": (RNG.integers(0, 2, N), RNG.integers(0, 2, N)),
    "the edges of bins": (AGES, (18, 25, 35, 45, 55, 65, 75, 90)),
    "names of columns": (
        {f"column {i}": RNG.uniform(0, 1, N) for i in range(12)},
        [f"column {i}" for i in range(12)],
    ),
    "names of a frame": (
        pd.DataFrame({f"column {i}": RNG.uniform(0, 1, N) for i in range(12)}),
        tuple(f"column {i}" for i in range(12)),
    ),
    "sorted numbers": (np.sort(AGES), np.sort(RNG.uniform(0, 1, N))),
    "an enum": (PEOPLE, types.SimpleNamespace(a=1)),
    "other records": (PEOPLE, [{"age": float(a), "name": "x"} for a in RNG.uniform(18, 90, N)]),
}


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
class TestReachable:
    """A function that can reach its private data could use it during calibration."""

    @for_each("case", SHARED)
    def test_what_shares_memory_or_objects_is_refused(self, case):
        """The private numbers would count as public ones, and be released without noise."""
        assert found(*SHARED[case])

    @for_each("case", COPIES)
    def test_copies_are_refused(self, case):
        """A copy reveals as much as the data itself."""
        assert found(*COPIES[case])

    @for_each("case", OTHERS)
    def test_public_values_are_not_refused(self, case):
        """A function that uses public numbers would be refused as if it used the data."""
        assert not found(*OTHERS[case])


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
    made = sparse.random_array((N, 5), density=0.5, rng=np.random.default_rng(1), format="csr")
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


PROMISE = {"epsilon": 1, "gamma": 0.3, "workers": "inline", "store": None, "seed": 1}
P = samplers.uniform(0, 100)
CALLS: list[int] = []


class TestCalls:
    """Nothing is evaluated before it is known that the data cannot be reached."""

    def test_a_column_of_a_global_frame_is_refused_before_calibration(self):
        """The frame's other columns, and an error about them, would be released without noise."""
        frame, calls = FRAME.reset_index(), collections.Counter()

        @privatize(sampler=P, **PROMISE)
        def mean(ages):
            calls["now"] += 1
            raise ValueError(frame["income"].max())

        with pytest.raises(DataError, match="can be reached from mean") as caught:
            mean(frame["age"])
        assert not calls
        assert str(frame["income"].max()) not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None

    def test_what_is_remembered_is_refused_too(self):
        """A function whose estimate is known may be called with a dataset that it can reach."""
        own = RNG.uniform(0, 100, N)

        @privatize(sampler=P, **PROMISE)
        def shifted(ages):
            return ages.mean() - own[0]

        for _ in range(3):
            shifted(RNG.uniform(0, 100, N))
        for data in (own, own.copy(), own.tolist()):
            with pytest.raises(DataError, match="can be reached"):
                shifted(data)

    def test_values_that_never_change_are_compared_too(self):
        """A tuple cannot change, so it would not be compared with the dataset of a later call."""
        own = tuple(RNG.uniform(0, 100, 30).tolist())

        @privatize(sampler=P, **PROMISE)
        def shifted(ages):
            return np.mean(ages) - own[0]

        for _ in range(3):
            shifted(RNG.uniform(0, 100, 30))
        with pytest.raises(DataError, match="can be reached"):
            shifted(np.array(own))

    def test_values_that_were_put_into_installed_modules_are_compared_too(self, monkeypatch):
        """Private data that somebody put into a library's module would count as the library's."""
        monkeypatch.setattr(np, "kept_here", own := RNG.uniform(0, 100, 30), raising=False)

        @privatize(sampler=P, **PROMISE)
        def shifted(ages):
            return ages.mean() - np.kept_here[0]

        for _ in range(3):
            shifted(RNG.uniform(0, 100, 30))
        with pytest.raises(DataError, match="can be reached"):
            shifted(own)

    @for_each("place", ["argument", "default", "instance", "pair", "batch", "sampler", "mechanism"])
    def test_every_part_of_a_call_is_compared(self, place):
        """Whatever takes part in the calibration could use the private data there."""
        own = RNG.uniform(0, 100, N)
        part = own[:50]

        class Service:
            part = None

            @privatize(sampler=P, **PROMISE)
            def mean(self, ages):
                return ages.mean() + (0 if self.part is None else self.part[0])

        def mean(ages, other=None):
            return ages.mean()

        def defaulted(ages, other=part):
            return ages.mean()

        def draw(n, rng):
            return rng.choice(part, n)

        def pair(data, position, replacement):
            return mean(data), mean(data) + part[0] / 1e9

        def stack(data):
            return data.mean(axis=-1) + 0 * part[0]

        def score(ages, answer):
            return -abs(ages.mean() - answer)

        service = Service()
        service.part = part
        private = privatize(sampler=P, **PROMISE)(mean)
        act = {
            "argument": lambda: private(own, {"a": [part]}),
            "default": lambda: privatize(sampler=P, **PROMISE)(defaulted)(own),
            "instance": lambda: service.mean(own),
            "pair": lambda: private.replace(pair=pair)(own),
            "batch": lambda: private.replace(batch=stack)(own),
            "sampler": lambda: private.replace(sampler=draw)(own),
            "mechanism": lambda: privatize(
                sampler=P, mechanism=Exponential(responses=tuple(own.tolist())), **PROMISE
            )(score)(own),
        }[place]
        with pytest.raises(DataError, match="can be reached"):
            act()

    def test_nothing_is_drawn_from_p_before(self):
        """An error of a P that was made from the private data would reveal it."""
        own = RNG.uniform(0, 100, N)

        def draw(n, rng):
            raise ValueError(own.max())

        with pytest.raises(DataError, match="can be reached") as caught:
            privatize(sampler=draw, **PROMISE)(np.mean)(own)
        assert str(own.max()) not in str(caught.value)

    def test_sealed_data_that_is_also_a_global_is_refused(self):
        """A seal is of no use while the data itself is a global."""
        frame = FRAME.copy()

        @privatize(sampler=lambda n, rng: {"age": rng.uniform(0, 100, n)}, **PROMISE)
        def mean(data):
            return data["age"].mean() - frame["age"].mean()

        with pytest.raises(DataError, match="can be reached"):
            mean(seal({"age": frame["age"].to_numpy()}, name="staff"))

    @for_each(
        ("public", "data"),
        [
            (PEOPLE[:50], PEOPLE),
            (copy.deepcopy(PEOPLE[:50]), PEOPLE),
            (PEOPLE, PEOPLE[10:60]),
            (FRAME, FRAME["age"]),
            (FRAME[:60].copy(), FRAME),
            (FRAME[FRAME["age"] > 60], FRAME),
            (FRAME["income"], FRAME[["age", "income"]]),
            (AGES[:60], AGES),
            (AGES, AGES[:60].tolist()),
            (COUNTS[:60].copy(), COUNTS),
        ],
    )
    def test_bootstrapping_some_of_the_people_is_refused(self, public, data):
        """P would be made from the very people whom the noise must protect, or from some of them."""
        made = samplers.bootstrap(public)
        nested = [made, samplers.mixture([made, made], [0.5, 0.5]), made.fixed(size=5)]
        assert all(is_private(each, data) for each in nested)
        if not isinstance(public, list | pd.DataFrame):
            assert is_private(samplers.table(a=made, b=samplers.uniform(0, 1)), data)


PRICES = np.round(np.random.default_rng(5).uniform(1, 100, 500), 2)
SHOPS = pd.DataFrame(np.random.default_rng(6).uniform(5, 55, (80, 2)), columns=["north", "east"])
STATES = [f"state {i:02d}" for i in range(50)]
DOSES = [0.25, 0.5, 1.5, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 20.0]
CENTS = np.round(RNG.normal(75, 15, 600), 2)


def _chosen(values, n, seed=0):
    return np.random.default_rng(seed).choice(np.asarray(values), n)


CODE_BOOKS = {
    "purchases at listed prices": (_chosen(PRICES, 200), PRICES),
    "fewer of them": (_chosen(PRICES, 100), PRICES),
    "many more": (_chosen(PRICES, 20_000), PRICES),
    "in a frame": (pd.DataFrame({"price": _chosen(PRICES, 200)}), pd.DataFrame({"price": PRICES})),
    "a list of prices": (_chosen(PRICES, 200).tolist(), PRICES.tolist()),
    "prices by product": (_chosen(PRICES, 200), dict(enumerate(PRICES.tolist()))),
    "visits to shops": (SHOPS.iloc[_chosen(range(80), 300)].reset_index(drop=True), SHOPS),
    "few visits": (SHOPS.iloc[_chosen(range(80), 90)].reset_index(drop=True), SHOPS),
    "visits to some of them": (SHOPS.iloc[_chosen(range(80), 300)].to_numpy(), SHOPS.iloc[::2].to_numpy()),
    "every state every year": (STATES * 10, STATES),
    "every shop every day": (np.tile(SHOPS["north"], 10), SHOPS["north"].to_numpy()),
    "doses in turn": (np.tile(DOSES, 20), DOSES),
    "codes in turn": (np.tile([3, 17, 4, 99, 23, 42, 8, 15], 25), (3, 17, 4, 99, 23, 42, 8, 15)),
    "people of states": (_chosen(STATES, 300), dict.fromkeys(STATES, 0.5)),
    "sorted and with fewer digits": (AGES, np.sort(AGES).round(2)),
    "few constants": (CENTS, (0.1, 0.7, 1.3, 2.2, 3.1, 4.7, 5.9, 7.4, 9.6)),
}

PARTS = {
    "eight in a row": (AGES, AGES[40:48].copy()),
    "the first ten of a frame": (FRAME, FRAME.head(10).copy()),
    "ten as a list": (AGES, AGES[:10].tolist()),
    "pieces of ten": (AGES, [piece.copy() for piece in np.split(AGES, 20)]),
    "the last eight": (FRAME["income"], FRAME["income"].tail(8).tolist()),
    "ten passed of all": (AGES[20:30].copy(), AGES.copy()),
    "three records of three numbers": (TABLE, TABLE[:3].copy()),
    "ten records": (PEOPLE, copy.deepcopy(PEOPLE[10:20])),
    "eight in a row, rounded to cents": (CENTS, CENTS[40:48].copy()),
    "every value once, rounded to cents": (CENTS, np.unique(CENTS)),
    "some, rounded to cents": (CENTS, CENTS[CENTS > 80]),
    "some passed, rounded to cents": (CENTS[CENTS > 80], CENTS.tolist()),
    "rounded to cents, in another order": (CENTS, RNG.permutation(CENTS)),
    "half of the integers": (COUNTS, COUNTS[:100].copy()),
    "half of the states": (_chosen(STATES, 300), _chosen(STATES, 300)[:150].tolist()),
    "states in another order": (_chosen(STATES, 300), sorted(_chosen(STATES, 300).tolist())),
}


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
class TestCodeBooks:
    """A public list that private values are chosen from is no copy of them; a few records in a row are."""

    @for_each("case", CODE_BOOKS)
    def test_lists_that_values_are_chosen_from_are_public(self, case):
        """A function that looks prices up in a public list would be refused."""
        assert not found(*CODE_BOOKS[case])

    @for_each("case", PARTS)
    def test_parts_of_columns_are_refused(self, case):
        """A few private records that somebody has copied would count as public ones."""
        assert found(*PARTS[case])

    @for_each(
        ("sampler", "n"),
        [(samplers.categorical(PRICES[:k].tolist()), n) for k in (10, 30, 50) for n in (20, 40, 200, 2000)]
        + [(samplers.choice(SHOPS["north"].tolist(), p=[1 / 80] * 80), 60)]
        + [(samplers.table(p=samplers.categorical(PRICES[:50].tolist()), w=P), n) for n in (40, 200)],
    )
    def test_data_has_values_that_p_was_declared_with(self, sampler, n):
        """Every honest dataset is made of P's own values, and would be refused for it."""

        @privatize(sampler=sampler, **PROMISE)
        def mean(data):
            return np.mean(data["p"].astype(float) if hasattr(data, "columns") else data)

        assert np.isfinite(mean(sampler.draw(n, np.random.default_rng(3))))

    @pytest.mark.parametrize("order", [STATES, STATES[::-1]])
    @pytest.mark.parametrize("wrap", [lambda p: p, lambda p: samplers.mixture([p, p], [0.5, 0.5])])
    def test_data_may_have_every_category_once(self, order, wrap):
        """A table with one row for each state, in whatever order, would be refused as a copy of P."""
        part = samplers.categorical(STATES)
        table = samplers.table(state=part, w=P)

        @privatize(sampler=wrap(table), **PROMISE)
        def mean(data):
            return data["w"].mean()

        assert np.isfinite(mean(pd.DataFrame({"state": order, "w": RNG.uniform(0, 100, 50)})))

    def test_measured_numbers_are_no_categories(self):
        """A P that is made from the private measurements would count as public."""
        own = RNG.uniform(0, 100, 60)
        for values in (own.tolist(), np.sort(own).tolist()):

            @privatize(sampler=samplers.categorical(values), **PROMISE)
            def mean(data):
                return np.mean(data)

            with pytest.raises(DataError, match="can be reached"):
                mean(own)

    def test_bootstrapped_records_are_no_list_of_values(self):
        """P would be made from a list of all private values, as if that list were public."""
        data = _chosen(AGES, 300)
        assert is_private(samplers.bootstrap(np.unique(data)), data)


COPY = {"somebody's name": FRAME.rename(columns={"age": "secret column"})}


def _helper(ages):
    return len(COPY)


class TestMessage:
    """The message says where the data was found, and reveals nothing about anybody."""

    def test_it_names_the_variables_on_the_way(self):
        """A function has many globals, and the user would have to search all of them for the data."""
        own = {"somebody's name": [AGES.copy()]}

        def by_global(ages):
            return np.mean(ages) + _helper(ages)

        def by_closure(ages):
            return np.mean(ages) + len(own)

        def by_default(ages, other=own):
            return np.mean(ages)

        ways = {by_global: "_helper -> COPY", by_closure: "own", by_default: "its defaults"}
        for raw, way in ways.items():
            with pytest.raises(DataError, match=f"can be reached .* through {way}") as caught:
                privatize(sampler=P, **PROMISE)(raw)(AGES)
            text = str(caught.value)
            assert "somebody" not in text and "secret" not in text and str(AGES[0])[:6] not in text
