"""The declared identity of P is the same for a team and after every update, and never for two laws."""

import datetime as dt
import functools
import importlib
import itertools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import privatize
from privatize import samplers
from privatize.identity.declared import Declared, declare
from privatize.samplers import Distribution
from tests import golden
from tests.cases import for_each

CASES = golden.sampler_cases()
_rows = json.loads(golden.DECLARED.read_text(encoding="utf-8"))
KNOWN = {name: _rows[f"{case.tag} {case.law_version}"][name] for name, case in CASES.items()}
PACKAGE = str(Path(privatize.__file__).parents[1])
# The kinds whose repr does not determine the law: made of functions, of data, or of a time zone's rules.
LOSSY = ("dependent(", "bootstrap(", "map(", "from_function(", "scipy.", "marginal(", "tz=")
LOSSY += ("summed", "tall", "total")  # functions that make labels


def digest(sampler):
    return declare(sampler).digest


@pytest.mark.parametrize("name", CASES, ids=[name[:60] for name in CASES])
class TestGolden:
    """Samplers of every kind, with their options."""

    def test_digests_are_pinned(self, name):
        """An update of this library would lock every team out of its ledgers."""
        found = declare(CASES[name])
        assert isinstance(found, Declared)
        assert found.digest.startswith("P1:") and len(found.digest) == 3 + 64
        assert KNOWN[name] == found.digest, (
            "A declared identity never changes: raise law_version if the law did."
        )

    def test_descriptions_are_lossless_where_they_say_so(self, name):
        """A ledger of an earlier version would be opened under another P that has the same repr."""
        found = declare(CASES[name])
        assert found.lossless != any(word in found.description for word in LOSSY)
        if found.lossless:
            again = eval(found.description, dict(vars(samplers)))  # its repr is the code that makes it
            assert declare(again) == found


def test_no_two_laws_have_the_same_digest():
    """Two laws with one digest would be one P to a ledger."""
    equal = ("choice([False, True])", ".fixed(")  # the same P as boolean(0.5), and as the one that is fixed
    names = [name for name in CASES if not any(word in name for word in equal)]
    names = [name for name in names if CASES[name].tag not in ("labelled column", "columns")]
    assert len({KNOWN[name] for name in names}) == len(names)


# --- laws -------------------------------------------------------------------------------------

s = samplers
SAME = [
    (s.uniform(0, 1), s.uniform(0.0, True), s.uniform(np.float32(0), np.int8(1)), s.uniform(-0.0, 1)),
    (s.uniform(0, 1, size=2), s.uniform([0, 0], [1.0, 1.0])),
    (s.integers(0, 9), s.integers(np.int64(0), np.uint8(9)), s.integers(False, 9)),
    (s.normal(0, 1), s.normal(), s.normal(0, 1, low=-np.inf)),
    (s.normal([0, 0], 1), s.normal([0, 0], [1, 1])),
    (s.uniform(0, 9).truncated(2, 3), s.uniform(2, 3)),
    (s.choice(["a", "b"]), s.choice(("a", "b"), p=[2, 2]), s.choice(np.array(["a", "b"]))),
    (s.choice([1, 2.0]), s.choice([1.0, 2.0])),
    (s.choice([False, True], p=[0.5, 0.5]), s.boolean(), s.boolean(0.5)),
    (
        s.dates("2020-01-01", "2021-01-01"),
        s.dates(np.datetime64("2020-01-01"), pd.Timestamp("2021-01-01").date()),
    ),
    (
        s.mixture([s.uniform(0, 1), s.uniform(1, 2)]),
        s.mixture((s.uniform(0, 1), s.uniform(1, 2)), weights=[3, 3]),
    ),
    (s.table(a=s.uniform(0, 1)), s.table({"a": s.uniform(0, 1)})),
    (s.table(a=s.uniform(0, 1), b=s.boolean()),) * 2,
    (s.integers(0, 9).clip(1, 5), s.integers(0, 9).clip(1.0, 5)),
    (s.uniform(0, 1, size=2).clip(0.2, 0.8), s.uniform(0, 1, size=2).clip([0.2, 0.2], [0.8, 0.8])),
    (s.blobs([[0, 0], [1, 1]]), s.blobs([[0.0, 0], [1, 1]], 1.0, weights=[1, 1], labels=[0, 1])),
    tuple(
        map(
            s.as_sampler, (stats.norm(1, 2), stats.norm(loc=1.0, scale=2), stats.norm(1, scale=np.float64(2)))
        )
    ),
    tuple(map(s.as_sampler, (stats.expon(), stats.expon, stats.expon(0)))),
    (s.from_function(golden.drawn), golden.drawn, s.from_function(golden.drawn, independent=True)),
    (s.bootstrap(np.array([1.0, 2.0])), s.bootstrap(np.array([1.0, 2.0]), smooth=0)),
    (s.bootstrap(np.arange(6.0).reshape(2, 3)), s.bootstrap(np.asfortranarray(np.arange(6.0).reshape(2, 3)))),
    (s.bootstrap(np.array([1.0, 2.0])), s.bootstrap(np.array([1.0, 2.0], dtype=">f8"))),
]


