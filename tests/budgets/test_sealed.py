"""Only private functions can open sealed data, and it shows no value by accident."""

import contextlib
import copy
import dataclasses
import decimal
import functools
import gc
import inspect
import io
import json
import logging
import multiprocessing
import operator
import pickle
import pprint
import pydoc
import subprocess
import sys
import traceback
import typing
import weakref
from collections import deque

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from privatize import Budget, Sealed, audit, private_source, privatize, samplers, seal
from privatize.budgets import sealed as sealed_module
from privatize.errors import (
    ArgumentError,
    CalibrationError,
    DataError,
    ExecutionError,
    PrivateRunError,
    PrivatizeError,
    SealedError,
    SettingsError,
)
from tests.cases import for_each

SECRET = 0.123456789
SHOWN = "123456"  # digits of it that every way of printing a number shows
UNIT = samplers.uniform(0, 1)
PROMISE = {"epsilon": 1, "gamma": 0.2, "store": None}
USAGE = r"Only private functions can open it, as their dataset: decorate a function with @privatize\(\.\.\.\)"


def made(**settings):
    """Return a decorator with a cheap promise."""
    return privatize(**PROMISE | settings)


def numbers(n=50):
    return np.full(n, SECRET)


@pytest.fixture
def sealed():
    return seal(numbers(), name="people", version="3", sampler=UNIT)


def average(x):
    return float(np.mean(x))


def locals_of(error):
    """Return an error with the variables of all frames that it passed through, as a crash report shows it."""
    shown = [str(error)]
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for name, value in frame.f_locals.items():
            try:
                shown.append(f"{name} = {value!r}")
            except AttributeError:  # an object of another library that was not finished
                shown.append(name)
    return "\n".join(shown)


def refused(act):
    """Check that something raises a SealedError with the remedy, and shows nothing of the data."""
    with pytest.raises(SealedError, match=USAGE) as caught:
        act()
    assert SHOWN not in locals_of(caught.value)
    assert "'people'" in str(caught.value)


def as_cell(sealed, **options):
    """Return a Series of one sealed object, or the refusal of older pandas, which asks cells for arrays."""
    try:
        return pd.Series([sealed], **options)
    except SealedError as error:
        return error


# --- what a sealed object shows ---------------------------------------------------------------


def test_public_facts(sealed):
    """A user sees what the data is called, how many records there are, and their schema, and no more."""
    assert (sealed.name, sealed.version, sealed.n) == ("people", "3", 50)
    assert sealed.schema == ["array", "<f8", []]
    assert repr(sealed) == str(sealed) == f"{sealed}" == "<sealed 'people' version '3': numpy ndarray, n=50>"
    assert repr(seal([1, 2], name="a")) == "<sealed 'a': list, n=2>"
    assert repr(seal(pd.DataFrame({"a": [1]}), name="a")) == "<sealed 'a': pandas DataFrame, n=1>"
    assert f"{sealed!r:>60}".endswith("n=50>")


def test_the_length(sealed):
    """A user would not learn that the number of records is public, and where it is."""
    with pytest.raises(SealedError, match=r"len\(\) was tried. The number of records is public, as .n"):
        len(sealed)


def test_public_facts_have_no_values():
    """Strings in the data, its categories and its index do not appear among its public facts."""
    texts = ["SECRET-1", "SECRET-2"]
    frames = [
        pd.DataFrame({"a": texts}),
        pd.DataFrame({"a": pd.Categorical(texts)}),
        pd.DataFrame({"a": [1, 2]}, index=texts),
        pl.DataFrame({"a": texts}),
        pl.DataFrame({"a": pl.Series(texts, dtype=pl.Categorical)}),
        pa.table({"a": texts}),
        {"a": texts},
        texts,
        np.array(texts),
    ]
    for frame in frames:
        made = seal(frame, name="a")
        assert "SECRET" not in f"{made} {made.schema} {made!r}"


@pytest.mark.parametrize(
    "show",
    [
        print,
        repr,
        str,
        "{}".format,
        "{!r:>70}".format,
        "%s".__mod__,
        pprint.pformat,
        lambda s: pprint.pformat({"a": [s, (s,)]}),
        lambda s: json.dumps({"a": s}, default=str),
        lambda s: as_cell(s, dtype=object),
        lambda s: logging.LogRecord("a", 20, "f", 1, "%s and %r", (s, s), None).getMessage(),
        lambda s: repr(dataclasses.make_dataclass("D", ["s"])(s)),
        lambda s: repr(functools.partial(print, s)),
        lambda s: [repr(weakref.ref(s)), repr(weakref.proxy(s))],
    ],
)
def test_printing_and_logging(sealed, show, capsys):
    """Code that prints or logs sealed data shows its name, not the data."""
    shown = show(sealed)
    assert SHOWN not in f"{shown} {shown!r} {capsys.readouterr().out}"


def test_notebook(sealed):
    """A notebook asks for richer views, gets none, and shows the repr."""
    names = ("html", "markdown", "png", "svg", "jpeg", "latex", "json", "javascript", "mimebundle", "pretty")
    for name in names:
        assert not hasattr(sealed, f"_repr_{name}_")
    assert not hasattr(sealed, "_ipython_display_")
    assert not hasattr(sealed, "_ipython_canary_method_should_not_exist_")


