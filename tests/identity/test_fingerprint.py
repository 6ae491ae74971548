"""A fingerprint changes with whatever could change what a function computes, and with nothing else.

A stale estimate means too little noise, so every row of the first table is a privacy failure if it
fails; every row of the second costs a needless calibration.
"""

import collections
import contextvars
import enum
import functools
import gc
import importlib
import logging
import random
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
import types
import warnings
from importlib import metadata
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from privatize import Budget, Exponential, Laplace, private_source, privatize, samplers
from privatize.errors import NotRememberedWarning
from privatize.identity import fingerprint as fingerprinting
from privatize.identity import library, objects
from privatize.identity import origin as origins
from privatize.identity.fingerprint import Unencodable, fingerprint
from privatize.identity.origin import origin
from privatize.samplers import as_sampler
from tests.cases import for_each

HELPERS = """
    '''Helpers of the user.'''
    import functools
    LIMIT = 3
    TABLE = {"a": 1.0}
    def clip(x):
        '''Clip.'''
        return inner(x) + 1
    def inner(x):
        return x * 2
    @functools.lru_cache
    def cached(x):
        return x + 5
    class Base:
        factor = 2.0
        def scale(self, x):
            return self.factor * x
    class Child(Base):
        def apply(self, x):
            return self.scale(x)
"""
MAIN = """
    import functools
    import numpy as np
    import helpers
    import pkg.sub
    from helpers import clip as short, Child
    WEIGHTS = np.array([1.0, 2.0, 3.0])
    OPTIONS = {"mode": "fast", "depth": [1, 2]}
    UNUSED = 1
    def second(x, q=0.5, *, r=1):
        return np.mean(x) * q + r
    def f(x, k=2):
        '''Compute.'''
        # a comment
        total = x.sum() + WEIGHTS[0] * k
        if OPTIONS["mode"] == "fast":
            total = total - second(x) + helpers.clip(1) + short(2) + pkg.sub.FACTOR
        return Child().apply(total) + helpers.cached(2) + local(x) + max(len(x), helpers.LIMIT)
    def local(x):
        import late
        return late.offset(x) + sorted({"b", "a", "c"})[0].count("a") + getattr(helpers, "LIMIT")
"""
FILES = {
    "helpers": HELPERS,
    "pkg/__init__": "",
    "pkg/sub": "FACTOR = 1.0\nOTHER = 2.0\n",
    "late": "def offset(x):\n    return 0.25\n",
    "main": MAIN,
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that writes, imports and fingerprints a project with edits applied."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def build(*edits):
        for name, text in FILES.items():
            text = textwrap.dedent(text)
            for file, before, after in edits:
                if file == name:
                    assert before in text, before
                    text = text.replace(before, after)
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for module in ("helpers", "pkg", "pkg.sub", "late", "main"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()
        origin.cache_clear()
        return importlib.import_module("main")

    yield build
    for module in ("helpers", "pkg", "pkg.sub", "late", "main"):
        sys.modules.pop(module, None)
    origin.cache_clear()


MUST_CHANGE = {
    "constant": ("main", "q=0.5", "q=0.6"),
    "keyword default": ("main", "r=1", "r=2"),
    "own default": ("main", "k=2", "k=3"),
    "global array element": ("main", "[1.0, 2.0, 3.0]", "[1.0, 2.0, 3.5]"),
    "global array dtype": ("main", "np.array([1.0, 2.0, 3.0])", "np.array([1, 2, 3])"),
    "global array shape": ("main", "np.array([1.0, 2.0, 3.0])", "np.array([[1.0, 2.0, 3.0]])"),
    "global dict value": ("main", '"mode": "fast"', '"mode": "slow"'),
    "global dict order": ("main", '{"mode": "fast", "depth": [1, 2]}', '{"depth": [1, 2], "mode": "fast"}'),
    "nested list": ("main", "[1, 2]", "[1, 3]"),
    "operator": ("main", "total - second(x)", "total + second(x)"),
    "order of operations": ("main", "x.sum() + WEIGHTS[0] * k", "(x.sum() + WEIGHTS[0]) * k"),
    "attribute called": ("main", "x.sum()", "x.max()"),
    "installed function": ("main", "np.mean(x)", "np.median(x)"),
    "builtin": ("main", "max(len(x)", "min(len(x)"),
    "condition": ("main", '== "fast"', '!= "fast"'),
    "set constant": ("main", '{"b", "a", "c"}', '{"b", "a", "d"}'),
    "helper through module": ("helpers", "inner(x) + 1", "inner(x) + 2"),
    "callee's callee": ("helpers", "return x * 2", "return x * 3"),
    "constant in a helper module": ("helpers", "LIMIT = 3", "LIMIT = 4"),
    "cached helper": ("helpers", "return x + 5", "return x + 6"),
    "class attribute": ("helpers", "factor = 2.0", "factor = 3.0"),
    "base-class method": ("helpers", "return self.factor * x", "return self.factor + x"),
    "method": ("helpers", "return self.scale(x)", "return 1 + self.scale(x)"),
    "bases": ("helpers", "class Child(Base):", "class Child(Base, functools.partial):"),
    "submodule's constant": ("pkg/sub", "FACTOR = 1.0", "FACTOR = 1.5"),
    "local import": ("late", "return 0.25", "return 0.5"),
    "decorator": ("helpers", "@functools.lru_cache", "@functools.lru_cache(maxsize=7)"),
    "int for float": ("helpers", "factor = 2.0", "factor = 2"),
    "True for 1": ("main", "r=1", "r=True"),
    "index": ("main", "WEIGHTS[0]", "WEIGHTS[1]"),
    "constant for a name": ("main", "max(len(x), helpers.LIMIT)", "max(len(x), 3)"),
    "argument of a helper": ("main", "helpers.clip(1)", "helpers.clip(2)"),
    "argument of an imported name": ("main", "short(2)", "short(3)"),
    "dropped term": ("main", " + short(2)", ""),
    "order of a sort": ("main", '"c"})[0]', '"c"})[-1]'),
    "argument of a method": ("main", '.count("a")', '.count("b")'),
    "argument of a cached helper": ("main", "helpers.cached(2)", "helpers.cached(3)"),
    "default of getattr": ("main", 'getattr(helpers, "LIMIT")', 'getattr(helpers, "LIMIT", 0)'),
    "another method": ("main", "Child().apply(total)", "Child().scale(total)"),
    "default of a method": ("helpers", "def scale(self, x):", "def scale(self, x, y=0):"),
    "another lookup": ("main", 'OPTIONS["mode"] ==', 'OPTIONS.get("mode") =='),
    "sign in a helper": ("helpers", "inner(x) + 1", "inner(x) - 1"),
    "docstring": ("main", "'''Compute.'''", "'''Compute something else.'''"),
    "helper's docstring": ("helpers", "'''Clip.'''", "'''Clip it.'''"),
    "annotation": ("main", "def f(x, k=2):", "def f(x: list, k: int = 2) -> float:"),
    "minus zero": ("pkg/sub", "FACTOR = 1.0", "FACTOR = -0.0"),
}
MUST_NOT_CHANGE = {
    "comment": ("main", "# a comment", "# another one"),
    "module docstring": ("helpers", "'''Helpers of the user.'''", "'''Mine.'''"),
    "line numbers": ("main", "WEIGHTS =", "\n\n\nWEIGHTS ="),
    "other global": ("main", "UNUSED = 1", "UNUSED = 2"),
    "other global of a helper": ("helpers", 'TABLE = {"a": 1.0}', 'TABLE = {"a": 2.0}'),
    "other constant of a submodule": ("pkg/sub", "OTHER = 2.0", "OTHER = 3.0"),
    "new function": ("main", "def second", "def third(x):\n    return x\n\ndef second"),
    "order of definitions": ("helpers", "LIMIT = 3\nTABLE", "LIMIT = 3\n\nEXTRA = 1\nTABLE"),
    "set order": ("main", '{"b", "a", "c"}', '{"c", "b", "a"}'),
    "spelling of a number": ("pkg/sub", "FACTOR = 1.0", "FACTOR = 1.00"),
    "parentheses": ("main", "x.sum() + WEIGHTS[0] * k", "x.sum() + (WEIGHTS[0] * k)"),
}


@pytest.mark.parametrize("name", MUST_CHANGE)
def test_edits_that_must_change_it(name, project):
    """After an edit that can change the answer, the stored estimate would give too little noise."""
    before = fingerprint(project().f)
    assert fingerprint(project(MUST_CHANGE[name]).f) != before


@pytest.mark.parametrize("name", MUST_NOT_CHANGE)
def test_edits_that_must_not_change_it(name, project):
    """An edit that cannot change the answer would cost a needless calibration."""
    before = fingerprint(project().f)
    assert fingerprint(project(MUST_NOT_CHANGE[name]).f) == before


def write(folder, **files):
    """Write modules into a folder, and remove earlier imports of them."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        sys.modules.pop(name.replace("__", "."), None)
    for name in [n for n in sys.modules if n.partition(".")[0] in {f.partition("__")[0] for f in files}]:
        sys.modules.pop(name)
    importlib.invalidate_caches()
    origin.cache_clear()


def test_packages_of_modules_imported_inside(tmp_path, monkeypatch):
    """`import box.lid` in a function reads box too, and `from box import lid` reads lid: both may change."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = []
    for limit in (1, 1000):
        user = "def f(x):\n    import box.lid\n    return x * box.LIMIT"
        write(tmp_path, box__lid="DEPTH = 1", user=user)
        (tmp_path / "box" / "__init__.py").write_text(f"LIMIT = {limit}")
        found.append(fingerprint(importlib.import_module("user").f))
    assert found[0] != found[1]
    found = []
    for depth in (1, 2):
        user = "def f(x):\n    from box import lid\n    return x * lid.DEPTH"
        write(tmp_path, user=user, box__lid=f"DEPTH = {depth}")
        function = importlib.import_module("user").f
        found += [fingerprint(function), fingerprint(function)]  # the first one imports it
    assert found[0] == found[1] != found[2] == found[3]


@pytest.mark.parametrize(
    "body",
    [
        'importlib.import_module("box.lid").DEPTH',
        'sys.modules["box.lid"].DEPTH',
        "sys.modules[__name__].DEPTH",
    ],
)
def test_modules_that_are_named_by_a_string(body, tmp_path, monkeypatch):
    """If a module that is looked up by a literal or `__name__` changed, answers would get the old noise."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    user = f"import importlib, sys\nimport box.lid\nDEPTH = 1\ndef f(x):\n    return x * {body}"
    write(tmp_path, box__lid="DEPTH = 1", box____init__="", user=user)
    function = importlib.import_module("user").f
    before = fingerprint(function)
    assert fingerprint(function) == before
    sys.modules["box.lid"].DEPTH = sys.modules["user"].DEPTH = 2
    assert fingerprint(function) != before


def test_two_modules_of_one_name(tmp_path, monkeypatch):
    """After a module was imported again, a function may use the old and the new one: both count."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write(tmp_path, box="DEPTH = 1")
    old = importlib.import_module("box")
    sys.modules.pop("box")
    new = importlib.import_module("box")

    def f(x):
        return old.DEPTH * new.DEPTH * x

    before = fingerprint(f)
    new.DEPTH = 2
    between = fingerprint(f)
    old.DEPTH = 2
    assert len({before, between, fingerprint(f)}) == 3


def test_installed_decorators_count_by_their_version(tmp_path, monkeypatch):
    """functools.wraps puts the user's name on a library's wrapper; the library's version still counts."""
    site = tmp_path / "site-packages"
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    library = """
        import functools
        def twice(f):
            @functools.wraps(f)
            def run(x):
                return helper(f(x))
            return run
        def helper(x):
            return x * FACTOR
    """
    found = []
    for version in ("1.0", "2.0"):
        write(site, wraplib=library)
        info = site / "wraplib-1.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: wraplib\nVersion: {version}\n")
        origins._version.cache_clear()
        twice = importlib.import_module("wraplib").twice
        found.append(fingerprint(twice(lambda x: x + 1)))
    assert found[0] != found[1]
    # A package without a version counts by its content.
    found = []
    for factor in (1, 50):
        write(site, looselib=f"K = {factor}\ndef f(x):\n    return K * x")
        found.append(fingerprint(importlib.import_module("looselib").f))
    assert found[0] != found[1]


def test_moving_a_function_within_its_file_does_not_change_it(project, tmp_path):
    """Another place in the file would cost a needless calibration; another module is another name."""
    before = fingerprint(project().f)
    (tmp_path / "elsewhere.py").write_text((tmp_path / "main.py").read_text())
    try:
        assert fingerprint(importlib.import_module("elsewhere").f) != before
    finally:
        sys.modules.pop("elsewhere")
    assert fingerprint(project(("main", "import functools", "# moved\n\n\nimport functools")).f) == before


def test_changes_at_run_time_are_seen(project):
    """A global, attribute or element that changes while the program runs would get the old noise."""
    main = project()
    seen = [fingerprint(main.f)]

    def take():
        seen.append(fingerprint(main.f))

    main.WEIGHTS[0] = 9.0
    take()
    main.OPTIONS["depth"].append(3)
    take()
    main.helpers.LIMIT = 7
    take()
    sys.modules["pkg.sub"].FACTOR = 4.0
    take()
    main.Child.factor = 5.0
    take()
    main.second.__defaults__ = (0.7,)
    take()
    main.f.note = 1
    take()
    main.second = lambda x: 0.0
    take()
    main.helpers.clip = np.sqrt
    take()
    assert len(set(seen)) == len(seen)


def test_other_processes_and_hash_seeds_agree(project, tmp_path):
    """A stored estimate would not be found by another process that has another hash seed."""
    here = fingerprint(project().f)
    code = "import main\nfrom privatize.identity.fingerprint import fingerprint\nprint(fingerprint(main.f))"
    package = str(Path(sys.modules["privatize"].__file__).parents[1])
    for environment in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "77"}, {"PYTHONOPTIMIZE": ""}):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": f"{tmp_path}:{package}", "PATH": "", **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == here


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Slotted:
    __slots__ = ("__hidden", "shown")

    def __init__(self, hidden, shown):
        self.__hidden, self.shown = hidden, shown


