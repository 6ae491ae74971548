"""What was spent stays spent, and nothing private is recorded."""

import itertools
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import privatize as package
from privatize import Budget, privatize, samplers, seal
from privatize.errors import (
    BudgetExceeded,
    LedgerError,
    PrivateRunError,
    SettingsError,
)
from privatize.storage.estimates import open_store
from tests.budgets.charged import charge, new_budget
from tests.budgets.together import check_exactly_a_hundred, check_never_more_when_killed

UNIT = samplers.uniform(0, 1)
ROOT = str(Path(package.__file__).parents[1])
NUMBERS = itertools.count()
MARK = 0.123456789123  # a number that no sampled record has
DATA = np.linspace(0.1, 0.9, 50)
HOSTILE = np.concatenate([[MARK], DATA[1:]])


def mean(x):
    return float(x.mean())


def made(raw=mean, **changes):
    """Return a private function that is calibrated in this process only."""
    return privatize(**({"epsilon": 0.3, "gamma": 0.2, "sampler": UNIT, "store": None} | changes))(raw)


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
    @pytest.mark.slow
    def test_exactly_a_hundred(self, path, tmp_path):
        """64 threads in 8 processes would spend more than the budget, as two workers did elsewhere."""
        check_exactly_a_hundred(path, tmp_path, "b")

    @pytest.mark.slow
    def test_never_more_when_processes_are_killed(self, path, tmp_path):
        """A process that is killed at any moment would allow more answers than the budget does."""
        check_never_more_when_killed(path, tmp_path, "b")

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