def test_traceback_with_locals(sealed):
    """An error report that lists every frame's variables shows the sealed object's name only."""

    def report(people):
        return people.mean() + 1

    with pytest.raises(SealedError) as caught:
        report(sealed)
    shown = locals_of(caught.value)
    assert "<sealed 'people' version '3'" in shown and SHOWN not in shown


def test_traceback_of_a_failed_seal():
    """A loader whose result cannot be sealed fails with a traceback that shows nothing of it."""

    @private_source(name="people")
    def load():
        return np.array(SECRET)

    with pytest.raises(DataError, match="0-dimensional") as caught:
        load()
    assert SHOWN not in locals_of(caught.value)


def test_unfinished_object():
    """A sealed object without content refuses like any other, instead of recursing without end."""
    empty = Sealed.__new__(Sealed)
    with pytest.raises((SealedError, AttributeError)):
        empty.mean()
    with contextlib.suppress(SealedError, AttributeError):
        assert SHOWN not in repr(empty)


def test_assertion_report(sealed, tmp_path):
    """A failing test shows sealed data by name in its report."""
    file = tmp_path / "test_it.py"
    file.write_text(
        "import numpy as np\nfrom privatize import seal\n"
        f"people = seal(np.full(9, {SECRET}), name='people')\n"
        "def test_a():\n    assert isinstance(people, int)\n"
        "def test_b():\n    local = people\n    assert local == 1\n"
        "def test_c():\n    assert people in [1, 2]\n"
    )
    command = [sys.executable, "-m", "pytest", "-l", "-vv", "--full-trace", "-p", "no:cacheprovider"]
    command += ["-c", str(tmp_path / "none.ini"), "--rootdir", str(tmp_path), str(file)]
    (tmp_path / "none.ini").write_text("[pytest]\n")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "3 failed" in done.stdout, done.stdout[-2000:] + done.stderr
    # The line that makes the data is the user's own source code.
    shown = "\n".join(line for line in done.stdout.splitlines() if "np.full" not in line)
    assert SHOWN not in shown and "<sealed 'people'" in shown


def test_tools_that_inspect_modules(sealed):
    """Doctest, inspect and autocompletion do not fail on sealed data in a module."""
    import doctest
    import types

    module = types.ModuleType("some_module", "Docs.")
    module.people = sealed
    doctest.DocTestFinder().find(module)
    assert inspect.unwrap(sealed) is sealed
    assert not hasattr(sealed, "__wrapped__") and getattr(sealed, "values", None) is None


# --- what is refused --------------------------------------------------------------------------


OTHERS = {
    "int": 2,
    "float": 1.5,
    "list": [1.0],
    "array": np.ones(50),
    "numpy scalar": np.float64(2),
    "0-d array": np.array(2.0),
    "series": pd.Series(np.ones(50)),
    "frame": pd.DataFrame({"a": np.ones(50)}),
    "index": pd.Index(np.ones(50)),
    "None": None,
}
BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "iadd",
    "isub",
    "imul",
    "itruediv",
    "ifloordiv",
    "imod",
    "ipow",
    "imatmul",
    "iand",
    "ior",
    "ixor",
    "ilshift",
    "irshift",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BINARY)
def test_operators(sealed, name):
    """Arithmetic and comparison with anything, on either side, is refused: its result would be a leak."""
    act = getattr(operator, name)
    for other in [*OTHERS.values(), sealed]:
        refused(lambda other=other: act(sealed, other))
        theirs = copy.copy(other) if other is not sealed else other
        if name.strip("i_") in ("and", "or", "xor") and isinstance(other, pd.Series | pd.Index):
            with pytest.raises(TypeError) as caught:  # pandas may refuse first, in its own words
                act(theirs, sealed)
            assert SHOWN not in locals_of(caught.value)
        else:
            refused(lambda theirs=theirs: act(theirs, sealed))


@pytest.mark.parametrize("name", BINARY[:18])
def test_operators_of_polars(sealed, name):
    """Polars raises errors of its own for unknown types; they show nothing of the data."""
    act = getattr(operator, name)
    for other in (pl.Series("a", np.ones(50)), pl.DataFrame({"a": np.ones(50)}), pl.col("a")):
        refused(lambda other=other: act(sealed, other))
        with pytest.raises((TypeError, pl.exceptions.PolarsError)) as caught:
            act(other, sealed)
        assert SHOWN not in str(caught.value)


