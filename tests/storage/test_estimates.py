"""An estimate is made once, survives crashes, and is never stale, damaged or a luckier one."""

import collections
import itertools
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import privatize as package
from privatize import plan, privatize, samplers
from privatize.calibration import streams
from privatize.errors import (
    ArgumentError,
    DataError,
    NotRememberedWarning,
    PlanError,
    StoreWarning,
    ZeroSensitivityError,
)
from privatize.outputs.describe import describe
from privatize.storage import estimates
from privatize.storage.estimates import Store, open_store
from tests.storage.remembered import counted, made

ROOT = str(Path(package.__file__).parents[1])
NUMBERS = itertools.count()
RECOGNIZED = 4  # the runs that tell whether a function computes the same as in another process
# The runs on pairs that are measured again if that is not known: the first, the last, the largest, the two
# smallest and eight at random, of which some may be the same.
FEW = 2 * 13


def fresh(path):
    """Forget all stores that this process has open, as a new process would start; return the path."""
    open_store.cache_clear()
    return path


class TestRecall:
    def test_another_process_evaluates_four_datasets(self, path):
        """The next program would measure again what one program has calibrated; or take it without a look."""
        first = made(counted(), path).estimate(50)
        raw = counted()
        again = made(raw, fresh(path)).estimate(50)
        assert raw.notes.runs == RECOGNIZED
        made(raw, path).estimate(50)
        assert raw.notes.runs == RECOGNIZED
        assert np.array_equal(first.gaps, again.gaps)
        assert (first.value, first.seed, first.gamma) == (again.value, again.seed, again.gamma)

    def test_another_epsilon_or_gamma_evaluates_nothing(self, path):
        """All promises are read from the stored gaps, and each further plan is paid for in gamma."""
        raw = counted()
        f = made(raw, path, samples=300)
        first = f.estimate(50)
        runs = raw.notes.runs
        assert f.replace(epsilon=0.1).estimate(50).value == first.value
        other = f.replace(gamma=0.3).estimate(50)
        dkw = f.replace(gamma=0.4, bound="dkw").estimate(50)
        assert raw.notes.runs == runs
        assert np.array_equal(other.gaps, first.gaps) and other.seed == first.seed == dkw.seed
        assert dkw.looks == 3 and dkw.gamma > 0.4 and other.gamma > 0.3
        assert first.gamma > 0.2 and f.estimate(50).gamma == first.gamma  # it pays for later plans

    def test_a_larger_m_evaluates_only_what_is_missing(self, path):
        """More samples extend the gaps, which are then those of a fresh run with the same seed."""
        raw = counted()
        small = made(raw, path, samples=300, seed=5).estimate(50)
        before = raw.notes.runs
        large = made(raw, fresh(path), samples=700, seed=5).estimate(50)
        checks = 2 * RECOGNIZED + 9  # a few more runs check that the function is still the same
        assert before < raw.notes.runs <= before + 2 * 400 + checks
        assert np.array_equal(large.gaps[:300], small.gaps)
        assert np.array_equal(large.gaps, made(counted(), None, samples=700, seed=5).estimate(50).gaps)

    def test_the_warm_path_does_not_touch_the_store(self, path, monkeypatch):
        """A second call in the same process would be slowed down by the database."""
        f = made(counted(), path)
        f(np.full(50, 0.5))
        monkeypatch.setattr(Store, "open", lambda *args, **kwargs: pytest.fail("the store was used"))
        f(np.full(50, 0.5))

    def test_classes_of_a_recalled_output(self, path):
        """A remembered structure with a named tuple in it is filled with the real class."""
        for _ in range(2):
            f = made(point, fresh(path))
            assert type(f(np.full(50, 0.5))) is Point

    def test_estimates_in_advance(self, path):
        """Several sizes can be calibrated at once, before there is data."""
        found = made(counted(), path).estimate(n=[20, 30])
        assert [e.n for e in found] == [20, 30]
        assert {entry["n"] for entry in Store(path).entries()} == {20, 30}

    def test_listing_and_forgetting(self, path):
        """What is remembered can be seen and removed, one by one or all."""
        f = made(counted(), path)
        f.estimate([20, 30])
        (newest, _) = Store(path).entries()
        assert newest["label"] == "mean" and newest["pairs"] == 79 and newest["looks"] == 1
        assert newest["facts"]["sampler"] == "uniform(0, 1)" and newest["failure"] == {}
        assert newest["facts"]["failed"] == 0 and newest["facts"]["seconds"] >= 0
        assert newest["facts"]["versions"]["numpy"] == np.__version__
        assert f.forget(20) == 1 and f.forget(n=20) == 0
        with pytest.raises(ArgumentError, match="needs the number of records"):
            f.forget(q=3)
        other = made(lambda x: float(x.mean()), path)
        other.__name__ = "mean"
        other.estimate(20)
        assert f.forget() == 1 and len(Store(path).entries()) == 1  # another function's stays
        assert other.forget() == 1
        first = f.estimate(20)
        assert f.estimate(20) is first

    def test_failures_are_remembered(self, path):
        """Trying again in another process could give a luckier estimate."""
        f = made(lambda x: 1.0, path)
        with pytest.raises(ZeroSensitivityError) as first:
            f.estimate(20)
        with pytest.raises(ZeroSensitivityError) as second:
            made(lambda x: 1.0, fresh(path)).estimate(20)
        assert str(first.value) == str(second.value) and second.value.m == 79
        assert made(lambda x: 1.0, fresh(path), min_sensitivity=0.5).estimate(20).value == 0.5

    def test_marginal_allows_one_plan(self, path):
        """The bound that holds on average cannot be chosen after other plans were read."""
        f = made(counted(), path, samples=300)
        f.estimate(20)
        with pytest.raises(PlanError, match="forget"):
            f.replace(bound="marginal").estimate(20)
        f.forget()
        f.replace(bound="marginal").estimate(20)
        with pytest.raises(PlanError, match="one look"):
            f.replace(gamma=0.3).estimate(20)


