"""What workers send back is read without pickle, and belongs to the pairs that were asked for."""

import copyreg
import marshal

import numpy as np
import pytest

from privatize import estimate_sensitivity, plan, samplers
from privatize.errors import ExecutionError
from privatize.execution.clusters.executors import checked
from privatize.execution.job import Cause, Reply, SpanResult
from privatize.outputs.describe import describe


def test_a_long_cause_is_cut():
    """A user's error message that has an entire dataset in it would fill the store and the report."""

    def fails(x):
        if x[0] > 0.99:
            raise ValueError("x" * 10_000)
        return x.mean()

    found = estimate_sensitivity(
        fails, n=10, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.2), seed=1, workers="inline"
    )
    assert found.failed and found.cause.startswith("ValueError: xxx") and len(found.cause) < 600


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