class Tagged(np.ndarray):
    pass


def tagged(tag, values):
    made = np.array(values).view(Tagged)
    made.tag = tag
    return made


def closing(value):
    return lambda x: x + value


def forged(factor):
    @functools.wraps(np.mean)
    def mean(x):
        return factor * np.mean(x)

    return mean


def stored(value):
    made = threading.local()
    made.value = value
    return made


class Lossy(dict):
    def __reduce__(self):
        return (dict, ())


POINT = collections.namedtuple("POINT", "x y")

DIFFERENT = {
    "numbers": (1, 2),
    "kinds of one": (1, 1.0, True, "1", b"1", 1 + 0j, np.float64(1), np.float32(1), np.int64(1)),
    "zeros": (0.0, -0.0, 0),
    "containers": ([1, 2], (1, 2), {1, 2}, frozenset({1, 2}), {1: 2}, [[1], 2], [1, [2]], [12]),
    "strings": ("ab", "a", "", "a\x00b"),
    "closures": (closing(1), closing(2), closing([1])),
    "partials": (functools.partial(max, 1), functools.partial(max, 2), functools.partial(min, 1)),
    "bound methods": ([1].append, [2].append, "a".join),
    "enums": (Colour.RED, Colour.BLUE),
    "arrays": (np.zeros(2), np.zeros(3), np.ones(2), np.zeros(2, "f4"), np.zeros(2, ">f8"), np.zeros((2, 1))),
    "object arrays": (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
    "array subclasses": (tagged("a", [1.0]), tagged("b", [1.0]), tagged("a", [2.0])),
    "layouts": (np.zeros((2, 3)), np.zeros((3, 2)).T),
    "slots": (Slotted(1, 2), Slotted(2, 2), Slotted(1, 3)),
    "patterns": (re.compile("a"), re.compile("b"), re.compile("a", re.IGNORECASE)),
    "paths": (Path("a"), Path("b")),
    "ufuncs": (np.sqrt, np.exp, np.add),
    "numpy functions": (np.mean, np.median),
    "builtins": (max, min, len),
    "forged modules": (np.mean, forged(1), forged(2)),
    "distributions": tuple(
        map(as_sampler, (stats.expon(), stats.expon(scale=2), stats.norm(), stats.gamma(2)))
    ),
    "samplers": (samplers.uniform(0, 1), samplers.uniform(0, 2), samplers.uniform(0, 1, size=1)),
    "mechanisms": (Laplace(), Exponential([1, 2]), Exponential([1, 3]), Exponential([1, 2], prior=[1, 2])),
    "ordered": (collections.OrderedDict(a=1), collections.OrderedDict(a=2), {"a": 1}),
    "deques": (collections.deque([1]), collections.deque([2]), collections.deque([1], maxlen=3)),
    "namespaces": (types.SimpleNamespace(f=closing(1)), types.SimpleNamespace(f=closing(2))),
    "named tuples": (POINT(1, 2), POINT(1, 3), (1, 2)),
    "loggers": (logging.getLogger("a"), logging.getLogger("b")),
    "storage of threads": (stored(1), stored(2)),
    "sets of modules": (frozenset({types}), frozenset({enum})),
    "object dtypes": (
        np.zeros(1, dtype=[("a", "O"), ("b", "f8")]),
        np.zeros(1, dtype=[("b", "O"), ("a", "f8")]),
    ),
    "dates": (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-02"], "M8[D]")),
    "huge integers": (10**5000, 10**5000 + 1),
    "properties": (property(len), (len, None, None)),
    "lossy classes": (Lossy(a=1), Lossy(a=2)),
    "lambdas": (lambda x: x + 1, lambda x: x + 2, lambda x: 1 + x, lambda y, x: x + 1),
    "vectorized": (np.vectorize(closing(1)), np.vectorize(closing(2))),
    "generators": (np.random.default_rng(1), np.random.default_rng(2)),
    "ranges": (range(3), range(4), slice(3)),
}


@for_each("kind", DIFFERENT)
def test_different_values_differ(kind):
    """Two values that behave differently would share an estimate."""
    found = [fingerprint(value) for value in DIFFERENT[kind]]
    assert len(set(found)) == len(found)
    assert [fingerprint(value) for value in DIFFERENT[kind]] == found


def test_equal_values_agree():
    """Equal content that is made again would be calibrated again."""
    for make in (
        lambda: {"a": [1, (2.5, None)], "b": {3, 4}},
        lambda: closing({"x": np.arange(5)}),
        lambda: Slotted([1], "a"),
        lambda: as_sampler(stats.expon(scale=2)),
        lambda: samplers.mixture([samplers.uniform(0, 1), samplers.normal(0, 1)]),
        lambda: functools.partial(np.quantile, q=0.5),
        lambda: np.random.default_rng(1),
    ):
        assert fingerprint(make()) == fingerprint(make())
    expon = as_sampler(stats.expon())
    before = fingerprint(expon)
    np.random.random()  # a scipy distribution refers to numpy's global generator
    assert fingerprint(expon) == before


def test_cycles_can_be_encoded():
    """A list, function or object that contains itself would make the walk endless."""
    loop = [1]
    loop.append(loop)

    def recursive(x):
        return recursive(x)

    holder = types.SimpleNamespace()
    holder.self = holder
    for value in (loop, recursive, holder):
        assert fingerprint(value) == fingerprint(value)


def test_locks_loggers_paths_and_patterns_can_be_encoded():
    """A lock or logger that no answer depends on would keep an estimate from being remembered."""
    for value in (threading.Lock(), threading.RLock(), logging.getLogger("x"), Path("a"), re.compile("a")):
        assert fingerprint([value]) == fingerprint([value])


def test_global_generators_count_by_name():
    """The state of the global generators is no part of a function: they are reseeded with public seeds."""
    for function in (random.gauss, random.random, np.random.normal, lambda x: random.random()):
        before = fingerprint(function)
        random.random()
        np.random.random()
        assert fingerprint(function) == before


def test_versions_count(monkeypatch):
    """Another Python, or another version of a library, may compute something else."""
    before = fingerprint(np.mean), fingerprint(len)
    monkeypatch.setattr(sys, "version_info", (3, 99, 0, "final", 0))
    fingerprinting._header.cache_clear()
    assert fingerprint(len) != before[1]
    monkeypatch.undo()
    fingerprinting._header.cache_clear()
    origin.cache_clear()
    monkeypatch.setattr(origins, "_version", lambda top: "99.0")
    assert fingerprint(np.mean) != before[0]
    monkeypatch.undo()
    origin.cache_clear()
    assert (fingerprint(np.mean), fingerprint(len)) == before


def test_what_cannot_be_encoded_raises():
    """A generator or an open file has no content to compare, so it must not have a fingerprint."""
    with Path(__file__).open() as file:
        for value in ((i for i in range(3)), file, np.frompyfunc(lambda x: x, 1, 1)):
            with pytest.raises(Unencodable):
                fingerprint([value])


def test_whose_code_it_is():
    """Installed code counts by version and the user's own by content; otherwise changes would be missed."""
    assert origin("numpy") == f"numpy {np.__version__}"
    assert origin("json") == origin("builtins") == "python"
    assert origin("__main__") is None and origin(__name__) is None


SOURCES = [
    "def f(x):\n  y = x * {0} + 1\n  for i in range(3):\n    y = y - i if y > {1} else y + {2}\n  return y",
    "def f(x):\n    def g(y, z={0}):\n        return [v + z for v in (y, {1})]\n    return sum(g(x)) + {2}",
    "def f(x):\n  try:\n    return {0} / x\n  except ValueError:\n    return {1}\n  finally:\n    x = {2}",
    "def f(x):\n    return {{'a': {0}, 'b': ({1}, {2})}}['b'][x % 2]",
]


@pytest.mark.parametrize("source", SOURCES)
def test_every_mutation_with_other_answers_changes_the_fingerprint(source):
    """A random change of a constant or operator that changes an answer would get a stale estimate."""
    rng = np.random.default_rng(1)
    seen = {}
    for _ in range(150):
        text = source.format(*rng.integers(0, 4, 3))
        if rng.random() < 0.5:
            pairs = [
                ("+", "-"),
                ("-", "+"),
                (">", "<="),
                ("*", "+"),
                ("sum", "max"),
                ("% 2", "% 1"),
                ("/", "//"),
            ]
            before, after = pairs[rng.integers(len(pairs))]
            text = text.replace(before, after, 1)
        scope = {"__name__": "__main__"}
        exec(text, scope)
        answers = tuple(scope["f"](x) for x in (1, 2, 3, 4, 7))
        assert seen.setdefault(fingerprint(scope["f"]), answers) == answers
    assert len(seen) > 30


# --- what is encoded once -----------------------------------------------------------------------


class Louder(Laplace):
    """A user's subclass of one of our mechanisms, with an attribute that may change."""

    factor = 1.0

    def norm(self, gap):
        return self.factor * float(np.abs(gap).sum())


class Shifted(type(samplers.uniform(0, 1))):
    """A user's subclass of one of our samplers."""

    def draw(self, n, rng):
        return super().draw(n, rng) + vars(self).get("by", 0.0)


def test_objects_of_users_subclasses_are_encoded_each_time():
    """A mechanism or P that changed would be answered with the noise of the old one."""
    ours = samplers.uniform(0, 1)
    for made, name, value in (
        (Louder(), "factor", 2.0),
        (Shifted(ours.low, ours.high), "by", 5.0),
    ):
        before = fingerprint(made)
        assert fingerprint(made) == before != fingerprint(ours)
        object.__setattr__(made, name, value)
        assert fingerprint(made) != before


def test_a_private_function_notices_that_its_sampler_or_mechanism_changed():
    """The gaps of another P or mechanism would be used for the changed one."""
    ours = samplers.uniform(0, 1)
    sampler, mechanism = Shifted(ours.low, ours.high), Louder()
    f = privatize(epsilon=1, gamma=0.2, sampler=sampler, mechanism=mechanism, seed=1, domain="as-is")(
        np.median
    )
    keys = [fingerprint(f.settings.key)]
    object.__setattr__(sampler, "by", 5.0)
    keys.append(fingerprint(f.settings.key))
    object.__setattr__(mechanism, "factor", 2.0)
    keys.append(fingerprint(f.settings.key))
    assert len(set(keys)) == 3
    assert f.estimate(20).value == 2 * f.replace(mechanism=Laplace()).estimate(20).value


def test_values_at_the_same_address_are_not_taken_for_each_other():
    """A new value at the address of an old one would get the fingerprint of the old one."""
    seen = {}
    for i in range(3000):  # more than are cached
        for made in (samplers.uniform(0, i + 1), samplers.integers(0, i + 1), samplers.normal(0, i + 1)):
            found = fingerprint(made)
            assert seen.setdefault(found, repr(made)) == repr(made)
        del made
        if not i % 500:
            gc.collect()
    assert len(seen) == 9000
    assert fingerprint(samplers.uniform(0, 7)) == next(
        k for k, text in seen.items() if text == "uniform(0, 7)"
    )
    assert len(objects._encoded) <= objects._MOST


def test_cached_encodings_equal_fresh_ones():
    """A key that depended on whether an encoding was cached would not be found again."""
    values = [
        Laplace(),
        Laplace(scaled="total"),
        samplers.uniform([0, 0], [1, 2]),
        samplers.categorical(["a", "b"]),
    ]
    cached = [fingerprint([value, value, 1]) for value in values]
    objects._encoded.clear()
    assert [fingerprint([value, value, 1]) for value in values] == cached
    assert len(set(cached)) == len(cached)


KEYS = """
import sys
import numpy as np
from privatize import Gaussian, Laplace, privatize, samplers

def f(x, which=frozenset({"a", "b", "c"}), *, table={"x": 1, "y": 2}):
    return float(x.mean()) + len(which & {"a", "q", "z"})

def stacked(s):
    return s.mean(axis=1)

if "later" in sys.argv:  # other values first, in other places
    junk = [samplers.uniform(0, i) for i in range(1, 500)]
    [privatize(epsilon=1, gamma=0.1, sampler=each)(f).settings.key for each in junk]

for settings in (
    {"sampler": samplers.uniform(0, 1)},
    {"sampler": samplers.uniform([0, 0], [1, 2]), "mechanism": Laplace(scaled="total")},
    {"sampler": samplers.normal(0, 1).map(np.exp), "mechanism": Gaussian(), "delta": 1e-6},
    {"sampler": samplers.integers(0, 9), "batch": True},
    {"sampler": samplers.integers(0, 9), "batch": stacked},
):
    made = privatize(epsilon=1, gamma=0.1, **settings)(f)
    from privatize.identity.fingerprint import fingerprint
    from privatize.function.asking import questions
    print(fingerprint(questions(made.definition, made.calibrator, "", [(100,), {}])[0][0].facts()))
"""


def test_the_key_of_an_estimate_is_the_same_in_every_process(tmp_path):
    """Another process, with another hash seed and other values before, would not find an estimate."""
    script = tmp_path / "keys.py"
    script.write_text(KEYS)
    root = str(Path(fingerprinting.__file__).parents[2])
    found = set()
    for seed, order in (("0", "first"), ("1", "later"), ("77", "first")):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": root, "PRIVATIZE_STORE": ""}
        done = subprocess.run(
            [sys.executable, str(script), order], env=environment, capture_output=True, text=True, check=True
        )
        found.add(done.stdout)
    assert len(found) == 1
    assert len(set(found.pop().split())) == 5


@pytest.mark.parametrize("top", ["numpy", "scipy", "pandas", "sklearn"])
def test_versions_in_packages_are_the_installed_versions(top):
    """A key must not depend on whether a package that the function uses was imported before."""
    pytest.importorskip(top)
    version = origins._version.__wrapped__(top)
    assert version == metadata.version(origins._SELF_DESCRIBED[top])
    with mock.patch.dict(sys.modules):
        del sys.modules[top]
        assert origins._version.__wrapped__(top) == version


# --- names, and what else code can read ---------------------------------------------------------

NAMED = """
import sys
import warnings
import numpy as np
from privatize import configure, privatize, samplers
from privatize.identity.fingerprint import fingerprint, reach

warnings.simplefilter("error")
configure(store=None)
LIMITS = {"small": 1.0, "large": 100.0}

class Config:
    '''A class of the program's own.'''
    limit: float = 2.0
    class Inner:
        '''One in another.'''

def metric(fn):
    '''Limit a function by its name.'''
    def run(x: np.ndarray) -> float:
        '''Run it.'''
        return float(np.minimum(fn(x), LIMITS[fn.__name__] * len(Config.Inner.__name__)).mean())
    return run

@metric
def small(x):
    '''Return it.'''
    return x * 50

if __name__ == "__main__":
    promise = {"epsilon": 1, "gamma": 0.3, "sampler": samplers.uniform(0, 1), "seed": 1}
    here = privatize(**promise, workers="inline")(small).estimate(20)
    there = privatize(**promise, workers=2)(small).estimate(20)
    assert here.value == there.value
    print(fingerprint(small), reach(small).digest)
"""


def test_names_are_the_same_in_workers(tmp_path):
    """Workers refuse a function whose name, module or docstring is not the one that was sent."""
    (tmp_path / "program.py").write_text(NAMED)
    root = str(Path(fingerprinting.__file__).parents[2])
    found = set()
    for command in (["program.py"], ["-m", "program"]):
        done = subprocess.run(
            [sys.executable, *command],
            env={"PYTHONPATH": root, "PRIVATIZE_STORE": "", "PATH": ""},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1


SPAWNED = """
import multiprocessing
from privatize.identity.fingerprint import fingerprint

class Config:
    "Config."
    limit = 2.0

def f(x):
    return x * Config.limit

def reading(x):
    return x * (100 if f.__module__ == "__main__" else 1)

def both(_):
    return fingerprint(f), fingerprint(reading)

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.map(both, [0])[0]
    here = both(0)
    print(here[0] == there[0], here[1] == there[1])
"""


def test_programs_that_start_processes_of_their_own(tmp_path):
    """__main__ has another name in a child: functions that do not read it would be calibrated again there."""
    (tmp_path / "program.py").write_text(SPAWNED)
    root = str(Path(fingerprinting.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "program.py"],
        env={"PYTHONPATH": root, "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_a_function_that_is_defined_again_is_the_same():
    """In a notebook a cell is run again and again; what did not change must not be calibrated each time."""
    found = set()
    for before in ("", "\n\n", "x = 1\n"):
        scope = {"__name__": "__main__"}
        text = 'class C:\n    "c"\n    n: int = 1\ndef g(x: C):\n    "g"\n    return x\n'
        text += "def f(x):\n    return g(x) * C.n"
        exec(before + text, scope)
        found.add(fingerprint(scope["f"]))
    assert len(found) == 1


def test_two_functions_behind_one_wrapper_have_estimates_of_their_own():
    """A wrapper with a table of limits by name gave both functions the noise of the first."""
    limits = {"low": 10.0, "high": 100.0}

    def metric(fn):
        def run(x):
            return float(np.minimum(50 * fn(x), limits[fn.__name__]).mean())

        return run

    def low(x):
        return x

    def high(x):
        return x

    promise = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), seed=1)
    small, large = promise(metric(low)), promise(metric(high))
    assert large.estimate(20).value > 4 * small.estimate(20).value


def test_private_functions_count_with_their_names():
    """A function can read the name and docstring of a helper, also if that is a private function."""
    promise = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1))
    inner = promise(lambda x: float(x.mean()))

    def f(x):
        return float(x.mean()) * int(inner.__doc__ or 1)

    before = fingerprint(f)
    inner.__doc__ = "100"
    assert fingerprint(f) != before


def test_caches_are_emptied():
    """A cached answer from before a change would be used after the change."""
    factor = 100

    @functools.lru_cache
    def limit():
        return factor

    def f(x):
        return float(x.mean()) * limit()

    limit()
    factor = 1
    private = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), seed=1)(f)
    other = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), seed=1)(lambda x: float(x.mean()))
    data = np.linspace(0, 1, 20)
    assert private.release(data).sensitivity == other.release(data).sensitivity
    assert private.remembers(20), "an emptied cache must not keep an estimate from being remembered"