@for_each("alike", SAME, ids=lambda alike: repr(alike[0])[:50])
def test_equal_laws_are_one_p(alike):
    """The same P written with 1 in place of 1.0 would be refused, with two identical P printed."""
    assert len({digest(each) for each in alike}) == 1


def test_different_laws_are_different_p():
    """A budget would mix answers about two P, and its promise would hold for neither."""
    day = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "d": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    different = [
        *(each[0] for each in SAME[:17]),
        s.uniform(0, np.nextafter(1, 2)),
        s.uniform(0, 1, size=1),
        s.uniform(0, 1, size=(1, 2)),
        s.integers(0, 10),
        s.integers(0, 1),
        s.boolean(0.3),
        s.choice([0, 1]),
        s.choice(["0", "1"]),
        s.categorical(["a", "b"]),
        s.categorical(["a", "b"], ordered=True),
        s.choice([0.1, 0.2], p=[0.3, 0.7]),
        s.choice([0.1, 0.2], p=[0.3 + 1e-9, 0.7 - 1e-9]),
        s.dates("2020-01-01", "2021-01-01", times=True),
        s.dates("2020-01-01", "2021-01-01", tz="Europe/Berlin"),
        s.dates("2020-01-01", "2021-01-01", tz="Europe/London"),
        s.normal([0, 1], cov=[[1, 0.5], [0.5, 1]]),
        s.normal([0, 1], cov=[[1, 0.25], [0.25, 1]]),
        s.with_missing(s.uniform(0, 1), 0.1),
        s.with_missing(s.uniform(0, 1), 0.2),
        s.table(b=s.uniform(0, 1)),
        s.table(a=s.uniform(0, 1), frame="dict"),
        s.table(b=s.boolean(), a=s.uniform(0, 1)),
        s.uniform(0, 1).map(np.exp),
        s.uniform(0, 1).map(np.sin),
        s.uniform(0, 1).map(np.exp, support=(1, 2)),
        s.as_sampler(stats.norm(1, 2.5)),
        s.as_sampler(stats.laplace(1, 2)),
        s.as_sampler(stats.gamma(2)),
        s.as_sampler(stats.gamma(3)),
        s.as_sampler(stats.multivariate_normal([0, 0])),
        s.as_sampler(stats.multivariate_normal([0, 0], [[2, 0], [0, 1]])),
        s.as_sampler(stats.dirichlet([1, 2])),
        s.as_sampler(stats.dirichlet([1, 3])),
        s.as_sampler(stats.rv_histogram((np.array([1, 2]), np.array([0, 1, 2])))),
        s.as_sampler(stats.rv_histogram((np.array([2, 1]), np.array([0, 1, 2])))),
        s.as_sampler(stats.rv_discrete(values=([1, 2], [0.5, 0.5]))),
        s.as_sampler(stats.rv_discrete(values=([1, 3], [0.5, 0.5]))),
        s.bootstrap(np.array([1.0, 3.0])),
        s.bootstrap(np.array([1.0, 3.0]), smooth=0.1),
        s.bootstrap(np.array([1, 3])),
        s.bootstrap([1.0, 3.0]),
        s.bootstrap(day),
        s.bootstrap(day.assign(a=[1.0, 2.5])),
        s.bootstrap(day.assign(b=["x", "z"])),
        s.bootstrap(day.rename(columns={"a": "c"})),
        s.bootstrap(day.assign(d=day["d"] + pd.Timedelta("1s"))),
        s.bootstrap(day.assign(d=day["d"].dt.tz_localize("Europe/Berlin"))),
        s.bootstrap(day.assign(b=pd.Categorical(["x", "y"]))),
        s.bootstrap(day.assign(b=pd.Categorical(["x", "y"], ["y", "x"]))),
        s.bootstrap({"a": np.array([1.0, 2.0])}),
        s.bootstrap((np.array([1.0, 2.0]), np.array([1.0, 2.0]))),
        s.labelled(s.uniform(0, 1), s.boolean()),
        s.marginal(s.normal(0, 1), golden.noisy),
        s.marginal(s.normal(0, 1), golden.noisy, per="dataset"),
        s.blobs([[0, 0], [1, 1]], low=0),
    ]
    digests = [digest(each) for each in different]
    twice = [repr(different[at]) for at, each in enumerate(digests) if digests.index(each) != at]
    assert not twice


