"""A guard over a function notices everything that would change the function's fingerprint."""

import builtins
import collections.abc
import contextlib
import copyreg
import decimal
import fractions
import functools
import gc
import math
import sys
import types
import weakref
from typing import Any

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import DataError, PrivateRunError
from privatize.function.question import Question
from privatize.identity.change_guard import guard
from privatize.identity.fingerprint import Unencodable, fingerprint
from tests.cases import for_each

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
    module = types.ModuleType("guarded_program")
    sys.modules["guarded_program"] = module
    exec(SOURCE.replace(" + undefined(x)", ""), vars(module))
    yield module
    del sys.modules["guarded_program"]


def put_attribute(owner, name, value):
    """Set an attribute, and return what undoes it."""
    missing = object()
    before = vars(owner).get(name, missing) if isinstance(owner, types.ModuleType) else getattr(owner, name)
    setattr(owner, name, value)
    return lambda: delattr(owner, name) if before is missing else setattr(owner, name, before)


def own_module(name):
    """Add an imported module of the user's own, and return what undoes it."""
    before = sys.modules.get(name)
    sys.modules[name] = types.ModuleType(name)
    return lambda: sys.modules.pop(name) if before is None else sys.modules.update({name: before})


def set_cell(function, value):
    """Fill the first cell of a closure, and return what undoes it."""
    cell = function.__closure__[0]
    before, cell.cell_contents = cell.cell_contents, value
    return lambda: setattr(cell, "cell_contents", before)


# Each changes a function or something that it depends on, and returns what undoes it.
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
def test_every_change_of_a_fingerprint_is_noticed(scope, name):
    """If a change went unnoticed, answers would get the noise of the function before the change."""
    before, guarded = fingerprint(scope.f), guard(scope.f)
    fingerprint(scope.other)  # its code is cached: without `len` it could not be read
    assert guarded is not None and guarded.same()
    undo = CHANGES[name](scope)
    try:
        changed = fingerprint(scope.f) != before
        assert changed or name == "a module of a name that it reads"  # that module is empty
        assert not guarded.same()
    finally:
        undo()
    assert fingerprint(scope.f) == before


def typed(kind, body="return x.mean()"):
    """Return a function with a class in its annotations and its globals."""
    program = {"__name__": "typed_program", "Kind": kind}
    exec(f"def f(x: Kind) -> float:\n    {body}", program)
    return program["f"]


class TestInstalledClasses:
    """Classes of libraries that functions name, often in annotations."""

    @pytest.mark.parametrize("kind", [Any, np.matrix, np.ndarray, collections.Counter])
    def test_they_are_guarded(self, kind):
        """A function with annotations would need two fingerprints at every call."""
        f = typed(kind)
        guarded = guard(f)
        assert guarded is not None and guarded.same() and guarded.simple
        undo = put_entry(f.__annotations__, "x", int)
        assert not guarded.same()
        undo()
        assert guarded.same()
        named = typed(kind, "return Kind(x)")
        guarded = guard(named)
        assert guarded is not None and guarded.same()
        named.__globals__["Kind"] = complex
        assert not guarded.same()

    def test_how_arrays_are_printed_counts_for_strings(self):
        """A function that reads numbers as strings, by another name of `str`, gets other strings."""
        f = typed(str, "return len(Kind(x))")
        guarded, before = guard(f), fingerprint(f)
        assert guarded is not None and guarded.same()
        with np.printoptions(precision=2):
            assert not guarded.same() and fingerprint(f) != before
        assert guarded.same() and fingerprint(f) == before

    @pytest.mark.parametrize("body", ["return x.score()", "return Kind(x).score()"])
    def test_patches_that_code_names_are_seen(self, body, monkeypatch):
        """A method that was added to a library's class decides what is computed."""
        f = typed(np.matrix, body)
        guarded, before = guard(f), fingerprint(f)
        assert guarded is not None
        monkeypatch.setattr(np.matrix, "score", lambda self: 1, raising=False)
        assert not guarded.same() and fingerprint(f) != before
        again, second = guard(f), fingerprint(f)
        assert again is None or again.same()
        monkeypatch.setattr(np.matrix, "score", lambda self: 2)
        assert (again is None or not again.same()) and fingerprint(f) != second

    @pytest.mark.parametrize(
        "kind",
        [
            decimal.Decimal,  # computes by a setting of the thread
            collections.abc.Sequence,  # others can be registered with it
            fractions.Fraction,  # as above
            Unencodable,  # one of this library's
            type("Own", (), {}),
            type("Fraction", (), {"__module__": "fractions"}),  # not the one of that name
        ],
    )
    def test_others_have_no_guard(self, kind):
        """Only the fingerprint reads what these depend on."""
        assert guard(typed(kind)) is None

    def test_libraries_with_settings_have_no_guard(self):
        """A setting that allows missing values changes what a model learns."""
        linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
        assert guard(typed(linear_model.Ridge)) is None

    def test_values_in_a_class_that_can_change_have_no_guard(self, monkeypatch):
        """A list in a class may be filled between two calls."""
        monkeypatch.setattr(np.matrix, "limits", [1.0], raising=False)
        assert guard(typed(np.matrix, "return x.mean() * Kind.limits[0]")) is None


