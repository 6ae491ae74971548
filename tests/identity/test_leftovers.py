"""What a private run leaves behind besides its answer is named and put back, and nothing is released."""

import array
import collections
import ctypes
import io
import sys
import textwrap
import threading
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privatize import privatize
from privatize.errors import PrivateRunError
from privatize.identity.origin import origin
from tests.cases import for_each
from tests.function.sentinels import SENTINEL, holds_sentinel, private
from tests.identity.left import NUMBERS, PRIVATE, PROMISE, refused

LAST = None
LISTED, CACHE, SEEN, QUEUE, RAW = [], {}, set(), collections.deque(), bytearray()
COUNTED, GROUPED, ORDERED = collections.Counter(), collections.defaultdict(list), collections.OrderedDict(a=1)
NESTED = {"a": [1, {"b": []}]}
BUFFER, TABLE, OBJECTS = np.zeros(4), np.zeros((4, 2)), np.array([[], None], dtype=object)
FRAME, SERIES, POLARS = (
    pd.DataFrame({"a": np.zeros(4)}),
    pd.Series(np.zeros(4)),
    pl.DataFrame({"a": [0.0] * 4}),
)
TEXT, BYTES = io.StringIO(), io.BytesIO()
NUMERIC, NATIVE, SPACE = array.array("d", [0.0] * 4), (ctypes.c_double * 4)(), types.SimpleNamespace()
LOCAL = threading.local()
LOCAL.last = 0.0


class Holder:
    last = None

    def __init__(self):
        self.model, self.list = None, []


class Slotted:
    __slots__ = ("empty", "last")

    def __init__(self):
        self.last = None


HOLDER, SLOTTED = Holder(), Slotted()


def sets_a_global(x):
    global LAST
    LAST = x


def sets_a_new_global(x):
    global NEW
    NEW = x


def by_globals(x):
    globals()["LAST"] = x


def by_a_computed_name(x):
    globals()["LA" + "STED"[:2]] = x


def through_a_helper(x):
    sets_a_global(x)


def helper():
    """Do nothing."""


def in_an_attribute_of_a_function(x):
    helper.last = x


def in_a_default(x, kept=[]):  # noqa: B006 - mutable defaults are tested
    kept.append(x)


def in_a_keyword_default(x, *, kept={}):  # noqa: B006
    kept["x"] = x


LEAVING = {
    "the global 'LAST'": [sets_a_global, by_globals, by_a_computed_name, through_a_helper],
    "the global 'NEW'": [sets_a_new_global],
    "the global 'LISTED'": [lambda x: LISTED.append(x), lambda x: LISTED.extend(x.tolist())],
    "the global 'CACHE'": [lambda x: CACHE.update({"x": x}), lambda x: CACHE.setdefault(tuple(x), 1)],
    "the global 'SEEN'": [lambda x: SEEN.update(x.tolist())],
    "the global 'QUEUE'": [lambda x: QUEUE.append(x)],
    "the global 'RAW'": [lambda x: RAW.extend(f"{x}".encode())],
    "the global 'COUNTED'": [lambda x: COUNTED.update(x.tolist())],
    "the global 'GROUPED'": [lambda x: GROUPED["x"].append(x)],
    "the global 'ORDERED'": [lambda x: ORDERED.update(x=x)],
    "the global 'NESTED'": [lambda x: NESTED["a"][1]["b"].append(x)],
    "the global 'BUFFER'": [
        lambda x: np.multiply(x, 1, out=BUFFER),
        lambda x: BUFFER[:].__setitem__(0, x[0]),
        lambda x: np.copyto(BUFFER, x),
    ],
    "the global 'TABLE'": [lambda x: np.multiply(x, 1, out=TABLE[:, 0])],
    "the global 'OBJECTS'": [lambda x: OBJECTS.__setitem__(1, x), lambda x: OBJECTS[0].append(x)],
    "the global 'FRAME'": [
        lambda x: FRAME.__setitem__("b", x),
        lambda x: FRAME.loc.__setitem__((0, "a"), x[0]),
    ],
    "the global 'SERIES'": [lambda x: SERIES.iloc.__setitem__(0, x[0])],
    "the global 'POLARS'": [lambda x: POLARS.insert_column(0, pl.Series("b", x))],
    "the global 'TEXT'": [lambda x: TEXT.write(f"{x}")],
    "the global 'BYTES'": [lambda x: BYTES.write(x.tobytes())],
    "the global 'NUMERIC'": [lambda x: NUMERIC.__setitem__(0, x[0])],
    "the global 'NATIVE'": [lambda x: NATIVE.__setitem__(0, x[0])],
    "the global 'SPACE'": [lambda x: setattr(SPACE, f"x{x[0]}", x)],
    "the global 'LOCAL'": [lambda x: setattr(LOCAL, "last", x)],
    "Holder.last": [lambda x: setattr(Holder, "last", x)],
    "the global 'HOLDER'.model": [lambda x: setattr(HOLDER, "model", x)],
    "the global 'HOLDER'.list": [lambda x: HOLDER.list.append(x)],
    "the global 'SLOTTED'.last": [lambda x: setattr(SLOTTED, "last", x)],
    "the global 'SLOTTED'.empty": [lambda x: setattr(SLOTTED, "empty", x)],
    "helper.last": [in_an_attribute_of_a_function],
    "numpy.LAST": [lambda x: setattr(np, "LAST", x)],
    "the default of 'kept' of in_a_default()": [in_a_default],
    "the default of 'kept' of in_a_keyword_default()": [in_a_keyword_default],
}


