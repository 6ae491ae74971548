"""Pairs have the same gaps wherever they are evaluated, and processes are used only where they save time."""

import collections
import concurrent.futures
import contextlib
import copyreg
import dataclasses
import decimal
import fcntl
import itertools
import logging
import marshal
import multiprocessing.pool
import os
import pty
import random
import struct
import subprocess
import sys
import termios
import textwrap
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import multiprocess
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multiprocess.pool import ThreadPool

import privatize as package
from privatize import estimate_sensitivity, plan, privatize, samplers
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.run import Memory
from privatize.data import records
from privatize.errors import ExecutionError, InfiniteSensitivityError, NotReproducibleError, SettingsError
from privatize.execution import choose, span_queue
from privatize.execution.clusters import orders
from privatize.execution.clusters.executors import Mapped, checked
from privatize.execution.job import Cause, Reply, SpanResult
from privatize.execution.span_queue import SpanQueue
from privatize.mechanisms.base import l1
from privatize.outputs.describe import describe
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
ROOT = str(Path(package.__file__).parents[1])
several_cores = pytest.mark.skipif(choose.cores() < 2, reason="one core only")


def estimate(function, workers="inline", n=20, gamma=0.1, seed=1, **rest):
    made = rest.pop("plan", None) or plan(gamma)
    return estimate_sensitivity(
        function,
        n=n,
        sampler=UNIT,
        norm=rest.pop("norm", "l1"),
        plan=made,
        seed=seed,
        workers=workers,
        **rest,
    )


def mean(x):
    return float(x.mean())


def script(code, *args, stdin=None, **rest):
    """Run some code in a fresh process, and return what it printed."""
    done = subprocess.run(
        [sys.executable, *args, *([] if stdin is not None else ["-c", textwrap.dedent(code)])],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""},
        **rest,
    )
    assert done.returncode == 0, done.stderr
    return done


# --- the same everywhere --------------------------------------------------------------------------


def subsample(x):
    rows = np.random.permutation(len(x))[:12]
    return float(x[rows].mean() + random.random() + 0.1 * x[0] * np.random.normal())


def sometimes(x):
    return float(x.mean() + (np.random.random() if x[0] > 0.9 else 0.0))


def blas(x):
    a = np.cos(np.outer(np.arange(300.0), x))
    b = a @ a.T
    return float(np.linalg.norm(b) + np.linalg.solve(b[:20, :20] + np.eye(20), x)[3])


def from_list(x):
    assert type(x) is list and type(x[0]) is float
    return sorted(x)[7] + sum(x)


def failing(x):
    if x[0] > 0.96:
        raise ValueError("too large")
    return float(np.median(x))


def of_mean(data, position, replacement):
    value = data.mean()
    return value, value + (replacement - data[position]) / len(data)


FUNCTIONS = {
    "mean": (mean, {}),
    "random": (subsample, {}),
    "random for some data": (sometimes, {}),
    "blas": (blas, {}),
    "pair": (mean, {"pair": of_mean}),
    "list": (from_list, {"like": records.describe([0.5, 0.25])}),
    "failing": (failing, {}),
    "vector": (lambda x: {"a": np.sort(x)[:3], "b": [x.mean(), x[0]]}, {"norm": "l2"}),
}


class Mapper:
    """Has a map and nothing else, and evaluates the last order first."""

    def map(self, function, items):
        return [function(item) for item in list(items)[::-1]][::-1]


@pytest.fixture(scope="module")
def spawned():
    """Return two processes of the standard library."""
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