def test_closures_are_guarded(scope):
    """If a variable of a closure changed, answers would get the noise of the old value."""
    guarded = guard(scope.g)
    assert guarded is not None and guarded.same()
    undo = set_cell(scope.g, 8)
    assert not guarded.same()
    undo()
    assert guarded.same()
    del scope.g.__closure__[0].cell_contents
    assert not guarded.same()
    assert guard(scope.g) is None


class Callable:
    """A user's class with callable objects."""

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
        samplers.uniform(0, 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_can_change_in_place_have_no_guard(scope, value):
    """A list or an object is still the same object after its content changed: a guard would miss that."""
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
def test_lookups_at_run_time_have_no_guard(scope, body):
    """Only the fingerprint follows imports, lookups and missing names: a guard would miss changes."""
    exec(f"import sys, collections.abc\ndef h(x):\n    {body}", vars(scope))
    assert guard(scope.h) is None


@for_each("function", [np.mean, np.sqrt, len, str.upper, functools.partial(abs), Callable(), 5])
def test_other_callables_have_no_guard(function):
    """A guard compares only what functions and methods have: it would miss changes of other callables."""
    assert guard(function) is None


class Shadowing(dict):
    """Globals that make up the value of a name."""

    made_up = 1

    def __getitem__(self, name):
        return self.made_up if name == "limit" else super().__getitem__(name)


def test_globals_that_are_not_a_dict_have_no_guard():
    """A subclass of dict may return another value for the same name, which a guard would miss."""
    scope = Shadowing(limit=3)
    exec("def f(x): return limit", scope)
    assert guard(scope["f"]) is None


def test_a_module_that_gets_another_class_is_noticed(scope):
    """The new class may make up attributes, so the function may compute something else."""

    class Odd(types.ModuleType):
        pi = 3

    exec("import calendar\ndef h(x): return x * calendar.EPOCH", vars(scope))
    guarded = guard(scope.h)
    assert guarded is not None and guarded.same()
    scope.calendar.__class__ = Odd
    try:
        with pytest.raises(Unencodable):
            fingerprint(scope.h)
        assert not guarded.same()
    finally:
        scope.calendar.__class__ = types.ModuleType


def test_a_place_that_changes_and_changes_back_during_the_fingerprint(scope):
    """The key of the changed function would be used for the function as it is now."""
    guarded = guard(scope.f)
    for name, change in CHANGES.items():
        undo = change(scope)
        read = {}
        fingerprint(scope.f, read=read)
        undo()
        assert guarded.same()
        alone = ("its keyword defaults", "an attribute of it", "its annotations", "a helper's annotation")
        if name not in alone:  # only `same` compares these
            assert not guarded.saw(read), name
    read = {}
    fingerprint(scope.f, read=read)
    assert guarded.saw(read)


@pytest.mark.parametrize("odd", [[], {}])
def test_odd_functions_have_no_guard(scope, odd):
    """If a guard raised, the user would not get the fingerprint's message, which says what is wrong."""
    scope.f.__module__ = odd
    assert guard(scope.f) is None
    deep = ()
    for _ in range(5000):
        deep = (deep,)
    scope.g.__closure__[0].cell_contents = deep
    assert guard(scope.g) is None


def test_functions_with_many_annotations_are_guarded(scope):
    """A dict of 8 entries could be a copy of data, but annotations are none: calls would be slow."""
    names = ", ".join(f"{name}: float" for name in "abcdefgh")
    exec(f"def h(x, {names}): return x.mean()", vars(scope))
    assert guard(scope.h).same()


TYPED = """
from typing import Any
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame
def any_data(x: Any) -> dict[str, Any]: return {"mean": x.mean()}
def array(x: NDArray[np.float64]) -> NDArray[Any]: return x[:2]
def frame(x: pd.DataFrame) -> pd.Series: return x.mean()
def made(x): return DataFrame(x).mean().iloc[0]
"""


def _patched(self, *args, **more):
    return 3.0


def test_functions_that_name_classes_of_libraries_are_guarded(scope, monkeypatch):
    """Calls of functions with annotations would be slow; or a user's patch of a class would go unnoticed."""
    pd = pytest.importorskip("pandas")
    exec(TYPED, vars(scope))
    owners = (pd.DataFrame, pd.Series, pd.core.generic.NDFrame)
    patches = [(owner, name) for owner in owners for name in ("mean", "iloc", "__init__", "new")]
    patches.append((scope.Any, "new"))
    noticed = set()
    for name in ("any_data", "array", "frame", "made"):
        function = vars(scope)[name]
        guarded, before = guard(function, ("numpy", "pandas")), fingerprint(function)
        assert guarded is not None and guarded.same(), name
        for owner, attribute in patches:
            with monkeypatch.context() as patch:
                patch.setattr(owner, attribute, _patched, raising=False)
                if fingerprint(function) != before:
                    noticed.add((name, attribute))
                    assert not guarded.same(), (name, owner, attribute)
        assert guarded.same(), name
    assert noticed >= {("frame", "mean"), ("made", "mean"), ("made", "iloc")}


def test_functions_that_call_each_other_are_guarded(scope):
    """Functions that call each other would make the walk over them endless."""
    exec("def even(x): return x == 0 or odd(x - 1)\ndef odd(x): return x != 0 and even(x - 1)", vars(scope))
    guarded = guard(scope.even)
    assert guarded is not None and guarded.same()
    scope.odd.__code__ = scope.other.__code__
    assert not guarded.same()


def test_settings_of_numpy_are_guarded(scope):
    """A function that catches what numpy raises returns something else where nothing is raised."""
    guarded = guard(scope.f)
    with np.errstate(all="raise"):
        assert not guarded.same()
    assert guarded.same()


# --- in a private function ---


def key_of(f, data):
    """Return the key of the estimate that a call uses."""
    call = f.definition.binding.bind((data,), {})[1]
    template = f.calibrator.template(f.definition)
    return f.calibrator.recall(Question(f.definition, template, call, len(data), None)).key


def test_a_change_after_many_calls_calibrates_again(scope):
    """A function that has a guard by now would get the noise from before the change."""
    f = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(scope.f)
    data = np.linspace(0, 1, 20)
    for _ in range(4):
        f(data)
    assert any(found is not None for _, found in f.calibrator.guarded.values()), "no guard"
    first = key_of(f, data)
    scope.f.__defaults__ = (30,)
    f(data)
    second = key_of(f, data)
    assert second != first
    for _ in range(3):
        f(data)
    assert key_of(f, data) == second
    scope.f.__defaults__ = (3,)
    assert key_of(f, data) == first


@pytest.mark.parametrize("name", ["its docstring", "its name", "its annotations", "a helper's docstring"])
def test_names_docstrings_and_annotations_are_read_at_every_call(scope, name):
    """A wrapper may look limits up by a name or docstring, also after many calls."""
    f = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(scope.f)
    data = np.linspace(0, 1, 20)
    for _ in range(4):
        f(data)
    assert any(found is not None for _, found in f.calibrator.guarded.values()), "no guard"
    first = key_of(f, data)
    undo = CHANGES[name](scope)
    assert key_of(f, data) != first
    undo()
    assert key_of(f, data) == first


def test_classes_are_read_at_every_call(scope):
    """A function that uses a class would get the noise from before a change of the class."""
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
    """A NaN has a sign, and an integer may have more digits than Python prints."""

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


def test_forget_works_for_functions_with_a_guard():
    """A user who calls `forget` wants another estimate, and would get the old one."""
    private = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1))(lambda x: float(x.mean()))
    data = np.linspace(0, 1, 20)
    for _ in range(3):
        private(data)
    before = private.estimate(20).seed
    private.forget()
    private(data)
    assert private.estimate(20).seed != before


def test_private_data_in_a_function_with_a_guard_is_found():
    """The noise is not calibrated for a function that can reach the private data."""
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
def test_a_new_attribute_of_a_nested_module_is_noticed(reading, monkeypatch):
    """The noise would be that of the default, although the code reads the new attribute by now."""
    program = {"__name__": "__main__", "np": np}
    exec(f"def f(x):\n    random = np.random\n    return getattr({reading}, 'FACTOR', 1) * x.mean()", program)
    before, guarded = fingerprint(program["f"]), guard(program["f"])
    assert guarded.same()
    monkeypatch.setattr(np.random, "FACTOR", 100, raising=False)
    assert not guarded.same() and fingerprint(program["f"]) != before


# --- methods ---

CLASSES = """
import numpy as np
from privatize import privatize, samplers
class Base:
    base = 2
    def inherited(self): return self.base
class Other(Base):
    pass
class Counter(Base):
    "Doc."
    by, kept = 1.5, None
    def __init__(self, limit, start=0):
        self.limit = limit
        self.start = start
    def helper(self): return self.by * self.inherited()
    def total(self, x): return np.minimum(x, self.limit).sum() * self.helper()
    @privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)
    def private(self, x): return float(np.mean(x)) * self.limit * self.helper()
def another(self, x=None): return 1000.0
counter = Counter(3)
"""


@pytest.fixture
def program(scope):
    """Return the globals of a program with classes."""
    exec(CLASSES, vars(scope))
    return scope


def put_key(owner, name, value):
    """Set an attribute of an object or class, and return what undoes it."""
    before = dict(vars(owner))
    setattr(owner, name, value)
    return lambda: setattr(owner, name, before[name]) if name in before else delattr(owner, name)


def reorder(counter):
    """Change the order of an object's attributes, and return what undoes it."""
    before, counter.__dict__ = counter.__dict__, {"start": 0, "limit": counter.limit}
    return lambda: setattr(counter, "__dict__", before)


# Each changes a method or something that its code can read, and returns what undoes it.
METHOD_CHANGES = {
    "an attribute": lambda m: put_key(m.counter, "limit", 4),
    "an attribute of another type": lambda m: put_key(m.counter, "limit", 3.0),
    "a new attribute": lambda m: put_key(m.counter, "kept", 1),
    "a new attribute over the class's": lambda m: put_key(m.counter, "by", 7.0),
    "all attributes": lambda m: put_attribute(m.counter, "__dict__", {"limit": 4, "start": 0}),
    "an attribute of the class": lambda m: put_key(m.Counter, "by", 2.5),
    "a new attribute of the class": lambda m: put_key(m.Counter, "unheard", 1),
    "a method": lambda m: put_key(m.Counter, "helper", m.another),
    "the method itself": lambda m: put_key(m.Counter, "total", m.another),
    "a method's code": lambda m: put_attribute(m.Counter.helper, "__code__", m.another.__code__),
    "a method's default": lambda m: put_attribute(m.Counter.__init__, "__defaults__", (1,)),
    "a method's first annotation": lambda m: put_entry(m.Counter.helper.__annotations__, "x", int),
    "a method of the object": lambda m: put_key(m.counter, "helper", lambda: 5),
    "the method itself, of the object": lambda m: put_key(m.counter, "total", m.another),
    "an attribute of a base": lambda m: put_key(m.Base, "base", 3),
    "a method of a base": lambda m: put_key(m.Base, "inherited", m.another),
    "another base": lambda m: put_attribute(m.Counter, "__bases__", (m.Other,)),
    "another class": lambda m: put_attribute(m.counter, "__class__", type("Odd", (m.Counter,), {"by": 9})),
    "__getattribute__": lambda m: put_key(m.Counter, "__getattribute__", lambda self, name: 1),
    "__getattr__ of a base": lambda m: put_key(m.Base, "__getattr__", lambda self, name: 1),
    "a property": lambda m: put_key(m.Counter, "limit", property(lambda self: 1)),
    "the class's name": lambda m: put_attribute(m.Counter, "__name__", "Sum"),
    "the class's qualified name": lambda m: put_attribute(m.Counter, "__qualname__", "a.Counter"),
    "the class's docstring": lambda m: put_attribute(m.Counter, "__doc__", "Another."),
    "the class's module": lambda m: put_attribute(m.Counter, "__module__", "another"),
    "the class's annotations": lambda m: put_key(m.Counter, "__annotations__", {"by": float}),
    "a wrapped function": lambda m: put_attribute(vars(m.Counter)["private"], "__wrapped__", m.another),
    "an attribute of a wrapped function": lambda m: put_key(vars(m.Counter)["private"], "unheard", 1),
    "how it is copied": lambda m: put_copied(m.Counter),
}


