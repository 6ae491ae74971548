"""A fingerprint changes with whatever could change what a function computes, and with nothing else.

A stale estimate means too little noise, so every row of the first table is a privacy failure if it
fails; every row of the second costs a needless calibration.
"""

import contextvars
import functools
import gc
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privatize import Laplace, privatize, samplers
from privatize.identity import fingerprint as fingerprinting
from privatize.identity.fingerprint import fingerprint
from tests.identity.projects import Louder, Shifted

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