Point = collections.namedtuple("Point", "x y")


def fails_first(g):
    """Tell whether the first sampled pair's first record is small."""
    return streams.stream(g.settings.seed, streams.RECORDS).uniform(0, 1) < 0.15


def picky_point(x):
    if x[0] < 0.04:
        raise ValueError("small")
    return Point(float(x.mean()), float(x.std()))


def point(x):
    return Point(float(x.mean()), float(x.std()))


SLOW = """
    import os, sys, time
    import numpy as np
    from privatize import privatize, samplers
    from privatize.calibration import run

    run._SAVED_EVERY = 0  # at once
    notes = os.environ.get("NOTES", "")

    @privatize(epsilon=1, gamma=.05, sampler=samplers.uniform(0, 1), seed=3, workers=2)
    def slow(x):
        time.sleep(0.002)
        if notes:
            with open(notes, "ab", buffering=0) as file:
                file.write(b".")
            while os.path.getsize(notes) > 600:  # forever
                time.sleep(0.01)
        return float(x.mean())

    if __name__ == "__main__":
        print(slow.estimate(3000).value)
"""


def script(path, text, **environment):
    """Start a program that remembers at the path; each has its own file, so none changes while it is read."""
    file = path.parent.parent / f"program{next(NUMBERS)}.py"
    file.write_text(textwrap.dedent(text))
    env = os.environ | {"PRIVATIZE_STORE": str(path), "PYTHONPATH": ROOT} | environment
    return subprocess.Popen([sys.executable, str(file)], env=env, stdout=subprocess.PIPE, text=True)


def stored_pairs(path):
    """Return how many gaps are in a store."""
    return sum(entry["pairs"] for entry in Store(path).entries()) if path.exists() else 0


