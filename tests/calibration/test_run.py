"""A run evaluates only the pairs that are missing, saves what it has measured, and learns weights."""

import logging

import numpy as np
import pytest

from privatize import Laplace
from privatize.errors import ExecutionError, InfiniteSensitivityError
from privatize.execution import choose
from privatize.storage.estimates import Store
from tests.execution.evaluated import Mapper, estimate, memory
from tests.mechanisms.scaled import private


def mean(x):
    return float(x.mean())


class TestResume:
    @pytest.mark.parametrize("where", ["inline", None, 2, "map"])
    def test_only_missing_pairs_are_evaluated(self, where):
        """Pairs that an interrupted run has evaluated would be evaluated and saved again."""
        full = estimate(mean)
        missing = np.random.default_rng(1).random(full.m) < 0.3
        missing[100:150] = True
        known = np.where(missing, np.nan, full.gaps)
        saved = []
        kept = memory(known, full.structure, saved)
        workers = Mapper() if where == "map" else where
        found = estimate(mean, workers, memory=kept)
        assert np.array_equal(found.gaps, full.gaps)
        indices = [i for start, gaps in saved for i in range(start, start + len(gaps))]
        assert sorted(indices) == np.flatnonzero(missing).tolist()
        for start, gaps in saved:
            assert np.array_equal(gaps, full.gaps[start : start + len(gaps)])

    def test_no_missing_pair_starts_nothing(self):
        """A stored estimate would be sent to workers, although no pair is missing."""
        full = estimate(mean)
        saved = []
        kept = memory(full.gaps.copy(), full.structure, saved)
        assert np.array_equal(estimate(mean, 2, memory=kept).gaps, full.gaps) and saved == []

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
        kept = memory(np.full(0, np.nan), None, saved)

        def late(x):
            if x[3] > 0.7:
                raise ValueError("no")
            return float(x.mean())

        with pytest.raises(InfiniteSensitivityError):
            estimate(late, 2, memory=kept)
        assert sum(len(gaps) for _, gaps in saved) > 10


SPY = logging.getLogger("tests.scaling")


def test_weights_come_from_pairs_of_their_own():
    """Weights that saw the calibration's pairs would make its gaps look smaller than they are."""
    seen = []
    SPY.first = seen

    def spied(data):
        logging.getLogger("tests.scaling").first.append(float(data[:, 1].sum()))
        return data.mean(axis=0)

    private(spied).estimate(50)
    scaled = set(seen)
    seen.clear()
    private(spied, Laplace(scaled="none")).estimate(50)
    unweighted = set(seen)
    # The calibration's pairs are the same; those of the weights are others.
    assert unweighted < scaled
    assert 30 <= len(scaled - unweighted) <= 38  # 19 pairs


def test_weights_do_not_depend_on_the_workers():
    """The gaps of one estimate must all be measured in one norm, wherever."""
    inline = private().estimate(40)
    with_workers = private(workers=2).estimate(40)
    assert inline.shape == with_workers.shape
    assert np.array_equal(inline.gaps, with_workers.gaps)
    assert inline.norm == "weighted l1"


def test_the_first_writers_weights_are_used_by_all(tmp_path):
    """Two machines that round differently must not measure the gaps of one estimate in two norms."""
    store = Store(tmp_path / "estimates.db")
    store.open("key", seed=7, label="f", n=10, facts={})
    assert store.agree("key", 7, [1, 0, -3]) == [1, 0, -3]
    assert store.agree("key", 7, [1, 0, -4]) == [1, 0, -3]
    store.describe("key", 7, seconds=1.0)
    assert Store(tmp_path / "estimates.db").open("key", seed=1, label="f", n=10, facts={}).weights == [
        1,
        0,
        -3,
    ]
    assert store.agree("other", 7, [1, 0, -4]) == [1, 0, -4]


def test_remembered_weights_are_used(tmp_path):
    """A later process must not evaluate the pilot pairs again, nor use other weights."""
    seen = []
    SPY.later = seen

    def spied(data):
        logging.getLogger("tests.scaling").later.append(1)
        return data.mean(axis=0)

    place = tmp_path / "estimates.db"
    first = private(spied, store=place).estimate(40)
    count = len(seen)
    again = private(spied, store=place)
    second = again.estimate(40)
    assert second.shape == first.shape
    assert second.value == first.value
    assert len(seen) == count
    third = again.replace(gamma=0.02).estimate(40)  # more pairs, measured in the same norm
    assert third.shape == first.shape
    assert np.array_equal(third.gaps[: first.m], first.gaps)


def test_facts_of_a_forgotten_calibration_do_not_come_back(tmp_path):
    """Otherwise the new calibration would count as checked before it is."""
    store = Store(tmp_path / "estimates.db")
    store.open("key", seed=7, label="f", n=10, facts={})
    store.forget("key")
    store.open("key", seed=8, label="f", n=10, facts={})
    store.describe("key", 7, checked=557)
    assert store.open("key", seed=8, label="f", n=10, facts={}).checked == 0
