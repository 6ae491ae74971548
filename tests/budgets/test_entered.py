"""A release is charged to every budget that it was given or that the caller has entered, and to no other."""

import asyncio
import concurrent.futures
import threading

import cloudpickle
import numpy as np
import pytest

from privatize import Budget, privatize, samplers, seal
from privatize.budgets.entered import current
from privatize.errors import (
    BudgetExceeded,
    InfiniteSensitivityError,
    LedgerError,
    PrivateRunError,
)
from tests.budgets.charged import everything, new_budget

UNIT = samplers.uniform(0, 1)
MARK = 0.123456789123  # a number that no sampled record has
DATA = np.linspace(0.1, 0.9, 50)
HOSTILE = np.concatenate([[MARK], DATA[1:]])


def mean(x):
    return float(x.mean())


def made(raw=mean, **changes):
    """Return a private function that is calibrated in this process only."""
    return privatize(**({"epsilon": 0.3, "gamma": 0.2, "sampler": UNIT, "store": None} | changes))(raw)


class TestAttaching:
    def test_three_ways_at_once(self):
        """Every budget that applies is charged, once each."""
        own, entered, carried = new_budget(), new_budget(epsilon=2), new_budget(epsilon=3)
        f = made(budget=own)
        data = seal(DATA, name="people", budget=carried)
        with entered, own:
            f(data)
        assert [b.spent.epsilon for b in (own, entered, carried)] == [0.3, 0.3, 0.3]
        f(data)
        assert [b.spent.epsilon for b in (own, entered, carried)] == [0.6, 0.3, 0.6]
        f(DATA)
        assert [b.spent.epsilon for b in (own, entered, carried)] == [0.9, 0.3, 0.6]

    def test_a_refusal_by_one_budget_charges_no_other(self):
        """A request that is refused by one budget spends nothing from the rest."""
        rich, poor = new_budget(), new_budget(epsilon=0.1)
        with rich, poor, pytest.raises(BudgetExceeded, match=poor.name):
            made()(DATA)
        with poor, rich, pytest.raises(BudgetExceeded, match=poor.name):
            made()(DATA)
        assert rich.spent == (0, 0, 0) and len(rich.history()) == 0

    def test_one_budget_under_two_names_in_the_program(self):
        """The same budget opened twice is one budget: it is charged once, and a refusal changes nothing."""
        budget = new_budget()
        again = Budget(budget.name, epsilon=1, gamma=1, ledger="memory")
        f = made(epsilon=0.6, budget=budget)
        with again:
            f(DATA)
        assert budget.verify().epsilon == 0.6
        before = everything(budget)
        with again, pytest.raises(BudgetExceeded, match="Nothing was spent"):
            f(DATA)
        assert everything(budget) == before

    def test_blocks_nest_and_end(self):
        """A block's budget is not charged after its end, even if an error ended it."""
        outer, inner = new_budget(), new_budget()

        def fails():
            with outer:
                with inner:
                    assert current() == (outer, inner)
                assert current() == (outer,)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
        assert current() == ()
        made()(DATA)
        assert outer.spent == inner.spent == (0, 0, 0)

    def test_threads_charge_their_own_budgets(self):
        """A budget that another thread has entered is not charged here."""
        f = made()
        f.estimate(50)
        budgets = [new_budget() for _ in range(4)]
        ready = threading.Barrier(4)

        def task(budget):
            with budget:
                ready.wait(120)
                for _ in range(2):
                    f(DATA)
                ready.wait(120)
            return current()

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(task, budgets)) == [()] * 4
        assert [b.spent.epsilon for b in budgets] == [0.6] * 4 and current() == ()

    def test_tasks_charge_their_own_budgets(self):
        """Tasks that take turns in one thread each charge the budget that they have entered."""
        f = made()
        f.estimate(50)
        budgets, entered = [new_budget() for _ in range(3)], new_budget()

        async def task(budget, times):
            with budget:
                for _ in range(times):
                    await asyncio.sleep(0)
                    f(DATA)

        async def main():
            with entered:
                await asyncio.gather(*(task(b, i) for i, b in enumerate(budgets)))

        asyncio.run(main())
        assert [b.spent.epsilon for b in budgets] == [0, 0.3, 0.6] and entered.spent.epsilon == 0.9

    def test_calibrating_costs_nothing(self):
        """Estimates need no private data, so they are free."""
        budget = new_budget()
        with budget:
            made(budget=budget).estimate(50)
        assert budget.spent == (0, 0, 0)

    def test_calibrating_in_other_processes(self):
        """A budget in memory does not prevent pairs from being evaluated in other processes."""
        budget = new_budget()
        made(lambda x: float(x.mean()) * 2, budget=budget, workers=2)(DATA)
        assert budget.spent.epsilon == 0.3

    def test_a_pickled_function_keeps_its_budget(self, path):
        """A private function that runs on a cluster is charged there too, or refused: it is never free."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        there = cloudpickle.loads(cloudpickle.dumps(made(lambda x: float(x.mean()), budget=budget)))
        there(DATA)
        assert budget.verify().epsilon == 0.3
        part = budget.partition("site", parts=["A", "B"])["A"]
        there = cloudpickle.loads(cloudpickle.dumps(made(lambda x: float(x.mean()), budget=part)))
        there(seal(DATA, name="A"))
        assert list(budget.history()["part"]) == ["", "A"]
        pickled = cloudpickle.dumps(made(lambda x: float(x.mean()), budget=new_budget()))
        with pytest.raises(LedgerError):
            cloudpickle.loads(pickled)(DATA)

    def test_nested_calls_are_refused(self):
        """Nobody wants noise inside noise; the message names the remedy."""
        budget = new_budget()
        inner = made(budget=budget)
        outer = made(lambda x: inner(x) + 1.0, budget=budget)
        with pytest.raises(InfiniteSensitivityError, match=r"mean\.__wrapped__"):
            outer(DATA)
        assert budget.spent == (0, 0, 0)

    def test_nested_calls_that_only_private_data_causes(self):
        """A nested call that happens only on private data would give a second answer, not paid for."""
        budget, other = new_budget(), new_budget()
        inner = made(budget=other)
        outer = made(lambda x: inner(x) if x[0] == MARK else float(x.mean()), version="1", budget=budget)
        with pytest.raises(PrivateRunError):
            outer(HOSTILE)
        assert other.spent == (0, 0, 0) and budget.spent.epsilon == 0.3