def test_what_was_measured_here():
    """Gaps of another process would be taken for gaps that were checked in this one."""
    store, which = Store("memory"), ("key", 1, frozenset({"an order"}))
    gaps = np.array([1.0, np.inf, 3.0])
    assert store.measured_here(which, gaps[:0]) and not store.measured_here(which, gaps)
    store.note_measured(which, gaps)
    assert store.measured_here(which, gaps) and store.measured_here(which, gaps[:2])
    assert store.measured_here(which, np.array([1.0, np.nan]))
    assert not store.measured_here(which, np.array([1.0, np.inf, 3.0, 4.0]))
    assert not store.measured_here(which, np.array([1.0, 2.0]))
    assert not store.measured_here(("key", 2, which[2]), gaps)


class TestDisasters:
    @pytest.mark.slow
    def test_a_killed_process_leaves_its_gaps(self, path):
        """After kill -9 during a run, the next process continues from there, to the same gaps."""
        child = script(path, SLOW, NOTES=str(path.parent.parent / "notes"))
        deadline = time.monotonic() + 300
        while stored_pairs(path) < 100 and time.monotonic() < deadline:
            time.sleep(0.05)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        had = stored_pairs(path)
        assert 100 <= had < 557
        out, _ = script(path, SLOW).communicate(timeout=300)
        assert stored_pairs(path) >= 557
        uninterrupted, _ = script(path.parent / "other.db", SLOW).communicate(timeout=300)
        assert float(out) == float(uninterrupted)

    def test_an_interrupted_run_saves_its_gaps(self, path):
        """Ctrl-C loses the pair under way, not those before it."""
        notes = logging.getLogger("notes of a test")
        notes.runs, notes.stop = 0, 900

        def mean(x):
            notes.runs += 1
            if notes.runs == notes.stop:
                raise KeyboardInterrupt
            return float(x.mean())

        f = made(mean, path, gamma=0.05, seed=2)
        with pytest.raises(KeyboardInterrupt):
            f.estimate(100)
        had = stored_pairs(path)
        assert had == 256  # one block of pairs was complete
        found = f.estimate(100)
        assert notes.runs <= 900 + 2 * (557 - 256) + FEW + 28 + RECOGNIZED
        assert np.array_equal(found.gaps, made(counted(), None, gamma=0.05, seed=2).estimate(100).gaps)

    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE gaps SET data = zeroblob(length(data))",
            "UPDATE gaps SET data = substr(data, 1, 80)",
            "UPDATE gaps SET data = substr(data, 1, 83)",
            "UPDATE gaps SET checksum = 'x'",
            "UPDATE estimates SET version = 99",
            "UPDATE estimates SET structure = 'not json'",
            "UPDATE estimates SET seed = 'x'",
            "UPDATE estimates SET seed = '99'",
            "UPDATE estimates SET structure = '[]'",
            "UPDATE estimates SET structure = '3'",
            "UPDATE estimates SET structure = '{\"a\": 1}'",
            "UPDATE estimates SET failure = '3'",
            "UPDATE estimates SET failure = '{\"*\": 3}'",
            "UPDATE gaps SET start = -3",
            "UPDATE looks SET plan = '{}'",
            'UPDATE looks SET plan = \'{"gamma": 0.2, "m": 79, "k": 1, "rho": 0.01, "bound": "tolerance"}\'',
        ],
    )
    def test_damaged_rows_are_measured_again(self, path, damage):
        """An entry that cannot be read back completely is made again, with a warning, and never used."""
        made(counted(), path).estimate(50)
        with sqlite3.connect(path) as connection:
            connection.execute(damage)
        connection.close()
        raw = counted()
        with pytest.warns(StoreWarning, match="made again"):
            found = made(raw, fresh(path)).estimate(50)
        assert raw.notes.runs > 2 * 79 and 0 < found.value < 1
        assert np.array_equal(made(counted(), fresh(path)).estimate(50).gaps, found.gaps)

    def test_numbers_that_are_no_gaps_are_measured_again(self, path):
        """A negative gap with a correct checksum, which somebody else could write, is not used."""
        made(counted(), path).estimate(50)
        entry = Store(path).entries()[0]
        data = np.full(79, -1.0).tobytes()
        checksum = estimates._checksum(entry["key"], entry["seed"], 0, data)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE gaps SET data = ?, checksum = ?", (data, checksum))
        connection.close()
        with pytest.warns(StoreWarning, match="made again"):
            assert made(counted(), fresh(path)).estimate(50).value > 0

    def test_failed_first_pairs_and_an_interruption(self, path):
        """Gaps that were saved before any pair succeeded are used like others."""
        notes = logging.getLogger("notes of a test")
        notes.runs, notes.stop = 0, 4

        def f(x):
            notes.runs += 1
            if notes.runs == notes.stop:
                raise KeyboardInterrupt
            if x[0] < 0.15:
                raise ValueError("small")
            return float(x.mean())

        n = 2**18
        settings = {"gamma": 0.6, "samples": 25}
        alone = [made(f, None, seed=seed, **settings) for seed in range(40)]
        first = next(g for g in alone if fails_first(g))
        seed = first.settings.seed
        notes.runs, notes.stop = 0, 2
        with pytest.raises(KeyboardInterrupt):
            made(f, path, seed=seed, **settings).estimate(n)
        notes.runs, notes.stop = 0, 0
        resumed = made(f, fresh(path), seed=seed, **settings).estimate(n)
        uninterrupted = made(f, None, seed=seed, **settings).estimate(n)
        assert resumed.gaps[0] == np.inf and np.array_equal(resumed.gaps, uninterrupted.gaps)

    def test_recall_of_classes_when_the_first_pair_failed(self, path):
        """The class in a remembered output is learned from a pair that succeeds."""
        seed = next(s for s in range(100) if streams.stream(s, streams.RECORDS).uniform(0, 1) < 0.04)
        for _ in range(2):
            found = made(picky_point, fresh(path), seed=seed, samples=300).estimate(50)
            assert found.gaps[0] == np.inf and found.structure.complete

    def test_gaps_of_an_unfinished_run_are_checked(self, path):
        """A function whose results drift is found even if the first process was killed before its check."""
        made(counted(), path).estimate(50)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE estimates SET facts = '{}'")
        connection.close()
        raw = counted()
        made(raw, fresh(path)).estimate(50)
        # And eight runs for the spread of answers. All would be 166.
        assert 28 <= raw.notes.runs <= FEW + 8 + RECOGNIZED
        raw = counted()
        made(raw, fresh(path)).estimate(50)
        assert raw.notes.runs == RECOGNIZED

    def test_gaps_of_another_seed_are_not_merged(self, path):
        """A slow writer whose estimate was forgotten and started again would mix in gaps of another seed."""
        store = Store(path)
        store.open("key", seed=1, label="f", n=5, facts={})
        store.forget("key")
        store.open("key", seed=2, label="f", n=5, facts={})
        store.save("key", 1, 0, np.ones(3), describe(0.0))
        assert len(store.open("key", seed=2, label="f", n=5, facts={}).gaps) == 0

    def test_pieces_that_overlap_count_once(self):
        """Programs that calibrate at the same time would seem to have evaluated more pairs than there are."""
        store = Store("memory")
        store.open("key", seed=1, label="f", n=5, facts={})
        for start, stop in ((0, 79), (66, 79), (70, 90)):
            store.save("key", 1, start, np.arange(start, stop, dtype=float), describe(0.0))
        assert [entry["pairs"] for entry in store.entries()] == [90]


