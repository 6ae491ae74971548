"""On executors of others a lost or broken one is named, and never costs a pair."""

import concurrent.futures
import dataclasses
import multiprocessing.pool
import os
import threading
import time
from pathlib import Path

import multiprocess
import numpy as np
import pytest

from privatize import plan
from privatize.errors import ExecutionError
from privatize.execution.clusters import executors
from privatize.execution.clusters.executors import Mapped
from tests.execution.evaluated import Mapper, OddPool, estimate


def mean(x):
    return float(x.mean())


class TestExecutors:
    def test_a_broken_executor_is_named(self):
        """An executor that fails would be reported as a function that fails."""

        class Broken:
            def map(self, function, items):
                raise OSError("no cluster")

        with pytest.raises(ExecutionError, match=r"OSError: no cluster"):
            estimate(mean, Broken())

    def test_an_executor_that_was_shut_down(self):
        """An executor that was shut down would raise an error that is not one of this library."""
        with concurrent.futures.ProcessPoolExecutor(
            1, mp_context=multiprocessing.get_context("spawn")
        ) as pool:
            pass
        with pytest.raises(ExecutionError):
            estimate(mean, pool)

    def test_an_executor_whose_process_dies(self, tmp_path):
        """The end of somebody else's process is an error that says so, not a hang or a wrong gap."""
        file = tmp_path / "evaluated"

        def slow(x):
            file.touch()
            time.sleep(0.01)
            return float(x.mean())

        def kill():
            while not file.exists():
                time.sleep(0.01)
            for process in list(pool._processes.values()):
                process.kill()

        context = multiprocessing.get_context("spawn")
        pool = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
        thread = threading.Thread(target=kill)
        thread.start()
        with pool, pytest.raises(ExecutionError, match="BrokenProcessPool"):
            estimate(slow, pool)
        thread.join()

    @pytest.mark.parametrize("where", ["executor", "map", "daemonic"])
    def test_a_function_that_ends_its_process(self, where, spawned):
        """A crash on some data would end a process of the user's executor, or cost more than its pair."""

        def dies(x):
            if x[0] > 0.96:
                os._exit(1)
            return float(x.mean())

        def raises(x):
            if x[0] > 0.96:
                raise ValueError
            return float(x.mean())

        with multiprocess.get_context("spawn").Pool(2) as daemonic:
            workers = {"executor": spawned, "map": Mapper(), "daemonic": daemonic}[where]
            found, expected = estimate(dies, workers), estimate(raises)
        assert np.array_equal(found.gaps, expected.gaps) and found.failed == expected.failed > 0

    def test_a_map_that_loses_results(self):
        """A map that returns too few results is an error."""

        class Short:
            def map(self, function, items):
                return [function(item) for item in items][:-1]

        with pytest.raises(ExecutionError):
            estimate(mean, Short())

    @pytest.mark.slow
    def test_timeout_on_an_executor(self, spawned):
        """A time limit would not hold on the user's executor, or would cost more than the pair that hangs."""

        def hangs(x):
            if x[0] > 0.995:
                time.sleep(6000)
            return float(x.mean())

        def raises(x):
            if x[0] > 0.995:
                raise ValueError
            return float(x.mean())

        # The timeout is longer than a mean takes on a busy machine, and just one of these few pairs hangs.
        expected = estimate(raises, plan=plan(0.2, 150))
        assert expected.failed == 1
        found = estimate(hangs, spawned, timeout=20, plan=plan(0.2, 150))
        assert np.array_equal(found.gaps, expected.gaps)


def test_threads_of_other_processes_are_not_used(monkeypatch, tmp_path):
    """A cluster's worker with several threads evaluates in a separate process, which has one thread."""
    folder = str(tmp_path)

    def named(x):
        thread, main = threading.current_thread(), threading.main_thread()
        Path(folder, f"{thread is main} {os.getpid()}").touch()
        return float(x.mean())

    # As if the orders came from another process.
    submit, sender = Mapped.submit, ("another process", 0)
    monkeypatch.setattr(
        Mapped, "submit", lambda self, order: submit(self, dataclasses.replace(order, sender=sender))
    )
    try:
        found = estimate(named, OddPool())
    finally:
        while executors._pools:
            executors._pools.pop().close()
    assert np.array_equal(found.gaps, estimate(mean).gaps)
    seen = {path.name for path in Path(folder).iterdir()}
    # Some pairs are evaluated again in the caller's thread of this process.
    assert all(name.startswith("True") for name in seen) and len(seen) == 2
