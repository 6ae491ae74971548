"""What the methods of samplers make has the support that it states, and refuses what it cannot keep."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

from privatize import samplers
from privatize.data import records
from privatize.errors import DataError, SamplerError
from privatize.identity.declared import declare
from privatize.samplers import (
    Change,
    Distribution,
    OneOf,
    as_sampler,
    boolean,
    bootstrap,
    categorical,
    choice,
    from_function,
    integers,
    labelled,
    mixture,
    normal,
    table,
    uniform,
    with_missing,
)
from tests.cases import for_each
from tests.samplers.columns import EVERYTHING, FRAMES, columns_of, doubled
from tests.samplers.combinations import NAMES, dice


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def make(code):
    """Make a sampler from its code."""
    return eval(code, dict(NAMES))


def cumulative(values):
    """Mix records with those before them."""
    return np.cumsum(values)


@for_each(
    "function",
    [
        lambda x: x - x.mean(),
        lambda x: x / x.max(),
        lambda x: (x - x.mean()) / x.std(),
        np.sort,
        lambda x: x[::-1],
        lambda x: np.roll(x, 1),
        lambda x: np.argsort(np.argsort(x)),
        cumulative,
        lambda x: np.maximum.accumulate(x),
        lambda x: x - x[0],
        lambda x: x - x[:1].mean(),
        lambda x: np.concatenate([x[:1], np.diff(x)]),
        lambda x: x + np.arange(len(x)),
        lambda x: x[: len(x) // 2 * 2 :][::-1],
    ],
)
def test_functions_that_mix_records_are_refused(function):
    """Records of P would not be independent, and the theorem needs them to be."""
    with pytest.raises(SamplerError, match="each record from one record alone"):
        uniform(0, 1).map(function)


@for_each(
    ("function", "message"),
    [
        (np.random.default_rng(0).permutation, "one record alone"),
        (lambda x: x[:-1], "one record alone|drew"),
        (lambda x: x.sum(), "one record alone|records"),
        (lambda x: 1 / 0, "ZeroDivisionError"),
        (lambda x: x["a"], "raised IndexError"),
        (3, r"map\(3\) needs a function"),
        (None, "needs a function"),
    ],
)
def test_functions_that_make_no_records_are_refused(function, message):
    """A slip would surface in the middle of calibration."""
    with pytest.raises(SamplerError, match=message):
        uniform(0, 1).map(function)


@for_each(
    ("sampler", "function"),
    [
        (uniform(0, 1), np.exp),
        (uniform(0, 1), lambda x: np.where(x > 0.5, np.nan, x)),
        (uniform(0, 1), lambda x: np.column_stack([x, x**2])),
        (uniform(0, 1), lambda x: x.tolist()),
        (uniform(0, 1), lambda x: (x, x > 0.5)),
        (uniform(0, 1), lambda x: {"a": x, "b": x > 0.5}),
        (uniform(0, 1), pd.Series),
        (uniform(0, 1, size=3), lambda x: x.sum(axis=1)),
        (uniform(0, 1, size=3), lambda x: x / x.sum(axis=1, keepdims=True)),
        (choice(["a", "b"]), np.char.upper),
        (with_missing(uniform(0, 1), 0.5), np.sqrt),
        (table(a=uniform(0, 1), c=categorical(["x", "y"])), lambda d: d.assign(b=2 * d["a"])),
        (table(a=uniform(0, 1), frame="polars"), lambda d: d.with_columns(b=2 * pl.col("a"))),
        (table(a=uniform(0, 1), frame="pyarrow"), lambda d: d.append_column("b", d["a"])),
        (table(a=uniform(0, 1), frame="records"), lambda d: [r | {"b": 1} for r in d]),
        (table(a=uniform(0, 1), b=boolean(), frame="dict"), lambda d: np.column_stack([d["a"], d["b"]])),
        (labelled(uniform(0, 1, size=2), choice([0, 1])), lambda pair: (pair[0] * 2, pair[1])),
    ],
)
def test_functions_of_single_records_are_accepted(sampler, function):
    """A harmless function would be refused, and P could not be made to look like the data."""
    made = sampler.map(function)
    drawn = made.draw(30, rng(7))
    assert records.count(drawn) == 30
    assert records.equal(drawn, function(sampler.draw(30, rng(7))))


def test_a_function_that_changes_its_input_changes_nothing_else():
    """A function that works in place would change what P draws for others."""

    def in_place(values):
        values += 10
        return values

    inner = from_function(dice)
    made = inner.map(in_place)
    assert set(made.draw(200, rng(8))) == {11, 12, 13, 14, 15, 16}
    assert set(inner.draw(200, rng(8))) == {1, 2, 3, 4, 5, 6}
    public = bootstrap(np.array([1.0, 2.0]))
    public.map(in_place).draw(50, rng(8))
    assert set(public.draw(50, rng(8))) == {1.0, 2.0}


@for_each(
    ("sampler", "support"),
    [
        (normal(0, 1).truncated(-1), (-1, math.inf)),
        (uniform(0, 10).truncated(-5, 5), (0, 5)),
        (integers(0, 10).truncated(3), (3, 10)),
        (integers(0, 10).truncated(high=7), (0, 7)),
        (as_sampler(stats.gamma(2)).truncated(-1, 5), (0, 5)),
        (as_sampler(stats.gamma(2)).truncated(1), (1, math.inf)),
        (normal(0, 1).clip(-2, 2), (-2, 2)),
        (uniform(0, 1).clip(-5, 0.5), (0, 0.5)),
        (uniform(0, 1).clip(0.5), (0.5, 1)),
        (from_function(dice).truncated(2, 5), (2, 5)),
    ],
    ids=repr,
)
def test_supports_of_restricted_samplers(sampler, support):
    """Private records would be clipped to more, or less, than P's bounds."""
    assert tuple(float(end) for end in sampler.support) == support