class Lazy(types.ModuleType):
    """A module that raises when a missing attribute is read."""

    def __getattr__(self, name):
        raise RuntimeError("not today")


def test_modules_that_raise_when_they_are_read(monkeypatch):
    """One broken module of another package would make every calibration fail."""
    lazy = Lazy("lazy_and_broken")
    monkeypatch.setitem(sys.modules, "lazy_and_broken", lazy)
    origin.cache_clear()
    assert origin("lazy_and_broken") is None
    assert "lazy_and_broken" in origins.own_modules()

    def inner(x):
        return x

    inner.__module__ = "lazy_and_broken"
    before = fingerprint(lambda x: inner(x))
    assert before == fingerprint(lambda x: inner(x))
    odd = types.ModuleType("odd")
    odd.__path__ = 5
    monkeypatch.setitem(sys.modules, "odd", odd)
    assert origin("odd") is None


class Service:
    """A typical program: a source of data with a budget, and private methods."""

    def load(self):
        return self.source()

    def mean(self, x):
        return float(x.mean()) * self.factor


def test_budgets_and_sources_can_be_encoded(tmp_path):
    """If another method of the class loads data, nothing would be remembered, and γ charged at every call."""
    import sqlite3

    connection = sqlite3.connect(":memory:")
    budget = Budget("service", epsilon=10, gamma=1, ledger=tmp_path / "ledger.db")
    parts = budget.partition("years", parts=["2025", "2026"])

    @private_source(name="people", budget=budget)
    def load():
        connection.execute("select 1")
        return np.linspace(0, 1, 20)

    class Program(Service):
        factor = 2.0
        books = (budget, parts, parts["2025"], budget.ledger)

        def source(self):
            return load()

        total = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), budget=budget)(Service.mean)

    program = Program()
    program.sealed = program.load()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            program.total(program.load())
    assert budget.remaining.gamma == pytest.approx(0.9)
    connection.close()


