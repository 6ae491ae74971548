"""Earlier ledgers open with all that was spent; versions that do not know a layout do not write to it."""

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from privatize import Budget, learn, privatize, samplers, seal
from privatize.budgets.charges import Charge
from privatize.budgets.ledger import Ledger, open_ledger
from privatize.budgets.ledger_layout import VERSION, names_in
from privatize.errors import LedgerError, SettingsError
from tests.budgets.together import go, started

OLD = (Path(__file__).parents[1] / "fixtures" / "ledger_layout_1.sql").read_text(encoding="utf-8")
CAPS = {"survey": {"epsilon": 2, "delta": 1e-5, "gamma": 3}, "empty": {"epsilon": 1, "gamma": 0.5}}
DATA = np.linspace(0.1, 0.9, 50)
UNIT, WIDE = samplers.uniform(0, 1), samplers.uniform(0, 2)
PROMISE = {"epsilon": 0.1, "gamma": 0.2, "store": None}
# The exact statements of the version before layouts had numbers.
OLD_WRITES = (
    (
        "INSERT INTO budgets VALUES ('new', '1', '0', '1', 'sum', 0, '2026-01-01T00:00:00Z') "
        "ON CONFLICT (name) DO NOTHING"
    ),
    (
        "INSERT INTO charges VALUES ('survey', 6, '2026-01-01T00:00:00Z', 'f', '', '', 5, 'Laplace', "
        "'dp 0.1 0.0', '1/10', '0', '1/5', '1/5', '', '', '')"
    ),
    "INSERT INTO spent VALUES ('survey', 'x', 'y', '1', '0', '0', '{}')",
)


def mean(x):
    return float(x.mean())


def pairs(n, rng):
    return rng.random(n), rng.random(n)


def open_budget(name, path, **caps):
    """Open a budget of the fixture."""
    return Budget(name, **(CAPS.get(name, {"epsilon": 2, "gamma": 3}) | caps), ledger=path)


def made(budget, **changes):
    """Return a private mean."""
    return privatize(**(PROMISE | {"sampler": UNIT, "budget": budget} | changes))(mean)


def changed(path, *statements):
    """Edit a ledger without the library."""
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.fixture
def path(tmp_path):
    """Return the path of a ledger of this test's own."""
    open_ledger.cache_clear()
    yield tmp_path / "ledger.db"
    open_ledger.cache_clear()


