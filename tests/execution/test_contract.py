"""Executors that need no other library pass the tests that all executors share."""

import concurrent.futures
import multiprocessing

import pytest

from tests.execution.contract import Failures, LostWorkers, Replies, SameGaps


@pytest.fixture(scope="module")
def spawned():
    """Return two processes of the standard library."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        yield pool


class TestInline(SameGaps):
    @pytest.fixture
    def workers(self):
        """Evaluate in this process."""
        return "inline"


class TestProcesses(SameGaps, LostWorkers, Failures, Replies):
    @pytest.fixture
    def workers(self):
        """Evaluate in two processes of our own."""
        return 2


class TestExecutor(SameGaps, Failures, Replies):
    @pytest.fixture
    def workers(self, spawned):
        """Evaluate in two processes of the standard library."""
        return spawned


class TestMap(SameGaps):
    @pytest.fixture
    def workers(self):
        """Evaluate with something that has a `map` and nothing else, and evaluates the last order first."""

        class Mapper:
            def map(self, function, items):
                return [function(item) for item in list(items)[::-1]][::-1]

        return Mapper()