def put_copied(kind):
    """Change how objects of a class are copied, and return what undoes it."""
    copyreg.pickle(kind, lambda value: (kind, (5,)))
    return lambda: copyreg.dispatch_table.pop(kind)


@pytest.mark.parametrize("name", METHOD_CHANGES)
def test_every_change_of_a_methods_fingerprint_is_noticed(program, name):
    """Answers would get the noise from before the change, which may be too little."""
    method = program.counter.total
    before, guarded = fingerprint(method), guard(method)
    assert guarded is not None and guarded.same() and guarded.simple
    undo = METHOD_CHANGES[name](program)
    try:
        assert not guarded.same()
        with contextlib.suppress(Unencodable):
            assert fingerprint(method) != before
    finally:
        undo()
    assert fingerprint(method) == before


# Only `same` compares these.
ALONE = {"a wrapped function", "an attribute of a wrapped function", "a method's first annotation"}


def test_a_method_that_changes_and_changes_back_during_the_fingerprint(program):
    """If another thread sets an attribute and sets it back, the key would be that of another method."""
    method = program.counter.total
    guarded, read = guard(method), {}
    fingerprint(method, read=read)
    assert guarded.saw(read)
    for name in METHOD_CHANGES.keys() - ALONE:
        undo, read = METHOD_CHANGES[name](program), {}
        with contextlib.suppress(Unencodable):
            fingerprint(method, read=read)
        undo()
        assert not guarded.saw(read), name


def test_a_new_order_of_attributes_is_noticed(program):
    """Code may loop over attributes; a library's code may do so without naming them."""
    guarded = guard(program.counter.total)
    undo = reorder(program.counter)
    assert not guarded.same()
    undo()
    assert guarded.same()


@pytest.mark.parametrize(
    "value",
    [[1], {}, np.zeros(2), Callable(), bytes(100), functools.partial(abs)],
    ids=lambda value: type(value).__name__,
)
def test_objects_whose_attributes_can_change_in_place_have_no_guard(program, value):
    """A list is still the same object after its content changed: a guard would miss that."""
    for owner in (program.counter, program.Counter, program.Base):
        undo = put_key(owner, "kept", value)
        assert guard(program.counter.total) is None
        undo()
    assert guard(program.counter.total) is not None


