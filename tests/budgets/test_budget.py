"""What was spent stays spent; what was refused spends nothing; nothing private is recorded."""

import asyncio
import concurrent.futures
import contextlib
import decimal
import functools
import itertools
import json
import logging
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from fractions import Fraction
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privatize as package
from privatize import Budget, Gaussian, Laplace, privatize, samplers, seal
from privatize.budgets.charges import Charge
from privatize.budgets.entered import current
from privatize.budgets.ledger import open_ledger
from privatize.calibration.evaluators.choose import evaluator
from privatize.errors import (
    BudgetExceeded,
    InfiniteSensitivityError,
    LedgerError,
    PrivateRunError,
    SettingsError,
    UnsharedBudgetWarning,
)
from privatize.execution.packaging.package import pack
from privatize.function.recursion import RecursionGuard
from privatize.mechanisms.base import l1
from privatize.samplers.tables import columns_of
from privatize.storage.estimates import open_store
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
ROOT = str(Path(package.__file__).parents[1])
NUMBERS = itertools.count()
MARK = 0.123456789123  # a number that no sampled record has
DATA = np.linspace(0.1, 0.9, 50)
HOSTILE = np.concatenate([[MARK], DATA[1:]])


def new_name():
    """Return a name that no other budget in this process has."""
    return f"budget {next(NUMBERS)}"


def new_budget(**caps):
    """Return a budget in memory."""
    return Budget(new_name(), **({"epsilon": 1, "gamma": 1, "ledger": "memory"} | caps))


def charge(epsilon=0.1, delta=0.0, gamma=0.0, **facts):
    """Return a charge."""
    promise = {"epsilon": epsilon, "delta": delta, "gamma": gamma}
    kind = f"dp {float(epsilon)!r} {float(delta)!r}"
    return Charge(
        **{"function": "f", "key": "", "dataset": "", "n": 5, "mechanism": "Laplace", "kind": kind}
        | {"declared": ("P1:P",), "described": "P"}
        | promise
        | facts
    )


def mean(x):
    return float(x.mean())


def made(raw=mean, **changes):
    """Return a private function that is calibrated in this process only."""
    return privatize(**({"epsilon": 0.3, "gamma": 0.2, "sampler": UNIT, "store": None} | changes))(raw)


def two_columns(n, rng):
    return rng.random(n), rng.random(n)


def everything(budget):
    """Return all that a ledger knows about a budget."""
    with budget.ledger.database.transaction(write=False) as run:
        tables = {"budgets": "name", "spent": "budget", "charges": "budget", "gammas": "budget"}
        tables["people"] = "budget"
        return {
            table: run(f"SELECT * FROM {table} WHERE {by} = ?", budget.name) for table, by in tables.items()
        }


@pytest.fixture
def path(tmp_path):
    """Return the path of a ledger of this test's own."""
    open_ledger.cache_clear()
    yield tmp_path / "deep" / "ledger.db"
    open_ledger.cache_clear()


class TestSums:
    def test_a_hundred_hundredths_are_one(self):
        """Floating-point sums would refuse the last one, or let one more pass."""
        budget = new_budget()
        for _ in range(100):
            budget.reserve(charge(0.01))
        assert budget.remaining == (0, 0, 1) and budget.spent == (1, 0, 0)
        with pytest.raises(BudgetExceeded):
            budget.reserve(charge(0.01))
        with pytest.raises(BudgetExceeded):
            budget.reserve(charge(1e-15))
        assert budget.verify() == (1, 0, 0)

    def test_every_component_counts(self):
        """A budget that has ε left but no δ or γ is used up."""
        for cap, request in [
            ({"epsilon": 0.1, "delta": 1e-6}, charge(0.2, 1e-6, 0.1)),
            ({"epsilon": 1, "delta": 1e-7}, charge(0.2, 1e-6, 0.1)),
            ({"epsilon": 1, "delta": 1e-6, "gamma": 0.05}, charge(0.2, 1e-6, 0.1)),
        ]:
            with pytest.raises(BudgetExceeded):
                new_budget(**cap).reserve(request)

    def test_the_users_decimal_context_changes_nothing(self):
        """A program that rounds its own decimals to three digits could spend without end."""
        budget = new_budget()
        with decimal.localcontext(decimal.Context(prec=3)):
            budget.reserve(charge(0.999))
            for _ in range(10):
                budget.reserve(charge(0.0001))
            with pytest.raises(BudgetExceeded):
                budget.reserve(charge(0.0001))
        assert budget.verify().epsilon == 1

    def test_the_smallest_amounts_count(self):
        """Amounts that disappear in rounding could be spent without end."""
        budget = new_budget(delta=1)
        budget.reserve(charge(1, 0.5))
        with pytest.raises(BudgetExceeded):
            budget.reserve(charge(1e-40))
        budget.reserve(charge(0, 1e-40))
        with pytest.raises(BudgetExceeded):
            budget.reserve(charge(0, 0.5))

    def test_through_a_private_function(self):
        """What is charged is exactly what the decorator promises."""
        budget = new_budget(delta=1e-5, gamma=0.5)
        f = made(mechanism="gaussian", delta=1e-6, budget=budget)
        release = f.release(DATA)
        assert budget.spent == (0.3, 1e-6, pytest.approx(release.gamma))
        assert len(budget.history()) == 1


class TestRefused:
    def test_a_refused_request_changes_nothing(self):
        """One refused query uses up OpenDP's odometer: here a refused request leaves no trace."""
        budget = new_budget(gamma=0.5)
        budget.reserve(charge(0.5, gamma=0.1, dataset="d", key="k"))
        before = everything(budget)
        for request in [
            charge(0.6, gamma=0.1, dataset="d", key="k"),
            charge(0.1, gamma=0.7, dataset="d", key="k"),
            charge(0.6, gamma=0.1, dataset="new", key="new"),
            charge(0.1, gamma=0.1, dataset="d", key="k", declared=("P1:another",)),
            charge(0.1, 0.1, dataset="new"),
        ]:
            with pytest.raises((BudgetExceeded, SettingsError)):
                budget.reserve(request)
            with pytest.raises((BudgetExceeded, SettingsError)):
                budget.afford(request)
            assert everything(budget) == before
        budget.afford(charge(0.5, dataset="other"))
        assert everything(budget) == before
        budget.reserve(charge(0.5, gamma=0.1, dataset="new", key="new", declared=("P1:any",)))
        assert budget.verify() == (1, 0, 0.2)

    def test_nothing_is_evaluated(self):
        """If there is not enough left, the function runs neither on private data nor for a calibration."""
        runs = []
        budget = new_budget(epsilon=0.2)
        f = made(lambda x: runs.append(1) or 1.0 * x.sum(), version="1", budget=budget)
        with pytest.raises(BudgetExceeded):
            f(DATA)
        assert runs == [] and budget.spent == (0, 0, 0)

    def test_what_the_error_says(self):
        """A user learns what was asked, what is left, and what would fit; also from a worker process."""
        budget = new_budget(delta=1e-6, gamma=0.5)
        f = made(budget=budget, epsilon=0.7)
        f(DATA)
        with pytest.raises(BudgetExceeded) as caught:
            f(DATA)
        error = caught.value
        facts = {
            "epsilon": 0.7,
            "epsilon_left": 0.3,
            "epsilon_cap": 1,
            "delta": 0,
            "delta_left": 1e-6,
            "delta_cap": 1e-6,
            "gamma_left": pytest.approx(0.3),
            "gamma_cap": 0.5,
        }
        for again in (error, pickle.loads(pickle.dumps(error))):
            assert {name: getattr(again, name) for name in facts} == facts
            for text in (budget.name, "epsilon=0.7 of 0.3 left (cap 1)", "Nothing was spent"):
                assert text in str(again)
        assert "mean.replace(epsilon=0.3) would fit" in str(error)
        f.replace(epsilon=0.3)(DATA)
        with pytest.raises(BudgetExceeded, match="Nothing more fits"):
            f(DATA)

    @pytest.mark.parametrize("cap", [2 / 3, 1.99999999, 0.1 + 0.2])
    def test_the_suggested_epsilon_fits(self, cap):
        """If the message rounded its suggestion up, a user who follows it would be refused again."""
        budget = new_budget(epsilon=cap)
        with pytest.raises(BudgetExceeded) as caught:
            budget.reserve(charge(3))
        text = str(caught.value).partition("replace(epsilon=")[2].partition(")")[0]
        budget.reserve(charge(float(text)))
        assert budget.spent.epsilon == pytest.approx(cap, rel=1e-5)

    def test_a_suggested_gamma_fits(self):
        """Another gamma is another plan that is read from the same gaps, which costs more than that gamma."""
        budget = new_budget(epsilon=10, gamma=0.3)
        f = made(lambda x: float(x.mean()) + 0.5, gamma=0.2, budget=budget)
        f(DATA)
        with pytest.raises(BudgetExceeded) as caught:
            f(DATA)
        if "replace(gamma=" in str(caught.value):
            f.replace(gamma=caught.value.gamma_left)(DATA)
            assert budget.verify().gamma <= 0.3


