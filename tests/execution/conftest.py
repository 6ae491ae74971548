"""Fixtures of the tests of execution."""

import concurrent.futures
import multiprocessing.pool

import pytest


@pytest.fixture(scope="module")
def spawned():
    """Return two processes of the standard library."""
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool
