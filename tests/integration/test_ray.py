"""Pairs evaluated on a real local Ray: the same gaps as here, whatever happens to its workers."""

import math
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import psutil
import pytest

from privatize import privatize
from tests.execution.contract import (
    UNIT,
    Failures,
    LostWorkers,
    Replies,
    SameGaps,
    check,
    estimate,
    killing,
    noted,
    plain_mean,
    subsample,
)

ray = pytest.importorskip("ray", reason="ray is not installed (extra ray)")

pytestmark = [
    # Ray leaves pipes and sockets to its servers to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # How accelerators are hidden from tasks will change in a later Ray.
    pytest.mark.filterwarnings("ignore:Tip. In future versions of Ray:FutureWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    """Start a Ray with two workers for these tests."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def ray_worker(pids):
    """Return the Ray worker that a process of ours descends from."""
    at = psutil.Process(pids[-1])
    while not at.name().startswith("ray::"):
        at = at.parent()
    return at.pid


class TestContract(SameGaps, LostWorkers, Failures, Replies):
    @pytest.fixture
    def workers(self, cluster):
        """Evaluate on Ray."""
        return cluster

    def test_by_name(self, cluster):
        """`workers="ray"` would not do the same as the module, or would start a second Ray."""
        check(subsample, "ray")


class TestLostMachines:
    def test_killed_from_outside_while_guarded(self, cluster, tmp_path):
        """With a timeout, a lost machine would leave a run that waits forever."""
        file = tmp_path / "pids"
        with killing(file, 20, ray_worker) as killed:
            there = estimate(noted(str(file), 0.02), cluster, gamma=0.2, timeout=60)
        assert killed and str(killed[0]) not in file.read_text().split()
        LostWorkers.at_most_one_infinite(there, estimate(noted("", 0), gamma=0.2))
        check(plain_mean, cluster, timeout=60)


class TestPrivacy:
    @pytest.mark.parametrize("as_list", [False, True], ids=["array", "list"])
    def test_no_private_data_on_the_cluster(self, cluster, monkeypatch, as_list):
        """Private records would be sent to other machines, and kept there."""
        sent = []
        put, remote = ray.put, ray.remote_function.RemoteFunction._remote

        def spy_put(value, **rest):
            sent.append(pickle.dumps(value))
            return put(value, **rest)

        def spy_remote(self, args=None, kwargs=None, **rest):
            sent.append(pickle.dumps([a for a in args if not isinstance(a, ray.ObjectRef)]))
            return remote(self, args=args, kwargs=kwargs, **rest)

        monkeypatch.setattr(ray, "put", spy_put)
        monkeypatch.setattr(ray.remote_function.RemoteFunction, "_remote", spy_remote)
        secret = 0.123456789
        private = privatize(
            epsilon=1, gamma=0.2, sampler=UNIT, seed=1, store=None, workers=cluster, timeout=60
        )(plain_mean if not as_list else sum)
        data = np.full(50, secret)
        assert math.isfinite(private(data.tolist() if as_list else data))
        assert len(sent) > 2
        for payload in sent:
            assert np.float64(secret).tobytes() not in payload  # as arrays are pickled
            assert np.float64(secret).tobytes()[::-1] not in payload  # as floats are
            assert b"0.123456789" not in payload


def test_ray_is_initialised():
    """`workers="ray"` would fail, or run somewhere else, where Ray has not been started."""
    code = """
        import sys
        import numpy as np
        import privatize
        assert not {"dask", "distributed", "ray"} & set(sys.modules)
        from privatize import estimate_sensitivity, plan, samplers
        asked = {"n": 50, "sampler": samplers.uniform(0, 1), "norm": "l1", "plan": plan(gamma=0.2), "seed": 1}
        here = estimate_sensitivity(np.mean, workers="inline", **asked)
        assert "ray" not in sys.modules
        there = estimate_sensitivity(np.mean, workers="ray", **asked)
        assert np.array_equal(here.gaps, there.gaps)
        import ray
        assert ray.is_initialized()
        ray.shutdown()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