MANY = """
    import threading
    import numpy as np
    from privatize import privatize, samplers

    def task(i):
        f = privatize(epsilon=1, gamma=.2, sampler=samplers.uniform(0, 1))(lambda x: float(x.mean()))
        for n in (30, 31, 32):
            found[i, n] = (f.estimate(n).seed, f.estimate(n).value)

    found = {}
    threads = [threading.Thread(target=task, args=(i,)) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    for (i, n), facts in sorted(found.items()):
        print(n, *facts)
"""


def test_many_processes_and_threads_at_once(path):
    """Programs that calibrate the same function at the same time get one consistent estimate."""
    children = [script(path, MANY) for _ in range(4)]
    outputs = [child.communicate(timeout=120)[0].split("\n") for child in children]
    assert all(child.returncode == 0 for child in children)
    lines = [line.split() for out in outputs for line in out if line]
    assert len(lines) == 4 * 4 * 3
    for n in ("30", "31", "32"):
        assert len({tuple(line[1:]) for line in lines if line[0] == n}) == 1
    assert [entry["pairs"] for entry in Store(path).entries()] == [79] * 3


def test_version_stands_for_what_the_fingerprint_cannot_see(path):
    """With version= an estimate is remembered that otherwise would not be, until the version changes."""
    numbers = (i for i in range(3))

    def f(x):
        return float(x.mean()) if numbers else 0.0

    with pytest.warns(NotRememberedWarning, match="version="):
        made(f, path).estimate(20)
    first = made(f, path, version="1").estimate(20)
    assert made(f, path, version="1").estimate(20).seed == first.seed
    assert made(f, path, version="2").estimate(20).seed != first.seed


