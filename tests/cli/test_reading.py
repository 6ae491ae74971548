"""Commands that only read create and change nothing."""

import os
import sqlite3
import stat

import pytest

from privatize import Budget
from privatize.budgets.ledger import Ledger
from privatize.errors import LedgerError


def test_reading_creates_nothing(tmp_path, monkeypatch, run, facts, wrong):
    """A command that only reads would create an empty database, or tables in somebody else's."""
    monkeypatch.setenv("PRIVATIZE_STORE", str(tmp_path / "no" / "store.db"))
    monkeypatch.chdir(tmp_path)
    assert run("store", "list")[0] == f"nothing is remembered in {tmp_path / 'no' / 'store.db'}\n"
    assert facts("store", "list")["estimates"] == []
    wrong("store", "show", "a")
    wrong("store", "export", "out.db")
    wrong("store", "forget", "a")
    run("store", "forget", "--all")
    run("ledger", "show", "--ledger", "ledger.db")
    wrong("ledger", "verify", "--ledger", "ledger.db")
    wrong("ledger", "export", "--ledger", "ledger.db")
    run("doctor")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("PRIVATIZE_STORE", "")
    assert "PRIVATIZE_STORE is empty" in run("store", "list")[0]
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE cakes (x)")
    connection.close()
    before = other.read_bytes()
    assert "but not a store" in wrong("store", "list", "--store", other)
    assert "but not a ledger" in wrong("ledger", "show", "--ledger", other)
    assert other.read_bytes() == before and list(tmp_path.iterdir()) == [other]


@pytest.mark.parametrize("what", ["text", "folder", "garbage", "empty"])
@pytest.mark.parametrize(
    "words",
    [
        ["store", "list", "--store"],
        ["store", "export", "new.db", "--store"],
        ["store", "import"],
        ["ledger", "show", "--ledger"],
        ["ledger", "verify", "--ledger"],
        ["ledger", "export", "--ledger"],
    ],
    ids=" ".join,
)
def test_files_that_are_not_databases(app, run, what, words):
    """A file at a wrong path would be overwritten, or cause a traceback."""
    bad = app / "bad.db"
    if what == "folder":
        bad.mkdir()
    else:
        contents = {
            "text": b"just text\n" * 50,
            "garbage": b"SQLite format 3\x00" + b"\xff" * 5000,
            "empty": b"",
        }
        bad.write_bytes(contents[what])
    before = None if what == "folder" else bad.read_bytes()
    shows = what == "empty" and words[1] == "list"  # an empty ledger has lost its content
    out, err = run(*words, bad, code=0 if shows else 2)
    if not shows:
        assert out == "" and err.startswith("privatize: ") and err.count("\n") == 1
    assert before is None or bad.read_bytes() == before
    assert not (app / "new.db").exists() and not (app / "estimates.db").exists()


def test_reading_a_ledger_changes_nothing(ledger, app, run):
    """Showing a ledger would change it."""
    before = (app / "ledger.db").read_bytes()
    for words in (["show"], ["show", "survey"], ["verify"], ["export"]):
        run("ledger", *words)
    assert (app / "ledger.db").read_bytes() == before
    with pytest.raises(LedgerError, match="There are: 'sites, all', 'survey'"):
        Budget.begun("nobody", app / "ledger.db")
    assert len(Ledger(app / "ledger.db").budgets()) == 2
    again = Budget.begun("survey")
    assert again.remaining == Budget("survey", epsilon=1, gamma=0.9, delta=1e-6).remaining
    assert again.verify().epsilon == 0.75


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everything")
def test_a_folder_that_is_read_only(ledger, store, app, run):
    """An auditor without write permission could not read a ledger."""
    ledger.database.close()
    store.database.close()
    folder = app / "closed"
    folder.mkdir()
    for name in ("ledger.db", "estimates.db"):
        (folder / name).write_bytes((app / name).read_bytes())
        (folder / name).chmod(stat.S_IRUSR)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert "ok" in run("ledger", "verify", "--ledger", folder / "ledger.db")[0]
        assert "4 estimates" in run("store", "list", "--store", folder / "estimates.db")[0]
        run("store", "forget", "--all", "--store", folder / "estimates.db", code=2)
        run("store", "import", app / "estimates.db", "--store", folder / "estimates.db", code=2)
        run("store", "export", folder / "new.db", code=2)
    finally:
        folder.chmod(stat.S_IRWXU)
