"""Watches over functions: whatever changes a fingerprint must be seen."""

import builtins
import functools
import math
import sys
import types

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import DataError
from privatize.function.question import Question
from privatize.identity.change_guard import guard
from privatize.identity.fingerprint import Unencodable, fingerprint

SOURCE = """
import math
import numpy as np
limit, names = 65, ("a", ("b", 1))
def helper(x: "math.inf", by: float = 2.0) -> "Kind":
    return by * x
def f(x: np.ndarray, factor: int | None = 3):
    "Compute."
    return factor * helper(np.mean(x)) + math.floor(limit) + len(names) + undefined(x)
def made(inner):
    def g(x):
        return inner * np.random.random() + x
    return g
g = made(7)
def other(x):
    return 0
"""


@pytest.fixture
def scope():
    """Return the globals of a small program."""
    module = types.ModuleType("watched_program")
    sys.modules["watched_program"] = module
    exec(SOURCE.replace(" + undefined(x)", ""), vars(module))
    yield module
    del sys.modules["watched_program"]


def put_attribute(owner, name, value):
    """Set an attribute, and return what undoes it."""
    missing = object()
    before = vars(owner).get(name, missing) if isinstance(owner, types.ModuleType) else getattr(owner, name)
    setattr(owner, name, value)
    return lambda: delattr(owner, name) if before is missing else setattr(owner, name, before)


def own_module(name):
    """Have a module of the user's own be imported, and return what undoes it."""
    before = sys.modules.get(name)
    sys.modules[name] = types.ModuleType(name)
    return lambda: sys.modules.pop(name) if before is None else sys.modules.update({name: before})


def set_cell(function, value):
    """Fill the first cell of a closure."""
    cell = function.__closure__[0]
    before, cell.cell_contents = cell.cell_contents, value
    return lambda: setattr(cell, "cell_contents", before)


# Each changes what a function is, and returns what undoes it.
CHANGES = {
    "a global": lambda m: put_attribute(m, "limit", 66),
    "a global of another type": lambda m: put_attribute(m, "limit", 65.0),
    "a tuple": lambda m: put_attribute(m, "names", ("a", ("b", 2))),
    "a helper": lambda m: put_attribute(m, "helper", m.other),
    "a helper's code": lambda m: put_attribute(m.helper, "__code__", m.other.__code__),
    "a helper's default": lambda m: put_attribute(m.helper, "__defaults__", (2.5,)),
    "its code": lambda m: put_attribute(m.f, "__code__", m.other.__code__),
    "its default": lambda m: put_attribute(m.f, "__defaults__", (4,)),
    "its keyword defaults": lambda m: put_attribute(m.f, "__kwdefaults__", {"y": 1}),
    "an attribute of it": lambda m: vars(m.f).update(note=1) or (lambda: vars(m.f).clear()),
    "a name that was a builtin": lambda m: put_attribute(m, "len", m.other),
    "a module": lambda m: put_attribute(m, "math", np),
    "a patched module": lambda m: put_attribute(math, "floor", m.other),
    "a patched package": lambda m: put_attribute(np, "mean", m.other),
    "its name": lambda m: put_attribute(m.f, "__name__", "another"),
    "its qualified name": lambda m: put_attribute(m.f, "__qualname__", "C.f"),
    "its module": lambda m: put_attribute(m.f, "__module__", "another"),
    "its docstring": lambda m: put_attribute(m.f, "__doc__", "another"),
    "its annotations": lambda m: put_attribute(m.f, "__annotations__", {"x": int}),
    "a helper's name": lambda m: put_attribute(m.helper, "__name__", "another"),
    "a helper's docstring": lambda m: put_attribute(m.helper, "__doc__", "another"),
    "a helper's annotation": lambda m: put_entry(m.helper.__annotations__, "by", int),
    "what an annotation names": lambda m: put_attribute(m, "Kind", 5),
    "what an annotation of a helper names": lambda m: put_attribute(m, "math", np),
    "a replaced builtin": lambda m: put_attribute(builtins, "len", m.other),
    "a module of a name that it reads": lambda m: own_module("mean"),
}


def put_entry(table, key, value):
    """Set an entry, and return what undoes it."""
    before = dict(table)
    table[key] = value
    return lambda: (table.clear(), table.update(before))


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_a_fingerprint_is_seen(scope, name):
    """A change that is not seen would be answered with the noise of another function."""
    before, watched = fingerprint(scope.f), guard(scope.f)
    assert watched is not None and watched.same()
    undo = CHANGES[name](scope)
    try:
        changed = fingerprint(scope.f) != before
        assert changed or name == "a module of a name that it reads"  # which is empty
        assert not watched.same()
    finally:
        undo()
    assert fingerprint(scope.f) == before