class TestTheSameEverywhere:
    @pytest.mark.parametrize("name", FUNCTIONS)
    @pytest.mark.parametrize("where", ["auto", 1, 2, 3, "executor", "map"])
    def test_gaps_are_bit_identical(self, name, where, spawned):
        """An estimate that depends on where it was made cannot be reproduced or remembered."""
        function, more = FUNCTIONS[name]
        workers = {"auto": None, "executor": spawned, "map": Mapper()}.get(where, where)
        expected = estimate(function, **more)
        found = estimate(function, workers, **more)
        assert np.array_equal(found.gaps, expected.gaps)
        assert (found.value, found.failed, found.structure) == (
            expected.value,
            expected.failed,
            expected.structure,
        )

    @pytest.mark.parametrize("where", ["inline", 2, "executor", "map"])
    def test_classes_in_the_output(self, where, spawned):
        """A private function would return another class than the user's if it was calibrated in workers."""
        workers = {"executor": spawned, "map": Mapper()}.get(where, where)
        for raw, kind in ((point, Point), (row, Row)):
            f = privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1, workers=workers, store=None)(raw)
            twin = f.replace(workers="inline")
            here = twin.estimate(20).gaps
            assert f.forget(20) == 1  # or it would be recalled
            assert np.array_equal(f.estimate(20).gaps, here)
            assert type(f(np.full(20, 0.5))) is kind

    @pytest.mark.parametrize("workers", [1, 2])
    def test_lists_through_the_decorator(self, workers):
        """A function of a list is calibrated on lists in workers too."""
        f = privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1, workers=workers, store=None)(from_list)
        assert isinstance(f([0.5] * 20), float)

    @pytest.mark.parametrize("function", [mean, subsample, sometimes, failing])
    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(cuts=st.sets(st.integers(1, 599) | st.sampled_from([255, 256, 257, 511, 512, 513]), max_size=12))
    def test_any_division_into_spans(self, function, cuts):
        """A gap does not depend on the span that it was evaluated in, nor on the order of spans."""
        pairs = evaluator(function, n=20, sampler=UNIT, norm=l1, seed=1)
        expected = pairs.evaluate((0, 600), pairs.learned).gaps
        edges = [0, *sorted(cuts), 600]
        spans = list(itertools.pairwise(edges))
        random.Random(len(cuts)).shuffle(spans)
        other = evaluator(function, n=20, sampler=UNIT, norm=l1, seed=1)
        gaps = np.full(600, np.nan)
        for start, stop in spans:
            gaps[start:stop] = other.evaluate((start, stop), other.learned).gaps
        assert np.array_equal(gaps, expected)

    def test_several_blocks(self):
        """Tasks that span several streams, or parts of them, draw the same records."""
        chosen = plan(0.1, 1500)
        assert np.array_equal(estimate(mean, plan=chosen).gaps, estimate(mean, 2, plan=chosen).gaps)
        assert np.array_equal(estimate(subsample, plan=chosen).gaps, estimate(subsample, 2, plan=chosen).gaps)

    def test_the_callers_generators_are_untouched(self):
        """Calibrating in workers would change the random numbers of the program that calls it."""
        for workers in (2, Mapper()):
            random.seed(5)
            np.random.seed(5)
            before = random.getstate(), np.random.get_state()[1].tobytes()
            estimate(subsample, workers)
            assert before == (random.getstate(), np.random.get_state()[1].tobytes())


Point = collections.namedtuple("Point", "x y")


@dataclass
class Row:
    """A dataclass in an output."""

    low: float
    high: float


def point(x):
    return Point(float(x.mean()), float(np.median(x)))


def row(x):
    return Row(float(np.sort(x)[5]), float(x.mean()))


class Odd(UserWarning):
    """A warning class of the user."""


