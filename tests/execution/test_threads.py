"""BLAS and OpenMP have one thread while a function is evaluated, and those of before afterwards."""

import numpy as np
import pytest
import threadpoolctl

from privatize import privatize, samplers
from privatize.execution import threads


def counts():
    """Return how many threads each library has."""
    return [each["num_threads"] for each in threadpoolctl.threadpool_info()]


@pytest.fixture
def several():
    """Give every library two threads; skip where there is none that can have them."""
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpoolctl.threadpool_limits(2):
        if 2 not in counts():
            pytest.skip("no library with threads is loaded")
        yield


def test_there_is_one_thread_inside_and_as_many_as_before_outside(several):
    """Last digits would depend on the number of cores, or the caller's program would be slow ever after."""
    before, limited = counts(), []
    threads.limit(limited)
    assert set(counts()) == {1}
    threads.restore(limited)
    assert counts() == before


def test_the_callers_threads_are_restored_after_an_error(several):
    """A function that fails would leave the caller's program with one thread."""
    before, seen = counts(), []

    def fails(x):
        seen.extend(counts())
        raise ValueError("no answer")

    made = privatize(epsilon=1, gamma=0.3, sampler=samplers.uniform(0, 1), workers="inline", store=None)
    with pytest.raises(Exception, match="no answer"):
        made(fails).estimate(10)
    assert seen and set(seen) == {1} and counts() == before
