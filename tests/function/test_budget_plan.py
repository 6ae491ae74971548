"""How much epsilon wished errors need, and whether there is enough."""

import numpy as np
import pytest

from privatize import Blocks, Gaussian, sums
from privatize.errors import SettingsError
from tests.cases import for_each
from tests.function.catalogued import budget, catalogue, declared, mean, sealed


def test_every_question_gets_the_least_epsilon_for_its_error():
    """Somebody would run out of budget in the middle of a dashboard."""
    made = declared(epsilon=1)
    plan = made.plan_budget({"mean": 0.1, "share_above": 0.2, "share_above(limit=0.5)": 0.1})
    assert list(plan.epsilons) == list(made.questions) and plan.fits
    for label, epsilon in plan.epsilons.items():
        member, _, limit = label.partition("(limit=")
        arguments = {"limit": float(limit[:-1])} if limit else {}
        assert made[member].error_at(epsilon=epsilon, **arguments) <= plan.errors[label]
        assert made[member].error_at(epsilon=epsilon * 0.99, **arguments) > plan.errors[label]
    assert plan.left.epsilon == 1 and plan.epsilon == sum(plan.epsilons.values())
    assert "it is enough" in repr(plan) and "share_above(limit=0.25)" in plan._repr_html_()
    assert "NOT enough" in repr(made.plan_budget({"mean": 0.0001}))


def test_delta_is_shared():
    """A Gaussian question could not be planned, or all of them would spend the delta of one."""
    made = catalogue(sealed(budget=budget(delta=1e-6)), mechanism="gaussian")
    made.add(mean)
    made.add(lambda x: x.std(), name="spread")
    made.add(lambda x: (x > 0.5).mean(), name="most", mechanism="laplace")
    made.calibrate()
    plan = made.plan_budget({"mean": 0.1, "spread": 0.1, "most": 0.1})
    assert dict(plan.deltas) == {"mean": 5e-7, "spread": 5e-7, "most": 0.0} and plan.fits


@for_each(
    "errors, problem",
    [
        ({}, "a dict"),
        ({"median": 1}, "no question 'median'"),
        ({"mean": -1}, "not a distance"),
        ([1], "a dict"),
    ],
)
def test_wishes_are_checked(errors, problem):
    """A typing error would be planned as if nothing had been wished."""
    with pytest.raises(SettingsError, match=problem):
        declared().plan_budget(errors)


def test_a_delta_that_nobody_has_is_refused():
    """The plan would promise what the budget refuses."""
    made = catalogue(mechanism=Gaussian())
    made.add(mean)
    made.calibrate()
    with pytest.raises(SettingsError, match="none left"):
        made.plan_budget({"mean": 1})
    with pytest.raises(SettingsError, match="calibrate"):
        catalogue().plan_budget({"mean": 1})


def test_questions_without_an_error_are_left_out_by_name():
    """One question by Blocks would cost the plan of all others, without being named."""
    made = catalogue()
    made.add(mean)
    made.add(np.median, mechanism=Blocks(0.0, 1.0))
    made.add(sums.quantiles(0.5, 0, 1), name="a_question_with_a_name_of_35_letters")
    made.calibrate()
    plan = made.plan_budget(dict.fromkeys(made.questions, 0.1))
    assert list(plan.epsilons) == ["mean"] and list(plan.unknown) == list(made.questions[1:])
    assert "without median, a_question" in repr(plan) and "left out, no error" in repr(plan)
    lines = repr(plan).splitlines()[1:]
    assert len({line.index(line[2:].split(maxsplit=1)[1]) for line in lines[:3]}) == 1
    with pytest.raises(SettingsError, match=r"nothing to plan.*median"):
        made.plan_budget({"median": 0.1})
