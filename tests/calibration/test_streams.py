"""Public streams, and the guard of the global generators, which leaves the caller's states unchanged."""

import hashlib
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import mtrand

from privatize.calibration import streams
from privatize.calibration.global_rng import rng_guard
from privatize.errors import SettingsError
from tests.cases import for_each

pytestmark = pytest.mark.usefixtures("own_generators")
TAGS = [streams.RECORDS, streams.POSITIONS, streams.COINS, streams.PILOT, streams.AUDIT, streams.CHECK]


@pytest.fixture(autouse=True)
def _without_torch(monkeypatch):
    """Hide torch: if it is loaded, generators count as used (see tests/integration/test_torch.py)."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def caller_state():
    """Return the states of the caller's generators, as values that can be compared."""
    state = np.random.get_state(legacy=False)
    inner = {
        name: hashlib.sha256(value).hexdigest() if isinstance(value, np.ndarray) else value
        for name, value in state["state"].items()
    }
    return random.getstate(), state["bit_generator"], inner, state["has_gauss"], state["gauss"]


def use_everything():
    """Use both global generators so that each has a deviate cached."""
    random.gauss(0, 1)
    np.random.standard_normal()
    return random.random(), np.random.random()


# --- streams ---


def test_streams_differ_by_seed_tag_and_block():
    """Two purposes would share numbers: the positions would depend on the records."""
    firsts = {
        tuple(streams.stream(seed, tag, block).random(4))
        for seed in (0, 1, 2**40)
        for tag in TAGS
        for block in range(20)
    }
    assert len(firsts) == 3 * len(TAGS) * 20


def test_streams_are_not_those_a_user_would_build():
    """A user's own ``default_rng(seed)`` would repeat the calibration's records."""
    for seed in (0, 1, 7):
        own = {np.random.default_rng(s).random() for s in (seed, [seed, 0], [seed, 0, 0])}
        own |= {np.random.Generator(np.random.SFC64(s)).random() for s in (seed, [seed, 0], [seed, 0, 0])}
        assert not own & {streams.stream(seed, tag, 0).random() for tag in TAGS}


def test_streams_are_reproducible():
    """A stored estimate could not be continued or checked."""
    for tag in TAGS:
        one, other = streams.stream(3, tag, 5), streams.stream(3, tag, 5)
        assert np.array_equal(one.integers(2**63, size=100), other.integers(2**63, size=100))


def test_the_scheme_is_pinned():
    """A changed stream would silently invalidate every stored estimate: raise SCHEME with it."""
    assert streams.SCHEME == 2
    assert TAGS == [0, 1, 2, 3, 4, 5]
    assert streams.stream(1, streams.RECORDS, 0).integers(2**32, size=2).tolist() == [2540132485, 374978668]
    assert streams.coin_seed(7) == 3831650445