class TestStaysSpent:
    @pytest.mark.parametrize(
        ("act", "error"),
        [
            ("raise ValueError(x)", PrivateRunError),
            ("sys.exit(3)", PrivateRunError),
            ("raise KeyboardInterrupt", KeyboardInterrupt),
            ("return float('nan')", PrivateRunError),
            ("return 'text'", PrivateRunError),
        ],
    )
    def test_whatever_the_function_does(self, act, error):
        """A function that could get its ε back by failing would reveal private data for free."""
        space = {"MARK": MARK, "sys": sys, "float": float}
        exec(f"def f(x):\n    if x[0] == MARK:\n        {act}\n    return float(x.mean())", space)
        budget = new_budget()
        f = made(space["f"], version="1", budget=budget)
        with pytest.raises(error):
            f(HOSTILE)
        assert budget.spent.epsilon == 0.3 and len(budget.history()) == 1
        f(DATA)
        assert budget.verify().epsilon == 0.6

    def test_it_is_reserved_before_the_function_sees_data(self):
        """When the function reads private data, the charge is already in the ledger."""
        notes = logging.getLogger("notes of a budget")  # where the fingerprint does not look
        notes.budget, notes.seen = new_budget(), []

        def average(x):
            notes.seen.append((x[0] == MARK, notes.budget.spent.epsilon))
            return float(x.mean())

        made(average, budget=notes.budget)(HOSTILE)
        assert {spent for private, spent in notes.seen if private} == {0.3}
        assert {spent for private, spent in notes.seen if not private} == {0.0}

    def test_a_killed_process(self, path):
        """Killing a process inside the function is not a way to a free answer."""
        text = f"""
            import os, signal, numpy as np
            from privatize import Budget, privatize, samplers

            def f(x):
                if x[0] == {MARK}:
                    os.kill(os.getpid(), signal.SIGKILL)
                return float(x.mean())

            budget = Budget("b", epsilon=1, gamma=1)
            data = np.full(50, 0.5)
            data[0] = {MARK}
            privatize(epsilon=0.3, gamma=0.2, sampler=samplers.uniform(0, 1), budget=budget)(f)(data)
        """
        child = program(path, text)
        child.communicate(timeout=300)
        assert child.returncode == -signal.SIGKILL
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        assert budget.verify().epsilon == 0.3 and list(budget.history()["function"]) == ["f"]


class TestGamma:
    def test_once_for_an_estimate_and_a_declared_dataset(self):
        """The same Δ̂ on the same data fails on the same pairs: paying twice would halve what can be asked."""
        budget = new_budget(epsilon=10)
        data = seal(DATA, name="people", version="1")
        f = made(budget=budget)
        for _ in range(4):
            gamma = f.release(data).gamma
        assert budget.spent == (1.2, 0, pytest.approx(gamma))
        f.replace(epsilon=0.1)(data)
        assert budget.spent.gamma == pytest.approx(gamma)
        assert budget.verify() == budget.spent

    def test_every_release_about_undeclared_data(self):
        """Without a name nobody knows whether it is the same data."""
        budget = new_budget(epsilon=10)
        f = made(budget=budget)
        for _ in range(3):
            gamma = f.release(DATA).gamma
        assert budget.spent.gamma == pytest.approx(3 * gamma)

    def test_the_largest_of_one_estimate(self):
        """Promises with several γ about one estimate fail on the same pairs, so only the largest γ counts."""
        budget = new_budget()
        for gamma, total in [(0.1, 0.1), (0.3, 0.3), (0.2, 0.3), (0.3, 0.3), (0.4, 0.4)]:
            budget.reserve(charge(gamma=gamma, dataset="d", key="k"))
            assert budget.spent.gamma == total
        assert list(budget.history()["charged"]) == pytest.approx([0.1, 0.2, 0, 0, 0.1])
        budget.verify()

    def test_gammas_of_different_estimates_or_datasets_add_up(self):
        """Another estimate, dataset, version or n fails on other pairs, so its γ is added."""
        budget = new_budget(epsilon=10, gamma=10)
        f = made(budget=budget)
        for data in (
            seal(DATA, name="a"),
            seal(DATA, name="a", version="2"),
            seal(DATA, name="b"),
            seal(DATA[:40], name="a"),
        ):
            f(data)
        made(np.median, budget=budget)(seal(DATA, name="a"))
        assert budget.spent.gamma == pytest.approx(sum(budget.history()["gamma"]))
        assert len(budget.history()) == 5

    def test_a_name_is_not_confused_with_a_name_and_a_version(self):
        """Two datasets whose names look alike would share one γ and one answer."""
        budget = new_budget(epsilon=10, gamma=10)
        f = made(budget=budget)
        first = f(seal(DATA, name="a@1"))
        assert f(seal(DATA / 2, name="a", version="1")) != first
        assert len(budget.history()) == 2
        assert budget.spent.gamma == pytest.approx(sum(budget.history()["gamma"]))

    def test_forgetting_makes_a_new_estimate(self):
        """A luckier calibration is paid for: it fails on other pairs."""
        budget = new_budget()
        data = seal(DATA, name="people")
        f = made(budget=budget)
        first = f.release(data)
        f(data)
        f.forget()
        second = f.release(data)
        assert budget.spent.gamma == pytest.approx(first.gamma + second.gamma)

    def test_further_plans_from_the_same_gaps(self):
        """Plans that are chosen after others were seen cost more, and the history adds up to the total."""
        budget = new_budget(epsilon=10, gamma=10)
        data = seal(DATA, name="people")
        f = made(lambda x: float(x.mean()) - 0.5, budget=budget)
        found = [
            f.replace(gamma=gamma).release(each).gamma
            for gamma in (0.2, 0.1, 0.2, 0.3)
            for each in (data, DATA)
        ]
        assert list(budget.history()["gamma"]) == pytest.approx(found)
        assert budget.verify().gamma >= max(found) + sum(found[1::2]) - 1e-9

    def test_what_is_not_remembered_is_charged_each_time(self):
        """Without a key nobody knows whether it is the same estimate."""
        budget = new_budget()
        for _ in range(3):
            budget.reserve(charge(gamma=0.1, dataset="d"))
        assert budget.spent.gamma == 0.3


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


class TestOpening:
    def test_all_who_name_a_budget_share_it(self, path):
        """Two programs that name the same budget have one, not two."""
        Budget("b", epsilon=1, gamma=1, ledger=path).reserve(charge(0.6))
        open_ledger.cache_clear()
        again = Budget("b", epsilon=1, gamma=1, ledger=f"sqlite:///{path}")
        assert again.spent.epsilon == 0.6
        with pytest.raises(BudgetExceeded):
            again.reserve(charge(0.6))
        assert Budget("other", epsilon=1, gamma=1, ledger=path).spent == (0, 0, 0)

    @pytest.mark.parametrize(
        "caps",
        [
            {"epsilon": 2},
            {"gamma": 2},
            {"delta": 1e-6},
            {"composition": "tight", "delta": 1e-5},
        ],
    )
    def test_caps_cannot_be_changed(self, caps):
        """Somebody who names a larger cap could spend more."""
        first = {"epsilon": 1, "gamma": 1, "delta": 1e-5}
        budget = Budget(new_name(), **first, ledger="memory")
        if "composition" in caps:
            pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
        with pytest.raises(SettingsError, match="was opened with epsilon=1"):
            Budget(budget.name, **(first | caps), ledger="memory")
        assert budget.remaining == (1, 1e-5, 1)

    def test_the_environment_names_the_ledger(self, path, monkeypatch):
        """A team sets one variable to share a ledger."""
        monkeypatch.setenv("PRIVATIZE_LEDGER", str(path))
        Budget("b", epsilon=1, gamma=1).reserve(charge())
        assert Budget("b", epsilon=1, gamma=1, ledger=path).spent.epsilon == 0.1

    @for_each(
        ("changes", "text"),
        [
            ({"name": ""}, "name"),
            ({"name": 3}, "name"),
            ({"epsilon": -1}, "epsilon"),
            ({"epsilon": "1"}, "epsilon"),
            ({"epsilon": True}, "epsilon"),
            ({"epsilon": float("nan")}, "epsilon"),
            ({"epsilon": float("inf")}, "epsilon"),
            ({"delta": 1.5}, "delta"),
            ({"gamma": None}, "gamma"),
            ({"composition": "best"}, "composition"),
            ({"composition": "tight"}, "delta"),
        ],
    )
    def test_wrong_arguments(self, changes, text):
        """The error names the mistake, and no budget is created."""
        right = {"name": new_name(), "epsilon": 1, "gamma": 1, "ledger": "memory"}
        with pytest.raises(SettingsError, match=text):
            Budget(**(right | changes))

    @pytest.mark.parametrize("wrong", ["budget", 3, object(), Budget])
    def test_objects_that_are_not_budgets(self, wrong):
        """A name in place of a budget would charge nothing, so it is refused."""
        with pytest.raises(SettingsError, match="budget"):
            made(budget=wrong)
        with pytest.raises(SettingsError, match="budget"):
            seal(DATA, name="x", budget=wrong)

    def test_pickling(self, path):
        """A budget with a ledger works in every process; one in memory cannot be spent in another process."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path, who=True)
        budget.reserve(charge())
        again = pickle.loads(pickle.dumps(budget))
        assert again.spent.epsilon == 0.1 and again.cap == budget.cap
        assert again.who
        for act in ("reserve", "afford"):
            with pytest.raises(LedgerError, match="ledger="):
                getattr(pickle.loads(pickle.dumps(new_budget())), act)(charge())

    def test_workers_do_not_get_the_ledgers_url(self, path):
        """A password in the URL would be sent to every worker of a cluster."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        f = privatize(epsilon=0.1, gamma=0.1, sampler=UNIT, budget=budget)(lambda x: float(x.mean()))
        context = functools.partial(RecursionGuard, f, f.__wrapped__)
        job = evaluator(f.__wrapped__, n=5, sampler=UNIT, norm=l1, seed=1, worker_context=context)
        payload = pack(job).payload
        assert b"RemoteBudget" in payload and str(path).encode() not in payload
        assert str(path).encode() in pickle.dumps(budget)

    def test_a_forked_process_cannot_spend_from_memory(self):
        """A forked child with a copy of the budget could spend the same ε a second time."""
        budget = new_budget()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:  # pragma: no cover
            try:
                budget.reserve(charge(1))
                os.write(writing, b"spent")
            except LedgerError:
                os.write(writing, b"refused")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with os.fdopen(reading) as file:
            assert file.read() == "refused"
        budget.reserve(charge(1))

    def test_opening_many_ledgers_keeps_the_one_in_memory(self, tmp_path):
        """A budget in memory would be forgotten, and could be spent again, after others were opened."""
        budget = new_budget()
        budget.reserve(charge(1))
        for i in range(70):
            open_ledger(str(tmp_path / f"{i}.db"))
        assert Budget(budget.name, epsilon=1, gamma=1, ledger="memory").spent.epsilon == 1
        open_ledger.cache_clear()