numbers = st.floats(-1e300, 1e300) | st.integers(-(10**6), 10**6)


@settings(max_examples=200, deadline=None)
@given(numbers, numbers, numbers, numbers)
def test_digests_are_equal_exactly_if_parameters_are(a, b, c, d):
    """A digit that the encoding lost would make one P of two laws."""
    if not (a < b and c < d):
        return
    same = (float(a), float(b)) == (float(c), float(d))
    assert (digest(s.uniform(a, b)) == digest(s.uniform(c, d))) == same
    assert (repr(s.uniform(a, b)) == repr(s.uniform(c, d))) == same


values = st.lists(st.text(max_size=5), min_size=1, max_size=4, unique=True)


@settings(max_examples=100, deadline=None)
@given(values, values)
def test_digests_of_strings_are_equal_exactly_if_they_are(one, other):
    """A string with quotes, brackets or lone surrogates must not be taken for another one."""
    assert (digest(s.choice(one)) == digest(s.choice(other))) == (one == other)
    assert declare(s.choice(one)).lossless


ends = st.tuples(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9)).map(
    lambda pair: (pair[0], pair[0] + pair[1] + 1e-3)
)
shares = st.lists(st.floats(0.001, 1), min_size=2, max_size=2)
leaves = st.one_of(
    ends.map(lambda pair: s.uniform(*pair)),
    st.integers(-(2**50), 2**50).map(lambda low: s.integers(low, low + 7)),
    st.tuples(st.floats(-9, 9), st.floats(0.1, 9)).map(lambda pair: s.normal(*pair)),
    st.tuples(st.floats(-1, 1), st.floats(0.1, 9)).map(lambda pair: s.normal(*pair, low=-3.3, high=3.1)),
    st.tuples(st.lists(st.text(max_size=3), min_size=2, max_size=2, unique=True), shares).map(
        lambda x: s.choice(*x)
    ),
    st.tuples(st.lists(st.integers(), min_size=2, max_size=2, unique=True), shares).map(
        lambda x: s.choice(*x)
    ),
    st.floats(0, 1).map(s.boolean),
    st.dates(max_value=dt.date(9000, 1, 1)).map(lambda day: s.dates(str(day), "9999-01-01")),
)


@st.composite
def made(draw):
    """Return a sampler that is made of others."""
    parts = [draw(leaves) for _ in range(2)]
    low, high = draw(ends)
    return draw(
        st.sampled_from(
            [
                s.table({"a b": parts[0], draw(st.text(min_size=1, max_size=3)): parts[1]}, frame="dict"),
                s.table(x=s.with_missing(parts[0], draw(st.floats(0.01, 0.99))), y=parts[1]),
                s.mixture([s.uniform(low, high), s.uniform(low, high + 1)], weights=draw(shares)),
                s.uniform(low, high).clip(low / 3),
                s.labelled(s.uniform(low, high, size=2), s.boolean(draw(st.floats(0, 1)))),
                s.blobs([[low, high], [1, 2]], draw(st.floats(0.1, 9)), weights=draw(shares)),
                s.normal([low, high], [1, draw(st.floats(0.1, 2))]),
            ]
        )
    )


@settings(max_examples=150, deadline=None)
@given(leaves | made())
def test_a_lossless_description_makes_the_same_p_again(P):
    """A ledger of an earlier version would be matched by a description that lost a digit."""
    found = declare(P)
    again = declare(eval(found.description, dict(vars(samplers)) | {"inf": np.inf}))
    assert found.lossless and again == found


def test_columns_are_the_same_p():
    """Questions about several columns of one table would need a budget each."""
    P = s.table(a=s.uniform(0, 1), b=s.boolean())
    for part in (
        P["a"],
        P[["b", "a"]],
        s.labelled(P, "b"),
        P.fixed(size=10),
        P["a"].fixed(size=5),
        P[["a"]]["a"],
    ):
        assert declare(part) == declare(P)
    assert digest(s.table(a=P["a"])) != digest(P)  # this is another table