ACCESSES = {
    "attribute": lambda s: s.mean,
    "method": lambda s: s.mean(),
    "values": lambda s: s.values,
    "shape": lambda s: s.shape,
    "T": lambda s: s.T,
    "dict": lambda s: s.__dict__,
    "dir": dir,
    "members": inspect.getmembers,
    "index": lambda s: s[0],
    "slice": lambda s: s[:],
    "column": lambda s: s["age"],
    "assign": lambda s: operator.setitem(s, 0, 1),
    "delete": lambda s: operator.delitem(s, 0),
    "set attribute": lambda s: setattr(s, "x", 1),
    "set fact": lambda s: setattr(s, "name", 1),
    "set class": lambda s: setattr(s, "__class__", object),
    "delete attribute": lambda s: delattr(s, "name"),
    "iter": iter,
    "next": next,
    "list": list,
    "tuple": tuple,
    "set": set,
    "sorted": sorted,
    "sum": sum,
    "max": max,
    "star": lambda s: [*s],
    "dict()": dict,
    "unpack": lambda s: operator.itemgetter(0, 1)(s),
    "zip": lambda s: list(zip(s, s, strict=True)),
    "enumerate": enumerate,
    "map": lambda s: map(float, s),
    "reversed": reversed,
    "len": len,
    "in": lambda s: SECRET in s,
    "in a list": lambda s: s in [1],
    "index in a list": lambda s: [1].index(s),
    "hash": hash,
    "in a set": lambda s: {s},
    "key": lambda s: {s: 1},
    "bool": bool,
    "not": operator.not_,
    "and": lambda s: s and 1,
    "int": int,
    "float": float,
    "complex": complex,
    "bytes": bytes,
    "operator.index": operator.index,
    "round": round,
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": abs,
    "invert": operator.invert,
    "divmod": lambda s: divmod(s, 1),
    "rdivmod": lambda s: divmod(1, s),
    "pow": lambda s: pow(s, 2),
    "call": lambda s: s(),
    "with": lambda s: s.__enter__(),
    "open": open,
    "pickle": pickle.dumps,
    "pickle 0": lambda s: pickle.dumps(s, 0),
    "pickle in a list": lambda s: pickle.dumps([s]),
    "cloudpickle": cloudpickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy in a dict": lambda s: copy.deepcopy({"a": [s]}),
    "asdict": lambda s: dataclasses.asdict(dataclasses.make_dataclass("D", ["s"])(s)),
    "lru_cache": lambda s: functools.lru_cache(lambda x: 1)(s),
    "weak key": lambda s: weakref.WeakKeyDictionary({s: 1}),
    "format attribute": "{0.mean}".format,
    "format item": "{0[0]}".format,
    "json list": lambda s: json.dumps(s, default=list),
    "sizeof": sys.getsizeof,
    "asarray": np.asarray,
    "array": np.array,
    "array of": lambda s: np.array([s, s]),
    "object array": lambda s: np.array([s], dtype=object),
    "asanyarray": np.asanyarray,
    "mean": np.mean,
    "median": np.median,
    "histogram": np.histogram,
    "exp": np.exp,
    "add": lambda s: np.add(s, 1),
    "add out": lambda s: np.add(1, 1, out=s),
    "reduce": lambda s: np.add.reduce(s),
    "concatenate": lambda s: np.concatenate([s, s]),
    "concatenate one": lambda s: np.concatenate([np.ones(2), s]),
    "stack": lambda s: np.column_stack([s, s]),
    "where": lambda s: np.where(np.ones(50) > 0, s, 0),
    "full": lambda s: np.full(3, s),
    "copyto": lambda s: np.copyto(np.ones(50), s),
    "dot": lambda s: np.dot(s, s),
    "einsum": lambda s: np.einsum("i,i", s, s),
    "percentile": lambda s: np.percentile(s, 50),
    "unique": np.unique,
    "shape of": np.shape,
    "size of": np.size,
    "ndim of": np.ndim,
    "norm": np.linalg.norm,
    "save": lambda s: np.save(io.BytesIO(), s),
    "savetxt": lambda s: np.savetxt(io.StringIO(), s),
    "dlpack": np.from_dlpack,
    "choice": lambda s: np.random.default_rng(0).choice(s),
    "vectorize": lambda s: np.vectorize(float)(s),
    "pd.DataFrame": pd.DataFrame,
    "pd.DataFrame of a column": lambda s: pd.DataFrame({"a": s}),
    "pd.DataFrame of a row": lambda s: pd.DataFrame([s]),
    "pd.Series": pd.Series,
    "pd.Index": pd.Index,
    "pd.array": pd.array,
    "pd.assign": lambda s: pd.DataFrame({"a": [1]}).assign(b=s),
    "pd.isin": lambda s: pd.Series([0.5]).isin(s),
    "pd.to_numeric": pd.to_numeric,
    "pd.isna": pd.isna,
    "pl.from_dataframe": pl.from_dataframe,
    "pa.table": pa.table,
    "pa.table of a column": lambda s: pa.table({"a": s}),
    "pa.array": pa.array,
    "statistics": lambda s: __import__("statistics").mean(s),
    "fsum": lambda s: __import__("math").fsum(s),
    "floor": lambda s: __import__("math").floor(s),
    "describe": lambda s: __import__("scipy.stats").stats.describe(s),
    "__array__": lambda s: s.__array__(),
    "__array_interface__": lambda s: s.__array_interface__,
    "__dataframe__": lambda s: s.__dataframe__(),
    "__arrow_c_stream__": lambda s: s.__arrow_c_stream__(),
    "__arrow_c_array__": lambda s: s.__arrow_c_array__(),
    "__dlpack__": lambda s: s.__dlpack__(),
    "__reduce_ex__": lambda s: s.__reduce_ex__(4),
    "__getstate__": lambda s: s.__getstate__(),
}
if hasattr(pl.DataFrame, "__arrow_c_stream__"):  # earlier versions of polars refuse by themselves
    ACCESSES |= {"pl.DataFrame": pl.DataFrame, "pl.Series": pl.Series}