class TestPartition:
    def test_the_largest_part_counts(self):
        """Sites that share no people do not pay for each other; an answer about everybody adds to all."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B", "C"])
        for part, epsilon in [("A", 0.5), ("B", 0.3), ("B", 0.3)]:
            sites[part].reserve(charge(epsilon, gamma=0.1, dataset=part))
        assert budget.spent == (0.6, 0, 0.2)
        budget.reserve(charge(0.4, dataset="all"))
        assert budget.spent == (1, 0, 0.2)
        sites["A"].reserve(charge(0.1, dataset="A"))
        before = everything(budget)
        for part in "AB":
            with pytest.raises(BudgetExceeded):
                sites[part].reserve(charge(0.01, dataset=part))
        assert everything(budget) == before
        sites["C"].reserve(charge(0.6, dataset="C"))
        assert budget.verify() == (1, 0, 0.2)
        assert list(budget.history()["part"]) == ["A", "B", "B", "", "A", "C"]

    def test_partitions_add_up(self):
        """A person is in one part of each partition, so the costs of partitions add up."""
        budget = new_budget()
        budget.partition("site", parts=["A", "B"])["A"].reserve(charge(0.4, dataset="A"))
        budget.partition("year", parts=["A", "B"])["B"].reserve(charge(0.5, dataset="2025"))
        assert budget.verify().epsilon == 0.9

    def test_through_private_functions(self):
        """A part can be used like a budget: in a with block, as budget=, and with sealed data."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        f = made()
        with sites["A"]:
            f(seal(DATA, name="A"))
        f(seal(DATA, name="B", budget=sites["B"]))
        made(budget=sites["B"])(seal(DATA, name="B"))
        assert budget.verify().epsilon == 0.6

    def test_a_partition_is_a_mapping(self):
        """`in` and `get` would raise an error for a part that does not exist."""
        sites = new_budget().partition("site", parts=["A", "B"])
        assert "A" in sites and "Z" not in sites and 3 not in sites
        assert sites.get("A") is sites["A"] and sites.get("Z") is None and sites.get("Z", 1) == 1
        assert list(sites) == ["A", "B"] and sites == dict(sites.items())
        with pytest.raises(SettingsError, match="'Z' is not a part of 'site': its parts are A, B"):
            sites["Z"]

    def test_undeclared_data_is_refused(self):
        """Without names nobody knows whether the parts are separate people."""
        budget = new_budget()
        part = budget.partition("site", parts=["A", "B"])["A"]
        with part, pytest.raises(SettingsError, match="one function that returns all groups"):
            made()(DATA)
        assert budget.spent == (0, 0, 0) and len(budget.history()) == 0

    def test_a_dataset_is_in_one_part(self):
        """The same people in two parts would pay once for two answers."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        sites["A"].reserve(charge(dataset="d"))
        for place in (sites["B"], budget, budget.partition("year", parts=["A"])["A"]):
            with pytest.raises(SettingsError, match="A dataset is in one part"):
                place.reserve(charge(dataset="d"))
        assert budget.verify().epsilon == 0.1

    def test_versions_are_the_same_people(self):
        """A later version of the same table in another part would be free, though it has the same people."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        f = made(epsilon=0.5)
        with sites["A"]:
            f(seal(DATA, name="people", version="1"))
        with sites["B"], pytest.raises(SettingsError, match="A dataset is in one part"):
            f(seal(DATA, name="people", version="2"))

    def test_people_in_several_datasets(self):
        """Columns that are sealed one by one and used together are about the same people."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        pairs = samplers.from_function(two_columns)
        f = made(lambda x, y: float((x * y).mean()), data=("x", "y"), sampler=pairs)
        first, second, third = (seal(DATA, name=name) for name in ("u", "v", "w"))
        with sites["A"]:
            f(first, second)
        with sites["B"], pytest.raises(SettingsError, match="A dataset is in one part"):
            f(first, third)
        assert budget.verify().epsilon == 0.3

    def test_parts_are_fixed_beforehand(self):
        """A mistyped part would count as a new one: only the listed parts exist, and all of them differ."""
        sites = new_budget().partition("site", parts=["A", "B"])
        assert list(sites) == ["A", "B"] and len(sites) == 2 and "A" in repr(sites["A"])
        with pytest.raises(SettingsError, match="'D' is not a part of 'site': its parts are A, B"):
            sites["D"]
        for name, parts in [("", ["A"]), ("site", []), ("site", ["A", "A"]), ("site", [1]), (3, ["A"])]:
            with pytest.raises(SettingsError, match="different parts"):
                new_budget().partition(name, parts=parts)


class TestOneSampler:
    TABLE = samplers.table(age=samplers.uniform(0, 100), height=samplers.uniform(1, 2))

    def test_columns_are_the_same_distribution(self):
        """Answers about columns of one P add up with those about all of it."""
        budget = new_budget()
        f = made(sampler=self.TABLE["age"], budget=budget)
        g = made(sampler=self.TABLE["height"], budget=budget)
        f(seal(DATA * 100, name="people"))
        g(seal(DATA + 1, name="people"))
        assert budget.verify().epsilon == 0.6

    def test_another_p_is_refused(self):
        """Promises under two P do not add up, so the second is refused; the message names both."""
        budget = new_budget()
        made(budget=budget)(seal(DATA, name="people"))
        other = made(sampler=samplers.uniform(0, 2), budget=budget)
        before = everything(budget)
        with pytest.raises(SettingsError, match=r"uniform\(0, 1\).*uniform\(0, 2\)"):
            other(seal(DATA, name="people"))
        assert everything(budget) == before
        other(seal(DATA, name="others"))
        other(DATA)


class TestVerify:
    TAMPERING = (
        "UPDATE spent SET epsilon = '0.1'",
        "UPDATE spent SET gamma = '0'",
        "UPDATE spent SET counts = '{}'",
        "UPDATE spent SET epsilon = 'much'",
        "DELETE FROM spent",
        "UPDATE charges SET epsilon = '0.01' WHERE number = 1",
        "UPDATE charges SET epsilon = 'much' WHERE number = 1",
        "UPDATE charges SET charged = '0' WHERE number = 1",
        "UPDATE charges SET number = 7 WHERE number = 2",
        "DELETE FROM charges WHERE number = 1",
        "DELETE FROM charges WHERE number = 3",
        "DELETE FROM charges",
        "UPDATE budgets SET charges = 2",
        "DELETE FROM budgets",
        "UPDATE gammas SET gamma = '5'",
        "DELETE FROM gammas",
        "DELETE FROM people",
    )

    @pytest.mark.parametrize("statement", TAMPERING)
    def test_tampering_is_found(self, path, statement):
        """Somebody who edits a ledger could spend more without being noticed."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        budget.reserve(charge(0.2, gamma=0.1, dataset="d", key="k"))
        budget.reserve(charge(0.2, gamma=0.1, dataset="d", key="k"))
        budget.reserve(charge(0.2, gamma=0.1))
        assert budget.verify() == (0.6, 0, 0.2)
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()
        with pytest.raises(LedgerError):
            budget.verify()

    def test_more_than_the_cap_is_found(self, path):
        """A ledger whose totals agree with its charges may still not exceed its caps."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        budget.reserve(charge(0.2))
        connection = sqlite3.connect(path)
        connection.execute("UPDATE charges SET epsilon = '2'")
        connection.execute("UPDATE spent SET epsilon = '2'")
        connection.commit()
        connection.close()
        with pytest.raises(LedgerError):
            budget.verify()

    def test_a_removed_budget(self, path):
        """Nothing is released from a budget that somebody has removed."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        connection = sqlite3.connect(path)
        connection.execute("DELETE FROM budgets")
        connection.commit()
        connection.close()
        with pytest.raises(LedgerError, match="no longer"):
            made(budget=budget)(DATA)


