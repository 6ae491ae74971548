"""A worker evaluates exactly what this process would evaluate at that moment, or refuses.

A worker that runs an old version of a module, or one without a change made at run time, measures the
sensitivity of another function. That can mean too little noise, which nobody notices. A refusal costs time.
"""

import collections
import dataclasses
import decimal
import enum
import fractions
import functools
import hashlib
import importlib
import multiprocessing
import os
import pickle
import re
import statistics
import subprocess
import sys
import textwrap
import threading
import types
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from privatize import Laplace, estimate_sensitivity, plan, privatize, samplers
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.norms import NORMS
from privatize.calibration.run import Run
from privatize.errors import ExecutionError, InfiniteSensitivityError
from privatize.execution.job import Refused
from privatize.execution.packaging import package
from privatize.execution.packaging.package import Package, pack, unpack
from privatize.identity.memory import bounds
from privatize.identity.origin import origin
from privatize.samplers import as_sampler
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
DATA = np.linspace(0, 1, 50)
PRIVATE = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT, "seed": 1, "store": None, "workers": 2}


def gaps(function, workers, sampler=UNIT, norm="l1", **rest):
    found = estimate_sensitivity(
        function, n=50, sampler=sampler, norm=norm, plan=plan(gamma=0.2), seed=1, workers=workers, **rest
    )
    return found.gaps.tolist()


def same(function, **rest):
    """Tell whether workers find what this process finds; a refusal is an error."""
    return gaps(function, "inline", **rest) == gaps(function, 2, **rest)


def job(function, **rest):
    return evaluator(function, n=50, sampler=UNIT, norm=NORMS["l1"], seed=1, **rest)


def digests(sent):
    """Return the fingerprints in a package."""
    return pickle.loads(sent.payload)[1]


def in_a_child(function):
    """Run a function in a forked process, since unpacking a job changes the settings of its process."""
    child = multiprocessing.get_context("fork").Process(target=function)
    child.start()
    child.join(120)
    assert child.exitcode == 0


class Mapper:
    """Has a map and nothing else."""

    def map(self, function, items):
        return [function(item) for item in items]


def refused_or(function):
    """Return the gaps from workers, or from this process if they refuse or fail."""
    try:
        return gaps(function, 2)
    except (ExecutionError, InfiniteSensitivityError):
        return gaps(function, "inline")