@pytest.fixture
def old(path):
    """Write a ledger as the version before layouts had numbers wrote it."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD)
    return path


class TestEarlierLayout:
    def test_everything_that_was_spent_is_still_spent(self, old):
        """A team that updates would get its entire budget back, or have a ledger that does not open."""
        expected = {
            "survey": (0.5, 1e-6, 0.9400561552819111),
            "mixed": (0.3, 0, 0.6402554199337912),
            "aligned": (0.1, 0, 0.2),
            "parts": (0.2, 0, 0.4402554199337912),
            "empty": (0, 0, 0),
        }
        for name, spent in expected.items():
            budget = open_budget(name, old)
            assert budget.verify() == budget.spent == pytest.approx(spent, rel=1e-15)
            assert budget.average_gamma == pytest.approx(spent[2])
        history = open_budget("survey", old).history()
        assert list(history["function"]) == ["mean"] * 5
        assert set(history["strength"]) == {"sampled"} and set(history["purpose"]) == {"answer"}
        assert set(history["neighbours"]) == {"replace"} and set(history["unit"]) == {"record"}
        assert history["people"][0] == ["'people'"] and history["people"][2] == []

    def test_gamma_is_still_charged_once(self, old):
        """An estimate that was paid for on this data would be paid for again."""
        budget = open_budget("survey", old)
        key = budget.history()["key"][0]
        facts = {"function": "f", "n": 50, "mechanism": "Laplace", "kind": "dp 0.1 0.0", "epsilon": 0.1}
        facts |= {"people": ("'people'",), "declared": ("P1:x",), "described": "uniform(0, 1)"}
        before = budget.spent.gamma
        budget.reserve(
            Charge(dataset="'people' version '1'", key=key, delta=0.0, gamma=0.5, lossless=True, **facts)
        )
        assert budget.verify().gamma == before

    def test_a_p_is_recognized_by_a_complete_description(self, old):
        """A team that updates would be refused by an error that shows the same P twice."""
        budget = open_budget("survey", old)
        made(budget)(seal(DATA, name="people", version="3"))
        rows = budget.history()
        assert list(rows["purpose"])[5:] == ["declaration", "answer"]
        assert rows["epsilon"][5] == rows["charged"][5] == 0 and rows["declared"][5][0].startswith("P1:")
        assert rows["described"][5] == "uniform(0, 1)"
        assert budget.verify().epsilon == 0.6
        made(budget)(seal(DATA, name="people"))
        assert list(budget.history()["purpose"])[7:] == ["answer"]  # once
        with pytest.raises(SettingsError, match="one P"):
            made(budget, sampler=WIDE)(seal(DATA, name="people"))

    def test_another_p_is_not_recognized(self, old):
        """The old name of P would be accepted for any other P."""
        budget = open_budget("survey", old)
        with pytest.raises(SettingsError, match=r"uniform\(0, 1\).*uniform\(0, 2\)"):
            made(budget, sampler=WIDE)(seal(DATA, name="people"))
        assert len(budget.history()) == 5

    def test_a_p_without_parameters_is_declared_again(self, old):
        """Two functions of one name have one description: only the user knows whether P is the same."""
        budget = open_budget("aligned", old, who=True)
        law = samplers.from_function(pairs)
        f = privatize(**PROMISE, sampler=law, data=("x", "y"), budget=budget)(
            lambda x, y: float((x * y).mean())
        )
        sealed = seal(DATA, name="X"), seal(DATA, name="y")
        with pytest.raises(SettingsError, match=r"budget\.declare_again\('X', P\)"):
            f(*sealed)
        assert len(budget.history()) == 1
        budget.declare_again("X", law)  # y was recorded under the same name of P
        f(*sealed)
        rows = budget.history()
        assert list(rows["purpose"]) == ["answer", "declaration", "answer"]
        assert rows["people"][1] == ["'X'", "'y'"] and "@" in rows["who"][1]
        assert budget.verify().epsilon == 0.2
        for people in "Xy":
            with pytest.raises(SettingsError, match="nothing to declare again"):
                budget.declare_again(people, UNIT)
        for people in ("nobody", ""):
            with pytest.raises(SettingsError):
                budget.declare_again(people, UNIT)
        assert len(budget.history()) == 3 and budget.verify().epsilon == 0.2

    def test_budgets_that_break_the_present_rules_open_but_cannot_be_spent(self, old):
        """Totals that are no promise would go on growing, or the history could not be read any more."""
        budget = open_budget("mixed", old)
        assert "cannot be used" not in repr(budget)
        for data, place in (("people", budget), ("new", budget), ("A", budget.partition("site", ["A"])["A"])):
            with pytest.raises(SettingsError, match="another budget"):
                made(place)(seal(DATA, name=data))
        assert budget.verify().epsilon == 0.3 and len(budget.history()) == 4

    def test_parts_under_one_p_can_still_be_spent(self, old):
        """Answers about parts and about everybody under one P still add up after an update."""
        budget = open_budget("parts", old)
        made(budget.partition("site", ["A", "B"])["B"])(seal(DATA, name="B"))
        made(budget)(seal(DATA, name="all"))
        assert budget.verify().epsilon == pytest.approx(0.4)

    def test_the_first_versions_wrote_decimals(self, old):
        """A ledger of the first versions would count as damaged."""
        changed(
            old,
            "UPDATE budgets SET delta = '0.00001' WHERE name = 'survey'",
            "UPDATE charges SET epsilon = '0.10', gamma = '0.2', charged = '2E-1' WHERE number = 3",
            "UPDATE spent SET epsilon = '0.5' WHERE budget = 'survey'",
        )
        assert open_budget("survey", old).verify().epsilon == 0.5

    def test_damage_is_still_found_after_a_migration(self, old):
        """Converting a ledger to a new layout would hide that it was edited."""
        changed(old, "UPDATE spent SET epsilon = '1/10' WHERE budget = 'survey'")
        changed(old, "UPDATE charges SET charged = '-1/5' WHERE budget = 'aligned'")
        changed(old, "DELETE FROM datasets WHERE budget = 'mixed'")
        for name in ("survey", "aligned", "mixed"):
            with pytest.raises(LedgerError):
                open_budget(name, old).verify()
        open_budget("parts", old).verify()

    def test_a_migrated_ledger_has_the_layout_of_a_new_one(self, old, tmp_path):
        """A difference between the two would show only in production."""
        open_budget("survey", old)
        Budget("b", epsilon=1, gamma=1, ledger=tmp_path / "new.db")

        def layout(path):
            with contextlib.closing(sqlite3.connect(path)) as connection:
                tables = connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
                return {
                    name: [row[1:3] for row in connection.execute(f"PRAGMA table_info({name})")]
                    for (name,) in tables
                }

        assert layout(old) == layout(tmp_path / "new.db")

    def test_names_without_versions(self):
        """Another version would count as other people, or an unusual name as several people."""
        assert names_in("'a' version '1' and 'b'") == ["'a'", "'b'"]
        assert names_in("\"it's\" version 'x' and \"it's\"") == ['"it\'s"']
        assert names_in("'a and b'") == ["'a and b'"] and names_in(r"'a\' and \'b'") == [repr("a' and 'b")]
        assert names_in("d") == ["d"] and names_in("") == [""]


class TestOtherVersions:
    @pytest.mark.parametrize("statement", OLD_WRITES)
    def test_an_earlier_version_cannot_write(self, old, statement):
        """A colleague who has not updated would spend, and the updated ledger would not count it."""
        budget = open_budget("survey", old)
        with pytest.raises(sqlite3.OperationalError, match="columns"):
            changed(old, statement)
        budget.verify()

    def test_a_later_layout_is_refused_with_the_remedy(self, old):
        """A ledger of a later version would be written wrongly by one that does not understand it."""
        budget = open_budget("survey", old)
        changed(old, f"UPDATE ledger_layout SET version = {VERSION + 1}")
        for act in (
            lambda: made(budget)(DATA),
            lambda: Ledger(old).budgets(),
            lambda: open_budget("survey", old),
            budget.verify,
        ):
            with pytest.raises(
                LedgerError, match=rf"layout {VERSION + 1}.*pip install --upgrade privatize-dp"
            ):
                act()
        with contextlib.closing(sqlite3.connect(old)) as connection:
            assert connection.execute("SELECT charges FROM budgets WHERE name = 'survey'").fetchall() == [
                (5,)
            ]

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM ledger_layout",
            "UPDATE ledger_layout SET version = 0",
            "UPDATE ledger_layout SET version = 'x'",
            "INSERT INTO ledger_layout VALUES (2)",
            *(f"DROP TABLE {table}" for table in ("budgets", "charges", "spent", "gammas", "people")),
        ],
    )
    def test_an_incomplete_layout(self, path, statement):
        """A missing table would be created again, empty, and everything could be spent a second time."""
        Budget("b", epsilon=1, gamma=1, ledger=path)
        changed(path, statement)
        open_ledger.cache_clear()
        with pytest.raises(LedgerError, match="damaged"):
            Budget("b", epsilon=1, gamma=1, ledger=path)

    @pytest.mark.parametrize("table", ["budgets", "charges", "spent", "gammas"])
    def test_an_incomplete_earlier_layout(self, old, table):
        """A table that is missing from an earlier ledger would be created empty: all could be spent again."""
        changed(old, f"DROP TABLE {table}")
        with pytest.raises(LedgerError, match="damaged"):
            open_budget("survey", old)

    def test_the_caps_of_a_budget_are_missing(self, path):
        """A budget whose row was removed would start again from zero."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        made(budget)(DATA)
        changed(path, "DELETE FROM budgets")
        with pytest.raises(LedgerError, match="damaged"):
            Budget("b", epsilon=1, gamma=1, ledger=path)