@pytest.mark.parametrize("name", ACCESSES)
def test_access(sealed, name):
    """Every way of reading sealed data, or making a copy, ends with the same error and remedy."""
    refused(lambda: ACCESSES[name](sealed))


@pytest.mark.parametrize(
    "act",
    [
        json.dumps,
        lambda s: json.dumps(s, default=vars),
        vars,
        memoryview,
        lambda s: dict(**s),
        lambda s: pd.concat([pd.Series([1.0]), s]),
        lambda s: pd.merge(pd.DataFrame({"a": [1]}), s),
        pa.scalar,
        lambda s: pa.array([s]),
        pl.DataFrame,
        pl.Series,
        lambda s: pl.lit(s),
        "%d".__mod__,
        lambda s: f"{s:.3f}",
        lambda s: ",".join([s]),
        lambda s: operator.setitem(np.ones(2), 0, s),
        lambda s: np.array([1.0]).searchsorted(s),
        lambda s: pl.DataFrame({"a": [1.0]}).join(s, on="a"),
        lambda s: issubclass(s, int),
    ],
)
def test_refused_by_other_libraries(sealed, act):
    """If another library refuses first, its message shows nothing of the data."""
    with pytest.raises((TypeError, ValueError)) as caught:
        act(sealed)
    assert SHOWN not in str(caught.value)


def test_inside_a_cell(sealed):
    """A frame that takes the sealed object as one cell shows its name, and nothing else."""
    for container in (as_cell(sealed), pl.Series([sealed]), pl.DataFrame({"a": [sealed]}), [sealed]):
        assert SHOWN not in repr(container)


def test_protocols(sealed):
    """Checks of its type, protocols or pattern show at most its class."""
    for kind in (typing.Iterable, typing.Sized, typing.SupportsFloat, typing.Mapping, typing.Sequence, str):
        assert isinstance(sealed, kind) in (True, False)

    @typing.runtime_checkable
    class HasMean(typing.Protocol):
        def mean(self): ...

    with contextlib.suppress(SealedError):  # the check itself may be refused
        assert not isinstance(sealed, HasMean)
    match sealed:
        case [*_] | {"a": _}:
            pytest.fail("it was taken apart")
        case _:
            pass


def test_help(sealed):
    """help() shows at most the documentation of the class."""
    try:
        shown = pydoc.render_doc(sealed)
    except SealedError as error:
        shown = str(error)
    assert SHOWN not in shown
    for _, value in inspect.getmembers_static(type(sealed)):
        assert SHOWN not in repr(value)


def test_sklearn(sealed):
    """An estimator cannot be fitted to sealed data."""
    validation = pytest.importorskip("sklearn.utils.validation")
    refused(lambda: validation.check_array(sealed))


def test_slots_have_no_data(sealed):
    """Tools that look through an object's attributes find no data."""
    facts = [object.__getattribute__(sealed, name) for name in Sealed.__slots__ if name != "__weakref__"]
    assert not any(isinstance(part, np.ndarray) for fact in facts for part in gc.get_referents(fact, [fact]))
    assert not any(isinstance(part, np.ndarray) for part in gc.get_referents(sealed))


def _look(people):
    return people


def test_sealed_data_is_not_sent_to_other_processes(sealed):
    """Sealed data is not sent to a worker."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        refused(lambda: pool.apply(_look, (sealed,)))
    refused(lambda: cloudpickle.dumps(lambda: sealed))


def test_memory_is_freed():
    """Sealed data does not stay in memory when nothing refers to it any more."""
    data = numbers()
    content = weakref.ref(data)
    people = seal(data, name="people", sampler=UNIT)
    seal_reference = weakref.ref(people)
    del data
    assert content() is not None
    made()(average)(seal(numbers(), name="other", sampler=UNIT))
    made()(average)(people)
    number = id(people)
    assert number in sealed_module._CONTENT
    del people
    gc.collect()
    assert seal_reference() is None and content() is None and number not in sealed_module._CONTENT


def test_freed_at_exit():
    """A program that still has sealed data ends without messages."""
    program = (
        "import numpy as np\nfrom privatize import seal\np = seal(np.ones(3), name='a')\n"
        "class K: pass\nk = K(); k.k = k; k.p = seal(np.ones(3), name='b')\n"
        "import builtins, sys; builtins.kept = sys.kept = seal(np.ones(3), name='c')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_freed_after_the_module(monkeypatch):
    """Sealed data that outlives the library's globals, at the end of a program, causes no messages."""
    people = seal(numbers(), name="people")
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    monkeypatch.setattr(sealed_module, "_CONTENT", None)
    del people
    gc.collect()
    assert not errors


# --- sealing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", None, 3, b"a"])
def test_bad_names(name):
    """Data without a name could not be distinguished from other data in the ledger."""
    with pytest.raises(SettingsError, match="is not a name: names are strings"):
        seal(numbers(), name=name)


