"""Whoever looks at a catalogue learns what was declared of it, and declares nothing."""

import numpy as np

from privatize import Blocks
from privatize.function.standing import Standing, standing_of
from tests.function.catalogued import catalogue, fresh, mean, sealed


def test_where_a_catalogue_stands(tmp_path):
    """A look at a catalogue would declare it, or would not see what another process has declared."""
    people, name, store = sealed(), fresh(), tmp_path / "estimates.db"

    def made(function=mean, people=people):
        found = catalogue(people, name, store=store)
        found.add(function, name="mean")
        return found

    first = made()
    assert standing_of(first) == Standing(declared=False, late=False, remembered=False)
    assert first.facts()["budgets"][0]["left"]["gamma"] == 0.5
    first.calibrate()
    assert standing_of(first) == standing_of(made()) == Standing(declared=True, late=False, remembered=True)
    store.unlink()
    elsewhere = catalogue(people, name, store=tmp_path / "others.db")
    elsewhere.add(mean)
    assert standing_of(elsewhere) == Standing(declared=True, late=False, remembered=False)
    changed = standing_of(made(np.median))
    assert changed.declared and not changed.remembered and "mean is different now" in changed.problem
    assert "has no questions" in standing_of(catalogue()).problem


def test_late_ones_and_those_without_samples(tmp_path):
    """A late catalogue would look like any other, and one without sampled questions would never be ready."""
    people = sealed()
    early = catalogue(people, store=tmp_path / "estimates.db")
    early.add(mean)
    early.calibrate()
    assert np.isfinite(early.mean(epsilon=1))
    late = catalogue(people)
    late.add(np.median, name="middle", mechanism=Blocks(0, 1))
    late.calibrate(late=True)
    assert standing_of(late) == Standing(declared=True, late=True, remembered=True)
