"""The tests that all executors share: what each of them must do, wherever it evaluates pairs.

A test module derives from these classes and has a fixture `workers`: what a user passes as `workers=`.
"""

import contextlib
import importlib
import math
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import privatize as package
from privatize import Laplace, estimate_sensitivity, plan, privatize, samplers, sums
from privatize.calibration.evaluators.joint import Joint
from privatize.calibration.norms import NORMS
from privatize.errors import (
    ExecutionError,
    InfiniteSensitivityError,
    NotReproducibleError,
    OutputError,
    PrivatizeError,
)
from privatize.execution.job import Reply, SpanResult
from privatize.storage.estimates import open_store

UNIT = samplers.uniform(0, 1)
FACTOR = 1.0


def estimate(function, workers="inline", n=50, sampler=UNIT, norm="l1", gamma=0.05, seed=1, **rest):
    return estimate_sensitivity(
        function, n=n, sampler=sampler, norm=norm, plan=plan(gamma=gamma), seed=seed, workers=workers, **rest
    )


def check(function, workers, **settings):
    """Compare every gap with that of the same index, evaluated in this process."""
    there = estimate(function, workers, **settings)
    settings.pop("timeout", None)
    here = estimate(function, **settings)
    assert np.array_equal(there.gaps, here.gaps)
    assert there.value == here.value and there.structure == here.structure
    return there


# --- functions ------------------------------------------------------------------------------------


def scaled(x):
    return float(FACTOR * x.mean())


def subsample(x):
    return float(x[np.random.permutation(len(x))[:10]].mean() + np.random.normal())


def solved(x):
    a = np.outer(x, x) + np.eye(len(x))
    return np.linalg.solve(a @ a, x)


def mean_pair(x, position, replacement):
    total = x.sum()
    return float(total / len(x)), float((total - x[position] + replacement) / len(x))


def plain_mean(x):
    return float(x.mean())


class UnpicklableError(Exception):
    def __init__(self, a, b):
        super().__init__(lambda: (a, b))
        self.lock = threading.Lock()


def harmful(how, below=0.01):
    """Make a function that fails, as `how` says, on about one pair in a hundred."""

    def f(x):
        if x[0] < below:
            if how == "raise":
                raise ValueError("as public data may")
            if how == "unpicklable":
                raise UnpicklableError(1, 2)
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "exit":
                os._exit(3)
            if how == "sleep":
                time.sleep(1e6)
            if how == "system exit":
                sys.exit(1)
        return float(x.mean())

    return f


def breaking_elsewhere():
    """Make a sampler that works in this process only."""
    here = os.getpid()

    def drawn(n, rng):
        if os.getpid() != here:
            raise RuntimeError("no such file there")
        return rng.random(n)

    return samplers.from_function(drawn)


def noted(file, pause):
    """Make a function that takes a while, and writes its process id to a file."""

    def f(x):
        if file:
            with Path(file).open("a") as out:
                out.write(f"{os.getpid()}\n")
        time.sleep(pause)
        return float(x.mean())

    return f


@contextlib.contextmanager
def killing(file, evaluations, choose):
    """Kill one of the processes in a file once it has so many lines."""
    killed, stop = [], threading.Event()

    def task():
        while not stop.wait(0.005):
            pids = [int(line) for line in file.read_text().split()] if file.exists() else []
            pids = [pid for pid in pids if pid != os.getpid()]
            if len(pids) >= evaluations:
                killed.append(choose(pids))
                os.kill(killed[0], signal.SIGKILL)
                return

    thread = threading.Thread(target=task)
    thread.start()
    try:
        yield killed
    finally:
        stop.set()
        thread.join()


def module(tmp_path, monkeypatch, name, text):
    """Write a module that only this process has a path to, and import it."""
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return importlib.import_module(name)


# --- the same gaps --------------------------------------------------------------------------------