def test_bad_settings(sealed):
    """Wrong settings are refused when data is sealed, without showing the data."""
    with pytest.raises(SettingsError, match="is not a name: names are strings"):
        seal(numbers(), name="a", version=3)
    with pytest.raises(SettingsError, match="sealed already"):
        seal(sealed, name="again")
    with pytest.raises(PrivatizeError):
        seal((sealed, sealed), name="again")
    with pytest.raises(SettingsError, match="a dict is not a Budget"):
        seal(numbers(), name="a", budget={})
    with pytest.raises(PrivatizeError):
        seal(numbers(), name="a", sampler=3)
    for wrong in (3, "text", None, object(), np.array(1.0), (i for i in [1, 2])):
        with pytest.raises(DataError):
            seal(wrong, name="a")
    with pytest.raises(TypeError):
        seal(numbers())


def test_list_of_sealed(sealed):
    """A list of sealed datasets is not a dataset, and is refused when it is sealed."""
    with pytest.raises(PrivatizeError):
        seal([sealed, sealed], name="again")


def test_private_source():
    """A decorated loader keeps its name, documentation and signature, and its result is sealed."""

    @private_source(name="people", version="7", sampler=UNIT)
    def load(n: int, *, value: float = SECRET) -> np.ndarray:
        """Load people."""
        return np.full(n, value)

    assert load.__name__ == "load" and load.__doc__ == "Load people."
    assert list(inspect.signature(load).parameters) == ["n", "value"]
    found = load(30)
    assert type(found) is Sealed and repr(found) == "<sealed 'people' version '7': numpy ndarray, n=30>"
    assert 0 <= made(epsilon=1000)(average)(load(30, value=0.5)) <= 1
    with pytest.raises(TypeError, match="missing 1 required"):
        load()


# --- private functions open it ----------------------------------------------------------------


def _of_pairs(n, rng):
    return rng.random(n), rng.random(n)


CONTAINERS = {
    "array": (numbers(), UNIT, np.mean),
    "list": (list(numbers()), lambda n, rng: list(rng.random(n)), lambda x: sum(x) / len(x)),
    "pandas": (
        pd.DataFrame({"a": numbers()}),
        lambda n, rng: pd.DataFrame({"a": rng.random(n)}),
        lambda x: x["a"].mean(),
    ),
    "series": (pd.Series(numbers()), lambda n, rng: pd.Series(rng.random(n)), lambda x: x.mean()),
    "polars": (
        pl.DataFrame({"a": numbers()}),
        lambda n, rng: pl.DataFrame({"a": rng.random(n)}),
        lambda x: x["a"].mean(),
    ),
    "arrow": (
        pa.table({"a": numbers()}),
        lambda n, rng: pa.table({"a": rng.random(n)}),
        lambda x: float(np.mean(x["a"].to_numpy())),
    ),
    "tuple": ((numbers(), numbers()), _of_pairs, lambda x: float(np.mean(x[0] + x[1])) / 2),
    "dict": (
        {"a": numbers(), "b": numbers()},
        lambda n, rng: {"a": rng.random(n), "b": rng.random(n)},
        lambda x: float(np.mean(x["a"])),
    ),
}


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_private_functions_open_it(kind):
    """A private function gets the data itself, in every kind of container, and answers about it."""
    data, sampler, function = CONTAINERS[kind]
    people = seal(data, name="people", sampler=sampler)
    assert made(epsilon=1e5)(function)(people) == pytest.approx(SECRET, abs=1e-4)
    assert made(epsilon=1e5, sampler=sampler)(function)(people) == pytest.approx(SECRET, abs=1e-4)


def test_aligned():
    """Several sealed containers are opened together, and a mixture of sealed and open ones is refused."""
    xy = made(epsilon=1e5, data=("X", "y"))(lambda X, y: float(np.mean(X + y)) / 2)
    x, y = seal(numbers(), name="p", sampler=_of_pairs), seal(numbers(), name="p")
    assert xy(x, y) == pytest.approx(SECRET, abs=1e-4)
    assert xy(y=y, X=x) == pytest.approx(SECRET, abs=1e-4)
    for one, other in ((x, numbers()), (numbers(), y)):
        with pytest.raises(SealedError, match="Seal all or none"):
            xy(one, other)
    with pytest.raises(ArgumentError):
        xy(seal((numbers(), numbers()), name="p", sampler=_of_pairs))


def test_aligned_under_two_samplers():
    """Two sealed containers that carry different P are refused: neither P is silently chosen."""

    def wide(n, rng):
        return 100 * rng.random(n), rng.random(n)

    xy = made(data=("X", "y"))(lambda X, y: float(np.mean(X + y)))
    with pytest.raises(PrivatizeError):
        xy(seal(numbers(), name="p", sampler=_of_pairs), seal(numbers(), name="p", sampler=wide))


def test_explicit_sampler_wins(sealed):
    """The P that a function was given is used, whatever the sealed data carries."""
    wide = made(sampler=samplers.uniform(0, 1000))(average)
    assert wide.release(sealed).sensitivity > 100 * made()(average).release(sealed).sensitivity


def test_two_datasets_with_different_samplers(sealed):
    """One function answers about two datasets, each under its own P."""
    private = made()(average)
    wide = seal(numbers(), name="wide", sampler=samplers.uniform(0, 1000))
    found = [private.release(which).sensitivity for which in (sealed, wide, sealed, wide)]
    assert found[0] == found[2] and found[1] == found[3] and found[1] > 100 * found[0]


