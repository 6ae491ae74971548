"""Noise is exact: the filter's error is proven, ties are decided in integers, nothing wraps or buffers."""

import multiprocessing
import random
import threading
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from privatize.noise import exact as discrete
from tests.cases import for_each

getcontext().prec = 80


def exact_exp(num, den):
    """Return exp(-num/den) to 80 digits, by the standard library."""
    return (-Decimal(num) / Decimal(den)).exp()


def fed(*words):
    """Return a stream whose next words are given."""
    stream = discrete.Stream()
    stream._ready = list(reversed(words))
    return stream


def test_filter_error_is_within_its_proof():
    """If exp() were off by more than 2^-48, the filter could decide wrongly without noticing."""
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.random(3000), 63.9 * rng.random(3000), np.arange(0, 64, 1 / 256)])
    found = discrete._exps(x)
    for value, at in zip(found.tolist(), x.tolist(), strict=True):
        assert abs(Decimal(value) - (-Decimal(at)).exp()) < Decimal(2) ** -50
        assert discrete._exp(at) == value  # both paths compute the same


@pytest.mark.parametrize("precision", [1, 10, 63, 128, 200])
def test_exp_bounds_enclose(precision):
    """The integer bounds contain the true value, and closely."""
    rng = random.Random(3)
    for _ in range(200):
        den = rng.randrange(1, 1 << rng.randrange(1, 90))
        num = rng.randrange(0, 40 * den)
        low, high = discrete.exp_bounds(num, den, precision)
        true = exact_exp(num, den) * 2**precision
        assert low <= true <= high
        assert high - low <= 2
    assert discrete.exp_bounds(10**30, 1, precision) == (0, 1)
    assert discrete.exp_bounds(0, 5, precision)[1] >= 2**precision


def test_cuts_are_the_floors():
    """The constants that V and k are read from are right to the last bit."""
    cuts, array = discrete._laplace_cuts()
    assert cuts == [int(exact_exp(j, 1) * 2**63) for j in range(43, 0, -1)] == array.tolist()
    weights = [exact_exp(i * i, 2) for i in range(30)]
    expected = [int(sum(weights[k:]) / sum(weights) * 2**63) for k in range(10, 0, -1)]
    assert discrete._normal_cuts()[0] == expected


def test_ties_are_decided_by_further_bits():
    """When the first bits equal the constant's, the next ones decide, as in an infinite expansion."""
    true = exact_exp(1, 3)
    prefix = int(true * 2**20)
    rest = int((true * 2**20 - prefix) * 2**64)
    for word, below in ((rest - 1, True), (rest + 1, False)):
        assert discrete._below_exp(prefix, 20, 1, 3, fed(word)) is below
    assert discrete._below_exp(prefix - 1, 20, 1, 3, discrete.Stream())
    assert not discrete._below_exp(prefix + 1, 20, 1, 3, discrete.Stream())


def test_geometric_at_and_beyond_the_cuts():
    """V is right at every cut, on both sides of a tie, and past the last cut."""
    cuts, _ = discrete._laplace_cuts()
    for i, cut in enumerate(cuts):
        j = 43 - i
        assert discrete._geometric(cut - 1, discrete.Stream()) >= j
        assert discrete._geometric(cut + 1, discrete.Stream()) == j - 1 or cut + 1 in cuts
    j, cut = 5, cuts[43 - 5]
    rest = int((exact_exp(j, 1) * 2**63 - cut) * 2**64)
    assert discrete._geometric(cut, fed(rest - 1)) == j
    assert discrete._geometric(cut, fed(rest + 1)) == j - 1
    assert discrete._geometric(0, fed(0, 2**63)) == 86  # twice beyond the last cut, then 0


def test_steps_at_the_cuts():
    """k is right at a tie, whichever way the further bits fall."""
    cuts, _ = discrete._normal_cuts()
    weights = [exact_exp(i * i, 2) for i in range(30)]
    for k in (1, 2, 5):
        cut = cuts[10 - k]
        rest = int((sum(weights[k:]) / sum(weights) * 2**63 - cut) * 2**64)
        for word, expected in ((rest - 1, k), (rest + 1, k - 1)):
            assert discrete._steps(cut, fed(word)) == expected
        assert discrete._steps(cut - 1, discrete.Stream()) == k
        assert discrete._steps(cut + 1, discrete.Stream()) == k - 1


def test_rare_multiples_do_not_wrap():
    """A multiple that would overflow int64 is computed in Python's integers."""
    wide = discrete._wide(np.array([3, 200]), 2**55)
    assert wide.tolist() == [3 * 2**55, 200 * 2**55]
    assert discrete._wide(np.array([63]), 2**55).dtype == np.int64


@for_each("t", [1, 2, 3, 2**23 - 1, discrete.coarse(2**40 + 1), 2**55])
def test_vectorized_draws_stay_in_range(t):
    """Draws at the widest vectorized scale have the right size and both signs."""
    for found in (discrete.discrete_laplace(t, 0, 2000), discrete.discrete_gaussian(t, 2000)):
        assert isinstance(found, np.ndarray) and found.dtype == np.int64
        assert 0.5 * t < np.abs(found).astype(float).mean() + 0.5 < 2 * t + 1
        assert (found < 0).any() and (found > 0).any()


@pytest.mark.parametrize("t", [2**24 + 1, 2**40 + 1, 2**60, 2**300 + 7])
def test_other_scales_are_drawn_in_python_integers(t):
    """A scale that the vectorized path cannot take is drawn all the same."""
    for found in (discrete.discrete_laplace(t, 0, 50), discrete.discrete_gaussian(t, 50)):
        assert isinstance(found, list)
        assert 0.2 * t < sum(map(abs, found)) / 50 < 5 * t


def test_coarse_rounds_up_by_little():
    """The scale that is used is never below the one that was asked for."""
    rng = random.Random(4)
    for _ in range(500):
        t = rng.randrange(1, 1 << rng.randrange(1, 100))
        used = discrete.coarse(t)
        assert t <= used <= t * (1 + Fraction(1, 2**22))
        assert discrete._split(used)[0] < 1 << 24


def draw_many(connection):
    connection.send(
        (discrete.discrete_laplace(2**40, 0, 5), discrete.discrete_laplace(2**40, 0, 100).tolist())
    )
    connection.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # forking is what is tested
def test_forked_children_never_share_noise():
    """Two forked workers that release the same answer must not add the same noise."""
    discrete.discrete_laplace(2**40, 0, 3)  # fills whatever buffer there could be before the fork
    context = multiprocessing.get_context("fork")
    seen = []
    for _ in range(2):
        here, there = context.Pipe()
        child = context.Process(target=draw_many, args=(there,))
        child.start()
        seen += [value for part in here.recv() for value in part]
        child.join()
    seen += discrete.discrete_laplace(2**40, 0, 5)
    assert len(set(seen)) == len(seen)


def test_threads_never_share_noise():
    """Two threads that release at the same time must not add the same noise."""
    found = []
    threads = [
        threading.Thread(
            target=lambda: [found.extend(discrete.discrete_gaussian(2**50, 10)) for _ in range(20)]
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 800