class TestDisplay:
    def test_history(self):
        """The history is a table of who asked what, when, and for how much, without the answers."""
        budget = new_budget(epsilon=10, delta=1e-3, gamma=2, who=True)
        made(budget=budget)(seal(DATA, name="people", version="3"))
        made(np.median, mechanism=Gaussian(), delta=1e-6, budget=budget)(DATA)
        table = budget.history()
        assert type(table).__module__.startswith("pandas")
        assert list(table["number"]) == [1, 2] and list(table["function"]) == ["mean", "median"]
        assert list(table["n"]) == [50, 50] and list(table["mechanism"]) == ["Laplace", "Gaussian"]
        assert list(table["epsilon"]) == [0.3, 0.3] and list(table["delta"]) == [0, 1e-6]
        assert "people" in table["dataset"][0] and "3" in table["dataset"][0] and table["dataset"][1] == ""
        assert table["at"][0].endswith("Z") and "@" in table["who"][0] and len(table["key"][0]) > 20
        assert "value" not in table and "answer" not in table
        assert new_budget().history().empty

    def test_history_without_pandas(self, monkeypatch):
        """Users without pandas get the history as a list."""
        budget = new_budget()
        budget.reserve(charge())
        monkeypatch.setitem(sys.modules, "pandas", None)
        (row,) = budget.history()
        assert row["epsilon"] == 0.1 and row["who"] == ""

    def test_repr_and_html(self):
        """A user sees what is left, and a name with HTML in it cannot break the page."""
        budget = Budget(f"<b>{new_name()}", epsilon=1, delta=1e-6, gamma=0.5, ledger="memory")
        budget.reserve(charge(0.25, gamma=0.1))
        assert repr(budget).endswith(
            "epsilon=1, delta=1e-06, gamma=0.5: left epsilon=0.75, delta=1e-06, gamma=0.4; spent "
            "epsilon=0.25, delta=0 for all pairs of neighbours but a share 0.1 of those under P (on average "
            "0.1), if these questions were fixed beforehand)"
        )
        page = budget._repr_html_()
        assert "&lt;b&gt;" in page and "<b><b>" not in page
        assert "75% left" in page and "80% left" in page and "100% left" in page
        assert "delta" not in repr(new_budget())
        assert new_budget(epsilon=0, gamma=0)._repr_html_()


def test_repeating_a_question_is_another_release():
    """Each repetition has fresh noise and is paid for, also about the same named data."""
    budget = new_budget()
    data = seal(DATA, name="people", budget=budget)
    f = made()
    assert f(data) != f(data)
    assert budget.spent.epsilon == 0.6


