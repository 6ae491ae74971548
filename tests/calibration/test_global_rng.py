"""The guard of the global generators: seeds work as documented, and the caller's states are restored."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from numpy.random import mtrand

from privatize.calibration.global_rng import rng_guard
from tests.cases import for_each

pytestmark = pytest.mark.usefixtures("own_generators")


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 - 1])
def test_seeds_work_as_documented(seed):
    """A function would get other random numbers than a user gets with the same seed."""
    random.seed(seed)
    np.random.seed(seed)
    expected = [random.random(), random.gauss(0, 1), *np.random.random(700), *np.random.randn(3)]
    with rng_guard(seed) as rng:
        for _ in range(3):
            rng.reseed()
            found = [random.random(), random.gauss(0, 1), *np.random.random(700), *np.random.randn(3)]
            assert found == expected


@for_each("steps", [0, 1, 5, 623, 624, 625, 2000])
@for_each("gauss", [False, True])
def test_the_callers_state_is_restored(steps, gauss):
    """The caller's random numbers would differ from those without a private call in between."""
    random.seed(3)
    for _ in range(steps):
        random.random()
    if gauss:
        random.gauss(0, 1)
    state = random.getstate()
    expected = [random.gauss(0, 1), *(random.random() for _ in range(1300))]
    for _ in range(2):
        random.setstate(state)
        with rng_guard(5) as rng:
            rng.reseed()
            random.gauss(0, 1)
        assert random.getstate() == state
        assert [random.gauss(0, 1), *(random.random() for _ in range(1300))] == expected


@for_each("draws", [0, 1, 2, 3])
@for_each("bits", [np.random.MT19937, np.random.PCG64])
def test_numpys_state_is_restored_with_a_cached_normal_deviate(draws, bits):
    """The caller's next normal deviate would be another one, or its generator be exchanged."""
    theirs, own = mtrand.get_bit_generator(), bits(4)
    mtrand.set_bit_generator(own)
    try:
        np.random.randn(draws)
        expected = np.random.RandomState(bits(4)).randn(draws + 3).tolist()[draws:]
        with rng_guard(5) as rng:
            rng.reseed()
            np.random.randn(draws + 1)
        assert mtrand.get_bit_generator() is own
        assert np.random.randn(3).tolist() == expected
    finally:
        mtrand.set_bit_generator(theirs)


@for_each("act", [lambda: np.random.randn(), lambda: np.random.randn(2), random.random])
def test_a_cached_normal_deviate_counts_as_use(act):
    """A function that only takes a cached deviate would be taken for one without random numbers."""
    with rng_guard(5) as rng:
        rng.reseed()
        assert not rng.used()
        act()
        assert rng.used()
        assert not rng.used()


def test_reseeding_numpy():
    """After reseeding, numpy's generator would not be at the start, or have a cached normal deviate."""
    expected = np.random.RandomState(5)
    numbers = expected.random_sample(300).tolist() + expected.randn(4).tolist()
    with rng_guard(5) as rng:
        for count in range(5):
            rng.reseed()
            assert np.random.random(300).tolist() + np.random.randn(4).tolist() == numbers
            np.random.randn(count)


def test_a_bit_generator_that_a_function_sets_counts_as_use():
    """A function that replaces numpy's bit generator would replace it for the next evaluation as well."""
    with rng_guard(5) as rng:
        rng.reseed()
        first = np.random.random(3).tolist()
        rng.reseed()
        mtrand.set_bit_generator(np.random.PCG64(1))
        assert rng.used()  # not may_be_used(), which is always true where torch is loaded
        assert np.random.random(3).tolist() == first


class Other(random.Random):
    """A generator that replaces the usual one of `random`."""


def test_a_replaced_generator(monkeypatch):
    """A generator that somebody has put into `random` would not be seeded, or not be restored."""
    other = Other(5)
    for name in ("random", "seed", "getstate", "setstate", "gauss"):
        monkeypatch.setattr(random, name, getattr(other, name))
    monkeypatch.setattr(random, "_inst", other)
    expected = random.Random(7).random()
    before = other.getstate()
    with rng_guard(7) as rng:
        for _ in range(2):
            rng.reseed()
            assert other.random() == expected
            assert rng.may_be_used()
    assert other.getstate() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # other tests have left threads
def test_a_fork_inside_a_guard():
    """The child's global generator is the one that the guard has put there; its state would be lost."""
    with rng_guard(7) as rng:
        rng.reseed()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                before = np.random.get_state()[1].tobytes()
                with rng_guard(8) as inner:
                    inner.reseed()
                    np.random.random(700)
                code = 0 if np.random.get_state()[1].tobytes() == before else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # other tests have left threads
def test_a_fork_after_a_guard():
    """A block would get other random numbers in its process than a user gets with the same seed."""

    def drawn(rng):
        rng.reseed()
        return [random.random(), *np.random.random(5), *np.random.randn(3)]

    with rng_guard(3) as rng:
        expected = drawn(rng)
    child = os.fork()
    if child == 0:
        with rng_guard(7), rng_guard(3) as rng:
            os._exit(drawn(rng) != expected)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


TAKEN_OVER = """
import random
import numpy as np
from privatize.calibration.global_rng import rng_guard

def drawn():
    first = random.random(), np.random.standard_normal(), np.random.standard_normal()
    with rng_guard(3) as inner:
        inner.reseed()
        second = random.random(), np.random.random()
    return first, second, random.random(), np.random.standard_normal(3).tolist()

np.random.standard_normal()  # one more is cached
with rng_guard(7) as rng:
    rng.reseed()
    expected = drawn()
np.random.set_state(np.random.RandomState(5).get_state())
taken = rng_guard(7).take_over()
for _ in range(2):
    taken.reseed()
    assert drawn() == expected
np.random.set_bit_generator(np.random.PCG64(1))
taken.reseed()
assert drawn() == expected
"""


def test_generators_of_a_process_that_ends():
    """A block of people would get other random numbers than calibration has seen."""
    subprocess.run([sys.executable, "-c", TAKEN_OVER], check=True)
