"""Questions with a bound for all pairs are tried on made-up people before they are declared."""

import numpy as np
import pandas as pd
import pytest

from privatize import Blocks, additive, samplers, seal, sums
from privatize.calibration import refuting
from privatize.errors import CalibrationError
from privatize.function import question
from tests.cases import for_each
from tests.function.catalogued import ONES, UNIT, budget, catalogue, fresh, mean, sealed


def fails(x):
    """Fail on all data."""
    raise ValueError("on purpose")


WRONG = {
    "a bound that pairs refute": (mean, {"sensitivity": 1e-9}, "is not a bound"),
    "a bound of what fails": (fails, {"sensitivity": 1}, "on purpose"),
    "blocks that all fail": (fails, {"mechanism": Blocks(0.0, 1.0)}, "ValueError: on purpose"),
    "another structure": (lambda x: {"a": x.mean()}, {"mechanism": Blocks(0.0, 1.0)}, "unlike low and high"),
    "blocks of nothing": (lambda x: float("nan"), {"mechanism": Blocks(0.0, 1.0)}, "no finite number"),
    "a sum that fails": (additive(fails, bounds=(0, 1)), {}, "on purpose"),
    "a sum of other rows": (additive(lambda x: np.stack([x, x], 1), bounds=(0, 1)), {}, "bounds="),
    "a sum that looks at all": (additive(lambda x: x - x.mean(), bounds=(-1, 1)), {}, "one record at a time"),
}


@for_each("function, options, problem", list(WRONG.values()))
def test_what_does_not_work_is_refused_before_gamma_is_spent(function, options, problem):
    """Gamma would be spent, and then the question could be neither asked nor repaired, or give pure noise."""
    own = budget()
    made = catalogue(sealed(budget=own))
    made.add(mean, name="fine")
    made.add(function, name="wrong", **options)
    with pytest.raises(CalibrationError, match="wrong: "):
        made.calibrate()
    with pytest.raises(CalibrationError, match="wrong: "):
        made.check_fit(epsilon=1)
    assert (own.spent.epsilon, own.spent.gamma) == (0, 0)
    seen = made.pilot()
    assert list(seen.problems) == ["wrong"] and problem in seen.problems["wrong"]
    made.drop("wrong")
    made.calibrate()


def test_columns_that_are_not_there_are_found():
    """A misspelt column would be found out by pure noise, or when nothing can be repaired any more."""
    people = pd.DataFrame({"age": ONES, "height": ONES})
    made = catalogue(sealed(people, sampler=samplers.table(age=UNIT, height=UNIT)))
    made.add(lambda d: d["agee"].mean(), name="blocks", mechanism=Blocks(0.0, 1.0))
    made.add(sums.means(bounds=({"agee": 0}, {"agee": 1})), name="means")
    made.add(sums.quantiles(0.5, 0, 1), name="quantile")
    made.add(lambda d: d["age"].mean(), name="fine", mechanism=Blocks(0.0, 1.0))
    problems = made.pilot().problems
    assert list(problems) == ["blocks", "means", "quantile"]
    assert "KeyError: 'agee'" in problems["blocks"] and "agee" in problems["means"]
    assert "one number for each record" in problems["quantile"]


def test_what_works_is_told_and_a_bound_is_tried_once(monkeypatch):
    """Nobody would know what was tried; and the first answer would attack its bound again."""
    people = sealed(np.tile(ONES, 5))
    made = catalogue(people)
    made.add(mean, sensitivity=lambda n: 1 / n)
    made.add(np.median, mechanism=Blocks(0.0, 1.0, blocks=50))
    made.add(additive(np.square, bounds=(0, 1)), name="total")
    made.add(sums.quantiles(0.5, 0, 1), name="middle")
    told = repr(made.pilot())
    assert "4 questions with bounds for all pairs" in told
    assert "held on" in told and "worked on 8 of 8 made-up datasets of 20" in told
    assert told.count("worked on 1000 made-up people") == 2
    made.calibrate()
    monkeypatch.setattr(question, "refute", None)
    assert refuting.refute is not None and all(made[name](epsilon=1) is not None for name in made.members)


def test_without_p_it_is_told_that_nothing_was_tried():
    """Somebody would think that the pilot had run what it had no data for."""
    made = catalogue(seal(ONES, name=fresh("people"), budget=budget()))
    made.add(fails, mechanism=Blocks(0.0, 1.0))
    assert "not tried: the catalogue has no P" in repr(made.pilot())
    made.calibrate()


def test_what_a_trial_leaves_behind_is_put_back():
    """A function that counts its calls would be another one than was declared, and be refused."""
    calls = []
    made = catalogue()
    made.add(lambda x: calls.append(1) or x.mean(), name="counts", mechanism=Blocks(0.0, 1.0))
    made.pilot()
    assert not calls
    made.calibrate()
    assert 0 <= made.counts(epsilon=1) <= 1