def test_clip_moves_records_and_truncated_draws_them_again():
    """The mass outside of the bounds would be in the wrong place."""
    clipped, cut = (
        normal(0, 1).clip(-1, 1).draw(1000, rng(9)),
        normal(0, 1).truncated(-1, 1).draw(1000, rng(9)),
    )
    assert 200 < (abs(clipped) == 1).sum() < 450
    assert (abs(cut) == 1).sum() == 0


@for_each("share", [0.0016, 0.003, 0.01])
@for_each("n", [1, 1000, 30_000])
def test_bounds_that_more_than_one_draw_in_a_thousand_meets(share, n):
    """A truncation that was accepted would be refused in the middle of calibration, for a large dataset."""
    sampler = from_function(lambda size, generator: generator.random(size)).truncated(high=share)
    drawn = sampler.draw(n, rng(9))
    assert drawn.shape == (n,)
    assert drawn.max() <= share


@pytest.mark.parametrize("code", ["integers(0, 10)", "from_function(dice)", "choice([1, 2, 3])"])
def test_integers_stay_integers(code):
    """The dtype of P, which private records are cast to, would change with a bound."""
    sampler = make(code)
    assert sampler.clip(1).draw(9, rng()).dtype == sampler.draw(9, rng()).dtype == np.int64
    assert sampler.truncated(high=2.5).draw(9, rng()).dtype == np.int64
    column = table(x=sampler.clip(1, 2)).draw(9, rng())["x"]
    assert column.dtype == np.int64


def test_the_same_records_are_used_every_time():
    """A record that was used yesterday would not be used today, and one calibration would not be enough."""
    sampler = uniform(0, 1).fixed(size=50)
    for n in (50, 51, 1000):
        chosen = sampler.positions(n)
        assert len(set(chosen.tolist())) == 50
        assert chosen.min() >= 0 and chosen.max() < n
        assert (np.diff(chosen) > 0).all()
        assert np.array_equal(chosen, uniform(5, 6).fixed(size=50).positions(n))
    with pytest.raises(DataError, match=r"has 49 records, and fixed\(size=50\) uses 50"):
        sampler.positions(49)


@for_each(
    "make_it",
    [
        lambda s: s.map(np.exp),
        lambda s: s.clip(0.25, 0.75),
        lambda s: s.truncated(0.25, 0.75),
        lambda s: mixture([s, s]),
        lambda s: with_missing(s, 0.5),
        lambda s: labelled(s, choice([0, 1])),
        lambda s: table(a=s),
    ],
)
def test_a_fixed_size_is_never_dropped(make_it):
    """The data would be used in full, and calibrated again every day, though the size was fixed."""
    try:
        made = make_it(uniform(0, 1).fixed(size=7))
    except SamplerError:
        return  # refused is right too
    assert len(made.positions(20)) == 7


