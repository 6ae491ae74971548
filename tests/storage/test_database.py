"""A database that is damaged, full or gone is noticed, and only its owner can read it."""

import ast
import stat
from pathlib import Path

import numpy as np
import pytest

import privatize as package
from privatize.errors import (
    StoreWarning,
)
from privatize.storage.database import DatabaseError
from privatize.storage.estimates import Store
from tests.storage.remembered import counted, made


def test_nothing_is_ever_unpickled():
    """A database that somebody else can write to must not be able to run code."""
    folders = [Path(package.__file__).parent / name for name in ("storage", "budgets")]
    for file in [file for folder in folders for file in folder.glob("*.py")]:
        tree = ast.parse(file.read_text())
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        modules = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        assert not {"pickle", "cloudpickle", "marshal", "shelve", "dill"} & (names | modules)
        assert not {"eval", "exec"} & names


@pytest.mark.parametrize("broken", ["save", "describe"])
def test_a_disk_that_fills_up_during_a_run(path, monkeypatch, broken):
    """Gaps that could not be saved are used in this process, with a warning, and not measured again."""
    expected = made(counted(), None, seed=4).estimate(50)
    raw = counted()
    f = made(raw, path, seed=4)

    def full(*args, **kwargs):
        raise DatabaseError("disk full")

    monkeypatch.setattr(Store, broken, full)
    with pytest.warns(StoreWarning, match="disk full"):
        found = f.estimate(50)
    assert np.array_equal(found.gaps, expected.gaps) and raw.notes.runs <= 2 * 79 + 10 + 4
    assert f.estimate(50) is found


def test_an_interrupt_with_a_full_disk_still_interrupts(path, monkeypatch):
    """A store that cannot save does not turn Ctrl-C into another calibration."""

    def stop(x):
        raise KeyboardInterrupt

    def full(*args, **kwargs):
        raise DatabaseError("disk full")

    monkeypatch.setattr(Store, "save", full)
    with pytest.raises(KeyboardInterrupt):
        made(stop, path).estimate(50)


@pytest.mark.parametrize("where", ["/dev/null/x/estimates.db", "garbage", "postgresql://nowhere.invalid/x"])
def test_a_store_that_cannot_be_used(where, path):
    """A read-only place, a broken file or an unreachable server costs a warning, not the answer."""
    if where == "garbage":
        path.parent.mkdir(parents=True)
        path.write_bytes(b"this is no database" * 100)
        where = path
    f = made(counted(), where)
    with pytest.warns(StoreWarning, match="only in this process"):
        assert 0 < f.estimate(50).value < 1
    assert f.estimate(50) is f.estimate(50)


def test_permissions(path):
    """Others on the machine cannot read what was calibrated."""
    made(counted(), path).estimate(50)
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