@pytest.fixture
def unchecked(monkeypatch):
    """Skip the check of two pairs at the end, which cannot find differences on rare data."""
    monkeypatch.setattr(Run, "check_again", lambda *_, **__: None)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that writes modules (`box__lid` is box/lid.py, `box__` its init) and imports one."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def build(wanted="user", **files):
        for name, text in files.items():
            parts = name.split("__")
            for known in [known for known in sys.modules if known.partition(".")[0] == parts[0]]:
                if origin(known) is None:
                    sys.modules.pop(known)  # another test's
            path = tmp_path.joinpath(*parts[:-1], f"{parts[-1] or '__init__'}.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        origin.cache_clear()
        return importlib.import_module(wanted)

    yield build
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            sys.modules.pop(name)
    origin.cache_clear()


# --- attributes that are not read by name ---------------------------------------------------------

CONFIG = """
    LIMIT_A = 5.0
    W_ONE, W_TWO = 2.0, 3.0
"""
COMPUTED = {
    "getattr": "return getattr(config, 'LIMIT_' + KEY) * x.mean()",
    "getattr with a default": "return getattr(config, 'LIMIT_' + KEY, 1.0) * x.mean()",
    "getattr, anything caught": """
        try:
            limit = getattr(config, 'LIMIT_' + KEY)
        except:
            limit = 1.0
        return limit * x.mean()""",
    "__getattr__ of a module": "return getattr(lazy, 'LIMIT_' + KEY) * x.mean()",
    "vars": "return vars(config).get('LIMIT_' + KEY, 1.0) * x.mean()",
    "__dict__": "return config.__dict__.get('LIMIT_' + KEY, 1.0) * x.mean()",
    "all of vars": "return (1 + sum(v for k, v in vars(config).items() if k[:2] == 'W_')) * x.mean()",
    "dir": "return (1 + sum(getattr(config, k) for k in dir(config) if k[:2] == 'W_')) * x.mean()",
    "getmembers": "return (1 + sum(v for k, v in inspect.getmembers(config) if k[:2] == 'W_')) * x.mean()",
    "globals": "return globals().get('LIMIT_' + KEY, 1.0) * x.mean()",
    "names of globals": "return (1 + sum(g[:6] == 'LIMIT_' for g in globals())) * x.mean()",
    "eval": """
        try:
            return eval('LIMIT_A') * x.mean()
        except NameError:
            return x.mean()""",
    "exec": """
        scope = {}
        exec("found = LIMIT_A if 'LIMIT_A' in globals() else 1.0", globals(), scope)
        return scope['found'] * x.mean()""",
    "own module": "return getattr(sys.modules[__name__], 'LIMIT_A', 1.0) * x.mean()",
    "own module, if it is there": "return getattr(sys.modules.get(__name__), 'LIMIT_A', 1.0) * x.mean()",
    "import_module": "return importlib.import_module('box.' + NAME).DEPTH * x.mean()",
    "import_module of a literal": "return importlib.import_module('box.lid').DEPTH * x.mean()",
    "sys.modules": "return getattr(sys.modules.get('box.' + NAME), 'DEPTH', 1.0) * x.mean()",
    "sys.modules of a literal": "return getattr(sys.modules.get('box.lid'), 'DEPTH', 1.0) * x.mean()",
    "__import__": "return __import__('box.' + NAME, fromlist=['DEPTH']).DEPTH * x.mean()",
    "format": "return float('{c.LIMIT_A}'.format(c=config)) * x.mean()",
    "attrgetter": "return operator.attrgetter('lid.DEPTH')(box) * x.mean()",
}


@pytest.mark.parametrize("way", COMPUTED)
def test_names_that_are_built_at_run_time(way, project, unchecked):
    """A worker would lack attributes whose names are not in the code, and use a default in their place."""
    body = textwrap.dedent(COMPUTED[way]).strip()
    heading = """
        import importlib, inspect, operator, sys
        import box.lid, config, lazy
        KEY, NAME, LIMIT_A = "A", "lid", 7.0
        def f(x):
    """
    source = textwrap.dedent(heading).strip() + "\n" + textwrap.indent(body, "    ")
    lazy = CONFIG + "    def __getattr__(name):\n        return 1.0\n"
    user = project(user=source, config=CONFIG, lazy=lazy, box__lid="DEPTH = 1.0", box__="")
    sys.modules["box.lid"].DEPTH = 4.0  # not what is on disk
    assert refused_or(user.f) == gaps(user.f, "inline")


LITERAL = {
    "globals": "return globals()['LIMIT'] * x.mean()",
    "own module": "return sys.modules[__name__].LIMIT * x.mean()",
    "import_module": "return importlib.import_module('box.lid').DEPTH * x.mean()",
    "sys.modules": "return sys.modules['box.lid'].DEPTH * x.mean()",
    "pandas": "return pd.DataFrame({'v': x}).eval('v * @LIMIT').mean()",
    "annotations": "return len(typing.get_type_hints(f)) * x.mean()",
}


@pytest.mark.parametrize("way", LITERAL)
def test_names_in_strings(way, project, unchecked):
    """A global or module that is named by a string would be missing in a worker; it is refused instead."""
    if way == "pandas":
        pytest.importorskip("pandas")
    source = f"""
        import importlib, sys, typing
        import numpy as np
        import box.lid
        {"import pandas as pd" if way == "pandas" else ""}
        LIMIT = 3.0
        def f(x: "np.ndarray"):
            {LITERAL[way]}
    """
    user = project(user=source, box__lid="DEPTH = 1.0", box__="")
    sys.modules["box.lid"].DEPTH = 4.0
    with pytest.raises(ExecutionError, match="which can find what the code does not name"):
        gaps(user.f, 2)
    assert gaps(user.f, None) == gaps(user.f, "inline")


def test_names_that_are_built_on_rare_data(project):
    """The check of two pairs at the end would not find a wrong value that is read on rare data only."""
    user = project(
        user="""
        import config
        KEY = "A"
        def f(x):
            return (vars(config).get("LIMIT_" + KEY, 1.0) if x[0] > 0.95 else 1.0) * x.mean()
        """,
        config=CONFIG,
    )
    assert refused_or(user.f) == gaps(user.f, "inline")


# --- changes at run time --------------------------------------------------------------------------

HELPERS = """
    import enum
    SCALE = 1.0
    TABLE = {"a": [1.0, 2.0]}
    class Level(enum.Enum):
        LOW = 1.0
    class Base:
        factor = 2.0
    class Child(Base):
        def go(self, x):
            return getattr(self, "extra", 1.0) * self.factor * scaled(x) * TABLE["a"][0]
    def scaled(x, k=1.0):
        return SCALE * k * x.mean()
"""
USER = """
    import helpers
    from helpers import Child as Short
    def f(x):
        return helpers.Child().go(x) + Short().go(x) * helpers.TABLE["a"][1]
    def late(x):
        from helpers import Child
        return Child().go(x)
"""


def test_changes_at_run_time(project):
    """Workers would have globals, elements, defaults, methods or class attributes from before a change."""
    user, helpers = project(user=USER, helpers=HELPERS), sys.modules["helpers"]
    seen = [gaps(user.f, 2)]

    def compare():
        assert same(user.f) and same(user.late)
        seen.append(gaps(user.f, 2))

    helpers.SCALE = 3.0
    compare()
    helpers.TABLE["a"][0] = 4.0
    compare()
    helpers.TABLE["a"].insert(0, 9.0)
    compare()
    helpers.Base.factor = 5.0
    compare()
    helpers.scaled.__defaults__ = (2.5,)
    compare()
    helpers.scaled = lambda x: x.max() + x.mean()
    compare()
    helpers.Child.go = lambda self, x: 7 * x.mean()
    compare()
    helpers.Child = types.SimpleNamespace(go=lambda x: 2 * x.mean())
    helpers.Child = lambda: types.SimpleNamespace(go=lambda x: 2 * x.mean())
    compare()
    assert len(set(map(tuple, seen))) == len(seen)


def test_attributes_deleted_at_run_time(project):
    """An attribute that was deleted from a class would still be there in workers that had received it."""
    user, helpers = project(user=USER, helpers=HELPERS), sys.modules["helpers"]
    before = gaps(user.f, 2)
    helpers.Child.extra = 3.0
    assert same(user.f)
    del helpers.Child.extra
    assert gaps(user.f, 2) == before


def test_edited_and_reloaded(project, tmp_path):
    """Workers see a reloaded module; as in this process, they do not see one that was only edited."""
    user = project(user=USER, helpers=HELPERS)
    first = gaps(user.f, 2)
    (tmp_path / "helpers.py").write_text(textwrap.dedent(HELPERS).replace("SCALE = 1.0", "SCALE = 6.0"))
    assert gaps(user.f, 2) == first and same(user.late)
    importlib.reload(sys.modules["helpers"])
    assert same(user.f) and same(user.late) and gaps(user.late, 2) != first


def test_modules_that_were_removed(project, unchecked, monkeypatch):
    """A later calibration would find a module that an earlier one sent to the worker."""
    made = types.ModuleType("made_by_hand")
    made.LIMIT = 8.0
    user = project(
        user="""
        import sys
        def f(x):
            return getattr(sys.modules.get("made_by_hand"), "LIMIT", 1.0) * x.mean()
        def g(x):
            try:
                import made_by_hand
            except ImportError:
                return x.mean()
            return made_by_hand.LIMIT * x.mean()
        """
    )
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "made_by_hand", made)
        assert refused_or(user.f) == gaps(user.f, "inline") and same(user.g)
    assert refused_or(user.f) == gaps(user.f, "inline")
    assert same(user.g)