class TestSurroundings:
    """What a function can read besides its data is the same in workers as in this process."""

    def test_warnings_that_are_errors(self):
        """A function that fails under the user's filters fails in workers too."""

        def warns(x):
            if x[0] > 0.96:
                warnings.warn("large", RuntimeWarning, stacklevel=1)
            return float(x.mean())

        found = estimate(warns, 2)
        assert np.array_equal(found.gaps, estimate(warns).gaps) and found.failed > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = estimate(warns, 2)
            assert np.array_equal(found.gaps, estimate(mean).gaps) and found.failed == 0

    def test_filters_for_the_users_own_warnings(self):
        """A filter for the user's own warning class works in workers too."""

        def warns(x):
            if x[0] > 0.96:
                warnings.warn("large", Odd, stacklevel=1)
            return float(x.mean())

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Odd)
            found = estimate(warns, 2)
            assert np.array_equal(found.gaps, estimate(warns).gaps) and found.failed > 0

    @pytest.mark.parametrize("mode", ["ignore", "raise"])
    def test_floating_point_errors(self, mode):
        """The user's np.seterr holds in workers."""

        def divides(x):
            y = np.array([1.0, 1.0]) / np.array([1.0, 0.0 if x[0] > 0.96 else 1.0])
            return float(x.mean() + 0 * y[0])

        with np.errstate(divide=mode):
            expected = estimate(divides)
            assert (expected.failed > 0) == (mode == "raise")
            assert np.array_equal(estimate(divides, 2).gaps, expected.gaps)

    def test_floating_point_callback(self):
        """The user's np.seterrcall does not make a function fail in workers that works here."""

        def divides(x):
            y = np.array([1.0, 1.0]) / np.array([1.0, 0.0])
            return float(x.mean() + 0 * y[0])

        before = np.seterrcall(lambda *_: None)
        try:
            with np.errstate(divide="call"):
                assert np.array_equal(estimate(divides, 2).gaps, estimate(divides).gaps)
        finally:
            np.seterrcall(before)

    def test_recursion_limit(self):
        """A recursive function for which the user raised the limit does not fail in workers."""

        def deep(x):
            def down(i):
                return 0.0 if i == 0 else down(i - 1)

            return float(x.mean() + down(2500))

        before = sys.getrecursionlimit()
        sys.setrecursionlimit(6000)
        try:
            assert np.array_equal(estimate(deep, 2).gaps, estimate(deep).gaps)
        finally:
            sys.setrecursionlimit(before)

    def test_decimal_precision(self):
        """The user's decimal context holds in workers."""

        def rounded(x):
            return float(decimal.Decimal(float(x.sum())) / 7)

        with decimal.localcontext() as context:
            context.prec = 4
            assert np.array_equal(estimate(rounded, 2).gaps, estimate(rounded).gaps)

    def test_environment(self, monkeypatch):
        """An environment variable that the program sets is seen by workers that already run."""

        def scaled(x):
            return float(x.mean() * float(os.environ.get("PRIVATIZE_TEST_FACTOR", "1")))

        estimate(mean, 2)
        monkeypatch.setenv("PRIVATIZE_TEST_FACTOR", "2")
        assert np.array_equal(estimate(scaled, 2).gaps, estimate(scaled).gaps)

    def test_working_folder(self, tmp_path, monkeypatch):
        """A relative path is the same file in workers, also after the program has changed its folder."""

        def scaled(x):
            return float(x.mean() * float(Path("factor.txt").read_text()))

        for name in ("1", "2"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "factor.txt").write_text(name)
            monkeypatch.chdir(tmp_path / name)
            assert np.array_equal(estimate(scaled, 2).gaps, estimate(scaled).gaps)

    def test_imports_inside_the_function(self):
        """A function that imports what it needs is accepted, whether or not that is loaded already."""
        code = """
        import logging, sys
        import numpy as np
        from privatize import estimate_sensitivity, plan, samplers
        if sys.argv[1] == "loaded":
            import colorsys
        def f(x):
            import colorsys
            return float(x.mean() + 0 * colorsys.ONE_THIRD)
        made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
        print(estimate_sensitivity(f, workers=2, **made).value)
        """
        for state in ("fresh", "loaded"):
            done = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(code), state],
                capture_output=True,
                text=True,
                timeout=300,
                env=os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""},
            )
            assert done.returncode == 0, (state, done.stderr)
            assert float(done.stdout) == estimate(mean).value

    def test_imports_inside_the_function_are_remembered(self, tmp_path):
        """A function that imports what it needs is calibrated once, not at every call with another seed."""
        done = script(
            f"""
            from privatize import privatize, samplers
            def f(x):
                import colorsys
                return float(x.mean() + 0 * colorsys.ONE_THIRD)
            unit = samplers.uniform(0, 1)
            made = dict(epsilon=1, gamma=0.1, sampler=unit, store={str(tmp_path / "a.db")!r})
            seeds = {{privatize(**made)(f).estimate(20).seed for _ in range(3)}}
            print(len(seeds))
            """
        )
        assert done.stdout.split() == ["1"] and done.stderr == ""

    @pytest.mark.parametrize("where", [2, "map", "executor"])
    def test_local_classes(self, where, spawned):
        """A function may use classes that are defined inside another function, as it is."""

        class Total:
            def __init__(self, x):
                self.value = float(x.mean())

        class TooLarge(ValueError):
            pass

        def f(x):
            if x[0] > 0.96:
                raise TooLarge
            return Total(x).value

        found = estimate(f, {"map": Mapper(), "executor": spawned}.get(where, where))
        assert np.array_equal(found.gaps, estimate(f).gaps) and found.failed > 0


