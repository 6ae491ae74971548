"""What opens private data outside of a release pays for it, and shows nothing of it."""

import numpy as np
import pytest

from privatize import Budget, privatize, samplers, seal
from privatize.errors import (
    BudgetExceeded,
    DataError,
    PolicyError,
    PrivateRunError,
    SealedError,
    SettingsError,
)
from privatize.function.box import Box
from privatize.function.opening import Opening
from privatize.function.settings import Settings
from tests.cases import for_each
from tests.function.sentinels import PRIVATE, SENTINEL
from tests.function.test_leaks import assert_clean

UNIT = samplers.uniform(0, 1)


def opening(budget=None, sampler=UNIT, epsilon=0.5):
    return Opening(
        name="look", settings=Settings(epsilon=epsilon, sampler=sampler, budget=budget), purpose="check"
    )


def boxed(data):
    box = Box()
    box.data = data
    return box


def largest(box):
    """Measure something of both forms of the data."""
    return float(np.max(box.data)), float(np.max(box.value))


def loud(box):
    raise ValueError(f"{box.data}")


class Refusing:
    """A budget that nothing can be paid from."""

    def afford(self, charge):
        """Promise that it can be paid."""

    def reserve(self, charge):
        raise BudgetExceeded("There is not enough left.")


def test_the_data_is_paid_for_converted_and_not_changed():
    """Whoever learns or checks something gets records inside P's support, for one plain charge."""
    for number, how in enumerate(("paid", "recorded")):
        budget, data = Budget(f"opened {number}", epsilon=1, ledger="memory"), PRIVATE.copy()

        def answer(found, how=how):
            return found.paid(largest) if how == "paid" else found.recorded(largest, lambda _: {})

        found, given = opening(budget).run(boxed(seal(data, name="people", version="1")), answer)
        assert (found, given) == ((SENTINEL, 1.0), False)
        assert np.array_equal(data, PRIVATE)
        (row,) = budget.ledger.history(budget.name)
        assert (row["purpose"], row["strength"], row["epsilon"]) == ("check", "plain", 0.5)
        assert (row["function"], row["n"], row["dataset"]) == ("look", 4, "'people' version '1'")


def test_a_failure_that_depends_on_values_is_paid_for_and_shows_nothing():
    """An error for some values and none for others would be an answer that costs nothing."""
    for number, how in enumerate(("paid", "recorded")):
        budget, box = Budget(f"failed {number}", epsilon=1, ledger="memory"), boxed(PRIVATE)

        def answer(found, how=how):
            return found.paid(loud) if how == "paid" else found.recorded(loud, lambda _: {})

        with pytest.raises(PrivateRunError, match=r"look\(\) could not convert") as caught:
            opening(budget).run(box, answer)
        assert_clean(caught.value)
        assert budget.spent.epsilon == 0.5
        assert box.data is None
        assert box.value is None


def test_what_is_recorded_reaches_every_budget_with_the_charge():
    """A learned P that was paid for but not written down would have to be paid for again."""

    class Noting(Refusing):
        def __init__(self):
            self.notes = []

        def reserve(self, charge, **recorded):
            self.notes.append((charge.epsilon, recorded))

    one, other = Noting(), Noting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privatize.function.opening.current", lambda: (other,))
        opening(one).run(boxed(PRIVATE), lambda found: found.recorded(largest, lambda _: {"learned": "P"}))
    assert one.notes == other.notes == [(0.5, {"learned": "P"})]


def test_a_refusal_is_shown_and_nothing_is_returned():
    """Somebody whose budget was used up meanwhile must see that, not a message about the data."""
    for how in ("paid", "recorded"):

        def answer(found, how=how):
            return found.paid(largest) if how == "paid" else found.recorded(largest, lambda _: {})

        with pytest.raises(BudgetExceeded, match="not enough left") as caught:
            opening(Refusing()).run(boxed(PRIVATE), answer)
        assert_clean(caught.value)


@for_each(
    "data, sampler, error, match",
    [
        (lambda: PRIVATE, None, SettingsError, "has no P"),
        (lambda: np.empty(0), UNIT, DataError, "empty"),
        (lambda: PRIVATE.reshape(2, 2), UNIT, DataError, "shape|column|array"),
        (lambda: (seal(PRIVATE, name="x"), PRIVATE), UNIT, SealedError, "Only some"),
    ],
)
def test_data_that_does_not_fit_costs_nothing(data, sampler, error, match):
    """A wrong container or a missing P is found before anything is spent."""
    budget = Budget(f"unfit {match}", epsilon=1, ledger="memory")
    with pytest.raises(error, match=match) as caught:
        opening(budget, sampler).run(boxed(data()), lambda found: found.paid(largest))
    assert_clean(caught.value)
    assert budget.spent.epsilon == 0


def test_aligned_parts_may_each_be_sealed():
    """X and y that were sealed separately are opened together, with the P and budget of either."""
    budget, law = Budget("aligned", epsilon=1, ledger="memory"), samplers.labelled(UNIT, UNIT)
    parts = seal(np.array([0.5, 2.0]), name="X", budget=budget), seal(np.array([0.1, 0.2]), name="y")
    found, _ = opening(sampler=law).run(
        boxed(parts), lambda found: found.paid(lambda box: [each.max() for each in box.value])
    )
    assert found == [1.0, 0.2]
    assert budget.spent.epsilon == 0.5


def test_only_the_records_that_p_uses_are_opened():
    """A P of fixed size answers about that many records, here as in releases."""
    law, n = UNIT.fixed(size=3), 10
    values = np.linspace(0.0, 1.0, n)
    found, _ = opening(sampler=law).run(
        boxed(values), lambda found: found.paid(lambda box: (box.data.tolist(), box.value.tolist(), found.n))
    )
    assert found[0] == found[1] == values[law.positions(n)].tolist()
    assert found[2] == 3


def test_it_is_refused_while_a_private_function_runs():
    """A function that learned from its own data would leave that out of its sensitivity."""

    def inside(x):
        return opening().run(boxed(x), lambda found: found.paid(largest))[0][1]

    f = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(inside)
    with pytest.raises(Exception, match="was being evaluated"):
        f.estimate(4)


@for_each(
    "key, match",
    [
        ("max-epsilon = 0.1", "max-epsilon"),
        ("require-budget = true", "has no budget"),
        ("require-sealed = true", "not sealed"),
    ],
)
def test_the_policy_holds(rule, key, match):
    """What an organization requires of answers it requires of everything that opens private data."""
    rule(key)
    with pytest.raises(PolicyError, match=match) as caught:
        opening().run(boxed(PRIVATE), lambda found: found.paid(largest))
    assert_clean(caught.value)


def test_a_p_that_is_made_of_the_private_data_is_refused_after_payment():
    """P would contain the very records that are to be hidden, and its bounds would be taken from them."""
    budget, data = Budget("opened as P", epsilon=1, ledger="memory"), PRIVATE.copy()
    sampler = samplers.bootstrap(data.copy())
    with pytest.raises(PrivateRunError, match="bootstraps"):
        opening(budget, sampler).run(boxed(data), lambda found: found.paid(largest))
    assert budget.spent.epsilon == 0.5  # whether the data is P depends on values