def test_modules_that_functions_write_to(project, unchecked):
    """A module's own functions would not see a global that the function sets in that module."""
    user = project(
        user="""
        import helpers
        def f(x):
            helpers.SCALE = 2.0 if x[0] > 0.5 else 1.0
            return helpers.scaled(x)
        """,
        helpers=HELPERS,
    )
    expected = [gaps(user.f, "inline"), setattr(sys.modules["helpers"], "SCALE", 1.0)][0]
    found = refused_or(user.f)
    assert found == expected


def test_arrays_that_share_memory(unchecked):
    """A function that writes into an array would not find the values in a view of it, in a worker."""
    buffer = np.zeros(100)
    head = buffer[:50]

    def f(x):
        buffer[:50] = x
        return head.mean() + 2 * x.mean()

    assert refused_or(f) == gaps(f, "inline")


def environment(x):
    return float(os.environ.get("PRIVATIZE_TEST_LIMIT", "1")) * x.mean()


def folder(x):
    return len(Path.cwd().name) * x.mean()


def third(x):
    return float(decimal.Decimal(1) / decimal.Decimal(3)) * x.mean()


def deep(x):
    def down(k):
        return 0 if k == 0 else 1 + down(k - 1)

    return down(3000) * x.mean()


@pytest.mark.parametrize("function", [environment, folder, third, deep])
def test_settings_that_changed(function, tmp_path, monkeypatch, unchecked):
    """Running workers would have an old environment, folder, decimal context or recursion limit."""
    assert same(np.mean)  # starts the workers
    limit = sys.getrecursionlimit()
    try:
        monkeypatch.setenv("PRIVATIZE_TEST_LIMIT", "7")
        monkeypatch.chdir(tmp_path)
        sys.setrecursionlimit(20_000)
        with decimal.localcontext() as context:
            context.prec = 4
            assert same(function)
    finally:
        sys.setrecursionlimit(limit)


