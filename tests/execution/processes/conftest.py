"""Fixtures of the tests of processes."""

import os
import signal

import numpy as np
import pytest

from privatize.execution.clusters import executors
from privatize.execution.processes import pool as processes
from tests.execution.processes.programs import Program, below_servers, estimate, mean, until, workers


@pytest.fixture
def hung(monkeypatch, tmp_path):
    """Return a folder where a hanging function creates a file: only then it is late, not when it is slow."""
    folder = tmp_path / "hung"
    folder.mkdir()

    def late(worker, timeout):
        note = folder / str(worker.process.pid)
        try:
            note.unlink()  # in one step: a look before it could miss a file that is made in between
        except FileNotFoundError:
            return False
        return True

    monkeypatch.setattr(processes.Worker, "late", late)
    return str(folder)


@pytest.fixture(scope="module", autouse=True)
def _no_other_pools():
    """End the workers that other tests' `map` in this process has left for the next order."""
    while executors._pools:
        executors._pools.pop().close()


@pytest.fixture(autouse=True)
def _nothing_is_left():
    """Check after every test that the pool works, and that there is no process but its workers."""
    yield
    found = estimate(mean)
    assert np.array_equal(found.gaps, estimate(mean, "inline").gaps)
    assert until(lambda: below_servers() == workers()), (below_servers(), workers())
    assert all(worker.span is None for worker in processes.pool().workers)


@pytest.fixture
def program(tmp_path):
    """Return a program, and end all its processes after the test."""
    made = Program(tmp_path)
    yield made
    for pid in made.alive():
        os.kill(pid, signal.SIGKILL)
    made.process.wait(120)