class TestContentOfTheFile:
    def test_it_has_nothing_private(self, path):
        """The ledger can be shown to everybody: neither data nor answers nor arguments are in it."""
        secret = 0.31415926535
        words = [repr(secret), "31415926", "sentinel argument"]
        data = np.full(50, secret)
        budget = Budget("b", epsilon=100, delta=1e-3, gamma=100, ledger=path, who=True)
        sealed = seal(data, name="people", budget=budget)

        def fails(x, word="", how=0):
            if x[0] == secret and how == 1:
                raise ValueError(f"{x[0]} {word}")
            if x[0] == secret and how == 2:
                sys.exit(str(x[0]))
            return float(x.mean())

        f = made(fails, version="1")
        answers = [f(sealed, "sentinel argument"), f(sealed, how=0)]
        for how in (1, 2):
            with pytest.raises(PrivateRunError):
                f(sealed, "sentinel argument", how)
        with budget:
            answers.append(made()(data))
            answers.append(made(mechanism="gaussian", delta=1e-6)(data))
            with pytest.raises(SettingsError):
                made(sampler=samplers.uniform(0, 2))(sealed)
            with pytest.raises(BudgetExceeded):
                made(epsilon=1000)(sealed)
        assert len(budget.history()) == 6
        budget.verify()
        written = b"".join(file.read_bytes() for file in path.parent.iterdir())
        assert b"people" in written
        for word in [*words, *map(repr, answers)]:
            assert word.encode() not in written
        for number in [secret, *answers]:
            assert np.float64(number).tobytes() not in written
            assert np.array(number, ">f8").tobytes() not in written

    def test_only_the_user_can_read_it(self, path):
        """Other users of the machine cannot read what was asked."""
        Budget("b", epsilon=1, gamma=1, ledger=path)
        assert path.stat().st_mode & 0o077 == 0

    def test_user_and_host_only_on_request(self, path):
        """Who asked is personal data too."""
        Budget("b", epsilon=1, gamma=1, ledger=path).reserve(charge())
        assert list(Budget("b", epsilon=1, gamma=1, ledger=path).history()["who"]) == [""]

    def test_it_commits_durably(self, path):
        """What was spent survives a loss of power."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        with budget.ledger.database.transaction(write=False) as run:
            assert run("PRAGMA synchronous") == [(2,)]


class TestUnreachable:
    def test_without_a_ledger_there_is_no_answer(self, path):
        """If the ledger cannot be used, nothing is released: the function does not see private data."""
        notes = logging.getLogger("notes of a budget")  # where the fingerprint does not look
        notes.seen = []
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)

        def average(x):
            notes.seen.append(x[0] == MARK)
            return float(x.mean())

        f = made(average, budget=budget)
        f(DATA)
        budget.ledger.database.close()
        for file in list(path.parent.iterdir()):
            file.unlink()
        path.mkdir()
        with pytest.raises(LedgerError, match="nothing can be spent"):
            f(HOSTILE)
        assert notes.seen and not any(notes.seen)

    def test_a_folder_that_cannot_be_used(self, tmp_path):
        """A ledger that cannot be opened is an error at once, and not only at the first answer."""
        (tmp_path / "file").write_text("x")
        with pytest.raises(LedgerError):
            Budget("b", epsilon=1, gamma=1, ledger=tmp_path / "file" / "ledger.db")
        (tmp_path / "other.db").write_text("not a database, but some text that is long enough " * 20)
        with pytest.raises(LedgerError):
            Budget("b", epsilon=1, gamma=1, ledger=tmp_path / "other.db")

    def test_passwords_are_not_shown(self):
        """A ledger that cannot be reached is named without its password."""
        pytest.importorskip("psycopg", reason="psycopg is not installed (extra postgres)")
        for url in ("user:hunter2@127.0.0.1:1/db", "127.0.0.1:1/db?user=a&password=hunter2"):
            with pytest.raises(LedgerError) as caught:
                Budget("b", epsilon=1, gamma=1, ledger=f"postgresql://{url}")
            assert "hunter2" not in str(caught.value) and "127.0.0.1" in str(caught.value)


# --- any sequence of requests -----------------------------------------------------------------

SMALL = st.builds(
    lambda digits, power: float(f"{digits}e-{power}"), st.integers(1, 10**17), st.integers(18, 60)
)
AMOUNTS = st.one_of(st.sampled_from([0.01, 0.1, 0.25, 0.3]), st.floats(1e-15, 0.6), SMALL)
REQUESTS = st.lists(
    st.tuples(
        AMOUNTS,
        st.one_of(st.just(0.0), st.floats(1e-30, 0.5), SMALL),
        AMOUNTS,
        st.sampled_from(["", "a", "b", "c"]),
        st.sampled_from(["", "k", "l"]),
        st.sampled_from(["", "A", "B"]),
    ),
    max_size=25,
)


class Model:
    """A budget in fractions, recomputed from scratch for every request."""

    def __init__(self, caps):
        self.caps, self.accepted = tuple(map(Fraction, map(repr, caps))), []

    def total(self, requests):
        """Return what requests cost together."""
        sums, largest = {}, {}
        for epsilon, delta, gamma, dataset, key, part in requests:
            gamma = Fraction(repr(gamma))
            due = gamma
            if dataset and key:
                due = max(gamma - largest.get((dataset, key), 0), 0)
                largest[dataset, key] = max(gamma, largest.get((dataset, key), 0))
            cost = (Fraction(repr(epsilon)), Fraction(repr(delta)), due)
            sums[part] = tuple(map(sum, zip(sums.get(part, (0, 0, 0)), cost, strict=True)))
        parts = [cost for part, cost in sums.items() if part] or [(0, 0, 0)]
        return tuple(
            o + max(each) for o, each in zip(sums.get("", (0, 0, 0)), zip(*parts, strict=True), strict=True)
        )

    def ask(self, request):
        """Tell whether a request must be accepted; if so, remember it."""
        *_, dataset, _, part = request
        parts = {r[5] for r in self.accepted if dataset and r[3] == dataset}
        allowed = (dataset or not part) and parts <= {part}
        fits = all(
            spent <= cap for spent, cap in zip(self.total([*self.accepted, request]), self.caps, strict=True)
        )
        if allowed and fits:
            self.accepted.append(request)
        return bool(allowed and fits)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(REQUESTS, st.tuples(st.floats(0.1, 2), st.floats(0, 1), st.floats(0.1, 2)))
def test_any_sequence_of_requests(requests, caps):
    """Totals are what a sum in fractions says, never above the caps, and refusals leave no trace."""
    budget = Budget(new_name(), epsilon=caps[0], delta=caps[1], gamma=caps[2], ledger="memory")
    sites = budget.partition("site", parts=["A", "B"])
    model = Model(caps)
    for request in requests:
        epsilon, delta, gamma, dataset, key, part = request
        before = everything(budget)
        place = sites[part] if part else budget
        try:
            place.reserve(charge(epsilon, delta, gamma, dataset=dataset, key=key))
            accepted = True
        except (BudgetExceeded, SettingsError):
            accepted = False
            assert everything(budget) == before
        assert accepted == model.ask(request)
        cost = budget.terms.cost(budget.ledger.totals(budget.name))
        found = tuple(map(Fraction, (cost.epsilon, cost.delta, cost.gamma)))
        assert found == model.total(model.accepted)
        assert all(spent <= cap for spent, cap in zip(found, model.caps, strict=True))
    assert budget.verify() == tuple(map(float, model.total(model.accepted)))
    assert len(budget.history()) == len(model.accepted)


# --- many processes ---------------------------------------------------------------------------

HAMMER = """
    import os, sys, threading, time
    import numpy as np
    from privatize import Budget, privatize, samplers
    from privatize.errors import BudgetExceeded

    notes, paced = sys.argv[2], sys.argv[3] == "paced"

    def f(x):
        # Wait until the test allows more releases, so that no process ends before it is killed.
        while paced and x[0] == 0.5 and open(notes).read().count("\\n") >= int(open(notes + ".most").read()):
            time.sleep(0.005)
        return float(x.mean())

    budget = Budget("b", epsilon=1, gamma=1000)
    f = privatize(
        epsilon=0.01, gamma=0.2, sampler=samplers.uniform(0, 1), store=sys.argv[1], budget=budget, version="1"
    )(f)
    f.estimate(50)
    if len(sys.argv) < 5:
        sys.exit()
    file = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def task():
        while True:
            try:
                f(np.full(50, 0.5))
            except BudgetExceeded:
                return
            except BaseException as error:
                os.write(file, f"{type(error).__name__} {error}\\n".encode())
                raise
            os.write(file, b"released\\n")

    print("ready", flush=True)
    sys.stdin.readline()
    threads = [threading.Thread(target=task) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def program(path, text, *arguments, **environment):
    """Write a program to a file of its own, and start it with the ledger at this path."""
    file = path.parent.parent / f"program{next(NUMBERS)}.py"
    file.write_text(textwrap.dedent(text))
    env = (
        os.environ | {"PRIVATIZE_LEDGER": str(path), "PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""} | environment
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    return subprocess.Popen([sys.executable, str(file), *map(str, arguments)], env=env, **pipes)


class Test64AtOnce:
    def allow(self, notes, most):
        """Allow this many releases, or a few more."""
        (notes.parent / "new").write_text(str(most))
        (notes.parent / "new").rename(f"{notes}.most")

    def hammer(self, path, mode):
        """Start eight processes that wait for a line, with an estimate that is already remembered."""
        store, notes = path.parent.parent / "store.db", path.parent.parent / "notes"
        self.allow(notes, 5)
        child = program(path, HAMMER, store, notes, mode)
        child.communicate(timeout=300)
        assert child.returncode == 0
        children = [program(path, HAMMER, store, notes, mode, "go") for _ in range(8)]
        for child in children:
            assert child.stdout.readline() == "ready\n"
        for child in children:
            child.stdin.write("\n")
            child.stdin.flush()
        return children, notes

    def test_exactly_a_hundred(self, path):
        """In another library two workers overspent; here 64 threads in 8 processes spend the cap, no more."""
        children, notes = self.hammer(path, "free")
        for child in children:
            child.communicate(timeout=300)
        assert notes.read_text().splitlines() == ["released"] * 100
        budget = Budget("b", epsilon=1, gamma=1000, ledger=path)
        assert budget.verify().epsilon == 1 and len(budget.history()) == 100

    def test_never_more_when_processes_are_killed(self, path):
        """Killing a process at any moment may waste what it has paid for, but never allows more answers."""
        children, notes = self.hammer(path, "paced")
        choice = random.Random(5)
        doomed = choice.sample(children, 4)
        # With one more under way in each of 64 threads these are fewer than 100, so no process has ended.
        for count, child in zip((5, 12, 19, 26), doomed, strict=True):
            self.allow(notes, count)
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline and len(notes.read_text().split()) < count:
                time.sleep(choice.uniform(0, 0.01))
            child.send_signal(signal.SIGKILL)
        self.allow(notes, 1000)
        for child in children:
            child.communicate(timeout=300)
        assert [child.returncode for child in doomed] == [-signal.SIGKILL] * 4
        released = notes.read_text().splitlines()
        assert set(released) == {"released"} and 50 <= len(released) <= 100
        budget = Budget("b", epsilon=1, gamma=1000, ledger=path)
        assert budget.verify().epsilon == 1 and len(budget.history()) == 100  # the others took the rest

    def test_threads_of_one_process(self):
        """Threads that share a budget in memory could spend more than its cap."""
        budget = new_budget()
        done = []

        def task():
            while True:
                try:
                    budget.reserve(charge(0.01))
                except BudgetExceeded:
                    return
                done.append(1)

        threads = [threading.Thread(target=task) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 100 and budget.verify().epsilon == 1


def test_tight_budgets_allow_more_and_never_too_much():
    """Many small answers cost less together than their sum; δ is then spent, and the cap still holds."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    budget = new_budget(epsilon=1, delta=1e-5, composition="tight")
    kind, count = Gaussian().composition_kind(0.2, 1e-6), 0
    with contextlib.suppress(BudgetExceeded):
        while count < 100:
            budget.reserve(charge(0.2, 1e-6, kind=kind))
            count += 1
    assert 5 < count < 100
    spent = budget.verify()
    assert 0.5 < spent.epsilon <= 1 and spent.delta == 1e-5
    (total,) = budget.ledger.totals(budget.name).values()
    assert total.counts == {kind: count} == json.loads(json.dumps(total.counts))


@pytest.mark.parametrize("kind", ["dp 1.0 0.001", Gaussian().composition_kind(1, 1e-3)])
def test_tight_budgets_do_not_ignore_a_larger_delta(kind):
    """A release with a larger δ than the budget's costs more ε at the budget's δ, or is refused."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    budget = new_budget(epsilon=1, delta=1e-12, composition="tight")
    with pytest.raises(BudgetExceeded):
        budget.reserve(charge(1, 1e-3, kind=kind))
    assert budget.verify() == (0, 0, 0)


def test_a_store_and_a_ledger_in_one_file(path):
    """Forgetting estimates must not forget what was spent, even if both are in one file."""
    open_store.cache_clear()
    budget = Budget("b", epsilon=1, gamma=1, ledger=path)
    f = made(store=path, budget=budget)
    f(DATA)
    f.forget()
    f(DATA)
    assert budget.verify().epsilon == 0.6
    open_store.cache_clear()


class Opaque:
    """A sampler that cannot be compared with another one."""

    def __init__(self, high):
        self.high, self.open = high, (i for i in range(3))

    def __repr__(self):
        return "Opaque()"

    def draw(self, n, rng):
        return rng.uniform(0, self.high, n)


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_samplers_that_cannot_be_compared_count_as_different():
    """Two P would be taken for one, and their gammas would be added."""
    budget, people = new_budget(epsilon=9), seal(DATA, name=new_name(), budget=None)
    first = privatize(epsilon=0.1, gamma=0.3, sampler=Opaque(1), budget=budget, store=None)(mean)
    first(people)
    first(people)  # the very same object
    with pytest.raises(SettingsError, match="one P"):
        first.replace(sampler=Opaque(2))(people)


# --- one P for the same people ----------------------------------------------------------------


class TestPeople:
    """Promises about the same people add up under one P only, however the data is cut, named or versioned."""

    TABLE = samplers.table(age=samplers.uniform(0, 1), site=samplers.categorical(["A", "B"]), frame="dict")
    OTHER = samplers.uniform(0, 2)

    def test_another_version_is_the_same_people(self):
        """An answer about version 2 under another P would be added to one about version 1."""
        budget = new_budget()
        made(budget=budget)(seal(DATA, name="people", version="1"))
        for version in ("2", None, ""):
            with pytest.raises(SettingsError, match="one P"):
                made(sampler=self.OTHER, budget=budget)(seal(DATA, name="people", version=version))
            made(epsilon=0.01, budget=budget)(seal(DATA, name="people", version=version))
        assert budget.verify().epsilon == pytest.approx(0.33)

    def test_one_of_several_columns_that_were_used_together(self):
        """An answer about X alone, under another P, would be added to one about (X, y)."""
        budget = new_budget(epsilon=9, gamma=9)
        X, y, z = (seal(DATA, name=name) for name in "Xyz")
        both = made(
            lambda x, y: float((x * y).mean()),
            data=("x", "y"),
            sampler=samplers.from_function(two_columns),
            budget=budget,
        )
        both(X, y)
        for one in (X, y):
            with pytest.raises(SettingsError, match="one P"):
                made(budget=budget)(one)
        made(budget=budget)(z)
        with pytest.raises(SettingsError, match="one P"):
            both(X, z)
        assert len(budget.history()) == 2

    def test_columns_of_one_p_count_as_that_p(self):
        """A table that is sealed column by column could not be used."""
        budget = new_budget(epsilon=9, gamma=9)
        made(sampler=self.TABLE["age"], budget=budget)(seal(DATA, name="people", version="1"))
        both = samplers.table(x=UNIT, y=UNIT, frame="dict")
        labelled = samplers.labelled(both, "y")
        fits = made(lambda X, y: float((X["x"] * y).mean()), data=("X", "y"), sampler=labelled, budget=budget)
        fits(seal({"x": DATA}, name="X"), seal(DATA, name="y"))
        made(sampler=both["x"], budget=budget)(seal(DATA, name="X"))
        made(sampler=both["y"], budget=budget)(seal(DATA, name="y", version="3"))
        with pytest.raises(SettingsError, match="one P"):
            made(budget=budget)(seal(DATA, name="X"))
        assert len(budget.history()) == 4 and budget.verify() == budget.spent

    def test_the_p_of_all_answers_are_intersected(self):
        """If each answer holds under several P, the total holds under those that all answers share."""
        budget = new_budget()
        budget.reserve(charge(dataset="d", declared=("P1:a", "P1:b")))
        budget.reserve(charge(dataset="d", declared=("P1:b", "P1:c")))
        for declared in (("P1:a",), ("P1:c",), ("P1:a", "P1:c")):
            with pytest.raises(SettingsError, match="one P"):
                budget.reserve(charge(dataset="d", declared=declared))
        budget.reserve(charge(dataset="d", declared=("P1:b",)))
        assert budget.verify().epsilon == pytest.approx(0.3)

    def test_plain_answers_have_no_p(self):
        """An answer that holds for all pairs would be refused because it has no P, or need one."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        plain = {"strength": "plain", "declared": (), "described": ""}
        sites["A"].reserve(charge(dataset="A", **plain))
        budget.reserve(charge(dataset="d", **plain))
        budget.reserve(charge(dataset="d"))
        budget.reserve(charge(dataset="d", **plain))
        budget.reserve(charge(**plain))
        assert budget.verify().epsilon == 0.5 and budget.spent.note == ""
        for wrong in ({"gamma": 0.1}, {"looks": ((0.1, 0.1),)}, {"declared": ("P1:P",)}):
            with pytest.raises(SettingsError, match="plain"):
                charge(**(plain | wrong))
        with pytest.raises(SettingsError, match="no P"):
            budget.reserve(charge(declared=()))

    def test_the_total_says_what_cannot_be_checked(self):
        """A total over unsealed data under two P would look like a promise."""
        budget = new_budget(epsilon=9, gamma=9)
        f = made(budget=budget)
        f(DATA)
        assert "unsealed" not in repr(budget)  # all under one P, whoever they are
        assert (
            "1 sampled answer was about unsealed data, and all sampled answers are under one P"
            in budget.statement
        )
        made(sampler=self.OTHER, budget=budget)(seal(DATA, name="others"))
        words = (
            "1 sampled answer was about unsealed data: it cannot be checked that all answers about the same"
        )
        for shown in (repr(budget), budget.statement, repr(budget.verify()), repr(budget.spent)):
            assert words in shown
        f(DATA)
        assert "2 sampled answers were about unsealed data" in budget._repr_html_()
        sealed = new_budget(epsilon=9, gamma=9)
        for name, sampler in (("a", UNIT), ("b", self.OTHER)):
            made(sampler=sampler, budget=sealed)(seal(DATA, name=name))
        assert "unsealed" not in repr(sealed) + sealed.statement + repr(sealed.verify())

    def test_the_total_in_words(self):
        """Three numbers alone would not tell a user what the total promises."""
        budget = new_budget(delta=1e-5)
        made(budget=budget)(seal(DATA, name="people"))
        m, k = (made().estimate(50).m, made().estimate(50).k)
        average = 1 - k / (m + 1)
        assert budget.average_gamma == pytest.approx(average) and average < 0.2
        assert budget.statement == (
            f"epsilon=0.3, delta=0 for all pairs of neighbours but a share 0.2 of those under P "
            f"(on average {average:.6g}), if these questions were fixed beforehand"
        )


class TestAverage:
    def test_another_store_without_the_first_plan(self, tmp_path):
        """With two stores and one seed, the second plan from the same gaps would count as the first one."""
        budget = new_budget(epsilon=9, gamma=9)
        people = seal(DATA, name="people")
        first, second = (
            made(gamma=gamma, seed=1, store=str(tmp_path / f"{gamma}.db"), budget=budget)
            for gamma in (0.1, 0.3)
        )
        first(people)
        assert budget.average_gamma < 0.1
        for f in (second, first, second):
            f(people)
            assert budget.average_gamma == budget.spent.gamma == 0.3
        assert budget.verify() == budget.spent

    def test_once_for_an_estimate_and_a_dataset(self):
        """The average share of failures would be counted again for every repetition."""
        budget = new_budget()
        for average, total in [(0.05, 0.05), (0.04, 0.05), (0.08, 0.08), (None, 0.1)]:
            budget.reserve(charge(0.01, gamma=0.1, dataset="d", key="k", average_gamma=average))
            assert budget.average_gamma == pytest.approx(total)
        budget.reserve(charge(0.01, gamma=0.1, average_gamma=0.05))
        budget.reserve(charge(0.01, gamma=0.1))
        assert budget.average_gamma == pytest.approx(0.25) and budget.verify().gamma == pytest.approx(0.3)
        with pytest.raises(SettingsError, match="average"):
            charge(gamma=0.1, average_gamma=0.2)

    def test_a_further_plan_counts_in_full(self):
        """The average holds for plans that were fixed before the gaps were seen, and for no other plans."""
        budget = new_budget(epsilon=10, gamma=10)
        data = seal(DATA, name="people")
        f = made(lambda x: float(x.mean()) - 0.25, budget=budget)
        f(data)
        assert budget.average_gamma < 0.9 * budget.spent.gamma
        f.replace(gamma=0.1)(data)
        assert budget.average_gamma == budget.spent.gamma
        assert budget.verify() == budget.spent

    def test_parts_count_by_the_largest(self):
        """The average of a partition is that of its largest part."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        for part, average in (("A", 0.05), ("B", 0.02), ("B", 0.02)):
            sites[part].reserve(charge(gamma=0.1, dataset=part, average_gamma=average))
        budget.reserve(charge(gamma=0.1, dataset="all", average_gamma=0.03))
        assert budget.average_gamma == pytest.approx(0.08)


class TestPartsAndEverybody:
    """Answers about parts and about everybody add up only if they are about one distribution of pairs."""

    def test_parts_with_their_own_p(self):
        """Two sites with a P each are two distributions: the larger amounts hold for each of them."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        sites["A"].reserve(charge(0.2, gamma=0.1, dataset="A"))
        sites["B"].reserve(charge(0.1, gamma=0.2, dataset="B", declared=("P1:other",)))
        assert budget.verify() == (0.2, 0, 0.2)
        for request in (charge(dataset="all"), charge(dataset="all", declared=("P1:other",)), charge()):
            with pytest.raises(SettingsError, match=r"under one P.*another budget"):
                budget.reserve(request)
        with pytest.raises(SettingsError, match="under one P"):
            budget.partition("year", parts=["1"])["1"].reserve(charge(dataset="1"))
        assert len(budget.history()) == 2

    @pytest.mark.parametrize("dataset", ["all", ""])
    def test_a_part_under_another_p_than_everybody(self, dataset):
        """Shares of failing pairs under two P cannot be added: their sum would be no promise."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        budget.reserve(charge(dataset=dataset))
        with pytest.raises(SettingsError, match="under one P"):
            sites["A"].reserve(charge(dataset="A", declared=("P1:other",)))
        sites["A"].reserve(charge(dataset="A"))
        with pytest.raises(SettingsError, match="under one P"):
            sites["B"].reserve(charge(dataset="B", declared=("P1:other",)))
        with pytest.raises(SettingsError, match="under one P"):
            budget.reserve(charge(dataset="more", declared=("P1:other",)))
        assert len(budget.history()) == 2 and budget.verify().epsilon == 0.2

    @pytest.mark.parametrize("column", ["site", " Site"])
    @pytest.mark.parametrize("first", ["part", "everybody"])
    def test_a_partition_by_a_column(self, column, first):
        """Under P a record may change its site; in a part it cannot."""
        budget = new_budget()
        law = samplers.table({"x": UNIT, column: samplers.categorical(["A", "B"])}, frame="dict")
        part = budget.partition("site", parts=["A", "B"])["A"]
        f = made(sampler=law["x"])
        places = [(part, "A"), (budget, "all")][:: 1 if first == "part" else -1]
        f.replace(budget=places[0][0])(seal(DATA, name=places[0][1]))
        with pytest.raises(SettingsError, match="has the column"):
            f.replace(budget=places[1][0])(seal(DATA, name=places[1][1]))
        assert len(budget.history()) == 1
        made(sampler=law["x"], budget=new_budget())(seal(DATA, name="all"))

    def test_the_counter_example(self):
        """A function may fail on 3% of independent pairs, and on most of those that stay in their site.

        With 2,000 pairs each and true shares of 0.03 and 0.7, the test fails by chance with probability 1e-9.
        """
        rng = np.random.default_rng(9)
        n = 1000

        def unstable(x, site):
            """Return a mean, unless exactly 100 people are in site B."""
            return x.sum() % 1 if site.sum() == 100 else x.mean()

        def gap(fixed):
            x, site = rng.random(n), rng.random(n) < 0.1
            if fixed:
                site = np.arange(n) < 100
            x2, site2 = x.copy(), site.copy()
            at = rng.integers(n)
            x2[at] = rng.random()
            site2[at] = site[at] if fixed else rng.random() < 0.1
            return abs(unstable(x, site) - unstable(x2, site2))

        independent, within = (np.array([gap(fixed) for _ in range(2000)]) for fixed in (False, True))
        estimate = np.quantile(np.array([gap(False) for _ in range(2000)]), 0.95)
        assert np.mean(independent > estimate) < 0.1
        assert np.mean(within > estimate) > 0.5  # beyond the promise of the same estimate
        law = samplers.table(x=UNIT, site=samplers.categorical(["A", "B"]), frame="dict")
        one = samplers.table(x=UNIT, frame="dict")
        data = {"x": DATA, "site": np.array(["A"] * 40 + ["B"] * 10)}
        everybody = made(lambda d: float(d["x"].mean()), sampler=law)
        for place in (law, one):  # P of the site, with and without the column
            budget = new_budget()
            sites = budget.partition("site", parts=["A", "B"])
            everybody.replace(budget=budget)(seal(data, name="all"))
            part = made(lambda d: float(d["x"].mean()), sampler=place, budget=sites["B"])
            some = {name: values[40:] for name, values in data.items() if place is law or name == "x"}
            with pytest.raises(SettingsError, match="another budget"):
                part(seal(some, name="B"))
            assert budget.verify().epsilon == 0.3

    @for_each(
        "form",
        [
            "fields",
            "nested fields",
            "records",
            "dict",
            "pandas index",
            "pandas levels",
            "index levels",
            "pair",
        ],
    )
    def test_a_partition_by_a_column_of_any_container(self, form):
        """A site in a field, an index or a level of P would be overlooked, and a wrong total promised."""

        def drawn(n, rng):
            x, site = rng.random(n), rng.integers(2, size=n)
            if form == "fields":
                return np.rec.fromarrays([x, site], names="x,site").view(np.ndarray)
            if form == "nested fields":
                made = np.zeros(n, dtype=[("x", float), ("of", [("site", int)])])
                made["x"] = x
                return made
            if form == "records":
                return [{"x": a, "site": b} for a, b in zip(x.tolist(), site.tolist(), strict=True)]
            if form == "dict":
                return {"x": x, "site": site}
            pandas = pytest.importorskip("pandas")
            if form == "pandas index":
                return pandas.DataFrame({"x": x}, index=pandas.Index(site.astype(float), name="site"))
            if form == "index levels":
                return pandas.Series(
                    x, index=pandas.MultiIndex.from_arrays([site, site], names=["of", "site"])
                )
            if form == "pandas levels":
                return pandas.DataFrame({("a", "x"): x, ("a", "Site"): site})
            return x, pandas.DataFrame({"site": site})

        law = samplers.from_function(drawn)
        names = columns_of(law, drawn(2, np.random.default_rng(1)))
        budget = new_budget()
        budget.reserve(charge(dataset="all", columns=names))
        with pytest.raises(SettingsError, match=r"has the column '[sS]ite'"):
            budget.partition("site", parts=["A", "B"])["B"].reserve(charge(dataset="B", columns=names))

    def test_a_partition_by_a_field_through_a_private_function(self):
        """The same counter-example with a structured array would be answered, and added up."""

        def drawn(n, rng):
            made = np.zeros(n, dtype=[("x", float), ("site", "i4")])
            made["x"], made["site"] = rng.random(n), rng.random(n) < 0.1
            return made

        data = drawn(50, np.random.default_rng(1))
        budget = new_budget()
        f = made(lambda d: float(d["x"].mean()), sampler=samplers.from_function(drawn))
        f.replace(budget=budget)(seal(data, name="all"))
        with pytest.raises(SettingsError, match="has the column 'site'"):
            f.replace(budget=budget.partition("site", parts=["A", "B"])["B"])(seal(data[:9], name="B"))
        assert len(budget.history()) == 1

    @for_each("column", ["site_id", "site id", "SITE", "Site-ID", "siteId", "sites", "ｓite"])
    def test_a_partition_by_a_column_of_similar_name(self, column):
        """The same column, spelled a little differently, would be taken for something else."""
        budget = new_budget()
        budget.reserve(charge(dataset="all", columns=("x", column)))
        for name in ("site", "site_id"):
            part = budget.partition(name, parts=["A", "B"])["B"]
            with pytest.raises(SettingsError, match="has the column"):
                part.reserve(charge(dataset="B", columns=("x", column)))
        budget.partition("website", parts=["1"])["1"].reserve(charge(dataset="B", columns=("x", column)))

    @pytest.mark.parametrize("missing", [False, True])
    def test_a_partition_by_the_values_of_a_column(self, missing):
        """A column with another name than the partition, whose values are its parts, would be overlooked."""
        site = samplers.categorical(["A", "B"])
        law = samplers.table(x=UNIT, site=samplers.with_missing(site, 0.1) if missing else site, frame="dict")
        f = made(sampler=law["x"])
        for parts, fits in ((["A", "B"], False), (["A site", "B site"], True)):
            budget = new_budget()
            f.replace(budget=budget)(seal(DATA, name="all"))
            place = budget.partition("centre", parts=parts)[parts[1]]
            if fits:
                f.replace(budget=place)(seal(DATA, name="B"))
            else:
                with pytest.raises(SettingsError, match="values B, which are parts of 'centre'"):
                    f.replace(budget=place)(seal(DATA, name="B"))


class TestDamage:
    """Rows that this library cannot have written are found when a ledger is read."""

    AMOUNTS = (
        "-1/10",
        "-0",
        "nan",
        "inf",
        "1/0",
        "0.1",
        "2/4",
        "01",
        "1e-1",
        "",
        " 1",
        "1\n",
        "٣",
        "x",
        "1" * 5000,
    )

    @pytest.fixture
    def budget(self, path):
        """Return a budget with charges of every kind."""
        pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
        budget = Budget("b", epsilon=2, delta=1e-3, gamma=2, ledger=path, composition="tight")
        facts = {"dataset": "d", "key": "k", "people": ("p",)}
        budget.reserve(charge(0.2, gamma=0.1, looks=((0.1, 0.1),), average_gamma=0.05, **facts))
        budget.reserve(charge(0.2, gamma=0.12, looks=((0.1, 0.15), (0.11, 0.12)), **facts))
        budget.reserve(charge(0.2, 1e-6, kind=Gaussian().composition_kind(0.2, 1e-6), mechanism="Gaussian"))
        budget.reserve(charge(0.1, strength="plain", declared=(), described="", dataset="e"))
        budget.verify()
        return budget

    def damaged(self, budget, statement, *values):
        with budget.ledger.database.transaction() as run:
            run(statement, *values)

    @pytest.mark.parametrize(
        "column",
        [
            *(f"budgets.{name}" for name in ("epsilon", "delta", "gamma")),
            *(f"spent.{name}" for name in ("epsilon", "delta", "gamma", "average")),
            *(f"charges.{name}" for name in ("epsilon", "delta", "gamma", "charged", "average_charged")),
            *("charges.average", "gammas.gamma", "gammas.average"),
        ],
    )
    def test_strings_that_are_no_amounts(self, budget, column):
        """A negative amount, or one that is read as less than it was, would let somebody spend more."""
        table, name = column.split(".")
        with budget.ledger.database.transaction() as run:
            rows = run(f"SELECT rowid, {name} FROM {table}")
        for amount in self.AMOUNTS:
            self.damaged(budget, f"UPDATE {table} SET {name} = ?", amount)
            with pytest.raises(LedgerError):
                budget.verify()
            if table in ("budgets", "spent"):
                with pytest.raises(LedgerError):
                    budget.reserve(charge(dataset="d", key="k", people=("p",)))
        for row, value in rows:
            self.damaged(budget, f"UPDATE {table} SET {name} = ? WHERE rowid = ?", value, row)
        budget.verify()

    def test_a_negative_charge_with_a_matching_total(self, budget):
        """Somebody who may write to the database would give everybody ε back, and verify() would agree."""
        for statement in (
            (
                "INSERT INTO charges SELECT budget, 5, at, function, '', '', n, mechanism, 'dp -0.1 0.0', "
                "'-1/10', delta, '0', '0', partition, part, who, strength, declared, described, '[]', "
                "neighbours, unit, purpose, '[]', '0', '0' FROM charges WHERE number = 1"
            ),
            "UPDATE budgets SET charges = 5",
            "UPDATE spent SET epsilon = '3/5'",
        ):
            self.damaged(budget, statement)
        with pytest.raises(LedgerError):
            budget.verify()

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE budgets SET epsilon = '3'",
            "UPDATE budgets SET gamma = '3'",
            "UPDATE budgets SET delta = '1/10'",
            "UPDATE budgets SET composition = 'sum'",
        ],
    )
    def test_a_cap_that_is_raised_while_the_program_runs(self, budget, statement):
        """Somebody who raises a cap in the database could spend more."""
        self.damaged(budget, statement)
        for act in (budget.verify, lambda: budget.reserve(charge()), lambda: budget.afford(charge())):
            with pytest.raises(LedgerError, match=r"caps|was opened with"):
                act()

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE charges SET kind = 'dp 0.1 0.0' WHERE number = 1",
            "UPDATE charges SET kind = 'gaussian 1000.0' WHERE number = 3",
            "UPDATE charges SET kind = 'gaussian' WHERE number = 3",
            "UPDATE charges SET kind = 'gaussian nan' WHERE number = 3",
            "UPDATE charges SET kind = 'free 0' WHERE number = 1",
            "UPDATE charges SET looks = '[]' WHERE number = 2",
            "UPDATE charges SET looks = '[[0.1, NaN]]' WHERE number = 2",
            "UPDATE charges SET looks = '' WHERE number = 2",
            "UPDATE charges SET strength = 'plain' WHERE number = 1",
            "UPDATE charges SET strength = 'sampled' WHERE number = 4",
            "UPDATE charges SET strength = 'strong' WHERE number = 1",
            "UPDATE charges SET purpose = 'declaration' WHERE number = 1",
            "UPDATE charges SET purpose = 'gift' WHERE number = 1",
            "UPDATE charges SET neighbours = 'add or remove' WHERE number = 1",
            "UPDATE charges SET unit = 'household' WHERE number = 1",
            "UPDATE charges SET declared = '[\"P1:x\"]' WHERE number = 1",
            "UPDATE charges SET declared = '[]' WHERE number = 1",
            "UPDATE charges SET declared = '{' WHERE number = 1",
            "UPDATE charges SET people = '[\"q\"]' WHERE number = 1",
            "UPDATE charges SET people = '[1]' WHERE number = 1",
            "UPDATE charges SET described = 'Q' WHERE number = 1",
            "UPDATE charges SET dataset = 'other' WHERE number = 2",
            "UPDATE charges SET key = 'other' WHERE number = 2",
            "UPDATE charges SET part = 'A' WHERE number = 1",
            "UPDATE charges SET partition = 'site', part = 'A' WHERE number = 1",
            "UPDATE charges SET at = 'yesterday' WHERE number = 1",
            "UPDATE charges SET n = -5 WHERE number = 1",
            "UPDATE charges SET n = 'many' WHERE number = 1",
            "UPDATE charges SET number = -1 WHERE number = 1",
            "UPDATE spent SET counts = '[]'",
            "UPDATE spent SET counts = '{\"dp 0.2 0.0\": -1}'",
            "UPDATE spent SET counts = '{\"dp 0.2 0.0\": 1.5}'",
            "UPDATE spent SET part = 'A'",
            "INSERT INTO spent VALUES ('b', 'x', 'y', '1', '0', '0', '{}', '0')",
            "UPDATE people SET declared = '[\"P1:x\"]' WHERE name = 'p'",
            "UPDATE people SET declared = '' WHERE name = 'p'",
            "UPDATE people SET described = 'Q' WHERE name = 'p'",
            "UPDATE people SET partition = 'site' WHERE name = 'p'",
            "DELETE FROM people WHERE name = 'p'",
            "DELETE FROM people WHERE name = ''",
            "INSERT INTO people VALUES ('b', 'q', '', '', '', '')",
            "UPDATE gammas SET key = 'other'",
            "UPDATE gammas SET gamma = '0'",
            "INSERT INTO gammas VALUES ('b', 'x', 'y', '1', '1')",
            "UPDATE budgets SET charges = 3",
            "UPDATE budgets SET migrated = 9",
            "UPDATE budgets SET migrated = 1",
            "UPDATE budgets SET migrated = 4",
            "UPDATE budgets SET created = 'long ago'",
            "UPDATE budgets SET migrated = -1",
            "UPDATE budgets SET unit = 'household'",
            "UPDATE budgets SET neighbours = 'add or remove'",
        ],
    )
    def test_every_column_is_compared(self, budget, statement):
        """If one column were not compared, editing it could hide charges, or make one person count as two."""
        self.damaged(budget, statement)
        with pytest.raises(LedgerError):
            budget.verify()

    def test_other_kinds_of_neighbours_do_not_add_up(self, budget):
        """A total has one kind of neighbour and one unit."""
        for change in ({"neighbours": "add or remove"}, {"unit": "patient_id"}):
            with pytest.raises(SettingsError, match="one kind of neighbour"):
                budget.reserve(charge(**change))

    @for_each("amount", [-0.1, float("nan"), float("inf"), -float("inf")])
    @for_each("symbol", ["epsilon", "delta", "gamma", "average_gamma"])
    def test_impossible_amounts(self, symbol, amount):
        """A negative charge would give ε back."""
        with pytest.raises(SettingsError, match="not below zero"):
            charge(**{"gamma": 1.0, symbol: amount, "kind": "dp 0.1 0.0"})

    def test_charges_of_nothing(self):
        """Declarations cost nothing, and must not disturb tight composition."""
        pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
        budget = new_budget(epsilon=0.3, delta=1e-5, composition="tight")
        budget.reserve(charge(0.0))
        for _ in range(3):
            budget.reserve(charge(0.1))
        with pytest.raises(BudgetExceeded):
            budget.reserve(charge(0.1))
        budget.reserve(charge(0.0, purpose="check"))
        assert budget.verify().epsilon == pytest.approx(0.3) and len(budget.history()) == 5