STATE = threading.local()


def by_thread(x):
    return float(x.mean()) * getattr(STATE, "factor", 0.01)


class OddPool:
    """Has a map that evaluates in a thread of this process, and a name that does not say so."""

    def map(self, function, items):
        found = []
        for item in items:
            thread = threading.Thread(target=lambda item=item: found.append(function(item)))
            thread.start()
            thread.join()
        return found


class OddExecutor(concurrent.futures.Executor):
    """Has a submit that evaluates in a thread of this process, and a name that does not say so."""

    def submit(self, function, *args):
        """Evaluate in a new thread."""
        future = concurrent.futures.Future()
        thread = threading.Thread(target=lambda: future.set_result(function(*args)))
        thread.start()
        return future


class TestThreads:
    @pytest.mark.parametrize(
        "kind", [concurrent.futures.ThreadPoolExecutor, multiprocessing.pool.ThreadPool, ThreadPool]
    )
    def test_threads_are_refused(self, kind):
        """A thread does not have the state of the caller's thread: the noise was 100 times too small."""
        STATE.factor = 1.0
        try:
            with kind(2) as pool:
                for function in (by_thread, mean):
                    with pytest.raises(SettingsError, match="workers=2"):
                        estimate(function, pool)
                with pytest.raises(SettingsError, match="threads"):
                    privatize(epsilon=1, gamma=0.1, sampler=UNIT, workers=pool)(mean)
        finally:
            del STATE.factor

    @pytest.mark.parametrize("pool", [OddPool(), OddExecutor()], ids=["map", "submit"])
    def test_threads_under_another_name_are_refused(self, pool):
        """An executor with another name that runs in threads would give too little noise as well."""
        with pytest.raises(ExecutionError, match=r"threads of this process.*workers=2"):
            estimate(mean, pool)

    def test_threads_of_other_processes_are_not_used(self, monkeypatch, tmp_path):
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
            while orders._pools:
                orders._pools.pop().close()
        assert np.array_equal(found.gaps, estimate(mean).gaps)
        seen = {path.name for path in Path(folder).iterdir()}
        # Some pairs are evaluated again in the caller's thread of this process.
        assert all(name.startswith("True") for name in seen) and len(seen) == 2

    @pytest.mark.slow
    def test_a_function_that_calibrates_another(self):
        """A function that calibrates another one inside would wait for a lock forever."""

        def inner(x):
            return float(x.mean())

        def outer(x):
            return float(x.mean()) * estimate(inner, n=5).value

        assert estimate(outer).value == estimate(outer, 2).value

    @pytest.mark.parametrize("below", [0.95, 0.6])
    @pytest.mark.parametrize("m", [22, 219])
    def test_a_difference_in_workers_is_found(self, below, m):
        """A function whose gaps are too small in workers, on some data only, would get too little noise."""
        here = os.getpid()

        def differs(x):
            quiet = os.getpid() != here and below > x[:-2].mean() > 0.5
            return float(x.mean()) * (0.01 if quiet else 1)

        with pytest.raises(NotReproducibleError, match="the process it runs in"):
            estimate(differs, 2, plan=plan(0.2, m))