@pytest.mark.parametrize(
    "body",
    [
        "__slots__ = ('a',)",
        "def __getattr__(self, name): return 1",
        "def __getattribute__(self, name): return object.__getattribute__(self, name)",
        "def __eq__(self, other): return True",
        "def __del__(self): pass",
        "__dict__ = property(lambda self: {})",
        "total = property(lambda self: 1)",
        "total = classmethod(lambda self: 1)",
        "__annotations__ = []",
        "def total(self, x): self.last = x",
        "def reset(self): self.limit = 3",
        "def reset(self): vars(self)['limit'] = 3",
        "__module__ = 'json'",
        "note: 'Unit' = 1",
        "def __call__(self, x): return x",
        "@staticmethod\n    def g(x): return x",
        "@classmethod\n    def g(cls, x): return x",
        "@property\n    def g(self): return self.limit",
        "def g(self, cache={}): return cache",
        "def g(self): return __class__",
        "def g(self): return Base",
        "def __init__(self, limit=1): self.limit = limit\n    def g(self): return type(self)(4)",
        "def __init__(self, limit=1): self.limit = limit\n    def g(self): return self.__class__(4)",
        "def __init__(self, limit=1): self.limit = limit\n    def g(self): return self.__reduce__()",
        "def __init__(self, limit=1): self.limit = limit\n    reset = __init__",
        "def __init__(self, limit=1): self.limit = limit\n    def reset(self): self.__init__(4)",
    ],
)
def test_classes_that_are_not_plain_have_no_guard(program, body):
    """Their objects may make up attributes, or set them during a run, which a guard would miss."""
    for each, plain in ((body, False), ("def __init__(self, limit=1): self.limit = limit", True)):
        exec(f"other = 5\nclass Odd(Base):\n    def f(self, x): return x\n    {each}", vars(program))
        method = types.MethodType(vars(program.Odd)["f"], object.__new__(program.Odd))
        assert (guard(method) is not None) == plain


def test_methods_of_other_objects_have_no_guard(program):
    """Classes, lists, modules, enums, dataclasses and functions have state that a guard would miss."""
    exec(
        "import abc, dataclasses, enum\nclass A(abc.ABC): pass\n"
        "class M(type):\n    def __getattribute__(self, name): return 1\nclass X(metaclass=M): pass\n"
        "class N(type): pass\nclass Y(metaclass=N): pass\n"
        "class E(enum.Enum):\n    a = 1\n"
        "@dataclasses.dataclass\nclass D:\n    a: int = 1\nclass L(list): pass",
        vars(program),
    )
    odd = [
        program.Counter,
        [],
        program,
        program.A(),
        program.E.a,
        program.D(),
        program.L(),
        program.X(),
        program.Y(),
        program.other,
        5,
    ]
    for each in (*odd, types.MethodType(program.another, program.counter)):
        assert guard(types.MethodType(program.another, each)) is None
    assert guard(types.MethodType(len, program.counter)) is None
    assert guard(types.MethodType(program.another, program.counter)) is not None


def test_closures_of_methods_are_guarded(program):
    """A method of a class that a function made can read the function's variables, which may change."""
    exec(
        "def make(by):\n    class Made(Counter):\n        def total(self, x): return x.mean() * by\n"
        "    return Made(1)\nmade = make(3)",
        vars(program),
    )
    method = program.made.total
    before, guarded = fingerprint(method), guard(method)
    assert guarded.same()
    undo = set_cell(method.__func__, 30)
    assert not guarded.same() and fingerprint(method) != before
    undo()
    assert guarded.same() and fingerprint(method) == before


def sensitivities(methods, data):
    """Return the sensitivity of each method after several calls."""
    return [[each().release(data).sensitivity for _ in range(4)][-1] for each in methods]


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        ("counter.limit = 30", 10),
        ("counter.by = 15.0", 10),
        ("Counter.by = 15.0", 10),
        ("Base.base = 20", 10),
        ("Counter.helper = lambda self: 30.0", 10),
        ("counter.helper = lambda: 30.0", 10),
        ("Counter.__bases__ = (type('B', (Base,), {'base': 20}),)", 10),
        ("counter.__class__ = type('C', (Counter,), {'by': 15.0})", 10),
        ("counter.__dict__ = {'limit': 30}", 10),
        ("Counter.__getattr__ = lambda self, name: 20\ndel Base.base", 10),
    ],
)
def test_a_changed_object_or_class_is_calibrated_again(program, change, factor):
    """A method that was called often would get the old noise, looked up again or stored in a variable."""
    data, stored = np.linspace(0, 1, 20), program.counter.private
    methods = [lambda: program.counter.private, lambda: stored]
    before = sensitivities(methods, data)
    known = vars(program.Counter)["private"].calibrator.guarded
    assert any(found is not None for _, found in known.values()), "no guard"
    exec(change, vars(program))
    assert sensitivities(methods, data) == pytest.approx([factor * each for each in before])