class SameGaps:
    """What holds wherever pairs are evaluated."""

    @pytest.mark.parametrize("function", [np.mean, plain_mean, subsample, solved], ids=lambda f: f.__name__)
    def test_same_gaps_as_inline(self, workers, function):
        """An estimate would depend on where it was made, so somebody could repeat it until it is small."""
        check(function, workers)

    def test_pair(self, workers):
        """`pair=` would be worth nothing where the pairs are expensive enough for a cluster."""
        check(plain_mean, workers, pair=mean_pair)

    def test_sums_over_records(self, workers):
        """Sums over records would have other gaps there than here."""
        check(sums.histogram([0, 0.2, 1]), workers, n=5000)
        check(sums.kde([0.0, 0.5, 1.0], 0.1), workers, n=5000)

    def test_weights(self, workers):
        """Weights that workers have learned would be missing here, or differ from those learned here."""

        def facts(x):
            return [float(x.mean()), 1000 * float(x[0])]

        found = check(facts, workers, scaled=Laplace(scaled="relative"))
        assert found.shape.powers[0] < found.shape.powers[1] == 0

    def test_many_functions_together(self, workers):
        """A catalogue's estimates would depend on where they were made, and on what its members do there."""

        def smallest(x):
            x.sort()
            return x[0]

        functions = plain_mean, subsample, smallest, solved
        labels = "mean", "subsample", "smallest", "solved"
        check(Joint(functions, (NORMS["l1"],) * 4, labels, (-90, 0, -60, -8)), workers)

    def test_large_datasets(self, workers):
        """Pairs that share no stream with others would be drawn wrongly when spans are divided again."""
        check(plain_mean, workers, n=100_000, gamma=0.1)

    def test_lists(self, workers):
        """Functions of lists of records could not be calibrated on a cluster."""
        rows = samplers.from_function(lambda n, rng: [{"a": v} for v in rng.random(n).tolist()])
        check(lambda records: sum(r["a"] for r in records), workers, sampler=rows)

    def test_closures_and_lambdas(self, workers):
        """Functions that exist in a notebook only could not be calibrated on a cluster."""
        offset = np.arange(3.0)

        def local(x):
            return x[:3] * 2 + offset

        check(local, workers)
        check(lambda x: float(local(x).sum()), workers)

    def test_local_classes(self, workers):
        """Models that are defined within a function, as in tests, could not be calibrated on a cluster."""

        class Model:
            def __init__(self, weight):
                self.weight = weight

            def __call__(self, x):
                return x[:3] * self.weight

        check(lambda x: Model(2.0)(x), workers)
        check(Model(3.0), workers, norm="l2")

    def test_globals_changed_at_run_time(self, workers, monkeypatch):
        """A worker would evaluate the module as it is on disk, not as it is in this process."""
        before = check(scaled, workers)
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", 4.0)
        assert np.array_equal(check(scaled, workers).gaps, 4 * before.gaps)

    def test_edited_and_reloaded(self, workers, tmp_path, monkeypatch):
        """After an edit and a reload in a notebook, workers would go on with the old function."""
        text = "SCALE = {}\n\n\ndef f(x):\n    return float(SCALE * x.mean())\n"
        name = f"privatize_{tmp_path.name}"
        edited = module(tmp_path, monkeypatch, name, text.format("1.0"))
        before = check(edited.f, workers)
        (tmp_path / f"{name}.py").write_text(text.format("2.0 + 6.0"))
        importlib.reload(edited)
        assert np.array_equal(check(edited.f, workers).gaps, 8 * before.gaps)

    def test_imported_when_run_then_edited(self, workers, tmp_path, monkeypatch):
        """A worker that has imported a module once would go on with its old version after an edit."""
        name = f"privatize_{tmp_path.name}"
        edited = module(tmp_path, monkeypatch, name, "SCALE = 1.0\n")
        scope = {"__name__": __name__}
        exec(f"def f(x):\n    from {name} import SCALE\n    return float(SCALE * x.mean())\n", scope)
        f = scope["f"]
        check(f, workers)
        (tmp_path / f"{name}.py").write_text("SCALE = 2.0 + 6.0\n")
        importlib.reload(edited)
        with contextlib.suppress(ExecutionError):
            check(f, workers)

    def test_decorator_and_configure(self, workers):
        """The cluster would be used by `estimate_sensitivity` only, which few people call."""
        promise = {"epsilon": 1, "gamma": 0.05, "sampler": UNIT, "seed": 1, "store": None}
        here = privatize(**promise, workers="inline")(subsample).estimate(50)
        given = privatize(**promise, workers=workers)(subsample)
        open_store("memory").forget()
        assert np.array_equal(given.estimate(50).gaps, here.gaps)
        assert math.isfinite(given(np.linspace(0, 1, 50)))
        open_store("memory").forget()
        package.configure(workers=workers)
        try:
            assert np.array_equal(privatize(**promise)(subsample).estimate(50).gaps, here.gaps)
        finally:
            package.configure(workers=None)

    def test_several_at_once(self, workers):
        """Calibrations that share a cluster would get each other's gaps."""
        asked = {f"{n}": n for n in (20, 30, 40)}
        found = {}

        def task(name, n):
            found[name] = estimate(subsample, workers, n=n).gaps

        threads = [threading.Thread(target=task, args=item) for item in asked.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, n in asked.items():
            assert np.array_equal(found[name], estimate(subsample, n=n).gaps)

    def test_lists_as_private_data(self, workers):
        """A function that is called with a list would be calibrated on arrays on the cluster."""
        promise = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT, "seed": 1, "store": None, "workers": workers}

        def f(x):
            return sum(x + [0.0]) / len(x)  # noqa: RUF005 - an array would be another thing

        assert math.isfinite(privatize(**promise)(f)(np.linspace(0, 1, 50).tolist()))

    def test_settings_of_numpy_are_those_of_this_run(self, workers):
        """A worker would treat floating-point errors as in an earlier run, and count pairs that fail here."""

        def f(x):
            rare = np.arctan(np.float64(1) / np.float64(x[0] > 0.01))  # division by zero, without effect
            return float(x.mean() + 0 * rare)

        with np.errstate(all="ignore"):
            lenient = check(f, workers)
        with np.errstate(all="raise"):
            strict = check(f, workers)
        assert lenient.failed == 0 < strict.failed

    def test_a_large_closure(self, workers):
        """A function with a large table would give warnings, or fail where warnings are errors."""
        table = np.arange(3_000_000.0)
        check(lambda x: float(x.mean() + table[int(x[0] * 1000)]), workers, gamma=0.2)