class TestVersions:
    """What may change without making another P, and what may not."""

    def test_names_and_modules_of_classes(self):
        """Moving or renaming a class of this package would lock people out of their ledgers."""
        P = s.table(a=s.uniform(0, 1), b=s.uniform(0, 1).map(np.exp))
        before, kinds = digest(P), [type(P), type(s.uniform(0, 1))]
        places = [(kind.__module__, kind.__qualname__, kind.__name__) for kind in kinds]
        try:
            for at, kind in enumerate(kinds):
                kind.__name__ = kind.__qualname__ = f"Renamed{at}"
                kind.__module__ = "privatize.moved"
            assert digest(s.table(a=s.uniform(0, 1), b=s.uniform(0, 1).map(np.exp))) == before
        finally:
            for kind, (module, qualname, name) in zip(kinds, places, strict=True):
                kind.__module__, kind.__qualname__, kind.__name__ = module, qualname, name

    def test_draws_and_laws(self, monkeypatch):
        """A fix that changes the distribution is another P; one that changes only the draws is not."""
        kind = type(s.uniform(0, 1))

        def draw(n, rng):
            return s.uniform(0, 1).draw(n, rng)

        before = digest(s.table(a=s.uniform(0, 1))), digest(draw)
        monkeypatch.setattr(kind, "draw_version", 2)
        assert (digest(s.table(a=s.uniform(0, 1))), digest(draw)) == before
        monkeypatch.setattr(kind, "law_version", 2)
        assert digest(s.table(a=s.uniform(0, 1))) != before[0]
        assert digest(draw) != before[1]

    def test_versions_of_python_and_of_libraries(self, monkeypatch):
        """A team on Python 3.11.8 and 3.11.9 would be refused, with two identical P printed."""
        before = {name: digest(case) for name, case in CASES.items()}
        monkeypatch.setattr(sys, "version_info", (3, 99, 9, "final", 0))
        for library in (np, pd):
            monkeypatch.setattr(library, "__version__", "99.0")
        assert {name: digest(case) for name, case in golden.sampler_cases().items()} == before


# --- functions of the user's own --------------------------------------------------------------

