"""What tests of private functions share."""

import pytest

from privatize.storage.estimates import open_store


@pytest.fixture
def process(monkeypatch):
    """Return what begins another process, of one of two kinds."""
    open_store.cache_clear()

    def another(kind):
        monkeypatch.setenv("WHICH_PROCESS", kind)
        open_store.cache_clear()

    another("first")
    return another
