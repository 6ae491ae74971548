"""The phases of a catalogue, its own budget, and threads."""

import threading

import numpy as np
import pytest

from privatize import Blocks, Budget, Exponential, Gaussian, People, privatize, samplers
from privatize.errors import ArgumentError, BudgetExceeded, CalibrationError, SealedError, SettingsError
from privatize.function.catalogue_state import Phase
from tests.function.catalogued import ONES, UNIT, budget, catalogue, declared, fresh, mean, sealed


def test_the_catalogue_has_caps_of_its_own():
    """One dashboard could use up what was meant for all of them."""
    common = budget(epsilon=10)
    made = declared(sealed(budget=common), epsilon=0.5)
    made.mean(epsilon=0.4)
    with pytest.raises(BudgetExceeded, match=made.name):
        made.mean(epsilon=0.2)
    assert round(common.spent.epsilon, 9) == 0.4
    assert round(Budget.begun(made.name, "memory").spent.epsilon, 9) == 0.4
    common.verify()


def test_a_question_that_fails_is_named():
    """Of sixty questions nobody would know which one to drop."""
    made = catalogue()
    made.add(mean)
    made.add(lambda x: 1.0, name="constant")
    made.add(lambda x: 1 / 0, name="broken")
    problems = made.pilot().problems
    assert set(problems) == {"constant", "broken"}
    with pytest.raises(CalibrationError, match="broken"):
        made.calibrate()
    assert made.phase is Phase.ADDING
    made.drop("broken")
    made.drop("constant")
    made.calibrate()
    assert made.phase is Phase.DECLARED


def test_what_another_process_has_declared_is_not_called_undeclared():
    """A person would read that nothing is declared, beside a ledger that has it, and declare it again."""
    people, name = sealed(), fresh()
    made = catalogue(people, name)
    made.add(mean)
    with pytest.raises(SettingsError, match="is not declared"):
        made.mean(epsilon=0.1)
    assert "questions can be added" in repr(made)
    made.calibrate()
    again = catalogue(people, name)
    again.add(mean)
    with pytest.raises(SettingsError, match="the ledger has a declared catalogue"):
        again.mean(epsilon=0.1)
    assert "call calibrate() to go on" in repr(again) and "call calibrate() to go on" in again.card().text()
    again.calibrate()
    assert "questions can be asked" in repr(again)


def test_threads_may_ask_at_once():
    """A dashboard with several users would fail, or spend more than it was charged."""
    own, found = budget(epsilon=1.0), []
    made = declared(sealed(budget=own))

    def ask():
        for _ in range(5):
            try:
                found.append(made.mean(epsilon=0.1))
            except BudgetExceeded:
                found.append(None)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 20 and sum(each is not None for each in found) == 10
    own.verify()


