"""The global generators: copying their memory does what setting their state does."""

import os
import random

import numpy as np
import pytest
from numpy.random import mtrand

from privatize.calibration import global_rng as generators
from privatize.calibration import streams as coins

pytestmark = pytest.mark.usefixtures("own_generators")


@pytest.fixture(params=["memory", "state"])
def way(request, monkeypatch):
    """Copy memory, or do without where it is not laid out as expected."""
    generators._start.cache_clear()
    monkeypatch.setattr(coins, "_stand_ins", [])
    if request.param == "state":
        monkeypatch.setattr(generators, "_own", lambda: None)
        monkeypatch.setattr(generators, "_seen", lambda address, size: memoryview(bytearray(size)))
    yield request.param
    generators._start.cache_clear()


def test_memory_is_found():
    """Without it every call takes longer; a Python that keeps it elsewhere should be noticed."""
    assert generators._own() is not None
    assert generators.StandIn()._memory is not None


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 - 1])
def test_seeds_lead_where_the_libraries_say(way, seed):
    """Functions see the coins that a user gets with the same seed."""
    random.seed(seed)
    np.random.seed(seed)
    expected = [random.random(), random.gauss(0, 1), *np.random.random(700), *np.random.randn(3)]
    with coins.public_coins(seed) as flips:
        for _ in range(3):
            flips.toss()
            found = [random.random(), random.gauss(0, 1), *np.random.random(700), *np.random.randn(3)]
            assert found == expected


@pytest.mark.parametrize("steps", [0, 1, 5, 623, 624, 625, 2000])
@pytest.mark.parametrize("gauss", [False, True])
def test_going_back(way, steps, gauss):
    """The caller's numbers go on as if nothing had been between."""
    random.seed(3)
    for _ in range(steps):
        random.random()
    if gauss:
        random.gauss(0, 1)
    place, state = generators.where(), random.getstate()
    expected = [random.gauss(0, 1), *(random.random() for _ in range(1300))]
    for _ in range(2):
        generators.go(place)
        assert random.getstate() == state
        assert [random.gauss(0, 1), *(random.random() for _ in range(1300))] == expected


def test_stand_ins_go_back_too(way):
    """A toss puts numpy's generator at the start, wherever it was."""
    stand_in = generators.StandIn()
    assert (stand_in._memory is None) == (way == "state")
    stand_in.go(generators.start_of(5)[1])
    places, numbers = [], []
    for _ in range(5):
        places.append(stand_in.where())
        numbers.append(np.random.random(300).tolist() + np.random.randn(4).tolist())
    for place, expected in zip(places, numbers, strict=True):
        stand_in.go(place)
        assert stand_in.where() == place
        assert np.random.random(300).tolist() + np.random.randn(4).tolist() == expected


def test_a_bit_generator_that_a_function_sets_counts_as_use(way):
    """It is taken out again before the next evaluation."""
    with coins.public_coins(5) as flips:
        flips.toss()
        first = np.random.random(3).tolist()
        flips.toss()
        mtrand.set_bit_generator(np.random.PCG64(1))
        assert flips.moved()
        assert np.random.random(3).tolist() == first


def test_both_ways_agree(way):
    """A place of one generator of another seed is where that one stands."""
    own, numpys = generators.start_of(11)
    generators.go(own)
    assert random.getstate() == random.Random(11).getstate()
    state = np.random.RandomState(11).get_state(legacy=False)["state"]
    assert numpys == b"".join(generators._packed(state["key"], state["pos"]))


class Other(random.Random):
    """A generator that somebody puts in the place of the usual one."""


def test_another_generator_in_its_place(monkeypatch):
    """Public coins and the caller's state are those of whatever generator is there."""
    other = Other(5)
    for name in ("random", "seed", "getstate", "setstate", "gauss"):
        monkeypatch.setattr(random, name, getattr(other, name))
    monkeypatch.setattr(random, "_inst", other)
    expected = random.Random(7).random()
    before = other.getstate()
    with coins.public_coins(7) as flips:
        for _ in range(2):
            flips.toss()
            assert other.random() == expected
            assert flips.moved()
    assert other.getstate() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # other tests have left threads
def test_a_fork_in_the_midst_of_public_coins():
    """The child has the stand-in as its own generator, and must not lose its place."""
    with coins.public_coins(7) as flips:
        flips.toss()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                before = np.random.get_state()[1].tobytes()
                with coins.public_coins(8) as inner:
                    inner.toss()
                    np.random.random(700)
                code = 0 if np.random.get_state()[1].tobytes() == before else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