def test_streams_are_the_same_in_another_process():
    """A worker would draw other pairs than those it was asked for."""
    code = (
        "from privatize.calibration import streams\n"
        "print(streams.stream(9, streams.RECORDS, 4).integers(2**62))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) == streams.stream(9, streams.RECORDS, 4).integers(2**62)


@for_each(
    ("n", "size"), [(1, 256), (1022, 256), (1023, 256), (1024, 255), (10_000, 26), (2**18 - 1, 1), (10**9, 1)]
)
def test_block_size(n, size):
    """Blocks of another size would have other pairs than those of stored estimates."""
    assert streams.block_size(n) == size


def test_seeds_are_fresh():
    """Somebody who can predict seeds could wait for one with a small estimate."""
    seeds = {streams.fresh_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**64 for seed in seeds)
    assert max(seeds) > 2**56  # misses once in 2^800


@for_each("seed", [0, 7, 2**64, 2**200, np.int64(5), np.uint8(5)])
def test_seeds_that_are_accepted(seed):
    """A seed of a user, such as an integer of numpy, would be refused."""
    assert streams.check_seed(seed) == seed
    assert type(streams.check_seed(seed)) is int


def test_no_seed_is_none():
    """Leaving the seed out would not mean a fresh one."""
    assert streams.check_seed(None) is None


@for_each("seed", [-1, True, np.True_, 1.0, np.float64(1), "1", [1], np.arange(2), random.Random], ids=str)
def test_seeds_that_are_refused(seed):
    """A slip such as seed=True or seed=1.0 would be taken for a number, or fail without a reason."""
    with pytest.raises(SettingsError, match=r"not a seed.*integer >= 0.*noise is never seeded"):
        streams.check_seed(seed)


def test_coin_seeds_fit_numpy():
    """``numpy.random.seed`` takes 32 bits: a larger seed would fail at the first evaluation."""
    found = [streams.coin_seed(seed) for seed in (*range(200), 2**64 - 1, 2**200)]
    assert all(type(s0) is int and 0 <= s0 < 2**32 for s0 in found)
    assert len(set(found)) > 195


# --- the caller's generators ---


@pytest.mark.parametrize("cached", [False, True])
def test_the_callers_randomness_is_untouched(cached):
    """A user's simulation would give other numbers after a private answer than before."""
    random.seed(1)
    np.random.seed(1)
    if cached:
        use_everything()
    before = caller_state()
    assert bool(before[3]) is cached
    assert (random.getstate()[2] is not None) is cached
    with rng_guard(5) as rng:
        rng.reseed()
        use_everything()
    assert caller_state() == before


def test_a_cached_normal_deviate_is_restored():
    """The caller would lose the second of a pair of normal deviates."""
    np.random.seed(3)
    random.seed(3)
    expected = np.random.standard_normal(3).tolist(), [random.gauss(0, 1) for _ in range(3)]
    np.random.seed(3)
    random.seed(3)
    numbers, gausses = [np.random.standard_normal()], [random.gauss(0, 1)]
    with rng_guard(5) as rng:
        rng.reseed()
        np.random.standard_normal()
        random.gauss(0, 1)
    numbers += np.random.standard_normal(2).tolist()
    gausses += [random.gauss(0, 1) for _ in range(2)]
    assert (numbers, gausses) == expected


def test_no_public_deviate_is_left_behind():
    """The caller's next normal number would be a public one, the same every time."""
    np.random.seed(3)
    expected = np.random.standard_normal()
    np.random.seed(3)
    with rng_guard(5) as rng:
        rng.reseed()
        np.random.standard_normal()  # leaves one cached
    assert np.random.standard_normal() == expected


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_callers_randomness_is_untouched_after_errors(error):
    """A function that fails once would change everything random that comes after it."""
    use_everything()
    before = caller_state()
    with pytest.raises(error), rng_guard(5) as rng:  # noqa: PT012
        rng.reseed()
        use_everything()
        raise error
    assert caller_state() == before


@for_each("cached", [False, True])
@for_each("depth", [2, 3, 4])
def test_nested_guards(depth, cached):
    """A private function that calls private functions would have other random numbers when it runs."""

    def inside(level):
        if level == 0:
            return
        with rng_guard(100 + level) as rng:
            rng.reseed()
            random.random()
            np.random.random()
            if cached:  # then numpy's entire state is restored, not only its bit generator
                use_everything()
            before = caller_state()
            inside(level - 1)
            assert caller_state() == before, f"a guard at level {level - 1} has changed this state"

    before = caller_state()
    inside(depth)
    assert caller_state() == before


def test_nested_guards_after_errors():
    """A failing inner function would change the random numbers of the outer one."""
    before = caller_state()
    with rng_guard(1) as rng:
        rng.reseed()
        use_everything()
        middle = caller_state()
        with pytest.raises(ZeroDivisionError), rng_guard(2) as inner:  # noqa: PT012
            inner.reseed()
            use_everything()
            raise ZeroDivisionError
        assert caller_state() == middle
    assert caller_state() == before


def test_the_callers_own_bit_generator_is_restored():
    """A caller who chose PCG64 for numpy's global generator would find it replaced."""
    mtrand.set_bit_generator(np.random.PCG64(3))
    np.random.standard_normal()
    mine, before = mtrand.get_bit_generator(), caller_state()
    with rng_guard(5) as rng:
        rng.reseed()
        first = np.random.random()
        rng.reseed()
        assert np.random.random() == first
    assert mtrand.get_bit_generator() is mine
    assert caller_state() == before


def test_a_function_may_change_the_bit_generator():
    """A function that replaces numpy's bit generator would replace it for the caller too."""
    mine, before = mtrand.get_bit_generator(), caller_state()
    with rng_guard(5) as rng:
        rng.reseed()
        mtrand.set_bit_generator(np.random.MT19937(1))
        np.random.random()
    assert mtrand.get_bit_generator() is mine
    assert caller_state() == before


def test_seeding_inside_stays_inside():
    """A function that seeds numpy or `random` itself would seed the caller's code as well."""
    before = caller_state()
    expected = np.random.RandomState(42).random_sample(3)
    with rng_guard(5) as rng:
        rng.reseed()
        np.random.seed(42)
        random.seed(42)
        assert np.array_equal(np.random.random(3), expected)
        assert random.random() == random.Random(42).random()
    assert caller_state() == before


# --- the public seed ---


def test_reseeding_makes_the_global_generators_reproducible():
    """A function that uses global randomness would be refused as not reproducible."""

    def noisy():
        return (
            [random.random(), random.gauss(0, 1), random.randrange(10**9)],
            np.random.standard_normal(3).tolist(),
            np.random.permutation(10).tolist(),
            np.random.mtrand._rand.random_sample(),
        )

    with rng_guard(11) as rng:
        found = []
        for _ in range(3):
            rng.reseed()
            found.append(noisy())
        assert found[0] == found[1] == found[2]
    with rng_guard(11) as rng:
        rng.reseed()
        assert noisy() == found[0]
    with rng_guard(12) as rng:
        rng.reseed()
        assert noisy() != found[0]


def test_random_numbers_are_those_of_the_seed():
    """A user could not reproduce a run on public data with ``random.seed`` and ``numpy.random.seed``."""
    with rng_guard(11) as rng:
        rng.reseed()
        assert random.random() == random.Random(11).random()
        assert np.random.random() == np.random.RandomState(11).random_sample()


@for_each(
    "use",
    [
        random.random,
        lambda: random.gauss(0, 1),
        lambda: random.seed(1),
        np.random.random,
        np.random.standard_normal,
        lambda: np.random.shuffle([1, 2, 3]),
        lambda: np.random.randint(5),
        lambda: np.random.seed(1),
        lambda: np.random.random(624),
        lambda: np.random.random(312 * 5),
    ],
)
def test_use_is_noticed(use):
    """A random function would not be evaluated with the recorded seed each time."""
    with rng_guard(11) as rng:
        rng.reseed()
        assert not rng.may_be_used()
        use()
        assert rng.may_be_used()
        assert not rng.may_be_used()  # they have been reseeded


def test_own_generators_are_not_use():
    """A function with a generator of its own would be slowed down as if it used the global ones."""
    with rng_guard(11) as rng:
        rng.reseed()
        np.random.default_rng(3).random()
        random.Random(3).random()
        np.random.RandomState(3).random_sample()
        assert not rng.may_be_used()


def test_threads_take_turns():
    """Two private functions in two threads would use each other's random numbers."""

    def work(s0, found):
        for _ in range(20):
            with rng_guard(s0) as rng:
                rng.reseed()
                numbers = []
                for _ in range(5):
                    numbers.append((random.random(), np.random.random()))
                    time.sleep(0)
                found.append(numbers)

    before = caller_state()
    found: dict[int, list] = {s0: [] for s0 in range(6)}
    threads = [threading.Thread(target=work, args=item) for item in found.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for s0, runs in found.items():
        own, numpys = random.Random(s0), np.random.RandomState(s0)
        expected = [(own.random(), numpys.random_sample()) for _ in range(5)]
        assert runs == [expected] * 20
    assert caller_state() == before


@pytest.mark.parametrize("failing", [False, True])
def test_the_lock_is_released(failing):
    """A failure in one thread would leave every other private function waiting forever."""
    entered = threading.Event()

    def other():
        with rng_guard(2):
            entered.set()

    thread = threading.Thread(target=other, daemon=True)
    try:
        with rng_guard(1):
            thread.start()
            assert not entered.wait(0.05)
            if failing:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    assert entered.wait(120)
    thread.join(120)


# --- the caller's normal deviate --------------------------------------------------------------

ACTS = {
    "randn": lambda rng: rng.randn(),
    "normals": lambda rng: rng.normal(size=3).tolist(),
    "two": lambda rng: rng.standard_normal(2).tolist(),
    "random": lambda rng: rng.random_sample(),
    "many": lambda rng: rng.random_sample(700).sum(),
    "integers": lambda rng: int(rng.randint(10)),
    "seed": lambda rng: rng.seed(7),
    "seed with another": lambda rng: rng.seed(8),
    "shuffle": lambda rng: rng.permutation(5).tolist(),
    "state": lambda rng: rng.set_state(rng.get_state()),
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*ACTS, "guard", "nested", "save", "restore"]), max_size=30))
def test_the_callers_numbers_are_those_without_guards(acts):
    """A caller's random numbers would depend on whether private functions were called in between."""
    mine, saved = np.random.RandomState(3), None
    before = np.random.get_state()
    try:
        np.random.seed(3)
        for act in acts:
            if act in ("guard", "nested"):
                with rng_guard(5) as rng:
                    rng.reseed()
                    np.random.randn(3)
                    if act == "nested":
                        with rng_guard(6) as inner:
                            inner.reseed()
                            np.random.randn(1)
                    np.random.randn(1)
            elif act == "save":
                saved = mine.get_state(), np.random.get_state()
            elif act == "restore":
                if saved is not None:
                    mine.set_state(saved[0])
                    np.random.set_state(saved[1])
            else:
                assert ACTS[act](mine) == ACTS[act](np.random)
        assert mine.randn() == np.random.randn() and mine.randn() == np.random.randn()
    finally:
        np.random.set_state(before)


