"""Fixtures of the tests of storage."""

import pytest

from privatize.storage.estimates import open_store


@pytest.fixture
def path(tmp_path):
    """Return the path of a store of this test's own."""
    open_store.cache_clear()
    yield tmp_path / "deep" / "estimates.db"
    open_store.cache_clear()
