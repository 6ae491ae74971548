"""Records that cannot fit into memory are refused before they are drawn."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from privatize import additive, audit, privatize, report, samplers
from privatize.calibration import capacity
from privatize.errors import CalibrationError, SettingsError
from tests.cases import for_each

HUGE = 987_654_321


def made(function=np.mean, **rest):
    facts = {"epsilon": 1, "gamma": 0.2, "sampler": samplers.uniform(0, 1), "seed": 1, "store": None}
    return privatize(**(facts | {"workers": "inline"} | rest))(function)


@pytest.fixture
def memory(monkeypatch):
    """Set how much memory this process seems to have."""

    def have(size):
        monkeypatch.setattr(capacity, "limit", lambda: size)
        monkeypatch.setattr(capacity, "_LITTLE", 0)

    return have


@pytest.mark.parametrize(
    "ask",
    [
        lambda: made().estimate(HUGE),
        lambda: made().sample(10 * HUGE),
        lambda: audit(made(), HUGE, workers="inline"),
        lambda: report(made(), HUGE),
        lambda: made().error_at(HUGE),
        lambda: made(mechanism="gaussian", delta=1e-6, bound="marginal").estimate([100, HUGE]),
    ],
)
def test_too_many_records_are_refused(ask, memory):
    """A mistyped number of records would kill the user's process, with everything in it."""
    memory(25 * 10**9)
    with pytest.raises(CalibrationError, match=r"n=9876543210? records.*GB.*smaller n"):
        ask()


@pytest.mark.parametrize("n", [1000, 10**6, 2 * 10**8])
def test_records_that_fit_are_accepted(n, memory):
    """A user with much data and enough memory would be refused by mistake."""
    memory(25 * 10**9)
    size = capacity.footprint(samplers.uniform(0, 1), n, np.random.default_rng(1))
    assert size == (0 if n == 1000 else 8 * n)
    capacity.check("A calibration draws datasets of", n, size)


@pytest.mark.parametrize("n", [10**7, HUGE, 2**53 - 1])
@pytest.mark.parametrize("average", [False, True])
def test_sums_over_records_work_for_every_n(n, average, memory):
    """A user's sum, which needs two records for each pair, would be refused because n is large."""
    memory(10**9)
    function = additive(_square, average=average)
    found = made(function).estimate(n)
    gap = made(function).estimate(1000).value * (1000 / n if average else 1)
    # A sum of so many numbers is rounded, and the estimate is larger by that.
    rounding = 2 * 2 * (np.log2(n) + 16) * 2.0**-53 * 49 * (1 if average else n)
    assert gap * (1 - 1e-9) <= found.value <= (gap + rounding) * (1 + 1e-3)


def _square(x):
    return np.floor(8 * x) ** 2


def test_memory_does_not_change_a_result(memory):
    """A user would get another estimate on a machine with less memory."""
    memory(10**12)
    one = made().estimate(2000)
    memory(300_000)
    other = made(workers=None).estimate(2000)
    assert one.value == other.value
    np.testing.assert_array_equal(one.gaps, other.gaps)


def test_workers_that_do_not_fit(memory):
    """A user's workers would be killed, one after the other, for lack of memory."""
    memory(300_000)
    with pytest.raises(SettingsError, match=r"workers=8 do not fit.*Take workers=3"):
        made(workers=8).estimate(2000)
    assert capacity.fewer(None, None, 16_000) in (None, "inline")
    assert capacity.fewer(None, 5.0, 60_000) == 1 or (capacity.os.cpu_count() or 1) == 1


@for_each(
    ("make", "least", "most"),
    [
        (lambda: samplers.uniform([0] * 10, [1] * 10), 80, 80),
        (lambda: samplers.integers(0, 9), 8, 8),
        (lambda: samplers.from_function(lambda n, rng: [float(x) for x in rng.random(n)]), 30, 40),
        (lambda: samplers.from_function(lambda n, rng: (rng.random(n), rng.random((n, 2)))), 24, 24),
        (lambda: samplers.from_function(lambda n, rng: [{"a": [1.0, 2.0]} for _ in range(n)]), 100, 600),
        (lambda: samplers.table(a=samplers.uniform(0, 1), b=samplers.categorical(["x", "y"])), 9, 120),
    ],
)
def test_sizes_of_records(make, least, most):
    """A user's records of many columns or Python objects would be counted as single numbers."""
    pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
    size = capacity.footprint(make(), 10**6, np.random.default_rng(1))
    assert least * 10**6 <= size <= most * 10**6


def test_the_limit_of_the_process():
    """A user whose administrator limits memory would be killed at that limit."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9, 3 * 10**9))\n"
        "from privatize.calibration import capacity; print(capacity.limit())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    assert soft != resource.RLIM_INFINITY or int(done.stdout) <= 3 * 10**9


def test_the_limit_of_a_container(tmp_path, monkeypatch):
    """A user in a container of 1 GB on a large machine would be killed."""
    (tmp_path / "job").mkdir()
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "job" / "memory.max").write_text("1000000000\n")
    own = tmp_path / "cgroup"
    own.write_text("0::/job/step\n")

    def path(*parts):
        return {"/sys/fs/cgroup": tmp_path, "/proc/self/cgroup": own}.get(str(parts[0]), real(*parts))

    real = capacity.Path
    monkeypatch.setattr(capacity, "Path", path)
    assert capacity._group() == [1_000_000_000]
    own.write_text("4:cpu,memory:/job\n")
    (tmp_path / "memory" / "job").mkdir(parents=True)
    (tmp_path / "memory" / "job" / "memory.limit_in_bytes").write_text("2000000000\n")
    assert capacity._group() == [2_000_000_000]
    own.unlink()
    assert capacity._group() == []


def test_no_known_limit(monkeypatch):
    """A user of an operating system that says nothing about memory would be refused everything."""
    monkeypatch.setattr(capacity, "_machine", list)
    monkeypatch.setattr(capacity, "_group", list)
    assert capacity.limit() <= 2**46
    with pytest.raises(CalibrationError):
        capacity.check("It draws", 2**53, 8 * 2**53)