def test_main_is_the_users_module(tmp_path):
    """A script that reads from its own module would read from the worker's main module instead."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            from privatize import estimate_sensitivity, plan, samplers
            from privatize.errors import PrivatizeError
            from privatize.calibration.run import Run
            Run.check_again = lambda *_, **__: None
            LIMIT = 3.0
            def gaps(f, w):
                return estimate_sensitivity(f, n=50, sampler=samplers.uniform(0, 1), norm="l1",
                    plan=plan(gamma=0.2), seed=1, workers=w).gaps.tolist()
            class Callable:
                def __call__(self, x):
                    return LIMIT * x.mean()
            def plain(x):
                return Callable()(x)
            def mine(x):
                return getattr(sys.modules["__main__"], "LIMIT", 1.0) * x.mean()
            def own(x):
                return getattr(sys.modules[__name__], "LIMIT", 1.0) * x.mean()
            def imported(x):
                import __main__
                return getattr(__main__, "LIMIT", 1.0) * x.mean()
            for f in (plain, Callable(), lambda x: LIMIT * x.mean()):
                assert gaps(f, 2) == gaps(f, "inline")
            for f in (mine, own, imported):
                try:
                    found = gaps(f, 2)
                except PrivatizeError:
                    continue
                print(f.__name__, "right" if found == gaps(f, "inline") else "wrong")
            """
        )
    )
    package = str(Path(sys.modules["privatize"].__file__).parents[1])
    for how in ([str(script)], ["-c", script.read_text()]):
        done = subprocess.run(
            [sys.executable, *how],
            env={"PYTHONPATH": package, "PATH": os.environ["PATH"]},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "wrong" not in done.stdout


# --- code of users --------------------------------------------------------------------------------


def test_packages_with_all_kinds_of_imports(project):
    """Relative, mutual, starred, re-exported and late imports arrive as they are here."""
    user = project(
        "box.user",
        box__="from .one import *\nfrom .one import first as again\nLIMIT = 2.0",
        box__one="""
        import box.two
        __all__ = ["first", "FACTOR"]
        FACTOR = 3.0
        def first(x, depth=2):
            return FACTOR * (x.mean() if depth == 0 else box.two.second(x, depth - 1))
        """,
        box__two="""
        from . import one
        def second(x, depth):
            return 2 * one.first(x, depth)
        """,
        box__user="""
        import box
        import box.two as two
        from . import one
        from .one import *
        def plain(x):
            return box.again(x) + first(x) * box.LIMIT + box.one.FACTOR * two.second(x, 1)
        def late(x):
            from . import two as other
            from .one import first as f
            import box.one as o
            return other.second(x, 0) + f(x) + o.FACTOR + box.two.one.FACTOR * x[0]
        """,
    )
    sys.modules["box.one"].FACTOR = 5.0
    sys.modules["box"].LIMIT = 4.0
    assert same(user.plain) and same(user.late)


def test_imports_of_installed_modules_in_functions(project):
    """An import inside a function works, whether or not the module was imported before."""
    user = project(
        user="""
        def h(x):
            from xml.dom import pulldom
            import netrc
            return x.mean() * len(pulldom.START_ELEMENT)
        """
    )
    known = {name: sys.modules.pop(name) for name in ("xml.dom.pulldom", "netrc") if name in sys.modules}
    assert gaps(user.h, 2) == gaps(user.h, "inline") == gaps(user.h, 2)
    sys.modules.update(known)


def test_namespace_packages_and_standard_names(project, monkeypatch):
    """Namespace packages, and modules with a name of the standard library, work and can change."""
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)  # Python's own, if somebody has imported it
    user = project(
        user="""
        import bare.sub, colorsys
        def f(x):
            return bare.sub.K * x.mean() * colorsys.K
        def late(x):
            import bare.sub as s, colorsys as c
            return s.K * x.mean() * c.K
        """,
        bare__sub="K = 2.0",
        colorsys="K = 3.0",
    )
    for value in (2.0, 5.0):
        sys.modules["bare.sub"].K = sys.modules["colorsys"].K = value
        assert same(user.f) and same(user.late)