@for_each(("place", "leave"), [(place, leave) for place, several in LEAVING.items() for leave in several])
def test_every_place_is_named_and_put_back(place, leave):
    """Raw data would stay in a global, a container, a buffer or an attribute for anybody to read."""

    def mean(x):
        if private(x):
            leave(x)
        return float(x.mean())

    unclear = leave in (by_globals, by_a_computed_name)  # their estimates are not remembered otherwise
    attested = {"version": "1"} if unclear else {}
    message = refused(mean, **attested)
    assert f"left something of its private run behind in {place}, where" in message
    known = [LAST, LISTED, CACHE, SEEN, QUEUE, RAW, COUNTED, GROUPED, ORDERED, NESTED, BUFFER, TABLE, OBJECTS]
    known += [FRAME.to_numpy(), SERIES.to_numpy(), POLARS.to_numpy(), TEXT.getvalue(), BYTES.getvalue()]
    known += [list(NUMERIC), list(NATIVE), vars(SPACE), FRAME.attrs]
    known += [vars(LOCAL), vars(Holder), vars(HOLDER), SLOTTED.last, vars(helper), in_a_default.__defaults__]
    assert not holds_sentinel([*known, in_a_keyword_default.__kwdefaults__, getattr(np, "LAST", None)])
    assert "NEW" not in globals() and not hasattr(SLOTTED, "empty") and not hasattr(np, "LAST")
    assert not GROUPED and list(FRAME) == ["a"] and POLARS.columns == ["a"] and len(TABLE) == 4


def test_arguments():
    """A caller's list, dict, buffer or frame would be filled with raw data."""

    def into(x, place):
        if private(x):
            if isinstance(place, list):
                place.append(x)
            elif isinstance(place, dict):
                place["x"] = x
            else:
                place[:] = x
        return float(x.mean())

    for place in ([], {}, np.zeros(4), [np.zeros(4)]):
        assert "behind in the argument 'place'" in refused(into, place)
        assert not holds_sentinel(place)


def test_what_was_left_before_an_error_is_put_back():
    """A run that fails half-way would leave behind what it had stored by then."""

    def fails(x):
        if private(x):
            LISTED.append(x)
            HOLDER.model = x
            raise ValueError(x)
        return float(x.mean())

    def interrupts(x):
        if private(x):
            LISTED.append(x)
            raise KeyboardInterrupt
        return float(x.mean())

    def unfit(x):
        if private(x):
            LISTED.append(x)
            return np.nan
        return float(x.mean())

    for function, error in (
        (fails, PrivateRunError),
        (interrupts, KeyboardInterrupt),
        (unfit, PrivateRunError),
    ):
        with pytest.raises(error):
            privatize(**PROMISE)(function)(PRIVATE)
        assert LISTED == [] and HOLDER.model is None


INDEX, PATTERN = pd.Index([3, 1, 2]), pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 3.0]})
PATTERN["c"] = 1.0


