"""Pairs evaluated on a real Dask cluster: the same gaps as here, whatever happens to its workers."""

import contextlib
import importlib
import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from privatize import privatize
from privatize.errors import (
    ExecutionError,
    InfiniteSensitivityError,
)
from privatize.execution.clusters.executors import Dask
from tests.execution.contract import (
    UNIT,
    Failures,
    LostWorkers,
    Replies,
    SameGaps,
    check,
    estimate,
    harmful,
    killing,
    noted,
    plain_mean,
    solved,
    subsample,
)
from tests.execution.processes.programs import until

distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra dask)")

pytestmark = [
    # distributed leaves sockets and loops open when a worker was killed or a cluster is closed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Another program on this machine may use the port.
    pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning"),
]


@contextlib.contextmanager
def cluster(**settings):
    with (
        distributed.LocalCluster(dashboard_address=None, silence_logs=50, **settings) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    """Start two worker processes for these tests."""
    with cluster(n_workers=2, threads_per_worker=1) as found:
        yield found


@pytest.fixture(autouse=True)
def _all_there(client):
    """Begin every test with two workers, whatever the last one did to them."""
    client.wait_for_workers(2, timeout=60)


def import_it(folder, name):
    """Import a module in a worker."""
    sys.path.append(folder)
    importlib.invalidate_caches()
    importlib.import_module(name)


class TestContract(SameGaps, LostWorkers, Failures, Replies):
    @pytest.fixture
    def workers(self, client):
        """Evaluate on the cluster."""
        return client

    def import_there(self, workers, folder, name):
        """Import a module in Dask's workers."""
        workers.run(import_it, folder, name)


class TestClusters:
    def test_executor(self, client):
        """The client's executor would be taken for one of concurrent.futures, which it is not."""
        with client.get_executor() as executor:
            check(subsample, executor)

    def test_client_of_a_subclass(self, client):
        """A client with a class of its own, as vendors and users make them, would not be known as one."""

        class Mine(distributed.Client):
            pass

        with Mine(client.cluster) as mine:
            check(plain_mean, mine)

    def test_workers_with_threads(self):
        """Threads of one worker would take each other's global random numbers."""
        with cluster(n_workers=1, threads_per_worker=2) as threaded:
            check(subsample, threaded)
            check(solved, threaded)
            fails = estimate(harmful("raise", below=0.005))
            timed = estimate(harmful("sleep", below=0.005), threaded, timeout=20)
            assert np.array_equal(timed.gaps, fails.gaps)

    def test_workers_in_this_process(self):
        """A cluster in threads of this process has state that is not the caller's: it is refused."""
        threads = cluster(n_workers=1, threads_per_worker=2, processes=False)
        with threads as threaded, pytest.raises(ExecutionError, match="processes=True"):
            estimate(subsample, threaded)


class TestLostMachines:
    def test_killed_from_outside(self, client, tmp_path):
        """A machine that goes away would take hours of calibration with it, or change the estimate."""
        file = tmp_path / "pids"
        workers = set(client.run(os.getpid).values())
        with killing(file, 20, lambda _: min(workers)) as killed:
            there = estimate(noted(str(file), 0.02), client, gamma=0.2)
        assert killed == [min(workers)]
        LostWorkers.at_most_one_infinite(there, estimate(noted("", 0), gamma=0.2))
        check(plain_mean, client)

    def test_killed_from_outside_while_guarded(self, client, tmp_path):
        """With a timeout, a lost machine would leave a run that waits forever."""
        file = tmp_path / "pids"
        workers = list(client.run(os.getpid).values())
        with killing(file, 20, lambda pids: workers[0]) as killed:
            there = estimate(noted(str(file), 0.02), client, gamma=0.2, timeout=60)
        assert killed
        LostWorkers.at_most_one_infinite(there, estimate(noted("", 0), gamma=0.2))
        check(plain_mean, client, timeout=60)


class TestFailures:
    def test_a_closed_client(self, client):
        """A closed cluster would hang the run, or raise an error that is not ours."""
        with distributed.Client(client.cluster) as closed:
            pass
        with pytest.raises(ExecutionError):
            estimate(plain_mean, closed)


class TestPrivacy:
    @pytest.mark.parametrize("as_list", [False, True], ids=["array", "list"])
    def test_no_private_data_on_the_cluster(self, client, monkeypatch, as_list):
        """Private records would be sent to other machines, and kept there."""
        sent = []
        submit = type(client).submit

        def spy(self, function, *args, **rest):
            sent.append(pickle.dumps([a for a in args if not isinstance(a, distributed.Future)]))
            return submit(self, function, *args, **rest)

        monkeypatch.setattr(type(client), "submit", spy)
        secret = 0.123456789
        private = privatize(
            epsilon=1, gamma=0.2, sampler=UNIT, seed=1, store=None, workers=client, timeout=60
        )(plain_mean if not as_list else sum)
        data = np.full(50, secret)
        assert math.isfinite(private(data.tolist() if as_list else data))
        assert len(sent) > 2
        for payload in sent:
            assert np.float64(secret).tobytes() not in payload  # as arrays are pickled
            assert np.float64(secret).tobytes()[::-1] not in payload  # as floats are
            assert b"0.123456789" not in payload

    def test_nothing_is_left_on_the_cluster(self, client):
        """Every calibration would leave its package in the cluster's memory."""
        check(plain_mean, client)
        with pytest.raises(InfiniteSensitivityError):
            estimate(harmful("raise", below=0.5), client)
        assert until(lambda: not any(client.has_what().values()))

    def test_results_are_released_even_if_something_has_their_futures(self, client, monkeypatch):
        """A traceback that somebody has stored would keep results in the cluster's memory."""
        held, submit = [], Dask.submit

        def submit_and_hold(executor, order):
            held.append(submit(executor, order))
            return held[-1]

        monkeypatch.setattr(Dask, "submit", submit_and_hold)
        check(plain_mean, client)
        assert held
        assert until(lambda: not any(client.has_what().values()))


def test_not_imported():
    """`import privatize` would take seconds, for a library that few calls need."""
    code = "import sys, privatize; sys.exit(bool({'dask', 'distributed', 'ray'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