def test_replaced_functions_keep_their_promise(sealed):
    """A function made by replace() keeps its own epsilon after the first was called on the same data."""
    loose = made(epsilon=5)(average)
    assert loose.release(sealed).epsilon == 5
    strict = loose.replace(epsilon=0.01)
    found = strict.release(sealed)
    assert found.epsilon == 0.01 and found.scale == pytest.approx(found.sensitivity / 0.01)
    assert loose.release(sealed).epsilon == 5
    assert loose.replace(mechanism="gaussian", delta=1e-6).release(sealed).mechanism == "Gaussian"


def test_replaced_functions_keep_their_budget(sealed):
    """A function made by replace(budget=...) is charged, also after the first was called."""
    budget = Budget("sealed-replaced", epsilon=3, gamma=1, ledger="memory")
    free = made()(average)
    free(sealed)
    free.replace(budget=budget)(sealed)
    assert budget.spent.epsilon == 1


class _Scaled:
    def __init__(self, k):
        self.k = k

    @privatize(**PROMISE)
    def average(self, x):
        return self.k * float(np.mean(x))


def test_methods_of_different_instances(sealed):
    """Noise is calibrated to the instance whose method is called, not to the first one that was used."""
    small, large = _Scaled(1.0).average.release(sealed), _Scaled(1000.0).average.release(sealed)
    assert large.sensitivity > 100 * small.sensitivity


def test_calibrating_in_advance(sealed):
    """An estimate that was made in advance under the same P is used for sealed data."""
    private = made()(average)
    estimate = private.replace(sampler=UNIT).estimate(50)
    assert private.release(sealed).sensitivity == estimate.value


def test_without_any_sampler(sealed):
    """If there is no P to draw from, the error of every method says how to name one."""
    private = made()(average)
    bare = seal(numbers(), name="bare")
    for act in (
        lambda: private(bare),
        lambda: private(numbers()),
        lambda: private.release(bare),
        lambda: private.estimate(10),
        lambda: private.estimate([10, 20]),
        lambda: private.estimate(10, like=numbers(0)),
        lambda: private.remembers(10),
        lambda: private.sample(10),
        lambda: audit(private, 10),
    ):
        with pytest.raises(SettingsError, match=r"has no P: pass sampler= to privatize\(\)"):
            act()
    assert "that of sealed data" in repr(private)


def test_not_as_a_number_of_records_or_a_setting(sealed):
    """Sealed data in place of n, a setting or public data is refused without being opened."""
    private = made(sampler=UNIT)(average)
    for act in (
        lambda: private.estimate(sealed),
        lambda: private.estimate(10, like=sealed),
        lambda: private.remembers(sealed),
        lambda: private.forget(sealed),
        lambda: private.sample(sealed),
        lambda: samplers.bootstrap(sealed),
        lambda: made(sampler=sealed)(average)(numbers()),
        lambda: made()(average)(seal(numbers(), name="a", sampler=sealed)),
        lambda: made(workers=sealed)(average).replace(sampler=UNIT)(numbers()),
        lambda: made(seed=sealed),
        lambda: made(budget=sealed),
        lambda: private.replace(epsilon=sealed),
    ):
        with pytest.raises(PrivatizeError) as caught:
            act()
        assert SHOWN not in str(caught.value)


@pytest.mark.parametrize(
    "hide",
    [
        lambda s: s,
        lambda s: [s],
        lambda s: (1, [s]),
        lambda s: {"a": s},
        lambda s: {"a": [{"b": s}]},
    ],
)
def test_not_as_another_argument(sealed, hide):
    """Only the dataset is opened: sealed data as any other argument is refused, with the reason."""
    private = made(sampler=UNIT)(lambda x, other=None, *args, **rest: float(np.mean(x)))
    hidden = hide(sealed)
    for data in (numbers(), sealed):
        for act in (
            lambda data=data: private(data, hidden),
            lambda data=data: private(data, None, hidden),
            lambda data=data: private(data, other=hidden),
            lambda data=data: private(data, keyword=hidden),
            lambda data=data: private.release(data, hidden),
        ):
            with pytest.raises(SealedError, match="not its dataset"):
                act()


def test_not_as_a_default(sealed):
    """Sealed data as a default is refused like any other argument."""
    private = made(sampler=UNIT)(lambda x, other=sealed: float(np.mean(x)))
    with pytest.raises(SealedError, match="not its dataset"):
        private(numbers())


def test_not_as_self(sealed):
    """Sealed data in the place of self is refused like any other argument."""
    with pytest.raises(SealedError, match="not its dataset"):
        _Scaled.average.replace(sampler=UNIT)(sealed, numbers())


def test_not_inside_the_dataset(sealed):
    """A list or tuple of sealed data is not opened part by part."""
    private = made(sampler=UNIT)(average)
    for data in ([sealed], [sealed, sealed], (sealed, sealed), {"a": sealed}):
        with pytest.raises(PrivatizeError) as caught:
            private(data)
        assert SHOWN not in str(caught.value)


class _Owner:
    def __init__(self, people):
        self.people = people

    @privatize(**PROMISE, sampler=UNIT)
    def peek(self, x):
        return float(np.mean(self.people)) + float(np.mean(x))


GLOBAL = None