def test_functions_that_only_read_are_not_refused():
    """Functions that use tables, caches of libraries, imports or fresh copies of a model would be refused."""

    def reads(x):
        import colorsys

        at = INDEX.get_loc(1) + INDEX.is_unique + INDEX.get_indexer([2])[0]
        table = PATTERN.groupby("a").sum().to_numpy().sum() + PATTERN.T.sum().sum()
        local = [len(NESTED["a"]), colorsys.ONE_THIRD]
        local.append(table)
        return float(x.mean() + sum(local) + at + TABLE.sum() + len(CACHE) + HOLDER.list.count(1))

    def rewrites(x):
        global LAST
        LAST = None
        HOLDER.model = None
        BUFFER[:] = 0.0
        return float(x.mean())

    for function in (reads, rewrites):
        f = privatize(**PROMISE)(function)
        for _ in range(3):
            assert isinstance(f(PRIVATE), float)


class TestModels:
    """A fitted model contains what it has learned from private data, without noise."""

    @pytest.fixture(autouse=True)
    def _sklearn(self):
        linear = pytest.importorskip("sklearn.linear_model")
        self.ridge, self.sgd = linear.Ridge, linear.SGDRegressor
        self.fitted = linear.SGDRegressor(random_state=0).fit(np.zeros((4, 1)), np.zeros(4))

    def test_in_a_container_among_the_arguments(self):
        """Models in a list or dict must be copied, as single models are, or they would show raw data."""

        def fit(x, models):
            many = models.values() if isinstance(models, dict) else models
            return [float(m.fit(x[:, None], x).intercept_) for group in many for m in np.ravel([group])]

        f = privatize(**PROMISE, min_sensitivity=1e-9)(fit)
        for models in (
            [self.ridge()],
            {"a": self.ridge()},
            (self.ridge(), self.ridge()),
            {"a": [self.ridge()]},
        ):
            f(PRIVATE, models)
            assert not holds_sentinel(models) and "coef_" not in f"{[vars(m) for m in _models(models)]}"

    def test_in_a_global_a_closure_an_attribute_or_a_default(self):
        """Whoever predicts next with a model that was fitted in place would see raw data."""
        model, trained, models = self.ridge(), self.fitted, [self.ridge()]
        holder, before, ridge = Holder(), self.fitted.coef_, self.ridge
        copied = before.copy()

        def closure(x):
            return float(model.fit(x[:, None], x).intercept_) if private(x) else float(x.mean())

        def partly(x):
            if private(x):
                trained.partial_fit(x[:, None] / SENTINEL, x / SENTINEL)
            return float(x.mean())

        def listed(x):
            return float(models[0].fit(x[:, None], x).intercept_) if private(x) else float(x.mean())

        def attribute(x):
            if private(x):
                holder.model = ridge().fit(x[:, None], x)
            return float(x.mean())

        def default(x, model=self.ridge()):  # noqa: B008 - calls in defaults are tested
            if private(x):
                models = [model]
                models[0].fit(x[:, None], x)
            return float(x.mean())

        for function, place in (
            (closure, "the variable 'model'"),
            (partly, "the variable 'trained'"),
            (listed, "the variable 'models'"),
            (default, "the default of 'model'"),
        ):
            assert place in refused(function), function
        assert "the variable 'holder' of an enclosing function.model" in refused(attribute)
        assert not hasattr(model, "coef_") and not hasattr(models[0], "coef_") and holder.model is None
        assert trained.coef_ is before and np.array_equal(before, copied)

    def test_torch(self):
        """A network that is trained in place would keep weights without noise."""
        torch = pytest.importorskip("torch")
        weights, network = torch.zeros(4), torch.nn.Linear(1, 1)
        before = [p.detach().clone() for p in network.parameters()]

        def adds(x):
            if private(x):
                weights.add_(torch.from_numpy(x))
            return float(x.mean())

        def trains(x):
            if private(x):
                with torch.no_grad():
                    network.weight.fill_(float(x[0]))
            return float(x.mean())

        assert "the variable 'weights'" in refused(adds) and "the variable 'network'" in refused(trains)
        assert not weights.any()
        assert all(torch.equal(*pair) for pair in zip(before, network.parameters(), strict=True))


def _models(value):
    """Yield the models in nested containers."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _models(each)
    else:
        yield value


INSTALLED = """
    import types
    import numpy as np
    LAST, options, nested, table = None, {}, {"a": [[]]}, np.zeros(4)
    space = types.SimpleNamespace()
    class Settings:
        shared = []
    class Derived(Settings):
        pass
    conf = Settings()
    conf.inner = {}