def test_errors_name_the_way_to_what_cannot_be_compared():
    """A user cannot find a connection that is five objects away."""
    generator = (i for i in range(3))

    class Store:
        pass

    store = Store()
    store.tables = {"ages": [generator]}

    def helper(x):
        return store.tables

    def f(x):
        return float(x.mean()) * len(helper(x))

    with pytest.raises(Unencodable) as caught:
        fingerprint(f)
    assert str(caught.value) == "a builtins.generator (reached by helper -> store -> tables -> ['ages'])"
    connected = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1))(f)
    with pytest.warns(NotRememberedWarning, match=r"reached by helper -> store -> tables"):
        connected.estimate(20)


def test_settings_of_numpy_count():
    """A function that catches errors returns something else if numpy does not raise them."""

    def f(x):
        try:
            return float((x / 0.0).max())
        except FloatingPointError:
            return float(x.sum())

    private = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(1, 2), seed=1)(f)
    with np.errstate(all="raise"):
        private.estimate(20)
        assert private.remembers(20)
    with np.errstate(all="ignore"):
        assert not private.remembers(20)


def test_keys_have_no_patch_versions_and_no_modules_of_ours(monkeypatch):
    """A patch release of Python, or moving a class of ours to another module, would make estimates stale."""
    before = fingerprint([Laplace(), samplers.uniform(0, 1)]), fingerprint(Exponential([1, 2]))
    monkeypatch.setattr(sys, "version_info", (*sys.version_info[:2], 99, "final", 0))
    fingerprinting._header.cache_clear()
    moved = types.ModuleType("privatize.elsewhere")
    monkeypatch.setitem(sys.modules, "privatize.elsewhere", moved)
    for kind in (Laplace, Exponential, type(samplers.uniform(0, 1))):
        setattr(moved, kind.__qualname__, kind)
        monkeypatch.setattr(kind, "__module__", "privatize.elsewhere")
    objects._encoded.clear()
    after = fingerprint([Laplace(), samplers.uniform(0, 1)]), fingerprint(Exponential([1, 2]))
    monkeypatch.undo()
    fingerprinting._header.cache_clear()
    objects._encoded.clear()
    assert before == after


