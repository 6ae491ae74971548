"""Users' own code and arrays are packed with all that they share, or refused."""

import collections
import dataclasses
import enum
import fractions
import functools
import re
import statistics
import threading
import types

import cloudpickle
import numpy as np
import pytest

from privatize import samplers
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.norms import NORMS
from privatize.errors import ExecutionError
from privatize.execution.packaging.package import pack
from privatize.samplers import as_sampler
from tests.cases import for_each
from tests.execution.packaging.packed import UNIT, counted, gaps, kind, refused_or


def same(function, **rest):
    """Tell whether workers find what this process finds; a refusal is an error."""
    return gaps(function, "inline", **rest) == gaps(function, 2, **rest)


def job(function, **rest):
    return evaluator(function, n=50, sampler=UNIT, norm=NORMS["l1"], seed=1, **rest)


def test_arrays_that_share_memory(unchecked):
    """A function that writes into an array would not find the values in a view of it, in a worker."""
    buffer = np.zeros(100)
    head = buffer[:50]

    def f(x):
        buffer[:50] = x
        return head.mean() + 2 * x.mean()

    assert refused_or(f) == gaps(f, "inline")


def doubled(f):
    @functools.wraps(f)
    def run(*args, **kwargs):
        return 2 * f(*args, **kwargs)

    return run


@doubled
def decorated(x):
    return x.mean()


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


@functools.lru_cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@functools.lru_cache
def cached(n):
    return n + 1


cached.factor = 3.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: float = 2.0
    b: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Slim:
    a: float = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlim:
    a: float = 2.0


class Hidden:
    __slots__ = ("__b", "a")

    def __init__(self):
        self.a, self.__b = 2.0, 3.0

    def product(self):
        return self.a * self.__b


class Colour(enum.Enum):
    RED = 2.0
    BLUE = 3.0

    @property
    def weight(self):
        return 2 * self.value


class Planet(enum.Enum):
    EARTH = (1.0, 2.0)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius


