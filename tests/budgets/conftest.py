"""Fixtures of the tests of budgets."""

import pytest

from privatize.budgets.ledger import open_ledger


@pytest.fixture
def path(tmp_path):
    """Return the path of a ledger of this test's own."""
    open_ledger.cache_clear()
    yield tmp_path / "deep" / "ledger.db"
    open_ledger.cache_clear()