class TestAtOnce:
    def test_many_processes_migrate_one_ledger(self, old):
        """Two processes that migrate at once would add the columns twice, or spend what is left twice."""
        counts = []
        for child in go(started(old, old.parent, 6)):
            out, err = child.communicate(timeout=120)
            assert child.returncode == 0, err
            counts.append(int(out))
        budget = open_budget("survey", old)
        assert sum(counts) == 10 == len(budget.history()) - 5  # γ ends it: 2.06 left of 3, 0.2 each
        assert budget.verify().epsilon == pytest.approx(1.5)

    def test_many_processes_create_one_ledger(self, path):
        """A process that sees an incomplete file of another would fail, or create a second ledger."""
        counts = []
        for child in go(started(path, path.parent, 6)):
            out, err = child.communicate(timeout=120)
            assert child.returncode == 0, err
            counts.append(int(out))
        assert sum(counts) == 15 == len(open_budget("survey", path).history())  # 15 times 0.2 is 3
        assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []

    @pytest.mark.slow
    def test_a_process_that_is_killed_while_it_migrates(self, old):
        """A process that dies in the middle would leave a ledger that is neither old nor new."""
        choice = random.Random(3)
        before = old.read_bytes()
        for _ in range(12):
            (child,) = go(started(old, old.parent, 1))
            time.sleep(choice.uniform(0, 0.05))
            child.send_signal(signal.SIGKILL)
            child.communicate(timeout=60)
            with contextlib.closing(sqlite3.connect(old, timeout=60)) as connection:
                tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
                width = len(connection.execute("PRAGMA table_info(charges)").fetchall())
            assert ("ledger_layout" in tables) == (width > 16) == ("datasets" not in tables)
            if width > 16:
                open_budget("survey", old).verify()
                open_ledger.cache_clear()
                for file in old.parent.glob("ledger.db*"):
                    file.unlink()
                old.write_bytes(before)
        assert open_budget("survey", old).verify().epsilon == 0.5

    def test_an_error_in_the_middle_changes_nothing(self, old, monkeypatch):
        """Half of a migration would be committed."""
        before = OLD

        def fails(text):
            raise RuntimeError

        monkeypatch.setattr("privatize.budgets.ledger_layout.names_in", fails)
        with pytest.raises(RuntimeError):
            open_budget("survey", old)
        monkeypatch.undo()
        with contextlib.closing(sqlite3.connect(old)) as connection:
            assert "\n".join(connection.iterdump()).split() == before.split()
        assert open_budget("survey", old).verify().epsilon == 0.5