class TestPlaces:
    def test_set_but_empty(self, monkeypatch):
        """If the variable were empty by mistake, every process would have the entire budget to itself."""
        for empty in ("", "  "):
            monkeypatch.setenv("PRIVATIZE_LEDGER", empty)
            with pytest.raises(SettingsError, match="PRIVATIZE_LEDGER is empty"):
                Budget(new_name(), epsilon=1, gamma=1)
            with pytest.raises(SettingsError, match="PRIVATIZE_LEDGER is empty"):
                Budget.begun("b")
            Budget(new_name(), epsilon=1, gamma=1, ledger="memory")
            with pytest.raises(SettingsError, match=r"ledger=\.\.\.\) is empty"):
                Budget(new_name(), epsilon=1, gamma=1, ledger=empty)

    def test_in_memory_by_default(self, monkeypatch):
        """Two notebooks that name the same budget would each have all of it, without a warning."""
        monkeypatch.delenv("PRIVATIZE_LEDGER", raising=False)
        with pytest.warns(UnsharedBudgetWarning, match='ledger="memory"') as caught:
            Budget(new_name(), epsilon=1, gamma=1)
        assert caught[0].filename == __file__
        monkeypatch.setenv("PRIVATIZE_LEDGER", "memory")
        Budget(new_name(), epsilon=1, gamma=1)

    @pytest.mark.parametrize("place", [3, b"ledger.db", "a\0b", "\ud800", "postgresql://a:hunter2@h/\0"])
    def test_impossible_places(self, place):
        """An impossible place is refused with a message of ours that does not show its password."""
        with pytest.raises(SettingsError) as caught:
            Budget(new_name(), epsilon=1, gamma=1, ledger=place)
        assert "hunter2" not in str(caught.value)