class TestAuto:
    def test_a_cheap_function_starts_no_processes(self):
        """A mean of a few records would wait until a pool of processes has started."""
        done = script(
            """
            import itertools, sys, types, psutil
            import numpy as np
            from privatize import estimate_sensitivity, plan, samplers
            from privatize.calibration.evaluators import base
            # A clock that advances by 10 microseconds whenever it is read.
            base.time = types.SimpleNamespace(perf_counter=itertools.count(0.0, 1e-5).__next__)
            made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.05), seed=1)
            estimate_sensitivity(np.mean, **made)
            children = psutil.Process().children(recursive=True)
            print("multiprocess" in sys.modules, len(children))
            """
        )
        assert done.stdout.split() == ["False", "0"]

    @several_cores
    def test_an_expensive_function_gets_all_cores(self):
        """A slow function would run on one core by default, or have other gaps on several cores."""
        done = script(
            """
            import sys, time, psutil
            from privatize import estimate_sensitivity, plan, samplers
            def slow(x):
                time.sleep(0.01)
                return float(x.mean())
            made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
            found = estimate_sensitivity(slow, **made)
            print(repr(found.value), len(psutil.Process().children(recursive=True)) > 2)
            """
        )
        assert done.stdout.split() == [repr(estimate(mean).value), "True"]

    @several_cores
    def test_processes_start_in_the_middle_of_a_run(self, monkeypatch, caplog):
        """Pairs would be missing or evaluated twice when a run moves on to processes."""
        monkeypatch.setattr(choose, "_START", 0.0)
        monkeypatch.setattr(choose, "_WARM", 0.0)
        caplog.set_level(logging.INFO, "privatize.execution")
        for function in (mean, subsample, failing):
            found = estimate(function, None, plan=plan(0.1, 1000))
            assert np.array_equal(found.gaps, estimate(function, plan=plan(0.1, 1000)).gaps)
        assert caplog.text.count("pairs are left") == 3

    @several_cores
    def test_functions_that_cannot_be_sent_run_inline(self, monkeypatch, tmp_path, caplog):
        """A function with an open file works by default, and is refused if processes were asked for."""
        monkeypatch.setattr(choose, "_START", 0.0)
        monkeypatch.setattr(choose, "_WARM", 0.0)
        caplog.set_level(logging.INFO, "privatize.execution")
        numbers = (i for i in range(3))
        with (tmp_path / "open.txt").open("w") as file:
            for function in (
                lambda x: float(x.mean() + 0 * file.fileno()),
                lambda x: float(x.mean() + 0 * len(str(type(numbers)))),
            ):
                caplog.clear()
                assert np.array_equal(estimate(function, None).gaps, estimate(mean).gaps)
                assert "inline" in caplog.text
                with pytest.raises(ExecutionError, match="inline"):
                    estimate(function, 2)

    @several_cores
    def test_imports_inside_the_function(self, monkeypatch, caplog):
        """A function that imports what it needs is not left on one core."""
        monkeypatch.setattr(choose, "_START", 0.0)
        monkeypatch.setattr(choose, "_WARM", 0.0)

        def imports(x):
            import zipapp

            return float(x.mean() + 0 * len(zipapp.__name__))

        with caplog.at_level(logging.INFO, "privatize.execution"):
            estimate(imports, None)
        assert "pairs are left" in caplog.text and "on one core" not in caplog.text