class TestFiles:
    def test_an_empty_file_is_refused(self, path):
        """A ledger that lost its content would silently become a new one, with nothing spent."""
        path.touch()
        with pytest.raises(LedgerError, match=r"is empty.*backup"):
            Budget("b", epsilon=1, gamma=1, ledger=path)
        assert path.stat().st_size == 0

    def test_a_truncated_file(self, path):
        """A ledger whose end or beginning is missing would be used."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        budget.ledger.database.close()
        content = path.read_bytes()
        for part in (content[:100], content[:4096], content[4096:], b"\0" * 4096):
            open_ledger.cache_clear()
            path.write_bytes(part)
            with pytest.raises(LedgerError):
                Budget("b", epsilon=1, gamma=1, ledger=path)

    def test_removed_or_emptied_while_it_is_open(self, path):
        """Charges would be written to a deleted file, and everything could be spent again."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        f = made(budget)
        f(DATA)
        for file in path.parent.glob("ledger.db*"):
            file.unlink()
        with pytest.raises(LedgerError, match="was removed"):
            f(DATA)
        assert not path.exists()
        path.touch()
        with pytest.raises(LedgerError, match="is empty"):
            f(DATA)

    def test_restored_while_it_is_open(self, path, tmp_path):
        """After a restore from a backup, open programs must use the restored ledger."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        made(budget)(DATA)
        connect = sqlite3.connect
        with (
            contextlib.closing(connect(path)) as one,
            contextlib.closing(connect(tmp_path / "copy")) as other,
        ):
            one.backup(other)
        made(budget)(DATA)
        for file in path.parent.glob("ledger.db-*"):
            file.unlink()
        (tmp_path / "copy").rename(path)
        assert budget.verify().epsilon == 0.1
        made(budget)(DATA)
        assert budget.verify().epsilon == 0.2

    def test_a_file_system_without_links(self, path, monkeypatch):
        """No ledger could be created on it."""

        def refuses(*_):
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuses)
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        made(budget)(DATA)
        assert budget.verify().epsilon == 0.1 and path.stat().st_mode & 0o077 == 0

    def test_threads_that_create_one_ledger(self, path):
        """Threads of one process would create two files, and one of them would disappear."""
        found = []

        def task():
            found.append(Ledger(path).budgets())

        threads = [threading.Thread(target=task) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [[]] * 8

    def test_a_log_without_its_file(self, path):
        """The log of a missing ledger would be applied to a new one, or silently discarded."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        made(budget)(DATA)
        assert path.with_name("ledger.db-wal").exists()
        path.unlink()
        open_ledger.cache_clear()
        with pytest.raises(LedgerError, match="is missing"):
            Budget("b", epsilon=1, gamma=1, ledger=path)
        assert not path.exists()

    def test_a_link_to_a_missing_file(self, path, tmp_path):
        """A ledger behind a symbolic link is created at the link's target, for the user only."""
        (tmp_path / "there").mkdir()
        path.symlink_to(tmp_path / "there" / "real.db")
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        made(budget)(DATA)
        assert path.is_symlink() and (tmp_path / "there" / "real.db").stat().st_mode & 0o077 == 0
        assert budget.verify().epsilon == 0.1