def test_installed_files_without_a_version(project, tmp_path, monkeypatch):
    """A file among installed packages, without a version, counts as the user's own: changes are seen."""
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    loose = project("loose", **{"site-packages__loose": "K = 2.0\ndef f(x):\n    return K * x.mean()"})
    for value in (2.0, 5.0, 7.0):
        loose.K = value
        assert same(loose.f)


def test_collisions_of_names(project):
    """A module with the name of a method of the data would be confused with it."""
    user = project(
        user="""
        import mean, other
        def f(x):
            return x.mean() + mean.sum(x) + x.T.sum() * other.K
        """,
        mean="def sum(x):\n    return 2 * x.sum()",
        other="K = 2.0\nT = 1.0",
    )
    assert same(user.f)
    # The function reads `T` of the data, so `other.T`, which cannot be sent, does not matter.
    sys.modules["other"].T = (i for i in range(3))
    assert same(user.f)


def test_objects_that_are_not_used(project):
    """A function would be refused for an open file or connection in its module that it does not use."""
    user = project(
        user="""
        import sqlite3, threading, shared
        BASE, STREAM, THREAD = sqlite3.connect(":memory:"), (i for i in range(3)), threading.Thread()
        def unused(x):
            return shared.triple(x)
        def used(x):
            return BASE.execute("select 2").fetchone()[0] * x.mean()
        def through(x):
            return shared.FILE.fileno() * x.mean()
        """,
        shared="FILE = open(__file__)\ndef triple(x):\n    return 3 * x.mean()",
    )
    try:
        assert same(user.unused)
        for function, what in ((user.used, "sqlite3.Connection"), (user.through, "TextIOWrapper")):
            with pytest.raises(ExecutionError, match=what):
                gaps(function, 2)
            assert gaps(function, None) == gaps(function, "inline")
    finally:
        user.shared.FILE.close()
        user.BASE.close()


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


@functools.singledispatch
def kind(x):
    return 1.0