FUNCTION = """
import numpy as np
import other_of_declared as other
FACTOR = 3

def helper(x):
    return x * FACTOR + other.SHIFT + other.inner.DEEP

def draw(n, rng, low=1, *, high=2):
    "Draw some records."
    return helper(rng.uniform(low, high, n)) + sum(i for i in range(3))
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Return a function that writes a module and imports it; remove the modules after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names = []
    count = itertools.count()

    def load(text, name=None):
        name = name or f"made_for_declared_{next(count)}"
        names.append(name)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    load("import types\nSHIFT = 1\ninner = types.ModuleType('inner')\ninner.DEEP = 2\n", "other_of_declared")
    yield load
    for name in names:
        sys.modules.pop(name, None)


class TestSource:
    """A user's function counts by the syntax tree of its source, and by the values that it uses."""

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("FACTOR = 3", "\n\n\nFACTOR = 3  # a comment"),
            ("x * FACTOR", "(x   *   FACTOR)"),
            ("FACTOR = 3", "UNUSED = 7\nFACTOR = 3"),
            ("def helper(x):\n", "def helper(\n    x,\n):\n    # a comment\n"),
            ("FACTOR = 3", "FACTOR = 1 + 2"),
        ],
    )
    def test_edits_that_do_not_count(self, load, old, new):
        """A comment, a blank line or another module would lock a team out of its ledger."""
        one, other = load(FUNCTION), load(FUNCTION.replace(old, new))
        assert one.draw.__code__.co_filename != other.draw.__code__.co_filename
        assert digest(one.draw) == digest(other.draw)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("FACTOR = 3", "FACTOR = 4"),
            ("FACTOR = 3", "FACTOR = 3.0"),
            ("x * FACTOR", "FACTOR * x"),
            ("range(3)", "range(4)"),
            ("low=1", "low=0"),
            ("high=2", "high=3"),
            ("+ other.SHIFT", "- other.SHIFT"),
            ("low, high, n)", "high, low, n)"),
            ("    return helper", "    n = n + 0\n    return helper"),
            ('"Draw some records."', '"Draw other records."'),
            ("def helper(x):", "@np.vectorize\ndef helper(x):"),
        ],
    )
    def test_edits_that_count(self, load, old, new):
        """Answers under another law would be charged to the budget of this one."""
        assert FUNCTION.count(old) == 1
        assert digest(load(FUNCTION).draw) != digest(load(FUNCTION.replace(old, new)).draw)

    def test_values_that_change(self, load, monkeypatch):
        """A value in another module that a function reads could change, and the law with it, unnoticed."""
        made = load(FUNCTION)
        found = [digest(made.draw)]
        for owner, name in ((made, "FACTOR"), (made.other, "SHIFT"), (made.other.inner, "DEEP")):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, 99)
                found.append(digest(made.draw))
        assert len(set(found)) == 4
        assert digest(made.draw) == found[0]

    def test_names_in_strings(self, load, monkeypatch):
        """``getattr(module, name)`` reads a part of the law, wherever the name comes from."""
        text = "import other_of_declared as other\nNAME = 'SHIFT'\n"
        literal = load(text + "def draw(n, rng):\n    return rng.random(n) * getattr(other, 'SHIFT')\n")
        through = load(text + "def draw(n, rng):\n    return rng.random(n) * getattr(other, NAME)\n")
        inside = load(
            text
            + "def draw(n, rng):\n    import other_of_declared as o\n    return rng.random(n) * o.SHIFT\n"
        )
        taken = load(
            text
            + "def draw(n, rng):\n    from other_of_declared import SHIFT\n    return rng.random(n) * SHIFT\n"
        )
        before = [digest(each.draw) for each in (literal, through, inside, taken)]
        monkeypatch.setattr(literal.other, "SHIFT", 99)
        for each, known in zip((literal, through, inside, taken), before, strict=True):
            assert digest(each.draw) != known

    def test_two_lambdas_in_one_line(self, load):
        """The law of the other lambda in the same line would be declared."""
        text = "PAIR = [lambda n, rng: rng.random(n) * 2, lambda n, rng: rng.random(n) * 3]\n"
        text += "made = lambda a: lambda n, rng: rng.random(n) * a\n"
        text += "SPLIT = (lambda n,\n  rng: rng.random(n) * 2)\n"
        module = load(text)
        assert digest(module.PAIR[0]) != digest(module.PAIR[1])
        assert digest(module.PAIR[0]) == digest(module.SPLIT)
        assert digest(module.made(1)) != digest(module.made(2))
        assert digest(module.made(1)) == digest(module.made(1))
        assert digest(load(text.replace("*", " * ")).PAIR[1]) == digest(module.PAIR[1])

    def test_a_file_that_was_edited_after_its_import(self, load, tmp_path):
        """The law on disk would be declared, but records would be drawn from the law in memory."""
        made = load(FUNCTION, "edited_for_declared")
        before = digest(made.draw)
        file = tmp_path / "edited_for_declared.py"
        file.write_text(FUNCTION.replace("low, high, n)", "high, low, n)"), encoding="utf-8")
        os.utime(file, (1, 1))
        while_edited = digest(made.draw)
        edited = digest(load(FUNCTION.replace("low, high, n)", "high, low, n)"), "edited_for_declared").draw)
        assert len({before, while_edited, edited}) == 3

    def test_without_source(self):
        """A function that was typed in, or made by exec, counts by its bytecode."""
        made = []
        for text in ("rng.random(n)", "rng.random(n)", "rng.random(n) * 2"):
            scope = {}
            exec(f"def draw(n, rng):\n    return {text}", scope)
            made.append(scope["draw"])
        assert digest(made[0]) == digest(made[1]) != digest(made[2])
        assert digest(made[0]).startswith("P1-bytecode:")

    def test_closures_partials_methods_and_classes(self):
        """Laws that differ in a parameter of a maker, an object or a base class are different ones."""

        def maker(scale, table=None):
            def draw(n, rng):
                return rng.random(n) * scale + len(table or ())

            return draw

        class Base:
            shift = 1

            def draw(self, n, rng):
                return rng.random(n) * self.scale + self.shift

        class Mine(Base):
            def __init__(self, scale):
                self.scale = scale

        class Other(Mine):
            shift = 2

        def plain(n, rng, scale=1):
            return rng.random(n) * scale

        different = [
            *(maker(1), maker(2), maker(True), maker(1, {"a": 1}), maker(1, {"a": 2}), maker(1, [1])),
            *(
                maker(1, np.arange(3)),
                maker(1, np.arange(3.0)),
                maker(1, pd.Series([1, 2])),
                maker(1, {1, 2}),
            ),
            *(maker(1, stats.norm(0, 1)), maker(1, stats.norm(0, 2)), maker(np.float64(1))),
            *(Mine(1), Mine(2), Other(1), Mine(1).draw, Mine(2).draw),
            *(plain, functools.partial(plain, scale=2), functools.partial(plain, scale=3)),
            functools.lru_cache(plain),
        ]
        found = [digest(s.from_function(f) if callable(f) else f) for f in different]
        assert len(set(found)) == len(found)
        assert digest(maker(1)) == digest(maker(1))
        assert digest(Mine(1)) == digest(Mine(1))
        before = digest(Mine(1))
        Base.shift = 5
        assert digest(Mine(1)) != before

    def test_subclasses_of_our_classes(self):
        """A user's subclass that draws differently would be taken for the library's own kind."""
        ours = s.uniform(0, 1)

        class Sorts(type(ours)):
            def draw(self, n, rng):
                return np.sort(super().draw(n, rng))

        class Claims(Distribution):
            tag = "uniform"

            def draw(self, n, rng):
                return rng.random(n)

        made = Sorts(ours.low, ours.high)
        assert repr(made) == repr(ours)
        assert digest(made) != digest(ours) and not declare(made).lossless
        assert digest(Claims()) != digest(ours) and not declare(Claims()).lossless

    def test_scipy_of_the_users_own(self):
        """A distribution of the user's own with the name of one of SciPy's would be taken for it."""

        def maker(power):
            class Mine(stats.rv_continuous):
                def _ppf(self, q):
                    return q**power

            return Mine(name="norm")

        found = [digest(s.as_sampler(each)) for each in (stats.norm(), maker(1)(), maker(2)())]
        assert len(set(found)) == 3
        stats.norm.rvs(size=3)  # the global generator is no part of a law
        assert digest(s.as_sampler(maker(2)())) == found[2]


