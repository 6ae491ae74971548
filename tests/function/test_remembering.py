"""Estimates are read from the store, and what is missing is evaluated."""

import json
import sqlite3

import pytest

from privatize import privatize, samplers
from privatize.errors import NotReproducibleError, PairError
from privatize.storage.estimates import Store, open_store
from tests.cases import for_each
from tests.function.catalogued import catalogue, mean, sealed
from tests.function.processes import by_process, is_second

UNIT = samplers.uniform(0, 1)


@for_each("way", ["batch", "pair", "plain"])
def test_the_process_that_has_measured_it_can_go_on(process, tmp_path, way):
    """A process with another order of sets would spoil the estimate for all others."""

    def pair(x, at, other):
        neighbour = x.copy()
        neighbour[at] = other
        return by_process(x), by_process(neighbour)

    more = {
        "batch": {"batch": lambda x: x.mean(axis=1) * (5 if is_second() else 1)},
        "pair": {"pair": pair},
        "plain": {},
    }[way]

    def estimate():
        made = privatize(epsilon=1, gamma=0.2, sampler=UNIT, store=tmp_path / "s.db", **more)
        return made(by_process).estimate(100).value

    before = estimate()
    process("second")
    with pytest.raises((NotReproducibleError, PairError)):
        estimate()
    process("first")
    assert estimate() == before


def test_the_largest_gap_of_each_question_is_remembered(tmp_path):
    """Another process could not measure it again."""
    made = catalogue(store=tmp_path / "s.db")
    for question in (mean, by_process):
        made.add(question)
    made.calibrate()
    (entry,) = Store(tmp_path / "s.db").entries()
    found = Store(tmp_path / "s.db").read(entry["key"])
    assert [gap > 0 for _, gap in found.largest] == [True, True]
    assert all(0 <= pair < found.checked for pair, _ in found.largest)


def test_largest_gaps_of_other_questions_are_not_used(tmp_path):
    """Another process would fail with an error that says nothing, because of what somebody wrote there."""

    def calibrated(name):
        made = catalogue(name=name, people=people, store=tmp_path / "s.db", seed=1)
        for question in (mean, by_process):
            made.add(question)
        made.calibrate()
        return made.mean.estimate().value

    people = sealed()
    before = calibrated("largest gaps of other questions")
    with sqlite3.connect(tmp_path / "s.db") as connection:
        ((facts,),) = connection.execute("SELECT facts FROM estimates").fetchall()
        text = json.dumps(json.loads(facts) | {"largest": [[3, 0.5]]})
        connection.execute("UPDATE estimates SET facts = ?", (text,))
    connection.close()
    open_store.cache_clear()
    assert calibrated("largest gaps of other questions") == before
