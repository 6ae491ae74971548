"""Executors that need no other library pass the tests that all executors share."""

import collections
import concurrent.futures
import itertools
import multiprocessing
import multiprocessing.pool
import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize import plan, privatize
from privatize.calibration.evaluators.choose import evaluator
from privatize.data import records
from privatize.mechanisms.base import l1
from tests.execution.contract import Failures, LostWorkers, Replies, SameGaps
from tests.execution.evaluated import UNIT, Mapper, estimate, failing


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


def mean(x):
    return float(x.mean())


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