def test_a_deviate_that_the_caller_restores():
    """A user's test that saves a state and restores it later would lose its cached normal deviate."""
    before = np.random.get_state()
    try:
        np.random.seed(0)
        np.random.randn()
        state = np.random.get_state()  # with a deviate
        expected = np.random.randn()
        for _ in range(3):
            with rng_guard(5):  # at the same place, without one
                pass
            np.random.set_state(state)
            with rng_guard(5):
                pass
            assert np.random.randn() == expected
    finally:
        np.random.set_state(before)


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.SFC64, np.random.Philox, np.random.MT19937])
def test_a_deviate_of_another_bit_generator(kind):
    """A user who has set another bit generator would lose its cached normal deviate."""
    before = mtrand.get_bit_generator()
    try:
        mtrand.set_bit_generator(kind(1))
        one = [np.random.randn() for _ in range(6)]
        mtrand.set_bit_generator(kind(1))
        other = []
        for _ in range(6):
            with rng_guard(5) as rng:
                rng.reseed()
                np.random.randn()
            other.append(np.random.randn())
        assert one == other
    finally:
        mtrand.set_bit_generator(before)


@pytest.mark.parametrize("use", [random.random, np.random.random, np.random.randn, lambda: np.random.seed(1)])
def test_used(use):
    """A function that gets other random numbers in a stack than by itself would go unnoticed."""
    with rng_guard(5) as rng:
        rng.reseed()
        assert not rng.used()
        use()
        assert rng.used()
        rng.reseed()
        assert not rng.used()