class TestSpanQueue:
    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(data=st.data())
    def test_every_missing_pair_exactly_once(self, data):
        """No pair is evaluated twice at the same time, none is forgotten, whatever happens to workers."""
        known = data.draw(st.lists(st.booleans(), min_size=1, max_size=400))
        missing, at = [], None
        for i, unknown in enumerate([*known, False]):
            if unknown and at is None:
                at = i
            if not unknown and at is not None:
                missing.append((at, i))
                at = None
        wanted = {i for start, stop in missing for i in range(start, stop)}
        structure = data.draw(st.sampled_from([None, describe(0.0)]))
        work = SpanQueue(list(missing), data.draw(st.integers(1, 64)), structure)
        workers = data.draw(st.integers(1, 5))
        running, done, steps = [], set(), 0
        while True:
            while len(running) < workers and (span := work.next(workers, len(running))) is not None:
                assert span[0] < span[1]
                taken = set(range(*span))
                assert taken <= wanted - done
                assert not any(taken & set(range(*other)) for other in running)
                if work.learned.structure is None:
                    assert len(taken) == 1 and not running
                running.append(span)
            inside = sum(stop - start for start, stop in running)
            assert work.left + inside + len(done) == len(wanted) or work._again
            if not running:
                break
            steps += 1
            span = running.pop(data.draw(st.integers(0, len(running) - 1)))
            fate = data.draw(st.sampled_from(["found", "found", "found", "back", "lost", "again"]))
            if fate == "found" or steps > 300:
                cost = data.draw(st.sampled_from([1e-7, 1e-3, 0.2, 5.0]))
                size = span[1] - span[0]
                works = data.draw(st.booleans()) or steps > 300
                work.learn(SpanResult(span[0], np.zeros(size), cost * size, describe(0.0) if works else None))
                done |= set(range(*span))
            elif fate == "back":
                work.back(*span)
            elif fate == "again":
                work.again(*span)
            else:
                index = data.draw(st.integers(span[0], span[1] - 1))
                work.back(span[0], index)
                work.back(index + 1, span[1])
                done.add(index)
        assert done == wanted and work.left == 0

    def test_sizes_follow_the_cost(self, monkeypatch):
        """Quick pairs come in large tasks, slow ones alone, and tasks shrink at the end to keep all busy."""
        monkeypatch.setattr(span_queue, "_TASK", 0.3)
        quick, slow = (SpanQueue([(0, 10_000)], 256, describe(0.0)) for _ in range(2))
        for work, cost in ((quick, 1e-6), (slow, 1.0)):
            sizes = []
            while (span := work.next(2)) is not None and len(sizes) < 200:
                sizes.append(span[1] - span[0])
                work.learn(SpanResult(span[0], np.zeros(sizes[-1]), cost * sizes[-1], describe(0.0)))
            assert sizes[0] == 1
            assert max(sizes) == 1 if work is slow else max(sizes) >= 1000
            if work is quick:
                assert sizes[-1] < 100 and sum(sizes) == 10_000

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.integers(1, 5000), st.integers(1, 300), st.floats(1e-8, 1e-2), st.integers(1, 8))
    def test_tasks_end_where_streams_do(self, total, block, cost, workers):
        """A task that reaches the end of a stream stops there, so that no draw is wasted."""
        work = SpanQueue([(0, total)], block, describe(0.0))
        while (span := work.next(workers)) is not None:
            start, stop = span
            assert stop == total or stop % block == 0 or start // block == (stop - 1) // block
            work.learn(SpanResult(start, np.zeros(stop - start), cost * (stop - start), describe(0.0)))