# --- lost workers ---------------------------------------------------------------------------------


class LostWorkers:
    """What holds where a process may end and the others go on."""

    def test_killed_from_outside(self, workers, tmp_path):
        """A machine that is switched off would cost hours of calibration, or change the estimate."""
        file = tmp_path / "pids"
        with killing(file, 20, lambda pids: pids[-1]) as killed:
            there = estimate(noted(str(file), 0.02), workers, gamma=0.2)
        assert killed
        self.at_most_one_infinite(there, estimate(noted("", 0), gamma=0.2))
        check(plain_mean, workers)

    def test_killed_with_a_timeout(self, workers, tmp_path):
        """The out-of-memory killer, which ends the process that evaluates, would cost more than its pair."""
        file = tmp_path / "pids"
        with killing(file, 20, lambda pids: pids[-1]) as killed:
            there = estimate(noted(str(file), 0.02), workers, gamma=0.2, timeout=60)
        assert killed
        self.at_most_one_infinite(there, estimate(noted("", 0), gamma=0.2))

    @staticmethod
    def at_most_one_infinite(there, here):
        other = there.gaps != here.gaps
        assert other.sum() <= 1 and np.isinf(there.gaps[other]).all()

    @pytest.mark.parametrize("how", ["kill", "exit"])
    def test_functions_that_end_their_worker(self, workers, how):
        """A crash in compiled code on some data would end or hang the run, or its pair would be missing."""
        here = estimate(harmful("raise"))
        there = estimate(harmful(how), workers)
        assert 1 <= here.failed == there.failed and np.array_equal(there.gaps, here.gaps)
        check(plain_mean, workers)

    def test_functions_that_always_end_their_worker(self, workers):
        """A function that crashes on all data would be tried on a cluster until no worker is left."""
        with pytest.raises((InfiniteSensitivityError, ExecutionError)):
            estimate(harmful("kill", below=2), workers, gamma=0.2)
        check(plain_mean, workers)

    @pytest.mark.slow
    def test_functions_that_hang(self, workers):
        """An endless loop on some data would stop the run, in spite of `timeout=`."""
        here = estimate(harmful("raise", below=0.005))
        there = estimate(harmful("sleep", below=0.005), workers, timeout=20)
        assert 1 <= here.failed == there.failed and np.array_equal(there.gaps, here.gaps)


# --- what goes wrong ------------------------------------------------------------------------------