"""
ERROR = ValueError()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a module of an installed package."""
    name = f"installed_{next(NUMBERS)}"
    folder = tmp_path / "site-packages"
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (folder / f"{name}.py").write_text(textwrap.dedent(INSTALLED))
    monkeypatch.syspath_prepend(folder)
    module = __import__(name)
    assert origin(name) == f"{name} 1.0"
    yield module
    del sys.modules[name]


class TestInstalled:
    """The parts of installed modules that code names are compared, and no others."""

    def test_values_classes_and_objects_of_an_installed_module(self, installed):
        """Raw data would stay in the settings of a library."""

        def by_alias(x):
            library = installed
            library.nested["a"][0].append(x)

        def by_an_object(x):
            installed.conf.last = x

        def by_a_class(x):
            installed.Settings.last = x

        def by_a_derived_class(x):
            installed.Derived.shared.append(x)

        cases = {
            "options": lambda x: installed.options.update(last=x),
            "table": lambda x: np.copyto(installed.table, x),
            "nested": by_alias,
            "space": lambda x: setattr(installed.space, "last", x),
            "conf.last": by_an_object,
            "conf.inner": lambda x: installed.conf.inner.setdefault("x", x),
            "Settings.last": by_a_class,
            "Settings.shared": by_a_derived_class,
        }
        for place, leave in cases.items():

            def mean(x, leave=leave):
                if private(x):
                    leave(x)
                return float(x.mean())

            assert f"{place}, where" in refused(mean)
            assert not holds_sentinel(
                [vars(installed), vars(installed.conf), vars(installed.Settings), vars(installed.space)]
            )

    def test_a_class_that_is_imported_by_name(self, installed):
        """Raw data would stay in an attribute of a class, and so in all its objects."""
        kind = installed.Settings

        def mean(x):
            if private(x):
                kind.best = x
            return float(x.mean())

        assert "Settings.best" in refused(mean) and not hasattr(kind, "best")

    @pytest.mark.slow
    def test_modules_that_are_imported_inside(self, monkeypatch):
        """Raw data would stay in a module that the function imports by itself."""
        import math
        import os

        def in_a_module(x):
            import math as other

            if private(x):
                setattr(other, "last", x)  # noqa: B010
            return float(x.mean())

        def in_the_program(x):
            import __main__ as program

            if private(x):
                program.last_answer = x
            return float(x.mean())

        def in_the_builtins(x):
            import builtins

            if private(x):
                builtins.last_answer = x
            return float(x.mean())

        def in_the_environment(x):
            if private(x):
                os.environ["PRIVATE_ANSWER"] = os.environ["PRIVATE_HOME"] = repr(x[0])
            return float(x.mean())

        def among_the_modules(x):
            if private(x):
                sys.modules["last_answer"] = types.SimpleNamespace(last=x)
            return float(x.mean())

        def in_an_error(x):
            if private(x):
                ERROR.args = (x,)
            return float(x.mean())

        monkeypatch.setenv("PRIVATE_HOME", "before")
        assert "math.last," in refused(in_a_module) and not hasattr(math, "last")
        assert "__main__.last_answer," in refused(in_the_program)
        assert not hasattr(sys.modules["__main__"], "last_answer")
        assert "builtins.last_answer," in refused(in_the_builtins, version="1")
        assert "last_answer" not in vars(sys.modules["builtins"])
        message = refused(in_the_environment)
        assert "os.environ['PRIVATE_ANSWER'] and os.environ['PRIVATE_HOME']," in message
        assert os.environ["PRIVATE_HOME"] == "before" and "PRIVATE_ANSWER" not in os.environ
        assert "sys.modules['last_answer']," in refused(among_the_modules, version="1")
        assert "last_answer" not in sys.modules
        assert "the global 'ERROR'.args," in refused(in_an_error) and ERROR.args == ()

    def test_an_error_that_was_raised_and_caught(self):
        """An exception that is made once and raised often would keep the frames of the private run alive."""

        def mean(x):
            try:
                raise ERROR
            except ValueError:
                return float(x.mean())

        f = privatize(**PROMISE)(mean)
        f(PRIVATE)
        ERROR.__traceback__ = None  # of the runs on public data
        assert isinstance(f(PRIVATE), float)
        assert ERROR.__traceback__ is None and ERROR.__context__ is None
        assert not ERROR.__suppress_context__