# A name, a module with a value in an odd place, the expression that reads the value, and a change of it.
ODD = [
    ("property", "class A:\n @property\n def k(self): return 1\na=A()\n", "a.k", "return 1", "return 2"),
    ("static", "class A:\n @staticmethod\n def k(): return 1\n", "A.k()", "return 1", "return 2"),
    (
        "meta",
        "class M(type):\n def k(cls): return 1\nclass A(metaclass=M): pass\n",
        "A.k()",
        "return 1",
        "return 2",
    ),
    (
        "slots",
        "class A:\n __slots__=('k',)\n def __init__(self): self.k=1\na=A()\n",
        "a.k",
        "self.k=1",
        "self.k=2",
    ),
    ("slotstate", "class A:\n __slots__=('k',)\na=A()\na.k=1\n", "a.k", "a.k=1", "a.k=2"),
    (
        "enum",
        "import enum\nclass E(enum.Enum):\n  A=1\n  def k(self): return 1\n",
        "E.A.k()",
        "return 1",
        "return 2",
    ),
    ("enumval", "import enum\nclass E(enum.IntEnum):\n  A=1\n", "E.A", "A=1", "A=2"),
    (
        "dcfield",
        "import dataclasses as q\n@q.dataclass\nclass D:\n  k: int = q.field(default=1, metadata={'u':1})\n",
        "q.fields(D)[0].metadata['u']",
        "'u':1",
        "'u':2",
    ),
    ("dcdefault", "import dataclasses as q\n@q.dataclass\nclass D:\n  k: int = 1\n", "D().k", "= 1", "= 2"),
    (
        "dcmethod",
        "import dataclasses as q\n@q.dataclass\nclass D:\n  k: int = 1\n  def __eq__(self,o): return True\n",
        "(D(1)==D(2))",
        "return True",
        "return False",
    ),
    ("nt", "import typing\nclass T(typing.NamedTuple):\n  k: int = 1\n", "T().k", "= 1", "= 2"),
    ("ann", "def g(x: 1): pass\n", "g.__annotations__['x']", "x: 1", "x: 2"),
    ("doc", "def g():\n '1'\n", "float(g.__doc__)", "'1'", "'2'"),
    ("fname", "def g1(): pass\nG=g1\n", "int(G.__name__[1])", "g1", "g2"),
    (
        "deco",
        (
            "def s(k):\n def w(f):\n  def i(n,rng): return f(n,rng)*k\n  return i\n"
            " return w\n@s(1)\ndef draw(n,rng): return rng.random(n)\n"
        ),
        "",
        "@s(1)",
        "@s(2)",
    ),
    (
        "attrgetter",
        "import operator, types\nm=types.ModuleType('m')\nm.k=1\ng=operator.attrgetter('k')\n",
        "g(m)",
        "m.k=1",
        "m.k=2",
    ),
    (
        "format",
        "import types\nm=types.ModuleType('m')\nm.k=1\n",
        "float('{0.k}'.format(m))",
        "m.k=1",
        "m.k=2",
    ),
    (
        "twomods",
        "import types\nm=types.ModuleType('m')\nm.k=1\nm2=types.ModuleType('m')\nm2.k=1\n",
        "m.k*m2.k",
        "m2.k=1",
        "m2.k=2",
    ),
    (
        "modgetattr",
        "import types\nm=types.ModuleType('m')\ndef ga(name): return 1\nm.__getattr__=ga\n",
        "m.k",
        "return 1",
        "return 2",
    ),
    (
        "callable",
        "class A:\n def __init__(s,k): s.k=k\n def __call__(s,n,rng): return rng.random(n)*s.k\ndraw=A(1)\n",
        "",
        "A(1)",
        "A(2)",
    ),
    (
        "partialmethod",
        (
            "import functools\nclass A:\n def f(s,k,n,rng): return rng.random(n)*k\n"
            " draw=functools.partialmethod(f,1)\ndraw=A().draw\n"
        ),
        "",
        "f,1",
        "f,2",
    ),
    (
        "cached",
        "import functools\nclass A:\n @functools.cached_property\n def k(s): return 1\na=A()\n",
        "a.k",
        "return 1",
        "return 2",
    ),
    ("lru", "import functools\n@functools.lru_cache\ndef k(): return 1\n", "k()", "return 1", "return 2"),
    (
        "sd",
        (
            "import functools\n@functools.singledispatch\ndef k(x): return 1\n"
            "@k.register\ndef _(x: int): return 1.5\n"
        ),
        "k(1)",
        "1.5",
        "2.5",
    ),
    ("gen", "def k():\n yield 1\n", "next(k())", "yield 1", "yield 2"),
    ("nested", "def draw(n,rng):\n class A:\n  k=1\n return rng.random(n)*A.k\n", "", "k=1", "k=2"),
    (
        "module name",
        "__name__='one'\ndef draw(n,rng):\n class A: pass\n return rng.random(n)*len(__name__)\n",
        "",
        "'one'",
        "'three'",
    ),
    ("walrus", "", "(k:=1)", ":=1", ":=2"),
    ("fstring", "", "float(f'{1}')", "{1}", "{2}"),
    ("fspec", "", "float(f'{1.2345:.2f}')", ".2f", ".3f"),
    ("star", "T=(1,)\ndef f(*a): return a[0]\n", "f(*T)", "(1,)", "(2,)"),
    (
        "globalset",
        "K=1\ndef setk():\n global K\n K=K\ndef draw(n,rng):\n setk()\n return rng.random(n)*K\n",
        "",
        "K=1\n",
        "K=2\n",
    ),
    ("bool", "K=1\n", "K", "K=1", "K=True"),
    ("negzero", "K=0.0\n", "K", "K=0.0", "K=-0.0"),
    ("np", "import numpy as np\nK=np.arange(3)\n", "K[1]", "arange(3)", "arange(3)[::-1]"),
    ("df", "import pandas as pd\nK=pd.DataFrame({'a':[1,2]},index=[5,6])\n", "K.a[5]", "[5,6]", "[6,5]"),
    ("np func", "from numpy import sin as s\ndef draw(n,rng): return s(rng.random(n))\n", "", "sin", "cos"),
    (
        "np method",
        "import numpy as np\ns=np.linalg.norm\ndef draw(n,rng): return rng.random(n)+s([1])\n",
        "",
        "linalg.norm",
        "linalg.det",
    ),
    ("builtin", "s=max\n", "s(1,2)", "max", "min"),
    ("re", "import re\ns=re.compile('a')\n", "bool(s.match('a'))", "compile('a')", "compile('b')"),
    ("date", "import datetime\ns=datetime.date(2020,1,1)\n", "s.day", "1,1)", "1,2)"),
    ("defaultdict", "import collections\ns=collections.defaultdict(int,a=1)\n", "s['a']", "a=1", "a=2"),
    (
        "own dict",
        "class D(dict):\n def __missing__(s,k): return 1\ns=D()\n",
        "s['a']",
        "return 1",
        "return 2",
    ),
    ("own list", "class D(list): pass\ns=D([1])\n", "s[0]", "[1]", "[2]"),
    ("classattr", "class D: pass\nD.k=1\n", "D.k", "D.k=1", "D.k=2"),
    ("funcattr", "def g(): pass\ng.k=1\n", "g.k", "g.k=1", "g.k=2"),
    ("ownattr", "def draw(n,rng): return rng.random(n)*draw.k\ndraw.k=1\n", "", "draw.k=1", "draw.k=2"),
    (
        "scipy",
        "from scipy import stats\nr=stats.norm(0,1)\ndef draw(n,rng): return r.rvs(n,random_state=rng)\n",
        "",
        "(0,1)",
        "(0,2)",
    ),
    ("kwdef", "def draw(n,rng,*,k=1): return rng.random(n)*k\n", "", "k=1", "k=2"),
    ("async", "T={'a':{'b':[1]}}\n", "T['a']['b'][0]", "[1]", "[2]"),
    (
        "generic",
        "import typing\nX=typing.TypeVar('X')\nclass G(typing.Generic[X]):\n k=1\n",
        "G[int].k",
        "k=1",
        "k=2",
    ),
    (
        "newtype",
        "import typing\nN=typing.NewType('N',int)\n",
        "len(N.__supertype__.__name__)",
        "'N',int",
        "'N',float",
    ),
    (
        "origbases",
        "import typing\nX=typing.TypeVar('X')\nclass G(typing.Generic[X]): pass\nclass H(G[int]): pass\n",
        "len(H.__orig_bases__[0].__args__[0].__name__)",
        "G[int]",
        "G[float]",
    ),
]