@kind.register(np.ndarray)
def _(x):
    return 2.0


def local_class():
    class Local:
        k = 2.0

    return lambda x: Local.k * x.mean()


def counted():
    n = 1

    def more():
        nonlocal n
        n += 4

    more()
    return lambda x: n * x.mean()


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


# --- private functions ----------------------------------------------------------------------------


@dataclasses.dataclass
class Answer:
    mean: float
    ends: np.ndarray


@privatize(**PRIVATE)
def answer(x):
    return Answer(x.mean(), x[:2])


@privatize(**PRIVATE)
def recursive(x, depth=2):
    return x.mean() if depth == 0 else 2 * recursive(x, depth - 1)


@privatize(**PRIVATE)
def raw(x):
    return 3 * recursive.__wrapped__(x, 0)


@privatize(**PRIVATE | {"coins": ("rng",)})
def coined(x, rng):
    return x[rng.permutation(len(x))[:10]].mean()


class Double(Laplace):
    def norm(self, gap):
        return 2 * super().norm(gap)


class Holder:
    k = 2.0

    @privatize(**PRIVATE)
    def method(self, x, depth=1):
        return self.k * x.mean() if depth == 0 else self.method(x, depth - 1)

    @privatize(**PRIVATE)
    @classmethod
    def of_class(cls, x):
        return cls.k * x.mean()


@privatize(**PRIVATE)
def replaced(x, depth=2):
    return x.mean() if depth == 0 else 2 * other(x, depth - 1)


other = replaced.replace(epsilon=2)

RELEASED = {
    "recursive": recursive,
    "other settings": recursive.replace(epsilon=2),
    "raw": raw,
    "coins": coined,
    "own mechanism": privatize(**PRIVATE | {"mechanism": Double()})(np.mean),
    "method": Holder().method,
    "class method": Holder.of_class,
    "calls itself with other settings": replaced,
}


@for_each("what", RELEASED)
def test_private_functions(what):
    """Workers would measure other gaps for private functions, such as those that call private functions."""
    function = RELEASED[what]
    here = function.replace(workers="inline") if "method" not in what else None
    found = function.release(DATA).sensitivity
    if here is not None:
        function.forget()  # or it would be recalled
        assert found == here.release(DATA).sensitivity
    assert found > 0


def test_outputs_have_the_users_classes():
    """A release would have a copy of the user's class, from a worker."""
    released = answer(DATA)
    assert type(released) is Answer and released.ends.shape == (2,)


# --- packages -------------------------------------------------------------------------------------


def test_this_process_is_not_changed(project):
    """Orders that run in the user's own process would change its modules, classes or functions."""
    user, helpers = project(user=USER, helpers=HELPERS), sys.modules["helpers"]
    modules, method, attributes = dict(sys.modules), helpers.Child.go, dict(vars(helpers))
    members = dict(vars(helpers.Child))
    assert gaps(user.f, Mapper()) == gaps(user.f, "inline")
    assert {name: sys.modules[name] for name in modules} == modules
    assert vars(helpers) == attributes
    assert helpers.Child.go is method and dict(vars(helpers.Child)) == members
    before = user.f(DATA)
    helpers.SCALE = 7.0
    assert user.f(DATA) == 7 * before


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


def test_packages_can_be_packed_again(project):
    """A job that was unpacked and packed again would be another job."""
    user = project(user=USER, helpers=HELPERS)
    first = pack(job(user.f))
    assert digests(pack(job(user.f))) == digests(first)
    closed, mean = pack(job(counted())), pack(job(np.mean))

    def check():
        assert unpack(first).job.identity()["seed"] == job(np.mean).identity()["seed"]
        for known in (mean, closed):
            assert digests(pack(unpack(known).job)) == digests(known)

    in_a_child(check)


