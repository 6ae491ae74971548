"""Keys of people with several rows in a ledger: made once, shown nowhere; rows and persons are not mixed."""

import threading

import numpy as np
import pandas as pd
import pytest

from privatize import Blocks, Budget, privatize, samplers, seal
from privatize.budgets.units import key_in, person_by
from privatize.cli.parser import main
from privatize.errors import BudgetExceeded, LedgerError, SettingsError

s = samplers
P = s.people(s.table(cost=s.uniform(0, 10)), unit="id", rows=s.integers(1, 3))
ROWS = pd.DataFrame({"id": np.repeat(np.arange(60), 2), "cost": np.linspace(0, 10, 120)})


def opened(path, name="b", **more):
    """Open a budget in a file."""
    return Budget(name, **({"epsilon": 100, "gamma": 0.9} | more), ledger=path)


def mean(**more):
    """Return a private mean over rows of persons."""
    options = {"epsilon": 1, "gamma": 0.2, "sampler": P, "seed": 1} | more
    return privatize(**options)(lambda d: d["cost"].mean())


def test_a_key_is_made_once_and_stays(tmp_path):
    """Another order of the people fails on other pairs, so gamma would have to be charged again."""
    budget = opened(tmp_path / "ledger.db")
    first = key_in(budget.ledger, "'visits'")
    assert len(first) == 32 and key_in(budget.ledger, "'visits'") == first
    again = opened(tmp_path / "ledger.db")
    assert key_in(again.ledger, "'visits'") == first
    assert key_in(again.ledger, "'others'") != first


def test_two_at_once_agree(tmp_path):
    """Two processes that begin together would use two orders."""
    budgets = [opened(tmp_path / "ledger.db", f"b{at}") for at in range(4)]
    found, start = [], threading.Barrier(4)

    def make(budget):
        start.wait()
        found.append(key_in(budget.ledger, "'visits'"))

    threads = [threading.Thread(target=make, args=(budget,)) for budget in budgets]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 4 and len(set(found)) == 1


def test_a_damaged_key_is_refused(tmp_path):
    """An empty key would make the order public."""
    budget = opened(tmp_path / "ledger.db")
    key_in(budget.ledger, "'visits'")
    for change in ("UPDATE unit_keys SET secret = ''", "UPDATE unit_keys SET secret = 'xyz'"):
        with budget.ledger.transaction() as run:
            run(change)
        with pytest.raises(LedgerError, match="damaged"):
            key_in(budget.ledger, "'visits'")


def test_gamma_is_charged_once_for_an_order(tmp_path):
    """The same people in the same order would cost gamma at every answer, or another order nothing."""
    budget = opened(tmp_path / "ledger.db")
    f = mean()
    f(seal(ROWS, name="visits", sampler=P, budget=budget))
    f(seal(ROWS, name="visits", unit="id", budget=budget))  # another object: the key is in the ledger
    assert budget.spent.gamma == 0.2
    with budget.ledger.transaction() as run:
        run("UPDATE unit_keys SET secret = ?", bytes(32).hex())
    f(seal(ROWS, name="visits", sampler=P, budget=budget))
    assert budget.spent.gamma == 0.4
    assert budget.verify() == budget.spent
    assert set(budget.history()["unit"]) == {person_by("id")}


def of_rows():
    """Return a private mean over rows, each of which is another person."""
    return privatize(epsilon=1, mechanism=Blocks(0.0, 10.0), unit=None)(lambda d: d["cost"].mean())


def test_rows_and_persons_are_not_mixed(tmp_path):
    """A total of both would promise nothing to a person with several rows."""
    one, other = (opened(tmp_path / f"{name}.db", name) for name in "ab")
    with other:  # both ledgers pay, and both must know
        mean()(seal(ROWS, name="visits", sampler=P, budget=one))
    for budget in (one, other):
        with pytest.raises(SettingsError, match="one kind of neighbour"):
            of_rows()(seal(ROWS, name="visits", version="2", unit=None, budget=budget))
    of_rows()(seal(ROWS, name="others", unit=None, budget=other))
    with other, pytest.raises(SettingsError, match="every row was another person"):
        mean()(seal(ROWS, name="others", sampler=P, budget=one))
    household = ROWS.rename(columns={"id": "household"})
    law = s.people(s.table(cost=s.uniform(0, 10)), unit="household", rows=s.integers(1, 3))
    with pytest.raises(SettingsError, match="what a person is"):
        mean(sampler=law)(seal(household, name="visits", sampler=law, budget=one))


def test_unsealed_rows_and_persons_are_not_mixed(tmp_path):
    """Data without a name may be about the same people."""
    for first, second in ((mean(), of_rows()), (of_rows(), mean())):
        budget = opened(tmp_path / "ledger.db", repr(first))
        with budget:
            first(ROWS)
            with pytest.raises(SettingsError, match="total"):
                second(ROWS)
        assert len(budget.history()) == 1


def test_a_mixed_total_is_found(tmp_path):
    """An earlier version of the library does not know persons, and would add up both."""
    budget = opened(tmp_path / "ledger.db")
    for _ in range(2):
        mean()(seal(ROWS, name="visits", sampler=P, budget=budget))
    assert budget.verify() == budget.spent
    with budget.ledger.transaction() as run:
        run("UPDATE charges SET unit = 'record' WHERE number = 2")
    with pytest.raises(LedgerError, match="do not add up"):
        budget.verify()


def test_a_refused_answer_decides_nothing(tmp_path):
    """A misspelt unit that nobody has paid for would be there for ever."""
    budget = opened(tmp_path / "ledger.db", epsilon=0.5)
    blocks = privatize(epsilon=1, mechanism=Blocks(0.0, 10.0), unit="cost")(len)
    with pytest.raises(BudgetExceeded):
        blocks(seal(ROWS, name="visits", unit="cost", budget=budget))
    mean(epsilon=0.1)(seal(ROWS, name="visits", sampler=P, budget=budget))


def test_a_part_of_a_budget_is_refused(tmp_path):
    """One person may have rows in several parts, and only the largest part counts."""
    budget = opened(tmp_path / "ledger.db")
    part = budget.partition("site", ["A", "B"])["A"]
    with part, pytest.raises(SettingsError, match="rows in several parts"):
        mean()(seal(ROWS, name="visits", sampler=P))
    with pytest.raises(SettingsError, match="rows in several parts"):
        mean(budget=part)(ROWS)


def test_no_command_shows_a_key(tmp_path, capsys):
    """Whoever sees the history would know the order."""
    place = tmp_path / "ledger.db"
    budget = opened(place)
    mean()(seal(ROWS, name="visits", sampler=P, budget=budget))
    secret = key_in(budget.ledger, "'visits'").hex()
    for command in (["show"], ["show", "--json"], ["export", "--json"], ["verify"]):
        main(["ledger", command[0], "--ledger", str(place), *command[1:]])
        printed = capsys.readouterr()
        assert secret not in printed.out + printed.err
    assert secret not in budget.history().to_json() + repr(budget) + budget._repr_html_()
