"""Whom a catalogue is about: sealed data, or the public facts of it."""

import numpy as np
import pandas as pd
import pytest

from privatize import People, samplers
from privatize.errors import DataError, SealedError, SettingsError
from privatize.function.box import Box
from privatize.function.people import Whom
from tests.cases import for_each
from tests.function.catalogued import ONES, UNIT, budget, catalogue, fresh, mean, sealed


def facts(**more):
    """Return public facts of people, and data that matches."""
    name = fresh("people")
    return People(name, len(ONES), **more), sealed(name=name, budget=None, **{"version": None} | more)


def test_a_catalogue_is_calibrated_without_the_data():
    """Whoever calibrates would need the private data."""
    people, data = facts(version="2026")
    made = catalogue(people, sampler=UNIT, epsilon=2, budget=budget())
    made.add(mean)
    made.calibrate()
    assert abs(made.mean(data, epsilon=1) - 0.5) < 0.5
    assert made.mean.release(data, epsilon=1).catalogue == made.name


@for_each("change", [{"name": "others"}, {"version": "2027"}, {"data": ONES[:100]}])
def test_data_that_does_not_match_is_refused(change):
    """A transformed dataset is a question that is made from an answer."""
    people, data = facts(version="2026")
    made = catalogue(people, sampler=UNIT, budget=budget())
    made.add(mean)
    made.calibrate()
    given = {"name": data.name, "version": "2026", "budget": None, "data": ONES} | change
    with pytest.raises(SealedError, match="was declared for the people"):
        made.mean(sealed(given.pop("data"), **given), epsilon=1)
    for wrong in ((), (ONES,), ((data, data),)):
        with pytest.raises(SealedError, match="people"):
            made.mean(*wrong, epsilon=1)
    assert made.asked() == []


def test_another_container_is_refused_or_declared_beforehand():
    """The estimate would be of arrays, and the answer about a frame."""
    frame = pd.DataFrame({"x": ONES})
    law = samplers.table(x=UNIT)
    name = fresh("people")
    made = catalogue(People(name, len(ONES)), sampler=law, budget=budget())
    made.add(lambda d: d["x"].mean(), name="average")
    made.calibrate()
    assert abs(made.average(sealed(frame, name=name, budget=None, sampler=None), epsilon=1) - 0.5) < 0.5
    name = fresh("people")
    series = catalogue(
        People(name, len(ONES), like=pd.Series([], dtype=float)), sampler=UNIT, budget=budget()
    )
    series.add(mean)
    series.calibrate()
    assert abs(series.mean(sealed(pd.Series(ONES), name=name, budget=None), epsilon=1) - 0.5) < 0.5
    with pytest.raises(DataError, match="like="):
        series.mean(sealed(name=name, budget=None), epsilon=1)


def test_data_with_a_budget_that_was_not_declared_is_refused():
    """Answers would be charged where the catalogue was never declared."""
    people, _ = facts()
    made = catalogue(people, sampler=UNIT, budget=budget())
    made.add(mean)
    made.calibrate()
    with pytest.raises(SettingsError, match="is not declared"):
        made.mean(sealed(name=people.name), epsilon=1)


@for_each(
    "given, problem",
    [
        ({"name": "", "n": 3}, "name"),
        ({"name": "a", "n": 0}, "number of records"),
        ({"name": "a", "n": 3, "like": np.ones(3)}, "without records"),
        ({"name": "a", "n": ONES}, "a ndarray"),
    ],
)
def test_facts_are_checked(given, problem):
    """A catalogue would be declared for people that do not exist."""
    with pytest.raises(SettingsError, match=problem):
        People(**given)


def test_parts_are_aligned():
    """Rows of two tables that do not belong together would be taken for one person's."""
    box = Box()
    box.data = (sealed(), sealed(ONES[:50]))
    with pytest.raises(SettingsError, match="200 and 50"):
        Whom.of(box)
    box.data = (sealed(), ONES)
    with pytest.raises(SealedError, match="ndarray"):
        Whom.of(box)
    assert box.data is None


def test_other_data_under_the_same_name_is_refused_where_the_data_is_known():
    """Data that was made from an answer could be sealed under the name of the people."""
    own = budget()
    people = sealed(budget=own)
    made = catalogue(people)
    made.add(mean)
    made.calibrate()
    assert np.isfinite(made.mean(people, epsilon=0.1))
    with pytest.raises(SealedError, match="The catalogue has"):
        made.mean(sealed(np.sort(ONES)[::-1], name=people.name, budget=own), epsilon=0.1)


def test_a_dataset_without_records_is_refused():
    """The error would come from P's generator, and say nothing."""
    with pytest.raises(SettingsError, match="is empty"):
        catalogue(sealed(ONES[:0]))