@pytest.mark.parametrize("frame", FRAMES)
def test_a_projection_draws_what_the_function_would_get(frame):
    """A function of one column would be calibrated on another container than it is given."""
    sampler = table(EVERYTHING, frame=frame)
    full, one, some = sampler.draw(5, rng()), sampler["f"].draw(5, rng()), sampler[["f", "c"]].draw(5, rng())
    if frame == "records":
        assert [type(value) for value in one] == [float] * 5
        assert [list(record) for record in some] == [["f", "c"]] * 5
    elif frame == "dict":
        assert one.dtype == full["f"].dtype
        assert list(some) == ["f", "c"]
    else:
        assert type(some) is type(full)
        assert list(columns_of(some)) == ["f", "c"]
        wanted = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": np.ndarray}[frame]
        assert type(one) is wanted


def test_a_projection_remembers_its_parent():
    """Budgets need one P per dataset: two projections would count as two datasets."""
    sampler = table(EVERYTHING)
    assert sampler["f"].parent is sampler
    assert sampler[["f", "c"]].parent is sampler
    assert list(sampler["f"].parts()) == [sampler]


@pytest.mark.parametrize("frame", FRAMES)
def test_a_projection_keeps_what_belongs_together(frame):
    """Columns that depend on each other would be drawn as if they did not."""
    sampler = table(age=integers(0, 99), b=boolean(), twice=doubled, frame=frame)
    drawn = columns_of(sampler[["twice", "age"]].draw(30, rng(21)))
    assert list(drawn) == ["twice", "age"]
    assert drawn["twice"] == [2 * age for age in drawn["age"]]
    of_made = mixture([sampler, sampler])[["twice", "age"]]
    drawn = columns_of(of_made.draw(30, rng(21)))
    assert drawn["twice"] == [2 * age for age in drawn["age"]]


def test_a_projection_has_its_columns_support():
    """Private records would be clipped to another column's bounds."""
    sampler = table(EVERYTHING)
    assert sampler["i"].support == (0, 9)
    assert sampler[["c", "i"]].support == {"c": OneOf(("lo", "hi"), "lo"), "i": (0, 9)}
    assert sampler[["c", "i"]]["i"].support == (0, 9)


def test_projections_of_samplers_made_of_tables():
    """A mapped, mixed or bootstrapped table would have no columns."""
    sampler = table(a=integers(0, 9), b=boolean(), frame="dict")
    for made in (
        mixture([sampler, sampler]),
        sampler.map(lambda data: data | {"a": data["a"] + 1}),
        sampler.fixed(size=7),
        samplers.bootstrap(sampler.draw(20, rng(22))),
    ):
        assert made["a"].draw(4, rng()).shape == (4,)
        assert list(made[["b"]].draw(4, rng())) == ["b"]
    assert sampler.fixed(size=7)["a"] == sampler["a"].fixed(size=7)


def test_a_projection_may_be_a_column_of_another_table():
    """A column could not be used again with its categories."""
    sampler = table(a=sampler_column("c"), b=sampler_column("i"))
    drawn = sampler.draw(10, rng(23))
    assert drawn["a"].dtype == pd.CategoricalDtype(["lo", "hi"], ordered=True)
    assert drawn["b"].dtype == np.int64


def sampler_column(name):
    """Return a column of the table of everything."""
    return table(EVERYTHING)[name]


def test_a_sampler_is_no_sequence():
    """``list(P)`` or ``for x in P`` would never end, and ``len(P)`` would promise a size."""
    for sampler in (table(EVERYTHING), boolean(), uniform(0, 1)):
        with pytest.raises(TypeError, match="not iterable"):
            iter(sampler)
        with pytest.raises(TypeError):
            len(sampler)
        with pytest.raises(TypeError):
            assert "a" in sampler


# --- families ---


PEOPLE = "table(age=integers(0, 120), sex=categorical(['F', 'M']), pay=with_missing(uniform(0, 9), 0.2))"


