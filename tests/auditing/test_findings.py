"""The findings of an audit say whether the promise held, and never more than was measured."""

import pickle

import numpy as np
import pytest

from privatize import privatize
from privatize.auditing.coverage import cover
from privatize.errors import AuditError, PrivatizeError
from tests.auditing.audited import UNIT, distinguish, forged, private, quick


def test_a_verdict_says_what_was_found():
    """A user would not learn how the neighbours were told apart."""
    rng = np.random.default_rng(4)
    assert "the same in every release" in distinguish(lambda v: v).verdict
    coin = distinguish(lambda v: np.where(rng.random(1) < 0.9, v, 1 - v))
    assert "told apart by the answer itself" in coin.verdict
    assert "looks Laplace" in distinguish(lambda v: v + rng.laplace(0, 0.85, 1), releases=5000).verdict
    assert "show epsilon >= " in distinguish(lambda v: v + rng.laplace(0, 2, 1)).verdict


def test_a_broken_promise_raises_an_assertion_error_that_pickles():
    """A user's test would pass, or its failure be lost between processes."""
    mean = private()
    found = quick(forged(mean, mean.estimate(20).value / 3))
    assert not found.holds and "broken" in found.verdict and "forget()" in str(found)
    with pytest.raises(AuditError) as caught:
        found.assert_holds()
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value, PrivatizeError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is AuditError and str(again) == str(caught.value) == str(found)
    assert pickle.loads(pickle.dumps(found)).verdict == found.verdict
    assert quick(private()).assert_holds() is None


def test_what_so_few_pairs_can_confirm():
    """A user would read "0.0594 is supported" beside a promise of 0.05, and take it for a contradiction."""
    found = quick(private(gamma=0.1), pairs=200)
    assert found.holds and found.coverage.high > 0.1
    high = f"{found.coverage.high:.4g}"
    assert (
        f"the smallest gamma supported 200 fresh pairs can confirm a gamma of {high} or more; "
        f"they do not contradict 0.1, and more pairs could confirm it"
    ) in str(found)
    sure = quick(private(gamma=0.1), pairs=5000, releases=0)
    assert sure.coverage.high <= 0.1
    assert f"{sure.coverage.high:.4g}, so 5,000 fresh pairs confirm 0.1" in str(sure)
    mean = private()
    broken = quick(forged(mean, mean.estimate(20).value / 3))
    assert f"{broken.coverage.high:.4g}; the pairs contradict 0.1" in str(broken)
    proven = privatize(epsilon=1, sensitivity=lambda n: 1 / n, sampler=UNIT, seed=1, store=None)(np.mean)
    assert "do not contradict 0, and no number of pairs could confirm it" in str(quick(proven))


def test_a_failed_coverage_states_more_than_gamma():
    """A user would read "at least 0.0497, and gamma=0.05 is claimed", which contradicts nothing."""
    mean = private(gamma=0.05)
    sensitivity, count = mean.estimate(20), 1000
    for beyond in range(50, 100):
        gaps = np.where(np.arange(count) < beyond, 2.0, 0.5) * sensitivity.value
        found = cover("P", gaps, sensitivity, mean.settings, 0.005, claimed=True)
        assert found.beyond == beyond and (found.holds or found.least > found.gamma)