def test_charts_of_budgets_with_declarations(old):
    """A plot of a budget would fail, or show a declaration as spent."""
    budget = open_budget("survey", old)
    made(budget)(seal(DATA, name="people"))
    lines = {layer.label: layer for layer in budget.chart().layers}
    assert lines["epsilon"].y[-1] == pytest.approx(0.3)
    assert "6 answers so far" in budget._repr_html_()


def test_a_ledger_with_one_more_column_can_be_read(path):
    """A ledger to which somebody added a note could not be verified, or its caps would be mixed up."""
    budget = open_budget("survey", path)
    made(budget)(DATA)
    spent, history = budget.spent, budget.history().to_dict("list")
    changed(path, "ALTER TABLE charges ADD COLUMN note TEXT", "ALTER TABLE budgets ADD COLUMN note TEXT")
    assert budget.spent == spent and budget.history().to_dict("list") == history
    budget.verify()
    with pytest.raises(LedgerError, match="columns"):  # written by position: a later layout, perhaps
        made(budget)(DATA)
    assert budget.spent == spent


def test_a_ledger_from_before_p_could_be_learned_gets_its_table(path):
    """Whoever updates the library would be told that the ledger is damaged."""
    budget = Budget("team", epsilon=2, ledger=path)
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE learned")
        file.commit()
    open_ledger.cache_clear()
    budget = Budget("team", epsilon=2, ledger=path)
    people = seal(DATA, name="people", budget=budget)
    assert learn(people, within=UNIT, epsilon=1) == learn(people, within=UNIT, epsilon=1)
    assert budget.verify().epsilon == 1