def test_private_data_that_the_function_can_reach_is_refused(path):
    """Data in a global or closure would take part in the calibration."""
    data = np.full(20, 0.5)
    f = made(lambda x: float(x.mean()) + 0 * len(data), path)
    with pytest.raises(DataError, match="reached"):
        f(data)
    assert isinstance(f(data.copy()), float)
    with pytest.raises(DataError, match="reached"):
        f(data[:])  # a view of it
    listed = [0.5] * 20
    with pytest.raises(DataError, match="reached"):
        made(lambda x: sum(x) / len(listed), path)(listed)


def test_choosing_gamma_and_m_after_reading_plans_is_paid_for():
    """The reported gamma holds even for a user who changes gamma and m until the estimate is small.

    Each of 2000 simulated users picks the plan with the smallest estimate for its reported gamma, and its
    exact coverage is computed. At most the sum of the risks may fail; false-alarm rate 1e-6.
    """
    from scipy import stats

    from privatize.calibration.sensitivity import Sensitivity
    from privatize.planning.dkw import band

    rng = np.random.default_rng(1)
    first = plan(0.1, 300)
    menu = [plan(g, m) for m in (300, 400, 700, 1500) for g in (0.08, 0.1, 0.15, 0.2, 0.3, 0.5)]
    failures = unpaid = 0
    for _ in range(2000):
        gaps = rng.exponential(size=1500)
        looks = [first]
        best = None
        for chosen in [first, *menu]:
            if chosen not in looks:
                looks.append(chosen)
            value = float(np.partition(gaps[: chosen.m], chosen.k - 1)[chosen.k - 1])
            found = Sensitivity(value, 10, chosen, "l1", 0, 0, 0, gaps[: chosen.m], [], [], _looks=looks)
            uncovered = float(np.exp(-value))
            if best is None or uncovered - chosen.gamma > best[0]:
                best = (uncovered - chosen.gamma, uncovered, found)
        failures += best[1] > best[2].gamma
        unpaid += best[1] > best[2].plan.gamma
    risk = first.rho + 2 * band(300)[0]
    assert stats.binom.sf(failures - 1, 2000, risk) > 1e-6
    # The gamma that was asked for would not have held, so choosing must cost something.
    assert stats.binom.sf(unpaid - 1, 2000, first.rho) < 1e-6


def test_another_store_gets_the_estimate_too(tmp_path):
    """An estimate that is in memory would never be saved in the store that replace() names."""
    made = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), seed=1, store=tmp_path / "one.db")(
        _average
    )
    here = made.estimate(20)
    there = made.replace(store=tmp_path / "two.db").estimate(20)
    assert np.array_equal(here.gaps, there.gaps)
    stored = [Store(tmp_path / name).entries() for name in ("one.db", "two.db")]
    assert [len(entries) for entries in stored] == [1, 1] and stored[0][0]["key"] == stored[1][0]["key"]


def _average(x):
    return float(x.mean())