def test_a_family_around_p():
    """A member that the docs promise would be missing, or could not be left out."""
    P = make(PEOPLE)
    family = P.family()
    assert family.members[0] == P
    assert len(family) == 6
    assert family.names[0] == "P"
    assert repr(family) == f"{PEOPLE}.family()"
    assert make(repr(family)) == family
    assert len({declare(member).digest for member in family}) == 6
    assert str(family).splitlines()[1:3] == [
        f"  0  P: {PEOPLE}",
        "  1  `age` and `pay` are half as spread out",
    ]
    assert "half as spread out" in family._repr_html_()
    assert family.support == P.support
    assert len(family.without(5, family.names[1])) == 4
    assert len(family.adding(P.changed(Change(added=[("age", "zeros", 0.9)])))) == 7
    assert repr(family.without(1)).startswith("any_of(")


def test_a_family_is_the_same_in_every_process():
    """A colleague's answers would be about other members, and a ledger would have none in common."""
    code = f"""from privatize.samplers import *
from privatize.identity.declared import declare
print(*(declare(member).digest for member in {PEOPLE}.family()))"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.split() == [declare(member).digest for member in make(PEOPLE).family()]


def test_families_of_columns_and_of_fixed_sizes():
    """A question about one column, or about growing data, could have no family."""
    P = make(PEOPLE)
    assert repr(P.family()["age"]) == f"{PEOPLE}.family()['age']"
    assert P.fixed(size=5).family() == P.family().fixed(size=5)
    assert make(repr(P.fixed(size=5).family())) == P.fixed(size=5).family()
    assert all(member.size == 5 for member in P.fixed(size=5).family())
    assert labelled(P, "sex").family().members[1].draw(3, rng())[1].name == "sex"
    small = P[["age"]].family()
    assert len(small) == 4
    assert small.names[1] == P["age"].family().names[1] == "`age` is half as spread out"


@for_each("frame", FRAMES)
def test_a_column_of_a_changed_table_is_drawn_as_one_of_p(frame):
    """A question about one column would be refused under a member of the family, or see another container."""
    P = make(f"{PEOPLE[:-1]}, frame={frame!r})")
    family = P.family()
    for wanted in ("sex", "pay", ["pay", "age"]):
        for member in family[wanted]:
            drawn, other = member.draw(300, rng()), P[wanted].draw(300, rng())
            assert records.describe(drawn) == records.describe(other)
        nested = table(x=member) if isinstance(wanted, str) else P
        assert records.describe(nested.draw(3, rng())) is not None
    if frame == "pandas":
        assert table(x=family["sex"].members[1]).draw(3, rng())["x"].dtype == P["sex"].draw(3, rng()).dtype


def test_changed_columns_have_the_same_law_whichever_way_they_are_made():
    """Columns of a changed table would be another P than changed columns of the table."""
    P = make(PEOPLE)
    change = Change(swapped=[("sex", ["F"], ["M"], [1])], spread=[("age", 0.5, 60, True)])
    one = P[["sex", "age"]].changed(change).draw(4000, rng(1))
    other = P.changed(change)[["sex", "age"]].draw(4000, rng(2))
    third = P.map(copied)[["sex", "age"]].changed(change).draw(4000, rng(3))  # changed as a frame
    # Two-sided tests with a false-alarm rate of 1e-6 each.
    for drawn in (other, third):
        assert one.dtypes.equals(drawn.dtypes)
        counts = [[(each["sex"] == k).sum() for k in "FM"] for each in (one, drawn)]
        assert stats.fisher_exact(counts).pvalue > 1e-6
        assert stats.ks_2samp(one["age"], drawn["age"]).pvalue > 1e-6


def copied(frame):
    """Return the same records, by a function of a user."""
    return frame.copy()


def test_a_family_around_a_sampler_of_ones_own_is_refused():
    """What a user's class draws would be changed without knowing what it means."""

    class Own(Distribution):
        def draw(self, n, generator):
            return generator.random(n)

    with pytest.raises(SamplerError, match=r"Pass a list of samplers of your own: sampler=\[P1, P2\]"):
        Own().family()
    assert len(from_function(Own().draw, support=(0, 1)).family()) == 4


def test_a_constant_p_has_a_family_of_one():
    """P that cannot be changed would be refused."""
    assert len(make("categorical(['only'])").family()) == 1