class Permission(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


class Outer:
    class Inner:
        k = 3.0

    def apply(self, x):
        return self.Inner.k * x.mean()

    def __call__(self, x):
        return self.apply(x)

    @classmethod
    def of_class(cls, x):
        return cls.Inner.k * x.mean()

    @staticmethod
    def static(x):
        return 5 * x.mean()


class Straight:
    k = 2.0

    def apply(self, x):
        return self.k * x.mean()

    @property
    def twice(self):
        return 2 * self.k

    @functools.cached_property
    def thrice(self):
        return 3 * self.k

    def __call__(self, x):
        return self.twice * self.thrice * x.mean()

    @classmethod
    def of_class(cls, x):
        return cls.k * x.mean()

    @staticmethod
    def static(x):
        return 5 * x.mean()


class Derived(Straight):
    def apply(self, x):
        return 1 + 2 * super().apply(x)


class Meta(type):
    def __new__(cls, name, bases, scope):
        return super().__new__(cls, name, bases, scope | {"added": 7.0})


class Made(metaclass=Meta):
    pass


def local_class():
    class Local:
        k = 2.0

    return lambda x: Local.k * x.mean()


def keywords(x, *, k=3.0, **rest):
    return k * x.mean()


MISSING = object()
POINT = collections.namedtuple("POINT", "x y")
PLACE = POINT(1.0, 2.0)
LOCK, PATTERN = threading.RLock(), re.compile(r"\d+")
TABLE = np.arange(20.0).reshape(5, 4)
COLUMN, BACKWARDS = TABLE[:, 1], TABLE[0, ::-1]
PROXY = types.MappingProxyType({"a": 2.0})
SPACE = types.SimpleNamespace(a=2.0, f=lambda x: 3 * x)
STEEP = np.vectorize(lambda v: 2 * v if v > 0.5 else v)


def locked(x):
    with LOCK:
        return len(PATTERN.findall("a1b2")) * x.mean()


def defaulted(x, k=MISSING):
    return (2.0 if k is MISSING else 1.0) * x.mean()


WRITTEN = {
    "a decorated function": decorated,
    "mutual recursion": lambda x: (1 + even(10)) * x.mean(),
    "a cache that calls itself": lambda x: fib(20) * x.mean(),
    "an attribute of a cache": lambda x: cached(1) * cached.factor * x.mean(),
    "a frozen dataclass": lambda x: Frozen(3.0).a * len(dataclasses.fields(Frozen)) * x.mean(),
    "a dataclass with slots": lambda x: Slim(3.0).a * x.mean(),
    "a frozen dataclass with slots": lambda x: FrozenSlim().a * x.mean(),
    "an enum": lambda x: Colour.RED.weight * x.mean(),
    "flags": lambda x: (Permission.READ | Permission.WRITE).value * x.mean(),
    "a bound method": Straight().apply,
    "super": Derived().apply,
    "a callable instance": Straight(),
    "a class method": Straight.of_class,
    "a static method": Straight.static,
    "a nested class": Outer().apply,
    "a local class": local_class(),
    "a metaclass": lambda x: Made.added * x.mean(),
    "a closure that changed": counted(),
    "a partial": functools.partial(keywords, k=5.0),
    "a sentinel": defaulted,
    "a named tuple": lambda x: PLACE.y * x.mean(),
    "locks and patterns": locked,
    "a view of a column": lambda x: COLUMN.sum() * x.mean(),
    "a reversed view": lambda x: BACKWARDS[0] * x.mean(),
    "a proxy of a dict": lambda x: PROXY["a"] * x.mean(),
    "a namespace": lambda x: SPACE.f(SPACE.a) * x.mean(),
    "vectorize": lambda x: STEEP(x).mean(),
    "a ufunc": np.add.reduce,
    "an installed function": np.median,
}


@for_each("what", WRITTEN)
def test_ordinary_python(what):
    """Ordinary Python would be refused in workers, or have other gaps there, the first or second time."""
    assert same(WRITTEN[what])
    assert same(WRITTEN[what])


GENERATORS = {
    "random": "from random import gauss\ndef f(x):\n    return x.mean() * gauss(0, 1)",
    "numpy": "from numpy.random import normal\ndef f(x):\n    return x.mean() * normal()",
    "modules": "import random\nimport numpy as np\ndef f(x):\n    return x.mean() * random.random()",
}


@pytest.mark.parametrize("which", GENERATORS)
def test_global_generators_by_any_name(which, project):
    """`from random import gauss` would not have the public seed in a worker."""
    assert same(project(user=GENERATORS[which]).f)


def test_the_users_samplers_norms_and_pairs(project):
    """User code in a sampler, a norm or pair= would not be sent, only that of the function."""
    user = project(
        user="""
        import numpy as np
        SCALE = 1.0
        def draw(n, rng):
            return SCALE * rng.random(n)
        def norm(gap):
            return float(SCALE * np.abs(gap).max())
        def pair(data, position, replacement):
            total = data.sum()
            return total / len(data), (total - data[position] + replacement) / len(data)
        """
    )
    user.SCALE = 4.0
    drawn = samplers.from_function(user.draw)
    assert same(np.mean, sampler=drawn, norm=user.norm)
    assert same(np.mean, sampler=samplers.mixture([drawn, samplers.normal(0, 1)]))
    assert same(np.mean, pair=user.pair)
    from scipy import stats

    assert same(np.mean, sampler=as_sampler(stats.gamma(2)))


def test_models_and_tables():
    """Fitted models and tables that a function uses would arrive changed."""
    pd = pytest.importorskip("pandas")
    linear = pytest.importorskip("sklearn.linear_model")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = np.random.default_rng(1).random((30, 3))
    model = make_pipeline(StandardScaler(), linear.LinearRegression()).fit(data, data.sum(axis=1))
    table = pd.DataFrame(data, columns=list("abc")).assign(name="x")

    def f(x):
        known = pd.DataFrame({"v": x, "g": x > 0.5}).groupby("g")["v"].sum().sum()
        return model.predict(np.c_[x, x, x]).mean() * table["a"].sum() + known

    assert same(f)


def test_cloudpickle_is_not_changed(project):
    """Packing would change which modules cloudpickle pickles by value, for example if it fails."""
    user = project(user="import shared\ndef f(x):\n    return x.mean()", shared="")
    cloudpickle.register_pickle_by_value(user.shared)
    try:
        before = set(cloudpickle.list_registry_pickle_by_value())
        pack(job(user.f))
        local = threading.local()  # has an identity, but cannot be pickled
        with pytest.raises(ExecutionError, match="cannot be pickled"):
            pack(job(lambda x: x.mean() if local else 0.0))
        assert set(cloudpickle.list_registry_pickle_by_value()) == before == {"shared"}
    finally:
        cloudpickle.unregister_pickle_by_value(user.shared)


BEYOND = {
    "hidden slots": lambda x: Hidden().product() * x.mean(),
    "an enum with attributes": lambda x: Planet.EARTH.radius * x.mean(),
    "singledispatch": lambda x: kind(x) * x.mean(),
}


@pytest.mark.parametrize("what", BEYOND)
def test_what_cannot_be_rebuilt_is_refused(what):
    """What pickle cannot rebuild is refused with workers=2, and runs inline by default."""
    with pytest.raises(ExecutionError, match=r"refused|cannot be evaluated in other processes"):
        gaps(BEYOND[what], 2)
    assert gaps(BEYOND[what], None) == gaps(BEYOND[what], "inline")


def middle(x):
    return statistics.fmean(x)


def test_installed_code_that_was_patched(monkeypatch):
    """A worker has libraries as installed, so it would evaluate another function than the patched one."""
    before = gaps(middle, "inline")
    monkeypatch.setattr(statistics, "fmean", lambda x: 100 * float(np.mean(x)))
    with pytest.raises(ExecutionError, match=r"statistics\.fmean \(which was patched\)"):
        gaps(middle, 2)
    assert gaps(middle, None) == gaps(middle, "inline") != before


def test_installed_classes_that_were_patched(monkeypatch):
    """A worker would evaluate the installed method of a class, and not the patched one."""
    made = fractions.Fraction

    def f(x):
        return float(made(3, 2).limit_denominator()) * x.mean()

    assert same(f)
    monkeypatch.setattr(fractions.Fraction, "limit_denominator", lambda self: 7)
    with pytest.raises(ExecutionError, match="which was patched"):
        gaps(f, 2)


def test_parts_of_an_array_arrive_as_parts():
    """A table and one of its columns would not share memory in a worker."""
    table = np.arange(12.0).reshape(4, 3)
    column = table[:, 1]

    def f(x):
        table[0, 1] = x[0]
        return float(column[0] * x.mean() + table.sum())

    assert same(f)


def test_arrays_that_overlap_are_refused():
    """Arrays that overlap cannot be sent unless one is part of the other; the message gives their shapes."""
    base = np.arange(10.0)
    one, two = base[:6], base[4:]
    with pytest.raises(ExecutionError, match=r"share memory, of shapes \(6,\) and \(6,\)"):
        gaps(lambda x: one.sum() * x.mean() + two.sum(), 2)