def of_a_global(x):
    return float(np.mean(x)) + float(np.mean(GLOBAL))


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_not_opened_in_closures_globals_or_objects(sealed, monkeypatch):
    """Sealed data in a closure, an instance, or deep inside an argument is not opened in calibration."""
    monkeypatch.setitem(globals(), "GLOBAL", sealed)
    peek = made(sampler=UNIT)(lambda x, o: float(np.mean(o[0] if isinstance(o, deque) else o)))
    for act in (
        lambda: made(sampler=UNIT)(lambda x: float(np.mean(sealed)))(numbers()),
        lambda: made(sampler=UNIT)(lambda x: float(np.mean(sealed)))(sealed),
        lambda: made(sampler=UNIT)(lambda x: float(sealed[0]))(numbers()),
        lambda: made(sampler=UNIT)(of_a_global)(numbers()),
        lambda: made(sampler=UNIT)(of_a_global)(GLOBAL),
        lambda: _Owner(sealed).peek(numbers()),
        lambda: peek(numbers(), deque([sealed])),
    ):
        with pytest.raises((CalibrationError, SealedError)) as caught:
            act()
        assert "sealed" in str(caught.value) and SHOWN not in str(caught.value)


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_never_sent_to_workers(sealed):
    """A function that refers to sealed data is not sent to other processes."""
    private = made(sampler=UNIT, workers=2)(lambda x: float(np.mean(x)) + (sealed is None))
    with pytest.raises((ExecutionError, SealedError)) as caught:
        private(numbers())
    assert SHOWN not in str(caught.value)


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_functions_may_use_the_public_name(sealed):
    """A function may use the public name of sealed data; its result does not depend on the content."""
    others = seal(numbers() + 0.1, name="people", version="3", sampler=UNIT)
    found = [
        made(sampler=UNIT, seed=7)(lambda x, of=of: float(np.mean(x)) + len(of())).estimate(50).value
        for of in (lambda: sealed.name, lambda: others.name)
    ]
    assert found[0] == found[1]


def test_failing_on_sealed_data():
    """An error on sealed data says nothing about it."""

    def picky(x):
        if abs(float(x[0]) - SECRET) < 1e-12:
            raise ValueError(f"bad record {x[0]}")
        return float(np.mean(x))

    people = seal(numbers(), name="people", sampler=UNIT)
    with pytest.raises(PrivateRunError) as caught:
        made()(picky)(people)
    error = caught.value
    assert error.__cause__ is None and error.__context__ is None and SHOWN not in locals_of(error)


def test_not_changed_by_functions():
    """A function that sorts or overwrites its dataset does not change what is sealed."""

    def overwrite(x):
        found = float(np.mean(x))
        x[:] = 0.9
        return found

    people = seal(numbers(), name="people", sampler=UNIT)
    private = made(epsilon=1e5)(overwrite)
    assert private(people) == pytest.approx(SECRET, abs=1e-3)
    assert private(people) == pytest.approx(SECRET, abs=1e-3)


def test_sampler_made_of_the_sealed_data():
    """Sealing data with P made of the very same data is refused: P must be public."""
    data = np.random.default_rng(0).random(50)
    with pytest.raises(DataError, match="P is not public"):
        made()(average)(seal(data, name="people", sampler=samplers.bootstrap(data)))


def test_budget_of_sealed_data():
    """Every answer about sealed data is charged to its budget, whichever function gives it."""
    budget = Budget("sealed-carried", epsilon=2.5, gamma=1, ledger="memory")
    people = seal(numbers(), name="people", sampler=UNIT, budget=budget)
    made()(average)(people)
    made()(lambda x: float(np.std(x)))(people)
    assert budget.spent.epsilon == 2
    with pytest.raises(PrivatizeError):
        made()(average)(people)
    assert budget.spent.epsilon == 2


def test_budget_survives_pickling(tmp_path):
    """A private function that is sent to another process is still charged, or refuses to answer."""
    budget = Budget("sealed-shipped", epsilon=2, gamma=1, ledger=tmp_path / "ledger.db")
    private = made(sampler=UNIT, budget=budget)(lambda x: float(np.mean(x)))
    again = cloudpickle.loads(cloudpickle.dumps(private))
    try:
        again(numbers())
    except PrivatizeError:
        return
    assert budget.spent.epsilon == 1


# --- private functions inside private functions -------------------------------------------------


inner = made(sampler=UNIT)(average)


def test_nested_in_calibration():
    """Noise inside noise is refused at calibration, and the message says what to call instead."""

    def outer(x):
        return 2 * inner(x)

    for _ in range(2):  # also when the failure is remembered
        with pytest.raises(PrivatizeError, match=r"average\(\) is private, and is called inside outer\(\)"):
            made(sampler=UNIT)(outer)(numbers())
    with pytest.raises(PrivatizeError, match=r"Call average.__wrapped__\(...\) there"):
        made(sampler=UNIT)(outer).estimate(50)
    with pytest.raises(PrivatizeError, match=r"Call average.__wrapped__\(...\) there"):
        made(sampler=UNIT)(lambda x: inner.release(x).value)(numbers())

    def fixed(x):
        return 2 * inner.__wrapped__(x)

    assert made(sampler=UNIT, epsilon=1e5)(fixed)(numbers()) == pytest.approx(2 * SECRET, abs=1e-3)


