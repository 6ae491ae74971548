"""Ledgers and stores are where the nearest setting says, and a setting that is wrong is refused."""

import numpy as np
import pytest

from privatize import Budget, configure, privatize, samplers
from privatize.config import policy as policy_module
from privatize.errors import (
    SettingsError,
    UnsharedBudgetWarning,
)
from privatize.function.remembering import store_of
from privatize.storage.estimates import Store
from privatize.storage.places import default_store
from tests.budgets.charged import new_name
from tests.storage.remembered import counted, made


def test_set_but_empty(monkeypatch):
    """If the variable were empty by mistake, every process would have the entire budget to itself."""
    for empty in ("", "  "):
        monkeypatch.setenv("PRIVATIZE_LEDGER", empty)
        with pytest.raises(SettingsError, match="PRIVATIZE_LEDGER is empty"):
            Budget(new_name(), epsilon=1, gamma=1)
        with pytest.raises(SettingsError, match="PRIVATIZE_LEDGER is empty"):
            Budget.begun("b")
        Budget(new_name(), epsilon=1, gamma=1, ledger="memory")
        with pytest.raises(SettingsError, match=r"ledger=\.\.\.\) is empty"):
            Budget(new_name(), epsilon=1, gamma=1, ledger=empty)


def test_in_memory_by_default(monkeypatch):
    """Two notebooks that name the same budget would each have all of it, without a warning."""
    monkeypatch.delenv("PRIVATIZE_LEDGER", raising=False)
    with pytest.warns(UnsharedBudgetWarning, match='ledger="memory"') as caught:
        Budget(new_name(), epsilon=1, gamma=1)
    assert caught[0].filename == __file__
    monkeypatch.setenv("PRIVATIZE_LEDGER", "memory")
    Budget(new_name(), epsilon=1, gamma=1)


@pytest.mark.parametrize("place", [3, b"ledger.db", "a\0b", "\ud800", "postgresql://a:hunter2@h/\0"])
def test_impossible_places(place):
    """An impossible place is refused with a message of ours that does not show its password."""
    with pytest.raises(SettingsError) as caught:
        Budget(new_name(), epsilon=1, gamma=1, ledger=place)
    assert "hunter2" not in str(caught.value)


UNIT = samplers.uniform(0, 1)


def average(x):
    return float(np.mean(x))


def test_ledger_place(rule, monkeypatch):
    """Budgets are stored where the policy says, unless the environment or the code says otherwise."""
    folder = rule('ledger = "policy.db"')
    monkeypatch.delenv("PRIVATIZE_LEDGER", raising=False)
    Budget("policy-ledger", epsilon=1, gamma=1)
    assert (folder / "policy.db").is_file()
    monkeypatch.setenv("PRIVATIZE_LEDGER", str(folder / "environment.db"))
    Budget("policy-ledger", epsilon=1, gamma=1)
    assert (folder / "environment.db").is_file()
    Budget("policy-ledger", epsilon=1, gamma=1, ledger=folder / "argument.db")
    assert (folder / "argument.db").is_file()


def test_store_place(rule, monkeypatch):
    """Estimates are stored where the policy says, unless the environment or the code says otherwise."""
    folder = rule('store = "policy.db"')
    monkeypatch.delenv("PRIVATIZE_STORE", raising=False)
    monkeypatch.setattr(policy_module, "_chosen", {})
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)
    private.estimate(20)
    assert (folder / "policy.db").is_file()
    monkeypatch.setenv("PRIVATIZE_STORE", str(folder / "environment.db"))
    private.estimate(21)
    assert (folder / "environment.db").is_file()
    configure(store=folder / "configured.db")
    private.estimate(22)
    assert (folder / "configured.db").is_file()
    private.replace(store=folder / "argument.db").estimate(23)
    assert (folder / "argument.db").is_file()
    monkeypatch.setenv("PRIVATIZE_STORE", "")
    assert default_store() == "memory"


def test_environment_configuration_and_argument(path, monkeypatch):
    """The argument wins over configure(), which wins over the environment, which wins over the cache."""
    monkeypatch.setenv("PRIVATIZE_STORE", str(path))
    assert default_store() == str(path)
    monkeypatch.setenv("PRIVATIZE_STORE", "")
    assert default_store() == "memory"
    monkeypatch.delenv("PRIVATIZE_STORE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(path.parent))
    assert default_store().endswith("estimates.db")
    monkeypatch.setattr(policy_module, "_chosen", {})
    configure(store=path)
    made(counted(), "default").estimate(20)
    assert path.exists()
    assert store_of(made(counted(), f"sqlite:///{path}").settings).database.path == path


def test_none_is_memory_only(path, monkeypatch):
    """store=None leaves no file behind."""
    monkeypatch.chdir(path.parent.parent)
    made(counted(), None).estimate(20)
    assert list(path.parent.parent.iterdir()) == []


def test_unknown_urls_are_refused():
    """A misspelt URL does not become a folder with a password in its name."""
    for url in ("mysql://me:secret@host/db", "sqlite://relative.db"):
        with pytest.raises(SettingsError, match="not known"):
            Store(url)


def test_urls_are_shown_without_passwords():
    """A warning about a store does not print its password."""
    assert Store("postgresql://me:secret@host/db").url == "postgresql://host/db"
