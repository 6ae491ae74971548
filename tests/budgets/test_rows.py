"""Rows of a ledger that this library cannot have written are found."""

import sqlite3

import numpy as np
import pytest
from hypothesis import strategies as st

from privatize import Budget, Gaussian, privatize, samplers
from privatize.errors import (
    BudgetExceeded,
    LedgerError,
    SettingsError,
)
from tests.budgets.charged import charge, new_budget
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
DATA = np.linspace(0.1, 0.9, 50)


def mean(x):
    return float(x.mean())


def made(raw=mean, **changes):
    """Return a private function that is calibrated in this process only."""
    return privatize(**({"epsilon": 0.3, "gamma": 0.2, "sampler": UNIT, "store": None} | changes))(raw)


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


SMALL = st.builds(
    lambda digits, power: float(f"{digits}e-{power}"), st.integers(1, 10**17), st.integers(18, 60)
)
AMOUNTS = st.one_of(st.sampled_from([0.01, 0.1, 0.25, 0.3]), st.floats(1e-15, 0.6), SMALL)


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