class Failures:
    """What holds wherever pairs are evaluated in other processes."""

    def import_there(self, workers, folder, name):
        """Import a module in the workers' own processes, if a subclass can do that."""

    @pytest.mark.parametrize("how", ["unpicklable", "system exit", "raise"])
    def test_exceptions_are_infinite_gaps(self, workers, how):
        """Pairs that fail would be missing, and the estimate too small; or they would end the worker."""
        here = estimate(harmful("raise"))
        for rest in ({}, {"timeout": 60}):
            there = estimate(harmful(how), workers, **rest)
            assert np.array_equal(there.gaps, here.gaps) and there.failed == here.failed >= 1

    def test_the_error_has_the_first_cause(self, workers):
        """Nobody would learn why a function fails in a worker, and in which line."""
        with pytest.raises(InfiniteSensitivityError, match="ValueError: as public data may") as caught:
            estimate(harmful("raise", below=0.5), workers)
        assert "in f" in str(caught.value.__cause__)

    def test_outputs_that_cannot_be_released(self, workers):
        """The error for a function that returns text would say that it crashes."""
        with pytest.raises(OutputError):
            estimate(lambda x: "text", workers)

    def test_not_reproducible(self, workers):
        """A function of the clock would be calibrated as if it were a function of its data."""
        with pytest.raises(NotReproducibleError):
            estimate(lambda x: float(x.mean() + time.time_ns() % 1000), workers)

    def test_functions_of_the_process(self, workers):
        """A function that returns something else in other processes would be calibrated for those."""
        with pytest.raises(NotReproducibleError):
            estimate(lambda x: float(x.mean() * os.getpid()), workers)

    def test_samplers_that_raise(self, workers):
        """A sampler that breaks on a worker only would be reported as a function that fails."""
        with pytest.raises(PrivatizeError, match="no such file there"):
            estimate(plain_mean, workers, sampler=breaking_elsewhere())
        check(plain_mean, workers)

    def test_samplers_that_raise_are_not_remembered(self, workers):
        """A file that a worker lacks would be stored as a failure of the function, forever."""
        promise = {
            "epsilon": 1,
            "gamma": 0.2,
            "sampler": breaking_elsewhere(),
            "seed": 1,
            "store": None,
            "version": "1",
        }
        with pytest.raises(PrivatizeError, match="no such file there"):
            privatize(**promise, workers=workers)(plain_mean).estimate(50)
        assert privatize(**promise, workers="inline")(plain_mean).estimate(50).failed == 0

    @pytest.mark.parametrize("rest", [{}, {"timeout": 60}], ids=["no timeout", "timeout"])
    @pytest.mark.parametrize("way", ["statement", "import_module", "sys.modules"])
    def test_modules_that_differ_are_refused(self, workers, tmp_path, monkeypatch, way, rest):
        """A module that was changed here but not there would give a wrong sensitivity, perhaps too small."""
        name = f"privatize_{tmp_path.name}_{way.replace('.', '_')}_{len(rest)}"
        changed = module(tmp_path, monkeypatch, name, "SCALE = 1.0\n")
        self.import_there(workers, str(tmp_path), name)
        changed.SCALE = 2.0
        made = {
            "statement": f"import {name} as m",
            "import_module": f"import importlib; m = importlib.import_module({name!r})",
            "sys.modules": f"import sys; m = sys.modules[{name!r}]",
        }
        # For some data only, so that measuring a pair or two again here would not show it.
        text = f"def f(x):\n    {made[way]}\n    return float(x.mean() * (m.SCALE if x[0] < 0.02 else 1.0))\n"
        scope = {"__name__": __name__}
        exec(text, scope)
        here = estimate(scope["f"])
        with contextlib.suppress(ExecutionError):
            there = estimate(scope["f"], workers, **rest)
            assert np.array_equal(there.gaps, here.gaps)

    def test_closures_that_cannot_be_sent(self, workers, tmp_path):
        """An open file in a closure would give a traceback of pickle, or hang."""
        with (tmp_path / "file").open("w") as file, pytest.raises(ExecutionError, match="workers='inline'"):
            estimate(lambda x: float(x.mean() + file.tell()), workers)


# --- replies --------------------------------------------------------------------------------------


class Replies:
    """What comes back from other processes."""

    def test_replies_have_gaps_only(self, workers, monkeypatch):
        """Outputs or records of every pair would be sent, and stored by the cluster; of 64 they are."""
        seen = []
        read = Reply.read

        def spy(reply):
            seen.append(reply)
            return read(reply)

        monkeypatch.setattr(Reply, "read", spy)
        found = estimate(lambda x: x[:40] + 5.0, workers)
        assert {reply.status for reply in seen} == {"found"}
        parts = [SpanResult.of(facts) for reply in seen for facts in reply.results]
        assert sum(len(part.gaps) for part in parts) == found.m
        for part in parts:
            assert part.gaps.ndim == 1 and part.gaps.dtype == np.float64
            assert part.cause is None and part.structure == found.structure
            assert all(answer.shape == (40,) for answer in part.answers.values())
            assert len(pickle.dumps(part.facts())) < 1000 + 8 * len(part.gaps) + 400 * len(part.answers)
        assert 32 <= sum(len(part.answers) for part in parts) <= 64