STRANGE = ["\ud800", "a\0b", "x" * 300, "", None, 3, b"a"]


class TestNames:
    """Every string that reaches the database can be stored there, or is refused with the reason."""

    @for_each("name", STRANGE)
    def test_names_that_no_database_can_store(self, name):
        """A user would get a UnicodeEncodeError that says neither what is wrong nor what to do."""
        budget = new_budget()
        for act in (
            lambda: Budget(name, epsilon=1, gamma=1, ledger="memory"),
            lambda: seal(DATA, name=name),
            lambda: package.private_source(name=name),
            lambda: budget.partition("site", parts=["A", name]),
            lambda: budget.partition(name, parts=["A"]),
            lambda: budget.declare_again(name, UNIT),
        ):
            with pytest.raises(SettingsError) as caught:
                act()
            str(caught.value).encode()
            assert len(str(caught.value)) < 500
        for act in (lambda: seal(DATA, name="a", version=name or 3),):
            with pytest.raises(SettingsError):
                act()

    @pytest.mark.parametrize(
        "name", ["zwei\nZeilen", "名前", "a'b\"c", "'a' version '1'", "\x1b[31m", "💥" * 60]
    )
    def test_unusual_names(self, path, name):
        """Names with line breaks, quotes or symbols are accepted, not confused, and shown escaped."""
        budget = Budget(name, epsilon=1, gamma=9, ledger=path)
        part = budget.partition(name, parts=[name])[name]
        made(budget=part, epsilon=0.1)(seal(DATA, name=name, version=name))
        assert budget.verify().epsilon == 0.1 and budget.history()["part"][0] == name
        with pytest.raises(BudgetExceeded) as caught:
            made(budget=part, epsilon=5)(seal(DATA, name=name))
        assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)

    @pytest.mark.parametrize("text", ["\ud800", "a\0b"])
    def test_names_of_functions(self, text, path):
        """A function's name is only shown, so it is stored with escapes and does not prevent an answer."""
        budget = Budget("b", epsilon=1, gamma=9, ledger=path)

        def f(x):
            return float(x.mean())

        f.__name__ = text
        made(f, budget=budget)(DATA)
        assert budget.history()["function"][0] in ("\\ud800", "a\\x00b")
        for field in ("key", "dataset", "partition", "part"):
            with pytest.raises(SettingsError, match="cannot be written"):
                budget.reserve(charge(**{"dataset": "d", field: text}))
        budget.reserve(charge(who=text, mechanism=text, described=text))
        assert budget.verify().epsilon == pytest.approx(0.4)


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_a_p_that_cannot_be_compared_is_declared_again():
    """A service whose P cannot be compared would be refused answers after a restart."""
    budget = new_budget(epsilon=9, gamma=9)
    people = seal(DATA, name="people")
    first = made(sampler=Opaque(1), budget=budget)
    first(people)
    law = Opaque(1)  # as after a restart
    again = first.replace(sampler=law)
    with pytest.raises(SettingsError, match=r"budget\.declare_again\('people', P\)"):
        again(people)
    budget.declare_again("people", again.settings.sampler)
    again(people)
    assert list(budget.history()["purpose"]) == ["answer", "declaration", "answer"]
    with pytest.raises(SettingsError, match="one P"):
        first(people)
    assert budget.verify().epsilon == 0.6


class Cheap(Laplace):
    """A mechanism of the user's own that claims to cost almost nothing."""

    def composition_kind(self, epsilon, delta):
        return "dp 1e-06 0.0"


def test_a_mechanism_of_the_users_own_does_not_set_its_price():
    """A user's class that is derived from one of ours could spend a tight budget many times over."""
    pytest.importorskip("dp_accounting")
    budget = Budget("cheap", epsilon=3, delta=1e-4, gamma=90, ledger="memory", composition="tight")
    private = privatize(
        epsilon=1,
        gamma=0.2,
        sampler=samplers.uniform(0, 1),
        mechanism=Cheap(),
        budget=budget,
        workers="inline",
        store=None,
    )(np.mean)
    answers = []
    with contextlib.suppress(BudgetExceeded):
        while len(answers) < 20:
            answers.append(private(np.full(80, 0.5)))
    assert len(answers) < 10 and budget.verify().epsilon > 2
