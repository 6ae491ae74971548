"""The declared identity of P is the same for a team and after every update, and never for two laws."""

import functools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy import stats

from privatize import samplers
from privatize.errors import SettingsError
from privatize.identity.declared import Declared, declare
from privatize.samplers import Distribution
from tests import golden
from tests.cases import for_each
from tests.identity.sources import CASES, FUNCTION, KNOWN, leaves, made, s

# The kinds whose repr does not determine the law: made of functions, of data, or of a time zone's rules.
LOSSY = ("dependent(", "bootstrap(", "map(", "from_function(", "scipy.", "marginal(", "tz=", "learned(")
LOSSY += ("summed", "tall", "total", "walked")  # functions that make labels


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


# --- functions of the user's own --------------------------------------------------------------


class TestSource:
    """A user's function counts by the syntax tree of its source, and by the values that it uses."""

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


def test_a_family_has_no_single_name():
    """Under one name for all members, the ledger could not keep what two families have in common."""
    with pytest.raises(SettingsError, match="each of its members"):
        declare([samplers.uniform(0, 1), samplers.uniform(0, 2)])