def test_an_object_at_the_address_of_another_one_is_told_apart(program):
    """Python uses addresses again: a new object would get the estimate of an old one."""
    data, found, addresses = np.linspace(0, 1, 20), {}, set()
    for at in range(40):
        for kept in (None, [at]):  # with a guard, and without one
            counter = program.Counter(1 + at % 2)
            counter.kept = kept
            addresses.add(id(counter))
            for _ in range(3):
                found.setdefault(counter.limit, set()).add(counter.private.release(data).sensitivity)
            del counter
    assert len(addresses) < 80, "no address was used twice"
    assert (
        max(found[2]) == min(found[2]) == pytest.approx(2 * max(found[1])) == pytest.approx(2 * min(found[1]))
    )


def test_objects_without_a_guard_are_freed(program):
    """They may need much memory, or do something when they are deleted."""
    exec("class Freed(Counter):\n    def __del__(self): pass\nfreed = Freed(2)", vars(program))
    for _ in range(4):
        program.freed.private(np.linspace(0, 1, 20))
    reference = weakref.ref(program.freed)
    del program.freed
    gc.collect()
    assert reference() is None


def test_what_a_library_sets_in_an_object_is_put_back(program):
    """A library's function may set attributes of an object with a guard: private data would stay there."""
    exec(
        "import functools\nclass Odd(Counter):\n    def total(self, x):\n"
        "        if x.mean() > 0.99: functools.update_wrapper(self, another)\n        return x.mean()\n"
        "odd = Odd(1)",
        vars(program),
    )
    f = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), seed=1)(program.odd.total)
    for _ in range(3):
        f(np.linspace(0, 1, 20))
    assert any(found is not None for _, found in f.calibrator.guarded.values()), "no guard"
    before = dict(vars(program.odd))
    with pytest.raises(PrivateRunError, match="self"):
        f(np.ones(20))
    assert {name: each for name, each in vars(program.odd).items() if name != "__annotations__"} == before


@pytest.mark.parametrize(
    "sampler",
    [
        "samplers.choice(np.arange(50.0))",
        "samplers.normal(np.zeros(3), cov=np.eye(3))",
        "scipy.stats.uniform()",
        "samplers.mixture([samplers.uniform(0, 1), samplers.uniform(0, 2)])",
        "lambda rng, n: rng.random(n)",
    ],
)
def test_private_methods_with_a_p_that_can_change_have_no_guard(program, sampler):
    """Only the fingerprint notices that such a P has changed, or that it has a copy of the data in it."""
    source = "import scipy.stats\nclass Odd(Counter):\n"
    source += "    @privatize(epsilon=1, gamma=0.3, sampler={})\n    def f(self, x): return 1"
    for each in (sampler, "samplers.uniform(0, 1)"):
        exec(source.format(each), vars(program))
        assert (guard(program.Odd(1).total) is None) == (each is sampler)


def test_two_objects_have_their_own_estimates(program):
    """Two objects that are called in turn would both get the noise of one of them."""
    data, first, second = np.linspace(0, 1, 20), program.Counter(1), program.Counter(2)
    for _ in range(4):
        found = [each.private.release(data).sensitivity for each in (first, second)]
        assert found[1] == pytest.approx(2 * found[0])


@pytest.mark.skipif(
    sys.version_info < (3, 14), reason="annotations are computed when the function is defined"
)
def test_annotations_that_cannot_be_computed():
    """A function whose annotations only a type checker can read could not be private, or be P."""
    text = "def f(x: Missing) -> Missing:\n    return x.mean()\ndef draw(n, rng: Missing) -> Missing:\n"
    text += "    return rng.random(n)\nclass A:\n    low: Missing = 1\n    def f(self, x: Missing):\n"
    text += "        return x.mean() * self.low\n"
    keys = set()
    for name in ("Missing", "Unknown"):
        program = {"__name__": "__main__"}
        exec(text.replace("Missing", name), program)
        for function in (program["f"], program["A"]().f):
            f = privatize(epsilon=1, gamma=0.3, sampler=program["draw"], seed=1)(function)
            assert [math.isfinite(f(np.full(20, 0.5))) for _ in range(3)] == [True] * 3
            keys.add(fingerprint(function))
    assert len(keys) == 4