def test_nested_in_evaluation():
    """A call to a private function that happens only on private data is not answered either."""

    def sometimes_nested(x):
        if abs(float(x[0]) - SECRET) < 1e-12:
            return inner(x)
        return float(np.mean(x))

    with pytest.raises(PrivateRunError):
        made(sampler=UNIT)(sometimes_nested)(numbers())
    assert 0 < made(sampler=UNIT, epsilon=1e4)(average)(numbers()) < 1  # later calls work as before


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_nested_on_sealed_data(sealed):
    """A private function cannot ask another one about sealed data while it is evaluated."""
    budget = Budget("sealed-nested", epsilon=100, gamma=1, ledger="memory")
    people = seal(numbers(), name="other", sampler=UNIT, budget=budget)

    def outer(x):
        return float(np.mean(x)) + inner(people)

    with pytest.raises(PrivatizeError):
        made(sampler=UNIT)(outer)(numbers())
    assert budget.spent.epsilon == 0


@made(sampler=UNIT, epsilon=1e5)
def halving(x):
    """Return the mean, computed from the means of both halves."""
    if len(x) < 20:
        return float(np.mean(x))
    return (halving(x[: len(x) // 2]) + halving(x[len(x) // 2 :])) / 2


def test_recursion(sealed):
    """A private function that calls itself gets noise once, on open and on sealed data."""
    assert halving(numbers()) == pytest.approx(SECRET, abs=1e-3)
    assert halving(sealed) == pytest.approx(SECRET, abs=1e-3)
    assert halving.replace(sampler=None)(sealed) == pytest.approx(SECRET, abs=1e-3)


def test_missing_attributes_raise_the_same_error():
    """Users would have to know two errors, or a worker could not send one of them."""
    with pytest.raises(SealedError) as caught:
        seal(np.ones(3), name="people").mean()
    assert type(caught.value).__name__ == "SealedError"
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is SealedError and str(again) == str(caught.value)


def _shown(texts):
    """Return datasets of every kind that contain strings, with all that a library may infer from them."""
    numbers = [decimal.Decimal(len(text)) ** len(text) for text in texts]
    wide = max(map(len, texts))
    return {
        "array of text": np.array(texts),
        "array of bytes": np.array([text.encode() for text in texts]),
        "array of raw bytes": np.array([text.encode() for text in texts]).astype(f"V{wide}"),
        "structured array": np.array([(t, 1) for t in texts], dtype=[("name", f"U{wide}"), ("k", "i4")]),
        "nested fields": np.array(
            [((t,), 1) for t in texts], dtype=[("a", [("b", f"S{wide}")]), ("k", "i4")]
        ),
        "fields of several": np.array(
            [([t, t], 1) for t in texts], dtype=[("a", f"U{wide}", (2,)), ("k", "i4")]
        ),
        "aligned": (np.array(texts), {"a": texts}["a"]),
        "columns": {"a": np.array(texts)},
        "list": texts,
        "list of dicts": [{text: 1} for text in texts],
        "object array": np.array(texts, dtype=object),
        "pandas": pd.DataFrame({"a": texts, "b": pd.Categorical(texts), "c": numbers}, index=texts),
        "pandas index": pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_tuples([(t, t) for t in texts])),
        "pandas arrow": pd.DataFrame({"a": pd.array(numbers, dtype=pd.ArrowDtype(pa.array(numbers).type))}),
        "pandas sparse": pd.DataFrame(
            {"a": pd.arrays.SparseArray([len(texts[1])] * 2, fill_value=len(texts[1]))}
        ),
        "polars": pl.DataFrame({"a": pl.Series(texts, dtype=pl.Enum(texts)), "b": [{texts[1]: 1}] * 2}),
        "polars list": pl.DataFrame({"a": [[1] * len(text) for text in texts]}),
        "arrow": pa.table({"a": numbers, "b": [{texts[1]: 1}] * 2, "c": pa.array(texts).dictionary_encode()}),
        "arrow bytes": pa.table(
            {"a": pa.array([text.ljust(wide).encode() for text in texts], pa.binary(wide))}
        ),
        "sparse": scipy.sparse.csr_matrix(np.eye(2) * len(texts[1])),
    }


@for_each("kind", list(_shown(["a", "b"])))
def test_the_schema_does_not_depend_on_values(kind):
    """A schema would show how long the longest name is, how large the largest amount, or which keys occur."""
    one, other = (seal(_shown(texts)[kind], name="a") for texts in (["a", "b"], ["a", "SECRET-NAME"]))
    assert json.dumps(one.schema) == json.dumps(other.schema)
    assert repr(one) == repr(other)


@for_each("kind", list(_shown(["a", "b"])))
def test_errors_about_the_schema_do_not_depend_on_values(kind):
    """The error for a dataset that does not fit P would reveal the same facts."""
    messages = []
    for texts in (["a", "b"], ["a", "SECRET-NAME"]):
        with pytest.raises(PrivatizeError) as caught:
            made(sampler=samplers.from_function(lambda n, rng: rng.random((n, 3))))(lambda x: 1.0)(
                _shown(texts)[kind]
            )
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