def test_other_packages_are_refused():
    """A package with the content of another, or a damaged one, would run."""
    one, two = pack(job(lambda x: x.mean())), pack(job(lambda x: x.max()))
    path, known, inner = pickle.loads(one.payload)
    damaged = pickle.dumps((path, known, inner[:-20]))
    mixed = pickle.dumps((path, known, pickle.loads(two.payload)[2]))

    def check():
        with pytest.raises(Refused, match="not what was sent"):
            unpack(dataclasses.replace(one, payload=two.payload))
        with pytest.raises(Refused, match="cannot be rebuilt there"):
            unpack(Package(hashlib.sha256(damaged).hexdigest(), damaged, one.module))
        with pytest.raises(Refused, match="its function is not the same there"):
            unpack(Package(hashlib.sha256(mixed).hexdigest(), mixed, one.module))

    in_a_child(check)


def test_folders_of_another_machine(monkeypatch):
    """Libraries in other folders on a cluster's machines could not be imported there."""
    here, there = pack(job(np.mean)), pack(job(np.mean), local=False)
    monkeypatch.setattr(package, "_OWN_PATH", ["only there", *sys.path])
    mine = list(sys.path)

    def check():
        unpack(there)
        assert sys.path == [*mine, "only there"]
        unpack(here)
        assert sys.path == mine

    in_a_child(check)


def test_packages_are_small_and_have_no_data(project):
    """Private data would be sent, or the entire program with a small function."""
    user = project(
        user="""
        import numpy as np
        RECORDS = np.full(10_000, 1234.5678)
        def f(x):
            return x.mean()
        """
    )
    package = pack(job(user.f))
    assert np.float64(1234.5678).tobytes() not in package.payload
    assert len(package.payload) < 10_000


def test_attributes_of_data_send_no_data(project):
    """`x.values` is an attribute of the data: a table `values` in a module must not be sent for it."""
    user = project(
        user="import study\ndef f(x):\n    return study.clean(getattr(x, 'values', x)).mean()",
        study="import numpy as np\nvalues = np.full(9, 1234.5678)\ndef clean(x):\n    return x",
    )
    assert np.float64(1234.5678).tobytes() not in pack(job(user.f)).payload


