"""What is declared is found by the next process, and anything else under its name is refused."""

import json

import numpy as np
import pytest

from privatize.errors import CalibrationError, SettingsError
from privatize.function import joint
from tests.cases import for_each
from tests.function.catalogued import UNIT, budget, catalogue, declared, fresh, mean, sealed, share_above

SHIFT = 0.0


def shifted(x):
    """Return the mean, shifted."""
    return x.mean() + SHIFT


def filled(people, name, **more):
    """Return a catalogue with three questions that is not declared."""
    made = catalogue(people, name, **more)
    made.add(mean)
    made.add(share_above, limit=[0.25, 0.5])
    return made


def test_the_same_catalogue_is_found_again(tmp_path):
    """Every program that asks a dashboard's questions would pay gamma again, or get other noise scales."""
    own = budget(ledger=tmp_path / "ledger.db")
    people, name = sealed(budget=own), fresh()
    store = tmp_path / "store.db"
    first = filled(people, name, store=store)
    first.calibrate()
    first.mean(epsilon=0.1)
    for where in (store, tmp_path / "another.db"):  # remembered, and calibrated again with the same seed
        second = filled(people, name, store=where)
        second.calibrate()  # after an answer: it was declared before
        assert second.mean.estimate().value == first.mean.estimate().value
        second.mean(epsilon=0.1)
    assert float(own.spent.gamma) == 0.2
    own.verify()


@for_each(
    "change, problem",
    [
        (lambda made: made.add(np.median), "median was not in it"),
        (lambda made: made.drop("mean"), "mean was in it, and not now"),
        (lambda made: (made.drop("mean"), made.add(mean)), "another order"),
        (
            lambda made: (made.drop("mean"), made.add(np.mean, name="mean")),
            "mean is different now.*__main__: put the questions into a module|another order",
        ),
    ],
)
def test_what_was_declared_stays_as_it_is(change, problem):
    """Questions could be added after answers, under a name that was declared before them."""
    people, name = sealed(), fresh()
    filled(people, name).calibrate()
    other = filled(people, name)
    change(other)
    with pytest.raises(SettingsError, match=problem):
        other.calibrate()


@for_each(
    "more, problem",
    [
        ({"gamma": 0.1}, "its gamma is 0.2, not 0.1"),
        ({"sampler": lambda n, rng: rng.random(n)}, "all of its questions.*__main__: put the questions"),
    ],
)
def test_another_promise_is_another_catalogue(more, problem):
    """A gamma, or a P, could be chosen after answers."""
    people, name = sealed(), fresh()
    filled(people, name).calibrate()
    with pytest.raises(SettingsError, match=problem):
        filled(people, name, **more).calibrate()


def test_a_catalogue_after_answers_is_refused_or_late():
    """Its questions could have been chosen because of the answers."""
    own = budget()
    people = sealed(budget=own)
    declared(people).mean(epsilon=0.1)
    made = filled(people, fresh())
    with pytest.raises(SettingsError, match="late=True"):
        made.calibrate()
    made.calibrate(late=True)
    assert made.facts()["late"] and "not in the total" in made.card().text()


def test_what_cannot_be_compared_is_refused_with_a_remedy(tmp_path):
    """Nobody could tell whether it is still the same function."""
    with (tmp_path / "notes.txt").open("w") as file:
        for version, refused in ((None, True), ("1", False)):
            made = catalogue()
            made.add(lambda x: x.mean() if file else 0.0, name="mean", version=version)
            if refused:
                with pytest.raises(SettingsError, match='version="1"'):
                    made.calibrate()
            else:
                made.calibrate()


def test_the_ledger_has_what_was_declared():
    """A review board could not see what was fixed beforehand."""
    own = budget()
    made = declared(sealed(budget=own), seed=7)
    (found,) = own.catalogues()
    content = json.loads(found.content)
    assert (found.name, found.n, found.late) == (made.name, 200, False)
    assert [each["label"] for each in content["members"]] == list(made.questions)
    assert content["P"] == repr(UNIT) and content["gamma"] == 0.2


def test_a_seed_gives_the_same_estimates_and_other_questions_other_pairs():
    """Members could be dropped because of gaps that were seen, and the same gaps be used again."""
    people, name = sealed(), fresh()
    found = {}
    for label, more in (("one", {}), ("same", {}), ("fewer", {"mean": False})):
        made = catalogue(sealed(name=people.name, budget=budget()), name + label * (label == "fewer"), seed=7)
        made.add(share_above, limit=[0.25, 0.5])
        if more.get("mean", True):
            made.add(mean)
        made.calibrate()
        found[label] = made.share_above.estimate(limit=0.5)
    assert found["one"].seed == found["same"].seed != found["fewer"].seed
    assert found["one"].value == found["same"].value


def test_a_change_between_the_check_and_the_declaration_is_refused(monkeypatch):
    """The check would be of other questions than those that are asked."""
    monkeypatch.setattr("privatize.function.fit.Check.run", lambda *_: None)
    made = catalogue()
    made.add(shifted)
    made.check_fit(epsilon=1)
    monkeypatch.setitem(globals(), "SHIFT", 1.0)
    with pytest.raises(SettingsError, match="shifted is different now"):
        made.calibrate()
    monkeypatch.setitem(globals(), "SHIFT", 0.0)
    made.calibrate()


def test_a_change_while_it_is_calibrated_is_refused(monkeypatch):
    """The estimate would be of another function than the one that was declared."""
    made = catalogue()
    made.add(shifted)
    calibrated = joint.calibrated

    def changing(*given):
        monkeypatch.setitem(globals(), "SHIFT", 1.0)
        return calibrated(*given)

    monkeypatch.setattr(joint, "calibrated", changing)
    with pytest.raises(CalibrationError, match="changed while"):
        made.calibrate()
    monkeypatch.setattr(joint, "calibrated", calibrated)
    monkeypatch.setitem(globals(), "SHIFT", 0.0)
    made.calibrate()
    made.shifted(epsilon=1)


def test_whoever_asks_has_the_caps_that_were_declared():
    """The cap of a catalogue would be promised, and another process could ask past it."""
    people, name = sealed(), fresh()
    first = catalogue(people, name, epsilon=1.0)
    first.add(mean)
    first.calibrate()
    again = catalogue(people, name)
    again.add(mean)
    with pytest.raises(SettingsError, match=r"its own caps, epsilon= and delta=, are \[1.0, 0.0\], not None"):
        again.calibrate()