def test_closures_are_watched(scope):
    """A closure's variable that changes makes another function."""
    watched = guard(scope.g)
    assert watched is not None and watched.same()
    undo = set_cell(scope.g, 8)
    assert not watched.same()
    undo()
    assert watched.same()
    del scope.g.__closure__[0].cell_contents
    assert not watched.same()
    assert guard(scope.g) is None


class Callable:
    """What a class of the user's makes."""

    def __call__(self, x):
        return x


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        {"a": 1},
        {1, 2},
        np.zeros(3),
        Callable(),
        Callable,
        (1, [2]),
        types.ModuleType("mine"),
        functools.partial(abs),
        np.float64(1.0),
        bytearray(b"a"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_could_change_unseen_is_not_watched(scope, value):
    """Of what a list or an object holds, identity says nothing."""
    scope.limit = value
    assert guard(scope.f) is None
    scope.limit = 65
    undo = set_cell(scope.g, value)
    assert guard(scope.g) is None
    undo()
    scope.f.__defaults__ = (value,)
    assert guard(scope.f) is None


@pytest.mark.parametrize(
    "body",
    [
        "import math; return math.pi",
        "return missing_everywhere(x)",
        "import sys; return sys.modules[__name__].limit",
        "return sys.modules[__name__].limit",
        "return getattr(math, x)",
        "return eval(x)",
        "return math.__dict__[x]",
        "return len(KeyError.__subclasses__())",
        "return str(x)",
        "return collections.abc.Sequence",
        "return f.__code__.co_firstlineno",
    ],
)
def test_what_is_found_at_run_time_is_not_watched(scope, body):
    """Imports, names that are not there yet and lookups are for the fingerprint."""
    exec(f"import sys, collections.abc\ndef h(x):\n    {body}", vars(scope))
    assert guard(scope.h) is None


@pytest.mark.parametrize(
    "function", [np.mean, np.sqrt, len, str.upper, functools.partial(abs), Callable(), 5]
)
def test_other_callables_are_not_watched(function):
    """They are looked at each time."""
    assert guard(function) is None


class Shadowing(dict):
    """A scope that makes up what a name means."""

    made_up = 1

    def __getitem__(self, name):
        return self.made_up if name == "limit" else super().__getitem__(name)


def test_scopes_that_are_no_plain_dicts_are_not_watched():
    """What they find for a name is theirs to say."""
    scope = Shadowing(limit=3)
    exec("def f(x): return limit", scope)
    assert guard(scope["f"]) is None


def test_a_module_that_becomes_another_kind_is_seen(scope):
    """It may make up its attributes from then on."""

    class Odd(types.ModuleType):
        pi = 3

    exec("import calendar\ndef h(x): return x * calendar.EPOCH", vars(scope))
    watched = guard(scope.h)
    assert watched is not None and watched.same()
    scope.calendar.__class__ = Odd
    try:
        with pytest.raises(Unencodable):
            fingerprint(scope.h)
        assert not watched.same()
    finally:
        scope.calendar.__class__ = types.ModuleType


def test_what_changed_to_and_fro_while_the_fingerprint_was_taken(scope):
    """A key of another moment must not be filed under a watch of this one."""
    watched = guard(scope.f)
    for name, change in CHANGES.items():
        undo = change(scope)
        read = {}
        fingerprint(scope.f, read=read)
        undo()
        assert watched.same()
        alone = ("its keyword defaults", "an attribute of it", "its annotations", "a helper's annotation")
        if name not in alone:  # which `same` alone looks at
            assert not watched.saw(read), name
    read = {}
    fingerprint(scope.f, read=read)
    assert watched.saw(read)


@pytest.mark.parametrize("odd", [[], {}])
def test_odd_functions_are_the_fingerprints_business(scope, odd):
    """A watch that raises would be an error without a word."""
    scope.f.__module__ = odd
    assert guard(scope.f) is None
    deep = ()
    for _ in range(5000):
        deep = (deep,)
    scope.g.__closure__[0].cell_contents = deep
    assert guard(scope.g) is None


def test_functions_that_call_each_other_end(scope):
    """Recursion must not be the end of the program."""
    exec("def even(x): return x == 0 or odd(x - 1)\ndef odd(x): return x != 0 and even(x - 1)", vars(scope))
    watched = guard(scope.even)
    assert watched is not None and watched.same()
    scope.odd.__code__ = scope.other.__code__
    assert not watched.same()


def test_settings_of_numpy_are_watched(scope):
    """A function that catches what numpy raises returns something else where nothing is raised."""
    watched = guard(scope.f)
    with np.errstate(all="raise"):
        assert not watched.same()
    assert watched.same()


# --- in a private function ---


def asked(f, data):
    """Return the key of the estimate that a call uses."""
    call = f.definition.binding.bind((data,), {})[1]
    template = f.calibrator.template(f.definition)
    return f.calibrator.recall(Question(f.definition, template, call, len(data), None)).key


def test_a_change_after_many_calls_calibrates_again(scope):
    """Once the library has come to trust a function, it must still see that it changed."""
    f = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(scope.f)
    data = np.linspace(0, 1, 20)
    for _ in range(4):
        f(data)
    assert any(found is not None for _, found in f.calibrator.guarded.values()), "no guard"
    first = asked(f, data)
    scope.f.__defaults__ = (30,)
    f(data)
    second = asked(f, data)
    assert second != first
    for _ in range(3):
        f(data)
    assert asked(f, data) == second
    scope.f.__defaults__ = (3,)
    assert asked(f, data) == first


@pytest.mark.parametrize("name", ["its docstring", "its name", "its annotations", "a helper's docstring"])
def test_what_a_function_says_of_itself_is_read_at_every_call(scope, name):
    """A wrapper may look limits up by a name or docstring, also after many calls."""
    f = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(scope.f)
    data = np.linspace(0, 1, 20)
    for _ in range(4):
        f(data)
    assert any(found is not None for _, found in f.calibrator.guarded.values()), "no guard"
    first = asked(f, data)
    undo = CHANGES[name](scope)
    assert asked(f, data) != first
    undo()
    assert asked(f, data) == first


def test_classes_are_read_at_every_call(scope):
    """A class is no place that a watch could look after."""
    exec("class C:\n    by = 1.0\ndef h(x):\n    return float(x.mean()) * C.by", vars(scope))
    f = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(scope.h)
    data = np.linspace(0, 1, 20)
    for _ in range(4):
        f(data)
    before = f.release(data).sensitivity
    scope.C.by = 100.0
    assert f.release(data).sensitivity == pytest.approx(100 * before)


def test_arguments_that_are_equal_but_not_the_same_are_told_apart():
    """1, 1.0 and True are equal, and a function may treat them differently."""

    def f(x, by=0):
        return float(x.mean()) * (3 if isinstance(by, bool) else 2 if isinstance(by, float) else 1)

    private = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(f)
    data = np.linspace(0, 1, 20)
    for _ in range(3):
        found = [private.release(data, by).sensitivity for by in (1, 1.0, True, 0.0, -0.0)]
    one = found[0]
    assert np.allclose(found, [one, 2 * one, 3 * one, 2 * one, 2 * one], rtol=1e-12)


def test_numbers_of_every_kind_as_arguments():
    """A NaN has a sign, and a whole number may have more digits than Python writes."""

    def f(x, by=0):
        return float(x.mean()) * (100.0 if math.copysign(1.0, by) < 0 else 1.0)

    private = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(f)
    data = np.linspace(0, 1, 20)
    for _ in range(3):
        found = [private.release(data, by).sensitivity for by in (math.nan, -math.nan, 0.0, -0.0)]
    assert np.allclose(found, [found[0], 100 * found[0]] * 2, rtol=1e-12)
    wide = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(lambda x, by: x.mean())
    for _ in range(3):
        assert wide.release(data, 10**5000).sensitivity == wide.estimate(20, 10**5000).value


def test_forgetting_reaches_what_is_watched():
    """Whoever forgets an estimate wants another one."""
    private = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1))(lambda x: float(x.mean()))
    data = np.linspace(0, 1, 20)
    for _ in range(3):
        private(data)
    before = private.estimate(20).seed
    private.forget()
    private(data)
    assert private.estimate(20).seed != before


def test_private_data_in_the_function_is_found_out_all_the_same():
    """A function that can reach the private data has an answer that noise is not made for."""
    data = np.linspace(0, 1, 20)
    other = 5

    def f(x):
        return float(np.mean(x)) + float(np.mean(other))

    private = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(f)
    for _ in range(3):
        private(data)
    other = data
    with pytest.raises(DataError):
        private(data)


@pytest.mark.parametrize("reading", ["np.random", "random"])
def test_what_a_nested_module_gets_later_is_seen(reading, monkeypatch):
    """A default would count for as long as the process lives, though the code reads something else by now."""
    program = {"__name__": "__main__", "np": np}
    exec(f"def f(x):\n    random = np.random\n    return getattr({reading}, 'FACTOR', 1) * x.mean()", program)
    before, guarded = fingerprint(program["f"]), guard(program["f"])
    assert guarded.same()
    monkeypatch.setattr(np.random, "FACTOR", 100, raising=False)
    assert not guarded.same() and fingerprint(program["f"]) != before