def test_threads_declare_once():
    """Two threads would charge gamma twice, or declare different questions."""
    own = budget()
    made = catalogue(sealed(budget=own))
    made.add(mean)
    threads = [threading.Thread(target=made.calibrate) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert float(own.spent.gamma) == 0.2 and len(own.catalogues()) == 1


def test_what_is_not_a_budget_of_ours_is_refused():
    """There would be no ledger to declare in."""

    class Counting:
        def reserve(self, charge):
            """Spend."""

        afford = reserve

    with pytest.raises(SettingsError, match=r"privatize\.Budget"):
        catalogue(budget=Counting())


def filled(people, **more):
    """Return a catalogue with one question that is not declared."""
    made = catalogue(people, **more)
    made.add(mean)
    return made


def test_weights_follow_from_the_questions_alone():
    """After a check somebody could repeat the pilot until its weights suit what the check has told."""
    people, name = sealed(), fresh()
    pilots = [filled(people, name=name, seed=seed).pilot() for seed in (None, 1, 2)]
    assert len({pilot.seed for pilot in pilots}) == len({pilot.weights for pilot in pilots}) == 1
    other = filled(people, name=name)
    other.add(np.median, name="median")
    assert other.pilot().seed != pilots[0].seed


def test_a_check_that_is_refused_costs_nothing():
    """Epsilon would be spent on a check that is of no use."""
    own = budget(gamma=0.1)
    made = filled(sealed(ONES, budget=own))
    with pytest.raises(BudgetExceeded, match=r"gamma=0\.2 of 0\.1 left"):
        made.check_fit(epsilon=3)
    strict = catalogue(sealed(ONES, budget=own))
    strict.add(np.median, mechanism=Blocks(0, 1))
    with pytest.raises(SettingsError, match="no sampled question"):
        strict.check_fit(epsilon=1)
    few = filled(sealed(ONES[:50]))
    with pytest.raises(SettingsError, match="too few"):
        few.check_fit(epsilon=0.1)
    facts = filled(People(fresh("people"), len(ONES)), sampler=UNIT, budget=budget())
    for wrong in (ONES, None):
        with pytest.raises(SealedError, match="people"):
            facts.check_fit(wrong, epsilon=1)
    assert own.spent.epsilon == 0 and facts.phase is Phase.ADDING


def test_data_of_the_same_name_does_not_replace_what_was_declared():
    """The same people, sealed again without a budget, would be asked about for free."""
    own = budget()
    people = sealed(budget=own)
    made = declared(people)
    with pytest.raises(SealedError, match="pass none"):
        made.mean(sealed(name=people.name, budget=None), epsilon=1)
    with pytest.raises(ArgumentError, match=r"mean\(epsilon=0\.1"):
        made.mean(0.1)  # the epsilon, without its name
    assert own.spent.epsilon == 0
    made.mean(people, epsilon=1)
    assert own.spent.epsilon == 1


def test_a_family_of_p_has_one_norm_and_one_gamma():
    """The promise would hold under the first P only."""
    family = [samplers.uniform(0, 1), samplers.uniform(0, 2)]
    one, both = (declared(sampler=each, seed=3) for each in (family[0], family))
    assert both.mean.estimate().value > 1.5 * one.mean.estimate().value
    assert both.mean.release(epsilon=1).gamma == 0.2
    both._state.payers[0].verify()
    assert both.facts()["P"].startswith("any_of(")


def test_each_member_has_its_own_mechanism():
    """A vector would get the noise of a number, or a choice would be made by noise on numbers."""
    own = budget(delta=1e-5)
    made = catalogue(sealed(budget=own))
    made.add(lambda x: [x.mean(), x.sum()], name="both", mechanism=Gaussian(scaled="total"))
    made.add(lambda x, at: -abs(x.mean() - at), name="nearest", mechanism=Exponential([0.0, 0.5, 1.0]))
    made.add(mean, name="rough", min_sensitivity=0.1)
    made.calibrate()
    assert len(made.both(epsilon=1, delta=1e-6)) == 2
    assert made.nearest(epsilon=8) == 0.5
    assert made.rough.estimate().value == 0.1
    own.verify()
    with pytest.raises(SettingsError, match="delta"):
        made.both(epsilon=1)


def test_members_and_private_functions_are_no_functions():
    """Noise would be added twice, and calibrated to noise."""
    made = catalogue()
    for function in (declared().mean, privatize(epsilon=1, gamma=0.2, sampler=UNIT)(mean)):
        with pytest.raises(SettingsError, match="__wrapped__"):
            made.add(function, name="again")


def test_a_tight_budget_takes_gaussian_questions_only():
    """Gamma would be paid for questions that can never be asked."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    own = budget(composition="tight", delta=1e-5)
    made = catalogue(sealed(budget=own), mechanism="gaussian")
    made.add(mean)
    made.add(np.median, mechanism="laplace")
    with pytest.raises(SettingsError, match="median has none"):
        made.calibrate()
    assert own.spent.gamma == 0
    made.drop("median")
    made.calibrate()
    made.mean(epsilon=0.5, delta=1e-6)
    own.verify()