def test_other_hash_seeds_agree(project, tmp_path):
    """The digest of a job would depend on the process that packs it, so all workers would refuse it."""
    user = project(user=USER + "    WORDS = {'a', 'b', 'c'}\n", helpers=HELPERS)
    here = digests(pack(job(user.f)))
    code = """
import user
import pickle
from privatize import samplers
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.norms import NORMS
from privatize.execution.packaging.package import pack
made = pack(evaluator(user.f, n=50, sampler=samplers.uniform(0, 1), norm=NORMS["l1"], seed=1))
print(pickle.loads(made.payload)[1])
"""
    package = str(Path(sys.modules["privatize"].__file__).parents[1])
    for seed in ("1", "77"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": f"{tmp_path}:{package}", "PATH": "", "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == str(here)


def test_secrets_in_the_environment_stay_on_this_machine(monkeypatch):
    """Passwords in the environment would be sent to a cluster."""
    monkeypatch.setenv("PRIVATIZE_TEST_PASSWORD", "sesame-4711")
    assert b"sesame-4711" in pack(job(np.mean)).payload
    assert b"sesame-4711" not in pack(job(np.mean), local=False).payload


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


def test_packages_of_installed_libraries_without_an_init():
    """A folder without an __init__ in an installed library would be refused as the user's own module."""
    pytest.importorskip("sklearn")

    def f(x):
        from sklearn.tree import DecisionTreeRegressor

        model = DecisionTreeRegressor(max_depth=1).fit(x[:25, None], x[25:])
        return float(model.predict([[0.5]])[0])

    assert same(f) and same(f)


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
    first, last = np.lib.array_utils.byte_bounds(array)
    assert bounds(array) == ((first, last) if array.size else (first, first))


def test_modules_that_functions_delete_from(project, unchecked):
    """A worker would go on after `del helpers.SCALE` if the function catches the error."""
    user = project(
        user="""
        import helpers
        def f(x):
            helpers.EXTRA = 1.0
            try:
                del helpers.EXTRA
            except:
                return 5 * x.mean()
            return x.mean()
        def g(x):
            try:
                del helpers.MISSING
            except:
                pass
            return x.mean()
        """,
        helpers=HELPERS,
    )
    assert refused_or(user.f) == gaps(user.f, "inline")
    with pytest.raises(ExecutionError, match=r"deletes helpers\.MISSING"):
        gaps(user.g, 2)


def test_a_refusal_does_not_affect_the_next_function(project):
    """In the user's own process, one function that was refused would make the next ones fail."""
    user = project(
        user="""
        import config
        def f(x):
            return getattr(config, "LIMIT_" + "abc"[0].upper()) * x.mean()
        """,
        config=CONFIG,
    )

    class Here:
        """Runs everything in this process."""

        map = staticmethod(lambda function, items: list(map(function, items)))

    with pytest.raises(ExecutionError, match="built at run time"):
        gaps(user.f, Here())
    assert gaps(np.mean, Here()) == gaps(np.mean, "inline")


# --- modules that cannot be inspected -------------------------------------------------------------


class Lazy(types.ModuleType):
    """A module that is to be loaded on first use, which fails."""

    def __getattr__(self, name):
        raise RuntimeError(f"cannot load {name}")


class Opaque(types.ModuleType):
    """A module that raises an error for every attribute."""

    def __getattribute__(self, name):
        raise OSError(name)


class Unfiled(types.ModuleType):
    """A module whose file and name cannot be read."""

    @property
    def __file__(self):
        raise RuntimeError("no file")

    @property
    def __name__(self):
        raise RuntimeError("no name")


class Misfiled(types.ModuleType):
    """A module whose file and path are numbers."""

    __file__ = 17
    __path__ = 3


class Thing:
    """An object in sys.modules that is no module."""

    def __getattr__(self, name):
        raise KeyError(name)


def odd_spec(name):
    made = types.ModuleType(name)
    made.__spec__, made.__loader__ = "odd", 3
    return made


def odd_function(name):
    made = types.ModuleType(name)
    made.__getattr__ = lambda name: 1 / 0
    return made


BROKEN = {
    "lazy": Lazy,
    "opaque": Opaque,
    "unfiled": Unfiled,
    "misfiled": Misfiled,
    "thing": lambda name: Thing(),
    "number": lambda name: 17,
    "none": lambda name: None,
    "spec": odd_spec,
    "function": odd_function,
}


class TestBrokenModules:
    @pytest.mark.parametrize("kind", BROKEN)
    def test_unused_ones_do_not_matter(self, kind, monkeypatch):
        """One broken module somewhere in the program would crash every calibration that starts workers."""
        sine = np.sin  # pickled by a search through all modules

        def waves(x):
            return float(sine(x).mean())

        monkeypatch.setitem(sys.modules, "a_broken_module", BROKEN[kind]("a_broken_module"))
        made = {"n": 20, "sampler": samplers.uniform(0, 1), "norm": "l1", "plan": plan(0.2), "seed": 1}
        here = estimate_sensitivity(waves, workers="inline", **made)
        assert np.array_equal(estimate_sensitivity(waves, workers=2, **made).gaps, here.gaps)
        private = privatize(epsilon=1, gamma=0.2, sampler=made["sampler"], workers=2, store=None)(waves)
        assert np.isfinite(private(np.full(20, 0.5)))

    @pytest.mark.parametrize("kind", ["opaque", "thing"])
    def test_used_ones_are_refused(self, kind, monkeypatch):
        """A function that uses such a module would fail with an error of the module, not of this library."""
        broken = BROKEN[kind]("a_broken_module")
        monkeypatch.setitem(sys.modules, "a_broken_module", broken)

        def uses(x):
            import a_broken_module

            return float(x.mean()) + (0 if a_broken_module is not None else 1)

        made = {"n": 20, "sampler": samplers.uniform(0, 1), "norm": "l1", "plan": plan(0.2), "seed": 1}
        with pytest.raises(ExecutionError):
            estimate_sensitivity(uses, workers=2, **made)
