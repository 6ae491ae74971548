"""Families of P: which samplers go together, and what a family is made of."""

import pickle

import numpy as np
import pytest
from scipy import stats

from privatize import samplers
from privatize.errors import SamplerError
from privatize.samplers import (
    Family,
    any_of,
    as_sampler,
    boolean,
    choice,
    from_function,
    integers,
    labelled,
    normal,
    table,
    uniform,
    with_missing,
)
from privatize.samplers.base import draw, traits_of
from privatize.samplers.families import members_of
from tests.cases import for_each

PEOPLE = table(age=integers(18, 90), ill=boolean(0.1), frame="dict")
OLD = table(age=integers(60, 99), ill=boolean(0.4), frame="dict")


def skewed(n, rng):
    """Draw numbers most of which are small."""
    return rng.random(n) ** 2


def test_a_list_is_a_family():
    """A user writes sampler=[P1, P2], and every kind of P that is accepted alone is accepted there."""
    family = as_sampler([uniform(0, 1), from_function(skewed, support=(0, 1)), stats.uniform(0, 1)])
    assert len(family) == 3
    assert all(draw(member, 5, np.random.default_rng(0)).shape == (5,) for member in family)
    assert as_sampler(family) is family
    assert members_of(family) == family.members


def test_one_member_is_that_member():
    """A list with one P means that P: its estimates are those that are remembered for it alone."""
    P = uniform(0, 1)
    assert as_sampler([P]) is P
    assert as_sampler(any_of(P, uniform(0, 1))) is P


def test_the_same_p_counts_once():
    """A P that is listed twice would be calibrated twice."""
    P = uniform(0, 1)
    family = any_of(P, uniform(0.0, 1.0), uniform(0, 2), any_of(P, uniform(0, 3)))
    assert family.members == (P, uniform(0, 2), uniform(0, 3))
    assert any_of(choice([0, 1]), choice([0, 1])).members == (choice([0, 1]),)


def test_it_has_no_draw():
    """Code that forgets about families must fail, and not calibrate the first member alone."""
    family = any_of(uniform(0, 1), uniform(0, 2))
    assert not hasattr(family, "draw")
    with pytest.raises(SamplerError, match="draw"):
        draw(family, 3, np.random.default_rng(0))


def test_bounds_are_the_outermost():
    """Records of every member must stay as they are when private data is clipped."""
    assert any_of(PEOPLE, OLD).support["age"] == (18, 99)
    assert any_of(uniform([0, 5], [1, 6]), uniform([-1, 5], [1, 9])).support[0].tolist() == [-1, 5]
    P = with_missing(uniform(0, 1), 0.1)
    assert any_of(P, with_missing(uniform(0, 3), 0.5)).support.inner == (0.0, 3.0)


REFUSED = {
    "any_of(uniform(0, 1), integers(0, 1))": "different kinds",
    "any_of(uniform(0, 1), PEOPLE)": "do not fit together",
    "any_of(uniform(0, 1), uniform([0, 0], 1))": "do not fit together",
    "any_of(PEOPLE, PEOPLE[['age']])": "do not fit together",
    "any_of(categorical(['a', 'b']), categorical(['a', 'c']))": "do not fit together",
    "any_of(uniform(0, 1), from_function(skewed))": "do not fit together",
    "any_of(PEOPLE, table(age=integers(18, 90), ill=boolean(0.1), frame='pandas'))": "different kinds",
    "any_of(uniform(0, 1), uniform(0, 2).fixed(size=5))": "different numbers",
    "any_of()": "at least one",
    "as_sampler([])": "choice",
    "as_sampler([1, 2])": "choice",
    "as_sampler([uniform(0, 1), 2])": "sampler=2",
    "table(age=[uniform(0, 1), uniform(0, 2)])": "very end",
    "mixture([any_of(uniform(0, 1), uniform(0, 2)), uniform(0, 1)])": "very end",
    "as_sampler(any_of)": "not called",
    "any_of(uniform(0, 1), uniform(0, 2)).without('wide')": "no member 'wide'",
    "any_of(uniform(0, 1), uniform(0, 2)).without(2)": "no member 2",
    "any_of(uniform(0, 1)).without(0)": "at least one",
    "any_of(uniform(0, 1)).adding(skewed)": "converts",
}


@for_each("code, why", REFUSED.items())
def test_what_does_not_go_together_is_refused(code, why):
    """Private data is converted to one kind of records: a member that draws another is not calibrated."""
    with pytest.raises(SamplerError, match=why):
        eval(code, vars(samplers) | globals())


def test_the_two_members_are_named():
    """Among twelve members a user must find the one that does not fit."""
    with pytest.raises(SamplerError, match=r"'uniform\(0, 1\)' and 'other'"):
        any_of(uniform(0, 1), uniform(0, 2), other=integers(0, 1))


def test_columns_and_sizes_of_all_members():
    """P["age"] of a family is the family of that column, and of labels, for data that grows too."""
    family = any_of(people=PEOPLE, old=OLD)
    assert family["age"].members == (PEOPLE["age"], OLD["age"])
    assert family[["age", "ill"]].names == ("people", "old")
    assert labelled(family, "ill").members[1] == labelled(OLD, "ill")
    fixed = family.fixed(size=3)
    assert traits_of(fixed).size == 3
    assert fixed.positions(10).tolist() == PEOPLE.fixed(size=3).positions(10).tolist()


def test_names():
    """Errors and tables name each member, so no two have the same name."""
    long = normal(np.arange(30), 1)
    family = any_of(long, normal(np.arange(30) + 0.5, 1), wide=normal(0, np.arange(1, 31)))
    assert len(set(family.names)) == 3
    assert family.names[2] == "wide"
    assert max(map(len, family.names)) < 70
    assert "wide" in family._repr_html_()
    again = Family.of([("same", uniform(0, 1)), ("same", uniform(0, 2))])
    assert again.names == ("same", "same (2)")
    assert repr(any_of(uniform(0, 1), **{"a b": uniform(0, 2)})) == "any_of(uniform(0, 1), uniform(0, 2))"


def test_it_compares_by_content_and_is_pickled():
    """A family in another process, or under other names, is the same family."""
    family = any_of(PEOPLE, old=OLD)
    assert pickle.loads(pickle.dumps(family)) == family == any_of(PEOPLE, elderly=OLD)
    assert hash(family) == hash(any_of(PEOPLE, OLD))
    assert traits_of(family).immutable
    assert not traits_of(any_of(uniform(0, 1), from_function(skewed, support=(0, 1)))).stable