@pytest.mark.parametrize(
    ("text", "factor", "old", "new"), [row[1:] for row in ODD], ids=[row[0] for row in ODD]
)
def test_no_change_of_a_value_is_missed(load, text, factor, old, new):
    """If a value in an odd place changed, and with it the law, a ledger would take both laws for one P."""
    if factor:
        text += f"\ndef draw(n, rng):\n    return rng.random(n) * {factor}\n"
    assert old in text
    one, other, same = load(text), load(text.replace(old, new)), load(f"# moved\n\n{text}")
    assert digest(one.draw) != digest(other.draw)
    if not any(word in text for word in ("singledispatch", "typing.TypeVar", "NewType")):  # copies differ
        assert digest(one.draw) == digest(same.draw)


class TestOnlyThisObject:
    """An object that cannot be compared equals only itself."""

    def test_open_files_and_generators(self):
        """Two P that cannot be compared would share a budget."""
        with open(os.devnull) as one, open(os.devnull) as other:  # noqa: PTH123

            def maker(state):
                def draw(n, rng):
                    return rng.random(n) + bool(state)

                return draw

            def numbers():
                yield 1

            states = [one, other, numbers(), numbers(), threading.local()]
            found = [declare(maker(state)) for state in states]
            assert len({each.digest for each in found}) == len(found)
            assert not any(each.lossless for each in found)
            assert all(each.digest.startswith("P1-object:") for each in found)
            assert declare(maker({numbers()})).digest.startswith("P1-object:")
            assert declare(maker(one)).digest == found[0].digest
            assert one.read() == ""  # the file is still open

    def test_code_that_looks_things_up(self):
        """No syntax tree shows what eval or globals() finds: two laws would be taken for one P."""

        def evaluated(n, rng):
            return eval("rng.random(n)")

        def looked_up(n, rng):
            return rng.random(n) * globals()["FACTOR"]

        def in_a_module(n, rng):
            return rng.random(n) * sys.modules["other_of_declared"].SHIFT

        for function in (evaluated, looked_up, in_a_module):
            copy = type(function)(function.__code__, function.__globals__, function.__name__)
            assert digest(function) == digest(function) != digest(copy)

    def test_objects_that_raise_when_they_are_inspected(self):
        """An object that raises would crash the ledger, or two such objects would be one P."""

        class Odd:
            def __reduce_ex__(self, protocol):
                raise RuntimeError("no")

            def __getattr__(self, name):
                raise RuntimeError(name)

        class Own:
            __slots__ = ("file",)

            def draw(self, n, rng):
                return rng.random(n)

        odd = Odd()

        def draw(n, rng):
            return rng.random(n) + (odd is None)

        assert digest(draw) == digest(draw)
        assert digest(Own()) == digest(Own())
        nested = []
        for _ in range(5000):
            nested = [nested]

        def deep(n, rng):
            return rng.random(n) + len(nested)

        P = s.from_function(deep)
        assert digest(P) == digest(P) != digest(s.from_function(deep))


SCRIPT = """
import json, sys
sys.path[:0] = [{package!r}, {folder!r}]
{text}
from privatize import samplers
from privatize.identity.declared import declare
from tests import golden
found = {{name: declare(case).digest for name, case in golden.sampler_cases().items()}}
found["draw"] = declare(draw).digest
print(json.dumps(found))
"""


@pytest.mark.parametrize("imported", [True, False])
def test_other_processes_agree(load, tmp_path, imported):
    """A ledger that a script has opened first could not be used from a notebook, or by anybody else."""
    text = FUNCTION.replace("range(3)", "{1, 2, 'x'} and range(3)")
    made = load(text, "shared_for_declared")
    text = "from shared_for_declared import draw" if imported else text
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(package=PACKAGE, folder=str(tmp_path), text=text), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": PACKAGE},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found.pop("draw") == digest(made.draw)
    assert found == KNOWN