class TestResume:
    @staticmethod
    def memory(gaps, structure, saved):
        return Memory(
            gaps=gaps,
            structure=structure,
            looks=[plan(0.1)],
            save=lambda start, found, kind: saved.append((start, found.copy())),
            note=lambda _: None,
        )

    @pytest.mark.parametrize("where", ["inline", None, 2, "map"])
    def test_only_missing_pairs_are_evaluated(self, where):
        """Pairs that an interrupted run has evaluated would be evaluated and saved again."""
        full = estimate(mean)
        missing = np.random.default_rng(1).random(full.m) < 0.3
        missing[100:150] = True
        known = np.where(missing, np.nan, full.gaps)
        saved = []
        memory = self.memory(known, full.structure, saved)
        workers = Mapper() if where == "map" else where
        found = estimate(mean, workers, memory=memory)
        assert np.array_equal(found.gaps, full.gaps)
        indices = [i for start, gaps in saved for i in range(start, start + len(gaps))]
        assert sorted(indices) == np.flatnonzero(missing).tolist()
        for start, gaps in saved:
            assert np.array_equal(gaps, full.gaps[start : start + len(gaps)])

    def test_no_missing_pair_starts_nothing(self):
        """A stored estimate would be sent to workers, although no pair is missing."""
        full = estimate(mean)
        saved = []
        memory = self.memory(full.gaps.copy(), full.structure, saved)
        assert np.array_equal(estimate(mean, 2, memory=memory).gaps, full.gaps) and saved == []

    def test_lost_pairs_are_an_error(self, monkeypatch):
        """If an executor loses pairs, the estimate would be from fewer pairs than the plan needs."""

        class Forgetful(choose.Inline):
            def run(self, task, work):
                for i, found in enumerate(super().run(task, work)):
                    if i != 1:
                        yield found

        monkeypatch.setattr("privatize.calibration.run.executor", lambda *_: Forgetful())
        with pytest.raises(ExecutionError, match="not evaluated"):
            estimate(mean)

    def test_gaps_before_a_failure_are_saved(self):
        """The gaps of a run that ends in an error would have to be measured again."""
        saved = []
        memory = self.memory(np.full(0, np.nan), None, saved)

        def late(x):
            if x[3] > 0.7:
                raise ValueError("no")
            return float(x.mean())

        with pytest.raises(InfiniteSensitivityError):
            estimate(late, 2, memory=memory)
        assert sum(len(gaps) for _, gaps in saved) > 10