class Renamed:
    tag = "a name that stays"


def test_our_classes_are_named_by_tags():
    """A class of ours that is renamed keeps its tag, and with it the estimates that were made."""
    assert library.tag_of(Renamed) == "a name that stays"
    assert library.tag_of(Laplace) == "laplace 1"
    names = {}
    for module in list(sys.modules.values()):
        for kind in vars(module).values() if module.__name__.startswith("privatize.") else ():
            if isinstance(kind, type) and (getattr(kind, "immutable", False) or hasattr(kind, "_identity")):
                assert names.setdefault(library.tag_of(kind), kind) is kind, kind


def test_flags_are_the_same_after_they_were_used():
    """Python caches what it computes from flags, and a function with flags would be refused."""

    class Options(enum.Flag):
        A = 1
        B = 2

    def f(x):
        return x if ~Options.A and Options.A | Options.B else -x

    before = fingerprint(f)
    f(1)
    assert fingerprint(f) == before


def test_the_librarys_code_is_known_by_its_content(tmp_path, monkeypatch):
    """Two processes with different code must not share work."""
    ours = library.sources()
    there = tmp_path / "privatize"
    shutil.copytree(library._ROOT, there, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(library, "_ROOT", there)
    read = library.sources.__wrapped__  # without the cache
    assert read() == ours
    changed = there / "mechanisms" / "base.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "# another\n", encoding="utf-8")
    assert read() != ours


@pytest.mark.parametrize(
    "lookup",
    [
        'getattr(helpers, "LI" + END)',
        'getattr(helpers, "LI%s" % END)',
        'getattr(helpers, "LIMIT!"[:5])',
        'globals()["LI" + END]',
        'eval("LI" + END)',
    ],
)
def test_names_that_are_put_together_count_as_computed(lookup):
    """An attribute that no literal names would change without a new calibration."""
    keys = set()
    for limit in (1, 100):
        helpers = types.ModuleType("helpers")
        helpers.LIMIT = limit
        program = {"__name__": "__main__", "helpers": helpers, "END": "MIT", "LIMIT": limit}
        exec(f"def f(x): return x.mean() * {lookup}", program)
        try:
            keys.add(fingerprint(program["f"]))
        except Unencodable:
            keys.add(limit)
    assert len(keys) == 2


def test_wrapped_or_compiled_functions_count_if_they_patch_a_library(monkeypatch):
    """A library's function that the user replaced would be taken for the library's own."""
    before = fingerprint(lambda x: np.mean(x))
    monkeypatch.setattr(np, "mean", functools.lru_cache(lambda x: 100 * x[0]))
    assert fingerprint(lambda x: np.mean(x)) != before


SCALE = contextvars.ContextVar("scale", default=1.0)


@pytest.mark.parametrize("setting", ["a context variable", "the garbage collector", "the socket timeout"])
def test_version_does_not_replace_what_can_be_read(setting):
    """A setting that has changed would be taken as it was, and the noise with it."""
    read = {
        "a context variable": lambda x: x.mean() * SCALE.get(),
        "the garbage collector": lambda x: x.mean() * (1 if gc.isenabled() else 1000),
        "the socket timeout": lambda x: x.mean() * (socket.getdefaulttimeout() or 1),
    }[setting]
    before = fingerprint(read, version="1")
    token, timeout = SCALE.set(1000.0), socket.getdefaulttimeout()
    gc.disable()
    socket.setdefaulttimeout(1000.0)
    try:
        assert fingerprint(read, version="1") != before
    finally:
        gc.enable()
        SCALE.reset(token)
        socket.setdefaulttimeout(timeout)
    assert fingerprint(read, version="1") == before