class TestProgress:
    SLOW = """
    import sys, time
    import numpy as np
    from privatize import privatize, samplers
    def slow(x):
        time.sleep(float(sys.argv[2]))
        return float(x.mean())
    shown = {"True": True, "False": False, "None": None}[sys.argv[1]]
    f = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), seed=1, store=None, progress=shown,
                  workers="inline")(slow)
    f(np.full(20, 0.12345678))
    print("done")
    """

    def run(self, progress, pause, **rest):
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(self.SLOW), progress, pause],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": "", "COLUMNS": "100"},
            **rest,
        )

    @pytest.mark.parametrize(("progress", "shown"), [("True", True), ("None", False)])
    def test_on_a_pipe(self, progress, shown):
        """A log file gets a bar only if it was asked for, and stdout never does."""
        out, err = self.run(progress, "0.001" if shown else "0.003", stderr=subprocess.PIPE).communicate(
            timeout=300
        )
        assert out == b"done\n" and b"0.1234" not in err
        assert (b"/219" in err) == shown and (b" pairs/s" in err) == shown
        assert shown or err == b""

    @pytest.mark.parametrize(("progress", "shown"), [("None", True), ("False", False)])
    def test_on_a_terminal(self, progress, shown):
        """A user who waits for more than a second would not see the progress, or the bar would show data."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        process = self.run(progress, "0.004" if shown else "0.003", stderr=theirs)
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 4096):
                seen += part
        out, _ = process.communicate(timeout=300)
        os.close(ours)
        assert out == b"done\n" and b"0.1234" not in seen
        assert (b"/219" in seen and b" pairs/s" in seen and b"slow" in seen) == shown
        assert shown or seen == b""

    @pytest.mark.parametrize("progress", ["True", "None"])
    def test_without_a_stderr(self, progress):
        """A program without a stderr, such as a service, could not calibrate."""
        done = subprocess.run(
            [
                "sh",
                "-c",
                f'exec "{sys.executable}" -c "$0" {progress} 0.0001 2>&-',
                textwrap.dedent(self.SLOW),
            ],
            stdout=subprocess.PIPE,
            timeout=300,
            env=os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""},
        )
        assert done.returncode == 0 and done.stdout == b"done\n"

    def test_the_bar_of_a_resumed_run(self, capsys):
        """The bar of a resumed run would begin at 0."""
        full = estimate(mean)
        known = full.gaps.copy()
        known[150:] = np.nan
        memory = TestResume.memory(known, full.structure, [])
        estimate(mean, memory=memory, progress=True)
        shown = capsys.readouterr().err
        assert "150/219" in shown and " 0/219" not in shown


class TestSettings:
    @for_each("bad", [0, -1, True, False, 1.5, "two", "", object(), [], {}, int, b"inline", ()])
    def test_workers(self, bad):
        """A wrong workers= is refused with its value, before anything is evaluated."""
        with pytest.raises(SettingsError, match="workers="):
            estimate(pytest.fail, bad)
        with pytest.raises(SettingsError, match="workers="):
            privatize(epsilon=1, gamma=0.1, sampler=UNIT, workers=bad)(mean)

    @for_each("bad", [0, -1, float("nan"), float("inf"), "x", "5", True, [], b"5", 1j])
    def test_timeout(self, bad):
        """A wrong timeout= is refused with its value, before anything is evaluated."""
        with pytest.raises(SettingsError, match="timeout="):
            estimate(pytest.fail, 2, timeout=bad)
        with pytest.raises(SettingsError, match="timeout="):
            privatize(epsilon=1, gamma=0.1, sampler=UNIT, timeout=bad)(mean)

    def test_timeout_inline(self):
        """A time limit that cannot be enforced would be ignored."""
        with pytest.raises(SettingsError, match="timeout="):
            estimate(pytest.fail, "inline", timeout=5)

    @pytest.mark.parametrize("good", [1, np.float64(2.5), decimal.Decimal(3), 1e300])
    def test_good_timeouts(self, good):
        """Any number of seconds will do."""
        assert np.array_equal(estimate(mean, 2, timeout=good).gaps, estimate(mean).gaps)

    def test_numpy_integers_are_numbers_of_processes(self):
        """A number of workers that numpy has computed would be refused."""
        assert np.array_equal(estimate(mean, np.int64(2)).gaps, estimate(mean).gaps)


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


def test_a_reply_does_not_depend_on_pickle(monkeypatch):
    """A function that registers a reducer for arrays in a worker would change its own gaps on the way."""
    monkeypatch.setitem(copyreg.dispatch_table, np.ndarray, lambda array: (np.zeros, (array.shape,)))
    cause = Cause.of(4, ValueError("no"))
    found = SpanResult(
        *(
            3,
            np.array([1.0, np.inf]),
            np.float64(0.5),
            describe({"a": 1.0}),
            np.True_,
            cause,
            np.float64(1e-9),
        ),
        {np.int64(3): np.ones(2)},
    )
    reply = Reply.to(lambda: [found])
    [read] = Reply(*marshal.loads(marshal.dumps(list(vars(reply).values())))).read()
    assert read.gaps.tolist() == [1.0, np.inf] and read.coordinate_gaps[3].tolist() == [1.0, 1.0]
    assert (read.start, read.structure, read.uses_global_rng) == (3, found.structure, True)
    assert read.cause.kind == "raised" and "ValueError: no" in read.cause.trace


@pytest.mark.parametrize("spans", [[(0, 2)], [(1, 4)], [(0, 2), (1, 3)], [(0, 3), (3, 4)], []])
def test_results_of_other_pairs_are_refused(spans):
    """Gaps of other pairs would be stored for those that were ordered."""
    results = [SpanResult(start, np.zeros(stop - start), 0.0) for start, stop in spans]
    with pytest.raises(ExecutionError, match="gaps of other pairs"):
        checked(results, (0, 3))
    fine = [SpanResult(1, np.zeros(2), 0.0), SpanResult(0, np.zeros(1), 0.0)]
    assert checked(fine, (0, 3)) == fine
